"""Shipping: slicewise on its way to workers that lack it, and the proof that it has arrived."""

from __future__ import annotations

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from slicewise.archive import write_archive
from slicewise.spark import carrying
from slicewise.spark.carrying import Carried, carried_function
from slicewise.spark.probing import Probe, probe
from slicewise.spark.streaming import heartbeat

__all__ = ["carried", "for_workers", "ship"]

#: What was shipped to which session of Spark Connect: what a stream sends carries it along.
_SHIPPED: WeakKeyDictionary[SparkSession, bytes] = WeakKeyDictionary()


def ship(session: SparkSession) -> Probe:
    """Send slicewise to the workers of a session, and look whether it has arrived.

    NumPy, Arrow and, for streams, pandas and protobuf must be there already: they are not pure Python. Nothing is
    installed; the package is there for as long as the session is.

    Parameters
    ----------
    session : SparkSession
        Classic or of Spark Connect.

    Returns
    -------
    Probe
        What the workers have, and whether a stream runs; print it.

    Notes
    -----
    The package is a zip file that goes to the executors as an artifact (`SparkSession.addArtifacts`). The Python that
    Spark starts on the driver for a stream gets it by `PYTHONPATH` in a classic session. In one of Spark Connect what a
    stream sends carries the package along.

    Examples
    --------
    Before the first ``run``, on a session of its own:

    >>> import slicewise as sw
    >>> spark = sw.spark.local_session().newSession()
    >>> ship(spark).problems
    []
    """
    path = _archive()
    session.addArtifacts(str(path), pyfile=True)
    if _is_remote(session):
        _SHIPPED[session] = path.read_bytes()
        for module in (carrying, heartbeat):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return probe(session)


@functools.cache
def _archive() -> Path:
    """The package as a file that stays for as long as this process: executors that start later fetch it from here."""
    folder = Path(tempfile.mkdtemp(prefix="slicewise-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_archive(folder / "slicewise.zip")
    return folder / "slicewise.zip"


def carried(thing: Any, session: SparkSession) -> Any:
    """Something that a stream sends, with slicewise around it where that was shipped to a session of Spark Connect."""
    archive = _SHIPPED.get(session)
    return thing if archive is None else Carried(partial(cloudpickle.dumps, thing), archive)


def for_workers(function: Callable[..., Any], session: SparkSession) -> Callable[..., Any]:
    """The same for a function."""
    held = carried(function, session)
    return carried_function(held) if isinstance(held, Carried) else function


def _is_remote(session: SparkSession) -> bool:
    return ".connect." in type(session).__module__
