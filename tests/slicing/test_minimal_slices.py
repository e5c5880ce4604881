"""Cutty's promise on ordered streams: slices begin where windows begin, and there are no more of them than windows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from tests.slicing.strategies import EverySecond, EveryThird


def slices_of(op) -> list[int]:
    """How many rows each slice of an operator's only set of context-aware queries holds."""
    (queries,) = op._core.engine.context_aware
    return queries.state.slices.rows.tolist()


def cuts_of(op) -> list[int]:
    (queries,) = op._core.engine.context_aware
    return (queries.state.cuts.high - queries.state.cuts.low).tolist()


def test_a_count_window_of_range_10_and_slide_3_is_sliced_at_begins_only_in_order():
    """
    ::

        position  0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15
                 [--------------------------- )
                          [--------------------------- )
                                   [--------------------------- )
        slices   |        |        |        |        |        |
    """
    op = sw.Workload("t").query("q", sw.sliding(sw.rows(10), every=sw.rows(3)), s=sw.sum("v")).operator(ordered=True)
    for i in range(100):
        op.process(i, {"v": i})
        op.stats()  # empties the buffer
        sizes = slices_of(op)
        # The last row may get company at its own time; those before it stand in slices of three, the last one growing.
        assert set(sizes[:-1]) <= {3}
        assert sum(sizes[-1:]) <= 3
        assert len(sizes) <= 4
        assert op.stats().tuples == 1


def test_out_of_order_it_is_sliced_at_begins_and_ends():
    """Ends lie one row behind a begin: slices of one and two rows, one for every begin and one for every end."""
    workload = sw.Workload("t", lateness=1000).query("q", sw.sliding(sw.rows(10), every=sw.rows(3)), s=sw.sum("v"))
    op = workload.operator()
    op.process_batch({"t": np.arange(100), "v": np.arange(100)})
    assert len(op.advance(100)) == 31
    begins, ends = set(range(0, 93, 3)), set(range(10, 101, 3))
    bounds = sorted(begins | ends)
    assert cuts_of(op) == [b - a for a, b in itertools.pairwise(bounds)]
    assert set(cuts_of(op)[5:-5]) == {1, 2}


@pytest.mark.parametrize("length", [100, 10_000, 1_000_000])
def test_the_length_of_windows_does_not_matter(length):
    op = sw.Workload("t").query("q", sw.sliding(sw.rows(length), every=sw.rows(length // 4)), n=sw.count())
    op = op.operator(ordered=True)
    for low in range(0, 3 * length, max(length // 7, 1)):
        op.process_batch({"t": np.arange(low, low + max(length // 7, 1))})
        assert len(slices_of(op)) <= 4


class _Open:
    """How many windows are open after some rows that are final, by definition."""

    @staticmethod
    def counts(n: int, m: int, rows: int) -> int:
        return sum(1 for low in range(0, rows, m) if low + n > rows)

    @staticmethod
    def user(thing, rows: int) -> int:
        still = 0
        for i in range(rows):
            begins, ends = thing.on_record(i, {})
            still += begins - ends
        return still


@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), max_size=3),
    st.lists(st.sampled_from(["v > 2", "v = 0", EveryThird, EverySecond]), max_size=2, unique=True),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 4)), min_size=1, max_size=30),
)
def test_there_are_never_more_slices_than_active_windows(counts, others, stream):
    if not counts and not others:
        counts = [(3, 2)]
    workload = sw.Workload("t")
    for i, (n, m) in enumerate(dict.fromkeys(counts)):
        workload = workload.query(f"c{i}", sw.sliding(sw.rows(n), every=sw.rows(m)), n=sw.count())
    for i, said in enumerate(others):
        window = sw.punctuated(said) if isinstance(said, str) else sw.user_defined(said)
        workload = workload.query(f"o{i}", window, n=sw.count())
    op = workload.operator(ordered=True)
    times = np.cumsum([gap for gap, _ in stream])
    for i, (time, (_, v)) in enumerate(zip(times.tolist(), stream, strict=True)):
        op.process(time, {"v": v})
        op.stats()
        final = int((times[: i + 1] < time).sum())
        active = sum(_Open.counts(n, m, final) for n, m in dict.fromkeys(counts))
        active += sum(1 if isinstance(said, str) else _Open.user(said(), final) for said in others)
        assert len(slices_of(op)) <= active
