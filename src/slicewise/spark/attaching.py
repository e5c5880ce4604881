"""Attaching on Spark: points and events come together by key, and Python answers them piece by piece in rough order.

Where the points are the events, every row is both and is sent once; else the two are united. The JVM brings all rows of
a key together and numbers them (:mod:`slicewise.spark.rough_order`); NumPy sorts them by these numbers into pieces
(:mod:`slicewise.spark.sorted_runs`) and each piece by key and time. Behind a piece the events that later points may
still see are kept, of the keys that are not finished.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slicewise.errors import DataError
from slicewise.kernels import order_by, sorted_unique
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
from slicewise.spark.computed_columns import is_data, is_meant, with_data, with_meant
from slicewise.spark.key_numbers import KeyNumbers, number_keys
from slicewise.spark.known_frame import named
from slicewise.spark.output import check_known_types
from slicewise.spark.rough_order import ROUGH, RoughOrder
from slicewise.spark.session import check_workers, setting
from slicewise.spark.sorted_runs import SortedRuns
from slicewise.spark.source import TIME, Source, column, key_name, value_name
from slicewise.spark.types import reaches_python, read, spark_type
from slicewise.times import largest_time
from slicewise.workload import Workload, without_punctuation, without_where

__all__ = ["PointRunner", "attach"]

#: How many rows are sorted and taken at once; or more, as many again as are kept of the key that is not finished.
CHUNK = 200_000
#: What a row is, where not every row that has a time is an event, and where not every row is a point.
IS_EVENT, IS_POINT = "is_event", "is_point"
#: The times of events and points as they were given.
GIVEN_TIME = "at"
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
    if events is None and asking.workload.time == workload.time:
        source = _renamed(source, columns)
        rows, flags, places = _both(source, columns)
    else:
        source = with_data(with_meant(source))
        rows, flags, places = _united(source, asking, columns)
    described = without_punctuation(without_where(source.workload))
    inputs = {name: places[value_name(i)] for i, name in enumerate(source.inputs) if name in described.inputs}
    keys = [places[name] for name in source.key_names]
    given_back = [places[name] for name in columns]
    names = list(dict.fromkeys([places[TIME], *flags, *keys, *inputs.values(), *given_back]))
    order = RoughOrder.of(source.time_type, workload.unit)
    rows = _by_key(rows, source, places[TIME], keys, names, order)
    names.append(ROUGH)
    types = dict(source.types)
    make_plan = partial(plan_for, described, types, time_type=source.time_type, ties=SORTED, over_rows=True)
    values = make_plan().schema
    check_known_types(values)
    fields = [T.StructField(c, f.dataType) for c, f in zip(columns, points.schema.fields, strict=True)]
    added = [T.StructField(_value_name(i), spark_type(t)) for i, t in enumerate(values.column_types.values())]
    read_types = {name: types[name] for name in inputs}
    back = dict(zip(columns, given_back, strict=True))
    runner = PointRunner(make_plan, read_types, places[TIME], keys, inputs, back, order)
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


def _both(source: Source, columns: Sequence[str]) -> tuple[DataFrame, list[str], dict[str, str]]:
    """Rows that are points and events at once, their flags, and where each column stands: no column is sent twice."""
    filtered = source.workload.where is not None or source.workload.punctuation is not None
    meant = F.coalesce(is_meant(source), F.lit(False)) & is_data(source)
    flags = [IS_EVENT] if filtered else []
    rows = source.projected(*(meant.alias(name) for name in flags), *map(F.col, columns))
    named_so = {key_name(i): name for i, name in enumerate(source.workload.keys)}
    named_so |= {value_name(i): name for i, name in enumerate(source.inputs)}
    named_so |= {TIME: source.workload.time} if _is_instant(source) else {}
    places = {name: name for name in (TIME, *columns)}
    for internal, name in named_so.items():
        path = source.paths[name]
        places[internal] = path[0] if len(path) == 1 else internal
    return rows, flags, places


def _united(source: Source, asking: Source, columns: Sequence[str]) -> tuple[DataFrame, list[str], dict[str, str]]:
    """Events and points below each other, their flags, and where each column stands; nulls where only one has it."""
    same = {name: source.spark_types[name] == asking.spark_types[name] for name in source.workload.keys}
    of_time = source.spark_types[source.workload.time] == asking.spark_types[asking.workload.time]
    as_given = of_time and _is_instant(source) and _is_instant(asking)
    places = {name: name for name in (TIME, *source.key_names, *map(value_name, range(len(source.inputs))), *columns)}
    # Columns of points that are compared with those of events are sent as these are.
    compared = {name: key_name(i) for i, name in enumerate(source.workload.keys) if same[name]}
    if as_given:
        places[TIME] = GIVEN_TIME
        compared[asking.workload.time] = GIVEN_TIME
    for name, internal in compared.items():
        path = asking.paths[name]
        if len(path) == 1:
            places[path[0]] = internal

    def projected(one: Source, *extra: Column) -> DataFrame:
        time = [F.expr(f"{one.given(one.workload.time)} AS {GIVEN_TIME}")] if as_given else []
        return one.projected(*time, *extra)

    events = projected(source, F.lit(False).alias(IS_POINT)).where(F.col(TIME).isNotNull())
    points = projected(asking, F.lit(True).alias(IS_POINT), *map(F.col, columns))
    return events.unionByName(points, allowMissingColumns=True), [IS_POINT], places


def _is_instant(source: Source) -> bool:
    """Whether the times of a source are 64-bit integers to Arrow as they are, so that they need no column beside."""
    return isinstance(source.spark_types[source.workload.time], (T.TimestampType, T.TimestampNTZType, T.LongType))


def _by_key(
    rows: DataFrame, source: Source, time: str, keys: list[str], names: list[str], order: RoughOrder
) -> DataFrame:
    """All rows of a key in one partition, with their numbers."""
    rows = rows.select(*names)  # what Python does not read is not shuffled either
    rows = rows.repartition(*keys) if keys else rows.repartition(1)
    at = F.expr(TIME if time == TIME else source.instant(time))
    return rows.select("*", order.column(keys, at).alias(ROUGH))


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
                    f"`attach` adds a column {name!r} for query {query.name!r} beside {other!r}, which Spark takes "
                    "for the same name; rename one of them, or set spark.sql.caseSensitive"
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
    """The function that Spark calls for each partition of rows.

    Attributes
    ----------
    make_plan
        Makes the plan, over rows.
    types
        Of what aggregates read.
    time, keys, inputs, columns
        Where event times stand, the keys, what aggregates read by its name, and the columns of points by the names
        under which they are given back. A column may be several of these, and is sent once.
    order
        The rough order.
    """

    make_plan: partial[Plan]
    types: Mapping[str, pa.DataType]
    time: str
    keys: Sequence[str]
    inputs: Mapping[str, str]
    columns: Mapping[str, str]
    order: RoughOrder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = _Partition(self)
        with SortedRuns(self.order) as runs:
            for table in tables_of(batches, CHUNK):
                runs.add(table)
            while runs.rows:
                yield from partition.answered(*runs.take(max(CHUNK, 2 * partition.kept_rows)))

    def plan(self) -> Plan:
        """The plan. Ties are broken as everywhere; then all that is read decides in which order floats are added."""
        plan = self.make_plan()
        workload = plan.workload
        return dataclasses.replace(plan, order=tuple(dict.fromkeys([*tie_columns(workload), *workload.columns])))


@dataclass(frozen=True, eq=False)
class _Kept:
    """Events that points to come may see, of all keys of one hash; the numbers of keys are places in ``keys``."""

    hash: int
    keys: Sequence[pa.Array]
    rows: Tuples

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class _Piece:
    """Rows as they came, the numbers of their keys, their times, and their positions in the order of both."""

    table: pa.Table
    number: np.ndarray
    time: np.ndarray
    has_time: np.ndarray
    positions: np.ndarray

    @classmethod
    def of(cls, table: pa.Table, number: np.ndarray, at: str, furthest: int) -> _Piece:
        """Rows with times in a column; those that lie further away than any window are none."""
        time = table.column(at).cast(pa.int64()).fill_null(_LOWEST).to_numpy()
        has_time = (time >= -furthest) & (time <= furthest)
        if not has_time.all():
            time = np.where(has_time, time, _LOWEST)
        order = order_by(number, time)
        positions = np.arange(len(time)) if order is None else order
        return cls(table, number, time, has_time, positions)

    @property
    def is_event(self) -> np.ndarray:
        """Which rows are events: those that have a time, unless a flag says otherwise."""
        events = self.has_time
        if IS_EVENT in self.table.column_names:
            events = events & self._flagged(IS_EVENT)
        return events if self.is_point is None else events & ~self.is_point

    @functools.cached_property
    def is_point(self) -> np.ndarray | None:
        """Which rows are points; None if all are."""
        return self._flagged(IS_POINT) if IS_POINT in self.table.column_names else None

    def _flagged(self, name: str) -> np.ndarray:
        flags: np.ndarray = self.table.column(name).to_numpy(zero_copy_only=False)
        return flags


class _Partition:
    """A partition while its rows are read.

    Attributes
    ----------
    kept
        The earlier events of the keys that have the hash of the first row to come.
    """

    def __init__(self, runner: PointRunner) -> None:
        self.runner, self.plan = runner, runner.plan()
        self.kept: _Kept | None = None

    @property
    def kept_rows(self) -> int:
        """How many events are kept."""
        return 0 if self.kept is None else len(self.kept)

    def answered(self, table: pa.Table, following: int | None) -> Iterator[pa.RecordBatch]:
        """Answer the next rows in rough order; the first behind them has this number, or there are no more."""
        number, keys = self._numbered(table)
        piece = _Piece.of(table, number, self.runner.time, largest_time(self.plan.workload.unit))
        rows = self._events(piece, keys)
        answers = AsOf(self.plan, keys)  # type: ignore[arg-type]
        yield from self._points(answers, rows, piece)
        numbers = table.column(ROUGH).to_numpy()
        self.kept = None if following is None else self._needed(answers, rows, number, numbers, following)

    def _numbered(self, table: pa.Table) -> tuple[np.ndarray, KeyNumbers]:
        """The numbers of the keys of rows, those of which events are kept first, and what they stand for."""
        keys, before = [table.column(name).combine_chunks() for name in self.runner.keys], 0
        if self.kept is not None:
            before = int(self.kept.rows.key[-1]) + 1
            keys = [pa.concat_arrays([old, new]) for old, new in zip(self.kept.keys, keys, strict=True)]
        number, firsts = number_keys(keys, before + table.num_rows)
        return number[before:], KeyNumbers([key.take(pa.array(firsts)) for key in keys])

    def _events(self, piece: _Piece, keys: KeyNumbers) -> Tuples:
        """The events of a piece, and those that were kept."""
        index = piece.positions[piece.is_event[piece.positions]]
        inputs = piece.table.select(list(dict.fromkeys(self.runner.inputs.values()))).take(pa.array(index))
        columns = {name: read(inputs.column(at), self.runner.types[name]) for name, at in self.runner.inputs.items()}
        number = piece.number[index]
        named = [pa.DictionaryArray.from_arrays(pa.array(number), key) for key in keys.columns]  # for messages
        rows = event_rows(self.plan, Batch(piece.time[index], self.plan.schema.time_type, named, columns, {}), number)
        # Of two keys of one hash the rows of both are kept, and more of both may come.
        return rows if self.kept is None else self.kept.rows.joined([rows], ())

    def _points(self, answers: AsOf, rows: Tuples, piece: _Piece) -> Iterator[pa.RecordBatch]:
        places, asked = self.runner.columns, piece.is_point
        table, timed = piece.table.select(list(places.values())), piece.positions[piece.has_time[piece.positions]]
        of_point = np.arange(table.num_rows)
        if asked is not None:
            table, timed, of_point = table.filter(pa.array(asked)), timed[asked[timed]], np.cumsum(asked) - 1
        if not table.num_rows:
            return
        values = answers.columns(rows, Points(piece.number[timed], piece.time[timed]))
        if len(timed) < table.num_rows:
            values = [joined_columns(both) for both in zip(values, answers.nothing(1), strict=True)]
        raise_failures(self.plan)
        place = np.full(table.num_rows, len(timed))
        place[of_point[timed]] = np.arange(len(timed))
        arrays = [table.column(i).combine_chunks() for i in range(len(places))]
        types = self.plan.schema.column_types.values()
        arrays += [_as(value.take(place).to_arrow(), type_) for value, type_ in zip(values, types, strict=True)]
        names = [*places, *(_value_name(i) for i in range(len(values)))]
        batch = pa.RecordBatch.from_arrays(arrays, names)
        for at in range(0, batch.num_rows, BATCH_ROWS):
            yield batch.slice(at, BATCH_ROWS)

    def _needed(
        self, answers: AsOf, rows: Tuples, number: np.ndarray, rough: np.ndarray, following: int
    ) -> _Kept | None:
        """The events that points to come may see, the first of which has a number: those of keys of its hash."""
        order = self.runner.order
        next_hash, start = order.hash(following), order.start(following)
        unfinished = number[np.searchsorted(order.hashes(rough), next_hash) :]
        if self.kept is not None and self.kept.hash == next_hash:
            unfinished = np.concatenate([self.kept.rows.key, unfinished])
        needed: list[tuple[int, Tuples]] = []
        for key in sorted_unique(unfinished).tolist():
            low, high = np.searchsorted(rows.key, [key, key + 1])
            of_key = rows.take(slice(low, high))
            kept = of_key.take(slice(0 if start is None else answers.first_needed(of_key, key, start), None))
            if len(kept):
                needed.append((key, dataclasses.replace(kept, key=np.full(len(kept), len(needed)))))
        if not needed:
            return None
        names = [column.take(pa.array([key for key, _ in needed])) for column in answers.keys.columns]  # type: ignore[attr-defined]
        return _Kept(next_hash, names, Tuples.concat([kept for _, kept in needed]))


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else array.cast(type_)
