"""The benchmarks: one harness for all of them, which shows spreads and saves where something was found."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = sorted(path for path in BENCHMARKS.glob("*.py") if not path.stem.startswith("_"))

sys.path.insert(0, str(BENCHMARKS))
import _harness as harness  # noqa: E402


def imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    return {*names, *(node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))}


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_benchmark_uses_the_harness_and_nothing_of_its_own(path):
    assert "_harness" in imported(path)
    assert imported(path) & {"statistics", "platform", "timeit"} == set()


def test_runs_are_taken_in_turns():
    taken = []
    seconds = harness.in_turns(2, lambda: taken.append("a") or 1.0, lambda: taken.append("b") or 2.0)
    assert taken == ["a", "b", "a", "b"]
    assert seconds == [[1.0, 1.0], [2.0, 2.0]]


def test_a_rate_has_its_spread():
    rate = harness.rate_of(4_000_000, [2.0, 1.0, 4.0])
    assert (rate.median, rate.low, rate.high, rate.share) == (2.0, 1.0, 4.0, 1.5)
    assert str(rate) == "    2.0 (1.0..4.0)"
    assert harness.median_of(iter([9.0, 1.0, 5.0, 2.0]).__next__, runs=3) == 2.0


def test_what_is_saved_says_where_it_was_found(tmp_path):
    harness.save(tmp_path / "deep" / "x.json", [{"rate": 1}])
    read = json.loads((tmp_path / "deep" / "x.json").read_text())
    assert set(read["environment"]) == {"commit", "day", "machine", "python", "versions"}
    assert read["environment"]["versions"].keys() >= {"slicewise", "numpy", "pyarrow"}
    assert harness.load(tmp_path / "deep" / "x.json") == [{"rate": 1}]
    (tmp_path / "old.json").write_text("[1, 2]")
    assert harness.load(tmp_path / "old.json") == [1, 2]
    harness.save(None, [])


def test_bars_say_whether_they_were_reached(capsys):
    assert harness.bar("fast", 2, at_least=1)
    assert not harness.bar("small", 2, at_most=1)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["reached", "REACHED"]
