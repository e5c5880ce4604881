"""Brokers that speak Kafka's protocol, in a process of their own: librdkafka's mock cluster.

``python -m tests.sources.brokers`` prints where they listen and lives until its input is closed. They keep messages in
memory, at most 5 MB of each partition, and have no transactions to speak of, no compaction, no security, no times in
an index: the protocol, not a broker.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import confluent_kafka

ROOT = Path(__file__).parents[2]
#: A topic is made by its first message, with as many partitions.
PARTITIONS = 4


class Brokers:
    """Two brokers on the loopback interface, and a producer to fill their topics."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.sources.brokers"]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.servers = self.process.stdout.readline().strip()
        self._producer = confluent_kafka.Producer({"bootstrap.servers": self.servers, "log_level": 0})

    def add(self, topic: str, messages: Iterable[dict[str, Any]]) -> None:
        """Append messages, each in the arguments of ``Producer.produce``; they are there when this returns."""
        for message in messages:
            self._producer.produce(topic, **message)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0

    def options(self, **options: Any) -> dict[str, str]:
        """Options of the source that find these brokers."""
        return {"kafka.bootstrap.servers": self.servers, **{name: str(value) for name, value in options.items()}}

    def stop(self) -> None:
        """End the process."""
        self.process.communicate()


def main() -> None:
    """Start the mock cluster, which librdkafka gives to a client that asks for it."""
    client = confluent_kafka.Producer({"test.mock.num.brokers": 2, "bootstrap.servers": "nowhere", "log_level": 0})
    brokers = client.list_topics(timeout=30).brokers.values()
    print(",".join(f"{broker.host}:{broker.port}" for broker in brokers), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
