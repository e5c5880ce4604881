"""Wide results and differences, in process: replayed into a table, they are true at every watermark."""

from __future__ import annotations

import math
import pickle
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import QueryError, StateError
from slicewise.slicing.time import slice_manager
from slicewise.slicing.time.window_manager import SortedSlices
from slicewise.testing import shaped
from tests.slicing.running import TYPES, assert_same, columns_of, run_operator, run_oracle
from tests.slicing.shapes import (
    UTC,
    assert_stands,
    assert_true_at_every_watermark,
    calendar_steps,
    forms,
    replay,
    rolling,
)
from tests.slicing.strategies import steps


@given(st.data(), forms, steps(), st.sampled_from([0, 256]), st.sampled_from([2, 16]))
def test_the_output_is_true_at_every_watermark(data, form, epochs, few_slices, worth_standing):
    shape, emit = form
    workload = data.draw(rolling(wide=shape == "wide"))
    with (
        mock.patch.object(slice_manager, "FEW_SLICES", few_slices),
        mock.patch.object(slice_manager, "WORTH_STANDING", worth_standing),
    ):
        found = run_operator(workload.operator(types=TYPES, shape=shape, emit=emit), epochs)
    assert_true_at_every_watermark(workload, epochs, found, shape, emit)


@given(st.data(), forms, steps())
def test_stopping_and_restoring_at_every_cut_point_changes_nothing(data, form, epochs):
    shape, emit = form
    workload = data.draw(rolling(wide=shape == "wide"))

    def again(op):
        fresh = workload.operator(types=TYPES, shape=shape, emit=emit)
        return fresh.restore(pickle.loads(pickle.dumps(op.snapshot())))

    found = run_operator(workload.operator(types=TYPES, shape=shape, emit=emit), epochs, between=again)
    assert_true_at_every_watermark(workload, epochs, found, shape, emit)


@given(st.data(), forms, st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(2, 16))
def test_small_steps_are_true_too(data, form, times, worth_standing):
    """A watermark after every row, which leaves slices where they are."""
    shape, emit = form
    workload = data.draw(rolling(wide=shape == "wide"))
    row = {"v": 1, "w": "a", "k": "x", "j": 0, "o": 0, "u": None, "z": None}
    marks = np.maximum.accumulate(times).tolist()
    epochs = [([[{**row, "t": t, "v": t % 3}]], mark) for t, mark in zip(times, marks, strict=True)] + [([], None)]
    with mock.patch.object(slice_manager, "WORTH_STANDING", worth_standing):
        found = run_operator(workload.operator(types=TYPES, shape=shape, emit=emit), epochs)
    assert_true_at_every_watermark(workload, epochs, found, shape, emit)


@given(st.data(), forms, steps())
def test_an_ordered_stream_reports_each_tick_as_soon_as_it_has_passed(data, form, epochs):
    shape, emit = form
    workload = data.draw(rolling(wide=shape == "wide"))
    rows = sorted((row for chunks, _ in epochs for chunk in chunks for row in chunk), key=lambda row: row["t"])
    in_order = [([[row]], row["t"]) for row in rows] + [([], None)]
    op = workload.operator(types=TYPES, ordered=True, shape=shape, emit=emit)
    found = [list(op.process_batch(columns_of([row]))) for row in rows] + [list(op.close())]
    assert_true_at_every_watermark(workload, in_order, found, shape, emit)


@given(st.data(), steps(), st.data())
def test_a_query_added_later_reports_differences_from_its_first_tick_on(data, epochs, cut):
    workload = data.draw(rolling(wide=False))
    window = sw.sliding(cut.draw(st.integers(1, 20)), every=cut.draw(st.integers(1, 12)))
    at = cut.draw(st.integers(0, len(epochs) - 1))
    op = workload.operator(types=TYPES, emit="differences")
    results = run_operator(op, epochs[:at])
    mark = epochs[at - 1][1] if op.stats().rows else None
    since = op.add_query("added", window, x=sw.count())
    results += run_operator(op, epochs[at:])
    others = [[r for r in step if r.query != "added"] for step in results]
    assert_true_at_every_watermark(workload, epochs, others, "long", "differences")

    alone = workload.query("added", window, x=sw.count()).with_queries([op.workload.named("added")])
    by_definition, _ = run_oracle(alone, epochs)
    table, complete = {}, {}
    for (_, watermark), step, expected in zip(epochs, results, by_definition, strict=True):
        replay(table, [r for r in step if r.query == "added"])
        allowed = [r for r in expected if (since is None or r.start >= since) and (mark is None or r.end > mark)]
        complete |= {(r.key, r.query, r.start, r.end): r.values for r in allowed}
        last = math.inf if watermark is None else watermark
        assert_stands(table, shaped(alone, complete, last, emit="differences"))


def rolling_counts(*lengths, every=1, **settings):
    workload = sw.Workload("t", keys=["k"], **settings)
    for length in lengths:
        workload = workload.query(f"last_{length}", sw.sliding(length, every=every), n=sw.count())
    return workload


@pytest.mark.parametrize("shape", ["long", "wide"])
def test_only_ticks_are_computed_at_which_a_row_enters_or_leaves(shape):
    """At most two for each slice and look-back; a window of 1440 ticks would have as many for each slice."""
    lengths = 60, 720, 1440
    workload = rolling_counts(*lengths)
    random = np.random.default_rng(5)
    times, asked = np.sort(random.integers(0, 5000, 400)), []
    query = SortedSlices.query

    def counted(self, component, low, high):
        asked.append(len(low))
        return query(self, component, low, high)

    op = workload.operator(shape=shape, emit="differences")
    with mock.patch.object(SortedSlices, "query", counted):
        op.process_batch({"t": times, "k": random.integers(0, 7, len(times))})
        slices = op.stats().slices
        results = op.close()
    assert sum(asked) <= 2 * slices * len(lengths) * (len(lengths) if shape == "wide" else 1)
    ticks = {(r.key, r.query, r.end) for r in results}
    assert len(ticks) == len(results) <= 2 * slices * len(lengths)
    complete = workload.operator(shape=shape)
    complete.process_batch({"t": times, "k": random.integers(0, 7, len(times))})
    assert len(complete.close()) > 20 * len(results)


def test_values_of_no_rows_are_a_difference_like_any_other():
    op = rolling_counts(3, every=1).operator(shape="wide", emit="differences")
    op.process_batch({"t": [5], "k": ["a"]})
    assert [(r.end, r.values) for r in op.advance(50)] == [(6, {"last_3_n": 1}), (9, {"last_3_n": 0})]
    assert not op.close()


def test_a_key_whose_rows_have_left_takes_no_state():
    op = rolling_counts(3, 5).operator(shape="wide", emit="differences")
    for t in range(0, 40_000, 100):
        op.process_batch({"t": np.full(20, t), "k": np.arange(20) + t})
        op.advance(t + 50)
    state = op._core.engine.state.time
    assert len(state.slices) + sum(len(ticks) for ticks in state.ticks.values()) < 2000


def test_ticks_that_may_still_differ_are_counted_among_the_bytes_of_the_state():
    def held(emit):
        op = rolling_counts(3, lateness=100).operator(emit=emit)
        for t in range(50):
            op.process(t, {"k": "a"})
        list(op.advance(49))
        return op.stats()

    full, differences = held("complete"), held("differences")
    assert differences.slices >= full.slices
    # Key, end and revision, two flags and a count of eight bytes for each tick that is known.
    assert differences.bytes - full.bytes >= 48 * (3 * 8 + 2 + 8)


def test_a_late_row_inserts_updates_and_retracts_ticks():
    op = rolling_counts(10, every=10, lateness=100).operator(emit="differences")
    op.process_batch({"t": [1, 2, 11, 12], "k": ["a"] * 4})
    assert [(r.end, r.change, r.values["n"]) for r in op.advance(25)] == [(10, "insert", 2)]
    op.process_batch({"t": [13], "k": ["a"]})
    assert [(r.end, r.change, r.revision) for r in op.advance(26)] == [(20, "insert", 0)]
    op.process_batch({"t": [3], "k": ["a"]})
    assert [(r.end, r.change, r.revision) for r in op.advance(26)] == [(20, "retract", 1), (10, "update", 1)]
    op.process_batch({"t": [4], "k": ["a"]})
    assert [(r.end, r.change, r.revision) for r in op.advance(27)] == [(10, "update", 2), (20, "insert", 2)]


def test_a_row_too_late_for_one_tick_counts_from_the_next():
    op = rolling_counts(20, every=10).operator(emit="differences")
    op.process_batch({"t": [1], "k": ["a"]})
    assert [(r.end, r.values["n"]) for r in op.advance(11)] == [(10, 1)]
    op.process_batch({"t": [3], "k": ["a"]})
    assert not op.advance(12)
    op = rolling_counts(20, every=10).operator(emit="differences").restore(op.snapshot())
    assert [(r.end, r.values["n"]) for r in op.advance(20)] == [(20, 2)]
    assert [(r.end, r.values["n"]) for r in op.advance(40)] == [(30, 0)]


def test_nan_is_nan_and_null_is_null():
    workload = sw.Workload("t").query("q", sw.tumbling(10), x=sw.max("v"), y=sw.sum("z"))
    op = workload.operator(emit="differences")
    op.process_batch({"t": [1, 11, 21, 31], "v": [math.nan, math.nan, 1.0, 1.0], "z": pa.nulls(4, pa.int64())})
    assert [r.end for r in op.advance(40)] == [10, 30]


def test_values_change_with_time_alone_where_they_last_until_the_end_of_the_window():
    workload = sw.Workload("t").query("q", sw.sliding(30, every=10), x=sw.time_weighted_avg("v"))
    op = workload.operator(emit="differences")
    op.process_batch({"t": [0, 5], "v": [0.0, 1.0]})
    assert [(r.end, r.values["x"]) for r in op.close()] == [(10, 0.5), (20, 0.75), (30, 25 / 30), (40, None)]


def test_wide_results_as_tables():
    op = rolling_counts(10, 20, every=10).operator(shape="wide")
    op.process_batch({"t": [1, 12], "k": ["a", "a"]})
    assert op.close().to_arrow().to_pylist() == [
        {"k": "a", "end": 10, "change": "insert", "revision": 0, "last_10_n": 1, "last_20_n": 1},
        {"k": "a", "end": 20, "change": "insert", "revision": 0, "last_10_n": 1, "last_20_n": 2},
        {"k": "a", "end": 30, "change": "insert", "revision": 0, "last_10_n": 0, "last_20_n": 1},
    ]


# Bad input


def refused(workload, **form):
    with pytest.raises(QueryError) as error:
        workload.operator(**form)
    return str(error.value)


def test_unknown_words_are_refused():
    workload = rolling_counts(10)
    assert refused(workload, shape="broad") == ("`shape` must be 'long' or 'wide'; got 'broad'; known: 'long', 'wide'")
    assert refused(workload, emit="difference") == (
        "`emit` must be 'complete' or 'differences'; got 'difference'; did you mean 'differences'?"
    )
    assert refused(workload, emit="changes") == (
        "`emit` must be 'complete' or 'differences'; got 'changes'; known: 'complete', 'differences'"
    )


def test_queries_that_do_not_end_together_are_refused_in_the_wide_shape():
    hours = sw.Workload("ts").query("hour", sw.tumbling("1 hour"), n=sw.count())
    message = (
        "shape='wide' has one row for the windows that end together, and those of 'hour', tumbling('1 hour'), and of "
        "'other', {}, do not: `every`, `offset` and `zone` must be the same, and lengths differ by multiples of "
        "`every`; give one a workload of its own"
    )
    for window in (
        sw.tumbling("30 minutes"),
        sw.tumbling("1 day", zone="UTC"),
        sw.tumbling("1 hour", offset="5 minutes"),
        sw.sliding("90 minutes", every="1 hour"),
    ):
        workload = hours.query("other", window, n=sw.count())
        assert refused(workload, shape="wide") == message.format(repr(window))
        assert workload.operator(emit="differences")


@pytest.mark.parametrize(
    "window",
    [
        sw.session(5),
        sw.tumbling(sw.rows(3)),
        sw.sliding(10, every=sw.rows(2)),
        sw.cumulative(10, every=5),
        sw.landmark(every=5),
        sw.trailing(5),
        sw.edges([(0, 5)]),
    ],
)
@pytest.mark.parametrize(("form", "shown"), [({"shape": "wide"}, "shape='wide'"), ({"emit": "differences"},) * 2])
def test_windows_without_ticks_are_refused(window, form, shown):
    workload = rolling_counts(10).query("other", window, n=sw.count())
    shown = shown if isinstance(shown, str) else "emit='differences'"
    assert refused(workload, **form) == (
        f"query 'other': {shown} takes windows that end at ticks, sw.tumbling and sw.sliding on event time; got "
        f"{window!r}; give it a workload of its own"
    )


def test_names_that_collide_are_refused():
    twice = sw.Workload("t").query("a", sw.tumbling(5), b_n=sw.count()).query("a_b", sw.tumbling(5), n=sw.count())
    assert refused(twice, shape="wide") == (
        "shape='wide' would name 'b_n' of query 'a' and 'n' of query 'a_b' both 'a_b_n'; rename one of them"
    )
    key = sw.Workload("t", keys=["a_n"]).query("a", sw.tumbling(5), n=sw.count())
    assert refused(key, shape="wide") == (
        "shape='wide' would name 'n' of query 'a' 'a_n', and a key has that name; rename one of them"
    )
    end = sw.Workload("t", keys=["end"]).query("a", sw.tumbling(5), n=sw.count())
    assert refused(end, shape="wide") == "the key 'end' has the name of a column that shape='wide' adds; rename it"


def test_columns_of_two_types_may_have_one_name_in_the_wide_shape():
    workload = sw.Workload("t").query("a", sw.tumbling(5), x=sw.count()).query("b", sw.tumbling(5), x=sw.avg("v"))
    op = workload.operator(shape="wide")
    op.process_batch({"t": [1, 2], "v": [1, 2]})
    assert [r.values for r in op.close()] == [{"a_x": 2, "b_x": 1.5}]


def test_queries_do_not_come_and_go_in_the_wide_shape():
    op = rolling_counts(10, 20).operator(shape="wide")
    message = (
        "with shape='wide' a row has the columns of all queries, so none can be added or removed while it runs; make a "
        "new operator"
    )
    with pytest.raises(QueryError) as error:
        op.add_query("more", sw.tumbling(1), n=sw.count())
    assert str(error.value) == message
    with pytest.raises(QueryError) as error:
        op.remove_query("last_10")
    assert str(error.value) == message


def test_a_snapshot_goes_on_in_its_own_form_only():
    workload = rolling_counts(10, 20)
    op = workload.operator(shape="wide")
    op.process_batch({"t": [1], "k": ["a"]})
    with pytest.raises(StateError) as error:
        workload.operator().restore(op.snapshot())
    assert str(error.value) == (
        "the state was written with shape='wide', and this run has shape='long'; go on with the same, or start anew"
    )
    with pytest.raises(StateError) as error:
        workload.operator(shape="wide", emit="differences").restore(op.snapshot())
    assert str(error.value) == (
        "the state was written with emit='complete', and this run has emit='differences'; go on with the same, or "
        "start anew"
    )
    with pytest.raises(StateError) as error:
        workload.without("last_10").operator(shape="wide").restore(op.snapshot())
    assert str(error.value) == (
        "the state was written with shape='wide' and queries ['last_10', 'last_20'], and this run has ['last_20']: a "
        "row has the columns of all queries, so none may be added, removed or changed; start anew"
    )


# Calendars


def run_calendar(workload, epochs, shape, emit, between=lambda op: op):
    op = workload.operator(shape=shape, emit=emit, types={"v": pa.int64(), "k": pa.string()})
    found = []
    for chunks, mark in epochs:
        results = []
        for chunk in chunks:
            columns = {"t": pa.array([row["t"] for row in chunk], UTC)}
            results += op.process_batch(columns | {name: [row[name] for row in chunk] for name in ("k", "v")})
            op = between(op)
        found.append(results + list(op.close() if mark is None else op.advance(mark)))
        op = op if mark is None else between(op)
    return found


@given(calendar_steps(), forms, st.sampled_from([2, 16]))
def test_calendar_windows_are_true_at_every_watermark(case, form, worth_standing):
    with mock.patch.object(slice_manager, "WORTH_STANDING", worth_standing):
        assert_true_at_every_watermark(*case, run_calendar(*case, *form), *form)


@given(calendar_steps(), forms)
def test_calendar_windows_go_on_after_every_cut_point(case, form):
    def again(op):
        made = case[0].operator(shape=form[0], emit=form[1], types={"v": pa.int64(), "k": pa.string()})
        return made.restore(pickle.loads(pickle.dumps(op.snapshot())))

    expected = run_calendar(*case, *form)
    assert_same(run_calendar(*case, *form, between=again), expected)


def test_only_days_are_computed_at_which_a_row_enters_or_leaves():
    workload = sw.Workload("t")
    for n in (1, 30, 365):
        window = sw.sliding(f"{n} days", every="1 day", zone="Europe/Berlin")
        workload = workload.query(f"d{n}", window, n=sw.count())
    asked, query = [], SortedSlices.query

    def counted(self, component, low, high):
        asked.append(len(low))
        return query(self, component, low, high)

    op = workload.operator(shape="wide", emit="differences")
    op.process_batch({"t": pa.array([int(np.datetime64("2024-03-01T12", "us").astype(np.int64))], UTC)})
    with mock.patch.object(SortedSlices, "query", counted):
        found = [tuple(r.values.values()) for r in op.close()]
    assert found == [(1, 1, 1), (0, 1, 1), (0, 0, 1), (0, 0, 0)]
    assert 0 < sum(asked) <= 2 * 3 * 3
