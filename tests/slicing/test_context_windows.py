"""Windows that only rows in order can tell, added later; their other properties are in test_against_oracle.py."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
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
