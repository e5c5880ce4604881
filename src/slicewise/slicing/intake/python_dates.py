"""Dates that Python does not have: its years are 1 to 9999, those of Arrow and Spark reach further.

Single dates stay numbers from the column to the result. Lists and structs of them are made of Python objects, and so a
row with a date that has none is refused when it comes, before anything moves.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from slicewise.amounts import to_micros
from slicewise.columns import Column, beyond_python
from slicewise.plan.plan import Plan

__all__ = ["rows_beyond_python"]


def rows_beyond_python(plan: Plan, columns: Mapping[str, Column], times: np.ndarray) -> dict[int, tuple[str, str]]:
    """For each row with a date that an aggregate could not show, which aggregate it is and what is wrong."""
    failures: dict[int, tuple[str, str]] = {}
    for query, name in plan.nested_dates:
        aggregate = plan.workload.queries[query].aggregates[name]
        code = f"query {plan.workload.queries[query].name!r}: {aggregate!r}"
        dates = {f"column {column!r} has": columns[column] for column in aggregate.columns}
        time_type = plan.schema.time_type
        if aggregate.base.shows_time and pa.types.is_timestamp(time_type):
            dates["its event time is"] = Column(to_micros(times, plan.schema.unit), time_type)
        for what, column in dates.items():
            for row, value in _beyond(column).items():
                failures.setdefault(row, (code, f"{what} {value}, and Python's dates end with the year 9999"))
    return failures


def _beyond(column: Column) -> dict[int, str]:
    """The places of dates for which Python has no object, and their texts."""
    rows = beyond_python(column)
    return dict(zip(rows.tolist(), column.take(rows).to_arrow().cast(pa.string()).to_pylist(), strict=True))
