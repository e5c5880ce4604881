"""State is data: nothing that is read from a checkpoint or a pack is code; what could not be read is not written."""

from __future__ import annotations

import collections
import os
import pickle
import re
from functools import cache
from unittest import mock

import pyarrow as pa
import pytest
from pyspark.sql import Row

import slicewise as sw
from slicewise import plain
from slicewise.errors import QueryError, StateError
from slicewise.spark.streaming import chunks
from slicewise.spark.streaming.decoded import DecodedShards
from slicewise.spark.streaming.processor import HEAD
from tests.matrices import first_quick
from tests.slicing.running import assert_same
from tests.spark.stream_fake import FakeStream, Workers

TYPES = {"k": pa.string(), "v": pa.int64()}
BASE = sw.Workload("t", keys=["k"], watermark=5, lateness=10)


class Evil:
    def __reduce__(self):
        return os.mkdir, ("harmed",)


class Tally:
    """A partial of the user's own."""

    def __init__(self, counts=()):
        self.counts = dict(counts)

    def __add__(self, other):
        return Tally({k: self.counts.get(k, 0) + other.counts.get(k, 0) for k in self.counts | other.counts})


class Remembering:
    """A window of the user's own that remembers a Counter."""

    def __init__(self):
        self.seen = 0
        self.counts = None

    def on_record(self, time, row):
        self.counts = collections.Counter({"rows": self.seen})
        self.seen += 1
        return (1, 1) if self.seen % 2 == 1 and self.seen > 1 else (self.seen == 1, 0)


class RememberingEdges(Remembering):
    """The same for edges that it places."""

    on_record = None

    def notify_context(self, time, row, edges):
        self.counts = collections.Counter({"rows": self.seen})
        self.seen += 1


tally = sw.aggregate(
    lift=lambda v: Tally({v: 1}),
    combine=lambda a, b: a + b,
    identity=Tally(),
    lower=lambda p: str(sorted(p.counts.items())),
    name="tally",
    result="string",
)
hidden = sw.aggregate(
    lift=lambda v: Tally({v: 1}),
    combine=lambda a, b: b if a is None else a if b is None else a + b,
    identity=None,
    lower=lambda p: None if p is None else str(sorted(p.counts.items())),
    name="hidden",
    result="string",
)
TALLIES = BASE.query("q", sw.sliding(20, every=5), t=tally("v"))
HIDDEN = BASE.query("q", sw.sliding(20, every=5), t=hidden("v"))
COUNTED = BASE.query("q", sw.tumbling(sw.rows(5)), t=hidden("v"))
WINDOWS = BASE.query("q", sw.user_defined(Remembering), s=sw.sum("v"))
EDGES = BASE.query("q", sw.user_defined(RememberingEdges), s=sw.sum("v"))
MIXED = (
    BASE.query("slices", sw.sliding(20, every=5), s=sw.sum("v"))
    .query("stored", sw.tumbling(10), l=sw.collect_list("v"))
    .query("counted", sw.sliding(sw.rows(5), every=sw.rows(2)), s=sw.sum("v"))
)


def run_for(stream, batches):
    return [stream.batch([rows(n)]) for n in batches]


def rows(n):
    return [{"t": t, "k": "ab"[t % 2], "v": t % 7} for t in range(n * 10, n * 10 + 10)]


def with_trust(workload, *classes):
    return sw.Workload("t", keys=["k"], watermark=5, lateness=10, trust=classes, queries=workload.queries)


@cache
def written():
    """What the shards hold after four micro-batches, everything in chunks of its own, however small."""
    stream = FakeStream(MIXED, types=TYPES, workers=Workers(0))
    with mock.patch.object(chunks, "SMALL", 0):
        run_for(stream, range(4))
    return {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}


@pytest.mark.parametrize(
    "forged", [pickle.dumps(Evil()), plain.dump({"x": Tally()}, [Tally]), b"", b"{}", b"\xff" * 40]
)
@pytest.mark.parametrize("kind", [HEAD, "keys", "slices", "tuples", "rows"])
def test_a_forged_chunk_is_an_error_and_runs_nothing(kind, forged, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream = FakeStream(MIXED, types=TYPES, workers=Workers(0))
    for shard, handle in stream.handles.items():
        for (name,), (data, text) in written()[shard].items():
            handle.map.data[name,] = (forged if name.startswith(kind) else data, text)
        handle.commit()
    with pytest.raises(StateError, match=r"^the state (is damaged, or slicewise did not write it: |names the class )"):
        stream.batch([rows(4)])
    assert not list(tmp_path.iterdir())


def test_a_forged_pack_is_an_error_and_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stream = FakeStream(MIXED, types=TYPES)
    packs = stream.packs([rows(0)])
    forged = {s: [Row(**{**p.asDict(), "content": pickle.dumps(Evil())}) for p in each] for s, each in packs.items()}
    monkeypatch.setattr(stream, "packs", lambda partitions: forged)
    with pytest.raises(StateError, match=r"^the state is damaged, or slicewise did not write it: "):
        stream.batch([rows(0)])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload",
    first_quick(
        [with_trust(COUNTED, Tally), with_trust(WINDOWS, collections.Counter), with_trust(HIDDEN, Tally), TALLIES], n=2
    ),
    ids=["counted rows", "user windows", "slices", "identity"],
)
def test_objects_of_named_classes_survive_a_restart_at_every_cut_point(workload):
    expected = run_for(FakeStream(workload, types=TYPES), range(8))
    stream = FakeStream(workload, types=TYPES, workers=Workers(0))
    found = []
    for n in range(8):
        found += run_for(stream, [n])
        stream = stream.again(types=TYPES)
    assert_same(found, expected)


REFUSED = {
    "slices": (HIDDEN, Tally),
    "counted rows": (COUNTED, Tally),
    "user windows": (WINDOWS, collections.Counter),
    "user edges": (EDGES, collections.Counter),
}


@pytest.mark.parametrize(("workload", "cls"), REFUSED.values(), ids=REFUSED)
def test_what_could_not_be_read_back_is_refused_when_it_is_first_written(workload, cls):
    stream = FakeStream(workload, types=TYPES)
    message = (
        f"the state holds a {cls.__module__}.{cls.__qualname__}, which is not plain data and could not be read back; "
        f"if the class may be made anew from what a file says, name it: trust=[{cls.__name__}]"
    )
    # Rows of a count are folded into partials when the horizon has passed them; until then there are rows alone.
    with pytest.raises(StateError, match=f"^{re.escape(message)}$"):
        run_for(stream, range(10))
    for handle in stream.handles.values():
        for (name,), (data, _) in handle.map.data.items():
            assert cls.__name__.encode() not in data, name


@pytest.mark.parametrize("trust", ["collections", ["collections"], [1], 5, [collections.Counter()]])
def test_trust_is_in_classes(trust):
    got = trust[0] if isinstance(trust, list) else trust
    message = f"`trust` must be a list of classes, such as [collections.Counter]; got {got!r}"
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$"):
        sw.Workload("t", trust=trust)


# Decoded copies


def test_a_worker_keeps_one_copy_of_each_shard_however_the_shards_wander():
    workload = BASE.query("q", sw.sliding(20, every=5), s=sw.sum("v"))
    workers = Workers(2)
    # Three shards on two workers: each micro-batch every shard moves to the other one.
    stream = FakeStream(workload, types=TYPES, workers=workers)
    run_for(stream, range(20))
    assert [len(memory) for memory in workers.memories] == [3, 3]
    assert all(0 < memory.bytes < 20_000 for memory in workers.memories)
    # Another run has copies of its own.
    again = stream.again(types=TYPES)
    run_for(again, range(20, 23))
    assert max(len(memory) for memory in workers.memories) <= 6


class Weighed:
    def __init__(self, nbytes):
        self.nbytes = nbytes


def test_copies_have_a_limit_in_bytes_and_the_least_used_leave_first():
    copies = DecodedShards(most=100)
    one, two, three = Weighed(40), Weighed(40), Weighed(40)
    copies.keep("one", "v1", one)
    copies.keep("two", "v1", two)
    assert copies.take("one", "v1") is one
    copies.keep("one", "v2", one)
    copies.keep("three", "v1", three)
    assert (len(copies), copies.bytes) == (2, 80)
    assert copies.take("two", "v1") is None
    assert copies.take("one", "v1") is None, "a copy of another version is dropped"
    assert copies.take("one", "v2") is None
    copies.keep("large", "v1", Weighed(101))
    assert copies.take("large", "v1") is None
    assert copies.take("three", "v1") is three
    assert len(copies) == 0


def test_a_shard_weighs_what_it_holds():
    workers = Workers(1)
    stream = FakeStream(BASE.query("q", sw.sliding(10_000, every=5), s=sw.sum("v")), types=TYPES, workers=workers)
    run_for(stream, range(5))
    small = workers.memories[0].bytes
    run_for(stream, range(5, 50))
    assert 5 * small < workers.memories[0].bytes < 20 * small


# Queries that count


def test_a_count_that_begins_anew_needs_another_name():
    pairs = MIXED
    without = MIXED.without("counted")
    changed = without.query("counted", sw.sliding(sw.rows(5), every=sw.rows(2)), s=sw.sum("v"), n=sw.count())
    renamed = without.query("counted again", sw.sliding(sw.rows(5), every=sw.rows(2)), s=sw.sum("v"))
    by_time = without.query("counted", sw.tumbling(30), s=sw.sum("v"))
    message = (
        "query 'counted' counted rows under this name before, and would now count from 0 again; its spans would repeat "
        "those of results that were reported already: give it another name"
    )
    refused = pytest.raises(StateError, match=f"^{re.escape(message)}$")
    stream = FakeStream(pairs, types=TYPES)
    run_for(stream, range(3))
    with refused:
        stream.again(changed, types=TYPES).batch([rows(3)])
    stream = stream.again(without, types=TYPES)
    run_for(stream, [3])
    for workload in (pairs, changed):
        with refused:
            stream.again(workload, types=TYPES).batch([rows(4)])
    stream = stream.again(by_time, types=TYPES)
    run_for(stream, [4])
    # The name is taken for as long as the checkpoint lives.
    stream = stream.again(renamed, types=TYPES)
    spans = {
        (r.key, r.start) for results in run_for(stream, range(5, 9)) for r in results if r.query == "counted again"
    }
    assert (("a",), 0) in spans
    with refused:
        stream.again(pairs, types=TYPES).batch([rows(9)])


def test_in_process_too_a_count_that_begins_anew_needs_another_name():
    op = MIXED.operator(types=TYPES)
    pair = sw.sliding(sw.rows(5), every=sw.rows(2))
    op.remove_query("counted")
    op.add_query("counted", pair, s=sw.sum("v"))  # nothing was counted yet
    op.process_batch({"t": [1, 2], "k": ["a", "a"], "v": [1, 2]})
    op.remove_query("counted")
    with pytest.raises(StateError, match=r"^query 'counted' counted rows under this name before"):
        op.add_query("counted", pair, s=sw.sum("v"))
    op.add_query("other", pair, s=sw.sum("v"))
    again = op.workload.operator(types=TYPES).restore(op.snapshot())
    again.remove_query("other")
    for name in ("counted", "other"):
        with pytest.raises(StateError, match=f"^query '{name}' counted rows under this name before"):
            again.add_query(name, pair, s=sw.sum("v"))
