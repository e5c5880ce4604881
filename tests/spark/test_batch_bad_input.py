"""Bad input on Spark: a clear error, before Spark starts a job."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import functions as F

import slicewise as sw

SECOND = sw.tumbling("1 second")


@pytest.fixture(scope="module")
def rows(spark):
    """A DataFrame that fails when a row of it is looked at."""
    fails = F.raise_error(F.lit("a row was looked at"))
    n = F.col("id")
    return spark.range(3).select(
        F.when(fails.cast("string").isNull(), F.timestamp_seconds(n)).alias("ts"),
        n.alias("price"),
        n.cast("string").alias("name"),
        F.create_map("id", "id").alias("tags"),
        F.struct(F.create_map("id", "id").alias("inner")).alias("held"),
        F.expr("make_ym_interval(1, 1)").alias("months"),
        F.lit(None).alias("nothing"),
        F.timestamp_seconds(n).alias("query"),
    )


def refuse(frame, workload, message, error=sw.DataError, **options):
    with pytest.raises(error, match=re.escape(message)):
        workload.run(frame, **options)


def w(time="ts", **more):
    return sw.Workload(time, **more)


def counted(time="ts", window=SECOND, **more):
    return w(time, **more).query("q", window, n=sw.count())


def computed(aggregate):
    return w().query("q", SECOND, x=aggregate)


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (counted("tss"), "there is no column 'tss' in the DataFrame; did you mean 'ts'?"),
        (counted(keys=["nme"]), "there is no column 'nme' in the DataFrame; did you mean 'name'?"),
        (computed(sw.sum("prize")), "there is no column 'prize' in the DataFrame; did you mean 'price'?"),
        (computed(sw.max_by("name", "prise")), "there is no column 'prise' in the DataFrame; did you mean 'price'?"),
        (
            counted(order=["xyz"]),
            "there is no column 'xyz' in the DataFrame; known: 'held', 'months', 'name', 'nothing'",
        ),
        (
            counted(window=sw.punctuated("pric > 3")),
            "there is no column 'pric' in the DataFrame; did you mean 'price'?",
        ),
        (
            counted("name"),
            "the time column 'name' must hold timestamps, dates or integers; got string; cast it first: ",
        ),
        (counted("name"), "df.withColumn('name', F.to_timestamp('name'))"),
        (
            counted(window=sw.tumbling(10)),
            "the time column 'ts' holds timestamp, but the windows are given in plain integers;",
        ),
        (
            counted(keys=["tags"]),
            "key column 'tags' is of type map<bigint,bigint>, and maps cannot be compared; use one of",
        ),
        (
            counted(keys=["held"]),
            "key column 'held' is of type struct<inner:map<bigint,bigint>>, and maps cannot be compared",
        ),
        (counted(order=["tags"]), "order column 'tags' is of type map<bigint,bigint>, and maps cannot be compared"),
        (
            computed(sw.max("months")),
            "column 'months' is of type interval year to month, which slicewise cannot read; cast",
        ),
    ],
)
def test_columns_that_do_not_fit(rows, workload, message):
    refuse(rows, workload, message)


@pytest.mark.parametrize(
    ("aggregate", "message"),
    [
        (sw.sum("name"), "`sum` of column 'name' needs numbers; got string: cast the column to a numeric type first"),
        (sw.avg("query"), "`avg` of column 'query' needs numbers; got timestamp"),
        (sw.max("tags"), "`max` of column 'tags' needs values that can be ordered; got map<int64, int64>"),
        (sw.concat("price"), "`concat` of column 'price' needs"),
        (
            sw.min("nothing"),
            "Spark must know the type of 'x' in advance; declare it: sw.aggregate(..., result='double'), or cast",
        ),
        (
            sw.aggregate(combine=max, identity=0, name="top")("price"),
            "Spark must know the type of 'x' in advance; declare it: sw.aggregate(..., result='double')",
        ),
    ],
)
def test_aggregates_that_do_not_fit(rows, aggregate, message):
    refuse(rows, computed(aggregate), message, sw.AggregateError)


def test_columns_of_two_types(rows):
    workload = computed(sw.sum("price")).query("r", SECOND, x=sw.max("name"))
    message = "queries 'q' and 'r' both have a column 'x', of types int64 and string; give one of them another name"
    refuse(rows, workload, message, sw.AggregateError)


def test_what_is_not_a_workload_for_spark(rows):
    refuse(rows, w(), "the workload has no queries; add one: ", sw.QueryError)
    refuse(rows, counted(), "`late` must be 'collect'", sw.QueryError, late="x")
    taken = w().query("q", SECOND, late=sw.count())
    refuse(rows, taken, "with late='collect' the results have a column 'late'; give yours another name", late="collect")
    taken = w().query("q", SECOND, reason=sw.count())
    refuse(rows, taken, "with late='collect' the results have a column 'reason'; give yours another", late="collect")
    refuse(
        rows,
        counted(),
        "`ahead` is for streams, and this DataFrame is a batch; a batch has no clock that a second run would share; "
        "leave it out",
        sw.QueryError,
        ahead="1 hour",
    )


@pytest.mark.parametrize("frame", [None, [{"ts": 1}], {"ts": [1]}], ids=["None", "list", "dict"])
def test_what_is_not_a_dataframe(frame):
    kind = type(frame).__name__
    refuse(frame, counted(), f"`run` takes a Spark DataFrame; got {kind}; in process, use operator()")


def test_a_column_that_is_there_twice(rows):
    twice = rows.select("*", "price")
    refuse(twice, computed(sw.sum("price")), "the DataFrame has the column 'price' twice; rename one of them")
    assert computed(sw.max("name")).run(twice).columns[-1] == "x", "a column that nobody reads may be there twice"


def test_no_job_is_started(spark, rows):
    tracker = spark.sparkContext.statusTracker()
    before = list(tracker.getJobIdsForGroup(None))
    workload = counted(keys=["name"]).query("visit", sw.session("1 minute"), all=sw.collect_list("price"))
    found = workload.query("ten", sw.tumbling(sw.rows(10)), mean=sw.avg("price")).run(rows)
    assert list(tracker.getJobIdsForGroup(None)) == before
    with pytest.raises(Exception, match="a row was looked at"):
        found.collect()


# Whole rows, given back or shown


def stream_with(spark, *columns):
    """A streaming DataFrame with further columns that nobody reads."""
    return spark.readStream.format("rate").load().selectExpr("timestamp as ts", "value as price", *columns)


TWICE = "the DataFrame has the column 'x' twice, and {}; rename or drop one of them"
ONE_NAME = (
    "the DataFrame has columns 'x' and 'X', which Spark takes for the same name, and {}; rename or drop one of them, "
    "or set spark.sql.caseSensitive"
)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"late": "collect"}, "late='collect' gives back whole rows"), ({"bad": "fail"}, "bad='fail' shows whole rows")],
    ids=["late", "bad"],
)
@pytest.mark.parametrize(
    ("columns", "message"), [(("1 as x", "2 as x"), TWICE), (("1 as x", "2 as X"), ONE_NAME)], ids=["twice", "case"]
)
def test_columns_that_nobody_reads_are_one_name_where_whole_rows_are_wanted(
    spark, rows, columns, message, options, why
):
    for frame in (rows.selectExpr("*", *columns), stream_with(spark, *columns)):
        assert counted().run(frame).columns[-1] == "n"
        with pytest.raises(sw.DataError, match=f"^{re.escape(message.format(why))}$"):
            counted().run(frame, **options)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("parse_json('1') as x", "column 'x' is of type variant, which a stream cannot give back (late='collect')"),
        ("array(parse_json('1')) as x", "column 'x' is of type array<variant>, which a stream cannot give back"),
        ("make_ym_interval(1, 1) as `x.y`", "column 'x.y' is of type interval year to month, which a stream cannot"),
        ("named_struct('a', 1, 'a', 2) as x", "column 'x' is of type struct<a:int,a:int>, which a stream cannot give"),
    ],
    ids=["variant", "nested", "interval", "fields"],
)
def test_late_rows_of_a_stream_must_be_of_types_that_python_reads(spark, column, message):
    stream = stream_with(spark, column)
    assert counted().run(stream).columns[-1] == "n"
    with pytest.raises(sw.DataError, match=f"^{re.escape(message)}.*; drop the column, or cast it first$"):
        counted().run(stream, late="collect")


@pytest.mark.parametrize(
    "column", ["make_ym_interval(1, 1) as x", "array(named_struct('a', 1, 'a', 2)) as x"], ids=["interval", "fields"]
)
def test_a_bad_row_that_stops_a_stream_must_come_to_python(spark, column):
    stream = stream_with(spark, column)
    type_ = stream.schema["x"].dataType.simpleString()
    message = (
        f"column 'x' is of type {type_}, which Arrow cannot bring to Python (bad='fail'); drop the column, or cast it "
        "first"
    )
    with pytest.raises(sw.DataError, match=f"^{re.escape(message)}$"):
        counted().run(stream, bad="fail")
    assert counted().run(stream_with(spark, "parse_json('1') as x"), bad="fail").columns[-1] == "n"


def test_fields_of_one_name_are_refused_where_they_are_read(spark, rows):
    frame = rows.selectExpr("*", "named_struct('a', 1, 'a', 2) as x")
    refuse(
        frame, computed(sw.last("x")), "column 'x' is of type struct<a:int,a:int>, which slicewise cannot read; cast"
    )


def test_a_row_that_would_make_more_than_a_million_ticks_due_is_named(spark):
    frame = spark.sql("select timestamp_seconds(s) ts, k from values (0, 'a'), (0, 'b'), (1000001, 'b') as t(s, k)")
    workload = sw.Workload("ts", keys=["k"]).query("q", sw.sliding(sw.rows(2), every="1 second"), n=sw.count())
    message = (
        "the record of time 1970-01-12 13:46:41+00:00, key k='b': 1000001 ticks of sliding(rows(2), every='1 second') "
        "would be due because of it, since the record of time 1970-01-01 00:00:00+00:00, and no record may bring more "
        "than 1000000; filter such records out before run(), or take a longer `every`"
    )
    with pytest.raises(Exception, match=re.escape(message)):
        workload.run(frame).collect()
