"""Compacting: where slices of ordered rows end, which cuts stay, and where they stand when rows have become slices."""

from __future__ import annotations

import numpy as np

from slicewise.kernels import segment_ends
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.shared_cuts import SharedCuts
from slicewise.slicing.window_ranges import NO_ROWS

__all__ = ["moved", "shifting", "slice_ends"]


def slice_ends(view: OrderedRows, first: np.ndarray, begins: np.ndarray) -> np.ndarray:
    """Slices end where the next one starts, or where rows are needed as such."""
    ends: np.ndarray = np.minimum(segment_ends(begins, len(view)), view.of_key(first, begins))
    return ends


def shifting(
    view: OrderedRows, cuts: SharedCuts, first: np.ndarray, oldest: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cuts of some window whose rows may still shift, and which of the cuts they are."""
    low, high = cuts.bounds[:-1], cuts.bounds[1:]
    if not len(low) or (len(first) == 1 and high[-1] <= first[0]):
        return NO_ROWS, NO_ROWS, NO_ROWS
    shifting = cuts.covered & (high > view.of_key(first, low)) & (low >= view.of_key(oldest, low))
    shifting &= high <= view.of_key(view.ends, low)
    number = shifting.nonzero()[0]
    return low[number], high[number], number


def moved(view: OrderedRows, first: np.ndarray, begins: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Where rows, or the ends of their keys, stand after the rows before ``first`` have become slices."""
    ends = view.ends
    segment = np.searchsorted(ends, place) if len(ends) > 1 else np.zeros(len(place), np.int64)
    slices = np.searchsorted(begins, ends)  # of this key and those before it
    gone = np.cumsum(first - view.starts)
    as_row = place - gone[segment] + slices[segment]
    before = np.searchsorted(begins, place)
    as_slice = before + (view.starts - (gone - (first - view.starts)))[segment]
    return np.where(place < first[segment], as_slice, as_row)
