"""TupleBuckets: a bucket per window, with its rows; for aggregates that need them in order.

J. Traub et al.: "Efficient Window Aggregation with General Stream Slicing", EDBT 2019, section 3.3: buckets as in J. Li
et al., SIGMOD 2005, that hold tuples. A row is kept once for every window that holds it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from slicewise.baselines.aggregate_buckets import Buckets
from slicewise.baselines.base import Baseline
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.swag.base import FactCard

__all__ = ["TupleBuckets"]

#: Times and partials of the rows of a bucket.
Rows = tuple[list[int], list[Any]]


class _RowBuckets(Buckets):
    """Buckets of sorted rows."""

    def added(self, content: Any, times: Sequence[int], partials: Sequence[Any]) -> Rows:
        return self.joined(([], []) if content is EMPTY else content, (list(times), list(partials)))

    def joined(self, content: Any, other: Any) -> Rows:
        kept, values = content
        times, partials = other
        place = bisect_right(kept, times[0]) if kept and times[0] < kept[-1] else len(kept)
        if place == len(kept):
            return kept + times, values + partials
        joined, behind = kept[place:] + times, values[place:] + partials
        order = sorted(range(len(joined)), key=joined.__getitem__)
        return kept[:place] + [joined[i] for i in order], values[:place] + [behind[i] for i in order]

    def folded(self, content: Any) -> Any:
        return self.context.fold(content[1])

    def held(self) -> Held:
        return Held(tuples=sum(len(times) for times, _ in self.contents()), partials=super().held().partials)


class TupleBuckets(Baseline):
    """A row is put into the bucket of every window that holds it; a window that is due is folded.

    Parameters
    ----------
    workload, ordered, counting
        As for any :class:`Baseline`.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = TupleBuckets(sw.Workload(time="t").query("q", sw.sliding(10, every=5), words=sw.concat("w")))
    >>> _ = op.process_batch({"t": [7, 3], "w": ["b", "a"]})
    >>> [(r.start, r.values) for r in op.advance(10)], op.held().tuples
    ([(-5, {'words': 'a'}), (0, {'words': 'ab'})], 1)
    """

    facts = FactCard(
        needs="associative",
        order="any",
        time="row 0, kept for each window that holds it; window r - 1",
        space="tuples, for each window that holds them",
        published="Li et al., SIGMOD 2005",
    )

    def _technique(self, context: Context) -> Technique:
        return _RowBuckets(context)
