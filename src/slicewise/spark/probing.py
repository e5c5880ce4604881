"""Probing: what the Pythons of a cluster have, asked there and not here."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slicewise.aggregates import count
from slicewise.errors import SlicewiseError
from slicewise.spark.session import PROVIDER, ROCKSDB
from slicewise.windows import tumbling
from slicewise.workload import Workload

__all__ = ["Probe", "Worker", "open_session", "probe"]

#: What workers import, by the names that pip knows; the last two for streams.
PACKAGES = {
    "slicewise": "slicewise",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "pandas": "pandas",
    "protobuf": "google.protobuf",
}
FOR_STREAMS = ("pandas", "protobuf")
#: How many tasks ask. A cluster may have machines that none of them meets.
TASKS = 16


@dataclass(frozen=True)
class Worker:
    """The Python of a worker: where it is, its version, and the packages that it has.

    Attributes
    ----------
    host
        The name of the machine.
    program
        The path of the interpreter.
    python
        Its version, such as ``"3.12"``.
    packages
        Names and versions of those packages slicewise needs that are installed there.

    Examples
    --------
    >>> worker = Worker("node1", "/usr/bin/python3", "3.12", (("numpy", "2.1.3"), ("pyarrow", "19.0.1")))
    >>> worker.missing
    ['slicewise', 'pandas', 'protobuf']
    """

    host: str
    program: str
    python: str
    packages: tuple[tuple[str, str], ...]

    @property
    def missing(self) -> list[str]:
        """The packages that it lacks."""
        there = dict(self.packages)
        return [name for name in PACKAGES if name not in there]

    def __str__(self) -> str:
        packages = ", ".join(f"{name} {version}" for name, version in self.packages)
        return f"{self.host}: Python {self.python} ({self.program}), {packages or 'nothing that is needed'}"


@dataclass(frozen=True)
class Probe:
    """What a session was found to have, as :func:`probe` and :func:`ship` report it.

    Attributes
    ----------
    workers
        The different Pythons among the workers.
    stream
        Why a stream of one micro-batch failed; None if it ran.
    python
        The version of Python on this side, such as ``"3.12"``.
    problems
        What is wrong, with what to do; empty if all is well.

    Examples
    --------
    >>> worker = Worker("node1", "/usr/bin/python3", "3.12", (("numpy", "2.1.3"), ("pyarrow", "19.0.1")))
    >>> print(Probe((worker,), None, "3.12"))
    node1: Python 3.12 (/usr/bin/python3), numpy 2.1.3, pyarrow 19.0.1
    wrong: node1 lacks slicewise; slicewise.spark.ship(spark) sends it
    wrong: node1 lacks pandas and protobuf, which streams need; install them there
    """

    workers: tuple[Worker, ...]
    stream: str | None
    python: str = field(default_factory=lambda: "{}.{}".format(*sys.version_info[:2]))

    @property
    def problems(self) -> list[str]:
        """What is wrong, with what to do."""
        problems = [text for worker in self.workers for text in self.problems_of(worker)]
        return problems + ([f"a stream failed: {self.stream}"] if self.stream is not None else [])

    def problems_of(self, worker: Worker) -> list[str]:
        """What is wrong with one worker.

        Parameters
        ----------
        worker
            One of ``workers``.

        Returns
        -------
        list of str
            What is wrong, with what to do; empty if all is well there.

        Examples
        --------
        >>> worker = Worker("node1", "/usr/bin/python3", "3.11", tuple((name, "1.0") for name in PACKAGES))
        >>> Probe((worker,), None, "3.12").problems_of(worker)
        ['node1 has Python 3.11, but here it is 3.12; they must be the same']
        """
        return list(self._problems_of(worker))

    def _problems_of(self, worker: Worker) -> Iterator[str]:
        missing = worker.missing
        if worker.python != self.python:
            yield f"{worker.host} has Python {worker.python}, but here it is {self.python}; they must be the same"
        if "slicewise" in missing:
            yield f"{worker.host} lacks slicewise; slicewise.spark.ship(spark) sends it"
        for names, why in ((("numpy", "pyarrow"), ""), (FOR_STREAMS, ", which streams need")):
            lacking = [name for name in names if name in missing]
            if lacking:
                them = "it" if len(lacking) == 1 else "them"
                yield f"{worker.host} lacks {' and '.join(lacking)}{why}; install {them} there"

    def __str__(self) -> str:
        lines = [*map(str, self.workers), *(f"wrong: {problem}" for problem in self.problems)]
        return "\n".join([*lines, *([] if self.problems else ["all is well: batches and streams run here"])])


def open_session(master: str | None = None, remote: str | None = None) -> SparkSession:
    """A session to ask a cluster or a Spark Connect server with, that can keep the state of a stream."""
    builder = SparkSession.builder.appName("slicewise doctor").config(PROVIDER, ROCKSDB)
    chosen = builder.remote(remote) if remote else builder.master(master or "local[*]")
    return chosen.getOrCreate()


def probe(session: SparkSession) -> Probe:
    """Ask the workers of a session what they have, and run a stream of one micro-batch.

    Parameters
    ----------
    session : SparkSession
        Classic or of Spark Connect. For the stream its state store must be RocksDB.

    Returns
    -------
    Probe
        What the workers have, and whether the stream ran; print it.

    Notes
    -----
    Cost: two small jobs. Sixteen tasks ask the workers; on a large cluster they may not reach every machine.

    Examples
    --------
    >>> import slicewise as sw
    >>> spark = sw.spark.local_session()
    >>> print(str(probe(spark)).splitlines()[-1])
    all is well: batches and streams run here
    """
    # Not by way of Arrow, which may be what is missing.
    ask = F.udf(_asker(PACKAGES), "string", useArrow=False)
    rows = session.range(0, TASKS, 1, TASKS).select(ask("id").alias("answer")).distinct().collect()
    answers = [json.loads(row["answer"]) for row in rows]
    workers = {Worker(a["host"], a["program"], a["python"], tuple(map(tuple, a["packages"]))) for a in answers}
    return Probe(tuple(sorted(workers, key=str)), _failure_of_a_stream(session))


def _asker(packages: dict[str, str]) -> Callable[[int], str]:
    """A function that reports on the Python that runs it; it needs nothing of slicewise, and so runs anywhere."""

    def ask(_: int) -> str:
        import importlib
        import json
        import platform
        import sys

        versions = []
        for name, module in packages.items():
            try:
                versions.append((name, str(getattr(importlib.import_module(module), "__version__", "?"))))
            except ImportError:
                continue
        python = ".".join(map(str, sys.version_info[:2]))
        return json.dumps({"host": platform.node(), "program": sys.executable, "python": python, "packages": versions})

    return ask


def _failure_of_a_stream(session: SparkSession) -> str | None:
    """Why a stream of one micro-batch fails; None if it does not."""
    workload = Workload("timestamp").query("q", tumbling("1 second"), n=count())
    try:
        source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 4).option("numPartitions", 2)
        query = workload.run(source.load()).writeStream.format("noop").trigger(availableNow=True).start()
        query.awaitTermination()
    except SlicewiseError as error:
        return str(error)
    except Exception as error:
        return _reason(error)
    return None


def _reason(error: Exception) -> str:
    """The line of an error that says most: that of Python, where there is one among those of Java."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    errors = [line for line in lines if re.match(r"[A-Z]\w*Error: ", line)]
    if errors and "No module named 'slicewise'" in errors[-1]:
        return f"{errors[-1]}; it needs slicewise where Spark starts Python on the driver or the server, too"
    return errors[-1] if errors else next(iter(lines), type(error).__name__)
