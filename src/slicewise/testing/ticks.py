"""Ticks: multiples of a step plus an offset, on event time or on any measure, floats included. Read by the oracle.

Tick k is ``k * step + offset``, and a window that starts there ends at ``(k * step + offset) + length``. On floats
these sums are rounded, and as rounded they are the bounds: nothing is compared with what a bound should have been.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["tick_after", "ticks_over", "windows_with"]


def tick_after(value: Any, step: Any, offset: Any = 0) -> int:
    """The number k of the smallest tick after a value.

    >>> [tick_after(value, 5) * 5 for value in (-1, 0, 4, 5)]
    [0, 5, 5, 10]
    """
    k: int = math.floor((value - offset) / step)
    # Division is rounded, so the first guess may be off by a tick.
    while k * step + offset > value:
        k -= 1
    while k * step + offset <= value:
        k += 1
    return k


def ticks_over(first: Any, last: Any, step: Any, offset: Any = 0) -> list[Any]:
    """The ticks from the first after one value to the first after another.

    >>> ticks_over(3, 10, 5)
    [5, 10, 15]
    """
    numbers = range(tick_after(first, step, offset), tick_after(last, step, offset) + 1)
    return [k * step + offset for k in numbers]


def windows_with(value: Any, length: Any, step: Any, offset: Any = 0) -> list[tuple[Any, Any]]:
    """The windows of a length, one from every tick, that hold a value.

    >>> windows_with(7, length=10, step=5)
    [(0, 10), (5, 15)]
    >>> windows_with(7, length=2, step=5)
    []
    """
    last = tick_after(value, step, offset) - 1
    first = last - math.ceil(length / step) - 1
    bounds = [(k * step + offset, k * step + offset + length) for k in range(first, last + 1)]
    return [(start, end) for start, end in bounds if start <= value < end]
