"""The papers' figures: each runs at a tiny scale, its files and picture are complete; counted claims are decided."""

from __future__ import annotations

import csv
import dataclasses
import gc
import sys
from pathlib import Path

import matplotlib
import pytest

import slicewise.aggregates as sw

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))
import paper  # noqa: E402
from papers import FIGURES  # noqa: E402
from papers.calls import calls_of  # noqa: E402
from papers.claims import _decided, write_claims  # noqa: E402
from papers.data import football_rows, machine_rows, real_rows, transitions  # noqa: E402
from papers.drawing import draw  # noqa: E402
from papers.figure import (  # noqa: E402
    DOES_NOT,
    HOLDS,
    IN_PART,
    Claim,
    Figure,
    Point,
    Points,
    Setting,
    Step,
    Verdict,
    timed,
)

TINY = Setting(scale=0.005, repeat=1)
#: The names of all figures; Figure 17 starts sessions of its own, and is tried by `make apart`.
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
    counted = [claim for claim in figure.claims if claim.counted]
    for claim in counted:
        assert claim.verdict(points).word in COUNTED_OTHERWISE.get(claim.text, {HOLDS}), claim.text
    if counted:
        write_claims(tmp_path / "claims.md", {name: points}, tmp_path)
        page = (tmp_path / "claims.md").read_text()
        for claim in counted:
            verdict = claim.verdict(points)
            row = f"| {claim.text} *(counted)* | {claim.place} | **{verdict.word}** | {verdict.measured} |"
            assert row in page


@pytest.mark.spark
@pytest.mark.apart
def test_figure_17_is_complete_on_every_master(tmp_path):
    """It starts a session for each, one of them with executors of its own."""
    points = paper.measure(FIGURES[ON_SPARK], tmp_path, TINY)
    masters = ["local[1]", "local[2]", "local-cluster[2,1,1024]"]
    assert points.names("") == ["slicewise", "Spark's windows"]
    assert [list(points.series(panel, "slicewise")) for panel in points.panels()] == [masters, masters]
    (claim,) = FIGURES[ON_SPARK].claims
    assert claim.verdict(points).word in {HOLDS, IN_PART, DOES_NOT}


def figure_of(run):
    def steps(setting):
        for x in (1, 2):
            yield Step("", x, lambda x=x: run(x))

    judge = lambda points: Verdict(HOLDS, f"{len(points.points)} points")  # noqa: E731
    return Figure(
        "toy", "A Paper", "Figure 1", "a toy", "x", "y", "Straight.", steps, (Claim("p. 1", "It is so", judge),)
    )


@pytest.mark.slow
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


def test_a_claim_has_its_reason_unless_it_holds():
    points = Points([])
    for word, given, why in (
        (HOLDS, "", ""),
        (HOLDS, "beside", "beside"),
        (DOES_NOT, "", "known"),
        (IN_PART, "seen in the points", "seen in the points"),
    ):
        claim = Claim("p. 1", "It is so", lambda _, word=word, given=given: Verdict(word, "1", given), why="known")
        assert claim.verdict(points) == Verdict(word, "1", why)


def test_the_page_gives_a_reason_for_all_that_does_not_hold():
    page = (paper.ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    judged = [line.split(" | ") for line in page.splitlines() if "| **" in line]
    assert len(judged) > 60
    assert [line[0] for line in judged if not line[2].startswith("**holds**") and not line[4].strip(" |")] == []


@pytest.mark.parametrize(("apart", "why"), [(0.2, ""), (0.3, "repetitions are 30% apart: this run decides nothing")])
def test_repetitions_that_are_far_apart_are_a_reason_where_there_is_no_other(apart, why):
    assert _decided(Verdict(DOES_NOT, "1"), apart).why == why
    assert _decided(Verdict(DOES_NOT, "1", "known"), apart).why == "known"
    assert _decided(Verdict(HOLDS, "1"), apart).why == ""


def test_what_reasons_say_of_calls_is_counted():
    """Combines to the digit; calls depend on Python's version, and only their order is claimed."""
    of = {
        name: calls_of(name, sw.sum("v"), 16) for name in ("SlickDeque", "TwoStacks", "DABA", "AMTA", "BInt", "Naive")
    }
    of["RA"] = calls_of("ReactiveAggregator", sw.sum("v"), 16)
    assert {name: calls.combines for name, calls in of.items()} == {
        "SlickDeque": 2.0,
        "TwoStacks": 2.8,
        "DABA": 4.5,
        "AMTA": 3.7,
        "BInt": 5.1,
        "Naive": 15.0,
        "RA": 4.0,
    }
    assert of["AMTA"].python > of["DABA"].python > of["TwoStacks"].python
    assert of["RA"].python > of["BInt"].python


def test_every_claim_on_the_page_that_does_not_hold_says_why():
    page = (BENCHMARKS.parent / "docs" / "claims.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    judged = [row for row in rows if row[2].startswith("**")]
    others = [row for row in judged if not row[2].startswith(f"**{HOLDS}**")]
    assert len(judged) == sum(len(figure.claims) for figure in FIGURES.values())
    assert [row[0] for row in others if not row[4]] == []
    assert f"{len(judged)} claims" in page


def test_pictures_show_every_series_and_what_the_paper_says(tmp_path):
    """As text in a picture of vectors: names of series, of panels, and the paper's words."""
    points = Points([Point.of(panel, name, x, float(x)) for panel in ("a", "b") for name in "pq" for x in (1, 10)])
    figure = dataclasses.replace(figure_of(lambda x: []), shapes={"the shape": lambda x: x})
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        assert draw(figure, points, tmp_path / "toy.svg")
        text = (tmp_path / "toy.svg").read_text()
        assert all(f">{word}</text>" in text for word in ("p", "q", "a", "b", "the shape", "the paper expects"))
        assert ">The paper: Straight.</text>" in text
        named = Points([Point.of("", name, x, 2.0) for name in ("counted", "paper") for x in ("one", "two")])
        assert draw(dataclasses.replace(figure, bars=True, shapes=None), named, tmp_path / "bars.svg")
        text = (tmp_path / "bars.svg").read_text()
        assert all(f">{word}</text>" in text for word in ("one", "two", "counted", "paper"))


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


def test_a_file_takes_the_place_of_what_it_is(tmp_path):
    (tmp_path / "football").write_text(DEBS_2013)
    (tmp_path / "machines").write_text(DEBS_2012 + DEBS_2012.replace("\t0\t", "\t1\t"))
    football, machines = (Setting(0.1, data=tmp_path / name) for name in ("football", "machines"))
    assert football_rows(10, football).columns["v"].tolist() == [3000, 2000]
    assert len(machine_rows(10, football)) == 10
    assert machine_rows(10, machines).columns["v"].tolist() == [14207, 14207, 14208, 14208]
    assert len(football_rows(10, machines)) == 10
    assert [at.tolist() for at in transitions(10, 2, machines)] == [[0, 2, 4]] * 2
    with pytest.raises(SystemExit, match=r"machines has no column of states, 0 and 1, in its first 2 rows$"):
        transitions(2, 2, machines)


@pytest.mark.slow
def test_what_another_file_gave_is_measured_again(tmp_path):
    done = []
    figure = figure_of(lambda x: done.append(x) or [Point.of("", "a", x, 1.0)])
    (tmp_path / "real").write_text(DEBS_2013)
    for data in (None, None, tmp_path / "real", tmp_path / "real"):
        paper.measure(figure, tmp_path, Setting(scale=0.005, data=data))
    assert done == [1, 2, 1, 2]


def test_made_up_data_has_the_papers_traits():
    machines = machine_rows(20_000, TINY)
    assert len(set(machines.columns["v"].tolist())) == 37
    assert round(1e6 / float(sorted(machines.times[1:] - machines.times[:-1])[10_000])) == 100
    sensors = transitions(10_000, 20, TINY)
    assert len(sensors) == 20
    assert len(sensors[0]) > 20 * len(sensors[19])
