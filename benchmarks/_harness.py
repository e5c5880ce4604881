"""The harness of all benchmarks: clock runs in turns, show the spread, save what was found with where it was found.

A benchmark says what is run and checks what comes out; how it is timed and kept is said here, once.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: What results depend on, if it is installed.
PACKAGES = ("slicewise", "numpy", "pyarrow", "pyspark", "pandas", "polars", "duckdb", "bytewax", "bottleneck")


@dataclass(frozen=True)
class Spread:
    """Some repetitions of one measurement: median, lowest and highest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    @property
    def share(self) -> float:
        """How far apart they are, as a share of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0

    def __str__(self) -> str:
        return f"{self.median:7.1f} ({self.low:.1f}..{self.high:.1f})"


def rate_of(n: int, seconds: Sequence[float]) -> Spread:
    """Millions per second, of runs that took so long for ``n``."""
    return Spread.of([n / s / 1e6 for s in seconds])


def clock(run: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that a call takes, by a clock."""
    started = now()
    run()
    return now() - started


def cpu_clock() -> float:
    """CPU seconds of this process and of all that it started, JVMs and their Python workers too; Linux only."""
    tick, used, children = os.sysconf("SC_CLK_TCK"), {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # it has ended since
        process = int(path.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        used[process] = (
            sum(map(int, fields[11:15])) / tick
        )  # in user and kernel mode, its own and of children that ended
    seconds, around = 0.0, [os.getpid()]
    while around:
        process = around.pop()
        seconds += used.get(process, 0.0)
        around += children.get(process, [])
    return seconds


def median_of(run: Callable[[], float], runs: int, *, warm_up: int = 1) -> float:
    """The median of some runs, each of which gives its seconds, after some that warm up."""
    return statistics.median([run() for _ in range(runs + warm_up)][warm_up:])


def in_turns(repeat: int, *runs: Callable[[], float]) -> list[list[float]]:
    """Seconds of several runs, taken in turns, so that a busy moment hits them all."""
    return [list(seconds) for seconds in zip(*[[run() for run in runs] for _ in range(repeat)], strict=True)]


@dataclass(frozen=True)
class Process:
    """A process: CPU seconds, with those of its children that have ended; bytes in memory; and how it was called."""

    number: int
    parent: int
    cpu: float
    resident: int
    command: str


def processes() -> list[Process]:
    """This process and all that it has started, directly or not; only on Linux."""
    everybody = [process for path in Path("/proc").glob("[0-9]*") if (process := _process(path)) is not None]
    family = {os.getpid()}
    while children := {p.number for p in everybody if p.parent in family and p.number not in family}:
        family |= children
    return [process for process in everybody if process.number in family]


def _process(path: Path) -> Process | None:
    try:
        fields = (path / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        command = (path / "cmdline").read_text(encoding="utf-8").replace("\0", " ")
    except OSError:  # it has ended meanwhile
        return None
    cpu = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return Process(int(path.name), int(fields[1]), cpu, int(fields[21]) * os.sysconf("SC_PAGE_SIZE"), command)


def cpu_of(some: Sequence[Process]) -> float:
    """CPU seconds of some processes together."""
    return sum(process.cpu for process in some)


def versions() -> dict[str, str]:
    """The versions of packages that matter, of those that are installed."""
    installed = {}
    for name in PACKAGES:
        try:
            installed[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return installed


def commit() -> str:
    """The commit of the checkout, with a plus if what is measured was changed; "unknown" outside of one.

    Results are no change: a long run writes them while it goes on, and must know its own when it is resumed.
    """
    changed = ["status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks", ":!benchmarks/results"]
    try:
        done = [
            subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
            for command in (["rev-parse", "--short", "HEAD"], changed)
        ]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done[0] + ("+" if done[1] else "")


def environment() -> dict[str, Any]:
    """Where something was found: commit, day, machine, how busy it was (the load of the last minute), and versions."""
    return {
        "commit": commit(),
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{platform.machine()}, {_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "load": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "versions": versions(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def heading(**more: Any) -> str:
    """One line that says where this runs."""
    here = environment()
    shown = [f"{name} {version}" for name, version in here["versions"].items()]
    shown += [f"Python {here['python']}", f"commit {here['commit']}", *(f"{k} {v}" for k, v in more.items())]
    return ", ".join(shown)


def save(path: Path | str | None, found: Any, where: dict[str, Any] | None = None) -> None:
    """Write what was found, with where; nothing without a path."""
    if path is None:
        return
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        json.dumps({"environment": where or environment(), "results": found}, indent=1) + "\n", encoding="utf-8"
    )


def load(path: Path | str, **options: Any) -> Any:
    """What was saved, without where it was found."""
    read = json.loads(Path(path).read_text(encoding="utf-8"), **options)
    return read["results"] if isinstance(read, dict) and "environment" in read else read


def bar(what: str, value: float, at_least: float | None = None, at_most: float | None = None) -> bool:
    """Print a bar and whether it was reached."""
    reached = value >= at_least if at_least is not None else at_most is not None and value <= at_most
    print(f"  {what:<75} {value:>8.2f}  {'reached' if reached else 'NOT REACHED'}")
    return reached


def arguments(doc: str | None, *, save_as: bool = True) -> argparse.ArgumentParser:
    """The command line of a benchmark: its docstring as help, and where to save."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if save_as:
        parser.add_argument("--save", type=Path, help="write the figures as JSON, with commit, machine and versions")
    return parser
