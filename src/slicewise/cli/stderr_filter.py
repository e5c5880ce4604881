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
    """Whether a line says nothing that a user of a job would want to know.

    >>> is_noise('Setting default log level to "WARN".'), is_noise("java.lang.OutOfMemoryError: Java heap space")
    (True, False)
    """
    return _NOISE.match(line) is not None


@contextlib.contextmanager
def filtered(say: Callable[[str], None]) -> Iterator[None]:
    """Programs that are started meanwhile write their errors to us for good; ``say`` gets what is no noise.

    Nothing is done where the error output is not that of the process, as in tests.
    """
    if sys.stderr is not sys.__stderr__ or sys.stderr is None:
        yield
        return
    reading, writing = os.pipe()
    threading.Thread(target=_forward, args=(reading, say), daemon=True).start()
    before = os.dup(2)
    os.dup2(writing, 2)
    os.close(writing)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def _forward(reading: int, say: Callable[[str], None]) -> None:
    with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if not is_noise(line):
                say(line.rstrip("\n"))
