"""Held rows: rows outside of the slices. Late ones that are to be given back, and those that wait to be judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slicewise.slicing.intake.input import Batch
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.time.slices import Slices

__all__ = ["HeldRows", "LateRow"]


class LateRow(NamedTuple):
    """A row that came after its last window was closed.

    Attributes
    ----------
    time
        Its event time.
    key
        The values of its key columns; an empty tuple without keys.
    row
        Its columns as they came, by name.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
    >>> _ = op.advance(20)
    >>> _ = op.process(7, {"from": "a"})
    >>> [(row.time, row.row) for row in op.late()]
    [(7, {'from': 'a'})]
    """

    time: int
    key: tuple[Any, ...]
    row: dict[str, Any]


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows, or rows of which only the slices are known, one entry each.

    Attributes
    ----------
    key
        The numbers of their keys.
    first, last
        The event times of the first and the last row of each entry.
    rows
        How many rows each entry is.
    batch
        The rows as they came; None if they came in slices.
    """

    key: np.ndarray
    first: np.ndarray
    last: np.ndarray
    rows: np.ndarray
    batch: Batch | None = field(default=None)

    @classmethod
    def of_batch(cls, batch: Batch, key: np.ndarray, index: np.ndarray) -> HeldRows:
        """Some rows of a batch, of which all keys are given."""
        batch = batch.take(index)
        return cls(key[index], batch.times, batch.times, np.ones(len(index), np.int64), batch)

    @classmethod
    def of_slices(cls, slices: Slices, index: np.ndarray) -> HeldRows:
        """The rows of some slices."""
        return cls(slices.key[index], slices.first[index], slices.last[index], slices.rows[index])

    def take(self, index: np.ndarray) -> HeldRows:
        """The entries at ``index``."""
        batch = None if self.batch is None else self.batch.take(index)
        return HeldRows(self.key[index], self.first[index], self.last[index], self.rows[index], batch)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return int(self.rows.sum())

    def as_late(self, keys: KeyTable) -> Iterator[LateRow]:
        """The rows as they are given back."""
        rows = [] if self.batch is None else self.batch.rows()
        for time, key, row in zip(self.first.tolist(), self.key.tolist(), rows, strict=True):
            yield LateRow(time, keys.key(key), row)

    def to_data(self) -> list[Any]:
        """The rows as plain data."""
        source = None
        if self.batch is not None:
            source = {name: self.batch.source_list(name) for name in self.batch.source}
        return [self.key, self.first, self.last, self.rows, source]

    @classmethod
    def from_data(cls, data: Sequence[Any]) -> HeldRows:
        """The rows from what :meth:`to_data` gave."""
        key, first, last, rows, source = data
        return cls(key, first, last, rows, None if source is None else Batch(first, pa.null(), [], {}, source))
