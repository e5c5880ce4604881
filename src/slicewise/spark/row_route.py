"""The route of rows: the engine takes the rows themselves, for queries that the JVM cannot slice.

A partition holds all rows of its keys, sorted by key, event time and, where that is equal, by their values. Rows of
whole keys are taken together, many keys in one call; a key with more rows than that is taken piece by piece, the
watermark following its rows, so that memory follows the state of the workload and not the number of rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slicewise.errors import FailedRowsError, FailedWindowsError, OverflowInWindowError
from slicewise.labels import RowLabel, WindowLabel
from slicewise.plan.panels import Form
from slicewise.plan.plan import SORTED, plan_for
from slicewise.results import Results
from slicewise.slicing import EVENT_TIME, GapError, Operator
from slicewise.spark.arrow_io import result_batches, tables_of
from slicewise.spark.computed_columns import with_computed
from slicewise.spark.key_numbers import KeyNumbers, normal_form, number_keys
from slicewise.spark.known_frame import named
from slicewise.spark.output import Output
from slicewise.spark.row_order import in_order
from slicewise.spark.source import TIME, Source, key_name, value_name
from slicewise.spark.types import read
from slicewise.workload import Workload

__all__ = ["RowRunner", "run_rows"]

_Label = TypeVar("_Label", WindowLabel, RowLabel)

#: How many rows are taken at once.
CHUNK = 200_000
#: The operator's one key column: the number of the user's key.
KEY = "\0key"


def run_rows(source: Source, store: str | None = None, form: Form | None = None) -> DataFrame:
    """The results of queries that need the rows themselves: all rows of a key, sorted, in one partition."""
    workload = dataclasses.replace(source.workload, watermark=0, lateness=0)
    plan = plan_for(source.workload, source.types, time_type=source.time_type, form=form)
    output = Output(plan.schema, spans=bool(plan.context))
    rows = with_computed(source, source.projected().where(F.col(TIME).isNotNull()), source.ties)
    rows = rows.repartition(*source.key_names) if source.key_names else rows.repartition(1)
    rows = rows.sortWithinPartitions(*source.key_names, *in_order(source))
    names = [TIME, *source.key_names, *(value_name(source.columns.index(name)) for name in workload.inputs)]
    rows = named(rows.select(*names), names)
    types = {**{c: source.types[c] for c in workload.inputs}, KEY: pa.int64()}
    runner = RowRunner(workload, types, output, store, form)
    return output.to_user(rows.mapInArrow(runner.__call__, output.spark_schema()))


@dataclass(frozen=True)
class RowRunner:
    """The function that Spark calls for each partition of sorted rows.

    ``workload`` is the user's, and ``types`` are those of its columns; its operators have a number instead of the keys.
    Event times come as integers: of the user's time column, or microseconds.
    """

    workload: Workload
    types: Mapping[str, pa.DataType]
    output: Output
    store: str | None = None
    form: Form | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        partition = _Partition(self)
        try:
            for table in tables_of(batches, CHUNK):
                yield from partition.take(table)
            yield from partition.finish()
        except OverflowInWindowError as error:
            raise OverflowInWindowError(error.reason, partition.label(error.label)) from None
        except GapError as error:
            raise error.of_batch(partition.label(error.label)) from None
        except FailedWindowsError as error:
            raise type(error)(error.reason, partition.label(error.label), stopped=True) from None
        except FailedRowsError as error:
            raise error.placed(partition.label(error.place), left_out=False) from None

    def operator(self, keys: list[pa.Array]) -> Operator:
        """A fresh operator of the workload, for the keys in these columns, known by their places."""
        names, values = self.workload.keys, KeyNumbers(keys).values if self._names_keys else []
        queries = tuple(
            dataclasses.replace(query, window=query.window.by_number(KEY, names, values))
            for query in self.workload.queries
        )
        workload = dataclasses.replace(self.workload, time=EVENT_TIME, keys=(KEY,), queries=queries)
        return Operator(workload, store=self.store, types=self.types, ties=SORTED, form=self.form)

    @property
    def _names_keys(self) -> bool:
        """Whether some windows depend on what the key is."""
        listings = (query.window.listing for query in self.workload.queries)
        return any(listing is not None and listing.keys for listing in listings)


class _Partition:
    """A partition while its rows are read: the key that is not finished yet, and its operator."""

    def __init__(self, runner: RowRunner) -> None:
        self.runner = runner
        self.operator: Operator | None = None
        self.keys: list[pa.Array] = []
        self.columns = runner.workload.inputs

    def take(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        """Take rows; all keys but the last are known to be complete."""
        keys = [table.column(key_name(i)).combine_chunks() for i in range(len(self.runner.output.schema.key_types))]
        numbers, firsts = number_keys(keys, table.num_rows)
        changes = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1
        at = 0
        if self.operator is not None and not self._continues(keys):
            yield from self.finish()
        if self.operator is not None:
            at = int(changes[0]) if len(changes) else table.num_rows
            yield from self._feed(table.slice(0, at), np.zeros(at, np.int64))
            if at == table.num_rows:
                return
            yield from self.finish()
        last = int(changes[-1]) if len(changes) else 0
        if at < last:
            self._begin([k.take(pa.array(firsts)) for k in keys])
            yield from self._feed(table.slice(at, last - at), numbers[at:last], advance=False)
            yield from self.finish()
        rest = max(at, last)
        self._begin([k.slice(rest, 1) for k in keys])
        yield from self._feed(table.slice(rest), np.zeros(table.num_rows - rest, np.int64))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """No more rows come for these keys."""
        if self.operator is not None:
            yield from self._batches(self.operator.close())
            self.operator = None

    def label(self, internal: _Label) -> _Label:
        """The label of a window or a row, in the user's keys and times."""
        schema = self.runner.output.schema
        number = internal.key[KEY]
        key = {name: column[number].as_py() for name, column in zip(schema.key_names, self.keys, strict=True)}
        time_type = None if internal.time_type is None else schema.time_type
        return dataclasses.replace(internal, key=key, time_type=time_type)

    def _begin(self, keys: list[pa.Array]) -> None:
        self.keys = [normal_form(key) for key in keys]
        self.operator = self.runner.operator(self.keys)

    def _continues(self, keys: list[pa.Array]) -> bool:
        """Whether the first row belongs to the key that is not finished."""
        columns = zip(self.keys, keys, strict=True)
        both = [pa.concat_arrays([unfinished.slice(0, 1), key.slice(0, 1)]) for unfinished, key in columns]
        numbers, _ = number_keys(both, 2)
        return bool(numbers[0] == numbers[1])

    def _feed(self, table: pa.Table, numbers: np.ndarray, *, advance: bool = True) -> Iterator[pa.RecordBatch]:
        assert self.operator is not None
        times, schema = table.column(TIME).to_numpy(), self.runner.output.schema
        stamped = self.runner.workload.unit is None and pa.types.is_timestamp(schema.time_type)
        rows: dict[str, Any] = {EVENT_TIME: pa.array(times).cast(schema.time_type) if stamped else times, KEY: numbers}
        columns = {name: table.column(value_name(i)).combine_chunks() for i, name in enumerate(self.columns)}
        rows |= {name: read(array, self.runner.types[name]) for name, array in columns.items()}
        yield from self._batches(self.operator.process_batch(rows))
        if advance:
            # Rows of one key come in order: none that comes now is older than the last.
            yield from self._batches(self.operator.advance(int(times[-1])))

    def _batches(self, results: Results) -> Iterator[pa.RecordBatch]:
        for block in results.blocks:
            yield from result_batches(block, self.keys, self.runner.output)
