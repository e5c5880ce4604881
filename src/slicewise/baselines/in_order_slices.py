"""Slices in order: rows are combined into one active partial, which goes into a store where the next slice starts.

What Panes, Pairs and Cutty share, "within the same codebase, sharing data structures and function calls", as Cutty's
authors measured them; they differ in where they cut.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.swag.cutty_store import CuttyStore
from slicewise.times import INFINITY

__all__ = ["InOrderSlices"]


class InOrderSlices(Technique):
    """A store of slices and the active one. Slices are numbered, and known by the time of their first row.

    Parameters
    ----------
    context
        What is known of the workload.
    eager
        Whether the store keeps a tree above its slices.
    """

    def __init__(self, context: Context, *, eager: bool) -> None:
        super().__init__(context)
        self._store = CuttyStore(context.aggregate, eager)
        #: The times of the first rows of the slices in the store, then of the active one.
        self._firsts: list[int] = []
        self._number = 0  # of the first of them
        self._active: Any = EMPTY
        self._last = -INFINITY
        self._next_cut = -INFINITY

    @abstractmethod
    def edges(self, low: int, high: int) -> np.ndarray:
        """Where slices start, after ``low`` and at or before ``high``."""

    @abstractmethod
    def next_edge(self, after: int) -> int:
        """The first such place after an instant."""

    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        at = 0
        for cut in self._cuts(times):
            if cut > at:
                self._grow(partials[at:cut])
            self._start(times[cut])
            at = cut
        self._grow(partials[at:])
        self._last = times[-1]

    def _cuts(self, times: Sequence[int]) -> list[int]:
        """The places of rows with which a slice starts."""
        if self._last > -INFINITY and times[-1] < self._next_cut and not self.context.gaps:
            return []
        at = np.array(times, np.int64)
        low = self._last if self._last > -INFINITY else times[0] - 1
        cuts = [np.searchsorted(at, self.edges(low, times[-1]))]
        for gap in self.context.gaps.values():
            cuts.append(np.flatnonzero(np.diff(at, prepend=self._last) > gap))
        if self._last == -INFINITY:
            cuts.append(np.zeros(1, np.int64))
        self._next_cut = self.next_edge(times[-1])
        places: list[int] = np.unique(np.concatenate(cuts)).tolist()
        return places

    def _start(self, time: int) -> None:
        if self._active is not EMPTY:
            self._store.append(self._number + len(self._firsts) - 1, self._active)
        self._firsts.append(time)
        self._active = EMPTY

    def _grow(self, partials: Sequence[Any]) -> None:
        if len(partials) == 1:
            total = partials[0]
        else:
            total = self.context.fold(partials)
        self._active = total if self._active is EMPTY else self.context.combine(self._active, total)

    def answer(self, query: int, start: int, end: int) -> Any:
        place = bisect_left(self._firsts, start)
        if place >= len(self._firsts):
            return EMPTY
        if place == len(self._firsts) - 1:
            return self._active
        return self.context.combine(self._store.merge(self._number + place), self._active)

    def evict(self, needed: int, horizon: int) -> None:
        gone = min(bisect_left(self._firsts, needed), len(self._firsts) - 1)
        if gone <= 0:
            return
        if gone == len(self._firsts) - 1:
            # Only the active slice is left.
            self._store = CuttyStore(self.context.aggregate, self._store.eager)
        else:
            self._store.remove_up_to(self._number + gone)
        self._number += gone
        del self._firsts[:gone]

    def held(self) -> Held:
        stored = len(self._store)
        return Held(partials=stored + (self._active is not EMPTY), nodes=max(stored - 1, 0) if self._store.eager else 0)
