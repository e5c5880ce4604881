"""Ledgers: what was reported of a track's windows and may still change. Compared with what is true after every step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from slicewise.kernels import ROOM, match_rows
from slicewise.slicing.rows.discretisers import WindowRanges
from slicewise.slicing.rows.shared_cuts import SharedCuts

__all__ = ["Ledger", "entries_of"]


@dataclass(frozen=True, eq=False)
class Ledger:
    """Windows that were reported and are not final: their bounds, and which rows they held.

    A window's rows are neighbours, and rows never leave the stream, so the arrival numbers of the first and the last
    with their count say whether it still holds the same ones. ``nth`` tells windows of equal bounds apart.
    """

    family: np.ndarray
    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    nth: np.ndarray
    first: np.ndarray
    last: np.ndarray
    rows: np.ndarray
    decided: np.ndarray
    revision: np.ndarray

    @classmethod
    def empty(cls) -> Ledger:
        """Nothing reported."""
        return cls(*(np.empty(0, np.int64) for _ in cls.__dataclass_fields__))

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: np.ndarray) -> Ledger:
        """The entries at ``index``."""
        return Ledger(*(getattr(self, n)[index] for n in self.__dataclass_fields__))

    def renumbered(self, numbers: np.ndarray) -> Ledger:
        """The entries of windows that are still there, under their new numbers; -1 says that one is gone."""
        family = numbers[self.family]
        return replace(self, family=family).take(np.flatnonzero(family >= 0))

    def find(self, other: Ledger) -> np.ndarray:
        """For each entry of another ledger the same window in this one, or -1."""
        names = ("family", "key", "start", "end", "nth")
        table, wanted = (tuple(getattr(ledger, n) for n in names) for ledger in (self, other))
        packed = _packed(table, wanted)
        if packed is None:
            return match_rows(table, wanted)
        mine, theirs = packed
        order = np.argsort(mine, kind="stable")
        at = np.searchsorted(mine, theirs, sorter=order)
        found = order[np.minimum(at, len(order) - 1)]
        return np.where(mine[found] == theirs, found, -1)

    def same_rows(self, other: Ledger) -> np.ndarray:
        """Entry by entry, whether both windows hold the same rows."""
        return (self.first == other.first) & (self.last == other.last) & (self.rows == other.rows)


def _packed(table: tuple[np.ndarray, ...], wanted: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows as one integer each, which is found much faster; None where they do not fit, or there is none."""
    if not len(table[0]) or not len(wanted[0]):
        return None
    mine, theirs, room = np.zeros(len(table[0]), np.int64), np.zeros(len(wanted[0]), np.int64), ROOM
    for a, b in zip(table, wanted, strict=True):
        if a.dtype.kind != "i" or b.dtype.kind != "i":
            return None
        low = min(int(a.min()), int(b.min()))
        span = max(int(a.max()), int(b.max())) - low + 1
        room //= span
        if not room:
            return None
        if span > 1:
            mine, theirs = mine * span + (a - low), theirs * span + (b - low)
    return mine, theirs


def entries_of(found: WindowRanges, pieces: SharedCuts) -> Ledger:
    """Windows as entries of a ledger, none of them reported before."""
    none = np.zeros(len(found), np.int64)
    return Ledger(
        found.family,
        found.key,
        found.start,
        found.end,
        none,
        pieces.first_of(found.low),
        pieces.last_of(found.high - 1),
        pieces.count(found.low, found.high),
        found.decided,
        none.copy(),
    )
