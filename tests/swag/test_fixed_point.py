"""Fixed point: running sums that are exact but for what values are rounded by, and moments that are made of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.swag import roll, rolling_moments, rolling_sums
from slicewise.swag.fixed_point import RunningSums

NUMBERS = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(NUMBERS, min_size=2, max_size=60), st.integers(1, 59), st.integers(1, 7))
def test_a_running_sum_is_off_by_half_a_unit_for_each_value_at_most(values, k, chunk):
    k = min(k, len(values) - 1)
    exact = [Fraction(v) for v in values]
    sizes = [float(sum(map(abs, exact[i : i + k + 1]))) for i in range(len(values) - k)]
    running = RunningSums([max(map(abs, values))], [max(sizes)])
    running.add(np.array([values[:k]]))
    for low in range(0, len(values) - k, chunk):
        high = min(low + chunk, len(values) - k)
        sums = running.slide(np.array([[values[low + k : high + k], values[low:high]]]))[0]
        for i, got in enumerate(sums.tolist(), low + 1):
            want = sum(exact[i : i + k])
            allowed = Fraction(k) * Fraction(running.units[0]) / 2 + abs(want) / 2**52
            assert abs(Fraction(got) - want) <= allowed


def test_what_has_left_a_running_sum_leaves_nothing_behind():
    values = np.random.default_rng(3).integers(-(2**30), 2**30, 100_000) / 2**20
    running = RunningSums([2.0**10], [2.0**20])
    running.add(values[np.newaxis, :1000])
    sums = running.slide(np.stack([values[1000:], values[:-1000]])[np.newaxis])[0]
    totals = np.concatenate([[0], np.cumsum((values * 2**20).astype(np.int64))])
    assert (sums * 2**20 == totals[1001:] - totals[1:-1000]).all()


def ways_taken(monkeypatch, values, k, aggregate):
    """How often moments came in the first, the second and the exact way."""
    taken = []
    running, exactly = rolling_sums._running, rolling_moments._exactly

    def counted(terms, arrays, middles, *, finely):
        taken.append("finely" if finely else "coarsely")
        return running(terms, arrays, middles, finely=finely)

    monkeypatch.setattr(rolling_sums, "_running", counted)
    monkeypatch.setattr(rolling_moments, "_exactly", lambda *a: taken.append("exactly") or exactly(*a))
    return roll(values, k, aggregate), taken


@pytest.mark.parametrize(
    ("outlier", "ways"),
    [
        (0.0, ["exactly", "coarsely"]),
        (25.0, ["exactly", "coarsely", "finely"]),
        (1e9, ["exactly", "coarsely", "finely", "exactly"]),
    ],
)
def test_units_are_finer_beside_an_outlier_and_moments_exact_beside_a_huge_one(monkeypatch, outlier, ways):
    """The first way is of the windows that fill up, which are always exact."""
    k = 20_000
    values = np.random.default_rng(4).normal(size=60_000)
    values[30_000] += outlier
    rolled, taken = ways_taken(monkeypatch, values, k, sw.kurtosis())
    assert taken == ways
    for end in (k, 45_000, 60_000):
        apart = values[end - k : end] - values[end - k : end].mean()
        assert rolled[end - 1] == pytest.approx(k * (apart**4).sum() / (apart**2).sum() ** 2 - 3, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [1e-170, 1e-60, 1e60, 1e74])
def test_numbers_of_every_size_have_a_variance(size):
    values = np.random.default_rng(5).normal(size=9_000)
    scaled, plain = roll(values * size, 2_000, sw.stddev()), roll(values, 2_000, sw.stddev())
    if size > 1e-100:  # squares of what is smaller are no doubles
        assert np.ma.getdata(scaled)[1:] / size == pytest.approx(np.ma.getdata(plain)[1:], rel=1e-9)
    else:
        assert (np.ma.getdata(scaled)[1:] <= 1e-150).all()
