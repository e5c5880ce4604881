"""LazySlicing and EagerSlicing: general stream slicing on single values, in order and out of order.

J. Traub, P. Grulich, A. Rodriguez Cuellar, S. Bress, A. Katsifodimos, T. Rabl, V. Markl: "Efficient Window Aggregation
with General Stream Slicing", EDBT 2019. The technique that slicewise's engine runs on arrays, here in the same form as
its rivals. A row goes into the slice between the edges around it, and changes nothing else; where order matters and
rows may be out of order, slices keep their rows (Figure 4). Sessions are runs of slices: rows are also cut at a grid as
fine as the gap, so that no session ends inside a slice.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np

from slicewise.baselines.base import Baseline
from slicewise.baselines.leaf_tree import LeafTree
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.swag.base import FactCard

__all__ = ["EagerSlicing", "LazySlicing"]


class _Slices(Technique):
    """Slices in order, each known by the edge at which it starts.

    Parameters
    ----------
    context
        What is known of the workload.
    eager
        Whether to keep a tree above the slices.
    """

    def __init__(self, context: Context, *, eager: bool) -> None:
        super().__init__(context)
        self._starts: list[int] = []
        self._partials: list[Any] = []
        self._tree = LeafTree(context.combine) if eager else None
        #: Rows of slices by their start, where partials may have to be computed again: times and partials.
        self._rows: dict[int, tuple[list[int], list[Any]]] | None = None
        if not context.ordered and not context.whole.commutative:
            self._rows = {}
        self._slice = (0, 0)  # where the last single row went

    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        if len(times) == 1:
            self._put(self._start_of(times[0]), times, partials)
            return
        at = np.array(times, np.int64)
        edges = self._edges(times[0], times[-1])
        place = np.searchsorted(edges, at, side="right")
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(place)) + 1, [len(at)]]).tolist()
        starts = edges[place[cuts[:-1]] - 1].tolist()
        for start, i, j in zip(starts, cuts[:-1], cuts[1:], strict=True):
            self._put(start, times[i:j], partials[i:j])

    def _edges(self, low: int, high: int) -> np.ndarray:
        """The edges around rows from ``low`` to ``high``, in order."""
        windows = self.context.windows
        edges = [np.array([windows.edge_before(low)]), windows.edges(low, high)]
        edges += [np.arange(low // gap, high // gap + 1) * gap for gap in self.context.gaps.values()]
        return np.unique(np.concatenate(edges))

    def _start_of(self, time: int) -> int:
        start, end = self._slice
        if not start <= time < end:
            gaps = self.context.gaps.values()
            windows = self.context.windows
            start = max([windows.edge_before(time), *(time // gap * gap for gap in gaps)])
            ends = [windows.next_start(time), windows.next_end(time)]
            self._slice = start, min([*ends, *((time // gap + 1) * gap for gap in gaps)])
        return start

    def _put(self, start: int, times: Sequence[int], partials: Sequence[Any]) -> None:
        place = bisect_left(self._starts, start) if self._starts and start <= self._starts[-1] else len(self._starts)
        new = place == len(self._starts) or self._starts[place] != start
        if self._rows is not None:
            total = self._with_rows(self._rows.setdefault(start, ([], [])), times, partials)
        else:
            total = self.context.fold(partials)
            total = total if new else self.context.combine(self._partials[place], total)
        if new:
            self._starts.insert(place, start)
            self._partials.insert(place, total)
        else:
            self._partials[place] = total
        if self._tree is not None:
            self._tree.splice(place, 0 if new else 1, [total])

    def _with_rows(self, rows: tuple[list[int], list[Any]], times: Sequence[int], partials: Sequence[Any]) -> Any:
        kept, values = rows
        for time, partial in zip(times, partials, strict=True):
            at = bisect_right(kept, time)
            kept.insert(at, time)
            values.insert(at, partial)
        return self.context.fold(values)

    def answer(self, query: int, start: int, end: int) -> Any:
        low = bisect_left(self._starts, start)
        if query in self.context.gaps:
            # A session starts with a row, somewhere in its first slice.
            low = bisect_right(self._starts, start) - 1
        high = bisect_left(self._starts, end)
        if low >= high:
            return EMPTY
        if self._tree is not None:
            return self._tree.between(low, high)
        return self.context.fold(self._partials[low:high])

    def evict(self, needed: int, horizon: int) -> None:
        gone = bisect_right(self._starts, needed) - 1
        if gone <= 0:
            return
        if self._tree is not None:
            self._tree.drop(gone)
        for start in self._starts[:gone] if self._rows is not None else ():
            assert self._rows is not None
            del self._rows[start]
        del self._starts[:gone]
        del self._partials[:gone]

    def held(self) -> Held:
        tuples = sum(len(times) for times, _ in self._rows.values()) if self._rows is not None else 0
        slices = len(self._starts)
        return Held(tuples=tuples, partials=slices, nodes=max(slices - 1, 0) if self._tree is not None else 0)


class LazySlicing(Baseline):
    """Slices that are combined one by one when a window ends.

    Parameters
    ----------
    workload, ordered, counting
        As for any :class:`Baseline`.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = LazySlicing(sw.Workload(time="t").query("q", sw.sliding(10, every=5), top=sw.max("v")))
    >>> _ = op.process_batch({"t": [7, 3, 1], "v": [2, 5, 4]})
    >>> [(r.start, r.values) for r in op.advance(5)], op.held()
    ([(-5, {'top': 5})], Held(tuples=0, partials=2, nodes=0))
    """

    facts = FactCard(
        needs="associative",
        order="any",
        time="row 1; window r - 1 of r slices",
        space="a partial per slice",
        published="Traub et al., EDBT 2019",
    )

    def _technique(self, context: Context) -> Technique:
        return _Slices(context, eager=False)


class EagerSlicing(Baseline):
    """Slices with a tree above them.

    Parameters
    ----------
    workload, ordered, counting
        As for any :class:`Baseline`.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = EagerSlicing(sw.Workload(time="t").query("q", sw.sliding(10, every=5), words=sw.concat("w")))
    >>> _ = op.process_batch({"t": [7, 3, 1], "w": ["c", "b", "a"]})
    >>> [(r.start, r.values) for r in op.advance(10)]
    [(-5, {'words': 'ab'}), (0, {'words': 'abc'})]
    """

    facts = FactCard(
        needs="associative",
        order="any",
        time="row 1, and log2 n of n slices; window 2 log2 n",
        space="a partial per slice, and as many nodes",
        published="Traub et al., EDBT 2019",
    )

    def _technique(self, context: Context) -> Technique:
        return _Slices(context, eager=True)
