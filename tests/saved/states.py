"""State of every format since the first that later versions must read, kept as files, and how it was written.

    python -m tests.saved.states

writes those of the present formats, where they are not there yet. A file is never written again: it shows that a
running query survives an upgrade.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import slicewise as sw
from slicewise import plain
from slicewise.slicing import FORMAT as SNAPSHOT_FORMAT
from slicewise.spark.streaming.processor import FORMAT as CHECKPOINT_FORMAT
from tests.spark.stream_fake import FakeHandle, FakeStream, Workers

FOLDER = Path(__file__).parent
TYPES = {"k": pa.string(), "v": pa.int64(), "w": pa.string(), "o": pa.int64()}
#: After so many steps the state was written.
WRITTEN_AFTER = 6
STEPS = 12


def kept_in_every_way() -> sw.Workload:
    """Every way of keeping state: slices, sessions, stored rows, ordered rows, what user code remembers."""
    base = sw.Workload(time="t", keys=["k"], watermark=5, lateness=40)
    return (
        base.query("sums", sw.sliding(30, every=10), total=sw.sum("v"), mean=sw.avg("v"), high=sw.max("v"))
        .query("visits", sw.session(7), n=sw.count())
        .query("texts", sw.tumbling(20), all=sw.collect_list("w"))
        .query("counts", sw.sliding(sw.rows(4), every=sw.rows(2)), total=sw.sum("v"))
        .query("recent", sw.sliding(sw.rows(3), every=15), high=sw.max("v"))
        .query("runs", sw.frames("v > 2"), n=sw.count())
        .query("enough", sw.policy(_is_enough, watch={"n": sw.count()}), total=sw.sum("v"))
    )


def of_computed_columns() -> sw.Workload:
    """Columns that are computed, rows that are meant, maps by category, partials that grow, shared ones."""
    base = sw.Workload(time="t", keys=["k"], watermark=5, lateness=40, where="v is null or v < 5")
    twice = sw.expr("v * 2 + 1")
    return (
        base.query("sums", sw.sliding(30, every=10), total=sw.sum(twice), odd=sw.sum("v").where("v % 2 = 1"))
        .query("maps", sw.tumbling(20), by=sw.sum(twice).by("w"), d=sw.stddev("v"), p=sw.product(twice))
        .query("values", sw.sliding(40, every=20), different=sw.count_distinct("v", "w"), middle=sw.median(twice))
        .query("counts", sw.sliding(sw.rows(4), every=sw.rows(2)), seen=sw.histogram(twice), top=sw.largest("v", 2))
        .query("visits", sw.session(7), best=sw.max_by("w", twice), rise=sw.longest_rise("v"))
    )


class Visits:
    """Windows that place their edges: rows at most 6 apart, and how many rows that were."""

    def __init__(self) -> None:
        self.rows = 0

    def notify_context(self, time: int, row: dict[str, Any], edges: Any) -> None:
        """Called with each row."""
        self.rows += 1
        if edges.ends and time <= edges.ends[-1]:
            edges.remove_end(edges.ends[-1])
        else:
            edges.add_start(time)
        edges.add_end(time + 5 + self.rows % 2)


class Shifts:
    """A schedule: 12 of every 16, and with every other one a longer window that holds two."""

    def next_edge(self, t: int) -> int:
        """The first start or end after ``t``."""
        return min(
            start + length for start in (t // 16 * 16, t // 16 * 16 + 16) for length in (0, 12) if start + length > t
        )

    def windows(self, after: int, upto: int) -> list[tuple[int, int]]:
        """Those that hold an instant of this range."""
        starts = range(after // 16 * 16 - 16, upto, 16)
        listed = [(s, s + 12) for s in starts] + [(s, s + 28) for s in starts if s % 32 == 0]
        return [(start, end) for start, end in listed if start < upto and end > after]


def of_edges_and_measures() -> sw.Workload:
    """Windows from tables and schedules and by user code that places edges, on every measure, with markers."""
    base = sw.Workload(time="t", keys=["k"], watermark=5, lateness=40, punctuation="w = 'cc'")
    table = {"start": [0, 20, 40, 65, 90, 130], "end": [25, 40, 60, 95, 160, 150], "k": list("xyxxyx")}
    return (
        base.query("table", sw.edges([(start, start + 23) for start in range(0, 200, 20)]), total=sw.sum("v"))
        .query("by key", sw.edges(table), n=sw.count(), all=sw.collect_list("w"))
        .query("schedule", sw.edges(Shifts()), high=sw.max("v"))
        .query("placed", sw.user_defined(Visits), total=sw.sum("v"))
        .query("marked", sw.punctuated("w = 'cc'", "v = 4"), n=sw.count())
        .query("part", sw.between(sw.rows(3), sw.rows(30)), total=sw.sum("v"))
        .query("growing", sw.cumulative(sw.rows(6), every=sw.rows(2)), n=sw.count("v"))
        .query("ever", sw.landmark(every=sw.units(10, "o"), since=0), total=sw.sum("v"))
        .query("legs", sw.session(sw.units(2, "o")), n=sw.count())
        .query("recent", sw.trailing(10), high=sw.max("v"))
        .query("few", sw.trailing(sw.rows(3)), total=sw.sum("v"))
    )


def look_backs() -> sw.Workload:
    """Windows that end together, of which results hold the differences from tick to tick."""
    base = sw.Workload(time="t", keys=["k"], watermark=5, lateness=40)
    return (
        base.query("ten", sw.sliding(10, every=2), n=sw.count(), total=sw.sum("v"))
        .query("thirty", sw.sliding(30, every=2), high=sw.max("v"), texts=sw.collect_list("w"))
        .query("two", sw.tumbling(2), n=sw.count())
    )


@dataclass(frozen=True)
class Case:
    """A workload, and the first formats of its state that every later version reads."""

    name: str
    workload: Callable[[], sw.Workload]
    first_snapshot: int
    first_checkpoint: int
    form: Mapping[str, Any] = field(default_factory=dict)

    def snapshot(self, version: int) -> Path:
        """The file of a snapshot."""
        return FOLDER / f"snapshot-{version}{self.name}.bin"

    def checkpoint(self, version: int) -> Path:
        """The file of the state of all shards."""
        return FOLDER / f"checkpoint-{version}{self.name}.json"

    def snapshots(self) -> range:
        """The formats that must be read."""
        return range(self.first_snapshot, SNAPSHOT_FORMAT + 1)

    def checkpoints(self) -> range:
        """The formats that must be read."""
        return range(self.first_checkpoint, CHECKPOINT_FORMAT + 1)

    def new_operator(self) -> Any:
        """An operator that has seen nothing."""
        return self.workload().operator(types=TYPES, **self.form)

    def new_stream(self, handles: dict[int, FakeHandle] | None = None) -> FakeStream:
        """A stream on two shards, from scratch or from a state; nothing is decoded already."""
        return FakeStream(self.workload(), types=TYPES, shards=2, workers=Workers(0), handles=handles, **self.form)

    def read_snapshot(self, version: int) -> Any:
        """A snapshot of one format."""
        return plain.load(self.snapshot(version).read_bytes(), self.workload().trusted)

    def read_checkpoint(self, version: int) -> dict[int, FakeHandle]:
        """The state of all shards, of one format."""
        handles = {}
        for shard, chunks in json.loads(self.checkpoint(version).read_text()).items():
            handles[int(shard)] = handle = FakeHandle()
            handle.map.data = {(name,): (base64.b64decode(data), head) for name, (data, head) in chunks.items()}
            handle.commit()
        return handles

    def write(self) -> Iterator[Path]:
        """Write the state of the present formats, where it is not there yet."""
        snapshot, checkpoint = self.snapshot(SNAPSHOT_FORMAT), self.checkpoint(CHECKPOINT_FORMAT)
        if not snapshot.exists():
            op = self.new_operator()
            for step in range(WRITTEN_AFTER):
                op.process_batch(columns_of(step))
                op.advance(13 * step)
            snapshot.write_bytes(plain.dump(op.snapshot(), self.workload().trusted))
            yield snapshot
        if not checkpoint.exists() and self.first_checkpoint <= CHECKPOINT_FORMAT:
            stream = self.new_stream()
            stream_results(stream, range(WRITTEN_AFTER))
            chunks = {
                shard: {n: (base64.b64encode(data).decode(), head) for (n,), (data, head) in handle.map.data.items()}
                for shard, handle in stream.handles.items()
            }
            checkpoint.write_text(json.dumps(chunks, indent=1))
            yield checkpoint


WIDE_DIFFERENCES = {"shape": "wide", "emit": "differences"}
CASES = [
    Case("", kept_in_every_way, 5, 4),
    Case("-computed", of_computed_columns, 6, 5),
    Case("-edges", of_edges_and_measures, 6, 5),
    Case("-differences", look_backs, 7, 6, WIDE_DIFFERENCES),
]


def _is_enough(total: dict[str, Any], oldest: dict[str, Any]) -> bool:
    return bool(total["n"] - oldest["n"] >= 3)


def rows_of(step: int) -> list[dict[str, Any]]:
    """The rows of one step: a few out of order, two keys, nulls."""
    rows = []
    for i in range(8):
        time = 13 * step + (5 * i + 3 * step) % 17
        value = None if (i + step) % 7 == 0 else (3 * i + step) % 6
        text = "abc"[i % 3] * (1 + step % 2)
        rows.append({"t": time, "k": "xy"[(i * i + step) % 2], "v": value, "w": text, "o": time // 2})
    return rows


def columns_of(step: int) -> dict[str, list[Any]]:
    """The same rows, column by column."""
    return {name: [row[name] for row in rows_of(step)] for name in ("t", *TYPES)}


def operator_results(op: Any, steps: range) -> list[Any]:
    """What an operator reports in some steps, and at the end."""
    results: list[Any] = []
    for step in steps:
        results += op.process_batch(columns_of(step))
        results += op.advance(13 * step)
    return results + list(op.close())


def stream_results(stream: FakeStream, steps: range) -> list[Any]:
    """What a stream reports in some micro-batches."""
    return [result for step in steps for result in stream.batch([rows_of(step)])]


if __name__ == "__main__":
    for case in CASES:
        for path in case.write():
            print(path.name)
