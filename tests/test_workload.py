"""Workloads: frozen, checked when they are made, and the same after a journey to another process."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re

import pytest

import slicewise as sw
from slicewise.amounts import INTEGER, TIME, rows
from slicewise.errors import QueryError, SlicewiseError
from slicewise.results import RESERVED
from slicewise.workload import Query, Workload

SECOND = 1_000_000


def refuses(message: str):
    """Expect a QueryError whose whole message is ``message``."""
    return pytest.raises(QueryError, match=f"^{re.escape(message)}$")


def dashboard() -> Workload:
    return (
        sw.Workload(time="ts", keys=["sensor"], watermark="2 seconds", lateness="1 minute", order=["seq"])
        .query("per_second", sw.tumbling("1 second"), total=sw.sum("v"), n=sw.count())
        .query("trend", sw.sliding("1 minute", every="1 second"), mean=sw.avg("v"), peak=sw.max("v"))
        .query("visit", sw.session("30 seconds"), first=sw.first("page"), last=sw.last("page"))
    )


# -- what a workload is


def test_a_workload_reads_as_it_was_said():
    assert repr(dashboard()) == (
        "Workload(time='ts', keys=['sensor'], order=['seq'], watermark='2 seconds', lateness='1 minute')\n"
        "  per_second: tumbling('1 second') -> total=sum('v'), n=count()\n"
        "  trend: sliding('1 minute', every='1 second') -> mean=avg('v'), peak=max('v')\n"
        "  visit: session('30 seconds') -> first=first('page'), last=last('page')"
    )
    assert repr(sw.Workload("t")) == "Workload(time='t')"
    assert repr(sw.Workload("t", watermark=5, lateness=7)) == "Workload(time='t', watermark=5, lateness=7)"


def test_waiting_is_kept_in_microseconds():
    w = dashboard()
    assert (w.watermark, w.lateness) == (2 * SECOND, 60 * SECOND)
    assert (w.keys, w.order) == (("sensor",), ("seq",))


def test_a_workload_is_frozen():
    w = dashboard()
    with pytest.raises(dataclasses.FrozenInstanceError):
        w.time = "other"
    with pytest.raises(dataclasses.FrozenInstanceError):
        w.queries[0].name = "other"
    with pytest.raises(TypeError):
        w.queries[0].aggregates["more"] = sw.count()


def test_query_returns_another_workload():
    empty = sw.Workload("t")
    one = empty.query("a", sw.tumbling(10), n=sw.count())
    two = one.query("b", sw.tumbling(5), n=sw.count())
    assert [len(w.queries) for w in (empty, one, two)] == [0, 1, 2]
    assert two.without("b") == one
    assert two.without("a").queries == (two.queries[1],)


def test_the_users_dictionary_is_not_shared():
    said = {"n": sw.count()}
    w = sw.Workload("t").query("a", sw.tumbling(10), **said)
    said["more"] = sw.sum("v")
    assert list(w.queries[0].aggregates) == ["n"]


def test_queries_are_found_by_name():
    assert dashboard().named("trend").window == sw.sliding("1 minute", every="1 second")


def test_columns_are_those_that_are_read_each_once():
    assert dashboard().columns == ("v", "page", "seq")
    assert sw.Workload("t", keys=["k"]).query("q", sw.tumbling(5), m=sw.max_by("a", "b")).columns == ("a", "b")


def test_equal_workloads_are_equal_and_keys():
    assert dashboard() == dashboard()
    assert hash(dashboard()) == hash(dashboard())
    assert dashboard() != dashboard().without("visit")
    assert dashboard().queries[0] != dashboard().queries[1]


@pytest.mark.parametrize("again", [lambda w: pickle.loads(pickle.dumps(w)), copy.deepcopy, copy.copy])
def test_a_workload_survives_pickling(again):
    w = dashboard()
    found = again(w)
    assert found == w
    assert repr(found) == repr(w)
    assert found.time_measure == TIME
    more = found.query("more", sw.tumbling("1 hour"), n=sw.count())  # it is whole: it can go on
    assert len(more.queries) == 4
    with pytest.raises(TypeError):
        found.queries[0].aggregates["more"] = sw.count()


def test_a_query_survives_pickling():
    query = dashboard().queries[0]
    found = pickle.loads(pickle.dumps(query))
    assert isinstance(found, Query)
    assert found == query
    assert hash(found) == hash(query)


# -- time


@pytest.mark.parametrize(
    ("workload", "measure"),
    [
        (sw.Workload("t"), TIME),
        (sw.Workload("t", watermark=5), INTEGER),
        (sw.Workload("t", lateness="5 seconds"), TIME),
        (sw.Workload("t").query("q", sw.tumbling(5), n=sw.count()), INTEGER),
        (sw.Workload("t").query("q", sw.session("5 s"), n=sw.count()), TIME),
        (sw.Workload("t").query("q", sw.between(0, 5), n=sw.count()), INTEGER),
        (sw.Workload("t").query("q", sw.tumbling(rows(5)), n=sw.count()), TIME),
        (sw.Workload("t").query("q", sw.sliding(rows(5), every=7), n=sw.count()), INTEGER),
        (sw.Workload("t").query("q", sw.sliding(7, every=rows(5)), n=sw.count()), INTEGER),
    ],
    ids=repr,
)
def test_the_queries_say_what_time_is(workload, measure):
    assert workload.time_measure == measure


def test_time_is_forgotten_with_the_query_that_said_it():
    w = sw.Workload("t").query("rows", sw.tumbling(rows(5)), n=sw.count()).query("q", sw.tumbling(5), n=sw.count())
    assert w.time_measure == INTEGER
    assert w.without("q").time_measure == TIME


def test_zero_is_no_notion_of_time():
    w = sw.Workload("t", watermark=0, lateness="0 seconds")
    assert w.query("q", sw.tumbling("1 s"), n=sw.count()).time_measure == TIME
    assert w.query("q", sw.tumbling(1), n=sw.count()).time_measure == INTEGER


NOTIONS = "one workload has one notion of time; got durations in {} and plain integers in {}; use durations for a "
NOTIONS += "timestamp column, integers for an integer one"


def test_two_queries_share_one_notion_of_time():
    w = sw.Workload("t").query("a", sw.tumbling("1 second"), n=sw.count())
    with refuses(NOTIONS.format("query 'a'", "query 'b'")):
        w.query("b", sw.tumbling(10), n=sw.count())


def test_the_waiting_shares_the_queries_notion_of_time():
    with refuses(NOTIONS.format("`watermark`", "`lateness`")):
        sw.Workload("t", watermark="1 second", lateness=5)
    with refuses(NOTIONS.format("`lateness`", "query 'a'")):
        sw.Workload("t", lateness="1 second").query("a", sw.tumbling(10), n=sw.count())
    with refuses(NOTIONS.format("query 'a'", "`watermark`")):
        sw.Workload("t", watermark=3).query("a", sw.session("1 second"), n=sw.count())


@pytest.mark.parametrize("mixed", [sw.sliding(rows(3), every="1 second"), sw.sliding("1 second", every=rows(3))])
def test_windows_on_two_measures_share_it_too(mixed):
    w = sw.Workload("t").query("a", sw.tumbling(10), n=sw.count())
    with refuses(NOTIONS.format("query 'b'", "query 'a'")):
        w.query("b", mixed, n=sw.count())


@pytest.mark.parametrize("window", [sw.punctuated("go"), sw.frames("v > 3"), sw.user_defined(object)], ids=repr)
@pytest.mark.parametrize("length", [10, "10 seconds"])
def test_windows_without_lengths_fit_any_time(window, length):
    w = sw.Workload("t").query("a", sw.tumbling(length), n=sw.count())
    assert w.query("b", window, n=sw.count()).time_measure == w.time_measure


# -- what is refused


@pytest.mark.parametrize("bad", ["", None, 5])
def test_time_names_a_column(bad):
    with refuses(f"`time` must name a column; got {bad!r}"):
        sw.Workload(bad)


@pytest.mark.parametrize("parameter", ["keys", "order"])
def test_keys_and_order_are_lists_of_names(parameter):
    with refuses(f"`{parameter}` must be a list of column names; got the string 'k'; write ['k']"):
        sw.Workload("t", **{parameter: "k"})
    with refuses(f"`{parameter}` must name a column; got 5"):
        sw.Workload("t", **{parameter: ["k", 5]})
    with refuses(f"`{parameter}` must name a column; got ''"):
        sw.Workload("t", **{parameter: [""]})
    with refuses(f"`{parameter}` names 'k' twice"):
        sw.Workload("t", **{parameter: ["k", "j", "k"]})


@pytest.mark.parametrize("bad", [None, 5])
@pytest.mark.parametrize("parameter", ["keys", "order"])
def test_keys_and_order_are_lists(parameter, bad):
    with refuses(f"`{parameter}` must be a list of column names; got {bad!r}"):
        sw.Workload("t", **{parameter: bad})


def test_time_is_no_key():
    with refuses("`keys` must not hold the time column; got 't' as both"):
        sw.Workload("t", keys=["k", "t"])


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_no_keys(name):
    with refuses(f"`keys` must not use a reserved result column; got {name!r}; rename the column"):
        sw.Workload("t", keys=[name])


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_names_are_no_results(name):
    with refuses(f"query 'q': {name!r} is a reserved result column; give the aggregate another name"):
        sw.Workload("t").query("q", sw.tumbling(5), **{name: sw.count()})


def test_keys_are_no_results():
    with refuses("query 'q': 'k' is a key column; give the aggregate another name"):
        sw.Workload("t", keys=["k"]).query("q", sw.tumbling(5), k=sw.count())


@pytest.mark.parametrize("parameter", ["watermark", "lateness"])
def test_waiting_is_an_amount_of_event_time(parameter):
    with refuses(f"`{parameter}` must not be negative; got '-1 second'"):
        sw.Workload("t", **{parameter: "-1 second"})
    with refuses(f"`{parameter}` must not be negative; got '-5'"):
        sw.Workload("t", **{parameter: -5})
    with refuses(f"`{parameter}` must be a duration or an integer of event time; got rows(5)"):
        sw.Workload("t", **{parameter: rows(5)})
    with pytest.raises(QueryError, match=f"^`{parameter}` must be a length; got None; "):
        sw.Workload("t", **{parameter: None})
    with pytest.raises(QueryError, match=f"^`{parameter}` has an unknown unit 'parsecs'; "):
        sw.Workload("t", **{parameter: "5 parsecs"})


@pytest.mark.parametrize("bad", ["", None, 5])
def test_a_query_has_a_name(bad):
    with refuses(f"a query needs a name, a string that is not empty; got {bad!r}"):
        sw.Workload("t").query(bad, sw.tumbling(5), n=sw.count())


def test_query_names_are_different():
    with refuses("there is a query 'visit' already; give this one another name"):
        dashboard().query("visit", sw.tumbling("1 second"), n=sw.count())


def test_a_query_has_a_window():
    with refuses("query 'q' needs a window such as sw.tumbling('1 minute'); got '1 minute'"):
        sw.Workload("t").query("q", "1 minute", n=sw.count())


def test_a_query_computes_something():
    with refuses("query 'q' computes nothing; add an aggregate, such as n=sw.count()"):
        sw.Workload("t").query("q", sw.tumbling(5))


def test_a_query_computes_aggregates():
    with refuses("query 'q': 'n' must be an aggregate such as sw.sum('v'); got 'count'"):
        sw.Workload("t").query("q", sw.tumbling(5), n="count")
    with pytest.raises(QueryError, match=r"^query 'q': 'n' must be an aggregate such as sw\.sum\('v'\); got <class "):
        sw.Workload("t").query("q", sw.tumbling(5), n=sw.count)


def test_an_aggregate_needs_a_column():
    with refuses("query 'q': sum() needs a column, as in sum('v')"):
        sw.Workload("t").query("q", sw.tumbling(5), n=sw.sum())


def test_unknown_queries_are_named_with_the_near_misses():
    with refuses("there is no query 'visits'; did you mean 'visit'?"):
        dashboard().named("visits")
    with refuses("there is no query 'zzz'; known: 'per_second', 'trend', 'visit'"):
        dashboard().without("zzz")
    with refuses("there is no query 'q'; known: none"):
        sw.Workload("t").named("q")


def test_every_refusal_is_a_slicewise_error_and_a_value_error():
    with pytest.raises(SlicewiseError):
        sw.Workload("")
    with pytest.raises(ValueError, match="must name a column"):
        sw.Workload("")


@pytest.mark.parametrize(
    ("make", "parameter", "query", "column"),
    [
        (lambda: sw.Workload(""), "time", None, None),
        (lambda: sw.Workload("t", unit="days"), "unit", None, None),
        (lambda: sw.Workload("t", keys="k"), "keys", None, None),
        (lambda: sw.Workload("t", order=5), "order", None, None),
        (lambda: sw.Workload("t", order=["a", "a"]), "order", None, "a"),
        (lambda: sw.Workload("t", keys=["t"]), "keys", None, "t"),
        (lambda: sw.Workload("t", keys=["window"]), "keys", None, "window"),
        (lambda: sw.Workload("t", trust=[5]), "trust", None, None),
        (lambda: sw.Workload("t", watermark=-1), "watermark", None, None),
        (lambda: sw.Workload("t", lateness=rows(5)), "lateness", None, None),
        (lambda: sw.Workload("t", watermark="1 s", lateness=5), "lateness", None, None),
        (lambda: sw.Workload("t", watermark="1 s").query("q", sw.tumbling(5), n=sw.count()), None, "q", None),
        (lambda: sw.Workload("t").time_length(-1, name="idle"), "idle", None, None),
        (lambda: dashboard().time_length(5, name="idle"), "idle", None, None),
        (lambda: dashboard().query("", sw.tumbling("1 s"), n=sw.count()), "name", None, None),
        (lambda: dashboard().query("trend", sw.tumbling("1 s"), n=sw.count()), "name", "trend", None),
        (lambda: dashboard().query("q", "1 s", n=sw.count()), "window", "q", None),
        (lambda: dashboard().query("q", sw.tumbling("1 s")), "aggregates", "q", None),
        (lambda: dashboard().query("q", sw.tumbling("1 s"), n=sw.count(), sensor=sw.count()), None, "q", "sensor"),
        (lambda: dashboard().query("q", sw.tumbling("1 s"), n=5), None, "q", "n"),
        (lambda: dashboard().query("q", sw.tumbling("1 s"), n=sw.sum()), None, "q", "n"),
        (lambda: dashboard().query("q", sw.tumbling("1 s"), a=own("x"), b=own("y")), None, "q", "b"),
        (lambda: dashboard().named("q"), "name", "q", None),
        (lambda: sw.Workload("t", unit="seconds").query("q", sw.tumbling("1 ms"), n=sw.count()), "length", "q", None),
        (lambda: dashboard().operator(store="tree"), "store", None, None),
        (lambda: dashboard().operator(max_slice=0), "max_slice", None, None),
        (
            lambda: sw.Workload("t").query("q", sw.tumbling(2**61), n=sw.count()).operator(),
            "window",
            "q",
            None,
        ),
    ],
)
def test_errors_carry_what_they_are_about(make, parameter, query, column):
    with pytest.raises(QueryError) as caught:
        make()
    assert (caught.value.parameter, caught.value.query, caught.value.column) == (parameter, query, column)


def own(suffix: str):
    """Two of them are called the same and are not the same."""
    return sw.aggregate(lift=lambda v: f"{v}{suffix}", combine=max, identity="", name="own")("v")


def test_other_queries_and_other_delays_keep_the_rest():
    w = dashboard()
    assert w.with_queries(w.queries[:1]) == w.without("trend").without("visit")
    assert (w.with_delays(5, 7).watermark, w.with_delays(5, 7).lateness) == (5, 7)
    assert w.with_delays(5, 7).with_delays(w.watermark, w.lateness) == w
    assert w.with_delays(5, 7).time_measure == TIME


# -- the doors


def test_units_and_another_measure_can_be_said_and_run():
    op = sw.Workload("t").query("q", sw.sliding(sw.units(10, "km"), every=5), n=sw.count()).operator()
    op.process_batch({"t": [1, 3, 7], "km": [0, 8, 12]})
    assert [(r.start, r.end, r.values["n"]) for r in op.close()] == [(1, 5, 2), (3, 10, 2)]


def test_stores_are_known_by_name():
    w = sw.Workload("t").query("q", sw.tumbling(5), n=sw.count())
    for store in ("lazy", "eager", "prefix", None):
        assert w.operator(store=store).workload == w
    with refuses("`store` must be one of 'lazy', 'eager', 'prefix'; got 'flatfat'"):
        w.operator(store="flatfat")


def test_a_workload_without_queries_has_nothing_to_run():
    op = sw.Workload("t").operator()
    op.process_batch({"t": [1, 2]})
    assert list(op.close()) == []
