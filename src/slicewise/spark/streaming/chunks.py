"""Chunks: the state of a shard cut into pieces, so that a micro-batch writes what it touched and not everything.

Slices and stored rows go into chunks by their event time: new rows touch the last few chunks, old ones stay as they
were and are dropped whole. What a chunk holds is told by its digest; one whose digest did not change is not written.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

__all__ = ["Directory", "digest", "join", "split"]

#: How many keys share a chunk.
KEYS = 4096

Directory = dict[str, str]
#: What is cut by event time, and the array that tells it.
_TIMES = {"slices": "first", "tuples": "time"}


def split(snapshot: Mapping[str, Any], width: int) -> tuple[bytes, dict[str, bytes]]:
    """A snapshot of a shard as named chunks, and what changes every time anyway.

    Slices are put together by ``width`` of event time.
    """
    rest = dict(snapshot)
    chunks: dict[str, bytes] = {}
    keys = rest.pop("keys", [])
    for at in range(0, len(keys), KEYS):
        chunks[f"keys {at // KEYS}"] = _dump(keys[at : at + KEYS])
    for name, time in _TIMES.items():
        data = rest.pop(name, None)
        if data is None:
            continue
        rest[f"{name} types"] = _map(data, partial(_take, slice(0)))
        bucket = data[time] // width
        for at in np.unique(bucket).tolist():
            mine = np.flatnonzero(bucket == at)
            chunks[f"{name} {at}"] = _dump(_map(data, partial(_take, mine)))
    for number, track in enumerate(rest.pop("tracks", ())):
        chunks[f"track {number}"] = _dump(track)
    return _dump(rest), chunks


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


def _numbered(chunks: Mapping[str, Any], kind: str) -> list[str]:
    return sorted((n for n in chunks if n.split()[0] == kind), key=lambda name: int(name.split()[1]))


def _dump(data: Any) -> bytes:
    return pickle.dumps(data, protocol=5)


def _take(index: Any, array: np.ndarray) -> np.ndarray:
    return array[index]


def _map(data: Any, f: Callable[[np.ndarray], np.ndarray]) -> Any:
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
