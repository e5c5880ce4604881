"""A Kafka client whose brokers do what the mock cluster cannot: times, gaps, topics that go, errors that pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple


class KafkaError(Exception):
    """An error as the client reports it."""

    def __init__(self, name: str, *, retriable: bool = False) -> None:
        super().__init__(name)
        self._name, self._retriable = name, retriable

    def name(self) -> str:
        """The code as text."""
        return self._name

    def str(self) -> str:
        """What is told to people."""
        return f"Fake: {self._name}"

    def retriable(self) -> bool:
        """Whether it may be tried again."""
        return self._retriable

    def fatal(self) -> bool:
        """Whether the client can go on."""
        return False


class KafkaException(Exception):
    """What the client raises."""


class TopicPartition(NamedTuple):
    """A partition with an offset or a time."""

    topic: str
    partition: int
    offset: int = 0
    error: Any = None


@dataclass
class Message:
    """A message, or an event in the place of one."""

    at: int
    problem: KafkaError | None = None
    data: bytes | None = b"v"
    stamp: tuple[int, int] = (1, 0)
    place: tuple[str, int] = ("t", 0)

    def error(self) -> KafkaError | None:
        """None for a message."""
        return self.problem

    def offset(self) -> int:
        """Where it stands."""
        return self.at

    def key(self) -> bytes | None:
        """Not there."""
        return None

    def value(self) -> bytes | None:
        """Its data."""
        return self.data

    def topic(self) -> str:
        """Of its log."""
        return self.place[0]

    def partition(self) -> int:
        """Of its log."""
        return self.place[1]

    def timestamp(self) -> tuple[int, int]:
        """Kind and milliseconds."""
        return self.stamp

    def headers(self) -> None:
        """None."""
        return None


@dataclass
class FakeKafka:
    """The package ``confluent_kafka``, and what its brokers have: the offsets and times of messages, by partition."""

    logs: dict[str, list[dict[int, int]]] = field(default_factory=dict)
    #: What brokers answer before they come to their senses, and what comes in the place of messages.
    answers: list[KafkaError] = field(default_factory=list)
    events: list[KafkaError] = field(default_factory=list)
    KafkaError: Any = KafkaError
    KafkaException: Any = KafkaException
    TopicPartition: Any = TopicPartition

    def Consumer(self, conf: dict[str, Any]) -> FakeConsumer:
        """A client."""
        return FakeConsumer(self)


class FakeConsumer:
    """A consumer that reads one partition from the offset that it is assigned."""

    def __init__(self, kafka: FakeKafka) -> None:
        self.kafka = kafka
        self.assigned: Any = None

    def close(self) -> None:
        """Nothing is open."""

    def list_topics(self, topic: str | None = None, timeout: float = 0) -> Any:
        """Metadata of one topic, or of all."""
        if self.kafka.answers:
            raise KafkaException(self.kafka.answers.pop(0))
        names = list(self.kafka.logs) if topic is None else [topic]
        return SimpleNamespace(topics={name: self._metadata(name) for name in names})

    def _metadata(self, name: str) -> Any:
        there = self.kafka.logs.get(name)
        error = KafkaError("UNKNOWN_TOPIC_OR_PART") if there is None else None
        return SimpleNamespace(error=error, partitions=dict.fromkeys(range(len(there or ()))))

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float = 0) -> list[TopicPartition]:
        """The first offset at or after a time; -1 and -2 as in the protocol."""
        return [TopicPartition(at.topic, at.partition, self._offset(at)) for at in asked]

    def _offset(self, at: TopicPartition) -> int:
        log = self.kafka.logs[at.topic][at.partition]
        if at.offset == -1:
            return max(log, default=-1) + 1
        if at.offset == -2:
            return min(log, default=0)
        return min((n for n, time in log.items() if time >= at.offset), default=-1)

    def assign(self, asked: list[TopicPartition]) -> None:
        """Read from here."""
        (self.assigned,) = asked

    def consume(self, n: int, timeout: float = 0) -> list[Message]:
        """The next messages, and the end of the partition where it is reached."""
        at = self.assigned
        log = self.kafka.logs[at.topic][at.partition]
        if self.kafka.events:
            return [Message(at.offset, self.kafka.events.pop(0))]
        if at.offset < min(log, default=0):
            return [Message(at.offset, KafkaError("_AUTO_OFFSET_RESET"))]
        taken = [Message(offset, place=at[:2]) for offset in sorted(log) if offset >= at.offset][:n]
        end = max(log, default=-1) + 1
        if len(taken) < n:
            taken.append(Message(end, KafkaError("_PARTITION_EOF")))
        self.assigned = at._replace(offset=taken[-1].offset() + (taken[-1].error() is None))
        return taken
