"""Options of the Kafka source, by the names of Spark's own connector: read and checked before any broker is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from slicewise.errors import QueryError, did_you_mean
from slicewise.sources.kafka.offsets import EARLIEST, LATEST, Offsets, TopicPartition, from_json, without_marks

__all__ = ["Bound", "Options", "Subscription", "read_options"]

_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_STRATEGY = "startingOffsetsByTimestampStrategy"
_POLL = "kafkaConsumer.pollTimeoutMs"
_OTHERS = (_STRATEGY, "failOnDataLoss", "maxOffsetsPerTrigger", "minPartitions", "includeHeaders", _POLL)
_KNOWN = (*_SUBSCRIPTIONS, *_STARTS, *_ENDS, *_OTHERS)
_SERVERS = "kafka.bootstrap.servers"
#: Properties of the client that are not the user's to set, and why.
_OURS = {
    "auto.offset.reset": "say where to start with `startingOffsets`",
    "enable.auto.commit": "offsets are kept in Spark's checkpoint",
    "enable.auto.offset.store": "offsets are kept in Spark's checkpoint",
    "enable.partition.eof": "the source needs it to know where a partition ends",
    "key.deserializer": "keys are binary; cast them",
    "value.deserializer": "values are binary; cast them",
}
_OFFSETS_EXAMPLE = '{"topic": {"0": 23, "1": -2}}'


@dataclass(frozen=True)
class Subscription:
    """Which partitions are read: all of some topics, of the topics that match a pattern, or those that are named."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    assigned: tuple[TopicPartition, ...] = ()

    def names(self) -> tuple[str, ...]:
        """The topics, as far as they are named."""
        return self.topics or tuple(sorted({at.topic for at in self.assigned}))


@dataclass(frozen=True)
class Bound:
    """Where reading starts or ends: alike in all partitions or given for each; offsets, or times in milliseconds."""

    option: str
    everywhere: int = EARLIEST
    each: Offsets = field(default_factory=dict)
    is_time: bool = False

    def of(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset or time for each of these partitions, which must be those that are given, if any are."""
        partitions = list(partitions)
        if not self.each:
            return dict.fromkeys(partitions, self.everywhere)
        if set(partitions) != set(self.each):
            missing = sorted(set(partitions) - set(self.each)) + sorted(set(self.each) - set(partitions))
            raise QueryError(
                f"`{self.option}` must have every partition that is read and no other; "
                f"{missing[0]} is in one of the two; -2 stands for the earliest offset, -1 for the latest",
                parameter=self.option,
            )
        return dict(self.each)


@dataclass(frozen=True)
class Options:
    """What to read from which brokers, and how."""

    client: Mapping[str, str]
    subscription: Subscription
    start: Bound
    end: Bound
    latest_if_no_match: bool = False
    fail_on_data_loss: bool = True
    limit: int | None = None
    min_partitions: int = 0
    headers: bool = False
    timeout: float = 120.0

    @property
    def servers(self) -> str:
        """Where the brokers are."""
        return self.client["bootstrap.servers"]


def read_options(given: Mapping[str, str], *, stream: bool) -> Options:
    """The options of one read, checked; their names may be in any case.

    >>> options = read_options({"kafka.bootstrap.servers": "host:9092", "subscribe": "clicks, views"}, stream=True)
    >>> options.subscription.topics, options.start.everywhere == LATEST
    (('clicks', 'views'), True)
    """
    options = {name.lower(): value for name, value in given.items()}
    reader = _Reader(options)
    _check_names(options, stream)
    return Options(
        client=_client(options),
        subscription=_subscription(reader),
        start=_bound(reader, _STARTS, "latest" if stream else "earliest", stream),
        end=_bound(reader, _ENDS, "latest", stream),
        latest_if_no_match=reader.one_of(_STRATEGY, {"error": False, "latest": True}, "error"),
        fail_on_data_loss=reader.flag("failOnDataLoss", True),
        limit=reader.count("maxOffsetsPerTrigger"),
        min_partitions=reader.count("minPartitions") or 0,
        headers=reader.flag("includeHeaders", False),
        timeout=(reader.count(_POLL) or 120_000) / 1000,
    )


class _Reader:
    """Reads values by the names that users know, from options in lower case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = options

    def text(self, name: str) -> str | None:
        return self.options.get(name.lower())

    def one_of(self, name: str, values: Mapping[str, Any], default: str) -> Any:
        text = self.text(name) or default
        if text.lower() not in values:
            raise _wrong(name, " or ".join(f'"{v}"' for v in values), text)
        return values[text.lower()]

    def flag(self, name: str, default: bool) -> bool:
        return bool(self.one_of(name, {"true": True, "false": False}, str(default).lower()))

    def count(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        if not re.fullmatch(r"0*[1-9]\d{0,17}", text.strip()):
            raise _wrong(name, "a positive integer", text)
        return int(text)

    def data(self, name: str, example: str, is_right: Callable[[Any], bool]) -> Any:
        text = self.text(name) or ""
        try:
            plain = json.loads(text)
        except ValueError:
            plain = None
        # Offsets may come from a checkpoint.
        plain = without_marks(plain) if isinstance(plain, dict) else {}
        if not plain or not all(map(is_right, plain.values())):
            raise _wrong(name, f"JSON such as '{example}'", text)
        return plain


def _wrong(name: str, expected: str, value: str) -> QueryError:
    return QueryError(f"`{name}` must be {expected}; got {value!r}", parameter=name)


def _check_names(options: Mapping[str, str], stream: bool) -> None:
    known = {name.lower(): name for name in _KNOWN}
    for name in options:
        if not name.startswith("kafka.") and name not in known:
            raise QueryError(f"there is no option {name!r}; {did_you_mean(name, (*_KNOWN, _SERVERS))}", parameter=name)
    elsewhere = ("maxOffsetsPerTrigger",) if not stream else _ENDS
    for name in elsewhere:
        if name.lower() in options:
            kind, place = ("streams", "a batch") if not stream else ("batches", "a stream")
            raise QueryError(f"`{name}` is for {kind}, and this is {place}; leave it out", parameter=name)


def _client(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of the Kafka client: whatever begins with ``kafka.``."""
    client = {name.removeprefix("kafka."): value for name, value in options.items() if name.startswith("kafka.")}
    for name in client.keys() & _OURS.keys():
        raise QueryError(f"`kafka.{name}` cannot be set: {_OURS[name]}", parameter=f"kafka.{name}")
    if not client.get("bootstrap.servers", "").strip():
        raise QueryError(f'`{_SERVERS}` is missing; say where the brokers are: "host:9092"', parameter=_SERVERS)
    return client


def _subscription(reader: _Reader) -> Subscription:
    given = [name for name in _SUBSCRIPTIONS if reader.text(name) is not None]
    if len(given) != 1:
        names = "`subscribe`, `subscribePattern` and `assign`"
        raise QueryError(f"give one of {names}; got {' and '.join(f'`{g}`' for g in given) or 'none'}")
    text = reader.text(given[0]) or ""
    if given[0] == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, (topic.strip() for topic in text.split(",")))))
        if not topics:
            raise _wrong("subscribe", 'topics such as "clicks,views"', text)
        return Subscription(topics=topics)
    if given[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as e:
            raise QueryError(f"`subscribePattern` is not a pattern: {e}; got {text!r}", parameter=given[0]) from e
        return Subscription(pattern=text)
    assigned = reader.data("assign", '{"topic": [0, 1]}', _are_partitions)
    return Subscription(
        assigned=tuple(sorted({TopicPartition(t, n) for t, numbers in assigned.items() for n in numbers}))
    )


def _are_partitions(numbers: Any) -> bool:
    return isinstance(numbers, list) and bool(numbers) and all(_is_integer(n) and n >= 0 for n in numbers)


def _bound(reader: _Reader, names: tuple[str, str, str], default: str, stream: bool) -> Bound:
    """The first of the three options that is given: a time for all partitions, times, or offsets."""
    everywhere, times, offsets = names
    if reader.text(everywhere) is not None:
        return Bound(everywhere, everywhere=reader.count(everywhere) or 0, is_time=True)
    if reader.text(times) is not None:
        plain = reader.data(times, '{"topic": {"0": 1700000000000}}', lambda each: _are_offsets(each, 0))
        return Bound(times, each=from_json(plain), is_time=True)
    text = (reader.text(offsets) or default).strip()
    allowed = {"earliest": EARLIEST, "latest": LATEST}
    refused = LATEST if names is _STARTS and not stream else EARLIEST if names is _ENDS else None
    if text.lower() in allowed and allowed[text.lower()] != refused:
        return Bound(offsets, everywhere=allowed[text.lower()])
    each = _each(reader, offsets, refused, text)
    return Bound(offsets, each=each)


def _each(reader: _Reader, name: str, refused: int | None, text: str) -> dict[TopicPartition, int]:
    words = [word for word, value in (("earliest", EARLIEST), ("latest", LATEST)) if value != refused]
    if not text.startswith("{"):
        raise _wrong(name, " or ".join(f'"{w}"' for w in [*words]) + f", or JSON such as '{_OFFSETS_EXAMPLE}'", text)
    each = from_json(reader.data(name, _OFFSETS_EXAMPLE, lambda e: _are_offsets(e, EARLIEST)))
    for at, offset in each.items():
        if offset == refused:
            word, value = ("latest", LATEST) if refused == LATEST else ("earliest", EARLIEST)
            raise QueryError(f"`{name}` cannot be the {word} ({value}) in a batch; got it for {at}", parameter=name)
    return each


def _are_offsets(each: Any, least: int) -> bool:
    return (
        isinstance(each, dict)
        and bool(each)
        and all(re.fullmatch(r"\d{1,9}", n) and _is_integer(at) and at >= least for n, at in each.items())
    )


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
