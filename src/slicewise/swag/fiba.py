"""FiBA: a B-tree over times with a finger at each end, whose aggregates lie where rows come and leave.

K. Tangwongsan, M. Hirzel, S. Schneider: "Optimal and General Out-of-Order Sliding-Window Aggregation", PVLDB 12(10),
2019; bulk insertion and eviction after "Out-of-Order Sliding-Window Aggregation with Efficient Bulk Evictions and
Insertions", PVLDB 16(11), 2023. This is an interpretation of them: an eviction in bulk rebalances on its way down, with
room for one merge below, instead of in a second pass up.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError
from slicewise.same import is_same, magnitude
from slicewise.swag.base import EmptyWindowError, FactCard, lifting
from slicewise.swag.fiba_nodes import Node, Transaction, Tree
from slicewise.swag.fixed_aggregator import HOLE

__all__ = ["FiBA"]


class FiBA:
    """A window of (time, value) pairs in any order of arrival. Distance d from the nearer end costs O(log d).

    Every node has one aggregate, and which one depends on where the node stands. The *inner* aggregate of a node is
    that of its own entries and of the children between them; the *up* aggregate is all of its subtree. On the spines,
    the *left* aggregate is everything in the subtree but the first child, and whatever its parents below the root hold;
    the *right* aggregate is its mirror image. So an answer is the left finger's, the root's and the right finger's, and
    a value at either end changes one node. The values a to k, with ``min_arity=2``::

                         <d        h>                      inner: d efg h
                   .----'     |      `----.
                <b>          <f>          <j>              left: b c     up: efg     right: i j
                / \\          / \\          / \\
             <a>   <c>    <e>   <g>    <i>   <k>           left: a bc    up    ...   right: ij k
              ^                               ^
         left finger                     right finger      abc + defgh + ijk

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    min_arity
        The fewest children of a node that is not the root, at least 2; the most are twice as many.

    Attributes
    ----------
    facts
        Its :class:`~slicewise.swag.FactCard`.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = FiBA(concat())
    >>> window.bulk_insert([(10, "a"), (40, "d"), (30, "c")])
    >>> window.insert(20, "b")
    >>> window.query(), window.query(20, 30), window.query(low=25)
    ('abcd', 'bc', 'cd')
    >>> window.insert(20, "!")
    >>> window.bulk_evict(10)
    >>> window.query(), len(window)
    ('b!cd', 3)
    >>> window.evict()
    >>> window.query()
    'cd'
    """

    facts = FactCard(
        needs="associative",
        order="any: values come by time, leave from the front; bulk insertion and eviction",
        time="insert O(log d) amortised at distance d from an end, evict O(1) amortised, m at once O(log m); query 2",
        space="n values and at most one aggregate per min_arity - 1 of them",
        published="Tangwongsan et al., PVLDB 2019 and 2023",
    )

    def __init__(self, aggregate: Aggregate, min_arity: int = 2) -> None:
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"`aggregate` must be an aggregate such as sw.sum(); got {aggregate!r}")
        if not isinstance(min_arity, int) or isinstance(min_arity, bool) or min_arity < 2:
            raise QueryError(f"`min_arity` must be a count of children, 2 or more; got {min_arity!r}")
        self.aggregate = aggregate
        self.min_arity, self.max_arity = min_arity, 2 * min_arity
        self._lift = lifting(aggregate)
        self._combine = aggregate.combine
        self._tree = Tree()

    def __len__(self) -> int:
        return self._tree.size

    @property
    def oldest(self) -> Any:
        """The least time; None for an empty window."""
        return self._tree.left.times[0] if self._tree.size else None

    @property
    def youngest(self) -> Any:
        """The greatest time; None for an empty window."""
        return self._tree.right.times[-1] if self._tree.size else None

    # -- values come

    def insert(self, time: Any, value: Any) -> None:
        """Add a value at its time. If there is one of that time, the two are combined, the new one on the right.

        Parameters
        ----------
        time
            Its place in the window: integers, datetimes, anything that is ordered.
        value
            The value, None for a null; a tuple or a mapping for an aggregate of several columns.

        Notes
        -----
        Runtime complexity: O(log d) amortised, where d values lie between it and the nearer end of the window.
        """
        self._check_time(time)
        self._insert([(time, self._lift(value))])

    def bulk_insert(self, pairs: Iterable[tuple[Any, Any]]) -> None:
        """Add many values, in one pass over the nodes that they change; all of them or, if one fails, none.

        Parameters
        ----------
        pairs
            Times and values, in any order. Of equal times, the later in ``pairs`` is on the right.

        Notes
        -----
        Runtime complexity: O(m log(d/m) + log d) amortised for m values, the oldest of them at distance d; and sorting.
        """
        lifted: list[tuple[Any, Any]] = []
        for time, value in pairs:
            self._check_time(time, against=lifted[0][0] if lifted else None)
            lifted.append((time, self._lift(value)))
        lifted.sort(key=_time_of)
        alike = ((time, [p for _, p in group]) for time, group in groupby(lifted, key=_time_of))
        self._insert([(time, self._fold(partials)) for time, partials in alike])

    def _insert(self, pairs: list[tuple[Any, Any]]) -> None:
        """Put pairs in ascending order into the nodes where they belong; split, level by level, those that overflow."""
        if not pairs:
            return
        with Transaction(self._tree) as changes:
            joins: dict[Node, list[Any]] = {}
            node = self._start(pairs[0][0], pairs[0][0])
            for time, partial in pairs:
                node, at = self._place(node, time)
                if at < len(node.times) and node.times[at] == time:
                    changes.save(node)
                    node.values[at] = self._combine(node.values[at], partial)
                else:
                    joins.setdefault(node, []).append((time, partial, None))
            self._tree.size += sum(len(entries) for entries in joins.values())
            while joins:
                joins = self._join(joins, changes)
            self._repair(changes)

    def _start(self, low: Any, high: Any) -> Node:
        """The lowest node of a spine whose subtree holds these times, from both fingers up at once."""
        left, right = self._tree.left, self._tree.right
        while True:
            if left.parent is None or high < left.parent.times[0]:
                return left
            if right.parent is None or low > right.parent.times[-1]:
                return right
            left, right = left.parent, right.parent

    @staticmethod
    def _place(node: Node, time: Any) -> tuple[Node, int]:
        """Where a time is, or belongs, from a node whose subtree begins before it."""
        while node.parent is not None and not node.right:
            parent = node.parent
            following = bisect_right(parent.times, node.times[0])
            if following < len(parent.times) and time < parent.times[following]:
                break
            node = parent
        while True:
            at = bisect_left(node.times, time)
            if not node.children or (at < len(node.times) and node.times[at] == time):
                return node, at
            node = node.children[at]

    def _join(self, joins: dict[Node, list[Any]], changes: Transaction) -> dict[Node, list[Any]]:
        """Entries join the nodes of one level, each with the child to its right; what then joins those above."""
        above: dict[Node, list[Any]] = {}
        for node, entries in joins.items():
            changes.save(node)
            node.take_in(entries, changes)
            if node.arity > self.max_arity:
                parent = node.parent or self._raise_root(changes)
                above.setdefault(parent, []).extend(self._split(node, changes))
        return above

    def _raise_root(self, changes: Transaction) -> Node:
        old, self._tree.root = self._tree.root, Node(self._tree.root.level + 1)
        self._tree.root.children = [old]
        changes.save(self._tree.root)
        old.parent, old.left, old.right = self._tree.root, True, True
        return self._tree.root

    def _split(self, node: Node, changes: Transaction) -> list[tuple[Any, Any, Node]]:
        """Cut a node into as few as have room; the entries between the pieces go up, each with the piece behind it."""
        pieces = node.cut(-(-node.arity // self.max_arity), changes)
        for _, _, piece in pieces:
            changes.save(piece)
        last = pieces[-1][2]
        last.right, node.right = node.right, False
        if self._tree.right is node:
            self._tree.right = last
        return pieces

    # -- values leave

    def evict(self) -> None:
        """Remove the oldest value.

        Raises
        ------
        EmptyWindowError
            If the window is empty.

        Notes
        -----
        Runtime complexity: O(1) amortised, O(log n) worst.
        """
        if not self._tree.size:
            raise EmptyWindowError("cannot evict 1 of 0 values; the window is unchanged")
        with Transaction(self._tree) as changes:
            leaf = self._tree.left
            changes.save(leaf)
            del leaf.times[0], leaf.values[0]
            self._tree.size -= 1
            self._rebalance(leaf, changes)
            self._repair(changes)

    def bulk_evict(self, upto: Any) -> None:
        """Remove all values whose time is ``upto`` or earlier.

        Parameters
        ----------
        upto
            The last time that leaves.

        Notes
        -----
        Runtime complexity: O(log m) amortised and as many combines, for m values; nothing that leaves is read.
        """
        self._check_time(upto)
        if not self._tree.size or upto < self._tree.left.times[0]:
            return
        with Transaction(self._tree) as changes:
            if upto >= self.youngest:
                changes.clear()
                return
            top = self._tree.left
            while top.parent is not None and top.parent.times[0] <= upto:
                top = top.parent
            self._tree.left = self._cut(top, upto, changes)
            if top.parent is not None:
                self._rebalance(top.parent, changes)
            self._repair(changes)

    def _cut(self, node: Node, upto: Any, changes: Transaction) -> Node:
        """Cut what leaves off a subtree, from its top down to the new left finger.

        A root with one child is none: the child is. Any other node gets from its neighbour what it lacks, and a child
        more than it needs, so that the next merge below leaves it enough.
        """
        while True:
            self._tree.size -= node.cut_front(upto, changes)
            if node is self._tree.root:
                if not node.times:
                    node = self._lower_root(changes)
                    continue
            elif node.arity <= self.min_arity - (not node.children):
                self._fill(node, changes)
            if not node.children:
                return node
            node = node.children[0]
            changes.save(node)
            node.left = True

    def _rebalance(self, node: Node, changes: Transaction) -> None:
        """From a node of the left spine up, as long as one has too few children."""
        while node is not self._tree.root and node.arity < self.min_arity:
            parent = node.parent
            self._fill(node, changes)
            assert parent is not None
            node = parent if node.parent is not None else node

    def _fill(self, node: Node, changes: Transaction) -> None:
        """Give a first child some of its right neighbour's entries, or all if both have room in one node."""
        parent = node.parent
        assert parent is not None
        neighbour = parent.children[1]
        for touched in (node, parent, neighbour):
            changes.save(touched)
        both = node.arity + neighbour.arity
        if both > self.max_arity:
            node.draw_from(neighbour, (both + 1) // 2 - node.arity, changes)
            return
        node.draw_from(neighbour, neighbour.arity, changes)
        changes.drop(neighbour)
        node.right = neighbour.right
        if self._tree.right is neighbour:
            self._tree.right = node
        if parent is self._tree.root and not parent.times:
            self._lower_root(changes)

    def _lower_root(self, changes: Transaction) -> Node:
        root = self._tree.root.children[0]
        changes.drop(self._tree.root)
        changes.save(root)
        root.parent, root.left, root.right = None, False, False
        self._tree.root = root
        # What was counted to the old root's children is now the root's own.
        for child in {id(c): c for c in (*root.children[:1], *root.children[-1:])}.values():
            changes.save(child)
        return root

    # -- aggregates

    def _fold(self, partials: Iterable[Any]) -> Any:
        total = HOLE
        for partial in partials:
            if partial is not HOLE:
                total = partial if total is HOLE else self._combine(total, partial)
        return total

    def _repair(self, changes: Transaction) -> None:
        """Up aggregates from the changed nodes upwards, to a spine; then each spine downwards, from the highest change.

        A node off the spines changes what its parent holds, one on a spine what all below it on the spine hold.
        """
        due: dict[int, dict[Node, None]] = {}
        for node in changes.nodes:
            due.setdefault(node.level, {})[node] = None
        highest: dict[bool, Node] = {}
        while due:
            level = min(due)
            for node in due.pop(level):
                if node.left or node.right:
                    highest[node.left] = node
                elif node.parent is None:
                    changes.aggregate(node, self._fold(node.inner()))
                else:
                    changes.aggregate(node, self._fold(node.up()))
                    due.setdefault(level + 1, {})[node.parent] = None
        if True in highest:
            self._repair_left(highest[True], changes)
        if False in highest:
            self._repair_right(highest[False], changes)

    def _repair_left(self, node: Node, changes: Transaction) -> None:
        while True:
            changes.aggregate(node, self._fold((*node.inner(), *node.last_child(), self._above(node))))
            if not node.children:
                return
            node = node.children[0]

    def _repair_right(self, node: Node, changes: Transaction) -> None:
        while True:
            changes.aggregate(node, self._fold((self._above(node), *node.first_child(), *node.inner())))
            if not node.children:
                return
            node = node.children[-1]

    def _above(self, node: Node) -> Any:
        """The aggregate of the parent on the same spine; the root is on none."""
        return HOLE if node.parent is None or node.parent.parent is None else node.parent.aggregate

    # -- answers

    def query(self, low: Any = None, high: Any = None) -> Any:
        """The aggregate of the window, or of the values from one time to another.

        Parameters
        ----------
        low, high
            The first and the last time, both included; by default all from the front, or all up to the back.

        Returns
        -------
        Any
            The lowered aggregate; that of no values for an empty window, and between two times that follow each other.

        Raises
        ------
        EmptyWindowError
            If the times lie before or behind all times of the window.

        Notes
        -----
        Runtime complexity: O(1), 2 combines for the window; O(log d) for a range whose far end is d values away from
        the nearer end of the window.
        """
        return self.aggregate.lower(self._answer(low, high))

    def _answer(self, low: Any, high: Any) -> Any:
        if low is None and high is None:
            ends = (self._tree.left.aggregate, self._tree.right.aggregate) if self._tree.root.children else (HOLE, HOLE)
            total = self._fold((ends[0], self._tree.root.aggregate, ends[1]))
        else:
            self._check_range(low, high)
            start = self._start(self.oldest if low is None else low, self.youngest if high is None else high)
            total = self._fold(self._between(start, low, high))
        return self.aggregate.identity if total is HOLE else total

    def _between(self, node: Node, low: Any, high: Any) -> Iterator[Any]:
        """The fewest partials of a subtree that cover a range: entries, children in between, and parts of two more.

        A bound is None where the subtree does not reach beyond it.
        """
        if low is None and high is None and not (node.left or node.right or node.parent is None):
            yield node.aggregate
            return
        first = 0 if low is None else bisect_left(node.times, low)
        last = len(node.times) if high is None else bisect_right(node.times, high)
        if node.children:
            yield from self._between(node.children[first], low, high if first == last else None)
        if first == last:
            return
        for value, child in zip(node.values[first : last - 1], node.between(first, last), strict=True):
            yield value
            yield child
        yield node.values[last - 1]
        if node.children:
            yield from self._between(node.children[last], None, high)

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """Times and partials, from the oldest."""
        return self._tree.root.entries()

    # -- wrong use

    def _check_time(self, time: Any, against: Any = None) -> None:
        if time is None or time != time:
            raise QueryError(f"a time must be a value that is ordered; got {time!r}")
        other = against if against is not None else self.oldest
        try:
            _ = time < (time if other is None else other)
        except TypeError:
            raise QueryError(f"time {time!r} cannot be compared with {other!r}; give all times in one type") from None

    def _check_range(self, low: Any, high: Any) -> None:
        for bound in (low, high):
            if bound is not None:
                self._check_time(bound)
        if low is not None and high is not None and high < low:
            raise QueryError(f"`high` must not lie before `low`; got {high!r} and {low!r}")
        if not self._tree.size:
            raise EmptyWindowError("the window is empty; query() without times gives the value of no rows")
        first, last = self.oldest, self.youngest
        if (low is not None and low > last) or (high is not None and high < first):
            asked = f"{'...' if low is None else repr(low)} to {'...' if high is None else repr(high)}"
            raise EmptyWindowError(f"times {asked} lie outside of the window, which has {first!r} to {last!r}")

    def _check(self) -> None:
        root = self._tree.root
        assert root.parent is None
        assert not root.left
        assert not root.right
        entries = list(self)
        assert len(entries) == self._tree.size
        assert all(a[0] < b[0] for a, b in pairwise(entries))
        assert self._tree.left is root.spine(0)[-1]
        assert self._tree.right is root.spine(-1)[-1]
        scale = magnitude([partial for _, partial in entries])
        for node in root.nodes():
            self._check_node(node, scale)

    def _check_node(self, node: Node, scale: float) -> None:
        root = self._tree.root
        assert len(node.times) == len(node.values) == node.arity - 1
        assert node.arity <= self.max_arity
        assert node.arity >= (self.min_arity if node is not root else 2 if node.children else 1)
        assert len(node.children) in (0, node.arity)
        assert bool(node.children) == (node.level > 0)
        assert all(child.parent is node and child.level == node.level - 1 for child in node.children)
        assert node.left == (node is not root and node in root.spine(0))
        assert node.right == (node is not root and node in root.spine(-1))
        covered = node.covers(root)
        # Floats are added in another order than one by one.
        total = self._fold(partial for _, partial in covered)
        assert is_same(node.aggregate, total, max(scale, magnitude([total])))


def _time_of(pair: tuple[Any, Any]) -> Any:
    return pair[0]
