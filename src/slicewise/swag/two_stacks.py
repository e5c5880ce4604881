"""TwoStacks: a queue made of two stacks, each of which knows its own aggregate.

K. Tangwongsan, M. Hirzel, S. Schneider: "Low-latency sliding-window aggregation in worst-case constant time", DEBS
2017, where it is the baseline; the trick itself is folklore of functional programming.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import FactCard, SlidingWindow
from slicewise.swag.rolling import batch_of

__all__ = ["TwoStacks"]


class TwoStacks(SlidingWindow):
    """Values come in on the back stack and leave from the front stack.

    A node of the front stack holds the aggregate from its value to the bottom, so that after each eviction the right
    answer for what is left lies on top. When the front stack is used up, the back stack is flipped onto it::

        insert a, b, c     F                       B  a b c    total abc
        evict() flips      F  c  bc  (a leaves)    B
        insert d, e        F  c  bc                B  d e      total de
        query()            bc + de

    Of the back stack only the aggregate of the whole is ever read, so only that is kept beside its values.

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = TwoStacks(concat())
    >>> window.insert_many("abc")
    >>> window.evict()
    >>> window._front_aggregates, window._back_values
    (['c', 'bc'], [])
    >>> window.insert_many("de")
    >>> window.query()
    'bcde'
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out",
        time="3 combines per slide amortised, n worst",
        space="2n",
        published="Tangwongsan et al., DEBS 2017",
    )

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self._front_values: list[Any] = []
        self._front_aggregates: list[Any] = []
        self._back_values: list[Any] = []
        self._back_total: Any = None

    def __len__(self) -> int:
        return len(self._front_values) + len(self._back_values)

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1), one combine, none onto an empty back stack.
        """
        partial, values = self._lift(value), self._back_values
        self._back_total = self._combine(self._back_total, partial) if values else partial
        values.append(partial)

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back; an array of numbers is totalled in NumPy first."""
        batch = batch_of(self.aggregate, values)
        if batch is None:
            super().insert_many(values)
            return
        total = batch.total()
        self._back_total = self._combine(self._back_total, total) if self._back_values else total
        self._back_values.extend(batch.partials())

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(1) amortised, no combine; a flip of k values needs k - 1.
        """
        self._check_evict(n)
        values, aggregates = self._front_values, self._front_aggregates
        at_hand = min(n, len(values))
        if at_hand:
            del values[-at_hand:], aggregates[-at_hand:]
            n -= at_hand
        if n:
            self._flip(n)

    def _flip(self, skipped: int) -> None:
        """Turn the back stack over onto the empty front stack, but for the ``skipped`` oldest values, which leave."""
        values, combine = self._back_values[: skipped - 1 : -1], self._combine
        aggregates: list[Any] = []
        for partial in values:
            aggregates.append(combine(partial, aggregates[-1]) if aggregates else partial)
        self._front_values, self._front_aggregates = values, aggregates
        self._back_values, self._back_total = [], None

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window.

        Runtime complexity: O(1), one combine, none if one of the stacks is empty.
        """
        self._need_whole(last)
        if not self._front_aggregates:
            return self._lower(self._back_total if self._back_values else self.aggregate.identity)
        front = self._front_aggregates[-1]
        return self._lower(self._combine(front, self._back_total) if self._back_values else front)

    def _oldest(self) -> Iterator[Any]:
        return chain(reversed(self._front_values), self._back_values)

    def _check(self) -> None:
        assert len(self._front_values) == len(self._front_aggregates)
        if self._front_values:
            assert self._front_aggregates[0] is self._front_values[0]
        assert self._back_values or self._back_total is None
