"""Result frame: results of any kind in columns, as pictures need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slicewise.errors import DataError, did_you_mean
from slicewise.results import RESERVED

__all__ = ["Key", "ResultFrame", "key_name", "plot_times"]

#: The values of the key columns; () where there are none.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class ResultFrame:
    """Results in columns: ``start`` and ``end`` as matplotlib numbers, NaN for the end of a window that stayed open."""

    keys: list[Key]
    query: list[str]
    start: np.ndarray
    end: np.ndarray
    window: list[tuple[Any, ...]]
    change: list[str]
    revision: list[int]
    values: dict[str, list[Any]]
    dated: bool
    last_known: float

    @classmethod
    def of(cls, results: Any) -> ResultFrame:
        """The columns of a :class:`slicewise.Results`, an Arrow table, or a DataFrame of pandas or Spark."""
        table = _table(results)
        missing = [name for name in RESERVED if name not in table.column_names]
        if missing and table.num_columns:
            raise DataError(
                f"these are not results of a workload: there is no column {missing[0]!r}; pass what came out"
            )
        if not table.num_columns or not table.num_rows:
            raise DataError("there are no results to draw; was the watermark advanced, or the operator closed?")
        table = table.filter(pc.is_valid(table["query"]))  # late rows that were collected have none
        first = table.column_names.index("query")
        names = [n for n in table.column_names[first:] if n not in RESERVED and n != "late"]
        start, end = (plot_times(_field(table["window"], bound)) for bound in ("start", "end"))
        keys = [table[n].to_pylist() for n in table.column_names[:first]]
        return cls(
            keys=list(zip(*keys, strict=True)) if keys else [()] * table.num_rows,
            query=table["query"].to_pylist(),
            start=start,
            end=end,
            window=_identities(table, start, end),
            change=table["change"].to_pylist(),
            revision=table["revision"].to_pylist(),
            values={n: table[n].to_pylist() for n in names},
            dated=pa.types.is_timestamp(_field(table["window"], "start").type),
            last_known=float(np.nanmax(np.concatenate([start, end]))) if len(start) else 0.0,
        )

    def query_names(self, names: Sequence[str] | None) -> list[str]:
        """The names after a check that there are such queries; without names all queries, in order of appearance."""
        known = list(dict.fromkeys(self.query))
        if isinstance(names, str):
            raise DataError(f"`queries` must be a list of names; got the string {names!r}; write [{names!r}]")
        for name in names or ():
            if name not in known:
                raise DataError(f"there is no query {name!r} in the results; {did_you_mean(str(name), known)}")
        return known if names is None else list(names)

    def history(self, query: str) -> dict[tuple[Key, tuple[Any, ...]], list[int]]:
        """The rows of each key and window of a query, ordered by revision."""
        rows: dict[tuple[Key, tuple[Any, ...]], list[int]] = {}
        for i, name in enumerate(self.query):
            if name == query:
                rows.setdefault((self.keys[i], self.window[i]), []).append(i)
        return {window: sorted(of_window, key=lambda i: self.revision[i]) for window, of_window in rows.items()}

    def latest(self, query: str) -> dict[Key, list[int]]:
        """For each key, the rows of a query that hold in the end, ordered by the ends of their windows."""
        last = [rows[-1] for rows in self.history(query).values()]
        valid = [i for i in last if self.change[i] != "retract"]
        by_key: dict[Key, list[int]] = {}
        for i in sorted(valid, key=lambda i: (self.shown_end(i), self.start[i])):
            by_key.setdefault(self.keys[i], []).append(i)
        return by_key

    def shown_end(self, row: int) -> float:
        """The end of a window; the last known time for a window that stayed open."""
        return self.last_known if np.isnan(self.end[row]) else float(self.end[row])


def key_name(key: Key) -> str:
    """The key as pictures and messages show it."""
    return ", ".join(map(str, key))


def plot_times(times: pa.Array) -> np.ndarray:
    """Times as matplotlib counts them: days since the epoch, or the integers of an integer time column."""
    if pa.types.is_timestamp(times.type):
        micros = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64())
        days: np.ndarray = micros.to_numpy(zero_copy_only=False).astype(np.float64) / 86_400e6
        return days
    numbers: np.ndarray = times.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _table(results: Any) -> pa.Table:
    for convert in ("to_arrow", "toArrow"):
        if hasattr(results, convert):
            return getattr(results, convert)()
    if isinstance(results, pa.Table):
        return results
    frame = results.toPandas() if hasattr(results, "toPandas") else results
    if not hasattr(frame, "columns") or not hasattr(frame, "to_dict"):
        raise DataError(
            f"these are not results of a workload; got {type(results).__name__}; pass Results, an Arrow table, or a "
            "DataFrame of pandas or Spark"
        )
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype == object:
            # Arrow takes Spark's rows for tuples, and pandas writes missing values as NaN.
            cells = [v.asDict() if hasattr(v, "asDict") else v for v in values]
            columns[str(name)] = pa.array([None if isinstance(v, float) and v != v else v for v in cells])
        else:
            columns[str(name)] = pa.array(values, from_pandas=True)
    return pa.table(columns)


def _field(column: pa.ChunkedArray, name: str) -> pa.Array:
    if not pa.types.is_struct(column.type):
        raise DataError(f"the column `window` must be a struct of start and end; got {column.type}")
    return pc.struct_field(column.combine_chunks(), name)


def _identities(table: pa.Table, start: np.ndarray, end: np.ndarray) -> list[tuple[Any, ...]]:
    """What identifies each window: its span if it has one, because corrections may change the times of such windows."""
    spans = table["span"].to_pylist()
    bounds = zip(start.tolist(), (None if e != e else e for e in end.tolist()), spans, strict=True)
    return [(s, e) if span is None else ("span", span["start"], span["end"]) for s, e, span in bounds]
