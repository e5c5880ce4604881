"""CuttyStore: append, merge and remove by id against a list, eager and lazy; capacities, bounds, and wrong use."""

from __future__ import annotations

from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.errors import QueryError
from slicewise.swag import CuttyStore
from slicewise.swag.base import EmptyWindowError
from tests.counting import Counting

both = pytest.mark.parametrize("eager", [True, False])


@both
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["append", "append", "append", "merge", "remove"]), st.data()), max_size=60
    )
)
def test_any_order_of_calls_gives_what_a_list_gives(eager, steps):
    store, held, next_id = CuttyStore(sw.collect_list(), eager=eager), [], 0
    for step, data in steps:
        if step == "append":
            next_id += data.draw(st.integers(1, 3))
            store.append(f"s{next_id}", (next_id,))
            held.append(next_id)
        elif held:
            low, high = sorted(data.draw(st.tuples(*[st.integers(0, len(held) - 1)] * 2)))
            if step == "merge":
                assert store.merge(f"s{held[low]}", f"s{held[high]}") == tuple(held[low : high + 1])
                assert store.merge(f"s{held[low]}") == tuple(held[low:])
            else:
                store.remove_up_to(f"s{held[low]}")
                del held[:low]
        store._check()
        assert list(store) == [f"s{i}" for i in held]
        assert (len(store), f"s{next_id}" in store) == (len(held), next_id in held)


@both
def test_every_range_of_a_circle_that_has_gone_round(eager):
    for start in range(20):
        store = CuttyStore(sw.concat(), eager=eager)
        for i in range(start + 13):
            store.append(i, chr(97 + i % 26))
            if i >= 13:
                store.remove_up_to(i - 12)
            store._check()
        letters = [chr(97 + i % 26) for i in range(start, start + 13)]
        for low in range(13):
            for high in range(low, 13):
                assert store.merge(start + low, start + high) == "".join(letters[low : high + 1])


def test_algorithm_1_over_the_two_windows_of_figure_5():
    """Windows of range 4 and slide 2, and of range 5 and slide 3, over records 0, 1, 2, ..., as the aggregator runs."""
    aggregate, store, partial, begins, emitted = sw.collect_list(), CuttyStore(sw.collect_list()), (), {}, {}
    for record in range(30):
        beginning = [(size, record) for size, slide in ((4, 2), (5, 3)) if record % slide == 0]
        ending = [w for w in begins if record == w[0] + w[1]]
        if beginning:
            store.append(record, partial)
            partial = aggregate.identity
            begins |= dict.fromkeys(beginning, record)
        for window in ending:
            start = begins.pop(window)
            # The partial under an id ends before that record: the window's own ones begin with the next.
            later = [i for i in store if i > start]
            merged = store.merge(later[0]) if later else aggregate.identity
            emitted[window] = list(aggregate.combine(merged, partial))
            store.remove_up_to(min([i for i in store if i > min(begins.values(), default=record)], default=record))
        partial = aggregate.combine(partial, aggregate.lift(record))
        store._check()
        assert len(store) <= 5
    assert emitted == {w: list(range(w[1], w[1] + w[0])) for w in emitted}
    assert len(emitted) == 22


# -- capacities and bounds


@both
def test_capacity_is_doubled_when_full_and_halved_at_a_third(eager):
    store = CuttyStore(sw.count(), eager=eager)
    capacities = []
    for i in range(9):
        store.append(i, i)
        capacities.append(store.capacity)
    assert capacities == [1, 2, 4, 4, 8, 8, 8, 8, 16]
    store.remove_up_to(3)
    assert (len(store), store.capacity) == (6, 16)
    store.remove_up_to(4)
    assert (len(store), store.capacity) == (5, 8)
    store.remove_up_to(8)
    assert (len(store), store.capacity) == (1, 2)
    store._check()
    assert store.merge(8) == 8


@pytest.mark.parametrize("n", [2, 8, 64, 100, 1024])
def test_eager_store_stays_in_its_bounds(n):
    counting = Counting(sw.max())
    store, path = CuttyStore(counting), ceil(log2(n))
    for i in range(n):
        store.append(i, i)
    for i in range(n, 3 * n):
        assert counting.during(lambda i=i: store.remove_up_to(i - n + 1)) == 0
        assert counting.during(lambda i=i: store.append(i, i)) <= path
        if i % 7 == 0:
            for low in {i - n + 1, i - n // 2, i}:
                assert counting.during(lambda low=low, i=i: store.merge(low, i)) <= 2 * path


def test_lazy_store_combines_when_it_is_asked():
    counting = Counting(sw.max())
    store = CuttyStore(counting, eager=False)
    for i in range(100):
        store.append(i, i)
    store.remove_up_to(60)
    assert counting.combines == 0
    assert counting.during(lambda: store.merge(70, 79)) == 9
    assert counting.during(lambda: store.merge(99)) == 0


# -- wrong use


@both
def test_ids_that_are_not_there(eager):
    store = CuttyStore(sw.count(), eager=eager)
    with pytest.raises(EmptyWindowError, match=r"^the store has no partial with id 3; it holds nothing$"):
        store.merge(3)
    for i in range(5):
        store.append(i, i)
    store.remove_up_to(2)
    message = "the store has no partial with id 1; it holds ids 2 to 4"
    for call in (lambda: store.merge(1), lambda: store.merge(2, 1), lambda: store.remove_up_to(1)):
        with pytest.raises(EmptyWindowError, match=f"^{message}$"):
            call()
    with pytest.raises(EmptyWindowError, match=r"^cannot merge from 4 to 2, which was appended before it$"):
        store.merge(4, 2)
    with pytest.raises(QueryError, match=r"^the store holds a partial with id 3 already; ids must be unique$"):
        store.append(3, 9)
    store._check()
    assert store.merge(2) == 9


def test_partial_that_cannot_be_combined_has_never_come():
    store = CuttyStore(sw.count())
    for i in range(12):
        store.append(i, i)
    store.remove_up_to(5)
    for i in range(12, 40):
        try:
            store.append("oops", "oops")
        except TypeError:
            pass
        else:  # alone below its node: nothing was combined with it yet
            store = CuttyStore(sw.count())
            for j in range(5, i):
                store.append(j, j)
        store._check()
        assert store.merge(5) == sum(range(5, i))
        store.append(i, i)


def test_aggregate_must_be_one():
    with pytest.raises(QueryError, match=r"^`aggregate` must be an aggregate such as sw.sum\(\); got 'sum'$"):
        CuttyStore("sum")
