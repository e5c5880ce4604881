"""Refusals: rows that the oracle takes in nowhere: too far ahead of the clock, or after too many ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from slicewise.amounts import UNITS
from slicewise.errors import DataError
from slicewise.testing.rows import Row
from slicewise.testing.ticks import tick_after

__all__ = ["MOST_TICKS", "after_gaps", "is_ahead", "jumps", "refused"]

#: A row that would make more ticks of its key due than this is refused.
MOST_TICKS = 1_000_000


def is_ahead(time: int, ahead: int, clock: Callable[[], int], unit: str) -> bool:
    """Whether an event time is further ahead of the clock, which counts microseconds, than ``ahead`` of its units."""
    return time - ahead > clock() * UNITS[unit] // UNITS["microseconds"]


def jumps(first: Any, last: Any, step: Any) -> bool:
    """Whether there are too many ticks after one value that are not after the other."""
    return abs(tick_after(first, step) - tick_after(last, step)) > MOST_TICKS


def after_gaps(
    queries: Iterable[Any], known: Sequence[Row], new: Sequence[Row], counts: Callable[..., bool]
) -> set[Row]:
    """Which new rows of one key come too many ticks of event time after the row before them.

    Where none comes before, too many ticks before the first one that was known. ``counts(i, row)`` says whether a row
    counts in the i-th query.
    """
    wrong: set[Row] = set()
    for i, query in enumerate(queries):
        every = getattr(query.window, "every", None)
        if every is None or not every.measure.is_event_time or not _ticks(query.window):
            continue
        old = sorted((row for row in known if counts(i, row)), key=lambda row: row.time)
        last = None
        for row in sorted((row for row in [*old, *new] if counts(i, row)), key=lambda row: row.time):
            other = last or (old[0] if old else None)
            if row not in old and other is not None and jumps(other.time, row.time, every.size):
                wrong.add(row)
            else:
                last = row
    return wrong


def _ticks(window: Any) -> bool:
    """Whether windows are reported at ticks of their own, whether rows have come or not."""
    return window.kind == "policy" or (window.kind == "sliding" and window.length.measure != window.every.measure)


def refused(wrong: Iterable[Row], what: str) -> DataError:
    """What to say of such rows."""
    times = sorted(row.time for row in wrong)
    return DataError(f"the record at time {times[0]} {what}; it is left out, and {len(times) - 1} more are")
