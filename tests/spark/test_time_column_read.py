"""The time column as any other: aggregates and `order` read it as it came, whatever event time is made of."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.testing import stream

DAYS = {"a": (1, 1, 2, 5, 5, 9), "b": (1, 2, 2, 6)}
ROWS = [(dt.date(2024, 3, day), key, 10 * day + n) for key, days in DAYS.items() for n, day in enumerate(days)]
#: Moves the watermark behind all others.
FAR = [(dt.date(2024, 6, 1), "far", 0)]
#: How the column is made from a date, and what a workload must say about it.
TIMES = {
    "date": ("day", None),
    "timestamp": ("cast(day AS timestamp)", None),
    "timestamp_ntz": ("cast(day AS timestamp_ntz)", None),
    "seconds": ("86400 * unix_date(day)", "seconds"),
}


def both(name, aggregate):
    """An aggregate of the time column, and of the same values in another column."""
    return {name: aggregate("day"), f"{name}_of_copy": aggregate("copy")}


def sliced(unit):
    base = sw.Workload("day", keys=["k"], unit=unit, watermark="30 days")
    return base.query("pairs", sw.tumbling("2 days"), **both("most", sw.max), **both("least", sw.min), n=sw.count())


def by_rows(unit):
    base = sw.Workload("day", keys=["k"], unit=unit, watermark="30 days", order=["day", "v"])
    return (
        base.query("counted", sw.tumbling(sw.rows(2)), **both("opened", sw.first), v=sw.collect_list("v"))
        .query("visit", sw.session("2 days"), **both("listed", sw.collect_list), **both("most", sw.max))
        .query("best", sw.tumbling("7 days"), **both("best", lambda column: sw.max_by("v", column)))
    )


WORKLOADS = {"slices": sliced, "rows": by_rows}
BOUNDS = pa.struct([("start", pa.int64()), ("end", pa.int64())])


def seen(table):
    """Results by key, query and start, and the same values read from either column."""
    at = table.column_names.index("window")
    rows = table.set_column(at, "window", table.column("window").cast(BOUNDS)).to_pylist()
    assert rows
    for row in rows:
        for name in [name for name in row if name.endswith("_of_copy")]:
            assert row[name] == row[name.removesuffix("_of_copy")]
    names = [name for name in rows[0] if name not in ("window", "span", "change", "revision", "late", "reason")]
    return {(row["window"]["start"], str(row["span"]), *(str(row[name]) for name in names)) for row in rows}


def in_process(workload, table):
    operator = workload.operator()
    operator.process_batch(table)
    return operator.close().to_arrow()


@pytest.mark.streams
@pytest.mark.parametrize("made", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize(("column", "unit"), TIMES.values(), ids=TIMES)
def test_the_time_column_is_read_as_it_came(spark, made, column, unit):
    def frame(rows):
        days = spark.createDataFrame(rows, "day date, k string, v int").withColumn("day", F.expr(column))
        return days.withColumn("copy", F.col("day"))

    workload, rows = made(unit), frame(ROWS)
    expected = seen(workload.run(rows).toArrow())
    # The second micro-batch has rows from before those of the first.
    batches = [frame(ROWS[1::2]), frame(ROWS[::2]), frame(FAR)]
    options = [{}] if made is by_rows else [{}, {"late": "collect"}]
    for how in options:
        assert seen(stream(batches, workload, **how).toArrow()) == expected
    assert seen(in_process(workload, rows.toArrow())) == expected
