"""What is said about columns, parameters and types that an aggregate cannot work on."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import slicewise.aggregates as sw
from slicewise.errors import AggregateError
from tests.aggregates.over import bare

NUMERIC = ["sum", "avg", "product", "geometric_mean", "stddev", "stddev_pop", "variance", "var_pop", "median"]
NUMERIC += ["sum_distinct"]
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
        sw.AGGREGATES[name]("v").bind(type_)


def test_an_aggregate_without_a_column_names_only_itself():
    with says("`sum` needs numbers; got string: cast the column to a numeric type first"):
        sw.sum().bind(pa.string())


@pytest.mark.parametrize("name", ["min", "max", "max_count", "min_count", "m4"])
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
    with says("`min_by` takes two columns, `value` and `by`; got value='v', by=None: give both"):
        sw.min_by("v")


@pytest.mark.parametrize("name", [name for name in sw.AGGREGATES if name != "count"])
def test_binding_needs_a_type_per_column(name):
    aggregate = bare(name)
    columns = "2 columns" if name.endswith("_by") else "1 column"
    with says(f"`{name}` works on {columns}; got 0 types: name its columns when you create it"):
        aggregate.bind()


@pytest.mark.parametrize("name", [n for n, a in sw.AGGREGATES.items() if not a.invertible])
def test_what_cannot_be_inverted_says_so(name):
    aggregate = bare(name)
    with says(f"`{name}` cannot be inverted; a partial cannot be taken out of it again"):
        aggregate.invert(aggregate.identity, aggregate.identity)
