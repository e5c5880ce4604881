"""Amounts: what is read, what is refused and with which words, and that writing and reading agree."""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.amounts import (
    INTEGER,
    ROWS,
    TIME,
    Amount,
    Measure,
    format_instant,
    in_unit,
    rows,
    to_amount,
    to_instant,
    to_offset,
    to_position,
    units,
)
from slicewise.errors import QueryError
from slicewise.times import Extent

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


#: How NumPy shows its own values since version 2, and how this version does.
SHOWN = {
    "got np.timedelta64": "got " + repr(np.timedelta64(5)).partition("(")[0],
    "got np.True_": f"got {np.True_!r}",
    "got np.float32(2.5)": f"got {np.float32(2.5)!r}",
}


@contextlib.contextmanager
def refuses(message: str, parameter: str | None = None):
    """Expect a QueryError whose whole message is ``message``, about ``parameter`` or else the one it begins with."""
    for since_2, here in SHOWN.items():
        message = message.replace(since_2, here)
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$") as caught:
        yield
    assert caught.value.parameter == (parameter or message.split("`")[1])


# -- lengths that are read


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("10 minutes", 10 * MINUTE),
        ("1 hour 30 minutes", 90 * MINUTE),
        ("1h30m", 90 * MINUTE),
        ("2h", 2 * HOUR),
        ("5 s", 5 * SECOND),
        ("5s", 5 * SECOND),
        ("5 sec", 5 * SECOND),
        ("1 second", SECOND),
        ("1.5 seconds", 1_500_000),
        ("0.1 s", 100_000),
        (".5 s", 500_000),
        ("250 ms", 250_000),
        ("250 milliseconds", 250_000),
        ("7 us", 7),
        ("7 \u00b5s", 7),
        ("7 \u03bcs", 7),
        ("7 microseconds", 7),
        ("1000 ns", 1),
        ("3 min", 3 * MINUTE),
        ("3 hr", 3 * HOUR),
        ("1 day", DAY),
        ("4d", 4 * DAY),
        ("2 weeks", 14 * DAY),
        ("1w", 7 * DAY),
        ("interval 5 minutes", 5 * MINUTE),
        ("INTERVAL 5 Minutes", 5 * MINUTE),
        ("  10   MINUTES  ", 10 * MINUTE),
        ("+5 seconds", 5 * SECOND),
        ("1 hour -30 minutes", 30 * MINUTE),
        ("9223372036854775807 us", 2**63 - 1),
    ],
)
def test_text_is_read_exactly(text, us):
    assert to_amount(text, name="length") == Amount(us, TIME)


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        (timedelta(minutes=1, microseconds=1), Amount(MINUTE + 1, TIME)),
        (pd.Timedelta("90 min"), Amount(90 * MINUTE, TIME)),
        (np.timedelta64(5, "s"), Amount(5 * SECOND, TIME)),
        (np.timedelta64(2, "W"), Amount(14 * DAY, TIME)),
        (np.timedelta64(3000, "ns"), Amount(3, TIME)),
        (np.timedelta64(3, "10s"), Amount(30 * SECOND, TIME)),
        (7, Amount(7, INTEGER)),
        (np.int32(7), Amount(7, INTEGER)),
        (rows(3), Amount(3, ROWS)),
        (units(10, "km"), Amount(10, Measure("units", "km"))),
    ],
)
def test_other_lengths_are_read(value, amount):
    read = to_amount(value, name="length")
    assert read == amount
    assert type(read.size) is int


@pytest.mark.parametrize(
    ("value", "amount"),
    [
        ("-3 hours", Amount(-3 * HOUR, TIME)),
        ("- 3 hours", Amount(-3 * HOUR, TIME)),
        ("-1 hour -30 minutes", Amount(-90 * MINUTE, TIME)),
        ("0 seconds", Amount(0, TIME)),
        (timedelta(-1), Amount(-DAY, TIME)),
        (np.timedelta64(-1, "s"), Amount(-SECOND, TIME)),
        (0, Amount(0, INTEGER)),
        (-5, Amount(-5, INTEGER)),
        ("10 minutes", Amount(10 * MINUTE, TIME)),
    ],
)
def test_offset_may_be_zero_or_negative(value, amount):
    assert to_offset(value, name="offset") == amount


def test_rows_and_units_keep_plain_python_numbers():
    assert type(rows(np.int64(5)).size) is int
    assert type(units(np.float32(0.5), "km").size) is float
    assert type(units(np.int64(5), "km").size) is int


# -- lengths as they are written


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (Amount(10 * MINUTE, TIME), "10 minutes"),
        (Amount(90 * MINUTE, TIME), "1 hour 30 minutes"),
        (Amount(250_000, TIME), "250 milliseconds"),
        (Amount(1_500_001, TIME), "1 second 500 milliseconds 1 microsecond"),
        (Amount(14 * DAY, TIME), "14 days"),
        (Amount(0, TIME), "0 seconds"),
        (Amount(-90 * MINUTE, TIME), "-1 hour -30 minutes"),
        (rows(100), "rows(100)"),
        (units(10, "km"), "units(10, 'km')"),
        (units(0.5, "km"), "units(0.5, 'km')"),
        (Amount(7, INTEGER), "7"),
    ],
)
def test_amounts_are_written_readably(amount, text):
    assert str(amount) == text


def test_measures_are_written_readably():
    assert [str(m) for m in (TIME, INTEGER, ROWS, Measure("units", "km"))] == [
        "time",
        "integer",
        "rows",
        "units of 'km'",
    ]


@given(st.integers(1, 2**63 - 1))
def test_written_length_reads_back(us):
    amount = Amount(us, TIME)
    assert to_amount(str(amount), name="length") == amount


@given(st.integers(-(2**63), 2**63 - 1))
def test_written_offset_reads_back(us):
    amount = Amount(us, TIME)
    assert to_offset(str(amount), name="offset") == amount


@given(st.integers(0, 10**12), st.integers(0, 999_999))
def test_decimal_seconds_are_exact(seconds, micros):
    assert to_offset(f"{seconds}.{micros:06} seconds", name="length").size == seconds * SECOND + micros


@given(st.timedeltas(timedelta(days=-106_751_991), timedelta(days=106_751_991)))
def test_timedelta_and_its_text_agree(delta):
    amount = to_offset(delta, name="offset")
    assert to_offset(str(amount), name="offset") == amount
    assert timedelta(microseconds=amount.size) == delta


@given(st.text())
def test_any_text_is_read_or_refused_as_a_query_error(text):
    with contextlib.suppress(QueryError):
        assert to_offset(text, name="length").measure == TIME


# -- lengths that are refused


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0 seconds", "`every` must be positive; got '0 seconds'"),
        ("-3 hours", "`every` must be positive; got '-3 hours'"),
        (0, "`every` must be positive; got 0"),
        (-5, "`every` must be positive; got -5"),
        (timedelta(0), "`every` must be positive; got datetime.timedelta(0)"),
        (np.timedelta64(0, "s"), "`every` must be positive; got np.timedelta64(0,'s')"),
        (Amount(0, TIME), "`every` must be positive; got 0 seconds"),
        (Amount(float("nan"), Measure("units", "km")), "`every` must be positive; got units(nan, 'km')"),
        ("", "`every` is empty; got ''; write a length like '10 minutes'"),
        ("   ", "`every` is empty; got '   '; write a length like '10 minutes'"),
        ("interval", "`every` is empty; got 'interval'; write a length like '10 minutes'"),
        ("10 minuts", "`every` has an unknown unit 'minuts'; got '10 minuts'; did you mean 'minutes'?"),
        (
            "10 parsecks",
            "`every` has an unknown unit 'parsecks'; got '10 parsecks'; "
            "known: 'days', 'hours', 'microseconds', 'milliseconds', 'minutes', 'seconds', 'weeks'",
        ),
        ("minutes", "`every` has a unit without a number; got 'minutes'; write '1 minute'"),
        ("1 hour min", "`every` has a unit without a number; got '1 hour min'; write '1 minute'"),
        (
            "10",
            "`every` has a number without a unit; got '10'; "
            "write '10 seconds', or the integer 10 where time is an integer column",
        ),
        ("1.5", "`every` has a number without a unit; got '1.5'; write '1.5 seconds'"),
        ("1 hour 30", "`every` has a number without a unit; got '1 hour 30'; write '30 seconds'"),
        ("1 month", "`every` is in 'month', which has no fixed length; got '1 month'; use days, as in '30 days'"),
        ("3 Months", "`every` is in 'months', which has no fixed length; got '3 Months'; use days, as in '90 days'"),
        ("2 years", "`every` is in 'years', which has no fixed length; got '2 years'; use days, as in '730 days'"),
        ("1 quarter", "`every` is in 'quarter', which has no fixed length; got '1 quarter'; use days, as in '91 days'"),
        (
            np.timedelta64(1, "M"),
            "`every` is in 'months', which has no fixed length; got np.timedelta64(1,'M'); use days, as in '30 days'",
        ),
        (
            "1.5 us",
            "`every` has a fraction of a microsecond; got '1.5 us'; time is in whole microseconds, so round it",
        ),
        (
            "500 ns",
            "`every` has a fraction of a microsecond; got '500 ns'; time is in whole microseconds, so round it",
        ),
        (
            np.timedelta64(1, "ns"),
            "`every` has a fraction of a microsecond; got np.timedelta64(1,'ns'); "
            "time is in whole microseconds, so round it",
        ),
        (
            pd.Timedelta(5, "ns"),
            "`every` has a fraction of a microsecond; got Timedelta('0 days 00:00:00.000000005'); "
            "time is in whole microseconds, so round it",
        ),
        (
            np.timedelta64("NaT"),
            "`every` is missing; got np.timedelta64('NaT') (not a time); give a value or leave the parameter out",
        ),
        (
            np.timedelta64(5),
            "`every` is a numpy.timedelta64 without a unit; got np.timedelta64(5); "
            "write numpy.timedelta64(10, 's') or '10 seconds'",
        ),
    ],
)
def test_wrong_length_is_refused_with_its_reason(value, message):
    with refuses(message):
        to_amount(value, name="every")


@pytest.mark.parametrize(
    "text",
    ["soon", "ten minutes", "10:00", "1,5 seconds", "1_000 s", "5 s,", "--5 s", pytest.param("9" * 5000, id="long")],
)
def test_unreadable_text_shows_how_lengths_are_written(text):
    shown = repr(text) if len(text) < 80 else repr(text)[:77] + "..."
    with refuses(
        f"`every` is not a length that we can read; got {shown}; "
        "write numbers with units, as in '10 minutes', '1 hour 30 minutes' or '250 ms'"
    ):
        to_amount(text, name="every")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "True, a boolean"),
        (np.True_, "np.True_, a boolean"),
        (None, "None"),
        (Decimal(5), "Decimal('5'), a Decimal"),
        (date(2024, 1, 1), "datetime.date(2024, 1, 1), a date"),
        ([5], "[5], a list"),
    ],
)
def test_things_that_are_no_length_are_refused(value, shown):
    with refuses(
        f"`every` must be a length; got {shown}; "
        "write '10 minutes', a timedelta, rows(100), units(10, 'km'), or an integer where time is an integer column"
    ):
        to_amount(value, name="every")


@pytest.mark.parametrize(
    ("value", "shown", "seconds", "integer"),
    [
        (5.0, "5.0", "5", "5"),
        (2.5, "2.5", "2.5", "2"),
        (np.float32(2.5), "np.float32(2.5)", "2.5", "2"),
        (0.25, "0.25", "0.25", "1"),
        (float("nan"), "nan", "10", "10"),
        (-5.0, "-5.0", "10", "10"),
    ],
)
def test_float_is_refused_with_what_to_write(value, shown, seconds, integer):
    with refuses(
        f"`every` must say what it is counted in; got {shown}, a float; write '{seconds} seconds' for time, "
        f"or the integer {integer} where time is an integer column"
    ):
        to_amount(value, name="every")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("9223372036854775808 us", "'9223372036854775808 us'"),
        ("300000000 days", "'300000000 days'"),
        (timedelta(days=106_751_992), "datetime.timedelta(days=106751992)"),
        (2**63, "9223372036854775808"),
        pytest.param(10**5000, "an integer of 16610 bits", id="too long to print"),
        (np.timedelta64(2**62, "s"), "np.timedelta64(4611686018427387904,'s')"),
    ],
)
def test_length_beyond_64_bits_is_refused(value, shown):
    with refuses(
        f"`every` does not fit 64 bits; got {shown}; "
        "the largest is 2**63 - 1, in microseconds about 292 000 years, so use a smaller value"
    ):
        to_amount(value, name="every")


@pytest.mark.parametrize(
    ("n", "shown"),
    [
        (-1, "-1"),
        (1.5, "1.5"),
        (True, "True"),
        ("10", "'10'"),
        (2**63, "9223372036854775808"),
        (np.timedelta64(5, "s"), "np.timedelta64(5,'s')"),
    ],
)
def test_rows_takes_a_whole_number(n, shown):
    with refuses(
        f"`rows` takes a whole number of rows, not negative; got {shown}; write rows(100) for a hundred rows", "n"
    ):
        rows(n)


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (float("nan"), "nan"),
        (float("inf"), "inf"),
        (True, "True"),
        ("km", "'km'"),
        (10**400, "an integer of 1329 bits"),
    ],
)
def test_units_takes_a_finite_size(size, shown):
    with refuses(
        f"`units` takes a finite number as its size; got {shown}; write units(10, 'km') for ten of the column 'km'",
        "size",
    ):
        units(size, "km")


@pytest.mark.parametrize(
    ("value", "on", "position"),
    [
        (rows(0), None, (0, ROWS)),
        (units(-2.5, "km"), None, (-2.5, Measure("units", "km"))),
        (units(3, "km"), Measure("units", "km"), (3, Measure("units", "km"))),
        (7, ROWS, (7, ROWS)),
        (-0.5, Measure("units", "km"), (-0.5, Measure("units", "km"))),
        (7, None, (7, INTEGER)),
        ("1970-01-01 00:00:01", None, (1_000_000, TIME)),
    ],
)
def test_positions_lie_on_any_measure(value, on, position):
    assert to_position(value, name="since", on=on) == position


@pytest.mark.parametrize(
    ("value", "on", "message"),
    [
        ("noon", ROWS, "`since` must be a number or a position on rows, such as rows(100); got 'noon', a str"),
        (1.5, ROWS, "`since` must be a number or a position on rows, such as rows(100); got 1.5, a float"),
        (
            float("nan"),
            Measure("units", "km"),
            "`since` must be a number or a position on units of 'km', such as units(2.5, 'km'); got nan, a float",
        ),
        (to_offset("1 minute", name="x"), None, "`since` must be a point in time; got 1 minute, an Amount"),
    ],
)
def test_positions_are_refused_where_they_do_not_fit(value, on, message):
    with pytest.raises(QueryError) as caught:
        to_position(value, name="since", on=on)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("length", [rows(0), units(0, "km"), units(-1.5, "km")], ids=str)
def test_lengths_are_positive_on_every_measure(length):
    with refuses(f"`every` must be positive; got {length}"):
        to_amount(length, name="every")


@pytest.mark.parametrize(("column", "shown"), [(3, "3"), (None, "None"), ("", "''")])
def test_units_takes_a_column_name(column, shown):
    with refuses(
        f"`units` takes the name of a numeric column; got {shown}; write units(10, 'km') for ten of the column 'km'",
        "column",
    ):
        units(10, column)


# -- lengths in the unit of an integer time column


def test_length_between_two_units_is_refused():
    with refuses("`every` must be a whole number of seconds, the time column's unit; got '500 milliseconds'; round it"):
        in_unit(to_amount("500 ms", name="every"), "seconds", name="every")


def test_length_beyond_64_bits_of_its_unit_is_refused():
    with refuses(
        "`length` does not fit 64 bits in nanoseconds, the time column's unit; got '200000 days'; use less", "length"
    ):
        in_unit(to_amount("200000 days", name="length"), "nanoseconds", name="length")


# -- points in time

NEW_YEAR_2024 = 1_704_067_200 * SECOND


@pytest.mark.parametrize(
    ("value", "us"),
    [
        (datetime(2024, 1, 1), NEW_YEAR_2024),
        (datetime(2024, 1, 1, tzinfo=UTC), NEW_YEAR_2024),
        (datetime(2024, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), NEW_YEAR_2024),
        (date(2024, 1, 1), NEW_YEAR_2024),
        ("2024-01-01", NEW_YEAR_2024),
        (" 2024-01-01 00:00:00.5 ", NEW_YEAR_2024 + 500_000),
        ("2024-01-01T00:00:00Z", NEW_YEAR_2024),
        ("2024-01-01T01:00:00+01:00", NEW_YEAR_2024),
        ("2024-01-01T00:00:00.500000000", NEW_YEAR_2024 + 500_000),
        (np.datetime64("2024"), NEW_YEAR_2024),
        (np.datetime64("2024-01"), NEW_YEAR_2024),
        (np.datetime64("2024-01-01T00:00:00.000001000"), NEW_YEAR_2024 + 1),
        (pd.Timestamp("2024-01-01 01:00", tz="Europe/Berlin"), NEW_YEAR_2024),
        # The first hours of year 1, moved before it by their zone.
        (datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=3))), -62_135_596_800 * SECOND - 3 * HOUR),
    ],
)
def test_instants_are_read_as_utc_microseconds(value, us):
    read = to_instant(value, name="since")
    assert read == (us, TIME)
    assert type(read[0]) is int


@pytest.mark.parametrize("value", [7, -7, 0, np.int64(7)])
def test_integer_instant_is_integer_time(value):
    assert to_instant(value, name="since") == (int(value), INTEGER)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "True, a boolean"),
        (5.5, "5.5, a float"),
        (None, "None"),
        (timedelta(1), "datetime.timedelta(days=1), a timedelta"),
        (np.timedelta64(1, "s"), "np.timedelta64(1,'s'), a timedelta64"),
        (rows(5), "rows(5), an Amount"),
    ],
)
def test_things_that_are_no_instant_are_refused(value, shown):
    with refuses(
        f"`since` must be a point in time; got {shown}; "
        "write a datetime, a date, a text like '2024-01-01 12:00:00', or an integer where time is an integer column"
    ):
        to_instant(value, name="since")


@pytest.mark.parametrize("text", ["", "yesterday", "10:00", "2024-13-01", "2024-01-01 00:00 Europe/Berlin"])
def test_unreadable_instant_shows_how_instants_are_written(text):
    with refuses(
        f"`since` is not a point in time that we can read; got {text!r}; "
        "write it as in '2024-01-01', '2024-01-01 12:00:00.5' or '2024-01-01T12:00:00+01:00'"
    ):
        to_instant(text, name="since")


@pytest.mark.parametrize(
    "value",
    ["2024-01-01T00:00:00.1234567", np.datetime64("2024-01-01T00:00:00.000000001"), pd.Timestamp(1)],
)
def test_instant_finer_than_a_microsecond_is_refused(value):
    with refuses(f"`since` has a fraction of a microsecond; got {value!r}; time is in whole microseconds, so round it"):
        to_instant(value, name="since")


@pytest.mark.parametrize("value", [pd.NaT, np.datetime64("NaT")])
def test_missing_instant_is_refused(value):
    with refuses(f"`since` is missing; got {value!r} (not a time); give a value or leave the parameter out"):
        to_instant(value, name="since")


@pytest.mark.parametrize("value", [2**63, np.datetime64(2**62, "Y"), np.datetime64(2**62, "D")])
def test_instant_beyond_64_bits_is_refused(value):
    with refuses(
        f"`since` does not fit 64 bits; got {value!r}; "
        "the largest is 2**63 - 1, in microseconds about 292 000 years, so use a smaller value"
    ):
        to_instant(value, name="since")


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "1970-01-01 00:00:00"),
        (NEW_YEAR_2024 + 10_500_000, "2024-01-01 00:00:10.5"),
        (-1, "1969-12-31 23:59:59.999999"),
        (2**63 - 1, "294247-01-10 04:00:54.775807"),
        (-(2**63), "-290308-12-21 19:59:05.224192"),
    ],
)
def test_instants_are_written_readably(us, text):
    assert format_instant(us) == text


@given(st.datetimes(timezones=st.just(UTC)))
def test_written_instant_reads_back(moment):
    us, _ = to_instant(moment, name="since")
    assert to_instant(format_instant(us), name="since") == (us, TIME)


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=6))
def test_extent_is_the_first_and_last_time_and_whether_none_goes_back(times):
    assert Extent.of(np.array(times)) == (min(times), max(times), times == sorted(times))
