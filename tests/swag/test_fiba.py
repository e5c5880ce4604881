"""FiBA: times in any order against a sorted list, bounds in combines, bulk insertion and eviction, and wrong use."""

from __future__ import annotations

import random
from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.errors import QueryError
from slicewise.swag import FiBA
from slicewise.swag.base import EmptyWindowError
from tests.counting import Counting
from tests.matrices import matrix


class Sorted:
    """The definition: values by time, in the order in which they came."""

    def __init__(self):
        self.by_time = {}

    def insert(self, time, value):
        self.by_time.setdefault(time, []).append(value)

    def between(self, low=None, high=None):
        kept = (t for t in sorted(self.by_time) if (low is None or t >= low) and (high is None or t <= high))
        return [value for t in kept for value in self.by_time[t]]

    def drop(self, upto):
        self.by_time = {t: values for t, values in self.by_time.items() if t > upto}


def agree(window, definition):
    window._check()
    assert len(window) == len(definition.by_time)
    assert window.query() == definition.between()
    times = sorted(definition.by_time)
    assert (window.oldest, window.youngest) == ((times[0], times[-1]) if times else (None, None))


TIMES = st.integers(0, 60)
STEPS = st.one_of(
    st.tuples(st.just("insert"), TIMES),
    st.tuples(st.just("bulk_insert"), st.lists(TIMES, max_size=40)),
    st.tuples(st.just("evict"), st.none()),
    st.tuples(st.just("bulk_evict"), TIMES),
    st.tuples(st.just("query"), st.tuples(st.none() | TIMES, st.none() | TIMES)),
)


@given(st.lists(STEPS, max_size=40), st.sampled_from([2, 3, 5]))
def test_every_order_of_calls_gives_what_a_sorted_list_gives(steps, min_arity):
    """Lists of numbered values, so that anything lost, doubled or out of order shows."""
    window, definition, numbers = FiBA(sw.collect_list(), min_arity), Sorted(), iter(range(10**6))
    for step, argument in steps:
        if step == "insert":
            number = next(numbers)
            window.insert(argument, number)
            definition.insert(argument, number)
        elif step == "bulk_insert":
            pairs = [(time, next(numbers)) for time in argument]
            window.bulk_insert(pairs)
            for time, number in pairs:
                definition.insert(time, number)
        elif step == "evict" and len(window):
            definition.drop(window.oldest)
            window.evict()
        elif step == "bulk_evict":
            window.bulk_evict(argument)
            definition.drop(argument)
        elif step == "query":
            low, high = argument
            if low is not None and high is not None:
                low, high = min(argument), max(argument)
            check_range(window, definition, low, high)
        agree(window, definition)


def check_range(window, definition, low, high):
    times = sorted(definition.by_time)
    outside = not times or (low is not None and low > times[-1]) or (high is not None and high < times[0])
    if outside and (low, high) != (None, None):
        with pytest.raises(EmptyWindowError):
            window.query(low, high)
    else:
        assert window.query(low, high) == definition.between(low, high)


def adversarial(n):
    """Orders of arrival that hit one place again and again, or both ends in turn."""
    yield "descending", range(n, 0, -1)
    yield "outside in", [i // 2 if i % 2 else n - i // 2 for i in range(n)]
    yield "inside out", [n // 2 + (i // 2 if i % 2 else -i // 2) for i in range(n)]
    yield "always second", [0, n, *(n - i for i in range(1, n - 1))]
    shuffled = list(range(n))
    random.Random(5).shuffle(shuffled)
    yield "shuffled", shuffled


@matrix(name=dict(adversarial(100)), min_arity=[2, 4])
def test_adversarial_orders_of_arrival(name, min_arity):
    times = dict(adversarial(100))[name]
    window, definition = FiBA(sw.collect_list(), min_arity), Sorted()
    for number, time in enumerate(times):
        window.insert(time, number)
        definition.insert(time, number)
        agree(window, definition)
    while len(window) > 40:
        definition.drop(window.oldest)
        window.evict()
        agree(window, definition)
    window.bulk_evict(window.youngest - 3)
    definition.drop(max(definition.by_time) - 3)
    agree(window, definition)


@pytest.mark.parametrize("n", [1, 2, 7, 64, 200])
def test_every_cut_of_a_bulk_eviction(n):
    for upto in range(-1, n + 1, 1 if n <= 64 else 7):
        window, definition = FiBA(sw.collect_list()), Sorted()
        window.bulk_insert((i, i) for i in range(n))
        for i in range(n):
            definition.insert(i, i)
        window.bulk_evict(upto)
        definition.drop(upto)
        agree(window, definition)
        window.insert(n, n)
        definition.insert(n, n)
        agree(window, definition)


def test_values_of_equal_time_are_combined_the_later_on_the_right():
    window = FiBA(sw.concat())
    for time, value in [(1, "a"), (3, "c"), (1, "b"), (3, "d")]:
        window.insert(time, value)
    window.bulk_insert([(3, "e"), (1, "!"), (3, "f")])
    assert window.query() == "ab!cdef"
    assert len(window) == 2


def test_nulls_hold_their_time():
    window = FiBA(sw.multi(n=sw.count(), total=sw.sum()))
    window.bulk_insert([(2, None), (1, 5)])
    assert window.query() == {"n": 2, "total": 5}
    window.bulk_evict(1)
    assert window.query() == {"n": 1, "total": None}


# -- bounds, counted


def filled(n, min_arity=2, step=1000):
    window = FiBA(Counting(sw.max()), min_arity)
    window.bulk_insert((step * i, i) for i in range(n))
    return window


@pytest.mark.parametrize("n", [100, 1000, 10_000])
def test_slides_in_order_take_constant_combines_whatever_the_size(n):
    window = filled(n)
    before = window.aggregate.combines
    for i in range(1000):
        window.evict()
        window.insert(1000 * (n + i), i)
        window.query()
    assert (window.aggregate.combines - before) / 1000 < 16
    assert window.aggregate.during(window.query) == 2


@pytest.mark.slow
@pytest.mark.parametrize("distance", [1, 10, 100, 1000, 5000])
@pytest.mark.parametrize("side", ["front", "back"])
def test_insertion_takes_the_logarithm_of_the_distance(distance, side):
    """From the nearer end, amortised over values that spread out at that distance."""
    n, calls = 10_000, 200
    window = filled(n)
    rng = random.Random(distance)
    taken = 0
    for i in range(calls):
        at = distance if side == "front" else n - distance
        time = 1000 * at + rng.randrange(1, 999)
        taken += window.aggregate.during(lambda time=time, i=i: window.insert(time, i))
    assert taken / calls < 12 + 6 * log2(distance + calls)


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 10, 100, 1000, 9999])
def test_bulk_eviction_takes_the_logarithm_of_what_leaves(m):
    window = filled(10_000)
    assert window.aggregate.during(lambda: window.bulk_evict(1000 * (m - 1))) <= 12 + 8 * log2(m)
    assert len(window) == 10_000 - m
    window._check()


def test_bulk_insertion_takes_less_than_one_by_one():
    times = [1000 * i + 500 for i in range(4000, 6000)]
    at_once, one_by_one = filled(10_000), filled(10_000)
    bulk = at_once.aggregate.during(lambda: at_once.bulk_insert((t, 1) for t in times))
    single = one_by_one.aggregate.during(lambda: [one_by_one.insert(t, 1) for t in times])
    assert bulk < 4 * len(times) < single / 5
    assert at_once.query() == one_by_one.query()


@pytest.mark.parametrize("n", [100, 10_000])
def test_ranges_take_the_logarithm_of_the_distance(n):
    window = filled(n)
    for last in (1, 5, 50, n - 1):
        taken = window.aggregate.during(lambda last=last: window.query(low=1000 * (n - last)))
        assert taken <= 8 + 6 * log2(last)
        assert taken <= 8 + 6 * log2(n)


def test_nothing_but_one_aggregate_per_node_is_kept():
    window = filled(1000, min_arity=4)
    nodes = len(list(window._tree.root.nodes()))
    assert nodes <= 1000 / 3 + 1


# -- wrong use


def test_value_that_cannot_be_combined_has_never_come():
    """Where it is found out when it comes: an entry that is alone in the root is combined when it is asked for."""
    refused, accepted = 0, 0
    for n in range(1, 60):
        for at in {0, n // 2, n - 1}:
            for pairs in (
                [(10 * at, "oops")],
                [(10 * at + 5, "oops")],
                [(10 * at + 1, 1), (10 * at + 2, "oops"), (10 * at + 3, 2), (999, 4)],
            ):
                window = FiBA(sw.sum())
                window.bulk_insert((10 * i, i) for i in range(n))
                try:
                    window.bulk_insert(pairs)
                except TypeError:
                    refused += 1
                    window._check()
                    assert (len(window), window.query()) == (n, sum(range(n)))
                else:
                    accepted += 1
    assert refused > 50 * accepted


def test_evicting_from_an_empty_window():
    window = FiBA(sw.sum())
    with pytest.raises(EmptyWindowError, match=r"^cannot evict 1 of 0 values; the window is unchanged$"):
        window.evict()
    window.bulk_evict(7)
    assert (len(window), window.query()) == (0, None)


def test_queries_outside_of_the_times():
    window = FiBA(sw.sum())
    with pytest.raises(EmptyWindowError, match=r"^the window is empty; query\(\) without times gives the value of no"):
        window.query(low=3)
    window.bulk_insert([(10, 1), (20, 2)])
    for low, high, asked in [(21, None, "21 to ..."), (None, 9, "... to 9"), (30, 40, "30 to 40")]:
        with pytest.raises(EmptyWindowError) as error:
            window.query(low, high)
        assert str(error.value) == f"times {asked} lie outside of the window, which has 10 to 20"
    with pytest.raises(QueryError, match=r"^`high` must not lie before `low`; got 10 and 20$"):
        window.query(20, 10)
    assert window.query(11, 19) is None
    assert window.query(-5, 10) == 1


@pytest.mark.parametrize("time", [None, float("nan")])
def test_times_are_ordered(time):
    window = FiBA(sw.sum())
    window.insert(1, 1)
    for call in (
        lambda: window.insert(time, 1),
        lambda: window.bulk_insert([(1, 1), (time, 1)]),
        lambda: window.bulk_evict(time),
    ):
        with pytest.raises(QueryError, match=rf"^a time must be a value that is ordered; got {time!r}$"):
            call()
    assert window.query() == 1


def test_times_are_of_one_type():
    window = FiBA(sw.sum())
    message = r"^time 'noon' cannot be compared with 1; give all times in one type$"
    with pytest.raises(QueryError, match=message):
        window.bulk_insert([(1, 1), ("noon", 1)])
    window.insert(1, 1)
    for call in (lambda: window.insert("noon", 1), lambda: window.query(low="noon"), lambda: window.bulk_evict("noon")):
        with pytest.raises(QueryError, match=message):
            call()
    assert window.query() == 1


@pytest.mark.parametrize("min_arity", [1, 0, -2, 2.0, True, "2"])
def test_arity_is_two_or_more(min_arity):
    with pytest.raises(QueryError, match=rf"^`min_arity` must be a count of children, 2 or more; got {min_arity!r}$"):
        FiBA(sw.sum(), min_arity)


def test_aggregate_must_be_one():
    with pytest.raises(QueryError, match=r"^`aggregate` must be an aggregate such as sw.sum\(\); got 'sum'$"):
        FiBA("sum")
