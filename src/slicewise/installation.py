"""Installation: what must be on this machine before Spark can run here. A leaf: it imports and starts nothing of Spark.

Whatever is missing is a ``Problem`` with the command that mends it: ``local_session`` and ``run`` raise it as an error,
``slicewise doctor`` prints it.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slicewise.errors import MissingPackageError, SetupError

__all__ = [
    "INSTALL_JAVA",
    "OLDEST_JAVA",
    "OLDEST_PYSPARK",
    "Java",
    "Problem",
    "ask",
    "find_java",
    "find_spark_home",
    "old_pyspark",
    "python_problem",
    "without_pyspark",
]

OLDEST_JAVA = 17
OLDEST_PYSPARK = (4, 0)
INSTALL_JAVA = "sudo apt install openjdk-17-jre-headless (or: brew install openjdk@17, conda install openjdk=17)"
_TIMEOUT_SECONDS = 60
#: What workers import, by the names that pip knows: always, and for the state of streams.
_ON_WORKERS = {"numpy": "numpy", "pyarrow": "pyarrow", "slicewise": "slicewise"}
_FOR_STREAMS = {"pandas": "pandas", "protobuf": "google.protobuf"}
_PROBE = """
import importlib, json, sys
missing = []
for name, module in json.loads(sys.argv[1]).items():
    try:
        importlib.import_module(module)
    except ImportError:
        missing.append(name)
print(json.dumps(["%d.%d" % sys.version_info[:2], missing]))
"""


@dataclass(frozen=True)
class Problem:
    """Something that is not as Spark needs it: what it is, and the command that mends it."""

    what: str
    fix: str

    def error(self) -> SetupError:
        """The problem as an error."""
        return SetupError(f"{self.what}; {self.fix}")


@dataclass(frozen=True)
class Java:
    """A Java that Spark runs on."""

    program: str
    version: int


def find_java() -> Java | Problem:
    """The Java that Spark would start: that of ``JAVA_HOME`` if it is set, even if there is none; else that on PATH."""
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    if not home:
        return _java(on_path) if on_path else Problem("Java is not on PATH, and JAVA_HOME is not set", INSTALL_JAVA)
    program = shutil.which("java", path=str(Path(home) / "bin"))
    java = _java(program) if program else Problem("there is no bin/java", INSTALL_JAVA)
    if isinstance(java, Java):
        return java
    what = f"JAVA_HOME is {home}, and {java.what}"
    other = _java(on_path) if on_path else None
    if isinstance(other, Java):
        return Problem(f"{what}; Java {other.version} is on PATH ({other.program})", "unset JAVA_HOME")
    return Problem(what, f"{INSTALL_JAVA}, then unset JAVA_HOME")


def _java(program: str) -> Java | Problem:
    version = re.search(r'version "(?:1\.)?(\d+)', ask(program, "-version") or "")
    if version is None:
        return Problem(f"{program} does not report its version", INSTALL_JAVA)
    number = int(version[1])
    if number < OLDEST_JAVA:
        return Problem(f"{program} is Java {number}", INSTALL_JAVA)
    return Java(program, number)


def find_spark_home() -> Path | Problem | None:
    """``SPARK_HOME`` if it is set; None means the Spark that comes with pyspark."""
    home = os.environ.get("SPARK_HOME")
    if not home:
        return None
    if not (Path(home) / "bin" / "spark-submit").exists():
        return Problem(f"SPARK_HOME is {home}, and there is no bin/spark-submit", "unset SPARK_HOME")
    return Path(home)


def python_problem(python: str, *, streams: bool) -> Problem | None:
    """Why workers cannot run slicewise with this Python, or None if they can; streams need more packages.

    The Python that runs this code is not probed: it has slicewise, and its pandas and protobuf are checked elsewhere.
    """
    origin = "PYSPARK_PYTHON" if os.environ.get("PYSPARK_PYTHON") else "PYSPARK_PYTHON is not set"
    what = f"Spark's workers run {python} ({origin})"
    fix = f"export PYSPARK_PYTHON={shlex.quote(sys.executable)}"
    program = shutil.which(python)
    if program is None:
        return Problem(f"{what}, which is not a program", fix)
    # One folder, since two environments may share one binary; and one binary, since a folder may hold two Pythons.
    if os.path.dirname(program) == os.path.dirname(sys.executable) and os.path.samefile(program, sys.executable):
        return None
    probed = _probe(program)
    if probed is None:
        return Problem(f"{what}, which is not a Python interpreter", fix)
    version, absent = probed
    here = "{}.{}".format(*sys.version_info[:2])
    if version != here:
        return Problem(f"{what}, which is Python {version}, but here it is {here}", fix)
    missing = [name for name in absent if streams or name in _ON_WORKERS]
    return Problem(f"{what}, which lacks {_listed(missing)}", fix) if missing else None


@functools.cache
def _probe(program: str) -> tuple[str, tuple[str, ...]] | None:
    """The version of a Python and what it lacks of all that workers import; None if it is not a Python interpreter."""
    printed = ask(program, "-c", _PROBE, json.dumps(_ON_WORKERS | _FOR_STREAMS))
    # Packages that cannot be imported may complain about it, before and behind.
    answers = [line for line in (printed or "").splitlines() if line.startswith("[")]
    try:
        version, missing = json.loads(answers[-1] if answers else "")
    except (ValueError, TypeError):
        return None
    return str(version), tuple(missing)


def _listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def without_pyspark(error: ImportError) -> ImportError:
    """The error to raise instead of ``error``, which an import of pyspark raised."""
    pyspark = getattr(sys.modules.get("pyspark"), "__version__", None)
    missing = (error.name or "").split(".")[0]
    if pyspark is None and missing in ("pyspark", "py4j"):
        return MissingPackageError(
            f"Spark is not available: {missing} is not installed; pip install 'slicewise[spark]'"
        )
    return (old_pyspark(pyspark) if pyspark is not None else None) or error


def old_pyspark(version: str) -> MissingPackageError | None:
    """Why this version of pyspark cannot run slicewise, or None if it can."""
    if tuple(map(int, re.findall(r"\d+", version)[:2])) >= OLDEST_PYSPARK:
        return None
    oldest = ".".join(map(str, OLDEST_PYSPARK))
    return MissingPackageError(
        f"slicewise runs on Spark {oldest} and newer, and this is pyspark {version}, whose streams cannot hold its "
        f"state; pip install 'pyspark>={oldest}', or choose a runtime of your service with Spark 4 (Databricks 17.3 "
        "LTS, Fabric 2.0, EMR Spark 8); workload.operator() needs no Spark"
    )


def ask(*command: str) -> str | None:
    """The output of a program; None if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout + done.stderr
