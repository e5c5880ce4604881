"""Sketches across languages: Spark reads what Python writes and Python what Spark writes; batch, stream and process."""

from __future__ import annotations

import datasketches
import pytest
from pyspark.sql import functions as F

import slicewise as sw

N = 3000
#: Spark 4.0 has none of these; Python then sketches the values.
THETA, KLL = hasattr(F, "theta_sketch_agg"), hasattr(F, "kll_sketch_agg_double")
WINDOWS = {"tumbling": sw.tumbling(500), "sliding": sw.sliding(1000, every=250), "session": sw.session(400)}
AGGREGATES = {
    "hll": sw.hll_sketch_agg("i"),
    "hll_text": sw.hll_sketch_agg("s", 10),
    "theta": sw.theta_sketch_agg("i", 9),
    "theta_text": sw.theta_sketch_agg("s"),
    "kll": sw.kll_sketch_agg_double("x", 100),
    "n_text": sw.approx_count_distinct("s"),
    "n_float": sw.approx_count_distinct("x", 0.02),
    "middle": sw.approx_percentile("i", 0.5, 100),
    "ends": sw.percentile_approx("x", [0.1, 0.9], 200),
    "often": sw.approx_most_frequent("s", 2),
}


@pytest.fixture(scope="module")
def rows(spark):
    i = F.when(F.col("id") % 11 != 0, F.col("id") * 7 % 1201)
    text = F.when(F.col("id") % 13 == 0, "").otherwise(F.concat(F.lit("é"), F.col("id") % 401))
    # The last seconds have no values at all.
    some = F.col("id") < N - 300
    columns = {"i": F.when(some, i), "s": F.when(some, text), "x": F.when(some, (i / 3).cast("double"))}
    t = F.col("id") + F.when(F.col("id") >= N // 2, 700).otherwise(0)
    frame = spark.range(N).select(t.alias("t"), *(c.alias(n) for n, c in columns.items())).cache()
    yield frame
    frame.unpersist()


def estimates(frame):
    """What Spark's own functions read in sketches, and the rest as it is."""
    read = {"hll": F.hll_sketch_estimate("hll"), "hll_text": F.hll_sketch_estimate("hll_text")}
    read["united"] = F.hll_sketch_estimate(F.hll_union("hll", "hll"))
    if THETA:
        read |= {name: F.theta_sketch_estimate(name) for name in ("theta", "theta_text")}
    if KLL:
        read |= {"kll_n": F.kll_sketch_get_n_double("kll")}
        middle = F.kll_sketch_get_quantile_double(F.when(F.col("kll_n") > 0, F.col("kll")), F.lit(0.5))
        frame = frame.withColumn("kll_n", read["kll_n"]).withColumn("kll_middle", middle)
        read |= {"kll_middle": F.col("kll_middle")}
    rest = [F.col(name) for name in ("query", "span", "n_text", "n_float", "middle", "ends", "often")]
    rows = frame.select(*rest, *(c.alias(name) for name, c in read.items()), F.col("theta").alias("theta_bytes"))
    return {(row.query, row.span): row.asDict(recursive=True) for row in rows.collect()}


def test_sketches_in_batch_and_in_process_are_read_by_spark_and_agree(spark, rows):
    workload = sw.Workload("t")
    for name, window in WINDOWS.items():
        workload = workload.query(name, window, **AGGREGATES)
    batch = workload.run(rows)
    assert [batch.schema[name].dataType.simpleString() for name in ("hll", "theta", "kll", "middle", "ends")] == [
        *("binary", "binary", "binary", "bigint", "array<double>")
    ]
    by_spark = estimates(_with_span(batch))
    op = workload.operator()
    results = list(op.process_batch(rows.toArrow())) + list(op.close())
    in_process = spark.createDataFrame(
        [(r.query, f"{r.start} {r.end}", *(r.values[name] for name in AGGREGATES)) for r in results],
        "query string, span string, " + ", ".join(f"{n} {batch.schema[n].dataType.simpleString()}" for n in AGGREGATES),
    )
    by_python = estimates(in_process)
    assert by_spark.keys() == by_python.keys()
    assert len(by_spark) > 20
    for window, found in by_spark.items():
        expected = by_python[window]
        for name in ("theta", "theta_text", "kll_n", "often", "theta_bytes"):
            if name in found:
                assert found[name] == expected[name], (window, name)
        for name, error in (("hll", 0.05), ("hll_text", 0.1), ("united", 0.05), ("n_text", 0.15), ("n_float", 0.06)):
            assert abs(found[name] - expected[name]) <= error * max(found[name], expected[name]), (window, name)
        for name in ("middle", "kll_middle"):
            if name in found and expected[name] is not None:
                assert abs(found[name] - expected[name]) <= 0.08 * 1201, (window, name)
            elif name in found:
                assert found[name] is None, (window, name)


def _with_span(frame):
    return frame.withColumn(
        "span", F.concat_ws(" ", F.col("window.start").cast("string"), F.col("window.end").cast("string"))
    )


def test_python_reads_the_sketches_that_spark_makes_of_a_whole_table(rows):
    """Empty ones and full ones, as Spark's functions give them."""
    made = {"hll": F.hll_sketch_agg("i", 12), "hll_text": F.hll_sketch_agg("s", 12)}
    if THETA:
        made |= {"theta": F.theta_sketch_agg("i", 12), "theta_text": F.theta_sketch_agg("s", 12)}
    if KLL:
        made |= {"kll": F.kll_sketch_agg_double("x", 200)}
    whole = rows.agg(*(c.alias(name) for name, c in made.items())).first()
    empty = rows.where("i is null and s is null").agg(*(c.alias(name) for name, c in made.items())).first()
    numbers = rows.select("i").distinct().where("i is not null").count()
    texts = rows.select("s").distinct().where("s <> ''").count()
    for name, count in (("hll", numbers), ("hll_text", texts)):
        sketch = datasketches.hll_sketch.deserialize(bytes(whole[name]))
        assert abs(sketch.get_estimate() - count) < 0.05 * count
        assert empty[name] is None or datasketches.hll_sketch.deserialize(bytes(empty[name])).is_empty()
    for name, count in (("theta", numbers), ("theta_text", texts)) if THETA else ():
        assert datasketches.compact_theta_sketch.deserialize(bytes(whole[name])).get_estimate() == count
    if KLL:
        sketch = datasketches.kll_doubles_sketch.deserialize(bytes(whole["kll"]))
        assert sketch.n == rows.where("x is not null").count()
