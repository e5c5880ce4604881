"""Punctuation: rows that are no data, as :attr:`slicewise.Workload.punctuation` tells them apart.

Windows that see punctuation are found among all rows, and hold the data among them. Which rows are punctuation is a
column beside the user's; slices of ordered rows hold data or punctuation, never both, so that it is a mark of theirs::

    row         a  b  M  c  M  d          punctuated: windows from M to M
    window            [-----)             three places, of which one is data
    data        a  b     c     d
    window              [-)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.conditions.expression import check_type_of, true_rows
from slicewise.slicing.rows.monotonic import parted
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.workload import Workload

__all__ = ["PUNCTUATION", "DataRows", "data_among", "with_punctuation", "without_punctuation"]

#: The column that says which rows are punctuation; there only where some window sees them.
PUNCTUATION = "\0punctuation"


def with_punctuation(columns: dict[str, Column], workload: Workload) -> dict[str, Column]:
    """Columns of rows, with the one that says which of them are punctuation if some window sees those."""
    if not workload.shown_punctuation:
        return columns
    (condition,) = workload.shown_punctuation
    check_type_of(condition, columns[condition].type, "punctuation")
    return {**columns, PUNCTUATION: Column(true_rows(columns[condition]).astype(np.int64), pa.bool_())}


def data_among(columns: Mapping[str, Column]) -> np.ndarray | None:
    """Where some rows are data; None if all of them are."""
    column = columns.get(PUNCTUATION)
    return None if column is None or not column.values.any() else np.flatnonzero(column.values == 0)


def without_punctuation(columns: Mapping[str, Column]) -> Mapping[str, Column]:
    """Columns without the one that says which rows are punctuation."""
    return {name: c for name, c in columns.items() if name != PUNCTUATION} if PUNCTUATION in columns else columns


class DataRows:
    """The places of ordered rows that hold data."""

    def __init__(self, view: OrderedRows) -> None:
        self.view = view
        self._is_data = view.marks(PUNCTUATION) == 0

    def held_by(self, windows: WindowRanges) -> WindowRanges:
        """Windows that were found among all places, as ranges of those that hold data; without those that hold none."""
        if self._is_data.all():
            return windows
        places = np.arange(len(self.view)) if windows.rows is None else windows.rows
        data = np.flatnonzero(self._is_data[places])
        low, high = np.searchsorted(data, (windows.low, windows.high))
        held = replace(windows, low=low, high=high, rows=places[data])
        return held.take(np.flatnonzero(low < high))

    def parted(self, begins: np.ndarray, first: np.ndarray) -> np.ndarray:
        """Where slices must begin so that none holds both; ``first`` is what is needed as such of each key."""
        return parted(self.view, self._is_data, begins, first)
