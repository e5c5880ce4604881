"""Techniques: what is kept of the rows of a key, and how windows are answered from it. Below the contract.

A :class:`Technique` is driven by a :class:`~slicewise.baselines.base.Baseline`, which reads rows and finds windows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.multi import Multi
from slicewise.baselines.windowing import TimeWindows
from slicewise.swag.base import OnPartials, lifting
from slicewise.windows import Window
from slicewise.workload import Workload

__all__ = ["EMPTY", "Context", "Held", "Technique"]

#: The answer for a window without rows.
EMPTY: Any = object()


@dataclass(frozen=True)
class Held:
    """What a technique holds, in the terms of general stream slicing's Table 1.

    Parameters
    ----------
    tuples
        Rows that are kept as such; a row that is kept twice counts twice.
    partials
        Partials of slices or buckets.
    nodes
        Partials of the inner nodes of trees.

    Examples
    --------
    >>> Held(tuples=3) + Held(partials=2, nodes=1)
    Held(tuples=3, partials=2, nodes=1)
    """

    tuples: int = 0
    partials: int = 0
    nodes: int = 0

    def __add__(self, other: Held) -> Held:
        return Held(self.tuples + other.tuples, self.partials + other.partials, self.nodes + other.nodes)

    @property
    def total(self) -> int:
        """All that is held."""
        return self.tuples + self.partials + self.nodes


class Context:
    """What a technique is told of the workload: where windows lie, and how partials are combined.

    Attributes
    ----------
    aggregate
        All aggregates of the workload as one; it runs on partials, nothing is lifted or lowered.
    combine
        Its function, whose calls are counted where that was asked for.
    fold
        The combination of some partials, at least one.
    counts
        Calls of ``combine`` while rows came in (``update``) and windows were answered (``merge``).
    """

    def __init__(self, workload: Workload, *, ordered: bool, counting: bool) -> None:
        self.ordered = ordered
        times: dict[int, Window] = {}
        self.gaps: dict[int, int] = {}
        for number, query in enumerate(workload.queries):
            if query.window.session_gap is not None:
                self.gaps[number] = query.window.session_gap
            else:
                times[number] = query.window
        self.windows = TimeWindows(times)
        distinct = list(dict.fromkeys(a for q in workload.queries for a in q.aggregates.values()))
        whole = distinct[0] if len(distinct) == 1 else Multi(**{f"a{i}": a for i, a in enumerate(distinct)})
        self.whole: Aggregate = whole
        self.counts = {"update": 0, "merge": 0}
        self.phase = "update"
        self.aggregate = OnPartials(whole)
        self.combine: Callable[[Any, Any], Any] = self._counted if counting else whole.combine
        self.aggregate.combine = self.combine  # type: ignore[method-assign]
        #: Partials that grow are folded in pairs of about equal size: one by one, the first would be copied for each.
        self.fold: Callable[[Sequence[Any]], Any] = (
            self._fold_pairs if whole.kind == "holistic" else partial(reduce, self.combine)
        )
        self._lift = lifting(whole)
        self._places = [
            [(name, a, distinct.index(a)) for name, a in query.aggregates.items()] for query in workload.queries
        ]

    def _counted(self, a: Any, b: Any) -> Any:
        self.counts[self.phase] += 1
        return self.whole.combine(a, b)

    def _fold_pairs(self, partials: Sequence[Any]) -> Any:
        level = list(partials)
        while len(level) > 1:
            pairs = list(map(self.combine, level[::2], level[1::2]))
            level = [*pairs, level[-1]] if len(level) % 2 else pairs
        return level[0]

    def lifted(self, columns: Mapping[str, Sequence[Any]], rows: int) -> list[Any]:
        """The partials of single rows."""
        names = self.whole.columns
        if not names:
            return [self._lift(None)] * rows
        if len(names) == 1:
            return list(map(self._lift, columns[names[0]]))
        return list(map(self._lift, zip(*(columns[name] for name in names), strict=True)))

    def lowered(self, query: int, total: Any) -> dict[str, Any]:
        """The values of a query's window."""
        if isinstance(self.whole, Multi):
            return {name: a.lower(total[place]) for name, a, place in self._places[query]}
        return {name: a.lower(total) for name, a, _ in self._places[query]}


class Technique(ABC):
    """What is kept of the rows of one key.

    Parameters
    ----------
    context
        What is known of the workload.
    """

    def __init__(self, context: Context) -> None:
        self.context = context

    @abstractmethod
    def insert(self, times: Sequence[int], partials: Sequence[Any]) -> None:
        """Take rows in the order of their event times: the times, and a partial for each."""

    @abstractmethod
    def answer(self, query: int, start: int, end: int) -> Any:
        """The partial of the window ``[start, end)`` of a query, EMPTY without rows."""

    @abstractmethod
    def evict(self, needed: int, horizon: int) -> None:
        """Forget rows before ``needed``, and windows that end at or before ``horizon``."""

    @abstractmethod
    def held(self) -> Held:
        """What is kept now."""
