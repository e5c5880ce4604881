"""The Kafka source as Spark sees it: a Python data source, read as a batch or as a stream, with its rows in Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from slicewise.errors import DataError, QueryError
from slicewise.sources.kafka.cluster import Cluster, lost
from slicewise.sources.kafka.offsets import (
    LATEST,
    Range,
    TopicPartition,
    admitted,
    as_end,
    as_start,
    from_json,
    split,
    start_of,
    to_json,
)
from slicewise.sources.kafka.options import Options, read_options
from slicewise.sources.kafka.rows import ddl, to_arrow

__all__ = ["NAME", "KafkaReader", "KafkaSource", "KafkaStreamReader"]

#: The format to read from.
NAME = "slicewise_kafka"


class KafkaSource(DataSource):
    """Kafka topics as a Spark format. :func:`slicewise.sources.kafka.register` says how to use it.

    Spark makes one for every ``load()`` and calls its methods.

    Parameters
    ----------
    options
        What was given by ``option`` and ``options``, by name.

    Examples
    --------
    >>> source = KafkaSource({"subscribe": "clicks"})
    >>> source.name()
    'slicewise_kafka'
    >>> source.reader(None)
    Traceback (most recent call last):
        ...
    slicewise.errors.QueryError: `kafka.bootstrap.servers` is missing; say where the brokers are: "host:9092"
    """

    @classmethod
    def name(cls) -> str:
        """Under which Spark knows it."""
        return NAME

    def schema(self) -> str:
        """The columns; called by Spark at ``load()``, which is where wrong options should be found."""
        options = self._options(stream=not _is_batch_only(self.options))
        Cluster(options).close()
        return ddl(options.headers)

    def reader(self, schema: StructType) -> KafkaReader:
        """Called by Spark where a batch is planned."""
        return KafkaReader(self._options(stream=False))

    def streamReader(self, schema: StructType) -> KafkaStreamReader:
        """Called by Spark where a stream is planned."""
        options = self._options(stream=True)
        if options.limit is not None and not _ADMISSION:
            raise QueryError(
                "`maxOffsetsPerTrigger` needs Spark 4.2 or newer, where Python sources can be asked for less; "
                f"got {pyspark.__version__}; leave it out",
                parameter="maxOffsetsPerTrigger",
            )
        return KafkaStreamReader(options)

    def _options(self, *, stream: bool) -> Options:
        return read_options(dict(self.options), stream=stream)


def _is_batch_only(options: Mapping[str, str]) -> bool:
    """Whether options make sense for a batch alone: at ``load()`` Spark does not say which it will be."""
    return any(name.lower().startswith("ending") for name in options)


class _Ranges(InputPartition):
    """What one task reads."""

    def __init__(self, wanted: Range) -> None:
        super().__init__(wanted)


class KafkaReader(DataSourceReader):
    """Reads a batch: what lies between two offsets of each partition.

    Parameters
    ----------
    options
        What to read.
    """

    def __init__(self, options: Options) -> None:
        self.options = options

    def partitions(self) -> list[InputPartition]:
        """Called by Spark once, on the driver."""
        options, cluster = self.options, Cluster(self.options)
        try:
            cluster.check(options.subscription)
            there = cluster.partitions(options.subscription)
            start, end = cluster.resolve(options.start, there), cluster.resolve(options.end, there)
        finally:
            cluster.close()
        return _planned(options, {at: (start[at], self._end(at, start[at], end[at])) for at in there})

    def _end(self, at: TopicPartition, start: int, end: int) -> int:
        """Times need not grow with offsets, so that a later time may come first: there is nothing in between then."""
        if end >= start or self.options.start.is_time or self.options.end.is_time:
            return max(start, end)
        name = self.options.start.option
        raise QueryError(
            f"`{name}` of {at} is {start}, and reading ends at {end}; start before the end", parameter=name
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called by Spark on a worker; a batch without partitions has one of None."""
        if isinstance(partition, _Ranges):
            yield from _read(self.options, partition.value)


class _StreamReader(DataSourceStreamReader):
    """Reads a stream. Offsets are kept by Spark, so that a micro-batch that is repeated reads the same messages."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._connection: Cluster | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Workers get the options; each has a connection of its own."""
        return {"options": self.options, "_connection": None}

    @property
    def cluster(self) -> Cluster:
        """The connection of the driver, kept for as long as the stream runs."""
        if self._connection is None:
            self._connection = Cluster(self.options)
        return self._connection

    def initialOffset(self) -> dict[str, Any]:
        """Called by Spark where there is no checkpoint yet, and when it repeats the first micro-batch."""
        self.cluster.check(self.options.subscription)
        there = self.cluster.partitions(self.options.subscription)
        return as_start(self.cluster.resolve(self.options.start, there))

    def latest(self) -> dict[TopicPartition, int]:
        """How far the partitions go that there are now."""
        there = self.cluster.partitions(self.options.subscription)
        return self.cluster.offsets(dict.fromkeys(there, LATEST))

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputPartition]:
        """Called by Spark with what a micro-batch shall read."""
        before, after = start_of(start, end), from_json(end)
        gone = sorted(before.keys() - after.keys())
        if gone and self.options.fail_on_data_loss:
            raise DataError(lost(f"{gone[0]} is gone"))
        # A partition that has been added is read from its beginning.
        return _planned(self.options, {at: (before.get(at, 0), offset) for at, offset in after.items()})

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Called by Spark on a worker."""
        return _read(self.options, partition.value)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Called by Spark after a micro-batch, whose offsets it has kept: nothing is to be done."""

    def stop(self) -> None:
        """Called by Spark when the stream ends."""
        if self._connection is not None:
            self._connection.close()


try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    _ADMISSION = True
except ImportError:  # Spark 4.0 and 4.1
    _ADMISSION = False


if _ADMISSION:

    class KafkaStreamReader(_StreamReader, SupportsTriggerAvailableNow):
        """Reads a stream, with a limit per micro-batch if there is one, and to a fixed end under ``availableNow``.

        Parameters
        ----------
        options
            What to read.
        """

        def __init__(self, options: Options) -> None:
            super().__init__(options)
            self._last: dict[TopicPartition, int] | None = None
            self._seen: dict[TopicPartition, int] | None = None

        def __getstate__(self) -> dict[str, Any]:
            return super().__getstate__() | {"_last": None, "_seen": None}

        def prepareForTriggerAvailableNow(self) -> None:
            """Called by Spark at the start of a stream that ends with what is there."""
            self._last = self.latest()

        def getDefaultReadLimit(self) -> ReadLimit:
            """Called by Spark once: what a micro-batch may read, unless its trigger says otherwise."""
            limit = self.options.limit
            return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

        def latestOffset(self, start: Mapping[str, Any], limit: ReadLimit) -> dict[str, Any]:
            """Called by Spark whenever it looks for something new."""
            end = self._seen = self.latest() if self._last is None else self._last
            if isinstance(limit, ReadMaxRows):
                end = admitted(from_json(start), end, limit.max_rows)
            return as_end(end, start)

        def reportLatestOffset(self) -> dict[str, dict[str, int]] | None:
            """Called by Spark for its progress reports."""
            return None if self._seen is None else to_json(self._seen)

else:

    class KafkaStreamReader(_StreamReader):  # type: ignore[no-redef]
        """Reads a stream; Python sources of this Spark version have no limits.

        Parameters
        ----------
        options
            What to read.
        """

        def __init__(self, options: Options) -> None:
            super().__init__(options)
            self._start: dict[str, Any] | None = None

        def initialOffset(self) -> dict[str, Any]:
            """Called by Spark where there is no checkpoint yet, and when it repeats the first micro-batch."""
            self._start = super().initialOffset()
            return self._start

        def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]
            """Called by Spark whenever it looks for something new."""
            return as_end(self.latest(), self._start)


def _planned(options: Options, bounds: Mapping[TopicPartition, tuple[int, int]]) -> list[InputPartition]:
    """A task for each range that has something in it, or several where more are wanted."""
    ranges = []
    for at, (start, end) in bounds.items():
        if end < start and options.fail_on_data_loss:
            raise DataError(lost(f"{at} was read up to offset {start} and now ends at {end}"))
        # It was made anew, so that what it has now has not been read.
        ranges.append(Range(at, start if start <= end else 0, end))
    wanted = [r for r in ranges if r.start < r.end]
    return [_Ranges(r) for r in split(wanted, options.min_partitions)]


def _read(options: Options, wanted: Range) -> Iterator[pa.RecordBatch]:
    """The messages of a range, from a connection that ends with it."""
    cluster = Cluster(options)
    try:
        for messages in cluster.messages(wanted):
            yield to_arrow(messages, headers=options.headers)
    finally:
        cluster.close()
