"""Key numbers: a number for each different key of some Arrow columns; keys are equal where they are to Spark."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slicewise.columns import Column, to_python

__all__ = ["KeyNumbers", "normal_form", "number_keys"]


@dataclass(frozen=True, eq=False)
class KeyNumbers:
    """Stands for a table of keys where keys stay numbers until the end; ``columns`` are what the numbers stand for."""

    columns: Sequence[pa.Array]

    def key(self, number: int) -> tuple[Any, ...]:
        """One key, for errors."""
        return tuple(column[number].as_py() for column in self.columns)

    @functools.cached_property
    def values(self) -> list[tuple[Any, ...]]:
        """All keys in the order of their numbers."""
        return list(zip(*(to_python(column, "a key") for column in self.columns), strict=True))

    def decode(self, numbers: np.ndarray) -> tuple[Column, ...]:
        """The numbers themselves."""
        return (Column(numbers, pa.int64()),)


def number_keys(keys: Sequence[pa.Array], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A number for each different key, and for each number a row that has it. A null is a key like any other.

    >>> number_keys([pa.array(["b", None, "b"]), pa.array([1, 1, 1])], 3)
    (array([0, 1, 0]), array([0, 1]))
    """
    numbers = np.zeros(rows, np.int64)
    if not rows:
        return numbers, numbers
    for key in keys:
        codes = _codes(key)
        numbers = numbers * (int(codes.max()) + 1) + codes
        numbers = _codes(pa.array(numbers))  # small again, so that the next column cannot overflow it
    firsts = np.empty(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(rows)[::-1]
    return numbers, firsts


def _codes(key: pa.Array) -> np.ndarray:
    if pa.types.is_struct(key.type):
        fields = [key.is_null().cast(pa.int8()), *key.flatten()]
        return number_keys(fields, len(key))[0]
    if pa.types.is_nested(key.type):
        return _codes_of_lists(key)
    if pa.types.is_floating(key.type):
        # Spark's keys: NaN is one key, and -0.0 is 0.0.
        values = key.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0
        values[np.isnan(values)] = np.nan
        key = pa.array(values.view(f"i{values.itemsize}"), mask=key.is_null().to_numpy(zero_copy_only=False))
    codes: np.ndarray = key.dictionary_encode("encode").indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64)


def _codes_of_lists(key: pa.Array) -> np.ndarray:
    """Lists are compared by the codes of their items: Python's objects could not hold every instant of Arrow's."""
    items = _codes(key.flatten())
    lengths = pc.list_value_length(key).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths)
    seen: dict[bytes | None, int] = {}
    codes = [
        seen.setdefault(items[start:end].tobytes() if some else None, len(seen))
        for start, end, some in zip((ends - lengths).tolist(), ends.tolist(), key.is_valid().to_pylist(), strict=True)
    ]
    return np.array(codes, np.int64)


def normal_form(key: pa.Array) -> pa.Array:
    """Keys as Spark's own ``groupBy`` shows them: -0.0 is 0.0, wherever it stands.

    >>> normal_form(pa.array([[-0.0, None], None])).to_pylist()
    [[0.0, None], None]
    """
    if pa.types.is_floating(key.type):
        return pc.add(key, pa.scalar(0.0, key.type))
    if pa.types.is_struct(key.type):
        fields = [normal_form(field) for field in key.flatten()]
        return pa.StructArray.from_arrays(fields, fields=list(key.type), mask=key.is_null())
    if pa.types.is_list(key.type):
        lengths = pc.list_value_length(key).fill_null(0).to_numpy(zero_copy_only=False)
        starts = pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32))
        return pa.ListArray.from_arrays(starts, normal_form(key.flatten()), type=key.type, mask=key.is_null())
    return key
