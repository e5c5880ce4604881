"""Edges: slices are cut where windows begin and end, and nowhere else."""

from __future__ import annotations

import itertools
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.slicing.time import edges as edges_module
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.times import INFINITY
from tests.slicing.families import NEAR, edges_of, mixes, open_starts_of

TIMES = np.arange(-NEAR, NEAR)
horizons = st.integers(-NEAR, NEAR)
no_landmarks = mixes(landmarks=False)


def edges_for(*windows, gaps=()) -> Edges:
    return Edges(PeriodicWindows(windows), gaps)


def floor(edges: list[int], t: int) -> int:
    at = bisect_right(edges, t)
    return edges[at - 1] if at else -INFINITY


# -- the paper's formula


@given(st.integers(1, 10**6), st.integers(-(10**12), 10**12))
def test_the_next_edge_of_a_tumbling_window(length, t):
    assert edges_for(sw.tumbling(length)).next_edge(t) == t + length - t % length


@given(no_landmarks, horizons)
def test_the_next_edge_is_the_first_begin_or_end_after(windows, t):
    later = [e for e in edges_of(windows) if e > t]
    assert edges_for(*windows).next_edge(t) == min(later, default=INFINITY)


# -- cells


def assert_same_cells(cells: np.ndarray, expected: list[int]) -> None:
    """Whatever cells are called, the same rows share one, and later cells have larger names."""
    for (a, b), (x, y) in zip(itertools.pairwise(cells.tolist()), itertools.pairwise(expected), strict=True):
        assert (a == b) == (x == y)
        assert a <= b


@given(no_landmarks)
def test_a_cell_lies_between_two_neighbouring_edges(windows):
    edges = edges_of(windows)
    assert_same_cells(edges_for(*windows).cells(TIMES), [floor(edges, t) for t in TIMES.tolist()])


@given(no_landmarks, horizons, st.integers(0, 40))
def test_slices_are_as_few_as_edges_allow(windows, low, width):
    """The paper's minimality: rows at every instant make one slice per edge among them, and the one before."""
    times = np.arange(low, low + width + 1)
    among = [e for e in edges_of(windows) if low < e <= low + width]
    edges = edges_for(*windows)
    assert len(np.unique(edges.cells(times))) == len(among) + 1
    assert edges.inside(low, low + width).tolist() == among


@given(mixes(), st.lists(st.integers(-NEAR, NEAR), min_size=1, max_size=30))
def test_cells_are_the_same_in_any_order_and_by_either_way(windows, times):
    edges = edges_for(*windows)
    t = np.array(times)
    by_list = edges.needed.floor(t)
    assert by_list.tolist() == edges.needed._floor_by_arithmetic(t).tolist()
    names = edges.cells(t).tolist()
    for (a, x), (b, y) in itertools.combinations(zip(names, by_list.tolist(), strict=True), 2):
        assert (a == b) == (x == y)
        assert (a < b) == (x < y)


@pytest.mark.parametrize("n", [1, 5, 500])
def test_few_rows_and_many_edges_are_not_listed(n, monkeypatch):
    """Rows far apart: millions of edges lie between them, and none is made."""
    windows = [sw.tumbling(3), sw.tumbling(7), sw.between(0, 5)]
    edges = edges_for(*windows)
    t = np.linspace(-(2**59), 2**59, n).astype(np.int64)
    expected = [max(x - x % 3, x - x % 7, *([p for p in (0, 5) if p <= x])) for x in t.tolist()]
    assert edges.needed.floor(t).tolist() == expected
    if n > 1:
        assert edges.inside(int(t[0]), int(t[-1])) is None
        assert (np.diff(edges.cells(t)) > 0).all()


# -- edges that have gone


@given(no_landmarks, horizons)
def test_before_the_horizon_only_begins_of_open_windows_are_needed(windows, horizon):
    needed = sorted({*(e for e in edges_of(windows) if e > horizon), *open_starts_of(windows, horizon)})
    edges = edges_for(*windows)
    assert edges.needed_cells(TIMES, horizon).tolist() == [floor(needed, t) for t in TIMES.tolist()]
    for t in (-NEAR, horizon - 1, horizon, horizon + 1):
        assert edges.needed_after(t, horizon) == min((e for e in needed if e > t), default=INFINITY)


@given(mixes(), horizons, horizons)
def test_needed_edges_only_ever_go(windows, one, other):
    """What is one cell now stays one: slices merge as the horizon moves, and are never split."""
    edges = edges_for(*windows)
    before, after = (edges.needed_cells(TIMES, h) for h in sorted([one, other]))
    together = before[1:] == before[:-1]
    assert (after[1:] == after[:-1])[together].all()


def test_without_a_horizon_all_edges_are_needed():
    edges = edges_for(sw.sliding(10, every=3))
    assert edges.needed_cells(TIMES, -INFINITY).tolist() == [
        floor(edges_of([sw.sliding(10, every=3)]), t) for t in TIMES
    ]


# -- gaps


@given(mixes(), st.lists(st.integers(1, 30), min_size=1, max_size=3))
def test_no_cell_is_wider_than_the_smallest_gap(windows, gaps):
    edges = edges_for(*windows, gaps=gaps)
    cells = edges.cells(TIMES)
    _, rows = np.unique(cells, return_counts=True)
    assert rows.max() <= min(gaps)  # rows at every instant: as many as the cell is wide
    assert_same_cells(edges.needed.floor(TIMES), edges_for(*windows).needed.floor(TIMES).tolist())


def test_sessions_alone_are_cut_on_a_grid_of_the_gap():
    edges = edges_for(gaps=[5, 9])
    assert edges.inside(0, 20).tolist() == [5, 10, 15, 20]
    assert edges.next_edge(12) == 15
    assert (edges.needed_cells(TIMES, 7) == -INFINITY).all()  # which no window needs


def test_no_windows_have_no_edges():
    edges = edges_for()
    assert edges.next_edge(5) == INFINITY
    assert edges.inside(-5, 5).tolist() == []
    assert len(np.unique(edges.cells(TIMES))) == 1


def test_cost_of_an_edge_is_a_matter_of_speed_only(monkeypatch):
    windows = [sw.sliding(10, every=3), sw.tumbling(7), sw.between(-5, 5)]
    t = np.arange(-1000, 1000, 7)
    expected = edges_for(*windows).needed.floor(t)
    monkeypatch.setattr(edges_module, "COST_OF_AN_EDGE", 10**9)
    assert (edges_for(*windows).needed.floor(t) == expected).all()
