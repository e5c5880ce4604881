"""Chunks: the state of a shard cut into pieces, so that a micro-batch writes what it touched and not everything.

Slices and stored rows go into chunks by their event time: new rows touch the last few chunks, old ones stay as they
were and are dropped whole. What a chunk holds is told by its digest; one whose digest did not change is not written.
"""

from __future__ import annotations

import hashlib
import operator
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

__all__ = ["Directory", "join", "split"]

#: How many keys share a chunk.
KEYS = 4096

_ODD, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFFFFFF)

#: For each chunk, by name, the digest of what it holds.
Directory = dict[str, str]
#: What is cut by event time, and the array that tells it.
_TIMES = {"slices": "first", "tuples": "time"}
#: What tells one state of a slice from another. Rows are added to slices and never taken out: as long as there are as
#: many, what was computed from them is the same.
_TOLD_BY = ("key", "first", "last", "rows", "fresh", "closed")


def split(
    snapshot: Mapping[str, Any], width: int, known: Mapping[str, str]
) -> tuple[bytes, dict[str, bytes], Directory]:
    """A snapshot of a shard: what changes every time anyway, the chunks that changed, and the directory of all.

    Slices are put together by ``width`` of event time; ``known`` is the directory of what was written before.
    """
    rest = dict(snapshot)
    changes = _Changes(known)
    keys = rest.pop("keys", [])
    for at in range(0, len(keys), KEYS):
        changes.add(f"keys {at // KEYS}", keys[at : at + KEYS])
    for number, track in enumerate(rest.pop("tracks", ())):
        changes.add(f"track {number}", track)
    for kind, time in _TIMES.items():
        data = rest.pop(kind, None)
        if data is None:
            continue
        empty = rest[f"{kind} types"] = _map(data, partial(_take, slice(0)))
        numbers, bucket = np.unique(data[time] // width, return_inverse=True)
        digests: list[str | None] = [None] * len(numbers)
        if kind == "slices":
            # With partials of other aggregates they are other slices, and so they are when numbers mean other keys.
            types = _map(empty, operator.attrgetter("dtype.str"))
            what = digest(repr([rest["labels"], rest["numbering"], types]).encode())
            digests = [f"{what} {told}" for told in _digests(data, bucket, len(numbers))]
        for i, number in enumerate(numbers.tolist()):
            changes.add(f"{kind} {number}", partial(_part, data, bucket, i), digests[i])
    return _dump(rest), changes.chunks, changes.directory


class _Changes:
    """Which of some chunks are not as they were."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.known = known
        self.chunks: dict[str, bytes] = {}
        self.directory: Directory = {}

    def add(self, name: str, data: Any, told: str | None = None) -> None:
        """One more chunk, or a function that makes it; without a digest, what it holds is looked at."""
        dumped = None
        if told is None:
            dumped = _dump(data() if callable(data) else data)
            told = digest(dumped)
        self.directory[name] = told
        if self.known.get(name) != told:
            self.chunks[name] = dumped if dumped is not None else _dump(data())


def join(rest: bytes, chunks: Mapping[str, bytes]) -> dict[str, Any]:
    """The snapshot that was split into these chunks."""
    loaded = {name: pickle.loads(data) for name, data in chunks.items()}
    snapshot = pickle.loads(rest)
    if "workload" in snapshot and "types" not in snapshot:
        return snapshot
    snapshot["keys"] = [key for name in _numbered(loaded, "keys") for key in loaded[name]]
    for name, time in _TIMES.items():
        empty = snapshot.pop(f"{name} types")
        together = _concat([empty, *(loaded[n] for n in _numbered(loaded, name))])
        # By key and time again; rows of equal time are in one chunk, and stay in their order.
        order = np.lexsort((together[time], together["key"]))
        snapshot[name] = _map(together, partial(_take, order))
    snapshot["tracks"] = [loaded[name] for name in _numbered(loaded, "track")]
    return snapshot


def digest(data: bytes) -> str:
    """A short name for what a chunk holds."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def _digests(slices: Mapping[str, np.ndarray], bucket: np.ndarray, count: int) -> list[str]:
    """For each bucket, a digest of its slices, whatever their order; found without a copy of any of them."""
    mixed = np.zeros(len(bucket), np.uint64)
    for name in _TOLD_BY:
        mixed = (mixed ^ slices[name].view(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    # Sums of 32 bits each are exact in floats, as long as there are fewer than two million slices in a bucket.
    halves = [np.bincount(bucket, half, count).astype(np.int64) for half in (mixed >> np.uint64(32), mixed & _LOW)]
    each = np.bincount(bucket, minlength=count)
    return [f"{n:x}.{high:x}.{low:x}" for n, high, low in zip(each, *halves, strict=True)]


def _numbered(chunks: Mapping[str, Any], kind: str) -> list[str]:
    return sorted((n for n in chunks if n.split()[0] == kind), key=lambda name: int(name.split()[1]))


def _dump(data: Any) -> bytes:
    return pickle.dumps(data, protocol=5)


def _part(data: Any, bucket: np.ndarray, number: int) -> Any:
    return _map(data, partial(_take, np.flatnonzero(bucket == number)))


def _take(index: Any, array: np.ndarray) -> np.ndarray:
    return array[index]


def _map(data: Any, f: Callable[[np.ndarray], Any]) -> Any:
    """Apply a function to every array inside."""
    if isinstance(data, np.ndarray):
        return f(data)
    if isinstance(data, Mapping):
        return {k: _map(v, f) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(_map(v, f) for v in data)
    return data


def _concat(pieces: list[Any]) -> Any:
    """Pieces of the same shape, with their arrays end to end."""
    first = pieces[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(pieces) if len(pieces) > 1 else first
    if isinstance(first, Mapping):
        return {k: _concat([p[k] for p in pieces]) for k in first}
    if isinstance(first, (list, tuple)):
        return type(first)(_concat([p[i] for p in pieces]) for i in range(len(first)))
    return first
