"""Workloads of general stream slicing's section 6, run by the engine and by baselines alike; answers as digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import slicewise as sw
from slicewise.baselines import BASELINES
from slicewise.testing import Stream

SECOND = 1_000_000
#: The engine, which folds arrays, by the store it uses.
ENGINE = {"slicewise, lazy (arrays)": "lazy", "slicewise, eager (arrays)": "eager"}
Digest = tuple[Any, tuple[float, ...]]


def lengths(windows: int, unit: str = "seconds") -> list[int]:
    """Window lengths spread evenly over 1..20 seconds, in whole seconds or in distinct milliseconds."""
    if unit == "seconds":
        return [(1 + i % 20) * SECOND for i in range(windows)]
    return [SECOND + round(19_000 * i / max(1, windows - 1)) * 1000 for i in range(windows)]


def tumbling(windows: int, aggregate: Any = None, *, session: bool = False, unit: str = "seconds") -> sw.Workload:
    """Concurrent tumbling windows, and a session of one second."""
    aggregate = sw.sum("v") if aggregate is None else aggregate
    workload = sw.Workload("t", unit="microseconds")
    for i, length in enumerate(lengths(windows, unit)):
        workload = workload.query(f"w{i}", sw.tumbling(f"{length} us"), x=aggregate)
    return workload.query("session", sw.session("1 second"), x=aggregate) if session else workload


def chunks_of(stream: Stream, size: int = 2000) -> list[dict[str, np.ndarray]]:
    return [{"t": c.times, "v": c.columns["v"]} for c in stream.chunks(size)]


def made(name: str, workload: sw.Workload, *, ordered: bool, **options: Any) -> Any:
    """The operator of a name: the engine with a store, or a baseline."""
    if name in ENGINE:
        return workload.operator(ordered=ordered, store=ENGINE[name])
    return BASELINES[name](workload, ordered=ordered, **options)


def runner(
    name: str, workload: sw.Workload, chunks: list[dict[str, np.ndarray]], *, ordered: bool, wait: int = 2 * SECOND
) -> Callable[[], Digest]:
    """Run all chunks, a watermark behind each; the digest of what came out."""

    def run() -> Digest:
        op = made(name, workload, ordered=ordered)
        results, latest = [], -(2**62)
        for chunk in chunks:
            results.append(op.process_batch(chunk))
            if not ordered:
                latest = max(latest, int(chunk["t"].max()))
                results.append(op.advance(latest - wait))
        results.append(op.close())
        return len(chunks), digest(results)

    return run


def row_by_row(name: str, workload: sw.Workload, stream: Stream, *, ordered: bool) -> Callable[[], Digest]:
    """The same with one row at a time."""
    rows = [(t, {"v": v}) for t, v in zip(stream.times.tolist(), stream.columns["v"].tolist(), strict=True)]

    def run() -> Digest:
        op = made(name, workload, ordered=ordered)
        results: list[Any] = []
        latest = due = rows[0][0]
        for time, row in rows:
            results += op.process(time, row)
            latest = max(latest, time)
            if not ordered and latest >= due + SECOND:
                results += op.advance(latest - 2 * SECOND)
                due = latest
        results += op.close()
        return ("rows", len(rows)), digest([results])

    return run


def digest(results: Iterable[Any]) -> tuple[float, float, float]:
    """How many results, their sum, and a sum that depends on which window has which value."""
    count, total, mixed = 0, 0.0, 0.0
    for some in results:
        blocks = list(some.blocks) if hasattr(some, "blocks") else None
        if blocks is not None and all(_plain(block) for block in blocks):
            for block in blocks:
                values = block.values[0].values.astype(np.float64)
                count, total = count + len(values), total + float(values.sum())
                mixed += float((values * (block.start % 97)).sum())
            continue
        for result in some:
            (value,) = result.values.values()
            value = float(len(value)) if isinstance(value, (str, list, dict)) else float(value or 0)
            count, total, mixed = count + 1, total + value, mixed + value * (result.start % 97)
    return count, total, mixed


def _plain(block: Any) -> bool:
    column = block.values[0] if block.values else None
    return column is not None and block.repeats is None and column.valid is None and column.values.dtype.kind in "if"


def expected_sums(workload: sw.Workload, stream: Stream) -> tuple[float, float, float]:
    """The digest of all sums by plain NumPy."""
    order = np.argsort(stream.times, kind="stable")
    times, values = stream.times[order], stream.columns["v"][order]
    running = np.concatenate([[0], np.cumsum(values)])
    count, total, mixed = 0, 0.0, 0.0
    for query in workload.queries:
        window = query.window
        if window.session_gap is not None:
            first = np.concatenate([[0], np.flatnonzero(np.diff(times) > window.session_gap) + 1])
            start, sums = times[first], np.add.reduceat(values, first)
        else:
            length, every = int(window.length.size), int(window.every.size)
            start = np.arange((times[0] - length) // every + 1, times[-1] // every + 1) * every
            low, high = np.searchsorted(times, start), np.searchsorted(times, start + length)
            start, sums = start[low < high], (running[high] - running[low])[low < high]
        count, total = count + len(start), total + float(sums.sum())
        mixed += float((sums.astype(np.float64) * (start % 97)).sum())
    return count, total, mixed


def check_sums(workload: sw.Workload, stream: Stream, answer: Digest) -> None:
    """Stop if an answer is not that of plain NumPy."""
    expected = expected_sums(workload, stream)
    if not np.allclose(answer[1], expected, rtol=1e-9):
        raise SystemExit(f"slicewise says {answer[1]}, the definition {expected}")
