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

Tumbling is sliding by its own length; landmark and between are fixed (between has a single window). Windows from tables
and schedules are families too, behind those of arithmetic, by search (:mod:`slicewise.slicing.time.listed`). Read by
the slicer (edges), the slice manager (what is still open) and the window manager (what fires).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from slicewise.kernels import sorted_unique
from slicewise.plan.grids import Progression, points_of, progressions_of
from slicewise.slicing.time.listed import ListedWindows, NumberedKeys
from slicewise.times import INFINITY
from slicewise.windows import Shape, Window

__all__ = ["ALL", "PeriodicWindows"]

#: So few families are gone through one by one, if so few windows are due: that is faster than array code.
FEW_FAMILIES, FEW_WINDOWS = 2, 8

#: All families, where one is asked for.
ALL = slice(None)

# As integers, which arrays are compared with.
SLIDING, CUMULATIVE, FIXED = (shape.value for shape in Shape)

Families = np.ndarray | slice


class PeriodicWindows:
    """All context-free families of a workload, one array entry each.

    Methods take an array of families and an array of times or window numbers that broadcast with it.
    """

    def __init__(self, windows: Sequence[Window], keys: Sequence[str] = ()) -> None:
        self.windows = tuple(windows)
        listed = [(number, window.listing) for number, window in enumerate(windows) if window.listing is not None]
        regular = [number for number, window in enumerate(windows) if window.listing is None]
        families = [windows[number].family for number in regular]
        assert None not in families, "windows without a family are not periodic"
        table = np.array(families, np.int64).reshape(len(families), 6)
        self.shape, self.every, self.phase, self.length, self.origin, self.most = table.T.copy()
        self.ratio = np.maximum(self.length // self.every, 1)
        #: Where window 0 of a sliding family starts.
        self._zeroth_start = self.phase - self.length
        self.all_sliding = bool((self.shape == SLIDING).all())
        self._all_regular, self._shortest = np.arange(len(families)), int(self.every.min(initial=INFINITY))
        #: Windows that are found by search, if there are any: families behind the others.
        self.listed = ListedWindows([listing for _, listing in listed], keys) if listed else None
        self._regular, self._listed = (np.array(some, np.int64) for some in (regular, [number for number, _ in listed]))
        if self.listed is None:
            self._ask_regular()
        #: Each family as plain numbers, where there are few and all slide.
        self._few: list[tuple[int, int, int]] | None = None
        if self.listed is None and self.all_sliding and len(families) <= FEW_FAMILIES:
            self._few = list(zip(self.every.tolist(), self.phase.tolist(), self.length.tolist(), strict=True))
        #: No window ends after the one and before the other.
        self._no_end_after, self._no_end_before = 0, 0
        #: The last window of each family that ends at or before a time: the one that was last asked for.
        self._passed: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self.every) + (0 if self.listed is None else len(self.listed))

    # Which families there are

    @property
    def common(self) -> np.ndarray:
        """The families that all keys have."""
        regular = self._all_regular
        return regular if self.listed is None else np.concatenate([regular, len(regular) + self.listed.common])

    def families_of(self, key: np.ndarray) -> Iterator[np.ndarray]:
        """The other families: one after the other those of some keys, -1 for keys that have none there."""
        for family in self.listed.families_of(key) if self.listed is not None else ():
            yield np.where(family >= 0, family + len(self.every), -1)

    def owners(self, f: np.ndarray) -> np.ndarray:
        """The numbers of the windows, among all, that families belong to."""
        if self.listed is None:
            return f
        owners: np.ndarray = np.concatenate([self._regular, self._listed[self.listed.owner]])[f]
        return owners

    def cover(self, low: int, high: int, times: np.ndarray | None = None) -> None:
        """Know all windows that hold an instant between these two, both included. Numbers of windows may change.

        Where that is too much, those that hold one of the ``times``, which lie between the two.
        """
        if self.listed is not None:
            self.listed.cover(low, high, times)

    def name_keys(self, keys: NumberedKeys) -> None:
        """Learn which keys the numbers of keys stand for, where windows depend on that."""
        if self.listed is not None:
            self.listed.name_keys(keys)

    @property
    def shortest(self) -> int:
        """The least distance between the ends of two windows of a family."""
        return self._shortest if self.listed is None else min(self._shortest, self.listed.shortest)

    # Families, an array of them beside times or numbers of windows

    def _of_both(
        self, f: Families, x: np.ndarray | int, regular: Callable[..., np.ndarray], listed: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """What is true of regular families and of listed ones, each computed in its own way."""
        if self.listed is None:
            return regular(f, x)
        count = len(self.every)
        f = np.arange(len(self)) if isinstance(f, slice) else f
        if not count:
            return listed(f, x)
        arithmetic = f < count
        if arithmetic.all():
            return regular(f, x)
        if not arithmetic.any():
            return listed(f - count, x)
        f, x, arithmetic = np.broadcast_arrays(f, x, arithmetic)
        out = np.empty(f.shape, np.int64)
        out[arithmetic] = regular(f[arithmetic], x[arithmetic])
        out[~arithmetic] = listed(f[~arithmetic] - count, x[~arithmetic])
        return out

    def _ask_regular(self) -> None:
        """Where all families are regular, the questions below are answered by arithmetic without a detour."""
        every: Any = self
        every.ends, every.starts, every.steps = self._regular_ends, self._regular_starts, self._regular_steps
        every.first, every.last, every.last_fired = self._regular_first, self._regular_last, self._regular_last_fired
        every.ended_by = self._regular_ended_by
        if self.all_sliding:
            every.last_fired = every.last = self._sliding_last
            every.starts = every.steps = self._sliding_starts
            every.bounds, every.ended_by = self._sliding_bounds, self._sliding_ended_by

    def ends(self, f: Families, m: np.ndarray) -> np.ndarray:
        """Where window ``m`` of family ``f`` ends."""
        return self._of_both(f, m, self._regular_ends, lambda f, m: self.listed.end[m])  # type: ignore[union-attr]

    def starts(self, f: Families, m: np.ndarray) -> np.ndarray:
        """Where window ``m`` of family ``f`` starts."""
        return self._of_both(f, m, self._regular_starts, lambda f, m: self.listed.start[m])  # type: ignore[union-attr]

    def bounds(self, f: Families, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where window ``m`` of family ``f`` starts and ends."""
        return self.starts(f, m), self.ends(f, m)

    def steps(self, f: Families, m: np.ndarray) -> np.ndarray:
        """Where the part of window ``m`` begins that must hold rows for the window to be reported.

        The window's start, except for fixed families: nothing new since the last tick, nothing to report.
        """
        return self._of_both(f, m, self._regular_steps, lambda f, m: self.listed.start[m])  # type: ignore[union-attr]

    def first(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The number of the first window of family ``f`` that holds time ``t``: the first that ends after it."""
        return self._of_both(f, t, self._regular_first, lambda f, t: self.listed.first(f, t))  # type: ignore[union-attr]

    def last(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The number of the last window of family ``f`` that holds time ``t``; before ``first`` when none does."""
        return self._of_both(f, t, self._regular_last, lambda f, t: self.listed.last(f, t))  # type: ignore[union-attr]

    def last_fired(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The last window that a row at ``t`` causes to be reported when nothing comes after it."""
        return self._of_both(f, t, self._regular_last_fired, lambda f, t: self.listed.last(f, t))  # type: ignore[union-attr]

    def ended_by(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        """The number of the last window of family ``f`` that ends at or before ``t``."""
        return self._of_both(f, t, self._regular_ended_by, lambda f, t: self.listed.first(f, t) - 1)  # type: ignore[union-attr]

    def _regular_ends(self, f: Families, m: np.ndarray) -> np.ndarray:
        return self.phase[f] + m * self.every[f]

    def _sliding_starts(self, f: Families, m: np.ndarray) -> np.ndarray:
        return self._zeroth_start[f] + m * self.every[f]

    def _sliding_bounds(self, f: Families, m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts = self._sliding_starts(f, m)
        return starts, starts + self.length[f]

    def _sliding_ended_by(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        return (t - self.phase[f]) // self.every[f]

    def _sliding_last(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        return (t - self._zeroth_start[f]) // self.every[f]

    def _regular_starts(self, f: Families, m: np.ndarray) -> np.ndarray:
        sliding = self._sliding_starts(f, m)
        if self.all_sliding:
            return sliding
        grown = self.origin[f] + (m - 1) // self.ratio[f] * self.length[f]
        return np.where(self.shape[f] == SLIDING, sliding, np.where(self.shape[f] == CUMULATIVE, grown, self.origin[f]))

    def _regular_steps(self, f: Families, m: np.ndarray) -> np.ndarray:
        starts = self._regular_starts(f, m)
        if self.all_sliding:
            return starts
        return np.where(self.shape[f] == FIXED, np.maximum(self._regular_ends(f, m) - self.every[f], starts), starts)

    def _regular_first(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        return (t - self.phase[f]) // self.every[f] + 1

    def _regular_last(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        sliding = self._sliding_last(f, t)
        if self.all_sliding:
            return sliding
        grown = ((t - self.origin[f]) // self.length[f] + 1) * self.ratio[f]
        first = self._regular_first(f, t)
        fixed = np.where(t < self.origin[f], first - 1, self.most[f])
        return np.where(self.shape[f] == SLIDING, sliding, np.where(self.shape[f] == CUMULATIVE, grown, fixed))

    def _regular_last_fired(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        last = self._regular_last(f, t)
        if self.all_sliding:
            return last
        return np.where(self.shape[f] == FIXED, np.minimum(last, self._regular_first(f, t)), last)

    def _regular_ended_by(self, f: Families, t: np.ndarray | int) -> np.ndarray:
        ended: np.ndarray = np.minimum((t - self.phase[f]) // self.every[f], self.most[f])
        return ended

    # What is open

    def open_mask(self, t: np.ndarray, horizon: int, key: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """For each time: is it in any window at all, of this key, and in one that ends after ``horizon``?

        Runtime complexity: O(times * families), in blocks that keep memory flat.
        """
        inside = np.zeros(len(t), bool)
        still_open = np.zeros(len(t), bool)
        families = ALL
        block = max(1, 2_000_000 // max(1, len(self.every)))
        for at in range(0, len(t), block):
            chunk = t[at : at + block, None]
            last = self._regular_last(families, chunk)
            member = self._regular_first(families, chunk) <= last
            inside[at : at + block] = member.any(axis=1)
            # A landmark's last window never comes: its end is beyond any number.
            latest = self._regular_ends(families, np.minimum(last, INFINITY // self.every))
            ends = np.where(last >= INFINITY, INFINITY, latest)
            still_open[at : at + block] = (member & (ends > horizon)).any(axis=1)
        if self.listed is not None and len(t):
            self._mark_listed(t, horizon, key, inside, still_open)
        return inside, still_open

    def _mark_listed(
        self, t: np.ndarray, horizon: int, key: np.ndarray | None, inside: np.ndarray, still_open: np.ndarray
    ) -> None:
        assert self.listed is not None
        self.cover(int(t.min()), int(t.max()), t)
        families = [np.full(len(t), f) for f in self.listed.common.tolist()]
        families += [] if key is None else list(self.listed.families_of(key))
        for family in families:
            rows = np.flatnonzero(family >= 0)
            last = self.listed.last(family[rows], t[rows])
            member = self.listed.first(family[rows], t[rows]) <= last
            inside[rows] |= member
            # Ends ascend: the last window of a chain that holds a time is the last to end.
            still_open[rows[member]] |= self.listed.end[last[member]] > horizon

    def oldest_open_start(self, horizon: int) -> int:
        """The earliest start of any window that ends after ``horizon``: older slices serve no window any more."""
        oldest = INFINITY if self.listed is None else self.listed.oldest_open_start(horizon)
        if not len(self.every):
            return oldest
        m = (horizon - self.phase) // self.every + 1
        starts = self._regular_starts(ALL, m)
        if not self.all_sliding:
            starts = np.where(m > self.most, INFINITY, starts)
        return min(int(starts.min()), oldest)

    def open_starts(self, horizon: int) -> np.ndarray:
        """The starts at or before ``horizon`` of windows that end after it, ascending and each once.

        These are the only edges that slices before the horizon still need: Cutty's begins. Of a fixed family that is
        also where its present step began, which shows whether the step brought rows.
        """
        f = np.arange(len(self.every))
        low = (horizon - self.phase) // self.every + 1
        high = np.where(self.shape == SLIDING, (horizon - self.phase + self.length) // self.every, low)
        high = np.where(low > self.most, low - 1, high)
        counts = np.maximum(high - low + 1, 0)
        family = np.repeat(f, counts)
        nth = np.arange(len(family)) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = self._regular_starts(family, low[family] + nth)
        if not self.all_sliding:
            starts = np.concatenate([starts, self._regular_steps(family, low[family] + nth)])
        if self.listed is not None:
            starts = np.concatenate([starts, self.listed.open_starts(horizon)])
        return sorted_unique(starts[starts <= horizon])

    def may_end(self, after: int, upto: int) -> bool:
        """Whether there may be a window that ends in ``(after, upto]``, by what :meth:`note_no_end` knows."""
        return upto > after and not (self._no_end_after <= after and upto < self._no_end_before)

    def ended_in(self, after: int, upto: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the first and of the last window of each family that end in ``(after, upto]``.

        One step goes on where the one before has stopped.
        """
        known = self._passed is not None and self._passed[0] == after
        before = self._passed[1] if known else self.ended_by(ALL, after)  # type: ignore[index]
        last = self.ended_by(ALL, upto)
        if self.listed is None:  # numbers of listed windows may change
            self._passed = upto, last
        return before + 1, last

    def few_ended(
        self, after: int, upto: int, earliest: int, latest: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Family, start and end of the windows that end in ``(after, upto]`` and may hold rows between two times.

        None where families or windows are too many to go through one by one.
        """
        if self._few is None:
            return None
        families, starts, ends = [], [], []
        for family, (every, phase, length) in enumerate(self._few):
            low = (max(after, earliest) - phase) // every + 1
            high = min((upto - phase) // every, (latest - phase + length) // every)
            if high - low >= FEW_WINDOWS:
                return None
            for end in range(phase + low * every, phase + high * every + 1, every):
                families.append(family)
                starts.append(end - length)
                ends.append(end)
        return np.array(families, np.int64), np.array(starts, np.int64), np.array(ends, np.int64)

    def note_no_end(self, after: int) -> None:
        """Find out how long no window ends: many steps of a stream may pass none, and need not look."""
        if self.listed is None:
            self._no_end_after, self._no_end_before = after, self.next_end(after)

    def next_end(self, t: int) -> int:
        """No window ends after ``t`` and before this."""
        due = INFINITY if self.listed is None else self.listed.next_end(t)
        if not len(self.every):
            return due
        following = np.minimum(self._regular_ended_by(ALL, t) + 1, self.most)
        ends = self._regular_ends(ALL, following)
        return min(due, int(np.where(ends > t, ends, INFINITY).min()))

    # Edges

    def progressions(self) -> list[Progression]:
        """The edges of all families as few progressions."""
        return progressions_of(self.windows)

    def points(self) -> np.ndarray:
        """Edges of arithmetic that belong to no progression."""
        return np.array(points_of(self.windows), np.int64)
