"""Aggregates that are kept together: each different part once per slice, and stores for each component."""

from __future__ import annotations

import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.plan.plan import plan_for
from tests.slicing.running import FLOATS, TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import steps, workloads

INT, FLOAT, MONEY = pa.int64(), pa.float64(), pa.decimal128(12, 2)
MOMENTS = ("sum", "avg", "count", "stddev", "stddev_pop", "variance", "var_pop")
EXTREMES = ("min", "max", "range_", "min_count", "max_count")
FAMILY = (*MOMENTS, *EXTREMES, "product", "geometric_mean", "median")


def plan_of(names, type_, window=None, column="v"):
    aggregates = {f"c{i}": sw.AGGREGATES[name](column) for i, name in enumerate(names)}
    workload = sw.Workload(time="t").query("q", window or sw.sliding(100, every=1), **aggregates)
    return plan_for(workload, {column: type_}, time_type=INT)


@pytest.mark.parametrize(
    ("names", "type_", "parts"),
    [
        (MOMENTS, INT, ["total", "values", "mean", "squares"]),
        (("count", "stddev"), INT, ["values", "mean", "squares"]),
        (("avg", "sum"), MONEY, ["total", "values"]),
        (("min", "max", "range_"), INT, ["smallest", "largest", "some"]),
        (("max", "range_", "min"), MONEY, ["smallest", "largest"]),
        (("max", "max_count"), FLOAT, ["largest", "some", "rows with the largest"]),
        (("variance", "skewness", "kurtosis"), INT, ["values", "mean", "squares", "cubes", "fourth powers"]),
        (("try_sum", "sum", "try_avg"), MONEY, ["total", "values"]),
        (("product", "geometric_mean"), FLOAT, ["mantissa", "exponent", "zeros", "values", "logarithms", "negatives"]),
    ],
)
def test_each_different_part_is_kept_once(names, type_, parts):
    plan = plan_of(names, type_)
    (kept,) = plan.monoids
    assert list(kept.labels) == [f"{part} of 'v'" for part in parts]


def test_median_and_percentiles_are_one_partial():
    several = {"m": sw.median("v"), "p": sw.percentile("v", 0.9), "all": sw.percentile("v", [0.1, 0.5])}
    plan = plan_for(sw.Workload(time="t").query("q", sw.tumbling(10), **several), {"v": INT}, time_type=INT)
    assert [m.labels for m in plan.monoids] == [("histogram of 'v'",)]
    assert len(plan.components) == 1


def test_all_that_is_made_of_the_same_pairs_is_one_partial():
    names = [n for n in sw.AGGREGATES if n.startswith(("corr", "covar", "regr"))]
    several = {name: sw.AGGREGATES[name]("v", "u") for name in names if "avg" not in name}
    plan = plan_for(sw.Workload(time="t").query("q", sw.tumbling(10), **several), {"v": INT, "u": FLOAT}, time_type=INT)
    (kept,) = plan.monoids
    parts = ("pairs", "mean y", "mean x", "squares y", "squares x", "products")
    assert kept.labels == tuple(f"{part} of 'v', 'u'" for part in parts)
    more = {"a": sw.regr_avgx("v", "u"), "b": sw.weighted_avg("v", "u"), "c": sw.corr("v", "u"), "d": sw.corr("u", "v")}
    plan = plan_for(sw.Workload(time="t").query("q", sw.tumbling(10), **more), {"v": INT, "u": INT}, time_type=INT)
    assert [len(kept.labels) for kept in plan.monoids] == [6 + 1 + 2, 6]


def test_other_columns_and_the_order_of_rows_are_not_shared():
    aggregates = {"a": sw.sum("v"), "b": sw.sum("u"), "c": sw.first("v"), "d": sw.last("v"), "e": sw.collect_list("v")}
    plan = plan_for(
        sw.Workload(time="t").query("q", sw.tumbling(10), **aggregates), {"v": INT, "u": INT}, time_type=INT
    )
    assert len(plan.monoids) == 5


def test_a_partial_that_others_compute_together_is_answered_from_its_own_parts():
    plan = plan_of(("min", "max_count", "max"), INT)
    assert len(plan.monoids) == 1
    assert len(plan.components) == 3


def bytes_per_slice(names):
    op = sw.Workload(time="t").query("q", sw.tumbling(10), **{n: sw.AGGREGATES[n]("v") for n in names}).operator()
    op.process_batch({"t": list(range(0, 10_000, 10)), "v": list(range(1000))})
    assert op.stats().slices == 1000
    return op.stats().bytes / 1000


def test_bytes_per_slice_do_not_grow_with_aggregates_that_share_all_their_parts():
    assert bytes_per_slice(MOMENTS) == bytes_per_slice(("sum", "stddev")) == bytes_per_slice(("sum",)) + 16
    assert bytes_per_slice(("sum", "avg", "count")) == bytes_per_slice(("sum",))
    assert bytes_per_slice(("min", "max", "range_")) == bytes_per_slice(("range_",))


def test_a_float_deviation_does_not_cost_an_integer_sum_its_running_values():
    plan = plan_of(("sum", "stddev", "count", "avg"), INT)
    stores = {
        repr(a): plan.components[answer.component].store.choice
        for a, answer in zip(plan.aggregates, plan.answers, strict=True)
    }
    assert stores == {"sum('v')": "prefix", "stddev('v')": "eager", "count('v')": "prefix", "avg('v')": "prefix"}
    assert len(plan.components) == 2


def test_the_number_of_values_keeps_its_running_values_beside_a_float_sum():
    plan = plan_of(("sum", "count"), FLOAT)
    assert [(c.monoid.labels, c.store.choice) for c in plan.components] == [
        (("total of 'v'", "values of 'v'"), "eager"),
        (("values of 'v'",), "prefix"),
    ]


shared = st.sampled_from(FAMILY).map(lambda name: sw.AGGREGATES[name]("v"))


@given(workloads(st.one_of(shared, shared, shared, st.just(sw.first("v")))), steps(), st.sampled_from([None, "prefix"]))
def test_aggregates_that_share_have_the_oracles_answers(workload, epochs, store):
    expected, _ = run_oracle(workload, epochs)
    if store and any(a.name not in ("sum", "avg", "count") for q in workload.queries for a in q.aggregates.values()):
        store = "eager"
    assert_same(run_operator(workload.operator(types=TYPES, store=store), epochs), expected)


@given(workloads(shared), steps(st.one_of(st.none(), st.floats(-1e3, 1e3))))
def test_floats_that_are_shared_have_the_oracles_answers(workload, epochs):
    expected, _ = run_oracle(workload, epochs)
    assert_same(run_operator(workload.operator(types=FLOATS), epochs), expected, scale=1e3)


def test_extremes_of_decimals_are_shared_where_rows_leave_slices():
    several = {n: sw.AGGREGATES[n]("v") for n in ("min", "max", "range_")}
    workload = sw.Workload(time="t", lateness=100).query("q", sw.tumbling(sw.rows(3)), **several)
    op = workload.operator(types={"v": MONEY})
    values = [decimal.Decimal(n) for n in (5, 1, 9, 4, 7, 2)]
    op.process_batch({"t": [0, 2, 4, 6, 8, 10], "v": values})
    assert [tuple(r.values.values()) for r in op.advance(20)] == [(1, 9, 8), (2, 7, 5)]
    op.process(1, {"v": decimal.Decimal(8)})
    assert [tuple(r.values.values()) for r in op.advance(20) if r.change == "update"] == [(1, 8, 7), (4, 9, 5)]


# Queries that come later

ROWS = {"t": [1, 2, 13], "v": [4, 6, 5]}


def test_a_query_whose_parts_are_kept_already_is_complete_at_once():
    op = sw.Workload(time="t").query("sums", sw.tumbling(10), s=sw.sum("v")).operator()
    op.process_batch(ROWS)
    op.add_query("means", sw.tumbling(10), m=sw.avg("v"), n=sw.count("v"))
    assert {r.query: (r.start, dict(r.values)) for r in op.advance(10)} == {
        "means": (0, {"m": 5.0, "n": 2}),
        "sums": (0, {"s": 10}),
    }


def test_a_part_that_came_with_a_later_query_is_known_since_then():
    op = sw.Workload(time="t").query("sums", sw.tumbling(10), s=sw.sum("v")).operator()
    op.process_batch(ROWS)
    op.add_query("spread", sw.tumbling(10), d=sw.var_pop("v"))
    op.add_query("again", sw.sliding(10, every=5), d=sw.stddev_pop("v"))
    op.process_batch({"t": [21, 22], "v": [1, 3]})
    found = {(r.query, r.start): r.values.get("d") for r in op.close()}
    assert found["spread", 20] == found["again", 20] == 1.0
    assert not [place for place in found if place[0] in ("spread", "again") and place[1] < 14]


# Queries on time beside queries on rows in order

BOTH = (
    sw.Workload(time="t")
    .query("sums", sw.tumbling(10), s=sw.sum("v"))
    .query("middles", sw.sliding(sw.rows(2), every=sw.rows(1)), m=sw.median("v"))
)


def test_time_slices_hold_nothing_of_what_only_counts_ask_for():
    op = BOTH.operator()
    op.process_batch({"t": list(range(100)), "v": list(range(100))})
    op.advance(85)
    engine = op._core.engine
    labels = [label for monoid in engine.plan.monoids for label in monoid.labels]
    parts = dict(zip(labels, (part for parts in engine.state.time.slices.parts for part in parts), strict=True))
    assert parts["total of 'v'"].tolist() == [80 + 81 + 82 + 83 + 84]
    assert parts["histogram of 'v'"].lengths.tolist() == [0]


def test_a_query_on_time_is_not_complete_with_what_only_counts_asked_for():
    op = BOTH.operator()
    op.process_batch(ROWS)
    op.add_query("later", sw.tumbling(10), m=sw.median("v"))
    op.process_batch({"t": [21, 22], "v": [1, 3]})
    found = {r.start: r.values["m"] for r in op.close() if r.query == "later"}
    assert found == {20: 2.0}
