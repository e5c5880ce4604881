"""Pieces: results over a whole array come piece by piece, so that all that is in between stays in a cache."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from slicewise.columns import Column

__all__ = ["PIECE", "Results"]

#: So many windows are computed at once.
PIECE = 2**15


class Results:
    """So many results, which come piece by piece and are put where they stay: new memory costs more than sums do.

    >>> results = Results(3)
    >>> results.add(Column.of([1.0, 2.0]))
    >>> results.add(Column.of([None, 2.0]).take(slice(0, 1)))
    >>> results.column.to_pylist()
    [1.0, 2.0, None]

    They may stand where what they are made of stood, piece by piece: ``memory`` of as many bytes.
    """

    def __init__(self, size: int, memory: np.ndarray | None = None) -> None:
        self.size, self.filled = size, 0
        self._memory = np.empty(size) if memory is None else memory
        self.column = Column(np.empty(0), pa.float64())

    def add(self, piece: Column) -> None:
        """The next results."""
        if not self.filled:
            self.column = Column(self._memory.view(piece.values.dtype), piece.type)
        at = slice(self.filled, self.filled + len(piece))
        self.column.values[at] = piece.values
        if piece.valid is not None:
            if self.column.valid is None:
                self.column = Column(self.column.values, piece.type, np.ones(self.size, bool))
            self.column.valid[at] = piece.valid  # type: ignore[index]
        elif self.column.valid is not None:
            self.column.valid[at] = True  # where results of sums may have stood that lost too much
        self.filled = at.stop
