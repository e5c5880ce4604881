"""Options of the Kafka source: read by the names of Spark's own connector, and refused with what to do."""

from __future__ import annotations

import re

import pytest

import slicewise as sw
from slicewise.sources.kafka.offsets import EARLIEST, LATEST, TopicPartition
from slicewise.sources.kafka.options import Bound, read_options

HERE = {"kafka.bootstrap.servers": "host:9092"}
CLICKS = HERE | {"subscribe": "clicks"}
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_options_have_the_defaults_of_sparks_connector():
    stream, batch = read_options(CLICKS, stream=True), read_options(CLICKS, stream=False)
    assert (stream.start.everywhere, batch.start.everywhere, batch.end.everywhere) == (LATEST, EARLIEST, LATEST)
    assert (stream.fail_on_data_loss, stream.headers, stream.limit, stream.timeout) == (True, False, None, 120)
    assert stream.servers == "host:9092"


def test_names_may_be_in_any_case_and_what_begins_with_kafka_goes_to_the_client():
    options = read_options(
        HERE
        | {"SUBSCRIBE": "a, b,a", "startingoffsets": "EARLIEST", "kafka.security.protocol": "SASL_SSL"}
        | {"includeHeaders": "True", "maxOffsetsPerTrigger": "1000", "kafkaConsumer.pollTimeoutMs": "500"},
        stream=True,
    )
    assert options.subscription.topics == ("a", "b")
    assert options.client == {"bootstrap.servers": "host:9092", "security.protocol": "SASL_SSL"}
    assert (options.start.everywhere, options.headers, options.limit, options.timeout) == (EARLIEST, True, 1000, 0.5)


def test_partitions_are_assigned_and_offsets_given_for_each():
    options = read_options(
        HERE | {"assign": '{"t": [1, 0, 1]}', "startingOffsets": '{"t": {"0": 23, "1": -2}}'}, stream=True
    )
    assert options.subscription.assigned == (A, B)
    assert options.subscription.names() == ("t",)
    assert options.start.of([A, B]) == {A: 23, B: EARLIEST}


def test_the_most_precise_start_wins():
    times = {"startingTimestamp": "5", "startingOffsetsByTimestamp": '{"t": {"0": 7}}', "startingOffsets": "latest"}
    first = read_options(CLICKS | times, stream=True).start
    assert first == Bound("startingTimestamp", everywhere=5, is_time=True)
    del times["startingTimestamp"]
    assert read_options(CLICKS | times, stream=True).start.each == {A: 7}


ONE_OF = "give one of `subscribe`, `subscribePattern` and `assign`; got "
OFFSETS = 'JSON such as \'{"topic": {"0": 23, "1": -2}}\''
COUNT = "must be a positive integer; got "


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "a"}, '`kafka.bootstrap.servers` is missing; say where the brokers are: "host:9092"'),
        (HERE, f"{ONE_OF}none"),
        (HERE | {"subscribe": "a", "assign": "{}"}, f"{ONE_OF}`subscribe` and `assign`"),
        (HERE | {"subscribe": " ,"}, "`subscribe` must be topics such as \"clicks,views\"; got ' ,'"),
        (
            HERE | {"subscribePattern": "a("},
            "`subscribePattern` is not a pattern: missing ), unterminated subpattern at position 1; got 'a('",
        ),
        (HERE | {"assign": '{"t": 0}'}, "`assign` must be JSON such as '{\"topic\": [0, 1]}'; got '{\"t\": 0}'"),
        (HERE | {"assign": '{"t": [-1]}'}, "`assign` must be JSON such as '{\"topic\": [0, 1]}'; got '{\"t\": [-1]}'"),
        (CLICKS | {"topic": "a"}, "there is no option 'topic'; known: "),
        (CLICKS | {"startingOffset": "x"}, "there is no option 'startingoffset'; did you mean 'startingOffsets' or "),
        (
            CLICKS | {"startingOffsets": "first"},
            f'`startingOffsets` must be "earliest" or "latest", or {OFFSETS}; got \'first\'',
        ),
        (CLICKS | {"startingOffsets": '{"t": 3}'}, f"`startingOffsets` must be {OFFSETS}; got '{{\"t\": 3}}'"),
        (CLICKS | {"startingOffsets": '{"t": {"0": -3}}'}, f"`startingOffsets` must be {OFFSETS}; got "),
        (CLICKS | {"startingOffsets": '{"t": {"x": 3}}'}, f"`startingOffsets` must be {OFFSETS}; got "),
        (CLICKS | {"startingOffsets": '{"t": {"0": 1.5}}'}, f"`startingOffsets` must be {OFFSETS}; got "),
        (CLICKS | {"startingTimestamp": "now"}, f"`startingTimestamp` {COUNT}'now'"),
        (
            CLICKS | {"startingOffsetsByTimestamp": '{"t": {"0": -1}}'},
            '`startingOffsetsByTimestamp` must be JSON such as \'{"topic": {"0": 1700000000000}}\'; got ',
        ),
        (
            CLICKS | {"startingOffsetsByTimestampStrategy": "skip"},
            '`startingOffsetsByTimestampStrategy` must be "error" or "latest"; got \'skip\'',
        ),
        (CLICKS | {"failOnDataLoss": "no"}, '`failOnDataLoss` must be "true" or "false"; got \'no\''),
        (CLICKS | {"maxOffsetsPerTrigger": "0"}, f"`maxOffsetsPerTrigger` {COUNT}'0'"),
        (CLICKS | {"minPartitions": "-1"}, f"`minPartitions` {COUNT}'-1'"),
        (CLICKS | {"kafka.enable.auto.commit": "true"}, "`kafka.enable.auto.commit` cannot be set: offsets are kept "),
        (CLICKS | {"kafka.auto.offset.reset": "x"}, "`kafka.auto.offset.reset` cannot be set: say where to start with"),
        (CLICKS | {"endingOffsets": "latest"}, "`endingOffsets` is for batches, and this is a stream; leave it out"),
    ],
)
def test_wrong_options_of_a_stream_are_refused(options, message):
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}"):
        read_options(options, stream=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"maxOffsetsPerTrigger": "5"}, "`maxOffsetsPerTrigger` is for streams, and this is a batch; leave it out"),
        ({"startingOffsets": "latest"}, f"`startingOffsets` must be \"earliest\", or {OFFSETS}; got 'latest'"),
        ({"endingOffsets": "earliest"}, f"`endingOffsets` must be \"latest\", or {OFFSETS}; got 'earliest'"),
        (
            {"startingOffsets": '{"t": {"1": -1}}'},
            "`startingOffsets` cannot be the latest (-1) in a batch; got it for partition 1 of topic 't'",
        ),
        (
            {"endingOffsets": '{"t": {"1": -2}}'},
            "`endingOffsets` cannot be the earliest (-2) in a batch; got it for partition 1 of topic 't'",
        ),
    ],
)
def test_wrong_options_of_a_batch_are_refused(options, message):
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        read_options(CLICKS | options, stream=False)


@pytest.mark.parametrize("there", [[A], [A, B, TopicPartition("t", 2)]])
def test_offsets_must_be_given_for_exactly_the_partitions_that_are_read(there):
    message = (
        "`startingOffsets` must have every partition that is read and no other; "
        f"partition {1 if len(there) == 1 else 2} of topic 't' is in one of the two; "
        "-2 stands for the earliest offset, -1 for the latest"
    )
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        Bound("startingOffsets", each={A: 1, B: 2}).of(there)
