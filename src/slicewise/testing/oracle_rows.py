"""Oracle rows: rows as the oracle keeps them, and the error that names one. Read by both halves of the oracle."""

from __future__ import annotations

import math
import operator
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.amounts import UNITS
from slicewise.errors import AggregateError, DataError, did_you_mean
from slicewise.testing.definitions import is_defined, order_of, value_of

__all__ = [
    "ANYWHERE",
    "OF_QUERY",
    "ON_ROWS",
    "FailedWindowError",
    "Key",
    "RefusedRowError",
    "Row",
    "as_key",
    "column_of",
    "results_of",
    "second_of",
    "whole",
]

Key = tuple[Any, ...]


@dataclass(eq=False)
class Row:
    """A row as it arrived, its place in event-time order, and the watermark and the horizon by which it was judged.

    ``punctuation`` is no data: the windows that see it do not hold it.
    """

    time: int
    values: Mapping[str, Any]
    key: Key
    place: tuple[Any, ...]
    judged_at: float | None = None
    horizon: float = -math.inf
    punctuation: bool = False


#: What a refused row counts in no more: the windows of the query, all windows on rows, all windows.
OF_QUERY, ON_ROWS, ANYWHERE = "of the query", "of all windows on rows", "altogether"


class RefusedRowError(DataError):
    """A row that a query cannot take in; it is left ``out_of`` that query, or of more, and the rest stays."""

    def __init__(self, row: Row, query: str, what: str, out_of: str = OF_QUERY) -> None:
        super().__init__(f"query {query!r}, the record at time {row.time}: {what}; it is left out {out_of}")
        self.row = row
        self.out_of = out_of


class FailedWindowError(AggregateError):
    """A window over which a user's aggregate raised; its value is null."""


def results_of(
    query: Any,
    rows: Sequence[Row],
    by_value: Collection[Any],
    window: str,
    failures: list[FailedWindowError],
    end: int | None = None,
    second: int = 1,
) -> dict[str, Any]:
    """The values of a query's aggregates over the rows of a window; to those ``by_value``, ties come by value.

    ``end`` is the window's end where that is known without rows, ``second`` how long a second is in event time.
    Where a user's function raises, the value is None, and an error that names the window is added to ``failures``.
    """
    values: dict[str, Any] = {}
    for name, aggregate in query.aggregates.items():
        ordered = in_value_order(aggregate, rows) if aggregate in by_value else rows
        try:
            values |= aggregated([(name, aggregate)], ordered, end, second)
        except DataError:
            raise
        except Exception as error:
            if is_defined(aggregate):
                raise
            values[name] = None
            failures.append(FailedWindowError(f"query {query.name!r}, {window}: {aggregate!r} raised {error!r}"))
    return values


def in_value_order(aggregate: Any, rows: Sequence[Row]) -> list[Row]:
    """Rows in order of time, and where that is equal by the value that the aggregate picks."""
    value = aggregate.columns[0]
    return sorted(rows, key=lambda row: (row.time, order_of(row.values.get(value))))


def aggregated(
    aggregates: Iterable[tuple[str, Any]], rows: Sequence[Row], end: int | None = None, second: int = 1
) -> dict[str, Any]:
    """The values of named aggregates over some rows, each by its definition."""
    plain, times = [row.values for row in rows], [row.time for row in rows]
    return {name: value_of(aggregate, plain, times, end, second=second) for name, aggregate in aggregates}


def second_of(workload: Any) -> int:
    """How long a second is in event time; 1 where the time column holds integers of which nobody said what they are."""
    return UNITS[workload.time_measure.unit] if workload.unit is not None or workload.needs_unit else 1


def column_of(row: Mapping[str, Any], name: str, who: str) -> Any:
    """One value of a row; ``who`` reads it, in the words of the error if it is missing."""
    if name not in row:
        raise DataError(f"a row has no column {name!r}, which {who}; {did_you_mean(name, row)}")
    return row[name]


def whole(value: Any, what: str) -> int:
    """An integer; ``what`` names it in the error if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise DataError(f"{what} must be a whole number; got {value!r}; give microseconds or integer time") from None


def as_key(key: Any) -> Key:
    """A key as a tuple; a single value may be given bare, None is no key."""
    if isinstance(key, tuple):
        return key
    return () if key is None else (key,)
