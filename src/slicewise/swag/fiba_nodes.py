"""Nodes of :class:`~slicewise.swag.FiBA`, and the changes of one call, which are undone together if it fails."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any

from slicewise.swag.fixed_aggregator import HOLE

__all__ = ["Node", "Transaction", "Tree"]


class Node:
    """Entries in order of time and the children around them: child i lies before entry i, the last behind all.

    Attributes
    ----------
    level
        0 for a leaf.
    left, right
        Whether it stands on the left or the right spine, which end at the fingers and do not hold the root.
    aggregate
        The inner aggregate of the root, the left or right one on a spine, the up aggregate elsewhere.
    """

    __slots__ = ("aggregate", "children", "left", "level", "parent", "right", "times", "values")

    def __init__(self, level: int) -> None:
        self.level = level
        self.parent: Node | None = None
        self.times: list[Any] = []
        self.values: list[Any] = []
        self.children: list[Node] = []
        self.left = self.right = False
        self.aggregate: Any = HOLE

    @property
    def arity(self) -> int:
        """The number of children, which a leaf would have if it were none."""
        return len(self.times) + 1

    # -- what changes

    def take_in(self, entries: list[tuple[Any, Any, Node | None]], changes: Transaction) -> None:
        """Add entries, each with the child to its right; they may be more than there is room for."""
        if len(entries) == 1:
            ((time, value, child),) = entries
            at = bisect_left(self.times, time)
            self.times.insert(at, time)
            self.values.insert(at, value)
            if child is not None:
                self.children.insert(at + 1, child)
        else:
            behind: list[Any] = self.children[1:] or [None] * len(self.times)
            held = zip(self.times, self.values, behind, strict=True)
            # Two runs in order, which sorting merges in one pass.
            merged = sorted([*held, *entries], key=lambda entry: entry[0])
            self.times, self.values = [e[0] for e in merged], [e[1] for e in merged]
            if self.children:
                self.children = [self.children[0], *(e[2] for e in merged)]
        for _, _, child in entries:
            if child is not None:
                changes.save(child)
                child.parent = self

    def cut(self, pieces: int, changes: Transaction) -> list[tuple[Any, Any, Node]]:
        """Keep the first of ``pieces`` even parts; the others as new nodes, each with the entry before it."""
        total = self.arity
        bounds = [i * total // pieces for i in range(pieces + 1)]
        parts = []
        for low, high in pairwise(bounds[1:]):
            piece = Node(self.level)
            piece.times, piece.values = self.times[low : high - 1], self.values[low : high - 1]
            piece.adopt(self.children[low:high], changes)
            parts.append((self.times[low - 1], self.values[low - 1], piece))
        del self.times[bounds[1] - 1 :], self.values[bounds[1] - 1 :], self.children[bounds[1] :]
        return parts

    def adopt(self, children: list[Node], changes: Transaction) -> None:
        """Take over children, at the back."""
        for child in children:
            changes.keep(child)
            child.parent = self
        self.children += children

    def draw_from(self, neighbour: Node, n: int, changes: Transaction) -> None:
        """Take the first ``n`` children of the right neighbour, all of them if ``n`` is its arity: then it is gone.

        The entry of the parent between the two comes along, and the one behind the last child takes its place.
        """
        parent = self.parent
        assert parent is not None
        self.times += [parent.times[0], *neighbour.times[: n - 1]]
        self.values += [parent.values[0], *neighbour.values[: n - 1]]
        self.adopt(neighbour.children[:n], changes)
        if n == neighbour.arity:
            del parent.times[0], parent.values[0], parent.children[1]
            return
        parent.times[0], parent.values[0] = neighbour.times[n - 1], neighbour.values[n - 1]
        del neighbour.times[:n], neighbour.values[:n], neighbour.children[:n]

    def cut_front(self, upto: Any, changes: Transaction) -> int:
        """Drop the entries up to a time and the children before them; how many entries that were."""
        changes.save(self)
        leaving = bisect_right(self.times, upto)
        size = leaving + sum(child.size for child in self.children[:leaving])
        del self.times[:leaving], self.values[:leaving], self.children[:leaving]
        return size

    # -- what is read

    @property
    def size(self) -> int:
        """The number of entries in the subtree."""
        return len(self.times) + sum(child.size for child in self.children)

    def between(self, first: int, last: int) -> list[Any]:
        """The partials of the children between entries ``first`` and ``last - 1``; holes in a leaf."""
        if not self.children:
            return [HOLE] * (last - first - 1)
        return [child.aggregate for child in self.children[first + 1 : last]]

    def inner(self) -> Iterator[Any]:
        """The partials of all entries and of the children between them."""
        yield from self.values[:1]
        for child, value in zip(self.between(0, len(self.values)), self.values[1:], strict=True):
            yield child
            yield value

    def first_child(self) -> tuple[Any, ...]:
        """The partial of the first child, of which a leaf has none."""
        return (self.children[0].aggregate,) if self.children else ()

    def last_child(self) -> tuple[Any, ...]:
        """The partial of the last child, of which a leaf has none."""
        return (self.children[-1].aggregate,) if self.children else ()

    def up(self) -> Iterator[Any]:
        """The partials of all entries and children."""
        return chain(self.first_child(), self.inner(), self.last_child())

    def spine(self, side: int) -> list[Node]:
        """The way down from here along the first children (0), or the last (-1)."""
        return [self, *(self.children[side].spine(side) if self.children else ())]

    def nodes(self) -> Iterator[Node]:
        """All nodes of the subtree."""
        yield self
        for child in self.children:
            yield from child.nodes()

    def entries(self) -> Iterator[tuple[Any, Any]]:
        """Times and partials of the subtree, in order."""
        pairs = zip(self.times, self.values, strict=True)
        if not self.children:
            yield from pairs
            return
        for child in self.children[:-1]:
            yield from child.entries()
            yield next(pairs)
        yield from self.children[-1].entries()

    def covers(self, root: Node) -> list[tuple[Any, Any]]:
        """By definition, the entries in the aggregate of a node; for checks of small trees."""
        if self is not root and not (self.left or self.right):
            return list(self.entries())
        top = root if self is root else root.children[0 if self.left else -1]
        entries = list(top.entries())
        first = self.children[0].size if self.children and not self.right else 0
        last = self.children[-1].size if self.children and not self.left else 0
        return entries[first : len(entries) - last]


class Tree:
    """The root, the fingers, and the number of entries."""

    __slots__ = ("left", "right", "root", "size")

    def __init__(self) -> None:
        self.root = self.left = self.right = Node(0)
        self.size = 0


class Transaction:
    """The nodes that a call changes, as they were: put back if it raises.

    Attributes
    ----------
    nodes
        Those whose aggregate must be computed again.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._ends = tree.root, tree.left, tree.right, tree.size
        self._before: dict[Node, tuple[Any, ...]] = {}
        self._aggregates: list[tuple[Node, Any]] = []
        self.nodes: dict[Node, None] = {}

    def save(self, node: Node) -> None:
        """Before a node gets other entries or children, or another place."""
        self.keep(node)
        self.nodes[node] = None

    def keep(self, node: Node) -> None:
        """Before a node gets another parent, which does not touch its aggregate."""
        if node not in self._before:
            lists = node.times[:], node.values[:], node.children[:]
            self._before[node] = (*lists, node.parent, node.left, node.right)

    def drop(self, node: Node) -> None:
        """A node is no longer in the tree: nothing is to be computed for it."""
        self.nodes.pop(node, None)

    def clear(self) -> None:
        """Everything leaves."""
        self._tree.root = self._tree.left = self._tree.right = Node(0)
        self._tree.size = 0

    def aggregate(self, node: Node, partial: Any) -> None:
        """Give a node its new aggregate."""
        self._aggregates.append((node, node.aggregate))
        node.aggregate = partial

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            return
        tree = self._tree
        tree.root, tree.left, tree.right, tree.size = self._ends
        for node, before in self._before.items():
            node.times, node.values, node.children, node.parent, node.left, node.right = before
        for node, partial in reversed(self._aggregates):
            node.aggregate = partial
