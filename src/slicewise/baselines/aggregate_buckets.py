"""AggregateBuckets: a bucket per window, with its aggregate, as Flink and Spark have it.

J. Li, D. Maier, K. Tufte, V. Papadimos, P. Tucker: "Semantics and Evaluation Techniques for Window Aggregates in Data
Streams", SIGMOD 2005 (window ids), as a rival in J. Traub et al.: "Efficient Window Aggregation with General Stream
Slicing", EDBT 2019, section 3.3. Sessions are buckets that merge, as in Flink.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from slicewise.baselines.base import Baseline
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.errors import QueryError
from slicewise.swag.base import FactCard
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["AggregateBuckets", "Buckets"]


class Buckets(Technique):
    """Buckets by query, start and end. What a bucket holds of its rows is made by ``added`` and read by ``folded``."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.buckets: dict[tuple[int, int, int], Any] = {}
        #: Those of sessions by query: in order, each as [first, last, content].
        self.sessions: dict[int, list[list[Any]]] = {query: [] for query in context.gaps}
        self._horizon = -INFINITY

    def added(self, content: Any, times: Sequence[int], partials: Sequence[Any]) -> Any:
        """The content of a bucket with some rows more; ``content`` is EMPTY for a new one."""
        total = self.context.fold(partials)
        return total if content is EMPTY else self.context.combine(content, total)

    def joined(self, content: Any, other: Any) -> Any:
        """The content of two buckets of a session that became one."""
        return self.context.combine(content, other)

    def folded(self, content: Any) -> Any:
        """The partial of a bucket."""
        return content

    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        first, last = times[0], times[-1]
        windows = self.context.windows.ended(max(first, self._horizon), INFINITY, first, last)
        at = np.array(times, np.int64)
        low, high = np.searchsorted(at, windows.start), np.searchsorted(at, windows.end)
        columns = (*windows, low, high)
        for query, start, end, i, j in zip(*(column.tolist() for column in columns), strict=True):
            if i < j:
                content = self.buckets.get((query, start, end), EMPTY)
                self.buckets[query, start, end] = self.added(content, times[i:j], partials[i:j])
        for query, gap in self.context.gaps.items():
            cuts = [0, *(np.flatnonzero(np.diff(at) > gap) + 1).tolist(), len(times)]
            for i, j in pairwise(cuts):
                self._join(self.sessions[query], gap, times[i:j], partials[i:j])

    def _join(self, buckets: list[list[Any]], gap: int, times: Sequence[int], partials: Sequence[Any]) -> None:
        low = high = bisect_left(buckets, times[0] - gap, key=lambda bucket: bucket[1])
        while high < len(buckets) and buckets[high][0] <= times[-1] + gap:
            high += 1
        first, last, content = times[0], times[-1], EMPTY
        for bucket in buckets[low:high]:
            first, last = min(first, bucket[0]), max(last, bucket[1])
            content = bucket[2] if content is EMPTY else self.joined(content, bucket[2])
        buckets[low:high] = [[first, last, self.added(content, times, partials)]]

    def answer(self, query: int, start: int, end: int) -> Any:
        if query in self.sessions:
            place = bisect_left(self.sessions[query], start, key=lambda bucket: bucket[0])
            return self.folded(self.sessions[query].pop(place)[2])
        content = self.buckets.get((query, start, end), EMPTY)
        return content if content is EMPTY else self.folded(content)

    def evict(self, needed: int, horizon: int) -> None:
        self._horizon = horizon
        for window in [window for window in self.buckets if window[2] <= horizon]:
            del self.buckets[window]

    def contents(self) -> list[Any]:
        """What is in the buckets."""
        of_sessions = [bucket[2] for buckets in self.sessions.values() for bucket in buckets]
        return [*self.buckets.values(), *of_sessions]

    def held(self) -> Held:
        return Held(partials=len(self.buckets) + sum(map(len, self.sessions.values())))


class AggregateBuckets(Baseline):
    """A row is combined into the aggregate of every window that holds it; a window that is due is there.

    Parameters
    ----------
    workload, ordered, counting
        As for any :class:`Baseline`.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = AggregateBuckets(sw.Workload(time="t").query("q", sw.sliding(10, every=5), top=sw.max("v")))
    >>> _ = op.process_batch({"t": [7, 3], "v": [2, 5]})
    >>> [(r.start, r.values) for r in op.advance(5)], op.held().partials
    ([(-5, {'top': 5})], 2)
    """

    facts = FactCard(
        needs="associative; out of order commutative",
        order="any",
        time="row 1 for each window that holds it; window 0",
        space="a partial per window",
        published="Li et al., SIGMOD 2005",
    )

    def _check_applies(self, workload: Workload, ordered: bool) -> None:
        super()._check_applies(workload, ordered)
        if ordered:
            return
        for query in workload.queries:
            for aggregate in query.aggregates.values():
                if not aggregate.commutative:
                    raise QueryError(
                        f"`AggregateBuckets` cannot put a row into the middle of `{aggregate.name}`, where order "
                        "matters; got ordered=False: use TupleBuckets",
                        query=query.name,
                    )

    def _technique(self, context: Context) -> Technique:
        return Buckets(context)
