"""User-defined aggregates in both families, and what is said when they are wrong."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pyarrow as pa
import pytest

import slicewise.aggregates as sw
from slicewise.aggregates.user import parse_type
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.testing import check_laws
from tests.aggregates.over import one, over

F64, I64 = pa.float64(), pa.int64()


def longer(a, b):
    return a if len(a) >= len(b) else b


def add_both(a, b):
    return a[0] + b[0], a[1] + b[1]


LONGEST = sw.aggregate(combine=longer, identity="", result="string")
SUM = sw.aggregate(
    combine=np.add, invert=np.subtract, identity=0, commutative=True, columnar=True, name="total", kind="distributive"
)
WEIGHTED = sw.aggregate(
    lift=lambda v, w: (v * w, w * 1.0),
    combine=add_both,
    lower=lambda p: p[0] / p[1],
    identity=(0.0, 0.0),
    commutative=True,
    columnar=True,
    name="weighted_mean",
)
SHAPES = sw.aggregate(
    lift=lambda v, w: [(v, w)], combine=lambda a, b: a + b, identity=[], lower=len, result="bigint", name="pairs"
)


def test_an_aggregate_of_single_values():
    assert one(LONGEST("word"), ["to", None, "slice", "up"], pa.string()) == "slice"
    assert over(SHAPES("v", "w"), [1, 2, None], [1.5, None, 2.5], types=[I64, F64]) == [1]
    assert repr(LONGEST("word")) == "longer('word')"
    assert repr(LONGEST) == "<user-defined aggregate 'longer'>"


def test_an_aggregate_of_arrays():
    assert over(SUM("v"), [1, None, 3, 4], types=[I64], starts=[0, 3]) == [4, 4]
    assert over(SUM("v"), [None, 3.5], types=[F64]) == [3.5]
    assert over(WEIGHTED("v", "w"), [1.0, 4.0, 9.0], [1, 2, None], types=[F64, I64]) == [3.0]


def test_traits_follow_from_what_is_given():
    total, longest = SUM("v"), LONGEST("v")
    assert (total.invertible, total.commutative, total.kind) == (True, True, "distributive")
    assert (longest.invertible, longest.commutative, longest.kind) == (False, False, "holistic")
    assert WEIGHTED("v", "w").kind == "algebraic"
    assert SUM("v").bind(I64).exact
    assert not SUM("v").bind(F64).exact
    assert not longest.bind(pa.string()).exact


def test_result_types_are_found_or_given():
    assert SUM("v").bind(I64).result == I64
    assert SUM("v").bind(F64).result == F64
    assert WEIGHTED("v", "w").bind(I64, I64).result == F64
    narrow = sw.aggregate(combine=np.add, identity=0, columnar=True, result=pa.float32())
    assert over(narrow("v"), [1, 2], types=[I64]) == [3.0]
    assert narrow("v").bind(I64).result == pa.float32()
    assert LONGEST("v").bind(pa.string()).result == pa.string()
    unknown = sw.aggregate(combine=max, identity=0)
    assert unknown("v").bind(I64).result == pa.null()


def test_identity_widens_the_partials():
    largest = sw.aggregate(combine=np.maximum, identity=-np.inf, columnar=True)
    monoid = largest("v").bind(I64)
    assert monoid.dtypes == (np.dtype(np.float64),)
    assert monoid.lift([Column.of([1, None])], np.arange(2))[0].tolist() == [1.0, -np.inf]


@pytest.mark.parametrize(
    ("aggregate", "samples", "types"),
    [
        (LONGEST("v"), ["a", "bb"], [pa.string()]),
        (SUM("v"), [1, None], [I64]),
        (WEIGHTED("v", "w"), [(1.0, 2), (3.0, 1)], [F64, I64]),
        (SHAPES("v", "w"), [(1, 2), (3, None)], [I64, I64]),
    ],
)
def test_laws(aggregate, samples, types):
    check_laws(aggregate, samples, types)


def test_columnar_functions_also_run_on_single_values():
    mean = WEIGHTED()
    assert mean.lower(mean.combine(mean.lift(1.0, 1.0), mean.lift(4.0, 2.0))) == 3.0
    total = SUM()
    assert total.invert(total.combine(total.lift(3), total.lift(4)), 4) == 3


def test_aggregates_travel_and_compare():
    again = pickle.loads(pickle.dumps(SUM("v")))
    assert again == SUM("v")
    assert SUM("v") != SUM("w")
    other = sw.aggregate(
        combine=np.maximum, identity=0, invert=np.subtract, commutative=True, columnar=True, name="total"
    )
    assert other("v") != SUM("v")
    assert len({SUM("v"), SUM("v"), LONGEST("v")}) == 2


ERRORS = [
    ({"identity": 0}, "`combine` is missing; give a function combine(a, b) -> the partial of both"),
    ({"combine": 3, "identity": 0}, "`combine` must be a function; got 3"),
    ({"combine": max, "identity": 0, "lift": "v"}, "`lift` must be a function; got 'v'"),
    ({"combine": max, "identity": 0, "lower": 1}, "`lower` must be a function; got 1"),
    ({"combine": max, "identity": 0, "invert": 1}, "`invert` must be a function; got 1"),
    ({"combine": max}, "`identity` is missing; give the partial of no rows, such as 0 for a sum"),
    ({"combine": max, "identity": 0, "commutative": "yes"}, "`commutative` must be True or False; got 'yes'"),
    ({"combine": max, "identity": 0, "columnar": 1}, "`columnar` must be True or False; got 1"),
    ({"combine": max, "identity": 0, "kind": "x"}, "`kind` must be 'distributive', 'algebraic' or 'holistic'; got 'x'"),
    ({"combine": max, "identity": 0, "name": ""}, "`name` must be a string that is not empty; got ''"),
    ({"combine": max, "identity": 0, "result": "dubble"}, "`result` is not a type we know; got 'dubble': did you mean"),
    ({"combine": max, "identity": 0, "result": "decimal(40,2)"}, "`result` is not a type we know; got 'decimal(40,2)'"),
    ({"combine": max, "identity": 0, "result": 3}, "`result` must be an Arrow type or the name of a Spark type; got 3"),
]


@pytest.mark.parametrize(("parameters", "message"), ERRORS)
def test_wrong_parameters(parameters, message):
    with pytest.raises(AggregateError, match=re.escape(message)):
        sw.aggregate(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lift": lambda v: (v, v)}, "`lift` of `f` must give a single array, as `identity` has; got a tuple of 2"),
        ({"identity": (0, 0)}, "`lift` of `f` must give a tuple of 2, as `identity` has; got a single array"),
        (
            {"lift": lambda v: v[0]},
            "`lift` of `f` failed on (int64 array of 0): IndexError: index 0 is out of bounds for axis 0 with size 0; "
            "with columnar=True it must take NumPy arrays of any length, also empty ones",
        ),
        ({"combine": lambda a, b: (a, b)}, "`combine` of `f` must give a single array, as `identity` has; got a tuple"),
        (
            {"lift": lambda v: (v, v), "combine": add_both, "identity": (0, 0)},
            "`lower` of `f` must give one array; got 2: a partial of several arrays needs a `lower`",
        ),
    ],
)
def test_wrong_array_functions_show_before_the_first_row(parameters, message):
    f = sw.aggregate(**{"combine": np.add, "identity": 0, "columnar": True, "name": "f", **parameters})
    with pytest.raises(AggregateError, match=re.escape(message)):
        f("v").bind(I64)


def test_lift_must_give_one_partial_per_row():
    f = sw.aggregate(lift=np.unique, combine=np.add, identity=0, columnar=True, name="f")
    message = "`lift` of `f` must give one partial per row; got shapes [(1,)] for 2 rows"
    with pytest.raises(AggregateError, match=re.escape(message)):
        over(f("v"), [1, 1], types=[I64])


def test_decimals_are_not_for_arrays():
    message = "`total` is columnar and cannot take decimal128(5, 2); cast the column to double, or write the aggregate"
    with pytest.raises(AggregateError, match=re.escape(message)):
        SUM("v").bind(pa.decimal128(5, 2))


def test_what_has_no_inverse_cannot_be_inverted():
    message = "cannot be inverted; a partial cannot be taken out of it again"
    with pytest.raises(AggregateError, match=message):
        LONGEST().invert("a", "b")
    monoid = WEIGHTED("v", "w").bind(F64, F64)
    with pytest.raises(AggregateError, match=message):
        monoid.invert(monoid.identities(1), monoid.identities(1))


def test_columns_are_names():
    message = "`columns` of `total` must be the name of a column; got 3: pass its name as a string"
    with pytest.raises(AggregateError, match=re.escape(message)):
        SUM(3)
    with pytest.raises(AggregateError, match=re.escape("`columns` of `total` must be names of columns; got None")):
        SUM(None)


@pytest.mark.parametrize(
    ("said", "type_"),
    [
        ("bigint", I64),
        (" Double ", F64),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("decimal(10, 2)", pa.decimal128(10, 2)),
        ("array<array<string>>", pa.list_(pa.list_(pa.string()))),
        (pa.int8(), pa.int8()),
    ],
)
def test_types_by_name(said, type_):
    assert parse_type(said) == type_
