"""Commands in a real terminal, as people call them."""

from __future__ import annotations

import re
import sys

import pyarrow.parquet as pq
import pytest
from matplotlib import image
from matplotlib.colors import to_rgb

from slicewise.cli.football_demo import dashboard
from tests.cli.jobfiles import STREAM, changed, write

pexpect = pytest.importorskip("pexpect")
pytestmark = pytest.mark.slow


def spawn(*arguments: str, cwd, program=("-m", "slicewise"), timeout: float = 30):
    return pexpect.spawn(
        sys.executable, [*program, *arguments], cwd=str(cwd), encoding="utf-8", timeout=timeout, dimensions=(40, 100)
    )


def _plain(said: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said)


def finish(child) -> tuple[int, str]:
    said = child.read()
    child.close()
    return child.exitstatus, said.replace("\r\n", "\n")


def test_mistakes_stand_out(tmp_path):
    write(tmp_path, changed(STREAM, "avg(v)", "agv(v)"))
    code, said = finish(spawn("check", "job.toml", cwd=tmp_path))
    assert code == 2
    assert "\x1b[1mjob.toml:21:9: `queries.trend.mean`: unknown aggregate 'agv'; did you mean 'avg'?\x1b[0m" in said
    assert '\n    mean = "agv(v)"\n            ^\n' in said


@pytest.mark.spark
@pytest.mark.apart
def test_demo_streams_and_shows_what_came_out(tmp_path):
    code, said = finish(spawn("demo", "--rows", "60000", "--sliding-rows", "50000", cwd=tmp_path, timeout=300))
    assert code == 0, said
    for query in dashboard.queries[:-1]:
        assert f"{query.name}  {query.window!r}: " in _plain(said)
    assert "watermark 2024-06-14" in said
    assert "60 000 rows in" in said
    in_words = " ".join(_plain(said).split())
    assert re.search(r"60 000 rows in 2 micro-batches: first results after \d+\.\d s, then 10 000 rows in ", in_words)
    rivals = r"Spark's window [\d. ]+ groupBy\(second\), RANGE frame [\d. ]+ slicewise [\d. ]+ "
    compared = f"Sliding windows of 20 s every second over 50 000 rows seconds rows/s {rivals}"
    assert re.search(f"{compared}the answers are the same: 176 windows", in_words)
    found = pq.read_table(tmp_path / "slicewise-demo" / "results").to_pylist()
    assert {row["query"] for row in found} == {query.name for query in dashboard.queries}
    # Rows of the last two seconds wait for the watermark; the windows before hold every row once.
    counted = {(r["sensor"], r["window"]["start"]): r["n"] for r in found if r["query"] == "per_second"}
    assert 50_000 < sum(counted.values()) < 60_000
    picture = image.imread(tmp_path / "slicewise-demo" / "chart.png")
    line = (abs(picture[..., :3] - to_rgb("#0072B2")) < 0.02).all(axis=2)
    assert line.any(axis=0).mean() > 0.5  # a line over most of the width
    assert line.any(axis=1).mean() > 0.3  # that goes up and down


def test_doctor_marks_with_colours(tmp_path):
    code, said = finish(spawn("doctor", cwd=tmp_path))
    assert code in (0, 1)
    assert "\x1b[32mok" in said


@pytest.mark.spark
def test_ctrl_c_ends_a_demo_without_a_traceback(tmp_path):
    child = spawn("demo", "--rows", "10000000", cwd=tmp_path, timeout=120)
    child.expect("positions of 4 sensors")
    child.sendintr()
    code, said = finish(child)
    assert code == 130
    assert "Traceback" not in said
