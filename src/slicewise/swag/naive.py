"""Naive: keep the values, fold them all at every query. What every other algorithm is measured against.

J. Li, D. Maier, K. Tufte, V. Papadimos, P. A. Tucker: "No pane, no gain: efficient evaluation of sliding-window
aggregates over data streams", SIGMOD Record 2005, where the values are panes; "Naive" in SlickDeque (EDBT 2018).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import reduce
from itertools import islice
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import FactCard, SlidingWindow

__all__ = ["Naive"]


class Naive(SlidingWindow):
    """All partials in a queue; a query folds those in its range.

    ::

        insert 6, 5, 0, 1           6  5  0  1
        query()                     6 + 5 + 0 + 1       3 combines
        query(last=3)                   5 + 0 + 1       2 combines

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.

    Examples
    --------
    >>> from slicewise.aggregates import sum
    >>> window = Naive(sum())
    >>> window.insert_many([6, 5, 0, 1])
    >>> window.query(), window.query(last=3)
    (12, 6)
    >>> window.evict(2)
    >>> window.query()
    1
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out",
        time="query n - 1 combines, the rest none",
        space="n",
        published="Li et al., SIGMOD Record 2005",
    )
    several_ranges = True

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__(aggregate)
        self._partials: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self._partials)

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1), no combine.
        """
        self._partials.append(self._lift(value))

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back."""
        self._partials.extend(self._lift_all(values))

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(n), no combine.
        """
        self._check_evict(n)
        leave = self._partials.popleft
        for _ in range(n):
            leave()

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(n), exactly one combine less than there are values in the range.
        """
        partials: Iterable[Any] = self._partials
        if last is not None:
            self._check_last(last)
            partials = islice(self._partials, len(self._partials) - last, None)
        elif not self._partials:
            return self._lower(self.aggregate.identity)
        return self._lower(reduce(self._combine, partials))

    def _oldest(self) -> Iterator[Any]:
        return iter(self._partials)

    def _check(self) -> None:
        assert isinstance(self._partials, deque)
