"""Routes: which way a query takes on Spark. Slices are computed in the JVM; rows go to Python only where they must."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from slicewise.columns import physical_dtype
from slicewise.plan.decisions import Decision
from slicewise.plan.plan import is_periodic
from slicewise.windows import Session, Sliding
from slicewise.workload import Query, Workload

__all__ = ["IN_THE_JVM", "ROWS", "SLICES", "can_turn_around", "is_one_tumbling", "route_of"]

SLICES, ROWS = "slices", "rows"

#: The aggregates whose partials Spark's own functions compute.
IN_THE_JVM = frozenset(
    ("count", "sum", "avg", "product", "geometric_mean", "stddev", "stddev_pop", "variance", "var_pop", "min", "max")
    + ("range_", "min_count", "max_count", "first", "last", "min_by", "max_by", "m4")
)


def route_of(query: Query, types: Mapping[str, pa.DataType] | None = None) -> Decision:
    """``"slices"``: the JVM slices, NumPy composes. ``"rows"``: the engine takes the rows, sorted, in Python.

    Without ``types``, columns are taken to be numbers.
    """
    window = query.window
    if not (is_periodic(window) or isinstance(window, Session)):
        return Decision(ROWS, f"only rows in order tell where the windows of {window!r} lie")
    for aggregate in query.aggregates.values():
        if aggregate.name not in IN_THE_JVM:
            return Decision(ROWS, f"{aggregate!r} is computed in Python")
        if types is not None and aggregate.name == "max_by" and not can_turn_around(types[aggregate.columns[1]]):
            return Decision(ROWS, f"{aggregate!r} goes by {types[aggregate.columns[1]]}, which the JVM cannot reverse")
    return Decision(SLICES, "sliced in the JVM, composed in NumPy")


def can_turn_around(type_: pa.DataType) -> bool:
    """Whether values of this type can be turned around, so that the largest becomes the smallest."""
    return not physical_dtype(type_).hasobject or pa.types.is_decimal(type_)


def is_one_tumbling(workload: Workload) -> bool:
    """Whether there is nothing to compose: one query, each of whose windows is one slice."""
    if len(workload.queries) != 1:
        return False
    window = workload.queries[0].window
    return is_periodic(window) and isinstance(window, Sliding) and window.length == window.every
