"""Windows of one slice on Spark: a lone table of windows that do not overlap, computed in the JVM, nothing composed."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.routes import WHOLE
from slicewise.spark.partials import _WHOLE
from tests.spark.running import compare, in_process, on_spark
from tests.spark.stream_running import SECOND

AGGREGATES = {
    "n": sw.count(),
    "total": sw.sum("v"),
    "mean": sw.avg("v"),
    "least": sw.min("v"),
    "some": sw.sum("v").where("v % 2 = 0"),
    "spread": sw.stddev("v"),
}


def table(*bounds: tuple[float, float]) -> sw.windows.TableEdges:
    columns = zip(*[(round(a * SECOND), round(b * SECOND)) for a, b in bounds], strict=True)
    arrays = [pa.array(column, pa.int64()).cast(pa.timestamp("us", "UTC")) for column in columns]
    return sw.edges(dict(zip(("start", "end"), arrays, strict=True)))


#: Each as its name says, among rows from second -3 to second 108; the last is too uneven for arithmetic.
TABLES = {
    "beside each other": table((0, 8), (8, 30), (30, 31.5)),
    "with gaps": table((-100, -1), (0, 8), (9, 30), (30, 31.5), (90, 91)),
    "many": table(*[(i + i % 3 / 7, i + 1 + (i + 1) % 3 / 7) for i in range(100)]),
    "many with gaps": table(*[(i + i % 3 / 7, i + 0.5) for i in range(100)]),
    "far apart": table((0, 0.000001), (0.000001, 1), (50, 10**6)),
}
UNEVEN = table(*[(i, i + 1) for i in range(50)], (50, 50.000001), (10**6, 10**6 + 1))


@pytest.fixture(scope="module")
def rows(spark):
    n = F.col("id")
    ts = F.when(n % 50 > 0, F.timestamp_micros(n * 37_000 - 3_000_000)).alias("ts")
    key = F.when(n % 4 > 0, F.concat(F.lit("k"), n % 3)).alias("k")
    frame = spark.range(3000).select(ts, key, F.when(n % 11 > 0, n * 7 % 13).alias("v")).cache()
    yield frame
    frame.unpersist()


def is_composed(frame, capsys):
    frame.explain()
    return "MapInArrow" in capsys.readouterr().out


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_windows_that_do_not_overlap_is_left_to_spark(rows, capsys, name):
    workload = sw.Workload("ts", keys=["k"]).query("q", TABLES[name], **AGGREGATES)
    assert not is_composed(workload.run(rows), capsys)
    found = on_spark(workload, rows)
    assert found.num_rows > 3
    compare(found, in_process(workload, rows.where("ts is not null")), ["k"])


def test_so_are_calendars_and_schedules_once_they_are_listed(rows, capsys):
    days = rows.withColumn("ts", F.timestamp_micros(F.unix_micros("ts") * 3000))
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.tumbling("1 day", zone="Europe/Berlin"), **AGGREGATES)
    assert not is_composed(workload.run(days), capsys)
    compare(on_spark(workload, days), in_process(workload, days.where("ts is not null")), ["k"])


@pytest.mark.parametrize(
    "window", [UNEVEN, table((0, 8), (7, 9)), sw.edges({"start": [0], "end": [8 * SECOND], "k": ["k1"]})]
)
def test_other_tables_are_composed(rows, capsys, window):
    workload = sw.Workload("t", keys=["k"]) if window.zoned is None else sw.Workload("ts", keys=["k"])
    frame = rows.withColumn("t", F.unix_micros("ts")).drop("ts") if window.zoned is None else rows
    workload = workload.query("q", window, n=sw.count())
    assert is_composed(workload.run(frame), capsys)
    compare(on_spark(workload, frame), in_process(workload, frame.where(f"{workload.time} is not null")), ["k"])


def test_a_table_in_which_no_row_lies_gives_nothing(rows):
    workload = sw.Workload("ts", keys=["k"]).query("q", table((10**5, 10**6)), **AGGREGATES)
    assert on_spark(workload, rows).num_rows == 0


@pytest.mark.parametrize("at", [3, 8.5])
def test_only_a_window_fails_and_is_named_and_never_what_lies_between(spark, at):
    """Key b overflows between two windows, and then in one."""
    content = {"ts": [1.0, at, at], "k": ["a", "b", "b"], "v": [1, 2**62, 2**62]}
    times = pa.array([round(t * SECOND) for t in content["ts"]], pa.int64()).cast(pa.timestamp("us", "UTC"))
    frame = spark.createDataFrame(pa.table({**content, "ts": times}))
    results = sw.Workload("ts", keys=["k"]).query("q", TABLES["with gaps"], total=sw.sum("v")).run(frame)
    if at == 8.5:
        assert [row["total"] for row in results.collect()] == [1]
        return
    message = (
        "query 'q', key k='b', window [1970-01-01 00:00:00+00:00, 1970-01-01 00:00:08+00:00): `sum` of column 'v' does "
        "not fit in a 64-bit integer: a window gives 9223372036854775808; cast the column to a wider type"
    )
    with pytest.raises(PySparkException, match=re.escape(message)):
        results.collect()


def test_the_plan_knows_which_functions_spark_has():
    assert frozenset(_WHOLE) == WHOLE
