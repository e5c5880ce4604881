"""User code that raises, on Spark: a batch names the row or the window; a stream goes on without it."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

import slicewise as sw
from tests.spark.stream_running import Folder, table_of

ROWS = [(t, k, 0 if k == "b" and t == 12 else t) for t in (1, 2, 11, 12) for k in "abc"]
MEND = "fix it, or filter such rows out before run()"
ROW = "the record of time 1970-01-01 00:00:12+00:00, key k='b'"
ZERO = "ZeroDivisionError('division by zero')"

WHOLE = "ZeroDivisionError('integer division or modulo by zero')"


def inverse(v):
    return 1 / v


def up_to_twenty(a, b):
    if a + b > 20 and a * b % 11 == 0:
        raise ValueError("too much")
    return a + b


def not_odd(total):
    if total == 11:
        raise ValueError("odd")
    return total


def never(total, oldest):
    return bool(1 / total["v"] < 0)


def is_mark(columns):
    return columns["v"].astype(object) // columns["v"].astype(object) > 1


inverses = sw.aggregate(lift=inverse, combine=lambda a, b: a + b, identity=0.0, result="double", name="inverses")
careful = sw.aggregate(combine=up_to_twenty, lower=not_odd, identity=0, result="bigint", name="careful")


def no_zero(v):
    return v if 1 / v else 0


def up_to_fifty(a, b):
    if a + b > 50:
        raise ValueError("too much")
    return a + b


summed = sw.aggregate(lift=no_zero, combine=up_to_fifty, identity=0, commutative=True, result="bigint", name="summed")


def message_of(error, name):
    """What slicewise said, without what Spark says around it."""
    (found,) = set(re.findall(rf"{name}: (.*)", str(error)))
    return found


@pytest.mark.parametrize(
    ("window", "aggregate", "message"),
    [
        (sw.tumbling("10 seconds"), inverses("v"), f"query 'q': inverses('v') at {ROW}: `lift` raised {ZERO}; {MEND}"),
        (sw.tumbling(sw.rows(2)), inverses("v"), f"query 'q': inverses('v') at {ROW}: `lift` raised {ZERO}; {MEND}"),
        (
            sw.policy(never, watch={"v": sw.last("v")}),
            sw.count(),
            f"policy(never, every=rows(1)) at {ROW}: raised {ZERO}; {MEND}",
        ),
        (
            sw.punctuated(is_mark, columns=["v"]),
            sw.count(),
            f"punctuated(is_mark, columns=['v']) at {ROW}: raised {WHOLE}; {MEND}",
        ),
    ],
    ids=["time", "rows", "policy", "condition"],
)
def test_a_batch_names_the_row(spark, window, aggregate, message):
    frame = spark.createDataFrame(table_of(ROWS))
    workload = sw.Workload("ts", keys=["k"]).query("fine", sw.session("1 hour"), n=sw.count())
    with pytest.raises(PySparkException) as caught:
        workload.query("q", window, x=aggregate).run(frame).collect()
    assert message_of(caught.value, "UserCodeError") == message


@pytest.mark.parametrize(
    ("window", "place", "failure"),
    [
        (
            sw.tumbling("10 seconds"),
            "key k='a', window [1970-01-01 00:00:10+00:00, 1970-01-01 00:00:20+00:00)",
            "`combine` of careful('v') raised ValueError('too much')",
        ),
        (sw.tumbling(sw.rows(2)), "key k='a', span [2, 4)", "`combine` of careful('v') raised ValueError('too much')"),
        (
            sw.tumbling("1 second"),
            "key k='a', window [1970-01-01 00:00:11+00:00, 1970-01-01 00:00:12+00:00)",
            "`lower` of careful('v') raised ValueError('odd')",
        ),
    ],
    ids=["combine", "rows", "lower"],
)
def test_a_batch_names_the_window(spark, window, place, failure):
    frame = spark.createDataFrame(table_of([row for row in ROWS if row[1] == "a"]))
    workload = sw.Workload("ts", keys=["k"]).query("q", window, x=careful("v"))
    with pytest.raises(PySparkException) as caught:
        workload.run(frame).collect()
    expected = f"query 'q', {place}: {failure}; fix it, or remove it from the workload"
    assert message_of(caught.value, "UserCodeInWindowError") == expected


@pytest.mark.streams
@pytest.mark.parametrize("late", [None, "collect"], ids=["slices", "rows"])
def test_a_stream_goes_on_and_counts_and_gives_back(spark, tmp_path, late):
    """A row on which `lift` raises, a window over which `combine` does, a restart after each."""
    folder = Folder(tmp_path)
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.tumbling("10 seconds"), x=summed("v"), n=sw.count())
    batches = [
        [(1, "a", 5), (2, "b", 0), (3, "b", 7)],
        [(4, "a", 6), (5, "b", 60)],
        [(12, "a", 7), (21, "a", 0)],
        [(40, "a", 1)],
    ]
    found, metrics = [], []
    for batch in batches:
        folder.add(table_of(batch))
        run = folder.run(spark, workload, late=late)
        found += run.rows()
        metrics += run.metrics()
    results = {(r["k"], r["start"]): (r["x"], r["n"]) for r in found if r["change"] == "insert"}
    assert results == {("a", 0): (11, 2), ("b", 0): (None, 2), ("a", 10): (7, 1)}
    assert sum(m["bad_user_code"] for m in metrics) == sum(m["bad"] for m in metrics) == 2
    assert sum(m["failed"] for m in metrics) == 1
    returned = sorted((r["late"]["k"], r["late"]["v"], r["reason"]) for r in found if r["change"] == "late")
    assert returned == ([("a", 0, "user code"), ("b", 0, "user code")] if late else [])
    seen = sw.inspect(folder.checkpoint, spark)
    assert (seen.bad, seen.failed) == ({"user code": 2}, 1)


@pytest.mark.streams
def test_a_stream_stops_at_bad_fail_and_names_the_row(spark, tmp_path):
    folder = Folder(tmp_path)
    folder.add(table_of([(1, "a", 5), (2, "b", 0)]))
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.tumbling("10 seconds"), x=summed("v"))
    with pytest.raises(StreamingQueryException, match=r"query 'q': summed\('v'\): `lift` raised ZeroDivisionError"):
        folder.run(spark, workload, bad="fail")
