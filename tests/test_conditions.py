"""Conditions: what they mean row by row, how they are read, and what is refused and with which words."""

from __future__ import annotations

import datetime as dt
import decimal
import pickle
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.columns import Column
from slicewise.conditions import Condition
from slicewise.errors import DataError, QueryError

TYPES = {"i": pa.int64(), "f": pa.float64(), "d": pa.decimal128(10, 2), "s": pa.string(), "b": pa.bool_()}


def columns_of(rows):
    return {name: Column.of([row[name] for row in rows], type_) for name, type_ in TYPES.items()}


def holds(text, **columns):
    """The condition on columns of Python values."""
    return Condition.of(text).mask({name: Column.of(values) for name, values in columns.items()}).tolist()


# -- the twin: one row, Python values, None for null


def compare(sign, a, b):
    if a is None or b is None:
        return None
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)
        a, b = (a != a, 0.0 if a != a else a), (b != b, 0.0 if b != b else b)  # NaN is the largest, and equals itself
    return {"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[sign]


def calculate(sign, a, b):
    if a is None or b is None or (sign in "/%" and b == 0):
        return None
    if isinstance(a, float) or isinstance(b, float) or (sign == "/" and isinstance(a, int) and isinstance(b, int)):
        a, b = np.float64(a), np.float64(b)
    elif isinstance(a, decimal.Decimal) or isinstance(b, decimal.Decimal):
        a, b = decimal.Decimal(a), decimal.Decimal(b)
    with decimal.localcontext(decimal.Context(prec=100)), np.errstate(all="ignore"):
        if sign == "%":
            return float(np.fmod(a, b)) if isinstance(a, float) else abs(a) % abs(b) * (-1 if a < 0 else 1)
        answer = {"+": a.__add__, "-": a.__sub__, "*": a.__mul__, "/": a.__truediv__}[sign](b)
    return float(answer) if isinstance(a, float) else answer


def conjunction(parts):
    return False if False in parts else None if None in parts else True


def disjunction(parts):
    return True if True in parts else None if None in parts else False


def negation(value):
    return None if value is None else not value


# -- random expressions, each a text with its twin

_ints = st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1)
_decimals = st.integers(-500, 500).map(lambda n: decimal.Decimal(n).scaleb(-2))
_texts = st.sampled_from(["", "a", "b", "it's", "and", "é"])


def _literal(value):
    quoted = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else None
    return (quoted or str(value).lower(), lambda row: value)


_number_leaves = st.one_of(
    st.sampled_from("ifd").map(lambda name: (name, lambda row: row[name])),
    st.integers(-5, 5).map(_literal),
    _decimals.map(_literal),
)


def _calculations(parts):
    def make(a, sign, b):
        return f"({a[0]} {sign} {b[0]})", lambda row: calculate(sign, a[1](row), b[1](row))

    return st.builds(make, parts, st.sampled_from("+-*/%"), parts)


_numbers = st.recursive(_number_leaves, _calculations, max_leaves=4)
_strings = st.just(("s", lambda row: row["s"])) | _texts.map(_literal)


def _comparison(a, sign, b):
    spelled = {"=": "==", "!=": "<>"}.get(sign, sign) if len(a[0]) % 2 else sign
    return f"{a[0]} {spelled} {b[0]}", lambda row: compare(sign, a[1](row), b[1](row))


def _within(a, items, negated):
    def twin(row):
        found = disjunction([compare("=", a[1](row), item[1](row)) for item in items])
        return negation(found) if negated else found

    return f"{a[0]} {'NOT ' if negated else ''}in ({', '.join(i[0] for i in items)})", twin


def _between(a, low, high, negated):
    def twin(row):
        found = conjunction([compare(">=", a[1](row), low[1](row)), compare("<=", a[1](row), high[1](row))])
        return negation(found) if negated else found

    return f"{a[0]} {'not ' if negated else ''}BETWEEN {low[0]} and {high[0]}", twin


def _is_null(a, negated):
    return f"{a[0]} is {'not ' if negated else ''}null", lambda row: (a[1](row) is None) != negated


_signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_tests = st.one_of(
    st.sampled_from(["b", "`b`"]).map(lambda name: (name, lambda row: row["b"])),
    st.sampled_from([("true", lambda row: True), ("FALSE", lambda row: False), ("null", lambda row: None)]),
    *(st.builds(_comparison, kind, _signs, kind) for kind in (_numbers, _strings)),
    *(st.builds(_within, kind, st.lists(kind, min_size=1, max_size=3), st.booleans()) for kind in (_numbers, _strings)),
    *(st.builds(_between, kind, kind, kind, st.booleans()) for kind in (_numbers, _strings)),
    st.builds(_is_null, _numbers | _strings, st.booleans()),
)


def _logic(parts):
    many = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        many.map(lambda ps: (" and ".join(f"({p[0]})" for p in ps), lambda row: conjunction([p[1](row) for p in ps]))),
        many.map(lambda ps: (" OR ".join(f"({p[0]})" for p in ps), lambda row: disjunction([p[1](row) for p in ps]))),
        parts.map(lambda p: (f"not ({p[0]})", lambda row: negation(p[1](row)))),
    )


conditions = st.recursive(_tests, _logic, max_leaves=5)
some_rows = st.lists(
    st.fixed_dictionaries(
        {
            "i": st.none() | _ints,
            "f": st.none() | st.floats(width=32) | st.integers(-5, 5).map(float),
            "d": st.none() | _decimals,
            "s": st.none() | _texts,
            "b": st.none() | st.booleans(),
        }
    ),
    max_size=8,
)


@given(conditions, some_rows)
def test_condition_holds_where_its_twin_is_true(condition, rows):
    text, twin = condition
    found = Condition.of(text).mask(columns_of(rows), len(rows))
    assert found.dtype == bool
    assert found.tolist() == [twin(row) is True for row in rows]


@given(conditions, some_rows)
def test_what_holds_does_not_depend_on_the_other_rows(condition, rows):
    rule = Condition.of(condition[0])
    together = rule.mask(columns_of(rows), len(rows)).tolist()
    assert together == [bool(rule.mask(columns_of([row]), 1)[0]) for row in rows]


# -- meaning, by example


def test_null_is_not_true_and_neither_is_its_negation():
    v = [5, 20, None]
    assert holds("v < 10", v=v) == [True, False, False]
    assert holds("not v < 10", v=v) == [False, True, False]
    assert holds("v < 10 or v >= 10", v=v) == [True, True, False]
    assert holds("v is null or v < 10", v=v) == [True, False, True]
    assert holds("v in (5, null)", v=v) == [True, False, False]
    assert holds("v not in (5, null)", v=v) == [False, False, False]


def test_a_boolean_column_is_a_condition():
    assert holds("is_start", is_start=[True, None, False]) == [True, False, False]
    assert holds("is_start = false", is_start=[True, None, False]) == [False, False, True]


def test_a_column_of_nothing_but_nulls_is_never_true():
    assert holds("v", v=[None, None]) == [False, False]
    assert holds("v > 3 or v = 'x' or v + 1 > 0", v=[None]) == [False]
    assert holds("v is null", v=[None]) == [True]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("b or b and i = 1", "b or (b and (i = 1))"),
        ("not b and b", "(not b) and b"),
        ("not i = 1", "not (i = 1)"),
        ("not not b", "b"),
        ("i + 2 * 3 = 7", "(i + (2 * 3)) = 7"),
        ("i - 2 - 3 = -4", "((i - 2) - 3) = (-4)"),
        ("12 / i / 2 > 1", "((12 / i) / 2) > 1"),
        ("-i + 1 = 0", "(0 - i) + 1 = 0"),
        ("- - i = +1", "i = 1"),
        ("i between 1 and 2 and b", "(i between 1 and 2) and b"),
        ("i + 1 in (2, 3) or b", "((i + 1) in (2, 3)) or b"),
        ("i+1 is not null", "(i + 1) is not null"),
        ("i%2=0", "(i % 2) = 0"),
        ("i\n<\t2", "i < 2"),
    ],
)
def test_operators_bind_as_in_sql(text, same):
    rows = [{"i": i, "f": 0.0, "d": None, "s": "", "b": b} for i in (-3, 0, 1, 2, None) for b in (True, False, None)]
    columns = columns_of(rows)
    assert Condition.of(text).mask(columns).tolist() == Condition.of(same).mask(columns).tolist()


def test_numbers_meet_as_in_spark():
    nan, inf = float("nan"), float("inf")
    assert holds("f = f", f=[nan, 1.0]) == [True, True]
    assert holds("f > 1e300", f=[nan, inf, 0.0]) == [True, True, False]
    assert holds("v / 2 = 1.5", v=[3, 4]) == [True, False]
    assert holds("v % 3 = -1", v=[-7, 7]) == [True, False]
    assert holds("v / 0 > 0 or v % 0 = 0", v=[1]) == [False]
    assert holds("v + 1 > v", v=[2**63 - 1]) == [True]  # exact, where 64 bits would wrap around
    assert holds("v * v > 0", v=[2**62]) == [True]
    assert holds("v = 9007199254740993", v=[2**53, 2**53 + 1]) == [False, True]
    assert holds("v < 9007199254740992.5", v=[2**53, 2**53 + 1]) == [True, False]
    assert holds("v > 99999999999999999999", v=[2**63 - 1]) == [False]
    assert holds("d * 3 = 0.3", d=[decimal.Decimal("0.10")]) == [True]
    assert holds("v * 0.1 = 0.3", v=[3]) == [True]  # digits with a point are exact
    assert holds("f * 0.1 = 0.3", f=[3.0]) == [False]  # floating numbers are not


def test_times_are_compared_with_times():
    early, late = dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)
    assert holds("a < b", a=[early, late], b=[late, None]) == [True, False]
    assert holds("a = b", a=[early.date()], b=[early.date()]) == [True]


def test_names_and_texts_are_quoted():
    assert holds("`my col` = 'it''s'", **{"my col": ["it's", "its"]}) == [True, False]
    assert holds('`and` = "say ""x"""', **{"and": ['say "x"']}) == [True]
    assert holds("`a``b` = 1", **{"a`b": [1]}) == [True]
    assert holds("größe > 1", größe=[2]) == [True]
    assert Condition.of("`my col` > Rate and rate > 2 or `my col` = 0").columns == ("my col", "Rate", "rate")


def test_condition_without_columns_holds_for_all_rows_or_none():
    assert Condition.of("true").mask({}, 3).tolist() == [True, True, True]
    assert Condition.of("1 = 2").mask({}, 2).tolist() == [False, False]
    assert Condition.of("true").mask({"v": Column.of([1, 2])}).tolist() == [True, True]


def test_long_conditions_are_read():
    many = " or ".join(f"v = {i}" for i in range(2000))
    assert holds(many, v=[1999, 2000]) == [True, False]
    assert holds(f"v in ({', '.join(map(str, range(2000)))})", v=[1999, 2000]) == [True, False]


def test_condition_is_data():
    condition = Condition.of("price < 10")
    assert condition == Condition.of("price < 10")
    assert pickle.loads(pickle.dumps(condition)) == condition
    assert {condition: 1}[Condition.of("price < 10")] == 1


# -- what cannot be read


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("price <", 7, "ends where a value should be"),
        ("price < < 10", 8, "has '<' where a value should be"),
        ("price < 10 and", 14, "ends where a value should be"),
        ("a b", 2, "has 'b' where `and`, `or` or the end should be"),
        ("a < b < c", 6, "has '<' where `and`, `or` or the end should be"),
        ("(a > 1", 6, "ends where `)` should be"),
        ("a > 1)", 5, "has ')' where `and`, `or` or the end should be"),
        ("a in 3", 5, "has '3' where `(` should be"),
        ("a in ()", 6, "has ')' where a value should be"),
        ("a in (1, 2", 10, "ends where `)` should be"),
        ("a between 1 or 2", 12, "has 'or' where `and` should be"),
        ("a is 3", 5, "has '3' where `null` should be"),
        ("a not like 'x'", 6, "has 'like' where `in` or `between` should be"),
        ("and", 0, "has 'and' where a value should be"),
        ("a = 'x", 4, "has a quote that is not closed"),
        ("`a", 0, "has a quote that is not closed"),
        ("a ? b", 2, "has something that we cannot read"),
        ("10km > 2", 0, "has something that we cannot read"),
        ("f(x)", 0, "has an unknown function 'f'"),
        ("1 < __import__('os')", 4, "has an unknown function '__import__'"),
        ("a. > 1", 3, "has '>' where the name of a field should be"),
        ("a > absolute(b)", 4, "has an unknown function 'absolute'"),
        ("abs(a, b) > 1", 0, "calls `abs` with 2 arguments"),
        ("pow(a) > 1", 0, "calls `pow` with 1 argument"),
        ("cast(a as strin) > 'x'", 10, "has 'strin' where a type should be"),
        ("cast(a as decimal(39, 2)) > 1", 10, "has decimal(39, 2)"),
        ("cast(a as decimal(x)) > 1", 18, "has 'x' where a whole number should be"),
        ("cast(a) > 1", 6, "has ')' where `as` should be"),
        ("case when a then b", 18, "ends where `end` should be"),
        ("case a then b end", 7, "has 'then' where `when` should be"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(text, place, what):
    with pytest.raises(QueryError, match=f"^`condition` {re.escape(what)}; got\n") as caught:
        Condition.of(text)
    assert caught.value.parameter == "condition"
    _, shown, caret, hint = str(caught.value).split("\n")
    assert shown == "    " + text
    assert caret == "    " + " " * place + "^"
    hints = "write a column name, or an expression such as|put a name that is no single word|known: |did you mean "
    assert re.match(f"{hints}|`abs` takes 1 argument$|`pow` takes 2 arguments$|a decimal has 1 to 38 digits", hint)


def test_long_text_is_shown_around_the_place():
    text = "v = 1 or " * 30 + "? or " + "v = 2 or " * 30
    with pytest.raises(QueryError) as caught:
        Condition.of(text)
    _, shown, caret, _ = str(caught.value).split("\n")
    assert shown[caret.index("^")] == "?"
    assert len(shown) < 120


def test_deep_nesting_is_refused():
    with pytest.raises(QueryError, match=r"^`condition` is nested too deeply; got '\(\(\(") as caught:
        Condition.of("(" * 5000 + "a" + ")" * 5000)
    assert caught.value.parameter == "condition"


@pytest.mark.parametrize("bad", ["", "  ", None, 5, ["a"]])
def test_condition_is_a_text_or_a_function(bad):
    with pytest.raises(
        QueryError, match=r"^`condition` must be a column name, an expression such as 'price < 10', or a f"
    ) as caught:
        Condition.of(bad)
    assert caught.value.parameter == "condition"


# -- what does not fit the columns


def refuses(message):
    return pytest.raises(DataError, match=f"^{re.escape(message)}")


def test_unknown_columns_are_answered_with_the_near_misses():
    with refuses("the condition 'prise < 10' reads a column 'prise' that the rows do not have; did you mean 'price'?"):
        holds("prise < 10", price=[1])


@pytest.mark.parametrize(
    ("text", "what", "place"),
    [
        ("i < s", "compares a number with text", 2),
        ("b or s = 3", "compares text with a number", 7),
        ("i in (1, 'x')", "compares a number with text", 2),
        ("b = 1", "compares true or false with a number", 2),
        ("i and b", "has a number where true or false should be", 0),
        ("not s", "has text where true or false should be", 4),
        ("i + s > 2", "calculates with text", 2),
        ("-b > 2", "calculates with true or false", 0),
    ],
)
def test_values_of_different_kinds_do_not_meet(text, what, place):
    with refuses(f"query 'q': the condition {text!r} {what}; got\n    {text}\n    {' ' * place}^\nc"):
        Condition.of(text).mask(columns_of([dict.fromkeys("ifdsb")]), query="q")


def test_condition_must_be_true_or_false():
    with refuses("the condition 'v' is a number, not true or false; compare it with something"):
        holds("v", v=[1])
    with refuses("the condition 'v' is text, not true or false"):
        holds("v", v=["x"])
    with refuses("the condition 'v' is a value of type list<item: int64>, not true or false"):
        holds("v", v=[[1]])


def test_lists_can_only_be_tested_for_null():
    assert holds("v is not null", v=[[1], None]) == [True, False]
    with refuses("the condition 'v = v' compares a value of type list<item: int64> with a value of type list"):
        holds("v = v", v=[[1]])


def test_numbers_that_fit_nowhere_are_refused():
    with refuses(
        "the condition 'v * 1e300 * v * v = 0 or " + "9" * 400 + " * f > 0' cannot be computed: OverflowError"
    ):
        holds("v * 1e300 * v * v = 0 or " + "9" * 400 + " * f > 0", v=[1], f=[1.0])


# -- functions


def cheap(columns):
    return columns["price"] < 10


def test_function_takes_the_columns_it_names():
    seen = []

    def spy(columns):
        seen.append(columns)
        return columns["a"] > 1

    given_columns = {"a": Column.of([1, 2]), "b": Column.of(["x", "y"]), "c": Column.of([1, 2])}
    condition = Condition.of(spy, ["a", "b"])
    assert condition.columns == ("a", "b")
    assert condition.mask(given_columns).tolist() == [False, True]
    assert list(seen[0]) == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], "int64"),
        ([1.5], "float64"),
        ([True], "bool"),
        (["x"], "object"),
        ([decimal.Decimal("1.5")], "object"),
        ([dt.datetime(2024, 1, 1)], "datetime64[us]"),
        ([dt.date(2024, 1, 1)], "datetime64[D]"),
        ([dt.timedelta(seconds=1)], "timedelta64[us]"),
        ([b"x"], "object"),
    ],
)
def test_function_sees_numpys_own_types_with_nulls_masked(values, dtype):
    seen = []
    column = Column.of([*values, None])
    Condition.of(lambda c: seen.append(c["v"]) or np.zeros(len(c["v"]), bool), ["v"]).mask({"v": column})
    assert seen[0].dtype == dtype
    assert seen[0].tolist() == [*values, None]
    same = Condition.of(lambda c: c["v"] <= c["v"], ["v"]).mask({"v": column})
    assert same.tolist() == [*[True] * len(values), False]


def test_function_of_nothing_but_nulls_is_never_true():
    assert Condition.of(cheap, ["price"]).mask({"price": Column.of([None, None])}).tolist() == [False, False]


def fails(columns):
    if "x" in columns["w"].tolist():
        raise KeyError("no x please")
    return columns["price"] < 10


def test_function_that_raises_names_the_record():
    columns = {"price": Column.of([1, 2, 3]), "w": Column.of(["a", "x", "b"])}
    with refuses("query 'q': the condition fails raised KeyError: 'no x please'; row 1 of 3: price=2, w='x'"):
        Condition.of(fails, ["price", "w"]).mask(columns, query="q")


def test_function_that_raises_on_many_rows_only():
    def picky(columns):
        if len(columns["v"]) > 1:
            raise ValueError("too many")
        return columns["v"] > 0

    with refuses(
        f"the condition {picky.__qualname__} raised ValueError: too many; on 2 rows at once, though on none of"
    ):
        Condition.of(picky, ["v"]).mask({"v": Column.of([1, 2])})


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (True, "shape () and type bool"),
        (np.array([True]), "shape (1,) and type bool"),
        (np.array([1, 0]), "shape (2,) and type int64"),
        (None, "shape () and type object"),
        ([[True, False]], "shape (1, 2) and type bool"),
    ],
)
def test_function_returns_one_boolean_per_row(answer, got):
    with refuses(
        f"the condition {test_function_returns_one_boolean_per_row.__qualname__}.<locals>.<lambda> must return one "
        f"boolean per row, an array of shape (2,) and type bool; got {got}"
    ):
        Condition.of(lambda c: answer, ["v"]).mask({"v": Column.of([1, 2])})


def test_function_may_return_a_list():
    assert Condition.of(lambda c: [True, False], ["v"]).mask({"v": Column.of([1, 2])}).tolist() == [True, False]


def test_function_must_name_its_columns():
    with pytest.raises(
        QueryError, match=r"^the condition cheap is a function that reads no columns; name them: columns="
    ):
        Condition.of(cheap).mask({"price": Column.of([1])})
    with pytest.raises(QueryError, match=r"^query 'q': the condition cheap is a function") as caught:
        Condition.of(cheap).mask({"price": Column.of([1])}, query="q")
    assert (caught.value.parameter, caught.value.query) == ("columns", "q")
    with refuses("the condition cheap reads a column 'price' that the rows do not have; did you mean 'prize'?"):
        Condition.of(cheap, ["price"]).mask({"prize": Column.of([1])})


# -- in windows


@pytest.mark.parametrize("make", [sw.punctuated, sw.frames])
def test_windows_refuse_what_cannot_be_read(make):
    with pytest.raises(
        QueryError, match=r"^`condition` ends where a value should be; got\n    price <\n           \^\n"
    ):
        make("price <")
    with pytest.raises(
        QueryError, match=r"^`columns` is for a function; the expression 'v > 1' says what it reads; leave"
    ):
        make("v > 1", columns=["v"])
    with pytest.raises(QueryError, match=r"^`columns` must be a list of column names; got 'price'$"):
        make(cheap, columns="price")


def test_windows_say_which_columns_they_read():
    assert sw.punctuated("price < 10 and kind = 'x'").reads == ("price", "kind")
    assert sw.frames(cheap, columns=["price"]).reads == ("price",)
    assert sw.tumbling("1 minute").reads == ()
    assert sw.sliding(sw.units(10, "km"), every=sw.units(1, "l")).reads == ("km", "l")
    assert sw.user_defined(object, columns=["a"]).reads == ("a",)
    watch = {"n": sw.count(), "top": sw.max_by("v", "w"), "sum": sw.sum("v")}
    assert sw.policy(max, watch=watch, every=sw.units(1, "km")).reads == ("km", "v", "w")


def test_windows_show_their_columns():
    assert repr(sw.punctuated(cheap, columns=["price"])) == "punctuated(cheap, columns=['price'])"
    assert repr(sw.frames(cheap, min_rows=2, columns=["price"])) == "frames(cheap, min_rows=2, columns=['price'])"
    assert sw.frames("v > 3").rules == (Condition.of("v > 3"),)
