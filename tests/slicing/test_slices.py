"""Slices: rows are cut into them, and merged with them, and none is lost or counted twice."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.columns import Column
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slicer import cut_rows
from slicewise.slicing.time.slices import Slices
from slicewise.times import INFINITY
from tests.profiles import fewer
from tests.slicing.families import NEAR, mixes
from tests.slicing.running import TYPES, run_operator
from tests.slicing.strategies import steps, workloads

#: The list of its rows exposes everything lost, doubled or moved; the sum is columnar.
MONOIDS = (sw.collect_list("id").bind(pa.int64()), sw.sum("id").bind(pa.int64()))
LIST, SUM = range(2)

a_row = st.tuples(st.integers(0, 2), st.integers(-NEAR, NEAR))
batches = st.lists(st.lists(a_row, min_size=1, max_size=12), min_size=1, max_size=4)
gap_lists = st.lists(st.integers(1, 12), max_size=2, unique=True).map(sorted)


def cut(rows: list[tuple[int, int]], first_id: int, edges: Edges, **how) -> Slices:
    key, times = (np.array(x, np.int64) for x in zip(*rows, strict=True))
    ids = Column.of(np.arange(first_id, first_id + len(rows)))
    return cut_rows(key, times, {"id": ids}, edges, MONOIDS, **how)


def cut_all(chunks, edges) -> tuple[list[Slices], list[tuple[int, int]]]:
    rows = [row for chunk in chunks for row in chunk]
    at = np.cumsum([0, *map(len, chunks)]).tolist()
    return [cut(chunk, i, edges) for chunk, i in zip(chunks, at, strict=False)], rows


def members(slices: Slices) -> list[list[int]]:
    return MONOIDS[LIST].lower(slices.parts[LIST]).to_pylist()


def assert_partition(slices: Slices, rows: list[tuple[int, int]]) -> None:
    """Every row is in one slice, of its key, and slices say the truth about their rows."""
    assert sorted(i for ids in members(slices) for i in ids) == list(range(len(rows)))
    for n, ids in enumerate(members(slices)):
        times = [rows[i][1] for i in ids]
        assert {rows[i][0] for i in ids} == {slices.key[n]}
        assert (slices.first[n], slices.last[n]) == (min(times), max(times))
        assert slices.rows[n] == len(ids)
        assert slices.parts[SUM][0][n] == sum(ids)


@given(mixes(), st.lists(a_row, min_size=1, max_size=30), gap_lists)
def test_cutting_makes_one_slice_per_key_and_cell(windows, rows, gaps):
    edges = Edges(PeriodicWindows(windows), gaps)
    slices = cut(rows, 0, edges)
    slices._check(edges, -INFINITY, gaps)
    assert_partition(slices, rows)
    cells = edges.cells(np.array([t for _, t in rows]))
    assert len(slices) == len({(k, c) for (k, _), c in zip(rows, cells.tolist(), strict=True)})
    assert (slices.unreported == slices.rows).all()
    assert not slices.closed_gaps.any()


@given(mixes(), st.lists(st.integers(-NEAR, NEAR), min_size=1, max_size=30), gap_lists)
def test_rows_in_order_are_cut_by_looking_up_edges(windows, times, gaps):
    """The cheap way of cutting one key in order gives the slices of the general one."""
    edges = Edges(PeriodicWindows(windows), gaps)
    times = sorted(times)
    in_order = cut([(0, t) for t in times], 0, edges, one_key=True)
    # A row of another key in front takes the cheap way from them.
    general = cut([(1, 0), *((0, t) for t in times)], -1, edges).take(slice(len(in_order)))
    for mine, theirs in zip(in_order._columns(), general._columns(), strict=True):
        assert mine.tolist() == theirs.tolist()
    assert members(in_order) == members(general)


@given(mixes(), batches, st.integers(-NEAR, NEAR), gap_lists)
def test_settling_keeps_every_row_and_no_slice_too_many(windows, chunks, horizon, gaps):
    edges = Edges(PeriodicWindows(windows), gaps)
    pieces, rows = cut_all(chunks, edges)
    settled = Slices.empty(MONOIDS).compacted(pieces, edges, horizon, gaps, MONOIDS)
    settled._check(edges, horizon, gaps)
    assert_partition(settled, rows)
    # Neighbours of a key are apart for a reason: an edge between them, or a gap.
    cells = edges.needed_cells(settled.first, horizon)
    same = (settled.key[1:] == settled.key[:-1]) & (cells[1:] == cells[:-1])
    distance = settled.first[1:] - settled.last[:-1]
    assert not same.any() if not gaps else (distance[same] > gaps[0]).all()


@given(mixes(), batches, st.integers(-NEAR, NEAR), gap_lists)
def test_settling_at_once_or_piece_by_piece_is_the_same(windows, chunks, horizon, gaps):
    edges = Edges(PeriodicWindows(windows), gaps)
    pieces, _ = cut_all(chunks, edges)
    at_once = Slices.empty(MONOIDS).compacted(pieces, edges, horizon, gaps, MONOIDS)
    one_by_one = Slices.empty(MONOIDS)
    for piece in pieces:
        one_by_one = one_by_one.compacted([piece], edges, horizon, gaps, MONOIDS)
    for mine, theirs in zip(at_once._columns(), one_by_one._columns(), strict=True):
        assert mine.tolist() == theirs.tolist()
    assert [sorted(ids) for ids in members(at_once)] == [sorted(ids) for ids in members(one_by_one)]
    again = at_once.compacted([], edges, horizon, gaps, MONOIDS)
    assert len(again) == len(at_once)


def test_rows_of_equal_time_are_combined_in_the_order_of_their_arrival():
    edges = Edges(PeriodicWindows([sw.tumbling(10)]))
    pieces, _ = cut_all([[(0, 5)], [(0, 5), (0, 5)], [(0, 5)]], edges)
    settled = Slices.empty(MONOIDS).compacted(pieces, edges, -INFINITY, (), MONOIDS)
    assert members(settled) == [[0, 1, 2, 3]]


def test_a_piece_that_begins_earlier_still_came_later():
    # The order of combining is that of arrival, for aggregates whose partials know their event times.
    #   0  2  4
    #      a  b   came first
    #   c     d   came second
    edges = Edges(PeriodicWindows([sw.tumbling(10)]))
    pieces, _ = cut_all([[(0, 2), (0, 4)], [(0, 0), (0, 4)]], edges)
    settled = Slices.empty(MONOIDS).compacted(pieces, edges, -INFINITY, (), MONOIDS)
    assert members(settled) == [[0, 1, 2, 3]]
    assert (settled.first.tolist(), settled.last.tolist()) == ([0], [4])


def test_slices_closed_to_sessions_are_not_merged_with_open_ones():
    edges = Edges(PeriodicWindows([]), [5])
    (old,), _ = cut_all([[(0, 1), (0, 2)]], edges)
    old = Slices(*old._columns()[:5], np.ones(len(old), np.int64), old.parts)
    (new,), _ = cut_all([[(0, 3)]], edges)
    settled = old.compacted([new], edges, -INFINITY, [5], MONOIDS)
    assert settled.closed.tolist() == [1, 0]
    settled._check(edges, -INFINITY, [5])


def test_nothing_settles_to_nothing():
    edges = Edges(PeriodicWindows([sw.tumbling(10)]))
    empty = Slices.empty(MONOIDS)
    assert len(empty.compacted([], edges, 0, (), MONOIDS)) == 0
    assert len(empty.compacted([empty], edges, 0, (), MONOIDS)) == 0
    assert empty.nbytes == 0


def test_reported_slices_are_fresh_no_more():
    edges = Edges(PeriodicWindows([sw.tumbling(10)]))
    slices = cut([(0, 1), (0, 12)], 0, edges)
    assert slices.unreported.tolist() == [1, 1]
    assert slices.reported().unreported.tolist() == [0, 0]
    assert slices.unreported.tolist() == [1, 1]


# -- in an operator


def checked(op):
    """The operator, after a look at its slices: the invariants hold, and slices lie between edges, side by side."""
    if op._core.engine is None:
        return op
    op._core.engine._check()
    table = op.slices().to_pylist()
    for s in table:
        assert s["start"] is None or s["start"] <= s["first"]
        assert s["first"] <= s["last"]
        assert s["end"] is None or s["last"] < s["end"]
        assert s["rows"] > 0
    return op


@fewer(4)
@given(workloads(), steps())
def test_an_operators_slices_keep_their_invariants(workload, epochs):
    run_operator(workload.operator(types=TYPES), epochs, between=checked)
