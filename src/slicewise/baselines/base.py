"""The contract of all baselines: a workload, rows and watermarks in, results out, as from an operator.

A :class:`Baseline` reads rows, keeps the watermark, finds the windows that are due and makes results. What is kept of
the rows of a key, and how a window is answered from it, is a :class:`~slicewise.baselines.technique.Technique`, one
file each.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from slicewise.baselines.checks import check_workload
from slicewise.baselines.technique import EMPTY, Context, Held, Technique
from slicewise.baselines.windowing import Sessions
from slicewise.errors import DataError, QueryError
from slicewise.results import Result
from slicewise.slicing.intake.input import read_batch
from slicewise.slicing.intake.watermarks import check_not_back, to_watermark
from slicewise.swag.base import FactCard
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["Baseline"]


@dataclass
class _Key:
    """The state of one key: its technique, sessions, and the windows that were reported or changed."""

    technique: Technique
    sessions: dict[int, Sessions]
    first: int = INFINITY
    last: int = -INFINITY
    touched: set[tuple[int, int, int]] = field(default_factory=set)
    revisions: dict[tuple[int, int, int], int] = field(default_factory=dict)


class Baseline(ABC):
    """A workload run by one technique, row by row or batch by batch.

    Parameters
    ----------
    workload
        Tumbling and sliding windows on event time, those of a table without keys, and sessions, where the technique has
        them; aggregates of columns, without conditions, categories and expressions.
    ordered
        Rows come in event-time order, and each is its own watermark.
    counting
        Whether to count combines: ``counts`` has those for rows that come in (``update``) and for answers (``merge``).

    Attributes
    ----------
    facts
        The :class:`~slicewise.swag.FactCard` of the technique.
    in_order
        Whether it takes rows in event-time order only.

    Examples
    --------
    >>> import slicewise as sw
    >>> from slicewise.baselines import TupleBuffer
    >>> workload = sw.Workload(time="t").query("q", sw.sliding(10, every=5), total=sw.sum("v"))
    >>> op = TupleBuffer(workload)
    >>> _ = op.process_batch({"t": [1, 7, 3], "v": [1, 4, 2]})
    >>> [(r.start, r.end, r.values) for r in op.advance(10)]
    [(-5, 5, {'total': 3}), (0, 10, {'total': 7})]
    >>> _ = op.process(12, {"v": 5})
    >>> op.held()
    Held(tuples=2, partials=0, nodes=0)
    >>> [(r.start, r.end, r.values) for r in op.close()]
    [(5, 15, {'total': 9}), (10, 20, {'total': 5})]
    """

    facts: ClassVar[FactCard]
    in_order: ClassVar[bool] = False
    #: Whether sessions can be asked for.
    takes_sessions: ClassVar[bool] = True

    def __init__(self, workload: Workload, *, ordered: bool = False, counting: bool = False) -> None:
        check_workload(type(self).__name__, workload)
        self._check_applies(workload, ordered)
        self.workload, self.ordered = workload, ordered
        self._context = Context(workload, ordered=ordered, counting=counting)
        self._lateness = 0 if ordered else workload.lateness
        self._watermark = -INFINITY
        self._next_end = -INFINITY
        self._closed = False
        self._keys: dict[tuple[Any, ...], _Key] = {}
        #: The most that was held after a call, by :attr:`Held.total`.
        self.peak = Held()

    def _check_applies(self, workload: Workload, ordered: bool) -> None:
        name = type(self).__name__
        if self.in_order and not ordered:
            raise QueryError(
                f"`{name}` takes rows in event-time order only; got ordered=False: use ordered=True, or LazySlicing "
                "for rows out of order",
                parameter="ordered",
            )
        for query in workload.queries:
            if query.window.session_gap is not None and not self.takes_sessions:
                raise QueryError(
                    f"`{name}` knows windows that lie on a grid; got {query.window!r} in query {query.name!r}: use "
                    "CuttyEager or LazySlicing for sessions",
                    query=query.name,
                )

    @abstractmethod
    def _technique(self, context: Context) -> Technique:
        """What is kept of a key."""

    # -- rows in

    def process(self, time: int, row: Mapping[str, Any], key: Any = None) -> list[Result]:
        """Take one row.

        Parameters
        ----------
        time
            Its event time.
        row
            The columns that the workload reads.
        key
            The key, or a tuple for several key columns; left out, it is read from the row.

        Returns
        -------
        list of Result
            What the row let be reported, with ``ordered=True``; otherwise nothing.
        """
        self._check_open()
        if key is None:
            key = tuple(row[name] for name in self.workload.keys)
        elif not isinstance(key, tuple):
            key = (key,)
        partials = self._context.lifted({name: (row[name],) for name in self._context.whole.columns}, 1)
        return self._take({key: ([time], partials)}, time)

    def process_batch(self, columns: Any) -> list[Result]:
        """Take a batch of rows.

        Parameters
        ----------
        columns
            Rows as :meth:`slicewise.Operator.process_batch` takes them.

        Returns
        -------
        list of Result
            What the rows let be reported, with ``ordered=True``; otherwise nothing.
        """
        self._check_open()
        batch = read_batch(columns, self.workload, {})
        if not len(batch):
            return []
        values = {name: batch.columns[name].to_pylist() for name in self._context.whole.columns}
        partials = self._context.lifted(values, len(batch))
        times = batch.times.tolist()
        order = range(len(times)) if self.ordered else np.argsort(batch.times, kind="stable").tolist()
        groups: dict[tuple[Any, ...], tuple[list[int], list[Any]]] = {}
        if not batch.keys:
            groups[()] = (
                (times, partials) if self.ordered else ([times[i] for i in order], [partials[i] for i in order])
            )
        else:
            keys = list(zip(*(key.to_pylist() for key in batch.keys), strict=True))
            for i in order:
                group = groups.setdefault(keys[i], ([], []))
                group[0].append(times[i])
                group[1].append(partials[i])
        return self._take(groups, int(batch.times.max()))

    def _take(self, groups: Mapping[tuple[Any, ...], tuple[list[int], list[Any]]], latest: int) -> list[Result]:
        if not self.ordered:
            for key, (times, partials) in groups.items():
                self._insert(self._key(key), times, partials)
            return []
        for times, _ in groups.values():
            self._check_order(times)
        return self._advance(latest, groups)

    def _check_order(self, times: list[int]) -> None:
        before = self._watermark
        for time in times:
            if time < before:
                raise DataError(
                    f"rows must come in event-time order; got {time} after {before}; leave `ordered` out, or sort them"
                )
            before = time

    def _key(self, key: tuple[Any, ...]) -> _Key:
        state = self._keys.get(key)
        if state is None:
            sessions = {query: Sessions(gap) for query, gap in self._context.gaps.items()}
            state = self._keys[key] = _Key(self._technique(self._context), sessions)
        return state

    def _insert(self, key: _Key, times: list[int], partials: list[Any]) -> None:
        """Rows in the order of their times, any of which may be behind the watermark."""
        if times[0] < self._watermark:
            times, partials = self._without_late(key, times, partials)
        if not times:
            return
        key.first, key.last = min(key.first, times[0]), max(key.last, times[-1])
        for sessions in key.sessions.values():
            sessions.add(times)
        self._context.phase = "update"
        key.technique.insert(times, partials)

    def _without_late(self, key: _Key, times: list[int], partials: list[Any]) -> tuple[list[int], list[Any]]:
        """The rows that are in a window which is not closed; those that were reported are to be reported again."""
        if key.sessions:
            raise DataError(
                f"the row of time {times[0]} is behind the watermark {self._watermark}; a baseline keeps sessions of "
                "rows that are out of order, not late: give watermarks that lag further"
            )
        horizon = self._watermark - self._lateness
        needed = self._context.windows.needed_from(horizon)
        kept = [i for i, time in enumerate(times) if time >= needed]
        for i in kept:
            if times[i] < self._watermark:
                key.touched.update(self._context.windows.holding(times[i], horizon, self._watermark))
        return [times[i] for i in kept], [partials[i] for i in kept]

    # -- results out

    def advance(self, watermark: Any) -> list[Result]:
        """Move the watermark, and report what ended and what late rows changed.

        Parameters
        ----------
        watermark
            The event time up to which no further row is waited for; never less than before.

        Returns
        -------
        list of Result
            Updates, then the windows that are reported for the first time, as from an operator.
        """
        self._check_open()
        at = to_watermark(watermark, self.workload, None)
        check_not_back(self._watermark, at)
        return self._advance(at, {})

    def close(self) -> list[Result]:
        """End the stream: every window that holds rows is reported.

        Returns
        -------
        list of Result
            What was not reported yet.
        """
        self._check_open()
        results = self._advance(INFINITY, {})
        self._closed = True
        return results

    def held(self) -> Held:
        """What is kept of all keys.

        Returns
        -------
        Held
            Tuples, partials and inner nodes.
        """
        return sum((key.technique.held() for key in self._keys.values()), Held())

    @property
    def counts(self) -> dict[str, int]:
        """The combines so far, if they are counted: ``update`` for rows that came, ``merge`` for answers."""
        return dict(self._context.counts)

    def _check_open(self) -> None:
        if self._closed:
            raise DataError(f"this {type(self).__name__} is closed; make a new one for another stream")

    def _advance(self, watermark: int, groups: Mapping[tuple[Any, ...], tuple[list[int], list[Any]]]) -> list[Result]:
        """Move the watermark; with rows in order, which come in before it does."""
        if watermark < self._next_end and not self._context.gaps and not any(k.touched for k in self._keys.values()):
            # Nothing ends: the one comparison that most rows cost.
            for name, (times, partials) in groups.items():
                self._insert(self._key(name), times, partials)
            self._watermark = watermark
            return []
        for name in groups:
            self._key(name)
        results: list[Result] = []
        for name, key in self._keys.items():
            results += self._step(name, key, watermark, *groups.get(name, ([], [])))
        self._watermark = watermark
        self._next_end = self._context.windows.next_end(watermark) if watermark < INFINITY else INFINITY
        self._evict()
        return sorted(results, key=lambda result: ("update", "insert").index(result.change))

    def _step(
        self, name: tuple[Any, ...], key: _Key, watermark: int, times: list[int], partials: list[Any]
    ) -> Iterable[Result]:
        if not self.in_order:
            if times:
                self._insert(key, times, partials)
            for window in self._due(key, watermark):
                yield from self._report(name, key, *window)
            return
        # What ends before a row is answered before it comes in.
        at = 0
        for place, window in self._due_in_order(key, times, watermark):
            if place > at:
                self._insert(key, times[at:place], partials[at:place])
                at = place
            yield from self._report(name, key, *window)
        if at < len(times):
            self._insert(key, times[at:], partials[at:])

    def _due(self, key: _Key, watermark: int) -> list[tuple[int, int, int, int]]:
        """The windows to answer, as (query, start, behind, end): rows are before ``behind``, results say ``end``."""
        due = self._context.windows.ended(self._watermark, watermark, key.first, key.last)
        fresh = sorted(zip(due.end.tolist(), due.query.tolist(), due.start.tolist(), strict=True))
        touched, key.touched = sorted(key.touched), set()
        windows = [(q, s, e, e) for q, s, e in touched] + [(q, s, e, e) for e, q, s in fresh]
        for query, sessions in key.sessions.items():
            windows += [(query, first, last + 1, last + sessions.gap) for first, last in sessions.ended(watermark)]
        return windows

    def _due_in_order(self, key: _Key, times: list[int], watermark: int) -> list[tuple[int, tuple[int, int, int, int]]]:
        """The same with the place of the first row behind each window, in order of those places."""
        first, last = (
            min(key.first, *times[:1]) if times else key.first,
            max(key.last, times[-1]) if times else key.last,
        )
        due = self._context.windows.ended(self._watermark, watermark, first, last)
        places = np.searchsorted(np.array(times, np.int64), due.end) if times else np.zeros(len(due.end), np.int64)
        columns = (places, due.end, due.query, due.start)
        windows = [(place, (q, s, e, e)) for place, e, q, s in zip(*(c.tolist() for c in columns), strict=True)]
        for query, sessions in key.sessions.items():
            trial = Sessions(sessions.gap)
            trial.open = [list(run) for run in sessions.open]
            if times:
                trial.add(times)
            behind = [run[0] for run in trial.open[1:]]
            over = trial.ended(watermark)
            starts = np.searchsorted(np.array(times, np.int64), behind[: len(over)]).tolist()
            starts += [len(times)] * (len(over) - len(starts))
            windows += [
                (place, (query, begin, end + 1, end + sessions.gap))
                for place, (begin, end) in zip(starts, over, strict=True)
            ]
        return sorted(windows)

    def _report(
        self, name: tuple[Any, ...], key: _Key, query: int, start: int, behind: int, end: int
    ) -> Iterable[Result]:
        self._context.phase = "merge"
        partial = key.technique.answer(query, start, behind)
        if query in key.sessions and self.in_order:
            key.sessions[query].ended(end + 1)
        if partial is EMPTY:
            return
        revision = 0
        if self._lateness:
            revision = key.revisions.get((query, start, end), -1) + 1
            key.revisions[query, start, end] = revision
        change = "update" if revision else "insert"
        values = self._context.lowered(query, partial)
        yield Result(name, self.workload.queries[query].name, start, end, change, revision, values)

    def _evict(self) -> None:
        horizon = self._watermark - self._lateness
        if self._watermark >= INFINITY:
            return
        needed = self._context.windows.needed_from(horizon)
        held = Held()
        for key in self._keys.values():
            oldest = min((sessions.open[0][0] for sessions in key.sessions.values() if sessions.open), default=needed)
            held += key.technique.held()
            key.technique.evict(min(needed, oldest), horizon)
            key.first = max(key.first, min(needed, oldest))
            key.revisions = {window: n for window, n in key.revisions.items() if window[2] > horizon}
        if held.total > self.peak.total:
            self.peak = held
