"""Very many ticks due at once: they are counted where rows are the same, and made when results are read."""

from __future__ import annotations

import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import results
from slicewise.slicing.rows import ticks
from tests.slicing.running import TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import at_most_five, steps

DAY = 86_400

LENGTHS = [sw.rows(1), sw.rows(3), sw.units(2, "u"), sw.units(5, "z")]
SLIDES = st.sampled_from([1, 3, 7, sw.units(1, "z"), sw.units(0.5, "u"), sw.units(2, "u")])
WATCHING = {"watch": {"n": sw.count()}, "evict": at_most_five}
ticking = st.one_of(
    st.builds(lambda length, every: sw.sliding(length, every=every), st.sampled_from(LENGTHS), SLIDES).filter(
        lambda window: window.length.measure != window.every.measure
    ),
    st.builds(lambda every: sw.policy(**WATCHING, every=every), SLIDES),
)


@st.composite
def workloads(draw: st.DrawFn) -> sw.Workload:
    keys = draw(st.sampled_from([[], ["k"]]))
    w = sw.Workload(time="t", keys=keys, lateness=draw(st.sampled_from([0, 0, 5, 50, 10_000])))
    for i, window in enumerate(draw(st.lists(ticking, min_size=1, max_size=3))):
        w = w.query(f"q{i}", window, n=sw.count(), s=sw.sum("v"))
    return w


@given(workloads(), steps(), st.sampled_from([0, 5]), st.sampled_from([1, 7, 1000]))
def test_counted_ticks_give_the_oracles_results(workload, epochs, few, most):
    expected, _ = run_oracle(workload, epochs)
    with mock.patch.object(ticks, "FEW_TICKS", few), mock.patch.object(results, "MOST", most):
        assert_same(run_operator(workload.operator(types=TYPES), epochs), expected)


def a_day_without_rows(keys: int, every: object, lateness: int = 0) -> sw.Results:
    names = [f"k{i}" for i in range(keys)]
    w = sw.Workload(time="t", keys=["k"], lateness=lateness)
    op = w.query("q", sw.sliding(sw.rows(3), every=every), n=sw.count(), s=sw.sum("v")).operator()
    for t in (0, DAY):
        op.process_batch({"t": [t] * keys, "k": names, "v": list(range(keys)), "km": [float(t)] * keys})
        found = op.advance(t)
    return found


@pytest.mark.parametrize("lateness", [0, 100])
@pytest.mark.parametrize("every", [1, sw.units(1.0, "km")], ids=["time", "a measure"])
def test_results_of_a_day_without_rows_leave_in_blocks_of_bounded_size(every, lateness):
    found = a_day_without_rows(5, every, lateness)
    if lateness and every == 1:
        assert len(found) == 5 * DAY
    with mock.patch.object(results, "MOST", 1000):
        blocks = list(found.blocks)
    assert max(map(len, blocks)) <= 1000
    assert sum(map(len, blocks)) == len(found)
    ends = np.concatenate([block.end for block in blocks])
    assert sorted(ends.tolist()) == sorted([float(t) if every != 1 else t for t in range(1, DAY + 1)] * 5)
    assert {value for block in blocks for value in block.values[0].values.tolist()} == {1}


def test_a_day_of_seconds_and_a_hundred_keys_take_little_memory():
    tracemalloc.start()
    try:
        found = a_day_without_rows(100, 1)
        assert len(found) == 100 * DAY
        assert sum(len(block) for block in found.blocks) == 100 * DAY
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # As arrays they took 900 MB.
    assert peak < 100e6


@pytest.mark.slow
def test_results_are_read_as_often_as_one_likes():
    found = a_day_without_rows(1, 1)
    first, again = list(found), list(found)
    assert first == again
    assert first[-1] == sw.Result(("k0",), "q", 0, DAY, "insert", 0, {"n": 1, "s": 0})
    assert found.to_arrow().num_rows == DAY == len(found + found) // 2
