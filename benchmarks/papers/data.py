"""Data with the papers' characteristics: football-like, machine-like, and the real DEBS files for whoever has them.

* DEBS 2013 (football): ``sid,ts,x,y,z,|v|,...`` with picoseconds; the value is the speed.
* DEBS 2012 (machines): tab-separated, a timestamp, a number, three energy readings, then states; 100 Hz.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from papers.figure import Setting
from slicewise.testing import Stream, football, in_order

SECOND = 1_000_000
#: Real data has no rows further apart than this: gaps in the recording are closed.
LONGEST_GAP = 60 * SECOND
#: What a file of DEBS 2013, and one of DEBS 2012, takes the place of.
FOOTBALL, MACHINES = "football", "machines"


def football_rows(n: int, setting: Setting, seed: int = 1) -> Stream:
    """2000 rows a second, 84 232 distinct values, five gaps a minute; or those of a file of DEBS 2013."""
    path = _file_of(setting, FOOTBALL)
    return football(n, seed=seed) if path is None else real_rows(path, n)


def machine_rows(n: int, setting: Setting, seed: int = 2) -> Stream:
    """100 rows a second, 37 distinct values, five gaps a minute; or those of a file of DEBS 2012."""
    path = _file_of(setting, MACHINES)
    return in_order(n, rate=100, gaps_per_minute=5, distinct=37, seed=seed) if path is None else real_rows(path, n)


def transitions(n: int, sensors: int, setting: Setting, seed: int = 3) -> list[np.ndarray]:
    """The rows at which each of some sensors changes its state, the first and the last bound included.

    Of twenty kinds, from every 50 rows to every 50 000; or those of a file of DEBS 2012, again from the first sensor
    on where it has fewer.
    """
    path = _file_of(setting, MACHINES)
    if path is not None:
        known = real_transitions(path, n)
        return [known[i % len(known)] for i in range(sensors)]
    random = np.random.default_rng(seed)
    every = np.geomspace(50, 50_000, 20)
    out = []
    for sensor in range(sensors):
        lengths = np.maximum(random.geometric(1 / every[sensor % 20], size=max(int(2 * n / every[sensor % 20]), 4)), 1)
        at = np.cumsum(lengths)
        out.append(np.concatenate([[0], at[at < n], [n]]))
    return out


def _file_of(setting: Setting, kind: str) -> Path | None:
    """The file with real data of a kind, if it was given."""
    if setting.data is None:
        return None
    with setting.data.open(encoding="utf-8") as lines:
        return setting.data if kind == (MACHINES if "\t" in lines.readline() else FOOTBALL) else None


def real_transitions(path: Path, n: int) -> list[np.ndarray]:
    """Where the states of a file of DEBS 2012 change: of each column behind the three readings that holds 0 and 1."""
    with path.open(encoding="utf-8") as lines:
        states = [line.rstrip("\n").split("\t")[5:] for line in itertools.islice(lines, n)]
    columns = [np.array(column) for column in zip(*states, strict=True) if set(column) == {"0", "1"}]
    if not columns:
        raise SystemExit(f"{path} has no column of states, 0 and 1, in its first {n} rows")
    return [np.concatenate([[0], np.flatnonzero(c[1:] != c[:-1]) + 1, [len(states)]]) for c in columns]


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
