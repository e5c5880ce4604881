"""User code that raises, on Spark: a batch ends with an error that names the row or the window."""

from __future__ import annotations

import re

import pytest
from pyspark.errors import PySparkException

import slicewise as sw
from tests.spark.stream_running import table_of

ROWS = [(t, k, 0 if k == "b" and t == 12 else t) for t in (1, 2, 11, 12) for k in "abc"]
MEND = "mend it, or filter such rows out before run()"
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
    expected = f"query 'q', {place}: {failure}; mend it, or take it out of the workload"
    assert message_of(caught.value, "UserCodeInWindowError") == expected
