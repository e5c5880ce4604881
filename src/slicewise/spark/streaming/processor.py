"""The processor: what Spark calls for each shard of a micro-batch. Packs in, results out, state kept in chunks."""

from __future__ import annotations

import os
import pickle
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

from slicewise.errors import StateError
from slicewise.results import Results
from slicewise.slicing.periodic import NEVER
from slicewise.slicing.shard import Shard
from slicewise.spark.output import Output
from slicewise.spark.source import TIME, key_name, value_name
from slicewise.spark.streaming.chunks import digest, join, split
from slicewise.spark.streaming.packs import ROW, from_ipc, read_rows, read_slices, to_ipc
from slicewise.workload import Workload

__all__ = ["CHUNKS_STATE", "HEAD", "REPORT", "ShardJob", "ShardProcessor"]

#: What a shard sends per micro-batch: its results, and how it is.
REPORT = T.StructType(
    [
        T.StructField("results", T.BinaryType()),
        T.StructField("rows", T.LongType()),
        T.StructField("late", T.LongType()),
        T.StructField("bad", T.LongType()),
        T.StructField("keys", T.LongType()),
        T.StructField("slices", T.LongType()),
        T.StructField("watermark", T.LongType()),
    ]
)
#: The state variable that holds the chunks.
CHUNKS_STATE = "chunks"
#: The first chunk: which others there are, and what of the state is not the engine's.
HEAD = "head"
FORMAT = 1
#: Decoded shards of this worker, by the version of their state.
_DECODED: OrderedDict[str, Shard] = OrderedDict()
#: How many are kept.
MOST_DECODED = 64


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
    """

    workload: Workload
    types: Mapping[str, pa.DataType]
    time_type: pa.DataType
    output: Output
    ahead: int
    width: int
    idle: int | None
    shards: int

    @property
    def running(self) -> Workload:
        """The workload as the engine runs it: what is reported ahead of time stays open as long as it would have."""
        w = self.workload
        return w._waiting(0, w.lateness + w.watermark + self.ahead) if self.ahead else w

    def watermark(self, latest: int) -> int:
        """The engine's watermark when this is the latest event time."""
        return latest + self.ahead if self.ahead else latest - self.workload.watermark

    def said(self) -> dict[str, Any]:
        """What must not change between two runs, besides what the engine's own snapshot holds."""
        w = self.workload
        return {"lateness": w.lateness, "emit": "changes" if self.ahead else "complete", "shards": self.shards}


class ShardProcessor(StatefulProcessor):
    """Merges packs into the slices of a shard and reports windows."""

    def __init__(self, job: ShardJob) -> None:
        self.job = job

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before anything else."""
        self.handle = handle
        self.chunks = handle.getMapState(CHUNKS_STATE, "name string", "data binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        """Called by Spark with the packs of one shard."""
        # Packs come in any order; the answer must not depend on it.
        packs = sorted(rows, key=lambda pack: pack.partition)
        head, shard = self._load()
        before = (shard._rows, shard._late_rows)
        tables, late = [], []
        for pack in packs:
            content = read_rows(pack.content)
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
        if latest > -NEVER:
            results = results + shard.advance(max(shard.watermark, self.job.watermark(latest)))
        yield from self._finish(head, shard, results, before, sum(p.bad for p in packs), late)
        self._wake_up(shard, now)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Called by Spark when nothing has come for a while: the watermark follows the clock."""
        head, shard = self._load()
        now = timerValues.getCurrentProcessingTimeInMs()
        clock = self.job.watermark(head["latest"] + 1000 * (now - head["arrived"]))
        before = (shard._rows, shard._late_rows)
        results = shard.advance(max(shard.watermark, clock)) if head["latest"] > -NEVER else Results()
        yield from self._finish(head, shard, results, before, 0, [])
        self._wake_up(shard, now)

    def close(self) -> None:
        """Called by Spark at the end."""

    # Inside

    def _load(self) -> tuple[dict[str, Any], Shard]:
        """The shard as it was after the last micro-batch: decoded already, or from its chunks."""
        job = self.job
        found = self._chunk(HEAD)
        if not found:
            head: dict[str, Any] = {"latest": -NEVER, "arrived": 0, "version": None, "directory": {}}
            return head, Shard(job.running, job.types, job.time_type)
        head = pickle.loads(found)
        _check(head, job)
        shard = _DECODED.pop(head["version"], None)
        if shard is None:
            snapshot = join({name: self._chunk(name) for name in head["directory"]})
            # What is reported ahead of time depends on the longest window, and that may be another one now.
            snapshot["workload"]["lateness"] = job.running.lateness
            snapshot["watermark"] += job.ahead - head["ahead"]
            shard = Shard(job.running, job.types, job.time_type)
            shard.restore(snapshot)
        return head, shard

    def _chunk(self, name: str) -> bytes:
        found = self.chunks.getValue((name,))
        return b"" if found is None else found[0]

    def _finish(
        self,
        head: dict[str, Any],
        shard: Shard,
        results: Results,
        before: tuple[int, int],
        bad: int,
        late: list[pa.Table],
    ) -> Iterator[Row]:
        """Send results, keep the state."""
        batches = _batches(shard, results, late, self.job)
        sent = to_ipc(pa.Table.from_batches(batches)) if batches else None
        self._save(head, shard)
        stats = shard.engine.state
        yield Row(
            results=sent,
            rows=shard._rows - before[0],
            late=shard._late_rows - before[1],
            bad=bad,
            keys=len(shard._keys) if self.job.workload.keys else 1,
            slices=len(stats.slices),
            watermark=head["latest"] - self.job.workload.watermark if head["latest"] > -NEVER else None,
        )

    def _save(self, head: dict[str, Any], shard: Shard) -> None:
        old: dict[str, str] = head["directory"]
        chunks = split(shard.snapshot(), self.job.width)
        directory = {name: digest(data) for name, data in chunks.items()}
        for name, data in chunks.items():
            if old.get(name) != directory[name]:
                self.chunks.updateValue((name,), (data,))
        for name in old.keys() - directory.keys():
            self.chunks.removeKey((name,))
        version = uuid.uuid4().hex
        head = {**head, "format": FORMAT, "version": version, "directory": directory, **_told(shard, self.job)}
        self.chunks.updateValue((HEAD,), (pickle.dumps(head, protocol=5),))
        if not os.environ.get("SLICEWISE_NO_CACHE"):
            _DECODED[version] = shard
            while len(_DECODED) > MOST_DECODED:
                _DECODED.popitem(last=False)

    def _wake_up(self, shard: Shard, now: int) -> None:
        """Ask to be called again when nothing comes, as long as there is something to report."""
        if self.job.idle is None:
            return
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        state = shard.engine.state
        if len(state.slices) or any(len(track.rows) for track in state.tracks):
            self.handle.registerTimer(now + max(self.job.idle // 1000, 1))


def _take_rows(shard: Shard, job: ShardJob, tables: list[pa.Table]) -> Results:
    table = pa.concat_tables(tables)
    w = job.workload
    rows: dict[str, Any] = {w.time: table.column(TIME).cast(job.time_type)}
    rows |= {name: table.column(key_name(i)) for i, name in enumerate(w.keys)}
    rows |= {name: table.column(value_name(i)) for i, name in enumerate(w.columns)}
    if ROW in table.column_names:
        rows[ROW] = table.column(ROW)
    return shard.process_batch(rows)


def _batches(shard: Shard, results: Results, bad: list[pa.Table], job: ShardJob) -> list[pa.RecordBatch]:
    output = job.output
    batches = [output.batch(b, [k.to_arrow() for k in b.keys]) for b in results.blocks]
    if output.late is None:
        shard.drop_late_rows()
        return batches
    turned_away = shard.late_rows(ROW, job.workload.keys)
    if turned_away is not None:
        batches.append(output.late_batch(*turned_away))
    for table in bad:
        keys = [table.column(key_name(i)).combine_chunks() for i in range(len(job.workload.keys))]
        batches.append(output.late_batch(table.column(ROW).combine_chunks(), keys))
    return batches


def _told(shard: Shard, job: ShardJob) -> dict[str, Any]:
    """What the head of a shard says about it: to a later run, and to those who inspect the checkpoint."""
    state = shard.engine.state
    stored = [state.tuples, *(track.rows for track in state.tracks)]
    return {
        "said": job.said(),
        "ahead": job.ahead,
        "counts": {
            "keys": len(shard._keys) if job.workload.keys else 1,
            "slices": len(state.slices),
            "tuples": sum(map(len, stored)),
            "rows": shard._rows,
            "results": shard._results,
            "late": shard._late_rows,
        },
        "watermark": shard.watermark - job.ahead if shard.watermark > -NEVER else None,
        "queries": {q.name: repr(q) for q in job.workload.queries},
        "since": {name: at for name, at in state.since.items() if at > -NEVER},
        "timestamps": pa.types.is_timestamp(job.time_type),
    }


def _check(head: Mapping[str, Any], job: ShardJob) -> None:
    if head["format"] > FORMAT:
        raise StateError(
            f"the checkpoint has format {head['format']}, and this version reads up to {FORMAT}; upgrade slicewise"
        )
    was, now = head["said"], job.said()
    if was["shards"] != now["shards"]:
        raise StateError(
            f"the checkpoint was written with {was['shards']} shards, and this run has {now['shards']}; set "
            f"spark.sql.shuffle.partitions to {was['shards']} before run()"
        )
    for name in ("lateness", "emit"):
        if was[name] != now[name]:
            raise StateError(
                f"the checkpoint belongs to another workload: its `{name}` is {was[name]!r}, this one's {now[name]!r}; "
                "only queries may be added or removed"
            )
