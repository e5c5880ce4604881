"""Wavelet matrices: the k-th smallest of any range, and how many values it holds below a bound, for all ranges at once.

A leaf beside ``kernels``, in NumPy only: range stores and :func:`slicewise.swag.roll` read medians, percentiles and
distinct counts off it. It is static, built over the ranks of values (0, 1, 2 and so on, equal for equal values), one
level per bit, the highest first. On each level the values are parted by that bit, those with a 0 before those with a 1,
each half in the order it had; kept is only how many zeros come before each place::

    ranks             5 1 4 0 6 1              the 3 places [1, 4) hold 1 4 0
    bit 2             1 0 1 0 1 0              of which two have a 0: [0, 2) on the next level, where they go on
    zeros before      0 0 1 1 2 2 3            if the k-th smallest is one of these, else [3 + 0, 3 + 1) where 4 is
    parted            1 0 1 | 5 4 6
    bit 1             0 0 0 | 0 0 1            and so on

Weights make one place count as several: a place for each distinct value of a slice, as heavy as there are rows, is the
run-length encoding of its sorted rows.

The method is that of Claude, Navarro and Ordóñez (*The wavelet matrix*, 2015), and distinct values are counted as
Muthukrishnan does (2002): a range holds as many as it has places whose value did not occur in it before.
"""

from __future__ import annotations

import numpy as np

__all__ = ["WaveletMatrix", "dense_ranks", "distinct_in", "previous_places"]


class WaveletMatrix:
    """Ranks in order, ready to be asked for ranges ``[low, high)``.

    Parameters
    ----------
    ranks
        Integers from 0 on, the fewer different ones the better: :func:`dense_ranks`.
    weights
        How often each place counts; once, if there are none.

    Notes
    -----
    Runtime complexity: O(n log d) to build for n places with d different ranks; O(log d) array steps for any number of
    ranges. Memory: 4 bytes for each place and level, 12 with weights.

    Examples
    --------
    >>> matrix = WaveletMatrix(np.array([5, 1, 4, 0, 6, 1]))
    >>> matrix.kth(np.array([1, 0]), np.array([4, 6]), np.array([0, 5]))
    array([0, 6])
    >>> matrix.below(np.array([1, 0]), np.array([4, 6]), np.array([2, 5]))
    array([2, 3])
    """

    def __init__(self, ranks: np.ndarray, weights: np.ndarray | None = None) -> None:
        self.bits = int(ranks.max(initial=0)).bit_length()
        small = np.uint16 if self.bits <= 16 else np.uint32 if self.bits <= 32 else np.int64
        ranks = ranks.astype(small, copy=False)
        #: For each level how many zeros come before each place, and how many there are; last, the number of all places.
        self.zeros: list[np.ndarray] = []
        #: For each level the running weight of the places in the order of the next one.
        self.running: list[np.ndarray] = []
        self._all = None if weights is None else _running(weights)
        for bit in range(self.bits - 1, -1, -1):
            one = (ranks >> bit) & 1 != 0
            zeros = np.zeros(len(ranks) + 1, np.int32)
            np.cumsum(~one, out=zeros[1:])
            self.zeros.append(zeros)
            ranks = np.concatenate([ranks[~one], ranks[one]])
            if weights is not None:
                weights = np.concatenate([weights[~one], weights[one]])
                self.running.append(_running(weights))

    def __len__(self) -> int:
        return len(self.zeros[0]) - 1 if self.zeros else 0

    def total(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The weight of each range."""
        return high - low if self._all is None else self._all[high] - self._all[low]

    def kth(self, low: np.ndarray, high: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The rank at place ``k``, from 0, of the sorted ranks of each range; ``k`` is less than the range's weight."""
        out = np.zeros(len(low), np.int64)
        for level, bit in enumerate(range(self.bits - 1, -1, -1)):
            low_zeros, high_zeros, weight = self._zeros(level, low, high)
            one = k >= weight
            k = k - np.where(one, weight, 0)
            low, high = self._down(level, one, low, high, low_zeros, high_zeros)
            out |= one.astype(np.int64) << bit
        return out

    def below(self, low: np.ndarray, high: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """The weight of the ranks of each range that are less than its bound."""
        out = np.zeros(len(low), np.int64)
        beyond = bound >> self.bits > 0
        for level, bit in enumerate(range(self.bits - 1, -1, -1)):
            low_zeros, high_zeros, weight = self._zeros(level, low, high)
            one = (bound >> bit) & 1 != 0
            out += np.where(one, weight, 0)
            low, high = self._down(level, one, low, high, low_zeros, high_zeros)
        if beyond.any():  # all of them: the rest has the bound's own rank, or what is left of it
            raise ValueError("a bound must not be greater than the largest rank")
        return out

    def _zeros(self, level: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        zeros = self.zeros[level]
        low_zeros, high_zeros = zeros[low], zeros[high]
        if self._all is None:
            return low_zeros, high_zeros, high_zeros - low_zeros
        running = self.running[level]
        return low_zeros, high_zeros, running[high_zeros] - running[low_zeros]

    def _down(
        self,
        level: int,
        one: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        low_zeros: np.ndarray,
        high_zeros: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Ranges on the next level: of the places with a 1 or a 0 on this one."""
        ones_from = self.zeros[level][-1]
        return (
            np.where(one, low - low_zeros + ones_from, low_zeros),
            np.where(one, high - high_zeros + ones_from, high_zeros),
        )


def _running(weights: np.ndarray) -> np.ndarray:
    out = np.zeros(len(weights) + 1, np.int64)
    np.cumsum(weights, out=out[1:])
    return out
