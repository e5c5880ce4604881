"""First, last, max_by, min_by and m4: event time decides, position settles ties."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import slicewise.aggregates as sw
from slicewise.aggregates.base import take_parts
from slicewise.columns import Column
from tests.aggregates.over import UTC, over

S, I64 = pa.string(), pa.int64()


@pytest.mark.parametrize(
    ("aggregate", "result"),
    [
        (sw.first("v"), ["a", "d"]),
        (sw.last("v"), ["c", "f"]),
        (sw.max_by("v", "w"), ["b", "d"]),
        (sw.min_by("v", "w"), ["a", "e"]),
    ],
)
def test_rows_in_order(aggregate, result):
    # v     a  b  c | d  e  f
    # w     1  3  3 | 9  0  0
    # time  0  1  2 | 3  4  5
    columns = [list("abcdef"), [1, 3, 3, 9, 0, 0]]
    types = [S, I64]
    assert (
        over(aggregate, *columns[: len(aggregate.columns)], types=types[: len(aggregate.columns)], starts=[0, 3])
        == result
    )


@pytest.mark.parametrize(
    ("aggregate", "result"),
    [
        (sw.first("v"), "b"),
        (sw.last("v"), "a"),
        (sw.max_by("v", "w"), "c"),
        (sw.min_by("v", "w"), "b"),
    ],
)
def test_rows_out_of_order(aggregate, result):
    # v     a  b  c  d
    # w     5  1  5  1
    # time  9  2  4  7      in order: b c d a
    columns = [list("abcd"), [5, 1, 5, 1]][: len(aggregate.columns)]
    types = [S, I64][: len(aggregate.columns)]
    assert over(aggregate, *columns, types=types, times=[9, 2, 4, 7]) == [result]


@pytest.mark.parametrize(
    ("aggregate", "result"), [(sw.first("v"), "a"), (sw.last("v"), "c"), (sw.max_by("v", "w"), "a")]
)
def test_rows_of_equal_time_go_by_position(aggregate, result):
    columns, types = [list("abc"), [1, 1, 1]][: len(aggregate.columns)], [S, I64][: len(aggregate.columns)]
    assert over(aggregate, *columns, types=types, times=[5, 5, 5]) == [result]
    monoid = aggregate.bind(*types)
    lifted = monoid.lift([Column.of(c, t) for c, t in zip(columns, types, strict=True)], np.array([5, 5, 5]))
    a, b, c = (take_parts(lifted, slice(i, i + 1)) for i in range(3))
    assert monoid.lower(monoid.combine(monoid.combine(a, b), c)).to_pylist() == [result]


def test_by_leaves_out_rows_without_by_and_keeps_those_without_value():
    assert over(sw.max_by("v", "w"), ["a", None, "c"], [1, 2, None], types=[S, I64]) == [None]
    assert over(sw.min_by("v", "w"), ["a", None, "c"], [1, 2, None], types=[S, I64]) == ["a"]
    assert over(sw.max_by("v", "w"), ["a", "b"], [None, None], types=[S, I64]) == [None]


@pytest.mark.parametrize(
    ("by", "type_", "largest", "smallest"),
    [
        ([1.0, float("nan"), float("-inf"), float("nan")], pa.float64(), 1, 2),
        ([0.0, -0.0, 0.0, -0.0], pa.float64(), 0, 0),
        (["b", "é", "a", "é"], S, 1, 2),
        ([True, False, True, False], pa.bool_(), 0, 1),
        ([-(2**63), 2**63 - 1, 0, 2**63 - 1], I64, 1, 0),
    ],
)
def test_by_goes_in_spark_s_order(by, type_, largest, smallest):
    for aggregate, winner in ((sw.max_by("v", "w"), largest), (sw.min_by("v", "w"), smallest)):
        assert over(aggregate, [0, 1, 2, 3], by, types=[I64, type_]) == [winner]
        monoid = aggregate.bind(I64, type_)
        parts = monoid.lift([Column.of([0, 1, 2, 3]), Column.of(by, type_)], np.arange(4))
        together = monoid.identities(1)
        for i in (2, 3, 0, 1):
            together = monoid.combine(together, take_parts(parts, slice(i, i + 1)))
        assert monoid.lower(together).to_pylist() == [winner]


def test_a_negative_nan_is_as_large_as_any():
    values = Column.of(np.array([np.copysign(np.nan, -1.0), 1.0]))  # what x86 gives for 0 * infinity
    monoid = sw.max_by("v", "w").bind(I64, pa.float64())
    parts = monoid.lift_fold([Column.of([7, 8]), values], np.arange(2), np.array([0]))
    assert monoid.lower(parts).to_pylist() == [7]


def test_m4_gives_four_points_with_their_times():
    # v     5  -  9  2  9  4
    # time  0  1  2  3  4  5
    (point,) = over(sw.m4("v"), [5, None, 9, 2, 9, 4], types=[pa.int32()])
    assert point == {
        "first": 5, "last": 4, "min": 2, "max": 9, "first_time": 0, "last_time": 5, "min_time": 3, "max_time": 2,
    }  # fmt: skip


def test_m4_reports_times_as_timestamps_when_told_so():
    monoid = sw.m4("v").bind(pa.float32())
    monoid.set_time_type(UTC)
    assert monoid.result.field("first").type == pa.float32()
    assert monoid.result.field("max_time").type == UTC
    parts = monoid.lift_fold([Column.of([1.5, 2.5, None], pa.float32())], np.array([0, 10**6, 2]), np.array([0, 2]))
    first, second = monoid.lower(parts).to_arrow().to_pylist()
    assert first["max"] == 2.5
    assert first["max_time"] == dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC)
    assert second is None


def test_m4_of_rows_out_of_order():
    (point,) = over(sw.m4("v"), [3, 1, 1, 3], types=[I64], times=[30, 20, 10, 40])
    assert point == {
        "first": 1, "last": 3, "min": 1, "max": 3, "first_time": 10, "last_time": 40, "min_time": 10, "max_time": 30,
    }  # fmt: skip
