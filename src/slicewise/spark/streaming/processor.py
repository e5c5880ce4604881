"""The processor: what Spark calls for each shard of a micro-batch. Packs in, results out, state kept in chunks."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql import types as T
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from slicewise.amounts import from_micros
from slicewise.errors import OverflowInWindowError, StateError
from slicewise.results import Results
from slicewise.slicing import Counters, OperatorState, Shard, State, watermark_limit
from slicewise.spark.output import Output
from slicewise.spark.source import TIME, key_name, value_name
from slicewise.spark.streaming.chunks import join, split
from slicewise.spark.streaming.decoded import DECODED
from slicewise.spark.streaming.packs import ROW, from_ipc, read_rows, read_slices
from slicewise.spark.streaming.reports import reports
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["CHUNKS_STATE", "HEAD", "ShardJob", "ShardProcessor"]

#: The state variable that holds the chunks, by name. Passed as types: text would be parsed by the JVM at every call.
CHUNKS_STATE = "chunks"
_NAME = T.StructType([T.StructField("name", T.StringType())])
_CHUNK = T.StructType([T.StructField("data", T.BinaryType()), T.StructField("said", T.StringType())])
#: The chunk that is always written. It says, in JSON, which others there are and what of the state is not the engine's.
HEAD = "head"
FORMAT = 4
#: Where a row as it came stands beside the columns of the user, none of which can have this name.
WHOLE = "\0row"


@dataclass(frozen=True)
class ShardJob:
    """What a shard must know.

    Attributes
    ----------
    workload
        The user's.
    ahead
        How far ahead of the watermark windows are reported; 0 where they are reported when they are complete.
    width
        How much event time shares a chunk.
    idle
        After how many microseconds without rows the watermark follows the clock; None for never.
    shards
        How many there are.
    run
        Tells this call of ``run()`` from all others. A worker may outlive the query that it served, and what it has
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
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def running(self) -> Workload:
        """The workload as the engine runs it: what is reported ahead of time stays open as long as it would have."""
        w = self.workload
        return w.with_delays(0, w.lateness + w.watermark + self.ahead) if self.ahead else w

    def watermark(self, latest: int) -> int:
        """The engine's watermark when this is the latest event time."""
        limit = watermark_limit(self.workload.unit) - 1
        return min(max(latest + self.ahead if self.ahead else latest - self.workload.watermark, -limit), limit)

    def shown(self, watermark: int) -> int | None:
        """The user's watermark when this is the engine's; None before the first row."""
        if watermark <= -INFINITY:
            return None
        return max(watermark - self.ahead - self.workload.watermark, -INFINITY) if self.ahead else watermark

    def said(self) -> dict[str, Any]:
        """What must not change between two runs, besides what the engine's own snapshot holds."""
        w = self.workload
        emit = "changes" if self.ahead else "complete"
        return {"unit": w.unit, "lateness": w.lateness, "emit": emit, "shards": self.shards}


class ShardProcessor(StatefulProcessor):
    """Merges packs into the slices of a shard and reports windows."""

    def __init__(self, job: ShardJob) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before anything else."""
        self.handle = handle
        self.chunks = handle.getMapState(CHUNKS_STATE, _NAME, _CHUNK)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        """Called by Spark with the packs of one shard."""
        # Packs come in any order; the answer must not depend on it.
        packs = sorted(rows, key=lambda pack: pack.partition)
        head, shard = self._load(key)
        before = shard.counters
        tables, late = [], []
        for pack in packs:
            content = read_rows(pack.content, self.job.workload.trusted)
            for data in content["slices"]:
                shard.take_slices(*read_slices(data))
            if content["rows"]:
                tables.append(from_ipc(content["rows"]))
            if content["late"]:
                late.append(from_ipc(content["late"]))
        results = _take_rows(shard, self.job, tables) if tables else Results()
        seen = [pack.latest for pack in packs if pack.latest is not None]
        latest = max([head["latest"], *seen])
        now = timerValues.getCurrentProcessingTimeInMs() if self.job.idle is not None else 0
        head = {**head, "latest": latest, "arrived": now if seen else head["arrived"]}
        if latest > -INFINITY:
            results = results + _advance(shard, self.job.watermark(latest))
        told = yield from self._finish(key, head, shard, results, before, sum(p.bad for p in packs), late)
        self._wake_up(told, now)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Called by Spark when nothing has come for a while: the watermark follows the clock."""
        head, shard = self._load(key)
        now = timerValues.getCurrentProcessingTimeInMs()
        silent = from_micros(1000 * (now - head["arrived"]), self.job.workload.time_measure.unit)
        clock = self.job.watermark(head["latest"] + silent)
        before = shard.counters
        results = _advance(shard, clock) if head["latest"] > -INFINITY else Results()
        told = yield from self._finish(key, head, shard, results, before, 0, [])
        self._wake_up(told, now)

    def close(self) -> None:
        """Called by Spark at the end."""

    # Inside

    def _load(self, key: Any) -> tuple[dict[str, Any], Shard]:
        """The shard as it was after the last micro-batch: decoded already, or from its chunks."""
        job = self.job
        found = self.chunks.getValue((HEAD,))
        if found is None:
            head: dict[str, Any] = {"latest": -INFINITY, "arrived": 0, "version": None, "directory": {}}
            return head, Shard(job.running, job.types, job.time_type)
        rest, said = found
        head = json.loads(said)
        _check(head, job)
        shard = DECODED.take((job.run, *key), head["version"])
        if shard is None:
            shard = Shard(job.running, job.types, job.time_type)
            chunks = {name: self._chunk(name) for name in head["directory"]}
            shard.restore_state(_continued(join(rest, chunks, job.workload.trusted), head, job))
            if job.ahead and head["latest"] > -INFINITY:
                had = head["queries"]
                shard.begin([q.name for q in job.workload.queries if had.get(q.name) != repr(q)], head["latest"] + 1)
        return head, shard

    def _chunk(self, name: str) -> bytes:
        found = self.chunks.getValue((name,))
        return b"" if found is None else found[0]

    def _finish(
        self,
        key: Any,
        head: dict[str, Any],
        shard: Shard,
        results: Results,
        before: Counters,
        bad: int,
        late: list[pa.Table],
    ) -> Generator[Row, None, dict[str, Any]]:
        """Send results, keep the state; what its head says."""
        batches = _batches(shard, results, late, self.job)
        told = self._save(key, head, shard)
        now = shard.counters
        came = {"rows": now.rows - before.rows, "late": now.late_rows - before.late_rows, "bad": bad}
        kept = {"keys": told["counts"]["keys"], "slices": told["counts"]["slices"], "watermark": told["watermark"]}
        yield from reports(came | kept, batches)
        return told

    def _save(self, key: Any, head: dict[str, Any], shard: Shard) -> dict[str, Any]:
        """Write what changed; what the head says now."""
        old: dict[str, str] = head["directory"]
        state = shard.state()
        rest, chunks, directory = split(state, self.job.width, old, self.job.workload.trusted)
        for name, data in chunks.items():
            self.chunks.updateValue((name,), (data, None))
        for name in old.keys() - directory.keys():
            self.chunks.removeKey((name,))
        version = uuid.uuid4().hex
        told = _told(shard, state, self.job)
        head = {**head, "format": FORMAT, "version": version, "directory": directory, **told}
        self.chunks.updateValue((HEAD,), (rest, json.dumps(head)))
        if not os.environ.get("SLICEWISE_NO_CACHE"):
            DECODED.keep((self.job.run, *key), version, shard)
        return told

    def _wake_up(self, told: Mapping[str, Any], now: int) -> None:
        """Ask to be called again when nothing comes, as long as there is something to report."""
        if self.job.idle is None:
            return
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        if told["counts"]["slices"] or told["counts"]["tuples"]:
            self.handle.registerTimer(now + max(self.job.idle // 1000, 1))


def _take_rows(shard: Shard, job: ShardJob, tables: list[pa.Table]) -> Results:
    table = pa.concat_tables(tables)
    w = job.workload
    times = table.column(TIME)
    rows: dict[str, Any] = {w.time: times.cast(job.time_type) if w.unit is None else times}
    rows |= {name: table.column(key_name(i)) for i, name in enumerate(w.keys)}
    rows |= {name: table.column(value_name(i)) for i, name in enumerate(w.columns)}
    if ROW in table.column_names:
        rows[WHOLE] = table.column(ROW)
    return shard.process_batch(rows)


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


def _batches(shard: Shard, results: Results, bad: list[pa.Table], job: ShardJob) -> list[pa.RecordBatch]:
    output = job.output
    batches = [output.batch(b, [k.to_arrow() for k in b.keys]) for b in results.blocks]
    if output.late is None:
        shard.drop_late_rows()
        return batches
    turned_away = shard.late_rows(WHOLE, job.workload.keys)
    if turned_away is not None:
        batches.append(output.late_batch(*turned_away))
    for table in bad:
        keys = [table.column(key_name(i)).combine_chunks() for i in range(len(job.workload.keys))]
        batches.append(output.late_batch(table.column(ROW).combine_chunks(), keys))
    return batches


def _continued(state: OperatorState, head: Mapping[str, Any], job: ShardJob) -> OperatorState:
    """A state for this run. How far ahead windows are reported depends on the longest, which may be another now.

    What was reported counts as reported, and what can be corrected no more stays so.
    """
    was, now, watermark = state.description["lateness"], job.running.lateness, state.watermark
    if watermark > -INFINITY:
        watermark += max(job.ahead - head["ahead"], now - was)
    return state.with_lateness(now if job.ahead else was, watermark)


def _told(shard: Shard, state: OperatorState, job: ShardJob) -> dict[str, Any]:
    """What the head of a shard says about it: to a later run, and to those who inspect the checkpoint."""
    assert state.bound is not None
    engine, counters = state.bound.engine, state.counters
    return {
        "said": job.said(),
        "ahead": job.ahead,
        "counts": {
            "keys": shard.key_count,
            "slices": sum(map(len, engine.slices)),
            "tuples": sum(map(len, engine.rows)),
            "rows": counters.rows,
            "results": counters.results,
            "late": counters.late_rows,
        },
        "watermark": job.shown(shard.watermark),
        "queries": {q.name: repr(q) for q in job.workload.queries},
        "oldest": _oldest(engine),
        "since": {name: at for name, at in engine.since.items() if at > -INFINITY},
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
    if head["format"] < FORMAT:
        raise StateError(
            f"the checkpoint has format {head['format']}, and this version reads {FORMAT}; finish with the version "
            "that wrote it, or start with a new checkpoint"
        )
    was, now = head["said"], job.said()
    if was["shards"] != now["shards"]:
        raise StateError(
            f"the checkpoint was written with {was['shards']} shards, and this run has {now['shards']}; set "
            f"spark.sql.shuffle.partitions to {was['shards']} before run()"
        )
    for name in ("unit", "lateness", "emit"):
        if was[name] != now[name]:
            raise StateError(
                f"the checkpoint belongs to another workload: its `{name}` is {was[name]!r}, this one's {now[name]!r}; "
                "only queries may be added or removed"
            )
