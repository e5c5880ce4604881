"""The operator: a workload running in this process. Rows and watermarks in, results out.

The public face of the engine. It reads rows (:mod:`slicewise.slicing.input`), numbers keys, hands both to the engine,
and keeps what the engine has no use for: late rows, counters, the buffer of rows that came one at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, to_instant
from slicewise.columns import Column
from slicewise.errors import DataError, QueryError, RefusedRowsError
from slicewise.plan.plan import ARRIVAL, Plan, check_max_slice, check_runnable, check_store, plan_for
from slicewise.results import Results
from slicewise.slicing.adapting import StateLayout, adapted_state
from slicewise.slicing.engine import Engine
from slicewise.slicing.held_rows import HeldRows, LateRow
from slicewise.slicing.input import Batch, check_time, conform, parse_types, read_batch, watermark_limit
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.outbox import Outbox
from slicewise.slicing.restoring import continue_from
from slicewise.slicing.row_buffer import RowBuffer
from slicewise.slicing.snapshots import BoundState, Counters, OperatorState, counting, describe, retire
from slicewise.slicing.stats import Stats
from slicewise.slicing.time.window_manager import Sessions
from slicewise.slicing.user_code import row_label, show_rows, take_window_failure
from slicewise.times import INFINITY
from slicewise.windows import Window
from slicewise.workload import Workload

__all__ = ["LateRow", "Operator", "Stats"]

NOTHING = Results()


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
        max_slice: int | None = None,
        ties: str = ARRIVAL,
    ) -> None:
        check_store(store)
        check_max_slice(max_slice)
        check_runnable(workload)
        self.workload = workload
        self.ordered = ordered
        self.store = store
        self.max_slice = max_slice
        self.ties = ties
        self._types = parse_types(types)
        self._time_type: pa.DataType | None = None
        self._engine: Engine | None = None
        self._waiting: list[HeldRows] = []
        self._late: list[HeldRows] = []
        self._closed = False
        self._buffer = RowBuffer(workload, ordered, self._emptied, self._next_due)
        # The buffer's own function, so that a row costs a single call.
        self.process = self._buffer.process  # type: ignore[method-assign]
        self._forget_everything()

    # Rows in

    def process(self, time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
        """Take one row.

        Parameters
        ----------
        time : int or datetime
            Its event time.
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
        raise AssertionError("bound to the row buffer when the operator is made")

    def process_batch(self, columns: Any) -> Results:
        """Take a batch of rows.

        Parameters
        ----------
        columns : mapping of arrays, Arrow table or record batch, or pandas DataFrame
            The time column, the key columns and those that the workload reads; others are given back with late rows.

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
        self._check_open()
        batch = read_batch(columns, self.workload, self._types)
        self._flush()
        if len(batch):
            self._take(batch)
        return self._outbox.released()

    def drive(self, batches: Iterable[Any]) -> Iterator[Results]:
        """Take batches, and move the watermark behind each of them.

        The watermark is the latest event time seen less the workload's ``watermark``. At the end the operator is
        closed.

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
            engine = self._engine
            if engine is not None and not self.ordered:
                watermark = max(self._watermark, engine.latest - self.workload.watermark)
                # A watermark delay larger than the range of time reports everything at the end.
                if watermark > -watermark_limit(self.workload.unit):
                    results = results + self.advance(watermark)
            yield results
        yield self.close()

    # Results out

    def advance(self, watermark: Any) -> Results:
        """Move the watermark, and report what ended and what late rows changed.

        Parameters
        ----------
        watermark : int or datetime
            The event time up to which no further row is waited for; never less than before.

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
        at = self._instant(watermark)
        if at < self._watermark:
            raise DataError(
                f"the watermark must not go back; it stands at {self._watermark} and was given as {at}; keep the larger"
            )
        self._flush_all()
        self._step(at)
        return self._outbox.released()

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
        self._flush_all()
        self._step(INFINITY)
        results = self._outbox.released()
        self._closed = True
        self._buffer.look_closer()
        return results

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
        self._flush_all()
        late = [row for held in self._late for row in held.as_late(self._keys)]
        self._late = []
        return late

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
        self._flush_all()
        watermark = None if abs(self._watermark) >= INFINITY else self._watermark
        if self._engine is None:
            return Stats(0, 0, 0, 0, 0, 0, 0, watermark)
        return Stats.of(self._engine.settled(), self._counters, watermark)

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
        self._flush_all()
        if self._engine is None:
            return pa.table({})
        engine = self._engine
        s = engine.settled().time.slices
        cells = engine.edges.needed_cells(s.first, engine.horizon)
        ends = np.array([engine.edges.needed_after(int(t), engine.horizon) for t in s.last], np.int64)
        names = {n: k.to_arrow() for n, k in zip(self.workload.keys, self._keys.decode(s.key), strict=True)}
        return pa.table(
            {
                **names,
                "start": pa.array(cells, mask=cells <= -INFINITY),
                "end": pa.array(ends, mask=ends >= INFINITY),
                "first": s.first,
                "last": s.last,
                "rows": s.rows,
            }
        )

    # Queries that come and go

    def add_query(self, name: str, window: Window, /, **aggregates: Aggregate) -> int | None:
        """Add a query to the running operator.

        Parameters
        ----------
        name : str
            The query's name.
        window : Window
            Where windows begin and end.
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
        workload = self.workload.query(name, window, **aggregates)
        check_runnable(workload)
        self._adapt(workload)
        if self._engine is None:
            return None
        since = self._engine.since.get(name)
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
        ['bound', 'counters', 'fingerprint', 'format', 'watermark', 'workload']
        """
        self._check_open()
        self._flush_all()
        return self._saved().to_data()

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
        self._restore(OperatorState.from_data(snapshot))
        return self

    # Inside

    def _check_open(self) -> None:
        if self._closed:
            raise DataError("this operator is closed; make a new one with workload.operator()")

    def _forget_everything(self) -> None:
        """The state of an operator that has seen nothing."""
        self._time_type = None
        self._engine = None
        self._keys = KeyTable([])
        self._watermark = -INFINITY
        self._waiting, self._late = [], []
        self._outbox = Outbox()
        self._rows = self._results = self._late_rows = 0
        #: Names of queries that counted rows and are gone.
        self._retired: frozenset[str] = frozenset()
        self._buffer.look_closer()

    def _next_due(self) -> tuple[int, int]:
        """The event time of the first row that lets windows be reported, and how many rows let others."""
        self._check_open()
        if not self.ordered:
            return INFINITY, INFINITY
        return (-INFINITY, 1) if self._engine is None else self._engine.next_due()

    def _instant(self, watermark: Any) -> int:
        if isinstance(watermark, (int, np.integer)) and not isinstance(watermark, bool):
            at = int(watermark)
        else:
            at, _ = to_instant(watermark, name="watermark")
            if self.workload.time_measure == INTEGER:
                raise DataError(f"`watermark` must be an integer, as the windows are; got {watermark!r}")
            if self.workload.unit is not None:
                raise DataError(f"`watermark` must be an integer, in {self.workload.unit}; got {watermark!r}")
            if self._time_type is not None and pa.types.is_integer(self._time_type):
                raise DataError(f"`watermark` must be an integer, as the time column is; got {watermark!r}")
        if abs(at) >= watermark_limit(self.workload.unit):
            raise DataError(f"`watermark` must be an event time; got {at}")
        return at

    def _emptied(self) -> Results:
        """Empty the buffer, because it is full or because a row ends windows."""
        self._flush()
        return self._outbox.released()

    def _flush_all(self) -> None:
        """Hand buffered rows to the engine, and raise what is wrong with them."""
        self._flush()
        self._outbox.raise_errors()

    def _flush(self) -> None:
        """Hand buffered rows to the engine."""
        if not len(self._buffer):
            return
        batch = self._buffer.batch(self._types)
        self._bound(batch)
        self._buffer.clear(int(batch.times.max()))
        try:
            self._insert(batch)
        except Exception:
            self._take_one_by_one(batch)
        else:
            self._follow_rows()

    def _take_one_by_one(self, batch: Batch) -> None:
        """Let in all rows but those that cannot be; the first of them is named in the error."""
        refused: list[tuple[int, Exception]] = []
        for i in range(len(batch)):
            try:
                self._insert(batch.pick(np.array([i])))
            except Exception as error:
                refused.append((int(batch.times[i]), error))
            else:
                self._follow_rows()
        if refused:
            time, reason = refused[0]
            raise DataError(f"the row at time {time} cannot be taken, and was left out: {reason}") from reason

    def _take(self, batch: Batch) -> None:
        """Let checked rows in."""
        self._insert(batch)
        self._follow_rows()

    def _insert(self, batch: Batch) -> None:
        """Let checked rows in, without those that user code fails on; all of the others or none."""
        engine = self._bound(batch)
        if self.ordered:
            self._check_order(batch.times, engine.latest)
        columns = {n: conform(c, self._types[n], n) for n, c in batch.columns.items()}
        shown = show_rows(engine.plan, columns, batch.times)
        columns = shown.columns
        refusal = None
        if shown.failures:
            refusal = shown.error(partial(row_label, batch, engine.plan.schema))
            kept = shown.kept(len(batch))
            batch, columns = batch.pick(kept), {n: c.take(kept) for n, c in columns.items()}
        if len(batch):
            self._insert_shown(engine, batch, columns)
        if refusal is not None:
            self._outbox.refuse(refusal)
        self._buffer.latest = engine.latest
        self._buffer.look_closer()

    def _insert_shown(self, engine: Engine, batch: Batch, columns: Mapping[str, Column]) -> None:
        """Let rows in that nothing is wrong with."""
        key = self._keys.encode(batch.keys, len(batch))
        times = batch.times
        verdict = engine.judge(times)
        if len(verdict.late):
            kept = np.ones(len(times), bool)
            kept[verdict.late] = False
            rest = np.flatnonzero(kept)
            engine.insert(key[rest], times[rest], {n: c.take(rest) for n, c in columns.items()})
            self._turn_away(HeldRows.of_batch(batch, key, verdict.late))
        else:
            engine.insert(key, times, columns)
        if len(verdict.waiting):
            self._waiting.append(HeldRows.of_batch(batch, key, verdict.waiting))
        self._rows += len(batch)

    def _follow_rows(self) -> None:
        """Where every row is its own watermark, report what the rows that are in have ended."""
        if not self.ordered or self._engine is None or self._engine.latest <= -INFINITY:
            return
        try:
            self._step(self._engine.latest)
        except RefusedRowsError as error:
            self._outbox.refuse(error)  # the rows are in, and what is wrong with them is raised with what else is

    def _check_order(self, times: np.ndarray, latest: int) -> None:
        back = np.flatnonzero(times[1:] < times[:-1]) + 1 if times[0] >= latest else np.array([0])
        if len(back):
            before = times[back[0] - 1] if back[0] else latest
            raise DataError(
                f"rows must come in event-time order with ordered=True; row {back[0]} has {times[back[0]]} after "
                f"{before}; sort them, or use operator() and advance()"
            )

    def _bound(self, batch: Batch) -> Engine:
        """The engine, made when the first rows tell the types of the columns."""
        if self._engine is not None:
            if batch.time_type != self._time_type:
                zones = not (pa.types.is_integer(batch.time_type) or pa.types.is_integer(self._time_type))
                kinds = "with and without a time zone" if zones else "integers and timestamps"
                raise DataError(
                    f"the time column {self.workload.time!r} held {self._time_type} so far, and now {batch.time_type}; "
                    f"{kinds} cannot be mixed: convert one of them"
                )
            return self._engine
        types = dict(self._types)
        for name, found in batch.types(self.workload).items():
            if name not in types and pa.types.is_null(found):
                raise DataError(
                    f"column {name!r} holds only nulls so far, so its type is not known; say it: "
                    f"operator(types={{{name!r}: 'double'}})"
                )
            types.setdefault(name, found)
        self._bind(types, batch.time_type)
        assert self._engine is not None
        return self._engine

    def _bind(self, types: dict[str, pa.DataType], time_type: pa.DataType) -> None:
        self._engine = Engine(self._plan(self.workload, types, time_type))
        self._types, self._time_type = types, time_type
        self._buffer.time_type = time_type
        self._keys = KeyTable([types[k] for k in self.workload.keys])
        self._engine.watermark = self._watermark

    def _plan(self, workload: Workload, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> Plan:
        how = {"ordered": self.ordered, "store": self.store, "max_slice": self.max_slice, "ties": self.ties}
        return plan_for(workload, types, time_type=time_type, **how)  # type: ignore[arg-type]

    def _step(self, watermark: int) -> None:
        if self._engine is None:
            self._watermark = watermark
            return
        engine = self._engine
        take_window_failure(engine.plan)  # of a step that was not finished
        results, sessions = engine.advance(watermark, self._keys)
        if self._waiting:
            self._judge_waiting(sessions)
        self._watermark = watermark
        self._results += len(results)
        self._outbox.add(results)
        failure = take_window_failure(engine.plan)
        if failure is not None:
            self._outbox.refuse(failure)
        self._forget_silent_keys()

    def _judge_waiting(self, sessions: list[Sessions]) -> None:
        """Old rows counted if they turned out to lie in a session that is still open; else they are late."""
        for held in self._waiting:
            joined = np.zeros(len(held.key), bool)
            for of_gap, gap in zip(sessions, self._engine.plan.gaps, strict=True):  # type: ignore[union-attr]
                joined |= of_gap.hold(held.key, held.first, gap)
            if not joined.all():
                self._turn_away(held.take(np.flatnonzero(~joined)))
        self._waiting = []

    def _turn_away(self, held: HeldRows) -> None:
        assert self._engine is not None
        if held.batch is not None:
            self._late.append(held)
        self._late_rows += held.count
        self._engine.forget(int(held.last.max()))

    def _forget_silent_keys(self) -> None:
        """Renumber keys from time to time, so that keys without state take no memory."""
        assert self._engine is not None
        if self._engine.context_aware:
            return  # a key that counts rows goes on counting where it stopped
        state = self._engine.time.state
        if len(self._keys) < 1024 or len(self._keys) < 4 * len(state.slices) or self._waiting or self._late:
            return
        used = np.unique(np.concatenate([state.slices.key, state.reported.key]))
        if 2 * len(used) < len(self._keys):
            self._keys, numbers = self._keys.without_unused(used)
            self._engine.renumber_keys(numbers)

    @property
    def _counters(self) -> Counters:
        return Counters(self._rows, self._results, self._late_rows)

    def _saved(self) -> OperatorState:
        """Everything that the operator knows."""
        counters = self._counters
        description = describe(self.workload, self.ordered)
        if self._engine is None:
            return OperatorState(description, self._watermark, counters)
        assert self._time_type is not None
        bound = BoundState(
            # The user may have given the types of other columns too.
            types={name: self._types[name] for name in (*self.workload.keys, *self.workload.columns)},
            time_type=self._time_type,
            layout=StateLayout.of(self._engine.plan),
            engine=self._engine.saved(),
            keys=self._keys.values,
            numbering=self._keys.numbering,
            counting=counting(self.workload),
            retired=self._retired,
            waiting=self._waiting,
            late=self._late,
        )
        return OperatorState(description, self._watermark, counters, bound)

    def _restore(self, state: OperatorState) -> None:
        """Continue from a state; the operator is left as it was if that is refused."""
        state.check(self.workload, self.ordered)
        bound = state.bound
        if bound is None:
            self._forget_everything()
        else:
            went_on = continue_from(state, self.workload, self._types, self._time_type, self._plan)
            self._forget_everything()
            self._types, self._keys, self._engine = went_on.types, went_on.keys, went_on.engine
            self._time_type = self._buffer.time_type = bound.time_type
            self._retired = went_on.retired
            self._waiting, self._late = list(bound.waiting), list(bound.late)
        self._watermark = state.watermark
        counters = state.counters
        self._rows, self._results, self._late_rows = counters.rows, counters.results, counters.late_rows

    def _adapt(self, workload: Workload) -> None:
        """Run another workload from here on: the same one with queries added or removed."""
        self._flush_all()
        retired = self._retired
        if self._engine is not None:
            going_on = {q.name for q in workload.queries if q in self.workload.queries}
            retired = retire(retired, counting(self.workload), going_on, workload)
            missing = [c for c in workload.columns if c not in self._types]
            if missing:
                raise QueryError(
                    f"column {missing[0]!r} was never read before, so its type is not known; say it when the operator "
                    f"is made: operator(types={{{missing[0]!r}: 'double'}})"
                )
            assert self._time_type is not None
            check_time(workload, self._time_type)
            plan = self._plan(workload, self._types, self._time_type)
            self._engine = Engine(plan, adapted_state(self._engine, plan))
        self.workload = self._buffer.workload = workload
        self._retired = retired
        self._buffer.look_closer()
