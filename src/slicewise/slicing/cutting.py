"""Cutting: the stream slicer. Rows come in, slices with partials come out; no row is touched twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from slicewise.aggregates.base import Monoid
from slicewise.columns import Column
from slicewise.slicing.edges import Edges
from slicewise.slicing.kernels import order_by, segment_lengths, segment_starts
from slicewise.slicing.slices import Slices

__all__ = ["cut_rows"]


def cut_rows(
    key: np.ndarray,
    times: np.ndarray,
    columns: Mapping[str, Column],
    edges: Edges,
    monoids: Sequence[Monoid],
    left_out: Collection[int] = (),
    *,
    one_key: bool = False,
) -> Slices:
    """Cut rows at the edges and fold each piece into a slice; all rows are fresh.

    Partials of the monoids ``left_out`` are not computed, because they will be computed from stored tuples. ``one_key``
    says that all rows have the same key, which saves looking.
    """
    starts = _starts_in_order(times, edges) if one_key or (key == key[0]).all() else None
    in_order = starts is not None
    if starts is None:
        cells = edges.cells(times)
        order = order_by(key, cells)
        if order is not None:
            key, cells, times = key[order], cells[order], times[order]
            columns = {name: column.take(order) for name, column in columns.items()}
        starts = segment_starts((key[1:] != key[:-1]) | (cells[1:] != cells[:-1]))
    rows = segment_lengths(starts, len(times))
    if in_order:
        first, last = times[starts], times[starts + rows - 1]
    else:
        first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
    parts = tuple(
        m.identities(len(starts))
        if i in left_out
        else m.lift_fold([columns[c] for c in m.aggregate.columns], times, starts)
        for i, m in enumerate(monoids)
    )
    return Slices(key[starts], first, last, rows, rows, np.zeros(len(starts), np.int64), parts)


def _starts_in_order(times: np.ndarray, edges: Edges) -> np.ndarray | None:
    """Where slices start among rows in event-time order, by looking up edges among rows; None if they are not in order.

    There are far fewer edges than rows, so this is the cheap direction to look.
    """
    if (times[1:] < times[:-1]).any():
        return None
    inside = edges.inside(int(times[0]), int(times[-1]))
    if inside is None or len(inside) > len(times):
        return None
    at = np.searchsorted(times, inside)  # ascending; edges with no row between them find the same one
    fresh = at[segment_starts(at[1:] != at[:-1])] if len(at) > 1 else at
    return np.concatenate([[0], fresh[fresh > 0]])
