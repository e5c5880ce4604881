"""Chunks: the state of a shard in parts, so that a micro-batch writes what it touched and not everything.

Time slices and stored rows go into chunks by their event time: new rows touch the last few chunks, old ones stay as
they were and are dropped whole. Where there is little, it stays with what is written every time anyway. What
context-aware queries keep is cut by keys, and so are reported windows that stay for good. A chunk is identified by the
digest of its content; one whose digest did not change is not written. Chunks are plain data: Arrow and JSON, and
objects of classes that the workload trusts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from slicewise.columns import types_to_data
from slicewise.plain import dump, load
from slicewise.slicing import (
    BoundState,
    ContextAwareState,
    OperatorState,
    ReportedTicks,
    ReportedWindows,
    Slices,
    Tuples,
)
from slicewise.spark.streaming.array_trees import digest, digests, shape
from slicewise.spark.streaming.key_chunks import key_chunks
from slicewise.times import INFINITY

__all__ = ["Directory", "join", "split"]

#: How many keys share a chunk.
KEYS = 4096
#: Up to so many bytes of slices or stored rows are in no chunk: to write them again costs less than a call to Spark.
SMALL = 32_768

#: For each chunk, by name, the digest of what it holds.
Directory = dict[str, str]


def split(
    state: OperatorState, width: int, known: Mapping[str, str], trust: Collection[type] = ()
) -> tuple[bytes, dict[str, bytes], Directory]:
    """The state of a shard: what changes every time anyway, the chunks that changed, and the directory of all.

    Slices are put together by ``width`` of event time; ``known`` is the directory of what was written before. A state
    with an object of a class that is not in ``trust`` is refused, because it could not be read back.
    """
    bound = state.bound
    changes = _Changes(known, trust)
    if bound is None:
        return dump(state.to_data(), trust), {}, {}
    for at in range(0, len(bound.keys), KEYS):
        # A number stands for its key until all keys get other numbers: as many of them are the same ones.
        some = bound.keys[at : at + KEYS]
        changes.add(f"keys {at // KEYS}", some, f"{bound.numbering} {len(some)}")
    for number, queries in enumerate(bound.engine.context_aware):
        for at, (content, make) in enumerate(key_chunks(queries, trust)):
            changes.add(f"rows {number} {at}", make, content)
    slices, tuples = bound.engine.time.slices, bound.engine.time.tuples
    if not _is_small(slices):
        numbers, bucket = _buckets(slices.first // width)
        contents = _slice_digests(bound, slices, bucket, len(numbers))
        for i, number in enumerate(numbers):
            changes.add(f"slices {number}", partial(_part, slices, bucket, i), contents[i])
    if not _is_small(tuples):
        numbers, bucket = _buckets(tuples.time // width)
        for i, number in enumerate(numbers):
            changes.add(f"tuples {number}", partial(_part, tuples, bucket, i))
    for number, ticks in enumerate(bound.engine.time.ticks.values()):
        for at in np.unique(ticks.key // KEYS).tolist():
            changes.add(f"ticks {number} {at}", partial(_ticks, ticks, at))
    lasting = bound.engine.time.reported.lasting(True)
    numbers, bucket = _buckets(lasting.key // KEYS)
    contents = _reported_digests(bound, lasting, bucket, len(numbers))
    for i, number in enumerate(numbers):
        changes.add(f"reported {number}", partial(_part, lasting, bucket, i), contents[i])
    return dump(_without_chunks(state, bound).to_data(), trust), changes.chunks, changes.directory


def join(rest: bytes, chunks: Mapping[str, bytes], trust: Collection[type] = ()) -> OperatorState:
    """The state that was split into these chunks."""
    loaded = {name: load(data, trust) for name, data in chunks.items()}
    state = OperatorState.from_data(load(rest, trust))
    bound = state.bound
    if bound is None:
        return state
    time = bound.engine.time
    slices = Slices.concat([time.slices, *map(Slices.from_data, _of_kind(loaded, "slices"))])
    tuples = Tuples.concat([time.tuples, *map(Tuples.from_data, _of_kind(loaded, "tuples"))])
    # By key and time again; rows of equal time are in one chunk, and stay in their order.
    slices = slices.take(np.lexsort((slices.first, slices.key)))
    tuples = tuples.take(np.lexsort((tuples.time, tuples.key)))
    context_aware = tuple(
        queries.joined([ContextAwareState.from_data(data) for data in _of_kind(loaded, f"rows {number}")])
        for number, queries in enumerate(bound.engine.context_aware)
    )
    ticks = {
        name: due.joined([ReportedTicks.from_data(data) for data in _of_kind(loaded, f"ticks {number}")])
        for number, (name, due) in enumerate(time.ticks.items())
    }
    reported = time.reported
    for data in _of_kind(loaded, "reported"):
        reported = reported.joined(ReportedWindows.from_data(data))
    time = replace(time, slices=slices, tuples=tuples, reported=reported, ticks=ticks)
    engine = replace(bound.engine, time=time, context_aware=context_aware)
    keys = [tuple(key) for part in _of_kind(loaded, "keys") for key in part]
    return replace(state, bound=replace(bound, keys=keys, engine=engine))


class _Changes:
    """Which of some chunks are not as they were."""

    def __init__(self, known: Mapping[str, str], trust: Collection[type]) -> None:
        self.known, self.trust = known, trust
        self.chunks: dict[str, bytes] = {}
        self.directory: Directory = {}

    def add(self, name: str, data: Sequence[Any] | Callable[[], Any], content: str | None = None) -> None:
        """One more chunk, or a function that makes it; without the digest of its content, it is made and looked at."""
        dumped = None
        if content is None:
            dumped = dump(data() if callable(data) else data, self.trust)
            content = digest(dumped)
        self.directory[name] = content
        if self.known.get(name) != content:
            self.chunks[name] = dumped if dumped is not None else dump(data() if callable(data) else data, self.trust)


def _is_small(rows: Slices | Tuples) -> bool:
    """Whether slices or stored rows are so few that they are in no chunk; objects may be of any size."""
    return rows.nbytes <= SMALL and not rows.has_objects


def _buckets(numbers: np.ndarray) -> tuple[list[int], np.ndarray]:
    """The different numbers of chunks, and for each row the place of its own among them."""
    low, high = int(numbers.min(initial=INFINITY)), int(numbers.max(initial=-INFINITY))
    if high - low >= len(numbers):
        chunks, bucket = np.unique(numbers, return_inverse=True)
        return chunks.tolist(), bucket
    # They lie close to each other, and are counted rather than sorted.
    numbers = numbers - low
    used = np.bincount(numbers) > 0
    return (low + np.flatnonzero(used)).tolist(), (np.cumsum(used) - 1)[numbers]


def _slice_digests(bound: BoundState, slices: Slices, bucket: np.ndarray, count: int) -> list[str]:
    """A digest for each chunk of slices. Slices only grow, so an equal number of rows means equal partials."""
    # With partials of other aggregates or types they are other slices, and so they are when numbers mean other keys.
    types = types_to_data({**bound.types})
    built = shape([bound.layout.to_data(), types, bound.numbering, slices.take(slice(0)).to_data()])
    identity = [slices.key, slices.first, slices.last, slices.rows, slices.unreported, slices.closed_gaps]
    return [f"{built} {rows}" for rows in digests(identity, bucket, count)]


def _reported_digests(bound: BoundState, windows: ReportedWindows, bucket: np.ndarray, count: int) -> list[str]:
    """A digest for each chunk of windows that stay; numbers stand for families and keys as in the rest of the state."""
    built = shape([bound.layout.to_data(), bound.numbering])
    identity = [windows.family, windows.key, windows.start, windows.end, windows.nth]
    return [f"{built} {entries}" for entries in digests(identity, bucket, count)]


def _without_chunks(state: OperatorState, bound: BoundState) -> OperatorState:
    """The state without what stands in chunks."""
    time = bound.engine.time
    nothing = slice(0)
    ticks = {name: known.take(nothing) for name, known in time.ticks.items()}
    engine = replace(
        bound.engine,
        time=replace(
            time,
            slices=time.slices if _is_small(time.slices) else time.slices.take(nothing),
            tuples=time.tuples if _is_small(time.tuples) else time.tuples.take(nothing),
            reported=time.reported.lasting(False),
            ticks=ticks,
        ),
        context_aware=tuple(queries.of_keys(0, 0) for queries in bound.engine.context_aware),
    )
    return replace(state, bound=replace(bound, keys=[], engine=engine))


def _of_kind(chunks: Mapping[str, Any], kind: str) -> list[Any]:
    names = [name for name in chunks if name.rpartition(" ")[0] == kind]
    return [chunks[name] for name in sorted(names, key=lambda name: int(name.rpartition(" ")[2]))]


def _ticks(ticks: ReportedTicks, number: int) -> dict[str, Any]:
    return ticks.of_keys(number * KEYS, (number + 1) * KEYS).to_data()


def _part(rows: Slices | Tuples | ReportedWindows, bucket: np.ndarray, number: int) -> dict[str, Any]:
    return rows.take(np.flatnonzero(bucket == number)).to_data()
