"""Processing time: rows that have no event time get the clock's, when they come. Below the workload."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from slicewise.errors import QueryError
from slicewise.windows.parameters import format_code

__all__ = ["ProcessingTime", "check_on_clock", "processing_time", "read_clock", "system_clock"]


def system_clock() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def read_clock(clock: Callable[[], int]) -> int:
    """What a clock of the user's shows, if that is microseconds."""
    now = clock()
    # NumPy's integers know their place among numbers, too.
    if isinstance(now, bool) or not hasattr(now, "__index__"):
        raise QueryError(f"`clock` must give microseconds since the epoch, an integer; got {now!r}")
    return int(now)


class ProcessingTime(str):
    """The time of a workload whose rows have none; see :func:`processing_time`.

    It stands where the name of the time column does, and no column of the user's has its name.
    """

    clock: Callable[[], int] | None

    def __new__(cls, clock: Callable[[], int] | None = None) -> ProcessingTime:
        made = super().__new__(cls, "\0processing time")
        made.clock = clock
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.clock,)

    def now(self) -> int:
        """Microseconds since the epoch, as the clock shows them."""
        return read_clock(self.clock or system_clock)

    def __repr__(self) -> str:
        return f"processing_time({'' if self.clock is None else format_code(self.clock)})"

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec)


def processing_time(clock: Callable[[], int] | None = None) -> ProcessingTime:
    """The clock instead of a time column: rows belong to the windows that are open when they come.

    Parameters
    ----------
    clock : callable, optional
        Gives microseconds since the epoch; by default the system's. Where it goes back, time stands still. On Spark
        the clock is that of the micro-batch, and this is refused.

    Returns
    -------
    ProcessingTime
        What ``Workload(time=...)`` takes.

    Notes
    -----
    Every row is its own watermark, so nothing is ever out of order or late: ``watermark``, ``lateness``, ``order`` and
    ``ordered`` are refused. A batch on Spark is refused, because it has no clock that a second run would share.

    Examples
    --------
    >>> import slicewise as sw
    >>> seconds = iter([1, 2, 11, 25])
    >>> clock = lambda: next(seconds) * 1_000_000
    >>> visits = sw.Workload(time=sw.processing_time(clock)).query("tens", sw.tumbling("10 seconds"), n=sw.count())
    >>> op = visits.operator()
    >>> _ = op.process(None, {}), op.process(None, {})
    >>> [(r.start, r.end, r.values["n"]) for r in op.process(None, {})]
    [(0, 10000000, 2)]
    >>> [(r.start, r.end, r.values["n"]) for r in op.advance()]
    [(10000000, 20000000, 1)]
    """
    if clock is not None and not callable(clock):
        raise QueryError(
            f"`clock` must be a function that gives microseconds since the epoch; got {clock!r}", parameter="clock"
        )
    return ProcessingTime(clock)


def check_on_clock(time: Any, given: Mapping[str, Any]) -> None:
    """Refuse, of the parameters that were given beside processing time, those that are about event time."""
    if not isinstance(time, ProcessingTime):
        return
    for name, value in given.items():
        if value:
            raise QueryError(
                f"`{name}` is about event time, and {time!r} takes the clock's: every row is its own watermark, and "
                f"none is late; got {value!r}; leave it out",
                parameter=name,
            )
