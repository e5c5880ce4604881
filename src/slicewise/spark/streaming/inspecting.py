"""Inspecting: what a checkpoint holds, read from the heads of its shards without starting the stream."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slicewise.amounts import format_instant
from slicewise.bad_rows import BAD
from slicewise.errors import StateError
from slicewise.slicing import COUNTED
from slicewise.spark.session import local_session
from slicewise.spark.streaming.heartbeat import is_heartbeat
from slicewise.spark.streaming.processor import CHUNKS_STATE, HEAD

__all__ = ["Inspection", "inspect"]


@dataclass(frozen=True)
class Inspection:
    """What a checkpoint holds.

    Attributes
    ----------
    shards, keys, slices, tuples, bytes
        How many there are, in all shards together; ``bytes`` are those of the chunks, before RocksDB packs them.
    rows, results, late
        How many rows came in, how many results went out, and how many rows came too late, since the stream was first
        started.
    bad
        How many rows were bad since then, by reason.
    failed
        How many windows have had a null for a value since then, because user code failed.
    watermark
        Where it stands, as the event time's own number; None before the first row.
    oldest
        The event time of the oldest row that the state still holds; None where it holds none.
    offsets
        How far each source of the stream was read, in order: what the source itself calls an offset, in JSON. The
        stream goes on behind it. The heartbeat of a stream with ``idle`` is not among them.
    queries
        The queries by name, as text.
    since
        For queries that were added later: the event time from which their results are complete.
    timestamps, unit
        Whether event times are points in time, and what their numbers count.
    state_bytes, watermark_lag_ms, merges, splits, updates, recomputations, combines, lifts
        As :class:`~slicewise.Stats` counts them, of all shards together; the lag is the longest.

    Examples
    --------
    >>> counts = {"shards": 2, "keys": 3, "slices": 8, "tuples": 0, "bytes": 2048, "rows": 40, "results": 6, "late": 1}
    >>> queries = {"per_minute": "per_minute: tumbling('1 minute') -> n=count()"}
    >>> held = Inspection(**counts, watermark=60_000_000, oldest=30_000_000, offsets=(), queries=queries, since={},
    ...                   timestamps=True)
    >>> print(held)
    2 shards, 3 keys, 8 slices, 0 stored rows, 2048 bytes
    40 rows in (1 late), 6 results out
    0 lifts, 0 combines, 0 updates, 0 merges, 0 splits, 0 recomputations
    watermark 1970-01-01 00:01:00, oldest row held 1970-01-01 00:00:30
    queries
      per_minute: tumbling('1 minute') -> n=count()
    """

    shards: int
    keys: int
    slices: int
    tuples: int
    bytes: int
    rows: int
    results: int
    late: int
    watermark: int | None
    oldest: int | None
    offsets: tuple[str, ...]
    queries: dict[str, str]
    since: dict[str, int]
    timestamps: bool
    unit: str = "microseconds"
    bad: dict[str, int] = field(default_factory=dict)
    failed: int = 0
    state_bytes: int = 0
    watermark_lag_ms: int | None = None
    merges: int = 0
    splits: int = 0
    updates: int = 0
    recomputations: int = 0
    combines: int = 0
    lifts: int = 0

    def __str__(self) -> str:
        lines = [
            f"{self.shards} shards, {self.keys} keys, {self.slices} slices, {self.tuples} stored rows, "
            f"{self.bytes} bytes",
            f"{self.rows} rows in ({self.late} late), {self.results} results out",
            *([f"bad rows: {', '.join(f'{n} {reason}' for reason, n in self.bad.items())}"] if self.bad else []),
            *([f"{self.failed} windows without a value, because user code failed"] if self.failed else []),
            f"{self.lifts} lifts, {self.combines} combines, {self.updates} updates, {self.merges} merges, "
            f"{self.splits} splits, {self.recomputations} recomputations",
            f"watermark {self._instant(self.watermark)}, oldest row held {self._instant(self.oldest, 'none')}",
            *(f"read up to {offset}" for offset in self.offsets),
            "queries",
        ]
        for name, description in self.queries.items():
            since = f"  (complete since {self._instant(self.since[name])})" if name in self.since else ""
            lines.append(f"  {description}{since}")
        return "\n".join(lines)

    def _instant(self, at: int | None, absent: str = "not set yet") -> str:
        if at is None:
            return absent
        return format_instant(at, self.unit) if self.timestamps else str(at)


def inspect(checkpoint: str, session: SparkSession | None = None) -> Inspection:
    """What the checkpoint of a stream holds: shards, keys, slices, watermark, queries.

    The stream may be running; what is shown is its last committed micro-batch.

    Parameters
    ----------
    checkpoint : str
        The stream's ``checkpointLocation``.
    session : SparkSession, optional
        The session that reads it; by default the active one, or a local one that is started.

    Returns
    -------
    Inspection
        The numbers; printed, they are a few lines for a terminal.

    Raises
    ------
    StateError
        There is no checkpoint of a slicewise stream, or no row has come yet.

    Examples
    --------
    ``print(sw.inspect("checkpoints/rides"))`` prints an :class:`Inspection`, which may look like this:

    >>> counts = {"shards": 2, "keys": 3, "slices": 8, "tuples": 0, "bytes": 2048, "rows": 40, "results": 6, "late": 1}
    >>> queries = {"per_minute": "per_minute: tumbling('1 minute') -> n=count()"}
    >>> print(Inspection(**counts, watermark=60_000_000, oldest=30_000_000, offsets=(), queries=queries, since={},
    ...                  timestamps=True))
    2 shards, 3 keys, 8 slices, 0 stored rows, 2048 bytes
    ...
    queries
      per_minute: tumbling('1 minute') -> n=count()
    """
    session = session or local_session()
    chunks = _chunks(checkpoint, session)
    sizes = chunks.agg(F.sum(F.length("data"))).first()
    heads = [json.loads(row.head) for row in chunks.where(F.col("name") == HEAD).collect()]
    if not heads:
        raise StateError(f"the checkpoint {checkpoint} holds no state yet; no rows have come")
    offsets = tuple(offset for offset in _offsets(checkpoint, session) if not is_heartbeat(offset))
    return _summed(heads, int(sizes[0] or 0) if sizes else 0, offsets)


def _chunks(checkpoint: str, session: SparkSession) -> DataFrame:
    try:
        state = session.read.format("statestore").option("stateVarName", CHUNKS_STATE).load(checkpoint)
        # Until format 3 the head stood in a field called "said".
        value = state.select("user_map_value.*").columns
        head = F.col(f"user_map_value.{'head' if 'head' in value else 'said'}").alias("head")
        return state.select(F.col("user_map_key.name"), F.col("user_map_value.data"), head)
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise StateError(f"{checkpoint} is not the checkpoint of a slicewise stream that has run: {reason}") from error


def _offsets(checkpoint: str, session: SparkSession) -> tuple[str, ...]:
    """The offsets of the last micro-batch that was committed, from Spark's own log: one line for each source."""
    commits = session.read.format("binaryFile").load(f"{checkpoint}/commits").select("path").collect()
    committed = [name for name in (row.path.rpartition("/")[2] for row in commits) if name.isdecimal()]
    if not committed:
        return ()
    log = session.read.text(f"{checkpoint}/offsets/{max(committed, key=int)}", wholetext=True).first()
    # The first two lines are the log's version and what Spark remembers of the micro-batch.
    return tuple(log.value.splitlines()[2:]) if log is not None else ()


def _summed(heads: list[dict[str, Any]], size: int, offsets: tuple[str, ...]) -> Inspection:
    counts = [head["counts"] for head in heads]
    # Heads of older versions count less.
    total = {name: sum(c.get(name, 0) for c in counts) for name in (*counts[0], "state_bytes")}
    lags = [h["watermark_lag_ms"] for h in heads if h.get("watermark_lag_ms") is not None]
    total |= {name: sum(h.get("costs", {}).get(name, 0) for h in heads) for name in COUNTED}
    watermarks = [h["watermark"] for h in heads if h["watermark"] is not None]
    first = heads[0]
    # Each shard has this for its own rows; a query is complete from where it is complete in all shards.
    since = {name: max(h["since"].get(name, at) for h in heads) for head in heads for name, at in head["since"].items()}
    return Inspection(
        shards=first["identity" if "identity" in first else "said"]["shards"],
        bytes=size,
        watermark=max(watermarks, default=None),
        # Checkpoints of older formats do not have it, and can be inspected all the same.
        oldest=min((h["oldest"] for h in heads if h.get("oldest") is not None), default=None),
        offsets=offsets,
        queries=first["queries"],
        since=since,
        timestamps=first["timestamps"],
        unit=first.get("unit", "microseconds"),
        bad=_bad(heads),
        failed=sum(head.get("failed", 0) for head in heads),
        watermark_lag_ms=max(lags, default=None),
        **total,
    )


def _bad(heads: list[dict[str, Any]]) -> dict[str, int]:
    """Bad rows by reason; heads of older versions do not count them."""
    counts: Counter[str] = Counter()
    for head in heads:
        counts.update(head.get("bad", {}))
    return {reason: counts[reason] for reason in (*BAD, *sorted(counts.keys() - set(BAD))) if counts[reason]}
