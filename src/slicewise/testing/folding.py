"""Folding: what is true in the end, from all that was reported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from slicewise.testing.oracle_rows import Key

__all__ = ["fold"]


def fold(results: Iterable[Any]) -> dict[tuple[Key, str, Any, Any], dict[str, Any]]:
    """The final value of every window: inserts and updates set its values, retractions remove it.

    Parameters
    ----------
    results
        Results in the order in which they were reported, of an operator or an oracle.

    Returns
    -------
    dict
        The values by ``(key, query, start, end)``.

    Notes
    -----
    Runtime complexity: O(n).

    Examples
    --------
    >>> from slicewise.results import Result
    >>> fold(
    ...     [
    ...         Result((), "visit", 0, 10, "insert", 0, {"n": 1}),
    ...         Result((), "visit", 20, 30, "insert", 0, {"n": 1}),
    ...         Result((), "visit", 0, 10, "retract", 1, {"n": None}),
    ...         Result((), "visit", 20, 30, "update", 1, {"n": 2}),
    ...     ]
    ... )
    {((), 'visit', 20, 30): {'n': 2}}
    """
    final: dict[tuple[Key, str, Any, Any], dict[str, Any]] = {}
    for r in results:
        window = (r.key, r.query, r.start, r.end)
        if r.change == "retract":
            final.pop(window, None)
        else:
            final[window] = r.values
    return final
