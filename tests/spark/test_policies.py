"""Slide policies and adaptive windows on Spark: a batch gives what the operator gives in process."""

from __future__ import annotations

import slicewise as sw
from tests.spark.running import compare, in_process, on_spark


def keeps_twenty(total, oldest):
    return bool(total["n"] - oldest["n"] >= 20)


def keeps_enough(total, oldest):
    return bool((total["v"] or 0) - (oldest["v"] or 0) >= 40)


def test_batch_gives_what_the_operator_gives(spark):
    """Two keys, a change of level in one of them, and values of both signs."""
    rows = [(i, "ab"[i % 2], float(i % 7 - 3 + 30 * (i > 300 and i % 2))) for i in range(600)]
    frame = spark.createDataFrame(rows, "t bigint, k string, v double")
    workload = (
        sw.Workload("t", keys=["k"])
        .query("twenty", sw.policy(keeps_twenty, watch={"n": sw.count()}), total=sw.sum("v"), high=sw.max("v"))
        .query("enough", sw.policy(keeps_enough, watch={"v": sw.sum("v")}, monotone=False, every=50), n=sw.count())
        .query("level", sw.adaptive("v", every=sw.rows(10)), n=sw.count(), low=sw.min("v"))
    )
    results = on_spark(workload, frame)
    compare(results, in_process(workload, frame), ["k"])
    levels = [r for r in results.to_pylist() if r["query"] == "level" and r["k"] == "b"]
    assert min(r["n"] for r in levels[-10:]) < 200 < max(r["n"] for r in levels) + 100
