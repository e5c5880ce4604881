"""Weighted means: values that count as much as another column says, such as prices by their volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.checks import need_numbers, need_types
from slicewise.aggregates.comoments import TwoColumns, both_present
from slicewise.columns import Column

__all__ = ["WeightedAvg"]

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


class WeightedAvg(TwoColumns):
    """The mean of a column weighted by another, ``sum(v w) / sum(w)``, as a double; null if the weights sum to 0.

    Rows where either is null are left out. A trader's volume-weighted average price is ``weighted_avg("price",
    "volume")``.

    Parameters
    ----------
    value, weight : str, optional
        Numeric columns. Without them, the aggregate runs over pairs of single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> price = WeightedAvg()
    >>> price.lower(price.combine(price.lift(10.0, 300), price.lift(20.0, 100)))
    12.5
    """

    name = "weighted_avg"
    takes = ("value", "weight")
    commutative = True
    invertible = True
    kind = "algebraic"
    identity = (0.0, 0.0, 0)

    def __init__(self, value: str | None = None, weight: str | None = None) -> None:
        super().__init__(value, weight)

    def lift(self, *values: Any) -> tuple[float, float, int]:
        value, weight = map(float, values)
        return value * weight, weight, 1

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return a[0] + b[0], a[1] + b[1], a[2] + b[2]

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.identity if a[2] == b[2] else (a[0] - b[0], a[1] - b[1], a[2] - b[2])

    def lower(self, partial: tuple[Any, ...]) -> float | None:
        return partial[0] / partial[1] if partial[1] else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 2)
        for position, type_ in enumerate(types):
            need_numbers(self, type_, position)
        return WeightedMonoid(self, types)


class WeightedMonoid(Monoid):
    """Three parts: the sum of weighted values, that of weights, and the number of rows."""

    result = pa.float64()
    identity = (0.0, 0.0, 0)
    dtypes = (_FLOAT64, _FLOAT64, _INT64)
    kept_as = ("weighted", "weights", "pairs")

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        (values, weights), some = both_present(columns)
        with np.errstate(over="ignore", invalid="ignore"):
            return values * weights, weights, some.astype(np.int64)

    def combine(self, a: Parts, b: Parts) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return a[0] + b[0], a[1] + b[1], a[2] + b[2]

    def invert(self, a: Parts, b: Parts) -> Parts:
        n = a[2] - b[2]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(n == 0, 0.0, a[0] - b[0]), np.where(n == 0, 0.0, a[1] - b[1]), n

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(np.add.reduceat(p, starts) for p in parts)

    def scan(self, parts: Parts) -> Parts:
        with np.errstate(over="ignore", invalid="ignore"):
            return tuple(np.cumsum(p) for p in parts)

    def lower(self, parts: Parts) -> Column:
        total, weight, _ = parts
        valid = weight != 0
        with np.errstate(over="ignore", invalid="ignore"):
            means = total / np.where(valid, weight, 1.0)
        return Column(np.where(valid, means, 0.0), self.result, None if valid.all() else valid)
