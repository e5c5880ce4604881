"""LogMTA: one binary tree as a list of level queues, every insertion and every cut carried up to the root.

Á. Villalba, J. L. Berral, D. Carrera: "Constant-Time Sliding Window Framework with Reduced Memory Footprint and
Efficient Bulk Evictions", IEEE Transactions on Parallel and Distributed Systems 30(3), 2019, section 4.1, Algorithms
1 and 2. This is an interpretation of it: a level is added when the root level would get a second pair, as Algorithm 1
has it. The text adds one for a full root pair already; with that, Algorithm 2 never finds a level to remove, and a
window of any size would grow by a level whenever the stream doubles.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.same import is_same
from slicewise.swag.base import FactCard
from slicewise.swag.monoid_tree import NOTHING, MonoidTree
from slicewise.swag.shared_nodes import SharedNodes
from slicewise.swag.stores.base import Store

__all__ = ["LogMTA"]


class LogMTA(MonoidTree):
    """A tree of pairs that grows at the back and is cut at the front.

    The sum of 1, 2, 1, 2, 1, 2 (the paper's Figure 1), with one queue of pairs per level::

                     <6 3>                    level 2, the root: 6 + 3 = 9
                   /      `----.
              <3   3>         <3   ∅>         level 1
              /      `.        |
          <1  2>   <1  2>   <1  2>            level 0

    A cut walks down from the root. Evicting three values takes the first two with the left 3 of level 1 and one more
    at level 0; then the left edge is computed anew, from the leaves up::

                     <2 3>                    2 + 3 = 5
                   /      `----.
              <∅   2>         <3   ∅>
                     `.        |
                   <∅  2>   <1  2>

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    store
        Where the inner pairs are kept: a :class:`~slicewise.swag.MemoryStore` by default, a
        :class:`~slicewise.swag.DiskStore` or a :class:`~slicewise.swag.RedisStore`. A window continues from a store
        to which one of the same kind has flushed; see ``recovered``.
    buffer
        The number of calls after which an insertion flushes first.
    ahead
        The number of pairs of a level to read at once, and to keep in its cache, when the window moves forward; by
        default the store's own choice.

    Attributes
    ----------
    recovered
        The flush from which the window continues, None for a new one.

    Examples
    --------
    >>> from slicewise.aggregates import sum
    >>> window = LogMTA(sum())
    >>> window.insert_many([1, 2, 1, 2, 1, 2])
    >>> for level in reversed(window.levels()):
    ...     print(*level)
    (6, 3)
    (3, 3) (3, ∅)
    (1, 2) (1, 2) (1, 2)
    >>> window.evict(3)
    >>> for level in reversed(window.levels()):
    ...     print(*level)
    (2, 3)
    (∅, 2) (3, ∅)
    (∅, 2) (1, 2)
    >>> window.query(), window.query(last=2)
    (5, 3)
    >>> window.enforce(lambda total, oldest: total - oldest >= 2)
    2
    >>> window.query()
    2
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out; bulk eviction",
        time="insert and evict O(log n), any number of values at once; query 1 combine",
        space="2n nodes in the store, O(log n) of them local",
        published="Villalba et al., TPDS 2019",
    )

    def __init__(
        self,
        aggregate: Aggregate,
        *,
        store: Store | SharedNodes | None = None,
        buffer: int = 512,
        ahead: int | None = None,
    ) -> None:
        self._result: Any = NOTHING
        super().__init__(aggregate, store=store, buffer=buffer, ahead=ahead)

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(log n), at most one combine per level.
        """
        partial = self._lift(value)
        self._make_room()
        # From the leaves up, the new value of the last element of each level. The lowest `new` levels start a pair with
        # it, the next one completes a pair, those above have it in place of the old one.
        carried, lasts, new = partial, [], -1
        for level in self._levels:
            lasts.append(carried)
            if new < 0 and len(level.tail) == 2:
                continue
            if new < 0 or (len(level.tail) == 2 and level.first < level.last):
                carried = self._combine(level.tail[0], carried)
            if new < 0:
                new = len(lasts) - 1
        if new < 0:
            self._grow(lasts, partial)
        else:
            self._climb(lasts, new)
        self._inserted += 1
        self._layers.pending += 1
        self._result = NOTHING

    def _climb(self, lasts: list[Any], new: int) -> None:
        for i in range(new):
            self._start_pair(i, lasts[i])
        level = self._levels[new]
        level.tail.append(lasts[new])
        level.last += 1
        for i in range(new + 1, len(lasts)):
            self._levels[i].tail[-1] = lasts[i]

    def _grow(self, lasts: list[Any], partial: Any) -> None:
        """Put a new root on top, since all levels start a pair."""
        if not lasts:
            self._start_leaves(partial)
            return
        left, below = self._total(), self._levels[-1].tail_number
        for i, value in enumerate(lasts):
            self._start_pair(i, value)
        self._start_level(below, [left, lasts[-1]])

    def _total(self) -> Any:
        if self._result is NOTHING:
            top = self._levels[-1]
            left = top.tail[0] if not top.first & 1 else NOTHING
            right = top.tail[1] if top.last & 1 else NOTHING
            self._result = self._fold(left, right)
        return self._result

    def _suffix(self, leaf: int) -> Any:
        """From a leaf to the back: at every level on the way up, all to the right of the way::

                   <. X>
                 /      `----.
            <.   .>         <.   .>       X covers the rest
            /      `.
        <.  .>   <.  x>   <.  .>          leaf x, which has no right sibling
        """
        firsts, first = [leaf], leaf
        for below, level in pairwise(self._levels):
            first += first & 1
            if first > below.last:
                break
            first = first // 2 + level.shift
            firsts.append(first)
        suffix, top = NOTHING, len(self._levels) - 1
        for i, (first, head) in enumerate(zip(firsts, self._heads(firsts, ahead=False), strict=True)):
            if first & 1:
                suffix = self._fold(suffix, head[1])
            elif i == top:
                suffix = self._fold(suffix, head[0])
                if first < self._levels[i].last:
                    suffix = self._fold(suffix, head[1])
        return suffix

    def _prefix(self, holds: Callable[[Any], bool]) -> int:
        """Algorithm 2's walk: from the root down, one call per level for the left element of the pair on the way."""
        taken, spared = NOTHING, False
        number = self._levels[-1].first
        for i in range(len(self._levels) - 1, -1, -1):
            level = self._levels[i]
            if not number & 1 and number < level.last:
                longer = self._fold(taken, self._element(i, number))
                if holds(longer):
                    taken, number = longer, number + 1
                else:
                    spared = True
            if i:
                number = max(2 * (number - level.shift), self._levels[i - 1].first)
        # Within an element that was spared something stays; otherwise the last value of all has not been asked about.
        leaves = self._levels[0]
        if not spared and holds(self._fold(taken, self._element(0, number))):
            number += 1
        return number - leaves.first

    def _leave(self, n: int) -> None:
        first = self._levels[0].first + n
        firsts = [first]
        for level in self._levels[1:]:
            first = first // 2 + level.shift
            firsts.append(first)
        # A root with one element is no root: its children are.
        while len(firsts) > 1 and firsts[-1] == self._levels[len(firsts) - 1].last:
            firsts.pop()
        heads = self._heads(firsts, ahead=n == 1)
        edge = [heads[0][firsts[0] & 1]]
        for i, (first, head) in enumerate(zip(firsts[:-1], heads, strict=False)):
            both = not first & 1 and first < self._levels[i].last
            edge.append(self._fold(edge[i], head[1]) if both else edge[i])
        self._forget(firsts, heads)
        for level, value in zip(self._levels, edge, strict=True):
            level.head[level.first & 1] = value
        self._result = NOTHING

    def _emptied(self) -> None:
        self._result = NOTHING

    def _check(self) -> None:
        super()._check()
        assert len(self._levels) < 2 or self._levels[-1].first < self._levels[-1].last
        drawn = self._pairs()
        for i, level in enumerate(self._levels[1:], start=1):
            below = self._levels[i - 1]
            assert level.first == below.head_number + level.shift
            assert level.last == below.tail_number + level.shift
            elements = [e for pair in drawn[i] for e in pair if e is not NOTHING]
            assert len(elements) == len(drawn[i - 1])
            for element, pair in zip(elements, drawn[i - 1], strict=True):
                assert is_same(element, self._fold(*pair))
        if self._levels:
            assert is_same(self._total(), self._fold(*drawn[-1][0]))
