"""Integer time under lengths in time: every unit, beside plain integers, timestamps and the definition."""

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
from slicewise.amounts import UNITS
from slicewise.errors import DataError, QueryError, StateError
from slicewise.times import LARGEST_TIME, largest_time
from tests.slicing.running import TYPES, assert_same, assert_same_in_order, columns_of, run_operator, run_oracle
from tests.slicing.strategies import aggregates_over, mixed_workloads, steps, workloads
from tests.slicing.unit_time import TICKS, in_durations, in_integers, in_timestamps

units = st.sampled_from(sorted(UNITS))
#: Where ticks are counted from: the epoch, and this year.
starts = st.sampled_from([0, 1_760_000_000])
#: m4 and longest_rise report event times in their values, which are timestamps where windows have them.
without_times = aggregates_over().filter(lambda a: a.name not in ("m4", "longest_rise"))


def any_workloads() -> st.SearchStrategy[sw.Workload]:
    """Workloads whose windows are lengths: bounds in a list, edges by code and gaps of rows are not scaled."""
    both = st.one_of(workloads(without_times), mixed_workloads())
    return both.filter(lambda workload: all(_is_scaled(query.window) for query in workload.queries))


def _is_scaled(window: sw.windows.Window) -> bool:
    by_rows = getattr(window, "places_edges", False) or isinstance(getattr(window, "gap", None), str)
    return window.listing is None and not by_rows


def moved(epochs, unit: str, start: int, data: st.DataObject | None = None) -> list:
    """Rows and watermarks of ticks in the unit of a column, some seconds after the epoch.

    With ``data``, times lie anywhere between the ticks.
    """
    size, _, _ = TICKS[unit]

    def at(tick: int) -> int:
        rest = data.draw(st.integers(0, size - 1)) if data is not None and size > 1 else 0
        return start * UNITS[unit] + tick * size + rest

    def chunk(rows):
        return [{**row, "t": at(row["t"])} for row in rows]

    # Watermarks of one tick stay in order, wherever between the ticks they lie.
    marks = sorted(at(mark) for _, mark in epochs if mark is not None)
    chunked = [[chunk(rows) for rows in chunks] for chunks, _ in epochs]
    return list(zip(chunked, [*marks, None], strict=True))


def shifted(workload: sw.Workload, unit: str, start: int) -> sw.Workload:
    """A workload of ticks whose instants lie some seconds after the epoch."""
    ticks = start * UNITS[unit] // TICKS[unit][0]
    found = workload
    for query in workload.queries:
        window = query.window
        if window.kind == "landmark" and window.measure.is_event_time:
            window = sw.landmark(every=window.every, since=window.since + ticks)
        elif window.kind == "between" and window.measure.is_event_time:
            window = sw.between(window.start + ticks, window.end + ticks)
        found = found.without(query.name).query(query.name, window, **query.aggregates)
    return found


@given(any_workloads(), steps(), units, starts, st.booleans(), st.data())
def test_durations_over_a_column_with_a_unit_are_its_integers(workload, epochs, unit, start, one_by_one, data):
    """The definition in plain integers, whatever the unit: nothing is rounded, nanoseconds neither."""
    workload, epochs = shifted(workload, unit, start), moved(epochs, unit, start, data)
    expected, late = run_oracle(in_integers(workload, unit), epochs)
    said = in_durations(workload, unit)
    assert_same(run_oracle(said, epochs)[0], expected)
    op = said.operator(types=TYPES)
    assert_same(run_operator(op, epochs, one_by_one=one_by_one), expected)
    assert sorted(r.time for r in op.late()) == sorted(time for time, _, _ in late)


@given(any_workloads(), steps(), units, starts)
def test_the_windows_are_those_of_the_same_rows_as_timestamps(workload, epochs, unit, start):
    workload, epochs = shifted(workload, unit, start), moved(epochs, unit, start)
    size, _, us = TICKS[unit]
    op, stamped = (
        in_durations(workload, unit).operator(types=TYPES),
        in_timestamps(workload, unit).operator(types=TYPES),
    )

    def micros(t):
        return t // size * us

    for chunks, mark in epochs:
        for chunk in filter(None, chunks):
            columns = columns_of(chunk)
            op.process_batch(columns)
            times = np.array([micros(t) for t in columns["t"]])
            stamped.process_batch({**columns, "t": pa.array(times).cast(pa.timestamp("us"))})
        found = op.close() if mark is None else op.advance(mark)
        expected = stamped.close() if mark is None else stamped.advance(micros(mark))
        assert len(found) == len(expected)
        if found:
            mine, theirs = found.to_arrow(), expected.to_arrow()
            for table in (mine, theirs):
                assert table.schema.field("window").type.field("start").type == pa.timestamp("us")
            assert sorted(map(repr, mine.to_pylist())) == sorted(map(repr, theirs.to_pylist()))


@given(any_workloads(), steps(), units)
def test_snapshots_go_on_in_every_unit(workload, epochs, unit):
    workload, epochs = in_durations(workload, unit), moved(epochs, unit, 0)

    def again(op):
        return workload.operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot())))

    expected = run_operator(workload.operator(types=TYPES), epochs)
    assert_same(run_operator(workload.operator(types=TYPES), epochs, between=again), expected)


@pytest.mark.parametrize("unit", UNITS)
def test_m4_reports_timestamps_where_windows_do(unit):
    size, _, us = TICKS[unit]
    op = sw.Workload("t", unit=unit).query("q", sw.tumbling("1 minute"), chart=sw.m4("v")).operator()
    op.process_batch({"t": [7 * size, 5 * size, 9 * size], "v": [1, 2, 0]})
    (result,) = op.close()
    epoch = dt.datetime(1970, 1, 1)
    assert (result.start, result.end) == (0, 60 * UNITS[unit])
    times = {"first": 5, "last": 9, "min": 9, "max": 5}
    assert result.values["chart"] == {"first": 2, "last": 0, "min": 0, "max": 2} | {
        f"{name}_time": epoch + dt.timedelta(microseconds=n * us) for name, n in times.items()
    }


@pytest.mark.parametrize("unit", UNITS)
def test_time_series_know_seconds_and_half_lives_in_every_unit(unit):
    second = UNITS[unit]
    series = {"speed": sw.rate("v"), "recent": sw.ewma("v", "1 second"), "rise": sw.longest_rise("v")}
    op = (
        sw.Workload("t", unit=unit)
        .query("q", sw.tumbling("1 minute"), held=sw.time_weighted_avg("v"), **series)
        .operator()
    )
    op.process_batch({"t": [3 * second, 5 * second], "v": [1, 9]})
    (result,) = op.close()
    assert result.values["speed"] == 4.0
    assert result.values["recent"] == (1 * 0.25 + 9) / 1.25
    assert result.values["held"] == (2 * 1 + 55 * 9) / 57
    at = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=3)
    assert result.values["rise"] == {"start": at, "end": at + dt.timedelta(seconds=2), "length": 2}


@pytest.mark.parametrize("unit", UNITS)
def test_an_error_names_the_window_as_a_time(unit):
    op = sw.Workload("t", unit=unit).query("q", sw.session("1 hour"), s=sw.sum("v")).operator()
    op.process_batch({"t": [1_700_000_000 * UNITS[unit]] * 2, "v": [2**63 - 1, 1]})
    with pytest.raises(sw.OverflowInWindowError) as caught:
        op.close()
    assert str(caught.value.label) == "query 'q', window [2023-11-14 22:13:20, 2023-11-14 23:13:20)"


# -- what is said


def hourly(unit: str | None, **how) -> sw.Workload:
    return sw.Workload("ts", unit=unit, **how).query("q", sw.tumbling("1 hour"), n=sw.count())


def test_epoch_seconds_have_the_hours_of_their_day():
    op = hourly("seconds").operator()
    op.process_batch({"ts": [1_700_000_000]})
    results = op.close()
    assert [(r.start, r.end) for r in results] == [(1_699_999_200, 1_700_002_800)]
    assert results.to_arrow()["window"].to_pylist() == [
        {"start": dt.datetime(2023, 11, 14, 22), "end": dt.datetime(2023, 11, 14, 23)}
    ]


def test_waiting_is_kept_in_the_unit_of_the_column_however_it_is_said():
    for waits in (
        {"watermark": "2 seconds", "lateness": dt.timedelta(minutes=1)},
        {"watermark": 2000, "lateness": 60_000},
    ):
        w = sw.Workload("ts", unit="milliseconds", **waits)
        assert (w.watermark, w.lateness) == (2000, 60_000)
        assert repr(w) == "Workload(time='ts', unit='milliseconds', watermark='2 seconds', lateness='1 minute')"


def test_plain_integers_are_in_the_unit_of_the_column():
    """Windows, gaps, instants and waiting: whichever way they are said, they are the same and read the same."""
    w = sw.Workload("ts", unit="seconds", lateness="1 minute")
    said = [
        sw.tumbling("1 hour", offset="5 minutes"),
        sw.session("30 seconds"),
        sw.landmark(every="1 hour", since=3600),
    ]
    said += [sw.between("1970-01-01", "1970-01-02"), sw.sliding(sw.rows(5), every="1 minute")]
    plain = [sw.tumbling(3600, offset=300), sw.session(30), sw.landmark(every=3600, since=3600)]
    plain += [sw.between(0, 86_400), sw.sliding(sw.rows(5), every=60)]
    for a, b in zip(said, plain, strict=True):
        one, two = (w.query("q", window, n=sw.count()) for window in (a, b))
        assert one == two
        assert repr(one) == repr(two)
    assert repr(w.query("q", plain[2], n=sw.count()).queries[0].window) == (
        "landmark(every='1 hour', since='1970-01-01 01:00:00')"
    )


def test_lengths_below_a_microsecond_can_be_said_in_integers():
    w = sw.Workload("ts", unit="nanoseconds").query("q", sw.tumbling(1500), n=sw.count())
    assert repr(w.queries[0].window) == "tumbling('1 microsecond 500 nanoseconds')"
    op = w.operator()
    op.process_batch({"ts": [1499, 1500]})
    assert [(r.start, r.end) for r in op.close()] == [(0, 1500), (1500, 3000)]


def test_a_workload_with_a_unit_travels_and_can_go_on():
    w = hourly("seconds", watermark="1 minute")
    for again in (pickle.loads(pickle.dumps(w)), w.without("q").query("q", sw.tumbling(3600), n=sw.count())):
        assert again == w
        assert hash(again) == hash(w)
    assert w != hourly("milliseconds", watermark="1 minute")
    # A window may move to a workload of another unit.
    moved = sw.Workload("ts", unit="milliseconds").query("q", w.queries[0].window, n=sw.count())
    assert moved.queries[0].window.length.size == 3_600_000
    assert sw.Workload("ts").query("q", w.queries[0].window, n=sw.count()) == hourly(None)


def test_a_length_in_the_unit_of_the_column():
    assert hourly("seconds").time_length("1 hour", name="ahead") == 3600
    assert hourly("seconds").time_length(3600, name="ahead") == 3600
    assert hourly(None).time_length("1 hour", name="ahead") == 3_600_000_000
    plain = sw.Workload("ts").query("q", sw.tumbling(5), n=sw.count())
    assert plain.time_length(7, name="ahead") == 7
    with refuses(
        QueryError,
        "`ahead` must be a whole number of seconds, the time column's unit; got '500 milliseconds'; round it",
    ):
        hourly("seconds").time_length("500 ms", name="ahead")
    notions = "one workload has one notion of time; got durations in {} and plain integers in {}; use durations for a "
    notions += "timestamp column, integers for an integer one"
    with refuses(QueryError, notions.format("`ahead`", "the workload")):
        plain.time_length("1 hour", name="ahead")
    with refuses(QueryError, notions.format("the workload", "`ahead`")):
        hourly(None).time_length(5, name="ahead")


def test_explain_says_the_unit():
    said = hourly("seconds", watermark="1 minute").explain()
    assert said.startswith(
        "workload  time ts in seconds, no keys, rows out of order by up to 1 minute, corrected for 0 seconds\n"
    )
    assert "tumbling('1 hour')" in said


# -- what is refused


def refuses(error, message: str):
    """Expect an error whose whole message this is."""
    return pytest.raises(error, match=f"^{re.escape(message)}$")


KNOWN = "'seconds', 'milliseconds', 'microseconds', 'nanoseconds'"
NEEDED = "the time column 'ts' holds {}, but the windows are given as durations; say what its integers count: "
NEEDED += f"Workload(time='ts', unit=...) with one of {KNOWN}"


@pytest.mark.parametrize("type_", [pa.int8(), pa.int32(), pa.int64(), pa.uint16()], ids=str)
def test_integers_under_durations_need_their_unit(type_):
    op = hourly(None).operator()
    for _ in range(2):
        with refuses(DataError, NEEDED.format(type_)):
            op.process_batch({"ts": pa.array([1, 2], type_)})
    with refuses(DataError, NEEDED.format("the integer 5")):
        op.process(5, {})
    with refuses(DataError, NEEDED.format("the integer 5")):
        hourly(None).operator(ordered=True).process(np.int64(5), {})
    op.process(dt.datetime(1970, 1, 1, 5), {})  # nothing is lost
    assert [r.start for r in op.close()] == [5 * 3_600_000_000]


@pytest.mark.parametrize("waits", ["watermark", "lateness"])
def test_waiting_in_durations_needs_the_unit_too(waits):
    w = sw.Workload("ts", **{waits: "1 minute"}).query("q", sw.tumbling(sw.rows(2)), n=sw.count())
    with refuses(DataError, NEEDED.format("int64")):
        w.operator().process_batch({"ts": [1, 2]})


def test_windows_that_only_count_rows_need_no_unit_and_show_the_columns_own_integers():
    op = sw.Workload("ts").query("q", sw.tumbling(sw.rows(2)), n=sw.count(), chart=sw.m4("v")).operator()
    op.process_batch({"ts": [1_700_000_000, 1_700_000_060], "v": [1, 2]})
    table = op.close().to_arrow()
    assert table["window"].to_pylist() == [{"start": 1_700_000_000, "end": 1_700_000_060}]
    assert table["chart"].to_pylist()[0]["last_time"] == 1_700_000_060


def test_a_query_in_durations_is_not_added_to_plain_integers():
    counted = sw.Workload("ts").query("a", sw.tumbling(sw.rows(2)), n=sw.count())
    op = counted.operator()
    op.process_batch({"ts": [1, 2]})
    with refuses(DataError, NEEDED.format("int64")):
        op.add_query("q", sw.tumbling("1 hour"), n=sw.count())
    more = counted.query("q", sw.tumbling("1 hour"), n=sw.count())
    with refuses(DataError, NEEDED.format("int64")):
        more.operator().restore(op.snapshot())
    assert [r.values["n"] for r in op.close()] == [2]


def test_a_query_in_integers_is_not_added_to_timestamps():
    counted = sw.Workload("ts").query("a", sw.tumbling(sw.rows(2)), n=sw.count())
    op = counted.operator()
    op.process_batch({"ts": [dt.datetime(2024, 1, 1)] * 2})
    message = "the time column 'ts' holds timestamp[us], but the windows are given in plain integers; give them as "
    with refuses(DataError, message + "durations, such as '10 seconds'"):
        op.add_query("q", sw.tumbling(10), n=sw.count())
    assert [r.values["n"] for r in op.close()] == [2]


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        ([dt.datetime(2024, 1, 1)], "timestamp[us]"),
        ([dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], "timestamp[us, tz=UTC]"),
        ([dt.date(2024, 1, 1)], "date32[day]"),
        ([1.5], "double"),
        (["5"], "string"),
    ],
    ids=["naive", "aware", "date", "double", "text"],
)
def test_a_unit_is_for_integers(column, type_):
    op = hourly("seconds").operator()
    message = f"the time column 'ts' holds {type_}, and `unit` says what integers count; got unit='seconds'; "
    with refuses(DataError, message + "leave it out for timestamps, or cast the column"):
        op.process_batch({"ts": column})
    op.process(7, {})
    assert [r.start for r in op.close()] == [0]


@pytest.mark.parametrize("time", [dt.datetime(2024, 1, 1), "2024-01-01"])
def test_rows_and_watermarks_speak_the_unit(time):
    op = hourly("milliseconds").operator()
    with refuses(DataError, f"the time of a row must be an integer, in milliseconds; got {time!r}"):
        op.process(time, {})
    with refuses(DataError, f"`watermark` must be an integer, in milliseconds; got {time!r}"):
        op.advance(time)
    op.process(5, {})
    assert [r.end for r in op.advance(3_600_000)] == [3_600_000]
    assert op.stats().watermark == 3_600_000


def test_a_watermark_of_plain_integers_is_one():
    op = sw.Workload("ts").query("q", sw.tumbling(sw.rows(2)), n=sw.count()).operator()
    op.process_batch({"ts": [1, 2]})
    with refuses(DataError, "`watermark` must be an integer, as the time column is; got '2024-01-01'"):
        op.advance("2024-01-01")


@pytest.mark.parametrize("unit", ["second", "SECONDS", "weeks", "", 1000, ["seconds"], True])
def test_a_unit_is_one_of_four_words(unit):
    with refuses(QueryError, f"`unit` must be one of {KNOWN}; got {unit!r}; leave it out where time is a timestamp"):
        sw.Workload("ts", unit=unit)


WHOLE = "query 'q': `{}` must be a whole number of {}, the time column's unit; got {!r}; round it"


@pytest.mark.parametrize(
    ("window", "unit", "message"),
    [
        (sw.tumbling("1500 ms"), "seconds", WHOLE.format("length", "seconds", "1 second 500 milliseconds")),
        (sw.sliding("2 s", every="500 ms"), "seconds", WHOLE.format("every", "seconds", "500 milliseconds")),
        (sw.tumbling("2 s", offset="10 us"), "milliseconds", WHOLE.format("offset", "milliseconds", "10 microseconds")),
        (sw.session("1 us"), "milliseconds", WHOLE.format("gap", "milliseconds", "1 microsecond")),
        (sw.sliding(sw.rows(5), every="1 ms"), "seconds", WHOLE.format("every", "seconds", "1 millisecond")),
        (
            sw.landmark(every="1 s", since="2024-01-01 00:00:00.5"),
            "seconds",
            WHOLE.format("since", "seconds", "2024-01-01 00:00:00.5"),
        ),
        (
            sw.between("2024-01-01", "2024-01-01 00:00:00.000001"),
            "milliseconds",
            WHOLE.format("end", "milliseconds", "2024-01-01 00:00:00.000001"),
        ),
        (
            sw.between("2024-01-01", "2400-01-01"),
            "nanoseconds",
            "query 'q': `end` does not fit 64 bits in nanoseconds, the time column's unit; got '2400-01-01 00:00:00'; "
            "use less",
        ),
    ],
    ids=repr,
)
def test_a_length_that_is_no_multiple_of_the_unit_is_refused(window, unit, message):
    with refuses(QueryError, message):
        sw.Workload("t", unit=unit).query("q", window, n=sw.count())


@pytest.mark.parametrize("waits", ["watermark", "lateness"])
def test_waiting_that_is_no_multiple_of_the_unit_is_refused(waits):
    message = f"`{waits}` must be a whole number of seconds, the time column's unit; got '1 millisecond'; round it"
    with refuses(QueryError, message):
        sw.Workload("t", unit="seconds", **{waits: "1 ms"})
    with refuses(
        QueryError,
        f"`{waits}` does not fit 64 bits in nanoseconds, the time column's unit; got '200000 days'; use less",
    ):
        sw.Workload("t", unit="nanoseconds", **{waits: "200000 days"})


@pytest.mark.parametrize(
    ("unit", "window", "end"),
    [
        ("seconds", sw.tumbling(2**60), "38504-08-17, with lengths of at most 13343998 days"),
        ("milliseconds", sw.session(2**60), "38504-08-17, with lengths of at most 13343998 days"),
        ("microseconds", sw.session(2**61), "38504-08-17, with lengths of at most 13343998 days"),
        ("nanoseconds", sw.tumbling(2**60 + 1), "2079-08-08, with lengths of at most 13343 days"),
        ("nanoseconds", sw.between(0, 3 * 2**60), "2079-08-08, with lengths of at most 13343 days"),
    ],
)
def test_windows_end_where_event_times_do(unit, window, end):
    workload = sw.Workload("t", unit=unit).query("q", window, n=sw.count())
    shown = repr(workload.queries[0].window)
    with refuses(
        QueryError, f"query 'q': {shown} reaches further than event times do, which end at {end}; make it shorter"
    ):
        workload.operator()


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("sign", [1, -1])
def test_times_that_no_window_could_lie_around_are_refused(unit, sign):
    op, latest = hourly(unit).operator(), sign * largest_time(unit)
    with refuses(DataError, f"the time column 'ts' holds {latest + sign} in row 1, which is out of range"):
        op.process_batch({"ts": [0, latest + sign]})
    with refuses(DataError, f"the time {latest + sign} is out of range; is it in {unit} since the epoch?"):
        op.process(latest + sign, {})
    op.process_batch({"ts": [latest]})
    (row,) = op.close().to_arrow()["window"].cast(pa.struct([("start", pa.int64()), ("end", pa.int64())])).to_pylist()
    assert row["start"] <= latest * 10**6 // UNITS[unit] < row["end"]


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("far", [2**60 + 1, 2**61, 2**62, 2**63, 2**70])
def test_a_row_beyond_all_times_does_not_stop_the_rows_around_it(far, ordered):
    """Also where rows are only compared with the next edge."""
    message = f"the time {far} is out of range; is it in microseconds since the epoch?"
    op = sw.Workload("t").query("q", sw.tumbling(2**59), n=sw.count()).operator(ordered=ordered)
    for t in (1, 2**58, 2**59 - 1):
        op.process(t, {})
        with refuses(DataError, message):
            op.process(far, {})
    if not ordered:
        op.process(-far, {})
        with refuses(DataError, f"the time {-far} is out of range; it was left out"):
            op.advance(0)
    assert [r.values["n"] for r in op.close()] == [3]


def test_another_unit_is_another_workload():
    op = hourly("seconds").operator()
    op.process_batch({"ts": [1, 2]})
    message = "the snapshot belongs to another workload: its `unit` is 'seconds', this one's {!r}; only queries may be "
    for unit in ("milliseconds", None):
        with refuses(StateError, message.format(unit) + "added or removed"):
            hourly(unit).operator().restore(op.snapshot())


# -- the ends of time


@st.composite
def far_workloads(draw: st.DrawFn) -> sw.Workload:
    """Windows as long and as far away as they may be, in any unit, and plain integers."""
    unit = draw(st.sampled_from([None, *UNITS]))
    latest = largest_time(unit)
    longest = min(latest, LARGEST_TIME)
    size = st.one_of(st.integers(longest // 3, longest), st.just(longest))
    instant = st.one_of(st.integers(-latest, latest), st.sampled_from([-latest, 0, latest]))
    kinds = st.one_of(
        st.builds(lambda n, o: sw.tumbling(n, offset=o), size, size),
        st.builds(lambda n, e: sw.sliding(n, every=e), size, size),
        st.builds(sw.session, st.one_of(size, st.integers(1, 5))),
        st.builds(lambda e, k: sw.cumulative(e // 4 * k, every=e // 4), size, st.integers(1, 4)),
        st.builds(lambda e, s: sw.landmark(every=e, since=s), size, instant),
        st.lists(instant, min_size=2, max_size=2, unique=True).map(lambda both: sw.between(*sorted(both))),
        st.just(sw.tumbling(sw.rows(2))),
        st.builds(lambda e: sw.sliding(sw.rows(2), every=e), size),
        st.builds(lambda n: sw.sliding(n, every=sw.rows(2)), size),
    )
    lateness = draw(st.one_of(st.just(0), st.integers(0, longest), st.sampled_from([2**61, 2**62, 2**63 - 1])))
    workload = sw.Workload("t", unit=unit, lateness=lateness)
    for i, window in enumerate(draw(st.lists(kinds, min_size=1, max_size=3))):
        workload = workload.query(f"q{i}", window, **{f"n{i}": sw.count(), f"s{i}": sw.collect_list("v")})
    return workload


def far_times(unit: str | None) -> st.SearchStrategy[int]:
    latest = largest_time(unit)
    ends = st.one_of(
        st.integers(0, 3), st.sampled_from([LARGEST_TIME // 2, LARGEST_TIME]).map(lambda n: n % (latest + 1))
    )
    return st.one_of(st.integers(-latest, latest), ends, ends.map(lambda n: latest - n), ends.map(lambda n: n - latest))


@given(far_workloads(), st.data(), st.booleans())
def test_the_first_and_the_last_event_times_have_their_windows(workload, data, one_by_one):
    time = far_times(workload.unit)
    marks = sorted(data.draw(st.lists(time, max_size=3)))
    row = st.builds(lambda t: {**dict.fromkeys(TYPES), "t": t, "v": t % 7}, time)
    chunks = st.lists(st.lists(row, max_size=4), max_size=2)
    epochs = [(data.draw(chunks), mark) for mark in [*marks, None]]
    expected, _ = run_oracle(workload, epochs)
    assert_same(run_operator(workload.operator(types=TYPES), epochs, one_by_one=one_by_one), expected)


@given(far_workloads(), st.data())
def test_in_order_too(workload, data):
    times = data.draw(st.lists(far_times(workload.unit), max_size=8))
    assert_same_in_order(workload, [{**dict.fromkeys(TYPES), "t": t, "v": t % 7} for t in times], data)


@pytest.mark.parametrize("ordered", [True, False])
def test_edges_so_far_apart_that_doubles_cannot_count_them(ordered):
    length = 384_307_168_202_282_325
    op = sw.Workload("t").query("q", sw.tumbling(length), n=sw.count()).operator(ordered=ordered)
    found = [*op.process_batch({"t": [-1, 0, length]}), *op.close()]
    assert [(r.start, r.values["n"]) for r in found] == [(-length, 1), (0, 1), (length, 1)]


def test_a_row_without_the_measure_is_not_late():
    w = sw.Workload("t").query("q", sw.tumbling(sw.units(10, "v")), n=sw.count())
    op = w.operator(types={"v": "double"})
    op.advance(10)
    op.process_batch({"t": [1, 3], "v": pa.array([None, 1.0])})
    assert [row.time for row in op.late()] == [3]
    # The first of them counts among rows, which needs no measure.
    op = w.query("p", sw.tumbling(sw.rows(2)), n=sw.count()).operator(types={"v": "double"})
    op.advance(10)
    op.process_batch({"t": [1, 3], "v": pa.array([None, 1.0])})
    assert [row.time for row in op.late()] == [1, 3]
