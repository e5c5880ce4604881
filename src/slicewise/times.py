"""Times: the bounds of event time as int64, what stands for infinity, and how far rows and windows reach. A leaf."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from slicewise.amounts import from_micros

__all__ = ["INFINITY", "LARGEST_TIME", "Extent", "largest_time"]

#: Stands for infinity on either side. Event times stay inside by more than any window is long, and by so much that the
#: sum of the two never overflows; see :func:`largest_time`.
INFINITY = 2**62
#: Bounds of windows are computed in 64 bits, with room to add and subtract them.
LARGEST_TIME = 2**60
#: In nanoseconds that would be July 2006. What 64 bits leave to them, if windows are no longer than that: August 2079.
LARGEST_NANOSECONDS = 3 * LARGEST_TIME - 1


@functools.cache
def largest_time(unit: str | None) -> int:
    """The largest event time, in the unit of the time column, around which windows can be computed and shown.

    >>> largest_time("seconds") == 2**60 // 10**6
    True
    """
    # Seconds and milliseconds end where timestamps do, which windows become in tables.
    return LARGEST_NANOSECONDS if unit == "nanoseconds" else from_micros(LARGEST_TIME, unit or "microseconds")


class Extent(NamedTuple):
    """How the event times of some rows lie, at least one: found once, and asked in every stage that they go through.

    Attributes
    ----------
    earliest, latest
        The least and the largest of them.
    in_order
        Whether each row is as late as the one before, or later.
    """

    earliest: int
    latest: int
    in_order: bool

    @classmethod
    def of(cls, times: np.ndarray) -> Extent:
        """The extent of an array.

        >>> Extent.of(np.array([3, 9, 4]))
        Extent(earliest=3, latest=9, in_order=False)
        """
        if np.logical_and.reduce(times[1:] >= times[:-1]):
            return cls(int(times[0]), int(times[-1]), True)
        return cls(int(np.minimum.reduce(times)), int(np.maximum.reduce(times)), False)
