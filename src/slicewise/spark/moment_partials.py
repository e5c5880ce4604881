"""Moments as the JVM computes them per slice: Spark's own averages, variances, covariances, skewness and kurtosis.

Spark gives moments per value, the engine keeps sums of powers of deviations; the number of values turns one into the
other. Of two columns only the rows count where neither is null.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.regression import PairsMonoid
from slicewise.spark.slice_columns import Columns, Reader, SliceColumns, count_of, values_of
from slicewise.spark.source import Source
from slicewise.spark.totals import totals_of

__all__ = ["comoments", "higher_moments", "moments", "pair_counts", "pair_means", "weighted_totals"]


# Of one column


def moments(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """Count, mean and variance of a column."""
    name = monoid.aggregate.columns[0]
    value = _double(source, name)
    names = [
        count_of(name, source, slice_columns),
        slice_columns.column(("mean", name), F.avg(value)),
        slice_columns.column(("spread", name), F.var_pop(value)),
    ]
    return partial(_read_moments, names)


def higher_moments(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """Count, mean, variance, skewness and kurtosis of a column."""
    name = monoid.aggregate.columns[0]
    value = _double(source, name)
    names = [
        count_of(name, source, slice_columns),
        slice_columns.column(("center", name), _center(value)),
        slice_columns.column(("spread", name), F.var_pop(value)),
        slice_columns.column(("skewness", name), F.skewness(value)),
        slice_columns.column(("kurtosis", name), F.kurtosis(value)),
    ]
    return partial(_read_higher_moments, names)


def _read_moments(names: list[str], columns: Columns) -> Parts:
    n, mean, spread = (values_of(columns, name).values for name in names)
    return n, mean, spread * n


def _read_higher_moments(names: list[str], columns: Columns) -> Parts:
    n, mean, second = _read_moments(names[:3], columns)
    skewness, kurtosis = (values_of(columns, name) for name in names[3:])
    with np.errstate(over="ignore", invalid="ignore"):
        # Both are null where values do not vary, and so do the third and the fourth power then.
        third = skewness.values * second * np.sqrt(second / np.maximum(n, 1))
        fourth = (kurtosis.values + 3.0) * second * (second / np.maximum(n, 1))
    return n, mean, second, np.where(skewness.mask, third, 0.0), np.where(kurtosis.mask, fourth, 0.0)


# Of two columns


def comoments(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """The number of pairs, both means, both variances and the covariance."""
    pair = monoid.aggregate.columns
    y, x = (_where_both(source, pair, name).cast("double") for name in pair)
    names = [
        _count_of_pairs(pair, source, slice_columns),
        *(slice_columns.column(("pair center", *pair, str(i)), _center(v)) for i, v in enumerate((y, x))),
        *(slice_columns.column(("pair spread", *pair, str(i)), F.var_pop(v)) for i, v in enumerate((y, x))),
        slice_columns.column(("covariance", *pair), F.covar_pop(y, x)),
    ]
    return partial(_read_comoments, names)


def _read_comoments(names: list[str], columns: Columns) -> Parts:
    n, y, x, *spreads = (values_of(columns, name).values for name in names)
    return n, y, x, *(spread * n for spread in spreads)


def weighted_totals(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """The sums of weighted values and of weights, and the number of pairs."""
    pair = monoid.aggregate.columns
    value, weight = (_where_both(source, pair, name).cast("double") for name in pair)
    names = [
        slice_columns.column(("weighted", *pair), F.sum(value * weight)),
        slice_columns.column(("weights", *pair), F.sum(weight)),
        _count_of_pairs(pair, source, slice_columns),
    ]
    return partial(_read_numbers, names)


def pair_counts(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """The number of pairs."""
    return partial(_read_numbers, [_count_of_pairs(monoid.aggregate.columns, source, slice_columns)])


def pair_means(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """The total of one column and the number of pairs."""
    assert isinstance(monoid, PairsMonoid)
    pair, place = monoid.aggregate.columns, monoid.aggregate.column
    value, n = _where_both(source, pair, pair[place]), _count_of_pairs(pair, source, slice_columns)
    return totals_of((*pair, str(place)), value, n, monoid.types[place], slice_columns)


def _read_numbers(names: list[str], columns: Columns) -> Parts:
    return tuple(values_of(columns, name).values for name in names)


def _double(source: Source, name: str) -> Expression:
    return source.internal(name).cast("double")


def _center(value: Expression) -> Expression:
    """The mean; that of equal values exactly their value, so that slices of them have exactly the same mean."""
    return F.when(F.var_pop(value) == 0, F.min(value)).otherwise(F.avg(value))


def _where_both(source: Source, pair: tuple[str, ...], name: str) -> Expression:
    """A column of a pair, null wherever the other one is."""
    others = [source.internal(other).isNotNull() for other in pair if other != name and other in source.nullable]
    return F.when(others[0], source.internal(name)) if others else source.internal(name)


def _count_of_pairs(pair: tuple[str, ...], source: Source, slice_columns: SliceColumns) -> str:
    nullable = [name for name in dict.fromkeys(pair) if name in source.nullable]
    if len(nullable) < 2:
        return count_of(nullable[0] if nullable else None, source, slice_columns)
    return slice_columns.column(("pairs", *sorted(pair)), F.count(_where_both(source, pair, pair[0])))
