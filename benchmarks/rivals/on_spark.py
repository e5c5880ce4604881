"""Rivals on Spark, and slicewise there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import slicewise as sw
from rivals.rows import SECOND, Attempt, Case, Rows, Windows


def workload(case: Case) -> sw.Workload:
    """The case in slicewise's words."""
    window: Any
    if case.gap:
        window = sw.session(f"{case.gap} ms")
    elif case.cumulative:
        window = sw.cumulative(f"{case.length} seconds", every=f"{case.every} seconds")
    else:
        window = sw.sliding(f"{case.length} seconds", every=f"{case.every} seconds")
    return sw.Workload("ts", keys=["k"]).query("q", window, total=sw.sum("v"))


def on_spark(make: Callable[[Any, Case], Any]) -> Callable[[Rows, Case], Attempt | None]:
    """A way whose frame has ``start`` and ``end`` in microseconds, or a ``window``, beside ``total``."""

    def way(rows: Rows, case: Case) -> Attempt | None:
        from slicewise.spark import local_session

        conf = {"spark.driver.memory": "6g", "spark.sql.window.segmentTree.enabled": "true"}
        spark = local_session("peers", conf=conf)
        if make(spark.read.parquet(str(rows.path)), case) is None:
            return None

        def made() -> Any:
            return make(spark.read.parquet(str(rows.path)), case)

        def run() -> None:
            made().write.format("noop").mode("overwrite").save()

        return Attempt(run, lambda: windows_of(made()))

    return way


def windows_of(frame: Any) -> Windows:
    """Bounds and sums of a frame, collected."""
    table = bounded(frame).toArrow()
    return Windows(*(table[name].to_numpy() for name in Windows._fields))


def bounded(frame: Any) -> Any:
    """Bounds in microseconds, and sums."""
    from pyspark.sql import functions as F

    if "window" in frame.columns:
        frame = frame.select("window.start", "window.end", "total")
    bounds = [
        F.unix_micros(name) if dict(frame.dtypes)[name] == "timestamp" else F.col(name) for name in ("start", "end")
    ]
    return frame.select(
        *(bound.cast("long").alias(name) for bound, name in zip(bounds, ("start", "end"), strict=True)), "total"
    )


def slicewise(frame: Any, case: Case) -> Any:
    return workload(case).run(frame)


def own_windows(frame: Any, case: Case) -> Any:
    """``window`` and ``session_window``; Spark has no cumulative windows."""
    from pyspark.sql import functions as F

    if case.cumulative:
        return None
    if case.gap:
        window = F.session_window("ts", f"{case.gap} milliseconds").alias("window")
    else:
        window = F.window("ts", f"{case.length} seconds", f"{case.every} seconds")
    return frame.groupBy("k", window).agg(F.sum("v").alias("total"))


def by_hand(frame: Any, case: Case) -> Any:
    """What an expert writes: sums by second and a frame over them; sessions by the row before."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    if case.gap:
        return _sessions_by_hand(frame, case)
    slices = frame.groupBy("k", F.expr("unix_micros(ts) div 1000000").alias("second")).agg(F.sum("v").alias("part"))
    if case.cumulative:
        first = F.expr(f"second div {case.length} * {case.length}")
        over = Window.partitionBy("k", first).orderBy("second").rowsBetween(Window.unboundedPreceding, 0)
    else:
        first = F.col("second") - (case.length - 1)
        over = Window.partitionBy("k").orderBy("second").rangeBetween(-(case.length - 1), 0)
    end = (F.col("second") + 1) * SECOND
    return slices.select((first * SECOND).alias("start"), end.alias("end"), F.sum("part").over(over).alias("total"))


def _sessions_by_hand(frame: Any, case: Case) -> Any:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    gap, micros = case.gap * 1000, F.unix_micros("ts").alias("t")
    in_order = Window.partitionBy("k").orderBy("t")
    begins = (F.col("t") - F.lag("t", 1).over(in_order) > gap).cast("long")
    rows = frame.select("k", "v", micros).withColumn("begins", F.coalesce(begins, F.lit(0)))
    numbered = rows.withColumn("session", F.sum("begins").over(in_order))
    bounds = F.min("t").alias("start"), (F.max("t") + gap).alias("end")
    return numbered.groupBy("k", "session").agg(*bounds, F.sum("v").alias("total"))
