"""Rough order: one number for each row, by which the JVM sorts rows by key and time nearly as far as is needed.

Spark sorts by a single integer with a radix sort, and by several columns by comparing rows, which takes five times as
long. So the number holds a hash of the key and, in its lower bits, the time without its last digits; rows of equal
numbers, and keys of equal hashes, are put in order by NumPy where they are read.
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

    def hashes(self, numbers: np.ndarray) -> np.ndarray:
        """What the numbers have of the hashes of keys, ascending as they do."""
        return numbers >> TIME_BITS

    def start(self, number: int) -> int | None:
        """The least time of rows with this number; None if it is that of the earliest of all and of rows without one.

        >>> RoughOrder(8).start((5 << TIME_BITS) + _HALF + 3)
        768
        """
        stretch = number & ((1 << TIME_BITS) - 1)
        return (stretch - _HALF) << self.shift if stretch else None
