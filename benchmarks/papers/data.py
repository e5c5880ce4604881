"""Data with the papers' characteristics: football-like, machine-like, and the real DEBS files for whoever has them.

* DEBS 2013 (football): ``sid,ts,x,y,z,|v|,...`` with picoseconds; the value is the speed.
* DEBS 2012 (machines): tab-separated, a timestamp, a number, three energy readings, then states; 100 Hz.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from papers.figure import Setting
from slicewise.testing import Stream, football, in_order

SECOND = 1_000_000
#: Real data has no rows further apart than this: gaps in the recording are closed.
LONGEST_GAP = 60 * SECOND


def football_rows(n: int, setting: Setting, seed: int = 1) -> Stream:
    """2000 rows a second, 84 232 distinct values, five gaps a minute."""
    return real_rows(setting.data, n) if setting.data is not None else football(n, seed=seed)


def machine_rows(n: int, seed: int = 2) -> Stream:
    """100 rows a second, 37 distinct values, five gaps a minute."""
    return in_order(n, rate=100, gaps_per_minute=5, distinct=37, seed=seed)


def transitions(n: int, sensors: int, seed: int = 3) -> list[np.ndarray]:
    """The rows at which each of some sensors changes its state: of twenty kinds, from every 50 rows to every 50 000."""
    random = np.random.default_rng(seed)
    every = np.geomspace(50, 50_000, 20)
    out = []
    for sensor in range(sensors):
        lengths = np.maximum(random.geometric(1 / every[sensor % 20], size=max(int(2 * n / every[sensor % 20]), 4)), 1)
        at = np.cumsum(lengths)
        out.append(np.concatenate([[0], at[at < n], [n]]))
    return out


def real_rows(path: Path, n: int) -> Stream:
    """Rows of a DEBS file, in event-time order."""
    rows = list(_parsed(path, n))
    if not rows:
        raise SystemExit(f"{path} has no rows of DEBS 2012 (tabs) or DEBS 2013 (commas)")
    times, values = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    order = np.argsort(times, kind="stable")
    steps = np.minimum(np.diff(times[order], prepend=times[order][0]), LONGEST_GAP)
    return Stream(np.cumsum(steps), {"v": values[order], "x": values[order].astype(float)})


def _parsed(path: Path, n: int) -> Iterator[tuple[int, int]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number >= n:
                return
            fields = line.rstrip("\n").split("\t")
            try:
                if len(fields) > 4:
                    at = datetime.datetime.fromisoformat(_to_micros(fields[0]))
                    yield int(at.timestamp() * SECOND), int(float(fields[2]))
                elif line.count(",") >= 5:
                    cells = line.split(",")
                    yield int(cells[1]) // SECOND, int(float(cells[5]))
            except ValueError:
                raise SystemExit(
                    f"{path}, line {number + 1} is not a row of DEBS 2012 or 2013: {line[:60]!r}"
                ) from None


def _to_micros(text: str) -> str:
    """A timestamp with at most six digits behind the point; files have seven."""
    head, point, tail = text.partition(".")
    digits = "".join(c for c in tail[:7] if c.isdigit())
    return head + point + digits[:6] + tail[len(digits) :]
