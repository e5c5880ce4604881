"""Trailing windows in a query: one result for each time that has rows, late rows, ties, and windows without rows."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.same import is_same
from tests.arrow_rows import rows_with_maps
from tests.slicing.running import TYPES, assert_same, rechunked, run_operator, run_oracle
from tests.slicing.strategies import aggregates_over, rows, steps, trailing, windows


@st.composite
def workloads(draw):
    """Trailing windows, mixed with others now and then."""
    keys, order = draw(st.sampled_from([[], ["k"]])), draw(st.sampled_from([[], [], ["o"]]))
    workload = sw.Workload("t", keys=keys, order=order, lateness=draw(st.sampled_from([0, 3, 15, 1000])))
    for i in range(draw(st.integers(1, 3))):
        window = draw(trailing() if i == 0 else st.one_of(trailing(), windows()))
        computed = draw(st.lists(aggregates_over(), min_size=1, max_size=2))
        workload = workload.query(f"q{i}", window, **{f"q{i}_{n}": a for n, a in enumerate(computed)})
    return workload


@given(workloads(), steps(), st.booleans())
def test_every_epoch_gives_the_oracles_results(workload, epochs, one_by_one):
    expected, late = run_oracle(workload, epochs)
    op = workload.operator(types=TYPES)
    assert_same(run_operator(op, epochs, one_by_one=one_by_one), expected)
    assert sorted(r.time for r in op.late()) == sorted(time for time, _, _ in late)


@given(workloads(), steps(), st.data())
def test_chunks_and_snapshots_change_nothing(workload, epochs, data):
    def again(op):
        return workload.operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot())))

    expected = run_operator(workload.operator(types=TYPES), epochs)
    op = workload.operator(types=TYPES)
    assert_same(run_operator(op, rechunked(epochs, data), between=again), expected)


@given(st.lists(rows(), max_size=25), trailing(), aggregates_over())
def test_a_query_reports_what_attach_adds(stream, window, aggregate):
    """As of each row, once all have come. Of counts, only those of rows that have a time to themselves are the same."""
    workload = sw.Workload("t", keys=["k"]).query("q", window, x=aggregate)
    op = workload.operator(types=TYPES)
    if stream:
        op.process_batch({name: [row[name] for row in stream] for name in ("t", *TYPES)})
    table = pa.Table.from_pylist(stream, pa.schema([("t", pa.int64()), *TYPES.items()]))
    found = rows_with_maps(workload.attach(table))
    times = [(row["k"], row["t"]) for row in found]
    alone = {(row["k"], row["t"]): row["q_x"] for row in found if times.count((row["k"], row["t"])) == 1}
    every = {(row["k"], row["t"]): row["q_x"] for row in found}
    results = list(op.close())
    if window.counts_rows:
        assert len(results) == len(stream)
        positions: dict[object, list[int]] = {}
        for k, t in times:
            positions.setdefault(k, []).append(t)
        for r in results:
            at = (r.key[0], sorted(positions[r.key[0]])[r.end - window.has_end])
            if at in alone:
                assert is_same(r.values["x"], alone[at])
    else:
        assert {(r.key[0], r.end) for r in results} == set(every)
        for r in results:
            assert r.start == r.end - window.length.size
            assert is_same(r.values["x"], every[r.key[0], r.end])


def results_of(op, advance):
    found = op.close() if advance is None else op.advance(advance)
    return [(r.start, r.end, r.change, r.revision, *r.values.values()) for r in found]


def test_a_window_is_reported_when_the_watermark_is_past_its_time():
    op = sw.Workload("t").query("q", sw.trailing(5), n=sw.count()).operator()
    op.process_batch({"t": [1, 4, 4]})
    assert results_of(op, 4) == [(-4, 1, "insert", 0, 1)]
    assert results_of(op, 5) == [(-1, 4, "insert", 0, 3)]


def test_a_window_without_its_own_time_is_reported_at_it_also_when_it_is_empty():
    op = sw.Workload("t").query("q", sw.trailing(5, closed="left"), n=sw.count(), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 4, 4], "v": [7, 1, 1]})
    assert results_of(op, 4) == [(-4, 1, "insert", 0, 0, None), (-1, 4, "insert", 0, 1, 7)]
    assert results_of(op, None) == []


def test_a_late_row_adds_a_window_and_corrects_those_that_hold_it():
    op = sw.Workload("t", lateness=20).query("q", sw.trailing(5), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 4, 9, 12], "v": [1, 2, 4, 8]})
    assert len(results_of(op, 13)) == 4
    op.process(5, {"v": 100})
    assert results_of(op, 13) == [(0, 5, "insert", 0, 103), (4, 9, "update", 1, 104)]


def test_rows_report_positions_and_the_times_of_the_first_row_and_of_their_own():
    op = sw.Workload("t").query("q", sw.trailing(sw.rows(2), closed="left"), l=sw.collect_list("v")).operator()
    op.process_batch({"t": [10, 20, 20, 30], "v": ["a", "b", "c", "d"]})
    found = op.close().to_arrow().select(["window", "span", "l"]).to_pylist()
    assert [(*r["window"].values(), *r["span"].values(), r["l"]) for r in found] == [
        (10, 10, 0, 0, []),
        (10, 20, 0, 1, ["a"]),
        (10, 20, 0, 2, ["a", "b"]),
        (20, 30, 1, 3, ["b", "c"]),
    ]


def test_what_no_window_needs_is_forgotten():
    op = sw.Workload("t").query("q", sw.trailing(5), s=sw.sum("v")).operator()
    for at in range(0, 1000, 10):
        op.process_batch({"t": range(at, at + 10), "v": [1] * 10})
        op.advance(at + 10)
        assert op.stats().tuples <= 6


def test_explain_says_what_is_kept_and_how_points_are_answered():
    workload = sw.Workload("t").query("q", sw.trailing("1 hour"), n=sw.count(), top=sw.max("v"), med=sw.median("v"))
    text = workload.explain()
    assert "forward context free, on time" in text
    assert "store tuples?   yes" in text
    assert "as of points" in text
    ways = {line.split()[0]: line.split()[1] for line in text.partition("as of points\n")[2].splitlines()[:1]}
    assert ways == {"count()": "prefix"}
    assert "max('v')     doubling" in text
    assert "median('v')  wavelet" in text


@pytest.mark.parametrize("closed", ["right", "left", "both", "neither"])
def test_an_ordered_stream_keeps_up(closed):
    workload = sw.Workload("t").query("q", sw.trailing(3, closed=closed), n=sw.count())
    times = [0, 1, 1, 2, 6, 7, 7, 30]
    op = workload.operator(ordered=True)
    found = [r for t in times for r in op.process(t, {})] + list(op.close())
    whole = workload.operator()
    whole.process_batch({"t": times})
    assert [r[:6] for r in found] == [r[:6] for r in whole.close()]
