"""Checks: what no baseline takes is refused when it is built. Below the contract."""

from __future__ import annotations

from collections.abc import Mapping

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.fading import Ewma
from slicewise.aggregates.rises import LongestRise
from slicewise.aggregates.series import Rate, TimeWeightedAvg
from slicewise.aggregates.visual import M4
from slicewise.errors import QueryError
from slicewise.windows import Sliding, TableEdges, Window
from slicewise.workload import Workload

__all__ = ["check_workload"]

#: Aggregates that go by event times, which single values do not have.
BY_TIME = (Ewma, LongestRise, M4, Rate, TimeWeightedAvg)


def check_workload(name: str, workload: Workload) -> None:
    """Refuse what no baseline has."""
    if not workload.queries:
        raise QueryError(f"`{name}` needs a workload with a query; got none")
    given = {
        "where": workload.where,
        "order": workload.order,
        "punctuation": workload.punctuation,
        "watermark_from": workload.watermark_from,
    }
    given["processing time"] = workload.on_clock
    for what, value in given.items():
        if value:
            raise QueryError(f"`{name}` has no `{what}`; got {value!r}: use workload.operator()", parameter=what)
    for query in workload.queries:
        if query.empty:
            raise QueryError(
                f"`{name}` reports windows with rows; got empty=True in query {query.name!r}: use workload.operator()",
                parameter="empty",
                query=query.name,
            )
        _check_query(name, query.name, query.window, query.aggregates)


def _check_query(name: str, query: str, window: Window, aggregates: Mapping[str, Aggregate]) -> None:
    table = isinstance(window, TableEdges) and not any(keys for _, _, keys in window.table.rows())
    regular = isinstance(window, Sliding) and window.is_periodic
    if not (table or regular or window.session_gap is not None):
        raise QueryError(
            f"`{name}` has tumbling and sliding windows on event time, tables without keys, and sessions; got "
            f"{window!r} in query {query!r}: use workload.operator()",
            query=query,
        )
    for column, aggregate in aggregates.items():
        computed = any(type(c) is not str for c in aggregate.columns) or aggregate.base is not aggregate
        if computed or isinstance(aggregate, BY_TIME):
            raise QueryError(
                f"`{name}` runs aggregates of columns on single values; got {aggregate!r} in query {query!r}: use "
                "workload.operator()",
                query=query,
                column=column,
            )
