"""A stream that stops under one version of Spark and goes on under the next.

``make matrix`` gives the Python of an earlier version (SLICEWISE_EARLIER_PYTHON). Elsewhere it is this one, and what is
tested is a restart in another process.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.spark.stream_running import Folder, plain
from tests.spark.test_stream_kill import add_rows, shown, undisturbed

ROOT = Path(__file__).parents[2]
EARLIER = os.environ.get("SLICEWISE_EARLIER_PYTHON", sys.executable)


def go_on(python: str, folder: Path) -> str:
    """Run the stream over what is new; what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_", "PYTEST_"))}
    if python != sys.executable:
        kept.pop("PYTHONPATH", None)
    done = subprocess.run(
        [python, "-m", "tests.spark.stream_upgrade", str(folder)],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.spark
@pytest.mark.apart
@pytest.mark.matrix
def test_a_stream_goes_on_under_the_next_version_of_spark(tmp_path):
    source, rng = Folder(tmp_path), random.Random(5)
    for number in range(3):
        add_rows(source, rng, number)
    assert "on 4." in go_on(EARLIER, tmp_path)
    for number in range(3, 6):
        add_rows(source, rng, number)
    assert "on 4." in go_on(sys.executable, tmp_path)
    expected = undisturbed([[path] for path in sorted(source.path.glob("*.parquet"))])
    assert {row["change"] for row in expected} == {"insert", "update", "retract"}
    paths = sorted((tmp_path / "results").rglob("*.parquet"))
    # Spark writes instants in an old form, which Arrow would read as nanoseconds.
    written = [pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read() for path in paths]
    reported = [row for table in written for row in plain(table)]
    assert Counter(map(shown, reported)) == Counter(map(shown, expected))
