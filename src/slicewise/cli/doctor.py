"""Doctor: is everything here that jobs on Spark need? Says what there is, or what is wrong and what mends it.

Nothing of Spark is imported or started; packages are looked up, programs are asked for their versions.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from slicewise.cli.status import size

__all__ = ["CHECKS", "Finding", "examine"]

_PIP = f"{Path(sys.executable).name} -m pip install"
_JAVA_FIX = "sudo apt install openjdk-17-jre-headless (or: brew install openjdk@17, conda install openjdk=17)"
_TIMEOUT_SECONDS = 30
_MEMORY_NEEDED = 3 * 2**30


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's: what was looked at, whether it is fine, what was found, and what mends it."""

    name: str
    ok: bool
    said: str
    fix: str | None = None


def examine() -> list[Finding]:
    """Everything looked at, in order."""
    return [check() for check in CHECKS]


def python() -> Finding:
    found = ".".join(map(str, sys.version_info[:3]))
    ok = sys.version_info >= (3, 11)
    return Finding(
        "Python", ok, found if ok else f"{found}; 3.11 or newer is needed", None if ok else "python3.11 -m venv"
    )


def java() -> Finding:
    """Java 17 or newer, with the module that Spark starts it with."""
    program = _java_program()
    if program is None:
        return Finding("Java", False, "not found, neither in JAVA_HOME nor on PATH", _JAVA_FIX)
    said = _ask(program, "-version")
    version = re.search(r'version "(\d+)(?:\.(\d+))?', said or "")
    if version is None:
        return Finding("Java", False, f"{program} does not say its version", _JAVA_FIX)
    number = int(version[2] or 0) if version[1] == "1" else int(version[1])
    if number < 17:
        return Finding("Java", False, f"{number} ({program}); Spark needs 17 or newer", _JAVA_FIX)
    modules = _ask(program, "--list-modules") or ""
    if modules and "jdk.incubator.vector" not in modules:
        wrong = f"{number} ({program}) lacks the module jdk.incubator.vector, which Spark asks for"
        return Finding("Java", False, wrong, _JAVA_FIX)
    return Finding("Java", True, f"{number} ({program})")


def _java_program() -> str | None:
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=str(Path(home) / "bin"))
    return shutil.which("java")


def _ask(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout + done.stderr


def workers() -> Finding:
    """The Python of Spark's workers is the one that runs here."""
    said = os.environ.get("PYSPARK_PYTHON")
    name = "Python of the workers"
    if not said:
        # Without the variable Spark would take whatever `python3` is; sessions of slicewise set it.
        return Finding(name, True, f"{sys.executable} (PYSPARK_PYTHON is not set; slicewise sets it)")
    fix = f"export PYSPARK_PYTHON={sys.executable}"
    program = shutil.which(said)
    if program is None:
        return Finding(name, False, f"PYSPARK_PYTHON is {said}, which is no program", fix)
    found = _ask(program, "-c", "import sys; print(sys.prefix); print('%d.%d' % sys.version_info[:2])")
    prefix, _, version = (found or "").strip().partition("\n")
    mine = ".".join(map(str, sys.version_info[:2]))
    if version != mine:
        return Finding(name, False, f"PYSPARK_PYTHON is {said} (Python {version or 'unknown'}); here is {mine}", fix)
    if os.path.realpath(prefix) != os.path.realpath(sys.prefix):
        return Finding(name, False, f"PYSPARK_PYTHON is {said}, another environment than {sys.prefix}", fix)
    return Finding(name, True, f"{said}, the same as here")


def pyspark() -> Finding:
    found = _version("pyspark")
    fix = f"{_PIP} 'pyspark>=4.3'"
    if found is None:
        return Finding("pyspark", False, "not installed", fix)
    ok = _numbers(found) >= (4, 3)
    return Finding("pyspark", ok, found if ok else f"{found}; 4.3 or newer is needed", None if ok else fix)


def protobuf() -> Finding:
    found, fix = _version("protobuf"), f"{_PIP} 'protobuf>=5'"
    if found is None:
        wrong = "not installed; Spark's streams with state need it, and pip does not bring it with pyspark"
        return Finding("protobuf", False, wrong, fix)
    ok = _numbers(found) >= (5,)
    return Finding("protobuf", ok, found if ok else f"{found}; 5 or newer is needed", None if ok else fix)


def pandas() -> Finding:
    found, fix = _version("pandas"), f"{_PIP} 'pandas>=2.2,<3'"
    if found is None:
        return Finding("pandas", False, "not installed; Spark's streams with state need it", fix)
    ok = (2, 2) <= _numbers(found) < (3,)
    return Finding("pandas", ok, found if ok else f"{found}; Spark works with 2.2 up to below 3", None if ok else fix)


def pyarrow() -> Finding:
    found, fix = _version("pyarrow"), f"{_PIP} 'pyarrow>=15'"
    if found is None:
        return Finding("pyarrow", False, "not installed", fix)
    ok = _numbers(found) >= (15,)
    return Finding("pyarrow", ok, found if ok else f"{found}; 15 or newer is needed", None if ok else fix)


def rocksdb() -> Finding:
    """The state store of streams, one of the jars of Spark."""
    jars = _jars()
    if jars is None:
        return Finding("RocksDB", False, "comes with pyspark, which is not installed", f"{_PIP} 'pyspark>=4.3'")
    found = sorted(p.name for p in jars.glob("rocksdbjni-*.jar"))
    if not found:
        return Finding("RocksDB", False, f"no rocksdbjni jar in {jars}", f"{_PIP} --force-reinstall pyspark")
    return Finding("RocksDB", True, found[-1])


def memory() -> Finding:
    """Three gigabytes: two for the driver of our sessions, one for the Python workers."""
    free = _free_memory()
    if free is None:
        return Finding("memory", True, "cannot be told on this system")
    ok = free >= _MEMORY_NEEDED
    said = f"{size(free)} free"
    fix = "close something, or give Spark less: slicewise run job.toml --conf spark.driver.memory=1g"
    return Finding("memory", ok, said if ok else f"{said}; 3 GiB are needed", None if ok else fix)


CHECKS: tuple[Callable[[], Finding], ...] = (
    *(python, java, workers, pyspark, protobuf, pandas, pyarrow, rocksdb, memory),
)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _jars() -> Path | None:
    home = os.environ.get("SPARK_HOME")
    if home:
        return Path(home) / "jars"
    spec = importlib.util.find_spec("pyspark")
    return Path(spec.origin).parent / "jars" if spec is not None and spec.origin else None


def _free_memory() -> int | None:
    """What a new process may take: of the machine, or of the container it runs in where that is less."""
    found = []
    try:
        told = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
        found += [int(told[1]) * 1024] if told else []
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii").strip()
        cached = re.search(r"inactive_file (\d+)", Path("/sys/fs/cgroup/memory.stat").read_text(encoding="ascii"))
        if limit.isdecimal():
            found.append(int(limit) - int(used) + (int(cached[1]) if cached else 0))
    except OSError:
        pass
    return min(found) if found else None
