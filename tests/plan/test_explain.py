"""The plan in words: what a reader must find there, whatever the workload."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

import slicewise as sw
from slicewise.plan.explain import explain
from tests.slicing.strategies import mixed_workloads, workloads


def test_every_decision_has_its_reason_beside_it():
    workload = (
        sw.Workload(time="ts", keys=["sensor"], watermark="2 seconds", lateness="1 minute")
        .query("trend", sw.sliding("1 minute", every="1 second"), mean=sw.avg("v"), peak=sw.max("v"))
        .query("visit", sw.session("30 seconds"), last=sw.last("page"))
        .query("recent", sw.sliding(sw.rows(10), every="5 seconds"), mean=sw.avg("v"))
    )
    said = workload.explain()
    assert "keys sensor, rows out of order by up to 2 seconds, corrected for 1 minute" in said
    assert "forward context aware, on rows and time" in said
    decisions = said[said.index("decisions") : said.index("kept per slice")].splitlines()
    lines = {line[2:].split("  ")[0]: line for line in decisions}
    assert "yes" in lines["store tuples?"]
    assert "query 'recent' is forward context aware" in lines["store tuples?"]
    assert "invert or recompute" in lines["remove tuples?"]
    assert "query 'recent' shifts rows between slices" in lines["remove tuples?"]
    assert "prefix or eager" in lines["avg('v')"]
    assert "eager" in lines["max('v')"]
    assert "\n  and each row: ts, v, page\n\non Spark\n" in said
    routes = [line[2:].split("  ")[0] for line in said[said.index("on Spark") :].splitlines()[1:]]
    assert [name for name in routes if name.strip()] == ["trend", "visit", "recent", "as a batch", "as a stream"]


def test_what_is_kept_once_for_several_aggregates_is_said():
    moments = {"s": sw.sum("v"), "m": sw.avg("v"), "d": sw.stddev("v"), "other": sw.sum("w")}
    others = {"mid": sw.median("v"), "high": sw.percentile("v", 0.9), "only": sw.bool_and("b"), "n": sw.count()}
    workload = sw.Workload("t").query("q", sw.tumbling(5), **moments, **others)
    kept = workload.explain().split("kept per slice")[1].split("on Spark")[0]
    shared = re.findall(r"  one partial for (.*)", kept)
    assert shared == ["sum('v'), avg('v'), stddev('v')", "median('v'), percentile('v', 0.9)"]
    assert "one partial" not in sw.Workload("t").query("q", sw.tumbling(5), s=sw.sum("v"), top=sw.max("v")).explain()


def removal(lateness, window=None, **aggregates):
    workload = sw.Workload("t", lateness=lateness).query("q", window or sw.tumbling(sw.rows(10)), **aggregates)
    said = workload.explain()
    row = said[said.index("remove tuples?") : said.index("where to cut?")]
    return " ".join(row.split()[2:])


def test_how_rows_are_taken_out_is_said_for_every_aggregate():
    said = removal(5, n=sw.count(), s=sw.sum("v"), top=sw.max("v"), mid=sw.median("v"))
    assert said == (
        "invert or recompute query 'q' shifts rows between slices: taken out of count(), median('v') by inverse; taken "
        "out of sum('v') by inverse where the type is exact (integers, decimals), else computed again; max('v') "
        "computed again only where the rows that leave hold its extreme"
    )
    assert removal(5, n=sw.count()).startswith("invert query 'q' shifts rows between slices: taken out of count()")
    assert removal(5, top=sw.max("v")).startswith("recompute query 'q' shifts rows")
    assert removal(0, top=sw.max("v")) == "never nothing is corrected: rows are folded when their order is final"
    assert removal(5, sw.tumbling(5), n=sw.count()) == "never no query counts rows: a row stays in its slice"


def test_splits_are_said_with_the_queries_that_cause_them_and_the_size_they_are_bounded_by():
    workload = sw.Workload("t", lateness=5).query("mark", sw.punctuated("v > 3"), n=sw.count())
    workload = workload.query("recent", sw.sliding(sw.rows(3), every=5), n=sw.count())

    def splits(workload, **how):
        said = explain(workload, **how)
        return " ".join(said[said.index("split slices?") : said.index("remove tuples?")].split()[2:])

    why = "yes query 'recent' is forward context aware: rows place edges before themselves; query 'mark' is context "
    why += "aware: a row out of order may place an edge"
    assert splits(workload) == why
    assert splits(workload, max_slice=100) == f"{why}; slices whose rows may shift hold at most 100 rows"
    assert "at most" not in splits(workload, max_slice=100, ordered=True)
    in_advance = sw.Workload("t", lateness=5).query("q", sw.tumbling(5), n=sw.count())
    assert splits(in_advance, max_slice=100).startswith("no context-free edges are known in advance")
    assert "at most" not in splits(in_advance, max_slice=100)


def test_an_ordered_stream_is_said_to_be_one():
    workload = sw.Workload("t").query("q", sw.tumbling(10), x=sw.concat("w"))
    assert "rows in order, each its own watermark" in workload.explain(ordered=True)
    assert "and each row" not in workload.explain(ordered=True)
    assert "\n  and each row: t, w\n" in workload.explain()
    assert "on Spark" not in workload.explain(ordered=True)


@pytest.mark.slow
def test_a_thousand_queries_are_counted_and_not_listed():
    workload = sw.Workload("t")
    for i in range(1000):
        workload = workload.query(f"q{i}", sw.tumbling(1 + i), n=sw.count())
    said = workload.explain()
    assert "and 988 more" in said
    assert len(said.splitlines()) < 70


@given(workloads())
def test_any_workload_can_be_explained_in_lines_that_fit_a_terminal(workload):
    for line in workload.explain().splitlines():
        assert len(line) <= 110


@given(mixed_workloads())
def test_windows_that_only_rows_can_tell_are_explained_too(workload):
    assert "store tuples?" in workload.explain()


def test_what_was_counted_stands_beside_what_is_expected():
    workload = sw.Workload(time="t").query("q", sw.sliding(100, every=1), s=sw.sum("v"), m=sw.avg("v"))
    op = workload.operator(types={"v": "bigint"})
    assert "lifts" in workload.explain(analyze=op)
    op.process_batch({"t": list(range(300)), "v": list(range(300))})
    op.advance(250)
    counted = workload.explain(analyze=op).split("\n\ncounted\n")[1]
    lines = {line[2:16].strip(): line.split() for line in counted.splitlines()}
    stats = op.stats()
    assert lines["rows in"][2] == "300"
    assert lines["lifts"][1:4] == ["300", "expected", "300:"]
    assert lines["combines"][1] == str(stats.combines)
    assert lines["slices held"][2] == str(stats.slices)
    assert lines["watermark lag"][2] == "unknown"


def test_operators_of_another_workload_are_not_analyzed():
    workload = sw.Workload(time="t").query("q", sw.tumbling(10), s=sw.sum("v"))
    other = sw.Workload(time="t").query("p", sw.tumbling(10), s=sw.sum("v"))
    message = (
        "`analyze` takes an operator of this workload, with queries ['q']; got one with ['p']; use "
        "op.workload.explain(analyze=op)"
    )
    with pytest.raises(sw.errors.QueryError, match=f"^{re.escape(message)}$"):
        workload.explain(analyze=other.operator())
    with pytest.raises(
        sw.errors.QueryError, match=r"^`analyze` takes an operator; got Workload; make one with workload"
    ):
        workload.explain(analyze=workload)
