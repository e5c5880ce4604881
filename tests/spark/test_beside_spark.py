"""Random rows with all extremes beside Spark's own answers: every type of value and of key, ANSI mode on and off.

One example is one table with many groups, so that few jobs try many cases. The extremes are such that totals leave
their types on the way, in slices and in parts of windows, and come back before a window is complete.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

import slicewise as sw
from slicewise.same import is_same
from slicewise.spark.types import spark_type
from slicewise.testing.definitions import value_of
from tests.spark.running import ansi
from tests.spark.spark_own import grouped, plain_rows

#: A job takes long and shrinking takes many: a few large tables, always the same ones unless a profile asks for more.
few = settings(
    max_examples=max(settings.default.max_examples // 75, 1), phases=[Phase.explicit, Phase.generate], derandomize=True
)
SECOND = 1_000_000
DAY = 86_400 * SECOND


# Values


def integers(bits):
    top = 2 ** (bits - 1)
    return [0, 1, -1, top - 1, -top, top // 2, -(top // 2), 7], -top, top - 1


def decimals(precision):
    top = 10**precision - 1
    return [0, 1, -1, top, -top, top // 2, 10 ** (precision // 2), -(10 ** (precision // 2)) + 1], -top, top


#: Columns that are summed: the type, and unscaled values with the least and the largest of the type.
SUMMED = {
    "i8": (pa.int8(), *integers(8)),
    "i32": (pa.int32(), *integers(32)),
    "i64": (pa.int64(), *integers(64)),
    "apart": (pa.duration("us"), *integers(64)),
    **{f"d{p}_{s}": (pa.decimal128(p, s), *decimals(p)) for p, s in [(10, 2), (18, 18), (28, 4), (29, 0)]},
    **{f"d38_{s}": (pa.decimal128(38, s), *decimals(38)) for s in (0, 20, 21, 38)},
}
#: Sums of these are the same in any order.
FLOATS = [0.0, -0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1024.0]
WORDS = ["", "a", "A", "b", "\0", "é", "e\u0301", "ß", "日本", "😀", "a "]
#: The other columns: the type, and the values to choose from, as Arrow takes them.
OTHERS = {
    "x": (pa.float64(), FLOATS),
    "f": (pa.float32(), FLOATS),
    "wide": (pa.float64(), [*FLOATS, 1e16, 1.7e308, -1.7e308, 5e-324]),
    "calm": (pa.float64(), [0.5, 1.5, -2.0, 3.25, 8.0]),
    "s": (pa.string(), WORDS),
    "y": (pa.binary(), [b"", b"\0", b"\xff", b"\x7f", b"ab"]),
    "z": (pa.bool_(), [True, False]),
    "day": (pa.date32(), [dt.date.min, dt.date.max, dt.date(1970, 1, 1), dt.date(1582, 10, 14), dt.date(1969, 12, 31)]),
    "at": (pa.timestamp("us", "UTC"), [-62135596800 * SECOND, 253402300799 * SECOND, 0, -1, 1]),
    "local": (pa.timestamp("us"), [-62135596800 * SECOND, 253402300799 * SECOND, 0, -1, 1]),
}


def block_of(rng):
    """Rows of one group and ten seconds. Totals may go anywhere, and are small when all rows are there."""
    n = int(rng.integers(1, 9))
    columns = {}
    for name, (_, pool, low, high) in SUMMED.items():
        column = [None if rng.random() < 0.15 else int(pool[rng.integers(len(pool))]) for _ in range(n)]
        total = sum(v for v in column if v is not None)
        while abs(total) > high // 10**6:
            column.append(min(max(-total, low), high))
            total += column[-1]
        columns[name] = column
    rows = max(map(len, columns.values()))
    for name, (_, pool) in OTHERS.items():
        columns[name] = [None if rng.random() < 0.15 else pool[rng.integers(len(pool))] for _ in range(rows)]
    return {name: column + [None] * (rows - len(column)) for name, column in columns.items()}, rows


def table_of(seed, groups=8, decades=6):
    rng = np.random.default_rng(seed)
    columns = {name: [] for name in ("ts", "g", "u", *SUMMED, *OTHERS)}
    for group in range(groups):
        for decade in range(decades):
            if rng.random() < 0.2:
                continue
            block, rows = block_of(rng)
            # Every second one: a gap of more than ten seconds parts sessions. No two rows of a group at one time.
            times = np.sort(rng.choice(10 * SECOND, rows, replace=False)) + (decade * 20 - 50) * SECOND
            columns["ts"] += times.tolist()
            columns["g"] += [group] * rows
            columns["u"] += range(len(columns["u"]), len(columns["u"]) + rows)
            for name, column in block.items():
                columns[name] += column
    arrays = {"ts": pa.array(columns["ts"]).cast(pa.timestamp("us", "UTC")), "g": pa.array(columns["g"], pa.int32())}
    arrays["u"] = pa.array(columns["u"], pa.int64())
    arrays |= {name: from_unscaled(columns[name], type_) for name, (type_, *_) in SUMMED.items()}
    for name, (type_, _) in OTHERS.items():
        raw = pa.int64() if pa.types.is_timestamp(type_) else type_
        arrays[name] = pa.array(columns[name], raw).cast(type_)
    return pa.table(arrays)


def from_unscaled(values, type_):
    if not pa.types.is_decimal(type_):
        return pa.array(values, pa.int64()).cast(type_)
    with decimal.localcontext(decimal.Context(prec=100)):
        return pa.array([None if v is None else decimal.Decimal(v).scaleb(-type_.scale) for v in values], type_)


def frame_of(spark, table):
    schema = T.StructType([T.StructField(f.name, spark_type(f.type)) for f in table.schema])
    return spark.createDataFrame(table, schema=schema).repartition(3)


WINDOWS = {
    "tumbling": (sw.tumbling("10 seconds"), lambda: F.window("ts", "10 seconds")),
    "sliding": (
        sw.sliding("20 seconds", every="10 seconds"),
        lambda: F.window("ts", "20 seconds", "10 seconds"),
    ),
    "session": (sw.session("11 seconds"), lambda: F.session_window("ts", "11 seconds")),
}
TOTALS = {f"sum_{c}": sw.sum(c) for c in SUMMED} | {f"avg_{c}": sw.avg(c) for c in SUMMED}
#: What the JVM computes for a whole window, nothing composed: without the types that would be too large there.
NARROW = {n: a for n, a in TOTALS.items() if a.columns[0] != "apart" and "d38" not in n and "d29" not in n}


def beside():
    """Aggregates beside Spark's functions, for answers that Spark has one of."""
    found = {"n": (sw.count(), F.count(F.lit(1)))}
    for c in (*SUMMED, *OTHERS):
        found |= {f"count_{c}": (sw.count(c), F.count(c)), f"min_{c}": (sw.min(c), F.min(c))}
        found |= {f"max_{c}": (sw.max(c), F.max(c))}
        found |= {f"first_{c}": (sw.first(c), F.min_by(c, "u")), f"last_{c}": (sw.last(c), F.max_by(c, "u"))}
    for c in ("x", "f"):
        found |= {f"sum_{c}": (sw.sum(c), F.sum(c)), f"avg_{c}": (sw.avg(c), F.avg(c))}
    for name in ("product", "stddev", "stddev_pop", "variance", "var_pop"):
        found[name] = sw.AGGREGATES[name]("calm"), getattr(F, name)("calm")
    for c in ("i64", "apart", "d38_20", "wide", "day", "at", "local", "z"):
        # Ties go to the first row, where Spark takes any.
        by = F.when(F.col(c).isNotNull(), F.struct(c, "u"))
        found[f"min_by_{c}"] = sw.min_by("u", c), F.min_by("u", by)
    return found


def run(spark, workload, frame, on=True):
    with ansi(spark, on):
        return {(r["g"], r["query"], place(r)): r for r in plain_rows(workload.run(frame).toArrow())}


def place(row):
    return tuple(row["window"].values()), None if row["span"] is None else tuple(row["span"].values())


def workload_of(aggregates, names=tuple(WINDOWS)):
    workload = sw.Workload("ts", keys=["g"])
    for name in names:
        workload = workload.query(name, WINDOWS[name][0], **aggregates)
    return workload


def exact_totals(spark, frame, names=tuple(WINDOWS)):
    """Sums and averages over Spark's windows, from the values themselves."""
    lists = {c: F.collect_list(c) for c in SUMMED}
    found = grouped(frame, ["g"], {n: WINDOWS[n][1]() for n in names}, lists)
    expected = {}
    for row in plain_rows(found.toArrow()):
        answers = {n: total_of(a, row[a.columns[0]]) for n, a in TOTALS.items()}
        expected[row["g"], row["query"], (tuple(row["window"].values()), None)] = answers
    return expected


def total_of(aggregate, values):
    if values and isinstance(values[0], dt.timedelta) and isinstance(aggregate, sw.avg):
        total = sum(round(v / dt.timedelta(microseconds=1)) if abs(v.days) < 10**5 else micros(v) for v in values)
        return dt.timedelta(microseconds=half_up(total, len(values)))
    rows = [{aggregate.columns[0]: v} for v in values]
    return value_of(aggregate, rows, range(len(rows)))


def micros(v):
    return (v.days * 86_400 + v.seconds) * SECOND + v.microseconds


def half_up(total, n):
    quotient = (2 * abs(total) + n) // (2 * n)
    return quotient if total >= 0 else -quotient


def assert_as(found, expected, what):
    assert found.keys() == expected.keys(), what
    wrong = [
        (at, name, found[at][name], value)
        for at, answers in expected.items()
        for name, value in answers.items()
        if name in found[at] and not is_same(found[at][name], value)
    ]
    assert not wrong, f"{what}: {len(wrong)} values differ, in {sorted({w[1] for w in wrong})}: {wrong[:3]}"


@few
@given(st.integers(0, 2**32))
def test_totals_are_exact_on_every_route_whatever_ansi_says(spark, seed):
    frame = frame_of(spark, table_of(seed)).cache()
    expected = exact_totals(spark, frame)
    whole = {at: answers for at, answers in expected.items() if at[1] == "tumbling"}
    gathered = {"list": sw.collect_list("u"), **TOTALS}
    for on in (True, False):
        assert_as(run(spark, workload_of(NARROW, ["tumbling"]), frame, on), whole, f"whole windows, ANSI {on}")
        assert_as(run(spark, workload_of(TOTALS), frame, on), expected, f"slices, ANSI {on}")
    assert_as(run(spark, workload_of(gathered), frame), expected, "rows")
    frame.unpersist()


@few
@given(st.integers(0, 2**32))
def test_values_of_every_type_are_spark_s(spark, seed):
    frame = frame_of(spark, table_of(seed)).cache()
    aggregates = beside()
    found = run(spark, workload_of({n: a for n, (a, _) in aggregates.items()}), frame)
    functions = {n: f for n, (_, f) in aggregates.items()}
    expected = plain_rows(grouped(frame, ["g"], {n: w() for n, (_, w) in WINDOWS.items()}, functions).toArrow())
    spark_s = {(r["g"], r["query"], (tuple(r["window"].values()), None)): r for r in expected}
    fixed = ("g", "query", "window")
    assert_as(found, {at: {n: v for n, v in r.items() if n not in fixed} for at, r in spark_s.items()}, "values")
    frame.unpersist()


# Totals that do not fit

LARGE = {
    "bigint": (pa.int64(), 2**62, "a 64-bit integer", 2**63),
    "decimal": (pa.decimal128(38, 2), 6 * 10**37, "decimal128(38, 2)", decimal.Decimal("12" + "0" * 35 + ".00")),
    "duration": (pa.duration("us"), 2**62, "a 64-bit integer", 2**63),
}
WHOLE = sw.Workload("ts").query("q", sw.tumbling("10 seconds"), total=sw.sum("v"))
SLICES = WHOLE.query("r", sw.sliding("10 seconds", every="5 seconds"), n=sw.count("v"))


@pytest.mark.parametrize(("name", "workload"), [("bigint", WHOLE), *((name, SLICES) for name in LARGE)])
@pytest.mark.parametrize("on", [True, False], ids=["ANSI", "not ANSI"])
def test_a_window_whose_total_does_not_fit_is_an_error(spark, name, workload, on):
    type_, large, limit, total = LARGE[name]
    ts = pa.array([SECOND, 2 * SECOND]).cast(pa.timestamp("us", "UTC"))
    frame = frame_of(spark, pa.table({"ts": ts, "v": from_unscaled([large, large], type_)}))
    message = f"`sum` of column 'v' does not fit in {limit}: a window gives {total}; cast the column to a wider type"
    with ansi(spark, on), pytest.raises(PySparkException, match=re.escape(message)):
        workload.run(frame).toArrow()


# Keys

NAN = math.nan
KEYS = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 127, 0]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1, 0]),
    "float": (pa.float32(), [0.0, -0.0, NAN, math.inf, -math.inf, 1.5]),
    "double": (pa.float64(), [0.0, -0.0, NAN, math.inf, -math.inf, 5e-324]),
    "decimal": (
        pa.decimal128(38, 2),
        [decimal.Decimal(0), decimal.Decimal("9" * 36 + ".99"), decimal.Decimal("-0.01")],
    ),
    "string": (pa.string(), WORDS),
    "binary": (pa.binary(), [b"", b"\0", b"ab"]),
    "date": (pa.date32(), [dt.date.min, dt.date.max, dt.date(1970, 1, 1)]),
    "timestamp": (pa.timestamp("us", "UTC"), [dt.datetime.min, dt.datetime(9999, 12, 31), dt.datetime(1970, 1, 1)]),
    "local": (pa.timestamp("us"), [dt.datetime.min, dt.datetime.max, dt.datetime(1970, 1, 1)]),
    "duration": (pa.duration("us"), [dt.timedelta(0), dt.timedelta(-1), dt.timedelta(106_751_991)]),
    "doubles": (pa.list_(pa.float64()), [[], [0.0], [-0.0], [NAN], [None], [0.0, -0.0], [-0.0, 0.0], [1.0]]),
    "floats": (pa.list_(pa.list_(pa.float32())), [[[0.0]], [[-0.0]], [[]], [None], [[NAN], [None]], []]),
    "struct": (
        pa.struct([("a", pa.float64()), ("b", pa.list_(pa.float32()))]),
        [{"a": a, "b": b} for a in (0.0, -0.0, NAN, None) for b in ([0.0], [-0.0], None)],
    ),
    "structs": (
        pa.list_(pa.struct([("a b", pa.float64()), ("s", pa.string())])),
        [[{"a b": 0.0, "s": "x"}], [{"a b": -0.0, "s": "x"}], [{"a b": None, "s": None}], [None], []],
    ),
    "stamps": (pa.list_(pa.timestamp("us")), [[dt.datetime.min], [dt.datetime.max, None], []]),
}


def keys_table(seed, rows=150):
    """Rows for each type of key: ``kind`` says which column holds the key of a row, all others are null."""
    rng = np.random.default_rng(seed)
    kinds = np.repeat(np.arange(len(KEYS)), rows)
    n = len(kinds)
    arrays = {"ts": pa.array(rng.permutation(n)), "u": pa.array(np.arange(n)), "kind": pa.array(kinds)}
    for kind, (name, (type_, pool)) in enumerate(KEYS.items()):
        chosen = rng.integers(-1, len(pool), n)
        keys = [
            pool[i] if at == kind and i >= 0 else None for i, at in zip(chosen.tolist(), kinds.tolist(), strict=True)
        ]
        arrays[name] = pa.array(keys, type_)
    return pa.table(arrays).take(rng.permutation(n))


NAMES = ["kind", *KEYS]
#: One query per route, of windows that hold all rows of a key, and one of windows that count them.
BY_KEY = (
    sw.Workload("ts", keys=NAMES)
    .query("slices", sw.tumbling(10**6), n=sw.count(), total=sw.sum("u"))
    .query("rows", sw.tumbling(10**6), n=sw.count(), total=sw.sum("u"), all=sw.collect_list("ts"))
    .query("counts", sw.tumbling(sw.rows(8)), n=sw.count())
    .query("each", sw.tumbling(sw.rows(1)), n=sw.count(), total=sw.sum("u"))
)


def groups_of(rows):
    """How many rows there are of each key, and their total; keys as they are shown, so that -0.0 is not 0.0."""
    found = {}
    for row in rows:
        key = repr([row[name] for name in NAMES])
        n, total = found.get(key, (0, 0))
        found[key] = n + row["n"], total + (row["total"] or 0)
    return found


def assert_spark_s_groups(rows, expected, queries):
    for query in queries:
        groups = groups_of(row for row in rows if row["query"] == query)
        if query == "counts":
            assert {k: n for k, (n, _) in groups.items()} == {k: n - n % 8 for k, (n, _) in expected.items() if n >= 8}
        else:
            assert groups == expected, query


def spark_s_groups(frame):
    functions = [F.lit("spark").alias("query"), F.count(F.lit(1)).alias("n"), F.sum("u").alias("total")]
    return groups_of(plain_rows(frame.groupBy(*NAMES).agg(*functions).toArrow()))


@few
@given(st.integers(0, 2**32))
def test_keys_of_every_type_are_spark_s_groups_on_every_route(spark, seed):
    frame = frame_of(spark, keys_table(seed)).cache()
    assert_spark_s_groups(
        plain_rows(BY_KEY.run(frame).toArrow()), spark_s_groups(frame), [q.name for q in BY_KEY.queries]
    )
    frame.unpersist()


@pytest.mark.streams
def test_keys_of_every_type_are_spark_s_groups_on_streams(spark):
    table = keys_table(1)
    # Lists without anything in them first: Spark's F.transform fails on Parquet files that hold no others.
    known = [any("." in repr(row[c]) for c in ("doubles", "floats", "structs")) for row in table.to_pylist()]
    table = table.take(np.argsort(known, kind="stable"))
    empty = len(known) - sum(known)
    far = table.take([0]).set_column(0, "ts", pa.array([10**7]))
    batches = [
        frame_of(spark, t) for t in (table.take(np.arange(empty)), table.take(np.arange(empty, len(table))), far)
    ]
    # Two micro-batches report nothing.
    workload = dataclasses.replace(BY_KEY, watermark=10**6)
    rows = plain_rows(sw.testing.stream(batches, workload, partitions=3).toArrow())
    kept = [row for row in rows if row["window"]["start"] < 10**6]
    assert_spark_s_groups(kept, spark_s_groups(frame_of(spark, table)), [q.name for q in BY_KEY.queries])


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        ("string collate UTF8_LCASE", ["k"]),
        ("array<string collate UNICODE_CI>", ["k"]),
        ("struct<a: int, b: string collate UTF8_LCASE>", ["k"]),
        ("string collate UTF8_LCASE", []),
    ],
)
def test_strings_with_a_collation_are_refused(spark, type_, keys):
    frame = spark.createDataFrame([], f"ts bigint, k {type_}")
    what = "key column" if keys else "column"
    message = (
        f"{what} 'k' is of type {frame.schema['k'].dataType.simpleString()}, and slicewise compares strings by their "
        "bytes, not by a collation; say how they compare: df.withColumn('k', F.col('k').cast('string')) for bytes, "
        "F.lower('k').cast('string') for regardless of capitals"
    )
    aggregates = {"n": sw.count()} if keys else {"top": sw.max("k")}
    with pytest.raises(sw.DataError, match=re.escape(message)):
        sw.Workload("ts", keys=keys).query("q", sw.tumbling(10), **aggregates).run(frame)


def test_strings_with_a_collation_that_nobody_reads_are_left_alone(spark):
    frame = spark.createDataFrame([(1, "a"), (None, "A")], "ts bigint, k string collate UTF8_LCASE")
    found = sw.Workload("ts").query("q", sw.tumbling(10), n=sw.count()).run(frame, late="collect")
    assert sorted((r.n or 0, r.late.k if r.late else None) for r in found.collect()) == [(0, "A"), (1, None)]
    by_bytes = frame.withColumn("k", F.col("k").cast("string"))
    assert sw.Workload("ts", keys=["k"]).query("q", sw.tumbling(10), n=sw.count()).run(by_bytes).count() == 1
