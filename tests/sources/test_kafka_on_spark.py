"""Kafka on Spark: batches, streams with a limit, restarts and windows, from brokers that speak the protocol."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

import slicewise as sw
from slicewise.cli import commands
from slicewise.cli.jobs import KAFKA, read_job
from slicewise.sources import kafka
from slicewise.sources.kafka.offsets import without_marks

EXAMPLE = Path(__file__).parents[2] / "examples" / "jobs" / "kafka.toml"

#: As Spark's documentation of its own connector has them.
COLUMNS = [
    ("key", "binary"),
    ("value", "binary"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
    ("timestamp", "timestamp"),
    ("timestampType", "int"),
    ("headers", "array<struct<key:string,value:binary>>"),
]


@pytest.fixture(scope="module")
def session(spark):
    kafka.register(spark)
    return spark


def clicks(first, stop):
    """One message a second, of three users in two partitions."""
    return [
        {
            "key": "abc"[n % 3],
            "value": json.dumps({"ts": f"2024-06-01T12:{n // 60:02}:{n % 60:02}Z", "n": n}),
            "partition": n % 2,
            "headers": [("n", str(n).encode())],
            "timestamp": 1_717_243_200_000 + 1000 * n,
        }
        for n in range(first, stop)
    ]


def test_batch_has_the_columns_of_sparks_connector_and_every_message(session, brokers):
    brokers.add("batch", clicks(0, 100))

    def load(**options):
        options = brokers.options(subscribe="batch", minPartitions=3, **options)
        return session.read.format("slicewise_kafka").options(**options).load()

    df = load(includeHeaders="true")
    assert df.dtypes == COLUMNS
    rows = df.selectExpr(
        "CAST(key AS STRING)", "from_json(CAST(value AS STRING), 'n INT').n", "topic", "partition", "offset",
        "unix_millis(timestamp)", "timestampType", "CAST(headers[0].value AS STRING)",
    ).collect()  # fmt: skip
    times = 1_717_243_200_000
    expected = [("abc"[n % 3], n, "batch", n % 2, n // 2, times + 1000 * n, 0, str(n)) for n in range(100)]
    assert sorted(map(tuple, rows), key=lambda row: row[1]) == expected
    part = load(
        startingOffsets='{"batch": {"0": 3, "1": -2, "2": -2, "3": -2}}',
        endingOffsets='{"batch": {"0": 5, "1": 1, "2": -1, "3": -1}}',
    )
    assert sorted(map(tuple, part.select("partition", "offset").collect())) == [(0, 3), (0, 4), (1, 0)]
    assert load(startingOffsets='{"batch": {"0": 50, "1": 50, "2": 0, "3": 0}}').count() == 0


@pytest.mark.streams
def test_stream_stops_with_what_is_there_keeps_to_its_limit_and_goes_on(session, brokers, tmp_path):
    """Two runs of ``availableNow`` are one stream: the checkpoint says how far the first came."""
    brokers.add("stream", clicks(0, 120))
    workload = sw.Workload(time="ts", keys=["user"], watermark="0 seconds").query(
        "minutes", sw.tumbling("1 minute"), n=sw.count(), total=sw.sum("n")
    )
    counts = []

    def run():
        options = brokers.options(subscribe="stream", startingOffsets="earliest", maxOffsetsPerTrigger=50)
        rows = session.readStream.format("slicewise_kafka").options(**options).load()
        message = "from_json(CAST(value AS STRING), 'ts TIMESTAMP, n BIGINT') AS m"
        rows = rows.selectExpr("CAST(key AS STRING) AS user", message).selectExpr("user", "m.ts", "m.n")
        query = (
            workload.run(rows)
            .writeStream.trigger(availableNow=True)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .format("parquet")
            .start(str(tmp_path / "out"))
        )
        query.awaitTermination()
        progress = [json.loads(p.json) for p in query.recentProgress]
        counts.append([p["numInputRows"] for p in progress if p["numInputRows"]])
        return progress[-1]["sources"][0]

    first = run()
    brokers.add("stream", clicks(120, 200))
    second = run()
    assert counts == [[50, 50, 20], [50, 30]]
    assert without_marks(first["endOffset"]) == {"stream": {"0": 60, "1": 60, "2": 0, "3": 0}}
    assert without_marks(second["endOffset"]) == {"stream": {"0": 100, "1": 100, "2": 0, "3": 0}}
    assert second["latestOffset"] == without_marks(second["endOffset"])
    results = session.read.parquet(str(tmp_path / "out")).where("change = 'insert'")
    assert Counter(map(tuple, results.select("user", "n", "total").collect())) == Counter(
        ("abc"[u], 20, sum(range(60 * minute + u, 60 * minute + 60, 3))) for minute in range(3) for u in range(3)
    )
    # What the checkpoint says is what `startingOffsets` takes.
    (offsets,) = sw.inspect(str(tmp_path / "checkpoint")).offsets
    assert json.loads(offsets) == second["endOffset"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "a", "topic": "b"}, "QueryError: there is no option 'topic'; known: "),
        (
            {"subscribe": "a", "kafka.sasl.jaas.config": "x"},
            "QueryError: the Kafka client refuses `kafka.*`: Java JAAS",
        ),
    ],
)
def test_wrong_options_are_refused_when_the_source_is_loaded(session, brokers, options, message):
    with pytest.raises(Exception, match=re.escape(message)):
        session.readStream.format("slicewise_kafka").options(**brokers.options(**options)).load()


def test_example_job_runs_from_kafka_to_files(session, brokers, tmp_path, monkeypatch):
    """As a user runs it, but to its end, into files, and on the session of the tests."""
    rows = [{"ts": f"2024-06-01T12:0{n // 60}:{n % 60:02}Z", "sensor": "a", "v": n % 20} for n in range(200)]
    brokers.add("positions", [{"value": json.dumps(row)} for row in rows])
    monkeypatch.setenv("BROKERS", brokers.servers)
    monkeypatch.setattr(commands, "open_session", lambda *_: session)
    monkeypatch.setattr(type(session), "stop", lambda _: None)
    text = EXAMPLE.read_text().replace('table = "windows"', f"format = 'parquet'\npath = '{tmp_path / 'out'}'")
    text = text.replace('"state"', f"'{tmp_path / 'state'}'").replace(
        'processing_time = "10 seconds"', "available_now = true"
    )
    (tmp_path / "kafka.toml").write_text(text)
    done = CliRunner().invoke(commands.app, ["run", str(tmp_path / "kafka.toml")])
    assert done.exit_code == 0, done.stderr
    assert "200 rows in 1 batch" in done.stderr
    results = session.read.parquet(str(tmp_path / "out"))
    assert results.where("query = 'per_minute'").selectExpr("n").collect() == [(60,)] * 3
    frames = results.where("query = 'fast'").selectExpr("n", "peak").collect()
    assert frames == [(9, 19.0)] * 9


def test_example_job_reads_with_sparks_own_connector_too(monkeypatch):
    monkeypatch.setenv("BROKERS", "host:9092")
    job, other = read_job(str(EXAMPLE)), read_job(str(EXAMPLE), ["source.format=kafka"])
    assert (job.source.format, other.source.format) == (kafka.NAME, "kafka")
    assert job.source.options == other.source.options
    assert job.workload == other.workload
    assert kafka.NAME == KAFKA
