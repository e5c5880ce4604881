"""The laws, for every aggregate on every type it takes: two forms, one algebra; and Table 2 of the paper."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise.aggregates as sw
from slicewise.aggregates.base import fold_pairwise, take_parts
from slicewise.columns import Column
from slicewise.same import is_finite, is_same, magnitude
from slicewise.testing import check_laws, value_of
from tests.aggregates.over import CASES, IDS, bare, few_rows, make
from tests.matrices import few_quick
from tests.profiles import fewer

IN_ANY_ORDER = [case for case in CASES if sw.AGGREGATES[case[0]].commutative or sw.AGGREGATES[case[0]].timed]


def aggregates_and_types(case):
    name, types, _ = case
    return name, types


every_case = pytest.mark.parametrize(("name", "types", "row"), few_quick(CASES, aggregates_and_types), ids=IDS)


def columns_of(rows, types):
    return [Column.of([r[i] for r in rows], t) for i, t in enumerate(types)]


def same(got, want, rows):
    return is_same(got, want, max(map(magnitude, (got, want, rows))))


@every_case
@fewer(50, derandomize=True)
@given(data=st.data())
def test_laws_hold_on_single_values(name, types, row, data):
    rows = data.draw(st.lists(row, min_size=3, max_size=6))
    aggregate = make(name)
    rows = [tuple(column) for column in zip(*(c.to_pylist() for c in columns_of(rows, types)), strict=True)]
    lifted = [aggregate.identity if aggregate.skips_nulls and None in r else aggregate.lift(*r) for r in rows]
    one = aggregate.identity
    a, b, c = (reduce(aggregate.combine, part) for part in (lifted[:1], lifted[1:2], lifted[2:]))

    def equal(x, y):
        return same(x, y, rows) or same(aggregate.lower(x), aggregate.lower(y), rows)

    both = aggregate.combine
    assert equal(both(one, c), c)
    assert equal(both(c, one), c)
    assert equal(both(both(a, b), c), both(a, both(b, c)))
    if aggregate.commutative:
        assert equal(both(a, c), both(c, a))
    if aggregate.invertible and is_finite(rows):
        assert equal(aggregate.invert(both(c, a), a), c)
        assert equal(aggregate.invert(both(one, c), c), one)


@every_case
@fewer(50, derandomize=True)
@given(data=st.data())
def test_laws_hold_on_arrays(name, types, row, data):
    rows = data.draw(st.lists(row, min_size=6, max_size=12))
    aggregate = make(name)
    monoid = aggregate.bind(*types)
    lifted, n = monoid.lift(columns_of(rows, types), np.arange(len(rows))), len(rows) // 3
    # Three times as many partials as there are triples, in event-time order within a triple; the last of several rows.
    a, b = (take_parts(lifted, slice(i * n, i * n + n)) for i in (0, 1))
    c = monoid.combine(take_parts(lifted, slice(2 * n, 3 * n)), take_parts(lifted, slice(len(rows) - n, None)))
    one = monoid.identities(n)
    for parts in (lifted, one):
        assert tuple(p.dtype for p in parts) == monoid.dtypes

    def equal(x, y):
        return same(x, y, rows) or same(monoid.lower(x).to_pylist(), monoid.lower(y).to_pylist(), rows)

    both = monoid.combine
    assert equal(both(one, c), c)
    assert equal(both(c, one), c)
    assert equal(both(both(a, b), c), both(a, both(b, c)))
    if aggregate.commutative or aggregate.timed:
        assert equal(both(a, c), both(c, a))
    if aggregate.invertible and is_finite(rows):
        assert equal(monoid.invert(both(c, a), a), c)
        assert equal(monoid.invert(both(one, c), c), one)
    running = monoid.scan(lifted)
    for i in range(1, len(rows)):
        so_far = take_parts(lifted, slice(i + 1))
        assert equal(take_parts(running, slice(i, i + 1)), monoid.fold(so_far, np.array([0])))
        assert equal(take_parts(running, slice(i, i + 1)), fold_pairwise(both, so_far, np.array([0])))


@pytest.mark.slow
@pytest.mark.parametrize("name", dict.fromkeys(case[0] for case in CASES))
def test_laws_hold_to_the_users_own_checker(name):
    _, types, _ = next(case for case in CASES if case[0] == name)
    rows = few_rows(name)
    check_laws(make(name), [row[0] for row in rows] if len(types) == 1 else rows, types)


@every_case
@fewer(30, derandomize=True)
@given(data=st.data())
def test_results_are_those_of_the_definition(name, types, row, data):
    rows = data.draw(st.lists(row, min_size=1, max_size=40))
    # Rows before the first segment belong to none.
    starts = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1, max_size=6)))
    aggregate, times = make(name), np.arange(len(rows)) * 10
    columns = columns_of(rows, types)
    mappings = [dict(zip("vw", values, strict=False)) for values in zip(*(c.to_pylist() for c in columns), strict=True)]
    bounds = [*starts, len(rows)]
    want = [value_of(aggregate, mappings[i:j], times[i:j].tolist()) for i, j in pairwise(bounds)]
    monoid = aggregate.bind(*types)
    if name == "sum" and any(isinstance(w, int) and not -(2**63) <= w < 2**63 for w in want):
        return  # what Spark does not fit either has tests of its own
    for parts in (
        monoid.lift_fold(columns, times, np.array(starts)),
        monoid.fold(monoid.lift(columns, times), np.array(starts)),
    ):
        assert len(parts) == len(monoid.dtypes) == len(monoid.identity)
        for got, expected, (i, j) in zip(monoid.lower(parts).to_pylist(), want, pairwise(bounds), strict=True):
            assert same(got, expected, rows[i:j]), (rows[i:j], got, expected)


@pytest.mark.parametrize(("name", "types", "row"), few_quick(IN_ANY_ORDER, aggregates_and_types))
@fewer(50, derandomize=True)
@given(data=st.data())
def test_order_of_combining_does_not_matter_where_it_is_promised(name, types, row, data):
    """Late rows: what takes rows in any order gives the answer of the rows in order."""
    rows = data.draw(st.lists(row, min_size=1, max_size=8))
    order = data.draw(st.permutations(range(len(rows))))
    monoid = make(name).bind(*types)
    lifted = monoid.lift(columns_of(rows, types), np.arange(len(rows)))
    together = monoid.identities(1)
    for i in order:
        together = monoid.combine(together, take_parts(lifted, slice(i, i + 1)))
    shuffled = monoid.fold(take_parts(lifted, np.array(order)), np.array([0]))
    in_order = monoid.fold(lifted, np.array([0]))
    try:
        want = monoid.lower(in_order).to_pylist()
    except OverflowError:
        return
    assert same(monoid.lower(together).to_pylist(), want, rows)
    assert same(monoid.lower(shuffled).to_pylist(), want, rows)


#: What there is for no rows, where it is not null. Arrow gives maps as lists of pairs.
EMPTY = {
    "count_if": 0,
    "regr_count": 0,
    **dict.fromkeys(("count", "count_distinct", "approx_count_distinct"), 0),
    **{key: [] for key in ("collect_list", "collect_set", "histogram", "most_frequent", "approx_most_frequent")},
    **{key: [] for key in ("largest", "smallest", "first_k", "last_k")},
    "theta_sketch_agg": sw.theta_sketch_agg().lower(b""),
}


@every_case
def test_no_rows_no_segments_and_no_values(name, types, row):
    aggregate = make(name)
    monoid = aggregate.bind(*types)
    none, nobody = np.empty(0, np.int64), columns_of([], types)
    for parts in (monoid.lift(nobody, none), monoid.lift_fold(nobody, none, none), monoid.identities(0)):
        assert [len(p) for p in parts] == [0] * len(monoid.dtypes)
        for again in (parts, monoid.fold(parts, none), monoid.scan(parts), monoid.combine(parts, parts)):
            assert len(monoid.lower(again)) == 0
    empty = EMPTY.get(name)
    assert monoid.lower(monoid.identities(2)).to_arrow().to_pylist() == [empty, empty]
    nulls = columns_of([(None,) * len(types)] * 3, types)
    for parts in (
        monoid.lift_fold(nulls, np.arange(3), np.array([0, 2])),
        monoid.fold(monoid.lift(nulls, np.arange(3)), np.array([0, 2])),
    ):
        # Rows without a value are rows to these.
        expected = [[None, None], [None]] if name in ("first_k", "last_k") else [empty, empty]
        assert monoid.lower(parts).to_arrow().to_pylist() == expected
    assert aggregate.lower(aggregate.identity) == ({} if name == "histogram" else empty)


#            invertible commutative kind
TABLE_2 = """
count             yes     yes     distributive
sum               yes     yes     distributive
product           yes     yes     distributive
avg               yes     yes     algebraic
geometric_mean    yes     yes     algebraic
stddev            yes     yes     algebraic
stddev_pop        yes     yes     algebraic
variance          yes     yes     algebraic
var_pop           yes     yes     algebraic
count_if          yes     yes     distributive
try_sum           yes     yes     distributive
try_avg           yes     yes     algebraic
weighted_avg      yes     yes     algebraic
bool_and          yes     yes     distributive
bool_or           yes     yes     distributive
bit_and           no      yes     distributive
bit_or            no      yes     distributive
bit_xor           yes     yes     distributive
skewness          yes     yes     algebraic
kurtosis          yes     yes     algebraic
corr              yes     yes     algebraic
covar_pop         yes     yes     algebraic
covar_samp        yes     yes     algebraic
regr_avgx         yes     yes     algebraic
regr_avgy         yes     yes     algebraic
regr_count        yes     yes     distributive
regr_intercept    yes     yes     algebraic
regr_r2           yes     yes     algebraic
regr_slope        yes     yes     algebraic
regr_sxx          yes     yes     algebraic
regr_sxy          yes     yes     algebraic
regr_syy          yes     yes     algebraic
min               no      yes     distributive
max               no      yes     distributive
range_            no      yes     algebraic
max_count         no      yes     algebraic
min_count         no      yes     algebraic
max_by            no      no      algebraic
min_by            no      no      algebraic
first             no      no      distributive
last              no      no      distributive
any_value         no      no      distributive
collect_list      yes     no      holistic
collect_set       no      yes     holistic
concat            no      no      holistic
median            yes     yes     holistic
percentile        yes     yes     holistic
m4                no      no      algebraic
ohlc              no      no      algebraic
time_weighted_avg no      no      algebraic
increase          no      no      algebraic
rate              no      no      algebraic
ewma              no      no      algebraic
longest_rise      no      no      algebraic
count_distinct    yes     yes     holistic
sum_distinct      yes     yes     holistic
histogram         yes     yes     holistic
mode              yes     yes     holistic
most_frequent     yes     yes     holistic
largest           no      yes     algebraic
smallest          no      yes     algebraic
first_k           no      no      algebraic
last_k            no      no      algebraic
approx_count_distinct  no  yes    sketch
approx_percentile      no  yes    sketch
approx_most_frequent   no  yes    sketch
hll_sketch_agg         no  yes    sketch
kll_sketch_agg_double  no  yes    sketch
theta_sketch_agg       no  yes    sketch
"""


def test_traits_are_those_of_table_2():
    """The Reactive Aggregator paper's Table 2, and the same for what it does not list."""
    table = {name: traits for name, *traits in map(str.split, TABLE_2.strip().splitlines())}
    assert list(table) == list(sw.AGGREGATES)
    for name, (invertible, commutative, kind) in table.items():
        aggregate = sw.AGGREGATES[name]
        assert (aggregate.invertible, aggregate.commutative) == (invertible == "yes", commutative == "yes"), name
        assert aggregate.kind == kind, name
        timed = {"first", "last", "any_value", "max_by", "min_by", "m4", "ohlc", "ewma", "first_k", "last_k"}
        assert aggregate.timed == (name in timed), name


@pytest.mark.parametrize(
    ("name", "type_", "exact"),
    [
        ("count", pa.string(), True),
        ("sum", pa.int64(), True),
        ("sum", pa.decimal128(10, 2), True),
        ("sum", pa.float64(), False),
        ("avg", pa.int32(), True),
        ("avg", pa.float32(), False),
        ("geometric_mean", pa.int64(), False),
        ("variance", pa.int64(), False),
        ("collect_list", pa.float64(), True),
    ],
)
def test_inverting_is_exact_only_where_nothing_is_rounded(name, type_, exact):
    assert make(name).bind(type_).exact is exact


def test_registry_holds_every_public_name():
    for name, aggregate in sw.AGGREGATES.items():
        assert getattr(sw, name) is aggregate
        assert name in sw.__all__
        assert aggregate.__doc__
        assert ">>>" in aggregate.__doc__


@pytest.mark.parametrize("name", sw.AGGREGATES)
def test_aggregates_without_columns_run_over_single_values(name):
    aggregate = bare(name)
    assert aggregate.columns == ()
    first, _, last = few_rows(name)
    both = aggregate.combine(aggregate.combine(aggregate.identity, aggregate.lift(*first)), aggregate.lift(*last))
    assert aggregate.lower(both) is not None


def test_equal_aggregates_are_equal():
    assert sw.sum("v") == sw.sum("v") != sw.sum("w")
    assert sw.percentile("v", 0.5) == sw.percentile("v", 0.5) != sw.percentile("v", [0.5])
    assert sw.median("v") != sw.percentile("v", 0.5)
    assert (
        len({sw.sum("v"), sw.sum("v"), sw.avg("v"), sw.percentile("v", [0.1]), sw.concat("v", ","), sw.concat("v")})
        == 5
    )
    assert repr(sw.percentile("v", 0.9)) == "percentile('v', 0.9)"
    assert repr(sw.concat("v", separator=", ")) == "concat('v', ', ')"
    assert repr(sw.max_by("v", "w")) == "max_by('v', 'w')"
