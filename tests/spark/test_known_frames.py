"""DataFrames whose columns are given: a workload is put on them without a question to Spark, as in pipelines.

There is no server behind the session, so that whatever asks for an answer fails.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

import slicewise as sw
from slicewise.spark.session import ROCKSDB

SCHEMA = StructType(
    [StructField("ts", TimestampType()), StructField("k", StringType()), StructField("v", LongType())]
    + [StructField("note", StringType())]
)
SETTINGS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.caseSensitive": "false",
}
W = sw.Workload(time="ts", keys=["k"], watermark="5 seconds", lateness="1 minute")
#: Every route: one tumbling window in the JVM, slices, rows, counts and measures, context.
WORKLOADS = {
    "tumbling": W.query("q", sw.tumbling("1 minute"), n=sw.count(), total=sw.sum("v")),
    "sliding": W.query("q", sw.sliding("1 hour", every="1 minute"), peak=sw.max("v"), mean=sw.avg("v")),
    "spread": W.query("q", sw.sliding("1 hour", every="7 minutes"), s=sw.stddev("v"), first=sw.first("v")),
    "session": W.query("q", sw.session("30 seconds"), all=sw.collect_list("v")),
    "rows": W.query("q", sw.sliding(sw.rows(10), every=sw.rows(2)), total=sw.sum("v")),
    "computed": W.query("q", sw.tumbling("1 minute"), total=sw.sum(sw.expr("v * 2"))),
    "meant": sw.Workload(time="ts", where="v > 3").query("q", sw.sliding("1 hour", every="7 minutes"), s=sw.sum("v")),
    "frames": W.query("q", sw.frames("v > 3", min_rows=2), n=sw.count()),
}


@pytest.fixture
def session(monkeypatch):
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    from pyspark.sql.connect.session import SparkSession

    silent = SparkSession("sc://127.0.0.1:1")
    silent.release_session_on_close = False

    def asked(*_, **__):
        raise AssertionError("Spark was asked")

    for name in ("_analyze", "get_configs", "execute_command", "to_table"):
        monkeypatch.setattr(silent._client, name, asked, raising=False)
    monkeypatch.setattr(
        SparkSession, "conf", SimpleNamespace(get=lambda name, default=None: SETTINGS.get(name, default))
    )
    return silent


def planned(frame):
    """The plan as it goes to the server, with all Python functions in it."""
    return str(frame._plan.plan(frame.sparkSession._client))


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("options", [{}, {"late": "collect"}, {"bad": "fail"}], ids=str)
@pytest.mark.parametrize("stream", [False, True], ids=["batch", "stream"])
def test_workload_is_planned_without_a_question(session, name, options, stream):
    rows = (session.readStream if stream else session.read).table("clicks")
    results = WORKLOADS[name].run(sw.spark.known(rows, SCHEMA, stream=stream), **options)
    assert "clicks" in planned(results)


@pytest.mark.parametrize("name", WORKLOADS)
def test_pipeline_sees_what_a_view_of_windows_reads(session, name):
    """Nothing in the plan has a server look tables up before the pipeline has put its flows in order."""
    rows = sw.spark.known(session.read.table("clicks"), SCHEMA, stream=False)
    plan = planned(WORKLOADS[name].run(rows, late="collect"))
    assert not {"with_columns {", "group_map {", "deduplicate {", "to_schema {"} & {
        line.strip() for line in plan.splitlines()
    }
    assert "with_columns {" in planned(session.read.table("clicks").withColumn("one", F.lit(1)))


def test_session_that_is_asked_fails(session):
    with pytest.raises(AssertionError, match="Spark was asked"):
        WORKLOADS["tumbling"].run(session.read.table("clicks"))


def test_what_is_given_of_a_frame_is_checked(session):
    message = (
        "`schema` must be a StructType; got str; make one outside of the pipeline's functions: "
        'StructType.fromDDL("ts TIMESTAMP, v DOUBLE")'
    )
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        sw.spark.known(session.read.table("clicks"), "ts TIMESTAMP", stream=True)
    with pytest.raises(sw.DataError, match=r"^`known` takes a Spark DataFrame; got list$"):
        sw.spark.known([1], SCHEMA, stream=False)
    wrong = sw.Workload(time="when").query("q", sw.tumbling("1 minute"), n=sw.count())
    with pytest.raises(sw.DataError, match=r"^there is no column 'when' in the DataFrame; "):
        wrong.run(sw.spark.known(session.read.table("clicks"), SCHEMA, stream=False))
