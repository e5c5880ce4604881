"""When the next window may be reported, on ordered streams: never too late, and late enough to be worth waiting for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.times import INFINITY
from tests.slicing.running import TYPES, columns_of
from tests.slicing.strategies import context_windows, rows


def patient_windows() -> st.SearchStrategy[sw.windows.Window]:
    """One window that reports only after many rows, or much time."""
    many, long = st.integers(5, 12).map(sw.rows), st.integers(20, 50)
    return st.one_of(
        st.builds(sw.tumbling, many),
        st.builds(lambda n, m: sw.sliding(n, every=m), many, many),
        st.builds(lambda n, m: sw.sliding(n, every=m), st.integers(1, 20), many),
        st.builds(lambda n, e: sw.sliding(n, every=e), many, long),
        st.builds(lambda e: sw.policy(lambda total, oldest: False, every=e), long),
    )


@pytest.mark.parametrize(
    ("windows", "worth_waiting"), [(context_windows(), False), (patient_windows(), True)], ids=["any", "patient"]
)
def test_nothing_is_reported_before_it_is_due(windows, worth_waiting):
    quiet = 0

    @given(
        st.lists(windows, min_size=1, max_size=2), st.lists(rows(), min_size=20, max_size=40), st.booleans(), st.data()
    )
    def holds(windows, stream, keyed, data):
        nonlocal quiet
        workload = sw.Workload("t", keys=["k"] if keyed else [])
        for i, window in enumerate(windows):
            workload = workload.query(f"q{i}", window, n=sw.count())
        op = workload.operator(ordered=True, types=TYPES)
        stream = sorted(stream, key=lambda row: row["t"])
        due, left = -INFINITY, 0
        while stream:
            chunk = [stream.pop(0) for _ in range(min(len(stream), data.draw(st.integers(1, 3))))]
            found = op.process_batch(columns_of(chunk))
            left -= len(chunk)
            if chunk[-1]["t"] < due and left > 0:
                assert not len(found)
                quiet += 1
            if len(found) or data.draw(st.booleans()):
                (queries,) = op._core.engine.context_aware
                due, left = queries.next_due(op._core.engine.watermark)

    holds()
    assert quiet or not worth_waiting, "no rows came before a window was due, so nothing was checked"


@pytest.mark.parametrize(
    ("window", "due", "left"),
    [
        (sw.tumbling(sw.rows(1000)), INFINITY, 1000 - 10 + 1),
        (sw.sliding(sw.rows(1000), every=sw.rows(100)), INFINITY, 1000 - 10 + 1),
        (sw.sliding(sw.rows(10), every=sw.rows(100)), 10, 101),  # full, and waits for the next row
        (sw.sliding(50, every=sw.rows(100)), INFINITY, 100 - 10 + 1),
        (sw.sliding(sw.rows(3), every=50), 50, INFINITY),
        (sw.policy(lambda total, oldest: False, every=50), 50, INFINITY),
        (sw.punctuated("v > 3"), -INFINITY, 1),
        (sw.tumbling(sw.units(5, "v")), -INFINITY, 1),
    ],
    ids=repr,
)
def test_how_long_one_may_wait(window, due, left):
    op = sw.Workload("t").query("q", window, n=sw.count()).operator(ordered=True)
    op.process_batch({"t": np.arange(10), "v": np.arange(10)})
    (queries,) = op._core.engine.context_aware
    assert queries.next_due(op._core.engine.watermark) == (due, left)
