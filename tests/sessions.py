"""The Spark session that all tests of a process share: a JVM takes seconds to start, and more to get warm."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: On a busy machine a Python that Spark starts may need longer than the 15 seconds that it is given.
PATIENT = {"spark.python.authenticate.socketTimeout": "120s"}
#: Spark compiles each plan that is new to it, and tests have thousands of plans over a few rows: interpreted, they take
#: a third less time. What users run is compiled; so are the tests with the marker `matrix`, and those of all campaigns.
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


def shared_session() -> SparkSession:
    """The session of this process, started when it is first asked for; with an odd number of shuffle partitions."""
    from slicewise.spark import local_session

    conf = (
        PATIENT
        | {"spark.sql.shuffle.partitions": "3"}
        | (COMPILED if "SLICEWISE_COMPILED" in os.environ else INTERPRETED)
    )
    return local_session("tests", master="local[2]", conf=conf)


@contextmanager
def compiled(session: SparkSession) -> Iterator[None]:
    """Let Spark compile what is run meanwhile, as it does for users."""
    before = {name: session.conf.get(name) for name in COMPILED}
    _configure(session, COMPILED)
    try:
        yield
    finally:
        _configure(session, before)


def _configure(session: SparkSession, conf: Mapping[str, str | None]) -> None:
    for name, value in conf.items():
        session.conf.set(name, str(value))
