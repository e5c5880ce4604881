"""LeafTree: FlatFAT's tree over leaves that may come in anywhere. Used by the aggregate tree and by eager slicing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from slicewise.swag.fixed_aggregator import HOLE, FixedAggregator

__all__ = ["LeafTree"]


class LeafTree:
    """Leaves in order, with a tree of aggregates above them.

    Leaves that are dropped from the front leave their slots, and nothing above them is computed again: no range reads a
    node that covers them. The rest moves to the left, into as many slots as are needed, when the last slot is used up.

    Parameters
    ----------
    combine
        An associative function.

    Examples
    --------
    >>> tree = LeafTree(str.__add__)
    >>> tree.splice(0, 0, "abd")
    >>> tree.splice(2, 0, "c")
    >>> tree.splice(0, 1, "A")
    >>> tree.between(0, 4), tree.between(1, 3), len(tree)
    ('Abcd', 'bc', 4)
    >>> tree.drop(2)
    >>> tree.between(0, 2)
    'cd'
    """

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._tree = FixedAggregator(combine, [HOLE])
        self._front = self._size = 0

    def __len__(self) -> int:
        return self._size

    def splice(self, position: int, replaced: int, leaves: Sequence[Any]) -> None:
        """Put leaves in the place of ``replaced`` ones from a position on; all that come behind move.

        Runtime complexity: O(m + m log(n/m)) for m leaves that change or move; amortised, where slots are used up.
        """
        grown = len(leaves) - replaced
        tail = list(leaves) if not grown else [*leaves, *self._leaves(position + replaced, self._size)]
        if self._front + self._size + grown > self._tree.capacity:
            self._rebuild([*self._leaves(0, position), *tail])
            return
        first = self._front + position
        if len(tail) == 1:
            self._tree.write(first, tail[0])
        else:
            self._tree.update({first + i: leaf for i, leaf in enumerate(tail)})
        self._size += grown

    def _leaves(self, low: int, high: int) -> list[Any]:
        first = self._tree.capacity + self._front
        return self._tree.nodes[first + low : first + high]

    def _rebuild(self, leaves: list[Any]) -> None:
        capacity = 1 << (2 * len(leaves) - 1).bit_length()
        self._tree = FixedAggregator(self._tree.combine, leaves + [HOLE] * (capacity - len(leaves)))
        self._front, self._size = 0, len(leaves)

    def drop(self, n: int) -> None:
        """Forget the ``n`` leaves at the front.

        Runtime complexity: O(1), no combine.
        """
        self._front += n
        self._size -= n

    def between(self, low: int, high: int) -> Any:
        """The aggregate of the leaves in ``[low, high)``, at least one.

        Runtime complexity: O(log n), at most 2 log2 n combines.
        """
        return self._tree.between(self._front + low, self._front + high)
