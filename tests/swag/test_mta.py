"""LogMTA and AMTA against a plain list, the paper's figures step by step, and what their operations cost, counted."""

from __future__ import annotations

import random
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

import slicewise as sw
from slicewise.swag.amta import AMTA
from slicewise.swag.base import EmptyWindowError
from slicewise.swag.log_mta import LogMTA
from slicewise.swag.monoid_tree import NOTHING
from slicewise.swag.stores import MemoryStore
from slicewise.swag.stores.base import STATE
from tests.counting import Counting
from tests.matrices import matrix
from tests.profiles import fewer

BOTH = pytest.mark.parametrize("algorithm", [LogMTA, AMTA])


class Tagged(sw.Aggregate):
    """Several dimensions in one structure: how many, their sum, their largest, and all of them in order."""

    name = "tagged"
    identity = (0, 0, None, ())

    def lift(self, *values):
        return (1, values[0], values[0], values)

    def combine(self, a, b):
        largest = max((x for x in (a[2], b[2]) if x is not None), default=None)
        return (a[0] + b[0], a[1] + b[1], largest, a[3] + b[3])


class CountedStore(MemoryStore):
    """A store that counts the pairs read from it."""

    def __init__(self):
        super().__init__()
        self.reads = 0
        self.trips = 0

    def get(self, keys):
        self.reads += len(keys)
        self.trips += 1
        return super().get(keys)


class Cost:
    """The combine calls of each operation."""

    def __init__(self, aggregate):
        self.aggregate = aggregate
        self.worst = 0
        self.total = 0

    def of(self, operation, *arguments):
        cost = self.aggregate.during(lambda: operation(*arguments))
        self.total += cost
        self.worst = max(self.worst, cost)
        return cost


def drawn(window):
    """The level queues as the paper writes them, root first."""
    return [" ".join(f"<{a} {b}>" for a, b in level) for level in reversed(window.levels())]


# -- the paper's figures


def test_figure_1_log_mta_structure():
    window = LogMTA(sw.sum())
    window.insert_many([1, 2, 1, 2, 1, 2])
    assert drawn(window) == [
        "<6 3>",
        "<3 3> <3 ∅>",
        "<1 2> <1 2> <1 2>",
    ]
    assert window.query() == 9


def test_figure_2_bulk_eviction_leaves_only_the_newest_timestamp():
    # Timestamps, max, total - old >= 4. The figure is lost; the text says that 8 evicts all others in three steps.
    window = LogMTA(sw.max())
    window.insert_many([1, 2, 3, 4, 8])
    assert len(window.levels()) == 3
    asked = []

    def policy(total, oldest):
        asked.append((total, oldest))
        return total - oldest >= 4

    assert window.enforce(policy) == 4
    # One step per level, from the root; at the lower levels 8 has no left neighbour, and the window has one value left.
    assert asked == [(8, 4), (8, 8)]
    assert drawn(window) == ["<8 ∅>"]


def without_a_sum_over_10(total, oldest):
    # A value belongs to the window if it and all later ones add up to 10 at most. The prefix that ends with it has to
    # go if what is behind the prefix, and its own last value, are more than that.
    return total["sum"] - oldest["sum"] + oldest["last"] > 10


@BOTH
def test_section_3_2_running_example_slides_by_sum_and_answers_max(algorithm):
    #  [2 2 3 3] + 4 -> [3 3 4]
    window = algorithm(sw.multi(sum=sw.sum(), max=sw.max(), last=sw.last(), all=sw.collect_list()))
    window.insert_many([2, 2, 3, 3])
    assert window.enforce(without_a_sum_over_10) == 0
    assert window.query()["max"] == 3
    window.insert(4)
    assert window.enforce(without_a_sum_over_10) == 2
    assert window.query() == {"sum": 10, "max": 4, "last": 4, "all": [3, 3, 4]}


def test_figure_4_amta_structure_result_pair_and_stack():
    window = AMTA(sw.sum())
    window.insert_many([1, 2, 1, 2, 1, 2])
    assert drawn(window) == [
        "<3 3>",
        "<1 2> <1 2> <1 2>",
    ]
    assert window.result_pair == (6, 3)
    assert window.stack == [3, 5]  # 6 - 3, then 6 - 1 on top
    assert window.query() == 9


def test_figure_4_inserting_1_gives_r1_of_4():
    window = AMTA(sw.sum())
    window.insert_many([1, 2, 1, 2, 1, 2])
    window.insert(1)
    assert window.result_pair == (6, 4)  # the text's 7 is 6 + 1; R1 was 3
    assert window.stack == [3, 5]
    assert drawn(window) == [
        "<6 ∅>",
        "<3 3> <3 ∅>",
        "<1 2> <1 2> <1 2> <1 ∅>",
    ]


def test_figure_4_evicting_the_first_pops_5_onto_r0():
    window = AMTA(sw.sum())
    window.insert_many([1, 2, 1, 2, 1, 2])
    window.evict()
    assert window.result_pair == (5, 3)
    assert window.stack == [3]
    assert window.query() == 8


def test_figure_5_single_evictions_until_the_first_tree_is_used_up():
    window = AMTA(sw.sum())
    window.insert_many([1, 3, 2, 1, 2, 1, 1, 0, 3, 1])
    steps = []
    for _ in range(11):
        steps.append((window.query(), window.result_pair, window.stack, drawn(window)))
        if len(window):
            window.evict()
            window._check()
    e = NOTHING
    assert steps == [
        (15, (7, 8), [3, 6], ["<7 ∅>", "<4 3> <3 1>", "<1 3> <2 1> <2 1> <1 0> <3 1>"]),
        # 1 leaves: 6 is popped onto R0, nothing else to do. 4 and 7 above it are not made right.
        (14, (6, 8), [3], ["<7 ∅>", "<4 3> <3 1>", "<∅ 3> <2 1> <2 1> <1 0> <3 1>"]),
        # 3 leaves, and its pair with it; <2 1> is the new head and puts 1 + ∅ on the stack.
        (11, (3, 8), [1], ["<7 ∅>", "<∅ 3> <3 1>", "<2 1> <2 1> <1 0> <3 1>"]),
        (9, (1, 8), [], ["<7 ∅>", "<∅ 3> <3 1>", "<∅ 1> <2 1> <1 0> <3 1>"]),
        # The first tree is used up, the second takes its place: R0, R1 and the stack are made anew.
        (8, (4, 4), [1, 2], ["<3 1>", "<2 1> <1 0> <3 1>"]),
        (6, (2, 4), [1], ["<3 1>", "<∅ 1> <1 0> <3 1>"]),
        (5, (1, 4), [0], ["<∅ 1>", "<1 0> <3 1>"]),
        (4, (0, 4), [], ["<∅ 1>", "<∅ 0> <3 1>"]),
        (4, (4, e), [1], ["<3 1>"]),
        (1, (1, e), [], ["<∅ 1>"]),
        (None, (e, e), [], []),
    ]


# -- against a plain list

ALGORITHMS = st.sampled_from([LogMTA, AMTA])


@given(
    algorithm=ALGORITHMS,
    buffer=st.integers(1, 9),
    ahead=st.integers(1, 5),
    trace=st.lists(
        st.tuples(st.just("insert"), st.integers(1, 40))
        | st.tuples(st.sampled_from(["evict", "bulk", "policy", "last"]), st.floats(0, 1)),
        max_size=60,
    ),
)
def test_random_traces_give_what_a_list_gives(algorithm, buffer, ahead, trace):
    window, values, fresh = algorithm(sw.collect_list(), buffer=buffer, ahead=ahead), [], iter(range(10**6))
    for what, amount in trace:
        k = round(amount * len(values)) if what != "insert" else 0
        if what == "insert":
            new = [next(fresh) for _ in range(amount)]
            window.insert_many(new)
            values += new
        elif what == "evict":
            for _ in range(k):
                window.evict()
            del values[:k]
        elif what == "bulk":
            window.evict(k)
            del values[:k]
        elif what == "policy":
            assert window.enforce(lambda total, oldest, k=k: len(oldest) <= k) == k
            del values[:k]
        elif k:
            assert window.query(last=k) == values[-k:]
        window._check()
        assert len(window) == len(values)
        assert window.query() == values


class Window(RuleBasedStateMachine):
    """Any order of calls, with the window reopened from its store now and then."""

    algorithm = LogMTA

    def __init__(self):
        super().__init__()
        self.store = MemoryStore()
        self.window = self.algorithm(Tagged(), store=self.store, buffer=3, ahead=2)
        self.values = []

    @rule(value=st.integers(-5, 5))
    def insert(self, value):
        self.window.insert(value)
        self.values.append(value)

    @rule(values=st.lists(st.integers(-5, 5), min_size=10, max_size=40))
    def burst(self, values):
        self.window.insert_many(values)
        self.values += values

    @precondition(lambda self: self.values)
    @rule(data=st.data())
    def evict(self, data):
        n = data.draw(st.integers(0, len(self.values)))
        self.window.evict(n)
        del self.values[:n]

    @rule(most=st.integers(0, 30))
    def enforce_a_size(self, most):
        n = self.window.enforce(lambda total, oldest: total[0] - oldest[0] >= most)
        assert n == max(0, len(self.values) - most)
        del self.values[:n]

    @precondition(lambda self: self.values)
    @rule(data=st.data())
    def query_last(self, data):
        n = data.draw(st.integers(1, len(self.values)))
        assert self.window.query(last=n)[3] == tuple(self.values[-n:])

    @rule()
    def reopen(self):
        self.window.flush()
        self.window = self.algorithm(Tagged(), store=self.store, buffer=3, ahead=2)
        assert self.window.recovered.inserted - self.window.recovered.evicted == len(self.values)

    @rule()
    def sweep(self):
        self.window.sweep()
        pairs = {(i, n) for i, v in enumerate(self.window._levels) for n in range(v.head_number, v.tail_number)}
        assert set(self.store._values) <= {STATE, *pairs}

    @invariant()
    def same(self):
        assert self.window.query()[3] == tuple(self.values)
        self.window._check()


class AmortizedWindow(Window):
    algorithm = AMTA


TestLogMTA = Window.TestCase
TestAMTA = AmortizedWindow.TestCase
TestLogMTA.settings = TestAMTA.settings = fewer(6, stateful_step_count=40)


# -- policies


@matrix(algorithm=[AMTA, LogMTA], n=[1, 2, 3, 7, 8, 9, 31, 32, 33, 100], gone=[0, 1, 2, 5, 8, 20])
def test_policy_evicts_every_length_of_prefix(algorithm, n, gone):
    for k in range(n + 1):
        window = algorithm(sw.collect_list(), buffer=4)
        window.insert_many(range(n + gone))
        for _ in range(gone):
            window.evict()
        assert window.enforce(lambda total, oldest, k=k: len(oldest) <= k) == k
        assert window.query() == list(range(gone + k, gone + n))


@BOTH
def test_policy_over_several_dimensions(algorithm):
    # At most 20 values, and only as many as add up to 100 at most, whichever bites first.
    rng = random.Random(7)
    window, values = algorithm(Tagged()), []
    for _ in range(2000):
        value = rng.choice([1, 2, 3, 30])
        window.insert(value)
        values.append(value)

        def too_old(total, oldest):
            return total[0] - oldest[0] >= 20 or total[1] - oldest[1] > 100

        left = window.enforce(too_old)
        expected = 0
        while expected < len(values) and (len(values) - expected - 1 >= 20 or sum(values[expected + 1 :]) > 100):
            expected += 1
        del values[:expected]
        assert left == expected
        assert window.query()[3] == tuple(values)


@BOTH
def test_policy_of_listing_1_keeps_the_last_hour(algorithm):
    window = algorithm(sw.max())
    stamps = [0, 10, 1_000, 3_599_999, 3_600_000, 7_200_000]
    kept = []
    for stamp in stamps:
        window.insert(stamp)
        window.enforce(lambda total, oldest: total - oldest >= 3_600_000)
        kept.append(len(window))
    assert kept == [1, 2, 3, 4, 4, 1]


@BOTH
@pytest.mark.parametrize("fails_at", range(7))
def test_policy_that_raises_leaves_the_window_unchanged(algorithm, fails_at):
    window = algorithm(sw.collect_list(), buffer=5)
    window.insert_many(range(100))
    window.evict(3)
    before = window._state(), window.levels()
    calls = iter(range(100))

    def policy(total, oldest):
        if next(calls) == fails_at:
            raise RuntimeError("no clock")
        return len(oldest) <= 60

    with pytest.raises(RuntimeError, match="no clock"):
        window.enforce(policy)
    assert (window._state(), window.levels()) == before
    assert window.query() == list(range(3, 100))


@BOTH
def test_policy_must_be_a_function(algorithm):
    with pytest.raises(sw.QueryError, match=r"`policy` must be a function of \(total, oldest\); got 3"):
        algorithm(sw.sum()).enforce(3)


@BOTH
def test_policy_is_not_asked_about_an_empty_window(algorithm):
    assert algorithm(sw.sum()).enforce(lambda total, oldest: 1 / 0) == 0


# -- bad input


@BOTH
def test_evicting_more_than_there_is(algorithm):
    window = algorithm(sw.sum())
    with pytest.raises(EmptyWindowError, match="cannot evict 1 of 0 values; the window is unchanged"):
        window.evict()
    window.insert_many([1, 2, 3])
    with pytest.raises(EmptyWindowError, match="cannot evict 4 of 3 values"):
        window.evict(4)
    with pytest.raises(EmptyWindowError, match="cannot query the last 4 of 3 values"):
        window.query(last=4)
    assert window.query() == 6


@BOTH
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"store": {}}, r"`store` must be a store such as DiskStore\('folder'\); got {}"),
        ({"buffer": 0}, "`buffer` must be a positive count; got 0"),
        ({"ahead": True}, "`ahead` must be a positive count; got True"),
    ],
)
def test_wrong_arguments_fail_when_built(algorithm, arguments, message):
    with pytest.raises(sw.QueryError, match=message):
        algorithm(sw.sum(), **arguments)


class Brittle(sw.Aggregate):
    """A sum that fails on demand."""

    name = "brittle"
    identity = 0
    good_for = 10**9

    def combine(self, a, b):
        Brittle.good_for -= 1
        if Brittle.good_for < 0:
            raise OverflowError("too much")
        return a + b


@BOTH
def test_combine_that_raises_leaves_the_window_unchanged(algorithm):
    calls = [
        lambda w: w.insert(1),
        lambda w: w.evict(),
        lambda w: w.evict(3),
        lambda w: w.evict(11),
        lambda w: w.query(),
    ]
    for n in [*range(1, 24), 31, 32, 33, 64]:
        for gone in range(0, n, 3):
            for call in calls[: 2 if n - gone < 12 else 5]:
                for good_for in range(4):
                    Brittle.good_for = 10**9
                    window = algorithm(Brittle())
                    window.insert_many(range(n))
                    window.evict(gone)
                    before = window._state()
                    Brittle.good_for = good_for
                    try:
                        call(window)
                    except OverflowError:
                        assert window._state() == before
                    finally:
                        Brittle.good_for = 10**9
                    window._check()


# -- costs, in calls of `combine`


SIZES = pytest.mark.parametrize(
    "sizes", [(1, 2, 3, 10, 64, 100), pytest.param((1000, 4096, 5000), marks=pytest.mark.slow)], ids=str
)


@SIZES
def test_amta_costs_four_combines_per_slide_amortised_and_a_few_per_level_worst(sizes):
    for size in sizes:
        aggregate = Counting(sw.max())
        window = AMTA(aggregate)
        window.insert_many(range(size))
        insert, evict, query = Cost(aggregate), Cost(aggregate), Cost(aggregate)
        slides = 4 * size + 1000
        for i in range(slides):
            insert.of(window.insert, i)
            evict.of(window.evict)
            query.of(window.query)
        levels = ceil(log2(size + 1)) + 1
        assert len(window.levels()) <= levels
        # R1 and, for every other value, a parent; for every fourth, a grandparent; and so on: 1 + 1/2 + 1/4 + ...
        assert insert.total <= 2.13 * slides
        assert evict.total <= 1.01 * slides
        assert insert.total + evict.total + query.total <= 4.01 * slides
        assert insert.worst <= 2 * levels + 1
        assert evict.worst <= 2 * levels + 1
        assert query.worst <= 1


def test_amta_is_amortised_constant_when_the_window_grows_and_shrinks():
    rng = random.Random(3)
    aggregate = Counting(sw.max())
    window = AMTA(aggregate)
    operations = worst = 0
    for target in [5000, 10, 3000, 0, 7000, 6000, 6500, 1, 2, 1, 2, 1, 4096, 1]:
        while len(window) != target:
            before = aggregate.combines
            if len(window) < target:
                window.insert(rng.random())
            else:
                window.evict()
            worst = max(worst, aggregate.combines - before)
            operations += 1
    assert aggregate.combines <= 2.1 * operations
    assert worst <= 3 * ceil(log2(7000) + 1)


@pytest.mark.parametrize("batch", [100, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5, 20))])
def test_amta_evicts_batches_of_any_size_in_amortised_constant_time(batch):
    aggregate = Counting(sw.max())
    window = AMTA(aggregate)
    window.insert_many(range(4096))
    before, rounds = aggregate.combines, 20_000 // batch
    for i in range(rounds):
        window.insert_many([i] * batch)
        window.evict(batch)
        window.query()
    assert aggregate.combines - before <= 5.5 * batch * rounds


@SIZES
def test_log_mta_costs_one_combine_per_level(sizes):
    for size in sizes:
        aggregate = Counting(sw.max())
        window = LogMTA(aggregate)
        window.insert_many(range(size))
        insert, evict, query = Cost(aggregate), Cost(aggregate), Cost(aggregate)
        for i in range(2 * size + 100):
            insert.of(window.insert, i)
            evict.of(window.evict)
            query.of(window.query)
        levels = ceil(log2(size + 1)) + 1
        assert len(window.levels()) <= levels
        assert insert.worst <= levels + 1
        assert evict.worst <= levels
        assert query.worst <= 1


@BOTH
def test_a_long_stream_through_a_small_window_does_not_grow_levels(algorithm):
    window = algorithm(sw.sum())
    most = 0
    for i in range(20_000):
        window.insert(i)
        if len(window) > 10:
            window.evict()
        most = max(most, len(window._levels))
    assert most <= 5


# -- a window of 2**20 values

MILLION = 1 << 20


@pytest.mark.slow
@BOTH
def test_a_million_values_need_a_few_local_nodes_per_level_and_a_cut_touches_no_more(algorithm):
    store, most = CountedStore(), {}
    window = algorithm(Counting(sw.max()), store=store, buffer=512, ahead=64)
    for i in range(MILLION):
        window.insert(i)
        if i & 1023 == 1000:
            most[i + 1] = window.local_nodes
    for n, nodes in most.items():
        # The buffer has 512 pairs and what one insertion may add; each level its two ends and, in AMTA, the stack.
        assert nodes <= 2 * 512 + 8 * (log2(n) + 1), n
    window.flush()
    assert len(store) > MILLION - 100

    # Each cut is made on another window over the same pairs, so that the million is there for the next one.
    for stays in (1, 2, 1000, 1 << 10, (1 << 19) + 1, MILLION - 30):
        cut_by_count(algorithm, store, stays)
    for stays in (0, 1, 2, 1000, (1 << 19) + 1, MILLION - 30, MILLION - 1, MILLION):
        cut_by_policy(algorithm, store, stays)
    for i in range(10_000):
        window.insert(MILLION + i)
        window.evict()
        if i % 1000 == 0:
            assert window.local_nodes <= 2 * 512 + (8 + 2 * 64) * len(window._levels)


def cut_by_count(algorithm, store, stays):
    aggregate = Counting(sw.max())
    window = algorithm(aggregate, store=store, buffer=512, ahead=64)
    levels = len(window._levels)
    store.reads = store.trips = 0
    window.evict(MILLION - stays)
    assert window.query() == MILLION - 1
    assert store.trips <= 1
    assert store.reads <= levels
    assert aggregate.combines <= 3 * levels


def cut_by_policy(algorithm, store, stays):
    aggregate = Counting(sw.max())
    window = algorithm(aggregate, store=store, buffer=512, ahead=64)
    levels, asked = len(window._levels), []

    def policy(total, oldest):
        asked.append(oldest)
        return oldest < MILLION - stays

    store.reads = 0
    assert window.enforce(policy) == MILLION - stays
    # LogMTA walks down from the root; AMTA climbs from the front, so that evicting one value takes two calls.
    assert len(asked) <= (levels + 1 if algorithm is LogMTA else 3 * levels)
    assert algorithm is LogMTA or stays != MILLION - 1 or len(asked) == 2
    assert store.reads <= 4 * levels
    assert aggregate.combines <= 6 * levels
