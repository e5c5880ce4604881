"""slicewise beside what people would use instead: Spark's windows and frames, Bytewax, Polars, DuckDB, pandas.

    python benchmarks/peers.py [--rows N] [--only CASE ...] [--save FILE] [--page docs/peers.md]

One run, the same rows: 16 keys, a row every millisecond, in a Parquet file that each reads in its own way. Ways are
taken in turns, and every answer is compared before a time is reported: the number of complete windows, the sum of their
sums, and a sum that depends on which window has which. What is not installed is named and left out. Bytewax takes rows
one by one in Python, and gets a twentieth of them.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from _harness import ROOT, Spread, arguments, clock, environment, heading, load, save

import slicewise as sw

SECOND = 1_000_000
KEYS = 16
#: Windows of so many seconds every so many; a tumbling one first.
CASES = {"tumbling 1 s": (1, 1), "sliding 10 s / 1 s": (10, 1), "sliding 100 s / 1 s": (100, 1)}
#: Stop repeating a way that takes longer.
LONG = 8.0
BYTEWAX_SHARE = 20
Digest = tuple[int, int, int]
#: Flink 2.3 SQL, 5 million rows, batch; another day's measurements, in million rows a second.
FLINK = {"tumbling 1 s": 1.8, "sliding 10 s / 1 s": 0.69, "sliding 100 s / 1 s": 0.095}


@dataclass(frozen=True)
class Rows:
    """The rows in a file, and the span of their event times."""

    path: Path
    n: int
    last: int

    def digest(self, start: Any, total: Any, length: int) -> Digest:
        """Of the windows that lie between the first row and the last one."""
        start, total = np.asarray(start, np.int64), np.asarray(total, np.int64)
        whole = (start >= 0) & (start + length * SECOND <= self.last // SECOND * SECOND)
        start, total = start[whole] // SECOND, total[whole]
        return len(start), int(total.sum()), int((total * (start % 97)).sum())


def write_rows(folder: Path, n: int) -> Rows:
    """A row every millisecond, of random keys and values."""
    random = np.random.default_rng(0)
    times = np.arange(n) * 1000
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "k": random.integers(0, KEYS, n),
            "v": random.integers(0, 1000, n),
        }
    )
    path = folder / f"rows-{n}.parquet"
    pq.write_table(table, path, row_group_size=max(n // 4, 1))
    return Rows(path, n, int(times[-1]))


# -- the ways: each takes rows, length and slide in seconds, and gives what to run; its answer is computed apart


def workload(length: int, every: int) -> sw.Workload:
    window = sw.sliding(f"{length} seconds", every=f"{every} seconds")
    return sw.Workload("ts", keys=["k"]).query("q", window, total=sw.sum("v"))


def in_process(rows: Rows, length: int, every: int) -> tuple[Callable[[], Any], Callable[[Any], Digest]]:
    def run() -> Any:
        op = workload(length, every).operator()
        op.process_batch(pq.read_table(rows.path))
        return op.close()

    def answer(results: Any) -> Digest:
        blocks = list(results.blocks)
        starts, totals = ([b.start for b in blocks], [b.values[0].values for b in blocks])
        return rows.digest(np.concatenate(starts), np.concatenate(totals), length)

    return run, answer


def _spark_way(make: Callable[[Any, int, int], Any]) -> Callable[..., Any]:
    def way(rows: Rows, length: int, every: int) -> tuple[Callable[[], Any], Callable[[Any], Digest]]:
        from pyspark.sql import functions as F

        from slicewise.spark import local_session

        conf = {"spark.driver.memory": "6g", "spark.sql.window.segmentTree.enabled": "true"}
        spark = local_session("peers", conf=conf)

        def run() -> Any:
            frame = make(spark.read.parquet(str(rows.path)), length, every)
            frame.write.format("noop").mode("overwrite").save()
            return frame

        def answer(frame: Any) -> Digest:
            start = F.unix_micros("window.start") if "window" in frame.columns else F.col("s") * SECOND
            found = frame.select(start.alias("start"), "total").toArrow()
            return rows.digest(found["start"].to_numpy(), found["total"].to_numpy(), length)

        return run, answer

    return way


def _slicewise(frame: Any, length: int, every: int) -> Any:
    return workload(length, every).run(frame)


def _window(frame: Any, length: int, every: int) -> Any:
    from pyspark.sql import functions as F

    window = F.window("ts", f"{length} seconds", f"{every} seconds")
    return frame.groupBy("k", window).agg(F.sum("v").alias("total"))


def _frame(frame: Any, length: int, every: int) -> Any:
    """By hand: sums by second, then a RANGE frame over them; a window starts ``length - 1`` seconds before its last."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    slices = frame.groupBy("k", F.expr("unix_micros(ts) div 1000000").alias("second")).agg(F.sum("v").alias("part"))
    over = Window.partitionBy("k").orderBy("second").rangeBetween(-(length - 1), 0)
    return slices.select((F.col("second") - (length - 1)).alias("s"), F.sum("part").over(over).alias("total"))


def polars(rows: Rows, length: int, every: int) -> tuple[Callable[[], Any], Callable[[Any], Digest]]:
    import polars as pl

    def run() -> Any:
        frame = pl.read_parquet(rows.path).sort("k", "ts")
        grouped = frame.group_by_dynamic("ts", every=f"{every}s", period=f"{length}s", group_by="k")
        return grouped.agg(pl.col("v").sum().alias("total"))

    def answer(found: Any) -> Digest:
        return rows.digest(found["ts"].dt.epoch("us").to_numpy(), found["total"].to_numpy(), length)

    return run, answer


def duckdb(rows: Rows, length: int, every: int) -> tuple[Callable[[], Any], Callable[[Any], Digest]]:
    import duckdb as db

    text = f"""
        select second - {length - 1} as s, sum(part) over (
            partition by k order by second range between {length - 1} preceding and current row) as total
        from (select k, epoch_us(ts) // {SECOND} as second, sum(v) as part from '{rows.path}' group by all)
    """

    def run() -> Any:
        return db.sql(text).to_arrow_table()

    def answer(found: Any) -> Digest:
        return rows.digest(found["s"].to_numpy() * SECOND, found["total"].cast(pa.int64()).to_numpy(), length)

    return run, answer


def pandas(rows: Rows, length: int, every: int) -> tuple[Callable[[], Any], Callable[[Any], Digest]]:
    import pandas as pd

    def run() -> Any:
        frame = pd.read_parquet(rows.path)
        by_second = frame.groupby(["k", frame["ts"].dt.floor("1s")])["v"].sum().unstack("k", fill_value=0)
        whole = by_second.asfreq("1s", fill_value=0)
        return whole.rolling(length).sum().dropna()

    def answer(found: Any) -> Digest:
        ends = found.index.as_unit("us").asi8 + SECOND
        start = np.repeat(ends - length * SECOND, found.shape[1])
        return rows.digest(start, np.rint(found.to_numpy()).astype(np.int64).ravel(), length)

    return run, answer


def bytewax(rows: Rows, length: int, every: int) -> tuple[Callable[[], Any], Callable[[Any], Digest]]:
    import datetime

    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing as win
    from bytewax.testing import TestingSink, TestingSource, run_main

    zero = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    table = pq.read_table(rows.path)
    columns = (table["k"].to_pylist(), table["ts"].cast(pa.int64()).to_pylist(), table["v"].to_pylist())
    items = [(str(k), (zero + datetime.timedelta(microseconds=t), v)) for k, t, v in zip(*columns, strict=True)]

    def run() -> Any:
        out: list[Any] = []
        flow = Dataflow("peers")
        stream = op.input("in", flow, TestingSource(items, batch_size=1000))
        # Its watermark moves on with the system's clock, and rows are late when the machine is busy: that clock stands.
        clock_ = win.EventClock(lambda item: item[0], datetime.timedelta(0), now_getter=lambda: zero)
        windower = win.SlidingWindower(
            length=datetime.timedelta(seconds=length), offset=datetime.timedelta(seconds=every), align_to=zero
        )
        folded = win.fold_window("sum", stream, clock_, windower, int, lambda total, item: total + item[1], int.__add__)
        op.output("out", folded.down, TestingSink(out))
        run_main(flow)
        return out

    def answer(found: list[Any]) -> Digest:
        starts = [window * every * SECOND for _, (window, _) in found]
        return rows.digest(starts, [total for _, (_, total) in found], length)

    return run, answer


#: Name, package that must be installed, way, and a share of the rows.
WAYS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "slicewise on Spark": ("pyspark", _spark_way(_slicewise), 1),
    "Spark, groupBy + RANGE frame by hand": ("pyspark", _spark_way(_frame), 1),
    "Spark, window": ("pyspark", _spark_way(_window), 1),
    "slicewise in process": ("slicewise", in_process, 1),
    "Polars, group_by_dynamic": ("polars", polars, 1),
    "DuckDB, group by + RANGE frame by hand": ("duckdb", duckdb, 1),
    "pandas, floor + rolling by hand": ("pandas", pandas, 1),
    "Bytewax, fold_window": ("bytewax", bytewax, BYTEWAX_SHARE),
}


def missing() -> list[str]:
    """The ways whose package is not installed."""
    return [name for name, (package, _, _) in WAYS.items() if importlib.util.find_spec(package) is None]


def measure(rows: int, only: list[str], repeat: int, skip: list[str]) -> Iterator[dict[str, Any]]:
    """All cases, ways in turns."""
    absent = missing()
    for name in absent:
        print(f"{name}: {WAYS[name][0]} is not installed, left out")
    with tempfile.TemporaryDirectory() as folder:
        tables = {share: write_rows(Path(folder), rows // share) for share in (1, BYTEWAX_SHARE)}
        for case, (length, every) in CASES.items():
            if only and not any(part in case for part in only):
                continue
            ways = {n: w for n, w in WAYS.items() if n not in absent and not any(part in n for part in skip)}
            made = {name: way(tables[share], length, every) for name, (_, way, share) in ways.items()}
            yield from _one_case(case, ways, made, tables, repeat)


def _one_case(case: str, ways: Any, made: Any, tables: dict[int, Rows], repeat: int) -> Iterator[dict[str, Any]]:
    seconds: dict[str, list[float]] = {name: [] for name in made}
    length, every = CASES[case]
    answers: dict[int, tuple[str, Digest]] = {}
    for share in {share for _, _, share in ways.values()}:
        run, answer = in_process(tables[share], length, every)
        answers[share] = "slicewise", answer(run())
    for turn in range(repeat + 1):  # the first warms up, unless it takes long
        for name, (run, answer) in made.items():
            # A first run also starts what there is to start.
            if turn and min(seconds[name]) > (60 if turn == 1 else LONG):
                continue
            outcome: dict[str, Any] = {}
            taken = clock(lambda run=run, outcome=outcome: outcome.__setitem__("it", run()))
            if turn == 0:
                digest = answer(outcome["it"])
                first, expected = answers[ways[name][2]]
                if digest != expected:
                    raise SystemExit(f"{case}: {name} says {digest}, {first} {expected}")
            if turn == 1:
                seconds[name].clear()
            seconds[name].append(taken)
    for name, taken in seconds.items():
        spread, n = Spread.of(taken), tables[ways[name][2]].n
        print(f"  {case:<22} {name:<40} {spread.median:8.2f} s  {n / spread.median / 1e6:8.2f} M rows/s", flush=True)
        yield {"case": case, "way": name, "rows": n, "seconds": spread.median, "low": spread.low, "high": spread.high}


# -- the page


def write_page(page: Path, found: list[dict[str, Any]], where: dict[str, Any]) -> None:
    """docs/peers.md from what was measured."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    lines = [
        "# Beside others",
        "",
        "slicewise beside what people would use instead: one run, the same rows, every answer checked. Written by",
        "`python benchmarks/peers.py --page docs/peers.md`; nothing on this page is written by hand. Each way is",
        "given the time that its users would see, reading the Parquet file included. Seconds are medians, with the",
        f"fastest and the slowest run; a way that takes longer than {LONG:.0f} seconds ran once. Where rows are fewer,",
        "compare million rows a second.",
        "",
        f"Commit {where['commit']}, {where['day']}, {where['machine']}, Python {where['python']}; {versions}.",
        "",
    ]
    for case in dict.fromkeys(line["case"] for line in found):
        here = [line for line in found if line["case"] == case]
        base = next((ln["rows"] / ln["seconds"] for ln in here if ln["way"] == "slicewise on Spark"), None)
        base = base or here[0]["rows"] / here[0]["seconds"]
        lines += [
            f"## {case}",
            "",
            "| way | seconds | million rows/s | times slicewise's rate on Spark |",
            "| --- | --- | --- | --- |",
        ]
        for ln in here:
            rate = ln["rows"] / ln["seconds"]
            lines.append(
                f"| {ln['way']} | {ln['seconds']:.2f} ({ln['low']:.2f} to {ln['high']:.2f}) | {rate / 1e6:.3g} | "
                f"{rate / base:.2g} |"
            )
        lines += [f"| Flink 2.3 SQL, batch (another day, 5 million rows) | | {FLINK[case]} | |", ""]
    lines += _reading(found)
    absent = [name for name in WAYS if name not in {line["way"] for line in found}]
    if absent:
        lines += [f"Not in this run: {', '.join(absent)}.", ""]
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def draw(found: list[dict[str, Any]], path: Path, case: str = "sliding 100 s / 1 s") -> bool:
    """Seconds of all ways that ran over all rows, for one case; False without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = max(line["rows"] for line in found)
    here = [line for line in found if line["case"] == case and line["rows"] == rows]
    here.sort(key=lambda line: line["seconds"])
    canvas, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
    colours = ["tab:blue" if line["way"].startswith("slicewise") else "0.6" for line in here]
    low = [line["seconds"] - line["low"] for line in here]
    high = [line["high"] - line["seconds"] for line in here]
    axes.barh(range(len(here)), [line["seconds"] for line in here], xerr=[low, high], color=colours)
    axes.set_yticks(range(len(here)), [line["way"] for line in here], fontsize=8)
    axes.invert_yaxis()
    axes.set_xscale("log")
    for place, line in enumerate(here):
        axes.text(line["high"] * 1.05, place, f"{line['seconds']:.2f} s", va="center", fontsize=8)
    axes.set_xlim(right=axes.get_xlim()[1] * 2)
    axes.set_xlabel(f"seconds for {case} over {rows / 1e6:g} million rows", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    canvas.savefig(path, dpi=90)
    plt.close(canvas)
    return True


def sentence(found: list[dict[str, Any]], case: str = "sliding 100 s / 1 s") -> str:
    """What README says of one case."""
    by = {line["way"]: line for line in found if line["case"] == case}
    ours, frame, window = (
        by[w]["seconds"] for w in ("slicewise on Spark", "Spark, groupBy + RANGE frame by hand", "Spark, window")
    )
    rows = by["slicewise on Spark"]["rows"]
    return (
        f"Sliding windows of 100 seconds every second over {rows / 1e6:g} million rows: {ours:.2f} s, where Spark's "
        f"own `window` takes {window:.1f} s and a `groupBy` by second with a RANGE frame, by hand, {frame:.2f} s."
    )


def _reading(found: list[dict[str, Any]]) -> list[str]:
    """Who was faster than slicewise, and what slices give beyond an expert's frame."""
    lines = ["## What to make of it", ""]
    for case in dict.fromkeys(line["case"] for line in found):
        rates = {line["way"]: line["rows"] / line["seconds"] for line in found if line["case"] == case}
        for mine in ("slicewise on Spark", "slicewise in process"):
            ratios = {name: rate / rates[mine] for name, rate in rates.items()} if mine in rates else {}
            faster = [f"{name} ({ratio:.1f} times)" for name, ratio in ratios.items() if ratio > 1.25]
            if faster:
                lines.append(f"- {case}: faster than {mine} by more than a quarter: {', '.join(faster)}.")
    lines += [
        "",
        "A frame over sums by second, written by hand, is one query on one grid, over rows that are all there. Slices",
        "give the same for any number of queries at once, for lengths that no second divides, sessions, counts and",
        "windows of your own, for late rows that correct what was reported, and on streams.",
        "",
    ]
    return lines


def main(given: list[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", default=[], help="cases whose name holds one of these")
    parser.add_argument("--skip", nargs="+", default=[], help="ways whose name holds one of these")
    parser.add_argument("--page", type=Path, help="write the page, from this run or from the file of --read")
    parser.add_argument("--read", type=Path, help="measure nothing, read what was saved")
    options = parser.parse_args(given)
    if options.read:
        import json

        saved = json.loads(options.read.read_text(encoding="utf-8"))
        found, where = load(options.read), saved["environment"]
    else:
        print(heading(rows=options.rows))
        found, where = list(measure(options.rows, options.only, options.repeat, options.skip)), environment()
        save(options.save, found)
    if options.page:
        write_page(options.page, found, where)
        if draw(found, ROOT / "benchmarks" / "results" / "peers.png"):
            print(sentence(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
