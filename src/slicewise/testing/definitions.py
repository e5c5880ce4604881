"""Definitions: the meaning of each aggregate, written down over a plain list of values. Read by the oracle.

Nothing here is lifted, combined or lowered, and nothing is taken from :mod:`slicewise.aggregates` but the name: a mean
is a sum over a count, a percentile is read off the sorted list. Floats are added exactly and rounded once, so that an
answer is never further from the truth than the engine's.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial, reduce
from typing import Any

import numpy as np

from slicewise.aggregates.categories import By
from slicewise.aggregates.filtered import Filtered
from slicewise.errors import DataError, did_you_mean
from slicewise.testing.moment_definitions import OF_ONE, OF_PAIRS
from slicewise.testing.series_definitions import SERIES

__all__ = ["DEFINITIONS", "is_defined", "lifted", "order_of", "value_of"]

Values = list[Any]


def value_of(
    aggregate: Any,
    rows: Sequence[Mapping[str, Any]],
    times: Sequence[int],
    end: int | None = None,
    *,
    second: int = 1,
) -> Any:
    """The result of ``aggregate`` over ``rows``, from its definition.

    A built-in aggregate goes by its definition in this module. One of the user's has no definition but its functions:
    the result is ``lower(combine(... combine(lift(row0), lift(row1)) ...))``, strictly from left to right.

    Parameters
    ----------
    aggregate
        An :class:`~slicewise.aggregates.base.Aggregate`.
    rows
        The rows of one window in event-time order, each a mapping from column names to Python values.
    times
        Their event times.
    end
        The end of the window, where that is known without rows.
    second
        How many units of event time a second has; 1 for integer time.

    Returns
    -------
    Any
        The result as a Python value; None for null.

    Notes
    -----
    Whole numbers are added without a limit: a sum that leaves 64 bits, where Spark fails, is a large number here.

    Runtime complexity: O(n), O(n log n) where values are sorted.

    Examples
    --------
    >>> from slicewise.aggregates.arithmetic import Count
    >>> value_of(Count("v"), [{"v": 3}, {"v": None}, {"v": 5}], times=[0, 1, 2])
    2
    """
    if isinstance(aggregate, Filtered):
        met = [i for i, row in enumerate(rows) if _value(row, aggregate.condition) is True]
        return value_of(aggregate.counted, [rows[i] for i in met], [times[i] for i in met], end, second=second)
    if isinstance(aggregate, By):
        return _by_category(aggregate, rows, times, end, second)
    columns = [[_value(row, name) for row in rows] for name in aggregate.columns]
    if not is_defined(aggregate):
        return _left_fold(aggregate, columns, len(rows))
    name = type(aggregate).name
    if name in SERIES:
        timed = [(t, v) for t, v in zip(times, columns[0], strict=True) if v is not None]
        return SERIES[name](aggregate, timed, end, second, order_of)
    return DEFINITIONS[name](aggregate, columns, list(times))


def _by_category(
    aggregate: By, rows: Sequence[Mapping[str, Any]], times: Sequence[int], end: int | None, second: int
) -> dict[Any, Any] | None:
    """The value of the aggregate for the rows of each category, ascending; None where there are too many."""
    categories = [_value(row, aggregate.category) for row in rows]
    different = sorted({c for c in categories if c is not None})
    if len(different) > aggregate.most:
        return None
    values = {}
    for category in different:
        index = [i for i, c in enumerate(categories) if c == category]
        some = [rows[i] for i in index], [times[i] for i in index]
        values[category] = value_of(aggregate.inner, *some, end, second=second)
    return values


def is_defined(aggregate: Any) -> bool:
    """Whether there is a definition of an aggregate here; of the user's own there is none but their functions."""
    # By its class: a user's subclass or `sw.aggregate(...)` may well be called "sum", and mean something else by it.
    aggregate = aggregate.base
    ours = type(aggregate).__module__.startswith("slicewise.aggregates.")
    return ours and (type(aggregate).name in DEFINITIONS or type(aggregate).name in SERIES)


def lifted(aggregate: Any, row: Mapping[str, Any]) -> Any:
    """What ``lift`` of a user's aggregate makes of one row; its identity where that has a null it skips."""
    values = [_value(row, name) for name in aggregate.columns]
    return aggregate.identity if aggregate.skips_nulls and None in values else aggregate.lift(*values)


def order_of(value: Any) -> tuple[Any, ...]:
    """A sort key with Spark's order: nulls first, NaN after all other numbers, lists and structs by their items.

    >>> sorted([2.0, float("nan"), None, float("inf"), -1.0], key=order_of)
    [None, -1.0, 2.0, inf, nan]
    """
    if value is None:
        return (0,)
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return (1, tuple(order_of(v) for v in value))
    return (2,) if value != value else (1, value)


def _value(row: Mapping[str, Any], name: str) -> Any:
    try:
        value = row[name]
    except KeyError:
        raise DataError(f"a row has no column {name!r}; {did_you_mean(name, row)}") from None
    # NumPy's integers wrap around, Python's do not.
    return value.item() if isinstance(value, np.generic) else value


def _left_fold(aggregate: Any, columns: list[Values], n: int) -> Any:
    rows = list(zip(*columns, strict=True)) if columns else [()] * n
    if aggregate.skips_nulls:
        rows = [row for row in rows if not any(v is None for v in row)]
    if not rows:
        return aggregate.lower(aggregate.identity)
    return aggregate.lower(reduce(aggregate.combine, [aggregate.lift(*row) for row in rows]))


# -- sums and their kin


def _count(_aggregate: Any, columns: list[Values], times: list[int]) -> int:
    return sum(1 for i in range(len(times)) if all(column[i] is not None for column in columns))


def _sum(values: Values) -> Any:
    if not values:
        return None
    if any(isinstance(v, decimal.Decimal) for v in values):
        with decimal.localcontext(decimal.Context(prec=200)):
            return sum(values, decimal.Decimal(0))
    if any(isinstance(v, float) for v in values):
        return _float_sum([float(v) for v in values])
    return sum(values[1:], values[0])


def _try_sum(values: Values) -> Any:
    """The sum, or null where it leaves 64 bits; how many digits a decimal has is not known here."""
    total = _sum(values)
    return None if isinstance(total, int) and not -(2**63) <= total < 2**63 else total


def _float_sum(values: list[float]) -> float:
    if not all(math.isfinite(v) for v in values):
        return sum(v for v in values if not math.isfinite(v))  # inf, -inf, or NaN when they disagree
    try:
        return math.fsum(values)
    except OverflowError:
        return _to_float(sum(map(Fraction, values), Fraction(0)))


def _to_float(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _product(values: Values) -> float | None:
    """Spark's ``product`` is a double for every type."""
    return math.prod(float(v) for v in values) if values else None


def _avg(values: Values) -> Any:
    if not values:
        return None
    total = _sum(values)
    if isinstance(total, decimal.Decimal):
        # Spark's avg of decimal(p, s) is decimal(p + 4, s + 4), rounded half up.
        scale = max(-int(v.as_tuple().exponent) for v in values)
        step = decimal.Decimal(1).scaleb(-min(scale + 4, 38))
        with decimal.localcontext(decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP)):
            return (total / len(values)).quantize(step)
    if isinstance(total, float):
        if math.isfinite(total) or not all(math.isfinite(v) for v in values):
            return total / len(values)
        return _to_float(sum(map(Fraction, values), Fraction(0)) / len(values))
    return total / len(values)


def _geometric_mean(values: Values) -> float | None:
    """``exp(mean(log(v)))``: NaN where a value is negative, 0 where one is 0."""
    if not values:
        return None
    floats = [float(v) for v in values]
    if any(v < 0 or v != v for v in floats):
        return math.nan
    return math.exp(_float_sum([math.log(v) if v > 0 else -math.inf for v in floats]) / len(floats))


def _variance(values: Values, ddof: int) -> float | None:
    """The mean squared distance from the mean, in two passes over exact fractions; ``ddof`` 1 for the sample's."""
    n = len(values)
    if n <= ddof:
        return None  # Spark: the variance of a sample of one is null
    floats = [float(v) for v in values]
    if not all(math.isfinite(v) for v in floats):
        return math.nan
    exact = [Fraction(v) for v in floats]
    mean = sum(exact, Fraction(0)) / n
    return _to_float(sum(((v - mean) ** 2 for v in exact), Fraction(0)) / (n - ddof))


def _stddev(values: Values, ddof: int) -> float | None:
    variance = _variance(values, ddof)
    return None if variance is None else math.sqrt(variance)


# -- order


def _min(values: Values) -> Any:
    return min(values, key=order_of, default=None)


def _max(values: Values) -> Any:
    return max(values, key=order_of, default=None)


def _range(values: Values) -> Any:
    if not values:
        return None
    with decimal.localcontext(decimal.Context(prec=200)):
        return _max(values) - _min(values)


def _count_equal(values: Values, extreme: Any) -> int | None:
    return sum(1 for v in values if order_of(v) == order_of(extreme)) or None


def _by(aggregate: Any, columns: list[Values], *, largest: bool) -> Any:
    """``max_by`` and ``min_by``: the first row with the extreme ``by``; a null ``by`` never wins, a null value may.

    With ``k``, the values of so many rows, best first, the earlier first of equal ones.
    """
    rows = [(value, by) for value, by in zip(*columns, strict=True) if by is not None]
    best = [value for value, _ in sorted(rows, key=lambda row: order_of(row[1]), reverse=largest)]
    k = aggregate.parameters()[0] if aggregate.parameters() else None
    return (best[0] if k is None else best[:k]) if best else None


def _percentile(values: Values, fraction: float) -> float | None:
    """Spark's exact ``percentile``: between the two nearest ranks, in proportion."""
    if not values:
        return None
    ranked = sorted((float(v) for v in values), key=order_of)
    position = (len(ranked) - 1) * fraction
    low, high = math.floor(position), math.ceil(position)
    if low == high or ranked[low] == ranked[high]:
        return ranked[low]
    return ranked[low] + (position - low) * (ranked[high] - ranked[low])


def _percentiles(aggregate: Any, columns: list[Values], _times: list[int]) -> Any:
    wanted, *frequency = aggregate.parameters()
    values = _present(columns[0]) * (frequency[0] if frequency else 1)
    if isinstance(wanted, (list, tuple)):
        return [_percentile(values, f) for f in wanted] if values else None
    return _percentile(values, wanted)


def _distinct(values: Values) -> Values:
    ranked = sorted(values, key=order_of)
    return [v for i, v in enumerate(ranked) if i == 0 or order_of(ranked[i - 1]) != order_of(v)]


def _histogram(values: Values) -> list[tuple[Any, int]]:
    """Each value, -0.0 being 0.0, with how often it occurs, by ascending value."""
    plain = [0.0 if isinstance(v, float) and v == 0.0 else v for v in values]
    return [(v, sum(1 for w in plain if order_of(w) == order_of(v))) for v in _distinct(plain)]


def _mode(values: Values) -> Any:
    counted = _histogram(values)
    most = max((count for _, count in counted), default=0)
    return next((value for value, count in counted if count == most), None)


def _most_frequent(aggregate: Any, columns: list[Values], _times: list[int]) -> list[dict[str, Any]]:
    counted = sorted(_histogram(_present(columns[0])), key=lambda pair: -pair[1])
    return [{"value": value, "count": count} for value, count in counted[: aggregate.parameters()[0]]]


def _count_distinct(_aggregate: Any, columns: list[Values], _times: list[int]) -> int:
    """Different rows, of those that have no null in them."""
    return len({order_of(row) for row in zip(*columns, strict=True) if None not in row})


def _best(aggregate: Any, columns: list[Values], *, largest: bool) -> Values:
    return sorted(_present(columns[0]), key=order_of, reverse=largest)[: aggregate.parameters()[0]]


def _approx_percentile(aggregate: Any, columns: list[Values], _times: list[int]) -> Any:
    """The least value that is not less than a share of the values; NaN is left out."""
    wanted = aggregate.parameters()[0]
    ranked = sorted(v for v in _present(columns[0]) if v == v)
    shares = wanted if isinstance(wanted, list) else [wanted]
    answers = [ranked[max(math.ceil(share * len(ranked)) - 1, 0)] for share in shares] if ranked else None
    return answers if answers is None or isinstance(wanted, list) else answers[0]


def _sketch(make: Callable[[Any], Any], write: Callable[[Any], bytes]) -> Callable[[Any, list[Values], list[int]], Any]:
    """A sketch of the values, as bytes."""

    def define(aggregate: Any, columns: list[Values], _times: list[int]) -> bytes:
        sketch = make(aggregate)
        for value in _present(columns[0]):
            sketch.update(float(value) if isinstance(value, decimal.Decimal) else value)
        return write(sketch)

    return define


def _sketches() -> Any:
    import datasketches

    return datasketches


def _theta_bytes(sketch: Any) -> bytes:
    sketch.trim()
    data: bytes = sketch.compact().serialize()
    return data


def _m4(_aggregate: Any, columns: list[Values], times: list[int]) -> dict[str, Any] | None:
    """First, last, smallest and largest value with their times; the earliest of equally small or large ones."""
    rows = [(v, t) for v, t in zip(columns[0], times, strict=True) if v is not None]
    if not rows:
        return None
    picked = {
        "first": rows[0],
        "last": rows[-1],
        "min": min(rows, key=lambda row: order_of(row[0])),
        "max": max(rows, key=lambda row: order_of(row[0])),
    }
    return {name: v for name, (v, _) in picked.items()} | {f"{name}_time": t for name, (_, t) in picked.items()}


def _present(values: Values) -> Values:
    return [v for v in values if v is not None]


def _concat(aggregate: Any, columns: list[Values], _times: list[int]) -> str | None:
    values = _present(columns[0])
    separator = aggregate.parameters()[0] if aggregate.parameters() else ""
    return separator.join(values) if values else None


def _first(aggregate: Any, columns: list[Values], _times: list[int]) -> Any:
    """The row's value, as Spark's also when it is null, unless those are ignored."""
    values = _present(columns[0]) if aggregate.ignorenulls else columns[0]
    return values[0] if values else None


def _pairs(columns: list[Values]) -> list[tuple[Any, Any]]:
    return [(a, b) for a, b in zip(*columns, strict=True) if a is not None and b is not None]


def _of_pairs(definition: Callable[..., Any], _aggregate: Any, columns: list[Values], _times: list[int]) -> Any:
    """What looks at two columns, in the rows where neither is null."""
    pairs = _pairs(columns)
    return definition([float(a) for a, _ in pairs], [float(b) for _, b in pairs]) if pairs else None


def _unless_none(definition: Callable[[list[float]], Any], values: Values) -> Any:
    return definition([float(v) for v in values]) if values else None


def _of_values(definition: Callable[[Values], Any]) -> Callable[[Any, list[Values], list[int]], Any]:
    """Most aggregates look at the values of one column that are not null, and at nothing else."""
    return lambda _aggregate, columns, _times: definition(_present(columns[0]))


DEFINITIONS: dict[str, Callable[[Any, list[Values], list[int]], Any]] = {
    "count": _count,
    "sum": _of_values(_sum),
    "product": _of_values(_product),
    "avg": _of_values(_avg),
    "geometric_mean": _of_values(_geometric_mean),
    "variance": _of_values(lambda values: _variance(values, 1)),
    "var_pop": _of_values(lambda values: _variance(values, 0)),
    "stddev": _of_values(lambda values: _stddev(values, 1)),
    "stddev_pop": _of_values(lambda values: _stddev(values, 0)),
    "min": _of_values(_min),
    "max": _of_values(_max),
    "range_": _of_values(_range),
    "max_count": _of_values(lambda values: _count_equal(values, _max(values))),
    "min_count": _of_values(lambda values: _count_equal(values, _min(values))),
    "max_by": lambda aggregate, columns, _times: _by(aggregate, columns, largest=True),
    "min_by": lambda aggregate, columns, _times: _by(aggregate, columns, largest=False),
    "first": _first,
    "last": lambda aggregate, columns, times: _first(aggregate, [columns[0][::-1]], times),
    "any_value": _first,
    "count_if": _of_values(lambda values: values.count(True)),
    "bool_and": _of_values(lambda values: all(values) if values else None),
    "bool_or": _of_values(lambda values: any(values) if values else None),
    "bit_and": _of_values(lambda values: reduce(operator.and_, values) if values else None),
    "bit_or": _of_values(lambda values: reduce(operator.or_, values) if values else None),
    "bit_xor": _of_values(lambda values: reduce(operator.xor, values) if values else None),
    "try_sum": _of_values(_try_sum),
    "try_avg": _of_values(_avg),
    **{name: _of_values(partial(_unless_none, moment)) for name, moment in OF_ONE.items()},
    **{name: partial(_of_pairs, moment) for name, moment in OF_PAIRS.items()},
    "regr_count": _count,
    "regr_avgy": lambda _aggregate, columns, _times: _avg([y for y, x in _pairs(columns)]),
    "regr_avgx": lambda _aggregate, columns, _times: _avg([x for y, x in _pairs(columns)]),
    "collect_list": _of_values(list),
    "collect_set": _of_values(_distinct),
    "concat": _concat,
    "median": _of_values(lambda values: _percentile(values, 0.5)),
    "percentile": _percentiles,
    "m4": _m4,
    "count_distinct": _count_distinct,
    "sum_distinct": _of_values(lambda values: _sum([value for value, _ in _histogram(values)])),
    "histogram": _of_values(lambda values: dict(_histogram(values))),
    "mode": _of_values(_mode),
    "most_frequent": _most_frequent,
    "largest": lambda aggregate, columns, _times: _best(aggregate, columns, largest=True),
    "smallest": lambda aggregate, columns, _times: _best(aggregate, columns, largest=False),
    "approx_count_distinct": _count_distinct,
    "approx_percentile": _approx_percentile,
    "approx_most_frequent": _most_frequent,
    "hll_sketch_agg": _sketch(
        lambda a: _sketches().hll_sketch(a.lg_k, _sketches().HLL_8), lambda sketch: sketch.serialize_updatable()
    ),
    "kll_sketch_agg_double": _sketch(lambda a: _sketches().kll_doubles_sketch(a.k), lambda sketch: sketch.serialize()),
    "theta_sketch_agg": _sketch(lambda a: _sketches().update_theta_sketch(a.lg_k), _theta_bytes),
    "first_k": lambda aggregate, columns, _times: columns[0][: aggregate.parameters()[0]],
    "last_k": lambda aggregate, columns, _times: columns[0][-aggregate.parameters()[0] :],
}
