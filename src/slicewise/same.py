"""Same: whether two values are equal up to rounding, for invariants and tests: NaN is NaN, containers by their items.

A leaf: ``swag`` checks its structures with it, ``testing`` the laws of aggregates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np

__all__ = ["is_finite", "is_same", "magnitude"]

TOLERANCE = 1e-9
#: What is smaller is what rounding has left of numbers that cancel out.
LEFTOVER = 1e-60


def is_same(a: Any, b: Any, scale: float | None = None) -> bool:
    """Whether ``a`` and ``b`` are the same, floats up to 1e-9 of ``scale`` (by default, of the larger of the two, and
    numbers next to nothing, which rounding leaves, are equal).

    A ``scale`` of 0 asks for equality.

    >>> is_same({"mean": 0.1 + 0.2, "last": float("nan")}, {"mean": 0.3, "last": float("nan")})
    True
    >>> is_same([1, 2], [1, 3])
    False
    >>> is_same({1.0: 2, float("nan"): 1}, {1.0: 2, float("nan"): 1})
    True
    """
    if a is b:
        return True
    if isinstance(a, np.generic):
        a = a.item()
    if isinstance(b, np.generic):
        b = b.item()
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape == b.shape and is_same(a.tolist(), b.tolist(), scale)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() == b.keys():
            return all(is_same(a[k], b[k], scale) for k in a)
        return _are_same_keys(a, b) and is_same([*a.values()], [*b.values()], scale)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(is_same(x, y, scale) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, Number) and isinstance(b, Number) and _is_near(float(a), float(b), scale)  # type: ignore[arg-type]
    equality: Any = type(a).__eq__
    if type(a) is type(b) and equality is object.__eq__ and hasattr(a, "__dict__"):
        return is_same(vars(a), vars(b), scale)  # the object of a class that does not define equality
    return _is_equal(a, b)


def magnitude(value: Any) -> float:
    """The largest finite number in a value, however deep; 0.0 when there is none.

    >>> magnitude((3, [-7.5, None], float("inf")))
    7.5
    """
    return max((abs(x) for x in _numbers(value) if math.isfinite(x)), default=0.0)


def is_finite(value: Any) -> bool:
    """Whether no number in a value is infinite or NaN."""
    return all(math.isfinite(x) for x in _numbers(value))


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, (int, float, Decimal, np.generic)) and not isinstance(value, (bool, np.bool_)):
        try:
            yield float(value)
        except (TypeError, ValueError, OverflowError):
            return


def _are_same_keys(a: Mapping[Any, Any], b: Mapping[Any, Any]) -> bool:
    """Whether keys are equal one after the other, two NaNs among them, which no mapping takes for one."""
    return len(a) == len(b) and all(x == y or (x != x and y != y) for x, y in zip(a, b, strict=True))


def _is_near(a: float, b: float, scale: float | None) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    if a == b:
        return True
    if math.isinf(a) or math.isinf(b):
        return False
    larger = max(abs(a), abs(b))
    return (
        abs(a - b) <= TOLERANCE * scale if scale is not None else abs(a - b) <= TOLERANCE * larger or larger < LEFTOVER
    )


def _is_equal(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except Exception:  # an __eq__ that takes only its own kind
        return False
