"""As of: what ``attach`` adds to points, by definition. For each point, all events are looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slicewise.errors import QueryError
from slicewise.testing.definitions import order_of
from slicewise.testing.expressions import computed_row, is_meant
from slicewise.testing.oracle_rows import FailedWindowError, Key, Row, as_key, column_of, results_of, second_of
from slicewise.testing.ties import TIES, picks_by_value, tie_columns
from slicewise.testing.time_windows import calendar_windows, windows_of

__all__ = ["attached"]

Given = tuple[int | None, Mapping[str, Any], Any]


def attached(
    workload: Any,
    points: Iterable[tuple[int | None, Any]],
    events: Iterable[Given],
    *,
    ties: str = "arrival",
    types: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """What :meth:`slicewise.Workload.attach` adds to points, by brute force.

    Parameters
    ----------
    workload
        A :class:`slicewise.Workload` whose windows look back: trailing ones, and those that end at ticks.
    points
        ``(time, key)`` of each; the time is an integer, or None.
    events
        ``(time, row, key)`` of each; those whose time is None are none.
    ties
        The order of events of equal time and equal ``order`` columns: ``"arrival"`` or ``"values"``, as on Spark.
    types
        Arrow types of columns that expressions read, where the values of a row do not show them.

    Returns
    -------
    list of dict
        For each point the values by ``{query}_{column}``.

    Notes
    -----
    Runtime complexity: O(points x events). For tests, not for production.

    Examples
    --------
    >>> from slicewise.aggregates.arithmetic import Sum
    >>> from slicewise.windows import trailing
    >>> from slicewise.workload import Workload
    >>> workload = Workload(time="t").query("recent", trailing(10), total=Sum("v"))
    >>> attached(workload, [(15, ()), (None, ())], [(5, {"v": 1}, ()), (6, {"v": 2}, ()), (16, {"v": 4}, ())])
    [{'recent_total': 2}, {'recent_total': None}]
    """
    if ties not in TIES:
        raise QueryError(f"`ties` must be {' or '.join(map(repr, TIES))}; got {ties!r}")
    rows = _in_order(workload, events, ties, types)
    return [_values(workload, time, as_key(key), rows, ties) for time, key in points]


def _in_order(workload: Any, events: Iterable[Given], ties: str, types: Mapping[str, Any] | None) -> list[Row]:
    order = tie_columns(workload) if ties == "values" else workload.order
    rows = []
    for arrival, (time, given, key) in enumerate(events):
        if time is None or not is_meant(workload.where, given, types):
            continue
        values = computed_row(workload.columns, given, types)
        tied = tuple(order_of(column_of(values, name, "puts rows of equal time in order")) for name in order)
        rows.append(Row(time, values, as_key(key), (time, tied, arrival)))
    return sorted(rows, key=lambda row: row.place)


def _values(workload: Any, time: int | None, key: Key, rows: Sequence[Row], ties: str) -> dict[str, Any]:
    out: dict[str, Any] = {}
    of_key = [row for row in rows if row.key == key]
    for query in workload.queries:
        computed = query.aggregates.values()
        by_value = [a for a in computed if ties == "values" and picks_by_value(a, workload)]
        held, end = ([], None) if time is None else _held(query.window, time, of_key)
        failures: list[FailedWindowError] = []
        values = results_of(query, held, by_value, f"key {key}, as of {time}", failures, end, second_of(workload))
        if failures:
            raise failures[0]
        out |= {f"{query.name}_{name}": value for name, value in values.items()}
    return out


def _held(window: Any, time: int, rows: Sequence[Row]) -> tuple[list[Row], int | None]:
    """The rows that a window holds as of an instant, and its end where that is known without rows."""
    if window.kind != "trailing":
        tick = _last_tick(window, time)
        bounds = [] if tick is None else [w for w in windows_of(window, tick - 1) if w[1] == tick]
        return [row for row in rows if bounds and bounds[0][0] <= row.time < bounds[0][1]], tick
    at_end, at_start = window.closed in ("right", "both"), window.closed in ("left", "both")
    before = [row for row in rows if row.time < time or (at_end and row.time == time)]
    size = window.length.size
    if window.length.measure.kind == "rows":
        most = size - 1 + at_end + at_start
        return before[len(before) - min(most, len(before)) :], None
    start = time - size
    return [row for row in before if row.time > start or (at_start and row.time == start)], time


def _last_tick(window: Any, time: int) -> int | None:
    """The last instant at or before another at which a window on a grid ends; None before the first."""
    if hasattr(window, "zone"):
        return max(end for _, end in calendar_windows(window, time) if end <= time)
    if window.kind == "between":
        return window.end if time >= window.end else None
    if window.kind == "landmark":
        ticks = (time - window.since) // window.every.size
        return window.since + ticks * window.every.size if ticks > 0 else None
    first = window.offset + (window.length.size if window.kind in ("tumbling", "sliding") else 0)
    tick: int = time - (time - first) % window.every.size
    return tick
