"""Rows: messages of the Kafka client as Arrow, with the columns of Spark's own connector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

__all__ = ["ddl", "to_arrow"]

#: Columns as Spark's own connector names and types them.
_COLUMNS = {
    "key": ("binary", pa.binary()),
    "value": ("binary", pa.binary()),
    "topic": ("string", pa.string()),
    "partition": ("int", pa.int32()),
    "offset": ("bigint", pa.int64()),
    "timestamp": ("timestamp", pa.timestamp("us", tz="UTC")),
    "timestampType": ("int", pa.int32()),
}
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
_HEADERS = ("array<struct<key: string, value: binary>>", pa.list_(pa.field("element", _HEADER)))
#: Timestamps are microseconds in Spark, and milliseconds in Kafka: what does not fit is null.
_LATEST_MILLISECOND = (2**63 - 1) // 1000


def ddl(headers: bool) -> str:
    """The columns as Spark reads them.

    >>> ddl(headers=False)
    '`key` binary, `value` binary, `topic` string, `partition` int, `offset` bigint, `timestamp` timestamp,
    `timestampType` int'
    """
    return ", ".join(f"`{name}` {kind}" for name, (kind, _) in _columns(headers).items())


def _columns(headers: bool) -> dict[str, tuple[str, pa.DataType]]:
    return _COLUMNS | ({"headers": _HEADERS} if headers else {})


def to_arrow(messages: Sequence[Any], *, headers: bool) -> pa.RecordBatch:
    """Messages of the Kafka client as rows."""
    stamps = [message.timestamp() for message in messages]
    values: dict[str, list[Any]] = {
        "key": [message.key() for message in messages],
        "value": [message.value() for message in messages],
        "topic": [message.topic() for message in messages],
        "partition": [message.partition() for message in messages],
        "offset": [message.offset() for message in messages],
        "timestamp": [ms * 1000 if abs(ms) <= _LATEST_MILLISECOND else None for _, ms in stamps],
        # The Java client counts from -1, which is "no timestamp"; librdkafka from 0.
        "timestampType": [kind - 1 for kind, _ in stamps],
        "headers": [_as_structs(message.headers()) for message in messages] if headers else [],
    }
    fields = [(name, type_) for name, (_, type_) in _columns(headers).items()]
    return pa.RecordBatch.from_arrays(
        [pa.array(values[name], type_) for name, type_ in fields], schema=pa.schema(fields)
    )


def _as_structs(headers: Sequence[tuple[str, bytes | None]] | None) -> list[dict[str, Any]] | None:
    return None if headers is None else [{"key": key, "value": value} for key, value in headers]
