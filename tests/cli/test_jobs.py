"""Job files: read into a frozen job, or every mistake at its place."""

# Messages stand on one line, as they are said.
# ruff: noqa: E501

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import slicewise as sw
from slicewise.cli.jobs import Attachment, JobError, Sink, Source, SparkSettings, Trigger, read_job
from tests.cli.jobfiles import BATCH, STREAM, changed, write

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "jobs").glob("*.toml"))


def mistakes(tmp_path, text, *overrides):
    """What is wrong with a text: ``line:column message`` each."""
    file = write(tmp_path, text)
    with pytest.raises(JobError) as caught:
        read_job(file, overrides)
    said = [str(m).split("\n")[0] for m in caught.value.diagnostics]
    return [re.sub(r"^(\d+(?::\d+)?): ", r"\1 ", s.removeprefix(file).lstrip(":").lstrip()) for s in said]


def test_a_stream_job_is_read(tmp_path):
    file = write(tmp_path, STREAM)
    job = read_job(file)
    assert (job.name, job.file) == ("job", file)
    schema = "ts TIMESTAMP, sensor STRING, v DOUBLE, page STRING"
    assert job.source == Source("parquet", ("in",), None, True, schema)
    assert job.sink == Sink("parquet", "out", None, "append", "state")
    assert job.trigger == Trigger(available_now=True)
    assert job.trigger.ends
    assert job.spark == SparkSettings()
    assert job.workload == (
        sw.Workload("ts", ["sensor"], "2 seconds", "1 minute", ["page"])
        .query("per_second", sw.tumbling("1 second"), total=sw.sum("v"), n=sw.count())
        .query("trend", sw.sliding("1 minute", every="1 second"), mean=sw.avg("v"))
    )
    assert str(job.source) == "stream of parquet (in)"


def test_a_query_that_reports_empty_windows_is_read(tmp_path):
    def query(text):
        return read_job(write(tmp_path, f'{STREAM}[queries.filled]\nwindow = "{text}\n')).workload.named("filled")

    minute = sw.tumbling("1 minute")
    per_minute = sw.Workload("ts")
    assert (
        query('tumbling(\'1 minute\')"\nempty = true\nn = "count()"')
        == (per_minute.query("filled", minute, empty=True, n=sw.count()).queries[0])
    )
    assert not query('tumbling(\'1 minute\')"\nempty = false\nn = "count()"').empty
    # In quotes it is a result column like any other.
    assert (
        query('tumbling(\'1 minute\')"\nempty = "count()"')
        == (per_minute.query("filled", minute, empty=sw.count()).queries[0])
    )
    assert mistakes(
        tmp_path, f'{STREAM}[queries.filled]\nwindow = "session(\'1 minute\')"\nempty = true\nn = "count()"\n'
    ) == [
        f"{len(STREAM.splitlines()) + 3}:1 query 'filled': `empty` reports windows without rows, which only sw.tumbling, sw.sliding and sw.cumulative on event time have; got session('1 minute'); leave `empty` out"
    ]


def test_a_batch_job_is_read(tmp_path):
    job = read_job(write(tmp_path, BATCH))
    assert job.source == Source(
        "csv", ("in",), schema="ts TIMESTAMP, sensor STRING, v DOUBLE", options={"header": "true"}
    )
    assert job.sink == Sink("parquet", "out", mode="error")
    assert not job.trigger.ends


def test_what_is_reported_is_read(tmp_path):
    said = '[results]\nlate = "collect"\nemit = "changes"\nidle = "30 seconds"\nbad = "fail"\nahead = "1 hour"\n'
    job = read_job(write(tmp_path, STREAM + said))
    said = {"late": "collect", "emit": "changes", "idle": "30 seconds", "bad": "fail", "ahead": "1 hour"}
    assert job.results == said


def test_mistakes_in_what_is_reported_are_noted(tmp_path):
    said = '[results]\nlate = "drop"\nidle = "soon"\n'
    late, idle = mistakes(tmp_path, STREAM + said)
    assert late.endswith("`results.late` must be 'collect'; got 'drop'")
    assert "[results] `idle` is not a length that we can read; got 'soon'" in idle
    (emit,) = mistakes(tmp_path, BATCH + '[results]\nemit = "changes"\n')
    assert emit.endswith("`results.emit` is for streams; add stream = true to [source], or leave it out")
    (ahead,) = mistakes(tmp_path, BATCH + '[results]\nahead = "1 hour"\n')
    assert ahead.endswith(
        "`results.ahead` is for streams; a batch has no clock that a second run would share; add stream = true to "
        "[source], or leave it out"
    )
    (elsewhere,) = mistakes(tmp_path, changed(STREAM, 'time = "ts"', 'time = "ts"\nemit = "changes"'))
    assert elsewhere.endswith("unknown key `workload.emit`; it is `results.emit`")


def test_a_job_says_which_shape_results_have(tmp_path):
    wide = '[results]\nshape = "wide"\nemit = "differences"\n'
    assert read_job(write(tmp_path, ROLLING + wide)).results == {"shape": "wide", "emit": "differences"}
    (folders,) = mistakes(tmp_path, changed(ROLLING, "[sink]", '[sink]\npartition_by = ["query"]') + wide)
    assert folders.endswith(
        "`sink.partition_by` has 'query', which is not a result column; known: 'change', 'day_n', 'end', 'hour_n', "
        "'revision'"
    )
    visits = '[queries.visits]\nwindow = "session(\'5 minutes\')"\nn = "count()"\n'
    (kind,) = mistakes(tmp_path, ROLLING + visits + wide)
    assert kind.endswith(
        "[results] query 'visits': shape='wide' takes windows that end at ticks, sw.tumbling and sw.sliding on event "
        "time; got session('5 minutes'); give it a workload of its own"
    )
    (word,) = mistakes(tmp_path, changed(ROLLING, "csv", "parquet") + '[results]\nshape = "broad"\n')
    assert word.endswith("`results.shape` must be 'long' or 'wide'; got 'broad'")


ROLLING = """
[source]
format = "parquet"
path = "rows"
[workload]
time = "ts"
[sink]
format = "csv"
path = "out"
[queries.hour]
window = "tumbling('1 hour')"
n = "count()"
[queries.day]
window = "sliding('1 day', every='1 hour')"
n = "count()"
"""


ATTACH = changed(ROLLING, "sliding('1 day', every='1 hour')", "trailing('1 day')")


def test_a_job_attaches_values_to_points(tmp_path):
    own = read_job(write(tmp_path, ATTACH + "[attach]\n"))
    assert own.attach == Attachment()
    others = '[attach]\nformat = "parquet"\npath = "asked"\ntime = "asked_at"\nwhere = "label is not null"\n'
    points = Source("parquet", ("asked",), where="label is not null")
    assert read_job(write(tmp_path, ATTACH + others)).attach == Attachment(points, "asked_at")
    assert read_job(write(tmp_path, changed(ATTACH, "csv", "json"))).attach is None


def test_mistakes_about_points_are_noted(tmp_path):
    (missing,) = mistakes(tmp_path, ATTACH + '[attach]\nformat = "parquet"\n')
    assert missing.endswith("`attach.path` is missing; say where the parquet files are")
    (format_,) = mistakes(tmp_path, ATTACH + '[attach]\npath = "asked"\n')
    assert format_.endswith("`attach.path` needs `format` or `table`: without them, the source's rows are points")
    (results,) = mistakes(tmp_path, ATTACH + '[attach]\n[results]\nbad = "fail"\n')
    assert results.endswith("`results` is about windows that are reported, and with `attach` none is; leave it out")
    (stream,) = mistakes(tmp_path, STREAM + "[attach]\n")
    assert stream.endswith("`attach` adds columns to a table, and the source is a stream; leave stream = true out")
    visits = '[queries.visits]\nwindow = "session(\'5 minutes\')"\nn = "count()"\n'
    (kind,) = mistakes(tmp_path, ATTACH + visits + "[attach]\n")
    assert kind.endswith(
        "[attach] query 'visits': `attach` takes windows that end at a point or at the last tick before it, sw.trailing, "
        "sw.tumbling and sw.sliding on event time; got session('5 minutes')"
    )


def test_a_batch_says_what_it_shuffles(tmp_path):
    assert read_job(write(tmp_path, BATCH + '[results]\nshuffle = "rows"\n')).results == {"shuffle": "rows"}
    (unknown,) = mistakes(tmp_path, BATCH + '[results]\nshuffle = "row"\n')
    assert unknown.endswith("`results.shuffle` must be 'slices' or 'rows'; got 'row'")
    (on_a_stream,) = mistakes(tmp_path, STREAM + '[results]\nshuffle = "rows"\n')
    assert on_a_stream.endswith("`results.shuffle` is for batches; leave it out")


def test_how_slices_are_kept_may_be_said(tmp_path):
    said = '[results]\nordered = true\nstore = "eager"\nmax_slice = 100\n'
    assert read_job(write(tmp_path, STREAM + said)).results == {"ordered": True, "store": "eager", "max_slice": 100}
    assert read_job(write(tmp_path, STREAM + '[results]\nmax_slice = "auto"\n')).results == {"max_slice": "auto"}
    (size,) = mistakes(tmp_path, STREAM + "[results]\nmax_slice = 0\n")
    assert "[results] `max_slice` must be a number of rows, 1 or more; got 0; leave it out" in size
    (store,) = mistakes(tmp_path, STREAM + '[results]\nstore = "tree"\n')
    assert store.endswith("`results.store` must be 'lazy', 'eager' or 'prefix'; got 'tree'")


def test_a_job_may_say_every_option_of_run(tmp_path):
    options = set(inspect.signature(sw.Workload.run).parameters) - {"self", "df"}
    table = "[results]\n" + "".join(f"{name} = 1.5\n" for name in sorted(options))
    found = [m.partition(" ")[2] for m in mistakes(tmp_path, STREAM + table)]
    kinds = dict.fromkeys(options, "a string") | {"ordered": "true or false", "max_slice": "a number of rows"}
    assert found == [f"`results.{name}` must be {kinds[name]}; got 1.5, a number" for name in sorted(options)]
    for name in options:
        (elsewhere,) = mistakes(tmp_path, f'{name} = "x"\n' + STREAM)
        assert elsewhere.endswith(f"unknown table or key `{name}`; it is `results.{name}`")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: p.name)
def test_examples_are_right(file, monkeypatch):
    monkeypatch.setenv("DATA", "data")
    monkeypatch.setenv("BROKERS", "localhost:9092")
    assert read_job(str(file)).workload.queries


def test_there_are_examples():
    assert len(EXAMPLES) >= 4


def test_a_job_says_which_rows_are_no_data(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(
        """
        [source]
        format = "parquet"
        path = "rows"
        [workload]
        time = "t"
        punctuation = "kind = 'marker'"
        watermark_from = "done"
        [queries.laps]
        window = "punctuated(\\"kind = 'start'\\")"
        n = "count()"
        [sink]
        format = "console"
        """
    )
    workload = read_job(str(file)).workload
    assert (workload.punctuation.text, workload.watermark_from) == ("kind = 'marker'", "done")


def test_a_job_on_processing_time_has_no_time_column(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(
        """
        [source]
        format = "parquet"
        path = "rows"
        schema = "v int"
        [workload]
        time = "processing_time()"
        [queries.q]
        window = "tumbling('1 minute')"
        n = "count(v)"
        [sink]
        format = "console"
        """
    )
    workload = read_job(str(file)).workload
    assert repr(workload).startswith("Workload(time=processing_time())")
    file.write_text(file.read_text().replace("[queries.q]", 'lateness = "1 minute"\n[queries.q]'))
    with pytest.raises(JobError, match="`lateness` is about event time"):
        read_job(str(file))


def test_everything_that_a_job_may_say_is_read(tmp_path):
    text = """
    name = "all of it"
    [source]
    format = "CSV"
    path = ["a", "b"]
    select = ["*", "v * 2 AS w"]
    where = "v > 0"
    options = { header = true, sep = ";", maxColumns = 5, since = 2024-01-01 }
    [workload]
    time = "t"
    watermark = 5
    where = "w < 9"
    [queries.q]
    window = "tumbling(10)"
    n = "sum(expr('v * w')).where('v <> w').by(kind)"
    [sink]
    format = "csv"
    path = "out"
    mode = "overwrite"
    flatten = true
    partition_by = ["query", "window_start"]
    [spark]
    master = "local[2]"
    packages = ["g:a:1"]
    [spark.conf]
    spark.sql.shuffle.partitions = 4
    "spark.ui.enabled" = false
    """
    job = read_job(write(tmp_path, text))
    assert job.name == "all of it"
    assert job.source.format == "csv"
    assert job.source.path == ("a", "b")
    assert job.source.select == ("*", "v * 2 AS w")
    assert job.source.where == "v > 0"
    assert job.source.options == {"header": "true", "sep": ";", "maxColumns": "5", "since": "2024-01-01"}
    assert job.sink == Sink("csv", "out", mode="overwrite", partition_by=("query", "window_start"), flatten=True)
    conf = {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}
    assert job.spark == SparkSettings("local[2]", ("g:a:1",), conf)
    assert job.workload.watermark == 5
    assert job.workload.where == sw.expr("w < 9")
    assert job.workload.queries[0].aggregates == {"n": sw.sum(sw.expr("v * w")).where("v <> w").by("kind")}


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file(tmp_path):
    text = changed(STREAM, 'format = "parquet"\npath = "in"', 'format = "parket"\npath = "$NO_SUCH_THING"')
    text = changed(text, "tumbling('1 second')", "tumblin('1 second')")
    text = changed(text, 'mean = "avg(v)"', 'mean = "agv(v)"\nalso = "sum(w)"')
    text = changed(text, "available_now = true", "available_now = 1")
    assert mistakes(tmp_path, text) == [
        "2:11 unknown format 'parket'; did you mean 'parquet'?",
        "3:9 `source.path`: there is no environment variable `NO_SUCH_THING`; set it, or write $$ for a dollar",
        "15:11 `queries.per_second.window`: unknown window 'tumblin'; did you mean 'tumbling'?",
        "21:9 `queries.trend.mean`: unknown aggregate 'agv'; did you mean 'avg'?",
        "22:13 there is no column 'w' in `source.schema`; known: 'page', 'sensor', 'ts', 'v'",
        "30:1 `trigger.available_now` must be true or false; got 1, a number",
    ]


def test_a_mistake_shows_the_line_and_points_at_it(tmp_path):
    file = write(tmp_path, changed(STREAM, '"avg(v)"', '"agv(v)"'))
    with pytest.raises(JobError) as caught:
        read_job(file)
    assert str(caught.value) == (
        f"{file}:21:9: `queries.trend.mean`: unknown aggregate 'agv'; did you mean 'avg'?\n"
        '    mean = "agv(v)"\n'
        "            ^"
    )


NO_QUERIES = (
    'there are no queries; add one: [queries.per_minute] with window = "tumbling(\'1 minute\')" and n = "count()"'
)
QUERIES = STREAM[STREAM.index("[queries.per_second]") : STREAM.index("[sink]")]
NEEDS_SCHEMA = '`source.schema` is missing; a stream of parquet needs it, as in schema = "ts TIMESTAMP, v DOUBLE"'
SCHEMA = 'schema = "ts TIMESTAMP, sensor STRING, v DOUBLE, page STRING"'

# (what is replaced in STREAM, by what, the mistakes)
STREAM_MISTAKES = [
    # tables and keys
    ("[source]", "[sorce]", ["`source` is missing; say where rows come from: [source] with format and path", "1:1 unknown table or key `sorce`; did you mean 'source'?"]),
    ("[trigger]", "[triger]", ["28:1 unknown table or key `triger`; did you mean 'trigger'?"]),
    ('path = "in"', 'pth = "in"', ["1:1 `source.path` is missing; say where the parquet files are", "3:1 unknown key `source.pth`; did you mean 'path'?"]),
    ("[source]\n", 'checkpoint = "x"\n[source]\n', ["1:1 unknown table or key `checkpoint`; it is `sink.checkpoint`"]),
    ("[source]\n", "[source]\nwatermark = 3\n", ["2:1 unknown key `source.watermark`; it is `workload.watermark`"]),
    ("[source]\n", "name = 3\n[source]\n", ["1:1 `name` must be a string; got 3, a number"]),
    (STREAM, "", ["`source` is missing; say where rows come from: [source] with format and path",
                  "`workload` is missing; name the event-time column: [workload] with time = \"ts\"", NO_QUERIES,
                  "`sink` is missing; say where results go: [sink] with format and path"]),
    (STREAM, "source = 3\nworkload = 'x'\nqueries = []\nsink = true\ntrigger = 1.5\nspark = 2024-01-01",
     ["1:1 `source` must be a table; got 3, a number", "2:1 `workload` must be a table; got 'x', a string",
      "3:1 `queries` must be a table; got a list", "4:1 `sink` must be a table; got true",
      "5:1 `trigger` must be a table; got 1.5, a number", "6:1 `spark` must be a table; got 2024-01-01, a date or time"]),
    # source
    ('format = "parquet"\npath = "in"', 'path = "in"', ["1:1 `source.format` is missing; give a Spark format such as \"parquet\", or a `table`"]),
    ('path = "in"', 'path = ""', ["3:1 `source.path` is empty"]),
    ('path = "in"', "path = 3", ["3:1 `source.path` must be a string; got 3, a number"]),
    ('path = "in"', 'path = ["a", "b"]', ["3:1 `source.path` must be a single string for a stream; a pattern such as \"data/*\" takes several folders"]),
    ('path = "in"', 'table = "t"', ["2:1 `source` has both `table` and `format`; leave one out", "5:1 `source.schema` is for files; a table has its own, so leave it out"]),
    ("stream = true", 'stream = "yes"', ["4:1 `source.stream` must be true or false; got 'yes', a string", "26:1 `sink.checkpoint` is for streams; leave it out, or add stream = true to [source]", "28:1 `trigger` is for streams; leave it out, or add stream = true to [source]"]),
    (SCHEMA + "\n", "", ["1:1 " + NEEDS_SCHEMA]),
    (SCHEMA, 'schema = "ts"', ["5:11 `source.schema`: expected a name and a type, as in 'v DOUBLE'; got 'ts'"]),
    (SCHEMA, 'schema = "ts TIMESTAMP, v DECIMAL(3"', ["5:36 `source.schema`: '(' is not closed"]),
    (SCHEMA, 'schema = "ts TIMESTAMP, v INT>"', ["5:30 `source.schema`: '>' closes nothing"]),
    (SCHEMA, 'schema = "ts TIMESTAMP, v INT, v INT"', ["5:32 `source.schema`: the column 'v' appears twice"]),
    ('path = "in"', 'path = "in"\noptions = { a = [1] }', ["4:13 `source.options.a` must be a string, number or boolean; got a list"]),
    ('path = "in"', 'path = "in"\nselect = ["a", 3]', ["4:16 `source.select[1]` must be a string; got 3, a number"]),
    ('path = "in"', 'path = "in"\nselect = "a"', ["4:1 `source.select` must be a list of strings; got 'a', a string"]),
    ('path = "in"', 'path = "${A"', ["3:9 `source.path`: expected ${NAME}, the name of an environment variable; write $$ for a dollar"]),
    # workload
    ('time = "ts"\n', "", ["7:1 `workload.time` is missing; name the event-time column, as in time = \"ts\""]),
    ('time = "ts"', 'time = "t"', ["8:9 there is no column 't' in `source.schema`; did you mean 'ts'?"]),
    ('time = "ts"', 'time = "v"', ["8:9 the time column 'v' is DOUBLE; it must be TIMESTAMP or an integer"]),
    ('keys = ["sensor"]', 'keys = ["sensr"]', ["9:10 there is no column 'sensr' in `source.schema`; did you mean 'sensor'?"]),
    ('keys = ["sensor"]', 'keys = "sensor"', ["9:1 `workload.keys` must be a list of strings; got 'sensor', a string"]),
    ('keys = ["sensor"]', 'keys = ["ts"]', ["9:1 [workload] `keys` must not hold the time column; got 'ts' as both"]),
    ('keys = ["sensor"]', 'keys = ["page", "page"]', ["9:1 [workload] `keys` names 'page' twice"]),
    ('watermark = "2 seconds"', 'watermark = "2 secs ago"', ["10:14 [workload] `watermark` is not a length that we can read; got '2 secs ago'; write numbers with units, as in '10 minutes', '1 hour 30 minutes' or '250 ms'"]),
    ('watermark = "2 seconds"', 'watermark = "-2 seconds"', ["10:14 [workload] `watermark` must not be negative; got '-2 seconds'"]),
    ('lateness = "1 minute"', "lateness = 00:01:00", ['11:1 `workload.lateness` must be a duration such as "2 seconds"; got 00:01:00, a date or time']),
    # queries
    (QUERIES, "", [NO_QUERIES]),
    (QUERIES, "[queries]\n", ["14:1 " + NO_QUERIES]),
    (QUERIES, "[queries]\nq = 3\n", ["15:1 `queries.q` must be a table; got 3, a number"]),
    ('total = "sum(v)"\nn = "count()"\n', "", ["14:1 query 'per_second' computes nothing; add an aggregate, such as n = \"count()\""]),
    ("window = \"tumbling('1 second')\"\n", "", ["14:1 `queries.per_second.window` is missing; every query has one, as in window = \"tumbling('1 minute')\""]),
    ("window = \"tumbling('1 second')\"", "window = 10", ["15:1 `queries.per_second.window` must be a string; got 10, a number"]),
    ('total = "sum(v)"', "total = 3", ["16:1 `queries.per_second.total` must be an aggregate in quotes, as in \"sum(v)\"; got 3, a number"]),
    ('total = "sum(v)"', 'sensor = "sum(v)"', ["16:1 query 'per_second': 'sensor' is a key column; give the aggregate another name"]),
    ('total = "sum(v)"', 'query = "sum(v)"\nspan = "sum(v)"', ["16:1 query 'per_second': 'query' is a reserved result column; give the aggregate another name", "17:1 query 'per_second': 'span' is a reserved result column; give the aggregate another name"]),
    ('total = "sum(v)"', 'total = "sum(page)"', ["16:10 `sum` of column 'page' needs numbers; got string: cast the column to a numeric type first"]),
    ("tumbling('1 second')", "tumbling(10)", ["15:1 one workload has one notion of time; got durations in `watermark` and plain integers in query 'per_second'; use durations for a timestamp column, integers for an integer one"]),
    ("tumbling('1 second')", "frames('x > 3')", ["15:19 there is no column 'x' in `source.schema`; known: 'page', 'sensor', 'ts', 'v'"]),
    ("tumbling('1 second')", "tumbling('1 month')", ["15:11 `queries.per_second.window`: `length` is in months, which are not all equally long; got '1 month'; say in which time zone they begin, as in zone='Europe/Berlin'"]),
    ("tumbling('1 second')", "policy(f)", ["15:11 `queries.per_second.window`: `policy` takes code, which a job file cannot hold: use Python for it, sw.policy(...)"]),
    # sink
    ('path = "out"', 'path = "in/"', ["25:1 `sink.path` is the path of the source; results need a folder of their own"]),
    ('path = "out"\n', "", ["23:1 `sink.path` is missing; say where the parquet files go"]),
    ('format = "parquet"\npath = "out"', 'format = "console"\npath = "out"', ["25:1 `sink.path` makes no sense with 'console'; leave it out"]),
    ('format = "parquet"\npath = "out"', 'format = "rate"', ["24:11 'rate' is a source, not a sink; use \"parquet\" or \"console\""]),
    ('format = "parquet"\npath = "out"', 'format = "csv"\npath = "out"', ["24:1 csv cannot hold the structs `window` and `span`; add flatten = true, or use parquet or json"]),
    ('checkpoint = "state"\n', "", ['23:1 `sink.checkpoint` is missing; a stream needs a folder to resume from, as in checkpoint = "state"']),
    ('path = "out"', 'path = "out"\nmode = "overwrite"', ['26:9 `sink.mode` = "overwrite" is for batches; a stream appends: leave it out']),
    ('path = "out"', 'path = "out"\nmode = "complete"', ['26:9 `sink.mode` = "complete" does not fit results, which are changes already; a stream appends: leave it out']),
    ('path = "out"', 'path = "out"\nmode = "apend"', ["26:9 `sink.mode` must be append for a stream; got 'apend'"]),
    ('path = "out"', 'path = "out"\npartition_by = ["sensr", "window"]', ["26:18 `sink.partition_by` has 'sensr', which is not a result column; did you mean 'sensor'?", "26:27 `sink.partition_by` has 'window', which is not a result column; known: 'change', 'mean', 'n', 'query', 'revision', 'sensor', 'total'"]),
    # trigger
    ("available_now = true", "", ["28:1 `trigger` takes one of available_now, once, processing_time; got none"]),
    ("available_now = true", "available_now = true\nonce = true", ["28:1 `trigger` takes one of available_now, once, processing_time; got available_now and once"]),
    ("available_now = true", "available_now = false", ["29:1 `trigger.available_now` = false has no effect; leave it out"]),
    ("available_now = true", 'processing_time = "5 parsecs"', ["29:20 `trigger.processing_time` has an unknown unit 'parsecs'; got '5 parsecs'; known: 'days', 'hours', 'microseconds', 'milliseconds', 'minutes', 'seconds', 'weeks'"]),
    ("available_now = true", "continuous = 1", ["28:1 `trigger` takes one of available_now, once, processing_time; got none", "29:1 unknown key `trigger.continuous`; known: 'available_now', 'once', 'processing_time'"]),
    # TOML itself
    ("[source]", "[source", ["1:8 this is not TOML: expected ']' at the end of a table declaration"]),
    ('path = "in"', "path = in", ["3:8 this is not TOML: invalid value; strings need quotes"]),
    ('path = "in"', 'path = "in"\npath = "on"', ["4:12 this is not TOML: cannot overwrite a value; the same key or table appears twice"]),
    ("available_now = true", "x = '''", ["30:1 this is not TOML: expected \"'''\""]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), STREAM_MISTAKES, ids=[f"{m[1][:40]}" for m in STREAM_MISTAKES])
def test_mistakes_have_places_and_say_what_to_do(tmp_path, old, new, expected, monkeypatch):
    monkeypatch.delenv("A", raising=False)
    assert mistakes(tmp_path, changed(STREAM, old, new)) == expected


BATCH_MISTAKES = [
    ('path = "out"', 'path = "out"\ncheckpoint = "c"', ["18:1 `sink.checkpoint` is for streams; leave it out, or add stream = true to [source]"]),
    ('path = "out"', 'path = "out"\nmode = "update"', ["18:9 `sink.mode` must be one of append, overwrite, error, ignore; got 'update'"]),
    ('path = "out"', 'path = "out"\n[trigger]\nonce = true', ["18:1 `trigger` is for streams; leave it out, or add stream = true to [source]"]),
    ('format = "csv"\npath = "in"', 'format = "rate"', ["2:1 'rate' gives streams only; add stream = true"]),
    ("tumbling('1 second')", "tumbling(5)", ["8:9 lengths are plain integers, but the time column 'ts' is TIMESTAMP; write them as in '10 minutes'"]),
    ('time = "ts"', 'time = "ts"\nunit = "seconds"', ["9:9 `workload.unit` is for integers, and the time column 'ts' is TIMESTAMP; leave it out"]),
    ("ts TIMESTAMP", "ts BIGINT", ["8:9 lengths are durations, but the time column 'ts' is BIGINT; say what it counts: unit = one of \"seconds\", \"milliseconds\", \"microseconds\", \"nanoseconds\""]),
    ('time = "ts"', 'time = "ts"\nunit = "second"', ["9:9 [workload] `unit` must be one of 'seconds', 'milliseconds', 'microseconds', 'nanoseconds'; got 'second'; leave it out where time is a timestamp"]),
    ('time = "ts"', 'time = "ts"\nunit = 5', ["9:1 `workload.unit` must be a string; got 5, a number"]),
    ('[source]\n', '[source]\nunit = "seconds"\n', ["2:1 unknown key `source.unit`; it is `workload.unit`"]),
]  # fmt: skip


def test_epoch_seconds_say_their_unit(tmp_path):
    text = changed(changed(STREAM, "ts TIMESTAMP", "ts BIGINT"), 'time = "ts"', 'time = "ts"\nunit = "seconds"')
    job = read_job(write(tmp_path, text))
    assert (job.workload.unit, job.workload.watermark, job.workload.lateness) == ("seconds", 2, 60)
    assert job.workload.queries[0].window.length.size == 1
    assert mistakes(tmp_path, changed(text, '"2 seconds"', '"2500 ms"')) == [
        "11:14 [workload] `watermark` must be a whole number of seconds, the time column's unit; got '2 seconds 500 "
        "milliseconds'; round it"
    ]
    assert mistakes(tmp_path, changed(text, "tumbling('1 second')", "tumbling('1500 ms')")) == [
        "16:1 query 'per_second': `length` must be a whole number of seconds, the time column's unit; got '1 second 500 "
        "milliseconds'; round it"
    ]


def test_a_mistake_in_a_window_is_not_taken_for_one_in_a_column_of_the_same_name_as_its_query(tmp_path):
    text = changed(changed(BATCH, "ts TIMESTAMP", "ts BIGINT"), 'time = "ts"', 'time = "ts"\nunit = "seconds"')
    text = changed(changed(text, "tumbling('1 second')", "tumbling('1500 ms')"), "total =", "per_second =")
    assert mistakes(tmp_path, text) == [
        "13:1 query 'per_second': `length` must be a whole number of seconds, the time column's unit; got '1 second 500 "
        "milliseconds'; round it"
    ]


def test_every_mistake_of_a_workload_and_of_a_query_is_found(tmp_path):
    text = changed(changed(STREAM, '"2 seconds"', '"-2 seconds"'), 'keys = ["sensor"]', 'keys = ["page", "page"]')
    text = changed(text, 'total = "sum(v)"', 'query = "sum(v)"\nspan = "max(v)"\ntotal = "sum(w)"')
    assert mistakes(tmp_path, text) == [
        "9:1 [workload] `keys` names 'page' twice",
        "10:14 [workload] `watermark` must not be negative; got '-2 seconds'",
        "16:1 query 'per_second': 'query' is a reserved result column; give the aggregate another name",
        "17:1 query 'per_second': 'span' is a reserved result column; give the aggregate another name",
        "18:14 there is no column 'w' in `source.schema`; known: 'page', 'sensor', 'ts', 'v'",
    ]


@pytest.mark.parametrize(("old", "new", "expected"), BATCH_MISTAKES, ids=[m[1][:40] for m in BATCH_MISTAKES])
def test_batches_have_mistakes_of_their_own(tmp_path, old, new, expected):
    assert mistakes(tmp_path, changed(BATCH, old, new)) == expected


def test_columns_are_not_checked_where_a_select_makes_others(tmp_path):
    text = changed(changed(BATCH, 'path = "in"', 'path = "in"\nselect = ["*", "v * 2 AS w"]'), "sum(v)", "sum(w)")
    assert read_job(write(tmp_path, text)).workload.columns == ("w",)


def test_upper_and_lower_case_of_columns_are_the_same_as_to_spark(tmp_path):
    assert read_job(write(tmp_path, changed(BATCH, "sum(v)", "sum(V)"))).workload.columns == ("V",)


# -- environment variables


def test_environment_variables_are_put_into_paths_and_options(tmp_path, monkeypatch):
    monkeypatch.setenv("DATA", "/data")
    monkeypatch.setenv("SEP", ";")
    text = changed(changed(BATCH, '"in"', '"${DATA}/in$$1"'), "header = true", 'sep = "$SEP"')
    text = changed(text, '"out"', '"$DATA/out"')
    job = read_job(write(tmp_path, text))
    assert job.source.path == ("/data/in$1",)
    assert job.source.options == {"sep": ";"}
    assert job.sink.path == "/data/out"


# -- overrides


def test_overrides_change_values_and_are_read_as_toml_where_they_are_toml(tmp_path):
    overrides = ["sink.path=other#1", "workload.keys=[]", "source.options.header=false", 'workload.watermark="3 s"']
    overrides += ["queries.trend.window=tumbling('1 hour')", "queries.trend.n=count()", "spark.conf.spark.x.y=3"]
    job = read_job(write(tmp_path, BATCH), overrides)
    assert job.sink.path == "other#1"
    assert job.workload.keys == ()
    assert job.source.options == {"header": "false"}
    assert job.workload.watermark == 3_000_000
    assert job.workload.named("trend").window == sw.tumbling("1 hour")
    assert job.spark.conf == {"spark.x.y": "3"}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("sink.path", "expected a key, = and a value; write --set key.path=value, as in --set sink.path=out"),
        ("=3", "expected a key, = and a value; write --set key.path=value, as in --set sink.path=out"),
        ("a b=3", "expected a key, = and a value; write --set key.path=value, as in --set sink.path=out"),
        ("sink.path.x=3", "`sink.path` is not a table, so it has no `x`"),
        ("sink.pth=3", "unknown key `sink.pth`; did you mean 'path'?"),
        ("sink.mode=apend", "`sink.mode` must be one of append, overwrite, error, ignore; got 'apend'"),
        ("queries.per_second.total=sun(v)", "`queries.per_second.total`: unknown aggregate 'sun'; did you mean 'sum'?"),
        ("sink=3", "`sink` must be a table; got 3, a number"),
    ],
)
def test_mistakes_in_overrides_are_named_by_them(tmp_path, override, expected):
    assert mistakes(tmp_path, BATCH, override) == [f"--set {override}: {expected}"]


# -- files


def test_a_file_that_is_not_there_gets_the_nearest_name(tmp_path):
    write(tmp_path, BATCH, "positions.toml")
    with pytest.raises(JobError, match=r"position\.toml: there is no such file; did you mean '.*positions\.toml'\?"):
        read_job(str(tmp_path / "position.toml"))
    with pytest.raises(JobError, match="there is no such file; give a job file in TOML"):
        read_job(str(tmp_path / "no" / "x.toml"))


def test_a_folder_is_no_job(tmp_path):
    with pytest.raises(JobError, match=r"this is a folder; expected a job file, as in job\.toml"):
        read_job(str(tmp_path))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    (tmp_path / "job.toml").write_bytes(b"[source]\n\xff")
    with pytest.raises(JobError, match=r"job\.toml:2: this is not UTF-8 text; save the file as UTF-8"):
        read_job(str(tmp_path / "job.toml"))


def test_a_name_that_no_file_can_have_is_refused():
    with pytest.raises(JobError, match="this cannot be read"):
        read_job("a\0b")


@pytest.mark.parametrize("text", ["a = " + "[" * 5000, "a = " + "1" * 5000])
def test_what_tomllib_gives_up_on_is_refused(tmp_path, text):
    with pytest.raises(JobError, match="this is not TOML"):
        read_job(write(tmp_path, text))


def test_files_of_windows_editors_are_read(tmp_path):
    (tmp_path / "job.toml").write_bytes(b"\xef\xbb\xbf" + BATCH.replace("\n", "\r\n").encode())
    assert read_job(str(tmp_path / "job.toml")).source.format == "csv"
