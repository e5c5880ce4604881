"""Shared nodes: the inner pairs of a monoid tree and of all its branches. What slide policies keep their windows in.

A branch is a copy of a tree that goes on by itself, while rows may still come in between. The tree from which it was
made stays as it was and may be gone back to, so nothing that it needs is deleted before it moves on itself. Branches
number their pairs alike: what one has written and another writes again has the same place.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from slicewise.swag.stores.base import Key
from slicewise.swag.stores.layers import Pair, Span

__all__ = ["SharedNodes"]


class SharedNodes:
    """Inner pairs by level and number, with what one of the trees has dropped of them.

    Parameters
    ----------
    pairs
        Where pairs are kept: a dictionary, or what is as good as one.
    """

    #: Nothing is flushed by the tree.
    due = False

    def __init__(self, pairs: MutableMapping[Key, Pair] | None = None) -> None:
        self.pairs: MutableMapping[Key, Pair] = {} if pairs is None else pairs
        self.pending = 0
        #: Dropped pairs per level, from the first not yet deleted up to the first that lives.
        self.dead: dict[int, tuple[int, int]] = {}

    def __len__(self) -> int:
        return len(self.pairs)

    def branch(self) -> SharedNodes:
        """The same pairs for another tree."""
        other = type(self)(self.pairs)
        other.dead = dict(self.dead)
        return other

    def push(self, level: int, number: int, pair: Pair) -> None:
        """Take over a pair that is no longer the last of its level."""
        self.pairs[level, number] = pair

    def fetch(self, spans: Sequence[Span]) -> list[Any]:
        """The pair at the start of each span."""
        return [self.pairs[level, number] for level, number, _ in spans]

    def drop(self, level: int, start: int, stop: int) -> None:
        """Note that this tree needs the pairs ``start`` to ``stop - 1`` of a level no more.

        Runtime complexity: O(1), whatever their number.
        """
        if start < stop:
            self.dead[level] = (self.dead.get(level, (start, stop))[0], stop)

    def sweep(self, since: Sequence[int] = ()) -> None:
        """Delete what this tree has dropped: nothing that lies before it will be gone back to.

        Parameters
        ----------
        since
            The last pairs of a tree, level by level, that may be gone back to all the same: earlier ones stay.

        Notes
        -----
        Runtime complexity: O(pairs to delete), each of them once.
        """
        kept = {}
        for level, (start, stop) in self.dead.items():
            first = since[level] if level < len(since) else 0
            for number in range(max(start, first), stop):
                self.pairs.pop((level, number), None)
            if start < first:
                kept[level] = (start, min(stop, first))
        self.dead = kept
