"""User code that raises: on a row, which is named and left out; in a window, which is named and has no value."""

from __future__ import annotations

import copy
import pickle
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise import plain
from slicewise.errors import AggregateError, DataError, RefusedRowsError, StateError, UserCodeInWindowError
from tests.matrices import matrix

TYPES = {"v": pa.int64(), "k": pa.string(), "km": pa.float64()}


def inverse(v):
    return 1 / v


def inverse_of_array(v):
    if (v == 0).any():
        raise ZeroDivisionError("division by zero")
    return 1 / v


def listed(v):
    if v == 0:
        raise ValueError("nought")
    return [v]


inverses = sw.aggregate(lift=inverse, combine=lambda a, b: a + b, identity=0.0, commutative=True, name="inverses")
columnar = sw.aggregate(
    lift=inverse_of_array, combine=np.add, identity=0.0, commutative=True, columnar=True, name="columnar"
)
lists = sw.aggregate(lift=listed, combine=lambda a, b: a + b, identity=[], name="lists")

WINDOWS = {
    "tumbling": sw.tumbling(10),
    "sliding": sw.sliding(20, every=5),
    "session": sw.session(3),
    "rows": sw.tumbling(sw.rows(2)),
    "last rows": sw.sliding(sw.rows(2), every=5),
    "units": sw.tumbling(sw.units(4, "km")),
    "punctuated": sw.punctuated("v > 5"),
    "frames": sw.frames("v <> 9"),
    "policy": sw.policy(watch={"n": sw.count()}, evict=lambda total, oldest: total["n"] - oldest["n"] >= 2),
}
TIMES, VALUES = [1, 2, 4, 7, 11, 12, 14, 23], [1, 0, 7, 2, 0, 8, 0, 3]


def table(bad: bool) -> dict:
    """Rows of two keys; those with a value of 0 are bad."""
    rows = [(t, k, v, t / 2) for t, v in zip(TIMES, VALUES, strict=True) for k in "ab" if bad or v]
    return {name: [row[i] for row in rows] for i, name in enumerate(("t", "k", "v", "km"))}


def heavy_table() -> dict:
    """Rows of two keys, some of whose windows sum up to more than ten or to a multiple of seven."""
    values = [6, 8, 7, 2, 1, 5, 9, 3]
    rows = [(t, k, v, t / 2) for t, v in zip(TIMES, values, strict=True) for k in "ab"]
    return {name: [row[i] for row in rows] for i, name in enumerate(("t", "k", "v", "km"))}


def told(results) -> list:
    return sorted(map(str, results))


def raises(error, message):
    return pytest.raises(error, match=f"^{re.escape(message)}$")


@matrix(name=WINDOWS, aggregate=[inverses, columnar, lists], ordered=[False, True])
def test_a_row_on_which_lift_raises_counts_nowhere(name, aggregate, ordered):
    """The answers of all queries are those over the other rows, in one batch, row by row and after a restart."""
    workload = sw.Workload("t", keys=["k"], lateness=0 if ordered else 50).query("q", WINDOWS[name], x=aggregate("v"))
    workload = workload.query("all", sw.tumbling(10), n=sw.count()).query("two", sw.tumbling(sw.rows(2)), m=sw.sum("v"))
    good = workload.operator(ordered=ordered, types=TYPES)
    expected = told([*good.process_batch(table(bad=False)), *good.close()])
    raised = "ValueError('nought')" if aggregate is lists else "ZeroDivisionError('division by zero')"
    message = (
        f"query 'q': {aggregate('v')!r} at the record of time 2, key k='a': `lift` raised {raised}; the record was "
        "left out, and so were 5 others"
    )
    op = workload.operator(ordered=ordered, types=TYPES)
    with raises(RefusedRowsError, message):
        op.process_batch(table(bad=True))
    copies = [op, workload.operator(ordered=ordered, types=TYPES)]
    held = [*op.process_batch({name: [] for name in table(bad=True)})]
    copies[1].restore(op.snapshot())
    for one in copies:
        assert told([*held, *one.close()]) == expected


def test_a_row_on_which_lift_raises_counts_nowhere_when_rows_come_one_at_a_time():
    workload = sw.Workload("t").query("q", sw.tumbling(10), x=inverses("v")).query("n", sw.tumbling(10), n=sw.count())
    op = workload.operator(types={"v": "bigint"})
    errors = []
    for t in range(1, 100):
        try:
            op.process(t % 10, {"v": t % 10})
        except RefusedRowsError as error:
            errors.append(error)
    try:
        results = op.advance(10)
    except RefusedRowsError as error:
        errors.append(error)
        results = op.advance(10)
    assert [r.values for r in results] == [{"x": pytest.approx(10 * sum(1 / i for i in range(1, 10)))}, {"n": 90}]
    assert sum(1 + error.others for error in errors) == 9
    assert re.search("^query 'q': inverses.'v'. at the record of time 0: `lift` raised ZeroDiv", str(errors[0]))
    assert op.stats().rows == 90
    assert op.late() == []


def test_a_bad_row_of_an_ordered_stream_does_not_move_the_watermark():
    op = sw.Workload("t").query("q", sw.tumbling(10), x=inverses("v")).operator(ordered=True)
    assert list(op.process(1, {"v": 2})) == []
    with pytest.raises(RefusedRowsError, match="at the record of time 15: `lift` raised ZeroDivisionError"):
        op.process_batch({"t": [15], "v": [0]})
    assert list(op.process(5, {"v": 4})) == []
    assert [r.values for r in op.process(20, {"v": 1})] == [{"x": 0.75}]


def test_results_of_rows_beside_a_bad_one_come_with_the_next_call():
    op = sw.Workload("t").query("q", sw.tumbling(10), x=inverses("v")).operator(ordered=True)
    with pytest.raises(RefusedRowsError):
        op.process_batch({"t": [1, 12, 13], "v": [2, 4, 0]})
    assert op.stats().results == 1  # looking takes nothing away
    assert [r.values for r in op.process_batch({"t": [22], "v": [1]})] == [{"x": 0.5}, {"x": 0.25}]


@pytest.mark.parametrize("time", ["int", "timestamp"])
def test_results_that_wait_for_the_next_call_are_part_of_a_snapshot(time):
    window = {"int": 10, "timestamp": "10 seconds"}[time]
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(window), x=inverses("v"), w=sw.max("k"))
    workload = workload.query("two", sw.tumbling(sw.rows(2)), vs=sw.collect_list("v"))
    rows = {"t": np.array([1, 2, 12, 13]), "k": list("aaaa"), "v": [2, 4, 4, 0]}
    if time == "timestamp":
        rows["t"] = (rows["t"] * 1_000_000).astype("M8[us]")
    op = workload.operator(ordered=True)
    with pytest.raises(RefusedRowsError):
        op.process_batch(rows)
    snapshot = plain.load(plain.dump(op.snapshot(), workload.trusted), workload.trusted)
    other = workload.operator(ordered=True).restore(snapshot)
    expected = [op.process_batch({name: [] for name in rows}), op.close()]
    found = [other.process_batch({name: [] for name in rows}), other.close()]
    assert [list(r) for r in found] == [list(r) for r in expected]
    assert [r.to_arrow() for r in found] == [r.to_arrow() for r in expected]
    assert [len(r) for r in expected] == [2, 1]


def test_a_step_that_fails_after_a_bad_row_is_told_as_a_note():
    window = sw.policy(lambda total, oldest: False, watch={"s": inverses("w")})
    op = (
        sw.Workload("t")
        .query("q", sw.tumbling(10), x=inverses("v"))
        .query("p", window, n=sw.count())
        .operator(ordered=True)
    )
    with pytest.raises(RefusedRowsError, match="at the record of time 1: `lift` raised") as caught:
        op.process_batch({"t": [1, 2], "v": [0, 1], "w": [1, 0]})
    (note,) = caught.value.__notes__
    assert re.search("^policy.* at the record of time 2: raised ZeroDivisionError", note)
    assert [r.values for r in op.close()] == [{"x": 1.0}]


def test_lift_sees_every_row_once_whatever_the_windows_need():
    seen = Counter()

    def lift(v):
        seen[v] += 1
        return [v]

    once = sw.aggregate(lift=lift, combine=lambda a, b: a + b, identity=[], name="once")
    workload = sw.Workload("t", lateness=1000)
    for name, window in WINDOWS.items():
        workload = workload.query(name, window, x=once("v"))
    op = workload.operator()
    for t in (5, 3, 9, 1, 20, 14, 2):
        op.process_batch({"t": [t], "v": [t], "km": [t / 2]})
        op.advance(t if t > 9 else 0) if t != 14 and t != 2 else op.advance(20)
    op.close()
    assert seen == dict.fromkeys((5, 3, 9, 1, 20, 14, 2), 1)


def test_a_columnar_lift_is_tried_by_halves():
    sizes = []

    def lift(v):
        sizes.append(len(v))
        return inverse_of_array(v)

    halves = sw.aggregate(lift=lift, combine=np.add, identity=0.0, commutative=True, columnar=True, name="halves")
    op = sw.Workload("t").query("q", sw.tumbling(1000), x=halves("v")).operator(types={"v": "bigint"})
    values = np.ones(1024, np.int64)
    values[700] = 0
    op.process_batch({"t": [0], "v": [1]})
    sizes.clear()
    with pytest.raises(RefusedRowsError, match="at the record of time 700"):
        op.process_batch({"t": np.arange(1024), "v": values})
    assert len(sizes) == 21
    assert [r.values["x"] for r in op.close()] == [1000.0, 24.0]


def test_nulls_are_left_out_before_lift_and_are_not_bad():
    op = sw.Workload("t").query("q", sw.tumbling(10), x=columnar("v"), y=inverses("v")).operator()
    op.process_batch({"t": [1, 2, 3], "v": [2, None, 4]})
    with pytest.raises(RefusedRowsError, match="at the record of time 5"):
        op.process_batch({"t": [4, 5], "v": [None, 0]})
    assert [r.values for r in op.close()] == [{"x": 0.75, "y": 0.75}]


def test_a_bad_row_is_bad_before_it_is_late():
    op = sw.Workload("t").query("q", sw.tumbling(10), x=inverses("v")).operator()
    op.process_batch({"t": [1], "v": [1]})
    op.advance(30)
    with pytest.raises(RefusedRowsError, match="at the record of time 3"):
        op.process_batch({"t": [2, 3], "v": [1, 0]})
    assert [row.time for row in op.late()] == [2]


def test_a_lift_of_the_wrong_shape_is_refused_as_a_whole():
    """A broken promise is not the fault of a row."""
    wrong = sw.aggregate(lift=lambda v: v[:-1], combine=np.add, identity=0, columnar=True, name="wrong")
    op = sw.Workload("t").query("q", sw.tumbling(10), x=wrong("v")).operator()
    message = "`lift` of `wrong` must give one partial per row; got shapes [(1,)] for 2 rows"
    with raises(AggregateError, message):
        op.process_batch({"t": [1, 2], "v": [1, 2]})


def test_a_condition_that_raises_on_a_row_costs_the_row():
    def large(columns):
        if (columns["v"] == 0).any():
            raise ValueError("nought")
        return columns["v"] > 5

    workload = sw.Workload("t", keys=["k"]).query("p", sw.punctuated(large, columns=["v"]), vs=sw.collect_list("v"))
    op = workload.query("f", sw.frames(large, columns=["v"]), vs=sw.collect_list("v")).operator()
    message = (
        f"punctuated({large.__qualname__}, columns=['v']) at the record of time 2, key k='a': raised "
        "ValueError('nought'); the record was left out, and so was 1 other"
    )
    with raises(RefusedRowsError, message):
        op.process_batch({"t": [1, 2, 3, 4, 5], "k": list("aaaaa"), "v": [1, 0, 7, 0, 8]})
    assert [(r.query, r.values["vs"]) for r in op.close()] == [("p", [1]), ("p", [7]), ("p", [8]), ("f", [7, 8])]


def test_state_is_refused_by_code_that_fails_on_the_rows_in_it():
    """Stored rows are shown to the code anew when they are read; what took them can go on."""
    workload = sw.Workload("t", lateness=100).query("q", sw.tumbling(10), x=lists("v"))
    op = workload.operator()
    op.process_batch({"t": [1, 5], "v": [3, 4]})
    snapshot = op.snapshot()

    def no_fours(v):
        if v == 4:
            raise ValueError("four")
        return [v]

    other = sw.aggregate(lift=no_fours, combine=lambda a, b: a + b, identity=[], name="lists")
    changed = sw.Workload("t", lateness=100).query("q", sw.tumbling(10), x=other("v"))
    message = (
        "query 'q': lists('v') at the record of time 5: `lift` raised ValueError('four'); the state holds this record "
        "and cannot go on without it: use the code that took it"
    )
    with raises(StateError, message):
        changed.operator().restore(snapshot)
    assert [r.values for r in workload.operator().restore(snapshot).close()] == [{"x": [3, 4]}]


def test_queries_come_and_go_over_rows_that_are_stored():
    op = sw.Workload("t", lateness=100).query("q", sw.tumbling(10), x=lists("v")).operator()
    op.process_batch({"t": [1, 5], "v": [3, 4]})
    op.add_query("half", sw.tumbling(5), y=inverses("v"), z=lists("v"))
    op.process_batch({"t": [2], "v": [2]})
    op.remove_query("q")
    assert [(r.start, r.values) for r in op.close()] == [
        (0, {"y": 1 / 3 + 1 / 2, "z": [3, 2]}),
        (5, {"y": 0.25, "z": [4]}),
    ]


# -- windows


def up_to(limit):
    def combine(a, b):
        if a + b > limit:
            raise OverflowError(f"{a + b} is too much")
        return a + b

    return combine


def no_sevens(total):
    if total % 7 == 0:
        raise ValueError("seven")
    return total


AGGREGATES = {
    "any order": sw.aggregate(combine=up_to(10), lower=no_sevens, identity=0, commutative=True, name="some"),
    "in order": sw.aggregate(combine=up_to(10), lower=no_sevens, identity=0, name="some"),
    "inverse": sw.aggregate(
        combine=up_to(10), lower=no_sevens, identity=0, invert=lambda a, b: a - b, commutative=True, name="some"
    ),
}


def sum_up_to_ten(a, b):
    if (a + b > 10).any():
        raise OverflowError("too much")
    return a + b


def lower_all(total):
    if (total % 7 == 0).any() and len(total):
        raise ValueError("seven")
    return total


AGGREGATES["columnar"] = sw.aggregate(
    combine=sum_up_to_ten,
    lower=lower_all,
    identity=0,
    invert=lambda a, b: a - b,
    commutative=True,
    columnar=True,
    name="some",
)


WORDS = ("window", "span")


def shown(end):
    return "open" if end is None else end


@matrix(name=WINDOWS, aggregate=AGGREGATES, ordered=[False, True], store=["lazy", "eager", "prefix"])
def test_a_window_whose_value_cannot_be_computed_is_named_and_null_and_the_others_go_on(
    name, aggregate, ordered, store
):
    workload = sw.Workload("t", keys=["k"], lateness=0 if ordered else 50)
    workload = workload.query("q", WINDOWS[name], x=AGGREGATES[aggregate]("v"), s=sw.sum("v"))
    if store == "prefix" and aggregate != "inverse":
        store = None  # it would be refused
    op = workload.operator(ordered=ordered, types=TYPES, store=store)
    results, errors = [], []
    try:
        results += op.process_batch(heavy_table())
    except UserCodeInWindowError as error:
        errors.append(error)
    copies = [op, workload.operator(ordered=ordered, types=TYPES, store=store)]
    results += op.process_batch({name: [] for name in heavy_table()})
    copies[1].restore(plain.load(plain.dump(op.snapshot(), workload.trusted), workload.trusted))
    for one in copies:
        found = list(results)
        try:
            found += one.close()
        except UserCodeInWindowError as error:
            found += one.close()
            errors.append(error)
        assert found
        for r in found:
            s = r.values["s"]
            assert r.values["x"] == (None if s > 10 or s % 7 == 0 else s), r
        nulls = [r for r in found if r.values["x"] is None]
        assert 0 < len(nulls) < len(found)
        assert len(nulls) == sum(1 + error.others for error in errors[: 2 if ordered else 1])
        heads = [f"query 'q', key k={r.key[0]!r}, {w} [{r.start}, {shown(r.end)}): `" for r in nulls for w in WORDS]
        assert all(str(error).startswith(tuple(heads)) for error in errors)


def test_the_error_names_query_key_and_window_and_counts_the_others():
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling(10), x=AGGREGATES["any order"]("v"))
    op = workload.query("n", sw.tumbling(10), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3, 11, 12], "k": ["a", "a", "b", "a", "b"], "v": [9, 8, 7, 5, 14]})
    message = (
        "query 'q', key k='a', window [0, 10): `combine` of some('v') raised OverflowError('17 is too much'); its "
        "value is null, and so are those of 2 other windows"
    )
    with raises(UserCodeInWindowError, message):
        op.advance(20)
    found = {(r.query, r.key[0], r.start): next(iter(r.values.values())) for r in op.advance(20)}
    assert found == {
        ("q", "a", 0): None,
        ("q", "a", 10): 5,
        ("q", "b", 0): None,
        ("q", "b", 10): None,
        ("n", "a", 0): 2,
        ("n", "a", 10): 1,
        ("n", "b", 0): 1,
        ("n", "b", 10): 1,
    }
    assert list(op.close()) == []


def test_a_late_row_may_make_a_value_impossible_and_possible_again():
    """A window of two rows: the row that was too much is pushed out of it."""
    op = sw.Workload("t", lateness=100).query("q", sw.tumbling(sw.rows(2)), x=AGGREGATES["inverse"]("v")).operator()
    op.process_batch({"t": [10, 20, 30], "v": [4, 5, 6]})
    assert [(r.change, r.values["x"]) for r in op.advance(50)] == [("insert", 9)]
    op.process_batch({"t": [15], "v": [8]})
    message = "query 'q', span [0, 2): `combine` of some('v') raised OverflowError('12 is too much'); its value is null"
    with raises(UserCodeInWindowError, message + ", and so is that of 1 other window"):
        op.advance(50)
    assert [(r.start, r.change, r.values["x"]) for r in op.advance(50)] == [(0, "update", None), (2, "insert", None)]
    op.process_batch({"t": [12], "v": [2]})
    with pytest.raises(UserCodeInWindowError, match=r"span \[2, 4\): `combine` of some\('v'\) raised"):
        op.advance(50)
    assert [(r.start, r.change, r.values["x"]) for r in op.advance(50)] == [(0, "update", 6), (2, "update", None)]


def test_a_result_of_the_wrong_type_is_a_window_without_a_value():
    odd = sw.aggregate(
        combine=lambda a, b: a + b, lower=lambda p: "odd" if p % 2 else p, identity=0, result="bigint", name="odd"
    )
    op = sw.Workload("t").query("q", sw.tumbling(10), x=odd("v")).operator()
    op.process_batch({"t": [1, 11], "v": [3, 4]})
    with pytest.raises(UserCodeInWindowError, match=r"^query 'q', window \[0, 10\): `lower` of odd\('v'\) raised "):
        op.close()
    assert [r.values["x"] for r in op.close()] == [None, 4]


def test_a_failure_is_data():
    """It stands in state for what could not be computed: it can be copied, pickled and written."""
    from slicewise.aggregates.guarded import Failure

    failure = Failure("`combine` raised ValueError('no')")
    for back in (
        copy.deepcopy(failure),
        pickle.loads(pickle.dumps(failure)),
        plain.load(plain.dump([failure], [Failure]), [Failure])[0],
    ):
        assert type(back) is Failure
        assert back.text == failure.text


def test_an_aggregate_that_is_a_class_is_guarded_as_well():
    class Careful(sw.Aggregate):
        name = "careful"
        identity = 0
        commutative = True

        def lift(self, v):
            if v < 0:
                raise ValueError("negative")
            return v

        def combine(self, a, b):
            return a + b

    class Renamed(sw.AGGREGATES["sum"]):
        name = "renamed"

    op = sw.Workload("t").query("q", sw.tumbling(10), x=Careful("v"), y=Renamed("v")).operator()
    with raises(
        DataError,
        "query 'q': careful('v') at the record of time 2: `lift` raised ValueError('negative'); the record was "
        "left out",
    ):
        op.process_batch({"t": [1, 2], "v": [5, -5]})
    assert [r.values for r in op.close()] == [{"x": 5, "y": 5}]
