"""Over a break of the format: what an old checkpoint says is enough to go on with a new one, and nothing is lost.

That a checkpoint of an older format is refused by name is shown in ``test_stream_state.py``.
"""

from __future__ import annotations

import json
import random
import time

import pytest
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

import slicewise as sw
from tests.spark.stream_running import SECOND, Run, plain

WORKLOAD = (
    sw.Workload("ts", keys=["k"], watermark="3 seconds", lateness="10 seconds")
    .query("tens", sw.sliding("10 seconds", every="5 seconds"), s=sw.sum("v"), n=sw.count())
    .query("visits", sw.session("4 seconds"), s=sw.sum("v"))
)
COLUMNS = "ts timestamp, k string, v bigint"


def rows_between(low, high):
    """A row every second, some of them out of order, the same whenever they are asked for."""
    found = []
    for n in range(low, high):
        chance = random.Random(n)
        late = chance.choice([0, 0, 0, 2, 3])
        if n % 17 < 11:
            found.append((max(n - late, 0), chance.choice("ab"), n))
    return found


class Numbers(DataSource):
    """A source that can be started anywhere: an offset is the number of rows before it."""

    @classmethod
    def name(cls):
        return "numbers"

    def schema(self):
        return COLUMNS

    def simpleStreamReader(self, schema):
        return NumbersReader(int(self.options["start"]), int(self.options["end"]))


class NumbersReader(SimpleDataSourceStreamReader):
    def __init__(self, start, end):
        self.start, self.end = start, end

    def initialOffset(self):
        return {"row": self.start}

    def read(self, start):
        end = min(start["row"] + 75, self.end)
        return self._rows(start["row"], end), {"row": end}

    def readBetweenOffsets(self, start, end):
        return self._rows(start["row"], end["row"])

    def _rows(self, low, high):
        from datetime import datetime, timedelta, timezone

        zero = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017
        return iter([(zero + timedelta(seconds=t), k, v) for t, k, v in rows_between(low, high)])

    def commit(self, end):
        pass


def read(spark, start, end):
    return spark.readStream.format("numbers").option("start", start).option("end", end).load()


def run_until(spark, checkpoint, start, end):
    """Run until the source has nothing more; the results by key, query and window."""
    run = Run(WORKLOAD.run(read(spark, start, end)), checkpoint, processingTime="0 seconds")
    ends: list[str] = []
    try:
        deadline = time.monotonic() + 120
        while not ends or json.loads(ends[-1]) != {"row": end}:
            assert time.monotonic() < deadline
            run.query.awaitTermination(0.2)
            ends = [p.sources[0].endOffset for p in run.query.recentProgress]
    finally:
        run.query.stop()
    return folded(run.rows())


def folded(rows):
    found = {}
    for row in rows:
        place = row["k"], row["query"], row["start"], row["end"]
        if row["change"] == "retract":
            found.pop(place)
        else:
            found[place] = (row["s"], row["n"])
    return found


def batch(spark, rows):
    from datetime import UTC, datetime

    data = [(datetime.fromtimestamp(t, UTC), k, v) for t, k, v in rows]
    return folded(plain(WORKLOAD.run(spark.createDataFrame(data, COLUMNS)).toArrow()))


@pytest.mark.streams
def test_a_stream_moves_over_a_break_of_the_format(spark, tmp_path):
    spark.dataSource.register(Numbers)
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    before = run_until(spark, old, 0, 150)
    inspected = sw.inspect(old, spark)
    (offset,) = inspected.offsets
    assert json.loads(offset) == {"row": 150}
    after = run_until(spark, new, json.loads(offset)["row"], 300)
    # What was open at the break is replaced by what a batch over its rows says.
    oldest = inspected.oldest / SECOND
    repaired = batch(spark, [row for row in rows_between(0, 300) if row[0] >= oldest])
    merged = {place: value for place, value in before.items() if place[3] / SECOND <= oldest}
    merged |= {place: value for place, value in repaired.items() if place[2] / SECOND >= oldest}
    whole = batch(spark, rows_between(0, 300))
    reported = set(before) | set(after)
    settled = reported & set(merged)
    assert {place: merged[place] for place in settled} == {place: whole[place] for place in settled}
    # Without the repair something would have been wrong, or this test shows nothing.
    assert any({**before, **after}[place] != whole[place] for place in reported & set(whole))
    assert len(settled) > 40
