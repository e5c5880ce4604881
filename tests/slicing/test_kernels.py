"""Kernels, each against its twin of three lines of plain Python, which is its specification."""

from __future__ import annotations

import itertools
from bisect import bisect_left

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise import kernels
from slicewise.kernels import (
    KeyTimeIndex,
    enumerate_ranges,
    expand_ranges,
    match_rows,
    order_by,
    running_last,
    segment_lengths,
    segment_starts,
    sorted_unique,
)

HUGE = 2**60
#: Times close together, far apart, and as far apart as event times can be.
SPREADS = {"radix": 100, "packed": 10**9, "lexsort": HUGE}


def integers(values) -> np.ndarray:
    return np.array(list(values), np.int64)


def times(spread: int) -> st.SearchStrategy:
    """Some times within a spread; often the same ones, and often at its ends."""
    return st.one_of(st.integers(-spread, spread), st.sampled_from([-spread, -1, 0, 1, spread]))


any_times = st.sampled_from(sorted(SPREADS.values())).flatmap(times)


# -- segments


@given(st.lists(st.integers(0, 3), min_size=1, max_size=30))
def test_segments_start_where_something_changes(values):
    changed = np.array([a != b for a, b in itertools.pairwise(values)], bool)
    starts = [i for i, value in enumerate(values) if i == 0 or values[i - 1] != value]
    assert segment_starts(changed).tolist() == starts
    assert segment_lengths(integers(starts), len(values)).tolist() == [
        len(list(group)) for _, group in itertools.groupby(values)
    ]


def test_no_segments_have_no_lengths():
    assert segment_lengths(integers([]), 0).tolist() == []


@given(st.lists(any_times, max_size=30))
def test_sorted_unique_is_a_sorted_set(values):
    assert sorted_unique(integers(values)).tolist() == sorted(set(values))


# -- ranges


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 6)), max_size=10))
def test_expand_ranges_lists_positions_end_to_end(ranges):
    low, high = integers(a for a, _ in ranges), integers(a + n for a, n in ranges)
    positions, starts = expand_ranges(low, high)
    expected = [list(range(a, a + n)) for a, n in ranges]
    assert positions.tolist() == list(itertools.chain(*expected))
    assert starts.tolist() == [sum(map(len, expected[:i])) for i in range(len(expected))]


@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(-20, 20)), max_size=10))
def test_enumerate_ranges_says_whose_position_it_is(ranges):
    which, positions = enumerate_ranges(integers(a for a, _ in ranges), integers(b for _, b in ranges))
    expected = [(i, x) for i, (a, b) in enumerate(ranges) for x in range(a, b + 1)]
    assert list(zip(which.tolist(), positions.tolist(), strict=True)) == expected


# -- order


def twin_order(keys: list[int], values: list[int]) -> list[int]:
    return sorted(range(len(keys)), key=lambda i: (keys[i], values[i]))  # Python's sort is stable


def assert_ordered(keys: list[int], values: list[int]) -> None:
    expected, found = twin_order(keys, values), order_by(integers(keys), integers(values))
    in_order = expected == list(range(len(keys)))
    assert (found is None) == in_order
    if found is not None:
        assert found.tolist() == expected


@pytest.mark.parametrize("spread", SPREADS.values(), ids=SPREADS)
@given(data=st.data())
def test_order_by_is_a_stable_sort(spread, data):
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), times(spread)), max_size=40))
    assert_ordered([k for k, _ in rows], [v for _, v in rows])


@given(st.lists(any_times, max_size=40), st.integers(0, 10**6))
def test_order_by_of_one_key_is_a_stable_sort(values, key):
    assert_ordered([key] * len(values), values)


WIDE_KEYS = st.sampled_from([0, 5, 2**16 - 1, 2**16, 2**16 + 5, 2**20, 2**31])


@given(st.lists(st.tuples(WIDE_KEYS, st.integers(-(2**50), 2**50) | st.integers(0, 3)), max_size=40))
def test_order_by_of_keys_and_times_that_do_not_fit_together(rows):
    assert_ordered([k for k, _ in rows], [v for _, v in rows])


@pytest.mark.parametrize(("spread", "sort"), [(100, "argsort"), (10**9, "sort"), (HUGE, "lexsort")])
def test_each_range_takes_its_own_sort(spread, sort, monkeypatch):
    """The three paths are really taken: the other two are out of reach."""
    called = []
    for name in ("argsort", "lexsort"):
        original = getattr(np, name)
        monkeypatch.setattr(
            kernels.np, name, lambda *a, _name=name, _call=original, **k: called.append(_name) or _call(*a, **k)
        )
    keys, values = [1, 0, 1, 0, 1], [spread, 5, -spread, 5, spread]
    found = order_by(integers(keys), integers(values))
    monkeypatch.undo()
    assert found.tolist() == twin_order(keys, values)
    assert (called or ["sort"]) == [sort]


@pytest.mark.parametrize("keys", [1, 3])
@given(
    values=st.lists(st.integers(0, 2**40), min_size=8, max_size=60), late=st.lists(st.integers(0, 2**40), max_size=5)
)
def test_few_late_rows_are_put_in_their_places(keys, values, late):
    """Runs that are in order, key by key, and some late rows behind them; ties keep the order in which they came."""
    rows = sorted((value % keys, value) for value in values) + [(value % keys, value) for value in late]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "FEW_ROWS", 0)
        assert_ordered([k for k, _ in rows], [v for _, v in rows])
        assert_ordered([k for k, _ in rows] * 2, [v // 2**20 for _, v in rows] * 2)


@pytest.mark.parametrize(("keys", "late", "sort"), [(1, 100, "argsort"), (3, 100, "argsort"), (1, 300, "sort")])
def test_rows_of_which_few_are_late_take_a_merge_sort(keys, late, sort, monkeypatch):
    called = []
    argsort = np.argsort
    monkeypatch.setattr(kernels.np, "argsort", lambda *a, **k: called.append("argsort") or argsort(*a, **k))
    rows = sorted((i % keys, i * 10**6) for i in range(1000))
    for at in range(0, 3 * late, 3):
        rows[at], rows[at + 1] = rows[at + 1], rows[at]
    found = order_by(integers([k for k, _ in rows]), integers([v for _, v in rows]))
    monkeypatch.undo()
    assert found.tolist() == twin_order([k for k, _ in rows], [v for _, v in rows])
    assert (called or ["sort"]) == [sort]


@pytest.mark.parametrize("limit", [2**16, kernels.ROOM])
def test_sorts_change_over_without_a_seam(limit):
    for n in (2, 3, 1000):
        for span in (limit // n - 1, limit // n, limit - 1, limit, limit + 1):
            if span < 2**62:
                values = [span - 1, *([span // 2] * (n - 2)), 0]
                assert_ordered([7] * n, values)


# -- look-ups


@given(
    st.lists(st.tuples(st.integers(0, 5), any_times), max_size=30),
    st.lists(st.tuples(st.integers(0, 6), any_times), max_size=15),
)
def test_locate_counts_the_pairs_before(rows, wanted):
    rows = sorted(rows)
    wanted += rows[:5] + [(k, t + 1) for k, t in rows[:5]]
    index = KeyTimeIndex(integers(k for k, _ in rows), integers(t for _, t in rows))
    found = index.locate(integers(k for k, _ in wanted), integers(t for _, t in wanted))
    assert found.tolist() == [bisect_left(rows, pair) for pair in wanted]


@pytest.mark.parametrize("spread", [100, HUGE])
def test_locate_finds_huge_times_by_their_rank(spread):
    rows = sorted((k, t) for k in range(9) for t in (-spread, -1, 0, spread))
    index = KeyTimeIndex(integers(k for k, _ in rows), integers(t for _, t in rows))
    assert (index._ranks is not None) == (spread == HUGE)
    wanted = [(k, t) for k in range(9) for t in (-HUGE, -spread, 1 - spread, -2, 0, 1, spread, spread + 1, HUGE)]
    found = index.locate(integers(k for k, _ in wanted), integers(t for _, t in wanted))
    assert found.tolist() == [bisect_left(rows, pair) for pair in wanted]


def test_locate_in_nothing():
    assert KeyTimeIndex(integers([]), integers([])).locate(integers([0, 0]), integers([-5, 5])).tolist() == [0, 0]
    assert KeyTimeIndex(integers([3]), integers([7])).locate(integers([]), integers([])).tolist() == []


# -- running maxima and matches


@given(st.lists(st.lists(any_times, min_size=1, max_size=8), max_size=6))
def test_running_last_is_the_largest_so_far_of_its_group(groups):
    group = integers(i for i, values in enumerate(groups) for _ in values)
    found = running_last(group, integers(itertools.chain(*groups)))
    assert found.tolist() == [max(values[: i + 1]) for values in groups for i in range(len(values))]


rows_of_two = st.tuples(st.integers(0, 3), any_times)


@given(st.lists(rows_of_two, max_size=15, unique=True), st.lists(rows_of_two, max_size=15), st.randoms())
def test_match_rows_finds_each_row_in_the_table(table, wanted, random):
    wanted += table[:5]
    random.shuffle(wanted)
    found = match_rows(
        (integers(a for a, _ in table), integers(b for _, b in table)),
        (integers(a for a, _ in wanted), integers(b for _, b in wanted)),
    )
    assert found.tolist() == [table.index(row) if row in table else -1 for row in wanted]
