"""Cutty (Carbone et al., CIKM 2016): Figures 8 and 9 and Table 1, reduce calls, partials, throughput.

Rows come one at a time, as in the paper, and count windows are windows on the row's number. RA is shared among queries,
as the paper has it: the aggregate tree. The average is of one reading, not of three.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from _harness import clock

import slicewise as sw
from papers.data import transitions
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
    check_equal,
    now,
    ratio_verdict,
)
from papers.workloads import digest
from slicewise.baselines import BASELINES

PAPER = "Cutty"
#: Baselines by the paper's names, and the largest number of queries that is tried.
NAMES = {
    "Cutty": ("CuttyEager", 100),
    "Cutty, lazy": ("CuttyLazy", 100),
    "Pairs+": ("PairsPlus", 100),
    "Pairs": ("Pairs", 100),
    "RA": ("AggregateTree", 100),
    "RA, one per query": ("Reactive", 1),
    "Naive": ("TupleBuffer", 10),
}


def queries(n: int, setting: Setting) -> sw.Workload:
    """Sliding count windows: ranges from 20 000 to 80 000, slides from 1 000 to 20 000, multiples of ten."""
    random = np.random.default_rng(n)
    by = min(1.0, max(setting.scale, 0.02))
    workload = sw.Workload("t")
    for i in range(n):
        length = max(int(random.integers(2000, 8001) * 10 * by) // 10 * 10, 10)
        every = max(int(random.integers(100, 2001) * 10 * by) // 10 * 10, 10)
        workload = workload.query(f"q{i}", sw.sliding(length, every=every), x=sw.avg("v"))
    return workload


def periodic(setting: Setting) -> Iterator[Step]:
    n = setting.rows(120_000, 2400)
    for count in setting.some((1, 10, 50, 100)):
        yield Step("", count, functools.partial(_compared, queries(count, setting), n, count, NAMES, setting.repeat))


def non_periodic(setting: Setting) -> Iterator[Step]:
    n = setting.rows(60_000, 2000)
    names = {name: NAMES[name] for name in ("Cutty", "RA")}
    for count in setting.some((1, 10, 20, 50)):
        workload = sw.Workload("t")
        for i, at in enumerate(transitions(n, count, setting)):
            windows = list(zip(at[:-1].tolist(), at[1:].tolist(), strict=True))
            workload = workload.query(f"s{i}", sw.edges(windows), x=sw.avg("v"))
        yield Step("", count, functools.partial(_compared, workload, n, count, names, min(setting.repeat, 2)))


def _compared(workload: sw.Workload, n: int, count: int, names: dict[str, tuple[str, int]], repeat: int) -> list[Point]:
    """One run that counts and some that are timed, per technique."""
    values = np.random.default_rng(5).integers(0, 37, n).tolist()
    rows = [{"v": v} for v in values]
    answers: dict[str, Any] = {}
    found: list[Point] = []
    for name, (technique, most) in names.items():
        if count > most:
            continue
        op, results = _run(technique, workload, rows, counting=True)
        answers[name] = (0, digest([results]))
        counts, peak = op.counts, op.peak
        found += [
            Point.of("reduce calls", name, count, sum(counts.values())),
            Point.of("reduce calls: update", name, count, counts["update"]),
            Point.of("reduce calls: merge", name, count, counts["merge"]),
            Point.of("partials at most", name, count, peak.total),
            Point.of("partials at most, without trees", name, count, peak.total - peak.nodes),
        ]
        runs = repeat if name.startswith(("Cutty", "Pairs")) else 1
        seconds = [clock(lambda t=technique: _run(t, workload, rows, counting=False), now) for _ in range(runs)]
        found.append(Point.of("million rows/s", name, count, [n / s / 1e6 for s in seconds]))
    check_equal("cutty", count, answers)
    return found


def _run(technique: str, workload: sw.Workload, rows: list[dict[str, int]], *, counting: bool) -> tuple[Any, list[Any]]:
    op = BASELINES[technique](workload, ordered=True, counting=counting)
    results: list[Any] = []
    for time, row in enumerate(rows):
        results += op.process(time, row)
    return op, results + op.close()


# -- Table 1

RANGE, SLIDE = 96, 8


def table(setting: Setting) -> Iterator[Step]:
    for name in ("CuttyLazy", "CuttyEager", "Pairs", "PairsPlus", "Panes", "AggregateTree"):

        def run(name: str = name) -> list[Point]:
            found = []
            for length, every in ((RANGE, SLIDE), (100, 12)):
                workload = sw.Workload("t").query("q", sw.sliding(length, every=every), x=sw.avg("v"))
                rows = [{"v": i % 7} for i in range(setting.rows(4000, 1000))]
                op, results = _run(name, workload, rows, counting=True)
                label = f"{name}, {length} every {every}"
                found += [
                    Point.of("partials at most", "", label, op.peak.total - op.peak.nodes),
                    Point.of("update per row", "", label, op.counts["update"] / len(rows)),
                    Point.of("merge per window", "", label, op.counts["merge"] / len(results)),
                ]
            return found

        yield Step("", name, run)


def _table_space(points: Points) -> Verdict:
    held = points.series("partials at most", "")
    most = {
        "CuttyLazy, 96 every 8": 13,
        "CuttyEager, 96 every 8": 13,
        "Panes, 96 every 8": 13,
        "CuttyLazy, 100 every 12": 10,
        "CuttyEager, 100 every 12": 10,
        "Pairs, 100 every 12": 18,
        "PairsPlus, 100 every 12": 18,
        "Panes, 100 every 12": 26,
        "AggregateTree, 100 every 12": 112,
    }
    over = [f"{name}: {held[name]:.0f} of {most[name]}" for name in most if held[name] > most[name]]
    shown = ", ".join(f"{name} {held[name]:.0f} (at most {bound})" for name, bound in most.items() if "100" in name)
    return Verdict(DOES_NOT if over else HOLDS, "; ".join(over) or shown)


def _table_merge(points: Points) -> Verdict:
    merge = points.series("merge per window", "")
    values = {name: merge[f"{name}, 100 every 12"] for name in ("CuttyLazy", "Pairs", "Panes")}
    shown = ", ".join(f"{name} {value:.1f}" for name, value in values.items()) + " per window of 100 every 12"
    good = values["CuttyLazy"] <= 10 and values["CuttyLazy"] < values["Pairs"] < values["Panes"]
    return Verdict(HOLDS if good else DOES_NOT, shown)


def _table_update(points: Points) -> Verdict:
    update = points.series("update per row", "")
    bounds = {
        "CuttyLazy": 1.0,
        "Pairs": 1.0,
        "Panes": 1.0,
        "CuttyEager": (np.log2(16) + 1) / 12 + 1,
        "PairsPlus": 2 * (np.log2(32) + 1) / 12 + 1,
    }
    over = [name for name, bound in bounds.items() if update[f"{name}, 100 every 12"] > bound]
    shown = ", ".join(f"{name} {update[f'{name}, 100 every 12']:.2f}" for name in bounds)
    return Verdict(DOES_NOT if over else HOLDS, shown + " per row")


# -- what the paper says


def _half_of_pairs(points: Points) -> Verdict:
    a, b = points.series("reduce calls", "Cutty"), points.series("reduce calls", "Pairs+")
    most = max(a)
    beside = (b[most] - _rows(points)) / (a[most] - _rows(points))
    merges = points.series("reduce calls: merge", "Cutty")[most] / (a[most] - _rows(points))
    shown = f"beside the one per row, Pairs+ takes {beside:.2f} times the calls of Cutty for {most} queries"
    why = f"{merges:.0%} of these calls of Cutty are merges, of which both take about as many"
    return ratio_verdict(beside, 1.6, shown, why, part=1.2)


def _rows(points: Points) -> float:
    """About one call per row is the same for all."""
    return points.series("reduce calls: update", "Cutty, lazy")[min(points.series("reduce calls", "Cutty"))]


def _partials_half(points: Points) -> Verdict:
    values = []
    for panel in ("partials at most, without trees",):
        a, b = points.series(panel, "Cutty"), points.series(panel, "Pairs+")
        values += [b[x] / a[x] for x in a]
    shown = f"Pairs+ holds {min(values):.2f} to {max(values):.2f} times the slices of Cutty"
    return ratio_verdict(max(values), 1.7, shown, part=1.3)


def _eager_twice(points: Points) -> Verdict:
    a, b = points.series("partials at most", "Cutty"), points.series("partials at most", "Cutty, lazy")
    values = [a[x] / b[x] for x in a]
    word = HOLDS if all(1.5 <= v <= 2.1 for v in values) else IN_PART
    return Verdict(word, f"the eager store holds {min(values):.2f} to {max(values):.2f} times as much")


def _eager_fewer(points: Points) -> Verdict:
    lazy, eager = (points.last("reduce calls: merge", name) for name in ("Cutty, lazy", "Cutty"))
    extra = points.last("reduce calls: update", "Cutty") - points.last("reduce calls: update", "Cutty, lazy")
    value = lazy / (eager + extra)
    return ratio_verdict(
        value,
        10,
        f"{value:.1f} times fewer calls beside the one per row, for 100 queries",
        part=1.5,
    )


def _ra_magnitudes(points: Points) -> Verdict:
    ra, cutty = points.series("reduce calls", "RA"), points.series("reduce calls", "Cutty")
    value = min(ra[x] / cutty[x] for x in ra)
    beside = min((ra[x] - _rows(points)) / (cutty[x] - _rows(points)) for x in ra)
    shown = f"RA takes {value:.0f} times the calls of Cutty at least; beside one per row, {beside:,.0f} times"
    return ratio_verdict(
        value,
        1000,
        shown,
        "a tree takes log2 n combines for a row, and Cutty one: that is all the difference there can be",
        part=5,
    )


def _throughput(points: Points) -> Verdict:
    a, b = points.series("million rows/s", "Cutty"), points.series("million rows/s", "Pairs+")
    values = [a[x] / b[x] for x in a]
    shown = f"Cutty is {min(values):.2f} to {max(values):.2f} times as fast as Pairs+"
    why = "both combine once per row, and slices are few beside rows"
    return ratio_verdict(max(values), 2, shown, why, part=1.1)


def _degrades(points: Points) -> Verdict:
    series = points.series("million rows/s", "Cutty")
    value = series[min(series)] / series[max(series)]
    return Verdict(HOLDS if value <= 8 else IN_PART, f"100 queries are {value:.1f} times slower than one")


def _naive(points: Points) -> Verdict:
    naive, cutty = points.series("reduce calls", "Naive"), points.series("reduce calls", "Cutty")
    ra = points.series("reduce calls", "RA")
    value = min(naive[x] / cutty[x] for x in naive)
    shown = (
        f"Naive takes {value:.1f} times the calls of Cutty at least, and {naive[min(naive)] / ra[min(ra)]:.2f} "
        f"times those of RA for one query"
    )
    return ratio_verdict(value, 1.5, shown)


def _sessions(points: Points) -> Verdict:
    ra, cutty = points.series("million rows/s", "RA"), points.series("million rows/s", "Cutty")
    values = [cutty[x] / ra[x] for x in ra]
    calls = points.series("reduce calls", "RA")
    less = [calls[x] / points.series("reduce calls", "Cutty")[x] for x in calls]
    shown = (
        f"Cutty is {min(values):.1f} to {max(values):.1f} times as fast, with {min(less):.1f} to {max(less):.1f} "
        f"times fewer calls"
    )
    return ratio_verdict(
        max(values), 100, shown, "log2 n combines a row against one cannot be orders of magnitude apart", part=2
    )


def _session_memory(points: Points) -> Verdict:
    ra, cutty = points.series("partials at most", "RA"), points.series("partials at most", "Cutty")
    most = max(ra)
    shown = f"RA holds {ra[most] / cutty[most]:,.0f} times as much for {most} queries, {ra[1] / cutty[1]:,.0f} for one"
    panel = "partials at most, without trees"
    rows, slices = points.series(panel, "RA")[most], points.series(panel, "Cutty")[most]
    why = (
        f"{most} sensors, the quickest of which change every 50 rows, cut {rows:,.0f} rows into {slices:,.0f} slices: "
        f"a slice has {rows / slices:.1f} rows (counted)"
    )
    return ratio_verdict(ra[most] / cutty[most], 100, shown, why, part=5)


FIGURES = (
    Figure(
        "cutty-8",
        PAPER,
        "Figure 8",
        "periodic count windows",
        "queries",
        "see panel",
        "Cutty takes half the reduce calls and partials of Pairs+, three orders of magnitude fewer than RA; an "
        "eager store "
        "doubles memory and takes ten times fewer calls; Cutty has at least twice the throughput of Pairs+.",
        periodic,
        (
            Claim(
                "section 7.2, Figure 8b",
                "Cutty takes nearly half the reduce calls of Pairs+",
                _half_of_pairs,
                counted=True,
            ),
            Claim(
                "section 7.2, Figure 8b",
                "RA takes over three orders of magnitude more calls than Cutty",
                _ra_magnitudes,
                counted=True,
            ),
            Claim("section 7.2, Figure 8b", "All slicing pays from a single query on", _naive, counted=True),
            Claim(
                "section 7.2, Figure 8c",
                "An eager store takes twice the memory of a lazy one",
                _eager_twice,
                counted=True,
            ),
            Claim(
                "section 7.2, Figure 8b",
                "An eager store takes an order of magnitude fewer calls",
                _eager_fewer,
                counted=True,
            ),
            Claim("section 7.2, Figure 8h", "Pairs+ makes double the partials of Cutty", _partials_half, counted=True),
            Claim("section 7.2, Figure 8d", "Cutty has at least twice the throughput of Pairs+", _throughput),
            Claim(
                "section 7.2, Figure 8d",
                "A hundred times the queries cost a factor of 5 to 6",
                _degrades,
                why=(
                    "each window that ends is answered and reported, and a hundred queries report a "
                    "hundred times as many"
                ),
            ),
        ),
        {
            "reduce calls, RA": lambda x: 1000.0,
            "reduce calls and partials, Pairs+": lambda x: 2.0,
            "reduce calls and partials, Cutty": lambda x: 1.0,
            "throughput, Cutty": lambda x: 5.5 ** (-np.log10(x) / 2),
            "throughput, Pairs+": lambda x: 0.5 * 5.5 ** (-np.log10(x) / 2),
        },
    ),
    Figure(
        "cutty-9",
        PAPER,
        "Figure 9",
        "windows from sensor transitions",
        "queries",
        "see panel",
        "RA is several orders of magnitude slower than Cutty from a single query on, and holds all records.",
        non_periodic,
        (
            Claim("section 7.3, Figure 9b", "Cutty is several orders of magnitude faster than RA", _sessions),
            Claim(
                "section 7.3, Figure 9c", "Cutty holds orders of magnitude less than RA", _session_memory, counted=True
            ),
        ),
        {"time and partials, RA": lambda x: 1000.0, "time and partials, Cutty": lambda x: 1.0},
    ),
    Figure(
        "cutty-table-1",
        PAPER,
        "Table 1",
        "complexities for one periodic window",
        "technique",
        "see panel",
        "Space: Cutty ceil(r/s) + 1, Pairs ceil(2r/s), Panes ceil(r/gcd(r, s)), RA r; eager twice that. Merge: as "
        "many, lazily.",
        table,
        (
            Claim("Table 1", "Space is within the table's bounds", _table_space, counted=True),
            Claim(
                "Table 1",
                "A lazy merge takes as many calls as there are slices: Cutty, Pairs, Panes in this order",
                _table_merge,
                counted=True,
            ),
            Claim(
                "Table 1",
                "Updates take one call, and an eager store a logarithm per slice",
                _table_update,
                counted=True,
            ),
        ),
        bars=True,
        log_y=False,
    ),
)
