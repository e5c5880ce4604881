"""The contract of all sliding-window aggregators: insert at the back, evict from the front, query the whole.

Every algorithm works on any :class:`~slicewise.aggregates.base.Aggregate` through its functions on single values
(``lift``, ``combine``, ``lower``, ``identity`` and, where the algorithm asks for it, ``invert``), one file each, with
the paper's citation on top and a :class:`FactCard`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError, SlicewiseError

__all__ = ["EmptyWindowError", "FactCard", "SlidingWindow"]


class EmptyWindowError(SlicewiseError, IndexError):
    """There are not as many values in the window as were to leave it, or as were asked about."""


@dataclass(frozen=True)
class FactCard:
    """What one must know to choose an algorithm."""

    needs: str
    order: str
    time: str
    space: str
    published: str


class SlidingWindow(ABC):
    """A first-in-first-out window that knows the aggregate of what it holds.

    Parameters
    ----------
    aggregate
        What to compute, such as ``sw.max()``.
    """

    facts: ClassVar[FactCard]

    def __init__(self, aggregate: Aggregate) -> None:
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"`aggregate` must be an aggregate such as sw.sum(); got {aggregate!r}")
        self.aggregate = aggregate

    @abstractmethod
    def __len__(self) -> int:
        """How many values the window holds."""

    @abstractmethod
    def insert(self, value: Any) -> None:
        """Add a value at the back."""

    @abstractmethod
    def evict(self, n: int = 1) -> None:
        """Let the ``n`` oldest values go; all or nothing."""

    @abstractmethod
    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window or, where the algorithm answers several ranges, of its ``last`` values."""

    @abstractmethod
    def enforce(self, policy: Callable[[Any, Any], bool]) -> int:
        """Evict the longest prefix for which ``policy(total, oldest)`` holds; returns how many values left.

        ``total`` is the lowered aggregate of the window before anything leaves, ``oldest`` that of the prefix. The
        policy must be monotone: once it fails for a prefix it fails for every longer one.
        """

    @abstractmethod
    def _check(self) -> None:
        """The invariants, for tests: called after every mutation."""

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back, one after the other."""
        for value in values:
            self.insert(value)

    def _check_evict(self, n: int) -> None:
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise QueryError(f"`n` must be a count of values; got {n!r}")
        if n > len(self):
            raise EmptyWindowError(f"cannot evict {n} of {len(self)} values; the window is unchanged")

    def _check_last(self, last: int) -> None:
        if not isinstance(last, int) or isinstance(last, bool) or last < 1:
            raise QueryError(f"`last` must be a positive count of values; got {last!r}")
        if last > len(self):
            raise EmptyWindowError(f"cannot query the last {last} of {len(self)} values")
