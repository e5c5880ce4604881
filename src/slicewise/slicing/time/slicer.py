"""The stream slicer: rows come in, slices with partials come out; no row is touched twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from slicewise.aggregates.base import Monoid
from slicewise.columns import Column
from slicewise.kernels import order_by, segment_lengths, segment_starts
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.slices import Slices
from slicewise.times import Extent

__all__ = ["cut_rows", "cut_stream", "starts_among"]


def cut_stream(
    key: np.ndarray,
    times: np.ndarray,
    columns: Mapping[str, Column],
    edges: Edges,
    monoids: Sequence[Monoid],
    left_out: Collection[int] = (),
    *,
    one_key: bool = False,
    extent: Extent | None = None,
) -> list[Slices]:
    """Cut rows as they came: those in order apart from those out of order, because only these must be sorted.

    A row is in order if no row before it is later. The few that are not come second, also among rows of equal time:
    that is the order in which they arrived. Where rows lie in few cells, all are put in order by these, which is as
    soon done. ``extent`` is how the rows lie, if it is known.
    """
    extent = Extent.of(times) if extent is None else extent
    if one_key and not extent.in_order and not edges.has_few_cells(extent):
        late = np.flatnonzero(times < np.maximum.accumulate(times))
        if 2 * len(late) < len(times):
            prompt = np.ones(len(times), bool)
            prompt[late] = False
            pieces = []
            for rows in (np.flatnonzero(prompt), late):
                some = {name: column.take(rows) for name, column in columns.items()}
                taken = key[: len(rows)], times.take(rows), some
                pieces.append(cut_rows(*taken, edges, monoids, left_out, one_key=True))
            return pieces
    return [cut_rows(key, times, columns, edges, monoids, left_out, one_key=one_key, extent=extent)]


def cut_rows(
    key: np.ndarray,
    times: np.ndarray,
    columns: Mapping[str, Column],
    edges: Edges,
    monoids: Sequence[Monoid],
    left_out: Collection[int] = (),
    *,
    one_key: bool = False,
    extent: Extent | None = None,
) -> Slices:
    """Cut rows at the edges and fold those between two of them into a slice; all rows are fresh.

    Partials of the monoids ``left_out`` are not computed, because they will be computed from stored tuples. ``one_key``
    says that all rows have the same key, and ``extent`` how they lie, which saves looking.
    """
    extent = Extent.of(times) if extent is None else extent
    one_key = one_key or bool((key == key[0]).all())
    order, cells = None, None
    if not (one_key and extent.in_order):
        order, cells = _order_of(None if one_key else key, times, edges, extent)
    in_order = cells is None
    if order is not None:
        times = times.take(order)
        key = key if one_key else key.take(order)
        cells = cells if cells is None else cells.take(order)
        columns = {name: column.take(order) for name, column in columns.items()}
    starts = starts_among(times, edges) if one_key and in_order else None
    if starts is None:
        cells = edges.cells(times) if cells is None else cells
        apart = cells[1:] != cells[:-1]
        starts = segment_starts(apart if one_key else apart | (key[1:] != key[:-1]))
    rows = segment_lengths(starts, len(times))
    if in_order:
        first, last = times[starts], times[starts + rows - 1]
    else:
        first, last = np.minimum.reduceat(times, starts), np.maximum.reduceat(times, starts)
    parts = []
    for i, m in enumerate(monoids):
        parts.append(m.identities(len(starts)) if i in left_out else m.fold_rows(columns, times, starts))
    return Slices(key[starts], first, last, rows, rows, np.zeros(len(starts), np.int64), tuple(parts))


def _order_of(
    key: np.ndarray | None, times: np.ndarray, edges: Edges, extent: Extent
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The order in which rows of a cell stand together, None if they do, and their cells; without these it is by time.

    One grid or list: the number of a row's cell is cheap, and small enough for a radix sort. Several: it costs more to
    find than to put the rows in order of time and to look up the edges among them.
    """
    if key is None and edges.has_few_cells(extent):
        few = edges.few_cells(times, extent)
        return few.argsort(kind="stable"), few
    cells = edges.cells(times) if edges.has_cheap_cells else None
    return order_by(key, times if cells is None else cells, look=key is not None), cells


def starts_among(times: np.ndarray, edges: Edges) -> np.ndarray | None:
    """Where slices start among rows in event-time order, by looking up the edges; None if there are too many of them.

    There are usually far fewer edges than rows, so this is the cheap direction to look.
    """
    inside = edges.inside(int(times[0]), int(times[-1]))
    if inside is None or len(inside) > len(times):
        return None
    if not len(inside):
        return np.zeros(1, np.int64)
    at = times.searchsorted(inside)  # ascending; edges with no row between them find the same one
    if len(at) > 1:
        at = at[segment_starts(at[1:] != at[:-1])]
    starts = np.zeros(len(at) + 1, np.int64)
    starts[1:] = at
    return starts
