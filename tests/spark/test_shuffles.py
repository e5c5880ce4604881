"""What a batch shuffles: slices or rows, by default or by request. Sessions are those of Spark either way, exactly."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import session as session_settings
from tests.spark.running import compare
from tests.spark.spark_own import assert_equal, grouped, session

UTC = pa.timestamp("us", "UTC")


def beside():
    """Ours beside Spark's functions."""
    return {
        "n": (sw.count(), F.count(F.lit(1))),
        "total": (sw.sum("v"), F.sum("v")),
        "mean": (sw.avg("x"), F.avg("x")),
        "least": (sw.min("v"), F.min("v")),
        "most": (sw.max("x"), F.max("x")),
        "some": (sw.count("v").where("v % 3 = 0"), F.count(F.when(F.col("v") % 3 == 0, F.col("v")))),
    }


def table_of(seed: int, rows: int = 4000, keys: int = 150) -> pa.Table:
    """Rows that lie as far apart as the gaps below, a microsecond more or less; some have no key, no time, no value."""
    rng = np.random.default_rng(seed)
    gap = rng.choice([0, 1, 8000, 1_000_000, 300_000_000], rows, p=[0.1, 0.1, 0.4, 0.3, 0.1])
    step = np.maximum(gap + rng.integers(-1, 2, rows) * rng.integers(0, 2, rows), 0)
    key = np.sort(rng.integers(0, keys, rows))
    order = rng.permutation(rows)
    time, key, value = (np.cumsum(step) - 10**9)[order], key[order], rng.integers(-50, 50, rows)
    return pa.table(
        {
            "ts": pa.array(time, mask=rng.random(rows) < 0.02).cast(UTC),
            "k": pa.array([f"key {k}" for k in key], mask=key % 50 == 0),
            "v": pa.array(value, mask=rng.random(rows) < 0.1),
            "x": value / 4,
        }
    )


@pytest.fixture(scope="module")
def rows(spark):
    frame = spark.createDataFrame(table_of(11)).repartition(3).cache()
    yield frame
    frame.unpersist()


@pytest.mark.parametrize("gap", ["8 milliseconds", "1 second", "5 minutes"])
def test_sessions_are_spark_s_whatever_is_shuffled(rows, gap):
    ours, theirs = session(gap)
    both = beside()
    workload = sw.Workload("ts", keys=["k"]).query("q", ours, **{name: pair[0] for name, pair in both.items()})
    expected = grouped(rows, ["k"], {"q": theirs}, {name: pair[1] for name, pair in both.items()}).cache()
    for shuffle in (None, "slices", "rows"):
        results = workload.run(rows, shuffle=shuffle)
        assert assert_equal(results, expected, ["k", "query", "window"], exact=True) > 150, shuffle
    expected.unpersist()


def test_gaps_that_are_exactly_as_long_are_there(rows):
    """The test above would not see the difference if no two rows were one gap apart."""
    times = {}
    for key, at in zip(*(table_of(11).column(c).to_pylist() for c in ("k", "ts")), strict=True):
        if at is not None:
            times.setdefault(key, []).append(at.timestamp())
    steps = np.concatenate([np.round(np.diff(np.sort(t)) * 1e6) for t in times.values()])
    for gap in (8000, 1_000_000, 300_000_000):
        assert min((steps == gap + d).sum() for d in (-1, 0, 1)) > 10


@pytest.mark.parametrize(
    ("window", "shuffles"), [(sw.session("1 second"), 1), (sw.session("2 seconds"), 2)], ids=["rows", "slices"]
)
def test_rows_are_shuffled_once_where_slices_are_short(rows, capsys, window, shuffles):
    workload = sw.Workload("ts", keys=["k"]).query("q", window, n=sw.count())
    workload.run(rows).explain()
    plan = capsys.readouterr().out
    assert plan.count("Exchange hashpartitioning") == shuffles
    choice, other = ("rows", "slices") if shuffles == 1 else ("slices", "rows")
    assert f"  as a batch   {choice:<6}" in workload.explain()
    workload.run(rows, shuffle=other).explain()
    assert capsys.readouterr().out.count("Exchange hashpartitioning") == 3 - shuffles


def test_the_cell_does_not_travel_where_slices_say_when_they_begin_and_end(rows, capsys):
    sw.Workload("ts", keys=["k"]).query("q", sw.session("1 second"), n=sw.count()).run(rows).explain()
    plan = capsys.readouterr().out
    (sent,) = re.findall(r"MapInArrow __call__\((.*?)\)", plan)
    # The key, the first and the last event time, and how many rows there are.
    assert [re.sub("#.*", "", column.strip()) for column in sent.split(",")] == ["k0", "p0", "p1", "p2"]


@pytest.mark.parametrize(("partitions", "composing"), [("3", 3), ("8", 8), ("9", 1)])
def test_no_core_is_left_idle_because_slices_are_few_bytes(spark, rows, monkeypatch, partitions, composing):
    """Spark puts partitions of few bytes together, also where they make many windows; more than four a core it may."""
    monkeypatch.setattr(session_settings, "setting", lambda *_: partitions)
    sliding = sw.sliding("10 minutes", every="1 minute")
    results = sw.Workload("ts", keys=["k"]).query("q", sliding, n=sw.count()).run(rows)
    key = F.coalesce("k", F.lit("none"))
    by_partition = results.groupBy(F.spark_partition_id()).agg(F.collect_set(key).alias("keys"))
    keys = [row["keys"] for row in by_partition.collect()]
    assert len(keys) == composing
    assert sum(map(len, keys)) == len(set().union(*keys))  # no key is in two of them


@pytest.mark.parametrize("partitions", ["auto", ""])
def test_a_number_of_partitions_that_is_none_is_left_to_spark(spark, monkeypatch, partitions):
    monkeypatch.setattr(session_settings, "setting", lambda *_: partitions)
    assert session_settings.partitions_to_keep(spark) is None


# Rows that NumPy slices


def counting(keys):
    """How often extremes occur, of text and of numbers, filtered and computed, over windows of several kinds."""
    aggregates = {
        "most": sw.max_count("v"),
        "least": sw.min_count("x").where("v % 3 = 0"),
        "text": sw.max_count("s"),
        "computed": sw.min_count(sw.expr("v % 5")),
        "total": sw.sum("v"),
        "spread": sw.stddev("x"),
    }
    return (
        sw.Workload("ts", keys=keys)
        .query("sliding", sw.sliding("30 minutes", every="7 minutes"), **aggregates)
        .query("sessions", sw.session("1 second"), **aggregates)
        .query("lone", sw.tumbling("1 hour"), empty=True, **aggregates)
        .query(
            "listed",
            sw.edges([("1969-12-31 23:50:00", "1970-01-01 01:00:00"), ("1970-01-01", "1970-01-02")]),
            **aggregates,
        )
    )


def test_rows_sliced_in_numpy_give_what_the_jvm_gives(rows, capsys):
    key = F.when(F.col("v") % 2 == 0, -0.0).when(F.col("v") % 5 == 0, float("nan")).otherwise(0.0)
    frame = rows.withColumn("s", F.concat(F.lit("w"), F.col("v") % 7)).withColumn("k2", key)
    workload = counting(["k", "k2"])
    in_numpy, in_the_jvm = workload.run(frame), workload.run(frame, shuffle="slices")
    in_numpy.explain()
    assert "HashAggregate" not in capsys.readouterr().out
    in_the_jvm.explain()
    assert "HashAggregate" in capsys.readouterr().out
    compare(in_numpy.toArrow(), in_the_jvm.toArrow(), ["k", "k2"])


SHORT = sw.session("10 milliseconds")


@pytest.mark.parametrize(
    ("unit", "time"),
    [
        (None, F.col),
        (None, lambda name: F.col(name).cast("timestamp_ntz")),
        (None, lambda name: F.col(name).cast("date")),
        ("milliseconds", lambda name: F.unix_millis(name)),
        ("nanoseconds", lambda name: F.unix_micros(name) * 1000),
    ],
    ids=["timestamps", "without a zone", "dates", "milliseconds", "nanoseconds"],
)
def test_short_sessions_of_each_kind_of_time_are_as_if_composed(rows, capsys, unit, time):
    frame = rows.withColumn("ts", time("ts"))
    workload = sw.Workload("ts", keys=["k"], unit=unit).query("q", SHORT, n=sw.count(), total=sw.sum("v"))
    in_the_jvm = workload.run(frame)
    in_the_jvm.explain()
    assert "MapInArrow" not in capsys.readouterr().out
    composed = workload.run(frame, shuffle="slices")
    assert in_the_jvm.schema.simpleString() == composed.schema.simpleString()
    compare(in_the_jvm.toArrow(), composed.toArrow(), ["k"])


@pytest.mark.parametrize("key", ["'b'", "cast(null as string)"])
def test_a_short_session_that_does_not_fit_its_type_is_named(spark, key):
    at = [(1, 1), (11, 2**62), (12, 2**62), (40, 2**62)]
    values = ", ".join(f"(timestamp_millis({t}), {v}L, {key})" for t, v in at)
    results = sw.Workload("ts", keys=["k"]).query("big", SHORT, s=sw.sum("v"))
    message = (
        f"query 'big', key k={'None' if 'null' in key else key}, window [1970-01-01 00:00:00.001+00:00, 1970-01-01 "
        "00:00:00.022+00:00): `sum` of column 'v' does not fit in a 64-bit integer: a window gives 9223372036854775809"
    )
    with pytest.raises(PySparkException, match=re.escape(message)):
        results.run(spark.sql(f"select * from values {values} as rows(ts, v, k)")).collect()
