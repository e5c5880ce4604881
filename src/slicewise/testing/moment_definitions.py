"""Definitions of moments: how one column is spread and how two vary together, over exact fractions. Read by
``definitions``.

Sums, means and powers are computed as fractions and rounded once; an infinity or a NaN among the values makes the
moments that hold it NaN, as in Spark.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

__all__ = ["OF_ONE", "OF_PAIRS"]

Values = list[Any]


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _powers(values: list[float], exponent: int) -> Fraction | float:
    """The sum of powers of deviations from the mean; NaN where there is none."""
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = [Fraction(v) for v in values]
    mean = _mean(exact)
    return sum(((v - mean) ** exponent for v in exact), Fraction(0))


def _products(ys: list[float], xs: list[float]) -> Fraction | float:
    if not all(map(math.isfinite, [*ys, *xs])):
        return math.nan
    y, x = [Fraction(v) for v in ys], [Fraction(v) for v in xs]
    mean_y, mean_x = _mean(y), _mean(x)
    return sum(((p - mean_y) * (q - mean_x) for p, q in zip(y, x, strict=True)), Fraction(0))


def _root(square: Fraction) -> Fraction:
    """The square root of an exact number, to more digits than a double has."""
    scale = 2**200
    return Fraction(math.isqrt(int(square * scale * scale)), scale)


def _skewness(values: list[float]) -> float | None:
    n, second, third = len(values), _powers(values, 2), _powers(values, 3)
    if second == 0:
        return None
    if isinstance(second, float) or isinstance(third, float):
        return math.nan
    return float(third / n / _root((second / n) ** 3)) if second else None


def _kurtosis(values: list[float]) -> float | None:
    n, second, fourth = len(values), _powers(values, 2), _powers(values, 4)
    if second == 0:
        return None
    return math.nan if isinstance(second, float) else float(n * fourth / (second * second) - 3)


def _corr(ys: list[float], xs: list[float]) -> float | None:
    yy, xx, yx = _powers(ys, 2), _powers(xs, 2), _products(ys, xs)
    if len(ys) < 2:
        return None
    if isinstance(yy, float) or isinstance(xx, float) or isinstance(yx, float):
        return math.nan  # also where the other column does not vary: 0 times NaN, as in Spark
    if yy == 0 or xx == 0:
        return None
    return float(yx / _root(yy * xx))


def _covariance(ddof: int) -> Callable[[list[float], list[float]], float | None]:
    return lambda ys, xs: float(_products(ys, xs) / (len(ys) - ddof)) if len(ys) > ddof else None


def _slope(ys: list[float], xs: list[float]) -> Fraction | float | None:
    xx = _powers(xs, 2)
    return None if xx == 0 else _products(ys, xs) / xx


def _intercept(ys: list[float], xs: list[float]) -> float | None:
    slope = _slope(ys, xs)
    if slope is None or isinstance(slope, float):
        return slope
    return float(_mean([Fraction(v) for v in ys]) - slope * _mean([Fraction(v) for v in xs]))


def _r2(ys: list[float], xs: list[float]) -> float | None:
    yy, xx, yx = _powers(ys, 2), _powers(xs, 2), _products(ys, xs)
    if xx == 0:
        return None
    return 1.0 if yy == 0 else float(yx * yx / xx / yy)


def _weighted(values: list[float], weights: list[float]) -> float | None:
    if not all(map(math.isfinite, [*values, *weights])):
        weight = sum(weights)
        return sum(v * w for v, w in zip(values, weights, strict=True)) / weight if weight else None
    total = sum((Fraction(w) for w in weights), Fraction(0))
    return (
        float(sum((Fraction(v) * Fraction(w) for v, w in zip(values, weights, strict=True)), Fraction(0)) / total)
        if total
        else None
    )


#: Of the values of one column that are not null, at least one.
OF_ONE: dict[str, Callable[[list[float]], float | None]] = {"skewness": _skewness, "kurtosis": _kurtosis}

#: Of the rows where neither column is null, at least one.
OF_PAIRS: dict[str, Callable[[list[float], list[float]], Any]] = {
    "corr": _corr,
    "covar_pop": _covariance(0),
    "covar_samp": _covariance(1),
    "regr_slope": lambda ys, xs: None if (slope := _slope(ys, xs)) is None else float(slope),
    "regr_intercept": _intercept,
    "regr_r2": _r2,
    "regr_sxx": lambda _, xs: float(_powers(xs, 2)),
    "regr_syy": lambda ys, _: float(_powers(ys, 2)),
    "regr_sxy": lambda ys, xs: float(_products(ys, xs)),
    "weighted_avg": _weighted,
}
