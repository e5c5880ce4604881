"""Results: rows for those who iterate, columns for Arrow and pandas, and the same in both."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise import results as results_module
from slicewise.columns import Column
from slicewise.results import INSERT, OPEN_END, RESERVED, RETRACT, UPDATE, Block, Result, Results, ResultSchema

INT = pa.int64()


def schema(**how) -> ResultSchema:
    said = {
        "key_names": ("k",),
        "key_types": (pa.string(),),
        "time_type": INT,
        "queries": (("a", ("x", "y")), ("b", ("y", "z"))),
        "column_types": {"x": INT, "y": pa.float64(), "z": pa.list_(INT)},
    }
    return ResultSchema(**{**said, **how})


def block(query, values, change=INSERT, revision=0, start=0, end=10, key="p") -> Block:
    n = len(query)
    return Block(
        keys=(Column.of([key] * n, pa.string()),),
        query=np.array(query),
        start=np.full(n, start),
        end=np.full(n, end),
        change=np.full(n, change),
        revision=np.full(n, revision),
        values=tuple(Column.of(v, t) for v, t in values),
    )


A = block([0], [([1], INT), ([0.5], pa.float64())])
B = block([1], [([1.5], pa.float64()), ([[1, 2]], pa.list_(INT))], UPDATE, 2, key=None)
GONE = block([0], [], RETRACT, 1)


def test_results_are_rows_to_those_who_iterate():
    assert list(Results(schema(), [A, B, GONE])) == [
        Result(("p",), "a", 0, 10, "insert", 0, {"x": 1, "y": 0.5}),
        Result((None,), "b", 0, 10, "update", 2, {"y": 1.5, "z": [1, 2]}),
        Result(("p",), "a", 0, 10, "retract", 1, {"x": None, "y": None}),
    ]


def test_rows_hold_python_values():
    (row,) = Results(schema(), [A])
    assert [type(x) for x in (row.start, row.end, row.revision, row.values["x"])] == [int] * 4
    assert type(row.values["y"]) is float


def test_results_are_columns_to_arrow():
    table = Results(schema(), [A, B, GONE]).to_arrow()
    assert table.schema == schema().arrow()
    assert table.column_names == ["k", *RESERVED, "x", "y", "z"]
    assert table.to_pylist() == [
        {
            "k": "p",
            "query": "a",
            "window": {"start": 0, "end": 10},
            "span": None,
            "change": "insert",
            "revision": 0,
            "x": 1,
            "y": 0.5,
            "z": None,
        },
        {
            "k": None,
            "query": "b",
            "window": {"start": 0, "end": 10},
            "span": None,
            "change": "update",
            "revision": 2,
            "x": None,
            "y": 1.5,
            "z": [1, 2],
        },
        {
            "k": "p",
            "query": "a",
            "window": {"start": 0, "end": 10},
            "span": None,
            "change": "retract",
            "revision": 1,
            "x": None,
            "y": None,
            "z": None,
        },
    ]


def test_queries_of_a_block_may_hold_a_column_at_different_places():
    # Two queries compute the same aggregates and call them differently, or the same in another order.
    said = schema(queries=(("a", ("x", "w")), ("b", ("w", "x")), ("c", ("u", "v"))))
    said.column_types.clear()
    said.column_types.update(x=INT, w=INT, u=INT)
    both = block([0, 1, 2], [([1, 2, 3], INT), ([10, 20, 30], INT)])
    table = Results(said, [both]).to_arrow()
    assert table["x"].to_pylist() == [1, 20, None]
    assert table["w"].to_pylist() == [10, 2, None]
    assert table["u"].to_pylist() == [None, None, 3]
    assert [r.values for r in Results(said, [both])] == [{"x": 1, "w": 10}, {"w": 2, "x": 20}, {"u": 3, "v": 30}]


def test_an_end_that_never_came_is_none():
    results = Results(schema(), [block([0], [([1], INT), ([0.5], pa.float64())], end=OPEN_END)])
    assert next(iter(results)).end is None
    assert results.to_arrow()["window"].to_pylist() == [{"start": 0, "end": None}]


def test_bounds_are_timestamps_to_arrow_and_microseconds_to_rows():
    us = 1_704_067_200_000_000
    for zone in (None, "UTC"):
        said = schema(time_type=pa.timestamp("us", zone))
        results = Results(said, [block([0], [([1], INT), ([0.5], pa.float64())], start=us, end=us + 1)])
        assert next(iter(results)).start == us
        start = results.to_arrow()["window"].to_pylist()[0]["start"]
        assert start == dt.datetime(2024, 1, 1, tzinfo=dt.UTC if zone else None)


def test_nothing_is_nothing():
    nothing = Results()
    assert len(nothing) == 0
    assert not nothing
    assert list(nothing) == []
    assert nothing.to_arrow().num_rows == 0
    assert repr(nothing) == "Results(0 rows)"
    empty = Results(schema(), [block([], [([], INT), ([], pa.float64())])])
    assert not empty
    assert empty.to_arrow().schema == schema().arrow()


def test_results_are_joined():
    said = schema()
    both = Results(said, [A]) + Results(said, [B])
    assert len(both) == 2
    assert both
    assert repr(both) == "Results(2 rows)"
    assert list(Results() + both) == list(both + Results()) == list(both)


def test_results_go_to_pandas():
    frame = Results(schema(), [A, B]).to_pandas()
    assert frame["query"].tolist() == ["a", "b"]
    assert frame["y"].tolist() == [0.5, 1.5]
    assert frame["window"].tolist()[0] == {"start": 0, "end": 10}


# -- through the operator


def test_rows_and_columns_say_the_same():
    workload = (
        sw.Workload("t", keys=["k", "j"], lateness=100)
        .query("a", sw.tumbling(10), n=sw.count(), all=sw.collect_list("v"))
        .query("b", sw.session(3), all=sw.collect_list("v"), peak=sw.max("v"))
    )
    op = workload.operator()
    op.process_batch({"t": [1, 4, 8, 25], "k": ["x", None, "x", "x"], "j": [1, 1, 1, 2], "v": [1, None, 3, 4]})
    results = op.advance(20)
    op.process_batch({"t": [5], "k": ["x"], "j": [1], "v": [7]})
    results = results + op.advance(21) + op.close()
    for row, line in zip(results, results.to_arrow().to_pylist(), strict=True):
        assert row.key == (line["k"], line["j"])
        assert (row.query, row.change, row.revision) == (line["query"], line["change"], line["revision"])
        assert {"start": row.start, "end": row.end} == line["window"]
        assert row.values == {name: line[name] for name in row.values}
        assert all(line[name] is None for name in ("n", "all", "peak") if name not in row.values)
    assert {r.change for r in results} == {"insert", "update", "retract"}


def test_two_queries_may_share_a_column_if_the_types_agree():
    workload = sw.Workload("t").query("a", sw.tumbling(10), x=sw.sum("v")).query("b", sw.tumbling(5), x=sw.sum("v"))
    op = workload.operator()
    op.process_batch({"t": [1], "v": [7]})
    assert op.close().to_arrow()["x"].to_pylist() == [7, 7]


def test_a_users_result_type_is_found_from_the_results():
    joined = sw.aggregate(combine=lambda a, b: a + b, identity="", name="joined")
    op = sw.Workload("t").query("a", sw.tumbling(10), x=joined("v")).operator()
    op.process_batch({"t": [1, 2, 11], "v": ["p", "q", "r"]})
    table = op.close().to_arrow()
    assert table["x"].to_pylist() == ["pq", "r"]
    assert table.schema.field("x").type == pa.string()


def test_results_before_and_after_a_change_of_queries_are_joined_by_name():
    op = (
        sw.Workload("t")
        .query("a", sw.tumbling(10), x=sw.count())
        .query("b", sw.tumbling(10), y=sw.count(), z=sw.max("v"))
        .operator()
    )
    op.process_batch({"t": [1, 12], "v": [1, 2]})
    before = op.advance(10)
    op.remove_query("a")
    after = op.advance(20)
    expected = [(r.query, r.values) for results in (before, after) for r in results]
    assert [(r.query, r.values) for r in before + after] == expected
    assert (before + after).to_arrow()["z"].to_pylist() == [None, 1, 2]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_window_bounds_have_the_type_of_the_time_column(zone):
    op = sw.Workload("ts").query("q", sw.tumbling("1 hour"), n=sw.count()).operator()
    op.process_batch({"ts": pa.array([dt.datetime(2024, 1, 1, 0, 30)], pa.timestamp("ms", zone))})
    table = op.close().to_arrow()
    assert table.schema.field("window").type.field("start").type == pa.timestamp("us", zone)


def test_results_of_queries_that_share_windows_are_made_when_they_are_read(monkeypatch):
    shared = replace(
        block([0, 0], [([1, 2], INT), ([0.5, None], pa.float64())]),
        start=np.array([0, 10]),
        end=np.array([10, 20]),
        query=np.array([0, 1, 0, 1, 1]),
        window=np.array([0, 0, 1, 1, 0]),
    )
    both = schema(queries=(("a", ("x", "y")), ("b", ("x", "y"))))
    expected = [("a", 0, 1, 0.5), ("b", 0, 1, 0.5), ("a", 10, 2, None), ("b", 10, 2, None), ("b", 0, 1, 0.5)]
    for most in (200_000, 2):
        monkeypatch.setattr(results_module, "MOST", most)
        results = Results(both, [shared])
        assert len(results) == 5
        assert [(r.query, r.start, *r.values.values()) for r in results] == expected
        assert results.to_arrow()["query"].to_pylist() == [query for query, *_ in expected]
        assert [len(piece.start) for piece in results.blocks] == ([5] if most > 5 else [2, 2, 1])
