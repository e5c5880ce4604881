"""TupleBuffer: every row is kept, and every window is computed from its rows.

J. Traub, P. Grulich, A. Rodriguez Cuellar, S. Bress, A. Katsifodimos, T. Rabl, V. Markl: "Efficient Window Aggregation
with General Stream Slicing", EDBT 2019, section 3.1. This is an interpretation of it: the ring buffer is a Python list,
whose insertions copy the pointers behind them as the paper's array does, and a batch is merged in at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from slicewise.baselines.base import Baseline
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.swag.base import FactCard

__all__ = ["SortedTuples", "TupleBuffer"]


class SortedTuples(Technique):
    """Rows sorted by event time, ties in order of arrival: a list of times and one of partials."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.times: list[int] = []
        self.partials: list[Any] = []

    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        self.merge(times, partials)

    def merge(self, times: Sequence[int], partials: Sequence[Any]) -> int:
        """Put rows in their places; returns the first place that changed."""
        if not self.times or times[0] >= self.times[-1]:
            place = len(self.times)
            self.times += times
            self.partials += partials
            return place
        place = bisect_right(self.times, times[0])
        if len(times) == 1:
            self.times.insert(place, times[0])
            self.partials.insert(place, partials[0])
            return place
        # Two sorted runs, which Python's sort merges; it is stable, and the rows that were there come first.
        joined = [*self.times[place:], *times]
        order = sorted(range(len(joined)), key=joined.__getitem__)
        behind = [*self.partials[place:], *partials]
        self.times[place:] = [joined[i] for i in order]
        self.partials[place:] = [behind[i] for i in order]
        return place

    def range_of(self, start: int, end: int) -> tuple[int, int]:
        """The places of the rows in a window."""
        return bisect_left(self.times, start), bisect_left(self.times, end)

    def answer(self, query: int, start: int, end: int) -> Any:
        low, high = self.range_of(start, end)
        return self.context.fold(self.partials[low:high]) if low < high else EMPTY

    def evict(self, needed: int, horizon: int) -> None:
        gone = bisect_left(self.times, needed)
        del self.times[:gone]
        del self.partials[:gone]

    def held(self) -> Held:
        return Held(tuples=len(self.times))


class TupleBuffer(Baseline):
    """Rows in a sorted buffer; a window is folded when it is due, each on its own.

    Parameters
    ----------
    workload, ordered, counting
        As for any :class:`Baseline`.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = TupleBuffer(sw.Workload(time="t").query("q", sw.tumbling(10), words=sw.concat("w")))
    >>> _ = op.process_batch({"t": [7, 3, 12], "w": ["b", "a", "c"]})
    >>> [(r.start, r.values) for r in op.advance(10)], op.held().tuples
    ([(0, {'words': 'ab'})], 1)
    """

    facts = FactCard(
        needs="associative",
        order="any",
        time="row 0, or a copy out of order; window r - 1",
        space="tuples",
        published="Traub et al., EDBT 2019, section 3.1",
    )

    def _technique(self, context: Context) -> Technique:
        return SortedTuples(context)
