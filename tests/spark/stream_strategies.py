"""Random micro-batches: rows in partitions, out of order across batches, some without an event time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

import slicewise as sw
from tests.slicing.strategies import mixed_workloads, rows, workloads

#: Later than any window that holds a row of a random stream.
FAR = 2000

Batches = list[list[list[dict[str, Any]]]]


def any_workloads() -> st.SearchStrategy[sw.Workload]:
    """Workloads of all kinds of windows, that wait for rows out of order for a while.

    The delay is a plain integer, as times of rows are; a workload of schedules alone does not say what it counts in.
    """
    both = st.one_of(workloads(), mixed_workloads())
    return st.builds(lambda w, wait: replace(w, watermark=wait), both, st.sampled_from([0, 0, 5, 20]))


@st.composite
def micro_batches(draw: st.DrawFn, *, bad: bool = False) -> Batches:
    """Up to five micro-batches, in a stream that moves on by some step, and one far behind them all."""
    step = draw(st.sampled_from([0, 10, 25, 60]))
    partitions = st.lists(st.lists(rows(), max_size=5), min_size=1, max_size=3)
    found = [
        [[_moved(row, number * step) for row in part] for part in batch]
        for number, batch in enumerate(draw(st.lists(partitions, min_size=1, max_size=5)))
    ]
    if bad:
        for batch in found:
            for part in batch:
                for at in draw(st.lists(st.integers(0, len(part)), max_size=1)):
                    part.insert(at, {**draw(rows()), "t": None})
    return [*found, last_batch(found)]


def says_how_long(workload: sw.Workload) -> bool:
    """Whether windows may be reported before they end: a schedule does not say when its last ones will."""
    return all(query.window.reach is not None for query in workload.queries)


def last_batch(batches: Batches) -> list[list[dict[str, Any]]]:
    """A row far in the future, so that all other windows come to their end; for every key, so that none misses it."""
    every = [row for batch in batches for part in batch for row in part if row["t"] is not None]
    places = {(row["k"], row["j"]): row for row in every}.values()
    return [[_moved({**row, "t": 0}, FAR) for row in places]]


def _moved(row: dict[str, Any], by: int) -> dict[str, Any]:
    """The same row later; measures that advance with time advance with it."""
    t = row["t"] + by
    return {
        **row,
        "t": t,
        "u": None if row["u"] is None else 100 + t / 2,
        "z": None if row["z"] is None else t // 3,
    }
