"""Rows of equal time on Spark: batch, stream and definition agree, whatever the values are and however rows lie."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import slicewise as sw
from slicewise.aggregates.ordering import sort_keys
from slicewise.columns import Column
from slicewise.same import is_same
from slicewise.spark.row_order import comparable
from slicewise.testing import Oracle, fold
from tests.slicing.strategies import EveryThird, LastThree, at_most_five
from tests.slicing.test_ties import IN_ORDER
from tests.spark.running import compare, in_process, on_spark
from tests.spark.stream_running import SECOND, Folder, plain

SCHEMA = "ts timestamp, k string, v bigint, w string, x double, tags array<string>, place struct<a:int,b:string>"
TYPES = {
    "k": pa.string(),
    "v": pa.int64(),
    "w": pa.string(),
    "x": pa.float64(),
    "tags": pa.list_(pa.string()),
    "place": pa.struct([("a", pa.int32()), ("b", pa.string())]),
}

#: Windows and aggregates of all routes: sliced and numbered in the JVM, and rows in Python.
WORKLOAD = (
    sw.Workload(time="ts", keys=["k"], watermark="2 seconds")
    .query(
        "sliced", sw.sliding("10 seconds", every="4 seconds"), a=sw.first("w"), b=sw.last("x"), c=sw.max_by("w", "v")
    )
    .query("charts", sw.tumbling("7 seconds"), d=sw.m4("v"), e=sw.first("tags"), f=sw.last("place"))
    .query("lists", sw.session("1 second"), g=sw.collect_list("x"), h=sw.concat("w"), i=sw.first("v"))
    .query("numbered", sw.sliding(sw.rows(20), every=sw.rows(10)), j=sw.sum("v"), k2=sw.first("tags"), l=sw.last("w"))
    .query("counts", sw.sliding(sw.rows(5), every=sw.rows(3)), m=sw.collect_list("place"), n=sw.avg("x"))
    .query("last rows", sw.sliding(sw.rows(4), every="3 seconds"), o=sw.collect_list("w"), p=sw.sum("v"))
    .query("look back", sw.sliding("2 seconds", every=sw.rows(4)), q=sw.collect_list("v"))
    .query("marks", sw.punctuated("v = 3 and x > 0"), r=sw.count(), s=sw.sum("v"), t=sw.last("tags"))
    .query("frames", sw.frames("v > 1", min_rows=2), u=sw.collect_list("w"))
    .query("mine", sw.user_defined(EveryThird), v2=sw.collect_list("v"))
    .query("evicted", sw.user_defined(LastThree, columns=["v"], deterministic=False), w2=sw.collect_list("w"))
    .query("policy", sw.policy(at_most_five, watch={"n": sw.count()}, every=sw.rows(2)), x2=sw.sum("v"))
)
FAR = 600


def random_rows(n: int, seed: int) -> list[dict]:
    """Rows of whole seconds, many to each; no row more than two seconds behind one that came before."""
    rng = random.Random(seed)
    found = [
        {
            "ts": rng.randrange(60) * SECOND,
            "k": rng.choice(["a", "b", None]),
            "v": rng.choice([None, 0, 1, 2, 3]),
            "w": rng.choice([None, "", "a", "é", "z"]),
            "x": rng.choice([None, -1.5, 0.0, 2.5, float("nan"), float("inf")]),
            "tags": rng.choice([None, [], ["a"], ["a", None], ["b"]]),
            "place": rng.choice([None, {"a": None, "b": "x"}, {"a": 1, "b": None}, {"a": 1, "b": "x"}]),
        }
        for _ in range(n)
    ]
    return sorted(found, key=lambda row: row["ts"] + rng.random() * 2 * SECOND)


def table_of(rows: list[dict]) -> pa.Table:
    schema = pa.schema([("ts", pa.int64()), *TYPES.items()])
    table = pa.Table.from_pylist(rows, schema)
    return table.set_column(0, "ts", table.column("ts").cast(pa.timestamp("us", "UTC")))


def far(rows: list[dict]) -> list[dict]:
    """A row of every key far behind, so that all other windows come to their end."""
    keys = {row["k"]: row for row in rows}
    return [{**row, "ts": FAR * SECOND} for row in keys.values()]


def results(tables: list[pa.Table]) -> dict:
    """What is finally true, by key, query and bounds."""
    true: dict = {}
    for row in (row for table in tables for row in plain(table)):
        bounds = (row["start"], row["end"]) if row["span"] is None else tuple(row["span"].values())
        window = (row["k"], row["query"], *bounds)
        if row["change"] == "retract":
            true.pop(window)
        else:
            true[window] = {name: row[name] for name in WORKLOAD.named(row["query"]).aggregates}
    return true


def by_definition(rows: list[dict]) -> dict:
    oracle = Oracle(WORKLOAD, ties="values")
    for row in rows:
        oracle.process(row["ts"], row, (row["k"],))
    found = fold(oracle.advance((FAR - 2) * SECOND))
    by_position = {"numbered", "counts", "look back", "policy"}
    return {
        (*key, query, *(b if query in by_position or b is None else b / SECOND for b in bounds)): values
        for (key, query, *bounds), values in found.items()
    }


def assert_alike(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for window, values in expected.items():
        for name, value in values.items():
            got = found[window][name]
            if name == "d":  # M4 has event times, which come back as timestamps
                got, value = ({n: m4[n] for n in ("first", "last", "min", "max")} if m4 else m4 for m4 in (got, value))
            assert is_same(got, value), f"{name} of {window}: {got!r}, not {value!r}"


@pytest.mark.streams
def test_a_stream_over_whole_seconds_gives_what_a_batch_gives_wherever_it_is_cut(spark, tmp_path):
    rows = random_rows(700, seed=5)
    every = rows + far(rows)
    expected = by_definition(every)
    assert len(expected) > 1000

    frame = spark.createDataFrame(table_of(every), SCHEMA).repartition(5)
    batch = results([on_spark(WORKLOAD, frame)])
    assert_alike({window: values for window, values in batch.items() if window in expected}, expected)

    folder = Folder(tmp_path)
    tables = []
    for start, cuts in ((0, (90, 91, 230)), (230, (400, 401, 402, 700))):  # stopped and started again in between
        for cut in cuts:
            folder.add(table_of(rows[start:cut]))
            start = cut
        tables += run(spark, folder)
    folder.add(table_of(far(rows)))
    tables += run(spark, folder)
    assert_alike(results(tables), expected)


def run(spark, folder):
    found = folder.run(spark, WORKLOAD, SCHEMA).tables
    return [found[number] for number in sorted(found)]


# -- what compares, and how

MORE = {
    "array<struct<a:int,m:map<string,int>>>": (
        pa.list_(pa.struct([("a", pa.int32()), ("m", pa.map_(pa.string(), pa.int32()))])),
        [
            None,
            [],
            [None],
            [{"a": None, "m": None}],
            [{"a": 1, "m": None}],
            [{"a": 1, "m": []}],
            [{"a": 1, "m": [("k", 1)]}],
        ],
    ),
    "map<double,array<string>>": (
        pa.map_(pa.float64(), pa.list_(pa.string())),
        [None, [], [(1.0, None)], [(1.0, [])], [(2.0, ["a"]), (1.0, ["b"])], [(2.0, ["a"])], [(float("nan"), None)]],
    ),
}


@pytest.mark.parametrize(("type_", "values"), [*IN_ORDER.values(), *MORE.values()], ids=[*IN_ORDER, *MORE])
def test_the_jvm_puts_values_in_the_order_in_which_the_engine_does(spark, type_, values):
    shuffled = values * 2
    random.Random(3).shuffle(shuffled)
    array = pa.array(shuffled, type_)
    column = Column.of(array)
    places = np.lexsort((np.arange(len(array)), *sort_keys(column)))
    frame = spark.createDataFrame(pa.table({"place": np.arange(len(array)), "c": array}))
    ordered = frame.orderBy(comparable(F.col("c"), type_), "place")
    assert [row.place for row in ordered.collect()] == places.tolist()


def test_texts_are_compared_byte_by_byte_whatever_their_collation(spark):
    frame = spark.createDataFrame([("b", "x"), ("B", "y"), ("a", "z"), ("A", "w")], "c string, d string")
    frame = frame.select(F.collate("c", "UTF8_LCASE").alias("c"), F.array(F.collate("d", "UTF8_LCASE")).alias("d"))
    ordered = frame.orderBy(comparable(F.col("c"), pa.string()))
    assert [row.c for row in ordered.collect()] == ["A", "B", "a", "b"]
    ordered = frame.orderBy(comparable(F.col("d"), pa.list_(pa.string())))
    assert [row.d for row in ordered.collect()] == [["w"], ["x"], ["y"], ["z"]]


def test_picks_of_values_of_every_type_are_those_of_the_operator(spark):
    """All rows at one time: the values alone decide."""
    rng = np.random.default_rng(4)
    n = 60
    picked = {f"c{i}": (type_, values) for i, (type_, values) in enumerate([*IN_ORDER.values(), *MORE.values()])}
    columns = {
        name: pa.array([values[i] for i in rng.integers(0, len(values), n)], type_)
        for name, (type_, values) in picked.items()
    }
    times = pa.array(np.zeros(n, np.int64)).cast(pa.timestamp("us", "UTC"))
    by = pa.array(rng.integers(0, 2, n))
    keys = pa.array(rng.integers(0, 9, n))
    frame = spark.createDataFrame(pa.table({"ts": times, "k": keys, "by": by, **columns})).repartition(3)
    workload = sw.Workload(time="ts", keys=["k"])
    for name in picked:
        picks = {f"first_{name}": sw.first(name), f"last_{name}": sw.last(name), f"top_{name}": sw.max_by(name, "by")}
        workload = workload.query(name, sw.tumbling("1 second"), **picks)
    compare(on_spark(workload, frame), in_process(workload, frame), ["k"])
