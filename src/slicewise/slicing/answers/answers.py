"""Reports: from windows and sessions to result rows, and what must be remembered of results that may be corrected.

A context-free window was reported if the watermark has passed it and it held rows, so nothing is remembered of it until
it is corrected: then its revision. A session's bounds depend on its rows, so every reported session is remembered until
no late row can reach it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from slicewise.aggregates.base import Parts
from slicewise.kernels import enumerate_ranges, match_rows
from slicewise.plan.plan import Group, Plan
from slicewise.results import INSERT, RETRACT, UPDATE, Block
from slicewise.slicing.answers.lowering import Asked
from slicewise.slicing.answers.range_stores import STORES, LazyStore, Store
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.window_manager import Sessions, Windows

__all__ = ["Answers", "QueryFanOut", "Reported", "Reporter", "Table"]


@dataclass(frozen=True, eq=False)
class Table:
    """Reported windows by whose they are (a family's number; nothing for sessions), key and bounds."""

    owner: np.ndarray
    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    revision: np.ndarray

    @classmethod
    def empty(cls) -> Table:
        """Nothing reported."""
        return cls(*(np.empty(0, np.int64) for _ in range(5)))

    def __len__(self) -> int:
        return len(self.key)

    def take(self, index: np.ndarray) -> Table:
        """The rows at ``index``."""
        return Table(*(getattr(self, name)[index] for name in self.__dataclass_fields__))

    def joined(self, other: Table) -> Table:
        """These rows and others."""
        return Table(*(np.concatenate([getattr(self, n), getattr(other, n)]) for n in self.__dataclass_fields__))

    def find(self, other: Table) -> np.ndarray:
        """For each row of the other table the position of the same window in this one, or -1."""
        mine = (self.owner, self.key, self.start, self.end)
        return match_rows(mine, (other.owner, other.key, other.start, other.end))


@dataclass(frozen=True, eq=False)
class Reported:
    """What is remembered of results: corrected windows, and under each gap the sessions."""

    windows: Table
    sessions: tuple[Table, ...]

    @classmethod
    def empty(cls, gaps: int) -> Reported:
        """Nothing reported."""
        return cls(Table.empty(), tuple(Table.empty() for _ in range(gaps)))

    def without_windows_before(self, horizon: int) -> Reported:
        """Without windows that cannot be corrected any more."""
        if not len(self.windows):
            return self
        kept = self.windows.end > horizon
        return self if kept.all() else replace(self, windows=self.windows.take(kept))

    def without_sessions_before(self, level: int, horizon: int) -> Reported:
        """Without sessions of one gap that cannot be corrected any more."""
        table = self.sessions[level]
        if not len(table):
            return self
        kept = table.end >= horizon
        return self if kept.all() else self.with_sessions(level, table.take(kept))

    def with_sessions(self, level: int, table: Table) -> Reported:
        """With another table of sessions for one gap."""
        return replace(self, sessions=(*self.sessions[:level], table, *self.sessions[level + 1 :]))


class Reporter:
    """Makes result blocks for the queries of a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.queries_of = [QueryFanOut(list(g.family_queries)) for g in plan.groups]

    def answers(self, slices: Slices, keys: KeyTable, since: Mapping[str, int], after: Mapping[str, int]) -> Answers:
        """What can be answered from these slices."""
        return Answers(self, slices, keys, since, after)


class Answers:
    """Answers over the slices of one step; stores are built when first asked."""

    def __init__(
        self,
        reporter: Reporter,
        slices: Slices,
        keys: KeyTable,
        since: Mapping[str, int],
        after: Mapping[str, int],
    ) -> None:
        self.reporter = reporter
        self.plan = reporter.plan
        self.slices = slices
        self.keys = keys
        self.limited = bool(since) or bool(after)
        if self.limited:
            names = [q.name for q in self.plan.workload.queries]
            lowest = np.iinfo(np.int64).min
            self.since = np.array([since.get(n, lowest) for n in names])
            self.after = np.array([after.get(n, lowest) for n in names])
        self._stores: dict[int, Store] = {}

    def windows(self, changed: Windows, ended: Windows, reported: Reported) -> tuple[Reported, list[Block]]:
        """Result rows for corrected and for newly ended context-free windows."""
        found = changed.joined(ended)
        if not len(found):
            return reported, []
        revision = np.zeros(len(found), np.int64)
        change = np.full(len(found), INSERT)
        if len(changed) and found.known.any():
            reported, revision[found.known] = _revised(reported, found.take(found.known))
            change[found.known] = UPDATE
        blocks = []
        for group, expansion in zip(self.plan.groups, self.reporter.queries_of, strict=True):
            mine, unit = _members(group, found.family, len(self.plan.windows))
            if mine is None:
                continue
            w, marks = found, (change, revision)
            if len(unit) < len(found):
                w, marks = found.take(mine), (change[mine], revision[mine])
            asked = Asked(self.plan, self.keys, partial(expansion.first_query, unit), w.key, w.start, w.end)
            values = tuple(asked.lower(m, self._store(m).query(w.low, w.high)) for m in group.monoids)
            row, query = expansion.apply(unit)
            block = Block((), query, w.start, w.end, *marks, values)
            blocks.append(self._finished(block, w.key, row, due=w.end))
        return reported, blocks

    def sessions(
        self, sessions: Sessions, level: int, counted: np.ndarray, watermark: int, reported: Reported
    ) -> tuple[Reported, list[Block]]:
        """Result rows for sessions that are complete, were corrected, or are no more."""
        ready = np.flatnonzero(counted & (sessions.end < watermark))
        now = Table(
            np.zeros(len(ready), np.int64),
            sessions.key[ready],
            sessions.start[ready],
            sessions.end[ready],
            np.zeros(len(ready), np.int64),
        )
        table = reported.sessions[level]
        retracted = Table.empty()
        shown, change = np.arange(len(ready)), np.full(len(ready), INSERT)
        if self.plan.workload.lateness:
            at = table.find(now)
            known = at >= 0
            now.revision[known] = table.revision[at[known]] + sessions.fresh[ready[known]]
            shown = np.flatnonzero(~known | sessions.fresh[ready])
            change = np.where(known, UPDATE, INSERT)[shown]
            gone = np.ones(len(table), bool)
            gone[at[known]] = False
            retracted = table.take(gone)
            reported = reported.with_sessions(level, now)
        blocks = []
        for group in self.plan.groups:
            queries = group.sessions.get(level)
            if queries is None:
                continue
            blocks += self._retractions(retracted, queries)
            if not len(shown):
                continue
            w, places = now.take(shown), ready[shown]
            asked = Asked(self.plan, self.keys, partial(_same, int(queries[0])), w.key, w.start, w.end)
            values = tuple(asked.lower(m, self._session_parts(m, sessions, places)) for m in group.monoids)
            row, query = np.tile(np.arange(len(w)), len(queries)), np.repeat(queries, len(w))
            block = Block((), query, w.start, w.end, change, w.revision, values)
            blocks.append(self._finished(block, w.key, row, due=w.end + 1))
        return reported, blocks

    def _retractions(self, gone: Table, queries: np.ndarray) -> list[Block]:
        if not len(gone):
            return []
        row, query = np.tile(np.arange(len(gone)), len(queries)), np.repeat(queries, len(gone))
        block = Block((), query, gone.start, gone.end, np.full(len(gone), RETRACT), gone.revision + 1, ())
        return [self._finished(block, gone.key, row, due=gone.end + 1)]

    def _finished(self, block: Block, key: np.ndarray, row: np.ndarray | None, due: np.ndarray) -> Block:
        """Repeat windows that several queries share, fill in keys, and leave out what a query must not report.

        All of ``block`` but its queries is given per window; ``row`` says which window each result is about.
        """
        query, columns = block.query, (block.start, block.end, block.change, block.revision)
        values = block.values
        if self.limited:
            row = np.arange(len(query)) if row is None else row
            fits = (block.start[row] >= self.since[query]) & (due[row] > self.after[query])
            row, query = row[fits], query[fits]
        if row is not None:
            key, columns = key[row], tuple(c[row] for c in columns)
            values = tuple(v.take(row) for v in values)
        return Block(self.keys.decode(key), query, *columns, values)

    def _store(self, monoid: int) -> Store:
        store = self._stores.get(monoid)
        if store is None:
            kind = STORES[self.plan.stores[monoid].choice]
            store = self._stores[monoid] = kind(self.plan.monoids[monoid], self.slices.parts[monoid])
        return store

    def _session_parts(self, monoid: int, sessions: Sessions, places: np.ndarray) -> Parts:
        """Sessions never overlap, so each slice is folded once: the lazy store, over the slices that take part."""
        bound = self.plan.monoids[monoid]
        parts = self.slices.parts[monoid]
        if len(sessions.slices) < len(self.slices):
            parts = tuple(p[sessions.slices] for p in parts)
        return LazyStore(bound, parts).query(sessions.low[places], sessions.high[places])


class QueryFanOut:
    """Windows that several queries share are computed once and reported for each."""

    def __init__(self, queries: list[np.ndarray]) -> None:
        self.counts = np.array([len(q) for q in queries], np.int64)
        self.flat = np.concatenate(queries) if queries else np.empty(0, np.int64)
        self.offset = np.cumsum(self.counts) - self.counts
        self.single = bool((self.counts == 1).all())

    def apply(self, unit: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """For windows of these units (families of a group) the window and the query of each result.

        No window is repeated when each unit has one query: the windows are then None, for all of them in order.
        """
        if self.single:
            return None, self.flat[unit]
        low = self.offset[unit]
        row, at = enumerate_ranges(low, low + self.counts[unit] - 1)
        return row, self.flat[at]

    def first_query(self, unit: np.ndarray, at: int) -> int:
        """A query that has asked for the window at a place, when these are the windows' units."""
        return int(self.flat[self.offset[unit[at]]])


def _same(query: int, at: int) -> int:
    """The query of every window, wherever it stands."""
    return query


def _members(group: Group, family: np.ndarray, families: int) -> tuple[np.ndarray | None, np.ndarray]:
    """Which windows a group reports, and the position of their families among the group's."""
    if len(group.families) == families:
        return np.arange(len(family)), family
    place = np.full(families, -1)
    place[group.families] = np.arange(len(group.families))
    unit = place[family]
    mine = np.flatnonzero(unit >= 0)
    return (mine, unit[mine]) if len(mine) else (None, mine)


def _revised(reported: Reported, found: Windows) -> tuple[Reported, np.ndarray]:
    """The next revision of windows that were reported before, remembered."""
    now = Table(found.family, found.key, found.start, found.end, np.ones(len(found), np.int64))
    at = reported.windows.find(now)
    known = at >= 0
    now.revision[known] = reported.windows.revision[at[known]] + 1
    rest = np.ones(len(reported.windows), bool)
    rest[at[known]] = False
    return replace(reported, windows=reported.windows.take(rest).joined(now)), now.revision
