"""SubtractOnEvict: one running total, from which values that leave are subtracted. Also known as Panes (Inv) and R-Int.

J. Li et al.: "No pane, no gain", SIGMOD Record 2005 (differential aggregates); A. Arasu, J. Widom: "Resource sharing in
continuous sliding-window aggregates", VLDB 2004 (R-Int); the name is of K. Tangwongsan, M. Hirzel, S. Schneider:
"Low-latency sliding-window aggregation in worst-case constant time", DEBS 2017.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import FactCard, SlidingWindow, need_subtraction
from slicewise.swag.rolling import batch_of

__all__ = ["SubtractOnEvict"]


class SubtractOnEvict(SlidingWindow):
    """A queue of partials and the total of all of them.

    ::

        insert 6, 5, 0              6  5  0             total 11
        evict()      11 - 6            5  0             total  5
        insert 1      5 + 1            5  0  1          total  6

    Parameters
    ----------
    aggregate
        One with an inverse whose order does not matter, such as ``sw.sum()``; others are refused.

    Notes
    -----
    On floats the total drifts by the rounding of every value that ever passed, and an infinity or a NaN stays in it
    until the window is empty: TwoStacks and DABA have neither trouble.

    Examples
    --------
    >>> from slicewise.aggregates import max, sum
    >>> window = SubtractOnEvict(sum())
    >>> window.insert_many([6, 5, 0])
    >>> window.evict()
    >>> window.insert(1)
    >>> window.query()
    6
    >>> SubtractOnEvict(max())
    Traceback (most recent call last):
    slicewise.errors.AggregateError: `SubtractOnEvict` cannot run `max`: it has no inverse to take old values out of a
    total; use SlickDeque, TwoStacks or DABA
    """

    facts = FactCard(
        needs="associative, commutative, invertible",
        order="first in, first out",
        time="insert 1 combine, evict 1 invert, query none",
        space="n + 1",
        published="Arasu and Widom, VLDB 2004; Li et al., SIGMOD Record 2005",
    )

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        need_subtraction("SubtractOnEvict", aggregate, "use SlickDeque, TwoStacks or DABA")
        self._partials: deque[Any] = deque()
        self._total = aggregate.identity

    def __len__(self) -> int:
        return len(self._partials)

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1), one combine.
        """
        partial = self._lift(value)
        self._total = self._combine(self._total, partial)
        self._partials.append(partial)

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back; an array of numbers is totalled in NumPy first."""
        batch = batch_of(self.aggregate, values)
        if batch is None:
            super().insert_many(values)
            return
        self._total = self._combine(self._total, batch.total())
        self._partials.extend(batch.partials())

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(n), one invert for each; none if nothing stays.
        """
        self._check_evict(n)
        partials, total, invert = self._partials, self._total, self.aggregate.invert
        if n == len(partials):
            partials.clear()
            self._total = self.aggregate.identity
            return
        for _ in range(n):
            total = invert(total, partials.popleft())
        self._total = total

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window.

        Runtime complexity: O(1), no combine.
        """
        self._need_whole(last)
        return self._lower(self._total)

    def _oldest(self) -> Iterator[Any]:
        return iter(self._partials)

    def _check(self) -> None:
        if not self._partials:
            assert self._total == self.aggregate.identity
