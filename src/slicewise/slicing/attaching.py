"""Attaching: the columns of all queries added to the rows of a table, as of each row's time. In process.

What is given in and out is read and written here; the values are those of :mod:`slicewise.slicing.as_of`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.conditions.expression import derive, derived_types
from slicewise.errors import DataError, ExpressionError, QueryError, did_you_mean
from slicewise.kernels import order_by
from slicewise.plan.plan import ARRIVAL, Plan, check_runnable, plan_for
from slicewise.slicing.answers.lowering import joined_columns
from slicewise.slicing.as_of import AsOf, Points
from slicewise.slicing.intake.input import (
    Batch,
    bounds_type,
    column_in,
    conform,
    picked,
    read_batch,
    read_keys,
    to_times,
)
from slicewise.slicing.intake.user_code import show_rows, take_window_failures
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.time.tuples import Tuples
from slicewise.workload import Query, Workload

__all__ = ["attach", "check_attachable", "event_rows", "points_of", "raise_failures", "with_attached_names"]


def attach(workload: Workload, points: Any, events: Any, time: str | None) -> Any:
    """The rows of ``points``, in their type, with the columns of all queries; see :meth:`Workload.attach`."""
    check_attachable(workload)
    table = _Table(points)
    workload = with_attached_names(workload, table.names)
    asking = points_of(workload, time)
    given = table.columns([asking.time, *asking.keys])
    has_time, point_type = _time_known(given[asking.time], asking)
    timed = np.flatnonzero(has_time)
    batch, time_type = _events(workload, table if events is None else _Table(events), timeless=events is None)
    some = {name: picked(data, timed) for name, data in given.items()}
    times, _, _ = to_times(some[asking.time], asking)
    _check_times(asking, point_type, workload, time_type)
    types = _types(batch, workload)
    time_type = time_type or point_type or pa.timestamp("us")
    plan = plan_for(workload, types, time_type=time_type, ties=ARRIVAL, over_rows=True)
    keys = KeyTable([types[name] for name in workload.keys], workload.keys)
    rows = event_rows(plan, batch, keys.encode(batch.keys, len(batch)))
    number = keys.encode([_key(some[name], name, types[name]) for name in workload.keys], len(times))
    order = order_by(number, times)
    sorted_points = Points(number, times) if order is None else Points(number[order], times[order])
    answers = AsOf(plan, keys)
    place = np.full(len(table), len(timed))
    place[timed if order is None else timed[order]] = np.arange(len(timed))
    values = answers.columns(rows, sorted_points)
    if len(timed) < len(table):
        nothing = answers.nothing(1)
        values = [joined_columns(both) for both in zip(values, nothing, strict=True)]
    raise_failures(plan)
    return table.with_columns(dict(zip(plan.schema.column_types, [v.take(place) for v in values], strict=True)))


def _events(workload: Workload, table: _Table, *, timeless: bool) -> tuple[Batch, pa.DataType | None]:
    """The events, checked, and the type of their times. Rows that are points too may be ``timeless``, and no events."""
    columns = table.columns([workload.time, *workload.keys, *workload.inputs])
    has_time, time_type = _time_known(columns[workload.time], workload)
    if timeless and not has_time.all():
        kept = np.flatnonzero(has_time)
        columns = {name: picked(data, kept) for name, data in columns.items()}
    return read_batch(columns, workload, {}), time_type


def check_attachable(workload: Workload) -> None:
    """Refuse windows that there are none of as of any instant."""
    if not workload.queries:
        raise QueryError("the workload has no queries; add one: .query('hour', sw.trailing('1 hour'), n=sw.count())")
    if workload.on_clock is not None:
        raise QueryError("`attach` needs a time column; got a workload on processing time", parameter="time")
    if workload.watermark_from is not None:
        raise QueryError(
            "`attach` takes tables, which have no watermarks; leave `watermark_from` out", parameter="time"
        )
    check_runnable(workload)
    for query in workload.queries:
        if not query.window.looks_back:
            raise QueryError(
                f"query {query.name!r}: `attach` takes windows that end at a point or at the last tick before it, "
                f"sw.trailing, sw.tumbling and sw.sliding on event time; got {query.window!r}",
                parameter="window",
                query=query.name,
            )


def with_attached_names(workload: Workload, names: Sequence[Any]) -> Workload:
    """The workload with its result columns named as they are added to points of these columns; each is new."""
    owner: dict[str, str] = {}
    queries = []
    for query in workload.queries:
        named = {f"{query.name}_{column}": aggregate for column, aggregate in query.aggregates.items()}
        for name in named:
            if name in names:
                raise DataError(
                    f"`attach` adds a column {name!r} for query {query.name!r}, and the points have one of that name; "
                    "rename it, or the query"
                )
            if name in owner:
                raise DataError(
                    f"`attach` would add a column {name!r} for query {owner[name]!r} and for query {query.name!r}; "
                    "rename one of the queries"
                )
            owner[name] = query.name
        queries.append(Query.of(query.name, query.window, named))
    return workload.with_queries(queries)


def points_of(workload: Workload, time: str | None) -> Workload:
    """What is read of points: their keys, and their time under the name that it has there."""
    name = workload.time if time is None else time
    unfiltered: Any = {"where": None, "punctuation": None, "watermark_from": None}
    return dataclasses.replace(workload, time=name, order=(), watermark=0, lateness=0, **unfiltered)


def event_rows(plan: Plan, batch: Batch, key: np.ndarray) -> Tuples:
    """Checked rows in the order of their keys, which are numbers, and times, with all that aggregates read.

    What the user described may fail on one of them, which is then named in an error.
    """
    workload = plan.workload
    if batch.selected is not None:
        meant = np.flatnonzero(batch.selected)
        batch, key = batch.pick(meant), key[meant]
    columns = {name: conform(column, plan_type, name) for name, column, plan_type in _typed(batch, plan)}
    derived, failures = derive(workload.columns, columns, len(batch))
    failures = {**failures, **batch.failures}
    if failures:
        row = min(failures)
        raise ExpressionError(*failures[row], [row], batch.label(row, workload), left_out=False)
    known = {name: derived[name] if name in derived else columns[name] for name in workload.columns}
    shown = show_rows(plan, known, batch.times)
    if shown.failures:
        raise shown.error(lambda row: batch.label(row, workload), left_out=False)
    rows = Tuples.new(key, batch.times, shown.columns)
    return Tuples.empty({}).joined([rows], plan.order) if len(rows) else rows


def raise_failures(plan: Plan) -> None:
    """Raise what is wrong with the values of the first window that has none."""
    for failure in take_window_failures(plan):
        raise type(failure)(failure.reason, failure.label, failure.others, stopped=True)


def _typed(batch: Batch, plan: Plan) -> list[tuple[str, Column, pa.DataType]]:
    return [(name, column, plan.column_types.get(name, column.type)) for name, column in batch.columns.items()]


def _types(batch: Batch, workload: Workload) -> dict[str, pa.DataType]:
    types = batch.types(workload)
    for name, type_ in types.items():
        if pa.types.is_null(type_) and name not in workload.keys:
            raise DataError(
                f"column {name!r} holds only nulls, so its type is not known; give the events as an Arrow table that "
                "says it"
            )
    return {**types, **derived_types(workload.columns, types)}


def _key(data: Any, name: str, type_: pa.DataType) -> pa.Array:
    key = read_keys(data, name)
    plain, other = (t.value_type if pa.types.is_dictionary(t) else t for t in (key.type, type_))
    if plain != other and not (pa.types.is_null(plain) or pa.types.is_null(other)):
        try:
            conform(Column.of(pa.array([], plain)), other, name)
        except DataError:
            raise DataError(
                f"key {name!r} is {plain} in the points and {other} in the events; cast one of them"
            ) from None
    return key


def _check_times(
    asking: Workload, of_points: pa.DataType | None, workload: Workload, of_events: pa.DataType | None
) -> None:
    if of_points is not None and of_events is not None and of_points != of_events:
        zones = not (pa.types.is_integer(of_points) or pa.types.is_integer(of_events))
        kinds = "with and without a time zone" if zones else "integers and timestamps"
        raise DataError(
            f"the time column {asking.time!r} of the points holds {of_points}, and {workload.time!r} of the events "
            f"{of_events}; {kinds} cannot be compared: convert one of them"
        )


def _time_known(data: Any, workload: Workload) -> tuple[np.ndarray, pa.DataType | None]:
    """Which rows have a time, and the type of window bounds; None where nothing shows it."""
    try:
        column = Column.of(data)
    except (pa.ArrowException, DataError, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {workload.time!r} cannot be read as one type: {error}") from error
    if pa.types.is_null(column.type):
        return np.zeros(len(column), bool), None
    return column.mask, bounds_type(column.type, workload)


class _Table:
    """The rows that the user gave, and what they become with more columns: Arrow, pandas, or a mapping of columns."""

    def __init__(self, data: Any) -> None:
        self.data = data
        self.is_pandas = hasattr(data, "columns") and hasattr(data, "iloc")
        if not (self.is_pandas or isinstance(data, (pa.Table, pa.RecordBatch, Mapping))):
            raise DataError(
                "`attach` takes Spark DataFrames, Arrow tables, pandas DataFrames or mappings of columns; got "
                f"{type(data).__name__}"
            )

    @property
    def names(self) -> list[Any]:
        if self.is_pandas:
            return list(self.data.columns)
        return list(self.data) if isinstance(self.data, Mapping) else list(self.data.schema.names)

    def __len__(self) -> int:
        if self.is_pandas or not isinstance(self.data, Mapping):
            return len(self.data)
        return len(next(iter(self.data.values()), ()))

    def columns(self, wanted: Sequence[str]) -> dict[str, Any]:
        """Some of the columns, each of which must be there once; the others may be called whatever they are."""
        names, out = self.names, {}
        for name in dict.fromkeys(wanted):
            first = next((n for n in _prefixes(name) if n in names), None)
            if first is None:
                raise DataError(f"there is no column {name!r} in the rows; {did_you_mean(name, map(str, names))}")
            if names.count(first) > 1:
                raise DataError(f"the rows have the column {first!r} twice; rename one of them")
            column = column_in({first: self._column(names.index(first))}, name)
            if column is None:
                raise DataError(f"there is no column {name!r} in the rows; {did_you_mean(name, map(str, names))}")
            out[name] = column
        return out

    def _column(self, at: int) -> Any:
        if isinstance(self.data, Mapping):
            return list(self.data.values())[at]
        if not self.is_pandas:
            return self.data.column(at)
        series = self.data.iloc[:, at]
        plain = isinstance(series.dtype, np.dtype) and series.dtype.kind in "if"
        return series.to_numpy() if plain else series

    def with_columns(self, added: Mapping[str, Column]) -> Any:
        """The rows as they are, with more columns behind theirs."""
        arrays = {name: column.to_arrow() for name, column in added.items()}
        if isinstance(self.data, Mapping):
            return {**self.data, **{name: array.to_pylist() for name, array in arrays.items()}}
        if self.is_pandas:
            frame = self.data.copy(deep=False)
            for name, array in arrays.items():
                frame[name] = array.to_pandas().to_numpy() if len(array) else array.to_pandas().array
            return frame
        data = self.data
        for name, array in arrays.items():
            data = data.append_column(pa.field(name, array.type), array)
        return data


def _prefixes(name: str) -> list[str]:
    """The columns in which a column of this name may stand: itself, or a struct that has it as a field."""
    return [name, *(name[:at] for at in range(len(name) - 1, 0, -1) if name[at] == ".")]
