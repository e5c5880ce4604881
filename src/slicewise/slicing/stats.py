"""Stats: what an operator holds and has done, in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slicewise.slicing.engine import State

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
    def of(cls, state: State, rows: int, results: int, late_rows: int, watermark: int | None) -> Stats:
        """What a state holds, and what was counted on the way to it."""
        stored = [state.tuples, *(track.rows for track in state.tracks)]
        folded = sum(track.slice_count for track in state.tracks)
        return cls(
            keys=len(np.unique(np.concatenate([state.slices.key, *(t.key for t in stored)]))),
            slices=len(state.slices) + folded,
            tuples=sum(len(t) for t in stored) - folded,
            bytes=state.slices.nbytes + sum(t.nbytes for t in stored),
            rows=rows,
            results=results,
            late_rows=late_rows,
            watermark=watermark,
        )
