"""Custom windows: the user's code decides where they begin and end: record by record, by edges or by what to evict."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.multi import check_watched
from slicewise.amounts import ROWS, TIME, Amount, Measure, to_amount
from slicewise.errors import QueryError
from slicewise.plain import classes_in
from slicewise.windows.kinds import Context, Window
from slicewise.windows.parameters import (
    Length,
    check_columns,
    format_amount,
    format_code,
    format_offset,
    offset_in_unit,
    read_tick_offset,
)

__all__ = ["Evict", "Policy", "UserDefined", "policy", "user_defined"]

EVERY_ROW = Amount(1, ROWS)
#: What the user's object may have to answer about rows, and to place edges itself.
_ANSWERS, _NOTIFIED = ("on_record", "on_batch"), "notify_context"


class Evict(NamedTuple):
    """What a non-deterministic window answers to a row that has joined it.

    Parameters
    ----------
    n : int
        How many rows leave the front of the window.
    trigger : bool
        Whether the window is reported then.

    Examples
    --------
    The last three rows, reported after every second one:

    >>> import slicewise as sw
    >>> class LastThree:
    ...     def __init__(self):
    ...         self.rows = 0
    ...     def on_record(self, time, row):
    ...         self.rows += 1
    ...         return sw.Evict(1 if self.rows > 3 else 0, trigger=self.rows % 2 == 0)
    >>> window = sw.user_defined(LastThree, deterministic=False)
    >>> op = sw.Workload(time="ts").query("three", window, total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 2, 3, 4], "v": [1, 2, 3, 4]})
    >>> [(r.start, r.end, r.values["total"]) for r in op.close()]
    [(1, 2, 3), (2, 4, 9)]
    """

    n: int
    trigger: bool


@dataclass(frozen=True, repr=False)
class UserDefined(Window):
    """Windows that the user's object finds.

    It returns, record by record, how many windows begin and end, which is Cutty's discretisation; or it is notified of
    records and places edges where it likes (general stream slicing, section 5.4.2).
    """

    has_lengths = False
    sees_punctuation = True
    factory: Callable[[], Any]
    columns: tuple[str, ...] = ()
    deterministic: bool = True
    #: What an integer time column counts: it says how far edges may lie.
    unit: str | None = field(default=None, compare=False)

    @functools.cached_property
    def methods(self) -> tuple[str, ...]:
        """Which of the methods that can be called the user's object has; none if it cannot be made."""
        try:
            thing = self.factory()
        except Exception:  # it is made where rows come, and the error shows there
            return ()
        return tuple(name for name in (*_ANSWERS, _NOTIFIED) if callable(getattr(thing, name, None)))

    @property
    def places_edges(self) -> bool:
        """Whether the user's object places edges, instead of answering about records."""
        return _NOTIFIED in self.methods

    @property
    def context(self) -> Context:
        free = self.deterministic and not self.places_edges
        return Context.FORWARD_FREE if free else Context.FORWARD_AWARE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (TIME,)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    def in_unit(self, unit: str | None) -> Self:
        return self if unit == self.unit else replace(self, unit=unit)

    @property
    def state_classes(self) -> frozenset[type]:
        return frozenset([type(self.factory())])

    def check_types(self, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        if not self.methods:
            raise QueryError(
                f"`factory` must make an object with a method on_record(time, row), on_batch(times, columns) or "
                f"notify_context(time, row, edges); {self!r} makes {self.factory()!r}",
                parameter="factory",
            )

    def __repr__(self) -> str:
        return f"user_defined({format_code(self.factory)}, columns={list(self.columns)!r})"


@dataclass(frozen=True, repr=False)
class Policy(Window):
    """MTA's window slide policy: the longest prefix for which ``evict(total, oldest)`` holds leaves the window."""

    evict: Callable[[Any, Any], bool]
    watch: tuple[tuple[str, Aggregate], ...] = ()
    every: Amount = EVERY_ROW
    monotone: bool = True
    store: Any = None
    offset: int = 0

    @property
    def context(self) -> Context:
        return Context.FORWARD_AWARE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.every.measure,)

    @property
    def reads(self) -> tuple[str, ...]:
        watched = (column for _, aggregate in self.watch for column in aggregate.columns)
        return tuple(dict.fromkeys([*super().reads, *watched]))

    @property
    def state_classes(self) -> frozenset[type]:
        return frozenset().union(*(classes_in(aggregate.identity) for _, aggregate in self.watch))

    def check_types(self, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        for _, aggregate in self.watch:
            aggregate.bind(*(types[column] for column in aggregate.columns))

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        return offset_in_unit(self.offset, self.every.measure, unit)

    def __repr__(self) -> str:
        offset, monotone = format_offset(self.offset, self.every.measure), "" if self.monotone else ", monotone=False"
        return f"policy({format_code(self.evict)}, every={format_amount(self.every)}{offset}{monotone})"


def user_defined(factory: Callable[[], Any], *, columns: Sequence[str] = (), deterministic: bool = True) -> UserDefined:
    """Windows that the user's own object finds, record by record in event-time order.

    Parameters
    ----------
    factory : callable
        A class, or a function without arguments, that makes an object per key. For each record of the key,
        ``on_record(time, row)`` is called, where ``row`` is a dict; or ``on_batch(times, columns)`` for many at once,
        with arrays. Both return how many windows begin with the record and how many end before it, as two integers or
        two arrays of them; the window that began first ends first. An object that has
        ``notify_context(time, row, edges)`` instead places the edges itself: ``edges.add_start(t)``,
        ``edges.add_end(t)``, ``edges.remove_start(t)`` and ``edges.remove_end(t)`` act at any time from the horizon on,
        before the record or after it; ``edges.starts`` and ``edges.ends`` are the edges that there are, sorted. The
        first start goes with the first end, the second with the second, and so on; a start without an end is open.
    columns : sequence of str, optional
        The columns that ``row`` holds.
    deterministic : bool, optional
        False for an object that returns :class:`Evict` instead: one window per key, which every record joins and whose
        oldest rows leave.

    Returns
    -------
    UserDefined
        The window.

    Raises
    ------
    QueryError
        The object has ``notify_context`` and another of the methods, or ``deterministic=False``.

    Examples
    --------
    A new window at each change of sides:

    >>> import slicewise as sw
    >>> class Sides:
    ...     side = None
    ...     def on_record(self, time, row):
    ...         changed, first, self.side = row["side"] != self.side, self.side is None, row["side"]
    ...         return int(changed), int(changed and not first)
    >>> op = sw.Workload(time="ts").query("sides", sw.user_defined(Sides, columns=["side"]), n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 7, 12], "side": ["buy", "buy", "sell", "buy"]})
    >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
    [(1, 7, 2), (7, 12, 1), (12, None, 1)]

    The ten seconds before each alarm:

    >>> class BeforeAlarms:
    ...     def notify_context(self, time, row, edges):
    ...         if row["alarm"]:
    ...             edges.add_start(time - 10)
    ...             edges.add_end(time)
    >>> window = sw.user_defined(BeforeAlarms, columns=["alarm"])
    >>> op = sw.Workload(time="ts").query("before", window, n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 8, 12, 15, 31], "alarm": [False, False, False, True, False]})
    >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
    [(5, 15, 2)]
    """
    if not callable(factory):
        raise QueryError(
            f"`factory` must be a class or function that makes a window object; got {factory!r}", parameter="factory"
        )
    window = UserDefined(factory, check_columns(columns), deterministic)
    if window.places_edges:
        _check_places_edges(window)
    return window


def _check_places_edges(window: UserDefined) -> None:
    """Refuse an object that places edges and says otherwise, too, where windows lie."""
    if len(window.methods) > 1:
        raise QueryError(
            "`factory` must make an object with on_record or on_batch, or with notify_context, not with both; "
            f"{window!r} has {' and '.join(window.methods)}",
            parameter="factory",
        )
    if not window.deterministic:
        raise QueryError(
            "`deterministic=False` is for objects that return sw.Evict; one with notify_context places edges: leave "
            f"it out of {window!r}",
            parameter="deterministic",
        )


def policy(
    evict: Callable[[Any, Any], bool],
    *,
    watch: Mapping[str, Aggregate] | None = None,
    every: Length | None = None,
    offset: Length = 0,
    monotone: bool = True,
    store: Any = None,
) -> Policy:
    """A window that every row joins, and whose oldest rows leave for as long as ``evict`` returns true.

    Parameters
    ----------
    evict : callable
        ``evict(total, oldest)`` returns whether the ``oldest`` rows, a prefix of the window, leave; ``total`` is the
        whole window. Both are dicts with the values of the aggregates in ``watch``. The longest such prefix leaves.
    watch : mapping of str to Aggregate, optional
        The aggregates that ``evict`` sees.
    every : str, int, timedelta or Amount, optional
        When the window is reported: after every row by default, after each ``sw.rows(n)``, at ticks of event time, or
        of units of a column.
    offset : str, int or timedelta, optional
        How far ticks of event time are shifted; also backwards.
    monotone : bool, optional
        Once ``evict`` is false for some of the oldest rows it is false for more of them, as it is where a window is to
        be kept large enough, or recent enough. Then whole subtrees leave at once. False for a rule of which that cannot
        be said: it is asked about one row after the other, and rows leave up to the first for which it is false. A rule
        that is said to be monotone and is not lets some number of rows leave for which it holds, while it does not for
        one row more; which number depends on how they came in. The oracle of ``sw.testing`` refuses such a rule.
    store : swag store, optional
        Where the nodes of the tree are kept, for windows that are larger than memory: ``sw.swag.DiskStore("folder")``,
        for example; one store may serve many policies and keys. Then O(log n) nodes of a window are in memory. Nodes
        are written in the background; a snapshot waits until they are there, and does not hold them itself. What the
        last snapshot and the one before need stays in the store. In process only: on Spark, state is in the checkpoint.

    Returns
    -------
    Policy
        The window.

    Notes
    -----
    Runtime complexity: O(1) combines per row amortised, of what is watched and of what the query computes, whatever the
    size of the window (AMTA). Of the window, the partials of rows and of runs of them are kept, and no rows.

    Examples
    --------
    The fewest of the latest rows whose sum is at least 10:

    >>> import slicewise as sw
    >>> def enough_without(total, oldest):
    ...     return total["sum"] - oldest["sum"] >= 10
    >>> window = sw.policy(enough_without, watch={"sum": sw.sum("v")})
    >>> op = sw.Workload(time="ts").query("enough", window, total=sw.sum("v"), n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 2, 3, 4], "v": [4, 5, 6, 9]})
    >>> [(r.start, r.end, r.values["total"], r.values["n"]) for r in op.close()]
    [(0, 1, 4, 1), (0, 2, 9, 2), (1, 3, 11, 2), (2, 4, 15, 2)]
    """
    if not callable(evict):
        raise QueryError(f"`evict` must be a function evict(total, oldest) -> bool; got {evict!r}", parameter="evict")
    watched = () if watch is None else check_watched(watch)
    ticks = EVERY_ROW if every is None else to_amount(every, name="every")
    if not isinstance(monotone, bool):
        raise QueryError(f"`monotone` must be true or false; got {monotone!r}", parameter="monotone")
    if store is not None and not all(callable(getattr(store, method, None)) for method in ("get", "write", "close")):
        raise QueryError(
            f"`store` must be a store such as sw.swag.DiskStore('folder'); got {store!r}", parameter="store"
        )
    return Policy(evict, watched, ticks, monotone, store, read_tick_offset(offset, ticks))
