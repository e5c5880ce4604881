"""What is asked of brokers: the mock cluster where it can answer, a fake client where it cannot."""

from __future__ import annotations

import builtins
import re

import pytest

import slicewise as sw
from slicewise.sources.kafka import cluster as cluster_module
from slicewise.sources.kafka.cluster import Cluster, client_library
from slicewise.sources.kafka.offsets import EARLIEST, LATEST, Range, TopicPartition
from slicewise.sources.kafka.options import read_options
from slicewise.sources.kafka.rows import to_arrow
from tests.sources.brokers import PARTITIONS
from tests.sources.fake_kafka import FakeKafka, KafkaError, Message

HERE = {"kafka.bootstrap.servers": "host:9092", "subscribe": "t"}
AT = TopicPartition("t", 0)


def opened(options, *, stream=True):
    return Cluster(read_options(options, stream=stream))


def read(cluster, *wanted):
    return [m.offset() for messages in cluster.messages(Range(*wanted)) for m in messages]


@pytest.fixture
def fake(monkeypatch):
    kafka = FakeKafka({"t": [{n: 1000 * n for n in range(10)}]})
    monkeypatch.setattr(cluster_module, "client_library", lambda: kafka)
    monkeypatch.setattr(cluster_module, "_POLL_SECONDS", 0.001)
    return kafka


# -- the protocol


def test_partitions_offsets_and_messages_of_a_topic(brokers):
    brokers.add("plain", [{"value": str(n), "partition": n % 2} for n in range(2500)])
    cluster = opened(brokers.options(subscribe="plain"))
    there = cluster.partitions(read_options(brokers.options(subscribe="plain"), stream=True).subscription)
    assert there == [TopicPartition("plain", n) for n in range(PARTITIONS)]
    assert cluster.offsets(dict.fromkeys(there, LATEST)) == dict(zip(there, [1250, 1250, 0, 0], strict=True))
    assert cluster.offsets(dict.fromkeys(there, EARLIEST)) == dict.fromkeys(there, 0)
    # More than is taken at once, and less; an end in the middle and at the end.
    assert read(cluster, there[0], 0, 1250) == list(range(1250))
    assert read(cluster, there[1], 7, 9) == [7, 8]
    assert read(cluster, there[1], 1249, 1250) == [1249]
    cluster.close()


def test_pattern_must_match_the_whole_name(brokers):
    brokers.add("match-1", [{"value": "x"}])
    brokers.add("no-match-1", [{"value": "x"}])
    options = read_options(brokers.options(subscribePattern="match-.*"), stream=True)
    cluster = Cluster(options)
    assert {at.topic for at in cluster.partitions(options.subscription)} == {"match-1"}
    cluster.close()


def test_columns_are_those_of_sparks_connector(brokers):
    message = {"key": b"k", "value": None, "partition": 1, "timestamp": 1_700_000_000_123}
    brokers.add("rows", [message | {"headers": [("a", b"1"), ("b", None)]}, message])
    cluster = opened(brokers.options(subscribe="rows"))
    (messages,) = cluster.messages(Range(TopicPartition("rows", 1), 0, 2))
    rows = to_arrow(messages, headers=True)
    cluster.close()
    assert rows.column("timestamp").cast("int64").to_pylist() == [1_700_000_000_123_000] * 2
    first, second = rows.drop_columns(["timestamp"]).to_pylist()
    assert first.pop("headers") == [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]
    assert first == {"key": b"k", "value": None, "topic": "rows", "partition": 1, "offset": 0, "timestampType": 0}
    assert second["headers"] is None
    assert "headers" not in to_arrow(messages, headers=False).schema.names


def test_timestamp_that_does_not_fit_is_null():
    stamps = [(1, 2**62), (0, -1), (2, 5)]
    rows = to_arrow([Message(n, stamp=stamp) for n, stamp in enumerate(stamps)], headers=False)
    assert rows.column("timestampType").to_pylist() == [0, -1, 1]
    assert rows.column("timestamp").cast("int64").to_pylist() == [None, -1000, 5000]


@pytest.mark.slow
def test_removed_messages_are_an_error_or_left_out(brokers):
    # The mock keeps 5 MB of a partition.
    brokers.add("large", [{"value": bytes(500_000), "partition": 0} for _ in range(20)])
    at = TopicPartition("large", 0)
    careful, careless = (
        opened(brokers.options(subscribe="large", failOnDataLoss=fail, **{"kafka.fetch.message.max.bytes": 10**7}))
        for fail in ("true", "false")
    )
    first = careful.offsets({at: EARLIEST})[at]
    assert 0 < first < 20
    message = (
        f"offset 0 of partition 0 of topic 'large' is not there, it begins at {first}: messages may be lost; start "
        'with a new checkpoint, or go on without them with `failOnDataLoss` "false"'
    )
    with pytest.raises(sw.DataError, match=f"^{re.escape(message)}$"):
        read(careful, at, 0, 20)
    assert read(careless, at, 0, 20) == list(range(first, 20))
    assert read(careless, at, 0, first) == []
    assert read(careless, at, 30, 40) == []  # the topic was made anew, and is shorter
    careful.close()
    careless.close()


def test_topic_that_is_not_there_is_refused(brokers):
    brokers.add("clicks", [{"value": "x"}])
    options = read_options(brokers.options(subscribe="click"), stream=True)
    cluster = Cluster(options)
    message = f"there is no topic 'click' at {brokers.servers!r}; did you mean 'clicks'?"
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        cluster.check(options.subscription)
    assert cluster.partitions(options.subscription) == []
    options = read_options(brokers.options(assign='{"clicks": [0, 7]}'), stream=True)
    message = f"there is no partition 7 of topic 'clicks'; it has {PARTITIONS}, numbered from 0"
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        cluster.check(options.subscription)
    assert cluster.partitions(options.subscription) == [TopicPartition("clicks", 0)]
    cluster.close()


def test_brokers_that_are_not_there():
    cluster = opened(HERE | {"kafka.bootstrap.servers": "127.0.0.1:1", "kafkaConsumer.pollTimeoutMs": "300"})
    message = (
        "no answer from Kafka at '127.0.0.1:1' within 0.3 seconds: Failed to get metadata: Local: Broker transport "
        "failure; check `kafka.bootstrap.servers` and the security settings in `kafka.*`"
    )
    with pytest.raises(sw.SlicewiseError, match=f"^{re.escape(message)}$"):
        cluster.partitions(read_options(HERE, stream=True).subscription)
    cluster.close()


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nonsense", 'No such configuration property: "nonsense"'),
        ("fetch.min.bytes", 'Invalid value for configuration property "fetch.min.bytes"'),
        ("sasl.jaas.config", "Java JAAS configuration is not supported, see "),
        ("ssl.truststore.location", "Java TrustStores are not supported, use `ssl.ca.location` and "),
    ],
)
def test_properties_that_the_client_does_not_know(name, reason):
    with pytest.raises(sw.QueryError) as refused:
        opened(HERE | {f"kafka.{name}": "x"})
    assert str(refused.value).startswith(f"the Kafka client refuses `kafka.*`: {reason}")
    assert str(refused.value).endswith(
        "properties are those of librdkafka, not of the Java client: `kafka.sasl.username` and `kafka.sasl.password` "
        "instead of a JAAS configuration, `kafka.ssl.ca.location` instead of a trust store"
    )


def test_security_goes_to_the_client_in_the_spelling_of_spark():
    secure = {"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "PLAIN"}
    opened(HERE | secure | {"kafka.sasl.username": "me", "kafka.sasl.password": "secret"}).close()


def test_missing_package_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *arguments):
        if name == "confluent_kafka":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    message = "the Kafka source needs confluent-kafka, which is not installed; pip install 'slicewise[kafka]'"
    with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
        client_library()


# -- what the mock does not have


def test_offsets_without_messages_are_passed_over(fake):
    fake.logs["t"] = [dict.fromkeys((3, 4, 9, 17, 30), 0)]  # compacted
    cluster = opened(HERE)
    assert read(cluster, AT, 3, 31) == [3, 4, 9, 17, 30]
    assert read(cluster, AT, 4, 10) == [4, 9]
    assert read(cluster, AT, 10, 17) == []
    fake.logs["t"] = [dict.fromkeys(range(5), 0) | {20: 0}]
    fake.logs["t"][0].pop(20)  # the marker of a transaction at the end has an offset and no message
    assert read(cluster, AT, 2, 5) == [2, 3, 4]


def test_errors_that_pass_are_waited_for(fake):
    fake.answers = [KafkaError("_TRANSPORT"), KafkaError("LEADER_NOT_AVAILABLE", retriable=True)]
    cluster = opened(HERE)
    assert cluster.partitions(read_options(HERE, stream=True).subscription) == [AT]
    fake.events = [KafkaError("_ALL_BROKERS_DOWN"), KafkaError("_TRANSPORT")]
    assert read(cluster, AT, 8, 10) == [8, 9]


def test_errors_that_stay_are_raised_at_once(fake):
    cluster = opened(HERE)
    fake.events = [KafkaError("TOPIC_AUTHORIZATION_FAILED")]
    with pytest.raises(sw.SlicewiseError, match=r"^partition 0 of topic 't' cannot be read: Fake: TOPIC_AUTHORIZATION"):
        read(cluster, AT, 0, 5)
    fake.answers = [KafkaError("_AUTHENTICATION")]
    with pytest.raises(
        sw.SlicewiseError, match=r"^no answer from Kafka at 'host:9092' .*: Fake: _AUTHENTICATION; check"
    ):
        cluster.partitions(read_options(HERE, stream=True).subscription)


def test_partition_that_goes_before_it_is_read(fake):
    assert read(opened(HERE | {"failOnDataLoss": "false"}), TopicPartition("t", 1), 0, 5) == []
    with pytest.raises(sw.DataError, match=r"^partition 1 of topic 't' is gone: messages may be lost; start with "):
        read(opened(HERE), TopicPartition("t", 1), 0, 5)


def test_messages_that_do_not_come(fake):
    cluster = opened(HERE | {"kafkaConsumer.pollTimeoutMs": "50"})
    fake.events = [KafkaError("_TRANSPORT")] * 10**6
    message = (
        "no message of partition 0 of topic 't' from offset 5 came within 0.05 seconds; is the broker there? "
        "`kafkaConsumer.pollTimeoutMs` waits longer"
    )
    with pytest.raises(sw.DataError, match=f"^{re.escape(message)}$"):
        read(cluster, AT, 5, 6)


def test_times_become_offsets(fake):
    options = read_options(HERE | {"startingTimestamp": "3500"}, stream=True)
    assert Cluster(options).resolve(options.start, [AT]) == {AT: 4}
    each = {"startingOffsetsByTimestamp": '{"t": {"0": 3000}}', "endingTimestamp": "99000"}
    options = read_options(HERE | each, stream=False)
    assert Cluster(options).resolve(options.start, [AT]) == {AT: 3}
    assert Cluster(options).resolve(options.end, [AT]) == {AT: 10}  # no message as late: to the end


def test_start_after_all_messages_is_refused_or_the_latest(fake):
    late = HERE | {"startingTimestamp": "99000"}
    options = read_options(late, stream=True)
    message = (
        "partition 0 of topic 't' has no message at or after the time 99000 of `startingTimestamp`; "
        '`startingOffsetsByTimestampStrategy` "latest" starts there with new messages'
    )
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        Cluster(options).resolve(options.start, [AT])
    options = read_options(late | {"startingOffsetsByTimestampStrategy": "latest"}, stream=True)
    assert Cluster(options).resolve(options.start, [AT]) == {AT: 10}


def test_earliest_and_latest_may_stand_among_offsets(fake):
    fake.logs["t"] = [{2: 0, 3: 0}, {0: 0}, {5: 0}]
    options = read_options(HERE | {"startingOffsets": '{"t": {"0": -2, "1": -1, "2": 7}}'}, stream=True)
    there = [TopicPartition("t", n) for n in range(3)]
    assert list(Cluster(options).resolve(options.start, there).values()) == [2, 1, 7]
