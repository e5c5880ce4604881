"""Wheels: what README promises of each extra, in a fresh environment with the wheel, that extra and nothing else.

`make wheels` tries every extra, CI some: one of them is small and shows what is said of all that it lacks.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.spark.cluster import HOME, connect_server, make_python
from tests.spark.connect_job import check as check_connect_job

ROOT = Path(__file__).parent.parent
CHOSEN = os.environ.get("SLICEWISE_WHEELS", "cli")
LEFT_OUT = ("PYTHON", "PYTEST", "SPARK", "PYSPARK", "JAVA_HOME")


@dataclass(frozen=True)
class Environment:
    """A fresh environment, and an empty folder to work in."""

    folder: Path
    work: Path

    def call(self, program: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, which sees nothing of the one that the tests run in."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
        return subprocess.run(
            [str(self.folder / "bin" / program), *map(str, arguments)],
            cwd=self.work,
            env=kept | variables,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
        )

    def run(self, program: str, *arguments: object, **variables: str) -> str:
        """What a program prints that goes well."""
        done = self.call(program, *arguments, **variables)
        assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        return done.stdout

    def python(self, code: str, **variables: str) -> str:
        """What a piece of Python prints that goes well."""
        return self.run("python", "-c", f"import slicewise as sw\n{code}", **variables)

    def last_error(self, code: str, **variables: str) -> str:
        """The last line that a piece of Python ends with."""
        done = self.call("python", "-c", f"import slicewise as sw\n{code}", **variables)
        assert done.returncode == 1, done.stdout
        return done.stderr.splitlines()[-1]

    def page(self, page: str) -> None:
        """Run the examples of a page."""
        self.run("python", "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "-o", "ELLIPSIS", ROOT / page)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("slicewise-*.whl")
    return built


@pytest.fixture
def environment(wheel, tmp_path):
    made = Environment(tmp_path / "environment", tmp_path / "work")
    made.work.mkdir()
    yield made
    # Each is up to a gigabyte.
    shutil.rmtree(made.folder)


def install(environment: Environment, wheel: Path, extras: str) -> None:
    venv.create(environment.folder, with_pip=True, symlinks=True)
    what = f"slicewise[{extras}] @ {wheel.as_uri()}" if extras else f"slicewise @ {wheel.as_uri()}"
    # What is never imported need not be compiled.
    environment.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile", what)


# -- what each extra promises

COUNT = "sw.Workload(time='t').query('q', sw.tumbling(5), n=sw.count())"
KEEP = f"print(sw.upsert({COUNT}, 'postgresql://127.0.0.1:1/shop', table='sales').table.name)"
NO_SPARK = "Spark is not available: pyspark is not installed; pip install 'slicewise[spark]'"


def none(environment: Environment) -> None:
    environment.page("README.md")
    assert environment.last_error("sw.spark") == f"slicewise.errors.MissingPackageError: {NO_SPARK}"
    assert environment.last_error(f"{COUNT}.operator().close().to_pandas()") == (
        "slicewise.errors.MissingPackageError: pandas is not installed; pip install 'slicewise[pandas]'"
    )
    picture = f"from slicewise import plot\nop = {COUNT}.operator()\nop.process(3, {{}})\nplot.timeline(op.close())"
    assert environment.last_error(picture) == (
        "slicewise.errors.MissingPackageError: pictures need matplotlib, which is not installed; "
        "pip install 'slicewise[plot]'"
    )
    assert environment.last_error("sw.swag.DiskStore('here')").endswith("pip install 'slicewise[disk]'")
    assert environment.last_error("sw.swag.RedisStore('redis://127.0.0.1:1')").endswith("'slicewise[redis]'")
    assert environment.last_error("sw.approx_count_distinct('v')").endswith("pip install 'slicewise[sketch]'")
    command = environment.call("slicewise", "doctor")
    assert (command.returncode, command.stderr) == (1, "the command line needs typer: pip install 'slicewise[cli]'\n")


def cli(environment: Environment) -> None:
    variables = {"DATA": "data", "BROKERS": "localhost:9092"}
    for job in sorted((ROOT / "examples" / "jobs").glob("*.toml")):
        assert " is fine: " in environment.run("slicewise", "check", job, **variables)
        assert "decisions" in environment.run("slicewise", "explain", job, **variables)
    doctor = environment.call("slicewise", "doctor")
    assert doctor.returncode == 1
    lines = [" ".join(line.split()) for line in doctor.stdout.splitlines()]
    assert lines[lines.index("wrong pyspark not installed") + 1] == "python -m pip install 'pyspark>=4.0'"
    assert "slicewise.zip has slicewise " in environment.run("slicewise", "package")
    job = str(ROOT / "examples" / "jobs" / "batch.toml")
    for command in (["run", job], ["demo"], ["inspect", "."]):
        done = environment.call("slicewise", *command, **variables)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith(f"error: {NO_SPARK}")


def spark(environment: Environment) -> None:
    environment.page("docs/quickstart.md")
    bare = environment.work / "bare"
    venv.create(bare, with_pip=False, symlinks=True)
    started = "sw.spark.local_session()"
    here = environment.folder / "bin" / "python"
    assert environment.last_error(started, PYSPARK_PYTHON=f"{bare}/bin/python") == (
        f"slicewise.errors.SetupError: Spark's workers run {bare}/bin/python (PYSPARK_PYTHON), which lacks numpy, "
        f"pyarrow and slicewise; before the session starts: export PYSPARK_PYTHON={here}"
    )
    java = shutil.which("java")
    nowhere = environment.last_error(started, JAVA_HOME="/nowhere")
    assert nowhere.startswith("slicewise.errors.SetupError: Spark needs Java 17 or newer: JAVA_HOME is /nowhere, ")
    assert nowhere.endswith(f" is on PATH ({java}); unset JAVA_HOME")
    assert environment.last_error(KEEP).endswith("pip install 'slicewise[postgres]'")


def spark_and_cli(environment: Environment) -> None:
    doctor = environment.call("slicewise", "doctor").stdout
    for name in ("Java", "Python of the workers", "pyspark", "protobuf", "pandas", "pyarrow", "RocksDB"):
        assert f"ok     {name}  " in doctor, doctor
    demo = environment.run("slicewise", "demo", "--rows", 60_000, "--sliding-rows", 50_000)
    assert "the answers are the same: 176 windows" in demo
    assert "chart              not drawn: matplotlib is not installed; pip install 'slicewise[plot]'\n" in demo
    positions = environment.work / "data" / "positions"
    positions.mkdir(parents=True)
    rows = [f"2024-06-01 12:00:{s:02},a,{s}.5,home" for s in range(50)]
    (positions / "rows.csv").write_text("\n".join(["ts,sensor,v,page", *rows]))
    environment.run("slicewise", "run", ROOT / "examples" / "jobs" / "batch.toml", DATA="data")
    queries = {path.name for path in (environment.work / "data" / "windows").glob("query=*")}
    assert queries == {"query=per_second", "query=trend", "query=visit"}


def connect(environment: Environment) -> None:
    """The thin client; Spark is a server whose Python has everything but slicewise."""
    make_python(environment.work / "server")
    shared = environment.work / "shared"
    shared.mkdir()
    home = Path(os.environ.get("SLICEWISE_SERVER_HOME", HOME))
    with connect_server(environment.work, environment.work / "server" / "bin" / "python", home) as url:
        printed = environment.run("python", ROOT / "tests" / "spark" / "connect_job.py", url, shared, "ship")
    assert "all is well: batches and streams run here" in printed
    assert "400 rows in (0 late)" in printed
    check_connect_job(shared)


def plot(environment: Environment) -> None:
    environment.python(
        f"from slicewise import plot\nop = {COUNT}.operator()\nop.process(3, {{}})\n"
        "plot.timeline(op.close()).figure.savefig('windows.png')",
        MPLBACKEND="Agg",
    )
    assert (environment.work / "windows.png").stat().st_size > 1000


def pandas(environment: Environment) -> None:
    code = (
        f"import pandas as pd\nop = {COUNT}.operator()\nop.process_batch(pd.DataFrame({{'t': [1, 2, 7]}}))\n"
        "print(op.close().to_pandas()['n'].tolist())"
    )
    assert environment.python(code) == "[2, 1]\n"


def disk(environment: Environment) -> None:
    code = (
        "from slicewise.swag import AMTA, DiskStore\nwindow = AMTA(sw.sum(), store=DiskStore('here'), buffer=4)\n"
        "for v in range(100): window.insert(v)\nprint(window.query())"
    )
    assert environment.python(code) == "4950\n"


def sketch(environment: Environment) -> None:
    assert environment.python("n = sw.approx_count_distinct()\nprint(n.lower(n.lift('ann')))") == "1\n"


def redis(environment: Environment) -> None:
    # The client is there: what is missing is a server.
    code = "sw.swag.AMTA(sw.sum(), store=sw.swag.RedisStore('redis://127.0.0.1:1/0'), buffer=4)"
    assert environment.last_error(code).startswith(
        "slicewise.swag.stores.base.StoreError: the store at 'redis://127.0.0.1:1/0' is gone: "
    )


SOURCE = "from slicewise.sources.kafka import KafkaSource\nprint(KafkaSource({}).schema())"


def kafka(environment: Environment) -> None:
    assert environment.last_error(SOURCE) == f"slicewise.errors.MissingPackageError: {NO_SPARK}"


def spark_and_kafka(environment: Environment) -> None:
    given = "{'kafka.bootstrap.servers': '127.0.0.1:1', 'subscribe': 'clicks'}"
    assert environment.python(SOURCE.replace("{}", given)).startswith("`key` binary, `value` binary, `topic` string")


def postgres(environment: Environment) -> None:
    assert environment.last_error(KEEP) == f"slicewise.errors.MissingPackageError: {NO_SPARK}"


def spark_and_postgres(environment: Environment) -> None:
    assert environment.python(KEEP) == "sales\n"


def bench(environment: Environment) -> None:
    shutil.copytree(ROOT / "benchmarks", environment.work / "benchmarks")
    printed = environment.run("python", "benchmarks/swag.py", "--quick")
    for rival in ("pandas", "polars", "bottleneck"):
        assert rival in printed
    assert list((environment.work / "build" / "bench").glob("*.png"))
    environment.run("python", "benchmarks/engine.py", "--quick", "--rows", 20_000)


PROMISES = {
    "none": ("", none),
    "cli": ("cli", cli),
    "spark": ("spark", spark),
    "spark,cli": ("spark,cli", spark_and_cli),
    "connect": ("connect", connect),
    "plot": ("plot", plot),
    "pandas": ("pandas", pandas),
    "disk": ("disk", disk),
    "redis": ("redis", redis),
    "kafka": ("kafka", kafka),
    "spark,kafka": ("spark,kafka", spark_and_kafka),
    "postgres": ("postgres", postgres),
    "spark,postgres": ("spark,postgres", spark_and_postgres),
    "sketch": ("sketch", sketch),
    "bench": ("bench", bench),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISES if CHOSEN == "all" else CHOSEN.split())
def test_a_wheel_does_what_is_promised_of_its_extra(name, wheel, environment):
    extras, promised = PROMISES[name]
    install(environment, wheel, extras)
    promised(environment)


def test_every_extra_is_tried_and_in_the_readme():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    # Contributors get everything: `make venv`.
    extras = set(project["optional-dependencies"]) - {"dev"}
    assert extras == {extra for extras, _ in PROMISES.values() for extra in extras.split(",") if extra}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = [line.split("|")[1] for line in readme.splitlines() if line.startswith("| `")]
    assert extras == {word.strip(" `") for cell in table for word in cell.split(",")}
