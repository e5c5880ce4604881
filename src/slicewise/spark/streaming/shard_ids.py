"""Shard ids: which keys share a shard, and which id Spark sends to which partition, so that each has one shard."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

__all__ = ["shard_ids", "shard_number"]

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


def shard_number(keys: list[tuple[Column, T.DataType]], partitions: int) -> Column:
    """Which of the shards a row's key lives in; without keys, all rows live in the first."""
    if not keys:
        return F.lit(0)
    parts = [part for key, type_ in keys for part in _hashed(key, type_)]
    return F.pmod(F.xxhash64(*parts), F.lit(partitions)).cast("int")


def _hashed(key: Column, type_: T.DataType) -> list[Column]:
    """What is hashed of a key: its widest form, so that a key whose type grows stays in its shard.

    A decimal is hashed in two parts, since no decimal type holds all that others do: its text would do, but depends on
    the session's settings.
    """
    if isinstance(type_, T.DecimalType):
        return [F.floor(key).cast("decimal(38,0)"), (key % F.lit(1)).cast("decimal(38,38)")]
    if isinstance(type_, (T.ByteType, T.ShortType, T.IntegerType)):
        return [key.cast("long")]
    if isinstance(type_, T.FloatType):
        return [key.cast("double")]
    if isinstance(type_, T.ArrayType):
        element = type_.elementType
        if _in_parts(element):
            return [F.transform(key, lambda item: F.struct(*_hashed(item, element)))]
        # Not by F.transform, which fails on numbers of a Parquet file that are all null (Spark 4.3).
        return [key.cast(T.ArrayType(_widest(element)))]
    if isinstance(type_, T.StructType):
        return [part for field in type_.fields for part in _hashed(key.getField(field.name), field.dataType)]
    return [key]


def _in_parts(type_: T.DataType) -> bool:
    """Whether what is hashed of a value is not one value of a wider type."""
    return isinstance(type_, (T.DecimalType, T.StructType)) or (
        isinstance(type_, T.ArrayType) and _in_parts(type_.elementType)
    )


def _widest(type_: T.DataType) -> T.DataType:
    if isinstance(type_, (T.ByteType, T.ShortType, T.IntegerType)):
        return T.LongType()
    if isinstance(type_, T.FloatType):
        return T.DoubleType()
    return T.ArrayType(_widest(type_.elementType)) if isinstance(type_, T.ArrayType) else type_


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
