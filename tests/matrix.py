"""The matrix: the tests that matter, on every version of Spark and Python, each in an environment of its own.

    python -m tests.matrix                         what `make matrix` runs
    python -m tests.matrix --spark 4.0 --python 3.12

An environment is built once, under ``build/matrix``, with the newest patch of its Spark from PyPI, and kept; slicewise
is installed into it as a wheel, new every time. A Python that is not on PATH, or is a name there that starts nothing,
is left out, and named; with pyenv: ``PYENV_VERSION=3.11.7:3.12.1:3.13.0 make matrix``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
BUILD = ROOT / "build" / "matrix"
HERE = "{}.{}".format(*sys.version_info[:2])
#: What the tests do not need.
TOOLS = ("mypy", "ruff", "pyspark", "pytest-cov", "polars")
#: Without Spark, with the examples of the package that is installed; what matters on Spark; and the least of it, which
#: CI runs on the oldest version.
TESTS = {
    "quick": ["-m", "not spark and not slow", "--pyargs", "slicewise", "tests"],
    "spark": ["-m", "matrix", "tests/spark"],
    "smoke": ["-m", "matrix", "-k", "instants or upgrade", "tests/spark"],
}
#: Tests of what Spark has since a version; on an older one they would skip themselves.
SINCE = {"4.2": ("tests/sources/test_kafka_readers.py",)}


@dataclass(frozen=True)
class Cell:
    """An environment: a version of Spark, one of Python, and everything else new, or as old as pyproject allows."""

    spark: str
    python: str
    oldest: bool = False
    tests: tuple[str, ...] = ("spark",)

    @property
    def name(self) -> str:
        return f"spark-{self.spark}-python-{self.python}" + ("-oldest" if self.oldest else "")

    @property
    def program(self) -> Path:
        """Its Python."""
        return BUILD / self.name / "bin" / "python"


#: Every version of Spark once, with a Python that a platform brings with it: the oldest of everything, Fabric 2.0,
#: Databricks 19. Where only Python is another, the tests without Spark run, and a few with it; so does Databricks 17.3.
CELLS = (
    Cell("4.0", "3.11", oldest=True, tests=("quick", "spark")),
    Cell("4.1", "3.13"),
    Cell("4.2", "3.12"),
    Cell("4.3", "3.11"),
    Cell("4.0", "3.12", tests=("smoke",)),
    Cell("4.3", "3.12", tests=("quick", "smoke")),
    Cell("4.3", "3.13", tests=("quick", "smoke")),
)


@dataclass(frozen=True)
class Outcome:
    """What came of some tests in an environment."""

    what: str
    tests: str
    passed: int
    failed: int
    seconds: float

    def line(self) -> str:
        result = f"{self.passed} passed" + (f", {self.failed} FAILED" if self.failed else "")
        return f"{self.what:58} {self.tests:8} {result:24} {self.seconds / 60:5.1f} min"


def main() -> int:
    chosen = _arguments()
    wheel = build_wheel()
    outcomes: list[Outcome] = []
    for cell in _cells(chosen):
        prepare(cell, wheel)
        if chosen.build:
            continue
        outcomes += [run(cell, tests) for tests in ([chosen.only] if chosen.only else cell.tests)]
    if not (chosen.build or chosen.spark or chosen.python or chosen.only):
        outcomes += [refused(wheel), wheels()]
    lines = [outcome.line() for outcome in outcomes]
    (BUILD / "table.txt").write_text("\n".join([*lines, ""]))
    print("\n".join(["", *lines]))
    return int(any(outcome.failed or not outcome.passed for outcome in outcomes))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--spark", default="", help="versions of Spark, as in 4.0,4.2; all by default")
    parser.add_argument("--python", default="", help="versions of Python, as in 3.12; those of the table by default")
    parser.add_argument("--only", choices=TESTS, help="only these tests")
    parser.add_argument("--build", action="store_true", help="build the environments, and run nothing")
    return parser.parse_args()


def _cells(chosen: argparse.Namespace) -> Iterator[Cell]:
    sparks, pythons = (set(filter(None, text.split(","))) for text in (chosen.spark, chosen.python))
    cells = [c for c in CELLS if not sparks or c.spark in sparks]
    if pythons:
        # Any pair can be asked for, also one that is not in the table.
        asked = [Cell(s, p) for s in dict.fromkeys(c.spark for c in cells) for p in sorted(pythons)]
        known = {(c.spark, c.python): c for c in reversed(cells)}
        cells = [known.get((c.spark, c.python), c) for c in asked]
    if chosen.only == "smoke":
        cells = [Cell(cells[0].spark, HERE, oldest=True)]
    for cell in cells:
        if _python(cell) is not None:
            yield cell
        else:
            print(f"left out: {cell.name}, because python{cell.python} is not on PATH or does not start", flush=True)


# -- environments


def build_wheel() -> Path:
    """A wheel of what is here."""
    folder = BUILD / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    _call(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT)
    (wheel,) = folder.glob("slicewise-*.whl")
    return wheel


def prepare(cell: Cell, wheel: Path) -> None:
    """Build the environment of a cell if it is not there or if it should have other packages; install the wheel."""
    requirements = "\n".join(requirements_of(cell))
    stamp = BUILD / cell.name / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != requirements:
        print(f"building {cell.name}", flush=True)
        _call(_python(cell), "-m", "venv", "--clear", BUILD / cell.name)
        link_spark(cell)
        pip(cell, "--no-compile", *requirements.splitlines())
        stamp.write_text(requirements)
    pip(cell, "--no-deps", "--force-reinstall", str(wheel))


def _python(cell: Cell) -> str | None:
    """The Python that the environment of a cell is made of."""
    if cell.python == HERE:
        return sys.executable
    program = shutil.which(f"python{cell.python}")
    # A shim of pyenv is on PATH whether or not its version is chosen.
    starts = program and subprocess.run([program, "-V"], capture_output=True, check=False).returncode == 0
    return program if starts else None


def link_spark(cell: Cell) -> None:
    """Spark is half a gigabyte of what no Python compiles: an environment of the same version lends its own."""
    for stamp in sorted(BUILD.glob(f"spark-{cell.spark}-*/requirements.txt")):
        (own,), (other,) = (folder.glob("lib/python*/site-packages") for folder in (BUILD / cell.name, stamp.parent))
        if (other / "pyspark").is_symlink():  # it has none itself, and its lender may be the one that is built anew
            continue
        for name in ("pyspark", *(path.name for path in other.glob("pyspark-*.dist-info"))):
            (own / name).symlink_to((other / name).resolve())
        return


def requirements_of(cell: Cell) -> list[str]:
    """What is installed: Spark, what slicewise needs of other packages, and what its tests need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *project["optional-dependencies"]["spark"]]
    dev = project["optional-dependencies"]["dev"]
    named = {_package(line) for line in needed}
    tests = [line for line in dev if _package(line) not in (*TOOLS, *named)]
    needed = [_oldest(line) if cell.oldest else line for line in needed if _package(line) != "pyspark"]
    return [f"pyspark[{_parts(cell)}]=={cell.spark}.*", *needed, *tests]


def _parts(cell: Cell) -> str:
    """The extras of pyspark; there are pipelines since 4.1."""
    return "connect" if cell.spark < "4.1" else "connect,pipelines"


def _package(requirement: str) -> str:
    return re.split(r"[\[<>=~]", requirement)[0]


def _oldest(requirement: str) -> str:
    """A requirement that only the oldest allowed version meets."""
    lowest = re.search(r">=([\d.]+)", requirement)
    assert lowest is not None, requirement
    version = lowest[1] + ".0" * (2 - lowest[1].count("."))
    return f"{_package(requirement)}=={version}"


def pip(cell: Cell, *arguments: str) -> None:
    _call(cell.program, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments)


def _call(*command: object) -> None:
    subprocess.run(list(map(str, command)), check=True, cwd=ROOT)


# -- runs


def run(cell: Cell, name: str) -> Outcome:
    """Run some tests in the environment of a cell."""
    what = _described(cell)
    print(f"{what}: {name}", flush=True)
    report = BUILD / f"{cell.name}-{name}.xml"
    report.unlink(missing_ok=True)
    began = time.monotonic()
    command = [cell.program, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *TESTS[name]]
    command += [f"--ignore={path}" for version, paths in SINCE.items() if cell.spark < version for path in paths]
    subprocess.run(list(map(str, command)), check=False, cwd=ROOT, env=_environment(cell))
    passed, failed = _counts(report)
    return Outcome(what, name, passed, failed, time.monotonic() - began)


def refused(wheel: Path) -> Outcome:
    """Whether Spark 3.5 is refused, by the sentence that says what to use."""
    # With NumPy 1, for which Spark 3.5 asks and which new versions of Arrow refuse.
    began, cell = time.monotonic(), Cell("3.5", HERE, oldest=True)
    prepare(cell, wheel)
    command = [str(cell.program), "-P", "-c", "import slicewise, slicewise.spark"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    ok = "MissingPackageError: slicewise runs on Spark 4.0 and newer, and this is pyspark 3.5." in printed
    return Outcome("Spark 3.5", "refusal", int(ok), int(not ok), time.monotonic() - began)


def wheels() -> Outcome:
    """The wheel with each extra alone, each optional import missing once; the thin client on a server of Spark 4.2."""
    began, report = time.monotonic(), BUILD / "wheels.xml"
    report.unlink(missing_ok=True)
    variables = os.environ | {"SLICEWISE_WHEELS": "all"}
    for home in BUILD.glob("spark-4.2-*/lib/python*/site-packages/pyspark"):
        variables["SLICEWISE_SERVER_HOME"] = str(home)
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "tests/test_wheels.py"]
    subprocess.run(command, check=False, cwd=ROOT, env=variables)
    return Outcome("a wheel with each extra alone", "wheels", *_counts(report), time.monotonic() - began)


def _environment(cell: Cell) -> dict[str, str]:
    """The environment of a run: an earlier version of Spark whose streams this one continues, if that is there."""
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "PYSPARK", "SPARK", "PYTEST"))}
    kept["SLICEWISE_KILLS"] = "1"
    earlier = [c for c in CELLS if _before(c, cell) and c.program.exists()]
    return kept | ({"SLICEWISE_EARLIER_PYTHON": str(earlier[-1].program)} if earlier else {})


def _before(earlier: Cell, later: Cell) -> bool:
    """Whether a stream of one may go on in the other: not over the change from tables to rows, which came with 4.1."""
    return "4.1" <= earlier.spark < later.spark


def _described(cell: Cell) -> str:
    code = "import sys, numpy, pyarrow, pyspark; print('.'.join(map(str, sys.version_info[:3])), numpy.__version__, "
    code += "pyarrow.__version__, pyspark.__version__)"
    printed = subprocess.run([cell.program, "-P", "-c", code], capture_output=True, text=True, check=True).stdout
    python, numpy, arrow, spark = printed.split()
    return f"Spark {spark:6} Python {python:7} NumPy {numpy:6} Arrow {arrow:7}"


def _counts(report: Path) -> tuple[int, int]:
    """How many tests passed, and how many did not, skipped ones among them."""
    if not report.exists():
        return 0, 1
    suites: Iterable[ElementTree.Element] = ElementTree.parse(report).getroot().iter("testsuite")
    total = failed = 0
    for suite in suites:
        numbers = {name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")}
        bad = numbers["failures"] + numbers["errors"] + numbers["skipped"]
        total, failed = total + numbers["tests"] - bad, failed + bad
    return total, failed


if __name__ == "__main__":
    sys.exit(main())
