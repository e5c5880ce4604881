"""Windows whose edges user code places: splits, merges, rows that come late, calls that fail."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError, QueryError, UserCodeError
from slicewise.slicing.rows.context_edges import ContextEdges
from slicewise.testing import Oracle
from slicewise.testing.definitions import order_of
from tests.slicing.running import TYPES, assert_same, columns_of, rechunked
from tests.slicing.strategies import SessionByEdges, context_windows, steps, windows
from tests.slicing.test_failing_against_oracle import Definition, Run, late_rows


def shown(results):
    return [(r.start, r.end, r.change, r.values["got"]) for r in results]


def operator_of(factory, *, columns=(), **options):
    window = sw.user_defined(factory, columns=columns)
    return sw.Workload("t", **options).query("q", window, got=sw.collect_list("t")).operator()


class Script:
    """Does with each record what the record says, a line of Python on ``edges``."""

    def __init__(self):
        self.calls = 0

    def notify_context(self, time, row, edges):
        self.calls += 1
        exec(row["do"], {"edges": edges, "t": time, "calls": self.calls})


def scripted(**options):
    return operator_of(Script, columns=["do"], **options)


def feed(op, t, do=""):
    op.process(t, {"t": t, "do": do})


# Windows that are where edges are


def test_a_late_row_bridges_a_gap_and_two_sessions_become_one():
    # 0    5    10   15   20   25
    # a    b         d              sessions of rows at most 5 apart
    # [---------)    [---)
    #           c                   late, at 10
    # [------------------)
    op = operator_of(SessionByEdges, columns=["v", "w"], lateness=100)
    op.process_batch({"t": [0, 5, 15], "v": [1, 1, 1], "w": ["", "", ""]})
    assert shown(op.advance(25)) == [(0, 10, "insert", [0, 5]), (15, 20, "insert", [15])]
    op.process(10, {"t": 10, "v": 1, "w": ""})
    assert shown(op.advance(25)) == [
        (0, 10, "retract", None),
        (15, 20, "retract", None),
        (0, 20, "insert", [0, 5, 10, 15]),
    ]


def test_a_late_row_splits_a_window():
    # 0         10        20
    # a    b         d    e      from a on, until somebody says stop
    # [-------------------)
    #           c                late: stop here, and start again
    # [---------)
    #           [---------)
    op = scripted(lateness=100)
    op.process_batch({"t": [0, 5, 15, 20], "do": ["edges.add_start(t)", "", "", "edges.add_end(t)"]})
    assert shown(op.advance(30)) == [(0, 20, "insert", [0, 5, 15])]
    feed(op, 10, "edges.add_end(t); edges.add_start(t)")
    assert shown(op.advance(30)) == [
        (0, 20, "retract", None),
        (0, 10, "insert", [0, 5]),
        (10, 20, "insert", [10, 15]),
    ]


def test_edges_may_lie_behind_the_row_and_ahead_of_it():
    op = scripted(lateness=10)
    op.process_batch({"t": [1, 4, 6], "do": ["", "", "edges.add_start(t - 3); edges.add_end(t + 3)"]})
    op.process_batch({"t": [8, 9], "do": ["", ""]})
    assert shown(op.advance(20)) == [(3, 9, "insert", [4, 6, 8])]


def test_starts_and_ends_are_paired_by_their_order_and_equal_ones_count_twice():
    op = scripted()
    op.process_batch({"t": [0, 1, 2], "do": ["edges.add_start(0); edges.add_end(9)", "edges.add_start(0)", ""]})
    op.process_batch({"t": [4], "do": ["edges.add_end(3); edges.add_start(2)"]})
    assert shown(op.close()) == [
        (0, 3, "insert", [0, 1, 2]),
        (0, 9, "insert", [0, 1, 2, 4]),
        (2, None, "insert", [2, 4]),
    ]


def test_a_window_of_no_rows_is_not_reported_until_it_has_some():
    op = scripted(lateness=100)
    op.process_batch({"t": [0], "do": ["edges.add_start(5); edges.add_end(8)"]})
    assert shown(op.advance(20)) == []
    feed(op, 6, "")
    assert shown(op.advance(20)) == [(5, 8, "insert", [6])]
    feed(op, 7, "edges.remove_end(8); edges.remove_start(5)")
    assert shown(op.advance(20)) == [(5, 8, "retract", None)]


def test_what_a_row_did_behind_it_stands_when_it_is_shown_again():
    """The row of time 10 came when the horizon was at 5. It is shown again at 10, and the edge at 6 is its own."""
    op = scripted()
    op.advance(5)
    op.process_batch({"t": [7, 10], "do": ["", "edges.add_start(6); edges.add_end(9)"]})
    assert shown(op.advance(10)) == [(6, 9, "insert", [7])]
    feed(op, 10, "edges.add_start(10)")
    assert shown(op.advance(10)) == []
    feed(op, 12, "edges.add_end(12)")
    assert shown(op.advance(20)) == [(10, 12, "insert", [10, 10])]


def test_edges_can_be_read():
    seen = []

    class Looking:
        def notify_context(self, time, row, edges):
            edges.add_start(time)
            edges.add_end(time + 2)
            seen.append((list(edges.starts), edges.ends[-1], len(edges.ends), 3 in edges.starts, "3" in edges.starts))
            assert edges.starts == sorted(edges.starts)
            assert edges.starts[:1] == [edges.starts[0]]
            assert repr(edges.ends) == repr(list(edges.ends))

    op = operator_of(Looking)
    op.process_batch({"t": [3, 1]})
    op.close()
    assert seen == [([1], 3, 1, False, False), ([1, 3], 5, 2, True, False)]


def test_of_windows_that_are_final_the_last_stays_in_sight_and_no_row_stays():
    seen = []

    class Looking:
        def notify_context(self, time, row, edges):
            seen.append((list(edges.starts), list(edges.ends)))
            edges.add_start(time)
            edges.add_end(time + 2)

    op = operator_of(Looking)
    for t in range(0, 400, 4):
        feed(op, t)
        op.advance(t)
    # The row before may place edges from 388 on, where the horizon was when it came; the one window before that is
    # there to be looked at.
    assert seen[-1] == ([384, 388, 392], [386, 390, 394])
    assert (op.stats().tuples, op.stats().slices) == (2, 0)


def test_rows_before_the_horizon_of_an_open_window_stand_in_one_slice():
    op = scripted()
    op.process_batch({"t": [0, 0], "do": ["edges.add_start(0)", ""]})
    for t in range(1, 100):
        feed(op, t, "")
        op.advance(t)
    assert (op.stats().slices, op.stats().tuples) == (1, 2)
    feed(op, 120, "edges.add_end(110)")
    assert shown(op.close()) == [(0, 110, "insert", [0, *range(100)])]


# Calls that fail


class Wild:
    """Places and removes edges where it likes, also where it may not; what it does depends on the rows before."""

    shift = 0

    def __init__(self):
        self.seen = 0

    def notify_context(self, time, row, edges):
        self.seen += 1
        v = row["v"]
        if v is None:
            return
        if v > 0:
            edges.add_start(time - v + self.seen % 3 - self.shift)
            edges.add_end(time + v)
        elif v > -3:
            edges.add_end(time + v)  # needs a start that is open
        elif v == -3:
            edges.remove_start(time - 1)
        elif edges.ends and self.seen % 2:
            edges.remove_end(edges.ends[-1])
            if v == -5:
                raise LookupError("five")


class WilderStill(Wild):
    """The same further back, where it is often too far."""

    shift = 6


@st.composite
def placing(draw):
    """A workload with windows whose edges user code places, beside others of all kinds."""
    keys, order = draw(st.sampled_from([[], ["k"]])), draw(st.sampled_from([[], [], ["o"]]))
    workload = sw.Workload("t", keys=keys, order=order, lateness=draw(st.sampled_from([0, 0, 3, 15, 1000])))
    others = st.one_of(windows(), context_windows().filter(lambda w: all(m.column is None for m in w.measures)))
    wild = draw(st.lists(st.sampled_from([Wild, WilderStill]), min_size=1, max_size=2, unique=True))
    chosen = [sw.user_defined(factory, columns=["v"]) for factory in wild] + draw(st.lists(others, max_size=2))
    for i, window in enumerate(draw(st.permutations(chosen))):
        aggregates = {f"q{i}_l": sw.collect_list("v"), f"q{i}_s": sw.sum("v"), f"q{i}_m": sw.max("v")}
        workload = workload.query(f"q{i}", window, **aggregates)
    return workload


@given(placing(), steps(), st.data())
def test_edges_are_those_of_one_pass_in_order(workload, epochs, data):
    definition = Definition(workload)
    expected = definition.run(epochs)
    event(f"rows refused: {min(definition.refused, 3)}")
    event(f"retracted: {any(r.change == 'retract' for epoch in expected for r in epoch)}")
    run = Run(workload.operator(types=TYPES, max_slice=data.draw(st.sampled_from([None, 2]))))
    assert_same(run.run(rechunked(epochs, data)), expected)
    assert run.refused == definition.refused
    assert late_rows((row.time, row.key) for row in run.late) == late_rows(
        (time, key) for time, _, key in definition.oracle.late()
    )


@given(placing(), steps(), st.data())
def test_nothing_changes_when_the_operator_is_restored_between_calls(workload, epochs, data):
    def restored(op):
        return workload.operator(types=TYPES).restore(op.snapshot())

    run, definition = Run(workload.operator(types=TYPES), restored), Definition(workload)
    assert_same(run.run(epochs, one_by_one=data.draw(st.booleans())), definition.run(epochs))
    assert run.refused == definition.refused


def standing(results):
    """The windows that stand after some results: how many of equal bounds, and what they hold."""
    counts, values = Counter(), {}
    for r in results:
        at = r.query, r.key, r.start, r.end
        counts[at] += {"insert": 1, "update": 0, "retract": -1}[r.change]
        if r.change != "retract":
            values[at] = r.values
    return {at: (count, values[at]) for at, count in counts.items() if count}


@given(placing(), steps(), st.data())
def test_in_order_every_row_is_its_own_watermark(workload, epochs, data):
    """Of rows in one batch, what one would report and the next take back is not reported; the rest is the same."""
    rows = [row for chunks, _ in epochs for chunk in chunks for row in chunk]
    rows.sort(key=lambda row: (row["t"], [order_of(row[name]) for name in workload.order]))
    definition, expected = Definition(workload), []
    for row in rows:
        definition.process(row)
        expected += definition.advance(row["t"])
    expected += definition.advance(None)
    run, found = Run(workload.operator(types=TYPES, ordered=True)), []
    while rows:
        size = data.draw(st.integers(1, 5))
        found += run.call(run.op.process_batch, columns_of(rows[:size]))
        rows = rows[size:]
    found += run.call(run.op.close)
    assert standing(found) == standing(expected)
    assert run.refused == definition.refused


@pytest.mark.parametrize(
    ("do", "rule"),
    [
        ("edges.add_start(4)", "added a start at 4, before the horizon 5"),
        ("edges.remove_end(4)", "removed an end at 4, before the horizon 5"),
        ("edges.remove_start(9)", "removed a start at 9, where there is none"),
        ("edges.remove_end(9)", "removed an end at 9, where there is none"),
        ("edges.add_end(9)", "left an end at 9 without a start"),
        ("edges.add_start(9); edges.add_end(9)", "left an end at 9 that is not after its start at 9"),
        ("edges.add_start(7); edges.add_end(6)", "left an end at 6 that is not after its start at 7"),
        ("edges.add_start('7')", "added a start at '7', which is no event time: give a whole number, as `time` is"),
        ("edges.add_end(7.0)", "added an end at 7.0, which is no event time: give a whole number, as `time` is"),
        ("edges.add_start(2**62)", "added a start at 4611686018427387904, which is out of the range of event times"),
        ("edges.add_start(8); 1 / 0", "raised ZeroDivisionError('division by zero')"),
        # What went wrong stays wrong where it is caught.
        (
            "try: edges.remove_start(9)\nexcept ValueError: edges.add_start(8)",
            "removed a start at 9, where there is none",
        ),
    ],
)
def test_a_call_that_fails_is_undone_and_its_row_counts_in_none_of_these_windows(do, rule):
    window = sw.user_defined(Script, columns=["do"])
    workload = sw.Workload("t").query("mine", window, got=sw.collect_list("t"))
    workload = workload.query("time", sw.tumbling(100), got=sw.collect_list("t"))
    workload = workload.query("pairs", sw.tumbling(sw.rows(2)), got=sw.collect_list("t"))
    rows = [(6, ""), (8, do), (9, "assert calls == 2; edges.add_start(6)"), (12, "edges.add_end(t)")]
    op, oracle = workload.operator(), Oracle(workload)
    op.advance(5)
    oracle.advance(5)
    op.process_batch({"t": [t for t, _ in rows], "do": [what for _, what in rows]})
    oracle.process_batch((t, {"t": t, "do": what}, ()) for t, what in rows)
    message = f"user_defined(Script, columns=['do']) at the record of time 8: {rule}; the record was left out"
    with pytest.raises(UserCodeError, match=f"^{re.escape(message)}$"):
        op.advance(20)
    with pytest.raises(DataError, match=r"^query 'mine', the record at time 8: .*; it is left out of the query$"):
        oracle.advance(20)
    found = op.close()
    assert_same([list(found)], [oracle.close()])
    assert {(r.query, r.start, r.end): r.values["got"] for r in found} == {
        ("mine", 6, 12): [6, 9],
        ("time", 0, 100): [6, 8, 9, 12],
        ("pairs", 0, 2): [6, 8],
        ("pairs", 2, 4): [9, 12],
    }


def test_the_key_is_named_and_rows_that_fail_are_counted():
    window = sw.user_defined(Script, columns=["do"])
    op = sw.Workload("t", keys=["k"]).query("q", window, got=sw.collect_list("t")).operator()
    op.process_batch({"t": [1, 2, 3, 4], "k": ["a", "b", "b", "a"], "do": ["edges.add_start(t)", "1/0", "1/0", "1/0"]})
    message = (
        "user_defined(Script, columns=['do']) at the record of time 4, key k='a': raised "
        "ZeroDivisionError('division by zero'); the record was left out, and so were 2 others"
    )
    with pytest.raises(UserCodeError, match=f"^{re.escape(message)}$") as raised:
        op.advance(10)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    assert [(r.key, r.values["got"]) for r in op.close()] == [(("a",), [1])]


@pytest.mark.parametrize(
    ("unit", "largest"), [(None, 2**60), ("seconds", 2**60 // 10**6), ("nanoseconds", 3 * 2**60 - 1)]
)
def test_edges_lie_where_windows_can_be_shown(unit, largest):
    def run(end):
        window = sw.user_defined(Script, columns=["do"])
        workload = sw.Workload("t", unit=unit).query("q", window, n=sw.count())
        op, oracle = workload.operator(), Oracle(workload)
        do = f"edges.add_start(t); edges.add_end({end})"
        op.process_batch({"t": [1], "do": [do]})
        oracle.process(1, {"do": do})
        return op, oracle

    op, oracle = run(largest)
    assert [(r.start, r.end) for r in op.close()] == [(r.start, r.end) for r in oracle.close()] == [(1, largest)]
    op, oracle = run(largest + 1)
    with pytest.raises(UserCodeError, match=f"added an end at {largest + 1}, which is out of the range of event times"):
        op.close()
    with pytest.raises(DataError, match=f"has an edge at {largest + 1}, where there are no event times"):
        oracle.close()


def test_many_rows_that_fail_are_shown_no_more_than_twice_for_it():
    calls = []

    class Odd:
        def notify_context(self, time, row, edges):
            calls.append(time)
            if time % 2:
                raise ValueError("odd")

    op = operator_of(Odd)
    op.process_batch({"t": range(1000)})
    with pytest.raises(UserCodeError, match="and so were 499 others"):
        op.advance(2000)
    # Twice at most when they were found out, and once when the step is taken again, without those that failed.
    assert len(calls) <= 2 * 1000
    op.close()
    assert len(calls) <= 2 * 1000 + 500


def test_a_row_that_leaves_is_noticed_though_another_came_in_its_place():
    """Both in one step: the window has as many rows as before, and the same first and last."""
    op = scripted(lateness=100)
    last = "edges.add_end(9)"
    op.process_batch({"t": [1, 4, 6], "do": ["edges.add_start(1)", "assert calls == 2", last]})
    assert shown(op.advance(10)) == [(1, 9, "insert", [1, 4, 6])]
    feed(op, 3, "")
    with pytest.raises(UserCodeError, match="at the record of time 4: raised AssertionError"):
        op.advance(10)
    assert shown(op.advance(10)) == [(1, 9, "update", [1, 3, 6])]


def test_rows_that_failed_stay_out_when_they_stand_in_slices():
    op = scripted()
    op.process_batch({"t": [0, 2, 3, 4, 6], "do": ["edges.add_start(0)", "", "1 / 0", "", ""]})
    with pytest.raises(UserCodeError, match="at the record of time 3"):
        op.advance(5)
    op.advance(7)
    assert op.stats().tuples == 0
    op = (
        sw.Workload("t")
        .query("q", sw.user_defined(Script, columns=["do"]), got=sw.collect_list("t"))
        .operator()
        .restore(op.snapshot())
    )
    feed(op, 9, "edges.add_end(8)")
    assert shown(op.close()) == [(0, 8, "insert", [0, 2, 4, 6])]


# What is refused beforehand


class Both(Script):
    def on_record(self, time, row):
        return 0, 0


def test_an_object_places_edges_or_answers():
    with pytest.raises(
        QueryError,
        match=r"^`factory` must make an object with on_record or on_batch, or with notify_context, not with both; "
        r"user_defined\(Both, columns=\[\]\) has on_record and notify_context$",
    ):
        sw.user_defined(Both)
    with pytest.raises(
        QueryError,
        match=r"^`deterministic=False` is for objects that return sw.Evict; one with notify_context places edges: "
        r"leave it out of user_defined\(Script, columns=\['do'\]\)$",
    ):
        sw.user_defined(Script, columns=["do"], deterministic=False)
    op = sw.Workload("t").query("q", sw.user_defined(dict), n=sw.count()).operator()
    with pytest.raises(
        QueryError,
        match=r"^`factory` must make an object with a method on_record\(time, row\), on_batch\(times, columns\) or "
        r"notify_context\(time, row, edges\); user_defined\(dict, columns=\[\]\) makes \{\}$",
    ):
        op.process_batch({"t": [1]})


def test_explain_names_the_class_by_the_interface():
    class Answers:
        def on_record(self, time, row):
            return 1, 0

    def explained(window):
        return sw.Workload("t").query("q", window, n=sw.count()).explain()

    assert "forward context aware" in explained(sw.user_defined(Script))
    assert "forward context aware" in explained(sw.user_defined(Answers, deterministic=False))
    free = explained(sw.user_defined(Answers))
    assert "forward context free" in free
    assert "forward context aware" not in free


# Edges by themselves


@given(st.lists(st.tuples(st.sampled_from(["add_start", "add_end", "remove_start", "remove_end"]), st.integers(0, 9))))
def test_edges_are_sorted_and_every_call_is_checked_like_the_whole(changes):
    """A call is checked from the first pair that it changed on; that must be as good as checking all."""
    edges = ContextEdges()
    for change, time in changes:
        before = edges.copy()
        edges.open(0)
        try:
            getattr(edges, change)(time)
        except DataError:
            assert edges.failure
        else:
            edges.check()
            starts, ends = edges.to_data()
            assert (starts, ends) == (sorted(starts), sorted(ends))
            paired = len(ends) <= len(starts) and all(s < e for s, e in zip(starts, ends, strict=False))
            assert paired == (edges.failure is None)
        if edges.failure:
            edges = before
