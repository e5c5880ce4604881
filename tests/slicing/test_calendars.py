"""Windows of the calendar: against `zoneinfo` by brute force, against the definition, and what is refused."""

# ruff: noqa: E501  (messages stand in one line)

from __future__ import annotations

import datetime as dt
import pickle
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, QueryError
from slicewise.testing import Oracle, attached
from slicewise.testing.time_windows import first_instant
from slicewise.windows import CalendarSliding, Context
from slicewise.windows.zones import zone_of
from tests.slicing.running import assert_same

HOUR, DAY = 3_600_000_000, 86_400_000_000
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
UTC = pa.timestamp("us", "UTC")

#: Daylight saving on both sides of the equator, at midnight too, by half an hour, twice a year for Ramadan, abolished;
#: zones that changed sides of the date line, and those that never did anything.
ZONES = [
    *("Europe/Berlin", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "America/New_York", "America/Sao_Paulo"),
    *("America/Havana", "America/St_Johns", "America/Santiago", "America/Caracas", "Asia/Tokyo", "Asia/Kolkata"),
    *("Asia/Tehran", "Asia/Amman", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein"),
    *("Pacific/Kiritimati", "Antarctica/Troll", "Asia/Pyongyang", "UTC"),
]
#: Clocks that change at one, at midnight and by half an hour, and a day that is left out.
SHOW_THE_RULE = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia")
every_zone = pytest.mark.parametrize(
    "zone", [pytest.param(zone, marks=[] if zone in SHOW_THE_RULE else pytest.mark.slow) for zone in ZONES]
)


def micros(text: str, zone: str = "UTC") -> int:
    at = dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone))
    return round((at - EPOCH) / dt.timedelta(microseconds=1))


def local(time: int, zone: str) -> dt.datetime:
    return (EPOCH + dt.timedelta(microseconds=int(time))).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def listed(window: CalendarSliding, low: str, high: str) -> list[tuple[str, str]]:
    """Its windows that hold an instant between two local times, in local time."""
    bounds = window.listing.windows(*(micros(at, window.zone) for at in (low, high)))
    pairs = zip(bounds.start.tolist(), bounds.end.tolist(), strict=True)
    return [tuple(f"{local(at, window.zone):%Y-%m-%d %H:%M}" for at in pair) for pair in pairs]


# Against zoneinfo


@every_zone
def test_days_begin_when_no_clock_showed_their_date_before_for_thirty_years(zone):
    low, high = micros("1989-12-25"), micros("2020-01-05")
    start, end, _ = sw.tumbling("1 day", zone=zone).listing.windows(low, high)
    assert start[0] <= low
    assert end[-1] >= high
    assert (start[1:] == end[:-1]).all()
    day = np.array([local(at, zone).date().toordinal() for at in start.tolist()])
    # At its first instant a day has its date, and no instant before had it or a later one: not the one just before...
    assert (np.diff(day) >= 1).all()
    assert all(local(at - 1, zone).date().toordinal() < n for at, n in zip(start.tolist(), day.tolist(), strict=True))
    # ... nor any other. At every fifth hour the latest date that clocks ever showed is that of the window.
    # (In St. John's they showed it for a minute, so the first instants of days are asked too.)
    hours = np.union1d(np.arange(low, high, 5 * HOUR), start[1:])
    dates = np.array([local(at, zone).date().toordinal() for at in hours.tolist()])
    assert (np.maximum.accumulate(dates) == day[np.searchsorted(start, hours, "right") - 1]).all()


@every_zone
def test_weeks_months_quarters_and_years_are_made_of_days(zone):
    low, high = micros("1990-01-01"), micros("2020-01-01")
    days = sw.tumbling("1 day", zone=zone).listing.windows(low, high).start.tolist()
    dates = [local(at, zone).date() for at in days]
    begins = {
        "1 week": lambda d: d.weekday() == 0,
        "1 month": lambda d: d.day == 1,
        "1 quarter": lambda d: d.day == 1 and d.month % 3 == 1,
        "1 year": lambda d: d.day == d.month == 1,
    }
    for length, is_first in begins.items():
        start, end, _ = sw.tumbling(length, zone=zone).listing.windows(low, high)
        assert (start[1:] == end[:-1]).all()
        expected = [at for at, date in zip(days, dates, strict=True) if is_first(date)]
        assert [at for at in start.tolist() if at >= days[0]] == expected, length


@given(
    st.sampled_from([*ZONES, "Europe/Amsterdam", "Africa/Monrovia"]),
    st.datetimes(dt.datetime(1930, 1, 1), dt.datetime(2095, 1, 1)).map(lambda at: at.replace(microsecond=0)),
)
def test_an_instant_is_the_first_that_shows_a_local_time(zone, at):
    local_time = np.array([round((at - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1))])
    assert zone_of(zone).first_instants(local_time).tolist() == [first_instant(at, zone)]


@pytest.mark.parametrize("zone", ["Africa/Casablanca", pytest.param("America/Santiago", marks=pytest.mark.slow)])
def test_far_away_rules_repeat(zone):
    years = np.array([f"{year}-07-01T12:00" for year in (0, 2, 1800, 2499, 2500, 2899, 2900, 9998)], "M8[us]")
    instants = zone_of(zone).first_instants(years.astype(np.int64))
    assert instants[2:].tolist() == [first_instant(at, zone) for at in years[2:].tolist()]
    assert (np.abs(instants - years.astype(np.int64)) < DAY).all()
    edge = sw.tumbling("1 year", zone=zone).listing.next_edge(2**60 - 1)
    assert edge is None or edge >= 2**60


# Days that are not like others


def test_clocks_that_skip_and_repeat_an_hour_make_days_of_23_and_25_hours():
    start, end, _ = sw.tumbling("1 day", zone="Europe/Berlin").listing.windows(
        micros("2024-01-01"), micros("2024-12-01")
    )
    hours = dict(zip(start.tolist(), ((end - start) // HOUR).tolist(), strict=True))
    odd = {f"{local(at, 'Europe/Berlin'):%Y-%m-%d}": n for at, n in hours.items() if n != 24}
    assert odd == {"2024-03-31": 23, "2024-10-27": 25}


def test_leap_days_and_ends_of_years():
    month = sw.tumbling("1 month", zone="Europe/Berlin")
    assert listed(month, "2024-02-10", "2024-02-11") == [("2024-02-01 00:00", "2024-03-01 00:00")]
    assert listed(month, "2023-02-28 23:59", "2023-02-28 23:59:59") == [("2023-02-01 00:00", "2023-03-01 00:00")]
    assert listed(month, "2023-12-31 23:59", "2024-01-01 00:01") == [
        ("2023-12-01 00:00", "2024-01-01 00:00"),
        ("2024-01-01 00:00", "2024-02-01 00:00"),
    ]
    week = sw.tumbling("1 week", zone="Europe/Berlin")
    assert listed(week, "2024-12-31", "2025-01-01") == [("2024-12-30 00:00", "2025-01-06 00:00")]
    leap = sw.sliding("366 days", every="1 day", zone="Europe/Berlin")
    assert ("2024-01-01 00:00", "2025-01-01 00:00") in listed(leap, "2024-12-31", "2025-01-01")


def test_a_day_that_did_not_take_place_has_no_window():
    """Samoa went to the other side of the date line: after the 29th of December 2011 came the 31st."""
    day = sw.tumbling("1 day", zone="Pacific/Apia")
    assert listed(day, "2011-12-29 12:00", "2011-12-31 12:00") == [
        ("2011-12-29 00:00", "2011-12-31 00:00"),
        ("2011-12-31 00:00", "2012-01-01 00:00"),
    ]
    two = sw.sliding("2 days", every="1 day", zone="Pacific/Apia")
    assert listed(two, "2011-12-31 12:00", "2011-12-31 13:00") == [
        ("2011-12-31 00:00", "2012-01-01 00:00"),  # the 30th and the 31st, of which one took place
        ("2011-12-31 00:00", "2012-01-02 00:00"),
    ]


def test_rows_behind_the_first_midnight_belong_to_the_new_day():
    """In Havana clocks went back from 01:00 to 00:00; in Sao Paulo from 00:00 to 23:00, when the new day had begun."""
    start, end, _ = sw.tumbling("1 day", zone="America/Sao_Paulo").listing.windows(
        micros("2018-02-17 12:00"), micros("2018-02-18 12:00")
    )
    assert [f"{local(at, 'America/Sao_Paulo'):%d %H:%M}" for at in start.tolist()] == ["17 00:00", "18 00:00"]
    assert ((end - start) // HOUR).tolist() == [25, 24]  # clocks never showed the 18th before they went back
    # In St. John's they went back at one minute past midnight: an hour of the old date is part of the new day.
    zone = "America/St_Johns"
    start, end, _ = sw.tumbling("1 day", zone=zone).listing.windows(
        micros("2005-10-30 12:00"), micros("2005-10-30 13:00")
    )
    (begin,) = start.tolist()
    assert f"{local(begin, zone):%d %H:%M}" == "30 00:00"
    assert f"{local(begin + HOUR // 2, zone):%d %H:%M}" == "29 23:30"
    assert (end - start).tolist() == [25 * HOUR]


def test_k_units_are_counted_from_1970_and_weeks_from_the_monday_before():
    cases = {
        "4 days": ("1969-12-28 00:00", "1970-01-01 00:00"),
        "2 weeks": ("1969-12-15 00:00", "1969-12-29 00:00"),
        "14 days": ("1969-12-18 00:00", "1970-01-01 00:00"),
        "5 months": ("1969-08-01 00:00", "1970-01-01 00:00"),
        "2 quarters": ("1969-07-01 00:00", "1970-01-01 00:00"),
        "3 years": ("1967-01-01 00:00", "1970-01-01 00:00"),
    }
    for length, before in cases.items():
        first, second = listed(sw.tumbling(length, zone="America/New_York"), "1969-12-28 12:00", "1970-01-01 00:01")
        assert first == before, length
        assert second[0] == before[1]


def test_an_offset_is_added_to_local_time():
    shift = sw.tumbling("1 day", offset="6 hours", zone="Europe/Berlin")
    assert listed(shift, "2024-03-30 12:00", "2024-03-31 12:00") == [
        ("2024-03-30 06:00", "2024-03-31 06:00"),
        ("2024-03-31 06:00", "2024-04-01 06:00"),
    ]
    skipped = sw.tumbling("1 day", offset="2 hours 30 minutes", zone="Europe/Berlin")
    assert listed(skipped, "2024-03-31 12:00", "2024-03-31 12:01") == [("2024-03-31 03:00", "2024-04-01 02:30")]
    fiscal = sw.tumbling("1 year", offset="3 months", zone="Asia/Tokyo")
    assert listed(fiscal, "2024-03-31", "2024-04-02") == [
        ("2023-04-01 00:00", "2024-04-01 00:00"),
        ("2024-04-01 00:00", "2025-04-01 00:00"),
    ]
    sundays = sw.tumbling("1 week", offset="-1 day", zone="UTC")
    assert listed(sundays, "2024-05-06", "2024-05-07") == [("2024-05-05 00:00", "2024-05-12 00:00")]
    noon = sw.tumbling("1 month", offset="12 hours", zone="UTC")
    assert listed(noon, "2024-05-06", "2024-05-07") == [("2024-05-01 12:00", "2024-06-01 12:00")]


# In the engine: as the oracle has it


def interesting(zone: str) -> st.SearchStrategy[int]:
    """Instants within days of the zone's oddities."""
    odd = {
        "Europe/Berlin": ["2024-03-31 00:00", "2024-10-27 00:00"],
        "Pacific/Apia": ["2011-12-30 10:00"],
        "America/St_Johns": ["2005-10-30 02:31"],
        "naive": ["2024-02-29 00:00"],
    }
    around = st.sampled_from([micros(text) for text in odd[zone]])
    steps = st.one_of(st.integers(-150, 150).map(lambda n: n * HOUR // 2), st.integers(-40, 40).map(lambda n: n * DAY))
    return st.builds(lambda at, by: at + by, around, steps)


def calendars(zone: str) -> st.SearchStrategy[CalendarSliding]:
    days = st.tuples(st.integers(1, 9), st.sampled_from(["day", "week"])).map(lambda both: f"{both[0]} {both[1]}s")
    months = st.tuples(st.integers(1, 7), st.sampled_from(["month", "quarter"])).map(lambda b: f"{b[0]} {b[1]}s")
    hours = st.sampled_from([0, 0, "6 hours", "-3 hours", "90 minutes"])
    return st.one_of(
        st.builds(lambda n, o: sw.tumbling(n, offset=o, zone=zone), days, hours),
        st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o, zone=zone), days, days, hours),
        st.builds(lambda n, o: sw.tumbling(n, offset=o, zone=zone), months, hours),
        st.builds(lambda n, e: sw.sliding(n, every=e, offset="1 month", zone=zone), months, months),
    )


OTHERS = [sw.tumbling("1 day"), sw.session("5 hours"), sw.sliding("30 hours", every="7 hours"), sw.tumbling(sw.rows(3))]


@st.composite
def cases(draw):
    """A workload with windows of a calendar among others, the type of its time column, and epochs of rows."""
    zone = draw(st.sampled_from(["Europe/Berlin", "Pacific/Apia", "America/St_Johns", "naive"]))
    lateness = draw(st.sampled_from(["0 seconds", "5 hours", "40 days"]))
    workload = sw.Workload("t", keys=["k"], lateness=lateness)
    for i, window in enumerate(draw(st.lists(calendars(zone), min_size=1, max_size=3))):
        workload = workload.query(f"c{i}", window, n=sw.count(), s=sw.sum("v"), w=sw.time_weighted_avg("v"))
    for i, window in enumerate(draw(st.lists(st.sampled_from(OTHERS), max_size=2, unique=True))):
        workload = workload.query(f"o{i}", window, n=sw.count(), last=sw.last("v"))
    row = st.tuples(interesting(zone), st.sampled_from("ab"), st.integers(-5, 5))
    marks = sorted(draw(st.lists(interesting(zone), max_size=3)))
    epochs = [(draw(st.lists(row, max_size=8)), mark) for mark in [*marks, None]]
    return workload, pa.timestamp("us", None if zone == "naive" else "UTC"), epochs


def arrow(rows, time_type):
    times, keys, values = zip(*rows, strict=True) if rows else ([], [], [])
    return {
        "t": pa.array(times, pa.int64()).cast(time_type),
        "k": pa.array(keys, pa.string()),
        "v": pa.array(values, pa.int64()),
    }


@given(cases(), st.booleans())
def test_calendars_among_other_windows_give_the_oracles_results(case, restored):
    workload, time_type, epochs = case
    op, oracle = workload.operator(types={"k": "string", "v": "bigint"}), Oracle(workload)
    found, expected = [], []
    for rows, mark in epochs:
        for t, k, v in rows:
            oracle.process(t, {"t": t, "k": k, "v": v}, (k,))
        results = list(op.process_batch(arrow(rows, time_type)))
        if restored:
            state = pickle.loads(pickle.dumps(op.snapshot()))
            op = pickle.loads(pickle.dumps(workload)).operator(types={"k": "string", "v": "bigint"}).restore(state)
        found.append(results + list(op.close() if mark is None else op.advance(mark)))
        expected.append(oracle.close() if mark is None else oracle.advance(mark))
    assert_same(found, expected)


@given(
    st.sampled_from(["Europe/Berlin", "Pacific/Apia", "naive"]).flatmap(
        lambda zone: st.tuples(calendars(zone), st.lists(interesting(zone), max_size=20), st.lists(interesting(zone)))
    )
)
def test_calendars_are_attached_as_of_the_last_tick(case):
    window, events, points = case
    workload = sw.Workload("t").query("q", window, n=sw.count(), s=sw.sum("v"))
    time_type = pa.timestamp("us", None if window.zone == "naive" else "UTC")
    rows = [{"t": t, "v": n} for n, t in enumerate(events)]
    table = pa.table({"t": pa.array(events, pa.int64()).cast(time_type), "v": pa.array(range(len(events)), pa.int64())})
    asked = pa.table({"t": pa.array(points, pa.int64()).cast(time_type)})
    found = workload.attach(asked, table).select(["q_n", "q_s"]).to_pylist()
    types = {"t": time_type, "v": pa.int64()}
    assert found == attached(workload, [(t, ()) for t in points], [(r["t"], r, ()) for r in rows], types=types)


def test_slices_are_shared_with_other_queries_and_cost_what_a_table_costs():
    days = sw.Workload("t").query("days", sw.tumbling("1 day", zone="Europe/Berlin"), n=sw.count())
    both = days.query("months", sw.tumbling("1 month", zone="Europe/Berlin"), n=sw.count())
    times = pa.array(range(micros("2024-03-01"), micros("2024-04-01"), HOUR), pa.int64()).cast(UTC)
    slices = []
    for workload in (days, both):
        op = workload.operator()
        op.process_batch({"t": times})
        slices.append(op.stats().slices)
        assert op.stats().tuples == 0
    assert slices == [32, 32]


def test_calendars_are_context_free_and_explain_says_so():
    month = sw.tumbling("1 month", zone="Europe/Berlin")
    assert month.context is Context.FREE
    text = sw.Workload("t").query("m", month, n=sw.count()).explain()
    assert "tumbling('1 month', zone='Europe/Berlin')" in text
    assert "context free, on time" in text


@pytest.mark.parametrize(
    "text",
    [
        "tumbling('1 month', zone='Europe/Berlin')",
        "sliding('3 months', every='1 month', zone='UTC')",
        "tumbling('1 day', offset='6 hours', zone='naive')",
        "sliding('1 year', every='1 quarter', offset='1 month', zone='Asia/Tokyo')",
        "tumbling('2 weeks', zone='UTC')",
    ],
)
def test_a_calendar_reads_as_it_is_written(text):
    window = eval(text, {"tumbling": sw.tumbling, "sliding": sw.sliding})
    assert repr(window) == text
    again = pickle.loads(pickle.dumps(window))
    assert again == window
    assert hash(again) == hash(window)
    assert again.listing == window.listing


def test_lengths_are_read_in_every_form():
    zone = "Europe/Berlin"
    assert sw.tumbling("interval 3 MONTHS", zone=zone) == sw.tumbling(np.timedelta64(3, "M"), zone=zone)
    assert sw.tumbling("1q", zone=zone).listing == sw.tumbling("3 mo", zone=zone).listing
    assert sw.tumbling(dt.timedelta(days=2), zone=ZoneInfo(zone)) == sw.tumbling("2d", zone=zone)
    assert sw.tumbling("1 day", offset="30 hours", zone=zone) == sw.tumbling("1 day", offset="6 hours", zone=zone)
    assert sw.tumbling("1 year", offset="15 months", zone=zone) == sw.tumbling("1 year", offset="1 quarter", zone=zone)


# What is refused


CALENDAR = (
    "; with `zone` it is a number of days, weeks, months, quarters or years, as in '3 months'; leave `zone` out for windows "
    "of fixed length"
)
FAMILIES = (
    "`every` must be days or weeks where `length` is, and months, quarters or years where that is; got every={} and "
    "length={}; rolling thirty days are sliding('30 days', every='1 day', zone=...)"
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sw.tumbling("1 month"),
            "`length` is in months, which are not all equally long; got '1 month'; say in which time zone they begin, as "
            "in zone='Europe/Berlin'",
        ),
        (
            lambda: sw.sliding("30 days", every="1 quarter"),
            "`every` is in quarters, which are not all equally long; got '1 quarter'; say in which time zone they begin, "
            "as in zone='Europe/Berlin'",
        ),
        (
            lambda: sw.tumbling(np.timedelta64(2, "Y")),
            f"`length` is in years, which are not all equally long; got {np.timedelta64(2, 'Y')!r}; say in which time zone they "
            "begin, as in zone='Europe/Berlin'",
        ),
        (
            lambda: sw.tumbling("1 day", zone="Europe/Berlim"),
            "`zone` is no time zone that this machine knows; got 'Europe/Berlim'; did you mean 'Europe/Berlin' or "
            "'Europe/Dublin' or 'Europe/Rome'?",
        ),
        (
            lambda: sw.tumbling("1 day", zone="../etc/passwd"),
            "`zone` is no time zone that this machine knows; got '../etc/passwd'; write it as in 'Europe/Berlin', or 'UTC'",
        ),
        (lambda: sw.tumbling("1 day", zone=1), "`zone` must name a time zone, such as 'Europe/Berlin'; got 1"),
        (
            lambda: sw.tumbling("1 month 3 days", zone="UTC"),
            "`length` mixes units, and how long it is depends on which comes first; got '1 month 3 days'; with `zone` it "
            "is one number of days, weeks, months, quarters or years, as in '3 months'",
        ),
        (lambda: sw.tumbling(5, zone="UTC"), f"`length` is no length of the calendar; got 5{CALENDAR}"),
        (lambda: sw.tumbling("6 hours", zone="UTC"), f"`length` is no length of the calendar; got '6 hours'{CALENDAR}"),
        (
            lambda: sw.sliding("1 day", every="1 hour", zone="UTC"),
            f"`every` is no length of the calendar; got '1 hour'{CALENDAR}",
        ),
        (
            lambda: sw.tumbling(sw.rows(5), zone="UTC"),
            f"`length` is no length of the calendar; got rows(5){CALENDAR}",
        ),
        (lambda: sw.tumbling("0 days", zone="UTC"), "`length` must be positive; got '0 days'"),
        (lambda: sw.sliding("1 month", every="1 day", zone="UTC"), FAMILIES.format("'1 day'", "'1 month'")),
        (lambda: sw.sliding("60 days", every="1 month", zone="UTC"), FAMILIES.format("'1 month'", "'60 days'")),
        (
            lambda: sw.session("1 month"),
            "`gap` is in 'month', which has no fixed length; got '1 month'; use days, as in '30 days'",
        ),
        (
            lambda: sw.tumbling("1 day", offset=5, zone="UTC"),
            "`offset` must be a duration, which is added to local time; got 5",
        ),
        (
            lambda: sw.tumbling("1 day", offset="1 month", zone="UTC"),
            "`offset` is in 'month', which has no fixed length; got '1 month'; use days, as in '30 days'",
        ),
        (
            lambda: sw.Workload("t", unit="seconds").query("q", sw.tumbling("1 day", zone="UTC"), n=sw.count()),
            "query 'q': `unit` cannot be combined with tumbling('1 day', zone='UTC'): a calendar is for timestamps; make the time "
            "column one, and leave `unit` out",
        ),
    ],
)
def test_what_is_no_calendar_is_refused(make, message):
    with pytest.raises(QueryError) as caught:
        make()
    assert str(caught.value) == message


def test_a_machine_without_time_zones_says_so(monkeypatch):
    monkeypatch.setattr("zoneinfo.available_timezones", set)
    with pytest.raises(QueryError) as caught:
        sw.tumbling("1 day", zone="Mars/Olympus")
    assert str(caught.value) == (
        "`zone` is 'Mars/Olympus', and this machine has no time zones at all; install them: pip install tzdata"
    )


NAIVE_COLUMN = (
    "tumbling('1 month', zone='Europe/Berlin') follows the calendar of a time zone, but the time column has none; "
    "write zone='naive', or give the column its zone"
)


@pytest.mark.parametrize(
    ("zone", "times", "message"),
    [
        ("Europe/Berlin", pa.array([0], pa.timestamp("us")), NAIVE_COLUMN),
        ("Europe/Berlin", pa.array([0], pa.date32()), NAIVE_COLUMN),
        (
            "Europe/Berlin",
            pa.array([0], pa.int64()),
            "tumbling('1 month', zone='Europe/Berlin') follows a calendar, but the time column holds integers; make it a "
            "timestamp",
        ),
        (
            "naive",
            pa.array([0], UTC),
            "tumbling('1 month', zone='naive') is for timestamps without a time zone, but the time column has one; say in "
            "which zone days begin, as in zone='Europe/Berlin'",
        ),
    ],
)
def test_the_time_column_must_go_with_the_calendar(zone, times, message):
    op = sw.Workload("t").query("m", sw.tumbling("1 month", zone=zone), n=sw.count()).operator()
    with pytest.raises(DataError) as caught:
        op.process_batch({"t": times})
    assert str(caught.value) == f"query 'm': {message}"


def test_dates_have_a_calendar_of_their_own():
    op = sw.Workload("t").query("m", sw.tumbling("1 month", zone="naive"), n=sw.count()).operator()
    op.process_batch({"t": [dt.date(2024, 2, 1), dt.date(2024, 2, 29), dt.date(2024, 3, 1)]})
    results = op.close().to_arrow()
    assert results.column("n").to_pylist() == [2, 1]
    assert results.column("window")[0].as_py() == {"start": dt.datetime(2024, 2, 1), "end": dt.datetime(2024, 3, 1)}
