"""Sessions: classic, Spark Connect and separate executors give the same answers; what `local_session` sets and says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import slicewise as sw
from slicewise.spark import session

SCRIPT = Path(__file__).parent / "mixed_workload.py"


def run_apart(*command, **environment):
    """Run Python in a process of its own; what it printed."""
    left_out = ("SPARK_", "PYSPARK_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True,
        text=True,
        timeout=300,
        env=kept | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.streams
@pytest.mark.spark
@pytest.mark.apart
@pytest.mark.parametrize(
    ("kind", "module"),
    [
        pytest.param("connect", "pyspark.sql.connect.session", marks=pytest.mark.matrix),
        ("local-cluster", "pyspark.sql.session"),
    ],
)
def test_a_mixed_workload_in_another_kind_of_session(kind, module):
    said = run_apart(SCRIPT, kind)
    assert re.search(rf"^{re.escape(module)} \d{{3,}} results are right$", said, re.MULTILINE), said


@pytest.mark.streams
def test_a_session_that_is_there_is_given_back_untouched(spark):
    before = spark.conf.getAll
    assert session.local_session("other", master="local[7]", conf={"spark.sql.shuffle.partitions": "99"}) is spark
    assert spark.conf.getAll == before


@pytest.mark.streams
@pytest.mark.spark
def test_a_new_session_has_the_settings_that_slicewise_needs():
    said = run_apart(
        "-c",
        "import os, sys, slicewise as sw\n"
        "spark = sw.spark.local_session('mine', master='local[1]', conf={'spark.sql.shuffle.partitions': '5'})\n"
        "names = ['spark.app.name', 'spark.master', 'spark.sql.shuffle.partitions', 'spark.ui.enabled', "
        "'spark.sql.streaming.stateStore.providerClass']\n"
        "print(*(spark.conf.get(name) for name in names), os.environ['PYSPARK_PYTHON'] == sys.executable)\n"
        "assert spark.range(3).mapInArrow(lambda batches: batches, 'id long').count() == 3\n"
        "spark.stop()\n",
    )
    assert said.split()[-6:] == ["mine", "local[1]", "5", "false", session.ROCKSDB, "True"]


# -- what must be there before a session starts, and before a workload runs on one


@pytest.fixture
def no_session(monkeypatch):
    monkeypatch.setattr(session.SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def refused(message):
    return pytest.raises(sw.SetupError, match=f"^{re.escape(message)}$")


INSTALL = "sudo apt install openjdk-17-jre-headless (or: brew install openjdk@17, conda install openjdk=17)"
FIX = f"before the session starts: export PYSPARK_PYTHON={sys.executable}"
HERE = "{}.{}".format(*sys.version_info[:2])


@pytest.mark.streams
def test_without_java_the_error_says_how_to_get_it(monkeypatch, tmp_path, no_session):
    monkeypatch.setenv("PATH", str(tmp_path))
    none = f"Spark needs Java 17 or newer: Java is not on PATH, and JAVA_HOME is not set; {INSTALL}"
    with refused(none):
        session.local_session()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    nowhere = f"Spark needs Java 17 or newer: JAVA_HOME is {tmp_path}/nowhere, and there is no bin/java"
    with refused(f"{nowhere}; {INSTALL}, then unset JAVA_HOME"):
        session.local_session()
    java = program(tmp_path / "java", "echo 'openjdk version \"17.0.9\"' >&2")
    with refused(f"{nowhere}; Java 17 is on PATH ({java}); unset JAVA_HOME"):
        session.local_session()


@pytest.mark.streams
def test_a_java_that_is_too_old_is_named(monkeypatch, tmp_path, no_session):
    java = program(tmp_path / "java", "echo 'java version \"1.8.0_392\"' >&2")
    monkeypatch.setenv("PATH", str(tmp_path))
    with refused(f"Spark needs Java 17 or newer: {java} is Java 8; {INSTALL}"):
        session.local_session()


@pytest.fixture
def java(monkeypatch, tmp_path, no_session):
    """A Java for tests that need none to run."""
    home = program(tmp_path / "jdk" / "bin" / "java", "echo 'openjdk version \"17.0.9\"' >&2").parents[1]
    monkeypatch.setenv("JAVA_HOME", str(home))


@pytest.mark.streams
def test_a_spark_home_that_points_nowhere_is_named(monkeypatch, java):
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    with refused("SPARK_HOME is /nowhere, and there is no bin/spark-submit; unset SPARK_HOME"):
        session.local_session()


@pytest.mark.streams
def test_a_session_is_not_started_with_workers_that_cannot_run(monkeypatch, tmp_path, java):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    python = program(tmp_path / "python", f'echo \'["{HERE}", ["slicewise", "pandas"]]\'')
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    with refused(f"Spark's workers run {python} (PYSPARK_PYTHON), which lacks slicewise; {FIX}"):
        session.local_session()


N = sw.Workload(time="ts").query("q", sw.tumbling("1 second"), n=sw.count())


@pytest.mark.streams
def test_a_workload_is_not_run_by_workers_without_slicewise(monkeypatch, tmp_path, spark):
    python = program(tmp_path / "python", f'echo \'["{HERE}", ["slicewise"]]\'')
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    with refused(f"Spark's workers run {python} (PYSPARK_PYTHON), which lacks slicewise; {FIX}"):
        N.run(spark.sql("select timestamp'2024-05-01 09:00:00' ts"))


@pytest.mark.streams
def test_a_stream_is_not_run_by_workers_without_pandas(monkeypatch, tmp_path, spark):
    python = program(tmp_path / "python", f'echo \'["{HERE}", ["pandas"]]\'')
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    stream = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    with refused(f"Spark's workers run {python} (PYSPARK_PYTHON), which lacks pandas; {FIX}"):
        N.run(stream)
    # A batch does without.
    assert N.run(spark.sql("select timestamp'2024-05-01 09:00:00' ts")).columns[0] == "query"


@pytest.mark.streams
@pytest.mark.parametrize(
    ("package", "requirement"), [("google.protobuf", "protobuf"), ("pandas", "'pandas<3'")], ids=["protobuf", "pandas"]
)
def test_a_stream_is_not_started_without_what_its_state_needs(monkeypatch, spark, package, requirement):
    monkeypatch.setattr(session, "_is_there", lambda name: name != package)
    stream = spark.readStream.format("rate").load().withColumnRenamed("timestamp", "ts")
    with refused(
        f"Spark keeps the state of streams with {requirement}, which is not installed; pip install {requirement}"
    ):
        N.run(stream)
