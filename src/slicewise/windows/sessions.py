"""Sessions: windows of activity, closed by a gap without rows."""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.amounts import ROWS, Amount, Measure, to_amount
from slicewise.errors import QueryError
from slicewise.windows.kinds import Context, Window
from slicewise.windows.parameters import Length, format_amount

__all__ = ["Session", "session"]


@dataclass(frozen=True, repr=False)
class Session(Window):
    """Activity closed by a ``gap`` without rows: ``[first, last + gap)``."""

    gap: Amount

    @property
    def context(self) -> Context:
        return Context.SESSION

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.gap.measure,)

    @property
    def session_gap(self) -> int | None:
        return int(self.gap.size) if self.gap.measure.is_event_time else None

    def __repr__(self) -> str:
        return f"session({format_amount(self.gap)})"


def session(gap: Length) -> Session:
    """Activity closed by a gap: a row at most ``gap`` after the one before joins its session.

    Parameters
    ----------
    gap : str, int, timedelta or Amount
        How long no row comes before a session is over: in event time, or as ``sw.units(2, "km")`` how far a column
        advances without one.

    Returns
    -------
    Session
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> sw.session("30 seconds")
    session('30 seconds')
    >>> op = sw.Workload(time="ts").query("visits", sw.session(5), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 12], "v": [1, 2, 5]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(1, 9, 3), (12, 17, 5)]
    """
    amount = to_amount(gap, name="gap")
    if amount.measure == ROWS:
        raise QueryError(
            f"`gap` must be a length of event time, or units of a column; got {format_amount(amount)}; positions have "
            "no gaps: every row has the one after the row before it",
            parameter="gap",
        )
    return Session(amount)
