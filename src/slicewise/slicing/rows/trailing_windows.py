"""Trailing windows among ordered rows: one as of each row, or as of each time that has rows. A discretiser.

The rows that a window reaches back to are kept as such, because a late row begins a window of its own anywhere among
them.
"""

from __future__ import annotations

import numpy as np

from slicewise.kernels import expand_ranges
from slicewise.slicing.rows.discretisers import Discretiser, Retained
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import NO_ROWS, WindowRanges
from slicewise.windows import Trailing

__all__ = ["TrailingRows", "TrailingTimes"]


class TrailingTimes(Discretiser):
    """``trailing("1 hour")``: as of each time at which a key has rows, those of the hour before it::

    times      0   5 5      12                 trailing(10)
              -]                               as of 0
          ---------]                           as of 5, once for both rows
                 (----------]                  as of 12
    """

    distinct = True
    ends_in_time = True

    def __init__(self, window: Trailing) -> None:
        super().__init__([window])
        self.window = window

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        # Where rows at the watermark belong to their own window, more of them may come.
        place = _places(view, step.old_horizon, step.watermark + int(not self.window.has_end))
        time, key = view.time[place], view.key[place]
        new = np.ones(len(place), bool)
        new[1:] = (time[1:] != time[:-1]) | (key[1:] != key[:-1])
        time, key = time[new], key[new]
        held = self.window.as_of(time)
        high = view.index.locate(key, held.behind)
        low = np.minimum(view.index.locate(key, held.first), high)
        windows = WindowRanges(np.zeros(len(key), np.int64), key, low, high, held.start, held.end, time)
        oldest = self.window.as_of(np.array([step.horizon])).first
        return windows, Retained(np.minimum(view.first_at(int(oldest[0])), view.first_at(step.horizon)), NO_ROWS)


class TrailingRows(Discretiser):
    """``trailing(rows(10))``: as of each row, the last ten up to it. A row that comes late shifts those behind it."""

    distinct = True
    by_position = True

    def __init__(self, window: Trailing) -> None:
        super().__init__([window])
        self.window = window

    def find(self, view: OrderedRows, step: Step) -> tuple[WindowRanges, Retained]:
        most = self.window.most
        assert most is not None
        place = _places(view, step.old_horizon, step.watermark)
        high = place + int(self.window.has_end)
        low = np.maximum(high - most, view.of_key(view.starts, place))
        position, time = view.position[place], view.time[place]
        windows = WindowRanges(
            np.zeros(len(place), np.int64),
            view.key[place],
            low,
            high,
            position - (place - low),
            position + (high - place),
            time,
            times=(view.time[np.minimum(low, place)], time),
        )
        settled = view.first_at(step.horizon)
        return windows, Retained(np.maximum(settled - most, view.starts), NO_ROWS)


def _places(view: OrderedRows, first: int, behind: int) -> np.ndarray:
    """The places of the rows from one time to before another."""
    low = view.first_at(first)
    return expand_ranges(low, np.maximum(view.first_at(behind), low))[0]
