"""The processor: what Spark calls for each shard of a micro-batch. Packs in, results out, state kept in chunks."""

from __future__ import annotations

import json
import logging
import os
import pickle
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import cloudpickle
from pyspark.sql import Row
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

from slicewise.amounts import from_micros
from slicewise.errors import DataError, OverflowInWindowError, OverfullError, StateError, UserCodeInWindowError
from slicewise.labels import RowLabel
from slicewise.plan.panels import LONG, Form
from slicewise.results import Results
from slicewise.slicing import COUNTED, EVENT_TIME, OperatorState, Shard, State, watermark_lag, watermark_limit
from slicewise.spark.arrow_io import from_ipc
from slicewise.spark.output import Output
from slicewise.spark.source import TIME, key_name, value_name
from slicewise.spark.streaming.chunks import join, split
from slicewise.spark.streaming.decoded import DECODED
from slicewise.spark.streaming.heartbeat import NOW, switched_message
from slicewise.spark.streaming.packs import ROW, read_rows, read_slices
from slicewise.spark.streaming.returned import WHOLE, ReturnedRows, bad_metrics
from slicewise.spark.streaming.shard_reports import KEPT, reports
from slicewise.times import INFINITY
from slicewise.workload import Workload, with_stamped_rows, without_where

__all__ = ["CHUNKS_STATE", "HEAD", "ShardJob", "ShardProcessor", "deferred"]

#: The state variable that holds the chunks, by name. Passed as types: text would be parsed by the JVM at every call.
CHUNKS_STATE = "chunks"
_NAME = T.StructType([T.StructField("name", T.StringType())])
_CHUNK = T.StructType([T.StructField("data", T.BinaryType()), T.StructField("head", T.StringType())])
#: The chunk that is always written: in JSON, the directory of the others and what of the state is not the engine's.
HEAD = "head"
#: The format that is written, and the oldest one that is read.
FORMAT, OLDEST = 6, 4
_LOG = logging.getLogger("slicewise")


@dataclass(frozen=True)
class ShardJob:
    """What a shard needs to know of its stream.

    Attributes
    ----------
    workload
        The user's.
    ahead
        How far ahead of the watermark windows are reported; 0 where they are reported when they are complete.
    width
        How much event time shares a chunk.
    idle
        After how many microseconds without rows the watermark follows the clock; None for never, and then there is no
        heartbeat.
    shards
        How many there are.
    bad
        ``"fail"`` stops at a bad row.
    gaps
        Whether rows after too many ticks are bad; where rows are judged by the clock, they are not.
    ordered
        No row is older than the latest one of the micro-batches before; one that is stops the query.
    store, max_slice
        As for the operator.
    form
        How results are shown.
    run
        Identifies this call of ``run()``. A worker may outlive the query that it served, and what it has
        decoded runs that query's workload.
    """

    workload: Workload
    types: Mapping[str, pa.DataType]
    time_type: pa.DataType
    output: Output
    ahead: int
    width: int
    idle: int | None
    shards: int
    bad: str | None = None
    gaps: bool = True
    ordered: bool = False
    store: str | None = None
    max_slice: int | str | None = None
    form: Form = field(default_factory=Form)
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def engine_workload(self) -> Workload:
        """The workload as the engine runs it: what is reported ahead of time stays open as long as it would have."""
        # Rows that nobody means have been left out where they were packed, and rows without a time have got one.
        w = with_stamped_rows(without_where(self.workload))
        return w.with_delays(0, w.lateness + w.watermark + self.ahead) if self.ahead else w

    def watermark(self, latest: int) -> int:
        """The engine's watermark when this is the latest event time."""
        limit = watermark_limit(self.workload.unit) - 1
        delay = 0 if self.ordered else self.workload.watermark
        return min(max(latest + self.ahead if self.ahead else latest - delay, -limit), limit)

    def new_shard(self) -> Shard:
        """A shard that has seen nothing."""
        how = {"gaps": self.gaps, "store": self.store, "max_slice": self.max_slice, "form": self.form}
        return Shard(self.engine_workload, self.types, self.time_type, **how)  # type: ignore[arg-type]

    def check_order(self, latest: int, times: np.ndarray, key: np.ndarray, keys: Sequence[Any]) -> None:
        """Refuse rows that are older than the latest one of the micro-batches before, where they must not be.

        ``key`` has for each row the place of its key in the columns ``keys``.
        """
        back = np.flatnonzero(times < latest)
        if not self.ordered or not len(back):
            return
        at = int(back[0])
        values = {name: column[int(key[at])].as_py() for name, column in zip(self.workload.keys, keys, strict=True)}
        row = RowLabel(values, int(times[at]), self.time_type, self.workload.time_measure.unit)
        raise DataError(
            f"{row} came after {row.shown(latest)}, which an earlier micro-batch had, and ordered=True: rows must come "
            "in event-time order; leave `ordered` out, and give the workload a `watermark`"
        )

    def oldest(self, latest: int, watermark: int) -> int:
        """The time that rows have at least: on processing time, a clock that has gone back stands still."""
        if self.workload.on_clock is None:
            return -INFINITY
        reached = self.user_watermark(watermark)
        return latest if reached is None else max(latest, reached)

    def silence(self, arrived: int, now: int) -> int:
        """How much event time passes between the last rows and now, both in milliseconds; 0 if that is no silence."""
        micros = 1000 * (now - arrived)
        if self.idle is None or micros < self.idle:
            return 0
        return from_micros(micros, self.workload.time_measure.unit)

    def user_watermark(self, watermark: int) -> int | None:
        """The user's watermark when this is the engine's; None before the first row."""
        if watermark <= -INFINITY:
            return None
        return max(watermark - self.ahead - self.workload.watermark, -INFINITY) if self.ahead else watermark

    def identity(self) -> dict[str, Any]:
        """What must not change between two runs, besides what the engine's own snapshot holds."""
        w = self.workload
        emit = "changes" if self.ahead else self.form.emit
        idle = self.idle is not None
        filters = {"where": w.where, "punctuation": w.punctuation}
        given = {name: filter_.text for name, filter_ in filters.items() if filter_ is not None}
        given |= {"shape": self.form.shape} if self.form.wide else {}
        return given | {"unit": w.unit, "lateness": w.lateness, "emit": emit, "shards": self.shards, "idle": idle}


class ShardProcessor(StatefulProcessor):
    """Merges packs into the slices of a shard and reports windows."""

    def __init__(self, job: ShardJob) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before anything else."""
        self.handle = handle
        self.chunks = handle.getMapState(CHUNKS_STATE, _NAME, _CHUNK)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:
        """Called by Spark with the packs of one shard."""
        yield from reports(*self.report(key, list(rows)))

    def report(self, key: Any, received: Sequence[Row]) -> tuple[dict[str, int | None], Iterable[pa.RecordBatch]]:
        """Take the packs of one shard; what it reports on the micro-batch, metrics and results."""
        # Packs come in any order; the answer must not depend on it. A heartbeat's have nothing in them.
        packs = sorted((pack for pack in received if pack.content is not None), key=lambda pack: pack.partition)
        stored, rest = self._head()
        seen = [pack.latest for pack in packs if pack.latest is not None]
        now = received[0][NOW] if self.job.idle is not None else 0
        head = {**stored, "latest": max([stored["latest"], *seen]), "arrived": now if seen else stored["arrived"]}
        begun = head["latest"] > -INFINITY
        silence = self.job.silence(head["arrived"], now) if begun else 0
        if not packs and not silence:
            nothing = dict.fromkeys(("rows", "late", "failed", "overfull"), 0)
            return {**nothing, **bad_metrics(Counter()), **_kept(head)}, []
        job = self.job
        shard = self._shard(key, stored, rest)
        before = shard.counters
        oldest = job.oldest(stored["latest"], shard.watermark)
        tables, packed, bad = [], [], Counter[str]()
        for pack in packs:
            content = read_rows(pack.content, self.job.workload.trusted)
            for data in content["slices"]:
                keys, count, slices = read_slices(data)
                if oldest > -INFINITY:
                    first, last = (np.maximum(times, oldest) for times in (slices.first, slices.last))
                    slices = replace(slices, first=first, last=last)
                job.check_order(stored["latest"], slices.first, slices.key, keys)
                shard.take_slices(keys, count, slices)
            if content["rows"]:
                tables.append(from_ipc(content["rows"]))
            if content["returned"]:
                packed.append(from_ipc(content["returned"]))
            bad.update(content["bad"])
        if tables:
            columns = _rows(job, tables, oldest)
            times = np.maximum(pa.concat_tables(tables).column(TIME).cast(pa.int64()).to_numpy(), oldest)
            job.check_order(stored["latest"], times, np.arange(len(times)), [columns[k] for k in job.workload.keys])
            shard.take_rows(columns)
        results = Results()
        if begun:
            shard.follow(head["latest"])
            results = _advance(shard, job.watermark(head["latest"] + silence))
        returned = ReturnedRows(shard, job.workload, job.output, packed, fail=job.bad == "fail")
        bad += returned.counts()
        returned_rows = list(returned.batches())
        failed = _failed_windows(shard, fail=job.bad == "fail")
        # The first head of a shard counts neither bad rows nor failed windows.
        counts = {"bad": dict(Counter(head.get("bad", {})) + bad), "failed": head.get("failed", 0) + failed["failed"]}
        head = self._save(key, {**head, **counts}, shard)
        after = shard.counters
        arrivals = {"rows": after.rows - before.rows, "late": after.late_rows - before.late_rows}
        arrivals |= failed | bad_metrics(bad)
        reported = (job.output.batch(block, [key.to_arrow() for key in block.keys]) for block in results.blocks)
        return {**arrivals, **_kept(head)}, chain(reported, returned_rows)

    def close(self) -> None:
        """Called by Spark at the end."""

    # Inside

    def _head(self) -> tuple[dict[str, Any], bytes]:
        """The shard's head, and the part of its state that is kept with it."""
        stored = self.chunks.getValue((HEAD,))
        if stored is None:
            return {"latest": -INFINITY, "arrived": 0, "version": None, "directory": {}}, b""
        rest, text = stored
        head: dict[str, Any] = json.loads(text)
        _check(head, self.job)
        return head, rest

    def _shard(self, key: Any, head: Mapping[str, Any], rest: bytes) -> Shard:
        """The shard as it was after the last micro-batch: decoded already, or from its chunks."""
        job = self.job
        if head["version"] is None:
            return job.new_shard()
        shard = DECODED.take((job.run, *key), head["version"])
        if shard is None:
            shard = job.new_shard()
            chunks = {name: self._chunk(name) for name in head["directory"]}
            shard.restore(_continued(join(rest, chunks, job.workload.trusted), head, job))
            if job.ahead and head["latest"] > -INFINITY:
                stored = head["queries"]
                new = [q.name for q in job.workload.queries if stored.get(q.name) != repr(q)]
                shard.begin(new, head["latest"] + 1)
        return shard

    def _chunk(self, name: str) -> bytes:
        stored = self.chunks.getValue((name,))
        return b"" if stored is None else stored[0]

    def _save(self, key: Any, head: dict[str, Any], shard: Shard) -> dict[str, Any]:
        """Write what changed, and return the new head."""
        old: dict[str, str] = head["directory"]
        state = shard.state(self.job.user_watermark(shard.watermark))
        rest, chunks, directory = split(state, self.job.width, old, self.job.workload.trusted)
        for name, data in chunks.items():
            self.chunks.updateValue((name,), (data, None))
        for name in old.keys() - directory.keys():
            self.chunks.removeKey((name,))
        version = uuid.uuid4().hex
        described = _description(shard, state, self.job)
        head = {**head, "format": FORMAT, "version": version, "directory": directory, **described}
        self.chunks.updateValue((HEAD,), (rest, json.dumps(head)))
        if not os.environ.get("SLICEWISE_NO_CACHE"):
            DECODED.keep((self.job.run, *key), version, shard)
        return head


def deferred(processor: ShardProcessor) -> StatefulProcessor:
    """A processor that names its state at once, and is unpickled as a whole where there are packs.

    Whenever a stream starts, Spark starts a Python on the driver that is asked for the names of states, and ends. The
    class of a function is pickled by value: that Python imports nothing of slicewise, nor NumPy and Arrow.
    """
    pickled: bytes = cloudpickle.dumps(processor)  # type: ignore[no-untyped-call]
    state, name, chunk = CHUNKS_STATE, _NAME, _CHUNK

    class _Deferred(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self.chunks = handle.getMapState(state, name, chunk)

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Any]:
            inner = pickle.loads(pickled)
            inner.chunks = self.chunks
            return inner.handleInputRows(key, rows, timerValues)  # type: ignore[no-any-return]

        def close(self) -> None:
            pass

    return _Deferred()


def _failed_windows(shard: Shard, *, fail: bool) -> dict[str, int]:
    """How many windows have no value, because user code failed or because they have too many categories.

    The first of them is named in the worker's log.
    """
    counts = {"failed": 0, "overfull": 0}
    for error in shard.failed_windows():
        if fail and isinstance(error, UserCodeInWindowError):
            raise UserCodeInWindowError(error.reason, error.label, stopped=True)
        _LOG.warning("%s", error)
        counts["overfull" if isinstance(error, OverfullError) else "failed"] += 1 + error.others
    return counts


def _rows(job: ShardJob, tables: list[pa.Table], oldest: int) -> dict[str, Any]:
    """Rows that packs brought, as a shard takes them; none is older than ``oldest``."""
    table = pa.concat_tables(tables)
    w = job.workload
    times = table.column(TIME)
    if oldest > -INFINITY:
        times = pc.max_element_wise(times, oldest)
    rows: dict[str, Any] = {EVENT_TIME: times.cast(job.time_type) if w.unit is None else times}
    rows |= {name: table.column(key_name(i)) for i, name in enumerate(w.keys)}
    rows |= {name: table.column(value_name(i)) for i, name in enumerate(w.inputs)}
    if ROW in table.column_names:
        rows[WHOLE] = table.column(ROW)
    return rows


def _advance(shard: Shard, watermark: int) -> Results:
    """Move the watermark on; it never goes back."""
    try:
        return shard.advance(max(shard.watermark, watermark))
    except OverflowInWindowError as error:
        name = error.label.query
        todo = (
            f"the stream meets this window again at every restart: remove query {name!r} from the workload, or replace "
            "it by one of another name over a wider column, and start with the same checkpoint; where no other query "
            "stays, with a new one"
        )
        raise OverflowInWindowError(f"{error.reason}; {todo}", error.label) from None


def _continued(state: OperatorState, head: Mapping[str, Any], job: ShardJob) -> OperatorState:
    """A state for this run. How far ahead windows are reported depends on the longest, which may be another now.

    What was reported counts as reported, and what can be corrected no more stays so.
    """
    stored, current = state.description["lateness"], job.engine_workload.lateness
    watermark = state.watermark
    if watermark > -INFINITY:
        watermark += max(job.ahead - head["ahead"], current - stored)
    return state.with_lateness(current if job.ahead else stored, watermark)


def _kept(head: Mapping[str, Any]) -> dict[str, int | None]:
    """The metrics of what a shard keeps; before its first rows a shard has no stored head."""
    counts = head.get("counts", {})
    kept = {name: counts.get(name, 0) for name in KEPT}
    kept |= {name: head.get("costs", {}).get(name, 0) for name in COUNTED}
    return {**kept, "watermark": head.get("watermark"), "watermark_lag_ms": head.get("watermark_lag_ms")}


def _description(shard: Shard, state: OperatorState, job: ShardJob) -> dict[str, Any]:
    """What the head of a shard holds about it: for a later run, and for inspections of the checkpoint."""
    assert state.bound is not None
    engine, counters = state.bound.engine, state.counters
    return {
        "identity": job.identity(),
        "ahead": job.ahead,
        "counts": {
            "keys": shard.key_count,
            "slices": sum(map(len, engine.slices)),
            "tuples": sum(map(len, engine.rows)),
            "state_bytes": engine.nbytes,
            "rows": counters.rows,
            "results": counters.results,
            "late": counters.late_rows,
        },
        "costs": {name: counters.costs[name] for name in COUNTED},
        "watermark": job.user_watermark(shard.watermark),
        "watermark_lag_ms": watermark_lag(shard.engine.plan, engine.latest, job.user_watermark(shard.watermark)),
        "queries": {q.name: repr(q) for q in job.workload.queries},
        "oldest": _oldest(engine),
        "since": {name: at for name, at in engine.reports_from.items() if at > -INFINITY},
        "timestamps": pa.types.is_timestamp(job.time_type),
        "unit": job.workload.time_measure.unit,
    }


def _oldest(state: State) -> int | None:
    """The event time of the oldest row that the state still holds."""
    times = [slices.first for slices in state.slices] + [rows.time for rows in state.rows]
    return min((int(time.min()) for time in times if len(time)), default=None)


def _check(head: Mapping[str, Any], job: ShardJob) -> None:
    if head["format"] > FORMAT:
        raise StateError(
            f"the checkpoint has format {head['format']}, and this version reads up to {FORMAT}; upgrade slicewise"
        )
    if head["format"] < OLDEST:
        raise StateError(
            f"the checkpoint has format {head['format']}, and this version reads {OLDEST} to {FORMAT}; finish with the "
            "version that wrote it, or start with a new checkpoint"
        )
    stored, current = head["identity"], job.identity()
    if stored["shards"] != current["shards"]:
        raise StateError(
            f"the checkpoint was written with {stored['shards']} shards, and this run has {current['shards']}; set "
            f"spark.sql.shuffle.partitions to {stored['shards']} before run()"
        )
    # Spark counts the sources of a stream first, and refuses the checkpoint unless another source made up for this one.
    if stored.get("idle", current["idle"]) != current["idle"]:
        raise StateError(switched_message(current["idle"]))
    for name in ("unit", "lateness", "emit", "shape", "where", "punctuation"):
        was, now = (identity.get(name, LONG if name == "shape" else None) for identity in (stored, current))
        if was != now:
            raise StateError(
                f"the checkpoint belongs to another workload: its `{name}` is {was!r}, this one's {now!r}; only "
                "queries may be added or removed"
            )
