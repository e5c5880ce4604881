"""Pairs and PairsPlus: a slice starts where a window of any query starts or ends.

S. Krishnamurthy, C. Wu, M. Franklin: "On-the-fly Sharing for Streamed Aggregation", SIGMOD 2006, which cuts every slide
in two, at the end of a window; PairsPlus is the same on an eager store, as P. Carbone et al. measured it in "Cutty",
CIKM 2016.
"""

from __future__ import annotations

import numpy as np

from slicewise.baselines.base import Baseline
from slicewise.baselines.in_order_slices import InOrderSlices
from slicewise.baselines.technique import Context, Technique
from slicewise.swag.base import FactCard

__all__ = ["Pairs", "PairsPlus"]


class _AtEdges(InOrderSlices):
    """Slices from one start or end of a window to the next."""

    def edges(self, low: int, high: int) -> np.ndarray:
        return self.context.windows.edges(low, high)

    def next_edge(self, after: int) -> int:
        return min(self.context.windows.next_start(after), self.context.windows.next_end(after))


class Pairs(Baseline):
    """Two slices per slide, in a store that combines them one by one.

    Parameters
    ----------
    workload, counting
        As for any :class:`Baseline`.
    ordered
        Must be True: the technique is for rows in event-time order.

    Examples
    --------
    A window of 10 every 3: slices of 1 and 2.

    >>> import slicewise as sw
    >>> op = Pairs(sw.Workload(time="t").query("q", sw.sliding(10, every=3), n=sw.count()), ordered=True)
    >>> _ = op.process_batch({"t": list(range(30))})
    >>> op.held()
    Held(tuples=0, partials=6, nodes=0)
    """

    facts = FactCard(
        needs="associative",
        order="in order",
        time="row 1; window ceil(2r/s)",
        space="ceil(2r/s) partials",
        published="Krishnamurthy et al., SIGMOD 2006",
    )
    in_order = True
    takes_sessions = False

    def _technique(self, context: Context) -> Technique:
        return _AtEdges(context, eager=False)


class PairsPlus(Baseline):
    """The same slices in a store that keeps a tree above them.

    Parameters
    ----------
    workload, counting
        As for any :class:`Baseline`.
    ordered
        Must be True: the technique is for rows in event-time order.

    Examples
    --------
    >>> import slicewise as sw
    >>> PairsPlus(sw.Workload(time="t").query("q", sw.session(10), n=sw.count()), ordered=True)
    Traceback (most recent call last):
    slicewise.errors.QueryError: `PairsPlus` knows windows that lie on a grid; got session(10) in query 'q': use...
    """

    facts = FactCard(
        needs="associative",
        order="in order",
        time="row 1, slice log2(2r/s); window 2 log2(2r/s)",
        space="ceil(4r/s) partials",
        published="Carbone et al., CIKM 2016",
    )
    in_order = True
    takes_sessions = False

    def _technique(self, context: Context) -> Technique:
        return _AtEdges(context, eager=True)
