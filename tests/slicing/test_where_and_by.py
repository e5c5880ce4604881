"""Rows that count and aggregates by category: every aggregate beside its definition, and what users see of them."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import AggregateError, DataError, OverfullError, QueryError, RefusedRowsError, StateError
from slicewise.same import is_same
from slicewise.testing.definitions import value_of
from tests.aggregates.over import CASES, make, over
from tests.profiles import fewer

ROW = st.tuples(st.none() | st.booleans(), st.none() | st.sampled_from("abc"))


def said(rows: list[Any], types: tuple[pa.DataType, ...], names: tuple[str, ...]) -> list[dict[str, Any]]:
    return [dict(zip(names, values, strict=True)) | {"ok": ok, "c": c} for values, (ok, c) in rows]


@pytest.mark.parametrize("name", dict.fromkeys(name for name, _, _ in CASES))
@fewer(5)
@given(data=st.data())
def test_every_aggregate_of_some_rows_and_by_category(name: str, data: st.DataObject) -> None:
    _, types, values = data.draw(st.sampled_from([case for case in CASES if case[0] == name]))
    rows = data.draw(st.lists(st.tuples(values, ROW), min_size=1, max_size=8))
    plain = make(name)
    aggregate = plain.by("c").where("ok") if data.draw(st.booleans()) else plain.where("ok")
    columns = {"ok": pa.bool_(), "c": pa.string(), **dict(zip(plain.columns, types, strict=True))}
    named = said(rows, types, plain.columns)
    condition = sw.expr("ok")
    inputs = [[row["ok" if c == condition else c] for row in named] for c in aggregate.columns]
    bound = [pa.bool_() if c == condition else columns[c] for c in aggregate.columns]
    starts = sorted({0, *data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=2))})
    try:
        results = over(aggregate, *inputs, types=bound, starts=starts)
    except OverflowError:
        return  # which windows do not fit is tested elsewhere
    for start, end, result in zip(starts, [*starts[1:], len(rows)], results, strict=True):
        window = [{**row, condition: row["ok"]} for row in named[start:end]]
        expected = value_of(aggregate, window, list(range(start, end)))
        result = dict(result) if isinstance(expected, dict) and isinstance(result, list) else result
        assert is_same(_plain(result), _plain(expected), 1e27 if "decimal" in str(types) else 1e4)


def _plain(value: Any) -> Any:
    """Maps inside of maps come from Arrow as lists of pairs."""
    if isinstance(value, dict):
        return [(k, _plain(v)) for k, v in value.items()]
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def run(workload: sw.Workload, rows: dict[str, list[Any]], **options: Any) -> list[Any]:
    op = workload.operator(**options)
    results = list(op.process_batch(rows))
    return [(*r.key, r.start, *r.values.values()) for r in [*results, *op.close()]]


def test_twice_where_is_and() -> None:
    once = sw.sum("v").where("v > 1 or k = 'x'").where("v < 4")
    assert repr(once) == "sum('v').where(\"(v > 1 or k = 'x') and (v < 4)\")"
    rows = {"t": [1, 2, 3, 4], "v": [1, 2, 4, 3], "k": ["x", "y", "x", None]}
    assert run(sw.Workload(time="t").query("q", sw.tumbling(10), s=once), rows) == [(0, 6)]


def test_where_comes_before_by_in_whichever_order_they_are_said() -> None:
    first, second = sw.count().where("v > 1").by("k", most=5), sw.count().by("k", most=5).where("v > 1")
    assert first == second
    assert repr(first) == repr(second) == "count().by('k', most=5).where('v > 1')"
    rows = {"t": [1, 2, 3], "v": [1, 2, 2], "k": ["x", "y", None]}
    assert run(sw.Workload(time="t").query("q", sw.tumbling(10), n=first), rows) == [(0, {"y": 1})]


def test_what_does_not_count_cannot_fail() -> None:
    workload = sw.Workload(time="t").query("q", sw.tumbling(10), s=sw.sum(sw.expr("v * 2")).where("v < 10"))
    assert run(workload, {"t": [1, 2], "v": [2**62, 4]}) == [(0, 8)]
    workload = sw.Workload(time="t", where="v < 10").query("q", sw.tumbling(10), s=sw.sum(sw.expr("v * 2")))
    assert run(workload, {"t": [1, 2], "v": [2**62, 4]}) == [(0, 8)]


def test_rows_that_nobody_means_move_the_watermark_and_nothing_else() -> None:
    workload = sw.Workload(time="t", watermark=2, where="ok").query("q", sw.tumbling(10), n=sw.count())
    op = workload.operator()
    steps = op.drive(
        [{"t": [1, 13], "ok": [True, False]}, {"t": [3, 4], "ok": [True, False]}, {"t": [14], "ok": [True]}]
    )
    assert [[(r.start, r.values["n"]) for r in results] for results in steps] == [[(0, 1)], [], [], [(10, 1)]]
    assert [row.time for row in op.late()] == [3]

    ordered = workload.operator(ordered=True)
    assert len(ordered.process(1, {"ok": True})) == 0
    assert [r.values for r in ordered.process(12, {"ok": False})] == [{"n": 1}]
    assert len(ordered.process(5, {"ok": False})) == 0  # nobody's row is never out of order
    with pytest.raises(DataError, match=r"^rows must come in event-time order with ordered=True; got 5 after 12; "):
        ordered.process(5, {"ok": True})
    ordered.process_batch({"t": [13, 12, 14], "ok": [True, False, True]})
    assert [r.values for r in ordered.close()] == [{"n": 2}]


def test_rows_that_nobody_means_are_not_bad() -> None:
    from datetime import datetime

    workload = sw.Workload(time="t", where="ok").query("q", sw.tumbling("1 hour"), n=sw.count())
    noon, later = datetime(2024, 5, 1, 12), datetime(2025, 5, 1, 12)
    op = workload.operator(ahead="1 hour", clock=lambda: 1714564800_000000)
    op.process_batch({"t": [noon, later, None], "ok": [True, False, None]})
    op.process(later, {"ok": False})
    op.process(None, {"ok": False})
    with pytest.raises(RefusedRowsError, match=r"^the record of time 2025-05-01 12:00:00: it is further ahead"):
        op.process(later, {"ok": True})
    with pytest.raises(DataError, match=r"^the time column 't' is null in row 1; every row needs an event time$"):
        op.process_batch({"t": [noon, None], "ok": [True, True]})
    assert op.stats().rows == 1
    assert [r.values for r in op.close()] == [{"n": 1}]


@pytest.mark.parametrize("far", [None, 2**61, -(2**61)])
def test_rows_that_nobody_means_may_have_no_event_time_in_range(far: int | None) -> None:
    workload = sw.Workload("t", where="v > 0").query("q", sw.tumbling(10), n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [1, far, 3], "v": [1, 0, 1]})
    op.process(far, {"v": 0})
    assert [r.values for r in op.close()] == [{"n": 2}]
    with pytest.raises(DataError, match="row 1"):
        workload.operator().process_batch({"t": [1, far, 3], "v": [1, 1, 1]})


def test_a_filter_that_leaves_its_type_makes_a_bad_row() -> None:
    workload = sw.Workload(time="t", where="v * 2 > 3").query("q", sw.tumbling(10), n=sw.count())
    op = workload.operator()
    message = (
        "expr('v * 2 > 3') at the record of time 2: 4611686018427387904 * 2 does not fit bigint; the record was left"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}"):
        op.process_batch({"t": [1, 2, 3], "v": [1, 2**62, 5]})
    assert [r.values for r in op.close()] == [{"n": 1}]


def test_an_overfull_window_has_no_value_and_is_named() -> None:
    workload = sw.Workload(time="t", keys=["k"]).query(
        "q", sw.tumbling(10), s=sw.sum("v").by("v", most=2), n=sw.count()
    )
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3, 4, 11], "k": list("aaaba"), "v": [1, 2, 3, 4, 5]})
    message = (
        "query 'q', key k='a', window [0, 10): sum('v').by('v', most=2) has more categories than `most` allows; "
        "its value is null"
    )
    with pytest.raises(OverfullError, match=f"^{re.escape(message)}$"):
        op.close()
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3, 4, 11], "k": list("aaaba"), "v": [1, 2, 3, 4, 5]})
    with pytest.raises(OverfullError):
        op.advance(10)
    assert sorted((r.key, r.start, r.values["s"], r.values["n"]) for r in op.close()) == [
        (("a",), 0, None, 3),
        (("a",), 10, {5: 5}, 1),
        (("b",), 0, {4: 4}, 1),
    ]


def test_user_code_by_category_fails_alone() -> None:
    halves = sw.aggregate(lift=lambda v: 1 / v, combine=lambda a, b: a + b, identity=0.0, name="halves")
    workload = sw.Workload(time="t").query("q", sw.tumbling(10), s=halves("v").by("k").where("v <> 0"))
    assert run(workload, {"t": [1, 2, 3], "v": [2, 0, 4], "k": ["a", "a", "b"]}) == [(0, {"a": 0.5, "b": 0.25})]
    op = sw.Workload(time="t").query("q", sw.tumbling(10), s=halves("v").by("k")).operator()
    with pytest.raises(DataError, match="`lift` raised ZeroDivisionError"):
        op.process_batch({"t": [1, 2], "v": [2, 0], "k": ["a", "a"]})
    assert [r.values for r in op.close()] == [{"s": {"a": 0.5}}]


def test_a_snapshot_belongs_to_its_filter() -> None:
    def workload(where: str | None) -> sw.Workload:
        return sw.Workload(time="t", where=where).query("q", sw.tumbling(10), n=sw.count())

    snapshot = workload("v > 1").operator().snapshot()
    message = (
        "the snapshot belongs to another workload: its `where` is 'v > 1', this one's None; only queries may be added"
    )
    with pytest.raises(StateError, match=f"^{re.escape(message)}"):
        workload(None).operator().restore(snapshot)
    workload("v > 1").operator().restore(snapshot)


def test_computed_columns_widen_with_their_inputs() -> None:
    workload = sw.Workload(time="t").query(
        "q", sw.tumbling(10), s=sw.sum(sw.expr("v + 1")), m=sw.sum("d").by("d"), l=sw.collect_list(sw.expr("-v"))
    )
    narrow = {"v": pa.int32(), "d": pa.decimal128(5, 1)}
    op = workload.operator(types=narrow)
    op.process_batch(pa.table({"t": [1], "v": pa.array([3], pa.int32()), "d": pa.array([25], pa.decimal128(5, 1))}))
    wider = workload.operator(types={"v": pa.int64(), "d": pa.decimal128(8, 3)}).restore(op.snapshot())
    wider.process_batch(pa.table({"t": [2], "v": [4], "d": pa.array([25], pa.decimal128(8, 3))}))
    assert [r.values for r in wider.close()] == [{"s": 9, "m": {25: 50}, "l": [-3, -4]}]


@pytest.mark.parametrize(
    ("make_it", "error", "message"),
    [
        (
            lambda: sw.sum("v").by("a").by("b"),
            QueryError,
            "sum('v').by('a', most=1000) has categories already; got 'b' too; make one column of both, as in "
            "sw.expr(\"case when a = 1 then 'x' else b end\")",
        ),
        (lambda: sw.sum("v").by("a", most=0), QueryError, "`most` must be a number of categories, 1 or more; got 0"),
        (lambda: sw.sum("v").by(3), QueryError, "`by` must name a column, or be an expression; got 3"),
        (lambda: sw.sum("v").where(3), QueryError, "`where` must be a condition such as \"kind = 'view'\"; got 3"),
        (
            lambda: sw.sum("v").where("v >"),
            QueryError,
            "`where` ends where a value should be; got\n    v >\n       ^\nwrite a column name, or an expression such "
            "as \"price < 10 and kind = 'trade'\"",
        ),
        (
            lambda: sw.Workload(time="t", keys=[sw.expr("v % 2")]),
            QueryError,
            "`keys` must name a column of the rows, which results show; got expr('v % 2'); add it to the rows first",
        ),
        (
            lambda: sw.Workload(time="t").query("q", sw.tumbling(5), s=sw.sum().where("v > 3")),
            QueryError,
            "query 'q': sum().where('v > 3') needs a column, as in sum('v')",
        ),
        (
            lambda: run(
                sw.Workload(time="t").query("q", sw.tumbling(5), s=sw.sum("v").where("v * 2")), {"t": [1], "v": [2]}
            ),
            AggregateError,
            "`where` of sum('v').where('v * 2') must be true or false; got bigint: compare it with something",
        ),
        (
            lambda: run(
                sw.Workload(time="t", where="v").query("q", sw.tumbling(5), n=sw.count()), {"t": [1], "v": [2]}
            ),
            DataError,
            "`where` must be true or false; got 'v', which is bigint; compare it with something",
        ),
        (
            lambda: run(
                sw.Workload(time="t").query("q", sw.tumbling(5), s=sw.sum("v").by("x")),
                {"t": [1], "v": [2], "x": [0.5]},
            ),
            AggregateError,
            "`by` of sum('v').by('x', most=1000) cannot take double: floats that look the same may differ, and lists, "
            "structs and maps have no order; cast the column, or round it to a decimal",
        ),
        (
            lambda: run(
                sw.Workload(time="t").query("q", sw.tumbling(5), n=sw.count().where("prise > 3")),
                {"t": [1], "price": [2]},
            ),
            DataError,
            "expr('prise > 3') reads a column 'prise' that the rows do not have; got\n    prise > 3\n    ^\ndid you "
            "mean 'price'?",
        ),
    ],
)
def test_mistakes_say_what_to_do(make_it: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        make_it()
