"""User code that is shown rows: asked once, when they come. What it fails on is found, named and left out.

What it said is kept beside the columns of the user, under names that no column of theirs can have: the partials of an
aggregate's ``lift``, and which rows meet the condition of a window. It is not part of the state that is saved: there,
the rows are, and it is asked again when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import put_parts
from slicewise.aggregates.guarded import GuardedMonoid, search_by_halves, shown_error
from slicewise.columns import Column
from slicewise.errors import (
    DataError,
    FailedRowsError,
    FailedWindowsError,
    RefusedRowsError,
    StateError,
    UserCodeError,
)
from slicewise.labels import RowLabel
from slicewise.plan.plan import Plan
from slicewise.results import ResultSchema
from slicewise.slicing.intake.python_dates import rows_beyond_python
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.discretisers import condition_column
from slicewise.slicing.rows.punctuation import data_among
from slicewise.slicing.time.tuples import Tuples
from slicewise.windows import Window

__all__ = [
    "ShownRows",
    "joined_failures",
    "show_rows",
    "shows_rows",
    "take_window_failures",
    "with_key",
    "with_lifted",
]


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Rows that user code was shown.

    Attributes
    ----------
    columns
        Those of the rows, and what user code made of them.
    failures
        For each row that it failed on, whose code it was and what it did.
    """

    columns: dict[str, Column]
    failures: dict[int, tuple[str, str]]

    def kept(self, rows: int) -> np.ndarray:
        """The places of the rows that nothing is wrong with, of so many."""
        return np.delete(np.arange(rows), list(self.failures))

    def error(self, label: Callable[[int], RowLabel], *, left_out: bool = True) -> UserCodeError:
        """The error that names the first of the rows on which user code failed."""
        rows = sorted(self.failures)
        code, failure = self.failures[rows[0]]
        return UserCodeError(code, failure, rows, label(rows[0]), len(rows) - 1, left_out=left_out)


def shows_rows(plan: Plan) -> bool:
    """Whether :func:`show_rows` has anything to do."""
    if plan.nested_dates or any(isinstance(monoid, GuardedMonoid) for monoid in plan.monoids):
        return True
    return any(window.shows_rows for window in plan.context)


def show_rows(plan: Plan, columns: Mapping[str, Column], times: np.ndarray) -> ShownRows:
    """Show rows to the functions of the user that say something of single rows; punctuation only to who sees it."""
    known = dict(columns)
    data = data_among(columns)
    failures = rows_beyond_python(plan, columns, times)
    if data is not None:
        failures = {row: failures[row] for row in data.tolist() if row in failures}
    for monoid in plan.monoids:
        if isinstance(monoid, GuardedMonoid):
            known |= _lifted(monoid, plan, columns, times, failures)
    for window in plan.context:
        if window.shows_rows:
            shown = np.arange(len(times)) if data is None or window.sees_punctuation else data
            known[condition_column(window)] = _marked(window, columns, shown, len(times), failures)
    return ShownRows(known, failures)


def _lifted(
    monoid: GuardedMonoid,
    plan: Plan,
    columns: Mapping[str, Column],
    times: np.ndarray,
    failures: dict[int, tuple[str, str]],
) -> dict[str, Column]:
    data = data_among(columns)
    if data is None:
        parts, raised = monoid.lift_each(columns, times)
    else:
        some = {name: columns[name].take(data) for name in monoid.aggregate.columns}
        lifted, raised = monoid.lift_each(some, times[data])
        parts, raised = (
            put_parts(monoid.identities(len(times)), data, lifted),
            {int(data[row]): error for row, error in raised.items()},
        )
    if raised:
        query = next(q.name for q in plan.workload.queries if monoid.aggregate in q.aggregates.values())
        code = f"query {query!r}: {monoid.aggregate!r}"
        for row, error in raised.items():
            failures.setdefault(row, (code, f"`lift` raised {shown_error(error)}"))
    return {name: Column(part, pa.null()) for name, part in zip(monoid.reads, parts, strict=True)}


def _marked(
    window: Window,
    columns: Mapping[str, Column],
    shown: np.ndarray,
    rows: int,
    failures: dict[int, tuple[str, str]],
) -> Column:
    """Which of so many rows meet the condition of a window that only some are shown to."""

    def meets(index: np.ndarray) -> np.ndarray:
        some = columns
        if len(index) < rows:
            some = {name: columns[name].take(index) for name in window.reads}
        return window.codes(some, len(index))

    done, raised = search_by_halves(meets, shown, DataError)
    mask = np.zeros(rows, np.int64)
    for index, answer in done:
        mask[index] = answer
    for row, error in raised.items():
        failures.setdefault(row, (repr(window), f"raised {shown_error(error)}"))
    return Column(mask, window.code_type)


def with_lifted(rows: Tuples, plan: Plan) -> Tuples:
    """Stored rows with what ``lift`` makes of them, if they do not have it.

    Raises
    ------
    StateError
        If ``lift`` fails on one of them, as it did not when the row came.
    """
    columns = dict(rows.columns)
    for monoid in plan.monoids:
        if not isinstance(monoid, GuardedMonoid) or monoid.reads[0] in columns:
            continue
        failures: dict[int, tuple[str, str]] = {}
        columns |= _lifted(monoid, plan, rows.columns, rows.time, failures)
        if failures:
            row, (code, failure) = min(failures.items())
            place = RowLabel({}, int(rows.time[row]), plan.schema.time_type, plan.schema.unit)
            raise StateError(
                f"{code} at {place}: {failure}; the state holds this record and cannot go on without it: use the code "
                "that took it"
            )
    return rows if len(columns) == len(rows.columns) else replace(rows, columns=columns)


def with_key(error: RefusedRowsError, key_of: np.ndarray, keys: KeyTable, schema: ResultSchema) -> RefusedRowsError:
    """The same error with the key of the row that it names; ``key_of`` has the numbers of keys at its places."""
    if not isinstance(error, FailedRowsError) or error.place is None:
        return error
    key = dict(zip(schema.key_names, keys.key(int(key_of[error.rows[0]])), strict=True))
    place = replace(error.place, key=key, time_type=schema.time_type, unit=schema.unit)
    return error.placed(place)


def take_window_failures(plan: Plan) -> list[FailedWindowsError]:
    """The errors of the windows that have no value since this was last asked, one for each kind of error."""
    if not plan.failures:
        return []
    failures = list(plan.failures)
    plan.failures.clear()
    return joined_failures(failures)


def joined_failures(failures: Sequence[FailedWindowsError]) -> list[FailedWindowsError]:
    """One error for each kind, which names the first window and counts the others."""
    kinds = {type(error): error for error in reversed(failures)}
    counts = {kind: sum(1 + e.others for e in failures if type(e) is kind) for kind in kinds}
    return [kind(first.reason, first.label, counts[kind] - 1) for kind, first in kinds.items()]
