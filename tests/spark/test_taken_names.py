"""What is called like something else is still itself: aggregates of users, columns, fields."""

from __future__ import annotations

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.aggregates import AGGREGATES
from slicewise.plan.routes import IN_THE_JVM
from slicewise.spark.partials import PARTIALS
from slicewise.testing import Oracle
from tests.slicing.running import assert_same
from tests.spark.running import compare, in_process
from tests.spark.stream_fake import FakeStream, Reference

TYPES = {"k": pa.string(), "v": pa.int64(), "w": pa.int64()}


class Lowest(sw.max):
    """The smallest value, negated."""

    def lift(self, *values):
        return -values[0]


class Named(sw.Aggregate):
    """How many rows, twice; called as a built-in aggregate that has nothing to do with it."""

    name = "first"
    commutative = True
    identity = 0

    def lift(self, *values):
        return 2

    def combine(self, a, b):
        return a + b

    def result_type(self, *types):
        return pa.int64()


def negative(v):
    return -v


#: A function of each name that the JVM knows something else by.
BY_NAME = {
    name: sw.aggregate(lift=negative, combine=max, identity=-(2**40), commutative=True, result="bigint", name=name)
    for name in sorted(cls.name for cls in IN_THE_JVM)
}
OWN = {name: make("v") for name, make in BY_NAME.items()}
OWN |= {"subclass": Lowest("w"), "named": Named("w"), "built_in": sw.max("w"), "counted": sw.count("w")}
WINDOWS = {
    "tumbling": sw.tumbling(10),
    "sliding": sw.sliding(10, every=5),
    "session": sw.session(3),
    "counts": sw.sliding(sw.rows(16), every=sw.rows(8)),
}


def workload_of(windows):
    workload = sw.Workload("t", keys=["k"])
    for name, window in windows.items():
        workload = workload.query(name, window, **OWN)
    return workload


def test_plan_and_spark_agree_on_what_the_jvm_computes():
    assert set(PARTIALS) == IN_THE_JVM
    assert set(AGGREGATES.values()) >= IN_THE_JVM


def rows_of(n):
    return [{"t": i * 7 % 211, "k": "ab"[i % 2], "v": i * 37 % 101 - 50, "w": i * 53 % 97 - 40} for i in range(n)]


def test_in_batch_they_answer_as_in_process(spark):
    table = pa.Table.from_pylist(rows_of(200), pa.schema([("t", pa.int64()), *TYPES.items()]))
    frame = spark.createDataFrame(table)
    workload = workload_of(WINDOWS)
    compare(workload.run(frame).toArrow(), in_process(workload, frame), ["k"])


def test_on_a_stream_they_answer_as_defined():
    workload = workload_of(WINDOWS)
    stream, oracle = FakeStream(workload, types=TYPES), Reference(Oracle(workload), workload)
    rows = rows_of(120)
    for at in range(0, 120, 30):
        batch = [rows[at : at + 15], rows[at + 15 : at + 30]]
        assert_same([stream.batch(batch)], [oracle.batch(batch)])


def test_saved_state_of_a_built_in_aggregate_is_not_taken_for_that_of_another():
    built_in, own = (
        sw.Workload("t", keys=["k"]).query("q", sw.tumbling(100), x=aggregate)
        for aggregate in (
            sw.max("v"),
            sw.aggregate(lift=negative, combine=max, identity=-(2**40), result="bigint")("v"),
        )
    )
    rows = rows_of(40)
    stream = FakeStream(built_in, types=TYPES)
    stream.batch([rows[:20]])
    stream = stream.again(own, types=TYPES)
    with pytest.raises(sw.StateError, match="and none is the same"):
        stream.batch([rows[20:]])


def test_columns_with_spaces_are_not_taken_for_one_another(spark):
    rows = [{"t": i, "x": i % 3, "count x": -i} for i in range(40)]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows))
    aggregates = {"a": sw.min_count("x"), "b": sw.min("count x"), "c": sw.count("x"), "d": sw.max_by("x", "count x")}
    workload = sw.Workload("t").query("q", sw.sliding(20, every=10), **aggregates)
    compare(workload.run(frame).toArrow(), in_process(workload, frame), [])


def test_the_field_of_a_struct_is_not_taken_for_a_column_of_a_dataframe_of_that_name(spark):
    frame = (
        spark.range(10).selectExpr("id AS t", """named_struct('b', id, "it's", 2 * id) AS a""", "-id AS b").alias("a")
    )
    workload = sw.Workload("t").query("q", sw.tumbling(10), low=sw.min("a.b"), high=sw.max("a.it's"))
    (row,) = workload.run(frame).select("low", "high").collect()
    assert tuple(row) == (0, 18)
