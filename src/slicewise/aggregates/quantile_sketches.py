"""Sketches of quantiles: KLL, and percentiles estimated from it."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.checks import as_float64, need_numbers, need_types
from slicewise.aggregates.sketches import OfSketch, SketchMonoid, check_size, package
from slicewise.columns import Column
from slicewise.errors import AggregateError

__all__ = ["ApproxPercentile", "KllSketchAggDouble"]

_REQUIRED: Any = object()
#: The smallest and the largest size of a KLL sketch.
_SMALLEST_K, _LARGEST_K = 8, 65535
# Python's default context has 28 digits, Spark's decimals have up to 38.
_EXACT = Context(prec=200)


class _OfKll(OfSketch):
    k: int

    def of_values(self, values: Iterable[Any], counts: Iterable[int] = ()) -> bytes:
        sketch = package().kll_doubles_sketch(self.k)
        doubles = np.repeat(_array(values, np.float64), _array(counts, np.int64))
        sketch.update(doubles[~np.isnan(doubles)])
        data: bytes = sketch.serialize()
        return data

    def merged(self, sketches: Sequence[bytes]) -> bytes:
        kind = package().kll_doubles_sketch
        sketch = kind(self.k)
        for other in sketches:
            sketch.merge(kind.deserialize(other))
        data: bytes = sketch.serialize()
        return data

    def need(self, type_: pa.DataType) -> None:
        need_numbers(self, type_)

    def bind(self, *types: pa.DataType) -> Monoid:
        need_types(self, types, 1)
        self.need(types[0])
        return DoublesMonoid(self, types)


class DoublesMonoid(SketchMonoid):
    """Sketches of doubles, whatever the type of the column."""

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return super().lift_fold([_doubles(columns[0])], times, starts)

    def of_lists(self, lengths: np.ndarray, columns: Sequence[Column]) -> Parts:
        return super().of_lists(lengths, [_doubles(columns[0])])

    def _updates(self, values: np.ndarray, type_: pa.DataType) -> np.ndarray:
        return values  # all at once, where other sketches take one by one


def _array(values: Iterable[Any], dtype: type) -> np.ndarray:
    return np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype)


def _doubles(column: Column) -> Column:
    return Column(as_float64(column), pa.float64(), column.valid)


class ApproxPercentile(_OfKll):
    """About the value below which a share of the values lies, of the column's type; null for none.

    An estimate of DataSketches' KLL sketch: Spark's function of the same name keeps a private buffer. The share of
    values below the answer differs from the one asked for by at most ``1 / accuracy``, in 99 of 100 cases. Values are
    held as doubles, so that integers beyond 2**53 are rounded; NaN is left out.

    Parameters
    ----------
    column : str, optional
        A numeric column. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    percentage : float or sequence of float
        A share between 0 and 1, or a list of shares for a list of results.
    accuracy : int
        The inverse of the error; more than 10 000 is no better.

    Notes
    -----
    Partials hold all values of a slice while these are few, and grow to about ``7 * accuracy`` doubles. KLL is
    randomised: the same rows may give another answer, within the error. Runtime complexity: O(n) for n values.

    Examples
    --------
    >>> middle = ApproxPercentile("v", 0.5)
    >>> middle.lower(middle.combine(middle.lift(3.0), middle.combine(middle.lift(1.0), middle.lift(2.0))))
    2.0
    """

    name = "approx_percentile"
    error = "1 / `accuracy` in rank, at 99%"

    def __init__(
        self, column: str | None = None, percentage: float | Sequence[float] = _REQUIRED, accuracy: int = 10000
    ) -> None:
        super().__init__(column)
        self._gives_list = isinstance(percentage, (list, tuple, np.ndarray))
        shares: list[Any] = list(percentage) if isinstance(percentage, (list, tuple, np.ndarray)) else [percentage]
        if not shares or not all(isinstance(x, numbers.Real) and 0 <= float(x) <= 1 for x in shares):
            got = "nothing" if percentage is _REQUIRED else repr(percentage)
            raise AggregateError(
                f"`percentage` of `{self.name}` must be a number from 0 to 1, or a list of them; got {got}: 0.9 is the "
                "90th percentile"
            )
        self.percentage = tuple(float(x) for x in shares)
        self.accuracy = check_size(self.name, "accuracy", accuracy, 1, 2**31 - 1)
        self.k = _kll_size(1 / self.accuracy)

    def parameters(self) -> tuple[Any, ...]:
        shares = list(self.percentage) if self._gives_list else self.percentage[0]
        return (shares,) if self.accuracy == 10000 else (shares, self.accuracy)

    def __hash__(self) -> int:
        return hash((type(self), self.columns, self.percentage, self._gives_list, self.accuracy))

    def lower(self, partial: bytes) -> Any:
        sketch = package().kll_doubles_sketch.deserialize(partial) if partial else None
        if sketch is None or sketch.is_empty():
            return None
        answers = sketch.get_quantiles(list(self.percentage), True)
        return answers if self._gives_list else answers[0]

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.list_(types[0]) if self._gives_list else types[0]

    def lower_as(self, partial: bytes, type_: pa.DataType) -> Any:
        lowered = self.lower(partial)
        if lowered is None or pa.types.is_floating(type_):
            return lowered
        return [_as_type(v, type_) for v in lowered] if self._gives_list else _as_type(lowered, type_)


def _as_type(value: float, type_: pa.DataType) -> Any:
    # The double next to the largest value of a type may be larger than that.
    if pa.types.is_decimal(type_):
        largest = 10**type_.precision - 1
        unscaled = int(Decimal(repr(value)).scaleb(type_.scale, _EXACT).to_integral_value())
        return Decimal(min(max(unscaled, -largest), largest)).scaleb(-type_.scale, _EXACT)
    largest = 2 ** (type_.bit_width - 1) - 1
    return min(max(round(value), ~largest), largest)


def _kll_size(error: float) -> int:
    """The least k whose rank error is not larger, or the largest there is."""
    rank_error = package().kll_doubles_sketch.get_normalized_rank_error
    low, high = _SMALLEST_K, _LARGEST_K
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if rank_error(middle, False) <= error else (middle + 1, high)
    return low


class KllSketchAggDouble(_OfKll):
    """A KLL sketch of the values as binary, which Spark's ``kll_sketch_get_quantile_double`` and its like read.

    Parameters
    ----------
    column : str, optional
        A numeric column, held as doubles; NaN is left out. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    k : int
        The size of the sketch, from 8 to 65535; 200 has a rank error of about 1.33%.

    Notes
    -----
    KLL is randomised: the same rows may give other bytes. Runtime complexity: O(n) for n values.

    Examples
    --------
    >>> import datasketches
    >>> values = KllSketchAggDouble("v")
    >>> both = values.lower(values.combine(values.lift(3.0), values.lift(1.0)))
    >>> datasketches.kll_doubles_sketch.deserialize(both).get_quantile(1.0)
    3.0
    """

    name = "kll_sketch_agg_double"
    error = "1.33% in rank for `k=200`, at 99%"

    def __init__(self, column: str | None = None, k: int = 200) -> None:
        super().__init__(column)
        self.k = check_size(self.name, "k", k, _SMALLEST_K, _LARGEST_K)

    def parameters(self) -> tuple[Any, ...]:
        return () if self.k == 200 else (self.k,)

    def lower(self, partial: bytes) -> bytes:
        return partial or self.of_values((), ())

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.binary()
