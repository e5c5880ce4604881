"""Fixed point: sums of the last doubles as whole numbers of units, so that what is taken out leaves nothing behind.

A running sum of doubles drifts, and every addition waits for the one before it. Whole numbers of 64 bits are added
exactly, several times as fast, and may wrap around on the way. All that is lost is what every value is rounded by.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

__all__ = ["RunningSums"]


class RunningSums:
    """The sums of the values in windows that slide side by side, each in units of a power of two.

    Parameters
    ----------
    most
        How far from 0 the values in each window are at most.
    totals
        What their absolute values add up to at most.

    Notes
    -----
    A unit is the smallest one with which sums fit in 63 bits and values in the 52 bits that doubles have behind the
    point. A value is rounded by half a unit at most, the sum of k values is off by k halves at most, and that is all.

    Examples
    --------
    >>> running = RunningSums(most=[8.0], totals=[14.0])
    >>> running.add(np.array([[1.0, 2.0]]))
    >>> running.slide(np.array([[[4.0, 8.0], [1.0, 2.0]]]))
    array([[ 6., 12.]])
    """

    def __init__(self, most: Sequence[float], totals: Sequence[float]) -> None:
        self.units = [_unit(*bounds) for bounds in zip(most, totals, strict=True)]
        self._factors = np.array(self.units)[:, np.newaxis]
        # Around these, doubles are a unit apart: what is added to one is rounded to units, and its bits count them.
        self._zeros = 1.5 * 2**52 * self._factors
        self._sums = np.zeros(len(self.units), np.int64)

    def add(self, values: np.ndarray) -> None:
        """Values come, a row for each window, and none leaves."""
        units = (values + self._zeros).view(np.int64)
        units -= self._zeros.view(np.int64)
        self._sums += np.add.reduce(units, axis=1)

    def slide(self, both: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """The sums after each value: for each window a row of values that come while those of a second one leave.

        What is given is overwritten.
        """
        both += self._zeros[:, np.newaxis]
        units = both.view(np.int64)
        sums = units[:, 0]
        sums -= units[:, 1]
        sums[:, 0] += self._sums
        np.add.accumulate(sums, axis=1, out=sums)
        self._sums = sums[:, -1].copy()
        floats: np.ndarray = np.multiply(sums, self._factors, out=out)
        return floats


def _unit(most: float, total: float) -> float:
    return math.ldexp(1.0, max(math.frexp(most)[1] - 51, math.frexp(total)[1] - 62, sys.float_info.min_exp))
