"""The page of claims, docs/claims.md, written from what was measured."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

import numpy as np

from papers.figure import DOES_NOT, HOLDS, IN_PART, Figure, Points, Verdict

#: Repetitions that are further apart than this decide nothing about what differs by less.
NOISY = 0.25

INTRODUCTION = """\
# Claims

What five papers say of window aggregation, and whether it holds here: in Python, at a size that finishes in minutes.
Written by `slicewise bench paper --claims docs/claims.md` from the measurements in `benchmarks/results/paper/`; nothing
on this page is written by hand. *Counted* claims depend on no clock, and a test repeats them.

Techniques named `LazySlicing`, `TupleBuffer` and so on are those of `slicewise.baselines`, on single values, in Python,
one and all: compare them with one another. What papers measured in Java or C++ is here interpreted, where a call costs
more than most combines: reasons count both. Lines marked *(arrays)* are slicewise's engine, or array code like it. A
claim is *noisy* where the repetitions of its figure are more than a quarter apart: look at the spread before believing
it.
"""


def write_claims(page: Path, measured: dict[str, Points], folder: Path) -> None:
    """Write the page for the figures that were measured."""
    from papers import FIGURES

    words: Counter[str] = Counter()
    sections: list[str] = []
    rivals: list[str] = []
    for name, points in measured.items():
        figure = FIGURES[name]
        sections.append(_section(figure, points, folder, page, words, rivals))
    total = ", ".join(f"{words[word]} {word}" for word in (HOLDS, IN_PART, DOES_NOT))
    parts = [INTRODUCTION, _where(folder, measured), f"**{sum(words.values())} claims: {total}.**\n"]
    if rivals:
        parts += ["## What does not hold\n", "\n".join(rivals) + "\n"]
    page.write_text("\n".join([*parts, *sections]).rstrip() + "\n", encoding="utf-8")


def _where(folder: Path, measured: dict[str, Points]) -> str:
    """Commits, machine and versions of what was measured."""
    lines = []
    for name in measured:
        with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            lines += list(csv.DictReader(file))[:1]
    said = {
        key: ", ".join(sorted({line[key] for line in lines})) for key in ("commit", "day", "machine", "python", "scale")
    }
    loads = sorted(float(line["load"]) for line in lines if line.get("load"))
    busy = f"a load of {loads[0]:g} to {loads[-1]:g}" if loads else "a load that was not kept"
    unknown = len(lines) - len(loads)
    busy += f" ({unknown} of {len(lines)} figures were measured without keeping it)" if loads and unknown else ""
    walls = sum(line.get("clock") != "processor" for line in lines)
    clocks = (
        f"Seconds are those of the processor in the process that is measured, which other processes hardly disturb; in "
        f"{walls} of {len(lines)} figures those of the clock on the wall."
    )
    return (
        f"{clocks}\n\nCommit {said['commit']}, {said['day']}, {said['machine']}, Python {said['python']}, scale "
        f"{said['scale']}, under "
        f"{busy}. The machine is shared: read ratios, and take less than a quarter for nothing. Counted claims do "
        f"not mind.\n"
    )


def _apart(points: Points) -> tuple[float, float]:
    """How far the repetitions of a point are apart, as a share of it: the median of points, and the 90th percentile."""
    shares = [(p.high - p.low) / p.y for p in points.points if p.y]
    middle, high = np.percentile(shares, [50, 90]) if shares else (0.0, 0.0)
    return float(middle), float(high)


def _decided(verdict: Verdict, apart: float) -> Verdict:
    """A verdict with its reason; where there is none and repetitions are far apart, that is the reason."""
    if verdict.word == HOLDS or verdict.why or apart <= NOISY:
        return verdict
    return verdict._replace(why=f"repetitions are {apart:.0%} apart: this run decides nothing")


def _section(figure: Figure, points: Points, folder: Path, page: Path, words: Counter[str], rivals: list[str]) -> str:
    lines = [f"## {figure.paper}, {figure.place}: {figure.title}", "", f"*The paper:* {figure.expectation}", ""]
    lines += ["| claim | where | | measured | why |", "| --- | --- | --- | --- | --- |"]
    middle, high = _apart(points)
    for claim in figure.claims:
        verdict = _decided(claim.verdict(points), middle)
        words[verdict.word] += 1
        text = claim.text + (" *(counted)*" if claim.counted else "")
        word = f"**{verdict.word}**" + (", noisy" if middle > NOISY and not claim.counted else "")
        lines.append(f"| {text} | {claim.place} | {word} | {verdict.measured} | {verdict.why} |")
        if verdict.word == DOES_NOT:
            why = f" {verdict.why[:1].upper()}{verdict.why[1:]}." if verdict.why else ""
            rivals.append(f"- {figure.paper}, {figure.place}: {claim.text}. Measured: {verdict.measured}.{why}")
    if high:
        lines += ["", f"Repetitions are {middle:.0%} apart in the middle, {high:.0%} at the 90th percentile."]
    picture = folder / f"{figure.name}.png"
    if picture.exists():
        lines += ["", f"![{figure.name}]({os.path.relpath(picture, page.parent)})"]
    return "\n".join([*lines, ""])
