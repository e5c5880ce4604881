"""Key chunks: what a shard keeps for context-aware queries, cut by the numbers of keys.

A key's rows change when others arrive, or when the watermark passes them; keys that went silent stay in their chunk as
they are. Keys are numbered as they come, so those that are busy at the same time stand together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from slicewise.plain import dump
from slicewise.slicing import ContextAwareState, is_lifted
from slicewise.spark.streaming.array_trees import digest, digests, shape

__all__ = ["key_chunks"]

#: How many keys share a chunk.
KEYS = 512


def key_chunks(state: ContextAwareState, trust: Collection[type]) -> list[tuple[str, Callable[[], Any]]]:
    """For each chunk of keys the digest of its content, and how to make it."""
    # How many rows arrived is read from the head of the shard, and not from chunks.
    built = shape(replace(state.of_keys(0, 0), arrived=0).to_data())
    return [
        (f"{built} {content}", partial(_of_keys, state, number * KEYS, (number + 1) * KEYS))
        for number, content in enumerate(_digests(state, trust))
    ]


def _of_keys(state: ContextAwareState, low: int, high: int) -> dict[str, Any]:
    return state.of_keys(low, high).to_data()


def _digests(state: ContextAwareState, trust: Collection[type]) -> list[str]:
    """A digest for each chunk of keys.

    A row is identified by the number of its arrival. Rows never leave a slice, so it is identified by the arrivals of
    its first and its last row, and by how many there are.
    """
    rows, slices = state.rows, state.slices
    marks = [c.values for name, c in rows.columns.items() if name.startswith("\0") and not is_lifted(name)]
    marks = [mark for mark in marks if not mark.dtype.hasobject]  # texts that are computed never change
    by_key = [(rows.key, [rows.key, rows.time, rows.closed_gaps, rows.unreported, *marks])]
    by_key.append((slices.key, [slices.key, slices.first, slices.last, slices.rows, *slices.marks.values()]))
    for table in state.reported.values():
        arrays = [table.family, table.start, table.end, table.nth, table.until, table.revision, *table.content]
        by_key.append((table.key, [table.key, *arrays]))
    per_key = [state.base, state.last_seen, *(array for m in state.memory.values() for array in m.arrays)]
    by_key += [(np.arange(len(array)), [array]) for array in per_key]
    count = max(int(key.max(initial=-1)) // KEYS + 1 for key, _ in by_key)
    contents = [digests(columns, key // KEYS, count) for key, columns in by_key]
    for memory in state.memory.values():
        chunks: list[dict[int, Any]] = [{} for _ in range(count)]
        for key, remembered in memory.by_key.items():
            chunks[key // KEYS][key] = remembered
        contents.append([digest(dump(chunk, trust)) for chunk in chunks])
    return [digest(" ".join(chunk).encode()) for chunk in zip(*contents, strict=True)]
