"""Rivals in one process, and slicewise there: Polars, DuckDB, pandas, Bytewax."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rivals.on_spark import workload
from rivals.rows import SECOND, Attempt, Case, Rows, Windows


def slicewise(rows: Rows, case: Case) -> Attempt:
    def run() -> Any:
        op = workload(case).operator()
        op.process_batch(pq.read_table(rows.path))
        return op.close()

    def read(results: Any) -> Windows:
        blocks = list(results.blocks)
        columns = ([b.start for b in blocks], [b.end for b in blocks], [b.values[0].values for b in blocks])
        return Windows(*(np.concatenate(column) for column in columns))

    return Attempt(run, lambda: read(run()))


def polars(rows: Rows, case: Case) -> Attempt:
    """group_by_dynamic; with a running sum for cumulative windows, and by the row before for sessions."""
    import polars as pl

    def run() -> Any:
        frame = pl.read_parquet(rows.path).sort("k", "ts")
        total = pl.col("v").sum().alias("total")
        if case.gap:
            begins = (pl.col("ts").diff() > pl.duration(milliseconds=case.gap)).fill_null(False).cum_sum()
            numbered = frame.with_columns(begins.over("k").alias("session"))
            last = pl.col("ts").max().alias("last")
            return numbered.group_by("k", "session").agg(pl.col("ts").min(), last, total)
        length = case.every if case.cumulative else case.length
        grouped = frame.group_by_dynamic("ts", every=f"{case.every}s", period=f"{length}s", group_by="k").agg(total)
        if not case.cumulative:
            return grouped
        outer = pl.col("ts").dt.truncate(f"{case.length}s")
        return grouped.with_columns(outer.alias("start"), pl.col("total").cum_sum().over("k", outer))

    def read(found: Any) -> Windows:
        first, total = found["ts"].dt.epoch("us").to_numpy(), found["total"].to_numpy()
        if case.gap:
            return Windows(first, found["last"].dt.epoch("us").to_numpy() + case.gap * 1000, total)
        if case.cumulative:
            return Windows(found["start"].dt.epoch("us").to_numpy(), first + SECOND, total)
        return Windows(first, first + case.length * SECOND, total)

    return Attempt(run, lambda: read(run()))


def duckdb(rows: Rows, case: Case) -> Attempt:
    """By hand: sums by second and a frame over them; sessions by the row before."""
    import duckdb as db

    slices = f"select k, epoch_us(ts) // {SECOND} as second, sum(v) as part from '{rows.path}' group by all"
    if case.gap:
        before = "lag(t) over (partition by k order by t)"
        text = f"""
            select min(t) as start, max(t) + {case.gap * 1000} as "end", sum(v) as total from (
                select *, sum(begins) over (partition by k order by t rows unbounded preceding) as session from (
                    select k, v, t, coalesce(t - {before} > {case.gap * 1000}, false)::int as begins
                    from (select k, v, epoch_us(ts) as t from '{rows.path}')))
            group by k, session"""
    else:
        first = f"second // {case.length} * {case.length}" if case.cumulative else f"second - {case.length - 1}"
        frame = (
            f"partition by k, {first} order by second rows unbounded preceding"
            if case.cumulative
            else f"partition by k order by second range between {case.length - 1} preceding and current row"
        )
        text = f"""
            select ({first}) * {SECOND} as start, (second + 1) * {SECOND} as "end", sum(part) over ({frame}) as total
            from ({slices})"""

    def run() -> Any:
        return db.sql(text).to_arrow_table()

    def read(found: Any) -> Windows:
        return Windows(*(found[name].cast(pa.int64()).to_numpy() for name in Windows._fields))

    return Attempt(run, lambda: read(run()))


def pandas(rows: Rows, case: Case) -> Attempt:
    """By hand: sums by second, then rolling or a running sum; sessions by the row before."""
    import pandas as pd

    def run() -> Any:
        frame = pd.read_parquet(rows.path)
        if case.gap:
            frame = frame.sort_values(["k", "ts"], kind="stable")
            session = (frame.groupby("k")["ts"].diff() > pd.Timedelta(milliseconds=case.gap)).cumsum()
            return frame.groupby(["k", session]).agg(start=("ts", "min"), last=("ts", "max"), total=("v", "sum"))
        by_second = frame.groupby(["k", frame["ts"].dt.floor("1s")])["v"].sum().unstack("k", fill_value=0)
        whole = by_second.asfreq("1s", fill_value=0)
        if case.cumulative:
            return whole.groupby(whole.index.floor(f"{case.length}s")).cumsum()
        return whole.rolling(case.length).sum().dropna()

    def read(found: Any) -> Windows:
        if case.gap:
            first, last = (found[name].astype("datetime64[us, UTC]").astype("int64") for name in ("start", "last"))
            return Windows(first, last + case.gap * 1000, found["total"])
        ends = found.index.as_unit("us").asi8 + SECOND
        length = case.length * SECOND
        starts = (ends - SECOND) // length * length if case.cumulative else ends - length
        width = found.shape[1]
        totals = np.rint(found.to_numpy()).astype(np.int64).ravel()
        return Windows(np.repeat(starts, width), np.repeat(ends, width), totals)

    return Attempt(run, lambda: read(run()))


def bytewax(rows: Rows, case: Case) -> Attempt | None:
    """fold_window; it has no cumulative windows."""
    import datetime

    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators import windowing as win
    from bytewax.testing import TestingSink, TestingSource, run_main

    if case.cumulative:
        return None
    zero = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    table = pq.read_table(rows.path)
    columns = (table["k"].to_pylist(), table["ts"].cast(pa.int64()).to_pylist(), table["v"].to_pylist())
    items = [(str(k), (zero + datetime.timedelta(microseconds=t), v)) for k, t, v in zip(*columns, strict=True)]
    windower: Any
    if case.gap:
        windower = win.SessionWindower(gap=datetime.timedelta(milliseconds=case.gap))
    else:
        length, every = (datetime.timedelta(seconds=seconds) for seconds in (case.length, case.every))
        windower = win.SlidingWindower(length=length, offset=every, align_to=zero)

    def run() -> Any:
        sums: list[Any] = []
        spans: list[Any] = []
        flow = Dataflow("peers")
        stream = op.input("in", flow, TestingSource(items, batch_size=1000))
        # Its watermark moves on with the system's clock, and rows are late when the machine is busy: that clock stands.
        clock = win.EventClock(lambda item: item[0], datetime.timedelta(0), now_getter=lambda: zero)
        folded = win.fold_window("sum", stream, clock, windower, int, lambda total, item: total + item[1], int.__add__)
        op.output("sums", folded.down, TestingSink(sums))
        op.output("spans", folded.meta, TestingSink(spans))
        run_main(flow)
        return sums, spans

    def read(found: tuple[list[Any], list[Any]]) -> Windows:
        sums, spans = found
        bounds = {(key, window): (span.open_time, span.close_time) for key, (window, span) in spans}
        at = np.array(
            [[round((b - zero).total_seconds() * SECOND) for b in bounds[key, window]] for key, (window, _) in sums]
        )
        # A session's metadata end with its last row.
        return Windows(at[:, 0], at[:, 1] + case.gap * 1000, [total for _, (_, total) in sums])

    return Attempt(run, lambda: read(run()))
