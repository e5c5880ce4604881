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

#: How many ranges are looked up at once, so that what belongs to them stays in the cache of a core.
_AT_ONCE = 2**13


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
    array([2, 4])
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
            zero = ranks & small(1 << bit) == 0
            zeros = np.zeros(len(ranks) + 1, np.int32)
            np.cumsum(zero, out=zeros[1:])
            self.zeros.append(zeros)
            ranks = _parted(ranks, zero, int(zeros[-1]))
            if weights is not None:
                weights = _parted(weights, zero, int(zeros[-1]))
                self.running.append(_running(weights))

    def __len__(self) -> int:
        return len(self.zeros[0]) - 1 if self.zeros else 0

    def total(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The weight of each range."""
        bounds = (low, high) if self._all is None else (self._all[low], self._all[high])
        weights: np.ndarray = bounds[1] - bounds[0]
        return weights

    def kth(self, low: np.ndarray, high: np.ndarray, k: np.ndarray) -> np.ndarray:
        """The rank at place ``k``, from 0, of the sorted ranks of each range; ``k`` is less than the range's weight."""
        pieces = [slice(at, at + _AT_ONCE) for at in range(0, len(low), _AT_ONCE)]
        return np.concatenate([np.empty(0, np.int64), *(self._kth(low[p], high[p], k[p]) for p in pieces)])

    def _kth(self, low: np.ndarray, high: np.ndarray, k: np.ndarray) -> np.ndarray:
        out = np.zeros(len(low), np.int64)
        for level, bit in enumerate(range(self.bits - 1, -1, -1)):
            low_zeros, high_zeros, weight = self._zeros(level, low, high)
            one = (k >= weight).astype(np.int64)
            k = k - weight * one
            low, high = self._down(level, one, low, high, low_zeros, high_zeros)
            out += one << bit
        return out

    def below(self, low: np.ndarray, high: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """The weight of the ranks of each range that are less than its bound."""
        out = np.zeros(len(low), np.int64)
        beyond = bound >> self.bits > 0
        if beyond.any():  # larger than every rank
            bound = np.where(beyond, 0, bound)
            out[beyond] = self.total(low[beyond], high[beyond])
        for level, bit in enumerate(range(self.bits - 1, -1, -1)):
            low_zeros, high_zeros, weight = self._zeros(level, low, high)
            one = (bound >> bit) & 1
            out += weight * one
            low, high = self._down(level, one, low, high, low_zeros, high_zeros)
        return out

    def _zeros(self, level: int, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        zeros = self.zeros[level]
        low_zeros, high_zeros = zeros.take(low).astype(np.int64), zeros.take(high).astype(np.int64)
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
        # In numbers and not by cases, which take NumPy longer.
        ones_from = int(self.zeros[level][-1])
        return (
            low_zeros + one * (low - 2 * low_zeros + ones_from),
            high_zeros + one * (high - 2 * high_zeros + ones_from),
        )


def _parted(values: np.ndarray, zero: np.ndarray, zeros: int) -> np.ndarray:
    """The values with a zero, then the others. NumPy takes much longer to pick by a mask than to compress."""
    out = np.empty_like(values)
    np.compress(zero, values, out=out[:zeros])
    np.compress(~zero, values, out=out[zeros:])
    return out


def _running(weights: np.ndarray) -> np.ndarray:
    out = np.zeros(len(weights) + 1, np.int64)
    np.cumsum(weights, out=out[1:])
    return out


def dense_ranks(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each key its rank, equal for equal keys and without gaps; and for each rank the place of one such key.

    >>> dense_ranks(np.array([70, 10, 70, 30]))
    (array([2, 0, 2, 1]), array([1, 3, 0]))
    """
    order = np.argsort(keys)
    ordered = keys[order]
    new = np.ones(len(keys), bool)
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.cumsum(new) - 1
    return ranks, order[new]


def previous_places(ranks: np.ndarray) -> np.ndarray:
    """Where the rank of each place stood last before it; -1 if it did not.

    >>> previous_places(np.array([2, 0, 2, 2, 0]))
    array([-1, -1,  0,  2,  1])
    """
    n = len(ranks)
    bits = max(n, 1).bit_length()
    packed = (ranks.astype(np.int64) << bits) | np.arange(n)
    packed.sort()  # by rank, then by place: NumPy sorts numbers much faster than it argsorts
    place = packed & ((1 << bits) - 1)
    packed >>= bits
    previous = np.full(n, -1)
    again = packed[1:] == packed[:-1]
    previous[place[1:][again]] = place[:-1][again]
    return previous


def distinct_in(
    previous: np.ndarray, low: np.ndarray, high: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """How many places of each range ``[low, high)`` hold a value that is not in the range before; or their weight.

    Ranges that move on, as those of a sliding window do, are counted in one pass: a place counts in those that begin
    behind its value's previous place, at it or before, and end behind it, and these are neighbours. Other ranges are
    looked up in a wavelet matrix of the previous places.

    Parameters
    ----------
    previous
        From :func:`previous_places`.
    weights
        Integers, whose sum must not leave 64 bits.

    Examples
    --------
    >>> previous = previous_places(np.array([2, 0, 2, 2, 0]))
    >>> distinct_in(previous, np.array([0, 1, 2]), np.array([3, 4, 4]))
    array([2, 2, 1])
    """
    if (low[1:] < low[:-1]).any() or (high[1:] < high[:-1]).any():
        return WaveletMatrix(previous + 1, weights).below(low, high, low + 1)
    place = np.arange(len(previous))
    first = np.maximum(np.searchsorted(low, previous, "right"), np.searchsorted(high, place, "right"))
    last = np.searchsorted(low, place, "right")
    some = np.flatnonzero(first < last)
    if weights is None:
        n = len(low) + 1
        change = np.bincount(first[some], minlength=n) - np.bincount(last[some], minlength=n)
    else:
        change = np.zeros(len(low) + 1, np.int64)
        np.add.at(change, first[some], weights[some])
        np.subtract.at(change, last[some], weights[some])
    counts: np.ndarray = np.cumsum(change)[: len(low)]
    return counts
