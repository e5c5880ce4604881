"""Slices: the aggregate store of the paper. Arrays with one entry per slice, sorted by key and first event time.

A slice's own start and end are not stored: they are the edges around its rows, and edges come and go as windows open
and close. What is stored is what was seen: first and last event time, rows, partials. The one rule that everything
rests on: *no edge that an open window still needs lies between the first and the last row of a slice.*
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, concat_parts, parts_from_data, parts_to_data, take_parts
from slicewise.conditions.expression import plain_name
from slicewise.kernels import order_by, running_last, segment_lengths, segment_starts
from slicewise.plan.costs import Costs
from slicewise.records import record
from slicewise.slicing.time.edges import Edges

__all__ = ["Slices"]


@record
class Slices:
    """Slices of all keys.

    Attributes
    ----------
    key
        The number of the slice's key.
    first, last
        Event time of its first and last row.
    rows
        How many rows it holds.
    unreported
        How many of them came since results were last reported.
    closed_gaps
        For how many session gaps, from the smallest up, the slice's session is closed. A session that is closed under
        one gap is closed under every smaller one, so a number says it all.
    parts
        For each aggregate its partials.
    marks
        What else is noted of each slice, by name; nothing for slices on event time.
    """

    key: np.ndarray
    first: np.ndarray
    last: np.ndarray
    rows: np.ndarray
    unreported: np.ndarray
    closed_gaps: np.ndarray
    parts: tuple[Parts, ...]
    marks: Mapping[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def empty(cls, monoids: Sequence[Monoid]) -> Slices:
        """No slices at all."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, none, none, none, tuple(m.identities(0) for m in monoids))

    @classmethod
    def concat(cls, parts: Sequence[Slices]) -> Slices:
        """Slices end to end."""
        parts = [part for part in parts if len(part.key)] or parts[:1]
        if len(parts) == 1:
            return parts[0]
        columns = list(map(np.concatenate, zip(*[part._columns() for part in parts], strict=True)))
        partials = tuple(map(concat_parts, zip(*[part.parts for part in parts], strict=True)))
        marks = {name: np.concatenate([part.marks[name] for part in parts]) for name in parts[0].marks}
        return cls(*columns, partials, marks)  # type: ignore[call-arg, arg-type]

    def __len__(self) -> int:
        return len(self.key)

    @property
    def nbytes(self) -> int:
        """Bytes in arrays; the Python objects of object partials are counted as pointers."""
        arrays = [self.key, self.first, self.last, self.rows, self.unreported, self.closed_gaps]
        arrays += [p for parts in self.parts for p in parts] + list(self.marks.values())
        return sum(a.nbytes for a in arrays)

    @property
    def has_objects(self) -> bool:
        """Whether partials are Python objects."""
        return any(p.dtype.hasobject for parts in self.parts for p in parts)

    def take(self, index: np.ndarray | slice) -> Slices:
        """The slices at ``index``."""
        return Slices(
            self.key[index],
            self.first[index],
            self.last[index],
            self.rows[index],
            self.unreported[index],
            self.closed_gaps[index],
            tuple([take_parts(p, index) for p in self.parts]),
            {name: mark[index] for name, mark in self.marks.items()} if self.marks else {},
        )

    def compacted(
        self,
        pieces: Sequence[Slices],
        edges: Edges,
        horizon: int,
        gaps: Sequence[int],
        monoids: Sequence[Monoid],
        costs: Costs | None = None,
    ) -> Slices:
        """These slices with newer pieces merged into them, and no more slices than needed.

        Two neighbouring slices of a key stay apart if an edge that an open window needs lies between them, or if they
        are further apart than the smallest gap of a session query for which they are not closed. Slices that were
        there and become one are counted as merges, those that take new ones in as updates.
        """
        together, came = self._joined(pieces)
        if len(together) < 2:
            return together
        key, first = together.key, together.first
        cells = edges.needed_cells(first, horizon)
        apart = (key[1:] != key[:-1]) | (cells[1:] != cells[:-1])
        if gaps:
            closed = together.closed_gaps
            apart |= closed[1:] != closed[:-1]
            last = running_last(np.concatenate([[0], np.cumsum(apart)]), together.last)
            smallest = np.array([*gaps, np.iinfo(np.int64).max])[closed[1:]]
            apart |= first[1:] - last[:-1] > smallest
        starts = segment_starts(apart)
        if costs is not None and len(starts) < len(together):
            held = np.arange(len(together)) < len(self) if came is None else came < len(self)
            known = np.add.reduceat(held.astype(np.int64), starts)
            came_in = segment_lengths(starts, len(together)) - np.maximum(known, 1)
            costs.count(merges=int(np.maximum(known - 1, 0).sum()), updates=int(came_in.sum()))
        return together.merged(starts, monoids, came)

    def merged(self, starts: np.ndarray, monoids: Sequence[Monoid], came: np.ndarray | None = None) -> Slices:
        """The paper's merge: each run of slices from one start to the next becomes a single slice.

        ``came`` says in which order the slices came, if not in that of their first rows: partials are combined in the
        order in which they came, because rows of equal time count in the order of their arrival.
        """
        if len(starts) == len(self):
            return self
        parts = self.parts
        if came is not None and not all(map(_in_any_order, monoids, parts)):
            run = np.repeat(np.arange(len(starts)), segment_lengths(starts, len(self)))
            order = np.lexsort((came, run))
            parts = tuple(take_parts(p, order) for p in parts)
        return Slices(
            self.key[starts],
            self.first[starts],
            np.maximum.reduceat(self.last, starts),
            np.add.reduceat(self.rows, starts),
            np.add.reduceat(self.unreported, starts),
            self.closed_gaps[starts],
            tuple(m.fold(p, starts) for m, p in zip(monoids, parts, strict=True)),
        )

    def joined(self, others: Sequence[Slices]) -> Slices:
        """These slices and others, sorted; none is merged."""
        return self._joined(others)[0]

    def _joined(self, others: Sequence[Slices]) -> tuple[Slices, np.ndarray | None]:
        """These slices and others, sorted, and the order in which they came, if it was another one."""
        if not others:
            return self, None
        together = Slices.concat([self, *others])
        order = order_by(together.key, together.first)
        return (together, None) if order is None else (together.take(order), order)

    def reported(self) -> Slices:
        """The same slices, none of whose rows is fresh any more."""
        nothing = np.zeros(len(self), np.int64)
        return Slices(self.key, self.first, self.last, self.rows, nothing, self.closed_gaps, self.parts)

    def to_data(self) -> dict[str, Any]:
        """The slices as plain data."""
        data: dict[str, Any] = dict(zip(_COLUMNS, self._columns(), strict=True))
        marks = {plain_name(name): values for name, values in self.marks.items()}
        return data | {"parts": [parts_to_data(parts) for parts in self.parts], "marks": marks}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Slices:
        """The slices from what :meth:`to_data` gave."""
        columns = {name: data[name] for name in _COLUMNS}
        return cls(**columns, parts=tuple(map(parts_from_data, data["parts"])), marks=data["marks"])

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.key, self.first, self.last, self.rows, self.unreported, self.closed_gaps

    def _check(self, edges: Edges, horizon: int, gaps: Sequence[int]) -> None:
        """The invariants, for tests."""
        n = len(self)
        assert all(len(c) == n for c in self._columns())
        assert all(len(p) == n for parts in self.parts for p in parts)
        assert (self.first <= self.last).all()
        assert (self.rows > 0).all()
        assert (self.unreported <= self.rows).all()
        assert ((self.key[1:] > self.key[:-1]) | (self.first[1:] >= self.first[:-1]) | (self.key[1:] < 0)).all()
        assert (self.key[1:] >= self.key[:-1]).all()
        assert (edges.needed_cells(self.first, horizon) == edges.needed_cells(self.last, horizon)).all()
        assert (self.closed_gaps <= len(gaps)).all()


_COLUMNS = ("key", "first", "last", "rows", "unreported", "closed_gaps")


def _in_any_order(monoid: Monoid, parts: Parts) -> bool:
    """Whether partials may be combined in any order, to the last bit: sums of floats are rounded by the way."""
    return monoid.aggregate.commutative and all(isinstance(p, np.ndarray) and p.dtype.kind in "iub" for p in parts)
