"""Status: how a running job is doing. Live on a terminal, one plain line per event in a pipe; on the error output."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.status import Status as Spinner

from slicewise.amounts import format_instant

__all__ = ["BatchWatch", "Progress", "Status", "count", "size"]

_POLL_SECONDS = 0.3
#: The one source whose rows nobody asked for, by its offsets. Said here again, because this module needs no Spark.
_HEARTBEAT = "slicewise_heartbeat"


@dataclass(frozen=True)
class Progress:
    """The progress that Spark reports for one micro-batch."""

    batch: int
    rows: int
    rows_per_second: float | None = None
    watermark: int | str | None = None
    late: int = 0
    keys: int | None = None
    slices: int | None = None
    state_bytes: int | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Progress:
        """From the JSON of a ``StreamingQueryProgress``, whose observed metrics hold the counts of slicewise."""
        state = report.get("stateOperators") or []
        rate = report.get("processedRowsPerSecond")
        duration = (report.get("durationMs") or {}).get("triggerExecution")
        observed = _observed(report)
        rows = int(report.get("numInputRows") or 0) - _beats(report)
        return cls(
            batch=int(report["batchId"]),
            rows=rows,
            rows_per_second=rate if rows and isinstance(rate, (int, float)) and math.isfinite(rate) else None,
            watermark=observed.get("watermark"),
            late=int(observed.get("late") or 0),
            keys=observed.get("keys"),
            slices=observed.get("slices"),
            state_bytes=sum(int(s.get("memoryUsedBytes") or 0) for s in state) if state else None,
            seconds=duration / 1000 if isinstance(duration, (int, float)) else None,
        )

    def __str__(self) -> str:
        return self.shown()

    def shown(self, *, timestamps: bool = True) -> str:
        """As text; ``timestamps`` shows the watermark as a time, otherwise it is an integer of the time column."""
        parts = [f"{count(self.rows)} rows"]
        if self.rows_per_second:
            parts.append(f"{count(self.rows_per_second)} rows/s")
        if self.late:
            parts.append(f"{count(self.late)} late")
        if self.watermark is not None:
            time = timestamps and isinstance(self.watermark, int)
            parts.append(f"watermark {format_instant(int(self.watermark)) if time else self.watermark}")
        kept = [f"{count(n)} {what}" for n, what in ((self.keys, "keys"), (self.slices, "slices")) if n is not None]
        kept += [size(self.state_bytes)] if self.state_bytes else []
        return ", ".join([*parts, *([f"state {' '.join(kept)}"] if kept else [])])


def _beats(progress: Mapping[str, Any]) -> int:
    """How many of the rows are not the user's: those of the heartbeat that a stream with ``idle`` has."""
    sources = [source for source in progress.get("sources") or [] if _HEARTBEAT in str(source.get("endOffset"))]
    return sum(int(source.get("numInputRows") or 0) for source in sources)


def _observed(progress: Mapping[str, Any]) -> Mapping[str, Any]:
    for name, observed in (progress.get("observedMetrics") or {}).items():
        if name.startswith("slicewise") and isinstance(observed, Mapping):
            return observed
    return {}


class Status:
    """Shows how a job is doing; a context manager that ends the live display."""

    def __init__(self, console: Console, *, timestamps: bool = True) -> None:
        self.console = console
        self.timestamps = timestamps
        self.live = console.is_terminal
        self.rows = self.late = self.batches = 0
        self._spinner: Spinner | None = None
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.quiet()

    def quiet(self) -> None:
        """End the live display, so that others can write."""
        for shown in (self._spinner, self._bar):
            if shown is not None:
                shown.stop()
        self._spinner = self._bar = None

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self.console.print(escape(text), highlight=False, soft_wrap=True)

    def doing(self, text: str) -> None:
        """Show what is happening now."""
        if not self.live:
            self.line(text)
        elif self._spinner is None:
            self._spinner = self.console.status(escape(text))
            self._spinner.start()
        else:
            self._spinner.update(escape(text))

    def micro_batch(self, progress: Progress) -> None:
        """Show a finished micro-batch of a stream."""
        self.rows += progress.rows
        self.batches += 1
        self.late += progress.late
        summary = f"batch {progress.batch}: {progress.shown(timestamps=self.timestamps)}"
        if self.live:
            self.doing(f"{summary}; {count(self.rows)} rows so far")
        else:
            self.line(summary)

    def tasks(self, done: int, of: int) -> None:
        """Show how many tasks of a batch are done; only on a terminal."""
        if not self.live:
            return
        if self._bar is None:
            self.quiet()
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Bar(*columns, console=self.console, transient=True)
            self._bar.add_task("tasks")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], description=f"{done} of {of} tasks", completed=done, total=of)


class BatchWatch:
    """While a batch runs in this thread, another thread asks Spark how many tasks are done."""

    def __init__(self, spark: Any, status: Status) -> None:
        self._spark, self._status = spark, status
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> BatchWatch:
        self.started = time.perf_counter()
        if self._status.live:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)
        self._status.quiet()

    def _watch(self) -> None:
        # Spark Connect has no context to ask, and a session may end at any time; nothing is shown then.
        with contextlib.suppress(Exception):
            tracker = self._spark.sparkContext.statusTracker()
            seen: dict[int, tuple[int, int]] = {}
            while not self._over.wait(_POLL_SECONDS):
                for stage in tracker.getActiveStageIds():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        seen[stage] = (info.numCompletedTasks, info.numTasks)
                if seen and not self._over.is_set():
                    done, of = (sum(column) for column in zip(*seen.values(), strict=True))
                    self._status.tasks(done, of)


def count(n: float) -> str:
    """A number as people read it.

    >>> count(1234567), count(0.25)
    ('1 234 567', '0.2')
    """
    return f"{n:.1f}" if 0 < n < 10 and n != int(n) else f"{round(n):,}".replace(",", " ")


def size(n: float) -> str:
    """Bytes as people read them.

    >>> size(1536), size(3 * 2**30)
    ('1.5 KiB', '3.0 GiB')
    """
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.1f} GiB"
