"""Watermarks as users give them: with a call, or in the stream, in a column that is null on rows of data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.amounts import INTEGER, to_instant
from slicewise.columns import Column
from slicewise.errors import DataError, did_you_mean
from slicewise.slicing.intake.input import as_mapping, column_in, picked, value_in, watermark_limit
from slicewise.workload import Workload

__all__ = ["check_not_back", "divided", "to_watermark", "watermark_in"]


def to_watermark(given: Any, workload: Workload, time_type: pa.DataType | None) -> int:
    """A watermark as event times are counted; ``time_type`` is that of the time column, None before the first row."""
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        at = int(given)
    else:
        at, _ = to_instant(given, name="watermark")
        if workload.time_measure == INTEGER:
            raise DataError(f"`watermark` must be an integer, as the windows are; got {given!r}")
        if workload.unit is not None:
            raise DataError(f"`watermark` must be an integer, in {workload.unit}; got {given!r}")
        if time_type is not None and pa.types.is_integer(time_type):
            raise DataError(f"`watermark` must be an integer, as the time column is; got {given!r}")
    if abs(at) >= watermark_limit(workload.unit):
        raise DataError(f"`watermark` must be an event time; got {at}")
    return at


def check_not_back(before: int, at: int) -> None:
    """Refuse a watermark that is before the one that stands."""
    if at < before:
        raise DataError(f"the watermark must not go back; it is at {before} and was given as {at}; keep the larger")


def watermark_in(row: Any, name: str) -> Any:
    """The watermark that a row is; None for a row of data.

    >>> watermark_in({"wm": 7}, "wm"), watermark_in({"wm": None, "v": 3}, "wm")
    (7, None)
    """
    if not isinstance(row, Mapping):
        raise DataError(f"a row must be a mapping of columns; got {row!r}")
    try:
        value = value_in(row, name)
    except KeyError:
        raise DataError(f"there is no column {name!r} in the row; {did_you_mean(name, row)}") from None
    return None if value is None or value != value else value


def divided(data: Any, name: str) -> tuple[Mapping[str, Any], list[tuple[int, Any]]]:
    """The rows of a batch that are data, and the watermarks among them, each with how many of these come before it.

    >>> divided({"t": [1, None, 5], "wm": [None, 4, None]}, "wm")
    ({'t': [1, 5], 'wm': [None, None]}, [(1, 4)])
    """
    columns = as_mapping(data)
    given = column_in(columns, name)
    if given is None:
        raise DataError(f"there is no column {name!r} in the rows; {did_you_mean(name, columns)}")
    column = _column(given, name)
    at = np.flatnonzero(column.mask)
    if pa.types.is_null(column.type) or not len(at):
        return columns, []
    for other, values in columns.items():
        if len(values) != len(column):
            raise DataError(
                f"all columns must have the same number of rows; got {len(column)} in {name!r} and {len(values)} in "
                f"{other!r}"
            )
    rest = np.flatnonzero(~column.mask)
    before = np.searchsorted(rest, at)
    values = column.take(at).to_pylist()
    return {n: picked(c, rest) for n, c in columns.items()}, list(zip(before.tolist(), values, strict=True))


def _column(given: Any, name: str) -> Column:
    """Watermarks as a column; whole numbers that pandas keeps as floats, because some are missing, are integers."""
    try:
        column = Column.of(given)
    except (DataError, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise DataError(f"column {name!r} cannot be read as one type: {error}") from error
    if not pa.types.is_floating(column.type):
        return column
    there = column.mask & ~np.isnan(column.values)
    whole = np.where(there, column.values, 0).astype(np.int64)
    if (whole != np.where(there, column.values, 0)).any():
        raise DataError(f"column {name!r} must hold watermarks, event times like those of the rows; got {column.type}")
    return Column(whole, pa.int64(), there)
