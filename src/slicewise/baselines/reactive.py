"""Reactive: an aggregator per query, and above it a windowing layer that tells it to insert, evict and trigger.

K. Tangwongsan, M. Hirzel, S. Schneider, K.-L. Wu: "General incremental sliding-window aggregation", PVLDB 2015. The
windowing layer is the paper's host system: it knows when a window ends, and which rows are in it. Shared among queries
the same tree is :class:`~slicewise.baselines.AggregateTree`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from slicewise.baselines.base import Baseline
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.errors import QueryError
from slicewise.swag.base import FactCard
from slicewise.swag.reactive import ReactiveAggregator
from slicewise.windows import TableEdges
from slicewise.workload import Workload

__all__ = ["Reactive"]


class _Windows(Technique):
    """A reactive aggregator for every query, with the times of the rows in it."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        queries = [*context.windows.queries, *context.gaps]
        self._windows = {query: ReactiveAggregator(context.aggregate) for query in queries}
        self._times: dict[int, list[int]] = {query: [] for query in queries}

    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        for query, window in self._windows.items():
            self._times[query] += times
            if len(partials) == 1:
                window.insert(partials[0])
                # The aggregation fires with every row, which is what keeps the tree up to date.
                window.trigger()
            else:
                window.insert_many(list(partials))

    def answer(self, query: int, start: int, end: int) -> Any:
        self._evict(query, start)
        return self._windows[query].trigger() if self._times[query] else EMPTY

    def _evict(self, query: int, start: int) -> None:
        gone = bisect_left(self._times[query], start)
        if gone:
            self._windows[query].evict(gone)
            del self._times[query][:gone]

    def evict(self, needed: int, horizon: int) -> None:
        for query in self._windows:
            self._evict(query, needed)

    def held(self) -> Held:
        tuples = sum(map(len, self._times.values()))
        return Held(tuples=tuples, nodes=max(tuples - len(self._times), 0))


class Reactive(Baseline):
    """Rows are inserted one by one or together; before a window is reported, the rows before its start are evicted.

    Parameters
    ----------
    workload, counting
        As for any :class:`Baseline`.
    ordered
        Must be True: the technique is for rows in event-time order.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = Reactive(sw.Workload(time="t").query("q", sw.sliding(10, every=5), top=sw.max("v")), ordered=True)
    >>> [(r.start, r.values) for r in op.process_batch({"t": [3, 7, 12], "v": [5, 2, 1]})]
    [(-5, {'top': 5}), (0, {'top': 5})]
    """

    facts = FactCard(
        needs="associative",
        order="in order",
        time="row log2 n for each query; window log2 n",
        space="tuples for each query, and as many nodes",
        published="Tangwongsan et al., PVLDB 2015",
    )
    in_order = True

    def _check_applies(self, workload: Workload, ordered: bool) -> None:
        super()._check_applies(workload, ordered)
        for query in workload.queries:
            if isinstance(query.window, TableEdges):
                rows = sorted((end, start) for start, end, _ in query.window.table.rows())
                if np.any(np.diff([start for _, start in rows]) < 0):
                    raise QueryError(
                        "`Reactive` evicts from the front, so of two windows that which ends first must start first; "
                        f"got others in query {query.name!r}: use CuttyEager",
                        query=query.name,
                    )

    def _technique(self, context: Context) -> Technique:
        return _Windows(context)
