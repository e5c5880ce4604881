"""Time series: what goes from each row to the next, by examples. Random ones are compared with the oracle elsewhere."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.aggregates.fading import EwmaMonoid
from tests.aggregates.over import one, over

D, NAN, INF = decimal.Decimal, math.nan, math.inf


def values_of(window, aggregate, times, values, **how):
    op = sw.Workload("t", **how).query("q", window, x=aggregate).operator()
    op.process_batch({"t": times, "v": values})
    return {(r.start, r.end): r.values["x"] for r in op.close()}


# Until when the last value holds

HELD = sw.time_weighted_avg("v")
#    0    2         6    8    10
#    10---|40-------|----|----|


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (sw.tumbling(10), {(0, 10): (2 * 10 + 6 * 40 + 2 * 70) / 10}),
        (sw.sliding(10, every=5), {(-5, 5): (2 * 10 + 3 * 40) / 5, (0, 10): 40.0, (5, 15): 70.0}),
        (sw.cumulative(20, every=10), {(0, 10): 40.0, (0, 20): (2 * 10 + 6 * 40 + 12 * 70) / 20}),
        (sw.landmark(every=10), {(0, 10): 40.0}),
        (sw.between(0, 100), {(0, 100): (2 * 10 + 6 * 40 + 92 * 70) / 100}),
        # Only rows tell their end: the last row is it.
        (sw.session(7), {(0, 15): (2 * 10 + 6 * 40) / 8}),
        (sw.tumbling(sw.rows(3)), {(0, 3): (2 * 10 + 6 * 40) / 8}),
        (sw.tumbling(sw.rows(1)), {(0, 1): None, (1, 2): None, (2, 3): None}),
        (sw.punctuated("v = 40"), {(0, 2): None, (2, None): 40.0}),
        (sw.frames("v < 50"), {(0, 8): 10.0}),
    ],
    ids=repr,
)
def test_the_last_value_holds_until_the_end_that_is_known_without_rows(window, expected):
    found = values_of(window, HELD, [0, 2, 8], [10, 40, 70])
    assert found == pytest.approx(expected)


def test_null_rows_are_left_out_and_of_equal_times_the_last_counts():
    assert values_of(sw.tumbling(10), HELD, [0, 4, 4, 6], [10, 99, 20, None]) == {(0, 10): (4 * 10 + 6 * 20) / 10}
    assert values_of(sw.tumbling(10), HELD, [3, 5], [INF, 4.0])[0, 10] == INF
    assert values_of(sw.tumbling(10), HELD, [3, 3], [INF, 4.0])[0, 10] == 4.0


def test_a_late_row_divides_the_time_of_the_one_before():
    op = sw.Workload("t", lateness=100).query("q", sw.tumbling(10), x=HELD).operator()
    op.process_batch({"t": [0, 8], "v": [10, 70]})
    assert [r.values["x"] for r in op.advance(12)] == [(8 * 10 + 2 * 70) / 10]
    op.process(2, {"v": 40})
    assert [(r.change, r.values["x"]) for r in op.advance(13)] == [("update", (2 * 10 + 6 * 40 + 2 * 70) / 10)]


# Counters


@pytest.mark.parametrize(
    ("values", "type_", "increase"),
    [
        ([10, 25, 25, 31], pa.int64(), 21),
        ([10, 25, 5, 7], pa.int32(), 15 + 5 + 2),
        ([10, None, 25, None], pa.int64(), 15),
        ([7], pa.int64(), 0),
        ([None], pa.int64(), None),
        ([-(2**63), 2**63 - 1, -(2**63), -1], pa.int64(), 2**64 - 1 - 2**63 + 2**63 - 1),
        ([1.5, 4.0, 0.5], pa.float64(), 3.0),
        ([1.0, NAN, 2.0], pa.float64(), NAN),
        ([D("1.50"), D("4.00"), D("0.25")], pa.decimal128(5, 2), D("2.75")),
    ],
)
def test_increase(values, type_, increase):
    if isinstance(increase, int) and increase > 2**63 - 1:
        message = (
            f"`increase` of column 'v' does not fit in a 64-bit integer: a window gives {increase}; cast the column"
        )
        with pytest.raises(sw.OverflowInWindowError, match=re.escape(message)):
            one(sw.increase("v"), values, type_)
        return
    found = one(sw.increase("v"), values, type_)
    assert found == increase or (found != found and increase != increase)
    assert type(found) is type(increase)


def test_a_rate_is_per_second_or_per_unit_of_integer_time():
    (rate,) = over(sw.rate("v"), [10, 25, 5], types=[pa.int64()], times=[100, 102, 110])
    assert rate == 20 / 10
    assert over(sw.rate("v"), [10, 25], types=[pa.decimal128(5, 1)], times=[3, 3]) == [None]
    noon = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
    op = sw.Workload("ts").query("q", sw.tumbling("1 hour"), x=sw.rate("v")).operator()
    op.process_batch({"ts": [noon, noon + dt.timedelta(seconds=4)], "v": [D("1.5"), D("3.5")]})
    assert [r.values["x"] for r in op.close()] == [0.5]


def test_a_rate_is_a_double_also_where_its_increase_leaves_64_bits():
    most = 2**63 - 1
    assert one(sw.rate("v"), [-most, most], pa.int64()) == 2.0**64
    assert one(sw.rate("v"), [0, most, 0, most, 0], pa.int64()) == 2.0**62


# Fading


def test_a_row_counts_half_per_half_life():
    found = values_of(sw.tumbling(100), sw.ewma("v", half_life=10), [0, 10, 30], [8.0, 4.0, 2.0])
    assert found == {(0, 100): (8 / 8 + 4 / 4 + 2) / (1 / 8 + 1 / 4 + 1)}
    assert over(sw.ewma("v", half_life=1), [5.0, 3.0], types=[pa.float64()], times=[0, 10**15]) == [3.0]
    assert over(sw.ewma("v", half_life=1), [INF, 3.0], types=[pa.float64()], times=[0, 10**15]) == [INF]


NOTHING = (int(EwmaMonoid.identity[0]), 0.0, 0.0)
# Partials as of their last row: when it came, weighted values, and weights.
PAIRS = {
    "in order": [((0, 8.0, 1.0), (10, 4.0, 1.0), (10, 8.0, 1.5))],
    "the other way round": [((10, 4.0, 1.0), (0, 8.0, 1.0), (10, 8.0, 1.5))],
    "at the same time": [((10, 4.0, 1.0), (10, 8.0, 1.0), (10, 12.0, 2.0))],
    "nothing before": [(NOTHING, (10, 4.0, 1.0), (10, 4.0, 1.0))],
    "nothing behind": [((10, 4.0, 1.0), NOTHING, (10, 4.0, 1.0))],
    "nothing at all": [(NOTHING, NOTHING, NOTHING)],
    "an infinity of long ago": [((0, INF, 1.0), (10**15, 4.0, 1.0), (10**15, INF, 1.0))],
}


@pytest.mark.parametrize("case", [*PAIRS, None])
def test_old_partials_fade_whichever_comes_first(case):
    monoid = sw.ewma("v", half_life=10).bind(pa.float64())
    pairs = PAIRS[case] if case else [pair for some in PAIRS.values() for pair in some]
    first, second, expected = (tuple(map(np.array, zip(*some, strict=True))) for some in zip(*pairs, strict=True))
    for found, part in zip(monoid.combine(first, second), expected, strict=True):
        assert found.tolist() == part.tolist()


def test_a_half_life_is_counted_as_windows_are():
    with pytest.raises(sw.QueryError) as caught:
        sw.Workload("t").query("q", sw.tumbling(10), x=sw.ewma("v", half_life="1 minute"))
    assert str(caught.value) == (
        "one workload has one notion of time; got durations in `half_life` and plain integers in query 'q'; use "
        "durations for a timestamp column, integers for an integer one"
    )
    with pytest.raises(sw.QueryError, match="`half_life` must be a whole number of seconds"):
        sw.Workload("t", unit="seconds").query("q", sw.tumbling("1 minute"), x=sw.ewma("v", half_life="1500 ms"))
    op = sw.Workload("t").query("q", sw.tumbling(sw.rows(2)), x=sw.ewma("v", half_life="1 minute")).operator()
    with pytest.raises(sw.DataError, match="unit"):
        op.process_batch({"t": [1], "v": [1]})


# Rises


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5, 3, 4, 8, 7], (10, 30, 3)),
        ([1, 2, 0, 1], (0, 10, 2)),  # the first of equal length
        ([3, 3, 3], (0, 0, 1)),
        ([1, None, 2, None, 3], (0, 40, 3)),
        ([1.0, NAN, NAN, INF], (0, 10, 2)),
        (["b", "a", "ab", "é"], (10, 30, 3)),
        ([D("1.0"), D("1.00"), D("2")], (10, 20, 2)),
        ([None, None], None),
    ],
)
def test_longest_rise(values, expected):
    type_ = pa.decimal128(5, 2) if isinstance(values[0], D) else pa.array(values).type
    type_ = pa.int64() if pa.types.is_null(type_) else type_
    (found,) = over(sw.longest_rise("v"), values, types=[type_], times=[10 * i for i in range(len(values))])
    assert found == (None if expected is None else dict(zip(("start", "end", "length"), expected, strict=True)))


def test_candles_go_by_time_and_skip_nulls():
    found = values_of(sw.tumbling(10), sw.ohlc("v"), [7, 1, 9, 4, 0], [5, 2, None, 9, None])
    assert found == {(0, 10): {"open": 2, "high": 9, "low": 2, "close": 5}}


def test_series_of_some_rows_and_by_category():
    op = sw.Workload("t").query(
        "q",
        sw.tumbling(10),
        some=sw.increase("v").where("w = 'a'"),
        held=sw.time_weighted_avg("v").by("w"),
        recent=sw.ewma("v", half_life=2).where("w = 'b'"),
    )
    op = op.operator()
    op.process_batch({"t": [0, 2, 4, 6], "v": [10, 1, 25, 5], "w": ["a", "b", "a", "b"]})
    (result,) = op.close()
    assert result.values["some"] == 15
    assert result.values["held"] == {"a": (4 * 10 + 6 * 25) / 10, "b": (4 * 1 + 4 * 5) / 8}
    assert result.values["recent"] == (1 * 0.25 + 5) / 1.25
