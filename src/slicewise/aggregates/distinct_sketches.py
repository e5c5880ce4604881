"""Sketches of distinct values: HyperLogLog and theta, and the estimate of how many there are."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from slicewise.aggregates.sketches import OfSketch, check_size, need_hashable, package
from slicewise.errors import AggregateError

__all__ = ["ApproxCountDistinct", "HllSketchAgg", "ThetaSketchAgg"]

#: The relative standard error of a merged HyperLogLog sketch, times the square root of its number of registers.
_HLL_ERROR = 1.04
#: The errors that can be asked for: what the largest sketch has, and what Spark's function takes at most.
_LEAST_RSD, _LARGEST_RSD = 0.001, 0.39


class _OfHll(OfSketch):
    """HyperLogLog, of eight bits for each of 2**lg_k registers, as Spark's."""

    lg_k: int

    def of_values(self, values: Iterable[Any], counts: Iterable[int] = ()) -> bytes:
        sketches_of = package()
        sketch = sketches_of.hll_sketch(self.lg_k, sketches_of.HLL_8)
        for value in values:
            sketch.update(value)
        data: bytes = sketch.serialize_updatable()
        return data

    def merged(self, sketches: Sequence[bytes]) -> bytes:
        sketches_of = package()
        union = sketches_of.hll_union(self.lg_k)
        for sketch in sketches:
            union.update(sketches_of.hll_sketch.deserialize(sketch))
        data: bytes = union.get_result(sketches_of.HLL_8).serialize_updatable()
        return data


def _check_rsd(name: str, rsd: Any) -> float:
    if isinstance(rsd, bool) or not isinstance(rsd, numbers.Real) or not _LEAST_RSD <= float(rsd) <= _LARGEST_RSD:
        raise AggregateError(f"`rsd` of `{name}` must be a number from {_LEAST_RSD} to {_LARGEST_RSD}; got {rsd!r}")
    return float(rsd)


class ApproxCountDistinct(_OfHll):
    """About how many different values there are; 0 for none.

    An estimate of DataSketches' HyperLogLog: Spark's function of the same name keeps a private buffer, whose estimate
    has other digits, within the same error.

    Parameters
    ----------
    column : str, optional
        A column of numbers, text, bytes, dates, times or booleans. Without one, the aggregate runs over single values
        (:mod:`slicewise.swag`).
    rsd : float
        The relative standard deviation that the estimate may have: two out of three estimates are closer.

    Notes
    -----
    Partials have about ``1.1 / rsd**2`` bytes, and less while there are few values. Runtime complexity: O(d) updates
    for the d different values of a slice, O(1 / rsd**2) to merge two partials.

    Examples
    --------
    >>> users = ApproxCountDistinct("user")
    >>> users.lower(users.combine(users.lift("ann"), users.combine(users.lift("bob"), users.lift("ann"))))
    2
    """

    name = "approx_count_distinct"
    error = "standard error `rsd`"

    def __init__(self, column: str | None = None, rsd: float = 0.05) -> None:
        super().__init__(column)
        self.rsd = _check_rsd(self.name, rsd)
        self.lg_k = max(4, math.ceil(2 * math.log2(_HLL_ERROR / self.rsd)))

    def parameters(self) -> tuple[Any, ...]:
        return () if self.rsd == 0.05 else (self.rsd,)

    def of_values(self, values: Iterable[Any], counts: Iterable[int] = ()) -> bytes:
        # Sketches pass over the empty text, which is a value like any other.
        return super().of_values(f"s{value}" if isinstance(value, str) else value for value in values)

    def lower(self, partial: bytes) -> int:
        return round(package().hll_sketch.deserialize(partial).get_estimate()) if partial else 0

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.int64()

    def need(self, type_: pa.DataType) -> None:
        need_hashable(self, type_, as_spark=False)


class HllSketchAgg(_OfHll):
    """A HyperLogLog sketch of the values as binary, which Spark's ``hll_sketch_estimate`` and ``hll_union`` read.

    Parameters
    ----------
    column : str, optional
        A column of integers or text. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    lgConfigK : int
        The binary logarithm of the number of registers, from 4 to 21; the relative standard deviation is about ``1.04 /
        sqrt(2**lgConfigK)``.

    Notes
    -----
    Partials have up to ``2**lgConfigK`` bytes. Runtime complexity: O(d) updates for the d different values of a slice.

    Examples
    --------
    >>> import datasketches
    >>> users = HllSketchAgg("user")
    >>> both = users.lower(users.combine(users.lift("ann"), users.lift("bob")))
    >>> round(datasketches.hll_sketch.deserialize(both).get_estimate())
    2
    """

    name = "hll_sketch_agg"
    error = "standard error 1.04 / sqrt(2^lgConfigK)"

    def __init__(self, column: str | None = None, lgConfigK: int = 12) -> None:
        super().__init__(column)
        self.lg_k = check_size(self.name, "lgConfigK", lgConfigK, 4, 21)

    def parameters(self) -> tuple[Any, ...]:
        return () if self.lg_k == 12 else (self.lg_k,)

    def lower(self, partial: bytes) -> bytes:
        return partial or self.of_values(())

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.binary()

    def need(self, type_: pa.DataType) -> None:
        need_hashable(self, type_, as_spark=True)


class ThetaSketchAgg(OfSketch):
    """A theta sketch of the values as binary, which Spark's ``theta_sketch_estimate`` and ``theta_union`` read.

    However the rows were cut into slices, the sketch of a window is the same.

    Parameters
    ----------
    column : str, optional
        A column of integers or text. Without one, the aggregate runs over single values (:mod:`slicewise.swag`).
    lgNomEntries : int
        The binary logarithm of the number of hashes that are kept, from 4 to 26; the relative standard deviation is
        about ``1 / sqrt(2**lgNomEntries)``.

    Notes
    -----
    Partials have up to ``2**(lgNomEntries + 3)`` bytes. Runtime complexity: O(d) updates for the d different values of
    a slice.

    Examples
    --------
    >>> import datasketches
    >>> users = ThetaSketchAgg("user")
    >>> both = users.lower(users.combine(users.lift("ann"), users.lift("bob")))
    >>> datasketches.compact_theta_sketch.deserialize(both).get_estimate()
    2.0
    """

    name = "theta_sketch_agg"
    error = "standard error 1 / sqrt(2^lgNomEntries)"

    def __init__(self, column: str | None = None, lgNomEntries: int = 12) -> None:
        super().__init__(column)
        self.lg_k = check_size(self.name, "lgNomEntries", lgNomEntries, 4, 26)

    def parameters(self) -> tuple[Any, ...]:
        return () if self.lg_k == 12 else (self.lg_k,)

    def of_values(self, values: Iterable[Any], counts: Iterable[int] = ()) -> bytes:
        sketch = package().update_theta_sketch(self.lg_k)
        for value in values:
            sketch.update(value)
        # What is kept beyond the nominal number of hashes depends on the order of updates.
        sketch.trim()
        data: bytes = sketch.compact().serialize()
        return data

    def merged(self, sketches: Sequence[bytes]) -> bytes:
        sketches_of = package()
        union = sketches_of.theta_union(self.lg_k)
        for sketch in sketches:
            union.update(sketches_of.compact_theta_sketch.deserialize(sketch))
        data: bytes = union.get_result().serialize()
        return data

    def lower(self, partial: bytes) -> bytes:
        # Spark's own sketches may hold more hashes than merged ones.
        return self.merged([partial or self.of_values(())])

    def result_type(self, *types: pa.DataType) -> pa.DataType:
        return pa.binary()

    def need(self, type_: pa.DataType) -> None:
        need_hashable(self, type_, as_spark=True)
