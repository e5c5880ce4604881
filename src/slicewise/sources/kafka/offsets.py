"""Offsets: how far partitions of topics were read, and which ranges a micro-batch reads next. No broker, no Spark.

In a checkpoint and in options they look as those of Spark's own connector: ``{"topic": {"0": 23, "1": 7}}``.

Spark keeps where a micro-batch ends. Where the first one starts it asks again when it is repeated after a crash, and
"the latest" is another place then. So the offsets at which a stream starts are marked as such, and those at which its
micro-batches end say where it started; both under names that no topic can have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

__all__ = [
    "EARLIEST",
    "LATEST",
    "Offsets",
    "Range",
    "TopicPartition",
    "admitted",
    "as_end",
    "as_start",
    "from_json",
    "split",
    "start_of",
    "to_json",
    "without_marks",
]

#: What may stand for an offset, and is asked of a broker as if it were a time.
EARLIEST, LATEST = -2, -1
#: Where a stream started, and the mark of offsets that are such a start.
STARTED, IS_START = "(started)", "(start)"


class TopicPartition(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"partition {self.partition} of topic {self.topic!r}"


#: The next offset to read, by partition.
Offsets = Mapping[TopicPartition, int]


class Range(NamedTuple):
    """Messages of one partition: offsets ``[start, end)``, of which some may not exist."""

    at: TopicPartition
    start: int
    end: int


def to_json(offsets: Offsets) -> dict[str, dict[str, int]]:
    """Offsets as plain data, always in the same order: Spark takes another order for something new to read.

    >>> to_json({TopicPartition("b", 0): 1, TopicPartition("a", 10): 2, TopicPartition("a", 9): 3})
    {'a': {'9': 3, '10': 2}, 'b': {'0': 1}}
    """
    plain: dict[str, dict[str, int]] = {}
    for at in sorted(offsets):
        plain.setdefault(at.topic, {})[str(at.partition)] = offsets[at]
    return plain


def from_json(plain: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Offsets from plain data.

    >>> from_json({"a": {"0": 5}})
    {TopicPartition(topic='a', partition=0): 5}
    """
    topics = without_marks(plain)
    return {TopicPartition(topic, int(number)): at for topic, each in topics.items() for number, at in each.items()}


def without_marks(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Offsets of a checkpoint as those of Spark's own connector: topics alone."""
    return {topic: each for topic, each in plain.items() if topic not in (STARTED, IS_START)}


def as_start(offsets: Offsets) -> dict[str, Any]:
    """Where a stream starts, as plain data."""
    return to_json(offsets) | {IS_START: True}


def as_end(offsets: Offsets, start: Mapping[str, Any] | None) -> dict[str, Any]:
    """Where a micro-batch ends that starts at ``start``, as plain data; None where that is not known."""
    if start is None:
        return to_json(offsets)
    started = without_marks(start) if IS_START in start else start.get(STARTED)
    return to_json(offsets) | ({} if started is None else {STARTED: started})


def start_of(start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[TopicPartition, int]:
    """Where a micro-batch really starts: a start of the stream may be one that Spark has asked for again.

    >>> first = as_start({TopicPartition("t", 0): 5})
    >>> end = as_end({TopicPartition("t", 0): 8}, first)
    >>> again = as_start({TopicPartition("t", 0): 9})
    >>> start_of(again, end) == start_of(first, end) == {TopicPartition("t", 0): 5}
    True
    """
    return from_json(end[STARTED] if IS_START in start and STARTED in end else start)


def admitted(start: Offsets, latest: Offsets, limit: int) -> dict[TopicPartition, int]:
    """How far a micro-batch reads that may have ``limit`` messages: each partition gets its share of what is new.

    As in Spark's own connector, a partition with something new gets at least one message, lest a busy one starve it.

    >>> a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    >>> end = admitted({a: 0, b: 10}, {a: 90, b: 20}, limit=10)
    >>> end[a], end[b]
    (9, 11)
    """
    fresh = {at: max(end - start.get(at, 0), 0) for at, end in latest.items()}
    total = sum(fresh.values())
    if total <= limit:
        return dict(latest)
    end, before = dict(latest), 0
    for at in sorted(latest):
        # Shares are rounded together, so that their sum is the limit. A partition whose end is before its start was
        # made anew; what to do about it is not decided here.
        share = limit * (before + fresh[at]) // total - limit * before // total
        if fresh[at]:
            end[at] = start.get(at, 0) + max(share, 1)
        before += fresh[at]
    return end


def split(ranges: Iterable[Range], least: int) -> list[Range]:
    """Ranges cut into at least ``least`` parts, if they have as many messages; the longest are cut first.

    >>> at = TopicPartition("t", 0)
    >>> [(r.start, r.end) for r in split([Range(at, 0, 10)], 3)]
    [(0, 4), (4, 7), (7, 10)]
    """
    parts = dict.fromkeys(ranges, 1)
    for _ in range(least - len(parts) if parts else 0):
        longest = max(parts, key=lambda r: (r.end - r.start) / parts[r])
        if longest.end - longest.start == parts[longest]:
            break
        parts[longest] += 1
    return [piece for r, n in parts.items() for piece in _cut(r, n)]


def _cut(r: Range, n: int) -> list[Range]:
    length, longer = divmod(r.end - r.start, n)
    bounds = [r.start + i * length + min(i, longer) for i in range(n + 1)]
    return [Range(r.at, start, end) for start, end in pairwise(bounds)]
