"""Windows that only rows in order can tell, added later; their other properties are in test_against_oracle.py."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.registry import discretisers_for
from slicewise.slicing.steps import Step
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.times import INFINITY
from tests.slicing.running import TYPES, assert_same, run_operator
from tests.slicing.strategies import context_windows, mixed_workloads, steps


@given(mixed_workloads(), context_windows(), steps(), st.data())
def test_a_query_added_later_counts_from_then_on_and_says_since_when(workload, window, epochs, data):
    """It equals an operator of its own that is given only the rows at or after `since`."""
    at = data.draw(st.integers(0, len(epochs) - 1))
    op = workload.operator(types=TYPES)
    before = run_operator(op, epochs[:at])
    seen = op._core.engine is not None and op._core.engine.latest > -INFINITY
    since = op.add_query("added", window, x=sw.collect_list("w"))
    found = run_operator(op, epochs[at:])

    assert (since is not None) == seen
    own = workload.with_queries([])
    own = own.query("ints", sw.tumbling(7), n=sw.count()).query("added", window, x=sw.collect_list("w"))
    alone = own.operator(types=TYPES)
    if at and epochs[at - 1][1] is not None:
        alone.advance(epochs[at - 1][1])
    kept = [
        ([[row for row in chunk if since is None or row["t"] >= since] for chunk in chunks], mark)
        for chunks, mark in epochs[at:]
    ]
    expected = [[r for r in epoch if r.query == "added"] for epoch in run_operator(alone, kept)]
    assert_same([[r for r in epoch if r.query == "added"] for epoch in found], expected)
    always = run_operator(workload.operator(types=TYPES), epochs)
    assert_same(before + [[r for r in epoch if r.query != "added"] for epoch in found], always)


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=8), min_size=1, max_size=3),
    st.sampled_from([(1, 1), (3, 3), (6, 2), (2, 3)]),
)
def test_count_windows_are_found_among_slices_alone(sizes, window):
    """As a batch has them: every row stands in a slice, cut wherever a window begins or ends."""
    length, every = window
    bounds = {s + shift for s in range(0, 41, every) for shift in (0, length)}
    pieces = [
        [(key, low, high) for low, high in pairwise(sorted({0, sum(rows), *(b for b in bounds if b < sum(rows))}))]
        for key, rows in enumerate(sizes)
    ]
    key, low, high = (np.array(column, np.int64) for column in zip(*(p for some in pieces for p in some), strict=True))
    nothing = np.zeros(len(key), np.int64)
    slices = Slices(key, low, high - 1, high - low, nothing, nothing, ())
    base = np.zeros(len(sizes), np.int64)
    view = OrderedRows(slices, Tuples.empty({}), base, base)
    (discretiser,) = discretisers_for([sw.sliding(sw.rows(length), every=sw.rows(every))])
    windows, _ = discretiser.find(view, Step.whole())
    assert (windows.low < windows.high).all()
    assert (windows.low >= 0).all()
    ranges = zip(windows.key.tolist(), low[windows.low].tolist(), high[windows.high - 1].tolist(), strict=True)
    expected = [(k, s, s + length) for k, rows in enumerate(sizes) for s in range(0, sum(rows) - length + 1, every)]
    assert list(ranges) == expected
    assert list(zip(windows.start.tolist(), windows.end.tolist(), strict=True)) == [(s, e) for _, s, e in expected]
