"""The processor: what Spark calls for each shard of a micro-batch. Packs in, results out, state kept in chunks."""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
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
from slicewise.errors import OverflowInWindowError, StateError, UserCodeInWindowError
from slicewise.results import Results
from slicewise.slicing.input import watermark_limit
from slicewise.slicing.shard import Shard
from slicewise.spark.output import Output
from slicewise.spark.source import TIME, key_name, value_name
from slicewise.spark.streaming.chunks import join, split
from slicewise.spark.streaming.decoded import DECODED
from slicewise.spark.streaming.packs import ROW, from_ipc, read_rows, read_slices
from slicewise.spark.streaming.reports import reports
from slicewise.spark.streaming.returned import WHOLE, ReturnedRows, bad_metrics
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["CHUNKS_STATE", "HEAD", "ShardJob", "ShardProcessor"]

#: The state variable that holds the chunks, by name. As types and not as text, which Spark would have to be asked to
#: read in every micro-batch, once for each time it is said.
CHUNKS_STATE = "chunks"
_NAME = T.StructType([T.StructField("name", T.StringType())])
_CHUNK = T.StructType([T.StructField("data", T.BinaryType()), T.StructField("said", T.StringType())])
#: The chunk that is always written. It says, in JSON, which others there are and what of the state is not the engine's.
HEAD = "head"
FORMAT = 3
_LOG = logging.getLogger("slicewise")


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
    bad
        ``"fail"`` stops at a bad row.
    gaps
        Whether rows after too many ticks are bad; where rows are judged by the clock, they are not.
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
    bad: str | None = None
    gaps: bool = True
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def running(self) -> Workload:
        """The workload as the engine runs it: what is reported ahead of time stays open as long as it would have."""
        w = self.workload
        return w._waiting(0, w.lateness + w.watermark + self.ahead) if self.ahead else w

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
        before = (shard._rows, shard._late_rows)
        tables, returned, bad = [], [], Counter[str]()
        for pack in packs:
            content = read_rows(pack.content, self.job.workload.trusted)
            for data in content["slices"]:
                shard.take_slices(*read_slices(data))
            if content["rows"]:
                tables.append(from_ipc(content["rows"]))
            if content["returned"]:
                returned.append(from_ipc(content["returned"]))
            bad.update(content["bad"])
        results = _take_rows(shard, self.job, tables) if tables else Results()
        seen = [pack.latest for pack in packs if pack.latest is not None]
        latest = max([head["latest"], *seen])
        now = timerValues.getCurrentProcessingTimeInMs() if self.job.idle is not None else 0
        head = {**head, "latest": latest, "arrived": now if seen else head["arrived"]}
        if latest > -INFINITY:
            results = results + _advance(shard, self.job.watermark(latest))
        told = yield from self._finish(key, head, shard, results, before, bad, returned)
        self._wake_up(told, now)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Called by Spark when nothing has come for a while: the watermark follows the clock."""
        head, shard = self._load(key)
        now = timerValues.getCurrentProcessingTimeInMs()
        silent = from_micros(1000 * (now - head["arrived"]), self.job.workload.time_measure.unit)
        clock = self.job.watermark(head["latest"] + silent)
        before = (shard._rows, shard._late_rows)
        results = _advance(shard, clock) if head["latest"] > -INFINITY else Results()
        told = yield from self._finish(key, head, shard, results, before, Counter(), [])
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
            return head, Shard(job.running, job.types, job.time_type, gaps=job.gaps)
        rest, said = found
        head = json.loads(said)
        _check(head, job)
        shard = DECODED.take((job.run, *key), head["version"])
        if shard is None:
            shard = Shard(job.running, job.types, job.time_type, gaps=job.gaps)
            chunks = {name: self._chunk(name) for name in head["directory"]}
            shard.restore(_continued(join(rest, chunks, job.workload.trusted), head, job))
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
        before: tuple[int, int],
        bad: Counter[str],
        packed: list[pa.Table],
    ) -> Generator[Row, None, dict[str, Any]]:
        """Send results, keep the state; what its head says."""
        job = self.job
        returned = ReturnedRows(shard, job.workload, job.output, packed, fail=job.bad == "fail")
        bad = bad + returned.counts()
        given_back = list(returned.batches())
        failed = _failed_windows(shard, fail=job.bad == "fail")
        # Heads of before bad rows and failed windows were counted say nothing of them.
        counts = {"bad": dict(Counter(head.get("bad", {})) + bad), "failed": head.get("failed", 0) + failed}
        told = self._save(key, {**head, **counts}, shard)
        came = {"rows": shard._rows - before[0], "late": shard._late_rows - before[1]}
        came |= {**bad_metrics(bad), "failed": failed}
        kept = {"keys": told["counts"]["keys"], "slices": told["counts"]["slices"], "watermark": told["watermark"]}
        found = (job.output.batch(b, [k.to_arrow() for k in b.keys]) for b in results.blocks)
        yield from reports(came | kept, chain(found, given_back))
        return told

    def _save(self, key: Any, head: dict[str, Any], shard: Shard) -> dict[str, Any]:
        """Write what changed; what the head says now."""
        old: dict[str, str] = head["directory"]
        snapshot = shard.snapshot()
        rest, chunks, directory = split(snapshot, self.job.width, old, self.job.workload.trusted)
        for name, data in chunks.items():
            self.chunks.updateValue((name,), (data, None))
        for name in old.keys() - directory.keys():
            self.chunks.removeKey((name,))
        version = uuid.uuid4().hex
        told = _told(shard, snapshot, self.job)
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


def _failed_windows(shard: Shard, *, fail: bool) -> int:
    """How many windows have no value because user code failed; the first of them is named in the worker's log."""
    error = shard.failed_windows()
    if error is None:
        return 0
    if fail:
        raise UserCodeInWindowError(error.reason, error.label, stopped=True)
    _LOG.warning("%s", error)
    return 1 + error.others


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


def _continued(snapshot: dict[str, Any], head: Mapping[str, Any], job: ShardJob) -> dict[str, Any]:
    """A snapshot for this run. How far ahead windows are reported depends on the longest, which may be another now.

    What was reported counts as reported, and what can be corrected no more stays so.
    """
    was, now = snapshot["workload"]["lateness"], job.running.lateness
    if job.ahead:
        snapshot["workload"]["lateness"] = now
    if snapshot["watermark"] > -INFINITY:
        snapshot["watermark"] += max(job.ahead - head["ahead"], now - was)
    return snapshot


def _told(shard: Shard, snapshot: Mapping[str, Any], job: ShardJob) -> dict[str, Any]:
    """What the head of a shard says about it: to a later run, and to those who inspect the checkpoint."""
    slices, tuples, tracks = snapshot["slices"], snapshot["tuples"], shard.engine.state.tracks
    sliced = sum(track.slice_count for track in tracks)
    return {
        "said": job.said(),
        "ahead": job.ahead,
        "counts": {
            "keys": len(shard._keys) if job.workload.keys else int(shard._rows > 0),
            "slices": len(slices["key"]) + sliced,
            "tuples": len(tuples["key"]) + sum(len(track.rows) for track in tracks) - sliced,
            "rows": shard._rows,
            "results": shard._results,
            "late": shard._late_rows,
        },
        "watermark": job.shown(shard.watermark),
        "queries": {q.name: repr(q) for q in job.workload.queries},
        "oldest": _oldest(snapshot),
        "since": {name: at for name, at in snapshot["since"].items() if at > -INFINITY},
        "timestamps": pa.types.is_timestamp(job.time_type),
        "unit": job.workload.time_measure.unit,
    }


def _oldest(snapshot: Mapping[str, Any]) -> int | None:
    """The event time of the oldest row that the state still holds."""
    arrays = [snapshot["slices"]["first"], snapshot["tuples"]["time"], *(t["rows"]["time"] for t in snapshot["tracks"])]
    times = [int(array.min()) for array in arrays if len(array)]
    return min(times, default=None)


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
