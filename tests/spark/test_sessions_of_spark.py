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


@pytest.mark.parametrize(
    ("kind", "module"), [("connect", "pyspark.sql.connect.session"), ("local-cluster", "pyspark.sql.session")]
)
def test_a_mixed_workload_in_another_kind_of_session(kind, module):
    said = run_apart(SCRIPT, kind)
    assert re.search(rf"^{re.escape(module)} \d{{3,}} results are right$", said, re.MULTILINE), said


def test_a_session_that_is_there_is_given_back_untouched(spark):
    before = spark.conf.getAll
    assert session.local_session("other", master="local[7]", conf={"spark.sql.shuffle.partitions": "99"}) is spark
    assert spark.conf.getAll == before


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


# Java


@pytest.fixture
def no_session(monkeypatch):
    monkeypatch.setattr(session.SparkSession, "getActiveSession", staticmethod(lambda: None))
    monkeypatch.delenv("JAVA_HOME", raising=False)


def fake_java(folder, says):
    binary = folder / "bin"
    binary.mkdir()
    (binary / "java").write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    (binary / "java").chmod(0o755)
    return folder


def test_without_java_the_error_says_how_to_get_it(monkeypatch, tmp_path, no_session):
    monkeypatch.setenv("PATH", str(tmp_path))
    message = (
        "Spark needs Java 17 or newer, and there is none; install a JDK (Debian: apt install openjdk-17-jre-headless;"
    )
    with pytest.raises(sw.SetupError, match=re.escape(message)):
        session.local_session()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(sw.SetupError, match=re.escape(message)):
        session.local_session()


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('java version "1.8.0_392"', 8),
        ('openjdk version "11.0.21" 2023-10-17', 11),
        ('openjdk version "17.0.9" 2023-10-17', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ("what is this?", None),
    ],
)
def test_the_version_of_java(monkeypatch, tmp_path, no_session, says, version):
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, says)))
    assert session.java_version() == version
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    assert session.java_version() == version
    if version is not None and version < 17:
        with pytest.raises(
            sw.SetupError, match=f"Spark needs Java 17 or newer; got {version}; set JAVA_HOME to a newer"
        ):
            session.local_session()
