"""Stored tuples: the rows behind the slices, kept only where the decisions say that partials are not enough.

Sorted by key, event time, the plan's ``order`` columns and arrival. A slice's rows are those of its key and of its
``closed`` level between its first and its last event time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.ordering import sort_keys
from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, bytes_of, expand_ranges, order_by, segment_lengths, segment_starts
from slicewise.records import record
from slicewise.slicing.intake.shown_columns import is_lifted
from slicewise.slicing.time.slices import Slices

__all__ = ["Tuples"]


@record
class Tuples:
    """Rows: key numbers, event times, what slices say of them (closed level, fresh or not), and columns."""

    key: np.ndarray
    time: np.ndarray
    closed_gaps: np.ndarray
    unreported: np.ndarray
    columns: Mapping[str, Column]

    @classmethod
    def empty(cls, types: Mapping[str, pa.DataType]) -> Tuples:
        """No rows at all."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, np.empty(0, bool), {name: Column.of([], type_) for name, type_ in types.items()})

    @classmethod
    def new(cls, key: np.ndarray, time: np.ndarray, columns: Mapping[str, Column]) -> Tuples:
        """Rows that have just come."""
        return cls(key, time, np.zeros(len(key), np.int64), np.ones(len(key), bool), columns)

    @classmethod
    def concat(cls, parts: Sequence[Tuples]) -> Tuples:
        """Rows end to end."""
        key, time, closed_gaps, unreported = map(np.concatenate, zip(*map(_ARRAYS_OF, parts), strict=True))
        names = parts[0].columns
        columns = zip(*[map(part.columns.__getitem__, names) for part in parts], strict=True)
        return cls(key, time, closed_gaps, unreported, dict(zip(names, map(Column.concat, columns), strict=True)))

    def __len__(self) -> int:
        return len(self.key)

    @property
    def nbytes(self) -> int:
        """Bytes in arrays; Python objects are counted as pointers."""
        return bytes_of((self.key, self.time, self.closed_gaps, self.unreported, *self.columns.values()))

    @property
    def has_objects(self) -> bool:
        """Whether a column holds Python objects."""
        return any(column.values.dtype.hasobject for column in self.columns.values())

    def take(self, index: np.ndarray | slice) -> Tuples:
        """The rows at ``index``."""
        columns = {n: c.take(index) for n, c in self.columns.items()}
        return Tuples(self.key[index], self.time[index], self.closed_gaps[index], self.unreported[index], columns)

    def joined(self, others: Sequence[Tuples], order: Sequence[str]) -> Tuples:
        """These rows and newer ones, sorted; rows that tie in everything keep the order in which they came."""
        return self.joined_in_order(others, order)[0]

    def joined_in_order(
        self, others: Sequence[Tuples], order: Sequence[str], *, one_key: bool = False, come_in_order: bool = False
    ) -> tuple[Tuples, np.ndarray | None]:
        """The same, and where each row stood in these rows with the newer ones behind them; None if it stays there.

        What is promised is not looked at: that there is one key, and that each row is as late as all before it.
        """
        parts = [t for t in (self, *others) if len(t.key)]
        if not parts or not others:
            return self, None
        together = Tuples.concat(parts) if len(parts) > 1 else parts[0]
        if one_key and come_in_order and not order:
            return together, None
        place = order_by(None if one_key else together.key, together.time)
        if order:
            place = _with_ties_in_order(together, len(self), place, order)
        return (together, None) if place is None else (together._sorted(place, one_key), place)

    def _sorted(self, place: np.ndarray, one_key: bool) -> Tuples:
        """The rows in another order; what is the same for all of them stays where it is."""
        one_key = one_key or (self.key[0] == self.key[-1] and (self.key == self.key[0]).all())
        return Tuples(
            self.key if one_key else self.key[place],
            self.time[place],
            self.closed_gaps[place] if self.closed_gaps.any() else self.closed_gaps,
            self.unreported[place],
            {n: c.take(place) for n, c in self.columns.items()},
        )

    def rows_of(self, slices: Slices) -> tuple[np.ndarray, np.ndarray]:
        """The positions of the rows of each slice, end to end, and where each slice's rows start among them."""
        index = KeyTimeIndex(self.key, self.time)
        low, high = index.locate(slices.key, slices.first), index.locate(slices.key, slices.last + 1)
        rows, starts = expand_ranges(low, high)
        level = np.repeat(slices.closed_gaps, high - low)
        of_slice = self.closed_gaps[rows] == level
        if of_slice.all():
            return rows, starts
        kept = np.concatenate([[0], np.cumsum(of_slice)])
        return rows[of_slice], kept[starts]

    def fold(self, monoid: Monoid, rows: np.ndarray, starts: np.ndarray) -> Parts:
        """Partials computed anew from rows, one for each run of them."""
        columns = {name: self.columns[name].take(rows) for name in monoid.reads}
        return monoid.fold_rows(columns, self.time[rows], starts)

    def cut(self, cells: np.ndarray, gaps: Sequence[int], monoids: Sequence[Monoid]) -> Slices:
        """The paper's split, for all rows at once: slices cut anew, where cells, levels or sessions change."""
        if not len(self):
            return Slices.empty(monoids)
        apart = (
            (self.key[1:] != self.key[:-1])
            | (cells[1:] != cells[:-1])
            | (self.closed_gaps[1:] != self.closed_gaps[:-1])
        )
        smallest = np.array([*gaps, np.iinfo(np.int64).max])[self.closed_gaps[1:]]
        starts = segment_starts(apart | (np.diff(self.time) > smallest))
        rows = segment_lengths(starts, len(self))
        everything = np.arange(len(self))
        return Slices(
            self.key[starts],
            self.time[starts],
            self.time[starts + rows - 1],
            rows,
            np.add.reduceat(self.unreported.astype(np.int64), starts),
            self.closed_gaps[starts],
            tuple(self.fold(m, everything, starts) for m in monoids),
        )

    def behind(self, slices: Slices) -> Tuples:
        """Only the rows of these slices, none of them fresh any more."""
        needed = np.zeros(len(self), bool)
        needed[self.rows_of(slices)[0]] = True
        kept = self if needed.all() else self.take(np.flatnonzero(needed))
        return kept.reported()

    def reported(self) -> Tuples:
        """The same rows, none of them fresh any more."""
        return Tuples(self.key, self.time, self.closed_gaps, np.zeros(len(self.key), bool), self.columns)

    def marked(self, slices: Slices, closed: np.ndarray) -> Tuples:
        """The same rows, those of ``slices`` with new levels: ``closed`` has one for each slice."""
        rows, starts = self.rows_of(slices)
        levels = self.closed_gaps.copy()
        levels[rows] = np.repeat(closed, segment_lengths(starts, len(rows)))
        return replace(self, closed_gaps=levels)

    def to_data(self) -> dict[str, Any]:
        """The rows as plain data."""
        data: dict[str, Any] = {name: getattr(self, name) for name in _ARRAYS}
        # What user code makes of rows is not saved: it is asked again when they are read.
        # The names of computed columns are texts like others there: a whole slice of a text is a plain one.
        return data | {"columns": {n[:]: column.to_data() for n, column in self.columns.items() if not is_lifted(n)}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Tuples:
        """The rows from what :meth:`to_data` gave."""
        columns = {name: Column.from_data(column) for name, column in data["columns"].items()}
        return cls(**{name: data[name] for name in _ARRAYS}, columns=columns)


_ARRAYS = ("key", "time", "closed_gaps", "unreported")
_ARRAYS_OF = attrgetter(*_ARRAYS)


def _with_ties_in_order(rows: Tuples, had: int, place: np.ndarray | None, order: Sequence[str]) -> np.ndarray | None:
    """The order of rows by key and time, with rows of equal key and time put in order by columns.

    The first ``had`` rows were in order before, and stay so among each other also where the columns would have it
    otherwise: only new rows find their place. Where no new row meets another of its time, nothing is looked at.
    """
    at = np.arange(len(rows)) if place is None else place
    key, time = rows.key[at], rows.time[at]
    alone = (key[1:] != key[:-1]) | (time[1:] != time[:-1])
    if alone.all():
        return place
    run = np.cumsum(np.concatenate([[False], alone]))
    size = np.bincount(run)
    met = (size > 1) & (np.bincount(run, at >= had) > 0)
    if not met.any():
        return place
    tied = np.flatnonzero(met[run])
    tied_rows, run = at[tied], run[tied]
    keys = [array for name in reversed(order) for array in sort_keys(rows.columns[name].take(tied_rows))]
    by_value = np.lexsort((*keys, run))
    apart = np.zeros(len(tied_rows) - 1, bool)
    for array in (*keys, run):
        ordered = array[by_value]
        apart |= ordered[1:] != ordered[:-1]
    rank = np.empty(len(tied_rows), np.int64)
    rank[by_value] = np.concatenate([[0], np.cumsum(apart)])
    # Ranks grow from one run to the next, so that the largest so far never comes from another run.
    old = np.flatnonzero(tied_rows < had)
    rank[old] = np.maximum.accumulate(rank[old])
    out = at.copy()
    out[tied] = tied_rows[np.lexsort((tied_rows, rank))]
    return None if place is None and (out == at).all() else out
