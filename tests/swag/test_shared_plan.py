"""Shared plans: edges and slices of the three techniques, and the same answers from all of them with any algorithm."""

from __future__ import annotations

import datetime as dt
import random
from math import ceil, gcd

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.amounts import rows, units
from slicewise.errors import DataError, QueryError
from slicewise.swag import ALGORITHMS, Acq, Naive, SharedPlan, SlickDeque, TwoStacks
from tests.counting import Counting
from tests.matrices import matrix

TECHNIQUES = ["panes", "pairs", "cutty"]
SECOND = 1_000_000


def by_definition(queries, values, times=None):
    """Every answer from the values alone: windows end at multiples of the slide, [end - range, end)."""
    times = list(range(len(values))) if times is None else times
    answers = []
    for i, query in enumerate(queries):
        size, slide = query.range.size, query.slide.size
        end = (times[0] // slide + 1) * slide
        while end <= times[-1] + (query.range.measure.kind == "rows"):
            inside = [v for v, t in zip(values, times, strict=True) if end - size <= t < end]
            if inside:
                answers.append((end, i, inside))
            end += slide
    return sorted(answers, key=lambda a: a[:2])


def carried_out(plan, aggregate, algorithm, values, times=None):
    run = plan.run(aggregate, algorithm)
    answers = []
    for i, value in enumerate(values):
        answers += run.insert(value) if times is None else run.insert(value, times[i])
    places = {id(q): i for i, q in enumerate(plan.queries)}
    return sorted(((a.at, places[id(a.query)], a.value) for a in answers), key=lambda a: a[:2])


# -- the plan


def test_example_1_shares_slices_of_two():
    for technique in TECHNIQUES:
        plan = SharedPlan([Acq(6, 2), Acq(8, 4)], technique=technique)
        assert (plan.composite_slide, plan.edges, plan.lengths, plan.window) == (4, [2, 4], [2, 2], 4)
        assert [step.answers for step in plan.steps] == [((0, 3),), ((1, 4), (0, 3))]


def test_figure_7_of_cutty():
    """Range 10, slide 3: ten panes, seven of the pairs, three slices of Cutty's and an open one."""
    #                   slices per slide, lengths, slices per window
    for technique, lengths, window in [("panes", [1, 1, 1], 10), ("pairs", [2, 1], 7), ("cutty", [3], 3)]:
        plan = SharedPlan([Acq(10, 3)], technique=technique)
        assert (plan.composite_slide, plan.lengths, plan.window) == (3, lengths, window)
    assert SharedPlan([Acq(10, 3)], technique="cutty").steps == [(2, True, ()), (1, False, ((0, 3),))]


@given(st.integers(1, 60), st.integers(1, 60))
def test_slices_per_window_are_those_of_table_1_of_cutty(size, slide):
    """r / gcd(r, s) panes; 2 r / s of the pairs, rounded up; ceil(r / s) of Cutty's, the open one included."""
    panes, pairs, cutty = (SharedPlan([Acq(size, slide)], technique=t) for t in TECHNIQUES)
    assert panes.window == size // gcd(size, slide)
    assert pairs.window <= ceil(2 * size / slide)
    open_slice = not all(step.closes for step in cutty.steps)
    assert cutty.window + open_slice == ceil(size / slide)
    assert panes.window >= pairs.window >= cutty.window
    assert set(pairs.lengths) <= {size % slide, slide - size % slide}
    assert cutty.lengths == [slide]


@given(st.lists(st.tuples(st.integers(1, 12), st.sampled_from([1, 2, 3, 4, 6, 12])), min_size=1, max_size=4))
def test_plan_adds_up(pairs):
    for technique in TECHNIQUES:
        plan = SharedPlan([Acq(r, s) for r, s in pairs], technique=technique)
        assert sum(plan.lengths) == sum(step.length for step in plan.steps) == plan.composite_slide
        assert [step.closes for step in plan.steps].count(True) == len(plan.edges)
        asked = [i for step in plan.steps for i, _ in step.answers]
        for i, (_, slide) in enumerate(pairs):
            assert asked.count(i) == plan.composite_slide // slide


def test_sharing_saves_slices():
    """Two queries with common edges: two slices for both, where each alone would cut two of its own."""
    alone = [SharedPlan([q]) for q in (Acq(6, 2), Acq(8, 4))]
    together = SharedPlan([Acq(6, 2), Acq(8, 4)])
    per_value = [len(p.edges) / p.composite_slide for p in (*alone, together)]
    assert per_value[2] < per_value[0] + per_value[1]


# -- carrying it out

PLANS = {
    "one": [Acq(10, 3)],
    "example 1": [Acq(6, 2), Acq(8, 4)],
    "tumbling": [Acq(4, 4)],
    "with gaps": [Acq(2, 5), Acq(3, 2)],
    "odd": [Acq(7, 3), Acq(5, 2), Acq(1, 1)],
    "same twice": [Acq(6, 2), Acq(6, 2), Acq(6, 3)],
}


@matrix(name=PLANS, algorithm=ALGORITHMS, technique=TECHNIQUES)
def test_counts(name, algorithm, technique):
    queries, cls = PLANS[name], ALGORITHMS[algorithm]
    plan = SharedPlan(queries, technique=technique)
    rng = random.Random(name)
    values = [rng.randrange(-20, 20) for _ in range(60)]
    aggregates = [(sw.sum(), sum)]
    if algorithm not in ("SubtractOnEvict", "SlickDeque"):
        aggregates.append((sw.collect_list(), list))
    if algorithm != "SubtractOnEvict":
        aggregates.append((sw.multi(top=sw.max(), n=sw.count()), lambda v: {"top": max(v), "n": len(v)}))
    for aggregate, definition in aggregates:
        expected = [(at, i, definition(inside)) for at, i, inside in by_definition(queries, values)]
        assert carried_out(plan, aggregate, cls, values) == expected


@matrix(algorithm=ALGORITHMS, technique=TECHNIQUES)
def test_time(algorithm, technique):
    queries = [Acq("10 seconds", "3 seconds"), Acq(dt.timedelta(seconds=4), "2 seconds"), Acq("1 second", "6 seconds")]
    plan = SharedPlan(queries, technique=technique)
    rng = random.Random(4)
    times, now = [], -17 * SECOND
    for _ in range(120):
        # Mostly close together, at times far apart, once in a while at the very edge.
        now += rng.choice([0, 200_000, 900_000, 1_100_000, 5 * SECOND, 60 * SECOND])
        now = (
            now // SECOND * SECOND if rng.random() < 0.3 and (not times or now // SECOND * SECOND >= times[-1]) else now
        )
        times.append(now)
    values = [rng.randrange(100) for _ in times]
    aggregate, definition = (
        (sw.count(), len) if algorithm in ("SubtractOnEvict", "SlickDeque") else (sw.collect_list(), list)
    )
    expected = [(at, i, definition(inside)) for at, i, inside in by_definition(queries, values, times)]
    assert carried_out(plan, aggregate, ALGORITHMS[algorithm], values, times) == expected


def test_long_gaps_are_jumped_over():
    plan = SharedPlan([Acq("2 seconds", "1 second")])
    run = plan.run(sw.sum())
    assert run.insert(5, 0) == []
    year = 365 * 86_400 * SECOND
    assert [(a.at, a.value) for a in run.insert(7, year)] == [(SECOND, 5), (2 * SECOND, 5)]
    assert [(a.at, a.value) for a in run.advance(year + SECOND)] == [(year + SECOND, 7)]
    assert run.advance(year + SECOND) == []


def test_fewer_slices_mean_fewer_calls():
    """Panes 10, Pairs 7, Cutty 3 slices and the open one: so many partials does Naive fold at each answer."""
    calls = {}
    for technique in TECHNIQUES:
        counting = Counting(sw.sum())
        run = SharedPlan([Acq(10, 3)], technique=technique).run(counting, Naive)
        for i in range(3 * 50):
            run.insert(i)
        calls[technique] = counting.combines
    assert calls["panes"] > calls["pairs"] > calls["cutty"]


def test_running_answers_are_kept_for_all_ranges_of_the_plan():
    counting = Counting(sw.sum())
    run = SharedPlan([Acq(3, 1), Acq(5, 1)]).run(counting, SlickDeque)
    for i in range(20):
        run.insert(i)
    assert counting.during(lambda: run.insert(1)) == 4


def test_whole_windows_get_one_each():
    run = SharedPlan(PLANS["odd"]).run(sw.sum(), TwoStacks)
    assert len(run._windows) == 3
    assert len(SharedPlan(PLANS["odd"]).run(sw.sum(), Naive)._windows) == 1


# -- wrong use


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "`range` must be positive; got 0"),
        ((3, -1), "`slide` must be positive; got -1"),
        ((2.5, 1), "`range` must be a count of values or a length of time; got 2.5: 6 and '10 seconds' are"),
        ((True, 1), "`range` must be a count of values or a length of time; got True: 6 and '10 seconds' are"),
        ((units(3, "km"), 1), r"`range` must be a count of values or a length of time; got units\(3, 'km'\): 6 and"),
        (
            ("10 seconds", 3),
            r"`range` and `slide` must be of one measure; got 10 seconds and rows\(3\): give two counts",
        ),
        (("0 seconds", "1 second"), "`range` must be positive"),
    ],
)
def test_wrong_queries(arguments, message):
    with pytest.raises(QueryError, match=message):
        Acq(*arguments)


def test_counts_can_be_said_in_rows():
    assert Acq(rows(6), rows(2)) == Acq(6, 2)
    assert repr(SharedPlan([Acq(6, 2)])) == "SharedPlan([Acq(range=rows(6), slide=rows(2))], technique='pairs')"


@pytest.mark.parametrize(
    ("queries", "technique", "message"),
    [
        ([Acq(6, 2)], "pair", "`technique` must be 'panes', 'pairs' or 'cutty'; got 'pair': did you mean 'pairs'"),
        ([], "pairs", r"`queries` must hold at least one Acq\(range, slide\); got none"),
        ([(6, 2)], "pairs", r"`queries` must hold Acq\(range, slide\); got \(6, 2\)"),
        (
            [Acq(6, 2), Acq("6 seconds", "2 seconds")],
            "pairs",
            r"`queries` must be of one measure; got Acq\(range=rows\(6\), slide=rows\(2\)\) and .*: make a plan for",
        ),
        (
            [Acq("1 day", "9999 milliseconds"), Acq("1 day", "9973 milliseconds")],
            "panes",
            "`queries` have a composite slide of .* with up to .* slices; choose slides with a smaller common multiple",
        ),
    ],
)
def test_wrong_plans(queries, technique, message):
    with pytest.raises(QueryError, match=message):
        SharedPlan(queries, technique=technique)


def test_wrong_runs():
    counts, time = SharedPlan([Acq(6, 2)]), SharedPlan([Acq("6 seconds", "2 seconds")])
    with pytest.raises(
        QueryError, match=r"`algorithm` must be a class of slicewise\.swag such as SlickDeque; got 'naive'"
    ):
        counts.run(sw.sum(), "naive")
    with pytest.raises(QueryError, match=r"`aggregate` must be an aggregate such as sw.sum\(\); got 'sum'"):
        counts.run("sum")
    with pytest.raises(TypeError, match="`SubtractOnEvict` cannot run `max`: it has no inverse"):
        counts.run(sw.max(), ALGORITHMS["SubtractOnEvict"])
    with pytest.raises(DataError, match=r"`time_us` is for queries on time; got 5 for SharedPlan\(.*\): leave it out"):
        counts.run(sw.sum()).insert(1, 5)
    with pytest.raises(DataError, match=r"`advance` is for queries on time; got 5 for SharedPlan\(.*\): insert values"):
        counts.run(sw.sum()).advance(5)
    run = time.run(sw.sum())
    for wrong in (None, 1.5, True):
        with pytest.raises(DataError, match=f"`time_us` must be the time of the value in microseconds; got {wrong}"):
            run.insert(1, wrong)
    run.insert(1, 10)
    with pytest.raises(DataError, match="`time_us` must not go back; got 9 after 10: sort the values first"):
        run.insert(1, 9)
    assert [a.value for a in run.advance(2 * SECOND)] == [1]
