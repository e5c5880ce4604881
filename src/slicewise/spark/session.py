"""Session: a local SparkSession for those who have none, and what must be there before one can start."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from slicewise.errors import SetupError
from slicewise.installation import OLDEST_JAVA, Problem, find_java, find_spark_home, python_problem

__all__ = [
    "check_java",
    "check_streaming",
    "check_workers",
    "local_session",
    "partitions_to_keep",
    "setting",
    "share_py_files",
    "shared_workers",
]

#: The setting of the state store, and the one that slicewise needs.
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: The variable by which a worker leaves frames of PySpark out of the errors that it reports.
SIMPLIFIED = "SPARK_SIMPLIFIED_TRACEBACK"
#: How Spark logs in a session of ours: it reads this file before its first message.
QUIET = Path(__file__).with_name("quiet.properties")
#: So many partitions per core cost little more to run than one for each.
PARTITIONS_PER_CORE = 4


def local_session(
    app_name: str = "slicewise",
    *,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    packages: Sequence[str] = (),
) -> SparkSession:
    """A SparkSession on this machine, set up for slicewise.

    Workers run this very Python, state is kept in RocksDB, there are as many shuffle partitions as cores, and logs are
    quiet. If there is a session already, that one is given back as it is: what its owner configured is never touched.

    Parameters
    ----------
    app_name : str, optional
        The name of the application, as Spark shows it.
    master : str, optional
        ``"local[*]"`` by default.
    conf : mapping of str to str, optional
        Further settings; they win over ours.
    packages : sequence of str, optional
        Maven coordinates, as ``spark-submit --packages`` takes them.

    Returns
    -------
    SparkSession
        The session; stop it when you are done.

    Examples
    --------
    >>> import slicewise as sw
    >>> spark = sw.spark.local_session(conf={"spark.driver.memory": "4g"})
    >>> sw.spark.local_session() is spark
    True
    """
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    check_java()
    home = find_spark_home()
    if isinstance(home, Problem):
        raise home.error()
    # Without the variable Spark would take whatever `python3` is.
    _check_python(os.environ.setdefault("PYSPARK_PYTHON", sys.executable), streams=False)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    cores = os.cpu_count() or 2
    settings = {
        "spark.sql.shuffle.partitions": str(cores),
        PROVIDER: ROCKSDB,
        # A micro-batch writes its changes, and not a new copy of the whole state.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Before 4.2 the heartbeat of `idle` would otherwise make one micro-batch of all that is there.
        "spark.sql.streaming.triggerAvailableNowWrapper.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # With any other limit Spark measures the whole batch after every row that it adds.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={QUIET.as_uri()}",
        "spark.driver.memory": "2g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    if packages:
        settings["spark.jars.packages"] = ",".join(packages)
    builder = SparkSession.builder.appName(app_name).master(master or "local[*]")
    for name, value in {**settings, **(conf or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def check_java() -> None:
    """Refuse to go on without a Java that Spark runs on."""
    java = find_java()
    if isinstance(java, Problem):
        raise SetupError(f"Spark needs Java {OLDEST_JAVA} or newer: {java.what}; {java.fix}")


def check_streaming(session: SparkSession) -> None:
    """Refuse to start a stream without what its state needs. The session is not changed; the error shows how to."""
    for package, requirement in (("google.protobuf", "protobuf"), ("pandas", "'pandas<3'")):
        if not _is_there(package):
            raise SetupError(
                f"Spark keeps the state of streams with {requirement}, which is not installed; "
                f"pip install {requirement}"
            )
    provider = setting(session, PROVIDER, ROCKSDB)
    if provider != ROCKSDB:
        raise SetupError(
            f"the state of a stream is kept in RocksDB, and this session has {provider.split('.')[-1] or 'none'}; "
            f"spark.conf.set({PROVIDER!r}, {ROCKSDB!r})"
        )


def setting(session: SparkSession, name: str, default: str) -> str:
    """A setting of a session; the default where it has none, or where a locked-down platform does not let it be read.

    What it is there, Spark itself will say when it matters.
    """
    try:
        return str(session.conf.get(name, default) or default)
    except Exception:  # every platform refuses in a way of its own
        return default


def partitions_to_keep(session: SparkSession) -> int | None:
    """The number of partitions of a shuffle whose results are far more than its bytes.

    Spark puts partitions of less than a megabyte together, which leaves one core to do all that follows; those of a
    number that is asked for stay as they are. None where that would be too many for the cores, or nobody knows these.
    """
    try:
        cores = session.sparkContext.defaultParallelism
    except Exception:  # Spark Connect, or a platform that shows no context
        return None
    partitions = setting(session, "spark.sql.shuffle.partitions", "")
    fits = partitions.isdigit() and int(partitions) <= PARTITIONS_PER_CORE * cores  # some platforms say "auto"
    return int(partitions) if fits else None


def check_workers(session: SparkSession, *, streams: bool) -> None:
    """Refuse workers on this machine whose Python cannot run slicewise; for streams it needs more packages."""
    try:
        context = session.sparkContext
        python, local = context.pythonExec, str(context.master).startswith("local")
    except Exception:  # Spark Connect, whose server knows its workers, or a platform that shows no context
        return
    if local:
        _check_python(python, streams=streams)


def share_py_files(session: SparkSession) -> None:
    """Let the Python that Spark starts on the driver for each stream import what the driver itself imports.

    Spark asks that Python which state a stream keeps before its first micro-batch. Unlike the workers of executors it
    does not get ``--py-files`` and ``addPyFile``, but it does get the environment of the session's functions.
    """
    try:
        from pyspark import SparkFiles  # the thin client has none

        environment = session.sparkContext.environment
        folder = SparkFiles.getRootDirectory()
    except Exception:  # Spark Connect, where that Python is the server's, or a platform that shows no context
        return
    if not os.listdir(folder):
        return
    shared = [path for path in sys.path if Path(path).is_relative_to(folder)]
    known = environment.get("PYTHONPATH", "").split(os.pathsep)
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*shared, *filter(None, known)]))


@contextmanager
def shared_workers(session: SparkSession) -> Iterator[None]:
    """Let stateful code that is described meanwhile run in the workers of all other functions of a session.

    Spark starts workers for every environment, and that of stateful code lacks one variable, by which Python leaves its
    own frames out of an error. With it the processes that have packed rows, and imported what that takes, also keep the
    shards: half as many of them have to start.
    """
    environment = _environment(session)
    shared = setting(session, "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled", "true") == "true"
    if environment is None or not shared or SIMPLIFIED in environment:
        yield
        return
    environment[SIMPLIFIED] = "1"
    try:
        yield
    finally:
        del environment[SIMPLIFIED]


def _environment(session: SparkSession) -> dict[str, str] | None:
    """The environment of the session's functions; None for Spark Connect, and where a platform shows no context."""
    try:
        return session.sparkContext.environment
    except Exception:
        return None


def _check_python(python: str, *, streams: bool) -> None:
    problem = python_problem(python, streams=streams)
    if problem is not None:
        raise SetupError(f"{problem.what}; before the session starts: {problem.fix}")


def _is_there(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:
        return False
