"""Ragged arrays: taking, putting and joining entries, as lists of lists would."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise import plain
from slicewise.aggregates.base import concat_parts, parts_from_data, parts_to_data, put_parts, take_parts
from slicewise.columns import Column, column_of_objects
from slicewise.ragged import Ragged, RaggedColumn

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


INT = pa.int64()
COUNTED = {
    "list": (pa.list_(INT), (INT,)),
    "structs": (pa.list_(pa.struct([("value", INT), ("count", pa.float64())])), (INT, pa.float64())),
    "map": (pa.map_(INT, pa.float64()), (INT, pa.float64())),
}


@pytest.mark.parametrize("kind", COUNTED)
@given(lists=LISTS, others=LISTS, data=st.data())
def test_columns_of_lists_are_those_of_python_values(kind, lists, others, data):
    type_, held = COUNTED[kind]
    lists, others = ([sorted(set(items)) for items in some] for some in (lists, others))

    def made(some):
        runs = ragged(some)
        return RaggedColumn(Ragged(runs.lengths, *runs.columns[: len(held)]), type_, held)

    def plain_value(items):
        if kind == "list":
            return items
        return {x: 2.5 * x for x in items} if kind == "map" else [{"value": x, "count": 2.5 * x} for x in items]

    column = Column.concat([made(lists), made(others)])
    expected = [plain_value(items) for items in (*lists, *others)]
    assert type(column) is RaggedColumn
    assert len(column) == len(expected)
    index = np.array(data.draw(st.permutations(range(len(expected)))), np.int64)
    some = column.take(index)
    objects = column_of_objects([expected[i] for i in index], type_)
    assert some.to_arrow().equals(objects.to_arrow())
    assert some.to_pylist() == objects.to_pylist()
    assert some.values.tolist() == objects.values.tolist()
    assert Column.concat([some, objects]).to_pylist() == 2 * objects.to_pylist()
    assert Column.from_data(some.to_data()).to_pylist() == objects.to_pylist()
    assert some.mask.all()
    assert some.nbytes >= 8 * len(some)
