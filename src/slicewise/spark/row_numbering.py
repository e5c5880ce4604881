"""Row numbering: rows of a key sorted, numbered and measured inside the JVM, so that slices are cells of all axes.

One sort by key and event time gives every row its position, the markers passed so far and the check that units only
advance. The cell of a row in each measure is then a column like its cell in time, and rows that share all cells are one
slice. Slices stay where the sort has put their rows: no second shuffle brings them to the composer.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, WindowSpec
from pyspark.sql import Window as Over
from pyspark.sql import functions as F

from slicewise.aggregates.base import Monoid, Parts
from slicewise.aggregates.filtered import FilteredMonoid, unfiltered
from slicewise.aggregates.picks import First, Last
from slicewise.columns import Column as Values
from slicewise.plan.axes import LONG_DIGITS, Axis, Marks, Positions, Units
from slicewise.plan.condition_sql import condition_sql
from slicewise.plan.plan import Plan
from slicewise.slicing import Edges, PeriodicWindows, limit_of
from slicewise.spark.cells import cell_of
from slicewise.spark.known_frame import with_added
from slicewise.spark.partials import counting, partials_of
from slicewise.spark.row_order import in_order
from slicewise.spark.slice_columns import Reader, SliceColumns
from slicewise.spark.source import TIME, Source, value_name
from slicewise.times import LARGEST_TIME
from slicewise.windows import Between, Cumulative, Landmark, Sliding, Window

__all__ = ["Measured", "NumberedSource", "measure_rows", "partials_by_position"]

#: The position of a row among those of its key.
POSITION = "n"


@dataclass(frozen=True)
class Measured:
    """The columns of a measured slice: its first position, how many rows it has, and its first value per measure."""

    position: str
    rows: str
    measures: tuple[Axis, ...]
    firsts: tuple[str, ...]


class NumberedSource(Source):
    """A source whose rows know their position, which is all that puts rows of equal time in order."""

    def __init__(self, source: Source) -> None:
        fields = {field.name: getattr(source, field.name) for field in dataclasses.fields(source)}
        fields |= {"ties": (POSITION,), "types": {**source.types, POSITION: pa.int64()}}
        super().__init__(**fields)
        self.__dict__["around"] = source  # which knows where its columns stand

    def internal_sql(self, name: str) -> str:
        return POSITION if name == POSITION else str(self.__dict__["around"].internal_sql(name))


def measure_rows(
    source: Source, rows: DataFrame, plan: Plan, measures: Sequence[Axis], slice_columns: SliceColumns
) -> tuple[NumberedSource, DataFrame, list[str], Measured]:
    """Number and measure the rows of each key.

    Returns the source to compute partials with, the rows with their cells, the names of these, and the columns
    that place each slice on the axes.
    """
    over = Over.partitionBy(*source.key_names).orderBy(*in_order(source))
    so_far = over.rowsBetween(Over.unboundedPreceding, Over.currentRow)
    turned = _turned(source, measures, plan, over)
    read = {f"m{i}": _reading(m, source) for i, m in enumerate(measures) if not isinstance(m, Positions)}
    rows = with_added(rows, read)
    running = {f"r{name}": _running(measures[int(name[1:])], F.col(name)).over(so_far) for name in read}
    # A count and not row_number(), which ends at 2**31.
    rows = with_added(rows, {POSITION: F.count(F.lit(1)).over(so_far) - 1, **running, **turned})
    cells = {f"cell{i}": _cell(m, f"m{i}", source) for i, m in enumerate(measures)}
    cells |= {f"{name}s": F.sum(name).over(so_far) for name in turned}
    rows = with_added(rows, cells)
    measured = Measured(
        slice_columns.column(("position",), F.min(POSITION)),
        slice_columns.column(("rows",), F.count(F.lit(1))),
        tuple(measures),
        tuple(slice_columns.column(("measure", str(i)), F.min(_value(m, f"m{i}"))) for i, m in enumerate(measures)),
    )
    return NumberedSource(source), rows, list(cells), measured


def partials_by_position(monoid: Monoid, source: NumberedSource, slice_columns: SliceColumns) -> Reader:
    """As :func:`partials_of`; but where `order` columns decide, the first and the last of numbered rows are found
    without comparing whole rows."""
    if type(unfiltered(monoid.aggregate)) not in (First, Last) or not source.workload.order:
        return partials_of(monoid, source, slice_columns)
    if isinstance(monoid, FilteredMonoid):
        return _picked(monoid.inner, *counting(monoid, source, slice_columns))
    return _picked(monoid, source, slice_columns)


def _picked(monoid: Monoid, source: Source, slice_columns: SliceColumns) -> Reader:
    kind, (name,) = type(monoid.aggregate), monoid.aggregate.columns
    label, pick, end = ("first", F.min_by, F.min) if kind is First else ("last", F.max_by, F.max)
    position, time = (source.selected(F.col(place)) for place in (POSITION, TIME))
    value, of_rows = source.internal(name), [label]
    if monoid.aggregate.skips_nulls:
        position, time = (F.when(value.isNotNull(), place) for place in (position, time))
        of_rows += ["not null", name]
    picked = slice_columns.column((*of_rows, "value", name), pick(value, position))
    return partial(_read_pick, slice_columns.column((*of_rows, "time"), end(time)), picked, monoid.identity[0])


def _read_pick(time: str, value: str, missing: int, columns: Mapping[str, pa.Array]) -> Parts:
    times, picked = Values.of(columns[time]), Values.of(columns[value])
    when = times.values if times.valid is None else np.where(times.valid, times.values, missing)
    return when, picked.values, picked.mask


def _value(measure: Axis, name: str) -> str:
    """The column that holds the measure of a row."""
    if isinstance(measure, Positions):
        return POSITION
    return f"r{name}" if isinstance(measure, Marks) else name


def _reading(measure: Axis, source: Source) -> Column:
    """What a row alone decides: whether it is a marker, or its units."""
    if isinstance(measure, Marks):
        assert isinstance(measure.window.markers, str)
        names = {c: value_name(source.columns.index(c)) for c in measure.window.reads}
        return F.expr(condition_sql(measure.window.markers, source.types, names.__getitem__)).cast("long")
    assert isinstance(measure, Units)
    units = source.internal(measure.column)
    if not measure.scale.exact:
        return units.cast("double")
    scale = measure.scale.digits
    return (units.cast(f"decimal({LONG_DIGITS + 1}, {scale})") * F.lit(10**scale) if scale else units).cast("long")


def _running(measure: Axis, shown: Column) -> Column:
    return F.sum(shown) if isinstance(measure, Marks) else F.max(shown)


# Cells


def _cell(measure: Axis, name: str, source: Source) -> Column:
    if isinstance(measure, Positions):
        return cell_of(F.col(POSITION), Edges(PeriodicWindows(measure.windows)))
    if isinstance(measure, Marks):
        return F.col(f"r{name}")
    value = F.col(name)
    if measure.scale.exact:
        cell = cell_of(value, Edges(PeriodicWindows(measure.windows)))
        finite = value.between(-LARGEST_TIME, LARGEST_TIME)
    else:
        cell = _double_cell(value, measure.windows)
        furthest = min(limit_of(measure.column, measure.windows, ()).furthest, sys.float_info.max)
        finite = F.abs(value) <= F.lit(furthest)  # NaN is larger
    wrong = F.when(~finite, _refusal(measure, source, "must be a finite number that 64 bits hold", value))
    highest = F.col(f"r{name}")
    wrong = wrong.when(highest > value, _refusal(measure, source, "must not go backwards", value, highest))
    return wrong.otherwise(cell)


def _double_cell(value: Column, windows: Sequence[Window]) -> Column:
    """A number that grows with every bound passed: the begins and the ends of windows, all counted together."""
    return reduce(Column.__add__, [_BOUNDS_PASSED[type(window)](value, window) for window in windows])


def _sliding_bounds(value: Column, w: Sliding) -> Column:
    begins, ends = (_last_tick(value, w.every.size, w.offset, length) for length in (0, w.length.size))
    return begins + ends


def _cumulative_bounds(value: Column, w: Cumulative) -> Column:
    period = _last_tick(value, w.length.size, w.offset)
    start = period * F.lit(float(w.length.size)) + F.lit(float(w.offset))
    grown = _last_tick(value, w.every.size, start)
    # The last window ends with its period, wherever rounding puts the ticks before it.
    return period * F.lit(w.overlap) + F.least(grown, F.lit(w.overlap - 1))


def _landmark_bounds(value: Column, w: Landmark) -> Column:
    return F.greatest(_last_tick(value, w.every.size, w.since), F.lit(-1))


def _between_bounds(value: Column, w: Between) -> Column:
    start, end = ((value >= F.lit(float(bound))).cast("long") for bound in (w.start, w.end))
    return start + end


#: How many bounds of windows a value has passed, by the kind of window; the kinds that lie on an axis.
_BOUNDS_PASSED: dict[type[Window], Callable[[Column, Any], Column]] = {
    Sliding: _sliding_bounds,
    Cumulative: _cumulative_bounds,
    Landmark: _landmark_bounds,
    Between: _between_bounds,
}


def _last_tick(value: Column, step: float, offset: float | Column, length: float = 0) -> Column:
    """As :func:`slicewise.slicing.rows.slides.last_tick`, with the same rounding."""
    shift = offset if isinstance(offset, Column) else F.lit(float(offset))

    def tick(k: Column) -> Column:
        return k * F.lit(float(step)) + shift + F.lit(float(length))

    guess = F.floor((value - shift - F.lit(float(length))) / F.lit(float(step)))
    down = guess - (tick(guess) > value).cast("long")
    return down + (tick(down + 1) <= value).cast("long")


def _refusal(measure: Units, source: Source, what: str, value: Column, highest: Column | None = None) -> Column:
    """An expression that fails with what is wrong with a row, and with the key of the row."""
    shift = 10**measure.scale.digits

    def shown(number: Column) -> Column:
        return (number / F.lit(shift) if shift > 1 else number).cast("string")

    keys = [F.coalesce(F.col(k).cast("string"), F.lit("null")) for k in source.key_names]
    whose = F.concat(F.lit("key "), F.concat_ws(", ", *keys)) if keys else F.lit("the stream")
    after = [] if highest is None else [F.lit(", after "), shown(highest)]
    message = [
        F.lit(f"the measure {measure.column!r} {what}; "),
        whose,
        F.lit(" has "),
        shown(value),
        F.lit(" at time "),
        F.col(TIME).cast("string"),
        *after,
        F.lit("; leave such rows out, or say by `order` how rows of equal time follow each other"),
    ]
    return F.raise_error(F.concat(*message)).cast("long")


def _turned(source: Source, measures: Sequence[Axis], plan: Plan, over: WindowSpec) -> dict[str, Column]:
    """Whether a row has a measure that the row before it lacks, or the other way round, though their time is the same.

    Such rows are in slices that lie among each other, and slices are put in order by time alone: by counting turns, all
    rows of one time that no edge separates come into one slice, or into slices that follow each other. Where no
    aggregate depends on the order of rows of equal time, it does not matter.
    """
    units = dict.fromkeys(m.column for m in measures if isinstance(m, Units) and m.column in source.nullable)
    if not units or not source.workload.order or all(m.aggregate.commutative for m in plan.monoids):
        return {}
    lacks = [source.internal(name).isNull() for name in units]
    turned = reduce(Column.__or__, [F.lag(lack).over(over) != lack for lack in lacks])
    return {"turn": F.when(turned & (F.lag(TIME).over(over) == F.col(TIME)), 1).otherwise(0)}
