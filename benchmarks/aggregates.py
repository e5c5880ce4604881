"""How fast is each aggregate?  Every one in batch and in process, beside Spark's own ways; every answer checked.

    python benchmarks/aggregates.py [--quick] [--rows N] [--only NAME ...] [--limit SECONDS] [--save FILE]

5 million rows of 1000 keys over 1000 s, sliding windows of 60 s every second. In batch each aggregate runs alone, once,
beside ``sum``, which is measured again and again because other things happen on a machine: a *number* is one array of
the partial, and what counts is the time per number against that of ``sum``. Beside it stand

- Spark's ``window`` for some, once each on a fifth of the rows, stopped after ``--limit`` seconds;
- a query written by hand, ``groupBy(key, second)`` and a RANGE frame over it, where the aggregate can be said so;
- rows per second in process.

Distinct counts and percentiles are measured on rows of 16 keys too, whose windows hold a thousand different values, and
for windows that overlap 60 and 3600 times. Answers: windows of two keys, drawn at random, against the definition.
"""

from __future__ import annotations

import inspect
import random
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _harness import Spread, arguments, bar, heading, save
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.routes import route_of
from slicewise.same import is_same, magnitude
from slicewise.spark import local_session
from slicewise.testing import value_of

SECOND = 1_000_000
LENGTH, EVERY = 60, 1
#: How many windows of each aggregate are compared with the definition.
CHECKED = 30
TYPES = {"x": pa.float64(), "y": pa.float64(), "v": pa.int64(), "b": pa.bool_(), "s": pa.string()}
#: What an aggregate cannot do without, by the names of its parameters.
NEEDED = {"q": 0.5, "percentage": 0.5, "half_life": "10 seconds", "k": 3}
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
TEN = ("sum", "avg", "stddev", "min", "max", "corr", "skewness", "regr_slope", "count_if", "weighted_avg")


# What is measured


def made(name: str, columns: dict[str, str] | None = None) -> sw.Aggregate:
    """The aggregate of this name over the first of the columns that it takes."""
    cls = sw.AGGREGATES[name]
    parameters = list(inspect.signature(cls).parameters.values())
    needed = {p.name: NEEDED[p.name] for p in parameters if p.name in NEEDED and _must_be_given(p)}
    taken = [p for p in parameters if p.name in COLUMNS]
    for type_ in columns or TYPES:
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
    path = str(folder / f"rows-{rows}-{keys}-{span}")
    step = max(span * SECOND // rows, 1)

    def drawn(seed: int, size: int) -> F.Column:
        return F.abs(F.hash(F.col("id"), F.lit(seed))) % size

    spark.range(rows).select(
        F.timestamp_micros(F.col("id") * step + drawn(1, step)).alias("ts"),
        drawn(2, keys).cast("long").alias("k"),
        drawn(3, 1000).cast("long").alias("v"),
        (drawn(4, 10**6) / 1000).alias("x"),
        (drawn(4, 10**6) / 2000 + drawn(5, 10**6) / 1000).alias("y"),
        (drawn(6, 3) == 0).alias("b"),
        F.concat(F.lit("w"), drawn(7, 50).cast("string")).alias("s"),
    ).write.parquet(path)
    frame = spark.read.parquet(path)
    chosen = frame.where(F.col("k") < 2).select("k", F.unix_micros("ts").alias("t"), *TYPES).orderBy("k", "t", *TYPES)
    sample: dict[int, list[tuple[int, dict[str, Any]]]] = {0: [], 1: []}
    for row in chosen.toArrow().to_pylist():
        sample[row.pop("k")].append((row.pop("t"), row))
    return Data(frame, rows, keys, span, sample)


# Measuring


def seconds_of(frame: DataFrame) -> float:
    """How long it takes to write all results nowhere."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def limited(spark: SparkSession, make: Callable[[], DataFrame], limit: float) -> float | None:
    """How long it takes, None if longer than the limit."""
    spark.sparkContext.setJobGroup("limited", "limited", interruptOnCancel=True)
    timer = threading.Timer(limit, lambda: spark.sparkContext.cancelJobGroup("limited"))
    timer.start()
    try:
        return seconds_of(make())
    except Exception:
        return None
    finally:
        timer.cancel()
        spark.sparkContext.setJobGroup("", "")


def by_window(frame: DataFrame, function: F.Column, length: int = LENGTH) -> DataFrame:
    """Spark's own way."""
    return frame.groupBy("k", F.window("ts", f"{length} seconds", f"{EVERY} second")).agg(function.alias("a0"))


def by_hand(frame: DataFrame, name: str) -> DataFrame | None:
    """Slices of a second, then a RANGE frame over them: textbook formulas, with the digits that those leave."""
    x, y, w = (F.col(c) for c in ("x", "y", "v"))
    sums = {"n": F.lit(1), "x": x, "xx": x * x, "xy": x * y, "y": y, "yy": y * y, "xw": x * w, "w": w}
    last = Window.partitionBy("k").orderBy("s").rangeBetween(-(LENGTH - 1), 0)
    n, sx, sxx, sxy, sy, syy = (F.sum(c).over(last) for c in ("n", "x", "xx", "xy", "y", "yy"))
    of_sums: dict[str, tuple[tuple[str, ...], Callable[[], F.Column]]] = {
        "count": (("n",), lambda: n),
        "sum": (("x",), lambda: sx),
        "avg": (("n", "x"), lambda: sx / n),
        "var_pop": (("n", "x", "xx"), lambda: sxx / n - sx * sx / n / n),
        "stddev": (("n", "x", "xx"), lambda: F.sqrt((sxx - sx * sx / n) / F.nullif(n - 1, F.lit(0)))),
        "covar_pop": (("n", "x", "y", "xy"), lambda: sxy / n - sx * sy / n / n),
        "regr_slope": (("n", "x", "y", "xy", "yy"), lambda: F.try_divide(n * sxy - sx * sy, n * syy - sy * sy)),
        "corr": (
            ("n", "x", "y", "xx", "yy", "xy"),
            lambda: F.try_divide(n * sxy - sx * sy, F.sqrt(n * sxx - sx * sx) * F.sqrt(n * syy - sy * sy)),
        ),
    }
    same = {"min": (F.min, "x"), "max": (F.max, "x"), "bool_and": (F.bool_and, "b"), "bool_or": (F.bool_or, "b")}
    same |= {"bit_and": (F.bit_and, "v"), "bit_or": (F.bit_or, "v"), "bit_xor": (F.bit_xor, "v")}
    slices = frame.groupBy("k", F.expr("unix_micros(ts) div 1000000").alias("s"))
    if name in of_sums:
        needed, result = of_sums[name]
        return slices.agg(*(F.sum(sums[c]).alias(c) for c in needed)).select("k", "s", result().alias("a0"))
    if name in same:
        function, column = same[name]
        return slices.agg(function(column).alias("p")).select("k", "s", function("p").over(last).alias("a0"))
    return None


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
    query = workload.queries[0]
    table = workload.run(data.few).toArrow()
    draw = random.Random(0)
    for row in draw.sample(range(table.num_rows), min(CHECKED, table.num_rows)):
        result = table.slice(row, 1).to_pylist()[0]
        start, end = (round(result["window"][b].timestamp() * SECOND) for b in ("start", "end"))
        held = [(t, values) for t, values in data.sample[result["k"]] if start <= t < end]
        for name, aggregate in query.aggregates.items():
            if aggregate.name.startswith("approx") or "sketch" in aggregate.name:
                continue
            rows, times = [values for _, values in held], [t for t, _ in held]
            expected = value_of(aggregate, rows, times, end, second=SECOND)
            found = _plain(result[name])
            assert is_same(found, _plain(expected), max(magnitude(found), 1.0) * 10), (aggregate, found, expected)


def _plain(value: Any) -> Any:
    """Times as microseconds, maps as dictionaries."""
    if hasattr(value, "timestamp"):
        return round(value.timestamp() * SECOND)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {k: _plain(v) for k, v in value}
    return [_plain(v) for v in value] if isinstance(value, list) else value


# The tables


def each_alone(spark: SparkSession, data: Data, table: pa.Table, names: list[str]) -> Iterator[dict]:
    """Every aggregate in batch and in process."""
    print(f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, sliding {LENGTH} s / {EVERY} s")
    print(
        f"  {'':<18} {'route':>7} {'numbers':>7} {'s':>7} {'x sum':>6} {'each':>6} {'by hand, s':>11} "
        f"{'in process':>11}"
    )
    total = made("sum")
    seconds_of(workload_of(total).run(data.frame))  # warms up
    base = [seconds_of(workload_of(total).run(data.frame))]
    for i, name in enumerate(names):
        if i % 8 == 7:
            base.append(seconds_of(workload_of(total).run(data.frame)))
        yield _one(spark, data, table, name, Spread.of(base[-3:]).median)


def _one(spark: SparkSession, data: Data, table: pa.Table, name: str, base: float) -> dict:
    aggregate = made(name)
    workload, numbers = workload_of(aggregate), numbers_in(aggregate)
    route = route_of(workload.queries[0], TYPES).choice
    check(data, workload)
    seconds = seconds_of(workload.run(data.frame))
    hand = by_hand(data.frame, name)
    by_hand_seconds = None if hand is None else seconds_of(hand)
    # What grows is slower by orders of magnitude: fewer rows tell as much.
    rows = in_process(aggregate, table if aggregate.kind != "holistic" else table.slice(0, table.num_rows // 20))
    # A partial of one number is not computed in half the time of one of two: reading the rows takes most of it.
    per_number = seconds / base / max(numbers / numbers_in(made("sum")), 1)
    print(
        f"  {name:<18} {route:>7} {numbers:>7} {seconds:>7.2f} {seconds / base:>6.2f} {per_number:>6.2f} "
        f"{'' if by_hand_seconds is None else f'{by_hand_seconds:.2f}':>11} {rows / 1e6:>9.2f} M",
        flush=True,
    )
    return {
        "what": "alone",
        "aggregate": name,
        "kind": aggregate.kind,
        "fixed": is_fixed(aggregate),
        "route": route,
        "numbers": numbers,
        "seconds": seconds,
        "sum": base,
        "per_number": per_number,
        "by_hand": by_hand_seconds,
        "in_process": rows,
    }


def beside_spark(spark: SparkSession, data: Data, names: list[str], limit: float) -> Iterator[dict]:
    """Spark's ``window`` for some of them."""
    print(f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, beside Spark's `window`")
    print(f"  {'':<18} {'s':>7} {'Spark, s':>9} {'x Spark':>8}")
    for name in (name for name in names if name in BESIDE):
        workload = workload_of(made(name, {"v": "v"}) if name in ("count_distinct", "collect_set") else made(name))
        seconds_of(workload.run(data.few))
        ours = seconds_of(workload.run(data.frame))
        theirs = limited(spark, lambda name=name: by_window(data.frame, BESIDE[name]()), limit)
        ratio = (theirs or limit) / ours
        shown = f">{limit:.0f}" if theirs is None else f"{theirs:.2f}"
        print(f"  {name:<18} {ours:>7.2f} {shown:>9} {'>' if theirs is None else ''}{ratio:>7.1f}", flush=True)
        yield {"what": "beside", "keys": data.keys, "aggregate": name, "seconds": ours, "spark": theirs, "limit": limit}


def flat(data: Data, names: list[str]) -> Iterator[dict]:
    """Windows that overlap 60 and 3600 times."""
    print(f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, overlapping 60 and 3600 times")
    print(f"  {'':<18} {'60, s':>7} {'3600, s':>8} {'ratio':>6}")
    for name in names:
        aggregate = made(name, {"v": "v"}) if name == "count_distinct" else made(name)
        workloads = [workload_of(aggregate, length=length) for length in (60, 3600)]
        seconds_of(workloads[0].run(data.few))
        short, long = (seconds_of(workload.run(data.frame)) for workload in workloads)
        print(f"  {name:<18} {short:>7.2f} {long:>8.2f} {long / short:>6.2f}", flush=True)
        yield {"what": "flat", "aggregate": name, "short": short, "long": long}


def ten_at_once(data: Data) -> Iterator[dict]:
    """Ten aggregates in one query, beside the mean of each alone."""
    names = [name for name in TEN if name in sw.AGGREGATES]
    workload = workload_of(*map(made, names))
    check(data, workload)
    alone = [seconds_of(workload_of(made(name)).run(data.frame)) for name in ("sum", "corr", "stddev")]
    together = seconds_of(workload.run(data.frame))
    one = sum(alone) / len(alone)
    print(f"\nten at once: {together:.2f} s, one alone: {one:.2f} s on average, {together / one:.2f} times")
    yield {"what": "ten", "seconds": together, "one": one}


def bars(found: list[dict]) -> None:
    """What was promised, and whether it was reached."""
    print("\nbars")
    fixed = [f for f in found if f["what"] == "alone" and f["fixed"] and f["route"] == "slices"]
    if fixed:
        worst = max(fixed, key=lambda f: f["per_number"])
        what = f"fixed size, within 1.5 times of `sum` per number ({worst['aggregate']})"
        bar(what, worst["per_number"], at_most=1.5)
    for f in (f for f in found if f["what"] == "beside" and f["keys"] < 1000):
        wanted = {"count_distinct": 10, "percentile": 20, "median": 20}.get(f["aggregate"])
        if wanted:
            ratio = (f["spark"] or f["limit"]) / f["seconds"]
            bar(f"{f['aggregate']}, at least {wanted} times as fast as Spark's over `window`", ratio, at_least=wanted)
    for f in (f for f in found if f["what"] == "flat"):
        bar(
            f"{f['aggregate']}, windows 60 times as long take at most 2 times as long",
            f["long"] / f["short"],
            at_most=2,
        )
    for f in (f for f in found if f["what"] == "ten"):
        bar("ten aggregates at once, at most 3 times one", f["seconds"] / f["one"], at_most=3)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the rows: do answers and script hold?")
    parser.add_argument("--only", nargs="+", default=[], help="these aggregates; `ten` is the ten at once")
    parser.add_argument("--limit", type=float, default=240, help="stop Spark's own way after so many seconds")
    given = parser.parse_args()
    rows = given.rows // 50 if given.quick else given.rows
    names = [name for name in sw.AGGREGATES if not given.only or name in given.only]
    spark = local_session("benchmark", conf={"spark.driver.memory": "6g"})
    print(heading(Spark=spark.version))
    found: list[dict] = []
    with tempfile.TemporaryDirectory() as folder:
        data = write_rows(spark, Path(folder), rows, 1000, 1000)
        fifth = write_rows(spark, Path(folder), rows // 5, 1000, 1000)
        dense = write_rows(spark, Path(folder), rows // 5, 16, 1000)
        # One key in eight, so that an aggregate takes seconds in process and not minutes.
        table = data.frame.where("k % 8 = 0").select("ts", "k", *TYPES).orderBy("ts").toArrow()
        found += each_alone(spark, data, table, names)
        found += beside_spark(spark, fifth, [n for n in names if n != "median"], given.limit)
        found += beside_spark(
            spark, dense, [n for n in ("count_distinct", "median", "percentile") if n in names], given.limit
        )
        long = write_rows(spark, Path(folder), rows // 5, 16, 4000)
        found += flat(long, [n for n in ("median", "percentile", "count_distinct") if n in names])
        if not given.only or "ten" in given.only:
            found += ten_at_once(data)
    bars(found)
    save(given.save, found)
    spark.stop()


if __name__ == "__main__":
    main()
