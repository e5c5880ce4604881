"""Rows of equal time on a stream: the same answers as in a batch, wherever micro-batches and partitions are cut."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.same import is_same
from slicewise.testing import Oracle, fold
from tests.profiles import fewer
from tests.slicing.strategies import (
    EveryThird,
    LastThree,
    any_windows,
    at_most_five,
    mixed_workloads,
    rows,
    workloads,
)
from tests.spark.stream_fake import FakeStream, Workers
from tests.spark.stream_strategies import last_batch, says_how_long

#: A stream costs more than an operator: fewer examples than elsewhere.
some = fewer(6, least=5)


@st.composite
def tied_streams(draw: st.DrawFn, wait: int) -> list[dict]:
    """Rows of few different times, each no more than ``wait`` behind one that came before: none is late."""
    width = draw(st.sampled_from([1, 5, 20]))
    found = [_at(row, row["t"] // width) for row in draw(st.lists(rows(), min_size=1, max_size=30))]
    delays = draw(st.lists(st.integers(0, wait), min_size=len(found), max_size=len(found)))
    arrivals = [(row["t"] + delay, i) for i, (row, delay) in enumerate(zip(found, delays, strict=True))]
    return [found[i] for _, i in sorted(arrivals)]


def _at(row: dict, t: int) -> dict:
    return {**row, "t": t, "u": None if row["u"] is None else 100 + t / 2, "z": None if row["z"] is None else t // 3}


def cut(stream: list[dict], data: st.DataObject) -> list[list[list[dict]]]:
    """Micro-batches of a stream, each in some partitions."""
    batches, rest = [], stream
    while rest:
        size = data.draw(st.integers(1, len(rest)), label="rows of a micro-batch")
        batch, rest = rest[:size], rest[size:]
        partitions: list[list[dict]] = [[], [], []]
        for row in batch:
            partitions[data.draw(st.integers(0, 2), label="partition")].append(row)
        batches.append(partitions)
    return [*batches, last_batch(batches)]


def run(workload: sw.Workload, batches: list, data: st.DataObject, **options: object) -> dict:
    """What is finally true on a stream that is stopped and started again now and then."""
    stream = FakeStream(workload, workers=Workers(data.draw(st.integers(0, 2))), **options)
    found = []
    for batch in batches:
        if data.draw(st.booleans(), label="restart"):
            stream = stream.again(workers=Workers(), **options)
        found += stream.batch(batch)
    assert not sum(report.late for report in stream.metrics)
    return fold(found)


def as_a_batch(workload: sw.Workload, batches: list) -> dict:
    """What is finally true of all rows at once, in whatever order they come."""
    every = [row for batch in batches for part in batch for row in part]
    oracle = Oracle(workload, ties="values")
    for row in every[::-1]:
        oracle.process(row["t"], row, tuple(row[k] for k in workload.keys))
    return fold(oracle.advance(max(row["t"] for row in every) - workload.watermark))


def assert_alike(found: dict, expected: dict) -> None:
    assert found.keys() == expected.keys()
    for window, values in expected.items():
        for name, value in values.items():
            assert is_same(found[window][name], value), f"{name} of {window}: {found[window][name]!r}, not {value!r}"


waiting = st.sampled_from([0, 0, 2, 7])

#: Every kind of window and every aggregate that depends on the order of rows.
IN_ORDER = (
    sw.Workload("t", keys=["k"])
    .query("counts", sw.sliding(sw.rows(3), every=sw.rows(2)), a=sw.sum("v"), b=sw.first("w"), c=sw.last("v"))
    .query("last rows", sw.sliding(sw.rows(2), every=4), d=sw.concat("w"), e=sw.sum("v"))
    .query("look back", sw.sliding(3, every=sw.rows(2)), f=sw.collect_list("v"))
    .query("units", sw.tumbling(sw.units(2, "u")), g=sw.collect_list("w"), h=sw.max_by("w", "v"))
    .query("marks", sw.punctuated("v > 2"), i=sw.collect_list("v"), j=sw.min_by("v", "j"))
    .query("frames", sw.frames("w = 'a'"), k2=sw.sum("v"), l=sw.concat("w"))
    .query("mine", sw.user_defined(EveryThird), m=sw.collect_list("v"))
    .query("evicted", sw.user_defined(LastThree, columns=["v"], deterministic=False), n=sw.collect_list("w"))
    .query("policy", sw.policy(at_most_five, watch={"n": sw.count()}, every=sw.rows(2)), o=sw.collect_list("v"))
    .query("time", sw.sliding(6, every=2), p=sw.collect_list("w"), q=sw.first("v"), r=sw.m4("v"), s=sw.last("w"))
    .query("visits", sw.session(2), t2=sw.concat("w"), u2=sw.max_by("w", "j"), v2=sw.first("v"))
)
SLICED = IN_ORDER.with_queries(()).query(
    "time", sw.sliding(6, every=2), p=sw.max_by("w", "j"), q=sw.first("v"), r=sw.m4("v"), s=sw.last("w")
)


@fewer(3, least=10)
@given(
    st.sampled_from([IN_ORDER, IN_ORDER, SLICED]),
    st.sampled_from([[], [], ["o"]]),
    st.sampled_from([0, 0, 3]),
    st.data(),
)
def test_every_kind_of_window_gives_what_a_batch_gives_wherever_it_is_cut(workload, order, lateness, data):
    wait = data.draw(waiting)
    workload = replace(workload.with_delays(wait, lateness), order=order)
    batches = cut(data.draw(tied_streams(wait)), data)
    assert_alike(run(workload, batches, data), as_a_batch(workload, batches))


@some
@given(st.one_of(workloads(), mixed_workloads()), waiting, st.data())
def test_random_workloads_give_what_a_batch_gives_wherever_they_are_cut(workload, wait, data):
    workload = replace(workload, watermark=wait)
    batches = cut(data.draw(tied_streams(wait)), data)
    assert_alike(run(workload, batches, data), as_a_batch(workload, batches))


@some
@given(st.one_of(workloads(), mixed_workloads()).filter(says_how_long), waiting, st.data())
def test_with_emit_changes_too(workload, wait, data):
    workload = replace(workload, watermark=wait)
    batches = cut(data.draw(tied_streams(wait)), data)
    found = run(workload, batches, data, emit="changes")
    due = as_a_batch(workload, batches)
    assert_alike({window: found[window] for window in due}, due)


@some
@given(st.one_of(workloads(), mixed_workloads()), any_windows(), waiting, st.data())
def test_a_query_that_is_added_behind_the_others_does_not_change_their_ties(workload, window, wait, data):
    measures = {m.column for q in workload.queries for m in q.window.measures}
    assume(all(m.column in {None, *measures} for m in window.measures))
    workload = replace(workload, watermark=wait)
    added = workload.query("added", window, x=sw.count(), y=sw.collect_list("w"))
    batches = cut(data.draw(tied_streams(wait)), data)
    at = data.draw(st.integers(0, len(batches) - 1))
    stream = FakeStream(workload)
    found = [r for batch in batches[:at] for r in stream.batch(batch)]
    stream = stream.again(added)
    found += [r for batch in batches[at:] for r in stream.batch(batch)]
    assert_alike(fold(r for r in found if r.query != "added"), as_a_batch(workload, batches))
