"""Job files for tests: one that is right, and ways to change it."""

from __future__ import annotations

from pathlib import Path

STREAM = """\
[source]
format = "parquet"
path = "in"
stream = true
schema = "ts TIMESTAMP, sensor STRING, v DOUBLE, page STRING"

[workload]
time = "ts"
keys = ["sensor"]
watermark = "2 seconds"
lateness = "1 minute"
order = ["page"]

[queries.per_second]
window = "tumbling('1 second')"
total = "sum(v)"
n = "count()"

[queries.trend]
window = "sliding('1 minute', every='1 second')"
mean = "avg(v)"

[sink]
format = "parquet"
path = "out"
checkpoint = "state"

[trigger]
available_now = true
"""

BATCH = """\
[source]
format = "csv"
path = "in"
schema = "ts TIMESTAMP, sensor STRING, v DOUBLE"
options = { header = true }

[workload]
time = "ts"
keys = ["sensor"]

[queries.per_second]
window = "tumbling('1 second')"
total = "sum(v)"

[sink]
format = "parquet"
path = "out"
"""


def write(folder: Path, text: str, name: str = "job.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, f"{old!r} is there {text.count(old)} times"
    return text.replace(old, new)
