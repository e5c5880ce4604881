"""Source: the user's DataFrame as a workload reads it. Mistakes are reported here, before Spark starts a job.

Internally columns have names of ours (``t``, ``k0``, ``c0``, ...), so that the user's names, which may have dots and
spaces in them, are read once and written once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from slicewise.conditions.expression import check_type_of, derived_types, inputs_of, refuse_missing
from slicewise.errors import DataError, did_you_mean
from slicewise.plan.condition_sql import text_literal
from slicewise.results import RESERVED
from slicewise.slicing import CLOCK_TYPE, bounds_type
from slicewise.spark.session import setting
from slicewise.spark.types import arrow_type, holds_map
from slicewise.spark.versions import ntz_micros
from slicewise.times import largest_time
from slicewise.workload import Workload

__all__ = ["Source", "column", "key_name", "sql_name", "value_name"]

TIME = "t"
#: The furthest event time, as days.
LARGEST_DAY = largest_time("microseconds") // 86_400_000_000
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)


def column(name: str) -> Column:
    """A column by its name, taken literally."""
    return F.col(sql_name(name))


def sql_name(name: str) -> str:
    """A column by its name, taken literally, in SQL."""
    return "`" + name.replace("`", "``") + "`"


def _field(name: str) -> str:
    """A field of the struct before it, in SQL. With a dot, a DataFrame named as the struct would come first."""
    literal = text_literal(name)
    return f"[{literal}]" if literal.startswith("'") else f".{sql_name(name)}"  # in brackets no expression is read


def key_name(i: int) -> str:
    """The internal name of the ``i``-th key column."""
    return f"k{i}"


def value_name(i: int) -> str:
    """The internal name of the ``i``-th column that the workload reads."""
    return f"c{i}"


@dataclass(frozen=True, eq=False)
class Source:
    """A DataFrame that has what a workload reads.

    Attributes
    ----------
    types
        The Arrow types of the columns that the workload reads, keys included.
    time_type
        The Arrow type of window bounds.
    nullable
        The columns that may hold nulls.
    paths
        Where the columns that are read stand: the name of a column, and those of the fields inside it.
    spark_types
        The Spark types of the time column and of the same columns.
    ties
        The columns that put rows of equal event time in order, read by the workload or not; none where that does not
        matter.
    """

    workload: Workload
    frame: DataFrame
    types: Mapping[str, pa.DataType]
    time_type: pa.DataType
    nullable: frozenset[str]
    paths: Mapping[str, tuple[str, ...]]
    spark_types: Mapping[str, T.DataType]
    ties: tuple[str, ...] = ()

    @classmethod
    def of(cls, workload: Workload, frame: Any) -> Source:
        """Check that a DataFrame fits a workload."""
        if not hasattr(frame, "schema") or not hasattr(frame, "isStreaming"):
            raise DataError(f"`run` takes a Spark DataFrame; got {type(frame).__name__}; in process, use operator()")
        fields = _fields(frame)
        wanted = (*([workload.time] if workload.on_clock is None else []), *workload.keys, *workload.inputs)
        wanted += () if workload.watermark_from is None else (workload.watermark_from,)
        paths = {name: _path(name, fields, workload) for name in wanted}
        _check_distinct_names(workload, frame, [path[0] for path in paths.values()])
        for path in paths.values():
            if len(fields[path[0]]) > 1:
                raise DataError(f"the DataFrame has the column {path[0]!r} twice; rename one of them")
        one = {name: _at_path(path, fields) for name, path in paths.items()}
        types = {name: arrow_type(one[name].dataType, name) for name in (*workload.keys, *workload.inputs)}
        for name in types:
            _check_bytewise(one[name], "key column" if name in workload.keys else "column")
        computed = derived_types(workload.columns, types)
        for what, condition in (("where", workload.where), ("punctuation", workload.punctuation)):
            if condition is not None:
                check_type_of(condition, derived_types([condition], types)[condition], what)
        for what, names in (("key", workload.keys), ("order", workload.order)):
            for name in names:
                if name in types and holds_map(types[name]):
                    raise DataError(
                        f"{what} column {name!r} is of type {one[name].dataType.simpleString()}, and maps cannot be "
                        "compared; use one of its entries"
                    )
        return cls(
            workload,
            frame,
            types | computed,
            CLOCK_TYPE if workload.on_clock is not None else _bounds_type(one[workload.time], workload),
            frozenset([*computed, *(name for name, field in one.items() if field.nullable)]),
            paths,
            {name: field.dataType for name, field in one.items()},
        )

    @property
    def event_time(self) -> str:
        """Event time as a 64-bit integer, in SQL; null where it is null, or so far away that no window lies around it.

        As text, as much here: every function that is called takes several round trips to the JVM.
        """
        if self.workload.on_clock is not None:
            # The time of the micro-batch, the same for all of its rows; it stands in the offset log, and so is kept.
            return "unix_micros(current_timestamp())"
        at = self.instant(self.given(self.workload.time))
        largest = largest_time(self.workload.unit)
        return f"CASE WHEN {at} BETWEEN {-largest} AND {largest} THEN {at} END"

    def instant(self, time: str) -> str:
        """A time of the type of the time column as a 64-bit integer, however far away it is, in SQL."""
        type_ = self.spark_types[self.workload.time]
        if isinstance(type_, _INTEGERS):
            return f"CAST({time} AS BIGINT)"
        if isinstance(type_, T.TimestampNTZType):
            return ntz_micros(time, self.frame.sparkSession)
        if isinstance(type_, T.DateType):
            # A timestamp as in Spark's own window(); a date further away than timestamps are would fail there.
            near = f"unix_date({time}) BETWEEN {-LARGEST_DAY} AND {LARGEST_DAY}"
            time = f"CASE WHEN {near} THEN CAST({time} AS TIMESTAMP) END"
        return f"unix_micros({time})"

    def given(self, name: str) -> str:
        """A column of the DataFrame, or the field of one, in SQL."""
        first, *fields = self.paths[name]
        return sql_name(first) + "".join(map(_field, fields))

    def projected(self, *extra: Column) -> DataFrame:
        """The input under internal names: event time, keys, what the workload reads, and ``extra`` columns."""
        keys = [f"{self.given(name)} AS {key_name(i)}" for i, name in enumerate(self.workload.keys)]
        values = [f"{self.given(name)} AS {value_name(i)}" for i, name in enumerate(self.inputs)]
        return self.frame.select(*map(F.expr, [f"{self.event_time} AS {TIME}", *keys, *values]), *extra)

    def internal(self, name: str) -> Column:
        """A column that queries are about, in the projected input; a computed one once it is added."""
        return F.expr(self.internal_sql(name))

    def internal_sql(self, name: str) -> str:
        """The same in SQL."""
        return value_name(self.columns.index(name))

    def selected(self, value: Column) -> Column:
        """A value, in rows that count."""
        return value

    def selected_sql(self, value: str) -> str:
        """The same in SQL."""
        return value

    @property
    def inputs(self) -> tuple[str, ...]:
        """The columns of the projected input beside time and keys: those of the workload first, in its order."""
        return tuple(dict.fromkeys([*self.workload.inputs, *inputs_of(self.ties)]))

    @property
    def columns(self) -> tuple[str, ...]:
        """The same with computed columns behind them."""
        return tuple(dict.fromkeys([*self.inputs, *self.workload.columns, *self.ties]))

    @property
    def key_names(self) -> list[str]:
        """The key columns in the projected input."""
        return [key_name(i) for i in range(len(self.workload.keys))]


def _fields(frame: DataFrame) -> dict[str, list[T.StructField]]:
    fields: dict[str, list[T.StructField]] = {}
    for field in frame.schema.fields:
        fields.setdefault(field.name, []).append(field)
    return fields


def _path(name: str, fields: Mapping[str, list[T.StructField]], workload: Workload) -> tuple[str, ...]:
    """Where a column stands: ``a.b`` is a field of a struct, unless a column has that name."""
    path = _path_in(name, {n: same[0].dataType for n, same in fields.items()})
    if path is None:
        refuse_missing([*workload.columns, *workload.filters], name, fields)
        raise DataError(f"there is no column {name!r} in the DataFrame; {did_you_mean(name, fields)}")
    return path


def _path_in(name: str, types: Mapping[str, T.DataType]) -> tuple[str, ...] | None:
    if name in types:
        return (name,)
    for at in reversed([i for i, c in enumerate(name) if c == "."]):
        outer = types.get(name[:at])
        if isinstance(outer, T.StructType):
            rest = _path_in(name[at + 1 :], {f.name: f.dataType for f in outer.fields})
            return None if rest is None else (name[:at], *rest)
    return None


def _at_path(path: tuple[str, ...], fields: Mapping[str, list[T.StructField]]) -> T.StructField:
    """The field at a path, which may be null where anything around it may."""
    field = fields[path[0]][0]
    for name in path[1:]:
        assert isinstance(field.dataType, T.StructType)
        inner = field.dataType[name]
        field = T.StructField(name, inner.dataType, field.nullable or inner.nullable)
    return field


def _check_distinct_names(workload: Workload, frame: DataFrame, wanted: Sequence[str]) -> None:
    """Refuse names that differ in case alone, which Spark takes for one unless it is case-sensitive."""
    if setting(frame.sparkSession, "spark.sql.caseSensitive", "false") == "true":
        return
    given = dict.fromkeys([*workload.keys, *RESERVED, *(name for q in workload.queries for name in q.aggregates)])
    among = {"the results would have": given, "the DataFrame has": dict.fromkeys(frame.columns)}
    for who, names in among.items():
        read = {name.lower() for name in (names if names is given else wanted)}
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(name.lower(), name)
            if other != name and name.lower() in read:
                raise DataError(
                    f"{who} columns {other!r} and {name!r}, which Spark takes for the same name; rename one of them, "
                    "or set spark.sql.caseSensitive"
                )


def _check_bytewise(field: T.StructField, what: str) -> None:
    """Refuse strings with a collation, also nested ones: Spark has no function for which of them are equal."""
    if _collated(field.dataType):
        name = field.name
        raise DataError(
            f"{what} {name!r} is of type {field.dataType.simpleString()}, and slicewise compares strings by their "
            f"bytes, not by a collation; say how they compare: df.withColumn({name!r}, F.col({name!r}).cast('string')) "
            f"for bytes, F.lower({name!r}).cast('string') for regardless of capitals"
        )


def _collated(type_: T.DataType) -> bool:
    if isinstance(type_, T.StringType):
        return not type_.isUTF8BinaryCollation()
    if isinstance(type_, T.ArrayType):
        return _collated(type_.elementType)
    if isinstance(type_, T.MapType):
        return _collated(type_.keyType) or _collated(type_.valueType)
    return isinstance(type_, T.StructType) and any(_collated(f.dataType) for f in type_.fields)


def _bounds_type(field: T.StructField, workload: Workload) -> pa.DataType:
    type_, name = field.dataType, workload.time
    if isinstance(type_, (T.TimestampType, T.TimestampNTZType, T.DateType, *_INTEGERS)):
        # A date is cast to a timestamp, as Spark's own window() does.
        known = pa.timestamp("us", "UTC") if isinstance(type_, T.DateType) else arrow_type(type_, name)
        return bounds_type(known, workload, type_.simpleString())
    raise DataError(
        f"the time column {name!r} must hold timestamps, dates or integers; got {type_.simpleString()}; cast it first: "
        f"df.withColumn({name!r}, F.to_timestamp({name!r}))"
    )
