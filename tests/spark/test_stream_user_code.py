"""User code that raises, on a stream without a JVM: rows are bad, windows have no value, and the stream goes on."""

from __future__ import annotations

import logging
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.bad_rows import BAD, USER_CODE, metric_name
from slicewise.errors import DataError, StateError, UserCodeInWindowError
from slicewise.spark.streaming import inspecting
from slicewise.testing import Oracle
from slicewise.testing.oracle_rows import FailedWindowError, RefusedRowError
from tests.matrices import matrix
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same, key_of
from tests.slicing.strategies import rows
from tests.slicing.test_failing_against_oracle import FAILING, LISTS, WINDOWS, not_minus_five
from tests.spark.stream_fake import FakeStream, Workers

BASE = sw.Workload("t", keys=["k"], watermark=0, lateness=20)


def row(t, v, k="a"):
    return {"t": t, **dict.fromkeys(TYPES), "k": k, "v": v, "w": "a"}


def bad_counts(stream):
    found = Counter()
    for metrics in stream.metrics:
        found.update({reason: getattr(metrics, metric_name(reason)) for reason in BAD})
    return +found


def fails_on_five(columns):
    if (columns["v"] == -5).any():
        raise ValueError("minus five")
    return columns["v"] > 1


careful = sw.aggregate(lift=not_minus_five, combine=lambda a, b: a + b, identity=0, name="careful")
QUERIES = {
    "slices": (sw.tumbling(10), FAILING["commutative"]("v")),
    "columnar": (sw.session(5), FAILING["columnar"]("v")),
    "stored rows": (sw.tumbling(10), FAILING["plain"]("v")),
    "counts": (sw.tumbling(sw.rows(2)), FAILING["invertible"]("v")),
    "condition": (sw.punctuated(fails_on_five, columns=["v"]), sw.count()),
    "policy": (sw.policy(lambda total, oldest: False, watch={"s": careful("v")}), sw.count()),
}


def of_others(results):
    return [r for r in results if r.key != ("c",)]


@matrix(name=QUERIES, late=[None, "collect"], workers=[0, 1])
def test_a_row_that_user_code_fails_on_is_counted_and_given_back_and_the_stream_goes_on(name, late, workers):
    """What is missing is the row; its time has moved the watermark, as another row of that time would have."""
    window, aggregate = QUERIES[name]
    workload = BASE.query("q", window, x=aggregate)
    bad, other = row(3, -5), row(3, 1, "c")
    found, expected = [], []
    stream, without = FakeStream(workload, late=late, workers=Workers(workers)), FakeStream(workload)
    for t, batch in (
        (3, [row(1, 1), bad, row(2, 1)]),
        (30, [row(30, 2), row(4, 1), row(2, 2, "b")]),
        (60, [row(60, 1)]),
    ):
        third = [row(t, 1, "c")]
        found.append(of_others(stream.batch([batch, third])))
        expected.append(of_others(without.batch([[other if r is bad else r for r in batch], third])))
    assert_same(found, expected)
    assert any(expected)
    assert bad_counts(stream) == {USER_CODE: 1}
    assert inspecting._summed(stream.heads(), 0, ()).bad == {USER_CODE: 1}
    assert (stream.late, stream.reasons) == (([bad], [USER_CODE]) if late else ([], []))


@pytest.mark.parametrize("name", QUERIES)
def test_bad_fail_stops_at_such_a_row_and_shows_it(name):
    window, aggregate = QUERIES[name]
    stream = FakeStream(BASE.query("q", window, x=aggregate), bad="fail")
    stream.batch([[row(1, 1)]])
    with pytest.raises(DataError, match=r"raised ValueError\('minus five'\).* bad='fail': .*'v': -5") as caught:
        stream.batch([[row(2, 1), row(3, -5)]])
    code = repr(window) if name in ("condition", "policy") else f"query 'q': {aggregate!r}"
    assert code in str(caught.value)
    stream.batch([[row(2, 1)]])
    assert bad_counts(stream) == {}


def test_a_batch_of_bad_rows_alone_goes_by():
    stream = FakeStream(BASE.query("q", *QUERIES["slices"][:1], x=QUERIES["slices"][1]))
    assert stream.batch([[row(1, -5), row(30, -5)]]) == []
    assert bad_counts(stream) == {USER_CODE: 2}


@matrix(name=["slices", "columnar", "stored rows", "counts"], workers=[0, 1])
def test_a_window_without_a_value_is_null_and_counted_and_named_in_the_log(name, workers, caplog):
    """The sum of its values is more than 12, as slices of two micro-batches show, or of one."""
    window, aggregate = QUERIES[name]
    stream = FakeStream(BASE.query("q", window, x=aggregate, s=sw.sum("v")), workers=Workers(workers))
    with caplog.at_level(logging.WARNING, "slicewise"):
        results = stream.batch([[row(1, 9), row(2, 1, "b")]]) + stream.batch([[row(3, 8), row(4, 4, "b")]])
        results += stream.batch([[row(80, 1), row(80, 1, "b")]])
    values = {(r.key, r.values["s"]): r.values["x"] for r in results}
    five = 502 if name == "columnar" else 5
    assert values == {(("a",), 17): None, (("b",), 5): five}
    assert sum(metrics.failed for metrics in stream.metrics) == 1
    (message,) = {record.getMessage() for record in caplog.records}
    place = {"counts": "span [0, 2)", "columnar": "window [1, 8)"}.get(name, "window [0, 10)")
    raised = f"`combine` of {aggregate!r} raised OverflowError('too much'); its value is null"
    assert message == f"query 'q', key k='a', {place}: {raised}"
    assert "1 windows without a value, because user code failed" in str(inspecting._summed(stream.heads(), 0, ()))
    again = stream.again()
    assert again.batch([[row(81, 1)]]) == []
    assert inspecting._summed(again.heads(), 0, ()).failed == 1


def test_bad_fail_stops_at_a_window_without_a_value_and_names_it():
    stream = FakeStream(BASE.query("q", sw.tumbling(10), x=FAILING["commutative"]("v")), bad="fail")
    stream.batch([[row(1, 9)]])
    message = (
        "query 'q', key k='a', window [0, 10): `combine` of commutative('v') raised OverflowError('too much'); fix "
        "it, or remove it from the workload"
    )
    with pytest.raises(UserCodeInWindowError, match=f"^{re.escape(message)}$"):
        stream.batch([[row(2, 9), row(40, 1)]])


def test_code_that_fails_on_stored_rows_is_refused_and_the_old_code_goes_on():
    workload = BASE.query("q", sw.tumbling(10), x=FAILING["plain"]("v"))
    stream = FakeStream(workload, workers=Workers(0))
    stream.batch([[row(1, 3), row(2, 4)]])

    def no_fours(v):
        if v == 4:
            raise ValueError("four")
        return v

    plain = FAILING["plain"]("v")
    other = sw.aggregate(
        lift=no_fours, combine=plain.combine, lower=plain.lower, identity=0, result="bigint", name="plain"
    )
    with pytest.raises(
        StateError, match=r"at the record of time 2: `lift` raised ValueError\('four'\); the state holds"
    ):
        stream.again(BASE.query("q", sw.tumbling(10), x=other("v"))).batch([[row(30, 1)]])
    assert [r.values for r in stream.again(workload).batch([[row(30, 1)]])] == [{"x": 7}]


# -- beside the oracle


@st.composite
def workloads(draw):
    workload = sw.Workload("t", keys=["k"], lateness=draw(st.sampled_from([0, 5, 50])))
    aggregates = st.one_of(
        st.sampled_from(sorted(FAILING)).map(lambda name: FAILING[name]("v")),
        st.just(LISTS("v", "w")),
        st.just(sw.count()),
    )
    for i in range(draw(st.integers(1, 2))):
        window = draw(WINDOWS)
        # Rows of equal time may stand in another order, which says which of them a window fails on.
        if window.kind not in ("policy", "user_defined"):
            workload = workload.query(f"q{i}", window, **{f"x{i}": draw(aggregates)})
    return workload if workload.queries else workload.query("n", sw.tumbling(7), n=sw.count())


@fewer(4, least=5)
@given(
    workloads(),
    st.lists(st.lists(st.lists(rows(), max_size=5), min_size=1, max_size=3), max_size=5),
    st.integers(1, 3),
    st.sampled_from([0, 1, 2]),
    st.sampled_from([None, "collect"]),
)
def test_every_micro_batch_gives_the_results_of_the_definition(workload, batches, shards, workers, late):
    stream = FakeStream(workload, shards=shards, workers=Workers(workers), late=late)
    oracle, latest, refused = Oracle(workload, ties="values"), None, 0
    found, expected = [], []
    for batch in batches:
        found.append(stream.batch(batch))
        for r in (r for part in batch for r in part):
            oracle.process(r["t"], r, key_of(workload, r))
            latest = r["t"] if latest is None else max(latest, r["t"])
        results = [] if latest is None else None
        while results is None:
            try:
                results = oracle.advance(latest)
            except RefusedRowError as error:
                refused += 1 + sum(int(note.split()[0]) for note in getattr(error, "__notes__", ()))
            except FailedWindowError:
                pass
        expected.append(results)
    assert_same(found, expected)
    assert bad_counts(stream)[USER_CODE] == refused
    assert stream.reasons.count(USER_CODE) == (refused if late else 0)
