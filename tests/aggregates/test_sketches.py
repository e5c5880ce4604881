"""Sketches: within their error however rows are cut, plain bytes as partials, and what is refused."""

from __future__ import annotations

import decimal
import importlib.util
import re

import datasketches
import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.columns import Column
from slicewise.errors import AggregateError, MissingPackageError

D = decimal.Decimal
INT, FLOAT, TEXT = pa.int64(), pa.float64(), pa.string()


def cut_sketch(aggregate, values, type_, cuts: int):
    """The partial of values that were cut into so many slices, merged two by two."""
    monoid = aggregate.bind(type_)
    starts = np.linspace(0, len(values), cuts, endpoint=False).astype(np.int64)
    parts = monoid.lift_fold([Column.of(values, type_)], np.arange(len(values)), starts)
    assert all(type(sketch) is bytes for sketch in parts[0])
    while len(parts[0]) > 1:
        half = len(parts[0]) // 2
        merged = monoid.combine(tuple(p[:half] for p in parts), tuple(p[half : 2 * half] for p in parts))
        parts = tuple(np.concatenate([m, p[2 * half :]]) for m, p in zip(merged, parts, strict=True))
    return monoid, parts


def answer(aggregate, values, type_, cuts: int):
    monoid, parts = cut_sketch(aggregate, values, type_, cuts)
    return monoid.lower(parts).to_pylist()[0]


@pytest.mark.parametrize("cuts", [1, 7])
def test_estimates_are_within_their_error(cuts):
    """A small, fixed case of what `benchmarks/sketches.py` tries for a hundred seeds and a million values."""
    values = np.random.default_rng(5).integers(0, 20_000, 50_000)
    distinct = len(np.unique(values))
    for rsd in (0.02, 0.05, 0.39):
        assert abs(answer(sw.approx_count_distinct("v", rsd), values, INT, cuts) - distinct) < 3 * rsd * distinct
    for share in (0.01, 0.5, 0.9):
        value = answer(sw.approx_percentile("v", share, 100), values, INT, cuts)
        assert (values < value).mean() - 0.02 < share < (values <= value).mean() + 0.02
    skewed = np.minimum(values, 20_000 - values) // 4 % 3001
    top = answer(sw.approx_most_frequent("v", 3), skewed, INT, cuts)
    counts = np.bincount(skewed)
    for item in top:
        assert counts[item["value"]] <= item["count"] <= counts[item["value"]] + 3.5 / 1024 * len(skewed)


@pytest.mark.parametrize(("aggregate", "type_"), [(sw.hll_sketch_agg("v"), INT), (sw.hll_sketch_agg("v", 6), TEXT)])
def test_hyperloglog_sketches_estimate_however_rows_are_cut(aggregate, type_):
    values = [f"{i % 700}" for i in range(3000)] if type_ == TEXT else np.arange(3000) % 700
    for cuts in (1, 5):
        sketch = datasketches.hll_sketch.deserialize(answer(aggregate, values, type_, cuts))
        assert sketch.lg_config_k == aggregate.lg_k
        assert abs(sketch.get_estimate() - 700) < 3 * 1.04 / np.sqrt(2**aggregate.lg_k) * 700


def test_a_theta_sketch_is_the_same_however_rows_are_cut():
    values = np.random.default_rng(1).integers(0, 3000, 9000)
    sketches = {answer(sw.theta_sketch_agg("v", 8), values, INT, cuts) for cuts in (1, 2, 9, 100)}
    assert len(sketches) == 1
    (sketch,) = sketches
    estimate = datasketches.compact_theta_sketch.deserialize(sketch).get_estimate()
    assert abs(estimate - len(np.unique(values))) < 3 / 16 * 3000


def test_quantile_sketches_hold_all_values_but_nan():
    values = np.append(np.random.default_rng(1).normal(size=5000), np.nan)
    for cuts in (1, 8):
        sketch = datasketches.kll_doubles_sketch.deserialize(answer(sw.kll_sketch_agg_double("v"), values, FLOAT, cuts))
        assert sketch.n == 5000
        assert abs(sketch.get_rank(0.0) - 0.5) < 0.03


LONG = D("1234567890123456789012345678.0123456789")
EXTREMES = [
    (pa.int64(), 2**63 - 1),
    (pa.int64(), -(2**63)),
    (pa.int8(), 127),
    (pa.decimal128(20, 3), D("-99999999999999999.999")),
    (pa.decimal128(38, 0), D("9" * 38)),
    (pa.decimal128(38, 38), D("0." + "9" * 38)),
]


@pytest.mark.parametrize(("type_", "extreme"), EXTREMES)
def test_percentiles_of_extremes_fit_the_column_s_type(type_, extreme):
    """Held as doubles, the largest values of wide types are rounded beyond what these can hold."""
    assert answer(sw.approx_percentile("v", [0.0, 1.0]), [extreme] * 3, type_, 2) == [extreme] * 2


def test_percentiles_of_long_decimals_have_the_digits_of_doubles():
    found = answer(sw.approx_percentile("v", 0.5), [LONG] * 3, pa.decimal128(38, 10), 2)
    assert str(found) == "1234567890123456900000000000.0000000000"
    assert float(found) == float(LONG)


def test_frequent_decimals_keep_all_their_digits():
    found = answer(sw.approx_most_frequent("v", 1), [LONG, LONG, D(1)], pa.decimal128(38, 10), 2)
    assert found == [{"value": LONG, "count": 2}]


def test_windows_of_sketches_slide():
    workload = sw.Workload("t").query(
        "q", sw.sliding(20, every=1), n=sw.approx_count_distinct("v"), p=sw.percentile_approx("v", [0.0, 1.0])
    )
    assert "eager" in workload.explain()
    op = workload.operator()
    results = list(op.process_batch({"t": list(range(60)), "v": [i // 2 for i in range(60)]})) + list(op.close())
    whole = {r.start: r for r in results}[20]
    assert whole.values == {"n": 10, "p": [10, 19]}


def test_without_the_package_the_command_is_named(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "datasketches" else found(name))
    message = "`hll_sketch_agg` needs the package datasketches, which is not installed; pip install 'slicewise[sketch]'"
    with pytest.raises(MissingPackageError, match=f"^{re.escape(message)}$"):
        sw.hll_sketch_agg("v")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sw.approx_count_distinct("v", rsd=0), "`rsd` of `approx_count_distinct` must be a number from 0.001"),
        (lambda: sw.approx_count_distinct("v", 0.4), "must be a number from 0.001 to 0.39; got 0.4"),
        (
            lambda: sw.hll_sketch_agg("v", 3),
            "`lgConfigK` of `hll_sketch_agg` must be a whole number from 4 to 21; got 3",
        ),
        (lambda: sw.theta_sketch_agg("v", True), "`lgNomEntries` of `theta_sketch_agg` must be a whole number from 4"),
        (lambda: sw.kll_sketch_agg_double("v", 7), "`k` of `kll_sketch_agg_double` must be a whole number from 8 to"),
        (lambda: sw.approx_percentile("v", 2), "`percentage` of `approx_percentile` must be a number from 0 to 1, or"),
        (lambda: sw.approx_percentile("v"), "or a list of them; got nothing: 0.9 is the 90th percentile"),
        (lambda: sw.approx_percentile("v", 0.5, 0), "`accuracy` of `approx_percentile` must be a whole number from 1"),
        (
            lambda: sw.approx_most_frequent("v", 0),
            "`k` of `approx_most_frequent` must be a whole number from 1 on; got 0",
        ),
        (
            lambda: sw.hll_sketch_agg("v").bind(pa.float64()),
            "`hll_sketch_agg` of column 'v' needs integers or text, which Python and Spark hash alike; got double",
        ),
        (
            lambda: sw.approx_count_distinct("v").bind(pa.list_(INT)),
            "`approx_count_distinct` of column 'v' needs numbers, text, bytes or times; got list<item: int64>",
        ),
        (lambda: sw.kll_sketch_agg_double("v").bind(TEXT), "`kll_sketch_agg_double` of column 'v' needs numbers; got"),
    ],
)
def test_what_cannot_be_sketched_is_refused(make, message):
    with pytest.raises(AggregateError, match=re.escape(message)):
        make()
