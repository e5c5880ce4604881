"""State of every format since the first that later versions must read, kept as files, and how it was written.

    python -m tests.saved.states

writes those of the present formats, where they are not there yet. A file is never written again: it shows that a
running query survives an upgrade.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import slicewise as sw
from slicewise import plain
from slicewise.slicing import FORMAT as SNAPSHOT_FORMAT
from slicewise.spark.streaming.processor import FORMAT as CHECKPOINT_FORMAT
from tests.spark.stream_fake import FakeHandle, FakeStream, Workers

FOLDER = Path(__file__).parent
#: The first formats that every later version reads.
FIRST_SNAPSHOT, FIRST_CHECKPOINT = 5, 4
TYPES = {"k": pa.string(), "v": pa.int64(), "w": pa.string()}
#: After so many steps the state was written.
WRITTEN_AFTER = 6
STEPS = 12


def workload() -> sw.Workload:
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


def new_operator() -> Any:
    """An operator that has seen nothing."""
    return workload().operator(types=TYPES)


def stream_results(stream: FakeStream, steps: range) -> list[Any]:
    """What a stream reports in some micro-batches."""
    return [result for step in steps for result in stream.batch([rows_of(step)])]


def new_stream(handles: dict[int, FakeHandle] | None = None) -> FakeStream:
    """A stream on two shards, from scratch or from a state; nothing is decoded already."""
    return FakeStream(workload(), types=TYPES, shards=2, workers=Workers(0), handles=handles)


def read_snapshot(version: int) -> Any:
    """A snapshot of one format."""
    return plain.load((FOLDER / f"snapshot-{version}.bin").read_bytes(), workload().trusted)


def read_checkpoint(version: int) -> dict[int, FakeHandle]:
    """The state of all shards, of one format."""
    handles = {}
    for shard, chunks in json.loads((FOLDER / f"checkpoint-{version}.json").read_text()).items():
        handles[int(shard)] = handle = FakeHandle()
        handle.map.data = {(name,): (base64.b64decode(data), head) for name, (data, head) in chunks.items()}
        handle.commit()
    return handles


def write() -> Iterator[Path]:
    """Write the state of the present formats, where it is not there yet."""
    snapshot = FOLDER / f"snapshot-{SNAPSHOT_FORMAT}.bin"
    if not snapshot.exists():
        op = new_operator()
        for step in range(WRITTEN_AFTER):
            op.process_batch(columns_of(step))
            op.advance(13 * step)
        snapshot.write_bytes(plain.dump(op.snapshot(), workload().trusted))
        yield snapshot
    checkpoint = FOLDER / f"checkpoint-{CHECKPOINT_FORMAT}.json"
    if not checkpoint.exists():
        stream = new_stream()
        stream_results(stream, range(WRITTEN_AFTER))
        chunks = {
            shard: {name: (base64.b64encode(data).decode(), head) for (name,), (data, head) in handle.map.data.items()}
            for shard, handle in stream.handles.items()
        }
        checkpoint.write_text(json.dumps(chunks, indent=1))
        yield checkpoint


if __name__ == "__main__":
    for path in write():
        print(path.name)
