"""On a cluster: the ways of docs/cluster.md, each with workers of their own and a Python that lacks slicewise.

``make test`` takes the first of them, ``make cluster`` all.
"""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slicewise as sw
from slicewise.archive import write_archive
from tests.spark.cluster import make_python
from tests.spark.cluster_jobs import machines
from tests.spark.running import compare

JOBS = Path(__file__).parent / "cluster_jobs"


@pytest.fixture
def folder(tmp_path):
    """A folder with rows of two micro-batches, and slicewise as a zip."""
    (tmp_path / "in").mkdir()
    for part in range(2):
        path = tmp_path / "in" / f"{part}.json"
        path.write_text("\n".join(map(json.dumps, machines.rows(part))))
        os.utime(path, (1_000_000_000 + part, 1_000_000_000 + part))
    write_archive(tmp_path / "slicewise.zip")
    return tmp_path


def expected() -> tuple[pa.Table, pa.Table, pa.Table]:
    """The results of the batch and of the streams, in process."""
    types = {"machine": "string", "v": "bigint"}
    batch = machines.workload().operator(types=types)
    streams = [workload.operator(types=types) for workload in (machines.workload(), machines.on_the_clock())]
    reported: list[list[pa.Table]] = [[], []]
    for part in range(2):
        table = pa.Table.from_pylist(machines.rows(part))
        batch.process_batch(table)
        latest = max(row["minute"] for row in machines.rows(part))
        for stream, tables in zip(streams, reported, strict=True):
            stream.process_batch(table)
            tables.append(stream.advance(latest - 5).to_arrow())
    return batch.close().to_arrow(), *map(pa.concat_tables, reported)


def check(done, folder):
    """The job went well, and its results are right."""
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
    batch, stream, idle = expected()
    assert stream.num_rows > 50
    assert idle.num_rows > 5
    compare(pq.read_table(folder / "batch.parquet"), batch, ["machine"])
    compare(pq.read_table(folder / "stream.parquet"), stream, ["machine"])
    compare(pq.read_table(folder / "idle.parquet"), idle, ["machine"])


def by_py_files(cluster, folder):
    py_files = [folder / "slicewise.zip", JOBS / "machines.py"]
    return cluster.submit(JOBS / "job.py", folder, py_files=py_files)


def by_add_py_file(cluster, folder):
    driver = with_slicewise(folder / "driver")
    return cluster.submit(
        JOBS / "job.py", folder, folder / "slicewise.zip", JOBS / "machines.py", PYSPARK_DRIVER_PYTHON=driver
    )


def by_installation(cluster, folder):
    python = with_slicewise(folder / "installed")
    return cluster.submit(JOBS / "job.py", folder, py_files=[JOBS / "machines.py"], PYSPARK_PYTHON=python)


def by_archive(cluster, folder):
    with_slicewise(folder / "environment")
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        archive.add(folder / "environment", ".")
    return cluster.submit(
        JOBS / "job.py",
        folder,
        py_files=[JOBS / "machines.py"],
        options=["--archives", "environment.tar.gz#environment"],
        cwd=folder,
        PYSPARK_PYTHON="./environment/bin/python",
    )


def by_ship(cluster, folder):
    driver = with_slicewise(folder / "driver")
    return cluster.submit(JOBS / "job.py", folder, "ship", JOBS / "machines.py", PYSPARK_DRIVER_PYTHON=driver)


def with_slicewise(folder):
    """A Python in which slicewise is installed."""
    shutil.copytree(Path(sw.__file__).parent, make_python(folder) / "slicewise")
    return str(folder / "bin" / "python")


WAYS = [by_py_files, by_ship, by_add_py_file, by_installation, by_archive]


@pytest.mark.parametrize("way", WAYS if os.environ.get("SLICEWISE_CLUSTER") == "all" else WAYS[:2])
def test_a_way_to_the_cluster(cluster, folder, way):
    check(way(cluster, folder), folder)
