"""The papers' figures: each runs at a tiny scale, its files and picture are complete; counted claims are decided."""

from __future__ import annotations

import csv
import gc
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import paper  # noqa: E402
from papers import FIGURES  # noqa: E402
from papers.claims import write_claims  # noqa: E402
from papers.data import machine_rows, real_rows, transitions  # noqa: E402
from papers.figure import DOES_NOT, HOLDS, IN_PART, Claim, Figure, Point, Setting, Step, Verdict, timed  # noqa: E402

TINY = Setting(scale=0.005, repeat=1)
#: What the issue of every figure is called; Figure 17 starts sessions of its own and is measured by `make paper` alone.
EXPECTED = {
    *(f"slicing-{i}" for i in range(8, 18)),
    *("slicing-table-1", "cutty-8", "cutty-9", "cutty-table-1"),
    *(f"reactive-{i}" for i in range(6, 13)),
    *("reactive-table-3", "reactive-table-4", "reactive-bound"),
    *(f"slickdeque-{i}" for i in range(10, 16)),
    *("slickdeque-table-1", "mta-6", "mta-7", "mta-8", "mta-9", "mta-table-2"),
}
ON_SPARK = "slicing-17"
#: Counted claims that do not hold, whatever the clock says: the reasons are in docs/claims.md.
COUNTED_OTHERWISE = {
    "Cutty takes nearly half the reduce calls of Pairs+": {HOLDS, IN_PART, DOES_NOT},
    "RA takes over three orders of magnitude more calls than Cutty": {IN_PART, DOES_NOT},
    "An eager store takes an order of magnitude fewer calls": {HOLDS, IN_PART},
    "An eager store takes twice the memory of a lazy one": {HOLDS, IN_PART},
    "Pairs+ makes double the partials of Cutty": {HOLDS, IN_PART},
    "Cutty holds orders of magnitude less than RA": {HOLDS, IN_PART},
}


def test_there_is_a_figure_for_everything():
    assert set(FIGURES) == EXPECTED


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(EXPECTED - {ON_SPARK}))
def test_figure_is_complete_at_a_tiny_scale(name, tmp_path, monkeypatch):
    # Nothing is claimed about bytes here, and a pass over all objects of a test run takes long.
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
    figure = FIGURES[name]
    points = paper.measure(figure, tmp_path, TINY)
    with (tmp_path / f"{name}.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(points.points) > 0
    assert all(
        line[column] for line in lines for column in ("figure", "y", "low", "high", "commit", "machine", "versions")
    )
    assert {f"{step.panel} {step.x}".strip() for step in figure.steps(TINY)} == {line["step"] for line in lines}
    assert (tmp_path / f"{name}.png").stat().st_size > 5000
    for claim in figure.claims:
        if claim.counted:
            assert claim.judge(points).word in COUNTED_OTHERWISE.get(claim.text, {HOLDS}), claim.text


def figure_of(run):
    def steps(setting):
        for x in (1, 2):
            yield Step("", x, lambda x=x: run(x))

    judge = lambda points: Verdict(HOLDS, f"{len(points.points)} points")  # noqa: E731
    return Figure(
        "toy", "A Paper", "Figure 1", "a toy", "x", "y", "Straight.", steps, (Claim("p. 1", "It is so", judge),)
    )


def test_a_run_that_was_stopped_goes_on_where_it_was(tmp_path):
    done = []

    def run(x):
        if x == 2 and done == [1]:
            done.append("stopped")
            raise KeyboardInterrupt
        done.append(x)
        return [Point.of("", "a", x, [1.0, 2.0, 3.0])]

    with pytest.raises(KeyboardInterrupt):
        paper.measure(figure_of(run), tmp_path, TINY)
    points = paper.measure(figure_of(run), tmp_path, TINY)
    assert done == [1, "stopped", 2]
    assert points.points == [Point("", "a", 1, 2.0, 1.0, 3.0), Point("", "a", 2, 2.0, 1.0, 3.0)]
    assert paper.read_points(tmp_path / "toy.csv").points == points.points
    paper.measure(figure_of(run), tmp_path, TINY, fresh=True)
    assert done[3:] == [1, 2]
    paper.measure(figure_of(run), tmp_path, Setting(scale=0.5))
    assert done[5:] == [1, 2]


def test_no_time_is_reported_for_a_wrong_answer():
    with pytest.raises(SystemExit, match=r"^p at 3: b says \(2,\), a says \(1,\)$"):
        timed("p", 3, {"a": lambda: (0, (1,)), "b": lambda: (0, (2,))}, 1, 1)


def test_the_page_of_claims_says_what_holds_and_what_does_not(tmp_path, monkeypatch):
    toy = figure_of(lambda x: [Point.of("", "a", x, 1.0)])
    monkeypatch.setitem(FIGURES, "toy", toy)
    points = paper.measure(toy, tmp_path, TINY)
    write_claims(tmp_path / "claims.md", {"toy": points}, tmp_path)
    page = (tmp_path / "claims.md").read_text()
    assert "**1 claims: 1 holds, 0 holds in part, 0 does not hold.**" in page
    assert "| It is so | p. 1 | **holds** | 2 points |  |" in page
    assert "![toy](toy.png)" in page


def test_figures_are_chosen_by_name_or_by_a_part_of_it():
    assert [figure.name for figure in paper.chosen(["slicing-8"])] == ["slicing-8"]
    assert {figure.name for figure in paper.chosen(["mta"])} == {name for name in EXPECTED if name.startswith("mta")}
    with pytest.raises(SystemExit, match=r"^there is no figure fig; there are slicing-8, "):
        paper.chosen(["fig"])


# Data

DEBS_2013 = """\
4,10753295594424116,26485,50934,1011,3000,1,2,3,4,5,6,7
4,10753295594424616,26485,50934,1011,2000,1,2,3,4,5,6,7
"""
DEBS_2012 = (
    "2012-02-22T16:46:28.9670320+00:00\t2556001\t14207\t10000\t8000\t1\t0\t1\n"
    "2012-02-22T16:46:28.9770320+00:00\t2556002\t14208\t10000\t8000\t1\t0\t1\n"
)


@pytest.mark.parametrize(
    ("text", "times", "values"), [(DEBS_2013, [0, 0], [3000, 2000]), (DEBS_2012, [0, 10_000], [14207, 14208])]
)
def test_real_files_are_read_by_their_schema(tmp_path, text, times, values):
    (tmp_path / "data").write_text(text)
    stream = real_rows(tmp_path / "data", 10)
    assert stream.times.tolist() == times
    assert stream.columns["v"].tolist() == values


def test_what_is_no_such_file_is_refused(tmp_path):
    (tmp_path / "data").write_text("a,b,c,d,e,f\n")
    with pytest.raises(SystemExit, match=r"line 1 is not a row of DEBS 2012 or 2013: 'a,b,c,d,e,f\\n'$"):
        real_rows(tmp_path / "data", 10)
    (tmp_path / "data").write_text("nothing\n")
    with pytest.raises(SystemExit, match=r"has no rows of DEBS 2012 \(tabs\) or DEBS 2013 \(commas\)$"):
        real_rows(tmp_path / "data", 10)


def test_made_up_data_has_the_papers_traits():
    machines = machine_rows(20_000)
    assert len(set(machines.columns["v"].tolist())) == 37
    assert round(1e6 / float(sorted(machines.times[1:] - machines.times[:-1])[10_000])) == 100
    sensors = transitions(10_000, 20)
    assert len(sensors) == 20
    assert len(sensors[0]) > 20 * len(sensors[19])
