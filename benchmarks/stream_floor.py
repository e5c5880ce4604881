"""How near is a stream to what Spark itself takes?  Start-up and tiny micro-batches beside a bare floor, in one run.

    python benchmarks/stream_floor.py [--only WORDS] [--repeat N] [--save FILE]

The floor is a stream of the same shape that does nothing: ``mapInArrow`` that sends a tiny pack to each shard, and a
stateful processor that looks at none of them; the shards, the state store and what is behind them are as many as ours.
Spark's own sliding aggregation stands beside it.

- *start-up*: from ``start()`` to the first progress, for ``sliding("10 seconds", every="1 second")``, micro-batches of
  50 000 rows and two shards; in a new session, each in a process of its own, and once more in the same session.
- *tiny*: micro-batches of 200 and of 1 000 rows, in one session, after some that warm up.
- *demo*: the rate of the demo's six queries after its first micro-batch.
- *keys*: 100 000 and 1 000 000 keys, with what their state takes.

Everybody runs in turns. CPU seconds are those of all processes together: on a busy machine they say more than the
clock. Python writes bytecode here, as an installation has it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _harness import Spread, arguments, bar, cpu_of, environment, heading, load, processes, save
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from spark_streaming import DEFAULT_PROVIDER, PER_BATCH, PROVIDER, SCHEMA, SECOND, STARTS, WAIT, Data

import slicewise as sw
from slicewise.spark import local_session
from slicewise.spark.session import ROCKSDB
from slicewise.spark.streaming.packs import PACK
from slicewise.spark.streaming.shard_ids import shard_ids

SHARDS = 2
BASE = sw.Workload("ts", keys=["k"], watermark=f"{WAIT} seconds")
SLIDING = BASE.query("q", sw.sliding("10 seconds", every="1 second"), total=sw.sum("v"))
#: What is measured of a micro-batch, as Spark calls it.
PHASES = ("triggerExecution", "queryPlanning", "addBatch", "latestOffset", "walCommit", "commitOffsets")
WARM_UP = 5


# Streams


def ours(rows: DataFrame) -> DataFrame:
    """The results of slicewise."""
    return SLIDING.run(rows)


def floor(rows: DataFrame) -> DataFrame:
    """The same shape, with nothing in it. What runs in workers is pickled by value, and imports nothing of ours."""
    shards = shard_ids(SHARDS)

    def tiny_packs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        count = sum(batch.num_rows for batch in batches)
        numbers = [pa.array([value] * len(shards), pa.int64()) for value in (0, count, 0)]
        first = [pa.array(shards, pa.int32()), pa.array([0] * len(shards), pa.int32())]
        content = pa.array([b""] * len(shards), pa.binary())
        yield pa.RecordBatch.from_arrays([*first, *numbers, content], names=PACK.names)

    class Nothing(StatefulProcessor):
        def init(self, handle: Any) -> None:
            name = T.StructType([T.StructField("name", T.StringType())])
            chunk = T.StructType([T.StructField("data", T.BinaryType()), T.StructField("head", T.StringType())])
            self.state = handle.getMapState("chunks", name, chunk)

        def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
            count = sum(row.rows for row in rows)
            yield Row(rows=count, start=[0], end=[1], total=[count])

        def close(self) -> None:
            pass

    columns = [T.StructField(name, T.ArrayType(T.LongType())) for name in ("start", "end", "total")]
    report = T.StructType([T.StructField("rows", T.LongType()), *columns])
    shard = F.pmod(F.xxhash64("k"), F.lit(SHARDS)).cast("int").alias("shard")
    packs = rows.select(F.unix_micros("ts").alias("t"), "k", "v", shard).mapInArrow(tiny_packs, PACK)
    reports = packs.groupBy("shard").transformWithState(Nothing(), report, "append", "none")
    return reports.observe("floor", F.sum("rows").alias("rows")).select(F.inline(F.arrays_zip("start", "end", "total")))


def theirs(rows: DataFrame) -> DataFrame:
    """The results of Spark's own aggregation."""
    grouped = rows.withWatermark("ts", f"{WAIT} seconds").groupBy("k", F.window("ts", "10 seconds", "1 second"))
    return grouped.agg(F.sum("v").alias("total"))


STREAMS: dict[str, Callable[[DataFrame], DataFrame]] = {"slicewise": ours, "floor": floor, "Spark": theirs}


def open_session() -> SparkSession:
    conf = {
        "spark.sql.shuffle.partitions": str(SHARDS),
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.driver.memory": "6g",
    }
    return local_session("stream_floor", master=f"local[{SHARDS}]", conf=conf)


def start(session: SparkSession, source: Path, who: str, checkpoint: str) -> tuple[StreamingQuery, float, float]:
    """A stream over all files, when it was described, in the seconds of the clock, and when it was started."""
    session.conf.set(PROVIDER, DEFAULT_PROVIDER if who == "Spark" else ROCKSDB)
    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(source))
    began = time.perf_counter()
    results = STREAMS[who](rows)
    writer = results.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", checkpoint)
    started = time.perf_counter()
    return writer.start(), began, started


def finish(query: StreamingQuery, rows: int) -> list[Any]:
    """The micro-batches of a stream that has read so many rows."""
    query.awaitTermination()
    done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    counted = sum(progress["numInputRows"] for progress in done)
    assert counted == rows, f"{counted} rows, expected {rows}"
    return done


# Start-up


def one_start(session: SparkSession, data: Data, source: Path, who: str) -> dict[str, float]:
    """Seconds from ``start()`` to the first progress, and where they went."""
    with tempfile.TemporaryDirectory(prefix="slicewise-") as checkpoint:
        cpu = cpu_of(processes())
        query, began, started = start(session, source, who, checkpoint)
        while not query.recentProgress and query.isActive:
            time.sleep(0.01)
        seconds = {"start": time.perf_counter() - started, "described": started - began}
        seconds["cpu"] = cpu_of(processes()) - cpu
        first = finish(query, data.rows * data.batches)[0]["durationMs"]
    return seconds | {name: first[name] / 1000 for name in PHASES}


def starts(who: str, folder: str) -> None:
    """What one process of its own does: two starts in a new session, written as JSON."""
    data = start_data()
    session = open_session()
    print(json.dumps([one_start(session, data, Path(folder), who) for _ in range(2)]))
    session.stop()


def start_data() -> Data:
    return Data(16, 50_000, 2)


class Bench:
    """All parts, and what was found."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        self.results: dict[str, Any] = {}
        left_out = "PYTHONDONTWRITEBYTECODE"
        self.environment = {name: value for name, value in os.environ.items() if name != left_out}

    def source(self, data: Data) -> Path:
        path = self.folder / f"{data.keys}-{data.rows}-{data.batches}"
        if not path.exists():
            data.write(path)
        return path

    def start_up(self) -> None:
        """Each in a process of its own, in turns; the first of all, which warms the disk's cache, does not count."""
        source = self.source(start_data())
        runs: dict[str, list[Any]] = {who: [] for who in STREAMS}
        self.in_a_process("slicewise", source)
        for _ in range(self.args.repeat):
            for who in STREAMS:
                runs[who].append(self.in_a_process(who, source))
        self.results["start-up"] = runs
        for at, which in enumerate(("first start, new session", "second start, same session")):
            print(f"\n{which}: seconds (lowest..highest), and CPU seconds of all processes")
            for who in STREAMS:
                shown = [Spread.of([run[at][name] for run in runs[who]]) for name in ("start", "cpu", "queryPlanning")]
                print(f"  {who:<12}{shown[0]} s, CPU {shown[1]} s, planning {shown[2]} s")
            seconds = {who: Spread.of([run[at]["start"] for run in runs[who]]).median for who in STREAMS}
            cpu = {who: Spread.of([run[at]["cpu"] for run in runs[who]]).median for who in STREAMS}
            bar(f"{which}: times the floor", seconds["slicewise"] / seconds["floor"], at_most=1.2)
            print(f"  {'in CPU seconds':<75} {cpu['slicewise'] / cpu['floor']:>8.2f}")

    def in_a_process(self, who: str, source: Path) -> Any:
        command = [sys.executable, __file__, "--starts", who, str(source)]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        return json.loads(done.stdout.strip().splitlines()[-1])

    def tiny(self) -> None:
        """Micro-batches in which there is next to nothing to do."""
        session = open_session()
        found: dict[str, Any] = {}
        for rows in self.args.tiny:
            data = Data(16, rows, WARM_UP + 25)
            source = self.source(data)
            times: dict[str, dict[str, list[float]]] = {who: {name: [] for name in PHASES} for who in STREAMS}
            cpu: dict[str, list[float]] = {who: [] for who in STREAMS}
            for turn in range(1 + self.args.repeat):
                # The JVM grows faster with every stream: who came first comes last in the next turn.
                for who in list(STREAMS)[:: 1 if turn % 2 else -1]:
                    batches, spent = self.micro_batches(session, data, source, who)
                    if turn:
                        cpu[who].append(spent)
                        for name in PHASES:
                            times[who][name] += [p["durationMs"].get(name, 0) for p in batches]
            found[str(rows)] = {"milliseconds": times, "cpu": cpu}
            self.show_tiny(rows, times, cpu)
        session.stop()
        self.results["tiny"] = found

    def micro_batches(self, session: SparkSession, data: Data, source: Path, who: str) -> tuple[list[Any], float]:
        """What Spark says of those after the first few, and CPU seconds of each."""
        with tempfile.TemporaryDirectory(prefix="slicewise-") as checkpoint:
            query, _, _ = start(session, source, who, checkpoint)
            while len(query.recentProgress) < WARM_UP and query.isActive:
                time.sleep(0.02)
            cpu, warm = cpu_of(processes()), len(query.recentProgress)
            done = finish(query, data.rows * data.batches)
            return done[warm:], (cpu_of(processes()) - cpu) / (len(done) - warm)

    def show_tiny(self, rows: int, times: dict[str, dict[str, list[float]]], cpu: dict[str, list[float]]) -> None:
        print(f"\nmicro-batches of {rows:,} rows: milliseconds, and CPU milliseconds of all processes")
        medians = {who: {name: Spread.of(times[who][name]).median for name in PHASES} for who in STREAMS}
        for who, median in medians.items():
            phases = ", ".join(f"{name} {median[name]:.0f}" for name in PHASES)
            print(f"  {who:<12}{phases}; CPU {1000 * Spread.of(cpu[who]).median:.0f}")
        for name in ("triggerExecution", "addBatch"):
            ratio = medians["slicewise"][name] / medians["floor"][name]
            bar(f"{rows:,} rows: {name}, times the floor", ratio, at_most=1.15)
        ratio = Spread.of(cpu["slicewise"]).median / Spread.of(cpu["floor"]).median
        print(f"  {'in CPU seconds':<75} {ratio:>8.2f}")

    def demo(self) -> None:
        """The demo as users see it, with what it says itself."""
        command = [sys.executable, "-m", "slicewise", "demo", "--rows", str(self.args.demo), "--sliding-rows", "0"]
        rates = []
        for _ in range(self.args.repeat):
            with tempfile.TemporaryDirectory(prefix="slicewise-") as folder:
                done = subprocess.run(
                    [*command, "--folder", folder], env=self.environment, capture_output=True, text=True, check=True
                )
            rates.append(int(re.findall(r"s: ([\d ]+) rows/s", done.stdout)[0].replace(" ", "")))
        self.results["demo"] = rates
        print(f"\nthe demo's six queries, {self.args.demo:,} rows")
        bar("rows/s after the first micro-batch", Spread.of(rates).median, at_least=60_000)

    def keys(self) -> None:
        """Every key in every micro-batch, so that the state holds all of them."""
        found = []
        for keys in (100_000, 1_000_000):
            session = open_session()
            found.append(self.with_keys(session, keys))
            session.stop()
        self.results["keys"] = found

    def with_keys(self, session: SparkSession, keys: int) -> dict[str, Any]:
        data = Data(keys, keys, 6)
        source = self.source(data)
        rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(source))
        workload = BASE.query("q", sw.sliding("1 minute", every="10 seconds"), total=sw.sum("v"))
        told = [F.count("*").alias("windows"), F.sum("total").alias("totals")]
        with tempfile.TemporaryDirectory(prefix="slicewise-") as checkpoint:
            results = workload.run(rows).observe("check", *told)
            writer = results.writeStream.format("noop").trigger(availableNow=True)
            query = writer.option("checkpointLocation", checkpoint).start()
            largest = 0
            while query.isActive:
                query.awaitTermination(0.2)
                largest = max(largest, worker_memory())
            if query.exception() is not None:
                raise query.exception()  # type: ignore[misc]
            done = finish(query, data.rows * data.batches)
        checks = [progress["observedMetrics"]["check"].asDict() for progress in done]
        answer = tuple(sum(check[name] or 0 for check in checks) for name in ("windows", "totals"))
        assert answer == (expected := windows_by_definition(data)), f"{answer}, expected {expected}"
        last = next(row for name, row in done[-1]["observedMetrics"].items() if name.startswith("slicewise")).asDict()
        seconds = [progress["durationMs"]["triggerExecution"] / 1000 for progress in done]
        line = {
            "keys": keys,
            "seconds": seconds,
            "slices": last["slices"],
            "state_bytes": last["state_bytes"],
            "workers": largest,
            "files": done[-1]["stateOperators"][0]["customMetrics"].get("rocksdbSstFileSize", 0),
        }
        per_key = {name: line[name] / keys for name in ("slices", "state_bytes", "workers", "files")}
        print(f"\n{keys:,} keys, {data.rows:,} rows a micro-batch: {Spread.of(seconds[2:])} s; per key:")
        print(
            "  {slices:.1f} slices, {state_bytes:.0f} bytes of state, {files:.0f} in its files, ".format(**per_key),
            end="",
        )
        print(f"{per_key['workers']:.0f} in the memory of all workers at most")
        return line

    def run(self) -> None:
        print(heading())
        parts = {"start-up": self.start_up, "tiny": self.tiny, "demo": self.demo, "keys": self.keys}
        for name, part in parts.items():
            if self.args.only is None or name in self.args.only.split(","):
                part()
                # Parts may be run one by one, into one file.
                file = self.args.save
                known = load(file) if file is not None and file.exists() else {}
                save(file, known | {name: {"where": environment(), "found": self.results[name]}})


def worker_memory() -> int:
    """Bytes in memory of all Python workers."""
    return sum(p.resident for p in processes() if "pyspark.daemon" in p.command)


def windows_by_definition(data: Data) -> tuple[int, int]:
    """How many windows of a minute, every ten seconds, the watermark has passed, and their totals."""
    batches = list(data.arrays())
    passed = (max(int(times.max()) for times, _, _ in batches) - WAIT * SECOND) // (PER_BATCH * SECOND)
    first = STARTS // PER_BATCH - 1  # a cell of ten seconds before the first row
    cells = passed - first
    counts, sums = (np.zeros((data.keys, cells + 1), np.int64) for _ in range(2))
    for times, keys, values in batches:
        at = times // (PER_BATCH * SECOND) - first
        known = at < cells
        np.add.at(counts, (keys[known], at[known] + 1), 1)
        np.add.at(sums, (keys[known], at[known] + 1), values[known])
    counts, sums = np.cumsum(counts, axis=1), np.cumsum(sums, axis=1)
    ends = np.arange(1, cells + 1)
    begins = np.maximum(ends - 6, 0)
    held = counts[:, ends] > counts[:, begins]
    return int(held.sum()), int((sums[:, ends] - sums[:, begins]).sum())


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", help="some of these: start-up,tiny,demo,keys")
    parser.add_argument("--repeat", type=int, default=3, help="how often everybody runs")
    parser.add_argument("--tiny", type=int, nargs="+", default=[200, 1000], help="rows of tiny micro-batches")
    parser.add_argument("--demo", type=int, default=1_000_000, help="rows of the demo")
    parser.add_argument("--starts", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.starts:
        starts(*args.starts)
        return
    with tempfile.TemporaryDirectory(prefix="slicewise-") as folder:
        Bench(args, Path(folder)).run()


if __name__ == "__main__":
    main()
