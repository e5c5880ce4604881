"""Windows whose edges user code places, on streams without a JVM: restarts, rows that fail, what is written."""

from __future__ import annotations

import collections
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.bad_rows import USER_CODE
from slicewise.testing import Oracle
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same, key_of
from tests.slicing.strategies import SessionByEdges, context_windows, windows
from tests.slicing.test_edge_windows import Wild, WilderStill
from tests.slicing.test_failing_against_oracle import Definition
from tests.spark.stream_fake import FakeStream, Workers
from tests.spark.stream_strategies import micro_batches
from tests.spark.test_stream_user_code import bad_counts


@st.composite
def placing(draw):
    """One query whose edges user code places, also where it may not, beside others of all kinds."""
    workload = sw.Workload("t", keys=["k"], lateness=draw(st.sampled_from([0, 5, 50])))
    window = sw.user_defined(draw(st.sampled_from([Wild, WilderStill])), columns=["v"])
    workload = workload.query("edges", window, got=sw.collect_list("v"), s=sw.sum("v"))
    for i in range(draw(st.integers(0, 2))):
        others = st.one_of(windows(), context_windows().filter(lambda w: all(m.column is None for m in w.measures)))
        workload = workload.query(f"q{i}", draw(others), **{f"x{i}": sw.collect_list("w")})
    return workload


@fewer(4, least=5)
@given(placing(), micro_batches(), st.integers(1, 3), st.booleans(), st.sampled_from([None, "collect"]))
def test_every_micro_batch_gives_the_results_of_the_definition(workload, batches, shards, restarts, late):
    """With restarts before every micro-batch, and without any."""
    stream = FakeStream(workload, shards=shards, workers=Workers(0), late=late)
    definition, latest, found, expected = Definition(workload), None, [], []
    definition.oracle = Oracle(workload, ties="values")
    for batch in batches:
        stream = stream.again(workers=Workers(0)) if restarts else stream
        found.append(stream.batch(batch))
        for row in (row for part in batch for row in part):
            definition.oracle.process(row["t"], row, key_of(workload, row))
            latest = row["t"] if latest is None else max(latest, row["t"])
        expected.append([] if latest is None else definition.advance(latest))
    assert_same(found, expected)
    if not restarts:
        assert bad_counts(stream)[USER_CODE] == definition.refused
        assert stream.reasons.count(USER_CODE) == (definition.refused if late else 0)


def rows(times, v=1):
    return [{"t": t, "k": "a", "v": v, "w": ""} for t in times]


def test_a_late_row_merges_sessions_whose_shard_was_read_from_its_bytes():
    workload = sw.Workload("t", keys=["k"], lateness=100)
    workload = workload.query("s", sw.user_defined(SessionByEdges, columns=["v", "w"]), n=sw.count())
    stream = FakeStream(workload, workers=Workers(0), types=TYPES)
    assert [(r.start, r.end) for r in stream.batch([rows([0, 4, 12, 40])])] == [(0, 9), (12, 17)]
    stream = stream.again(workers=Workers(0), types=TYPES)
    found = [(r.start, r.end, r.change) for r in stream.batch([rows([8])])]
    assert found == [(0, 9, "retract"), (12, 17, "retract"), (0, 17, "insert")]


class Fails:
    def notify_context(self, time, row, edges):
        edges.add_start(time if row["v"] != 5 else "soon")


class FailsToo(Fails):
    pass


@pytest.mark.parametrize("workers", [0, 1], ids=["from bytes", "decoded"])
def test_a_row_that_two_queries_refuse_is_one_bad_row_and_counts_for_others(workers):
    workload = sw.Workload("t", keys=["k"], lateness=5).query("n", sw.tumbling(sw.rows(2)), seen=sw.collect_list("v"))
    for factory in (Fails, FailsToo):
        workload = workload.query(
            factory.__name__, sw.user_defined(factory, columns=["v"]), **{factory.__name__: sw.count()}
        )
    stream = FakeStream(workload, types=TYPES, workers=Workers(workers), late="collect")
    results = stream.batch([[*rows([1]), *rows([2], v=5), *rows([3])]]) + stream.batch([rows([20, 21])])
    assert [r.values["seen"] for r in results if r.query == "n"] == [[1, 5], [1, 1]]
    assert bad_counts(stream) == {USER_CODE: 1}
    assert [(row["t"], row["v"]) for row in stream.late] == [(2, 5)]


class Tallying:
    """Remembers a Counter, which is plain data only for those who say so."""

    def __init__(self):
        self.seen = None

    def notify_context(self, time, row, edges):
        self.seen = collections.Counter(self.seen or {})
        self.seen[row["v"]] += 1
        if self.seen[row["v"]] % 2:
            edges.add_start(time)
            edges.add_end(time + 3)


def test_what_the_object_remembers_is_trusted_like_that_of_other_windows():
    make = partial(sw.Workload, "t", keys=["k"], lateness=5)
    window = sw.user_defined(Tallying, columns=["v"])
    assert window.state_classes == {Tallying}
    trusting = make(trust=[collections.Counter]).query("q", window, n=sw.count())
    batches = [rows(range(n * 4, n * 4 + 4), n % 3) for n in range(8)]
    expected, found = FakeStream(trusting, types=TYPES), []
    stream = FakeStream(trusting, types=TYPES, workers=Workers(0))
    for batch in batches:
        found.append(stream.batch([batch]))
        stream = stream.again(types=TYPES, workers=Workers(0))
    assert_same(found, [expected.batch([batch]) for batch in batches])
