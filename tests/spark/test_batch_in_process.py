"""Batch beside the operator and the oracle: random workloads, ties of equal time, and rows taken piece by piece."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.columns import Column
from slicewise.plan.plan import plan_for
from slicewise.same import is_same
from slicewise.slicing import Edges, PeriodicWindows, Slices
from slicewise.spark import arrow_io, composing, row_route, slice_sources
from slicewise.spark.key_numbers import normal_form, number_keys
from slicewise.spark.output import Output
from slicewise.spark.types import spark_type
from slicewise.testing import Oracle
from tests.arrow_rows import rows_with_maps
from tests.slicing import strategies as some
from tests.spark.running import compare, in_process, on_spark
from tests.spark.spark_own import plain_rows

TYPES = {"w": pa.string(), "k": pa.string(), "u": pa.float64()}
#: A job takes long and shrinking takes many: a few large workloads, always the same ones.
few = settings(max_examples=2, phases=[Phase.explicit, Phase.generate], derandomize=True)


def frame_of(spark, stream, partitions=3):
    types = {name: TYPES.get(name, pa.int64()) for name in sorted(stream[0])}
    schema = ", ".join(f"{name} {spark_type(type_).simpleString()}" for name, type_ in types.items())
    table = pa.Table.from_pylist(stream, pa.schema(list(types.items())))
    return spark.createDataFrame(table, schema=schema).repartition(partitions)


def by_oracle(workload, stream):
    """The results of the oracle, each as key, query, bounds and values; rows of equal time go by their values."""
    oracle = Oracle(workload, ties="values")
    for row in stream:
        oracle.process(row["t"], row, tuple(row[k] for k in workload.keys))
    return [(r.key, r.query, r.start, r.end, r.values) for r in oracle.close()]


def from_spark(workload, frame):
    """The results on Spark in the same shape: bounds in the query's own measure."""
    found = []
    for row in plain_rows(workload.run(frame).toArrow()):
        assert (row["change"], row["revision"]) == ("insert", 0)
        bounds = row["window"] if row["span"] is None else row["span"]
        values = {name: row[name] for name in workload.named(row["query"]).aggregates}
        found.append((tuple(row[k] for k in workload.keys), row["query"], bounds["start"], bounds["end"], values))
    return found


def assert_same(found, expected):
    def place(result):
        # Values last: windows that are told by rows may have the same bounds in time.
        end = math.inf if result[3] is None else float(result[3])
        return repr((result[0], result[1], float(result[2]), end)), str(list(result[4].values()))

    mine, theirs = sorted(found, key=place), sorted(expected, key=place)
    assert [place(r)[0] for r in mine] == [place(r)[0] for r in theirs]
    for a, b in zip(mine, theirs, strict=True):
        for name, value in b[4].items():
            assert is_same(a[4][name], value), f"{name} of {a[:4]}: {a[4][name]!r}, expected {value!r}"


@st.composite
def many_queries(draw, keys, order, aggregates, windows):
    """A workload of a dozen queries of all kinds."""
    workload = sw.Workload("t", keys=keys, order=order).query("ints", sw.tumbling(7), n=sw.count())
    for i in range(12):
        computed = draw(st.lists(aggregates, min_size=1, max_size=3))
        workload = workload.query(f"q{i}", draw(windows), **{f"q{i}_{n}": a for n, a in enumerate(computed)})
    return workload


def streams(**columns):
    rows = some.rows().map(lambda row: {**row, **columns})
    return st.lists(rows, min_size=60, max_size=120)


ANY_WINDOW = st.one_of(some.windows(), some.context_windows())
READING_V = st.one_of(
    st.builds(lambda n, m: sw.sliding(sw.rows(n), every=sw.rows(m)), st.integers(1, 6), st.integers(1, 6)),
    st.builds(lambda n, e: sw.sliding(sw.rows(n), every=e), st.integers(1, 6), st.integers(2, 5)),
    st.builds(lambda n, m: sw.sliding(n, every=sw.rows(m)), st.integers(1, 9), st.integers(1, 4)),
    st.sampled_from([sw.punctuated("v > 2"), sw.punctuated("v = 0"), sw.frames("v > 0"), sw.frames("v is not null")]),
    st.just(sw.user_defined(some.LastThree, columns=["v"], deterministic=False)),
)
NO_CHART = some.aggregates_over().filter(lambda a: a.name not in ("m4", "longest_rise"))


@few
@given(data=st.data())
def test_random_workloads_with_a_complete_order(spark, data):
    # The order column tells all rows apart: whichever route a query takes, there is one right answer.
    keys = data.draw(st.sampled_from([[], ["k"], ["k", "j"]]))
    workload = data.draw(many_queries(keys, ["o"], NO_CHART, ANY_WINDOW))
    stream = [{**row, "o": i * 37 % 1009 - 300} for i, row in enumerate(data.draw(streams()))]
    # Measures advance: the units of rows of one key follow their order.
    stream.sort(key=lambda row: (row["t"], row["o"]))
    frame = frame_of(spark, stream)
    assert_same(from_spark(workload, frame), by_oracle(workload, stream))
    charts = sw.Workload("t", keys=keys, order=["o"])
    charts = charts.query("a", data.draw(some.windows()), a=sw.m4("v")).query(
        "b", sw.tumbling(sw.rows(3)), b=sw.m4("v")
    )
    compare(on_spark(charts, frame), in_process(charts, frame), keys)


@few
@given(data=st.data())
def test_random_workloads_whose_ties_are_broken_by_values(spark, data):
    """A dozen queries on all routes, few different times: rows of equal time come by all that is read in order."""
    order = data.draw(st.sampled_from([[], ["o"]]))
    workload = data.draw(many_queries(["k"], order, NO_CHART, ANY_WINDOW))
    stream = [tied(row, 4) for row in data.draw(streams())]
    assert_same(from_spark(workload, frame_of(spark, stream)), by_oracle(workload, stream))


def tied(row, width):
    """The same row at a coarser time; measures that advance with time advance with it."""
    t = row["t"] // width
    return {**row, "t": t, "u": None if row["u"] is None else 100 + t / 2, "z": None if row["z"] is None else t // 3}


def test_the_same_rows_give_the_same_answers_wherever_they_lie(spark):
    # Ties of several columns, in no order at all: which answer is given is free, but it is always the same.
    rng = np.random.default_rng(7)
    stream = [
        {"t": int(t), "v": int(v), "w": w, "k": k, "j": 0, "o": None}
        for t, v, w, k in zip(
            rng.integers(0, 30, 400),
            rng.integers(0, 4, 400),
            rng.choice(list("abc"), 400),
            rng.choice(list("xy"), 400),
            strict=True,
        )
    ]
    workload = (
        sw.Workload("t", keys=["k"])
        .query("a", sw.sliding(10, every=3), x=sw.first("w"), b=sw.last("v"), c=sw.max_by("w", "v"))
        .query("b", sw.session(1), d=sw.concat("w"), e=sw.collect_list("v"))
        .query("c", sw.sliding(sw.rows(7), every=sw.rows(3)), f=sw.concat("w"), g=sw.last("v"))
        .query("d", sw.punctuated("w = 'a'"), h=sw.collect_list("v"), i=sw.first("w"))
    )
    expected = from_spark(workload, frame_of(spark, stream, partitions=1))
    shuffled = [stream[i] for i in rng.permutation(len(stream))]
    assert_same(from_spark(workload, frame_of(spark, shuffled, partitions=5)), expected)


# Piece by piece


WINDOWS = {
    "sliding": sw.sliding(10, every=3),
    "session": sw.session(2),
    "rows": sw.sliding(sw.rows(100), every=sw.rows(30)),
    "last ten": sw.sliding(sw.rows(10), every=5),
    "last five": sw.sliding(5, every=sw.rows(10)),
    "punctuated": sw.punctuated("v = 3"),
    "frames": sw.frames("v > 2", min_rows=2),
    "cumulative": sw.cumulative(60, every=10),
    "landmark": sw.landmark(every=50, since=10),
}


def row_runner(workload, types, output):
    complete = sw.Workload("t", keys=[row_route.KEY], order=workload.order, queries=workload.queries)
    return row_route.RowRunner(complete, {**types, row_route.KEY: pa.int64()}, output)


@pytest.mark.parametrize("chunk", [7, 10**6, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 100, 1000))])
def test_a_key_with_many_rows_taken_piece_by_piece(monkeypatch, chunk):
    from slicewise.plan.plan import plan_for
    from slicewise.spark.output import Output

    workload = sw.Workload("t", keys=["k"], order=["o"])
    for name, window in WINDOWS.items():
        workload = workload.query(name, window, n=sw.count(), all=sw.collect_list("v"), middle=sw.median("v"))
    n = 400 if chunk < 100 else 2000
    rng = np.random.default_rng(3)
    # Sorted by key and time, as Spark hands them over: a null key first, then a large one between two small ones.
    keys = [None] * (n // 10) + ["a"] * (n // 20) + ["b"] * (n - n // 10 - n // 20 - 5) + ["c"] * 5
    times = np.concatenate(
        [np.sort(rng.integers(-50, 300, len([k for k in keys if k == key]))) for key in (None, *"abc")]
    )
    table = pa.table({"t": times, "k0": pa.array(keys), "v": rng.integers(0, 6, n), "o": np.arange(n)})
    types = {"v": pa.int64(), "o": pa.int64()}
    schema = plan_for(workload, {**types, "k": pa.string()}, time_type=pa.int64()).schema
    output = Output(schema, spans=True)
    inside = {"t": "t", "k0": "k0"} | {c: f"c{i}" for i, c in enumerate(workload.inputs)}
    table = table.select(list(inside)).rename_columns(list(inside.values()))
    monkeypatch.setattr(row_route, "CHUNK", chunk)
    found = pa.Table.from_batches(list(row_runner(workload, types, output)(iter(table.to_batches(max_chunksize=64)))))
    op = workload.operator(types=types)
    op.process_batch(
        {"t": times, "k": pa.array(keys, pa.string()), **{c: table.column(inside[c]) for c in workload.inputs}}
    )
    names = [q.name for q in workload.queries]
    mine = []
    for row in rows_with_maps(found):
        bounds = (row["start"], row["end"]) if row["span_start"] is None else (row["span_start"], row["span_end"])
        mine.append(((row["k0"],), names[row["query"]], *bounds, {f"v{i}": row[f"v{i}"] for i in range(3)}))
    expected = [
        (r.key, r.query, r.start, r.end, dict(zip(("v0", "v1", "v2"), r.values.values(), strict=True)))
        for r in op.close()
    ]
    assert_same(mine, expected)


def test_a_key_with_more_rows_than_are_taken_at_once(spark):
    n = row_route.CHUNK + row_route.CHUNK // 2
    frame = spark.range(n).select(F.col("id").alias("t"), (F.col("id") * 7 % 13).alias("v"), F.lit(1).alias("k"))
    workload = (
        sw.Workload("t", keys=["k"])
        .query("middle", sw.sliding(60_000, every=20_000), middle=sw.median("v"), n=sw.count())
        .query("rows", sw.tumbling(sw.rows(70_000)), m=sw.median("v"))
    )
    got = {(r.query, r.window.start): r for r in workload.run(frame).collect()}
    values = np.arange(n) * 7 % 13
    for (query, start), row in got.items():
        low = max(start, 0)
        size = 60_000 if query == "middle" else 70_000
        held = values[low : start + size]
        assert (row.middle if query == "middle" else row.m) == np.median(held)
        assert query != "middle" or row.n == len(held)
    assert sum(q == "rows" for q, _ in got) == n // 70_000
    assert sum(q == "middle" for q, _ in got) == len(range(-40_000, n, 20_000))


# Composing


@pytest.mark.parametrize("size", [1, 3, 50, 10**9])
def test_slices_are_handed_out_by_whole_keys(size):
    rng = np.random.default_rng(size)
    key = np.sort(rng.integers(0, 40, 200))
    once = np.arange(200)
    slices = Slices(key, once, once, once, once, once, ((once,),))
    chunks = [slices.take(chunk) for chunk in composing._by_keys(slices, size)]
    assert np.array_equal(np.concatenate([c.first for c in chunks]), once), "every slice once, in order"
    seen = [set(c.key.tolist()) for c in chunks]
    assert sum(map(len, seen)) == len(set(key.tolist())), "no key is cut"
    assert all(len(c) <= size or len(keys) == 1 for c, keys in zip(chunks, seen, strict=True))
    if size == 10**9:
        assert len(chunks) == 1


@pytest.mark.parametrize("size", [1, 25, 10**9])
def test_composing_gives_the_same_answers_whatever_the_chunks(spark, monkeypatch, size):
    frame = spark.range(500).select(
        (F.col("id") * 31 % 211 - 50).alias("t"), (F.col("id") % 7).alias("k"), (F.col("id") * 7 % 13).alias("v")
    )
    workload = (
        sw.Workload("t", keys=["k"])
        .query("a", sw.sliding(20, every=3), total=sw.sum("v"), most=sw.max("v"))
        .query("b", sw.session(2), mean=sw.avg("v"), opening=sw.first("v"))
        .query("c", sw.cumulative(60, every=10), total=sw.sum("v"))
    )
    called = []

    def in_this_process(self, function, schema):
        called.append(function)
        batches = self.toArrow().to_batches(max_chunksize=100)
        return spark.createDataFrame(pa.Table.from_batches(list(function(iter(batches)))), schema=schema)

    expected = on_spark(workload, frame)
    monkeypatch.setattr(type(frame), "mapInArrow", in_this_process)
    monkeypatch.setattr(composing, "_chunk_size", lambda plan, slices: size)
    monkeypatch.setattr(arrow_io, "BATCH_ROWS", 17)
    compare(on_spark(workload, frame), expected, ["k"])
    assert called


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        (sw.sum("v"), 0),
        (sw.median("v"), 0),
        (sw.collect_list("v"), 5),
        (sw.histogram("v"), 4),
        (sw.collect_set("s"), 5),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_results_that_are_lists_are_composed_in_smaller_chunks(aggregate, values):
    """A window of 60 slices holds 60 times the values of each: five rows, four different numbers."""
    types = {"v": pa.int64(), "s": pa.string()}
    workload = sw.Workload("t").query("q", sw.sliding(60, every=1), x=aggregate)
    plan = plan_for(workload, types, time_type=pa.int64())
    times = np.arange(1000).repeat(5)
    batch = {"t": times, "v": np.arange(5000) % 5 % 4, "s": [str(i) for i in range(5000)]}
    columns = {name: Column.of(batch[name]) for name in aggregate.columns}
    parts = tuple(
        m.lift_fold([columns[c] for c in m.aggregate.columns], times, np.arange(0, 5000, 5)) for m in plan.monoids
    )
    numbers, five = np.arange(1000), np.full(1000, 5)
    slices = Slices(np.zeros(1000, int), numbers, numbers, five, five, five, parts)
    full = composing.RESULTS // 60
    assert composing._chunk_size(plan, slices) == (full if not values else composing.VALUES // (60 * values))


def test_so_are_sketches_by_their_bytes():
    sketch = sw.approx_most_frequent("v", 3)
    plan = plan_for(
        sw.Workload("t").query("q", sw.sliding(60, every=1), x=sketch), {"v": pa.int64()}, time_type=pa.int64()
    )
    times, once = np.arange(1000), np.ones(1000, np.int64)
    parts = tuple(m.lift_fold([Column.of(times)], times, times) for m in plan.monoids)
    slices = Slices(np.zeros(1000, int), times, times, once, once, once, parts)
    held = sum(map(len, parts[0][0])) // composing.BYTES
    assert held > 100
    assert composing._chunk_size(plan, slices) == composing.VALUES * 1000 // (60 * held)


@pytest.mark.parametrize("chunk", [1, 30, 10**9])
def test_rows_are_sliced_the_same_whatever_the_chunks(monkeypatch, chunk):
    """Rows of a slice, and those of a key, lie in several chunks: what is made of each is merged."""
    monkeypatch.setattr(slice_sources, "CHUNK", chunk)
    drawn = np.random.default_rng(chunk).integers(0, [200, 5, 4], (300, 3)).tolist()
    rows = [{"t": t, "k": k, "v": v} for t, k, v in drawn]
    workload = (
        sw.Workload("t", keys=["k"])
        .query("a", sw.sliding(20, every=3), most=sw.max_count("v"), n=sw.count())
        .query("b", sw.session(2), least=sw.min_count("v"))
    )
    make_plan = partial(plan_for, workload, {"v": pa.int64(), "k": pa.int64()}, time_type=pa.int64())
    table = pa.table({"k0": [r["k"] for r in rows], "t": [r["t"] for r in rows], "c0": [r["v"] for r in rows]})
    slicer = slice_sources.RowSlicer({"v": ("c0", pa.int64())})
    (keys,), slices, _ = slicer.slices(make_plan(), iter(table.to_batches(17)))
    assert sorted(keys.to_pylist()) == [0, 1, 2, 3, 4]
    assert slices.rows.sum() == len(rows)
    edges = Edges(PeriodicWindows(make_plan().windows, ["k"]), make_plan().gaps)
    cells = set(zip(slices.key.tolist(), edges.cells(slices.first).tolist(), strict=True))
    assert len(cells) == len(slices), "no slice twice"
    compose = composing.Composer(make_plan, Output(make_plan().schema, spans=False), slicer)
    found = [row for batch in compose(iter(table.to_batches(17))) for row in batch.to_pylist()]
    names = {"a": ("most", "n"), "b": ("least",)}
    columns = {name: f"v{i}" for i, name in enumerate(make_plan().schema.column_types)}
    shown = [
        ((r["k0"],), query, r["start"], r["end"], {name: r[columns[name]] for name in names[query]})
        for r in found
        for query in [workload.queries[r["query"]].name]
    ]
    assert_same(shown, by_oracle(workload, rows))


# Keys as numbers

KEY_VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.one_of(st.floats(), st.sampled_from([0.0, -0.0, math.nan])),
    pa.float32(): st.one_of(st.floats(width=32), st.sampled_from([0.0, -0.0])),
    pa.string(): st.text(max_size=2),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.binary(): st.binary(max_size=1),
    pa.list_(pa.int8()): st.lists(st.none() | st.integers(0, 1), max_size=2),
    pa.list_(pa.float64()): st.lists(st.none() | st.sampled_from([0.0, -0.0, math.nan]), max_size=2),
    pa.list_(pa.list_(pa.string())): st.lists(st.none() | st.lists(st.sampled_from(["", "x"]), max_size=2), max_size=2),
    pa.list_(pa.struct([("a", pa.float32())])): st.lists(
        st.none() | st.fixed_dictionaries({"a": st.none() | st.sampled_from([0.0, -0.0])}), max_size=2
    ),
    pa.struct([("a", pa.float64()), ("b", pa.string())]): st.fixed_dictionaries(
        {"a": st.none() | st.sampled_from([0.0, -0.0, math.nan]), "b": st.none() | st.sampled_from(["", "x"])}
    ),
}


@given(data=st.data())
def test_each_different_key_has_a_number_and_a_row(data):
    types = data.draw(st.lists(st.sampled_from(list(KEY_VALUES)), max_size=3))
    n = data.draw(st.integers(1, 12))
    columns = []
    for type_ in types:
        known = data.draw(st.lists(KEY_VALUES[type_], min_size=1, max_size=3))
        columns.append(data.draw(st.lists(st.none() | st.sampled_from(known), min_size=n, max_size=n)))
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    numbers, firsts = number_keys(arrays, n)

    def plain(value):
        if isinstance(value, dict):
            return {name: plain(v) for name, v in value.items()}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return value + 0.0 if isinstance(value, float) else value

    said = [repr([plain(c[i]) for c in [a.to_pylist() for a in arrays]]) for i in range(n)]
    assert sorted(set(numbers.tolist())) == list(range(len(set(said)))), "numbers without gaps"
    for i in range(n):
        assert [said[i] == other for other in said] == (numbers == numbers[i]).tolist()
        assert numbers[firsts[numbers[i]]] == numbers[i], "the row of a number has that number"
    for array in arrays:
        for piece in (array, array.slice(n // 2)):
            shown = normal_form(piece)
            assert shown.type == piece.type
            assert repr(shown.to_pylist()) == repr([plain(v) for v in piece.to_pylist()])


def test_lists_of_instants_that_python_does_not_hold_are_keys():
    far = pa.array([[2**62], [2**62], [-(2**62)]], pa.list_(pa.timestamp("us", "UTC")))
    assert number_keys([far], 3)[0].tolist() == [0, 0, 1]


def test_keys_of_no_rows():
    numbers, firsts = number_keys([pa.array([], pa.string()), pa.array([], pa.int64())], 0)
    assert len(numbers) == len(firsts) == 0
