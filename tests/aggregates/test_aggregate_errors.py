"""What is said about columns, parameters and types that an aggregate cannot work on."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import slicewise.aggregates as sw
from slicewise.amounts import rows
from slicewise.errors import AggregateError, QueryError
from tests.aggregates.over import PAIRS, bare, make

NUMERIC = ["sum", "avg", "product", "geometric_mean", "stddev", "stddev_pop", "variance", "var_pop", "median"]
NUMERIC += [
    "try_sum",
    "try_avg",
    "skewness",
    "kurtosis",
    "time_weighted_avg",
    "increase",
    "rate",
    "ewma",
    "sum_distinct",
]
LIST = pa.list_(pa.int64())
STRUCT = pa.struct([("a", pa.int64())])


def says(message):
    return pytest.raises(AggregateError, match=re.escape(message))


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(
    "type_", [pa.string(), pa.bool_(), pa.date32(), pa.timestamp("us"), pa.binary(), LIST, pa.null()]
)
def test_arithmetic_needs_numbers(name, type_):
    with says(f"`{name}` of column 'v' needs numbers; got {type_}: cast the column to a numeric type first"):
        make(name).bind(type_)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_need_numbers_on_both_sides(name):
    for types, column in (((pa.string(), pa.int64()), "v"), ((pa.int64(), pa.string()), "w")):
        with says(f"`{name}` of column {column!r} needs numbers; got string: cast the column to a numeric type first"):
            make(name).bind(*types)


@pytest.mark.parametrize("name", ["count_if", "bool_and", "bool_or"])
@pytest.mark.parametrize("type_", [pa.int64(), pa.string()])
def test_truth_needs_booleans(name, type_):
    with says(f"`{name}` of column 'v' needs booleans; got {type_}: compare the column with something first"):
        make(name).bind(type_)


@pytest.mark.parametrize("name", ["bit_and", "bit_or", "bit_xor"])
@pytest.mark.parametrize("type_", [pa.float64(), pa.decimal128(5, 0), pa.bool_(), pa.date32()])
def test_bits_need_integers(name, type_):
    with says(f"`{name}` of column 'v' needs integers; got {type_}: cast the column to one first"):
        make(name).bind(type_)


def test_an_aggregate_without_a_column_names_only_itself():
    with says("`sum` needs numbers; got string: cast the column to a numeric type first"):
        sw.sum().bind(pa.string())


@pytest.mark.parametrize("name", ["min", "max", "max_count", "min_count", "m4", "ohlc", "longest_rise"])
@pytest.mark.parametrize("type_", [LIST, STRUCT, pa.map_(pa.string(), pa.int64())])
def test_order_needs_values_that_have_one(name, type_):
    with says(
        f"`{name}` of column 'v' needs values that can be ordered; got {type_}: take a field or an element of it"
    ):
        sw.AGGREGATES[name]("v").bind(type_)


def test_by_needs_an_order_and_value_does_not():
    with says("`max_by` of column 'w' needs values that can be ordered; got list<item: int64>"):
        sw.max_by("v", "w").bind(LIST, LIST)
    assert sw.max_by("v", "w").bind(LIST, pa.int64()).result == LIST


@pytest.mark.parametrize("type_", [pa.string(), pa.bool_(), LIST])
def test_range_needs_values_that_can_be_subtracted(type_):
    with says(
        f"`range_` of column 'v' needs numbers or times, which can be subtracted; got {type_}: use `min` and `max`, "
        "or cast the column first"
    ):
        sw.range_("v").bind(type_)


def test_concat_needs_strings():
    with says("`concat` of column 'v' needs strings; got int64: cast the column to string first"):
        sw.concat("v").bind(pa.int64())
    with says("`separator` of `concat` must be a string; got 3: ', ' is one"):
        sw.concat("v", separator=3)
    with says("`delimiter` of `listagg` must be a string; got 3: ', ' is one"):
        sw.listagg("v", delimiter=3)
    with says("`concat` of column 'v' joins binary by something of that type; got ',': b', ' is one"):
        sw.listagg("v", ",").bind(pa.binary())
    with says("`concat` of column 'v' joins string by something of that type; got b',': ', ' is one"):
        sw.listagg("v", b",").bind(pa.string())


@pytest.mark.parametrize("half_life", ["0 seconds", 0, -3])
def test_a_half_life_is_positive(half_life):
    with pytest.raises(QueryError, match=re.escape(f"`half_life` must be positive; got {half_life!r}")):
        sw.ewma("v", half_life=half_life)


def test_a_half_life_is_a_length_of_time():
    with says("`half_life` of `ewma` must be given; got nothing: '10 minutes' is one"):
        sw.ewma("v")
    with says(
        "`half_life` of `ewma` must be a duration, or an integer for integer time; got rows(3): '10 minutes' is one"
    ):
        sw.ewma("v", half_life=rows(3))


@pytest.mark.parametrize("name", ["largest", "smallest", "first_k", "last_k", "most_frequent", "max_by", "min_by"])
@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_k_is_a_number_of_values(name, k):
    columns = ("v", "w") if name.endswith("_by") else ("v",)
    with says(f"`k` of `{name}` must be a whole number from 1 on; got {k!r}: 10 keeps the ten best"):
        sw.AGGREGATES[name](*columns, k)


@pytest.mark.parametrize("name", ["largest", "smallest", "first_k", "last_k", "most_frequent"])
def test_k_must_be_given(name):
    with says(f"`k` of `{name}` must be a whole number from 1 on; got nothing: 10 keeps the ten best"):
        sw.AGGREGATES[name]("v")


@pytest.mark.parametrize("frequency", [0, 2.0, True, "n"])
def test_every_value_counts_equally_often(frequency):
    with says(
        "`frequency` of `percentile` must be a whole number from 1 on, the same for all rows; got "
        f"{frequency!r}: repeat rows that count several times"
    ):
        sw.percentile("v", 0.5, frequency=frequency)


def test_deterministic_is_a_truth_value():
    with says("`deterministic` of `mode` must be True or False; got 'yes'"):
        sw.mode("v", deterministic="yes")


def test_ignorenulls_is_a_truth_value():
    for name in ("first", "last", "any_value"):
        with says(f"`ignorenulls` of `{name}` must be True or False; got 1"):
            sw.AGGREGATES[name]("v", ignorenulls=1)


@pytest.mark.parametrize("q", [-0.1, 1.5, float("nan"), True, "0.5", None, [], [0.5, 2], ["a"]])
def test_percentile_needs_shares(q):
    with says(
        f"`q` of `percentile` must be a number from 0 to 1, or a list of them; got {q!r}: 0.9 is the 90th percentile"
    ):
        sw.percentile("v", q)


def test_percentile_needs_any_share():
    with says("`q` of `percentile` must be a number from 0 to 1, or a list of them; got nothing"):
        sw.percentile("v")


def test_columns_are_names():
    with says("`column` of `sum` must be the name of a column; got 3: pass its name as a string"):
        sw.sum(3)
    with says("`by` of `max_by` must be the name of a column; got 3"):
        sw.max_by("v", 3)
    with says("`regr_slope` takes two columns, `y` and `x`; got y='v', x=None: give both"):
        sw.regr_slope("v")
    with says("`col2` of `corr` must be the name of a column; got 3: pass its name as a string"):
        sw.corr("v", 3)
    with says("`min_by` takes two columns, `value` and `by`; got value='v', by=None: give both"):
        sw.min_by("v")


@pytest.mark.parametrize("name", [name for name in sw.AGGREGATES if name != "count"])
def test_binding_needs_a_type_per_column(name):
    columns = "2 columns" if len(make(name).columns) == 2 else "1 column"
    with says(f"`{name}` works on {columns}; got 0 types: name its columns when you create it"):
        bare(name).bind()


@pytest.mark.parametrize("name", [n for n, a in sw.AGGREGATES.items() if not a.invertible])
def test_what_cannot_be_inverted_says_so(name):
    aggregate = bare(name)
    with says(f"`{name}` cannot be inverted; a partial cannot be taken out of it again"):
        aggregate.invert(aggregate.identity, aggregate.identity)
