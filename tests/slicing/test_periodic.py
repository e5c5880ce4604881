"""Periodic windows against lists of all windows: numbers, bounds, what is open, what has ended."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.times import INFINITY
from slicewise.windows import Between, Landmark, ScheduledEdges, TableEdges
from tests.slicing.families import (
    FAR,
    NEAR,
    context_free,
    edges_of,
    mixes,
    open_starts_of,
    step_of,
    tables,
    windows_of,
)

TIMES = np.arange(-NEAR, NEAR)
ONE = np.array([0])
horizons = st.integers(-NEAR, NEAR)


def periodic_of(window: sw.windows.Window) -> PeriodicWindows:
    """One window, with all that tests ask about known."""
    periodic = PeriodicWindows([window])
    periodic.cover(-NEAR, NEAR)
    return periodic


def numbered(periodic: PeriodicWindows, low: int, high: int, family: int = 0) -> list[tuple[int, int]]:
    m = np.arange(low, high + 1)
    f = np.full(len(m), family)
    return list(zip(periodic.starts(f, m).tolist(), periodic.ends(f, m).tolist(), strict=True))


@given(context_free())
def test_a_time_is_in_the_windows_that_hold_it(window):
    periodic = periodic_of(window)
    every_window = windows_of(window)
    for t in TIMES.tolist():
        held = [(s, e) for s, e in every_window if s <= t < e]
        found = []
        for family in range(len(periodic)):
            f, at = np.array([family]), np.array([t])
            low, high = int(periodic.first(f, at)[0]), int(periodic.last(f, at)[0])
            if isinstance(window, Landmark) and held:
                assert high >= INFINITY  # its windows never stop
                high = low + len(held) - 1
            found += numbered(periodic, low, high, family)
        assert sorted(found) == sorted(held)
    assert periodic.owners(np.arange(len(periodic))).tolist() == [0] * len(periodic)


@given(context_free())
def test_the_last_window_that_ended(window):
    periodic = periodic_of(window)
    ended_at = [
        [
            int(periodic.ends(np.array([f]), np.array([m]))[0]) if m >= _least(periodic, f) else None
            for f in range(len(periodic))
            for m in periodic.ended_by(np.array([f]), np.array([t])).tolist()
        ]
        for t in TIMES.tolist()
    ]
    ends = sorted({e for _, e in windows_of(window)})
    for t, found in zip(TIMES.tolist(), ended_at, strict=True):
        ended = [e for e in ends if e <= t]
        latest = max((e for e in found if e is not None), default=None)
        if periodic.listed is not None and isinstance(window, ScheduledEdges):
            ended = [e for e in ended if e > -NEAR]  # what ended before is not known
            latest = latest if ended else None
        if ended or isinstance(window, TableEdges | ScheduledEdges):
            assert latest == (ended[-1] if ended else None)
        else:  # nothing that begins at or after the landmark, or the fixed window, has ended
            assert isinstance(window, Landmark | Between)
            assert latest is None


def _least(periodic: PeriodicWindows, family: int) -> int:
    """The number of the first window of a family, if there is one."""
    if periodic.listed is not None:
        return int(periodic.listed.low[family])
    return 1 if isinstance(periodic.windows[0], Landmark | Between) else -INFINITY


@given(mixes(landmarks=False), st.tuples(horizons, horizons), st.tuples(horizons, horizons))
def test_windows_that_end_between_two_watermarks(windows, watermarks, rows):
    """One by one where they are few, as arrays otherwise; and a step goes on where the one before has stopped."""
    (after, upto), (earliest, latest) = sorted(watermarks), sorted(rows)
    regular = [w for w in windows if w.listing is None]
    periodic = PeriodicWindows(regular)
    expected = [[w for w in windows_of(window) if after < w[1] <= upto] for window in regular]
    for known in (False, True):
        low, high = periodic.ended_in(after, upto)
        for family in range(len(regular)):
            found = numbered(periodic, low[family], high[family], family)
            assert sorted(w for w in found if w[0] < w[1]) == sorted(expected[family])
        if not known:
            periodic.ended_in(-NEAR, after)
    few = periodic.few_ended(after, upto, earliest, latest)
    if few is not None:
        found = sorted(zip(*(column.tolist() for column in few), strict=True))
        held = [(f, s, e) for f, some in enumerate(expected) for s, e in some if s <= latest and e > earliest]
        assert found == sorted(held)


@given(context_free())
def test_the_step_is_what_must_have_brought_rows(window):
    periodic = periodic_of(window)
    for family, t in itertools.product(range(len(periodic)), TIMES.tolist()):
        f, at = np.array([family]), np.array([t])
        first, last, fired = (int(found(f, at)[0]) for found in (periodic.first, periodic.last, periodic.last_fired))
        if first > last:
            assert fired == last
            continue
        # A landmark reports a row with the tick after it, and no more; every other window that holds it reports it.
        assert fired == (first if isinstance(window, Landmark | Between) else last)
        (bounds,) = numbered(periodic, first, first, family)
        assert periodic.steps(f, np.array([first])).tolist() == [step_of(window, *bounds)]


@given(tables())
def test_windows_of_a_chain_start_and_end_in_order_and_no_chain_is_spared(window):
    periodic = periodic_of(window)
    assert periodic.listed is not None
    for low, high in zip(periodic.listed.low.tolist(), periodic.listed.high.tolist(), strict=True):
        starts, ends = periodic.listed.start[low:high], periodic.listed.end[low:high]
        assert (np.diff(starts) >= 0).all()
        assert (np.diff(ends) >= 0).all()
    # As many chains as windows lie inside each other, like the boxes of a set.
    inside = _deepest(windows_of(window))
    assert len(periodic) == inside


def _deepest(windows: list[tuple[int, int]]) -> int:
    depth: dict[tuple[int, int], int] = {}
    for s, e in sorted(windows, key=lambda w: w[1] - w[0]):
        depth[s, e] = 1 + max((d for (a, b), d in depth.items() if s < a and b < e), default=0)
    return max(depth.values())


@given(mixes(), horizons)
def test_what_is_open_decides_what_is_kept(windows, horizon):
    periodic = PeriodicWindows(windows)
    periodic.cover(-NEAR, FAR // 2)
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
    if periodic.listed is not None:
        found |= set(periodic.listed.edges_between(-NEAR - 1, NEAR).tolist())
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
