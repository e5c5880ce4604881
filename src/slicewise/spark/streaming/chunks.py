"""Chunks: the state of a shard cut into pieces, so that a micro-batch writes what it touched and not everything.

Slices and stored rows go into chunks by their event time: new rows touch the last few chunks, old ones stay as they
were and are dropped whole. Tracks are cut by keys. What a chunk holds is told by its digest; one whose digest did not
change is not written. Chunks are plain data: Arrow and JSON, and objects of classes that the workload trusts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

import numpy as np

from slicewise.plain import dump, load
from slicewise.spark.streaming.nested import concat, digest, digests, map_arrays, shape
from slicewise.spark.streaming.track_chunks import cut_track, join_track

__all__ = ["Directory", "join", "split"]

#: How many keys share a chunk.
KEYS = 4096

#: For each chunk, by name, the digest of what it holds.
Directory = dict[str, str]
#: What is cut by event time, and the array that tells it.
_TIMES = {"slices": "first", "tuples": "time"}
#: What tells one state of a slice from another. Rows are added to slices and never taken out: as long as there are as
#: many, what was computed from them is the same.
_TOLD_BY = ("key", "first", "last", "rows", "fresh", "closed")


def split(
    snapshot: Mapping[str, Any], width: int, known: Mapping[str, str], trust: Collection[type] = ()
) -> tuple[bytes, dict[str, bytes], Directory]:
    """A snapshot of a shard: what changes every time anyway, the chunks that changed, and the directory of all.

    Slices are put together by ``width`` of event time; ``known`` is the directory of what was written before. A state
    with an object of a class that is not in ``trust`` is refused, because it could not be read back.
    """
    rest = dict(snapshot)
    changes = _Changes(known, trust)
    keys = rest.pop("keys", [])
    for at in range(0, len(keys), KEYS):
        changes.add(f"keys {at // KEYS}", keys[at : at + KEYS])
    rest["tracks"] = []
    for number, track in enumerate(snapshot.get("tracks", ())):
        whole, chunks = cut_track(track, trust)
        rest["tracks"].append(whole)
        for at, (said, make) in enumerate(chunks):
            changes.add(f"track {number} {at}", make, said)
    for kind, time in _TIMES.items():
        data = rest.pop(kind, None)
        if data is None:
            continue
        empty = rest[f"{kind} types"] = map_arrays(data, partial(_take, slice(0)))
        numbers, bucket = np.unique(data[time] // width, return_inverse=True)
        told: list[str | None] = [None] * len(numbers)
        if kind == "slices":
            # With partials of other aggregates or types they are other slices, and so they are when numbers mean other
            # keys.
            what = shape([rest["labels"], rest["types"], rest["numbering"], empty])
            told = [f"{what} {one}" for one in digests([data[name] for name in _TOLD_BY], bucket, len(numbers))]
        for i, number in enumerate(numbers.tolist()):
            changes.add(f"{kind} {number}", partial(_part, data, bucket, i), told[i])
    return dump(rest, trust), changes.chunks, changes.directory


class _Changes:
    """Which of some chunks are not as they were."""

    def __init__(self, known: Mapping[str, str], trust: Collection[type]) -> None:
        self.known, self.trust = known, trust
        self.chunks: dict[str, bytes] = {}
        self.directory: Directory = {}

    def add(self, name: str, data: Any, told: str | None = None) -> None:
        """One more chunk, or a function that makes it; without a digest, what it holds is looked at."""
        dumped = None
        if told is None:
            dumped = dump(data() if callable(data) else data, self.trust)
            told = digest(dumped)
        self.directory[name] = told
        if self.known.get(name) != told:
            self.chunks[name] = dumped if dumped is not None else dump(data(), self.trust)


def join(rest: bytes, chunks: Mapping[str, bytes], trust: Collection[type] = ()) -> dict[str, Any]:
    """The snapshot that was split into these chunks."""
    loaded = {name: load(data, trust) for name, data in chunks.items()}
    snapshot = load(rest, trust)
    if "workload" in snapshot and "types" not in snapshot:
        return snapshot
    snapshot["keys"] = [key for name in _numbered(loaded, "keys") for key in loaded[name]]
    for name, time in _TIMES.items():
        empty = snapshot.pop(f"{name} types")
        together = concat([empty, *(loaded[n] for n in _numbered(loaded, name))])
        # By key and time again; rows of equal time are in one chunk, and stay in their order.
        order = np.lexsort((together[time], together["key"]))
        snapshot[name] = map_arrays(together, partial(_take, order))
    snapshot["tracks"] = [
        join_track(whole, [loaded[name] for name in _numbered(loaded, f"track {number}")])
        for number, whole in enumerate(snapshot["tracks"])
    ]
    return snapshot


def _numbered(chunks: Mapping[str, Any], kind: str) -> list[str]:
    return sorted((n for n in chunks if n.rpartition(" ")[0] == kind), key=lambda name: int(name.rpartition(" ")[2]))


def _part(data: Any, bucket: np.ndarray, number: int) -> Any:
    return map_arrays(data, partial(_take, np.flatnonzero(bucket == number)))


def _take(index: Any, array: np.ndarray) -> np.ndarray:
    return array[index]
