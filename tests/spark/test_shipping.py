"""Shipping: what a stream sends to a Python without slicewise brings it along; what is missing where is said.

``test_cluster.py`` does it with workers.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import SimpleNamespace

import numpy
import pytest
from pyspark import cloudpickle

import slicewise as sw
from slicewise.archive import write_archive
from slicewise.spark import Probe, Worker, carrying, shipping
from slicewise.spark.probing import _asker, _reason
from slicewise.spark.shipping import carried, for_workers
from slicewise.spark.streaming import heartbeat
from slicewise.spark.streaming.heartbeat import HeartbeatSource
from slicewise.spark.streaming.processor import ShardProcessor
from tests.spark.cluster import make_python

NEEDED = (("slicewise", "1"), ("numpy", "2.1.3"), ("pyarrow", "19"), ("pandas", "2.2"), ("protobuf", "6"))


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python that has everything but slicewise."""
    folder = tmp_path_factory.mktemp("bare")
    make_python(folder)
    return folder / "bin" / "python"


def run_bare(python, code, data):
    """Run code that has ``data`` in a Python without slicewise."""
    check = "import importlib.util\nassert importlib.util.find_spec('slicewise') is None\n"
    read = "import pickle, sys\ngiven = pickle.loads(sys.stdin.buffer.read())\n"
    done = subprocess.run([python, "-P", "-c", check + read + code], input=data, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode()


@pytest.fixture
def session(tmp_path):
    """Stands for a session of Spark Connect to which slicewise was shipped."""
    write_archive(tmp_path / "slicewise.zip")
    shipped = (tmp_path / "slicewise.zip").read_bytes()
    modules = (carrying, heartbeat)
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield SimpleNamespace(get=lambda _: shipped)
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.slow
def test_what_is_carried_is_itself_where_slicewise_is_not_installed(monkeypatch, bare, session):
    monkeypatch.setattr(shipping, "_SHIPPED", session)
    workload = sw.Workload("t").query("q", sw.tumbling(10), n=sw.count())
    data = cloudpickle.dumps(carried(workload, None))
    code = "op = given.operator()\nop.process(3, {})\nprint(given.__module__, [r.values for r in op.close()])"
    assert run_bare(bare, code, data) == "slicewise.workload.workload [{'n': 1}]\n"
    code = "print(given.__module__, __import__(given.__module__, fromlist=['x']).__file__)"
    where = "slicewise.spark.streaming.processor <slicewise.zip>/slicewise/spark/streaming/processor.py\n"
    assert run_bare(bare, code, cloudpickle.dumps(carried(ShardProcessor, None))) == where
    function = cloudpickle.dumps(for_workers(workload.query, None))
    assert run_bare(bare, "print(type(given).__name__)", function) == "function\n"
    # The source of a heartbeat is pickled whole, since Spark asks for a class.
    beat = "print(given({'interval': '250'}).streamReader(None).partitions({'slicewise_heartbeat': 1}, "
    beat += "{'slicewise_heartbeat': 2})[0].value)"
    assert run_bare(bare, beat, cloudpickle.dumps(HeartbeatSource)) == "2\n"


def test_where_slicewise_is_installed_that_one_is_taken(monkeypatch, session):
    monkeypatch.setattr(shipping, "_SHIPPED", session)
    before = list(sys.meta_path)
    assert pickle.loads(cloudpickle.dumps(carried(sw.tumbling(5), None))) == sw.tumbling(5)
    assert sys.meta_path == before


def test_without_shipping_nothing_is_wrapped():
    thing, session = sw.tumbling(5), SimpleNamespace
    assert carried(thing, session) is thing
    assert for_workers(len, session) is len


# -- what a probe says


@pytest.mark.slow
def test_the_question_has_nothing_of_slicewise_in_it(bare):
    data = cloudpickle.dumps(_asker({"slicewise": "slicewise", "numpy": "numpy"}))
    answer = run_bare(bare, "import json\nprint(json.loads(given(0))['packages'])", data)
    assert answer == f"[['numpy', '{numpy.__version__}']]\n"


def worker(*left_out, python="3.12", host="node1"):
    return Worker(host, "/usr/bin/python3", python, tuple(p for p in NEEDED if p[0] not in left_out))


@pytest.mark.parametrize(
    ("probe", "lines"),
    [
        (Probe((worker(),), None, "3.12"), ["all is well: batches and streams run here"]),
        (
            Probe((worker("slicewise"),), None, "3.12"),
            ["wrong: node1 lacks slicewise; slicewise.spark.ship(spark) sends it"],
        ),
        (
            Probe((worker("numpy", "pandas", "protobuf"),), None, "3.12"),
            [
                "wrong: node1 lacks numpy; install it there",
                "wrong: node1 lacks pandas and protobuf, which streams need; install them there",
            ],
        ),
        (
            Probe((worker(python="3.11"),), "no RocksDB", "3.12"),
            [
                "wrong: node1 has Python 3.11, but here it is 3.12; they must be the same",
                "wrong: a stream failed: no RocksDB",
            ],
        ),
    ],
)
def test_what_is_missing_is_said_with_where_and_what_to_do(probe, lines):
    assert str(probe).splitlines()[1:] == lines


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[A] first\n\tat java.lang", "[A] first"),
        (
            "[A] first\nModuleNotFoundError: No module named 'slicewise'\n",
            "ModuleNotFoundError: No module named 'slicewise'; it needs slicewise where Spark starts Python on the "
            "driver or the server, too",
        ),
        ("x\nImportError: no pandas\n\tat java.lang", "ImportError: no pandas"),
        ("", "ValueError"),
    ],
)
def test_why_a_stream_failed_is_one_line(text, said):
    assert _reason(ValueError(text)) == said
