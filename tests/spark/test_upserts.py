"""Tables of a database that follow a stream: they have what holds, whatever is repeated, withdrawn or killed."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pyarrow as pa
import pyarrow.feather as feather
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import MissingPackageError
from slicewise.spark.databases import PostgresDatabase, database_of
from slicewise.spark.result_tables import BOUNDS, ResultTable
from tests.killing import ROOT, Job
from tests.spark import connect_job
from tests.spark.upsert_job import KEYS, STREAM, TABLE

WORKLOAD = (
    sw.Workload(time="t", keys=["k"], watermark=2, lateness=30)
    .query("fives", sw.tumbling(5), n=sw.count(), total=sw.sum("v"))
    .query("pairs", sw.tumbling(sw.rows(2)), total=sw.sum("v"))
    .query("visits", sw.session(4), n=sw.count(), all=sw.collect_list("v"))
)
NUMBERS = itertools.count()


class Older(PostgresDatabase):
    """A server that cannot take nulls for equal in an index, as those before PostgreSQL 15."""

    def connect(self):
        connection = super().connect()
        self.nulls_are_equal = False
        return connection


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A PostgreSQL server of our own, on a socket in a folder."""
    import pgserver

    started = pgserver.get_server(tmp_path_factory.mktemp("postgresql"))
    yield started.get_uri()
    started.cleanup()


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgresql", marks=pytest.mark.slow),
        pytest.param("older postgresql", marks=pytest.mark.slow),
    ]
)
def database(request, tmp_path):
    if request.param == "sqlite":
        return database_of(f"sqlite:///{tmp_path}/results.db")
    url = request.getfixturevalue("server")
    return PostgresDatabase(url) if request.param == "postgresql" else Older(url)


def new_name():
    """A table of its own for every example; the server is one for all."""
    return f"results_{next(NUMBERS)}"


def flat(results: pa.Table) -> pa.Table:
    """Results of an operator, as a table takes them."""
    names = [*results.column_names]
    columns = {name: results[name] for name in names}
    for outer in ("window", "span"):
        values = columns.pop(outer).to_pylist()
        types = {field.name: field.type for field in results.schema.field(outer).type}
        for end in ("start", "end"):
            columns[f"{outer}_{end}"] = pa.array([v and v[end] for v in values], types[end])
    return pa.table(columns)


def identity(row):
    bounds = BOUNDS[2:] if row["span_start"] is not None else BOUNDS[:2]
    return (row["k"], row["query"], *(row[name] for name in bounds))


def folded(batches):
    """What holds in the end, as ``sw.latest`` has it."""
    final = {}
    for batch in batches:
        for row in sorted(batch.to_pylist(), key=lambda row: row["revision"]):
            final[identity(row)] = row
    kept = {which: row for which, row in final.items() if row["change"] != "retract"}
    return {which: {n: v for n, v in row.items() if n != "change"} for which, row in kept.items()}


def read(database, name):
    with closing(database.connect()) as connection:
        cursor = connection.execute(f'SELECT * FROM "{name}"')
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for row in rows:
        row.pop("slicewise_identity", None)
        if isinstance(row.get("all"), str):
            row["all"] = json.loads(row["all"])
    return rows


def stored(database, name):
    rows = read(database, name)
    by_identity = {identity(row): row for row in rows}
    assert len(by_identity) == len(rows)
    return by_identity


steps = st.lists(
    st.tuples(
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from(["a", "b", None]), st.integers(-5, 5)), max_size=6),
        st.integers(0, 8),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=5,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(steps=steps)
def test_table_has_what_holds_after_every_micro_batch(database, steps):
    """Late rows correct and withdraw, keys are null, and micro-batches are repeated, the last and those before."""
    op, at, name, batches = WORKLOAD.operator(types={"k": "string", "v": "bigint"}), 0, new_name(), []
    table = ResultTable(database, name, ("k",))
    for number, (rows, forward, repeats) in enumerate(steps):
        if rows:
            op.process_batch({"t": [t for t, _, _ in rows], "k": [k for _, k, _ in rows], "v": [v for _, _, v in rows]})
        at += forward
        results = op.advance(at).to_arrow()
        if len(results) == 0 and not batches:
            continue
        batches.append(flat(results))
        table.write(batches[-1], "one", number)
        for _ in range(repeats):
            table.write(batches[0], "one", 0)
            table.write(batches[-1], "one", number)
        assert stored(database, name) == folded(batches)


def results(*rows):
    """Results of one query over time: key, start, change, revision and value."""
    names = ("k", "window_start", "change", "revision", "n")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    types = {"k": pa.string(), "window_start": pa.int64(), "change": pa.string(), "revision": pa.int32()}
    arrays = {name: pa.array(values, types.get(name, pa.int64())) for name, values in columns.items()}
    arrays["window_end"] = pa.array([start + 5 for start in columns["window_start"]], pa.int64())
    for name in BOUNDS[2:]:
        arrays[name] = pa.nulls(len(rows), pa.float64())
    arrays["query"] = pa.array(["fives"] * len(rows))
    return pa.table(arrays)


FIRST = results(("a", 0, "insert", 0, 1), ("a", 5, "insert", 0, 2), (None, 0, "insert", 0, 3))
SECOND = results(("a", 0, "update", 1, 10), (None, 0, "retract", 1, None), ("a", 5, "retract", 1, None))


def numbers(database, name):
    return {(row["k"], row["window_start"]): row["n"] for row in read(database, name)}


def test_repeated_micro_batch_changes_nothing_whatever_is_in_it(database):
    table = ResultTable(database, new_name(), ("k",))
    table.write(FIRST, "one", 0)
    table.write(SECOND, "one", 0)
    assert numbers(database, table.name) == {("a", 0): 1, ("a", 5): 2, (None, 0): 3}
    table.write(SECOND, "one", 1)
    table.write(FIRST, "one", 0)
    assert numbers(database, table.name) == {("a", 0): 10}


def test_stream_with_a_new_checkpoint_begins_again(database):
    table = ResultTable(database, new_name(), ("k",))
    table.write(FIRST, "one", 0)
    table.write(SECOND, "another", 0)
    assert numbers(database, table.name) == {("a", 0): 10}


def test_where_nobody_knows_the_stream_what_is_repeated_is_the_same(database):
    table = ResultTable(database, new_name(), ("k",))
    for batch, number in [(FIRST, 0), (FIRST, 0), (SECOND, 1), (SECOND, 1)]:
        table.write(batch, None, number)
    assert numbers(database, table.name) == {("a", 0): 10}


def test_of_several_revisions_in_a_micro_batch_the_last_counts(database):
    table = ResultTable(database, new_name(), ("k",))
    rows = [("a", 0, "update", 2, 30), ("a", 0, "insert", 0, 10), ("a", 0, "update", 1, 20)]
    table.write(results(*rows, ("a", 5, "retract", 1, None), ("a", 5, "insert", 0, 1)), "one", 0)
    assert numbers(database, table.name) == {("a", 0): 30}


def test_latest_shows_one_row_per_key_and_the_one_before_when_that_is_withdrawn(database):
    table = ResultTable(database, new_name(), ("k",), latest=True)
    table.write(FIRST, "one", 0)
    assert numbers(database, table.name) == {("a", 5): 2, (None, 0): 3}
    table.write(SECOND, "one", 1)
    assert numbers(database, table.name) == {("a", 0): 10}


def test_query_that_is_added_adds_its_columns(database):
    for latest in (False, True):
        table = ResultTable(database, new_name(), ("k",), latest)
        table.write(FIRST, "one", 0)
        table.write(SECOND.append_column("most %", pa.array([1.5, None, None])), "one", 1)
        assert [(row["n"], row["most %"]) for row in read(database, table.name)] == [(10, 1.5)]


def test_micro_batch_that_fails_leaves_nothing(database, monkeypatch):
    table = ResultTable(database, new_name(), ("k",))
    table.write(FIRST, "one", 0)
    monkeypatch.setattr(ResultTable, "_deletions", lambda self, stored, rows: [("DELETE FROM nowhere", [[]])])
    with pytest.raises(Exception, match="nowhere"):
        table.write(SECOND, "one", 1)
    monkeypatch.undo()
    assert numbers(database, table.name) == {("a", 0): 1, ("a", 5): 2, (None, 0): 3}
    table.write(SECOND, "one", 1)
    assert numbers(database, table.name) == {("a", 0): 10}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_killed_between_write_and_commit_nothing_is_lost_or_doubled(kind, tmp_path, request):
    url = f"sqlite:///{tmp_path}/results.db" if kind == "sqlite" else request.getfixturevalue("server")
    table = ResultTable(database_of(url), TABLE, KEYS)
    table.write(FIRST, STREAM, 0)
    before = numbers(table.database, TABLE)
    feather.write_feather(SECOND, tmp_path / "second.arrow")
    job = Job("tests.spark.upsert_job", tmp_path, url)
    while not (tmp_path / "written").exists():
        assert not job.is_over()
        time.sleep(0.05)
    job.kill()
    assert numbers(table.database, TABLE) == before
    table.write(SECOND, STREAM, 1)
    assert numbers(table.database, TABLE) == {("a", 0): 10}


ZONED = datetime.datetime(2024, 6, 1, 12, 0, 0, 5, tzinfo=datetime.UTC)
#: A value of each type, what SQLite has of it, and what PostgreSQL has if that is another.
TYPES = [
    (pa.bool_(), True, 1, True),
    (pa.int8(), -3, -3, -3),
    (pa.int64(), 2**62, 2**62, 2**62),
    (pa.float32(), 0.1, 0.10000000149011612, 0.1),
    (pa.float64(), 1e300, 1e300, 1e300),
    (pa.decimal128(38, 3), decimal.Decimal("12345678901234567890.125"), "12345678901234567890.125", None),
    (pa.string(), "a 'b' \"c\" %s", "a 'b' \"c\" %s", "a 'b' \"c\" %s"),
    (pa.binary(), b"\0\xff", b"\0\xff", b"\0\xff"),
    (pa.date32(), datetime.date(2024, 2, 29), "2024-02-29", None),
    (pa.timestamp("us", "UTC"), ZONED, "2024-06-01 12:00:00.000005", None),
    (pa.timestamp("us"), ZONED.replace(tzinfo=None), "2024-06-01 12:00:00.000005", None),
    (pa.list_(pa.float64()), [1.0, None, float("nan")], '[1.0, null, "NaN"]', [1.0, None, "NaN"]),
    (
        pa.struct([("at", pa.date32())]),
        {"at": datetime.date(2024, 2, 29)},
        '{"at": "2024-02-29"}',
        {"at": "2024-02-29"},
    ),
    (pa.map_(pa.string(), pa.int64()), [("b", 1), ("a", 2)], '{"b": 1, "a": 2}', {"b": 1, "a": 2}),
    (pa.duration("us"), datetime.timedelta(seconds=90), "0:01:30", "0:01:30"),
]


def test_every_type_is_written_and_read_as_it_was(database):
    """Keys of every type too, which find their row again, beside nulls."""
    postgres = isinstance(database, PostgresDatabase)
    keys = {f"key {i} %": (t, v) for i, (t, v, _, _) in enumerate(TYPES) if not pa.types.is_nested(t)}
    table = ResultTable(database, new_name(), tuple(keys))
    first = results(("a", 0, "insert", 0, 1), ("a", 0, "insert", 0, 2)).drop_columns(["k"])
    for name, (type_, value) in keys.items():
        first = first.append_column(name, pa.array([value, None], type_))
    for i, (type_, value, _, _) in enumerate(TYPES):
        first = first.append_column(f'value {i} "%s"', pa.array([value, None], type_))
    table.write(first, "one", 0)
    full, empty = sorted(read(database, table.name), key=lambda row: row["n"])
    for i, (_, value, in_sqlite, in_postgres) in enumerate(TYPES):
        expected = in_sqlite if not postgres else value if in_postgres is None else in_postgres
        found = full[f'value {i} "%s"']
        assert found == (pytest.approx(expected, rel=1e-7) if isinstance(expected, float) else expected)
        assert empty[f'value {i} "%s"'] is None
    changed = first.set_column(first.column_names.index("n"), "n", pa.array([10, 20]))
    table.write(changed, "one", 1)
    assert sorted(row["n"] for row in read(database, table.name)) == [10, 20]
    gone = first.set_column(first.column_names.index("change"), "change", pa.array(["retract", "retract"]))
    table.write(gone, "one", 2)
    assert read(database, table.name) == []


def test_windows_without_an_end_are_the_same_window(database):
    table = ResultTable(database, new_name(), ("k",))
    for number, batch in enumerate([FIRST, SECOND]):
        place = batch.column_names.index("window_end")
        table.write(batch.set_column(place, "window_end", pa.nulls(3, pa.int64())), "one", number)
    assert numbers(database, table.name) == {("a", 0): 10}


def test_zeros_and_nan_are_the_same_key(database):
    table = ResultTable(database, new_name(), ("k",))
    for number, (zero, value) in enumerate([(0.0, 1), (-0.0, 2)]):
        rows = results(("a", 0, "insert", 0, value), ("b", 0, "insert", 0, value + 2))
        rows = rows.set_column(rows.column_names.index("k"), "k", pa.array([zero, float("nan")]))
        table.write(rows, "one", number)
    assert sorted(row["n"] for row in read(database, table.name)) == [2, 4]


# -- on Spark

CLICKS = (
    sw.Workload(time="ts", keys=["k"], watermark="2 seconds", lateness="1 minute")
    .query("fives", sw.tumbling("5 seconds"), n=sw.count(), total=sw.sum("v"))
    .query("pairs", sw.tumbling(sw.rows(2)), total=sw.sum("v"))
    .query("visits", sw.session("4 seconds"), n=sw.count(), all=sw.collect_list("v"))
)
#: Three micro-batches: the second corrects and withdraws, the third has a row that is too late for anything.
FILES = [
    [(1, "a", 1), (2, None, 2), (9, "a", 3), (20, "a", 4)],
    [(5, "a", 5), (3, None, 6), (7, None, 7), (90, "b", 8)],
    [(0, "a", 9), (120, "a", 10), (121, None, 11)],
]


def put(folder, number):
    rows = [{"ts": f"2024-06-01T12:{t // 60:02}:{t % 60:02}Z", "k": k, "v": v} for t, k, v in FILES[number]]
    (folder / f"{number}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def what_holds(spark, folder):
    """What ``sw.latest`` makes of everything that was reported, as a table has it."""
    reported = spark.read.parquet(str(folder)).where("change <> 'late'")
    rows = sw.latest(reported).toArrow().to_pylist()
    for row in rows:
        for outer in ("window", "span"):
            bounds = row.pop(outer) or {"start": None, "end": None}
            row |= {f"{outer}_{end}": bounds[end] for end in ("start", "end")}
    return {identity(row): {n: v for n, v in row.items() if n not in ("late", "reason")} for row in rows}


def in_utc(rows):
    """Rows of SQLite, whose times are text."""
    for row in rows:
        for name in BOUNDS[:2]:
            row[name] = datetime.datetime.fromisoformat(row[name]).replace(tzinfo=datetime.UTC)
    return rows


@pytest.mark.streams
def test_stream_keeps_its_tables_true_over_restarts(spark, server, tmp_path):
    source, reported = tmp_path / "in", tmp_path / "reported"
    source.mkdir()
    url = f"sqlite:///{tmp_path}/results.db"
    keep = [sw.upsert(CLICKS, url, table="clicks"), sw.upsert(CLICKS, server, table="public.clicks", latest=False)]
    latest = sw.upsert(CLICKS, server, table="present", latest=True)

    def write(batch, number):
        batch.persist()
        for function in (*keep, latest, *keep):
            function(batch, number)
        batch.write.mode("append").parquet(str(reported))
        batch.unpersist()

    seen = set()
    for number in range(len(FILES)):
        put(source, number)
        frame = spark.readStream.schema("ts timestamp, k string, v bigint").json(str(source))
        writer = CLICKS.run(frame, late="collect").writeStream.foreachBatch(write).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()
        seen |= {row["change"] for row in spark.read.parquet(str(reported)).select("change").distinct().collect()}
        expected = what_holds(spark, reported)
        for table, rows in zip(keep, (in_utc(read(keep[0].table.database, "clicks")), None), strict=True):
            rows = rows if rows is not None else read(table.table.database, "clicks")
            for row in rows:
                row.pop("revision")
            assert {identity(row): row for row in rows} == expected
            assert len(rows) == len(expected)
        shown = {(row["k"], row["query"]): row["window_end"] for row in read(latest.table.database, "present")}
        ends = {}
        for row in expected.values():
            which = row["k"], row["query"]
            ends[which] = max(row["window_end"], ends.get(which, row["window_end"]))
        assert shown == ends
        with closing(database_of(server).connect()) as connection:
            batches = connection.execute("SELECT stream, batch FROM slicewise_batches WHERE result_table = 'present'")
            assert batches.fetchall() == [(query.id, query.lastProgress["batchId"])]
    assert seen == {"insert", "update", "retract", "late"}


@pytest.mark.spark
@pytest.mark.apart
def test_stream_on_connect_keeps_its_table_true(tmp_path):
    """Every micro-batch is written twice there, from two checkpoints: nobody knows that they are of two streams."""
    left_out = ("SPARK_", "PYSPARK_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    command = [sys.executable, "-m", "tests.spark.upsert_connect", str(tmp_path)]
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        command, cwd=ROOT, env=kept | {"PYTHONPATH": path}, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    operator, reported = connect_job.WORKLOAD.operator(types=connect_job.TYPES), []
    for part in range(2):
        rows = connect_job.rows(part)
        operator.process_batch({name: [row[name] for row in rows] for name in rows[0]})
        reported += operator.advance(rows[-1]["minute"] - 5).to_arrow().to_pylist()
    names = ("machine", "query", "revision", "total", "n", "mean", "most")
    assert {row["change"] for row in reported} == {"insert"}
    found = read(database_of(f"sqlite:///{tmp_path}/results.db"), "results")
    assert sorted(repr([row[n] for n in names]) for row in found) == sorted(
        repr([r[n] for n in names]) for r in reported
    )


def test_results_of_another_workload_are_refused(spark, tmp_path):
    other = sw.Workload(time="ts", keys=["k"]).query("q", sw.tumbling("5 seconds"), most=sw.max("v"))
    results = other.run(spark.createDataFrame([], "ts timestamp, k string, v bigint"))
    with pytest.raises(sw.DataError, match=r"^these are not results of this workload: there is no column 'n'$"):
        sw.upsert(CLICKS, f"sqlite:///{tmp_path}/results.db", table="t")(results, 0)


# -- bad input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("oracle://u:secret@h/d", "t"), "`url` must begin with postgresql:// or sqlite:///; got 'oracle://...'"),
        (("results.db", "t"), "`url` must begin with postgresql:// or sqlite:///; got 'results.db'"),
        ((5, "t"), "`url` must be a text; got int"),
        (
            ("sqlite:///:memory:", "t"),
            "`url` needs a file, as in 'sqlite:///results.db': a database in memory ends with each micro-batch",
        ),
        (("sqlite:///r.db", ""), "`table` must be the name of a table; got ''"),
        (("sqlite:///r.db", "a..b"), "`table` must be the name of a table; got 'a..b'"),
        (("sqlite:///r.db", None), "`table` must be the name of a table; got None"),
    ],
)
def test_url_and_table_are_checked(arguments, message):
    url, table = arguments
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        sw.upsert(WORKLOAD, url, table=table)


def test_workload_is_checked():
    with pytest.raises(sw.QueryError, match=r"^`workload` must be a Workload; got str$"):
        sw.upsert("sales", "sqlite:///r.db", table="t")
    taken = sw.Workload(time="t").query("q", sw.tumbling(5), span_end=sw.count())
    message = "the table has a column 'span_end' of its own; give yours another name"
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        sw.upsert(taken, "sqlite:///r.db", table="t")


def test_psycopg_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    message = "`upsert` needs psycopg for PostgreSQL; pip install 'slicewise[postgres]'"
    with pytest.raises(MissingPackageError, match=f"^{re.escape(message)}$"):
        sw.upsert(WORKLOAD, "postgresql://localhost/shop", table="t")


def test_password_is_shown_nowhere():
    pytest.importorskip("psycopg")
    assert "secret" not in repr(sw.upsert(WORKLOAD, "postgresql://me:secret@localhost/shop", table="t"))


def test_table_of_something_else_is_left_alone(database):
    name = new_name()
    with closing(database.connect()) as connection:
        connection.execute(f'CREATE TABLE "{name}" (k text, query text)')
        connection.commit()
    message = (
        f"the table {name!r} has no column 'window_start', and so is not one of this workload's results; name a table "
        "that does not exist yet"
    )
    with pytest.raises(sw.DataError, match=f"^{re.escape(message)}$"):
        ResultTable(database, name, ("k",)).write(FIRST, "one", 0)


def test_table_stays_what_it_is_all_windows_or_the_latest(database):
    for latest, has, instead in [(False, "all windows", "without"), (True, "the latest windows", "with")]:
        name = new_name()
        ResultTable(database, name, ("k",), latest).write(FIRST, "one", 0)
        message = f"{name!r} shows {has}; write there {instead} latest=True, or name a table that does not exist yet"
        with pytest.raises(sw.DataError, match=f"^{re.escape(message)}$"):
            ResultTable(database, name, ("k",), not latest).write(FIRST, "one", 1)


def test_sqlite_waits_for_its_turn(tmp_path):
    """A transaction begins with the right to write, so that two jobs do not stop each other in the middle."""
    database = database_of(f"sqlite:///{tmp_path}/results.db")
    with (
        closing(database.connect()),
        closing(sqlite3.connect(tmp_path / "results.db", timeout=0)) as other,
        pytest.raises(sqlite3.OperationalError, match="locked"),
    ):
        other.execute("BEGIN IMMEDIATE")
