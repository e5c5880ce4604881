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
import peers  # noqa: E402


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
    assert set(read["environment"]) == {"commit", "day", "machine", "load", "python", "versions"}
    assert read["environment"]["versions"].keys() >= {"slicewise", "numpy", "pyarrow"}
    assert harness.load(tmp_path / "deep" / "x.json") == [{"rate": 1}]
    (tmp_path / "old.json").write_text("[1, 2]")
    assert harness.load(tmp_path / "old.json") == [1, 2]
    harness.save(None, [])


def test_bars_say_whether_they_were_reached(capsys):
    assert harness.bar("fast", 2, at_least=1)
    assert not harness.bar("small", 2, at_most=1)
    assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == ["reached", "REACHED"]


# Peers


def test_peers_agree_on_every_window_and_make_a_page(tmp_path):
    """Those that need no JVM; the others join in `make peers`."""
    assert peers.main(["--rows", "20000", "--repeat", "1", "--skip", "Spark", "--save", str(tmp_path / "p.json")]) == 0
    found = harness.load(tmp_path / "p.json")
    assert {line["case"] for line in found} == set(peers.CASES)
    assert {"slicewise in process", "pandas, floor + rolling by hand"} <= {line["way"] for line in found}
    peers.write_page(tmp_path / "peers.md", found, harness.environment())
    page = (tmp_path / "peers.md").read_text()
    assert page.count("| slicewise in process |") == len(peers.CASES)
    assert "Not in this run: slicewise on Spark, Spark, groupBy + RANGE frame by hand, Spark, window" in page


def test_ways_that_are_not_installed_are_named(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(peers.WAYS, "Nobody's", ("no_such_package", peers.in_process, 1))
    peers.main(["--rows", "20000", "--repeat", "1", "--skip", "Spark", "pandas", "--only", "tumbling"])
    assert "Nobody's: no_such_package is not installed, left out" in capsys.readouterr().out


def test_a_wrong_answer_stops_the_run(monkeypatch):
    def wrong(rows, length, every):
        run, answer = peers.in_process(rows, length, every)
        return run, lambda found: (0, *answer(found)[1:])

    monkeypatch.setattr(peers, "WAYS", {"wrong": ("numpy", wrong, 1)})
    with pytest.raises(SystemExit, match=r"^tumbling 1 s: wrong says \(0, "):
        peers.main(["--rows", "20000", "--repeat", "1", "--only", "tumbling"])
