"""Values as of points: `attach` in process against the definition, and what it keeps, refuses and never sees."""

from __future__ import annotations

import datetime as dt
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.same import is_same
from slicewise.slicing import as_of
from slicewise.testing import attached
from tests.arrow_rows import rows_with_maps
from tests.slicing.strategies import aggregates_over, rows, trailing

TYPES = {"t": pa.int64(), "v": pa.int64(), "w": pa.string(), "k": pa.string(), "j": pa.int64(), "o": pa.int64()}
LENGTH, OFFSET = st.integers(1, 20), st.integers(-7, 7)
LOOKING_BACK = st.one_of(
    trailing(),
    st.builds(lambda n, o: sw.tumbling(n, offset=o), LENGTH, OFFSET),
    st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), LENGTH, LENGTH, OFFSET),
    st.builds(lambda e, k, o: sw.cumulative(e * k, every=e, offset=o), st.integers(1, 6), st.integers(1, 4), OFFSET),
    st.builds(lambda e, s: sw.landmark(every=e, since=s), LENGTH, st.integers(-30, 60)),
    st.builds(lambda s, n: sw.between(s, s + n), st.integers(-30, 60), LENGTH),
)


@st.composite
def workloads(draw, aggregates=None):
    """A workload of one to four queries whose windows look back."""
    keys = draw(st.sampled_from([[], ["k"], ["k", "j"]]))
    order = draw(st.sampled_from([[], [], ["o"]]))
    where = draw(st.sampled_from([None, None, "v > -3 or w = 'c'"]))
    workload = sw.Workload("t", keys=keys, order=order, where=where)
    for i in range(draw(st.integers(1, 4))):
        computed = draw(st.lists(aggregates_over() if aggregates is None else aggregates, min_size=1, max_size=3))
        workload = workload.query(f"q{i}", draw(LOOKING_BACK), **{f"a{n}": a for n, a in enumerate(computed)})
    return workload


def table_of(stream, types=TYPES):
    return pa.Table.from_pylist([{n: row[n] for n in types} for row in stream], pa.schema(list(types.items())))


def key_of(workload, row):
    return tuple(row[k] for k in workload.keys)


def by_definition(workload, points, events, time="t"):
    asked = [(row[time], key_of(workload, row)) for row in points]
    return attached(workload, asked, [(row["t"], row, key_of(workload, row)) for row in events], types=TYPES)


def assert_same(found, points, expected):
    assert found.num_rows == len(points)
    mine = rows_with_maps(found)
    for row, given_row, values in zip(mine, points, expected, strict=True):
        for name, value in values.items():
            assert is_same(row[name], value), f"{name} at {given_row}: {row[name]!r}, expected {value!r}"


streams = st.lists(rows(), max_size=25)
asking = st.lists(
    st.fixed_dictionaries(
        {
            "k": st.one_of(st.none(), st.sampled_from("xyz")),
            "j": st.integers(0, 2),
            "at": st.one_of(st.none(), st.integers(-40, 80)),
        }
    ),
    max_size=25,
)


@given(workloads(), streams, asking, st.sampled_from([1, 4, 2**16]), st.sampled_from([1, 7, 2**20]))
def test_other_points_have_the_values_of_the_definition(workload, stream, points, span, folded):
    schema = pa.schema([("k", pa.string()), ("j", pa.int64()), ("at", pa.int64())])
    with mock.patch.multiple(as_of, SPAN=span, FOLDED=folded):  # in many pieces, or in one
        found = workload.attach(pa.Table.from_pylist(points, schema), table_of(stream), time="at")
    assert_same(found, points, by_definition(workload, points, stream, "at"))


@given(workloads(), st.lists(st.builds(lambda r, t: {**r, "t": t}, rows(), st.one_of(st.none(), st.integers(0, 30)))))
def test_rows_as_their_own_points_have_the_values_of_the_definition(workload, stream):
    found = workload.attach(table_of(stream))
    assert found.select(list(TYPES)).equals(table_of(stream))
    assert_same(found, stream, by_definition(workload, stream, stream))


FLOATS = st.one_of(st.none(), st.floats(-1e3, 1e3), st.sampled_from([float("nan"), float("inf"), float("-inf")]))


@given(workloads(aggregates_over().filter(lambda a: "bit_" not in repr(a))), st.lists(rows(FLOATS), max_size=25))
def test_floats_with_nan_and_infinity(workload, stream):
    types = {**TYPES, "v": pa.float64()}
    found = workload.attach(table_of(stream, types))
    events = [(row["t"], row, key_of(workload, row)) for row in stream]
    expected = attached(workload, [(row["t"], key_of(workload, row)) for row in stream], events, types=types)
    for row, values in zip(rows_with_maps(found), expected, strict=True):
        for name, value in values.items():
            assert is_same(row[name], value, 1e3), f"{name} at {row}, expected {value!r}"


@given(workloads(), streams, asking, st.lists(rows(), min_size=1, max_size=9), st.integers(-40, 80))
def test_no_point_sees_an_event_after_its_time(workload, stream, points, later, now):
    """Whatever comes behind an instant, the values as of it and before stay as they are."""
    points = [{**p, "at": min(p["at"], now)} for p in points if p["at"] is not None]
    schema = pa.schema([("k", pa.string()), ("j", pa.int64()), ("at", pa.int64())])
    asked = pa.Table.from_pylist(points, schema)
    future = [{**row, "t": now + 1 + abs(row["t"])} for row in later]
    without = workload.attach(asked, table_of(stream), time="at")
    stays = [i for i, row in enumerate(stream) if row["t"] <= now]
    assert workload.attach(asked, table_of([stream[i] for i in stays]), time="at").equals(without)
    assert workload.attach(asked, table_of([*stream, *future]), time="at").equals(without)


def test_many_keys_and_a_large_one_equal_a_brute_force_join():
    rng = np.random.default_rng(5)
    n, m = 200_000, 3_000
    key = np.minimum(rng.zipf(1.3, n), 500)
    at = rng.integers(0, 2_000_000, n)
    value = rng.normal(size=n)
    events = pa.table({"k": key, "t": at, "v": value})
    points = pa.table({"k": rng.integers(1, 600, m), "t": rng.integers(-1000, 2_100_000, m)})
    workload = sw.Workload("t", keys=["k"])
    for length in (100, 50_000, 3_000_000):
        workload = workload.query(f"q{length}", sw.trailing(length), n=sw.count(), s=sw.sum("v"), top=sw.max("v"))
    found = workload.attach(points, events)
    by_key = {k: np.flatnonzero(key == k) for k in np.unique(points["k"])}
    for row in found.to_pylist():
        inside = by_key[row["k"]]
        inside = inside[at[inside] <= row["t"]]
        for length in (100, 50_000, 3_000_000):
            seen = value[inside[at[inside] > row["t"] - length]]
            assert row[f"q{length}_n"] == len(seen)
            assert row[f"q{length}_top"] == (seen.max() if len(seen) else None)
            assert row[f"q{length}_s"] == (pytest.approx(seen.sum(), rel=1e-12, abs=1e-9) if len(seen) else None)


def test_a_large_value_leaves_no_trace_in_later_windows():
    values = [1.0, 1e300, 2.0, 3.0]
    workload = sw.Workload("t").query("q", sw.trailing(2), s=sw.sum("v"))
    assert workload.attach({"t": [0, 1, 2, 3], "v": values})["q_s"] == [1.0, 1e300, 1e300, 5.0]


# Ties


@pytest.mark.parametrize(
    ("closed", "expected"),
    [("right", [2, 2, 1, 1]), ("left", [0, 0, 2, 1]), ("both", [2, 2, 3, 2]), ("neither", [0, 0, 0, 0])],
)
def test_rows_of_equal_time_have_equal_answers(closed, expected):
    #   0 0 . 2 . 4      trailing(2)
    workload = sw.Workload("t").query("q", sw.trailing(2, closed=closed), n=sw.count())
    assert workload.attach({"t": [0, 0, 2, 4]})["q_n"] == expected


@pytest.mark.parametrize(
    ("closed", "expected"),
    [
        ("right", [["a", "b"], ["a", "b"], ["b", "c"]]),
        ("left", [[], [], ["a", "b"]]),
        ("both", [["a", "b"], ["a", "b"], ["a", "b", "c"]]),
        ("neither", [[], [], ["b"]]),
    ],
)
def test_the_last_rows_are_those_at_or_before_the_point(closed, expected):
    workload = sw.Workload("t").query("q", sw.trailing(sw.rows(2), closed=closed), l=sw.collect_list("v"))
    assert workload.attach({"t": [0, 0, 5], "v": ["a", "b", "c"]})["q_l"] == expected


def test_a_grid_window_is_that_of_the_last_tick():
    workload = sw.Workload("t").query("q", sw.sliding(10, every=5), l=sw.collect_list("t"))
    events = {"t": [1, 4, 5, 9, 10]}
    found = workload.attach({"t": [4, 5, 9, 10, 14, 15, 99]}, events)["q_l"]
    assert found == [[], [1, 4], [1, 4], [1, 4, 5, 9], [1, 4, 5, 9], [5, 9, 10], []]


# What comes back


def test_points_come_back_as_they_are_with_their_index_and_awkward_names():
    frame = pd.DataFrame(
        {"t": [5, 1, 5], "a.b": [1, 2, 3], "": ["x", "y", "z"], 7: [None, 1.5, 2.5], "`q`": [1, 1, 1]}, index=[9, 9, 2]
    )
    workload = sw.Workload("t").query("q", sw.trailing(4), total=sw.sum("a.b"))
    found = workload.attach(frame)
    assert list(found.index) == [9, 9, 2]
    assert list(found.columns) == ["t", "a.b", "", 7, "`q`", "q_total"]
    pd.testing.assert_frame_equal(found[list(frame.columns)], frame)
    assert found["q_total"].tolist() == [4, 2, 4]
    assert list(frame.columns) == ["t", "a.b", "", 7, "`q`"]


def test_arrow_batches_and_columns_of_one_name_stay_what_they_are():
    batch = pa.RecordBatch.from_arrays([pa.array([3, 1]), pa.array(["a", "b"]), pa.array([1, 2])], ["t", "x", "x"])
    found = sw.Workload("t").query("q", sw.trailing(4), n=sw.count()).attach(batch)
    assert isinstance(found, pa.RecordBatch)
    assert found.schema.names == ["t", "x", "x", "q_n"]
    assert found.column(3).to_pylist() == [2, 1]


def test_no_points_and_no_events():
    workload = sw.Workload("t", keys=["k"]).query("q", sw.trailing(4), s=sw.sum("v"), l=sw.collect_list("v"))
    schema = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.float64())])
    nothing = schema.empty_table()
    found = workload.attach(nothing)
    assert found.num_rows == 0
    assert found.schema.field("q_s").type == pa.float64()
    points = pa.table({"t": [1, None], "k": ["a", None]})
    assert workload.attach(points, nothing).select(["q_s", "q_l"]).to_pylist() == [{"q_s": None, "q_l": []}] * 2


def test_timestamps_of_two_zones_are_the_same_instants():
    at = [dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)]
    events = pa.table({"t": pa.array(at, pa.timestamp("ms", "Europe/Berlin")), "v": [3]})
    points = pa.table({"when": pa.array(at, pa.timestamp("us", "Asia/Tokyo"))})
    workload = sw.Workload("t").query("q", sw.trailing("1 minute"), s=sw.sum("v"))
    assert workload.attach(points, events, time="when")["q_s"].to_pylist() == [3]


class Longest(sw.Aggregate):
    """An aggregate of a user's, whose partials do not grow."""

    name = "longest"
    identity = ""
    kind = "algebraic"

    def combine(self, a, b):
        return a if len(a) >= len(b) else b


def test_aggregates_of_the_user():
    texts = sw.aggregate(combine=lambda a, b: a + b, identity="", name="texts")
    workload = sw.Workload("t").query("q", sw.trailing(3), long=Longest("w"), all=texts("w"))
    found = workload.attach({"t": [1, 2, 3, 4, 9], "w": ["aaa", "b", "cc", "d", None]})
    assert found["q_long"] == ["aaa", "aaa", "aaa", "cc", ""]
    assert found["q_all"] == ["aaa", "aaab", "aaabcc", "bccd", ""]


# What is refused


WORKLOAD = sw.Workload("t", keys=["k"]).query("q", sw.trailing("1 hour"), s=sw.sum("v"))
EVENTS = pa.table({"t": pa.array([0], pa.timestamp("us", "UTC")), "k": ["a"], "v": [1]})
CASES = [
    (pa.table({"t": EVENTS["t"]}), None, "there is no column 'k' in the rows; known: 't'"),
    (pa.table({"k": ["a"], "at": EVENTS["t"]}), None, "there is no column 't' in the rows; did you mean 'at'?"),
    (
        pa.table({"k": ["a"], "t": pa.array([0], pa.timestamp("us"))}),
        None,
        "the time column 't' of the points holds timestamp[us], and 't' of the events timestamp[us, tz=UTC]; with and "
        "without a time zone cannot be compared: convert one of them",
    ),
    (
        pa.table({"k": ["a"], "t": [0]}),
        None,
        "the time column 't' holds int64, but the windows are given as durations; say what its integers count: "
        "Workload(time='t', unit=...) with one of 'seconds', 'milliseconds', 'microseconds', 'nanoseconds'",
    ),
    (
        pa.table({"k": [1], "t": EVENTS["t"]}),
        None,
        "key 'k' is int64 in the points and string in the events; cast one of them",
    ),
    (
        pa.table({"k": ["a"], "t": EVENTS["t"], "q_s": [1]}),
        None,
        "`attach` adds a column 'q_s' for query 'q', and the points have one of that name; rename it, or the query",
    ),
    ([1, 2], None, "`attach` takes Spark DataFrames, Arrow tables, pandas DataFrames or mappings of columns; got list"),
]


@pytest.mark.parametrize(("points", "time", "message"), CASES)
def test_points_that_do_not_fit_are_refused(points, time, message):
    with pytest.raises(sw.DataError) as error:
        WORKLOAD.attach(points, EVENTS, time)
    assert str(error.value) == message


def test_events_need_a_time():
    events = pa.table({"t": pa.array([None], pa.timestamp("us", "UTC")), "k": ["a"], "v": [1]})
    with pytest.raises(sw.DataError, match="the time column 't' is null in row 0; every row needs an event time"):
        WORKLOAD.attach(EVENTS, events)


@pytest.mark.parametrize(
    "window",
    [sw.session("1 hour"), sw.tumbling(sw.rows(3)), sw.punctuated("v > 0"), sw.sliding(sw.rows(3), every="1 s")],
)
def test_windows_that_do_not_look_back_are_refused(window):
    workload = sw.Workload("t").query("q", window, n=sw.count("v"))
    with pytest.raises(sw.QueryError) as error:
        workload.attach(EVENTS)
    assert str(error.value) == (
        "query 'q': `attach` takes windows that end at a point or at the last tick before it, sw.trailing, sw.tumbling "
        f"and sw.sliding on event time; got {window!r}"
    )


def test_queries_that_would_add_one_column_are_refused():
    workload = sw.Workload("t").query("a", sw.trailing(1), b_c=sw.count()).query("a_b", sw.trailing(1), c=sw.count())
    message = "`attach` would add a column 'a_b_c' for query 'a' and for query 'a_b'; rename one of the queries"
    with pytest.raises(sw.DataError, match=message):
        workload.attach({"t": [1]})


def test_a_sum_that_leaves_its_type_names_key_and_window():
    workload = sw.Workload("t", keys=["k"]).query("q", sw.trailing(5), s=sw.sum("v"))
    with pytest.raises(sw.OverflowInWindowError, match=r"query 'q', key k='b', window \[-3, 2\): `sum` of column 'v'"):
        workload.attach({"t": [1, 1, 2], "k": ["a", "b", "b"], "v": [2**62, 2**62, 2**62]})


def test_user_code_that_fails_names_the_row_or_the_window():
    inverse = sw.aggregate(lift=lambda v: 1 / v, combine=lambda a, b: a + b, identity=0.0, name="inverse")
    workload = sw.Workload("t").query("q", sw.trailing(5), s=inverse("v"))
    with pytest.raises(sw.DataError, match=r"at the record of time 2: `lift` raised ZeroDivisionError"):
        workload.attach({"t": [1, 2], "v": [1, 0]})
    mean = sw.aggregate(
        lift=lambda v: (v, 1),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        identity=(0, 0),
        lower=lambda p: p[0] / p[1],
        name="mean",
    )
    workload = sw.Workload("t").query("q", sw.trailing(5, closed="left"), s=mean("v"))
    with pytest.raises(sw.AggregateError, match=r"query 'q', window \[-4, 1\): `lower` of .* raised ZeroDivisionError"):
        workload.attach({"t": [1, 2], "v": [1, 0]})


def test_trailing_that_makes_no_sense_is_refused():
    with pytest.raises(sw.QueryError, match="`length` must be positive; got '0 seconds'"):
        sw.trailing("0 seconds")
    with pytest.raises(sw.QueryError, match="`length` must be a length of event time, or a number of rows; got units"):
        sw.trailing(sw.units(2, "km"))
    with pytest.raises(sw.QueryError, match="`closed` must be 'right', 'left', 'both' or 'neither'; got 'rigth'; did"):
        sw.trailing("1 hour", closed="rigth")


def test_a_point_without_a_time_beside_others_has_no_points_to_draw():
    workload = sw.Workload("t").query("q", sw.trailing(5), drawn=sw.m4("v"))
    found = workload.attach(pa.table({"t": pa.array([1, None], pa.int64()), "v": [7, 8]}))
    assert [row and row["max"] for row in found.column("q_drawn").to_pylist()] == [7, None]
