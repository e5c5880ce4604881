"""Values of different kinds in one column are refused, however they come; none is silently read as another."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import DataError

NAIVE = dt.datetime(2024, 1, 1, 15, 30)
AWARE = dt.datetime(2024, 1, 1, 15, 30, tzinfo=dt.UTC)
DAY = dt.date(2024, 1, 1)
WITH, WITHOUT = "times with a time zone", "times without a time zone"


def objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


FORMS = {
    "list": list,
    "tuple": tuple,
    "objects": objects,
    "series": lambda values: pd.Series(values, dtype=object),
}


def whole(message):
    return f"^{re.escape(message)}$"


def mixed(one, other, value, row):
    return f"{one} and {other} cannot be mixed; got {value!r} in row {row}; convert one of them"


def counting():
    return sw.Workload(time="t").query("q", sw.tumbling("1 hour"), n=sw.count()).operator()


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(
    ("times", "one", "other", "row"),
    [
        ([NAIVE, AWARE], WITHOUT, WITH, 1),
        ([AWARE, NAIVE], WITH, WITHOUT, 1),
        ([AWARE, AWARE, NAIVE], WITH, WITHOUT, 2),
        ([DAY, NAIVE], "dates", WITHOUT, 1),
        ([DAY, AWARE], "dates", WITH, 1),
        ([pd.Timestamp(NAIVE), pd.Timestamp(AWARE)], WITHOUT, WITH, 1),
    ],
)
def test_event_times_of_two_kinds_in_one_batch(form, times, one, other, row):
    op = counting()
    with pytest.raises(DataError, match=whole("column 't': " + mixed(one, other, times[row], row))):
        op.process_batch({"t": form(times)})
    op.process_batch({"t": form(times[:1])})
    assert [r.values["n"] for r in op.close()] == [1]


def test_event_times_of_two_kinds_one_by_one():
    """What one row after the other is refused for, a list of rows is refused for too."""
    op = counting()
    op.process(NAIVE, {})
    message = (
        "times with a time zone, times without one and plain integers cannot be mixed; "
        f"got {AWARE!r} after another kind; convert one of them"
    )
    with pytest.raises(DataError, match=whole(message)):
        op.process(AWARE, {})
    assert [r.values["n"] for r in op.close()] == [1]


def test_a_frame_of_pandas_with_times_of_two_kinds():
    op = counting()
    frame = pd.DataFrame({"t": pd.Series([NAIVE, AWARE], dtype=object)})
    with pytest.raises(DataError, match=whole("column 't': " + mixed(WITHOUT, WITH, AWARE, 1))):
        op.process_batch(frame)


def test_dates_so_far_away_that_they_would_wrap_around():
    far = pa.array([0, 2**31 - 1], pa.int32()).cast(pa.date32())
    at = (2**31 - 1) * 86_400_000_000
    message = f"the time column 't' holds {at} in row 1, which is out of range"
    with pytest.raises(DataError, match=whole(message)):
        counting().process_batch({"t": far})


# -- columns that are read

#: Values of two kinds, what is said of them, and which of them is named.
PAIRS = {
    "times": ([NAIVE, AWARE], WITHOUT, WITH, 1),
    "times, the other way round": ([AWARE, NAIVE], WITH, WITHOUT, 1),
    "dates": ([DAY, NAIVE], "dates", WITHOUT, 1),
    "after a null": ([None, DAY, NAIVE], "dates", WITHOUT, 2),
    "texts": (["a", b"a"], "bytes", "texts", 0),
    "bytes": ([b"a", "a"], "bytes", "texts", 1),
    "durations": ([dt.timedelta(1), 5], "durations", "numbers", 1),
    "booleans": ([2.5, True], "numbers", "booleans", 1),
    "booleans of NumPy": ([2, np.True_], "numbers", "booleans", 1),
    "in lists": ([[NAIVE], [AWARE]], WITHOUT, WITH, 1),
    "in one list": ([[DAY, NAIVE]], "dates", WITHOUT, 0),
    "in structs": ([{"x": DAY}, {"x": NAIVE}], "dates", WITHOUT, 1),
}


def inner(value):
    """The plain value that an error names, in a list or a struct."""
    if isinstance(value, list):
        return inner(value[-1])
    return value["x"] if isinstance(value, dict) else value


def reading(**types):
    workload = sw.Workload(time="t").query("q", sw.tumbling(10), all=sw.collect_list("v"), first=sw.first("v"))
    return workload.operator(types=types or None)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("values", "one", "other", "row"), PAIRS.values(), ids=PAIRS)
def test_values_of_two_kinds_in_one_batch(form, values, one, other, row):
    message = "column 'v': " + mixed(one, other, inner(values[row]), row)
    with pytest.raises(DataError, match=whole(message)):
        reading().process_batch({"t": list(range(len(values))), "v": form(values)})


@pytest.mark.parametrize(("values", "one", "other", "row"), PAIRS.values(), ids=PAIRS)
def test_values_of_two_kinds_row_by_row(values, one, other, row):
    op = reading()

    def feed():
        for time, value in enumerate(values):
            op.process(time, {"v": value})
        op.advance(0)

    with pytest.raises(DataError, match=r"^column 'v' holds .*; got .* in the row at time .*; it was left out"):
        feed()


@pytest.mark.parametrize(("values", "one", "other", "row"), PAIRS.values(), ids=PAIRS)
def test_keys_of_two_kinds(values, one, other, row):
    if isinstance(values[0], (list, dict)):
        return
    op = sw.Workload(time="t", keys=["v"]).query("q", sw.tumbling(10), n=sw.count()).operator()
    message = "column 'v' cannot be read as one type: " + mixed(one, other, values[row], row)
    with pytest.raises(DataError, match=whole(message)):
        op.process_batch({"t": list(range(len(values))), "v": values})


KNOWN = {
    "timestamp": (AWARE, [NAIVE, DAY, 5, 2.5, np.array([NAIVE], "M8[us]")[0]]),
    "timestamp_ntz": (NAIVE, [AWARE, DAY, 5, 2.5]),
    "date": (DAY, [NAIVE, AWARE, 5]),
    "string": ("a", [b"a", 5]),
    "binary": (b"a", ["a", 5]),
    "bigint": (5, [True, np.True_, "5"]),
    "double": (2.5, [True, np.True_, "5", Decimal("2.5")]),
}


@pytest.mark.parametrize(("known", "value"), [(k, v) for k, (_, others) in KNOWN.items() for v in others], ids=repr)
def test_values_that_are_not_of_the_known_kind(known, value):
    """Whether the type was said or found in the rows before, and whether rows come alone or in a batch."""
    good = KNOWN[known][0]
    op = reading(v=known)
    with pytest.raises(DataError, match=r"^column 'v'"):
        op.process_batch({"t": [1], "v": [value]})
    op.process_batch({"t": [1], "v": [good]})
    op.advance(1)
    op.process(2, {"v": value})
    with pytest.raises(DataError, match=r"^column 'v' holds .* in the row at time 2; it was left out"):
        op.advance(2)
    op.process(2, {"v": good})
    (result,) = op.close()
    assert len(result.values["all"]) == 2


@pytest.mark.parametrize(
    ("known", "array"),
    [
        ("timestamp", np.array([NAIVE], "M8[us]")),
        ("timestamp", pd.Series([NAIVE])),
        ("timestamp_ntz", pd.Series([AWARE])),
        ("date", np.array([NAIVE], "M8[us]")),
        ("bigint", np.array([True])),
    ],
    ids=repr,
)
def test_arrays_that_are_not_of_the_known_kind(known, array):
    message = f"column 'v' held {sw.columns.TYPE_NAMES[known]} so far, and now {pa.array(array[:1]).type}".split("[")[0]
    with pytest.raises(DataError, match=f"^{re.escape(message)}.*; cast it, or say what it is from the start"):
        reading(v=known).process_batch({"t": [1], "v": array})


def test_missing_values_of_pandas_are_nulls_in_lists_too():
    for values in ([DAY, pd.NaT], [NAIVE, pd.NaT], [AWARE, pd.NaT], [3, pd.NA], ["a", pd.NA]):
        op = reading()
        op.process_batch({"t": [1, 2], "v": values})
        (result,) = op.close()
        assert result.values["all"] == values[:1]


def test_what_goes_together_still_does():
    east = dt.timezone(dt.timedelta(hours=5))
    for values, wanted in {
        ((1, 2.5)): [1.0, 2.5],
        ((Decimal("2.5"), 2)): [Decimal("2.5"), Decimal("2.0")],
        ((AWARE, AWARE.astimezone(east))): [AWARE, AWARE],
        (("a", None)): ["a"],
    }.items():
        op = reading()
        op.process_batch({"t": [1, 2], "v": list(values)})
        (result,) = op.close()
        assert result.values["all"] == wanted
