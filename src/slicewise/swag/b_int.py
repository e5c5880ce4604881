"""BInt: dyadic intervals, each level twice as long as the one below; a range is a few of them end to end.

A. Arasu, J. Widom: "Resource sharing in continuous sliding-window aggregates", VLDB 2004 (Base Intervals). An
interpretation from its description in SlickDeque (EDBT 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import FactCard, SlidingWindow

__all__ = ["BInt"]


class BInt(SlidingWindow):
    """Level ``l`` holds the aggregates of the intervals ``[i * 2**l, (i + 1) * 2**l)``, in a circle.

    A new value is combined into the last interval of each level. Those are not complete, but end where the window ends,
    so that a range to the back is covered by ever longer intervals, the last one perhaps incomplete. Values 1 to 6 have
    come in here, value 0 has left; what it was part of will not be used again::

        level 0     x   b   c   d   e   f   g
        level 1     xxxxx   cdddd   efff    g
        level 2     xxxxxxxxxxxxx   efg
        query()         b + cd    + efg              two combines

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = BInt(concat())
    >>> window.insert_many("abcdefg")
    >>> window.evict()
    >>> window._levels[1][:4], window._levels[2][1]
    (['ab', 'cd', 'ef', 'g'], 'efg')
    >>> window.query(), window.query(last=5)
    ('bcdefg', 'cdefg')
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out",
        time="insert log2 n combines, query log2 n",
        space="2n, below 4n if n is no power of two",
        published="Arasu and Widom, VLDB 2004",
    )
    several_ranges = True

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self._front = self._back = 0
        self._levels: list[list[Any]] = [[None]]

    def __len__(self) -> int:
        return self._back - self._front

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(log n), one combine per level above the lowest, less where an interval begins.
        """
        self._push(self._lift(value))

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back."""
        for partial in self._lift_all(values):
            self._push(partial)

    def _push(self, partial: Any) -> None:
        position, levels = self._back, self._levels
        if position - self._front == len(levels[0]):
            self._resize(2 * len(levels[0]))
            levels = self._levels
        combine, front = self._combine, self._front
        fresh = []
        for level, ring in enumerate(levels):
            start = position >> level << level
            if start < front:
                break  # it began with a value that has left, as did all above: never to be used again
            at = (position >> level) & (len(ring) - 1)
            fresh.append(partial if start == position else combine(ring[at], partial))
        # Written only now, so that a `combine` that raises leaves all as it was.
        for level, interval in enumerate(fresh):
            ring = levels[level]
            ring[(position >> level) & (len(ring) - 1)] = interval
        self._back = position + 1

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(1) amortised, no combine.
        """
        self._check_evict(n)
        self._front += n
        capacity = len(self._levels[0])
        while capacity > 1 and len(self) < capacity // 4:
            capacity //= 2
        if capacity < len(self._levels[0]):
            self._resize(capacity)

    def _resize(self, capacity: int) -> None:
        """Lay the intervals out in larger or smaller circles. A new top level is the one below, combined in pairs."""
        front, back, old = self._front, self._back, self._levels
        self._levels = []
        for level in range(capacity.bit_length()):
            size = capacity >> level
            ring: list[Any] = [None] * size
            # Only intervals that begin in the window are of use.
            for i in range(-(-front >> level), ((back - 1) >> level) + 1):
                ring[i & (size - 1)] = (
                    self._pair(i, level) if level == len(old) else old[level][i & (len(old[level]) - 1)]
                )
            self._levels.append(ring)

    def _pair(self, i: int, level: int) -> Any:
        below = self._levels[level - 1]
        left, right = below[2 * i & (len(below) - 1)], below[(2 * i + 1) & (len(below) - 1)]
        begun = (2 * i + 1) << (level - 1) < self._back
        return self._combine(left, right) if begun else left

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(log n), at most log2 n combines.
        """
        back = self._back
        if last is not None:
            self._check_last(last)
            position = back - last
        elif back == self._front:
            return self._lower(self.aggregate.identity)
        else:
            position = self._front
        levels, combine, top = self._levels, self._combine, len(self._levels) - 1
        total, started = None, False
        while position < back:
            # The longest interval that begins here: as many levels up as the position has zeros at its end.
            level = min((position & -position).bit_length() - 1, top) if position else top
            ring = levels[level]
            interval = ring[(position >> level) & (len(ring) - 1)]
            total = combine(total, interval) if started else interval
            started = True
            position += 1 << level
        return self._lower(total)

    def _oldest(self) -> Iterator[Any]:
        ring = self._levels[0]
        return (ring[position & (len(ring) - 1)] for position in range(self._front, self._back))

    def _check(self) -> None:
        capacity = len(self._levels[0])
        assert [len(ring) for ring in self._levels] == [capacity >> level for level in range(capacity.bit_length())]
        assert len(self) <= capacity
        assert capacity == 1 or len(self) >= capacity // 4
