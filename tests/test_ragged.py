"""Ragged arrays: taking, putting and joining entries, as lists of lists would."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slicewise import plain
from slicewise.aggregates.base import concat_parts, parts_from_data, parts_to_data, put_parts, take_parts
from slicewise.ragged import Ragged

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6)


def ragged(lists):
    flat = np.array([x for items in lists for x in items], np.int64)
    return Ragged(np.array([len(items) for items in lists], np.int64), flat, flat * 2.5)


def lists_of(array):
    array._check()
    return [[x for x, _ in items] for items in array.tolist()]


@given(LISTS, st.data())
def test_entries_are_taken_as_from_a_list(lists, data):
    n = len(lists)
    index = data.draw(st.lists(st.integers(0, n - 1), max_size=8)) if n else []
    assert lists_of(ragged(lists)[np.array(index, np.int64)]) == [lists[i] for i in index]
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    assert lists_of(ragged(lists)[np.array(mask, bool)]) == [x for x, ok in zip(lists, mask, strict=True) if ok]
    low, high, step = data.draw(st.integers(-8, 8)), data.draw(st.integers(-8, 8)), data.draw(st.sampled_from([1, 2]))
    some = slice(low, high, step)
    assert lists_of(ragged(lists)[some]) == lists[some]


@given(LISTS, LISTS)
def test_entries_are_joined(one, other):
    (joined,) = concat_parts([(ragged(one),), (ragged(other),)])
    assert lists_of(joined) == one + other


@given(LISTS, st.data())
def test_entries_are_put_where_others_were(lists, data):
    index = data.draw(st.lists(st.integers(0, len(lists) - 1), unique=True)) if lists else []
    values = data.draw(st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=len(index), max_size=len(index)))
    (out,) = put_parts((ragged(lists),), np.array(index, np.int64), (ragged(values),))
    expected = list(lists)
    for i, items in zip(index, values, strict=True):
        expected[i] = items
    assert lists_of(out) == expected


@given(LISTS)
def test_entries_survive_as_plain_data(lists):
    data = plain.load(plain.dump([parts_to_data((ragged(lists), np.arange(len(lists))))]))
    array, others = parts_from_data(data[0])
    assert lists_of(array) == lists
    assert array.dtype == ragged(lists).dtype
    assert others.tolist() == list(range(len(lists)))


def test_a_slice_is_a_view():
    array = ragged([[1, 2], [], [3]])
    (part,) = take_parts((array,), slice(0, 2))
    assert np.shares_memory(part.columns[0], array.columns[0])
    assert part.nbytes == 2 * 8 + 2 * 16
