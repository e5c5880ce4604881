"""Flink SQL, in an interpreter of its own: its pins do not go with those of others.

``peers.py --flink PYTHON``, or ``SLICEWISE_FLINK``, names an interpreter that has ``apache-flink``; what is run there
is ``flink_worker.py``. Its wheel has no Parquet, so Flink makes the rows itself, by the formula that made those in the
file: it is spared the reading that the others are timed with. Two tasks, objects used again, and a sink that forgets.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rivals.rows import KEYS, NOISE, Attempt, Case, Rows, Windows

#: Modes in which Flink runs the same SQL.
MODES = ("batch", "streaming")
_workers: dict[str, subprocess.Popen[str]] = {}


def interpreter() -> str | None:
    """The interpreter that has Flink, if one was named."""
    return os.environ.get("SLICEWISE_FLINK") or None


def version() -> str:
    """The version of Flink that the interpreter has."""
    code = "import importlib.metadata as m; print(m.version('apache-flink'))"
    try:
        done = subprocess.run([interpreter() or "", "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        raise SystemExit(f"there is no interpreter {interpreter()}, named for Flink") from None
    if done.returncode:
        raise SystemExit(f"{interpreter()} has no apache-flink; install it there, or run `make flink`")
    return done.stdout.strip()


def table_of(n: int) -> str:
    """The rows of the file as a table of Flink's."""
    noise = NOISE.format(id="id")
    return f"""create temporary table rows_{n} (
        id bigint,
        ts as to_timestamp_ltz(id, 3),
        k as (({noise}) / 64) % {KEYS},
        v as (({noise}) / 4096) % 1000,
        watermark for ts as ts
    ) with (
        'connector' = 'datagen', 'rows-per-second' = '1000000000', 'number-of-rows' = '{n}',
        'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '{n - 1}'
    )"""


def query_of(n: int, case: Case) -> str:
    """TUMBLE, HOP, CUMULATE or SESSION."""
    rows, at = f"table rows_{n}", "descriptor(ts)"
    every, length = (f"interval '{seconds}' second({len(str(seconds))})" for seconds in (case.every, case.length))
    if case.gap:
        window = f"session({rows} partition by k, {at}, interval '{case.gap / 1000}' second)"
    elif case.cumulative:
        window = f"cumulate({rows}, {at}, {every}, {length})"
    elif case.every == case.length:
        window = f"tumble({rows}, {at}, {length})"
    else:
        window = f"hop({rows}, {at}, {every}, {length})"
    return f"select window_start, window_end, sum(v) from table({window}) group by k, window_start, window_end"


def sql(mode: str) -> Callable[[Rows, Case], Attempt | None]:
    """Flink in a mode; its JVM is started before it is timed, and stays."""

    def way(rows: Rows, case: Case) -> Attempt | None:
        if case.gap and mode == "batch":
            return None  # "Unaligned windows like session are not supported in batch mode yet."
        if mode not in _workers:
            _start(mode)
        request = {"table": table_of(rows.n), "query": query_of(rows.n, case)}

        def windows() -> Windows:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "windows.npy"
                ask(mode, {**request, "save": str(path)})
                return Windows(*np.load(path))

        return Attempt(lambda: ask(mode, request), windows)

    return way


def scan_seconds(mode: str, n: int, repeat: int) -> list[float]:
    """Seconds in which Flink makes the rows and forgets them: what of its time is no windowing."""
    request = {"table": table_of(n), "query": f"select ts, k, v from rows_{n}"}
    return [ask(mode, request)["seconds"] for _ in range(repeat + 1)][1:]


def ask(mode: str, request: dict[str, str]) -> dict[str, Any]:
    """Send a request to the worker of a mode, and wait for its answer."""
    worker = _workers.get(mode) or _start(mode)
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    for line in worker.stdout:
        if line.startswith('{"seconds"'):
            return dict(json.loads(line))
        if line.startswith('{"error"'):
            raise SystemExit(f"Flink, {mode}: {json.loads(line)['error']}")
    raise SystemExit(f"Flink, {mode}: the worker ended")


def _start(mode: str) -> subprocess.Popen[str]:
    command = [interpreter() or "", str(Path(__file__).with_name("flink_worker.py")), mode]
    worker = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    _workers[mode] = worker
    atexit.register(worker.kill)
    # A few rows start its JVM, as a session of Spark's is started before it is timed.
    ask(mode, {"table": table_of(1000), "query": "select ts, k, v from rows_1000"})
    return worker
