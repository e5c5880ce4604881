"""Cells: the slice that a row belongs to, as a column expression, so that rows are sliced inside the JVM."""

from __future__ import annotations

import math
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from slicewise.plan.decisions import Decision
from slicewise.plan.grids import Progression
from slicewise.slicing import Edges
from slicewise.spark.versions import arrow_function
from slicewise.times import INFINITY

__all__ = ["cell_of", "choose_cells"]

#: Up to this number of grids and points, arithmetic in the JVM costs a row less than a lookup in NumPy.
MOST_GRIDS = 16
#: A common grid replaces several as long as it has at most this many times their edges.
FINEST = 4


def choose_cells(edges: Edges) -> Decision:
    """How a row finds its slice: ``"panes"``, ``"edges"`` or ``"lookup"``."""
    progressions, points = edges.cut.progressions, len(edges.points)
    if _one_grid(edges) is not None:
        return Decision("panes", "all edges lie on one grid: a remainder per row")
    if len(progressions) + points <= MOST_GRIDS:
        grids = f"{len(progressions)} grids" + (f" and {points} fixed points" if points else "")
        return Decision("edges", f"the last edge before the row, of {grids}")
    return Decision("lookup", f"{len(progressions) + points} grids: the row's edge is looked up in NumPy")


def cell_of(time: Column, edges: Edges) -> Column:
    """The start of the slice that a row at ``time`` belongs to; null where ``time`` is."""
    progressions, points = edges.cut.progressions, edges.points.tolist()
    grid = _one_grid(edges)
    if grid is not None:
        return _floor(time, grid)
    if choose_cells(edges).choice == "lookup":
        return _looked_up(time, edges)
    floors = [_floor(time, p) for p in progressions]
    floors += [F.when(time >= p, F.lit(p)).otherwise(F.lit(-INFINITY)) for p in points]
    cell = floors[0] if len(floors) == 1 else F.greatest(*floors)
    return F.when(time.isNotNull(), cell)


def _floor(time: Column, p: Progression) -> Column:
    shifted = time - F.lit(p.phase) if p.phase else time
    return time - F.pmod(shifted, F.lit(p.step))


def _one_grid(edges: Edges) -> Progression | None:
    """The grid that all edges lie on, if there is one."""
    progressions = edges.cut.progressions
    if len(edges.points) or not progressions:
        return None
    return progressions[0] if len(progressions) == 1 else _common(progressions)


def _common(progressions: list[Progression]) -> Progression | None:
    """The grid that holds all others, unless it is much finer than they are together."""
    origin = progressions[0].phase
    step = reduce(math.gcd, [p.step for p in progressions] + [p.phase - origin for p in progressions])
    edges_per_unit = sum(1 / p.step for p in progressions)
    return Progression(step, origin % step) if 1 / step <= FINEST * edges_per_unit else None


def _looked_up(time: Column, edges: Edges) -> Column:
    cut = edges.cut

    def floor(times: pa.Array) -> pa.Array:
        filled = times.fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(cut.floor(filled), mask=times.is_null().to_numpy(zero_copy_only=False))

    return arrow_function(floor, "long")(time)
