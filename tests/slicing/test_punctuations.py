"""Punctuations: rows that start windows, and rows that end them."""

from __future__ import annotations

import pytest

import slicewise as sw
from slicewise.errors import QueryError

GATES = {"t": [0, 1, 2, 3, 4, 5, 6, 7], "gate": ["-", "S", "-", "E", "-", "S", "S", "E"]}


def windows(results):
    return [(r.start, r.end, r.values["ts"]) for r in results]


def race(**options):
    workload = sw.Workload("t", lateness=options.pop("lateness", 0))
    return workload.query("q", sw.punctuated("gate = 'S'", "gate = 'E'", **options), ts=sw.collect_list("t")).operator()


def test_an_end_ends_the_window_before_itself_and_what_follows_is_in_none():
    """
    ::

        t      0  1  2  3  4  5  6  7
        gate   -  S  -  E  -  S  S  E
                  [-----)     [--)[-)
    """
    op = race()
    op.process_batch(GATES)
    assert windows(op.advance(3)) == [(1, 3, [1, 2])]
    assert windows(op.close()) == [(5, 6, [5]), (6, 7, [6])]


def test_closed_both_takes_the_ending_row_in():
    op = race(closed="both")
    op.process_batch(GATES)
    assert windows(op.close()) == [(1, 3, [1, 2, 3]), (5, 6, [5]), (6, 7, [6, 7])]


def test_a_row_that_ends_and_starts_ends_first():
    window = sw.punctuated("v > 1", "v > 2", closed="both")
    op = sw.Workload("t").query("q", window, ts=sw.collect_list("t")).operator()
    op.process_batch({"t": [1, 2, 3, 4], "v": [2, 0, 3, 0]})
    assert windows(op.close()) == [(1, 3, [1, 2, 3]), (3, None, [3, 4])]


def test_an_end_without_a_window_changes_nothing():
    op = race()
    op.process_batch({"t": [1, 2, 3], "gate": ["E", "E", "-"]})
    assert windows(op.close()) == []
    assert op.stats().late_rows == 0


def test_a_late_end_cuts_a_window_that_was_reported():
    op = race(lateness=100)
    op.process_batch({"t": [1, 2, 3, 8], "gate": ["S", "-", "-", "S"]})
    assert windows(op.advance(9)) == [(1, 8, [1, 2, 3])]
    op.process(2, {"gate": "E", "t": 2})
    assert [(r.change, r.start, r.end, r.values["ts"]) for r in op.advance(9)] == [
        ("retract", 1, 8, None),
        ("insert", 1, 2, [1, 2]),
    ]


def test_a_window_that_has_ended_among_rows_that_are_folded_is_not_reported_again():
    """A landmark keeps all rows in slices, the end among them; the next start must not end that window again."""
    workload = (
        sw.Workload("t")
        .query("q", sw.punctuated("gate = 'S'", "gate = 'E'"), ts=sw.collect_list("t"))
        .query("ever", sw.landmark(every=sw.rows(100)), ts=sw.collect_list("t"))
    )
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3, 4], "gate": ["S", "-", "E", "-"]})
    assert windows(op.advance(10)) == [(1, 3, [1, 2])]
    op = workload.operator().restore(op.snapshot())
    op.process_batch({"t": [11, 12], "gate": ["S", "E"]})
    assert windows(op.advance(20)) == [(11, 12, [11])]


def test_functions_may_say_both():
    window = sw.punctuated(lambda c: c["v"] == 1, lambda c: c["v"] == 2, columns=["v"])
    op = sw.Workload("t").query("q", window, ts=sw.collect_list("t")).operator()
    op.process_batch({"t": [1, 2, 3, 4], "v": [1, 0, 2, 0]})
    assert windows(op.close()) == [(1, 3, [1, 2])]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.punctuated("a", "b", closed="right"), "`closed` must be 'left' or 'both'; got 'right'"),
        (
            lambda: sw.punctuated("a", closed="both"),
            "`closed` is about the row that ends a window; say which: end=...",
        ),
        (
            lambda: sw.punctuated("a", "b", columns=["c"]),
            "`columns` is for a function; the expression 'a' says what it reads; leave it out",
        ),
    ],
)
def test_mistakes_are_named(make, message):
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value) == message


def test_it_is_written_as_it_is_made():
    text = "punctuated(\"gate = 'S'\", end=\"gate = 'E'\", closed='both')"
    assert repr(sw.punctuated("gate = 'S'", "gate = 'E'", closed="both")) == text
