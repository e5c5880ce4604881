"""Windows on event time by definition: which hold an instant, and which sessions some rows make. Used by the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from slicewise.testing.oracle_rows import Row

__all__ = ["KINDS", "Window", "is_endless", "sessions_of", "windows_of"]

#: The kinds that are defined here.
KINDS = ("tumbling", "sliding", "session", "cumulative", "landmark", "between", "edges")

Window = tuple[int, int]


def windows_of(window: Any, time: int, key: Mapping[str, Any] | None = None) -> list[Window]:
    """The context-free windows that hold an instant of a key; of the endless ticks of a landmark, the first only."""
    if window.kind in ("tumbling", "sliding"):
        return list(_sliding(window, time))
    if window.kind == "cumulative":
        period = (time - window.offset) // window.length.size
        start = window.offset + period * window.length.size
        ends = range(start + window.every.size, start + window.length.size + 1, window.every.size)
        return [(start, end) for end in ends if time < end]
    if window.kind == "landmark":
        ticks = (time - window.since) // window.every.size + 1
        return [(window.since, window.since + ticks * window.every.size)] if time >= window.since else []
    if window.kind == "edges":
        return [(start, end) for start, end in _listed(window, time, key or {}) if start <= time < end]
    return [(window.start, window.end)] if window.start <= time < window.end else []


def _listed(window: Any, time: int, key: Mapping[str, Any]) -> list[Window]:
    """The windows of a table that a key has, or those that a schedule gives around an instant."""
    if hasattr(window, "schedule"):
        return [(start, end) for start, end in window.schedule.code.windows(time, time + 1)]
    return [(start, end) for start, end, of in window.table.rows() if all(key[name] == of[name] for name in of)]


def _sliding(window: Any, time: int) -> Iterator[Window]:
    start = (time - window.offset) // window.every.size * window.every.size + window.offset
    while time < start + window.length.size:
        yield start, start + window.length.size
        start -= window.every.size


def is_endless(window: Any) -> bool:
    """Whether windows that hold an instant are reported at every tick for ever."""
    return bool(window.kind == "landmark")


def sessions_of(rows: list[Row], gap: int) -> list[tuple[Window, list[Row]]]:
    """Runs of rows in which each follows the one before by at most ``gap``."""
    runs: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: row.place):
        if runs and row.time - runs[-1][-1].time <= gap:
            runs[-1].append(row)
        else:
            runs.append([row])
    return [((run[0].time, run[-1].time + gap), run) for run in runs]
