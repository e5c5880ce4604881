"""Slices that stand from step to step: the oracle's answers in thousands of tiny steps, whatever happens in between."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.same import is_same
from slicewise.slicing.time import slice_manager
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import rows, windows

KINDS = ("lazy", "eager", "prefix")
COMMUTATIVE = [sw.AGGREGATES[n] for n in ("sum", "count", "avg", "max", "min", "stddev", "range_", "product")]


class Standing:
    """An engine that lets slices stand as soon as it can, and is checked after every call."""

    def __init__(self, few: int = 1000) -> None:
        self.few, self.stood = few, 0

    def __enter__(self):
        changes = {"FEW_SLICES": 0, "WORTH_STANDING": 1, "FEW_NEW": self.few, "MOST_NEW": self.few, "ROWS_PER_SLICE": 0}
        self._patch = mock.patch.multiple(slice_manager, **changes)
        self._patch.__enter__()
        return self

    def __exit__(self, *error):
        self._patch.__exit__(*error)

    def check(self, op):
        engine = op._core.engine
        if engine is not None and engine.time._standing is not None:
            engine.time._standing._check()
            self.stood += 1
        return op

    def restart(self, workload, **options):
        def between(op):
            self.check(op)
            return workload.operator(types=TYPES, **options).restore(op.snapshot())

        return between


@st.composite
def tiny_steps(draw):
    """A few rows and a watermark at a time, that moves on as rows do: late rows are few or many."""
    delay = draw(st.integers(0, 12))
    epochs, latest = [], -30
    for _ in range(draw(st.integers(2, 25))):
        chunk = draw(st.lists(rows(), max_size=3))
        for row in chunk:
            row["t"] = latest + (row["t"] % 23) - 8
        latest = max([latest, *(row["t"] for row in chunk)])
        epochs.append(([chunk], latest - delay))
    marks = np.maximum.accumulate([mark for _, mark in epochs]).tolist()
    return [(chunks, mark) for (chunks, _), mark in zip(epochs, marks, strict=True)] + [([], None)]


@st.composite
def workloads_that_stand(draw, store="eager"):
    """A workload whose slices may stand, and of which all aggregates take a store."""
    aggregates = COMMUTATIVE[:3] if store == "prefix" else COMMUTATIVE
    keys = draw(st.sampled_from([[], ["k"], ["k", "j"]]))
    workload = sw.Workload("t", keys=keys, lateness=draw(st.sampled_from([0, 5, 40])))
    for i in range(draw(st.integers(1, 3))):
        window = draw(windows().filter(lambda w: w.session_gap is None))
        computed = draw(st.lists(st.sampled_from(aggregates), min_size=1, max_size=3))
        workload = workload.query(f"q{i}", window, **{f"q{i}_{n}": a("v") for n, a in enumerate(computed)})
    return workload


@pytest.mark.parametrize("store", KINDS)
@fewer(2)
@given(tiny_steps(), st.data())
def test_tiny_steps_have_the_oracles_answers(store, epochs, data):
    workload = data.draw(workloads_that_stand(store))
    expected, late = run_oracle(workload, epochs)
    with Standing() as standing:
        op = workload.operator(types=TYPES, store=store)
        assert_same(run_operator(op, epochs, between=standing.check), expected)
    assert sorted(r.time for r in op.late()) == sorted(time for time, _, _ in late)


@pytest.mark.slow
@pytest.mark.parametrize("store", KINDS)
@fewer(2)
@given(tiny_steps(), st.data())
def test_snapshot_and_restore_between_tiny_steps_changes_nothing(store, epochs, data):
    workload = data.draw(workloads_that_stand(store))
    expected, _ = run_oracle(workload, epochs)
    with Standing() as standing:
        restart = standing.restart(workload, store=store)
        op = workload.operator(types=TYPES, store=store)
        assert_same(run_operator(op, epochs, between=restart), expected)


@given(workloads_that_stand(), tiny_steps(), st.integers(0, 3))
def test_steps_of_few_and_of_many_rows_take_turns(workload, epochs, few):
    expected, _ = run_oracle(workload, epochs)
    with Standing(few) as standing:
        assert_same(run_operator(workload.operator(types=TYPES), epochs, between=standing.check), expected)


def long_run(workload, store, *, steps=1500, seed=7):
    """Thousands of steps of one row each, some of them late, now and then a snapshot; beside one pass over all rows."""
    random = np.random.default_rng(seed)
    times = (np.arange(steps) // 3 - np.where(random.random(steps) < 0.1, random.integers(0, 30, steps), 0)).tolist()
    values, keys = random.integers(-50, 50, steps).tolist(), random.choice(list("abc"), steps).tolist()
    op = workload.operator(types={"v": "bigint", "k": "string"}, store=store)
    results, stood = [], 0
    for i, (t, v, k) in enumerate(zip(times, values, keys, strict=True)):
        op.process(t, {"v": v, "k": k})
        results += op.advance(i // 3 - 20)
        stood += op._core.engine.time._standing is not None
        if i % 500 == 250:
            op._core.engine.time._standing._check()
        if i % 997 == 500:
            op = workload.operator(types={"v": "bigint", "k": "string"}, store=store).restore(op.snapshot())
    results += op.close()
    assert stood > 0.9 * steps
    whole = workload.operator(types={"v": "bigint", "k": "string"})
    whole.process_batch({"t": times, "v": values, "k": keys})
    return standing_values(results), standing_values(whole.close())


def standing_values(results):
    """What is true in the end, of all that was reported."""
    return {(r.query, r.key, r.start): dict(r.values) for r in results}


@pytest.mark.slow
@pytest.mark.parametrize(("store", "keys"), [("lazy", ["k"]), ("eager", []), ("prefix", ["k"])])
def test_thousands_of_steps_end_where_one_pass_does(store, keys):
    workload = sw.Workload("t", keys=keys, lateness=12)
    others = {} if store == "prefix" else {"top": sw.max("v"), "d": sw.stddev("v")}
    workload = workload.query("q", sw.sliding(60, every=10), s=sw.sum("v"), **others)
    found, expected = long_run(workload.query("w", sw.tumbling(7), n=sw.count()), store)
    assert len(found) > 100
    assert is_same(found, expected, scale=50)


def test_rows_wait_while_nothing_is_due_and_none_is_forgotten():
    workload = sw.Workload("t").query("q", sw.tumbling(1000), n=sw.count(), s=sw.sum("v"))
    op = workload.operator(ordered=True)
    updates = []
    for t in range(1, 40):
        op.process_batch({"t": [t, t], "v": [t, 1]})
        updates.append(op._core.costs.updates)
        held = op.slices().to_pylist() if t % 7 == 0 else None
        assert held is None or sum(s["rows"] for s in held) == 2 * t
        op = workload.operator(ordered=True).restore(op.snapshot()) if t % 11 == 0 else op
    assert len(set(updates)) < len(updates) / 2  # most steps have left slices alone
    (result,) = op.close()
    assert result.values == {"n": 78, "s": sum(range(1, 40)) + 39}
