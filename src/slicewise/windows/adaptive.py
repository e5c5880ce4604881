"""Adaptive windows: as long as the mean of a column has not changed. ADWIN, by the cuts of an exponential histogram.

A. Bifet, R. Gavaldà: "Learning from Time-Changing Data with Adaptive Windowing", SDM 2007.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from slicewise.amounts import Amount, Measure, to_amount
from slicewise.errors import QueryError
from slicewise.windows.custom import EVERY_ROW
from slicewise.windows.kinds import Context, Window
from slicewise.windows.parameters import Length, format_amount, format_offset, offset_in_unit, read_tick_offset

__all__ = ["Adaptive", "adaptive"]


@dataclass(frozen=True, repr=False)
class Adaptive(Window):
    """ADWIN: after each row the oldest leave while some cut of the window has means that differ too much."""

    column: str
    confidence: float = 0.002
    every: Amount = EVERY_ROW
    offset: int = 0

    @property
    def context(self) -> Context:
        return Context.FORWARD_AWARE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.every.measure,)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*super().reads, self.column]))

    def check_types(self, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        type_, t = types[self.column], pa.types
        if not (t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_) or t.is_null(type_)):
            raise QueryError(
                f"`adaptive` needs numbers; got {type_} for {self.column!r}: cast the column to a numeric type first"
            )

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        return offset_in_unit(self.offset, self.every.measure, unit)

    def __repr__(self) -> str:
        every = "" if self.every == EVERY_ROW else f", every={format_amount(self.every)}"
        offset = format_offset(self.offset, self.every.measure)
        return f"adaptive({self.column!r}, confidence={self.confidence!r}{every}{offset})"


def adaptive(column: str, confidence: float = 0.002, *, every: Length | None = None, offset: Length = 0) -> Adaptive:
    """A window that finds its own length: the latest rows over which the mean of a column has not changed (ADWIN).

    Every row joins. Then, while some cut of the window into ``n0`` older and ``n1`` newer rows has means that differ by
    ``eps`` or more, its oldest row leaves. The lower ``confidence`` is, the more it takes to call a difference a
    change: it bounds how often a window over an unchanging stream is cut.

    Parameters
    ----------
    column : str
        A column of numbers. Rows in which it is null or not finite belong to the window and to no mean.
    confidence : float, optional
        The probability of a false alarm, between 0 and 1.
    every : str, int, timedelta or Amount, optional
        When the window is reported: after every row by default, after each ``sw.rows(n)``, at ticks of event time, or
        of units of a column.
    offset : str, int or timedelta, optional
        How far ticks of event time are shifted; also backwards.

    Returns
    -------
    Adaptive
        The window.

    Notes
    -----
    ``eps = sqrt(2/m var ln(2/d)) + 2/(3m) ln(2/d)`` with ``1/m = 1/n0 + 1/n1``, ``d = confidence / ln n`` and the
    population variance ``var`` of the whole window. Cuts are tried where both sides have at least 5 rows, at the bounds
    that the buckets of an exponential histogram (at most 5 of a size) have after as many insertions as there are rows,
    counted from the newest row.

    Runtime complexity: O(log n) cuts per row, each O(log n) combines of what is watched; the query's aggregates take
    O(1) amortised, as with :func:`policy`.

    Examples
    --------
    After a jump from 1 to 9 the rows before it leave, but for the five without which there is nothing to compare:

    >>> import slicewise as sw
    >>> op = sw.Workload(time="ts").query("level", sw.adaptive("v"), n=sw.count(), mean=sw.avg("v")).operator()
    >>> _ = op.process_batch({"ts": range(60), "v": [1] * 30 + [9] * 30})
    >>> results = op.close()
    >>> [(r.end, r.values["n"], r.values["mean"]) for r in results if r.end in (30, 36, 60)]
    [(30, 30, 1.0), (36, 27, 2.7777777777777777), (60, 35, 7.857142857142857)]
    """
    if not isinstance(column, str):
        raise QueryError(f"`column` must be the name of a column of numbers; got {column!r}", parameter="column")
    number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    if not number or not 0 < confidence < 1:
        raise QueryError(f"`confidence` must lie between 0 and 1; got {confidence!r}", parameter="confidence")
    ticks = EVERY_ROW if every is None else to_amount(every, name="every")
    return Adaptive(column, float(confidence), ticks, read_tick_offset(offset, ticks))
