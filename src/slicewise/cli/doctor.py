"""Doctor: checks that everything jobs on Spark need is installed, and how to fix what is not.

Looks packages up and asks programs for their versions. Spark is imported and started only where workers shall be asked.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from slicewise.cli.status import size
from slicewise.installation import (
    INSTALL_JAVA,
    OLDEST_JAVA,
    OLDEST_PYSPARK,
    Problem,
    ask,
    find_java,
    find_spark_home,
    python_problem,
)

__all__ = ["CHECKS", "Finding", "examine", "examine_workers"]

_PIP = f"{Path(sys.executable).name} -m pip install"
_OLDEST = ".".join(map(str, OLDEST_PYSPARK))
_MEMORY_NEEDED = 3 * 2**30


@dataclass(frozen=True)
class Finding:
    """The outcome of one check: its name, whether it passed, a detail, and a fix if it failed."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


def examine() -> list[Finding]:
    """The outcomes of all checks, in order."""
    return [check() for check in CHECKS]


def examine_workers(master: str | None, remote: str | None) -> list[Finding]:
    """What the workers of a cluster, or of a Spark Connect server, have; and whether a stream runs there."""
    from slicewise.spark.probing import open_session, probe

    session = open_session(master, remote)
    try:
        probed = probe(session)
    finally:
        session.stop()
    findings = []
    for worker in probed.workers:
        problems = probed.problems_of(worker)
        findings.append(Finding("worker", not problems, str(worker), "; ".join(problems) or None))
    streams = Finding("stream", probed.stream is None, probed.stream or "a micro-batch went through")
    return [*findings, streams]


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Finding(
        "Python", ok, version if ok else f"{version}; 3.11 or newer is needed", None if ok else "python3.11 -m venv"
    )


def java() -> Finding:
    """Java 17 or newer, with the module that Spark starts it with; the thin client of Spark Connect needs none."""
    if _is_thin():
        return Finding("Java", True, "not needed: pyspark-client starts no Spark of its own")
    java = find_java()
    if isinstance(java, Problem):
        return Finding("Java", False, f"{java.what}; Spark needs {OLDEST_JAVA} or newer", java.fix)
    modules = ask(java.program, "--list-modules") or ""
    if modules and "jdk.incubator.vector" not in modules:
        wrong = f"{java.version} ({java.program}) lacks the module jdk.incubator.vector, which Spark asks for"
        return Finding("Java", False, wrong, INSTALL_JAVA)
    return Finding("Java", True, f"{java.version} ({java.program})")


def workers() -> Finding:
    """The Python of Spark's workers is this one, or has what they need."""
    name = "Python of the workers"
    python = os.environ.get("PYSPARK_PYTHON")
    if not python:
        # Without the variable Spark would run whatever `python3` is; sessions of slicewise set it.
        return Finding(name, True, f"{sys.executable} (PYSPARK_PYTHON is not set; slicewise sets it)")
    problem = python_problem(python, streams=True)
    if problem is not None:
        return Finding(name, False, problem.what, problem.fix)
    return Finding(name, True, f"{python} (PYSPARK_PYTHON), which has everything they need")


def pyspark() -> Finding:
    """Spark's Python, whole or as a thin client; not both, because they have the same files."""
    whole, thin = _version("pyspark"), _version("pyspark-client")
    if whole is not None and thin is not None:
        both = f"pyspark {whole} and pyspark-client {thin} are both installed, and overwrite each other's files"
        mend = _PIP.replace(" install", " uninstall")
        return Finding("pyspark", False, both, f"{mend} pyspark pyspark-client, then install one of them")
    version, fix = whole or thin, f"{_PIP} 'pyspark>={_OLDEST}'"
    if version is None:
        return Finding("pyspark", False, "not installed", fix)
    shown = f"{version} (pyspark-client, for Spark Connect)" if thin else version
    ok = _numbers(version) >= OLDEST_PYSPARK
    return Finding("pyspark", ok, shown if ok else f"{shown}; {_OLDEST} or newer is needed", None if ok else fix)


def protobuf() -> Finding:
    version, fix = _version("protobuf"), f"{_PIP} 'protobuf>=5.28.3'"
    if version is None:
        wrong = "not installed; Spark's streams with state need it, and pip does not bring it with pyspark"
        return Finding("protobuf", False, wrong, fix)
    ok = _numbers(version) >= (5, 28, 3)
    return Finding("protobuf", ok, version if ok else f"{version}; 5.28.3 or newer is needed", None if ok else fix)


def pandas() -> Finding:
    version, fix = _version("pandas"), f"{_PIP} 'pandas>=2.2,<3'"
    if version is None:
        return Finding("pandas", False, "not installed; Spark's streams with state need it", fix)
    ok = (2, 2) <= _numbers(version) < (3,)
    return Finding("pandas", ok, version if ok else f"{version}; Spark needs >=2.2,<3", None if ok else fix)


def pyarrow() -> Finding:
    version, fix = _version("pyarrow"), f"{_PIP} 'pyarrow>=16'"
    if version is None:
        return Finding("pyarrow", False, "not installed", fix)
    ok = _numbers(version) >= (16,)
    return Finding("pyarrow", ok, version if ok else f"{version}; 16 or newer is needed", None if ok else fix)


def rocksdb() -> Finding:
    """The state store of streams, one of Spark's jars."""
    if _is_thin():
        return Finding("RocksDB", True, "not needed here: the server keeps the state")
    home = find_spark_home()
    if isinstance(home, Problem):
        return Finding("RocksDB", False, home.what, home.fix)
    jars = home / "jars" if home is not None else _jars()
    if jars is None:
        return Finding("RocksDB", False, "comes with pyspark, which is not installed", f"{_PIP} 'pyspark>={_OLDEST}'")
    names = sorted(p.name for p in jars.glob("rocksdbjni-*.jar"))
    if not names:
        return Finding("RocksDB", False, f"no rocksdbjni jar in {jars}", f"{_PIP} --force-reinstall pyspark")
    return Finding("RocksDB", True, names[-1])


def memory() -> Finding:
    """Three gigabytes: two for the driver of our sessions, one for the Python workers."""
    free = _free_memory()
    if free is None:
        return Finding("memory", True, "unknown on this system")
    ok = free >= _MEMORY_NEEDED
    detail = f"{size(free)} free"
    fix = "close something, or give Spark less: slicewise run job.toml --conf spark.driver.memory=1g"
    return Finding("memory", ok, detail if ok else f"{detail}; 3 GiB are needed", None if ok else fix)


CHECKS: tuple[Callable[[], Finding], ...] = (
    *(python, java, workers, pyspark, protobuf, pandas, pyarrow, rocksdb, memory),
)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _is_thin() -> bool:
    """Whether Spark is here as a client alone."""
    return _version("pyspark") is None and _version("pyspark-client") is not None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _jars() -> Path | None:
    """The jars that come with pyspark."""
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec is not None and spec.origin else None


def _free_memory() -> int | None:
    """The memory a new process may take: that of the machine, or of its container if that is less."""
    free = []
    try:
        available = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        free += [int(available[1]) * 1024] if available else []
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
        cached = re.search(r"inactive_file (\d+)", Path("/sys/fs/cgroup/memory.stat").read_text(encoding="ascii"))
        if limit.isdecimal():
            free.append(int(limit) - int(used) + (int(cached[1]) if cached else 0))
    except OSError:
        pass
    return min(free) if free else None
