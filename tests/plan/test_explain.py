"""The plan in words: what a reader must find there, whatever the workload."""

from __future__ import annotations

from hypothesis import given

import slicewise as sw
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
    assert "fold again" in lines["remove tuples?"]
    assert "prefix or eager" in lines["avg('v')"]
    assert "eager" in lines["max('v')"]
    assert said.endswith("and each row: ts, v, page")


def test_an_ordered_stream_is_said_to_be_one():
    workload = sw.Workload("t").query("q", sw.tumbling(10), x=sw.concat("w"))
    assert "rows in order, each its own watermark" in workload.explain(ordered=True)
    assert "and each row" not in workload.explain(ordered=True)
    assert workload.explain().endswith("and each row: t, w")


def test_a_thousand_queries_are_counted_and_not_listed():
    workload = sw.Workload("t")
    for i in range(1000):
        workload = workload.query(f"q{i}", sw.tumbling(1 + i), n=sw.count())
    said = workload.explain()
    assert "and 988 more" in said
    assert len(said.splitlines()) < 60


@given(workloads())
def test_any_workload_can_be_explained_in_lines_that_fit_a_terminal(workload):
    for line in workload.explain().splitlines():
        assert len(line) <= 110


@given(mixed_workloads())
def test_windows_that_only_rows_can_tell_are_explained_too(workload):
    assert "store tuples?" in workload.explain()
