"""Queries: named windows with what is computed over them. The parts of a workload."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import Measure
from slicewise.errors import DataError, QueryError
from slicewise.windows import Window

__all__ = ["Query"]


@dataclass(frozen=True)
class Query:
    """A named window with what to compute over it.

    Parameters
    ----------
    name : str
        The name, which results carry.
    window : Window
        Where windows begin and end.
    aggregates : mapping of str to Aggregate
        What is computed, by result column.
    empty : bool
        Whether windows without rows between others of their key are reported too.

    Examples
    --------
    >>> import slicewise as sw
    >>> (query,) = sw.Workload(time="ts").query("trend", sw.tumbling("1 minute"), peak=sw.max("v")).queries
    >>> query.name, query.window, query.aggregates["peak"]
    ('trend', tumbling('1 minute'), max('v'))
    """

    name: str
    window: Window
    aggregates: Mapping[str, Aggregate]
    empty: bool = False

    @classmethod
    def of(cls, name: str, window: Window, aggregates: Mapping[str, Aggregate], empty: bool = False) -> Query:
        """A query that shares no mapping with its maker."""
        return cls(name, window, MappingProxyType(dict(aggregates)), empty)

    def in_unit(self, unit: str | None) -> Query:
        """The query with its event times in the unit of the time column; see :meth:`Window.in_unit`."""
        try:
            window = self.window.in_unit(unit)
            aggregates = {name: aggregate.in_unit(unit) for name, aggregate in self.aggregates.items()}
        except QueryError as error:
            raise QueryError(f"query {self.name!r}: {error}", parameter=error.parameter, query=self.name) from None
        if window is self.window and all(a is self.aggregates[name] for name, a in aggregates.items()):
            return self  # a workload of many queries is made anew with each that is added
        return dataclasses.replace(self, window=window, aggregates=MappingProxyType(aggregates))

    def check_time(self, time_type: pa.DataType) -> None:
        """Refuse a time column that its window does not go with; see :meth:`Window.check_time`."""
        try:
            self.window.check_time(time_type)
        except DataError as error:
            raise DataError(f"query {self.name!r}: {error}") from None

    @property
    def time_measures(self) -> dict[str | None, Measure | None]:
        """What lengths of event time are counted in: those of the window under None, an aggregate's by their names."""
        lengths = (length for aggregate in self.aggregates.values() for length in aggregate.lengths.items())
        return {None: self.window.time_measure} | {name: amount.measure for name, amount in lengths}

    def __repr__(self) -> str:
        computed = ", ".join(f"{n}={a!r}" for n, a in self.aggregates.items())
        return f"{self.name}: {self.described_window} -> {computed}"

    @property
    def described_window(self) -> str:
        """The window, and that empty ones are reported where they are."""
        return f"{self.window!r}, empty=True" if self.empty else repr(self.window)

    def __hash__(self) -> int:
        return hash((self.name, self.window, tuple(self.aggregates.items()), self.empty))

    def __reduce__(self) -> tuple[Any, ...]:
        # MappingProxyType cannot be pickled, and workers need workloads.
        return Query.of, (self.name, self.window, dict(self.aggregates), self.empty)
