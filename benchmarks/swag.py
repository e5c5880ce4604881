"""Sliding-window aggregators side by side: the papers' experiments, in one run, every answer checked against Naive.

    python benchmarks/swag.py [--quick]

Writes ``benchmarks/results/swag.json`` and, where matplotlib is installed, one PNG per figure. Prints each paper's
ordering as *holds* or *does not hold*.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import platform
import random
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import slicewise.aggregates as sw
from slicewise.aggregates.base import Aggregate
from slicewise.swag import ALGORITHMS, SlidingWindow, roll

RESULTS = Path(__file__).parent / "results"
SEED = 20180326
REPEATS = 3
#: A slide of Naive takes n combines, and all ranges n times as many answers: larger windows would run for hours.
NAIVE_LIMIT = {"single": 2**12, "multi": 2**7}
MULTI_LIMIT = 2**10
#: One slide in about n is expensive (a flip, a reset): each repeat must hold one, or only cheap slides are measured.
PERIODIC = {"FlatFIT", "TwoStacks"}
Series = dict[str, dict[int, float]]


def make(name: str, aggregate: Aggregate, ranges: Iterable[int] = ()) -> SlidingWindow | None:
    """The window, or None if the algorithm does not take the aggregate."""
    try:
        if name == "SlickDeque":
            return ALGORITHMS[name](aggregate, ranges=ranges)  # type: ignore[call-arg]
        return ALGORITHMS[name](aggregate)
    except TypeError:
        return None


def numbers(n: int) -> list[int]:
    rng = random.Random(SEED)
    return [rng.randrange(1_000_000) for _ in range(n)]


def filled(name: str, aggregate: Aggregate, n: int, ranges: Iterable[int] = ()) -> SlidingWindow | None:
    window = make(name, aggregate, ranges)
    if window is not None:
        window.insert_many(np.array(numbers(n)))
        window.query()
    return window


# -- slides per second


def slides_per_second(window: SlidingWindow, values: list[int], ranges: range | None) -> float:
    evict, insert, query, query_many = window.evict, window.insert, window.query, window.query_many
    start = time.perf_counter()
    if ranges is None:
        for value in values:
            evict()
            insert(value)
            query()
    else:
        for value in values:
            evict()
            insert(value)
            query_many(ranges)
    return len(values) / (time.perf_counter() - start)


def check_answers(name: str, aggregate: Aggregate, several: bool) -> None:
    """The same slides of a window of 50 as Naive; raises where they differ."""
    ranges = range(1, 51) if several else None
    window, naive = filled(name, aggregate, 50, ranges or ()), filled("Naive", aggregate, 50)
    assert window is not None
    assert naive is not None
    for value in numbers(400)[50:]:
        for w in (window, naive):
            w.evict()
            w.insert(value)
        if window.query() != naive.query() or (ranges and window.query_many(ranges) != naive.query_many(ranges)):
            raise SystemExit(f"{name} answers wrongly for {aggregate.name}")


def throughput(aggregate: Aggregate, sizes: list[int], slides: int, several: bool) -> Series:
    series: Series = {}
    for name, cls in ALGORITHMS.items():
        if make(name, aggregate) is None or (several and not cls.several_ranges):
            continue
        check_answers(name, aggregate, several)
        series[name] = {}
        for n in sizes:
            if name == "Naive" and n > NAIVE_LIMIT["multi" if several else "single"]:
                continue
            ranges = range(1, n + 1) if several else None
            window = filled(name, aggregate, n, ranges or ())
            assert window is not None
            count = max(min(slides, 500_000 // (n if several or name == "Naive" else 1)), 20)
            if name in PERIODIC and not several:
                count = max(count, n + 1)
            values = numbers(count)
            slides_per_second(window, values[: count // 10], ranges)
            series[name][n] = statistics.median(slides_per_second(window, values, ranges) for _ in range(REPEATS))
    return series


# -- latency, memory, bulk eviction


def latencies(aggregate: Aggregate, n: int, slides: int) -> dict[str, dict[str, float]]:
    """Microseconds per slide, each slide at its best of several runs over the same values.

    A pause of the machine hits a slide once, a flip hits the same slide every time. The paper leaves out the slowest
    0.005 % instead; on a machine with other work to do, what is then left as the maximum is still a pause.
    """
    out = {}
    for name in ALGORITHMS:
        if make(name, aggregate) is None:
            continue
        values = numbers(slides if name != "Naive" else max(slides // 20, 2 * n))
        runs = [_slide_times(name, aggregate, n, values) for _ in range(5)]
        times = np.sort(np.min(runs, axis=0)) / 1000
        out[name] = {
            "min": float(times[0]),
            **{f"{q} %": float(np.percentile(times, q)) for q in (25, 50, 75)},
            "mean": float(times.mean()),
            "max": float(times[-1]),
        }
    return out


def _slide_times(name: str, aggregate: Aggregate, n: int, values: list[int]) -> list[int]:
    window = filled(name, aggregate, n)
    assert window is not None
    evict, insert, query, now = window.evict, window.insert, window.query, time.perf_counter_ns
    gc.collect()
    gc.disable()
    times = []
    for value in values:
        start = now()
        evict()
        insert(value)
        query()
        times.append(now() - start)
    gc.enable()
    return times


def memory(aggregate: Aggregate, sizes: list[int]) -> Series:
    """Bytes per value after the window has slid once around, the values themselves included."""
    series: Series = {}
    for name in ALGORITHMS:
        if make(name, aggregate) is None:
            continue
        series[name] = {}
        for n in sizes:
            gc.collect()
            tracemalloc.start()
            window = make(name, aggregate)
            assert window is not None
            rng = random.Random(SEED)
            for i in range(2 * n):
                if i >= n:
                    window.evict()
                window.insert(rng.randrange(1_000_000))
            window.query()
            series[name][n] = tracemalloc.get_traced_memory()[0] / n
            tracemalloc.stop()
    return series


def bulk_eviction(aggregate: Aggregate, n: int, sizes: list[int]) -> Series:
    """Microseconds for ``evict(m)`` on a window of n values and a query after it; then it is filled up again."""
    series: Series = {}
    for name in ALGORITHMS:
        window, values = filled(name, aggregate, n), numbers(n)
        if window is None:
            continue
        series[name] = {}
        for m in sizes:
            start = time.perf_counter()
            window.evict(m)
            if name != "Naive":  # whose query has nothing to do with what has left
                window.query()
            series[name][m] = (time.perf_counter() - start) * 1e6
            left = [*values[m:]]
            if window.query() != (sum(left) if left else None):
                raise SystemExit(f"{name} answers wrongly after evicting {m} of {n}")
            window.insert_many(values[:m])
            values = left + values[:m]
    return series


# -- roll


def rivals() -> dict[str, dict[str, Callable[[np.ndarray, int], Any]]]:
    """Who else rolls: name -> aggregate -> function of values and range, first results of what there is."""
    view = np.lib.stride_tricks.sliding_window_view
    found: dict[str, dict[str, Callable[[np.ndarray, int], Any]]] = {
        "numpy views": {
            "sum": lambda v, k: view(np.concatenate([np.zeros(k - 1), v]), k).sum(axis=1),
            "max": lambda v, k: view(np.concatenate([np.full(k - 1, -np.inf), v]), k).max(axis=1),
        }
    }
    if importlib.util.find_spec("pandas"):
        import pandas as pd

        found["pandas"] = {
            "sum": lambda v, k: pd.Series(v).rolling(k, min_periods=1).sum().to_numpy(),
            "max": lambda v, k: pd.Series(v).rolling(k, min_periods=1).max().to_numpy(),
        }
    if importlib.util.find_spec("bottleneck"):
        import bottleneck as bn

        found["bottleneck"] = {
            "sum": lambda v, k: bn.move_sum(v, k, min_count=1),
            "max": lambda v, k: bn.move_max(v, k, min_count=1),
        }
    if importlib.util.find_spec("polars"):
        import polars as pl

        found["polars"] = {
            "sum": lambda v, k: pl.Series(v).rolling_sum(k, min_samples=1).to_numpy(),
            "max": lambda v, k: pl.Series(v).rolling_max(k, min_samples=1).to_numpy(),
        }
    return found


def rolling(n: int, ranges: list[int]) -> dict[str, Series]:
    """Million values per second."""
    values = np.random.default_rng(SEED).normal(size=n)
    out: dict[str, Series] = {}
    for kind, aggregate in (("sum", sw.sum()), ("max", sw.max())):
        functions = {"roll": lambda v, k, a=aggregate: roll(v, k, a)}
        functions |= {name: by[kind] for name, by in rivals().items()}
        out[kind] = {name: {} for name in functions}
        for k in ranges:
            expected = roll(values, k, aggregate)
            for name, function in functions.items():
                if name == "numpy views" and n * k > 2 * 10**9:
                    continue
                times = []
                for _ in range(REPEATS):
                    start = time.perf_counter()
                    got = function(values, k)
                    times.append(time.perf_counter() - start)
                if not np.allclose(got, expected, atol=1e-6):
                    raise SystemExit(f"roll and {name} differ for {kind} of {k}")
                out[kind][name][k] = n / statistics.median(times) / 1e6
    return out


# -- what the papers say


def flat(series: dict[int, float], smallest: int = 16) -> bool:
    """Whether throughput at the largest window is at least half of that at a small one."""
    sizes = [n for n in series if n >= smallest]
    return len(sizes) > 1 and series[sizes[-1]] >= series[sizes[0]] / 2


def orderings(results: dict[str, Any]) -> list[tuple[str, bool]]:
    claims: list[tuple[str, bool]] = []
    for kind in ("sum", "max"):
        single: Series = results[f"single {kind}"]
        for name in ("SlickDeque", "FlatFIT", "TwoStacks", "DABA"):
            claims.append((f"SlickDeque Fig. 10/11: {name} stays flat for one query of {kind}", flat(single[name])))
        for name in ("Naive", "FlatFAT", "BInt"):
            claims.append(
                (f"SlickDeque Fig. 10/11: {name} degrades for one query of {kind}", not flat(single[name], 1))
            )
        papers = ("Naive", "FlatFAT", "BInt", "FlatFIT", "TwoStacks", "DABA", "SlickDeque")
        for figure, key, from_n in (("10/11", f"single {kind}", 16), ("12/13", f"multi {kind}", 4)):
            measured: Series = results[key]
            others = [s for s in papers if s in measured and s != "SlickDeque"]
            first = all(
                measured["SlickDeque"][n] >= max(measured[s].get(n, 0.0) for s in others)
                for n in measured["SlickDeque"]
                if n >= from_n
            )
            where = "one query" if from_n == 16 else "all ranges"
            claims.append(
                (f"SlickDeque Fig. {figure}: SlickDeque is fastest for {where} of {kind}, n >= {from_n}", first)
            )
        latency = results[f"latency {kind}"]
        spike = latency["DABA"]["max"] < latency["TwoStacks"]["max"]
        claims.append((f"DABA: lower latency spikes than TwoStacks for {kind}", spike))
        least = all(latency["SlickDeque"]["max"] <= latency[s]["max"] for s in papers if s in latency)
        claims.append((f"SlickDeque Fig. 14: SlickDeque has the lowest spike for {kind}", least))
    used = results["memory max"]
    largest = max(used["Naive"])
    deque_bytes = used["SlickDeque"][largest]
    claims.append(
        ("SlickDeque Fig. 15: Non-Inv needs the least memory", all(deque_bytes <= s[largest] for s in used.values()))
    )
    trees = results["bulk"]
    most = max(trees["AMTA"])
    for name in ("LogMTA", "AMTA"):
        if name in trees:
            claims.append((f"MTA: {name} cuts {most} values off within 50 times the time of one", _level(trees[name])))
            claims.append((f"MTA: {name} cuts {most} values off faster than TwoStacks", _faster(trees, name, most)))
    return claims


def _level(series: dict[int, float]) -> bool:
    return series[max(series)] <= 50 * series[min(series)]


def _faster(trees: Series, name: str, most: int) -> bool:
    return trees[name][most] < trees["TwoStacks"][most]


# -- output


def table(title: str, series: dict[str, dict[Any, float]], shown: str = "{:>10,.0f}") -> None:
    columns = list(dict.fromkeys(c for s in series.values() for c in s))
    if not isinstance(columns[0], str):
        columns.sort()
    print(f"\n{title}\n{'':20}" + "".join(f"{c:>11}" for c in columns))
    for name, row in series.items():
        print(f"{name:20}" + "".join(" " + (shown.format(row[c]) if c in row else f"{'-':>10}") for c in columns))
    sys.stdout.flush()


def draw(name: str, title: str, series: Series, x: str, y: str) -> None:
    if not importlib.util.find_spec("matplotlib"):
        return
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for label, points in series.items():
        if points:
            axes.plot(list(points), list(points.values()), marker="o", markersize=3, label=label)
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y, title=title)
    axes.set_xscale("log", base=2)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / f"swag-{name}.png", dpi=120)
    plt.close(figure)


def measure(quick: bool) -> dict[str, Any]:
    powers = [0, 2, 4, 6, 8] if quick else [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20]
    sizes, slides = [2**p for p in powers], 3_000 if quick else 20_000
    several = [n for n in sizes if n <= (2**6 if quick else MULTI_LIMIT)]
    results: dict[str, Any] = {}
    for kind, aggregate in (("sum", sw.sum()), ("max", sw.max())):
        results[f"single {kind}"] = throughput(aggregate, sizes, slides, several=False)
        table(f"Slides per second, one query of {kind}, by window size", results[f"single {kind}"])
        results[f"multi {kind}"] = throughput(aggregate, several, slides // 10, several=True)
        table(f"Slides per second, all ranges of {kind}, by window size", results[f"multi {kind}"])
        results[f"latency {kind}"] = latencies(aggregate, 1024, 3_000 if quick else 20_000)
        table(f"Microseconds per slide, {kind} of 1024 values", results[f"latency {kind}"], "{:>10.2f}")
        results[f"memory {kind}"] = memory(aggregate, [2**8, 2**12] if quick else [2**8, 1000, 2**12, 5000, 2**16])
        table(f"Bytes per value, {kind}, by window size", results[f"memory {kind}"])
    top = 12 if quick else 20
    bulk = [2**p for p in range(0, top + 1, 4)]
    results["bulk"] = bulk_eviction(sw.sum(), 2**top, bulk)
    table(f"Microseconds to evict m of {2**top} values at once, sum, by m", results["bulk"])
    results["roll"] = rolling(
        20_000 if quick else 1_000_000, [2, 16, 256, 4096] if quick else [2, 16, 256, 4096, 2**16]
    )
    for kind, series in results["roll"].items():
        table(f"Million values per second, rolling {kind}, by range", series, "{:>10.2f}")
    return results


def draw_all(results: dict[str, Any]) -> None:
    per_second = "slides per second"
    for kind in ("sum", "max"):
        draw(
            f"single-{kind}",
            f"One query, {kind} (SlickDeque Fig. 10/11)",
            results[f"single {kind}"],
            "window",
            per_second,
        )
        draw(
            f"multi-{kind}",
            f"All ranges, {kind} (SlickDeque Fig. 12/13)",
            results[f"multi {kind}"],
            "window",
            per_second,
        )
        draw(
            f"memory-{kind}",
            f"Memory, {kind} (SlickDeque Fig. 15)",
            results[f"memory {kind}"],
            "window",
            "bytes per value",
        )
        draw(f"roll-{kind}", f"Rolling {kind}", results["roll"][kind], "range", "million values per second")
    draw("bulk", "Bulk eviction, sum (MTA)", results["bulk"], "values evicted at once", "microseconds")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="small windows, a minute at most; for a look, not for a claim"
    )
    quick = parser.parse_args(arguments).quick
    RESULTS.mkdir(exist_ok=True)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}; seed {SEED}")
    results = measure(quick)
    print("\nWhat the papers say")
    claims = orderings(results)
    for claim, holds in claims:
        print(f"  {'holds         ' if holds else 'does not hold '} {claim}")
    results["claims"] = dict(claims)
    results["machine"] = {"python": platform.python_version(), "numpy": np.__version__, "quick": quick, "seed": SEED}
    (RESULTS / ("swag-quick.json" if quick else "swag.json")).write_text(json.dumps(results, indent=1) + "\n")
    draw_all(results)
    if not importlib.util.find_spec("matplotlib"):
        print("\nNo figures were drawn: matplotlib is not installed.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
