"""Wide results and differences: random look-backs, and their output replayed into a table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import slicewise as sw
from slicewise.same import is_same
from slicewise.testing import fold, shaped
from tests.slicing.running import Epoch, run_oracle

#: Values by key, query and end, each with the revision that it came with; None where it was withdrawn.
Table = dict[tuple[Any, ...], tuple[Any, int]]

FORMS = [("wide", "complete"), ("long", "differences"), ("wide", "differences")]
forms = st.sampled_from(FORMS)
#: Aggregates whose values are the same to the last bit whatever the order in which partials are combined.
AGGREGATES = [
    sw.count(),
    sw.count("v"),
    sw.sum("v"),
    sw.max("v"),
    sw.avg("v"),
    sw.first("w"),
    sw.concat("w"),
    sw.collect_list("v"),
    sw.histogram("v"),
    sw.median("v"),
    sw.time_weighted_avg("v"),
    sw.sum("v").where("w = 'a'"),
    sw.count().by("w"),
]


@st.composite
def rolling(draw: st.DrawFn, *, wide: bool = True) -> sw.Workload:
    """Some look-backs; in the wide shape all of them end at the same ticks."""
    every, offset = draw(st.integers(1, 12)), draw(st.integers(-7, 7))
    workload = sw.Workload(
        "t", keys=draw(st.sampled_from([[], ["k"], ["k", "j"]])), lateness=draw(st.sampled_from([0, 0, 3, 15, 1000]))
    )
    for i in range(draw(st.integers(1, 3))):
        if not wide:
            every, offset = draw(st.integers(1, 12)), draw(st.integers(-7, 7))
        length = draw(st.integers(1, 5)) * every - (0 if wide else draw(st.integers(0, every - 1)))
        aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=2))
        window = sw.sliding(length, every=every, offset=offset)
        workload = workload.query(f"q{i}", window, **{f"a{i}{n}": a for n, a in enumerate(aggregates)})
    return workload


#: Look-backs that end together: in Samoa a day did not take place, so that two windows of it end at once.
CALENDARS: dict[tuple[str, str, int], list[tuple[str, str]]] = {
    ("2011-12-24", "Pacific/Apia", 1): [("1 day", "1 day"), ("3 days", "1 day"), ("5 days", "1 day")],
    ("1993-08-16", "Pacific/Kwajalein", 1): [("2 days", "1 day"), ("4 days", "1 day")],
    ("2024-03-25", "Europe/Berlin", 1): [("1 day", "1 day"), ("7 days", "1 day")],
    ("2024-02-01", "America/New_York", 7): [("1 week", "1 week"), ("3 weeks", "1 week")],
    ("2023-11-01", "Europe/Berlin", 20): [("1 month", "1 month"), ("1 year", "1 month")],
}
UTC = pa.timestamp("us", "UTC")
HOUR = 3_600_000_000


@st.composite
def calendar_steps(draw: st.DrawFn) -> tuple[sw.Workload, list[Epoch]]:
    """Look-backs on a calendar, and epochs of rows around a day on which clocks did something."""
    (day, zone, days), lengths = draw(st.sampled_from(list(CALENDARS.items())))
    offset = {"offset": draw(st.sampled_from(["0 hours", "6 hours"]))}
    lateness = f"{draw(st.sampled_from([0, 2, 400])) * days * 24} hours"
    workload = sw.Workload("t", keys=draw(st.sampled_from([[], ["k"]])), lateness=lateness)
    for i, (length, every) in enumerate(draw(st.sampled_from([lengths, lengths[1:]]))):
        aggregate = draw(st.sampled_from([sw.count(), sw.sum("v"), sw.collect_list("v"), sw.time_weighted_avg("v")]))
        workload = workload.query(f"q{i}", sw.sliding(length, every=every, zone=zone, **offset), **{f"a{i}": aggregate})
    begin = int(np.datetime64(day, "us").astype(np.int64))
    hours = st.integers(0, 14 * 24).map(lambda hour: begin + hour * days * HOUR)
    rows = st.fixed_dictionaries({"t": hours, "k": st.sampled_from("ab"), "v": st.integers(0, 2)})
    marks = sorted(draw(st.lists(hours, max_size=4)))
    chunks = st.lists(st.lists(rows, min_size=1, max_size=4), max_size=2)
    return workload, [(draw(chunks), mark) for mark in [*marks, None]]


def replay(table: Table, results: Iterable[Any]) -> None:
    """Apply corrections to a table by key, query and end; every one of them must be one that the table needs."""
    for r in results:
        place = (r.key, r.query, r.end)
        was, revision = table.get(place, (None, -1))
        assert r.revision == revision + 1, r
        assert (r.change == "insert") == (was is None), r
        if r.change == "retract":
            assert set(r.values.values()) == {None}, r
        table[place] = (None if r.change == "retract" else r.values), r.revision


def assert_stands(table: Table, expected: Mapping[Any, Any]) -> None:
    """What was not withdrawn is what is expected."""
    stands = {place: values for place, (values, _) in table.items() if values is not None}
    assert stands.keys() == expected.keys()
    for place, values in expected.items():
        assert stands[place].keys() == values.keys()
        assert is_same(stands[place], values, 0.0), place


def assert_true_at_every_watermark(
    workload: sw.Workload, epochs: Sequence[Epoch], results: Sequence[Sequence[Any]], shape: str, emit: str
) -> None:
    """The output of every step, applied to a table, makes it what the definition says."""
    oracle, _ = run_oracle(workload, epochs)
    table: Table = {}
    so_far: list[Any] = []
    for (_, mark), step, expected in zip(epochs, results, oracle, strict=True):
        replay(table, step)
        so_far += expected
        watermark = math.inf if mark is None else mark
        assert_stands(table, shaped(workload, fold(so_far), watermark, shape=shape, emit=emit))
