"""Keys: numbers in order of appearance, nulls and NaN among them, and back."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.same import is_same
from slicewise.slicing.keys import KeyTable

NAN = float("nan")
texts = st.one_of(st.none(), st.sampled_from(["", "a", "b", "ab"]))
numbers = st.one_of(st.none(), st.integers(-2, 2))


def encode(table: KeyTable, *columns: list) -> list[int]:
    arrays = [pa.array(c, t) for c, t in zip(columns, table.types, strict=True)]
    return table.encode(arrays, len(columns[0])).tolist()


def decoded(table: KeyTable, codes: list[int]) -> list[tuple]:
    return list(zip(*(c.to_pylist() for c in table.decode(np.array(codes, np.int64))), strict=True))


@given(st.lists(st.lists(texts, min_size=1, max_size=8), min_size=1, max_size=4))
def test_keys_are_numbered_as_they_come(batches):
    table, seen = KeyTable([pa.string()]), []
    for batch in batches:
        seen += [k for k in dict.fromkeys(batch) if k not in seen]
        codes = encode(table, batch)
        assert codes == [seen.index(k) for k in batch]
        assert decoded(table, codes) == [(k,) for k in batch]
    assert len(table) == len(seen)


@given(st.lists(st.lists(st.tuples(texts, numbers, texts), min_size=1, max_size=8), min_size=1, max_size=3))
def test_several_columns_make_one_key(batches):
    table = KeyTable([pa.string(), pa.int64(), pa.string()])
    found: dict[tuple, int] = {}
    for batch in batches:
        codes = encode(table, *map(list, zip(*batch, strict=True)))
        for key, code in zip(batch, codes, strict=True):
            assert found.setdefault(key, code) == code
        assert decoded(table, codes) == batch
    assert sorted(found.values()) == list(range(len(found)))


def test_no_columns_make_one_key_of_all_rows():
    table = KeyTable([])
    assert table.encode([], 3).tolist() == [0, 0, 0]
    assert table.decode(np.array([0, 0])) == ()
    assert len(table) == 0


def test_no_rows_have_no_keys():
    table = KeyTable([pa.string()])
    assert table.encode([pa.array([], pa.string())], 0).tolist() == []
    two = KeyTable([pa.string(), pa.int64()])
    assert two.encode([pa.array([], pa.string()), pa.array([], pa.int64())], 0).tolist() == []


def test_nan_is_one_key_and_zero_has_no_sign():
    table = KeyTable([pa.float64()])
    assert encode(table, [NAN, 1.0, NAN, None]) == [0, 1, 0, 2]
    assert encode(table, [NAN, None]) == [0, 2]
    assert encode(table, [0.0, -0.0]) == [3, 3]


@pytest.mark.parametrize(
    ("type_", "keys"),
    [
        (pa.float64(), [-0.0, 0.0]),
        (pa.float32(), [-0.0, 0.0]),
        (pa.list_(pa.float64()), [[1.0, -0.0], [1.0, 0.0]]),
        (pa.struct([("a", pa.list_(pa.float32()))]), [{"a": [-0.0]}, {"a": [0.0]}]),
    ],
)
def test_zero_is_shown_without_a_sign_whichever_came_first(type_, keys):
    for order in (keys, keys[::-1]):
        table = KeyTable([type_, pa.int64()])
        assert encode(table, order, [7, 7]) == [0, 0]
        assert repr(decoded(table, [0])) == repr([(keys[1], 7)])


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.bool_(), [True, False, None]),
        (pa.int32(), [1, -1, None]),
        (pa.binary(), [b"a", b"", None]),
        (pa.date32(), [dt.date(2024, 1, 1), None]),
        (pa.timestamp("us"), [dt.datetime(2024, 1, 1), None]),
        (pa.timestamp("us", "UTC"), [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]),
        (pa.list_(pa.int64()), [[1, 2], [], None, [1, None]]),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), [{"a": 1, "b": "x"}, {"a": 1, "b": None}, None]),
        (pa.list_(pa.float64()), [[NAN], [1.0]]),
        (pa.large_string(), ["a", None]),
    ],
    ids=str,
)
def test_keys_of_every_type(type_, values):
    table = KeyTable([type_])
    assert encode(table, values + values) == [*range(len(values))] * 2
    back = table.decode(np.arange(len(values)))[0]
    assert is_same(back.to_pylist(), values)
    assert back.type == type_


def test_dictionaries_are_keys_by_their_values():
    table = KeyTable([pa.string()])
    assert table.encode([pa.array(["a", None, "b"]).dictionary_encode()], 3).tolist() == [0, 1, 2]
    # Another dictionary with other codes, entries that no row has, and one value twice.
    other = pa.DictionaryArray.from_arrays(pa.array([3, 0, None, 1]), pa.array(["b", "a", "unused", "b"]))
    codes = table.encode([other], 4).tolist()
    assert decoded(table, codes) == [("b",), ("b",), (None,), ("a",)]
    assert codes[0] == codes[1] == 2


def test_a_null_may_hide_in_the_dictionary():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    table = KeyTable([pa.string()])
    codes = table.encode([column], 3).tolist()
    assert decoded(table, codes) == [("a",), (None,), (None,)]
    assert codes[1] == codes[2]


def test_silent_keys_are_left_out():
    table = KeyTable([pa.string()])
    encode(table, ["a", "b", None, "c"])
    smaller, renumbered = table.without_unused(np.array([1, 2]))
    assert renumbered.tolist() == [-1, 0, 1, -1]
    assert decoded(smaller, [0, 1]) == [("b",), (None,)]
    assert encode(smaller, ["c", "b"]) == [2, 0]
    assert len(table) == 4


def test_a_new_key_is_seen_by_the_next_decoding():
    table = KeyTable([pa.string()])
    encode(table, ["a"])
    assert decoded(table, [0]) == [("a",)]
    encode(table, ["b"])
    assert decoded(table, [1, 0]) == [("b",), ("a",)]
