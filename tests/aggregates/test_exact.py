"""Exact integer sums against Python's, with values around the edge of 64 bits."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slicewise.aggregates import exact

edge = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3) | st.sampled_from([2**63 - 1, -(2**63), 2**62, -(2**62)])
beyond = edge | st.integers(-(2**66), 2**66)


def array(values):
    return exact.shrink(np.array(values, object))


@given(st.lists(st.tuples(beyond, beyond), max_size=5))
def test_add_and_subtract(pairs):
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    assert exact.add(array(a), array(b)).tolist() == [x + y for x, y in pairs]
    assert exact.subtract(array(a), array(b)).tolist() == [x - y for x, y in pairs]


@given(st.lists(st.lists(edge, min_size=1, max_size=6), max_size=5))
def test_fold(segments):
    starts = np.cumsum([0, *map(len, segments)])[:-1]
    values = np.array([v for s in segments for v in s], np.int64)
    want = [sum(s) for s in segments]
    assert exact.fold(values, starts).tolist() == want
    assert exact.fold(values, starts, 2**63).tolist() == want
    assert exact.fold(values.astype(object), starts).tolist() == want


@given(st.lists(edge, max_size=12))
def test_scan(values):
    want = np.cumsum(np.array(values, object)).tolist()
    assert exact.scan(np.array(values, np.int64)).tolist() == want
    assert exact.scan(np.array(values, object)).tolist() == want


@given(st.lists(edge, min_size=1, max_size=12))
def test_int64_is_kept_wherever_it_fits(values):
    out = exact.scan(np.array(values, np.int64))
    fits = all(-(2**63) <= v < 2**63 for v in out.tolist())
    assert (out.dtype == np.int64) == fits
