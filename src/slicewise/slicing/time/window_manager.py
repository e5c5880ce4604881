"""The window manager of the paper: which windows are to be reported, over which slices.

Asked once per watermark step with the slices as they stand. Two questions for context-free windows (which windows ended
between two watermarks, and which of those already reported hold fresh rows), one for sessions (which runs of slices are
sessions now).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from slicewise.aggregates.base import Parts
from slicewise.kernels import KeyTimeIndex, enumerate_ranges, running_last, segment_lengths, segment_starts
from slicewise.plan.plan import Plan
from slicewise.records import record
from slicewise.results import INSERT, UPDATE
from slicewise.slicing.answers.answers import StoredPartials
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.steps import Step
from slicewise.slicing.time.empty_windows import EmptyWindows
from slicewise.slicing.time.periodic import ALL, PeriodicWindows
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.times import INFINITY

__all__ = [
    "Sessions",
    "SortedSlices",
    "WindowSlices",
    "corrected_windows",
    "due_windows",
    "ended_windows",
    "entries_of",
    "find_sessions",
]

#: Looking up one window for one key costs about as much as passing over this many slices.
LOOKUP_COST = 4
#: Going over all slices for one family costs about as much as passing over this many slices more.
FAMILY_COST = 2000
NO_WINDOWS = WindowRanges.none()


class WindowSlices(Protocol):
    """Slices in which windows are looked up, and that answer ranges of them."""

    @property
    def span(self) -> tuple[int, int]:
        """Two event times with all rows between them."""

    @property
    def whole(self) -> Slices | None:
        """All slices, sorted, if they are at hand."""

    def __len__(self) -> int: ...

    def keys(self) -> np.ndarray:
        """The different keys, ascending."""

    def unreported_before(self, time: int) -> Slices:
        """The slices that hold unreported rows and begin before a time, sorted."""

    def locate(self, key: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The place of the first slice of each key at or after the time."""

    def holds_reported(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Whether ranges of places hold rows that were reported before."""

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one of the plan's components over ranges of places."""

    def times(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The event times of the first and the last row of ranges."""


class SortedSlices(StoredPartials):
    """Slices that were sorted and merged for one step."""

    def __init__(self, plan: Plan, slices: Slices, *, one_key: bool) -> None:
        super().__init__(plan, slices.parts)
        self.whole = slices
        self._one_key = one_key
        self._index = KeyTimeIndex(slices.key, slices.first, one_key=one_key)
        self.locate = self._index.locate

    def __len__(self) -> int:
        return len(self.whole)

    @property
    def span(self) -> tuple[int, int]:
        first = self.whole.first
        return int(first[0] if self._one_key else first.min()), int(np.maximum.reduce(self.whole.last))

    def keys(self) -> np.ndarray:
        key = self.whole.key
        if self._one_key:
            return key[:1]
        different: np.ndarray = key[segment_starts(key[1:] != key[:-1])]
        return different

    def unreported_before(self, time: int) -> Slices:
        slices = self.whole
        return slices.take(np.flatnonzero((slices.unreported > 0) & (slices.first < time)))

    def holds_reported(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        before = np.concatenate([[0], np.cumsum(self.whole.rows - self.whole.unreported)])
        held: np.ndarray = before[high] > before[low]
        return held


def ended_windows(periodic: PeriodicWindows, slices: WindowSlices, after: int, upto: int) -> WindowRanges:
    """Windows that hold rows and whose end lies in ``(after, upto]``."""
    if not periodic.may_end(after, upto) or not len(slices):
        return NO_WINDOWS
    if periodic.listed is not None:
        _cover(periodic, slices, after, upto)
    earliest, latest = slices.span
    keys, whole = slices.keys(), slices.whole
    few = periodic.few_ended(after, upto, earliest, latest) if len(keys) == 1 else None
    if few is not None:
        family, start, end = few
        if not len(family):
            periodic.note_no_end(after)
            return NO_WINDOWS
        return _holding_rows(slices, family, keys.repeat(len(family)), start, end)[0]
    low, high = periodic.ended_in(after, upto)
    if earliest > after:
        low = np.maximum(low, periodic.first(ALL, earliest))
    if latest < upto:
        high = np.minimum(high, periodic.last_fired(ALL, latest))
    some = list(periodic.families_of(keys)) if periodic.listed is not None else []
    worth = len(periodic) * (len(slices) + FAMILY_COST) // LOOKUP_COST
    if (
        whole is None
        or ((upto - after) // periodic.shortest + 1) * len(periodic) * len(keys) <= worth  # no more than these end
        or _lookups(periodic, low, high, keys, some) <= worth
    ):
        family, key, m = _enumerated(periodic, low, high, keys, some)
    else:
        family, key, m = _touched(periodic, whole, low, high)
    if not len(family):
        periodic.note_no_end(after)
        return NO_WINDOWS
    windows, _ = _look_up(periodic, slices, family, key, m)
    return windows


def _cover(periodic: PeriodicWindows, slices: WindowSlices, after: int, upto: int) -> None:
    """Know the listed windows that hold rows and end in ``(after, upto]``, and most often some way ahead."""
    assert periodic.listed is not None
    earliest, latest = slices.span
    # Windows that ended before are not looked for, and one that is open since then holds the latest row.
    low = min(max(earliest, after), latest)
    if slices.whole is not None:
        periodic.cover(low, latest, np.minimum(np.maximum(slices.whole.first, after), latest))
    elif periodic.listed.knows(low, latest) or not periodic.listed.is_far(low, latest):
        periodic.cover(low, latest)
    else:
        periodic.cover(low, max(low, min(latest, upto)))


def _lookups(
    periodic: PeriodicWindows, low: np.ndarray, high: np.ndarray, keys: np.ndarray, some: Sequence[np.ndarray]
) -> int:
    """How many windows of all keys have numbers in ``[low, high]``, with rows or without."""
    wanted = np.maximum(high - low + 1, 0)
    return int(wanted[periodic.common].sum()) * len(keys) + sum(int(wanted[f[f >= 0]].sum()) for f in some)


def _enumerated(
    periodic: PeriodicWindows, low: np.ndarray, high: np.ndarray, keys: np.ndarray, some: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every (family, key, window) with numbers in ``[low, high]``; ``some`` are families that not all keys have."""
    if some:
        common = periodic.common
        family, m = enumerate_ranges(low[common], high[common])
        family = common[family]
    else:
        family, m = enumerate_ranges(low, high)
    if len(keys) > 1:
        key = np.tile(keys, len(family))
        family, m = np.repeat(family, len(keys)), np.repeat(m, len(keys))
    else:
        key = keys.repeat(len(family))
    if not some:
        return family, key, m
    columns = [(family, key, m)]
    for of_keys in some:
        f, k = of_keys[of_keys >= 0], keys[of_keys >= 0]
        which, numbers = enumerate_ranges(low[f], high[f])
        columns.append((f[which], k[which], numbers))
    family, key, m = (np.concatenate(column) for column in zip(*columns, strict=True))
    return family, key, m


def corrected_windows(
    periodic: PeriodicWindows, slices: WindowSlices, after: int, upto: int
) -> tuple[WindowRanges, np.ndarray]:
    """Windows whose end lies in ``(after, upto]`` and that hold unreported rows, and which were reported before."""
    fresh = slices.unreported_before(upto)
    if not len(fresh) or not len(periodic) or upto <= after:
        return NO_WINDOWS, np.empty(0, bool)
    if periodic.listed is not None:
        earliest, latest = int(fresh.first.min()), int(fresh.last.max())
        periodic.cover(min(max(earliest, after), latest), latest, np.minimum(np.maximum(fresh.first, after), latest))
    low, high = periodic.ended_by(ALL, after) + 1, periodic.ended_by(ALL, upto)
    family, key, m = _touched(periodic, fresh, low, high, fired_only=False)
    windows, steps = _look_up(periodic, slices, family, key, m)
    return windows, slices.holds_reported(steps, windows.high)


def due_windows(
    periodic: PeriodicWindows,
    slices: WindowSlices,
    step: Step,
    reported: ReportedWindows,
    *,
    corrects: bool,
    family: int | None = None,
    empty: EmptyWindows | None = None,
) -> tuple[ReportedWindows, WindowRanges, np.ndarray | None, np.ndarray | None]:
    """What a step reports: the table of what was reported with its revisions, windows that were corrected or have
    ended, and how and in which revision each is; None for both where all of them are new.

    ``family`` is the number of all these windows in the table, if they do not stand there under their own; ``empty``
    knows which were reported without rows.
    """
    windows = ended_windows(periodic, slices, step.old_watermark, step.watermark)
    if not corrects or step.old_watermark <= -INFINITY:
        return reported, windows, None, None
    changed, known = corrected_windows(periodic, slices, step.old_horizon, step.old_watermark)
    if not len(changed):
        return reported, windows, None, None
    if empty is not None:
        known |= empty.were_reported(changed, reported)
    windows = changed.joined(windows)
    change, revision = np.full(len(windows), INSERT), np.zeros(len(windows), np.int64)
    at = np.flatnonzero(known)
    change[at] = UPDATE
    reported, revision[at] = reported.revised(entries_of(changed.take(at), family))
    return reported, windows, change, revision


def entries_of(windows: WindowRanges, family: int | None = None) -> ReportedWindows:
    """Windows as entries of the table of reported ones: correctable until the horizon reaches what made them due."""
    families = windows.family if family is None else np.full(len(windows), family)
    return ReportedWindows.new(families, windows.key, windows.start, windows.end, windows.decided - 1)


def _touched(
    periodic: PeriodicWindows, slices: Slices, low: np.ndarray, high: np.ndarray, *, fired_only: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every (family, key, window) that holds one of the slices, each once, with numbers in ``[low, high]``.

    Window numbers grow along a key, so a slice adds just the windows after those of the slice before it::

        slice     a        b     c
        windows   1 2 3    3 4   9
        added     1 2 3    4     9
    """
    last_of = periodic.last_fired if fired_only else periodic.last
    common = periodic.common
    families = [np.full(1, f) for f in common[low[common] <= high[common]].tolist()]
    columns = [_added(periodic, f, slices.key, slices.first, low, high, last_of) for f in families]
    for of_keys in periodic.families_of(slices.key):
        at = np.flatnonzero(of_keys >= 0)
        columns.append(_added(periodic, of_keys[at], slices.key[at], slices.first[at], low, high, last_of))
    if not columns:
        none = np.empty(0, np.int64)
        return none, none, none
    family, key, m = (np.concatenate(column) for column in zip(*columns, strict=True))
    return family, key, m


def _added(
    periodic: PeriodicWindows,
    family: np.ndarray,
    key: np.ndarray,
    first: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    last_of: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The windows that slices add, of one family or of one for each slice; equal keys have equal families."""
    lo = np.maximum(periodic.first(family, first), low[family])
    hi = np.minimum(last_of(family, first), high[family])
    if not len(key):
        return family[:0], key, key
    hi_so_far = running_last(key, hi)
    lo[1:] = np.where(key[1:] == key[:-1], np.maximum(lo[1:], hi_so_far[:-1] + 1), lo[1:])
    which, m = enumerate_ranges(lo, hi)
    return np.full(len(m), family[0]) if len(family) == 1 else family[which], key[which], m


def _look_up(
    periodic: PeriodicWindows, slices: WindowSlices, family: np.ndarray, key: np.ndarray, m: np.ndarray
) -> tuple[WindowRanges, np.ndarray]:
    """The slices of each window, and the first of those that must hold rows; windows that no row asks for are left out.

    From here on a window is known by the number of its kind and parameters, and by its bounds.
    """
    start, end = periodic.bounds(family, m)
    steps = None if periodic.all_sliding else periodic.steps(family, m)
    owners = family if periodic.listed is None else periodic.owners(family)
    return _holding_rows(slices, owners, key, start, end, steps)


def _holding_rows(
    slices: WindowSlices,
    family: np.ndarray,
    key: np.ndarray,
    start: np.ndarray,
    end: np.ndarray,
    since: np.ndarray | None = None,
) -> tuple[WindowRanges, np.ndarray]:
    """The windows that hold rows ``since`` some time, if not since they start; and the first slice behind that."""
    low, high = slices.locate(key, start), slices.locate(key, end)
    steps = low if since is None else slices.locate(key, since)
    held = steps < high
    windows = WindowRanges(family, key, low, high, start, end, end)
    return (windows, steps) if np.logical_and.reduce(held) else (windows.take(held), steps[held])


@record
class Sessions:
    """The sessions of all keys under one gap, as they stand.

    ``slices`` are the positions of the slices that take part; session ``i`` holds
    ``slices[low[i]:high[i]]``.
    """

    slices: np.ndarray
    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    low: np.ndarray
    high: np.ndarray
    unreported: np.ndarray

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: np.ndarray) -> Sessions:
        """The sessions at ``index``."""
        columns = (self.key, self.start, self.end, self.low, self.high, self.unreported)
        return Sessions(self.slices, *(c[index] for c in columns))

    def ranges(self, index: np.ndarray, family: int) -> WindowRanges:
        """The sessions at ``index`` as windows over the slices that take part."""
        low, high, start, end = (c[index] for c in (self.low, self.high, self.start, self.end))
        # A row exactly one gap after the last one still joins: a session is due when its end has passed.
        return WindowRanges(np.full(len(index), family), self.key[index], low, high, start, end, end + 1)

    def hold(self, key: np.ndarray, times: np.ndarray, gap: int) -> np.ndarray:
        """Which rows lie within one of the sessions; sessions of a key never overlap."""
        if not len(self):
            return np.zeros(len(key), bool)
        at = KeyTimeIndex(self.key, self.start).locate(key, times + 1) - 1
        inside: np.ndarray = (at >= 0) & (self.key[at] == key) & (times <= self.end[at] - gap)
        return inside


def find_sessions(slices: Slices, gap: int, level: int) -> Sessions:
    """Compose sessions from the first and last event times of slices.

    A row exactly one gap after the one before still joins its session. Slices that were closed under this gap (the
    ``level``-th smallest) take no part any more.
    """
    alive = (slices.closed_gaps <= level).nonzero()[0]
    if not len(alive):
        none = np.empty(0, np.int64)
        return Sessions(alive, none, none, none, none, none, np.empty(0, bool))
    key, first, last, unreported = slices.key, slices.first, slices.last, slices.unreported
    if len(alive) < len(key):
        key, first, last, unreported = key[alive], first[alive], last[alive], unreported[alive]
    last = running_last(key, last)
    apart = first[1:] - last[:-1] > gap
    starts = segment_starts(apart if key[0] == key[-1] else apart | (key[1:] != key[:-1]))
    ends = starts + segment_lengths(starts, len(alive))
    fresh = np.add.reduceat(unreported, starts) > 0
    return Sessions(alive, key[starts], first[starts], last[ends - 1] + gap, starts, ends, fresh)
