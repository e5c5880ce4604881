"""Every figure and table of the five papers, drawn from one run, and each claim judged.

    python benchmarks/paper.py [FIGURE ...] [--scale 1] [--data FILE] [--folder build/paper] [--claims docs/claims.md]

A figure is a CSV file, each line with commit, machine, versions and spread, and a picture with the paper's expectation
beside it. Every answer is checked before a time is reported. A run that was stopped goes on where it was: what was
measured at the same commit and scale is not measured again (``--fresh`` does). ``--list`` names the figures; a part of
a name means all that hold it, such as ``cutty``.

``--scale 1`` takes minutes; the papers' own sizes are ten to a thousand times as large. ``--data`` takes a file of the
DEBS Grand Challenges: that of 2013 in place of made-up football data, that of 2012 in place of machines and of their
states.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _harness import ROOT, arguments, commit, environment, heading
from papers import FIGURES
from papers.claims import write_claims
from papers.drawing import draw
from papers.figure import Figure, Point, Points, Setting

HEADER = (
    "figure",
    "panel",
    "series",
    "x",
    "y",
    "low",
    "high",
    "unit",
    "scale",
    "data",
    "clock",
    "commit",
    "day",
    "machine",
    "load",
    "python",
    "versions",
)


class Sheet:
    """The points of a figure in a CSV file, which grows with every step."""

    def __init__(self, figure: Figure, folder: Path, setting: Setting, *, fresh: bool = False) -> None:
        self.figure, self.setting = figure, setting
        self.path = folder / f"{figure.name}.csv"
        here = environment()
        self._where = [
            setting.scale,
            setting.data.name if setting.data else "made up",
            figure.clock,
            commit(),
            here["day"],
            here["machine"],
            here["load"],
            here["python"],
            json.dumps(here["versions"]),
        ]
        self.points: list[Point] = []
        self.done: set[tuple[str, str]] = set()
        self._kept = [] if fresh or not self.path.exists() else list(self._read())
        with self.path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow((*HEADER, "step"))
        for point, step in self._kept:
            self._write(point, step)

    def _read(self) -> Iterator[tuple[Point, str]]:
        with self.path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                same = (line["commit"], line.get("data")) == (self._where[3], self._where[1])
                if same and float(line["scale"]) == self.setting.scale:
                    yield _point(line), line["step"]

    def _write(self, point: Point, step: str) -> None:
        with self.path.open("a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerow([self.figure.name, *point, self.figure.y, *self._where, step])
        self.points.append(point)
        self.done.add((step, ""))

    def add(self, points: list[Point], step: str) -> None:
        """Keep the points of a step."""
        for point in points:
            self._write(point, step)


def _point(line: dict[str, str]) -> Point:
    x: Any = line["x"]
    try:
        x = float(x)
        x = int(x) if x.is_integer() else x
    except ValueError:
        pass
    return Point(line["panel"], line["series"], x, float(line["y"]), float(line["low"]), float(line["high"]))


def read_points(path: Path) -> Points:
    """The points of a figure that was measured before."""
    with path.open(newline="", encoding="utf-8") as file:
        return Points([_point(line) for line in csv.DictReader(file)])


def measure(figure: Figure, folder: Path, setting: Setting, *, fresh: bool = False) -> Points:
    """All steps of a figure, those that are missing; then its picture."""
    sheet = Sheet(figure, folder, setting, fresh=fresh)
    steps = list(figure.steps(setting))
    with _progress(figure.name, len(steps)) as advance:
        for step in steps:
            name = f"{step.panel} {step.x}".strip()
            if (name, "") not in sheet.done:
                sheet.add(step.run(), name)
            advance(name)
    points = Points(sheet.points)
    draw(figure, points, folder / f"{figure.name}.png")
    return points


@contextmanager
def _progress(title: str, total: int) -> Iterator[Any]:
    """A bar on a terminal, a line elsewhere."""
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError:
        yield lambda name: None
        return
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[at]}"),
    )
    with Progress(*columns, disable=not sys.stdout.isatty()) as bar:
        task = bar.add_task(title, total=total, at="")
        yield lambda name: bar.update(task, advance=1, at=name)


def chosen(names: list[str]) -> list[Figure]:
    """The figures whose names hold one of these; all without names."""
    found = [figure for name, figure in FIGURES.items() if not names or any(part in name for part in names)]
    exact = [FIGURES[name] for name in names if name in FIGURES]
    if len(exact) == len(names) and exact:
        return exact
    if not found:
        raise SystemExit(f"there is no figure {', '.join(names)}; there are {', '.join(FIGURES)}")
    return found


def report(figure: Figure, points: Points) -> None:
    """Print how the claims of a figure fared."""
    for claim in figure.claims:
        verdict = claim.verdict(points)
        why = f"  ({verdict.why})" if verdict.why else ""
        print(f"    {verdict.word:<14} {claim.text}: {verdict.measured}{why}", flush=True)


def main(given: list[str] | None = None) -> int:
    parser = arguments(__doc__, save_as=False)
    parser.add_argument("figures", nargs="*", help="names of figures, or parts of them; all by default")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--data", type=Path, help="a file of DEBS 2012 or 2013")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "paper")
    parser.add_argument("--fresh", action="store_true", help="measure again what was measured before")
    parser.add_argument("--list", action="store_true", help="name the figures and do nothing else")
    parser.add_argument("--skip", nargs="+", default=[], help="leave out figures whose name holds one of these")
    parser.add_argument("--claims", type=Path, help="write the page of claims from what is in the folder")
    options = parser.parse_args(given)
    if options.list:
        for figure in FIGURES.values():
            print(f"{figure.name:<18} {figure.paper}, {figure.place}: {figure.title}")
        return 0
    if options.data is not None and not options.data.exists():
        raise SystemExit(f"there is no file {options.data}")
    options.folder.mkdir(parents=True, exist_ok=True)
    setting = Setting(options.scale, options.repeat, options.data)
    print(heading(scale=setting.scale))
    begun = time.perf_counter()
    for figure in chosen(options.figures):
        if any(part in figure.name for part in options.skip):
            continue
        started, worked = time.perf_counter(), time.process_time()
        points = measure(figure, options.folder, setting, fresh=options.fresh)
        taken = f"{time.perf_counter() - started:.0f} s, {time.process_time() - worked:.0f} s of the processor"
        print(f"{figure.name:<18} {figure.title}: {taken}", flush=True)
        report(figure, points)
    if options.claims:
        measured = {name: read_points(path) for name in FIGURES if (path := options.folder / f"{name}.csv").exists()}
        write_claims(options.claims, measured, options.folder)
    minutes = (time.perf_counter() - begun) / 60
    print(f"CSV files and pictures are in {options.folder}, after {minutes:.1f} minutes.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
