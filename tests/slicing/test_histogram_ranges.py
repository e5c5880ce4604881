"""Ranges of histograms: read off ranks, counted or merged, they have one answer, in bounded memory and time."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.aggregates import histogram_ranges
from slicewise.aggregates.histogram_ranges import HistogramRanges
from slicewise.columns import Column
from slicewise.errors import OverflowInWindowError
from slicewise.same import is_same
from slicewise.slicing.answers.range_stores import LazyStore, WaveletStore
from slicewise.testing import value_of
from tests.matrices import matrix
from tests.profiles import fewer

INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()
NUMBERS = st.none() | st.integers(-4, 4)
FLOATS = st.none() | st.sampled_from([0.0, -0.0, 1.5, 2.5, -1.0, float("nan"), float("inf"), float("-inf")])
DECIMALS = st.none() | st.decimals(-3, 3, places=2)
CASES = [
    *((aggregate, INT, NUMBERS) for aggregate in (sw.median("v"), sw.percentile("v", [0.0, 0.3, 1.0], 3))),
    *((aggregate, INT, NUMBERS) for aggregate in (sw.sum_distinct("v"), sw.histogram("v"), sw.most_frequent("v", 2))),
    *((aggregate, FLOAT, FLOATS) for aggregate in (sw.median("v"), sw.count_distinct("v"), sw.mode("v"))),
    *((a, pa.decimal128(20, 2), DECIMALS) for a in (sw.percentile("v", 0.9), sw.sum_distinct("v"))),
    *((a, pa.decimal128(9, 2), DECIMALS) for a in (sw.median("v"), sw.sum_distinct("v"))),
    (sw.count_distinct("v"), TEXT, st.none() | st.sampled_from("abc")),
    (sw.sum_distinct("v"), FLOAT, st.none() | st.sampled_from([0.5, 1.5, -0.0])),
]


@matrix(case=range(len(CASES)), way=["ranked", "counted", "merged"])
@fewer(10)
@given(data=st.data())
def test_ranges_have_the_answer_of_their_rows(case, way, data):
    aggregate, type_, values = CASES[case]
    slices = data.draw(st.lists(st.lists(values, min_size=1, max_size=5), min_size=1, max_size=12))
    pairs = data.draw(st.lists(st.tuples(st.integers(0, 11), st.integers(1, 12)), min_size=1, max_size=10))
    pairs = [(min(a, b - 1, len(slices) - 1), min(max(a + 1, b), len(slices))) for a, b in pairs]
    pairs = [(a, max(b, a + 1)) for a, b in pairs]
    if data.draw(st.booleans()):
        pairs.sort()
    rows = [v for some in slices for v in some]
    starts = np.cumsum([0, *map(len, slices)])
    monoid, column = aggregate.bind(type_), Column.of(rows, type_)
    parts = monoid.lift_fold([column], np.arange(len(rows)), starts[:-1])
    low, high = np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])
    found = [{"v": v} for v in column.to_pylist()]
    want = [value_of(aggregate, found[starts[a] : starts[b]], range(starts[b] - starts[a])) for a, b in pairs]
    with (
        mock.patch.object(histogram_ranges, "SPAN", 3),
        mock.patch.multiple(histogram_ranges, MERGED=4, NARROW=3, COUNTS=8, SHARED=0 if way == "counted" else 10**9),
        mock.patch.object(HistogramRanges, "pays", return_value=way == "ranked"),
    ):
        for store in (WaveletStore, LazyStore):
            (ranges,) = store(monoid, parts).query(low, high)
            assert len(ranges) == len(pairs)
            assert is_same(monoid.lower((ranges,)).to_pylist(), want), store
            assert is_same(monoid.lower((ranges[::2],)).to_pylist(), want[::2]), store


def test_many_windows_that_overlap_are_ranked_and_few_or_short_ones_merged():
    monoid = sw.median("v").bind(INT)
    values = np.random.default_rng(0).integers(0, 10**6, 60_000)
    (runs,) = monoid.lift_fold([Column.of(values)], np.arange(60_000), np.arange(0, 60_000, 20))

    def pays(length: int, every: int = 1) -> bool:
        low = np.arange(0, 3000 - length, every)
        return HistogramRanges(runs, low, low + length).pays(16, 2)

    assert pays(60)
    assert pays(1000)
    assert not pays(1)
    assert not pays(4)
    assert not pays(60, every=60)
    assert not HistogramRanges(runs, np.array([0]), np.array([3000])).pays(16, 2)


def test_ranges_that_share_their_values_are_counted_and_others_merged():
    (runs,) = sw.mode("v").bind(INT).lift_fold([Column.of(np.arange(100) % 7)], np.arange(100), np.arange(0, 100, 5))
    low = np.arange(16)
    assert HistogramRanges(runs, low, low + 5).are_shared
    assert not HistogramRanges(runs, low, low + 2).are_shared
    assert not HistogramRanges(runs, low[::4], low[::4] + 4).are_shared


def test_a_sum_that_leaves_64_bits_is_told_in_a_window_of_ranked_slices_too():
    large = 2**62
    workload = sw.Workload("t").query("q", sw.sliding(20, every=1), s=sw.sum_distinct("v"))
    op = workload.operator()
    message = r"^query 'q', window \[-18, 2\): `sum_distinct` of column 'v' does not fit in a 64-bit integer: "
    op.process_batch({"t": list(range(30)), "v": [large + i for i in range(30)]})
    with pytest.raises(OverflowInWindowError, match=message + "a window gives 9223372036854775809; cast the column to"):
        op.close()


def test_the_plan_says_when_windows_are_read_off_ranks():
    wide, short = sw.sliding("1 minute", every="1 second"), sw.tumbling("1 minute")
    by_ranks = sw.Workload("t").query("q", wide, m=sw.median("v"), d=sw.count_distinct("v"), o=sw.mode("v")).explain()
    assert by_ranks.count("wavelet") == 4  # the choice and the reason, of two
    assert "wavelet" not in sw.Workload("t").query("q", short, m=sw.median("v")).explain()
