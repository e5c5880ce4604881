"""Counters of streams, and streams that are in order: in the fake stream, without a JVM."""

from __future__ import annotations

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import DataError
from slicewise.slicing import COUNTED
from tests.matrices import matrix
from tests.spark.stream_fake import FakeStream, Workers

TYPES = {"k": pa.string(), "v": pa.int64()}
BASE = sw.Workload(time="t", keys=["k"], lateness=30)
SUMS = BASE.query("q", sw.sliding(20, every=5), top=sw.max("v"), s=sw.sum("v"), d=sw.stddev("v"))
COUNTS = BASE.query("q", sw.tumbling(sw.rows(2)), top=sw.max("v"))


def rows(times, step=0):
    return [{"t": t, "k": "ab"[(t + step) % 2], "v": (7 * t + step) % 11} for t in times]


def steps(stream, first, last):
    """Micro-batches with a late row each."""
    for i in range(first, last):
        stream.batch([rows([10 * i, 10 * i + 3], i), rows([10 * i + 7, max(10 * i - 12, 0)], i)])
    return stream


@pytest.mark.parametrize("workload", [SUMS, COUNTS], ids=["slices", "rows"])
def test_counters_go_on_after_a_restart(workload):
    whole = steps(FakeStream(workload, types=TYPES, workers=Workers(0)), 0, 8)
    first = steps(FakeStream(workload, types=TYPES, workers=Workers(0)), 0, 4)
    again = steps(first.again(types=TYPES), 4, 8)
    for name in ("rows", "tuples", "slices", "state_bytes", "watermark_lag_ms", *COUNTED):
        counted = [getattr(m, name) for m in whole.metrics]
        assert [getattr(m, name) for m in first.metrics + again.metrics] == counted, name
    assert sum(m.combines for m in whole.metrics) > 0
    assert sum(m.lifts for m in whole.metrics) > 0
    assert whole.metrics[-1].state_bytes > 0


def test_rows_are_lifted_once_for_each_partial_where_they_are_read():
    stream = steps(FakeStream(SUMS, types=TYPES), 0, 3)
    assert sum(m.lifts for m in stream.metrics[-3:]) == 2 * sum(m.rows for m in stream.metrics) == 2 * 12


@matrix(kind=["slices", "rows"], option=[("store", "eager"), ("max_slice", "auto"), ("ordered", True)])
def test_options_change_no_answer(kind, option):
    workload, options = SUMS if kind == "slices" else COUNTS, dict([option])
    plain, other = (FakeStream(workload, types=TYPES, **how) for how in ({}, options))
    for i in range(5):
        partitions = [rows([10 * i + 7, 10 * i + 2], i), rows([10 * i + 5], i)]
        answers = [sorted(map(repr, stream.batch(partitions))) for stream in (plain, other)]
        assert answers[0] == answers[1]


@pytest.mark.parametrize("workload", [SUMS, COUNTS], ids=["slices", "rows"])
def test_a_row_out_of_order_stops_a_stream_that_is_in_order_and_is_named(workload):
    stream = FakeStream(workload, types=TYPES, ordered=True)
    stream.batch([rows([12, 11])])
    state = {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}
    message = (
        "^the record of time 9, key k='b' came after 12, which an earlier micro-batch had, and ordered=True: rows must "
        "come in event-time order; leave `ordered` out, and give the workload a `watermark`$"
    )
    with pytest.raises(DataError, match=message):
        stream.batch([rows([14]), rows([9])])
    assert state.keys() == stream.handles.keys()
    assert stream.again(types=TYPES, ordered=True).batch([rows([13])]) is not None


def test_a_stream_in_order_does_not_wait_for_the_watermark():
    workload = sw.Workload(time="t", watermark=100).query("q", sw.tumbling(10), n=sw.count())
    stream = FakeStream(workload, types={}, ordered=True)
    assert [r.values["n"] for r in stream.batch([[{"t": 1}, {"t": 5}, {"t": 13}]])] == [2]
