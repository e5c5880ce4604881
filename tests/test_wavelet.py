"""Wavelet matrices against sorting each range."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slicewise.wavelet import WaveletMatrix, dense_ranks, distinct_in, previous_places

VALUES = st.lists(st.integers(0, 40) | st.sampled_from([2**17, 2**40]), min_size=1, max_size=60)


@st.composite
def ranges(draw, n: int):
    pairs = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(1, n)), min_size=1, max_size=12))
    pairs = [(min(a, b - 1), max(a + 1, b)) for a, b in pairs]
    if draw(st.booleans()):  # windows that slide
        starts, ends = sorted(a for a, _ in pairs), sorted(b for _, b in pairs)
        pairs = list(zip(starts, ends, strict=True))
    return pairs, np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


@given(VALUES, st.data())
def test_the_kth_of_a_range_is_that_of_its_sorted_values(values, data):
    array = np.array(values)
    pairs, low, high = data.draw(ranges(len(values)))
    k = np.array([data.draw(st.integers(0, b - a - 1)) for a, b in pairs])
    ranks, place = dense_ranks(array)
    assert array[place[ranks]].tolist() == values
    expected = [sorted(values[a:b])[i] for (a, b), i in zip(pairs, k.tolist(), strict=True)]
    assert array[place[WaveletMatrix(ranks).kth(low, high, k)]].tolist() == expected


@given(VALUES, st.data())
def test_a_weight_is_as_many_equal_values(values, data):
    array = np.array(values)
    weights = data.draw(st.lists(st.integers(1, 5), min_size=len(values), max_size=len(values)))
    pairs, low, high = data.draw(ranges(len(values)))
    ranks, place = dense_ranks(array)
    matrix = WaveletMatrix(ranks, np.array(weights))
    rows = [sorted(v for v, n in zip(values[a:b], weights[a:b], strict=True) for _ in range(n)) for a, b in pairs]
    assert matrix.total(low, high).tolist() == list(map(len, rows))
    k = np.array([data.draw(st.integers(0, len(r) - 1)) for r in rows])
    assert array[place[matrix.kth(low, high, k)]].tolist() == [r[i] for r, i in zip(rows, k.tolist(), strict=True)]
    bound = data.draw(st.integers(0, max(values) + 2))
    below = matrix.below(low, high, np.full(len(low), np.searchsorted(np.unique(array), bound)))
    assert below.tolist() == [sum(v < bound for v in r) for r in rows]


@given(VALUES, st.data())
def test_distinct_values_of_ranges_are_counted_and_weighed(values, data):
    pairs, low, high = data.draw(ranges(len(values)))
    ranks, _ = dense_ranks(np.array(values))
    previous = previous_places(ranks)
    assert distinct_in(previous, low, high).tolist() == [len(set(values[a:b])) for a, b in pairs]
    sums = distinct_in(previous, low, high, np.array(values))
    assert sums.tolist() == [sum(set(values[a:b])) for a, b in pairs]


def test_nothing_and_one_value_need_no_level():
    nothing = np.empty(0, np.int64)
    assert len(WaveletMatrix(nothing)) == 0
    assert previous_places(nothing).tolist() == []
    alike = WaveletMatrix(np.zeros(5, np.int64))
    assert alike.bits == 0
    assert alike.kth(np.array([1]), np.array([4]), np.array([2])).tolist() == [0]
    assert alike.below(np.array([1, 1]), np.array([4, 4]), np.array([0, 1])).tolist() == [0, 3]
