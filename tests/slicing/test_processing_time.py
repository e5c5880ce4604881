"""Processing time: rows get the clock's time when they come, and each is its own watermark."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, QueryError
from slicewise.testing import Oracle
from slicewise.workload.settings import replaced
from tests.slicing.running import TYPES, assert_same, key_of
from tests.slicing.strategies import EveryThird, rows

SECOND = 1_000_000


def whole(message):
    return f"^{re.escape(message)}$"


class Clock:
    """Shows what it is told to; counts how often it is read."""

    def __init__(self, now=0):
        self.now, self.readings = now, 0

    def __call__(self):
        self.readings += 1
        return self.now


def tens(clock, **parameters):
    workload = sw.Workload(time=sw.processing_time(clock), **parameters)
    return workload.query("tens", sw.tumbling("10 seconds"), n=sw.count())


def found(results):
    return [(r.start // SECOND, r.values["n"]) for r in results]


def test_a_row_belongs_to_the_window_that_is_open_when_it_comes():
    clock = Clock(1 * SECOND)
    op = tens(clock).operator()
    assert not op.process(None, {})
    clock.now = 9 * SECOND
    assert not op.process(None, {"anything": 1})
    clock.now = 12 * SECOND
    assert found(op.process(None, {})) == [(0, 2)]
    clock.now = 20 * SECOND
    assert found(op.advance()) == [(10, 1)]
    assert op.late() == []
    assert clock.readings == 4


def test_a_batch_has_no_time_column_and_one_reading():
    clock = Clock(5 * SECOND)
    workload = sw.Workload(time=sw.processing_time(clock), keys=["k"], where="v > 0")
    op = workload.query("tens", sw.tumbling("10 seconds"), n=sw.sum("v")).operator()
    assert not op.process_batch({"k": ["a", "b", "a"], "v": [1, 2, 3]})
    assert clock.readings == 1
    clock.now = 15 * SECOND
    results = op.process_batch(pa.table({"k": ["b"], "v": [-1]}))
    assert sorted((r.key, r.values["n"]) for r in results) == [(("a",), 4), (("b",), 2)]
    assert results.to_arrow().schema.field("window").type.field("start").type == pa.timestamp("us", "UTC")
    assert found(op.close()) == []


def test_a_clock_that_goes_back_stands_still():
    clock = Clock(25 * SECOND)
    op = tens(clock).operator()
    op.process(None, {})
    clock.now = 3 * SECOND
    op.process_batch({"v": [1, 2]})
    assert not op.advance()
    op.process(None, {})
    assert op.late() == []
    clock.now = 31 * SECOND
    assert found(op.advance()) == [(20, 4)]
    clock.now = 0
    op.process(None, {})
    assert found(op.close()) == [(30, 1)]


def test_a_restored_operator_does_not_go_back_behind_the_snapshot():
    clock = Clock(25 * SECOND)
    op = tens(clock).operator()
    op.process(None, {})
    earlier = Clock(3 * SECOND)
    restored = tens(earlier).operator().restore(pickle.loads(pickle.dumps(op.snapshot())))
    restored.process(None, {})
    assert found(restored.close()) == [(20, 2)]


def test_sessions_counts_and_conditions_run_on_the_clock_too():
    clock = Clock()
    workload = (
        sw.Workload(time=sw.processing_time(clock))
        .query("visit", sw.session("2 seconds"), n=sw.count())
        .query("pairs", sw.tumbling(sw.rows(2)), n=sw.count())
        .query("laps", sw.punctuated("v = 0"), n=sw.count())
    )
    op, results = workload.operator(), []
    for second, v in ((1, 0), (2, 1), (7, 0), (8, 1)):
        clock.now = second * SECOND
        results += op.process(None, {"v": v})
    clock.now = 20 * SECOND
    results += op.advance()
    assert sorted((r.query, r.start, r.values["n"]) for r in results) == [
        ("laps", SECOND, 2),
        ("pairs", 0, 2),
        ("pairs", 2, 2),
        ("visit", SECOND, 2),
        ("visit", 7 * SECOND, 2),
    ]


def test_the_systems_clock_is_the_default():
    op = tens(None).operator()
    before = sw.workload.system_clock()
    op.process(None, {})
    op.advance()
    assert before <= op.stats().watermark <= sw.workload.system_clock()


def test_drive_reads_the_clock_for_each_batch():
    clock = Clock()

    def batches():
        for second in (1, 5, 12):
            clock.now = second * SECOND
            yield {"v": [1, 2]}

    assert [found(results) for results in tens(clock).operator().drive(batches())] == [[], [], [(0, 4)], [(10, 2)]]


@st.composite
def workloads_on_the_clock(draw):
    """Queries of all kinds, with lengths of seconds."""
    seconds = st.integers(1, 20).map(lambda n: f"{n} seconds")
    kinds = st.one_of(
        st.builds(sw.tumbling, seconds),
        st.builds(lambda n, e: sw.sliding(n, every=e), seconds, seconds),
        st.builds(sw.session, seconds),
        st.integers(1, 4).map(lambda n: sw.tumbling(sw.rows(n))),
        st.builds(lambda n, e: sw.sliding(sw.rows(n), every=e), st.integers(1, 3), seconds),
        st.sampled_from([sw.punctuated("v > 2"), sw.frames("v > 0"), sw.user_defined(EveryThird)]),
        st.just(sw.punctuated("v > 2", "v < 0")),
    )
    aggregates = st.sampled_from([sw.sum("v"), sw.count(), sw.concat("w"), sw.first("w"), sw.max("v")])
    keys, where = draw(st.sampled_from([[], ["k"]])), draw(st.sampled_from([None, None, "v > -3"]))
    punctuation = draw(st.sampled_from([None, "w = 'c'"]))
    chosen = [(draw(kinds), draw(aggregates)) for _ in range(draw(st.integers(1, 4)))]

    def workload(clock):
        made = sw.Workload(time=sw.processing_time(clock), keys=keys, where=where, punctuation=punctuation)
        for i, (window, aggregate) in enumerate(chosen):
            made = made.query(f"q{i}", window, **{f"x{i}": aggregate})
        return made

    return workload


#: Batches, rows one by one, or nothing, each at a reading of the clock, which may go back.
arrivals = st.lists(st.tuples(st.integers(0, 60), st.lists(rows(), max_size=4), st.booleans()), max_size=8)


@given(workloads_on_the_clock(), arrivals, st.booleans())
def test_every_arrival_gives_what_stamped_rows_give_by_definition(make, arrived, restoring):
    clock = Clock()
    op, oracle = make(clock).operator(types=TYPES), Oracle(make(clock))
    stamped = replaced(make(None), 0, 0, time="at", unit="microseconds")
    by_hand, latest, found, expected = Oracle(stamped), 0, [], []
    for now, chunk, one_by_one in arrived:
        clock.now, latest = now * SECOND, max(latest, now * SECOND)
        results, defined = [], []
        if one_by_one:
            for row in chunk:
                results += op.process(None, row)
                oracle.process(None, row, key_of(stamped, row))
                by_hand.process(latest, row, key_of(stamped, row))
                defined += by_hand.advance(latest)
        elif chunk:
            results += op.process_batch({name: [row[name] for row in chunk] for name in TYPES})
            oracle.process_batch([(None, row, key_of(stamped, row)) for row in chunk])
            by_hand.process_batch([(latest, row, key_of(stamped, row)) for row in chunk])
        if restoring:
            op = make(clock).operator(types=TYPES).restore(pickle.loads(pickle.dumps(op.snapshot())))
        found.append(results + list(op.advance()))
        expected.append(defined + by_hand.advance(latest))
        assert_same([oracle.advance()], [expected[-1]])
    found.append(list(op.close()))
    assert_same(found, [*expected, by_hand.close()])
    assert_same([oracle.close()], [found[-1]])
    assert op.stats().late_rows == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("watermark", "1 second"),
        ("lateness", "1 second"),
        ("order", ["o"]),
        ("unit", "seconds"),
        ("watermark_from", "wm"),
    ],
)
def test_what_is_about_event_time_is_refused(name, value):
    message = (
        f"`{name}` is about event time, and processing_time() takes the clock's: every row is its own watermark, and "
        f"none is late; got {value!r}; leave it out"
    )
    with pytest.raises(QueryError, match=whole(message)) as caught:
        sw.Workload(time=sw.processing_time(), **{name: value})
    assert caught.value.parameter == name


def test_ordered_is_refused():
    with pytest.raises(QueryError, match=r"^`ordered` is about event time, .*; got True; leave it out$"):
        tens(None).operator(ordered=True)


def test_lengths_are_durations():
    with pytest.raises(QueryError, match="one workload has one notion of time") as caught:
        sw.Workload(time=sw.processing_time()).query("q", sw.tumbling(10), n=sw.count())
    assert caught.value.query == "q"


@pytest.mark.parametrize("clock", [5, "now"])
def test_what_is_no_clock_is_refused(clock):
    message = f"`clock` must be a function that gives microseconds since the epoch; got {clock!r}"
    with pytest.raises(QueryError, match=whole(message)):
        sw.processing_time(clock)


@pytest.mark.parametrize("now", [1.5, None, True, "noon"])
def test_a_clock_that_shows_no_microseconds_is_refused_and_nothing_is_lost(now):
    clock = Clock(now)
    op = tens(clock).operator()
    message = f"`clock` must give microseconds since the epoch, an integer; got {now!r}"
    for call in (lambda: op.process(None, {}), lambda: op.process_batch({"v": [1]}), op.advance):
        with pytest.raises(QueryError, match=whole(message)):
            call()
    clock.now = np.int64(1)
    op.process(None, {})
    clock.now = 2**61
    with pytest.raises(
        DataError, match=whole(f"`clock` must give microseconds since the epoch; got {2**61}, which is out of range")
    ):
        op.advance()
    assert found(op.close()) == [(0, 1)]


def test_times_are_the_clocks_alone():
    op = tens(Clock(1)).operator()
    with pytest.raises(DataError, match=whole("on processing time the clock gives rows their time; got 5; give None")):
        op.process(5, {})
    with pytest.raises(DataError, match=whole("on processing time the clock moves the watermark; got 5; leave it out")):
        op.advance(5)
    event = sw.Workload("t").query("q", sw.tumbling(1), n=sw.count()).operator()
    with pytest.raises(QueryError, match=r"^`watermark` must be a point in time; got None; "):
        event.advance()


def test_explain_and_repr_say_that_the_clock_is_read():
    workload = tens(None)
    assert repr(workload).startswith("Workload(time=processing_time())\n")
    said = workload.explain()
    assert said.startswith("workload  time processing_time(), no keys, rows in order, each its own watermark")
    assert "  as a batch   refused  a batch has no clock that a second run would share" in said
    assert "  as a stream  slices   sliced where they are read; shards get slices, not rows" in said
    timed = workload.query("ends", sw.tumbling("1 minute"), x=sw.last("v"))
    assert "last('v') carries the time of rows" in timed.explain()
