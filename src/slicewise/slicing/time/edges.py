"""Edges: where slices are cut. What the stream slicer of the paper asks, for whole arrays of rows.

Edges of context-free windows are known in advance, as progressions (see :mod:`slicewise.slicing.time.periodic`). A
*cell* is what lies between two neighbouring edges; it is named by the edge that begins it. Two rows of a key with the
same cell belong to the same slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slicewise.kernels import sorted_unique, steps_to
from slicewise.plan.grids import Progression, reduce_progressions
from slicewise.slicing.time.listed import ListedWindows
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.times import INFINITY, Extent

__all__ = ["Edges"]

#: Listing an edge costs about as much as computing four cells by arithmetic, one per row and progression.
COST_OF_AN_EDGE = 4
#: So few cells have numbers of 16 bits, wherever they begin.
FEW_CELLS = 2**16 - 1


class Edges:
    """The edges of a workload.

    Parameters
    ----------
    windows
        The context-free families.
    gaps
        The gaps of the session queries. A session that ends inside a slice could not be told from it, so no slice may
        be wider than the smallest gap; where no progression sees to that, one of that step is added for cutting.
    """

    def __init__(self, windows: PeriodicWindows, gaps: Sequence[int] = ()) -> None:
        self.windows = windows
        needed, points, listed = windows.progressions(), windows.points(), windows.listed
        self.needed = _Grid(needed, points, listed)
        self.cut = self.needed
        if gaps and not any(p.step <= min(gaps) for p in needed):
            self.cut = _Grid(reduce_progressions({*needed, Progression(min(gaps), 0)}), points, listed)

    @property
    def points(self) -> np.ndarray:
        """The edges that lie on no grid, ascending and each once; of schedules those that are known."""
        listed = self.windows.listed
        return self.cut.points if listed is None else np.union1d(self.cut.points, listed.edges)

    @property
    def has_cheap_cells(self) -> bool:
        """Whether a row's cell is soon found: all edges lie on one progression, panes, or all in one list."""
        return self.cut.is_single or self.cut.is_list

    def has_few_cells(self, extent: Extent) -> bool:
        """Whether some times lie in so few cells, of one progression, that a radix sort puts them in order."""
        if not self.cut.is_single:
            return False
        return (extent.latest - extent.earliest) // self.cut.progressions[0].step < FEW_CELLS

    def few_cells(self, t: np.ndarray, extent: Extent) -> np.ndarray:
        """The cells of so few, counted from the first, as numbers of 16 bits: NumPy sorts these by radix."""
        step, phase = self.cut.progressions[0].step, self.cut.progressions[0].phase
        first = extent.earliest - (extent.earliest - phase) % step
        return ((t - first) // step).astype(np.uint16)

    def next_edge(self, t: int) -> int:
        """The first edge after ``t`` at which slices are cut.

        >>> from slicewise.windows import tumbling
        >>> Edges(PeriodicWindows([tumbling(10)])).next_edge(13)     # t + l - (t mod l)
        20
        """
        return self.cut.after(t)

    def inside(self, low: int, high: int) -> np.ndarray | None:
        """The cutting edges in ``(low, high]``, ascending, or None if there are too many to list."""
        return self.cut.between(low, high, limit=1_000_000)

    def cells(self, t: np.ndarray) -> np.ndarray:
        """The cell of each row, as a number that grows with time; the numbers are as small as can be."""
        return self.cut.number(t)

    def needed_cells(self, t: np.ndarray, horizon: int) -> np.ndarray:
        """The cell of each time when only edges that some open window still has are counted.

        A window is open while it ends after ``horizon``. All edges after the horizon are needed; before it, only the
        starts of windows that are open, so that slices whose edges have gone can be merged.
        """
        if horizon <= -INFINITY:
            return self.needed.floor(t)
        young = t > horizon
        if young.any():
            self.windows.cover(horizon, int(t.max()), np.append(t[young], horizon))
        cells = np.empty(len(t), np.int64)
        cells[young] = self.needed.floor(t[young])
        # Times that no edge separates from the horizon share the last begin before it.
        old = ~young
        old[young] = cells[young] <= horizon
        if old.any():
            begins = np.concatenate([[-INFINITY], self.windows.open_starts(horizon)])
            cells[old] = begins[np.searchsorted(begins, np.minimum(t[old], horizon), "right") - 1]
        return cells

    def needed_after(self, t: int, horizon: int) -> int:
        """The first edge after ``t`` that some open window still has: where the cell of ``t`` ends."""
        begins = self.windows.open_starts(horizon) if horizon > -INFINITY else np.empty(0, np.int64)
        later = begins[begins > t]
        return int(later[0]) if len(later) else self.needed.after(max(t, horizon))


class _Grid:
    """The union of some progressions, some single points and the edges of listed windows."""

    def __init__(
        self, progressions: Sequence[Progression], points: np.ndarray, listed: ListedWindows | None = None
    ) -> None:
        self.progressions = list(progressions)
        self.step = np.array([p.step for p in progressions], np.int64)
        self.phase = np.array([p.phase for p in progressions], np.int64)
        self.points = points
        self.listed = listed
        #: Whether there is nothing but one progression.
        self.is_single = len(progressions) == 1 and not len(points) and listed is None
        #: Whether there is nothing but the edges of listed windows.
        self.is_list = listed is not None and not len(progressions) and not len(points)

    def after(self, t: int) -> int:
        """The first edge after ``t``."""
        if self.is_single:
            step, phase = self.progressions[0].step, self.progressions[0].phase
            return t + step - (t - phase) % step
        following = [INFINITY]
        if len(self.step):
            following.append(int((t + self.step - (t - self.phase) % self.step).min()))
        later = self.points[np.searchsorted(self.points, t, "right") :]
        if len(later):
            following.append(int(later[0]))
        if self.listed is not None:
            following.append(self.listed.next_edge(t))
        return min(following)

    def between(self, low: int, high: int, limit: int) -> np.ndarray | None:
        """The edges in ``(low, high]``, ascending and each once; None if there might be more than ``limit``."""
        if self.is_single:
            step, phase = self.progressions[0].step, self.progressions[0].phase
            following = low + step - (low - phase) % step
            return None if (high - following) // step >= limit else steps_to(following, high, step)
        first = (low - self.phase) // self.step + 1
        counts = np.maximum((high - self.phase) // self.step - first + 1, 0)
        total = int(counts.sum())
        if total > limit:
            return None
        which = np.repeat(np.arange(len(counts)), counts)
        nth = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        edges = sorted_unique((first[which] + nth) * self.step[which] + self.phase[which])
        if len(self.points):
            edges = np.union1d(edges, self.points[(self.points > low) & (self.points <= high)])
        if self.listed is not None:
            listed = self.listed.edges_between(low, high)
            if listed is None:
                return None
            edges = np.union1d(edges, listed) if len(edges) else listed
        return edges

    def floor(self, t: np.ndarray) -> np.ndarray:
        """The greatest edge at or before each time; minus infinity where there is none."""
        if not len(t):
            return t.copy()
        if self.is_single:
            floor: np.ndarray = t - (t - self.phase[0]) % self.step[0]
            return floor
        edges = self._around(t)
        if edges is None:
            return self._floor_by_arithmetic(t)
        # The edge that begins the first cell lies before the first row.
        edges = np.concatenate([self._floor_by_arithmetic(t.min(keepdims=True)), edges])
        return edges[np.searchsorted(edges, t, "right") - 1]

    def number(self, t: np.ndarray) -> np.ndarray:
        """A number for the cell of each time: the same for the same cell, larger for later ones."""
        if self.is_single:
            number: np.ndarray = (t - self.phase[0]) // self.step[0]
            return number
        edges = self._around(t)
        return self._floor_by_arithmetic(t) if edges is None else np.searchsorted(edges, t, "right")

    def _around(self, t: np.ndarray) -> np.ndarray | None:
        """The edges between the first and the last of some times, if listing them is worth it."""
        return self.between(int(t.min()), int(t.max()), limit=len(t) * len(self.step) // COST_OF_AN_EDGE + 64)

    def _floor_by_arithmetic(self, t: np.ndarray) -> np.ndarray:
        out = np.full(len(t), -INFINITY)
        block = max(1, 2_000_000 // max(1, len(self.step)))
        for at in range(0, len(t), block):
            chunk = t[at : at + block, None]
            if len(self.step):
                out[at : at + block] = (chunk - (chunk - self.phase) % self.step).max(axis=1)
        if len(self.points):
            before = np.searchsorted(self.points, t, "right") - 1
            out = np.where(before >= 0, np.maximum(out, self.points[before]), out)
        if self.listed is not None:
            self.listed.cover(int(t.min()), int(t.max()), t)
            edges = np.concatenate([[-INFINITY], self.listed.edges])
            out = np.maximum(out, edges[np.searchsorted(edges, t, "right") - 1])
        return out
