"""Co-moments: how two columns vary together. Covariances and correlation; regressions are in ``regression``.

The partial is that of variance in two dimensions: the number of pairs, both means, both sums of squared deviations and
the sum of their products. It is combined as in Chan, Golub and LeVeque (see ``moments``), so that digits survive where
means are large. All aggregates of the same two columns have the same partial, and differ in ``lower`` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, fold_pairwise
from slicewise.aggregates.checks import as_float64, check_column, from_first, need_numbers, need_types
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.kernels import segment_lengths

__all__ = [
    "CoMoments",
    "CoMomentsMonoid",
    "Corr",
    "CovarPop",
    "CovarSamp",
    "TwoColumns",
    "both_present",
    "segment_means",
]

_INT64 = np.dtype(np.int64)
_FLOAT64 = np.dtype(np.float64)


class TwoColumns(Aggregate):
    """An aggregate of two columns, whose parameters have the names of ``takes``; without them, of single values."""

    takes = ("y", "x")

    def __init__(self, first: str | None, second: str | None) -> None:
        if (first is None) != (second is None):
            one, other = self.takes
            raise AggregateError(
                f"`{self.name}` takes two columns, `{one}` and `{other}`; got {one}={first!r}, {other}={second!r}: "
                "give both"
            )
        super().__init__(
            *check_column(self.name, self.takes[0], first), *check_column(self.name, self.takes[1], second)
        )


class CoMoments(TwoColumns):
    """Pairs of numbers: how many, both means, both spreads and the sum of products of deviations.

    A partial is ``(n, mean y, mean x, yy, xx, yx)``. Subclasses say with ``finish`` what follows from arrays of them.
    """

    commutative = True
    invertible = True
    kind = "algebraic"
    identity = (0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def __init__(self, y: str | None = None, x: str | None = None) -> None:
        super().__init__(y, x)

    def lift(self, *values: Any) -> tuple[Any, ...]:
        y, x = map(float, values)
        # 0.0, but NaN for an infinity: its deviation from itself is not a number, and Spark answers the same.
        return 1, y, x, y - y, x - x, (y - y) * (x - x)

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if not a[0] or not b[0]:
            return a if a[0] else b
        n = a[0] + b[0]
        share = b[0] / n
        dy, dx, weight = b[1] - a[1], b[2] - a[2], a[0] * share
        spreads = (p + q + d * weight for p, q, d in zip(a[3:], b[3:], (dy * dy, dx * dx, dy * dx), strict=True))
        return n, a[1] + dy * share, a[2] + dx * share, *spreads

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        if not b[0]:
            return a
        n = a[0] - b[0]
        if not n:
            return self.identity
        y, x = (p + (p - q) * b[0] / n for p, q in zip(a[1:3], b[1:3], strict=True))
        dy, dx, weight = b[1] - y, b[2] - x, n * (b[0] / a[0])
        yy, xx, yx = (p - q - d * weight for p, q, d in zip(a[3:], b[3:], (dy * dy, dx * dx, dy * dx), strict=True))
        return n, y, x, max(yy, 0.0) if yy == yy else yy, max(xx, 0.0) if xx == xx else xx, yx

    def lower(self, partial: tuple[Any, ...]) -> Any:
        parts = tuple(np.array([p], d) for p, d in zip(partial, CoMomentsMonoid.dtypes, strict=True))
        with np.errstate(all="ignore"):
            values, valid = self.finish(*parts)
        return values[0].item() if valid[0] else None

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The results of partials, and where there are any: what this aggregate makes of the moments."""
        raise NotImplementedError

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.float64()

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 2)
        for position, type_ in enumerate(types):
            need_numbers(self, type_, position)
        return CoMomentsMonoid(self, types)


class CovarPop(CoMoments):
    """The population covariance of two columns, as a double; 0.0 for one pair, null for none.

    Rows where either is null are left out.

    Parameters
    ----------
    col1, col2 : str, optional
        Numeric columns. Without them, the aggregate runs over pairs of single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> covariance = CovarPop()
    >>> covariance.lower(covariance.combine(covariance.lift(1, 10), covariance.lift(3, 20)))
    5.0
    """

    name = "covar_pop"
    takes = ("col1", "col2")

    def __init__(self, col1: str | None = None, col2: str | None = None) -> None:
        super().__init__(col1, col2)

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return moments[4] / np.maximum(n, 1), n > 0


class CovarSamp(CoMoments):
    """The sample covariance of two columns, as a double; null for fewer than two pairs.

    Rows where either is null are left out.

    Parameters
    ----------
    col1, col2 : str, optional
        Numeric columns. Without them, the aggregate runs over pairs of single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> covariance = CovarSamp()
    >>> covariance.lower(covariance.combine(covariance.lift(1, 10), covariance.lift(3, 20)))
    10.0
    """

    name = "covar_samp"
    takes = ("col1", "col2")

    def __init__(self, col1: str | None = None, col2: str | None = None) -> None:
        super().__init__(col1, col2)

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return moments[4] / np.maximum(n - 1, 1), n > 1


class Corr(CoMoments):
    """Pearson's correlation of two columns, as a double from -1 to 1; null where one of them does not vary.

    Rows where either is null are left out.

    Parameters
    ----------
    col1, col2 : str, optional
        Numeric columns. Without them, the aggregate runs over pairs of single values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> correlation = Corr()
    >>> round(correlation.lower(correlation.combine(correlation.lift(1, 10), correlation.lift(3, 20))), 9)
    1.0
    >>> correlation.lower(correlation.lift(1, 10)) is None
    True
    """

    name = "corr"
    takes = ("col1", "col2")

    def __init__(self, col1: str | None = None, col2: str | None = None) -> None:
        super().__init__(col1, col2)

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, _, yy, xx, yx = moments
        # Two roots and not one of the product, which may leave the range of doubles.
        scale = np.sqrt(yy) * np.sqrt(xx)
        return yx / np.where(scale == 0, 1.0, scale), (n > 1) & (scale != 0)


class CoMomentsMonoid(Monoid):
    """Six parts: the number of pairs, both means, both sums of squared deviations, and the sum of their products."""

    aggregate: CoMoments
    result = pa.float64()
    identity = CoMoments.identity
    dtypes = (_INT64, *[_FLOAT64] * 5)
    kept_as = ("pairs", "mean y", "mean x", "squares y", "squares x", "products")

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        (y, x), some = both_present(columns)
        with np.errstate(invalid="ignore"):
            yy, xx = y - y, x - x
            return some.astype(np.int64), y, x, yy, xx, yy * xx

    def combine(self, a: Parts, b: Parts) -> Parts:
        n = a[0] + b[0]
        with np.errstate(over="ignore", invalid="ignore"):
            share = b[0] / np.maximum(n, 1)
            dy, dx, weight = b[1] - a[1], b[2] - a[2], a[0] * share
            both = (
                *(n, a[1] + dy * share, a[2] + dx * share),
                *(a[3] + b[3] + dy * dy * weight, a[4] + b[4] + dx * dx * weight, a[5] + b[5] + dy * dx * weight),
            )
        no_a, no_b = a[0] == 0, b[0] == 0
        if not (no_a.any() or no_b.any()):
            return both
        return tuple(np.where(no_b, p, np.where(no_a, q, r)) for p, q, r in zip(a, b, both, strict=True))

    def invert(self, a: Parts, b: Parts) -> Parts:
        n = a[0] - b[0]
        with np.errstate(over="ignore", invalid="ignore"):
            share = b[0] / np.maximum(n, 1)
            y, x = a[1] + (a[1] - b[1]) * share, a[2] + (a[2] - b[2]) * share
            dy, dx, weight = b[1] - y, b[2] - x, n * (b[0] / np.maximum(a[0], 1))
            yy, xx = np.maximum(a[3] - b[3] - dy * dy * weight, 0.0), np.maximum(a[4] - b[4] - dx * dx * weight, 0.0)
            rest = (y, x, yy, xx, a[5] - b[5] - dy * dx * weight)
        gone, kept = n == 0, b[0] == 0
        return n, *(np.where(gone, 0.0, np.where(kept, p, q)) for p, q in zip(a[1:], rest, strict=True))

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        starts, *parts = from_first(starts, *parts)  # type: ignore[assignment]
        return self._fold(tuple(parts), np.add.reduceat(parts[0], starts), starts)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        (y, x), some = both_present(columns)
        starts, y, x, some = from_first(starts, y, x, some)
        if some.all():
            return self._fold((1, y, x, 0.0, 0.0, 0.0), segment_lengths(starts, len(y)), starts)
        return self._fold((some, y, x, 0.0, 0.0, 0.0), np.add.reduceat(some, starts, dtype=np.int64), starts)

    def _fold(self, parts: tuple[Any, ...], total: np.ndarray, starts: np.ndarray) -> Parts:
        """The means of a segment, then the deviations from them."""
        n, y, x, yy, xx, yx = parts
        mean_y, mean_x = (segment_means(n, values, total, starts) for values in (y, x))
        if not (np.isfinite(mean_y).all() and np.isfinite(mean_x).all()):
            # An infinity or a NaN, or a sum that is too large where the mean is not.
            with np.errstate(invalid="ignore"):
                still = (y - y, x - x, (y - y) * (x - x))
            inside = (nothing + power for nothing, power in zip(still, (yy, xx, yx), strict=True))
            return fold_pairwise(self.combine, (np.ones(len(y), np.int64) * n, y, x, *inside), starts)
        lengths = segment_lengths(starts, len(y))
        with np.errstate(over="ignore", invalid="ignore"):
            dy, dx = y - np.repeat(mean_y, lengths), x - np.repeat(mean_x, lengths)
            powers = (yy + n * (dy * dy), xx + n * (dx * dx), yx + n * (dy * dx))
            return total, mean_y, mean_x, *(np.add.reduceat(power, starts) for power in powers)

    def lower(self, parts: Parts) -> Column:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            values, valid = self.aggregate.finish(*parts)
        return Column(np.where(valid, values, 0.0), self.result, None if valid.all() else valid)


def segment_means(n: Any, means: np.ndarray, total: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The mean of each segment of ``n`` values with these means, ``total`` in all.

    In two steps, so that the mean of equal values is exactly that value: whether they vary must not depend on rounding.

    >>> tenths = np.full(10, 0.1)
    >>> float(segment_means(1, tenths, np.array([10]), np.array([0]))[0])
    0.1
    """
    divisor = np.maximum(total, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean: np.ndarray = np.add.reduceat(n * means, starts) / divisor
        rest = means - np.repeat(mean, segment_lengths(starts, len(means)))
        better: np.ndarray = mean + np.add.reduceat(n * rest, starts) / divisor
        return better


def both_present(columns: Sequence[Column]) -> tuple[list[np.ndarray], np.ndarray]:
    """Two columns as doubles, 0.0 in rows where either is null, and the rows where neither is."""
    some: np.ndarray = np.logical_and.reduce([column.mask for column in columns])
    values = [as_float64(column) for column in columns]
    return (values if some.all() else [np.where(some, v, 0.0) for v in values]), some
