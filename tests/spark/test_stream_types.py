"""Types that change between two starts of a stream: what keeps every value goes on, all else is refused untouched."""

from __future__ import annotations

import datetime
import random
import re
from decimal import Decimal
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F
from pyspark.sql import types as T

import slicewise as sw
from slicewise.columns import type_name
from slicewise.errors import StateError
from slicewise.slicing.state.widening import is_widening
from slicewise.spark.streaming.shard_ids import shard_number
from tests.matrices import few_quick
from tests.profiles import fewer
from tests.slicing.running import assert_same
from tests.spark.stream_fake import FakeStream, Workers
from tests.spark.stream_running import Folder, Run

D = pa.decimal128
#: There are two keys; more shards would only keep what no key changes.
TwoShards = partial(FakeStream, shards=2)
#: Every aggregate whose partials could be tied to the type of a column, in slices, stored rows and counted rows.
AGGREGATES = {
    "sum": sw.sum("v"),
    "avg": sw.avg("v"),
    "min": sw.min("v"),
    "max": sw.max("v"),
    "first": sw.first("v"),
    "max_by": sw.max_by("v", "w"),
    "by_v": sw.min_by("w", "v"),
    "range": sw.range_("v"),
    "stddev": sw.stddev("v"),
    "median": sw.median("v"),
    "m4": sw.m4("v"),
    "argmax": sw.max_count("v"),
    "set": sw.collect_set("v"),
}
BASE = sw.Workload("t", keys=["k"], watermark=3, lateness=15)
SLICED = BASE.query("q", sw.sliding(20, every=5), **AGGREGATES)
STORED = SLICED.query("all", sw.tumbling(10), all=sw.collect_list("v"), last=sw.last("v"))
COUNTED = STORED.query("n", sw.sliding(sw.rows(5), every=sw.rows(2)), **{f"n_{n}": a for n, a in AGGREGATES.items()})
WORKLOADS = {"slices": SLICED, "stored rows": STORED, "counted rows": COUNTED}


def value(type_, number):
    """A value of a type; small ones are the same number in every type of a family."""
    if pa.types.is_decimal(type_):
        return Decimal(number)
    if pa.types.is_string(type_):
        return str(number)
    if pa.types.is_timestamp(type_):
        return datetime.datetime(2024, 1, 1 + number, tzinfo=datetime.UTC)
    if pa.types.is_date(type_):
        return datetime.date(2024, 1, 1 + number)
    if pa.types.is_boolean(type_):
        return number % 2 == 0
    return number / 4 if pa.types.is_floating(type_) else number


def rows(low, high, type_, key_type=None, extra=0):
    key_type = key_type or pa.string()
    found = [{"t": t, "k": value(key_type, t % 2), "v": value(type_, t * 7 % 5), "w": t % 3} for t in range(low, high)]
    if extra:
        found[-1]["v"] = extra
    return found


def types(v, k=None):
    return {"k": k or pa.string(), "v": v, "w": pa.int64()}


def fed(stream, batches, type_, key=None, width=11):
    return [stream.batch([rows(n * width, (n + 1) * width, type_, key)]) for n in batches]


GROWING = [
    (pa.int32(), pa.int64(), 12 * 2**32),
    pytest.param(pa.int8(), pa.int16(), 1000, marks=pytest.mark.slow),
    pytest.param(pa.float32(), pa.float64(), 0.1, marks=pytest.mark.slow),
    pytest.param(D(10, 2), D(12, 2), Decimal("1234567890.25"), marks=pytest.mark.slow),
    pytest.param(D(10, 2), D(12, 4), Decimal("12345.1234"), marks=pytest.mark.slow),
    pytest.param(D(10, 0), D(38, 10), Decimal("1.0000000001"), marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize(("old", "new", "extra"), GROWING, ids=lambda x: str(x) if isinstance(x, pa.DataType) else "")
def test_a_column_that_holds_more_goes_on_as_if_it_always_had(workload, old, new, extra):
    stream = TwoShards(workload, types=types(old))
    whole = TwoShards(workload, types=types(new))
    found, expected = fed(stream, range(3), old), fed(whole, range(3), new)
    # A late row corrects windows that were reported with the old type; another one holds what only the new type can.
    late = [{"t": 22, "k": value(pa.string(), 1), "v": value(new, 2), "w": 9}]
    last = [{**row, "v": extra} if i == 5 else row for i, row in enumerate(rows(33, 44, new))]
    stream = stream.again(types=types(new))
    for batch in (late, last, rows(44, 55, new), rows(55, 66, new), rows(66, 77, new)):
        found.append(stream.batch([batch]))
        expected.append(whole.batch([batch]))
    assert {r.change for results in found[3:] for r in results} >= {"insert", "update"}
    assert_same_values(found[:3], expected[:3])
    assert_same(found[3:], expected[3:])


@pytest.mark.slow
@pytest.mark.parametrize(("old", "new", "extra"), GROWING, ids=lambda x: str(x) if isinstance(x, pa.DataType) else "")
def test_a_key_that_holds_more_stays_the_same_key(old, new, extra):
    last = [[{"t": 55, "k": extra, "v": 1, "w": 1}], rows(56, 80, pa.int64(), new)]
    stream = TwoShards(COUNTED, types=types(pa.int64(), old))
    found = fed(stream, range(3), pa.int64(), old)
    stream = stream.again(types=types(pa.int64(), new))
    found += [*fed(stream, range(3, 5), pa.int64(), new), stream.batch(last)]
    whole = TwoShards(COUNTED, types=types(pa.int64(), new))
    assert_same(found, [*fed(whole, range(5), pa.int64(), new), whole.batch(last)])
    assert sum(head["counts"]["keys"] for head in stream.heads()) == 3


REFUSED = [
    (pa.int64(), pa.float64()),
    (pa.int32(), pa.float64()),
    (pa.int64(), pa.int32()),
    (pa.float64(), pa.float32()),
    (pa.int32(), pa.string()),
    (pa.string(), pa.int64()),
    (D(10, 2), D(10, 4)),
    (D(10, 2), D(12, 1)),
    (D(10, 2), pa.float64()),
    (pa.date32(), pa.timestamp("us", "UTC")),
    (pa.timestamp("us", "UTC"), pa.timestamp("us")),
    (pa.bool_(), pa.int32()),
]


def few_aggregates(type_):
    """What every type has; decimals have all there is, which is where a scale could get lost."""
    return (
        COUNTED if pa.types.is_decimal(type_) else BASE.query("q", sw.sliding(20, every=5), m=sw.max("v"), n=sw.count())
    )


def typed_column(column, type_):
    """The types of all columns, where this one has that type; and how they are fed to a stream."""
    if column == "k":
        return types(pa.int64(), type_), lambda stream, batches: fed(stream, batches, pa.int64(), type_)
    return types(type_), lambda stream, batches: fed(stream, batches, type_)


@cache
def never_stopped(column, type_):
    """What comes out where the type stays as it is."""
    columns, feed = typed_column(column, type_)
    return feed(TwoShards(few_aggregates(type_), types=columns), range(6))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "column", "workers"),
    few_quick(
        [(*types, column, workers) for types in REFUSED for column in ("k", "v") for workers in (0, 1)],
        axes=lambda cell: (pa.types.is_decimal(cell[0]), *cell[2:]),
    ),
    ids=str,
)
def test_a_column_that_could_lose_something_is_refused_and_the_old_one_goes_on(old, new, column, workers):
    (before, feed), (after, feed_new) = typed_column(column, old), typed_column(column, new)
    stream = TwoShards(few_aggregates(old), types=before, workers=Workers(workers))
    found = feed(stream, range(3))
    state = {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}
    message = (
        f"the state was written with column {column!r} as {type_name(old)}, and now it is {type_name(new)}; only a "
        "longer integer, double for float, or a decimal with more digits can go on from it: cast the column to "
        f"{type_name(old)}, or start anew without the old state"
    )
    with pytest.raises(StateError, match=f"^{re.escape(message)}$"):
        feed_new(stream.again(types=after), range(3, 4))
    assert {shard: handle.map.data for shard, handle in stream.handles.items()} == state
    found += feed(stream.again(types=before), range(3, 6))
    assert_same(found, never_stopped(column, old))


def test_a_decimal_by_which_windows_are_measured_keeps_its_scale():
    workload = BASE.query("km", sw.tumbling(sw.units(1, "v")), n=sw.count())
    stream = FakeStream(workload, types=types(D(10, 2)))
    stream.batch([[{"t": t, "k": "a", "v": Decimal(t) / 4, "w": 0} for t in range(20)]])
    more = [{"t": t, "k": "a", "v": Decimal(t) / 4, "w": 0} for t in range(20, 40)]
    with pytest.raises(
        StateError, match=r"column 'v' as decimal\(10,2\), and now it is decimal\(12,4\); only a longer"
    ):
        stream.again(types=types(D(12, 4))).batch([more])
    assert stream.again(types=types(D(12, 2))).batch([more])


FAMILIES = [
    [pa.int8(), pa.int16(), pa.int32(), pa.int64()],
    [pa.float32(), pa.float64()],
    [D(9, 2), D(12, 2), D(15, 5), D(38, 5), D(38, 9)],
]


@pytest.mark.slow
@fewer(3)
@given(st.data())
def test_types_that_change_at_random_restarts_are_refused_or_make_no_difference(data):
    """Of one family or of several, at every restart another one; a refused one leaves everything as it was."""
    workload = data.draw(st.sampled_from(list(WORKLOADS.values())))
    family = data.draw(st.sampled_from(FAMILIES))
    now, widest, random_rows = data.draw(st.sampled_from(family)), family[-1], random.Random(5)
    stream = TwoShards(workload, types=types(now), workers=Workers(data.draw(st.integers(0, 2))))
    whole = TwoShards(workload, types=types(widest))
    found, expected = [], []
    for n in range(5):
        wanted = data.draw(st.sampled_from([t for f in FAMILIES for t in f] + family * 3))
        again = stream.again(types=types(wanted))
        batch = [
            rows(n * 9, n * 9 + 9, now),
            [{**r, "t": max(r["t"] - random_rows.randrange(20), 0)} for r in rows(n * 9, n * 9 + 3, now)],
        ]
        if n and not is_widening(now, wanted):
            with pytest.raises(StateError, match="the state was written with column 'v' as"):
                again.batch([rows(n * 9, n * 9 + 1, wanted)])
        elif n:
            stream, now = again, wanted
        found.append(stream.batch(batch))
        expected.append(whole.batch(batch))
    assert_same_values(found, expected)


def assert_same_values(found, expected):
    """The same results, but for what types of fewer digits round."""
    for number, (some, others) in enumerate(zip(found, expected, strict=True)):
        some, others = (sorted(each, key=lambda r: r[:6]) for each in (some, others))
        assert [r[:6] for r in some] == [r[:6] for r in others], f"epoch {number}"
        for one, other in zip(some, others, strict=True):
            exact = {name for name in one.values if not name.endswith("avg")}
            assert {n: one.values[n] for n in exact} == {n: other.values[n] for n in exact}
            assert all(abs(one.values[n] - other.values[n]) < 1e-3 for n in one.values.keys() - exact)


# On Spark


@pytest.mark.streams
def test_a_key_is_hashed_alike_in_every_type_of_its_family(spark):
    frame = spark.sql("""
        select cast(i as tinyint) b, cast(i as smallint) s, cast(i as int) i, cast(i as bigint) l,
               cast(i / 4 as float) f, cast(i / 4 as double) d,
               cast(i / 4 as decimal(9, 2)) d2, cast(i / 4 as decimal(20, 2)) d20, cast(i / 4 as decimal(38, 20)) d38,
               cast(i as decimal(5, 0)) n0, cast(i as decimal(38, 18)) n18,
               array(cast(i as int)) ai, array(cast(i as bigint)) al,
               struct(cast(i / 4 as decimal(9, 2)) x, array(cast(i as float)) y) s2,
               struct(cast(i / 4 as decimal(30, 9)) x, array(cast(i as double)) y) s9
        from (select explode(sequence(-100, 100)) i union all select null)
    """)
    alike = [["b", "s", "i", "l"], ["f", "d"], ["d2", "d20", "d38"], ["n0", "n18"], ["ai", "al"], ["s2", "s9"]]
    types_of = {field.name: field.dataType for field in frame.schema}
    shards = {name: shard_number([(frame[name], type_)], 1000) for name, type_ in types_of.items()}
    table = frame.select([shards[name].alias(name) for name in types_of]).toArrow()
    for names in alike:
        first = table.column(names[0]).to_numpy()
        assert len(set(first.tolist())) > 100
        for name in names[1:]:
            np.testing.assert_array_equal(table.column(name).to_numpy(), first, err_msg=name)


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path)


def typed(rows, key, v):
    seconds = pa.array([1_000_000 * t for t, _, _ in rows]).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {"ts": seconds, "k": pa.array([k for _, k, _ in rows], key), "v": pa.array([x for _, _, x in rows], v)}
    )


@pytest.mark.streams
def test_a_stream_goes_on_with_longer_types_and_refuses_others_before_anything_is_written(spark, folder):
    workload = sw.Workload("ts", keys=["k"], watermark="1 second", lateness="1 minute")
    workload = workload.query("tens", sw.tumbling("10 seconds"), s=sw.sum("v"), m=sw.max("v"))
    workload = workload.query("twos", sw.tumbling(sw.rows(2)), s=sw.sum("v"))
    folder.add(typed([(t, t % 3, Decimal("1.25")) for t in range(12)], pa.int32(), D(10, 2)))
    folder.run(spark, workload, "ts timestamp, k int, v decimal(10,2)")
    folder.add(typed([(t, t % 3, Decimal("2.5")) for t in range(12, 40)], pa.int32(), D(10, 2)))
    message = "the state was written with column 'v' as decimal(10,2), and now it is double; only a longer integer"
    doubles = folder.rows(spark, "ts timestamp, k int, v decimal(10,2)").withColumn("v", F.col("v").cast("double"))
    with pytest.raises(StreamingQueryException, match=re.escape(message)):
        Run(workload.run(doubles), folder.checkpoint).query.awaitTermination()
    wider = folder.run(spark, workload, "ts timestamp, k bigint, v decimal(12,4)")
    tens = {(r["k"], r["start"]): (r["s"], r["m"]) for r in wider.rows() if r["query"] == "tens"}
    # 10 and 11 came before, with 1.25; 12 to 19 after, with 2.5.
    assert [tens[k, 10] for k in range(3)] == [
        (Decimal("7.5"), Decimal("2.5")),
        (Decimal("8.75"), Decimal("2.5")),
        (Decimal("6.25"), Decimal("2.5")),
    ]
    assert sw.inspect(folder.checkpoint, spark).keys == 3
    spans = [(r["k"], r["span"]["start"]) for r in wider.rows() if r["query"] == "twos"]
    assert len(spans) == len(set(spans)), "a key that lives twice counts twice"
    schema = workload.run(folder.rows(spark, "ts timestamp, k bigint, v decimal(12,4)")).schema
    assert (schema["k"].dataType, schema["m"].dataType) == (T.LongType(), T.DecimalType(12, 4))
