"""Commands in a pipe, as a script would call them: what they print, where, and their exit codes."""

# Messages stand on one line, as they are said.
# ruff: noqa: E501

from __future__ import annotations

import os
import subprocess
import sys
import types
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slicewise
from slicewise.cli import app as app_module
from slicewise.cli import benchmarks, commands
from slicewise.cli.commands import app
from slicewise.errors import SetupError
from tests.cli.jobfiles import BATCH, STREAM, changed, write


def call(*arguments: str):
    return CliRunner().invoke(app, list(arguments))


def pipe(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "slicewise", *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env={**os.environ, **env}, timeout=120, check=False
    )


# -- check and explain


@pytest.mark.slow
def test_check_in_a_pipe_needs_neither_java_nor_spark(tmp_path):
    write(tmp_path, STREAM)
    # A sitecustomize that hides pyspark, and a PATH without java.
    hide = "import sys\nfor name in ('pyspark', 'py4j', 'pandas'):\n    sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hide)
    done = pipe("check", "job.toml", cwd=tmp_path, PATH="/nowhere", JAVA_HOME="/nowhere", PYTHONPATH=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "job.toml is fine: stream of parquet (in), 2 queries, to parquet (out)\n"
    assert pipe("explain", "job.toml", cwd=tmp_path, PATH="/nowhere", PYTHONPATH=str(tmp_path)).returncode == 0


@pytest.mark.slow
def test_mistakes_in_a_pipe_are_plain_lines_on_the_error_output(tmp_path):
    write(tmp_path, changed(changed(STREAM, "avg(v)", "agv(v)"), "[trigger]", "[triger]"))
    done = pipe("check", "job.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "job.toml:21:9: `queries.trend.mean`: unknown aggregate 'agv'; did you mean 'avg'?\n"
        '    mean = "agv(v)"\n'
        "            ^\n"
        "job.toml:28:1: unknown table or key `triger`; did you mean 'trigger'?\n"
        "    [triger]\n"
        "    ^\n"
        "2 mistakes\n"
    )


def test_run_and_explain_find_the_same_mistakes(tmp_path):
    file = write(tmp_path, changed(STREAM, "avg(v)", "agv(v)"))
    for command in ("run", "explain", "check"):
        done = call(command, file)
        assert done.exit_code == 2
        assert "unknown aggregate 'agv'; did you mean 'avg'?" in done.stderr
        assert done.stdout == ""


def test_mistakes_with_brackets_are_shown_as_they_are(tmp_path):
    done = call("check", write(tmp_path, changed(STREAM, 'keys = ["sensor"]', 'keys = ["[bold]x[/bold]"]')))
    assert "there is no column '[bold]x[/bold]' in `source.schema`" in done.stderr
    assert '    keys = ["[bold]x[/bold]"]' in done.stderr


def test_explain_says_what_is_decided(tmp_path):
    done = call("explain", write(tmp_path, STREAM))
    assert done.exit_code == 0
    assert done.stdout.startswith("job: stream of parquet (in) to parquet (out)\n\nworkload  time ts, keys sensor")
    assert "decisions" in done.stdout


def test_overrides_reach_the_job(tmp_path):
    done = call("check", write(tmp_path, BATCH), "--set", "sink.path=elsewhere", "--set", "source.path=there")
    assert "batch of csv (there), 1 query, to parquet (elsewhere)" in done.stdout


# -- help and wrong use


def test_help_documents_commands_and_exit_codes():
    said = " ".join(call("--help").stdout.split())
    for command in ("run", "explain", "check", "inspect", "package", "doctor", "demo", "bench"):
        assert command in said
        of_command = " ".join(call(command, "--help").stdout.split())
        assert (
            "0 everything went well; 1 the job or a check failed; 2 there are mistakes in the input; 130" in of_command
        )
    assert "0 everything went well" in said


def test_version():
    assert call("--version").stdout == f"slicewise {slicewise.__version__}\n"


@pytest.mark.parametrize("arguments", [["chek"], ["check"], ["check", "a", "b"], ["run", "x.toml", "--mster", "y"]])
def test_wrong_use_is_a_mistake(arguments):
    done = call(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


def test_settings_of_spark_need_a_key_and_a_value(tmp_path):
    done = call("run", write(tmp_path, BATCH), "--conf", "spark.x")
    assert done.exit_code == 2
    assert done.stderr == "--conf spark.x: expected key=value, as in --conf spark.driver.memory=2g\n"


def test_without_typer_the_command_line_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "slicewise.cli.commands")
    with pytest.raises(SystemExit) as left:
        app_module.main()
    assert left.value.code == 1
    assert capsys.readouterr().err == "the command line needs typer: pip install 'slicewise[cli]'\n"


# -- run, where it fails


def run_with(monkeypatch, tmp_path, error, *arguments):
    def fail(*_):
        raise error

    monkeypatch.setattr(commands, "open_session", fail)
    return call("run", write(tmp_path, BATCH), *arguments)


def test_an_error_of_ours_is_its_message(monkeypatch, tmp_path):
    done = run_with(monkeypatch, tmp_path, SetupError("there is no Java; install it"))
    assert done.exit_code == 1
    assert done.stderr == "starting Spark\nerror: there is no Java; install it\n"


def test_an_error_of_spark_is_shown_without_its_stack(monkeypatch, tmp_path):
    error = RuntimeError("[PATH_NOT_FOUND] Path does not exist: x.\n\nJVM stacktrace:\norg.apache\n\tat org.x")
    done = run_with(monkeypatch, tmp_path, error)
    assert done.exit_code == 1
    assert "error: [PATH_NOT_FOUND] Path does not exist: x.\n--traceback shows everything" in done.stderr
    assert "stacktrace" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_traceback_is_shown_on_request(monkeypatch, tmp_path):
    done = run_with(monkeypatch, tmp_path, RuntimeError("x"), "--traceback")
    assert done.exit_code == 1
    assert "Traceback (most recent call last)" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [["run", "job.toml"], ["demo"], ["inspect", "."]])
def test_without_spark_the_command_says_what_to_install(tmp_path, command):
    write(tmp_path, BATCH)
    hide = "import sys\nfor name in ('pyspark', 'py4j'):\n    sys.modules[name] = None\n"
    (tmp_path / "sitecustomize.py").write_text(hide)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = pipe(*command, cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 1
    assert done.stderr.removeprefix("starting Spark\n") == (
        "error: Spark is not available: pyspark is not installed; pip install 'slicewise[spark]'; "
        "`slicewise doctor` checks everything that is needed\n"
    )


def test_an_interruption_has_its_own_code(monkeypatch, tmp_path):
    done = run_with(monkeypatch, tmp_path, KeyboardInterrupt())
    assert done.exit_code == 130
    assert done.stderr.endswith("interrupted\n")


# -- inspect


def test_inspect_prints_what_spark_finds(monkeypatch, tmp_path):
    said = types.SimpleNamespace(inspect=lambda path: f"3 shards in {path}")
    monkeypatch.setitem(sys.modules, "slicewise.spark", said)
    done = call("inspect", str(tmp_path))
    assert (done.exit_code, done.stdout) == (0, f"3 shards in {tmp_path}\n")
    assert call("inspect", "hdfs://there/state").stdout == "3 shards in hdfs://there/state\n"


def test_inspect_of_a_folder_that_is_not_there_is_a_mistake():
    done = call("inspect", "no-such-folder")
    assert done.exit_code == 2
    assert (
        done.stderr == "no-such-folder: there is no such folder; give the checkpoint of a stream, as its job names it\n"
    )


# -- demo and bench


def test_demo_refuses_numbers_that_make_no_sense():
    assert call("demo", "--rows", "0").exit_code == 2


@pytest.mark.slow
def test_a_pipe_that_closes_early_is_no_traceback(tmp_path):
    command = f"{sys.executable} -m slicewise doctor | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.stdout
    assert "Traceback" not in done.stderr


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    (tmp_path / "src" / "slicewise").mkdir(parents=True)
    (tmp_path / "benchmarks").mkdir()
    script = '"""How fast?\n\nVery."""\nimport sys\nif __name__ == "__main__":\n    print(*sys.argv[1:])\n    sys.exit("--fail" in sys.argv)\n'
    (tmp_path / "benchmarks" / "speed.py").write_text(script)
    (tmp_path / "benchmarks" / "shared.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_bench_lists_the_benchmarks_of_a_checkout(checkout):
    assert call("bench").stdout == "speed  How fast?\n"


def test_bench_runs_one_with_its_arguments(checkout, capfd):
    assert call("bench", "speed", "--", "--quick", "3").exit_code == 0
    assert capfd.readouterr().out == "--quick 3\n"
    assert call("bench", "speed", "--", "--fail").exit_code == 1


def test_bench_of_an_unknown_name_is_a_mistake(checkout):
    done = call("bench", "sped")
    assert done.exit_code == 2
    assert done.stderr == "sped: there is no such benchmark; did you mean 'speed'?\n"


def test_bench_without_a_checkout_says_where_to_get_one(monkeypatch):
    monkeypatch.setattr(benchmarks, "folder", lambda: None)
    done = call("bench")
    assert done.exit_code == 1
    assert "clone the repository of slicewise, and run `slicewise bench` in it" in done.stderr


# -- package


@pytest.mark.slow
def test_package_makes_a_zip_that_python_imports_from(tmp_path):
    done = call("package", str(tmp_path))
    path = tmp_path / "slicewise.zip"
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    assert (done.exit_code, done.stdout) == (
        0,
        f"{path} has slicewise {slicewise.__version__}, {len(names)} files; spark-submit --py-files {path} job.py\n",
    )
    assert {"slicewise/__init__.py", "slicewise/spark/quiet.properties", "slicewise/py.typed"} <= set(names)
    assert not any("__pycache__" in name for name in names)
    code = f"import sys\nsys.path.insert(0, {str(path)!r})\nimport slicewise\nprint(slicewise.__file__)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert printed.stdout == f"{path}/slicewise/__init__.py\n"


@pytest.mark.slow
def test_the_same_version_makes_the_same_zip(tmp_path):
    for name in ("one.zip", "other.zip"):
        assert call("package", str(tmp_path / name)).exit_code == 0
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


@pytest.mark.slow
def test_a_zip_makes_a_zip(tmp_path):
    call("package", str(tmp_path / "one.zip"))
    done = pipe("package", "other.zip", cwd=tmp_path, PYTHONPATH=str(tmp_path / "one.zip"))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "other.zip").read_bytes()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no/such.zip", "no/such.zip: this cannot be written: No such file or directory\n"),
        (
            "egg.egg",
            "egg.egg: Spark recognizes packages by the ending of the file name; expected one that ends in .zip\n",
        ),
    ],
)
def test_a_zip_that_cannot_be_written(monkeypatch, tmp_path, name, message):
    monkeypatch.chdir(tmp_path)
    done = call("package", name)
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", message)
