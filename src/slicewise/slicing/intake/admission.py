"""Admission: what is done with rows before they are let in, stage by stage, and which of them are refused.

A workload has only the stages that it needs, known when the types of its columns are: rows of a workload without
filters, computed columns, keys and user code pass through none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.conditions.expression import derive
from slicewise.errors import ExpressionError, RefusedRowsError
from slicewise.records import record
from slicewise.slicing.engine import Engine
from slicewise.slicing.intake.gaps import GapError, TickGaps, has_ticks
from slicewise.slicing.intake.input import Batch, conform
from slicewise.slicing.intake.user_code import show_rows
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.punctuation import with_punctuation
from slicewise.slicing.time.slices import Slices
from slicewise.workload import Workload

__all__ = ["Admission", "IncomingRows", "Refusal"]


@record
class Refusal:
    """Rows that were not let in, as they came, and what is wrong with them."""

    error: RefusedRowsError
    rows: Batch


@dataclass(eq=False)
class IncomingRows:
    """Rows on their way in, without those that were refused so far.

    Attributes
    ----------
    columns
        Those that queries are about, in the types that are known for them.
    key
        The numbers of their keys.
    """

    batch: Batch
    columns: dict[str, Column]
    key: np.ndarray
    refusals: list[Refusal] = field(default_factory=list)

    def refuse(self, error: RefusedRowsError, rows: Sequence[int]) -> None:
        """Leave some rows out."""
        self.refusals.append(Refusal(error, self.batch.take(np.array(rows, np.int64))))
        kept = np.delete(np.arange(len(self.batch)), rows)
        self.batch, self.key = self.batch.pick(kept), self.key[kept]
        self.columns = {name: column.take(kept) for name, column in self.columns.items()}


class Admission:
    """The stages of one workload.

    Parameters
    ----------
    judges_gaps
        Whether rows after too many ticks are refused.
    """

    def __init__(
        self, engine: Engine, workload: Workload, types: Mapping[str, pa.DataType], keys: KeyTable, *, judges_gaps: bool
    ) -> None:
        self._engine, self._workload, self._types = engine, workload, types
        #: The numbers of keys.
        self.keys = keys
        self._gaps: TickGaps | None = None
        self._judges_gaps = judges_gaps
        plain = workload.inputs == workload.columns and not workload.filters
        stages: list[tuple[bool, Callable[[IncomingRows], None]]] = [
            (not plain, self._derive),
            (bool(workload.shown_punctuation), self._mark_punctuation),
            (engine.shows_rows, self._show),
            (bool(workload.keys), self._number_keys),
            (judges_gaps and has_ticks(engine), self._judge_gaps),
        ]
        self._stages = [stage for needed, stage in stages if needed]

    def admit(self, batch: Batch) -> IncomingRows:
        """The rows that may come in, numbered by key, and the refusal of the others."""
        if batch.selected is not None:
            batch = batch.pick(np.flatnonzero(batch.selected))
        types = self._types
        columns = {n: c if c.type == types[n] else conform(c, types[n], n) for n, c in batch.columns.items()}
        incoming = IncomingRows(batch, columns, np.zeros(len(batch.times), np.int64))
        for stage in self._stages:
            stage(incoming)
        return incoming

    def forget_rows(self) -> None:
        """Some of the rows that were let in have been left out since."""
        self._gaps = None

    def _derive(self, incoming: IncomingRows) -> None:
        """The columns that queries are about, without the rows that one of them cannot be computed for."""
        names, columns, batch = self._workload.columns, incoming.columns, incoming.batch
        derived, failures = derive(names, columns, len(batch))
        known = {name: derived.get(name, columns.get(name)) for name in names}
        incoming.columns = {name: column for name, column in known.items() if column is not None}
        failures = {**failures, **batch.failures}
        if failures:
            rows = sorted(failures)
            place = batch.label(rows[0], self._workload)
            incoming.refuse(ExpressionError(*failures[rows[0]], rows, place, len(rows) - 1), rows)

    def _mark_punctuation(self, incoming: IncomingRows) -> None:
        incoming.columns = with_punctuation(incoming.columns, self._workload)

    def _show(self, incoming: IncomingRows) -> None:
        """Show rows to the user's functions, and leave out those on which one of them fails."""
        batch = incoming.batch
        shown = show_rows(self._engine.plan, incoming.columns, batch.times)
        incoming.columns = shown.columns
        if shown.failures:
            error = shown.error(lambda row: batch.label(row, self._workload))
            incoming.refuse(error, error.rows)

    def _number_keys(self, incoming: IncomingRows) -> None:
        incoming.key = self.keys.encode(incoming.batch.keys, len(incoming.batch))

    def _judge_gaps(self, incoming: IncomingRows) -> None:
        """Refuse rows after so much time that too many ticks would be due."""
        if not len(incoming.batch):
            return
        error = self._tick_gaps().judge(incoming.batch, incoming.key, incoming.columns, self._workload)
        if error is not None:
            incoming.refuse(error, error.rows)

    def judge_slices(self, slices: Slices) -> GapError | None:
        """What is wrong with slices that were cut elsewhere: they come after too many empty windows."""
        wanted = self._judges_gaps and bool(self._engine.plan.filled) and len(slices) > 0
        return self._tick_gaps().judge_slices(slices, self.keys) if wanted else None

    def _tick_gaps(self) -> TickGaps:
        if self._gaps is None:
            self._gaps = TickGaps(self._engine)
        return self._gaps
