"""Measures: counts, units and punctuations sliced in the JVM, beside the operator in process and Spark's own frames."""

from __future__ import annotations

import decimal
import re

import numpy as np
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Window
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.columns import Column
from slicewise.conditions import Condition
from slicewise.plan.axes import axes_of
from slicewise.plan.condition_sql import condition_sql
from slicewise.plan.plan import VALUES
from slicewise.plan.routes import SLICES, route_of
from slicewise.slicing.compose import find_windows
from slicewise.slicing.operator import Operator
from slicewise.slicing.time.slices import Slices
from slicewise.testing.ticks import windows_with
from tests.spark.running import ansi, rows_of, same

KEYS = ["my key"]
BASE = sw.Workload(time="ts", keys=KEYS)


def table(rows=1500, seed=0):
    """Rows in no order: few different times, three keys of which one is null, nulls, and measures that only advance."""
    r = np.random.default_rng(seed)
    time = np.sort(r.integers(-400, 800, rows)) * 20_000
    key = r.integers(0, 3, rows)

    def advancing(steps):
        out = np.empty(rows, np.int64)
        for k in range(3):
            out[key == k] = np.cumsum(r.integers(0, steps, (key == k).sum())) - 50
        return out

    def nulls(values, share=0.1):
        return pa.array(values, mask=r.random(rows) < share)

    quarters = advancing(4)
    data = pa.table(
        {
            "ts": pa.array(time).cast(pa.timestamp("us", "UTC")),
            "my key": pa.array(np.array(["a", "b", None], object)[key], pa.string()),
            "v": nulls(r.integers(-5, 6, rows)),
            "x": nulls(r.integers(-20, 20, rows) / 8),
            "s": nulls(r.choice(["start", "go", "stop", "it's"], rows).astype(object)),
            "flag": nulls(r.random(rows) < 0.05),
            "odo": pa.array(advancing(5), pa.int32()),
            "km": nulls(np.round(advancing(4) * 0.1, 1), 0.2),
            "quarter": pa.array(quarters / 4),
            "dec": pa.array([decimal.Decimal(q) / 4 for q in quarters.tolist()], pa.decimal128(12, 2)),
        }
    )
    return data.take(pa.array(r.permutation(rows)))


def in_process(workload, data):
    """The results of the operator, to which rows of equal time come by their values, as on Spark."""
    op = Operator(workload, ties=VALUES)
    op.process_batch(data)
    return op.close().to_arrow()


def by_place(results, keys):
    """Results by key, query and bounds; several punctuated windows may begin and end at one time."""
    found = {}
    for row in rows_of(results):
        bounds = [None if row[name] is None else tuple(row[name].values()) for name in ("window", "span")]
        found.setdefault(repr(([row[k] for k in keys], row["query"], *bounds)), []).append(row)
    return found


def compare(found, expected, keys=KEYS):
    mine, theirs = by_place(found, keys), by_place(expected, keys)
    assert sorted(theirs.keys() - mine.keys())[:3] == sorted(mine.keys() - theirs.keys())[:3] == []
    assert found.num_rows == expected.num_rows > 0
    names = [n for n in expected.column_names if n != "window" and not _holds_times(expected.schema.field(n).type)]
    for place, rows in mine.items():
        a, b = (sorted(([row[n] for n in names] for row in some), key=_rounded) for some in (rows, theirs[place]))
        assert all(map(same, a, b)), (place, a, b)


def _rounded(row):
    return repr([round(v, 6) if isinstance(v, float) else v for v in row])


def _holds_times(type_):
    return pa.types.is_timestamp(type_) or (pa.types.is_struct(type_) and any(_holds_times(f.type) for f in type_))


def check(spark, workload, data, keys=KEYS):
    types = dict(zip(data.column_names, data.schema.types, strict=True))
    assert {route_of(q, types).choice for q in workload.queries} == {SLICES}
    compare(workload.run(spark.createDataFrame(data)).toArrow(), in_process(workload, data), keys)


NUMBERS = {"n": sw.count(), "total": sw.sum("v"), "mean": sw.avg("x"), "most": sw.max("x"), "var": sw.var_pop("v")}
PICKS = {"opening": sw.first("s"), "closing": sw.last("v"), "best": sw.max_by("s", "x"), "worst": sw.min_by("v", "x")}


@pytest.mark.parametrize(
    ("aggregates", "on"),
    [(NUMBERS, True), (NUMBERS, False), (PICKS, True)],
    ids=["numbers", "numbers, not ANSI", "picks"],
)
def test_all_measures_in_one_workload_are_as_in_process(spark, aggregates, on):
    workload = (
        BASE.query("trend", sw.sliding("2 seconds", every="300 milliseconds"), **aggregates)
        .query("since", sw.landmark(every="5 seconds", since="1970-01-01 00:00:01"), **aggregates)
        .query("visit", sw.session("70 milliseconds"), **aggregates)
        .query("counts", sw.sliding(sw.rows(100), every=sw.rows(30)), **aggregates)
        .query("some", sw.between(sw.rows(40), sw.rows(200)), **aggregates)
        .query("ever", sw.landmark(every=sw.rows(60), since=15), **aggregates)
        .query("grow", sw.cumulative(sw.rows(90), every=sw.rows(30)), **aggregates)
        .query("far", sw.between(sw.units(-20, "odo"), sw.units(150, "odo")), **aggregates)
        .query("decimal", sw.landmark(every=sw.units(40, "dec"), since=-1.25), **aggregates)
        .query("tenths", sw.cumulative(sw.units(0.9, "km"), every=sw.units(0.3, "km")), **aggregates)
        .query("kms", sw.landmark(every=sw.units(0.7, "km"), since=-0.1), **aggregates)
        .query("few", sw.between(sw.units(0.3, "km"), sw.units(7.7, "km")), **aggregates)
        .query("odo", sw.sliding(sw.units(50, "odo"), every=sw.units(20, "odo")), **aggregates)
        .query("km", sw.tumbling(sw.units(1.5, "km")), **aggregates)
        .query("starts", sw.punctuated("s = 'start' and v > 3"), **aggregates)
        .query("flags", sw.punctuated("flag"), **aggregates)
    )
    with ansi(spark, on):
        check(spark, workload, table())


def test_slides_that_divide_the_length_and_slides_that_do_not(spark):
    workload = BASE
    for n, m, offset in ((100, 100, 0), (90, 30, 0), (100, 30, 7), (10, 64, 3), (64, 17, 0), (5000, 100, 0)):
        window = sw.sliding(sw.rows(n), every=sw.rows(m), offset=sw.rows(offset) if offset else 0)
        workload = workload.query(f"rows {n} {m}", window, n=sw.count(), total=sw.sum("v"))
    for n, m in ((8, 8), (9, 3), (10, 4), (3, 7), (2.5, 0.75)):
        window = sw.sliding(sw.units(n, "odo"), every=sw.units(m, "odo"))
        workload = workload.query(f"odo {n} {m}", window, n=sw.count(), total=sw.sum("v"))
    for n, m in ((0.1, 0.1), (0.3, 0.1), (0.7, 0.2), (0.1, 0.3), (1, 1)):
        window = sw.sliding(sw.units(n, "km"), every=sw.units(m, "km"))
        workload = workload.query(f"km {n} {m}", window, n=sw.count(), total=sw.sum("v"))
    check(spark, workload, table(seed=1))


def test_without_keys_rows_of_equal_time_go_by_the_order_columns(spark):
    data = table(600, seed=2).append_column("seq", pa.array(np.arange(600)[::-1].copy()))
    workload = (
        sw.Workload(time="ts", order=["seq"])
        .query("counts", sw.tumbling(sw.rows(40)), opening=sw.first("s"), closing=sw.last("s"))
        .query("starts", sw.punctuated("v >= 4"), opening=sw.first("s"), last=sw.last("x"))
    )
    check(spark, workload, data, [])


def test_rows_without_a_measure_keep_their_place_among_rows_of_equal_time(spark):
    # One time only: whatever depends on order depends on the order of slices that lie among each other.
    n = 400
    data = pa.table(
        {
            "ts": pa.array(np.zeros(n, np.int64)).cast(pa.timestamp("us", "UTC")),
            "seq": np.arange(n),
            "km": pa.array(np.arange(n) / 8, mask=np.arange(n) % 3 == 0),
            "v": np.arange(n),
        }
    )
    picks = {"opening": sw.first("v"), "closing": sw.last("v"), "chart": sw.m4("v")}
    workload = (
        sw.Workload(time="ts", order=["seq"])
        .query("counts", sw.tumbling(sw.rows(50)), **picks)
        .query("km", sw.sliding(sw.units(10, "km"), every=sw.units(5, "km")), **picks)
    )
    check(spark, workload, data, [])


def test_decimals_are_measured_exactly(spark):
    data = table(900, seed=3)

    def on(column):
        return (
            BASE.query("tumbling", sw.tumbling(sw.units(2.5, column)), n=sw.count(), total=sw.sum("v"))
            .query("sliding", sw.sliding(sw.units(3, column), every=sw.units(0.75, column)), n=sw.count())
            .query("finer", sw.tumbling(sw.units(0.125, column)), n=sw.count())
        )

    # Quarters are exact as doubles too.
    compare(on("dec").run(spark.createDataFrame(data)).toArrow(), in_process(on("quarter"), data))


def test_integer_times_are_counted_too(spark):
    r = np.random.default_rng(4)
    data = pa.table({"t": r.integers(-50, 50, 500), "v": r.integers(0, 9, 500)})
    workload = (
        sw.Workload(time="t")
        .query("trend", sw.sliding(10, every=3), total=sw.sum("v"))
        .query("counts", sw.sliding(sw.rows(20), every=sw.rows(10)), total=sw.sum("v"))
    )
    check(spark, workload, data, [])


def test_the_last_hundred_rows_are_those_of_sparks_own_frame(spark):
    data = spark.createDataFrame(table(2000, seed=5))
    workload = BASE.query("q", sw.tumbling(sw.rows(100)), total=sw.sum("v"), most=sw.max("x"))
    found = workload.run(data).select("my key", "span.end", "total", "most")
    order = Window.partitionBy("my key").orderBy("ts", "v", "x")
    frame = order.rowsBetween(-99, 0)
    numbered = data.select(
        "my key",
        F.row_number().over(order).cast("double").alias("end"),
        F.sum("v").over(frame).alias("total"),
        F.max("x").over(frame).alias("most"),
    )
    own = numbered.where(F.col("end") % 100 == 0)
    assert found.exceptAll(own).count() == own.exceptAll(found).count() == 0


CONDITIONS = [
    "flag",
    "not flag",
    "v = 3",
    "v <> 3 and v is not null",
    "v > 2.5",
    "2.5 >= v or x is null",
    "x = v",
    "x / 0 is null",
    "v / 2 = 1.5",
    "v % 3 = -1",
    "v % 0 = 1 or v = 1",
    "x % 0.5 = 0.25",
    "f > 0.1",
    "f = 0.1",
    "big + 1 > big",
    "big * 2 > 9223372036854775807",
    "big % 7 = 0",
    "big = 9223372036854775807.0",
    "big > 1e18",
    "v * 0.5 + 0.25 > 1",
    "dec * 1.5 - 0.1 > 3",
    "dec % 0.5 = 0.25",
    "dec > x",
    "dec = v",
    "nan = nan",
    "nan > 1e308",
    "nan < x",
    "s in ('start', 'it''s', null)",
    "s not in ('start', 'stop')",
    "s between 'go' and 'start'",
    "s > 'öäü \\ % $ {'",
    "-v > 2",
    "v = null or flag",
    "(v > 1) = (x > 1)",
    "flag = true",
]


@pytest.mark.parametrize("on", [True, False], ids=["ANSI", "not ANSI"])
def test_conditions_mean_the_same_in_the_jvm(spark, on):
    data = table(600, seed=6)
    r = np.random.default_rng(7)
    big = r.choice([-(2**63), -7, 0, 7, 2**53 + 1, 2**63 - 1], len(data))
    nan = pa.array(r.choice([np.nan, 1.0, -np.inf, np.inf], len(data)), mask=r.random(len(data)) < 0.2)
    floats = pa.array(r.choice([0.1, 0.2, 0.5], len(data)), pa.float32())
    for name, values in (("big", pa.array(big)), ("nan", nan), ("f", floats)):
        data = data.append_column(name, values)
    types = dict(zip(data.column_names, data.schema.types, strict=True))
    asked = [F.expr(condition_sql(c, types, lambda n: f"`{n}`")).alias(f"c{i}") for i, c in enumerate(CONDITIONS)]
    with ansi(spark, on):
        found = spark.createDataFrame(data).select(*asked).toArrow()
    columns = {name: Column.of(data.column(name)) for name in data.column_names}
    for i, said in enumerate(CONDITIONS):
        expected = Condition.of(said).mask(columns, len(data))
        assert found.column(f"c{i}").to_pylist() == expected.tolist(), said


@pytest.mark.parametrize("value", [0.1, 0.25, 1 / 3, 0.7])
def test_windows_on_floating_units_are_bounded_as_rounded(value):
    # By definition, one value at a time, beside all slices at once.
    window = sw.sliding(sw.units(3 * value, "x"), every=sw.units(value, "x"))
    (measure,) = axes_of([window], {"x": pa.float64()})
    values = np.unique(np.concatenate([np.arange(-40, 40) * value, np.arange(-40, 40) / 10]))
    n = len(values)
    slices = Slices(*(np.zeros(n, np.int64) for _ in range(6)), ())
    found = find_windows(measure, slices, Column.of(values))
    expected = {w for u in values.tolist() for w in windows_with(u, 3 * value, value)}
    assert set(zip(found.start.tolist(), found.end.tolist(), strict=True)) == expected
    for start, end, low, high in zip(found.start, found.end, found.low, found.high, strict=True):
        assert values[low:high].tolist() == [u for u in values.tolist() if start <= u < end]


def frame_of(spark, type_, values):
    return spark.createDataFrame([(i, "a", v) for i, v in enumerate(values)], f"t bigint, k string, km {type_}")


@pytest.mark.parametrize(
    ("type_", "values", "said"),
    [
        ("int", [1, 5, None, 4], "'km' must not go backwards; key a has 4 at time 3, after 5"),
        ("double", [1.5, 2.5, 2.25], "'km' must not go backwards; key a has 2.25 at time 2, after 2.5"),
        ("decimal(9,2)", list(map(decimal.Decimal, ("1.50", "1.25"))), "key a has 1.25 at time 1, after 1.5"),
        ("double", [1.0, float("nan"), 2.0], "'km' must be a finite number that 64 bits hold; key a has NaN at time 1"),
        ("bigint", [1, 2**62], "'km' must be a finite number that 64 bits hold; key a has 4611686018427387904"),
    ],
)
def test_units_that_go_backwards_are_refused(spark, type_, values, said):
    workload = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(sw.units(10, "km")), n=sw.count())
    with pytest.raises(Exception, match="the measure") as raised:
        workload.run(frame_of(spark, type_, values)).collect()
    assert said in str(raised.value)


@pytest.mark.parametrize("on", [True, False], ids=["ANSI", "not ANSI"])
def test_units_further_away_than_slides_are_numbered_are_refused(spark, on):
    # A number of slides beyond 64 bits would fail in ANSI mode, and wrap around without.
    workload = sw.Workload(time="t", keys=["k"]).query("q", sw.tumbling(sw.units(0.5, "km")), n=sw.count())
    message = "the measure 'km' must be a finite number that 64 bits hold; key a has 1.0E19 at time 1"
    with ansi(spark, on), pytest.raises(PySparkException, match=re.escape(message)):
        workload.run(frame_of(spark, "double", [1.0, 1e19])).collect()


NODES = ("Exchange", "Sort", "Window", "MapInArrow")


@pytest.mark.parametrize(("spread", "nodes"), [("false", [1, 1, 1, 1]), ("true", [3, 1, 1, 1])])
def test_slices_of_all_measures_come_from_one_sort_and_one_shuffle(spark, capsys, spread, nodes):
    # A session may forbid aggregations to stay where the rows of a key were put: then slices are brought together anew.
    workload = (
        BASE.query("trend", sw.sliding("2 seconds", every="1 second"), n=sw.count())
        .query("visit", sw.session("1 second"), n=sw.count())
        .query("counts", sw.tumbling(sw.rows(100)), n=sw.count())
        .query("odo", sw.tumbling(sw.units(10, "odo")), n=sw.count())
        .query("starts", sw.punctuated("flag"), n=sw.count())
    )
    setting = "spark.sql.requireAllClusterKeysForDistribution"
    spark.conf.set(setting, spread)
    try:
        workload.run(spark.createDataFrame(table(100))).explain()
    finally:
        spark.conf.unset(setting)
    plan = capsys.readouterr().out
    assert [plan.count(f"- {node} ") for node in NODES] == nodes
