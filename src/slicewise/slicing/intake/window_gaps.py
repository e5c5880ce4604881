"""Window gaps: rows so far from the others of their key that very many empty windows would be due at once.

Where a query reports empty windows, a single row with a wrong time, ten years ahead, would bring 315 million seconds
without rows. Judged beside the ticks of :mod:`slicewise.slicing.intake.gaps`, and in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from slicewise.columns import Column
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.engine import Engine
from slicewise.slicing.rows import slides
from slicewise.slicing.rows.punctuation import data_among
from slicewise.slicing.time.empty_windows import LAST, WindowNumbers
from slicewise.slicing.time.slice_manager import TimeState
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.times import INFINITY

__all__ = ["KeyTimes", "KnownWindows", "WindowGap"]


@dataclass(frozen=True)
class WindowGap:
    """A row that is refused, by its place in the batch: how many empty windows lie between it and the one beside it,
    and where that one ends."""

    row: int
    windows: int
    beside: int
    window: str


class KeyTimes:
    """The latest event time of each key; most batches need no closer look than at this."""

    def __init__(self, reach: int) -> None:
        self._reach, self._latest = reach, NO_ROWS

    def update(self, key: np.ndarray, times: np.ndarray) -> None:
        """Note the event times of rows that are let in."""
        size = int(key.max(initial=-1)) + 1
        if size > len(self._latest):
            self._latest = np.append(self._latest, np.full(size - len(self._latest), -INFINITY))
        np.maximum.at(self._latest, key, times)

    def are_suspect(self, key: np.ndarray, times: np.ndarray) -> bool:
        """Whether a row is so far from the latest one of its key, or from others of a new key, that it may be wrong."""
        latest = np.append(self._latest, -INFINITY)[np.minimum(key, len(self._latest))]
        new = latest == -INFINITY
        if (np.abs(times - latest)[~new] > self._reach).any():
            return True
        return bool(new.any()) and int(np.ptp(times[new])) > self._reach


class KnownWindows:
    """The windows of one grid that hold rows."""

    def __init__(self, engine: Engine, family: int) -> None:
        self.engine, self.family = engine, family
        self.numbers = WindowNumbers(engine.plan, family)
        self._latest = KeyTimes(slides.MOST_TICKS * self.numbers.window.slides[0])
        time = engine.held().time
        slices, marks = time.slices, self._marks(time)
        self._latest.update(slices.key, slices.last)
        self._latest.update(marks.key, marks.end - 1)

    def gaps(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], horizon: int) -> list[WindowGap]:
        """The rows of a batch that come after too large a gap."""
        data = data_among(columns)
        self._new = np.arange(len(times)) if data is None else data
        if not len(self._new) or not self._latest.are_suspect(key[self._new], times[self._new]):
            return []
        return self._gaps(key[self._new], times[self._new], horizon)

    def add(self, key: np.ndarray, times: np.ndarray, kept: np.ndarray) -> None:
        """Note that the rows that were last asked for are let in, as far as they are kept."""
        places = self._new[kept[self._new]]
        self._latest.update(key[places], times[places])

    def _marks(self, time: TimeState) -> ReportedWindows:
        """The last windows with rows that were reported."""
        return time.reported.take((time.reported.family == self.family) & (time.reported.nth == LAST))

    def _gaps(self, key: np.ndarray, times: np.ndarray, horizon: int) -> list[WindowGap]:
        time = self.engine.held().time
        slices, marks = time.slices.take(np.isin(time.slices.key, key)), self._marks(time)
        marks = marks.take(np.isin(marks.key, key))
        self.numbers.cover(slices.first, slices.last, marks.start, marks.end, times)
        last_reported = self.numbers.of(marks.start, marks.end)
        # Windows for which rows that were let in came too late are over, and no row comes before them.
        (low, _), (_, high) = (self.numbers.holding(at, -INFINITY) for at in (slices.first, slices.last))
        first, last = self.numbers.holding(times, horizon)
        key = np.concatenate([slices.key, marks.key, key])
        low, high = np.concatenate([low, last_reported, first]), np.concatenate([high, last_reported, last])
        place = np.concatenate([np.full(len(key) - len(times), -1), self._new])
        order = np.lexsort((low, high, key))
        order = order[low[order] <= high[order]]  # without rows that are in no window, or came too late for all
        key, low, high, place = key[order], low[order], high[order], place[order]
        gaps = []
        for number in np.unique(key).tolist():
            some = slice(*np.searchsorted(key, [number, number + 1]).tolist())
            gaps += self._of_key(low[some], high[some], place[some])
        return gaps

    def _of_key(self, low: np.ndarray, high: np.ndarray, place: np.ndarray) -> list[WindowGap]:
        before, behind = (low - 1).tolist(), high.tolist()
        gaps = []
        for i, other in slides.over_gaps(before, (place < 0).tolist(), behind).items():
            windows = before[i] - behind[other] if i > other else before[other] - behind[i]
            beside = self.numbers.periodic.ends(np.zeros(1, np.int64), high[other : other + 1])
            gaps.append(WindowGap(int(place[i]), windows, int(beside[0]), repr(self.numbers.window)))
        return gaps
