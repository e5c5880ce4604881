"""Jobs that are killed: a process of its own, with a JVM and Python workers, that ends without notice."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


class Job:
    """A module that is run in a session of its own, so that all its processes can be found: driver, JVM and workers.

    ``module`` is called with ``folder``, where its log is kept, and with ``arguments``.
    """

    def __init__(self, module: str, folder: Path, *arguments: str) -> None:
        self.log = folder / "log"
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", module, str(folder), *arguments]
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True)

    def kill(self) -> None:
        """All at once, with no time to say goodbye. Python workers have a process group of their own."""
        os.kill(self.process.pid, signal.SIGSTOP)  # so that it starts nothing while we look
        for pid in [*_of_session(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):  # a worker whose JVM is gone leaves by itself
                os.kill(pid, signal.SIGKILL)
        self.process.wait()

    def is_over(self) -> bool:
        """Whether it came to its end, which must be a good one."""
        code = self.process.poll()
        assert code in (None, 0), self.log.read_text()[-3000:]
        return code == 0


def _of_session(session: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == session:
                found.append(int(entry.name))
    return found


def files_of(folder: Path, pattern: str) -> set[Path]:
    """Files that Spark has written, without their checksums."""
    return {path for path in folder.glob(pattern) if not path.name.endswith(".crc")}
