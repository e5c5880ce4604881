"""Bad input: each kind gets a clear error, and the operator goes on as if it had never come.

Every case is put to a running operator at several moments; the good rows around it must give what the oracle gives.
"""

from __future__ import annotations

import datetime as dt
import itertools
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import (
    AggregateError,
    DataError,
    OverflowInWindowError,
    QueryError,
    SlicewiseError,
    StateError,
)
from slicewise.testing import Oracle
from tests.slicing.running import assert_same, key_of

#: Good rows, in epochs that end with a watermark; some are out of order, some late, some too late.
EPOCHS = [
    ([(3, "p", 1), (1, "q", 2), (12, "p", 3)], 11),
    ([(14, "q", 4), (4, "p", 5), (25, "p", None)], 30),
    ([(13, "q", 6), (1, "p", 7), (38, "q", 8)], None),
]
AT_FIRST, AMONG_ROWS, AFTER_A_STEP = "at first", "among rows", "after a step"
ALWAYS = (AT_FIRST, AMONG_ROWS, AFTER_A_STEP)
LATER = (AMONG_ROWS, AFTER_A_STEP)

PLAIN = (
    sw.Workload("t", lateness=15)
    .query("a", sw.tumbling(10), total=sw.sum("v"), n=sw.count())
    .query("b", sw.session(4), all=sw.collect_list("v"))
)
KEYED = sw.Workload("t", keys=["k"], lateness=15)
for _query in PLAIN.queries:
    KEYED = KEYED.query(_query.name, _query.window, **_query.aggregates)
IN_ORDER = sw.Workload("t").query("a", sw.tumbling(10), total=sw.sum("v"), n=sw.count())


def whole(message: str) -> str:
    return f"^{re.escape(message)}$"


def feed(op, rows, one_by_one: bool) -> list[sw.Result]:
    if one_by_one:
        return [r for t, k, v in rows for r in op.process(t, {"k": k, "v": v})]
    t, k, v = (list(x) for x in zip(*rows, strict=True))
    return list(op.process_batch({"t": t, "k": k, "v": v}))


def expected_of(workload, epochs) -> tuple[list[list[sw.Result]], list[int]]:
    oracle, out = Oracle(workload), []
    for rows, mark in epochs:
        for t, k, v in rows:
            oracle.process(t, {"k": k, "v": v}, key_of(workload, {"k": k}))
        out.append(oracle.close() if mark is None else oracle.advance(mark))
    return out, sorted(time for time, _, _ in oracle.late())


def goes_on(workload, bad: Callable, error, message, moments=ALWAYS, one_by_one=False, **how) -> None:
    """Run the good rows with the bad thing in between; it must be refused each time, and nothing else may change."""
    op = workload.operator(**how)

    def refuse() -> None:
        with pytest.raises(error, match=message) as found:
            bad(op)
        assert isinstance(found.value, SlicewiseError)

    out = []
    for n, (rows, mark) in enumerate(EPOCHS):
        if (AT_FIRST if n == 0 else AFTER_A_STEP) in moments:
            refuse()
        found = feed(op, rows[:2], one_by_one)
        if AMONG_ROWS in moments:
            refuse()
        found += feed(op, rows[2:], one_by_one)
        out.append(found + list(op.close() if mark is None else op.advance(mark)))
    expected, late = expected_of(workload, EPOCHS)
    assert_same(out, expected)
    assert sorted(row.time for row in op.late()) == late


# -- batches


def batch(**columns) -> Callable:
    """A batch of two rows, some of whose columns are replaced; None leaves one out."""
    good = {"t": [5, 6], "k": ["p", "q"], "v": [1, 2]}
    data = {name: column for name, column in {**good, **columns}.items() if column is not None}
    return lambda op: op.process_batch(data)


TIMES = "the time column 't' must hold timestamps, or integers (with their `unit`, or those in which the "
TIMES += "windows are given); got {}"
IN_INTEGERS = "the time column 't' holds {}, but the windows are given in plain integers; give them as durations, such "
IN_INTEGERS += "as '10 seconds'"
LENGTHS = "all columns must have the same number of rows; got {} in 't' and {} in {!r}"
FORMS = "rows must come as a mapping of columns, an Arrow table or a pandas DataFrame; got {}"

BAD_BATCHES = [
    (batch(t=None), "there is no column 't' in the rows; known: 'k', 'v'"),
    (batch(k=None, kk=["p", "q"]), "there is no column 'k' in the rows; did you mean 'kk'?"),
    (batch(v=None, vv=[1, 2]), "there is no column 'v' in the rows; did you mean 'vv'?"),
    (lambda op: op.process_batch({}), "there is no column 't' in the rows; known: none"),
    (lambda op: op.process_batch([(1, "p", 2)]), FORMS.format("list")),
    (lambda op: op.process_batch(None), FORMS.format("NoneType")),
    (lambda op: op.process_batch("t"), FORMS.format("str")),
    (
        lambda op: op.process_batch(pa.table([[5], ["p"], [1], [2]], names=["t", "k", "v", "v"])),
        "the rows have the column 'v' twice; rename one of them",
    ),
    (
        lambda op: op.process_batch(pd.DataFrame([[5, "p", 1, 2]], columns=["t", "k", "v", "v"])),
        "the rows have the column 'v' twice; rename one of them",
    ),
    (batch(t=[5, None]), "the time column 't' is null in row 1; every row needs an event time"),
    (batch(t=[None, None]), "the time column 't' is null in row 0; every row needs an event time"),
    (batch(t=pa.array([None, 5])), "the time column 't' is null in row 0; every row needs an event time"),
    (
        batch(t=np.ma.array([5, 6], mask=[False, True])),
        "the time column 't' is null in row 1; every row needs an event time",
    ),
    (batch(t=[5.0, 6.5]), TIMES.format("double")),
    (batch(t=np.array([5.0, 6.0])), TIMES.format("double")),
    (batch(t=["5", "6"]), TIMES.format("string")),
    (batch(t=[True, False]), TIMES.format("bool")),
    (batch(t=[Decimal(5), Decimal(6)]), TIMES.format("decimal128(1, 0)")),
    (batch(t=[dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)]), IN_INTEGERS.format("timestamp[us]")),
    (batch(t=[dt.date(2024, 1, 1), dt.date(2024, 1, 2)]), IN_INTEGERS.format("date32[day]")),
    (batch(t=[5, 2**61]), f"the time column 't' holds {2**61} in row 1, which is out of range"),
    (batch(t=[-(2**61), 5]), f"the time column 't' holds {-(2**61)} in row 0, which is out of range"),
    (batch(t=np.array([[5, 6]])), "column 't': a column must have one dimension; got an array of shape (1, 2)"),
    (batch(v=np.ones((2, 2))), "column 'v': a column must have one dimension; got an array of shape (2, 2)"),
    (batch(t=[5]), LENGTHS.format(1, 2, "k")),
    (batch(v=[1, 2, 3]), LENGTHS.format(2, 3, "v")),
    (batch(v=[]), LENGTHS.format(2, 0, "v")),
    (batch(unread=[1]), LENGTHS.format(2, 1, "unread")),  # late rows are given back whole
    (batch(unread=5), "column 'unread' must hold one value for each row; got 5"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_BATCHES, ids=[message[:60] for _, message in BAD_BATCHES])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_bad_batch_is_refused_and_nothing_is_lost(bad, message, one_by_one):
    goes_on(KEYED, bad, DataError, whole(message), one_by_one=one_by_one)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (batch(v=[1, "x"]), "column 'v' cannot be read as one type: "),
        (batch(v=5), "column 'v' cannot be read as one type: "),
        (batch(k=["p", 5]), "column 'k' cannot be read as one type: "),
        (batch(k=5), "column 'k' cannot be read as one type: "),
    ],
)
def test_a_column_is_of_one_type(bad, message):
    goes_on(KEYED, bad, DataError, f"^{message}")


HELD = "column {!r} held {} so far, and now {}; cast it, or say what it is from the start: "
HELD += "operator(types={{{!r}: 'double'}})"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (batch(v=pa.array(["1", "2"])), HELD.format("v", "int64", "string", "v")),
        (batch(v=pa.array([1.0, 2.0])), HELD.format("v", "int64", "double", "v")),
        (batch(v=pa.array([True, False])), HELD.format("v", "int64", "bool", "v")),
        (batch(k=pa.array([1, 2])), HELD.format("k", "string", "int64", "k")),
        (batch(k=pa.array([b"p", b"q"])), HELD.format("k", "string", "binary", "k")),
    ],
)
def test_a_column_stays_of_one_type(bad, message):
    goes_on(KEYED, bad, DataError, whole(message), LATER)


@pytest.mark.parametrize(
    "bad",
    [batch(v=["1", "2"]), batch(v=[1.5, 2.5]), batch(v=[2**63, 1]), batch(k=[1, 2])],
    ids=["texts", "fractions", "too large", "numbers as keys"],
)
def test_a_list_stays_of_one_type(bad):
    goes_on(KEYED, bad, DataError, "^column '[vk]' cannot be read as one type: ", LATER)


def test_an_integer_that_does_not_fit_is_not_cut():
    workload = sw.Workload("t").query("a", sw.tumbling(10), peak=sw.max("v"))
    op = workload.operator(types={"v": "int"})
    op.process_batch({"t": [1], "v": [7]})
    message = "column 'v' holds int32; got 1099511627776 in row 1; say that it is larger from the start: "
    with pytest.raises(DataError, match=whole(message + "operator(types={'v': 'bigint'})")):
        op.process_batch({"t": [1, 2], "v": pa.array([1, 2**40])})
    with pytest.raises(DataError, match=r"^column 'v' cannot be read as one type: "):
        op.process_batch({"t": [1, 2], "v": [1, 2**40]})
    assert [r.values for r in op.close()] == [{"peak": 7}]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ([1, None], [1]),
        ([1.0, None], [1]),
        (np.array([1, 2], np.int16), [1, 2]),
        (pa.array([1, None], pa.int8()), [1]),
        (pa.nulls(2), []),
        (pa.chunked_array([[1], [2]]), [1, 2]),
        (pd.array([1, None], "Int64"), [1]),
        (pd.Series([1, 2], index=[7, 8]), [1, 2]),
    ],
    ids=["list", "whole floats", "int16", "int8 and null", "nulls", "chunks", "Int64", "series"],
)
def test_columns_that_go_together_are_taken(column, values):
    op = PLAIN.operator()
    op.process_batch({"t": [1], "v": [5]})
    op.process_batch({"t": [2, 3], "v": column})
    assert next(iter(op.close())).values["all"] == [5, *values]


def test_texts_are_texts_however_arrow_holds_them():
    op = KEYED.operator()
    for type_ in (pa.large_string(), pa.string(), pa.dictionary(pa.int32(), pa.string())):
        op.process_batch({"t": [1], "k": pa.array(["p"]).cast(type_), "v": [1]})
    assert op.stats().keys == 1
    assert len(op.close()) == 2


# -- aggregates that do not fit the columns


def test_unsigned_64_bits_are_refused():
    message = "column 'v': unsigned 64-bit integers have no counterpart in Spark; cast the column to int64 first"
    goes_on(KEYED, batch(v=np.array([1, 2], np.uint64)), DataError, whole(message), [AT_FIRST])


def test_texts_are_refused_by_numeric_aggregates():
    message = "`sum` of column 'v' needs numbers; got string: cast the column to a numeric type first"
    goes_on(PLAIN, batch(v=["x", "y"]), AggregateError, whole(message), [AT_FIRST])


def test_a_type_that_cannot_be_told_is_asked_for():
    message = (
        "column 'v' holds only nulls so far, so its type is not known; declare it: operator(types={'v': 'double'})"
    )
    goes_on(PLAIN, batch(v=[None, None]), DataError, whole(message), [AT_FIRST])
    message = message.replace("'v'", "'k'")
    goes_on(KEYED, batch(k=[None, None]), DataError, whole(message), [AT_FIRST])


def test_a_type_that_was_said_need_not_be_told():
    op = PLAIN.operator(types={"v": "double"})
    op.process_batch({"t": [1], "v": [None]})
    op.process_batch({"t": [2], "v": [3]})
    assert [r.values["total"] for r in op.close() if r.query == "a"] == [3.0]


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"v": "doubel"}, "`types`: 'doubel' for column 'v' is not a type; did you mean 'double'?"),
        ({"v": float}, "`types`: column 'v' needs an Arrow type or a name such as 'double'; got <class 'float'>"),
    ],
)
def test_types_are_known_by_name(types, message):
    with pytest.raises(DataError, match=whole(message)):
        PLAIN.operator(types=types)


def test_two_queries_that_disagree_about_a_column():
    workload = sw.Workload("t").query("a", sw.tumbling(5), x=sw.sum("v")).query("b", sw.tumbling(5), x=sw.avg("v"))
    op = workload.operator()
    message = "queries 'a' and 'b' both have a column 'x', of types int64 and double; give one of them another name"
    with pytest.raises(AggregateError, match=whole(message)):
        op.process_batch({"t": [1], "v": [1]})
    op.process_batch({"t": [1], "v": [1.5]})  # on floats they agree
    assert [r.values for r in op.close()] == [{"x": 1.5}, {"x": 1.5}]


def test_a_sum_that_overflows_raises_and_nothing_is_lost():
    workload = sw.Workload("t").query("a", sw.tumbling(10), total=sw.sum("v")).query("b", sw.tumbling(10), n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [1, 2, 11], "v": [2**62, 2**62, 5]})
    for _ in range(2):
        with pytest.raises(OverflowInWindowError):
            op.advance(20)
    assert op.stats().rows == 3
    op.remove_query("a")
    assert [(r.start, r.values) for r in op.advance(20)] == [(0, {"n": 2}), (10, {"n": 1})]


def test_user_code_that_fails_in_a_step_costs_the_window_its_value_and_the_step_goes_on():
    broken = [True]

    def lower(partial):
        if broken[0]:
            raise RuntimeError("not today")
        return partial

    add = sw.aggregate(combine=lambda a, b: a + b, lower=lower, identity=0, commutative=True)
    op = sw.Workload("t", lateness=10).query("a", sw.tumbling(10), x=add("v")).operator()
    op.process_batch({"t": [1, 2, 11], "v": [1, 2, 3]})
    message = "query 'a', window [0, 10): `lower` of aggregate('v') raised RuntimeError('not today'); its value is null"
    with pytest.raises(AggregateError, match=whole(message)):
        op.advance(10)
    broken[0] = False
    assert [r.values for r in op.advance(10)] == [{"x": None}]
    op.process_batch({"t": [3], "v": [5]})
    assert [(r.change, r.revision, r.values) for r in op.advance(10)] == [("update", 1, {"x": 8})]
    assert [r.values for r in op.close()] == [{"x": 3}]


def test_user_code_that_fails_on_a_row_of_a_batch_leaves_out_the_row():
    def lift(value):
        if value < 0:
            raise RuntimeError("negative")
        return value

    add = sw.aggregate(lift=lift, combine=lambda a, b: a + b, identity=0, commutative=True)
    op = sw.Workload("t").query("a", sw.tumbling(10), x=add("v")).operator()
    op.process_batch({"t": [1], "v": [1]})
    message = (
        "query 'a': aggregate('v') at the record of time 3: `lift` raised RuntimeError('negative'); "
        "the record was left out"
    )
    with pytest.raises(DataError, match=whole(message)):
        op.process_batch({"t": [2, 3], "v": [2, -3]})
    op.process_batch({"t": [4], "v": [4]})
    assert [r.values for r in op.close()] == [{"x": 7}]


# -- one row at a time: refused when it comes


def row(time, values=None, **how) -> Callable:
    return lambda op: op.process(time, {"k": "p", "v": 1} if values is None else values, **how)


KIND = "the time of a row must be an integer or a datetime; got {!r}"
BAD_ROWS = [
    (row(None), "every row needs an event time; got None for 't'"),
    (row("soon"), KIND.format("soon")),
    (row(float("nan")), KIND.format(float("nan"))),
    (row([5]), KIND.format([5])),
    (row(dt.datetime(2024, 1, 1)), "the time of a row must be an integer, as the windows are; got {!r}"),
    (row("2024-01-01"), "the time of a row must be an integer, as the windows are; got '2024-01-01'"),
    (row(2**61), f"the time {2**61} is out of range; is it in microseconds since the epoch?"),
    (row(-(2**61)), f"the time {-(2**61)} is out of range; is it in microseconds since the epoch?"),
    (row(5, {"v": 1}), "there is no key column 'k' in the row; known: 'v'"),
    (row(5, {"kk": 1, "v": 1}), "there is no key column 'k' in the row; did you mean 'kk'?"),
    (row(5, ["p", 1]), "a row must be a mapping of columns; got ['p', 1]"),
    (row(5, key=("p", "q")), "a key must have 1 parts, ['k']; got ('p', 'q')"),
    (row(5, key=()), "a key must have 1 parts, ['k']; got ()"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_ROWS, ids=[message[:60] for _, message in BAD_ROWS])
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_bad_row_is_refused_and_nothing_is_lost(bad, message, one_by_one):
    message = message.replace("{!r}", repr(dt.datetime(2024, 1, 1)))
    goes_on(KEYED, bad, DataError, whole(message), one_by_one=one_by_one)


def test_a_workload_without_keys_takes_none():
    message = "the workload has no keys; got the key 'p'; name the key columns: Workload(keys=[...])"
    goes_on(PLAIN, row(5, key="p"), DataError, whole(message), one_by_one=True)


# -- one row at a time: refused, at the latest, when the buffer is emptied


def late_refusal(*bad_rows) -> Callable:
    """Rows that look well until they are read; the next step of the watermark reads them."""

    def bad(op):
        for time, values in bad_rows:
            op.process(time, values)
        op.stats()

    return bad


LEFT_OUT = "column 'v' holds {}; got {!r} in the row at time 5; it was left out. To hold both, say what the column is: "
LEFT_OUT += "operator(types={{'v': 'double'}})"


@pytest.mark.parametrize("workload", [PLAIN, KEYED], ids=["plain", "keyed"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"k": "p", "vv": 1}, "there is no column 'v' in the row at time 5; it was left out; did you mean 'vv'?"),
        ({"k": "p", "v": "x"}, LEFT_OUT.format("int64", "x")),
        ({"k": "p", "v": 1.5}, LEFT_OUT.format("int64", 1.5)),
        ({"k": "p", "v": 2**63}, LEFT_OUT.format("int64", 2**63)),
        ({"k": "p", "v": [1]}, LEFT_OUT.format("int64", [1])),
    ],
)
def test_a_row_that_cannot_be_read_is_left_out(workload, values, message):
    goes_on(workload, late_refusal((5, values)), DataError, whole(message), [AFTER_A_STEP], one_by_one=True)


def test_what_is_no_row_is_left_out():
    message = "a row must be a mapping of columns; got 7 at time 5; it was left out"
    goes_on(PLAIN, late_refusal((5, 7)), DataError, whole(message), [AFTER_A_STEP], one_by_one=True)


def test_a_key_that_cannot_be_read_is_left_out():
    message = "key column 'k' holds string; got 7 in the row at time 5; it was left out"
    bad = late_refusal((5, {"k": 7, "v": 1}))
    goes_on(KEYED, bad, DataError, whole(message), [AFTER_A_STEP], one_by_one=True)


@pytest.mark.parametrize("time", [5.5, 5.0, Fraction(11, 2), Decimal("5.5"), np.float64(5)], ids=repr)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_number_that_is_no_integer_is_no_time(time, ordered):
    """It may pass the comparison with the next edge, and is found when the buffer is emptied."""
    op = IN_ORDER.operator(ordered=ordered)
    op.process(1, {"v": 1})
    op.process(2, {"v": 2})
    with pytest.raises(DataError, match=f"^{re.escape(KIND.format(time))}(; it was left out)?$"):
        late_refusal((time, {"v": 100}))(op)
    op.process(6, {"v": 3})
    assert [r.values for r in op.close()] == [{"total": 6, "n": 3}]


def test_of_many_bad_rows_each_is_named():
    op = PLAIN.operator()
    op.process_batch({"t": [1], "v": [1]})
    for time, value in [(1, "x"), (1, 2), (1, "y"), (1, 3)]:
        op.process(time, {"v": value})
    for value in "xy":
        with pytest.raises(DataError, match=f"got '{value}' in the row at time 1; it was left out"):
            op.advance(-100)
    op.advance(-100)
    assert [r.values["all"] for r in op.close() if r.query == "b"] == [[1, 2, 3]]


def test_rows_before_the_type_is_known_are_not_lost():
    op = PLAIN.operator()
    op.process(1, {"v": None})
    with pytest.raises(DataError, match="column 'v' holds only nulls so far"):
        op.advance(-100)
    op.process(2, {"v": 5})
    assert [r.values for r in op.close() if r.query == "a"] == [{"total": 5, "n": 2}]


def test_types_that_were_said_hold_for_single_rows():
    op = IN_ORDER.operator(types={"v": pa.decimal128(10, 2)})
    op.process(1, {"v": 1})
    op.process(1, {"v": Decimal("0.25")})
    assert [r.values for r in op.close()] == [{"total": Decimal("1.25"), "n": 2}]


# -- time zones

ZONED = sw.Workload("t").query("a", sw.tumbling("10 seconds"), n=sw.count())
#: Windows that take any kind of time.
COUNTED = sw.Workload("t").query("a", sw.tumbling(sw.rows(2)), n=sw.count())
AWARE, NAIVE = dt.datetime(2024, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1)
KINDS = {"aware": AWARE, "naive": NAIVE, "integer": 5}
TWO_KINDS = [pytest.param(KINDS[a], KINDS[b], id=f"{a}-{b}") for a, b in itertools.permutations(KINDS, 2)]


@pytest.mark.parametrize(("good", "bad"), [(AWARE, NAIVE), (NAIVE, AWARE)])
def test_a_row_of_another_zone_than_a_batch_is_refused_at_once(good, bad):
    op = ZONED.operator()
    op.process_batch({"t": [good]})
    with pytest.raises(DataError, match="times with a time zone, times without one and plain integers cannot be mixed"):
        op.process(bad, {})
    op.process(good, {})
    assert [r.values for r in op.close()] == [{"n": 2}]


@pytest.mark.parametrize(("good", "bad"), TWO_KINDS)
def test_batches_of_two_kinds_of_time_do_not_mix(good, bad):
    op = COUNTED.operator()
    op.process_batch({"t": [good]})
    types = {AWARE: "timestamp[us, tz=UTC]", NAIVE: "timestamp[us]", 5: "int64"}
    kinds = "integers and timestamps" if 5 in (good, bad) else "with and without a time zone"
    message = f"the time column 't' held {types[good]} so far, and now {types[bad]}; {kinds} cannot "
    with pytest.raises(DataError, match=whole(message + "be mixed: convert one of them")):
        op.process_batch({"t": [bad]})
    op.process_batch({"t": [good]})
    assert [r.values for r in op.close()] == [{"n": 2}]


@pytest.mark.parametrize(("good", "bad"), TWO_KINDS)
@pytest.mark.parametrize("before", ["row", "flushed row", "batch"])
def test_rows_of_two_kinds_of_time_do_not_mix(good, bad, before):
    op = COUNTED.operator()
    if before == "batch":
        op.process_batch({"t": [good]})
    else:
        op.process(good, {})
    if before == "flushed row":
        op.advance(0)
    message = (
        "times with a time zone, times without one and plain integers cannot be mixed; got {!r} after another kind; "
    )
    with pytest.raises(DataError, match=whole(message.format(bad) + "convert one of them")):
        op.process(bad, {})
    op.process(good, {})
    assert [r.values for r in op.close()] == [{"n": 2}]


def test_zones_other_than_utc_are_converted():
    op = ZONED.operator()
    berlin = dt.timezone(dt.timedelta(hours=1))
    op.process(AWARE, {})
    op.process(AWARE.astimezone(berlin), {})
    assert [(r.start, r.values) for r in op.close()] == [(1_704_067_200_000_000, {"n": 2})]


# -- order


@pytest.mark.parametrize("one_by_one", [False, True])
def test_rows_that_go_back_are_refused_on_an_ordered_stream(one_by_one):
    op = IN_ORDER.operator(ordered=True)
    good = [(1, 1), (5, 2), (11, 3), (11, 4), (25, 5)]
    out = []
    for t, v in good:
        out += op.process(t, {"v": v}) if one_by_one else op.process_batch({"t": [t], "v": [v]})
        back = f"got {t - 1} after {t}; sort them, or use operator() and advance()"
        with pytest.raises(DataError, match=whole(f"rows must come in event-time order with ordered=True; {back}")):
            op.process(t - 1, {"v": 100})
        back = f"row 0 has {t - 1} after {t}; sort them, or use operator() and advance()"
        with pytest.raises(DataError, match=whole(f"rows must come in event-time order with ordered=True; {back}")):
            op.process_batch({"t": [t - 1], "v": [100]})
        back = f"row 2 has {t} after {t + 100}; sort them, or use operator() and advance()"
        with pytest.raises(DataError, match=whole(f"rows must come in event-time order with ordered=True; {back}")):
            op.process_batch({"t": [t, t + 100, t], "v": [100] * 3})
    out += op.close()
    assert [(r.start, r.values["total"]) for r in out] == [(0, 3), (10, 7), (20, 5)]


# -- watermarks


@pytest.mark.parametrize(
    ("mark", "error", "message"),
    [
        (None, QueryError, "`watermark` must be a point in time; got None; "),
        (1.5, QueryError, "`watermark` must be a point in time; got 1.5, a float; "),
        (True, QueryError, "`watermark` must be a point in time; got True, a boolean; "),
        ("soon", QueryError, "`watermark` is not a point in time that we can read; got 'soon'; "),
        ("2024-01-01", DataError, "`watermark` must be an integer, as the windows are; got '2024-01-01'"),
        (AWARE, DataError, "`watermark` must be an integer, as the windows are; got datetime.datetime("),
        (2**61, DataError, f"`watermark` must be an event time; got {2**61}"),
        (-(2**61), DataError, f"`watermark` must be an event time; got {-(2**61)}"),
    ],
)
def test_a_watermark_is_an_event_time(mark, error, message):
    goes_on(PLAIN, lambda op: op.advance(mark), error, f"^{re.escape(message)}")


def test_a_watermark_does_not_go_back():
    op = PLAIN.operator()
    op.process_batch({"t": [3], "v": [1]})
    first = list(op.advance(10))
    message = "the watermark must not go back; it is at 10 and was given as 9; keep the larger"
    with pytest.raises(DataError, match=whole(message)):
        op.advance(9)
    assert list(op.advance(10)) == []
    assert len(first) == 2


def test_a_watermark_before_the_first_row_counts():
    op = PLAIN.operator()
    op.advance(50)
    with pytest.raises(DataError, match="it is at 50 and was given as 49"):
        op.advance(49)
    op.process(5, {"v": 1})
    assert list(op.close()) == []
    assert [r.time for r in op.late()] == [5]


def test_watermarks_are_instants_in_any_spelling():
    op = ZONED.operator()
    op.process(NAIVE, {})
    assert len(op.advance("2024-01-01 00:00:09")) == 0
    assert len(op.advance(dt.datetime(2024, 1, 1, 0, 0, 10))) == 1


# -- the end


@pytest.mark.parametrize(
    "use",
    [
        lambda op: op.process(50, {"v": 1}),
        lambda op: op.process_batch({"t": [50], "v": [1]}),
        lambda op: op.advance(100),
        lambda op: op.close(),
        lambda op: op.snapshot(),
        lambda op: op.restore({}),
        lambda op: op.add_query("z", sw.tumbling(5), n=sw.count()),
        lambda op: op.remove_query("a"),
    ],
    ids=["process", "process_batch", "advance", "close", "snapshot", "restore", "add_query", "remove_query"],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_closed_operator_takes_nothing(use, ordered):
    op = IN_ORDER.operator(ordered=ordered)
    op.process(1, {"v": 1})
    op.process(2, {"v": 1})
    assert len(op.close()) == 1
    with pytest.raises(DataError, match=whole("this operator is closed; make a new one with workload.operator()")):
        use(op)
    assert op.stats().rows == 2
    assert op.late() == []


# -- queries that come and go


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda op: op.add_query("a", sw.tumbling(5), n=sw.count()),
            QueryError,
            "there is a query 'a' already; give this one another name",
        ),
        (
            lambda op: op.add_query("z", sw.tumbling(5)),
            QueryError,
            "query 'z' computes nothing; add an aggregate, such as n=sw.count()",
        ),
        (
            lambda op: op.add_query("z", sw.tumbling(5), x=sw.sum("w")),
            QueryError,
            "column 'w' was never read before, so its type is not known; declare it when the operator is made: "
            "operator(types={'w': 'double'})",
        ),
        (
            lambda op: op.add_query("z", sw.tumbling(5), total=sw.avg("v")),
            AggregateError,
            "queries 'a' and 'z' both have a column 'total', of types int64 and double; give one of them another name",
        ),
        (
            lambda op: op.add_query("z", sw.tumbling(2**62), n=sw.count()),
            QueryError,
            "query 'z': tumbling(4611686018427387904) reaches further than event times do, which end at 2**60; make it "
            "shorter",
        ),
        (
            lambda op: op.add_query("z", sw.tumbling("5 seconds"), n=sw.count()),
            QueryError,
            "one workload has one notion of time; got durations in query 'z' and plain integers in `lateness`; "
            "use durations for a timestamp column, integers for an integer one",
        ),
        (lambda op: op.remove_query("zz"), QueryError, "there is no query 'zz'; known: 'a', 'b'"),
    ],
)
def test_a_query_that_does_not_fit_is_not_added(change, error, message):
    goes_on(PLAIN, change, error, whole(message), LATER)


def test_the_last_query_stays():
    op = IN_ORDER.operator()
    with pytest.raises(QueryError, match=whole("there is no query 'z'; known: 'a'")):
        op.remove_query("z")
    with pytest.raises(QueryError, match=whole("'a' is the only query; close the operator instead of removing it")):
        op.remove_query("a")


# -- snapshots


def snapshot_of(workload, **how):
    op = workload.operator(**how)
    op.process_batch({"t": [1], "k": ["p"], "v": [1], "o": [1]})
    return op.snapshot()


OTHER = (
    "the snapshot belongs to another workload: its `{}` is {!r}, this one's {!r}; only queries may be added or removed"
)


def other(**changes) -> sw.Workload:
    workload = sw.Workload(**{"time": "t", "lateness": 15, **changes})
    for query in PLAIN.queries:
        workload = workload.query(query.name, query.window, **query.aggregates)
    return workload


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        ({}, "this is not a snapshot of an operator; got dict; use what snapshot() gave"),
        (None, "this is not a snapshot of an operator; got NoneType; use what snapshot() gave"),
        (b"bytes", "this is not a snapshot of an operator; got bytes; use what snapshot() gave"),
        ({**snapshot_of(PLAIN), "format": 99}, "the snapshot has format 99, and this version reads up to 7; upgrade "),
        ({**snapshot_of(PLAIN), "format": 1}, "the snapshot has format 1, and this version reads 5 to 7; finish with"),
        (snapshot_of(KEYED), OTHER.format("keys", ["k"], [])),
        (snapshot_of(other(lateness=16)), OTHER.format("lateness", 16, 15)),
        (snapshot_of(other(order=["o"])), OTHER.format("order", ["o"], [])),
        (snapshot_of(PLAIN, ordered=True), OTHER.format("ordered", True, False)),
        (
            snapshot_of(sw.Workload("t", lateness=15).query("z", sw.tumbling(7), n=sw.count())),
            "the snapshot belongs to another workload: it has queries ['z'], this one ['a', 'b'], and none is the same",
        ),
        (
            snapshot_of(sw.Workload("t", lateness=15).query("a", sw.tumbling(7), n=sw.count())),
            "the snapshot belongs to another workload: it has queries ['a'], this one ['a', 'b'], and none is the same",
        ),
    ],
)
def test_the_state_of_another_workload_is_refused(snapshot, message):
    goes_on(PLAIN, lambda op: op.restore(snapshot), StateError, f"^{re.escape(message)}")


def test_the_time_column_is_part_of_what_a_workload_is():
    op = other(time="s").operator()
    with pytest.raises(StateError, match=whole(OTHER.format("time", "t", "s"))):
        op.restore(snapshot_of(PLAIN))


def test_a_snapshot_that_never_read_a_column_is_refused():
    less = sw.Workload("t").query("n", sw.tumbling(10), n=sw.count())
    more = less.query("s", sw.tumbling(10), s=sw.sum("v"))
    op = more.operator()
    message = "the snapshot never read column 'v', so its type is not known; declare it when the operator is made: "
    with pytest.raises(StateError, match=whole(message + "operator(types={'v': 'double'})")):
        op.restore(snapshot_of(less))
    assert len(more.operator(types={"v": "double"}).restore(snapshot_of(less)).close()) >= 1


def test_a_refused_snapshot_is_not_changed():
    snapshot = snapshot_of(KEYED)
    with pytest.raises(StateError):
        PLAIN.operator().restore(snapshot)
    assert [r.values for r in KEYED.operator().restore(snapshot).close() if r.query == "a"] == [{"total": 1, "n": 1}]


def test_two_aggregates_of_one_name_are_refused():
    """Functions without a name of their own are all called the same, and state is kept under names."""
    add = sw.aggregate(combine=lambda a, b: a + b, identity=0, commutative=True)
    top = sw.aggregate(combine=lambda a, b: max(a, b), identity=0, commutative=True)
    message = (
        f"query 'q': two different aggregates are called {top('v')!r}; give one of them another name: "
        "sw.aggregate(..., name='...')"
    )
    with pytest.raises(QueryError, match=whole(message)):
        sw.Workload("t").query("q", sw.tumbling(10), a=add("v"), b=top("v"))
    with pytest.raises(QueryError, match=whole(message)):
        sw.Workload("t").query("p", sw.tumbling(10), a=add("v")).query("q", sw.tumbling(10), b=top("v"))


def test_a_row_that_user_code_refuses_is_left_out_and_the_others_stay():
    def positive(v):
        if v < 0:
            raise ValueError("negative")
        return v

    careful = sw.aggregate(lift=positive, combine=lambda a, b: a + b, identity=0, commutative=True, name="careful")
    op = sw.Workload("t").query("q", sw.tumbling(10), x=careful("v")).operator()

    def give(*rows):
        for t, v in rows:
            op.process(t, {"v": v})
        op.advance(0)

    message = (
        "query 'q': careful('v') at the record of time 2: `lift` raised ValueError('negative'); the record was left out"
    )
    with pytest.raises(DataError, match=whole(message)):
        give((1, 2), (2, -3))
    give((3, 4))
    assert [r.values for r in op.close()] == [{"x": 6}]


# -- amounts beyond what the engine can compute with


@pytest.mark.parametrize(
    "window",
    [sw.tumbling(2**62), sw.sliding(2**62, every=5), sw.session(2**62), sw.between(0, 2**62), sw.tumbling(2**63 - 1)],
    ids=repr,
)
def test_windows_too_long_to_compute_with_are_refused_and_not_forgotten(window):
    workload = sw.Workload("t").query("q", window, n=sw.count())
    message = f"query 'q': {window!r} reaches further than event times do, which end at 2**60; make it shorter"
    with pytest.raises(QueryError, match=whole(message)):
        workload.operator()


def test_a_window_as_long_as_time_is_computed():
    op = sw.Workload("t").query("q", sw.tumbling(2**60), n=sw.count()).operator()
    op.process_batch({"t": [-1, 1, 2]})
    assert [(r.start, r.end, r.values["n"]) for r in op.close()] == [(-(2**60), 0, 1), (0, 2**60, 2)]


@pytest.mark.parametrize("parameter", ["lateness", "watermark"])
def test_waiting_for_ever_is_waiting(parameter):
    workload = sw.Workload("t", **{parameter: 2**63 - 1}).query("q", sw.tumbling(10), n=sw.count())
    results = [r for some in workload.operator().drive([{"t": [1, 15]}, {"t": [2]}]) for r in some]
    assert [r.values["n"] for r in results if r.start == 0][-1] == 2
