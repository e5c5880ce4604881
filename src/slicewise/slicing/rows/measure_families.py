"""Measure families: where windows with known bounds lie on a numeric column, floats included. Read by discretisers.

Windows of a family have numbers that grow with their ends, as on event time. Bounds are sums of floats, and as rounded
they are the bounds; that is why a family is asked for the numbers at values, and the arithmetic of event time is not
good enough.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from slicewise.slicing.rows.slides import last_tick
from slicewise.windows import Between, Cumulative, Landmark, Sliding, Window

__all__ = ["MeasureFamily", "family_on_measure"]


class MeasureFamily(Protocol):
    """The windows of one kind and its parameters."""

    def numbers(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first and the last window that a row at each value causes to be reported; the last before the first where
        there is none. Both grow with the values."""

    def bounds(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where windows start and end."""


@dataclass(frozen=True)
class _Sliding:
    length: Any
    every: Any
    offset: Any

    def numbers(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        first = last_tick(value, self.every, self.offset, self.length) + 1
        return first, last_tick(value, self.every, self.offset)

    def bounds(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        start = number * self.every + self.offset
        return start, start + self.length


@dataclass(frozen=True)
class _Cumulative:
    """Window ``p * ratio + j`` is the one of period ``p`` that has grown ``j + 1`` times."""

    length: Any
    every: Any
    offset: Any

    @property
    def ratio(self) -> int:
        ratio: int = round(self.length / self.every)
        return ratio

    def numbers(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        period = last_tick(value, self.length, self.offset)
        grown = last_tick(value, self.every, period * self.length + self.offset)
        # The last one ends with the period, wherever rounding puts the ticks before it.
        return period * self.ratio + np.minimum(grown, self.ratio - 1), (period + 1) * self.ratio - 1

    def bounds(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        period, grown = np.divmod(number, self.ratio)
        start = period * self.length + self.offset
        end = np.where(
            grown == self.ratio - 1, (period + 1) * self.length + self.offset, start + (grown + 1) * self.every
        )
        return start, end


@dataclass(frozen=True)
class _Landmark:
    every: Any
    since: Any

    def numbers(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        number = np.maximum(last_tick(value, self.every, self.since) + 1, 0)
        # Before the landmark: none, and the first one is still to come.
        return np.maximum(number, 1), number

    def bounds(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        end = number * self.every + self.since
        return np.full(len(number), self.since, end.dtype), end


@dataclass(frozen=True)
class _Between:
    start: Any
    end: Any

    def numbers(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (value >= self.end).astype(np.int64), (value >= self.start).astype(np.int64) - 1

    def bounds(self, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(number), self.start), np.full(len(number), self.end)


_FAMILIES: dict[type[Window], Callable[[Any], MeasureFamily]] = {
    Sliding: lambda w: _Sliding(w.length.size, w.every.size, w.offset),
    Cumulative: lambda w: _Cumulative(w.length.size, w.every.size, w.offset),
    Landmark: lambda w: _Landmark(w.every.size, w.since),
    Between: lambda w: _Between(w.start, w.end),
}


def family_on_measure(window: Window) -> MeasureFamily:
    """Where the windows of one kind lie on its measure.

    >>> from slicewise.amounts import units
    >>> from slicewise.windows import cumulative
    >>> family = family_on_measure(cumulative(units(1, "km"), every=units(0.25, "km")))
    >>> first, last = family.numbers(np.array([0.3, 0.8]))
    >>> first, last
    (array([1, 3]), array([3, 3]))
    >>> family.bounds(first)
    (array([0, 0]), array([0.5, 1. ]))
    """
    return _FAMILIES[type(window)](window)
