"""Labels: which row or which window a message is about, in the user's words. A leaf."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["RowLabel", "WindowLabel"]

_NUMPY_UNITS = {"seconds": "s", "milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}


@dataclass(frozen=True)
class WindowLabel:
    """The query, the key and the window of a result, for messages.

    ``time_type`` is the Arrow type of event times, and None where the bounds are positions or units; ``unit`` is what
    event times count.

    >>> print(WindowLabel("q", {"k": "a"}, 0, 10_500_000, pa.timestamp("us", "UTC")))
    query 'q', key k='a', window [1970-01-01 00:00:00+00:00, 1970-01-01 00:00:10.500000+00:00)
    >>> print(WindowLabel("q", {}, 20, 30, None))
    query 'q', span [20, 30)
    """

    query: str
    key: dict[str, Any]
    start: int | float
    end: int | float | None
    time_type: pa.DataType | None
    unit: str = "microseconds"

    def __str__(self) -> str:
        key = _key_shown(self.key)
        bounds = f"[{self._bound(self.start)}, {'open' if self.end is None else self._bound(self.end)})"
        window = f"{'span' if self.time_type is None else 'window'} {bounds}"
        return ", ".join([f"query {self.query!r}", *([f"key {key}"] if key else []), window])

    def _bound(self, at: int | float) -> str:
        return _time_shown(at, self.time_type, self.unit)


@dataclass(frozen=True)
class RowLabel:
    """Which row it is, or which run of rows in event-time order, for messages: key and event time.

    >>> print(RowLabel({"k": "a"}, 5_000_000, pa.timestamp("us")))
    the record of time 1970-01-01 00:00:05, key k='a'
    >>> print(RowLabel({}, 5, pa.int64(), last=9, rows=3))
    a batch of 3 records from 5 to 9
    """

    key: dict[str, Any]
    time: int
    time_type: pa.DataType | None = None
    unit: str = "microseconds"
    last: int | None = None
    rows: int = 1

    def __str__(self) -> str:
        first = self.shown(self.time)
        shown = f"the record of time {first}"
        if self.last is not None:
            shown = f"a batch of {self.rows} records from {first} to {self.shown(self.last)}"
        return ", ".join([shown, *([f"key {_key_shown(self.key)}"] if self.key else [])])

    def shown(self, at: int) -> str:
        """Another event time of the same kind."""
        return _time_shown(at, self.time_type, self.unit)

    def left_out(self, others: int = 0) -> str:
        """What became of it, and of other rows."""
        also = "" if not others else f", and so {'was 1 other' if others == 1 else f'were {others} others'}"
        return ("the record was left out" if self.last is None else "they were left out") + also


def _key_shown(key: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in key.items())


def _time_shown(at: int | float, time_type: pa.DataType | None, unit: str) -> str:
    if time_type is None or not pa.types.is_timestamp(time_type):
        return str(at)
    # NumPy knows years beyond 9999, which a window may reach.
    shown = str(np.array([int(at)], np.int64).view(f"M8[{_NUMPY_UNITS[unit]}]")[0]).replace("T", " ")
    return re.sub(r"\.0+$", "", shown) + ("+00:00" if time_type.tz else "")
