"""Attaching on Spark: points and events come together by key, sorted by time, and Python answers them piece by piece.

Where the points are the events, every row is both and is sent once; else the two are united. A partition is read as it
comes: what is kept of it is a piece, and of the key that is not finished the events that later points may still see.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slicewise.errors import DataError
from slicewise.plan.plan import SORTED, Plan, plan_for, tie_columns
from slicewise.slicing import (
    AsOf,
    Batch,
    Points,
    Tuples,
    check_attachable,
    event_rows,
    joined_columns,
    points_of,
    raise_failures,
    with_attached_names,
)
from slicewise.spark.arrow_io import BATCH_ROWS, tables_of
from slicewise.spark.computed_columns import is_data, is_meant, with_computed, with_data, with_meant
from slicewise.spark.key_numbers import KeyNumbers, number_keys
from slicewise.spark.known_frame import named
from slicewise.spark.output import check_known_types
from slicewise.spark.row_order import in_order
from slicewise.spark.session import check_workers, setting
from slicewise.spark.source import TIME, Source, column, key_name, value_name
from slicewise.spark.types import reaches_python, read, spark_type
from slicewise.workload import Workload, without_punctuation, without_where

__all__ = ["PointRunner", "attach"]

#: How many rows are taken at once, or more: as many again as are kept of the key that is not finished.
CHUNK = 200_000
#: What a row is: an event or not, a point or not.
IS_EVENT, IS_POINT = "is_event", "is_point"
_LOWEST = np.iinfo(np.int64).min


def attach(workload: Workload, points: Any, events: Any, time: str | None) -> DataFrame:
    """The rows of a DataFrame with the columns of all queries; see :meth:`slicewise.Workload.attach`."""
    _check_frames(points, events)
    check_attachable(workload)
    workload = with_attached_names(workload, points.columns)
    _check_distinct(workload, points)
    check_workers(points.sparkSession, streams=False)
    asking = Source.of(points_of(workload, time).with_queries(()), points)
    source = Source.of(workload, points if events is None else events)
    _check_together(asking, source)
    columns = [_point_name(i) for i in range(len(points.columns))]
    asking = _renamed(asking, columns)
    together = events is None and asking.workload.time == workload.time
    if together:
        source = dataclasses.replace(_renamed(source, columns), ties=tie_columns(workload))
        rows, aliases = _both(source, columns)
    else:
        source = dataclasses.replace(with_data(with_meant(source)), ties=tie_columns(workload))
        rows, aliases = _united(source, asking, columns), {}
    rows = rows.repartition(*source.key_names) if source.key_names else rows.repartition(1)
    rows = rows.sortWithinPartitions(*source.key_names, *in_order(source))
    described = without_punctuation(without_where(source.workload))
    internal = {name: value_name(i) for i, name in enumerate(source.inputs)}
    inputs = {name: aliases.get(internal[name], internal[name]) for name in described.inputs}
    keys = [aliases.get(name, name) for name in source.key_names]
    names = list(dict.fromkeys([TIME, IS_EVENT, *([] if together else [IS_POINT]), *keys, *inputs.values(), *columns]))
    types = dict(source.types)
    make_plan = partial(plan_for, described, types, time_type=source.time_type, ties=SORTED, over_rows=True)
    values = make_plan().schema
    check_known_types(values)
    fields = [T.StructField(c, f.dataType) for c, f in zip(columns, points.schema.fields, strict=True)]
    added = [T.StructField(_value_name(i), spark_type(t)) for i, t in enumerate(values.column_types.values())]
    runner = PointRunner(make_plan, {name: types[name] for name in inputs}, keys, inputs, columns)
    sent = named(rows.select(*names), names).mapInArrow(runner.__call__, T.StructType([*fields, *added]))
    given = zip(columns, points.schema.fields, strict=True)
    return sent.select(
        *(F.col(c).alias(field.name, metadata=field.metadata) for c, field in given),
        *(F.col(_value_name(i)).alias(name) for i, name in enumerate(values.column_types)),
    )


def _point_name(i: int) -> str:
    return f"p{i}"


def _value_name(i: int) -> str:
    return f"a{i}"


# What is read


def _both(source: Source, columns: Sequence[str]) -> tuple[DataFrame, dict[str, str]]:
    """Rows that are points and events at once, and which internal columns are columns of the points as they are."""
    meant = F.coalesce(is_meant(source), F.lit(False)) & is_data(source) & source.event_time.isNotNull()
    rows = source.projected(meant.alias(IS_EVENT), *map(F.col, columns))
    rows = with_computed(source, rows, source.ties)
    named_so = {key_name(i): name for i, name in enumerate(source.workload.keys)}
    named_so |= {value_name(i): name for i, name in enumerate(source.inputs)}
    paths = {internal: source.paths[name] for internal, name in named_so.items()}
    return rows, {internal: path[0] for internal, path in paths.items() if len(path) == 1}


def _united(source: Source, asking: Source, columns: Sequence[str]) -> DataFrame:
    """Events and points below each other; each has nulls where the other has columns of its own."""
    events = source.projected(F.lit(True).alias(IS_EVENT)).where(F.col(TIME).isNotNull())
    events = with_computed(source, events, source.ties)
    points = asking.projected(F.lit(True).alias(IS_POINT), *map(F.col, columns))
    return events.unionByName(points, allowMissingColumns=True)


def _renamed(source: Source, columns: Sequence[str]) -> Source:
    """The same source, its columns under names of ours: those of the user may be there twice."""
    given = list(source.frame.columns)
    if len(set(given)) == len(given):
        frame = source.frame.select(*(column(name).alias(c) for name, c in zip(given, columns, strict=True)))
    else:
        frame = source.frame.toDF(*columns)
    place = {name: columns[given.index(name)] for name in given}
    paths = {name: (place[path[0]], *path[1:]) for name, path in source.paths.items()}
    return dataclasses.replace(source, frame=frame, paths=paths)


# What is refused


def _check_frames(points: Any, events: Any) -> None:
    for name, frame in (("points", points), ("events", events)):
        if frame is None and name == "events":
            continue
        if not hasattr(frame, "schema") or not hasattr(frame, "isStreaming"):
            raise DataError(
                f"`attach` takes points and events of one kind; got a Spark DataFrame beside {type(frame).__name__} as "
                f"`{name}`"
            )
        if frame.isStreaming:
            raise DataError(
                f"`attach` takes tables; got a streaming DataFrame as `{name}`; on a stream, a query over sw.trailing "
                "reports the same values as of each row: workload.run(df)"
            )
    for field in points.schema.fields:
        if not reaches_python(field.dataType):
            raise DataError(
                f"column {field.name!r} is of type {field.dataType.simpleString()}, which Arrow cannot bring to Python "
                "and back; drop the column, or cast it first"
            )


def _check_distinct(workload: Workload, points: DataFrame) -> None:
    if setting(points.sparkSession, "spark.sql.caseSensitive", "false") == "true":
        return
    seen = {name.lower(): name for name in points.columns}
    for query in workload.queries:
        for name in query.aggregates:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                raise DataError(
                    f"`attach` adds a column {name!r} for query {query.name!r} beside {other!r}, which are one name to "
                    "Spark; rename one of them, or set spark.sql.caseSensitive"
                )


def _check_together(asking: Source, source: Source) -> None:
    of_points, of_events = asking.time_type, source.time_type
    if of_points != of_events:
        zones = not (pa.types.is_integer(of_points) or pa.types.is_integer(of_events))
        kinds = "with and without a time zone" if zones else "integers and timestamps"
        raise DataError(
            f"the time column {asking.workload.time!r} of the points holds {of_points}, and {source.workload.time!r} "
            f"of the events {of_events}; {kinds} cannot be compared: convert one of them"
        )
    for name in source.workload.keys:
        of_points, of_events = asking.types[name], source.types[name]
        if of_points != of_events and not (pa.types.is_integer(of_points) and pa.types.is_integer(of_events)):
            raise DataError(
                f"key {name!r} is {of_points} in the points and {of_events} in the events; cast one of them"
            )


# In Python


@dataclass(frozen=True)
class PointRunner:
    """The function that Spark calls for each partition of rows, sorted by key and time.

    Attributes
    ----------
    make_plan
        Makes the plan, over rows.
    types
        Of what aggregates read.
    keys, inputs, columns
        Where the keys stand, what aggregates read by its name, and the columns of points, which are given back.
    """

    make_plan: partial[Plan]
    types: Mapping[str, pa.DataType]
    keys: Sequence[str]
    inputs: Mapping[str, str]
    columns: Sequence[str]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = _Partition(self)
        for table in tables_of(batches, CHUNK):
            yield from partition.take(table)
        yield from partition.finish()


class _Partition:
    """A partition while its rows are read.

    Attributes
    ----------
    waiting
        Rows that are not answered yet: more of their time may come.
    kept
        The earlier events of the key of the first of them that points to come may see.
    """

    def __init__(self, runner: PointRunner) -> None:
        self.runner, self.plan = runner, runner.make_plan()
        self.waiting: list[pa.Table] = []
        self.rows = 0
        self.kept: Tuples | None = None

    def take(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Take rows, and answer those that are complete once there are enough."""
        self.waiting.append(table)
        self.rows += table.num_rows
        if self.rows >= max(CHUNK, 0 if self.kept is None else 2 * len(self.kept)):
            yield from self._answered(whole=False)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """No more rows come."""
        if self.rows:
            yield from self._answered(whole=True)

    def _answered(self, *, whole: bool) -> Iterator[pa.RecordBatch]:
        """Answer all rows or, unless they are the ``whole`` rest, those before the last time of the last key."""
        table = pa.concat_tables(self.waiting).combine_chunks()
        keys = [table.column(name).combine_chunks() for name in self.runner.keys]
        number, firsts = number_keys(keys, table.num_rows)
        times = table.column(TIME)
        has_time = times.is_valid().to_numpy()
        time = times.fill_null(_LOWEST).to_numpy()
        end = len(time) if whole else _last_group(number, time)
        self.waiting, self.rows = ([table.slice(end)], table.num_rows - end) if end < len(time) else ([], 0)
        if not end:
            return
        names = KeyNumbers([key.take(pa.array(firsts)) for key in keys])
        rows = self._events(table, keys, number, time, end)
        answers = AsOf(self.plan, names)  # type: ignore[arg-type]
        yield from self._points(answers, rows, table.slice(0, end), number[:end], time[:end], has_time[:end])
        self.kept = None
        if end < len(time) and number[end - 1] == number[end]:
            needed = rows.take(slice(int(np.searchsorted(rows.key, number[end])), None))
            first = answers.first_needed(needed, int(number[end]), int(time[end])) if has_time[end] else 0
            kept = needed.take(slice(first, None))
            self.kept = dataclasses.replace(kept, key=np.zeros(len(kept), np.int64))

    def _events(
        self, table: pa.Table, keys: Sequence[pa.Array], number: np.ndarray, time: np.ndarray, end: int
    ) -> Tuples:
        """The events among the first rows, behind those that were kept, which are of the first key."""
        flags = table.column(IS_EVENT).fill_null(False).to_numpy(zero_copy_only=False)[:end]
        index = np.flatnonzero(flags)
        every = len(index) == end
        some = table.slice(0, end) if every else table.take(pa.array(index))
        columns = {name: read(some.column(at), self.runner.types[name]) for name, at in self.runner.inputs.items()}
        here = [key.slice(0, end) if every else key.take(pa.array(index)) for key in keys]
        batch = Batch(time[index], self.plan.schema.time_type, here, columns, {})
        rows = event_rows(self.plan, batch, number[index])
        return rows if self.kept is None or not len(self.kept) else Tuples.concat([self.kept, rows])

    def _points(
        self,
        answers: AsOf,
        rows: Tuples,
        table: pa.Table,
        number: np.ndarray,
        time: np.ndarray,
        has_time: np.ndarray,
    ) -> Iterator[pa.RecordBatch]:
        if IS_POINT in table.column_names:
            index = np.flatnonzero(table.column(IS_POINT).fill_null(False).to_numpy(zero_copy_only=False))
            table, number, time, has_time = table.take(pa.array(index)), number[index], time[index], has_time[index]
        if not table.num_rows:
            return
        timed = np.flatnonzero(has_time)
        values = answers.columns(rows, Points(number[timed], time[timed]))
        if len(timed) < len(time):
            place = np.full(len(time), len(timed))
            place[timed] = np.arange(len(timed))
            nothing = answers.nothing(1)
            values = [joined_columns(both).take(place) for both in zip(values, nothing, strict=True)]
        raise_failures(self.plan)
        arrays = [table.column(name).combine_chunks() for name in self.runner.columns]
        types = self.plan.schema.column_types.values()
        arrays += [_as(value.to_arrow(), type_) for value, type_ in zip(values, types, strict=True)]
        names = [*self.runner.columns, *(_value_name(i) for i in range(len(values)))]
        batch = pa.RecordBatch.from_arrays(arrays, names)
        for at in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(at, BATCH_ROWS)


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)


def _last_group(number: np.ndarray, time: np.ndarray) -> int:
    """Where the rows begin that have the key and the time of the last one."""
    other = (number != number[-1]) | (time != time[-1])
    return int(np.flatnonzero(other)[-1]) + 1 if other.any() else 0
