"""The doctor: finds what is wrong and says what mends it."""

# Messages stand on one line, as they are said.
# ruff: noqa: E501

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from slicewise.cli import commands, doctor
from slicewise.cli.commands import app
from slicewise.cli.doctor import Finding
from slicewise.spark import probing


def program(folder: Path, name: str, script: str) -> Path:
    """A program that is a shell script."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def java(monkeypatch, tmp_path, version, modules="java.base@17\njdk.incubator.vector@17"):
    script = f"if [ \"$1\" = -version ]; then echo '{version}' >&2; else printf '{modules}'; fi"
    program(tmp_path, "bin/java", script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    return doctor.java()


def test_java_17_and_newer_are_fine(monkeypatch, tmp_path):
    assert java(monkeypatch, tmp_path, 'openjdk version "17.0.15" 2025-04-15').ok
    found = java(monkeypatch, tmp_path, 'openjdk version "21" 2023-09-19')
    assert found == Finding("Java", True, f"21 ({tmp_path}/bin/java)")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ('openjdk version "11.0.2" 2019', "{path} is Java 11"),
        ('java version "1.8.0_301"', "{path} is Java 8"),
        ("what?", "{path} does not report its version"),
    ],
)
def test_another_java_is_wrong(monkeypatch, tmp_path, version, said):
    monkeypatch.setenv("PATH", "/nowhere")
    found = java(monkeypatch, tmp_path, version)
    assert not found.ok
    wrong = said.format(path=tmp_path / "bin" / "java")
    assert found.detail == f"JAVA_HOME is {tmp_path}, and {wrong}; Spark needs 17 or newer"
    assert "openjdk-17" in found.fix


def test_a_java_without_the_module_that_spark_asks_for_is_wrong(monkeypatch, tmp_path):
    found = java(monkeypatch, tmp_path, 'openjdk version "21"', modules="java.base@21")
    assert not found.ok
    assert found.detail.endswith("lacks the module jdk.incubator.vector, which Spark asks for")


def test_no_java_at_all_is_wrong(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = doctor.java()
    assert (found.ok, found.detail) == (
        False,
        "Java is not on PATH, and JAVA_HOME is not set; Spark needs 17 or newer",
    )
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert not doctor.java().ok


def test_a_java_home_that_points_nowhere_is_wrong_while_java_is_on_path(monkeypatch, tmp_path):
    java(monkeypatch, tmp_path, 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    said = f"JAVA_HOME is /nowhere, and there is no bin/java; Java 17 is on PATH ({tmp_path}/bin/java)"
    assert doctor.java() == Finding("Java", False, f"{said}; Spark needs 17 or newer", "unset JAVA_HOME")


def test_the_python_of_the_workers_is_the_one_that_runs_here(monkeypatch):
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert doctor.workers().ok
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert doctor.workers() == Finding(
        "Python of the workers", True, f"{sys.executable} (PYSPARK_PYTHON), which has everything they need"
    )


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '[\"3.8\", []]'", "which is Python 3.8, but here it is {mine}"),
        ('echo \'["{mine}", ["slicewise", "pandas"]]\'', "which lacks slicewise and pandas"),
        ('echo \'["{mine}", ["pandas"]]\'', "which lacks pandas"),
        ("exit 1", "which is not a Python interpreter"),
    ],
)
def test_another_python_for_the_workers_is_wrong(monkeypatch, tmp_path, script, said):
    words = {"mine": ".".join(map(str, sys.version_info[:2]))}
    path = program(tmp_path, "python", script.replace("{mine}", words["mine"]))
    monkeypatch.setenv("PYSPARK_PYTHON", str(path))
    found = doctor.workers()
    assert not found.ok
    assert found.detail == f"Spark's workers run {path} (PYSPARK_PYTHON), {said.format(**words)}"
    assert found.fix == f"export PYSPARK_PYTHON={sys.executable}"


def test_a_python_that_is_not_there_is_wrong(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", "/no/such/python")
    said = "Spark's workers run /no/such/python (PYSPARK_PYTHON), which is not a program"
    assert doctor.workers().detail == said


@pytest.mark.parametrize(
    ("package", "version", "ok", "said", "fix"),
    [
        ("pyspark", "4.3.0", True, "4.3.0", None),
        ("pyspark", "3.5.1", False, "3.5.1; 4.0 or newer is needed", "'pyspark>=4.0'"),
        ("pyspark", None, False, "not installed", "'pyspark>=4.0'"),
        ("protobuf", "6.0", True, "6.0", None),
        ("protobuf", None, False, "not installed; Spark's streams with state need it, and pip does not bring it with pyspark", "'protobuf>=5.28.3'"),
        ("protobuf", "5.28.1", False, "5.28.1; 5.28.3 or newer is needed", "'protobuf>=5.28.3'"),
        ("pandas", "2.3.3", True, "2.3.3", None),
        ("pandas", "3.0.0", False, "3.0.0; Spark needs >=2.2,<3", "'pandas>=2.2,<3'"),
        ("pandas", "2.1", False, "2.1; Spark needs >=2.2,<3", "'pandas>=2.2,<3'"),
        ("pandas", None, False, "not installed; Spark's streams with state need it", "'pandas>=2.2,<3'"),
        ("pyarrow", "16.0.0", True, "16.0.0", None),
        ("pyarrow", "15.0.2", False, "15.0.2; 16 or newer is needed", "'pyarrow>=16'"),
        ("pyarrow", None, False, "not installed", "'pyarrow>=16'"),
    ],
)  # fmt: skip
def test_packages(monkeypatch, package, version, ok, said, fix):
    monkeypatch.setattr(doctor, "_version", lambda name: version if name == package else None)
    found = getattr(doctor, package)()
    assert (found.ok, found.detail) == (ok, said)
    assert found.fix is None if fix is None else found.fix.endswith(f"-m pip install {fix}")


def test_the_thin_client_needs_neither_java_nor_jars(monkeypatch):
    monkeypatch.setattr(doctor, "_version", {"pyspark-client": "4.2.0"}.get)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    assert doctor.pyspark() == Finding("pyspark", True, "4.2.0 (pyspark-client, for Spark Connect)")
    assert doctor.java() == Finding("Java", True, "not needed: pyspark-client starts no Spark of its own")
    assert doctor.rocksdb() == Finding("RocksDB", True, "not needed here: the server keeps the state")


def test_two_packages_that_have_the_same_files_are_wrong(monkeypatch):
    monkeypatch.setattr(doctor, "_version", {"pyspark": "4.3.0", "pyspark-client": "4.2.0"}.get)
    found = doctor.pyspark()
    assert found.detail == (
        "pyspark 4.3.0 and pyspark-client 4.2.0 are both installed, and overwrite each other's files"
    )
    assert found.fix.endswith("-m pip uninstall pyspark pyspark-client, then install one of them")


def test_rocksdb_is_a_jar_of_spark(monkeypatch, tmp_path):
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    said = f"SPARK_HOME is {tmp_path}, and there is no bin/spark-submit"
    assert doctor.rocksdb() == Finding("RocksDB", False, said, "unset SPARK_HOME")
    program(tmp_path, "bin/spark-submit", "")
    (tmp_path / "jars").mkdir()
    assert doctor.rocksdb().detail == f"no rocksdbjni jar in {tmp_path / 'jars'}"
    (tmp_path / "jars" / "rocksdbjni-9.8.4.jar").touch()
    assert doctor.rocksdb() == Finding("RocksDB", True, "rocksdbjni-9.8.4.jar")
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setattr(doctor, "_jars", lambda: None)
    assert doctor.rocksdb().detail == "comes with pyspark, which is not installed"


@pytest.mark.parametrize(
    ("free", "ok", "said"), [(8 * 2**30, True, "8.0 GiB free"), (2**30, False, "1.0 GiB free; 3 GiB are needed")]
)
def test_memory(monkeypatch, free, ok, said):
    monkeypatch.setattr(doctor, "_free_memory", lambda: free)
    assert (doctor.memory().ok, doctor.memory().detail) == (ok, said)
    monkeypatch.setattr(doctor, "_free_memory", lambda: None)
    assert doctor.memory().ok


def test_the_doctor_reports_every_line_and_fails_if_one_is_wrong(monkeypatch):
    findings = [Finding("Java", True, "17"), Finding("pandas", False, "3.0 [x]", "pip install 'pandas<3'")]
    monkeypatch.setattr(commands, "examine", lambda: findings)
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "ok     Java    17",
        "wrong  pandas  3.0 [x]",
        "               pip install 'pandas<3'",
        "1 of 2 checks failed",
    ]
    monkeypatch.setattr(commands, "examine", lambda: findings[:1])
    done = CliRunner().invoke(app, ["doctor"])
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "all is well")


def test_the_doctor_asks_the_workers_of_a_cluster(monkeypatch):
    packages = (("numpy", "2.1.3"), ("pyarrow", "19.0.1"), ("pandas", "2.2.3"), ("protobuf", "6.0"))
    workers = (
        probing.Worker("node1", "/py", "3.11", packages),
        probing.Worker("node2", "/py", "3.11", (("slicewise", "0.1.0"), *packages)),
    )
    stopped = []
    asked = []
    session = SimpleNamespace(stop=lambda: stopped.append(True))
    monkeypatch.setattr(probing, "open_session", lambda *urls: asked.append(urls) or session)
    monkeypatch.setattr(probing, "probe", lambda _: probing.Probe(workers, "no RocksDB", "3.11"))
    monkeypatch.setattr(commands, "examine", list)
    done = CliRunner().invoke(app, ["doctor", "--master", "spark://host:7077"])
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "wrong  worker  node1: Python 3.11 (/py), numpy 2.1.3, pyarrow 19.0.1, pandas 2.2.3, protobuf 6.0",
        "               node1 lacks slicewise; slicewise.spark.ship(spark) sends it",
        "ok     worker  node2: Python 3.11 (/py), slicewise 0.1.0, numpy 2.1.3, pyarrow 19.0.1, pandas 2.2.3, protobuf 6.0",
        "wrong  stream  no RocksDB",
        "2 of 3 checks failed",
    ]
    monkeypatch.setattr(probing, "probe", lambda _: probing.Probe(workers[1:], None, "3.11"))
    done = CliRunner().invoke(app, ["doctor", "--remote", "sc://host:15002"])
    assert (done.exit_code, done.stdout.splitlines()[1:]) == (
        0,
        ["ok     stream  a micro-batch went through", "all is well"],
    )
    assert asked == [("spark://host:7077", None), (None, "sc://host:15002")]
    assert stopped == [True, True]
    both = CliRunner().invoke(app, ["doctor", "--master", "x", "--remote", "y"])
    assert (both.exit_code, both.stderr) == (2, "error: give --master or --remote, not both\n")


@pytest.mark.slow
def test_the_doctor_examines_this_machine():
    names = [found.name for found in doctor.examine()]
    assert names == [
        "Python",
        "Java",
        "Python of the workers",
        "pyspark",
        "protobuf",
        "pandas",
        "pyarrow",
        "RocksDB",
        "memory",
    ]
