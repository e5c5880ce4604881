"""The same workload three times: in plain integers, in durations over an integer column with a unit, in timestamps.

Random workloads are in *ticks*, small integers. A tick is one of the column's unit, or a thousand nanoseconds, because
lengths are whole microseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import slicewise as sw
from slicewise.aggregates.categories import By
from slicewise.aggregates.filtered import Filtered
from slicewise.amounts import INTEGER, TIME, Amount, to_amount
from slicewise.windows import Landmark, Window

#: For each unit: how many of it a tick has, what a tick is in words, and how many microseconds that are.
TICKS = {
    "seconds": (1, "seconds", 1_000_000),
    "milliseconds": (1, "ms", 1_000),
    "microseconds": (1, "microseconds", 1),
    "nanoseconds": (1_000, "us", 1),
}

Length = Callable[[int, str], Amount]


def in_integers(workload: sw.Workload, unit: str) -> sw.Workload:
    """A workload of ticks, in plain integers of the column."""
    size, _, _ = TICKS[unit]
    return _changed(workload, None, lambda n, name: Amount(n * size, INTEGER), lambda n: (n * size, INTEGER))


def in_durations(workload: sw.Workload, unit: str) -> sw.Workload:
    """A workload of ticks, its lengths in words and its instants in integers of a column that has this unit."""
    size, word, _ = TICKS[unit]
    return _changed(workload, unit, lambda n, name: to_amount(f"{n} {word}", name=name), lambda n: (n * size, INTEGER))


def in_timestamps(workload: sw.Workload, unit: str) -> sw.Workload:
    """A workload of ticks, its lengths in words and its instants in microseconds, over a column of timestamps."""
    _, word, us = TICKS[unit]
    return _changed(workload, None, lambda n, name: to_amount(f"{n} {word}", name=name), lambda n: (n * us, TIME))


def _changed(
    workload: sw.Workload, unit: str | None, length: Length, instant: Callable[[int], tuple[int, Any]]
) -> sw.Workload:
    waits: dict[str, Any] = {
        n: length(getattr(workload, n), n) for n in ("watermark", "lateness") if getattr(workload, n)
    }
    found = sw.Workload(workload.time, keys=workload.keys, order=workload.order, unit=unit, **waits)
    for query in workload.queries:
        computed = {name: _aggregate(a, length) for name, a in query.aggregates.items()}
        found = found.query(query.name, _window(query.window, length, instant), **computed)
    return found


def _aggregate(aggregate: Any, length: Length) -> Any:
    if isinstance(aggregate, Filtered):
        return _aggregate(aggregate.inner, length).where(aggregate.condition.text)
    if isinstance(aggregate, By):
        return _aggregate(aggregate.inner, length).by(aggregate.category, most=aggregate.most)
    if isinstance(aggregate, sw.ewma):
        (column,) = aggregate.columns
        return sw.ewma(column, half_life=length(int(aggregate.half_life.size), "half_life"))
    # Rates are per second, and plain integers know no seconds.
    return sw.increase(*aggregate.columns) if isinstance(aggregate, sw.rate) else aggregate


def _window(window: Window, length: Length, instant: Callable[[int], tuple[int, Any]]) -> Window:
    changes: dict[str, Any] = {}
    for name, value in ((f.name, getattr(window, f.name)) for f in dataclasses.fields(window)):
        if isinstance(value, Amount) and value.measure == INTEGER:
            changes[name] = length(int(value.size), name)
        elif name == "offset" and value and window.lengths["every"].measure == INTEGER:
            changes[name] = length(value, name).size
        elif name in ("since", "start", "end") and window.measure == INTEGER:
            changes[name], changes["on"] = instant(value)
    if isinstance(window, Landmark) and "on" in changes and changes["on"] == changes["every"].measure:
        changes["on"] = None
    return dataclasses.replace(window, **changes)
