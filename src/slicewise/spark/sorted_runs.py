"""Sorted runs: rows that come in any order, put in rough order by NumPy, in pieces and in bounded memory.

An external sort. Rows are sorted run by run as they come; a run is kept in memory or, once there are many, in a file.
When all have come, pieces are cut across the runs at numbers that all have in common, and each is sorted by itself. The
JVM would do the same row by row, and takes four times as long.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from slicewise.spark.rough_order import ROUGH, RoughOrder

__all__ = ["SortedRuns"]

#: How many bytes of runs stay in memory; further ones are written to files.
IN_MEMORY = 256 << 20
#: Of so many rows of a run one shows where numbers lie.
SAMPLED = 256


class SortedRuns:
    """The rows of a partition, as runs that are each in rough order.

    A context, at the end of which files are removed. Rows are added first, and then taken away.

    Attributes
    ----------
    rows
        How many there are, without those that were taken.
    """

    def __init__(self, order: RoughOrder) -> None:
        self.rows = 0
        self._order = order
        self._runs: list[pa.Table] = []
        self._numbers: list[np.ndarray] = []
        self._samples: np.ndarray | None = None
        self._taken = np.zeros(0, np.int64)
        self._bytes = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> SortedRuns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs, self._numbers = [], []  # files cannot be removed everywhere while they are mapped
        if self._folder is not None:
            self._folder.cleanup()

    def add(self, table: pa.Table) -> None:
        """Add rows as a run."""
        run = self._kept(_in_order(table, self._order))
        self._runs.append(run)
        self._numbers.append(_numbers(run))
        self.rows += run.num_rows

    def take(self, rows: int) -> tuple[pa.Table, int | None]:
        """About so many of the first rows in rough order, and the number of the next; None if there are no more.

        Rows of one number are never parted.
        """
        if self._samples is None:
            self._samples = np.sort(np.concatenate([numbers[::SAMPLED] for numbers in self._numbers]))
            self._taken = np.zeros(len(self._runs), np.int64)
        ends = self._ends(rows)
        parts = [
            run.slice(at, end - at) for run, at, end in zip(self._runs, self._taken, ends, strict=True) if at < end
        ]
        table = pa.concat_tables(parts).combine_chunks()
        self._taken = ends
        self.rows -= table.num_rows
        left = [int(n[end]) for n, end in zip(self._numbers, ends, strict=True) if end < len(n)]
        return table if len(parts) == 1 else _in_order(table, self._order), min(left, default=None)

    def _ends(self, rows: int) -> np.ndarray:
        """Where in each run a piece ends: at a number that is large enough for so many rows, or at all ends."""
        assert self._samples is not None
        first = min(int(n[at]) for n, at in zip(self._numbers, self._taken, strict=True) if at < len(n))
        at = int(np.searchsorted(self._samples, first, "right")) + max(rows // SAMPLED, 1)
        if at >= len(self._samples):
            return np.array([len(n) for n in self._numbers], np.int64)
        return np.array([np.searchsorted(n, self._samples[at]) for n in self._numbers], np.int64)

    def _kept(self, run: pa.Table) -> pa.Table:
        self._bytes += run.nbytes
        if self._bytes <= IN_MEMORY:
            return run
        if self._folder is None:
            # Where Spark keeps what it shuffles; it removes what a killed worker leaves behind.
            local = [
                folder
                for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",")
                if folder and Path(folder).is_dir()
            ]
            self._folder = tempfile.TemporaryDirectory(
                prefix="slicewise-", dir=local[0] if local else None, ignore_cleanup_errors=True
            )
        path = str(Path(self._folder.name) / f"{len(self._runs)}.arrow")
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, run.schema) as writer:
            writer.write_table(run)
        return pa.ipc.open_file(pa.memory_map(path)).read_all()


def _in_order(table: pa.Table, order: RoughOrder) -> pa.Table:
    """Rows in rough order, in one chunk."""
    table = table.combine_chunks()
    return table.take(pa.array(order.positions(_numbers(table)))).combine_chunks()


def _numbers(table: pa.Table) -> np.ndarray:
    """Those of a table of one chunk, as they lie there."""
    numbers: np.ndarray = table.column(ROUGH).chunk(0).to_numpy()
    return numbers
