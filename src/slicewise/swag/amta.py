"""AMTA: a forest in level queues, a stack for the remainders of its first tree, and the result in a pair.

Á. Villalba, J. L. Berral, D. Carrera: "Constant-Time Sliding Window Framework with Reduced Memory Footprint and
Efficient Bulk Evictions", IEEE Transactions on Parallel and Distributed Systems 30(3), 2019, section 4.2, Algorithms
3 to 7. This is an interpretation of it. Algorithm 5 starts from nothing and leaves the first tree out. When the first
tree is used up, Algorithm 6 makes R0 and the stack anew, not only R1. Algorithm 2 is not run on the forest after a few
single evictions: a policy is asked from the front up instead, about whole trees that no eviction has touched, so that
nothing has to be made consistent before it, and nothing has changed if the policy fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

from slicewise.aggregates.base import Aggregate
from slicewise.same import is_same, magnitude
from slicewise.swag.base import FactCard
from slicewise.swag.monoid_tree import NOTHING, MonoidTree
from slicewise.swag.shared_nodes import SharedNodes
from slicewise.swag.stores.base import Store

__all__ = ["AMTA"]


class AMTA(MonoidTree):
    """A pair gets a parent when it is no longer the last of its level; the last pair of each level roots its own tree.

    The sum of 1, 2, 1, 2, 1, 2 (the paper's Figure 4)::

          level 1        <3    3>                the first tree
                        /       `.
          level 0    <1  2>   <1  2>   <1  2>    the second tree is one pair

          R = <6 3>      R0: the first tree; R1: all others; the result is 6 + 3 = 9
          stack 3, 5     R0 after the first value has left: 5; after the first two: 3

    Inserting 1 touches R1 and the back of some levels: R = <6 4>. Evicting 1 pops 5 onto R0: R = <5 4>. The elements on
    the way from the root to the first value are not updated when a value leaves: they are never read again.

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
    >>> window = AMTA(sum())
    >>> window.insert_many([1, 2, 1, 2, 1, 2])
    >>> window.result_pair, window.stack
    ((6, 3), [3, 5])
    >>> window.insert(1)
    >>> window.evict()
    >>> window.result_pair, window.stack
    ((5, 4), [3])
    >>> for level in reversed(window.levels()):
    ...     print(*level)
    (6, ∅)
    (3, 3) (3, ∅)
    (∅, 2) (1, 2) (1, 2) (1, ∅)
    >>> window.query(), window.query(last=2)
    (9, 3)
    >>> window.enforce(lambda total, oldest: total - oldest >= 5)
    2
    >>> window.query()
    6
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out; bulk eviction",
        time="4 combines per slide amortised, O(log n) worst, any number of values evicted at once",
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
        self._r0: Any = NOTHING
        self._r1: Any = NOTHING
        self._stack: list[Any] = []
        self._result: Any = NOTHING
        super().__init__(aggregate, store=store, buffer=buffer, ahead=ahead)

    @property
    def result_pair(self) -> tuple[Any, Any]:
        """The aggregates of the first tree and of all others, R0 and R1."""
        return self._shown(self._r0), self._shown(self._r1)

    @property
    def stack(self) -> list[Any]:
        """The values that R0 takes as the first element of each level leaves; the top is at the end."""
        return [self._lower(partial) for partial in self._stack]

    @property
    def local_nodes(self) -> int:
        """The number of nodes in local memory, with the stack and the result pair; all others are in the store."""
        return super().local_nodes + len(self._stack) + 2

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1) amortised, 2 combines; O(log n) worst.
        """
        partial = self._lift(value)
        self._make_room()
        carried, starting = partial, []
        for level in self._levels:
            if len(level.tail) == 1:
                break
            starting.append(carried)
            carried = self._fold(level.tail[0] if level.first < level.last else NOTHING, level.tail[1])
        place, top = len(starting), len(self._levels) - 1
        if place < top or place > top >= 0:
            left, right = (self._r0, self._stack), self._fold(self._r1, partial)
        else:  # the first tree grows: part of R1 moves to R0
            left, right = self._left_with(carried), self._right_of(starting)
        self._climb(starting, carried)
        (self._r0, self._stack), self._r1 = left, right
        self._inserted += 1
        self._layers.pending += 1
        self._result = NOTHING

    def _climb(self, starting: list[Any], carried: Any) -> None:
        """Algorithm 3 on the forest: each of the lowest levels starts a pair, then ``carried`` finds its place."""
        below = 0
        for i, value in enumerate(starting):
            below = self._levels[i].tail_number
            self._start_pair(i, value)
        if len(starting) < len(self._levels):
            level = self._levels[len(starting)]
            level.tail.append(carried)
            level.last += 1
        elif starting:
            self._start_level(below, [carried])
        else:
            self._start_leaves(carried)

    # -- the result pair and the stack

    def _left(self, firsts: list[int], lasts: list[int], heads: list[list[Any]]) -> tuple[Any, list[Any]]:
        """Algorithm 4: R0 and the stack, from the head pairs."""
        stack: list[Any] = []
        for first, last, head in zip(reversed(firsts), reversed(lasts), reversed(heads), strict=True):
            if not first & 1 and first < last:
                stack.append(self._fold(head[1], stack[-1] if stack else NOTHING))
        return self._fold(heads[0][firsts[0] & 1], stack[-1] if stack else NOTHING), stack

    def _left_with(self, value: Any) -> tuple[Any, list[Any]]:
        """R0 and the stack when ``value`` joins the root of the first tree."""
        if not self._levels:
            return value, []
        firsts, lasts, heads = (list(x) for x in zip(*((v.first, v.last, v.head) for v in self._levels), strict=True))
        return self._left(firsts, [*lasts[:-1], lasts[-1] + 1], [*heads[:-1], [*heads[-1], value]])

    def _right_of(self, roots: list[Any]) -> Any:
        """Algorithm 5: R1, from the roots of all trees but the first, lowest level first."""
        total = NOTHING
        for root in roots:
            total = self._fold(root, total)
        return total

    def _roots(self, n: int) -> list[Any]:
        """The partials of the trees at the back of the ``n`` lowest levels."""
        return [self._fold(*v.tail) if len(v.tail) == 2 else v.tail[0] for v in self._levels[:n]]

    def ends(self) -> dict[str, Any]:
        """Everything but the inner pairs: the two ends of each level, the result pair and the stack.

        Returns
        -------
        dict
            Numbers, lists and partials, for :meth:`resume`.

        Examples
        --------
        >>> from slicewise.aggregates import sum
        >>> from slicewise.swag.shared_nodes import SharedNodes
        >>> nodes = SharedNodes()
        >>> window = AMTA(sum(), store=nodes)
        >>> window.insert_many([1, 2, 3, 4, 5])
        >>> AMTA(sum(), store=nodes).resume(window.ends()).query()
        15
        """
        return {**self._state(), "flushes": 0}

    def resume(self, ends: dict[str, Any]) -> Self:
        """Go on from the ends of a window whose inner pairs are where this one's are.

        Parameters
        ----------
        ends
            What :meth:`ends` gave.

        Returns
        -------
        AMTA
            This window, which must be new.

        Examples
        --------
        >>> from slicewise.aggregates import max
        >>> AMTA(max()).resume(AMTA(max()).ends()).query() is None
        True
        """
        self._restore(ends)
        return self

    @property
    def total(self) -> Any:
        """The partial of the window, which is not lowered; None if it is empty."""
        return self._total() if self._levels else None

    def _total(self) -> Any:
        if self._result is NOTHING:
            self._result = self._fold(self._r0, self._r1)
        return self._result

    # -- evictions

    def _leave(self, n: int) -> None:
        if n == 1:
            self._leave_one()
        elif n > len(self._levels):
            self._leave_at_once(n)
        else:
            self._leave_one_by_one(n)

    def _leave_one_by_one(self, n: int) -> None:
        levels = [(v, v.first, v.head) for v in self._levels]
        others = self._r0, self._r1, self._stack[:], self._layers.dead.copy()
        try:
            for _ in range(n):
                self._leave_one()
        except BaseException:  # the store is gone, or `combine` fails: all stay
            self._r0, self._r1, self._stack, self._layers.dead = others
            self._levels = [v for v, _, _ in levels]
            for level, first, head in levels:
                level.first, level.head = first, head
            raise

    def _leave_one(self) -> None:
        """Algorithm 6: pop the stack onto R0, then push the remainders of the new head pairs.

        Runtime complexity: O(1) amortised, 1 combine; O(log n) worst.
        """
        leaves = self._levels[0]
        if not leaves.first & 1 and leaves.first < leaves.last:  # every other time there is nothing to push
            self._r0, self._result = self._stack.pop(), NOTHING
            leaves.first += 1
            return
        firsts = []
        for level in self._levels:
            first = level.first + 1
            if first > level.last:
                break
            firsts.append(first)
            if first & 1:
                break
        heads = self._heads(firsts, ahead=True)
        if not firsts[-1] & 1:  # the first tree is used up
            self._renew(firsts, heads)
            return
        pushed, on = [], self._stack[-2] if len(self._stack) > 1 else NOTHING
        for head in reversed(heads[:-1]):
            on = self._fold(head[1], on)
            pushed.append(on)
        self._r0 = self._stack.pop()
        self._stack += pushed
        self._forget(firsts, heads, above=False)
        self._result = NOTHING

    def _leave_at_once(self, n: int) -> None:
        """Move every level to its new head; nothing in between is read.

        Runtime complexity: O(log n), at most 3 combines per level.
        """
        first = self._levels[0].first + n
        firsts = [first]
        for below, level in zip(self._levels, self._levels[1:], strict=False):
            if first // 2 == below.tail_number:
                break
            first = first // 2 + level.shift
            firsts.append(first)
        self._renew(firsts, self._heads(firsts, ahead=False))

    def _renew(self, firsts: list[int], heads: list[list[Any]]) -> None:
        """Make the result pair and the stack anew for the levels that are left."""
        lasts = [v.last for v in self._levels[: len(firsts)]]
        left = self._left(firsts, lasts, heads)
        right = self._r1 if len(firsts) == len(self._levels) else self._right_of(self._roots(len(firsts) - 1))
        self._forget(firsts, heads)
        (self._r0, self._stack), self._r1 = left, right
        self._result = NOTHING

    def branch(self) -> Self:
        """Another window with the same values, in O(log n): inner nodes are shared, only the ends are copied.

        Either may go on, but of what they insert after the branch only one may stay.

        Returns
        -------
        AMTA
            The other window.

        Examples
        --------
        >>> from slicewise.aggregates import sum
        >>> from slicewise.swag.shared_nodes import SharedNodes
        >>> window = AMTA(sum(), store=SharedNodes())
        >>> window.insert_many([1, 2, 3, 4])
        >>> other = window.branch()
        >>> other.evict(3)
        >>> window.query(), other.query()
        (10, 4)
        """
        other = super().branch()
        other._stack = self._stack[:]
        return other

    def _emptied(self) -> None:
        self._r0 = self._r1 = self._result = NOTHING
        self._stack = []

    # -- ranges and policies

    def _suffix(self, leaf: int) -> Any:
        """From a leaf to the back: all to the right of the way up, and the tree at the back of each level."""
        firsts, first, trees = [leaf], leaf, 0
        for i, level in enumerate(self._levels):
            first += first & 1
            if first <= level.last:
                trees = i + 1
            if first // 2 >= level.tail_number:
                break
            first = first // 2 + self._levels[i + 1].shift
            firsts.append(first)
        suffix = NOTHING
        for first, head in zip(firsts, self._heads(firsts, ahead=False), strict=True):
            if first & 1:
                suffix = self._fold(suffix, head[1])
        return self._fold(suffix, self._right_of(self._roots(trees)))

    def latest(self, last: int) -> list[Any]:
        """The partials of the fewest nodes that make up the ``last`` values, oldest first; nothing is combined.

        Parameters
        ----------
        last
            How many values, at least 1 and fewer than there are.

        Returns
        -------
        list
            At most two partials per level.

        Notes
        -----
        Runtime complexity: O(log n).

        Examples
        --------
        >>> from slicewise.aggregates import concat
        >>> window = AMTA(concat())
        >>> window.insert_many("abcdefg")
        >>> window.latest(6)
        ['b', 'cd', 'ef', 'g']
        """
        self._check_last(last)
        first, nodes = self._levels[0].last - last + 1, []
        for i, level in enumerate(self._levels):
            if first // 2 < level.tail_number and first & 1:
                nodes.append(self._element(i, first))
                first += 1
            if first // 2 >= level.tail_number:
                nodes += [level.tail[number & 1] for number in range(first, level.last + 1)]
                return nodes + [element for below in reversed(self._levels[:i]) for element in below.tail]
            first = first // 2 + self._levels[i + 1].shift
        raise AssertionError("the top level has one pair")

    def _trees(self) -> Iterator[tuple[int, int]]:
        """Level and number of elements that make up the window, front to back, none of them touched by an eviction::

                   <.     E>
                 /          `-------.
            <.      D>         .         .      <F   G>
           /          `.      / `       / `
        <∅   C>     .    .   .   .     .   .     .   .     <H   ∅>
        """
        number = self._levels[0].first
        yield 0, number
        for i, level in enumerate(self._levels):
            if i:
                number = number // 2 + level.shift
            if not number & 1 and number < level.last:
                yield i, number + 1
        for i in range(len(self._levels) - 2, -1, -1):
            level = self._levels[i]
            yield from ((i, n) for n in range(2 * level.tail_number, level.last + 1))

    def _prefix(self, holds: Callable[[Any], bool]) -> int:
        taken = NOTHING
        for level, number in self._trees():
            longer = self._fold(taken, self._element(level, number))
            if not holds(longer):
                return self._down(level, number, taken, holds) - self._levels[0].first
            taken = longer
        return len(self)

    def _down(self, i: int, number: int, taken: Any, holds: Callable[[Any], bool]) -> int:
        """The first leaf that stays, within an element of which something stays."""
        for below in range(i - 1, -1, -1):
            number = 2 * (number - self._levels[below + 1].shift)
            longer = self._fold(taken, self._element(below, number))
            if holds(longer):
                taken, number = longer, number + 1
        return number

    # -- state and invariants

    def _state(self) -> dict[str, Any]:
        boxed = [[] if r is NOTHING else [r] for r in (self._r0, self._r1)]
        return {**super()._state(), "result_pair": boxed, "stack": list(self._stack)}

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        self._r0, self._r1 = (r[0] if r else NOTHING for r in state["result_pair"])
        self._stack = list(state["stack"])

    def _check(self) -> None:
        super()._check()
        drawn = self._pairs()
        for i, level in enumerate(self._levels[1:], start=1):
            below = self._levels[i - 1]
            # Invariant 3: the last pair of a level has no parent, all others have.
            assert level.first == below.head_number + level.shift
            assert level.last == below.tail_number - 1 + level.shift
            elements = [e for pair in drawn[i] for e in pair if e is not NOTHING]
            for element, pair in list(zip(elements, drawn[i - 1], strict=False))[1:]:
                assert is_same(element, self._fold(*pair))
        if not self._levels:
            assert (self._r0, self._r1, self._stack) == (NOTHING, NOTHING, [])
            return
        firsts, lasts, heads = ([getattr(v, x) for v in self._levels] for x in ("first", "last", "head"))
        r0, stack = self._left(firsts, lasts, heads)
        r1 = self._right_of(self._roots(len(self._levels) - 1))
        # Floats are added in another order than over the calls that led here.
        assert is_same((self._r0, self._r1, self._stack), (r0, r1, stack), magnitude(drawn))
