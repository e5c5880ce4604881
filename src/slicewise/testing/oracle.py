"""Oracle: every result by definition, slowly. Stands beside the engine, whose answers must equal its own.

It keeps every row for ever. A window's result is :func:`~slicewise.testing.definitions.value_of` the list of its rows;
no slice is cut and no partial is kept. Of the engine it shares one thing, the evaluation of conditions of windows
(:mod:`slicewise.conditions`), which the tests compare with a definition of its own; what it shares besides are the
descriptions of windows and aggregates, and what users wrote: their aggregates, windows and policies are called.

Windows on event time and sessions are defined in ``time_windows``, those that are ranges of positions in
``context_windows`` and ``user_code``; the latter are kept in ``context``.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from slicewise.errors import DataError, QueryError
from slicewise.results import Result
from slicewise.testing.context import ContextQuery, check_known, is_context_aware, sees
from slicewise.testing.context_windows import check_condition
from slicewise.testing.definitions import is_defined, lifted, order_of
from slicewise.testing.expressions import OutOfTypeError, computed_row, given_columns, is_meant
from slicewise.testing.oracle_rows import (
    ANYWHERE,
    ON_ROWS,
    FailedWindowError,
    Key,
    RefusedRowError,
    Row,
    as_key,
    column_of,
    results_of,
    second_of,
    whole,
)
from slicewise.testing.refusals import after_empty, after_gaps, is_ahead, refused
from slicewise.testing.ties import TIES, picks_by_value, tie_columns
from slicewise.testing.time_windows import Window, is_endless, sessions_of, windows_between, windows_of

__all__ = ["Oracle"]


@dataclass
class _Answers:
    """The windows of one query and key, each with the revision last reported, None before the first report."""

    revisions: dict[Window, int | None] = field(default_factory=dict)
    alive: list[Row] = field(default_factory=list)  # sessions only: rows of sessions that are not closed


class Oracle:
    """A workload's results by brute force, for tests of the engine and of your own windows and aggregates.

    Rows that arrive between two calls of :meth:`advance` are judged together, by the watermark before that call; so it
    does not matter how they were split into batches.

    Parameters
    ----------
    workload
        A :class:`slicewise.Workload`; ``order``, ``lateness`` and ``queries`` are read.
    ties
        The order of rows of equal event time and equal ``order`` columns: ``"arrival"``, as in process, or
        ``"values"``, as on Spark.
    ahead, clock
        How far ahead of the clock a row may be, in units of event time, and what gives its microseconds. A row further
        ahead is refused when it comes. Without them, so is one that would make more than a million ticks due.
    types
        Arrow types of columns that expressions read, where the values of a row do not show them.

    Notes
    -----
    The oracle knows every kind of window. A row counts in a context-aware query if it is not before the horizon, the
    watermark minus the lateness, when it is judged. A row on which a user's function raises that looks at single rows
    (a condition, ``lift`` of an aggregate) counts nowhere. A row whose measure goes backwards is left out of the
    windows on it, one that a user's window fails on out of all windows on rows. :meth:`advance` raises an error before
    anything else has changed: call it again to continue. A window over which a user's aggregate raises has a null for a
    value, and an error names it; the results of that step come with the next call.

    Runtime complexity: :meth:`advance` is O(open windows x rows of a window). For tests, not for production.

    Examples
    --------
    >>> from slicewise.aggregates.arithmetic import Count
    >>> from slicewise.windows import session
    >>> from slicewise.workload import Workload
    >>> oracle = Oracle(Workload(time="t", lateness=100).query("visit", session(10), n=Count()))
    >>> oracle.process_batch([(0, {}, ()), (15, {}, ())])
    >>> for result in oracle.advance(26):
    ...     print(*result[2:])
    0 10 insert 0 {'n': 1}
    15 25 insert 0 {'n': 1}

    A late row bridges the two sessions:

    >>> oracle.process(8, {})
    >>> for result in oracle.advance(26):
    ...     print(*result[2:])
    0 10 retract 1 {'n': None}
    15 25 retract 1 {'n': None}
    0 25 insert 0 {'n': 3}
    >>> oracle.close(), oracle.late()
    ([], [])
    """

    def __init__(
        self,
        workload: Any,
        *,
        ties: str = "arrival",
        ahead: int | None = None,
        clock: Callable[[], int] | None = None,
        types: Mapping[str, Any] | None = None,
    ) -> None:
        if ties not in TIES:
            raise QueryError(f"`ties` must be {' or '.join(map(repr, TIES))}; got {ties!r}")
        for query in workload.queries:
            check_known(query)
        self._queries, self._keys = tuple(workload.queries), tuple(workload.keys)
        self._columns, self._where, self._types = workload.columns, workload.where, types
        self._on_clock = workload.on_clock
        self._punctuation, self._watermark_from = workload.punctuation, workload.watermark_from
        self._order = tuple(workload.order)
        self._by_value: frozenset[Any] = frozenset()
        if ties == "values":
            self._order = tie_columns(workload)
            computed = [a for q in self._queries for a in q.aggregates.values()]
            self._by_value = frozenset(a for a in computed if picks_by_value(a, workload))
        self._lateness = workload.lateness
        self._ahead, self._clock, self._unit = ahead, clock, workload.time_measure.unit
        self._second = second_of(workload)
        self._watermark: float = -math.inf
        self._closed = False
        self._rows: dict[Key, list[Row]] = {}
        self._epoch: list[Row] = []
        self._late: list[Row] = []
        self._arrivals = 0
        self._answers: dict[tuple[int, Key], _Answers] = {}
        self._failures: list[FailedWindowError] = []
        self._held: list[Result] = []
        self._refused: list[RefusedRowError] = []
        self._contexts = {
            i: ContextQuery(q, self._by_value, self._failures, self._second)
            for i, q in enumerate(self._queries)
            if is_context_aware(q.window)
        }

    def process(self, time: int, row: Mapping[str, Any], key: Any = ()) -> None:
        """Take one row. Nothing is reported and nothing is late before the next :meth:`advance`.

        Parameters
        ----------
        time
            Its event time: an integer, microseconds or the unit of the column.
        row
            Its columns by name.
        key
            Its key, a tuple or a single value.
        """
        self.process_batch([(time, row, key)])

    def process_batch(self, rows: Iterable[tuple[int, Mapping[str, Any], Any]]) -> None:
        """Take several rows; those that are refused are named when the others are in.

        Parameters
        ----------
        rows
            One ``(time, row, key)`` per row, as :meth:`process` takes them. One that is a watermark advances the
            oracle at its place; the results come with the next call of :meth:`advance` or :meth:`close`.
        """
        if self._closed:
            raise DataError("the oracle is closed, it takes no more rows; make a new one for another stream")
        if self._on_clock is not None:
            now = self._now()
            self._take([(now, row, key) for _, row, key in rows])
            self._held = self._advance(now)
            return
        data: list[tuple[int, Mapping[str, Any], Any]] = []
        for given in rows:
            watermark = None if self._watermark_from is None else given[1][self._watermark_from]
            if watermark is None:
                data.append(given)
                continue
            self._take(data)
            data, self._held = [], self.advance(watermark)
        self._take(data)

    def _take(self, rows: Iterable[tuple[int, Mapping[str, Any], Any]]) -> None:
        new = [row for given in rows if (row := self._row(*given)) is not None]
        ahead = self._ahead_of_clock(new)
        new = [row for row in new if row not in ahead and self._is_shown(row)]
        gaps = self._after_gaps(new)
        self._epoch += [row for row in new if row not in gaps]
        if ahead:
            raise refused(ahead, f"is more than {self._ahead} ahead of the clock")
        if gaps:
            raise refused(gaps, "would make too many ticks due")

    def _row(self, time: int, row: Mapping[str, Any], key: Any) -> Row | None:
        """A row with its computed columns; None for one that nobody means, or that one of them leaves its type in."""
        try:
            if not is_meant(self._where, row, self._types):
                return None
            punctuation = self._punctuation is not None and is_meant(self._punctuation, row, self._types)
            row = computed_row(self._columns, row, self._types)
        except OutOfTypeError as error:
            self._refused.append(RefusedRowError(Row(time, row, (), ()), "expression", str(error), ANYWHERE))
            return None
        time = whole(time, "an event time")
        ties = tuple(order_of(column_of(row, name, "puts rows of equal time in order")) for name in self._order)
        place = (time, ties, self._arrivals)
        self._arrivals += 1
        return Row(time, row, as_key(key), place, punctuation=punctuation)

    def _ahead_of_clock(self, new: list[Row]) -> set[Row]:
        if self._ahead is None:
            return set()
        assert self._clock is not None
        ahead, now = self._ahead, self._clock()
        return {row for row in new if is_ahead(row.time, ahead, lambda: now, self._unit)}

    def _after_gaps(self, new: list[Row]) -> set[Row]:
        wrong: set[Row] = set()
        for key in {row.key for row in new} if self._ahead is None else ():
            known = [row for row in [*self._rows.get(key, []), *self._epoch] if row.key == key]
            added = [row for row in new if row.key == key]
            wrong |= after_gaps(self._queries, known, added, self._counts)
            for query in (query for query in self._queries if query.empty):
                wrong |= after_empty(query, known, added, partial(self._open_windows, query))
        return wrong

    def _open_windows(self, query: Any, row: Row) -> list[Window]:
        """The windows that a row counts in, or will when it is judged."""
        judged_at = self._watermark if row.judged_at is None else row.judged_at
        windows = [] if row.punctuation else self._windows_of(query, row)
        return [window for window in windows if not self._is_closed(query, window, judged_at)]

    def _is_shown(self, row: Row) -> bool:
        """Whether no function of the user's that looks at single rows raises on this one; if so, it is named later."""
        try:
            self._show(row)
        except RefusedRowError as error:
            self._refused.append(error)
            return False
        return True

    def _show(self, row: Row) -> None:
        for query in self._queries:
            for aggregate in () if row.punctuation else query.aggregates.values():
                try:
                    if not is_defined(aggregate):
                        lifted(aggregate, row.values)
                except DataError:
                    pass  # a column is missing, which is said where it is looked for
                except Exception as error:
                    what = f"`lift` of {aggregate!r} raised {error!r}"
                    raise RefusedRowError(row, query.name, what, ANYWHERE) from error
            if sees(query, row):
                check_condition(query, row)

    def _counts(self, i: int, row: Row) -> bool:
        """Whether a row counts in a context-aware query, or will when it is judged."""
        judged_at = self._watermark if row.judged_at is None else row.judged_at
        counts = i in self._contexts and sees(self._queries[i], row) and self._contexts[i].has_window(row)
        return counts and row.time >= judged_at - self._lateness

    def _now(self) -> int:
        """The clock's time; one that goes back stands still."""
        assert self._on_clock is not None
        return int(max(self._on_clock.now(), self._watermark))

    def advance(self, watermark: int | None = None) -> list[Result]:
        """Judge the rows since the last call by the old watermark, then move it and report.

        Parameters
        ----------
        watermark
            The event time up to which windows are complete; never less than before. On processing time the clock has
            it, at every batch too: results then come with the next call.

        Returns
        -------
        list of Result
            Retractions, then updates, then the windows reported for the first time; each by query, key (in order of
            appearance) and window.
        """
        if self._closed:
            raise DataError("the oracle is closed, its watermark is at infinity; make a new one for another stream")
        watermark = whole(watermark if self._on_clock is None else self._now(), "a watermark")
        if watermark < self._watermark:
            raise DataError(
                f"the watermark must not go back; got {watermark} after {self._watermark}; "
                "advance to the same or a later time"
            )
        return self._advance(watermark)

    def close(self) -> list[Result]:
        """Move the watermark to infinity: report every window with rows. Closing again reports nothing.

        Returns
        -------
        list of Result
            As from :meth:`advance`.
        """
        if self._closed:
            return []
        results = self._advance(math.inf)
        self._closed = True
        return results

    def _held_and(self, results: list[Result]) -> list[Result]:
        """All results that were not handed out yet; they wait while there are windows to be named in an error."""
        self._held += results
        if self._failures:
            first, others = self._failures[0], len(self._failures) - 1
            self._failures.clear()
            if others:
                first.add_note(f"{others} more windows failed")
            raise first
        results, self._held = self._held, []
        return results

    def late(self) -> list[tuple[int, Mapping[str, Any], Key]]:
        """The rows that arrived after the last of their windows was closed, since the last call.

        Returns
        -------
        list of tuples
            ``(time, row, key)`` of each.
        """
        late, self._late = self._late, []
        return [(row.time, given_columns(row.values), row.key) for row in late]

    # -- one advance

    def _advance(self, watermark: float) -> list[Result]:
        before, epoch = self._watermark, self._epoch
        errors = self._refused or self._refusals(epoch, before - self._lateness)
        self._refused = []
        if errors:
            if len(errors) > 1:
                errors[0].add_note(f"{len(errors) - 1} more records were left out")
            raise errors[0]
        self._watermark, self._epoch = watermark, []
        self._keep(epoch, before)
        counted = self._judge(epoch, before)
        self._late += [row for row in epoch if self._has_window(row) and row not in counted]
        results = [
            result
            for i, query in enumerate(self._queries)
            for key in self._rows
            for result in self._report(i, query, key, before, set(epoch))
        ]
        return self._held_and(sorted(results, key=lambda r: ("retract", "update", "insert").index(r.change)))

    def _refusals(self, epoch: list[Row], horizon: float) -> list[RefusedRowError]:
        """Look at rows until no query refuses one any more; what a user's window fails on, all windows on rows do."""
        errors: list[RefusedRowError] = []
        again = True
        while again:
            again = False
            for context in self._contexts.values():
                errors += context.judge([row for row in epoch if sees(context.query, row)], horizon)
                if errors and errors[-1].out_of == ON_ROWS and not context.is_judged:
                    for other in self._contexts.values():
                        other.leave_out(errors[-1].row)
                    again = True
                    break
        return errors

    def _keep(self, epoch: list[Row], before: float) -> None:
        for row in epoch:
            row.judged_at = before
            self._rows.setdefault(row.key, []).append(row)
        for rows in self._rows.values():
            rows.sort(key=lambda row: row.place)

    def _has_window(self, row: Row) -> bool:
        return any(self._would_hold(i, query, row) for i, query in enumerate(self._queries))

    def _would_hold(self, i: int, query: Any, row: Row) -> bool:
        if not sees(query, row):
            return False
        if i in self._contexts:
            return self._contexts[i].has_window(row)
        return query.window.kind == "session" or bool(self._windows_of(query, row))

    def _windows_of(self, query: Any, row: Row) -> list[Window]:
        # Without key columns the key is whatever was given with the row.
        key = dict(zip(self._keys, row.key, strict=True)) if self._keys else {}
        return windows_of(query.window, row.time, key)

    def _judge(self, epoch: list[Row], before: float) -> set[Row]:
        """Register the windows that the epoch's rows open; returns the rows that count in a window of some query."""
        counted: set[Row] = set()
        data = [row for row in epoch if not row.punctuation]
        for i, query in enumerate(self._queries):
            if i in self._contexts:
                counted |= self._contexts[i].take()
                continue
            if query.window.kind == "session":
                counted |= self._judge_sessions(i, query, data, before)
                continue
            for row in data:
                windows = self._windows_of(query, row)
                if is_endless(query.window) and windows:
                    counted.add(row)  # a tick without end is still to come, whatever the watermark
                for window in windows:
                    if not self._is_closed(query, window, before):
                        counted.add(row)
                        self._of(i, row.key).revisions.setdefault(window)
        return counted

    def _judge_sessions(self, i: int, query: Any, epoch: list[Row], before: float) -> set[Row]:
        """The rows that count. Late rows that no open session takes in form closed sessions and do not count."""
        counted: set[Row] = set()
        for key in dict.fromkeys(row.key for row in epoch):
            answers = self._of(i, key)
            new = {row for row in epoch if row.key == key}
            alive: list[Row] = []
            for window, rows in sessions_of([*answers.alive, *new], query.window.gap.size):
                if self._is_closed(query, window, before):
                    assert new.issuperset(rows), "a closed session holds rows that were alive"
                else:
                    alive += rows
                    counted |= new.intersection(rows)
            answers.alive = alive
        return counted

    def _report(self, i: int, query: Any, key: Key, before: float, new: set[Row]) -> Iterator[Result]:
        if i in self._contexts:
            yield from self._contexts[i].report(key, self._watermark, before - self._lateness)
            return
        answers = self._of(i, key)
        if query.window.kind == "session":
            yield from self._report_sessions(query, key, answers, new)
            return
        for window, revision in sorted(answers.revisions.items(), key=lambda item: item[0]):
            if self._is_closed(query, window, before) or not self._is_ready(query, window, self._watermark):
                continue
            rows = self._rows_in(query, key, window)
            if revision is None or not new.isdisjoint(rows):
                yield self._next_revision(query, key, window, answers, rows)
        if query.empty:
            ended = [window for window in answers.revisions if self._is_ready(query, window, self._watermark)]
            held = [window for window in ended if self._rows_in(query, key, window)]
            for window in windows_between(query.window, held):
                if window not in answers.revisions:
                    yield self._next_revision(query, key, window, answers, [])

    def _report_sessions(self, query: Any, key: Key, answers: _Answers, new: set[Row]) -> Iterator[Result]:
        sessions = dict(sessions_of(answers.alive, query.window.gap.size))
        for window in sorted(answers.revisions.keys() - sessions.keys()):
            revision = answers.revisions.pop(window)
            assert revision is not None
            nothing = dict.fromkeys(query.aggregates)
            yield Result(key, query.name, *window, "retract", revision + 1, nothing)
        for window, rows in sessions.items():
            untouched = window in answers.revisions and new.isdisjoint(rows)
            if self._is_ready(query, window, self._watermark) and not untouched:
                yield self._next_revision(query, key, window, answers, rows)
        for window, rows in sessions.items():
            if self._is_closed(query, window, self._watermark):
                answers.revisions.pop(window)
                gone = set(rows)
                answers.alive = [row for row in answers.alive if row not in gone]

    def _next_revision(self, query: Any, key: Key, window: Window, answers: _Answers, rows: list[Row]) -> Result:
        previous = answers.revisions.get(window)
        revision = 0 if previous is None else previous + 1
        answers.revisions[window] = revision
        change = "insert" if previous is None else "update"
        label = f"key {key}, window {window}"
        end = None if query.window.kind == "session" else window[1]
        values = results_of(query, rows, self._by_value, label, self._failures, end, self._second)
        return Result(key, query.name, *window, change, revision, values)

    def _rows_in(self, query: Any, key: Key, window: Window) -> list[Row]:
        """The rows between start and end that arrived while the window was open."""
        rows = self._rows[key]
        low, high = (bisect_left(rows, bound, key=lambda row: row.time) for bound in window)
        data = [row for row in rows[low:high] if not row.punctuation]
        return [row for row in data if not self._is_closed(query, window, row.judged_at)]

    def _of(self, i: int, key: Key) -> _Answers:
        return self._answers.setdefault((i, key), _Answers())

    # -- ready and closed

    def _is_ready(self, query: Any, window: Window, watermark: float) -> bool:
        # A row exactly one gap after the last one still joins a session, so a session waits for that instant to pass.
        return window[1] < watermark if query.window.kind == "session" else window[1] <= watermark

    def _is_closed(self, query: Any, window: Window, watermark: float | None) -> bool:
        assert watermark is not None
        return self._is_ready(query, window, watermark - self._lateness)
