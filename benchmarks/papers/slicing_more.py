"""General stream slicing: Figures 13 to 17 and Table 1, aggregations, splits, measures, parallelism, space."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import windows as count_windows

import slicewise as sw
from papers.data import football_rows, machine_rows
from papers.figure import (
    DOES_NOT,
    HOLDS,
    IN_PART,
    Claim,
    Figure,
    Point,
    Points,
    Setting,
    Step,
    Verdict,
    now,
    ratio_verdict,
    timed,
)
from papers.workloads import check_sums, chunks_of, lengths, made, runner, tumbling
from slicewise.baselines import SumWithoutInverse
from slicewise.columns import Column
from slicewise.testing import disordered

PAPER = "General Stream Slicing"
SECOND = 1_000_000
BY_ARRAYS = "slicewise, lazy (arrays)"
AGGREGATES: dict[str, Any] = {
    "count": sw.count("v"),
    "sum": sw.sum("v"),
    "sum without inverse": SumWithoutInverse("v"),
    "mean": sw.avg("v"),
    "geometric mean": sw.geometric_mean("v"),
    "standard deviation": sw.stddev("v"),
    "min": sw.min("v"),
    "max": sw.max("v"),
    "min count": sw.min_count("v"),
    "max count": sw.max_count("v"),
    "arg min": sw.min_by("t2", "unique"),
    "arg max": sw.max_by("t2", "unique"),
    "median": sw.median("v"),
    "90 %": sw.percentile("v", 0.9),
}


def aggregations(setting: Setting) -> Iterator[Step]:
    stream = disordered(football_rows(setting.rows(100_000), setting), 0.2, 2 * SECOND, seed=2)
    chunks = [{**chunk, "t2": chunk["t"]} for chunk in chunks_of(stream, 10_000)]
    for number, chunk in enumerate(chunks):  # without ties, so that there is one answer
        chunk["unique"] = chunk["v"] * 2**24 + 10_000 * number + np.arange(len(chunk["v"]))
    for panel in ("time", "count"):
        for name, aggregate in AGGREGATES.items():

            def run(panel: str = panel, name: str = name, aggregate: Any = aggregate) -> list[Point]:
                workload = tumbling(20, aggregate) if panel == "time" else _counts(20, aggregate)
                # Counts are reported at once and corrected for two seconds: a late row moves one row in each slice.
                wait = 2 * SECOND if panel == "time" else 0
                lazy = runner(BY_ARRAYS, workload, chunks, ordered=False, wait=wait)
                eager = runner("slicewise, eager (arrays)", workload, chunks, ordered=False, wait=wait)
                points = timed(panel, name, {"": lazy, "eager": eager}, len(stream), setting.repeat)
                return points[:1]  # the eager store is there for its answer

            yield Step(panel, name, run)


def _counts(windows: int, aggregate: Any) -> sw.Workload:
    workload = sw.Workload("t", unit="microseconds", lateness="2 seconds")
    for i, length in enumerate(lengths(windows)):
        workload = workload.query(f"w{i}", sw.tumbling(sw.rows(length // 500)), x=aggregate)
    return workload


def medians(setting: Setting) -> Iterator[Step]:
    sources = {
        "football": football_rows(setting.rows(20_000), setting),
        "machines": machine_rows(setting.rows(20_000), setting),
    }
    for panel, source in sources.items():
        stream = disordered(source, 0.2, 2 * SECOND, seed=2)
        chunks = chunks_of(stream, 2000 if panel == "football" else 500)
        for windows in setting.some((1, 5, 20)):

            def run(
                panel: str = panel, windows: int = windows, stream: Any = stream, chunks: Any = chunks
            ) -> list[Point]:
                workload = tumbling(windows, sw.median("v"))
                names = (BY_ARRAYS, "LazySlicing", "AggregateBuckets", "TupleBuckets", "TupleBuffer")
                rivals = {name: runner(name, workload, chunks, ordered=False) for name in names}
                return timed(panel, windows, rivals, len(stream), setting.repeat)

            yield Step(panel, windows, run)


def splits(setting: Setting) -> Iterator[Step]:
    for n in (10, 100, 1000, 10_000, setting.rows(100_000, 20_000)):

        def run(n: int = n) -> list[Point]:
            values, times = np.random.default_rng(0).integers(0, 84_232, n), np.arange(n)
            found = []
            for name, aggregate in (("sum", sw.sum("v")), ("median", sw.median("v"))):
                monoid, column = aggregate.bind(pa.int64()), Column(values, pa.int64())
                expected = values.sum() if name == "sum" else np.median(values)
                taken, single = [], []
                for _ in range(5 * setting.repeat):
                    started = now()
                    parts = monoid.lift_fold([column], times, np.zeros(1, np.int64))
                    taken.append((now() - started) * 1e6)
                assert monoid.lower(parts).to_pylist() == [expected]
                lifted = list(map(aggregate.lift, values.tolist()))
                for _ in range(setting.repeat):
                    started = now()
                    total = _folded(aggregate.combine, lifted)
                    single.append((now() - started) * 1e6)
                assert aggregate.lower(total) == expected
                found += [
                    Point.of("", f"{name} (arrays)", n, taken),
                    Point.of("", f"{name} (single values)", n, single),
                ]
            return found

        yield Step("", n, run)


def _folded(combine: Any, partials: list[Any]) -> Any:
    """Pairs of about equal size, so that partials that grow are not copied for every row."""
    while len(partials) > 1:
        pairs = list(map(combine, partials[::2], partials[1::2]))
        partials = [*pairs, partials[-1]] if len(partials) % 2 else pairs
    return partials[0]


def measures(setting: Setting) -> Iterator[Step]:
    stream = disordered(football_rows(setting.rows(200_000, 20_000), setting), 0.2, 2 * SECOND, seed=2)
    chunks = [{**chunk, "u": chunk["t"]} for chunk in chunks_of(stream, max(len(stream) // 10, 1))]
    for windows in setting.some((1, 10, 40, 100, 1000)):

        def run(windows: int = windows) -> list[Point]:
            sizes = np.unique(1000 + 19_000 * np.arange(windows) // max(1, windows - 1))
            counting = sw.Workload("t", lateness=0)
            for length in sizes.tolist():
                counting = counting.query(f"w{length}", sw.tumbling(sw.rows(length)), total=sw.sum("v"))
            on_units = sw.Workload("t", unit="microseconds")
            for i, length in enumerate(lengths(min(windows, 100))):
                on_units = on_units.query(f"w{i}", sw.tumbling(sw.units(length, "u")), x=sw.sum("v"))
            on_time = runner(BY_ARRAYS, tumbling(windows), chunks, ordered=False)
            check_sums(tumbling(windows), stream, on_time())
            points = timed("", windows, {"time": on_time}, len(stream), setting.repeat)
            if windows <= 100:
                rivals = {
                    "another measure": runner(BY_ARRAYS, on_units, chunks, ordered=False),
                    "time": runner(BY_ARRAYS, tumbling(windows), chunks, ordered=False),
                }
                points += timed("", windows, rivals, len(stream), setting.repeat)[:1]
            rates: dict[str, list[float]] = {"count": [], "count, tuple buffer (arrays)": []}
            for _ in range(setting.repeat):
                ours, results = count_windows.run(counting, chunks, False)
                fold = count_windows.same_sums
                theirs, _, expected = count_windows.run_buffer(sizes, fold, chunks, 2 * SECOND, 0)
                if count_windows.final_answers(results, sizes) != expected:
                    raise SystemExit(f"slicing-16 at {windows}: the two disagree")
                # Both leave the first chunk out, which warms up.
                rates["count"].append((len(stream) - len(chunks[0]["t"])) / ours / 1e6)
                rates["count, tuple buffer (arrays)"].append((len(stream) - len(chunks[0]["t"])) / theirs / 1e6)
            return points + [Point.of("", name, windows, found) for name, found in rates.items()]

        yield Step("", windows, run)


#: Rows of Figure 17, and the panel of what a job takes without any.
PARALLEL_ROWS, WITHOUT_ROWS = 400_000, "seconds without rows"


def parallel(setting: Setting) -> Iterator[Step]:
    """On Spark: each master in a process of its own."""
    rows = setting.rows(PARALLEL_ROWS, 20_000)
    for master in ("local[1]", "local[2]", "local-cluster[2,1,1024]"):

        def run(master: str = master) -> list[Point]:
            script = Path(__file__).parent / "parallel.py"
            command = [sys.executable, str(script), master, str(rows), str(setting.repeat)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"slicing-17 on {master} failed:\n{done.stderr[-2000:]}")
            found = json.loads(done.stdout.splitlines()[-1])
            fixed = Point.of(WITHOUT_ROWS, "slicewise", master, found.pop("without rows"))
            rates = {name: [rows / s / 1e6 for s in seconds] for name, seconds in found.items()}
            return [*(Point.of("", name, master, values) for name, values in rates.items()), fixed]

        yield Step("", master, run)


# -- Table 1

#: What each technique holds of n tuples in s slices and w windows: tuples, partials, inner nodes.
FORMULAS = {
    "TupleBuffer": lambda n, s, w, d: (n, 0, 0),
    "AggregateTree": lambda n, s, w, d: (n, 0, n - 1),
    "AggregateBuckets": lambda n, s, w, d: (0, w, 0),
    "TupleBuckets": lambda n, s, w, d: (d, w, 0),
    "LazySlicing": lambda n, s, w, d: (0, s, 0),
    "EagerSlicing": lambda n, s, w, d: (0, s, s - 1),
    "LazySlicing on tuples": lambda n, s, w, d: (n, s, 0),
    "EagerSlicing on tuples": lambda n, s, w, d: (n, s, s - 1),
}


def space(setting: Setting) -> Iterator[Step]:
    for name, formula in FORMULAS.items():

        def run(name: str = name, formula: Any = formula) -> list[Point]:
            technique, _, on_tuples = name.partition(" on ")
            n, length, every = setting.rows(4000, 400), 40, 10
            aggregate = sw.last("v") if on_tuples else sw.sum("v")
            window = sw.sliding(length, every=every)
            op = made(technique, sw.Workload("t", lateness=4 * n).query("q", window, x=aggregate), ordered=False)
            op.process_batch({"t": np.arange(n), "v": np.arange(n)})
            held = op.held()
            slices, windows = n // every, n // every + length // every - 1
            in_windows = sum(min(s + length, n) - max(s, 0) for s in range(every - length, n, every))
            expected = formula(n, slices, windows, in_windows)
            found = []
            for what, counted, by_formula in zip(
                ("tuples", "partials", "nodes"), (held.tuples, held.partials, held.nodes), expected, strict=True
            ):
                found += [Point.of(what, "counted", name, counted), Point.of(what, "formula", name, by_formula)]
            return found

        yield Step("", name, run)


def _by_formula(points: Points) -> Verdict:
    wrong = []
    for panel in points.panels():
        counted, formula = points.series(panel, "counted"), points.series(panel, "formula")
        wrong += [
            f"{name}: {counted[name]:.0f} {panel}, by the formula {formula[name]:.0f}"
            for name in formula
            if counted[name] != formula[name]
        ]
    return Verdict(
        DOES_NOT if wrong else HOLDS, "; ".join(wrong) or "all eight rows, to the last tuple, partial and node"
    )


# -- what the paper says


def _similar(points: Points) -> Verdict:
    time_based = points.series("time", "")
    rates = [y for name, y in time_based.items() if name not in ("median", "90 %", "arg min", "arg max")]
    holistic = min(time_based["median"], time_based["90 %"])
    shown = f"from {min(rates):.1f} to {max(rates):.1f} M/s; median {holistic:.1f}"
    word = HOLDS if max(rates) / min(rates) <= 3 and holistic < min(rates) else IN_PART
    return Verdict(word, shown)


def _inverse(points: Points) -> Verdict:
    count = points.series("count", "")
    value = count["sum"] / count["sum without inverse"]
    shown = f"count windows: sum {count['sum']:.2f}, without its inverse {count['sum without inverse']:.2f} M/s"
    return ratio_verdict(value, 1.5, shown, part=1.05)


def _extremes(points: Points) -> Verdict:
    time_based, count = points.series("time", ""), points.series("count", "")
    decay = {name: time_based[name] / count[name] for name in ("sum", "min", "max")}
    least = min(count["min"], count["max"]) / count["sum"]
    shown = (
        f"on count windows sum {count['sum']:.2f}, min {count['min']:.2f}, max {count['max']:.2f}, sum without its "
        f"inverse {count['sum without inverse']:.2f} M/s; from time windows on they lose "
        f"{decay['sum']:.1f}, {decay['min']:.1f} and {decay['max']:.1f} times"
    )
    why = "a cut whose extreme leaves is folded again, and a late row lets a row leave every cut behind it"
    return ratio_verdict(least, 0.67, shown, why, part=0.33)


def _holistic(points: Points) -> Verdict:
    values = []
    for panel in points.panels():
        rivals = [points.last(panel, name) for name in ("AggregateBuckets", "TupleBuckets", "TupleBuffer")]
        values.append(points.last(panel, "LazySlicing") / max(rivals))
    shown = f"at 20 windows {values[0]:.1f} (football) and {values[-1]:.1f} (machines) times the best alternative"
    return ratio_verdict(min(values), 1.2, shown)


def _machines_faster(points: Points) -> Verdict:
    a, b = points.last("machines", "LazySlicing"), points.last("football", "LazySlicing")
    shown = f"machines {a:.3f}, football {b:.3f} M/s"
    return Verdict(HOLDS if a >= b else DOES_NOT, shown)


def _linear(points: Points) -> Verdict:
    values = {}
    for name in points.names(""):
        series = points.series("", name)
        xs = sorted(x for x in series if x >= 1000)
        values[name] = np.log(series[xs[-1]] / series[xs[0]]) / np.log(xs[-1] / xs[0])
    shown = "exponents " + ", ".join(f"{name} {value:.2f}" for name, value in values.items())
    word = HOLDS if all(0.8 <= v <= 1.3 for v in values.values()) else IN_PART
    why = "" if word == HOLDS else "under 10 000 tuples an array costs its calls and not its tuples"
    return Verdict(word, shown, why)


def _measures_same(points: Points) -> Verdict:
    a, b = points.series("", "time"), points.series("", "another measure")
    ratios = [a[x] / b[x] for x in b]
    shown = f"time is {min(ratios):.1f} to {max(ratios):.1f} times as fast"
    why = (
        "windows on a column are found from rows in order, query by query, which takes more than half of the time for "
        "40 windows (profiled); windows on time are found from slices, all at once (docs/inside.md)"
    )
    return Verdict(HOLDS if max(ratios) <= 1.5 else DOES_NOT, shown, why)


def _count_decays(points: Points) -> Verdict:
    counts = points.series("", "count")
    ratio = points.last("", "count") / points.last("", "count, tuple buffer (arrays)")
    shown = (
        f"from {counts[min(counts)]:.1f} to {counts[max(counts)]:.1f} M/s; at 1000 windows {ratio:.1f} times the "
        f"tuple buffer"
    )
    return ratio_verdict(ratio, 8, shown, "the tuple buffer folds arrays here, too")


def _one_window(points: Points) -> Verdict:
    ours, theirs = points.series("", "count"), points.series("", "count, tuple buffer (arrays)")
    ratios = {n: theirs[n] / ours[n] for n in ours}
    faster = [n for n in sorted(ours) if all(ratios[k] <= 1 for k in ours if k >= n)]
    first = f"from {faster[0]} windows on slicewise is the faster one" if faster else "slicewise never gets ahead"
    shown = f"for one count window the tuple buffer is {ratios[min(ratios)]:.1f} times as fast as slicewise; {first}"
    why = (
        "one window is folded once from its rows, so that cutting gives nothing; and a step takes about 550 calls of "
        "Python and NumPy here, however many rows it has, in the buffer 110 to 340 (counted): it knows sums of one "
        "column, without keys, nulls and ties"
    )
    word = HOLDS if max(ratios.values()) <= 1 else IN_PART if faster else DOES_NOT
    return Verdict(word, shown, "" if word == HOLDS else why)


def _parallel(points: Points) -> Verdict:
    ours = points.series("", "slicewise")
    own = points.series("", "Spark's windows")
    gain = ours["local[2]"] / ours["local[1]"]
    ratio = ours["local[2]"] / own["local[2]"]
    shown = (
        f"two cores {gain:.2f} times one; {ratio:.0f} times Spark's own windows, local-cluster "
        f"{ours['local-cluster[2,1,1024]']:.2f} M/s"
    )
    return ratio_verdict(min(gain / 1.5, ratio / 10), 1, shown, _unscaled(points), part=0.6)


def _unscaled(points: Points) -> str:
    """What of a job does not scale with cores."""
    ours, fixed = points.series("", "slicewise"), points.series(WITHOUT_ROWS, "slicewise")
    if not fixed:
        return "these points are older than the time of a job without rows, which says how much cannot scale"
    one, two = (fixed[master] * ours[master] * 1e6 / PARALLEL_ROWS for master in ("local[1]", "local[2]"))
    return (
        f"a job without rows, with its plan of 80 queries, its tasks and its Python workers, takes {one:.0%} of the "
        f"time on one core and {two:.0%} on two: that part does not scale"
    )


FIGURES = (
    Figure(
        "slicing-13",
        PAPER,
        "Figure 13",
        "impact of aggregations, 20 windows, slicewise (arrays)",
        "aggregate",
        "million tuples/s",
        "Algebraic and distributive aggregates are about equally fast on time windows, holistic ones much slower. "
        "On count "
        "windows what has no inverse is slower, by far if every removal changes it (sum without inverse).",
        aggregations,
        (
            Claim(
                "section 6.3.2",
                "On time windows, algebraic aggregates are similar and holistic ones slower",
                _similar,
                why=(
                    "an aggregate costs its passes over arrays: the partials of a count are one array, of "
                    "a sum or a mean two, of a deviation three, of a geometric mean four with a logarithm "
                    "per row (counted)"
                ),
            ),
            Claim(
                "section 6.3.2",
                "On count windows a sum without its inverse is much slower",
                _inverse,
                why=("a cut of many rows is divided, so that only the pieces beside its bounds are folded again"),
            ),
            Claim("section 6.3.2", "Min and max lose little on count windows, though they have no inverse", _extremes),
        ),
        bars=True,
        log_y=False,
    ),
    Figure(
        "slicing-14",
        PAPER,
        "Figure 14",
        "the median, 20 % out of order",
        "concurrent windows",
        "million tuples/s",
        "Slicing is faster than buckets and tuple buffer for holistic aggregates too; fewer distinct values (37 "
        "against "
        "84 232) make it slightly faster.",
        medians,
        (
            Claim(
                "section 6.3.2",
                "Slicing is faster than the alternatives for holistic aggregates",
                _holistic,
            ),
            Claim(
                "section 6.3.2",
                "Fewer distinct values are faster",
                _machines_faster,
            ),
        ),
        {"slicing": lambda x: 0.3, "buckets, tuple buffer": lambda x: 0.3 / x},
    ),
    Figure(
        "slicing-15",
        PAPER,
        "Figure 15",
        "time to recompute a slice",
        "tuples in the slice",
        "microseconds",
        "The time to compute an aggregate again grows linearly with the tuples of the slice; the median costs more.",
        splits,
        (Claim("section 6.3.3", "Recomputation is linear in the tuples of a slice", _linear),),
        {"sum": lambda x: x, "median": lambda x: 20 * x},
    ),
    Figure(
        "slicing-16",
        PAPER,
        "Figure 16",
        "window measures, 20 % out of order, slicewise (arrays)",
        "concurrent windows",
        "million tuples/s",
        "Time and other advancing measures are equally fast and constant. Counts are constant up to 40 windows, "
        "then decay; at "
        "1000 slicing is still an order of magnitude faster than a tuple buffer.",
        measures,
        (
            Claim("section 6.3.4", "Other measures are as fast as time", _measures_same),
            Claim(
                "section 6.3.4",
                "For 1000 count windows slicing is an order of magnitude faster than tuple buffers",
                _count_decays,
            ),
            Claim("section 6.3.4", "Slicing is faster than tuple buffers for any number of count windows", _one_window),
        ),
        {"time, other measures": lambda x: 1.0, "count": lambda x: min(1, 40 / x), "tuple buffer": lambda x: 0.3 / x},
    ),
    Figure(
        "slicing-17",
        PAPER,
        "Figure 17",
        "parallel on Spark: M4, 80 windows",
        "master",
        "million tuples/s",
        "Throughput grows linearly with the cores; slicing is an order of magnitude faster than buckets.",
        parallel,
        (
            Claim(
                "section 6.4", "Slicing scales with cores and is an order of magnitude faster than buckets", _parallel
            ),
        ),
        bars=True,
        clock="wall",
    ),
    Figure(
        "slicing-table-1",
        PAPER,
        "Table 1",
        "what each technique holds",
        "technique",
        "held",
        "Tuples, aggregates, slices and buckets, by the formulas of Table 1.",
        space,
        (Claim("Table 1", "Techniques hold what the eight formulas say", _by_formula, counted=True),),
        bars=True,
        log_y=False,
    ),
)
