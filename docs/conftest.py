"""Pages that start a JVM carry the marker ``spark``, so that ``make check`` leaves them out."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
#: Scripts, not modules with examples.
collect_ignore = ["draw.py", "make_aggregates.py", "make_api.py"]


def pytest_collection_modifyitems(items):
    pages = {}
    for item in items:
        path = Path(item.path)
        if path.suffix == ".md" and HERE in path.parents:
            if path not in pages:
                pages[path] = "local_session" in path.read_text(encoding="utf-8")
            if pages[path]:
                item.add_marker(pytest.mark.spark)
