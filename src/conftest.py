"""Examples of docstrings that start a JVM carry the marker ``spark``, so that ``make check`` leaves them out.

Those that run a stream also carry ``streams``: it takes many seconds, and ``make streams`` runs them.
"""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: This file has no examples, and pytest takes it for the one of the same name in docs/.
collect_ignore = ["conftest.py"]
#: Examples in which a stream runs.
STREAMS = {"slicewise.spark.probing.probe", "slicewise.spark.shipping.ship"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        example = getattr(item, "dtest", None)
        if HERE in item.path.parents and isinstance(example, doctest.DocTest):
            if "local_session(" in (example.docstring or ""):
                item.add_marker(pytest.mark.spark)
            if item.name in STREAMS:
                item.add_marker(pytest.mark.streams)
