"""What the aggregate tests share: an aggregate over a few rows, and one case per aggregate and type of column."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.aggregates.base import Aggregate
from slicewise.columns import Column

UTC = pa.timestamp("us", "UTC")

#: A type of column, and values of it.
OfType = tuple[pa.DataType, st.SearchStrategy[Any]]
#: The name of an aggregate, the types of its columns, and rows of them.
Case = tuple[str, tuple[pa.DataType, ...], st.SearchStrategy[tuple[Any, ...]]]


def over(
    aggregate: Aggregate,
    *values: Iterable[Any],
    types: Sequence[pa.DataType],
    times: Sequence[int] | None = None,
    starts: Sequence[int] = (0,),
) -> list[Any]:
    """The results of an aggregate over rows cut into segments, as Python values."""
    columns = [Column.of(list(v), t) for v, t in zip(values, types, strict=True)]
    at = np.arange(len(columns[0])) if times is None else np.asarray(times, np.int64)
    monoid = aggregate.bind(*types)
    lowered = monoid.lower(monoid.lift_fold(columns, at, np.asarray(starts, np.int64)))
    arrow = lowered.to_arrow()
    assert arrow.type == monoid.result
    results: list[Any] = arrow.to_pylist()
    return results


def one(aggregate: Aggregate, values: Iterable[Any], type_: pa.DataType) -> Any:
    """The result of an aggregate of one column over one window."""
    (result,) = over(aggregate, values, types=[type_])
    return result


ints = st.integers(-20, 20) | st.sampled_from([2**62, -(2**62), 2**63 - 1, -(2**63)])
small = st.integers(-5, 5)
floats = st.floats(-1e4, 1e4, width=32) | st.sampled_from([0.0, -0.0, float("inf"), float("-inf"), float("nan")])
decimals = st.decimals(-100, 100, places=2) | st.sampled_from([decimal.Decimal("9" * 26 + ".99")])
strings = st.text("abé", max_size=3)
stamps = st.datetimes(dt.datetime(1969, 12, 1), dt.datetime(1970, 2, 1), timezones=st.just(dt.UTC))
days = st.dates(dt.date(1969, 12, 1), dt.date(1970, 2, 1))

NUMBERS: list[OfType] = [
    (pa.int64(), ints),
    (pa.int16(), small),
    (pa.float64(), floats),
    (pa.decimal128(28, 2), decimals),
]
ORDERED = [*NUMBERS, (pa.string(), strings), (UTC, stamps), (pa.date32(), days), (pa.bool_(), st.booleans())]
# Not so large that inverting in floating point loses what it looks for.
MODEST = [(pa.int64(), small), *NUMBERS[1:3], (pa.decimal128(28, 2), st.decimals(-100, 100, places=2))]
# One for each physical form of a column.
PHYSICAL = [NUMBERS[0], *NUMBERS[2:], (pa.string(), strings)]

ON: dict[str, list[OfType]] = {
    "count": [NUMBERS[2], (pa.string(), strings)],
    "sum": NUMBERS,
    "avg": NUMBERS,
    "min": ORDERED,
    "max": ORDERED,
    "max_count": PHYSICAL,
    "min_count": PHYSICAL,
    "range_": [(pa.int64(), st.integers(-(2**62), 2**62)), *NUMBERS[1:], (UTC, stamps), (pa.date32(), days)],
    "first": PHYSICAL,
    "last": PHYSICAL,
    "collect_list": [*PHYSICAL, (pa.list_(pa.float64()), st.lists(floats, max_size=2))],
    "collect_set": [*ORDERED, (pa.list_(pa.float64()), st.lists(floats | st.none(), max_size=2))],
    "concat": [(pa.string(), strings)],
    "m4": PHYSICAL,
    "ohlc": PHYSICAL,
    "any_value": PHYSICAL,
    "longest_rise": PHYSICAL,
    "try_sum": [NUMBERS[0], NUMBERS[3]],
    "try_avg": [NUMBERS[0], NUMBERS[3]],
    "increase": NUMBERS,
    **{name: [(pa.bool_(), st.booleans())] for name in ("count_if", "bool_and", "bool_or")},
    **{name: [NUMBERS[0]] for name in ("bit_and", "bit_or", "bit_xor")},
    "histogram": ORDERED,
    "count_distinct": [*ORDERED, (pa.list_(pa.float64()), st.lists(floats | st.none(), max_size=2))],
    "mode": ORDERED,
    "most_frequent": ORDERED,
    "largest": ORDERED,
    "smallest": ORDERED,
    "first_k": PHYSICAL,
    "last_k": PHYSICAL,
}

#: Aggregates of two numeric columns.
PAIRS = tuple(name for name in sw.AGGREGATES if name.startswith(("corr", "covar_", "regr_", "weighted_")))

SKETCHED = [(pa.int64(), ints), (pa.string(), strings)]
ON |= {
    "approx_count_distinct": ORDERED,
    "approx_percentile": [(pa.int64(), small), (pa.float64(), floats), MODEST[3]],
    "approx_most_frequent": ORDERED,
    **dict.fromkeys(("hll_sketch_agg", "theta_sketch_agg"), SKETCHED),
    "kll_sketch_agg_double": [(pa.int64(), small), (pa.float64(), floats)],
}

#: What an aggregate must or may be given besides its columns.
ARGUMENTS: dict[str, dict[str, Any]] = {
    "percentile": {"q": [0.0, 0.3, 1.0]},
    "concat": {"separator": "-"},
    "ewma": {"half_life": 30},
    "approx_percentile": {"percentage": 0.5},
    "approx_most_frequent": {"k": 2},
    **{key: {"k": 2} for key in ("largest", "smallest", "first_k", "last_k", "most_frequent")},
}


def make(name: str, cls: type[Aggregate] | None = None, columns: Sequence[str] = "vw") -> Aggregate:
    """The aggregate of this name, with as many of these columns as it takes; or one of another class, made alike."""
    two = name in ("max_by", "min_by", *PAIRS)
    taken = columns[: 2 if two else 1]
    return (cls or sw.AGGREGATES[name])(*taken, **ARGUMENTS.get(name, {}))


def bare(name: str) -> Aggregate:
    """The aggregate of this name over single values."""
    return make(name, columns=())


def few_rows(name: str) -> list[tuple[Any, ...]]:
    """Some rows that an aggregate takes, one of them with nulls, which are of its first types among ``CASES``."""
    types = next((types for known, types, _ in CASES if known == name), (pa.int64(),))
    values = {"string": ["b", None, "a"], "bool": [True, None, False]}
    columns = [values.get(str(type_), [3, None, 7] if i == 0 else [1, 2, 9]) for i, type_ in enumerate(types)]
    return list(zip(*columns, strict=True))


def cases() -> Iterator[Case]:
    """Every aggregate on every type: name, Arrow types, a strategy of rows."""
    for name in sw.AGGREGATES:
        if name in ("hll_sketch_agg", "kll_sketch_agg_double"):
            continue  # whose bytes depend on the order of rows: `test_sketches.py` looks at what they estimate
        if name in ("max_by", "min_by"):
            for type_, values in PHYSICAL:
                yield name, (pa.string(), type_), st.tuples(strings | st.none(), values | st.none())
            yield name, (pa.int32(), pa.int64()), st.tuples(small | st.none(), small | st.none())
        elif name in PAIRS:
            # They differ in the last step alone: one of each kind is enough on all types.
            every = name in ("corr", "regr_avgx")
            others = list(zip(MODEST, [*MODEST[1:], MODEST[0]], strict=True))
            for (y, ys), (x, xs) in others if every else [(MODEST[2], MODEST[0])]:
                yield name, (y, x), st.tuples(ys | st.none(), xs | st.none())
        else:
            for type_, values in ON.get(name, MODEST):
                yield name, (type_,), st.tuples(values | st.none())


CASES = list(cases())
IDS = [f"{name}-{'-'.join(map(str, types))}" for name, types, _ in CASES]
