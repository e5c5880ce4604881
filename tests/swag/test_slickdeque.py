"""SlickDeque's paper, step by step: Examples 2 and 3, and Table 1 in calls, not in seconds."""

from __future__ import annotations

import random
from math import log2

import pytest

import slicewise.aggregates as sw
from slicewise.swag import (
    DABA,
    BInt,
    FlatFAT,
    FlatFIT,
    Naive,
    ReactiveAggregator,
    SlickDeque,
    SubtractOnEvict,
    TwoStacks,
)
from slicewise.swag.chunked_queue import ChunkedQueue
from tests.counting import Counting, slides

STREAM = [6, 5, 0, 1, 3, 4, 2, 7]


def fill(window, n):
    """A window of n initial values, as the paper has it before Step 1."""
    window.insert_many([None] * n)
    window.aggregate.calls.clear()
    return window


def step(window, value):
    window.evict()
    window.insert(value)
    window._check()
    return window.query_many([3, 5])


def test_example_2_sums_over_ranges_3_and_5():
    #        Q1  Q2
    answers = [(6, 6), (11, 11), (11, 11), (6, 12), (4, 15), (8, 13), (9, 10), (13, 17)]
    slick = fill(SlickDeque(Counting(sw.sum()), ranges=[3, 5]), 5)
    naive = fill(Naive(Counting(sw.sum())), 5)
    for value, (q1, q2) in zip(STREAM, answers, strict=True):
        assert step(slick, value) == step(naive, value) == [q1, q2]
        kept = {k: total for k, (total, _) in slick._strategy.answers.items()}
        assert kept == {3: q1, 5: q2}
    assert (naive.aggregate.combines, slick.aggregate.combines) == (48, 32)


def test_example_2_needs_no_initial_values():
    """Before the window is full there is nothing to subtract: 24 calls."""
    slick = SlickDeque(Counting(sw.sum()), ranges=[3, 5])
    for value in STREAM:
        if len(slick) == 5:
            slick.evict()
        slick.insert(value)
    assert slick.query_many([3, 5]) == [13, 17]
    assert slick.aggregate.combines == 24


def test_example_3_maxima_over_ranges_3_and_5():
    #         deque       Q1 Q2
    steps = [
        ([6], 6, 6),
        ([6, 5], 6, 6),
        ([6, 5, 0], 6, 6),
        ([6, 5, 1], 5, 6),
        ([6, 5, 3], 3, 6),
        ([5, 4], 4, 5),
        ([4, 2], 4, 4),
        ([7], 7, 7),
    ]
    slick = SlickDeque(Counting(sw.max()))
    naive = fill(Naive(Counting(sw.max())), 5)
    for i, (value, (nodes, q1, q2)) in enumerate(zip(STREAM, steps, strict=True)):
        if len(slick) == 5:
            slick.evict()
        slick.insert(value)
        slick._check()
        assert list(slick._strategy.values) == nodes
        ranges = [min(k, i + 1) for k in (3, 5)]
        assert slick.query_many(ranges) == [slick.query(last=k) for k in ranges] == step(naive, value) == [q1, q2]
    assert (naive.aggregate.combines, slick.aggregate.combines) == (48, 11)


def test_skipping_only_smaller_positions_as_printed_answers_step_4_wrongly():
    """The erratum: a node at startPos itself has left the range. As printed, Q1 would be 6 at step 4, not 5."""
    slick = SlickDeque(sw.max())
    slick.insert_many(STREAM[:4])
    positions, values = list(slick._strategy.positions), list(slick._strategy.values)
    start = 3 - 3
    as_printed = next(v for p, v in zip(positions, values, strict=True) if not p < start)
    corrected = next(v for p, v in zip(positions, values, strict=True) if not p <= start)
    assert (as_printed, corrected, slick.query(last=3)) == (6, 5, 5)


# -- Table 1

SIZES = [8, 16, 64]


def full(cls, aggregate, n, **options):
    window = cls(Counting(aggregate), **options)
    rng = random.Random(n)
    window.insert_many([rng.random() for _ in range(n)])
    window.query()
    return window


def numbers(count, seed=0):
    rng = random.Random(seed)
    return [rng.random() for _ in range(count)]


def whole(window):
    window.query()


def every_range(window):
    window.query_many(range(1, len(window) + 1))


def single(cls, n, rounds, aggregate=None, **options):
    return slides(full(cls, aggregate or sw.max(), n, **options), numbers(rounds), whole)


def multi(cls, n, rounds, aggregate=None, **options):
    window = full(cls, aggregate or sw.max(), n, **options)
    every_range(window)
    return slides(window, numbers(rounds), every_range)


@pytest.mark.parametrize("n", SIZES)
class TestTable1:
    def test_naive(self, n):
        assert set(single(Naive, n, 2 * n)) == {n - 1}
        assert set(multi(Naive, n, n)) == {n * n // 2 - n // 2}

    def test_subtract_on_evict(self, n):
        assert set(single(SubtractOnEvict, n, 4 * n, sw.sum())) == {2}

    def test_flatfat_batched(self, n):
        """The paper overwrites the value that leaves with the one that comes: that is one path."""
        assert set(single(ReactiveAggregator, n, 4 * n)) == {log2(n)}
        counts = multi(ReactiveAggregator, n, n)
        printed = n * log2(n) - 3 * n / 2 + 5 * log2(n) / 2 + 5 / 2
        assert sum(counts) / n == printed - n - log2(n)  # it counts nodes that are read, not combines
        assert max(counts) <= n * log2(n)

    def test_flatfat_at_once(self, n):
        """A path when a value leaves, whose lowest node is a mere copy, and a path when one comes."""
        assert set(single(FlatFAT, n, 4 * n)) == {2 * log2(n) - 1}
        assert sum(multi(FlatFAT, n, n)) - sum(multi(ReactiveAggregator, n, n)) == n * (log2(n) - 1)

    def test_flatfat_when_the_order_matters(self, n):
        counts = single(ReactiveAggregator, n, 4 * n, sw.last())
        assert log2(n) == min(counts) <= max(counts) <= 3 * log2(n)

    def test_b_int(self, n):
        counts = single(BInt, n, 4 * n)
        assert log2(n) < sum(counts) / len(counts) < 1.5 * log2(n)  # slower than FlatFAT by a constant factor
        assert max(counts) <= 2 * log2(n)
        assert max(multi(BInt, n, n)) <= n * log2(n)

    def test_flatfit(self, n):
        window = full(FlatFIT, sw.max(), n)
        counts = slides(window, numbers(5 * (n + 1)), whole)
        reset = counts.index(n - 1)
        period = counts[reset : reset + n + 1]
        assert period == [n - 1, 1, *[2] * (n - 2), 1]
        assert sum(period) == 3 * (n - 1)
        assert counts[reset + n + 1 : reset + 2 * n + 2] == period
        assert set(multi(FlatFIT, n, 3 * n)) == {n - 1}

    def test_two_stacks(self, n):
        counts = single(TwoStacks, n, 6 * n)
        assert sum(counts) == 6 * (3 * n - 4)
        # One less than the paper's n: the value that makes the stack flip leaves, and is not flipped itself.
        assert max(counts) == n - 1

    def test_daba(self, n):
        counts = single(DABA, n, 8 * n)
        assert sum(counts) / len(counts) == 5 - 8 / n
        assert max(counts) == (8 if n >= 16 else 7)

    def test_slickdeque_inv(self, n):
        assert set(single(SlickDeque, n, 4 * n, sw.sum())) == {2}
        assert set(multi(SlickDeque, n, n, sw.sum(), ranges=range(1, n + 1))) == {2 * n}

    def test_slickdeque_non_inv(self, n):
        counts = single(SlickDeque, n, 2000)
        assert sum(counts) / len(counts) < 2
        # All ranges are read off the deque: not one call more.
        assert multi(SlickDeque, n, 200) == single(SlickDeque, n, 200)

    def test_slickdeque_non_inv_at_its_worst(self, n):
        window = SlickDeque(Counting(sw.max()))
        window.insert_many(list(range(n, 0, -1)))
        assert len(window._strategy.values) == n
        # The paper counts n: here the oldest leaves first, so that a slide meets n - 1.
        assert slides(window, [n + 1], every_range) == [n - 1]
        assert window.aggregate.during(lambda: window.insert(0)) == 1
        assert len(window._strategy.values) == 2


def test_slickdeque_stays_below_two_whatever_comes():
    rng = random.Random(5)
    streams = {
        "rising": range(3000),
        "falling": range(3000, 0, -1),
        "saw": [i % 50 for i in range(3000)],
        "falling saw": [-(i % 50) for i in range(3000)],
        "same": [7] * 3000,
        "walk": [rng.gauss(0, 1) for _ in range(3000)],
    }
    for name, stream in streams.items():
        for aggregate in (sw.max(), sw.min()):
            window = SlickDeque(Counting(aggregate))
            for value in stream:
                if len(window) == 64:
                    window.evict()
                window.insert(value)
            assert window.aggregate.combines < 2 * 3000, name


def test_memory_of_the_deque_is_that_of_the_candidates():
    window = SlickDeque(sw.max())
    window.insert_many(numbers(4096))
    assert len(window._strategy.values) < 40  # about ln(4096) of random values can still win
    window.insert_many([5] * 100)
    assert len(window._strategy.values) == 1


def test_query_many_passes_over_the_deque_once():
    class Watched(list):
        passes = reads = 0

        def __iter__(self):
            self.passes += 1
            for item in super().__iter__():
                self.reads += 1
                yield item

    window = SlickDeque(sw.max())
    window.insert_many(list(range(50, 0, -1)))
    window._strategy.positions = watched = Watched(window._strategy.positions)
    assert window.query_many([1, 50, 7, 7, 30]) == [1, 50, 7, 7, 30]
    assert (watched.passes, watched.reads) == (1, 50)


def test_other_ranges_than_those_kept_are_answered_from_the_shorter_side():
    window = SlickDeque(Counting(sw.sum()))
    window.insert_many(list(range(20)))
    assert window.aggregate.during(lambda: window.query(last=18)) == 2
    assert window.aggregate.during(lambda: window.query(last=3)) == 2
    assert window.query_many([18, 3]) == [sum(range(2, 20)), sum(range(17, 20))]


# -- chunks


def test_chunks_are_given_back():
    queue = ChunkedQueue(8)
    for i in range(1000):
        queue.append(i)
        queue._check()
        if i >= 30:
            queue.popleft()
            queue._check()
            assert queue[queue.front] == i - 29
        assert queue.chunks <= 30 // 8 + 2
    queue[queue.front] = "new"
    assert queue[queue.front] == "new"
    while len(queue):
        queue.popleft()
        queue._check()


@pytest.mark.parametrize("n", [256, 4096, 65536])
def test_least_chunk_space_is_2n_and_8_roots(n):
    """The erratum: 2n + 4k + 4n/k at k = sqrt(n) is 2n + 8 sqrt(n)."""
    space = {k: 2 * n + 4 * k + 4 * n / k for k in range(1, n)}
    best = min(space, key=space.get)
    assert best == n**0.5
    assert space[best] == 2 * n + 8 * n**0.5
