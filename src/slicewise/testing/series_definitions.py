"""Definitions of time series: the meaning of aggregates that go by event times. Read by ``definitions``.

Each takes the values of one column that are not null with their times, in order, and the window's end, which is None
where only rows tell it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

__all__ = ["SERIES"]

Rows = list[tuple[int, Any]]
#: The order of values, as a sort key.
Order = Callable[[Any], Any]


def _time_weighted_avg(_aggregate: Any, rows: Rows, end: int | None, _second: int, _order: Order) -> float | None:
    """Each value holds until the next row, the last until the end."""
    if not rows:
        return None
    ends = [t for t, _ in rows[1:]] + [rows[-1][0] if end is None else end]
    held = [(float(v), until - t) for (t, v), until in zip(rows, ends, strict=True) if until != t]
    passed = sum(length for _, length in held)
    if not passed:
        return None
    if not all(math.isfinite(v) for v, _ in held):
        return sum(v for v, _ in held if not math.isfinite(v))
    return float(sum((Fraction(v) * length for v, length in held), Fraction(0)) / passed)


def _growth(rows: Rows) -> Any:
    """Over neighbouring rows the value less the one before, or the value where the counter started again."""
    with decimal.localcontext(decimal.Context(prec=200)):
        return sum(v if v < before else v - before for (_, before), (_, v) in pairwise(rows))


def _increase(_aggregate: Any, rows: Rows, _end: int | None, _second: int, _order: Order) -> Any:
    return _growth(rows) if rows else None


def _rate(_aggregate: Any, rows: Rows, _end: int | None, second: int, _order: Order) -> float | None:
    passed = rows[-1][0] - rows[0][0] if rows else 0
    return float(_growth(rows)) / (passed / second) if passed else None


def _ewma(aggregate: Any, rows: Rows, _end: int | None, _second: int, _order: Order) -> float | None:
    """``sum(v 2^(-(last - t)/h)) / sum(2^(-(last - t)/h))``."""
    if not rows:
        return None
    last, half_life = max(t for t, _ in rows), aggregate.half_life.size
    values = [float(v) for _, v in rows]
    if not all(map(math.isfinite, values)):
        return sum(v for v in values if not math.isfinite(v))
    weights = [2.0 ** (-(last - t) / half_life) for t, _ in rows]
    return math.fsum(v * w for v, w in zip(values, weights, strict=True)) / math.fsum(weights)


def _ohlc(_aggregate: Any, rows: Rows, _end: int | None, _second: int, order: Order) -> dict[str, Any] | None:
    values = [v for _, v in rows]
    if not values:
        return None
    return {"open": values[0], "high": max(values, key=order), "low": min(values, key=order), "close": values[-1]}


def _longest_rise(_aggregate: Any, rows: Rows, _end: int | None, _second: int, order: Order) -> dict[str, int] | None:
    """Every run of rising neighbours; the longest, and of those the first."""
    runs: list[Rows] = []
    for t, v in rows:
        if runs and order(v) > order(runs[-1][-1][1]):
            runs[-1].append((t, v))
        else:
            runs.append([(t, v)])
    longest = max(runs, key=len, default=None)
    return None if longest is None else {"start": longest[0][0], "end": longest[-1][0], "length": len(longest)}


SERIES: dict[str, Callable[[Any, Rows, int | None, int, Order], Any]] = {
    "time_weighted_avg": _time_weighted_avg,
    "increase": _increase,
    "rate": _rate,
    "ewma": _ewma,
    "ohlc": _ohlc,
    "longest_rise": _longest_rise,
}
