"""CuttyStore: Cutty's aggregate store. Partials of slices by their ids, appended at the back, merged over any range.

P. Carbone, J. Traub, A. Katsifodimos, S. Haridi, V. Markl: "Cutty: Aggregate Sharing for User-Defined Windows", CIKM
2016, sections 5.2 and 5.4. This is an interpretation of it: nodes above partials that were removed are emptied instead
of combined again, because no merge reads them before the slots below are in use once more.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError
from slicewise.same import is_same, magnitude
from slicewise.swag.base import EmptyWindowError, FactCard
from slicewise.swag.fixed_aggregator import HOLE, FixedAggregator

__all__ = ["CuttyStore"]


class CuttyStore:
    """Partials in a circle of slots, with a tree of aggregates above them (eager) or without one (lazy).

    Four slices, the first of which is removed; the next takes its slot. A node above a removed slot is empty until its
    slots are in use again, and combining with an empty node takes no call::

        append 0..3                    remove_up_to(1)             append 4

               abcd                          _                        ebcd         never read: 4 stands before 1
             ab    cd                    _       cd                eb      cd
            a  b  c  d                 _   b   c   d             e   b   c   d

        merge(1) = b + cd, then e

    The number of slots is doubled when all are in use, and halved when a removal leaves a third of them or fewer.

    Parameters
    ----------
    aggregate
        The aggregate whose partials are kept, such as ``sw.max()``.
    eager
        Whether aggregates of runs of partials are kept too, so that a merge combines a few of those; otherwise it
        combines the partials one by one.

    Attributes
    ----------
    facts
        Its :class:`~slicewise.swag.FactCard`.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> store = CuttyStore(concat())
    >>> for number, partial in enumerate("abcd"):
    ...     store.append(number, partial)
    >>> store.merge(1), store.merge(1, 2)
    ('bcd', 'bc')
    >>> store.remove_up_to(1)
    >>> store.append(4, "e")
    >>> store.merge(1), len(store)
    ('bcde', 4)
    >>> list(store.partials())
    ['b', 'c', 'd', 'e']
    """

    facts = FactCard(
        needs="associative",
        order="any range; removed from the front",
        time="eager: append log2 n combines, merge 2 log2 n; lazy: append none, merge r - 1 of r partials; remove none",
        space="eager 2n, lazy n, up to three times as much before it is halved",
        published="Carbone et al., CIKM 2016",
    )

    def __init__(self, aggregate: Aggregate, eager: bool = True) -> None:
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"`aggregate` must be an aggregate such as sw.sum(); got {aggregate!r}")
        self.aggregate = aggregate
        self.eager = eager
        self._combine = aggregate.combine
        # Partials are numbered as they come; number p stands in slot p & (capacity - 1). In the order of the dict, too.
        self._numbers: dict[Hashable, int] = {}
        self._next = 0
        self._slots = self._circle([HOLE])

    def _circle(self, values: list[Any]) -> FixedAggregator | _Circle:
        return FixedAggregator(self._combine, values) if self.eager else _Circle(self._combine, values)

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: Hashable) -> bool:
        """Whether the partial with this id is in the store."""
        return name in self._numbers

    def __iter__(self) -> Iterator[Hashable]:
        """The ids, from the front."""
        return iter(self._numbers)

    @property
    def capacity(self) -> int:
        """The number of slots, a power of two."""
        return self._slots.capacity

    def append(self, name: Hashable, partial: Any) -> None:
        """Add a partial at the back.

        Parameters
        ----------
        name
            Its id, under which no other partial is in the store: the number of its first record, for example.
        partial
            The partial: lifted values, combined.

        Raises
        ------
        QueryError
            If the id is in use.

        Notes
        -----
        Runtime complexity: O(log n) amortised, log2 n combines; lazy O(1), none. Doubling takes n - 1 more.
        """
        if name in self._numbers:
            raise QueryError(f"the store holds a partial with id {name!r} already; ids must be unique")
        slots = self._slots
        if len(self._numbers) == slots.capacity:
            slots = self._resized(2 * slots.capacity, self._next - len(self))
        slot = self._next & (slots.capacity - 1)
        try:
            slots.write(slot, partial)
        except BaseException:  # a partial that cannot be combined: as if it had never come
            _empty(slots, [slot])
            raise
        self._slots = slots
        self._numbers[name] = self._next
        self._next += 1

    def merge(self, start: Hashable, end: Hashable | None = None) -> Any:
        """The aggregate of a run of partials.

        Parameters
        ----------
        start, end
            The ids of the first and of the last one, both included; by default up to the back.

        Returns
        -------
        Any
            A partial, which is not lowered.

        Raises
        ------
        EmptyWindowError
            If one of them is not in the store, or ``end`` was appended before ``start``.

        Notes
        -----
        Runtime complexity: O(log n), at most 2 log2 n combines; lazy O(r), r - 1 for r partials.
        """
        first = self._number_of(start)
        last = self._next - 1 if end is None else self._number_of(end)
        if last < first:
            raise EmptyWindowError(f"cannot merge from {start!r} to {end!r}, which was appended before it")
        mask = self._slots.capacity - 1
        low, high = first & mask, last & mask
        if low <= high:
            return self._slots.between(low, high + 1)
        front, back = self._slots.between(low, mask + 1), self._slots.between(0, high + 1)
        return self._combine(front, back)

    def remove_up_to(self, name: Hashable) -> None:
        """Remove the partials before the one with this id, which stays.

        Parameters
        ----------
        name
            The id of the first partial that stays.

        Raises
        ------
        EmptyWindowError
            If it is not in the store, which is then unchanged.

        Notes
        -----
        Runtime complexity: O(m) for m partials, no combine. Halving takes n - 1.
        """
        stays, capacity = self._number_of(name), self._slots.capacity
        first, mask = self._next - len(self), capacity - 1
        while capacity > 1 and 3 * (self._next - stays) <= capacity:
            capacity //= 2
        if capacity <= mask:
            self._slots = self._resized(capacity, stays)
        else:
            _empty(self._slots, [number & mask for number in range(first, stays)])
        for one in list(islice(self._numbers, stays - first)):
            del self._numbers[one]

    def _number_of(self, name: Hashable) -> int:
        try:
            return self._numbers[name]
        except KeyError:
            held = f"ids {next(iter(self._numbers))!r} to {next(reversed(self._numbers))!r}" if len(self) else "nothing"
            raise EmptyWindowError(f"the store has no partial with id {name!r}; it holds {held}") from None

    def _resized(self, capacity: int, first: int) -> FixedAggregator | _Circle:
        """The partials from number ``first`` on in another number of slots."""
        values = [HOLE] * capacity
        for number in range(first, self._next):
            values[number & (capacity - 1)] = self._partial(number)
        return self._circle(values)

    def _partial(self, number: int) -> Any:
        return self._slots.nodes[-self._slots.capacity + (number & (self._slots.capacity - 1))]

    def partials(self) -> Iterator[Any]:
        """The partials, from the front.

        Yields
        ------
        Any
            One partial after the other.
        """
        return (self._partial(number) for number in self._numbers.values())

    def _check(self) -> None:
        capacity = self._slots.capacity
        assert capacity & (capacity - 1) == 0
        assert capacity == 1 or 3 * len(self) > capacity
        assert list(self._numbers.values()) == list(range(self._next - len(self), self._next))
        leaves = self._slots.nodes[-capacity:]
        assert sum(leaf is not HOLE for leaf in leaves) == len(self)
        held = list(self.partials())
        assert all(partial is not HOLE for partial in held)
        for first in range(0, len(self), max(1, len(self) // 4)):
            total = held[first]
            for partial in held[first + 1 :]:
                total = self._combine(total, partial)
            name = next(islice(self._numbers, first, None))
            # Floats are added in another order than one by one.
            assert is_same(self.merge(name), total, magnitude([*held, total]))


class _Circle:
    """Slots without a tree, for the lazy store: the same methods, a fold of single partials."""

    def __init__(self, combine: Any, values: list[Any]) -> None:
        self.combine, self.nodes, self.capacity = combine, values, len(values)

    def write(self, slot: int, value: Any) -> None:
        self.nodes[slot] = value

    def between(self, start: int, end: int) -> Any:
        total = self.nodes[start]
        for partial in islice(self.nodes, start + 1, end):
            total = self.combine(total, partial)
        return total


def _empty(slots: FixedAggregator | _Circle, numbers: list[int]) -> None:
    """Empty some slots and all nodes above them, without combining anything."""
    if isinstance(slots, _Circle):
        for slot in numbers:
            slots.nodes[slot] = HOLE
        return
    level = {slots.capacity + slot for slot in numbers}
    while level:
        for node in level:
            slots.nodes[node] = HOLE
        level = {node >> 1 for node in level if node > 1}
