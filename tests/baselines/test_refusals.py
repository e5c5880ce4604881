"""What a baseline does not take, it refuses: when it is built, where that can be told."""

from __future__ import annotations

import re

import pytest

import slicewise as sw
from slicewise.baselines import BASELINES, AggregateBuckets, LazySlicing, Pairs, Panes, Reactive, TupleBuffer
from slicewise.errors import DataError, QueryError


def workload(window=None, aggregate=None, **settings):
    return sw.Workload("t", **settings).query("q", window or sw.tumbling(10), x=aggregate or sw.sum("v"))


def refuses(message):
    return pytest.raises(QueryError, match=f"^{re.escape(message)}$")


@pytest.mark.parametrize("name", [name for name, cls in BASELINES.items() if cls.in_order])
def test_techniques_for_rows_in_order_say_so(name):
    message = (
        f"`{name}` takes rows in event-time order only; got ordered=False: use ordered=True, or LazySlicing for rows "
        "out of order"
    )
    with refuses(message):
        BASELINES[name](workload())


@pytest.mark.parametrize("name", ["Panes", "Pairs", "PairsPlus"])
def test_techniques_on_a_grid_have_no_sessions(name):
    message = (
        f"`{name}` knows windows that lie on a grid; got session(5) in query 'q': use CuttyEager or LazySlicing for "
        "sessions"
    )
    with refuses(message):
        BASELINES[name](workload(sw.session(5)), ordered=True)


@pytest.mark.parametrize("name", BASELINES)
def test_no_baseline_reports_empty_windows(name):
    filled = sw.Workload("t").query("q", sw.tumbling(10), empty=True, x=sw.sum("v"))
    with refuses(f"`{name}` reports windows with rows; got empty=True in query 'q': use workload.operator()"):
        BASELINES[name](filled, ordered=True)


def test_panes_are_for_one_window():
    two = workload(sw.sliding(10, every=4)).query("r", sw.sliding(10, every=4), x=sw.sum("v"))
    Panes(two, ordered=True)
    with pytest.raises(QueryError, match=r"^`Panes` cuts for one sliding window; got .*: use Pairs for several$"):
        Panes(two.query("s", sw.tumbling(3), x=sw.sum("v")), ordered=True)


def test_aggregates_of_buckets_take_no_row_into_their_middle():
    message = (
        "`AggregateBuckets` cannot put a row into the middle of `concat`, where order matters; got ordered=False: use "
        "TupleBuckets"
    )
    with refuses(message):
        AggregateBuckets(workload(aggregate=sw.concat("w")))
    AggregateBuckets(workload(aggregate=sw.concat("w")), ordered=True)


def test_windows_inside_others_cannot_leave_from_the_front():
    message = (
        "`Reactive` evicts from the front, so of two windows that which ends first must start first; got others in "
        "query 'q': use CuttyEager"
    )
    with refuses(message):
        Reactive(workload(sw.edges([(0, 10), (3, 5)])), ordered=True)


def test_windows_that_only_rows_show_are_not_taken():
    message = (
        "`TupleBuffer` has tumbling and sliding windows on event time, tables without keys, and sessions; got "
        "tumbling(rows(3)) in query 'q': use workload.operator()"
    )
    with refuses(message):
        TupleBuffer(workload(sw.tumbling(sw.rows(3))))


@pytest.mark.parametrize("aggregate", [sw.sum("v").where("v > 1"), sw.sum(sw.expr("v + 1")), sw.rate("v"), sw.m4("v")])
def test_aggregates_that_single_values_do_not_give_are_not_taken(aggregate):
    message = (
        f"`TupleBuffer` runs aggregates of columns on single values; got {aggregate!r} in query 'q': use "
        "workload.operator()"
    )
    with refuses(message):
        TupleBuffer(workload(aggregate=aggregate))


@pytest.mark.parametrize(
    ("settings", "shown"),
    [({"order": ["o"]}, "`order`; got ('o',)"), ({"where": "v > 1"}, "`where`; got expr('v > 1')")],
)
def test_settings_that_no_technique_has_are_not_taken(settings, shown):
    with refuses(f"`TupleBuffer` has no {shown}: use workload.operator()"):
        TupleBuffer(workload(**settings))


def test_a_workload_without_queries_is_refused():
    with refuses("`TupleBuffer` needs a workload with a query; got none"):
        TupleBuffer(sw.Workload("t"))


def test_rows_in_order_must_be_in_order():
    op = Pairs(workload(), ordered=True)
    op.process(5, {"v": 1})
    with pytest.raises(
        DataError, match=r"^rows must come in event-time order; got 4 after 5; leave `ordered` out, or sort them$"
    ):
        op.process(4, {"v": 1})


def test_sessions_take_no_late_rows():
    op = LazySlicing(workload(sw.session(5)))
    op.advance(10)
    message = (
        "the row of time 4 is behind the watermark 10; a baseline keeps sessions of rows that are out of order, not "
        "late: give watermarks that lag further"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.process(4, {"v": 1})


def test_the_watermark_does_not_go_back_and_the_end_is_the_end():
    op = TupleBuffer(workload())
    op.advance(10)
    with pytest.raises(
        DataError, match=r"^the watermark must not go back; it is at 10 and was given as 9; keep the larger$"
    ):
        op.advance(9)
    op.close()
    with pytest.raises(DataError, match=r"^this TupleBuffer is closed; make a new one for another stream$"):
        op.close()
