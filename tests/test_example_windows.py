"""The example windows: each against windows worked out by hand, a batch at a time as one record at a time."""

from __future__ import annotations

import importlib.util
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.testing import Oracle

FOLDER = Path(__file__).parent.parent / "examples" / "windows"
SECOND, MINUTE = 1_000_000, 60_000_000


def example(module: str, name: str):
    """A class of an example file."""
    spec = importlib.util.spec_from_file_location(module, FOLDER / f"{module}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return getattr(loaded, name)


Trader = example("trader", "Trader")
SessionByHand = example("session_by_hand", "SessionByHand")
MergingSession = example("merging_session", "MergingSession")
Snapshot = example("snapshot_windows", "Snapshot")
LowerBoundLandmark = example("lower_bound_landmark", "LowerBoundLandmark")


def windows_of(window, stream, unit):
    """``(start, end, values)`` of each window, bounds in ``unit``; the stream is ``(time in unit, row)``."""
    oracle = Oracle(sw.Workload("t").query("q", window, got=sw.collect_list("v")))
    for time, row in stream:
        oracle.process(round(time * unit), {"v": time, **row})
    return [(r.start / unit, None if r.end is None else r.end / unit, r.values["got"]) for r in oracle.close()]


def test_every_example_is_short():
    files = sorted(FOLDER.glob("*.py"))
    names = ["lower_bound_landmark", "merging_session", "session_by_hand", "snapshot_windows", "trader", "trading_days"]
    assert [f.stem for f in files] == names
    assert all(f.read_text(encoding="utf-8").count("\n") < 40 for f in files)


# -- trading days


def test_every_exchange_has_its_own_days_and_trades_out_of_hours_are_in_none():
    op = example("trading_days", "workload")().operator()
    # UTC             8:00     13:00 14:30 16:30       21:00
    # XETR 12-29      [------------)
    # XNYS 12-29                     [------------------)
    trades = [
        ("XETR", "SAP", "2023-12-29 08:00", 140, 5),
        ("XETR", "SAP", "2023-12-29 12:59", 141, 5),
        ("XETR", "SAP", "2023-12-29 13:00", 900, 5),  # closed early
        ("XNYS", "IBM", "2023-12-29 13:00", 900, 5),  # not open yet
        ("XNYS", "IBM", "2023-12-29 14:30", 163, 1),
        ("XNYS", "IBM", "2024-01-01 15:00", 900, 1),  # a holiday
        ("XNYS", "IBM", "2024-01-02 20:59", 161, 2),
        ("XLON", "BP", "2023-12-29 12:00", 5, 5),  # not in the calendar
    ]
    columns = zip(*trades, strict=True)
    rows = dict(zip(("exchange", "symbol", "at", "price", "size"), map(list, columns), strict=True))
    rows["at"] = [datetime.fromisoformat(f"{at}+00:00") for at in rows["at"]]
    op.process_batch(rows)
    found = op.close().to_arrow().to_pylist()
    assert [(r["symbol"], f"{r['window']['start']:%d. %H:%M}", r["high"], r["volume"]) for r in found] == [
        ("SAP", "29. 08:00", 141, 10),
        ("IBM", "29. 14:30", 163, 1),
        ("IBM", "02. 14:30", 161, 2),
    ]


# -- the trader


def test_trader_slides_faster_over_shorter_ranges_while_the_price_is_low():
    # minutes    0    5    10   15   20   25   30   35
    # price      20   20   20   20   20   8 8 8 8  8  8
    #            [---------)
    #                 [---------)
    #                      [---------)
    #                           [---------)
    #                                [--------)            would last until 30, but the window of tick 24 ends at 29
    #                                     [---)            begins with the first trade after the tick, at 25
    #                                      [----)
    #                                        [----)
    #                                          [------     those of ticks 30 and 32 are open when the stream ends
    dear = [(m, {"price": 20}) for m in (0, 5, 10, 15, 20)]
    cheap = [(m, {"price": 8}) for m in (25, 26, 27, 28, 29, 30, 31, 33)]
    assert windows_of(sw.user_defined(Trader, columns=["price"]), dear + cheap, MINUTE) == [
        (0, 10, [0, 5]),
        (5, 15, [5, 10]),
        (10, 20, [10, 15]),
        (15, 25, [15, 20]),
        (20, 29, [20, 25, 26, 27, 28]),
        (25, 29, [25, 26, 27, 28]),
        (26, 31, [26, 27, 28, 29, 30]),
        (28, 33, [28, 29, 30, 31]),
        (30, None, [30, 31, 33]),
        (33, None, [33]),
    ]


def test_trader_with_a_high_price_is_a_sliding_window():
    stream = [(m / 2, {"price": 11}) for m in range(60)]
    found = windows_of(sw.user_defined(Trader, columns=["price"]), stream, MINUTE)
    sliding = windows_of(sw.sliding("10 minutes", every="5 minutes"), stream, MINUTE)
    assert [f for f in found if f[1] is not None] == [s for s in sliding if s[0] >= 0 and s[1] < 30]


def test_trader_needs_a_price():
    oracle = Oracle(sw.Workload("t").query("q", sw.user_defined(Trader, columns=["price"]), n=sw.count()))
    oracle.process_batch([(0, {"price": 5}, ()), (MINUTE, {"price": None}, ())])
    with pytest.raises(
        sw.DataError, match=r"query 'q', the record at time 60000000: user_defined\(Trader, .* raised Ty"
    ):
        oracle.close()
    assert [r.values["n"] for r in oracle.close()] == [1]


# -- sessions


@given(st.lists(st.integers(0, 300), max_size=30))
def test_session_by_hand_holds_the_rows_of_a_session(times):
    stream = [(time, {}) for time in times]
    by_hand = windows_of(sw.user_defined(SessionByHand), stream, SECOND)
    session = windows_of(sw.session("30 seconds"), stream, SECOND)
    assert [(start, got) for start, _, got in by_hand] == [(start, got) for start, _, got in session]


def test_session_by_hand_ends_with_the_row_that_shows_it():
    # 0    10             45   75          106     30 seconds later still joins, 31 do not
    # [-------------------)
    #                     [----------------)
    stream = [(t, {}) for t in (0, 10, 45, 75, 106)]
    assert windows_of(sw.user_defined(SessionByHand), stream, SECOND) == [
        (0, 45, [0, 10]),
        (45, 106, [45, 75]),
        (106, None, [106]),
    ]


@given(st.lists(st.integers(0, 300), max_size=30))
def test_merging_session_is_a_session(times):
    stream = [(time, {}) for time in times]
    by_hand = windows_of(sw.user_defined(MergingSession), stream, SECOND)
    assert by_hand == windows_of(sw.session("30 seconds"), stream, SECOND)


def test_merging_session_merges_when_a_late_row_bridges_a_gap():
    # seconds  0    20             70   75        30 seconds later still joins
    #          a    b              d    e
    #          [-----------)       [----------)
    #                     c                       late, at 45
    #          [------------------------------)
    workload = sw.Workload("t", lateness=300 * SECOND)
    op = workload.query("q", sw.user_defined(MergingSession), seen=sw.collect_list("s")).operator()
    op.process_batch({"t": [s * SECOND for s in (0, 20, 70, 75)], "s": [0, 20, 70, 75]})
    results = op.advance(150 * SECOND)
    op.process_batch({"t": [45 * SECOND], "s": [45]})
    results = [*results, *op.advance(150 * SECOND)]
    found = [(r.start // SECOND, r.end // SECOND, r.change, r.values["seen"]) for r in results]
    assert found == [
        (0, 50, "insert", [0, 20]),
        (70, 105, "insert", [70, 75]),
        (0, 50, "retract", None),
        (70, 105, "retract", None),
        (0, 105, "insert", [0, 20, 45, 70, 75]),
    ]


# -- snapshots


def test_snapshot_lasts_as_long_as_the_state():
    # on   on   off  null null on
    # [---------)
    #           [----)
    #                [---------)
    #                          [----
    states = ["on", "on", "off", None, None, "on"]
    stream = [(t, {"state": s}) for t, s in enumerate(states)]
    assert windows_of(sw.user_defined(Snapshot, columns=["state"]), stream, SECOND) == [
        (0, 2, [0, 1]),
        (2, 3, [2]),
        (3, 5, [3, 4]),
        (5, None, [5]),
    ]


def test_snapshot_of_a_first_state_that_is_null_is_a_window():
    stream = [(0, {"state": None}), (1, {"state": None}), (2, {"state": "on"})]
    assert windows_of(sw.user_defined(Snapshot, columns=["state"]), stream, SECOND) == [
        (0, 2, [0, 1]),
        (2, None, [2]),
    ]


# -- landmarks


def test_landmark_windows_overlap_and_leave_gaps():
    # minutes  0    10   30   60   70   95  200
    #          .    L    L    .    .    .   .
    #               [--------------)             the hour of the first is over at 70
    #                    [--------------)        that of the second at 90
    stream = [(m, {"landmark": m in (10, 30)}) for m in (0, 10, 30, 60, 70, 95, 200)]
    assert windows_of(sw.user_defined(LowerBoundLandmark, columns=["landmark"]), stream, MINUTE) == [
        (10, 70, [10, 30, 60]),
        (30, 95, [30, 60, 70]),
    ]


# -- a batch at a time


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["on", "off", None])), max_size=30), st.data())
@pytest.mark.parametrize("factory", [SessionByHand, Snapshot])
def test_a_batch_says_what_its_records_say(factory, rows, data):
    rows = sorted(rows, key=lambda row: row[0])
    one_by_one, in_batches = factory(), factory()
    expected = [one_by_one.on_record(t * SECOND, {"state": s}) for t, s in rows]
    found = []
    while len(found) < len(rows):
        batch = rows[len(found) :][: data.draw(st.integers(1, 10))]
        states = [s for _, s in batch]
        column = np.ma.MaskedArray(np.array([s or "" for s in states], object), [s is None for s in states])
        begins, ends = in_batches.on_batch(np.array([t for t, _ in batch]) * SECOND, {"state": column})
        assert begins.dtype == ends.dtype == np.int64
        found += zip(begins.tolist(), ends.tolist(), strict=True)
    assert found == expected
    assert vars(in_batches) == vars(one_by_one)
