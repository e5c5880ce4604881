"""How fast are values as of points?  `attach` beside Spark's RANGE frames and an inequality join, answers checked.

    python benchmarks/features.py [--quick] [--events N] [--points N] [--limit SECONDS] [--runs N] [--save FILE]
    python benchmarks/features.py --data FOLDER --ways attach join --lengths "1 h" "30 d" --save FILE

5 million events of 10 000 keys over 40 days; the sizes of keys are Zipf's, and the largest has half a million events.
Count, sum and maximum of the hour, the day and the 30 days before: for the events themselves, and for 500 000 other
points. Beside `attach` stand Spark's own RANGE frames, with and without ``spark.sql.window.segmentTree.enabled`` (for
other points, over events and points together), and for other points the join of each point with the events before it.

Data lies in Parquet. Every way and every length runs in a process of its own. The first run warms up and adds all
columns up; the others write to the ``noop`` sink, and their median counts, as time and as CPU seconds of all processes.
A way that takes longer than ``--limit`` is stopped, and is not asked for longer look-backs. Where it ends in time, its
sums must be those of `attach`; those of `attach` itself are compared with NumPy, row by row, for the largest key and
for some others.

Ways and lengths can be measured one after the other: what ``--save`` finds in its file, of as many events and points,
is kept unless it is measured anew, and ``--data`` is where the data stays.
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
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _harness import Spread, arguments, bar, cpu_clock, heading, load, save
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import local_session

SECOND, HOUR = 1_000_000, 3600
DAYS = 40
LENGTHS = {"1 h": HOUR, "24 h": 24 * HOUR, "30 d": 30 * 24 * HOUR}
#: All three at once.
ALL = "all"
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"
ROWS, POINTS = "the events", "other points"
#: The ways, each with what it can be asked for.
WAYS = {
    "attach": (ROWS, POINTS),
    "range frames": (ROWS, POINTS),
    "range frames, segment tree": (ROWS, POINTS),
    "join": (POINTS,),
}
COLUMNS = ("n", "s", "top")
#: Keys whose values are compared with NumPy's; they are numbered by size.
CHECKED = (0, 7, 400)


def write(folder: Path, events: int, points: int, keys: int) -> None:
    """Events and points from a seed, in files of some hundred thousand rows."""
    rng = np.random.default_rng(11)
    share = 1 / np.arange(1, keys + 1)
    for name, rows in (("events", events), ("points", points)):
        table = pa.table(
            {
                "k": rng.choice(keys, rows, p=share / share.sum()),
                "ts": pa.array(rng.integers(0, DAYS * 86_400 * SECOND, rows), pa.timestamp("us", "UTC")),
                "v": rng.normal(100, 30, rows),
            }
        )
        (folder / name).mkdir()
        for part, at in enumerate(range(0, rows, 400_000)):
            pq.write_table(table.slice(at, 400_000), folder / name / f"{part:03}.parquet")


# The ways


def lengths_of(name: str) -> dict[str, int]:
    return LENGTHS if name == ALL else {name: LENGTHS[name]}


def by_attach(events: DataFrame, points: DataFrame | None, length: str) -> DataFrame:
    workload = sw.Workload("ts", keys=["k"])
    for i, seconds in enumerate(lengths_of(length).values()):
        aggregates = {"n": sw.count(), "s": sw.sum("v"), "top": sw.max("v")}
        workload = workload.query(f"q{i}", sw.trailing(f"{seconds} seconds"), **aggregates)
    return workload.attach(events) if points is None else workload.attach(points, events)


def by_frames(events: DataFrame, points: DataFrame | None, length: str) -> DataFrame:
    rows = events
    if points is not None:
        asked = points.select("k", "ts", F.col("v").alias("w"), F.lit(True).alias("is_point"))
        rows = events.unionByName(asked, allowMissingColumns=True)
    at = F.unix_micros("ts")
    values: list[Column] = []
    for i, seconds in enumerate(lengths_of(length).values()):
        over = Window.partitionBy("k").orderBy(at).rangeBetween(-seconds * SECOND + 1, 0)
        functions = {"n": F.count("v"), "s": F.sum("v"), "top": F.max("v")}
        values += [function.over(over).alias(f"q{i}_{name}") for name, function in functions.items()]
    if points is None:
        return rows.select("*", *values)
    return rows.select("k", "ts", F.col("w").alias("v"), "is_point", *values).where("is_point").drop("is_point")


def by_join(events: DataFrame, points: DataFrame | None, length: str) -> DataFrame:
    assert points is not None
    ((_, seconds),) = lengths_of(length).items()
    events = events.select(F.col("k").alias("ek"), F.unix_micros("ts").alias("at"), F.col("v").alias("ev"))
    numbered = points.withColumn("id", F.monotonically_increasing_id()).withColumn("t", F.unix_micros("ts"))
    near = (F.col("k") == F.col("ek")) & (F.col("at") <= F.col("t")) & (F.col("at") > F.col("t") - seconds * SECOND)
    found = numbered.join(events, near, "left").groupBy("id", "k", "ts", "v")
    return found.agg(F.count("ev").alias("q0_n"), F.sum("ev").alias("q0_s"), F.max("ev").alias("q0_top")).drop("id")


BY = {"attach": by_attach, "range frames": by_frames, "range frames, segment tree": by_frames, "join": by_join}


# One measurement, in a process of its own


def run_one(way: str, what: str, length: str, folder: str, runs: int, limit: float) -> None:
    """Print the seconds of the runs and the sums of all columns; `attach` is compared with NumPy."""
    spark = local_session()
    spark.conf.set(SEGMENT_TREE, str("segment tree" in way).lower())

    def result() -> DataFrame:
        events = spark.read.parquet(f"{folder}/events")
        return BY[way](events, spark.read.parquet(f"{folder}/points") if what == POINTS else None, length)

    def clocked() -> tuple[float, float]:
        begin, cpu = time.perf_counter(), cpu_clock()
        result().write.format("noop").mode("overwrite").save()
        return time.perf_counter() - begin, cpu_clock() - cpu

    begin, cpu = time.perf_counter(), cpu_clock()
    names = [f"q{i}_{c}" for i in range(len(lengths_of(length))) for c in COLUMNS]
    sums = result().agg(*(F.sum(name).alias(name) for name in names)).collect()[0].asDict()
    first = time.perf_counter() - begin, cpu_clock() - cpu
    # Of a way that is so slow that there is no time for another run, the first one counts.
    times = [clocked() for _ in range(min(runs, int(0.8 * limit / first[0]) - 1))] or [first]
    if way == "attach":
        check(spark, result(), length, Path(folder))
    seconds, used = zip(*times, strict=True)
    print(json.dumps({"seconds": seconds, "cpu": used, "sums": sums, "spark": spark.version}))
    spark.stop()


def check(spark: SparkSession, found: DataFrame, length: str, folder: Path) -> None:
    """Compare the rows of some keys with what NumPy finds among all events of the key."""
    events = pq.read_table(folder / "events", columns=["k", "ts", "v"])
    key, at, value = events["k"].to_numpy(), events["ts"].cast(pa.int64()).to_numpy(), events["v"].to_numpy()
    rows = found.where(F.col("k").isin(*CHECKED)).withColumn("t", F.unix_micros("ts")).drop("ts").toArrow()
    for k in CHECKED:
        of_key = np.flatnonzero(key == k)
        of_key = of_key[np.argsort(at[of_key], kind="stable")]
        times, values = at[of_key], value[of_key]
        mine = rows.filter(pa.compute.equal(rows["k"], int(k)))
        sample = np.random.default_rng(k).permutation(mine.num_rows)[:200]
        for row in mine.take(pa.array(sample)).to_pylist():
            for i, seconds in enumerate(lengths_of(length).values()):
                low, high = np.searchsorted(times, [row["t"] - seconds * SECOND, row["t"]], "right")
                inside = values[low:high]
                assert row[f"q{i}_n"] == len(inside), row
                assert row[f"q{i}_top"] == (inside.max() if len(inside) else None), row
                total = row[f"q{i}_s"]
                assert total is None if not len(inside) else abs(total - inside.sum()) <= 1e-9 * abs(total), row


# The table


def measured(way: str, what: str, length: str, given: argparse.Namespace, folder: str) -> dict:
    """One measurement; one that is stopped after the limit has the CPU seconds until then."""
    command = [sys.executable, __file__, "--one", way, what, length, folder]
    command += ["--runs", str(given.runs), "--limit", str(given.limit)]
    before = cpu_clock()
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        out, errors = running.communicate(timeout=given.limit)
    except subprocess.TimeoutExpired:
        used = cpu_clock() - before
        running.kill()
        running.communicate()
        return {"stopped cpu": used}
    if running.returncode:
        raise SystemExit(f"{way}, {what}, {length}: {errors[-3000:]}")
    return json.loads(out.splitlines()[-1])


def cell(way: str, what: str, length: str, given: argparse.Namespace, folder: str) -> dict:
    """One measurement as it is kept: without seconds if it did not end in time."""
    found = {"way": way, "what": what, "length": length, "seconds": None, "limit": given.limit}
    found |= {"events": given.events, "points": given.points}
    outcome = measured(way, what, length, given, folder)
    if "stopped cpu" in outcome:
        return found | outcome
    spread = Spread.of(outcome["seconds"])
    times = {"seconds": spread.median, "low": spread.low, "high": spread.high, "cpu": Spread.of(outcome["cpu"]).median}
    return found | times | {"sums": outcome["sums"]}


def table(given: argparse.Namespace, folder: str, known: Sequence[dict]) -> list[dict]:
    """All cells: those that are asked for, measured, and others as they are known."""
    found = {(f["what"], f["way"], f["length"]): f for f in known}
    for what in (ROWS, POINTS):
        print(f"\n{what}\n  {'':<28}" + "".join(f"{length:>32}" for length in (*LENGTHS, ALL)))
        for way in (way for way, can in WAYS.items() if what in can):
            for length in (*LENGTHS, ALL):
                if is_asked(given, what, way, length):
                    stopped = stopped_before(found, what, way, length)
                    found[what, way, length] = (
                        {**stopped, "length": length, "run": False}
                        if stopped
                        else cell(way, what, length, given, folder)
                    )
                    compare(found, what, way, length)
                    save(given.save, list(found.values()))  # a run that is stopped later has lost nothing
            cells = "".join(f"{shown(found.get((what, way, length))):>32}" for length in (*LENGTHS, ALL))
            print(f"  {way:<28}{cells}", flush=True)
    return list(found.values())


def is_asked(given: argparse.Namespace, what: str, way: str, length: str) -> bool:
    asked = what in given.what and way in given.ways and length in given.lengths
    return asked and (way, length) != ("join", ALL)


def stopped_before(found: dict, what: str, way: str, length: str) -> dict | None:
    """The same with a shorter look-back, if it did not end in time: this one would not either."""
    shorter = (*LENGTHS, ALL)[: (*LENGTHS, ALL).index(length)]
    known = (found.get((what, way, n)) for n in shorter)
    return next((f for f in known if f is not None and f["seconds"] is None), None)


def compare(found: dict, what: str, way: str, length: str) -> None:
    """Its sums must be those of every other way."""
    mine = found[what, way, length].get("sums", {})
    for (what_, other, length_), cell_ in found.items():
        if (what_, length_) == (what, length) and other != way:
            for name, total in cell_.get("sums", mine).items():
                near = name not in mine or abs(total - mine[name]) <= 1e-9 * abs(total)
                assert near, f"{way}, {what}, {length}: {name} is {mine[name]}, and not {total}"


def shown(found: dict | None) -> str:
    if found is None or found["seconds"] is None:
        return "" if found is None else f"stopped at {found['limit']:.0f} s, CPU {found['stopped cpu']:.0f} s"
    return f"{found['seconds']:.2f} s, CPU {found['cpu']:.1f} s"


def bars(found: Sequence[dict]) -> None:
    """What was promised, and whether it was reached, as far as it was measured."""
    print("\nbars, by time and by CPU seconds; a way that was stopped counts as what it took until then")
    for what, measure in itertools.product((ROWS, POINTS), ("seconds", "cpu")):
        by_length: dict[str, dict[str, float]] = {length: {} for length in (*LENGTHS, ALL)}
        for f in found:
            if f["what"] == what:
                until = {"seconds": f["limit"], "cpu": f.get("stopped cpu")}
                by_length[f["length"]][f["way"]] = f.get(measure) or until[measure]
        if any("attach" not in by_length[n] or len(by_length[n]) < 2 for n in LENGTHS):
            continue
        mine = {length: by_length[length].pop("attach") for length in LENGTHS}
        ratio = {length: min(by_length[length].values()) / mine[length] for length in LENGTHS}
        say = f"{what}, {measure}"
        bar(f"{say}: 30 d, at least 5 times as fast as Spark's best way", ratio["30 d"], at_least=5)
        bar(f"{say}: 1 h, never slower than Spark's best way", ratio["1 h"], at_least=1)
        bar(f"{say}: 30 d in at most 1.3 times the time of 1 h", mine["30 d"] / mine["1 h"], at_most=1.3)


def kept(given: argparse.Namespace) -> list[dict]:
    """What was saved of as many events and points."""
    if given.save is None or not given.save.exists():
        return []
    return [f for f in load(given.save) if (f["events"], f["points"]) == (given.events, given.points)]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--quick", action="store_true", help="200 000 events, 20 000 points, one run")
    parser.add_argument("--events", type=int)
    parser.add_argument("--points", type=int)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--limit", type=float, default=600, help="stop a way after so many seconds, all runs together")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--what", nargs="+", choices=(ROWS, POINTS), default=[ROWS, POINTS])
    parser.add_argument("--lengths", nargs="+", choices=(*LENGTHS, ALL), default=[*LENGTHS, ALL])
    parser.add_argument("--data", type=Path, help="where the data is kept for another run")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.events = given.events or (200_000 if given.quick else 5_000_000)
    given.points = given.points or (20_000 if given.quick else 500_000)
    given.runs = given.runs or (1 if given.quick else 3)
    if given.one:
        run_one(*given.one, given.runs, given.limit)
        return
    print(heading(events=given.events, points=given.points))
    with tempfile.TemporaryDirectory() as folder:
        data = given.data or Path(folder)
        if not (data / "points").exists():
            data.mkdir(parents=True, exist_ok=True)
            write(data, given.events, given.points, given.keys)
        found = table(given, str(data), kept(given))
    bars(found)
    save(given.save, found)


if __name__ == "__main__":
    main()
