"""docs/peers.md, its picture and README's lines, written from what was measured."""

from __future__ import annotations

import importlib.util
import re
import textwrap
from pathlib import Path
from typing import Any

from rivals import BY_HAND, IN_PROCESS, ON_SPARK, OWN, WAYS
from rivals.rows import CASES

Line = dict[str, Any]
#: Ways that take longer than this run once behind a first run; beyond the other, the first is all there is.
LONG, VERY_LONG = 8.0, 20.0
#: Flink 2.3 SQL, 5 million rows; another day's measurements, in million rows a second: drawn where Flink did not run.
FLINK_ANOTHER_DAY = {
    "batch": {"tumbling 1 s": 1.8, "sliding 10 s / 1 s": 0.69, "sliding 100 s / 1 s": 0.095},
    "streaming": {"tumbling 1 s": 1.1, "sliding 10 s / 1 s": 1.15, "sliding 100 s / 1 s": 0.82},
}
#: README's lines are those between the two.
MARKS = ("<!-- Written by `make peers`. -->", "<!-- Until here. -->")
CASE = "sliding 100 s / 1 s"
PICTURE = (
    "![Seconds for windows of 1, 10 and 100 seconds: slicewise, frames by hand, Spark's own windows]"
    "(benchmarks/results/peers.png)"
)
INTRODUCTION = (
    "slicewise beside what people would use instead: one run, the same rows, every answer checked. Written by "
    "`make peers`; nothing on this page is written by hand. Rows are a millisecond apart, of 16 keys, and each "
    "way sums by key and window. It is given the time that its users would see, reading the Parquet file "
    "included; except Flink, whose wheel reads none: it makes the rows itself, by the formula that made the "
    "file. Seconds are medians, with the fastest and the slowest run, behind a first one that warms up; what "
    f"takes longer than {LONG:.0f} seconds ran once behind it, longer than {VERY_LONG:.0f} only that first time. "
    "Where a way got fewer rows, compare million rows a second. The last column is a ratio of rates: above 1 a "
    "way is faster than slicewise; in brackets are the least and the most that the spreads of both allow. Less "
    "than a quarter is no difference."
)
#: Why a way is faster where it is, by a profile of slicewise.
WHY = {
    "DuckDB, frames by hand": (
        "it adds each row to its group in a hash table, where the row stands. slicewise numbers the keys and puts rows "
        "in order of key and slice first, because any aggregate can be folded from rows in order: for a million rows "
        "of 16 keys, of 72 ms 21 read the file, 9 number keys, 14 sort and 12 move columns."
    ),
    "pandas, by hand": (
        "so does pandas, in one pass of C over numbers of keys and seconds, where the order of rows does not matter."
    ),
}
DRAFT = (
    "**The machine was busy with other things in this run: a draft. Seconds are too long, and ratios are hints. "
    "`make peers` on a quiet machine writes the page anew.**"
)
BEYOND = (
    "A frame by hand is one query on one grid, over rows that are all there. Slices give the same for any number of "
    "queries at once, for late rows that correct what was reported, on streams, and for other windows: lengths that no "
    "second divides, sessions, counts, punctuations and windows of your own."
)


def write_page(page: Path, found: list[Line], where: dict[str, Any]) -> None:
    """All cases, who was faster, and what was not in the run."""
    versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
    load = "" if where.get("load") is None else f", under a load of {where['load']:g}"
    draft = [*textwrap.wrap(DRAFT, 116), ""] if busy(where) else []
    lines = [
        "# Beside others",
        "",
        *textwrap.wrap(INTRODUCTION, 116),
        "",
        *draft,
        f"Commit {where['commit']}, {where['day']}, {where['machine']}, Python {where['python']}{load}; {versions}.",
        "",
        "| way | what is written |",
        "| --- | --- |",
        *(f"| {name} | {way.what} |" for name, way in WAYS.items()),
        "",
    ]
    for case in dict.fromkeys(line["case"] for line in found):
        lines += _section(case, [line for line in found if line["case"] == case])
    page.write_text("\n".join([*lines, *_reading(found), *_absent(found)]).rstrip() + "\n", encoding="utf-8")


def busy(where: dict[str, Any]) -> bool:
    """Was there more to do than for this run alone?"""
    return (where.get("load") or 0.0) > 2


def _section(case: str, here: list[Line]) -> list[str]:
    by = {line["way"]: line for line in here}
    lines = [f"## {case[:1].upper()}{case[1:]}", "", "| way | seconds | million rows/s | beside slicewise |"]
    lines.append("| --- | --- | --- | --- |")
    for name, line in by.items():
        rate = line["rows"] / line["seconds"] / 1e6
        shown = f"{line['seconds']:.2f}" + _spread(line["low"], line["high"], ".2f")
        lines.append(f"| {name} | {shown} | {rate:.3g} | {_ratio(line, by.get(WAYS[name].beside))} |")
    for mode, rates in FLINK_ANOTHER_DAY.items():
        if f"Flink SQL, {mode}" not in by and case in rates:
            lines.append(f"| Flink 2.3 SQL, {mode}: another day, 5 million rows | | {rates[case]:.3g} | |")
    return [*lines, ""]


def _ratio(line: Line, ours: Line | None) -> str:
    if ours is None or line is ours:
        return ""
    middle, low, high = ratio(line, ours)
    return f"{middle:.2g}{_spread(low, high, '.2g')} times {ours['way'].removeprefix('slicewise ')}"


def _spread(low: float, high: float, form: str) -> str:
    """Of several runs; nothing of one."""
    return "" if low == high else f" ({low:{form}} to {high:{form}})"


def ratio(line: Line, ours: Line) -> tuple[float, float, float]:
    """The rate of a way over slicewise's: of the medians, the least and the most that both spreads allow."""
    share = line["rows"] / ours["rows"]
    pairs = (("seconds", "seconds"), ("low", "high"), ("high", "low"))
    return tuple(share * ours[a] / line[b] for a, b in pairs)  # type: ignore[return-value]


def _reading(found: list[Line]) -> list[str]:
    """Who was faster than slicewise, and what slices give beyond an expert's frame."""
    lines = ["## What to make of it", ""]
    named: set[str] = set()
    for case in dict.fromkeys(line["case"] for line in found):
        by = {line["way"]: line for line in found if line["case"] == case}
        for ours in (by[name] for name in (ON_SPARK, IN_PROCESS) if name in by):
            rivals = [line for name, line in by.items() if WAYS[name].beside == ours["way"] and line is not ours]
            faster = [(line["way"], ratio(line, ours)[0]) for line in rivals if ratio(line, ours)[0] > 1.25]
            if faster:
                shown = ", ".join(f"{name} ({value:.1f} times)" for name, value in faster)
                lines.append(f"- {case}: faster than {ours['way']} by more than a quarter: {shown}.")
                named |= {name for name, _ in faster}
    if len(lines) == 2:
        lines.append("No way was faster than slicewise by more than a quarter.")
    for name in (name for name in WHY if name in named):
        lines += ["", *textwrap.wrap(f"{name}: {WHY[name]}", 116)]
    lines += ["", *textwrap.wrap(BEYOND, 116), ""]
    scans = [line for line in found if "scan" in line]
    if scans:
        shown = " and ".join(f"{line['scan']:.2f} s in {line['way'].removeprefix('Flink SQL, ')}" for line in scans[:2])
        lines += textwrap.wrap(f"Of Flink's time, to make the rows and forget them takes {shown}.", 116)
    return [*lines, ""]


def _absent(found: list[Line]) -> list[str]:
    lines = []
    ran = {(line["case"], line["way"]) for line in found}
    cases = [case for case in CASES if any(case == line["case"] for line in found)]
    for name in WAYS:
        without = [case for case in cases if (case, name) not in ran]
        if len(without) == len(cases):
            lines.append(f"- {name}: not in this run.")
        elif without:
            lines.append(f"- {name}: has no {', '.join(case.split(',')[0] for case in without)}.")
    return ["## What is not here", "", *lines] if lines else []


# -- README


def sentence(found: list[Line], case: str = CASE) -> str:
    """What README says of one case."""
    by = {line["way"]: line for line in found if line["case"] == case}
    ours, by_hand, own = (by[name]["seconds"] for name in (ON_SPARK, BY_HAND, OWN))
    return (
        f"Sliding windows of 100 seconds every second over {by[ON_SPARK]['rows'] / 1e6:g} million rows: {ours:.2f} s, "
        f"where Spark's own `window` takes {own:.1f} s, and sums by second with a RANGE frame over them, written by "
        f"hand, take {by_hand:.2f} s. {BEYOND} Measured by `make peers`, which checks every answer; "
        f"[docs/peers.md](docs/peers.md) has Flink, Polars, DuckDB, pandas and Bytewax, too."
    )


def update_readme(readme: Path, found: list[Line]) -> None:
    """Write picture and sentence between README's marks."""
    text = readme.read_text(encoding="utf-8")
    inside = [MARKS[0], PICTURE, "", *textwrap.wrap(sentence(found), 120, break_on_hyphens=False), MARKS[1]]
    pattern = re.compile(re.escape(MARKS[0]) + ".*?" + re.escape(MARKS[1]), re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{readme} does not have the marks {MARKS[0]} and {MARKS[1]}")
    readme.write_text(pattern.sub(lambda _: "\n".join(inside), text), encoding="utf-8")


def draw(found: list[Line], path: Path) -> bool:
    """Seconds of the three ways on Spark, for windows on a grid; False without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    cases = [case for case in CASES if case.startswith(("tumbling", "sliding"))]
    canvas, axes = plt.subplots(figsize=(7.5, 2.9), layout="constrained")
    for at, (name, colour) in enumerate(zip((ON_SPARK, BY_HAND, OWN), ("tab:blue", "0.6", "0.35"), strict=True)):
        here = [next(line for line in found if line["case"] == case and line["way"] == name) for case in cases]
        places = [place + 0.27 * (at - 1) for place in range(len(here))]
        seconds = [line["seconds"] for line in here]
        errors = [[line["seconds"] - line["low"] for line in here], [line["high"] - line["seconds"] for line in here]]
        axes.barh(places, seconds, 0.25, xerr=errors, color=colour, label=name, error_kw={"elinewidth": 0.8})
        for place, line in zip(places, here, strict=True):
            axes.text(line["high"] * 1.06, place, f"{line['seconds']:.2f} s", va="center", fontsize=8)
    axes.set_yticks(range(len(cases)), cases, fontsize=9)
    axes.invert_yaxis()
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(low / 3, high * 1.8)  # bars begin nowhere on such an axis: not where the shortest would vanish
    rows = max(line["rows"] for line in found)
    axes.set_xlabel(f"seconds for sums over {rows / 1e6:g} million rows, 16 keys; local[2]", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.legend(fontsize=8, loc="upper right", frameon=False)
    canvas.savefig(path, dpi=90)
    plt.close(canvas)
    return True
