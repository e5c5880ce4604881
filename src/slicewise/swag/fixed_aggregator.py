"""The fixed tree of FlatFAT: a power of two of slots, and the aggregate of any run of them.

K. Tangwongsan, M. Hirzel, S. Schneider, K.-L. Wu: "General incremental sliding-window aggregation", PVLDB 2015,
section 4. :class:`~slicewise.swag.FlatFAT` and :class:`~slicewise.swag.CuttyStore` put windows into the slots.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from slicewise.errors import QueryError

__all__ = ["HOLE", "FixedAggregator"]


class _Hole:
    """The paper's bottom: an unfilled slot. Combining with it gives the other value without a call."""

    def __repr__(self) -> str:
        return "_"


HOLE: Any = _Hole()


class FixedAggregator:
    """The tree: a fixed number of slots, a power of two, and the aggregate of any run of them.

    The root is node 1, the children of node i are 2i and 2i + 1, slot i is node n + i. Updating slots 0, 1, 3 and 6
    touches the marked nodes, once each::

                     1*
                2*        3*
              4*  5*    6   7*
              0 1 2 3   4 5 6 7
              ^ ^   ^       ^

    Parameters
    ----------
    combine
        An associative function; it is never called with a hole.
    values
        The contents of the slots, a power of two of them; :data:`HOLE` in an empty slot.

    Examples
    --------
    >>> tree = FixedAggregator(str.__add__, "abcdefgh")
    >>> tree.aggregate(), tree.prefix(2), tree.suffix(5)
    ('abcdefgh', 'abc', 'fgh')
    >>> tree.update({0: "A", 1: "B", 3: "D", 6: "G"})
    >>> tree.aggregate(), tree.between(1, 4)
    ('ABcDefGh', 'BcD')
    >>> tree.nodes[1:8]
    ['ABcDefGh', 'ABcD', 'efGh', 'AB', 'cD', 'ef', 'Gh']
    """

    def __init__(self, combine: Callable[[Any, Any], Any], values: Sequence[Any]) -> None:
        self.combine = combine
        self.capacity = len(values)
        if not self.capacity or self.capacity & (self.capacity - 1):
            raise QueryError(f"`values` must be as many as a power of two; got {self.capacity}")
        self.nodes: list[Any] = [HOLE] * self.capacity + list(values)
        for node in range(self.capacity - 1, 0, -1):
            self._recombine(node)

    def _recombine(self, node: int) -> None:
        left, right = self.nodes[2 * node], self.nodes[2 * node + 1]
        if left is HOLE:
            self.nodes[node] = right
        elif right is HOLE:
            self.nodes[node] = left
        else:
            self.nodes[node] = self.combine(left, right)

    def write(self, slot: int, value: Any) -> None:
        """Change one slot.

        Runtime complexity: O(log n), log2 n combines.
        """
        nodes, combine = self.nodes, self.combine
        node = self.capacity + slot
        nodes[node] = value
        while node > 1:
            node >>= 1
            left, right = nodes[2 * node], nodes[2 * node + 1]
            nodes[node] = right if left is HOLE else left if right is HOLE else combine(left, right)

    def update(self, changes: dict[int, Any]) -> None:
        """Change some slots, and each node above them once.

        Runtime complexity: O(m + m log(n/m)), at most ``m * (1 + ceil(log2(n / m)))`` combines for m slots.
        """
        for slot, value in changes.items():
            self.nodes[self.capacity + slot] = value
        self.repair(changes)

    def repair(self, slots: Iterable[int]) -> None:
        """Recombine everything above these slots, level by level."""
        capacity, recombine = self.capacity, self._recombine
        level = {(capacity + slot) >> 1 for slot in slots} if capacity > 1 else set()
        while level:
            for node in level:
                recombine(node)
            level = {node >> 1 for node in level if node > 1}

    def aggregate(self) -> Any:
        """The aggregate of all slots.

        Runtime complexity: O(1), no combine.
        """
        return self.nodes[1]

    def prefix(self, slot: int) -> Any:
        """The aggregate of the slots up to and including ``slot``.

        Runtime complexity: O(log n), at most log2 n combines.
        """
        return self.between(0, slot + 1)

    def suffix(self, slot: int) -> Any:
        """The aggregate of the slots from ``slot`` on.

        Runtime complexity: O(log n), at most log2 n combines.
        """
        return self.between(slot, self.capacity)

    def between(self, start: int, end: int) -> Any:
        """The aggregate of the slots ``[start, end)``, from the fewest nodes that cover them.

        Runtime complexity: O(log n), one combine less than there are nodes.
        """
        nodes, join = self.nodes, self.join
        left = right = HOLE
        start += self.capacity
        end += self.capacity
        while start < end:
            if start & 1:
                left = join(left, nodes[start])
                start += 1
            if end & 1:
                end -= 1
                right = join(nodes[end], right)
            start >>= 1
            end >>= 1
        return join(left, right)

    def join(self, a: Any, b: Any) -> Any:
        """Combine two, either of which may be a hole."""
        return b if a is HOLE else a if b is HOLE else self.combine(a, b)
