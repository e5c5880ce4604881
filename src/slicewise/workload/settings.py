"""Settings: how a workload reads and checks what it is given: columns, delays, units, classes. Below the workload."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, TIME, UNITS, Amount, Measure, to_offset
from slicewise.conditions.expression import Expression
from slicewise.errors import QueryError
from slicewise.results import RESERVED
from slicewise.windows import Window
from slicewise.windows.parameters import Length, in_time_unit
from slicewise.workload.query import Query

__all__ = [
    "Origin",
    "check_column",
    "check_empty",
    "check_keys",
    "check_labels",
    "check_one_notion_of_time",
    "check_result",
    "check_unit",
    "check_watermark_from",
    "read_classes",
    "read_columns",
    "read_delay",
    "replaced",
]


_Workload = TypeVar("_Workload")


def check_column(name: Any, parameter: str) -> None:
    """Refuse what does not name a column."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"`{parameter}` must name a column; got {name!r}", parameter=parameter)
    if isinstance(name, Expression) and parameter != "order":
        raise QueryError(
            f"`{parameter}` must name a column of the rows, which results show; got {name!r}; add it to the rows first",
            parameter=parameter,
        )


def check_keys(keys: Sequence[str], time: str, queries: Sequence[Query] = ()) -> None:
    """Refuse keys that results could not show, or that windows do not go with."""
    for query in queries:
        try:
            query.window.check_keys(keys)
        except QueryError as error:
            message = f"query {query.name!r}: {error}"
            raise QueryError(message, parameter="window", query=query.name, column=error.column) from None
    if time in keys:
        raise QueryError(f"`keys` must not hold the time column; got {time!r} as both", parameter="keys", column=time)
    for key in keys:
        if key in RESERVED:
            raise QueryError(
                f"`keys` must not use a reserved result column; got {key!r}; rename the column",
                parameter="keys",
                column=key,
            )


def check_result(query: str, column: str, aggregate: Any, keys: Sequence[str]) -> None:
    """Refuse a result column that a query cannot have."""
    message = None
    if not isinstance(aggregate, Aggregate):
        message = f"{column!r} must be an aggregate such as sw.sum('v'); got {aggregate!r}"
    elif column in RESERVED or column in keys:
        kind = "a reserved result column" if column in RESERVED else "a key column"
        message = f"{column!r} is {kind}; give the aggregate another name"
    elif not isinstance(aggregate.base, Count) and not aggregate.base.columns:
        message = f"{aggregate!r} needs a column, as in {aggregate.base.name}('v')"
    if message is not None:
        raise QueryError(f"query {query!r}: {message}", query=query, column=column)


def check_empty(query: str, window: Window, empty: Any) -> None:
    """Refuse what does not say whether empty windows are reported, and windows that are not there without rows."""
    if not isinstance(empty, bool):
        raise QueryError(
            f"query {query!r}: `empty` must be True or False; got {empty!r}", parameter="empty", query=query
        )
    if empty and not window.on_grid:
        raise QueryError(
            f"query {query!r}: `empty` reports windows without rows, which only sw.tumbling, sw.sliding and "
            f"sw.cumulative on event time have; got {window!r}; leave `empty` out",
            parameter="empty",
            query=query,
        )


def check_labels(query: str, present: Iterable[Aggregate], added: Mapping[str, Aggregate]) -> None:
    """State is kept under the labels of aggregates, so no two different ones may share a label."""
    labelled = {repr(a): a for a in present}
    for column, aggregate in added.items():
        if labelled.setdefault(repr(aggregate), aggregate) != aggregate:
            raise QueryError(
                f"query {query!r}: two different aggregates are called {aggregate!r}; give one of them another name: "
                "sw.aggregate(..., name='...')",
                query=query,
                column=column,
            )


def read_columns(names: Any, parameter: str) -> tuple[str, ...]:
    """The names of columns, each once."""
    if isinstance(names, str):
        raise QueryError(
            f"`{parameter}` must be a list of column names; got the string {names!r}; write [{names!r}]",
            parameter=parameter,
        )
    try:
        listed = tuple(names)
    except TypeError:
        raise QueryError(f"`{parameter}` must be a list of column names; got {names!r}", parameter=parameter) from None
    for name in listed:
        check_column(name, parameter)
    if len(set(listed)) < len(listed):
        twice = next(n for n in listed if listed.count(n) > 1)
        raise QueryError(f"`{parameter}` names {twice!r} twice", parameter=parameter, column=twice)
    return listed


def read_classes(trust: Any) -> tuple[type, ...]:
    """The classes that are trusted."""
    listed = tuple(trust) if isinstance(trust, Iterable) and not isinstance(trust, str) else (trust,)
    for item in listed:
        if not isinstance(item, type):
            raise QueryError(
                f"`trust` must be a list of classes, such as [collections.Counter]; got {item!r}", parameter="trust"
            )
    return listed


def check_unit(unit: Any) -> None:
    """Refuse a unit that no time column counts in."""
    if unit is not None and (not isinstance(unit, str) or unit not in UNITS):
        raise QueryError(
            f"`unit` must be one of {', '.join(map(repr, UNITS))}; got {unit!r}; "
            "leave it out where time is a timestamp",
            parameter="unit",
        )


def check_watermark_from(name: Any, others: Sequence[str], delay: int) -> None:
    """Refuse a column that cannot hold watermarks, and a second origin of them."""
    if name is None:
        return
    check_column(name, "watermark_from")
    if name in others:
        raise QueryError(
            f"`watermark_from` must name a column of its own, which is null on rows of data; got {name!r}, which is "
            "the time column or a key",
            parameter="watermark_from",
            column=name,
        )
    if delay:
        raise QueryError(
            f"`watermark` and `watermark_from` both say where watermarks come from; got both, the latter as {name!r}; "
            "leave one of them out",
            parameter="watermark",
        )


def read_delay(value: Length, unit: str | None, name: str) -> Amount:
    """How long to wait or to correct, in the unit of the time column."""
    amount = to_offset(value, name=name)
    if not amount.measure.is_event_time:
        raise QueryError(f"`{name}` must be a duration or an integer of event time; got {amount}", parameter=name)
    if amount.size < 0:
        raise QueryError(f"`{name}` must not be negative; got {str(amount)!r}", parameter=name)
    return in_time_unit(amount, unit, name)


def replaced(workload: _Workload, watermark: int, lateness: int, **changes: Any) -> _Workload:
    """The same workload with other delays and other parameters.

    Delays go in as amounts: plain integers would be taken for integer time.
    """
    delays = {"watermark": watermark, "lateness": lateness}
    described: Any = workload
    amounts = {name: Amount(size, described.time_measure) for name, size in delays.items()}
    other: _Workload = dataclasses.replace(described, **{**amounts, **changes})
    return other


class Origin(NamedTuple):
    """Where a length of event time was given."""

    parameter: str | None = None
    query: str | None = None

    def __str__(self) -> str:
        if self.parameter is not None:
            return f"`{self.parameter}`"
        return "the workload" if self.query is None else f"query {self.query!r}"


def check_one_notion_of_time(measures: Mapping[Origin, Measure | None]) -> None:
    """Refuse durations beside plain integers; the error is about whichever was given later."""
    timed = [origin for origin, measure in measures.items() if measure == TIME]
    counted = [origin for origin, measure in measures.items() if measure == INTEGER]
    if timed and counted:
        second = max(timed[0], counted[0], key=list(measures).index)
        raise QueryError(
            f"one workload has one notion of time; got durations in {timed[0]} and plain integers in {counted[0]}; "
            "use durations for a timestamp column, integers for an integer one",
            parameter=second.parameter,
            query=second.query,
        )
