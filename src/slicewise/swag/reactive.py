"""ReactiveAggregator: FlatFAT that waits: inserts and evictions are gathered, and the tree is updated when it is asked.

K. Tangwongsan, M. Hirzel, S. Schneider, K.-L. Wu: "General incremental sliding-window aggregation", PVLDB 2015,
section 5.
"""

from __future__ import annotations

from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import FactCard
from slicewise.swag.flatfat import FlatFAT

__all__ = ["ReactiveAggregator"]


class ReactiveAggregator(FlatFAT):
    """The window of :class:`FlatFAT` with the three events of the paper: insert, evict, trigger.

    An event writes a slot and nothing above it; a trigger recombines each node above the written slots once. A value
    that takes the slot of one that has left costs a single path::

        full window of 4       d  a  b  c
        evict()                d  _  b  c        slot 1 is due
        insert e               d  e  b  c        slot 1 is due
        trigger()                                one path of log2(4) = 2 combines

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    capacity
        The number of slots to begin with, a power of two.

    Examples
    --------
    >>> from slicewise.aggregates import max
    >>> window = ReactiveAggregator(max(), capacity=4)
    >>> window.insert_many([6, 5, 0, 1])
    >>> window.trigger()
    6
    >>> window.evict()
    >>> window.insert(3)
    >>> window._due
    {0}
    >>> window.trigger()
    5
    """

    facts = FactCard(
        needs="associative",
        order="any: insert_at, update and evict_at anywhere",
        time="m(1 + ceil(log2(n/m))) combines per trigger after m events",
        space="2n, below 4n if n is no power of two",
        published="Tangwongsan et al., PVLDB 2015",
    )

    def __init__(self, aggregate: Aggregate, capacity: int = 1) -> None:
        super().__init__(aggregate, capacity)
        self._due: set[int] = set()

    def _write(self, slot: int, partial: Any) -> None:
        self._tree.nodes[self._tree.capacity + slot] = partial
        self._due.add(slot)

    def _update(self, changes: dict[int, Any]) -> None:
        for slot, partial in changes.items():
            self._write(slot, partial)

    def _resize(self, capacity: int) -> None:
        super()._resize(capacity)
        self._due.clear()

    def trigger(self) -> Any:
        """The aggregate of the window, brought up to date.

        Returns
        -------
        Any
            The lowered aggregate.

        Notes
        -----
        Runtime complexity: O(m + m log(n/m)) after m events.
        """
        return self.query()

    def query(self, last: int | None = None) -> Any:
        """The answer of a trigger, or the aggregate of the ``last`` values.

        Runtime complexity: O(m + m log(n/m)) after m events; then as in :class:`FlatFAT`.
        """
        if self._due:
            self._tree.repair(self._due)
            self._due.clear()
        return super().query(last)

    def _check(self) -> None:
        super()._check()
        assert all(0 <= slot < self._tree.capacity for slot in self._due)
