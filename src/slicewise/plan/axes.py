"""Measures: what rows are counted in besides event time, for workloads that Spark slices.

Rows of a key in order advance in every measure at once: in event time, in their position, in units of a column, in the
number of markers passed. A slice is a cell of all measures that some window needs (the vector timestamps of general
stream slicing), and slices in the order of their rows are in order of every measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa

from slicewise.amounts import ROWS, Amount
from slicewise.errors import QueryError
from slicewise.times import LARGEST_TIME
from slicewise.windows import Punctuated, Sliding, Window

__all__ = ["Gauge", "Marks", "Measure", "Positions", "Units", "counts_rows", "counts_units", "gauge_of", "measures_of"]

#: Decimals of so many digits are integers of 64 bits.
LONG_DIGITS = 18


@dataclass(frozen=True)
class Gauge:
    """How a column is read as a measure.

    Attributes
    ----------
    scale
        Decimals are read as integers: the measure times ``10**scale``.
    exact
        The measure is an integer, and so are the bounds of windows; otherwise both are doubles.
    """

    scale: int = 0
    exact: bool = True


@dataclass(frozen=True)
class Positions:
    """The position of a row among those of its key; ``places`` are those of the windows among the plan's."""

    windows: tuple[Sliding, ...]
    places: tuple[int, ...]
    by_position = True


@dataclass(frozen=True)
class Units:
    """A numeric column that only advances. The windows are in what the gauge reads."""

    column: str
    gauge: Gauge
    windows: tuple[Sliding, ...]
    places: tuple[int, ...]
    by_position = True


@dataclass(frozen=True)
class Marks:
    """How many rows so far met a condition."""

    window: Punctuated
    places: tuple[int, ...]
    by_position = False


Measure = Positions | Units | Marks


def counts_rows(window: Window) -> bool:
    """Whether length and slide are rows."""
    return isinstance(window, Sliding) and window.measures == (ROWS,)


def counts_units(window: Window) -> bool:
    """Whether length and slide are units of one column."""
    return isinstance(window, Sliding) and len(window.measures) == 1 and window.measures[0].column is not None


def measures_of(context: Sequence[Window], types: Mapping[str, pa.DataType]) -> tuple[Measure, ...]:
    """The measures that some windows are on, each with all its windows."""
    counted = [i for i, w in enumerate(context) if counts_rows(w)]
    found: list[Measure] = []
    if counted:
        windows = tuple(w for w in context if isinstance(w, Sliding) and counts_rows(w))
        found.append(Positions(windows, tuple(counted)))
    units: dict[tuple[str, Gauge], list[int]] = {}
    for i, window in enumerate(context):
        if isinstance(window, Sliding) and counts_units(window):
            column = str(window.measure.column)
            units.setdefault((column, gauge_of(window, types[column])), []).append(i)
        elif isinstance(window, Punctuated):
            found.append(Marks(window, (i,)))
    for (column, gauge), places in units.items():
        found.append(Units(column, gauge, tuple(_twin(context[i], gauge) for i in places), tuple(places)))
    return tuple(found)


def gauge_of(window: Sliding, type_: pa.DataType) -> Gauge:
    """How a column of this type is read for a window on it.

        >>> from slicewise.times import LARGEST_TIME
    from slicewise.windows import tumbling
        >>> from slicewise.amounts import units
        >>> gauge_of(tumbling(units(0.25, "km")), pa.decimal128(9, 1))
        Gauge(scale=2, exact=True)

        Raises
        ------
        QueryError
            With the reason why it cannot be, as the end of a sentence.
    """
    sizes = [window.length.size, window.every.size, window.offset]
    column = window.measure.column
    if pa.types.is_floating(type_) or (pa.types.is_integer(type_) and any(isinstance(s, float) for s in sizes)):
        return Gauge(exact=False)
    if pa.types.is_integer(type_):
        gauge = Gauge()
    elif pa.types.is_decimal(type_):
        gauge = Gauge(max(type_.scale, *(-int(Decimal(str(s)).normalize().as_tuple().exponent) for s in sizes)))
        if type_.precision - type_.scale + gauge.scale > LONG_DIGITS:
            raise QueryError(f"{column!r} is {type_}, which 64 bits do not hold")
    else:
        raise QueryError(f"{column!r} is {type_}, which is no number")
    if max(abs(Decimal(str(s))) for s in sizes) * 10**gauge.scale > LARGEST_TIME:
        raise QueryError(f"{window!r} reaches further than 64 bits")
    return gauge


def _twin(window: Window, gauge: Gauge) -> Sliding:
    """The same window in what the gauge reads."""
    assert isinstance(window, Sliding)
    if not gauge.exact:
        return window
    length, every, offset = (
        int(Decimal(str(s)) * 10**gauge.scale) for s in (window.length.size, window.every.size, window.offset)
    )
    return Sliding(Amount(length, window.measure), Amount(every, window.measure), offset)
