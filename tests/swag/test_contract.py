"""One suite, every algorithm: algorithms x aggregates x traces against Naive, invariants after every operation."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slicewise.aggregates as sw
from slicewise.errors import AggregateError, DataError, QueryError, SlicewiseError
from slicewise.same import is_same
from slicewise.swag import ALGORITHMS, CuttyStore, FiBA, FlatFIT, Naive, SlickDeque, SubtractOnEvict
from slicewise.swag.base import EmptyWindowError
from tests.counting import Counting
from tests.matrices import few_quick, matrix

longest_word = sw.aggregate(combine=lambda a, b: a if len(a) >= len(b) else b, identity="", name="longest")

#: name -> (aggregate, what a value looks like)
AGGREGATES = {
    "sum": (sw.sum(), int),
    "max": (sw.max(), int),
    "min": (sw.min(), int),
    "count": (sw.count(), int),
    "avg": (sw.avg(), int),
    "stddev": (sw.stddev(), float),
    "range_": (sw.range_(), int),
    "max_count": (sw.max_count(), int),
    "first": (sw.first(), int),
    "last": (sw.last(), int),
    "collect_list": (sw.collect_list(), int),
    "collect_set": (sw.collect_set(), int),
    "concat": (sw.concat(separator=","), str),
    "median": (sw.median(), int),
    "max_by": (sw.max_by("who", "score"), tuple),
    "user": (longest_word(), str),
    "multi_mixed": (sw.multi(total=sw.sum(), top=sw.max(), low=sw.min()), int),
    "multi_invertible": (sw.multi(total=sw.sum(), n=sw.count()), int),
    "multi_ordered": (sw.multi(first=sw.first(), all=sw.collect_list()), int),
    "multi_columns": (sw.multi(top=sw.max("who"), total=sw.sum("score"), n=sw.count()), tuple),
}

SUBTRACTED = {"sum", "count", "avg", "stddev", "median", "multi_invertible"}
PICKED = {"max", "min", "range_", "first", "last", "max_by", "multi_mixed", "multi_columns"}
SLOW = {"max_count", "collect_set", "median"}
PAIRS = [
    (algorithm, aggregate)
    for algorithm in ALGORITHMS
    for aggregate in AGGREGATES
    if algorithm not in ("SubtractOnEvict", "SlickDeque")
    or aggregate in SUBTRACTED
    or (algorithm == "SlickDeque" and aggregate in PICKED)
]


def steady(rng):
    yield ("insert", 13)
    for _ in range(60):
        yield from (("evict", 1), ("insert", 1))


def sawtooth(rng):
    for height in (1, 5, 20):
        yield from [("insert", 1)] * height + [("evict", 1)] * height


def burst(rng):
    size = 0
    for _ in range(12):
        more = rng.randrange(30)
        size += more
        yield ("insert_many", more)
        less = rng.randrange(size + 1)
        size -= less
        yield ("evict", less)


def grow_and_shrink(rng):
    for _ in range(25):
        yield from (("insert", 3), ("evict", 1))
    for _ in range(25):
        yield from (("insert", 1), ("evict", 3))


TRACES = {f.__name__: f for f in (steady, sawtooth, burst, grow_and_shrink)}


def value_of(kind, rng):
    if kind is not tuple and rng.random() < 0.05:
        return None
    if kind is str:
        return "abcdefghij"[: rng.randrange(1, 6)]
    if kind is float:
        return rng.uniform(-50, 50)
    if kind is tuple:
        return rng.choice("abcdef"), rng.choice([None, 1, 2, 3, 4, 5])
    return rng.randrange(-50, 50)


def build(algorithm, aggregate, **options):
    cls = ALGORITHMS[algorithm]
    return cls(aggregate, **options)


def agree(window, naive):
    assert len(window) == len(naive)
    assert is_same(window.query(), naive.query(), 100), (window.query(), naive.query())
    if window.several_ranges and len(naive):
        n = len(naive)
        ranges = [max(n // 2, 1), n, 1, max(n - 1, 1)]
        assert is_same(window.query_many(ranges), naive.query_many(ranges), 100)


@pytest.mark.parametrize(
    ("algorithm", "name", "trace"), few_quick((algorithm, name, trace) for trace in TRACES for algorithm, name in PAIRS)
)
def test_answers_are_those_of_naive(algorithm, name, trace):
    aggregate, kind = AGGREGATES[name]
    window, naive = build(algorithm, aggregate), Naive(aggregate)
    rng = random.Random(f"{name} {trace}")
    window._check()
    agree(window, naive)
    for operation, n in TRACES[trace](rng):
        if operation == "evict":
            naive.evict(n)
            window.evict(n)
        elif operation == "insert":
            for _ in range(n):
                value = value_of(kind, rng)
                naive.insert(value)
                window.insert(value)
                window._check()
        else:
            values = [value_of(kind, rng) for _ in range(n)]
            naive.insert_many(values)
            window.insert_many(values)
        window._check()
        if name not in SLOW or rng.random() < 0.3:
            agree(window, naive)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_queries_may_be_rare(algorithm):
    """What is put off until it is asked is made up for then."""
    rng = random.Random(3)
    aggregate = sw.sum() if algorithm == "SubtractOnEvict" else sw.max()
    window, naive = build(algorithm, aggregate), Naive(aggregate)
    for step in range(400):
        if rng.random() < 0.55 or not len(naive):
            value = rng.randrange(100)
            window.insert(value)
            naive.insert(value)
        else:
            n = rng.randrange(min(len(naive), 5) + 1)
            window.evict(n)
            naive.evict(n)
        window._check()
        if step % 37 == 0:
            agree(window, naive)
    agree(window, naive)


ARRAYS = {
    "integers": np.array([3, -7, 3, 50, 2**40, -1, 0, 0, 12, 5]),
    "large": np.array([2**62, 2**62, -(2**62), 2**62, 5, 2**63 - 1]),
    "small": np.array([3, 1, 2, 2, 9, 0], np.int8),
    "unsigned": np.array([3, 1, 2, 2, 9, 0], np.uint16),
    "floats": np.array([0.1, 2.5, -3.75, 1e3, 0.0, -0.0, 2.5]),
    "not a number": np.array([0.5, np.nan, 2.0, np.nan, 1.0]),
    "single": np.array([0.5, 2.0, 1.0], np.float32),
    "one": np.array([7]),
    "none": np.array([], np.int64),
}


#: The order of NaN is tested with the aggregates.
BATCHES = [
    (algorithm, name, data)
    for algorithm, name in PAIRS
    for data in ARRAYS
    if AGGREGATES[name][1] in (int, float) and (data != "not a number" or name not in ("collect_set", "median"))
]


@pytest.mark.parametrize(("algorithm", "name", "data"), few_quick(BATCHES))
def test_arrays_give_what_single_values_give(algorithm, name, data):
    aggregate, values = AGGREGATES[name][0], ARRAYS[data]
    at_once, one_by_one = build(algorithm, aggregate), build(algorithm, aggregate)
    for start in (20, 5, 1):
        before = list(range(start))
        at_once.insert_many(before)
        at_once.insert_many(values)
        for value in [*before, *values.tolist()]:
            one_by_one.insert(value)
        at_once._check()
        exact = values.dtype.kind in "iu" and name != "stddev"
        scale = 0 if exact else 2**41
        for _ in range(3):
            assert is_same(at_once.query(), one_by_one.query(), scale), (at_once.query(), one_by_one.query())
            at_once.evict(2)
            one_by_one.evict(2)
            at_once._check()


# -- policies


def keeping(algorithm):
    return {"keep_values": True} if algorithm in ("FlatFIT", "SlickDeque") else {}


@matrix(algorithm=[a for a in ALGORITHMS if a != "SubtractOnEvict"], limit=[0, 1, 40, 10**6])
def test_enforce_evicts_the_longest_prefix_that_the_policy_allows(algorithm, limit):
    """Keep at least `limit` in the window, and nothing that lies 30 seconds back: two dimensions, one structure."""
    aggregate = sw.multi(seconds=sw.max("t"), bytes=sw.sum("size"))
    rng = random.Random(limit)
    rows = [{"t": t, "size": rng.randrange(10)} for t in range(60)]
    window, naive = build(algorithm, aggregate, **keeping(algorithm)), Naive(aggregate)
    window.insert_many(rows)
    naive.insert_many(rows)
    window.evict(3)
    naive.evict(3)

    def policy(total, oldest):
        return total["bytes"] - oldest["bytes"] >= limit and total["seconds"] - oldest["seconds"] > 30

    left, expected = rows[3:], 0
    while expected < len(left):
        rest = left[expected + 1 :]
        if not (sum(r["size"] for r in rest) >= limit and 59 - left[expected]["t"] > 30):
            break
        expected += 1
    assert window.enforce(policy) == expected == naive.enforce(policy)
    window._check()
    agree(window, naive)
    window.insert(rows[0])
    naive.insert(rows[0])
    agree(window, naive)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_enforce_may_empty_the_window_or_leave_it(algorithm):
    window = build(algorithm, sw.sum(), **keeping(algorithm))
    assert window.enforce(lambda total, oldest: True) == 0
    window.insert_many([1, 2, 3])
    assert window.enforce(lambda total, oldest: False) == 0
    assert window.enforce(lambda total, oldest: total - oldest >= 3) == 2
    assert window.query() == 3
    assert window.enforce(lambda total, oldest: True) == 1
    assert (len(window), window.query()) == (0, None)
    window._check()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_policy_that_raises_leaves_the_window_as_it_was(algorithm):
    window = build(algorithm, sw.sum(), **keeping(algorithm))
    window.insert_many([4, 5, 6, 7, 8])

    def policy(total, oldest):
        if oldest > 8:
            raise RuntimeError("too much")
        return True

    with pytest.raises(RuntimeError, match="too much"):
        window.enforce(policy)
    window._check()
    assert (len(window), window.query()) == (5, 30)
    window.evict()
    window.insert(1)
    assert window.query() == 27


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_policy_must_be_a_function(algorithm):
    window = build(algorithm, sw.sum(), **keeping(algorithm))
    window.insert(1)
    with pytest.raises(QueryError, match=r"`policy` must be a function of \(total, oldest\); got 3"):
        window.enforce(3)
    assert window.query() == 1


def test_values_that_were_dropped_cannot_be_asked_by_a_policy():
    for window, message in [
        (
            SlickDeque(sw.max()),
            "`SlickDeque` drops values that cannot be an answer any more and does not know the oldest",
        ),
        (FlatFIT(sw.max()), "`FlatFIT` overwrites single values with aggregates and does not know the oldest ones"),
    ]:
        window.insert_many([3, 1, 2])
        with pytest.raises(QueryError, match=message + ".*; build it with keep_values=True to enforce a policy"):
            window.enforce(lambda total, oldest: True)
        window._check()
        assert (len(window), window.query()) == (3, 3)


# -- wrong use


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_value_that_cannot_be_combined_has_never_come(algorithm):
    """Where it is found out when it comes; some put that off until they are asked."""
    refused = 0
    for n in range(1, 40):
        window, naive = build(algorithm, sw.sum()), Naive(sw.sum())
        for w in (window, naive):
            w.insert_many(list(range(n)))
            w.evict(n // 3)
            w.insert(1)
        try:
            window.insert("oops")
        except TypeError:
            refused += 1
            window._check()
            agree(window, naive)
            for w in (window, naive):
                w.insert(5)
                w.evict()
            window._check()
            agree(window, naive)
    assert (refused > 10) == (algorithm not in ("Naive", "FlatFIT", "ReactiveAggregator"))


def test_nothing_is_subtracted_when_everything_leaves():
    window = SubtractOnEvict(Counting(sw.sum()))
    window.insert_many([float("inf"), 1.0, 2.0])
    assert window.aggregate.during(lambda: window.evict(3)) == 0
    window.insert(4.0)
    assert window.query() == 4.0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_evicting_more_than_there_is(algorithm):
    window = build(algorithm, sw.sum())
    with pytest.raises(EmptyWindowError, match="cannot evict 1 of 0 values; the window is unchanged"):
        window.evict()
    window.insert_many([1, 2, 3])
    with pytest.raises(IndexError, match="cannot evict 4 of 3 values; the window is unchanged"):
        window.evict(4)
    for n in (-1, 1.5, True, "2"):
        with pytest.raises(QueryError, match=f"`n` must be a count of values; got {n!r}"):
            window.evict(n)
    window._check()
    assert (len(window), window.query()) == (3, 6)
    window.evict(0)
    assert window.query() == 6


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_range_longer_than_the_window(algorithm):
    window = build(algorithm, sw.sum())
    window.insert_many([1, 2, 3])
    if not window.several_ranges:
        message = (
            f"`{algorithm}` answers the whole window only; got last=2: use SlickDeque, FlatFIT or FlatFAT for several"
        )
        with pytest.raises(QueryError, match=message):
            window.query(last=2)
        return
    with pytest.raises(EmptyWindowError, match="cannot query the last 4 of 3 values"):
        window.query(last=4)
    with pytest.raises(EmptyWindowError, match="cannot query the last 4 of 3 values"):
        window.query_many([1, 4])
    for last in (0, -1, 1.5, True):
        with pytest.raises(QueryError, match=f"`last` must be a positive count of values; got {last!r}"):
            window.query(last=last)
    assert window.query_many([]) == []
    window._check()
    assert window.query() == 6


@pytest.mark.parametrize("name", sorted(set(AGGREGATES) - SUBTRACTED))
def test_subtracting_is_refused_when_built(name):
    aggregate = AGGREGATES[name][0]
    reason = (
        "its inverse takes values out at the back, but they leave a window at the front"
        if aggregate.invertible
        else "it has no inverse to take old values out of a total"
    )
    with pytest.raises(AggregateError) as error:
        SubtractOnEvict(aggregate)
    assert str(error.value) == (
        f"`SubtractOnEvict` cannot run `{aggregate.name}`: {reason}; use SlickDeque, TwoStacks or DABA"
    )


@pytest.mark.parametrize("name", sorted(set(AGGREGATES) - SUBTRACTED - PICKED))
def test_slickdeque_refuses_what_neither_subtracts_nor_picks(name):
    with pytest.raises(
        AggregateError, match=r"^`SlickDeque` cannot run `\w+`: (it|its) .*; use TwoStacks, DABA or FlatFIT$"
    ):
        SlickDeque(AGGREGATES[name][0])


def test_slickdeque_finds_out_about_a_combine_that_does_not_pick():
    class Liar(sw.Aggregate):
        name = "liar"
        selective = True

        def combine(self, a, b):
            return a + b if b > 5 else max(a, b)

    window = SlickDeque(Liar())
    window.insert_many([4, 3, 2])
    with pytest.raises(
        AggregateError,
        match="`combine` of `liar` must give one of its two arguments to run on SlickDeque; got 8 from 2 and 6",
    ):
        window.insert(6)
    window._check()
    assert (len(window), window.query()) == (3, 4)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_aggregate_must_be_one(algorithm):
    with pytest.raises(QueryError, match=r"`aggregate` must be an aggregate such as sw.sum\(\); got 'sum'"):
        build(algorithm, "sum")


def test_rows_need_the_columns_of_the_aggregate():
    window = Naive(sw.max_by("who", "score"))
    with pytest.raises(DataError, match="a value has no 'score'; did you mean 'scores'"):
        window.insert({"who": "ann", "scores": 3})
    assert len(window) == 0


def test_nulls_hold_their_place():
    for algorithm, cls in ALGORITHMS.items():
        window = cls(sw.multi(n=sw.count(), total=sw.sum()))
        window.insert_many([None, 5, None])
        assert (len(window), window.query()) == (3, {"n": 3, "total": 5}), algorithm
        window.evict(2)
        assert window.query() == {"n": 1, "total": None}, algorithm
        counting = cls(sw.count())
        counting.insert_many([None, 5])
        assert counting.query() == 2, algorithm


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_has_its_papers_and_facts(name):
    cls = ALGORITHMS[name]
    assert cls.__name__ in (name, name.removesuffix("Store") + "InOrder")
    assert all((cls.facts.needs, cls.facts.order, cls.facts.time, cls.facts.space, cls.facts.published))
    assert ">>>" in cls.__doc__
    structure = {"CuttyStore": CuttyStore, "FiBA": FiBA}.get(name, cls)
    assert structure.facts is cls.facts
    module = __import__(structure.__module__, fromlist=["x"])
    assert any(year in module.__doc__ for year in ("2004", "2005", "2015", "2016", "2017", "2018", "2019"))


@pytest.mark.parametrize("algorithm", ["FlatFAT", "ReactiveAggregator"])
@pytest.mark.parametrize("capacity", [0, 3, -4, 2.0, True])
def test_capacity_is_a_power_of_two(algorithm, capacity):
    with pytest.raises(QueryError, match=f"`capacity` must be a power of two; got {capacity!r}"):
        build(algorithm, sw.sum(), capacity=capacity)


def test_chunk_is_a_power_of_two():
    with pytest.raises(SlicewiseError, match="`chunk` must be a power of two; got 5"):
        build("DABA", sw.sum(), chunk=5)


def test_ranges_are_positive():
    with pytest.raises(QueryError, match="`ranges` must be positive counts of values; got 0"):
        SlickDeque(sw.sum(), ranges=[3, 0])


NULLS = {
    "list": [3, None, None, 5],
    "masked": np.ma.array([3, 90, 91, 5], mask=[False, True, True, False]),
    "arrow": pa.array([3, None, None, 5]),
    "chunked": pa.chunked_array([[3, None], [None, 5]]),
    "pandas": pd.Series([3, None, None, 5], dtype="Int64"),
    "pandas objects": pd.Series([3, None, None, 5], dtype=object),
}


@matrix(algorithm=ALGORITHMS, kind=NULLS)
def test_nulls_of_every_kind_of_array_are_nulls(algorithm, kind):
    cls, values = ALGORITHMS[algorithm], NULLS[kind]
    wanted = {sw.count(): 4, sw.count("v"): 2, sw.sum(): 8, sw.max(): 5, sw.first(): 3}
    for aggregate, answer in wanted.items():
        if cls is SubtractOnEvict and not aggregate.invertible:
            continue
        window = cls(aggregate)
        window.insert_many(values)
        assert window.query() == answer, aggregate
        window.evict()
        window.insert_many([])
        assert window.query() == {sw.count(): 3, sw.count("v"): 1, sw.first(): None}.get(aggregate, 5), aggregate
