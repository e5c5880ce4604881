"""Values as of points on Spark: against the definition, the process, a join, and Spark's own RANGE frames."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Window
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.plan.plan import SORTED, plan_for
from slicewise.same import is_same
from slicewise.slicing import with_attached_names
from slicewise.spark import attaching, sorted_runs
from slicewise.spark.rough_order import ROUGH, TIME_BITS, RoughOrder
from slicewise.spark.types import spark_type
from slicewise.testing import attached
from slicewise.testing import stream as run_stream
from tests.arrow_rows import rows_with_maps
from tests.slicing import strategies as some
from tests.slicing.test_attach import LOOKING_BACK
from tests.spark.spark_own import plain_rows

few = settings(max_examples=2, phases=[Phase.explicit, Phase.generate], derandomize=True)
TYPES = {"t": pa.int64(), "v": pa.int64(), "w": pa.string(), "k": pa.string(), "j": pa.int64(), "o": pa.int64()}
POINTS = {"k": pa.string(), "j": pa.int64(), "at": pa.int64()}
NO_CHART = some.aggregates_over().filter(lambda a: a.base.name not in ("m4", "longest_rise"))


def frame_of(spark, stream, types, partitions=3):
    table = pa.Table.from_pylist([{n: row[n] for n in types} for row in stream], pa.schema(list(types.items())))
    schema = ", ".join(f"{name} {spark_type(type_).simpleString()}" for name, type_ in types.items())
    return spark.createDataFrame(table, schema=schema).repartition(partitions)


@st.composite
def workloads(draw, keys):
    """A dozen queries whose windows look back."""
    order, where = draw(st.sampled_from([[], ["o"]])), draw(st.sampled_from([None, "v > -3 or w = 'c'"]))
    workload = sw.Workload("t", keys=keys, order=order, where=where)
    for i in range(12):
        computed = draw(st.lists(NO_CHART, min_size=1, max_size=3))
        workload = workload.query(f"q{i}", draw(LOOKING_BACK), **{f"a{n}": a for n, a in enumerate(computed)})
    return workload


def by_definition(workload, points, events, time):
    def key_of(row):
        return tuple(row[k] for k in workload.keys)

    rows = [(row["t"], row, key_of(row)) for row in events]
    values = attached(workload, [(row[time], key_of(row)) for row in points], rows, ties="values", types=TYPES)
    return [{"i": i, **row} for i, row in enumerate(values)]


def assert_same(table, expected):
    found = {row["i"]: row for row in plain_rows(table)}
    assert len(found) == len(expected) == table.num_rows
    for row in expected:
        for name, value in row.items():
            assert is_same(found[row["i"]][name], value), f"{name} of {found[row['i']]}, expected {value!r}"


@few
@given(data=st.data())
def test_random_workloads_have_the_values_of_the_definition(spark, data):
    keys = data.draw(st.sampled_from([[], ["k"], ["k", "j"]]))
    workload = data.draw(workloads(keys))
    stream = data.draw(st.lists(some.rows(), min_size=60, max_size=100))
    stream = [{**row, "i": i, "t": None if i % 9 == 8 else row["t"]} for i, row in enumerate(stream)]
    points = data.draw(
        st.lists(
            st.fixed_dictionaries(
                {
                    "k": st.sampled_from(["x", "y", "z", None]),
                    "j": st.integers(0, 2),
                    "at": st.one_of(st.none(), st.integers(-40, 80)),
                }
            ),
            min_size=40,
            max_size=60,
        )
    )
    points = [{**p, "i": i} for i, p in enumerate(points)]
    events = frame_of(spark, stream, TYPES)
    found = workload.attach(frame_of(spark, points, {**POINTS, "i": pa.int64()}), events, time="at").toArrow()
    assert_same(found, by_definition(workload, points, stream, "at"))
    found = workload.attach(frame_of(spark, stream, {**TYPES, "i": pa.int64()})).toArrow()
    assert_same(found, by_definition(workload, stream, stream, "t"))


def test_a_large_table_equals_the_process_range_frames_and_a_join(spark):
    """Awkward names, a nested column, a key without events, null keys: 12 000 rows of which one key has a third."""
    rng = np.random.default_rng(3)
    n = 12_000
    key = pa.array(np.minimum(rng.zipf(1.5, n), 200).astype(str), mask=rng.random(n) < 0.01)
    seconds = rng.integers(0, 40 * 86_400, n)
    table = pa.table(
        {
            "card": key,
            "the `time`.at": pa.array(seconds * 1_000_000, pa.timestamp("us", "UTC")),
            "a.b": pa.array(rng.integers(-1000, 1000, n), mask=rng.random(n) < 0.1),
            "x": rng.normal(size=n),
            "list": pa.array([[int(i), None] for i in seconds[:n] % 5]),
            "id": np.arange(n),
        }
    )
    frame = spark.createDataFrame(table).repartition(5)
    workload = sw.Workload("the `time`.at", keys=["card"])
    lengths = {"hour": 3600, "month": 30 * 86_400}
    for name, length in lengths.items():
        window = sw.trailing(f"{length} seconds")
        workload = workload.query(name, window, n=sw.count(), s=sw.sum("a.b"), top=sw.max("x"), mean=sw.avg("x"))
    workload = workload.query("day", sw.tumbling("1 day"), n=sw.count()).query(
        "last", sw.trailing(sw.rows(3), closed="left"), l=sw.collect_list("a.b")
    )
    found = workload.attach(frame)
    assert found.columns == [*table.column_names, *(f"{n}_{c}" for n in lengths for c in ("n", "s", "top", "mean"))] + [
        "day_n",
        "last_l",
    ]
    assert found.schema["list"].dataType == frame.schema["list"].dataType
    arrow = found.toArrow().sort_by("id")
    expected = workload.attach(table)
    assert arrow.select(["id", "list", "a.b"]).to_pylist() == table.select(["id", "list", "a.b"]).to_pylist()
    for name in expected.column_names[6:]:
        if name == "last_l":
            continue  # of rows at one time, their values decide on Spark, and here their arrival
        for a, b in zip(arrow[name].to_pylist(), expected[name].to_pylist(), strict=True):
            assert is_same(a, b), name
    # Spark's own frames.
    at = F.unix_seconds(F.col("`the ``time``.at`"))
    columns = []
    for name, length in lengths.items():
        over = Window.partitionBy("card").orderBy(at).rangeBetween(-length + 1, 0)
        columns += [F.count("*").over(over).alias(f"{name}_n"), F.sum("`a.b`").over(over).alias(f"{name}_s")]
        columns += [F.max("x").over(over).alias(f"{name}_top"), F.avg("x").over(over).alias(f"{name}_mean")]
    frames = frame.select("id", *columns).toArrow().sort_by("id")
    for name in frames.column_names[1:]:
        for a, b in zip(arrow[name].to_pylist(), frames[name].to_pylist(), strict=True):
            assert is_same(a, b, 1.0), name
    # Other points, whose time has another name, against a join.
    points = spark.range(3000).select(
        F.pmod(F.col("id") * 7, F.lit(230)).cast("string").alias("card"),
        F.timestamp_seconds(F.col("id") * 1200).alias("asked at"),
        F.col("id").alias("ID"),
    )
    both = points.alias("p").join(
        frame.alias("e"),
        F.expr(
            "p.card <=> e.card AND e.`the ``time``.at` <= p.`asked at` "
            "AND e.`the ``time``.at` > p.`asked at` - INTERVAL 1 HOUR"
        ),
        "left",
    )
    joined = both.groupBy("p.ID").agg(
        F.count("e.id").alias("n"), F.sum("e.`a.b`").alias("s"), F.max("e.x").alias("top")
    )
    theirs = {row["ID"]: (row["n"], row["s"], row["top"]) for row in joined.collect()}
    mine = workload.attach(points, frame, time="asked at")
    assert mine.columns[:3] == ["card", "asked at", "ID"]
    assert {r["ID"]: (r["hour_n"], r["hour_s"], r["hour_top"]) for r in mine.collect()} == theirs


def test_columns_of_one_name_and_what_is_refused(spark):
    rows = spark.createDataFrame([(5, "a", 1), (1, "a", 2)], "t bigint, k string, v bigint")
    workload = sw.Workload("t", keys=["k"]).query("q", sw.trailing(10), s=sw.sum("v"))
    twice = rows.select("t", "k", F.lit(1).alias("x"), F.lit(2).alias("x"))
    found = workload.attach(twice, rows)
    assert found.columns == ["t", "k", "x", "x", "q_s"]
    assert sorted(tuple(r) for r in found.collect()) == [(1, "a", 1, 2, 2), (5, "a", 1, 2, 3)]
    stream = spark.readStream.format("rate").load().selectExpr("value t", "'a' k", "value v")
    with pytest.raises(sw.DataError) as error:
        workload.attach(stream)
    assert str(error.value) == (
        "`attach` takes tables; got a streaming DataFrame as `points`; on a stream, a query over sw.trailing reports "
        "the same values as of each row: workload.run(df)"
    )
    with pytest.raises(
        sw.DataError, match="`attach` takes points and events of one kind; got a Spark DataFrame beside"
    ):
        workload.attach(rows, pa.table({"t": [1]}))
    with pytest.raises(
        sw.DataError,
        match="`attach` adds a column 'q_s' for query 'q' beside 'Q_S', which Spark takes for the same name",
    ):
        workload.attach(rows.withColumn("Q_S", F.lit(1)))
    with pytest.raises(sw.DataError, match="key 'k' is int64 in the points and string in the events; cast one of them"):
        workload.attach(rows.withColumn("k", F.col("v")), rows)
    with pytest.raises(
        sw.DataError, match=r"the time column 't' of the points holds .* and 't' of the events int64; int"
    ):
        workload.attach(rows.withColumn("t", F.current_timestamp()), rows)
    with pytest.raises(sw.DataError, match="there is no column 'k' in the DataFrame; did you mean 'kk'"):
        workload.attach(rows.withColumnRenamed("k", "kk"), rows)
    zoned, plain = (rows.withColumn("t", F.lit("2024-05-01").cast(type_)) for type_ in ("timestamp", "timestamp_ntz"))
    hourly = sw.Workload("t", keys=["k"]).query("q", sw.trailing("1 hour"), s=sw.sum("v"))
    with pytest.raises(
        sw.DataError,
        match=r"the time column 't' of the points holds timestamp\[us\], and 't' of the events "
        r"timestamp\[us, tz=UTC\]; with and without a time zone cannot be compared: convert one of them",
    ):
        hourly.attach(plain, zoned)


@pytest.mark.parametrize("shift", [0, 8, 19])
def test_rough_order_is_the_same_to_the_jvm_and_to_numpy(spark, shift):
    """Times far away and null: rows in order of their numbers are so by time, and no stretch starts behind its rows."""
    times = [None, -(2**60), -(2**43), -(2**30), -1, 0, 1, 255, 256, 2**30, 2**43, 2**60]
    rows = spark.createDataFrame([(k, t) for k in ("x", "y") for t in times], "k string, t bigint")
    order = RoughOrder(shift)
    numbered = rows.select("k", "t", order.column(["k"], F.col("t")).alias("n")).collect()
    for key in ("x", "y"):
        of_key = sorted((row for row in numbered if row["k"] == key), key=lambda row: row["n"])
        assert [row["t"] for row in of_key if row["t"] is not None] == times[1:]
        starts = [order.start(row["n"]) for row in of_key]
        assert all(start is None or start <= row["t"] for start, row in zip(starts, of_key, strict=True))
    assert len({int(order.hashes(np.array([row["n"]]))[0]) for row in numbered}) == 2
    assert rows.select(order.column([], F.col("t")).alias("n")).where("n < 0").isEmpty()


# Without a JVM: piece by piece


#: The lower bits of event times that are left out, and the hashes of keys, of which two are equal.
ROUGHLY = RoughOrder(shift=2)
HASHES = {"x": -1, "y": -1, "z": 4, None: 7}


def rough(row):
    half = 1 << (TIME_BITS - 1)
    time = 0 if row["t"] is None else min(max((row["t"] >> ROUGHLY.shift) + half, 0), 2 * half - 1)
    return (HASHES[row["k"]] << TIME_BITS) + time


def runner_of(workload):
    types = {name: TYPES[name] for name in TYPES if name != "t"}
    make_plan = partial(plan_for, workload, types, time_type=pa.int64(), ties=SORTED, over_rows=True)
    inputs = {name: name for name in workload.inputs}
    types = {n: TYPES[n] for n in inputs}
    return attaching.PointRunner(make_plan, types, "t", ["key"], inputs, {"p0": "id"}, ROUGHLY)


@given(
    st.lists(some.rows(), min_size=1, max_size=40),
    st.integers(1, 9),
    st.integers(1, 5),
    st.sampled_from([0, 500, sorted_runs.IN_MEMORY]),
    st.randoms(use_true_random=False),
    st.sampled_from(["points", "rows", "some of the rows"]),
)
def test_pieces_of_any_size_give_the_same_answers(stream, chunk, batch_rows, in_memory, shuffled, asked):
    """Rows come in any order, keys of one hash and rows of nearly equal time stay mixed; runs are in files or not.

    Points are rows of their own, or the rows themselves, all of which or some of which are events.
    """
    workload = (
        sw.Workload("t", keys=["k"])
        .query("near", sw.trailing(5), l=sw.collect_list("o"), top=sw.max("v"))
        .query("far", sw.trailing(40, closed="both"), n=sw.count(), med=sw.median("v"), first=sw.first("o"))
        .query("rows", sw.trailing(sw.rows(2), closed="left"), s=sw.sum("v"))
        .query("grid", sw.sliding(20, every=10), s=sw.sum("v"))
    )
    # A time beyond all windows is none.
    timeless = {6: None, 13: 2**62, 20: -(2**62)}
    stream = [{**row, "t": timeless.get(i % 21, row["t"]), "o": i, "id": i} for i, row in enumerate(stream)]
    events, points, flags = stream, stream, {}
    if asked == "points":
        points = [{**row, "o": None, "v": None, "is_point": True} for i, row in enumerate(stream) if i % 2]
        rows, flags = [{**row, "is_point": False} for row in stream] + points, {"is_point": pa.bool_()}
    elif asked == "some of the rows":
        rows, flags = [{**row, "is_event": row["o"] % 3 > 0} for row in stream], {"is_event": pa.bool_()}
        events = [row for row in stream if row["o"] % 3]
    else:
        rows = list(stream)
    shuffled.shuffle(rows)
    names = {"t": pa.int64(), "key": pa.string(), "v": pa.int64(), "o": pa.int64(), "id": pa.int64(), ROUGH: pa.int64()}
    table = pa.Table.from_pylist(
        [{**row, "key": row["k"], ROUGH: rough(row)} for row in rows], pa.schema([*names.items(), *flags.items()])
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attaching, "CHUNK", chunk)
        patch.setattr(sorted_runs, "SAMPLED", 1)
        patch.setattr(sorted_runs, "IN_MEMORY", in_memory)
        runner = runner_of(with_attached_names(workload, []))
        found = list(runner(iter(table.to_batches(max_chunksize=batch_rows))))
    near = [{**row, "t": None if abs(row["t"] or 0) > 2**60 else row["t"]} for row in events]
    at = [(None if abs(row["t"] or 0) > 2**60 else row["t"], (row["k"],)) for row in points]
    expected = attached(workload, at, [(row["t"], row, (row["k"],)) for row in near], ties="values")
    values = {row["p0"]: row for batch in found for row in rows_with_maps(pa.Table.from_batches([batch]))}
    assert len(values) == len(points)
    for point, row in zip(points, expected, strict=True):
        for i, (name, value) in enumerate(row.items()):
            assert is_same(values[point["id"]][f"a{i}"], value), (name, point, values[point["id"]])


@pytest.mark.streams
def test_a_stream_reports_what_attach_adds(spark):
    """Rows out of order and late ones over four micro-batches; folded, every time of a key has the values as of it."""
    rng = np.random.default_rng(8)
    stream = [
        {"k": "xy"[i % 2], "t": int(t), "v": int(v)}
        for i, (t, v) in enumerate(
            zip(np.arange(400) // 2 + rng.integers(0, 30, 400), rng.integers(-9, 9, 400), strict=True)
        )
    ]
    windows = {
        "right": sw.trailing(20),
        "left": sw.trailing(20, closed="left"),
        "both": sw.trailing(7, closed="both"),
        "neither": sw.trailing(7, closed="neither"),
    }
    workload = sw.Workload("t", keys=["k"], watermark=5, lateness=1000)
    for name, window in windows.items():
        workload = workload.query(name, window, n=sw.count(), s=sw.sum("v"), top=sw.max("v"), mean=sw.avg("v"))
    workload = workload.query("grid", sw.sliding(20, every=10), n=sw.count())
    types = {"k": pa.string(), "t": pa.int64(), "v": pa.int64()}
    batches = [frame_of(spark, stream[at : at + 100], types) for at in range(0, 400, 100)]
    ended = frame_of(spark, [{"k": k, "t": 5000, "v": 0} for k in "xy"], types)
    found = run_stream([*batches, ended], workload).toArrow()
    table = pa.Table.from_pylist(stream, pa.schema(list(types.items())))
    expected = workload.attach(table).to_pylist()
    by_time = {(row["k"], row["t"]): row for row in expected}
    mine = {(r["query"], r["k"], r["window"]["end"]): r for r in plain_rows(found) if r["window"]["end"] < 4900}
    for name in windows:
        assert {(k, t) for query, k, t in mine if query == name} == set(by_time)
        for (k, t), row in by_time.items():
            for column in ("n", "s", "top", "mean"):
                assert is_same(mine[name, k, t][column], row[f"{name}_{column}"]), (name, k, t, column)
    # In a batch, too.
    batch = {
        (r["query"], r["k"], r["window"]["end"]): r
        for r in plain_rows(workload.run(frame_of(spark, stream, types)).toArrow())
    }
    for at, row in batch.items():
        if at[0] != "grid":
            assert all(is_same(row[c], by_time[at[1:]][f"{at[0]}_{c}"]) for c in ("n", "s", "top", "mean"))
    assert sum(at[0] == "left" for at in batch) == len(by_time)
