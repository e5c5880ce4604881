"""The worked examples of general stream slicing, and of Cutty's begins: what is cut, computed, updated and kept."""

from __future__ import annotations

import numpy as np
import pytest

import slicewise as sw
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import PeriodicWindows
from tests.counting import Counting


def said(results) -> list[tuple]:
    return [(r.query, r.start, r.end, r.change, r.revision, *r.values.values()) for r in results]


def spans(op) -> list[tuple]:
    return [(s["start"], s["end"], s["rows"]) for s in op.slices().to_pylist()]


# -- Figure 2: slices are computed once and shared among overlapping windows


def test_figure_2_each_slice_is_computed_once_and_shared():
    #  time     0    2    4    6    8    10   12   14
    #  rows     1 1  1 1  1 1  1 1  1 1  1 1  1 1  1 1     one at every instant
    #  w0       [-------------------)
    #  w1            [-------------------)
    #  w2                 [-------------------)
    #  slices   |s0  |s1  |s2  |s3  |s4  |s5  |s6  |s7     panes of 2, each in four windows
    add = Counting(sw.sum("v"))
    op = sw.Workload("t").query("q", sw.sliding(8, every=2), total=add).operator(store="lazy")
    op.process_batch({"t": range(16), "v": [1] * 16})
    assert spans(op) == [(s, s + 2, 2) for s in range(0, 16, 2)]
    # One operation per tuple but the first of its slice: every tuple belongs to exactly one slice.
    assert add.combines == 8
    results = said(op.advance(14))
    assert results == [("q", start, start + 8, "insert", 0, min(8, start + 8)) for start in range(-6, 8, 2)]
    # Windows are made of slices: 1, 2, 3 and then 4 of them. The 16 rows were not touched again.
    assert add.combines == 8 + (0 + 1 + 2) + 4 * 3


def test_figure_2_with_two_queries_on_the_same_slices():
    #  time     0         10        20        30
    #  a        [---------)[--------)[--------)            tumbling(10)
    #  b        [--------------)[-------------)            tumbling(15)
    #  slices   |         |    |    |         |            0, 10, 15, 20, 30: each edge once
    add = Counting(sw.sum("v"))
    workload = sw.Workload("t").query("a", sw.tumbling(10), x=add).query("b", sw.tumbling(15), y=add)
    op = workload.operator(store="lazy")
    op.process_batch({"t": range(30), "v": [1] * 30})
    assert spans(op) == [(0, 10, 10), (10, 15, 5), (15, 20, 5), (20, 30, 10)]
    assert add.combines == 30 - 4
    assert sorted(said(op.advance(30))) == [
        ("a", 0, 10, "insert", 0, 10),
        ("a", 10, 20, "insert", 0, 10),
        ("a", 20, 30, "insert", 0, 10),
        ("b", 0, 15, "insert", 0, 15),
        ("b", 15, 30, "insert", 0, 15),
    ]
    assert add.combines == 30 - 4 + 3  # of five windows, three are made of two slices


def test_more_queries_over_the_same_windows_cost_no_more():
    add = Counting(sw.sum("v"))
    workload = sw.Workload("t")
    for i in range(20):
        workload = workload.query(f"q{i}", sw.sliding(8, every=2), x=add)
    op = workload.operator(store="lazy")
    op.process_batch({"t": range(16), "v": [1] * 16})
    assert len(op.advance(14)) == 20 * 7
    assert add.combines == 8 + (0 + 1 + 2) + 4 * 3


# -- section 5.4.2: the next edge


@pytest.mark.parametrize("t", [0, 1, 9, 10, 13, 999, -1, -10, -13])
def test_the_next_edge_of_a_tumbling_window_is_the_papers(t):
    length = 10
    assert Edges(PeriodicWindows([sw.tumbling(length)])).next_edge(t) == t + length - (t % length)


def test_a_slice_is_cut_when_a_row_passes_the_cached_edge():
    #  time   8   9 | 10  11 | 20
    op = sw.Workload("t").query("q", sw.tumbling(10), n=sw.count()).operator(ordered=True)
    found = [said(op.process(t, {})) for t in (8, 9, 10, 11, 20)]
    assert found == [[], [], [("q", 0, 10, "insert", 0, 2)], [], [("q", 10, 20, "insert", 0, 2)]]


# -- section 5.3: tuples after the watermark


def lateness_of_20(window, **aggregates):
    return sw.Workload("t", lateness=20).query("q", window, **aggregates).operator()


def test_a_late_tuple_within_the_lateness_updates_the_result():
    #  time   0    5    10        20        30
    #  w0     [---------)
    #         a    late      wm=12
    op = lateness_of_20(sw.tumbling(10), n=sw.count(), total=sw.sum("v"))
    op.process_batch({"t": [1, 11], "v": [1, 10]})
    assert said(op.advance(12)) == [("q", 0, 10, "insert", 0, 1, 1)]
    op.process(5, {"v": 2})
    assert said(op.advance(12)) == [("q", 0, 10, "update", 1, 2, 3)]
    op.process(6, {"v": 4})
    assert said(op.advance(20)) == [("q", 0, 10, "update", 2, 3, 7), ("q", 10, 20, "insert", 0, 1, 10)]
    assert op.late() == []


def test_a_late_tuple_updates_every_window_that_holds_it_and_was_reported():
    #  time   -10  -5   0    5    10   15   20
    #         [--------------)                    reported, and not touched
    #              [--------------)               reported, updated
    #                   [--------------)          reported, updated
    #                        [--------------)     not reported yet: the row simply counts
    #                           late   wm=15
    op = lateness_of_20(sw.sliding(15, every=5), n=sw.count())
    op.process_batch({"t": [1, 7, 12]})
    assert said(op.advance(15)) == [
        ("q", -10, 5, "insert", 0, 1),
        ("q", -5, 10, "insert", 0, 2),
        ("q", 0, 15, "insert", 0, 3),
    ]
    op.process(8, {})
    assert said(op.advance(15)) == [("q", -5, 10, "update", 1, 3), ("q", 0, 15, "update", 1, 4)]
    assert said(op.advance(20)) == [("q", 5, 20, "insert", 0, 3)]


def test_a_late_tuple_beyond_the_lateness_changes_nothing_and_is_given_back():
    #  time   0    5    10        20        30
    #  w0     [---------)                   |
    #              late            wm - lateness = 10: closed
    op = lateness_of_20(sw.tumbling(10), n=sw.count())
    op.process(1, {})
    assert said(op.advance(29)) == [("q", 0, 10, "insert", 0, 1)]
    op.process(5, {"note": "in time"})
    assert said(op.advance(30)) == [("q", 0, 10, "update", 1, 2)]
    op.process(5, {"note": "too late"})
    assert said(op.advance(31)) == []
    assert op.late() == [(5, (), {"note": "too late"})]
    assert op.late() == []
    assert op.stats().late_rows == 1


def test_a_late_tuple_alone_in_its_window_makes_a_first_result():
    op = lateness_of_20(sw.tumbling(10), n=sw.count())
    op.process(15, {})
    assert said(op.advance(20)) == [("q", 10, 20, "insert", 0, 1)]
    op.process(5, {})
    assert said(op.advance(20)) == [("q", 0, 10, "insert", 0, 1)]


def test_session_merges_when_late_row_bridges_gap():
    #  gap 5   0   2   4   6   8   10  12  14
    #          a---+---)
    #                          b---+---)          reported: [0, 5) and [8, 13)
    #                  late                       a context change: the edge between them has gone
    #          [-----------------------)          [0, 13) instead
    op = lateness_of_20(sw.session(5), n=sw.count(), all=sw.collect_list("v"))
    op.process_batch({"t": [0, 8], "v": ["a", "b"]})
    assert said(op.advance(14)) == [("q", 0, 5, "insert", 0, 1, ["a"]), ("q", 8, 13, "insert", 0, 1, ["b"])]
    op.process(4, {"v": "late"})
    assert sorted(said(op.advance(14)), key=lambda r: (r[3], r[1]), reverse=True) == [
        ("q", 8, 13, "retract", 1, None, None),
        ("q", 0, 5, "retract", 1, None, None),
        ("q", 0, 13, "insert", 0, 3, ["a", "late", "b"]),
    ]


def test_session_grows_when_late_row_extends_it():
    op = lateness_of_20(sw.session(5), n=sw.count())
    op.process(0, {})
    assert said(op.advance(6)) == [("q", 0, 5, "insert", 0, 1)]
    op.process(3, {})
    changes = {r[3]: r for r in said(op.advance(9))}
    assert changes == {"retract": ("q", 0, 5, "retract", 1, None), "insert": ("q", 0, 8, "insert", 0, 2)}


def test_session_is_updated_when_late_row_falls_into_it():
    op = lateness_of_20(sw.session(5), n=sw.count())
    op.process_batch({"t": [0, 4]})
    assert said(op.advance(10)) == [("q", 0, 9, "insert", 0, 2)]
    op.process(2, {})
    assert said(op.advance(10)) == [("q", 0, 9, "update", 1, 3)]


def test_a_row_exactly_one_gap_later_joins_the_session():
    op = lateness_of_20(sw.session(5), n=sw.count())
    op.process(0, {})
    assert said(op.advance(5)) == []  # a row at 5 would still join
    op.process(5, {})
    assert said(op.advance(11)) == [("q", 0, 10, "insert", 0, 2)]


# -- Cutty: on an ordered stream only the begins of windows are needed


def active(windows, t: int) -> int:
    """How many windows have begun at or before t and not ended: an open slice each is enough."""
    periodic = PeriodicWindows(windows)
    families, at = np.arange(len(windows)), np.array([t])
    return int((periodic.last(families, at) - periodic.first(families, at) + 1).sum())


def test_begins_are_enough_in_order():
    #  time     0        10        20
    #           [---------)
    #              [---------)
    #                 [---------)
    #                    [---------)      sliding(10, every=3): three or four are active at a time
    window = sw.sliding(10, every=3)
    op = sw.Workload("t").query("q", window, n=sw.count()).operator(ordered=True)
    for t in range(200):
        op.process(t, {})
        assert op.stats().slices <= active([window], t) <= 4


def test_begins_are_enough_for_twenty_windows_at_once():
    windows = [sw.tumbling(n) for n in range(1, 21)]
    workload = sw.Workload("t")
    for i, window in enumerate(windows):
        workload = workload.query(f"q{i}", window, n=sw.count())
    op = workload.operator(ordered=True)
    most = 0
    for t in range(0, 400, 1):
        op.process(t, {})
        most = max(most, op.stats().slices)
        assert most <= active(windows, t) == 20
    assert most > 1


def test_a_slice_lies_between_the_edges_that_are_left():
    #  sliding(10, every=3) at 30: of the windows that have begun, those that begin at 21, 24, 27 and 30 are open
    #  time     21   24   27 28    30
    #  rows               x                  28 ends a window that is over, and cuts nothing any more
    op = sw.Workload("t").query("q", sw.sliding(10, every=3), n=sw.count()).operator()
    op.process(27, {})
    op.advance(30)
    assert spans(op) == [(27, 30, 1)]


def test_with_lateness_ends_are_cut_too():
    #  sliding(10, every=3): begins at 0, 3, 6, 9, ... and ends at 10, 13, 16, ...
    op = sw.Workload("t", lateness=100).query("q", sw.sliding(10, every=3), n=sw.count()).operator()
    op.process_batch({"t": range(20)})
    op.advance(20)
    starts = [start for start, _, _ in spans(op)]
    assert starts == sorted({*range(0, 20, 3), *range(1, 20, 3)})


# -- memory follows slices, not tuples


@pytest.mark.parametrize("ordered", [True, False])
def test_memory_follows_slices_and_not_tuples(ordered):
    found = []
    for rows in (100, 10_000):
        workload = (
            sw.Workload("t", lateness=0 if ordered else 20)
            .query("a", sw.sliding(50, every=7), total=sw.sum("v"), peak=sw.max("v"))
            .query("b", sw.session(5), n=sw.count(), last=sw.last("v"))
        )
        op = workload.operator(ordered=ordered)
        op.process_batch({"t": np.sort(np.arange(rows) % 100), "v": np.arange(rows)})
        if not ordered:
            op.advance(70)
        stats = op.stats()
        assert stats.rows == rows
        found.append((stats.slices, stats.tuples, stats.bytes))
    assert found[0] == found[1]
    assert found[0][1] == 0


def test_tuples_are_kept_where_the_decisions_say_so_and_no_longer_than_needed():
    workload = sw.Workload("t").query("q", sw.tumbling(10), all=sw.concat("v"))
    op = workload.operator()
    op.process_batch({"t": range(30), "v": ["x"] * 30})
    assert op.stats().tuples == 30
    op.advance(20)
    assert op.stats().tuples == 10
    in_order = workload.operator(ordered=True)
    in_order.process_batch({"t": range(30), "v": ["x"] * 30})
    assert in_order.stats().tuples == 0


def test_an_old_stream_leaves_nothing_behind():
    op = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), n=sw.count()).operator()
    sizes = []
    for start in range(0, 1000, 10):
        op.process_batch({"t": range(start, start + 10), "k": [start % 70] * 10})
        op.advance(start + 10)
        sizes.append(op.stats().slices)
    assert sizes == [0] * 100
