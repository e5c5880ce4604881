"""What steps cost, in counts: combines of each store with many slices held, lifts, merges, splits, and bytes."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw

HELD = (1_000, 10_000, 100_000)


def holding(n, aggregate, store=None, *, lateness=0, steps=3):
    """An operator that holds n slices, under a window of n of them, after a few steps of one row."""
    workload = sw.Workload("t", lateness=lateness).query("q", sw.sliding(n, every=1), a=aggregate("v"))
    op = workload.operator(types={"v": "bigint"}, store=store)
    op.process_batch({"t": np.arange(n), "v": np.arange(n) % 97})
    op.advance(n - 1)
    for t in range(n, n + steps):
        op.process(t, {"v": 5})
        op.advance(t)
    return op, n + steps


def costs_of(op, time, steps=40):
    """The combines of each of some steps of one row and one window that is due."""
    counts = []
    for t in range(time, time + steps):
        before = op.stats().combines
        op.process(t, {"v": 5})
        assert len(op.advance(t)) == 1
        counts.append(op.stats().combines - before)
    return counts


@pytest.mark.parametrize("n", HELD)
def test_a_row_and_a_window_take_a_logarithm_of_combines_in_a_tree(n):
    op, time = holding(n, sw.max)
    assert max(costs_of(op, time)) <= 4 * math.log2(n) + 4


@pytest.mark.parametrize("n", HELD)
def test_a_row_in_order_takes_two_combines_and_a_window_one_with_running_values(n):
    op, time = holding(n, sw.sum)
    assert max(costs_of(op, time)) <= 3


@pytest.mark.parametrize("n", HELD[:1])
def test_a_row_takes_one_combine_and_a_window_one_less_than_slices_where_they_are_folded(n):
    op, time = holding(n, sw.sum, "lazy")
    assert max(costs_of(op, time, 5)) <= 1 + n - 1


def test_the_shape_of_figure_11():
    """General stream slicing, Figure 11: the cost of one result, with ten times as many slices held each time.

    Lazy slicing folds them all when a window is due; eager slicing takes a few nodes more for each doubling; a running
    value takes one inverse, whatever is held.
    """

    def cost(n, store):
        op, time = holding(n, sw.sum, store)
        return max(costs_of(op, time, 3))

    lazy = [cost(n, "lazy") for n in (300, 3000)]
    eager, prefix = ([cost(n, store) for n in HELD] for store in ("eager", "prefix"))
    assert lazy[1] / lazy[0] == pytest.approx(10, rel=0.02)
    assert max(b - a for a, b in pairwise(eager)) <= 4 * math.log2(10) + 4
    assert eager[-1] < lazy[0]
    assert len(set(prefix)) == 1


@pytest.mark.parametrize("n", HELD)
@pytest.mark.parametrize("aggregate", [sw.max, sw.sum])
def test_a_late_row_costs_each_window_that_it_changes_no_more_than_one_that_is_due(n, aggregate):
    op, time = holding(n, aggregate, "eager", lateness=50)
    before = op.stats().combines
    op.process(time - 20, {"v": 1000})
    results = op.advance(time - 1)
    assert len(results) == 19
    most = 2 * math.log2(n) + 2
    assert op.stats().combines - before <= most * (1 + len(results))
    assert op.stats().updates > 0


def test_running_values_give_way_to_a_tree_where_rows_are_far_behind():
    n = 4096
    op, time = holding(n, sw.sum, lateness=2 * n)
    op.process(time - 2000, {"v": 1})
    op.advance(time - 1)
    for back in (1500, 700, 900):
        before = op.stats().combines
        op.process(time - back, {"v": 1})
        due = len(op.advance(time - 1))
        assert op.stats().combines - before <= (2 * math.log2(n) + 2) * (1 + due)


def test_slices_leave_from_the_front_and_nothing_is_computed_again():
    op, time = holding(1000, sw.max)
    counts = costs_of(op, time, 1200)
    assert max(counts) <= 4 * math.log2(1000) + 4
    assert op.stats().slices < 1100


def test_running_values_start_anew_before_they_overflow():
    large = 2**57
    workload = sw.Workload("t").query("q", sw.sliding(4, every=1), a=sw.sum("v"))
    op = workload.operator(types={"v": "bigint"}, store="prefix")
    op.process_batch({"t": np.arange(10), "v": np.full(10, large)})
    op.advance(10)
    for t in range(10, 300):
        op.process(t, {"v": large})
        assert [r.values["a"] for r in op.advance(t + 1)] == [4 * large]
    assert op._core.engine.time._standing.stores[0].upto[0].dtype == np.int64
    op.process(300, {"v": 2**63 - 1})
    with pytest.raises(sw.errors.OverflowInWindowError, match="does not fit in a 64-bit integer: a window gives"):
        op.advance(301)


# Counters

MOMENTS = ("sum", "avg", "count", "stddev", "variance")


@pytest.mark.parametrize(
    ("names", "partials"), [(MOMENTS, 1), (("sum",), 1), (("min", "max", "range_"), 1), (("sum", "max", "first"), 3)]
)
def test_a_row_is_lifted_once_for_each_partial(names, partials):
    op = sw.Workload("t").query("q", sw.tumbling(10), **{n: sw.AGGREGATES[n]("v") for n in names}).operator()
    op.process_batch({"t": [1, 2, 12], "v": [3, 4, 5]})
    assert op.stats().lifts == 3 * partials


def test_merges_updates_and_what_is_held():
    workload = sw.Workload("t").query("q", sw.sliding(100, every=10), n=sw.count())
    op = workload.operator()
    for t in (1, 2, 12, 13, 14):
        op.process_batch({"t": [t]})
    assert op.stats().slices == op.slices().num_rows == len(op._core.engine.time.state.slices) == 2
    op.advance(20)
    assert (op.stats().merges, op.stats().updates) == (0, 3)
    assert op.slices().num_rows == 2
    assert op.stats().splits == op.stats().recomputations == 0


def test_rows_that_shift_are_counted_where_cuts_take_them_in():
    workload = sw.Workload("t", lateness=1000).query("q", sw.tumbling(sw.rows(4)), top=sw.max("v"), m=sw.median("v"))
    op = workload.operator(types={"v": "bigint"})
    op.process_batch({"t": list(range(0, 80, 2)), "v": list(range(40))})
    op.advance(79)
    assert op.stats().updates == 0
    op.process(1, {"v": 7})
    op.advance(79)
    stats = op.stats()
    assert stats.updates == 10
    assert stats.recomputations > 0
    assert stats.tuples == 41


def test_cuts_are_divided_where_an_edge_comes_to_lie_in_them():
    workload = sw.Workload("t", lateness=1000).query("q", sw.punctuated("v = 0"), total=sw.sum("v"))
    op = workload.operator(types={"v": "bigint"})
    op.process_batch({"t": list(range(0, 40, 2)), "v": [0] + [1] * 18 + [0]})
    op.advance(39)
    op.process(21, {"v": 0})
    op.advance(39)
    assert op.stats().splits == 1


@pytest.mark.parametrize("window", [sw.sliding(60, every=10), sw.tumbling(sw.rows(3))])
def test_counters_are_kept_by_snapshots(window):
    workload = sw.Workload("t", lateness=30).query("q", window, top=sw.max("v"), s=sw.sum("v"))
    op = workload.operator(types={"v": "bigint"})
    op.process_batch({"t": [1, 5, 30, 22], "v": [1, 2, 3, 4]})
    op.advance(25)
    op.process(24, {"v": 1})
    before = op.stats()
    restored = workload.operator(types={"v": "bigint"}).restore(op.snapshot())
    assert op.stats() == before
    after = restored.stats()
    for name in ("merges", "splits", "updates", "recomputations", "combines", "lifts", "rows", "watermark_lag_ms"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.lifts
    assert after.combines


def test_the_lag_of_the_watermark_is_in_milliseconds():
    by_unit = {"seconds": 3000, "milliseconds": 3, None: None}
    for unit, lag in by_unit.items():
        length = 10 if unit is None else "10 seconds"
        op = sw.Workload("t", unit=unit).query("q", sw.tumbling(length), n=sw.count()).operator()
        assert op.stats().watermark_lag_ms is None
        op.process_batch({"t": [5, 8]})
        op.advance(5)
        assert op.stats().watermark_lag_ms == lag
    op = sw.Workload("t").query("q", sw.tumbling("10 seconds"), n=sw.count()).operator()
    op.process_batch({"t": pa.array([7_000_000], pa.timestamp("us"))})
    op.advance(np.datetime64("1970-01-01T00:00:05").item())
    assert op.stats().watermark_lag_ms == 2000


def test_slices_follow_what_splits_cost():
    workload = sw.Workload("t", lateness=10**9).query("q", sw.tumbling(sw.rows(1000)), m=sw.variance("v"))
    again, answers = {}, {}
    for size in (None, "auto"):
        op = workload.operator(types={"v": "bigint"}, max_slice=size)
        op.process_batch({"t": np.arange(0, 6000, 2), "v": np.arange(3000) * 7 % 1009})
        op.advance(6000)
        for t in (np.arange(40) * 1237 % 3000 * 2 + 1).tolist():
            op.process(t, {"v": t})
            op.advance(6000)
        again[size] = op._core.costs.rows_again
        answers[size] = [x for r in op.close() for x in (r.start, r.values["m"])]
    assert again["auto"] < again[None] / 2
    assert answers["auto"] == pytest.approx(answers[None])


# Bad input


@pytest.mark.parametrize("aggregate", [sw.max("v"), sw.first("v"), sw.product("v"), sw.collect_list("v")])
def test_a_store_that_an_aggregate_cannot_take_is_refused(aggregate):
    workload = sw.Workload("t").query("q", sw.tumbling(10), s=sw.sum("v"), a=aggregate)
    message = (
        f"query 'q': `store` cannot be 'prefix' for {aggregate!r}, which has no inverse that is exact and takes rows "
        "in any order; leave it out, and each aggregate gets the store that fits it"
    )
    with pytest.raises(sw.errors.QueryError) as refused:
        workload.operator(store="prefix")
    assert str(refused.value) == message
    op = sw.Workload("t").query("q", sw.tumbling(10), s=sw.sum("v")).operator(store="prefix")
    op.process_batch({"t": [1], "v": [2]})
    with pytest.raises(sw.errors.QueryError, match="`store` cannot be 'prefix' for"):
        op.add_query("other", sw.tumbling(10), a=aggregate)
    assert [dict(r.values) for r in op.close()] == [{"s": 2}]
