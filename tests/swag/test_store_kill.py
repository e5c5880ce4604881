"""A window on disk, killed with kill -9 at random moments and reopened: it holds what the last flush says, in order.

Run as a script, this file is the process that gets killed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time

import pytest

import slicewise as sw
from slicewise.swag.amta import AMTA
from slicewise.swag.log_mta import LogMTA
from slicewise.swag.stores import DiskStore

PRIME = (1 << 61) - 1
BASE = 1_000_003
ALGORITHMS = {"LogMTA": LogMTA, "AMTA": AMTA}

pytestmark = pytest.mark.slow


class Hashed(sw.Aggregate):
    """How many values, and a hash of them in order: anything lost, doubled or swapped changes it."""

    name = "hashed"
    identity = (0, 0)

    def lift(self, *values):
        return (1, values[0] + 1)

    def combine(self, a, b):
        return (a[0] + b[0], (a[1] * pow(BASE, b[0], PRIME) + b[1]) % PRIME)


def hashed(values):
    aggregate, found = Hashed(), Hashed.identity
    for value in values:
        found = aggregate.combine(found, aggregate.lift(value))
    return found


def run(folder, algorithm, seed):
    """Insert 0, 1, 2, ... and evict at random until killed, and say after each flush what it was."""
    rng = random.Random(seed)
    window = ALGORITHMS[algorithm](Hashed(), store=DiskStore(folder), buffer=64, ahead=8)
    flushes = 0
    while True:
        for _ in range(rng.choice([1, 10, 300])):
            window.insert(window._inserted)
        if rng.random() < 0.2:
            window.evict(rng.randint(0, len(window)))
        elif len(window) > 3000:
            window.enforce(lambda total, oldest: total[0] - oldest[0] >= 2000)
        else:
            for _ in range(rng.randint(0, min(5, len(window)))):
                window.evict()
        if window._flushes != flushes:
            flushes = window._flushes
            print(flushes, flush=True)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_window_survives_kill_9_at_random_moments(algorithm, tmp_path):
    rng = random.Random(algorithm)
    inserted = 0
    for attempt in range(4):
        child = subprocess.Popen(
            [sys.executable, __file__, str(tmp_path), algorithm, str(attempt)], stdout=subprocess.PIPE, text=True
        )
        said: list[int] = []
        reader = threading.Thread(target=lambda out=child.stdout, said=said: said.extend(int(line) for line in out))
        reader.start()
        while not said and child.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.2))
        child.kill()
        reader.join()
        assert child.wait() == -9

        store = DiskStore(tmp_path)
        window = ALGORITHMS[algorithm](Hashed(), store=store, buffer=64, ahead=8)
        flush = window.recovered
        # What it said it had flushed is there; it may have been killed between a flush and saying so.
        assert flush.flushes >= said[-1]
        assert flush.inserted > inserted
        inserted = flush.inserted
        assert len(window) == flush.inserted - flush.evicted
        assert window.query() == hashed(range(flush.evicted, flush.inserted))
        window._check()
        for last in {1, len(window) // 2, len(window)} - {0}:
            if last <= len(window):
                assert window.query(last=last) == hashed(range(flush.inserted - last, flush.inserted))
        store.close()


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], int(sys.argv[3]))
