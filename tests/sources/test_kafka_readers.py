"""The readers that Spark calls, called as Spark calls them: nothing is lost or doubled, whatever happens in between."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

import slicewise as sw
from slicewise.sources.kafka import KafkaSource
from slicewise.sources.kafka import cluster as cluster_module
from slicewise.sources.kafka import source as source_module
from slicewise.sources.kafka.offsets import TopicPartition, without_marks
from slicewise.sources.kafka.options import read_options
from tests.sources.fake_kafka import FakeKafka

# Spark 4.0 and 4.1 ask for no limits; what they ask is tested on a newer one, below.
limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="Python sources have limits since Spark 4.2")
ReadAllAvailable, ReadMaxRows = limits.ReadAllAvailable, limits.ReadMaxRows

HERE = {"kafka.bootstrap.servers": "host:9092", "subscribe": "t"}


@pytest.fixture
def fake(monkeypatch):
    kafka = FakeKafka({"t": [{n: 1000 * n for n in range(10)}, dict.fromkeys(range(5), 0)]})
    monkeypatch.setattr(cluster_module, "client_library", lambda: kafka)
    return kafka


def stream_reader(**options):
    return KafkaSource(HERE | options).streamReader(StructType())


def rows_of(reader, partitions):
    """What workers read, who get a copy of the reader."""
    worker = pickle.loads(pickle.dumps(reader))
    rows = []
    for partition in pickle.loads(pickle.dumps(partitions)):
        rows += [
            (r["topic"], r["partition"], r["offset"]) for batch in worker.read(partition) for r in batch.to_pylist()
        ]
    return rows


def numbered(topic, partition, *offsets):
    return [(topic, partition, n) for n in range(*offsets)]


# -- streams


def test_stream_goes_from_offset_to_offset(fake):
    reader = stream_reader(startingOffsets="earliest")
    start = reader.initialOffset()
    assert without_marks(start) == {"t": {"0": 0, "1": 0}}
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    assert without_marks(end) == {"t": {"0": 10, "1": 5}}
    assert rows_of(reader, reader.partitions(start, end)) == numbered("t", 0, 10) + numbered("t", 1, 5)
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert reader.partitions(end, end) == []
    assert reader.reportLatestOffset() == without_marks(end)
    reader.commit(end)
    reader.stop()


def test_stream_starts_with_what_comes_unless_told_otherwise(fake):
    assert without_marks(stream_reader().initialOffset()) == {"t": {"0": 10, "1": 5}}


def test_limit_holds_unless_the_trigger_reads_all(fake):
    reader = stream_reader(startingOffsets="earliest", maxOffsetsPerTrigger="6")
    start = reader.initialOffset()
    assert reader.getDefaultReadLimit() == ReadMaxRows(6)
    assert without_marks(reader.latestOffset(start, ReadMaxRows(6))) == {"t": {"0": 4, "1": 2}}
    assert reader.reportLatestOffset() == {"t": {"0": 10, "1": 5}}
    assert without_marks(reader.latestOffset(start, ReadAllAvailable())) == {"t": {"0": 10, "1": 5}}


def test_available_now_ends_with_what_was_there(fake):
    reader = stream_reader(startingOffsets="earliest", maxOffsetsPerTrigger="4")
    reader.prepareForTriggerAvailableNow()
    here, rows = reader.initialOffset(), []
    fake.logs["t"][0][10] = 0
    fake.logs["t"].append({0: 0})
    for _ in range(10):
        end = reader.latestOffset(here, reader.getDefaultReadLimit())
        if end == here:
            break
        rows += rows_of(reader, reader.partitions(here, end))
        here = end
    assert sorted(rows) == numbered("t", 0, 10) + numbered("t", 1, 5)


def test_added_partitions_and_topics_are_read_from_their_beginning(fake):
    source = KafkaSource({"kafka.bootstrap.servers": "host:9092", "subscribePattern": "t.*"})
    reader = source.streamReader(StructType())
    start = reader.initialOffset()
    fake.logs["t"].append({0: 0, 1: 0})
    fake.logs["t2"] = [{0: 0}]
    end = reader.latestOffset(start, ReadAllAvailable())
    assert rows_of(reader, reader.partitions(start, end)) == numbered("t", 2, 2) + numbered("t2", 0, 1)


def test_added_partition_whose_beginning_is_gone_is_a_loss(fake):
    fake.logs["t"].append({3: 0, 4: 0})
    start = {"t": {"0": 10, "1": 5}}
    careful, careless = stream_reader(), stream_reader(failOnDataLoss="false")
    end = careful.latestOffset(start, ReadAllAvailable())
    with pytest.raises(sw.DataError, match=r"^offset 0 of partition 2 of topic 't' is not there, it begins at 3: "):
        rows_of(careful, careful.partitions(start, end))
    assert rows_of(careless, careless.partitions(start, end)) == numbered("t", 2, 3, 5)


@pytest.mark.parametrize(
    ("logs", "message", "rows"),
    [
        ([dict.fromkeys(range(10), 0)], "partition 1 of topic 't' is gone", []),
        (None, "partition 0 of topic 't' is gone", []),
        (
            [dict.fromkeys(range(3), 0), dict.fromkeys(range(6), 0)],
            "partition 0 of topic 't' was read up to offset 10 and now ends at 3",
            [*numbered("t", 0, 3), *numbered("t", 1, 5, 6)],
        ),
    ],
    ids=["partition", "topic", "made anew"],
)
def test_what_is_gone_stops_the_stream_unless_told_otherwise(fake, logs, message, rows):
    start = {"t": {"0": 10, "1": 5}}
    fake.logs = {} if logs is None else {"t": logs}
    careful, careless = stream_reader(), stream_reader(failOnDataLoss="false")
    end = careful.latestOffset(start, ReadAllAvailable())
    whole = (
        f"{message}: messages may be lost; start with a new checkpoint, or go on without them with "
        '`failOnDataLoss` "false"'
    )
    with pytest.raises(sw.DataError, match=f"^{re.escape(whole)}$"):
        careful.partitions(start, end)
    assert rows_of(careless, careless.partitions(start, end)) == rows


def test_more_tasks_than_partitions_read_the_same(fake):
    reader = stream_reader(minPartitions="7")
    parts = reader.partitions({"t": {"0": 0, "1": 0}}, {"t": {"0": 10, "1": 5}})
    assert len(parts) == 7
    assert sorted(rows_of(reader, parts)) == numbered("t", 0, 10) + numbered("t", 1, 5)


@given(st.data())
def test_crashes_lose_and_double_nothing(data):
    """Spark notes the end of a micro-batch, runs it and notes that it is done; it dies between any two of these.

    Where the first micro-batch starts it does not note, and asks again.
    """
    kafka = FakeKafka({"t": [{0: 0}]})
    steps = data.draw(st.lists(st.sampled_from(["add", "partition", "plan", "done", "crash"]), max_size=25))
    limit = data.draw(st.sampled_from([None, 1, 3]))
    options = {"startingOffsets": data.draw(st.sampled_from(["earliest", "latest"]))}
    options |= {"maxOffsetsPerTrigger": str(limit)} if limit else {}
    ends, done, committed, promised, reader = [], 0, [], {}, None

    def start():
        return json.loads(ends[done - 1]) if done else json.loads(json.dumps(reader.initialOffset()))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_module, "client_library", lambda: kafka)
        for step in [*steps, "crash", "done", *["plan", "done"] * 60]:
            reader = reader or stream_reader(**options)
            if step == "add":
                log = data.draw(st.sampled_from(kafka.logs["t"]))
                first = max(log, default=-1) + 1
                log.update(dict.fromkeys(range(first, first + data.draw(st.integers(1, 5))), 0))
            elif step == "partition":
                kafka.logs["t"].append({0: 0})
            elif step == "plan" and done == len(ends):
                here = start()
                # From when the first micro-batch is noted, every message from its start on is promised.
                promised = promised or without_marks(here)
                if not ends and data.draw(st.booleans()):
                    kafka.logs["t"][0][max(kafka.logs["t"][0]) + 1] = 0  # comes in just between
                end = json.dumps(reader.latestOffset(here, reader.getDefaultReadLimit()))
                ends += [end] if not ends or end != ends[-1] else []
            elif step == "done" and done < len(ends):
                committed += rows_of(reader, reader.partitions(start(), json.loads(ends[done])))
                done += 1
            elif step == "crash":
                if done < len(ends):  # in the middle of a micro-batch, whose output is then written again
                    reader.partitions(start(), json.loads(ends[done]))
                reader = None
    whole = [("t", p, n) for p, log in enumerate(kafka.logs["t"]) for n in sorted(log)]
    assert sorted(committed) == [(t, p, n) for t, p, n in whole if n >= promised["t"].get(str(p), 0)]


def test_offsets_of_a_checkpoint_start_a_new_stream(fake):
    reader = stream_reader(startingOffsets="earliest")
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    fake.logs["t"][0][10] = 0
    options = read_options(HERE | {"startingOffsets": json.dumps(end)}, stream=True)
    assert options.start.each == {TopicPartition("t", 0): 10, TopicPartition("t", 1): 5}


# -- batches


def batch(**options):
    reader = KafkaSource(HERE | options).reader(StructType())
    return sorted(rows_of(reader, reader.partitions()))


def test_batch_reads_everything_or_what_lies_between(fake):
    assert batch() == numbered("t", 0, 10) + numbered("t", 1, 5)
    between = {"startingOffsets": '{"t": {"0": 3, "1": -2}}', "endingOffsets": '{"t": {"0": 7, "1": -1}}'}
    assert batch(**between) == numbered("t", 0, 3, 7) + numbered("t", 1, 5)
    between = {"startingTimestamp": "4000", "startingOffsetsByTimestampStrategy": "latest", "endingTimestamp": "6500"}
    assert batch(**between) == numbered("t", 0, 4, 7)
    assert len(KafkaSource(HERE | {"minPartitions": "4"}).reader(StructType()).partitions()) == 4


def test_batch_that_ends_before_it_starts_is_refused(fake):
    message = "`startingOffsets` of partition 0 of topic 't' is 8, and reading ends at 2; start before the end"
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        batch(startingOffsets='{"t": {"0": 8, "1": 0}}', endingOffsets='{"t": {"0": 2, "1": 0}}')


def test_batch_between_times_that_do_not_grow_with_offsets_is_empty(fake):
    fake.logs["t"] = [{0: 9000, 1: 9000, 2: 1000, 3: 5000}]
    assert batch(startingTimestamp="5000", endingTimestamp="9000") == []
    fake.logs["t"] = [{0: 1000, 1: 9000, 2: 5000, 3: 8000}]
    assert batch(startingOffsets='{"t": {"0": 3}}', endingTimestamp="9000") == []


def test_empty_batch_has_no_rows(fake):
    fake.logs["t"] = [{}]
    assert batch() == []
    # Spark reads a batch without partitions as one partition of nothing.
    from pyspark.sql.datasource import InputPartition

    assert list(KafkaSource(HERE).reader(StructType()).read(InputPartition(None))) == []


# -- the source


def test_wrong_options_are_found_when_the_schema_is_asked_for(fake):
    assert "headers" in KafkaSource(HERE | {"includeHeaders": "true"}).schema()
    assert "headers" not in KafkaSource(HERE | {"endingOffsets": "latest"}).schema()
    with pytest.raises(sw.QueryError, match="there is no option 'topic'"):
        KafkaSource(HERE | {"topic": "t"}).schema()


@pytest.fixture
def before_4_2(monkeypatch):
    """The module as Spark 4.0 and 4.1 have it, where Python sources have neither limits nor ``availableNow``."""
    monkeypatch.setitem(sys.modules, "pyspark.sql.streaming.datasource", None)
    spec = importlib.util.spec_from_file_location("source_before_4_2", source_module.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.pyspark, "__version__", "4.1.4")
    return module.KafkaSource


def test_older_spark_reads_all_that_is_there(fake, before_4_2):
    reader = before_4_2(HERE | {"startingOffsets": "earliest"}).streamReader(StructType())
    start, end = reader.initialOffset(), reader.latestOffset()
    assert without_marks(end) == {"t": {"0": 10, "1": 5}}
    assert len(reader.partitions(start, end)) == 2
    # A first micro-batch that is repeated, after more has come, starts where it started.
    fake.logs["t"][0][10] = 0
    again = before_4_2(HERE).streamReader(StructType())
    assert len(again.partitions(again.initialOffset(), end)) == 2


def test_limit_is_refused_where_spark_cannot_ask_for_less(fake, before_4_2):
    message = (
        "`maxOffsetsPerTrigger` needs Spark 4.2 or newer, where Python sources can be asked for less; got 4.1.4; "
        "leave it out"
    )
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        before_4_2(HERE | {"maxOffsetsPerTrigger": "5"}).streamReader(StructType())


def test_partition_says_what_it_is():
    assert str(TopicPartition("t", 3)) == "partition 3 of topic 't'"
