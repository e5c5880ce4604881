"""Every aggregate of the registry gives the same in process, in batch and on a stream, over three kinds of windows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.aggregates.filtered import unfiltered
from slicewise.errors import AggregateError
from slicewise.plan.routes import IN_THE_JVM, ROWS, SLICES, route_of
from tests.aggregates.over import make
from tests.spark import data
from tests.spark.running import place, rows_of, same

#: Each aggregate runs over the first two of these that it takes; where it takes two columns, the second is ``f``.
COLUMNS = ("x", "i", "s", "z")
WINDOWS = {
    "tumbling": sw.tumbling("10 seconds"),
    "sliding": sw.sliding("12 seconds", every="5 seconds"),
    "session": sw.session("2 seconds"),
}
#: Their bytes depend on how rows were cut; ``test_sketches`` looks at what they estimate. The estimates of others are
#: exact for as few values as there are in a window here.
OF_CHANCE = {"hll_sketch_agg", "kll_sketch_agg_double"}
FAR = 10_000 * data.SECOND


def aggregates_of(types):
    found = {}
    for name in sw.AGGREGATES.keys() - OF_CHANCE:
        fitting = {f"{name}_{c}": a for c in COLUMNS if (a := made(name, c)) is not None and fits(a, types)}
        assert fitting, name
        found |= dict(list(fitting.items())[:2])
    truth = sw.expr("x > 3 or s = 'a'")
    return found | {
        "some_rows": sw.sum("i").where("s <> 'a'"),
        "of_some": sw.median("x").where("z"),
        "computed": sw.bool_or(truth),
        "by_text": sw.max("i").by("s"),
        "best": sw.max_by("s", "f", 2),
    }


def made(name, column):
    if name == "ewma":  # event times are no integers here
        return sw.ewma(column, half_life="7 seconds")
    return sw.count(column) if name == "count" else make(name, columns=[column, "f"])


def fits(aggregate, types):
    try:
        aggregate.bind(*(types[c] for c in aggregate.columns))
    except AggregateError:
        return False
    return True


def workload_of(types):
    """What the JVM slices and what it does not, in queries of their own, so that both routes are taken."""
    workload = sw.Workload("ts", keys=["k"], order=["u"], watermark="1000 seconds")
    aggregates = aggregates_of(types)
    sliced = {n: a for n, a in aggregates.items() if type(unfiltered(a)) in IN_THE_JVM and n != "best"}
    for name, window in WINDOWS.items():
        workload = workload.query(f"{name}, sliced", window, **sliced)
        workload = workload.query(f"{name}, rows", window, **{n: a for n, a in aggregates.items() if n not in sliced})
    return workload


def in_process(workload, table):
    op = workload.operator()
    op.process_batch(table)
    return op.close().to_arrow()


def by_place(table):
    return {place(row, ["k"]): row for row in rows_of(table) if row["window"]["start"] < FAR // 2}


def plain(value):
    """Times inside of results as microseconds, whichever zone they are shown in."""
    if isinstance(value, dt.datetime):
        return round(value.replace(tzinfo=value.tzinfo or dt.UTC).timestamp() * data.SECOND)
    if isinstance(value, dict):
        return {name: plain(v) for name, v in value.items()}
    return list(map(plain, value)) if isinstance(value, (list, tuple)) else value


def assert_same(found, expected, what):
    found, expected = by_place(found), by_place(expected)
    assert found.keys() == expected.keys(), what
    wrong = [
        (name, at, found[at][name], value)
        for at, row in expected.items()
        for name, value in row.items()
        if name not in ("change", "revision") and not same(plain(found[at][name]), plain(value))
    ]
    assert not wrong, f"{what}: {len(wrong)} values differ, in {sorted({w[0] for w in wrong})}: {wrong[:3]}"


@pytest.fixture(scope="module")
def table():
    return data.random_rows(240, seed=11, seconds=120)


def test_every_aggregate_in_process_in_batch_and_on_a_stream(spark, table):
    workload = workload_of(dict(zip(table.column_names, table.schema.types, strict=True)))
    assert [route_of(query).choice for query in workload.queries] == [SLICES, ROWS] * len(WINDOWS)
    expected = in_process(workload, table)
    assert len(by_place(expected)) > 200
    assert_same(workload.run(data.frame_of(spark, table)).toArrow(), expected, "batch")
    # The last row, far ahead, lets the watermark pass all others.
    late = table.slice(0, 1).set_column(0, "ts", pa.array([FAR]).cast(table.schema.field("ts").type))
    parts = [table.take(np.arange(i, table.num_rows, 2)) for i in range(2)]
    batches = [spark.createDataFrame(part, schema=data.SCHEMA) for part in (*parts, late)]
    assert_same(sw.testing.stream(batches, workload, partitions=2).toArrow(), expected, "stream")
