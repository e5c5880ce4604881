"""Track chunks: what a shard knows of keys whose rows are counted, cut by the numbers of keys.

A key's rows change when more of them come, or when the watermark passes them; keys that went silent stay in their chunk
as they are. Keys are numbered as they come, so those that are busy at the same time stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from slicewise.plain import dump
from slicewise.slicing.rows.discretisers import Remembered
from slicewise.slicing.rows.shared_cuts import LAST, SLOT, WEIGHT
from slicewise.spark.streaming.nested import concat, digest, digests, map_arrays, shape

__all__ = ["cut_track", "join_track"]

#: How many keys share a chunk.
KEYS = 512

#: What is said once for all keys.
_WHOLE = ("queries", "since", "arrived", "windows")


def cut_track(
    track: Mapping[str, Any], trust: Collection[type]
) -> tuple[dict[str, Any], list[tuple[str, Callable[[], Any]]]]:
    """What is said for all keys, and for each chunk of keys its digest and how to make it."""
    none = _of_keys(track, 0, 0)
    whole = {name: track[name] for name in _WHOLE} | {"none": none}
    # Of what is said, only this changes what the chunks mean.
    built = shape([track["queries"], track["windows"], none])
    chunks: list[tuple[str, Callable[[], Any]]] = [
        (f"{built} {told}", partial(_of_keys, track, number * KEYS, (number + 1) * KEYS))
        for number, told in enumerate(_told(track, trust))
    ]
    return whole, chunks


def join_track(whole: Mapping[str, Any], chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The track that was cut into these chunks, in the order of their keys."""
    track = dict(whole)
    many = [track.pop("none"), *chunks]
    track |= concat(many)
    for name in track["memory"]:
        for chunk in chunks:
            track["memory"][name][1].update(chunk["memory"][name][1])
    # Where partials stand was counted from the start of each chunk.
    sliced = [len(chunk["slices"][WEIGHT][0]) for chunk in many]
    start = np.repeat(np.cumsum([0, *sliced[:-1]]), [len(chunk["rows"]["key"]) for chunk in many])
    slot, *rest = track["rows"]["columns"][SLOT]
    track["rows"]["columns"][SLOT] = (np.where(slot >= 0, slot + start, -1), *rest)
    return track


def _of_keys(track: Mapping[str, Any], low: int, high: int) -> dict[str, Any]:
    """What is known of some keys, in the numbers from ``low`` to before ``high``."""
    mine = slice(*np.searchsorted(track["rows"]["key"], [low, high]).tolist())
    rows = map_arrays(track["rows"], lambda array: array[mine])
    slot, *rest = rows["columns"][SLOT]
    sliced = slot >= 0
    rows["columns"][SLOT] = (np.where(sliced, np.cumsum(sliced) - 1, -1), *rest)
    return {
        "rows": rows,
        "slices": map_arrays(track["slices"], lambda array: array[slot[sliced]]),
        "base": track["base"][low:high],
        "last_seen": track["last_seen"][low:high],
        "ledgers": {name: _entries(ledger, low, high) for name, ledger in track["ledgers"].items()},
        "memory": {name: _remembered(memory, low, high) for name, memory in track["memory"].items()},
    }


def _entries(ledger: Mapping[str, np.ndarray], low: int, high: int) -> dict[str, np.ndarray]:
    mine = np.flatnonzero((ledger["key"] >= low) & (ledger["key"] < high))
    return {name: array[mine] for name, array in ledger.items()}


def _remembered(memory: Remembered, low: int, high: int) -> Remembered:
    arrays, things = memory
    return tuple(a[low:high] for a in arrays), {key: thing for key, thing in things.items() if low <= key < high}


def _told(track: Mapping[str, Any], trust: Collection[type]) -> list[str]:
    """A digest for each chunk of keys.

    A row is told by the number of its arrival, and rows never leave a slice of rows: it is told by the arrivals of its
    first and its last row, and by how many there are.
    """
    rows, slices = track["rows"], track["slices"]
    slot = rows["columns"][SLOT][0]
    last, weight = (np.append(slices[name][0], -1)[slot] for name in (LAST, WEIGHT))
    marks = [values for name, (values, _, _) in rows["columns"].items() if name.startswith("\0") and name != SLOT]
    told = [(rows["key"], [rows["key"], rows["time"], rows["closed"], rows["fresh"], last, weight, *marks])]
    told += [(ledger["key"], list(ledger.values())) for ledger in track["ledgers"].values()]
    of_keys = [track["base"], track["last_seen"], *(a for arrays, _ in track["memory"].values() for a in arrays)]
    told += [(np.arange(len(array)), [array]) for array in of_keys]
    count = max(int(key.max(initial=-1)) // KEYS + 1 for key, _ in told)
    found = [digests(columns, key // KEYS, count) for key, columns in told]
    for _, things in track["memory"].values():
        chunks: list[dict[int, Any]] = [{} for _ in range(count)]
        for key, thing in things.items():
            chunks[key // KEYS][key] = thing
        found.append([digest(dump(chunk, trust)) for chunk in chunks])
    return [digest(" ".join(chunk).encode()) for chunk in zip(*found, strict=True)]
