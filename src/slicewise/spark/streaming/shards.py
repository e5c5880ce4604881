"""Shards: which keys live together, and where. Each shard lands on a partition of its own."""

from __future__ import annotations

__all__ = ["shard_ids"]

_SEED = 42
_MASK = 0xFFFFFFFF


def shard_ids(partitions: int) -> tuple[int, ...]:
    """One id per partition: the smallest integer that Spark's hash partitioning sends there.

    Id 0 is always among them, whatever the number of partitions, so that it always meets its old state again and can
    tell that the number has changed.

    >>> shard_ids(4)
    (12, 6, 2, 0)
    """
    ids: dict[int, int] = {}
    candidate = 0
    while len(ids) < partitions:
        ids.setdefault(_hash(candidate) % partitions, candidate)
        candidate += 1
    return tuple(ids[p] for p in range(partitions))


def _hash(value: int) -> int:
    """Spark's hash of a 32-bit integer (Murmur3, x86, 32 bits), as a signed number."""
    k = (value & _MASK) * 0xCC9E2D51 & _MASK
    k = _rotated(k, 15) * 0x1B873593 & _MASK
    h = _rotated(_SEED ^ k, 13) * 5 + 0xE6546B64 & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >= 1 << 31 else h


def _rotated(x: int, by: int) -> int:
    return (x << by | x >> (32 - by)) & _MASK
