"""`sw.testing.stream`: it takes whatever DataFrame `run` takes."""

from __future__ import annotations

import inspect
import re

import pytest

import slicewise as sw

ODD = ["a.b", "x`y", "two words", "(;=,)", "ä"]


def batch(spark, *rows):
    return spark.createDataFrame(list(rows), "t bigint, k string, v bigint")


@pytest.mark.streams
def test_odd_column_names(spark):
    batches = [batch(spark, (1, "a", 1), (2, "b", 2)), batch(spark, (12, "a", 3))]
    for key in ODD:
        value = f"{key}+"
        workload = sw.Workload("t", keys=[key]).query("q", sw.tumbling(10), total=sw.sum(value))
        frames = [frame.toDF("t", key, value) for frame in batches]
        found = sw.testing.stream(frames, workload)
        assert found.columns[0] == key
        assert sorted((row[0], row["total"]) for row in found.collect()) == [("a", 1), ("b", 2)]


def test_a_column_that_nobody_reads_may_be_there_twice(spark):
    frames = [batch(spark, (n, "a", 1)).selectExpr("*", "1 as x", "2 as x") for n in (1, 12)]
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), n=sw.count())
    assert [row["n"] for row in sw.testing.stream(frames, workload).collect()] == [1]


def test_batches_may_have_their_columns_in_another_order(spark):
    frames = [batch(spark, (1, "a", 7)), batch(spark, (12, "a", 1)).select("v", "t", "k")]
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), total=sw.sum("v"))
    assert [row["total"] for row in sw.testing.stream(frames, workload).collect()] == [7]


def test_a_key_may_be_called_batch(spark):
    frames = [batch(spark, (1, "a", 7), (12, "a", 1)).toDF("t", "batch", "v")]
    workload = sw.Workload("t", keys=["batch"]).query("q", sw.tumbling(10), total=sw.sum("v"))
    (row,) = sw.testing.stream(frames, workload).collect()
    assert (row["batch"], row["total"]) == ("a", 7)
    message = "with folded=False the results have a column 'batch'; give yours another name"
    with pytest.raises(sw.DataError, match=f"^{re.escape(message)}$"):
        sw.testing.stream(frames, workload, folded=False)


def test_the_example_of_the_docstring_runs(spark):
    """It needs a session, so it is no doctest."""
    block = re.search(r"completes::\n\n(.*?)\n\n", sw.testing.stream.__doc__, re.DOTALL)[1]
    *lines, last = inspect.cleandoc(block).splitlines()
    expression, expected = last.split("  # ")
    names = {"spark": spark, "sw": sw, "stream": sw.testing.stream}
    exec("\n".join(lines), names)
    assert repr(eval(expression, names)) == expected
