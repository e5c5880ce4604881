"""The Spark session that all tests of a process share: a JVM takes seconds to start, and more to get warm."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: On a busy machine a Python that Spark starts may need longer than the 15 seconds that it is given.
PATIENT = {"spark.python.authenticate.socketTimeout": "120s"}


def shared_session() -> SparkSession:
    """The session of this process, started when it is first asked for; with an odd number of shuffle partitions."""
    from slicewise.spark import local_session

    return local_session("tests", master="local[2]", conf=PATIENT | {"spark.sql.shuffle.partitions": "3"})
