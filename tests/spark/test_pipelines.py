"""Spark Declarative Pipelines: the example, run by ``spark-pipelines`` as a user runs it, and again with more rows."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset as ds
import pytest

import slicewise as sw
from tests.sessions import PATIENT

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline"
#: As in the example, whose module cannot be imported outside of a pipeline.
WORKLOAD = (
    sw.Workload(time="ts", keys=["user"], watermark="10 seconds", lateness="5 minutes")
    .query("minutes", sw.tumbling("1 minute"), clicks=sw.count(), spent=sw.sum("price"))
    .query("visits", sw.session("2 minutes"), clicks=sw.count(), dearest=sw.max("price"))
)

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.apart, pytest.mark.matrix]


def run_pipeline(folder: Path) -> None:
    import pyspark

    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines"), "run"]
    for name, value in (PATIENT | {"spark.sql.catalogImplementation": "hive"}).items():
        command += ["--conf", f"{name}={value}"]
    variables = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    variables["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    done = subprocess.run(
        command, cwd=folder, env=os.environ | variables, capture_output=True, text=True, timeout=540, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]


def clicks_of(file: Path) -> dict[str, list]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    times = [datetime.datetime.fromisoformat(row["ts"]) for row in rows]
    return {"ts": times, "user": [row["user"] for row in rows], "price": [row["price"] for row in rows]}


def stored(folder: Path, name: str) -> list[tuple]:
    files = [str(path) for path in (folder / "spark-warehouse" / name).rglob("*.parquet")]
    return shown(ds.dataset(files).to_table().to_pylist())


def shown(rows: list[dict]) -> list[tuple]:
    names = ("user", "query", "change", "revision", "clicks", "spent", "dearest")
    bounds = [(row["window"]["start"].timestamp(), row["window"]["end"].timestamp()) for row in rows]
    return sorted(((*at, *(row[name] for name in names)) for at, row in zip(bounds, rows, strict=True)), key=str)


def second_file(folder: Path) -> Path:
    """More rows: some a little late, which correct what was reported; others after them, which end what was open."""
    last = max(clicks_of(folder / "clicks" / "first.json")["ts"])
    times = [last - datetime.timedelta(seconds=100), last + datetime.timedelta(minutes=20)]
    rows = [{"ts": t.strftime("%Y-%m-%dT%H:%M:%SZ"), "user": u, "price": 1.5} for t in times for u in ("ann", "bob")]
    file = folder / "clicks" / "second.json"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return file


def test_example_pipeline_gives_what_the_operator_gives_and_again_with_more_rows(tmp_path):
    folder = tmp_path / "pipeline"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("spark-warehouse", "metastore_db", "__pycache__"))
    spec = folder / "spark-pipeline.yml"
    spec.write_text(spec.read_text().replace("file:///tmp/slicewise-pipeline", (tmp_path / "storage").as_uri()))
    stream, changes, rows = WORKLOAD.operator(), [], {"ts": [], "user": [], "price": []}
    for file in (folder / "clicks" / "first.json", None):
        clicks = clicks_of(file or second_file(folder))
        run_pipeline(folder)
        stream.process_batch(clicks)
        changes += stream.advance(max(clicks["ts"]) - datetime.timedelta(seconds=10)).to_arrow().to_pylist()
        assert stored(folder, "windows_as_they_end") == shown(changes)
        # The view reads a table of the pipeline, and has the rows that came to it in the same run.
        rows = {name: rows[name] + clicks[name] for name in rows}
        batch = WORKLOAD.operator()
        batch.process_batch(rows)
        assert stored(folder, "windows") == shown(batch.close().to_arrow().to_pylist())
    assert {"insert", "update"} <= {row["change"] for row in changes}
