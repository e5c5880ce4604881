"""Queries: named windows with what is computed over them. The parts of a workload."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError
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

    @classmethod
    def of(cls, name: str, window: Window, aggregates: Mapping[str, Aggregate]) -> Query:
        """A query that shares no mapping with its maker."""
        return cls(name, window, MappingProxyType(dict(aggregates)))

    def in_unit(self, unit: str | None) -> Query:
        """The query with its event times in the unit of the time column; see :meth:`Window.in_unit`."""
        try:
            window = self.window.in_unit(unit)
        except QueryError as error:
            raise QueryError(f"query {self.name!r}: {error}", parameter=error.parameter, query=self.name) from None
        return self if window is self.window else dataclasses.replace(self, window=window)

    def __repr__(self) -> str:
        computed = ", ".join(f"{n}={a!r}" for n, a in self.aggregates.items())
        return f"{self.name}: {self.window!r} -> {computed}"

    def __hash__(self) -> int:
        return hash((self.name, self.window, tuple(self.aggregates.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        # MappingProxyType cannot be pickled, and workers need workloads.
        return Query.of, (self.name, self.window, dict(self.aggregates))
