"""Doubling store: answers as many ranges as there are rows, whatever their length, with one combine each.

Beside the other range stores, for windows as of single rows (:mod:`slicewise.slicing.as_of`), where a tree would take a
node of every level for every range.
"""

from __future__ import annotations

import numpy as np

from slicewise.aggregates.base import Parts, concat_parts, take_parts
from slicewise.slicing.answers.range_stores import EagerStore, LazyStore, Store

__all__ = ["DoublingStore"]

#: To fold ranges one by one takes no longer than to make the next size of blocks, if they have no more rows than this
#: share of all.
WORTH_DOUBLING = 2


class DoublingStore(Store):
    """Running values towards both ends of blocks of 1, 2, 4 rows and so on; a range takes one of each.

    The two ends of a range lie in one block of some size and in two halves of it. In the left half the values that run
    to its end, in the right one those that run from its beginning, make up the range::

        rows       a  b  c  d  e  f  g  h            the range [1, 7), b to g, lies in both halves of eight rows:
        to end     ad bd cd d  eh fh gh h            bd
        from       a  ab ac ad e  ef eg eh           eg

    The halves of the next size are made of those of this one: where a block becomes the left half of a larger one, its
    values that run to the end take in all of the right half, and the other way round. Ranges are answered at the size
    at which their ends part, so that two arrays are all that is kept. Values are added in pairs of equal size, and the
    error of floats grows with the logarithm of their number.

    Runtime complexity: O(n log n) combines in O(log n) array steps, one combine for each range.
    """

    def query(self, low: np.ndarray, high: np.ndarray) -> Parts:
        if not all(isinstance(part, np.ndarray) and part.dtype != object for part in self.parts):
            return EagerStore(self.monoid, self.parts).query(low, high)  # half of each block is made again at each size
        last = high - 1
        size = np.frexp((low ^ last).astype(np.float64))[1].astype(np.uint8)
        by_size = np.argsort(size, kind="stable")
        counts = np.bincount(size)
        answers, at = [], 0
        to_end, from_start = self.parts, self.parts
        rows_behind = np.cumsum(np.bincount(size, high - low)[::-1])[::-1]
        for level, count in enumerate(counts.tolist()):
            if level > 1 and rows_behind[level] < WORTH_DOUBLING * len(self.parts[0]):
                # Short ranges that happen to lie across the middle of a large block.
                some = by_size[at:]
                answers.append(LazyStore(self.monoid, self.parts).query(low[some], high[some]))
                break
            some = by_size[at : at + count]
            at += count
            if not level:
                answers.append(take_parts(self.parts, low[some]))
                continue
            if level == 2:
                to_end, from_start = (tuple(part.copy() for part in self.parts) for _ in range(2))
            if level > 1:
                to_end, from_start = self._doubled(to_end, from_start, 1 << (level - 2))
            if count:
                ends = take_parts(to_end, low[some]), take_parts(from_start, last[some])
                answers.append(self.monoid.combine(*ends))
        back = np.empty(len(low), np.int64)
        back[by_size] = np.arange(len(low))
        return take_parts(concat_parts(answers), back)

    def _doubled(self, to_end: Parts, from_start: Parts, half: int) -> tuple[Parts, Parts]:
        """The running values in blocks of twice ``half``, from those in halves, which they overwrite."""
        n, both = len(self.parts[0]), 2 * half
        whole = n // both * both
        left = tuple(_halves(part, whole, half, 0).ravel() for part in to_end)
        right = tuple(_halves(part, whole, half, half).ravel() for part in from_start)
        # A half as a whole is its first value that runs to the end, and its last that runs from the beginning.
        behind = tuple(np.repeat(part[half:whole:both], half) for part in to_end)
        before = tuple(np.repeat(part[half - 1 : whole : both], half) for part in from_start)
        to_end = _with_halves(to_end, whole, half, 0, self.monoid.combine(left, behind))
        from_start = _with_halves(from_start, whole, half, half, self.monoid.combine(before, right))
        if n - whole <= half:
            return to_end, from_start
        # A right half that is not full is the last of all: ranges end in it, and none goes on behind it.
        rest = slice(whole + half, n)
        before = tuple(np.repeat(part[whole + half - 1 : whole + half], n - whole - half) for part in from_start)
        return to_end, _with_rest(from_start, rest, self.monoid.combine(before, take_parts(from_start, rest)))


def _halves(part: np.ndarray, whole: int, half: int, at: int) -> np.ndarray:
    """One half of every whole block, a block to a row."""
    return part[:whole].reshape(-1, 2 * half)[:, at : at + half]


def _with_halves(parts: Parts, whole: int, half: int, at: int, values: Parts) -> Parts:
    """The parts with other values in one half of every whole block."""
    parts = _with_room(parts, values)
    for part, value in zip(parts, values, strict=True):
        _halves(part, whole, half, at)[:] = value.reshape(-1, half)
    return parts


def _with_rest(parts: Parts, rest: slice, values: Parts) -> Parts:
    parts = _with_room(parts, values)
    for part, value in zip(parts, values, strict=True):
        part[rest] = value
    return parts


def _with_room(parts: Parts, values: Parts) -> Parts:
    """The parts as they are, or copies if a type does not hold the values: exact numbers may grow beyond int64."""
    both = zip(parts, values, strict=True)
    return tuple(p.astype(np.result_type(p.dtype, v.dtype), copy=False) for p, v in both)
