"""Costs: what running a plan has cost so far, counted where it happens and never measured by the clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from slicewise.aggregates.base import Monoid, Parts

__all__ = ["Costs"]


@dataclass(eq=False)
class Costs:
    """Counters, since an operator was made.

    Attributes
    ----------
    merges
        Slices that became part of the one before, because nothing separates them any more.
    splits
        Slices that became two, because an edge came to lie in them.
    updates
        Slices that took rows in, or gave them away, after they were made.
    recomputations
        Partials that were computed again from rows.
    combines
        Pairs of partials that were combined, however many in one call; an inverse counts as one.
    lifts
        Rows whose partials were made; aggregates that share a partial lift once.
    rows_again
        Rows that were lifted again for those partials that were computed again.
    """

    merges: int = 0
    splits: int = 0
    updates: int = 0
    recomputations: int = 0
    combines: int = 0
    lifts: int = 0
    rows_again: int = 0

    def __post_init__(self) -> None:
        self._inside = 0

    def to_data(self) -> dict[str, int]:
        """The counters as plain data."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def take(self, data: Mapping[str, int]) -> None:
        """Go on from counters as :meth:`to_data` gave them; from 0 for those it does not have."""
        for field in fields(self):
            setattr(self, field.name, data.get(field.name, 0))

    def count(
        self, *, merges: int = 0, splits: int = 0, updates: int = 0, recomputations: int = 0, rows: int = 0
    ) -> None:
        """Count what was done with slices; ``rows`` are those that partials were computed again from."""
        if not self._inside:
            self.merges += merges
            self.splits += splits
            self.updates += updates
            self.recomputations += recomputations
            self.rows_again += rows

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Do not count what is done only to look at the state or to save it."""
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1

    def watch(self, monoids: Iterable[Monoid]) -> None:
        """Count what is done with monoids. What one of them does inside of another's call is part of that call."""
        for monoid in {id(m): m for m in monoids}.values():
            every: Any = monoid
            every.combine = self._counted_pairs(monoid.combine)
            every.invert = self._counted_pairs(monoid.invert)
            every.fold = self._counted(monoid.fold, _folded)
            every.scan = self._counted(monoid.scan, _scanned)
            every.fold_rows = self._lifting(monoid.fold_rows)

    def _counted(self, function: Callable[..., Parts], combines: Callable[..., int]) -> Callable[..., Parts]:
        def counted(*operands: Any) -> Parts:
            if self._inside:
                return function(*operands)
            self.combines += combines(*operands)
            self._inside = 1
            try:
                return function(*operands)
            finally:
                self._inside = 0

        return counted

    def _counted_pairs(self, function: Callable[[Parts, Parts], Parts]) -> Callable[[Parts, Parts], Parts]:
        # Written out, because every small step calls it.
        def counted(a: Parts, b: Parts) -> Parts:
            if self._inside:
                return function(a, b)
            self.combines += len(a[0])
            self._inside = 1
            try:
                return function(a, b)
            finally:
                self._inside = 0

        return counted

    def _lifting(self, function: Callable[..., Parts]) -> Callable[..., Parts]:
        def lifting(columns: Any, times: np.ndarray, starts: np.ndarray) -> Parts:
            if self._inside:
                return function(columns, times, starts)
            self.lifts += len(times)
            self.combines += len(times) - len(starts)
            self._inside = 1
            try:
                return function(columns, times, starts)
            finally:
                self._inside = 0

        return lifting


def _folded(parts: Parts, starts: np.ndarray) -> int:
    return len(parts[0]) - len(starts)


def _scanned(parts: Parts) -> int:
    return max(len(parts[0]) - 1, 0)
