"""Rows of Arrow tables as Python values, maps as dicts, also where Arrow itself is too old to do that."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["rows_with_maps"]


def rows_with_maps(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table; Arrow has an option for maps since version 19, and gives lists of pairs before."""
    types = dict(zip(table.column_names, table.schema.types, strict=True))
    return [{name: _plain(value, types[name]) for name, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any, type_: pa.DataType) -> Any:
    if value is None:
        return None
    if pa.types.is_map(type_):
        return {_plain(k, type_.key_type): _plain(v, type_.item_type) for k, v in value}
    if pa.types.is_struct(type_):
        return {field.name: _plain(value[field.name], field.type) for field in type_}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return [_plain(item, type_.value_type) for item in value]
    return value
