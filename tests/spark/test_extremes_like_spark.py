"""Picks, bits, truths, bests, modes and distinct values of rows with all extremes, beside Spark's own functions."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

import slicewise as sw
from tests.spark.running import ansi
from tests.spark.spark_own import assert_equal, grouped
from tests.spark.test_beside_spark import OTHERS, SUMMED, WINDOWS, frame_of, table_of

COLUMNS = (*SUMMED, *OTHERS)
PAIRS = (("calm", "i8"), ("i8", "calm"))


def in_order(column):
    """The place of a row in the order of rows, if it has a value."""
    return F.when(F.col(column).isNotNull(), F.col("u"))


def best(column, k):
    """Rows by this column, best first, the first of equal ones first: numbered, so that Spark has no ties to break."""
    known = F.col(column).isNotNull()
    return {
        f"max_by_{column}": (sw.max_by("u", column, k), F.max_by("u", F.when(known, F.struct(column, -F.col("u"))), k)),
        f"min_by_{column}": (sw.min_by("u", column, k), F.min_by("u", F.when(known, F.struct(column, "u")), k)),
    }


def beside():
    """Aggregates beside Spark's functions."""
    found = {
        "count_if": (sw.count_if("z"), F.count_if("z")),
        "every": (sw.every("z"), F.every("z")),
        "some": (sw.some("z"), F.some("z")),
        "all_s": (sw.listagg("s", "|"), F.expr("listagg(s, '|') within group (order by u)")),
        "all_y": (sw.string_agg("y"), F.expr("string_agg(y) within group (order by u)")),
    }
    for c in ("i8", "i32", "i64"):
        found |= {
            f"{name}_{c}": (getattr(sw, name)(c), getattr(F, name)(c)) for name in ("bit_and", "bit_or", "bit_xor")
        }
    for c in COLUMNS:
        if c != "apart":  # lists of extreme durations are in ``test_spark_semantics``
            found[f"largest_{c}"] = sw.largest(c, 3), F.slice(F.sort_array(F.collect_list(c), asc=False), 1, 3)
            found[f"smallest_{c}"] = sw.smallest(c, 2), F.slice(F.sort_array(F.collect_list(c)), 1, 2)
        found[f"first_{c}"] = sw.first_value(c, True), F.min_by(c, in_order(c))
        found[f"last_{c}"] = sw.last(c, ignorenulls=True), F.max_by(c, in_order(c))
        found[f"any_{c}"] = sw.any_value(c), F.min_by(c, "u")
    for c in ("i64", "d38_20", "wide", "day", "local", "z"):
        found |= best(c, 3)
    for c in ("i8", "i64", "d38_0", "calm", "s", "z", "day", "at"):
        found[f"mode_{c}"] = sw.mode(c, True), F.mode(c, True)
    for name in ("corr", "covar_pop", "covar_samp", *(n for n in sw.AGGREGATES if n.startswith("regr_"))):
        for y, x in PAIRS:
            found[f"{name}_{y}"] = getattr(sw, name)(y, x), getattr(F, name)(y, x)
    for name in ("skewness", "kurtosis", "median"):
        found[name] = getattr(sw, name)("calm"), getattr(F, name)("calm")
    return found


#: One at a time where there are sessions: Spark miscounts two distinct aggregates over one session window.
DISTINCT = {
    f"n_{c}": (sw.count_distinct(c), lambda c=c: F.count_distinct(c)) for c in ("wide", "f", "s", "i64", "d38_20")
}
DISTINCT["n_both"] = sw.count_distinct("x", "z"), lambda: F.count_distinct("x", "z")
DISTINCT["sum_d"] = sw.sum_distinct("d28_4"), lambda: F.sum_distinct("d28_4")
DISTINCT["sum_x"] = sw.sum_distinct("x"), lambda: F.sum_distinct("x")


@pytest.fixture(scope="module")
def rows(spark):
    frame = frame_of(spark, table_of(17)).cache()
    yield frame
    frame.unpersist()


def assert_as_spark(frame, both, names):
    workload = sw.Workload("ts", keys=["g"])
    for name in names:
        workload = workload.query(name, WINDOWS[name][0], **{n: aggregate for n, (aggregate, _) in both.items()})
    functions = {n: function for n, (_, function) in both.items()}
    expected = grouped(frame, ["g"], {name: WINDOWS[name][1]() for name in names}, functions)
    return assert_equal(workload.run(frame), expected, ["g", "query", "window"])


def test_picks_bits_bests_and_modes_of_extremes_are_spark_s(spark, rows):
    with ansi(spark, True):  # where what leaves its type on the way would fail
        assert assert_as_spark(rows, beside(), WINDOWS) > 80


def test_distinct_values_of_extremes_are_spark_s(spark, rows):
    both = {name: (aggregate, make()) for name, (aggregate, make) in DISTINCT.items()}
    assert assert_as_spark(rows, both, ["tumbling", "sliding"]) > 60
    assert assert_as_spark(rows, {"n_wide": both["n_wide"]}, ["session"]) > 20
