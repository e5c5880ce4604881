"""Periodic windows: where the context-free windows of all queries lie, as arithmetic on arrays.

Every context-free window is a *family*: windows numbered by an integer ``m``, whose ends lie ``every`` apart,
``end(m) = phase + m * every``. What differs is where they start:

==========  =====================================  ====================================
family      start(m)                               a row at time t is in
==========  =====================================  ====================================
sliding     end(m) - length                        every m whose window covers t
cumulative  the multiple of length before end(m)   the rest of its period
fixed       since, always                          m of the next tick, and all after it
==========  =====================================  ====================================

Tumbling is sliding by its own length; landmark and between are fixed (between has a single window). Read by the slicer
(edges), the slice manager (what is still open) and the window manager (what fires).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slicewise.kernels import sorted_unique
from slicewise.plan.grids import Progression, points_of, progressions_of
from slicewise.times import INFINITY
from slicewise.windows import Shape, Window

__all__ = ["ALL", "PeriodicWindows"]

#: All families, where one is asked for.
ALL = slice(None)

# As integers, which arrays are compared with.
SLIDING, CUMULATIVE, FIXED = (shape.value for shape in Shape)

Families = np.ndarray | slice


class PeriodicWindows:
    """All context-free families of a workload, one array entry each.

    Methods take an array of families and an array of times or window numbers that broadcast with it.
    """

    def __init__(self, windows: Sequence[Window]) -> None:
        self.windows = tuple(windows)
        families = [w.family for w in windows]
        assert None not in families, "windows without a family are not periodic"
        table = np.array(families, np.int64).reshape(len(families), 6)
        self.shape, self.every, self.phase, self.length, self.origin, self.most = table.T.copy()
        self.ratio = np.maximum(self.length // self.every, 1)
        self.all_sliding = bool((self.shape == SLIDING).all())

    def __len__(self) -> int:
        return len(self.every)

    def ends(self, f: Families, m: np.ndarray) -> np.ndarray:
        """Where window ``m`` of family ``f`` ends."""
        return self.phase[f] + m * self.every[f]

    def starts(self, f: Families, m: np.ndarray) -> np.ndarray:
        """Where window ``m`` of family ``f`` starts."""
        sliding = self.phase[f] + m * self.every[f] - self.length[f]
        if self.all_sliding:
            return sliding
        grown = self.origin[f] + (m - 1) // self.ratio[f] * self.length[f]
        return np.where(self.shape[f] == SLIDING, sliding, np.where(self.shape[f] == CUMULATIVE, grown, self.origin[f]))

    def steps(self, f: Families, m: np.ndarray) -> np.ndarray:
        """Where the part of window ``m`` begins that must hold rows for the window to be reported.

        The window's start, except for fixed families: nothing new since the last tick, nothing to report.
        """
        starts = self.starts(f, m)
        if self.all_sliding:
            return starts
        return np.where(self.shape[f] == FIXED, np.maximum(self.ends(f, m) - self.every[f], starts), starts)

    def first(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The number of the first window of family ``f`` that holds time ``t``: the first that ends after it."""
        return (t - self.phase[f]) // self.every[f] + 1

    def last(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The number of the last window of family ``f`` that holds time ``t``; before ``first`` when none does."""
        sliding = (t - self.phase[f] + self.length[f]) // self.every[f]
        if self.all_sliding:
            return sliding
        grown = ((t - self.origin[f]) // self.length[f] + 1) * self.ratio[f]
        first = self.first(f, t)
        fixed = np.where(t < self.origin[f], first - 1, self.most[f])
        return np.where(self.shape[f] == SLIDING, sliding, np.where(self.shape[f] == CUMULATIVE, grown, fixed))

    def last_fired(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The last window that a row at ``t`` causes to be reported when nothing comes after it."""
        last = self.last(f, t)
        if self.all_sliding:
            return last
        return np.where(self.shape[f] == FIXED, np.minimum(last, self.first(f, t)), last)

    def ended_by(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The number of the last window of family ``f`` that ends at or before ``t``."""
        ended: np.ndarray = np.minimum((t - self.phase[f]) // self.every[f], self.most[f])
        return ended

    def open_mask(self, t: np.ndarray, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """For each time: is it in any window at all, and in one that ends after ``horizon``?

        Runtime complexity: O(times * families), in blocks that keep memory flat.
        """
        inside = np.zeros(len(t), bool)
        still_open = np.zeros(len(t), bool)
        families = ALL
        block = max(1, 2_000_000 // max(1, len(self)))
        for at in range(0, len(t), block):
            chunk = t[at : at + block, None]
            last = self.last(families, chunk)
            member = self.first(families, chunk) <= last
            inside[at : at + block] = member.any(axis=1)
            # A landmark's last window never comes: its end is beyond any number.
            ends = np.where(last >= INFINITY, INFINITY, self.ends(families, np.minimum(last, INFINITY // self.every)))
            still_open[at : at + block] = (member & (ends > horizon)).any(axis=1)
        return inside, still_open

    def oldest_open_start(self, horizon: int) -> int:
        """The earliest start of any window that ends after ``horizon``: older slices serve no window any more."""
        if not len(self):
            return INFINITY
        m = (horizon - self.phase) // self.every + 1
        starts = self.starts(ALL, m)
        if not self.all_sliding:
            starts = np.where(m > self.most, INFINITY, starts)
        return int(starts.min())

    def open_starts(self, horizon: int) -> np.ndarray:
        """The starts at or before ``horizon`` of windows that end after it, ascending and each once.

        These are the only edges that slices before the horizon still need: Cutty's begins. Of a fixed family that is
        also where its present step began, which shows whether the step brought rows.
        """
        f = np.arange(len(self))
        low = (horizon - self.phase) // self.every + 1
        high = np.where(self.shape == SLIDING, (horizon - self.phase + self.length) // self.every, low)
        high = np.where(low > self.most, low - 1, high)
        counts = np.maximum(high - low + 1, 0)
        family = np.repeat(f, counts)
        nth = np.arange(len(family)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = self.starts(family, low[family] + nth)
        if not self.all_sliding:
            starts = np.concatenate([starts, self.steps(family, low[family] + nth)])
        return sorted_unique(starts[starts <= horizon])

    def progressions(self) -> list[Progression]:
        """The edges of all families as few progressions."""
        return progressions_of(self.windows)

    def points(self) -> np.ndarray:
        """Edges that belong to no progression."""
        return np.array(points_of(self.windows), np.int64)
