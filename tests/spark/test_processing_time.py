"""Processing time on streams: the time of the micro-batch, which is kept with its offsets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import QueryError
from slicewise.plan.plan import VALUES
from slicewise.testing import Oracle
from tests.profiles import fewer
from tests.slicing.running import assert_same, key_of
from tests.slicing.strategies import EveryThird, rows
from tests.spark.stream_fake import Crash, FakeStream, Workers
from tests.spark.stream_running import Folder, table_of


class Clock:
    """Shows what it is told to."""

    now = 0

    def __call__(self) -> int:
        return self.now


def base(keys=("k",), **parameters):
    return sw.Workload(time=sw.processing_time(parameters.pop("clock", None)), keys=keys, **parameters)


SLICED = [
    ("tens", sw.tumbling("10 seconds"), {"s": sw.sum("v"), "n": sw.count()}),
    ("slide", sw.sliding("9 seconds", every="4 seconds"), {"most": sw.max("v")}),
    ("visit", sw.session("3 seconds"), {"n": sw.count()}),
]
TIMED = [("ends", sw.tumbling("7 seconds"), {"first": sw.first("w"), "last": sw.last("w")})]
IN_ORDER = [
    ("pairs", sw.tumbling(sw.rows(2)), {"n": sw.count(), "s": sw.sum("v")}),
    ("laps", sw.punctuated("v > 2"), {"n": sw.count()}),
    ("user", sw.user_defined(EveryThird), {"n": sw.count()}),
    ("recent", sw.sliding(sw.rows(2), every="5 seconds"), {"all": sw.concat("w")}),
]


def with_queries(workload, queries):
    for name, window, aggregates in queries:
        workload = workload.query(name, window, **aggregates)
    return workload


batches = st.lists(
    st.tuples(st.integers(0, 40), st.lists(st.lists(rows(), max_size=4), min_size=1, max_size=2)), max_size=6
)
kinds = st.sampled_from([SLICED, SLICED + TIMED, IN_ORDER, SLICED + TIMED + IN_ORDER])


@fewer(6, least=8)
@given(kinds, st.sampled_from([None, "w = 'c'"]), batches, st.integers(1, 3), st.integers(0, 1), st.data())
def test_every_micro_batch_gives_what_is_defined_and_so_does_one_that_is_repeated(
    queries, punctuation, given_batches, shards, workers, data
):
    """The clock may go back from one micro-batch to the next; time stands still then."""
    workload = with_queries(base(punctuation=punctuation), queries)
    clock = Clock()
    oracle = Oracle(with_queries(base(punctuation=punctuation, clock=clock), queries), ties=VALUES)
    stream = FakeStream(workload, shards=shards, workers=Workers(workers))
    for second, partitions in given_batches:
        stream.now, clock.now = 1000 * second, 1_000_000 * second
        came = [row for part in partitions for row in part]
        if not came:
            continue
        oracle.process_batch([(None, row, key_of(workload, row)) for row in came])
        expected = oracle.advance()
        if data.draw(st.booleans()):
            try:
                stream.batch(partitions, crash=(data.draw(st.integers(0, 2)), data.draw(st.integers(0, 2))))
            except Crash:
                pass
            else:
                continue  # nothing went down: the micro-batch is done
        if data.draw(st.booleans()):
            now, stream = stream.now, stream.again()
            stream.now = now
        assert_same([stream.batch(partitions)], [expected])
    assert sum(report.late for report in stream.metrics) == 0


def result(r):
    return r.key, r.start // 1_000_000, r.values["n"]


def row(k):
    return {"k": k, "v": 1, "w": "a"}


def test_windows_that_have_ended_come_with_the_next_micro_batch_or_when_the_stream_is_silent():
    workload = base().query("tens", sw.tumbling("10 seconds"), n=sw.count())
    stream = FakeStream(workload, idle="5 seconds")
    stream.now = 1_000
    assert stream.batch([[row("a")]]) == []
    stream.now = 12_000
    assert list(map(result, stream.batch([[row("b")]]))) == [(("a",), 0, 1)]
    assert stream.tick(4_000) == []  # no silence yet
    assert list(map(result, stream.tick(4_000))) == [(("b",), 10, 1)]
    stream.now = 3_000  # set back: the row stands where the clock had come to
    assert stream.batch([[row("a")]]) == []
    stream.now = 31_000
    assert list(map(result, stream.batch([[row("a")]]))) == [(("a",), 20, 1)]
    assert sum(report.late for report in stream.metrics) == 0


def test_with_emit_changes_a_window_is_reported_while_it_is_open():
    stream = FakeStream(base().query("tens", sw.tumbling("10 seconds"), n=sw.count()), emit="changes")
    stream.now = 1_000
    assert [(r.change, *result(r)) for r in stream.batch([[row("a")]])] == [("insert", ("a",), 0, 1)]
    stream.now = 500
    assert [(r.change, *result(r)) for r in stream.batch([[row("a")]])] == [("update", ("a",), 0, 2)]


# -- on Spark


def in_order(table):
    return sorted(map(str, table.to_pylist()))


@pytest.mark.streams
def test_a_stream_takes_the_time_of_its_micro_batches_and_repeats_it(spark, tmp_path):
    """What each micro-batch reported is computed again from the times in the offset log."""
    queries = [
        ("short", sw.tumbling("20 milliseconds"), {"n": sw.count(), "s": sw.sum("v")}),
        ("pairs", sw.tumbling(sw.rows(2)), {"n": sw.count(), "s": sw.sum("v")}),
        ("ends", sw.sliding("30 milliseconds", every="10 milliseconds"), {"last": sw.last("v")}),
    ]
    workload = with_queries(base(), queries)
    folder = Folder(tmp_path)
    files = [[(0, "a", 1), (9, "b", 2)], [(5, "a", 3)], [(1, "a", 4), (None, "b", 5)], [(2, "b", 6)]]
    for rows_of_file in files:
        folder.add(table_of(rows_of_file))
    first = folder.run(spark, workload)
    Path(folder.checkpoint, "commits", "3").unlink()
    Path(folder.checkpoint, "commits", ".3.crc").unlink(missing_ok=True)
    files.append([(3, "a", 7)])
    folder.add(table_of(files[-1]))
    second = folder.run(spark, workload)
    assert in_order(second.tables[3]) == in_order(first.tables[3]) != []
    tables = {**first.tables, **second.tables}
    clock = Clock()
    oracle = Oracle(with_queries(base(clock=clock), queries), ties=VALUES)
    for number, rows_of_file in enumerate(files):
        lines = Path(folder.checkpoint, "offsets", str(number)).read_text().splitlines()
        clock.now = 1000 * json.loads(lines[1])["batchTimestampMs"]
        oracle.process_batch([(None, {"k": k, "v": v}, (k,)) for _, k, v in rows_of_file])
        expected = sorted((r.query, r.key[0], r.change, *map(str, r.values.values())) for r in oracle.advance())
        found = [
            (r["query"], r["k"], r["change"], *(str(r[name]) for name in workload.named(r["query"]).aggregates))
            for r in tables[number].to_pylist()
        ]
        assert sorted(found) == expected, number
        windows = [r["window"]["start"].timestamp() * 1000 for r in tables[number].to_pylist() if r["query"] == "short"]
        assert all(start <= clock.now / 1000 for start in windows)
    assert sum(table.num_rows for table in tables.values()) > 6


@pytest.mark.streams
def test_what_has_no_answer_on_spark_is_refused(spark, tmp_path):
    workload = base(keys=()).query("q", sw.tumbling("1 second"), n=sw.count())
    with pytest.raises(
        QueryError, match=r"^processing_time\(\) is not for batches: a batch has no clock that a second"
    ):
        workload.run(spark.range(3))
    folder = Folder(tmp_path)
    timed = base(keys=(), clock=Clock()).query("q", sw.tumbling("1 second"), n=sw.count())
    with pytest.raises(QueryError, match=r"^on Spark the clock is that of the micro-batch.*; leave `clock` out$"):
        timed.run(folder.rows(spark))
    with pytest.raises(QueryError, match=r"^`ordered` is about event time"):
        workload.run(folder.rows(spark), ordered=True)
    told = sw.Workload("ts", watermark_from="v").query("q", sw.tumbling("1 second"), n=sw.count())
    with pytest.raises(QueryError, match=r"^`watermark_from` is not for streams: Spark does not say in which order"):
        told.run(folder.rows(spark))
    rows_with_marks = spark.createDataFrame([(1, None), (2, None), (None, 7)], "t int, wm int")
    told = sw.Workload("t", watermark_from="wm").query("q", sw.tumbling(10), n=sw.count())
    assert [r["n"] for r in told.run(rows_with_marks).collect()] == [2]
    assert told.run(rows_with_marks, late="collect").where("change = 'late'").count() == 0
