"""FiBA and CuttyStore as windows that are first in, first out: their places are the times, or the ids.

Both take more than the contract asks for. So that the one suite, the benchmarks and the fact cards hold them beside all
others, ``ALGORITHMS`` has these two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import OnPartials, SlidingWindow
from slicewise.swag.cutty_store import CuttyStore
from slicewise.swag.fiba import FiBA

__all__ = ["CuttyInOrder", "FiBAInOrder"]


class FiBAInOrder(SlidingWindow):
    """A window of values in the order in which they come, on :class:`FiBA`: the time of a value is its number.

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    min_arity
        The fewest children of a node.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = FiBAInOrder(concat())
    >>> window.insert_many("abcdef")
    >>> window.evict(2)
    >>> window.query(), window.query(last=2)
    ('cdef', 'ef')
    """

    facts = FiBA.facts
    several_ranges = True

    def __init__(self, aggregate: Aggregate, min_arity: int = 2) -> None:
        super().__init__(aggregate)
        self._fiba = FiBA(OnPartials(aggregate), min_arity)
        self._back = 0

    def __len__(self) -> int:
        return len(self._fiba)

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1) amortised.
        """
        self._fiba.insert(self._back, self._lift(value))
        self._back += 1

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back, in bulk."""
        partials = self._lift_all(values)
        self._fiba.bulk_insert(enumerate(partials, self._back))
        self._back += len(partials)

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(log n) combines, O(1) amortised for one.
        """
        self._check_evict(n)
        if n == 1:
            self._fiba.evict()
        elif n:
            self._fiba.bulk_evict(self._back - len(self) + n - 1)

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(1), 2 combines; O(log n) for ``last``.
        """
        if last is not None:
            self._check_last(last)
        return self._lower(self._fiba.query(low=None if last is None else self._back - last))

    def _oldest(self) -> Iterator[Any]:
        return (partial for _, partial in self._fiba)

    def _check(self) -> None:
        self._fiba._check()


class CuttyInOrder(SlidingWindow):
    """A window of single values on :class:`CuttyStore`, each a slice of its own with its number for an id.

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    eager
        Whether aggregates of runs of partials are kept.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = CuttyInOrder(concat(), eager=False)
    >>> window.insert_many("abcdef")
    >>> window.evict(2)
    >>> window.query(), window.query(last=2)
    ('cdef', 'ef')
    """

    facts = CuttyStore.facts
    several_ranges = True

    def __init__(self, aggregate: Aggregate, eager: bool = True) -> None:
        super().__init__(aggregate)
        self._store = CuttyStore(aggregate, eager)
        self._back = 0

    def __len__(self) -> int:
        return len(self._store)

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(log n) amortised, log2 n combines; lazy O(1), none.
        """
        self._store.append(self._back, self._lift(value))
        self._back += 1

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(n), no combine.
        """
        self._check_evict(n)
        if n < len(self):
            self._store.remove_up_to(self._back - len(self) + n)
        else:
            self._store = CuttyStore(self.aggregate, self._store.eager)

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(log n), at most 2 log2 n combines; lazy O(n).
        """
        if last is not None:
            self._check_last(last)
        if not len(self):
            return self._lower(self.aggregate.identity)
        return self._lower(self._store.merge(self._back - (len(self) if last is None else last)))

    def _oldest(self) -> Iterator[Any]:
        return self._store.partials()

    def _check(self) -> None:
        self._store._check()
