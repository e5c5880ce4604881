"""A standalone Spark cluster on loopback: a master, two workers, and a Python that has everything but slicewise.

All of it comes from the pyspark that is installed; nothing is fetched. The fixture ``cluster`` starts it once for all
tests that ask for it and stops it after the last.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy
import pyspark

from tests.sessions import PATIENT

HOME = Path(pyspark.__file__).parent
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
CONNECT = "org.apache.spark.sql.connect.service.SparkConnectServer"
#: What a machine of the cluster must not inherit from the process that runs the tests.
LEFT_OUT = ("PYTHON", "PYTEST", "PYSPARK", "SPARK")
#: How long to wait for a process that starts or runs, and that would otherwise hang for ever.
PATIENCE = 300
CONF = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "512m",
    # Two executors of one core, so that state and packs go from process to process.
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


@dataclass
class Cluster:
    """A running cluster; :meth:`start` begins with an empty folder, :meth:`stop` ends what was started."""

    folder: Path
    url: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def python(self) -> Path:
        """A Python that has what is installed here, without slicewise."""
        return self.folder / "python" / "bin" / "python"

    @classmethod
    def start(cls, folder: Path) -> Cluster:
        """A cluster with two workers of one core each."""
        cluster = cls(folder)
        try:
            make_python(folder / "python")
            master = cluster._daemon("master.Master", "--port", "0")
            cluster.url = cluster._wait(master, r"Starting Spark master at (spark://\S+)")
            for name in ("one", "two"):
                size = ["--cores", "1", "--memory", "1g", "--work-dir", f"work-{name}"]
                worker = cluster._daemon("worker.Worker", "--port", "0", *size, cluster.url, name=name)
                cluster._wait(worker, r"(Successfully registered with master)")
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def stop(self) -> None:
        """End worker and master; the worker ends its executors."""
        for process in reversed(self.processes):
            process.terminate()
            process.wait(PATIENCE)

    def submit(
        self,
        script: Path,
        *arguments: object,
        py_files: Sequence[Path] = (),
        conf: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
        cwd: Path | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run a script by spark-submit, with a driver here and the Python without slicewise everywhere."""
        command = [str(HOME / "bin" / "spark-submit"), "--master", self.url]
        for name, value in (PATIENT | CONF | dict(conf or {})).items():
            command += ["--conf", f"{name}={value}"]
        if py_files:
            command += ["--py-files", ",".join(map(str, py_files))]
        return subprocess.run(
            [*command, *options, str(script), *map(str, arguments)],
            cwd=cwd or self.folder,
            env=self.environment | {"PYSPARK_PYTHON": str(self.python)} | environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a machine of the cluster."""
        return machine_environment(HOME)

    def _daemon(self, kind: str, *arguments: str, name: str = "") -> Path:
        """Start a process of Spark; its log."""
        log = self.folder / f"{kind}{name}.log"
        command = [str(HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1"]
        with log.open("wb") as output:
            self.processes.append(
                subprocess.Popen(
                    [*command, "--webui-port", "0", *arguments],
                    cwd=self.folder,
                    env=self.environment | {"SPARK_DAEMON_MEMORY": "256m"},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
        return log

    def _wait(self, log: Path, pattern: str) -> str:
        """What the last process that was started says by this pattern."""
        return wait_for(self.processes[-1], log, pattern)


def wait_for(process: subprocess.Popen[bytes], log: Path, pattern: str) -> str:
    """What a process writes into its log by this pattern."""
    end = time.monotonic() + PATIENCE
    while True:
        text = log.read_text(errors="replace")
        if found := re.search(pattern, text):
            return found[1]
        assert process.poll() is None, f"{log.name} ended: {text[-2000:]}"
        assert time.monotonic() < end, f"{log.name} does not start: {text[-2000:]}"
        time.sleep(0.1)


def machine_environment(home: Path) -> dict[str, str]:
    """The environment of a machine that has nothing but Spark."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    return kept | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}


@contextlib.contextmanager
def connect_server(folder: Path, python: Path, home: Path = HOME, master: str = "local[2]") -> Iterator[str]:
    """A server of Spark Connect whose Pythons are this one; the URL for its clients."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "connect.log"
    conf = {"spark.ui.enabled": "false", "spark.driver.memory": "1g", "spark.executor.memory": "512m"}
    conf |= PATIENT | {"spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": "127.0.0.1"}
    command = [str(home / "bin" / "spark-submit"), "--master", master, "--class", CONNECT]
    command += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    with log.open("wb") as output:
        server = subprocess.Popen(
            [*command, "spark-internal"],
            cwd=folder,
            env=machine_environment(home) | {"PYSPARK_PYTHON": str(python)},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(server, log, r"(Spark Connect server started)")
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(PATIENCE)


def make_python(folder: Path) -> Path:
    """An environment with what is installed here but slicewise; where its own packages are."""
    venv.create(folder, with_pip=False, symlinks=True)
    (own,) = folder.glob("lib/python*/site-packages")
    for package in Path(numpy.__file__).parents[1].iterdir():
        # Our own package is there by its name, or by a file that Python reads at its start.
        if not package.name.startswith("slicewise") and package.suffix != ".pth":
            (own / package.name).symlink_to(package)
    code = "import numpy, pandas, pyarrow, google.protobuf\nfrom importlib.util import find_spec\n"
    found = subprocess.run(
        [folder / "bin" / "python", "-P", "-c", f"{code}print(find_spec('slicewise'))"],
        env={name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "None\n", f"there is slicewise in {folder}: {found.stdout}"
    return own
