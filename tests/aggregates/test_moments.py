"""Moments keep their digits: around large means, over merged slices, and whether nothing varies at all."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.aggregates.base import take_parts
from slicewise.columns import Column
from slicewise.testing import Oracle, value_of
from tests.aggregates.over import PAIRS, make

MOMENTS = [*PAIRS, "skewness", "kurtosis", "variance"]
#: What digits are measured against: deviations of about 1000 from means of about 1e9.
SCALES = {
    **dict.fromkeys(("covar_pop", "covar_samp", "variance"), 1000.0**2),
    **dict.fromkeys(("regr_avgx", "regr_avgy", "regr_intercept", "weighted_avg"), 1e9),
    **dict.fromkeys(("corr", "regr_r2", "regr_slope", "skewness", "kurtosis"), 1.0),
}


def parts_of(monoid, columns, cut):
    """One partial, merged from slices of so many rows."""
    n = len(columns[0])
    slices = monoid.lift_fold(columns, np.arange(n), np.arange(0, n, cut))
    while len(slices[0]) > 1:
        half = len(slices[0]) // 2
        rest = take_parts(slices, slice(2 * half, None))
        slices = monoid.combine(take_parts(slices, slice(0, 2 * half, 2)), take_parts(slices, slice(1, 2 * half, 2)))
        slices = tuple(np.concatenate([a, b]) for a, b in zip(slices, rest, strict=True))
    return slices


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("n", [2, 3, 100])
def test_values_around_a_thousand_million_have_nine_digits(name, n):
    rng = np.random.default_rng(n)
    y = 1e9 + rng.uniform(-1000, 1000, n)
    x = -1e9 + 0.5 * (y - 1e9) + rng.uniform(-1000, 1000, n)
    aggregate = make(name)
    given = [y, x][: len(aggregate.columns)]
    exact = value_of(aggregate, [{"v": v, "w": w} for v, w in zip(y.tolist(), x.tolist(), strict=True)], range(n))
    monoid = aggregate.bind(*[pa.float64()] * len(given))
    scale = SCALES.get(name, 1000.0**2 * n)
    for cut in (1, 2, 7, n):
        (found,) = monoid.lower(parts_of(monoid, [Column.of(v) for v in given], cut)).to_pylist()
        assert found == exact or abs(found - exact) <= 1e-9 * scale, cut


@pytest.mark.parametrize("name", ["corr", "regr_slope", "regr_intercept", "regr_r2", "skewness", "kurtosis"])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e9 + 0.1, -7.7e-30])
def test_what_does_not_vary_is_found_however_it_is_cut(name, value):
    """A mean of equal values that is off by the last bit would make a deviation of it, and an answer of noise."""
    aggregate, n = make(name), 90
    steady, other = Column.of(np.full(n, value)), Column.of(np.arange(float(n)))
    columns = [other, steady] if len(aggregate.columns) == 2 else [steady]
    monoid = aggregate.bind(*[pa.float64()] * len(columns))
    for cut in (1, 3, 7, 10, n):
        assert monoid.lower(parts_of(monoid, columns, cut)).to_pylist() == [None], cut
    if name == "regr_r2":
        assert monoid.lower(parts_of(monoid, columns[::-1], 7)).to_pylist() == [1.0]


@pytest.mark.parametrize("name", ["corr", "regr_slope", "skewness", "kurtosis", "weighted_avg"])
def test_what_is_taken_out_leaves_the_rest(name):
    aggregate = make(name)
    columns = [Column.of([1.0, 4.0, 2.0, 8.0, 5.0]), Column.of([2.0, 7.0, 1.0, 8.0, 2.0])][: len(aggregate.columns)]
    monoid = aggregate.bind(*[pa.float64()] * len(columns))
    whole, rest = (monoid.lift_fold(columns, np.arange(5), np.array([start])) for start in (0, 2))
    some = monoid.lift_fold([c.take(slice(0, 2)) for c in columns], np.arange(2), np.array([0]))
    assert monoid.lower(monoid.invert(whole, some)).to_pylist() == pytest.approx(monoid.lower(rest).to_pylist())


def test_a_nan_decides_a_correlation_also_where_the_other_column_does_not_vary():
    workload = sw.Workload("t").query("q", sw.tumbling(10), c=sw.corr("y", "x"))
    op, oracle = workload.operator(), Oracle(workload)
    rows = [(1, math.nan, 5.0), (2, 3.0, 5.0)]
    op.process_batch(
        {name: list(column) for name, column in zip(("t", "y", "x"), zip(*rows, strict=True), strict=True)}
    )
    for t, y, x in rows:
        oracle.process(t, {"y": y, "x": x})
    for results in (op.close(), oracle.close()):
        assert [math.isnan(r.values["c"]) for r in results] == [True]
