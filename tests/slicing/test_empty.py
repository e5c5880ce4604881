"""Windows without rows between others: against the definition, corrected by late rows, and what is refused."""

from __future__ import annotations

import datetime as dt
import pickle
import re
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import bad_rows
from slicewise.errors import DataError, QueryError, RefusedRowsError
from slicewise.slicing.rows import slides
from slicewise.testing import Oracle, fold, refusals
from tests.slicing.running import TYPES, assert_same, canonical, columns_of, key_of, run_operator, run_oracle
from tests.slicing.strategies import steps

DAY = 86_400_000_000


def per_ten(window: object = None, lateness: object = 0, **settings: object) -> sw.Workload:
    return sw.Workload("t", lateness=lateness, **settings).query(
        "q", window or sw.tumbling(10), empty=True, n=sw.count(), s=sw.sum("v")
    )


def shown(results: object) -> list[tuple[object, ...]]:
    return sorted((r.start, r.end, r.change, r.revision, r.values["n"], r.values["s"]) for r in results)


def take(op: sw.Operator, *times: int) -> None:
    op.process_batch({"t": list(times), "v": [1] * len(times)})


# What users see


def test_windows_without_rows_come_with_the_next_one_that_has_some():
    op = per_ten().operator()
    take(op, 5)
    assert shown(op.advance(10)) == [(0, 10, "insert", 0, 1, 1)]
    assert shown(op.advance(35)) == []  # nobody knows yet whether a row will follow
    take(op, 38)
    assert shown(op.advance(40)) == [
        (10, 20, "insert", 0, 0, None),
        (20, 30, "insert", 0, 0, None),
        (30, 40, "insert", 0, 1, 1),
    ]
    assert shown(op.close()) == []  # and none behind the last


def test_a_late_row_in_an_empty_window_updates_it():
    #  0    10   20   30   40
    #  x                   x         40 ends: three empty windows
    #            x                   late: the second of them was reported without rows
    op = per_ten(lateness=100).operator()
    take(op, 5, 45)
    assert len(op.advance(50)) == 5
    take(op, 22)
    assert shown(op.advance(50)) == [(20, 30, "update", 1, 1, 1)]
    take(op, 23)
    assert shown(op.advance(50)) == [(20, 30, "update", 2, 2, 2)]


def test_a_late_row_before_all_others_makes_the_windows_up_to_them():
    op = per_ten(lateness=100).operator()
    take(op, 35)
    op.advance(40)
    take(op, 5)
    assert shown(op.advance(40)) == [
        (0, 10, "insert", 0, 1, 1),
        (10, 20, "insert", 0, 0, None),
        (20, 30, "insert", 0, 0, None),
    ]


def test_a_window_that_can_be_corrected_no_more_is_still_reported_when_one_follows_it():
    op = per_ten(lateness=5).operator()
    take(op, 5)
    op.advance(1000)
    take(op, 1001)
    found = shown(op.advance(1010))
    assert [n for *_, n, _ in found] == [0] * 99 + [1]


def test_queries_with_and_without_empty_windows_share_what_is_kept():
    workload = per_ten(lateness=100).query("p", sw.tumbling(10), n=sw.count(), s=sw.sum("v"))
    op = workload.operator()
    take(op, 5, 25)
    first = op.advance(30)
    assert [(r.query, r.start) for r in canonical(first)] == [("p", 0), ("p", 20), ("q", 0), ("q", 10), ("q", 20)]
    assert op.stats().slices == 2
    take(op, 15)
    assert {(r.query, r.change, r.revision) for r in op.advance(30)} == {("q", "update", 1), ("p", "insert", 0)}


def test_every_aggregate_gives_what_it_gives_for_no_rows():
    aggregates = {"c": sw.count(), "s": sw.sum("v"), "l": sw.collect_list("v"), "h": sw.histogram("v")}
    op = sw.Workload("t").query("q", sw.tumbling(10), empty=True, **aggregates).operator()
    take(op, 5, 25)
    (between,) = [r for r in op.close() if r.start == 10]
    assert between.values == {"c": 0, "s": None, "l": [], "h": {}}


def test_a_result_column_may_be_called_empty():
    (query,) = sw.Workload("t").query("q", sw.tumbling(10), empty=sw.count(), n=sw.count()).queries
    assert list(query.aggregates) == ["empty", "n"]
    assert not query.empty


def test_what_a_query_says_of_itself():
    with_empty, without = per_ten().queries[0], sw.Workload("t").query("q", sw.tumbling(10), n=sw.count()).queries[0]
    assert repr(with_empty) == "q: tumbling(10), empty=True -> n=count(), s=sum('v')"
    assert pickle.loads(pickle.dumps(with_empty)) == with_empty
    assert hash(pickle.loads(pickle.dumps(with_empty))) == hash(with_empty)
    same = sw.Workload("t").query("q", sw.tumbling(10), empty=True, n=sw.count()).queries[0]
    assert same != without
    explained = per_ten().explain()
    assert "q  tumbling(10), empty=True" in explained
    assert "and of each key the first and the last window with rows, all between being reported: q" in explained


def test_days_of_a_calendar_follow_each_other_where_clocks_change():
    zone = "Europe/Berlin"
    workload = sw.Workload("t").query("q", sw.tumbling("1 day", zone=zone), empty=True, n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [dt.datetime(2024, 3, 29, 12, tzinfo=dt.UTC), dt.datetime(2024, 4, 2, 12, tzinfo=dt.UTC)]})
    found = sorted((r.start, r.end, r.values["n"]) for r in op.close())
    assert [n for *_, n in found] == [1, 0, 0, 0, 1]
    assert [(end - start) * 24 / DAY for start, end, _ in found] == [24, 24, 23, 24, 24]


# Refused


@pytest.mark.parametrize(
    "window",
    [
        sw.session(5),
        sw.tumbling(sw.rows(5)),
        sw.tumbling(sw.units(5, "km")),
        sw.landmark(every=5, since=0),
        sw.between(0, 10),
        sw.trailing(10),
        sw.edges([(0, 10), (20, 30)]),
        sw.sliding(sw.rows(2), every=10),
        sw.punctuated("v > 0"),
    ],
    ids=repr,
)
def test_windows_that_are_not_there_without_rows_are_refused(window):
    message = (
        "query 'q': `empty` reports windows without rows, which only sw.tumbling, sw.sliding and sw.cumulative "
        f"on event time have; got {window!r}; leave `empty` out"
    )
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$") as caught:
        sw.Workload("t").query("q", window, empty=True, n=sw.count())
    assert (caught.value.parameter, caught.value.query) == ("empty", "q")


def test_what_is_neither_true_nor_false_is_refused():
    with pytest.raises(QueryError, match=r"^query 'q': `empty` must be True or False; got 1$"):
        sw.Workload("t").query("q", sw.tumbling(10), empty=1, n=sw.count())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"shape": "wide"},
            "query 'q': shape='wide' shows a row wherever any query has rows, and `empty` asks for others; leave "
            "`empty` out, or give the query a workload of its own",
        ),
        (
            {"emit": "differences"},
            "query 'q': emit='differences' shows the ticks that differ, empty ones too, and `empty` asks for others; "
            "leave `empty` out, or give the query a workload of its own",
        ),
    ],
)
def test_other_shapes_have_their_own_idea_of_empty_windows(how, message):
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$"):
        per_ten().operator(**how)


def test_attach_has_a_window_as_of_every_point_whether_it_is_empty_or_not():
    events, points = {"t": pa.array([5]), "v": pa.array([1])}, pa.table({"t": [7, 12, 33]})
    found = per_ten().attach(points, events=pa.table(events))
    assert found.column("q_n").to_pylist() == [0, 1, 0]


# Too many at once

SECONDS = "1 second"
GAP = (
    "the record of time 2024-01-13 01:46:42+00:00, key k='a': 1000001 empty windows of tumbling('1 second') would be "
    "due because of it, between it and the window that ends at 2024-01-01 12:00:01+00:00, and no record may bring more "
    "than 1000000; the record was left out. Filter such records out, take a longer `every`, or have them judged by the "
    "clock, with `ahead`"
)


def at(**passed: float) -> dt.datetime:
    return dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC) + dt.timedelta(**passed)


def seconds(**settings: object) -> sw.Workload:
    w = sw.Workload("ts", keys=["k"], **settings)
    return w.query("q", sw.tumbling(SECONDS), empty=True, n=sw.count())


@pytest.mark.parametrize("passed", [False, True])
@pytest.mark.parametrize("restored", [False, True])
def test_a_row_behind_more_than_a_million_empty_windows_is_refused(passed, restored):
    op = seconds().operator()
    op.process_batch({"ts": [at(), at(), at(seconds=2_000_000)], "k": ["a", "b", "c"]})
    if passed:
        op.advance(at(days=1))
    if restored:
        op = seconds().operator().restore(pickle.loads(pickle.dumps(op.snapshot())))
    with pytest.raises(RefusedRowsError) as caught:
        op.process_batch({"ts": [at(seconds=1_000_002), at(seconds=1)], "k": ["a", "d"]})
    assert str(caught.value) == GAP
    assert caught.value.reason == bad_rows.GAP
    assert op.stats().rows == 4
    op.process_batch({"ts": [at(seconds=1_000_001)], "k": ["a"]})
    found = op.close()
    assert sum(1 for block in found.blocks for n in block.values[0].values.tolist() if n == 0) == 1_000_000


def test_a_million_empty_windows_are_made_when_they_are_read():
    op = seconds().operator()
    op.process_batch({"ts": [at(), at(seconds=1_000_000)], "k": ["a", "a"]})
    found = op.close()
    assert len(found) == 1_000_001
    assert max(len(block) for block in found.blocks) <= 200_000
    starts = np.concatenate([block.start for block in found.blocks])
    assert (np.diff(np.sort(starts)) == 1_000_000).all()


def test_with_ahead_the_clock_judges():
    now = round(at(days=3650).timestamp() * 1e6)
    op = seconds().operator(ahead="1 hour", clock=lambda: now)
    op.process_batch({"ts": [at(), at(days=3650)], "k": ["a", "a"]})
    assert len(op.close()) == 3650 * 86_400 + 1


def test_an_old_row_far_before_all_others_is_refused_not_they():
    op = seconds(lateness="100 days").operator()
    op.process_batch({"ts": [at()], "k": ["a"]})
    op.advance(at(seconds=10))
    with pytest.raises(RefusedRowsError, match=r"1727999 empty windows .* that ends at 2024-01-01 12:00:01\+00:00"):
        op.process_batch({"ts": [at(days=-20)], "k": ["a"]})


# Against the definition

LENGTH = st.integers(1, 12)
GRIDS = st.one_of(
    st.builds(lambda n, o: sw.tumbling(n, offset=o), LENGTH, st.integers(-5, 5)),
    st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), LENGTH, LENGTH, st.integers(-5, 5)),
    st.builds(lambda e, k: sw.cumulative(e * k, every=e), st.integers(1, 5), st.integers(1, 4)),
)


@st.composite
def grid_workloads(draw: st.DrawFn) -> sw.Workload:
    keys = draw(st.sampled_from([[], ["k"]]))
    w = sw.Workload("t", keys=keys, lateness=draw(st.sampled_from([0, 4, 20, 1000])))
    for i, window in enumerate(draw(st.lists(GRIDS, min_size=1, max_size=2))):
        for empty in draw(st.sampled_from([[True], [True, False]])):
            w = w.query(f"q{i}{empty}", window, empty=empty, n=sw.count(), s=sw.sum("v"))
    if draw(st.booleans()):
        w = w.query("counts", sw.tumbling(sw.rows(3)), n=sw.count(), s=sw.sum("v"))
    return w


@given(grid_workloads(), steps(), st.integers(1, 6))
def test_rows_after_too_many_empty_windows_are_those_of_the_definition(workload, epochs, most):
    with mock.patch.object(slides, "MOST_TICKS", most), mock.patch.object(refusals, "MOST_TICKS", most):
        oracle, op = Oracle(workload), workload.operator(types=TYPES)
        for chunks, mark in epochs:
            for chunk in chunks:
                refused = {"oracle": 0, "operator": 0}
                try:
                    oracle.process_batch([(row["t"], row, key_of(workload, row)) for row in chunk])
                except DataError as error:
                    refused["oracle"] = 1 + int(re.search(r"(\d+) more are$", str(error))[1])
                try:
                    op.process_batch(columns_of(chunk))
                except RefusedRowsError as error:
                    refused["operator"] = len(error.rows)
                assert refused["oracle"] == refused["operator"]
            expected = oracle.close() if mark is None else oracle.advance(mark)
            assert_same([list(op.close() if mark is None else op.advance(mark))], [expected])


@given(grid_workloads(), GRIDS, steps(), st.data())
def test_a_query_added_later_fills_what_lies_between_windows_that_it_reports(workload, window, epochs, data):
    """Its first window with rows is the first that it reports, whatever came before."""
    at = data.draw(st.integers(0, len(epochs) - 1))
    op = workload.operator(types=TYPES)
    run_operator(op, epochs[:at])
    mark = epochs[at - 1][1] if op.stats().rows else None
    since = op.add_query("added", window, empty=True, n=sw.count(), s=sw.sum("v"))
    found = fold(r for epoch in run_operator(op, epochs[at:]) for r in epoch if r.query == "added")

    plain = workload.query("added", window, n=sw.count(), s=sw.sum("v"))
    held = fold(r for epoch in run_oracle(plain, epochs)[0] for r in epoch if r.query == "added")
    ends: dict[object, list[tuple[int, int]]] = {}
    for key, _, start, end in held:
        if (since is None or start >= since) and (mark is None or end > mark):
            ends.setdefault(key, []).append((end, start))
    for (key, _, start, end), values in found.items():
        low, high = min(ends[key]), max(ends[key])
        assert low <= (end, start) <= high
        assert values == held.get((key, "added", start, end), {"n": 0, "s": None})
    assert {(key, end, start) for key, windows in ends.items() for end, start in windows} <= {
        (key, end, start) for key, _, start, end in found
    }
    every = int(window.every.size)
    for key, windows in ends.items():
        assert sum(k == key for k, *_ in found) == (max(windows)[0] - min(windows)[0]) // every + 1


CALENDARS = st.sampled_from(
    [
        sw.tumbling("1 day", zone="Europe/Berlin"),
        sw.sliding("3 days", every="1 day", zone="Pacific/Apia"),
        sw.sliding("2 days", every="1 day", zone="Pacific/Kwajalein", offset="6 hours"),
        sw.tumbling("1 week", zone="America/New_York"),
        sw.sliding("2 months", every="1 month", zone="Europe/Berlin"),
        sw.tumbling("1 quarter", zone="UTC", offset="1 month"),
    ]
)
#: Around the days that did not take place in Samoa and on Kwajalein, and a change of clocks in Berlin.
BEGINS = [dt.datetime(2011, 12, 20), dt.datetime(1993, 8, 12), dt.datetime(2024, 3, 20)]


@given(
    CALENDARS, st.sampled_from(BEGINS), st.lists(st.lists(st.integers(0, 40), max_size=4), max_size=4), st.booleans()
)
def test_windows_of_a_calendar_are_filled_as_the_definition_says(window, begin, days, lateness):
    first = round(begin.replace(tzinfo=dt.UTC).timestamp() * 1e6)
    long = window.every.family == "month"
    w = sw.Workload("t", keys=["k"], lateness="3000 days" if lateness else 0)
    w = w.query("q", window, empty=True, n=sw.count())
    oracle, op = Oracle(w), w.operator(types={"k": pa.string()})
    for number, some in enumerate([*days, []]):
        times = [first + (day + number * 15) * DAY * (15 if long else 1) // 2 for day in some]
        if times:
            op.process_batch({"t": pa.array(times, pa.timestamp("us", "UTC")), "k": ["a"] * len(times)})
        oracle.process_batch([(t, {}, ("a",)) for t in times])
        mark = first + (number * 15 + 20) * DAY * (15 if long else 1) // 2
        assert_same([list(op.advance(mark))], [oracle.advance(mark)])
        op = w.operator(types={"k": pa.string()}).restore(op.snapshot())
    assert_same([list(op.close())], [oracle.close()])
