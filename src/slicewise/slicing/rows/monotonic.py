"""Measures that only advance: which rows fit, and the rows that do as windows on those measures see them.

A row counts in windows on a measure if it has all their measures and goes back on none: *it fits*. Which rows do is a
column beside the user's, one for all windows on the same measures.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from slicewise.bad_rows import GAP, MEASURE
from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex
from slicewise.slicing.rows import slides
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.slides import MeasureLimit, last_tick
from slicewise.slicing.time.tuples import Tuples
from slicewise.windows import Window

__all__ = ["MeasuredRows", "Misfit", "fits_column", "fitting", "measures_of", "misfits", "reading"]


def measures_of(window: Window) -> tuple[str, ...]:
    """The columns that a window is measured by."""
    return tuple(m.column for m in window.measures if m.column is not None)


def reading(column: Column) -> np.ndarray:
    """A measure as numbers that can be compared with the bounds of windows; decimals become doubles."""
    if pa.types.is_decimal(column.type):
        numbers: np.ndarray = column.values.astype(np.float64) / 10**column.type.scale
        return numbers
    return column.values


def fits_column(measures: Sequence[str]) -> str:
    """The column that says which rows fit."""
    return "\0fits " + "\0".join(measures)


def fitting(columns: Mapping[str, Column], measures: Sequence[str]) -> Column:
    """Which new rows have all measures."""
    known = np.logical_and.reduce([columns[name].mask for name in measures])
    return Column(known.astype(np.int64), pa.bool_())


@dataclass(frozen=True)
class Misfit:
    """A row that goes back on a measure, has one that is no number, or is too far on: its place, and what is wrong."""

    row: int
    what: str
    reason: str = MEASURE


def misfits(rows: Tuples, measures: Sequence[str], limits: Mapping[str, MeasureLimit]) -> list[Misfit]:
    """The new rows that do not fit: each must lie between the last row that does and the next that did before.

    Rows that were there before fit. Of two new rows that contradict each other the later one is left out::

        time   1   2   3   4   5          rows at 1, 3 and 5 were there, those at 2 and 4 come
        km    10  40  20  25  30          40 goes beyond the 20 that follows: left out; 25 fits
    """
    refused: list[Misfit] = []
    fits = rows.columns[fits_column(measures)].values > 0
    for name in measures:
        limit = limits[name]
        wrong = _numberless(rows, name, fits, limit)
        fits[[m.row for m in wrong]] = False
        refused += wrong
        places = np.flatnonzero(fits)
        key, here = rows.key[places], reading(rows.columns[name])[places]
        ticks = None if limit.slide is None else last_tick(here, limit.slide)
        apart = here[1:] < here[:-1]
        if ticks is not None:
            apart |= ticks[1:] - ticks[:-1] > slides.MOST_TICKS
        apart &= key[1:] == key[:-1]
        for number_of_key in np.unique(key[1:][apart]).tolist():
            some = slice(*np.searchsorted(key, [number_of_key, number_of_key + 1]).tolist())
            wrong = [] if ticks is None else _jumping(rows, name, places[some], ticks[some], limit)
            gone = {m.row for m in wrong}
            wrong += _going_back(rows, name, [place for place in places[some].tolist() if place not in gone])
            fits[[m.row for m in wrong]] = False
            refused += wrong
    return refused


def _numberless(rows: Tuples, name: str, fits: np.ndarray, limit: MeasureLimit) -> list[Misfit]:
    """Rows whose measure is no number, or so far from 0 that slides have none."""
    value = reading(rows.columns[name])
    reach = limit.reach(value)
    if value.dtype.kind != "f" and not np.isfinite(reach):
        return []
    refused = []
    for row in np.flatnonzero(fits & ~(np.isfinite(value) & (value >= -reach) & (value <= reach))).tolist():
        finite = "" if not np.isfinite(value[row]) else f", at most {reach:g} from 0, where slides have numbers"
        what = f"the measure {name!r} must be a finite number{finite}; got {value[row]} at time {rows.time[row]}"
        refused.append(Misfit(row, what))
    return refused


def _jumping(rows: Tuples, name: str, places: np.ndarray, ticks: np.ndarray, limit: MeasureLimit) -> list[Misfit]:
    """The rows of a key that jump over too many ticks."""
    known = (~rows.unreported[places]).tolist()
    return [
        _misfit(
            rows, name, f"not jump over more than {slides.MOST_TICKS} ticks of {limit.slide}", places[i], places[j], GAP
        )
        for i, j in slides.over_gaps(ticks.tolist(), known).items()
    ]


def _going_back(rows: Tuples, name: str, places: list[int]) -> list[Misfit]:
    """The rows of a key that go back; one row after the other."""
    value, fresh = reading(rows.columns[name]), rows.unreported
    following = [-1] * len(places)  # the next row that was there before
    for i in range(len(places) - 2, -1, -1):
        following[i] = following[i + 1] if fresh[places[i + 1]] else places[i + 1]
    refused, last = [], -1
    for at, after in zip(places, following, strict=True):
        if fresh[at] and last >= 0 and value[last] > value[at]:
            refused.append(_misfit(rows, name, "not go backwards", at, last, MEASURE))
        elif fresh[at] and after >= 0 and value[after] < value[at]:
            refused.append(_misfit(rows, name, "not go backwards", at, after, MEASURE))
        else:
            last = at
    return refused


def _misfit(rows: Tuples, name: str, must: str, row: int, other: int, reason: str) -> Misfit:
    value = reading(rows.columns[name])
    what = (
        f"the measure {name!r} must {must}; got {value[row]} at time {rows.time[row]}, "
        f"{'after' if other < row else 'before'} {value[other]} at time {rows.time[other]}"
    )
    return Misfit(int(row), what, reason)


class MeasuredRows:
    """The rows of a view that count in some windows: all of them, or those that fit.

    Attributes
    ----------
    rows
        Their places in the view; None if all rows count.
    starts, ends
        For each key of the view, its rows among those that count.
    """

    def __init__(self, view: OrderedRows, measures: Sequence[str]) -> None:
        self.view = view
        self.rows: np.ndarray | None = None
        self.starts, self.ends = view.starts, view.ends
        self.key, self.time = view.key, view.time
        if measures:
            fits = view.marks(fits_column(measures)) > 0
            if not fits.all():
                self.rows = np.flatnonzero(fits)
                self.starts, self.ends = np.searchsorted(self.rows, (view.starts, view.ends))
                self.key, self.time = self.key[self.rows], self.time[self.rows]

    def measure(self, name: str) -> np.ndarray:
        """The values of a measure."""
        of_slices = self.view.slices.marks.get(name)
        if of_slices is not None:  # all rows stand in slices, which are cut at the edges of the measure
            return of_slices if self.rows is None else of_slices[self.rows]
        values = reading(self.view.rows.columns[name])
        return values if self.rows is None else values[self.view.row_at(self.rows)]

    def number_of(self, place: np.ndarray) -> np.ndarray:
        """How many rows that count come before places of the view."""
        return place if self.rows is None else np.searchsorted(self.rows, place)

    def place_of(self, number: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        """Where in the view, for each key, the row of a number stands; ``otherwise`` where the key has none."""
        if self.rows is None:
            return np.where(number < self.ends, number, otherwise)
        out = otherwise.copy()
        there = number < self.ends
        out[there] = self.rows[number[there]]
        return out

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each row that counts, which of the view's keys it belongs to."""
        return np.repeat(np.arange(len(self.starts)), self.ends - self.starts)

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds rows by key and time."""
        return KeyTimeIndex(self.key, self.time)
