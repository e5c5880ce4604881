"""Refusals: rows that the oracle takes in nowhere: too far ahead of the clock, or after too many ticks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from slicewise.amounts import UNITS
from slicewise.errors import DataError
from slicewise.testing.oracle_rows import Row
from slicewise.testing.ticks import tick_after
from slicewise.testing.time_windows import Window, windows_between

__all__ = ["MOST_TICKS", "after_empty", "after_gaps", "is_ahead", "jumps", "refused"]

#: A row that would make more ticks of its key due than this is refused.
MOST_TICKS = 1_000_000


def is_ahead(time: int, ahead: int, clock: Callable[[], int], unit: str) -> bool:
    """Whether an event time is further ahead of the clock, which counts microseconds, than ``ahead`` of its units."""
    return time - ahead > clock() * UNITS[unit] // UNITS["microseconds"]


def jumps(rows: Sequence[Row], old: Collection[Row], value: Callable[[Row], Any], step: Any) -> list[Row]:
    """Which new rows of a key, all in order, lie too many ticks of a measure away from the row that they follow."""
    return _jumps(rows, old, lambda before, row: tick_after(value(row), step) - tick_after(value(before), step))


def _jumps(rows: Sequence[Row], old: Collection[Row], between: Callable[[Row, Row], int]) -> list[Row]:
    """Which new rows lie too far from the row that they follow, by what is between two rows in order.

    Rows in front of all old ones are looked at from there backwards; without old ones the first row is one.
    """
    start = next((i for i, row in enumerate(rows) if row in old), 0)
    wrong = []
    for way, forward in ((rows[start:], True), (rows[start::-1], False)):
        last = None
        for row in way:
            far = last is not None and (between(last, row) if forward else between(row, last)) > MOST_TICKS
            if far and row not in old:
                wrong.append(row)
            else:
                last = row
    return wrong


def after_gaps(
    queries: Iterable[Any], known: Sequence[Row], new: Sequence[Row], counts: Callable[..., bool]
) -> set[Row]:
    """Which new rows of one key lie too many ticks of event time away from their neighbours.

    ``counts(i, row)`` says whether a row counts in the i-th query.
    """
    wrong: set[Row] = set()
    for i, query in enumerate(queries):
        every = query.window.lengths.get("every")
        if every is not None and every.measure.is_event_time and _ticks(query.window):
            counted = sorted((row for row in [*known, *new] if counts(i, row)), key=lambda row: row.time)
            wrong |= set(jumps(counted, set(known), _from(query.window.offset), every.size))
    return wrong


def after_empty(query: Any, known: Sequence[Row], new: Sequence[Row], held: Callable[[Row], list[Window]]) -> set[Row]:
    """Which new rows of one key lie too many empty windows of a query away from their neighbours.

    ``held(row)`` are the windows that a row counts in.
    """
    windows = {row: sorted(held(row), key=lambda w: w[::-1]) for row in [*known, *new]}
    counted = sorted((row for row in windows if windows[row]), key=lambda row: row.time)
    kept = set(known)
    return set(_jumps(counted, kept, lambda a, b: _empty_between(query.window, windows[a][-1], windows[b][0])))


def _empty_between(window: Any, first: Window, last: Window) -> int:
    if hasattr(window, "zone"):
        return len(windows_between(window, [first, last])) if first[1] <= last[1] else 0
    return (last[1] - first[1]) // int(window.every.size) - 1


def _from(offset: int) -> Callable[[Row], int]:
    return lambda row: row.time - offset


def _ticks(window: Any) -> bool:
    """Whether windows are reported at ticks of their own, whether rows have come or not."""
    return bool(
        window.kind in ("policy", "adaptive")
        or (window.kind == "sliding" and window.length.measure != window.every.measure)
    )


def refused(wrong: Iterable[Row], what: str) -> DataError:
    """What to say of such rows."""
    times = sorted(row.time for row in wrong)
    return DataError(f"the record at time {times[0]} {what}; it is left out, and {len(times) - 1} more are")
