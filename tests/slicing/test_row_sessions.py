"""Sessions that are found row by row: of limited length, and with a gap for every row."""

# ruff: noqa: E501  (messages stand in one line)

from __future__ import annotations

import datetime as dt
import pickle
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, QueryError
from slicewise.slicing.rows.session_rows import session_starts
from slicewise.windows import Context
from tests.slicing.running import TYPES, assert_same, assert_same_in_order, run_operator, run_oracle
from tests.slicing.strategies import any_windows, row_sessions, rows, steps

MINUTE = 60_000_000
UTC = pa.timestamp("us", "UTC")


def counted(window, times, columns=None, **settings):
    """Start, end and number of rows of all windows over rows."""
    op = sw.Workload("t", **settings).query("q", window, n=sw.count()).operator()
    op.process_batch({"t": times, **(columns or {})})
    return [(r.start, r.end, r.values["n"]) for r in op.close()]


# Limited length


def test_a_row_that_comes_max_length_after_the_first_starts_the_next_session():
    window = sw.session(5, max_length=10)
    assert counted(window, [0, 4, 8, 9]) == [(0, 10, 4)]  # last + gap would be 14
    assert counted(window, [0, 4, 8, 10]) == [(0, 10, 3), (10, 15, 1)]
    assert counted(window, [0, 4, 8, 12, 17, 18]) == [(0, 10, 3), (12, 22, 3)]
    assert counted(window, [0, 2, 9]) == [(0, 7, 2), (9, 14, 1)]
    assert counted(sw.session(5, max_length=2), [0, 1, 2, 3, 4]) == [(0, 2, 2), (2, 4, 2), (4, 6, 1)]


def test_a_row_that_belongs_to_no_session_is_not_late():
    op = sw.Workload("t").query("q", sw.session(sw.expr("v")), n=sw.count()).operator(types={"v": "bigint"})
    op.advance(10)
    op.process_batch({"t": [1, 2, 3], "v": pa.array([None, 0, 1], pa.int64())})
    assert [row.time for row in op.late()] == [3]
    assert not op.close()


def test_a_late_first_row_moves_every_later_cut():
    op = sw.Workload("t", lateness=100).query("q", sw.session(4, max_length=6), n=sw.count()).operator()
    op.process_batch({"t": [2, 4, 6, 8, 10, 12]})
    assert [(r.start, r.end, r.change, r.values["n"]) for r in op.advance(30)] == [
        (2, 8, "insert", 3),
        (8, 14, "insert", 3),
    ]
    op.process(0, {})
    assert [(r.start, r.end, r.change, r.values["n"]) for r in op.advance(30)] == [
        (2, 8, "retract", None),
        (8, 14, "retract", None),
        (0, 6, "insert", 3),
        (6, 12, "insert", 3),
        (12, 16, "insert", 1),
    ]


def test_a_session_is_reported_when_no_row_can_join_it_any_more():
    """Past its end where the gap ends it, as of other sessions; at its end where its length does."""
    for window, end, due in ((sw.session(5, max_length=100), 9, 10), (sw.session(5, max_length=6), 6, 6)):
        op = sw.Workload("t").query("q", window, n=sw.count()).operator()
        op.process_batch({"t": [0, 4]})
        assert not op.advance(due - 1)
        assert [(r.start, r.end) for r in op.advance(due)] == [(0, end)]


def test_rows_that_are_final_stand_in_one_slice():
    op = sw.Workload("t").query("q", sw.session(5, max_length=10**6), n=sw.count()).operator()
    for t in range(0, 1000, 4):
        op.process(t, {})
        op.advance(t)
    assert (op.stats().slices, op.stats().tuples) == (1, 1)
    assert [(r.start, r.end, r.values["n"]) for r in op.close()] == [(0, 1001, 250)]


@pytest.mark.parametrize("window", [sw.session("5 minutes", max_length="2 hours"), sw.session(sw.expr("pause"))])
def test_explain_says_that_rows_are_stored_and_slices_split(window):
    assert window.context is Context.FORWARD_FREE
    text = re.sub(r"\s+", " ", sw.Workload("t").query("q", window, n=sw.count()).explain())
    assert "store tuples? yes query 'q' is context aware: a row out of order may move its edges" in text
    assert "split slices? yes query 'q' is context aware: a row out of order may place an edge" in text
    assert repr(window) in text
    # Without order columns, rows in order need neither.
    text = re.sub(r"\s+", " ", sw.Workload("t").query("q", window, n=sw.count()).explain(ordered=True))
    assert "store tuples? no" in text


# A gap for every row


def test_a_session_lasts_until_no_row_waits_any_more():
    window = sw.session(sw.expr("pause"))
    assert counted(window, [0, 3, 20, 21], {"pause": [5, 30, 1, 1]}) == [(0, 33, 4)]
    assert counted(window, [0, 3, 9], {"pause": [5, 1, 1]}) == [(0, 5, 2), (9, 10, 1)]
    assert counted(window, [0, 5], {"pause": [5, 1]}) == [(0, 6, 2)]  # exactly one gap later


def test_rows_without_a_gap_belong_to_no_session():
    window = sw.session(sw.expr("pause"))
    op = sw.Workload("t").query("q", window, n=sw.count(), s=sw.sum("v")).operator()
    op.process_batch({"t": [0, 1, 2, 3, 40], "pause": pa.array([5, None, 0, -7, None]), "v": [1, 2, 4, 8, 16]})
    assert [(r.start, r.end, r.values) for r in op.close()] == [(0, 5, {"n": 1, "s": 1})]
    assert not op.late()


def test_gaps_are_texts_or_durations_where_time_is_timestamps():
    times = pa.array([0, 4 * MINUTE, 40 * MINUTE, 100 * MINUTE, 200 * MINUTE], pa.int64()).cast(UTC)
    expected = [(0, 64 * MINUTE, 3), (100 * MINUTE, 105 * MINUTE, 1)]
    texts = ["5 minutes", "1 hour", "interval 30 seconds", "5 min", "soon"]
    assert counted(sw.session(sw.expr("pause")), times, {"pause": texts}) == expected
    lengths = pa.array([5, 60, 0.5, 5, None]).to_pylist()
    durations = [None if m is None else dt.timedelta(minutes=m) for m in lengths]
    column = pa.array(durations, pa.duration("us"))
    assert counted(sw.session(sw.expr("pause")), times, {"pause": column}) == expected
    by_kind = sw.expr("case when kind = 'video' then '1 hour' when kind = 'page' then '5 minutes' end")
    kinds = ["page", "video", "page", "page", "none"]
    assert counted(sw.session(by_kind), times, {"kind": kinds}) == [
        (0, 64 * MINUTE, 3),
        (100 * MINUTE, 105 * MINUTE, 1),
    ]


@pytest.mark.parametrize(("unit", "size"), [("seconds", 1), ("milliseconds", 1000), ("nanoseconds", 10**9)])
def test_gaps_go_into_the_unit_of_the_time_column(unit, size):
    window = sw.session(sw.expr("pause"), max_length="1 hour")
    times = [0, 4 * size, 300 * size, 3599 * size, 3600 * size]
    texts = ["5 seconds", "10 minutes", "2 hours", "1 second", "1 second"]
    expected = [(0, 3600 * size, 4), (3600 * size, 3601 * size, 1)]
    assert counted(window, times, {"pause": texts}, unit=unit) == expected
    integers = [5 * size, 600 * size, 7200 * size, size, size]
    assert counted(window, times, {"pause": integers}, unit=unit) == expected


def test_gaps_that_reach_beyond_time_never_end():
    times = pa.array([0, 10**15], pa.int64()).cast(UTC)
    ((start, end, n),) = counted(sw.session(sw.expr("pause")), times, {"pause": ["20000000 days", "1 second"]})
    assert (start, end, n) == (0, 2**60, 2)


# Against the definition


def by_definition(key, time, reach, longest):
    """One row after the other."""
    starts, of_key, first, latest = [], None, 0, 0
    for i, (k, t, r) in enumerate(zip(key, time, reach, strict=True)):
        if k != of_key or t > latest or t - first >= longest:
            starts.append(i)
            of_key, first, latest = k, t, r
        else:
            latest = max(latest, r)
    return starts


@given(st.data(), st.integers(1, 30), st.booleans())
def test_session_starts_are_those_of_one_pass(data, longest, even):
    drawn = data.draw(st.lists(st.tuples(st.integers(0, 2), st.integers(-40, 40), st.integers(1, 20)), max_size=40))
    drawn.sort(key=lambda row: row[:2])
    key, time, gap = (np.array([row[i] for row in drawn], np.int64) for i in range(3))
    reach = time + (7 if even else gap)
    found = session_starts(key, time, reach, longest)
    assert found.tolist() == by_definition(key.tolist(), time.tolist(), reach.tolist(), longest)


@st.composite
def workloads(draw):
    """Sessions of rows, perhaps beside another window."""
    workload = sw.Workload(
        "t", keys=draw(st.sampled_from([[], ["k"]])), lateness=draw(st.sampled_from([0, 3, 15, 1000]))
    )
    for i in range(draw(st.integers(1, 2))):
        workload = workload.query(f"s{i}", draw(row_sessions()), n=sw.count(), s=sw.sum("v"), words=sw.concat("w"))
    return workload.query("other", draw(any_windows()), n=sw.count()) if draw(st.booleans()) else workload


@given(workloads(), steps(), st.booleans(), st.booleans())
def test_every_epoch_gives_the_oracles_results(workload, epochs, one_by_one, restored):
    def again(op):
        return workload.operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot()))) if restored else op

    op = workload.operator(types=TYPES)
    expected, _ = run_oracle(workload, epochs)
    assert_same(run_operator(op, epochs, one_by_one=one_by_one, between=again), expected)


@given(workloads(), st.lists(rows(), max_size=25), st.data())
def test_an_ordered_stream_reports_each_session_as_soon_as_it_ends(workload, stream, data):
    assert_same_in_order(workload, stream, data)


@given(st.integers(1, 10), steps())
def test_a_length_that_is_never_reached_and_equal_gaps_are_a_session(gap, epochs):
    epochs = [(chunks, None) for chunks, mark in epochs if mark is None]  # no row is late to one of them alone
    plain = sw.Workload("t", keys=["k"]).query("q", sw.session(gap), n=sw.count(), s=sw.sum("v"))
    expected = run_operator(plain.operator(types=TYPES), epochs)
    for window in (sw.session(gap, max_length=10**6), sw.session(sw.expr(str(gap)))):
        workload = sw.Workload("t", keys=["k"]).query("q", window, n=sw.count(), s=sw.sum("v"))
        assert_same(run_operator(workload.operator(types=TYPES), epochs), expected)


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.session("5 minutes", max_length="0 hours"), "`max_length` must be positive; got '0 hours'"),
        (
            lambda: sw.session("5 minutes", max_length=sw.rows(5)),
            "`max_length` must be a length of event time; got rows(5)",
        ),
        (
            lambda: sw.session("5 minutes", max_length=7),
            "`max_length` must be in the measure of `gap`; got 7 and '5 minutes'",
        ),
        (
            lambda: sw.session(sw.units(2, "km"), max_length=7),
            "`max_length` must be in the measure of `gap`; got 7 and units(2, 'km')",
        ),
        (
            lambda: sw.session("5 minutes", max_length="1 month"),
            "`max_length` is in 'month', which has no fixed length; got '1 month'; use days, as in '30 days'",
        ),
        (
            lambda: sw.Workload("t", watermark=5).query(
                "q", sw.session(sw.expr("p"), max_length="1 hour"), n=sw.count()
            ),
            "one workload has one notion of time; got durations in query 'q' and plain integers in `watermark`; use durations for a timestamp column, integers for an integer one",
        ),
    ],
)
def test_what_is_no_limit_is_refused(make, message):
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("times", "pause", "message"),
    [
        (
            [1],
            [0.5],
            "the gap expr('pause') must be a text such as '5 minutes', a duration, or an integer where time is an integer column; got double",
        ),
        (
            [dt.datetime(2024, 1, 1)],
            [5],
            "the gap expr('pause') is an integer, and the time column holds timestamps; make it a text such as '5 minutes', or a duration",
        ),
        (
            [1],
            ["5 minutes"],
            "the gap expr('pause') is string, and the time column holds integers; make it an integer, or say what those count: Workload(unit=...)",
        ),
    ],
)
def test_gaps_must_go_with_the_time_column(times, pause, message):
    op = sw.Workload("t").query("q", sw.session(sw.expr("pause")), n=sw.count()).operator()
    with pytest.raises(DataError) as caught:
        op.process_batch({"t": times, "pause": pause})
    assert str(caught.value) == message
