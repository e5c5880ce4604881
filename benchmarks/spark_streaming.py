"""How long does a micro-batch take, beside Spark's own streaming aggregation?  One run, one table, answers checked.

    python benchmarks/spark_streaming.py [--only WORDS] [--batches N] [--scale X] [--limit SECONDS] [--save FILE]

Both read the same files, a micro-batch of ten seconds of event time after the other, 10 % of the rows up to a second
late, and write nowhere. Everybody runs before anything is measured, and a time is the median over the micro-batches
after the first few. Every answer is checked: the number of windows, their totals, and totals weighted by where windows
start, against plain NumPy. Spark is run twice: with its state where it is by default, in memory with deltas in files,
and in RocksDB as ours; each is stopped after ``--limit`` seconds. At the end: skew, 100 000 keys, workers without what
they have decoded, and 200 micro-batches with the slope of their times and of their state.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _harness import Spread, arguments, heading, save
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

import slicewise as sw
from slicewise.spark import local_session
from slicewise.spark.session import ROCKSDB

SECOND = 1_000_000
STARTS = 1_700_000_000  # the first second of event time
PER_BATCH = 10  # seconds of event time
WAIT = 2
WARM_UP = 3
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
DEFAULT_PROVIDER = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
SCHEMA = "ts timestamp, k int, v bigint"
#: How many windows there were, their totals, and totals weighted by where windows start.
Check = tuple[int, int, int]


@dataclass(frozen=True)
class Data:
    """Micro-batches of so many rows and keys; ``skew`` is the share of rows that the first key has."""

    keys: int
    rows: int
    batches: int
    skew: float = 0.0

    def arrays(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Times, keys and values of each micro-batch. A key pauses for a second in every five."""
        rng = np.random.default_rng(7)
        for number in range(self.batches):
            times = (STARTS + number * PER_BATCH) * SECOND + rng.integers(0, PER_BATCH * SECOND, self.rows)
            times = np.where(rng.random(self.rows) < 0.1, times - rng.integers(0, SECOND, self.rows), times)
            keys = rng.integers(0, self.keys, self.rows, np.int32)
            keys[rng.random(self.rows) < self.skew] = 0
            pausing = (times // SECOND + keys) % 5 == 0
            yield np.where(pausing, times + SECOND, times), keys, rng.integers(0, 100, self.rows)

    def write(self, folder: Path) -> None:
        """Two files for each micro-batch, so that both cores have something to read."""
        folder.mkdir()
        for number, (times, keys, values) in enumerate(self.arrays()):
            instants = pa.array(times).cast(pa.timestamp("us", "UTC"))
            table = pa.table({"ts": instants, "k": keys, "v": values})
            for part in range(2):
                path = folder / f"{number:06}-{part}.parquet"
                half = -(-self.rows // 2)
                pq.write_table(table.slice(part * half, half), path)
                os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


@dataclass(frozen=True)
class Kind:
    """A window, ours and Spark's, with its plain definition."""

    name: str
    workload: sw.Workload
    theirs: Callable[[], F.Column] | None
    expected: Callable[[Data, int], Check]


BASE = sw.Workload("ts", keys=["k"], watermark=f"{WAIT} seconds")
CONCURRENT = BASE
for _n in range(1, 21):
    CONCURRENT = CONCURRENT.query(f"every {_n} s", sw.tumbling(f"{_n} seconds"), total=sw.sum("v"))
KINDS = {
    "tumbling": Kind(
        "tumbling 1 s",
        BASE.query("q", sw.tumbling("1 second"), total=sw.sum("v")),
        lambda: F.window("ts", "1 second"),
        lambda data, unit: sliding_by_definition(data, [(1, 1)], unit),
    ),
    "sliding": Kind(
        "sliding 100 s / 1 s",
        BASE.query("q", sw.sliding("100 seconds", every="1 second"), total=sw.sum("v")),
        lambda: F.window("ts", "100 seconds", "1 second"),
        lambda data, unit: sliding_by_definition(data, [(100, 1)], unit),
    ),
    "concurrent": Kind(
        "20 concurrent tumbling, 1 to 20 s",
        CONCURRENT,
        None,
        lambda data, unit: sliding_by_definition(data, [(n, n) for n in range(1, 21)], unit),
    ),
    "session": Kind(
        "session 0.5 s",
        BASE.query("q", sw.session("500 milliseconds"), total=sw.sum("v")),
        lambda: F.session_window("ts", "500 milliseconds"),
        lambda data, unit: sessions_by_definition(data, SECOND // 2, unit),
    ),
    # Ties of equal time are put in order by value, so that there is one right answer.
    "rows": Kind(
        "100 rows every 10 rows",
        sw.Workload("ts", keys=["k"], watermark=f"{WAIT} seconds", order=["v"]).query(
            "q", sw.sliding(sw.rows(100), every=sw.rows(10)), total=sw.sum("v")
        ),
        None,
        lambda data, unit: counts_by_definition(data, 100, 10, unit),
    ),
}


def _watermark(data: Data, unit: int) -> int:
    """Where the watermark ends up, in steps of ``unit`` microseconds: ours knows every one, Spark's milliseconds."""
    latest = max(int(times.max()) for times, _, _ in data.arrays())
    return (latest // unit) * unit - WAIT * SECOND


def sliding_by_definition(data: Data, families: list[tuple[int, int]], unit: int) -> Check:
    """All windows of these lengths and slides, in seconds, that the watermark has passed."""
    before = 128  # seconds before the first row: windows that begin there hold it already
    length = before + data.batches * PER_BATCH + before
    counts, sums = (np.zeros((data.keys, length + 1), np.int64) for _ in range(2))
    for times, keys, values in data.arrays():
        at = times // SECOND - STARTS + before + 1
        np.add.at(counts, (keys, at), 1)
        np.add.at(sums, (keys, at), values)
    counts, sums = np.cumsum(counts, axis=1), np.cumsum(sums, axis=1)
    passed = _watermark(data, unit) // SECOND - STARTS + before
    found = np.zeros(3, np.int64)
    for size, every in families:
        ends = np.arange(size, passed + 1)
        ends = ends[(ends - size - before + STARTS) % every == 0]
        held = (counts[:, ends] - counts[:, ends - size]) > 0
        totals = np.where(held, sums[:, ends] - sums[:, ends - size], 0)
        weights = (ends - size - before + STARTS) % 97
        found += [held.sum(), totals.sum(), (totals * weights).sum()]
    return tuple(found.tolist())  # type: ignore[return-value]


def sessions_by_definition(data: Data, gap: int, unit: int) -> Check:
    """All sessions that the watermark has passed."""
    times, keys, values = (np.concatenate(c) for c in zip(*data.arrays(), strict=True))
    order = np.lexsort((times, keys))
    times, keys, values = times[order], keys[order], values[order]
    starts = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (times[1:] - times[:-1] > gap)])
    last = times[np.append(starts[1:], len(times)) - 1]
    done = last + gap < _watermark(data, unit)
    totals = np.add.reduceat(values, starts)[done]
    weights = times[starts][done] // SECOND % 97
    return int(done.sum()), int(totals.sum()), int((totals * weights).sum())


def counts_by_definition(data: Data, length: int, every: int, unit: int) -> Check:
    """All windows of so many rows whose last row the watermark has passed."""
    times, keys, values = (np.concatenate(c) for c in zip(*data.arrays(), strict=True))
    order = np.lexsort((values, times, keys))
    times, keys, values = times[order], keys[order], values[order]
    first_of_key = np.searchsorted(keys, keys)
    starts = np.flatnonzero((np.arange(len(keys)) - first_of_key) % every == 0)
    starts = starts[starts + length <= len(keys)]
    last = starts + length - 1
    starts = starts[(keys[last] == keys[starts]) & (times[last] < _watermark(data, unit))]
    sums = np.concatenate([[0], np.cumsum(values)])
    totals = sums[starts + length] - sums[starts]
    return len(starts), int(totals.sum()), int((totals * (times[starts] // SECOND % 97)).sum())


# Running


@dataclass
class Times:
    """What a stream took: seconds for each micro-batch, in order, and what it answered. None: not finished in time."""

    seconds: list[float]
    check: Check | None
    slices: list[int]
    state: list[int]

    @property
    def median(self) -> float | None:
        after = self.seconds[WARM_UP:]
        return Spread.of(after).median if after else None


def ours(session: SparkSession, rows: DataFrame, kind: Kind) -> DataFrame:
    """The results of slicewise."""
    session.conf.set(PROVIDER, ROCKSDB)
    return kind.workload.run(rows)


def theirs(session: SparkSession, rows: DataFrame, kind: Kind, provider: str = DEFAULT_PROVIDER) -> DataFrame:
    """The results of Spark's own aggregation."""
    assert kind.theirs is not None
    session.conf.set(PROVIDER, provider)
    grouped = rows.withWatermark("ts", f"{WAIT} seconds").groupBy("k", kind.theirs().alias("window"))
    return grouped.agg(F.sum("v").alias("total"))


def measure(session: SparkSession, source: Path, run: Callable, kind: Kind, limit: float) -> Times:
    """Run a stream over all files, and look at the time of each micro-batch."""
    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(source))
    weight = F.unix_seconds("window.start") % 97
    told = [F.count("*").alias("windows"), F.sum("total").alias("totals"), F.sum(F.col("total") * weight).alias("w")]
    results = run(session, rows, kind).observe("check", *told)
    with tempfile.TemporaryDirectory(prefix="slicewise-") as checkpoint:
        writer = results.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
        query = writer.option("checkpointLocation", checkpoint).start()
        end = time.monotonic() + limit
        while query.isActive and time.monotonic() < end:
            query.awaitTermination(1)
        in_time = not query.isActive
        query.stop()
        if query.exception() is not None:
            raise query.exception()  # type: ignore[misc]
        return _times(query, in_time)


def _times(query: StreamingQuery, in_time: bool) -> Times:
    progress = query.recentProgress
    done = [p for p in progress if p["numInputRows"]]
    seen = [p["observedMetrics"].get("check") for p in progress]
    seen = [row.asDict() for row in seen if row is not None]
    check = tuple(sum(row[name] or 0 for row in seen) for name in ("windows", "totals", "w"))
    told = [row for p in done for name, row in p["observedMetrics"].items() if name.startswith("slicewise")]
    return Times(
        [p["durationMs"]["triggerExecution"] / 1000 for p in done],
        check if in_time else None,  # type: ignore[arg-type]
        [row["slices"] for row in told],
        [p["stateOperators"][0]["customMetrics"].get("rocksdbSstFileSize", 0) for p in done if p["stateOperators"]],
    )


@dataclass
class Line:
    """One line of the table."""

    case: str
    keys: int
    rows: int
    ours: float | None
    answers: int
    bar: float | None = None
    theirs: Rival | None = None
    in_rocksdb: Rival | None = None

    def __str__(self) -> str:
        rivals = "".join(self._beside(rival) for rival in (self.theirs, self.in_rocksdb))
        mine = f"{self.ours:9.2f}" if self.ours else f"{'n/a':>9}"
        return f"{self.case:<36}{self.keys:>8,}{self.rows:>9,}{mine}{rivals}{self.answers:>10,}{self._judged()}"

    def _beside(self, rival: Rival | None) -> str:
        if rival is None or not rival.seconds or not self.ours:
            return f"{'n/a':>12}{'':>8}"
        seconds = f"{rival.seconds:.2f}{'*' if rival.stopped else ' '}"
        return f"{seconds:>12} {rival.seconds / self.ours:6.2f}x"

    def _judged(self) -> str:
        if self.bar is None:
            return ""
        rivals = (("Spark", self.theirs), ("Spark in RocksDB", self.in_rocksdb))
        below = [
            who for who, r in rivals if r is not None and r.seconds and self.ours and r.seconds / self.ours < self.bar
        ]
        return f"  bar {self.bar:.2g}x" + (f", BELOW for {' and '.join(below)}" if below else "")


@dataclass
class Rival:
    """Seconds per micro-batch of another stream, and whether it was stopped because it took too long."""

    seconds: float | None
    stopped: bool


def check(times: Times, expected: Check, who: str) -> None:
    if times.check is not None:
        assert times.check == expected, f"{who}: {times.check}, expected {expected}"


#: Windows and key counts, with the least ratio that is asked for. Nowhere may Spark be faster than 1.2 times.
CASES = [
    ("tumbling", 16, 1 / 1.2),
    ("sliding", 16, 4.0),
    ("concurrent", 16, None),
    ("session", 16, 1 / 1.2),
    ("rows", 16, None),
    ("tumbling", 10_000, 2.0),
    ("sliding", 10_000, 10.0),
    ("concurrent", 10_000, None),
    ("session", 10_000, 1 / 1.2),
    ("rows", 10_000, None),
]


class Bench:
    """All cases in one session; files are made once for each kind of data."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args, self.folder = args, folder
        conf = {
            "spark.sql.streaming.numRecentProgressUpdates": "1000",
            "spark.driver.memory": "6g",
            "spark.python.unix.domain.socket.enabled": "true",  # as docs/cluster.md advises
        }
        self.session = local_session("spark_streaming", conf=conf)
        self.lines: list[Line] = []

    def source(self, data: Data) -> Path:
        """The files of some data."""
        path = self.folder / f"{data.keys}-{data.rows}-{data.batches}-{data.skew}"
        if not path.exists():
            data.write(path)
        return path

    def data(self, keys: int, rows: int, skew: float = 0.0) -> Data:
        return Data(keys, max(int(rows * self.args.scale), 100), self.args.batches, skew)

    def ours(self, kind: Kind, data: Data) -> Times:
        """Our times, checked."""
        found = measure(self.session, self.source(data), ours, kind, 3600)
        check(found, kind.expected(data, 1), f"slicewise, {kind.name}")
        return found

    def warm_up(self) -> None:
        """Let the JVM compile what everybody needs, before somebody has to wait for it."""
        kind, data = KINDS["tumbling"], self.data(16, 500_000)
        for _ in range(2):
            self.ours(kind, data)
            self.rival(kind, data, DEFAULT_PROVIDER)
            self.rival(kind, data, ROCKSDB)

    def beside_spark(self) -> None:
        for name, keys, bar in CASES:
            kind, data = KINDS[name], self.data(keys, 500_000 if keys == 16 else 250_000)
            if not self.wanted(f"{name} {keys}"):
                continue
            mine = self.ours(kind, data)
            answers = mine.check[0] if mine.check else 0
            line = Line(kind.name, keys, data.rows, mine.median, answers, bar)
            if kind.theirs is not None:
                line.theirs, line.in_rocksdb = self.rival(kind, data, DEFAULT_PROVIDER), self.rival(kind, data, ROCKSDB)
            self.say(line)

    def rival(self, kind: Kind, data: Data, provider: str) -> Rival:
        """What Spark's own takes, checked."""
        run = partial(theirs, provider=provider)
        found = measure(self.session, self.source(data), run, kind, self.args.limit)
        check(found, kind.expected(data, 1000), f"Spark, {kind.name}")
        return Rival(found.median, found.check is None)

    def skew(self) -> None:
        """The first key with half of all rows, and without."""
        if self.wanted("skew"):
            kind = KINDS["sliding"]
            even, skewed = (self.ours(kind, self.data(16, 500_000, share)).median for share in (0.0, 0.5))
            ratio = skewed / even if even and skewed else float("nan")
            self.note(f"one key with half of all rows: {ratio:.2f} times as long (bar 2)", ratio <= 2)

    def many_keys(self) -> None:
        if self.wanted("many keys"):
            kind, data = KINDS["tumbling"], self.data(100_000, 200_000)
            found = self.ours(kind, data)
            self.say(Line("tumbling 1 s, many keys", 100_000, data.rows, found.median, found.check[0]))  # type: ignore[index]

    def without_cache(self) -> None:
        """Workers that must read the state anew in every micro-batch."""
        if self.wanted("cache"):
            kind, data = KINDS["sliding"], self.data(10_000, 250_000)
            environment = self.session.sparkContext.environment
            kept = self.ours(kind, data).median
            environment["SLICEWISE_NO_CACHE"] = "1"
            try:
                anew = self.ours(kind, data).median
            finally:
                del environment["SLICEWISE_NO_CACHE"]
            self.note(f"sliding, 10,000 keys: {kept:.2f} s with what workers have decoded, {anew:.2f} s without", True)

    def soak(self) -> None:
        """Many small micro-batches: neither their times nor the state may grow."""
        if self.wanted("soak"):
            data = Data(1000, max(int(20_000 * self.args.scale), 100), self.args.soak)
            found = self.ours(KINDS["sliding"], data)
            warm = min(30, data.batches // 2)
            for name, values, unit in (("seconds", found.seconds, "s"), ("slices", found.slices, "")):
                after = np.array(values[warm:], float)
                slope = np.polyfit(np.arange(len(after)), after, 1)[0] * 100 if len(after) > 1 else 0.0
                share = slope / after.mean() if after.mean() else 0.0
                text = f"{data.batches} micro-batches, {name}: {np.median(after):,.2f} {unit}, "
                self.note(text + f"{100 * share:+.1f} % per 100 micro-batches", True)
            # RocksDB's files grow until they are compacted, again and again: a slope would say nothing.
            halves = np.array_split(np.array(found.state[warm:]) / 1e6, 2)
            text = " and ".join(f"{half.min():.1f} to {half.max():.1f}" for half in halves if len(half))
            self.note(f"{data.batches} micro-batches, state files: {text} MB in the first and second half", True)

    # The table

    def wanted(self, case: str) -> bool:
        return self.args.only is None or any(word in case for word in self.args.only.split(","))

    def say(self, line: Line) -> None:
        self.lines.append(line)
        print(line, flush=True)

    def note(self, text: str, good: bool) -> None:
        print(text + ("" if good else "  BELOW"), flush=True)

    def run(self) -> None:
        """Everything that was asked for."""
        print(heading())
        heads = f"{'slicewise':>9}{'Spark':>12}{'':>8}{'in RocksDB':>12}{'':>8}{'answers':>10}"
        print(f"{'seconds per micro-batch':<36}{'keys':>8}{'rows':>9}{heads}")
        print("(* stopped: too slow to finish in time; the median of what it did)")
        self.warm_up()
        for part in (self.beside_spark, self.many_keys, self.skew, self.without_cache, self.soak):
            part()
        save(self.args.save, [asdict(line) for line in self.lines])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", help="cases whose name holds one of these words: tumbling, 'sliding 16', skew, ...")
    parser.add_argument("--batches", type=int, default=14, help="micro-batches of each stream")
    parser.add_argument("--scale", type=float, default=1.0, help="how many of the rows, such as 0.1")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which Spark's own is stopped")
    parser.add_argument("--soak", type=int, default=200, help="micro-batches of the last case")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="slicewise-") as folder:
        Bench(args, Path(folder)).run()


if __name__ == "__main__":
    main()
