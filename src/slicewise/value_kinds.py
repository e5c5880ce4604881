"""Kinds of Python values: what Arrow would mix silently, and a column must not. A leaf, used where columns are made."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.errors import DataError

__all__ = ["MISSING", "check_kinds", "kind_of_class", "kind_of_type"]

#: The classes of pandas' missing values, which are nulls here.
MISSING = frozenset({"NaTType", "NAType"})
#: The kinds of Python values. Arrow mixes them silently: it cuts a datetime down to a date, reads one without a zone as
#: UTC, an integer as microseconds, a text as bytes and a boolean as a number.
_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("booleans", (bool, np.bool_)),
    ("durations", (datetime.timedelta, np.timedelta64)),  # ahead of numbers: NumPy's durations are integers
    ("numbers", (int, float, decimal.Decimal, np.integer, np.floating)),
    ("texts", (str,)),
    ("bytes", (bytes, bytearray, memoryview)),
    ("dates", (datetime.date,)),
    ("times of day", (datetime.time,)),
)
_WITH_ZONE, _WITHOUT_ZONE = "times with a time zone", "times without a time zone"


def check_kinds(values: list[Any], type_: pa.DataType) -> None:
    """Refuse Python values that Arrow has made to fit a type though they are of another kind."""
    if not any(_strangers(leaves, leaf) for leaves, leaf in _leaves(values, type_)):
        return
    for row, value in enumerate(values):
        for leaves, leaf in _leaves([value], type_):
            for stranger in _strangers(leaves, leaf):
                raise DataError(
                    f"{kind_of_type(leaf)} and {_kind_of(stranger)} cannot be mixed; got {stranger!r} in row {row}; "
                    "convert one of them"
                )


def _leaves(values: Iterable[Any], type_: pa.DataType) -> Iterator[tuple[list[Any], pa.DataType]]:
    """The values of each plain type inside a type, without nulls."""
    known = [v for v in values if v is not None]
    t = pa.types
    if t.is_map(type_):
        pairs = [p for v in known for p in (v.items() if isinstance(v, Mapping) else v)]
        yield from _leaves([k for k, _ in pairs], type_.key_type)
        yield from _leaves([v for _, v in pairs], type_.item_type)
    elif t.is_list(type_) or t.is_large_list(type_) or t.is_fixed_size_list(type_):
        yield from _leaves(chain.from_iterable(known), type_.value_type)
    elif t.is_struct(type_):
        for i, field in enumerate(type_):
            held = [v.get(field.name) if isinstance(v, Mapping) else v[i] if i < len(v) else None for v in known]
            yield from _leaves(held, field.type)
    else:
        yield known, type_.value_type if t.is_dictionary(type_) else type_


def _strangers(leaves: list[Any], type_: pa.DataType) -> list[Any]:
    kind = kind_of_type(type_)
    if kind is None:
        return []
    classes = set(map(type, leaves))
    others = {cls for cls in classes if kind_of_class(cls) not in (None, "times", kind)}
    # Neither a NaN that Arrow took for a null, as pandas means it, nor an object of a class without a kind is one.
    strangers = [v for v in leaves if type(v) in others and v == v] if others else []
    times = {cls for cls in classes if kind_of_class(cls) == "times"}
    if times and kind in (_WITH_ZONE, _WITHOUT_ZONE):
        zoned = kind == _WITH_ZONE
        return strangers + [v for v in leaves if type(v) in times and (v.tzinfo is not None) is not zoned]
    return strangers + [v for v in leaves if type(v) in times] if times else strangers


def kind_of_type(type_: pa.DataType) -> str | None:
    """The kind of the values of a type; None for a nested one, whose values have kinds of their own."""
    t = pa.types
    if t.is_timestamp(type_):
        return _WITH_ZONE if type_.tz else _WITHOUT_ZONE
    if t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_):
        return "numbers"
    if t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_):
        return "texts"
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_binary_view(type_):
        return "bytes"
    tests = (t.is_boolean, "booleans"), (t.is_date, "dates"), (t.is_duration, "durations"), (t.is_time, "times of day")
    return next((kind for is_it, kind in tests if is_it(type_)), None)


@lru_cache(maxsize=1024)
def kind_of_class(cls: Any) -> str | None:
    """The kind of all values of a class; a time's own kind depends on its zone."""
    if issubclass(cls, datetime.datetime):
        return "times"
    return next((kind for kind, classes in _KINDS if issubclass(cls, classes)), None)


def _kind_of(value: Any) -> str | None:
    if isinstance(value, datetime.datetime):
        return _WITHOUT_ZONE if value.tzinfo is None else _WITH_ZONE
    cls: Any = type(value)
    return kind_of_class(cls)
