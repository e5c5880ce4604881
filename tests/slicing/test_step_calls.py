"""How much Python a small step takes, counted in calls of Python functions: what time it takes follows from that."""

from __future__ import annotations

import statistics
import sys
from typing import Any

import numpy as np
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


def calls_per_step(
    workload: sw.Workload, warm_up: int = 60, steps: int = 40, rows: int = 2000, *, late: bool = False
) -> list[int]:
    """How many Python functions each step calls, once all are as they will be.

    The rows are in order or, if every fifth is ``late``, it comes up to half a second after its time, and the watermark
    is a second behind.
    """
    op, counts = workload.operator(ordered=not late), []
    stream = football((warm_up + steps) * rows, seed=1)
    arrival = np.arange(len(stream))
    if late:
        delay = np.random.default_rng(1).integers(0, SECOND // 2, len(stream)) * (arrival % 5 == 0)
        arrival = np.argsort(stream.times + delay, kind="stable")
    values, place = stream.columns["v"], np.arange(len(stream))
    # As many windows are due with keys as without, and none ends with a step.
    km = (place + 500) // 100 if workload.keys else place
    every = {"t": stream.times, "v": values, "km": km, "k": values % 100}
    names = ["t", *workload.keys, *workload.inputs]
    for number in range(warm_up + steps):
        chunk = arrival[number * rows : (number + 1) * rows]
        calls = 0

        def count(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls
            calls += event == "call"

        columns = {name: every[name][chunk] for name in names}
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            op.process_batch(columns)
            if late:
                op.advance(int(columns["t"].max()) - SECOND)
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


#: Windows on ordered rows, and how many calls a step takes without keys.
ON_ROWS = {
    "tumbling counts": (sw.tumbling(sw.rows(100)), 280),
    "sliding counts": (sw.sliding(sw.rows(100), every=sw.rows(10)), 300),
    "units": (sw.sliding(sw.units(100, "km"), every=sw.units(10, "km")), 380),
    "punctuated": (sw.punctuated("v > 83000"), 330),
    "frames": (sw.frames("v > 83000"), 300),
}


@pytest.mark.parametrize("kind", ON_ROWS)
@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["one key", "keys"])
def test_step_of_windows_on_rows_calls_few_functions(kind, late, keys):
    window, typical = ON_ROWS[kind]
    workload = sw.Workload("t", keys=keys, unit="microseconds", watermark="1 second").query("q", window, s=sw.sum("v"))
    counts = calls_per_step(workload, warm_up=30, steps=10, late=late)
    assert statistics.median(counts) <= typical + 40 * late + 110 * bool(keys)


def test_step_of_counts_calls_as_few_functions_for_any_number_of_rows():
    workload = sw.Workload("t", unit="microseconds").query("q", ON_ROWS["sliding counts"][0], s=sw.sum("v"))
    few, all_of_them = (calls_per_step(workload, warm_up=30, steps=10, rows=rows) for rows in (500, 5000))
    assert statistics.median(all_of_them) == statistics.median(few)
