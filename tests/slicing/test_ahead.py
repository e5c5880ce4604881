"""Rows too far ahead, of the clock or of the rows before them: named, left out, and nothing moves because of them."""

from __future__ import annotations

import collections
import contextlib
import datetime as dt
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import bad_rows
from slicewise.errors import DataError, QueryError, RefusedRowsError
from slicewise.slicing.rows import slides
from slicewise.testing import Oracle, refusals
from tests.slicing.running import TYPES, assert_same, columns_of, key_of
from tests.slicing.strategies import at_most_five, rows

SECOND, HOUR, YEAR = 1_000_000, 3_600_000_000, 365 * 86_400_000_000
NOW = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
CLOCK = int(NOW.timestamp()) * SECOND


def at(**more: float) -> dt.datetime:
    return NOW + dt.timedelta(**more)


def tumbling(**how: object) -> sw.Workload:
    return sw.Workload(time="ts", **how).query("q", sw.tumbling("1 minute"), n=sw.count())


def last_rows(**how: object) -> sw.Workload:
    return sw.Workload(time="ts", **how).query("q", sw.sliding(sw.rows(2), every="1 second"), n=sw.count())


# -- the clock


@pytest.mark.parametrize("ordered", [False, True])
def test_a_row_too_far_ahead_is_named_and_moves_nothing(ordered):
    op = tumbling(keys=["k"]).operator(ordered=ordered, ahead="1 hour", clock=lambda: CLOCK)
    op.process(at(), {"k": "a"})
    with pytest.raises(RefusedRowsError) as caught:
        op.process(at(hours=1, seconds=1), {"k": "b"})
    assert str(caught.value) == (
        "the record of time 2024-01-01 13:00:01+00:00, key k='b': it is further ahead of the clock than `ahead` "
        "allows; the clock shows 2024-01-01 12:00:00, and `ahead` is '1 hour'; the record was left out"
    )
    assert (caught.value.reason, caught.value.rows) == (bad_rows.AHEAD, [0])
    # The next call goes on: one exactly so far ahead is taken, and so is one that is older than the row left out.
    op.process(at(seconds=1), {"k": "a"})
    op.process(at(hours=1), {"k": "a"})
    op.process_batch({"ts": [], "k": []})
    assert op.stats().rows == 3
    assert op.stats().watermark == (CLOCK + HOUR if ordered else None)
    assert op.stats().late_rows == 0


@pytest.mark.parametrize("ordered", [False, True])
def test_the_others_of_a_batch_stay(ordered):
    op = tumbling(keys=["k"]).operator(ordered=ordered, ahead="1 hour", clock=lambda: CLOCK)
    times = [at(), at(hours=2), at(minutes=1), at(days=3650), at(minutes=3)]
    with pytest.raises(RefusedRowsError) as caught:
        op.process_batch({"ts": times, "k": list("abcde")})
    assert str(caught.value) == (
        "the record of time 2024-01-01 14:00:00+00:00, key k='b': it is further ahead of the clock than `ahead` "
        "allows; the clock shows 2024-01-01 12:00:00, and `ahead` is '1 hour'; the record was left out, and so was "
        "1 other"
    )
    assert caught.value.rows == [1, 3]
    assert [r.key for r in [*op.process_batch({"ts": [], "k": []}), *op.close()]] == [("a",), ("c",), ("e",)]


@pytest.mark.parametrize("asked", ["stats", "late", "slices", "snapshot"])
def test_results_beside_a_refused_row_come_with_the_next_call_whatever_is_asked_in_between(asked):
    op = tumbling().operator(ordered=True, ahead="1 hour", clock=lambda: CLOCK)
    with pytest.raises(RefusedRowsError):
        op.process_batch({"ts": [at(), at(seconds=70), at(hours=2)]})
    getattr(op, asked)()
    assert [r.values for r in op.process_batch({"ts": []})] == [{"n": 1}]


def test_drive_makes_its_watermark_of_the_others():
    op = tumbling().operator(ahead="1 hour", clock=lambda: CLOCK)
    steps = op.drive([{"ts": [at()]}, {"ts": [at(seconds=61)]}, {"ts": [at(hours=5)]}])
    assert [len(next(steps)), len(next(steps))] == [0, 1]
    with pytest.raises(RefusedRowsError, match="2024-01-01 17:00:00"):
        next(steps)
    assert op.stats().watermark == CLOCK + 61 * SECOND


def test_the_clock_is_read_when_a_row_comes():
    clock = iter([CLOCK, CLOCK + HOUR])
    op = tumbling().operator(ahead="1 hour", clock=lambda: next(clock))
    with pytest.raises(RefusedRowsError, match="the clock shows 2024-01-01 12:00:00,"):
        op.process(at(hours=2), {})
    op.process(at(hours=2), {})


def test_rows_far_behind_the_limit_do_not_ask_for_the_clock():
    asked = []

    def clock() -> int:
        asked.append(1)
        return CLOCK

    op = sw.Workload(time="t", unit="microseconds").query("q", sw.tumbling("1 day"), n=sw.count())
    op = op.operator(ahead="1 hour", clock=clock)
    for i in range(1000):
        op.process(CLOCK - 10**9 + i, {})
    assert len(asked) < 100


@pytest.mark.parametrize(
    ("unit", "scale"), [("seconds", 1), ("milliseconds", 10**3), ("microseconds", 10**6), ("nanoseconds", 10**9)]
)
def test_integers_are_read_in_their_unit(unit, scale):
    clock = CLOCK + 900_000 if unit == "seconds" else CLOCK
    op = tumbling(unit=unit).operator(ahead="1 hour", clock=lambda: clock)
    furthest = (CLOCK + HOUR) // SECOND * scale
    op.process_batch({"ts": [furthest]})
    with pytest.raises(RefusedRowsError, match="and `ahead` is '1 hour'"):
        op.process_batch({"ts": [furthest + 1]})
    with pytest.raises(RefusedRowsError, match="and `ahead` is '1 hour'"):
        op.process(furthest + 1, {})


def test_times_without_a_zone_are_read_as_utc():
    op = tumbling().operator(ahead="1 hour", clock=lambda: CLOCK)
    op.process(at(hours=1).replace(tzinfo=None), {})
    with pytest.raises(RefusedRowsError, match="the record of time 2024-01-01 13:00:01: it is"):
        op.process(at(hours=1, seconds=1).replace(tzinfo=None), {})


def test_the_systems_clock_is_the_clock():
    op = tumbling().operator(ahead="1 hour")
    soon = dt.datetime.now(dt.UTC) + dt.timedelta(minutes=50)
    op.process(soon, {})
    with pytest.raises(RefusedRowsError, match="further ahead of the clock"):
        op.process(soon + dt.timedelta(minutes=20), {})


INTEGERS = sw.Workload(time="t").query("q", sw.tumbling(10), n=sw.count())
COUNTS = sw.Workload(time="t").query("q", sw.tumbling(sw.rows(10)), n=sw.count())
NO_UNIT = (
    "`ahead` is measured by the clock, but it is not known what the integers of 't' count; got '1 hour'; say it: "
    "Workload(time='t', unit='seconds')"
)


@pytest.mark.parametrize(
    ("workload", "how", "message"),
    [
        (INTEGERS, {"ahead": "1 hour"}, NO_UNIT),
        (INTEGERS, {"ahead": 5}, NO_UNIT.replace("'1 hour'", "5")),
        (COUNTS, {"ahead": sw.rows(5)}, "`ahead` must be a duration or an integer of event time; got rows(5)"),
        (COUNTS, {"ahead": "-1 hour"}, "`ahead` must not be negative; got '-1 hours'"),
        (
            COUNTS,
            {"clock": lambda: 0},
            "`clock` is what `ahead` is measured by; got no `ahead`; give both, or leave it out",
        ),
        (
            COUNTS,
            {"ahead": "1 hour", "clock": 5},
            "`clock` must be a function that gives microseconds since the epoch; got 5",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(workload, how, message):
    with pytest.raises(QueryError) as caught:
        workload.operator(**how)
    assert str(caught.value).replace("-1 hour'", "-1 hours'") == message


def test_integers_that_nobody_says_the_unit_of_go_with_no_clock():
    for take in (lambda op: op.process(5, {}), lambda op: op.process_batch({"t": [5]})):
        with pytest.raises(DataError) as caught:
            take(COUNTS.operator(ahead="1 hour"))
        assert str(caught.value) == NO_UNIT


def test_a_clock_that_gives_no_integer_is_refused():
    with pytest.raises(QueryError) as caught:
        tumbling().operator(ahead="1 hour", clock=lambda: 1.5).process(NOW, {})
    assert str(caught.value) == "`clock` must give microseconds since the epoch, an integer; got 1.5"


# -- ticks


GAP = (
    "the record of time 2024-01-13 01:46:41+00:00, key k='a': 1000001 ticks of sliding(rows(2), every='1 second') "
    "would be due because of it, since the record of time 2024-01-01 12:00:00+00:00, and no record may bring more than "
    "1000000; the record was left out. Filter such records out, take a longer `every`, or have them judged by the "
    "clock, with `ahead`"
)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("batches", [False, True])
def test_a_row_that_would_make_more_than_a_million_ticks_due_is_refused(ordered, batches):
    op = last_rows(keys=["k"]).operator(ordered=ordered)

    def take(time: dt.datetime, k: str) -> None:
        if batches:
            op.process_batch({"ts": [time], "k": [k]})
        else:
            op.process(time, {"k": k})
            if not ordered:
                op.stats()  # empties the buffer

    take(at(), "a")
    with pytest.raises(RefusedRowsError) as caught:
        take(at(seconds=1_000_001), "a")
    assert str(caught.value) == GAP
    assert caught.value.reason == bad_rows.GAP
    # Nothing has moved: rows of other keys, and of this one, go on where they were.
    take(at(seconds=1), "b")
    take(at(seconds=1_000_000), "a")
    assert op.stats().rows == 3
    assert op.stats().late_rows == 0


def test_ten_years_ahead_is_refused_at_once_and_for_every_key():
    op = last_rows(keys=["k"]).operator()
    op.process_batch({"ts": [at()] * 3, "k": list("abc")})
    with pytest.raises(RefusedRowsError, match=r"the record was left out, and so were 2 others\."):
        op.process_batch({"ts": [at(days=3650)] * 3, "k": list("abc")})
    assert len(op.close()) == 3


def test_with_ahead_the_clock_judges_and_results_are_made_as_they_are_read():
    op = last_rows().operator(ahead="1 hour", clock=lambda: CLOCK)
    op.process_batch({"ts": [at(days=-3650), at()]})
    found = op.advance(NOW)
    assert len(found) == 3650 * 86_400
    assert next(iter(found)).values == {"n": 1}


@pytest.mark.slow
def test_an_old_row_far_before_all_others_is_refused_not_they():
    op = last_rows(lateness="100 days").operator()
    op.process_batch({"ts": [at(), at(seconds=10)]})
    op.advance(at(seconds=10))
    with pytest.raises(RefusedRowsError, match="since the record of time 2024-01-01 12:00:00"):
        op.process_batch({"ts": [at(days=-20)]})
    op.process_batch({"ts": [at(days=-5)]})
    changes = collections.Counter(r.change for r in op.advance(at(seconds=10)))
    assert changes == {"insert": 5 * 86_400 + 10, "retract": 10}


def test_what_was_known_is_known_after_a_restart_and_other_queries():
    def gone_on(op: sw.Operator) -> None:
        with pytest.raises(RefusedRowsError, match="1000001 ticks"):
            op.process_batch({"ts": [at(seconds=1_000_001)]})

    op = last_rows().operator()
    op.process_batch({"ts": [NOW]})
    gone_on(last_rows().operator().restore(op.snapshot()))
    op.advance(NOW)
    gone_on(last_rows().operator().restore(op.snapshot()))
    op.add_query("more", sw.tumbling("1 minute"), n=sw.count())
    gone_on(op)


# -- measures


def travelled(every: sw.Amount, **how: object) -> sw.Workload:
    w = sw.Workload(time="t", **how).query("q", sw.sliding(sw.rows(2), every=every), n=sw.count())
    return w.query("all", sw.tumbling(10), n=sw.count())


def test_a_measure_that_jumps_over_more_than_a_million_ticks_is_refused():
    op = travelled(sw.units(1, "km")).operator()
    op.process_batch({"t": [0, 1, 2], "km": [0.0, 1_000_001.0, 3.0]})
    with pytest.raises(RefusedRowsError) as caught:
        op.advance(5)
    assert str(caught.value) == (
        "the measure 'km' must not jump over more than 1000000 ticks of 1; got 1000001.0 at time 1, after 0.0 at time "
        "0; the row was left out of the windows on 'km'"
    )
    assert caught.value.reason == bad_rows.GAP
    # Its time is right: it counts where only that matters.
    assert [(r.query, r.end, r.values["n"]) for r in op.close()] == [("all", 10, 3), ("q", 1, 1), ("q", 2, 1)] + [
        ("q", 3, 1),
        ("q", 4, 2),
    ]


@pytest.mark.parametrize("window", [sw.tumbling(sw.units(1, "km")), sw.sliding(sw.rows(2), every=sw.units(1, "km"))])
@pytest.mark.parametrize("value", [1e19, -1e19, 1e300, 2.0**53 + 2, 2**62, -(2**63)])
def test_a_measure_whose_slides_have_no_number_is_refused(window, value):
    whole = isinstance(value, int)
    op = sw.Workload(time="t").query("q", window, n=sw.count()).operator()
    op.process_batch({"t": [0], "km": np.array([value])})
    with pytest.raises(RefusedRowsError) as caught:
        op.advance(5)
    furthest = f"{2.0**60:g}" if whole else f"{2.0**53:g}"
    assert str(caught.value) == (
        f"the measure 'km' must be a finite number, at most {furthest} from 0, where slides have numbers; got {value} "
        "at time 0; the row was left out of the windows on 'km'"
    )
    assert caught.value.reason == bad_rows.MEASURE
    assert not op.close()


def test_a_row_that_does_not_fit_counts_once_with_ordered():
    w = sw.Workload(time="t").query("u", sw.tumbling(sw.units(5, "km")), n=sw.count())
    op = w.query("t", sw.tumbling(10), n=sw.count()).operator(ordered=True)
    op.process(1, {"km": 7})
    with pytest.raises(RefusedRowsError, match="must not go backwards"):
        op.process(2, {"km": 3})
    op.process(3, {"km": 8})
    assert [(r.query, r.values["n"]) for r in op.close()] == [("t", 3), ("u", 2)]


# -- against the definition


SLIDES = st.sampled_from([1, 2, 5])
TICKING = st.one_of(
    st.builds(lambda every: sw.sliding(sw.rows(3), every=every), SLIDES),
    st.builds(lambda every: sw.sliding(sw.units(4, "u"), every=every), SLIDES),
    st.builds(lambda every: sw.sliding(sw.rows(2), every=sw.units(every, "u")), st.sampled_from([0.5, 1, 2])),
    st.builds(lambda every: sw.sliding(2, every=sw.units(every, "z")), SLIDES),
    st.builds(lambda every: sw.policy(at_most_five, watch={"n": sw.count()}, every=every), SLIDES),
    st.builds(lambda every: sw.policy(at_most_five, watch={"n": sw.count()}, every=sw.units(every, "u")), SLIDES),
)


@contextlib.contextmanager
def most_ticks(most: int) -> Iterator[None]:
    with mock.patch.object(slides, "MOST_TICKS", most), mock.patch.object(refusals, "MOST_TICKS", most):
        yield


def stepped(run, mark) -> tuple[list, int]:
    """The results of a step, taken until it succeeds, and how often that was."""
    for times in range(100):
        try:
            return list(run.close() if mark is None else run.advance(mark)), times
        except DataError:
            continue
    raise AssertionError


def refuses(take, *rows) -> bool:
    try:
        take(*rows)
    except DataError:
        return True
    return False


@given(
    TICKING,
    st.sampled_from([[], ["k"]]),
    st.sampled_from([0, 4, 100]),
    st.lists(st.tuples(st.lists(st.lists(rows(), max_size=5), max_size=3), st.integers(0, 30)), max_size=4),
    st.integers(0, 12),
)
def test_rows_after_too_many_ticks_are_refused_as_the_oracle_refuses_them(window, keys, lateness, epochs, most):
    w = sw.Workload(time="t", keys=keys, lateness=lateness).query("q", window, n=sw.count(), s=sw.sum("v"))
    w = w.query("all", sw.tumbling(7), n=sw.count())
    op, oracle, found, expected, mark = w.operator(types=TYPES), Oracle(w), [], [], 0
    with most_ticks(most):
        for chunks, more in [*epochs, ([], None)]:
            for chunk in chunks:
                mine = refuses(op.process_batch, columns_of(chunk))
                assert mine == refuses(oracle.process_batch, [(row["t"], row, key_of(w, row)) for row in chunk])
            mark = None if more is None else mark + more
            found.append(stepped(op, mark)[0])
            expected.append(stepped(oracle, mark)[0])
    assert_same(found, expected)


@given(
    st.sampled_from([sw.tumbling("10 seconds"), sw.sliding(sw.rows(3), every="2 seconds"), sw.session("3 seconds")]),
    st.lists(st.tuples(st.lists(rows(), max_size=6), st.integers(0, 20)), max_size=5),
    st.integers(0, 9),
    st.booleans(),
)
def test_rows_too_far_ahead_are_refused_as_the_oracle_refuses_them(window, batches, ahead, one_by_one):
    w = sw.Workload(time="t", unit="seconds", keys=["k"]).query("q", window, n=sw.count())
    now = 0
    clock = {"ahead": f"{ahead} seconds", "clock": lambda: now * SECOND}
    op, oracle = w.operator(types=TYPES, **clock), Oracle(w, ahead=ahead, clock=lambda: now * SECOND)
    found, expected, mark = [], [], 0
    for batch, more in batches:
        now = max(now, mark) + more
        if one_by_one:
            for row in batch:
                mine = refuses(op.process, row["t"], row)
                assert mine == refuses(oracle.process, row["t"], row, key_of(w, row)) == (row["t"] > now + ahead)
        else:
            mine = refuses(op.process_batch, columns_of(batch))
            assert mine == refuses(oracle.process_batch, [(row["t"], row, key_of(w, row)) for row in batch])
        mark = max([mark, *(row["t"] for row in batch if row["t"] <= now + ahead)])
        found.append(list(op.advance(mark)))
        expected.append(oracle.advance(mark))
    assert_same([*found, list(op.close())], [*expected, oracle.close()])
