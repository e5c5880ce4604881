"""AggregateTree: every row is a leaf of a tree of aggregates, which all windows and queries share.

K. Tangwongsan, M. Hirzel, S. Schneider, K.-L. Wu: "General incremental sliding-window aggregation", PVLDB 2015, as a
rival in J. Traub et al.: "Efficient Window Aggregation with General Stream Slicing", EDBT 2019, section 3.2, and shared
among queries as in P. Carbone et al.: "Cutty", CIKM 2016. A batch of rows updates each node above them once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slicewise.baselines.base import Baseline
from slicewise.baselines.leaf_tree import LeafTree
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.baselines.tuple_buffer import SortedTuples
from slicewise.swag.base import FactCard

__all__ = ["AggregateTree"]


class _Leaves(SortedTuples):
    """Sorted rows with a tree above them. A row out of order moves all leaves behind it by one slot."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._tree = LeafTree(context.combine)

    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        before = len(self.times)
        place = self.merge(times, partials)
        self._tree.splice(place, before - place, self.partials[place:])

    def answer(self, query: int, start: int, end: int) -> Any:
        low, high = self.range_of(start, end)
        return self._tree.between(low, high) if low < high else EMPTY

    def evict(self, needed: int, horizon: int) -> None:
        before = len(self.times)
        super().evict(needed, horizon)
        self._tree.drop(before - len(self.times))

    def held(self) -> Held:
        return Held(tuples=len(self.times), nodes=max(len(self.times) - 1, 0))


class AggregateTree(Baseline):
    """FlatFAT on rows: a row costs a path to the root, and out of order the leaves behind it move.

    Parameters
    ----------
    workload, ordered, counting
        As for any :class:`Baseline`.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = AggregateTree(sw.Workload(time="t").query("q", sw.tumbling(10), top=sw.max("v")))
    >>> _ = op.process_batch({"t": [7, 3, 12], "v": [2, 5, 1]})
    >>> [(r.start, r.values) for r in op.advance(10)]
    [(0, {'top': 5})]
    """

    facts = FactCard(
        needs="associative",
        order="any",
        time="row log2 n, out of order up to n; window 2 log2 n",
        space="tuples, and as many nodes",
        published="Tangwongsan et al., PVLDB 2015",
    )

    def _technique(self, context: Context) -> Technique:
        return _Leaves(context)
