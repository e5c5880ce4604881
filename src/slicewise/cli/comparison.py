"""Comparison: sliding windows by Spark's ``window``, by a hand-written query and by slicewise, with equal answers.

Uses objects of Spark and SQL, without importing pyspark.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from slicewise import aggregates as agg
from slicewise import windows
from slicewise.cli.status import Status, count
from slicewise.errors import SlicewiseError
from slicewise.workload import Workload

__all__ = ["run"]

LENGTH = 20
#: Microseconds from one row to the next.
STEP = 500

SLIDING = Workload(time="ts", keys=["sensor"]).query(
    "sliding",
    windows.sliding(f"{LENGTH} seconds", every="1 second"),
    total=agg.sum("speed"),
    n=agg.count(),
    peak=agg.max("speed"),
)

BY_WINDOW = f"""
SELECT sensor, window.start, sum(speed) AS total, count(*) AS n, max(speed) AS peak
FROM {{positions}}
GROUP BY sensor, window(ts, '{LENGTH} seconds', '1 second')
"""

#: A frame gives a result for each row, so windows that end in a second without rows need a row to end at.
BY_HAND = f"""
WITH seconds AS (
  SELECT sensor, unix_micros(ts) DIV 1000000 AS second, sum(speed) AS total, count(*) AS n, max(speed) AS peak
  FROM {{positions}}
  GROUP BY ALL
), ends AS (
  SELECT sensor, explode(sequence(min(second), max(second) + {LENGTH - 1})) AS second FROM seconds GROUP BY sensor
), framed AS (
  SELECT sensor, second, sum(total) OVER w AS total, sum(n) OVER w AS n, max(peak) OVER w AS peak
  FROM ends LEFT JOIN seconds USING (sensor, second)
  WINDOW w AS (PARTITION BY sensor ORDER BY second RANGE BETWEEN {LENGTH - 1} PRECEDING AND CURRENT ROW)
)
SELECT sensor, timestamp_seconds(second - {LENGTH - 1}) AS start, total, n, peak FROM framed WHERE n > 0
"""


def run(console: Console, status: Status, spark: Any, rows: int) -> None:
    """Compute the windows over ``rows`` rows in three ways, show how long each took, and compare the answers."""
    status.doing(f"making {count(rows)} rows")
    positions = _cached_positions(spark, rows)
    ways: dict[str, Callable[[], Any]] = {
        "Spark's window": lambda: spark.sql(BY_WINDOW, positions=positions),
        "groupBy(second), RANGE frame": lambda: spark.sql(BY_HAND, positions=positions),
        "slicewise": lambda: SLIDING.run(positions).select("sensor", "window.start", "total", "n", "peak"),
    }
    shown = Table("", box=None, pad_edge=False, header_style="dim")
    for column in ("seconds", "rows/s"):
        shown.add_column(column, justify="right")
    answers = {}
    for name, way in ways.items():
        status.doing(f"sliding windows by {name}")
        started = time.perf_counter()
        answers[name] = way().toArrow()
        seconds = time.perf_counter() - started
        shown.add_row(name, f"{seconds:.1f}", count(rows / seconds))
    status.quiet()
    positions.unpersist()
    console.print(f"\nSliding windows of {LENGTH} s every second over {count(rows)} rows", style="bold")
    console.print(shown)
    console.print(f"the answers are the same: {count(_same(answers))} windows")


def _cached_positions(spark: Any, rows: int) -> Any:
    """Speeds in memory, in millimetres a second: whole numbers, so that answers can be compared to the last digit."""
    positions = spark.range(rows).selectExpr(
        f"timestamp_micros(1718388000000000 + id * {STEP}) AS ts",
        "element_at(array('ball', 'goalkeeper', 'striker', 'referee'), cast(id % 4 AS int) + 1) AS sensor",
        "abs(hash(id)) % 30000L AS speed",
    )
    positions = positions.cache()
    positions.count()
    return positions


def _same(answers: dict[str, pa.Table]) -> int:
    """The number of windows; raises if one of the ways has other windows or values."""
    rows = {name: sorted(zip(*table.to_pydict().values(), strict=True)) for name, table in answers.items()}
    names = list(rows)
    for name in names[1:]:
        if rows[name] != rows[names[0]]:
            raise SlicewiseError(f"the answers differ: {names[0]} and {name} do not have the same windows")
    return len(rows[names[0]])
