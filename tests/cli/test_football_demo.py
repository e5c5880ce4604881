"""The demo, where it needs no Spark: its pace, a picture that cannot be drawn, answers that differ."""

from __future__ import annotations

import io
import sys

import pyarrow as pa
import pytest
from rich.console import Console

from slicewise.cli import comparison, football_demo
from slicewise.cli.status import Progress
from slicewise.errors import SlicewiseError


def paced(monkeypatch, *batches: Progress) -> str:
    clock = iter([100.0, 107.25])
    monkeypatch.setattr(football_demo.time, "perf_counter", lambda: next(clock))
    status = football_demo._Paced(Console(file=io.StringIO()))
    for progress in batches:
        status.micro_batch(progress)
    return status.pace()


def test_the_time_to_the_first_results_is_apart_from_the_rate_of_the_rest(monkeypatch):
    batches = [Progress(0, 50_000, seconds=6.0), Progress(1, 50_000, seconds=0.5), Progress(2, 10_000, seconds=0.25)]
    assert paced(monkeypatch, *batches) == "first results after 7.2 s, then 60 000 rows in 0.8 s: 80 000 rows/s"


def test_one_micro_batch_has_no_rate(monkeypatch):
    assert paced(monkeypatch, Progress(0, 1000, seconds=6.0)) == "first results after 7.2 s"


def test_without_matplotlib_the_chart_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "chart.png").write_text("of another run")
    said = football_demo._draw(pa.table({}), tmp_path / "chart.png")
    assert said == "not drawn: matplotlib is not installed; pip install 'slicewise[plot]'"
    assert list(tmp_path.iterdir()) == []


def test_answers_are_compared_whatever_their_order():
    one = pa.table({"sensor": ["a", "b"], "n": [1, 2]})
    assert comparison._same({"x": one, "y": one.take([1, 0])}) == 2
    with pytest.raises(SlicewiseError, match=r"^the answers differ: x and z do not have the same windows$"):
        comparison._same({"x": one, "y": one, "z": pa.table({"sensor": ["a", "b"], "n": [1, 3]})})
