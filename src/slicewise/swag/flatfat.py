"""FlatFAT: a binary tree of aggregates in one flat array, its leaves used as a circular buffer.

K. Tangwongsan, M. Hirzel, S. Schneider, K.-L. Wu: "General incremental sliding-window aggregation", PVLDB 2015.
:class:`FlatFAT` is section 5; its tree (section 4) is in :mod:`slicewise.swag.fixed_aggregator`, the batching of events
next door in :mod:`slicewise.swag.reactive`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError
from slicewise.swag.base import EmptyWindowError, FactCard, SlidingWindow
from slicewise.swag.fixed_aggregator import HOLE, FixedAggregator

__all__ = ["HOLE", "FixedAggregator", "FlatFAT"]


class FlatFAT(SlidingWindow):
    """A window in the slots of a tree: values enter behind B, leave at F, and both go round in a circle.

    The paper's Figure 5, a window of the latest four numbers. In the last line the buffer is *inverted*, back before
    front: its aggregate is that of the slots from F on, then of those up to B. If the order does not matter it is the
    root all the same::

        4 arrives    F4B  _   _   _
        7 arrives    F4   7B  _   _
        3, 2 arrive  F4   7   3   2B
        4 leaves      _  F7   3   2B
        9 arrives     9B F7   3   2        7 3 2 then 9

    Values may leave from anywhere (:meth:`evict_at`); then there are holes between F and B, and where no slot is left
    behind B the values are moved together (*compact*) if at most 3/4 of the slots are in use. Otherwise the capacity is
    doubled; it is halved when less than 1/4 is in use (*resize*). Without holes nothing is ever compacted, and nothing
    has to be kept but the tree.

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    capacity
        The number of slots to begin with, a power of two.

    Examples
    --------
    >>> from slicewise.aggregates import collect_list
    >>> window = FlatFAT(collect_list(), capacity=4)
    >>> window.insert_many([4, 7, 3, 2])
    >>> window.evict()
    >>> window.insert(9)
    >>> window.query(), window._tree.nodes[4:]
    ([7, 3, 2, 9], [(9,), (7,), (3,), (2,)])
    >>> window.evict_at(2)
    >>> window.query(), window.query(last=2)
    ([7, 2, 9], [2, 9])
    """

    facts = FactCard(
        needs="associative",
        order="any: insert_at, update and evict_at anywhere",
        time="insert and evict log2 n combines, m at once m(1 + ceil(log2(n/m))); query 2 log2 n, none if commutative",
        space="2n, below 4n if n is no power of two",
        published="Tangwongsan et al., PVLDB 2015",
    )
    several_ranges = True

    def __init__(self, aggregate: Aggregate, capacity: int = 1) -> None:
        super().__init__(aggregate)
        if not isinstance(capacity, int) or isinstance(capacity, bool) or capacity < 1 or capacity & (capacity - 1):
            raise QueryError(f"`capacity` must be a power of two; got {capacity!r}")
        self._tree = FixedAggregator(self._combine, [HOLE] * capacity)
        self._front = 0  # the slot of the oldest value
        self._span = 0  # the number of slots from front to back, holes included
        self._size = 0
        #: The number of values inserted so far, which is the number of the next one.
        self.inserted = 0
        # The numbers of the values by slot; None as long as they follow one another.
        self._numbers: list[int] | None = None
        # Whether they ascend from front to back, as they do unless a value came in between.
        self._ascending = True

    def __len__(self) -> int:
        return self._size

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(log n) amortised, log2 n combines.
        """
        self._append([self._lift(value)])

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back, in one update of the tree."""
        self._append(self._lift_all(values))

    def _append(self, partials: list[Any]) -> None:
        self._make_room(len(partials))
        mask = self._tree.capacity - 1
        first = self._front + self._span
        try:
            if len(partials) == 1:
                self._write(first & mask, partials[0])
            else:
                self._update({(first + i) & mask: partial for i, partial in enumerate(partials)})
        except Exception:  # a value that cannot be combined: as if it had never come
            self._tree.update({(first + i) & mask: HOLE for i in range(len(partials))})
            raise
        if self._numbers is not None:
            for i in range(len(partials)):
                self._numbers[(first + i) & mask] = self.inserted + i
        self._span += len(partials)
        self._size += len(partials)
        self.inserted += len(partials)

    def insert_at(self, position: int, value: Any) -> None:
        """Add a value anywhere in the window. Values before it or behind it move on by a slot, up to the next free one.

        Parameters
        ----------
        position
            The place it has then, from the front: 0 for the oldest, ``len`` for a value at the back. Its number for
            :meth:`evict_at` is ``inserted``, wherever it stands.
        value
            The value, None for a null; a tuple or a mapping for an aggregate of several columns.

        Raises
        ------
        EmptyWindowError
            If the window holds fewer than ``position`` values.

        Notes
        -----
        Runtime complexity: O(m + m log(n/m)), at most ``(m + 1) * (1 + ceil(log2(n / (m + 1))))`` combines, if m values
        move: no more than there are on the nearer side.

        Examples
        --------
        >>> from slicewise.aggregates import concat
        >>> window = FlatFAT(concat())
        >>> window.insert_many("abd")
        >>> window.insert_at(2, "c")
        >>> window.update(0, "A")
        >>> window.query()
        'Abcd'
        """
        self._check_position(position, self._size)
        partial = self._lift(value)
        if position == self._size:
            self._append([partial])
            return
        self._make_room(1)
        self._number()
        moves, grown, front = self._moves(self._find(self._size - position))
        nodes, capacity, numbers = self._tree.nodes, self._tree.capacity, self._numbers
        assert numbers is not None
        before = {to: (nodes[capacity + to], numbers[to]) for to, _ in moves}
        after = {
            to: (partial, self.inserted) if old is None else (nodes[capacity + old], numbers[old]) for to, old in moves
        }
        try:
            self._update({slot: moved for slot, (moved, _) in after.items()})
        except Exception:  # a value that cannot be combined: as if it had never come
            self._tree.update({slot: moved for slot, (moved, _) in before.items()})
            raise
        for slot, (_, number) in after.items():
            numbers[slot] = number
        self._front, self._span = front, self._span + grown
        self._ascending = False
        self._size += 1
        self.inserted += 1

    def _moves(self, slot: int) -> tuple[list[tuple[int, int | None]], int, int]:
        """Which slots take over from which for a value to stand before the one in ``slot``; then more slots, and front.

        To whichever side a free slot is nearer::

            F a b c d          x before b         F a x b c d        three move towards the back
            _ F a b c d        x before b       F a x b c d          one moves towards the front
        """
        nodes, capacity = self._tree.nodes, self._tree.capacity
        mask, at = capacity - 1, (slot - self._front) & (capacity - 1)
        for far in range(capacity):
            if nodes[capacity + ((slot + far) & mask)] is HOLE:
                way = [(slot + i) & mask for i in range(far, -1, -1)]
                return list(zip(way, [*way[1:], None], strict=True)), int(at + far >= self._span), self._front
            if nodes[capacity + ((slot - 1 - far) & mask)] is HOLE:
                way = [(slot - 1 - i) & mask for i in range(far, -1, -1)]
                grown = int(far >= at)
                return list(zip(way, [*way[1:], None], strict=True)), grown, (self._front - grown) & mask
        raise AssertionError("there is room for one more")

    def update(self, position: int, value: Any) -> None:
        """Put another value in the place of one.

        Parameters
        ----------
        position
            The place from the front: 0 for the oldest value.
        value
            The value that stands there then.

        Raises
        ------
        EmptyWindowError
            If there is no value at that position.

        Notes
        -----
        Runtime complexity: O(log n), log2 n combines. With holes, O(n) steps to find the value.

        Examples
        --------
        >>> from slicewise.aggregates import sum
        >>> window = FlatFAT(sum())
        >>> window.insert_many([4, 7, 3])
        >>> window.update(1, 5)
        >>> window.query()
        12
        """
        self._check_position(position, self._size - 1)
        partial, slot = self._lift(value), self._find(self._size - position)
        before = self._tree.nodes[self._tree.capacity + slot]
        try:
            self._write(slot, partial)
        except Exception:
            self._tree.update({slot: before})
            raise

    def _check_position(self, position: int, last: int) -> None:
        if not isinstance(position, int) or isinstance(position, bool) or position < 0:
            raise QueryError(f"`position` must count the values from 0, from the front; got {position!r}")
        if position > last:
            raise EmptyWindowError(
                f"position {position} is not in the window, which holds {self._size} values; the window is unchanged"
            )

    def _write(self, slot: int, partial: Any) -> None:
        self._tree.write(slot, partial)

    def _update(self, changes: dict[int, Any]) -> None:
        self._tree.update(changes)

    def _make_room(self, n: int) -> None:
        capacity = self._tree.capacity
        if self._span + n <= capacity:
            return
        if 4 * self._size <= 3 * capacity and self._size + n <= capacity:
            self._compact()
            return
        while capacity < self._size + n:
            capacity *= 2
        # The paper doubles when more than 3/4 is in use, though compacting would make room for one more.
        self._resize(capacity if capacity > self._tree.capacity else 2 * capacity)

    def _slots(self) -> Iterator[int]:
        """The slots of the values, from the oldest to the newest."""
        nodes, capacity = self._tree.nodes, self._tree.capacity
        for i in range(self._front, self._front + self._span):
            slot = i & (capacity - 1)
            if nodes[capacity + slot] is not HOLE:
                yield slot

    def _compact(self) -> None:
        """Move the values together, to the left; only nodes above slots that change are recombined."""
        nodes, capacity = self._tree.nodes, self._tree.capacity
        slots = list(self._slots())
        numbers = self._numbers
        if numbers is not None:
            self._numbers = [numbers[s] for s in slots] + [0] * (capacity - len(slots))
        packed = [nodes[capacity + s] for s in slots] + [HOLE] * (capacity - len(slots))
        self._update({i: p for i, p in enumerate(packed) if p is not nodes[capacity + i]})
        self._front, self._span = 0, self._size

    def _resize(self, capacity: int) -> None:
        nodes, old = self._tree.nodes, self._tree.capacity
        slots = list(self._slots())
        padding = capacity - len(slots)
        if self._numbers is not None:
            self._numbers = [self._numbers[s] for s in slots] + [0] * padding
        self._tree = FixedAggregator(self._combine, [nodes[old + s] for s in slots] + [HOLE] * padding)
        self._front, self._span = 0, self._size

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(log n) amortised for one value, at most log2 n combines.
        """
        self._check_evict(n)
        if not n:
            return
        if n == 1:
            self._write(self._front, HOLE)
            self._span -= 1
            self._front = (self._front + 1) & (self._tree.capacity - 1)
        else:
            slots = self._oldest_slots(n)
            self._update(dict.fromkeys(slots, HOLE))
            gone = ((slots[-1] - self._front) & (self._tree.capacity - 1)) + 1
            self._span -= gone
            self._front = (self._front + gone) & (self._tree.capacity - 1)
        self._size -= n
        self._settle()

    def _oldest_slots(self, n: int) -> list[int]:
        if self._span == self._size:
            mask = self._tree.capacity - 1
            return [i & mask for i in range(self._front, self._front + n)]
        slots = self._slots()
        return [next(slots) for _ in range(n)]

    def evict_at(self, number: int) -> None:
        """Remove one value from anywhere in the window.

        Parameters
        ----------
        number
            The place of the value among all that were ever inserted, counted from 0. The next value to be inserted has
            the number ``inserted``.

        Raises
        ------
        EmptyWindowError
            If that value is not in the window.

        Notes
        -----
        Runtime complexity: O(log n) amortised, at most log2 n combines; O(n) the first time, and after ``insert_at``.
        """
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise QueryError(f"`number` must count the values from 0; got {number!r}")
        slot = self._slot_of(number)
        if slot is None:
            raise EmptyWindowError(
                f"value number {number} is not in the window, which holds {self._size} of the {self.inserted} values "
                "inserted; the window is unchanged"
            )
        self._number()
        self._write(slot, HOLE)
        self._size -= 1
        self._settle()

    def _number(self) -> None:
        """Write the numbers of the values down, because from now on they do not follow one another."""
        if self._numbers is None:
            capacity, first = self._tree.capacity, self.inserted - self._size
            self._numbers = [0] * capacity
            for i in range(self._span):
                self._numbers[(self._front + i) & (capacity - 1)] = first + i

    def _slot_of(self, number: int) -> int | None:
        mask, numbers = self._tree.capacity - 1, self._numbers
        if numbers is None:
            i = number - (self.inserted - self._size)
        elif not self._ascending:
            places = (j for j in range(self._span) if numbers[(self._front + j) & mask] == number)
            i = next((j for j in places if self._tree.nodes[mask + 1 + ((self._front + j) & mask)] is not HOLE), -1)
        else:
            # Over holes too.
            i = bisect_left(range(self._span), number, key=lambda j: numbers[(self._front + j) & mask])
            if i < self._span and numbers[(self._front + i) & mask] != number:
                return None
        slot = (self._front + i) & mask
        if not 0 <= i < self._span or self._tree.nodes[mask + 1 + slot] is HOLE:
            return None
        return slot

    def _settle(self) -> None:
        """After an eviction: no holes at either end, and not too large a tree."""
        capacity = self._tree.capacity
        if self._span != self._size:
            nodes, mask = self._tree.nodes, capacity - 1
            while self._span and nodes[capacity + self._front] is HOLE:
                self._front = (self._front + 1) & mask
                self._span -= 1
            while self._span and nodes[capacity + ((self._front + self._span - 1) & mask)] is HOLE:
                self._span -= 1
        if self._numbers is not None and self._follow_one_another():
            self._numbers, self._ascending = None, True
        while capacity > 1 and 4 * self._size < capacity:
            capacity //= 2
        if capacity < self._tree.capacity:
            self._resize(capacity)

    def _follow_one_another(self) -> bool:
        if not self._size:
            return True
        assert self._numbers is not None
        return self._ascending and self.inserted - self._numbers[self._front] == self._size

    def _is_inverted(self) -> bool:
        return self._front + self._span > self._tree.capacity

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(1) and no combine for the whole window, unless it is inverted and the order matters: then,
        and for ``last``, O(log n), at most 2 log2 n combines. With holes, O(last) steps to find the first value.
        """
        if last is not None:
            self._check_last(last)
            if last < self._size:
                return self._lower(self._since(self._find(last)))
        if not self._size:
            return self._lower(self.aggregate.identity)
        if self.aggregate.commutative or not self._is_inverted():
            return self._lower(self._tree.aggregate())
        return self._lower(self._since(self._front))

    def _find(self, last: int) -> int:
        """The slot of the ``last``-th value from the back."""
        nodes, capacity = self._tree.nodes, self._tree.capacity
        i = self._front + self._span
        if self._span == self._size:
            return (i - last) & (capacity - 1)
        while last:
            i -= 1
            last -= nodes[capacity + (i & (capacity - 1))] is not HOLE
        return i & (capacity - 1)

    def _since(self, slot: int) -> Any:
        tree = self._tree
        back = (self._front + self._span - 1) & (tree.capacity - 1)
        if slot <= back:
            return tree.between(slot, back + 1)
        return tree.join(tree.suffix(slot), tree.prefix(back))

    def _oldest(self) -> Iterator[Any]:
        nodes, capacity = self._tree.nodes, self._tree.capacity
        return (nodes[capacity + slot] for slot in self._slots())

    def _check(self) -> None:
        nodes, capacity = self._tree.nodes, self._tree.capacity
        assert len(nodes) == 2 * capacity
        assert self._size <= self._span <= capacity
        used = list(self._slots())
        assert len(used) == self._size == sum(n is not HOLE for n in nodes[capacity:])
        assert self._numbers is not None or (self._span == self._size and self._ascending)
        if self._numbers is not None and self._ascending:
            numbers = [self._numbers[slot] for slot in used]
            assert numbers == sorted(set(numbers))
        if used:
            assert used[0] == self._front
            assert used[-1] == (self._front + self._span - 1) & (capacity - 1)
        assert capacity == 1 or 4 * self._size >= capacity
