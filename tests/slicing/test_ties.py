"""Rows of equal time whose arrival says nothing: put in order by their values, however they were cut into pieces."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.aggregates.ordering import order_keys, sort_keys
from slicewise.columns import Column
from slicewise.errors import QueryError
from slicewise.plan.plan import SORTED, VALUES, tie_columns
from slicewise.slicing.operator import Operator
from slicewise.slicing.time.tuples import Tuples
from slicewise.testing import Oracle, fold, ties
from slicewise.testing.definitions import order_of
from slicewise.testing.expressions import computed_row
from tests.slicing.running import TYPES, assert_same, columns_of, key_of, run_operator
from tests.slicing.strategies import any_windows, mixed_workloads, rows, steps, workloads

NAN = float("nan")

#: Values of every type in Spark's order, nulls first.
IN_ORDER = {
    "bigint": (pa.int64(), [None, -(2**63), -1, 0, 2**63 - 1]),
    "double": (pa.float64(), [None, -np.inf, -1.5, 0.0, np.inf, NAN]),
    "boolean": (pa.bool_(), [None, False, True]),
    "string": (pa.string(), [None, "", "Z", "a", "a b", "é", "日本", "\U0001f600"]),
    "binary": (pa.binary(), [None, b"", b"a", b"\x7f", b"\x80", b"\xff"]),
    "decimal": (pa.decimal128(38, 2), [None, Decimal("-" + "9" * 30), Decimal("-0.01"), Decimal(0), Decimal("0.10")]),
    "date": (pa.date32(), [None, dt.date(1969, 12, 31), dt.date(2024, 1, 1)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [None, dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
    ),
    "list": (pa.list_(pa.float64()), [None, [], [None], [None, 1.0], [1.0], [1.0, None], [1.0, 2.0], [NAN]]),
    "struct": (
        pa.struct([("b", pa.string()), ("a", pa.int64())]),
        [
            None,
            {"b": None, "a": None},
            {"b": None, "a": 7},
            {"b": "x", "a": None},
            {"b": "x", "a": 1},
            {"b": "y", "a": 0},
        ],
    ),
    "map": (
        pa.map_(pa.string(), pa.int64()),
        [None, [], [("a", None)], [("a", 1)], [("b", 0), ("a", 1)], [("a", 2)], [("b", 0)]],
    ),
    "list of maps": (
        pa.list_(pa.map_(pa.string(), pa.float64())),
        [None, [], [None], [[]], [[("a", 1.0)]], [[("a", NAN)]]],
    ),
}


@pytest.mark.parametrize(("type_", "values"), IN_ORDER.values(), ids=IN_ORDER)
def test_values_of_every_type_are_put_in_spark_s_order(type_, values):
    for seed in range(10):
        shuffled = values * 2
        random.Random(seed).shuffle(shuffled)
        column = Column.of(pa.array(shuffled, type_))
        place = np.lexsort(sort_keys(column))
        twice = [value for value in values for _ in range(2)]
        assert str(column.take(place).to_arrow()) == str(pa.array(twice, type_))


def test_a_map_is_its_entries_whatever_their_order():
    type_ = pa.map_(pa.string(), pa.int64())
    column = Column.of(pa.array([[("a", 1), ("b", 2)], [("b", 2), ("a", 1)], [("a", 1)]], type_))
    assert order_keys(column.values, column.mask, type_).tolist() == [1, 1, 0]


# -- rows that are joined to others


def tuples_of(chunk, types):
    columns = {name: Column.of(pa.array([row[name] for row in chunk], type_)) for name, type_ in types.items()}
    key, time = (np.array([row[name] for row in chunk], np.int64) for name in ("k", "t"))
    return Tuples.new(key, time, columns)


LITTLE = {"a": pa.float64(), "b": pa.string(), "c": pa.list_(pa.int64()), "id": pa.int64()}
little_rows = st.fixed_dictionaries(
    {
        "k": st.integers(0, 1),
        "t": st.integers(0, 3),
        "a": st.sampled_from([None, NAN, 0.0, 1.0]),
        "b": st.sampled_from([None, "x", "y"]),
        "c": st.sampled_from([None, [], [1], [1, 2]]),
    }
)


@given(st.lists(st.lists(little_rows, max_size=8), max_size=5), st.sampled_from([["b"], ["a", "b"], ["c", "a", "b"]]))
def test_rows_find_their_place_however_they_were_cut(chunks, order):
    number = iter(range(1000))
    chunks = [[{**row, "id": next(number)} for row in chunk] for chunk in chunks]
    state = Tuples.empty(LITTLE)
    for chunk in chunks:
        before = state
        state, came = state.joined_in_order([tuples_of(chunk, LITTLE)] if chunk else [], order)
        if came is not None:
            together = [*before.columns["id"].values.tolist(), *(row["id"] for row in chunk)]
            assert [together[i] for i in came] == state.columns["id"].values.tolist()
            old = [i for i in came.tolist() if i < len(before)]
            assert old == sorted(old)  # rows keep their order among each other
    every = [row for chunk in chunks for row in chunk]
    every.sort(key=lambda row: (row["k"], row["t"], [order_of(row[name]) for name in order], row["id"]))
    assert state.columns["id"].values.tolist() == [row["id"] for row in every]


def test_rows_that_stood_in_another_order_stay_in_it():
    """As after a restart without a query that named a column: what is there keeps its place, new rows find theirs."""
    old = tuples_of([{"k": 0, "t": 5, "a": None, "b": b, "c": None, "id": i} for i, b in enumerate("zax")], LITTLE)
    new = tuples_of([{"k": 0, "t": 5, "a": None, "b": b, "c": None, "id": 3 + i} for i, b in enumerate("bz")], LITTLE)
    state, _ = old.joined_in_order([new], ["b"])
    found = dict(zip(state.columns["id"].values.tolist(), state.columns["b"].to_pylist(), strict=True))
    assert [i for i in found if i < 3] == [0, 1, 2]
    assert list(found.values()) == ["b", "z", "a", "x", "z"]


# -- which columns decide


@given(st.one_of(workloads(), mixed_workloads()))
def test_engine_and_oracle_agree_which_columns_decide(workload):
    assert tie_columns(workload) == ties.tie_columns(workload)


@given(st.one_of(workloads(), mixed_workloads()), any_windows())
def test_a_query_that_is_added_behind_the_others_adds_its_columns_behind_theirs(workload, window):
    before = tie_columns(workload)
    added = workload.query("added", window, x=sw.collect_list("w"), y=sw.sum("v"))
    after = tie_columns(added)
    measures = {m.column for q in workload.queries for m in q.window.measures}
    # What windows lie on, and whether rows are punctuation that one of them sees, goes before what is read.
    seen = added.shown_punctuation == workload.shown_punctuation
    if seen and all(m.column in {None, *measures} for m in window.measures):
        assert after[: len(before)] == before
    else:
        assert [c for c in after if c in before] == list(before)


# -- the whole engine


def by_oracle(workload, stream):
    oracle = Oracle(workload, ties="values")
    for row in stream:
        oracle.process(row["t"], row, key_of(workload, row))
    return oracle.close()


@given(st.one_of(workloads(), mixed_workloads()), st.lists(rows(), max_size=25), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(workload, stream, rng):
    expected = by_oracle(workload, stream)
    for _ in range(3):
        rng.shuffle(stream)
        op = Operator(workload, types=TYPES, ties=VALUES)
        op.process_batch(columns_of(stream))
        assert_same([list(op.close())], [expected])


@given(st.one_of(workloads(), mixed_workloads()), steps())
def test_every_step_is_that_of_the_oracle(workload, epochs):
    oracle = Oracle(workload, ties="values")
    expected = []
    for chunks, mark in epochs:
        for chunk in chunks:
            for row in chunk:
                oracle.process(row["t"], row, key_of(workload, row))
        expected.append(oracle.close() if mark is None else oracle.advance(mark))
    assert_same(run_operator(Operator(workload, types=TYPES, ties=VALUES), epochs), expected)


@given(st.one_of(workloads(), mixed_workloads()), st.lists(rows(), max_size=25))
def test_rows_that_are_sorted_already_need_not_be_compared(workload, stream):
    names = tie_columns(workload)
    read = {id(row): computed_row(names, row, TYPES) for row in stream}
    stream.sort(key=lambda row: (row["t"], [order_of(read[id(row)][name]) for name in names]))
    op = Operator(workload, types=TYPES, ties=SORTED)
    op.process_batch(columns_of(stream))
    assert_same([list(op.close())], [by_oracle(workload, stream)])


def test_in_process_rows_of_equal_time_still_go_by_arrival():
    workload = sw.Workload("t").query("q", sw.tumbling(sw.rows(2)), all=sw.collect_list("v"), first=sw.first("v"))
    op, oracle = workload.operator(), Oracle(workload)
    for v in (3, 1, 2, 0):
        op.process(5, {"v": v}), oracle.process(5, {"v": v})
    assert [r.values for r in op.close()] == [{"all": [3, 1], "first": 3}, {"all": [2, 0], "first": 2}]
    assert [r.values for r in oracle.close()] == [{"all": [3, 1], "first": 3}, {"all": [2, 0], "first": 2}]


PICKS = {
    "first": (sw.first("v"), "a"),
    "last": (sw.last("v"), "c"),
    "max_by": (sw.max_by("v", "by"), "b"),
    "min_by": (sw.min_by("v", "by"), "a"),
}


@pytest.mark.parametrize("name", PICKS)
def test_picks_take_the_smallest_value_of_a_tie_and_the_last_the_largest(name):
    """Nothing depends on the order, in one piece or in several, with rows stored beside it or not."""
    aggregate, wanted = PICKS[name]
    tied = [{"v": v, "by": by} for v, by in (("a", 1), ("c", 2), ("b", 2), ("a", 1))]
    for other in (sw.count(), sw.collect_list("v")):
        workload = sw.Workload("t").query("q", sw.tumbling(10), x=aggregate, y=other)
        for order in permutations(tied):
            for cut in (0, 2):
                op = Operator(workload, types={"v": "string", "by": "bigint"}, ties=VALUES)
                for chunk in (order[:cut], order[cut:]):
                    if chunk:
                        op.process_batch({"t": [5] * len(chunk), **{c: [r[c] for r in chunk] for c in ("v", "by")}})
                        op.advance(5)
                (result,) = op.close()
                assert result.values["x"] == wanted


def test_a_null_comes_first():
    workload = sw.Workload("t").query("q", sw.tumbling(10), first=sw.first("v"), last=sw.last("v"), m4=sw.m4("v"))
    for order in permutations([None, 2, 1]):
        op = Operator(workload, types={"v": "bigint"}, ties=VALUES)
        op.process_batch({"t": [5] * 3, "v": list(order)})
        (result,) = op.close()
        assert (result.values["first"], result.values["last"]) == (None, 2)
        assert (result.values["m4"]["first"], result.values["m4"]["last"]) == (1, 2)


def test_where_order_columns_are_given_the_row_that_they_put_first_is_picked():
    workload = sw.Workload("t", order=["o"]).query("q", sw.tumbling(10), first=sw.first("v"), all=sw.collect_list("v"))
    for order in permutations([(1, 9), (1, 8), (2, 0)]):
        op = Operator(workload, types={"o": "bigint", "v": "bigint"}, ties=VALUES)
        op.process_batch({"t": [5] * 3, "o": [o for o, _ in order], "v": [v for _, v in order]})
        (result,) = op.close()
        assert result.values == {"first": 8, "all": [8, 9, 0]}


def test_a_row_at_the_watermark_finds_its_place_and_corrects_what_was_said():
    """A punctuation at the watermark has ended a window; a row of the same time belongs before it."""
    workload = sw.Workload("t").query("q", sw.punctuated("v = 5"), all=sw.collect_list("v"))
    op, oracle = Operator(workload, types={"v": "bigint"}, ties=VALUES), Oracle(workload, ties="values")
    seen = []
    for time, v, mark in ((1, 1, 1), (4, 5, 4), (4, 3, 4), (9, 0, 9)):
        op.process_batch({"t": [time], "v": [v]})
        oracle.process(time, {"v": v})
        found = list(op.advance(mark))
        assert_same([found], [oracle.advance(mark)])
        seen += found
    assert [(r.change, r.revision, r.values["all"]) for r in seen] == [("insert", 0, [1]), ("update", 1, [1, 3])]
    assert fold(seen + list(op.close())) == {((), "q", 1, 4): {"all": [1, 3]}, ((), "q", 4, None): {"all": [5, 0]}}


def test_the_oracle_says_what_ties_may_be():
    with pytest.raises(QueryError, match=r"^`ties` must be 'arrival' or 'values'; got 'value'$"):
        Oracle(sw.Workload("t").query("q", sw.tumbling(10), n=sw.count()), ties="value")
