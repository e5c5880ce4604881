"""Cells: the slice that a row belongs to, as a column expression, so that rows are sliced inside the JVM."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F

from slicewise.plan.decisions import Decision
from slicewise.plan.grids import Progression
from slicewise.slicing import Edges
from slicewise.spark.versions import arrow_function
from slicewise.times import INFINITY

__all__ = ["cell_of", "choose_cells", "first_behind", "value_at"]

#: Up to this number of grids and points, arithmetic in the JVM costs a row less than a lookup in NumPy.
MOST_GRIDS = 16
#: Up to this number of buckets, a row finds its edge among many by a division. Each is a number in the plan.
MOST_BUCKETS = 2**16
#: A common grid replaces several as long as it has at most this many times their edges.
FINEST = 4


def choose_cells(edges: Edges) -> Decision:
    """How a row finds its slice: ``"panes"``, ``"edges"``, ``"buckets"`` or ``"lookup"``."""
    progressions, points = edges.cut.progressions, len(edges.points)
    if _one_grid(edges) is not None:
        return Decision("panes", "all edges lie on one grid: a remainder per row")
    if len(progressions) + points <= MOST_GRIDS:
        grids = f"{len(progressions)} grids" + (f" and {points} fixed points" if points else "")
        return Decision("edges", f"the last edge before the row, of {grids}")
    if len(progressions) <= MOST_GRIDS and _buckets(edges.points) is not None:
        return Decision("buckets", f"{points} fixed points: a division per row, and one comparison")
    return Decision("lookup", f"{len(progressions) + points} grids: the row's edge is looked up in NumPy")


def cell_of(time: Column, edges: Edges) -> Column:
    """The start of the slice that a row at ``time`` belongs to; null where ``time`` is."""
    progressions, points = edges.cut.progressions, edges.points.tolist()
    grid = _one_grid(edges)
    if grid is not None:
        return _floor(time, grid)
    choice = choose_cells(edges).choice
    if choice == "lookup":
        return _looked_up(time, edges)
    floors = [_floor(time, p) for p in progressions]
    if choice == "buckets":
        floors.append(_in_bucket(time, edges.points, edges.points))
    elif points:
        before = [F.when(time >= p, F.lit(p)).otherwise(F.lit(-INFINITY)) for p in points]
        floors.append(F.when(time.isNotNull(), before[0] if len(before) == 1 else F.greatest(*before)))
    return floors[0] if len(floors) == 1 else F.greatest(*floors)


def value_at(time: Column, points: np.ndarray, values: np.ndarray) -> Column | None:
    """The value that belongs to the last of some points up to ``time``, ascending; -INFINITY before the first.

    None where the JVM would take long to find it.
    """
    if _buckets(points) is not None:
        return _in_bucket(time, points, values)
    if len(points) > MOST_GRIDS:
        return None
    value = F.lit(-INFINITY)
    for point, belongs in zip(points.tolist(), values.tolist(), strict=True):
        value = F.when(time >= point, F.lit(belongs)).otherwise(value)
    return value


def first_behind(time: Column, points: np.ndarray) -> Column:
    """The first of some points after ``time``, in few words for Spark to plan: for what is computed once or never."""
    return F.get(F.filter(_constants(points), lambda point: point > time), F.lit(0))


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


def _buckets(points: np.ndarray) -> np.ndarray | None:
    """For buckets of equal width, so narrow that none has more than one edge behind its begin, the last edge up to it.

    As places among the edges, -1 for the first bucket, which lies before all of them; None if there would be too many.

    >>> _buckets(np.array([0, 10, 25, 40]))                        # of 10, from -10 on
    array([-1,  0,  1,  1,  2,  3])
    """
    width = _width(points)
    if (int(points[-1]) - int(points[0])) // width >= MOST_BUCKETS:
        return None
    return np.searchsorted(points, np.arange(points[0] - width, points[-1] + 1, width), "right") - 1


def _width(points: np.ndarray) -> int:
    return int(np.diff(points).min(initial=INFINITY)) if len(points) > 1 else 1


def _in_bucket(time: Column, points: np.ndarray, values: np.ndarray) -> Column:
    """The value of the last of many points that lie on no grid, by arithmetic in the JVM; null where ``time`` is."""
    buckets = _buckets(points)
    assert buckets is not None
    before, behind = np.append(values, -INFINITY)[buckets], np.append(points, INFINITY)[buckets + 1]
    first, last, width = int(points[0]), int(points[-1]), _width(points)
    begin = first - width
    inside = F.when(time < first, F.lit(begin)).when(time > last, F.lit(last)).otherwise(time)
    # Both the bucket and the edge behind it stand in the first condition of a `when`, which is always computed: only so
    # does Spark see that it needs them once.
    bucket = F.call_function("div", inside - F.lit(begin), F.lit(width))
    following = F.get(_constants(behind), bucket)
    value = following if values is points else F.get(_constants(np.append(values, -INFINITY)[buckets + 1]), bucket)
    return F.when(time >= following, value).otherwise(F.get(_constants(before), bucket))


def _constants(numbers: np.ndarray) -> Column:
    """An array that Spark reads once, when it plans: a column for each number would take it seconds."""
    return F.split(F.lit(",".join(map(str, numbers.tolist()))), ",").cast("array<bigint>")


def _looked_up(time: Column, edges: Edges) -> Column:
    cut = edges.cut

    def floor(times: pa.Array) -> pa.Array:
        filled = times.fill_null(0).to_numpy(zero_copy_only=False)
        return pa.array(cut.floor(filled), mask=times.is_null().to_numpy(zero_copy_only=False))

    return arrow_function(floor, "long")(time)
