"""Panes: slices of equal length, the greatest that divides the window and its slide.

J. Li, D. Maier, K. Tufte, V. Papadimos, P. Tucker: "No Pane, No Gain: Efficient Evaluation of Sliding-Window Aggregates
over Data Streams", SIGMOD Record 2005. For one query; Pairs is what followed for several.
"""

from __future__ import annotations

import numpy as np

from slicewise.baselines.base import Baseline
from slicewise.baselines.in_order_slices import InOrderSlices
from slicewise.baselines.technique import Context, Technique
from slicewise.errors import QueryError
from slicewise.kernels import steps_to
from slicewise.swag.base import FactCard
from slicewise.windows import TableEdges
from slicewise.workload import Workload

__all__ = ["Panes"]


class _EqualSlices(InOrderSlices):
    """Slices of one length, from the window's offset on."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, eager=False)
        self._pane, self._offset = context.windows.pane, int(context.windows.offset[0])

    def edges(self, low: int, high: int) -> np.ndarray:
        first, last = self.next_edge(low), self.next_edge(high)
        return steps_to(first, last - 1, self._pane)

    def next_edge(self, after: int) -> int:
        return self._offset + ((after - self._offset) // self._pane + 1) * self._pane


class Panes(Baseline):
    """Slices of gcd(length, slide), combined one by one when a window ends.

    Parameters
    ----------
    workload, counting
        As for any :class:`Baseline`.
    ordered
        Must be True: the technique is for rows in event-time order.

    Examples
    --------
    A window of 10 every 4: panes of 2.

    >>> import slicewise as sw
    >>> op = Panes(sw.Workload(time="t").query("q", sw.sliding(10, every=4), n=sw.count()), ordered=True)
    >>> _ = op.process_batch({"t": list(range(30))})
    >>> op.held()
    Held(tuples=0, partials=5, nodes=0)
    """

    facts = FactCard(
        needs="associative",
        order="in order",
        time="row 1; window ceil(r/gcd(r, s))",
        space="ceil(r/gcd(r, s)) partials",
        published="Li et al., SIGMOD Record 2005",
    )
    in_order = True
    takes_sessions = False

    def _check_applies(self, workload: Workload, ordered: bool) -> None:
        super()._check_applies(workload, ordered)
        windows = {query.window for query in workload.queries}
        if len(windows) > 1 or any(isinstance(window, TableEdges) for window in windows):
            raise QueryError(
                f"`Panes` cuts for one sliding window; got {', '.join(map(repr, windows))}: use Pairs for several"
            )

    def _technique(self, context: Context) -> Technique:
        return _EqualSlices(context)
