"""Types and names: every kind of time and key, the schema of results, and columns called whatever people call them."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark.spark_own import assert_equal, plain_rows

FIXED = "query:string,window:struct<start:{0},end:{0}>,span:struct<start:double,end:double>,change:string,revision:int"


@pytest.fixture(scope="module")
def rows(spark):
    n = F.col("id")
    frame = spark.range(60).select(
        F.timestamp_seconds(n - 20).alias("ts"),
        (n - 20).alias("at"),
        F.when(n % 4 > 0, n % 4).alias("k"),
        (n * 7 % 11).alias("v"),
        n.alias("u"),
    )
    return frame.repartition(3).cache()


# Time


@pytest.mark.parametrize(
    ("time", "unit", "window", "bounds"),
    [
        ("ts", None, sw.tumbling("10 seconds"), "timestamp"),
        ("cast(ts as timestamp_ntz)", None, sw.tumbling("10 seconds"), "timestamp_ntz"),
        ("date_add(date'2024-03-01', cast(at as int))", None, sw.tumbling("10 days"), "timestamp"),
        ("at", None, sw.tumbling(10), "bigint"),
        ("cast(at as int)", None, sw.tumbling(10), "bigint"),
        ("cast(at as tinyint)", None, sw.tumbling(10), "bigint"),
        ("cast(at as tinyint)", "seconds", sw.tumbling("10 seconds"), "timestamp_ntz"),
        ("at * 1000", "milliseconds", sw.tumbling("10 seconds"), "timestamp_ntz"),
        ("at * 1000000", "microseconds", sw.tumbling("10 seconds"), "timestamp_ntz"),
        ("at * 1000000000", "nanoseconds", sw.tumbling("10 seconds"), "timestamp_ntz"),
    ],
)
def test_every_kind_of_time_gives_the_same_windows(rows, time, unit, window, bounds):
    frame = rows.withColumn("when", F.expr(time))
    workload = (
        sw.Workload("when", keys=["k"], unit=unit)
        .query("one", window, total=sw.sum("v"), first=sw.first("u"))
        .query("two", window, listed=sw.collect_list("u"), total=sw.sum("v"))
    )
    found = workload.run(frame)
    assert found.schema.simpleString() == (
        f"struct<k:bigint,{FIXED.format(bounds)},total:bigint,first:bigint,listed:array<bigint>>"
    )
    # 2024-03-01 is day 19783; windows of ten days are counted from 1970-01-01.
    ten = F.floor((F.col("at") + (19783 if "date" in time else 0)) / 10)
    expected = rows.groupBy("k", ten).agg(F.sum("v").alias("total"), F.min("u").alias("first"))
    both = found.where("query = 'one'").select("k", "total", "first")
    assert sorted(map(str, both.collect())) == sorted(map(str, expected.select("k", "total", "first").collect()))
    starts = [r["start"] for r in plain_rows(found.where("query = 'one'").select("window.start").toArrow())]
    length = {"bigint": 10, "timestamp": 10_000_000, "timestamp_ntz": 10_000_000}[bounds]
    length *= 86_400 if "date" in time else 1
    assert all(start % length == 0 for start in starts)
    at = [r.at for r in rows.select("at").collect()]
    if "date" not in time:
        assert set(starts) == {n // 10 * length for n in at}
    listed = found.where("query = 'two'").select(F.sort_array("listed")[0].alias("first"), "total").collect()
    assert {(r["first"], r.total) for r in listed} == {(r["first"], r.total) for r in expected.collect()}


def test_one_tumbling_window_of_each_kind_of_time_has_the_same_schema(rows):
    frame = rows.withColumn("local", F.expr("cast(ts as timestamp_ntz)"))
    for time, unit, window, bounds in (
        ("ts", None, sw.tumbling("10 seconds"), "timestamp"),
        ("local", None, sw.tumbling("10 seconds"), "timestamp_ntz"),
        ("at", None, sw.tumbling(10), "bigint"),
        ("at", "seconds", sw.tumbling("10 seconds"), "timestamp_ntz"),
        ("at", "seconds", sw.tumbling(10), "timestamp_ntz"),
    ):
        found = sw.Workload(time, keys=["k"], unit=unit).query("q", window, n=sw.count(), mean=sw.avg("v")).run(frame)
        assert found.schema.simpleString() == f"struct<k:bigint,{FIXED.format(bounds)},n:bigint,mean:double>"


def test_windows_on_other_measures_have_times_and_spans(rows):
    found = sw.Workload("ts").query("q", sw.sliding(sw.rows(20), every=sw.rows(20)), n=sw.count()).run(rows)
    assert found.schema.simpleString() == f"struct<{FIXED.format('timestamp')},n:bigint>"
    assert plain_rows(found.orderBy("window").toArrow()) == [
        {
            "query": "q",
            "window": {"start": (at - 20) * 1_000_000, "end": (at - 1) * 1_000_000},
            "span": {"start": at, "end": at + 20.0},
            "change": "insert",
            "revision": 0,
            "n": 20,
        }
        for at in (0.0, 20.0, 40.0)
    ]


def test_rows_without_a_time_are_given_back(spark):
    schema = "t bigint, `my key` string, v int"
    frame = spark.createDataFrame([(1, "a", 1), (None, "a", 2), (2**62, None, 3), (-(2**63), "b", 4)], schema)
    workload = sw.Workload("t", keys=["my key"]).query("q", sw.tumbling(10), n=sw.count())
    assert workload.run(frame).count() == 1
    found = workload.run(frame, late="collect")
    assert found.schema.simpleString() == (
        f"struct<my key:string,{FIXED.format('bigint')},n:bigint,late:struct<t:bigint,my key:string,v:int>,"
        "reason:string>"
    )
    assert {(r.change, r.reason) for r in found.collect()} == {("insert", None), ("late", "no event time")}
    late = found.where("change = 'late'").orderBy("late.v").collect()
    assert [(r["my key"], r.late.t, r.late.v, r.n, r.window) for r in late] == [
        ("a", None, 2, None, None),
        (None, 2**62, 3, None, None),
        ("b", -(2**63), 4, None, None),
    ]


def test_a_date_further_away_than_timestamps_is_no_event_time(spark):
    frame = spark.createDataFrame([(0,), (2**31 - 1,), (-(2**31),)], "n int")
    frame = frame.select(F.date_from_unix_date("n").alias("day"))
    (row,) = sw.Workload("day").query("q", sw.tumbling("1 day"), n=sw.count()).run(frame).select("n").collect()
    assert row.n == 1


# Keys

NAN = math.nan
KEYS = "a double, b float, c struct<x: double, y: string>, d decimal(5, 2), e boolean, f binary, g date, h array<int>"
KEYS += ", i tinyint"


def test_keys_of_every_type_and_null_ones(spark):
    same = (0.0, 1.5, (0.0, "x"), None, True, b"\x00", dt.date(1969, 1, 1), [1, None], 3)
    other = (NAN, NAN, (None, None), None, None, None, None, None, None)
    keys = [same, other, (-0.0, 1.5, (-0.0, "x"), *same[3:]), (NAN, *other[1:])]
    for place, value in enumerate([NAN, None, None, 7, False, b"", dt.date(1970, 1, 1), [1], None]):
        keys.append((*same[:place], value, *same[place + 1 :]))
    keys.append((*same[:7], [], 3))
    schema = pa.schema([("ts", pa.int64())] + list(zip("abcdefghi", _key_types(), strict=True)))
    data = [dict(zip("abcdefghi", key, strict=True)) | {"ts": i % 7} for i, key in enumerate(keys * 3)]
    for row in data:
        row["c"] = None if row["c"] is None else dict(zip("xy", row["c"], strict=True))
    frame = spark.createDataFrame(pa.Table.from_pylist(data, schema=schema), schema=f"ts bigint, {KEYS}").repartition(4)
    names = list("abcdefghi")
    expected = frame.groupBy(*names).agg(F.count(F.lit(1)).alias("n"))
    for aggregates in ({"n": sw.count()}, {"n": sw.count(), "gathered": sw.collect_list("ts")}):
        found = sw.Workload("ts", keys=names).query("q", sw.sliding(100, every=100), **aggregates)
        assert assert_equal(found.run(frame), expected, names) == 12
        found = found.query("visit", sw.session(10), m=sw.count()).run(frame)
        assert assert_equal(found.where("query = 'visit'").withColumn("n", F.col("m")), expected, names) == 12


def _key_types():
    struct = pa.struct([("x", pa.float64()), ("y", pa.string())])
    return [pa.float64(), pa.float32(), struct, pa.decimal128(5, 2), pa.bool_(), pa.binary(), pa.date32()] + [
        pa.list_(pa.int32()),
        pa.int8(),
    ]


def test_keys_that_are_always_null(rows):
    frame = rows.withColumn("nothing", F.lit(None)).withColumn("text", F.lit(None).cast("string"))
    workload = sw.Workload("ts", keys=["nothing", "text"]).query("q", sw.session("5 seconds"), n=sw.count())
    assert [(r.nothing, r.text, r.n) for r in workload.run(frame).collect()] == [(None, None, 60)]


def test_values_that_cannot_be_compared(rows):
    frame = rows.select(
        "ts",
        "u",
        F.create_map(F.lit("u"), F.col("u")).alias("map"),
        F.array(F.struct(F.col("u").alias("a"), F.lit("x").alias("b"))).alias("nested"),
    )
    windows = {"slices": sw.sliding("10 seconds", every="5 seconds"), "rows": sw.tumbling(sw.rows(9))}
    for window in windows.values():
        picks = {"first": sw.first("map"), "last": sw.last("map"), "best": sw.max_by("map", "u")}
        picks |= {"worst": sw.min_by("map", "u"), "one": sw.first("nested"), "low": sw.min("u"), "high": sw.max("u")}
        gathered = {"all": sw.collect_list("map"), "each": sw.collect_list("nested"), "us": sw.collect_list("u")}
        workload = sw.Workload("ts").query("p", window, **picks).query("g", window, **gathered)
        for row in workload.run(frame).collect():
            if row.query == "p":
                assert [row[n]["u"] for n in ("first", "last", "best", "worst")] == [
                    row.low,
                    row.high,
                    row.high,
                    row.low,
                ]
                assert [tuple(item) for item in row.one] == [(row.low, "x")]
            else:
                assert [m["u"] for m in row.all] == row.us == [n[0].a for n in row.each]


# Names

AWKWARD = ["a b", "a.b", "a`b", "`", "class", "_x", "t", "cell", "k0", "c0", "v0", "p0", "first", "rows", "number"]
AWKWARD += [
    "query",
    "window",
    "span",
    "change",
    "revision",
    "late",
    "ä",
    "Select",
    "*",
    "0",
    "start",
    "end",
    "span_start",
]


@pytest.mark.parametrize("shift", [0, 17])
def test_columns_may_be_called_anything(spark, shift):
    names = AWKWARD[shift:] + AWKWARD[:shift]
    free = [n for n in names if n not in ("query", "window", "span", "change", "revision")]
    keys, (time, a, b, order) = free[:3], [n for n in names if n not in free[:3]][:4]
    results = [n for n in free if n not in keys][-6:]
    given = [*keys, time, a, b, order]
    n = F.col("id")
    values = [n % 2, n % 3, n % 5, F.timestamp_seconds(n % 40), n * 3 % 17, n * 5 % 13, n]
    frame = spark.range(120).select(*(v.alias(name) for v, name in zip(values, given, strict=True))).repartition(2)
    computed = [sw.sum(a), sw.max_by(b, order), sw.first(b), sw.median(a), sw.collect_list(b), sw.count()]
    named = dict(zip(results, computed, strict=True))
    workload = (
        sw.Workload(time, keys=keys, order=[order])
        .query("a b", sw.sliding("20 seconds", every="10 seconds"), **dict(list(named.items())[:3]))
        .query("`", sw.session("9 seconds"), **dict(list(named.items())[3:]))
        .query("q'\"\\", sw.tumbling(sw.rows(3)), **{results[0]: sw.sum(a)})
    )
    plain = frame.toDF("k", "l", "m", "ts", "a", "b", "o")
    standard = (
        sw.Workload("ts", keys=["k", "l", "m"], order=["o"])
        .query(
            "a b",
            sw.sliding("20 seconds", every="10 seconds"),
            x0=sw.sum("a"),
            x1=sw.max_by("b", "o"),
            x2=sw.first("b"),
        )
        .query("`", sw.session("9 seconds"), x3=sw.median("a"), x4=sw.collect_list("b"), x5=sw.count())
        .query("q'\"\\", sw.tumbling(sw.rows(3)), x0=sw.sum("a"))
        .run(plain)
    )
    found = workload.run(frame)
    assert found.columns == [*keys, "query", "window", "span", "change", "revision", *results]
    renamed = found.toDF(*standard.columns)
    assert assert_equal(renamed, standard, ["k", "l", "m", "query", "window", "span"]) > 100
    kept = sw.only(found, "`")
    assert kept.columns == [*keys, "window", "span", "change", "revision", *results[3:]]
    assert sw.latest(found).columns == [*keys, "query", "window", "span", *results]
    assert sw.latest(found).count() == found.count()


@pytest.mark.parametrize(
    ("keys", "aggregates", "message"),
    [
        (
            ["Query"],
            {"n": sw.count()},
            "the results would have columns 'Query' and 'query', which Spark takes for the same name",
        ),
        (
            [],
            {"n": sw.count(), "N": sw.sum("v")},
            "the results would have columns 'n' and 'N', which Spark takes for the same name",
        ),
        (["k"], {"K": sw.count()}, "the results would have columns 'k' and 'K', which Spark takes for the same name"),
        (
            [],
            {"n": sw.sum("w")},
            "the DataFrame has columns 'w' and 'W', which Spark takes for the same name; rename one of",
        ),
    ],
)
def test_names_that_spark_takes_for_one_are_refused(rows, keys, aggregates, message):
    frame = rows.select("*", F.col("k").alias("Query"), F.col("v").alias("w"), F.col("u").alias("W"))
    with pytest.raises(sw.DataError, match=message):
        sw.Workload("ts", keys=keys).query("q", sw.tumbling("1 second"), **aggregates).run(frame)


def test_names_may_differ_in_capitals_where_spark_looks_at_them(spark, rows):
    frame = rows.select("ts", "v", F.col("u").alias("V"))
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        workload = sw.Workload("ts").query("q", sw.session("1 minute"), n=sw.sum("v"), N=sw.sum("V"))
        (row,) = workload.run(frame).select("n", "N").collect()
        assert tuple(row) == (sum(n * 7 % 11 for n in range(60)), sum(range(60)))
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


# What people do next


@pytest.fixture(scope="module")
def workload():
    return (
        sw.Workload("ts", keys=["k"])
        .query("short", sw.tumbling("10 seconds"), total=sw.sum("v"), n=sw.count())
        .query("visit", sw.session("3 seconds"), pages=sw.collect_list("u"), n=sw.count())
    )


def test_results_are_a_dataframe_like_any_other(spark, rows, workload, tmp_path):
    found = rows.transform(workload.run)
    assert found.schema == workload.run(rows).schema
    totals = {r.query: r.n for r in found.groupBy("query").agg(F.sum("n").alias("n")).collect()}
    assert totals == {"short": 60, "visit": 60}
    found.createOrReplaceTempView("found")
    (row,) = spark.sql(
        "select sum(n) as n from found where query = 'short' and window.start >= timestamp'1970-01-01 00:00:00 UTC'"
    ).collect()
    assert row.n == 40
    names = spark.createDataFrame([(1, "one"), (2, "two")], "k long, name string")
    joined = found.where("query = 'short'").join(names, "k").groupBy("name").agg(F.sum("n").alias("n"))
    assert {r.name: r.n for r in joined.collect()} == {"one": 15, "two": 15}
    path = str(tmp_path / "results")
    found.write.parquet(path)
    again = spark.read.parquet(path)
    place = ["k", "query", "window"]
    assert_equal(again, found, place)
    assert_equal(sw.only(again, "visit"), sw.only(found, "visit"), ["k", "window"])
    assert_equal(sw.latest(again), found.drop("change", "revision"), place)


def test_only_knows_the_columns_of_a_query(rows, workload):
    found = workload.run(rows)
    assert sw.only(found, "short").columns == ["k", "window", "span", "change", "revision", "total", "n"]
    assert sw.only(found, "visit").columns == ["k", "window", "span", "change", "revision", "pages", "n"]
    assert sw.only(found, "visit").agg(F.sum("n")).collect()[0][0] == 60
    lost = found.withColumn("query", F.upper("query"))
    with pytest.raises(
        sw.DataError, match="these results no longer know which columns belong to which query; name the workload: only"
    ):
        sw.only(lost, "VISIT")
    assert sw.only(found.withColumn("query", F.concat("query")), "visit", workload).columns[-2:] == ["pages", "n"]
    with pytest.raises(sw.DataError, match="there is no query 'visits' in the results; did you mean 'visit'"):
        sw.only(found, "visits")
    for function in (sw.latest, lambda frame: sw.only(frame, "visit")):
        with pytest.raises(sw.DataError, match="these are not results of a workload: there is no column 'query'"):
            function(rows)


def test_latest_keeps_the_last_revision_of_what_was_not_withdrawn(spark, rows):
    made = sw.Workload("ts").query("q", sw.tumbling("1 minute"), n=sw.count()).run(rows)
    at = [dt.datetime(2024, 1, 1, hour) for hour in range(4)]
    said = [
        ("q", (at[0], at[1]), None, "insert", 0, 1),
        ("q", (at[0], at[1]), None, "update", 1, 5),
        ("q", (at[1], at[2]), None, "insert", 0, 2),
        ("q", (at[1], at[2]), None, "retract", 1, None),
        ("q", (at[2], at[3]), (0.0, 5.0), "insert", 0, 3),
        ("q", (at[2], at[3]), (5.0, 9.0), "insert", 0, 4),
        ("r", (at[1], at[2]), None, "retract", 0, None),
        ("r", (at[1], at[2]), None, "insert", 1, 6),
    ]
    results = spark.createDataFrame(said, made.schema.simpleString())
    assert [tuple(r) for r in sw.latest(results).select("query", "n").orderBy("n").collect()] == [
        ("q", 3),
        ("q", 4),
        ("q", 5),
        ("r", 6),
    ]
