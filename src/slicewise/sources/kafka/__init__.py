"""Kafka from PyPI alone: a source of Spark on confluent-kafka, with the columns and options of Spark's own connector.

Spark's connector is a package of Maven's; where those are forbidden, or there is no way to Maven, this one does with
``pip install 'slicewise[kafka]'`` on the driver and the workers. Offsets are kept in Spark's checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from slicewise.installation import without_pyspark
from slicewise.sources.kafka.cluster import client_library

try:
    from slicewise.sources.kafka.source import NAME, KafkaSource
except ImportError as error:
    raise without_pyspark(error) from error

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["NAME", "KafkaSource", "register"]


def register(spark: SparkSession) -> None:
    """Let a session read from Kafka: afterwards there is the format ``"slicewise_kafka"``.

    The columns are ``key``, ``value``, ``topic``, ``partition``, ``offset``, ``timestamp``, ``timestampType`` and, with
    ``includeHeaders``, ``headers``. Options have the names and the meaning of Spark's own connector; what begins with
    ``kafka.`` goes to the client, which is librdkafka.

    Parameters
    ----------
    spark
        A session, classic or of Spark Connect. On its workers, and where its driver plans streams, slicewise and
        confluent-kafka must be installed.

    Examples
    --------
    With brokers, ``spark.readStream.format("slicewise_kafka").option("kafka.bootstrap.servers", "host:9092")
    .option("subscribe", "clicks").load()`` is a stream. Options are checked before any broker is asked:

    >>> from slicewise.sources.kafka.options import read_options
    >>> read_options({"kafka.bootstrap.servers": "host:9092", "subscribe": "a", "minPartition": "8"}, stream=True)
    Traceback (most recent call last):
        ...
    slicewise.errors.QueryError: there is no option 'minpartition'; did you mean 'minPartitions'?
    """
    if not type(spark).__module__.startswith("pyspark.sql.connect"):  # what reads is the server's, not this client's
        client_library()
    spark.dataSource.register(KafkaSource)
