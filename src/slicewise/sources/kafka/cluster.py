"""Cluster: what is asked of Kafka's brokers, through a consumer of confluent-kafka that joins no group."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from slicewise.errors import DataError, MissingPackageError, QueryError, SetupError, did_you_mean
from slicewise.sources.kafka.offsets import EARLIEST, LATEST, Range, TopicPartition
from slicewise.sources.kafka.options import Bound, Options, Subscription

__all__ = ["Cluster", "client_library", "lost"]

_T = TypeVar("_T")
#: What is read at once. More would be no faster, and messages may be large.
_MESSAGES = 1000
_POLL_SECONDS = 0.2
#: How long brokers may take to say which partitions there are, at most.
_ANSWER_SECONDS = 30.0
#: librdkafka reads committed messages alone by default, the Java client of Spark's connector all: this one too.
_DEFAULTS = {"group.id": "slicewise", "isolation.level": "read_uncommitted", "log_level": "2"}
_FIXED = {
    "auto.offset.reset": "error",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
}
#: Errors of a broker that may be back in a moment, besides those that the client says may be tried again.
_PASSING = ("_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_UNKNOWN_PARTITION")
_JAVA = (
    "properties are those of librdkafka, not of the Java client: `kafka.sasl.username` and `kafka.sasl.password` "
    "instead of a JAAS configuration, `kafka.ssl.ca.location` instead of a trust store"
)


def client_library() -> Any:
    """The package confluent-kafka, or the error that says how to install it."""
    try:
        import confluent_kafka
    except ImportError as e:
        raise MissingPackageError(
            "the Kafka source needs confluent-kafka, which is not installed; pip install 'slicewise[kafka]'"
        ) from e
    return confluent_kafka


class Cluster:
    """The brokers of one read. A connection is made when it is first needed; ``close`` ends it.

    Parameters
    ----------
    options
        What to read, and how to reach the brokers.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._kafka = client_library()
        try:
            self._consumer = self._kafka.Consumer({**_DEFAULTS, **options.client, **_FIXED})
        except self._kafka.KafkaException as e:
            raise QueryError(f"the Kafka client refuses `kafka.*`: {e.args[0].str()}; {_JAVA}") from e

    def close(self) -> None:
        """End the connection."""
        self._consumer.close()

    # -- what there is

    def partitions(self, subscription: Subscription) -> list[TopicPartition]:
        """The partitions of a subscription that exist, in order."""
        if subscription.pattern is not None:
            names = [name for name in self._topics() if re.fullmatch(subscription.pattern, name)]
        else:
            names = list(subscription.names())
        there = {at for name in names for at in self._partitions(name)}
        return sorted(there & set(subscription.assigned) if subscription.assigned else there)

    def check(self, subscription: Subscription) -> None:
        """Refuse a topic or a partition that is named and is not there."""
        for name in subscription.names():
            there = self._partitions(name)
            if not there:
                raise QueryError(
                    f"there is no topic {name!r} at {self._options.servers!r}; {did_you_mean(name, self._topics())}"
                )
            for at in subscription.assigned:
                if at.topic == name and at not in there:
                    raise QueryError(f"there is no {at}; it has {len(there)}, numbered from 0", parameter="assign")

    def _topics(self) -> list[str]:
        return sorted(self._ask(lambda seconds: self._consumer.list_topics(timeout=seconds)).topics)

    def _partitions(self, name: str) -> list[TopicPartition]:
        topic = self._ask(lambda seconds: self._consumer.list_topics(name, timeout=seconds)).topics[name]
        if topic.error is not None and topic.error.name() == "UNKNOWN_TOPIC_OR_PART":
            return []
        if topic.error is not None:
            raise SetupError(f"topic {name!r} cannot be read: {topic.error.str()}")
        return [TopicPartition(name, number) for number in topic.partitions]

    # -- offsets

    def resolve(self, bound: Bound, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Offsets for a start or an end that may be given as earliest, as latest, or as times."""
        asked = bound.of(partitions)
        if bound.is_time:
            return self._at_times(bound, asked)
        unknown = {at: offset for at, offset in asked.items() if offset < 0}
        return asked | self.offsets(unknown)

    def _at_times(self, bound: Bound, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        offsets = self.offsets(times)
        later = [at for at, offset in offsets.items() if offset < 0]
        if later and bound.option.startswith("starting") and not self._options.latest_if_no_match:
            raise QueryError(
                f"{later[0]} has no message at or after the time {times[later[0]]} of `{bound.option}`; "
                '`startingOffsetsByTimestampStrategy` "latest" starts there with new messages'
            )
        return offsets | self.offsets(dict.fromkeys(later, LATEST))

    def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset at or after a time in milliseconds, -1 if there is none; ``EARLIEST`` and ``LATEST`` too."""
        if not times:
            return {}
        asked = [self._kafka.TopicPartition(*at, time) for at, time in times.items()]
        answers = self._ask(lambda seconds: self._consumer.offsets_for_times(asked, timeout=seconds))
        for answer in answers:
            if answer.error is not None:
                raise SetupError(f"the offsets of topic {answer.topic!r} cannot be read: {answer.error.str()}")
        return {TopicPartition(answer.topic, answer.partition): answer.offset for answer in answers}

    def _ask(self, call: Callable[[float], _T]) -> _T:
        """What brokers answer; one that is just away may come back."""
        patience = min(self._options.timeout, _ANSWER_SECONDS)
        deadline = time.monotonic() + patience
        while True:
            try:
                return call(max(deadline - time.monotonic(), 0.1))
            except self._kafka.KafkaException as e:
                if time.monotonic() >= deadline or not _may_pass(e.args[0]):
                    raise SetupError(
                        f"no answer from Kafka at {self._options.servers!r} within {patience:g} seconds: "
                        f"{e.args[0].str()}; check `kafka.bootstrap.servers` and the security settings in `kafka.*`"
                    ) from e
                time.sleep(_POLL_SECONDS)

    # -- messages

    def messages(self, wanted: Range) -> Iterator[list[Any]]:
        """The messages of a range in order, in lists; those that Kafka has removed are an error or left out."""
        at, start, end = wanted
        # The client looks for the leader of a topic that it does not know about once a second.
        if at not in self._partitions(at.topic):
            self._lose(f"{at} is gone")
            return
        self._consumer.assign([self._kafka.TopicPartition(*at, start)])
        deadline = time.monotonic() + self._options.timeout
        while start < end:
            taken = self._consumer.consume(min(_MESSAGES, end - start), timeout=_POLL_SECONDS)
            read = [message for message in taken if message.error() is None and start <= message.offset() < end]
            if read:
                yield read
                deadline = time.monotonic() + self._options.timeout
            start = self._next(wanted, start, taken)
            if time.monotonic() >= deadline:
                raise DataError(
                    f"no message of {at} from offset {start} came within {self._options.timeout:g} seconds; "
                    f"is the broker there? `kafkaConsumer.pollTimeoutMs` waits longer"
                )

    def _next(self, wanted: Range, start: int, taken: list[Any]) -> int:
        """The offset to go on from, after what a poll has given: messages, the end of the partition, errors."""
        for message in taken:
            error = message.error()
            if error is None:
                # Offsets need not be dense: those of removed keys and of transactions have no message.
                start = max(start, message.offset() + 1)
            elif error.name() == "_PARTITION_EOF":
                start = max(start, message.offset())
            elif error.name() == "_AUTO_OFFSET_RESET":
                return self._first_left(wanted, start)
            elif error.fatal() or not _may_pass(error):
                raise SetupError(f"{wanted.at} cannot be read: {error.str()}")
        return start

    def _first_left(self, wanted: Range, start: int) -> int:
        """Where to go on in a partition that no longer has ``start``; an error if that would lose messages."""
        first = self.offsets({wanted.at: EARLIEST})[wanted.at]
        self._lose(f"offset {start} of {wanted.at} is not there, it begins at {first}")
        if first > start:
            self._consumer.assign([self._kafka.TopicPartition(*wanted.at, first)])
            return min(first, wanted.end)
        return wanted.end

    def _lose(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataError(lost(what))


def _may_pass(error: Any) -> bool:
    return bool(error.retriable()) or error.name() in _PASSING


def lost(what: str) -> str:
    """The message for offsets that Kafka no longer has."""
    return (
        f"{what}: messages may be lost; start with a new checkpoint, or go on without them with "
        '`failOnDataLoss` "false"'
    )
