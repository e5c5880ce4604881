"""All baselines against the definition: one suite, random workloads and streams, whatever each of them takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.baselines import BASELINES, Baseline
from slicewise.errors import QueryError
from tests.profiles import fewer
from tests.slicing.families import tables
from tests.slicing.running import assert_same, columns_of, run_operator, run_oracle
from tests.slicing.strategies import rows, steps

AGGREGATES = [
    *(sw.count(), sw.sum("v"), sw.avg("v"), sw.min("v"), sw.max("v"), sw.stddev("v"), sw.median("v"), sw.count("w")),
    *(sw.first("w"), sw.last("w"), sw.concat("w"), sw.collect_list("v"), sw.max_by("w", "v"), sw.histogram("v")),
]
IN_ORDER = [name for name, cls in BASELINES.items() if cls.in_order]
ANY_ORDER = [name for name in BASELINES if name not in IN_ORDER]


def windows() -> st.SearchStrategy[Any]:
    length, offset = st.integers(1, 20), st.integers(-7, 7)
    return st.one_of(
        st.builds(lambda n, o: sw.tumbling(n, offset=o), length, offset),
        st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), length, length, offset),
        tables(),
    )


@st.composite
def workloads(draw: st.DrawFn, *, sessions: bool) -> sw.Workload:
    """A workload of one to three queries, some of them sessions."""
    keys = draw(st.sampled_from([[], [], ["k"], ["k", "j"]]))
    workload = sw.Workload("t", keys=keys, lateness=draw(st.sampled_from([0, 0, 3, 15])))
    kinds = st.one_of(windows(), windows(), st.builds(sw.session, st.integers(1, 12))) if sessions else windows()
    for i in range(draw(st.integers(1, 3))):
        computed = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2))
        workload = workload.query(f"q{i}", draw(kinds), **{f"q{i}_{n}": a for n, a in enumerate(computed)})
    return workload


def built(name: str, workload: sw.Workload, **options: Any) -> Baseline | None:
    """A baseline, or None if it says that it does not apply."""
    try:
        return BASELINES[name](workload, **options)
    except QueryError:
        return None  # what it says is in test_refusals


@pytest.mark.parametrize("name", ANY_ORDER)
@fewer(2)
@given(workloads(sessions=False), steps(), st.booleans())
def test_rows_in_any_order_late_ones_too(name, workload, epochs, one_by_one):
    baseline = built(name, workload)
    if baseline is not None:
        assert_same(run_operator(baseline, epochs, one_by_one=one_by_one), run_oracle(workload, epochs)[0])


@pytest.mark.parametrize("name", ANY_ORDER)
@fewer(2)
@given(workloads(sessions=True), steps(), st.booleans())
def test_sessions_of_rows_that_are_not_late(name, workload, epochs, one_by_one):
    epochs = without_late(epochs)
    baseline = built(name, workload)
    if baseline is not None:
        assert_same(run_operator(baseline, epochs, one_by_one=one_by_one), run_oracle(workload, epochs)[0])


def without_late(epochs):
    """The same rows, those behind the watermark moved to it."""
    moved, before = [], -1000
    for chunks, mark in epochs:
        moved.append(([[{**row, "t": max(row["t"], before)} for row in chunk] for chunk in chunks], mark))
        before = mark
    return moved


@pytest.mark.parametrize("name", BASELINES)
@fewer(2)
@given(workloads(sessions=True), st.lists(rows(), max_size=25), st.data())
def test_rows_in_order_report_windows_as_soon_as_they_end(name, workload, stream, data):
    baseline = built(name, workload, ordered=True)
    if baseline is None:
        return
    stream = sorted(stream, key=lambda row: row["t"])
    epochs = [*(([[row]], row["t"]) for row in stream), ([], None)]
    expected = [result for epoch in run_oracle(workload, epochs)[0] for result in epoch]
    results = []
    while stream:
        size = data.draw(st.integers(0, 5))
        if size == 0:
            row, *stream = stream
            results += baseline.process(row["t"], row)
        else:
            chunk, stream = stream[:size], stream[size:]
            results += baseline.process_batch(columns_of(chunk))
    assert_same([results + baseline.close()], [expected])


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_takes_a_sliding_window_in_order(name):
    """So that the properties are not empty."""
    workload = sw.Workload("t").query("q", sw.sliding(10, every=4), s=sw.sum("v"))
    baseline = BASELINES[name](workload, ordered=True)
    stream = [{"t": t, "v": t % 7} for t in range(0, 60, 3)]
    results = [r for row in stream for r in baseline.process(row["t"], row)] + baseline.close()
    sums = {s: sum(row["v"] for row in stream if s <= row["t"] < s + 10) for s in range(-8, 60, 4)}
    assert [(r.start, r.values["s"]) for r in results] == sorted(sums.items())
