"""Context: the context-aware half of the oracle. Which rows count, and which reports late rows correct.

A row counts if it is not before the horizon (the watermark minus the lateness) when it is judged: the order of rows
before the horizon is final. Windows as reported are compared with the windows of the present rows::

    time      0    2    4    6    8                punctuated, lateness enough
              a         b    M    c
              [--------------)                     insert 0-6 ab
                   M                               a marker at 2, late
              [----)                               retract 0-6; insert 0-2 a
                   [---------)                     insert 2-6 Mb
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from numbers import Real
from typing import Any, NamedTuple

from slicewise.amounts import ROWS
from slicewise.errors import DataError, QueryError
from slicewise.results import Result
from slicewise.testing import adaptive_windows, context_windows, user_code
from slicewise.testing.context_windows import WindowRange
from slicewise.testing.oracle_rows import ON_ROWS, FailedWindowError, Key, RefusedRowError, Row, column_of, results_of
from slicewise.testing.refusals import jumps
from slicewise.testing.time_windows import KINDS

__all__ = ["ContextQuery", "check_known", "is_context_aware", "sees"]

Definition = Callable[[Any, Sequence[Row]], list[WindowRange]]
#: A window among those of one query and key: its bounds, and which of those with the same bounds it is.
Identity = tuple[Any, Any, int]


def is_context_aware(window: Any) -> bool:
    """Whether a window is a range of positions: everything but context-free windows on event time, and sessions."""
    if window.kind == "session" and window.needs_rows:
        return True
    return window.kind in _DEFINITIONS or any(m.kind in ("rows", "units") for m in window.measures)


def sees(query: Any, row: Row) -> bool:
    """Whether a row is shown to the windows of a query: punctuation only to those by conditions and by the user."""
    return not row.punctuation or query.window.kind in ("punctuated", "user_defined")


def check_known(query: Any) -> None:
    """Refuse windows that have no definition."""
    if query.window.kind not in KINDS and definition_of(query.window) is None:
        raise QueryError(
            f"the oracle has no definition of {query.window.kind} windows; got them in query {query.name!r}; "
            "give it windows made by sw.tumbling, sw.sliding and the others"
        )


def definition_of(window: Any) -> Definition | None:
    """The function that defines the windows of one kind; None where there is no definition."""
    if window.kind == "user_defined":
        if window.places_edges:
            return user_code.placing_edges
        return user_code.deterministic if window.deterministic else user_code.non_deterministic
    if window.kind in _DEFINITIONS:
        return _DEFINITIONS[window.kind]
    if window.kind == "session" and not window.measure.column:
        return context_windows.row_sessions
    if len(window.measures) > 1:
        return context_windows.multi_measure
    if ROWS in window.measures:
        return context_windows.counts
    if not any(m.column for m in window.measures):
        return None
    return context_windows.measure_sessions if window.kind == "session" else context_windows.units


_DEFINITIONS: dict[str, Definition] = {
    "punctuated": context_windows.punctuated,
    "frames": context_windows.frames,
    "policy": user_code.policy,
    "adaptive": adaptive_windows.adaptive,
    "trailing": context_windows.trailing,
    "user_defined": user_code.deterministic,
}


class Reported(NamedTuple):
    """The last report of a window: its revision, the rows it held, and the event time that decided it."""

    revision: int
    rows: list[Row]
    decided: float


class ContextQuery:
    """One context-aware query: its rows, its windows and their last reports, for every key.

    :meth:`judge` finds the rows that the query must refuse and changes nothing else, so that a failed step can be
    tried again; :meth:`take` and :meth:`report` then finish the step. It stops at a row that other queries must leave
    out too, before anything else happens; ``is_judged`` says whether it came to the end.
    """

    is_judged = False

    def __init__(
        self, query: Any, by_value: Collection[Any], failures: list[FailedWindowError], second: int = 1
    ) -> None:
        definition = definition_of(query.window)
        assert definition is not None
        self.query = query
        self._by_value = by_value
        self._failures, self._second = failures, second
        self._define = definition
        self._ends_in_time = query.window.kind == "trailing" and ROWS not in query.window.measures
        self._measures = [m.column for m in query.window.measures if m.column is not None]
        self._rows: dict[Key, list[Row]] = {}
        self._left_out: set[Row] = set()
        self._judged: dict[Key, tuple[list[Row], list[WindowRange]]] = {}
        self._reported: dict[Key, dict[Identity, Reported]] = {}

    def has_window(self, row: Row) -> bool:
        """Whether the row would count if it arrived in time: it has every measure and was not refused."""
        if self._define is context_windows.row_sessions and (context_windows.gap_of(self.query.window, row) or 0) <= 0:
            return False
        return row not in self._left_out and all(row.values.get(m) is not None for m in self._measures)

    def judge(self, epoch: Iterable[Row], horizon: float) -> list[RefusedRowError]:
        """Judge the rows of an epoch together with those that count already; returns the errors of refused rows."""
        errors: list[RefusedRowError] = []
        new: dict[Key, list[Row]] = {key: [] for key in self._rows}
        for row in epoch:
            row.horizon = horizon
            if row.time >= horizon:
                new.setdefault(row.key, []).append(row)
        self._judged, self.is_judged = {}, False
        for key, rows in new.items():
            while key not in self._judged:
                try:
                    counted = self._admit(self._rows.get(key, []), rows)
                    self._judged[key] = counted, self._define(self.query, counted)
                except RefusedRowError as error:
                    errors.append(error)
                    self._left_out.add(error.row)
                    if error.out_of == ON_ROWS:
                        return errors
        self.is_judged = True
        return errors

    def leave_out(self, row: Row) -> None:
        """Take a row out for good, whenever it came."""
        self._left_out.add(row)

    def take(self) -> set[Row]:
        """Take in the rows that were judged; returns those that count."""
        self._rows = {key: rows for key, (rows, _) in self._judged.items()}
        return {row for rows in self._rows.values() for row in rows}

    def report(self, key: Key, watermark: float, horizon: float) -> Iterator[Result]:
        """Correct the reports of a key's windows and add those now due; ``horizon`` is that of the judgement."""
        rows, windows = self._judged.get(key, ([], []))
        reported = self._reported.get(key, {})
        now: dict[Identity, Reported] = {}
        for w in windows:
            held = [row for row in rows[w.low : w.high] if not row.punctuation]
            # As of a row there is a window also where nothing comes before the row.
            if w.due <= watermark and (held or self.query.window.kind == "trailing"):
                identity = next((w.start, w.end, n) for n in range(len(windows)) if (w.start, w.end, n) not in now)
                revision = reported[identity].revision if identity in reported else -1
                now[identity] = Reported(revision, held, w.decided)
        for identity in sorted(reported.keys() - now.keys(), key=_in_order):
            assert reported[identity].decided >= horizon, "a window is gone that was final"
            nothing = dict.fromkeys(self.query.aggregates)
            yield self._result(key, identity, "retract", reported[identity].revision + 1, nothing)
        for identity in sorted(now, key=_in_order):
            before, (revision, held, decided) = reported.get(identity), now[identity]
            if before is not None and before.rows == held:
                continue
            assert before is None or before.decided >= horizon, "a window has changed that was final"
            change = "insert" if before is None else "update"
            now[identity] = Reported(revision + 1, held, decided)
            window = f"key {key}, window {identity[:2]}"
            end = identity[1] if self._ends_in_time else None
            values = results_of(self.query, held, self._by_value, window, self._failures, end, self._second)
            yield self._result(key, identity, change, revision + 1, values)
        self._reported[key] = now

    def _result(self, key: Key, identity: Identity, change: str, revision: int, values: dict[str, Any]) -> Result:
        start, end, _ = identity
        return Result(key, self.query.name, start, end, change, revision, values)

    # -- measures that only advance

    def _admit(self, kept: list[Row], new: list[Row]) -> list[Row]:
        """The rows that count, in order; a new row must fit between its neighbours on every measure."""
        for row in new:
            for name in self._measures:
                self._check_number(row, name)
        rows = sorted((row for row in [*kept, *new] if self.has_window(row)), key=lambda row: row.place)
        old = set(kept)
        for name in self._measures:
            self._check_jumps(rows, old, name)
            last: Row | None = None
            for i, row in enumerate(rows):
                if row not in old:
                    after = next((later for later in rows[i:] if later in old), None)
                    self._check_between(row, last, after, name)
                last = row
        return rows

    def _check_number(self, row: Row, name: str) -> None:
        if row in self._left_out:
            return
        try:
            value = column_of(row.values, name, "is a measure")
        except DataError as error:
            raise RefusedRowError(row, self.query.name, str(error)) from error
        number = not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
        if value is not None and not number:
            raise RefusedRowError(row, self.query.name, f"the measure {name!r} must be a finite number; got {value!r}")

    def _check_jumps(self, rows: list[Row], old: set[Row], name: str) -> None:
        every = getattr(self.query.window, "every", None)
        if every is None or every.measure.column != name or self._define is context_windows.units:
            return  # no ticks that come without rows
        for row in jumps(rows, old, lambda row: row.values[name], every.size):
            what = f"the measure {name!r} must not jump over so many ticks; got {row.values[name]}"
            raise RefusedRowError(row, self.query.name, what)

    def _check_between(self, row: Row, before: Row | None, after: Row | None, name: str) -> None:
        value = row.values[name]
        for other, word, wrong in ((before, "after", operator.gt), (after, "before", operator.lt)):
            if other is not None and wrong(other.values[name], value):
                raise RefusedRowError(
                    row,
                    self.query.name,
                    f"the measure {name!r} must not go backwards; got {value} {word} {other.values[name]} "
                    f"at time {other.time}",
                )


def _in_order(identity: Identity) -> tuple[Any, ...]:
    start, end, nth = identity
    return start, end is None, 0 if end is None else end, nth
