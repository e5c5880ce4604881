"""Columns: four physical forms inside, and what the user handed in comes out again."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.columns import Column, is_integral, physical_dtype
from slicewise.errors import DataError
from slicewise.same import is_same

UTC_US = pa.timestamp("us", "UTC")
NAN = float("nan")

#: Every type with its physical form, a few values, and what stands in the array for the first of them.
FORMS = [
    (pa.int8(), np.int64, [1, -1], 1),
    (pa.uint32(), np.int64, [2**32 - 1, 0], 2**32 - 1),
    (pa.int64(), np.int64, [2**63 - 1, -(2**63)], 2**63 - 1),
    (pa.bool_(), np.int64, [True, False], 1),
    (pa.date32(), np.int64, [dt.date(1970, 1, 2), dt.date(1969, 12, 31)], 1),
    (pa.date64(), np.int64, [dt.date(1970, 1, 2)], 86_400_000),
    (pa.timestamp("us"), np.int64, [dt.datetime(1970, 1, 1, 0, 0, 1), dt.datetime(1960, 1, 1)], 1_000_000),
    (UTC_US, np.int64, [dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)], 1_000_000),
    (pa.duration("us"), np.int64, [dt.timedelta(seconds=1), dt.timedelta(days=-1)], 1_000_000),
    (pa.time64("us"), np.int64, [dt.time(0, 0, 1)], 1_000_000),
    (pa.float64(), np.float64, [1.5, NAN, float("inf")], 1.5),
    (pa.float32(), np.float64, [1.5, -0.25], 1.5),
    (pa.decimal128(10, 2), object, [Decimal("1.50"), Decimal("-0.01")], 150),
    (pa.decimal128(38, 0), object, [Decimal(10**37)], 10**37),
    (pa.string(), object, ["a", ""], "a"),
    (pa.large_string(), object, ["a"], "a"),
    (pa.binary(), object, [b"a"], b"a"),
    (pa.list_(pa.int64()), object, [[1, 2], [], [None]], [1, 2]),
    (pa.struct([("a", pa.int64())]), object, [{"a": 1}], {"a": 1}),
]


@pytest.mark.parametrize(("type_", "dtype", "values", "physical"), FORMS, ids=[str(f[0]) for f in FORMS])
def test_every_type_has_its_form_and_comes_back(type_, dtype, values, physical):
    column = Column.of(values, type_)
    assert column.type == type_
    assert column.values.dtype == physical_dtype(type_) == np.dtype(dtype)
    assert column.values[0] == physical
    assert column.valid is None
    assert column.mask.all()
    assert len(column) == len(values)
    assert column.to_arrow().type == type_
    assert is_same(column.to_pylist(), values)


@pytest.mark.parametrize(("type_", "dtype", "values", "physical"), FORMS, ids=[str(f[0]) for f in FORMS])
def test_every_type_has_nulls(type_, dtype, values, physical):
    column = Column.of([None, *values, None], type_)
    assert column.values.dtype == np.dtype(dtype)
    assert column.mask.tolist() == [False, *[True] * len(values), False]
    assert is_same(column.to_pylist(), [None, *values, None])
    assert is_same(column.to_objects().tolist(), [None, *values, None])
    assert column.to_arrow().null_count == 2
    nothing = Column.of([None, None], type_)
    assert nothing.to_pylist() == [None, None]
    assert len(Column.of([], type_)) == 0


@pytest.mark.parametrize(("type_", "dtype", "values", "physical"), FORMS, ids=[str(f[0]) for f in FORMS])
def test_take_and_concat_keep_type_and_nulls(type_, dtype, values, physical):
    whole, some = Column.of(values, type_), Column.of([None, *values], type_)
    both = Column.concat([whole, some])
    assert both.type == type_
    assert is_same(both.to_pylist(), [*values, None, *values])
    assert Column.concat([whole]) is whole
    assert Column.concat([whole, whole]).valid is None
    assert is_same(some.take(np.array([0, 1, 0])).to_pylist(), [None, values[0], None])
    assert is_same(some.take(some.mask).to_pylist(), values)
    assert is_same(some.take(slice(1, None)).to_pylist(), values)


def test_is_integral_is_what_int64_holds():
    assert all(is_integral(t) == (dtype is np.int64) for t, dtype, _, _ in FORMS)


# -- from whatever the user has


@pytest.mark.parametrize(
    ("data", "type_", "values"),
    [
        ([1, None, 3], pa.int64(), [1, None, 3]),
        ((1.5, NAN), pa.float64(), [1.5, NAN]),
        (range(3), pa.int64(), [0, 1, 2]),
        (np.array([1, 2], np.int16), pa.int16(), [1, 2]),
        (np.array([True, False]), pa.bool_(), [True, False]),
        (np.array(["a", "b"]), pa.string(), ["a", "b"]),
        (np.array(["a", None], object), pa.string(), ["a", None]),
        (np.array(["2024-01-01", "NaT"], "datetime64[s]"), pa.timestamp("us"), [dt.datetime(2024, 1, 1), None]),
        (pd.Series([1, 2]), pa.int64(), [1, 2]),
        (pd.Series([1.5, NAN]), pa.float64(), [1.5, NAN]),  # a NaN is a value
        (pd.Series(["a", None]), pa.string(), ["a", None]),
        (pd.array([1, None], "Int64"), pa.int64(), [1, None]),
        (pd.Series([1, None], dtype="Int64"), pa.int64(), [1, None]),
        (pd.Series(pd.to_datetime(["2024-01-01", None])), pa.timestamp("us"), [dt.datetime(2024, 1, 1), None]),
        (pd.Categorical(["a", None, "a"]), pa.string(), ["a", None, "a"]),
        (pa.array([1, None]), pa.int64(), [1, None]),
        (pa.array(["a", None, "a"]).dictionary_encode(), pa.string(), ["a", None, "a"]),
        (pa.chunked_array([[1], [None, 3]]), pa.int64(), [1, None, 3]),
        (pa.chunked_array([[1, 2]]), pa.int64(), [1, 2]),
        (pa.chunked_array([], pa.int64()), pa.int64(), []),
        (pa.chunked_array([["a"], ["b", "a"]]).dictionary_encode(), pa.string(), ["a", "b", "a"]),
        (pa.array([1, 2, 3, 4]).slice(1, 2), pa.int64(), [2, 3]),
        (pa.array([True, None, False, True]).slice(1, 3), pa.bool_(), [None, False, True]),
        ([None, None], pa.null(), [None, None]),
    ],
)
def test_columns_come_from_anything(data, type_, values):
    column = Column.of(data)
    assert column.type == type_
    assert is_same(column.to_pylist(), values)


def test_arrays_that_fit_are_not_copied():
    for array in (np.arange(3), np.arange(3.0)):
        assert Column.of(array).values is array
    column = Column.of([1])
    assert Column.of(column) is column


def test_a_type_may_be_asked_for():
    assert Column.of([1, 2], pa.float64()).values.dtype == np.float64
    assert Column.of(pa.array([1, 2]), pa.int32()).type == pa.int32()
    assert Column.of(["1.5"], pa.string()).to_pylist() == ["1.5"]
    assert Column.of([1], pa.decimal128(10, 2)).to_pylist() == [Decimal("1.00")]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_timestamps_are_microseconds_inside(unit):
    column = Column.of(pa.array([-1, None, 1], pa.timestamp(unit, "Europe/Berlin")))
    factor = {"s": 10**6, "ms": 1000, "us": 1}[unit]
    assert column.values[[0, 2]].tolist() == [-factor, factor]
    assert column.type == pa.timestamp("us", "Europe/Berlin")


def test_nanoseconds_are_cut_down_and_not_towards_zero():
    column = Column.of(pa.array([1999, -1, None, -1000, -1001], pa.timestamp("ns")))
    assert column.values.tolist()[:2] == [1, -1]
    assert column.values.tolist()[3:] == [-1, -2]
    assert column.mask.tolist() == [True, True, False, True, True]


@given(st.lists(st.one_of(st.none(), st.decimals(-(10**15), 10**15, places=4))))
def test_decimals_are_exact(values):
    assert Column.of(values, pa.decimal128(38, 4)).to_pylist() == values


@given(st.lists(st.one_of(st.none(), st.floats())))
def test_floats_come_back_bit_by_bit(values):
    found = Column.of(values, pa.float64()).to_pylist()
    assert list(map(repr, found)) == list(map(repr, values))


# -- what is refused


def test_unsigned_64_bits_have_no_counterpart():
    with pytest.raises(
        DataError, match=r"^unsigned 64-bit integers have no counterpart in Spark; cast the column to int64 first$"
    ):
        Column.of(np.array([1], np.uint64))


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int32, object])
@pytest.mark.parametrize("shape", [(2, 2), (), (1, 1, 1)])
def test_a_column_has_one_dimension(dtype, shape):
    with pytest.raises(DataError) as found:
        Column.of(np.zeros(shape, dtype))
    assert str(found.value) == f"a column must have one dimension; got an array of shape {shape}"


def test_masked_arrays_hide_nulls():
    column = Column.of(np.ma.array([1, 2, 3], mask=[False, True, False]))
    assert column.to_pylist() == [1, None, 3]
    assert column.mask.tolist() == [True, False, True]
    assert type(column.values) is np.ndarray


def test_missing_texts_of_pandas_are_nulls():
    assert Column.of(pd.Series(["a", NAN, None])).to_pylist() == ["a", None, None]
