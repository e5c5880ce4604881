"""State of every format since the first that later versions must read, kept as files, and how it was written.

    python -m tests.saved.states

writes those of the present formats, where they are not there yet. A file is never written again: it shows that a
running query survives an upgrade.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import slicewise as sw
from slicewise import plain
from slicewise.slicing import FORMAT as SNAPSHOT_FORMAT
from slicewise.spark.streaming.processor import FORMAT as CHECKPOINT_FORMAT
from tests.spark.stream_fake import FakeHandle, FakeStream, Workers

FOLDER = Path(__file__).parent
TYPES = {"k": pa.string(), "v": pa.int64(), "w": pa.string()}
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


@dataclass(frozen=True)
class Case:
    """A workload, and the first formats of its state that every later version reads."""

    name: str
    workload: Callable[[], sw.Workload]
    first_snapshot: int
    first_checkpoint: int

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
        return self.workload().operator(types=TYPES)

    def new_stream(self, handles: dict[int, FakeHandle] | None = None) -> FakeStream:
        """A stream on two shards, from scratch or from a state; nothing is decoded already."""
        return FakeStream(self.workload(), types=TYPES, shards=2, workers=Workers(0), handles=handles)

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
        if not checkpoint.exists():
            stream = self.new_stream()
            stream_results(stream, range(WRITTEN_AFTER))
            chunks = {
                shard: {n: (base64.b64encode(data).decode(), head) for (n,), (data, head) in handle.map.data.items()}
                for shard, handle in stream.handles.items()
            }
            checkpoint.write_text(json.dumps(chunks, indent=1))
            yield checkpoint


CASES = [Case("", kept_in_every_way, 5, 4), Case("-computed", of_computed_columns, 6, 5)]


def _is_enough(total: dict[str, Any], oldest: dict[str, Any]) -> bool:
    return bool(total["n"] - oldest["n"] >= 3)


def rows_of(step: int) -> list[dict[str, Any]]:
    """The rows of one step: a few out of order, two keys, nulls."""
    rows = []
    for i in range(8):
        time = 13 * step + (5 * i + 3 * step) % 17
        value = None if (i + step) % 7 == 0 else (3 * i + step) % 6
        text = "abc"[i % 3] * (1 + step % 2)
        rows.append({"t": time, "k": "xy"[(i * i + step) % 2], "v": value, "w": text})
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
