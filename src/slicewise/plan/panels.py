"""Panels: which queries have their values in one row of results, and when a row is shown. Read by plan and engine.

In the long shape every query has rows of its own, in the wide shape the windows of all queries that end together share
one. A panel is the queries of one row. Where only differences are shown, the rows of a panel are compared with each
other, from tick to tick.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slicewise.errors import QueryError, did_you_mean, one_of
from slicewise.options import RunOptions

if TYPE_CHECKING:
    from slicewise.workload import Workload

__all__ = [
    "COMPLETE",
    "DIFFERENCES",
    "EMITS",
    "LONG",
    "SHAPES",
    "WIDE",
    "WIDE_FIXED",
    "Form",
    "Panel",
    "panels_of",
    "wide_columns",
]

LONG, WIDE = SHAPES = ("long", "wide")
#: When a row is shown, in process; streams also have a word for windows that are shown before they end.
COMPLETE, DIFFERENCES = EMITS = ("complete", "differences")
#: The columns of wide results besides keys and values.
WIDE_FIXED = ("end", "change", "revision")


@dataclass(frozen=True)
class Form:
    """How results are shown: a row for each query or one for all, every tick or only those that differ.

    >>> Form("wide", "differences").non_defaults()
    {'shape': 'wide', 'emit': 'differences'}
    """

    shape: str = LONG
    emit: str = COMPLETE

    @property
    def wide(self) -> bool:
        """Whether windows that end together share a row."""
        return self.shape == WIDE

    @property
    def differences(self) -> bool:
        """Whether only ticks are shown whose values differ from those of the tick before."""
        return self.emit == DIFFERENCES

    @property
    def in_panels(self) -> bool:
        """Whether results are other than one for each query and window."""
        return self.wide or self.differences

    def non_defaults(self) -> dict[str, str]:
        """What is not as it is by default."""
        named = {"shape": (self.shape, LONG), "emit": (self.emit, COMPLETE)}
        return {name: value for name, (value, default) in named.items() if value != default}

    @classmethod
    def of_run(cls, options: RunOptions) -> Form:
        """The form of a run on Spark. Windows that are shown before they end are shown whenever they change."""
        return cls(options.shape, COMPLETE if options.emit not in EMITS else options.emit)

    @classmethod
    def described(cls, description: Mapping[str, Any]) -> Form:
        """The form whose non-defaults are in a description."""
        return cls(description.get("shape", LONG), description.get("emit", COMPLETE))

    def check(self, workload: Workload) -> None:
        """Refuse words that are none, and queries that cannot be shown so.

        Raises
        ------
        QueryError
            With ``parameter`` and, where it is about one, ``query`` set.
        """
        for name, words in (("shape", SHAPES), ("emit", EMITS)):
            value = getattr(self, name)
            if value not in words:
                tip = did_you_mean(str(value), words)
                raise QueryError(f"`{name}` must be {one_of(words)}; got {value!r}; {tip}", parameter=name)
        if self.in_panels:
            self._check_windows(workload)
        if self.wide:
            wide_columns(workload)

    def _check_windows(self, workload: Workload) -> None:
        (name, value), *_ = self.non_defaults().items()
        for query in workload.queries:
            if query.empty:
                shown = "a row wherever any query has rows" if self.wide else "the ticks that differ, empty ones too"
                raise QueryError(
                    f"query {query.name!r}: {name}={value!r} shows {shown}, and `empty` asks for others; leave `empty` "
                    "out, or give the query a workload of its own",
                    parameter=name,
                    query=query.name,
                )
            if query.window.grid is None:
                raise QueryError(
                    f"query {query.name!r}: {name}={value!r} takes windows that end at ticks, sw.tumbling and "
                    f"sw.sliding on event time; got {query.window!r}; give it a workload of its own",
                    parameter=name,
                    query=query.name,
                )
        first = workload.queries[0] if workload.queries else None
        for query in workload.queries if self.wide else ():
            assert first is not None
            if query.window.grid != first.window.grid:
                raise QueryError(
                    f"shape='wide' has one row for the windows that end together, and those of {first.name!r}, "
                    f"{first.window!r}, and of {query.name!r}, {query.window!r}, do not: `every`, `offset` and `zone` "
                    "must be the same, and lengths differ by multiples of `every`; give one a workload of its own",
                    parameter="shape",
                    query=query.name,
                )


def wide_columns(workload: Workload) -> dict[str, tuple[int, str]]:
    """The columns of wide results, each with the position of its query and the name that it has there.

    Raises
    ------
    QueryError
        Two would have the same name, or one that of a key or of a column that all results have.
    """
    for key in workload.keys:
        if key in WIDE_FIXED:
            raise QueryError(
                f"the key {key!r} has the name of a column that shape='wide' adds; rename it", parameter="shape"
            )
    columns: dict[str, tuple[int, str]] = {}
    for number, query in enumerate(workload.queries):
        for column in query.aggregates:
            name = f"{query.name}_{column}"
            if name in columns:
                other, its = columns[name]
                raise QueryError(
                    f"shape='wide' would name {its!r} of query {workload.queries[other].name!r} and {column!r} of "
                    f"query {query.name!r} both {name!r}; rename one of them",
                    parameter="shape",
                    query=query.name,
                )
            if name in workload.keys:
                raise QueryError(
                    f"shape='wide' would name {column!r} of query {query.name!r} {name!r}, and a key has that name; "
                    "rename one of them",
                    parameter="shape",
                    query=query.name,
                )
            columns[name] = number, column
    return columns


@dataclass(frozen=True)
class Panel:
    """Queries whose values stand in one row of results.

    Attributes
    ----------
    name
        What it is called in states.
    queries
        The positions of its queries in the workload.
    schema_query
        Under which of the schema's queries its rows stand.
    """

    name: str
    queries: tuple[int, ...]
    schema_query: int


def panels_of(workload: Workload, form: Form) -> tuple[Panel, ...]:
    """The panels of a workload; none where every window of every query is a row.

    >>> import slicewise as sw
    >>> counts = {"n": sw.count()}
    >>> w = sw.Workload(time="t").query("a", sw.tumbling(1), **counts).query("b", sw.sliding(5, every=1), **counts)
    >>> [panel.queries for panel in panels_of(w, Form("wide"))]
    [(0, 1)]
    >>> [panel.queries for panel in panels_of(w, Form(emit="differences"))]
    [(0,), (1,)]
    """
    if not form.in_panels:
        return ()
    numbers: Collection[int] = range(len(workload.queries))
    if form.wide:
        return (Panel("", tuple(numbers), 0),)
    return tuple(Panel(workload.queries[number].name, (number,), number) for number in numbers)
