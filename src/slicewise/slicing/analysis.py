"""Analysis: what an operator has counted, beside what the papers' formulas expect. The last part of ``explain``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from slicewise.errors import QueryError
from slicewise.plan.explain import explain
from slicewise.plan.plan import MaxSlice, Plan
from slicewise.slicing.operator import Operator
from slicewise.slicing.stats import Stats
from slicewise.workload import Workload

__all__ = ["analysis", "explain_with"]


def analysis(workload: Workload, op: Any) -> str:
    """What an operator of a workload has counted so far, as lines for a terminal.

    Raises
    ------
    QueryError
        If it is no operator, or one of another workload.
    """
    if not isinstance(op, Operator):
        raise QueryError(
            f"`analyze` takes an operator; got {type(op).__name__}; make one with workload.operator()",
            parameter="analyze",
        )
    if op.workload != workload:
        raise QueryError(
            f"`analyze` takes an operator of this workload, with queries {[q.name for q in workload.queries]}; got one "
            f"with {[q.name for q in op.workload.queries]}; use op.workload.explain(analyze=op)",
            parameter="analyze",
        )
    stats, plan = op.stats(), op.plan
    rows = list(_rows(stats, plan))
    name, count = (max(len(row[i]) for row in rows) for i in (0, 1))
    return "\n".join(["counted", *(f"  {a:<{name}}  {b:>{count}}  {c}".rstrip() for a, b, c in rows)])


def explain_with(workload: Workload, ordered: bool, max_slice: MaxSlice, op: Any) -> str:
    """What was decided about a workload, and what an operator of it has counted, if there is one."""
    if op is None:
        return explain(workload, ordered=ordered, max_slice=max_slice)
    counted = analysis(workload, op)
    return f"{explain(workload, ordered=op.ordered, max_slice=max_slice)}\n\n{counted}"


def _rows(stats: Stats, plan: Plan | None) -> Iterator[tuple[str, str, str]]:
    yield "rows in", str(stats.rows), f"{stats.late_rows} of them late"
    yield "results out", str(stats.results), ""
    partials = 0 if plan is None else len(plan.monoids)
    expected = f"expected {stats.rows * partials}: one per row and partial, of which there are {partials}"
    yield "lifts", str(stats.lifts), expected
    yield "combines", str(stats.combines), "" if plan is None else _expected(stats, plan)
    yield "updates", str(stats.updates), "slices that took rows in, or gave them away, after they were made"
    yield "merges", str(stats.merges), "slices that nothing separates any more"
    yield "splits", str(stats.splits), "slices that an edge came to lie in"
    yield "recomputations", str(stats.recomputations), "partials computed again from rows"
    yield "slices held", str(stats.slices), ""
    yield "tuples kept", str(stats.tuples), ""
    yield "state bytes", str(stats.state_bytes), ""
    lag = "unknown" if stats.watermark_lag_ms is None else str(stats.watermark_lag_ms)
    yield "watermark lag", lag, "milliseconds behind the latest row"


def _expected(stats: Stats, plan: Plan) -> str:
    """How many combines the stores take at most, when every row comes alone (general stream slicing, 3.4)."""
    tree = 2 * math.ceil(math.log2(max(stats.slices, 2))) + 2
    longest = max([1, *(q.overlap for q in plan.characteristics.queries)])
    most = 0
    for component in plan.components:
        per_row, per_result = {"lazy": (1, longest), "eager": (tree, tree), "prefix": (2, 1)}[component.store.choice]
        most += stats.rows * per_row + stats.results * per_result
    stores = ", ".join(dict.fromkeys(component.store.choice for component in plan.components))
    return f"expected at most {most}: {stores}"
