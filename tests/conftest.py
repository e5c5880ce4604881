"""Hypothesis profiles: ``quick`` while working, ``thorough`` where it counts (``HYPOTHESIS_PROFILE=thorough``)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", max_examples=20, deadline=None, suppress_health_check=slow_is_fine)
settings.register_profile("thorough", max_examples=200, deadline=None, suppress_health_check=slow_is_fine)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(items):
    """The long files first, so that two workers end at about the same time."""
    long = ["test_stream_kill.py", "/spark/", "/cli/", "test_examples.py", "/docs/"]
    items.sort(key=lambda item: next((i for i, part in enumerate(long) if part in str(item.path)), len(long)))
