"""Rows that are only punctuation, in batch and on a stream, beside the operator in process."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import DataError
from tests.spark.running import in_process, on_spark, rows_of


class Marks:
    """A window from one mark to the next."""

    def __init__(self) -> None:
        self.open = 0

    def on_record(self, time: int, row: dict[str, object]) -> tuple[int, int]:
        begins = int(row["mark"] == "m")
        ends, self.open = (self.open, 1) if begins else (0, self.open)
        return begins, ends


#: Waits for all rows, so that a stream reports what a batch does.
WORKLOAD = (
    sw.Workload("t", keys=["k"], watermark=1000, where="v <> 7", punctuation="mark = 'm' or v * v = 36")
    .query("tens", sw.tumbling(10), n=sw.count(), total=sw.sum("v"))
    .query("visit", sw.session(2), n=sw.count())
    .query("texts", sw.tumbling(20), all=sw.concat("mark"))
    .query("fives", sw.tumbling(sw.rows(10)), total=sw.sum("v"))
    .query("high", sw.frames("v > 3"), n=sw.count())
    .query("laps", sw.punctuated("v > 5"), n=sw.count(), total=sw.sum("v"), all=sw.concat("mark"))
    .query("race", sw.punctuated("mark = 'm'", "v = 0", closed="both"), n=sw.count(), peak=sw.max("v"))
    .query("between", sw.user_defined(Marks, columns=["mark"]), n=sw.count(), total=sw.sum("v"))
)
FAR = 10_000


def table(seed: int, rows: int = 400) -> pa.Table:
    """Rows in no order; several at one time, and nulls in the column that tells what is punctuation."""
    draw = random.Random(seed)
    columns = {
        "t": [draw.randrange(rows // 2) for _ in range(rows)],
        "k": [draw.choice(["a", "b", None]) for _ in range(rows)],
        "v": [draw.randrange(9) for _ in range(rows)],
        "mark": [draw.choice(["m", "x", "y", None]) for _ in range(rows)],
    }
    types = {"t": pa.int64(), "k": pa.string(), "v": pa.int64(), "mark": pa.string()}
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


def ended(results: pa.Table) -> pa.Table:
    """Windows that have ended before the last rows came, without what only streams say."""
    rows = [row for row in results.to_pylist() if (row["window"]["end"] or FAR) < FAR - 1000]
    kept = pa.Table.from_pylist(rows, schema=results.schema)
    return kept.drop_columns([n for n in ("change", "revision", "batch") if n in kept.column_names])


def in_order(results: pa.Table) -> list[str]:
    """Results as texts; several windows of one key may begin and end at the same time."""
    return sorted(repr(sorted(row.items())) for row in rows_of(results))


def test_batch_and_stream_say_what_the_operator_says(spark):
    rows = table(1)
    last = pa.table({"t": [FAR] * 3, "k": ["a", "b", None], "v": [8] * 3, "mark": ["m"] * 3}, schema=rows.schema)
    everything = spark.createDataFrame(pa.concat_tables([rows, last]))
    expected = in_process(WORKLOAD, everything)
    assert {row["query"] for row in expected.to_pylist()} == {query.name for query in WORKLOAD.queries}
    assert in_order(on_spark(WORKLOAD, everything)) == in_order(expected)
    batches = [spark.createDataFrame(part) for part in (rows.slice(0, 150), rows.slice(150), last)]
    reported = sw.testing.stream(batches, WORKLOAD, folded=False).toArrow()
    assert set(reported["change"].to_pylist()) == {"insert"}
    assert in_order(ended(reported)) == in_order(ended(expected))


def test_what_is_neither_true_nor_false_is_refused(spark):
    workload = sw.Workload("t", punctuation="v + 1").query("q", sw.punctuated("v > 1"), n=sw.count())
    what = r"^`punctuation` must be true or false; got 'v \+ 1', which is bigint; compare it with something$"
    with pytest.raises(DataError, match=what):
        workload.run(spark.createDataFrame(table(1, 2)))
    missing = sw.Workload("t", punctuation="kind = 'm'").query("q", sw.punctuated("v > 1"), n=sw.count())
    with pytest.raises(DataError, match="kind"):
        missing.run(spark.createDataFrame(table(1, 2)))
