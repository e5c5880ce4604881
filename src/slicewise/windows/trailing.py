"""Trailing windows: what lies before each row, up to the row itself. As many windows as there are rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from slicewise.amounts import Amount, Measure, to_amount
from slicewise.errors import QueryError, did_you_mean
from slicewise.times import INFINITY
from slicewise.windows.kinds import Context, LookBack, Window
from slicewise.windows.parameters import Length, format_amount

__all__ = ["Trailing", "trailing"]

#: Which ends belong to the window, and whether that is its start and its end.
CLOSED = {"right": (False, True), "left": (True, False), "both": (True, True), "neither": (False, False)}


#: How many rows come within a length of time, and so how many windows hold a row. Nobody knows; more than a few.
ROWS_WITHIN = 100


@dataclass(frozen=True, repr=False)
class Trailing(Window):
    """As of each row, the rows of ``length`` before it."""

    length: Amount
    closed: str = "right"

    @property
    def context(self) -> Context:
        return Context.FORWARD_FREE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.length.measure,)

    @property
    def has_start(self) -> bool:
        """Whether what lies exactly a length before the row belongs to the window."""
        return CLOSED[self.closed][0]

    @property
    def has_end(self) -> bool:
        """Whether the row itself, and what has its time, belongs to the window."""
        return CLOSED[self.closed][1]

    @property
    def most(self) -> int | None:
        """How many rows it holds at most, where its length is a number of rows."""
        # Both ends of ten rows are eleven: the tenth before the row, and the row.
        return int(self.length.size) - 1 + self.has_start + self.has_end if self.counts_rows else None

    @property
    def overlap(self) -> int:
        return self.most or ROWS_WITHIN if self.counts_rows else ROWS_WITHIN

    @property
    def looks_back(self) -> bool:
        return True

    def as_of(self, time: np.ndarray) -> LookBack:
        behind = time + int(self.has_end)
        if self.counts_rows:
            return LookBack(time, time, np.full(len(time), -INFINITY), behind, self.most)
        start = time - int(self.length.size)
        return LookBack(start, time, start + int(not self.has_start), behind)

    def __repr__(self) -> str:
        closed = "" if self.closed == "right" else f", closed={self.closed!r}"
        return f"trailing({format_amount(self.length)}{closed})"


def trailing(length: Length, *, closed: str = "right") -> Trailing:
    """As of each row, the rows of ``length`` before it: the hour before each payment, the last ten visits.

    ``closed`` is about times alone, so that rows of equal time have equal answers: those of Spark's RANGE frames.

    Parameters
    ----------
    length : str, int, timedelta or Amount
        How far a window reaches back: a duration such as ``"1 hour"``, an integer where time is an integer column, or
        ``sw.rows(10)``.
    closed : str, optional
        Which ends of the window from ``t - length`` to the row's time ``t`` belong to it: ``"right"``, ``"left"``,
        ``"both"`` or ``"neither"``. Of rows: the row and the 9 before it; the 10 before it; the 10 before it and the
        row; the 9 before it.

    Returns
    -------
    Trailing
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.trailing("1 hour", closed="left")
    trailing('1 hour', closed='left')
    >>> workload = sw.Workload(time="ts").query("recent", sw.trailing(10), total=sw.sum("v"))
    >>> workload.attach({"ts": [1, 4, 12], "v": [1, 2, 5]})["recent_total"]
    [1, 3, 7]
    """
    amount = to_amount(length, name="length")
    if amount.measure.column is not None:
        raise QueryError(
            f"`length` must be a length of event time, or a number of rows; got {format_amount(amount)}",
            parameter="length",
        )
    if closed not in CLOSED:
        known = did_you_mean(str(closed), CLOSED)
        raise QueryError(
            f"`closed` must be 'right', 'left', 'both' or 'neither'; got {closed!r}; {known}", parameter="closed"
        )
    return Trailing(amount, closed)
