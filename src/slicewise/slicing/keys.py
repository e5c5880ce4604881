"""Keys: every different key gets a number, so that the engine only sees integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column, to_python

__all__ = ["KeyTable"]


class KeyTable:
    """Numbers for keys, in the order in which they were first seen. A null is a key like any other.

    Examples
    --------
    >>> table = KeyTable([pa.string()])
    >>> table.encode([pa.array(["b", None, "b"])], 3)
    array([0, 1, 0])
    >>> table.decode(np.array([1, 0]))[0].to_pylist()
    [None, 'b']
    """

    def __init__(self, types: Sequence[pa.DataType], names: Sequence[str] | None = None) -> None:
        self.types = tuple(types)
        #: What the columns are called, for messages.
        self.names = tuple(names) if names is not None else tuple(str(i) for i in range(len(types)))
        #: Whether values can be looked up as they are: equal ones are one key, and all have a hash.
        self._plain = not any(pa.types.is_nested(t) or pa.types.is_floating(t) for t in map(_without_codes, types))
        self.values: list[tuple[Any, ...]] = []
        #: How often the keys got other numbers.
        self.numbering = 0
        self._numbers: dict[Any, int] = {}
        #: The keys as columns, as many as were there when somebody last asked for them.
        self._columns: tuple[Column, ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def encode(self, columns: Sequence[pa.Array], rows: int) -> np.ndarray:
        """The number of each row's key; new keys are added. Without key columns there is one key, number 0."""
        if not columns:
            return np.zeros(rows, np.int64)
        coded = [_dictionary(c, name) for c, name in zip(columns, self.names, strict=True)]
        index, sizes = coded[0][0], len(coded[0][1])
        if len(coded) > 1:
            for codes, values in coded[1:]:
                index = index * len(values) + codes
                sizes *= len(values)
            # Several columns make a key: find the combinations that occur.
            packed = pa.array(index).dictionary_encode()
            combinations, index = packed.dictionary.to_numpy(), packed.indices.to_numpy().astype(np.int64)
            keys = [_unpack(int(c), [v for _, v in coded]) for c in combinations]
        else:
            keys = [(v,) for v in coded[0][1]]
        return np.array(self._look_up(keys), np.int64)[index] if keys else np.zeros(0, np.int64)

    def _look_up(self, keys: list[tuple[Any, ...]]) -> list[int]:
        if not self._plain:
            return [self.number(k) for k in keys]
        # Most keys were seen before, and then this is all there is to do.
        numbers = map(self._numbers.get, keys)
        return [self.number(k) if n is None else n for k, n in zip(keys, numbers, strict=True)]

    def number(self, key: tuple[Any, ...]) -> int:
        """The number of one key; a new one if it was never seen."""
        hashable = key if self._plain else tuple(_hashable(v) for v in key)
        number = self._numbers.get(hashable)
        if number is None:
            number = self._numbers[hashable] = len(self.values)
            self.values.append(key if self._plain else tuple(map(_normal_form, key)))
        return number

    def key(self, number: int) -> tuple[Any, ...]:
        """One key."""
        return self.values[number] if self.types else ()

    def decode(self, numbers: np.ndarray) -> tuple[Column, ...]:
        """The key columns of these keys."""
        if not self.types:
            return ()
        known = len(self._columns[0]) if self._columns else 0
        if known < len(self.values):
            # Keys are only ever added, often a few to very many.
            new = [Column.of([k[i] for k in self.values[known:]], type_) for i, type_ in enumerate(self.types)]
            both = zip(self._columns, new, strict=True) if known else zip(new, strict=True)
            self._columns = tuple(Column.concat(list(pieces)) for pieces in both)
        return tuple(c.take(numbers) for c in self._columns)

    def without_unused(self, used: np.ndarray) -> tuple[KeyTable, np.ndarray]:
        """A table of only these keys (ascending numbers), and for each old number the new one, or -1."""
        table = KeyTable(self.types, self.names)
        table.numbering = self.numbering + 1
        renumbered = np.full(len(self.values), -1)
        renumbered[used] = np.arange(len(used))
        for old in used.tolist():
            table.number(self.values[old])
        return table, renumbered


def _without_codes(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _dictionary(column: pa.Array, name: str) -> tuple[np.ndarray, list[Any]]:
    if pa.types.is_nested(column.type):
        values = to_python(column, f"key {name!r}")
        seen: dict[Any, int] = {}
        index = np.array([seen.setdefault(_hashable(v), len(seen)) for v in values], np.int64)
        first: dict[int, Any] = {}
        for value, number in zip(values, index.tolist(), strict=True):
            first.setdefault(number, value)
        return index, [first[i] for i in range(len(first))]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode("encode")
    elif column.null_count:
        column = column.dictionary_decode().dictionary_encode("encode")
    return column.indices.to_numpy(zero_copy_only=False).astype(np.int64), to_python(column.dictionary, f"key {name!r}")


def _unpack(packed: int, values: list[list[Any]]) -> tuple[Any, ...]:
    out = []
    for column in reversed(values):
        packed, at = divmod(packed, len(column))
        out.append(column[at])
    return tuple(reversed(out))


def _normal_form(value: Any) -> Any:
    """As Spark shows keys: -0.0 is 0.0, wherever it stands."""
    if isinstance(value, dict):
        return {k: _normal_form(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_normal_form(v) for v in value]
    return value + 0.0 if isinstance(value, float) else value


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    if isinstance(value, list):
        return tuple(_hashable(v) for v in value)
    if isinstance(value, float) and value != value:
        return "NaN", float  # NaN is not equal to itself, and yet it is one key
    return value
