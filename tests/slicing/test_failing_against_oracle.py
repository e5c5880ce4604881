"""User code that raises, beside the oracle: the same rows are left out, and the same windows have no value."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import UserCodeError, UserCodeInWindowError
from slicewise.testing import Oracle
from slicewise.testing.definitions import order_of
from slicewise.testing.oracle_rows import FailedWindowError, RefusedRowError
from tests.slicing.running import TYPES, assert_same, columns_of, key_of, rechunked
from tests.slicing.strategies import context_windows, steps, windows


def not_minus_five(v):
    if v == -5:
        raise ValueError("minus five")
    return abs(v)


def small_sum(a, b):
    if a + b > 12:
        raise OverflowError("too much")
    return a + b


def not_three(total):
    if total % 7 == 3:
        raise ZeroDivisionError("three")
    return total


def not_minus_five_in(v):
    if (v == -5).any():
        raise ValueError("minus five")
    return abs(v), np.ones(len(v), np.int64)


def small_sums(a, b):
    if (a[0] + b[0] > 12).any():
        raise OverflowError("too much")
    return a[0] + b[0], a[1] + b[1]


def nowhere_three(p):
    if (p[0] % 7 == 3).any():
        raise ZeroDivisionError("three")
    return p[0] * 100 + p[1]


def not_c(v, w):
    if w == "c" and v > 3:
        raise KeyError(w)
    return [(v, w)]


def few(a, b):
    if len(a) + len(b) > 5:
        raise IndexError("too many")
    return a + b


def not_alike(items):
    if len(items) > 1 and items[0] == items[-1]:
        raise RuntimeError("alike")
    return str(items)


def minus(a, b):
    return a - b


FAILING = {
    "plain": sw.aggregate(
        lift=not_minus_five, combine=small_sum, lower=not_three, identity=0, result="bigint", name="plain"
    ),
    "commutative": sw.aggregate(
        lift=not_minus_five,
        combine=small_sum,
        lower=not_three,
        identity=0,
        commutative=True,
        result="bigint",
        name="commutative",
    ),
    "invertible": sw.aggregate(
        lift=not_minus_five,
        combine=small_sum,
        lower=not_three,
        identity=0,
        invert=minus,
        commutative=True,
        result="bigint",
        name="invertible",
    ),
    "columnar": sw.aggregate(
        lift=not_minus_five_in,
        combine=small_sums,
        lower=nowhere_three,
        identity=(0, 0),
        commutative=True,
        columnar=True,
        result="bigint",
        name="columnar",
    ),
}
LISTS = sw.aggregate(lift=not_c, combine=few, lower=not_alike, identity=[], result="string", name="lists")


def failing() -> st.SearchStrategy:
    return st.one_of(
        st.sampled_from(sorted(FAILING)).map(lambda name: FAILING[name]("v")),
        st.just(LISTS("v", "w")),
        st.sampled_from([sw.count(), sw.sum("v"), sw.collect_list("w")]),
    )


def evict_and_fail(total, oldest):
    if total["n"] - oldest["n"] == 2 and total["n"] % 4 == 3:
        raise ArithmeticError("two of three")
    return total["n"] - oldest["n"] >= 3


class Picky:
    """Begins a window with each row and ends the oldest with each but the first; fails on the value 4."""

    def __init__(self):
        self.seen = 0

    def on_record(self, time, row):
        if row["v"] == 4:
            raise LookupError("four")
        self.seen += 1
        return 1, int(self.seen > 2)


class PickyInBatches(Picky):
    """The same where it is shown many rows at once: it has counted them all by the time it fails."""

    def on_batch(self, times, columns):
        seen = self.seen + 1 + np.arange(len(times))
        self.seen += len(times)
        if np.ma.filled(columns["v"] == 4, False).any():
            raise LookupError("four")
        return np.ones(len(times), int), seen > 2


def large(columns):
    if (columns["v"] == 5).any():
        raise ValueError("five")
    return columns["v"] > 1


WINDOWS = st.one_of(
    windows(),
    windows(),
    context_windows().filter(lambda w: all(m.column is None for m in w.measures)),
    st.just(sw.policy(evict_and_fail, watch={"n": sw.count(), "s": FAILING["plain"]("v")})),
    st.sampled_from([Picky, PickyInBatches]).map(lambda picky: sw.user_defined(picky, columns=["v"])),
    st.just(sw.punctuated(large, columns=["v"])),
    st.just(sw.frames(large, columns=["v"])),
)


@st.composite
def workloads(draw) -> sw.Workload:
    keys = draw(st.sampled_from([[], ["k"]]))
    order = draw(st.sampled_from([[], [], ["o"]]))
    workload = sw.Workload("t", keys=keys, order=order, lateness=draw(st.sampled_from([0, 0, 3, 15, 1000])))
    for i in range(draw(st.integers(1, 3))):
        computed = draw(st.lists(failing(), min_size=1, max_size=2))
        workload = workload.query(f"q{i}", draw(WINDOWS), **{f"q{i}_{n}": a for n, a in enumerate(computed)})
    return workload


def left_out(note):
    """How many rows a note is about that were left out."""
    others = re.search(r"and so w(?:as|ere) (\d+) other", note)
    return int("left out" in note) + (int(others[1]) if others else 0)


class Run:
    """An operator that is called until it goes on; what it refused on the way."""

    def __init__(self, op, restored=lambda op: op):
        self.op, self.restored = op, restored
        self.refused = 0
        self.late = []

    def call(self, function, *arguments):
        """The results of a call; one that fails is followed by others until it does not."""
        for _ in range(200):
            try:
                return list(function(*arguments))
            except UserCodeError as error:
                self.refused += len(error.rows) + sum(map(left_out, getattr(error, "__notes__", ())))
            except UserCodeInWindowError:
                pass
            # Rows are in, those of them that can be: it is only what came out that is still to be had.
            function, arguments = (self.op.process_batch, [columns_of([])]) if arguments else (function, arguments)
        raise AssertionError("it does not go on")

    def run(self, epochs, *, one_by_one=False):
        out = []
        for chunks, mark in epochs:
            found = []
            for chunk in chunks:
                if one_by_one:
                    for row in chunk:
                        found += self.call(self.op.process, row["t"], row)
                else:
                    found += self.call(self.op.process_batch, columns_of(chunk))
                self.op = self.restored(self.op)
            step = self.op.close if mark is None else partial(self.op.advance, mark)
            found += self.call(step)
            self.late += self.op.late()
            out.append(found)
            if mark is not None:
                self.op = self.restored(self.op)
        return out


class Definition:
    """The oracle, called until it goes on; what it refused on the way."""

    def __init__(self, workload):
        self.workload, self.oracle = workload, Oracle(workload)
        self.refused = 0

    def process(self, row):
        self.oracle.process(row["t"], row, key_of(self.workload, row))

    def advance(self, mark):
        while True:
            try:
                return self.oracle.close() if mark is None else self.oracle.advance(mark)
            except RefusedRowError as error:
                self.refused += 1 + sum(int(note.split()[0]) for note in getattr(error, "__notes__", ()))
            except FailedWindowError:
                pass

    def run(self, epochs):
        out = []
        for chunks, mark in epochs:
            for chunk in chunks:
                for row in chunk:
                    self.process(row)
            out.append(self.advance(mark))
        return out


def late_rows(rows):
    return sorted((time, str(key)) for time, key in rows)


@given(workloads(), steps(), st.data())
def test_rows_and_windows_that_fail_are_those_of_the_definition(workload, epochs, data):
    definition = Definition(workload)
    expected = definition.run(epochs)
    nulls = sum(v is None for results in expected for r in results for v in r.values.values() if r.change != "retract")
    event(f"rows refused: {min(definition.refused, 2)}, nulls: {min(nulls, 2)}")
    stores = [None, None, "lazy", "eager"]
    if all(a.invertible and a.commutative for q in workload.queries for a in q.aggregates.values()):
        stores.append("prefix")
    store = data.draw(st.sampled_from(stores))
    max_slice = data.draw(st.sampled_from([None, None, 2]))
    run = Run(workload.operator(types=TYPES, store=store, max_slice=max_slice))
    assert_same(run.run(rechunked(epochs, data)), expected)
    assert run.refused == definition.refused
    assert late_rows((row.time, row.key) for row in run.late) == late_rows(
        (time, key) for time, _, key in definition.oracle.late()
    )


@given(workloads(), steps())
def test_rows_that_come_one_at_a_time_fail_by_themselves(workload, epochs):
    definition = Definition(workload)
    run = Run(workload.operator(types=TYPES))
    assert_same(run.run(epochs, one_by_one=True), definition.run(epochs))
    assert run.refused == definition.refused


@given(workloads(), steps(), st.data())
def test_nothing_changes_when_the_operator_is_restored_between_calls(workload, epochs, data):
    def restored(op):
        if data.draw(st.booleans()):
            return op
        return workload.operator(types=TYPES).restore(op.snapshot())

    assert_same(Run(workload.operator(types=TYPES), restored).run(epochs), Definition(workload).run(epochs))


@given(workloads(), steps(), st.data())
def test_in_order_every_row_is_its_own_watermark(workload, epochs, data):
    # In order also among rows of equal time: one that belonged before another would correct what that had decided.
    rows = [row for chunks, _ in epochs for chunk in chunks for row in chunk]
    rows.sort(key=lambda row: (row["t"], [order_of(row[name]) for name in workload.order]))
    definition = Definition(workload)
    expected = []
    for row in rows:
        definition.process(row)
        # A row that counts nowhere is no watermark either.
        if not definition.oracle._refused:
            expected += definition.advance(row["t"])
    expected += definition.advance(None)
    run = Run(workload.operator(types=TYPES, ordered=True))
    found = []
    while rows:
        size = data.draw(st.integers(1, 5))
        found += run.call(run.op.process_batch, columns_of(rows[:size]))
        rows = rows[size:]
    found += run.call(run.op.close)
    assert_same([found], [expected])
    assert run.refused == definition.refused
