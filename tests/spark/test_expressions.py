"""Expressions on Spark: the JVM computes what NumPy does, both compute what Spark's own SQL does, in every mode."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import random
import struct
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

import slicewise as sw
from slicewise.columns import Column
from slicewise.conditions.computed import compute
from slicewise.plan.condition_sql import UntranslatableError
from slicewise.plan.expression_sql import expression_sql
from slicewise.spark.types import spark_type
from tests.spark.running import ansi

TYPES = {
    "i8": pa.int8(),
    "i16": pa.int16(),
    "i32": pa.int32(),
    "i64": pa.int64(),
    "j64": pa.int64(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "g64": pa.float64(),
    "d": pa.decimal128(10, 2),
    "e": pa.decimal128(38, 18),
    "s": pa.string(),
    "b": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", "UTC"),
}
FLOATS = [0.0, -0.0, 1.5, -2.5, 0.1, 1e300, -1e300, 5e-324, math.inf, -math.inf, math.nan, 2.0**63, 1e15, 0.5]
TEXTS = ["1", " 2 ", "-7", "1.5", "1e3", "x", "", "true", "NaN", "inf", "9223372036854775808", "2024-02-29", "+4", ".5"]


def whole(bits: int) -> list[int]:
    return [0, 1, -1, 2, 7, -3, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 2 ** (bits - 2)]


EDGES: dict[str, list[Any]] = {
    "i8": whole(8),
    "i16": whole(16),
    "i32": whole(32),
    "i64": whole(64),
    "j64": whole(64),
    "f32": [float(v) for v in (0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan, 2.0**24, 0.25)]
    + [struct.unpack("f", struct.pack("f", v))[0] for v in (0.35, -0.45, 0.1)],
    "f64": FLOATS,
    "g64": FLOATS,
    "d": [Decimal(v) for v in ("0.00", "1.25", "-1.25", "99999999.99", "-99999999.99", "0.05", "2.50", "-0.01")],
    "e": [
        Decimal(v).quantize(Decimal(10) ** -18, context=decimal.Context(prec=60))
        for v in ("0", "1.5", "-3.000000000000000007", "99999999999999999999.5", "0.000000000000000001", "12345.678")
    ],
    "s": TEXTS,
    "b": [True, False],
    "day": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1582, 10, 15), dt.date(9999, 12, 31)],
    "at": [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, 12, 30, 1, 500, tzinfo=dt.UTC)],
}


def rows(seed: int = 7, count: int = 150) -> list[dict[str, Any]]:
    """Rows of edges, of nulls and of values near zero."""
    draw = random.Random(seed)
    return [
        {"id": i, **{name: draw.choice([None, *values, *values]) for name, values in EDGES.items()}}
        for i in range(count)
    ]


#: What the JVM must compute to the last bit, and what Spark's own SQL gives for the same text.
IN_THE_JVM = [
    *("i64 + j64", "i64 - j64", "i64 * j64", "i64 / j64", "i64 % j64", "i32 + i32", "i32 * i16", "i8 + i8", "i8 * i8"),
    *("i16 - i8", "-i8", "-i32", "-i64", "-d", "-f64", "abs(i8)", "abs(i32)", "abs(i64)", "abs(d)", "abs(f64)"),
    *("f64 + g64", "f64 - g64", "f64 * g64", "f64 / g64", "f64 % g64", "f32 + f32", "f32 * f32", "f32 / f32"),
    *("f32 % f32", "f32 + i8", "f32 + i32", "f32 * i64", "f32 + f64", "f64 + i64", "f64 * d", "f32 * d", "d + i64"),
    *(
        "d + d",
        "d - d",
        "d * d",
        "d / d",
        "d % d",
        "d + e",
        "d * e",
        "e * e",
        "e + e",
        "e / d",
        "d / e",
        "e % d",
        "d % 0.7",
    ),
    *("d * 2", "d * 1.5", "d / 3", "d + 1e0", "i32 * 1.5", "i64 / 2.5", "i8 * 100", "i32 + 1", "2 * i32 + 3 * i64 - 7"),
    *("i64 + j64 * 2 - i32", "(i64 + 1) * (j64 - 1)", "i64 + i64 + i64 + i64 + i64 + i64"),
    *("i64 = j64", "i64 < d", "d >= e", "f64 = g64", "f64 < g64", "f64 != g64", "f32 = f64", "i32 < f32", "s < 'a'"),
    *("s = '1'", "b = true", "day < cast('2000-01-01' as date)", "f64 > 1.5", "i64 > 2.5", "d = 1.25", "at >= at"),
    *("b and i64 > 0", "b or i64 > 0", "not b", "b is null", "i64 in (1, 2, null)", "i64 not in (1, 7)"),
    *("d between -1 and 1.3", "f64 in (0.0, 1.5)", "i8 in (1, 2.5, 1e0)", "s in ('1', 'x')"),
    *(
        "case when b then i64 else j64 end",
        "case when i64 > 0 then i32 when b then d end",
        "case i8 when 1 then 'x' end",
    ),
    *("case when j64 <> 0 then i64 / j64 else f64 end", "case when i64 between -9 and 9 then i64 * 2 end"),
    *(
        "coalesce(i64, j64)",
        "coalesce(i32, d)",
        "coalesce(f64, i64, 0)",
        "coalesce(s, 'none')",
        "coalesce(i8, 1.5)",
        "coalesce(f32, i8)",
        "coalesce(f32, i64)",
        "at > cast('2000-01-01 00:00:00' as timestamp)",
    ),
    *("least(i64, j64)", "greatest(i64, j64, 0)", "least(f64, g64)", "greatest(f64, g64)", "greatest(f64, d, i8)"),
    *("least(s, 'm')", "greatest(d, e)", "least(day, cast('2000-01-01' as date))", "greatest(b, false)"),
    *("sqrt(f64)", "sqrt(i64)", "sqrt(d)", "floor(f64)", "ceil(f64)", "floor(d)", "ceil(d)", "floor(i32)", "floor(e)"),
    *("ceil(f32)", "round(d)", "round(d, 1)", "round(d, -1)", "round(e, 3)", "round(i32)", "round(i64, 2)"),
    *(
        "cast(i64 as int)",
        "cast(i32 as tinyint)",
        "cast(i64 as double)",
        "cast(i16 as float)",
        "cast(i64 as decimal(5, 1))",
    ),
    *(
        "cast(d as int)",
        "cast(d as decimal(4, 1))",
        "cast(e as decimal(20, 2))",
        "cast(d as double)",
        "cast(e as double)",
    ),
    *("cast(f64 as bigint)", "cast(f64 as int)", "cast(f64 as float)", "cast(f32 as double)", "cast(f64 as boolean)"),
    *("cast(b as int)", "cast(i32 as boolean)", "cast(b as decimal(3, 1))", "cast(s as int)", "cast(s as bigint)"),
    *(
        "cast(s as double)",
        "cast(s as decimal(10, 2))",
        "cast(s as boolean)",
        "cast(i64 as string)",
        "cast(b as string)",
    ),
    *("123456789012345678901234567890", "-123456789012345678901234567890", "10.00000000000000000000000000000000001"),
    *("d - 123456789012345678901234567890", "-(5) * d", "- -5 * d", "-(2147483648)", "-(1.5) + i32"),
    *("cast(day as string)", "cast(null as int)", "1.50", "7", "-2147483648", "3000000000", "1e3", "'it''s'", "true"),
]
#: What only Python computes.
IN_PYTHON = [
    *("exp(f64)", "ln(f64)", "log10(f64)", "pow(f64, 2)", "pow(f64, g64)", "sin(f64)", "cos(f64)", "tan(f64)"),
    *("round(f64)", "round(f64, 1)", "round(f32, 1)", "round(i64, -1)", "round(i32, -3)"),
    *("round(-f64 / 1e9, 2)", "round(f64, -3)"),
    *("cast(f64 as decimal(20, 3))", "cast(d as string)", "cast(s as date)", "cast(s as float)", "cast(at as bigint)"),
    *(
        "cast(day as timestamp)",
        "cast(i32 as timestamp)",
        "cast(at as date)",
        "cast(s as timestamp)",
        "cast(at as string)",
    ),
    *("cast(f64 as string)", "cast(f32 as string)", "cast(i32 as float)", "cast(i64 as float)"),
    *("cast(f32 as decimal(20, 10))", "cast(f32 as decimal(5, 1))", "round(f32, 7)"),
]
#: What only Python computes exactly: Java cuts decimals to 34 digits where their sign changes, and Spark's optimizer
#: takes the float out of these casts.
EXACT_IN_PYTHON = ["-e", "abs(e)", "-(e - 1)", "cast(cast(i32 as float) as double)", "cast(i64 as float) * 1e0"]


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    schema = T.StructType(
        [T.StructField("id", T.LongType()), *(T.StructField(n, spark_type(t)) for n, t in TYPES.items())]
    )
    made = spark.createDataFrame([tuple(row.values()) for row in rows()], schema).coalesce(1).cache()
    made.count()
    return made


def computed(text: str) -> tuple[pa.DataType, list[Any], list[int]]:
    """The type, the values and the rows that fail, of an expression in process."""
    given = rows()
    expression = sw.expr(text)
    columns = {n: Column.of([r[n] for r in given], TYPES[n]) for n in expression.names}
    result = compute(text, columns, expression.names, len(given))
    return result.column.type, result.column.to_pylist(), sorted(result.failures)


def unless(failing: list[int], text: str) -> str:
    return f"CASE WHEN id NOT IN ({', '.join(map(str, [-1, *failing]))}) THEN {text} END"


def bits(value: Any) -> Any:
    """A value that is equal to no other: -0.0 is not 0.0, and NaN is NaN."""
    return value.hex() if isinstance(value, float) else value


@pytest.mark.parametrize("mode", [True, False], ids=["ansi", "not ansi"])
def test_the_jvm_computes_what_numpy_does(spark: SparkSession, frame: DataFrame, mode: bool) -> None:
    answers = {text: computed(text) for text in IN_THE_JVM}
    with ansi(spark, mode):
        selected = []
        for i, (text, (_, _, failing)) in enumerate(answers.items()):
            sql = expression_sql(sw.expr(text), TYPES, str, "''")
            selected.append(F.expr(unless(failing, sql)).alias(f"x{i}"))
        inside = frame.orderBy("id").select(*selected)
        types = {text: inside.schema[i].dataType for i, text in enumerate(answers)}
        table = inside.toArrow()
    wrong = []
    for i, (text, (type_, values, failing)) in enumerate(answers.items()):
        if types[text] != spark_type(type_):
            wrong.append((text, types[text], type_))
        for row, (ours, theirs) in enumerate(zip(values, table.column(i).to_pylist(), strict=True)):
            if row not in failing and bits(ours) != bits(theirs):
                wrong.append((text, {n: rows()[row][n] for n in sw.expr(text).names}, ours, theirs))
                break
    assert not wrong, "\n".join(map(str, wrong))


def test_expressions_mean_what_they_mean_in_spark(spark: SparkSession, frame: DataFrame) -> None:
    """The text itself, given to Spark; casts as ``try_cast``, and what leaves its type left out."""
    texts = [*IN_THE_JVM, *IN_PYTHON]
    answers = {text: computed(text) for text in texts}
    natural = {text: text.replace("cast(", "try_cast(") for text in texts}
    with ansi(spark, True):
        types = frame.select(*(F.expr(natural[text]).alias(f"x{i}") for i, text in enumerate(texts))).schema
    with ansi(spark, False):
        alike = frame.orderBy("id").select(
            *(F.expr(unless(answers[text][2], natural[text])).alias(f"x{i}") for i, text in enumerate(texts))
        )
        table = alike.toArrow()
    wrong: list[Any] = []
    for i, (text, (type_, values, failing)) in enumerate(answers.items()):
        if types[i].dataType != spark_type(type_):
            wrong.append((text, types[i].dataType.simpleString(), str(type_)))
        if types[i].dataType != alike.schema[i].dataType:
            continue  # without ANSI mode Spark adds integers to floats as floats
        for row, (ours, theirs) in enumerate(zip(values, table.column(i).to_pylist(), strict=True)):
            inexact = text in IN_PYTHON and isinstance(ours, float) and isinstance(theirs, float)
            same = bits(ours) == bits(theirs) or (inexact and math.isclose(ours, theirs, rel_tol=1e-14))
            if row not in failing and not same:
                wrong.append((text, {n: rows()[row][n] for n in sw.expr(text).names}, ours, theirs))
                break
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize("text", ["v * 2", "exp(v)"], ids=["in the JVM", "in Python"])
def test_a_computed_column_measures_windows_of_a_batch(spark: SparkSession, text: str) -> None:
    given = {"t": list(range(6)), "v": [0, 0, 1, 2, 2, 3]}
    windows = sw.tumbling(sw.units(4, sw.expr(text)))
    workload = sw.Workload(time="t").query("q", windows, n=sw.count(), s=sw.sum("v"))
    op = workload.operator()
    op.process_batch(given)
    expected = [tuple(r.values.values()) for r in op.close()]
    found = workload.run(spark.createDataFrame(list(zip(*given.values(), strict=True)), "t long, v long"))
    assert sorted((r.n, r.s) for r in found.collect()) == sorted(expected)


@pytest.mark.parametrize("text", [*IN_PYTHON, *EXACT_IN_PYTHON])
def test_what_java_computes_otherwise_is_not_said_in_sql(text: str) -> None:
    with pytest.raises(UntranslatableError):
        expression_sql(sw.expr(text), TYPES, str, "''")
