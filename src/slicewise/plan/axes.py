"""Axes: what rows are counted in besides event time, for workloads that Spark slices.

Rows of a key in order advance on every axis at once: in event time, in their position, in units of a column, in the
number of markers passed. A slice is a cell of all axes that some window needs (the vector timestamps of general
stream slicing), and slices in the order of their rows are in order on every axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from slicewise.amounts import ROWS
from slicewise.errors import QueryError
from slicewise.times import LARGEST_TIME
from slicewise.windows import Window

__all__ = ["Axis", "Marks", "MeasureScale", "Positions", "Units", "axes_of", "scale_of"]

#: Decimals of so many digits are integers of 64 bits.
LONG_DIGITS = 18


@dataclass(frozen=True)
class MeasureScale:
    """How a column is read as a measure.

    Attributes
    ----------
    digits
        Decimals are read as integers: the measure times ``10**digits``.
    exact
        The measure is an integer, and so are the bounds of windows; otherwise both are doubles.
    """

    digits: int = 0
    exact: bool = True


@dataclass(frozen=True)
class Positions:
    """The position of a row among those of its key; ``places`` are those of the windows among the plan's."""

    windows: tuple[Window, ...]
    places: tuple[int, ...]
    by_position = True


@dataclass(frozen=True)
class Units:
    """A numeric column that only advances. The windows are in what the scale reads."""

    column: str
    scale: MeasureScale
    windows: tuple[Window, ...]
    places: tuple[int, ...]
    by_position = True


@dataclass(frozen=True)
class Marks:
    """How many rows so far met the condition of a window's markers."""

    window: Window
    places: tuple[int, ...]
    by_position = False


Axis = Positions | Units | Marks


def axes_of(context: Sequence[Window], types: Mapping[str, pa.DataType]) -> tuple[Axis, ...]:
    """The axes that some windows are on, each with all its windows."""
    counted = tuple(place for place, window in enumerate(context) if window.axis == ROWS)
    axes: list[Axis] = [Positions(tuple(context[place] for place in counted), counted)] if counted else []
    units: dict[tuple[str, MeasureScale], list[int]] = {}
    for place, window in enumerate(context):
        if window.axis is not None and window.axis.column is not None:
            column = window.axis.column
            units.setdefault((column, scale_of(window, types[column])), []).append(place)
        elif window.markers is not None:
            axes.append(Marks(window, (place,)))
    for (column, scale), places in units.items():
        windows = (context[place].scaled(scale.digits) if scale.exact else context[place] for place in places)
        axes.append(Units(column, scale, tuple(windows), tuple(places)))
    return tuple(axes)


def scale_of(window: Window, type_: pa.DataType) -> MeasureScale:
    """How a column of this type is read for a window on it.

    >>> from slicewise.amounts import units
    >>> from slicewise.windows import tumbling
    >>> scale_of(tumbling(units(0.25, "km")), pa.decimal128(9, 1))
    MeasureScale(digits=2, exact=True)

    Raises
    ------
    QueryError
        With the reason why it cannot be, as the end of a sentence.
    """
    sizes = [*(length.size for length in window.lengths.values()), *window.instants.values()]
    column = window.measure.column
    if pa.types.is_floating(type_) or (pa.types.is_integer(type_) and any(isinstance(s, float) for s in sizes)):
        return MeasureScale(exact=False)
    if pa.types.is_integer(type_):
        scale = MeasureScale()
    elif pa.types.is_decimal(type_):
        scale = MeasureScale(max(type_.scale, *(-int(Decimal(str(s)).normalize().as_tuple().exponent) for s in sizes)))
        if type_.precision - type_.scale + scale.digits > LONG_DIGITS:
            raise QueryError(f"{column!r} is {type_}, which does not fit in 64 bits", column=column)
    else:
        raise QueryError(f"{column!r} is {type_}, which is not a number", column=column)
    if max(abs(Decimal(str(s))) for s in sizes) * 10**scale.digits > LARGEST_TIME:
        raise QueryError(f"{window!r} reaches further than 64 bits", parameter="window", column=column)
    return scale
