"""Empty windows: those without rows between two of their key that have some, where a query asks for them.

Windows of a grid are numbered, so those between two are arithmetic. Of every key that has reported any, the first and
the last window with rows are known: all windows from the one to the other were reported, with rows or without. A step
adds windows with rows before, among or behind them, and what lies between is new::

    reported          [2 . . 5]                first 2, last 5; 3 and 4 had no rows
    due        0                     8         two windows with rows: a late row made the first, 8 has just ended
    empty        1              6 7
    reported   [0 . . . . . . . . . . 8]

The two windows stand in the table of reported windows, told from corrections by their ``nth``. The last one stays for
as long as the stream runs, the first until no row can come before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slicewise.kernels import enumerate_ranges, sorted_unique
from slicewise.plan.plan import Plan
from slicewise.results import Repeats
from slicewise.slicing.answers.answers import ReportLimits
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.times import INFINITY

__all__ = ["EmptyWindows", "WindowNumbers"]

#: What the first and the last window of a key with rows have for ``nth``; 0 is that of windows that were corrected.
FIRST, LAST = 1, 2
#: Less than the number of any window.
BEFORE_ALL = -(2**62)
_ONE = np.zeros(1, np.int64)


class WindowNumbers:
    """The numbers of the windows of one grid. Those of a calendar hold until others are covered."""

    def __init__(self, plan: Plan, family: int) -> None:
        self.window = plan.windows[family].everywhere
        self.periodic = PeriodicWindows([self.window])
        regular = self.window.family
        #: Where a tick has the number of the window that ends there, and all have one length.
        self.is_even = regular is not None and self.window.grid is not None

    def cover(self, *times: np.ndarray) -> None:
        """Know the numbers of all windows between some event times."""
        some = [array for array in times if len(array)]
        if self.periodic.listed is not None and some:
            self.periodic.cover(min(int(a.min()) for a in some), max(int(a.max()) for a in some))

    def of(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """The numbers of windows with these bounds."""
        # Where a day did not take place, two windows of a calendar may start or end together.
        numbers: np.ndarray = np.minimum(self.periodic.ended_by(_ONE, end), self.periodic.last(_ONE, start))
        return numbers

    def holding(self, time: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last window that hold event times and end behind a horizon; none if these are reversed."""
        first, last = self.periodic.first(_ONE, time), self.periodic.last(_ONE, time)
        return (first if horizon <= -INFINITY else np.maximum(first, self.periodic.ended_by(_ONE, horizon) + 1)), last

    def ranges(self, family: int, key: np.ndarray, low: np.ndarray, high: np.ndarray) -> WindowRanges:
        """For each key the windows from one number to another, as windows without rows."""
        repeats = None
        if self.is_even:
            assert self.window.family is not None
            every, length = self.window.family.every, self.window.family.length
            repeats, m = Repeats(low, high - low + 1, every, self.window.family.phase, length), low
        else:
            which, m = enumerate_ranges(low, high)
            key = key[which]
        start, end = self.periodic.starts(_ONE, m), self.periodic.ends(_ONE, m)
        nothing = np.zeros(len(m), np.int64)
        return WindowRanges(np.full(len(m), family), key, nothing, nothing, start, end, end, repeats=repeats)


@dataclass(frozen=True, eq=False)
class _Spans:
    """From which window to which the windows of some keys were reported, all of one family; by number and key."""

    known: np.ndarray
    low: np.ndarray
    high: np.ndarray


class EmptyWindows:
    """The grids of a plan whose empty windows are reported."""

    def __init__(self, plan: Plan) -> None:
        self._numbers = {family: WindowNumbers(plan, family) for family in plan.filled}
        self._query = plan.filled

    def were_reported(self, windows: WindowRanges, reported: ReportedWindows) -> np.ndarray:
        """Which windows were reported before, whatever rows they held then."""
        were = np.zeros(len(windows), bool)
        for family, numbers in self._numbers.items():
            at = np.flatnonzero(windows.family == family)
            if len(at):
                some = windows.take(at)
                m, spans = self._located(family, numbers, some, reported, some.key)
                were[at] = spans.known & (spans.low <= m) & (m <= spans.high)
        return were

    def between(
        self, due: WindowRanges, reported: ReportedWindows, limits: ReportLimits | None
    ) -> tuple[ReportedWindows, list[WindowRanges]]:
        """The windows without rows that lie between those that a step reports, and those that were reported before.

        ``reported`` comes back with the first and the last window of each key as they are then.
        """
        empty = []
        for family, numbers in self._numbers.items():
            windows = due.take(np.flatnonzero(self._may_report(due, family, limits)))
            if len(windows):
                reported, ranges = self._between(family, numbers, windows, reported)
                empty += ranges
        return reported, empty

    def _may_report(self, due: WindowRanges, family: int, limits: ReportLimits | None) -> np.ndarray:
        """The windows of a family that its query may report, which may have been added later."""
        may: np.ndarray = due.family == family
        if limits is not None:
            query = self._query[family]
            may &= (due.start >= limits.start[query]) & (due.decided > limits.due[query])
        return may

    def _between(
        self, family: int, numbers: WindowNumbers, windows: WindowRanges, reported: ReportedWindows
    ) -> tuple[ReportedWindows, list[WindowRanges]]:
        keys = sorted_unique(windows.key)
        m, spans = self._located(family, numbers, windows, reported, keys)
        of = np.searchsorted(keys, windows.key)
        new = np.flatnonzero(~spans.known[of] | (m < spans.low[of]) | (m > spans.high[of]))
        if not len(new):
            return reported, []
        was = np.flatnonzero(spans.known)
        key = np.concatenate([windows.key[new], keys[was]])
        low, high = np.concatenate([m[new], spans.low[was]]), np.concatenate([m[new], spans.high[was]])
        order = np.lexsort((low, key))
        key, low, high = key[order], low[order], high[order]
        gap = np.flatnonzero((key[1:] == key[:-1]) & (low[1:] > high[:-1] + 1))
        ranges = [numbers.ranges(family, key[gap], high[gap] + 1, low[gap + 1] - 1)] if len(gap) else []
        return _marked(reported, family, windows.take(new), spans, m[new], keys), ranges

    def _located(
        self,
        family: int,
        numbers: WindowNumbers,
        windows: WindowRanges,
        reported: ReportedWindows,
        keys: np.ndarray,
    ) -> tuple[np.ndarray, _Spans]:
        """The numbers of windows, and what was reported of keys."""
        marks = [_marks(reported, family, nth, keys) for nth in (FIRST, LAST)]
        bounds = [reported.take(at[at >= 0]) for at in marks]
        numbers.cover(windows.start, windows.end - 1, *(b.start for b in bounds), *(b.end - 1 for b in bounds))
        first, last = np.full(len(keys), BEFORE_ALL), np.full(len(keys), BEFORE_ALL)
        for array, at, mark in zip((first, last), marks, bounds, strict=True):
            array[at >= 0] = numbers.of(mark.start, mark.end)
        return numbers.of(windows.start, windows.end), _Spans(marks[1] >= 0, first, last)


def _marks(reported: ReportedWindows, family: int, nth: int, keys: np.ndarray) -> np.ndarray:
    """For each key the place of its first or last window in the table, or -1."""
    at = np.flatnonzero((reported.nth == nth) & (reported.family == family))
    if not len(at):
        return np.full(len(keys), -1)
    at = at[np.argsort(reported.key[at], kind="stable")]
    nearest = at[np.minimum(np.searchsorted(reported.key[at], keys), len(at) - 1)]
    return np.where(reported.key[nearest] == keys, nearest, -1)


def _marked(
    reported: ReportedWindows, family: int, new: WindowRanges, spans: _Spans, m: np.ndarray, keys: np.ndarray
) -> ReportedWindows:
    """The table in which the first and the last window of keys are among new ones, where these lie further out."""
    of = np.searchsorted(keys, new.key)
    order = np.lexsort((m, new.key))
    ends = np.flatnonzero(np.append(new.key[order][1:] != new.key[order][:-1], True))
    begins = np.append(0, ends[:-1] + 1)
    for nth, some in ((FIRST, order[begins]), (LAST, order[ends])):
        outer = m[some] < spans.low[of[some]] if nth == FIRST else m[some] > spans.high[of[some]]
        some = some[outer | ~spans.known[of[some]]]
        old = _marks(reported, family, nth, new.key[some])
        kept = np.delete(np.arange(len(reported)), old[old >= 0])
        until = new.end[some] - 1 if nth == FIRST else np.full(len(some), INFINITY)
        marks = ReportedWindows.new(new.family[some], new.key[some], new.start[some], new.end[some], until)
        reported = reported.take(kept).joined(replace(marks, nth=np.full(len(some), nth)))
    return reported
