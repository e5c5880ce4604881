"""Bits: truth values that are counted and joined, and integers bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts
from slicewise.aggregates.checks import OneColumn, need_booleans, need_integers, need_types, present
from slicewise.columns import Column

__all__ = ["BitAnd", "BitOr", "BitXor", "BoolAnd", "BoolOr", "CountIf"]

_BOOL = np.dtype(bool)
_INT64 = np.dtype(np.int64)


class CountIf(OneColumn):
    """The number of rows where a boolean column is true, as a 64-bit integer.

    Parameters
    ----------
    column : str, optional
        A boolean column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> met = CountIf()
    >>> met.lower(met.combine(met.lift(True), met.lift(False)))
    1
    """

    name = "count_if"
    commutative = True
    invertible = True
    kind = "distributive"
    identity = 0

    def lift(self, *values: Any) -> int:
        return int(bool(values[0]))

    def combine(self, a: int, b: int) -> int:
        return a + b

    def invert(self, a: int, b: int) -> int:
        return a - b

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.int64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_booleans(self, types[0])
        return CountIfMonoid(self, types)


class CountIfMonoid(Monoid):
    """Partials are plain int64 counts."""

    result = pa.int64()
    identity = (0,)
    dtypes = (_INT64,)
    exact = True
    kept_as = ("true",)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return (((columns[0].values != 0) & columns[0].mask).astype(np.int64),)

    def combine(self, a: Parts, b: Parts) -> Parts:
        return (a[0] + b[0],)

    def invert(self, a: Parts, b: Parts) -> Parts:
        return (a[0] - b[0],)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return (np.add.reduceat(parts[0], starts),)

    def scan(self, parts: Parts) -> Parts:
        return (np.cumsum(parts[0]),)

    def lower(self, parts: Parts) -> Column:
        return Column(parts[0], self.result)


class _Truth(OneColumn):
    """Whether all or some values are true: which of the values that are not null decide, and how many do."""

    commutative = True
    invertible = True
    kind = "distributive"
    #: How many values there are, and how many of them are ``decisive``.
    identity = (0, 0)
    decisive = True

    def lift(self, *values: Any) -> tuple[int, int]:
        return 1, int(bool(values[0]) is self.decisive)

    def combine(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] + b[0], a[1] + b[1]

    def invert(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] - b[0], a[1] - b[1]

    def lower(self, partial: tuple[int, int]) -> bool | None:
        n, decisive = partial
        return (decisive > 0) is self.decisive if n else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.bool_()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_booleans(self, types[0])
        return TruthMonoid(self, types)


class BoolAnd(_Truth):
    """Whether every value that is not null is true; null when there are none. Also called ``every``.

    It counts the values that are false, so that they can be taken out again.

    Parameters
    ----------
    column : str, optional
        A boolean column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> every = BoolAnd()
    >>> every.lower(every.combine(every.lift(True), every.lift(False)))
    False
    """

    name = "bool_and"
    decisive = False


class BoolOr(_Truth):
    """Whether some value is true; null when there are none but nulls. Also called ``some``.

    It counts the values that are true, so that they can be taken out again.

    Parameters
    ----------
    column : str, optional
        A boolean column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> some = BoolOr()
    >>> some.lower(some.combine(some.lift(True), some.lift(False)))
    True
    """

    name = "bool_or"


class TruthMonoid(Monoid):
    """Two parts: the number of values, and of those among them that decide."""

    aggregate: _Truth
    result = pa.bool_()
    identity = (0, 0)
    dtypes = (_INT64, _INT64)
    exact = True

    def __init__(self, aggregate: _Truth, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.kept_as = ("values", "true" if aggregate.decisive else "false")

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        some = columns[0].mask
        decisive = ((columns[0].values != 0) == self.aggregate.decisive) & some
        return some.astype(np.int64), decisive.astype(np.int64)

    def combine(self, a: Parts, b: Parts) -> Parts:
        return a[0] + b[0], a[1] + b[1]

    def invert(self, a: Parts, b: Parts) -> Parts:
        return a[0] - b[0], a[1] - b[1]

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return np.add.reduceat(parts[0], starts), np.add.reduceat(parts[1], starts)

    def scan(self, parts: Parts) -> Parts:
        return np.cumsum(parts[0]), np.cumsum(parts[1])

    def lower(self, parts: Parts) -> Column:
        n, decisive = parts
        truth = (decisive > 0) == self.aggregate.decisive
        return Column(truth.astype(np.int64), self.result, present(n))


class _Bitwise(OneColumn):
    """Integers joined bit by bit, in the column's type."""

    commutative = True
    kind = "distributive"
    #: The bits of no value, and how many values there are.
    identity: tuple[int, int] = (0, 0)
    ufunc: np.ufunc

    def lift(self, *values: Any) -> tuple[int, int]:
        return int(values[0]), 1

    def combine(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return int(self.ufunc(a[0], b[0])), a[1] + b[1]

    def lower(self, partial: tuple[int, int]) -> int | None:
        return partial[0] if partial[1] else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return types[0]

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_integers(self, types[0])
        return BitwiseMonoid(self, types, self.ufunc, self.identity)


class BitAnd(_Bitwise):
    """The bits that all integers have in common, in the column's type; null when there are no values.

    Parameters
    ----------
    column : str, optional
        A column of integers. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> common = BitAnd()
    >>> common.lower(common.combine(common.lift(6), common.lift(3)))
    2
    """

    name = "bit_and"
    identity = (-1, 0)
    ufunc = np.bitwise_and


class BitOr(_Bitwise):
    """The bits that some integer has, in the column's type; null when there are no values.

    Parameters
    ----------
    column : str, optional
        A column of integers. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> flags = BitOr()
    >>> flags.lower(flags.combine(flags.lift(6), flags.lift(3)))
    7
    """

    name = "bit_or"
    ufunc = np.bitwise_or


class BitXor(_Bitwise):
    """The bits that an odd number of integers have, in the column's type; null when there are no values.

    Its own inverse: what is joined a second time is gone.

    Parameters
    ----------
    column : str, optional
        A column of integers. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> parity = BitXor()
    >>> parity.lower(parity.combine(parity.lift(6), parity.lift(3)))
    5
    """

    name = "bit_xor"
    invertible = True
    ufunc = np.bitwise_xor

    def invert(self, a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
        return a[0] ^ b[0], a[1] - b[1]


class BitwiseMonoid(Monoid):
    """Two parts: the bits, and the number of values."""

    dtypes = (_INT64, _INT64)
    exact = True

    def __init__(
        self, aggregate: Aggregate, types: Sequence[pa.DataType], ufunc: np.ufunc, identity: tuple[int, int]
    ) -> None:
        super().__init__(aggregate, types)
        self.result, self.identity = types[0], identity
        self.kept_as = (aggregate.name, "values")
        self._ufunc = ufunc

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, valid = columns[0].values, columns[0].valid
        if valid is None:
            return values, np.ones(len(values), np.int64)
        return np.where(valid, values, self.identity[0]), valid.astype(np.int64)

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self._ufunc(a[0], b[0]), a[1] + b[1]

    def invert(self, a: Parts, b: Parts) -> Parts:
        if not self.aggregate.invertible:
            return super().invert(a, b)
        return self._ufunc(a[0], b[0]), a[1] - b[1]

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return self._ufunc.reduceat(parts[0], starts), np.add.reduceat(parts[1], starts)

    def scan(self, parts: Parts) -> Parts:
        return self._ufunc.accumulate(parts[0]), np.cumsum(parts[1])

    def lower(self, parts: Parts) -> Column:
        bits, n = parts
        return Column(np.where(n > 0, bits, 0), self.result, present(n))
