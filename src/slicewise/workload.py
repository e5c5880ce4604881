"""Workload: what the user wants, all of it: the time, the keys, the waiting, and any number of window queries.

Frozen: ``query`` returns a new workload. ``explain``, ``operator`` and ``run`` are the doors to the later stages.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.guarded import Failure
from slicewise.amounts import INTEGER, TIME, UNITS, Amount, Measure, in_unit, to_offset
from slicewise.errors import QueryError, did_you_mean
from slicewise.options import RunOptions
from slicewise.plain import classes_in
from slicewise.results import RESERVED
from slicewise.windows import Between, Landmark, UserDefined, Window

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
    unit
        What an integer time column counts, where lengths are durations: ``"seconds"``, ``"milliseconds"``,
        ``"microseconds"`` or ``"nanoseconds"`` since the epoch. Inside, and in ``watermark`` and ``lateness``, all
        lengths are then in this unit; plain integers are taken to be.

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
    unit: str | None = field(default=None, kw_only=True)
    queries: tuple[Query, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        _column_name(self.time, "time")
        _check_unit(self.unit)
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
            amount = _counted(_waiting(getattr(self, name), name), self.unit, name)
            measures[f"`{name}`"] = amount.measure if amount.size else None
            object.__setattr__(self, name, int(amount.size))
        object.__setattr__(self, "queries", tuple(_query_in_unit(q, self.unit) for q in self.queries))
        for query in self.queries:
            of_time = [m for m in query.window.measures if m.is_event_time and query.window.has_lengths]
            measures[f"query {query.name!r}"] = of_time[0] if of_time else None
        _one_notion_of_time(measures)
        object.__setattr__(self, "_measures", {m for m in measures.values() if m is not None})

    @property
    def time_measure(self) -> Measure:
        """What lengths of event time are counted in.

        ``TIME`` for timestamps, the unit of the time column where it has one, and ``INTEGER`` when windows are given in
        plain integers of the time column.
        """
        if self.unit is not None:
            return Measure("time", unit=self.unit)
        return INTEGER if INTEGER in self._measures else TIME  # type: ignore[attr-defined]

    @property
    def needs_unit(self) -> bool:
        """Whether an integer time column could not be read: lengths are durations, and nobody says what it counts."""
        return self.unit is None and TIME in self._measures  # type: ignore[attr-defined]

    def time_length(self, value: Any, *, name: str) -> int:
        """A length of event time as its event times are counted: in the unit of the time column, or microseconds.

        ``name`` is the parameter the value was given for; errors begin with it.

        >>> Workload(time="ts", unit="milliseconds").time_length("2 seconds", name="lateness")
        2000
        """
        amount = _counted(_waiting(value, name), self.unit, name)
        if amount.size:
            _one_notion_of_time({f"`{name}`": amount.measure, "the workload": self.time_measure})
        return int(amount.size)

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
        classes = {*self.trust, Failure}
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
        ahead: str | None = RunOptions.ahead,
        shuffle: str = RunOptions.shuffle,
    ) -> DataFrame:
        """The results over a Spark DataFrame: batch in, batch out; streaming in, streaming out.

        Parameters
        ----------
        late
            ``"collect"`` gives back, among the results, the rows that count in no window: late ones, and bad ones.
            Their ``change`` is ``"late"``, the column ``late`` holds the row as it came, and ``reason`` says why.
        emit
            When a stream reports a window: ``"complete"``, or also at every micro-batch that changed it: ``"changes"``.
        idle
            How long a stream must be silent for its watermark to follow the clock, such as ``"30 seconds"``; by
            default it waits for rows.
        bad
            ``"fail"`` stops at a bad row, and shows it: one without a usable event time, one too far ahead, one that
            user code fails on. By default bad rows are left out and, on a stream, counted.
        ahead
            How far ahead of the clock a row of a stream may be, such as ``"1 hour"``. One that is further ahead is a
            bad row, and does not move the watermark. The clock is that of the micro-batch, so that one that is
            repeated judges the same.
        shuffle
            What a batch brings together by key: ``"slices"``, or ``"rows"``, which is faster where there are so many
            keys that slices are about as many as rows, and slower where few keys have most of the rows.
        """
        from slicewise.spark.running import run

        return run(self, df, RunOptions(late=late, emit=emit, idle=idle, bad=bad, ahead=ahead, shuffle=shuffle))

    def operator(
        self,
        *,
        ordered: bool = False,
        store: str | None = None,
        types: Any = None,
        max_slice: int | None = None,
        ahead: Any = None,
        clock: Callable[[], int] | None = None,
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
        ahead
            How far ahead of the clock a row may be, such as ``"1 hour"``. One that is further ahead is named in an
            error and left out; it moves nothing, and the next call goes on. By default no row is too far ahead, unless
            more than a million ticks of its key would be due because of it.
        clock
            What ``ahead`` is measured by: a function that gives microseconds since the epoch; by default the system's.
            It is read once for each batch, and for each row that comes alone.
        """
        from slicewise.slicing.operator import Operator

        return Operator(self, ordered=ordered, store=store, types=types, max_slice=max_slice, ahead=ahead, clock=clock)

    def _check_aggregate(self, query: str, column: str, aggregate: Any) -> None:
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"query {query!r}: {column!r} must be an aggregate such as sw.sum('v'); got {aggregate!r}")
        if column in RESERVED or column in self.keys:
            kind = "a reserved result column" if column in RESERVED else "a key column"
            raise QueryError(f"query {query!r}: {column!r} is {kind}; give the aggregate another name")
        if not isinstance(aggregate, Count) and not aggregate.columns:
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
        said += [f"unit={self.unit!r}"] if self.unit else []
        said += [f"{n}={list(getattr(self, n))!r}" for n in ("keys", "order") if getattr(self, n)]
        for name in ("watermark", "lateness"):
            if getattr(self, name):
                amount = Amount(getattr(self, name), self.time_measure)
                said.append(f"{name}={amount}" if amount.measure == INTEGER else f"{name}={str(amount)!r}")
        return "\n  ".join([f"Workload({', '.join(said)})", *map(repr, self.queries)])


def _waiting(value: Any, name: str) -> Amount:
    amount = to_offset(value, name=name)
    if not amount.measure.is_event_time:
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


# Lengths and instants in the unit of the time column


def _check_unit(unit: Any) -> None:
    if unit is not None and (not isinstance(unit, str) or unit not in UNITS):
        raise QueryError(
            f"`unit` must be one of {', '.join(map(repr, UNITS))}; got {unit!r}; leave it out where time is a timestamp"
        )


def _counted(amount: Amount, unit: str | None, name: str, *, instant: bool = False) -> Amount:
    """A length of event time as the engine counts it: in this unit; without one microseconds, or plain integers."""
    if unit is None and amount.measure == INTEGER:
        return amount
    return in_unit(amount, unit or TIME.unit, name=name, instant=instant)


def _query_in_unit(query: Query, unit: str | None) -> Query:
    wanted = {Measure("time", unit=unit or TIME.unit), *([INTEGER] if unit is None else [])}
    mixed = isinstance(query.window, Landmark) and query.window.on is not None
    if not mixed and all(m in wanted or not m.is_event_time for m in query.window.measures):
        return query  # a workload of many queries is made anew with each that is added
    try:
        return dataclasses.replace(query, window=_window_in_unit(query.window, unit))
    except QueryError as error:
        raise QueryError(f"query {query.name!r}: {error}") from None


def _window_in_unit(window: Window, unit: str | None) -> Window:
    """The window with all its lengths and instants of event time in this unit."""
    sizes = {f.name: getattr(window, f.name) for f in dataclasses.fields(window)}
    of_time = {n: v for n, v in sizes.items() if isinstance(v, Amount) and v.measure.is_event_time}
    changes: dict[str, Any] = {name: _counted(amount, unit, name) for name, amount in of_time.items()}

    def instant(name: str, measure: Measure) -> Amount:
        return _counted(Amount(sizes[name], measure), unit, name, instant=True)

    if sizes.get("offset") and window.measure.is_event_time:
        changes["offset"] = _counted(Amount(sizes["offset"], window.measure), unit, "offset").size
    if isinstance(window, Landmark):
        since = instant("since", window.on or window.every.measure)
        if since.measure != changes["every"].measure:
            raise QueryError(
                f"`since` and `every` must be in one measure; got {window!r}; use a point in time and a duration for a "
                "timestamp column, integers for an integer one, or say what those count: Workload(unit=...)"
            )
        changes |= {"since": since.size, "on": None}
    if isinstance(window, Between):
        start, end = (instant(name, window.on) for name in ("start", "end"))
        changes |= {"start": start.size, "end": end.size, "on": end.measure}
    return dataclasses.replace(window, **changes) if changes else window


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
