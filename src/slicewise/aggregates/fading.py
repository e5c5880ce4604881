"""Fading: means in which old rows weigh less."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Self

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.checks import OneColumn, as_float64, from_first, need_numbers, need_types
from slicewise.aggregates.exact import INT64_MIN
from slicewise.amounts import INTEGER, TIME, Amount, in_unit, to_amount
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.kernels import segment_lengths

__all__ = ["Ewma"]

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)
_REQUIRED: Any = object()


class Ewma(OneColumn):
    """The exponentially weighted moving average, as a double: a row counts half as much per half-life of its age.

    ``sum(v 2^(-(last - t)/h)) / sum(2^(-(last - t)/h))``, where ``last`` is the time of the last row. Null rows are
    left out; null when there are no others. Over single values, which have no event time, the times are positions.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    half_life : str, timedelta or int
        How old a row is that counts half: a duration, or an integer for integer time.

    Examples
    --------
    >>> recent = Ewma(half_life=1)
    >>> recent.lower(recent.combine(recent.lift(10), recent.lift(40)))
    30.0
    """

    name = "ewma"
    timed = True
    kind = "algebraic"
    #: The number of values, the sum of their weights with them, and that of weights.
    identity = (0, 0.0, 0.0)

    def __init__(self, column: str | None = None, half_life: str | int | timedelta | Amount = _REQUIRED) -> None:
        super().__init__(column)
        if half_life is _REQUIRED:
            raise AggregateError("`half_life` of `ewma` must be given; got nothing: '10 minutes' is one")
        amount = to_amount(half_life, name="half_life")
        if not amount.measure.is_event_time:
            raise AggregateError(
                f"`half_life` of `ewma` must be a duration, or an integer for integer time; got {amount}: "
                "'10 minutes' is one"
            )
        self.half_life = amount

    @property
    def lengths(self) -> Mapping[str, Amount]:
        return {"half_life": self.half_life}

    def in_unit(self, unit: str | None) -> Self:
        measure = self.half_life.measure
        if (unit is None and measure == INTEGER) or (measure.kind == "time" and measure.unit == (unit or TIME.unit)):
            return self
        converted = copy.copy(self)
        converted.half_life = in_unit(self.half_life, unit or TIME.unit, name="half_life")
        return converted

    def parameters(self) -> tuple[Any, ...]:
        return (self.half_life.size if self.half_life.measure == INTEGER else str(self.half_life),)

    def lift(self, *values: Any) -> tuple[int, float, float]:
        return 1, float(values[0]), 1.0

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        faded = 2.0 ** (-b[0] / self.half_life.size)
        return a[0] + b[0], float(_faded(a[1], faded)) + b[1], a[2] * faded + b[2]

    def lower(self, partial: tuple[Any, ...]) -> float | None:
        return partial[1] / partial[2] if partial[0] else None

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return EwmaMonoid(self, types)


def _faded(total: Any, weight: Any) -> Any:
    # An infinity stays one, however little it weighs: times the 0.0 that a small weight becomes, it would be NaN.
    finite = np.isfinite(total)
    return total * weight if np.all(finite) else np.where(finite, total * np.where(finite, weight, 1.0), total)


class EwmaMonoid(Monoid):
    """Three parts: the time of the last row, and the sums of weighted values and of weights as of that time.

    A sum of weights of 0.0 means that there are no rows, since the last row weighs 1.
    """

    aggregate: Ewma
    result = pa.float64()
    identity = (INT64_MIN, 0.0, 0.0)
    dtypes = (_INT64, _FLOAT64, _FLOAT64)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        some = columns[0].mask
        return np.where(some, times, INT64_MIN), as_float64(columns[0]), some.astype(np.float64)

    def _at(self, last: np.ndarray, parts: Parts) -> Parts:
        """The sums as of a later time."""
        at, total, weights = parts
        some = weights > 0
        age = last - at if some.all() else np.where(some, last - np.where(some, at, last), 0)
        weight = np.exp2(age / -self.aggregate.half_life.size)
        with np.errstate(under="ignore"):
            return _faded(total, weight), weights * weight

    def combine(self, a: Parts, b: Parts) -> Parts:
        last = np.maximum(a[0], b[0])
        # Slices come in order as a rule, and what is behind has not aged: half of the powers are 1.
        (x, weight_x), (y, weight_y) = self._at(last, a), b[1:] if (b[0] == last).all() else self._at(last, b)
        with np.errstate(over="ignore", invalid="ignore"):
            return last, x + y, weight_x + weight_y

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, *rest = from_first(starts, *parts)
        last = np.maximum.reduceat(rest[0], starts)
        totals, weights = self._at(np.repeat(last, segment_lengths(starts, len(rest[0]))), tuple(rest))
        with np.errstate(over="ignore", invalid="ignore"):
            return last, np.add.reduceat(totals, starts), np.add.reduceat(weights, starts)

    def lower(self, parts: Parts) -> Column:
        valid = parts[2] > 0
        with np.errstate(over="ignore", invalid="ignore"):
            means = parts[1] / np.where(valid, parts[2], 1.0)
        return Column(np.where(valid, means, 0.0), self.result, None if valid.all() else valid)
