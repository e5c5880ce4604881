"""Hypothesis profiles: ``quick`` while working, ``thorough`` in ``make test``, ``long`` in ``make properties``.

Choose one by name: ``HYPOTHESIS_PROFILE=long pytest tests/slicing/test_ties.py``. ``make test`` tries the same examples
every time, so that it says something of the commit and not of the day; the other two try new ones. A campaign in
pieces says how many examples ``long`` tries: ``SLICEWISE_EXAMPLES=500``.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.skips import pytest_sessionfinish, pytest_terminal_summary

__all__ = ["pytest_collection", "pytest_collection_modifyitems", "pytest_sessionfinish", "pytest_terminal_summary"]

examples = int(os.environ.get("SLICEWISE_EXAMPLES", "6000"))
slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", max_examples=3, deadline=None, suppress_health_check=slow_is_fine)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=30, derandomize=True)
settings.register_profile("long", settings.get_profile("quick"), max_examples=examples)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Modules and tests stay until the end: garbage is not looked for among their million objects."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first, so that two workers end at about the same time."""
    long = ["test_stream_kill.py", "/spark/", "/cli/", "test_examples.py", "/docs/"]
    items.sort(key=lambda item: next((i for i, part in enumerate(long) if part in str(item.path)), len(long)))
