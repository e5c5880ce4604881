"""Higher moments: skewness and kurtosis, the third and the fourth moment of a distribution.

Count, mean and the sums of the second, third and fourth powers of deviations, combined as in Pébay, "Formulas for
Robust, One-Pass Parallel Computation of Covariances and Arbitrary-Order Statistical Moments" (2008), which continues
the formulas of Chan, Golub and LeVeque.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts, fold_pairwise
from slicewise.aggregates.checks import OneColumn, as_float64, from_first, need_numbers, need_types
from slicewise.aggregates.comoments import segment_means
from slicewise.columns import Column
from slicewise.kernels import segment_lengths

__all__ = ["HigherMoments", "HigherMomentsMonoid", "Kurtosis", "Skewness"]

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


def _across(na: Any, nb: Any, n: Any, delta: Any, a: Sequence[Any], b: Sequence[Any]) -> tuple[Any, Any, Any]:
    """What two runs of values have in powers of deviations beyond their own, their means being ``delta`` apart.

    ``a`` and ``b`` are the sums of second and third powers within each, ``n`` is the number of all values, at least 1.
    """
    p, q = na / n, nb / n
    second = delta * delta * (na * q)
    third = second * delta * (p - q) + 3 * delta * (p * b[0] - q * a[0])
    fourth = (
        second * delta * delta * (p * p - p * q + q * q)
        + 6 * delta * delta * (p * p * b[0] + q * q * a[0])
        + 4 * delta * (p * b[1] - q * a[1])
    )
    return second, third, fourth


class HigherMoments(OneColumn):
    """Count, mean, and the sums of second, third and fourth powers of deviations from it."""

    commutative = True
    invertible = True
    kind = "algebraic"
    identity = (0, 0.0, 0.0, 0.0, 0.0)
    #: The highest power that the result is made of.
    highest = 4

    def lift(self, *values: Any) -> tuple[Any, ...]:
        value = float(values[0])
        # 0.0, but NaN for an infinity: its deviation from itself is not a number, and Spark answers the same.
        return 1, value, *[value - value] * 3

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if not a[0] or not b[0]:
            return a if a[0] else b
        n, delta = a[0] + b[0], b[1] - a[1]
        across = _across(a[0], b[0], n, delta, a[2:], b[2:])
        return n, a[1] + delta * b[0] / n, *(x + y + z for x, y, z in zip(a[2:], b[2:], across, strict=True))

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if not b[0]:
            return a
        parts, others = (tuple(map(np.atleast_1d, partial)) for partial in (a, b))
        return tuple(part[0].item() for part in _taken_out(parts, others))

    def lower(self, partial: tuple[Any, ...]) -> float | None:
        n, _, second, *powers = partial
        if not n or second == 0:
            return None
        return float(self.finish(n, second, *powers))

    def finish(self, n: Any, second: Any, third: Any, fourth: Any = None) -> Any:
        """The result of sums of powers, the second being above 0; those above the ``highest`` may be missing."""
        raise NotImplementedError

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        need_numbers(self, types[0])
        return HigherMomentsMonoid(self, types)


class Skewness(HigherMoments):
    """How far a distribution leans to one side, as a double; null where the values do not vary.

    Positive where the longer tail is on the right; that of the population, as Spark's.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> skew = Skewness()
    >>> round(skew.lower(skew.combine(skew.combine(skew.lift(1), skew.lift(1)), skew.lift(4))), 9)
    0.707106781
    """

    name = "skewness"
    highest = 3

    def finish(self, n: Any, second: Any, third: Any, fourth: Any = None) -> Any:
        result = np.sqrt(n / second)
        result *= third
        result /= second
        return result


class Kurtosis(HigherMoments):
    """How heavy the tails of a distribution are beyond those of a normal one, as a double.

    Null where the values do not vary. The excess kurtosis of the population, as Spark's.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> tails = Kurtosis()
    >>> round(tails.lower(tails.combine(tails.combine(tails.lift(1), tails.lift(1)), tails.lift(4))), 9)
    -1.5
    """

    name = "kurtosis"

    def finish(self, n: Any, second: Any, third: Any, fourth: Any = None) -> Any:
        return n / second * (fourth / second) - 3.0


class HigherMomentsMonoid(Monoid):
    """Five parts: the number of values, their mean, and the sums of powers of their deviations from it."""

    aggregate: HigherMoments
    result = pa.float64()
    identity = HigherMoments.identity
    dtypes = (_INT64, *[_FLOAT64] * 4)
    kept_as = ("values", "mean", "squares", "cubes", "fourth powers")

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        values = as_float64(columns[0])
        with np.errstate(invalid="ignore"):
            return columns[0].mask.astype(np.int64), values, *[values - values] * 3

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = a[0] + b[0]
        with np.errstate(over="ignore", invalid="ignore"):
            delta = b[1] - a[1]
            across = _across(a[0], b[0], np.maximum(n, 1), delta, a[2:], b[2:])
            powers = (x + y + z for x, y, z in zip(a[2:], b[2:], across, strict=True))
            both = (n, a[1] + delta * (b[0] / np.maximum(n, 1)), *powers)
        no_a, no_b = a[0] == 0, b[0] == 0
        if not (no_a.any() or no_b.any()):
            return both
        return tuple(np.where(no_b, x, np.where(no_a, y, z)) for x, y, z in zip(a, b, both, strict=True))

    def invert(self, a: Parts, b: Parts) -> Parts:
        return _taken_out(a, b)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, *parts = from_first(starts, *parts)  # type: ignore[assignment]
        return fold_pairwise(self.combine, tuple(parts), starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        """The mean of a segment, then the powers of deviations from it."""
        begins, values, some = from_first(starts, as_float64(columns[0]), columns[0].mask)
        n = np.add.reduceat(some, begins, dtype=np.int64)
        mean = segment_means(some, values, n, begins)
        if not np.isfinite(mean).all():
            # An infinity or a NaN, or a sum that is too large where the mean is not.
            return self.fold(self.lift(columns, times), starts)
        with np.errstate(over="ignore", invalid="ignore"):
            deviations = np.where(some, values - np.repeat(mean, segment_lengths(begins, len(values))), 0.0)
            squares = deviations * deviations
            powers = squares, squares * deviations, squares * squares
            return n, mean, *(np.add.reduceat(power, begins) for power in powers)

    def lower(self, parts: Parts) -> Column:
        n, _, second, *powers = parts
        valid = second != 0
        if not np.minimum.reduce(n, initial=1) > 0:
            valid &= n > 0
        with np.errstate(all="ignore"):
            if valid.all():
                return Column(self.aggregate.finish(n, second, *powers), self.result)
            values = self.aggregate.finish(n, np.where(valid, second, 1.0), *powers)
        return Column(np.where(valid, values, 0.0), self.result, valid)


def _taken_out(a: Parts, b: Parts) -> Parts:
    """``a`` without ``b``: what remains has the powers of ``a`` less those of ``b`` and what is across both."""
    n, total = a[0] - b[0], np.maximum(a[0], 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = a[1] + (a[1] - b[1]) * (b[0] / np.maximum(n, 1))
        delta, nothing = b[1] - mean, (0.0, 0.0)
        second = np.maximum(a[2] - b[2] - _across(n, b[0], total, delta, nothing, nothing)[0], 0.0)
        third = a[3] - b[3] - _across(n, b[0], total, delta, (second, 0.0), b[2:])[1]
        fourth = a[4] - b[4] - _across(n, b[0], total, delta, (second, third), b[2:])[2]
    gone, kept = n == 0, b[0] == 0
    rest = zip(a[1:], (mean, second, third, np.maximum(fourth, 0.0)), strict=True)
    return n, *(np.where(gone, 0.0, np.where(kept, x, y)) for x, y in rest)
