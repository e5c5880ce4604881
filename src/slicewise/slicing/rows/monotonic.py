"""Measures that only advance: which rows fit, and the rows that do as windows on those measures see them.

A row counts in windows on a measure if it has all their measures and goes back on none: *it fits*. Which rows do is a
column beside the user's, one for all windows on the same measures.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.bad_rows import GAP, MEASURE
from slicewise.columns import Column
from slicewise.kernels import KeyTimeIndex, bisect, sorted_unique
from slicewise.slicing.rows import slides
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.slides import MeasureLimit, last_tick
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.windows import Window

__all__ = [
    "MeasuredRows",
    "Misfit",
    "empty_marks",
    "fits_column",
    "fitting",
    "marks_of_slices",
    "measures_of",
    "misfits",
    "parted",
    "reading",
    "reduced",
]


def measures_of(window: Window) -> tuple[str, ...]:
    """The columns that a window is measured by."""
    return tuple(m.column for m in window.measures if m.column is not None)


def reading(column: Column) -> np.ndarray:
    """A measure as numbers that can be compared with the bounds of windows; decimals become doubles."""
    if column.values.dtype.hasobject and pa.types.is_decimal(column.type):
        numbers: np.ndarray = column.values.astype(np.float64) / 10**column.type.scale
        return numbers
    return column.values


@functools.cache
def fits_column(measures: tuple[str, ...]) -> str:
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


def misfits(rows: Tuples, slices: Slices, measures: Sequence[str], limits: Mapping[str, MeasureLimit]) -> list[Misfit]:
    """The new rows that do not fit: each must lie between the last row that does and the next that did before.

    Rows that were there before fit, also those that stand in slices, which come before all others of their key. Of two
    new rows that contradict each other the later one is left out::

        time   1   2   3   4   5          rows at 1, 3 and 5 were there, those at 2 and 4 come
        km    10  40  20  25  30          40 goes beyond the 20 that follows: left out; 25 fits
    """
    refused: list[Misfit] = []
    fits = rows.columns[fits_column(measures)].values > 0
    for name in measures:
        limit = limits[name]
        wrong = _numberless(rows, name, fits, limit)
        if wrong:
            fits[[m.row for m in wrong]] = False
            refused += wrong
        key, here, places = rows.key, reading(rows.columns[name]), fits.nonzero()[0]
        if len(places) < len(fits):
            key, here = key[places], here[places]
        ticks = None if limit.slide is None else last_tick(here, limit.slide)
        apart = here[1:] < here[:-1]
        if ticks is not None:
            apart |= ticks[1:] - ticks[:-1] > slides.MOST_TICKS
        # How far the key of each row has come in slices, of which there is nothing else to be known here.
        far = slices.marks.get(last_measure_mark(name)) if len(measures) == 1 else None
        before = None if far is None or not len(far) else furthest_of_keys(slices.key, far, key)
        suspect = key[1:][apart & (key[1:] == key[:-1])] if np.logical_or.reduce(apart) else NO_ROWS
        if before is not None:
            suspect = np.concatenate([suspect, key[here < before]])
        if not len(suspect):
            continue
        for number_of_key in np.unique(suspect).tolist():
            some = slice(*np.searchsorted(key, [number_of_key, number_of_key + 1]).tolist())
            wrong = [] if ticks is None else _jumping(rows, name, places[some], ticks[some], limit)
            gone = {m.row for m in wrong}
            behind = None if before is None else before[some][0]
            wrong += _going_back(rows, name, [place for place in places[some].tolist() if place not in gone], behind)
            fits[[m.row for m in wrong]] = False
            refused += wrong
    return refused


def _numberless(rows: Tuples, name: str, fits: np.ndarray, limit: MeasureLimit) -> list[Misfit]:
    """Rows whose measure is no number, or so far from 0 that slides have none."""
    value = reading(rows.columns[name])
    reach = limit.reach(value)
    if not len(value) or (np.minimum.reduce(value) >= -reach and np.maximum.reduce(value) <= reach < math.inf):
        return []
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


def _going_back(rows: Tuples, name: str, places: list[int], behind: Any) -> list[Misfit]:
    """The rows of a key that go back; one row after the other. All rows of its slices are at most at ``behind``."""
    value, fresh = reading(rows.columns[name]), rows.unreported
    following = [-1] * len(places)  # the next row that was there before
    for i in range(len(places) - 2, -1, -1):
        following[i] = following[i + 1] if fresh[places[i + 1]] else places[i + 1]
    refused, last = [], -1
    for at, after in zip(places, following, strict=True):
        if fresh[at] and last < 0 and behind is not None and value[at] < behind:
            what = (
                f"the measure {name!r} must not go backwards; got {value[at]} at time {rows.time[at]}, after {behind}"
            )
            refused.append(Misfit(at, what))
        elif fresh[at] and last >= 0 and value[last] > value[at]:
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

    Parameters
    ----------
    sliced
        Whether the windows can do with slices; if not, all rows that they need are single ones, and slices do not
        count.

    Attributes
    ----------
    rows
        Their places in the view; None if all rows count.
    starts, ends
        For each key of the view, its rows among those that count.
    """

    def __init__(self, view: OrderedRows, measures: Sequence[str], *, sliced: bool = False) -> None:
        self.view = view
        self.rows: np.ndarray | None = None
        self.starts, self.ends = view.starts, view.ends
        self.key, self.time = view.key, view.time
        if measures:
            fits = view.marks(fits_column(measures)) > 0
            if not sliced:
                fits[view.slice_places] = False
            if not np.logical_and.reduce(fits):
                self.rows = fits.nonzero()[0]
                self.starts, self.ends = np.searchsorted(self.rows, (view.starts, view.ends))
                self.key, self.time = self.key[self.rows], self.time[self.rows]

    def measure(self, name: str) -> np.ndarray:
        """The values of a measure; of slices, at their first row."""
        return self._values(name, name)

    def last_measure(self, name: str) -> np.ndarray:
        """The values of a measure; of slices, at their last row."""
        return self._values(name, last_measure_mark(name))

    def _values(self, name: str, mark: str) -> np.ndarray:
        values = _by_place(self.view, name, mark)
        return values if self.rows is None else values[self.rows]

    def final_measure(self, name: str) -> np.ndarray:
        """For each key of the view, how far it has come in rows that stand in slices; all these are final.

        Where no mark says so, slices are all there is and nothing was final before.
        """
        furthest = self.view.slices.marks.get(last_measure_mark(name))
        if furthest is None or not len(furthest):
            dtype = self.measure(name).dtype
            return np.full(len(self.view.keys), lowest(dtype), dtype)
        return furthest_of_keys(self.view.slices.key, furthest, self.view.keys)

    def places(self, numbers: np.ndarray) -> np.ndarray:
        """Where in the view rows stand, given by their numbers among those that count."""
        return numbers if self.rows is None else self.rows[numbers]

    def apart_from_misfits(self, begins: np.ndarray, settled: np.ndarray) -> np.ndarray:
        """Where slices must begin so that none holds both rows that count and others.

        ``begins`` are where windows begin; what is before the first of a key does not matter.
        """
        if self.rows is None:
            return begins
        fits = np.zeros(len(self.view), bool)
        fits[self.rows] = True
        return parted(self.view, fits, begins, settled)

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

    def places_on(self, name: str) -> Callable[..., np.ndarray]:
        """What finds rows of keys by a measure: the first not before a value, in a range of the rows that count."""
        measure = self.measure(name)
        index = KeyTimeIndex(self.key, measure) if measure.dtype.kind == "i" or len(self.starts) == 1 else None

        def places(key: np.ndarray, wanted: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
            # Of several keys, an index makes one integer of a key and a value.
            if index is None or (len(self.starts) > 1 and wanted.dtype.kind != "i"):
                return bisect(measure, wanted, low, high)
            place: np.ndarray = np.minimum(np.maximum(index.locate(key, wanted), low), high)
            return place

        return places

    @functools.cached_property
    def segment(self) -> np.ndarray:
        """For each row that counts, which of the view's keys it belongs to."""
        return np.arange(len(self.starts)).repeat(self.ends - self.starts)

    @functools.cached_property
    def index(self) -> KeyTimeIndex:
        """Finds rows by key and time."""
        return KeyTimeIndex(self.key, self.time)


# Slices


def parted(view: OrderedRows, counts: np.ndarray, begins: np.ndarray, settled: np.ndarray) -> np.ndarray:
    """Where slices must begin, for windows that begin there, so that none holds both places that count and others.

    What is before the first begin of a key does not matter; nor, here, what is not ``settled``.
    """
    if counts.all() or not len(begins):
        return begins
    turns = 1 + np.flatnonzero(counts[1:] != counts[:-1])
    first = view.earliest(begins, settled)
    turns = turns[(turns > view.of_key(first, turns)) & (turns < view.of_key(settled, turns))]
    return sorted_unique(np.concatenate([begins, turns]))


@functools.cache
def last_measure_mark(name: str) -> str:
    """What says of a slice how far it goes on a measure, beside the measure itself, which says where it begins."""
    return f"\0last {name}"


def lowest(dtype: Any) -> Any:
    """What is before every value of a measure."""
    return -np.inf if np.dtype(dtype).kind == "f" else np.iinfo(np.int64).min


def empty_marks(measure: str, types: Mapping[str, pa.DataType], slices: int) -> dict[str, np.ndarray]:
    """The marks of slices that no window on a measure uses."""
    dtype = np.int64 if pa.types.is_integer(types[measure]) else np.float64
    return {
        fits_column((measure,)): np.zeros(slices, np.int64),
        measure: np.zeros(slices, dtype),
        last_measure_mark(measure): np.full(slices, lowest(dtype), dtype),
    }


def marks_of_slices(view: OrderedRows, measure: str, begins: np.ndarray, ends: np.ndarray) -> dict[str, np.ndarray]:
    """What windows on a measure must know of new slices: whether all rows fit, and where they begin and end on it.

    Slices do not overlap; places between the end of one and the begin of the next are in none.
    """
    fits = view.marks(fits_column((measure,)))
    last = _by_place(view, measure, last_measure_mark(measure))
    if not np.logical_and.reduce(fits):
        unfit = fits == 0
        unfit[view.slice_places] = False  # of a slice in which not all rows fit, those that do are in its mark
        last = np.where(unfit, lowest(last.dtype), last)
    return {
        fits_column((measure,)): reduced(np.minimum, fits, begins, ends),
        measure: _by_place(view, measure, measure)[begins],
        last_measure_mark(measure): reduced(np.maximum, last, begins, ends),
    }


def reduced(ufunc: np.ufunc, values: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The least or the largest of the values in each range."""
    if not len(begins):
        return values[:0]
    bounds = np.empty(2 * len(begins), np.int64)
    bounds[::2], bounds[1::2] = begins, ends
    reduced: np.ndarray = ufunc.reduceat(values, bounds[:-1] if ends[-1] == len(values) else bounds)[::2]
    return reduced


def _by_place(view: OrderedRows, name: str, mark: str) -> np.ndarray:
    """A measure at every place: that of a row, or a mark of a slice."""
    column = view.rows.columns.get(name)
    if column is None:  # all rows stand in slices, which are cut at the edges of the measure
        return view.slices.marks[mark]
    values = reading(column)
    if not len(view.slices):
        return values
    # Slices that nobody measures do not count, whatever stands there.
    return view.merged(view.slices.marks.get(mark, np.zeros(len(view.slices), values.dtype)), values)


def furthest_of_keys(key: np.ndarray, last: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """How far each of some keys has come in its slices."""
    if key[0] == key[-1] and len(keys) and keys[0] == keys[-1] == key[0]:
        return np.maximum.reduce(last, keepdims=True).repeat(len(keys))
    out = np.full(int(max(key.max(initial=-1), keys.max(initial=-1))) + 1, lowest(last.dtype), last.dtype)
    np.maximum.at(out, key, last)
    furthest: np.ndarray = out[keys]
    return furthest
