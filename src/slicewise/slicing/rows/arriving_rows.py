"""Arriving rows: which new rows count in windows on ordered rows, and what is noted of them once, when they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.slicing.intake.shown_columns import shown_columns
from slicewise.slicing.rows.discretisers import Discretiser
from slicewise.slicing.rows.monotonic import fits_column, fitting
from slicewise.slicing.rows.ordered_rows import ARRIVAL
from slicewise.slicing.rows.punctuation import data_among, without_punctuation
from slicewise.slicing.time.tuples import Tuples

__all__ = ["ArrivingRows"]


class ArrivingRows:
    """What one set of context-aware queries takes of the rows that arrive.

    Parameters
    ----------
    reads
        The columns that queries read.
    sees_punctuation
        Whether rows that are no data count too.

    Attributes
    ----------
    notes_horizons
        Whether it must be known at which horizons rows came.
    """

    def __init__(self, reads: Sequence[str], discretisers: Sequence[Discretiser], *, sees_punctuation: bool) -> None:
        self._reads, self._sees_punctuation = tuple(reads), sees_punctuation
        self._noting = [d for d in discretisers if d.notes]
        self._measures = list(dict.fromkeys(d.measures for d in discretisers if d.measures))
        self.notes_horizons = bool(self._noting)

    def counted(
        self,
        key: np.ndarray,
        times: np.ndarray,
        columns: Mapping[str, Column],
        arrival: np.ndarray,
        came: np.ndarray,
        *,
        earliest: int,
        oldest: int,
    ) -> Tuples:
        """Those of some rows that count, with what is to be known of them.

        Parameters
        ----------
        arrival
            The arrival number of each.
        came
            The horizon at which each came; read only if ``notes_horizons``.
        earliest, oldest
            The earliest of their times, and the earliest that may count.
        """
        data = None if self._sees_punctuation else data_among(columns)
        shown = shown_columns(columns if self._sees_punctuation else without_punctuation(columns))
        read = {name: columns[name] for name in self._reads} | shown
        if data is not None or earliest < oldest:
            kept = np.arange(len(times)) if data is None else data
            kept = kept[times[kept] >= oldest]
            key, times, arrival = key[kept], times[kept], arrival[kept]
            came = came[kept] if self.notes_horizons else came
            read = {name: column.take(kept) for name, column in read.items()}
        else:
            # Rows wait for the next step, and the caller's arrays are not ours to keep.
            key, times, read = key.copy(), times.copy(), {name: _copy(column) for name, column in read.items()}
        for discretiser in self._noting:
            read |= discretiser.note(read, came)
        for measures in self._measures:
            read[fits_column(measures)] = fitting(read, measures)
        read[ARRIVAL] = Column(arrival, pa.int64())
        return Tuples.new(key, times, read)


def _copy(column: Column) -> Column:
    return Column(column.values.copy(), column.type, None if column.valid is None else column.valid.copy())
