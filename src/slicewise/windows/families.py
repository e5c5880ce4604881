"""Families: where windows with known bounds lie on a measure, in numbers. Given by kinds, read by plan and engine."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from slicewise.times import INFINITY

__all__ = ["PeriodicFamily", "Progression", "Shape"]


class Shape(enum.IntEnum):
    """Where window ``m`` of a family starts; all of them end at ``phase + m * every``."""

    #: ``length`` before its end.
    SLIDING = 0
    #: At the last ``origin + k * length`` before its end.
    CUMULATIVE = 1
    #: At ``origin``, always.
    FIXED = 2


@dataclass(frozen=True)
class Progression:
    """Edges ``phase + k * step``, for every integer k."""

    step: int
    phase: int


class PeriodicFamily(NamedTuple):
    """Windows numbered by an integer ``m``, whose ends lie ``every`` apart: ``end(m) = phase + m * every``.

    Attributes
    ----------
    shape
        Where they start.
    every, phase
        How far ends lie apart, and where window 0 ends.
    length
        Of a sliding window the whole, of a cumulative one the longest; a fixed one grows by ``every``.
    origin
        Where a window starts.
    last
        The number of the last window.
    """

    shape: Shape
    every: int
    phase: int
    length: int
    origin: int
    last: int = INFINITY

    @property
    def overlap(self) -> int:
        """How many windows hold a row at once."""
        if self.shape == Shape.FIXED:
            # Of windows that never end, what counts is that the slices before the horizon merge into one.
            return min(self.last, 2)
        return max(1, -(-self.length // self.every))

    @property
    def progressions(self) -> frozenset[Progression]:
        """The edges that lie on grids, without end.

        >>> family = PeriodicFamily(Shape.SLIDING, every=10, phase=13, length=13, origin=0)
        >>> sorted((progression.step, progression.phase) for progression in family.progressions)
        [(10, 0), (10, 3)]
        """
        if self.last < INFINITY:
            return frozenset()
        bounds = (self.origin, self.phase) if self.shape == Shape.SLIDING else (self.phase,)
        return frozenset(Progression(self.every, at % self.every) for at in bounds)

    @property
    def points(self) -> frozenset[int]:
        """The edges that belong to no grid.

        >>> sorted(PeriodicFamily(Shape.FIXED, every=5, phase=20, length=5, origin=20, last=1).points)
        [20, 25]
        """
        if self.shape != Shape.FIXED:
            return frozenset()
        ends = range(1, self.last + 1) if self.last < INFINITY else ()
        return frozenset([self.origin, *(self.phase + m * self.every for m in ends)])

    def ended_by(self, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the last window that ends at or before some instants starts and ends; there is nothing in none.

        >>> family = PeriodicFamily(Shape.CUMULATIVE, every=5, phase=0, length=10, origin=0)
        >>> family.ended_by(np.array([4, 5, 12]))
        (array([-10,   0,   0]), array([ 0,  5, 10]))
        """
        number = np.minimum((time - self.phase) // self.every, self.last)
        end = self.phase + number * self.every
        if self.shape == Shape.SLIDING:
            return end - self.length, end
        if self.shape == Shape.CUMULATIVE:
            return self.origin + (end - 1 - self.origin) // self.length * self.length, end
        return np.full(len(time), self.origin), np.where(number < 1, self.origin, end)
