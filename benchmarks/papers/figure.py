"""A figure: steps that measure points, what the paper expects, and claims that are judged by the points."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from _harness import Spread, clock

HOLDS, IN_PART, DOES_NOT = "holds", "holds in part", "does not hold"
#: Seconds of the processor in this process: rivals run on one thread, and what else runs on the machine hardly shows.
now = time.process_time


@contextmanager
def undisturbed() -> Iterator[None]:
    """No passes of the garbage collector: one over a large window takes longer than a thousand slides of it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@dataclass(frozen=True)
class Setting:
    """How large a run is.

    Parameters
    ----------
    scale
        1 for a run of minutes; the papers' own sizes are 10 to 1000 times as large.
    repeat
        How often each measurement is taken.
    data
        A file with real data instead of what is made up.
    """

    scale: float = 1.0
    repeat: int = 3
    data: Path | None = None

    def rows(self, n: int, least: int = 2000) -> int:
        """So many rows, scaled."""
        return max(int(n * self.scale), least)

    def some(self, values: Sequence[Any]) -> list[Any]:
        """All of these, or the first two in a run that is only to show that everything works."""
        return list(values) if self.scale >= 0.1 else list(values[:2])

    def powers(self, highest: int, step: int = 2, lowest: int = 0) -> list[int]:
        """Window sizes up to ``2**highest``, scaled."""
        top = max(lowest + step, highest + round(math.log2(self.scale)))
        return [2**p for p in range(lowest, top + 1, step)]


class Point(NamedTuple):
    """One measurement: the median of its repetitions, with the lowest and the highest."""

    panel: str
    series: str
    x: float | str
    y: float
    low: float
    high: float

    @classmethod
    def of(cls, panel: str, series: str, x: float | str, values: Sequence[float] | float) -> Point:
        spread = Spread.of([values] if isinstance(values, (int, float)) else values)
        return cls(panel, series, x, spread.median, spread.low, spread.high)


class Step(NamedTuple):
    """What is measured in one go, rivals in turns; what was done before is not measured again."""

    panel: str
    x: float | str
    run: Callable[[], list[Point]]


class Points:
    """All points of a figure, by panel, series and x."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.points = list(points)
        self._y = {(p.panel, p.series, p.x): p.y for p in points}

    def series(self, panel: str, name: str) -> dict[Any, float]:
        """y by x."""
        return {p.x: p.y for p in self.points if p.panel == panel and p.series == name}

    def names(self, panel: str) -> list[str]:
        return list(dict.fromkeys(p.series for p in self.points if p.panel == panel))

    def panels(self) -> list[str]:
        return list(dict.fromkeys(p.panel for p in self.points))

    def last(self, panel: str, name: str) -> float:
        """y at the largest x."""
        series = self.series(panel, name)
        return series[max(series)]

    def first(self, panel: str, name: str) -> float:
        series = self.series(panel, name)
        return series[min(series)]


class Verdict(NamedTuple):
    """How a claim fared: the word, what was measured, and why."""

    word: str
    measured: str
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """What a paper says, where, and how the points decide. A counted claim depends on no clock: a test repeats it.

    ``why`` is the reason if it does not hold, or in part, and the verdict gives none that the points show better.
    """

    place: str
    text: str
    judge: Callable[[Points], Verdict]
    counted: bool = False
    why: str = ""

    def verdict(self, points: Points) -> Verdict:
        """How it fared, with its reason unless it holds."""
        found = self.judge(points)
        return found if found.word == HOLDS or found.why else found._replace(why=self.why)


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper.

    Parameters
    ----------
    name
        By which it is called, such as ``slicing-8``.
    paper, place, title
        Where it is from, and what it shows.
    x, y
        The labels of its axes.
    expectation
        What the paper shows, in words.
    steps
        What is measured.
    shapes
        Curves of the paper's expectation by series, in any unit: they are drawn beside the measured ones.
    """

    name: str
    paper: str
    place: str
    title: str
    x: str
    y: str
    expectation: str
    steps: Callable[[Setting], Iterator[Step]]
    claims: tuple[Claim, ...] = ()
    shapes: dict[str, Callable[[float], float]] | None = None
    log_x: bool = True
    log_y: bool = True
    bars: bool = False
    #: Whose seconds its rates are by: of the processor in one process, or of the wall.
    clock: str = "processor"
    #: Points that another day gave, on another machine; drawn as such.
    anchors: tuple[tuple[str, str, dict[float, float]], ...] = ()


def ratio_verdict(value: float, at_least: float, shown: str, why: str = "", part: float = 1.0) -> Verdict:
    """A claim that one thing is so many times another: in part, if it is more, though not by so much."""
    word = HOLDS if value >= at_least else IN_PART if value >= part else DOES_NOT
    return Verdict(word, shown, "" if word == HOLDS else why)


def flat_verdict(series: dict[Any, float], most: float, shown: str, why: str = "") -> Verdict:
    """A claim that something stays as it is: largest over smallest."""
    spread = max(series.values()) / min(series.values())
    word = HOLDS if spread <= most else IN_PART if spread <= 2 * most else DOES_NOT
    return Verdict(word, f"{shown}: {spread:.1f} times from lowest to highest", "" if word == HOLDS else why)


def timed(
    panel: str, x: float | str, rivals: dict[str, Callable[[], Any]], n: dict[str, int] | int, repeat: int
) -> list[Point]:
    """Millions per second of rivals in turns; each gives an answer, and all must be equal before a rate is reported."""
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    answers: dict[str, Any] = {}
    for turn in range(repeat):
        for name, run in rivals.items():
            if turn and min(seconds[name]) > 1.5:
                continue  # so long that a pause of the machine does not show
            seconds[name].append(clock(lambda name=name, run=run: answers.__setitem__(name, run()), now))
    check_equal(panel, x, {name: answer for name, answer in answers.items() if answer is not None})
    counts = n if isinstance(n, dict) else dict.fromkeys(rivals, n)
    return [Point.of(panel, name, x, [counts[name] / s / 1e6 for s in taken]) for name, taken in seconds.items()]


def check_equal(panel: str, x: Any, answers: dict[str, Any]) -> None:
    """Stop if rivals that ran over the same rows do not say the same; answers are grouped by what they are over."""
    groups: dict[Any, tuple[str, Any]] = {}
    for name, (over, answer) in answers.items():
        other, expected = groups.setdefault(over, (name, answer))
        same = len(answer) == len(expected) and all(
            math.isclose(a, b, rel_tol=1e-9) for a, b in zip(answer, expected, strict=True)
        )
        if not same:
            raise SystemExit(f"{panel} at {x}: {name} says {answer}, {other} says {expected}")
