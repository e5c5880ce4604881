"""Expressions in process: what they mean, their types, what they refuse; computed columns beside a definition."""

from __future__ import annotations

import copy
import math
import pickle
import re
from decimal import Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.columns import Column
from slicewise.conditions.computed import compute, type_of
from slicewise.errors import DataError, ExpressionError, QueryError
from slicewise.testing.expressions import OutOfTypeError, expression_value

TYPES = {
    "i": pa.int32(),
    "l": pa.int64(),
    "f": pa.float32(),
    "x": pa.float64(),
    "d": pa.decimal128(12, 3),
    "e": pa.decimal128(38, 20),
    "s": pa.string(),
    "b": pa.bool_(),
}
_FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.5, 0.125, 1e300, math.inf, -math.inf, math.nan, 7.0])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": st.sampled_from([0, 1, -1, 7, 100, 2**31 - 1, -(2**31)]),
    "l": st.sampled_from([0, 1, -3, 10, 2**40, 2**63 - 1, -(2**63)]),
    "f": st.sampled_from([0.0, 1.5, -2.25, 2.0**20, math.inf, math.nan]),
    "x": _FLOATS,
    "d": st.decimals(-(10**8), 10**8, places=3),
    "e": st.sampled_from([Decimal("0"), Decimal("1.5"), Decimal("-2.00000000000000000003"), Decimal(10**17)]).map(
        lambda v: v.quantize(Decimal("1e-20"), context=Context(prec=60))
    ),
    "s": st.sampled_from(["", "a", "b", "1", " 7 ", "1.5", "x1"]),
    "b": st.booleans(),
}
ROWS = st.lists(st.fixed_dictionaries({n: st.none() | v for n, v in VALUES.items()}), min_size=1, max_size=5)

_NUMBERS = ["i", "l", "f", "x", "d", "e", "3", "-2", "1.25", "0.5", "2e0", "10000000000", "null"]
_TEXTS = ["s", "'a'", "'1'", "coalesce(s, 'b')"]
_NUMBER_TYPES = ["int", "bigint", "smallint", "double", "float", "decimal(8, 2)"]
#: How larger expressions are made: N is for a number, T for a truth.
_OF_NUMBERS = [
    *(f"(N {sign} N)" for sign in "+-*/%"),
    *(f"{name}(N)" for name in ("abs", "-", "floor", "ceil", "sqrt", "round")),
    *("round(N, 1)", "round(N, 2)", "round(N, -1)", "coalesce(N, N)", "least(N, N)", "greatest(N, N, N)"),
    *("case when T then N else N end", "case N when N then N end", "case when T then 1 else 0 end"),
    *(f"cast(N as {type_})" for type_ in _NUMBER_TYPES),
    *(f"cast({text} as {type_})" for text in _TEXTS for type_ in ("int", "double", "decimal(6, 2)")),
]
_OF_TRUTHS = [
    *("b", "true", "l is null", "s = 'a'", "(N = N)", "(N < N)", "(N >= N)", "(N != N)", "(T and T)", "(T or T)"),
    *("not T", "(N in (N, N))", "(N not between N and N)", "(N is not null)"),
]


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """An expression that is a number."""
    text = draw(st.sampled_from(_OF_NUMBERS))
    for _ in range(4):
        text = re.sub("[NT]", lambda hole: _filled(draw, hole[0], deeper=True), text)
    return re.sub("[NT]", lambda hole: _filled(draw, hole[0], deeper=False), text)


def _filled(draw: st.DrawFn, hole: str, *, deeper: bool) -> str:
    if deeper and draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(_OF_NUMBERS if hole == "N" else _OF_TRUTHS))
    return draw(st.sampled_from(_NUMBERS if hole == "N" else ["b", "true", "l is null", "s = 'a'"]))


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return type(a) is type(b) and bool(a == b)


@given(expressions(), ROWS)
def test_a_computed_column_is_its_definition(text: str, rows: list[dict[str, Any]]) -> None:
    expression = sw.expr(text)
    columns = {n: Column.of([row[n] for row in rows], TYPES[n]) for n in expression.names}
    try:
        result = compute(text, columns, expression.names, len(rows))
    except DataError as error:
        assume("always null" not in str(error) and "more than 38 digits" not in str(error))
        raise
    for i, (row, value) in enumerate(zip(rows, result.column.to_pylist(), strict=True)):
        try:
            expected = expression_value(expression, row, TYPES)
        except OutOfTypeError:
            assert i in result.failures
            continue
        assert i not in result.failures
        assert same(value, expected), (value, expected)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("i + 1", "int"),
        ("i + l", "bigint"),
        ("i / 2", "double"),
        ("i * 1.5", "decimal(13,1)"),
        ("d * 2", "decimal(14,3)"),
        ("d + d", "decimal(13,3)"),
        ("d / 3", "decimal(15,6)"),
        ("e * e", "decimal(38,6)"),
        ("f + 1", "double"),
        ("f * f", "float"),
        ("f / f", "double"),
        ("d + 1e0", "double"),
        ("floor(x)", "bigint"),
        ("floor(d)", "decimal(10,0)"),
        ("round(d, 1)", "decimal(11,1)"),
        ("coalesce(i, d)", "decimal(13,3)"),
        ("case when b then i else x end", "double"),
        ("3000000000", "bigint"),
        ("0.05", "decimal(2,2)"),
        ("1e0", "double"),
        ("i > 2", "boolean"),
        ("cast(s as date)", "date"),
    ],
)
def test_types_are_sparks(text: str, type_: str) -> None:
    from slicewise.columns import type_name

    assert type_name(type_of(text, TYPES, sw.expr(text).names, "`expr`")) == type_


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("cast('2024-02-29 10:30:00.25' as timestamp)", "2024-02-29 10:30:00.25"),
        ("cast('2024-02-29T10:30:00+02:00' as timestamp)", "2024-02-29 08:30:00"),
        ("cast('2024-02-30' as timestamp)", None),
        ("cast('2024-2-9' as date)", "2024-02-09"),
        ("cast('2024-02-09 what' as date)", "2024-02-09"),
        ("cast('today' as date)", None),
        ("cast(cast('2024-02-29' as date) as timestamp)", "2024-02-29 00:00:00"),
        ("cast(cast('2024-02-29 23:00:00' as timestamp) as date)", "2024-02-29"),
        ("cast(90 as timestamp)", "1970-01-01 00:01:30"),
        ("cast(-0.5 as timestamp)", "1969-12-31 23:59:59.5"),
        ("cast(cast('1969-12-31 23:59:59.5' as timestamp) as bigint)", "-1"),
        ("1e10", "1.0E10"),
        ("0.001e0", "0.001"),
        ("0.0001e0", "1.0E-4"),
        ("1234567e0", "1234567.0"),
        ("12345678e0", "1.2345678E7"),
        ("cast('NaN' as double)", "NaN"),
        ("cast('-inf' as double)", "-Infinity"),
        ("cast('1.5d' as double)", "1.5"),
        ("1.50", "1.50"),
        ("-12345678901234567890123456789.012345678", "-12345678901234567890123456789.012345678"),
        ("round(-0.04e0, 1)", "0.0"),
        ("round(-4e0, -1)", "0.0"),
        ("true", "true"),
    ],
)
def test_values_are_written_and_read_as_spark_does(text: str, value: str | None) -> None:
    result = compute(f"cast({text} as string)", {}, (), 2)
    assert result.column.to_pylist() == [value] * 2


def test_what_is_not_asked_for_cannot_fail() -> None:
    columns = {"l": Column.of([2**62, 3]), "b": Column.of([False, True])}
    for text in (
        "case when b then l * 2 end",
        "case when not b then 0 else l * 2 end",
        "coalesce(case when b then null else 1 end, l * 2)",
        "b and l * 2 > 1",
        "not b or l * 2 > 1",
    ):
        assert compute(text, columns, sw.expr(text).names, 2).failures == {}, text
    assert list(compute("l * 2 > 1 and b", columns, ("l", "b"), 2).failures) == [0]


def test_a_decimal_that_is_rounded_beyond_its_digits_is_an_error() -> None:
    columns = {"w": Column.of([Decimal(10**38 - 1), Decimal(4)], pa.decimal128(38, 0))}
    result = compute("round(w, -1)", columns, ("w",), 2)
    assert result.failures == {0: f"round({10**38 - 1}) does not fit decimal(38,0)"}
    assert result.column.to_pylist()[1] == 0


def test_expressions_are_names_of_columns() -> None:
    price = sw.expr("price * 2")
    assert repr(price) == str(price) == f"{price}" == "expr('price * 2')"
    assert price == sw.expr("price * 2") != sw.expr("price*2")
    assert price.names == ("price",)
    assert pickle.loads(pickle.dumps(price)) == copy.deepcopy(price) == sw.expr(price) == price
    assert price != "price * 2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s + 1", "calculates with string; got\n    s + 1\n      ^\ncalculate with numbers only"),
        (
            "s > 1",
            "compares string with int; got\n    s > 1\n      ^\ncompare values of one kind: numbers with numbers, text "
            "with text",
        ),
        ("l and b", "has bigint where true or false should be; got\n    l and b\n    ^\ncompare it with something"),
        ("abs(b)", "calculates with boolean; got\n    abs(b)\n    ^\ncalculate with numbers only"),
        (
            "coalesce(l, s)",
            "has bigint and string for one value; got\n    coalesce(l, s)\n                ^\nmake them one type: "
            "cast(... as double)",
        ),
        ("cast(b as date)", "casts boolean to date; got\n    cast(b as date)\n    ^\nthere is no such cast"),
        (
            "round(x, i)",
            "rounds to a number of places that is no whole number; got\n    round(x, i)\n             ^\nwrite it: "
            "round(v, 2)",
        ),
        ("null", "is always null, so its type is not known; declare it: cast(null as double)"),
    ],
)
def test_what_has_no_type_is_pointed_at(text: str, message: str) -> None:
    workload = sw.Workload(time="t").query("q", sw.tumbling(5), s=sw.collect_list(sw.expr(text)))
    columns: dict[str, Any] = {"t": [1], "l": [1], "s": ["a"], "b": [True], "x": [1.0], "i": [1]}
    with pytest.raises(DataError, match=f"^{re.escape(f'{sw.expr(text)!r} {message}')}$"):
        workload.operator().process_batch(columns)


def test_a_number_that_leaves_its_type_names_the_row_and_the_others_stay() -> None:
    workload = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(10), s=sw.sum(sw.expr("v * 2")))
    message = (
        "expr('v * 2') at the record of time 2, key k='b': 4611686018427387904 * 2 does not fit bigint; the record was "
        "left out, and so was 1 other"
    )
    op = workload.operator()
    with pytest.raises(ExpressionError, match=f"^{re.escape(message)}$"):
        op.process_batch({"t": [1, 2, 3, 4], "k": list("abab"), "v": [1, 2**62, 5, 2**63 - 1]})
    assert [(r.key, r.values) for r in op.close()] == [(("a",), {"s": 12})]

    op = workload.operator()
    op.process(1, {"k": "a", "v": 1})
    with pytest.raises(ExpressionError, match=f"^{re.escape(message.removesuffix(', and so was 1 other'))}$"):
        op.process(2, {"k": "b", "v": 2**62})
    op.process(3, {"k": "a", "v": 5})
    assert [(r.key, r.values) for r in op.close()] == [(("a",), {"s": 12})]


def test_windows_take_expressions_where_they_take_columns() -> None:
    rows = {"t": np.arange(8), "v": [3, -4, 5, 0, 9, -9, 1, 2], "s": [{"km": float(k)} for k in range(8)]}
    workload = (
        sw.Workload(time="t", order=[sw.expr("-v")])
        .query("runs", sw.frames("abs(v) > 2"), n=sw.count())
        .query("marks", sw.punctuated(sw.expr("v % 5 = 0")), n=sw.count())
        .query("miles", sw.tumbling(sw.units(4, sw.expr("s.km * 2"))), s=sw.sum("s.km"))
        .query(
            "last", sw.policy(lambda total, oldest: total["n"] > 2, watch={"n": sw.count(sw.expr("v"))}), n=sw.count()
        )
    )
    op = workload.operator()
    op.process_batch(rows)
    results = [(r.query, r.start, r.end, *r.values.values()) for r in op.close()]
    assert [r for r in results if r[0] == "runs"] == [("runs", 0, 3, 3), ("runs", 4, 6, 2)]
    assert [r for r in results if r[0] == "marks"] == [("marks", 0, 2, 2), ("marks", 2, 3, 1), ("marks", 3, None, 5)]
    assert [r[3] for r in results if r[0] == "miles"] == [1.0, 5.0, 9.0, 13.0]


def test_fields_of_structs_are_columns_unless_a_column_has_the_name() -> None:
    workload = sw.Workload(time="t", keys=["who.name"]).query(
        "q", sw.tumbling(10), a=sw.sum("x.y"), b=sw.max(sw.expr("x.y + who.age")), c=sw.collect_list("x.z")
    )
    rows = [
        (1, {"who": {"name": "ann", "age": 3}, "x": {"y": 1, "z": "p"}, "x.z": "column"}),
        (2, {"who": {"name": "bob", "age": 4}, "x": None, "x.z": "column"}),
    ]
    op = workload.operator(types={"x.y": "bigint"})
    for time, row in rows:
        op.process(time, row)
    expected = [(("ann",), {"a": 1, "b": 4, "c": ["column"]}), (("bob",), {"a": None, "b": None, "c": ["column"]})]
    assert sorted((r.key, r.values) for r in op.close()) == expected
    table = pa.table({"t": [1, 2], **{n: [row[n] for _, row in rows] for n in ("who", "x", "x.z")}})
    for batch in (table, {n: table.column(n).to_pylist() for n in table.column_names}, table.to_pandas()):
        op = workload.operator(types={"x.y": "bigint"})
        op.process_batch(batch)
        assert sorted((r.key, r.values) for r in op.close()) == expected
    with pytest.raises(DataError, match=r"^there is no column 'who.name' in the rows; did you mean 'who.nam'\?$"):
        workload.operator().process_batch({"t": [1], "who.nam": ["x"], "x.y": [1], "x.z": [""]})


def test_a_sum_of_too_many_terms_is_refused() -> None:
    """They are read one after another; whoever looks at their types would go down as many levels."""
    workload = sw.Workload("t").query("q", sw.tumbling(5), total=sw.sum(sw.expr(" + ".join(["v"] * 400))))
    operator = workload.operator()
    operator.process_batch({"t": [1], "v": [1]})
    assert [r.values["total"] for r in operator.close()] == [400]
    with pytest.raises(QueryError, match=r"^`expr` is nested too deeply; got 'v \+ v \+ .*'\.\.\.; make it simpler$"):
        sw.expr(" + ".join(["v"] * 401))
