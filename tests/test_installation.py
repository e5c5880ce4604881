"""What must be on this machine before Spark can run: what is missing is named, with the command that mends it."""

from __future__ import annotations

import subprocess
import sys
import types
import venv
from pathlib import Path

import pytest

import slicewise as sw
from slicewise.installation import Java, Problem, find_java, find_spark_home, python_problem, without_pyspark

INSTALL = "sudo apt install openjdk-17-jre-headless (or: brew install openjdk@17, conda install openjdk=17)"
HERE = "{}.{}".format(*sys.version_info[:2])


def program(path: Path, script: str) -> Path:
    """A program that is a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def java(folder: Path, says: str) -> Path:
    """A Java in this folder that says its version."""
    return program(folder / "bin" / "java", f"echo '{says}' >&2").parent.parent


# -- Java


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
@pytest.mark.parametrize("where", ["JAVA_HOME", "PATH"])
def test_the_java_that_spark_would_start(monkeypatch, tmp_path, says, version, where):
    home = java(tmp_path / "jdk", says)
    monkeypatch.setenv("JAVA_HOME", str(home) if where == "JAVA_HOME" else "")
    monkeypatch.setenv("PATH", str(home / "bin") if where == "PATH" else str(tmp_path))
    found = find_java()
    if version is not None and version >= 17:
        assert found == Java(f"{home}/bin/java", version)
        return
    wrong = f"{home}/bin/java is Java {version}" if version else f"{home}/bin/java does not report its version"
    if where == "PATH":
        assert found == Problem(wrong, INSTALL)
    else:
        assert found == Problem(f"JAVA_HOME is {home}, and {wrong}", f"{INSTALL}, then unset JAVA_HOME")


def test_no_java_at_all(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java() == Problem("Java is not on PATH, and JAVA_HOME is not set", INSTALL)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert find_java() == Problem("JAVA_HOME is /nowhere, and there is no bin/java", f"{INSTALL}, then unset JAVA_HOME")


def test_java_home_that_points_nowhere_while_java_is_on_path(monkeypatch, tmp_path):
    home = java(tmp_path / "jdk", 'openjdk version "17.0.9"')
    monkeypatch.setenv("PATH", str(home / "bin"))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert find_java() == Problem(
        f"JAVA_HOME is /nowhere, and there is no bin/java; Java 17 is on PATH ({home}/bin/java)", "unset JAVA_HOME"
    )
    old = java(tmp_path / "old", 'java version "1.8.0_392"')
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert find_java() == Problem(
        f"JAVA_HOME is {old}, and {old}/bin/java is Java 8; Java 17 is on PATH ({home}/bin/java)", "unset JAVA_HOME"
    )


def test_spark_home(monkeypatch, tmp_path):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    assert find_spark_home() is None
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert find_spark_home() == Problem(
        f"SPARK_HOME is {tmp_path}, and there is no bin/spark-submit", "unset SPARK_HOME"
    )
    program(tmp_path / "bin" / "spark-submit", "")
    assert find_spark_home() == tmp_path


# -- the Python of the workers


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """An environment with nothing in it."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    return folder


@pytest.fixture
def site(bare, monkeypatch):
    """Its folder of packages, which sees everything that is here besides what a test hides."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (folder,) = bare.glob("lib/python3*/site-packages")
    left = folder / "hidden.pth"
    yield left
    left.unlink(missing_ok=True)


def hide(left: Path, *packages: str) -> None:
    """Give a bare environment all packages that are here but these."""
    everything = [Path(package.__file__).parents[1] for package in (sw, pytest)]
    hidden = f"import sys; sys.modules.update(dict.fromkeys({packages}))"
    left.write_text("\n".join([*map(str, everything), hidden]))


FIX = f"export PYSPARK_PYTHON={sys.executable}"


def test_the_python_that_runs_here_has_what_it_needs(monkeypatch):
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert python_problem(sys.executable, streams=True) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hidden", "batch", "streams"),
    [
        ((), None, None),
        (("slicewise",), "slicewise", "slicewise"),
        (("pandas",), None, "pandas"),
        (("google.protobuf",), None, "protobuf"),
        (("slicewise", "pandas"), "slicewise", "slicewise and pandas"),
        # Old versions of Arrow cannot do without NumPy.
        (("numpy", "pyarrow"), "numpy, pyarrow and slicewise", "numpy, pyarrow, slicewise and pandas"),
    ],
)
def test_another_python_may_run_workers_that_has_what_they_need(bare, site, monkeypatch, hidden, batch, streams):
    hide(site, *hidden)
    # By another name each time, since a Python is asked once.
    python = bare / "bin" / f"python-{len(hidden)}-{streams}".replace(" ", "-")
    python.symlink_to(bare / "bin" / "python")
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    for lacking, of in ((batch, False), (streams, True)):
        what = f"Spark's workers run {python} (PYSPARK_PYTHON), which lacks {lacking}"
        assert python_problem(str(python), streams=of) == (Problem(what, FIX) if lacking else None)


@pytest.mark.parametrize(
    ("script", "wrong"),
    [
        ("echo '[\"3.8\", []]'", f"which is Python 3.8, but here it is {HERE}"),
        ("exit 1", "which is not a Python interpreter"),
        ("echo what?", "which is not a Python interpreter"),
        (None, "which is not a program"),
    ],
)
def test_programs_that_cannot_run_workers(monkeypatch, tmp_path, script, wrong):
    path = program(tmp_path / "python", script) if script else tmp_path / "python"
    monkeypatch.setenv("PYSPARK_PYTHON", str(path))
    assert python_problem(str(path), streams=False) == Problem(
        f"Spark's workers run {path} (PYSPARK_PYTHON), {wrong}", FIX
    )
    monkeypatch.delenv("PYSPARK_PYTHON")
    what = f"Spark's workers run {path} (PYSPARK_PYTHON is not set), {wrong}"
    assert python_problem(str(path), streams=False) == Problem(what, FIX)


# -- pyspark


@pytest.mark.slow
@pytest.mark.parametrize(
    "door",
    [
        "sw.spark",
        "sw.latest",
        "sw.inspect('x')",
        "sw.Workload(time='t').query('q', sw.tumbling(5), n=sw.count()).run(None)",
        "sw.testing.stream([], sw.Workload(time='t'))",
        "__import__('slicewise.spark.session')",
    ],
)
def test_without_pyspark_every_door_to_spark_says_what_to_install(door):
    code = (
        "import sys\nsys.modules['pyspark'] = None\nimport slicewise as sw\n"
        f"try:\n    {door}\nexcept sw.SetupError as e:\n    assert isinstance(e, ImportError)\n    print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (
        "Spark is not available: pyspark is not installed; pip install 'slicewise[spark]'\n",
        "",
    )


def test_a_pyspark_that_is_too_old(monkeypatch):
    error = ImportError("cannot import name 'StatefulProcessor'", name="pyspark.sql.streaming")
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(__version__="3.5.1"))
    with pytest.raises(sw.SetupError, match=r"^slicewise runs on Spark 4\.0 and newer, and this is pyspark 3\.5\.1, "):
        raise without_pyspark(error)
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(__version__="4.3.0"))
    assert without_pyspark(error) is error


def test_without_py4j(monkeypatch):
    monkeypatch.delitem(sys.modules, "pyspark", raising=False)
    found = without_pyspark(ModuleNotFoundError("No module named 'py4j.java'", name="py4j.java"))
    assert str(found) == "Spark is not available: py4j is not installed; pip install 'slicewise[spark]'"


def test_without_pandas_results_say_what_to_install(monkeypatch):
    class WithoutPandas:
        def to_pandas(self):
            raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    results = sw.Workload(time="t").query("q", sw.tumbling(5), n=sw.count()).operator().close()
    monkeypatch.setattr(type(results), "to_arrow", lambda _: WithoutPandas())
    with pytest.raises(sw.SetupError, match=r"^pandas is not installed; pip install 'slicewise\[pandas\]'$"):
        results.to_pandas()
