"""Rows from the future: how far ahead of the clock a row may be, in process.

A row far ahead moves the watermark with it, and all rows that follow are late. Where ``ahead`` is given, such a row is
refused before anything moves. On streams the same is judged where rows are read, by the micro-batch's own time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.amounts import INTEGER, Amount, Measure, format_instant, from_micros
from slicewise.bad_rows import AHEAD
from slicewise.errors import DataError, QueryError, RefusedRowsError
from slicewise.labels import RowLabel
from slicewise.slicing.intake.input import Batch
from slicewise.workload import Workload, read_clock, system_clock

__all__ = ["AheadLimit", "ahead_length"]


def ahead_length(workload: Workload, ahead: Any, *, integers: bool = False) -> int:
    """How far ahead rows may be, in the unit of event time; ``integers`` says that the time column holds them."""
    if workload.time_measure == INTEGER or (integers and workload.unit is None):
        raise QueryError(_needs_unit(workload, ahead))
    return workload.time_length(ahead, name="ahead")


class AheadLimit:
    """How far ahead of the clock the rows of one operator may be.

    Parameters
    ----------
    ahead
        A duration.
    clock
        Gives microseconds since the epoch; by default the system's.
    """

    def __init__(self, workload: Workload, ahead: Any, clock: Callable[[], int] | None) -> None:
        if clock is not None and not callable(clock):
            raise QueryError(f"`clock` must be a function that gives microseconds since the epoch; got {clock!r}")
        self.workload = workload
        self.length = ahead_length(workload, ahead)
        self.unit = workload.unit or "microseconds"
        self._ahead = str(Amount(self.length, Measure("time", unit=self.unit)))
        self._clock = clock or system_clock

    def check(self, at: int, time_type: pa.DataType, key: Callable[[], dict[str, Any]]) -> int:
        """The furthest event time that a row may have now; refuses a row further away, of this type of time."""
        self._check_type(time_type)
        now, furthest = self._reading()
        if at > furthest:
            raise self._error(RowLabel(key(), at, time_type, self.unit), now, [0])
        return furthest

    def judged(self, batch: Batch) -> tuple[Batch, RefusedRowsError | None]:
        """The rows of a batch that are not too far ahead, and what is wrong with the others."""
        self._check_type(batch.time_type)
        now, furthest = self._reading()
        wrong = batch.times > furthest
        if not wrong.any():
            return batch, None
        # A row that nobody means is no bad one; it does not move the watermark either.
        rows = np.flatnonzero(wrong & batch.meant).tolist()
        error = self._error(batch.label(rows[0], self.workload), now, rows) if rows else None
        return batch.pick(np.flatnonzero(~wrong)), error

    def _reading(self) -> tuple[int, int]:
        now = read_clock(self._clock)
        return now, from_micros(now, self.unit) + self.length

    def _check_type(self, time_type: pa.DataType) -> None:
        if pa.types.is_integer(time_type):
            raise DataError(_needs_unit(self.workload, self._ahead))

    def _error(self, label: RowLabel, now: int, rows: list[int]) -> RefusedRowsError:
        clock = format_instant(now)
        return RefusedRowsError(
            f"{label}: it is further ahead of the clock than `ahead` allows; the clock shows {clock}, and `ahead` is "
            f"{self._ahead!r}; {label.left_out(len(rows) - 1)}",
            rows,
            reason=AHEAD,
        )


def _needs_unit(workload: Workload, ahead: Any) -> str:
    return (
        f"`ahead` is measured by the clock, but it is not known what the integers of {workload.time!r} count; got "
        f"{ahead!r}; say it: Workload(time={workload.time!r}, unit='seconds')"
    )
