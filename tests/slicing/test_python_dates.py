"""Dates after the year 9999, which Arrow has and Python has not: the row is left out, or the message names Arrow."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import DataError, UserCodeError

#: The first microseconds of the year 10000.
FAR = 253_402_300_800_000_000
STAMPS = pa.timestamp("us", "UTC")
ENDS = "and Python's dates end with the year 9999"
AGGREGATES = {"m4": sw.m4("v"), "collect_list": sw.collect_list("v"), "collect_set": sw.collect_set("v")}
AGGREGATES |= {"histogram": sw.histogram("v"), "largest": sw.largest("v", 3), "first_k": sw.first_k("v", 3)}
TYPES = {
    "timestamp": (STAMPS, FAR + 5, "10000-01-01 00:00:00.000005Z"),
    "date": (pa.date32(), 10_000_000, "29349-01-26"),
}
TYPES["before the year 1"] = (pa.timestamp("us"), -62_135_596_800_000_001, "0000-12-31 23:59:59.999999")


def rows(type_, numbers):
    integers = pa.int32() if pa.types.is_date32(type_) else pa.int64()
    return pa.table({"t": range(len(numbers)), "v": pa.array(numbers, integers).cast(type_)})


@pytest.mark.parametrize(("type_", "far", "shown"), TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("name", AGGREGATES)
def test_a_row_whose_date_python_cannot_hold_is_left_out(name, type_, far, shown):
    workload = sw.Workload("t").query("q", sw.tumbling(10), n=sw.count(), all=AGGREGATES[name])
    op = workload.operator()
    message = (
        f"query 'q': {AGGREGATES[name]!r} at the record of time 1: column 'v' has {shown}, {ENDS}; "
        "the record was left out, and so was 1 other"
    )
    with pytest.raises(UserCodeError, match=f"^{re.escape(message)}$"):
        op.process_batch(rows(type_, [0, far, far, 3]))
    (result,) = op.close()
    assert result.values["n"] == 2
    expected = workload.operator()
    expected.process_batch(pa.table({**_columns(rows(type_, [0, 3])), "t": [0, 3]}))
    assert result.values == next(iter(expected.close())).values


def _columns(table):
    return {name: table.column(name) for name in table.column_names}


OF_TIMES = [
    of(aggregate)
    for aggregate in (sw.m4("v"), sw.longest_rise("v"))
    for of in (lambda a: a, lambda a: a.where("v > 0"), lambda a: a.by("v"))
]


@pytest.mark.parametrize("aggregate", OF_TIMES, ids=repr)
def test_event_times_in_results_are_dates_too(aggregate):
    workload = sw.Workload("t").query("q", sw.tumbling("1 hour"), x=aggregate, last=sw.max("v"))
    op = workload.operator()
    message = (
        f"query 'q': {aggregate!r} at the record of time 10000-01-01 00:00:00+00:00: its event time is "
        f"10000-01-01 00:00:00.000000Z, {ENDS}; the record was left out"
    )
    with pytest.raises(UserCodeError, match=f"^{re.escape(message)}$"):
        op.process_batch(pa.table({"t": pa.array([0, FAR]).cast(STAMPS), "v": [1, 2]}))
    assert [r.values["last"] for r in op.close()] == [1]


def test_without_event_times_in_results_there_is_nothing_to_hold():
    op = sw.Workload("t").query("q", sw.tumbling("1 hour"), s=sw.sum("v")).operator()
    op.process_batch(pa.table({"t": pa.array([0, FAR]).cast(STAMPS), "v": [1, 2]}))
    assert [r.values["s"] for r in op.close()] == [1, 2]


@pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])
def test_a_key_that_python_cannot_hold_is_named_and_nothing_of_its_batch_counts(nested):
    op = sw.Workload("t", keys=["day", "k"]).query("q", sw.tumbling(10), n=sw.count()).operator()

    def batch(*days):
        column = pa.array(days).cast(STAMPS)
        column = pa.StructArray.from_arrays([column], ["at"]) if nested else column
        return pa.table({"t": range(len(days)), "day": column, "k": ["a"] * len(days)})

    op.process_batch(batch(0))
    shown = "a date in a value of struct<at: timestamp[us, tz=UTC]>" if nested else "10000-01-01 00:00:00.000000Z"
    message = f"key 'day' has {shown}, {ENDS}"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.process_batch(batch(0, FAR))
    assert [r.values["n"] for r in op.close()] == [1]


def test_results_that_python_cannot_hold_are_there_in_arrow():
    op = sw.Workload("t").query("q", sw.tumbling(10), m=sw.max("v")).operator()
    op.process_batch(rows(STAMPS, [0, FAR]))
    results = op.close()
    message = f"'m' of query 'q' has 10000-01-01 00:00:00.000000Z, {ENDS}; to_arrow() gives the results as they are"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        list(results)
    assert results.to_arrow().column("m").cast(pa.int64()).to_pylist() == [FAR]
