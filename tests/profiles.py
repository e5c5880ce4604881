"""How many examples a property tries, as a share of those of the profile that runs (see conftest.py)."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def fewer(times: int, *, least: int = 3, **others: Any) -> settings:
    """So many times fewer examples than other properties, for one that costs more or is tried in many cases.

    At least a few, where the profile tries as many.
    """
    profile = settings.default
    assert profile is not None
    examples = max(profile.max_examples // times, min(least, profile.max_examples))
    return settings(max_examples=examples, **others)
