"""Stderr filter: keeps harmless lines of Spark and its workers off the terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator

__all__ = ["filtered", "is_noise"]

_NOISE = re.compile(
    r"""\s*$
    | WARNING:\ Using\ incubator\ modules
    | Using\ Spark's\ default\ log4j
    | Setting\ (default|Spark)\ log\ level
    | To\ adjust\ logging\ level
    | .*\ WARN\ (Utils|NativeCodeLoader):
    | .*Streaming\ TransformWithState\w*\ Python\ worker
    """,
    re.VERBOSE,
)


def is_noise(line: str) -> bool:
    """Whether a line is of no use to someone who runs a job.

    >>> is_noise('Setting default log level to "WARN".'), is_noise("java.lang.OutOfMemoryError: Java heap space")
    (True, False)
    """
    return _NOISE.match(line) is not None


@contextlib.contextmanager
def filtered(write_line: Callable[[str], None]) -> Iterator[None]:
    """Filter the error output of programs that are started in this context, for as long as they run.

    ``write_line`` gets every line that is not noise. Does nothing where ``sys.stderr`` is not the error output of the
    process, as in tests.
    """
    if sys.stderr is not sys.__stderr__ or sys.stderr is None:
        yield
        return
    read_end, write_end = os.pipe()
    threading.Thread(target=_forward, args=(read_end, write_line), daemon=True).start()
    stderr_before = os.dup(2)
    os.dup2(write_end, 2)
    os.close(write_end)
    try:
        yield
    finally:
        os.dup2(stderr_before, 2)
        os.close(stderr_before)


def _forward(read_end: int, write_line: Callable[[str], None]) -> None:
    with os.fdopen(read_end, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not is_noise(line):
                write_line(line.rstrip("\n"))
