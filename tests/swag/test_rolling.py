"""roll: exactly what a window gives one by one, for every numeric aggregate, range and length."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.columns import Column
from slicewise.errors import AggregateError, DataError, QueryError
from slicewise.same import is_same
from slicewise.swag import FlatFIT, Naive, SlickDeque, TwoStacks, roll, rolling, rolling_moments, rolling_sums
from slicewise.swag.rolling import batch_of, survivors
from slicewise.swag.rolling_ranks import sorted_windows
from tests.matrices import matrix

AGGREGATES = {
    name: sw.AGGREGATES[name]()
    for name in (
        *("count", "sum", "product", "avg", "geometric_mean", "stddev", "stddev_pop", "variance", "var_pop"),
        *("min", "max", "range_", "max_count", "min_count", "first", "last"),
        *("median", "mode", "count_distinct", "sum_distinct"),
    )
}


def one_by_one(values, k, aggregate, cls=TwoStacks):
    window, out = cls(aggregate), []
    for value in values:
        if len(window) == k:
            window.evict()
        window.insert(value)
        out.append(window.query())
    return out


def as_list(result):
    return [None if x is np.ma.masked else x for x in result.tolist()] if isinstance(result, np.ndarray) else result


@matrix(name=AGGREGATES, n=[0, 1, 2, 7, 40, 41])
def test_integers(name, n):
    rng = random.Random(n)
    values = [rng.randrange(-20, 20) for _ in range(n)]
    aggregate = AGGREGATES[name]
    ranges = [1, 2, 3, 5, 8, 20, 39, 40, 41, 100]
    exact = name not in ("product", "geometric_mean", "stddev", "stddev_pop", "variance", "var_pop")
    for k, result in zip(ranges, roll(np.array(values, np.int64), ranges, aggregate), strict=True):
        assert len(result) == n
        for got, want in zip(as_list(result), one_by_one(values, k, aggregate), strict=True):
            # 20**40 has more digits than a double: rounding, not another answer.
            assert is_same(got, want, 0 if exact else max(abs(want or 0), 1)), (k, got, want)


@pytest.mark.parametrize("name", AGGREGATES)
def test_floats_up_to_rounding_and_extremes_exactly(name):
    rng = np.random.default_rng(7)
    values = np.round(rng.normal(50, 10, 300), 3)
    values[[20, 21, 150]] = [np.nan, np.nan, 0.0]
    aggregate = AGGREGATES[name]
    exact = name in ("count", "min", "max", "max_count", "min_count", "first", "last")
    for k, result in zip([3, 17, 250], roll(values, [3, 17, 250], aggregate), strict=True):
        for got, want in zip(as_list(result), one_by_one(values.tolist(), k, aggregate), strict=True):
            scale = 0 if exact else max(abs(want), 100.0) if want is not None and want == want else None
            assert is_same(got, want, scale), (k, got, want)


@given(st.lists(st.integers(-9, 9) | st.none(), min_size=1, max_size=90), st.integers(1, 80), st.booleans())
def test_percentiles_of_every_range_by_sorting_and_by_ranks(values, k, with_nulls):
    """Short windows of numbers are sorted by a network, others read off ranks."""
    values = values if with_nulls else [v or 0 for v in values]
    aggregate = sw.percentile(q=[0.0, 0.3, 0.5, 1.0])
    window, want = TwoStacks(aggregate), []
    for value in values:
        if len(window) == k:
            window.evict()
        window.insert(value)
        want.append(window.query())
    assert is_same(roll(pa.array(values, pa.int64()), k, aggregate).tolist(), want)
    floats = np.array([np.nan if v is None else v / 2 for v in values])
    middle = np.array([_middle(floats[max(i - k + 1, 0) : i + 1]) for i in range(len(floats))])
    np.testing.assert_array_equal(roll(floats, k, sw.median()), middle)


def _middle(window):
    ordered, n = np.sort(window), len(window)  # NumPy sorts NaN last, as Spark does
    return ordered[n // 2] if n % 2 else ordered[n // 2 - 1] + 0.5 * (ordered[n // 2] - ordered[n // 2 - 1])


@given(st.integers(1, 40), st.data())
def test_a_network_sorts_windows_of_every_length(k, data):
    values = data.draw(st.lists(st.integers(0, 5), min_size=k, max_size=k + 8))
    windows = np.stack(sorted_windows(np.array(values), k)).T
    assert windows.tolist() == [sorted(values[i : i + k]) for i in range(len(values) - k + 1)]


@pytest.mark.parametrize("cls", [TwoStacks, FlatFIT, SlickDeque])
def test_every_structure_agrees(cls):
    rng = random.Random(1)
    values = [rng.randrange(1000) for _ in range(200)]
    for aggregate in (sw.sum(), sw.max()):
        assert roll(values, 16, aggregate).tolist() == one_by_one(values, 16, aggregate, cls)


def test_sums_leave_64_bits_and_come_back():
    values = np.array([2**62, 2**62, -(2**62), -(2**62), 7, 2**62, 2**62 - 1])
    assert roll(values[2:], 2, sw.sum()).tolist() == one_by_one(values[2:].tolist(), 2, sw.sum())
    with pytest.raises(OverflowError, match="`sum` does not fit in a 64-bit integer"):
        roll(values, 2, sw.sum())
    assert roll(values, 2, sw.avg())[1] == 2.0**62


@matrix(name=["sum", "avg", "min", "max"], kind=[np.int64, np.float64], doubled=[0, 4, 2**12])
def test_every_range_by_doubling_and_by_blocks(monkeypatch, name, kind, doubled):
    """Whole numbers, so that sums of floats are exact too; pieces so small that many are put together."""
    monkeypatch.setattr(rolling, "_DOUBLED", doubled)
    monkeypatch.setattr(rolling, "PIECE", 3)
    values = np.random.default_rng(5).integers(-99, 99, 67).astype(kind)
    before, ranges = values.copy(), range(1, 70)
    for k, result in zip(ranges, roll(values, ranges, AGGREGATES[name]), strict=True):
        assert result.tolist() == one_by_one(values.tolist(), k, AGGREGATES[name]), k
        result[:] = 0
    assert (values == before).all()


@pytest.mark.parametrize("doubled", [0, 2**12])
@pytest.mark.parametrize("name", ["sum", "min", "max"])
def test_nan_and_infinity_leave_no_trace(monkeypatch, name, doubled):
    monkeypatch.setattr(rolling, "_DOUBLED", doubled)
    values = [1.0, 1e300, 3.0, 4.0, np.nan, 5.0, -2.0, np.inf, -np.inf, 6.0, 7.0, 8.0, -0.5]
    for k in range(1, 15):
        result = roll(np.array(values), k, AGGREGATES[name])
        for got, want in zip(result.tolist(), one_by_one(values, k, AGGREGATES[name], Naive), strict=True):
            assert is_same(got, want, abs(want) if name == "sum" and np.isfinite(want) else 0), (k, got, want)


def test_sums_of_floats_are_as_good_as_pairwise():
    values = np.random.default_rng(2).normal(size=20_000)
    values[::1000] = 1e12
    for k in (3, 100, 1023, 6000):
        for i in (k, 9_999, 10_500, 19_999):
            window = values[i - k + 1 : i + 1]
            error = abs(roll(values, k, sw.sum())[i] - math.fsum(window))
            # Blocks of more than 2**12 add one by one: n roundings at worst, not log2 n of them.
            steps = k if k > 2**12 else 2 * math.log2(k)
            assert error <= steps * np.finfo(float).eps * np.abs(window).sum()


def test_a_running_total_may_leave_64_bits_where_no_window_does():
    values = np.full(100, 2**60)
    assert roll(values, [2, 7], sw.sum())[1].tolist() == one_by_one(values.tolist(), 7, sw.sum())
    assert roll(-values, 7, sw.avg()).tolist() == [-(2.0**60)] * 100
    with pytest.raises(OverflowError, match="does not fit in a 64-bit integer"):
        roll(values, [2, 8], sw.sum())


@pytest.mark.parametrize("name", ["sum", "avg", "min", "max", "count"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64()])
def test_nulls_in_every_range(name, kind):
    rng = random.Random(4)
    values = [None if rng.random() < 0.6 else rng.randrange(-9, 9) for _ in range(40)]
    typed = values if kind == pa.int64() else [None if v is None else float(v) for v in values]
    aggregate = sw.count("v") if name == "count" else AGGREGATES[name]
    for k in (1, 2, 3, 5, 8, 39, 40, 41):
        assert as_list(roll(pa.array(values, kind), k, aggregate)) == one_by_one(typed, k, aggregate), k


def test_results_are_no_views_of_the_values_or_of_each_other():
    values = np.array([3, 1, 2])
    for name, aggregate in AGGREGATES.items():
        for result in roll(values, [1, 3, 4], aggregate):
            result[:] = 0
        assert values.tolist() == [3, 1, 2], name
        first, second = roll(values, [3, 4], aggregate)
        assert not np.shares_memory(first, second), name


def test_nulls_are_skipped_and_hold_their_place():
    values = pa.array([1, None, None, 4])
    assert as_list(roll(values, 2, sw.sum())) == one_by_one([1, None, None, 4], 2, sw.sum()) == [1, 1, None, 4]
    assert as_list(roll(values, 2, sw.max())) == [1, 1, None, 4]
    assert roll(values, 2, sw.count("v")).tolist() == [1, 1, 0, 1]


def test_one_range_gives_one_array():
    assert isinstance(roll([1, 2], 1, sw.sum()), np.ndarray)
    assert [r.tolist() for r in roll([1, 2], [1], sw.sum())] == [[1, 2]]
    assert roll([1, 2], [], sw.sum()) == []
    assert roll([1, 2, 3], np.int64(2), sw.sum()).tolist() == [1, 3, 5]


def test_decimals_are_exact_and_stay_decimals():
    cents = [Decimal("0.10"), Decimal("0.20"), Decimal("0.30")]
    for aggregate in (sw.sum(), sw.avg()):
        assert roll(cents, 2, aggregate).tolist() == one_by_one(cents, 2, aggregate)


def test_user_defined_aggregate_on_arrays_in_order():
    """Not commutative: the last value that is not negative, on arrays."""
    latest = sw.aggregate(
        combine=lambda a, b: np.where(b >= 0, b, a), identity=-1.0, columnar=True, name="latest", result="double"
    )
    rng = random.Random(8)
    values = [float(rng.randrange(-5, 5)) for _ in range(60)]
    values = [v if v >= 0 else -1.0 for v in values]
    for k in (2, 5, 30, 59):
        assert roll(np.array(values), k, latest("v")).tolist() == [
            next((v for v in reversed(values[max(i - k + 1, 0) : i + 1]) if v >= 0), -1.0) for i in range(60)
        ]


@pytest.mark.parametrize(("ranges", "shown"), [(0, "0"), ([3, -1], "-1"), (2.5, "2.5"), ([True], "True"), ("3", "'3'")])
def test_wrong_ranges(ranges, shown):
    with pytest.raises(QueryError, match=f"`ranges` must be positive counts of values; got {shown}"):
        roll([1, 2, 3], ranges, sw.sum())


def test_wrong_aggregates_and_values():
    with pytest.raises(QueryError, match=r"`aggregate` must be an aggregate such as sw.sum\(\); got 'sum'"):
        roll([1], 1, "sum")
    with pytest.raises(
        AggregateError,
        match="`roll` needs an aggregate that works on arrays of numbers; got `collect_list` of int64: slide a window",
    ):
        roll([1], 1, sw.collect_list())
    with pytest.raises(AggregateError, match="`sum` needs numbers; got string"):
        roll(["a"], 1, sw.sum())
    with pytest.raises(DataError, match=r"`values` must be numbers of one type; got \[1, 'a'\]"):
        roll([1, "a"], 1, sw.sum())


def test_what_is_no_array_of_numbers_is_no_batch():
    assert batch_of(sw.sum(), [1, 2]) is None
    assert batch_of(sw.sum(), np.array(["a"])) is None
    assert batch_of(sw.sum(), np.array([2**64 - 1], np.uint64)) is None
    assert batch_of(sw.sum(), np.array([True])) is None
    assert batch_of(sw.sum(), np.array([], np.int64)) is None
    assert batch_of(sw.concat(), np.array([1])) is None
    assert batch_of(sw.range_(), np.array([3, 1])).partials() == [(3, 3), (1, 1)]


@pytest.mark.parametrize("largest", [True, False])
def test_survivors_are_those_of_the_deque(largest):
    rng = np.random.default_rng(3)
    for n in (1, 2, 10, 200):
        values = rng.integers(0, 20, n)
        window = SlickDeque(sw.max() if largest else sw.min())
        for value in values.tolist():
            window.insert(value)
        assert survivors(values, largest=largest) == list(window._strategy.positions)
    assert survivors(np.array([1.0, np.nan]), largest=largest) is None


def null_counters():
    """Every aggregate of the table, and both counts: of values that are not null, and of all."""
    return {**AGGREGATES, "count": sw.count(), "count('v')": sw.count("v")}


OF_DECIMALS = ("count", "count('v')", "sum", "avg", "product", "geometric_mean", "stddev")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in null_counters() for kind in (pa.int64(), pa.float64())),
        *((name, pa.decimal128(10, 2)) for name in OF_DECIMALS),
    ],
)
def test_nulls_count_as_they_do_in_a_window(name, kind):
    rng = random.Random(6)
    values = [None if rng.random() < 0.6 else rng.randrange(1, 9) for _ in range(40)]
    typed = pa.array(values, kind)
    aggregate = null_counters()[name]
    for k in (1, 2, 5, 39, 41):
        rolled, slid = as_list(roll(typed, k, aggregate)), one_by_one(typed.to_pylist(), k, aggregate)
        for got, want in zip(rolled, slid, strict=True):
            assert is_same(got, want, None if want is None else max(abs(float(want)), 1)), (k, got, want)


def test_a_count_without_a_column_counts_nulls_too():
    values = [3, None, None, 5]
    assert roll(values, 3, sw.count()).tolist() == [1, 2, 3, 3]
    assert roll(values, 3, sw.count("v")).tolist() == [1, 1, 1, 1]
    assert roll([None, None], 2, sw.count()).tolist() == [1, 2]


ORIGINS = [0.0, 1e9, -3e5, 1e-30]


def central_powers(window):
    """Sums of the second to fourth powers of deviations from the mean, exactly, as fractions."""
    exact_values = [Fraction(v) for v in window]
    mean = sum(exact_values) / len(window)
    return [float(sum((v - mean) ** p for v in exact_values)) for p in (2, 3, 4)]


def rolled_powers(values, k, highest=4):
    """The sums of the second and higher powers, as they are rolled."""
    lowers = [lambda parts, place=place: Column.of(parts[place]) for place in range(2, highest + 1)]
    return [rolling_moments.roll_moments(values, k, highest, lower).values for lower in lowers]


@matrix(k=[2, 3, 13, 16, 31, 200], origin=ORIGINS, doubled=[0, 2**12])
def test_moments_keep_their_digits_beside_what_has_left_the_window(monkeypatch, k, origin, doubled):
    monkeypatch.setattr(rolling_moments, "DOUBLED", doubled)
    monkeypatch.setattr(rolling_moments, "PIECE", 32)
    monkeypatch.setattr(rolling_sums, "DOUBLED", doubled)
    monkeypatch.setattr(rolling_sums, "CHUNK", 21)
    rng = np.random.default_rng(k)
    values = origin * (1 + np.arange(260) * 1e-9) + rng.normal(size=260) * max(abs(origin) * 1e-6, 1e-30)
    values[[40, 90]], values[200:230] = (1e60, -1e70), values[200]
    powers = rolled_powers(values, k)
    assert rolled_powers(values, k, 2)[0] == pytest.approx(powers[0], rel=1e-9)
    for i in [*range(40), *range(85, 95), *range(85 + k, 260)]:
        window = values[max(i + 1 - k, 0) : i + 1]
        if abs(window).max() > 1e50:
            continue
        second, third, fourth = central_powers(window)
        assert powers[0][i] == pytest.approx(second, rel=1e-9)
        assert powers[1][i] == pytest.approx(third, rel=1e-9, abs=1e-9 * second**1.5)
        assert powers[2][i] == pytest.approx(fourth, rel=1e-9)
    assert (powers[0][200 + k - 1 : 230] == 0).all()  # values that do not vary


@matrix(name=["variance", "stddev_pop", "skewness", "kurtosis"], k=[2, 5, 64, 5000])
def test_nan_and_infinity_are_in_the_moments_of_their_windows_only(name, k):
    values = np.random.default_rng(1).normal(size=12_000)
    clean = roll(values, k, sw.AGGREGATES[name]())
    dirty = values.copy()
    dirty[[700, 6000]] = math.nan
    slid = roll(dirty, k, sw.AGGREGATES[name]())
    spoilt = np.zeros(len(values), bool)
    for at in (700, 6000):
        spoilt[at : at + k] = True
    assert np.isnan(np.ma.getdata(slid)[spoilt & (np.arange(len(values)) > 0)]).all()
    assert np.ma.getdata(slid)[~spoilt] == pytest.approx(np.ma.getdata(clean)[~spoilt], rel=1e-9, abs=1e-9)


PAIRS = ["covar_samp", "covar_pop", "corr", "regr_slope", "regr_r2", "regr_intercept"]


@matrix(name=PAIRS, kind=["noise", "an outlier", "constant", "nulls", "integers"], doubled=[0, 2**12])
def test_pairs_are_rolled_as_they_are_one_by_one(monkeypatch, name, kind, doubled):
    monkeypatch.setattr(rolling_moments, "DOUBLED", doubled)
    monkeypatch.setattr(rolling_moments, "PIECE", 32)
    monkeypatch.setattr(rolling_sums, "DOUBLED", doubled)
    monkeypatch.setattr(rolling_sums, "CHUNK", 21)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=120), rng.normal(size=120)
    if kind == "an outlier":
        x[60] = 1e40
    if kind == "constant":
        y[30:90] = 0.1
    if kind == "integers":
        x, y = rng.integers(0, 50, 120), rng.integers(0, 50, 120)
    if kind == "nulls":
        x, y = pa.array(x, mask=rng.random(120) < 0.2), pa.array(y, mask=rng.random(120) < 0.2)
    aggregate = sw.AGGREGATES[name]("y", "x")
    rolled = as_list(roll({"x": x, "y": y}, 7, aggregate))
    for i, answer in enumerate(rolled):
        partial = aggregate.identity
        rows = list(zip(_items(y), _items(x), strict=True))[max(i - 6, 0) : i + 1]
        for pair in rows:
            if None not in pair:
                partial = aggregate.combine(partial, aggregate.lift(*pair))
        if not (kind == "an outlier" and 60 <= i < 67):
            expected = aggregate.lower(partial)
            assert answer == (None if expected is None else pytest.approx(expected, rel=1e-8, abs=1e-9)), i


OF_INTEGERS = {
    "small": lambda rng: rng.integers(-5, 6, 200),
    "constant": lambda rng: np.full(200, 7),
    "steps": lambda rng: np.repeat(rng.integers(0, 10**6, 8), 25),
    "around 1e15": lambda rng: 10**15 + rng.integers(0, 1000, 200),
    "a line": lambda rng: np.arange(200) * 10**7,
    "an outlier": lambda rng: np.where(np.arange(200) == 90, 2**31, rng.integers(0, 9, 200)),
    "large": lambda rng: rng.integers(-(2**30), 2**30, 200),
    "beyond 64 bits": lambda rng: rng.integers(-(2**63), 2**63 - 1, 200, endpoint=True),
}


@matrix(data=list(OF_INTEGERS), k=[2, 3, 16, 60], piece=[16, 2**15])
def test_squares_of_integers_are_exact(monkeypatch, data, k, piece):
    monkeypatch.setattr(rolling_moments, "PIECE", piece)
    monkeypatch.setattr(rolling_sums, "CHUNK", piece // 2)
    values = OF_INTEGERS[data](np.random.default_rng(k))
    rolled = roll(values, k, sw.VarPop())
    for i, found in enumerate(rolled.tolist()):
        window = [Fraction(v) for v in values[max(i + 1 - k, 0) : i + 1].tolist()]
        mean = sum(window) / len(window)
        expected = float(sum((v - mean) ** 2 for v in window) / len(window))
        assert found == pytest.approx(expected, rel=1e-9, abs=0), i


@matrix(data=["small", "constant", "steps", "around 1e15", "beyond 64 bits"], k=[2, 16])
def test_integers_are_summed_up_as_they_are_where_sums_fit(monkeypatch, data, k):
    values = OF_INTEGERS[data](np.random.default_rng(k))
    in_floats = []

    def noted(*arrays):
        in_floats.append(arrays)
        yield None

    monkeypatch.setattr(rolling_moments, "moments_by_sums", lambda *_: [noted])
    moments = list(rolling_sums.moments_of_integers(k)(values))
    roll(values, k, sw.StdDev())
    assert (moments == [None]) == bool(in_floats) == (data == "beyond 64 bits")


def test_columns_of_pairs_are_given_by_name():
    with pytest.raises(
        QueryError, match=r"^`corr` rolls over 2 columns; got one: give `values` by name, \{'a': ..., 'b': ...\}$"
    ):
        roll([1.0, 2.0], 2, sw.Corr("a", "b"))
    with pytest.raises(QueryError, match=r"^`values` has no column 'b' for `corr`; it has \['a'\]$"):
        roll({"a": [1.0]}, 2, sw.Corr("a", "b"))
    with pytest.raises(DataError, match=r"^all columns must have the same number of values; got \{'a': 1, 'b': 2\}$"):
        roll({"a": [1.0], "b": [1.0, 2.0]}, 2, sw.Corr("a", "b"))


def _items(values):
    return values.to_pylist() if isinstance(values, pa.Array) else values.tolist()


def test_numbers_whose_powers_do_not_fit_are_rolled_one_by_one():
    values = np.array([1.0, 1e200, 3.0, 5.0, 1e80])
    assert rolling_moments.roll_moments(values, 2, 2, sw.Variance().bind(pa.float64()).lower) is None
    assert is_same(as_list(roll(values, 2, sw.Variance())), one_by_one(values.tolist(), 2, sw.Variance()))


@matrix(data=["noise", "a walk", "a line", "steps", "an outlier", "constant", "a large offset"], k=[2, 16, 1000, 5000])
def test_moments_by_sums_are_those_that_are_computed_exactly(k, data):
    rng = np.random.default_rng(7)
    noise = rng.normal(size=40_000)
    values = {
        "noise": noise,
        "a walk": np.cumsum(noise),
        "a line": np.arange(40_000.0),
        "steps": np.repeat(rng.integers(0, 5, 400), 100).astype(float),
        "an outlier": np.where(np.arange(40_000) == 20_000, 1e30, noise),
        "constant": np.full(40_000, 3.3),
        "a large offset": 1e12 + noise,
    }[data]
    exactly = rolling_moments._exactly(k, 4, values)[1:]
    second = exactly[0]
    for power, expected, scale in zip(rolled_powers(values, k), exactly, (second, second**1.5, second**2), strict=True):
        assert np.allclose(power, expected, rtol=1e-8, atol=0) or (abs(power - expected) <= 1e-8 * scale).all()
