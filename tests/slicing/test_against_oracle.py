"""The engine against the definition: random workloads, random streams, random chunks, random watermarks.

Workloads are of all kinds of windows: those that time alone tells, and those that only rows in order can tell.
"""

from __future__ import annotations

import math
import pickle
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.slicing.time import slice_manager
from slicewise.testing import disordered, in_order
from tests.matrices import first_quick
from tests.slicing.running import FLOATS, TYPES, assert_same, assert_same_in_order, rechunked, run_operator, run_oracle
from tests.slicing.strategies import aggregates_over, mixed_workloads, rows, steps, windows, workloads

any_workloads = st.one_of(workloads(), mixed_workloads())
EXACT = [sw.sum("v"), sw.count(), sw.count("v"), sw.avg("v")]


@given(any_workloads, steps(), st.booleans(), st.sampled_from([None, None, "lazy", "eager"]), st.sampled_from([0, 256]))
def test_every_epoch_gives_the_oracles_results(workload, epochs, one_by_one, store, few_slices):
    expected, late = run_oracle(workload, epochs)
    with mock.patch.object(slice_manager, "FEW_SLICES", few_slices):
        op = workload.operator(types=TYPES, store=store)
        assert_same(run_operator(op, epochs, one_by_one=one_by_one), expected)
    assert sorted(r.time for r in op.late()) == sorted(time for time, _, _ in late)


@given(workloads(st.sampled_from(EXACT)), steps())
def test_prefix_store_is_exact_on_integers(workload, epochs):
    expected, _ = run_oracle(workload, epochs)
    assert_same(run_operator(workload.operator(types=TYPES, store="prefix"), epochs), expected, scale=0)


FLOATING = aggregates_over().filter(lambda aggregate: "bit_" not in repr(aggregate))
#: Floats with those among them that are no finite numbers.
ANY_FLOAT = st.one_of(st.none(), st.floats(-1e3, 1e3), st.sampled_from([math.nan, math.inf, -math.inf]))


@given(workloads(FLOATING), steps(ANY_FLOAT))
def test_floats_with_nan_and_infinity(workload, epochs):
    expected, _ = run_oracle(workload, epochs)
    assert_same(run_operator(workload.operator(types=FLOATS), epochs), expected, scale=1e3)


@given(any_workloads, st.lists(rows(), max_size=25), st.data())
def test_an_ordered_stream_reports_each_window_as_soon_as_it_ends(workload, stream, data):
    assert_same_in_order(workload, stream, data)


@given(any_workloads, steps(), st.data())
def test_any_chunking_gives_the_same_answers(workload, epochs, data):
    expected = run_operator(workload.operator(types=TYPES), epochs)
    assert_same(run_operator(workload.operator(types=TYPES), rechunked(epochs, data)), expected)


@given(any_workloads, steps())
def test_snapshot_and_restore_at_every_cut_point_changes_nothing(workload, epochs):
    def again(op):
        return workload.operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot())))

    expected = run_operator(workload.operator(types=TYPES), epochs)
    assert_same(run_operator(workload.operator(types=TYPES), epochs, between=again), expected)


@given(workloads(), windows(), st.sampled_from([sw.sum("v"), sw.first("w"), sw.concat("w")]), steps(), st.data())
def test_a_query_added_later_equals_having_had_it_from_that_moment_on(workload, window, aggregate, epochs, data):
    """It reports the windows that start at or after `since` and are due after the watermark of that moment."""
    at = data.draw(st.integers(0, len(epochs) - 1))
    by_restore = data.draw(st.booleans())
    whole = workload.query("added", window, x=aggregate)
    always = run_operator(whole.operator(types=TYPES), epochs)

    op = workload.operator(types=TYPES)
    before = run_operator(op, epochs[:at])
    # Before any row came, nothing can have been missed.
    mark = epochs[at - 1][1] if op.stats().rows else None
    if by_restore:
        op = whole.operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot())))
        since = op._core.engine.reports_from.get("added") if op._core.engine else None
    else:
        since = op.add_query("added", window, x=aggregate)
    after = run_operator(op, epochs[at:])

    late = 1 if window.kind == "session" else 0
    kept = [
        [
            r
            for r in epoch
            if r.query != "added"
            or (n >= at and (since is None or r.start >= since) and (mark is None or r.end + late > mark))
        ]
        for n, epoch in enumerate(always)
    ]
    # Rows that were late before the query came might have counted in it: those windows start before `since`.
    assert_same(before + after, kept)


@given(workloads(), windows(), steps(), st.data())
def test_removing_a_query_leaves_the_others_alone(workload, window, epochs, data):
    at = data.draw(st.integers(0, len(epochs) - 1))
    both = workload.query("gone", window, x=sw.last("w"))
    always = run_operator(both.operator(types=TYPES), epochs)
    op = both.operator(types=TYPES)
    before = run_operator(op, epochs[:at])
    op.remove_query("gone")
    after = run_operator(op, epochs[at:])
    assert not any(r.query == "gone" for epoch in after for r in epoch)

    def others(run):
        return [[r for r in epoch if r.query != "gone"] for epoch in run]

    assert_same(others(before + after), others(always))


@pytest.mark.parametrize("aggregate", first_quick([sw.sum, sw.avg, sw.stddev, sw.variance]))
def test_floats_keep_their_digits_after_a_million_rows_and_huge_cancelling_values(aggregate):
    stream = in_order(1_000_000, rate=2000, seed=7)
    values = np.random.default_rng(7).normal(1e-3, 1.0, len(stream))
    # 1e15 comes and goes early on: whatever was subtracted from a running value would carry its rounding for ever.
    values[1000], values[1001] = 1e15, -1e15
    workload = (
        sw.Workload("t", unit="microseconds")
        .query("slide", sw.sliding("20 seconds", every="1 second"), x=aggregate("v"))
        .query("many", sw.sliding("7 seconds", every="300 ms"), x=aggregate("v"))
    )
    op = workload.operator()
    results = sw.Results()
    for at in range(0, len(stream), 50_000):
        results = results + op.process_batch({"t": stream.times[at : at + 50_000], "v": values[at : at + 50_000]})
        results = results + op.advance(int(stream.times[: at + 50_000].max()))
    results = results + op.close()
    reference = {"sum": math.fsum, "avg": lambda v: math.fsum(v) / len(v)}
    reference |= {"stddev": lambda v: np.std(v, ddof=1), "variance": lambda v: np.var(v, ddof=1)}
    clean = [r for r in results if r.start > stream.times[1001]]
    assert len(clean) > 2000
    for r in clean[:: len(clean) // 200]:
        low, high = np.searchsorted(stream.times, [r.start, r.end])
        expected = reference[aggregate.name](values[low:high])
        assert r.values["x"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_large_disordered_stream_of_many_keys_equals_plain_numpy():
    stream = disordered(in_order(200_000, rate=2000, keys=50, seed=3), fraction=0.3, max_delay_us=3_000_000, seed=4)
    workload = (
        sw.Workload("t", unit="microseconds", keys=["k"], watermark="3 seconds")
        .query("per_second", sw.tumbling("1 second"), s=sw.sum("v"), m=sw.max("v"))
        .query("slide", sw.sliding("10 seconds", every="2 seconds"), s=sw.sum("v"), m=sw.max("v"))
    )
    op = workload.operator()
    chunks = ({"t": c.times, "k": c.keys, **c.columns} for c in stream.chunks(7_000))
    found = {(r.key[0], r.query, r.start): (r.end, r.values["s"], r.values["m"]) for rs in op.drive(chunks) for r in rs}
    assert op.stats().late_rows == 0
    expected = {}
    for name, length, every in [("per_second", 1_000_000, 1_000_000), ("slide", 10_000_000, 2_000_000)]:
        for key in np.unique(stream.keys):
            mine = stream.keys == key
            times, values = stream.times[mine], stream.columns["v"][mine]
            last = times // every
            for back in range(length // every):
                for k in np.unique(last - back):
                    inside = values[(times >= k * every) & (times < k * every + length)]
                    expected[key, name, k * every] = (k * every + length, inside.sum(), inside.max())
    assert found == expected
