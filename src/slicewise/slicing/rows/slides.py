"""Slides: the numbers of ticks on event time and on measures, and how far they reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from slicewise.amounts import Amount
from slicewise.times import LARGEST_TIME
from slicewise.windows import Window

__all__ = ["MOST_TICKS", "MeasureLimit", "last_tick", "limit_of", "over_gaps"]

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
        sizes = {name: a.size for name, a in window.lengths.items() if a.measure.column == measure}
        points = window.instants.values() if window.measures == (window.measure,) else ()
        exact &= all(isinstance(size, int) for size in (*sizes.values(), *points))
        if "every" in sizes:
            beside = max(map(abs, points), default=0) + sizes.get("length", 0)
            furthest = min(furthest, float(LARGEST_NUMBER * sizes["every"] - beside))
    ticking = [s.size for s in slides if s is not None and s.measure.column == measure]
    return MeasureLimit(furthest, exact, min(ticking, default=None))


def over_gaps(ticks: Sequence[int], known: Sequence[bool], last: Sequence[int] | None = None) -> dict[int, int]:
    """The rows of one key that lie too many ticks away from their neighbours, each with the neighbour.

    ``ticks`` are the numbers of the last ticks before rows in order, of which some were known before, or none: then the
    first is taken for known. From the first known row on each new one is compared with the one before it that stays,
    and in front of it with the one behind it::

        ticks  -9M  -1M   0    5  9M  10          0 was known: -1M stays; -9M, which lies 8M before -1M, does not;
               new  new known new new new         neither does 9M, and 10 lies 5 after 5

    Where a row stands for several ticks in a row, ``ticks`` are the first of them, and ``last`` the last.

    >>> over_gaps([-9_000_000, -1_000_000, 0, 5, 9_000_000], [False, False, True, False, False])
    {0: 1, 4: 3}
    """
    first = next((i for i, was in enumerate(known) if was), 0)
    behind = ticks if last is None else last
    neighbours: dict[int, int] = {}
    for way in (range(first + 1, len(ticks)), range(first - 1, -1, -1)):
        beside = first
        for i in way:
            apart = ticks[i] - behind[beside] if way.step > 0 else ticks[beside] - behind[i]
            if not known[i] and apart > MOST_TICKS:
                neighbours[i] = beside
            else:
                beside = i
    return dict(sorted(neighbours.items()))


def last_tick(value: np.ndarray, step: Any, offset: Any = 0, length: Any = 0) -> np.ndarray:
    """The number k of the last tick ``k * step + offset + length`` at or before each value.

    On floats these sums are rounded, and as rounded they are the bounds. Values must be so near that numbers fit 64
    bits; see :class:`MeasureLimit`.

    >>> last_tick(np.array([0.29, 0.3, 0.6]), 0.1)      # 3 * 0.1 is a little more than 0.3, and 6 * 0.1 than 0.6
    array([2, 2, 5])
    """

    if value.dtype.kind == "i" and all(map(isinstance, (step, offset, length), repeat((int, np.integer)))):
        whole: np.ndarray = (value - (offset + length)) // step
        return whole

    def tick(k: np.ndarray) -> np.ndarray:
        ticks: np.ndarray = k * step + offset + length
        return ticks

    k: np.ndarray = np.floor((value - offset - length) / step).astype(np.int64)
    while len(beyond := np.flatnonzero(tick(k) > value)):  # division is rounded: the guess may be beside the truth
        k[beyond] -= 1
    while len(short := np.flatnonzero(tick(k + 1) <= value)):
        k[short] += 1
    return k
