"""How much Python a small step takes, counted in calls of Python functions: what time it takes follows from that."""

from __future__ import annotations

import statistics
import sys
from typing import Any

import pytest

import slicewise as sw
from slicewise.testing import football

SECOND = 1_000_000


def workload_of(queries: int) -> sw.Workload:
    """Tumbling windows of 1 to 20 whole seconds, one sum each."""
    workload = sw.Workload("t", unit="microseconds")
    for i in range(queries):
        workload = workload.query(f"q{i}", sw.tumbling(f"{1 + i % 20} seconds"), total=sw.sum("v"))
    return workload


def calls_per_step(workload: sw.Workload, warm_up: int = 60, steps: int = 40, rows: int = 2000) -> list[int]:
    """How many Python functions each step calls, once all are as they will be."""
    op, counts = workload.operator(ordered=True), []
    for number, chunk in enumerate(football((warm_up + steps) * rows, seed=1).chunks(rows)):
        calls = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        columns = {"t": chunk.times, "v": chunk.columns["v"]}
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            op.process_batch(columns)
        finally:
            sys.setprofile(before)
        if number >= warm_up:
            counts.append(calls)
    return counts


@pytest.mark.parametrize(
    ("queries", "typical", "most"), [(1, 120, 160), pytest.param(1000, 200, 240, marks=pytest.mark.slow)]
)
def test_step_of_2000_rows_calls_few_functions(queries, typical, most):
    counts = calls_per_step(workload_of(queries))
    assert statistics.median(counts) <= typical
    assert max(counts) <= most


def test_step_in_which_nothing_is_due_calls_fewer():
    idle = calls_per_step(sw.Workload("t", unit="microseconds").query("q", sw.tumbling("1 hour"), s=sw.sum("v")))
    busy = calls_per_step(workload_of(1))
    assert statistics.median(idle) < 0.75 * statistics.median(busy)
