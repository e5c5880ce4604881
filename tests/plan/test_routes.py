"""Routes: which queries the JVM slices, which take rows to Python, and the reason that is given."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import QueryError
from slicewise.plan.axes import Marks, MeasureScale, Positions, Units, axes_of, scale_of
from slicewise.plan.condition_sql import UntranslatableError, condition_sql
from slicewise.plan.explain import explain_routes
from slicewise.plan.expression_sql import in_the_jvm
from slicewise.plan.routes import (
    IN_THE_JVM,
    ROWS,
    SLICES,
    choose_shuffle,
    is_left_to_spark,
    is_sliced_in_numpy,
    route_of,
)
from tests.aggregates.over import make

TYPES = {
    "v": pa.int32(),
    "x": pa.float64(),
    "d": pa.decimal128(12, 2),
    "huge": pa.decimal128(38, 4),
    "s": pa.string(),
    "flag": pa.bool_(),
    "id": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
    "list": pa.list_(pa.int64()),
}
ALL = {"n": sw.count(), "total": sw.sum("v")}


def route(window, types=TYPES, **aggregates):
    return route_of(sw.Workload(time="t").query("q", window, **(aggregates or ALL)).queries[0], types)


@pytest.mark.parametrize(
    "window",
    [
        sw.tumbling("1 second"),
        sw.session("1 second"),
        sw.tumbling(sw.rows(100)),
        sw.sliding(sw.rows(96), every=sw.rows(8)),
        sw.sliding(sw.rows(5), every=sw.rows(100)),
        sw.tumbling(sw.units(10, "v")),
        sw.sliding(sw.units(0.5, "x"), every=sw.units(0.2, "x")),
        sw.tumbling(sw.units(0.25, "d")),
        sw.punctuated("flag"),
        sw.punctuated("v % 10 = 0 and s in ('a', 'b') or x / 2 > 1"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("types", [TYPES, None], ids=["types", "no types"])
def test_windows_that_a_column_tells_are_sliced(window, types):
    assert route(window, types).choice == SLICES


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (sw.tumbling(sw.rows(1)), r"slices of about one row would be hardly fewer than the rows"),
        (sw.sliding(sw.rows(100), every=sw.rows(7)), r"slices of about 3 rows"),
        (
            sw.sliding(sw.rows(10), every="5 seconds"),
            r"only rows in order tell where the windows of sliding\(rows\(10\)",
        ),
        (sw.frames("flag"), r"only rows in order tell where the windows of frames\('flag', min_rows=1\) lie"),
        (sw.punctuated(lambda c: c["v"] > 1, columns=["v"]), r"asks a function of Python which rows start windows"),
        (
            sw.punctuated("d / 3 > 1"),
            r"the JVM would not compute 'd / 3 > 1' as Python does: the division of the decimals",
        ),
        (sw.punctuated("s > 1"), r"the JVM would not compute 's > 1' as Python does: .* are not of one kind"),
        (sw.tumbling(sw.units(1, "s")), r"'s' is string, which is not a number"),
        (sw.tumbling(sw.units(1, "huge")), r"'huge' is decimal128\(38, 4\), which does not fit in 64 bits"),
        (sw.tumbling(sw.units(2**61, "v")), r"reaches further than 64 bits"),
    ],
    ids=lambda x: repr(x) if not isinstance(x, str) else "",
)
def test_what_needs_rows_says_why(window, reason):
    decision = route(window)
    assert decision.choice == ROWS
    assert re.search(reason, decision.reason), decision.reason


def test_time_series_need_rows_and_say_why():
    neighbours = "goes from each row to the next, and only Python has them in order"
    for aggregate in (sw.increase("v"), sw.rate("v"), sw.time_weighted_avg("v"), sw.longest_rise("v")):
        decision = route(sw.tumbling("1 second"), x=aggregate)
        assert (decision.choice, decision.reason) == (ROWS, f"{aggregate!r} {neighbours}")
    faded = route(sw.tumbling("1 second"), x=sw.ewma("v", "10 minutes"))
    powers = "weighs rows by powers of 2, whose last bits differ between the JVM and Python"
    assert (faded.choice, faded.reason) == (ROWS, f"ewma('v', '10 minutes') {powers}")
    assert route(sw.tumbling("1 second"), x=sw.ohlc("v")).choice == SLICES


def test_aggregates_that_only_python_computes_need_rows():
    assert route(sw.tumbling(sw.rows(100)), all=sw.concat("s")).reason == "concat('s') is computed in Python"
    best = route(sw.tumbling(sw.rows(100)), best=sw.max_by("s", "v", 3))
    assert best.reason == "max_by('s', 'v', 3) keeps several rows, and is computed in Python"
    by_text = route(sw.tumbling(sw.rows(100)), best=sw.max_by("v", "s"))
    assert by_text.choice == ROWS
    assert "goes by string, which the JVM cannot reverse" in by_text.reason


@pytest.mark.parametrize("built_in", sorted(IN_THE_JVM, key=lambda cls: cls.name), ids=lambda cls: cls.name)
def test_aggregates_go_by_their_class_and_not_by_their_name(built_in):
    made = sw.aggregate(lift=lambda *v: -v[0], combine=max, identity=-100, name=built_in.name)
    for own in (made("v"), make(built_in.name, type("Own", (built_in,), {}), columns="vx")):
        decision = route(sw.tumbling("1 second"), x=own)
        assert (decision.choice, decision.reason) == (ROWS, f"{own!r} is computed in Python")
        assert repr(own).startswith(f"user-defined {built_in.name}(")


def test_windows_on_one_measure_stand_together():
    windows = [
        sw.tumbling(sw.rows(10)),
        sw.tumbling(sw.units(2, "v")),
        sw.punctuated("flag"),
        sw.sliding(sw.rows(30), every=sw.rows(10)),
        sw.tumbling(sw.units(0.5, "v")),
        sw.tumbling(sw.units(5, "v")),
    ]
    counts, marks, exact, floating = axes_of(windows, TYPES)
    assert isinstance(counts, Positions)
    assert isinstance(marks, Marks)
    assert isinstance(exact, Units)
    assert isinstance(floating, Units)
    assert (counts.places, marks.places, exact.places, floating.places) == ((0, 3), (2,), (1, 5), (4,))
    assert (exact.scale, floating.scale) == (MeasureScale(), MeasureScale(exact=False))


def test_decimals_are_measured_in_their_smallest_step():
    (units,) = axes_of([sw.sliding(sw.units(0.125, "d"), every=sw.units(2, "d"))], TYPES)
    assert units.scale == MeasureScale(digits=3)
    assert (units.windows[0].length.size, units.windows[0].every.size) == (125, 2000)
    with pytest.raises(QueryError, match="is not a number"):
        scale_of(sw.tumbling(sw.units(1, "flag")), TYPES["flag"])


@pytest.mark.parametrize(
    ("said", "sql"),
    [
        ("flag", "coalesce(flag, false)"),
        ("v is null", "coalesce((v IS NULL), false)"),
        ("x > v", "coalesce((x > CAST(v AS DOUBLE)), false)"),
        ("v % 2 = 0", "CASE WHEN CAST(CAST(2 AS BIGINT) AS BIGINT) <> 0 THEN"),
        ("v + 1 > 0", "CAST((CAST(v AS BIGINT) + CAST(CAST(1 AS BIGINT) AS BIGINT)) AS BIGINT)"),
        ("id + 1 > 0", "CAST(id AS DECIMAL(38, 0))"),
        ("s = 'it''s'", "CAST(X'69742773' AS STRING)"),
        ("v = null", "coalesce(CAST(NULL AS BOOLEAN), false)"),
    ],
)
def test_conditions_spell_every_conversion_out(said, sql):
    assert sql in condition_sql(said, TYPES, str)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("v", "neither true nor false"),
        ("not v", "neither true nor false"),
        ("s + 1 > 2", "does not calculate with numbers"),
        ("at = local", "not of one kind"),
        ("list = list", "not of one kind"),
        ("huge * huge > 1", "decimals of 77 digits do not fit"),
        ("huge = 0.123456", "decimals of 40 digits do not fit"),
        ("id * id * id > 0", "do not fit any Spark type"),
    ],
)
def test_conditions_that_would_come_out_otherwise_are_not_translated(said, why):
    with pytest.raises(UntranslatableError, match=why):
        condition_sql(said, TYPES, str)


def test_routes_are_explained_in_columns():
    workload = (
        sw.Workload(time="ts")
        .query("trend", sw.tumbling("1 minute"), peak=sw.max("v"))
        .query("recent", sw.sliding(sw.rows(10), every="5 seconds"), mean=sw.avg("v"))
    )
    assert explain_routes(workload) == [
        "  trend        slices  each window is one slice, which Spark's own aggregation computes",
        "  recent       rows    only rows in order tell where the windows of sliding(rows(10), every='5 seconds') lie",
        "  as a batch   slices  by key and window, as Spark's own aggregation does",
        "  as a stream  rows    sent to the shards as they are: query 'recent' is forward context aware: later rows",
        "                       place earlier edges",
    ]


def test_conditions_on_rows_that_python_computes_are_explained():
    workload = sw.Workload(time="ts", where="exp(v) > 1", punctuation="sin(v) = 0")
    lines = explain_routes(workload.query("q", sw.tumbling("1 minute"), n=sw.count()))
    said = " ".join(" ".join(lines).split())
    for name, function, text in (("where", "exp", "exp(v) > 1"), ("punctuation", "sin", "sin(v) = 0")):
        reason = f"Java and NumPy may differ in the last digit of {function}: expr('{text}') is computed in Python"
        assert f"{name} rows {reason}" in said
    plain = explain_routes(sw.Workload(time="ts", where="v > 1").query("q", sw.tumbling("1 minute"), n=sw.count()))
    assert len(plain) == 3


def test_of_many_queries_twelve_are_explained():
    workload = sw.Workload(time="ts")
    for i in range(20):
        workload = workload.query(f"q{i}", sw.sliding(sw.rows(10), every=sw.rows(i + 1)), n=sw.count())
    lines = explain_routes(workload)
    assert lines[12] == "  and 8 more"
    assert lines[13] == "  as a batch   rows    brought together by key to be numbered, and sliced where they are"
    assert lines[14].startswith("  as a stream  rows    sent to the shards as they are: query 'q0' counts rows")
    assert max(map(len, lines)) <= 108


NUMBERS = {
    "x": pa.float64(),
    "n": pa.int64(),
    "d": pa.decimal128(38, 0),
    "e": pa.decimal128(38, 30),
    "w": pa.duration("us"),
}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("cos(x)", "Java and NumPy may differ in the last digit of cos"),
        ("round(x, 2)", "Java and Python may round the digits of a double differently"),
        ("round(n, -2)", "whole numbers are rounded in Python"),
        ("coalesce(d, e)", "38 digits are not enough for both of two decimals"),
        ("cast(x as string)", "casts of double to string depend on Spark's settings or on Java"),
        ("coalesce(w, null)", "values of duration[us] are chosen in Python"),
        (" + ".join(["n"] * 100), "it is too long for Spark's parser"),
        ("abs(" * 40 + "n" + ")" * 40, "it is too long for Spark's parser"),
    ],
    ids=["functions", "round", "round whole", "decimals", "cast", "times", "long", "doubling"],
)
def test_the_reason_why_python_computes_a_column_is_given(text, why):
    assert in_the_jvm(["n", sw.expr("n + 1")], NUMBERS)
    workload = sw.Workload("t").query("q", sw.tumbling("1 minute"), n=sw.count(sw.expr(text)))
    assert route_of(workload.queries[0], NUMBERS).choice == ROWS
    assert in_the_jvm([sw.expr(text)], NUMBERS).reason == f"{why}: {sw.expr(text)!r} is computed in Python"


TRAVEL = "computed where rows are read, so that few travel"
IN_WINDOWS = "by key and window, as Spark's own aggregation does"


def shuffle(*windows, keys=("k",), aggregates=ALL, **settings):
    workload = sw.Workload(time="t", keys=keys, **settings)
    for i, window in enumerate(windows):
        workload = workload.query(f"q{i}", window, **aggregates)
    return choose_shuffle(workload)


@pytest.mark.parametrize(
    ("windows", "choice", "reason"),
    [
        ([sw.session("8 milliseconds")], ROWS, "the gap of 8 milliseconds may be about as many as the rows"),
        ([sw.session("1 second")], ROWS, "slices no longer than the gap of 1 second may be about as many as the rows"),
        ([sw.session("1 second 1 microsecond")], SLICES, TRAVEL),
        ([sw.session("5 minutes")], SLICES, TRAVEL),
        ([sw.session("5 minutes"), sw.session("1 second")], ROWS, "the gap of 1 second may be"),
        ([sw.session("1 second"), sw.tumbling("1 second")], SLICES, TRAVEL),
        ([sw.session("1 second"), sw.tumbling("2 seconds")], ROWS, "the gap of 1 second may be"),
        ([sw.sliding("1 second", every="10 milliseconds")], ROWS, "slices of about 10 milliseconds may be about as"),
        ([sw.sliding("1 second", every="30 milliseconds")], SLICES, TRAVEL),
        ([sw.sliding("1 second", every="15 milliseconds")], ROWS, "slices of about 7.5 milliseconds may be"),
        ([sw.between("2024-01-01", "2024-01-02")], SLICES, TRAVEL),
        ([sw.tumbling("1 millisecond")], SLICES, IN_WINDOWS),
        ([sw.tumbling("1 millisecond"), sw.frames("v > 1")], SLICES, IN_WINDOWS),
        ([sw.edges([(1, 5), (5, 7)])], SLICES, IN_WINDOWS),
        ([sw.edges([(1, 5), (4, 7)])], SLICES, TRAVEL),
        ([sw.tumbling(5)], SLICES, IN_WINDOWS),
        ([sw.session(5)], SLICES, TRAVEL),
        ([sw.tumbling(sw.rows(100)), sw.session("5 minutes")], ROWS, "brought together by key to be numbered, and"),
        ([sw.frames("v > 1")], ROWS, "sorted by key and time, for the engine in Python"),
    ],
    ids=repr,
)
def test_what_a_batch_shuffles_goes_by_the_length_of_slices(windows, choice, reason):
    decision = shuffle(*windows)
    assert decision.choice == choice
    assert reason in decision.reason


def test_without_keys_slices_are_shuffled_however_short():
    alone = "without keys all of them come to one place, where fewer are better"
    decision = shuffle(sw.session("8 milliseconds"), keys=())
    assert (decision.choice, decision.reason) == (SLICES, alone)


def test_the_length_of_slices_is_known_where_integers_count_something():
    assert shuffle(sw.session("1 second"), unit="milliseconds").choice == ROWS
    assert shuffle(sw.session("2 seconds"), unit="nanoseconds").choice == SLICES


def test_a_lone_window_of_what_spark_does_not_compute_is_composed():
    workload = sw.Workload("t", keys=["k"]).query("q", sw.tumbling("1 second"), middle=sw.median("v"))
    assert not is_left_to_spark(workload.queries[0], workload)
    assert choose_shuffle(workload).reason == TRAVEL
    assert explain_routes(workload)[0] == "  q            slices  sliced in the JVM, composed in NumPy"


COUNTED = {"often": sw.max_count("v"), "mean": sw.avg("v").where("v > 0")}


def test_rows_are_sliced_in_numpy_where_the_jvm_would_collect_them():
    workload = sw.Workload("t", keys=["k"]).query("q", sw.sliding("1 minute", every="1 second"), **COUNTED)
    workload = workload.query("all", sw.tumbling("1 minute"), all=sw.collect_set("v"))
    assert is_sliced_in_numpy(workload)
    assert explain_routes(workload)[:4] == [
        "  q            slices  sliced and composed in NumPy",
        "  all          rows    collect_set('v') is computed in Python",
        "  as a batch   rows    sliced in NumPy: for max_count('v') Spark's functions would collect all rows of a",
        "                       slice",
    ]


@pytest.mark.parametrize(
    ("keys", "window", "aggregates", "reason"),
    [
        (["k"], sw.tumbling("1 minute"), ALL, "Spark's own functions compute all partials"),
        ([], sw.tumbling("1 minute"), COUNTED, "without keys all rows would come to one place"),
        (["k"], sw.tumbling(sw.rows(100)), COUNTED, "rows are numbered in the JVM"),
        (
            ["k"],
            sw.tumbling("1 minute"),
            {**COUNTED, "opening": sw.first("v")},
            "first('v') goes by the order of rows, which the JVM knows",
        ),
    ],
    ids=["functions", "no keys", "counts", "order"],
)
def test_rows_are_sliced_in_the_jvm_elsewhere(keys, window, aggregates, reason):
    workload = sw.Workload("t", keys=keys).query("q", window, **aggregates)
    assert (is_sliced_in_numpy(workload).choice, is_sliced_in_numpy(workload).reason) == (False, reason)
    assert "in NumPy:" not in choose_shuffle(workload).reason


def test_lone_short_sessions_by_key_are_left_to_the_jvm():
    workload = sw.Workload("t", keys=["k"]).query("q", sw.session("10 milliseconds"), **ALL)
    assert explain_routes(workload)[:2] == [
        "  q            rows    sessions as short as these are found by Spark's own window functions",
        "  as a batch   rows    slices no longer than the gap of 10 milliseconds may be about as many as the rows",
    ]
    composed = [
        workload.query("other", sw.tumbling("1 second"), n=sw.count()),
        sw.Workload("t").query("q", sw.session("10 milliseconds"), **ALL),
        sw.Workload("t", keys=["k"]).query("q", sw.session(5), **ALL),
        sw.Workload("t", keys=["k"]).query("q", sw.session("11 milliseconds"), **ALL),
        sw.Workload("t", keys=["k"]).query("q", sw.session("10 milliseconds"), middle=sw.median("v")),
    ]
    for other in composed:
        assert explain_routes(other)[0] == "  q            slices  sliced in the JVM, composed in NumPy"
