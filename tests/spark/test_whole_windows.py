"""Windows of one slice on Spark: a lone table of windows that do not overlap, computed in the JVM, nothing composed."""

from __future__ import annotations

import re
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from py4j import clientserver
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
    "of a second each": table(*[(i + 0.3, i + 1.3) for i in range(-1, 100)]),
    "every other second": table(*[(i, i + 1) for i in range(0, 100, 2)]),
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


def bounds_by_chance(seed: int) -> list[tuple[int, int]]:
    """Windows that do not overlap: in a row, in a row that may have gaps, uneven, and few that are far apart."""
    random = np.random.default_rng(seed)
    count = int(random.integers(3, 60))
    lengths = {
        0: np.full(count, random.integers(1, 50)),
        1: np.full(count, random.integers(1, 50)),
        2: random.integers(1, 50, count),
        3: random.choice([1, 10**5], min(count, 16)),
    }[seed % 4]
    edges = np.cumsum(lengths) - random.integers(0, 10**4)
    kept = np.flatnonzero((random.random(len(edges) - 1) < 0.7) | (seed % 8 in (0, 2)))
    return [(int(edges[i]), int(edges[i + 1])) for i in (kept if len(kept) else [0])]


DAY = 86_400 * SECOND
#: Days as times of Spark; a day in the table of edges, and in the results.
TIMES = {
    "timestamp": (f"timestamp_micros(n * {DAY})", DAY, DAY),
    "without a zone": ("timestamp_ntz '1970-01-01' + make_dt_interval(cast(n as int))", DAY, DAY),
    "date": ("date_from_unix_date(cast(n as int))", DAY, DAY),
    "seconds": ("n * 86400", 86_400, DAY),
    "numbers": ("n", 1, 1),
}


@pytest.mark.parametrize("name", TIMES)
def test_windows_of_any_table_hold_the_rows_between_their_bounds(spark, capsys, name):
    """By definition, at each edge and beside it, before and after all of them, and without a time."""
    time, given_day, shown_day = TIMES[name]
    unit = "seconds" if name == "seconds" else None
    for seed in range(8):
        bounds = bounds_by_chance(seed)
        times = sorted({at + d for bound in bounds for at in bound for d in (-1, 0, 1)} | {-(10**5), 10**5 * 6, 0})
        frame = spark.createDataFrame(pa.table({"n": [*times, None, *times[::3]]}).to_pandas().astype("Int64"))
        given = pa.array(np.array(bounds).T.reshape(-1) * given_day)
        if name in ("timestamp", "without a zone", "date"):
            given = given.cast(pa.timestamp("us", None if name == "without a zone" else "UTC"))
        start, end = given[: len(bounds)], given[len(bounds) :]
        workload = sw.Workload("t", unit=unit).query("q", sw.edges({"start": start, "end": end}), n=sw.count())
        results = workload.run(frame.selectExpr(f"{time} as t"))
        assert not is_composed(results, capsys)
        found = results.select("window.start", "window.end", "n").toArrow()
        counted = {(s, e): sum(s <= t < e for t in [*times, *times[::3]]) for s, e in bounds}
        at = [np.array(found.column(c).cast(pa.int64())) // shown_day for c in ("start", "end")]
        shown = dict(zip(zip(*(x.tolist() for x in at), strict=True), found.column("n").to_pylist(), strict=True))
        assert shown == {bound: n for bound, n in counted.items() if n}, seed


def test_a_plan_holds_the_numbers_of_a_table_three_times_and_those_of_a_grid_never(rows):
    """Spark takes longer to plan them than to look them up, and would look them up again for each error."""
    base = sw.Workload("ts", keys=["k"])
    for name, times in (("of a second each", 0), ("many", 3), ("many with gaps", 3)):
        results = base.query("q", TABLES[name], **AGGREGATES).run(rows)
        plan = results._jdf.queryExecution().optimizedPlan().toString()
        arrays = re.findall(r"\[-?\d+(?:,-?\d+){50,}\]", plan)
        assert len(arrays) == times, name


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


def test_a_lone_tumbling_window_is_planned_in_few_round_trips_to_the_jvm(rows):
    """Each takes some fifty microseconds, in every query anew. Spark's own window takes 58."""
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.tumbling("1 second"), n=sw.count(), total=sw.sum("v"))
    workload.run(rows)
    sent = []
    send = clientserver.JavaClient.send_command

    def counted(self, command, *arguments, **options):
        if not command.startswith("m"):  # which says that Python holds an object no longer, whenever it notices
            sent.append(command)
        return send(self, command, *arguments, **options)

    with mock.patch.object(clientserver.JavaClient, "send_command", counted):
        workload.run(rows)
    assert 20 < len(sent) <= 200, len(sent)
