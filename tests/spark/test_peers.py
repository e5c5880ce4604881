"""What `make peers` compares slicewise with on Spark gives the same windows; other rivals are in test_benchmarks.py."""

from __future__ import annotations

import sys
from functools import reduce
from pathlib import Path

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
import peers
from rivals import on_spark
from rivals.rows import CASES, Windows, write_rows


def test_frames_by_hand_and_own_windows_are_those_of_slicewise(spark, tmp_path):
    rows = write_rows(tmp_path, 12_000)
    frame = spark.read.parquet(str(rows.path))
    ways = [
        (case, on_spark.bounded(windows))
        for case in CASES.values()
        for make in (on_spark.by_hand, on_spark.own_windows, on_spark.slicewise)
        if (windows := make(frame, case)) is not None
    ]
    assert len(ways) == 14
    numbered = [windows.withColumn("way", F.lit(number)) for number, (_, windows) in enumerate(ways)]
    table = reduce(DataFrame.union, numbered).toArrow()
    for number, (case, _) in enumerate(ways):
        mine = table.filter(pc.equal(table["way"], number))
        windows = Windows(*(mine[name].to_numpy() for name in Windows._fields))
        assert rows.digest(windows, case) == peers._expected(rows, case), (case.name, number)
    assert len(table) > 1000
