"""Held results as data: those that wait for the next call because an error goes first are part of a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slicewise.columns import Column, types_from_data, types_to_data
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
        "keys": types_to_data(keys),
        "columns": types_to_data(schema.column_types),
        "time": types_to_data({"": schema.time_type}),
        "unit": schema.unit,
        "wide": schema.wide,
        "queries": [(name, list(columns)) for name, columns in schema.queries],
        "blocks": [_block_to_data(block) for block in results.blocks],
    }


def results_from_data(data: Mapping[str, Any] | None) -> Results:
    """What :func:`results_to_data` gave."""
    if data is None:
        return Results()
    keys = types_from_data(data["keys"])
    schema = ResultSchema(
        key_names=tuple(keys),
        key_types=tuple(keys.values()),
        time_type=types_from_data(data["time"])[""],
        queries=tuple((name, tuple(columns)) for name, columns in data["queries"]),
        column_types=types_from_data(data["columns"]),
        unit=data["unit"],
        wide=data.get("wide", False),
    )
    return Results(schema, [_block_from_data(block) for block in data["blocks"]])


def _block_to_data(block: Block) -> dict[str, Any]:
    arrays = {name: getattr(block, name) for name in _ARRAYS}
    columns = {n: [column.to_data() for column in getattr(block, n)] for n in ("keys", "values")}
    return arrays | columns | {"times": None if block.times is None else list(block.times)}


def _block_from_data(data: Mapping[str, Any]) -> Block:
    keys, values = (tuple(map(Column.from_data, data[name])) for name in ("keys", "values"))
    times = None if data["times"] is None else (data["times"][0], data["times"][1])
    return Block(keys=keys, values=values, times=times, **{name: data[name] for name in _ARRAYS})
