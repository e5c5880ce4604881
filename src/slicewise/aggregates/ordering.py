"""Ordering: Spark's order of the values of a column, as integers. Used by picks and wherever rows are put in order.

NaN is larger than any number and equal to itself, -0.0 equals 0.0; lists go item by item, structs field by field with
nulls first, maps, which Spark does not compare, by their sorted entries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.exact import INT64_MAX
from slicewise.columns import Column

__all__ = ["order_key", "order_keys", "sort_keys"]


def order_key(value: Any) -> tuple[Any, ...]:
    """What a single value is sorted and told apart by: a null (inside of others only), then values, then NaN.

    >>> sorted([2.0, float("nan"), None, -1.0], key=order_key)
    [None, -1.0, 2.0, nan]
    """
    # Python's NaN equals nothing, and its lists and dicts have no hash.
    if value is None:
        return (0,)
    if isinstance(value, (list, tuple)):
        return (1, tuple(order_key(v) for v in value))
    if isinstance(value, Mapping):
        return (1, tuple(order_key(v) for v in value.values()))
    return (1, value) if value == value else (2,)


def order_keys(values: np.ndarray, some: np.ndarray, type_: pa.DataType | None = None) -> np.ndarray:
    """Integers in Spark's order of the values, equal where those are; of use within one call only.

    The integer has no meaning where ``some`` is False, since there is no value. ``type_`` is needed for nested values
    only.

    >>> order_keys(np.array(["b", "a", None, "b"], object), np.array([True, True, False, True]))
    array([1, 0, 0, 1])
    >>> np.argsort(order_keys(np.array([np.nan, np.inf, -1.0, -np.inf]), np.ones(4, bool)))
    array([3, 2, 1, 0])
    >>> lists = Column.of([[2], [1, None], [1], [2]])
    >>> order_keys(lists.values, lists.mask, lists.type)
    array([2, 1, 0, 2])
    """
    if values.dtype == np.int64:
        return values
    if values.dtype == np.float64:
        # The bits of a double order as integers do, once those of negative numbers are turned around. Adding 0.0 turns
        # -0.0 into 0.0; a NaN may carry a sign, which must not make it the smallest of all.
        bits = np.where(np.isnan(values), np.nan, values + 0.0).view(np.int64)
        return bits ^ ((bits >> 63) & INT64_MAX)
    keys = np.zeros(len(values), np.int64)
    items = values[some].tolist()
    if type_ is not None and pa.types.is_nested(type_):
        items = list(map(_item_key(type_), items))
    ranks = {item: rank for rank, item in enumerate(sorted(set(items)))}
    keys[some] = [ranks[item] for item in items]
    return keys


def sort_keys(column: Column) -> list[np.ndarray]:
    """Arrays by which ``np.lexsort`` puts a column in Spark's order, nulls first; the most important one last.

    >>> values = Column.of([2.0, None, float("nan"), -1.0])
    >>> np.lexsort(sort_keys(values))
    array([1, 3, 0, 2])
    """
    keys = order_keys(column.values, column.mask, column.type)
    return [keys] if column.valid is None else [np.where(column.valid, keys, 0), column.valid]


def _item_key(type_: pa.DataType) -> Callable[[Any], Any]:
    """A function from the values of a type to what Python compares and hashes in the same order."""
    t = pa.types
    if t.is_map(type_):
        key, item = _item_key(type_.key_type), _or_null(_item_key(type_.item_type))
        return lambda value: tuple(sorted((key(k), item(v)) for k, v in _entries(value)))
    if t.is_struct(type_):
        fields = [(field.name, _or_null(_item_key(field.type))) for field in type_]
        return lambda value: tuple(key(value[name]) for name, key in fields)
    if t.is_list(type_) or t.is_large_list(type_) or t.is_fixed_size_list(type_):
        inner = _or_null(_item_key(type_.value_type))
        return lambda value: tuple(map(inner, value))
    if t.is_floating(type_):
        return lambda value: (1, 0.0) if value != value else (0, value)
    return lambda value: value


def _or_null(key: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    return lambda value: (0,) if value is None else (1, key(value))


def _entries(value: Any) -> Any:
    return value.items() if isinstance(value, Mapping) else value
