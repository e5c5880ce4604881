"""Watermarks that come in the stream, in a column that is null on rows of data."""

from __future__ import annotations

import datetime as dt
import pickle
import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, OverflowInWindowError, QueryError, UserCodeError
from slicewise.testing import Oracle
from slicewise.workload.settings import replaced
from tests.slicing.running import TYPES, assert_same, columns_of, key_of, run_oracle
from tests.slicing.strategies import mixed_workloads, steps, workloads

TENS = sw.Workload("t", watermark_from="wm").query("tens", sw.tumbling(10), n=sw.count())


def whole(message):
    return f"^{re.escape(message)}$"


def found(results):
    return [(r.start, r.values["n"]) for r in results]


def test_a_watermark_acts_at_its_place_in_the_batch():
    """The row of time 3 comes behind the watermark 12, and is late; its neighbour in the batch is not."""
    op = TENS.operator()
    batch = {"t": [1, 2, None, 3, 15, None], "wm": [None, None, 12, None, None, 20]}
    assert found(op.process_batch(batch)) == [(0, 2), (10, 1)]
    assert [row.time for row in op.late()] == [3]
    assert op.stats().watermark == 20


def test_a_row_that_is_a_watermark_reports_by_itself():
    op = TENS.operator()
    assert not op.process(4, {"wm": None})
    assert found(op.process(None, {"wm": 10})) == [(0, 1)]
    assert not op.process(13, {"wm": None})
    assert found(op.close()) == [(10, 1)]


def test_time_keys_and_columns_of_watermarks_are_not_read():
    workload = sw.Workload("t", keys=["k"], watermark_from="wm", where="v > 0")
    op = workload.query("tens", sw.tumbling(10), n=sw.sum("v")).operator()
    batch = {"t": [1, "never", 2], "k": ["a", 77, "a"], "v": [5, "x", 6], "wm": [None, 10, None]}
    assert found(op.process_batch(batch)) == [(0, 5)]
    assert [row.time for row in op.late()] == [2]


TIMES = [dt.datetime(2024, 5, 1, 9, minute) for minute in (1, 12)]


@pytest.mark.parametrize(
    "watermarks",
    [
        [None, None, dt.datetime(2024, 5, 1, 9, 10)],
        pa.array([None, None, dt.datetime(2024, 5, 1, 9, 10)], pa.timestamp("us")),
        np.array(["NaT", "NaT", "2024-05-01T09:10"], "M8[us]"),
        pd.Series([None, None, pd.Timestamp(2024, 5, 1, 9, 10)]),
    ],
    ids=["list", "Arrow", "NumPy", "pandas"],
)
def test_watermarks_come_as_times_do(watermarks):
    op = sw.Workload("t", watermark_from="wm").query("q", sw.tumbling("10 minutes"), n=sw.count()).operator()
    results = op.process_batch({"t": [*TIMES, None], "wm": watermarks})
    assert [r.values["n"] for r in results] == [1]


def test_pandas_keeps_integers_with_gaps_as_floats():
    frame = pd.DataFrame({"t": [1, 0, 12], "wm": [np.nan, 10, np.nan]})
    assert found(TENS.operator().process_batch(frame)) == [(0, 1)]
    with pytest.raises(
        DataError, match=whole("column 'wm' must hold watermarks, event times like those of the rows; got double")
    ):
        TENS.operator().process_batch({"t": [1, 2], "wm": [None, 0.5]})


def test_a_watermark_that_goes_back_is_refused_and_none_of_the_batch_is_taken():
    op = TENS.operator()
    op.advance(5)
    for watermarks, before, at in (([None, 4, None], 5, 4), ([8, None, 7], 8, 7)):
        message = f"the watermark must not go back; it is at {before} and was given as {at}; keep the larger"
        with pytest.raises(DataError, match=whole(message)):
            op.process_batch({"t": [6, 7, 8], "wm": watermarks})
    with pytest.raises(DataError, match=whole(message.replace("8", "5").replace("7", "3"))):
        op.process(None, {"wm": 3})
    assert op.stats().rows == 0
    assert op.stats().watermark == 5


def test_what_is_no_watermark_is_refused_and_none_of_the_batch_is_taken():
    op = TENS.operator()
    with pytest.raises(DataError, match="there is no column 'wm' in the rows"):
        op.process_batch({"t": [1], "wn": [None]})
    with pytest.raises(DataError, match="there is no column 'wm' in the row; known: 'wn'"):
        op.process(1, {"wn": None})
    with pytest.raises(DataError, match="all columns must have the same number of rows; got 2 in 'wm' and 1 in 't'"):
        op.process_batch({"t": [1], "wm": [None, 4]})
    with pytest.raises(ValueError, match="watermark"):
        op.process_batch({"t": [1, 2], "wm": [None, "soon"]})
    with pytest.raises(DataError, match="the time column 't' is null in row 0"):
        op.process_batch({"t": [None, 2, 3], "wm": [None, None, 5]})
    assert op.stats().rows == 0
    assert found(op.close()) == []


def test_a_batch_that_does_not_go_with_what_came_before_is_refused_whole():
    op = sw.Workload("t", watermark_from="wm").query("tens", sw.tumbling(10), n=sw.count("v")).operator()
    op.process_batch({"t": [1], "v": [5], "wm": [None]})
    with pytest.raises(DataError, match=r"^column 'v' held int64 so far, and now string"):
        op.process_batch({"t": [2, None, 3], "v": pa.array(["x", None, "y"]), "wm": [None, 10, None]})
    assert (op.stats().rows, op.stats().watermark) == (1, None)


def test_rows_that_are_refused_cost_the_others_nothing():
    """The user's window fails on a row in the middle; the watermark passes it all the same."""

    class Picky:
        def on_record(self, time, row):
            if row["v"] < 0:
                raise ValueError("no")
            return int(time % 2 == 0), int(time % 2 == 1)

    workload = sw.Workload("t", watermark_from="wm").query("q", sw.user_defined(Picky, columns=["v"]), n=sw.count())
    op = workload.operator()
    with pytest.raises(UserCodeError, match="raised ValueError"):
        op.process_batch(
            {"t": [2, 2, 3, None, 4, 5, None], "v": [1, -1, 1, 0, 1, 1, 0], "wm": [None] * 3 + [3, None, None, 9]}
        )
    assert op.stats().watermark == 9
    assert found(op.close()) == [(2, 1), (4, 1)]


def test_a_window_without_an_answer_costs_no_row_of_the_batch():
    workload = sw.Workload("t", watermark_from="wm").query("tens", sw.tumbling(10), n=sw.sum("v"))
    op = workload.query("all", sw.tumbling(100), n=sw.count()).operator()
    large = 2**63 - 1
    with pytest.raises(OverflowInWindowError):
        op.process_batch(
            {"t": [1, 2, 0, 15, 0, 25], "v": [large, large, 0, 1, 0, 2], "wm": [None, None, 10, None, 20, None]}
        )
    assert op.stats().rows == 4
    assert op.stats().watermark is None
    op.remove_query("tens")
    assert found(op.close()) == [(0, 4)]


def test_with_rows_in_order_a_watermark_goes_on_where_they_stop():
    op = TENS.operator(ordered=True)
    assert found(op.process_batch({"t": [1, 12, 0, 21], "wm": [None, None, 20, None]})) == [(0, 1), (10, 1)]
    with pytest.raises(
        DataError, match=whole("the watermark must not go back; it is at 22 and was given as 20; keep the larger")
    ):
        op.process_batch({"t": [22, 0], "wm": [None, 20]})
    assert op.stats().rows == 3


def test_drive_follows_the_watermarks_alone():
    batches = [{"t": [1, 25], "wm": [None, None]}, {"t": [0, 2], "wm": [10, None]}]
    op = TENS.operator()
    assert [found(results) for results in op.drive(batches)] == [[], [(0, 1)], [(20, 1)]]
    assert [row.time for row in op.late()] == [2]


@st.composite
def one_batch(draw, epochs):
    """All epochs in batches of any size, watermarks among their rows; time, keys and values of these are anything."""
    nothing = dict.fromkeys(TYPES, None) | {"t": None}
    rows = []
    for chunks, mark in epochs:
        rows += [{**row, "wm": None} for chunk in chunks for row in chunk]
        rows += [] if mark is None else [{**nothing, "wm": mark}]
    batches = []
    while rows:
        size = draw(st.integers(1, len(rows)))
        batches, rows = [*batches, rows[:size]], rows[size:]
    return batches


@given(st.one_of(workloads(), mixed_workloads()), steps(), st.booleans(), st.data())
def test_watermarks_among_rows_give_what_advance_gives(workload, epochs, one_by_one, data):
    expected, late = run_oracle(workload, epochs)
    batches = data.draw(one_batch(epochs))
    with_marks = replaced(workload, 0, workload.lateness, watermark_from="wm")
    op, oracle, results = with_marks.operator(types=TYPES), Oracle(with_marks), []
    for batch in batches:
        for row in batch:
            oracle.process(row["t"], row, key_of(workload, row))
            if one_by_one:
                results += op.process(row["t"], row)
        if not one_by_one:
            results += op.process_batch({**columns_of(batch), "wm": [row["wm"] for row in batch]})
        op = with_marks.operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot())))
    everything = [r for epoch in expected for r in epoch]
    assert_same([results + list(op.close())], [everything])
    assert_same([oracle.close()], [everything])
    assert sorted(time for time, _, _ in oracle.late()) == sorted(time for time, _, _ in late)
    assert op.stats().late_rows == len(late)


def test_a_second_origin_of_watermarks_is_refused():
    with pytest.raises(
        QueryError,
        match=whole(
            "`watermark` and `watermark_from` both say where watermarks come from; got both, the latter as 'wm'; leave "
            "one of them out"
        ),
    ) as caught:
        sw.Workload("t", watermark=5, watermark_from="wm")
    assert caught.value.parameter == "watermark"
    with pytest.raises(QueryError, match=whole("`watermark_from` must name a column; got 5")):
        sw.Workload("t", watermark_from=5)
    for name in ("t", "k"):
        with pytest.raises(
            QueryError,
            match=whole(
                f"`watermark_from` must name a column of its own, which is null on rows of data; got {name!r}, which "
                "is the time column or a key"
            ),
        ):
            sw.Workload("t", keys=["k"], watermark_from=name)


def test_explain_and_repr_say_where_watermarks_come_from():
    assert repr(TENS).startswith("Workload(time='t', watermark_from='wm')\n")
    assert TENS.explain().startswith("workload  time t, no keys, watermarks from wm, corrected for 0\n")
