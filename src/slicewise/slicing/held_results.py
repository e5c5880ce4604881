"""Held results as data: those that wait for the next call because an error goes first are part of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.results import Block, Results, ResultSchema

__all__ = ["results_from_data", "results_to_data"]

_ARRAYS = ("query", "start", "end", "change", "revision")


def results_to_data(results: Results) -> dict[str, Any] | None:
    """Results as plain data; None if there are none."""
    schema = results.schema
    if schema is None or not len(results):
        return None
    keys = dict(zip(schema.key_names, schema.key_types, strict=True))
    return {
        "keys": _types_to_bytes(keys),
        "columns": _types_to_bytes(schema.column_types),
        "time": _types_to_bytes({"": schema.time_type}),
        "unit": schema.unit,
        "queries": [(name, list(columns)) for name, columns in schema.queries],
        "blocks": [_block_to_data(piece) for block in results.blocks for piece in block.pieces()],
    }


def results_from_data(data: Mapping[str, Any] | None) -> Results:
    """What :func:`results_to_data` gave."""
    if data is None:
        return Results()
    keys = _types_from_bytes(data["keys"])
    schema = ResultSchema(
        key_names=tuple(keys),
        key_types=tuple(keys.values()),
        time_type=_types_from_bytes(data["time"])[""],
        queries=tuple((name, tuple(columns)) for name, columns in data["queries"]),
        column_types=_types_from_bytes(data["columns"]),
        unit=data["unit"],
    )
    return Results(schema, [_block_from_data(block) for block in data["blocks"]])


def _block_to_data(block: Block) -> dict[str, Any]:
    arrays = {name: getattr(block, name) for name in _ARRAYS}
    columns = {"keys": _columns_to_data(block.keys), "values": _columns_to_data(block.values)}
    return arrays | columns | {"times": None if block.times is None else list(block.times)}


def _block_from_data(data: Mapping[str, Any]) -> Block:
    keys, values = (_columns_from_data(data[name]) for name in ("keys", "values"))
    times = None if data["times"] is None else (data["times"][0], data["times"][1])
    return Block(keys=keys, values=values, times=times, **{name: data[name] for name in _ARRAYS})


def _columns_to_data(columns: Sequence[Column]) -> list[tuple[np.ndarray, bytes, np.ndarray]]:
    return [(column.values, _types_to_bytes({"": column.type}), column.mask) for column in columns]


def _columns_from_data(data: Sequence[Sequence[Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(values, _types_from_bytes(type_)[""], None if valid.all() else valid) for values, type_, valid in data
    )


def _types_to_bytes(types: Mapping[str, pa.DataType]) -> bytes:
    return pa.schema(list(types.items())).serialize().to_pybytes()


def _types_from_bytes(data: bytes) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in pa.ipc.read_schema(pa.py_buffer(data))}
