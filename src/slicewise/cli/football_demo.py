"""Football demo: the football match of the paper as a Spark stream, with five kinds of windows at once."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from slicewise import aggregates as agg
from slicewise import windows
from slicewise.amounts import rows as rows_of
from slicewise.cli import comparison
from slicewise.cli.job_runner import follow, stopping
from slicewise.cli.status import Progress, Status, count
from slicewise.cli.stderr_filter import filtered
from slicewise.testing import disordered, football
from slicewise.workload import Workload

__all__ = ["dashboard", "run"]

SENSORS = ("ball", "goalkeeper", "striker", "referee")
#: Kick-off, in microseconds since the epoch.
KICK_OFF = 1_718_388_000_000_000
#: Positions per micro-batch.
BATCH = 50_000
_POLL_SECONDS = 0.1

dashboard = (
    Workload(time="ts", keys=["sensor"], watermark="2 seconds", lateness="10 seconds")
    .query("per_second", windows.tumbling("1 second"), speed=agg.avg("speed"), n=agg.count())
    .query("trend", windows.sliding("1 minute", every="10 seconds"), speed=agg.avg("speed"), peak=agg.max("speed"))
    .query("possession", windows.session("1 second"), n=agg.count(), peak=agg.max("speed"))
    .query("every_1000", windows.sliding(rows_of(2000), every=rows_of(1000)), middle=agg.median("speed"))
    .query("last_10", windows.sliding(rows_of(10), every="5 seconds"), speed=agg.avg("speed"))
    .query("chart", windows.tumbling("2 seconds"), line=agg.m4("speed"))
)


class _Paced(Status):
    """A status that records when the first micro-batch was done, and how long the others took."""

    def __init__(self, console: Console) -> None:
        super().__init__(console, timestamps=True)
        self.started = time.perf_counter()
        self.first: float | None = None
        self.rows_after = 0
        self.seconds_after = 0.0

    def micro_batch(self, progress: Progress) -> None:
        super().micro_batch(progress)
        if self.first is None:
            self.first = time.perf_counter() - self.started
        else:
            self.rows_after += progress.rows
            self.seconds_after += progress.seconds or 0.0

    def pace(self) -> str:
        """The time to the first results, which is mostly start-up, and the rate of the micro-batches after it."""
        first = f"first results after {self.first or 0.0:.1f} s"
        if not self.rows_after or not self.seconds_after:
            return first
        rate = count(self.rows_after / self.seconds_after)
        return f"{first}, then {count(self.rows_after)} rows in {self.seconds_after:.1f} s: {rate} rows/s"


def run(console: Console, errors: Console, rows: int, folder: Path, sliding_rows: int) -> None:
    """Run the dashboard over ``rows`` positions as a Spark stream; everything it writes goes to ``folder``.

    Ends with sliding windows over ``sliding_rows`` rows, computed by Spark and by slicewise.
    """
    from slicewise.spark import latest, local_session

    console.print(f"{count(rows)} positions of {len(SENSORS)} sensors, 2000 a second, a fifth of them up to 2 s late\n")
    for part in ("positions", "results", "checkpoint"):
        shutil.rmtree(folder / part, ignore_errors=True)
    with stopping() as stop:
        _write_positions(folder / "positions", rows, stop)
    if stop.is_set():
        raise KeyboardInterrupt
    with _Paced(errors) as status:
        status.doing("starting Spark")
        with filtered(status.line):
            spark = local_session("slicewise demo")
        status.started = time.perf_counter()
        query = _start(spark, folder)
        with stopping() as stop:
            complete = follow(query, status, stop, poll=_POLL_SECONDS)
        if not complete:
            status.quiet()
            console.print("stopped; run it again to start from the beginning")
            return
        status.quiet()
        reported = spark.read.parquet(str(folder / "results"))
        _show(console, latest(reported).toArrow())
        console.print("\nHow it was run\n", style="bold")
        console.print(dashboard.explain(), markup=False, highlight=False)
        missing = _draw(reported.toArrow(), folder / "chart.png")
        console.print(f"\n{count(rows)} rows in {status.batches} micro-batches: {status.pace()}", highlight=False)
        for what, where in (("results (Parquet)", "results"), ("chart", "chart.png"), ("checkpoint", "checkpoint")):
            shown = str(folder / where) if where != "chart.png" or missing is None else missing
            console.print(f"{what:<18} {shown}", highlight=False, markup=False)
        if sliding_rows:
            comparison.run(console, status, spark, sliding_rows)
        spark.stop()


def _write_positions(folder: Path, rows: int, stop: threading.Event) -> None:
    """Write the positions in order of arrival, one file per micro-batch, until ``stop`` is set."""
    # An interrupt raised in the middle of NumPy or Arrow can be swallowed there; between two files it cannot.
    folder.mkdir(parents=True)
    stream = disordered(football(rows, start=KICK_OFF, keys=len(SENSORS), seed=1), seed=2)
    names = np.array(SENSORS, object)
    for number, chunk in enumerate(stream.chunks(BATCH)):
        if stop.is_set():
            return
        assert chunk.keys is not None
        speed = _speed(chunk.times, chunk.keys, chunk.columns["x"])
        columns = {
            "ts": pa.array(chunk.times).cast(pa.timestamp("us", "UTC")),
            "sensor": pa.array(names[chunk.keys]),
            "speed": pa.array(speed),
        }
        pq.write_table(pa.table(columns), folder / f"{number:04}.parquet")


def _speed(times: np.ndarray, sensor: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Metres a second: players run up and down, the ball is faster, and there is a little noise."""
    seconds = (times - KICK_OFF) / 1e6
    swing = np.sin(seconds / (7 + 3 * sensor) + sensor) + 0.5 * np.sin(seconds / 2.3 + 2 * sensor)
    speed: np.ndarray = np.abs(np.array([9.0, 2.0, 5.0, 3.0])[sensor] * (1 + 0.5 * swing) + 0.3 * noise)
    return speed


def _start(spark: Any, folder: Path) -> Any:
    source = spark.readStream.schema("ts TIMESTAMP, sensor STRING, speed DOUBLE").option("maxFilesPerTrigger", 1)
    results = dashboard.run(source.parquet(str(folder / "positions")))
    writer = results.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(availableNow=True).start(str(folder / "results"))


def _show(console: Console, results: pa.Table) -> None:
    """The last results of each query, as a table."""
    frame = results.to_pandas()
    for query in dashboard.queries:
        if query.name == "chart":
            continue
        rows = frame[frame["query"] == query.name]
        shown = Table("sensor", "from", "to", *query.aggregates, box=None, pad_edge=False, header_style="dim")
        ball = rows[rows["sensor"] == SENSORS[0]]
        ball = ball.sort_values("window", key=lambda w: [b["end"] for b in w])
        for _, row in ball.tail(3).iterrows():
            bounds = [f"{row['window'][b]:%H:%M:%S.%f}"[:-5] for b in ("start", "end")]
            shown.add_row(row["sensor"], *bounds, *(_short(row[name]) for name in query.aggregates))
        console.print(f"\n{query.name}", style="bold", end="  ")
        console.print(f"{query.window!r}: {count(len(rows))} windows, the last of the ball:", highlight=False)
        console.print(shown)


def _short(value: float) -> str:
    return f"{value:.2f}" if value != int(value) else count(value)


def _draw(results: pa.Table, path: Path) -> str | None:
    """Draw the ball's speed as a line that keeps every peak (M4), over bands where it was in play.

    Returns the reason if nothing can be drawn.
    """
    path.unlink(missing_ok=True)
    try:
        import matplotlib
    except ModuleNotFoundError:
        return "not drawn: matplotlib is not installed; pip install 'slicewise[plot]'"

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from slicewise import plot

    figure, axes = pyplot.subplots(figsize=(11, 4))
    plot.series(results, "chart", "line", key=SENSORS[0], ax=axes)
    plot.bands(results, "possession", key=SENSORS[0], ax=axes)
    axes.set_title("Speed of the ball, and when it was in play", loc="left", fontsize=11)
    axes.set_title("", loc="right")
    axes.set_ylabel("m/s")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return None
