"""Regression: the straight line through pairs of numbers, ``y`` explained by ``x``, and what it is made of.

Names and order of arguments are SQL's: ``regr_slope(y, x)``. All but the count and the averages, which are those of
``arithmetic`` over the rows where neither is null, come from co-moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.arithmetic import Avg, Count
from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.checks import need_numbers, need_types
from slicewise.aggregates.comoments import CoMoments, TwoColumns
from slicewise.columns import Column

__all__ = [
    "PairsMonoid",
    "RegrAvgX",
    "RegrAvgY",
    "RegrCount",
    "RegrIntercept",
    "RegrR2",
    "RegrSXX",
    "RegrSXY",
    "RegrSYY",
    "RegrSlope",
]

Results = tuple[np.ndarray, np.ndarray]


class RegrSlope(CoMoments):
    """The slope of the line of least squares, as a double; null where ``x`` does not vary.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrSlope()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    0.2
    """

    name = "regr_slope"

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> Results:
        return moments[4] / np.where(moments[3] == 0, 1.0, moments[3]), (n > 0) & (moments[3] != 0)


class RegrIntercept(CoMoments):
    """Where the line of least squares meets ``x = 0``, as a double; null where ``x`` does not vary.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrIntercept()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    -1.0
    """

    name = "regr_intercept"

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> Results:
        y, x, _, xx, yx = moments
        return y - yx / np.where(xx == 0, 1.0, xx) * x, (n > 0) & (xx != 0)


class RegrR2(CoMoments):
    """The share of the variance of ``y`` that the line explains, as a double from 0 to 1.

    Null where ``x`` does not vary, 1.0 where only ``y`` does not. Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrR2()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    1.0
    """

    name = "regr_r2"

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> Results:
        _, _, yy, xx, yx = moments
        share = yx / np.where(xx == 0, 1.0, xx) * (yx / np.where(yy == 0, 1.0, yy))
        return np.where(yy == 0, 1.0, share), (n > 0) & (xx != 0)


class RegrSXX(CoMoments):
    """The sum of squared deviations of ``x`` from its mean, as a double; null for no pairs.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrSXX()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    50.0
    """

    name = "regr_sxx"

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> Results:
        return moments[3], n > 0


class RegrSYY(CoMoments):
    """The sum of squared deviations of ``y`` from its mean, as a double; null for no pairs.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrSYY()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    2.0
    """

    name = "regr_syy"

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> Results:
        return moments[2], n > 0


class RegrSXY(CoMoments):
    """The sum of products of the deviations of ``x`` and ``y`` from their means, as a double; null for no pairs.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrSXY()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    10.0
    """

    name = "regr_sxy"

    def finish(self, n: np.ndarray, *moments: np.ndarray) -> Results:
        return moments[4], n > 0


class _OfPairs(TwoColumns):
    """What an aggregate of one column gives over the rows where neither of two is null."""

    commutative = True
    invertible = True
    #: The aggregate, and which of the columns it is of.
    inner: Count | Avg
    column = 0

    def __init__(self, y: str | None = None, x: str | None = None) -> None:
        super().__init__(y, x)

    def lift(self, *values: Any) -> Any:
        return self.inner.lift(values[self.column])

    def combine(self, a: Any, b: Any) -> Any:
        return self.inner.combine(a, b)

    def invert(self, a: Any, b: Any) -> Any:
        return self.inner.invert(a, b)

    def lower(self, partial: Any) -> Any:
        return self.inner.lower(partial)

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return self.inner.result_type(types[self.column])

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 2)
        for position, type_ in enumerate(types):
            need_numbers(self, type_, position)
        return PairsMonoid(self, types)


class PairsMonoid(Monoid):
    """The monoid of an aggregate of one column, which sees null wherever the other column is null."""

    aggregate: _OfPairs

    def __init__(self, aggregate: _OfPairs, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        names = aggregate.columns[aggregate.column : aggregate.column + 1]
        self.inner = type(aggregate.inner)(*names).bind(types[aggregate.column])
        self.result, self.identity, self.dtypes = self.inner.result, self.inner.identity, self.inner.dtypes
        self.exact = self.inner.exact
        total = "total " + "yx"[aggregate.column]
        self.kept_as = tuple({"values": "pairs", "total": total}[name] for name in self.inner.kept_as)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return self.inner.lift(self._present(columns), times)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return self.inner.lift_fold(self._present(columns), times, starts)

    def _present(self, columns: Sequence[Column]) -> list[Column]:
        some: np.ndarray = np.logical_and.reduce([column.mask for column in columns])
        column = columns[self.aggregate.column]
        return [Column(column.values, column.type, None if some.all() else some)]

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self.inner.combine(a, b)

    def invert(self, a: Parts, b: Parts) -> Parts:
        return self.inner.invert(a, b)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return self.inner.fold(parts, starts)

    def scan(self, parts: Parts) -> Parts:
        return self.inner.scan(parts)

    def lower(self, parts: Parts) -> Column:
        return self.inner.lower(parts)

    def scaled_by(self) -> tuple[int | None, ...]:
        return tuple(None if column is None else self.aggregate.column for column in self.inner.scaled_by())


class RegrCount(_OfPairs):
    """The number of pairs, as a 64-bit integer.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrCount()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    2
    """

    name = "regr_count"
    kind = "distributive"
    identity = 0
    inner = Count()
    column = 0


class RegrAvgY(_OfPairs):
    """The mean of ``y``, of the type that ``avg`` gives; null for no pairs.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrAvgY()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    2.0
    """

    name = "regr_avgy"
    kind = "algebraic"
    identity = (0, 0)
    inner = Avg()
    column = 0


class RegrAvgX(_OfPairs):
    """The mean of ``x``, of the type that ``avg`` gives; null for no pairs.

    Rows where either column is null are left out.

    Parameters
    ----------
    y, x : str, optional
        Numeric columns: what is explained, and what explains it. Without them, the aggregate runs over pairs of single
        values (:mod:`slicewise.swag`).

    Examples
    --------
    >>> line = RegrAvgX()
    >>> line.lower(line.combine(line.lift(1, 10), line.lift(3, 20)))
    15.0
    """

    name = "regr_avgx"
    kind = "algebraic"
    identity = (0, 0)
    inner = Avg()
    column = 1
