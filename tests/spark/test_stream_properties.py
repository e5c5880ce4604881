"""Streams without a JVM, against the operator and the definition: random workloads, micro-batches and partitions."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError
from slicewise.plan.plan import VALUES
from slicewise.slicing.operator import Operator
from slicewise.spark.streaming import chunks, key_chunks, packs
from slicewise.testing import Oracle, fold
from slicewise.testing.expressions import is_meant
from slicewise.times import INFINITY
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same
from tests.slicing.strategies import context_windows, windows
from tests.spark.stream_fake import Crash, FakeStream, Reference, Workers
from tests.spark.stream_strategies import any_workloads, micro_batches, says_how_long

#: A stream costs more than an operator: fewer examples than elsewhere.
some = fewer(6, least=5)


def rows_of(batches):
    return [row for batch in batches for part in batch for row in part]


def run(stream, batches):
    return [stream.batch(batch) for batch in batches]


@some
@given(any_workloads(), micro_batches(bad=True), st.integers(1, 4), st.integers(0, 1), st.sampled_from([1, 1000]))
def test_every_micro_batch_gives_the_results_of_operator_and_oracle(workload, batches, shards, workers, chunk):
    stream = FakeStream(workload, shards=shards, workers=Workers(workers))
    oracle = Oracle(workload, ties=VALUES)
    with mock.patch.object(packs, "CHUNK", chunk):  # rows that are sliced at once
        found = run(stream, batches)
    in_process = run(Reference(Operator(workload, types=TYPES, ties=VALUES), workload), batches)
    by_definition = run(Reference(oracle, workload), batches)
    assert_same(found, in_process)
    assert_same(found, by_definition)
    true, expected = (fold(r for batch in results for r in batch) for results in (found, by_definition))
    assert true.keys() == expected.keys()
    assert sum(r.late for r in stream.metrics) == len(oracle.late())
    assert sum(r.rows for r in stream.metrics) == sum(row["t"] is not None for row in data_rows(workload, batches))
    assert sum(r.bad for r in stream.metrics) == sum(row["t"] is None for row in meant(workload, batches))


@some
@given(any_workloads().filter(says_how_long), micro_batches(), st.integers(1, 4))
def test_with_emit_changes_every_micro_batch_reports_what_it_changed(workload, batches, shards):
    stream = FakeStream(workload, shards=shards, emit="changes")
    engine = stream.job.engine_workload
    oracle = Oracle(workload.with_delays(engine.watermark, engine.lateness), ties=VALUES)
    found = run(stream, batches)
    assert_same(found, run(Reference(oracle, workload, stream.job.ahead), batches))
    assert sum(r.late for r in stream.metrics) == len(oracle.late())


@some
@given(any_workloads(), micro_batches(bad=True), st.integers(1, 3))
def test_collected_late_rows_come_back_whole(workload, batches, shards):
    stream = FakeStream(workload, shards=shards, late="collect")
    oracle = Oracle(workload, ties=VALUES)
    assert_same(run(stream, batches), run(Reference(oracle, workload), batches))
    expected = [row for _, row, _ in oracle.late()] + [row for row in meant(workload, batches) if row["t"] is None]
    assert Counter(map(repr, map(sorted_items, stream.late))) == Counter(map(repr, map(sorted_items, expected)))


def meant(workload, batches):
    """The rows that the workload is about."""
    return [row for row in rows_of(batches) if is_meant(workload.where, row)]


def data_rows(workload, batches):
    """The rows that some window sees."""
    unseen = workload.unseen_punctuation
    return [row for row in meant(workload, batches) if unseen is None or not is_meant(unseen, row)]


def sorted_items(row):
    return sorted(row.items())


@some
@given(any_workloads(), micro_batches(), st.integers(1, 3), st.integers(2, 3))
def test_a_worker_that_decoded_another_version_does_not_use_it(workload, batches, shards, workers):
    """Workers take turns, so that each has decoded a shard as it was some micro-batches ago."""
    expected = run(FakeStream(workload, shards=shards, workers=Workers(0)), batches)
    stream = FakeStream(workload, shards=shards, workers=Workers(workers * shards + 1))
    assert_same(run(stream, batches), expected)


@pytest.mark.slow
@some
@given(any_workloads(), micro_batches(), st.data(), st.integers(0, 2))
def test_a_micro_batch_that_goes_down_half_way_is_done_again_with_the_same_results(workload, batches, data, workers):
    assume(rows_of(batches))
    expected = run(FakeStream(workload), batches)
    stream = FakeStream(workload, workers=Workers(workers))
    found, crashes = [], 0
    for number, batch in enumerate(batches):
        before = {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}
        crash = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 4))
        if number == len(batches) - 1 and not crashes:  # no micro-batch wrote that much: the last fails for certain
            for handle in stream.handles.values():
                handle.map.crash_after = 0
            crash = None
        try:
            found.append(stream.batch(batch, crash=crash))
        except Crash:
            crashes += 1
            assert {shard: handle.map.data for shard, handle in stream.handles.items()} == before
            found.append(stream.batch(batch))
    assert crashes
    assert_same(found, expected)


@some
@given(any_workloads(), micro_batches(), st.data(), st.integers(1, 3), st.sampled_from([1, 2, 100]))
def test_a_stream_that_is_stopped_anywhere_goes_on_from_bytes_alone(workload, batches, data, shards, keys):
    expected = run(FakeStream(workload, shards=shards), batches)
    stream = FakeStream(workload, shards=shards)
    found = []
    with mock.patch.object(key_chunks, "KEYS", keys):  # keys that share a chunk of ordered rows
        for batch in batches:
            if data.draw(st.booleans()):
                stream = stream.again(workers=Workers())
            with mock.patch.object(chunks, "SMALL", data.draw(st.sampled_from([0, 300, 32_768]))):  # bytes in one chunk
                found.append(stream.batch(batch))
    assert_same(found, expected)


@some
@given(any_workloads(), micro_batches(), st.one_of(windows(), context_windows()), st.data(), st.integers(0, 1))
def test_a_query_added_at_a_restart_leaves_the_others_alone_and_says_since_when(workload, batches, window, data, cache):
    """It equals the same query added to the operator; in every shard, as keys do not know of each other."""
    at = data.draw(st.integers(0, len(batches) - 1))
    added = workload.query("added", window, x=sw.count(), y=sw.collect_list("w"))
    stream = FakeStream(workload, shards=1, workers=Workers(cache))
    before = run(stream, batches[:at])
    stream = stream.again(added)
    after = run(stream, batches[at:])

    reference = Reference(Operator(workload, types=TYPES, ties=VALUES), workload)
    expected = run(reference, batches[:at])
    since = reference.runs.add_query("added", window, x=sw.count(), y=sw.collect_list("w"))
    reference.workload = added
    assert_same(before + after, expected + run(reference, batches[at:]))
    if rows_of(batches):
        assert stream.heads()[0]["since"] == ({} if since is None else {"added": since})


@some
@given(any_workloads(), micro_batches(), st.one_of(windows(), context_windows()), st.data(), st.integers(0, 2))
def test_a_query_removed_at_a_restart_leaves_the_others_alone(workload, batches, window, data, cache):
    # A measure that no other query has goes first where rows of equal time are put in order.
    measures = {m.column for q in workload.queries for m in q.window.measures}
    assume(all(m.column in {None, *measures} for m in window.measures))
    at = data.draw(st.integers(0, len(batches) - 1))
    both = workload.query("gone", window, x=sw.last("w"))
    always = run(FakeStream(both), batches)
    stream = FakeStream(both, workers=Workers(cache))
    found = run(stream, batches[:at])
    stream = stream.again(workload)
    found += run(stream, batches[at:])
    assert not any(r.query == "gone" for results in found[at:] for r in results)
    assert_same(*([[r for r in results if r.query != "gone"] for results in each] for each in (found, always)))
    assert all("gone" not in head["queries"] for head in stream.heads())


@some
@given(
    any_workloads().filter(says_how_long), micro_batches(), windows().filter(lambda w: w.reach is not None), st.data()
)
def test_with_emit_changes_queries_come_and_go_too(workload, batches, window, data):
    """How far ahead windows are reported depends on the longest one, which may be another after the restart."""
    at = data.draw(st.integers(0, len(batches) - 1))
    other = workload.query("other", window, x=sw.count())
    comes = data.draw(st.booleans())
    one, two = (workload, other) if comes else (other, workload)
    always = run(FakeStream(other, emit="changes", shards=1), batches)
    stream = FakeStream(one, emit="changes", shards=1)
    found = run(stream, batches[:at])
    stream = stream.again(two, emit="changes")
    found += run(stream, batches[at:])
    assert_same(*([[r for r in results if r.query != "other"] for results in each] for each in (found, always)))
    since = max((head["since"].get("other", -INFINITY) for head in stream.heads()), default=-INFINITY)
    if comes:
        kept = [[r for r in results if r.query == "other" and r.start >= since] for results in always]
        assert_same([[r for r in results if r.query == "other"] for results in found[at:]], kept[at:])


@some
@given(any_workloads(), micro_batches())
def test_a_row_without_event_time_fails_where_that_was_asked_for_and_nothing_is_lost(workload, batches):
    stream = FakeStream(workload, bad="fail")
    expected = run(FakeStream(workload), batches)
    found = []
    for batch in batches:
        poisoned = [*batch, [{**dict.fromkeys(TYPES), "t": None, "v": 7}]]
        with pytest.raises(DataError, match=r"a row has no event time that a window could hold.*'v': 7"):
            stream.batch(poisoned)
        found.append(stream.batch(batch))
    assert_same(found, expected)


@some
@given(any_workloads(), micro_batches())
def test_the_report_of_a_micro_batch_says_where_the_stream_stands(workload, batches):
    stream = FakeStream(workload, shards=2)
    latest = -INFINITY
    for batch in batches:
        done = len(stream.metrics)
        stream.batch(batch)
        latest = max([latest, *(row["t"] for row in rows_of([batch]))])
        for report in stream.metrics[done:]:
            assert report.watermark == latest - workload.watermark
    for head in stream.heads():
        assert head["watermark"] == latest - workload.watermark
    keys = {tuple(row[k] for k in workload.keys) for row in data_rows(workload, batches)}
    assert sum(report.keys for report in stream.metrics[-2:]) == (len(keys) if stream.metrics else 0)
