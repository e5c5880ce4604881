"""The definitions of the aggregates, on lists small enough to check by hand and against the standard library."""

from __future__ import annotations

import math
import random
import statistics
from datetime import date, timedelta
from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest

from slicewise.aggregates import AGGREGATES
from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate
from slicewise.same import is_same
from slicewise.testing.definitions import DEFINITIONS, order_of, value_of
from slicewise.testing.series_definitions import SERIES

NAN, INF = math.nan, math.inf


def result(name, *columns, parameters=()):
    aggregate = SimpleNamespace(parameters=lambda: parameters, ignorenulls=False)
    return DEFINITIONS[name](aggregate, [list(c) for c in columns], list(range(100, 100 + len(columns[0]))))


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("count", [3, None, 5], 2),
        ("sum", [3, None, 5], 8),
        ("sum", [2**62, 2**62, 2**62], 3 * 2**62),
        ("sum", [0.1] * 10, 1.0),
        ("sum", [1e16, 1.0, -1e16], 1.0),
        ("sum", [1e308, 1e308, -1e308], 1e308),
        ("sum", [1e308, 1e308], INF),
        ("sum", [INF, 1.0], INF),
        ("sum", [INF, -INF], NAN),
        ("sum", [NAN, 1.0], NAN),
        ("sum", [Decimal("0.10"), Decimal("9" * 32 + ".05")], Decimal("9" * 32 + ".15")),
        ("product", [2, 3, None], 6.0),
        ("avg", [1, 2], 1.5),
        ("avg", [2**63 - 1, 2**63 - 1], float(2**63 - 1)),
        ("avg", [1e308, 1e308], 1e308),
        ("avg", [INF, 1.0], INF),
        ("avg", [Decimal("1.00"), Decimal("1.00"), Decimal("0.00")], Decimal("0.666667")),
        ("geometric_mean", [1, 4, None], 2.0),
        ("geometric_mean", [0, 4], 0.0),
        ("geometric_mean", [-1.0, 4.0], NAN),
        ("variance", [1, 2, 3, None], 1.0),
        ("variance", [7], None),
        ("var_pop", [7], 0.0),
        ("var_pop", [1e9 + 1, 1e9 + 2, 1e9 + 3], 2 / 3),
        ("stddev", [1, 3], math.sqrt(2)),
        ("stddev_pop", [1, 3], 1.0),
        ("stddev_pop", [1.0, INF], NAN),
        ("min", [3.0, NAN, 1.0, None], 1.0),
        ("max", [3.0, NAN, 1.0, None], NAN),
        ("max", ["a", "B", "é"], "é"),
        ("range_", [3, 9, None], 6),
        ("range_", [date(2024, 1, 1), date(2024, 3, 1)], timedelta(days=60)),
        ("max_count", [3, 9, 9, None], 2),
        ("max_count", [NAN, 9.0, NAN], 2),
        ("min_count", [3, 3, 9], 2),
        ("max_count", [None], None),
        ("range_", [Decimal("-5e30"), Decimal("0.01")], Decimal("5000000000000000000000000000000.01")),
        ("first", [None, 2, 3], None),
        ("last", [1, 2, 3], 3),
        ("collect_list", [3, None, 1, 3], [3, 1, 3]),
        ("collect_set", [3, None, 1, 3], [1, 3]),
        ("collect_set", [NAN, 1.0, NAN], [1.0, NAN]),
        ("concat", ["b", None, "a"], "ba"),
        ("median", [4, 1, None, 2], 2.0),
        ("median", [4, 1], 2.5),
    ],
)
def test_definition(name, values, expected):
    assert is_same(result(name, values), expected)


@pytest.mark.parametrize(
    "name", ["sum", "product", "avg", "geometric_mean", "stddev", "var_pop", "min", "max", "range_"]
)
def test_nothing_but_nulls_gives_null(name):
    assert result(name, [None, None]) is None


@pytest.mark.parametrize(("name", "expected"), [("count", 0), ("collect_list", []), ("collect_set", [])])
def test_nothing_but_nulls_gives_an_empty_answer(name, expected):
    assert result(name, [None, None]) == expected


def test_every_built_in_aggregate_has_a_definition():
    assert AGGREGATES.keys() <= DEFINITIONS.keys() | SERIES.keys()


def test_count_of_rows_counts_nulls_too():
    assert value_of(Count(), [{}, {}, {}], [1, 2, 3]) == 3
    assert value_of(Count("v"), [{"v": None}, {"v": 1}], [1, 2]) == 1


def test_extreme_by_another_column_takes_the_first_of_ties_and_never_a_null():
    assert result("max_by", ["a", "b", "c", "d"], [1, 7, 7, None]) == "b"
    assert result("min_by", ["a", "b", "c", "d"], [None, 7, 1, 1]) == "c"
    assert result("max_by", ["a", None], [1, 2]) is None
    assert result("max_by", ["a"], [None]) is None


def test_percentile_interpolates_between_the_nearest_ranks():
    #  rank    0   1   2   3
    #         10  20  30  40
    #  0.9 -> position 2.7, between 30 and 40
    assert result("percentile", [40, 10, 30, 20], parameters=(0.9,)) == pytest.approx(37.0)
    assert result("percentile", [40, 10, 30, 20], parameters=(0.0,)) == 10.0
    assert result("percentile", [40, 10], parameters=([0.0, 0.5, 1.0],)) == [10.0, 25.0, 40.0]
    assert result("percentile", [None], parameters=(0.5,)) is None


def test_concat_puts_its_separator_between_values():
    assert result("concat", ["a", None, "b"], parameters=(", ",)) == "a, b"


def test_m4_gives_the_corners_of_the_line_with_their_times():
    #      9     9
    #   5     .     7
    #                  5
    #  100 101 102 103 ...   the null at 102 is not seen
    assert result("m4", [5, 9, None, 9, 7, 5]) == {
        "first": 5,
        "last": 5,
        "min": 5,
        "max": 9,
        "first_time": 100,
        "last_time": 105,
        "min_time": 100,
        "max_time": 101,
    }
    assert result("m4", [None]) is None


def test_statistics_agree_with_the_standard_library():
    values = [random.Random(1).gauss(1e6, 3.0) for _ in range(200)]
    assert result("variance", values) == pytest.approx(statistics.variance(values), rel=1e-12)
    assert result("stddev_pop", values) == pytest.approx(statistics.pstdev(values), rel=1e-12)
    assert result("geometric_mean", values) == pytest.approx(statistics.geometric_mean(values), rel=1e-12)
    assert result("median", values) == pytest.approx(statistics.median(values), rel=1e-12)


def test_order_puts_nulls_first_and_nan_last_inside_lists_and_structs_too():
    assert sorted([[2], [1, 5], [None], [1]], key=order_of) == [[None], [1], [1, 5], [2]]
    assert sorted([{"a": 2}, {"a": None}], key=order_of) == [{"a": None}, {"a": 2}]
    assert is_same(sorted([(NAN,), (1.0,)], key=order_of), [(1.0,), (NAN,)])


# -- aggregates of the user's own


class Longest(Aggregate):
    name = "sum"  # a name that is taken, and a meaning of its own
    identity = ""

    def combine(self, a, b):
        return a if len(a) >= len(b) else b


def test_user_aggregate_is_folded_from_the_left_whatever_it_is_called():
    rows = [{"w": w} for w in ("to", None, "slice", "cheap")]
    assert value_of(Longest("w"), rows, range(4)) == "slice"
    assert value_of(Longest("w"), [{"w": None}], [0]) == ""


def test_user_aggregate_that_wants_nulls_gets_them():
    class Nulls(Aggregate):
        skips_nulls = False
        identity = 0

        def lift(self, value):
            return int(value is None)

        def combine(self, a, b):
            return a + b

    assert value_of(Nulls("v"), [{"v": None}, {"v": 1}, {"v": None}], range(3)) == 2


def test_numpy_scalars_are_taken_as_python_numbers():
    class Total(Aggregate):
        identity = 0

        def combine(self, a, b):
            return a + b

    rows = [{"v": np.int64(2**62)}, {"v": np.int64(2**62)}]
    assert value_of(Total("v"), rows, [0, 1]) == 2**63
