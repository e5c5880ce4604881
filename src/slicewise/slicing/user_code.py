"""User code that fails: which rows it failed on, in the user's words."""

from __future__ import annotations

from dataclasses import replace

from slicewise.errors import RefusedRowsError, UserCodeError
from slicewise.results import ResultSchema
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.time.tuples import Tuples

__all__ = ["with_key"]


def with_key(error: RefusedRowsError, rows: Tuples, keys: KeyTable, schema: ResultSchema) -> RefusedRowsError:
    """The same error with the key of the row that it names, which stands among these rows."""
    if not isinstance(error, UserCodeError) or error.place is None:
        return error
    key = dict(zip(schema.key_names, keys.key(int(rows.key[error.rows[0]])), strict=True))
    place = replace(error.place, key=key, time_type=schema.time_type, unit=schema.unit)
    return UserCodeError(error.code, error.failure, error.rows, place, error.others)
