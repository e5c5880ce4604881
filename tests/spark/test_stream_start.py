"""What a stream does before its first rows: the Python on the driver imports nothing of ours, workers are shared."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark import cloudpickle

import slicewise as sw
from slicewise.spark.session import shared_workers
from slicewise.spark.streaming.processor import ShardProcessor, deferred
from tests.spark.stream_fake import FakeHandle, FakeStream
from tests.spark.stream_running import Folder, table_of

WORKLOAD = sw.Workload("t", keys=["k"], watermark=2).query("tens", sw.tumbling(10), total=sw.sum("v"))
#: As the Python that Spark starts on the driver for each stream asks for state; everything of PySpark is there.
DRIVER = """
import sys
import pyspark.sql.streaming.transform_with_state_driver_worker
processor = __import__("pickle").loads(sys.stdin.buffer.read())
class Handle:
    def getMapState(self, name, key, value):
        print(name, key.simpleString(), value.simpleString())
processor.init(Handle())
processor.close()
print([name for name in ("slicewise", "numpy", "pyarrow", "pandas") if name in sys.modules])
"""


@pytest.mark.slow
def test_the_driver_learns_of_the_state_without_an_import_of_slicewise():
    given = cloudpickle.dumps(deferred(ShardProcessor(FakeStream(WORKLOAD).job)))
    done = subprocess.run([sys.executable, "-c", DRIVER], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert done.stdout.decode().splitlines() == ["chunks struct<name:string> struct<data:binary,head:string>", "[]"]


def test_a_deferred_processor_reports_what_the_processor_reports():
    stream = FakeStream(WORKLOAD, shards=1)
    (shard,) = stream.shards
    at_once, late = FakeHandle(), FakeHandle()
    reported = []
    for second in (0, 7, 25, 60):
        packs = stream.packs([[{"t": second + i, "k": "ab"[i % 2], "v": i} for i in range(5)]])[shard]
        sent = pickle.loads(cloudpickle.dumps(deferred(ShardProcessor(stream.job))))
        both = []
        for processor, handle in ((ShardProcessor(stream.job), at_once), (sent, late)):
            processor.init(handle)
            both.append([row.asDict(True) for row in processor.handleInputRows((shard,), iter(packs), None)])
            processor.close()
        assert repr(both[0]) == repr(both[1])
        reported += [row["results"]["v0"].tolist() for row in both[0] if row["results"] is not None]
    assert reported == [[8, 5, 4, 3], [6, 4]]
    assert at_once.map.data.keys() == late.map.data.keys()


SIMPLIFIED = "SPARK_SIMPLIFIED_TRACEBACK"


def session_with(setting, environment):
    return SimpleNamespace(
        conf=SimpleNamespace(get=lambda name, default: setting),
        sparkContext=SimpleNamespace(environment=environment),
    )


@pytest.mark.parametrize(
    ("setting", "before", "inside"),
    [
        (None, {"A": "1"}, {"A": "1", SIMPLIFIED: "1"}),
        ("true", {}, {SIMPLIFIED: "1"}),
        # Here nothing of Spark's simplifies errors, and the environments are the same as they are.
        ("false", {"A": "1"}, {"A": "1"}),
        # The user's own stays.
        ("true", {SIMPLIFIED: "0"}, {SIMPLIFIED: "0"}),
    ],
)
def test_stateful_code_gets_the_environment_of_other_functions(setting, before, inside):
    environment = dict(before)
    with shared_workers(session_with(setting, environment)):
        assert environment == inside
    assert environment == before


def test_the_environment_is_as_it_was_after_an_error():
    environment = {}
    with pytest.raises(KeyError), shared_workers(session_with("true", environment)):
        raise KeyError
    assert environment == {}


def test_a_session_without_a_context_is_left_alone():
    with shared_workers(SimpleNamespace()):
        pass


parents = sw.aggregate(
    lift=lambda v: frozenset([os.getppid()]),
    combine=lambda a, b: a | b,
    lower=lambda packed: sorted({*packed, os.getppid()}),
    identity=frozenset(),
    name="parents",
    commutative=True,
    result="array<bigint>",
)


@pytest.mark.spark
def test_one_daemon_starts_the_workers_that_pack_and_those_that_keep_shards(spark, tmp_path):
    """Lifted where rows are packed, lowered in the shard: both in children of one process."""
    folder = Folder(tmp_path)
    folder.add(table_of([(1, "a", 1), (2, "b", 1), (30, "a", 1)]))
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.tumbling("10 seconds"), daemons=parents("v"))
    rows = folder.run(spark, workload).rows()
    assert [len(row["daemons"]) for row in rows] == [1, 1]
