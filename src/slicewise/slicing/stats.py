"""Stats: what an operator holds and has done, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slicewise.slicing.engine import State
from slicewise.slicing.snapshots import Counters
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples

__all__ = ["Stats"]


@dataclass(frozen=True)
class Stats:
    """What an operator holds and has done.

    ``bytes`` are those of arrays: slices, and stored tuples where there are any.
    """

    keys: int
    slices: int
    tuples: int
    bytes: int
    rows: int
    results: int
    late_rows: int
    watermark: int | None

    @classmethod
    def of(cls, state: State, counters: Counters, watermark: int | None) -> Stats:
        """What a state holds, and what was counted on the way to it."""
        held: list[Slices | Tuples] = [*state.slices, *state.rows]
        return cls(
            keys=len(np.unique(np.concatenate([part.key for part in held]))),
            slices=sum(map(len, state.slices)),
            tuples=sum(map(len, state.rows)),
            bytes=sum(part.nbytes for part in held),
            rows=counters.rows,
            results=counters.results,
            late_rows=counters.late_rows,
            watermark=watermark,
        )
