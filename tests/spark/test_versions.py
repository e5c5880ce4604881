"""What Spark's versions do differently, without a JVM: each way gives the same. ``make matrix`` runs the versions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.installation import old_pyspark
from slicewise.spark import versions
from slicewise.spark.session import setting
from slicewise.spark.streaming.heartbeat import NOW, SOURCE, HeartbeatReader
from slicewise.spark.streaming.packs import _ARROW
from slicewise.spark.streaming.pandas_state import REPORT, PandasShardProcessor, _unpacked
from slicewise.spark.streaming.processor import ShardProcessor
from slicewise.spark.streaming.shard_reports import SHARD_METRICS
from slicewise.spark.versions import spark_version
from tests.spark.stream_fake import BEAT, FakeHandle, FakeStream

FAR = 2**55 + 1  # a double would not hold it


@pytest.mark.parametrize(
    ("version", "numbers"),
    [
        ("4.0.5", (4, 0)),
        ("4.3.0-SNAPSHOT", (4, 3)),
        ("4.0.2-amzn-0", (4, 0)),
        ("17.3.x-scala2.13", (17, 3)),
        ("", (0, 0)),
    ],
)
def test_the_version_of_a_session(version, numbers):
    assert spark_version(SimpleNamespace(version=version)) == numbers


class LockedDown:
    """A session of a platform that lets nothing be read."""

    @property
    def version(self):
        raise RuntimeError("[NOT_ALLOWED] version")

    @property
    def conf(self):
        raise RuntimeError("[CONFIG_NOT_AVAILABLE] spark.sql.shuffle.partitions")


def test_what_a_platform_refuses_to_read_is_taken_for_spark_s_default():
    assert spark_version(LockedDown()) == (0, 0)
    assert setting(LockedDown(), "spark.sql.shuffle.partitions", "200") == "200"
    none = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: None))
    assert setting(none, "spark.sql.caseSensitive", "false") == "false"


@pytest.mark.parametrize("version", ["3.5.9", "3.4"])
def test_spark_3_is_refused_with_what_to_use(version):
    assert str(old_pyspark(version)) == (
        f"slicewise runs on Spark 4.0 and newer, and this is pyspark {version}, whose streams cannot hold its state; "
        "pip install 'pyspark>=4.0', or choose a runtime of your service with Spark 4 (Databricks 17.3 LTS, Fabric "
        "2.0, EMR Spark 8); workload.operator() needs no Spark"
    )


@pytest.mark.parametrize("version", ["4.0.0", "4.3.1", "17.3.4"])
def test_spark_4_and_clients_with_numbers_of_their_own_are_not(version):
    assert old_pyspark(version) is None


def test_before_4_2_the_heartbeat_is_not_told_where_it_stands():
    reader = HeartbeatReader(250)
    start = reader.initialOffset()
    assert reader.latestOffset()[SOURCE] >= start[SOURCE]
    assert reader.latestOffset({SOURCE: 2**60}, None) == {SOURCE: 2**60}


def test_a_lookup_by_way_of_pandas_gets_whole_numbers_and_no_nulls(monkeypatch):
    """Spark 4.0: what is called on the worker, and that nulls are kept away from it."""
    made = []
    monkeypatch.delattr(versions.pandas_functions, "arrow_udf", raising=False)  # Spark 4.0 has none
    monkeypatch.setattr(
        versions.pandas_functions, "pandas_udf", lambda f, type_: made.append(f) or (lambda column: column)
    )
    versions.arrow_function(lambda times: pa.array(times.to_numpy() - 1), "long")
    (on_series,) = made
    assert on_series(pd.Series([FAR, 5])).tolist() == [FAR - 1, 4]
    assert on_series.__annotations__ == {"values": pd.Series, "return": pd.Series}


# -- stateful code on tables of pandas

WORKLOAD = (
    sw.Workload(time="t", keys=["k"], watermark=5, lateness=40)
    .query("tens", sw.sliding(20, every=10), total=sw.sum("v"), most=sw.max("v"))
    .query("visits", sw.session(7), n=sw.count(), all=sw.collect_list("v"))
)


def tables(packs):
    """Packs as Spark 4.0 hands them over: the latest time as text, integers next to a null as doubles."""
    schema = _ARROW.set(_ARROW.get_field_index("latest"), pa.field("latest", pa.string()))
    for pack in packs:
        row = pack.asDict() | {"latest": None if pack.latest is None else str(pack.latest)}
        now = {NOW: row.pop(NOW)} if NOW in row else {}
        frame = pa.Table.from_pylist([row], schema).to_pandas()
        yield frame.assign(**now)


def reported(processor, packs):
    """Metrics and results of a shard: from rows, or from tables."""
    nothing = SimpleNamespace()
    if not isinstance(processor, PandasShardProcessor):
        metrics, batches = processor.report((0,), packs)
        return metrics, pa.Table.from_batches(batches, processor.job.output.arrow_schema())
    frames = list(processor.handleInputRows((0,), tables(packs), nothing))
    assert all(frame.columns.tolist() == REPORT.names for frame in frames)
    first = frames[0].iloc[0]
    metrics = {name: None if first[name] is None else int(first[name]) for name in SHARD_METRICS.names}
    column = pa.array([frame.iloc[0]["results"] for frame in frames], pa.binary())
    batches = list(_unpacked(iter([pa.RecordBatch.from_arrays([column], ["results"])])))
    return metrics, pa.Table.from_batches(batches, processor.job.output.arrow_schema())


@pytest.mark.parametrize("shift", [0, FAR])
def test_tables_of_pandas_report_what_rows_report(shift):
    stream = FakeStream(WORKLOAD, shards=1, idle=None)
    rng = np.random.default_rng(3)
    handles = {kind: FakeHandle() for kind in (ShardProcessor, PandasShardProcessor)}
    seen = 0
    for number in range(5):
        rows = [
            {"t": shift + 9 * number + int(n), "k": "ab"[int(n) % 2], "v": int(n) % 5}
            for n in rng.integers(-20, 20, 12)
        ]
        # The second partition has nothing that a window could hold, and so no latest time.
        packs = stream.packs([rows, [{"t": None, "k": "a", "v": 1}]])[0]
        assert [pack.latest is None for pack in packs] == [False, True]
        both = []
        for kind, handle in handles.items():
            processor = kind(stream.job)
            processor.init(handle)
            both.append(reported(processor, packs))
        assert both[0] == both[1]
        seen += both[0][1].num_rows
    assert seen > 10


def test_a_heartbeat_comes_as_a_table_too():
    stream = FakeStream(
        sw.Workload(time="t", keys=["k"], unit="seconds", watermark="5 seconds").query(
            "tens", sw.tumbling("10 seconds"), n=sw.count()
        ),
        shards=1,
        idle="30 seconds",
    )
    processor = PandasShardProcessor(stream.job)
    processor.init(FakeHandle())
    (pack,) = stream.packs([[{"t": 3, "k": "a"}]])[0]
    at = {NOW: 1_000_000}
    assert reported(processor, [type(pack)(**pack.asDict(), **at)])[1].num_rows == 0
    later = type(pack)(**BEAT.asDict() | {"shard": 0, NOW: 1_060_000})
    metrics, results = reported(processor, [later])
    assert (metrics["rows"], results.column("v0").to_pylist()) == (0, [1])
