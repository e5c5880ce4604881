"""Kernels: the few array moves that everything else is made of. No state, no windows, no aggregates."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

__all__ = [
    "KeyTimeIndex",
    "bisect",
    "bytes_of",
    "enumerate_ranges",
    "expand_ranges",
    "match_rows",
    "order_by",
    "order_within",
    "running_last",
    "segment_ends",
    "segment_lengths",
    "segment_starts",
    "sorted_unique",
    "steps_to",
]

#: Composite sort keys stay below this, so that adding a remainder never overflows.
ROOM = 2**62
#: So few rows are sorted as they are: any other way has taken longer before it begins.
FEW_ROWS = 512
#: Up to this share of rows that are less than the one before, runs in order are long enough for a merge sort to pay.
FEW_LATE = 0.25


class _OfArrays(Protocol):
    @property
    def nbytes(self) -> int: ...


def bytes_of(parts: Iterable[_OfArrays]) -> int:
    """Bytes in arrays, and in what is made of arrays and knows how many.

    >>> bytes_of([np.zeros(3, np.int64), np.zeros(3, bool)])
    27
    """
    return sum(part.nbytes for part in parts)


def segment_starts(changed: np.ndarray) -> np.ndarray:
    """Where segments start, given for each row but the first whether it differs from the one before.

    >>> segment_starts(np.array([False, True, False]))
    array([0, 2])
    """
    later = changed.nonzero()[0]
    starts = np.zeros(len(later) + 1, np.int64)
    np.add(later, 1, out=starts[1:])
    return starts


def sorted_unique(values: np.ndarray) -> np.ndarray:
    """The different values, ascending. ``np.unique`` hashes first, which takes several times as long on numbers.

    >>> sorted_unique(np.array([3, 1, 3]))
    array([1, 3])
    """
    if len(values) < 2 or np.logical_and.reduce(values[1:] > values[:-1]):
        return values
    ordered = values.copy()
    ordered.sort()
    unique: np.ndarray = ordered[segment_starts(ordered[1:] != ordered[:-1])]
    return unique


def segment_ends(starts: np.ndarray, total: int) -> np.ndarray:
    """Where segments end that start there, of so many rows in all.

    >>> segment_ends(np.array([0, 2]), 5)
    array([2, 5])
    """
    ends = np.empty(len(starts), np.int64)
    ends[:-1] = starts[1:]
    ends[-1:] = total
    return ends


def segment_lengths(starts: np.ndarray, total: int) -> np.ndarray:
    """How long segments are that start there, of so many rows in all.

    >>> segment_lengths(np.array([0, 2]), 5)
    array([2, 3])
    """
    lengths = segment_ends(starts, total)
    lengths -= starts
    return lengths


def expand_ranges(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All positions of the ranges ``[low, high)``, end to end, and where each range starts among them.

    >>> expand_ranges(np.array([3, 7]), np.array([5, 10]))
    (array([3, 4, 7, 8, 9]), array([0, 2]))
    """
    if len(low) == 1:
        return np.arange(low[0], high[0]), np.zeros(1, np.int64)
    counts = high - low
    behind = counts.cumsum()
    starts = behind - counts
    return (low - starts).repeat(counts) + np.arange(behind[-1] if len(behind) else 0), starts


def steps_to(first: int, last: int, step: int) -> np.ndarray:
    """The numbers from ``first`` to ``last``, both included, in steps.

    ``np.arange`` counts them with doubles, and so may leave out the last one of large numbers.

    >>> steps_to(0, 3 * 2**60, 3 * 2**60), len(np.arange(0, 3 * 2**60 + 1, 3 * 2**60))
    (array([                  0, 3458764513820540928]), 1)
    """
    return first + step * np.arange((last - first) // step + 1)


def enumerate_ranges(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which range each of all the positions of ``[low, high]`` (both included) belongs to, and the positions.

    Ranges with ``high < low`` are empty.

    >>> enumerate_ranges(np.array([3, 7, 9]), np.array([4, 6, 9]))
    (array([0, 0, 2]), array([3, 4, 9]))
    """
    if len(low) == 1:
        number = np.arange(low[0], high[0] + 1)
        return np.zeros(len(number), np.int64), number
    counts: np.ndarray = high - low
    if len(counts) and np.maximum.reduce(counts) <= 0:
        which = (counts == 0).nonzero()[0]
        return which, low[which]
    counts += 1
    np.maximum(counts, 0, out=counts)
    which = np.arange(len(counts)).repeat(counts)
    return which, (low - (counts.cumsum() - counts)).repeat(counts) + np.arange(len(which))


def order_by(key: np.ndarray | None, value: np.ndarray, *, look: bool = True) -> np.ndarray | None:
    """The stable order of rows by (key, value); None if they are in that order already. No key: all have the same.

    Without a ``look``, rows are taken to be out of order.

    Six sorts in one: where values ascend, and for small ranges, a radix sort of 16-bit numbers; where few rows are
    late, a merge sort, which finds the runs that are in order; else a sort of 64-bit numbers that carry their own
    position (NumPy sorts values much faster than it argsorts), where only values fit into those a radix sort of keys
    behind it, and a lexsort when nothing fits.
    """
    n = len(value)
    if n < 2:
        return None
    if key is None or (key[0] == key[-1] and (key == key[0]).all()):
        falls = np.count_nonzero(value[1:] < value[:-1])
        if look and not falls:
            return None
        if n <= FEW_ROWS:
            return value.argsort(kind="stable")
        key, key_range, key_low = value, 1, 0  # the key is not looked at
    else:
        same = key[1:] == key[:-1]
        falls = n - 1 - np.count_nonzero((key[1:] > key[:-1]) | (same & (value[1:] >= value[:-1])))
        if not falls:
            return None
        key_low = int(key.min())
        key_range = int(key.max()) - key_low + 1
        if key_range < 2**16 and np.logical_and.reduce(value[1:] >= value[:-1]):
            return (key - key_low).astype(np.uint16).argsort(kind="stable")
    low = int(value.min())
    span = int(value.max()) - low + 1
    if key_range * span < 2**16:
        small = value - low if key_range == 1 else (key - key_low) * span + (value - low)
        return np.argsort(small.astype(np.uint16), kind="stable")
    if falls <= n * FEW_LATE and (key_range == 1 or key_range * span < ROOM):
        return np.argsort(value if key_range == 1 else (key - key_low) * span + (value - low), kind="stable")
    bits = n.bit_length()
    if key_range * span < ROOM >> bits:
        packed = (value - low if key_range == 1 else (key - key_low) * span + (value - low)) << bits
        packed |= np.arange(n)
        packed.sort()
        packed &= (1 << bits) - 1
        return packed
    if span < ROOM >> bits and key_range < 2**32:
        return _order_by_digits(key - key_low, value - low, bits)
    return np.lexsort((value, key))


def _order_by_digits(key: np.ndarray, value: np.ndarray, bits: int) -> np.ndarray:
    """By value first, then by 16 bits of the key at a time, each a radix sort that keeps the order before it."""
    packed = (value << bits) | np.arange(len(value))
    packed.sort()
    order = packed & ((1 << bits) - 1)
    for digits in (key, key >> 16) if int(key.max()) >= 2**16 else (key,):
        order = order[np.argsort((digits[order] & 0xFFFF).astype(np.uint16), kind="stable")]
    return order


def order_within(segment: np.ndarray, value: np.ndarray) -> np.ndarray | None:
    """An order of rows by value within segments, which are ascending; None if they are in order. Not stable.

    >>> order_within(np.array([0, 0, 1, 1]), np.array([2**62, -(2**62), 9, 7]))
    array([1, 0, 3, 2])
    """
    n = len(value)
    if n < 2 or ((segment[1:] > segment[:-1]) | (value[1:] >= value[:-1])).all():
        return None
    low, high = int(value.min()), int(value.max())
    if (int(segment[-1]) + 1) * (high - low + 1) < ROOM >> n.bit_length():
        return order_by(segment, value, look=False)
    # Values that fill 64 bits: all of them first, then by segments, whose numbers carry their place.
    order = np.argsort(value)
    if segment[0] != segment[-1]:
        bits = n.bit_length()
        packed = (segment[order] << bits) | np.arange(n)
        packed.sort()
        order = order[packed & ((1 << bits) - 1)]
    return order


class KeyTimeIndex:
    """Finds (key, time) pairs in rows sorted by them.

    A pair becomes one integer, so that all look-ups are one ``searchsorted``. Where keys times times do not fit, times
    are replaced by their rank. ``one_key`` promises that there is one key in all, which saves looking.
    """

    def __init__(self, key: np.ndarray, time: np.ndarray, *, one_key: bool = False) -> None:
        self._one_key = one_key
        self._ranks: np.ndarray | None = None
        self._low = self._span = 0
        self._plain = not len(key) or key[0] == key[-1]
        if self._plain:
            self._key = int(key[0]) if len(key) else 0
            self._packed = time
            return
        self._low = int(time.min())
        self._span = int(time.max()) - self._low + 2
        if int(key[-1] + 1) * self._span < ROOM:
            self._packed = key * self._span + (time - self._low)
        else:
            self._ranks = np.unique(time)
            self._span = len(self._ranks) + 1
            self._packed = key * self._span + np.searchsorted(self._ranks, time)

    def locate(self, key: np.ndarray, time: np.ndarray) -> np.ndarray:
        """How many rows come before each pair: the position of the first row of the key at or after the time."""
        if self._plain:
            at = self._packed.searchsorted(time)
            if self._one_key or not len(key) or (key == self._key).all():
                return at
            return np.where(key == self._key, at, np.where(key < self._key, 0, len(self._packed)))
        if self._ranks is not None:
            place = np.searchsorted(self._ranks, time)
        else:
            latest = self._low + self._span - 1
            place = np.minimum(np.maximum(time, self._low), latest) - self._low
        return np.searchsorted(self._packed, key * self._span + place)


def bisect(
    value: np.ndarray, wanted: np.ndarray, low: np.ndarray, high: np.ndarray, *, right: bool = False
) -> np.ndarray:
    """The first place in each range ``[low, high)`` of ascending values that is not before the wanted one, or beyond.

    >>> bisect(np.array([1, 2, 2, 5, 0, 4]), np.array([2, 2]), np.array([0, 4]), np.array([4, 6]))
    array([1, 5])
    >>> bisect(np.array([1, 2, 2, 5, 0, 4]), np.array([2, 2]), np.array([0, 4]), np.array([4, 6]), right=True)
    array([3, 5])
    """
    low, high = low.copy(), high.copy()
    while len(todo := np.flatnonzero(low < high)):
        middle = (low[todo] + high[todo]) // 2
        before = value[middle] <= wanted[todo] if right else value[middle] < wanted[todo]
        low[todo] = np.where(before, middle + 1, low[todo])
        high[todo] = np.where(before, high[todo], middle)
    return low


def running_last(group: np.ndarray, last: np.ndarray) -> np.ndarray:
    """The largest ``last`` so far within each group; equal groups stand together.

    >>> running_last(np.array([0, 0, 0, 1]), np.array([9, 5, 12, 3]))
    array([ 9,  9, 12,  3])
    """
    back = last[1:] < last[:-1]
    if not back.any():
        return last
    if group[0] == group[-1]:
        return np.maximum.accumulate(last)
    same = group[1:] == group[:-1]
    if not (same & back).any():
        return last
    # Ranks of groups and of times fit into one integer where the times themselves may not.
    times, rank = np.unique(last, return_inverse=True)
    number = np.concatenate([[0], np.cumsum(~same)])
    largest: np.ndarray = times[np.maximum.accumulate(number * len(times) + rank) - number * len(times)]
    return largest


def match_rows(table: tuple[np.ndarray, ...], wanted: tuple[np.ndarray, ...]) -> np.ndarray:
    """For each wanted row the position of the same row in ``table``, or -1. No row is in the table twice.

    >>> match_rows((np.array([1, 1, 2]), np.array([5, 6, 5])), (np.array([2, 1, 3]), np.array([5, 6, 5])))
    array([ 2,  1, -1])
    """
    n, m = len(table[0]), len(wanted[0])
    if not n or not m:
        return np.full(m, -1)
    columns = [np.concatenate([t, w]) for t, w in zip(table, wanted, strict=True)]
    is_wanted = np.concatenate([np.zeros(n, bool), np.ones(m, bool)])
    order = np.lexsort((is_wanted, *columns[::-1]))
    new = np.zeros(n + m, bool)
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    new[0] = True
    head = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    position = np.full(n + m, -1)
    position[order] = np.where(head < n, head, -1)
    return position[n:]
