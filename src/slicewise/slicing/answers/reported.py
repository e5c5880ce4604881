"""Reported windows: what was reported and may still be corrected. Compared with what is true after every step.

A context-free window was reported if the watermark has passed it and it held rows, so nothing is kept of it until it is
corrected: then its revision. The bounds of sessions and of context-aware windows depend on rows, so each of them is
kept until no row can change it any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from slicewise.kernels import ROOM, match_rows
from slicewise.records import record
from slicewise.results import INSERT, UPDATE
from slicewise.times import INFINITY

__all__ = ["Comparison", "ReportedWindows"]

#: What identifies a reported window.
_IDENTITY = ("family", "key", "start", "end", "nth")
_COLUMNS = (*_IDENTITY, "until", "revision")


@record
class ReportedWindows:
    """Windows that were reported and are not final, one array entry each.

    Attributes
    ----------
    family, key, start, end
        Which window it is.
    nth
        Tells windows of equal bounds apart.
    until
        The last horizon at which the window can still be corrected.
    revision
        How often it was corrected.
    content
        What tells whether the window still holds the same rows: none for time slices, which know what they have not
        reported; for ordered rows the arrival numbers of the first and the last row and how many there are. A window's
        rows are neighbours, and rows never leave the stream, so that is enough.
    """

    family: np.ndarray
    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    nth: np.ndarray
    until: np.ndarray
    revision: np.ndarray
    content: tuple[np.ndarray, ...] = ()

    @classmethod
    def none(cls) -> ReportedWindows:
        """Nothing reported."""
        nothing = np.empty(0, np.int64)
        return cls(nothing, nothing, nothing, nothing, nothing, nothing, nothing)

    @classmethod
    def new(
        cls,
        family: np.ndarray,
        key: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        until: np.ndarray,
        content: tuple[np.ndarray, ...] = (),
    ) -> ReportedWindows:
        """Windows that were not reported before, no two of them with the same bounds."""
        return cls(family, key, start, end, np.zeros(len(key), np.int64), until, np.zeros(len(key), np.int64), content)

    @property
    def nbytes(self) -> int:
        """Bytes in arrays."""
        columns = (self.family, self.key, self.start, self.end, self.nth, self.until, self.revision, *self.content)
        return sum(column.nbytes for column in columns)

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: np.ndarray) -> ReportedWindows:
        """The entries at ``index``."""
        columns = {name: getattr(self, name)[index] for name in _COLUMNS}
        return ReportedWindows(**columns, content=tuple(c[index] for c in self.content))

    def joined(self, other: ReportedWindows) -> ReportedWindows:
        """These entries and others behind them."""
        if not len(other):
            return self
        if not len(self):
            return other
        columns = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in _COLUMNS}
        content = tuple(np.concatenate(both) for both in zip(self.content, other.content, strict=True))
        return replace(self, **columns, content=content)

    def renumbered(self, families: np.ndarray) -> ReportedWindows:
        """The entries of families that are still there, under their new numbers; -1 says that one is gone."""
        if not len(self):
            return self
        family = families[self.family]
        return replace(self, family=family).take(np.flatnonzero(family >= 0))

    def correctable(self, horizon: int) -> ReportedWindows:
        """The entries that can still be corrected at a horizon."""
        if not len(self.until):
            return self
        kept = self.until >= horizon
        return self if kept.all() else self.take(np.flatnonzero(kept))

    def lasting(self, lasts: bool) -> ReportedWindows:
        """The entries that stay whatever the horizon, or all others."""
        if not len(self.until):
            return self
        return self.take(np.flatnonzero((self.until >= INFINITY) == lasts))

    def with_changed(self, key: np.ndarray, time: np.ndarray) -> ReportedWindows:
        """The entries with no content that any window could have, if they held one of some rows: that has left."""
        changed = np.zeros(len(self), bool)
        for row_key, row_time in zip(key.tolist(), time.tolist(), strict=True):
            changed |= (self.key == row_key) & (self.start <= row_time) & (row_time < self.end)
        return replace(self, content=tuple(np.where(changed, -1, column) for column in self.content))

    def find(self, other: ReportedWindows) -> np.ndarray:
        """For each entry of another table the position of the same window in this one, or -1."""
        table, wanted = (tuple(getattr(t, n) for n in _IDENTITY) for t in (self, other))
        packed = _packed(table, wanted)
        if packed is None:
            return match_rows(table, wanted)
        here, there = packed
        order = np.argsort(here, kind="stable")
        at = np.searchsorted(here, there, sorter=order)
        nearest = order[np.minimum(at, len(order) - 1)]
        return np.where(here[nearest] == there, nearest, -1)

    def compare(self, now: ReportedWindows, unreported: np.ndarray | None = None) -> Comparison:
        """What must be reported so that these windows become those that are true ``now``.

        ``unreported`` says which of them hold rows that were not reported yet; without it, the contents are compared.
        """
        at = self.find(now)
        known = at >= 0
        old = self.take(at[known])
        changed = ~known
        if unreported is None:
            changed[known] = ~old._same_content(now.take(known))
        else:
            changed[known] = unreported[known]
        revision = now.revision.copy()
        revision[known] = old.revision + changed[known]
        gone = np.ones(len(self), bool)
        gone[at[known]] = False
        shown = np.flatnonzero(changed)
        change = np.where(known, UPDATE, INSERT)[shown]
        return Comparison(replace(now, revision=revision), shown, change, self.take(np.flatnonzero(gone)))

    def revised(self, windows: ReportedWindows) -> tuple[ReportedWindows, np.ndarray]:
        """These entries with corrections of some windows, each reported before, and their next revisions."""
        at = self.find(windows)
        known = at >= 0
        revision = np.ones(len(windows), np.int64)
        revision[known] = self.revision[at[known]] + 1
        rest = np.ones(len(self), bool)
        rest[at[known]] = False
        return self.take(np.flatnonzero(rest)).joined(replace(windows, revision=revision)), revision

    def to_data(self) -> dict[str, Any]:
        """The table as plain data."""
        return {n: getattr(self, n) for n in _COLUMNS} | {"content": list(self.content)}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> ReportedWindows:
        """The table from what :meth:`to_data` gave."""
        return cls(**{n: data[n] for n in _COLUMNS}, content=tuple(data["content"]))

    def _same_content(self, other: ReportedWindows) -> np.ndarray:
        same = np.ones(len(self), bool)
        if not len(self):
            return same
        for a, b in zip(self.content, other.content, strict=True):
            same &= a == b
        return same


@record
class Comparison:
    """What changed between two steps: the table of now, which of its entries to show and how, and what is no more."""

    now: ReportedWindows
    shown: np.ndarray
    change: np.ndarray
    gone: ReportedWindows


def _packed(table: tuple[np.ndarray, ...], wanted: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows as one integer each, which is looked up much faster; None where they do not fit, or there is none."""
    if not len(table[0]) or not len(wanted[0]):
        return None
    here, there, room = np.zeros(len(table[0]), np.int64), np.zeros(len(wanted[0]), np.int64), ROOM
    for a, b in zip(table, wanted, strict=True):
        if a.dtype.kind != "i" or b.dtype.kind != "i":
            return None
        low = min(int(a.min()), int(b.min()))
        span = max(int(a.max()), int(b.max())) - low + 1
        room //= span
        if not room:
            return None
        if span > 1:
            here, there = here * span + (a - low), there * span + (b - low)
    return here, there
