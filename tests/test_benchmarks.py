"""The benchmarks: one harness for all of them, which shows spreads and saves where something was found."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = sorted(path for path in BENCHMARKS.glob("*.py") if not path.stem.startswith("_"))

sys.path.insert(0, str(BENCHMARKS))
import _harness as harness  # noqa: E402
import aggregates  # noqa: E402
import peers  # noqa: E402
import rivals  # noqa: E402
from rivals import page  # noqa: E402
from rivals.rows import CASES, NOISE, keys_and_values  # noqa: E402


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


def test_the_cpu_clock_counts_all_that_was_started():
    burn = "import time\nfor _ in range(2_000_000): pass\nprint(time.process_time())"
    before = harness.cpu_clock()
    used = float(subprocess.run([sys.executable, "-c", burn], capture_output=True, text=True, check=True).stdout)
    assert harness.cpu_clock() - before >= used - 0.05  # clocks of processes tick a hundred times a second


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


# Aggregates


def test_a_run_goes_on_where_it_was_stopped(tmp_path):
    path = tmp_path / "a.json"
    run = aggregates.Run(path, 1000, fresh=False)
    assert run.missing("alone", ["sum", "avg"]) == ["sum", "avg"]
    run.add("alone", "sum", seconds=1.0)
    assert harness.load(path) == run.found
    again = aggregates.Run(path, 1000, fresh=False)
    assert again.missing("alone", ["sum", "avg"]) == ["avg"]
    assert again.missing("flat", ["sum"]) == ["sum"]
    again.add("alone", "avg", seconds=2.0)
    assert [f["aggregate"] for f in harness.load(path)] == ["sum", "avg"]
    # Of other rows, or when all is measured again, nothing counts.
    assert aggregates.Run(path, 2000, fresh=False).found == []
    assert aggregates.Run(path, 1000, fresh=True).found == []
    assert not again.is_over
    assert aggregates.Run(path, 1000, fresh=False, minutes=0).is_over


def figures(per_number, short, spark):
    return [
        {"what": "alone", "aggregate": "min", "fixed": True, "route": "slices", "per_number": per_number},
        {"what": "alone", "aggregate": "mode", "fixed": False, "route": "slices", "per_number": 9.0},
        {"what": "dense", "aggregate": "median", "seconds": 2.0, "spark": spark, "limit": 50.0},
        {"what": "flat", "aggregate": "median", "short": short, "long": 4.0},
        {"what": "ten", "aggregate": "ten", "seconds": 5.0, "one": 2.0},
    ]


def test_every_bar_of_a_run_has_its_verdict(capsys):
    assert aggregates.bars(figures(1.4, 3.0, None))  # stopped after 50 s, when it was 25 times as slow
    assert capsys.readouterr().out.count(" reached") == 4
    for missed in (figures(1.6, 3.0, None), figures(1.4, 1.9, None), figures(1.4, 3.0, 39.0)):
        assert not aggregates.bars(missed)
        assert capsys.readouterr().out.count("NOT REACHED") == 1


def test_what_is_written_by_hand_is_of_fixed_size():
    assert set(aggregates.BY_HAND) <= {n for n in aggregates.sw.AGGREGATES if aggregates.is_fixed(aggregates.made(n))}


# Peers


def line(way, seconds, rows=5_000_000, case=page.CASE, **more):
    return {"case": case, "way": way, "rows": rows, "seconds": seconds, "low": seconds / 2, "high": 2 * seconds, **more}


SOME = [
    line(rivals.ON_SPARK, 1.0),
    line(rivals.BY_HAND, 0.5),
    line(rivals.OWN, 40.0),
    line("Flink SQL, streaming", 10.0, scan=3.0),
    line(rivals.IN_PROCESS, 2.0),
    line("Bytewax", 1.0, rows=250_000),
]


HERE = {**harness.environment(), "load": 0.1}


def test_peers_agree_on_every_window_and_make_a_page(tmp_path):
    """Those that need no JVM; the others join in `make peers`."""
    assert peers.main(["--rows", "20000", "--repeat", "1", "--skip", "Spark", "--save", str(tmp_path / "p.json")]) == 0
    found = harness.load(tmp_path / "p.json")
    assert {line["case"] for line in found} == set(CASES)
    assert {rivals.IN_PROCESS, "pandas, by hand"} <= {line["way"] for line in found}
    page.write_page(tmp_path / "peers.md", found, harness.environment())
    text = (tmp_path / "peers.md").read_text()
    assert text.count(f"| {rivals.IN_PROCESS} |") == len(CASES) + 1
    assert f"- {rivals.OWN}: not in this run." in text


def test_the_page_shows_ratios_with_their_spread_and_what_is_faster(tmp_path):
    page.write_page(tmp_path / "peers.md", SOME, HERE)
    text = (tmp_path / "peers.md").read_text()
    assert "a draft" not in text
    page.write_page(tmp_path / "busy.md", SOME, {**HERE, "load": 9.0})
    assert "other things in this run: a draft." in (tmp_path / "busy.md").read_text()
    assert f"| {rivals.BY_HAND} | 0.50 (0.25 to 1.00) | 10 | 2 (0.5 to 8) times on Spark |" in text
    assert "| Bytewax | 1.00 (0.50 to 2.00) | 0.25 | 0.1 (0.025 to 0.4) times in process |" in text
    assert f"faster than {rivals.ON_SPARK} by more than a quarter: {rivals.BY_HAND} (2.0 times)." in text
    assert "| Flink 2.3 SQL, batch: another day, 5 million rows | | 0.095 | |" in text
    assert "to make the rows and forget them takes 3.00 s in streaming." in text


def test_readme_says_what_was_measured(tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(["before", *page.MARKS, "after"]))
    page.update_readme(readme, SOME)
    page.update_readme(readme, SOME)
    lines = readme.read_text().splitlines()
    assert lines[2] == page.PICTURE
    assert " ".join(lines[4:-2]) == page.sentence(SOME)
    assert (lines[0], lines[-1]) == ("before", "after")
    readme.write_text("nothing")
    with pytest.raises(SystemExit, match="does not have the marks"):
        page.update_readme(readme, SOME)


def test_page_and_readme_are_those_of_the_saved_run(tmp_path):
    saved = BENCHMARKS / "results" / "peers.json"
    found, where = harness.load(saved), json.loads(saved.read_text())["environment"]
    page.write_page(tmp_path / "peers.md", found, where)
    assert (tmp_path / "peers.md").read_text() == (BENCHMARKS.parent / "docs" / "peers.md").read_text()
    readme = (BENCHMARKS.parent / "README.md").read_text()
    (tmp_path / "README.md").write_text(readme)
    page.update_readme(tmp_path / "README.md", found)
    # A draft, from a busy machine, does not get into README.
    assert ((tmp_path / "README.md").read_text() == readme) == (not page.busy(where))


def test_readme_stays_as_it_is_when_the_machine_is_busy(tmp_path, capsys):
    readme = tmp_path / "README.md"
    readme.write_text("\n".join(["before", *page.MARKS, "after"]))
    for load, changed in ((9.0, False), (0.5, True)):
        harness.save(tmp_path / "p.json", SOME, {**HERE, "load": load})
        peers.main(["--read", str(tmp_path / "p.json"), "--readme", str(readme)])
        assert (page.PICTURE in readme.read_text()) == changed
    assert f"{readme} stays as it is: the machine was busy, under a load of 9" in capsys.readouterr().out


def test_a_way_that_takes_long_does_not_run_again(monkeypatch, tmp_path):
    runs = []

    def way(name):
        def made(rows, case):
            windows = rivals.in_process.slicewise(rows, case).windows
            return rivals.Attempt(lambda: runs.append(name), lambda: runs.append(f"{name} first") or windows())

        return rivals.Way("toy", made, "numpy", rivals.IN_PROCESS)

    seconds = {"quick": iter([5.0, 1.0, 2.0]), "long": iter([15.0, 9.0]), "very long": iter([30.0])}

    def clock(run):
        run()
        return next(seconds[runs[-1].removesuffix(" first")])

    monkeypatch.setattr(peers, "clock", clock)
    monkeypatch.setattr(peers, "WAYS", {name: way(name) for name in seconds})
    peers.main(["--rows", "20000", "--repeat", "2", "--only", "tumbling", "--save", str(tmp_path / "p.json")])
    assert runs == ["quick first", "long first", "very long first", "quick", "long", "quick"]
    found = {line["way"]: (line["seconds"], line["low"], line["high"]) for line in harness.load(tmp_path / "p.json")}
    assert found == {"quick": (1.5, 1.0, 2.0), "long": (9.0, 9.0, 9.0), "very long": (30.0, 30.0, 30.0)}


def test_ways_that_are_not_installed_are_named(monkeypatch, capsys):
    nobody = rivals.Way("nothing", rivals.in_process.slicewise, "no_such_package", rivals.IN_PROCESS)
    monkeypatch.setattr(peers, "WAYS", {**peers.WAYS, "Nobody's": nobody})
    monkeypatch.delenv("SLICEWISE_FLINK", raising=False)
    peers.main(["--rows", "20000", "--repeat", "1", "--skip", "Spark", "pandas", "--only", "tumbling"])
    said = capsys.readouterr().out
    assert "Nobody's: no_such_package is not installed, left out" in said
    assert "Flink SQL, batch: no interpreter with apache-flink is named (--flink), left out" in said


def test_a_wrong_answer_stops_the_run(monkeypatch):
    def made(rows, case):
        run, windows = rivals.in_process.slicewise(rows, case)
        return rivals.Attempt(run, lambda: windows()._replace(total=windows().total + 1))

    monkeypatch.setattr(peers, "WAYS", {"wrong": rivals.Way("wrong", made, "numpy", rivals.IN_PROCESS)})
    with pytest.raises(SystemExit, match=r"^tumbling 1 s: wrong says \(\d+, \d+, \d+\), slicewise \(\d+, "):
        peers.main(["--rows", "20000", "--repeat", "1", "--only", "tumbling"])


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ("no/such/python", "there is no interpreter no/such/python, named for Flink"),
        (sys.executable, f"{sys.executable} has no apache-flink; install it there, or run `make flink`"),
    ],
)
def test_an_interpreter_without_flink_is_named(python, message, monkeypatch):
    monkeypatch.setenv("SLICEWISE_FLINK", python)
    with pytest.raises(SystemExit, match=f"^{re.escape(message)}$"):
        peers.main(["--rows", "2000"])


def test_flink_is_asked_for_the_same_rows_and_windows():
    """What runs there is in `make peers`: here, the formula that makes its rows, and the SQL of each window."""
    number = 4_711
    key, value = (int(column[number]) for column in keys_and_values(5_000))
    noise = eval(NOISE.format(id=number).replace("/", "//"))
    assert (noise // 64 % 16, noise // 4096 % 1000) == (key, value)
    functions = [rivals.flink.query_of(10, case).split("table(")[1].split("(")[0] for case in CASES.values()]
    assert functions == ["tumble", "hop", "hop", "cumulate", "session"]
