"""Stores: lazy, eager and prefix give one answer, each at its own price."""

from __future__ import annotations

import math
from functools import reduce
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.aggregates import parts as parts_module
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.same import is_same
from slicewise.slicing.answers.range_stores import STORES, EagerStore, LazyStore, PrefixStore
from tests.profiles import fewer

INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()
INVERTIBLE = [(sw.sum("v"), INT), (sw.count("v"), INT), (sw.avg("v"), INT), (sw.sum("v"), pa.decimal128(20, 2))]
OTHERS = [
    (sw.max("v"), INT),
    (sw.min("v"), FLOAT),
    (sw.range_("v"), INT),
    (sw.max_count("v"), INT),
    (sw.first("v"), INT),
    (sw.last("v"), INT),
    (sw.collect_list("v"), INT),
    (sw.collect_set("v"), INT),
    (sw.concat("v"), TEXT),
    (sw.median("v"), INT),
    (sw.stddev("v"), INT),
    (sw.aggregate(combine=lambda a, b: (a + b)[-3:], identity="", name="tail")("v"), TEXT),
]
ANY = [kind for kind in STORES if kind != "wavelet"]  # which is for histograms, and has tests of its own
CASES = [(*case, kinds) for cases, kinds in ((INVERTIBLE, ANY), (OTHERS, ["lazy", "eager"])) for case in cases]


def ids(case) -> str:
    return f"{case[0]!r} on {case[1]}"


def partials(aggregate, type_, values: list):
    monoid = aggregate.bind(type_)
    column = Column.of([v if type_ != TEXT or v is None else "abcdefg"[v % 7] for v in values], type_)
    return monoid, monoid.lift([column], np.arange(len(values)))


@st.composite
def ranges(draw, n: int):
    many = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(1, n)), min_size=1, max_size=12))
    pairs = [(min(a, b - 1), max(a + 1, b)) for a, b in many]
    return np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])


values = st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=1, max_size=40)


@pytest.mark.parametrize("case", CASES, ids=ids)
@fewer(5)
@given(data=st.data())
def test_all_stores_give_the_fold_of_the_range(case, data):
    aggregate, type_, kinds = case
    some = data.draw(values)
    monoid, parts = partials(aggregate, type_, some)
    low, high = data.draw(ranges(len(some)))
    expected = []
    for a, b in zip(low.tolist(), high.tolist(), strict=True):
        one = reduce(monoid.combine, (tuple(p[i : i + 1] for p in parts) for i in range(a, b)))
        expected += monoid.lower(one).to_pylist()
    for kind, most in [*((kind, parts_module.MOST_FOLDED) for kind in kinds), ("lazy", data.draw(st.integers(1, 30)))]:
        with mock.patch.object(parts_module, "MOST_FOLDED", most):
            found = STORES[kind](monoid, parts).query(low, high)
        assert is_same(monoid.lower(found).to_pylist(), expected), (kind, most)


@given(st.lists(st.sampled_from([2**62, 2**63 - 1, -(2**63), -(2**62), 1, 0, -1]), min_size=1, max_size=30), st.data())
def test_sums_beyond_int64_go_on_as_python_integers(numbers, data):
    monoid, parts = partials(sw.sum("v"), INT, numbers)
    low, high = data.draw(ranges(len(numbers)))
    expected = [sum(numbers[a:b]) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    for kind, store in ((kind, STORES[kind]) for kind in ANY):
        found = store(monoid, parts).query(low, high)
        assert found[0].tolist() == expected, kind


def test_a_running_sum_may_overflow_where_no_window_does():
    numbers = [2**62, 2**62, 2**62, -(2**62), -(2**62), -(2**62)]
    monoid, parts = partials(sw.sum("v"), INT, numbers)
    store = PrefixStore(monoid, parts)
    assert store.running[0].dtype == object
    assert monoid.lower(store.query(np.array([0, 2, 3]), np.array([1, 4, 4]))).to_pylist() == [2**62, 0, -(2**62)]


def test_a_query_leaves_the_store_and_the_ranges_as_they_were():
    monoid, parts = partials(sw.sum("v"), INT, list(range(16)))
    low, high = np.array([1, 3]), np.array([15, 16])
    for kind, store in ((kind, STORES[kind]) for kind in ANY):
        built = store(monoid, parts)
        first = built.query(low, high)[0].tolist()
        assert built.query(low, high)[0].tolist() == first, kind
        assert (low.tolist(), high.tolist()) == ([1, 3], [15, 16])
        assert parts[0].tolist() == list(range(16))


def test_a_prefix_store_needs_an_inverse():
    monoid, parts = partials(sw.max("v"), INT, [1, 2, 3])
    with pytest.raises(AggregateError, match="`max` cannot be inverted; a partial cannot be taken out of it again"):
        PrefixStore(monoid, parts).query(np.array([0]), np.array([2]))


def test_a_single_slice_is_taken_as_it_is():
    monoid, calls = counting()
    store = LazyStore(monoid, lifted(monoid, 8))
    assert store.query(np.array([2, 5]), np.array([3, 6]))[0].tolist() == ["c", "f"]
    assert calls == []


# -- the price


def counting():
    """Concatenation that writes down what it combines; combining with nothing is free."""
    calls: list[tuple[str, str]] = []

    def combine(a: str, b: str) -> str:
        if a and b:
            calls.append((a, b))
        return a + b

    return sw.aggregate(combine=combine, identity="", name="counting")("v").bind(TEXT), calls


def lifted(monoid, n: int):
    return monoid.lift([Column.of([chr(97 + i) for i in range(n)], TEXT)], np.arange(n))


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 21, 64])
def test_a_tree_is_built_with_one_combine_less_than_slices(n):
    monoid, calls = counting()
    store = EagerStore(monoid, lifted(monoid, n))
    # A node whose sibling is not there yet is never built; with a power of two all are.
    assert len(calls) == n - n.bit_count() <= n - 1
    assert [len(level[0]) for level in store.levels] == [n >> k for k in range(n.bit_length())]


def test_a_range_takes_two_nodes_of_each_level_at_most():
    n = 64
    monoid, calls = counting()
    store = EagerStore(monoid, lifted(monoid, n))
    text = "".join(chr(97 + i) for i in range(n))
    for a in range(n):
        for b in range(a + 1, n + 1):
            calls.clear()
            assert store.query(np.array([a]), np.array([b]))[0].tolist() == [text[a:b]]
            assert len(calls) <= max(0, 2 * math.log2(b - a)), (a, b)


def test_the_drawing_of_the_tree_is_right():
    #   level 2   a b c d     e f g h
    #   level 1   a b   c d   e f   g h     range [1, 7): left takes b, then c d; right takes g, then e f
    #   level 0   a  b  c  d  e  f  g  h
    monoid, calls = counting()
    store = EagerStore(monoid, lifted(monoid, 8))
    assert calls == [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"), ("ab", "cd"), ("ef", "gh"), ("abcd", "efgh")]
    calls.clear()
    assert store.query(np.array([1]), np.array([7]))[0].tolist() == ["bcdefg"]
    assert calls == [("b", "cd"), ("ef", "g"), ("bcd", "efg")]


def test_all_ranges_climb_the_tree_together():
    """However many ranges are asked, a level costs one call of combine."""
    arrays = []

    def combine(a, b):
        arrays.append(len(a))
        return np.maximum(a, b)

    biggest = sw.aggregate(combine=combine, identity=-1, commutative=True, columnar=True, name="biggest")("v")
    monoid = biggest.bind(INT)
    store = EagerStore(monoid, (np.arange(1024),))
    arrays.clear()
    low = np.random.default_rng(0).integers(0, 512, 5000)
    found = store.query(low, low + 1 + low % 511)
    assert found[0].tolist() == (low + low % 511).tolist()
    assert len(arrays) <= 11


def test_a_lazy_store_folds_each_range():
    monoid, calls = counting()
    store = LazyStore(monoid, lifted(monoid, 16))
    assert calls == []
    store.query(np.array([0, 3]), np.array([10, 4]))
    assert len(calls) == 9
