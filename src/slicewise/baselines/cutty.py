"""CuttyLazy and CuttyEager: a slice starts where a window starts, and nowhere else.

P. Carbone, J. Traub, A. Katsifodimos, S. Haridi, V. Markl: "Cutty: Aggregate Sharing for User-Defined Windows", CIKM
2016, Algorithm 1, on its own store (:class:`~slicewise.swag.CuttyStore`). A window that ends is what the store holds
since its start, and the active slice; so ends need no cut, as long as rows come in order.
"""

from __future__ import annotations

import numpy as np

from slicewise.baselines.base import Baseline
from slicewise.baselines.in_order_slices import InOrderSlices
from slicewise.baselines.technique import Context, Technique
from slicewise.swag.base import FactCard

__all__ = ["CuttyEager", "CuttyLazy"]


class _AtStarts(InOrderSlices):
    """Slices from one window start to the next."""

    def edges(self, low: int, high: int) -> np.ndarray:
        return self.context.windows.edges(low, high, ends=False)

    def next_edge(self, after: int) -> int:
        return self.context.windows.next_start(after)


class CuttyLazy(Baseline):
    """Cutty with a store that combines slices one by one.

    Parameters
    ----------
    workload, counting
        As for any :class:`Baseline`.
    ordered
        Must be True: the technique is for rows in event-time order.

    Examples
    --------
    A window of 10 every 3: slices of 3, as in the paper's Figure 7.

    >>> import slicewise as sw
    >>> op = CuttyLazy(sw.Workload(time="t").query("q", sw.sliding(10, every=3), n=sw.count()), ordered=True)
    >>> _ = op.process_batch({"t": list(range(30))})
    >>> op.held()
    Held(tuples=0, partials=3, nodes=0)
    """

    facts = FactCard(
        needs="associative",
        order="in order",
        time="row 1; window ceil(r/s)",
        space="ceil(r/s) + 1 partials",
        published="Carbone et al., CIKM 2016",
    )
    in_order = True

    def _technique(self, context: Context) -> Technique:
        return _AtStarts(context, eager=False)


class CuttyEager(Baseline):
    """Cutty with a store that keeps a tree above its slices.

    Parameters
    ----------
    workload, counting
        As for any :class:`Baseline`.
    ordered
        Must be True: the technique is for rows in event-time order.

    Examples
    --------
    >>> import slicewise as sw
    >>> CuttyEager(sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()))
    Traceback (most recent call last):
    slicewise.errors.QueryError: `CuttyEager` takes rows in event-time order only; got ordered=False: use...
    """

    facts = FactCard(
        needs="associative",
        order="in order",
        time="row 1, slice log2(r/s); window 2 log2(r/s)",
        space="2 ceil(r/s) + 1 partials",
        published="Carbone et al., CIKM 2016",
    )
    in_order = True

    def _technique(self, context: Context) -> Technique:
        return _AtStarts(context, eager=True)
