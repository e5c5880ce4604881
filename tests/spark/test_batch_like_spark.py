"""Spark's answers are right: tumbling, sliding and session windows, and OVER frames, equal to the last row."""

from __future__ import annotations

from functools import reduce

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark import data
from tests.spark.running import setting
from tests.spark.spark_own import assert_equal, grouped, over_rows, session, sliding, tumbling

WINDOWS = {
    "tumbling": lambda: tumbling("10 seconds"),
    "tumbling, moved": lambda: tumbling("7 seconds", "2 seconds"),
    "sliding": lambda: sliding("10 seconds", "5 seconds"),
    "sliding, slides do not divide the length": lambda: sliding("10 seconds", "3 seconds"),
    "sliding, moved": lambda: sliding("7 seconds", "2 seconds", "1500 milliseconds"),
    "sliding, far": lambda: sliding("60 seconds", "4 seconds"),
    "session": lambda: session("3 seconds"),
    "session, short": lambda: session("250 milliseconds"),
}


def in_order():
    """What makes the order of rows complete."""
    return F.struct("ts", "u")


#: Aggregates that the JVM slices, each beside Spark's function.
SLICED = {
    "n": (sw.count(), lambda: F.count(F.lit(1))),
    "n_i": (sw.count("i"), lambda: F.count("i")),
    "n_s": (sw.count("s"), lambda: F.count("s")),
    "sum_i": (sw.sum("i"), lambda: F.sum("i")),
    "sum_x": (sw.sum("x"), lambda: F.sum("x")),
    "sum_f": (sw.sum("f"), lambda: F.sum("f")),
    "sum_d": (sw.sum("d"), lambda: F.sum("d")),
    "sum_huge": (sw.sum("huge"), lambda: F.sum("huge")),
    "sum_small": (sw.sum("small"), lambda: F.sum("small")),
    "avg_i": (sw.avg("i"), lambda: F.avg("i")),
    "avg_x": (sw.avg("x"), lambda: F.avg("x")),
    "avg_d": (sw.avg("d"), lambda: F.avg("d")),
    "avg_f": (sw.avg("f"), lambda: F.avg("f")),
    "product": (sw.product("positive"), lambda: F.product("positive")),
    "product_small": (sw.product("small"), lambda: F.product("small")),
    "stddev": (sw.stddev("i"), lambda: F.stddev("i")),
    "stddev_pop": (sw.stddev_pop("x"), lambda: F.stddev_pop("x")),
    "variance": (sw.variance("d"), lambda: F.variance("d")),
    "var_pop": (sw.var_pop("f"), lambda: F.var_pop("f")),
    "max_by": (sw.max_by("s", "u"), lambda: F.max_by("s", "u")),
    "min_by": (sw.min_by("x", "u"), lambda: F.min_by("x", "u")),
    "first_s": (sw.first("s"), lambda: F.min_by("s", in_order())),
    "last_x": (sw.last("x"), lambda: F.max_by("x", in_order())),
    "first_day": (sw.first("day"), lambda: F.min_by("day", in_order())),
    "last_at": (sw.last("at"), lambda: F.max_by("at", in_order())),
}
for _column in ("i", "x", "f", "d", "s", "z", "y", "day", "at", "local", "small", "huge"):
    SLICED[f"min_{_column}"] = sw.min(_column), lambda c=_column: F.min(c)
    SLICED[f"max_{_column}"] = sw.max(_column), lambda c=_column: F.max(c)


def listed(column: str):
    """Spark's collect_list, made to go by event time."""
    rows = F.sort_array(F.collect_list(F.when(F.col(column).isNotNull(), F.struct("ts", "u", column))))
    return F.transform(rows, lambda row: row[column])


#: Aggregates that Python computes from the rows.
GATHERED = {
    "median_i": (sw.median("i"), lambda: F.median("i")),
    "median_f": (sw.median("f"), lambda: F.median("f")),
    "median_d": (sw.median("d"), lambda: F.median("d")),
    "percentile": (sw.percentile("i", 0.9), lambda: F.percentile("i", F.lit(0.9))),
    "percentiles": (
        sw.percentile("small", [0.0, 0.3, 1.0]),
        lambda: F.percentile("small", F.array(F.lit(0.0), F.lit(0.3), F.lit(1.0))),
    ),
    "list_s": (sw.collect_list("s"), lambda: listed("s")),
    "list_x": (sw.collect_list("x"), lambda: listed("x")),
    "list_day": (sw.collect_list("day"), lambda: listed("day")),
    "set_i": (sw.collect_set("i"), lambda: F.sort_array(F.collect_set("i"))),
    "set_x": (sw.collect_set("x"), lambda: F.sort_array(F.collect_set("x"))),
    "set_s": (sw.collect_set("s"), lambda: F.sort_array(F.collect_set("s"))),
    "set_d": (sw.collect_set("d"), lambda: F.sort_array(F.collect_set("d"))),
    "set_y": (sw.collect_set("y"), lambda: F.sort_array(F.collect_set("y"))),
    "max_by_text": (sw.max_by("u", "text"), lambda: F.max_by("u", "text")),
}


def workload_of(keys, windows, aggregates, order=("u",)):
    workload = sw.Workload("ts", keys=list(keys), order=list(order))
    for name, (window, _) in windows.items():
        workload = workload.query(name, window, **{n: a for n, (a, _) in aggregates.items()})
    return workload


def assert_as_spark(frame, keys, windows, aggregates, order=("u",)):
    windows = {name: make() for name, make in windows.items()}
    found = workload_of(keys, windows, aggregates, order).run(frame)
    functions = {n: make() for n, (_, make) in aggregates.items()}
    expected = grouped(frame, keys, {n: w for n, (_, w) in windows.items()}, functions)
    return assert_equal(found, expected, [*keys, "query", "window"])


@pytest.fixture(scope="module")
def rows(spark):
    frame = data.frame_of(spark, data.random_rows(1000, seed=1)).cache()
    yield frame
    frame.unpersist()


@pytest.fixture(scope="module")
def few(spark):
    frame = (
        data.frame_of(spark, data.random_rows(300, seed=2))
        .withColumn("text", F.format_string("%05d", F.col("u") + 1000))
        .cache()
    )
    yield frame
    frame.unpersist()


@pytest.mark.matrix
def test_every_window_with_every_sliced_aggregate(rows):
    assert assert_as_spark(rows, ["k"], WINDOWS, SLICED) > 1000


def test_percentiles_of_integers_that_are_far_apart(spark):
    """Spark makes doubles of integers before it subtracts them, so that they do not wrap around."""
    ends = [-(2**63), -(2**63) + 1, -(2**62) - 1, -1, 0, 1, 2**53 + 1, 2**62 + 5, 2**63 - 1]
    pairs = [(f"{i} {j}", v) for i, a in enumerate(ends) for j, b in enumerate(ends[: i + 1]) for v in (a, b)]
    frame = spark.createDataFrame(pairs, "k string, v bigint").withColumn("ts", F.timestamp_seconds(F.lit(1)))
    frame = frame.withColumn("w", F.col("v").cast("decimal(20, 0)"))
    shares = [0.0, 0.1, 0.37, 0.5, 1.0]
    wanted = F.array(*map(F.lit, shares))
    aggregates = {
        "middle": (sw.median("v"), lambda: F.median("v")),
        "shares": (sw.percentile("v", shares), lambda: F.percentile("v", wanted)),
        "exact": (sw.percentile("w", shares), lambda: F.percentile("w", wanted)),
    }
    windows = {name: WINDOWS[name] for name in ("tumbling", "session")}
    assert assert_as_spark(frame, ["k"], windows, aggregates, order=()) == 2 * 45


def test_every_window_with_every_gathered_aggregate(few):
    assert assert_as_spark(few, ["k", "j"], WINDOWS, GATHERED) > 1000


@pytest.mark.matrix
def test_one_tumbling_window_with_every_plain_function(rows):
    plain = {n: a for n, a in SLICED.items() if a[0].name in ("count", "sum", "avg", "min", "max", "product", "stddev")}
    for keys in (["k", "j"], []):
        assert assert_as_spark(rows, keys, {"moved": WINDOWS["tumbling, moved"]}, plain, order=()) > 20


def test_one_tumbling_window_with_a_pick(rows):
    aggregates = {n: SLICED[n] for n in ("max_by", "first_s", "last_x")}
    assert_as_spark(rows, ["k"], {"tumbling": WINDOWS["tumbling"]}, aggregates)


def test_without_keys(rows):
    aggregates = {n: SLICED[n] for n in ("n", "sum_x", "max_s", "stddev", "first_s")}
    windows = {n: WINDOWS[n] for n in ("tumbling, moved", "sliding, moved", "session, short")}
    assert_as_spark(rows, [], windows, aggregates)


BY = {"u": "u", "double": "u / 7", "float": "cast(u / 8 as float)", "decimal": "cast(u / 4 as decimal(20, 3))"}
BY |= {"date": "date_add(date'1970-01-01', cast(u as int))", "instant": "timestamp_micros(u * 1000003)"}
BY |= {"local": "cast(timestamp_micros(u * 1000003) as timestamp_ntz)", "text": "format_string('%05d', u + 1000)"}
BY |= {
    "bytes": "cast(format_string('%05d', u + 1000) as binary)",
    "tiny": "cast(if(u between -99 and 99, u, null) as tinyint)",
}
BY |= {"apart": "make_dt_interval(0, 0, 0, u)", "truth": "u = 3"}


def test_the_largest_and_smallest_by_every_type(rows):
    frame = rows.withColumns({f"by_{name}": F.expr(said) for name, said in BY.items()})
    frame = frame.withColumn("by_nan", F.when(F.col("u") == 5, F.lit(float("nan"))).otherwise(F.col("u") / 3))
    aggregates = {}
    for name in (*BY, "nan"):
        by = f"by_{name}"
        # First on ties, where Spark takes any: only for truth values are there any here.
        order = [F.col(by), F.struct("ts", "u")]
        smallest = F.min_by("s", F.when(F.col(by).isNotNull(), F.struct(*order)))
        aggregates[f"min_{name}"] = sw.min_by("s", by), lambda e=smallest: e
        if name != "truth":
            aggregates[f"max_{name}"] = sw.max_by("s", by), lambda by=by: F.max_by("s", by)
    aggregates["max_truth"] = (
        sw.max_by("s", "by_truth"),
        lambda: F.min_by("s", F.when(F.col("by_truth").isNotNull(), F.struct(~F.col("by_truth"), "ts", "u"))),
    )
    windows = {n: WINDOWS[n] for n in ("sliding, moved", "session")}
    assert_as_spark(frame, ["k"], windows, aggregates)


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"])
def test_daylight_saving_time(spark, zone):
    # Instants around the nights in which clocks change, and local times that do not exist or exist twice.
    with setting(spark, "spark.sql.session.timeZone", zone):
        minutes = spark.range(0, 2 * 24 * 60, 17).select("id")
        nights = [
            f"timestamp'{night} 20:00:00 UTC'" for night in ("2024-03-09", "2024-11-02", "2024-04-06", "1969-12-31")
        ]
        at = F.array(*(F.expr(f"unix_micros({night})") for night in nights))
        frame = minutes.select(
            F.explode(at).alias("base"), (F.col("id") % 3).alias("k"), F.col("id").alias("u"), F.col("id").alias("v")
        ).withColumn("us", F.col("base") + F.col("u") * 60 * data.SECOND)
        local = "timestamp_ntz'1970-01-01' + make_dt_interval(0, 0, 0, cast(us / 1000000 as decimal(18, 6)))"
        frames = {
            "timestamp": frame.withColumn("ts", F.timestamp_micros("us")),
            "local": frame.withColumn("ts", F.expr(local)),
            "date": frame.withColumn("ts", F.to_date(F.timestamp_micros("us"))),
        }
        windows = {
            "hour": lambda: tumbling("1 hour"),
            "day": lambda: tumbling("1 day"),
            "sliding": lambda: sliding("90 minutes", "20 minutes", "5 minutes"),
            "session": lambda: session("40 minutes"),
        }
        aggregates = {
            "n": (sw.count(), lambda: F.count(F.lit(1))),
            "first": (sw.first("v"), lambda: F.min_by("v", in_order())),
            "last_ts": (sw.max("ts"), lambda: F.max("ts")),
            "middle": (sw.median("v"), lambda: F.median("v")),
        }
        for made in frames.values():
            assert_as_spark(made, ["k"], windows, aggregates)
            assert_as_spark(made, ["k"], {"day": windows["day"]}, {"n": aggregates["n"]}, order=())


# Frames


@pytest.mark.matrix
def test_windows_of_rows_are_over_frames(rows):
    names = ("n", "n_i", "sum_i", "sum_x", "sum_d", "avg_i", "min_s", "max_x", "stddev", "max_by", "max_day")
    aggregates = {n: a for n, (a, _) in SLICED.items() if n in names}
    functions = {n: SLICED[n][1]() for n in names}
    functions |= {"first": F.first("s"), "last": F.last("x"), "all": F.collect_list("i")}
    aggregates |= {"first": sw.first("s"), "last": sw.last("x"), "all": sw.collect_list("i")}
    workload, frames = sw.Workload("ts", keys=["k"], order=["u"]), []
    for size, every in [(1, 1), (5, 1), (40, 7), (3, 5)]:
        name = f"{size} every {every}"
        workload = workload.query(name, sw.sliding(sw.rows(size), every=sw.rows(every)), **aggregates)
        framed = over_rows(rows, ["k"], ["ts", "u"], size, every, functions)
        frames.append(framed.withColumn("query", F.lit(name)))
    expected = reduce(DataFrame.unionByName, frames).cache()
    assert assert_equal(workload.run(rows), expected, ["k", "query", "span"]) > 400
    assert all(row["count"] > 100 for row in expected.groupBy("query").count().collect())
    expected.unpersist()


def test_the_last_seconds_at_every_row_are_a_range_frame(rows):
    from pyspark.sql import Window

    distinct = rows.dropDuplicates(["k", "ts"]).withColumn("us", F.unix_micros("ts"))
    length = 5 * data.SECOND
    framed = Window.partitionBy("k").orderBy("us").rangeBetween(-(length - 1), 0)
    functions = {"n": F.count(F.lit(1)), "sum_i": F.sum("i"), "max_s": F.max("s"), "first": F.first("u")}
    aggregates = {"n": sw.count(), "sum_i": sw.sum("i"), "max_s": sw.max("s"), "first": sw.first("u")}
    workload = sw.Workload("ts", keys=["k"]).query(
        "q", sw.sliding("5 seconds", every=sw.rows(1)), last=sw.last("u"), **aggregates
    )
    expected = distinct.select("k", F.col("u").alias("last"), *(f.over(framed).alias(n) for n, f in functions.items()))
    assert assert_equal(workload.run(distinct), expected, ["k", "last"]) > 700


# Numbers


def test_percentiles_have_spark_s_last_digit(few):
    shares = [0.0, 0.1, 0.5, 0.77, 1.0]
    aggregates = {"all": (sw.percentile("x", shares), lambda: F.percentile("x", F.array(*map(F.lit, shares))))}
    aggregates["median"] = sw.median("x"), lambda: F.median("x")
    windows = {n: WINDOWS[n]() for n in ("sliding", "session")}
    found = workload_of(["k"], windows, aggregates).run(few)
    functions = {n: make() for n, (_, make) in aggregates.items()}
    expected = grouped(few, ["k"], {n: w for n, (_, w) in windows.items()}, functions)
    assert_equal(found, expected, ["k", "query", "window"], exact=True)


def test_totals_leave_64_bits_on_the_way_and_come_back(rows):
    # Each row six times: three times what 64 bits hold in one second of ten, and as much less five seconds later.
    signs = F.explode(F.array(*(F.lit(s) for s in (1, 1, 1, -1, -1, -1)))).alias("sign")
    later = F.col("ts") + F.make_dt_interval(secs=F.when(F.col("sign") > 0, 0).otherwise(5))
    tens = F.unix_micros("ts") - F.pmod(F.unix_micros("ts"), F.lit(10_000_000))
    frame = rows.select("k", "u", "i", F.timestamp_micros(tens).alias("ts"), signs)
    frame = frame.withColumn("ts", later).withColumn("b", F.col("sign") * F.lit(2**62) + F.coalesce("i", F.lit(0)))
    exact = F.sum(F.col("b").cast("decimal(38, 0)")).cast("bigint")
    aggregates = {"total": (sw.sum("b"), lambda: exact), "least": (sw.min("b"), lambda: F.min("b"))}
    windows = {"ten": lambda: tumbling("10 seconds"), "twenty": lambda: sliding("20 seconds", "10 seconds")}
    found = workload_of(["k"], {n: w() for n, w in windows.items()}, aggregates)
    # A query over a part of each window, so that its slices hold totals that do not fit.
    found = found.query("part", sw.sliding("10 seconds", every="10 seconds", offset="5 seconds"), most=sw.max("b")).run(
        frame
    )
    functions = {n: make() for n, (_, make) in aggregates.items()}
    expected = grouped(frame, ["k"], {n: w()[1] for n, w in windows.items()}, functions)
    assert_equal(found.where("query <> 'part'"), expected, ["k", "query", "window"])
