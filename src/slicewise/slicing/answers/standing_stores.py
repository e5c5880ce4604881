"""Standing stores: the range stores of slices that stand in slots, kept from step to step.

A step changes a few slots, and what was computed over all others stays. Slots are those of
:class:`~slicewise.slicing.time.standing_slices.StandingSlices`: every key has a *region* of ``2**h`` slots that begins
at a multiple of its length, and its slices stand in a run of them, in order. What stands before or behind the run is
never part of a range, so nothing has to be undone when slices leave from the front.

======  =========================================  =========================
store   per slice touched                          per range of r slices
======  =========================================  =========================
lazy    nothing                                    r - 1 combines
eager   at most log2(n) + 1 combines               at most 2 log2(n) combines
prefix  1 combine at the end of a key's run        1 invert
======  =========================================  =========================

A slice that changes before the end of its run changes all running values behind it. Where rows are so late that this
costs more than a tree would, the prefix store gives its place to an eager one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, concat_parts, put_parts, take_parts
from slicewise.kernels import expand_ranges

__all__ = ["STANDING", "Region", "StandingLazy", "StandingPrefix", "StandingStore", "StandingTree", "assign"]

#: So many ranges are answered one by one: that is faster than array code for all of them.
FEW_RANGES = 4


class Region(NamedTuple):
    """Where the slices of a key stand: its slots from ``base`` on, ``length`` of them, and the run of those in use."""

    base: int
    length: int
    front: int
    end: int


def assign(parts: Parts, at: np.ndarray | slice, values: Parts) -> Parts:
    """Put partials into arrays of slots: in place, and the same parts, wherever their types allow it."""
    for i, value in enumerate(values):
        part = parts[i]
        if value.dtype.hasobject or part.dtype.hasobject:
            parts = _with_objects(parts, i, at, value)
        else:
            part[at] = value
    return parts


def _with_objects(parts: Parts, i: int, at: np.ndarray | slice, value: np.ndarray) -> Parts:
    part = parts[i]
    if not part.dtype.hasobject:
        part = part.astype(object)  # exact sums leave int64 for Python ints when they grow too large
        parts = (*parts[:i], part, *parts[i + 1 :])
    places = range(at.start, at.stop) if isinstance(at, slice) else at.tolist()
    for place, item in zip(places, value, strict=True):
        part[place] = item  # one by one: NumPy would look into items that are sequences themselves
    return parts


class StandingStore:
    """Answers ranges of slots.

    Parameters
    ----------
    leaves
        The partials of all slots; identities where no slice stands.
    """

    #: Whether anything but the leaves is kept, which must follow what changes.
    keeps = True

    def __init__(self, monoid: Monoid, leaves: Parts) -> None:
        self.monoid, self.leaves = monoid, leaves

    def build(self, regions: list[Region]) -> None:
        """Compute what is kept over all slots."""

    def resized(self, size: int) -> None:
        """There are so many slots now; ``leaves`` has them already."""

    def moved(self, source: int, target: int, length: int) -> None:
        """So many slots moved, both ends at multiples of the length; ``leaves`` moved already."""

    def changed(self, low: int, high: int, region: Region, came: Parts | None) -> bool:
        """Slices of one region changed, or stand in new slots, from ``low`` to before ``high``; ``leaves`` has them.

        ``came`` is what was combined into a single slice, if that is all that happened. False says that another kind of
        store should take the place of this one.
        """
        return True

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        """The combination of the partials in each range ``[low, high)``, none of them empty."""
        raise NotImplementedError


class StandingLazy(StandingStore):
    """Folds each range when it is asked for."""

    keeps = False

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        if len(low) == 1:
            first, end = int(low[0]), int(high[0])
            if end - first == 1:
                return take_parts(self.leaves, low)  # a copy: answers outlive what stands in the slot
            return self.monoid.fold(take_parts(self.leaves, slice(first, end)), np.zeros(1, np.int64))
        index, starts = expand_ranges(low, high)
        return self.monoid.fold(take_parts(self.leaves, index), starts)


class StandingTree(StandingStore):
    """FlatFAT over the slots: node 1 is the root, the children of node i are 2i and 2i + 1, leaves come last.

    ::

        1                  a..d               slots 0 to 3 are the nodes 4 to 7; a region of two slots that begins at an
        2 3            ab        cd           even one is a tree of its own below the root, and moves with its nodes
        4 5 6 7      a    b    c    d
    """

    def build(self, regions: list[Region]) -> None:
        size = len(self.leaves[0])
        levels = [self.leaves]
        highest = max((region.length for region in regions), default=1)
        while len(levels[-1][0]) > 1 and 1 << len(levels) <= highest:
            below = levels[-1]
            levels.append(
                self.monoid.combine(take_parts(below, slice(0, None, 2)), take_parts(below, slice(1, None, 2)))
            )
        self.nodes = self.monoid.identities(2 * size)
        for level, parts in enumerate(levels):
            self.nodes = assign(self.nodes, slice(size >> level, 2 * (size >> level)), parts)

    def resized(self, size: int) -> None:
        nodes, before = self.nodes, len(self.nodes[0]) // 2
        self.nodes = self.monoid.identities(2 * size)
        level = 0
        while before >> level:
            first, count = size >> level, before >> level
            self.nodes = assign(self.nodes, slice(first, first + count), take_parts(nodes, slice(count, 2 * count)))
            level += 1

    def moved(self, source: int, target: int, length: int) -> None:
        size, level = len(self.nodes[0]) // 2, 0
        while length >> level:
            first, count = size >> level, length >> level
            for part in self.nodes:
                taken = part[first + (source >> level) : first + (source >> level) + count].copy()
                part[first + (target >> level) : first + (target >> level) + count] = taken
            level += 1

    def changed(self, low: int, high: int, region: Region, came: Parts | None) -> bool:
        size = len(self.nodes[0]) // 2
        self.nodes = assign(self.nodes, slice(size + low, size + high), take_parts(self.leaves, slice(low, high)))
        low, last, first, end = size + low, size + high - 1, size + region.front, size + region.end
        length = region.length
        while length > 1:
            low, last = low >> 1, last >> 1
            self._compute(low, last, first, end)
            first, end, length = first >> 1, (end + 1) >> 1, length >> 1
        return True

    def _compute(self, low: int, last: int, first: int, end: int) -> None:
        """Compute nodes from their children, of which only those from ``first`` to before ``end`` matter.

        What lies outside of the run is part of no range, so a node at its rim is as its one child inside.
        """
        if 2 * low < first:
            self._copy(2 * low + 1, low)
            low += 1
        if 2 * last + 1 >= end and low <= last:
            self._copy(2 * last, last)
            last -= 1
        if low <= last:
            left = take_parts(self.nodes, slice(2 * low, 2 * last + 1, 2))
            right = take_parts(self.nodes, slice(2 * low + 1, 2 * last + 2, 2))
            self.nodes = assign(self.nodes, slice(low, last + 1), self.monoid.combine(left, right))

    def _copy(self, source: int, target: int) -> None:
        for part in self.nodes:
            part[target] = part[source]

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        if len(low) > FEW_RANGES:
            return self._query_together(low, high)
        answers = [self._query_one(*bounds) for bounds in zip(low.tolist(), high.tolist(), strict=True)]
        return answers[0] if len(answers) == 1 else concat_parts(answers)

    def _query_one(self, low: int, high: int) -> Parts:
        """The nodes that make up a range, in order, and folded at once."""
        size = len(self.nodes[0]) // 2
        left, right = [], []
        low, high = low + size, high + size
        while low < high:
            if low & 1:
                left.append(low)
                low += 1
            if high & 1:
                high -= 1
                right.append(high)
            low, high = low >> 1, high >> 1
        nodes = take_parts(self.nodes, np.array(left + right[::-1]))
        return nodes if len(nodes[0]) == 1 else self.monoid.fold(nodes, np.zeros(1, np.int64))

    def _query_together(self, low: np.ndarray, high: np.ndarray) -> Parts:
        """All ranges climb together; one array for both sides, so that each level costs one combine."""
        n, size = len(low), len(self.nodes[0]) // 2
        both_sides = self.monoid.identities(2 * n)
        low, high = low + size, high + size
        while True:
            left = np.flatnonzero((low < high) & (low & 1 == 1))
            right = np.flatnonzero((low < high) & (high & 1 == 1))
            if len(left) or len(right):
                nodes = take_parts(self.nodes, np.concatenate([high[right] - 1, low[left]]))
                before = concat_parts([take_parts(both_sides, left), take_parts(nodes, slice(len(right)))])
                after = concat_parts([take_parts(nodes, slice(len(right), None)), take_parts(both_sides, n + right)])
                places = np.concatenate([left, n + right])
                both_sides = put_parts(both_sides, places, self.monoid.combine(before, after))
            low, high = (low + 1) >> 1, high >> 1
            if not (low < high).any():
                break
        return self.monoid.combine(take_parts(both_sides, slice(None, n)), take_parts(both_sides, slice(n, None)))


class StandingPrefix(StandingStore):
    """Running combinations of each key: a range is the one up to its end without the one before its beginning.

    Both are kept for every slot, so that a range needs no slot outside of its own.
    """

    def build(self, regions: list[Region]) -> None:
        size = len(self.leaves[0])
        self.upto, self.before = self.monoid.identities(size), self.monoid.identities(size)
        for region in regions:
            self._run(region.front, region.end, region.front)

    def resized(self, size: int) -> None:
        self.upto, self.before = (
            concat_parts([running, self.monoid.identities(size - len(running[0]))])
            for running in (self.upto, self.before)
        )

    def moved(self, source: int, target: int, length: int) -> None:
        for part in (*self.upto, *self.before):
            part[target : target + length] = part[source : source + length].copy()

    def changed(self, low: int, high: int, region: Region, came: Parts | None) -> bool:
        behind = region.end - low
        if behind > 2 * region.length.bit_length():
            return False
        if behind > 1 or low == region.front:
            self._run(low, region.end, region.front)
            return True
        at, base = slice(low, low + 1), slice(low - 1, low)
        if came is None:
            came = take_parts(self.leaves, at)
            self.before = assign(self.before, at, take_parts(self.upto, base))
        else:
            base = at
        total = self.monoid.combine(take_parts(self.upto, base), came)
        if _outgrown(total, self.upto):
            self._run(region.front, region.end, region.front)
        else:
            self.upto = assign(self.upto, at, total)
        return True

    def _run(self, low: int, end: int, front: int) -> None:
        """Running values from ``low`` on; before they would leave their type, they start anew at the front."""
        leaves = take_parts(self.leaves, slice(low, end))
        if not len(leaves[0]):
            return
        first = take_parts(self.leaves, slice(low, low + 1))
        base = self.monoid.identities(1)
        if low > front:
            base = take_parts(self.upto, slice(low - 1, low))
            first = self.monoid.combine(base, first)
        running = (
            self.monoid.scan(concat_parts([first, take_parts(leaves, slice(1, None))])) if end - low > 1 else first
        )
        if low > front and _outgrown(running, self.upto):
            self._run(front, end, front)
            return
        self.upto = assign(self.upto, slice(low, end), running)
        self.before = assign(self.before, slice(low, low + 1), base)
        self.before = assign(self.before, slice(low + 1, end), take_parts(running, slice(0, -1)))

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        answers = self.monoid.invert(take_parts(self.upto, high - 1), take_parts(self.before, low))
        failed = self.monoid.failed(answers)
        if not len(failed):
            return answers
        # What could not be computed over all slices may well be over those of the range.
        return put_parts(answers, failed, StandingLazy(self.monoid, self.leaves).query(low[failed], high[failed]))


def _outgrown(values: Parts, kept: Parts) -> bool:
    """Whether values have left the type in which they are kept."""
    return any(value.dtype.hasobject and not part.dtype.hasobject for value, part in zip(values, kept, strict=True))


STANDING: dict[str, type[StandingStore]] = {"lazy": StandingLazy, "eager": StandingTree, "prefix": StandingPrefix}
