"""Whole rows: what a DataFrame must be like for its rows to be given back or shown as they came.

Then also columns that no query reads have to be named and, on a stream, brought to Python.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from slicewise.errors import DataError
from slicewise.spark.session import setting
from slicewise.spark.types import is_readable, reaches_python

__all__ = ["check_returned_rows", "check_shown_rows"]


def check_returned_rows(frame: DataFrame) -> None:
    """Refuse rows that ``late="collect"`` could not give back."""
    _check_names(frame, "late='collect' gives back whole rows")
    for field in frame.schema.fields if frame.isStreaming else ():
        if not is_readable(field.dataType):
            raise DataError(
                f"column {field.name!r} is of type {field.dataType.simpleString()}, which a stream cannot give back "
                "(late='collect'); drop the column, or cast it first"
            )


def check_shown_rows(frame: DataFrame) -> None:
    """Refuse rows that ``bad="fail"`` could not show."""
    _check_names(frame, "bad='fail' shows whole rows")
    for field in frame.schema.fields if frame.isStreaming else ():
        if not reaches_python(field.dataType):
            raise DataError(
                f"column {field.name!r} is of type {field.dataType.simpleString()}, which Arrow cannot bring to Python "
                "(bad='fail'); drop the column, or cast it first"
            )


def _check_names(frame: DataFrame, why: str) -> None:
    case_sensitive = setting(frame.sparkSession, "spark.sql.caseSensitive", "false") == "true"
    seen: dict[str, str] = {}
    for name in frame.columns:
        other = seen.setdefault(name if case_sensitive else name.lower(), name)
        if other != name:
            raise DataError(
                f"the DataFrame has columns {other!r} and {name!r}, which Spark takes for the same name, and {why}; "
                "rename or drop one of them, or set spark.sql.caseSensitive"
            )
    if len(seen) < len(frame.columns):
        twice = next(name for name in seen.values() if frame.columns.count(name) > 1)
        raise DataError(f"the DataFrame has the column {twice!r} twice, and {why}; rename or drop one of them")
