"""Kill -9 of a job that reads from Kafka, again and again: no message is lost and none comes twice."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter

import pytest

from tests.killing import Job, files_of
from tests.sources.kafka_job import TOPIC

#: `make kill` is the long campaign.
KILLS = int(os.environ.get("SLICEWISE_KILLS", "3"))
#: When to kill: a micro-batch has begun, is done, or has written its output and is not done.
MOMENTS = [
    "checkpoint-messages/offsets/[0-9]*",
    "checkpoint-windows/offsets/[0-9]*",
    "checkpoint-windows/commits/[0-9]*",
    "messages/_spark_metadata/[0-9]*",
    "windows/_spark_metadata/[0-9]*",
]


def message(n: int) -> dict:
    """One a second, of three keys in two partitions; no row is late, whatever the micro-batches."""
    row = {"ts": f"2024-06-01T12:{n // 60:02}:{n % 60:02}Z", "k": "abc"[n % 3], "v": n}
    return {"value": json.dumps(row), "partition": n % 2}


@pytest.mark.slow
@pytest.mark.spark
def test_killed_again_and_again_every_message_counts_once(spark, brokers, tmp_path):
    rng = random.Random(5)
    kills = n = 0
    while kills < KILLS:
        more = 240 if not n else 60
        brokers.add(TOPIC, map(message, range(n, n + more)))
        n += more
        pattern = MOMENTS[kills % len(MOMENTS)]
        before = len(files_of(tmp_path, pattern))
        wanted = before + rng.choice([1, 2])
        job = Job("tests.sources.kafka_job", tmp_path, brokers.servers)
        while len(files_of(tmp_path, pattern)) < wanted and not job.is_over():
            time.sleep(0.005)
        time.sleep(rng.choice([0, 0, 0.05, 0.3]))
        if not job.is_over():
            job.kill()
            kills += 1
    job = Job("tests.sources.kafka_job", tmp_path, brokers.servers)
    while not job.is_over():
        time.sleep(0.1)

    messages = spark.read.parquet(str(tmp_path / "messages")).selectExpr("partition", "offset", "v")
    expected = Counter((i % 2, i // 2, i) for i in range(n))
    counts = Counter(map(tuple, messages.collect()))
    assert expected - counts == Counter(), "lost"
    assert counts - expected == Counter(), "doubled"

    windows = spark.read.parquet(str(tmp_path / "windows"))
    shown = windows.selectExpr("unix_seconds(window.start) % 3600 AS start", "k", "n", "array_sort(all)", "change")
    rows = Counter((start, k, count, tuple(values), change) for start, k, count, values, change in shown.collect())
    # Windows that end at or before the watermark, which is 2 seconds behind the last message.
    ended = [
        (start, k, [v for v in range(start, start + 5) if "abc"[v % 3] == k])
        for start in range(0, n, 5)
        for k in "abc"
        if start + 5 <= n - 1 - 2
    ]
    assert rows == Counter((start, k, len(values), tuple(values), "insert") for start, k, values in ended if values)
