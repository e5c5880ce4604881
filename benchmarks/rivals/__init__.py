"""What people would use instead of slicewise, each with the same rows and windows; see ``benchmarks/peers.py``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

from rivals import flink, in_process, on_spark
from rivals.rows import Attempt, Case, Rows

ON_SPARK, IN_PROCESS = "slicewise on Spark", "slicewise in process"
BY_HAND, OWN = "Spark, frames by hand", "Spark's own windows"


@dataclass(frozen=True)
class Way:
    """A way to answer a case.

    Parameters
    ----------
    what
        What is written, in a few words.
    make
        Gives what to run for rows and a case; None for a case that it does not have.
    package
        What must be installed.
    beside
        The way of slicewise that it is compared with.
    share
        It gets so many times fewer rows.
    """

    what: str
    make: Callable[[Rows, Case], Attempt | None]
    package: str
    beside: str
    share: int = 1

    @property
    def absent(self) -> str:
        """Why it cannot run here; nothing if it can."""
        if self.package == "apache-flink":
            return "" if flink.interpreter() else "no interpreter with apache-flink is named (--flink)"
        return "" if importlib.util.find_spec(self.package) is not None else f"{self.package} is not installed"


WAYS: dict[str, Way] = {
    ON_SPARK: Way("`workload.run(df)`", on_spark.on_spark(on_spark.slicewise), "pyspark", ON_SPARK),
    BY_HAND: Way(
        "`groupBy(second)`, then a RANGE frame over the sums; for sessions `lag`, a running sum and `groupBy`",
        on_spark.on_spark(on_spark.by_hand),
        "pyspark",
        ON_SPARK,
    ),
    OWN: Way("`window`, `session_window`", on_spark.on_spark(on_spark.own_windows), "pyspark", ON_SPARK),
    **{
        f"Flink SQL, {mode}": Way("TUMBLE, HOP, CUMULATE, SESSION", flink.sql(mode), "apache-flink", ON_SPARK)
        for mode in flink.MODES
    },
    IN_PROCESS: Way("`workload.operator()`, one batch", in_process.slicewise, "slicewise", IN_PROCESS),
    "Polars": Way(
        "`group_by_dynamic`; `cum_sum` over it; for sessions `diff`, `cum_sum` and `group_by`",
        in_process.polars,
        "polars",
        IN_PROCESS,
    ),
    "DuckDB, frames by hand": Way(
        "`group by` second, then a RANGE frame; for sessions `lag` and a running sum",
        in_process.duckdb,
        "duckdb",
        IN_PROCESS,
    ),
    "pandas, by hand": Way(
        "`groupby` second, then `rolling` or `cumsum`; for sessions `diff` and `cumsum`",
        in_process.pandas,
        "pandas",
        IN_PROCESS,
    ),
    "Bytewax": Way("`fold_window`, row by row in Python", in_process.bytewax, "bytewax", IN_PROCESS, share=20),
}
