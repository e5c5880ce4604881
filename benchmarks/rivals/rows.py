"""Rows that every rival reads, cases that each answers, and digests by which answers are compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

SECOND = 1_000_000
KEYS = 16
Digest = tuple[int, int, int]
#: Key and value of the row of a number, in SQL: for a rival that cannot read Parquet and makes the rows itself.
NOISE = "((({id} * 1103515245 + 12345) % 2147483648) / 1000) * ((({id} * 1103515245 + 12345) % 2147483648) % 65537)"


@dataclass(frozen=True)
class Case:
    """Windows to be answered: sums by key over sliding (or tumbling) windows, cumulative ones, or sessions.

    Parameters
    ----------
    name
        As it is shown.
    length, every
        In seconds; a tumbling window is as long as its slide. Of a cumulative window, the longest length.
    gap
        Of a session, in milliseconds; other windows have none.
    """

    name: str
    length: int = 0
    every: int = 1
    gap: int = 0
    cumulative: bool = False


CASES = {
    case.name: case
    for case in (
        Case("tumbling 1 s", 1),
        Case("sliding 10 s / 1 s", 10),
        Case("sliding 100 s / 1 s", 100),
        Case("cumulative 60 s / 1 s", 60, cumulative=True),
        Case("session, gap 100 ms", gap=100),
    )
}


class Windows(NamedTuple):
    """What came out: a line per key and window, bounds in microseconds."""

    start: Any
    end: Any
    total: Any


class Attempt(NamedTuple):
    """What is timed, and what is compared; a rival that does not have a case gives None instead.

    Parameters
    ----------
    run
        Computes all windows, and lets them go.
    windows
        Computes all windows and gives them.
    """

    run: Callable[[], Any]
    windows: Callable[[], Windows]


@dataclass(frozen=True)
class Rows:
    """The rows in a file, and the event time of the last one."""

    path: Path
    n: int
    last: int

    def digest(self, windows: Windows, case: Case) -> Digest:
        """How many windows, the sum of their sums, and a sum that depends on which window has which.

        Of windows on a grid only those between the first row and the last one: rivals differ in what they do at the
        ends.
        """
        start, end, total = (np.asarray(column, np.int64) for column in windows)
        if not case.gap:
            whole = (start >= 0) & (end <= self.last // SECOND * SECOND)
            start, end, total = start[whole], end[whole], total[whole]
        mixed = (start // 1000 * 31 + end // 1000) % 97
        return len(start), int(total.sum()), int((total * mixed).sum())


def keys_and_values(n: int) -> tuple[np.ndarray, np.ndarray]:
    """What ``NOISE`` gives: keys of geometric gaps, values below a thousand."""
    noise = (np.arange(n) * 1103515245 + 12345) % 2147483648
    noise = noise // 1000 * (noise % 65537)
    return noise // 64 % KEYS, noise // 4096 % 1000


def write_rows(folder: Path, n: int) -> Rows:
    """A row every millisecond, in a Parquet file."""
    times = np.arange(n) * 1000
    keys, values = keys_and_values(n)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "k": keys, "v": values})
    path = folder / f"rows-{n}.parquet"
    pq.write_table(table, path, row_group_size=max(n // 4, 1))
    return Rows(path, n, int(times[-1]))
