"""Run a workload over epochs of rows, through the operator and through the oracle, and compare."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import slicewise as sw
from slicewise.same import is_same
from slicewise.testing import Oracle

TYPES = {"v": pa.int64(), "w": pa.string(), "k": pa.string(), "j": pa.int64(), "o": pa.int64(), "u": pa.float64()}
TYPES["z"] = pa.int64()
FLOATS = {**TYPES, "v": pa.float64()}


Row = dict[str, Any]
#: Chunks of rows, then a watermark; None at the end of the stream.
Epoch = tuple[list[list[Row]], int | None]
#: A row that was too late: its time, its columns, its key.
LateRow = tuple[int, Mapping[str, Any], tuple[Any, ...]]


def key_of(workload: sw.Workload, row: Row) -> tuple[Any, ...]:
    return tuple(row[k] for k in workload.keys)


def columns_of(chunk: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in chunk] for name in ("t", *TYPES)}


def run_operator(
    op: Any,
    epochs: Sequence[Epoch],
    *,
    between: Callable[[Any], Any] = lambda op: op,
    one_by_one: bool = False,
) -> list[list[sw.Result]]:
    """The results of each epoch; ``between`` may replace the operator after every call.

    Results are read at the very end: what was reported must not change with the state that it came from.
    """
    kept = []
    for chunks, mark in epochs:
        results: list[Iterable[sw.Result]] = []
        for chunk in chunks:
            if one_by_one:
                results += [op.process(row["t"], row) for row in chunk]
            else:
                results.append(op.process_batch(columns_of(chunk)))
            op = between(op)
        results.append(op.close() if mark is None else op.advance(mark))
        kept.append(results)
        if mark is not None:
            op = between(op)
    return [[r for block in results for r in block] for results in kept]


def run_oracle(workload: sw.Workload, epochs: Sequence[Epoch]) -> tuple[list[list[sw.Result]], list[LateRow]]:
    oracle = Oracle(workload)
    out: list[list[sw.Result]] = []
    late: list[LateRow] = []
    for chunks, mark in epochs:
        for chunk in chunks:
            for row in chunk:
                oracle.process(row["t"], row, key_of(workload, row))
        out.append(oracle.close() if mark is None else oracle.advance(mark))
        late += oracle.late()
    return out, late


def canonical(results: Iterable[sw.Result]) -> list[sw.Result]:
    def place(r: sw.Result) -> tuple[Any, ...]:
        end = math.inf if r.end is None else r.end
        return r.query, tuple(map(str, r.key)), r.start, end, r.change, r.revision, str(r.values)

    return sorted(results, key=place)


def assert_same(found: list[list[sw.Result]], expected: list[list[sw.Result]], scale: float | None = None) -> None:
    for number, (mine, theirs) in enumerate(zip(found, expected, strict=True)):
        mine, theirs = canonical(mine), canonical(theirs)
        heads = [r[:6] for r in mine], [r[:6] for r in theirs]
        assert heads[0] == heads[1], f"epoch {number}"
        for a, b in zip(mine, theirs, strict=True):
            for name, value in b.values.items():
                assert is_same(a.values[name], value, scale), f"epoch {number}: {name} of {a}, expected {value!r}"


def rechunked(epochs: Sequence[Epoch], data: st.DataObject) -> list[Epoch]:
    """The same rows between the same watermarks, in other chunks."""
    out: list[Epoch] = []
    for chunks, mark in epochs:
        rest = [row for chunk in chunks for row in chunk]
        cut: list[list[Row]] = []
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            cut, rest = [*cut, rest[:size]], rest[size:]
        out.append((cut, mark))
    return out


def assert_same_in_order(workload: sw.Workload, stream: list[Row], data: st.DataObject) -> None:
    """Every row is its own watermark: the oracle advances after each, the operator by itself."""
    stream = sorted(stream, key=lambda row: row["t"])
    epochs: list[Epoch] = [*(([[row]], row["t"]) for row in stream), ([], None)]
    expected = [r for epoch in run_oracle(workload, epochs)[0] for r in epoch]
    op = workload.operator(ordered=True, types=TYPES)
    found: list[sw.Result] = []
    while stream:
        if data.draw(st.booleans()):
            row, *stream = stream
            found += op.process(row["t"], row)
        else:
            size = data.draw(st.integers(1, 5))
            chunk, stream = stream[:size], stream[size:]
            found += op.process_batch(columns_of(chunk))
    assert_same([found + list(op.close())], [expected])
