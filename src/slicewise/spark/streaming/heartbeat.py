"""Heartbeat: micro-batches for a stream whose source has fallen silent, so that its watermark can follow the clock.

Spark starts a micro-batch when a source has something new. With ``idle`` a stream therefore has one source more: it has
a row whenever the clock has moved on by a beat, and that row becomes an empty pack for every shard. Timers of Spark
would do without a source, but a stream that has them runs one micro-batch after the other as fast as it can, and never
ends under ``availableNow``.

A pack has the time of its micro-batch, which Spark keeps with the offsets: a micro-batch that is repeated after a crash
finds the same silence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from slicewise.spark.streaming.packs import SHARD
from slicewise.spark.versions import SupportsTriggerAvailableNow

__all__ = ["NOW", "beat_interval", "is_heartbeat", "switched_message", "with_heartbeat"]

#: The column of packs that has the time of their micro-batch, in milliseconds.
NOW = "now"
#: What the source is called: in a session, and in the offsets of a checkpoint.
SOURCE = "slicewise_heartbeat"
#: How often there may be a beat, in milliseconds, however short or long ``idle`` is.
SHORTEST, LONGEST = 250, 60_000


def with_heartbeat(packs: DataFrame, shards: Sequence[int], idle: int) -> DataFrame:
    """Packs with the time of their micro-batch, and with an empty one for each shard whenever there is a beat.

    The heartbeat is the last of the stream's sources. ``idle`` is in microseconds.
    """
    session = packs.sparkSession
    session.dataSource.register(HeartbeatSource)
    beats = session.readStream.format(SOURCE).option("interval", beat_interval(idle)).load()
    empty = beats.select(F.explode(F.array(*map(F.lit, shards))).alias(SHARD))
    both = packs.unionByName(empty, allowMissingColumns=True)
    return both.withColumn(NOW, F.unix_millis(F.current_timestamp()))


def beat_interval(idle: int) -> int:
    """Milliseconds between two beats: silence of ``idle`` microseconds is noticed at most a quarter of it later.

    >>> beat_interval(30_000_000)
    7500
    """
    return min(max(idle // 4000, SHORTEST), LONGEST)


def is_heartbeat(offset: str) -> bool:
    """Whether an offset in a checkpoint is that of a heartbeat, and not of a source of the user's.

    >>> is_heartbeat('{"slicewise_heartbeat": 239318887}'), is_heartbeat('{"logOffset": 3}'), is_heartbeat("17")
    (True, False, False)
    """
    try:
        place = json.loads(offset)
    except ValueError:
        return False
    return isinstance(place, dict) and SOURCE in place


def switched_message(idle: bool) -> str:
    """What to do where ``idle`` is given now and was not when the checkpoint was written, or the other way round."""
    switch = "without `idle`, and this run has it; leave it out"
    if not idle:
        switch = "with `idle`, and this run has none; give one"
    return (
        f"the checkpoint was written {switch}, or start with a new checkpoint from the offsets that `sw.inspect` or "
        "`slicewise inspect` shows"
    )


class HeartbeatSource(DataSource):
    """A source that has something new whenever ``interval`` milliseconds have passed."""

    @classmethod
    def name(cls) -> str:
        """Under which Spark knows it."""
        return SOURCE

    def schema(self) -> str:
        """Its rows: the number of the beat."""
        return "beat bigint"

    def streamReader(self, schema: StructType) -> HeartbeatReader:
        """Called by Spark where the stream is planned."""
        return HeartbeatReader(int(self.options["interval"]))


class HeartbeatReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the clock of the driver. An offset is the time of a beat, in milliseconds."""

    def __init__(self, interval: int) -> None:
        self.interval = interval
        self.last: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Called by Spark where there is no checkpoint yet."""
        return {SOURCE: self._beat()}

    def prepareForTriggerAvailableNow(self) -> None:
        """Called by Spark at the start of a stream that ends with what is there."""
        self.last = self._beat()

    def latestOffset(self, start: dict[str, int] | None = None, limit: object = None) -> dict[str, int]:
        """Called by Spark whenever it looks for something new; before Spark 4.2 it does not say where it stands."""
        beat = self._beat() if self.last is None else self.last
        # A clock that was set back stands still until it has caught up.
        return {SOURCE: beat if start is None else max(start[SOURCE], beat)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Called by Spark with what a micro-batch shall read: one row, however many beats there were."""
        return [InputPartition(end[SOURCE])] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        """Called by Spark on a worker."""
        yield (partition.value,)

    def _beat(self) -> int:
        now = time.time_ns() // 1_000_000
        return now - now % self.interval
