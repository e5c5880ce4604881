"""Policy trees: the window of one key under a slide policy, as of the horizon and as of the rows since.

A row is a leaf of an AMTA, with everything that is asked of windows as a dimension: what the policy watches, what
queries compute, and which row comes first. So rows themselves need not be kept. Their order may change behind the
horizon; there the tree is branched, which takes O(log n), and branches are kept at some of the rows to go back to::

    settled |--------------|--------------|------ shown          rows since the horizon
            ^ tree         ^ branch       ^ branch

    a row comes here -----------^  go back to the branch before it, show what follows again
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from slicewise.aggregates.base import Aggregate, Monoid
from slicewise.aggregates.parts import Parts, concat_parts, parts_from_data, parts_to_data, take_parts
from slicewise.errors import StateError
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.swag.amta import AMTA
from slicewise.swag.shared_nodes import SharedNodes
from slicewise.swag.stored_nodes import StoredNodes, StoredPairs
from slicewise.swag.stores.base import Store, StoreError

__all__ = ["Dimensions", "KeyTrees", "Leaf", "Leaves", "ShownRow", "stored_nodes"]

#: How many rows are shown between two branches: what is shown again at most, beside what follows a row out of order.
APART = 16

#: Shows a tree its last row and lets rows leave; gives their number.
Slide = Callable[[AMTA], int]


class Leaf(NamedTuple):
    """The partial of some rows: of what is watched, of each aggregate that is asked for, of how many rows.

    ``first`` is of the first row: its event time, its arrival number, and where it is on the measure of the ticks.
    """

    watched: Any
    asked: tuple[Parts, ...]
    first: tuple[int, int, Any]
    rows: int


class ShownRow(NamedTuple):
    """What a row came to: the position of the window's front after it, and its partial; None if it is empty."""

    front: int
    window: Leaf | None


class Dimensions(Aggregate):
    """What a policy watches and what its queries ask for, side by side in one tree.

    Parameters
    ----------
    watched
        What the policy sees, on single values.
    monoids
        What the queries compute, on arrays of one.
    """

    name = "dimensions"
    skips_nulls = False

    def __init__(self, watched: Aggregate, monoids: Sequence[Monoid]) -> None:
        super().__init__()
        self.watched, self.monoids = watched, tuple(monoids)

    def combine(self, a: Leaf, b: Leaf) -> Leaf:
        asked = tuple([m.combine(x, y) for m, x, y in zip(self.monoids, a.asked, b.asked, strict=True)])
        return Leaf(self.watched.combine(a.watched, b.watched), asked, a.first, a.rows + b.rows)

    def lower(self, partial: Leaf) -> Any:
        return self.watched.lower(partial.watched)

    def described(self) -> list[tuple[tuple[str, ...], str]]:
        """What the partials of what is asked for hold, and for columns of which types."""
        return [(tuple(m.labels), ", ".join(map(str, m.types))) for m in self.monoids]

    def is_like(self, other: Dimensions) -> bool:
        """Whether partials of another tree are partials here."""
        return self.described() == other.described()


class Leaves:
    """The rows of one key as leaves, from the first that may still change; made when they are shown.

    Parameters
    ----------
    lift
        The leaves of a range of rows, one after the other.
    arrivals
        Which rows they are, by their arrival numbers.
    complain
        Raise the error that a row of a number has caused.
    """

    def __init__(
        self,
        lift: Callable[[int, int], Iterator[Leaf]],
        arrivals: np.ndarray,
        complain: Callable[[int, Exception], Exception],
    ) -> None:
        self.lift, self.arrivals, self.complain = lift, arrivals, complain

    def __len__(self) -> int:
        return len(self.arrivals)


@dataclass(frozen=True, eq=False)
class _Point:
    """A tree as of a number of rows since the horizon, and the position of its front."""

    tree: AMTA
    front: int
    shown: int = 0


@dataclass(frozen=True, eq=False)
class KeyTrees:
    """What is kept of one key; a step gives another one, and this stays as it was.

    Attributes
    ----------
    settled
        The window as of the horizon.
    last
        The last row before it.
    branches
        The window as of some of the rows since, the last one as of all.
    arrivals, rows
        The rows that were shown since, and what they came to.
    """

    settled: _Point
    last: ShownRow
    branches: tuple[_Point, ...] = ()
    arrivals: np.ndarray = field(default_factory=lambda: NO_ROWS)
    rows: tuple[ShownRow, ...] = ()

    @classmethod
    def new(
        cls, dimensions: Dimensions, leaves: Iterable[Leaf] = (), front: int = 0, nodes: SharedNodes | None = None
    ) -> KeyTrees:
        """A window of these rows, the first of them at a position; nodes are kept in memory or as said."""
        tree = AMTA(dimensions, store=SharedNodes() if nodes is None else nodes)
        for leaf in leaves:
            tree.insert(leaf)
        return cls(_Point(tree, front), ShownRow(front, tree.total))

    def advanced(self, leaves: Leaves, settled: int, slide: Slide) -> tuple[KeyTrees, list[ShownRow]]:
        """Show all rows since the horizon, of which those before number ``settled`` are final from now on.

        What all of them came to is given beside what is kept then.
        """
        _nodes_of(self.settled.tree).sweep()  # the step that led here was taken, and nothing before it comes back
        points = [self.settled, *(p for p in self.branches if p.shown <= self._alike(leaves.arrivals))]
        rows = list(self.rows[: points[-1].shown])
        if points[-1].shown < len(leaves):
            points += self._shown(points[-1], leaves, settled, rows, slide)
        start = max((p for p in points if p.shown <= settled), key=lambda p: p.shown)
        kept = KeyTrees(
            replace(self._settled(start, leaves, rows, settled), shown=0),
            self.last if not settled else rows[settled - 1],
            tuple(replace(p, shown=p.shown - settled) for p in _thinned(points[1:]) if p.shown > settled),
            leaves.arrivals[settled:],
            tuple(rows[settled:]),
        )
        return kept, rows

    def _alike(self, arrivals: np.ndarray) -> int:
        """How many of the rows that were shown still come first."""
        n = min(len(arrivals), len(self.arrivals))
        differ = np.flatnonzero(arrivals[:n] != self.arrivals[:n])
        return int(differ[0]) if len(differ) else n

    @staticmethod
    def _shown(start: _Point, leaves: Leaves, settled: int, rows: list[ShownRow], slide: Slide) -> list[_Point]:
        """Go on from a point to the end; what rows come to is added to ``rows``.

        If the step fails, it is taken again from the same point; what came and left since is not needed for that.
        """
        tree, front, since = start.tree.branch(), start.front, start.tree.last_pairs()
        points: list[_Point] = []
        lifted = leaves.lift(start.shown, len(leaves))
        for number in range(start.shown, len(leaves)):
            if number > start.shown and number % APART == 0:
                if number <= settled:
                    _nodes_of(tree).sweep(since)
                    points.clear()
                points.append(_Point(tree, front, number))
                tree = tree.branch()
            try:
                tree.insert(next(lifted))
                front += slide(tree)
                rows.append(ShownRow(front, tree.total))
            except StoreError:
                raise  # no fault of the row: the step can be taken again
            except Exception as error:
                raise leaves.complain(number, error) from error
        return [*points, _Point(tree, front, len(leaves))]

    @staticmethod
    def _settled(start: _Point, leaves: Leaves, rows: Sequence[ShownRow], settled: int) -> _Point:
        """The tree as of the new horizon: what left at each row is known, and nobody is asked again."""
        if start.shown == settled:
            return start
        tree, front = start.tree.branch(), start.front
        for leaf, row in zip(leaves.lift(start.shown, settled), rows[start.shown : settled], strict=True):
            tree.insert(leaf)
            tree.evict(row.front - front)
            front = row.front
        return _Point(tree, front, settled)

    # State

    @property
    def dimensions(self) -> Dimensions:
        """What the trees hold."""
        dimensions = self.settled.tree.aggregate
        assert isinstance(dimensions, Dimensions)
        return dimensions

    def to_data(self) -> dict[str, Any]:
        """The window as of the horizon, as plain data; where nodes are in a store, without them."""
        tree, nodes = self.settled.tree, _nodes_of(self.settled.tree)
        if not isinstance(nodes, StoredNodes):
            return self.to_rows()
        return {
            "front": self.settled.front,
            "name": nodes.pairs.name,
            "partials": self.dimensions.described(),
            "ends": _packed(tree.ends()),
            "dead": dict(nodes.dead),
            "retired": nodes.pairs.snapshotted(),
        }

    @classmethod
    def from_ends(
        cls, data: Mapping[str, Any], dimensions: Dimensions, nodes: StoredNodes, new_nodes: Callable[[], SharedNodes]
    ) -> KeyTrees:
        """The window from what :meth:`to_data` gave, whose nodes are in a store.

        If other aggregates are asked for than then, a new tree is grown of the rows.
        """
        nodes.pairs.check()
        nodes.dead, nodes.pairs.retired = dict(data["dead"]), (dict(data["retired"]), {})
        tree = AMTA(dimensions, store=nodes).resume(_unpacked(data["ends"]))
        described = [(tuple(labels), types) for labels, types in data["partials"]]
        if described == dimensions.described():
            return cls(_Point(tree, data["front"]), ShownRow(data["front"], tree.total))
        places = {
            (label, types): (i, j) for i, (labels, types) in enumerate(described) for j, label in enumerate(labels)
        }
        wanted = [[(label, types) for label in labels] for labels, types in dimensions.described()]
        if any(part not in places for of_monoid in wanted for part in of_monoid):
            raise StateError(
                f"the nodes of {data['name']} were written for columns of other types, and cannot be widened in a "
                "store; cast the columns to what they were"
            )
        parts = [[places[part] for part in of_monoid] for of_monoid in wanted]
        leaves = [
            Leaf(leaf.watched, tuple(tuple(leaf.asked[i][j] for i, j in p) for p in parts), leaf.first, leaf.rows)
            for leaf in tree.partials()
        ]
        return cls.new(dimensions, leaves, data["front"], new_nodes())

    def to_rows(self) -> dict[str, Any]:
        """The window as of the horizon, as plain data: its rows, of which a tree is grown again."""
        leaves = list(self.settled.tree.partials())
        asked: dict[str, Any] = {}
        for i, monoid in enumerate(self.dimensions.monoids):
            parts = concat_parts([leaf.asked[i] for leaf in leaves]) if leaves else monoid.identities(0)
            asked |= zip(monoid.labels, parts_to_data(parts), strict=True)
        first = [leaf.first for leaf in leaves]
        return {
            "front": self.settled.front,
            "watched": [leaf.watched for leaf in leaves],
            "asked": asked,
            "first": first,
        }

    @classmethod
    def from_rows(cls, data: Mapping[str, Any], dimensions: Dimensions, nodes: SharedNodes | None = None) -> KeyTrees:
        """The window from what :meth:`to_rows` gave; only what is asked for still."""
        asked = [parts_from_data([data["asked"][label] for label in m.labels]) for m in dimensions.monoids]
        leaves = [
            Leaf(watched, tuple(take_parts(parts, slice(i, i + 1)) for parts in asked), tuple(first), 1)
            for i, (watched, first) in enumerate(zip(data["watched"], data["first"], strict=True))
        ]
        return cls.new(dimensions, leaves, data["front"], nodes)


def stored_nodes(store: Store, name: str) -> StoredNodes:
    """Nodes of leaves in a store, under the name of a window."""
    return StoredNodes(StoredPairs(store, name, _packed, _unpacked))


def _packed(value: Any) -> Any:
    """Nodes as plain data, wherever they stand in lists, tuples and dictionaries."""
    if isinstance(value, Leaf):
        return {"leaf": (value.watched, [parts_to_data(parts) for parts in value.asked], value.first, value.rows)}
    if isinstance(value, dict):
        return {key: _packed(item) for key, item in value.items()}
    return type(value)(map(_packed, value)) if isinstance(value, (list, tuple)) else value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if "leaf" in value:
            watched, asked, first, rows = value["leaf"]
            return Leaf(watched, tuple(map(parts_from_data, asked)), tuple(first), rows)
        return {key: _unpacked(item) for key, item in value.items()}
    return type(value)(map(_unpacked, value)) if isinstance(value, (list, tuple)) else value


def _nodes_of(tree: AMTA) -> SharedNodes:
    """The nodes that a tree shares with its branches."""
    assert isinstance(tree.nodes, SharedNodes)
    return tree.nodes


def _thinned(points: Sequence[_Point]) -> list[_Point]:
    """The last point, and of the others those that are not close to the one behind."""
    kept: list[_Point] = []
    for point in reversed(points):
        if len(kept) < 2 or kept[-1].shown - point.shown >= APART:
            kept.append(point)
    return kept[::-1]
