"""The row buffer: rows that come one at a time, collected until there are enough to be worth an array.

A row costs one call, one comparison with the next edge and two appends, because that is all Python can afford. Whether
the row has the right columns is looked into when the buffer is emptied; a row that does not is taken out and named in
the error, and the others stay.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from slicewise.amounts import INTEGER, to_instant
from slicewise.columns import Column, arrow_of
from slicewise.errors import DataError, did_you_mean
from slicewise.results import Results
from slicewise.slicing.intake.ahead import AheadLimit
from slicewise.slicing.intake.input import ROWS, Batch, meant_rows, needs_unit, selected_rows, value_in
from slicewise.times import INFINITY, LARGEST_TIME, largest_time
from slicewise.workload import Workload

__all__ = ["RowBuffer"]

#: Enough rows for an array to pay off, few enough to stay in the cache.
FULL = 16384
NOTHING = Results()


class RowBuffer:
    """Collects the rows of one operator.

    Parameters
    ----------
    ordered
        Rows must come in event-time order, and one that ends a window empties the buffer.
    flush
        Called to empty the buffer; its results go back to whoever brought the last row.
    next_due
        For ordered streams: the event time of the first row that would end a window, and after how many rows one
        would where rows are counted.
    ahead
        How far ahead of the clock a row may be; None where that does not matter.

    Attributes
    ----------
    process
        Takes one row: ``process(time, row, key=None)``. One function for the life of the buffer, so that a caller may
        hold on to it.
    """

    def __init__(
        self,
        workload: Workload,
        ordered: bool,
        flush: Callable[[], Results],
        next_due: Callable[[], tuple[int, int]],
        ahead: AheadLimit | None = None,
    ) -> None:
        self.workload = workload
        self.ordered = ordered
        self.ahead = ahead
        self.flush = flush
        self.next_due = next_due
        self.times: list[Any] = []
        self.rows: list[Any] = []
        self.keys: list[Any] = []
        self.zone: bool | None = None
        self._has_zone = False
        self.time_type: pa.DataType | None = None
        self.latest = -INFINITY
        self._stride = 1
        self._edge = -INFINITY
        self._limit = INFINITY
        self.process, self._reset = self._functions()

    def __len__(self) -> int:
        return len(self.times)

    @property
    def newest(self) -> int:
        """The latest event time of rows in order: of those that wait here, or of those that were taken."""
        return int(self.times[-1]) if self.times else self.latest

    def _functions(self) -> tuple[Callable[..., Results], Callable[[int, int], None]]:
        """The function that takes one row, and the one that tells it from where to where rows need no closer look."""
        add_time, add_row, checked, nothing = self.times.append, self.rows.append, self._checked, NOTHING
        floor = edge = -INFINITY

        def process(time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
            try:
                if time < edge and key is None:
                    add_time(time)
                    add_row(row)
                    return nothing
            except TypeError:
                pass
            return checked(time, row, key)

        def process_in_order(time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
            nonlocal floor
            try:
                if floor <= time < edge and key is None:
                    floor = time
                    add_time(time)
                    add_row(row)
                    return nothing
            except TypeError:
                pass
            return checked(time, row, key)

        def reset(low: int, high: int) -> None:
            nonlocal floor, edge
            floor, edge = low, high

        return process_in_order if self.ordered else process, reset

    def recheck_next(self) -> None:
        """Have the next row checked: what ends a window, or where rows may lie, has changed."""
        self._edge = -INFINITY
        self._reset(-INFINITY, -INFINITY)

    def _checked(self, time: Any, row: Mapping[str, Any], key: Any = None) -> Results:
        """Take a row that needs a closer look: it may end a window, have a key or a time zone, or be wrong."""
        try:
            at, furthest = self._judged(time, row, key)
        except DataError:
            if self._is_meant(row):
                raise
            return NOTHING
        # Asked before the row is in, because a closed operator refuses here.
        if self._edge <= -INFINITY:
            due, self._limit = self.next_due()
            last = min(largest_time(self.workload.unit), furthest)
            self._edge = min(max(self.latest, at) + self._stride, due, last + 1)
        if self.workload.keys:
            self.keys.append(self._key(row, key))
        self.times.append(at)
        self.rows.append(row)
        self.zone, self._has_zone = self._zone, True
        if at >= self._edge or len(self.times) >= min(self._limit, 4 * FULL):
            return self.flush()
        # Where rows are counted, every one of them is looked at.
        if not self.workload.keys and self.zone is None and self._limit >= INFINITY:
            self._reset(at, self._edge)
        return NOTHING

    def _judged(self, time: Any, row: Mapping[str, Any], key: Any) -> tuple[int, int]:
        """The event time of a row, and the furthest that it may have; refuses one that is wrong."""
        at, furthest = self._time(time), INFINITY
        if self.ahead is not None:
            furthest = self.ahead.check(at, self._type_with(self._zone), lambda: self._named_key(row, key))
        latest = self.times[-1] if self.ordered and self.times else self.latest
        if self.ordered and at < latest:
            raise DataError(
                f"rows must come in event-time order with ordered=True; got {at} after {latest}; sort them, or use "
                "operator() and advance()"
            )
        if not self.workload.keys and key not in (None, ()):
            raise DataError(
                f"the workload has no keys; got the key {key!r}; name the key columns: Workload(keys=[...])"
            )
        return at, furthest

    def _is_meant(self, row: Mapping[str, Any]) -> bool:
        """Whether a row that is wrong would count; if not, nothing is wrong with it."""
        if self.workload.where is None or not isinstance(row, Mapping):
            return True
        try:
            values = {name: Column.of([value_in(row, name)]) for name in self.workload.where.names}
            selected, _ = meant_rows(self.workload, values, {}, 1)
        except (DataError, KeyError, TypeError, ValueError, OverflowError, pa.ArrowException):
            return True
        return selected is None or bool(selected[0])

    def batch(self, types: Mapping[str, pa.DataType]) -> Batch:
        """The buffered rows as columns. Raises if a row is not right, and keeps the others.

        ``types`` are those of columns that are known already.
        """
        columns = {name: self._column(name, types.get(name)) for name in self.workload.inputs}
        times = self._time_column()
        keys = [self._key_column(i, name, types.get(name)) for i, name in enumerate(self.workload.keys)]
        selected, failures = selected_rows(self.workload, columns, types, len(times))
        source = {ROWS: list(self.rows)}
        return Batch(times, self._type_with(self.zone), keys, columns, source, selected, failures)

    def clear(self, latest: int) -> None:
        """Forget the buffered rows, the latest of this event time: they have been taken."""
        # Stretch of event time until the next look: as much as brings about a full buffer.
        if len(self.times) < FULL // 2:
            self._stride = min(2 * self._stride, LARGEST_TIME)
        elif len(self.times) > 2 * FULL:
            self._stride = max(1, self._stride // 2)
        self.latest = max(self.latest, latest)
        for kept in (self.times, self.rows, self.keys):
            kept.clear()
        self.recheck_next()

    def _type_with(self, zone: bool | None) -> pa.DataType:
        """The type of window bounds where times have a zone, or none, or are integers (None)."""
        if zone is None:
            return pa.int64() if self.workload.unit is None else pa.timestamp("us")
        return pa.timestamp("us", "UTC" if zone else None)

    def _time_column(self) -> np.ndarray:
        earliest = -largest_time(self.workload.unit)
        try:
            times = np.frombuffer(array("q", self.times), np.int64)
            if times.min() >= earliest:
                return times
            self._refuse_early_row(earliest)
        except OverflowError:
            self._refuse_early_row(earliest)
        except TypeError as error:
            # A number that is no integer got past the comparison with the next edge.
            i = next(i for i, time in enumerate(self.times) if not isinstance(time, (int, np.integer)))
            time = self.times[i]
            self._leave_out(i)
            raise DataError(
                f"the time of a row must be an integer or a datetime; got {time!r}; it was left out"
            ) from error

    def _refuse_early_row(self, earliest: int) -> NoReturn:
        """Take the first row out that lies before all times; nothing but the next edge was compared with it."""
        i, time = next((i, time) for i, time in enumerate(self.times) if time < earliest)
        self._leave_out(i)
        raise DataError(f"the time {time} is out of range; it was left out")

    def _key_column(self, place: int, name: str, type_: pa.DataType | None) -> pa.Array:
        values = [key[place] for key in self.keys]
        try:
            return arrow_of(values, type_)
        except (TypeError, ValueError, OverflowError, pa.ArrowException) as error:
            i, seen = _first_stranger(values, type_)
            time = self.times[i]
            self._leave_out(i)
            known = str(type_) if type_ is not None else f"values like {seen!r}"
            raise DataError(
                f"key column {name!r} holds {known}; got {values[i]!r} in the row at time {time}; it was left out"
            ) from error

    def _leave_out(self, i: int) -> None:
        for kept in (self.times, self.rows, *([self.keys] if self.workload.keys else [])):
            del kept[i]

    def _column(self, name: str, type_: pa.DataType | None) -> Column:
        try:
            values = list(map(itemgetter(name), self.rows))
            # Arrays of machine numbers would take a boolean for 1 and round a decimal.
            if type_ is not None and type_ == pa.int64() and set(map(type, values)) == {int}:
                return Column(np.frombuffer(array("q", values), np.int64), type_)
            if type_ is not None and type_ == pa.float64() and set(map(type, values)) <= {int, float}:
                return Column(np.frombuffer(array("d", values), np.float64), type_)
        except (KeyError, TypeError, IndexError, OverflowError):
            pass
        try:
            return Column.of([value_in(row, name) for row in self.rows], type_)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, pa.ArrowException):
            self._refuse_bad_row(name, type_)
            raise

    def _refuse_bad_row(self, name: str, type_: pa.DataType | None) -> None:
        """Take the first row out whose column is not right, and say what is wrong with it."""
        seen: list[Any] = []
        for i, row in enumerate(self.rows):
            try:
                value = value_in(row, name)
                # With one value from before, an array of both fails if they are of different kinds.
                Column.of([*seen, value], type_)
                if value is not None and not seen:
                    seen = [value]
            except (KeyError, TypeError, IndexError, ValueError, OverflowError, pa.ArrowException) as error:
                time = self.times[i]
                self._leave_out(i)
                raise DataError(self._complaint(name, time, row, seen, type_)) from error

    def _complaint(self, name: str, time: int, row: Any, seen: list[Any], type_: pa.DataType | None) -> str:
        if not isinstance(row, Mapping):
            return f"a row must be a mapping of columns; got {row!r} at time {time}; it was left out"
        try:
            value = value_in(row, name)
        except KeyError:
            return f"there is no column {name!r} in the row at time {time}; it was left out; {did_you_mean(name, row)}"
        known = str(type_) if type_ is not None else f"values like {seen[0]!r}" if seen else "values of one type"
        return (
            f"column {name!r} holds {known}; got {value!r} in the row at time {time}; it was left out. To hold "
            f"both, say what the column is: operator(types={{{name!r}: 'double'}})"
        )

    def _time(self, time: Any) -> int:
        if time is None:
            raise DataError(f"every row needs an event time; got None for {self.workload.time!r}")
        if isinstance(time, (int, np.integer)) and not isinstance(time, (bool, np.bool_)):
            at, zone = int(time), None if self.workload.on_clock is None else True
        else:
            try:
                at, measure = to_instant(time, name="time")
            except ValueError as error:
                raise DataError(f"the time of a row must be an integer or a datetime; got {time!r}") from error
            if measure == INTEGER or self.workload.time_measure == INTEGER:
                raise DataError(f"the time of a row must be an integer, as the windows are; got {time!r}")
            if self.workload.unit is not None:
                raise DataError(f"the time of a row must be an integer, in {self.workload.unit}; got {time!r}")
            zone = getattr(time, "tzinfo", None) is not None
        if self._is_of_another_kind(zone):
            raise DataError(
                "times with a time zone, times without one and plain integers cannot be mixed; "
                f"got {time!r} after another kind; convert one of them"
            )
        if zone is None and self.workload.needs_unit:
            raise DataError(needs_unit(self.workload, f"the integer {at}"))
        if abs(at) > largest_time(self.workload.unit):
            unit = self.workload.unit or "microseconds"
            raise DataError(f"the time {at} is out of range; is it in {unit} since the epoch?")
        self._zone = zone
        return at

    def _is_of_another_kind(self, zone: bool | None) -> bool:
        """Whether a time with or without a zone, or an integer (None), does not go with those before it."""
        if self._has_zone:
            return zone is not self.zone
        if self.time_type is None:
            return False
        integers = self.workload.unit is not None or pa.types.is_integer(self.time_type)
        return zone is not (None if integers else self.time_type.tz is not None)

    def _named_key(self, row: Mapping[str, Any], key: Any) -> dict[str, Any]:
        return dict(zip(self.workload.keys, self._key(row, key), strict=True)) if self.workload.keys else {}

    def _key(self, row: Mapping[str, Any], key: Any) -> tuple[Any, ...]:
        names = self.workload.keys
        if key is None:
            try:
                return tuple(value_in(row, name) for name in names)
            except (KeyError, TypeError, IndexError) as error:
                if not isinstance(row, Mapping):
                    raise DataError(f"a row must be a mapping of columns; got {row!r}") from error
                missing = next((n for n in names if n not in row), names[0])
                raise DataError(
                    f"there is no key column {missing!r} in the row; {did_you_mean(missing, row)}"
                ) from error
        parts = key if isinstance(key, tuple) else (key,)
        if len(parts) != len(names):
            raise DataError(f"a key must have {len(names)} parts, {list(names)!r}; got {key!r}")
        return parts


def _first_stranger(values: list[Any], type_: pa.DataType | None) -> tuple[int, Any]:
    """The place of the first value that does not go with those before it, and one of those."""
    seen: list[Any] = []
    for i, value in enumerate(values):
        try:
            arrow_of([*seen, value], type_)
        except (TypeError, ValueError, OverflowError, pa.ArrowException):
            return i, *(seen or [None])
        if value is not None and not seen:
            seen = [value]
    return len(values) - 1, *(seen or [None])
