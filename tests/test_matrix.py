"""The matrix: which environments there are, what is installed in them, and how results are counted."""

from __future__ import annotations

import argparse
import sys

import pytest

from tests import matrix
from tests.matrix import CELLS, HERE, Cell, Outcome


def chosen(spark="", python="", only=None):
    return argparse.Namespace(spark=spark, python=python, only=only)


@pytest.fixture
def every_python(monkeypatch):
    monkeypatch.setattr(matrix.shutil, "which", lambda name: sys.executable)


def test_every_version_of_spark_and_python_is_there_and_one_with_the_oldest_of_everything():
    assert {cell.spark for cell in CELLS if "spark" in cell.tests} == {"4.0", "4.1", "4.2", "4.3"}
    assert {cell.python for cell in CELLS} == {"3.11", "3.12", "3.13"}
    (oldest,) = [cell for cell in CELLS if cell.oldest]
    assert oldest == Cell("4.0", "3.11", oldest=True, tests=("quick", "spark"))


def test_the_oldest_environment_has_the_floors_of_pyproject():
    oldest = matrix.requirements_of(CELLS[0])
    assert oldest[:5] == [
        "pyspark[connect]==4.0.*",
        "numpy==1.26.0",
        "pyarrow==16.0.0",
        "pandas==2.2.0",
        "protobuf==5.28.3",
    ]
    newest = matrix.requirements_of(Cell("4.3", "3.13"))
    assert newest[:3] == ["pyspark[connect,pipelines]==4.3.*", "numpy>=1.26", "pyarrow>=16"]
    assert any(line.startswith("hypothesis") for line in newest)
    assert not any(line.startswith(("mypy", "ruff")) for line in newest)


def test_cells_are_chosen_by_spark_and_by_python(every_python):
    assert list(matrix._cells(chosen())) == list(CELLS)
    assert [c.name for c in matrix._cells(chosen(spark="4.1,4.2"))] == [
        "spark-4.1-python-3.13",
        "spark-4.2-python-3.12",
    ]
    # A pair that is not in the table can be asked for; one that is keeps what it is.
    assert list(matrix._cells(chosen(spark="4.1", python="3.11"))) == [Cell("4.1", "3.11")]
    assert list(matrix._cells(chosen(spark="4.0", python="3.11"))) == [CELLS[0]]
    assert list(matrix._cells(chosen(spark="4.0", only="smoke"))) == [Cell("4.0", HERE, oldest=True)]


def test_a_python_that_is_not_there_is_left_out_and_named(monkeypatch, capsys):
    monkeypatch.setattr(matrix.shutil, "which", lambda name: None)
    assert {cell.python for cell in matrix._cells(chosen())} == {HERE} & {cell.python for cell in CELLS}
    printed = capsys.readouterr().out
    for python in {"3.11", "3.12", "3.13"} - {HERE}:
        assert f"-python-{python}, because python{python} is not on PATH or does not start" in printed


def test_a_python_that_is_only_a_name_is_left_out(monkeypatch, tmp_path):
    shim = tmp_path / "python"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setattr(matrix.shutil, "which", lambda name: str(shim))
    assert {cell.python for cell in matrix._cells(chosen())} == {HERE} & {cell.python for cell in CELLS}


def test_spark_is_lent_by_an_environment_that_has_it_itself(monkeypatch, tmp_path):
    monkeypatch.setattr(matrix, "BUILD", tmp_path)
    first, second, third = (Cell("4.3", python) for python in ("3.11", "3.12", "3.13"))

    def packages(cell):
        return tmp_path / cell.name / "lib" / f"python{cell.python}" / "site-packages"

    for cell in (first, second, third):
        packages(cell).mkdir(parents=True)
        (tmp_path / cell.name / "requirements.txt").touch()
    (packages(second) / "pyspark").symlink_to(packages(first) / "pyspark")
    (packages(third) / "pyspark").mkdir()
    (packages(third) / "pyspark-4.3.0.dist-info").mkdir()
    # What the second borrowed is gone with the first, which is built anew.
    (tmp_path / first.name / "requirements.txt").unlink()
    matrix.link_spark(first)
    assert (packages(first) / "pyspark").resolve() == packages(third) / "pyspark"
    assert (packages(first) / "pyspark-4.3.0.dist-info").is_dir()


def test_a_stream_goes_on_from_rows_to_rows_only():
    def before(earlier, later):
        return matrix._before(Cell(earlier, "3.11"), Cell(later, "3.11"))

    assert before("4.1", "4.2")
    assert before("4.2", "4.3")
    assert not before("4.0", "4.1")
    assert not before("4.3", "4.2")


def test_what_is_skipped_has_not_passed(tmp_path):
    report = tmp_path / "report.xml"
    assert matrix._counts(report) == (0, 1)
    report.write_text('<testsuites><testsuite tests="9" failures="1" errors="1" skipped="2"/></testsuites>')
    assert matrix._counts(report) == (5, 4)
    line = Outcome("Spark 4.0.5", "spark", 5, 4, 90).line()
    assert line.split() == ["Spark", "4.0.5", "spark", "5", "passed,", "4", "FAILED", "1.5", "min"]
