"""Bad rows on a stream, without a JVM: counted by reason, given back with it, and never a reason to stop."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import bad_rows, results
from slicewise.bad_rows import AHEAD, BAD, GAP, LATE, MEASURE, NO_TIME, USER_CODE, metric_name
from slicewise.errors import DataError, QueryError
from slicewise.plan.plan import VALUES
from slicewise.slicing.operator import Operator
from slicewise.slicing.rows import slides
from slicewise.spark.streaming import inspecting, shard_reports
from slicewise.testing import Oracle, refusals
from tests.matrices import matrix
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same
from tests.slicing.strategies import rows
from tests.spark.stream_fake import Crash, FakeStream, Workers

some = fewer(4, least=5)
YEARS = 10 * 365 * 86_400
#: What the clock of a fake stream shows, in seconds.
NOW = 1_000


def row(t, k="a", **columns):
    return {"t": t, **dict.fromkeys(TYPES), "k": k, **columns}


def counts(stream):
    """The bad rows of all micro-batches, by reason, as the metrics count them."""
    found = Counter()
    for told in stream.metrics:
        found.update({reason: getattr(told, metric_name(reason)) for reason in BAD})
        assert told.bad == sum(getattr(told, metric_name(reason)) for reason in BAD)
    return {reason: n for reason, n in found.items() if n}


def given_back(stream):
    return sorted((r["t"] or 0, r["k"], reason) for r, reason in zip(stream.late, stream.reasons, strict=True))


def of_heads(stream):
    return inspecting._summed(stream.heads(), 0, ()).bad


SUMS = sw.Workload("t", unit="seconds", keys=["k"], watermark="5 seconds").query(
    "q", sw.tumbling("10 seconds"), n=sw.count()
)
TICKS = sw.Workload("t", keys=["k"]).query("q", sw.sliding(sw.rows(2), every=1), n=sw.count())
EMPTY = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(1), empty=True, n=sw.count())
TRAVELLED = sw.Workload("t", keys=["k"]).query("q", sw.sliding(sw.rows(2), every=sw.units(1, "u")), n=sw.count())


# -- too far ahead of the micro-batch's own time


@pytest.mark.parametrize("late", [None, "collect"])
def test_rows_too_far_ahead_are_counted_and_given_back_and_do_not_move_the_watermark(late):
    stream = FakeStream(SUMS, late=late, ahead="1 hour")
    far = NOW + 3601
    stream.batch([[row(NOW), row(far), row(None), row(NOW + 3600, "b")], [row(far + YEARS, "c"), row(1)]])
    assert {h["watermark"] for h in stream.heads()} == {NOW + 3600 - 5}
    assert counts(stream) == {NO_TIME: 1, AHEAD: 2} == of_heads(stream)
    expected = [(0, "a", NO_TIME), (far, "a", AHEAD), (far + YEARS, "c", AHEAD)]
    assert given_back(stream) == (expected if late else [])
    stream.batch([[row(2)]])
    assert given_back(stream) == ([expected[0], (2, "a", LATE), *expected[1:]] if late else [])


def test_a_micro_batch_of_nothing_else_reports_that():
    stream = FakeStream(SUMS, ahead="1 hour")
    assert stream.batch([[row(NOW + YEARS), row(NOW + YEARS, "b")]]) == []
    assert counts(stream) == {AHEAD: 2}
    assert {h["watermark"] for h in stream.heads()} == {None}


def test_bad_fail_stops_at_a_row_too_far_ahead_and_shows_it():
    stream = FakeStream(SUMS, bad="fail", ahead="1 hour")
    stream.batch([[row(NOW)]])
    with pytest.raises(DataError) as caught:
        stream.batch([[row(NOW), row(NOW + YEARS, v=7)]])
    assert str(caught.value) == (
        "a row is further ahead of the clock, which shows 1970-01-01 00:16:40, than ahead='1 hour' allows, and "
        f"bad='fail': {row(NOW + YEARS, v=7)}"
    )
    stream.batch([[row(NOW + 20)]])
    assert {h["watermark"] for h in stream.heads()} == {NOW + 15}


def test_ahead_needs_a_clock():
    with pytest.raises(QueryError) as caught:
        FakeStream(TICKS, ahead="1 hour")
    assert str(caught.value) == (
        "`ahead` is measured by the clock, but it is not known what the integers of 't' count; got '1 hour'; say it: "
        "Workload(time='t', unit='seconds')"
    )


@some
@given(
    st.sampled_from([sw.tumbling("10 seconds"), sw.sliding(sw.rows(3), every="2 seconds"), sw.session("3 seconds")]),
    st.lists(st.tuples(st.lists(st.lists(rows(), max_size=5), max_size=3), st.integers(0, 9)), max_size=5),
    st.integers(0, 9),
    st.booleans(),
    st.data(),
)
def test_ahead_gives_what_operator_and_oracle_give_with_the_same_clock(window, batches, ahead, sliced, data):
    w = sw.Workload("t", unit="seconds", keys=["k"]).query("q", window, n=sw.count())
    options = {"ahead": f"{ahead} seconds", "late": None if sliced else "collect"}
    stream = FakeStream(w, workers=Workers(data.draw(st.integers(0, 1))), **options)
    stream.now = 0
    oracle, latest, found, expected, wrong = Oracle(w, ahead=ahead, clock=lambda: 1000 * stream.now), None, [], [], 0
    in_process = Operator(w, types=TYPES, ties=VALUES, ahead=options["ahead"], clock=lambda: 1000 * stream.now)
    again = []
    for batch, more in batches:
        stream.now += 1000 * more
        try:
            crash = (data.draw(st.integers(0, 2)), 0) if data.draw(st.booleans()) else None
            found.append(stream.batch(batch, crash=crash))
        except Crash:
            found.append(stream.batch(batch))
        every = [r for part in batch for r in part]
        for run in (oracle, in_process):
            for r in every:
                try:
                    run.process(r["t"], r, (r["k"],))
                except DataError:
                    wrong += run is oracle
        latest = max(
            [-(10**9) if latest is None else latest, *(r["t"] for r in every if r["t"] <= stream.now // 1000 + ahead)]
        )
        going = latest > -(10**9)
        expected.append(oracle.advance(latest) if going else [])
        again.append(list(in_process.advance(latest)) if going else [])
    assert_same(found, [[micros(r) for r in results] for results in expected])
    assert_same(found, [[micros(r) for r in results] for results in again])
    assert counts(stream).get(AHEAD, 0) == wrong
    assert stream.reasons.count(AHEAD) == (0 if sliced else wrong)


def micros(result):
    return result._replace(start=result.start * 10**6, end=result.end * 10**6)


# -- found out in the shard


class Unlucky:
    """A window for each row, unless the row is the thirteenth hour."""

    def on_record(self, time, row):
        if row["v"] == 13:
            raise ValueError("unlucky")
        return 1, 1


UNLUCKY = sw.Workload("t", keys=["k"], lateness=100).query("q", sw.user_defined(Unlucky, columns=["v"]), n=sw.count())

FOUND_OUT = {
    GAP: (TICKS, row(YEARS), row(1)),
    "empty windows": (EMPTY, row(YEARS), row(1)),
    MEASURE: (TRAVELLED, row(1, u=-1.0), row(2, u=1.0)),
    "a jump": (TRAVELLED, row(1, u=1e7), row(2, u=1.0)),
    "no number": (TRAVELLED, row(1, u=1e300), row(2, u=1.0)),
    USER_CODE: (UNLUCKY, row(1, v=13), row(2, v=1)),
}
REASONS = {"a jump": GAP, "empty windows": GAP, "no number": MEASURE}


@matrix(case=FOUND_OUT, late=[None, "collect"], workers=[0, 1])
def test_what_only_the_shard_can_know_is_counted_and_given_back_and_the_stream_goes_on(case, late, workers):
    workload, bad, good = FOUND_OUT[case]
    reason = REASONS.get(case, case)
    stream = FakeStream(workload, late=late, workers=Workers(workers))
    first = row(0, u=0.0, v=0, w="x")
    stream.batch([[first], [row(0, "b", u=0.0, v=0)]])
    found = stream.batch([[bad], [good]])
    expected = FakeStream(workload)
    expected.batch([[first], [row(0, "b", u=0.0, v=0)]])
    # What is missing is the bad row, and nothing else; but its time has moved the watermark.
    others = [good, row(bad["t"], "other", u=0.0, v=0)]
    assert [r for r in found if r.key == ("a",)] == [r for r in expected.batch([others]) if r.key == ("a",)]
    assert counts(stream) == {reason: 1} == of_heads(stream)
    assert (stream.late, stream.reasons) == (([bad], [reason]) if late else ([], []))
    assert max(h["watermark"] for h in stream.heads()) == max(bad["t"], good["t"])


@pytest.mark.parametrize("case", FOUND_OUT)
def test_bad_fail_stops_at_what_only_the_shard_can_know_and_nothing_is_lost(case):
    workload, bad, good = FOUND_OUT[case]
    stream = FakeStream(workload, bad="fail")
    stream.batch([[row(0, u=0.0, v=0)]])
    before = {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}
    with pytest.raises(DataError) as caught:
        stream.batch([[bad], [good]])
    message, _, shown = str(caught.value).partition("; and bad='fail': ")
    assert shown == str(bad)
    assert "left out" in message
    assert {shard: handle.map.data for shard, handle in stream.handles.items()} == before
    stream.batch([[good]])
    assert counts(stream) == {}


class Choosy:
    """Fails on a row if the one before it has a certain value."""

    def __init__(self):
        self.last = 0

    def on_record(self, time, row):
        if self.last == 13:
            raise ValueError("unlucky")
        self.last = row["v"]
        return 1, 1


def test_a_row_of_an_earlier_micro_batch_comes_back_as_far_as_it_is_known():
    """Another row comes in between, and user code fails on a row that it took before."""
    w = sw.Workload("t", keys=["k"], lateness=100).query("q", sw.user_defined(Choosy, columns=["v"]), n=sw.count())
    stream = FakeStream(w, late="collect", workers=Workers(0))
    stream.batch([[row(1, v=1, w="x"), row(9, v=2, w="y")]])
    assert stream.late == []
    stream.batch([[row(5, v=13, w="z")]])
    assert stream.late == [row(9, v=2)]
    assert stream.reasons == [USER_CODE]
    assert counts(stream) == {USER_CODE: 1}


def test_many_bad_rows_of_several_kinds_in_one_micro_batch():
    stream = FakeStream(TRAVELLED, late="collect", shards=2)
    stream.batch([[row(0, "a", u=0.0), row(0, "b", u=0.0)]])
    wrong = [row(1, "a", u=1e9), row(2, "a", u=-5.0), row(3, "b", u=float("inf")), row(4, "b", u=2e9), row(None, "b")]
    stream.batch([[*wrong, row(5, "a", u=2.0), row(5, "b", u=3.0)]])
    assert counts(stream) == {NO_TIME: 1, GAP: 2, MEASURE: 2} == of_heads(stream)
    assert Counter(map(str, stream.late)) == Counter(map(str, wrong))


@some
@given(
    st.lists(st.lists(st.lists(rows(), max_size=5), max_size=3), max_size=5),
    st.sampled_from([1, 2, 5]),
    st.integers(0, 12),
    st.integers(1, 3),
    st.booleans(),
)
def test_gaps_are_those_of_the_oracle(batches, every, most, shards, empty):
    window = sw.tumbling(every) if empty else sw.sliding(sw.rows(2), every=every)
    w = sw.Workload("t", keys=["k"], lateness=50).query("q", window, empty=empty, n=sw.count())
    stream, oracle, latest, found, expected, wrong = FakeStream(w, shards=shards), Oracle(w), -(10**9), [], [], 0
    with mock.patch.object(slides, "MOST_TICKS", most), mock.patch.object(refusals, "MOST_TICKS", most):
        for batch in batches:
            found.append(stream.batch(batch))
            every_row = [r for part in batch for r in part]
            try:
                oracle.process_batch([(r["t"], r, (r["k"],)) for r in every_row])
            except DataError as error:
                wrong += 1 + int(str(error).rpartition("and ")[2].split()[0])
            latest = max([latest, *(r["t"] for r in every_row)])
            expected.append(oracle.advance(latest) if latest > -(10**9) else [])
    assert_same(found, expected)
    assert counts(stream).get(GAP, 0) == wrong


# -- counts that last


def test_counts_go_on_after_a_restart_and_old_heads_count_from_nothing():
    stream = FakeStream(TICKS)
    stream.batch([[row(0), row(None)]])
    stream.batch([[row(YEARS), row(None, "b")]])
    stream = stream.again()
    stream.batch([[row(1), row(None)]])
    assert of_heads(stream) == {NO_TIME: 3, GAP: 1}
    for handle in stream.handles.values():
        rest, said = handle.map.data[("head",)]
        handle.map.data[("head",)] = rest, said.replace('"bad": {', '"old": {')
        handle.commit()
    assert of_heads(stream) == {}
    stream = stream.again()
    stream.batch([[row(None), row(2)]])
    assert of_heads(stream) == {NO_TIME: 1}


def test_an_inspection_names_the_reasons():
    stream = FakeStream(TICKS)
    stream.batch([[row(0), row(YEARS), row(None), row(None, "b")]])
    said = str(inspecting._summed(stream.heads(), 0, ()))
    assert said.splitlines()[1:3] == [
        "1 rows in (0 late), 1 results out",
        "bad rows: 2 no event time, 1 gap",
    ]


def test_every_reason_is_a_metric():
    names = [f.name for f in shard_reports.SHARD_METRICS]
    assert names[2 : names.index("keys")] == ["bad", *map(metric_name, bad_rows.BAD), "failed", "overfull"]


def test_an_overfull_window_is_counted_and_has_no_value():
    counted = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), s=sw.sum("v").by("v", most=2), n=sw.count())
    stream = FakeStream(counted)
    stream.batch([[row(1, v=1), row(2, v=2), row(3, v=3)], [row(4, "b", v=4)]])
    found = stream.batch([[row(11, v=5)]])
    assert sorted((r.key, r.values["s"], r.values["n"]) for r in found) == [(("a",), None, 3), (("b",), {4: 4}, 1)]
    assert [sum(getattr(told, name) for told in stream.metrics) for name in ("overfull", "failed", "bad")] == [1, 0, 0]


def test_a_stream_keeps_rows_that_a_computed_column_puts_in_order_or_measures():
    """What is written has their names as plain text."""
    workload = sw.Workload("t", keys=["k"], order=[sw.expr("-v")]).query("q", sw.tumbling(10), s=sw.collect_list("v"))
    workload = workload.query("u", sw.tumbling(sw.units(4, sw.expr("v * 2"))), n=sw.count())
    stream = FakeStream(workload, workers=Workers(0))
    found = stream.batch([[row(1, v=1), row(2, v=2)]])
    stream = stream.again()
    found += stream.batch([[row(3, v=5), row(3, v=4)]]) + stream.batch([[row(21, v=9)]])
    assert [r.values["s"] for r in found if r.query == "q"] == [[1, 2, 5, 4]]
    assert [(r.start, r.values["n"]) for r in found if r.query == "u"] == [(0, 1), (4, 1), (8, 1)]


# -- many results at once


@pytest.mark.parametrize("most", [10, 100, 10**6])
def test_results_leave_a_shard_in_reports_of_bounded_size(most):
    stream = FakeStream(TICKS, shards=1, late="collect")
    stream.batch([[row(0), row(0, "b")]])
    sizes = []
    make = shard_reports._listed

    def listed(array: pa.Array) -> object:
        sizes.append(len(array))
        return make(array)

    with (
        mock.patch.object(shard_reports, "MOST", most),
        mock.patch.object(results, "MOST", most),
        mock.patch.object(shard_reports, "_listed", listed),
    ):
        found = stream.batch([[row(500), row(500, "b"), row(-1, "b"), row(None)]])
    assert len(found) == 1000
    assert max(sizes) <= most
    assert sorted(stream.reasons) == [LATE, NO_TIME]
    assert sum(told.rows for told in stream.metrics[1:]) == 3
