"""Slides: the numbers of ticks on event time and on measures, and how far they reach."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.amounts import Amount
from slicewise.times import LARGEST_TIME
from slicewise.windows import Window

__all__ = ["MOST_TICKS", "MeasureLimit", "last_tick", "limit_of"]

#: A row that would make more ticks of its key due than this is refused.
MOST_TICKS = 1_000_000
#: Up to here a double holds every number of a slide exactly.
LARGEST_NUMBER = 2**53


@dataclass(frozen=True)
class MeasureLimit:
    """What the windows on a measure ask of its values.

    Attributes
    ----------
    furthest
        How far from 0 slides have numbers; infinite where no window slides by the measure.
    exact
        All lengths are integers, and so are bounds if values are.
    slide
        The smallest slide whose ticks are reported whether rows have come or not; None if there is none.
    """

    furthest: float
    exact: bool
    slide: int | float | None

    def reach(self, value: np.ndarray) -> float:
        """How far from 0 these values may lie."""
        whole = self.exact and value.dtype.kind == "i"
        return float(LARGEST_TIME) if whole else self.furthest


def limit_of(measure: str, windows: Iterable[Window], slides: Iterable[Amount | None]) -> MeasureLimit:
    """What some windows ask of a measure; ``slides`` are those whose ticks come without rows."""
    furthest, exact = float("inf"), True
    for window in windows:
        amounts = {name: getattr(window, name, None) for name in ("length", "every")}
        sizes = {n: a.size for n, a in amounts.items() if isinstance(a, Amount) and a.measure.column == measure}
        if not sizes:
            continue
        offset = getattr(window, "offset", 0) if len(sizes) == 2 else 0
        exact &= all(isinstance(size, int) for size in (*sizes.values(), offset))
        if "every" in sizes:
            furthest = min(furthest, float(LARGEST_NUMBER * sizes["every"] - abs(offset) - sizes.get("length", 0)))
    ticking = [s.size for s in slides if s is not None and s.measure.column == measure]
    return MeasureLimit(furthest, exact, min(ticking, default=None))


def last_tick(value: np.ndarray, step: Any, offset: Any = 0, length: Any = 0) -> np.ndarray:
    """The number k of the last tick ``k * step + offset + length`` at or before each value.

    On floats these sums are rounded, and as rounded they are the bounds. Values must be so near that numbers fit 64
    bits; see :class:`MeasureLimit`.

    >>> last_tick(np.array([0.29, 0.3, 0.6]), 0.1)      # 3 * 0.1 is a little more than 0.3, and 6 * 0.1 than 0.6
    array([2, 2, 5])
    """

    def tick(k: np.ndarray) -> np.ndarray:
        return k * step + offset + length

    k = np.floor((value - offset - length) / step).astype(np.int64)
    while len(beyond := np.flatnonzero(tick(k) > value)):  # division is rounded: the guess may be beside the truth
        k[beyond] -= 1
    while len(short := np.flatnonzero(tick(k + 1) <= value)):
        k[short] += 1
    return k
