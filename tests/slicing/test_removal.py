"""Rows that shift between the slices of count windows: what is computed again, counted call by call (Figure 6)."""

from __future__ import annotations

import math
import operator
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.aggregates.guarded import GuardedMonoid
from slicewise.same import is_same
from slicewise.slicing.rows.cut_updates import CachedCuts, CutUpdate
from tests.counting import Counting
from tests.slicing.running import TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import steps

ROWS, LENGTH = 20_000, 1000
WINDOWS = ROWS // LENGTH


#: Of every aggregate of this module, by function.
CALLS: Counter[str] = Counter()

TOTAL = Counting(sw.sum("v"), CALLS)
PEAK = Counting(sw.max("v"), CALLS)
#: Takes rows in any order, has no inverse, and is no extreme.
EITHER = Counting(sw.aggregate(combine=operator.or_, identity=0, commutative=True, name="either")("v"), CALLS)
#: Depends on the order of rows.
JOINED = Counting(
    sw.aggregate(lift=lambda v: chr(97 + v % 26), combine=lambda a, b: (a + b)[-3:], identity="", name="joined")("v"),
    CALLS,
)


@pytest.fixture(autouse=True)
def rows_looked_at(monkeypatch):
    """Counts the rows that are folded; each of them was lifted once, when it came."""
    fold_rows = GuardedMonoid.fold_rows

    def counted(self, columns, times, starts):
        CALLS["rows"] += len(times)
        return fold_rows(self, columns, times, starts)

    monkeypatch.setattr(GuardedMonoid, "fold_rows", counted)


def filled(aggregate, values, max_slice=None):
    """An operator that has reported all its windows, each of which may still be corrected."""
    workload = sw.Workload("t", lateness=10**9).query("q", sw.tumbling(sw.rows(LENGTH)), x=aggregate)
    op = workload.operator(types={"v": pa.int64()}, max_slice=max_slice)
    op.process_batch({"t": [0], "v": values[:1]})
    op.process_batch({"t": np.arange(10, 10 * ROWS, 10), "v": values[1:]})
    assert len(op.advance(10 * ROWS)) == WINDOWS
    return op


def late(op, times, values) -> tuple[list[sw.Result], Counter]:
    """What is corrected when rows come late, and what was called for it."""
    op.process_batch({"t": times, "v": values})
    CALLS.clear()
    results = list(op.advance(10 * ROWS))
    assert CALLS["lift"] == 0
    return results, Counter(CALLS)


def expected(values, times, late_times, late_values, of) -> list:
    """All windows by definition, after the late rows."""
    order = np.argsort(np.concatenate([times, late_times]), kind="stable")
    ordered = np.concatenate([values, late_values])[order]
    return [of(ordered[low : low + LENGTH]) for low in range(0, len(ordered) - LENGTH + 1, LENGTH)]


TIMES = np.arange(0, 10 * ROWS, 10)


def test_one_late_row_costs_an_invertible_aggregate_one_row_in_and_one_out_per_slice():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    op = filled(TOTAL, values)
    results, calls = late(op, [5], [7])
    assert [r.values["x"] for r in results] == expected(values, TIMES, [5], [7], np.sum)
    assert {r.change for r in results} == {"update"}
    # One row enters every slice and one leaves it: that is all that is looked at of 20 000 rows.
    assert calls["invert"] == WINDOWS
    assert calls["rows"] == 2 * WINDOWS
    assert calls["combine"] <= 3 * WINDOWS


def test_work_grows_with_the_rows_that_shift_and_not_with_the_slices():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    for many in (1, 10, 100):
        op = filled(TOTAL, values)
        times = np.full(many, 5)
        results, calls = late(op, times, np.arange(many))
        assert [r.values["x"] for r in results] == expected(values, TIMES, times, np.arange(many), np.sum)
        assert calls["rows"] == 2 * WINDOWS * many
        assert calls["invert"] == WINDOWS


def test_rows_late_in_the_middle_leave_the_slices_before_alone():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    op = filled(TOTAL, values)
    at = int(TIMES[17 * LENGTH + 3]) + 5
    results, calls = late(op, [at], [7])
    assert len(results) == WINDOWS - 17
    assert calls["rows"] == 2 * (WINDOWS - 17)


def test_a_maximum_that_stays_is_not_computed_again():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    values[np.arange(0, ROWS, LENGTH) + 500] = 5000  # in the middle of every slice
    op = filled(PEAK, values)
    results, calls = late(op, [5], [7])
    assert [r.values["x"] for r in results] == expected(values, TIMES, [5], [7], np.max)
    assert calls["rows"] == 2 * WINDOWS
    assert calls["combine"] <= 2 * WINDOWS


def test_a_maximum_is_computed_again_only_where_it_leaves():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    values[np.arange(0, ROWS, LENGTH) + 500] = 5000
    for slice_ in (4, 11):
        values[slice_ * LENGTH + LENGTH - 1] = 9000  # the last row of these two is their maximum, and leaves
    op = filled(PEAK, values)
    results, calls = late(op, [5], [7])
    assert [r.values["x"] for r in results] == expected(values, TIMES, [5], [7], np.max)
    assert 2 * LENGTH <= calls["rows"] <= 2 * LENGTH + 2 * WINDOWS


@pytest.mark.parametrize("aggregate", [EITHER, JOINED], ids=repr)
def test_without_an_inverse_slices_are_computed_again(aggregate):
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    op = filled(aggregate, values)
    results, calls = late(op, [5], [7])
    assert len(results) == WINDOWS
    assert calls["rows"] == ROWS
    assert calls["invert"] == 0


@pytest.mark.parametrize("aggregate", [TOTAL, PEAK, EITHER, JOINED], ids=repr)
def test_nothing_is_computed_where_nothing_came(aggregate):
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    op = filled(aggregate, values)
    op.process_batch({"t": [10 * ROWS + 5], "v": [3]})
    CALLS.clear()
    assert not len(op.advance(10 * ROWS))
    assert CALLS["rows"] == 0


def test_rows_shift_out_of_slices_that_are_partly_final():
    """The horizon runs through the slices: what is before it is folded for good, what is behind it still shifts."""
    rng = np.random.default_rng(5)
    workload = sw.Workload("t", lateness=3000).query("q", sw.tumbling(sw.rows(70)), x=TOTAL)
    op = workload.operator(types={"v": pa.int64()})
    all_times, all_values, told = [], [], {}
    for chunk in range(1, 60):
        times = np.maximum(rng.integers(chunk * 1000 - 3500, chunk * 1000 + 1000, 100), (chunk - 1) * 1000 - 3000)
        values = rng.integers(0, 1000, 100)
        all_times.append(times)
        all_values.append(values)
        op.process_batch({"t": times, "v": values})
        CALLS.clear()
        for r in op.advance(chunk * 1000):
            told[r.start] = r.values["x"]
        if chunk > 10:
            # About 100 rows come per step and about 450 may still shift, each within one of 7 slices.
            assert CALLS["rows"] < 2500
    for r in op.close():
        told[r.start] = r.values["x"]
    order = np.argsort(np.concatenate(all_times), kind="stable")
    ordered = np.concatenate(all_values)[order]
    assert op.stats().late_rows == 0
    assert told == {low: ordered[low : low + 70].sum() for low in range(0, len(ordered) - 69, 70)}


COUNTS = st.integers(1, 9).map(sw.rows)
WINDOW = st.one_of(
    st.builds(lambda n, m: sw.sliding(n, every=m), COUNTS, COUNTS),
    st.sampled_from(["v > 2", "w = 'a'"]).map(sw.punctuated),
    st.builds(lambda n, m: sw.sliding(n, every=m), st.integers(1, 20), COUNTS),
    st.just(sw.frames("v > 0")),
)
AGGREGATES = ["sum", "max", "min", "count", "range_", "max_count", "min_count", "collect_list", "median"]
AGGREGATES += ["avg", "last", "m4", "histogram", "count_distinct", "product"]


@given(st.lists(WINDOW, min_size=1, max_size=3), steps(), st.sampled_from([0, 5, 20, 1000]), st.booleans())
def test_corrections_equal_the_oracles_for_every_way_of_removal(windows, epochs, lateness, keyed):
    workload = sw.Workload("t", keys=["k"] if keyed else [], lateness=lateness)
    workload = workload.query("ints", sw.tumbling(7), n=sw.count())  # integer time, which m4 reports
    for i, window in enumerate(windows):
        computed = {f"q{i}_{a}": sw.AGGREGATES[a]("v") for a in AGGREGATES}
        words = {f"q{i}_w{a}": sw.AGGREGATES[a]("w") for a in ("max", "min_count")}
        workload = workload.query(f"q{i}", window, **computed, **words)
    expected, _ = run_oracle(workload, epochs)
    assert_same(run_operator(workload.operator(types=TYPES), epochs), expected)


def test_products_are_divided_and_computed_again_only_where_an_infinity_leaves():
    values = [2.0, 0.5, -3.0, 0.3, 1.5] * 80
    values[13], values[170], values[157] = 0.0, 0.0, math.inf
    times = list(range(0, 4000, 10))
    workload = sw.Workload("t", lateness=10_000).query("q", sw.tumbling(sw.rows(40)), p=sw.product("v"))
    op = workload.operator(types={"v": pa.float64()})
    op.process_batch({"t": times, "v": values})
    reported = {r.start: r.values["p"] for r in op.advance(4000)}
    recomputations = []
    for late in (5, 15, 25, 35, 45):  # every row shifts, and of each window the last one leaves
        before = op.stats().recomputations
        times, values = [*times, late], [*values, 7.0]
        op.process(late, {"v": 7.0})
        reported |= {r.start: r.values["p"] for r in op.advance(4000)}
        recomputations.append(op.stats().recomputations - before)
    assert recomputations == [0, 0, 1, 0, 0]
    ordered = [v for _, v in sorted(zip(times, values, strict=True))]
    expected = {i: math.prod(ordered[i : i + 40]) for i in range(0, 400, 40)}
    assert sum(v == 0 for v in expected.values()) == 1
    assert is_same(reported, expected)


# -- slices of a bounded size


def test_a_bounded_slice_bounds_what_is_computed_again():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    for aggregate in (EITHER, JOINED):
        op = filled(aggregate, values, max_slice=50)
        results, calls = late(op, [5], [7])
        assert len(results) == WINDOWS
        # The first slice of each window gets a row and the last one loses one; the other 18 stay as they are.
        assert WINDOWS <= calls["rows"] <= 2 * 51 * WINDOWS
        cuts = op._core.engine.context_aware[0].state.cuts
        assert (cuts.high - cuts.low).max() <= 50


def test_a_maximum_that_leaves_is_computed_again_from_its_own_slice():
    values = np.random.default_rng(1).integers(0, 1000, ROWS)
    values[np.arange(0, ROWS, 50) + 20] = 5000
    values[4 * LENGTH + LENGTH - 1] = 9000
    op = filled(PEAK, values, max_slice=50)
    results, calls = late(op, [5], [7])
    assert [r.values["x"] for r in results] == expected(values, TIMES, [5], [7], np.max)
    assert calls["rows"] <= 51 + 2 * WINDOWS


def test_slices_stay_bounded_and_few_while_rows_shift():
    rng = np.random.default_rng(2)
    op = filled(TOTAL, rng.integers(0, 1000, ROWS), max_slice=100)
    for _ in range(50):
        late(op, rng.integers(0, 10 * ROWS, 20), rng.integers(0, 1000, 20))
        cuts = op._core.engine.context_aware[0].state.cuts
        assert (cuts.high - cuts.low).max() <= 100
        assert len(cuts) <= 4 * ROWS / 100


@given(st.lists(WINDOW, min_size=1, max_size=2), steps(), st.sampled_from([0, 5, 1000]), st.integers(1, 6))
def test_the_size_of_slices_changes_no_result(windows, epochs, lateness, max_slice):
    workload = sw.Workload("t", keys=["k"], lateness=lateness)
    for i, window in enumerate(windows):
        workload = workload.query(f"q{i}", window, **{f"q{i}_{a}": sw.AGGREGATES[a]("v") for a in AGGREGATES})
    expected = run_operator(workload.operator(types=TYPES), epochs)
    assert_same(run_operator(workload.operator(types=TYPES, max_slice=max_slice), epochs), expected)


@pytest.mark.parametrize("size", [0, -5, 2.5, True, "10"])
def test_a_size_that_no_slice_can_have_is_refused(size):
    workload = sw.Workload("t").query("q", sw.tumbling(sw.rows(5)), n=sw.count())
    message = f"`max_slice` must be a number of rows, 1 or more; got {size!r}; leave it out for slices of any size"
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        workload.operator(max_slice=size)


# -- which cut inherits from which


def test_a_cut_inherits_from_the_one_that_most_of_its_rows_were_in():
    #  before   0 1 2 3 | 4 5 6 7 | 8 9 . .            two cuts of four, then rows of none
    #  now      0 1 x 2 | 3 4 5 6 | 7 8 9              x came behind all others
    known = CachedCuts(np.array([0, 4]), np.array([4, 8]), np.zeros(2, bool), {"sum": (np.array([6, 22]),)})
    came = np.array([0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9])
    revision = CutUpdate(known, came, 10, np.array([0, 4, 8]), np.array([True, True]))
    assert revision.parent.tolist() == [0, 1]
    assert revision.entering.rows.tolist() == [2, 4]
    assert revision.entering.cut.tolist() == [0, 1]
    assert revision.leaving.rows.tolist() == [4, 8]
    assert revision.leaving.cut.tolist() == [0, 1]


def test_of_a_cut_that_is_split_the_larger_part_inherits():
    known = CachedCuts(np.array([0]), np.array([10]), np.zeros(1, bool), {})
    revision = CutUpdate(known, np.arange(10), 10, np.array([0, 3, 10]), np.array([True, True]))
    assert revision.parent.tolist() == [-1, 0]
    assert revision.entering.rows.tolist() == [0, 1, 2]
    assert revision.leaving.rows.tolist() == [0, 1, 2]
    assert revision.leaving.cut.tolist() == [1]


def test_a_cut_most_of_whose_rows_are_new_is_folded_anew():
    known = CachedCuts(np.array([0]), np.array([2]), np.zeros(1, bool), {})
    revision = CutUpdate(known, np.array([0, 2, 3, 4, 1]), 2, np.array([0, 4]), np.array([True]))
    assert revision.parent.tolist() == [-1]
    assert len(revision.leaving.rows) == 0


def test_sums_beyond_64_bits_are_taken_out_exactly():
    workload = sw.Workload("t", lateness=1000).query("q", sw.tumbling(sw.rows(40)), x=sw.sum("v"), n=sw.avg("v"))
    op = workload.operator(types={"v": pa.int64()})
    values = [2**62, -(2**62)] * 40
    op.process_batch({"t": range(1, 81), "v": values})
    assert [r.values["x"] for r in op.advance(100)] == [0, 0]
    op.process_batch({"t": [0, 0], "v": [2**62, 3 - 2**62]})
    assert [r.values["x"] for r in op.advance(100)] == [3, 0]
