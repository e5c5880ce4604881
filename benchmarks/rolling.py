"""What do wide rows and differences cost on a stream?  Three look-backs every minute, beside Spark's three streams.

    python benchmarks/rolling.py [--quick] [--events N] [--keys N] [--limit SECONDS] [--runs N] [--save FILE]
    python benchmarks/rolling.py --forms long wide --limit 0 --save FILE

500 000 events of 1 000 keys over one day, a micro-batch for each hour; counts of the last hour, the last 12 and the
last 24 hours, every minute. In the long form a row is a key, a look-back and a minute; in the wide form the three
stand in one row, and of differences only rows are written that are not as the minute before. Every form runs in a
process of its own and writes to the ``noop`` sink, after a first run that warms up; times and CPU seconds of all
processes are the medians of the runs. The answers are compared with NumPy: every row of some keys, once corrections are
applied and minutes without a row have the values of the one before.

Spark's own way is three streams, one for each look-back. They run until all of it is read or ``--limit`` is over, and
how far they came is in the table.

Forms can be measured one after the other: what ``--save`` finds in its file, of as many events and keys, is kept unless
it is measured anew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _harness import Spread, arguments, bar, cpu_clock, heading, load, save
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import local_session

MINUTE = 60_000_000
HOURS = (1, 12, 24)
BATCHES = 24
FORMS = {
    "long": {},
    "wide": {"shape": "wide"},
    "differences": {"emit": "differences"},
    "wide differences": {"shape": "wide", "emit": "differences"},
}
SPARK = "Spark's three streams"
#: Keys of which every row is checked.
CHECKED = 5


def write(folder: Path, events: int, keys: int) -> None:
    """The events of a day, a file for each hour."""
    rng = np.random.default_rng(3)
    times, key = np.sort(rng.integers(0, 24 * 60 * MINUTE, events)), rng.integers(0, keys, events)
    for batch in range(BATCHES):
        some = (times // MINUTE // 60) == batch
        path = folder / f"{batch:03}.parquet"
        pq.write_table(pa.table({"ts": pa.array(times[some], pa.timestamp("us", "UTC")), "k": key[some]}), path)
        os.utime(path, (1_000_000_000 + batch,) * 2)


def workload() -> sw.Workload:
    """Three look-backs every minute."""
    described = sw.Workload("ts", keys=["k"])
    for hours in HOURS:
        described = described.query(f"h{hours}", sw.sliding(f"{hours} hours", every="1 minute"), n=sw.count())
    return described


def rows_of(spark: SparkSession, source: str) -> DataFrame:
    reader = spark.readStream.schema("ts timestamp, k bigint").option("maxFilesPerTrigger", 1)
    return reader.parquet(source)


def run_stream(results: DataFrame, sink: object) -> tuple[float, float]:
    """The seconds that a stream takes for all that is there, and its CPU seconds."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = results.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
        begin, cpu = time.perf_counter(), cpu_clock()
        writer.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - begin, cpu_clock() - cpu


def nowhere(results: DataFrame, batch: int) -> None:
    results.write.format("noop").mode("overwrite").save()


# One measurement, in a process of its own


def run_one(form: str, folder: str, runs: int) -> None:
    """Print the seconds of the runs and how many rows there were; the answers are compared with NumPy."""
    spark = local_session()
    options = FORMS[form]
    times = [run_stream(workload().run(rows_of(spark, folder), **options), nowhere) for _ in range(runs + 1)]
    kept: list[pa.Table] = []
    counted: list[int] = []

    def keep(results: DataFrame, batch: int) -> None:
        results = results.cache()
        counted.append(results.count())
        kept.append(results.where(F.col("k") < CHECKED).toArrow())
        results.unpersist()

    run_stream(workload().run(rows_of(spark, folder), **options), keep)
    check(pa.concat_tables(kept), form, Path(folder))
    seconds, cpu = zip(*times[1:] or times, strict=True)
    print(json.dumps({"seconds": seconds, "cpu": cpu, "rows": sum(counted), "spark": spark.version}))
    spark.stop()


def check(results: pa.Table, form: str, folder: Path) -> None:
    """Compare the counts of some keys at every minute with what NumPy counts."""
    events = pq.read_table(folder, columns=["k", "ts"])
    key, at = events["k"].to_numpy(), events["ts"].cast(pa.int64()).to_numpy()
    passed = int(at.max()) // MINUTE
    wide = "wide" in form
    end = results["end"] if wide else pa.compute.struct_field(results["window"], "end")
    minute = end.cast(pa.int64()).to_numpy() // MINUTE
    for k in range(CHECKED):
        times = np.sort(at[key == k])
        mine = results["k"].to_numpy() == k
        for hours in HOURS:
            name = f"h{hours}"
            some = mine if wide else mine & (results["query"].to_numpy() == name)
            counts = results[f"{name}_n" if wide else "n"].to_numpy()[some]
            table = dict(zip(minute[some].tolist(), counts.tolist(), strict=True))
            value = 0
            for tick in range(passed + 1):
                low, high = np.searchsorted(times, [(tick - 60 * hours) * MINUTE, tick * MINUTE])
                value = table.get(tick, value if "differences" in form else 0)
                assert value == high - low, (form, k, hours, tick, value, high - low)


def run_spark(folder: str, limit: float) -> None:
    """Spark's three streams; print how long they took, and the least that any of them read."""
    spark = local_session()
    queries = []
    begin = time.perf_counter()
    for hours in HOURS:
        rows = rows_of(spark, folder).withWatermark("ts", "0 seconds")
        counts = rows.groupBy("k", F.window("ts", f"{hours} hours", "1 minute")).count()
        writer = counts.writeStream.foreachBatch(nowhere).outputMode("append")
        queries.append(writer.option("checkpointLocation", tempfile.mkdtemp()).trigger(availableNow=True).start())
    while any(query.isActive for query in queries) and time.perf_counter() - begin < limit:
        time.sleep(1)
    seconds = time.perf_counter() - begin
    read = [sum(progress.numInputRows for progress in query.recentProgress) for query in queries]
    print(json.dumps({"seconds": [seconds], "read": min(read), "spark": spark.version}), flush=True)
    os._exit(0)  # streams that are stopped in the middle of a micro-batch take as long as it does


# The table


def measured(command: list[str]) -> dict:
    done = subprocess.run([sys.executable, __file__, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="20 000 events of 40 keys, one run")
    parser.add_argument("--events", type=int)
    parser.add_argument("--keys", type=int)
    parser.add_argument("--limit", type=float, default=300, help="stop Spark's own streams after so many seconds")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.events = given.events or (20_000 if given.quick else 500_000)
    given.keys = given.keys or (40 if given.quick else 1_000)
    given.runs = given.runs or (1 if given.quick else 3)
    if given.one:
        name, folder = given.one
        run_spark(folder, given.limit) if name == "spark" else run_one(name, folder, given.runs)
        return
    print(heading(events=given.events, keys=given.keys))
    outcomes = kept(given)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), given.events, given.keys)
        for form in given.forms:
            outcomes[form] = {"form": form, **measured(["--one", form, folder, "--runs", str(given.runs)])}
            keep(given, outcomes)
        if given.limit:
            outcomes[SPARK] = {"form": SPARK, **measured(["--one", "spark", folder, "--limit", str(given.limit)])}
            keep(given, outcomes)
    for form, outcome in outcomes.items():
        came = f"{outcome['read']} of {given.events} events" if form == SPARK else f"{outcome['rows']:>9} rows"
        cpu = f"CPU {outcome['cpu median']:.1f} s" if "cpu median" in outcome else ""
        print(f"  {form:<24}{outcome['median']:>8.2f} s{cpu:>14}   {came}")
    bars(outcomes)


def keep(given: argparse.Namespace, outcomes: dict[str, dict]) -> None:
    """Add medians to what was measured, and save it all: a run that is stopped later has lost nothing."""
    for outcome in outcomes.values():
        outcome |= {"events": given.events, "keys": given.keys, "median": Spread.of(outcome["seconds"]).median}
        if "cpu" in outcome:
            outcome["cpu median"] = Spread.of(outcome["cpu"]).median
    save(given.save, list(outcomes.values()))


def kept(given: argparse.Namespace) -> dict[str, dict]:
    """What was saved of as many events and keys."""
    if given.save is None or not given.save.exists():
        return {}
    return {f["form"]: f for f in load(given.save) if (f["events"], f["keys"]) == (given.events, given.keys)}


def bars(outcomes: dict[str, dict]) -> None:
    """What was promised, and whether it was reached, as far as it was measured."""
    print("\nbars, by time and by CPU seconds")
    pairs = [("wide", "long", 1.3), ("differences", "wide", 1.0), ("wide differences", "wide", 1.0)]
    for (form, other, most), measure in itertools.product(pairs, ("median", "cpu median")):
        if form in outcomes and other in outcomes:
            ratio = outcomes[form][measure] / outcomes[other][measure]
            bar(f"{measure}: {form} in at most {most} times the time of {other}", ratio, at_most=most)


if __name__ == "__main__":
    main()
