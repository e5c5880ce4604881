"""Results of a workload: columns inside, rows when iterated.

A leaf: it knows columns, not how they were computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slicewise.amounts import to_micros
from slicewise.columns import Column, beyond_python, to_python
from slicewise.errors import DataError, MissingPackageError
from slicewise.records import record

__all__ = [
    "CHANGES",
    "INSERT",
    "OPEN_END",
    "RESERVED",
    "RETRACT",
    "UPDATE",
    "Block",
    "Repeats",
    "Result",
    "ResultSchema",
    "Results",
    "value_column",
]

INSERT, UPDATE, RETRACT = 0, 1, 2
CHANGES = ("insert", "update", "retract")
RESERVED = ("query", "window", "span", "change", "revision")

#: The end of a window that was still open at the end of the data; None to the user, null in Arrow.
OPEN_END = np.iinfo(np.int64).max

#: How many results a block holds at most when it is read.
MOST = 200_000


class Result(NamedTuple):
    """One window's result for one key, as iterating :class:`Results` gives it.

    Parameters
    ----------
    key : tuple
        The values of the key columns, in the order of ``Workload.keys``.
    query : str
        The name of the query; None in the wide shape, where a result is about all of them.
    start, end : int or float
        The window's bounds in the query's measure: event times as microseconds since the epoch (or as the integers of
        an integer time column), positions for counts, numbers for units. ``end`` is None for a window still open when
        the data ended, ``start`` in the wide shape.
    change : str
        ``"insert"``, ``"update"`` or ``"retract"``.
    revision : int
        0 for the first result of this window, and one more for each correction.
    values : dict
        The results by column; every one is None in a retraction.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = sw.Workload(time="t", keys=["user"]).query("q", sw.tumbling(10), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"t": [1, 5], "user": ["ann", "ann"], "v": [1, 2]})
    >>> [result] = op.close()
    >>> result.key, result.start, result.end, result.values["total"]
    (('ann',), 0, 10, 3)
    """

    key: tuple[Any, ...]
    query: str | None
    start: int | float | None
    end: int | float | None
    change: str
    revision: int
    values: dict[str, Any]


@dataclass(frozen=True, eq=False)
class ResultSchema:
    """The columns of a workload's results and their types.

    Parameters
    ----------
    key_names, key_types
        The key columns.
    time_type
        The Arrow type of window bounds: timestamps, or int64 for an integer time column.
    unit
        What event times count inside, where bounds are timestamps: microseconds, unless the time column has another
        unit.
    queries
        For each query its name and, in order, its result columns.
    column_types
        The Arrow type of each result column.
    wide
        Whether a row has the values of all queries whose windows end together. It then has no query and no window, and
        all columns stand under one query without a name.
    """

    key_names: tuple[str, ...]
    key_types: tuple[pa.DataType, ...]
    time_type: pa.DataType
    queries: tuple[tuple[str, tuple[str, ...]], ...]
    column_types: dict[str, pa.DataType]
    unit: str = "microseconds"
    wide: bool = False

    def instants(self, times: np.ndarray) -> pa.Array:
        """Event times as window bounds; null where a window is still open.

        Timestamps have microseconds: nanoseconds are cut off, also before the epoch, as in Spark.
        """
        is_open = times == OPEN_END
        if pa.types.is_timestamp(self.time_type) and self.unit != "microseconds":
            times = to_micros(np.where(is_open, 0, times), self.unit)
        return pa.array(times, mask=is_open if is_open.any() else None).cast(self.time_type)

    def arrow(self) -> pa.Schema:
        """The schema of :meth:`Results.to_arrow`."""
        bounds = pa.struct([("start", self.time_type), ("end", self.time_type)])
        span = pa.struct([("start", pa.float64()), ("end", pa.float64())])
        keys = [pa.field(n, t) for n, t in zip(self.key_names, self.key_types, strict=True)]
        fixed = [("query", pa.string()), ("window", bounds), ("span", span)]
        fixed = [("end", self.time_type)] if self.wide else fixed
        fixed += [("change", pa.string()), ("revision", pa.int32())]
        return pa.schema([*keys, *fixed, *self.column_types.items()])

    def joined(self, other: ResultSchema) -> tuple[ResultSchema, np.ndarray]:
        """A schema for the results of both, and the position there of each query of the other one."""
        queries = list(dict.fromkeys([*self.queries, *other.queries]))
        places = np.array([queries.index(query) for query in other.queries], np.int64)
        types = {**other.column_types, **self.column_types}
        return replace(self, queries=tuple(queries), column_types=types), places


@dataclass(frozen=True, eq=False)
class Repeats:
    """Ticks in a row at which one and the same range of rows is reported; only the end of the window differs.

    Window ``i`` ends at the ticks ``tick[i] * size + offset``, ``(tick[i] + 1) * size + offset``, ..., of which there
    are ``count[i]``. Where there is a ``length``, its start follows its end.
    """

    tick: np.ndarray
    count: np.ndarray
    size: int | float
    offset: int = 0
    length: int | None = None

    def take(self, index: np.ndarray) -> Repeats:
        """The windows at ``index``."""
        return replace(self, tick=self.tick[index], count=self.count[index])

    def spread(self, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """Of all ticks, one window after the other, those from ``low`` to before ``high``: whose they are, and ends.

        >>> Repeats(np.array([3, 9]), np.array([2, 3]), 10).spread(1, 4)
        (array([0, 1, 1]), array([ 40,  90, 100]))
        """
        behind = np.cumsum(self.count)
        nth = np.arange(low, high)
        which = np.searchsorted(behind, nth, side="right")
        return which, (self.tick[which] + nth - (behind - self.count)[which]) * self.size + self.offset


@record
class Block:
    """Results of queries that compute the same aggregates, possibly under other names: one array per column.

    ``query`` holds positions in the schema's queries; ``values`` one column per aggregate, in the queries' order, or
    nothing for retractions. ``times`` are the event times of the first and last row of windows whose bounds are not
    event times.

    One entry may stand for several results, which are made by :meth:`pieces`: with ``repeats`` for those of many ticks,
    with ``window`` for those of several queries. There is a ``query`` for each then, and the window it is about.
    """

    keys: tuple[Column, ...]
    query: np.ndarray
    start: np.ndarray
    end: np.ndarray
    change: np.ndarray
    revision: np.ndarray
    values: tuple[Column, ...]
    times: tuple[np.ndarray, np.ndarray] | None = None
    repeats: Repeats | None = None
    window: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.query) if self.repeats is None else int(self.repeats.count.sum())

    def pieces(self) -> Iterator[Block]:
        """The results in blocks of bounded size, one result for each entry; each is made when it is asked for."""
        if self.repeats is None and self.window is None and len(self) <= MOST:
            yield self
            return
        for low in range(0, len(self), MOST):
            if self.repeats is None:
                index = slice(low, low + MOST) if self.window is None else self.window[low : low + MOST]
                yield self._take(index, self.query[low : low + MOST], self.end[index])
            else:
                index, end = self.repeats.spread(low, min(low + MOST, len(self)))
                piece = self._take(index, self.query[index], end)
                yield piece if self.repeats.length is None else replace(piece, start=end - self.repeats.length)

    def of_each_query(self) -> Block:
        """The same with an entry for each query of a window, of which each may have many ticks."""
        assert self.window is not None
        repeats = None if self.repeats is None else self.repeats.take(self.window)
        return replace(self._take(self.window, self.query, self.end[self.window]), repeats=repeats)

    def _take(self, index: np.ndarray | slice, query: np.ndarray, end: np.ndarray) -> Block:
        return Block(
            tuple(key.take(index) for key in self.keys),
            query,
            self.start[index],
            end,
            self.change[index],
            self.revision[index],
            tuple(value.take(index) for value in self.values),
            None if self.times is None else (self.times[0][index], self.times[1][index]),
        )


class Results:
    """The results of one call: iterable as :class:`Result`, convertible to Arrow and pandas.

    Operators make them. Where very many are due at once, each is made when it is read, so that iterating takes bounded
    memory; ``len`` is the number of results, ``+`` joins those of two calls.

    Parameters
    ----------
    schema : ResultSchema, optional
        The columns and types; None until rows have shown the types.
    blocks : sequence of Block
        The results, column by column.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), total=sw.sum("v")).operator()
    >>> _ = op.process_batch({"t": [1, 5, 12], "v": [1, 2, 3]})
    >>> results = op.close()
    >>> len(results)
    2
    >>> next(iter(results))
    Result(key=(), query='q', start=0, end=10, change='insert', revision=0, values={'total': 3})
    """

    __slots__ = ("_blocks", "schema")

    def __init__(self, schema: ResultSchema | None = None, blocks: Sequence[Block] = ()) -> None:
        self.schema = schema
        self._blocks = [b for b in blocks if len(b.query)]

    @property
    def blocks(self) -> Iterator[Block]:
        """The results in blocks of bounded size, each made when it is asked for."""
        return (piece for block in self._blocks for piece in block.pieces())

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __add__(self, other: Results) -> Results:
        if not self._blocks:
            return other
        if not other._blocks:
            return self
        schema, other_schema, blocks = self.schema, other.schema, other._blocks
        if schema is not None and other_schema is not None and schema is not other_schema:
            # Queries were added or removed between the two: positions are those of different workloads.
            schema, places = schema.joined(other_schema)
            blocks = [replace(b, query=places[b.query]) for b in blocks]
        return Results(schema or other_schema, [*self._blocks, *blocks])

    def __repr__(self) -> str:
        return f"Results({len(self)} rows)"

    def __iter__(self) -> Iterator[Result]:
        for block in self.blocks:
            assert self.schema is not None
            keys = list(zip(*(k.to_pylist() for k in block.keys), strict=True)) if block.keys else [()] * len(block)
            values = [self._python_values(block, place) for place in range(len(block.values))]
            bounds = zip(block.start.tolist(), block.end.tolist(), strict=True)
            marks = zip(block.change.tolist(), block.revision.tolist(), strict=True)
            rows = zip(keys, block.query.tolist(), bounds, marks, strict=True)
            for i, (key, query, (start, end), (change, revision)) in enumerate(rows):
                name, columns = self.schema.queries[query]
                row = [column[i] for column in values] if values else [None] * len(columns)
                shown_end = None if end == OPEN_END else end
                by_column = dict(zip(columns, row, strict=True))
                shown_name, shown_start = (None, None) if self.schema.wide else (name, start)
                yield Result(key, shown_name, shown_start, shown_end, CHANGES[change], revision, by_column)

    def _python_values(self, block: Block, place: int) -> list[Any]:
        """One column of values of a block."""
        column = block.values[place]
        if not len(beyond_python(column)):
            return column.to_pylist()
        assert self.schema is not None
        query, names = self.schema.queries[int(block.query[0])]
        try:
            return to_python(column.to_arrow(), f"{names[place]!r} of query {query!r}")
        except DataError as error:
            raise DataError(f"{error}; to_arrow() gives the results as they are") from None

    def to_arrow(self) -> pa.Table:
        """One row per key, query and window, with the columns that a DataFrame of the same workload has.

        Returns
        -------
        pyarrow.Table
            The key columns, ``query``, ``window``, ``span``, ``change``, ``revision``, and the columns of all queries,
            null where a query does not have them.

        Notes
        -----
        Runtime complexity: O(results), in array steps.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), total=sw.sum("v")).operator()
        >>> _ = op.process_batch({"t": [1, 5, 12], "v": [1, 2, 3]})
        >>> op.close().to_arrow().select(["window", "total"]).to_pylist()
        [{'window': {'start': 0, 'end': 10}, 'total': 3}, {'window': {'start': 10, 'end': 20}, 'total': 3}]
        """
        if self.schema is None:
            return pa.table({})
        schema = self._typed(self.schema)
        arrow = schema.arrow()
        return pa.concat_tables([self._table(b, schema, arrow) for b in self.blocks] or [arrow.empty_table()])

    def to_pandas(self) -> Any:
        """The table of :meth:`to_arrow` as a pandas DataFrame.

        Returns
        -------
        pandas.DataFrame
            One row per key, query and window.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), total=sw.sum("v")).operator()
        >>> _ = op.process_batch({"t": [1, 5, 12], "v": [1, 2, 3]})
        >>> op.close().to_pandas()[["query", "total"]]
          query  total
        0     q      3
        1     q      3
        """
        table = self.to_arrow()
        try:
            return table.to_pandas()
        except ModuleNotFoundError as e:
            if e.name != "pandas":
                raise
            raise MissingPackageError("pandas is not installed; pip install 'slicewise[pandas]'") from None

    def _typed(self, schema: ResultSchema) -> ResultSchema:
        """The schema with the types of columns that follow from their values alone."""
        unknown = [name for name, type_ in schema.column_types.items() if pa.types.is_null(type_)]
        if not unknown:
            return schema
        rows = list(self)
        inferred = {name: pa.array([row.values.get(name) for row in rows]).type for name in unknown}
        return replace(schema, column_types={**schema.column_types, **inferred})

    @staticmethod
    def _table(block: Block, schema: ResultSchema, arrow: pa.Schema) -> pa.Table:
        data: dict[str, pa.Array] = {n: k.to_arrow() for n, k in zip(schema.key_names, block.keys, strict=True)}
        data |= {"end": schema.instants(block.end)} if schema.wide else _windows(block, schema, arrow)
        data["change"] = pa.array(np.array(CHANGES, object)[block.change], pa.string())
        data["revision"] = pa.array(block.revision, pa.int32())
        for name, type_ in schema.column_types.items():
            data[name] = value_column(block, schema, name, type_)
        return pa.table(data, schema=arrow)


def _windows(block: Block, schema: ResultSchema, arrow: pa.Schema) -> dict[str, pa.Array]:
    """Query, window and span of each result."""
    names = np.array([name for name, _ in schema.queries], object)
    window = arrow.field("window").type
    first, last = (block.start, block.end) if block.times is None else block.times
    bounds = [schema.instants(b) for b in (first, last)]
    span = arrow.field("span").type
    data: dict[str, pa.Array] = {}
    data["query"] = pa.array(names[block.query], pa.string())
    data["window"] = pa.StructArray.from_arrays(bounds, fields=list(window))
    data["span"] = pa.nulls(len(block), span)
    if block.times is not None:
        ends = [pa.array(b, mask=b == OPEN_END).cast(pa.float64()) for b in (block.start, block.end)]
        data["span"] = pa.StructArray.from_arrays(ends, fields=list(span))
    return data


def value_column(block: Block, schema: ResultSchema, name: str, type_: pa.DataType) -> pa.Array:
    """One result column, which each query of the block may hold at another position, or not at all."""
    place_in = np.array([c.index(name) if block.values and name in c else -1 for _, c in schema.queries])
    places = np.unique(place_in[np.bincount(block.query, minlength=len(place_in)) > 0])  # far fewer than results
    if len(places) == 1:
        return pa.nulls(len(block), type_) if places[0] < 0 else block.values[places[0]].to_arrow().cast(type_)
    out = np.empty(len(block), object)
    for place in places[places >= 0]:
        here = place_in[block.query] == place
        out[here] = block.values[place].take(here).to_objects()
    return pa.array(out.tolist(), type_)
