"""A stream without a JVM: packer and processor on state in dictionaries, one per shard, that can be rolled back.

What Spark does between the two is done here in a few lines: rows meet their shard, each micro-batch is run by workers
with memories of their own, and what it wrote counts when all shards are done.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pyarrow as pa
from pyspark.sql import Row

import slicewise as sw
from slicewise.conditions.expression import derived_types
from slicewise.options import RunOptions
from slicewise.plan.panels import Form
from slicewise.plan.plan import VALUES, plan_for
from slicewise.plan.routes import carries_stamps
from slicewise.results import CHANGES, Result
from slicewise.slicing.intake.input import CLOCK_TYPE, bounds_type
from slicewise.spark.output import LATE, LATE_CHANGE, REASON
from slicewise.spark.source import TIME, Source, key_name, value_name
from slicewise.spark.streaming import heartbeat, processor
from slicewise.spark.streaming.decoded import DecodedShards
from slicewise.spark.streaming.packs import NOW, PACK, ROW, SHARD, Packer
from slicewise.spark.streaming.processor import HEAD, ShardProcessor
from slicewise.spark.streaming.shard_reports import report_type
from slicewise.spark.streaming.stream import _ahead, _can_slice, _job
from slicewise.spark.types import arrow_type
from slicewise.times import INFINITY
from tests.arrow_rows import rows_with_maps
from tests.slicing.running import TYPES

#: Rows of a micro-batch, by partition.
Partitions = Sequence[Sequence[Mapping[str, Any]]]
#: What a shard gets when the heartbeat beats.
BEAT = Row(**dict.fromkeys(PACK.names))


class Crash(Exception):
    """The machine went down."""


class FakeMap:
    """A MapState in a dictionary. Counts what is written, and may go down at a given write."""

    def __init__(self) -> None:
        self.data: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self.written: Counter[str] = Counter()
        self.crash_after: int | None = None

    def exists(self) -> bool:
        return bool(self.data)

    def getValue(self, key: tuple[Any, ...]) -> tuple[Any, ...] | None:
        return self.data.get(key)

    def containsKey(self, key: tuple[Any, ...]) -> bool:
        return key in self.data

    def updateValue(self, key: tuple[Any, ...], value: tuple[Any, ...]) -> None:
        self._write(key)
        self.data[key] = value

    def removeKey(self, key: tuple[Any, ...]) -> None:
        self._write(key)
        self.data.pop(key, None)

    def iterator(self) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        return iter(list(self.data.items()))

    def keys(self) -> Iterator[tuple[Any, ...]]:
        return iter(list(self.data))

    def values(self) -> Iterator[tuple[Any, ...]]:
        return iter(list(self.data.values()))

    def clear(self) -> None:
        self.data.clear()

    def _write(self, key: tuple[Any, ...]) -> None:
        if self.crash_after is not None:
            if self.crash_after == 0:
                raise Crash
            self.crash_after -= 1
        self.written[key[0]] += 1


class FakeHandle:
    """What a processor gets from Spark for one shard: its state, which lasts when it is committed."""

    def __init__(self) -> None:
        self.map = FakeMap()
        self.commit()

    def getMapState(self, name: str, key: Any, value: Any, ttlDurationMs: int | None = None) -> FakeMap:
        return self.map

    def commit(self) -> None:
        self.saved = dict(self.map.data)
        self.map.crash_after = None

    def rollback(self) -> None:
        self.map.data = dict(self.saved)
        self.map.crash_after = None

    @property
    def size(self) -> int:
        return sum(len(value[0]) + len(value[1] or "") for value in self.map.data.values())


class Workers:
    """Python workers, each with what it has decoded so far. None at all: everything is read from the state."""

    def __init__(self, count: int = 1) -> None:
        self.memories = [DecodedShards(most=1 << 30) for _ in range(count)]
        self._turn = 0

    @contextmanager
    def next(self) -> Iterator[None]:
        """One of them, in turn."""
        memory = DecodedShards(most=0)
        if self.memories:
            memory = self.memories[self._turn % len(self.memories)]
            self._turn += 1
        with mock.patch.object(processor, "DECODED", memory):
            yield


class FakeStream:
    """A workload over micro-batches. Stop it with ``again``, and another workload goes on from the same state.

    Event times are integers, also where ``time_type`` is a timestamp; where the workload names their unit, bounds come
    out as microseconds. On processing time rows get ``now``, in milliseconds, which a test may set.
    """

    def __init__(
        self,
        workload: sw.Workload,
        *,
        types: Mapping[str, pa.DataType] = TYPES,
        time_type: pa.DataType | None = None,
        shards: int = 3,
        late: str | None = None,
        bad: str | None = None,
        workers: Workers | None = None,
        handles: dict[int, FakeHandle] | None = None,
        **options: Any,
    ) -> None:
        self.workload = workload
        self.types = {name: types[name] for name in (*workload.keys, *workload.inputs)}
        self.types |= derived_types(workload.columns, self.types)
        self.row_type = pa.struct([(workload.time, pa.int64()), *types.items()]) if late or bad else None
        self.shards = tuple(range(shards))
        self.time_type = time_type
        time_type = bounds_type(time_type or pa.int64(), workload) if workload.on_clock is None else CLOCK_TYPE
        form = Form.of_run(RunOptions(**options))
        make_plan = partial(plan_for, workload, self.types, time_type=time_type, ties=VALUES, form=form)
        plan = make_plan()
        source = Source(workload, None, self.types, time_type, frozenset(), {}, {})  # type: ignore[arg-type]
        job = _job(source, plan, RunOptions(bad=bad, **options), shards)
        self.job = replace(job, output=replace(job.output, late=self.row_type)) if late else job
        self.report_type = arrow_type(report_type(self.job.output), "report")
        self.packer = Packer(
            make_plan,
            self.types,
            workload.trusted,
            self.shards,
            slices=_can_slice(plan, late, bad) and not carries_stamps(workload),
            keys=len(workload.keys),
            bad=bad,
            ahead=_ahead(options.get("ahead"), source),
            unit=workload.time_measure.unit,
        )
        self.workers = workers or Workers()
        self.handles = handles or {shard: FakeHandle() for shard in self.shards}
        self.late: list[dict[str, Any]] = []
        #: Why each of those rows was given back.
        self.reasons: list[str] = []
        self.metrics: list[SimpleNamespace] = []
        self.now = 1_000_000

    def again(self, workload: sw.Workload | None = None, **changes: Any) -> FakeStream:
        """The stream after a restart, perhaps with another workload."""
        how: dict[str, Any] = {"shards": len(self.shards), "workers": self.workers, "handles": self.handles}
        how = {**how, "time_type": self.time_type, **changes}
        return FakeStream(workload or self.workload, **how)

    # A micro-batch

    def batch(self, partitions: Partitions, crash: tuple[int, int] | None = None) -> list[Result]:
        """The results of a micro-batch; ``crash`` is where the machine goes down: shard, and writes before that."""
        packs = self.packs(partitions)
        if crash is not None:
            self.handles[crash[0] % len(self.shards)].map.crash_after = crash[1]
        if not any(packs.values()):
            return []
        return self._run({shard: partial(self._rows_in, packs[shard]) for shard in self.shards})

    def tick(self, milliseconds: int, crash: tuple[int, int] | None = None) -> list[Result]:
        """A micro-batch without rows, some time later: only the heartbeat."""
        self.now += milliseconds
        if crash is not None:
            self.handles[crash[0] % len(self.shards)].map.crash_after = crash[1]
        return self._run({shard: partial(self._rows_in, [BEAT]) for shard in self.shards})

    def packs(self, partitions: Partitions) -> dict[int, list[Row]]:
        """What every shard gets."""
        packs: dict[int, list[Row]] = {shard: [] for shard in self.shards}
        for number, rows in enumerate(partitions):
            for batch in self.packer(_in_pieces(self._input(rows)) if rows else iter(())):
                for pack in batch.to_pylist():
                    packs[pack["shard"]].append(Row(**{**pack, "partition": number}))
        return packs

    def _run(self, calls: Mapping[int, Any]) -> list[Result]:
        found: list[Result] = []
        late: list[tuple[dict[str, Any], str]] = []
        reports = []
        try:
            for shard, call in calls.items():
                with self.workers.next():
                    mine = ShardProcessor(self.job)
                    mine.init(self.handles[shard])  # type: ignore[arg-type]
                    for report in call(mine, shard):
                        reports.append(report)
                        found += self._results(report, late)
                    mine.close()
        except BaseException:
            for handle in self.handles.values():
                handle.rollback()
            raise
        for handle in self.handles.values():
            handle.commit()
        self.late += [row for row, _ in late]
        self.reasons += [reason for _, reason in late]
        self.metrics += [SimpleNamespace(**report.metrics) for report in reports if report.metrics is not None]
        return found

    def _rows_in(self, packs: list[Row], mine: ShardProcessor, shard: int) -> Iterator[Row]:
        # Packs come in any order.
        times = {heartbeat.NOW: self.now} if self.job.idle is not None else {}
        received = [Row(**pack.asDict(), **times) for pack in packs[::-1]]
        no_timers: Any = SimpleNamespace()
        return mine.handleInputRows((shard,), iter(received), no_timers)

    def _input(self, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
        w = self.workload
        on_clock = w.on_clock is not None
        columns = {TIME: pa.array([1000 * self.now if on_clock else r[w.time] for r in rows], pa.int64())}
        columns |= {key_name(i): pa.array([r[n] for r in rows], self.types[n]) for i, n in enumerate(w.keys)}
        columns |= {value_name(i): pa.array([r[n] for r in rows], self.types[n]) for i, n in enumerate(w.inputs)}
        homes = [home_of([r[k] for k in w.keys], len(self.shards)) for r in rows]
        columns[SHARD] = pa.array(homes, pa.int32())
        if self.row_type is not None:
            columns[ROW] = pa.array(list(rows), self.row_type)
        if self.packer.ahead is not None:
            columns[NOW] = pa.array([1000 * self.now] * len(rows), pa.int64())
        return pa.RecordBatch.from_pydict(columns)

    # What came out

    def _results(self, report: Row, late: list[tuple[dict[str, Any], str]]) -> list[Result]:
        # As Spark does it: what Python returned becomes an Arrow array of the type that was promised.
        sent = pa.array([report.asDict(True)], self.report_type)
        columns = dict(zip(self.job.output.arrow_schema().names, sent.field("results").flatten(), strict=True))
        table = pa.table({name: _numbers(column.flatten()) for name, column in columns.items()})
        found = []
        # Maps are dicts, as the operator has them.
        for row in rows_with_maps(table):
            if row["change"] == LATE_CHANGE:
                late.append((row[LATE], row[REASON]))
            else:
                assert row.get(REASON) is None
                found.append(self._result(row))
        return found

    def _result(self, row: dict[str, Any]) -> Result:
        said = self.job.output.schema
        own = list(said.column_types)
        name, columns = (None, own) if said.wide else said.queries[row["query"]]
        bounds = row.get("start"), row["end"]
        if row.get("span_start") is not None:
            bounds = row["span_start"], row["span_end"]
        values = {c: row[f"v{own.index(c)}"] for c in columns}
        key = tuple(row[key_name(i)] for i in range(len(said.key_names)))
        return Result(key, name, *bounds, CHANGES[row["change"]], row["revision"], values)

    def heads(self) -> list[dict[str, Any]]:
        """What the heads of the shards say."""
        found = [h.map.getValue((HEAD,)) for h in self.handles.values()]
        return [json.loads(head[1]) for head in found if head is not None]

    @property
    def size(self) -> int:
        """Bytes of state, in all shards."""
        return sum(handle.size for handle in self.handles.values())


def _numbers(column: pa.Array) -> pa.Array:
    """Timestamps in microseconds, which may lie far beyond what Python calls a datetime."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _in_pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Arrow hands over a partition in several batches."""
    size = -(-batch.num_rows // 3)
    return (batch.slice(at, size) for at in range(0, batch.num_rows, size))


def home_of(key: Sequence[Any], shards: int) -> int:
    """Where a key lives; without a key, all rows live in the first shard."""
    return zlib.crc32(repr(key).encode()) % shards if key else 0


class Reference:
    """The in-process operator, or the oracle, over the same micro-batches."""

    def __init__(self, runs: Any, workload: sw.Workload, ahead: int = 0) -> None:
        self.runs, self.workload, self.ahead = runs, workload, ahead
        self.latest = -INFINITY

    def batch(self, partitions: Partitions) -> list[Result]:
        """The results of a micro-batch."""
        rows = [r for partition in partitions for r in partition if r[self.workload.time] is not None]
        if hasattr(self.runs, "workload"):
            names = (self.workload.time, *self.workload.keys, *self.workload.inputs)
            if rows:
                assert not self.runs.process_batch({n: [r[n] for r in rows] for n in names})
        else:
            for row in rows:
                self.runs.process(row[self.workload.time], row, tuple(row[k] for k in self.workload.keys))
        self.latest = max([self.latest, *(r[self.workload.time] for r in rows)])
        if self.latest <= -INFINITY:
            return []
        at = self.latest + self.ahead if self.ahead else self.latest - self.workload.watermark
        return list(self.runs.advance(at))
