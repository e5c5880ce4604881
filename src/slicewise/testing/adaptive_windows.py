"""Adaptive windows by definition: ADWIN over the rows of one key, every cut from scratch. Read by the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from slicewise.testing.context_windows import WindowRange, looking_back
from slicewise.testing.oracle_rows import Row, column_of

__all__ = ["adaptive", "histogram"]

BUCKETS = 5
FEWEST = 5


def adaptive(query: Any, rows: Sequence[Row]) -> list[WindowRange]:
    """After each row, while some cut of the window has means that differ by eps or more, its oldest row leaves."""
    window = query.window
    values = [column_of(row.values, window.column, f"{window!r} reads") for row in rows]
    front, fronts = 0, []
    for i in range(len(rows)):
        while _has_changed(values[front : i + 1], window.confidence):
            front += 1
        fronts.append(front)
    return looking_back(rows, window, lambda high: fronts[high - 1])


def histogram(n: int) -> list[int]:
    """The sizes of the buckets after ``n`` insertions, the newest first: of six alike the two oldest become one.

    >>> histogram(7), histogram(8)
    ([1, 1, 1, 1, 1, 2], [1, 1, 1, 1, 2, 2])
    """
    buckets: list[int] = []
    for _ in range(n):
        buckets.insert(0, 1)
        size = 1
        while buckets.count(size) > BUCKETS:
            last = len(buckets) - 1 - buckets[::-1].index(size)
            buckets[last - 1 : last + 1] = [2 * size]
            size *= 2
    return buckets


def _has_changed(window: Sequence[Any], confidence: float) -> bool:
    newer = 0
    for size in histogram(len(window))[:-1]:
        newer += size
        cut = len(window) - newer
        if _differ(_numbers(window[:cut]), _numbers(window[cut:]), confidence):
            return True
    return False


def _differ(old: list[float], new: list[float], confidence: float) -> bool:
    if len(old) < FEWEST or len(new) < FEWEST:
        return False
    both = old + new
    mean = math.fsum(both) / len(both)
    variance = math.fsum((v - mean) ** 2 for v in both) / len(both)
    inverse = 1 / len(old) + 1 / len(new)
    delta = confidence / math.log(len(both))
    eps = math.sqrt(2 * inverse * variance * math.log(2 / delta)) + 2 / 3 * inverse * math.log(2 / delta)
    return abs(math.fsum(old) / len(old) - math.fsum(new) / len(new)) >= eps


def _numbers(values: Sequence[Any]) -> list[float]:
    """Those that are numbers: neither null nor NaN nor infinite."""
    return [float(v) for v in values if v is not None and math.isfinite(v)]
