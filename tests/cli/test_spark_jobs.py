"""Jobs on Spark, from end to end: files in, windows out, as a user runs them."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from slicewise.cli import commands
from slicewise.workload import Workload
from tests.cli.jobfiles import BATCH, STREAM, changed, write
from tests.cli.test_terminal import finish, spawn
from tests.sessions import shared_session

pytestmark = [pytest.mark.spark, pytest.mark.slow]

START = datetime(2024, 6, 1, 12)
STREAM_OF_FILES = changed(changed(STREAM, ", page STRING", ""), 'order = ["page"]\n', "")
RATE = """\
[source]
format = "rate"
stream = true
select = ["timestamp AS ts", "value % 2 AS sensor", "value AS v"]
options = { rowsPerSecond = 20 }
[workload]
time = "ts"
keys = ["sensor"]
[queries.per_second]
window = "tumbling('1 second')"
n = "count()"
[sink]
format = "noop"
checkpoint = "state"
[trigger]
processing_time = "500 ms"
"""
#: The command with a workload that gives its rows back: what is tested is what lies around it.
STAND_IN = """\
from slicewise.workload import Workload
Workload.run = lambda self, df, **_: df
from slicewise.cli.app import main
main()
"""


def command(folder: Path) -> subprocess.CompletedProcess[str]:
    """The job as a user runs it, in a process of its own."""
    line = [sys.executable, "-m", "slicewise", "run", "job.toml", "--master", "local[2]"]
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def spark():
    return shared_session()


@pytest.fixture
def run(spark, tmp_path, monkeypatch):
    """Runs the job of the folder on a session that others use too; the exit code, and what was said."""
    monkeypatch.setattr(commands, "open_session", lambda *_: spark)
    monkeypatch.setattr(type(spark), "stop", lambda _: None)

    def call(*arguments: str) -> tuple[int, str]:
        # Paths are relative to where Spark was started, which is not here.
        text = (tmp_path / "job.toml").read_text()
        for path in ("in", "out", "state"):
            text = text.replace(f'"{path}"', f'"{tmp_path / path}"')
        done = CliRunner().invoke(commands.app, ["run", write(tmp_path, text, "there.toml"), *arguments])
        return done.exit_code, done.stderr

    return call


def rows(seconds: list[float], sensor: str = "a", v: float = 1.0) -> pa.Table:
    times = [START + timedelta(seconds=s) for s in seconds]
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return pa.table({"ts": stamps, "sensor": [sensor] * len(times), "v": [v + i for i in range(len(times))]})


def put(folder: Path, name: str, table: pa.Table) -> None:
    (folder / "in").mkdir(exist_ok=True)
    path = folder / "in" / name
    pc.write_csv(table, path) if name.endswith("csv") else pq.write_table(table, path)


def latest(folder: Path, query: str, column: str) -> dict[tuple[str, float], float]:
    """What is finally true, by key and start of the window in seconds."""
    found: dict[tuple[str, float], tuple[int, float]] = {}
    for row in pq.read_table(folder / "out").to_pylist():
        if row["query"] == query:
            start = (row["window"]["start"].replace(tzinfo=None) - START).total_seconds()
            revision, _ = found.get((row["sensor"], start), (-1, 0.0))
            if row["revision"] > revision:
                found[row["sensor"], start] = (row["revision"], row[column])
    return {window: value for window, (_, value) in found.items()}


def test_a_batch_of_csv_files_becomes_windows_in_parquet(tmp_path):
    write(tmp_path, BATCH)
    put(tmp_path, "a.csv", rows([0, 0.5, 1]))
    put(tmp_path, "b.csv", rows([0.25, 3], "b", 10.0))
    done = command(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "running job: batch of csv (in) to parquet (out)\n" in done.stderr
    assert done.stderr.endswith("done: job wrote parquet (out)\n")
    assert done.stdout == ""
    expected = {("a", 0): 3.0, ("a", 1): 3.0, ("b", 0): 10.0, ("b", 3): 11.0}
    assert latest(tmp_path, "per_second", "total") == expected


def test_a_job_attaches_values_or_gives_wide_rows(tmp_path, run):
    trailing = changed(BATCH, "tumbling('1 second')", "trailing('2 seconds')").replace('"csv"', '"parquet"')
    put(tmp_path, "1.parquet", rows([0, 0.5, 4]))
    write(tmp_path, changed(trailing, 'path = "out"', 'path = "out"\nmode = "overwrite"') + "[attach]\n")
    code, said = run()
    assert code == 0, said
    table = pq.read_table(tmp_path / "out").sort_by("v")
    assert table.select(["sensor", "v", "per_second_total"]).to_pylist() == [
        {"sensor": "a", "v": 1.0, "per_second_total": 1.0},
        {"sensor": "a", "v": 2.0, "per_second_total": 3.0},
        {"sensor": "a", "v": 3.0, "per_second_total": 3.0},
    ]
    shape = '[results]\nshape = "wide"\nemit = "differences"\n'
    write(tmp_path, changed(BATCH.replace('"csv"', '"parquet"'), '"out"', '"out"\nmode = "overwrite"') + shape)
    code, said = run()
    assert code == 0, said
    wide = pq.read_table(tmp_path / "out").sort_by("end")
    assert wide.column_names == ["sensor", "end", "change", "revision", "per_second_total"]
    assert wide["per_second_total"].to_pylist() == [3.0, None, 3.0, None]


def test_a_stream_of_files_becomes_windows_and_resumes_where_it_stopped(tmp_path, run):
    write(tmp_path, STREAM_OF_FILES)
    put(tmp_path, "1.parquet", rows([0, 0.5, 1, 20]))
    code, said = run()
    assert code == 0, said
    assert "batch 0: 4 rows" in said
    first = latest(tmp_path, "per_second", "total")
    assert first["a", 0] == 3.0
    # A late row corrects the first second, and a far one moves the watermark on.
    put(tmp_path, "2.parquet", rows([0.75, 40], v=100.0))
    code, said = run()
    assert code == 0, said
    assert "batch 1: 2 rows" in said
    second = latest(tmp_path, "per_second", "total")
    assert (second["a", 0], second["a", 1], second["a", 20]) == (103.0, 3.0, 4.0)
    assert "update" in pq.read_table(tmp_path / "out").column("change").to_pylist()
    assert "watermark 2024-06-01 12:00:38" in said
    done = CliRunner().invoke(commands.app, ["inspect", str(tmp_path / "state")])
    assert done.exit_code == 0, done.output
    assert "watermark 2024-06-01 12:00:38" in done.stdout
    assert "per_second" in done.stdout


def test_a_stream_with_idle_ends_and_cannot_do_without_it_afterwards(tmp_path, run):
    write(tmp_path, STREAM_OF_FILES)
    put(tmp_path, "1.parquet", rows([0, 0.5, 1, 20]))
    code, said = run("--set", "results.idle=1 hour")
    assert code == 0, said
    assert "; 4 rows in 1 batch\n" in said
    code, said = run()
    assert code == 1
    assert "the checkpoint was written with `idle`, and this run has none; give one, or start" in " ".join(said.split())
    assert "Traceback" not in said
    assert run("--set", "results.idle=2 hours")[0] == 0


# -- what lies around the workload


def test_a_batch_is_flattened_into_csv(tmp_path, run):
    write(tmp_path, BATCH)
    put(tmp_path, "a.csv", rows([0, 0.5]))
    code, said = run("--set", "sink.options={header=true}", "--set", "sink.format=csv", "--set", "sink.flatten=true")
    assert code == 0, said
    (written,) = (tmp_path / "out").glob("*.csv")
    head, line = written.read_text().splitlines()
    assert head == "sensor,query,window_start,window_end,span_start,span_end,change,revision,total"
    assert line.startswith("a,per_second,2024-06-01T")
    assert line.endswith(",,,insert,0,3.0")


def test_a_job_that_fails_says_why_without_a_traceback(tmp_path, run):
    write(tmp_path, BATCH)
    code, said = run()
    assert code == 1
    assert "error: [PATH_NOT_FOUND] Path does not exist" in said
    assert "Traceback" not in said
    put(tmp_path, "a.csv", rows([0]))
    assert run()[0] == 0
    code, said = run()
    assert code == 1
    assert "[PATH_ALREADY_EXISTS]" in said
    assert 'give the job another sink.path, or a sink.mode: "overwrite" or "append"' in said


def test_a_source_is_filtered_and_computed(tmp_path, run, capfd):
    write(tmp_path, BATCH)
    put(tmp_path, "a.csv", rows([0, 0.1, 0.2]))
    select = "source.select=[\"inline(array(named_struct('ts', ts, 'sensor', sensor, 'v', v * 10)))\"]"
    code, said = run("--set", select, "--set", "source.where=v > 1", "--set", 'sink={format="console"}')
    assert code == 0, said


def test_a_stream_that_ends_reads_everything_once(tmp_path, run, monkeypatch):
    monkeypatch.setattr(Workload, "run", lambda self, df: df)
    write(tmp_path, STREAM_OF_FILES)
    put(tmp_path, "1.parquet", rows([0, 1, 2]))
    code, said = run()
    assert code == 0, said
    assert "; 3 rows in 1 batch\n" in said
    put(tmp_path, "2.parquet", rows([5, 6]))
    assert run()[0] == 0
    assert pq.read_table(tmp_path / "out").num_rows == 5


@pytest.mark.streams
def test_ctrl_c_in_a_terminal_stops_a_stream_and_says_how_to_resume(tmp_path):
    write(tmp_path, RATE)
    child = spawn("run", "job.toml", "--master", "local[2]", cwd=tmp_path, program=("-c", STAND_IN), timeout=120)
    child.expect(r"batch \d+: \d+ rows")
    child.sendintr()
    code, said = finish(child)
    assert code == 130, said
    assert "stopped: " in said
    assert "run the same command to resume from the checkpoint state" in " ".join(said.split())
    assert "Traceback" not in said
    assert "java" not in said
    assert (tmp_path / "state" / "commits").is_dir()
