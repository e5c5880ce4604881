"""Products: what is not 0 apart from zeros, mantissa apart from exponent, so that an inverse takes out what came in."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.columns import Column
from slicewise.same import is_same
from slicewise.swag import SlickDeque

numbers = st.floats(-1e6, 1e6).map(lambda x: 0.0 if abs(x) < 1e-6 else x)


def folded(monoid, values, starts=(0,)):
    return monoid.lift_fold([Column.of(values, pa.float64())], np.arange(len(values)), np.array(starts))


def product_of(values, starts=(0,)):
    monoid = sw.product("v").bind(pa.float64())
    return monoid.lower(folded(monoid, values, starts)).to_pylist()


@pytest.mark.parametrize(
    ("values", "answer"),
    [([1e200, 1e200, 1e-300], 1e100), ([1e-200, 1e-200, 1e300], 1e-100), ([-1e308, 10.0, 0.01], -1e307)],
)
def test_a_product_may_be_too_large_or_too_small_on_the_way(values, answer):
    assert product_of(values) == [pytest.approx(answer)]


def test_a_window_whose_product_does_not_fit_is_infinite_or_nothing():
    assert product_of([1e200] * 2) == [math.inf]
    assert product_of([-1e200, 1e200]) == [-math.inf]
    assert product_of([1e-200] * 2) == [0.0]


def test_long_segments_do_not_underflow():
    values = [0.5] * 3000 + [2.0] * 3000 + [3.0]
    assert product_of(values, (0, 6000)) == [1.0, 3.0]


def test_zeros_infinities_and_nothing():
    assert is_same(product_of([0.0, math.inf]), [math.nan])
    assert product_of([0.0, 5.0]) == [0.0]
    assert product_of([None, None]) == [None]


@given(st.lists(numbers, min_size=1, max_size=12), st.lists(numbers, min_size=1, max_size=12))
def test_the_inverse_takes_out_zeros_and_others(stay, leave):
    monoid, product = sw.product("v").bind(pa.float64()), sw.product()
    expected = pytest.approx(product_of(stay), rel=1e-9)
    both, gone = (folded(monoid, values) for values in (stay + leave, leave))
    assert monoid.lower(monoid.invert(both, gone)).to_pylist() == expected
    both, gone = (reduce(product.combine, map(product.lift, values)) for values in (stay + leave, leave))
    assert [product.lower(product.invert(both, gone))] == expected
    assert product.lower(product.invert(gone, gone)) is None


def test_slickdeque_takes_a_product():
    window = SlickDeque(sw.product())
    found = []
    for value in [2.0, 0.0, 3.0, 4.0, 5.0]:
        window.insert(value)
        if len(window) > 2:
            window.evict()
        found.append(window.query())
    assert found == [2.0, 0.0, 0.0, 12.0, 20.0]
