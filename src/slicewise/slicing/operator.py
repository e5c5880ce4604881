"""The operator: a workload running in this process. Rows and watermarks in, results out.

The public face of the core. It reads rows (:mod:`slicewise.slicing.intake.input`), collects those that come one at a
time, raises what is wrong with rows and windows, and hands out results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.errors import DataError, QueryError
from slicewise.plan.panels import Form
from slicewise.plan.plan import ARRIVAL, Plan, check_runnable
from slicewise.results import Results
from slicewise.slicing.core import Core
from slicewise.slicing.feed import Feed
from slicewise.slicing.intake.ahead import AheadLimit
from slicewise.slicing.intake.held_rows import LateRow
from slicewise.slicing.intake.input import read_batch, watermark_limit
from slicewise.slicing.intake.watermarks import check_not_back, divided, to_watermark, watermark_in
from slicewise.slicing.state.snapshots import OperatorState
from slicewise.slicing.stats import Stats, slices_table
from slicewise.times import INFINITY, largest_time
from slicewise.windows import Window
from slicewise.workload import Workload
from slicewise.workload.processing import check_on_clock

__all__ = ["LateRow", "Operator", "Stats"]


class Operator:
    """A workload in this process.

    Made by :meth:`slicewise.Workload.operator`. Nothing fires until :meth:`advance`, unless the operator was made with
    ``ordered=True``: then every row is its own watermark.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = sw.Workload(time="t", lateness=100).query("q", sw.tumbling(10), n=sw.count()).operator()
    >>> _ = op.process_batch({"t": [1, 4, 12]})
    >>> [(r.start, r.end, r.change, r.values) for r in op.advance(11)]
    [(0, 10, 'insert', {'n': 2})]
    >>> _ = op.process(7, {})
    >>> [(r.start, r.end, r.change, r.values) for r in op.advance(11)]
    [(0, 10, 'update', {'n': 3})]
    """

    def __init__(
        self,
        workload: Workload,
        *,
        ordered: bool = False,
        store: str | None = None,
        types: Mapping[str, Any] | None = None,
        max_slice: int | str | None = None,
        ties: str = ARRIVAL,
        ahead: Any = None,
        clock: Callable[[], int] | None = None,
        form: Form | None = None,
    ) -> None:
        if ahead is None and clock is not None:
            raise QueryError(
                "`clock` is what `ahead` is measured by; got no `ahead`; give both, or leave it out", parameter="clock"
            )
        check_on_clock(workload.time, {"ordered": ordered})
        self._clock = workload.on_clock
        self._core = Core(
            workload,
            ordered=ordered or self._clock is not None,
            store=store,
            types=types,
            max_slice=max_slice,
            ties=ties,
            judges_gaps=ahead is None,
            form=form,
        )
        clock = clock or (None if self._clock is None else self._clock.clock)
        self._ahead = None if ahead is None else AheadLimit(workload, ahead, clock)
        self._feed = Feed(self._core, self._ahead)
        if self._clock is not None:
            self.process = self._process_now  # type: ignore[method-assign]
        elif workload.watermark_from is not None:
            self.process = self._process_or_advance  # type: ignore[method-assign]
        else:
            # The buffer's own function, so that a row costs a single call.
            self.process = self._feed.process  # type: ignore[method-assign]
            self.process.__doc__ = type(self).process.__doc__

    @property
    def workload(self) -> Workload:
        """The workload that it runs, with the queries that were added since."""
        return self._core.workload

    @property
    def ordered(self) -> bool:
        """Whether rows must come in event-time order."""
        return self._core.ordered

    @property
    def plan(self) -> Plan | None:
        """What was decided about the workload; None before the first row."""
        return None if self._core.engine is None else self._core.engine.plan

    # Rows in

    def process(self, time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
        """Take one row.

        Parameters
        ----------
        time : int or datetime
            Its event time; None on processing time.
        row : mapping of str to value
            The columns that the workload reads.
        key : value or tuple, optional
            The key, or a tuple for several key columns; left out, it is read from the row.

        Returns
        -------
        Results
            What the row let be reported, with ``ordered=True``; otherwise nothing.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(10), s=sw.sum("v")).operator(ordered=True)
        >>> len(op.process(3, {"k": "a", "v": 1}))
        0
        >>> [(r.key, r.start, r.end, r.values) for r in op.process(12, {"v": 5}, key="b")]
        [(('a',), 0, 10, {'s': 1})]

        Notes
        -----
        Rows are buffered, and cut into slices by the thousands; a row costs an append and a comparison with the next
        edge. A row that cannot be read is refused when it comes or, at the latest, when the buffer is emptied; the
        error says which row it was, and the others stay.
        """
        return self._feed.process(time, row, key)

    def process_batch(self, columns: Any) -> Results:
        """Take a batch of rows.

        Parameters
        ----------
        columns : mapping of arrays, Arrow table or record batch, or pandas DataFrame
            The time column, the key columns and those that the workload reads; others are given back with late rows.
            On processing time there is no time column, and the clock is read once for all rows.

        Returns
        -------
        Results
            What the rows let be reported, with ``ordered=True``; otherwise nothing.

        Raises
        ------
        DataError
            The batch cannot be read; none of its rows is taken.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), s=sw.sum("v")).operator()
        >>> _ = op.process_batch({"t": [2, 9, 14], "v": [1, 2, 4]})
        >>> [(r.start, r.end, r.values) for r in op.advance(15)]
        [(0, 10, {'s': 3})]
        """
        self._feed.check_open()
        workload = self._core.workload
        name = workload.watermark_from
        if name is None:
            now = None if self._clock is None else self._now()
            return self._feed.take(read_batch(columns, workload, self._core.types, now=now))
        columns, given = divided(columns, name)
        marks = [(place, to_watermark(at, self.workload, self._core.time_type)) for place, at in given]
        batch = read_batch(columns, self.workload, self._core.types)
        for before, at in zip(self._feed.watermarks_before(batch, marks), marks, strict=True):
            check_not_back(before, at[1])
        return self._feed.take(batch, marks)

    def drive(self, batches: Iterable[Any]) -> Iterator[Results]:
        """Take batches, and move the watermark behind each of them.

        The watermark is the latest event time seen less the workload's ``watermark``; with ``watermark_from`` it is the
        one that came last among the rows. At the end the operator is closed.

        Parameters
        ----------
        batches : iterable
            Batches of rows, as :meth:`process_batch` takes them.

        Yields
        ------
        Results
            The results after each batch, then those of :meth:`close`.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t", watermark=2).query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> [[(r.start, r.values["n"]) for r in results] for results in op.drive([{"t": [1, 11]}, {"t": [8, 13]}])]
        [[], [(0, 2)], [(10, 2)]]
        """
        for batch in batches:
            results = self.process_batch(batch)
            engine = self._core.engine
            if engine is not None and not self.ordered and self.workload.watermark_from is None:
                watermark = max(self._core.watermark, engine.latest - self.workload.watermark)
                # A watermark delay larger than the range of time reports everything at the end.
                if watermark > -watermark_limit(self.workload.unit):
                    results = results + self.advance(watermark)
            yield results
        yield self.close()

    # Results out

    def advance(self, watermark: Any = None) -> Results:
        """Move the watermark, and report what ended and what late rows changed.

        Parameters
        ----------
        watermark : int or datetime, optional
            The event time up to which no further row is waited for; never less than before. On processing time it is
            left out, and read off the clock.

        Returns
        -------
        Results
            Windows that end at or before the watermark, and corrections of those that were reported.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t", lateness=20).query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [1, 4, 12]})
        >>> [(r.start, r.change, r.values["n"]) for r in op.advance(20)]
        [(0, 'insert', 2), (10, 'insert', 1)]
        >>> _ = op.process(15, {})
        >>> [(r.start, r.change, r.values["n"]) for r in op.advance(25)]
        [(10, 'update', 2)]
        """
        self._check_open()
        if self._clock is not None:
            if watermark is not None:
                raise DataError(f"on processing time the clock moves the watermark; got {watermark!r}; leave it out")
            return self._feed.advance(self._now())
        at = to_watermark(watermark, self.workload, self._core.time_type)
        check_not_back(self._core.watermark, at)
        return self._feed.advance(at)

    def close(self) -> Results:
        """End the stream: every window that holds rows is reported, and no row is taken any more.

        Returns
        -------
        Results
            What was not reported yet.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.session(5), n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [1, 4, 12]})
        >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
        [(1, 9, 2), (12, 17, 1)]
        """
        self._check_open()
        return self._feed.close()

    def late(self) -> list[LateRow]:
        """The rows that came when all their windows were closed, since this was last asked.

        Returns
        -------
        list of LateRow
            Event time, key and the row as it came.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> _ = op.advance(20)
        >>> _ = op.process_batch({"t": [7, 23], "from": ["a", "b"]})
        >>> op.late()
        [LateRow(time=7, key=(), row={'t': 7, 'from': 'a'})]
        >>> op.late()
        []
        """
        self._feed.flush()
        return list(self._core.late_rows())

    def stats(self) -> Stats:
        """What the operator holds and has done, in numbers.

        Returns
        -------
        Stats
            Keys, slices, stored rows and bytes that it holds; rows, results and late rows so far; the watermark.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [1, 4, 12]})
        >>> stats = op.stats()
        >>> stats.slices, stats.tuples, stats.rows, stats.watermark
        (2, 0, 3, None)
        """
        self._feed.flush()
        core = self._core
        watermark = None if abs(core.watermark) >= INFINITY else core.watermark
        if core.engine is None:
            return Stats(watermark=watermark)
        held = core.engine.held()
        return Stats.of(held, core.engine.plan, core.counters, watermark)

    def slices(self) -> pa.Table:
        """The time slices as they stand.

        Returns
        -------
        pyarrow.Table
            The key columns; ``start`` and ``end``, the edges around the slice, null where there is none; ``first`` and
            ``last``, the event times of its first and last row; ``rows``, how many it has.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.sliding(10, every=5), n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [1, 4, 12]})
        >>> op.slices().to_pylist()[0]
        {'start': 0, 'end': 5, 'first': 1, 'last': 4, 'rows': 2}
        """
        self._feed.flush()
        engine = self._core.engine
        return pa.table({}) if engine is None else slices_table(engine, self._core.keys)

    # Queries that come and go

    def add_query(
        self, name: str, window: Window, /, *, empty: bool | Aggregate = False, **aggregates: Aggregate
    ) -> int | None:
        """Add a query to the running operator.

        Parameters
        ----------
        name : str
            The query's name.
        window : Window
            Where windows begin and end.
        empty : bool
            Whether windows without rows are reported too, between windows with rows that the query has reported.
        **aggregates : Aggregate
            What is computed over each window, by result column; only of columns whose types are known.

        Returns
        -------
        int or None
            The event time from which its results are complete: it reports the windows that start at or after it and
            end after the present watermark. None when nothing was seen yet, so that it misses nothing.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [1, 7, 12]})
        >>> op.add_query("long", sw.tumbling(20), n=sw.count())  # a run of slices that are there
        >>> op.add_query("short", sw.tumbling(5), n=sw.count())  # 1 and 7 are in one slice, and cannot be told apart
        8
        >>> [(r.query, r.start, r.values["n"]) for r in op.close()]
        [('q', 0, 2), ('q', 10, 1), ('long', 0, 3), ('short', 10, 1)]
        """
        self._check_open()
        workload = self.workload.query(name, window, empty=empty, **aggregates)
        check_runnable(workload)
        self._adapt(workload)
        engine = self._core.engine
        since = None if engine is None else engine.reports_from.get(name)
        return since if since is not None and since > -INFINITY else None

    def remove_query(self, name: str) -> None:
        """Remove a query from the running operator, with what only it needed.

        Parameters
        ----------
        name : str
            The query to remove; not the only one.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> op.add_query("every_row", sw.tumbling(1), n=sw.count())
        >>> op.remove_query("every_row")
        >>> [query.name for query in op.workload.queries]
        ['q']
        """
        self._check_open()
        if len(self.workload.queries) == 1:
            self.workload.named(name)
            raise QueryError(f"{name!r} is the only query; close the operator instead of removing it")
        self._adapt(self.workload.without(name))

    # State as data

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data, for :meth:`restore`.

        Returns
        -------
        dict
            NumPy arrays, numbers, text and bytes, with the number of the format and what the workload is.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [1, 4, 12]})
        >>> sorted(op.snapshot())
        ['bound', 'costs', 'counters', 'fingerprint', 'format', 'held', 'watermark', 'workload']
        """
        self._check_open()
        self._feed.flush()
        return replace(self._core.saved(), held=self._feed.held).to_data()

    def restore(self, snapshot: Mapping[str, Any]) -> Operator:
        """Continue from a snapshot of this workload; queries may have been added or removed since.

        Parameters
        ----------
        snapshot : mapping
            What :meth:`snapshot` gave, in this process or another one.

        Returns
        -------
        Operator
            This operator.

        Raises
        ------
        StateError
            The snapshot is of another workload or another format; the operator is left as it was.

        Examples
        --------
        >>> import slicewise as sw
        >>> workload = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count())
        >>> op = workload.operator()
        >>> _ = op.process_batch({"t": [1, 4, 12]})
        >>> [(r.start, r.values["n"]) for r in workload.operator().restore(op.snapshot()).close()]
        [(0, 2), (10, 1)]
        """
        self._check_open()
        state = OperatorState.from_data(snapshot)
        self._core.restore(state)
        self._feed.restore(state.held)
        return self

    # Inside

    def _check_open(self) -> None:
        self._feed.check_open()

    def _process_now(self, time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
        """Take one row, which comes now."""
        if time is not None:
            raise DataError(f"on processing time the clock gives rows their time; got {time!r}; give None")
        return self._feed.process(self._now(), row, key)

    def _now(self) -> int:
        """The clock's time; one that goes back stands still."""
        assert self._clock is not None
        now = self._clock.now()
        if abs(now) > largest_time(None):
            raise DataError(f"`clock` must give microseconds since the epoch; got {now}, which is out of range")
        return max(now, self._core.watermark, self._feed.newest)

    def _process_or_advance(self, time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
        """Take one row, of data or a watermark."""
        assert self.workload.watermark_from is not None
        watermark = watermark_in(row, self.workload.watermark_from)
        return self._feed.process(time, row, key) if watermark is None else self.advance(watermark)

    def _adapt(self, workload: Workload) -> None:
        """Run another workload from here on: the same one with queries added or removed."""
        self._feed.flush()
        self._core.adapt(workload)
        self._feed.follow(workload)
