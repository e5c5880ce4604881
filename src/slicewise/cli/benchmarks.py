"""Benchmarks: finds the benchmark scripts of a source checkout and runs them by name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

from slicewise.errors import did_you_mean

__all__ = ["NOT_IN_A_CHECKOUT", "folder", "listed", "run", "unknown"]

NOT_IN_A_CHECKOUT = (
    "the benchmarks are part of the source, not of the installed package: clone the repository of slicewise, and run "
    "`slicewise bench` in it, or `make bench` for all of them"
)


def folder() -> Path | None:
    """``benchmarks/`` of the current folder, or of the checkout that slicewise was installed from."""
    checkout = Path(__file__).resolve().parents[3]
    for root in (Path.cwd(), checkout):
        if (root / "src" / "slicewise").is_dir() and (root / "benchmarks").is_dir():
            return root / "benchmarks"
    return None


def listed(benchmarks: Path) -> list[tuple[str, str]]:
    """The benchmarks by name, each with the first line of its docstring."""
    titles = []
    for script in sorted(benchmarks.glob("*.py")):
        tree = ast.parse(script.read_text(encoding="utf-8"))
        # Modules that the scripts share have no main.
        if not script.stem.startswith("_") and any(isinstance(n, ast.If) for n in tree.body):
            titles.append((script.stem, (ast.get_docstring(tree) or "").split("\n")[0]))
    return titles


def unknown(benchmarks: Path, name: str) -> str:
    """The message for a name that no benchmark has."""
    return f"there is no such benchmark; {did_you_mean(name, [known for known, _ in listed(benchmarks)])}"


def run(benchmarks: Path, name: str, arguments: list[str]) -> int:
    """Run a benchmark with this Python; returns its exit code."""
    command = [sys.executable, str(benchmarks / f"{name}.py"), *arguments]
    return subprocess.run(command, cwd=benchmarks.parent, check=False).returncode
