"""The notation of job files: the Python one, read and never run."""

# Messages stand on one line, as they are said.
# ruff: noqa: E501

from __future__ import annotations

import builtins
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.aggregates import AGGREGATES, ALIASES
from slicewise.aggregates.base import Aggregate
from slicewise.cli.call_parser import CallSyntaxError, read_aggregate, read_window
from slicewise.windows import Window
from tests.aggregates.over import ARGUMENTS, make


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("tumbling('1 second')", sw.tumbling("1 second")),
        ('  tumbling("1 hour", offset="-5 minutes")  ', sw.tumbling("1 hour", offset="-5 minutes")),
        ("sw.tumbling('1 second')", sw.tumbling("1 second")),
        ("tumbling(length='1 second')", sw.tumbling("1 second")),
        ("tumbling(10, offset=-3)", sw.tumbling(10, offset=-3)),
        ("sliding('1 minute', every='1 second')", sw.sliding("1 minute", every="1 second")),
        ("sliding(rows(100), every=rows(10))", sw.sliding(sw.rows(100), every=sw.rows(10))),
        ("sliding(sw.rows(10), every='5 seconds')", sw.sliding(sw.rows(10), every="5 seconds")),
        ("tumbling(units(0.5, km))", sw.tumbling(sw.units(0.5, "km"))),
        ("between(rows(0), rows(20))", sw.between(sw.rows(0), sw.rows(20))),
        ("landmark(every=units(5, km), since=2.5)", sw.landmark(every=sw.units(5, "km"), since=2.5)),
        ("session(units(2, km))", sw.session(sw.units(2, "km"))),
        ("tumbling(units(10, column='my km'))", sw.tumbling(sw.units(10, "my km"))),
        ("session('30 seconds')", sw.session("30 seconds")),
        ("cumulative('1 day', every='1 hour')", sw.cumulative("1 day", every="1 hour")),
        ("landmark(every='1 hour', since='2024-01-01')", sw.landmark(every="1 hour", since="2024-01-01")),
        ("between('2024-01-01', '2024-02-01')", sw.between("2024-01-01", "2024-02-01")),
        ("punctuated('kind = \\'start\\'')", sw.punctuated("kind = 'start'")),
        ("frames('price < 10', min_rows=3)", sw.frames("price < 10", min_rows=3)),
        ("sliding(\n  '1 minute',\n  every='1 second',\n)", sw.sliding("1 minute", every="1 second")),
        ("tumbling('1 second')  # every second", sw.tumbling("1 second")),
    ],
)
def test_windows_are_read_as_python_says_them(text, window):
    assert read_window(text) == window


def test_edges_are_the_path_of_a_table(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("start,end,exchange\n0,8,X\n8,16,Y\n", encoding="utf-8")
    assert read_window(f"edges('{path}')") == sw.edges({"start": [0, 8], "end": [8, 16], "exchange": ["X", "Y"]})
    assert read_window("edges([[0, 8], [8, 16]])") == sw.edges([(0, 8), (8, 16)])
    for text, message in {
        "edges()": "edges take a table with `start` and `end`, a schedule, or two functions next_edge= and windows=; got "
        "nothing",
        "edges('days.parquet')": "the table of edges 'days.parquet' cannot be read: ",
        "edges(next_edge=f)": "`next_edge` of `edges` goes with code, which a job file cannot hold: use Python for it",
    }.items():
        with pytest.raises(CallSyntaxError, match="^" + re.escape(message)):
            read_window(text)


@pytest.mark.parametrize(
    ("text", "aggregate"),
    [
        ("avg(v)", sw.avg("v")),
        ("avg('my col')", sw.avg("my col")),
        ("avg(column=v)", sw.avg("v")),
        ("sum(a.b)", sw.sum("a.b")),
        ("sum(expr('a * b'))", sw.sum(sw.expr("a * b"))),
        ("count(*).where('v > 3')", sw.count().where("v > 3")),
        ("sum(v).where('v > 3').by(kind, most=5)", sw.sum("v").by("kind", most=5).where("v > 3")),
        (
            "max_by(page, sw.expr('-price')).by(expr('v % 2'))",
            sw.max_by("page", sw.expr("-price")).by(sw.expr("v % 2")),
        ),
        ("count()", sw.count()),
        ("count(v)", sw.count("v")),
        ("count(*)", sw.count()),
        ("percentile(v, 0.9)", sw.percentile("v", 0.9)),
        ("percentile(v, q=[0.1, 0.9])", sw.percentile("v", [0.1, 0.9])),
        ("max_by(page, price)", sw.max_by("page", "price")),
        ("min_by(value=page, by='the price')", sw.min_by("page", "the price")),
        ("concat(page, ' > ')", sw.concat("page", " > ")),
        ("count_distinct(user, page, 'the price')", sw.count_distinct("user", "page", "the price")),
        ("max_by(page, price, 3)", sw.max_by("page", "price", k=3)),
        ("largest(price, k=2)", sw.largest("price", 2)),
        ("listagg(page, delimiter=', ')", sw.concat("page", ", ")),
        ("last_value(page, True)", sw.last("page", ignorenulls=True)),
        ("weighted_avg(price, volume)", sw.weighted_avg("price", "volume")),
        ("regr_slope(y=a, x='the x')", sw.regr_slope("a", "the x")),
        ("ewma(v, half_life='10 minutes')", sw.ewma("v", "10 minutes")),
        ("sum(größe)", sw.sum("größe")),
        ("sum(ﬁrst)", sw.sum("ﬁrst")),  # a ligature, of which Python's parser makes two letters
    ],
)
def test_aggregates_are_read_as_python_says_them(text, aggregate):
    assert read_aggregate(text) == aggregate


@pytest.mark.parametrize("name", AGGREGATES)
def test_every_aggregate_of_the_registry_can_be_said(name):
    columns = "v, w" if len(make(name).columns) == 2 else "v"
    rest = "".join(f", {key}={value!r}" for key, value in ARGUMENTS.get(name, {}).items())
    assert read_aggregate(f"{name}({columns}{rest})").name == name


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_every_other_name_can_be_said(alias, name):
    others = ARGUMENTS.get(name, {}) if name == "approx_percentile" else {}
    rest = "".join(f", {key}={value}" for key, value in others.items())
    assert read_aggregate(f"{alias}(v{rest})") == AGGREGATES[name]("v", **others) == getattr(sw, alias)("v", **others)


def test_what_is_said_of_a_window_reads_back():
    for window in (sw.tumbling("1 hour", offset="1 minute"), sw.sliding(sw.rows(9), every=sw.units(2, "km"))):
        assert read_window(repr(window)) == window


# (what is read, text, the character it is about, message)
WINDOW_TIP = "; quote lengths and conditions: '1 minute', 'price < 10'"
COLUMN_TIP = "; quote a column whose name is not a single word, or is a keyword of Python: 'my col'"
A_WINDOW = "write a window such as \"tumbling('1 minute')\""
AN_AGGREGATE = "write an aggregate such as 'sum(v)'"
MISTAKES = [
    (read_window, "tumblin('1 s')", 0, "unknown window 'tumblin'; did you mean 'tumbling'?"),
    (read_window, "hop('1 s')", 0, "unknown window 'hop'; did you mean 'sliding'?"),
    (read_window, "sw.tumblin('1 s')", 0, "unknown window 'tumblin'; did you mean 'tumbling'?"),
    (read_window, "sum(v)", 0, "`sum` is an aggregate; expected a window here"),
    (read_window, "rows(3)", 0, "`rows` is a length; expected a window here"),
    (read_window, "tumbling", 0, "'tumbling' must be called: write tumbling(...)"),
    (read_window, "'1 second'", 0, "expected a window such as \"tumbling('1 minute')\"; got \"'1 second'\""),
    (read_window, "", 0, "expected a window such as \"tumbling('1 minute')\"; got nothing"),
    (read_window, "tumbling()", 0, "`tumbling` needs `length`, as in \"tumbling('1 minute')\""),
    (read_window, "sliding('1 s')", 0, "`sliding` needs `every`, as in \"sliding('1 minute', every='1 second')\""),
    (read_window, "tumbling('1 s', '2 s')", 16, "`tumbling` takes 1 argument without a name, the others by name: offset=..., zone=..."),
    (read_window, "between(1, 2, 3)", 14, "`between` takes 2 arguments; this is one too many"),
    (read_window, "sliding('1 s', evry='2 s')", 15, "`sliding` has no argument 'evry'; did you mean 'every'?"),
    (read_window, "tumbling('1 s', length='2 s')", 16, "`tumbling` has `length` twice; leave one out"),
    (read_window, "tumbling(*x)", 9, "`tumbling` takes its arguments one by one; got *"),
    (read_window, "tumbling(**x)", 11, "`tumbling` takes its arguments one by one; got **"),
    (read_window, "tumbling('0 seconds')", 0, "`length` must be positive; got '0 seconds'"),
    (read_window, "tumbling(second)", 9, "`length` of `tumbling` must be a string or a number, as in \"tumbling('1 minute')\"; got 'second'; put it in quotes"),
    (read_window, "tumbling(None)", 9, "`length` of `tumbling` must be a string or a number, as in \"tumbling('1 minute')\"; got 'None'"),
    (read_window, "tumbling(f'{x}')", 9, "`length` of `tumbling` must be a string or a number, as in \"tumbling('1 minute')\"; got \"f'{x}'\""),
    (read_window, "tumbling(lambda: 1)", 9, "`length` of `tumbling` must be a literal here; use Python for functions"),
    (read_window, "tumbling(row(3))", 9, "unknown length 'row'; did you mean 'rows'?"),
    (read_window, "between(rows(3), 5)", 0, "`start` and `end` must be in one measure; got rows(3) and 5"),
    (read_window, "tumbling(rows(0))", 0, "`length` must be positive; got rows(0)"),
    (read_window, "tumbling(1 second)", 9, f"this cannot be read; {A_WINDOW}{WINDOW_TIP}"),
    (read_window, "tumbling(5", 0, f"this cannot be read; {A_WINDOW}; are the parentheses in pairs?"),
    (read_window, "tumbling('1 s')\x00", 0, f"this cannot be read; {A_WINDOW}{WINDOW_TIP}"),
    (read_window, "policy(f)", 0, "`policy` takes code, which a job file cannot hold: use Python for it, sw.policy(...)"),
    (read_window, "user_defined(Trader)", 0, "`user_defined` takes code, which a job file cannot hold: use Python for it, sw.user_defined(...)"),
    (read_window, "frames('a', columns=['a'])", 12, "`columns` of `frames` goes with code, which a job file cannot hold: use Python for it"),
    (read_window, "punctuated(lambda x: x)", 11, "`start` of `punctuated` must be a literal here; use Python for functions"),
    (read_window, "x" * 2001, 2000, "a window has at most 2000 characters; got 2001"),
    (read_aggregate, "agv(v)", 0, "unknown aggregate 'agv'; did you mean 'avg'?"),
    (read_aggregate, "average(v)", 0, "unknown aggregate 'average'; did you mean 'avg'?"),
    (read_aggregate, "first(v, ignorenulls=1)", 21, "`ignorenulls` of `first` must be True or False; got '1'"),
    (read_aggregate, "corr(v)", 0, "`corr` needs `col2`, as in 'corr(col1, col2)'"),
    (read_aggregate, "ewma(v, half_life=0)", 0, "`half_life` must be positive; got 0"),
    (read_aggregate, "tumbling('1 s')", 0, "`tumbling` is a window; expected an aggregate here"),
    (read_aggregate, "sum", 0, "'sum' must be called: write sum(v)"),
    (read_aggregate, "sum()", 0, "`sum` needs `column`, as in 'sum(v)'"),
    (read_aggregate, "max_by(page)", 0, "`max_by` needs `by`, as in 'max_by(page, price)'"),
    (read_aggregate, "sum(v, w)", 7, "`sum` takes 1 argument; this is one too many"),
    (read_aggregate, "sum(3)", 4, "`column` of `sum` must be a column, a name or a quoted string; got '3'; compute it: expr('price * volume')"),
    (read_aggregate, "sum(a + b)", 4, "`column` of `sum` must be a column, a name or a quoted string; got 'a + b'; compute it: expr('price * volume')"),
    (read_aggregate, "sum(f().b)", 4, "`column` of `sum` must be a column, a name or a quoted string; got 'f().b'; compute it: expr('price * volume')"),
    (read_aggregate, "sum(expr('a *'))", 4, "`expr` ends where a value should be; got\n    a *\n       ^\nwrite a column name, or an expression such as \"price < 10 and kind = 'trade'\""),
    (read_aggregate, "sum(v).wher('x')", 0, "sum('v') has no `wher`; did you mean 'where'?"),
    (read_aggregate, "sum(v).where(x)", 13, "`condition` of `where` must be a string or a number, as in \"sum(v).where('v > 3')\"; got 'x'; put it in quotes"),
    (read_aggregate, "sum(v).by()", 0, "`by` needs `category`, as in 'sum(v).by(kind, most=100)'"),
    (read_aggregate, "sum(v).by(k, most=0)", 0, "`most` must be a number of categories, 1 or more; got 0"),
    (read_window, "tumbling('1 hour').where('x')", 0, "tumbling('1 hour') has no `where`; known: none"),
    (read_aggregate, "percentile(v, 9)", 0, "`q` of `percentile` must be a number from 0 to 1, or a list of them; got 9: 0.9 is the 90th percentile"),
    (read_aggregate, "percentile(v, q)", 14, "`q` of `percentile` must be a string or a number, as in 'percentile(v, 0.9)'; got 'q'; put it in quotes"),
    (read_aggregate, "sum(my col)", 4, f"this cannot be read; {AN_AGGREGATE}{COLUMN_TIP}"),
    (read_aggregate, "sum(class)", 4, f"this cannot be read; {AN_AGGREGATE}{COLUMN_TIP}"),
    (read_aggregate, "aggregate(lift=f)", 0, "`aggregate` takes code, which a job file cannot hold: use Python for it, sw.aggregate(...)"),
    (read_aggregate, "ä(v, 1)", 0, "unknown aggregate 'ä'; known: "),
    (read_aggregate, "sum(größe, 3)", 11, "`sum` takes 1 argument; this is one too many"),
    (read_aggregate, "sum(\n  v,\n  3)", 12, "`sum` takes 1 argument; this is one too many"),
    (read_aggregate, "sum(v), max(v)", 0, "expected an aggregate such as 'sum(v)'; got 'sum(v), max(v)'"),
]  # fmt: skip


@pytest.mark.parametrize(("read", "text", "at", "message"), MISTAKES, ids=[m[1][:30] for m in MISTAKES])
def test_mistakes_say_what_and_where(read, text, at, message):
    with pytest.raises(CallSyntaxError) as caught:
        read(text)
    assert str(caught.value).startswith(message)
    if not message.endswith("known: "):
        assert str(caught.value) == message
    assert caught.value.at == at


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch pwned')",
        "exec('x')",
        "eval('1')",
        "open('/etc/passwd')",
        "tumbling(__import__('os').getcwd())",
        "tumbling.__globals__['os']",
        "(lambda: 1)()",
        "[tumbling('1 s') for x in y][0]",
        "tumbling((x := 3))",
        "sum(*__builtins__)",
        "getattr(sw, 'tumbling')('1 s')",
        "sw.testing.football(3)",
        "os.sum(v)",
    ],
)
def test_nothing_is_ever_run(text, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "system", lambda _: pytest.fail("it ran"))
    for name in ("eval", "exec"):
        monkeypatch.setattr(builtins, name, lambda *_: pytest.fail("it ran"))
    for read in (read_window, read_aggregate):
        with pytest.raises(CallSyntaxError):
            read(text)
    assert not list(tmp_path.iterdir())


_PIECES = st.sampled_from(
    [
        "tumbling",
        "sliding",
        "sum",
        "percentile",
        "rows",
        "(",
        ")",
        ",",
        "'1 second'",
        "every",
        "=",
        "v",
        "0.9",
        "-",
        "\n",
    ]
    + [
        "[",
        "]",
        "'",
        '"',
        "\\",
        "lambda",
        ":",
        "*",
        ".",
        " ",
        "ü",
        "\x00",
        "\r",
        "{",
        "}",
        "f'",
        "b'",
        "1e999",
        "#",
        "🙂",
    ]
)


@given(st.one_of(st.text(max_size=60), st.lists(_PIECES, max_size=14).map("".join)))
def test_any_text_is_read_or_refused_at_a_place(text):
    for read, kind in ((read_window, Window), (read_aggregate, Aggregate)):
        try:
            found = read(text)
        except CallSyntaxError as e:
            found, at = None, e.at
        assert isinstance(found, kind) or 0 <= at <= max(len(text), 1)


@pytest.mark.parametrize("text", ["(" * 300, "-" * 1900 + "1", "tumbling(" + "-" * 1501 + "1)", "[" * 100 + "]" * 100])
def test_deep_nesting_is_refused(text):
    with pytest.raises(CallSyntaxError):
        read_window(text)


def test_windows_of_the_calendar_are_written_as_in_python():
    text = "sliding('3 months', every='1 month', offset='6 hours', zone='Europe/Berlin')"
    assert repr(read_window(text)) == text
    with pytest.raises(CallSyntaxError, match="say in which time zone they begin, as in zone='Europe/Berlin'"):
        read_window("tumbling('1 month')")


@pytest.mark.parametrize(
    "text",
    [
        "session('5 minutes', max_length='2 hours')",
        "session(expr('pause'))",
        "session(expr(\"case when kind = 'video' then '1 hour' else '5 minutes' end\"), max_length='1 day')",
    ],
)
def test_sessions_with_limits_and_gaps_of_rows_are_written_as_in_python(text):
    assert repr(read_window(text)) == text
