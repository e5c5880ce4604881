"""Widening: state goes on when a column's type has grown since, as long as no value is lost. Used by restored state.

Inside, integers of every length are int64 and floats of both kinds float64, so most of it is a matter of names. Only
decimals are kept unscaled: with more digits behind the point, the same value is a larger number.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from slicewise.aggregates.base import Monoid, rescaled
from slicewise.columns import Column, type_name
from slicewise.errors import StateError
from slicewise.plan.plan import Plan
from slicewise.slicing.answers.reported_ticks import ReportedTicks
from slicewise.slicing.engine import State
from slicewise.slicing.rows.context_state import monoids_of
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples

__all__ = ["check_types", "is_widening", "widened", "widened_state"]


def check_types(
    was: Mapping[str, pa.DataType], now: Mapping[str, pa.DataType], measured: Collection[str] = ()
) -> dict[str, pa.DataType]:
    """The types with which state of the old ones goes on: the new ones, where there are any.

    ``measured`` are the columns by which windows are measured: the bounds of windows that were reported are in state
    too, so there a decimal must keep its scale.

    Raises
    ------
    StateError
        If a column has a type now that does not hold all values of the old one.
    """
    for name, old in was.items():
        new = now.get(name, old)
        if not is_widening(old, new) or (name in measured and _scale(old) != _scale(new)):
            raise StateError(
                f"the state was written with column {name!r} as {type_name(old)}, and now it is {type_name(new)}; only "
                "a longer integer, double for float, or a decimal with more digits can go on from it: cast the column "
                f"to {type_name(old)}, or start anew without the old state"
            )
    return {**was, **now}


def is_widening(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether the new type is the old one, or one of the same family that holds each of its values.

    >>> is_widening(pa.int32(), pa.int64()), is_widening(pa.int64(), pa.float64())
    (True, False)
    >>> is_widening(pa.decimal128(10, 2), pa.decimal128(12, 4)), is_widening(pa.decimal128(10, 2), pa.decimal128(10, 4))
    (True, False)
    """
    t = pa.types
    if old == new:
        return True
    if (t.is_signed_integer(old) and t.is_signed_integer(new)) or (t.is_floating(old) and t.is_floating(new)):
        return bool(old.bit_width <= new.bit_width)
    if t.is_decimal(old) and t.is_decimal(new):
        return bool(old.scale <= new.scale and old.precision - old.scale <= new.precision - new.scale)
    if t.is_list(old) and t.is_list(new):
        return is_widening(old.value_type, new.value_type)
    if t.is_struct(old) and t.is_struct(new):
        return [f.name for f in old] == [f.name for f in new] and all(
            is_widening(a.type, b.type) for a, b in zip(old, new, strict=True)
        )
    return False


def widened(column: Column, type_: pa.DataType) -> Column:
    """A column as one of a wider type."""
    up = _scale(type_) - _scale(column.type)
    return Column(rescaled(column.values, up) if up else column.values, type_, column.valid)


def _scale(type_: pa.DataType) -> int:
    return type_.scale if pa.types.is_decimal(type_) else 0


def widened_state(state: State, types: Mapping[str, pa.DataType], plan: Plan) -> State:
    """A state of a plan whose columns had other ``types`` when it was written, as the plan with wider ones needs it."""

    def slices(kept: Slices, monoids: Sequence[Monoid]) -> Slices:
        parts = (monoid.widened(parts, types) for monoid, parts in zip(monoids, kept.parts, strict=True))
        return replace(kept, parts=tuple(parts))

    def tuples(kept: Tuples) -> Tuples:
        known = plan.column_types
        columns = {n: widened(c, known[n]) if n in known else c for n, c in kept.columns.items()}
        return replace(kept, columns=columns)

    monoids = [component.monoid for component in plan.components]
    time = replace(
        state.time,
        slices=slices(state.time.slices, plan.monoids),
        tuples=tuples(state.time.tuples),
        ticks={name: _ticks(ticks, plan, name) for name, ticks in state.time.ticks.items()},
    )
    context_aware = tuple(
        replace(
            q,
            slices=slices(q.slices, [plan.monoids[i] for i in monoids_of(plan, q.queries)]),
            rows=tuples(q.rows),
            memory={name: memory.widened(monoids, types) for name, memory in q.memory.items()},
        )
        for q in state.context_aware
    )
    return replace(state, time=time, context_aware=context_aware)


def _ticks(ticks: ReportedTicks, plan: Plan, panel: str) -> ReportedTicks:
    """The values of ticks in the types that results have now."""
    results = {aggregate: answer.monoid.result for aggregate, answer in zip(plan.aggregates, plan.answers, strict=True)}
    queries = next(p.queries for p in plan.panels if p.name == panel)
    types = [results[a] for number in queries for a in plan.workload.queries[number].aggregates.values()]
    known = ticks.values or ()
    return replace(ticks, values=tuple(widened(c, type_) for c, type_ in zip(known, types, strict=bool(known))))
