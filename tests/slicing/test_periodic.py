"""Periodic windows against lists of all windows: numbers, bounds, what is open, what has ended."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.times import INFINITY
from slicewise.windows import Between, Landmark
from tests.slicing.families import FAR, NEAR, context_free, edges_of, mixes, open_starts_of, step_of, windows_of

TIMES = np.arange(-NEAR, NEAR)
ONE = np.array([0])
horizons = st.integers(-NEAR, NEAR)


def numbered(periodic: PeriodicWindows, low: int, high: int) -> list[tuple[int, int]]:
    m = np.arange(low, high + 1)
    f = np.zeros(len(m), np.int64)
    return list(zip(periodic.starts(f, m).tolist(), periodic.ends(f, m).tolist(), strict=True))


@given(context_free())
def test_a_time_is_in_the_windows_that_hold_it(window):
    periodic = PeriodicWindows([window])
    first, last = periodic.first(ONE, TIMES), periodic.last(ONE, TIMES)
    every_window = windows_of(window)
    for t, low, high in zip(TIMES.tolist(), first.tolist(), last.tolist(), strict=True):
        held = [(s, e) for s, e in every_window if s <= t < e]
        if isinstance(window, Landmark) and held:
            assert high >= INFINITY  # its windows never stop
            high = low + len(held) - 1
        assert numbered(periodic, low, high) == held


@given(context_free())
def test_the_last_window_that_ended(window):
    periodic = PeriodicWindows([window])
    found = periodic.ended_by(ONE, TIMES)
    ends = sorted({e for _, e in windows_of(window)})
    for t, m in zip(TIMES.tolist(), found.tolist(), strict=True):
        ended = [e for e in ends if e <= t]
        if ended:
            assert periodic.ends(ONE, np.array([m])).tolist() == [ended[-1]]
        else:  # nothing that begins at or after the landmark, or the fixed window, has ended
            assert isinstance(window, Landmark | Between)
            assert m <= 0


@given(context_free())
def test_the_step_is_what_must_have_brought_rows(window):
    periodic = PeriodicWindows([window])
    for t in TIMES.tolist():
        at = np.array([t])
        first, last, fired = (int(f(ONE, at)[0]) for f in (periodic.first, periodic.last, periodic.last_fired))
        if first > last:
            assert fired == last
            continue
        # A landmark reports a row with the tick after it, and no more; every other window that holds it reports it.
        assert fired == (first if isinstance(window, Landmark | Between) else last)
        (bounds,) = numbered(periodic, first, first)
        assert periodic.steps(ONE, np.array([first])).tolist() == [step_of(window, *bounds)]


@given(mixes(), horizons)
def test_what_is_open_decides_what_is_kept(windows, horizon):
    periodic = PeriodicWindows(windows)
    every_window = [w for window in windows for w in windows_of(window)]
    starts = [s for s, e in every_window if e > horizon]
    assert periodic.oldest_open_start(horizon) == min(starts, default=INFINITY)
    assert periodic.open_starts(horizon).tolist() == open_starts_of(windows, horizon)


@given(mixes(), horizons)
def test_open_mask_says_who_is_late(windows, horizon):
    inside, still_open = PeriodicWindows(windows).open_mask(TIMES, horizon)
    every_window = [w for window in windows for w in windows_of(window) if w[1] > -NEAR and w[0] < NEAR]
    for t, is_inside, is_open in zip(TIMES.tolist(), inside.tolist(), still_open.tolist(), strict=True):
        ends = [e for s, e in every_window if s <= t < e]
        assert is_inside == bool(ends)
        assert is_open == any(e > horizon for e in ends)


@given(mixes())
def test_progressions_and_points_are_all_edges(windows):
    periodic = PeriodicWindows(windows)
    found = set(periodic.points().tolist())
    for p in periodic.progressions():
        assert 0 <= p.phase < p.step
        found |= set(range(p.phase - FAR * p.step, FAR * p.step, p.step))
    # A landmark's ticks run on one grid, which does not know where the landmark is.
    earliest = max((w.since for w in windows if isinstance(w, Landmark)), default=-NEAR)
    near = range(max(earliest, -NEAR), NEAR)
    assert [t for t in near if t in found] == [t for t in edges_of(windows) if t in near]


@given(mixes())
def test_no_progression_lies_on_another(windows):
    found = PeriodicWindows(windows).progressions()
    for a in found:
        for b in found:
            assert a == b or a.step % b.step or a.phase % b.step != b.phase


def test_no_families_at_all():
    periodic = PeriodicWindows([])
    assert len(periodic) == 0
    assert periodic.oldest_open_start(5) == INFINITY
    assert periodic.open_starts(5).tolist() == []
    assert periodic.points().tolist() == []
    assert periodic.progressions() == []
    assert [mask.tolist() for mask in periodic.open_mask(np.array([1, 2]), 0)] == [[False, False], [False, False]]


@pytest.mark.parametrize("t", [-(2**60), 2**60])
@pytest.mark.parametrize(
    "window",
    [sw.tumbling(1), sw.sliding(10, every=3), sw.cumulative(10, every=5), sw.landmark(every=7), sw.between(0, 5)],
    ids=repr,
)
def test_the_far_ends_of_time_overflow_nothing(window, t):
    periodic, at = PeriodicWindows([window]), np.array([t])
    first, last = periodic.first(ONE, at), np.minimum(periodic.last(ONE, at), periodic.first(ONE, at))
    if (first <= last).all():
        assert (periodic.starts(ONE, first) <= t).all()
        assert (periodic.ends(ONE, first) > t).all()
    inside, still_open = periodic.open_mask(at, t - 1)
    assert inside.tolist() == still_open.tolist() == (first <= last).tolist()
