"""Ragged arrays: one entry holds several values, how many differs. Partials that grow are columns of these.

A leaf beside ``kernels``. The values of all entries stand end to end in flat arrays, and beside them how many each
entry has, so that a million small partials are a few arrays and not a million of them::

    lengths   2      0   3                  three entries
    values    1  5       2  5  9            of the first: 1 and 5, of the second: none
    counts    1  1       4  1  1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column, column_of_objects
from slicewise.kernels import expand_ranges

__all__ = ["Ragged", "RaggedColumn"]


class Ragged:
    """An array whose entries are runs of rows of a few flat columns.

    Taking, putting and joining entries works as with NumPy's arrays, and like those gives a view where it can.

    Parameters
    ----------
    lengths
        How many rows each entry has.
    *columns
        The rows of all entries, end to end. A column may be ragged itself.

    Examples
    --------
    >>> runs = Ragged(np.array([2, 0, 3]), np.array([1, 5, 2, 5, 9]), np.array([1, 1, 4, 1, 1]))
    >>> len(runs), runs[[2, 0]].columns
    (3, (array([2, 5, 9, 1, 5]), array([4, 1, 1, 1, 1])))
    >>> runs[1:].tolist()
    [[], [(2, 4), (5, 1), (9, 1)]]
    """

    def __init__(self, lengths: np.ndarray, *columns: Any) -> None:
        self.lengths = lengths
        self.columns = columns

    @classmethod
    def none(cls, n: int, dtypes: Sequence[np.dtype]) -> Ragged:
        """``n`` entries without rows."""
        return cls(np.zeros(n, np.int64), *(np.empty(0, dtype) for dtype in dtypes))

    @classmethod
    def concat(cls, pieces: Sequence[Ragged]) -> Ragged:
        """Entries end to end."""
        if len(pieces) == 1:
            return pieces[0]
        columns = zip(*(piece.columns for piece in pieces), strict=True)
        return cls(np.concatenate([piece.lengths for piece in pieces]), *map(_joined, columns))

    @classmethod
    def of_arrays(cls, *columns: np.ndarray, dtypes: Sequence[np.dtype]) -> Ragged:
        """From arrays of arrays, one per column."""
        lengths = np.fromiter(map(len, columns[0]), np.int64, len(columns[0]))
        flat = (np.concatenate([np.empty(0, t), *column]) for column, t in zip(columns, dtypes, strict=True))
        return cls(lengths, *flat)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> np.ndarray:
        """Where the rows of each entry begin."""
        starts: np.ndarray = np.cumsum(self.lengths) - self.lengths
        return starts

    @property
    def dtype(self) -> np.dtype:
        """The type of a row."""
        return np.dtype([(f"f{i}", column.dtype) for i, column in enumerate(self.columns)])

    @property
    def nbytes(self) -> int:
        """Bytes in arrays."""
        return int(self.lengths.nbytes + sum(column.nbytes for column in self.columns))

    def __getitem__(self, index: Any) -> Ragged:
        lengths = self.lengths[index]
        if isinstance(index, slice) and index.step in (None, 1):
            low, _high, _ = index.indices(len(self))
            first = int(self.lengths[:low].sum())
            rows: Any = slice(first, first + int(lengths.sum()))
        else:
            starts = self.starts[index]
            rows, _ = expand_ranges(starts, starts + lengths)
        return Ragged(lengths, *(column[rows] for column in self.columns))

    def put(self, index: np.ndarray, values: Ragged) -> Ragged:
        """A copy with others at ``index``."""
        place = np.arange(len(self))
        place[index] = len(self) + np.arange(len(values))
        return Ragged.concat([self, values])[place]

    def tolist(self) -> list[list[Any]]:
        """A list per entry, of tuples where there are several columns."""
        rows = [column.tolist() for column in self.columns]
        flat = rows[0] if len(rows) == 1 else list(zip(*rows, strict=True))
        starts = self.starts.tolist()
        return [flat[start : start + n] for start, n in zip(starts, self.lengths.tolist(), strict=True)]

    def to_data(self) -> dict[str, Any]:
        """As plain data: arrays that may be joined end to end, each with its like."""
        return {"lengths": self.lengths, "columns": [c.to_data() if isinstance(c, Ragged) else c for c in self.columns]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Ragged:
        """From what :meth:`to_data` gave."""
        columns = (cls.from_data(c) if isinstance(c, Mapping) else c for c in data["columns"])
        return cls(data["lengths"], *columns)

    def _check(self) -> None:
        """The invariants, for tests."""
        assert (self.lengths >= 0).all()
        assert all(len(column) == self.lengths.sum() for column in self.columns)


class RaggedColumn(Column):
    """A column of lists, lists of structs or maps, none of them null, which are Python values only to who wants these.

    Parameters
    ----------
    runs
        What each of them holds: a column for a list of single values, one for each field of structs, two for maps.
    type
        The type of the lists or maps.
    held
        The types of the columns.

    Examples
    --------
    >>> runs = Ragged(np.array([1, 2]), np.array([7, 1, 5]), np.array([1, 1, 3]))
    >>> counted = RaggedColumn(runs, pa.map_(pa.int64(), pa.int64()), (pa.int64(), pa.int64()))
    >>> counted.to_pylist()
    [{7: 1}, {1: 1, 5: 3}]
    """

    runs: Ragged
    held: tuple[pa.DataType, ...]

    def __init__(self, runs: Ragged, type: pa.DataType, held: Sequence[pa.DataType]) -> None:
        vars(self).update(runs=runs, type=type, held=tuple(held))

    @cached_property
    def values(self) -> np.ndarray:
        """The lists or maps, as Python values."""
        made = self.to_arrow().to_pylist()
        return column_of_objects([*map(dict, made)] if pa.types.is_map(self.type) else made, self.type).values

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def nbytes(self) -> int:
        return self.runs.nbytes

    def take(self, index: np.ndarray | slice) -> Column:
        return RaggedColumn(self.runs[index], self.type, self.held)

    @classmethod
    def concat(cls, columns: Sequence[Any]) -> Column:
        return cls(Ragged.concat([column.runs for column in columns]), columns[0].type, columns[0].held)

    def to_arrow(self) -> pa.Array:
        held = [Column(values, type_).to_arrow() for values, type_ in zip(self.runs.columns, self.held, strict=True)]
        offsets = pa.array(np.concatenate([[0], np.cumsum(self.runs.lengths)]).astype(np.int32))
        if pa.types.is_map(self.type):
            return pa.MapArray.from_arrays(offsets, *held).cast(self.type)
        of_structs = pa.types.is_struct(self.type.value_type)
        rows = pa.StructArray.from_arrays(held, fields=list(self.type.value_type)) if of_structs else held[0]
        return pa.ListArray.from_arrays(offsets, rows).cast(self.type)


def _joined(columns: Sequence[Any]) -> Any:
    return Ragged.concat(columns) if isinstance(columns[0], Ragged) else np.concatenate(columns)
