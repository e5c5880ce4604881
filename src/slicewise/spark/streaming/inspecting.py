"""Inspecting: what a checkpoint holds, read from the heads of its shards without starting the stream."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slicewise.amounts import format_instant
from slicewise.errors import StateError
from slicewise.spark.session import local_session
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
        How many rows came, results went, and rows came too late, since the stream was first started.
    watermark
        Where it stands, as the event time's own number; None before the first row.
    queries
        The queries by name, as they were said.
    since
        For queries that were added later: the event time from which their results are complete.
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
    queries: dict[str, str]
    since: dict[str, int]
    timestamps: bool

    def __str__(self) -> str:
        lines = [
            f"{self.shards} shards, {self.keys} keys, {self.slices} slices, {self.tuples} stored rows, "
            f"{self.bytes} bytes",
            f"{self.rows} rows came, {self.late} of them late; {self.results} results went",
            f"watermark {self._instant(self.watermark)}",
            "queries",
        ]
        for name, said in self.queries.items():
            since = f"  (complete since {self._instant(self.since[name])})" if name in self.since else ""
            lines.append(f"  {said}{since}")
        return "\n".join(lines)

    def _instant(self, at: int | None) -> str:
        if at is None:
            return "not set yet"
        return format_instant(at) if self.timestamps else str(at)


def inspect(checkpoint: str, session: SparkSession | None = None) -> Inspection:
    """Look into the checkpoint of a stream: shards, keys, slices, watermark, queries.

    The stream may be running; what is shown is its last committed micro-batch.
    """
    session = session or local_session()
    chunks = _chunks(checkpoint, session)
    sizes = chunks.agg(F.sum(F.length("data"))).first()
    heads = [json.loads(row.said) for row in chunks.where(F.col("name") == HEAD).collect()]
    if not heads:
        raise StateError(f"the checkpoint {checkpoint} holds no state yet; no rows have come")
    return _summed(heads, int(sizes[0] or 0) if sizes else 0)


def _chunks(checkpoint: str, session: SparkSession) -> DataFrame:
    try:
        state = session.read.format("statestore").option("stateVarName", CHUNKS_STATE).load(checkpoint)
        return state.select(F.col("user_map_key.name"), F.col("user_map_value.data"), F.col("user_map_value.said"))
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise StateError(f"{checkpoint} is no checkpoint of a slicewise stream that has run: {reason}") from error


def _summed(heads: list[dict[str, Any]], size: int) -> Inspection:
    counts = [head["counts"] for head in heads]
    total = {name: sum(c[name] for c in counts) for name in counts[0]}
    watermarks = [h["watermark"] for h in heads if h["watermark"] is not None]
    first = heads[0]
    # Every shard knows its own rows; a query is complete where it is in all of them.
    since = {name: max(h["since"].get(name, at) for h in heads) for head in heads for name, at in head["since"].items()}
    return Inspection(
        shards=first["said"]["shards"],
        bytes=size,
        watermark=max(watermarks, default=None),
        queries=first["queries"],
        since=since,
        timestamps=first["timestamps"],
        **total,
    )
