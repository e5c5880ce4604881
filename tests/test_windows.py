"""Windows: what they are, what is refused and with which words, and that they read as they were written."""

from __future__ import annotations

import dataclasses
import datetime as dt
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.amounts import INTEGER, ROWS, TIME, Amount, Measure, rows, units
from slicewise.errors import QueryError
from slicewise.slicing.rows.registry import discretisers_for
from slicewise.windows import Context, Landmark, Sliding, Window

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
KM = Measure("units", "km")


class Trader:
    """A user's window."""


def too_old(total, oldest):
    return True


def is_start(row):
    return True


#: Every kind of window, with how it reads, its class and what it is counted in.
KINDS = [
    (sw.tumbling("10 minutes"), "tumbling('10 minutes')", Context.FREE, (TIME,)),
    (sw.tumbling(10), "tumbling(10)", Context.FREE, (INTEGER,)),
    (sw.tumbling("1 hour", offset="5 minutes"), "tumbling('1 hour', offset='5 minutes')", Context.FREE, (TIME,)),
    (sw.tumbling(rows(100)), "tumbling(rows(100))", Context.FREE, (ROWS,)),
    (sw.tumbling(units(10, "km")), "tumbling(units(10, 'km'))", Context.FREE, (KM,)),
    (sw.sliding("1 minute", every="1 second"), "sliding('1 minute', every='1 second')", Context.FREE, (TIME,)),
    (sw.sliding(10, every=3, offset=1), "sliding(10, every=3, offset=1)", Context.FREE, (INTEGER,)),
    (sw.sliding(rows(10), every=rows(2)), "sliding(rows(10), every=rows(2))", Context.FREE, (ROWS,)),
    (
        sw.sliding(rows(10), every="5 seconds"),
        "sliding(rows(10), every='5 seconds')",
        Context.FORWARD_AWARE,
        (ROWS, TIME),
    ),
    (
        sw.sliding("5 seconds", every=rows(10)),
        "sliding('5 seconds', every=rows(10))",
        Context.FORWARD_AWARE,
        (TIME, ROWS),
    ),
    (sw.session("30 seconds"), "session('30 seconds')", Context.SESSION, (TIME,)),
    (sw.session(5), "session(5)", Context.SESSION, (INTEGER,)),
    (sw.cumulative("1 day", every="1 hour"), "cumulative('1 day', every='1 hour')", Context.FREE, (TIME,)),
    (sw.cumulative(12, every=4, offset=1), "cumulative(12, every=4, offset=1)", Context.FREE, (INTEGER,)),
    (
        sw.landmark(every="1 hour", since="2024-01-01"),
        "landmark(every='1 hour', since='2024-01-01 00:00:00')",
        Context.FREE,
        (TIME,),
    ),
    (sw.landmark(every=5, since=-3), "landmark(every=5, since=-3)", Context.FREE, (INTEGER,)),
    (
        sw.between("2024-01-01", "2024-02-01"),
        "between('2024-01-01 00:00:00', '2024-02-01 00:00:00')",
        Context.FREE,
        (TIME,),
    ),
    (sw.between(-5, 5), "between(-5, 5)", Context.FREE, (INTEGER,)),
    (sw.punctuated("kind = 'go'"), "punctuated(\"kind = 'go'\")", Context.FORWARD_FREE, (TIME,)),
    (sw.punctuated(is_start), "punctuated(is_start)", Context.FORWARD_FREE, (TIME,)),
    (sw.frames("v > 3", min_rows=2), "frames('v > 3', min_rows=2)", Context.FORWARD_FREE, (TIME,)),
    (
        sw.user_defined(Trader, columns=["price"]),
        "user_defined(Trader, columns=['price'])",
        Context.FORWARD_FREE,
        (TIME,),
    ),
    (
        sw.user_defined(Trader, deterministic=False),
        "user_defined(Trader, columns=[])",
        Context.FORWARD_AWARE,
        (TIME,),
    ),
    (sw.policy(too_old), "policy(too_old, every=rows(1))", Context.FORWARD_AWARE, (ROWS,)),
    (sw.policy(too_old, every="5 seconds"), "policy(too_old, every='5 seconds')", Context.FORWARD_AWARE, (TIME,)),
]
WINDOWS = [window for window, *_ in KINDS]


def refuses(message: str):
    """Expect a QueryError whose whole message is ``message``."""
    return pytest.raises(QueryError, match=f"^{re.escape(message)}$")


# -- what a window is


@pytest.mark.parametrize(("window", "text", "context", "measures"), KINDS, ids=[text for _, text, *_ in KINDS])
def test_every_kind_has_its_class_and_measure(window, text, context, measures):
    assert isinstance(window, Window)
    assert repr(window) == text
    assert window.context is context
    assert window.measures == measures
    assert window.measure == measures[0]


@pytest.mark.parametrize("window", [w for w in WINDOWS if w.context is not Context.FORWARD_AWARE], ids=repr)
def test_a_window_reads_as_the_python_that_made_it(window):
    names = {name: getattr(sw, name) for name in sw.__all__}
    assert eval(repr(window), names, {"Trader": Trader, "is_start": is_start}) == window


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_a_window_is_frozen(window):
    field = dataclasses.fields(window)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(window, field, 1)


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_a_window_survives_pickling_and_is_a_key(window):
    copy = pickle.loads(pickle.dumps(window))
    assert copy == window
    assert {window: 1}[copy] == 1


@pytest.mark.parametrize(
    ("window", "kind"),
    [
        (sw.tumbling(10), "tumbling"),
        (sw.sliding(10, every=10), "tumbling"),
        (sw.sliding(10, every=3), "sliding"),
        (sw.session(5), "session"),
        (sw.cumulative(10, every=5), "cumulative"),
        (sw.landmark(every=5), "landmark"),
        (sw.between(0, 1), "between"),
        (sw.punctuated("x"), "punctuated"),
        (sw.frames("x"), "frames"),
        (sw.user_defined(Trader), "user_defined"),
        (sw.policy(too_old), "policy"),
    ],
)
def test_kinds_are_named_as_they_are_called(window, kind):
    assert window.kind == kind


def test_tumbling_is_sliding_by_its_own_length():
    assert sw.tumbling("1 minute") == sw.sliding("60 seconds", every=dt.timedelta(minutes=1))


def test_the_base_says_nothing():
    for ask in ("context", "measures", "measure"):
        with pytest.raises(NotImplementedError):
            getattr(Window(), ask)


# -- what the later stages ask


@pytest.mark.parametrize(
    ("window", "axis", "overlap", "reach"),
    [
        (sw.tumbling(10), INTEGER, 1, 10),
        (sw.tumbling("10 seconds"), TIME, 1, 10 * SECOND),
        (sw.sliding(10, every=3), INTEGER, 4, 10),
        (sw.sliding(3, every=10), INTEGER, 1, 10),
        (sw.sliding(rows(10), every=rows(4)), ROWS, 3, 0),
        (sw.sliding(units(2.5, "km"), every=units(0.5, "km")), KM, 5, 0),
        (sw.sliding(rows(10), every=5), None, 1, 5),
        (sw.sliding(5, every=rows(10)), None, 1, 5),
        (sw.session(5), None, 1, 5),
        (sw.cumulative(12, every=4), INTEGER, 3, 12),
        (sw.landmark(every=5, since=-3), INTEGER, 2, 5),
        (sw.between(-5, 5), INTEGER, 1, 10),
        (sw.punctuated("x"), None, 1, 0),
        (sw.frames("x"), None, 1, 0),
        (sw.user_defined(Trader), None, 1, 0),
        (sw.policy(too_old), None, 1, 0),
        (sw.policy(too_old, every="5 seconds"), None, 1, 5 * SECOND),
    ],
    ids=repr,
)
def test_every_kind_says_where_it_is_known_how_it_overlaps_and_how_far_it_reaches(window, axis, overlap, reach):
    assert (window.axis, window.overlap, window.reach) == (axis, overlap, reach)


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_a_window_is_on_time_or_a_session_or_needs_rows(window):
    on_time = window.context is Context.FREE and window.measure.is_event_time
    assert window.is_periodic == on_time
    assert window.needs_rows == (not on_time and window.session_gap is None)
    assert window.counts_rows == (ROWS in window.measures)
    assert (window.session_gap is not None) == (window.kind == "session" and window.measure.is_event_time)
    assert (window.markers is not None) == (window.kind == "punctuated")
    assert window.state_classes == ({Trader} if window.kind == "user_defined" else set())


@pytest.mark.parametrize(
    ("window", "progressions", "points"),
    [
        (sw.tumbling(10, offset=3), {(10, 3)}, set()),
        (sw.sliding(13, every=10), {(10, 0), (10, 3)}, set()),
        (sw.sliding(rows(13), every=rows(10)), {(10, 0), (10, 3)}, set()),
        (sw.cumulative(12, every=4, offset=5), {(4, 1)}, set()),
        (sw.landmark(every=5, since=-3), {(5, 2)}, {-3}),
        (sw.between(-5, 5), set(), {-5, 5}),
        (sw.between(rows(0), rows(5)), set(), {0, 5}),
        (sw.landmark(every=units(0.5, "km")), set(), set()),
        (sw.session(5), set(), set()),
        (sw.sliding(rows(10), every=5), set(), set()),
        (sw.sliding(units(2.5, "km"), every=units(0.5, "km")), set(), set()),
        (sw.punctuated("x"), set(), set()),
    ],
    ids=repr,
)
def test_edges_known_in_advance_are_grids_and_points(window, progressions, points):
    assert {(p.step, p.phase) for p in window.progressions} == progressions
    assert window.points == points


def test_windows_on_one_axis_are_found_together_and_others_alone():
    counts, more_counts = sw.tumbling(rows(3)), sw.sliding(rows(10), every=rows(2))
    km, miles = sw.tumbling(units(2, "km")), sw.tumbling(units(2, "miles"))
    recent, marks = sw.sliding(rows(3), every=5), sw.punctuated("go")
    assert counts.discretiser_key == more_counts.discretiser_key
    assert len({w.discretiser_key for w in (counts, km, miles, recent, marks, sw.frames("go"))}) == 6
    assert sw.tumbling(units(5, "km")).discretiser_key == km.discretiser_key
    assert sw.sliding(rows(4), every=5).discretiser_key != recent.discretiser_key


def test_a_kind_that_nobody_registered_is_refused_by_name():
    with refuses(
        "nothing finds the windows of Window(); register a discretiser for Unknown in DISCRETISERS of "
        "slicewise.slicing.rows.registry"
    ):
        discretisers_for([Unknown()])


class Unknown(Window):
    """A kind of window that the engine has not learned of."""

    context = Context.FORWARD_FREE
    measures = (TIME,)

    def __repr__(self):
        return "Window()"


@pytest.mark.parametrize(
    ("window", "parameters"),
    [
        (sw.sliding("2 minutes", every="1 minute", offset="30 seconds"), {"length": 120, "every": 60, "offset": 30}),
        (sw.sliding(120, every=60, offset=30), {"length": 120, "every": 60, "offset": 30}),
        (sw.sliding(rows(5), every="1 minute"), {"length": 5, "every": 60}),
        (sw.cumulative("1 hour", every="1 minute", offset="1 minute"), {"length": 3600, "every": 60, "offset": 60}),
        (sw.landmark(every="1 minute", since="1970-01-02"), {"every": 60, "since": 86400, "on": None}),
        (sw.landmark(every=60, since="1970-01-02"), {"every": 60, "since": 86400, "on": None}),
        (sw.landmark(every="1 minute", since=86400), {"every": 60, "since": 86400, "on": None}),
        (sw.between("1970-01-02", "1970-01-03"), {"start": 86400, "end": 172800}),
        (sw.between(86400, 172800), {"start": 86400, "end": 172800}),
        (sw.session("1 minute"), {"gap": 60}),
        (sw.policy(too_old, every="1 minute"), {"every": 60}),
    ],
    ids=repr,
)
def test_a_window_goes_into_the_unit_of_the_time_column(window, parameters):
    there = window.in_unit("seconds")
    values = {name: getattr(there, name) for name in parameters}
    assert {name: value.size if isinstance(value, Amount) else value for name, value in values.items()} == parameters
    assert there.time_measure == Measure("time", unit="seconds")
    assert there.in_unit("seconds") is there
    assert there.in_unit(None).in_unit("seconds") == there


@pytest.mark.parametrize("window", WINDOWS, ids=repr)
def test_without_a_unit_a_window_stays_as_it_is(window):
    assert window.in_unit(None) is window


def test_numbers_on_a_measure_can_be_made_whole():
    window = sw.sliding(units(2.5, "km"), every=units(0.25, "km"), offset=units(0.125, "km")).scaled(3)
    assert window == sw.sliding(units(2500, "km"), every=units(250, "km"), offset=units(125, "km"))
    assert window.family is not None


def test_runs_longer_than_any_stream_are_no_windows():
    op = sw.Workload("t").query("q", sw.frames("v > 0", min_rows=2**70), n=sw.count()).operator()
    op.process_batch({"t": [1, 2], "v": [1, 1]})
    assert list(op.close()) == []


# -- amounts in every spelling


@pytest.mark.parametrize("length", ["90 seconds", "1m30s", dt.timedelta(seconds=90), np.timedelta64(90, "s")])
def test_lengths_mean_the_same_however_they_are_said(length):
    assert sw.tumbling(length) == Sliding(Amount(90 * SECOND, TIME), Amount(90 * SECOND, TIME))
    assert sw.session(length).gap.size == 90 * SECOND


@pytest.mark.parametrize(
    "since", ["2024-01-01", dt.date(2024, 1, 1), dt.datetime(2024, 1, 1), np.datetime64("2024-01-01")]
)
def test_instants_mean_the_same_however_they_are_said(since):
    assert sw.landmark(every="1 hour", since=since) == Landmark(Amount(HOUR, TIME), 1_704_067_200 * SECOND)
    assert sw.between(since, "2024-01-02").start == 1_704_067_200 * SECOND


def test_a_landmark_begins_with_the_epoch():
    assert repr(sw.landmark(every="1 hour")) == "landmark(every='1 hour', since='1970-01-01 00:00:00')"
    assert repr(sw.landmark(every=5)) == "landmark(every=5, since=0)"


# -- offsets


@pytest.mark.parametrize(
    ("window", "offset"),
    [
        (sw.tumbling("1 hour", offset="90 minutes"), 30 * MINUTE),
        (sw.tumbling("1 hour", offset="-15 minutes"), 45 * MINUTE),
        (sw.tumbling("1 hour", offset="1 day"), 0),
        (sw.tumbling("1 hour", offset=dt.timedelta(minutes=5)), 5 * MINUTE),
        (sw.sliding(10, every=3, offset=7), 1),  # windows a slide apart are the same windows
        (sw.sliding(10, every=3, offset=-1), 2),
        (sw.sliding(2, every=5, offset=-1), 4),
        (sw.cumulative(12, every=4, offset=13), 1),  # but here only whole lengths are
        (sw.cumulative(12, every=4, offset=4), 4),
        (sw.tumbling(rows(10), offset=rows(13)), 3),
        (sw.tumbling(units(10, "km"), offset=units(13, "km")), 3),
    ],
)
def test_offsets_are_the_smallest_that_say_the_same(window, offset):
    assert window.offset == offset


@given(st.integers(1, 50), st.integers(1, 50), st.integers(-200, 200), st.integers(-3, 3))
def test_an_offset_a_whole_slide_further_is_the_same_window(length, every, offset, slides):
    window = sw.sliding(length, every=every, offset=offset)
    assert window == sw.sliding(length, every=every, offset=offset + slides * every)
    assert 0 <= window.offset < every


def test_offset_zero_fits_every_measure():
    assert sw.tumbling("1 hour", offset=0) == sw.tumbling("1 hour", offset="0 seconds") == sw.tumbling("1 hour")
    assert sw.tumbling(rows(10), offset=0) == sw.tumbling(rows(10))


def test_offsets_in_units_keep_their_fraction():
    window = sw.tumbling(units(2.5, "km"), offset=units(3.0, "km"))
    assert window.offset == 0.5
    assert repr(window) == "tumbling(units(2.5, 'km'), offset=units(0.5, 'km'))"
    assert sw.tumbling(units(0.5, "km"), offset=units(0.25, "km")).offset == 0.25


# -- what is refused


@pytest.mark.parametrize("make", [sw.tumbling, sw.session, lambda x: sw.sliding(x, every=x)])
@pytest.mark.parametrize("bad", [0, -1, "0 seconds", "-5 minutes", dt.timedelta(0)])
def test_lengths_are_positive(make, bad):
    name = "gap" if make is sw.session else "length"
    with refuses(f"`{name}` must be positive; got {bad!r}"):
        make(bad)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda x: sw.sliding(10, every=x), "every"),
        (lambda x: sw.cumulative(10, every=x), "every"),
        (lambda x: sw.cumulative(x, every=5), "length"),
        (lambda x: sw.landmark(every=x), "every"),
        (lambda x: sw.policy(too_old, every=x), "every"),
    ],
)
def test_every_amount_is_checked_under_its_name(make, name):
    with refuses(f"`{name}` must be positive; got 0"):
        make(0)
    with pytest.raises(QueryError, match=f"^`{name}` must say what it is counted in; got 1.5, a float; "):
        make(1.5)


def test_months_are_no_length():
    with refuses("`gap` is in 'month', which has no fixed length; got '1 month'; use days, as in '30 days'"):
        sw.session("1 month")


def test_sliding_mixes_no_duration_with_an_integer():
    with refuses(
        "`length` and `every` mix a duration and a plain integer; got '10 seconds' and 5; "
        "use durations for a timestamp column, integers for an integer one"
    ):
        sw.sliding("10 seconds", every=5)
    with pytest.raises(QueryError, match="got 5 and '10 seconds'"):
        sw.sliding(5, every="10 seconds")


def test_an_offset_needs_one_measure():
    with refuses("`offset` must be in the measure of the window; got 1 with '5 seconds'"):
        sw.sliding(rows(10), every="5 seconds", offset=1)
    with refuses("`offset` shifts ticks of event time; got '1 second' with every=rows(5); leave it out"):
        sw.sliding("1 minute", every=rows(5), offset="1 second")
    with refuses("`offset` shifts ticks of event time; got 3 with every=rows(1); leave it out"):
        sw.policy(too_old, offset=3)


@pytest.mark.parametrize(
    ("window", "text"),
    [
        (
            sw.sliding(rows(10), every="1 minute", offset="90 seconds"),
            "sliding(rows(10), every='1 minute', offset='30 seconds')",
        ),
        (sw.sliding(units(5, "km"), every=10, offset=-3), "sliding(units(5, 'km'), every=10, offset=7)"),
        (
            sw.adaptive("v", every="1 hour", offset="5 minutes"),
            "adaptive('v', confidence=0.002, every='1 hour', offset='5 minutes')",
        ),
    ],
)
def test_windows_with_ticks_of_event_time_have_an_offset_whatever_their_length_is_in(window, text):
    assert repr(window) == text
    in_seconds = sw.Workload("t", unit="seconds").query("q", window, n=sw.count()).queries[0].window
    assert in_seconds.offset * 10**6 == window.offset or window.offset == in_seconds.offset == 7


def test_ticks_are_shifted():
    op = sw.Workload("t").query("q", sw.sliding(rows(2), every=10, offset=3), n=sw.count(), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 4, 5, 15], "v": [1, 2, 4, 8]})
    assert [(r.start, r.end, r.values["s"]) for r in op.close()] == [(1, 3, 1), (4, 13, 6), (5, 23, 12)]


def test_shifted_ticks_between_two_rows_are_alike_whether_one_by_one_or_together(monkeypatch):
    found = []
    for few in (0, 10**6):
        monkeypatch.setattr("slicewise.slicing.rows.ticks.FEW_TICKS", few)
        op = sw.Workload("t").query("q", sw.sliding(rows(2), every=10, offset=-3), n=sw.count()).operator()
        op.process_batch({"t": [1, 4, 205, 206]})
        found.append([(r.start, r.end, r.values["n"]) for r in [*op.advance(100), *op.close()]])
    assert found[0] == found[1]
    assert [end for _, end, _ in found[0]] == list(range(7, 208, 10))


def test_an_offset_is_in_the_measure_of_the_window():
    with refuses("`offset` must be in the measure of the window; got 5 with '1 hour'"):
        sw.tumbling("1 hour", offset=5)
    with refuses("`offset` must be in the measure of the window; got '5 seconds' with 10"):
        sw.cumulative(10, every=5, offset="5 seconds")
    with refuses("`offset` must be in the measure of the window; got 5 with rows(10)"):
        sw.tumbling(rows(10), offset=5)


def test_sessions_have_gaps_on_time_and_on_units():
    assert repr(sw.session(units(2, "km"))) == "session(units(2, 'km'))"
    with refuses("`gap` must be a length of event time, or units of a column; got rows(10); positions have no gaps"):
        sw.session(rows(10))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.cumulative(rows(10), every=5), "`length` and `every` must be in one measure; got rows(10) and 5"),
        (
            lambda: sw.cumulative(units(1, "km"), every=units(0.3, "km")),
            "`every` must divide `length`; got every=units(0.3, 'km') and length=units(1, 'km'); the last growing "
            "window of each length would end beside it",
        ),
        (
            lambda: sw.landmark(every=rows(10), since=units(5, "km")),
            "`since` and `every` must be in one measure; got units(5, 'km') and rows(10)",
        ),
        (
            lambda: sw.landmark(every=5, since=rows(3)),
            "`since` and `every` must be in one measure; got rows(3) and 5",
        ),
        (
            lambda: sw.between(rows(1), units(5, "km")),
            "`start` and `end` must be in one measure; got rows(1) and units(5, 'km')",
        ),
        (lambda: sw.between(rows(1), 5), "`start` and `end` must be in one measure; got rows(1) and 5"),
        (lambda: sw.between(rows(5), rows(5)), "`end` must lie after `start`; got start=rows(5) and end=rows(5)"),
    ],
)
def test_windows_on_rows_and_units_are_in_one_measure(make, message):
    with refuses(message):
        make()


@pytest.mark.parametrize(
    "text",
    [
        "between(rows(100), rows(200))",
        "between(units(-2.5, 'km'), units(3, 'km'))",
        "landmark(every=rows(10), since=3)",
        "landmark(every=units(0.5, 'km'), since=-1.5)",
        "cumulative(rows(100), every=rows(10), offset=rows(3))",
        "cumulative(units(0.3, 'km'), every=units(0.1, 'km'))",
        "session(units(2, 'km'))",
    ],
)
def test_windows_on_measures_are_written_as_they_are_made(text):
    names = {"between": sw.between, "landmark": sw.landmark, "cumulative": sw.cumulative, "session": sw.session}
    window = eval(text, {**names, "rows": rows, "units": units})
    assert repr(window) == text
    assert window.in_unit("seconds") is window


def test_cumulative_is_in_one_measure():
    with refuses("`length` and `every` must be in one measure; got '1 day' and 5"):
        sw.cumulative("1 day", every=5)


def test_cumulative_divides():
    with refuses(
        "`every` must divide `length`; got every='7 hours' and length='1 day'; "
        "the last growing window of each length would end beside it"
    ):
        sw.cumulative("1 day", every="7 hours")
    with pytest.raises(QueryError, match=r"^`every` must divide `length`; got every=20 and length=10; "):
        sw.cumulative(10, every=20)


@pytest.mark.parametrize(
    "window", [sw.landmark(every=5, since="2024-01-01"), sw.landmark(every="1 hour", since=7)], ids=repr
)
def test_a_landmark_is_in_one_measure_unless_a_unit_makes_it_one(window):
    with refuses(
        f"query 'q': `since` and `every` must be in one measure; got {window!r}; use a point in time and a duration "
        "for a timestamp column, integers for an integer one, or say what those count: Workload(unit=...)"
    ):
        sw.Workload("t").query("q", window, n=sw.count())
    assert sw.Workload("t", unit="seconds").query("q", window, n=sw.count()).queries[0].window.on is None


def test_a_landmark_begins_at_a_point_in_time():
    with pytest.raises(QueryError, match=r"^`since` is not a point in time that we can read; got 'yesterday'; "):
        sw.landmark(every="1 hour", since="yesterday")


def test_between_runs_forwards():
    with refuses("`end` must lie after `start`; got start=5 and end=5"):
        sw.between(5, 5)
    with refuses("`end` must lie after `start`; got start='2024-02-01' and end='2024-01-01'"):
        sw.between("2024-02-01", "2024-01-01")


def test_between_is_in_one_measure():
    with refuses("`start` and `end` must both be instants or both be integers; got '2024-01-01' and 5"):
        sw.between("2024-01-01", 5)
    with pytest.raises(QueryError, match=r"^`end` must be a point in time; got None; "):
        sw.between(0, None)


@pytest.mark.parametrize("make", [sw.punctuated, sw.frames])
@pytest.mark.parametrize("bad", ["", "   ", None, 5])
def test_a_condition_is_a_text_or_a_function(make, bad):
    with refuses(f"`condition` must be a column name, an expression such as 'price < 10', or a function; got {bad!r}"):
        make(bad)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "2", None])
def test_frames_have_a_positive_number_of_rows(bad):
    with refuses(f"`min_rows` must be a positive integer; got {bad!r}"):
        sw.frames("v > 3", min_rows=bad)


def test_a_user_defined_window_needs_a_factory():
    with refuses("`factory` must be a class or function that makes a window object; got 5"):
        sw.user_defined(5)


@pytest.mark.parametrize("bad", ["price", [1], None, 7])
def test_a_user_defined_window_reads_named_columns(bad):
    with refuses(f"`columns` must be a list of column names; got {bad!r}"):
        sw.user_defined(Trader, columns=bad)


def test_a_policy_is_a_function():
    with refuses("`evict` must be a function evict(total, oldest) -> bool; got 5"):
        sw.policy(5)


def test_a_policy_watches_aggregates():
    assert sw.policy(too_old, watch={"n": sw.count()}).watch == (("n", sw.count()),)
    with refuses("`watch` must map names to aggregates; got 5 for 'n'"):
        sw.policy(too_old, watch={"n": 5})
    with refuses("`watch` must map names to aggregates; got [5]"):
        sw.policy(too_old, watch=[5])


@pytest.mark.parametrize(
    ("make", "parameter"),
    [
        (lambda: sw.tumbling("0 seconds"), "length"),
        (lambda: sw.tumbling(10, offset="1 second"), "offset"),
        (lambda: sw.sliding("1 second", every=5), "every"),
        (lambda: sw.sliding(5, every=rows(5), offset=1), "offset"),
        (lambda: sw.session(rows(5)), "gap"),
        (lambda: sw.cumulative(10, every="1 second"), "every"),
        (lambda: sw.cumulative(10, every=3), "every"),
        (lambda: sw.cumulative(rows(10), every=3), "every"),
        (lambda: sw.landmark(every=5, since="yesterday"), "since"),
        (lambda: sw.landmark(every=5, since="2024-01-01").in_unit(None), "since"),
        (lambda: sw.tumbling("1 ms").in_unit("seconds"), "length"),
        (lambda: sw.between(0, "2024-01-01"), "end"),
        (lambda: sw.between(5, 5), "end"),
        (lambda: sw.punctuated("v > 3", columns=["v"]), "columns"),
        (lambda: sw.frames("v > 3", min_rows=0), "min_rows"),
        (lambda: sw.frames(is_start, columns="v"), "columns"),
        (lambda: sw.user_defined(5), "factory"),
        (lambda: sw.user_defined(Trader, columns=[5]), "columns"),
        (lambda: sw.policy(5), "evict"),
        (lambda: sw.policy(too_old, watch=[5]), "watch"),
        (lambda: sw.policy(too_old, watch={"n": 5}), "watch"),
        (lambda: sw.policy(too_old, every=0), "every"),
    ],
)
def test_errors_carry_the_parameter_that_they_begin_with(make, parameter):
    with pytest.raises(QueryError) as caught:
        make()
    assert (caught.value.parameter, caught.value.query, caught.value.column) == (parameter, None, None)
    assert f"`{parameter}`" in str(caught.value)
