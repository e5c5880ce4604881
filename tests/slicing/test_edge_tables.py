"""Windows from tables and schedules: what they cost, what a state goes on with, keys, and what is refused."""

# ruff: noqa: E501  (messages stand in one line)

from __future__ import annotations

import datetime as dt
import pickle
import re
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, QueryError, StateError
from slicewise.slicing.time import listed
from slicewise.slicing.time.listed import ListedWindows
from slicewise.testing import Oracle, fold
from slicewise.windows import Context, listings
from tests.matrices import matrix
from tests.slicing.families import Hills, tables

HOUR = 3_600_000_000


def day(n: int) -> dt.datetime:
    return dt.datetime(2024, 1, n, tzinfo=dt.UTC)


def counted(workload: sw.Workload, batches: list[dict], *, ordered: bool = False):
    """What an operator reports and has counted, after each batch and at the end."""
    op = workload.operator(ordered=ordered)
    results, stats = [], []
    for batch in batches:
        results += op.process_batch(batch)
        if not ordered:
            results += op.advance(max(batch["t"]) - 5)
        stats.append(op.stats())
    results += op.close()
    return results, [*stats, op.stats()]


# What it costs


@matrix(window=[(10, 10), (20, 5), (4, 7)], keys=[(), ("k",)], lateness=[0, 30], ordered=[False, True])
def test_a_table_costs_no_row_slice_or_combine_more_than_the_same_windows_by_arithmetic(
    window, keys, lateness, ordered
):
    length, every = window
    rng = np.random.default_rng(4)
    times = np.arange(4000) // 4 if ordered else np.arange(4000) // 4 - rng.integers(0, 6, 4000)
    rows = {"t": times.tolist(), "v": rng.integers(0, 9, 4000).tolist(), "k": rng.integers(0, 5, 4000).tolist()}
    batches = [{name: column[at : at + 250] for name, column in rows.items()} for at in range(0, 4000, 250)]
    by_rule = sw.sliding(length, every=every)
    by_table = sw.edges([(s, s + length) for s in range(-100 * every, 1100, every)])
    found = []
    for window in (by_rule, by_table):
        workload = sw.Workload("t", keys=keys, lateness=lateness)
        workload = workload.query("q", window, total=sw.sum("v"), top=sw.max("v"))
        found.append(counted(workload, batches, ordered=ordered))
    (expected, costs), (results, of_table) = found
    assert fold(results) == fold(expected)
    for mine, other in zip(of_table, costs, strict=True):
        for name in ("slices", "tuples", "rows", "results", "lifts", "combines", "merges", "updates", "splits"):
            assert getattr(mine, name) == getattr(other, name), name


def test_slices_are_shared_with_other_queries():
    table = sw.edges([(s, s + 10) for s in range(0, 100, 10)])
    workload = sw.Workload("t").query("rule", sw.tumbling(5), n=sw.count())
    op = workload.query("table", table, n=sw.count()).operator()
    op.process_batch({"t": list(range(100))})
    assert op.stats().slices == 20
    assert len(op.close()) == 30


def test_windows_are_context_free_and_explain_says_so():
    workload = sw.Workload("t").query("shifts", sw.edges([(0, 8), (8, 16)]), n=sw.count())
    workload = workload.query("hills", sw.edges(Hills()), n=sw.count())
    text = workload.explain()
    assert text.count("context free, on") == 2
    assert "edges('start', 'end')" in text
    assert "edges(Hills)" in text
    assert "the edges of 2 lists of windows, each cut once" in re.sub(r"\s+", " ", text)
    assert all(q.window.context is Context.FREE for q in workload.queries)


# Forms of tables


FORMS = {
    "pairs": [(9, 17), (33, 41)],
    "mappings": [{"start": 9, "end": 17}, {"start": 33, "end": 41}],
    "mapping": {"start": [9, 33], "end": np.array([17, 41])},
    "arrow": pa.table({"end": [17, 41], "start": [9, 33]}),
    "batch": pa.record_batch({"start": pa.array([9, 33], pa.int16()), "end": [17, 41]}),
    "pandas": pd.DataFrame({"start": [33, 9], "end": [41, 17]}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_table_is_the_same_window(form):
    window = sw.edges(FORMS[form])
    assert window == sw.edges([(33, 41), (9, 17)])
    assert hash(window) == hash(pickle.loads(pickle.dumps(window)))
    assert window != sw.edges([(9, 17), (33, 42)])
    assert [(s, e) for s, e, _ in window.table.rows()] == [(9, 17), (33, 41)]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "feather"])
def test_a_table_may_be_a_file(tmp_path, suffix):
    table = pd.DataFrame({"start": [day(1), day(2)], "end": [day(2), day(3)], "k": ["a", "b"]})
    path = tmp_path / f"days.{suffix}"
    {"parquet": table.to_parquet, "feather": table.to_feather, "csv": lambda p: table.to_csv(p, index=False)}[suffix](
        path
    )
    window = sw.edges(str(path))
    assert window.table.keys == ("k",)
    assert [(s // HOUR, e // HOUR) for s, e, _ in sw.edges(path).table.rows()] == [
        (s // HOUR, e // HOUR) for s, e, _ in sw.edges(table).table.rows()
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_of_every_resolution(unit):
    bounds = {"start": np.array([1, 2], f"M8[{unit}]"), "end": np.array([2, 3], f"M8[{unit}]")}
    if unit == "ns":
        with pytest.raises(QueryError, match=r"^`start` must hold whole microseconds"):
            sw.edges(bounds)
    else:
        size = {"s": 10**6, "ms": 1000, "us": 1}[unit]
        assert sw.edges(bounds).table.rows() == [(size, 2 * size, {}), (2 * size, 3 * size, {})]


def test_texts_dates_and_datetimes_are_points_in_time():
    texts = sw.edges([("2024-01-01", "2024-01-02")])
    assert texts.table.list.start[0] == 1_704_067_200_000_000
    assert sw.edges([(dt.date(2024, 1, 1), dt.date(2024, 1, 2))]) == texts
    op = sw.Workload("ts").query("day", sw.edges([(day(1), day(2))]), n=sw.count()).operator()
    op.process_batch({"ts": [day(1), day(1) + dt.timedelta(hours=5), day(2)]})
    (result,) = op.close()
    assert (result.start, result.end, result.values) == (texts.table.list.start[0], texts.table.list.end[0], {"n": 2})


def test_integers_are_in_the_unit_of_the_time_column():
    workload = sw.Workload("t", unit="seconds").query("shift", sw.edges([(0, 60), (60, 90)]), n=sw.count())
    op = workload.query("minute", sw.tumbling("1 minute"), n=sw.count()).operator()
    op.process_batch({"t": [10, 70, 95]})
    assert sorted((r.query, r.start, r.end, r.values["n"]) for r in op.close()) == [
        ("minute", 0, 60, 1),
        ("minute", 60, 120, 2),
        ("shift", 0, 60, 1),
        ("shift", 60, 90, 1),
    ]


# Keys


def test_a_key_that_is_not_in_the_table_has_no_windows_and_its_rows_are_never_late():
    table = sw.edges({"start": [0, 5], "end": [10, 15], "k": ["a", None]})
    op = sw.Workload("t", keys=["k"]).query("q", table, n=sw.count()).operator()
    op.process_batch({"t": [1, 1, 6, 6], "k": ["a", "b", None, "a"]})
    results = list(op.advance(20))
    assert sorted((r.key[0] or "", r.start, r.end, r.values["n"]) for r in results) == [("", 5, 15, 1), ("a", 0, 10, 2)]
    op.process_batch({"t": [2, 2, 12, 12], "k": ["a", "b", "a", None]})
    assert list(op.advance(30)) == []
    assert sorted((row.time, row.row["k"]) for row in op.late()) == [(2, "a"), (12, None)]


def test_windows_by_some_of_the_keys():
    table = sw.edges({"start": [0, 100], "end": [10, 110], "exchange": ["X", "Y"]})
    workload = sw.Workload("t", keys=["symbol", "exchange"]).query("day", table, n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3, 103, 1], "symbol": list("ababa"), "exchange": list("XXXYY")})
    assert sorted((r.key, r.start, r.values["n"]) for r in op.close()) == [
        (("a", "X"), 0, 2),
        (("b", "X"), 0, 1),
        (("b", "Y"), 100, 1),
    ]


def test_keys_that_come_and_go_keep_their_windows():
    table = sw.edges({"start": list(range(3000)), "end": [n + 2 for n in range(3000)], "k": list(range(3000))})
    workload = sw.Workload("t", keys=["k"]).query("q", table, n=sw.count())
    op, seen = workload.operator(), []
    for n in range(0, 3000, 50):
        op.process_batch({"t": list(range(n, n + 50)), "k": list(range(n, n + 50))})
        seen += op.advance(n + 49)
    seen += op.close()
    assert [(r.key, r.start, r.end, r.values["n"]) for r in seen] == [((n,), n, n + 2, 1) for n in range(3000)]


# Schedules


class Recording(Hills):
    """A schedule that remembers how much of it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def windows(self, after, upto):
        if (after, upto) != (-20_000, 20_000):
            assert -(2**60) - 1 <= after < upto <= 2**60 + 1
            self.asked.append((after, upto))
        return super().windows(after, upto)


def test_a_schedule_is_asked_about_the_times_of_rows_only_and_not_for_every_batch():
    schedule = Recording()
    op = sw.Workload("t", lateness=20).query("q", sw.edges(schedule), n=sw.count()).operator()
    oracle = Oracle(op.workload)
    results, expected = [], []
    for at in range(0, 2000, 5):
        times = [at, at + 4, at - 3]
        op.process_batch({"t": times})
        oracle.process_batch([(t, {}, ()) for t in times])
        schedule_calls = list(schedule.asked)
        results += op.advance(at)
        expected += oracle.advance(at)
        schedule.asked = schedule_calls  # what the oracle asks is not counted
    asked = [width for width in schedule.asked if width[1] - width[0] > 1]
    results += op.advance(2**55)
    expected += oracle.advance(2**55)
    assert fold(results) == fold(expected)
    assert len(asked) < 100
    assert all(upto - after < 20_000 for after, upto in asked)


class Counting:
    """A schedule of tens without end, which counts the windows that it was asked for."""

    def __init__(self):
        self.listed = 0

    def next_edge(self, t):
        return t // 10 * 10 + 10

    def windows(self, after, upto):
        start = np.arange(after // 10, -(-upto // 10)) * 10
        self.listed += len(start)
        assert len(start) < 10**6
        return list(zip(start.tolist(), (start + 10).tolist(), strict=True))


@matrix(size=[1, 1000], keys=[(), ("k",)])
def test_a_row_far_ahead_lists_no_windows_in_between(keys, size):
    """Ten thousand years of seconds would be more than there is room for; nothing is lost, before or behind."""
    schedule, far = Counting(), 10**17
    base = sw.Workload("t", keys=keys, lateness=50)
    both = [base.query("q", w, n=sw.count()).operator() for w in (sw.edges(schedule), sw.tumbling(10))]
    near = list(range(700))
    times = [*near[:350], far, *near[350:], -far, far + 25, far + 7]
    found = []
    for op in both:
        results, watermark = [], -far
        for at in range(0, len(times), size):
            some = times[at : at + size]
            results += op.process_batch({"t": some, "k": [t % 3 for t in some]})
            watermark = max([watermark, *(t for t in some if t < far)])
            results += op.advance(watermark)
        restored = base.query("q", op.workload.queries[0].window, n=sw.count()).operator().restore(op.snapshot())
        restored.process_batch({"t": [far + 40], "k": [0]})
        found.append(fold([*results, *restored.advance(800), *restored.close()]))
    assert found[0] == found[1]
    assert len(found[0]) > 70
    assert schedule.listed < 400_000


def test_a_row_far_ahead_of_rows_in_order_lists_no_windows_in_between():
    schedule, far = Counting(), 10**17
    for window in (sw.edges(schedule), sw.tumbling(10)):
        op = sw.Workload("t").query("q", window, n=sw.count()).operator(ordered=True)
        results = [*op.process_batch({"t": [1, 2, 35, far]}), *op.process(far + 1, {}), *op.process(far + 90, {})]
        seen = [(r.start, r.values["n"]) for r in [*results, *op.close()]]
        assert seen == [(0, 2), (30, 1), (far, 2), (far + 90, 1)]
    assert schedule.listed < 10_000


def batches_of_times():
    """Batches of event times in any order, some far from the others, each with a watermark that never goes back."""
    times = st.one_of(st.integers(-60, 60), st.integers(-3000, 3000))
    batch = st.tuples(st.lists(times, min_size=1, max_size=8), st.integers(0, 400))
    return st.lists(batch, min_size=1, max_size=8).map(
        lambda drawn: [(times, sum(step for _, step in drawn[: i + 1]) - 700) for i, (times, _) in enumerate(drawn)]
    )


@given(batches_of_times(), st.sampled_from([0, 3, 40]), st.integers(1, 30))
def test_schedules_that_are_listed_around_rows_give_the_same(batches, lateness, most):
    """As if a handful of edges were very many: what lies between rows is left out all the time."""
    workload = sw.Workload("t", lateness=lateness).query("q", sw.edges(Hills()), n=sw.count())
    workload = workload.query("other", sw.edges(Counting()), n=sw.count())
    op, oracle = workload.operator(), Oracle(workload)
    with mock.patch.object(listings, "MOST_BETWEEN", most), mock.patch.object(listed, "EDGES_AHEAD", 1):
        for times, watermark in batches:
            op.process_batch({"t": np.array(times, np.int64)})
            oracle.process_batch([(t, {}, ()) for t in times])
            assert fold(op.advance(watermark)) == fold(oracle.advance(watermark))
        assert fold(op.close()) == fold(oracle.close())


def test_two_functions_are_a_schedule():
    hills = Hills()

    def next_edge(t):
        return hills.next_edge(t)

    def windows(after, upto):
        return hills.windows(after, upto)

    window = sw.edges(next_edge=next_edge, windows=windows)
    assert repr(window).startswith("edges(next_edge=test_two_functions")
    one, other = (
        sw.Workload("t").query("q", w, n=sw.count()).operator(ordered=True) for w in (window, sw.edges(Hills()))
    )
    found = []
    for op in (one, other):
        results = [r for t in range(-50, 100, 3) for r in op.process(t, {})]
        found.append(fold([*results, *op.close()]))
    assert found[0] == found[1] != {}


class Broken:
    def __init__(self, edge=None, windows=()):
        self.edge, self.listed = edge, windows

    def next_edge(self, t):
        return self.edge if self.edge is None else self.edge(t)

    def windows(self, after, upto):
        return self.listed


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Broken(lambda t: t - 3), r"^`next_edge\(5\)` of Broken must be later than 5; got 2; give the least start or end "),
        (Broken(lambda t: t), r"^`next_edge\(5\)` of Broken must be later than 5; got 5"),
        (Broken(lambda t: t + 0.5), "^`next_edge` must hold timestamps, dates or integers, .*; got double$"),
        (Broken(None, [(5, 4)]), r"^`windows\(5, 6\)` of Broken: `end` must lie after `start`; window 0 of .* is \[5, 4\)$"),
        (Broken(None, [(0, 9), (0, 9)]), r"^`windows\(5, 6\)` of Broken has the window \[0, 9\) twice$"),
        (Broken(None, [(0, None)]), r"^`windows\(5, 6\)` of Broken: `end` of window 0 is null"),
        (Broken(None, {"start": [0], "end": [9], "k": [1]}), r"of Broken: there is a column 'k' beside `start` and `end`"),
    ],
)  # fmt: skip
def test_a_schedule_that_does_not_make_sense_is_refused_and_no_row_is_lost(schedule, message):
    op = sw.Workload("t").query("q", sw.edges(schedule), n=sw.count()).operator()
    with pytest.raises(QueryError, match=message):
        op.process_batch({"t": [5, 5]})
    schedule.edge, schedule.listed = None, [(0, 9)]
    assert list(op.process_batch({"t": [5]})) == []
    assert [(r.start, r.end, r.values["n"]) for r in op.advance(20)] == [(0, 9, 1)]


# State


def state_of(table, *, times=(1, 5, 12), watermark=10, **settings):
    op = sw.Workload("t", **settings).query("q", table, n=sw.count()).operator()
    op.process_batch({"t": list(times)})
    results = list(op.advance(watermark))
    return op.snapshot(), results


def go_on(table, snapshot, times=(13, 25), **settings):
    op = sw.Workload("t", **settings).query("q", table, n=sw.count()).operator()
    op.restore(snapshot)
    op.process_batch({"t": list(times)})
    return [(r.start, r.end, r.values["n"]) for r in op.close()]


YEAR = [(0, 8), (8, 16)]


def test_a_state_goes_on_with_a_table_that_has_grown():
    snapshot, _ = state_of(sw.edges(YEAR))
    assert go_on(sw.edges([(24, 30), *reversed(YEAR)]), snapshot) == [(8, 16, 2), (24, 30, 1)]
    assert go_on(sw.edges(YEAR), snapshot) == [(8, 16, 2)]


@pytest.mark.parametrize("other", [[(0, 7), (8, 16)], [(8, 16)], [(0, 8), (8, 17)], [(0, 8), (8, 16), (2, 9)]])
def test_a_state_does_not_go_on_with_other_windows_before_its_watermark(other):
    snapshot, _ = state_of(sw.edges(YEAR))
    with pytest.raises(StateError, match=r"^the edges of query 'q' are not those that the state was written with"):
        go_on(sw.edges(other), snapshot)


def test_windows_after_the_watermark_may_change_where_no_row_has_come_yet():
    snapshot, _ = state_of(sw.edges([*YEAR, (40, 50)]))
    assert go_on(sw.edges([*YEAR, (20, 30)]), snapshot) == [(8, 16, 2), (20, 30, 1)]


def test_a_window_that_is_added_among_rows_that_came_already_is_refused():
    snapshot, _ = state_of(sw.edges(YEAR), times=(1, 17, 22), watermark=16)
    assert go_on(sw.edges([*YEAR, (16, 30)]), snapshot) == [(16, 30, 3)]
    with pytest.raises(
        StateError, match=r"have a new start or end at 20, and rows around it have come already: from 17"
    ):
        go_on(sw.edges([*YEAR, (20, 30)]), snapshot)


def test_a_window_that_is_added_where_rows_have_left_already_is_refused():
    snapshot, _ = state_of(sw.edges([*YEAR, (40, 50)]), times=(1, 17, 22), watermark=16)
    with pytest.raises(StateError, match=r"have a new window that starts at 16, and rows up to 22 have come and left"):
        go_on(sw.edges([*YEAR, (16, 30), (40, 50)]), snapshot)


def test_a_schedule_whose_open_windows_are_others_is_refused():
    class Moved(Hills):
        def windows(self, after, upto):
            return [(s + 1, e) for s, e in super().windows(after, upto)]

    Moved.__qualname__ = "Hills"
    snapshot, _ = state_of(sw.edges(Hills()))
    assert go_on(sw.edges(Hills()), snapshot)
    with pytest.raises(StateError, match=r"^the edges of query 'q' are not those"):
        go_on(sw.edges(Moved()), snapshot)


def test_revisions_of_two_tables_are_not_mixed_up_when_a_query_leaves():
    one, other = sw.edges([(0, 10)]), sw.edges([(0, 10), (10, 20)])
    workload = sw.Workload("t", lateness=50).query("one", one, n=sw.count()).query("other", other, n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [1, 12]})
    op.advance(20)
    op.process_batch({"t": [2, 13]})
    assert sorted((r.query, r.start, r.revision) for r in op.advance(20)) == [
        ("one", 0, 1),
        ("other", 0, 1),
        ("other", 10, 1),
    ]
    op2 = workload.without("one").operator()
    op2.restore(op.snapshot())
    op2.process_batch({"t": [3, 14]})
    assert sorted((r.query, r.start, r.revision) for r in op2.advance(20)) == [("other", 0, 2), ("other", 10, 2)]


@given(tables(st.sampled_from("ab")), st.integers(-60, 100), st.permutations(range(4)))
def test_the_name_of_what_has_begun_does_not_depend_on_the_order_of_rows_nor_on_later_windows(window, until, order):
    rows = [(s, e, key["k"]) for s, e, key in window.table.rows()]
    more = [*rows, *((max(until, 60) + n, max(until, 60) + 9, key) for n, key in zip(order, "abcd", strict=True))]
    again = sw.edges({n: [row[i] for row in reversed(more)] for i, n in enumerate(("start", "end", "k"))})
    assert again.table.digest(0, until) == window.table.digest(0, until)
    fewer = rows[1:]
    if fewer and rows[0][0] < until:
        less = sw.edges({n: [row[i] for row in fewer] for i, n in enumerate(("start", "end", "k"))})
        assert less.table.digest(0, until) != window.table.digest(0, until)


def test_windows_that_lie_inside_each_other_are_found_however_many():
    boxes = [(n, 400 - n) for n in range(200)]
    op = sw.Workload("t").query("q", sw.edges(boxes), n=sw.count()).operator()
    op.process_batch({"t": [0, 100, 199, 399]})
    assert len(ListedWindows([op.workload.queries[0].window.listing])) == 200
    found = {(r.start, r.end): r.values["n"] for r in op.close()}
    assert found == {(s, e): sum(s <= t < e for t in (0, 100, 199, 399)) for s, e in boxes if (s, e) != (200, 200)}


# Bad input


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (None, "edges take a table with `start` and `end`, a schedule, or two functions next_edge= and windows=; got nothing"),
        (7, "edges take an Arrow table, a pandas or Spark DataFrame, a mapping of arrays with `start` and `end`, or a list of "
            "(start, end); got int"),
        ([], "a table of edges needs at least one window; got none"),
        ([(1, 2, 3)], "a list of edges holds pairs (start, end); got (1, 2, 3) at 0; with keys, give a table or a list of mappings"),
        ([(0, 10), (20, 20)], "`end` must lie after `start`; window 1 of the table is [20, 20)"),
        ([("2024-01-02", "2024-01-01")], "`end` must lie after `start`; window 0 of the table is [2024-01-02 00:00:00, "
            "2024-01-01 00:00:00)"),
        ([(0, 10), (5, 8), (0, 10)], "the window [0, 10) is in the table of edges twice; leave one out"),
        ({"start": [0, 0], "end": [9, 9], "k": ["a", "a"]}, "the window [0, 9) of k='a' is in the table of edges twice; leave one out"),
        ([(0.5, 10.0)], "`start` must hold timestamps, dates or integers, as the time column does; got double"),
        ([(True, 10)], "`start` must hold timestamps, dates or integers, as the time column does; got bool"),
        ([(0, None)], "`end` of window 0 is null; every window has a start and an end"),
        ([(0, 2**62)], "`end` of window 0 is 4611686018427387904, further than event times reach"),
        ([(0, 2**64)], "`end` must hold timestamps or integers of 64 bits; got 18446744073709551616"),
        ([(0, 5), (6, "now")], "`end` must hold timestamps or integers of 64 bits; got int and str"),
        ([(0, "2024-01-01")], "`start` and `end` must be of the same kind; got integers and timestamps"),
        ({"start": [day(1)], "end": [dt.datetime(2024, 1, 2)]}, "`start` and `end` must be of the same kind; got timestamps with a "
            "time zone and timestamps without a time zone"),
        ({"begin": [0], "end": [1]}, "a table of edges needs a column 'start'; known: 'begin', 'end'"),
        ({"start": [0, 1], "end": [1]}, "`start` and `end` must be as long as each other; got 2 and 1"),
        ({"start": [0], "end": [1], "k": [1, 2]}, "column 'k' of the table of edges has 2 values for 1 windows"),
        ({"start": [0], "end": [1], "k": [0.5]}, "column 'k' of the table of edges is double, and a key of edges is a text, an "
            "integer, a date or another type whose values can be looked up"),
        ("nowhere.parquet", None),
        ("nowhere.txt", "a table of edges is read from a file that ends in .parquet, .csv, .json, .jsonl, .feather, .arrow; got "
            "'nowhere.txt'"),
    ],
)  # fmt: skip
def test_tables_that_are_no_windows_are_refused_by_name(table, message):
    expected = re.escape(message) + "$" if message else "^the table of edges 'nowhere.parquet' cannot be read: "
    with pytest.raises(QueryError, match=expected):
        sw.edges(table)


def test_what_is_no_schedule_is_refused():
    class Half:
        def next_edge(self, t):
            return None

    with pytest.raises(
        QueryError, match=r"^a schedule has `next_edge\(t\)` and `windows\(after, upto\)`; .*Half.* has no `windows`$"
    ):
        sw.edges(Half())
    with pytest.raises(QueryError, match=r"^`windows` must be a function; got None; a schedule is both"):
        sw.edges(next_edge=len)
    with pytest.raises(QueryError, match=r"^edges take a table or functions, not both"):
        sw.edges([(0, 1)], next_edge=len, windows=len)


def test_columns_that_are_no_keys_are_refused():
    table = sw.edges({"start": [0], "end": [9], "venue": ["X"]})
    with pytest.raises(
        QueryError,
        match=r"^query 'q': the table of edges has a column 'venue', which is no key of the workload: it has no keys$",
    ):
        sw.Workload("t").query("q", table, n=sw.count())
    with pytest.raises(QueryError, match=r"which is no key of the workload: its keys are 'exchange'"):
        sw.Workload("t", keys=["exchange"]).query("q", table, n=sw.count())


def test_other_types_than_those_of_the_rows_are_refused():
    table = sw.edges({"start": [0], "end": [9], "k": ["1"]})
    op = sw.Workload("t", keys=["k"]).query("q", table, n=sw.count()).operator()
    with pytest.raises(
        DataError, match=r"^key 'k' is int64 in rows and string in the table of edges, so that no row would"
    ):
        op.process_batch({"t": [1], "k": [1]})
    with pytest.raises(DataError, match=r"holds timestamp.*, but the windows are given in plain integers"):
        sw.Workload("t").query("q", sw.edges([(0, 9)]), n=sw.count()).operator().process_batch({"t": [day(1)]})
    days = sw.edges([(day(1), day(2))])
    with pytest.raises(DataError, match=r"say what its integers count"):
        sw.Workload("t").query("q", days, n=sw.count()).operator().process_batch({"t": [1]})
    with pytest.raises(
        DataError,
        match=r"^query 'q': the table of edges holds timestamps with a time zone, and the time column without one",
    ):
        sw.Workload("t").query("q", days, n=sw.count()).operator().process_batch({"t": [dt.datetime(2024, 1, 1)]})
    with pytest.raises(QueryError, match=r"the table of edges holds timestamps, and the time column counts seconds"):
        sw.Workload("t", unit="seconds").query("q", days, n=sw.count())
    with pytest.raises(QueryError, match=r"^one workload has one notion of time"):
        sw.Workload("t").query("q", days, n=sw.count()).query("r", sw.tumbling(5), n=sw.count())
