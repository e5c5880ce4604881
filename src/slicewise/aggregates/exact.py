"""Exact integer sums on arrays: int64 while it holds them, Python ints when it does not.

Spark's ``sum`` fails when a total does not fit 64 bits. Here partials are shared by windows, so a running total over
many slices may leave 64 bits although every window's own total fits: such arrays become arrays of Python ints, on which
NumPy adds exactly, and turn back into int64 as soon as all their values fit again. Used by the sums of integer columns.
"""

from __future__ import annotations

import numpy as np

from slicewise.kernels import segment_lengths

__all__ = ["INT64_MAX", "INT64_MIN", "add", "fold", "joined", "scan", "shrink", "subtract"]

INT64_MIN = int(np.iinfo(np.int64).min)
INT64_MAX = int(np.iinfo(np.int64).max)


def shrink(values: np.ndarray) -> np.ndarray:
    """As int64 if every value fits, as they are otherwise.

    >>> shrink(np.array([1, 2], object)).dtype, shrink(np.array([1, 2**63], object)).dtype
    (dtype('int64'), dtype('O'))
    """
    try:
        return values.astype(np.int64)
    except OverflowError:
        return values


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a + b``, exactly.

    >>> add(np.array([2**62, 1]), np.array([2**62, 1]))
    array([9223372036854775808, 2], dtype=object)
    """
    if a.dtype != object and b.dtype != object:
        c: np.ndarray = a + b
        if len(c) == 1:  # as soon done with Python's integers, which never wrap around
            fits = a.item() + b.item() == c.item()
        else:
            # It wrapped around iff the sum's sign differs from both operands'.
            fits = bool(np.minimum.reduce((a ^ c) & (b ^ c), initial=0) >= 0)
        if fits:
            return c
    return shrink(a.astype(object) + b.astype(object))


def subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``a - b``, exactly.

    >>> subtract(np.array([2**63 + 5], object), np.array([2**63], object))
    array([5])
    """
    if a.dtype != object and b.dtype != object:
        c: np.ndarray = a - b
        if len(c) == 1:
            fits = a.item() - b.item() == c.item()
        else:
            fits = bool(np.minimum.reduce((a ^ b) & (a ^ c), initial=0) >= 0)
        if fits:
            return c
    return shrink(a.astype(object) - b.astype(object))


def fold(values: np.ndarray, starts: np.ndarray, magnitude: int | None = None) -> np.ndarray:
    """The sum of each segment, exactly. ``magnitude`` is a bound on all absolute values, where one is known.

    >>> fold(np.array([2**62, 2**62, -(2**62), 7]), np.array([0, 3]))
    array([4611686018427387904, 7])
    """
    if values.dtype == object:
        return shrink(np.add.reduceat(values, starts))
    magnitude = _magnitude(values) if magnitude is None else magnitude
    if magnitude * len(values) <= INT64_MAX or magnitude * _longest(starts, len(values)) <= INT64_MAX:
        return np.add.reduceat(values, starts)
    high, low = _halves(values)
    return joined(np.add.reduceat(high, starts), np.add.reduceat(low, starts))


def scan(values: np.ndarray) -> np.ndarray:
    """Running sums, exactly.

    >>> scan(np.array([2**62, 2**62, -(2**62)]))
    array([4611686018427387904, 9223372036854775808, 4611686018427387904], dtype=object)
    """
    if values.dtype == object:
        return shrink(np.add.accumulate(values))
    if _magnitude(values) * len(values) <= INT64_MAX:
        return values.cumsum()
    high, low = _halves(values)
    return joined(high.cumsum(), low.cumsum())


def _magnitude(values: np.ndarray) -> int:
    """A bound on all absolute values."""
    bits = int(np.bitwise_or.reduce(values))
    if bits >= 0:
        return bits  # no sign among all the bits that occur: no value is larger than these together
    return max(-int(np.minimum.reduce(values)), int(np.maximum.reduce(values)))


def _longest(starts: np.ndarray, total: int) -> int:
    return int(segment_lengths(starts, total).max(initial=0))


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Sums of 32-bit halves cannot overflow below 2**31 terms, so large values stay vectorised.
    return values >> 32, values & 0xFFFFFFFF


def joined(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """``high * 2**32 + low``, exactly: the sum of numbers from the sums of their halves.

    >>> joined(np.array([1]), np.array([2**33 + 5]))
    array([12884901893])
    """
    high, low = high + (low >> 32), low & 0xFFFFFFFF
    if high.min(initial=0) >= -(2**31) and high.max(initial=0) < 2**31:
        return (high << 32) | low
    whole: np.ndarray = high.astype(object) * 2**32 + low.astype(object)
    return whole
