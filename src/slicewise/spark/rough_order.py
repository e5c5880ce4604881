"""Rough order: one number for each row, by which rows are sorted by key and time nearly as far as is needed.

Keys may be of any type and number, and a sort by several columns takes several times as long as one by an integer. So
the number, which the JVM computes, holds a hash of the key and, in its lower bits, the time without its last digits;
rows of equal numbers, and keys of equal hashes, are put in order piece by piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from slicewise.times import largest_time

__all__ = ["ROUGH", "RoughOrder"]

#: The column of numbers.
ROUGH = "rough"
#: How many bits are for time; the others are for the hash.
TIME_BITS = 43
_HALF = 1 << (TIME_BITS - 1)
#: Of integers without a unit nobody knows how far apart they are: so many bits are left out, that microseconds since
#: 1970 still fit in, and that counts from 0 still tell rows apart.
SHIFT_OF_INTEGERS = 8


@dataclass(frozen=True)
class RoughOrder:
    """How rows are numbered; ``shift`` is how many of the last bits of event times are left out.

    >>> RoughOrder.of(pa.timestamp("us"), None), RoughOrder.of(pa.int64(), None), RoughOrder.of(pa.int64(), "seconds")
    (RoughOrder(shift=19), RoughOrder(shift=8), RoughOrder(shift=0))
    """

    shift: int

    @classmethod
    def of(cls, time_type: pa.DataType, unit: str | None) -> RoughOrder:
        """That of times of a type; of integers their unit is known, or None."""
        if unit is None and pa.types.is_integer(time_type):
            return cls(SHIFT_OF_INTEGERS)
        return cls(max(largest_time(unit).bit_length() - (TIME_BITS - 1), 0))

    def column(self, keys: Sequence[str], time: Column) -> Column:
        """The numbers of rows with these keys and this event time."""
        # Where the time is null, the others are compared without it, and the stretch is the first.
        stretch = F.least(F.greatest(F.shiftright(time, self.shift), F.lit(-_HALF)), F.lit(_HALF - 1)) + F.lit(_HALF)
        hashed = F.xxhash64(*keys) if keys else F.lit(0).cast("long")
        return F.shiftleft(hashed, TIME_BITS).bitwiseOR(stretch)

    def positions(self, numbers: np.ndarray) -> np.ndarray:
        """The positions of rows in the order of their numbers; rows of equal numbers stay as they are.

        A radix sort of 16 bits at a time, least first, over those bits of hash and time in which the numbers differ.

        >>> RoughOrder(8).positions(np.array([5 << TIME_BITS, -1, (5 << TIME_BITS) - 1, -1]))
        array([1, 3, 2, 0])
        """
        place = np.arange(len(numbers))
        for part in (numbers & ((1 << TIME_BITS) - 1), self.hashes(numbers)):
            digits = part - part.min(initial=1 << TIME_BITS)
            while digits.any():
                place = place[digits[place].astype(np.uint16).argsort(kind="stable")]
                digits >>= 16
        return place

    def hashes(self, numbers: np.ndarray) -> np.ndarray:
        """What the numbers have of the hashes of keys, ascending as they do."""
        return numbers >> TIME_BITS

    def hash(self, number: int) -> int:
        """What one number has of the hash of its key."""
        return number >> TIME_BITS

    def start(self, number: int) -> int | None:
        """The least time of rows with this number; None if it is that of the earliest of all and of rows without one.

        >>> RoughOrder(8).start((5 << TIME_BITS) + _HALF + 3)
        768
        """
        stretch = number & ((1 << TIME_BITS) - 1)
        return (stretch - _HALF) << self.shift if stretch else None
