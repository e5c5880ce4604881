"""Ties: rows of equal event time as Spark puts them in order, by definition. Read by the oracle.

Spark does not keep the order in which rows arrive, so their values decide::

    time  v  w        in order (the queries name v, then w)      first("w"), last("w")
    5     2  a        1 b, 1 c, 2 a                              a, c
    5     1  c
    5     1  b
"""

from __future__ import annotations

from typing import Any

from slicewise.testing.context import is_context_aware

__all__ = ["TIES", "picks_by_value", "tie_columns"]

TIES = ("arrival", "values")


def tie_columns(workload: Any) -> tuple[str, ...]:
    """The columns that put rows of equal time in order: ``order`` columns, measures, then columns read in order.

    A measure must not go back, so measures come before the rest; then data comes before punctuation. The rest are the
    columns of queries whose answers depend on the order of rows, as they are named: rows that are equal in all of them
    make no difference to any query.
    """
    measures = [m.column for q in workload.queries for m in q.window.measures if m.column is not None]
    read = [column for q in workload.queries for column in _read_in_order(q, workload)]
    return tuple(dict.fromkeys([*workload.order, *measures, *workload.shown_punctuation, *read]))


def _read_in_order(query: Any, workload: Any) -> list[str]:
    computed = query.aggregates.values()
    if is_context_aware(query.window):
        return [*query.window.reads, *(column for a in computed for column in a.columns)]
    return [c for a in computed if not a.commutative and not picks_by_value(a, workload) for c in a.columns]


def picks_by_value(aggregate: Any, workload: Any) -> bool:
    """Whether an aggregate picks one of the rows of equal time by the value alone: ``first``, ``max_by`` and so on.

    Where ``order`` columns are given, the row that they put first is picked.
    """
    return aggregate.timed and not workload.order
