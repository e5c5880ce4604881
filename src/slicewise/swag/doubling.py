"""Doubling: windows of a power of two values from two of half the length, all at once."""

from __future__ import annotations

import numpy as np

__all__ = ["double"]


def double(ufunc: np.ufunc, values: np.ndarray, k: int) -> np.ndarray:
    """Every whole window of ``k``, from windows of 1, 2, 4 and so on.

    >>> double(np.add, np.arange(8), 5), double(np.maximum, np.array([6, 5, 0, 1, 3]), 3)
    (array([10, 15, 20, 25]), array([6, 5, 3]))
    """
    windows, size, n = values, 1, len(values) - k + 1
    if ufunc is not np.add:  # an extreme of two windows that overlap is that of both
        while 2 * size <= k:
            windows, size = ufunc(windows[:-size], windows[size:]), 2 * size
        return ufunc(windows[:n], windows[k - size : k - size + n]) if size < k else windows
    done, total = 0, values
    while True:
        if k & size:
            total = ufunc(total[: len(windows) - done], windows[done:]) if done else windows
            done += size
        if done == k:
            return total[:n]
        windows, size = ufunc(windows[:-size], windows[size:]), 2 * size
