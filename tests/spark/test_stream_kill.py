"""Kill -9, again and again, at every kind of moment: nothing is lost and nothing is doubled."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.killing import Job, files_of
from tests.spark.stream_job import SINKS, WORKLOAD
from tests.spark.stream_running import Folder, plain, table_of

#: Each of them ends two streams, one per sink. `make kill` is the long campaign.
KILLS = int(os.environ.get("SLICEWISE_KILLS", "3"))


def moments(folder: Path, rng: random.Random) -> list[Callable[[], Callable[[], bool]]]:
    """When to kill; each is made when the job starts, and then asked whether it is time."""

    def appears(pattern: str, many: int = 1) -> Callable[[], Callable[[], bool]]:
        def start() -> Callable[[], bool]:
            before = len(files_of(folder, pattern))
            return lambda: len(files_of(folder, pattern)) >= before + many

        return start

    found = []
    for sink in SINKS:
        found += [
            appears(f"checkpoint-{sink}/offsets/[0-9]*"),  # a micro-batch has begun
            appears(f"checkpoint-{sink}/offsets/[0-9]*", 2),
            appears(f"checkpoint-{sink}/commits/[0-9]*"),  # a micro-batch is done
            appears(f"checkpoint-{sink}/state/*/*/*", 1),  # state is being committed
        ]
    found.append(appears("appended/_spark_metadata/[0-9]*"))  # output is committed, the micro-batch is not
    found.append(appears("by_batch/batch=*"))
    rng.shuffle(found)
    return found


def add_rows(source: Folder, rng: random.Random, number: int) -> None:
    """One more file: five seconds of three keys, some rows late enough for corrections, no two at the same time."""
    times = [5 * number + n / 8 + rng.random() / 10 - rng.choice([0, 0, 0, 4, 9, 30]) for n in range(40)]
    unique = [max(round(t, 6), (40 * number + n) / 1000) for n, t in enumerate(times)]
    source.add(table_of([(t, rng.choice("abc"), n) for n, t in enumerate(unique)]))


def micro_batches(checkpoint: Path) -> list[list[Path]]:
    """Which files Spark put into which micro-batch.

    A file each, but for one that was noted by the source just before it was killed: that one goes with the next.
    """
    noted: dict[int, set[Path]] = {}
    for log in files_of(checkpoint, "sources/0/[0-9]*"):
        for line in log.read_text().splitlines()[1:]:
            entry = json.loads(line)
            noted.setdefault(entry["batchId"], set()).add(Path(unquote(urlparse(entry["path"]).path)))
    found, seen = [], -1
    for log in sorted(files_of(checkpoint, "offsets/[0-9]*"), key=lambda path: int(path.name)):
        upto = json.loads(log.read_text().splitlines()[-1])["logOffset"]
        found.append(sorted(path for n in range(seen + 1, upto + 1) for path in noted[n]))
        seen = upto
    return found


def undisturbed(batches: list[list[Path]]) -> list[dict]:
    """What a stream over these micro-batches reports that nobody kills."""
    op = WORKLOAD.operator(types={"k": "string", "v": "bigint"})
    found, latest = [], 0
    for paths in batches:
        table = pa.concat_tables(pq.read_table(path) for path in paths)
        op.process_batch(table)
        latest = max(latest, *table.column("ts").cast(pa.int64()).to_pylist())
        results = op.advance(latest - WORKLOAD.watermark)
        found += plain(results.to_arrow()) if results else []
    return found


@pytest.mark.slow
@pytest.mark.matrix
def test_killed_again_and_again_the_output_is_that_of_an_undisturbed_run(spark, tmp_path):
    rng = random.Random(11)
    source = Folder(tmp_path)
    when: list = []
    kills = files = 0
    while kills < KILLS:
        for _ in range(1 if files else 5):
            add_rows(source, rng, files)
            files += 1
        when = when or moments(tmp_path, rng)
        is_time = when.pop()()
        job = Job("tests.spark.stream_job", tmp_path)
        while not is_time() and not job.is_over():
            time.sleep(0.005)
        time.sleep(rng.choice([0, 0, 0.05, 0.3]))
        if not job.is_over():
            job.kill()
            kills += 1
    job = Job("tests.spark.stream_job", tmp_path)
    while not job.is_over():
        time.sleep(0.1)

    for sink in SINKS:
        batches = micro_batches(tmp_path / f"checkpoint-{sink}")
        assert sorted(path for paths in batches for path in paths) == sorted(source.path.glob("*.parquet"))
        rows = undisturbed(batches)
        assert {row["change"] for row in rows} == {"insert", "update", "retract"}
        expected = Counter(map(shown, rows))
        counts = Counter(map(shown, plain(spark.read.parquet(str(tmp_path / sink)).drop("batch").toArrow())))
        lost, doubled = expected - counts, counts - expected
        assert not lost, f"{sink}: {len(lost)} lost: {list(lost)[:3]}"
        assert not doubled, f"{sink}: {len(doubled)} doubled or untrue: {list(doubled)[:3]}"


def shown(row: dict) -> str:
    return repr(sorted(row.items()))
