"""Spark's answers: types, nulls, NaN and overflow as Spark 4 documents them in ANSI mode, written down as tables."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re

import numpy as np
import pyarrow as pa
import pytest

import slicewise.aggregates as sw
from slicewise.columns import Column
from slicewise.errors import OverflowInWindowError
from tests.aggregates.over import UTC, one, over

D = decimal.Decimal
NAN, INF = math.nan, math.inf
I8, I16, I32, I64, F32, F64 = pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()
STR, BOOL, DAY = pa.string(), pa.bool_(), pa.date32()


def micro(n):
    """An instant of 1970, in microseconds."""
    return dt.datetime(1970, 1, 1, 0, 0, 0, n, dt.UTC)


@pytest.mark.parametrize(
    ("aggregate", "given", "result"),
    [
        *((sw.count("v"), t, I64) for t in (I8, F64, STR, BOOL, pa.list_(I8))),
        *((sw.sum("v"), t, I64) for t in (I8, I16, I32, I64, pa.uint32())),
        *((sw.sum("v"), t, F64) for t in (F32, F64)),
        (sw.sum("v"), pa.decimal128(10, 2), pa.decimal128(20, 2)),
        (sw.sum("v"), pa.decimal128(30, 2), pa.decimal128(38, 2)),
        (sw.sum("v"), pa.duration("us"), pa.duration("us")),
        *((sw.avg("v"), t, F64) for t in (I8, I64, F32, F64)),
        (sw.avg("v"), pa.decimal128(10, 2), pa.decimal128(14, 6)),
        (sw.avg("v"), pa.decimal128(38, 36), pa.decimal128(38, 38)),
        (sw.avg("v"), pa.duration("us"), pa.duration("us")),
        *((f("v"), pa.decimal128(10, 2), F64) for f in (sw.product, sw.geometric_mean, sw.median)),
        *((f("v"), I32, F64) for f in (sw.product, sw.stddev, sw.stddev_pop, sw.variance, sw.var_pop)),
        *((f("v"), t, t) for f in (sw.min, sw.max, sw.first, sw.last) for t in (I8, F32, BOOL, STR, DAY, UTC)),
        *((f("v"), pa.decimal128(7, 3), pa.decimal128(7, 3)) for f in (sw.min, sw.max, sw.first)),
        (sw.max_count("v"), F64, I64),
        (sw.min_count("v"), STR, I64),
        (sw.range_("v"), I8, I64),
        (sw.range_("v"), F32, F32),
        (sw.range_("v"), pa.decimal128(7, 3), pa.decimal128(8, 3)),
        (sw.range_("v"), UTC, pa.duration("us")),
        (sw.range_("v"), DAY, pa.duration("us")),
        (sw.collect_list("v"), I16, pa.list_(I16)),
        (sw.collect_set("v"), STR, pa.list_(STR)),
        (sw.concat("v"), STR, STR),
        (sw.percentile("v", 0.9), I32, F64),
        (sw.percentile("v", [0.9]), I32, pa.list_(F64)),
    ],
)
def test_result_types(aggregate, given, result):
    assert aggregate.bind(given).result == result
    assert aggregate.result_type(given) == result


@pytest.mark.parametrize(
    ("aggregate", "values", "type_", "result"),
    [
        # nulls are skipped, and nothing else
        (sw.count("v"), [1, None, 3], I64, 2),
        (sw.sum("v"), [1, None, 3], I64, 4),
        (sw.sum("v"), [1.5, None], F32, 1.5),
        (sw.avg("v"), [1, None, 2], I32, 1.5),
        (sw.product("v"), [2, None, 3], I64, 6.0),
        (sw.min("v"), [None, 2, 1], I8, 1),
        (sw.max("v"), [None, "b", "a"], STR, "b"),
        (sw.max_count("v"), [None, 2, 2, 1], I64, 2),
        (sw.collect_list("v"), ["b", None, "a", "b"], STR, ["b", "a", "b"]),
        (sw.collect_set("v"), ["b", None, "a", "b"], STR, ["a", "b"]),
        (sw.concat("v", ","), ["b", None, "", "a"], STR, "b,,a"),
        (sw.median("v"), [None, 1, 4], I64, 2.5),
        (sw.first("v"), [None, 1], I64, None),
        (sw.last("v"), [1, None], I64, None),
        # infinity and NaN
        (sw.sum("v"), [INF, 1.0], F64, INF),
        (sw.sum("v"), [INF, -INF], F64, NAN),
        (sw.sum("v"), [1e308, 1e308], F64, INF),
        (sw.avg("v"), [NAN, 1.0], F64, NAN),
        (sw.product("v"), [0.0, INF], F64, NAN),
        (sw.max("v"), [1.0, NAN, INF], F64, NAN),
        (sw.min("v"), [NAN, 1.0, NAN], F64, 1.0),
        (sw.min("v"), [NAN, NAN], F64, NAN),
        (sw.max("v"), [-INF], F64, -INF),
        (sw.min("v"), [INF, NAN], F64, INF),
        (sw.range_("v"), [1.0, NAN], F64, NAN),
        (sw.range_("v"), [1.0, INF], F64, INF),
        (sw.max_count("v"), [NAN, 1.0, NAN], F64, 2),
        (sw.min_count("v"), [NAN, 1.0, -0.0, 0.0], F64, 2),
        (sw.min_count("v"), [NAN, NAN], F64, 2),
        (sw.collect_set("v"), [NAN, 2.0, NAN, 0.0, -0.0], F64, [0.0, 2.0, NAN]),
        (sw.variance("v"), [INF, 1.0], F64, NAN),
        (sw.var_pop("v"), [INF], F64, NAN),
        (sw.var_pop("v"), [NAN], F64, NAN),
        (sw.median("v"), [NAN, 1.0, 2.0], F64, 2.0),
        (sw.median("v"), [NAN, 1.0], F64, NAN),
        (sw.percentile("v", 1.0), [NAN, 1.0], F64, NAN),
        # variance and deviation
        (sw.variance("v"), [1, 2, 3], I64, 1.0),
        (sw.stddev("v"), [1, 2, 3], I64, 1.0),
        (sw.var_pop("v"), [1, 2, 3], I64, 2 / 3),
        (sw.stddev_pop("v"), [1, 2, 3], I64, 0.816496580927726),
        (sw.variance("v"), [7], I64, None),
        (sw.stddev("v"), [7, None], I64, None),
        (sw.var_pop("v"), [7], I64, 0.0),
        (sw.stddev_pop("v"), [7], I64, 0.0),
        (sw.variance("v"), [D("1.00"), D("2.00")], pa.decimal128(5, 2), 0.5),
        # a geometric mean of zeros and negative numbers
        (sw.geometric_mean("v"), [2, 8], I64, 4.0),
        (sw.geometric_mean("v"), [2, 0], I64, 0.0),
        (sw.geometric_mean("v"), [2, -8], I64, NAN),
        (sw.geometric_mean("v"), [0.0, -8.0], F64, NAN),
        (sw.geometric_mean("v"), [0.0, INF], F64, NAN),
        (sw.geometric_mean("v"), [2.0, NAN], F64, NAN),
        # the examples of Spark's own documentation
        (sw.percentile("v", 0.3), [0, 10], I64, 3.0),
        (sw.percentile("v", [0.25, 0.75]), [0, 10], I64, [2.5, 7.5]),
        (sw.median("v"), [0, 10], I64, 5.0),
        (sw.percentile("v", 0.5), [D("0.10"), D("0.20")], pa.decimal128(5, 2), (1 - 0.5) * 0.1 + 0.5 * 0.2),
        # decimals: exact, rounded half up
        (sw.sum("v"), [D("0.10")] * 3, pa.decimal128(3, 2), D("0.30")),
        (sw.avg("v"), [D("0.01"), D("0.02"), D("0.02")], pa.decimal128(3, 2), D("0.016667")),
        (sw.avg("v"), [D("0.00001"), D("0")], pa.decimal128(35, 5), D("0.000005")),
        (sw.avg("v"), [D("1"), D("0")] + [D("0")] * 6, pa.decimal128(1, 0), D("0.1250")),
        (sw.avg("v"), [D("-1")] + [D("0")] * 31, pa.decimal128(1, 0), D("-0.0313")),
        (sw.max("v"), [D("1.10"), None, D("-2.00")], pa.decimal128(5, 2), D("1.10")),
        (sw.range_("v"), [D("-9.9"), D("9.9")], pa.decimal128(2, 1), D("19.8")),
        (sw.max_count("v"), [D("1.10"), D("1.1")], pa.decimal128(5, 2), 2),
        # an extreme of the type is a value, not a missing one
        (sw.max("v"), [-(2**63)], I64, -(2**63)),
        (sw.min("v"), [2**63 - 1], I64, 2**63 - 1),
        (sw.max_count("v"), [-(2**63), -(2**63)], I64, 2),
        # other types
        (sw.max("v"), [False, True, None], BOOL, True),
        (sw.min("v"), [b"b", b"\xff", b"a"], pa.binary(), b"a"),
        (sw.max("v"), [dt.date(1969, 5, 1), dt.date(1970, 1, 1)], DAY, dt.date(1970, 1, 1)),
        (sw.range_("v"), [dt.date(1969, 12, 30), dt.date(1970, 1, 2)], DAY, dt.timedelta(days=3)),
        (sw.range_("v"), [micro(5), None, micro(3)], UTC, dt.timedelta(microseconds=2)),
        (sw.max("v"), ["é", "z", "Z"], STR, "é"),
        (sw.sum("v"), [dt.timedelta(seconds=1), dt.timedelta(seconds=2)], pa.duration("us"), dt.timedelta(seconds=3)),
        (sw.avg("v"), [dt.timedelta(0, 0, 1), dt.timedelta(0, 0, 2)], pa.duration("us"), dt.timedelta(0, 0, 2)),
        (sw.collect_set("v"), [[2], [1, None], [2]], pa.list_(I64), [[1, None], [2]]),
        (sw.collect_set("v"), [{"a": 2}, {"a": None}], pa.struct([("a", I64)]), [{"a": None}, {"a": 2}]),
        (sw.collect_list("v"), [dt.date(1970, 1, 2), None], DAY, [dt.date(1970, 1, 2)]),
        (sw.first("v"), [[1], None], pa.list_(I64), [1]),
        (sw.min("v"), [None, None], pa.null(), None),
    ],
)
def test_results(aggregate, values, type_, result):
    assert same(one(aggregate, values, type_), result)


def same(got, want):
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    if isinstance(want, float):
        return isinstance(got, float) and (got == want or math.isclose(got, want) or (got != got and want != want))
    return type(got) is type(want) and got == want


@pytest.mark.parametrize(
    ("type_", "bits", "unit"), [(pa.date32(), 32, 86_400_000_000), (pa.date64(), 63, 1000), (UTC, 64, 1), (I64, 64, 1)]
)
def test_a_range_that_does_not_fit_raises_and_never_wraps_around(type_, bits, unit):
    width = pa.int32() if bits == 32 else I64
    ends = pa.array([-(2 ** (bits - 1)), 2 ** (bits - 1) - 1], width).cast(type_, safe=False)
    monoid = sw.range_("v").bind(type_)
    parts = monoid.lift_fold([Column.of(ends)], np.arange(2), np.zeros(1, np.int64))
    message = (
        f"`range_` of column 'v' does not fit in a 64-bit integer: a window gives {(2**bits - 1) * unit}; "
        "cast the column to decimal or double"
    )
    with pytest.raises(OverflowInWindowError, match=f"^{re.escape(message)}$"):
        monoid.lower(parts)


@pytest.mark.parametrize(
    ("values", "median", "quarter"),
    [
        # What Spark 4.3 gives: it makes doubles of integers before it subtracts them.
        ([-(2**63), 2**63 - 1], 0.0, -4.611686018427388e18),
        ([-(2**62) - 1, 2**62 + 5], 0.0, -2.305843009213694e18),
        ([-(2**63), -(2**63) + 1, 2**63 - 1], -9.223372036854775807e18, -9.223372036854775808e18),
        ([2**53, 2**53 + 1], 9007199254740992.0, 9007199254740992.0),
        ([2**63 - 1, 0], 4.611686018427388e18, 2.305843009213694e18),
    ],
)
def test_percentiles_of_integers_that_are_far_apart(values, median, quarter):
    for type_ in (I64, pa.decimal128(20, 0)):
        given = values if type_ == I64 else list(map(D, values))
        assert one(sw.median("v"), given, type_) == median
        assert one(sw.percentile("v", [0.25, 0.5]), given, type_) == [quarter, median]
        scalar = sw.median()
        assert scalar.lower(scalar.combine(*map(scalar.lift, given[:2]))) == one(scalar, given[:2], type_)


@pytest.mark.parametrize("q", [0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0])
def test_percentile_is_spark_s_formula(q):
    values = [3.5, -1.0, 3.5, 8.25, 0.0, 3.5, 7.0]
    position = (len(values) - 1) * q
    low, high = math.floor(position), math.ceil(position)
    ranked = sorted(values)
    between = (high - position) * ranked[low] + (position - low) * ranked[high]
    assert one(sw.percentile("v", q), values, F64) == (ranked[low] if ranked[low] == ranked[high] else between)


def test_variance_keeps_its_digits_around_a_large_mean():
    values = [1e9 + x for x in (4.0, 7.0, 13.0, 16.0)]
    assert one(sw.variance("v"), values, F64) == 30.0
    monoid = sw.variance("v").bind(F64)
    lifted = monoid.lift([Column.of(np.array(values))], np.arange(4))
    halves = monoid.fold(lifted, np.array([0, 2]))
    both = monoid.combine(tuple(p[:1] for p in halves), tuple(p[1:] for p in halves))
    assert monoid.lower(both).to_pylist() == [30.0]
    rest = monoid.invert(both, tuple(p[1:] for p in halves))
    assert monoid.lower(rest).to_pylist() == pytest.approx([4.5])


def test_variance_of_values_whose_sum_is_infinite():
    assert one(sw.var_pop("v"), [1.6e308, 1.6e308], F64) == 0.0


# -- overflow

TOO_LARGE = [
    (sw.sum("v"), [2**63 - 1, 1], I64, "9223372036854775808"),
    (sw.sum("v"), [-(2**63), -1], I64, "-9223372036854775809"),
    (sw.sum("v"), [D("9" * 38)] * 2, pa.decimal128(38, 0), "1" + "9" * 37 + "8"),
    (sw.avg("v"), [D("9" * 36)], pa.decimal128(36, 0), "9" * 36 + ".0000"),
    (sw.avg("v"), [D("9" * 38)] * 2, pa.decimal128(38, 0), "1" + "9" * 37 + "8"),
    (sw.range_("v"), [2**63 - 1, -1], I64, "9223372036854775808"),
    (sw.range_("v"), [D("9" * 38), D("-1")], pa.decimal128(38, 0), "1" + "0" * 38),
]


@pytest.mark.parametrize(("aggregate", "values", "type_", "total"), TOO_LARGE)
def test_a_result_that_does_not_fit_raises(aggregate, values, type_, total):
    fits = "a 64-bit integer" if type_ == I64 else str(aggregate.bind(type_).result)
    if "avg" in repr(aggregate) and len(values) == 2:
        fits = "decimal128(38, 0)"
    message = f"`{aggregate.name}` of column 'v' does not fit in {fits}: a window gives {total}; cast the column"
    with pytest.raises(OverflowInWindowError, match=re.escape(message)):
        one(aggregate, values, type_)


def test_a_total_that_fits_may_leave_64_bits_on_the_way():
    big = 2**63 - 1
    assert one(sw.sum("v"), [big, big, -big, -big, 5], I64) == 5
    assert one(sw.sum("v"), [big, 1, None, -2], I64) == big - 1
    assert one(sw.sum("v"), [-(2**63), -(2**63), 2**62, 2**62, 2**62, 2**62, 1], I64) == 1


def test_the_average_of_integers_never_overflows():
    big = 2**63 - 1
    assert one(sw.avg("v"), [big] * 4, I64) == float(big)
    assert one(sw.avg("v"), [big, -big, 3], I64) == 1.0


def test_a_running_total_leaves_64_bits_and_comes_back():
    monoid = sw.sum("v").bind(I64)
    big = 2**62
    running = monoid.scan(monoid.lift([Column.of([big] * 6)], np.arange(6)))
    assert running[0].tolist() == [big * i for i in range(1, 7)]
    window = monoid.invert(tuple(p[3:4] for p in running), tuple(p[2:3] for p in running))
    assert window[0].dtype == np.int64
    assert monoid.lower(window).to_pylist() == [big]
    merged = monoid.combine(tuple(p[5:] for p in running), (np.array([-5 * big]), np.array([1])))
    assert monoid.lower(merged).to_pylist() == [big]


@pytest.mark.parametrize("type_", [I8, I16, I32, pa.uint32()])
def test_narrow_integers_are_summed_as_wide_ones(type_):
    top = 2 ** (type_.bit_width - (0 if type_ == pa.uint32() else 1)) - 1
    assert over(sw.sum("v"), [top] * 1000, types=[type_], starts=[0, 10]) == [top * 10, top * 990]


@pytest.mark.parametrize(
    "aggregate", [sw.largest("v", 2), sw.collect_list("v"), sw.first_k("v", 1), sw.collect_set("v")], ids=str
)
def test_a_list_may_hold_the_least_duration(aggregate):
    column = Column.of(pa.array([-(2**63)]).cast(pa.duration("us")))
    monoid = aggregate.bind(column.type)
    lowered = monoid.lower(monoid.lift_fold([column], np.zeros(1, np.int64), np.zeros(1, np.int64)))
    assert lowered.to_pylist() == [[dt.timedelta(microseconds=-(2**63))]]
    assert lowered.to_arrow().to_pylist() == lowered.to_pylist()


def test_a_duration_that_64_bits_do_not_hold_stays_refused():
    column = Column(np.array([[dt.timedelta.max], None], object)[:1], pa.list_(pa.duration("us")))
    with pytest.raises(pa.ArrowInvalid, match=r"^Timedelta too large to fit in 64-bit integer$"):
        column.to_arrow()
