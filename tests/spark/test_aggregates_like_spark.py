"""Spark's answers are right: aggregates of fixed size beside Spark's functions, in one workload over three windows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.routes import SLICES, route_of
from tests.spark import data
from tests.spark.running import ansi
from tests.spark.spark_own import assert_equal, grouped, plain_rows, session, sliding, tumbling

WINDOWS = {
    "tumbling": lambda: tumbling("7 seconds", "2 seconds"),
    "sliding": lambda: sliding("10 seconds", "3 seconds"),
    "session": lambda: session("3 seconds"),
}
#: Names of functions of one column, and the columns that they are tried on.
OF_ONE = {
    **dict.fromkeys(("skewness", "kurtosis"), ("i", "x", "d", "steady")),
    **dict.fromkeys(("count_if", "bool_and", "bool_or", "every", "some"), ("z",)),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), ("i", "small")),
    **dict.fromkeys(("try_sum", "try_avg"), ("i", "x", "d", "huge", "small")),
    **dict.fromkeys(("mean", "std", "stddev_samp", "var_samp"), ("f",)),
}
OF_TWO = [name for name in sw.AGGREGATES if name.startswith(("corr", "covar", "regr"))]
PAIRS = (("x", "d"), ("steady", "f"), ("f", "steady"))


def in_order(column: str | None = None):
    """What makes the order of rows complete; of those where a column is not null, if one is given."""
    place = F.struct("ts", "u")
    return place if column is None else F.when(F.col(column).isNotNull(), place)


def weighted(value: str, weight: str):
    """A weighted mean, from Spark's sums."""
    known = F.col(value).isNotNull() & F.col(weight).isNotNull()
    v, w = (F.when(known, F.col(c).cast("double")) for c in (value, weight))
    return F.try_divide(F.sum(v * w), F.sum(w))


def candle(column: str):
    """First, largest, smallest and last value, from Spark's functions."""
    four = {"open": F.min_by(column, in_order(column)), "high": F.max(column), "low": F.min(column)}
    four["close"] = F.max_by(column, in_order(column))
    return F.when(F.count(column) > 0, F.struct(*(value.alias(name) for name, value in four.items())))


def beside():
    """Aggregates beside Spark's functions."""
    found = {}
    for name, columns in OF_ONE.items():
        for c in columns:
            found[f"{name}_{c}"] = getattr(sw, name)(c), getattr(F, name)(c)
    for name in OF_TWO:
        # Of an infinity Spark makes one or NaN of a covariance, as rows come; it is NaN here.
        for y, x in (
            PAIRS if name not in ("covar_pop", "covar_samp", "regr_sxy") else [p for p in PAIRS if "x" not in p]
        ):
            found[f"{name}_{y}_{x}"] = getattr(sw, name)(y, x), getattr(F, name)(y, x)
    return found | {
        "alone": (sw.corr("u", "u"), F.corr("u", "u")),
        "weighted": (sw.weighted_avg("f", "positive"), weighted("f", "positive")),
        "weighted_odd": (sw.weighted_avg("d", "i"), weighted("d", "i")),
        "first_known": (sw.first("s", ignorenulls=True), F.min_by("s", in_order("s"))),
        "last_known": (sw.last_value("d", True), F.max_by("d", in_order("d"))),
        "any": (sw.any_value("s"), F.min_by("s", in_order())),
        "any_known": (sw.any_value("day", ignorenulls=True), F.min_by("day", in_order("day"))),
        "candle_d": (sw.ohlc("d"), candle("d")),
        "candle_s": (sw.ohlc("s"), candle("s")),
        "candle_x": (sw.ohlc("x"), candle("x")),
    }


@pytest.fixture(scope="module")
def rows(spark):
    # A column that is the same for seconds, and then another: in many windows nothing varies.
    steady = F.when(F.col("u") % 5 != 0, F.floor(F.second("ts") / 20) / 10)
    frame = data.frame_of(spark, data.random_rows(400, seed=1)).withColumn("steady", steady).cache()
    yield frame
    frame.unpersist()


def workload_of(aggregates, windows=tuple(WINDOWS)):
    workload = sw.Workload("ts", keys=["k"], order=["u"])
    for name in windows:
        workload = workload.query(name, WINDOWS[name]()[0], **aggregates)
    return workload


def test_every_aggregate_of_fixed_size_is_spark_s(spark, rows):
    both = beside()
    workload = workload_of({name: aggregate for name, (aggregate, _) in both.items()})
    expected = grouped(
        rows, ["k"], {n: make()[1] for n, make in WINDOWS.items()}, {name: f for name, (_, f) in both.items()}
    )
    assert {route_of(query).choice for query in workload.queries} == {SLICES}
    assert assert_equal(workload.run(rows), expected, ["k", "query", "window"]) > 300


def test_one_tumbling_window_is_computed_by_spark_alone(spark, rows):
    names = [f"{name}_{c}" for name in ("count_if", "bool_and", "bool_or") for c in "z"]
    names += [f"{name}_small" for name in ("bit_and", "bit_or", "bit_xor")]
    both = {name: pair for name, pair in beside().items() if name in names}
    workload = workload_of({name: aggregate for name, (aggregate, _) in both.items()}, ["tumbling"])
    window = {"tumbling": WINDOWS["tumbling"]()[1]}
    expected = grouped(rows, ["k"], window, {name: f for name, (_, f) in both.items()})
    with ansi(spark, False):
        assert assert_equal(workload.run(rows), expected, ["k", "query", "window"]) > 100


# Digits

MOMENTS = {
    **{name: getattr(sw, name)("y", "x") for name in OF_TWO},
    **{name: getattr(sw, name)("y") for name in ("skewness", "kurtosis", "variance", "stddev_pop")},
}
#: What 1e-9 is measured against: deviations of about 1000 from means of about 1e9.
SCALES = {
    **dict.fromkeys(("covar_pop", "covar_samp", "variance"), 1000.0**2),
    **dict.fromkeys(("regr_avgx", "regr_avgy", "regr_intercept"), 1e9),
    **dict.fromkeys(("corr", "regr_r2", "regr_slope", "skewness", "kurtosis"), 1.0),
    "stddev_pop": 1000.0,
}


def offset_rows(n=2000):
    """Values of 1e9 +- 1000, some of them null, over a hundred seconds and two keys."""
    rng = np.random.default_rng(17)
    y = 1e9 + rng.uniform(-1000, 1000, n)
    x = -1e9 + 0.5 * (y - 1e9) + rng.uniform(-1000, 1000, n)
    times = np.sort(rng.integers(0, 100 * data.SECOND, n))
    columns = {
        "ts": pa.array(times).cast(pa.timestamp("us", "UTC")),
        "k": pa.array(rng.choice(["a", "b"], n)),
        "y": pa.array(y, mask=rng.random(n) < 0.1),
        "x": pa.array(x, mask=rng.random(n) < 0.1),
    }
    return pa.table(columns)


def test_moments_keep_their_digits_around_large_means(spark):
    """In process they are exact (``test_moments``); Spark's own functions are further away."""
    table = offset_rows()
    frame = spark.createDataFrame(table).repartition(3)
    workload = sw.Workload("ts", keys=["k"])
    workload = workload.query("sliding", sw.sliding("10 seconds", every="2 seconds"), **MOMENTS)
    workload = workload.query("tumbling", sw.tumbling("20 seconds"), **MOMENTS)
    op = workload.operator()
    op.process_batch(table)
    mine, found = (by_window(t) for t in (op.close().to_arrow(), workload.run(frame).toArrow()))
    functions = {name: getattr(F, name)(*a.columns) for name, a in MOMENTS.items()}
    theirs = grouped(frame, ["k"], {"tumbling": F.window("ts", "20 seconds")}, functions)
    assert mine.keys() == found.keys()
    assert len(found) > 100
    for (answers, others), tolerance in (((mine, found), 1e-9), ((mine, by_window(theirs.toArrow())), 1e-6)):
        for window, row in others.items():
            for name in MOMENTS:
                scale = SCALES.get(name, 1000.0**2 * answers[window]["regr_count"])
                assert abs(answers[window][name] - row[name]) <= tolerance * scale, (window, name)


def by_window(table):
    return {(row["k"], row["query"], *row["window"].values()): row for row in plain_rows(table)}
