"""Sketches of frequent items, and the most frequent values estimated from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.checks import check_k
from slicewise.aggregates.ordering import order_key
from slicewise.aggregates.sketches import OfSketch, need_hashable, package
from slicewise.columns import Column

__all__ = ["ApproxMostFrequent"]

_REQUIRED: Any = object()
#: The sketch counts at least so many values for each one that is asked for, and at least 2 to the power of the second.
_SPARE, _SMALLEST = 8, 10


class ApproxMostFrequent(OfSketch):
    """About the ``k`` most frequent values with their counts, most frequent first, then by ascending value.

    An array of structs of ``value`` and ``count``, empty when there are no values; nulls are left out. Counts are never
    too small, and too large by at most ``3.5 / m`` of all rows, where m is the number of counters; exact as long as
    there are no more than three quarters of m different values.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    k : int
        How many values are wanted; there are at least 1024 counters, and 8 for each of them.

    Notes
    -----
    Partials hold up to m values with their counts. Runtime complexity: O(d) updates for the d different values of a
    slice, O(m) to merge two partials.

    Examples
    --------
    >>> top = ApproxMostFrequent(k=1)
    >>> top.lower(top.combine(top.lift("b"), top.combine(top.lift("a"), top.lift("b"))))
    [{'value': 'b', 'count': 2}]
    """

    name = "approx_most_frequent"
    error = "counts up to 0.34% of all rows too large"
    takes_all = True

    def __init__(self, column: str | None = None, k: int = _REQUIRED) -> None:
        super().__init__(column)
        self.k = check_k(self.name, k, missing=k is _REQUIRED)
        self.lg_m = max(_SMALLEST, math.ceil(math.log2(_SPARE * self.k)))

    def parameters(self) -> tuple[Any, ...]:
        return (self.k,)

    def of_values(self, values: Iterable[Any], counts: Iterable[int] = ()) -> bytes:
        sketch = package().frequent_strings_sketch(self.lg_m)
        for value, count in zip(values, counts, strict=True):
            sketch.update(_text(value), int(count))
        data: bytes = sketch.serialize()
        return data

    def merged(self, sketches: Sequence[bytes]) -> bytes:
        kind = package().frequent_strings_sketch
        sketch = kind(self.lg_m)
        for other in sketches:
            sketch.merge(kind.deserialize(other))
        data: bytes = sketch.serialize()
        return data

    def lower(self, partial: bytes) -> list[dict[str, Any]]:
        return self._best(partial, _value)

    def lower_as(self, partial: bytes, type_: pa.DataType) -> list[dict[str, Any]]:
        return self._best(partial, lambda text: _value_as(text, type_))

    def _best(self, partial: bytes, value_of: Any) -> list[dict[str, Any]]:
        if not partial:
            return []
        sketches_of = package()
        sketch = sketches_of.frequent_strings_sketch.deserialize(partial)
        items = sketch.get_frequent_items(sketches_of.NO_FALSE_NEGATIVES)
        # By count, the largest first: what comes behind the k-th can only tie with it.
        least = items[self.k - 1][1] if len(items) > self.k else 0
        best = [(value_of(item), count) for item, count, *_ in items if count >= least]
        best.sort(key=lambda pair: (-pair[1], order_key(pair[0])))
        return [{"value": value, "count": count} for value, count in best[: self.k]]

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(pa.struct([("value", types[0]), ("count", pa.int64())]))

    def need(self, type_: pa.DataType) -> None:
        need_hashable(self, type_, as_spark=False)


def _text(value: Any) -> str:
    """A value as the sketch holds it: text, behind a letter for what it is."""
    for kind, (cls, write, _) in _KINDS.items():
        if isinstance(value, cls):
            return kind + write(value)
    return f"s{value}"


def _value(text: str) -> Any:
    return _KINDS[text[0]][2](text[1:])


#: The kinds of values, and how they are written and read.
_KINDS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "s": (str, str, str),
    "b": (bool, lambda value: str(int(value)), lambda text: text == "1"),
    "i": (int, str, int),
    "f": (float, lambda value: repr(value + 0.0), float),
    "d": (Decimal, str, Decimal),
    "x": (bytes, bytes.hex, bytes.fromhex),
}


def _value_as(text: str, type_: pa.DataType) -> Any:
    """The value of a column of this type that a text stands for."""
    held = _value(text)
    if pa.types.is_decimal(type_):
        return Column(np.array([int(held)], object), type_).to_pylist()[0]
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return bytes.fromhex(held)
    return Column(np.array([held]), type_).to_pylist()[0] if isinstance(held, int) else held
