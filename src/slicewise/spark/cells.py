"""Cells: the slice that a row belongs to, as a column expression, so that rows are sliced inside the JVM."""

from __future__ import annotations

import math
from functools import reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from slicewise.kernels import steps_to
from slicewise.plan.decisions import Decision
from slicewise.plan.grids import Progression
from slicewise.slicing import Edges
from slicewise.spark.versions import arrow_function
from slicewise.times import INFINITY

__all__ = ["Buckets", "cell_of", "choose_cells", "constants", "spacing"]

#: Up to this number of grids and points, arithmetic in the JVM costs a row less than a lookup in NumPy.
MOST_GRIDS = 16
#: Up to this number of buckets, a row finds its edge among many by a division. Each is a number in the plan.
MOST_BUCKETS = 2**16
#: A common grid replaces several as long as it has at most this many times their edges.
FINEST = 4


def choose_cells(edges: Edges) -> Decision:
    """How a row finds its slice: ``"panes"``, ``"grid"``, ``"edges"``, ``"buckets"`` or ``"lookup"``."""
    progressions, points = edges.cut.progressions, len(edges.points)
    if _one_grid(edges) is not None:
        return Decision("panes", "all edges lie on one grid: a remainder per row")
    if len(progressions) <= MOST_GRIDS and spacing(edges.points) is not None:
        return Decision("grid", f"{points} fixed points lie equally far apart: a remainder per row")
    if len(progressions) + points <= MOST_GRIDS:
        grids = f"{len(progressions)} grids" + (f" and {points} fixed points" if points else "")
        return Decision("edges", f"the last edge before the row, of {grids}")
    if len(progressions) <= MOST_GRIDS and Buckets.among(edges.points) is not None:
        return Decision("buckets", f"{points} fixed points: a division per row, and one comparison")
    return Decision("lookup", f"{len(progressions) + points} grids: the row's edge is looked up in NumPy")


def cell_of(time: Column, edges: Edges) -> Column:
    """The start of the slice that a row at ``time`` belongs to; null where ``time`` is."""
    progressions, points = edges.cut.progressions, edges.points
    grid = _one_grid(edges)
    if grid is not None:
        return _floor(time, grid)
    choice = choose_cells(edges).choice
    if choice == "lookup":
        return _looked_up(time, edges)
    floors = [_floor(time, p) for p in progressions]
    if choice == "grid":
        floors.append(_on_grid(time, points))
    elif choice == "buckets":
        buckets = Buckets.among(points)
        assert buckets is not None
        floors.append(F.get(constants(buckets.start), buckets.holding(time)))
    elif len(points):
        before = [F.when(time >= p, F.lit(p)).otherwise(F.lit(-INFINITY)) for p in points.tolist()]
        floors.append(F.when(time.isNotNull(), before[0] if len(before) == 1 else F.greatest(*before)))
    return floors[0] if len(floors) == 1 else F.greatest(*floors)


def spacing(points: np.ndarray) -> int | None:
    """How far apart points lie that lie equally far apart, three at least; None where others are."""
    apart = np.diff(points)
    return int(apart[0]) if len(apart) > 1 and (apart == apart[0]).all() else None


class Buckets(NamedTuple):
    """Buckets: where a time lies among points that lie on no grid. A division tells the bucket, and one comparison.

    They are of equal width, so narrow that at most one point lies behind the begin of each, and the first lies before
    all points. A time that has passed the point inside its bucket counts to the next one. Where there are few points
    and no such width, a bucket is what lies between two of them, and a time is compared with all.

    Attributes
    ----------
    first, last
        The least and the largest point.
    width
        The width of the buckets; None where they lie between points.
    start
        The last point up to the begin of each bucket; -INFINITY before the first.
    end
        The first point behind it; INFINITY after the last.

    Examples
    --------
    >>> buckets = Buckets.among(np.array([0, 10, 25, 40]))             # of 10, from -10 on
    >>> buckets.start[1:], buckets.end[:-2]
    (array([ 0, 10, 10, 25, 40, 40]), array([ 0, 10, 25, 25, 40]))
    """

    first: int
    last: int
    width: int | None
    start: np.ndarray
    end: np.ndarray

    @classmethod
    def among(cls, points: np.ndarray) -> Buckets | None:
        """The buckets among some points, ascending; None where they would be too many."""
        first, last = int(points[0]), int(points[-1])
        narrow = int(np.diff(points).min()) if len(points) > 1 else 1
        width = narrow if (last - first) // narrow < MOST_BUCKETS else None
        if width is None and len(points) > MOST_GRIDS:
            return None
        begins = np.append(first - 1, points) if width is None else steps_to(first - width, last + width, width)
        place = np.searchsorted(points, begins, "right")
        return cls(first, last, width, np.append(-INFINITY, points)[place], np.append(points, INFINITY)[place])

    def holding(self, time: Column) -> Column:
        """The bucket of a time; null where ``time`` is."""
        if self.width is None:
            return reduce(Column.__add__, [(time >= F.lit(point)).cast("int") for point in self.start[1:].tolist()])
        begin = self.first - self.width
        inside = F.when(time < self.first, F.lit(begin)).when(time > self.last, F.lit(self.last)).otherwise(time)
        bucket = F.call_function("div", inside - F.lit(begin), F.lit(self.width)).cast("int")
        return bucket + (time >= F.get(constants(self.end), bucket)).cast("int")


def constants(numbers: np.ndarray) -> Column:
    """An array that Spark reads once, when it plans: a column for each number would take it seconds."""
    return F.split(F.lit(",".join(map(str, numbers.tolist()))), ",").cast("array<bigint>")


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


def _on_grid(time: Column, points: np.ndarray) -> Column:
    """The last of some points that lie equally far apart."""
    step = spacing(points)
    assert step is not None
    first, last = int(points[0]), int(points[-1])
    floor = _floor(time, Progression(step, first % step))
    return F.when(time < first, F.lit(-INFINITY)).when(time >= last, F.lit(last)).otherwise(floor)


def _looked_up(time: Column, edges: Edges) -> Column:
    cut = edges.cut

    def floor(times: pa.Array) -> pa.Array:
        filled = times.fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(cut.floor(filled), mask=times.is_null().to_numpy(zero_copy_only=False))

    return arrow_function(floor, "long")(time)
