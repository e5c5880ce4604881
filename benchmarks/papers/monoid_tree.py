"""Monoid tree aggregators (Villalba et al., TPDS 2019): Figures 6 to 9 and Table 2."""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import swag as windows

import slicewise.aggregates as sw
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
    undisturbed,
)
from slicewise.swag import AMTA, DABA, DiskStore, LogMTA, Naive

PAPER = "Monoid Tree Aggregator"
#: The windows by the paper's names; KVS keeps its nodes on disk, where lmdb is installed.
KINDS: dict[str, tuple[type, bool]] = {
    "Naive": (Naive, False),
    "DABA": (DABA, False),
    "Mem. LMTA": (LogMTA, False),
    "Mem. AMTA": (AMTA, False),
    "KVS LMTA": (LogMTA, True),
    "KVS AMTA": (AMTA, True),
}


@contextmanager
def made(name: str, aggregate: Any) -> Iterator[Any]:
    """A window of a kind; None where its store is not installed."""
    cls, stored = KINDS[name]
    if not stored:
        yield cls(aggregate)
    elif importlib.util.find_spec("lmdb") is None:
        yield None
    else:
        with tempfile.TemporaryDirectory() as folder:
            window = cls(aggregate, store=DiskStore(folder, sync=False))
            yield window
            window.close()


def constant(setting: Setting) -> Iterator[Step]:
    for n in setting.powers(16, 4):

        def run(n: int = n) -> list[Point]:
            found = []
            for name in KINDS:
                if name == "Naive" and n > 2**12:
                    continue
                with made(name, sw.sum()) as window:
                    if window is not None:
                        found.append(Point.of("", name, n, _slides(name, window, n, setting.rows(1500, 200))))
            return found

        yield Step("", n, run)


def _slides(name: str, window: Any, n: int, slides: int) -> list[float]:
    """Microseconds per slide: insert, the policy evicts what is more than n, query."""
    values = windows.numbers(n + slides)
    window.insert_many(values[:n])
    slides = max(min(slides, 200_000 // n), 20) if name == "Naive" else slides
    taken = []
    with undisturbed():
        for _ in range(3):
            started = now()
            for value in values[n : n + slides // 3 + 1]:
                window.insert(value)
                window.evict()
                answer = window.query()
            taken.append((now() - started) / (slides // 3 + 1) * 1e6)
    expected = (values[:n] + values[n : n + slides // 3 + 1] * 3)[-n:]
    if answer != sum(expected):
        raise SystemExit(f"{name} says {answer}, and not {sum(expected)}")
    return taken


def bulk(setting: Setting) -> Iterator[Step]:
    n = setting.powers(16, 1)[-1]
    for m in sorted({1, 16, 256, 4096, n // 4, n // 2, n - 1}):
        if m >= n:
            continue

        def run(m: int = m) -> list[Point]:
            found = []
            for name in KINDS:
                with made(name, sw.sum()) as window:
                    if window is None:
                        continue
                    values = windows.numbers(n)
                    taken = []
                    for _ in range(setting.repeat if name != "DABA" or m < 5000 else 1):
                        window.evict(len(window))
                        window.insert_many(values)
                        window.query()
                        with undisturbed():
                            started = now()
                            window.evict(m)
                            answer = window.query()
                            taken.append((now() - started) * 1e6)
                        if answer != sum(values[m:]):
                            raise SystemExit(f"{name} says {answer} after {m} of {n} left")
                    found.append(Point.of("", name, m, taken))
            return found

        yield Step("", m, run)


def local(setting: Setting) -> Iterator[Step]:
    for n in setting.powers(15, 1, 9)[::2]:

        def run(n: int = n) -> list[Point]:
            found = windows.local_memory(sw.sum(), [n], slides=setting.rows(600, 200))
            points = [
                Point.of(panel, name, n, series[n])
                for panel, some in (
                    ("nodes in local memory", found["nodes"]),
                    ("bytes in local memory", found["bytes"]),
                )
                for name, series in some.items()
            ]
            return [*points, Point.of("nodes in local memory", "DABA, Naive: all", n, n)]

        yield Step("", n, run)


def dimensions(setting: Setting) -> Iterator[Step]:
    n = setting.powers(12, 2)[-1]
    for k in setting.some((1, 5, 10, 20, 50)):

        def run(k: int = k) -> list[Point]:
            aggregate = sw.multi(**{f"count_{i}": sw.count() for i in range(k)})
            taken = []
            with made("Mem. AMTA", aggregate) as window:
                window.insert_many([0] * n)
                with undisturbed():
                    for _ in range(3):
                        started = now()
                        for _ in range(setting.rows(300, 60)):
                            window.insert(0)
                            window.evict()
                            answer = window.query()
                        taken.append((now() - started) / setting.rows(300, 60) * 1e6)
            assert answer == {f"count_{i}": n for i in range(k)}
            return [Point.of("", "one window", k, taken)]

        yield Step("", k, run)


TABLE_2 = {
    "Sum": sw.sum,
    "Mean": sw.avg,
    "G. Mean": sw.geometric_mean,
    "Std. Dev.": sw.stddev,
    "Max": sw.max,
    "LIS": sw.longest_rise,
}


def analytics(setting: Setting) -> Iterator[Step]:
    n = setting.powers(12, 2)[-1]
    memory = np.abs(np.cumsum(np.random.default_rng(4).normal(size=4 * n))) + 1
    for kind, aggregate in TABLE_2.items():

        def run(kind: str = kind, aggregate: Any = aggregate) -> list[Point]:
            answers, found = {}, []
            slides = setting.rows(900, 100)
            for name in KINDS:
                with made(name, aggregate()) as window:
                    if window is None:
                        continue
                    window.insert_many(memory[:n].tolist())
                    few = max(slides // 20, 10)
                    # The first part is as long for all, and its answer is compared.
                    parts = [few] if name == "Naive" else [few, *([(slides - few) // 3] * 3)]
                    taken, at = [], n
                    for number, count in enumerate(parts):
                        values, at = memory[at : at + count].tolist(), at + count
                        with undisturbed():
                            started = now()
                            for value in values:
                                window.insert(value)
                                window.evict()
                                answer = window.query()
                            taken.append((now() - started) / count * 1e6)
                        if number == 0:
                            answers[name] = answer
                    found.append(Point.of("", name, kind, taken))
            first = next(iter(answers.values()))
            for name, answer in answers.items():
                if answer != first and not np.isclose(answer, first, rtol=1e-9):
                    raise SystemExit(f"{kind}: {name} says {answer}, others {first}")
            return found

        yield Step("", kind, run)


# -- what the paper says


def _constant(points: Points) -> Verdict:
    fall = {}
    for name in ("Mem. AMTA", "DABA", "Mem. LMTA", "Naive"):
        series = {n: y for n, y in points.series("", name).items() if n >= 16}
        fall[name] = series[max(series)] / series[min(series)]
    shown = ", ".join(f"{name} {value:.1f} times" for name, value in fall.items()) + " from 16 values to the most"
    good = max(fall["Mem. AMTA"], fall["DABA"]) <= 2 and fall["Naive"] > 5
    return Verdict(HOLDS if good else IN_PART, shown)


def _amta_first(points: Points) -> Verdict:
    amta, daba = points.last("", "Mem. AMTA"), points.last("", "DABA")
    shown = f"on the largest window AMTA {amta:.1f} us, DABA {daba:.1f} us"
    return Verdict(HOLDS if amta <= daba else DOES_NOT, shown)


def _kvs_near(points: Points) -> Verdict:
    if "KVS AMTA" not in points.names(""):
        return Verdict(IN_PART, "no store is installed")
    kvs, mem = points.last("", "KVS AMTA"), points.last("", "Mem. AMTA")
    return Verdict(
        HOLDS if kvs <= 1.5 * mem else IN_PART, f"{kvs:.1f} us with its nodes on disk, {mem:.1f} us in memory"
    )


def _bulk(points: Points) -> Verdict:
    daba, log, amta = (points.series("", name) for name in ("DABA", "Mem. LMTA", "Mem. AMTA"))
    m = max(daba)
    shown = f"{m} values at once: DABA {daba[m]:,.0f} us, LMTA {log[m]:,.0f} us, AMTA {amta[m]:,.0f} us"
    return ratio_verdict(daba[m] / max(log[m], amta[m]), 10, shown)


def _bulk_lmta(points: Points) -> Verdict:
    log, amta = points.series("", "Mem. LMTA"), points.series("", "Mem. AMTA")
    share = np.mean([log[m] <= amta[m] for m in log])
    return Verdict(HOLDS if share >= 0.5 else DOES_NOT, f"LMTA is the faster one in {share:.0%} of the sizes")


def _local(points: Points) -> Verdict:
    names = [name for name in points.names("nodes in local memory") if name.endswith("disk")] or ["AMTA, memory"]
    shares = {
        name: points.last("nodes in local memory", name) / points.last("nodes in local memory", "DABA, Naive: all")
        for name in names
    }
    grown = {
        name: points.last("nodes in local memory", name) / points.first("nodes in local memory", name) for name in names
    }
    shown = ", ".join(
        f"{name}: {shares[name]:.1%} of the nodes, {grown[name]:.1f} times from the smallest window" for name in names
    )
    return Verdict(HOLDS if max(grown.values()) < 16 else DOES_NOT, shown)


def _dimensions(points: Points) -> Verdict:
    series = points.series("", "one window")
    k = max(series)
    ratio = k * series[min(series)] / series[k]
    return ratio_verdict(
        ratio,
        1.2,
        f"{k} dimensions cost {series[k] / series[min(series)]:.1f} times one; in windows of their own {k} times",
    )


def _analytics(points: Points) -> Verdict:
    wins = {}
    for kind in TABLE_2:
        rates = {name: points.series("", name)[kind] for name in points.names("") if kind in points.series("", name)}
        wins[kind] = min(rates, key=lambda name: rates[name])
    shown = ", ".join(f"{kind}: {name}" for kind, name in wins.items())
    count = sum(name == "Mem. AMTA" for name in wins.values())
    return Verdict(HOLDS if count == len(wins) else IN_PART if count else DOES_NOT, f"fastest of all: {shown}")


FIGURES = (
    Figure(
        "mta-6",
        PAPER,
        "Figure 6",
        "constant-sized windows",
        "window size",
        "microseconds per slide",
        "AMTA and DABA are constant, LMTA logarithmic, Naive linear; AMTA is the fastest from 512 values on; a "
        "key-value store costs 1 us more.",
        constant,
        (
            Claim(
                "section 5.4",
                "AMTA and DABA take constant time, Naive linear",
                _constant,
                why=(
                    "combines are constant (AMTA 3.7 and 4.0 a slide, DABA 4.5 and 5.0 for 16 and 1024 "
                    "values, counted), and so are calls of Python (42 and 45, 30 and 31): what grows is "
                    "not the algorithms' work"
                ),
            ),
            Claim(
                "section 5.4",
                "AMTA is faster than DABA on large windows",
                _amta_first,
                why=(
                    "AMTA takes fewer combines (4.0 a slide, DABA 5.0 for 1024 values, counted), but 80 "
                    "calls against 39, since its queues of nodes are interpreted: a combine of two numbers "
                    "costs no more than a call"
                ),
            ),
            Claim(
                "section 5.4",
                "Nodes in a store cost little",
                _kvs_near,
                why=(
                    "without a round trip over a network, what costs is to write a node as bytes and read "
                    "it again: 22 more calls of Python a slide and 44 more into C (counted)"
                ),
            ),
        ),
        {"AMTA, DABA": lambda n: 3.0, "LMTA": lambda n: 3 + np.log2(max(n, 2)) / 2, "Naive": lambda n: 0.3 * n},
    ),
    Figure(
        "mta-7",
        PAPER,
        "Figure 7",
        "bulk eviction",
        "values that leave at once",
        "microseconds",
        "LMTA and AMTA stay far below a millisecond, DABA grows linearly, Naive is slow throughout.",
        bulk,
        (
            Claim("section 5.5", "Bulk eviction is logarithmic in MTA and linear in DABA", _bulk),
            Claim(
                "section 5.5",
                "LMTA evicts faster than AMTA in most sizes",
                _bulk_lmta,
                why="both take under 100 us whatever leaves: the difference is in single calls",
            ),
        ),
        {"DABA": lambda m: 0.5 * m, "MTA": lambda m: 20 + 10 * np.log2(max(m, 2)), "Naive": lambda m: 20_000.0},
    ),
    Figure(
        "mta-8",
        PAPER,
        "Figure 8",
        "local memory",
        "window size",
        "see panel",
        "With a store behind it, MTA needs O(log n) local memory; the others O(n).",
        local,
        (Claim("section 5.7", "With a store, local memory is logarithmic", _local, counted=True),),
        {"MTA with a store": lambda n: 512 * np.log2(n), "the others": lambda n: n},
    ),
    Figure(
        "mta-9",
        PAPER,
        "Figure 9",
        "several dimensions",
        "dimensions",
        "microseconds per slide",
        "A dimension more costs a tenth of a window of its own.",
        dimensions,
        (
            Claim(
                "section 5.8",
                "Dimensions share the window: latency grows slower than in windows of their own",
                _dimensions,
            ),
        ),
        {"one window": lambda k: 4.5 + 0.41 * k, "a window each": lambda k: 4.9 * k},
        log_x=False,
        log_y=False,
    ),
    Figure(
        "mta-table-2",
        PAPER,
        "Table 2",
        "latency by aggregate",
        "aggregate",
        "microseconds per slide",
        "Local AMTA is the fastest for every aggregate, DABA close behind except for max and LIS.",
        analytics,
        (
            Claim(
                "section 5.6",
                "AMTA is the fastest for all six aggregates",
                _analytics,
                why=(
                    "as in Figure 6, 80 calls a slide against DABA's 39 outweigh 4.0 combines against 5.0 "
                    "(counted), and to combine these partials is cheap; the policies that shrink windows "
                    "for max and LIS are not used here"
                ),
            ),
        ),
        bars=True,
    ),
)
