"""How fast is each aggregate?  Every one in batch and in process, beside Spark's own ways; every answer checked.

    python benchmarks/aggregates.py [--only WHAT ...] [--rows N] [--limit SECONDS] [--save FILE] [--fresh]
                                    [--minutes M] [--data FOLDER]

5 million rows of 1000 keys over 1000 s, sliding windows of 60 s every second. ``--only`` takes names of aggregates and
of the parts of a run:

- ``alone``: each aggregate in batch, the better of two runs unless one takes very long, beside ``sum``, which is
  measured again and again because other things happen on a machine. A *number* is one array of the partial, and what
  counts is the CPU time per number, of all processes, against that of ``sum``. Beside it a query written by hand,
  ``groupBy(key, second)`` and a RANGE frame over it, where the aggregate can be said so, and rows per second in
  process.
- ``beside``: Spark's ``window`` for some, once each on a fifth of the rows, stopped after ``--limit`` seconds.
- ``dense``: the same for distinct counts and percentiles on rows of 16 keys, whose windows hold a thousand different
  values; stopped only after it is clear who is faster.
- ``flat``: windows that overlap 60 and 3600 times.
- ``ten``: ten aggregates in one query.

With ``--save`` each figure is written as soon as it is found, and a run that was stopped goes on where it was: what the
file has of the same commit and number of rows is not measured again (``--fresh`` does). With ``--minutes`` it stops by
itself, and ``--data`` keeps the rows for the next run. At the end stand the bars, of all that the file has. Answers:
windows of two keys, drawn at random, against the definition.
"""

from __future__ import annotations

import inspect
import json
import math
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _by_hand import BY_HAND, by_hand
from _harness import Spread, arguments, bar, commit, cpu_clock, heading, in_turns, save
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.routes import route_of
from slicewise.same import is_same, magnitude
from slicewise.spark import local_session
from slicewise.testing import value_of

SECOND = 1_000_000
LENGTH, EVERY = 60, 1
PARTS = ("alone", "beside", "dense", "flat", "ten")
#: What takes longer, in seconds, is run once.
LONG = 15
#: How many windows of each aggregate are compared with the definition.
CHECKED = 30
TYPES = {"x": pa.float64(), "y": pa.float64(), "v": pa.int64(), "b": pa.bool_(), "s": pa.string()}
#: What an aggregate cannot do without, by the names of its parameters.
NEEDED = {"q": 0.5, "percentage": 0.5, "half_life": "10 seconds", "k": 3}
#: Aggregates of another column than the first that they take: among fifty words some are frequent, of doubles none.
SUITED = {"approx_most_frequent": {"s": "s"}}
COLUMNS = ("column", "columns", "value", "by", "weight", "y", "x", "col1", "col2")
#: Spark's functions that stand beside ours over its ``window``.
BESIDE = {
    "sum": lambda: F.sum("x"),
    "stddev": lambda: F.stddev("x"),
    "corr": lambda: F.corr("x", "y"),
    "count_distinct": lambda: F.count_distinct("v"),
    "median": lambda: F.median("x"),
    "percentile": lambda: F.percentile("x", 0.5),
    "collect_set": lambda: F.collect_set("v"),
}
#: Those that are measured on the rows of all keys.
BESIDE_ALL = ("sum", "stddev", "corr", "count_distinct", "percentile", "collect_set")
#: How many times as fast as Spark's the distinct counts and percentiles are to be.
WANTED = {"count_distinct": 10, "median": 20, "percentile": 20}
TEN = ("sum", "avg", "stddev", "min", "max", "corr", "skewness", "regr_slope", "count_if", "weighted_avg")


# What is measured


def made(name: str, columns: dict[str, str] | None = None) -> sw.Aggregate:
    """The aggregate of this name over the first of the columns that it takes."""
    cls = sw.AGGREGATES[name]
    parameters = list(inspect.signature(cls).parameters.values())
    needed = {p.name: NEEDED[p.name] for p in parameters if p.name in NEEDED and _must_be_given(p)}
    taken = [p for p in parameters if p.name in COLUMNS]
    for type_ in columns or SUITED.get(name, TYPES):
        others = [c for c in ("y", "x", "v") if c != type_]
        names = [type_, *others][: len(taken)]
        aggregate = cls(*names, **needed)
        try:
            aggregate.bind(*(TYPES[c] for c in names))
        except sw.SlicewiseError:
            continue
        return aggregate
    raise AssertionError(f"no column fits {name}")


def _must_be_given(p: inspect.Parameter) -> bool:
    return p.kind is not p.VAR_POSITIONAL and (p.default is p.empty or type(p.default) is object)


def numbers_in(aggregate: sw.Aggregate) -> int:
    """How many arrays the partial has."""
    return len(aggregate.bind(*(TYPES[c] for c in aggregate.columns)).dtypes)


def is_fixed(aggregate: sw.Aggregate) -> bool:
    """Whether its partial is of fixed size: numbers, and neither lists, which have fields, nor objects nor a sketch."""
    dtypes = aggregate.bind(*(TYPES[c] for c in aggregate.columns)).dtypes
    return aggregate.kind != "sketch" and not any(dtype.hasobject or dtype.names for dtype in map(np.dtype, dtypes))


def workload_of(*aggregates: sw.Aggregate, length: int = LENGTH) -> sw.Workload:
    window = sw.sliding(f"{length} seconds", every=f"{EVERY} second")
    return sw.Workload("ts", keys=["k"]).query("q", window, **{f"a{i}": a for i, a in enumerate(aggregates)})


@dataclass(frozen=True)
class Data:
    """Rows as Spark reads them, and those of two keys as Python has them, by key."""

    frame: DataFrame
    rows: int
    keys: int
    span: int
    sample: dict[int, list[tuple[int, dict[str, Any]]]]

    @property
    def few(self) -> DataFrame:
        """The rows of the keys that are checked."""
        return self.frame.where(F.col("k").isin(*self.sample))


def write_rows(spark: SparkSession, folder: Path, rows: int, keys: int, span: int) -> Data:
    """Rows with random times, keys and values, from a seed, written once."""
    path = folder / f"rows-{rows}-{keys}-{span}"
    step = max(span * SECOND // rows, 1)

    def drawn(seed: int, size: int) -> F.Column:
        return F.abs(F.hash(F.col("id"), F.lit(seed))) % size

    made_up = spark.range(rows).select(
        F.timestamp_micros(F.col("id") * step + drawn(1, step)).alias("ts"),
        drawn(2, keys).cast("long").alias("k"),
        drawn(3, 1000).cast("long").alias("v"),
        (drawn(4, 10**6) / 1000).alias("x"),
        (drawn(4, 10**6) / 2000 + drawn(5, 10**6) / 1000).alias("y"),
        (drawn(6, 3) == 0).alias("b"),
        F.concat(F.lit("w"), drawn(7, 50).cast("string")).alias("s"),
    )
    if not (path / "_SUCCESS").exists():
        made_up.write.mode("overwrite").parquet(str(path))
    frame = spark.read.parquet(str(path))
    chosen = frame.where(F.col("k") < 2).select("k", F.unix_micros("ts").alias("t"), *TYPES).orderBy("k", "t", *TYPES)
    sample: dict[int, list[tuple[int, dict[str, Any]]]] = {0: [], 1: []}
    for row in chosen.toArrow().to_pylist():
        sample[row.pop("k")].append((row.pop("t"), row))
    return Data(frame, rows, keys, span, sample)


# Measuring


def seconds_of(frame: DataFrame) -> float:
    """How long it takes to write all results nowhere."""
    return costs_of(frame)[0]


def costs_of(frame: DataFrame) -> tuple[float, float]:
    """Seconds, and CPU seconds of all processes, that it takes to write all results nowhere."""
    started, used = time.perf_counter(), cpu_clock()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started, cpu_clock() - used


def least_costs_of(make: Callable[[], DataFrame]) -> tuple[float, float]:
    """The same, the better of two runs: a query runs slower before the JVM has compiled it. One run if that is long."""
    first = costs_of(make())
    return first if first[0] > LONG else min(first, costs_of(make()), key=lambda costs: costs[1])


def limited(spark: SparkSession, make: Callable[[], DataFrame], limit: float) -> float | None:
    """How long it takes, None if longer than the limit."""
    spark.sparkContext.setJobGroup("limited", "limited", interruptOnCancel=True)
    timer = threading.Timer(limit, lambda: spark.sparkContext.cancelJobGroup("limited"))
    started = time.perf_counter()
    timer.start()
    try:
        return seconds_of(make())
    except Exception:
        if time.perf_counter() - started < limit:
            raise
        return None
    finally:
        timer.cancel()
        spark.sparkContext.setJobGroup("", "")


def by_window(frame: DataFrame, function: F.Column, length: int = LENGTH) -> DataFrame:
    """Spark's own way."""
    return frame.groupBy("k", F.window("ts", f"{length} seconds", f"{EVERY} second")).agg(function.alias("a0"))


def in_process(aggregate: sw.Aggregate, table: pa.Table) -> float:
    """Rows per second of the operator, over all windows of the table."""
    op = workload_of(aggregate).operator()
    started = time.perf_counter()
    op.process_batch(table)
    results = op.close()
    passed = time.perf_counter() - started
    assert len(results)
    return table.num_rows / passed


def check(data: Data, workload: sw.Workload) -> None:
    """Compare some windows of two keys with the definition."""
    aggregates = workload.queries[0].aggregates
    for result in drawn_rows(workload.run(data.few)):
        start, end = (round(result["window"][b].timestamp() * SECOND) for b in ("start", "end"))
        for name, aggregate in aggregates.items():
            if not aggregate.name.startswith("approx") and "sketch" not in aggregate.name:
                compare(data, result["k"], start, end, aggregate, result[name], room=10)


def check_by_hand(data: Data, names: list[str]) -> None:
    """Compare what is written by hand with the definition too, with room for the digits of its formulas."""
    for result in drawn_rows(by_hand(data.few, names, LENGTH)):
        end = (result["s"] + 1) * SECOND
        for name in names:
            compare(data, result["k"], end - LENGTH * SECOND, end, made(name), result[name], room=1e6)


def drawn_rows(frame: DataFrame) -> Iterator[dict[str, Any]]:
    table = frame.toArrow()
    for row in random.Random(0).sample(range(table.num_rows), min(CHECKED, table.num_rows)):
        yield table.slice(row, 1).to_pylist()[0]


def compare(data: Data, key: int, start: int, end: int, aggregate: sw.Aggregate, found: Any, room: float) -> None:
    """``room`` is how many times as much rounding is allowed as between two ways of adding up."""
    held = [(t, values) for t, values in data.sample[key] if start <= t < end]
    expected = _plain(value_of(aggregate, [values for _, values in held], [t for t, _ in held], end, second=SECOND))
    found = _plain(found)
    assert is_same(found, expected, max(magnitude(found), 1.0) * room), (aggregate, found, expected)


def _plain(value: Any) -> Any:
    """Times as microseconds, maps as dictionaries."""
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * SECOND)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {k: _plain(v) for k, v in value}
    return [_plain(v) for v in value] if isinstance(value, list) else value


# The run


class Run:
    """What was found, which is saved at once, and was found before at the same commit and size."""

    def __init__(self, path: Path | None, rows: int, *, fresh: bool, minutes: float = math.inf) -> None:
        self.path, self._where = path, {"rows": rows, "commit": commit()}
        self._end = time.monotonic() + 60 * minutes
        kept = json.loads(path.read_text(encoding="utf-8"))["results"] if path and path.exists() and not fresh else []
        self.found: list[dict] = [f for f in kept if f.items() >= self._where.items()]

    def missing(self, part: str, names: list[str]) -> list[str]:
        """The aggregates of which a part has no figures yet."""
        there = {f["aggregate"] for f in self.found if f["what"] == part}
        return [name for name in names if name not in there]

    @property
    def is_over(self) -> bool:
        """Whether the time is up, so that nothing more is begun."""
        return time.monotonic() >= self._end

    def add(self, part: str, aggregate: str, **figures: Any) -> None:
        self.found.append({"what": part, "aggregate": aggregate, **figures, **self._where})
        save(self.path, self.found)


class Tables:
    """The rows of a run, each table written when it is first asked for."""

    def __init__(self, spark: SparkSession, folder: Path, rows: int) -> None:
        self._spark, self._folder, self._rows = spark, folder, rows

    @cached_property
    def all(self) -> Data:
        return write_rows(self._spark, self._folder, self._rows, 1000, 1000)

    @cached_property
    def fifth(self) -> Data:
        return write_rows(self._spark, self._folder, self._rows // 5, 1000, 1000)

    @cached_property
    def dense(self) -> Data:
        return write_rows(self._spark, self._folder, self._rows // 5, 16, 1000)

    @cached_property
    def long(self) -> Data:
        return write_rows(self._spark, self._folder, self._rows // 5, 16, 4000)

    @cached_property
    def in_memory(self) -> pa.Table:
        """One key in eight, so that an aggregate takes seconds in process and not minutes."""
        return self.all.frame.where("k % 8 = 0").select("ts", "k", *TYPES).orderBy("ts").toArrow()


def each_alone(run: Run, tables: Tables, names: list[str]) -> None:
    """Every aggregate in batch and in process."""
    data = tables.all
    print(f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, sliding {LENGTH} s / {EVERY} s")
    print(
        f"  {'':<22} {'route':>7} {'numbers':>7} {'s':>7} {'CPU, s':>7} {'x sum':>6} {'each':>6} {'by hand, s':>11} "
        f"{'in process':>11}"
    )
    written = [name for name in names if name in BY_HAND]
    if written:
        check_by_hand(data, written)
    total = workload_of(made("sum"))
    seconds_of(total.run(data.frame))  # warms up
    base = [least_costs_of(lambda: total.run(data.frame))[1]]
    for i, name in enumerate(names):
        if run.is_over:
            return
        if i % 6 == 5:
            base.append(least_costs_of(lambda: total.run(data.frame))[1])
        _one(run, tables, name, Spread.of(base[-3:]).median)


def _one(run: Run, tables: Tables, name: str, base: float) -> None:
    data, aggregate = tables.all, made(name)
    workload, numbers = workload_of(aggregate), numbers_in(aggregate)
    route = route_of(workload.queries[0], TYPES).choice
    check(data, workload)
    seconds, cpu = least_costs_of(lambda: workload.run(data.frame))
    hand = seconds_of(by_hand(data.frame, [name], LENGTH)) if name in BY_HAND else None
    # What grows is slower by orders of magnitude: fewer rows tell as much.
    table = tables.in_memory
    rows = in_process(aggregate, table if aggregate.kind != "holistic" else table.slice(0, table.num_rows // 20))
    # A partial of one number is not computed in half the time of one of two: reading the rows takes most of it.
    per_number = cpu / base / max(numbers / numbers_in(made("sum")), 1)
    print(
        f"  {name:<22} {route:>7} {numbers:>7} {seconds:>7.2f} {cpu:>7.2f} {cpu / base:>6.2f} {per_number:>6.2f} "
        f"{'' if hand is None else f'{hand:.2f}':>11} {rows / 1e6:>9.2f} M",
        flush=True,
    )
    run.add(
        "alone",
        name,
        kind=aggregate.kind,
        fixed=is_fixed(aggregate),
        route=route,
        numbers=numbers,
        seconds=seconds,
        cpu=cpu,
        sum=base,
        per_number=per_number,
        by_hand=hand,
        in_process=rows,
    )


def beside_spark(run: Run, spark: SparkSession, part: str, data: Data, names: list[str], limit: float) -> None:
    """Spark's ``window`` for some of them."""
    print(f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, beside Spark's `window`")
    print(f"  {'':<22} {'s':>7} {'Spark, s':>9} {'x Spark':>8}")
    for name in names:
        if run.is_over:
            return
        aggregate = made(name, {"v": "v"}) if name in ("count_distinct", "collect_set") else made(name)
        workload = workload_of(aggregate)
        check(data, workload)
        ours = seconds_of(workload.run(data.frame))
        # Where it matters who is faster, Spark has the time to show that it is.
        at_most = max(limit, 1.25 * WANTED[name] * ours) if part == "dense" else limit
        theirs = limited(spark, lambda name=name: by_window(data.frame, BESIDE[name]()), at_most)
        shown = f">{at_most:.0f}" if theirs is None else f"{theirs:.2f}"
        ratio = (theirs or at_most) / ours
        print(f"  {name:<22} {ours:>7.2f} {shown:>9} {'>' if theirs is None else ''}{ratio:>7.1f}", flush=True)
        run.add(part, name, seconds=ours, spark=theirs, limit=at_most)


def flat(run: Run, data: Data, names: list[str]) -> None:
    """Windows that overlap 60 and 3600 times."""
    print(f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, overlapping 60 and 3600 times")
    print(f"  {'':<22} {'60, s':>7} {'3600, s':>8} {'ratio':>6}")
    for name in names:
        if run.is_over:
            return
        aggregate = made(name, {"v": "v"}) if name == "count_distinct" else made(name)
        workloads = [workload_of(aggregate, length=length) for length in (60, 3600)]
        seconds_of(workloads[0].run(data.few))
        costs = in_turns(2, *(lambda w=w: seconds_of(w.run(data.frame)) for w in workloads))
        short, long = (min(seconds) for seconds in costs)
        print(f"  {name:<22} {short:>7.2f} {long:>8.2f} {long / short:>6.2f}", flush=True)
        run.add("flat", name, short=short, long=long)


def ten_at_once(run: Run, data: Data) -> None:
    """Ten aggregates in one query, beside the mean of some alone."""
    workload = workload_of(*map(made, TEN))
    check(data, workload)
    all_of_them = [workload, *(workload_of(made(name)) for name in ("sum", "corr", "stddev"))]
    costs = in_turns(2, *(lambda w=w: seconds_of(w.run(data.frame)) for w in all_of_them))
    together, *alone = (min(seconds) for seconds in costs)
    one = sum(alone) / len(alone)
    print(f"\nten at once: {together:.2f} s, one alone: {one:.2f} s on average, {together / one:.2f} times")
    run.add("ten", "ten", seconds=together, one=one)


def bars(found: list[dict]) -> bool:
    """What was promised, and whether it was reached."""
    print("\nbars")
    reached = []
    fixed = [f for f in found if f["what"] == "alone" and f["fixed"] and f["route"] == "slices"]
    for f in sorted(fixed, key=lambda f: -f["per_number"])[:3]:
        what = f"of {len(fixed)} of fixed size, within 1.5 times of `sum` per number: {f['aggregate']}"
        reached.append(bar(what, f["per_number"], at_most=1.5))
    for f in (f for f in found if f["what"] == "dense"):
        wanted, ratio = WANTED[f["aggregate"]], (f["spark"] or f["limit"]) / f["seconds"]
        what = f"{f['aggregate']}, at least {wanted} times as fast as Spark's over `window`"
        reached.append(bar(what, ratio, at_least=wanted))
    for f in (f for f in found if f["what"] == "flat"):
        what = f"{f['aggregate']}, windows 60 times as long take at most 2 times as long"
        reached.append(bar(what, f["long"] / f["short"], at_most=2))
    for f in (f for f in found if f["what"] == "ten"):
        reached.append(bar("ten aggregates at once, at most 3 times one", f["seconds"] / f["one"], at_most=3))
    return all(reached)


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--only", nargs="+", default=[], metavar="WHAT", help="these aggregates, or these parts")
    parser.add_argument("--limit", type=float, default=60, help="stop Spark's own way after so many seconds")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin nothing more after so many minutes")
    parser.add_argument("--data", type=Path, help="the folder of the rows, which are kept there")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured before")
    given = parser.parse_args()
    unknown = [what for what in given.only if what not in (*PARTS, *sw.AGGREGATES)]
    if unknown:
        parser.error(f"there is no aggregate or part {unknown[0]!r}; parts are {', '.join(PARTS)}")
    names = [name for name in sw.AGGREGATES if name in given.only] or list(sw.AGGREGATES)
    parts = [part for part in PARTS if part in given.only] or list(PARTS)
    run = Run(given.save, given.rows, fresh=given.fresh, minutes=given.minutes)
    started = time.perf_counter()
    spark = local_session("benchmark", conf={"spark.driver.memory": "6g"})
    print(heading(Spark=spark.version))
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(spark, given.data or Path(folder), given.rows)
        for part in parts:
            if not run.is_over:
                _measure(run, spark, tables, part, names, given.limit)
    spark.stop()
    print(f"\ntook {(time.perf_counter() - started) / 60:.1f} minutes")
    return 0 if bars(run.found) else 1


def _measure(run: Run, spark: SparkSession, tables: Tables, part: str, names: list[str], limit: float) -> None:
    """A part of the run, as far as it is missing."""
    of_part = {"alone": tuple(sw.AGGREGATES), "beside": BESIDE_ALL, "dense": tuple(WANTED), "flat": tuple(WANTED)}
    if part == "ten":
        if run.missing(part, ["ten"]):
            ten_at_once(run, tables.all)
        return
    missing = run.missing(part, [name for name in names if name in of_part[part]])
    if not missing:
        return
    if part == "alone":
        each_alone(run, tables, missing)
    elif part == "flat":
        flat(run, tables.long, missing)
    else:
        beside_spark(run, spark, part, tables.fifth if part == "beside" else tables.dense, missing, limit)


if __name__ == "__main__":
    sys.exit(main())
