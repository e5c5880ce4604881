"""Slide policies: the MTA paper's examples, what a row costs in combines, rows out of order, state, and wrong use."""

from __future__ import annotations

import random
import re
from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import plain
from slicewise.errors import DataError, QueryError
from slicewise.swag import AMTA, LogMTA, Naive
from slicewise.swag.shared_nodes import SharedNodes
from tests.counting import Counting
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import leaves_three, rows


def values_of(results, *names):
    return [tuple(r.values[name] for name in names) for r in results]


# -- the paper


def test_running_example_keeps_the_latest_rows_that_sum_to_ten_at_most():
    """Section 3.2: [2, 2, 3, 3] and then 4, which drives out both 2s; asked for the maximum, watched the sum."""

    def too_much(total, oldest):
        return total["sum"] - oldest["sum"] + oldest["last"] > 10

    window = sw.policy(too_much, watch={"sum": sw.sum("v"), "last": sw.last("v")})
    op = sw.Workload("t").query("ten", window, top=sw.max("v"), all=sw.collect_list("v")).operator()
    op.process_batch({"t": [1, 2, 3, 4, 5], "v": [2, 2, 3, 3, 4]})
    assert values_of(op.close(), "top", "all") == [
        *((2, [2]), (2, [2, 2]), (3, [2, 2, 3])),
        (3, [2, 2, 3, 3]),
        (4, [3, 3, 4]),
    ]


def test_listing_1_keeps_the_last_hour():
    def wsp(total, old):
        return total["timestamp"] - old["timestamp"] >= 3_600_000

    window = sw.policy(wsp, watch={"timestamp": sw.max("at")})
    op = sw.Workload("t").query("hour", window, n=sw.count(), first=sw.min("at")).operator()
    minutes = [0, 10, 59, 60, 65, 130, 500]
    op.process_batch({"t": minutes, "at": [60_000 * m for m in minutes]})
    found = values_of(op.close(), "n", "first")
    kept = [[m for m in minutes[: i + 1] if minutes[i] - m < 60] for i in range(len(minutes))]
    assert found == [(len(some), 60_000 * some[0]) for some in kept]


def test_figure_2_leaves_only_the_newest_timestamp():
    window = sw.policy(lambda total, old: total["t"] - old["t"] >= 4, watch={"t": sw.max("at")})
    op = sw.Workload("t").query("four", window, all=sw.collect_list("at")).operator()
    op.process_batch({"t": [1, 2, 3, 4, 8], "at": [1, 2, 3, 4, 8]})
    assert values_of(op.close(), "all")[-2:] == [([1, 2, 3, 4],), ([8],)]


def test_listing_3_keeps_as_many_rows_as_the_newest_one_says():
    """Listing 2's monoid: counts are added, and the size is the right one's."""

    def wsp(total, old):
        return total["count"] - old["count"] >= total["max_size"]

    window = sw.policy(wsp, watch={"count": sw.count(), "max_size": sw.last("size")})
    op = sw.Workload("t").query("sized", window, n=sw.count(), all=sw.collect_list("v")).operator()
    sizes = [3, 3, 3, 3, 3, 5, 5, 5, 1, 2]
    op.process_batch({"t": range(10), "v": range(10), "size": sizes})
    assert values_of(op.close(), "n") == [(n,) for n in (1, 2, 3, 3, 3, 4, 5, 5, 1, 2)]


# -- what a row costs


def sliding_policy(n, calls):
    def evict(total, oldest):
        calls["asked"] += 1
        return bool(total["n"] - oldest["n"] >= n)

    return sw.policy(evict, watch={"n": Counting(sw.sum("one"), calls)})


@pytest.mark.slow
@pytest.mark.parametrize("lateness", [0, 20])
def test_combines_per_row_are_the_same_for_500_rows_and_for_50_000(lateness):
    """For what is watched and what is asked; a row at a time, and in batches. With lateness, rows settle later."""
    costs = {}
    for n in (500, 5_000, 50_000):
        watched, asked = Counter(), Counter()
        workload = sw.Workload("t", lateness=lateness)
        op = workload.query("q", sliding_policy(n, watched), total=Counting(sw.sum("v"), asked)).operator()
        op.process_batch({"t": range(n), "v": [1] * n, "one": [1] * n})
        op.advance(n)
        watched.clear()
        asked.clear()
        for t in range(n, n + 100):
            op.process(t, {"v": 1, "one": 1})
            op.advance(t + 1)
        op.process_batch({"t": range(n + 100, n + 400), "v": [1] * 300, "one": [1] * 300})
        assert list(op.advance(n + 400))[-1].values["total"] == n
        costs[n] = [watched["combine"] / 400, asked["combine"] / 400, watched["asked"] / 400]
    most = 9 if lateness == 0 else 15
    assert all(cost < most for n in costs for cost in costs[n]), costs
    assert max(costs[50_000]) < max(costs[500]) + 1, costs


@pytest.mark.parametrize("monotone", [True, False])
def test_whole_windows_leave_at_once(monotone):
    """A bulk eviction asks the logarithm of what leaves if the policy is monotone, and everything otherwise."""
    asked = Counter()

    def evict(total, oldest):
        asked["n"] += 1
        return bool(total["t"] - oldest["t"] >= 1000)

    window = sw.policy(evict, watch={"t": sw.max("at")}, monotone=monotone)
    op = sw.Workload("t").query("q", window, n=sw.count()).operator()
    op.process_batch({"t": range(900), "at": range(900)})
    op.advance(900)
    asked.clear()
    op.process(5000, {"at": 5000})
    assert values_of(op.close(), "n") == [(1,)]
    assert asked["n"] <= (25 if monotone else 901)
    assert monotone or asked["n"] == 901


def test_rows_of_the_window_are_not_kept():
    """One row per key stays, for ticks that follow it; the others are leaves."""
    window = sw.policy(lambda total, old: total["n"] - old["n"] >= 1000, watch={"n": sw.count()})
    op = sw.Workload("t").query("q", window, total=sw.sum("v")).operator()
    op.process_batch({"t": range(2000), "v": range(2000)})
    op.advance(2000)
    (state,) = op._core.engine.compacted().context_aware
    assert len(state.rows) == 1
    (trees,) = state.memory[repr(window)].windows.values()
    # The leaves of 1000 rows and their parents, in pairs; nothing of the rows that have left.
    assert 1000 <= len(trees.settled.tree.nodes) <= 1040


def test_step_out_of_order_shows_again_what_follows_the_row_and_no_more_than_a_few_others():
    calls = Counter()
    op = (
        sw.Workload("t", lateness=10_000)
        .query("q", sliding_policy(50, calls), n=sw.count())
        .operator(types={"one": "bigint"})
    )
    op.process_batch({"t": range(0, 2000, 2), "one": [1] * 1000})
    op.advance(2000)
    calls.clear()
    op.process(1901, {"one": 1})  # 49 rows lie behind it
    op.advance(2001)
    assert calls["asked"] <= 3 * (50 + 16)


# -- against the definition


def sum_of_rest(limit):
    def evict(total, oldest):
        return bool((total["v"] or 0) - (oldest["v"] or 0) >= limit)

    return evict


POLICIES = st.one_of(
    st.integers(1, 8).map(
        lambda n: sw.policy(lambda total, old: bool(total["n"] - old["n"] >= n), watch={"n": sw.count()})
    ),
    st.integers(1, 20).map(
        lambda d: sw.policy(lambda a, b: (a["t"] or 0) - (b["t"] or 0) > d, watch={"t": sw.max("o")}, monotone=False)
    ),
    st.integers(-2, 4).map(lambda n: sw.policy(sum_of_rest(n), watch={"v": sw.sum("v")}, monotone=False)),
    st.just(
        sw.policy(lambda total, oldest: len(total["w"]) - len(oldest["w"]) >= 3, watch={"w": sw.collect_list("w")})
    ),
)
AGGREGATES = st.sampled_from(
    [sw.sum("v"), sw.collect_list("w"), sw.max("v"), sw.stddev("v"), sw.median("v"), sw.first("w"), sw.concat("w")]
)


@st.composite
def epochs(draw):
    """More rows than elsewhere, so that windows slide; most of them in order."""
    marks = sorted(draw(st.lists(st.integers(0, 70), max_size=4)))
    chunks = st.lists(st.lists(rows(), max_size=12), max_size=3)
    return [(draw(chunks), mark) for mark in [*marks, None]]


@fewer(2)
@given(POLICIES, AGGREGATES, epochs(), st.sampled_from([0, 5, 1000]), st.sampled_from([[], ["k"]]), st.booleans())
def test_policies_are_the_oracles_in_and_out_of_order(window, aggregate, steps, lateness, keys, one_by_one):
    workload = sw.Workload("t", keys=keys, lateness=lateness).query("q", window, x=aggregate, n=sw.count())
    expected, _ = run_oracle(workload, steps)
    assert_same(run_operator(workload.operator(types=TYPES), steps, one_by_one=one_by_one), expected)


@fewer(3)
@given(POLICIES, AGGREGATES, epochs(), st.sampled_from([0, 5, 1000]))
def test_snapshot_and_restore_at_every_cut(window, aggregate, steps, lateness):
    workload = sw.Workload("t", keys=["k"], lateness=lateness).query("q", window, x=aggregate)

    def again(op):
        trusted = workload.trusted
        return workload.operator(types=TYPES).restore(plain.load(plain.dump(op.snapshot(), trusted), trusted))

    expected = run_operator(workload.operator(types=TYPES), steps)
    assert_same(run_operator(workload.operator(types=TYPES), steps, between=again), expected)


def test_queries_may_leave_while_the_tree_stays():
    window = sw.policy(lambda total, old: total["n"] - old["n"] >= 3, watch={"n": sw.count()})
    workload = sw.Workload("t").query("one", window, a=sw.sum("v"), b=sw.max("v"))
    op = workload.query("two", window, c=sw.collect_list("v")).operator()
    op.process_batch({"t": range(5), "v": range(5)})
    op.advance(5)
    op.remove_query("two")
    op.process(5, {"v": 5})
    assert values_of(op.close(), "a", "b") == [(3 + 4 + 5, 5)]


def test_wider_columns_go_on_with_the_tree():
    window = sw.policy(lambda total, old: total["n"] - old["n"] >= 3, watch={"n": sw.count()})
    workload = sw.Workload("t").query("q", window, total=sw.sum("v"))
    op = workload.operator(types={"v": pa.decimal128(5, 1)})
    op.process_batch({"t": [1, 2, 3], "v": [Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]})
    op.advance(4)
    wider = workload.operator(types={"v": pa.decimal128(10, 3)}).restore(op.snapshot())
    wider.process(5, {"v": Decimal("0.125")})
    (result,) = wider.close()
    assert str(result.values["total"]) == "6.125"


# -- monotone or not


def test_policy_that_is_not_monotone_is_asked_about_one_row_after_the_other():
    workload = sw.Workload("t").query(
        "q", sw.policy(leaves_three, watch={"v": sw.sum("v")}, monotone=False), all=sw.collect_list("v")
    )
    values = [4, -9, 8, 1, 2, -4, 5, 3, -1, 6, 7, -8, 2, 2, 9]
    op = workload.operator()
    op.process_batch({"t": range(len(values)), "v": values})
    window, expected = [], []
    for value in values:
        window.append(value)
        total, left = sum(window), 0
        while left < len(window) and total - sum(window[: left + 1]) >= 3:
            left += 1
        window = window[left:]
        expected.append((window[:],))
    assert values_of(op.close(), "all") == expected


def test_oracle_refuses_a_policy_that_is_said_to_be_monotone_and_is_not():
    workload = sw.Workload("t").query("q", sw.policy(leaves_three, watch={"v": sw.sum("v")}), n=sw.count())
    oracle = sw.testing.Oracle(workload)
    for t, v in enumerate([1, -5, 4]):
        oracle.process(t, {"v": v})
    message = (
        "query 'q': policy(leaves_three, every=rows(1)) holds for the 2 oldest rows and not for 1; it is not monotone: "
        "say policy(..., monotone=False)"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        oracle.close()


@pytest.mark.parametrize("cls", [LogMTA, AMTA, Naive])
@pytest.mark.parametrize("seed", range(4))
def test_enforce_one_by_one_on_every_kind_of_window(cls, seed):
    rng = random.Random(seed)
    window, values = cls(sw.sum()), []
    for _ in range(200):
        values.append(rng.randrange(-5, 9))
        window.insert(values[-1])
        total, left = sum(values), 0
        while left < len(values) and total - sum(values[: left + 1]) >= 20:
            left += 1
        assert window.enforce(lambda total, oldest: total - oldest >= 20, monotone=False) == left
        del values[:left]
        window._check()
        assert window.query() == (sum(values) if values else None)


# -- branches


@pytest.mark.parametrize("seed", range(5))
def test_branches_go_back_and_forth_over_the_same_nodes(seed):
    rng = random.Random(seed)
    points, number = [(AMTA(sw.collect_list(), store=SharedNodes()), [])], 0
    for _ in range(150):
        action = rng.random()
        if action < 0.7:
            tree, values = points[-1][0].branch(), points[-1][1][:]
            for _ in range(rng.randrange(1, 6)):
                tree.insert(number)
                values.append(number)
                number += 1
                left = rng.randrange(len(values) + 1) if rng.random() < 0.1 else min(len(values), rng.randrange(3))
                tree.evict(left)
                del values[:left]
            points.append((tree, values))
        elif action < 0.85:
            points = points[: rng.randrange(1, len(points) + 1)]
        else:
            points = points[rng.randrange(len(points)) :]
            points[0][0].nodes.sweep()
        for tree, values in points:
            tree._check()
            assert tree.query() == values
            for last in range(1, len(values)):
                assert [v for partial in tree.latest(last) for v in partial] == values[-last:]


def test_only_windows_on_shared_nodes_branch_and_they_do_not_flush():
    with pytest.raises(
        QueryError, match=r"^only a window on SharedNodes can be branched; its nodes are kept for one wi"
    ):
        AMTA(sw.sum()).branch()
    with pytest.raises(QueryError, match=r"^a window on SharedNodes has no store of its own to flush$"):
        AMTA(sw.sum(), store=SharedNodes()).flush()


# -- wrong use


@pytest.mark.parametrize(
    ("evict", "rule"),
    [
        (lambda total, oldest: total["m"] > 3, "raised KeyError('m')"),
        (lambda total, oldest: total["n"], "must return true or false; got 1"),
        (lambda total, oldest: None, "must return true or false; got None"),
    ],
)
def test_policy_that_is_no_function_of_what_it_watches_costs_the_row(evict, rule):
    workload = sw.Workload("t").query("q", sw.policy(evict, watch={"n": sw.count()}), n=sw.count())
    op = workload.query("all", sw.tumbling(100), n=sw.count()).operator()
    op.process(1, {})
    message = f"policy({evict.__qualname__}, every=rows(1)) at the record of time 1: {rule}; the record was left out"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.advance(10)
    assert [(r.query, r.values["n"]) for r in op.close()] == [("all", 1)]


def test_wrong_parameters():
    with pytest.raises(QueryError, match=r"^`monotone` must be true or false; got 'no'$"):
        sw.policy(leaves_three, monotone="no")
    with pytest.raises(QueryError, match=r"^`watch`: sum\(\) for 'x' needs a column, as in sum\('v'\)$"):
        sw.policy(leaves_three, watch={"x": sw.sum()})
    assert repr(sw.policy(leaves_three, monotone=False)) == "policy(leaves_three, every=rows(1), monotone=False)"
