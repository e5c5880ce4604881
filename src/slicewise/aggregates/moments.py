"""Products and moments: product, geometric mean, variances and standard deviations. All of them give doubles.

Variance is kept as count, mean and sum of squared deviations, and combined as in Chan, Golub and LeVeque, "Updating
Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979). The textbook form of the Reactive Aggregator
paper (sum and sum of squares) loses every digit of a small variance around a large mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts, fold_pairwise
from slicewise.aggregates.checks import OneColumn, as_float64, from_first, need_numbers, need_types, present
from slicewise.columns import Column
from slicewise.kernels import segment_lengths

__all__ = ["GeometricMean", "Product", "StdDev", "StdDevPop", "VarPop", "Variance"]

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


class Product(OneColumn):
    """The product of the values that are not null, as a double; null when there are none.

    Zeros are counted apart from the product of the other values, so that they can be taken out again, and its mantissa
    and its exponent are kept apart, so that a product too large or too small on the way to the answer costs nothing.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> product = Product()
    >>> product.lower(product.combine(product.lift(2), product.lift(5)))
    10.0
    """

    name = "product"
    commutative = True
    invertible = True
    kind = "distributive"
    #: Mantissa and exponent of the product of what is not 0, the number of zeros, the number of values.
    identity = (0.5, 1, 0, 0)

    def lift(self, *values: Any) -> tuple[float, int, int, int]:
        value = float(values[0])
        return (0.5, 1, 1, 1) if value == 0 else (*math.frexp(value), 0, 1)

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        mantissa, exponent = math.frexp(a[0] * b[0])
        return mantissa, exponent + a[1] + b[1], a[2] + b[2], a[3] + b[3]

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if a[3] == b[3]:
            return self.identity
        mantissa, exponent = math.frexp(a[0] / b[0])
        return mantissa, exponent + a[1] - b[1], a[2] - b[2], a[3] - b[3]

    def lower(self, partial: tuple[Any, ...]) -> float | None:
        mantissa, exponent, zeros, n = partial
        if not n:
            return None
        if zeros:
            return float(mantissa * 0.0)
        try:
            return math.ldexp(mantissa, exponent)
        except OverflowError:
            return math.copysign(math.inf, mantissa)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return ProductMonoid(self, types)


class ProductMonoid(Monoid):
    """Four parts: mantissa and exponent of the product of what is not 0, and the numbers of zeros and of values."""

    result = pa.float64()
    identity = (0.5, 1, 0, 0)
    dtypes = (_FLOAT64, _INT64, _INT64, _INT64)
    kept_as = ("mantissa", "exponent", "zeros", "values")
    #: The product of so many mantissas, each at least a half, is no subnormal number yet.
    _LONGEST: ClassVar[int] = 1000

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, valid = as_float64(columns[0]), columns[0].mask
        zero = valid & (values == 0)
        mantissa, exponent = np.frexp(np.where(valid & ~zero, values, 1.0))
        return mantissa, exponent.astype(np.int64), zero.astype(np.int64), valid.astype(np.int64)

    def combine(self, a: Parts, b: Parts) -> Parts:
        mantissa, exponent = np.frexp(a[0] * b[0])
        return mantissa, exponent + a[1] + b[1], a[2] + b[2], a[3] + b[3]

    def invert(self, a: Parts, b: Parts) -> Parts:
        zeros, n = a[2] - b[2], a[3] - b[3]
        with np.errstate(invalid="ignore"):
            mantissa, exponent = np.frexp(a[0] / b[0])
        return np.where(n == 0, 0.5, mantissa), np.where(n == 0, 1, exponent + a[1] - b[1]), zeros, n

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        lengths = segment_lengths(starts, len(parts[0]))
        pieces = np.maximum(-(-lengths // self._LONGEST), 1)
        if pieces.max(initial=1) > 1:
            first = np.cumsum(pieces) - pieces
            nth = np.arange(int(pieces.sum())) - np.repeat(first, pieces)
            return self.fold(self._fold(parts, np.repeat(starts, pieces) + nth * self._LONGEST), first)
        return self._fold(parts, starts)

    @staticmethod
    def _fold(parts: Parts, starts: np.ndarray) -> Parts:
        mantissa, exponent = np.frexp(np.multiply.reduceat(parts[0], starts))
        exponents, zeros, n = (np.add.reduceat(part, starts) for part in parts[1:])
        return mantissa, exponent + exponents, zeros, n

    def lower(self, parts: Parts) -> Column:
        mantissa, exponent, zeros, n = parts
        with np.errstate(all="ignore"):
            products = np.ldexp(mantissa, np.clip(exponent, -5000, 5000))
            return Column(np.where(zeros > 0, mantissa * 0.0, products), self.result, present(n))

    def failed(self, parts: Parts) -> np.ndarray:
        """An infinity that has left leaves no number behind; those that are still there give the same again."""
        return np.flatnonzero(np.isnan(parts[0]))

    def upgraded(self, parts: Parts) -> Parts:
        if len(parts) == 4:
            return parts
        mantissa, exponent = np.frexp(np.where(parts[0] == 0, 1.0, parts[0]))
        return mantissa, exponent.astype(np.int64), (parts[0] == 0).astype(np.int64), parts[1]


class GeometricMean(OneColumn):
    """The n-th root of the product of n values, as a double: ``exp(avg(ln(v)))``; null when there are none.

    A zero among the values gives 0.0, and a negative number NaN. Both are counted apart from the sum of logarithms, so
    that they can be taken out again: in the sum they would leave an infinity for good.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> mean = GeometricMean()
    >>> round(mean.lower(mean.combine(mean.lift(2), mean.lift(8))), 9)
    4.0
    """

    name = "geometric_mean"
    commutative = True
    invertible = True
    kind = "algebraic"
    identity = (0.0, 0, 0, 0)

    def lift(self, *values: Any) -> tuple[float, int, int, int]:
        value = float(values[0])
        if value == 0:
            return 0.0, 1, 1, 0
        if value < 0:
            return 0.0, 1, 0, 1
        return math.log(value), 1, 0, 0

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return self.identity if a[1] == b[1] else (a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3])

    def lower(self, partial: tuple[Any, ...]) -> float | None:
        logs, n, zeros, negatives = partial
        if not n:
            return None
        if negatives:
            return math.nan
        try:
            return math.exp((logs - math.inf if zeros else logs) / n)
        except OverflowError:
            return math.inf

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return GeometricMeanMonoid(self, types)


class GeometricMeanMonoid(Monoid):
    """Four parts: the sum of logarithms, and the numbers of values, of zeros and of negative values."""

    result = pa.float64()
    identity = (0.0, 0, 0, 0)
    dtypes = (_FLOAT64, _INT64, _INT64, _INT64)
    kept_as = ("logarithms", "values", "zeros", "negatives")

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values, valid = as_float64(columns[0]), columns[0].mask
        usable = valid & ~(values <= 0)
        return (
            np.log(np.where(usable, values, 1.0)),
            valid.astype(np.int64),
            (valid & (values == 0)).astype(np.int64),
            (valid & (values < 0)).astype(np.int64),
        )

    def combine(self, a: Parts, b: Parts) -> Parts:
        return tuple(x + y for x, y in zip(a, b, strict=True))

    def invert(self, a: Parts, b: Parts) -> Parts:
        with np.errstate(invalid="ignore"):
            logs, *counts = (x - y for x, y in zip(a, b, strict=True))
        return np.where(counts[0] == 0, 0.0, logs), *counts

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return tuple(np.add.reduceat(p, starts) for p in parts)

    def scan(self, parts: Parts) -> Parts:
        return tuple(np.cumsum(p) for p in parts)

    def lower(self, parts: Parts) -> Column:
        logs, n, zeros, negatives = parts
        with np.errstate(over="ignore", invalid="ignore"):
            means = np.exp((logs + np.where(zeros > 0, -np.inf, 0.0)) / np.maximum(n, 1))
        return Column(np.where(negatives > 0, np.nan, means), self.result, present(n))


class _Moments(OneColumn):
    """Count, mean and sum of squared deviations from it."""

    commutative = True
    invertible = True
    kind = "algebraic"
    identity = (0, 0.0, 0.0)
    sample = True
    root = False

    def lift(self, *values: Any) -> tuple[int, float, float]:
        value = float(values[0])
        # 0.0, but NaN for an infinity: its deviation from itself is not a number, and Spark answers the same.
        return 1, value, value - value

    def combine(self, a: tuple[int, float, float], b: tuple[int, float, float]) -> tuple[int, float, float]:
        if not a[0] or not b[0]:
            return a if a[0] else b
        n = a[0] + b[0]
        delta = b[1] - a[1]
        return n, a[1] + delta * b[0] / n, a[2] + b[2] + delta * delta * a[0] * b[0] / n

    def invert(self, a: tuple[int, float, float], b: tuple[int, float, float]) -> tuple[int, float, float]:
        if not b[0]:
            return a
        n = a[0] - b[0]
        if not n:
            return self.identity
        mean = a[1] + (a[1] - b[1]) * b[0] / n
        delta = b[1] - mean
        rest = a[2] - b[2] - delta * delta * n * b[0] / a[0]
        return n, mean, 0.0 if rest < 0 else rest

    def lower(self, partial: tuple[int, float, float]) -> float | None:
        n, _, squares = partial
        divisor = n - 1 if self.sample else n
        if divisor <= 0:
            return None
        return math.sqrt(squares / divisor) if self.root else squares / divisor

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return MomentsMonoid(self, types)


class Variance(_Moments):
    """The sample variance, as a double; null for fewer than two values.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> variance = Variance()
    >>> variance.lower(variance.combine(variance.lift(2), variance.lift(6)))
    8.0
    """

    name = "variance"


class VarPop(_Moments):
    """The population variance, as a double; 0.0 for one value, null for none.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> variance = VarPop()
    >>> variance.lower(variance.combine(variance.lift(2), variance.lift(6)))
    4.0
    """

    name = "var_pop"
    sample = False


class StdDev(_Moments):
    """The sample standard deviation, as a double; null for fewer than two values.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> deviation = StdDev()
    >>> deviation.lower(deviation.lift(2)) is None
    True
    >>> round(deviation.lower(deviation.combine(deviation.lift(2), deviation.lift(6))), 9)
    2.828427125
    """

    name = "stddev"
    root = True


class StdDevPop(_Moments):
    """The population standard deviation, as a double; 0.0 for one value, null for none.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> deviation = StdDevPop()
    >>> deviation.lower(deviation.combine(deviation.lift(2), deviation.lift(6)))
    2.0
    """

    name = "stddev_pop"
    sample = False
    root = True


class MomentsMonoid(Monoid):
    """Three parts: the number of values, their mean, and the sum of their squared deviations from it."""

    aggregate: _Moments
    result = pa.float64()
    identity = (0, 0.0, 0.0)
    dtypes = (_INT64, _FLOAT64, _FLOAT64)
    kept_as = ("values", "mean", "squares")

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values = as_float64(columns[0])
        with np.errstate(invalid="ignore"):
            return columns[0].mask.astype(np.int64), values, values - values

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = a[0] + b[0]
        with np.errstate(over="ignore", invalid="ignore"):
            delta = b[1] - a[1]
            share = b[0] / np.maximum(n, 1)
            mean = a[1] + delta * share
            squares = a[2] + b[2] + delta * delta * (a[0] * share)
        return self._unless_empty(a, b, (n, mean, squares))

    def invert(self, a: Parts, b: Parts) -> Parts:
        n = a[0] - b[0]
        with np.errstate(over="ignore", invalid="ignore"):
            mean = a[1] + (a[1] - b[1]) * (b[0] / np.maximum(n, 1))
            delta = b[1] - mean
            squares = a[2] - b[2] - delta * delta * (n * (b[0] / np.maximum(a[0], 1)))
        gone, kept = n == 0, b[0] == 0
        mean = np.where(gone, 0.0, np.where(kept, a[1], mean))
        return n, mean, np.where(gone, 0.0, np.where(kept, a[2], np.maximum(squares, 0.0)))

    @staticmethod
    def _unless_empty(a: Parts, b: Parts, both: Parts) -> Parts:
        no_a, no_b = a[0] == 0, b[0] == 0
        if not (no_a.any() or no_b.any()):
            return both
        return tuple(np.where(no_b, x, np.where(no_a, y, z)) for x, y, z in zip(a, b, both, strict=True))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, n, means, squares = from_first(starts, *parts)
        return self._fold(n, means, squares, np.add.reduceat(n, starts), starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        if columns[0].valid is not None:
            return self.fold(self.lift(columns, times), starts)
        starts, values = from_first(starts, as_float64(columns[0]))
        return self._fold(1, values, 0.0, segment_lengths(starts, len(values)), starts)

    def _fold(self, n: Any, means: np.ndarray, squares: Any, total: np.ndarray, starts: np.ndarray) -> Parts:
        """Two passes: the mean of a segment, then the deviations from it."""
        divisor = np.maximum(total, 1)
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.add.reduceat(n * means, starts) / divisor
            if not np.isfinite(mean).all():
                # An infinity or a NaN, or a sum that is too large where the mean is not.
                ones = np.ones(len(means), np.int64)
                return fold_pairwise(self.combine, (ones * n, means, (means - means) + squares), starts)
            deviations = means - np.repeat(mean, segment_lengths(starts, len(means)))
            # The rounding error of the mean; exactly 0 in exact arithmetic.
            error = np.add.reduceat(n * deviations, starts)
            spread = np.add.reduceat(squares + n * deviations * deviations, starts)
            return total, mean + error / divisor, np.maximum(spread - error * error / divisor, 0.0)

    def lower(self, parts: Parts) -> Column:
        n, _, squares = parts
        divisor = n - 1 if self.aggregate.sample else n
        values = squares / np.maximum(divisor, 1)
        return Column(np.sqrt(values) if self.aggregate.root else values, self.result, present(divisor))
