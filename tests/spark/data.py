"""Random rows of every type that Spark has, with all that is awkward in them."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

SECOND = 1_000_000
SCHEMA = (
    "ts timestamp, k string, j int, u bigint, i bigint, x double, f float, d decimal(10, 2), s string, "
    "z boolean, y binary, day date, at timestamp, local timestamp_ntz, small smallint, positive double, "
    "huge decimal(38, 2)"
)


def random_rows(n: int, seed: int, *, start: int = -60, seconds: int = 300) -> pa.Table:
    """Rows of four keys; half of the times lie on a grid of a quarter of a second, so that edges and gaps are met."""
    rng = np.random.default_rng(seed)
    grid = rng.integers(start * 4, (start + seconds) * 4, n) * SECOND // 4
    free = rng.integers(start * SECOND, (start + seconds) * SECOND, n)
    times = np.where(rng.random(n) < 0.5, grid, free)
    x = np.round(rng.normal(0, 20, n), 3)
    x[rng.random(n) < 0.02] = np.nan
    x[rng.random(n) < 0.02] = np.inf
    x[rng.random(n) < 0.02] = -np.inf
    x[rng.random(n) < 0.02] = -0.0
    days = rng.integers(-900, 900, n)
    micros = rng.integers(-(10**15), 10**15, n)
    words = np.array(["", "a", "b", "ab", "é", "日本", "Z", "a b"], object)

    def some(values: Iterable[Any], type_: pa.DataType, share: float = 0.15) -> pa.Array:
        return pa.array(list(values), type_, mask=rng.random(n) < share)

    return pa.table(
        {
            "ts": pa.array(times, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "k": some(rng.choice(["a", "b", "c"], n), pa.string()),
            "j": pa.array(rng.integers(0, 2, n), pa.int32()),
            "u": pa.array(rng.permutation(n) - n // 2, pa.int64()),
            "i": some(rng.integers(-50, 50, n).tolist(), pa.int64()),
            "x": some(x.tolist(), pa.float64()),
            "f": some((rng.integers(-99, 99, n) / 8).tolist(), pa.float32()),
            "d": some(
                (decimal.Decimal(int(v)).scaleb(-2) for v in rng.integers(-(10**8), 10**8, n)), pa.decimal128(10, 2)
            ),
            "s": some(rng.choice(words, n), pa.string()),
            "z": some((rng.random(n) < 0.5).tolist(), pa.bool_()),
            "y": some((bytes(v) for v in rng.integers(0, 256, (n, 2), np.uint8)), pa.binary()),
            "day": some((dt.date(1970, 1, 1) + dt.timedelta(int(v)) for v in days), pa.date32()),
            "at": some(micros.tolist(), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "local": some(micros.tolist(), pa.int64()).cast(pa.timestamp("us")),
            "small": some(rng.integers(-300, 300, n).tolist(), pa.int16()),
            "positive": some((rng.integers(1, 40, n) / 16).tolist(), pa.float64()),
            "huge": some(
                (decimal.Decimal(int(v)).scaleb(-2) for v in rng.integers(-(10**18), 10**18, n)), pa.decimal128(38, 2)
            ),
        }
    )


def frame_of(spark: SparkSession, table: pa.Table, *, partitions: int = 3, schema: str = SCHEMA) -> DataFrame:
    """A table as a DataFrame, its rows in no particular order over some partitions."""
    return spark.createDataFrame(table, schema=schema).repartition(partitions)
