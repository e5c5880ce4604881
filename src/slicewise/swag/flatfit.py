"""FlatFIT: remember how far each answer reached, and skip ahead that far the next time.

A. U. Shein, P. K. Chrysanthis, A. Labrinidis: "FlatFIT: Accelerated incremental sliding-window aggregation for
real-time analytics", SSDBM 2017 (Flat and Fast Index Traverser). An interpretation from its description and analysis in
SlickDeque (EDBT 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError
from slicewise.swag.base import FactCard, SlidingWindow

__all__ = ["FlatFIT"]


class FlatFIT(SlidingWindow):
    """Two circular arrays: ``partials[i]`` is the aggregate from value ``i`` up to, not including, ``pointers[i]``.

    A value comes in with a pointer to the next. A query follows the pointers from the start of its range to the back
    and folds what it found there from right to left; on the way every place that was visited learns the aggregate
    from it to the back::

        position           0      1      2      3
        insert a, b, c     a->1   b->2   c->3
        query()            abc->3 bc->3  c->3            visits 0, 1, 2
        evict, insert d           bc->3  c->3   d->4
        query()                   bcd->4 c->3   d->4     visits 1, 3

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    keep_values
        Keep the partial of every single value too, which ``enforce`` needs; n more of space.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = FlatFIT(concat())
    >>> window.insert_many("abc")
    >>> window.query()
    'abc'
    >>> window._partials[:3], window._pointers[:3]
    (['abc', 'bc', 'c'], [3, 3, 3])
    >>> window.evict()
    >>> window.insert("d")
    >>> window.query(), window.query(last=2)
    ('bcd', 'cd')
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out",
        time="3 combines per slide amortised, n worst; all ranges n per slide",
        space="2n",
        published="Shein et al., SSDBM 2017",
    )
    several_ranges = True

    def __init__(self, aggregate: Aggregate, keep_values: bool = False) -> None:
        super().__init__(aggregate)
        self._front = self._back = 0
        self._partials: list[Any] = [None] * 4
        self._pointers = [0] * 4
        self._values: list[Any] | None = [None] * 4 if keep_values else None

    def __len__(self) -> int:
        return self._back - self._front

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1) amortised, no combine.
        """
        self._push(self._lift(value))

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back."""
        for partial in self._lift_all(values):
            self._push(partial)

    def _push(self, partial: Any) -> None:
        back = self._back
        if back - self._front == len(self._partials):
            self._resize(2 * len(self._partials))
        at = back & (len(self._partials) - 1)
        self._partials[at] = partial
        self._pointers[at] = self._back = back + 1
        if self._values is not None:
            self._values[at] = partial

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(1) amortised, no combine.
        """
        self._check_evict(n)
        partials, mask = self._partials, len(self._partials) - 1
        for position in range(self._front, self._front + n):
            partials[position & mask] = None
            if self._values is not None:
                self._values[position & mask] = None
        self._front += n
        capacity = len(partials)
        while capacity > 4 and len(self) < capacity // 4:
            capacity //= 2
        if capacity < len(partials):
            self._resize(capacity)

    def _resize(self, capacity: int) -> None:
        self._partials = self._moved(self._partials, capacity, None)
        self._pointers = self._moved(self._pointers, capacity, 0)
        if self._values is not None:
            self._values = self._moved(self._values, capacity, None)

    def _moved(self, ring: list[Any], capacity: int, filler: Any) -> list[Any]:
        old, new, moved = len(ring) - 1, capacity - 1, [filler] * capacity
        for position in range(self._front, self._back):
            moved[position & new] = ring[position & old]
        return moved

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(1) amortised for one range per slide; one combine if the same range was asked at the last
        slide, and so n - 1 for all of them together.
        """
        back = self._back
        if last is not None:
            self._check_last(last)
            position = back - last
        elif back == self._front:
            return self._lower(self.aggregate.identity)
        else:
            position = self._front
        partials, pointers, mask = self._partials, self._pointers, len(self._partials) - 1
        positions: list[int] = []
        at = position & mask
        while pointers[at] != back:
            positions.append(at)
            at = pointers[at] & mask
        total = partials[at]
        if positions:
            combine = self._combine
            for at in reversed(positions):
                partials[at] = total = combine(partials[at], total)
                pointers[at] = back
        return self._lower(total)

    def _oldest(self) -> Iterator[Any]:
        if self._values is None:
            raise QueryError(
                "`FlatFIT` overwrites single values with aggregates and does not know the oldest ones; build it with "
                "keep_values=True to enforce a policy"
            )
        values, mask = self._values, len(self._values) - 1
        return (values[position & mask] for position in range(self._front, self._back))

    def _check(self) -> None:
        capacity = len(self._partials)
        assert len(self._pointers) == capacity
        assert capacity & (capacity - 1) == 0
        assert len(self) <= capacity
        assert capacity <= 4 or len(self) >= capacity // 4
        for position in range(self._front, self._back):
            assert position < self._pointers[position & (capacity - 1)] <= self._back
