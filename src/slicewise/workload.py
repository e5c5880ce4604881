"""Workload: what the user wants, all of it: the time, the keys, the waiting, and any number of window queries.

Frozen: ``query`` returns a new workload. ``explain``, ``operator`` and ``run`` are the doors to the later stages.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, TIME, Amount, Measure, to_offset
from slicewise.errors import QueryError, did_you_mean
from slicewise.options import RunOptions
from slicewise.plain import classes_in
from slicewise.results import RESERVED
from slicewise.windows import UserDefined, Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slicewise.slicing.operator import Operator

__all__ = ["Query", "Workload"]


@dataclass(frozen=True)
class Query:
    """A named window with what to compute over it."""

    name: str
    window: Window
    aggregates: Mapping[str, Aggregate]

    def __repr__(self) -> str:
        computed = ", ".join(f"{n}={a!r}" for n, a in self.aggregates.items())
        return f"{self.name}: {self.window!r} -> {computed}"

    def __hash__(self) -> int:
        return hash((self.name, self.window, tuple(self.aggregates.items())))

    def __reduce__(self) -> tuple[Any, ...]:
        # MappingProxyType cannot be pickled, and workers need workloads.
        return _query, (self.name, self.window, dict(self.aggregates))


def _query(name: str, window: Window, aggregates: Mapping[str, Aggregate]) -> Query:
    return Query(name, window, MappingProxyType(dict(aggregates)))


@dataclass(frozen=True)
class Workload:
    """Any number of window queries over one table or stream.

    Parameters
    ----------
    time
        The event-time column.
    keys
        The columns that partition the stream; none for one global partition.
    watermark
        How long to wait for rows out of order.
    lateness
        How long after the watermark a row may still correct a result.
    order
        Further columns that break ties of equal event time.
    trust
        Classes of your own whose objects aggregates and windows keep. State is data: when it is read, objects are made
        only of classes that are named here, of an aggregate's ``identity`` and of what a window's ``factory`` makes.
        Numbers, text, dates, containers and arrays need no trust.

    Examples
    --------
    >>> import slicewise as sw
    >>> w = sw.Workload(time="ts", keys=["sensor"], watermark="2 seconds")
    >>> w.query("per_second", sw.tumbling("1 second"), total=sw.sum("v"), n=sw.count())
    Workload(time='ts', keys=['sensor'], watermark='2 seconds')
      per_second: tumbling('1 second') -> total=sum('v'), n=count()
    """

    time: str
    keys: Sequence[str] = ()
    watermark: Any = 0
    lateness: Any = 0
    order: Sequence[str] = ()
    trust: Sequence[type] = ()
    queries: tuple[Query, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _column_name(self.time, "time")
        for name in ("keys", "order"):
            object.__setattr__(self, name, _column_names(getattr(self, name), name))
        object.__setattr__(self, "trust", _classes(self.trust))
        if self.time in self.keys:
            raise QueryError(f"`keys` must not hold the time column; got {self.time!r} as both")
        for key in self.keys:
            if key in RESERVED:
                raise QueryError(f"`keys` must not use a reserved result column; got {key!r}; rename the column")
        measures = {}
        for name in ("watermark", "lateness"):
            amount = _waiting(getattr(self, name), name)
            measures[f"`{name}`"] = amount.measure if amount.size else None
            object.__setattr__(self, name, int(amount.size))
        for query in self.queries:
            of_time = [m for m in query.window.measures if m in (TIME, INTEGER) and query.window.has_lengths]
            measures[f"query {query.name!r}"] = of_time[0] if of_time else None
        _one_notion_of_time(measures)
        object.__setattr__(self, "_measures", {m for m in measures.values() if m is not None})

    @property
    def time_measure(self) -> Measure:
        """``TIME`` for timestamps, ``INTEGER`` when windows are given in plain integers of the time column."""
        found: set[Measure] = self._measures  # type: ignore[attr-defined]
        return INTEGER if INTEGER in found else TIME

    def query(self, name: str, window: Window, /, **aggregates: Aggregate) -> Workload:
        """A workload with one more query: a window and the aggregates over it, each named by its result column."""
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query needs a name, a string that is not empty; got {name!r}")
        if any(q.name == name for q in self.queries):
            raise QueryError(f"there is a query {name!r} already; give this one another name")
        if not isinstance(window, Window):
            raise QueryError(f"query {name!r} needs a window such as sw.tumbling('1 minute'); got {window!r}")
        if not aggregates:
            raise QueryError(f"query {name!r} computes nothing; add an aggregate, such as n=sw.count()")
        for column, aggregate in aggregates.items():
            self._check_aggregate(name, column, aggregate)
        self._check_names(name, aggregates.values())
        said = _query(name, window, aggregates)
        return self._with((*self.queries, said))

    def without(self, name: str) -> Workload:
        """A workload without one of its queries."""
        self.named(name)
        return self._with(tuple(q for q in self.queries if q.name != name))

    def _with(self, queries: tuple[Query, ...]) -> Workload:
        return self._waiting(self.watermark, self.lateness, queries=queries)

    def _waiting(self, watermark: int, lateness: int, **changes: Any) -> Workload:
        """The same workload, waiting and correcting for so long, in its own units of event time."""
        measure = self.time_measure
        return dataclasses.replace(
            self, watermark=Amount(watermark, measure), lateness=Amount(lateness, measure), **changes
        )

    def named(self, name: str) -> Query:
        """The query of this name."""
        for query in self.queries:
            if query.name == name:
                return query
        raise QueryError(f"there is no query {name!r}; {did_you_mean(str(name), [q.name for q in self.queries])}")

    @functools.cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that the workload reads, besides time and keys."""
        found = [c for q in self.queries for a in q.aggregates.values() for c in a.columns]
        found += [c for q in self.queries for c in q.window.reads]
        return tuple(dict.fromkeys([*found, *self.order]))

    @functools.cached_property
    def trusted(self) -> frozenset[type]:
        """The classes of which objects in state may be made anew."""
        classes = set(self.trust)
        for query in self.queries:
            for aggregate in query.aggregates.values():
                classes |= classes_in(aggregate.identity)
            if isinstance(query.window, UserDefined):
                classes.add(type(query.window.factory()))
        return frozenset(classes)

    def explain(self, *, ordered: bool = False, max_slice: int | None = None) -> str:
        """What the workload is, what was decided and why, in words for a terminal; see :meth:`operator`."""
        from slicewise.plan.explain import explain

        return explain(self, ordered=ordered, max_slice=max_slice)

    def run(
        self,
        df: DataFrame,
        *,
        late: str | None = RunOptions.late,
        emit: str = RunOptions.emit,
        idle: str | None = RunOptions.idle,
        bad: str | None = RunOptions.bad,
        shuffle: str = RunOptions.shuffle,
    ) -> DataFrame:
        """The results over a Spark DataFrame: batch in, batch out; streaming in, streaming out.

        Parameters
        ----------
        late
            ``"collect"`` gives back, among the results, the rows that count in no window: late ones, and those whose
            event time is null. Their ``change`` is ``"late"``, and the column ``late`` holds the row as it came.
        emit
            When a stream reports a window: ``"complete"``, or also at every micro-batch that changed it: ``"changes"``.
        idle
            How long a stream must be silent for its watermark to follow the clock, such as ``"30 seconds"``; by
            default it waits for rows.
        bad
            ``"fail"`` stops at a row without a usable event time, and shows it.
        shuffle
            What a batch brings together by key: ``"slices"``, or ``"rows"``, which is faster where there are so many
            keys that slices are about as many as rows, and slower where few keys have most of the rows.
        """
        from slicewise.spark.running import run

        return run(self, df, RunOptions(late=late, emit=emit, idle=idle, bad=bad, shuffle=shuffle))

    def operator(
        self, *, ordered: bool = False, store: str | None = None, types: Any = None, max_slice: int | None = None
    ) -> Operator:
        """The workload in this process, without Spark.

        Parameters
        ----------
        ordered
            Rows come in event-time order, so that every row is its own watermark.
        store
            ``"lazy"``, ``"eager"`` or ``"prefix"`` instead of what the plan chooses.
        types
            Types of input columns, where the first rows do not tell: ``{"v": "double"}``.
        max_slice
            The most rows of a slice out of which late rows may shift others: the shorter, the less is computed again.
        """
        from slicewise.slicing.operator import Operator

        return Operator(self, ordered=ordered, store=store, types=types, max_slice=max_slice)

    def _check_aggregate(self, query: str, column: str, aggregate: Any) -> None:
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"query {query!r}: {column!r} must be an aggregate such as sw.sum('v'); got {aggregate!r}")
        if column in RESERVED or column in self.keys:
            kind = "a reserved result column" if column in RESERVED else "a key column"
            raise QueryError(f"query {query!r}: {column!r} is {kind}; give the aggregate another name")
        if aggregate.name != "count" and not aggregate.columns:
            raise QueryError(f"query {query!r}: {aggregate!r} needs a column, as in {aggregate.name}('v')")

    def _check_names(self, query: str, added: Iterable[Aggregate]) -> None:
        """State is kept under the names of aggregates, so no two different ones may share a name."""
        known: dict[str, Aggregate] = {}
        for aggregate in (*(a for q in self.queries for a in q.aggregates.values()), *added):
            if known.setdefault(repr(aggregate), aggregate) != aggregate:
                raise QueryError(
                    f"query {query!r}: two different aggregates are called {aggregate!r}; name one of them otherwise: "
                    "sw.aggregate(..., name='...')"
                )

    def __repr__(self) -> str:
        said = [f"time={self.time!r}"]
        said += [f"{n}={list(getattr(self, n))!r}" for n in ("keys", "order") if getattr(self, n)]
        for name in ("watermark", "lateness"):
            if getattr(self, name):
                amount = Amount(getattr(self, name), self.time_measure)
                said.append(f"{name}={str(amount)!r}" if amount.measure == TIME else f"{name}={amount}")
        return "\n  ".join([f"Workload({', '.join(said)})", *map(repr, self.queries)])


def _waiting(value: Any, name: str) -> Amount:
    amount = to_offset(value, name=name)
    if amount.measure not in (TIME, INTEGER):
        raise QueryError(f"`{name}` must be a duration or an integer of event time; got {amount}")
    if amount.size < 0:
        raise QueryError(f"`{name}` must not be negative; got {str(amount)!r}")
    return amount


def _classes(trust: Any) -> tuple[type, ...]:
    listed = tuple(trust) if isinstance(trust, Iterable) and not isinstance(trust, str) else (trust,)
    for item in listed:
        if not isinstance(item, type):
            raise QueryError(f"`trust` must be a list of classes, such as [collections.Counter]; got {item!r}")
    return listed


def _column_name(name: Any, parameter: str) -> None:
    if not isinstance(name, str) or not name:
        raise QueryError(f"`{parameter}` must name a column; got {name!r}")


def _column_names(names: Any, parameter: str) -> tuple[str, ...]:
    if isinstance(names, str):
        raise QueryError(f"`{parameter}` must be a list of column names; got the string {names!r}; write [{names!r}]")
    try:
        found = tuple(names)
    except TypeError:
        raise QueryError(f"`{parameter}` must be a list of column names; got {names!r}") from None
    for name in found:
        _column_name(name, parameter)
    if len(set(found)) < len(found):
        twice = next(n for n in found if found.count(n) > 1)
        raise QueryError(f"`{parameter}` names {twice!r} twice")
    return found


def _one_notion_of_time(measures: dict[str, Measure | None]) -> None:
    timed = [who for who, m in measures.items() if m == TIME]
    counted = [who for who, m in measures.items() if m == INTEGER]
    if timed and counted:
        raise QueryError(
            f"one workload has one notion of time; got durations in {timed[0]} and plain integers in {counted[0]}; "
            "use durations for a timestamp column, integers for an integer one"
        )
