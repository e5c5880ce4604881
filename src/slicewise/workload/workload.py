"""Workload: all that the user wants: the time, the keys, how long to wait, and any number of window queries.

Frozen: ``query`` returns a new workload.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, TIME, Amount, Measure
from slicewise.conditions.expression import Expression, check_truth
from slicewise.errors import QueryError, did_you_mean
from slicewise.windows import Window
from slicewise.windows.parameters import Length
from slicewise.workload.attaching import Attachable
from slicewise.workload.processing import ProcessingTime, check_on_clock
from slicewise.workload.query import Query
from slicewise.workload.read_rows import ReadRows
from slicewise.workload.running import Runnable
from slicewise.workload.settings import (
    Origin,
    check_column,
    check_empty,
    check_keys,
    check_labels,
    check_one_notion_of_time,
    check_result,
    check_unit,
    check_watermark_from,
    read_classes,
    read_columns,
    read_delay,
    replaced,
)

__all__ = ["Workload"]


@dataclass(frozen=True, init=False)
class Workload(ReadRows, Attachable, Runnable):
    """Any number of window queries over one table or stream.

    Parameters
    ----------
    time : str or ProcessingTime
        The event-time column; or the clock, :func:`slicewise.processing_time`, where rows have no time of their own.
    keys : sequence of str, optional
        The columns that partition the stream; none for one global partition.
    watermark : str, int or timedelta, optional
        How long to wait for rows out of order; kept as an integer, in microseconds or the unit of the time column.
    lateness : str, int or timedelta, optional
        How long after the watermark a row may still correct a result; kept as ``watermark`` is.
    order : sequence of str, optional
        Further columns that break ties of equal event time.
    trust : sequence of type, optional
        Classes of your own whose objects aggregates and windows keep. State is data: when it is read, objects are made
        only of classes that are named here, of an aggregate's ``identity`` and of what a window's ``factory`` makes.
        Numbers, text, dates, containers and arrays need no trust.
    unit : str, optional
        What an integer time column counts, where lengths are durations: ``"seconds"``, ``"milliseconds"``,
        ``"microseconds"`` or ``"nanoseconds"`` since the epoch. Inside, and in ``watermark`` and ``lateness``, all
        lengths are then in this unit; plain integers are taken to be.
    where : str, optional
        The rows that are meant, such as ``"country = 'DE'"``. Others are neither counted nor late nor bad; the
        watermark is made from all rows.
    punctuation : str, optional
        The rows that are no data, such as ``"kind = 'marker'"``. ``punctuated`` and ``user_defined`` see them, so that
        they may start and end windows; no aggregate and no other window does. They have a key and an event time, move
        the watermark, and can be late.
    watermark_from : str, optional
        A column that is null on rows of data. A row on which it is not null is a watermark: in process it acts as
        ``advance`` at its place among the rows, and nothing else of it is read. A batch leaves such rows out, a stream
        refuses them.
    queries : sequence of Query, optional
        The queries; :meth:`query` adds one.

    Examples
    --------
    >>> import slicewise as sw
    >>> w = sw.Workload(time="ts", keys=["sensor"], watermark="2 seconds")
    >>> w.query("per_second", sw.tumbling("1 second"), total=sw.sum("v"), n=sw.count())
    Workload(time='ts', keys=['sensor'], watermark='2 seconds')
      per_second: tumbling('1 second') -> total=sum('v'), n=count()
    >>> w.watermark
    2000000
    """

    time: str
    keys: tuple[str, ...]
    watermark: int
    lateness: int
    order: tuple[str, ...]
    trust: tuple[type, ...]
    unit: str | None
    where: Expression | None
    punctuation: Expression | None
    watermark_from: str | None
    queries: tuple[Query, ...]
    #: What `watermark` and `lateness` are counted in; None where both are zero, which fits any notion of time.
    _delay_measure: Measure | None = field(init=False, compare=False)

    def __init__(
        self,
        time: str,
        keys: Sequence[str] = (),
        watermark: Length = 0,
        lateness: Length = 0,
        order: Sequence[str] = (),
        trust: Sequence[type] = (),
        *,
        unit: str | None = None,
        where: str | None = None,
        punctuation: str | None = None,
        watermark_from: str | None = None,
        queries: Iterable[Query] = (),
    ) -> None:
        check_column(time, "time")
        check_unit(unit)
        given = {"watermark": watermark, "lateness": lateness}
        delays = {n: read_delay(v, unit, n) for n, v in given.items()}
        given = {name: delay for name, delay in given.items() if delays[name].size}
        check_on_clock(time, {**given, "order": order, "unit": unit, "watermark_from": watermark_from})
        values = {
            "time": time,
            "keys": read_columns(keys, "keys"),
            "watermark": int(delays["watermark"].size),
            "lateness": int(delays["lateness"].size),
            "order": read_columns(order, "order"),
            "trust": read_classes(trust),
            "unit": unit,
            "where": None if where is None else check_truth(where, "where"),
            "punctuation": None if punctuation is None else check_truth(punctuation, "punctuation"),
            "watermark_from": watermark_from,
            "queries": tuple(q.in_unit(unit) for q in queries),
            "_delay_measure": next((amount.measure for amount in delays.values() if amount.size), None),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        check_keys(self.keys, self.time, self.queries)
        check_watermark_from(watermark_from, (self.time, *self.keys), self.watermark)
        measures = {Origin(parameter=n): amount.measure if amount.size else None for n, amount in delays.items()}
        measures |= {} if self.on_clock is None else {Origin(parameter="time"): TIME}
        of_queries = {Origin(name, q.name): m for q in self.queries for name, m in q.time_measures.items()}
        check_one_notion_of_time(measures | of_queries)

    @property
    def on_clock(self) -> ProcessingTime | None:
        """The clock that gives rows their time; None where they have a time column."""
        return self.time if isinstance(self.time, ProcessingTime) else None

    @property
    def time_measure(self) -> Measure:
        """What lengths of event time are counted in.

        ``TIME`` for timestamps, the unit of the time column where it has one, and ``INTEGER`` when windows are given in
        plain integers of the time column.
        """
        if self.unit is not None:
            return Measure("time", unit=self.unit)
        return INTEGER if INTEGER in self._time_measures else TIME

    @functools.cached_property
    def needs_unit(self) -> bool:
        """Whether an integer time column could not be read: lengths are durations, and what it counts is not known."""
        return self.unit is None and TIME in self._time_measures

    @functools.cached_property
    def _time_measures(self) -> frozenset[Measure]:
        measures = (self._delay_measure, *(m for q in self.queries for m in q.time_measures.values()))
        return frozenset(m for m in measures if m is not None)

    def time_length(self, value: Length, *, name: str) -> int:
        """A length of event time as its event times are counted: in the unit of the time column, or microseconds.

        ``name`` is the parameter the value was given for; errors begin with it.

        >>> Workload(time="ts", unit="milliseconds").time_length("2 seconds", name="lateness")
        2000
        """
        amount = read_delay(value, self.unit, name)
        if amount.size:
            check_one_notion_of_time({Origin(): self.time_measure, Origin(parameter=name): amount.measure})
        return int(amount.size)

    def query(
        self, name: str, window: Window, /, *, empty: bool | Aggregate = False, **aggregates: Aggregate
    ) -> Workload:
        """A workload with one more query: a window and the aggregates over it, each named by its result column.

        Parameters
        ----------
        name : str
            The query's name, which its results carry.
        window : Window
            Where windows begin and end, such as ``sw.tumbling("1 minute")``.
        empty : bool
            Report windows without rows too, if they lie between two windows of their key that have some: with what the
            aggregates give for no rows. For tumbling, sliding and cumulative windows on event time. An aggregate that
            is given here is one like the others, for a result column of this name.
        **aggregates : Aggregate
            What is computed over each window, by result column, such as ``total=sw.sum("v")``.

        Returns
        -------
        Workload
            This workload with the query behind the others; this one stays as it is.

        Raises
        ------
        QueryError
            The name is taken, or window and aggregates do not fit the workload.

        Examples
        --------
        >>> import slicewise as sw
        >>> w = sw.Workload(time="ts").query("trend", sw.tumbling("1 minute"), peak=sw.max("v"), n=sw.count())
        >>> [query.name for query in w.query("visits", sw.session("5 minutes"), n=sw.count()).queries]
        ['trend', 'visits']

        Nothing came in the third minute:

        >>> op = sw.Workload(time="t").query("per_minute", sw.tumbling(60), empty=True, n=sw.count()).operator()
        >>> _ = op.process_batch({"t": [10, 70, 190]})
        >>> sorted((r.start, r.values["n"]) for r in op.close())
        [(0, 1), (60, 1), (120, 0), (180, 1)]
        """
        if not isinstance(name, str) or not name:
            raise QueryError(f"a query needs a name, a string that is not empty; got {name!r}", parameter="name")
        if any(q.name == name for q in self.queries):
            raise QueryError(
                f"there is a query {name!r} already; give this one another name", parameter="name", query=name
            )
        if not isinstance(window, Window):
            raise QueryError(
                f"query {name!r} needs a window such as sw.tumbling('1 minute'); got {window!r}",
                parameter="window",
                query=name,
            )
        if isinstance(empty, Aggregate):
            aggregates, empty = {"empty": empty, **aggregates}, False
        if not aggregates:
            raise QueryError(
                f"query {name!r} computes nothing; add an aggregate, such as n=sw.count()",
                parameter="aggregates",
                query=name,
            )
        for column, aggregate in aggregates.items():
            self.check_aggregate(name, column, aggregate)
        check_empty(name, window, empty)
        check_labels(name, [a for q in self.queries for a in q.aggregates.values()], aggregates)
        return self.with_queries((*self.queries, Query.of(name, window, aggregates, empty)))

    def without(self, name: str) -> Workload:
        """A workload without one of its queries.

        Parameters
        ----------
        name : str
            The query to leave out.

        Returns
        -------
        Workload
            This workload with the other queries; this one stays as it is.

        Examples
        --------
        >>> import slicewise as sw
        >>> w = sw.Workload(time="ts").query("trend", sw.tumbling("1 minute"), peak=sw.max("v"))
        >>> w.without("trend")
        Workload(time='ts')
        """
        self.named(name)
        return self.with_queries(q for q in self.queries if q.name != name)

    def with_queries(self, queries: Iterable[Query]) -> Workload:
        """The same workload with other queries.

        Parameters
        ----------
        queries : iterable of Query
            The queries instead of those that it has.

        Returns
        -------
        Workload
            The other workload.

        Examples
        --------
        >>> import slicewise as sw
        >>> w = sw.Workload(time="ts", watermark=2).query("trend", sw.tumbling(60), peak=sw.max("v"))
        >>> w.with_queries([])
        Workload(time='ts', watermark=2)
        """
        return replaced(self, self.watermark, self.lateness, queries=tuple(queries))

    def with_delays(self, watermark: int, lateness: int) -> Workload:
        """The same workload, waiting and correcting for so long.

        Parameters
        ----------
        watermark, lateness : int
            As the workload keeps them: in microseconds, the unit of the time column or plain integers.

        Returns
        -------
        Workload
            The other workload.

        Examples
        --------
        >>> import slicewise as sw
        >>> sw.Workload(time="ts", watermark="2 seconds").with_delays(500_000, 0)
        Workload(time='ts', watermark='500 milliseconds')
        """
        return replaced(self, watermark, lateness)

    def named(self, name: str) -> Query:
        """The query of this name."""
        for query in self.queries:
            if query.name == name:
                return query
        known = did_you_mean(str(name), [q.name for q in self.queries])
        raise QueryError(f"there is no query {name!r}; {known}", parameter="name", query=str(name))

    def check_aggregate(self, query: str, column: str, aggregate: Any) -> None:
        """Refuse an aggregate that a query cannot have.

        Parameters
        ----------
        query : str
            The name of the query.
        column : str
            The result column.
        aggregate : object
            What it is to hold.

        Raises
        ------
        QueryError
            With ``query`` and ``column`` set.

        Examples
        --------
        >>> import slicewise as sw
        >>> sw.Workload(time="ts", keys=["k"]).check_aggregate("trend", "k", sw.count())
        Traceback (most recent call last):
        slicewise.errors.QueryError: query 'trend': 'k' is a key column; give the aggregate another name
        """
        check_result(query, column, aggregate, self.keys)

    def __repr__(self) -> str:
        parameters = [f"time={self.time!r}"]
        parameters += [f"unit={self.unit!r}"] if self.unit else []
        filters = {"where": self.where, "punctuation": self.punctuation}
        parameters += [f"{name}={given.text!r}" for name, given in filters.items() if given is not None]
        parameters += [f"watermark_from={self.watermark_from!r}"] if self.watermark_from is not None else []
        parameters += [f"{n}={list(getattr(self, n))!r}" for n in ("keys", "order") if getattr(self, n)]
        for name in ("watermark", "lateness"):
            if getattr(self, name):
                amount = Amount(getattr(self, name), self.time_measure)
                parameters.append(f"{name}={amount}" if amount.measure == INTEGER else f"{name}={str(amount)!r}")
        return "\n  ".join([f"Workload({', '.join(parameters)})", *map(repr, self.queries)])
