"""Sliding-window aggregators side by side: the papers' experiments, in one run, every answer checked.

    pip install 'slicewise[bench]'
    python benchmarks/swag.py [--quick] [--largest 20] [--draw]

Writes ``benchmarks/results/swag.json`` and one PNG per figure; ``--quick`` writes to ``build/bench`` instead. Prints
each paper's ordering as *holds* or *does not hold*, with what was measured. Without LMDB, matplotlib, pandas,
bottleneck or polars the part that needs it is left out, and says so.
"""

from __future__ import annotations

import gc
import importlib.util
import random
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from _harness import Spread, arguments, heading, load, save
from roll import exactness, rivals

import slicewise.aggregates as sw
from slicewise.aggregates.base import Aggregate
from slicewise.swag import ALGORITHMS, DiskStore, FiBA, FlatFAT, MemoryStore, SlidingWindow, roll

RESULTS = Path(__file__).parent / "results"
QUICK_RESULTS = Path(__file__).parents[1] / "build" / "bench"
SEED = 20180326
REPEATS = 3
#: A slide of Naive takes n combines, and all ranges n times as many answers: larger windows would run for hours.
NAIVE_LIMIT = {"single": 2**12, "multi": 2**7}
MULTI_LIMIT = 2**10
#: One slide in about n is expensive (a flip, a reset): each repeat must hold one, or only cheap slides are measured.
PERIODIC = {"FlatFIT", "TwoStacks"}
TREES = ("LogMTA", "AMTA")
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


def slides_per_second(
    window: SlidingWindow, values: list[int], ranges: range | None, now: Callable[[], float] = time.perf_counter
) -> float:
    evict, insert, query, query_many = window.evict, window.insert, window.query, window.query_many
    start = now()
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
    return len(values) / (now() - start)


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
            # All ranges are n answers per slide, and Naive's answer takes n combines.
            most = 40_000 // n if several else 500_000 // n if name == "Naive" else slides
            count = max(min(slides, most), 20)
            if name in PERIODIC and not several:
                count = max(count, n + 1)
            values = numbers(count)
            slides_per_second(window, values[: count // 10], ranges)
            series[name][n] = Spread.of([slides_per_second(window, values, ranges) for _ in range(REPEATS)]).median
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
    """Microseconds for ``evict(m)`` on a window of n values and a query after it; then it is filled up again.

    The median of several cuts, of one where filling up again would take minutes.
    """
    series: Series = {}
    for name in ALGORITHMS:
        window, values = filled(name, aggregate, n), numbers(n)
        if window is None:
            continue
        if name in PERIODIC:  # the values came in one batch: let what one flip or reset owes be paid before
            window.evict()
            window.insert(values[0])
            window.query()
            values = [*values[1:], values[0]]
        series[name] = {}
        for m in sizes:
            times = []
            for _ in range(REPEATS if m <= 2**16 else 1):
                times.append(_time_cut(window, m, asked=name != "Naive") * 1e6)
                values = values[m:]
                if window.query() != (sum(values) if values else None):
                    raise SystemExit(f"{name} answers wrongly after evicting {m} of {n}")
                back = numbers(m)
                window.insert_many(back)
                values += back
            series[name][m] = Spread.of(times).median
    return series


def _time_cut(window: SlidingWindow, m: int, *, asked: bool) -> float:
    gc.disable()  # a pass over a million objects would be all that is seen of a cut
    start = time.perf_counter()
    window.evict(m)
    if asked:  # not Naive, whose query has nothing to do with what has left
        window.query()
    taken = time.perf_counter() - start
    gc.enable()
    return taken


def out_of_order(aggregate: Aggregate, n: int, distances: list[int], calls: int = 300) -> Series:
    """Microseconds to insert a value that d others lie behind, in a window of n, and a query after it."""
    series: Series = {"FiBA": {}, "FlatFAT.insert_at": {}}
    for d in distances:
        tree, array = FiBA(aggregate), FlatFAT(aggregate)
        tree.bulk_insert((i * calls, value) for i, value in enumerate(numbers(n)))
        array.insert_many(numbers(n))
        times: dict[str, list[float]] = {name: [] for name in series}
        for i, value in enumerate(numbers(calls)):
            start = time.perf_counter()
            tree.insert((n - d) * calls - i, value)
            one = tree.query()
            times["FiBA"].append(time.perf_counter() - start)
            start = time.perf_counter()
            array.insert_at(len(array) - d - i, value)
            other = array.query()
            times["FlatFAT.insert_at"].append(time.perf_counter() - start)
            if one != other:
                raise SystemExit(f"FiBA and FlatFAT differ after {i} insertions at distance {d}")
        for name, taken in times.items():
            series[name][d] = Spread.of(taken).median * 1e6
    return series


def local_memory(aggregate: Aggregate, sizes: list[int], slides: int = 3000) -> dict[str, Series]:
    """Nodes and bytes in local memory of a window that grows and, at every size, slides; and nodes in its store.

    Nodes are the most at any moment of the slides, bytes what Python has allocated after them.
    """
    out: dict[str, Series] = {"nodes": {}, "bytes": {}, "stored": {}}
    stores = ["memory"] + ["disk"] * bool(importlib.util.find_spec("lmdb"))
    for name in TREES:
        for kind in stores:
            with tempfile.TemporaryDirectory() as folder:
                gc.collect()
                tracemalloc.start()
                store = DiskStore(folder, sync=False) if kind == "disk" else MemoryStore()
                window: Any = ALGORITHMS[name](aggregate, store=store)  # type: ignore[call-arg]
                measured = {n: _local(window, n, slides) for n in sizes}
                tracemalloc.stop()
                for i, what in enumerate(("nodes", "bytes", "stored")):
                    out[what][f"{name}, {kind}"] = {n: row[i] for n, row in measured.items()}
                window.close()
    return out


def _local(window: Any, n: int, slides: int) -> tuple[float, float, float]:
    rng, most = random.Random(n), 0
    while len(window) < n:
        window.insert(rng.randrange(1_000_000))
    for _ in range(slides):
        window.evict()
        window.insert(rng.randrange(1_000_000))
        most = max(most, window.local_nodes)
    window.flush()
    store = window._layers.store
    pairs = store._env.stat()["entries"] if isinstance(store, DiskStore) else len(store)
    return most, tracemalloc.get_traced_memory()[0], 2 * (pairs - 1)


# -- roll


ROLLED = ("sum of floats", "sum of integers", "max of floats")


def rolling(n: int, ranges: list[int]) -> dict[str, Series]:
    """Million values per second."""
    floats = np.random.default_rng(SEED).normal(size=n)
    integers = np.array(numbers(n))
    out: dict[str, Series] = {}
    for kind in ROLLED:
        aggregate, values = sw.max() if "max" in kind else sw.sum(), integers if "integers" in kind else floats
        functions = {"roll": lambda v, k, a=aggregate: roll(v, k, a)}
        functions |= {name: lambda v, k, f=by[kind[:3]]: f([v], k) for name, by in rivals().items()}
        out[kind] = {name: {} for name in functions}
        for k in ranges:
            expected = roll(values, k, aggregate)
            for name, function in functions.items():
                if name == "numpy views" and n * k > 2 * 10**9:
                    continue
                times = []
                for _ in range(REPEATS + 2):
                    start = time.perf_counter()
                    got = function(values, k)
                    times.append(time.perf_counter() - start)
                if not np.allclose(got, expected, atol=1e-6):
                    raise SystemExit(f"roll and {name} differ for the {kind} of {k}")
                out[kind][name][k] = n / Spread.of(times).median / 1e6
    return out


# -- what the papers say


def flat(series: dict[int, float], smallest: int = 16) -> bool:
    """Whether throughput at the largest window is at least half of that at a small one."""
    sizes = [n for n in series if n >= smallest]
    return len(sizes) > 1 and series[sizes[-1]] >= series[sizes[0]] / 2


Claim = tuple[str, bool, str]


def _fastest(measured: Series, who: str, others: list[str], from_n: int) -> tuple[bool, str]:
    """Whether ``who`` is ahead of all others at every size, and the widest lead that another has."""
    leads = [
        (measured[other][n] / mine, other, n)
        for n, mine in measured[who].items()
        if n >= from_n
        for other in others
        if n in measured[other]
    ]
    lead, other, n = max(leads)
    ahead = len({m for ratio, _, m in leads if ratio > 1})
    if lead <= 1:
        return True, f"next is {other} with {lead:.2f} of its speed at n = {n}"
    sizes = len({m for _, _, m in leads})
    return False, f"behind at {ahead} of {sizes} sizes; {other} is {lead:.2f} times as fast at n = {n}"


def _kept(series: dict[int, float], smallest: int) -> str:
    sizes = [n for n in series if n >= smallest]
    return f"{series[sizes[-1]] / series[sizes[0]]:.2f} of the speed at n = {sizes[0]} is left at n = {sizes[-1]}"


def orderings(results: dict[str, Any]) -> list[Claim]:
    """What the papers say, whether it holds, and what was measured."""
    claims: list[Claim] = []
    papers = ("Naive", "FlatFAT", "BInt", "FlatFIT", "TwoStacks", "DABA", "SlickDeque")
    for kind in ("sum", "max"):
        single: Series = results[f"single {kind}"]
        fig = "Fig. 10/11"
        for name in ("SlickDeque", "FlatFIT", "TwoStacks", "DABA"):
            of = single[name]
            claims.append((f"SlickDeque {fig}: {name} stays flat for one query of {kind}", flat(of), _kept(of, 16)))
        for name in ("Naive", "FlatFAT", "BInt"):
            of = single[name]
            claims.append((f"SlickDeque {fig}: {name} degrades for one query of {kind}", not flat(of, 1), _kept(of, 1)))
        for figure, key, from_n in (("10/11", f"single {kind}", 16), ("12/13", f"multi {kind}", 4)):
            others = [s for s in papers if s in results[key] and s != "SlickDeque"]
            where = "one query" if from_n == 16 else "all ranges"
            claims.append(
                (
                    f"SlickDeque Fig. {figure}: SlickDeque is fastest for {where} of {kind}, n >= {from_n}",
                    *_fastest(results[key], "SlickDeque", others, from_n),
                )
            )
        spikes = {name: row["max"] for name, row in results[f"latency {kind}"].items() if name in papers}
        mine, daba, stacks = spikes["SlickDeque"], spikes["DABA"], spikes["TwoStacks"]
        claims.append(
            (f"DABA: lower latency spikes than TwoStacks for {kind}", daba < stacks, f"{daba:.1f} and {stacks:.1f} us")
        )
        least = min(spikes, key=lambda s: spikes[s])
        claims.append(
            (
                f"SlickDeque Fig. 14: SlickDeque has the lowest spike for {kind}",
                mine <= spikes[least],
                f"{mine:.1f} us; lowest is {least} with {spikes[least]:.1f} us",
            )
        )
    used = {name: row[max(row)] for name, row in results["memory max"].items()}
    least = min(used, key=lambda s: used[s])
    claims.append(
        (
            "SlickDeque Fig. 15: Non-Inv needs the least memory",
            used["SlickDeque"] <= used[least],
            f"{used['SlickDeque']:.2f} bytes per value; least is {least} with {used[least]:.2f}",
        )
    )
    claims += _about_trees(results)
    return claims


def _about_trees(results: dict[str, Any]) -> list[Claim]:
    claims: list[Claim] = []
    for key, where in (("bulk", "all of"), ("bulk part", "half of")):
        cuts: Series = results[key]
        most = max(cuts["AMTA"])
        for name in TREES:
            one, many, stacks = cuts[name][1], cuts[name][most], cuts["TwoStacks"][most]
            claims.append(
                (
                    f"MTA: {name} cuts {where} the window, {most} values, within 50 times the time of one",
                    many <= 50 * one,
                    f"{one:.0f} us for one, {many:.0f} us",
                )
            )
            claims.append(
                (
                    f"MTA: {name} cuts {where} the window, {most} values, faster than TwoStacks",
                    many < stacks,
                    f"{many:.0f} us and {stacks:.0f} us",
                )
            )
    nodes, stored = results["local"]["nodes"], results["local"]["stored"]
    for name in TREES:
        series = nodes.get(f"{name}, disk")
        if series:
            first, last = min(series), max(series)
            more = (last // first).bit_length() - 1
            # O(log n): a bound per level that is doubled, the two ends, what was read ahead and the stack.
            claims.append(
                (
                    f"MTA: {name} on disk keeps O(log n) nodes in local memory",
                    series[last] <= series[first] + more * (8 + 2 * DiskStore.ahead),
                    f"{series[first]:.0f} nodes at n = {first}, {series[last]:.0f} at n = {last}, where "
                    f"{stored[f'{name}, disk'][last]:.0f} are in the store",
                )
            )
    return claims


# -- output


def table(title: str, series: dict[str, dict[Any, float]], shown: str = "{:>10,.0f}") -> None:
    columns = list(dict.fromkeys(c for s in series.values() for c in s))
    if not isinstance(columns[0], str):
        columns.sort()
    print(f"\n{title}\n{'':20}" + "".join(f"{c:>11}" for c in columns))
    for name, row in series.items():
        print(f"{name:20}" + "".join(" " + (shown.format(row[c]) if c in row else f"{'-':>10}") for c in columns))
    sys.stdout.flush()


def colours() -> dict[str, tuple[str, str]]:
    """One colour and marker per name, the same in all figures."""
    palette = ("#7f7f7f", "#e377c2", "#1f77b4", "#17becf", "#9467bd", "#8c564b", "#2ca02c", "#bcbd22", "#d62728")
    palette = (*palette, "#ff7f0e", "#000000", "#aec7e8", "#98df8a")
    out = {name: (c, m) for name, c, m in zip(ALGORITHMS, palette, "xPs+Dv^<o>*hd", strict=True)}
    for name, c, m in zip(
        ("roll", "numpy views", "pandas", "bottleneck", "polars"), ("#d62728", *palette), "oxs^D", strict=False
    ):
        out[name] = c, m
    return out


def plot(axes: Any, series: Series) -> None:
    styles = colours()
    for label, points in series.items():
        name, _, where = label.partition(", ")
        colour, marker = styles[name]
        axes.plot(
            list(points),
            list(points.values()),
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=3.5 if name == "LogMTA" else 1.4,  # AMTA often lies on it
            alpha=0.7 if name == "LogMTA" else 1,
            linestyle="--" if where == "memory" else "-",
            label=label,
        )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.grid(alpha=0.3)


class Figures:
    """Writes PNGs to a folder."""

    def __init__(self, folder: Path) -> None:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        import matplotlib.ticker

        self._plt, self._folder = plt, folder
        self._every_other = matplotlib.ticker.LogLocator(base=4, numticks=20)

    def lines(self, name: str, title: str, series: Series, x: str, y: str, note: str = "") -> None:
        figure, axes = self._plt.subplots(figsize=(7.6, 4.4))
        plot(axes, series)
        axes.xaxis.set_major_locator(self._every_other)
        if y in ("bytes per value", "million values per second"):  # where powers of ten alone say little
            axes.set_yticks(ticks := [0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], [f"{t:g}" for t in ticks])
            axes.minorticks_off()
            values = [v for points in series.values() for v in points.values()]
            axes.set_ylim(min(values) / 1.3, max(values) * 1.3)
        axes.set(xlabel=x, ylabel=y)
        axes.set_title(title, fontsize=11)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
        self._save(figure, name, note)

    def boxes(self, name: str, title: str, rows: dict[str, dict[str, float]], note: str) -> None:
        figure, axes = self._plt.subplots(figsize=(7.6, 4.4))
        stats = [
            {"label": k, "whislo": r["min"], "q1": r["25 %"], "med": r["50 %"], "q3": r["75 %"], "whishi": r["max"]}
            for k, r in rows.items()
        ]
        axes.bxp(stats, showfliers=False, widths=0.5, medianprops={"color": "#d62728"})
        for i, row in enumerate(rows.values(), start=1):
            axes.annotate(f"{row['max']:.3g}", (i, row["max"]), (0, 3), textcoords="offset points", ha="center", size=8)
        axes.set_yscale("log")
        axes.margins(y=0.1)
        axes.set_ylabel("microseconds per slide")
        axes.set_title(title, fontsize=11)
        axes.tick_params(axis="x", rotation=35, labelsize=8)
        for label in axes.get_xticklabels():
            label.set_horizontalalignment("right")
        axes.grid(alpha=0.3, axis="y")
        self._save(figure, name, note)

    def local(self, name: str, local: dict[str, Series]) -> None:
        figure, (left, right) = self._plt.subplots(1, 2, figsize=(9.6, 4.4))
        disk = {k: v for k, v in local["nodes"].items() if k.endswith("disk")}
        plot(left, disk)
        for label, points in local["stored"].items():
            if label == "AMTA, disk":
                left.plot(list(points), list(points.values()), color="#7f7f7f", linestyle=":", label="in the store")
        left.set(xlabel="values in the window", ylabel="nodes")
        left.set_title("Nodes in local memory, store on disk", fontsize=10)
        left.legend(fontsize=8)
        plot(right, local["bytes"])
        right.set(xlabel="values in the window", ylabel="bytes")
        right.set_title("Local memory, store on disk and in memory", fontsize=10)
        right.legend(fontsize=8)
        note = "Sum of integers. Left: the most at any moment of the slides. Right: allocated by Python after them; "
        self._save(figure, name, note + "pages of LMDB's file that the system holds in memory are not in it.")

    def _save(self, figure: Any, name: str, note: str) -> None:
        if note:
            figure.text(0.01, 0.005, note, fontsize=7, color="#555555")
        figure.tight_layout(rect=(0, 0.03 if note else 0, 1, 1))
        figure.savefig(self._folder / f"swag-{name}.png", dpi=100)
        self._plt.close(figure)


def measure(quick: bool, largest: int) -> dict[str, Any]:
    sizes, slides = [2**p for p in range(0, largest + 1, 2)], 3_000 if quick else 20_000
    several = [n for n in sizes if n <= (2**6 if quick else MULTI_LIMIT)]
    results: dict[str, Any] = {}
    for kind, aggregate in (("sum", sw.sum()), ("max", sw.max())):
        results[f"single {kind}"] = throughput(aggregate, sizes, slides, several=False)
        table(f"Slides per second, one query of {kind}, by window size", results[f"single {kind}"])
        results[f"multi {kind}"] = throughput(aggregate, several, slides // 10, several=True)
        table(f"Slides per second, all ranges of {kind}, by window size", results[f"multi {kind}"])
        results[f"latency {kind}"] = latencies(aggregate, 1024, 3_000 if quick else 20_000)
        table(f"Microseconds per slide, {kind} of 1024 values", results[f"latency {kind}"], "{:>10.2f}")
        at = [2**8, 2**12] if quick else [2**8, 1000, 2**12, 5000, 2**14, 2**16]
        results[f"memory {kind}"] = memory(aggregate, [n for n in at if quick or n <= 2 ** (largest - 2)])
        table(f"Bytes per value, {kind}, by window size", results[f"memory {kind}"], "{:>10.1f}")
    tops = (12, 12) if quick else (20, 17)
    for key, top, most in (("bulk", tops[0], tops[0]), ("bulk part", tops[1], tops[1] - 1)):
        results[key] = bulk_eviction(sw.sum(), 2**top, sorted({2**p for p in (*range(0, most + 1, 2), most)}))
        table(f"Microseconds to evict m of {2**top} values at once, sum, by m", results[key], "{:>10.1f}")
    far = [1, 16, 256] if quick else [1, 16, 256, 2**12, 2**15]
    results["out of order"] = out_of_order(sw.sum(), 4 * far[-1], far)
    table("Microseconds to insert a value before the last d, sum, by d", results["out of order"], "{:>10.1f}")
    at = [2**p for p in range(10, 15 if quick else 19)]  # up to 2**18: counting bytes is slow
    results["local"] = local_memory(sw.sum(), at, 500 if quick else 3000)
    table("Nodes in local memory, sum, by window size", results["local"]["nodes"])
    table("Nodes in the store", results["local"]["stored"])
    table("Bytes in local memory", results["local"]["bytes"])
    results["roll"] = rolling(50_000 if quick else 1_000_000, [2, 16, 100, 256, 4096] + [2**16] * (not quick))
    for kind, series in results["roll"].items():
        table(f"Million values per second, rolling {kind}, by range", series, "{:>10.1f}")
    results["exactness"] = exactness()
    table("Wrong answers among 20 000, rolling sum of 16", results["exactness"], "{:>10g}")
    return results


def draw_all(results: dict[str, Any], folder: Path) -> None:
    figures = Figures(folder)
    window, per_second = "values in the window", "slides per second"
    for kind in ("sum", "max"):
        naive = {many: max(results[f"{many} {kind}"]["Naive"]) for many in ("single", "multi")}
        figures.lines(
            f"single-{kind}",
            f"Throughput, one query, {kind} of integers (SlickDeque Fig. 10/11)",
            results[f"single {kind}"],
            window,
            per_second,
            f"A slide: one value leaves, one comes, one answer. Naive: up to n = {naive['single']}.",
        )
        figures.lines(
            f"multi-{kind}",
            f"Throughput, all ranges 1 to n at once, {kind} of integers (SlickDeque Fig. 12/13)",
            results[f"multi {kind}"],
            "values in the window, n",
            per_second,
            f"A slide: one value leaves, one comes, n answers. Naive: up to n = {naive['multi']}.",
        )
        figures.boxes(
            f"latency-{kind}",
            f"Latency of a slide, {kind} of 1024 integers (SlickDeque Fig. 14)",
            results[f"latency {kind}"],
            "Whiskers: fastest and slowest slide (its time above). Box: quartiles. Each slide at its best of 5 runs.",
        )
        figures.lines(
            f"memory-{kind}",
            f"Memory, {kind} of integers (SlickDeque Fig. 15)",
            results[f"memory {kind}"],
            window,
            "bytes per value",
            "Allocated by Python after the window has slid once around, the values included.",
        )
    for key, name in (("bulk", "bulk"), ("bulk part", "bulk-part")):
        most = max(results[key]["AMTA"])
        n = most if key == "bulk" else 2 * most
        figures.lines(
            name,
            f"Bulk eviction from a window of {n:,} integers, sum (MTA)",
            results[key],
            "values evicted at once" + (", the last point is the whole window" if key == "bulk" else ""),
            "microseconds for the cut and a query",
            "Median of 3 cuts up to 2**16 values, one cut above; then filled up again. Naive: without the query.",
        )
    if "LogMTA, disk" in results["local"]["nodes"]:
        figures.local("local", results["local"])
    for kind in ROLLED:
        figures.lines(
            f"roll-{kind.replace(' ', '-')}",
            f"Rolling {kind}, one core",
            results["roll"][kind],
            "range: values per window",
            "million values per second",
            "A result at every value of one array, median of 5 runs. numpy views take O(k) each and stop at 2e9 steps.",
        )


def main(given: list[str] | None = None) -> int:
    parser = arguments(__doc__, save_as=False)
    parser.add_argument("--quick", action="store_true", help="small windows, a minute; for a look, not for a claim")
    parser.add_argument("--largest", type=int, metavar="P", help="slide windows up to 2**P; 20, or 8 with --quick")
    parser.add_argument("--draw", action="store_true", help="measure nothing, draw the last results again")
    options = parser.parse_args(given)
    folder = QUICK_RESULTS if options.quick else RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "swag.json"
    if options.draw:
        results = load(file, object_hook=_with_numbers)
    else:
        print(heading(seed=SEED))
        started = time.perf_counter()
        largest = options.largest if options.largest is not None else 8 if options.quick else 20
        if largest < 8:
            parser.error(f"--largest must be 8 or more; got {largest}")
        results = measure(options.quick, largest)
        results["machine"] = {"seed": SEED}
        results["machine"] |= {"quick": options.quick, "largest": largest}
        results["machine"]["seconds"] = round(time.perf_counter() - started)
    claims = orderings(results)
    print("\nWhat the papers say")
    for claim, holds, why in claims:
        print(f"  {'holds         ' if holds else 'does not hold '} {claim}: {why}")
    results["claims"] = {claim: holds for claim, holds, _ in claims}
    results["measured"] = {claim: why for claim, _, why in claims}
    save(file, results)
    if importlib.util.find_spec("matplotlib"):
        draw_all(results, folder)
        print(f"\nResults and figures are in {folder}.")
    else:
        print("\nNo figures were drawn: matplotlib is not installed.")
    for library, part in (("lmdb", "the store on disk"), *((r, "it") for r in ("pandas", "bottleneck", "polars"))):
        if not importlib.util.find_spec(library):
            print(f"{library} is not installed: {part} was not measured.")
    return 0


def _with_numbers(read: dict[str, Any]) -> dict[Any, Any]:
    return {int(k) if k.isdigit() else k: v for k, v in read.items()}


if __name__ == "__main__":
    sys.exit(main())
