"""Reported ticks: the values that rows of results had at ticks, where only those are shown that differ from the tick
before. Compared anew wherever a row came in between.

Values change only at ticks at which a row enters or leaves a window, so of all ticks only those are known here::

    tick      10   20   30   40   50   60        count over the last 30, rows at 5, 12 and 41
    values     1    2    2    1    1    1
    known      1    2         1    1             at 50 one row comes and another leaves: nothing to show
    shown      *    *         *
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from slicewise.columns import Column
from slicewise.kernels import bytes_of
from slicewise.results import INSERT, RETRACT, UPDATE
from slicewise.same import is_same
from slicewise.slicing.answers.lowering import joined_columns

__all__ = ["EvaluatedTicks", "ReportedTicks", "TickChanges"]

NONE = np.empty(0, np.int64)
NO = np.empty(0, bool)


@dataclass(frozen=True, eq=False)
class EvaluatedTicks:
    """Ticks with the values that are true now, sorted by key and end, each once; ``held``: some window has rows."""

    key: np.ndarray
    end: np.ndarray
    held: np.ndarray
    values: tuple[Column, ...]

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, eq=False)
class TickChanges:
    """What is to be shown: which of the known ticks, how, and with which revision."""

    at: np.ndarray
    change: np.ndarray
    revision: np.ndarray

    def take(self, index: np.ndarray) -> TickChanges:
        """The changes at ``index``."""
        return TickChanges(self.at[index], self.change[index], self.revision[index])


@dataclass(frozen=True, eq=False)
class ReportedTicks:
    """The ticks of one panel whose values are known, sorted by key and end.

    Attributes
    ----------
    key, end, held, values
        As of :class:`EvaluatedTicks`.
    shown
        Whether the tick stands in the output.
    revision
        How many results there were for it.
    due_key, due_end
        Ticks ahead of the watermark at which a row begins to count that is older: it came too late for those before.
    """

    key: np.ndarray
    end: np.ndarray
    held: np.ndarray
    shown: np.ndarray
    revision: np.ndarray
    values: tuple[Column, ...]
    due_key: np.ndarray
    due_end: np.ndarray

    @classmethod
    def none(cls) -> ReportedTicks:
        """Nothing reported."""
        return cls(NONE, NONE, NO, NO, NONE, (), NONE, NONE)

    @property
    def nbytes(self) -> int:
        """Bytes in arrays."""
        windows = (self.key, self.end, self.held, self.shown, self.revision)
        return bytes_of((*windows, self.due_key, self.due_end, *self.values))

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: np.ndarray | slice) -> ReportedTicks:
        """The ticks at ``index``."""
        columns = {name: getattr(self, name)[index] for name in ("key", "end", "held", "shown", "revision")}
        return replace(self, **columns, values=tuple(v.take(index) for v in self.values))

    def between(self, key: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The places of known ticks from ``low`` to ``high`` of these different keys, which ascend."""
        if not len(key) or not len(self):
            return NONE
        at = np.minimum(np.searchsorted(key, self.key), len(key) - 1)
        inside = (key[at] == self.key) & (low[at] <= self.end) & (self.end <= high[at])
        return np.flatnonzero(inside)

    def updated(self, now: EvaluatedTicks) -> tuple[ReportedTicks, TickChanges]:
        """The ticks as they are now, and what is to be shown so that the output has those that differ, and no other."""
        merged, at, before = self._merged(now)
        if not len(at):
            return merged, TickChanges(at, at, at)
        differ = merged._differ_from_last(at)
        was = before >= 0
        shown = was & (self.shown[before] if len(self) else False)
        revised = shown & differ
        if revised.any():
            places = np.flatnonzero(revised)
            revised[places] = ~_equal(self.values, before[places], merged.values, at[places])
        change = np.select([differ & ~shown, revised, shown & ~differ], [INSERT, UPDATE, RETRACT], -1)
        reported = np.flatnonzero(change >= 0)
        revision = merged.revision.copy()
        revision[at[reported]] += 1
        now_shown = merged.shown.copy()
        now_shown[at] = differ
        changes = TickChanges(at[reported], change[reported], merged.revision[at[reported]])
        return replace(merged, shown=now_shown, revision=revision), changes

    def _merged(self, now: EvaluatedTicks) -> tuple[ReportedTicks, np.ndarray, np.ndarray]:
        """These ticks with values of now, the places of the latter, and where each was before; -1 where it was not."""
        known = len(self)
        key, end = np.concatenate([self.key, now.key]), np.concatenate([self.end, now.end])
        is_new = np.arange(len(key)) >= known
        order = np.lexsort((is_new, end, key))
        key, end = key[order], end[order]
        replaced = np.append((key[1:] == key[:-1]) & (end[1:] == end[:-1]), False)[: len(key)]
        kept = order[~replaced]
        place = np.empty(len(order), np.int64)
        place[kept] = np.arange(len(kept))
        before = np.full(len(order), -1)
        at = np.flatnonzero(replaced)
        before[order[at + 1]] = order[at]
        nothing = np.zeros(len(now), np.int64)
        revision, shown = np.concatenate([self.revision, nothing]), np.concatenate([self.shown, nothing > 0])
        revision[order[at + 1]], shown[order[at + 1]] = revision[order[at]], shown[order[at]]
        values = now.values
        if known:
            values = tuple(joined_columns(both) for both in zip(self.values, now.values, strict=True))
        merged = ReportedTicks(
            key[~replaced],
            end[~replaced],
            np.concatenate([self.held, now.held])[kept],
            shown[kept],
            revision[kept],
            tuple(v.take(kept) for v in values),
            self.due_key,
            self.due_end,
        )
        return merged, place[known:], before[known:]

    def _differ_from_last(self, at: np.ndarray) -> np.ndarray:
        """Whether ticks have other values than the one before, or are the first of their key that has rows."""
        last = np.maximum(at - 1, 0)
        follows = (at > 0) & (self.key[last] == self.key[at])
        first: np.ndarray = self.held[at] & ~(follows & self.held[last])
        places = np.flatnonzero(follows & ~first)
        first[places] = ~_equal(self.values, last[places], self.values, at[places])
        return first

    def settled(self, horizon: int) -> ReportedTicks:
        """Without what is final: of each key the last tick at or before the horizon stays, unless it has no rows."""
        if not len(self) or horizon < self.end.min():
            return self
        final = self.end <= horizon
        followed = np.append(final[1:] & (self.key[1:] == self.key[:-1]), False)
        kept = ~final | (self.held & ~followed)
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def with_due(self, key: np.ndarray, end: np.ndarray) -> ReportedTicks:
        """With these ticks ahead of the watermark, instead of those that there were."""
        return replace(self, due_key=key, due_end=end)

    def of_keys(self, low: int, high: int) -> ReportedTicks:
        """The ticks of the keys from one number to before another; what is due is left out."""
        some = slice(*np.searchsorted(self.key, [low, high]))
        return replace(self.take(some), due_key=NONE, due_end=NONE)

    def joined(self, parts: Sequence[ReportedTicks]) -> ReportedTicks:
        """What is due here, with the ticks of parts, whose keys ascend from one to the next."""
        parts = [part for part in parts if len(part)]
        if not parts:
            return self
        columns = {
            n: np.concatenate([getattr(p, n) for p in parts]) for n in ("key", "end", "held", "shown", "revision")
        }
        values = tuple(joined_columns(column) for column in zip(*(p.values for p in parts), strict=True))
        return replace(self, **columns, values=values)

    def renumbered(self, numbers: np.ndarray) -> ReportedTicks:
        """The ticks after keys got other numbers; the order of keys stays."""
        return replace(self, key=numbers[self.key], due_key=numbers[self.due_key])

    def to_data(self) -> dict[str, Any]:
        """The ticks as plain data."""
        return {name: getattr(self, name) for name in _ARRAYS} | {"values": [v.to_data() for v in self.values]}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ReportedTicks:
        """The ticks from what :meth:`to_data` gave."""
        return cls(values=tuple(map(Column.from_data, data["values"])), **{name: data[name] for name in _ARRAYS})


_ARRAYS = ("key", "end", "held", "shown", "revision", "due_key", "due_end")


def _equal(a: tuple[Column, ...], at: np.ndarray, b: tuple[Column, ...], there: np.ndarray) -> np.ndarray:
    """Whether rows of values are the same: null is null, NaN is NaN."""
    same = np.ones(len(at), bool)
    for one, other in zip(a, b, strict=True):
        same &= _equal_values(one.take(at), other.take(there))
    return same


def _equal_values(a: Column, b: Column) -> np.ndarray:
    if a.values.dtype == object or b.values.dtype == object:
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return np.fromiter((is_same(x, y, 0.0) for x, y in pairs), bool, len(a))
    values = a.values == b.values
    if a.values.dtype.kind == "f":
        values |= np.isnan(a.values) & np.isnan(b.values)
    same: np.ndarray = (a.mask == b.mask) & (values | ~a.mask)
    return same
