"""Window ranges: windows to report, each with the range of partials that it is made of. Found by both halves of
``slicing``, answered by one answerer."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from slicewise.records import record
from slicewise.results import Repeats

__all__ = ["NO_ROWS", "WindowRanges"]

NO_ROWS = np.empty(0, np.int64)


@record
class WindowRanges:
    """Windows, one array entry each.

    Attributes
    ----------
    family
        The number of the window's kind and parameters among those of whoever found it.
    key
        The number of its key.
    low, high
        The range of slices, or of places among ordered rows; positions in ``rows`` where only some of them count.
    start, end
        The bounds that are reported.
    decided
        Of a window on event time, the watermark at which it is due. Of a context-aware one, the event time of the row
        that decided it: once the horizon has passed it, the window is final.
    rows
        The places that count, if not all do.
    repeats
        At how many ticks each is due, if at more than its own ``end``. Only windows that were never reported and that
        nothing can change any more are due at several.
    times
        The event times that are reported beside bounds that are none, where they are not those of the first and the
        last row.
    partials
        Where whoever found the windows has their partials already; ranges are then among those.
    """

    family: np.ndarray
    key: np.ndarray
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    end: np.ndarray
    decided: np.ndarray
    rows: np.ndarray | None = None
    repeats: Repeats | None = None
    partials: Any = None
    times: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def none(cls) -> WindowRanges:
        """No windows."""
        return cls(NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS, NO_ROWS)

    def __len__(self) -> int:
        return len(self.family)

    def take(self, index: np.ndarray) -> WindowRanges:
        """The windows at ``index``."""
        return WindowRanges(
            self.family[index],
            self.key[index],
            self.low[index],
            self.high[index],
            self.start[index],
            self.end[index],
            self.decided[index],
            self.rows,
            None if self.repeats is None else self.repeats.take(index),
            self.partials,
            None if self.times is None else (self.times[0][index], self.times[1][index]),
        )

    def divided(self) -> tuple[WindowRanges, WindowRanges]:
        """The windows that are due at many ticks, and the others."""
        if self.repeats is None:
            return self.take(NO_ROWS), self
        several = self.repeats.count > 1
        return self.take(np.flatnonzero(several)), replace(self.take(np.flatnonzero(~several)), repeats=None)

    def joined(self, other: WindowRanges) -> WindowRanges:
        """These windows and others of the same rows behind them."""
        if not len(other):
            return self
        if not len(self):
            return other
        columns: dict[str, Any] = {n: np.concatenate([getattr(self, n), getattr(other, n)]) for n in _COLUMNS}
        return replace(self, **columns)


_COLUMNS = tuple(f.name for f in fields(WindowRanges) if f.name not in ("rows", "repeats", "partials", "times"))
