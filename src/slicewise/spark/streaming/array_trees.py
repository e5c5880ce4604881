"""Arrays in nested data: what tells one state of them from another, and how pieces of them go together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["concat", "digest", "digests", "map_arrays", "shape"]

_ODD, _LOW = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xFFFFFFFF)


def digest(data: bytes) -> str:
    """A short name for some bytes."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def digests(columns: Sequence[np.ndarray], bucket: np.ndarray, count: int) -> list[str]:
    """For each bucket, a digest of its rows, whatever their order."""
    mixed = np.zeros(len(bucket), np.uint64)
    for column in columns:
        mixed = (mixed ^ _bits(column)) * _ODD
        mixed ^= mixed >> np.uint64(29)
    # Sums of 32 bits each are exact in floats, as long as there are fewer than two million rows in a bucket.
    halves = [np.bincount(bucket, half, count).astype(np.int64) for half in (mixed >> np.uint64(32), mixed & _LOW)]
    each = np.bincount(bucket, minlength=count)
    return [f"{n:x}.{high:x}.{low:x}" for n, high, low in zip(each, *halves, strict=True)]


def shape(data: Any) -> str:
    """A digest of how data is built: the names in it, and the types of its arrays."""
    return digest(repr(map_arrays(data, lambda array: array.dtype.str)).encode())


def map_arrays(data: Any, f: Callable[[np.ndarray], Any]) -> Any:
    """Apply a function to every array inside."""
    if isinstance(data, np.ndarray):
        return f(data)
    if isinstance(data, Mapping):
        return {k: map_arrays(v, f) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return type(data)(map_arrays(v, f) for v in data)
    return data


def concat(pieces: Sequence[Any]) -> Any:
    """Pieces of the same shape, with their arrays end to end; all else is as in the first."""
    first = pieces[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(pieces) if len(pieces) > 1 else first
    if isinstance(first, Mapping):
        return {k: concat([p[k] for p in pieces]) for k in first}
    if isinstance(first, (list, tuple)):
        return type(first)(concat([p[i] for p in pieces]) for i in range(len(first)))
    return first


def _bits(column: np.ndarray) -> np.ndarray:
    return column.view(np.uint64) if column.dtype.itemsize == 8 else column.astype(np.uint64)
