"""The hand-over: rows wait among the ordered rows, and what is folded there serves time windows too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import RefusedRowsError
from tests.matrices import matrix
from tests.slicing.running import TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import context_windows, steps, windows
from tests.slicing.test_removal import TOTAL, rows_looked_at  # noqa: F401

COUNTS = sw.sliding(sw.rows(50), every=sw.rows(20))


def folds(workload, *, ordered=False, keys=1, rows=3000) -> int:
    """How often rows were looked at, of a stream that comes in thirty pieces."""
    times = np.arange(rows).reshape(30, -1)
    if not ordered:
        times = np.random.default_rng(1).permuted(times, axis=1)
    op = workload.operator(types={"v": pa.int64(), "k": pa.int64()}, ordered=ordered)
    TOTAL.calls.clear()
    for piece in times:
        op.process_batch({"t": piece, "v": piece % 7, "k": piece % keys})
        if not ordered:
            op.advance(int(piece.max()) - 20)
    op.advance(10 * rows)
    assert TOTAL.calls["lift"] == rows
    return TOTAL.calls["rows"]


@matrix(ordered=[True, False], keys=[1, 3])
def test_time_windows_add_no_work_per_row_to_count_windows(ordered, keys):
    alone = sw.Workload("t", keys=["k"]).query("rows", COUNTS, s=TOTAL)
    both = alone.query("time", sw.sliding(100, every=30), s=TOTAL).query("visit", sw.session(5), s=TOTAL)
    assert folds(both, ordered=ordered, keys=keys) == folds(alone, ordered=ordered, keys=keys)


def test_an_aggregate_that_only_time_windows_have_is_computed_once():
    alone = sw.Workload("t").query("rows", COUNTS, n=sw.count())
    assert folds(alone.query("time", sw.sliding(100, every=30), s=TOTAL), rows=3000) == 3000


def test_rows_that_wait_are_seen_by_whoever_looks():
    workload = sw.Workload("t").query("time", sw.tumbling(10), n=sw.count()).query("rows", COUNTS, n=sw.count())
    op = workload.operator(types={"v": pa.int64()})
    op.process_batch({"t": [1, 2, 15], "v": [1, 1, 1]})
    assert [(s["start"], s["end"], s["rows"]) for s in op.slices().to_pylist()] == [(0, 10, 2), (10, 20, 1)]
    assert op.stats().slices == 2
    assert op.slices() == op.slices()  # looking changes nothing
    assert [r.values["n"] for r in op.advance(20) if r.query == "time"] == [2, 1]


@given(windows(), context_windows(), windows(), steps(), st.data())
def test_queries_come_and_go_while_rows_wait(time, context, another, stream, data):
    """Whatever is dropped or added, the time query that stays gets every row, once."""
    base = sw.Workload("t", keys=["k"], lateness=data.draw(st.sampled_from([0, 7])))
    alone = base.query("stays", time, s=sw.sum("v"))
    both = alone.query("goes", context, s=sw.sum("v"))
    cut = data.draw(st.integers(0, len(stream) - 1))
    op = both.operator(types=TYPES)
    found = run_operator(op, stream[:cut])
    snapshot = op.snapshot()
    op = alone.query("comes", another, s=sw.sum("v")).operator(types=TYPES)
    op.restore(snapshot)
    found += run_operator(op, stream[cut:])
    mine = [[r for r in results if r.query == "stays"] for results in found]
    assert_same(mine, run_oracle(alone, stream)[0])


class Fails:
    """Begins and ends a window with every row, and stumbles over one."""

    def on_record(self, time, row):
        if row["v"] == 13:
            raise ValueError("unlucky")
        return 1, 1 if time else 0


def test_a_row_that_user_code_stumbles_over_counts_in_time_windows():
    workload = sw.Workload("t").query("time", sw.tumbling(10), n=sw.count(), s=sw.sum("v"))
    workload = workload.query("own", sw.user_defined(Fails, columns=["v"]), n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [0, 3, 5, 12], "v": [1, 13, 2, 4]})
    with pytest.raises(RefusedRowsError, match="unlucky"):
        op.advance(11)
    assert [r.values for r in op.advance(11) if r.query == "time"] == [{"n": 3, "s": 16}]
    assert [r.values for r in op.close() if r.query == "time"] == [{"n": 1, "s": 4}]
