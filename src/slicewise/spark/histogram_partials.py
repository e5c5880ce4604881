"""Partials of aggregates that grow: the values of a slice, the best of them, or a sketch that Spark itself makes.

Histograms are made of all values of a slice, which only have to travel: their order does not matter, and NumPy sorts
them. Sketches are Spark's own where it has the function and takes the type; elsewhere, Python sketches the values.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from slicewise.aggregates.base import Aggregate, Monoid, Parts
from slicewise.aggregates.bests import Largest, ValuesMonoid
from slicewise.aggregates.distinct_sketches import ApproxCountDistinct, HllSketchAgg, ThetaSketchAgg
from slicewise.aggregates.histograms import HistogramMonoid
from slicewise.aggregates.quantile_sketches import ApproxPercentile, KllSketchAggDouble
from slicewise.aggregates.sketches import SketchMonoid
from slicewise.spark.slice_columns import Columns, Reader, SliceColumns
from slicewise.spark.source import Source
from slicewise.spark.types import read

__all__ = ["best_values", "sketches", "values"]


def values(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """All values of a slice, in any order; rows with a null are left out."""
    assert isinstance(monoid, (HistogramMonoid, SketchMonoid))
    names = monoid.aggregate.columns
    columns = [source.internal(name) for name in names]
    row = columns[0] if len(columns) == 1 else F.struct(*(c.alias(f"f{i}") for i, c in enumerate(columns)))
    some = reduce(lambda a, b: a & b, (c.isNotNull() for c in columns))
    collected = slice_columns.column(("values", *names), F.collect_list(F.when(some, row)))
    return partial(_read_lists, collected, monoid)


def best_values(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """The best values of a slice, best first."""
    assert isinstance(monoid, ValuesMonoid)
    name, largest = monoid.aggregate.columns[0], isinstance(monoid.aggregate, Largest)
    every = slice_columns.column(("list", name), F.collect_list(source.internal(name)))
    slice_columns.hidden.add(every)
    best = F.slice(F.sort_array(F.col(every), asc=not largest), 1, monoid.k)
    label = ("largest" if largest else "smallest", name, str(monoid.k))
    return partial(_read_lists, slice_columns.derived(label, best), monoid)


def sketches(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    """Spark's own sketch of a slice; the values, where there is none."""
    aggregate, name = monoid.aggregate, monoid.aggregate.columns[0]
    sketch = _sketch_of(aggregate, source.internal(name), monoid.types[0])
    if sketch is None:
        return values(monoid, source, slice_columns)
    label = ("sketch", aggregate.name, name, *map(str, aggregate.parameters()))
    return partial(_read_sketches, slice_columns.column(label, sketch))


def _sketch_of(aggregate: Aggregate, value: Expression, type_: pa.DataType) -> Expression | None:
    if isinstance(aggregate, (ApproxCountDistinct, HllSketchAgg)):
        hashed = _hashed(value, type_, marked=isinstance(aggregate, ApproxCountDistinct))
        return None if hashed is None else F.hll_sketch_agg(hashed, aggregate.lg_k)
    # Functions that Spark 4.0 does not have.
    if isinstance(aggregate, ThetaSketchAgg) and hasattr(F, "theta_sketch_agg"):
        hashed = _hashed(value, type_, marked=False)
        return None if hashed is None else F.theta_sketch_agg(hashed, aggregate.lg_k)
    if isinstance(aggregate, (ApproxPercentile, KllSketchAggDouble)) and hasattr(F, "kll_sketch_agg_double"):
        return F.kll_sketch_agg_double(value.cast("double"), aggregate.k)
    return None


def _hashed(value: Expression, type_: pa.DataType, *, marked: bool) -> Expression | None:
    """A value as Python hashes it; ``marked`` where also the empty text counts, which sketches pass over."""
    t = pa.types
    if t.is_string(type_):
        return F.concat(F.lit("s"), value) if marked else value
    if t.is_integer(type_) or t.is_boolean(type_):
        return value.cast("long")
    if t.is_date(type_):
        return F.unix_date(value).cast("long")
    if t.is_timestamp(type_) and type_.tz is not None:
        return F.unix_micros(value)
    return None


def _read_lists(name: str, monoid: HistogramMonoid | ValuesMonoid | SketchMonoid, columns: Columns) -> Parts:
    lists = columns[name]
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    flat = lists.flatten()
    fields = flat.flatten() if len(monoid.types) > 1 else [flat]
    return monoid.of_lists(lengths, [read(array, type_) for array, type_ in zip(fields, monoid.types, strict=True)])


def _read_sketches(name: str, columns: Columns) -> Parts:
    out = np.empty(len(columns[name]), object)
    out[:] = [sketch or b"" for sketch in columns[name].to_pylist()]
    return (out,)
