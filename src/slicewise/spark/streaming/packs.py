"""Packs: what a partition of a micro-batch sends to a shard, in one row.

Rows are sliced where they are read, so that a key with half of all rows costs no more than others, and a shard gets few
and wide rows. Every partition sends a pack to every shard, even one without rows in it: with the latest event time of
all partitions, all shards agree on the watermark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import types as T

from slicewise import plain
from slicewise.aggregates.base import parts_from_data, parts_to_data
from slicewise.amounts import Amount, Measure, format_instant, from_micros
from slicewise.bad_rows import AHEAD, EXPRESSION, NO_TIME, USER_CODE
from slicewise.columns import Column
from slicewise.conditions.expression import derive, selection
from slicewise.errors import DataError
from slicewise.plan.plan import Plan
from slicewise.slicing import Edges, PeriodicWindows, Slices, cut_stream, show_rows
from slicewise.spark.arrow_io import from_ipc, tables_of, to_ipc
from slicewise.spark.key_numbers import number_keys
from slicewise.spark.source import TIME, key_name, value_name
from slicewise.spark.types import arrow_type, read

__all__ = ["NOW", "PACK", "REASON", "ROW", "SHARD", "Packer", "read_rows", "read_slices"]

#: The columns of rows on their way to a pack: the shard of the row's key, the row as it came, and the micro-batch's own
#: time in microseconds, where rows may be too far ahead of it.
SHARD, ROW, NOW = "shard", "row", "now"
#: Why a row is bad, where bad rows are sent back.
REASON = "reason"
#: A pack. ``latest`` is the latest event time of the whole partition, ``rows`` how many rows are in this pack.
PACK = T.StructType(
    [
        T.StructField("shard", T.IntegerType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("latest", T.LongType()),
        T.StructField("rows", T.LongType()),
        T.StructField("bad", T.LongType()),
        T.StructField("content", T.BinaryType()),
    ]
)
_ARROW = pa.schema([(f.name, arrow_type(f.dataType, f.name)) for f in PACK])
#: How many rows are sliced at once.
CHUNK = 1_000_000


@dataclass
class _Load:
    """What one shard gets."""

    rows: int = 0
    bad: Counter[str] = field(default_factory=Counter)
    sliced: list[dict[str, Any]] = field(default_factory=list)
    tables: list[pa.Table] = field(default_factory=list)
    returned: list[pa.Table] = field(default_factory=list)

    def content(self, trust: Collection[type]) -> bytes:
        tables = {"rows": _joined_ipc(self.tables), "returned": _joined_ipc(self.returned)}
        return plain.dump({"slices": self.sliced, "bad": dict(self.bad), **tables}, trust)

    def refuse(self, rows: pa.Table, reason: str) -> None:
        """Count bad rows, and send them back if they came whole."""
        self.bad[reason] += rows.num_rows
        if ROW in rows.column_names:
            self.returned.append(rows.append_column(REASON, pa.array([reason] * rows.num_rows, pa.string())))


@dataclass(frozen=True)
class Packer:
    """The function that Spark calls for each partition of a micro-batch.

    Attributes
    ----------
    types
        The types of the columns that are read, and of those computed from them.
    trust
        The classes of objects that partials may hold.
    shards
        The ids of the shards; the input's ``shard`` column holds positions among them.
    slices
        Rows are sliced here; otherwise they are sent as they are, because the shard needs each of them.
    keys
        How many key columns there are.
    bad
        ``"fail"`` stops at a bad row; otherwise such rows are counted, and sent back where late rows are collected.
    ahead
        How far ahead of the micro-batch's own time a row may be, in the unit of event time; None for any distance.
    unit
        What event times count.
    """

    make_plan: Callable[[], Plan]
    types: Mapping[str, pa.DataType]
    trust: frozenset[type]
    shards: tuple[int, ...]
    slices: bool
    keys: int
    bad: str | None
    ahead: int | None = None
    unit: str = "microseconds"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loads = [_Load() for _ in self.shards]
        latest: int | None = None
        plan = self.make_plan()
        edges = Edges(PeriodicWindows(plan.windows, plan.workload.keys), plan.gaps)
        some = False
        for table in tables_of(batches, CHUNK):
            some = True
            table, passing = self._meant(table, plan, loads)
            table = self._without_bad(table, loads)
            table, unseen = self._data(table, plan, loads)
            times = table.column(TIME).to_numpy()
            seen = [latest, *(int(t.max()) for t in (times, passing, unseen) if len(t))]
            latest = max((at for at in seen if at is not None), default=None)
            if not table.num_rows:
                continue
            (self._slice if self.slices else self._pick)(table, times, plan, edges, loads)
        if some:
            yield self._packed(loads, latest)

    def _packed(self, loads: list[_Load], latest: int | None) -> pa.RecordBatch:
        context = TaskContext.get()
        partition = context.partitionId() if context is not None else 0
        n = len(loads)
        columns = [
            pa.array(self.shards, pa.int32()),
            pa.array([partition] * n, pa.int32()),
            pa.array([latest] * n, pa.int64()),
            pa.array([load.rows for load in loads], pa.int64()),
            pa.array([load.bad.total() for load in loads], pa.int64()),
            pa.array([load.content(self.trust) for load in loads], pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_ARROW)

    def _inputs(self, table: pa.Table, plan: Plan) -> dict[str, Column]:
        names = enumerate(plan.workload.inputs)
        return {name: read(table.column(value_name(i)), self.types[name]) for i, name in names}

    def _meant(self, table: pa.Table, plan: Plan, loads: list[_Load]) -> tuple[pa.Table, np.ndarray]:
        """The rows that the workload is about, and the event times of others, which move the watermark."""
        where = plan.workload.where
        if where is None:
            return table, np.empty(0, np.int64)
        selected, failures = selection(where, self._inputs(table, plan), table.num_rows)
        times = table.filter(pa.array(~selected)).column(TIME).drop_null().to_numpy()
        if self.ahead is not None and len(times):
            times = times[times <= from_micros(table.column(NOW)[0].as_py(), self.unit) + self.ahead]
        if failures:
            table, selected = self._without_failures(table, failures, loads), np.delete(selected, list(failures))
        return table.filter(pa.array(selected)), times

    def _data(self, table: pa.Table, plan: Plan, loads: list[_Load]) -> tuple[pa.Table, np.ndarray]:
        """The rows without punctuation that no window sees, and the event times of that."""
        unseen = plan.workload.unseen_punctuation
        if unseen is None:
            return table, np.empty(0, np.int64)
        selected, failures = selection(None, self._inputs(table, plan), table.num_rows, unless=unseen)
        times = table.filter(pa.array(~selected)).column(TIME).to_numpy()
        if failures:
            table, selected = self._without_failures(table, failures, loads), np.delete(selected, list(failures))
        return table.filter(pa.array(selected)), times

    def _without_failures(
        self, table: pa.Table, failures: Mapping[int, tuple[str, str]], loads: list[_Load], reason: str = EXPRESSION
    ) -> pa.Table:
        """The rows on which nothing that the user described has failed."""
        wrong = np.zeros(table.num_rows, bool)
        wrong[list(failures)] = True
        code, failure = failures[int(wrong.argmax())]
        return self._without(table, wrong, reason, f"cannot be counted ({code}: {failure})", loads)

    def _without_bad(self, table: pa.Table, loads: list[_Load]) -> pa.Table:
        """The rows that have an event time that may be; the others are counted, or shown, or sent back."""
        times = table.column(TIME)
        if times.null_count:
            what = "has no event time that a window could hold"
            table = self._without(table, times.is_null().to_numpy(), NO_TIME, what, loads)
        if self.ahead is None or not table.num_rows:
            return table
        now = table.column(NOW)[0].as_py()
        far = table.column(TIME).to_numpy() > from_micros(now, self.unit) + self.ahead
        allowed = Amount(self.ahead, Measure("time", unit=self.unit))
        what = f"is further ahead of the clock, which shows {format_instant(now)}, than ahead={str(allowed)!r} allows"
        table = self._without(table, far, AHEAD, what, loads)
        return table.drop_columns([NOW])

    def _without(self, table: pa.Table, wrong: np.ndarray, reason: str, what: str, loads: list[_Load]) -> pa.Table:
        """The rows that are not bad for this reason."""
        if not wrong.any():
            return table
        rows = table.filter(pa.array(wrong))
        if self.bad == "fail":
            raise DataError(f"a row {what}, and bad='fail': {rows.column(ROW)[0].as_py()}")
        shard = rows.column(SHARD).to_numpy()
        for at in np.unique(shard).tolist():
            loads[at].refuse(rows.filter(pa.array(shard == at)), reason)
        return table.filter(pa.array(~wrong))

    def _slice(self, table: pa.Table, times: np.ndarray, plan: Plan, edges: Edges, loads: list[_Load]) -> None:
        columns = self._inputs(table, plan)
        derived, failures = derive(plan.workload.columns, columns, len(times))
        columns |= derived
        if failures:
            kept = np.delete(np.arange(len(times)), list(failures))
            table = self._without_failures(table, failures, loads)
            times, columns = times[kept], {name: column.take(kept) for name, column in columns.items()}
        shown = show_rows(plan, {name: columns[name] for name in plan.workload.columns}, times)
        columns = shown.columns
        if shown.failures:
            kept = shown.kept(len(times))
            table = self._without_failures(table, shown.failures, loads, USER_CODE)
            times, columns = times[kept], {name: column.take(kept) for name, column in columns.items()}
        if not len(times):
            return
        keys = [table.column(key_name(i)).combine_chunks() for i in range(self.keys)]
        numbers, firsts = number_keys(keys, len(times))
        shard_of = table.column(SHARD).to_numpy()[firsts]
        for piece in cut_stream(numbers, times, columns, edges, plan.monoids, one_key=not self.keys):
            home = shard_of[piece.key]
            for at in np.unique(home).tolist():
                slices = piece.take(np.flatnonzero(home == at)) if len(loads) > 1 else piece
                used, local = np.unique(slices.key, return_inverse=True)
                shard_keys = [key.take(pa.array(firsts[used])) for key in keys]
                load = loads[at]
                load.rows += int(slices.rows.sum())
                load.sliced.append(_slices_to_data(slices, local, shard_keys, len(used)))

    def _pick(self, table: pa.Table, times: np.ndarray, plan: Plan, edges: Edges, loads: list[_Load]) -> None:
        shard = table.column(SHARD).to_numpy()
        kept = table.drop_columns([SHARD])
        for at in np.unique(shard).tolist():
            rows = kept.filter(pa.array(shard == at)) if len(loads) > 1 else kept
            loads[at].rows += rows.num_rows
            loads[at].tables.append(rows)


_COLUMNS = [f.name for f in fields(Slices) if f.name not in ("parts", "key", "unreported", "closed_gaps", "marks")]


def _slices_to_data(slices: Slices, key: np.ndarray, keys: Sequence[pa.Array], count: int) -> dict[str, Any]:
    data: dict[str, Any] = {name: getattr(slices, name) for name in _COLUMNS}
    names = [key_name(i) for i in range(len(keys))]
    table = pa.Table.from_arrays(list(keys), names) if keys else None
    return data | {
        "key": key,
        "keys": to_ipc(table) if keys else b"",
        "count": count,
        "parts": [parts_to_data(p) for p in slices.parts],
    }


def read_slices(data: dict[str, Any]) -> tuple[list[pa.Array], int, Slices]:
    """The keys of a pack, how many there are, and its slices, whose keys are positions among those."""
    table = from_ipc(data["keys"]) if data["keys"] else None
    keys = [c.combine_chunks() for c in table.columns] if table is not None else []
    nothing = np.zeros(len(data["key"]), np.int64)
    parts = tuple(map(parts_from_data, data["parts"]))
    slices = Slices(data["key"], data["first"], data["last"], data["rows"], data["rows"], nothing, parts)
    return keys, data["count"], slices


def read_rows(content: bytes, trust: Collection[type]) -> dict[str, Any]:
    """The content of a pack."""
    loaded: dict[str, Any] = plain.load(content, trust)
    return loaded


def _joined_ipc(tables: list[pa.Table]) -> bytes:
    return to_ipc(pa.concat_tables(tables)) if tables else b""
