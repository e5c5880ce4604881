"""The operator: a workload running in this process. Rows and watermarks in, results out.

The public face of the engine. It reads rows (:mod:`intake`), numbers keys, hands both to the engine, and keeps what the
engine has no use for: late rows, counters, the buffer of rows that came one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, to_instant
from slicewise.columns import Column
from slicewise.errors import DataError, QueryError, RefusedRowsError
from slicewise.plan.plan import ARRIVAL, Plan, check_max_slice, check_runnable, check_store, plan_for
from slicewise.results import Results
from slicewise.slicing import snapshots
from slicewise.slicing.accounts import KeptRows, LateRow, Stats, slices_table
from slicewise.slicing.adapting import adapted_state
from slicewise.slicing.ahead import AheadLimit
from slicewise.slicing.engine import Engine
from slicewise.slicing.input import Batch, check_time, conform, parse_types, read_batch, watermark_limit
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.row_buffer import RowBuffer
from slicewise.slicing.rows.gaps import TickGaps
from slicewise.slicing.time.window_manager import Sessions
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
        ahead: Any = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        check_store(store)
        check_max_slice(max_slice)
        check_runnable(workload)
        if ahead is None and clock is not None:
            raise QueryError("`clock` is what `ahead` is measured by; got no `ahead`; give both, or leave it out")
        self.workload = workload
        self.ordered = ordered
        self.store = store
        self.max_slice = max_slice
        self.ties = ties
        self._types = parse_types(types)
        self._time_type: pa.DataType | None = None
        self._engine: Engine | None = None
        self._waiting: list[KeptRows] = []
        self._late: list[KeptRows] = []
        self._closed = False
        self._ahead = None if ahead is None else AheadLimit(workload, ahead, clock)
        self._judges_gaps = ahead is None
        self._gaps: TickGaps | None = None
        self._buffer = RowBuffer(workload, ordered, self._flush, self._next_due, self._ahead)
        # The buffer's own function, so that a row costs a single call.
        self.process = self._buffer.process  # type: ignore[method-assign]
        self._forget_everything()

    # Rows in

    def process(self, time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
        """Take one row.

        Parameters
        ----------
        time
            Event time: an integer, or a datetime.
        row
            The columns that the workload reads.
        key
            The key, or a tuple for several key columns; left out, it is read from the row.

        Notes
        -----
        Rows are buffered, and cut into slices by the thousands; a row costs an append and a comparison with the next
        edge. A row that cannot be read is refused when it comes or, at the latest, when the buffer is emptied; the
        error says which row it was, and the others stay.
        """
        raise AssertionError("bound to the row buffer when the operator is made")

    def process_batch(self, columns: Any) -> Results:
        """Take many rows at once: a mapping of arrays, an Arrow table or a pandas DataFrame."""
        self._check_open()
        batch = read_batch(columns, self.workload, self._types)
        self._held = self._flush()
        error = None
        if self._ahead is not None and len(batch):
            batch, error = self._ahead.judged(batch)
        if len(batch):
            self._held = self._held + self._take(batch)
        if error is not None:
            raise error
        return self._released()

    def drive(self, batches: Iterable[Any]) -> Iterator[Results]:
        """Take batches, moving the watermark behind each: the latest event time seen less the workload's ``watermark``.

        The results of the last step, :meth:`close`, come last.
        """
        for batch in batches:
            results = self.process_batch(batch)
            engine = self._engine
            if engine is not None and not self.ordered:
                watermark = max(self._watermark, engine.latest - self.workload.watermark)
                # Who waits longer than time lasts gets everything at the end.
                if watermark > -watermark_limit(self.workload.unit):
                    results = results + self.advance(watermark)
            yield results
        yield self.close()

    # Results out

    def advance(self, watermark: Any) -> Results:
        """Move the watermark: no row is waited for that is older. Reports what ended and what late rows changed."""
        self._check_open()
        at = self._instant(watermark)
        if at < self._watermark:
            raise DataError(
                f"the watermark must not go back; it stands at {self._watermark} and was given as {at}; keep the larger"
            )
        return self._flush() + self._step(at)

    def close(self) -> Results:
        """The end of the stream: every window that holds rows is reported. Nothing can be processed afterwards."""
        self._check_open()
        results = self._flush() + self._step(INFINITY)
        self._closed = True
        self._buffer.look_closer()
        return results

    def late(self) -> list[LateRow]:
        """The rows that came too late for every window of theirs, since this was last asked."""
        self._held = self._flush()
        found = [row for kept in self._late for row in kept.late(self._keys)]
        self._late = []
        return found

    def stats(self) -> Stats:
        """Counts of what the operator holds and has done."""
        self._held = self._flush()
        watermark = None if abs(self._watermark) >= INFINITY else self._watermark
        if self._engine is None:
            return Stats(0, 0, 0, 0, 0, 0, 0, watermark)
        state = self._engine.settled()
        stored = [state.tuples, *(track.rows for track in state.tracks)]
        return Stats(
            keys=len(np.unique(np.concatenate([state.slices.key, *(t.key for t in stored)]))),
            slices=len(state.slices) + sum(track.slice_count for track in state.tracks),
            tuples=sum(len(t) for t in stored) - sum(track.slice_count for track in state.tracks),
            bytes=state.slices.nbytes + sum(t.nbytes for t in stored),
            rows=self._rows,
            results=self._results,
            late_rows=self._late_rows,
            watermark=watermark,
        )

    def slices(self) -> pa.Table:
        """The slices as they stand: key columns, start and end (the edges around it), first, last and rows."""
        self._held = self._flush()
        return pa.table({}) if self._engine is None else slices_table(self._engine, self._keys)

    # Queries that come and go

    def add_query(self, name: str, window: Window, /, **aggregates: Aggregate) -> int | None:
        """Add a query to the running operator.

        Returns
        -------
        int or None
            The event time from which its results are complete: it reports the windows that start at or after it and
            end after the present watermark. None when nothing was seen yet, so that it misses nothing.
        """
        self._check_open()
        workload = self.workload.query(name, window, **aggregates)
        check_runnable(workload)
        self._adapt(workload)
        if self._engine is None:
            return None
        since = self._engine.state.since.get(name)
        return since if since is not None and since > -INFINITY else None

    def remove_query(self, name: str) -> None:
        """Remove a query from the running operator, with what only it needed."""
        self._check_open()
        if len(self.workload.queries) == 1:
            self.workload.named(name)
            raise QueryError(f"{name!r} is the only query; close the operator instead of removing it")
        self._adapt(self.workload.without(name))

    # State as data

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data, with a format version and what the workload is; for :meth:`restore`."""
        self._check_open()
        self._held = self._flush()
        return snapshots.take(self)

    def restore(self, snapshot: Mapping[str, Any]) -> Operator:
        """Continue from a snapshot of this workload; queries may have been added or removed since.

        Refuses the state of another workload or of a newer format, and then leaves the operator as it was.
        """
        self._check_open()
        snapshots.restore(self, snapshot)
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
        #: Results of rows beside one that was refused; they come out with the next ones.
        self._held = NOTHING
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

    def _flush(self) -> Results:
        """Hand buffered rows to the engine."""
        if len(self._buffer):
            batch = self._buffer.batch(self._types)
            engine = self._bound(batch)
            self._buffer.clear(int(batch.times.max()))
            try:
                error = self._let_in(batch)
            except Exception:
                error = self._let_in_one_by_one(batch)
            self._look_closer(engine)
            self._held = self._held + self._reported(error)
        return self._released()

    def _released(self) -> Results:
        """The results that were held back until now."""
        held, self._held = self._held, NOTHING
        return held

    def _take(self, batch: Batch) -> Results:
        """Let checked rows in, and report what ended with them."""
        return self._reported(self._let_in(batch))

    def _reported(self, error: DataError | None) -> Results:
        """What ended with the rows that were let in; an error about others is raised after that."""
        assert self._engine is not None
        results = self._step(self._engine.latest) if self.ordered else NOTHING
        if error is None:
            return results
        self._held = self._held + results
        raise error

    def _let_in_one_by_one(self, batch: Batch) -> DataError | None:
        """Let in all rows but those that cannot be; the first of them is named in the error."""
        refused: list[tuple[int, Exception]] = []
        for i in range(len(batch)):
            try:
                error = self._let_in(batch.pick(np.array([i])))
            except Exception as raised:
                refused.append((int(batch.times[i]), raised))
            else:
                refused += [] if error is None else [(int(batch.times[i]), error)]
        if not refused:
            return None
        time, reason = refused[0]
        error = DataError(f"the row at time {time} cannot be taken, and was left out: {reason}")
        error.__cause__ = reason
        return error

    def _let_in(self, batch: Batch) -> DataError | None:
        """Let checked rows in; what is wrong with those that are left out."""
        engine = self._bound(batch)
        columns = {n: conform(c, self._types[n], n) for n, c in batch.columns.items()}
        key = self._keys.encode(batch.keys, len(batch))
        error = self._gap(engine, batch, key, columns)
        if error is not None:
            kept = np.ones(len(batch), bool)
            kept[error.rows] = False
            rest = np.flatnonzero(kept)
            batch, key, columns = batch.pick(rest), key[rest], {n: c.take(rest) for n, c in columns.items()}
        if len(batch):
            self._insert(engine, batch, key, columns)
        return error

    def _gap(
        self, engine: Engine, batch: Batch, key: np.ndarray, columns: Mapping[str, Column]
    ) -> RefusedRowsError | None:
        """Rows after so much time that too many ticks would be due; where the clock judges rows, none are."""
        if not self._judges_gaps or not engine.tracks:
            return None
        if self._gaps is None or self._gaps.engine is not engine:
            self._gaps = TickGaps(engine)
        return self._gaps.judge(batch, key, columns, self.workload)

    def _insert(self, engine: Engine, batch: Batch, key: np.ndarray, columns: Mapping[str, Column]) -> None:
        if self.ordered:
            self._check_order(batch.times, engine.latest)
        times = batch.times
        verdict = engine.judge(times)
        if len(verdict.late):
            kept = np.ones(len(times), bool)
            kept[verdict.late] = False
            rest = np.flatnonzero(kept)
            engine.insert(key[rest], times[rest], {n: c.take(rest) for n, c in columns.items()})
            self._turn_away(KeptRows(batch.take(verdict.late), key[verdict.late]))
        else:
            engine.insert(key, times, columns)
        if len(verdict.waiting):
            self._waiting.append(KeptRows(batch.take(verdict.waiting), key[verdict.waiting]))
        self._rows += len(batch)
        self._look_closer(engine)

    def _look_closer(self, engine: Engine) -> None:
        """Have the buffer look where the stream stands."""
        self._buffer.latest = engine.latest
        self._buffer.look_closer()

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
        self._engine.state = replace(self._engine.state, watermark=self._watermark)

    def _plan(self, workload: Workload, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> Plan:
        how = {"ordered": self.ordered, "store": self.store, "max_slice": self.max_slice, "ties": self.ties}
        return plan_for(workload, types, time_type=time_type, **how)  # type: ignore[arg-type]

    def _step(self, watermark: int) -> Results:
        if self._engine is None:
            self._watermark = watermark
            return NOTHING
        try:
            results, sessions = self._engine.advance(watermark, self._keys)
        except RefusedRowsError:
            self._gaps = None  # rows that were known may have been left out
            raise
        if self._waiting:
            self._judge_waiting(sessions)
        self._watermark = watermark
        self._results += len(results)
        self._forget_silent_keys()
        return results

    def _judge_waiting(self, sessions: list[Sessions]) -> None:
        """Old rows counted if they turned out to lie in a session that is still open; else they are late."""
        for kept in self._waiting:
            joined = np.zeros(len(kept.key), bool)
            for found, gap in zip(sessions, self._engine.plan.gaps, strict=True):  # type: ignore[union-attr]
                joined |= found.hold(kept.key, kept.batch.times, gap)
            if not joined.all():
                self._turn_away(kept.take(np.flatnonzero(~joined)))
        self._waiting = []

    def _turn_away(self, kept: KeptRows) -> None:
        assert self._engine is not None
        self._late.append(kept)
        self._late_rows += len(kept.key)
        self._engine.forget(int(kept.batch.times.max()))

    def _forget_silent_keys(self) -> None:
        """Keys without slices cost nothing: now and then, numbers are given anew to those that are left."""
        assert self._engine is not None
        state = self._engine.state
        if self._engine.tracks:
            return  # a key that counts rows goes on counting where it stopped
        if len(self._keys) < 1024 or len(self._keys) < 4 * len(state.slices) or self._waiting or self._late:
            return
        tables = (state.reported.windows, *state.reported.sessions)
        used = np.unique(np.concatenate([state.slices.key, *(t.key for t in tables)]))
        if 2 * len(used) < len(self._keys):
            self._keys, renumbered = self._keys.without_unused(used)
            self._engine.state = snapshots.renumbered(state, renumbered)

    def _adapt(self, workload: Workload) -> None:
        """Run another workload from here on: the same one with queries added or removed."""
        self._held = self._flush()
        retired = self._retired
        if self._engine is not None:
            going_on = {q.name for q in workload.queries if q in self.workload.queries}
            retired = snapshots.retire(retired, snapshots.counting(self.workload), going_on, workload)
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
