"""How fast is batch on Spark?  One table per number of keys, one run, every answer checked.

    python benchmarks/spark_batch.py [--rows N] [--keys K ...] [--only NAME ...] [--limit SECONDS] [--cpu] [--save FILE]

5 million rows of 16 keys over 5000 s, and again of 100 000 keys over 100 s: windows of 1000 s, 100 000 keys and 5000
s would be half a billion results, whoever computes them; and sessions of 1000 keys over 5000 s. Each case stands
beside Spark's own way, where there is one, and beside the floor: ``groupBy(keys, unix_micros(ts) div 1000000)``, which
slices by the second and does nothing else. With few keys sliding windows stand beside an expert's way: that grouping,
and a RANGE frame over it. Twenty of them are twenty frames put together, which Spark computes over one shuffle. Frames
are segment trees, which Spark has since 4.2 and must be asked for, unless a case says that they are Spark's default.

Data lies in Parquet; a measurement plans and writes to the ``noop`` sink, after a first run that warms up, and is the
median of the runs. Where they are to be told apart by little, ours and Spark's take turns; ``--cpu`` measures these by
CPU seconds of the JVM and of Python, on a machine that others use. Elsewhere Spark's own way runs in a process of its
own and is stopped when a run takes longer than ``--limit``: it may hang while it plans, when there is no job yet that
could be cancelled.

Answers: the number of results and the sums of all totals and counts from Spark's own way, where it is fast enough to be
asked again, and all windows of some keys from NumPy over the same rows.
"""

from __future__ import annotations

import argparse
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from _harness import Spread, arguments, bar, clock, cpu_clock, heading, in_turns, load, median_of, save
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.spark import local_session

SECOND = 1_000_000
#: How many keys are checked window by window.
CHECKED = 4
#: The gaps of sessions, and in how many keys; of so many rows, most sessions hold one, some, and all of a key.
GAPS, KEYS_OF_SESSIONS = ("8 milliseconds", "1 second", "5 minutes"), (16, 1000, 100_000)
#: The lengths of twenty sliding windows, in seconds.
TWENTY = range(10, 210, 10)
TOTALS = {"total": sw.sum("v"), "n": sw.count()}
#: Whether Spark answers RANGE frames by trees, or folds every row of each.
SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"


@dataclass(frozen=True)
class Case:
    """A workload beside Spark's own way of asking for it."""

    name: str
    workload: sw.Workload
    own: Callable[[DataFrame], DataFrame] | None = None
    #: Ours and Spark's take turns, in one session.
    in_turns: bool = False
    #: Spark's way has windows that end with a second of rows only.
    at_rows: bool = False
    #: Whether RANGE frames are segment trees.
    trees: bool = True


@dataclass(frozen=True)
class Data:
    """Rows as Spark reads them, and those of the checked keys as arrays, by key and time."""

    frame: DataFrame
    path: str
    rows: int
    keys: int
    span: int
    sample: dict[int, tuple[np.ndarray, np.ndarray]]
    shuffle: str | None
    #: By what a run is timed.
    now: Callable[[], float] = time.perf_counter

    def run(self, case: Case) -> DataFrame:
        """The results of a case by slicewise."""
        return case.workload.run(self.frame, shuffle=self.shuffle)


def write_rows(spark: SparkSession, folder: Path, rows: int, keys: int, span: int, **how: Any) -> Data:
    """Rows with random times, keys and values, from a seed, written once."""
    path = str(folder / f"rows-{keys}")
    step = span * SECOND // rows
    made = spark.range(rows).select(
        F.timestamp_micros(F.col("id") * step + F.abs(F.hash(F.col("id"), F.lit(1))) % max(step, 1)).alias("ts"),
        (F.abs(F.hash(F.col("id"), F.lit(2))) % keys).cast("long").alias("k"),
        (F.abs(F.hash(F.col("id"), F.lit(3))) % 1000).cast("long").alias("v"),
    )
    made.write.parquet(path)
    frame = spark.read.parquet(path)
    chosen = frame.where(F.col("k").isin(*range(CHECKED))).select("k", F.unix_micros("ts").alias("t"), "v").toArrow()
    k, t, v = (chosen.column(name).to_numpy() for name in ("k", "t", "v"))
    order = np.lexsort((v, t, k))
    k, t, v = k[order], t[order], v[order]
    sample = {key: (t[k == key], v[k == key]) for key in range(CHECKED)}
    return Data(frame, path, rows, keys, span, sample, **how)


# The cases


def lengths(queries: int, unit: str) -> list[int]:
    """Window lengths spread evenly over 1..20 seconds, in whole seconds or in distinct milliseconds."""
    if unit == "seconds":
        return [(1 + i % 20) * SECOND for i in range(queries)]
    return [SECOND + round(19_000 * i / max(1, queries - 1)) * 1000 for i in range(queries)]


def concurrent(queries: int, unit: str = "seconds") -> sw.Workload:
    """So many tumbling windows at once."""
    workload = base()
    for i, length in enumerate(lengths(queries, unit)):
        workload = workload.query(f"w{i}", sw.tumbling(f"{length} us"), **TOTALS)
    return workload


def base() -> sw.Workload:
    return sw.Workload("ts", keys=["k"], order=["v"])


def totals() -> list:
    return [F.sum("v").alias("total"), F.count(F.lit(1)).alias("n")]


def grouped(window: F.Column) -> Callable[[DataFrame], DataFrame]:
    return lambda frame: frame.groupBy("k", window).agg(*totals())


def one_after_another(queries: int, unit: str) -> Callable[[DataFrame], DataFrame]:
    """Spark's way for several windows: a grouping for each, put together."""

    def own(frame: DataFrame) -> DataFrame:
        found = [frame.groupBy("k", F.window("ts", f"{n} microseconds")).agg(*totals()) for n in lengths(queries, unit)]
        together = found[0]
        for each in found[1:]:
            together = together.union(each)
        return together

    return own


def last_rows(size: int) -> Callable[[DataFrame], DataFrame]:
    """Spark's way for the last rows: an OVER frame, of which the full ones are kept."""

    def own(frame: DataFrame) -> DataFrame:
        placed = Window.partitionBy("k").orderBy("ts", "v")
        framed = placed.rowsBetween(-(size - 1), 0)
        found = frame.select("k", F.row_number().over(placed).alias("at"), *(t.over(framed) for t in totals_plain()))
        return found.toDF("k", "at", "total", "n").where(F.col("at") >= size)

    return own


def totals_plain() -> list:
    return [F.sum("v"), F.count(F.lit(1))]


def frames(lengths: Iterable[int]) -> Callable[[DataFrame], DataFrame]:
    """An expert's way for sliding windows every second: totals of seconds, and a RANGE frame over them for each length.

    Spark shuffles the totals once, however many frames there are.
    """

    def own(frame: DataFrame) -> DataFrame:
        found = []
        for length in lengths:
            sums = [total.alias(name) for name, total in _framed(length).items()]
            found.append(floor(frame).select("k", F.lit(f"s{length}").alias("query"), "s", *sums))
        return reduce(DataFrame.union, found)

    return own


def _framed(length: int) -> dict[str, F.Column]:
    last = Window.partitionBy("k").orderBy("s").rangeBetween(-(length - 1), 0)
    return {name: F.sum(name).over(last) for name in TOTALS}


def slides(lengths: Iterable[int]) -> sw.Workload:
    """Sliding windows every second."""
    workload = base()
    for length in lengths:
        workload = workload.query(f"s{length}", sw.sliding(f"{length} seconds", every="1 second"), **TOTALS)
    return workload


def table_of_edges(edges: np.ndarray) -> sw.windows.TableEdges:
    """Windows between neighbouring edges, as the rows of a table in any order."""
    order = np.random.default_rng(3).permutation(len(edges) - 1)
    bounds = {"start": edges[:-1][order], "end": edges[1:][order]}
    return sw.edges({name: pa.array(at).cast(pa.timestamp("us", "UTC")) for name, at in bounds.items()})


def seconds_of_a_table(span: int) -> sw.windows.TableEdges:
    """Windows of a second each."""
    return table_of_edges(np.arange(span + 2) * SECOND)


def uneven_table(span: int) -> sw.windows.TableEdges:
    """As many windows, of 0.6 to 1.4 seconds."""
    return table_of_edges(np.arange(span + 2) * SECOND + np.random.default_rng(4).integers(0, 400_000, span + 2))


def sessions() -> Iterator[Case]:
    for gap in GAPS:
        own = grouped(F.session_window("ts", gap))
        yield Case(f"session, {gap}", base().query("q", sw.session(gap), **TOTALS), own, in_turns=True)


def beside_frames(lengths: Sequence[int], ways: Sequence[bool] = (True, False)) -> Iterator[Case]:
    """Sliding windows beside an expert's way, whose frames are trees or Spark's default."""
    name = "one beside a frame" if len(lengths) == 1 else "twenty beside frames"
    for trees in ways:
        named = name if trees else f"{name} by default"
        yield Case(named, slides(lengths), frames(lengths), in_turns=True, at_rows=True, trees=trees)


def cases(span: int, keys: int) -> Iterator[Case]:
    """The cases for so many keys."""
    if keys == KEYS_OF_SESSIONS[1]:
        yield from beside_frames([100], ways=[True])
        yield from sessions()
        return
    tumbling = base().query("q", sw.tumbling("1 second"), **TOTALS)
    yield Case("tumbling 1 s", tumbling, grouped(F.window("ts", "1 second")), in_turns=True)
    yield Case("the same from a table", base().query("q", seconds_of_a_table(span), **TOTALS))
    yield Case("from an uneven table", base().query("q", uneven_table(span), **TOTALS))
    if keys <= KEYS_OF_SESSIONS[0]:
        yield from beside_frames([100])
        yield from beside_frames(TWENTY)
    pair = (
        base()
        .query("q", sw.tumbling("1 second"), **TOTALS)
        .query("s", sw.sliding("10 seconds", every="1 second"), **TOTALS)
    )
    yield Case("tumbling 1 s, and sliding", pair)
    pair = (
        base()
        .query("q", seconds_of_a_table(span), **TOTALS)
        .query("s", sw.sliding("10 seconds", every="1 second"), **TOTALS)
    )
    yield Case("from a table, and sliding", pair)
    for seconds in (10, 100, 1000):
        window = sw.sliding(f"{seconds} seconds", every="1 second")
        own = grouped(F.window("ts", f"{seconds} seconds", "1 second"))
        yield Case(f"sliding {seconds} s / 1 s", base().query("q", window, **TOTALS), own)
    for queries, unit in ((1, "seconds"), (10, "seconds"), (100, "seconds"), (1000, "seconds"), (100, "milliseconds")):
        own = one_after_another(queries, unit) if queries <= 10 else None
        yield Case(f"{queries} concurrent, {unit}", concurrent(queries, unit), own)
    yield from sessions()
    rows = sw.sliding(sw.rows(1000), every=sw.rows(1))
    yield Case("rows 1000 / 1", base().query("q", rows, **TOTALS), last_rows(1000))


def floor(frame: DataFrame) -> DataFrame:
    """Slices of a second, and nothing else."""
    return frame.groupBy("k", F.expr("unix_micros(ts) div 1000000").alias("s")).agg(*totals())


# Measuring


def seconds_of(run: Callable[[], DataFrame], now: Callable[[], float] = time.perf_counter) -> float:
    """How long it takes to plan a DataFrame and to write all results nowhere."""
    return clock(lambda: run().write.format("noop").mode("overwrite").save(), now)


def both_seconds(case: Case, data: Data, runs: int, limit: float) -> tuple[float, float | None]:
    """How long slicewise takes, and Spark's own way, where there is one and it is done in time."""
    if case.in_turns:
        ways = (lambda: data.run(case), lambda: _own(case, data))
        data.frame.sparkSession.conf.set(SEGMENT_TREE, str(case.trees).lower())
        pairs = in_turns(runs + 1, *(lambda f=f: seconds_of(f, data.now) for f in ways))
        ours, own = (Spread.of(seconds[1:]).median for seconds in pairs)
        return ours, own
    ours = median_of(lambda: seconds_of(lambda: data.run(case), data.now), runs)
    return ours, None if case.own is None else own_seconds(case, data, runs, limit)


def _own(case: Case, data: Data) -> DataFrame:
    assert case.own is not None
    return case.own(data.frame)


def own_seconds(case: Case, data: Data, runs: int, limit: float) -> float | None:
    """The median of Spark's own way, None if a run took longer than the limit. One slow run is enough."""
    command = [sys.executable, __file__, "--own", case.name, data.path, str(data.span), str(data.keys), str(runs)]
    found: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: [lines.put(line) for line in child.stdout or ()], daemon=True).start()
        try:
            lines.get(timeout=120)  # the session is there
            while len(found) <= runs and not (found and found[0] > limit / 4):
                found.append(float(lines.get(timeout=limit)))
        except queue.Empty:
            return None
        finally:
            child.kill()
    return Spread.of(found[1:] or found).median


def run_own(name: str, path: str, span: str, keys: str, runs: str) -> None:
    """In the process of its own: a line when the session is there, then one for each run."""
    spark = session()
    frame = spark.read.parquet(path)
    (case,) = (case for case in cases(int(span), int(keys)) if case.name == name)
    print("ready", flush=True)
    for _ in range(int(runs) + 1):
        assert case.own is not None
        print(seconds_of(lambda: case.own(frame)), flush=True)


def session() -> SparkSession:
    return local_session("benchmark", conf={"spark.driver.memory": "6g", SEGMENT_TREE: "true"})


# Answers


def check(case: Case, data: Data, own_in_time: bool) -> int:
    """Compare the results with Spark's own, or with what NumPy says; returns how many there were."""
    found = data.run(case)
    mine = _summary(found)
    if own_in_time and case.own is not None:
        both = _summary(_at_rows(found, data)) if case.at_rows else mine
        assert both == _summary(case.own(data.frame)), f"{case.name}: {both}, Spark says otherwise"
    shown = found.where(F.col("k") < CHECKED).select(
        "k",
        "query",
        F.coalesce("span.start", F.unix_micros("window.start").cast("double")).alias("start"),
        "total",
        "n",
    )
    table = shown.toArrow()
    k, start, total, n = (table.column(c).to_numpy() for c in ("k", "start", "total", "n"))
    query = np.array(table.column("query").to_pylist(), object)
    for said in case.workload.queries:
        for key, (times, values) in data.sample.items():
            here = np.flatnonzero((k == key) & (query == said.name))
            here = here[np.argsort(start[here])]
            expected = _expected(said.window, times, values)
            for what, a, b in zip(("start", "total", "n"), (start, total, n), expected, strict=True):
                assert np.array_equal(a[here], b), f"{case.name}, key {key}: {what} is wrong"
    return mine[0]


def _at_rows(results: DataFrame, data: Data) -> DataFrame:
    """The results of windows whose last second has rows."""
    end = F.timestamp_seconds(F.col("s") + 1)
    seconds = floor(data.frame).select(F.col("k").alias("key"), end.alias("at"))
    return results.join(seconds, (F.col("k") == F.col("key")) & (F.col("window.end") == F.col("at")), "left_semi")


def _summary(frame: DataFrame) -> tuple[int, int, int]:
    return tuple(frame.agg(F.count(F.lit(1)), F.sum("total"), F.sum("n")).collect()[0])


def _expected(window: object, times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    running = np.concatenate([[0], np.cumsum(values)])
    if window.kind == "session":
        low = np.concatenate([[0], np.flatnonzero(np.diff(times) > window.gap.size) + 1])
        high = np.append(low[1:], len(times))
        start = times[low]
    elif window.kind == "edges":
        begins, ends = window.table.list.start, window.table.list.end
        low, high = np.searchsorted(times, begins), np.searchsorted(times, ends)
        start, low, high = (x[low < high] for x in (begins, low, high))
    elif window.length.measure.kind == "rows":
        start = low = np.arange(max(0, len(times) - window.length.size + 1))
        high = low + window.length.size
    else:
        length, every = int(window.length.size), int(window.every.size)
        start = np.arange((times[0] - length) // every + 1, times[-1] // every + 1) * every
        low, high = np.searchsorted(times, start), np.searchsorted(times, start + length)
        start, low, high = (x[low < high] for x in (start, low, high))
    return start, running[high] - running[low], high - low


# The table


def measure(data: Data, only: list[str], runs: int, limit: float) -> Iterator[dict]:
    clocked = "CPU" if data.now is cpu_clock else "wall"
    print(
        f"\n{data.rows:,} rows, {data.keys:,} keys, {data.span} s of data, shuffle={data.shuffle!r}, {clocked} seconds"
    )
    base_time = median_of(lambda: seconds_of(lambda: floor(data.frame), data.now), runs)
    print(f"  {'':<28} {'results':>11} {'s':>7} {'M rows/s':>9} {'Spark, s':>9} {'x Spark':>8} {'x floor':>8}")
    print(f"  {'floor: group by second':<28} {'':>11} {base_time:>7.2f} {data.rows / base_time / 1e6:>9.2f}")
    yield {"keys": data.keys, "case": "floor", "seconds": base_time, "rows": data.rows}
    for case in cases(data.span, data.keys):
        if only and not any(name in case.name for name in only):
            continue
        if data.now is cpu_clock and not case.in_turns:
            continue
        ours, own = both_seconds(case, data, runs, limit)
        results = check(case, data, own_in_time=own is not None and own < limit / 4)
        there = "" if case.own is None else (f">{limit:.0f}" if own is None else f"{own:.2f}")
        ratio = None if case.own is None else (limit if own is None else own) / ours
        times = "" if ratio is None else f"{'>' if own is None else ''}{ratio:.2f}"
        print(
            f"  {case.name:<28} {results:>11,} {ours:>7.2f} {data.rows / ours / 1e6:>9.2f} {there:>9} {times:>8} "
            f"{base_time / ours:>8.2f}",
            flush=True,
        )
        yield {
            "keys": data.keys,
            "shuffle": data.shuffle,
            "clock": clocked,
            "case": case.name,
            "rows": data.rows,
            "results": results,
            "seconds": ours,
            "spark": own,
            "limit": limit if case.own is not None and own is None else None,
            "floor": base_time,
        }


def bars(found: list[dict]) -> None:
    """What was promised, and whether it was reached."""
    by = {(f["keys"], f["case"]): f for f in found}
    few, many = min(f["keys"] for f in found), max(f["keys"] for f in found)

    def against_spark(f: dict) -> float:
        return (f["spark"] or f["limit"]) / f["seconds"]

    print("\nbars")
    hundred, thousand = by.get((few, "sliding 100 s / 1 s")), by.get((few, "sliding 1000 s / 1 s"))
    one, concurrent_100 = by.get((few, "tumbling 1 s")), by.get((few, "100 concurrent, seconds"))
    single = by.get((few, "1 concurrent, seconds"))
    if hundred:
        bar("sliding 100 s / 1 s, at least 40 times as fast as Spark", against_spark(hundred), at_least=40)
    if thousand:
        bar("sliding 1000 s / 1 s, within 2 times of the floor", thousand["seconds"] / thousand["floor"], at_most=2)
    if one:
        bar("one tumbling window, at most 1.1 times Spark's time", 1 / against_spark(one), at_most=1.1)
    if single and concurrent_100:
        bar("100 concurrent, within 3 times of one", concurrent_100["seconds"] / single["seconds"], at_most=3)
    tables = {
        "windows from a table": ("the same from a table", "tumbling 1 s"),
        "windows from an uneven table": ("from an uneven table", "tumbling 1 s"),
        "windows from a table, beside a sliding window": ("from a table, and sliding", "tumbling 1 s, and sliding"),
    }
    for what, names in tables.items():
        pair = [by.get((few, name)) for name in names]
        if pair[0] and pair[1]:
            bar(f"{what}, within 1.5 times of tumbling", pair[0]["seconds"] / pair[1]["seconds"], at_most=1.5)
    for f in found:
        if "beside" in f["case"]:
            least = 5 if f["case"].startswith("twenty") else 1
            bar(f"{f['case']}, {f['keys']:,} keys, at least {least} times as fast", against_spark(f), at_least=least)
        if f["case"].startswith("session"):
            bar(f"{f['case']}, {f['keys']:,} keys, never slower than Spark", against_spark(f), at_least=1)
    slowest = [(against_spark(f), f["case"]) for f in found if f["keys"] == many and (f.get("spark") or f.get("limit"))]
    if slowest and many > few:
        bar(f"{many:,} keys, never slower than Spark ({min(slowest)[1]})", min(slowest)[0], at_least=1)


def draw(found: list[dict], path: Path) -> None:
    """How long sliding windows take as they get longer: ours, Spark's own, and the floor."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    few = min(f["keys"] for f in found)
    by = {f["case"]: f for f in found if f["keys"] == few}
    lengths = [n for n in (10, 100, 1000) if f"sliding {n} s / 1 s" in by]
    cases = [by[f"sliding {n} s / 1 s"] for n in lengths]
    figure, axes = pyplot.subplots(figsize=(7.5, 3.6))
    own = [f["spark"] or f["limit"] for f in cases]
    axes.plot(lengths, own, color="#D55E00", marker="o")
    axes.plot(lengths, [f["seconds"] for f in cases], color="#0072B2", marker="o")
    axes.axhline(by["floor"]["seconds"], color="#999999", linewidth=1, linestyle="--")
    for n, f, seconds in zip(lengths, cases, own, strict=True):
        axes.annotate(
            f"{seconds:.1f} s" if f["spark"] else f"stopped\nat {seconds:.0f} s", (n, seconds), (6, -4),
            textcoords="offset points", va="top", color="#D55E00", fontsize=9,
        )  # fmt: skip
        axes.annotate(
            f"{f['seconds']:.2f} s", (n, f["seconds"]), (0, -14), textcoords="offset points", ha="center",
            color="#0072B2", fontsize=9,
        )  # fmt: skip
    axes.annotate(
        "Spark's own window", (lengths[1], own[1]), (-12, 6), textcoords="offset points", ha="right", color="#D55E00"
    )
    axes.annotate("slicewise", (lengths[0], cases[0]["seconds"]), (8, 8), textcoords="offset points", color="#0072B2")
    axes.annotate("group by second, nothing else", (lengths[-1], by["floor"]["seconds"]), (0, 5),
                  textcoords="offset points", ha="right", color="#777777", fontsize=8)  # fmt: skip
    axes.set(xscale="log", yscale="log", xlabel="length of the window, every second", ylabel="seconds")
    axes.set_xticks(lengths, [f"{n} s" for n in lengths])
    axes.set_xlim(lengths[0] * 0.7, lengths[-1] * 2)
    axes.set_ylim(min(f["seconds"] for f in cases) / 2, max(own) * 2)
    axes.set_title(f"{by['floor']['rows'] / 1e6:.0f} million rows, {few} keys", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--keys", type=int, nargs="+", default=list(KEYS_OF_SESSIONS))
    parser.add_argument("--only", nargs="+", default=[], help="cases whose name contains one of these")
    parser.add_argument("--shuffle", choices=["slices", "rows"], help="instead of what slicewise chooses")
    parser.add_argument("--limit", type=float, default=600, help="stop Spark's own way after so many seconds")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="CPU seconds, and only cases in turns; on Linux")
    parser.add_argument("--draw", type=Path, help="draw figures that were saved before, and do nothing else")
    parser.add_argument("--own", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.own:
        run_own(*given.own)
        return
    if given.draw:
        draw(load(given.draw), given.draw.with_suffix(".png"))
        return
    spark = session()
    print(heading(Spark=spark.version))
    found: list[dict] = []
    how = {"shuffle": given.shuffle, "now": cpu_clock if given.cpu else time.perf_counter}
    with tempfile.TemporaryDirectory() as folder:
        for keys in given.keys:
            span = (5000 if keys <= 1000 else 100) * given.rows // 5_000_000
            data = write_rows(spark, Path(folder), given.rows, keys, max(span, 20), **how)
            for figures in measure(data, given.only, given.runs, given.limit):
                found.append(figures)
                save(given.save, found)  # a run that is stopped keeps what it has
    bars(found)
    spark.stop()


if __name__ == "__main__":
    main()
