"""The state of a stream without a JVM: what is written, what is dropped, what is refused, what the clock does."""

from __future__ import annotations

import json
import random
from collections import Counter
from functools import cache
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import StateError
from slicewise.spark.streaming import chunks as time_chunks
from slicewise.spark.streaming import inspecting, key_chunks
from slicewise.spark.streaming.packs import read_rows
from slicewise.spark.streaming.processor import FORMAT, HEAD, OLDEST
from tests.matrices import first_quick, matrix
from tests.slicing.running import assert_same
from tests.slicing.strategies import SessionByEdges
from tests.spark.stream_fake import Crash, FakeStream, Reference, Workers

TYPES = {"k": pa.string(), "v": pa.int64()}
BASE = sw.Workload("t", keys=["k"], watermark=5, lateness=10)
SUMS = BASE.query("q", sw.sliding(20, every=5), s=sw.sum("v"), n=sw.count())
ORDERED = BASE.query("q", sw.sliding(20, every=5), s=sw.sum("v"), f=sw.first("v"), l=sw.collect_list("v"))
MIXED = (
    SUMS.query("visit", sw.session(3), n=sw.count())
    .query("rows", sw.sliding(sw.rows(5), every=sw.rows(2)), s=sw.sum("v"))
    .query("frames", sw.frames("v > 2"), s=sw.sum("v"))
)


class Pairs:
    """Windows of two rows, by user code."""

    def __init__(self):
        self.seen = 0

    def on_record(self, time, row):
        self.seen += 1
        return (1, 1) if self.seen % 2 == 1 and self.seen > 1 else (self.seen == 1, 0)


class Visits(SessionByEdges):
    """Sessions of rows at most 20 apart, by edges."""

    gap = 20


def fake(workload, **how):
    return FakeStream(workload, types=how.pop("types", TYPES), **how)


def rows(times, keys="ab"):
    return [{"t": t, "k": keys[i % len(keys)], "v": i % 7} for i, t in enumerate(times)]


def run_for(stream, batches, width=10, keys="ab"):
    """In order, ten rows in each micro-batch."""
    return [stream.batch([rows(range(n * width, (n + 1) * width), keys)]) for n in range(batches)]


# What is written


@pytest.mark.slow
@matrix(kind=["slices", "rows"], workers=[0, 1])
@mock.patch.object(time_chunks, "SMALL", 0)
def test_a_micro_batch_writes_only_the_chunks_that_it_touched(kind, workers):
    workload = SUMS if kind == "slices" else ORDERED
    long = workload.with_delays(0, 0).query("long", sw.sliding(2000, every=10), m=sw.max("v"))
    stream = fake(long, shards=1, workers=Workers(workers))
    written = stream.handles[0].map.written
    run_for(stream, 30, 100)
    chunks = len(stream.heads()[0]["directory"])
    written.clear()
    for n in range(300, 310):
        stream.batch([rows(range(n * 10, n * 10 + 10))])
    by_time = {name: times for name, times in written.items() if name.startswith(("slices", "tuples"))}
    # The last chunk of each kind grows with every micro-batch, the first one shrinks, all others stay as they were.
    # Ten micro-batches cross from one chunk to the next once at each end.
    kinds = 1 if workload is SUMS else 2
    assert len(by_time) <= 4 * kinds < 14 * kinds < chunks
    assert sum(by_time.values()) <= 10 * 3 * kinds
    assert written["keys 0"] == 0
    assert written[HEAD] == 10


@pytest.mark.parametrize("workload", [SUMS, BASE.query("q", sw.sliding(20, every=5), f=sw.first("v"))])
def test_what_is_small_is_written_with_the_head(workload):
    """Windows of 20 every 5: a micro-batch of 200 would touch many chunks, and leave as many behind."""
    stream = fake(workload, shards=1)
    assert stream.job.width <= 4
    run_for(stream, 5, 200)
    assert list(stream.heads()[0]["directory"]) == ["keys 0"]
    assert stream.handles[0].map.written == {"keys 0": 1, HEAD: 5}


def test_keys_are_written_when_they_are_new_and_when_they_get_other_numbers():
    """As many keys as before may be other ones, and a worker that has decoded nothing reads them from the chunk."""
    crowds = [[f"{crowd}{n}" for n in range(size)] for crowd, size in (("a", 1100), ("b", 500), ("c", 600), ("d", 500))]
    streams = [fake(SUMS, shards=1, workers=Workers(count)) for count in (0, 1)]
    found, numbers = [], []
    for first, keys in enumerate(crowds):
        batch = [rows([100 * first + 99] * len(keys), keys), rows([100 * first + 99] * len(keys), keys)]
        found.append([sorted(map(repr, stream.batch(batch))) for stream in streams])
        numbers.append(streams[0].heads()[0]["directory"]["keys 0"])
    assert all(without == decoded for without, decoded in found)
    assert sum(len(without) for without, _ in found) > 1100
    assert numbers == ["0 1100", "0 1600", "0 2200", "1 500"]
    written = streams[0].handles[0].map.written["keys 0"]
    streams[0].batch([rows([500], crowds[-1][:1])])
    assert streams[0].handles[0].map.written["keys 0"] == written


def test_what_has_grown_is_cut_by_time_and_what_has_shrunk_is_not():
    stream = fake(SUMS, shards=1)
    names = [str(n) for n in range(500)]
    directories = []
    for first, keys in ((0, "ab"), (100, names), (200, names), (900, "ab")):
        stream.batch([rows(range(first, first + 100), keys) + rows([first + 99] * len(keys), keys)])
        directories.append([name for name in stream.heads()[0]["directory"] if name.startswith("slices")])
    assert [len(directory) > 1 for directory in directories] == [False, True, True, False]


def test_objects_are_never_small():
    how = {"identity": [], "name": "kept", "commutative": True, "result": "array<bigint>"}
    kept = sw.aggregate(lift=lambda v: [v], combine=lambda a, b: a + b, **how)
    stream = fake(BASE.query("q", sw.sliding(20, every=5), l=kept("v")), shards=1)
    run_for(stream, 1, 100)
    assert len([name for name in stream.heads()[0]["directory"] if name.startswith("slices")]) > 1


COUNTING = {
    "counts": sw.sliding(sw.rows(5), every=sw.rows(2)),
    "looking back": sw.sliding(sw.rows(5), every=20),
    "frames": sw.frames("v > 2"),
    "user code": sw.user_defined(Pairs),
    "edges": sw.user_defined(Visits),
    "policy": sw.policy(lambda total, oldest: total["n"] > 3, watch={"n": sw.count()}, every=sw.rows(1)),
}


@pytest.mark.slow
@pytest.mark.parametrize("window", COUNTING.values(), ids=COUNTING)
def test_keys_that_count_rows_are_written_in_the_chunks_of_those_that_came(window):
    names = [str(n) for n in range(100)]
    with mock.patch.object(key_chunks, "KEYS", 10):
        stream = fake(BASE.query("q", window, s=sw.sum("v")), shards=1)
        for n in range(3):
            stream.batch([rows(range(n * 1000, n * 1000 + 1000), names)])
        # Until the horizon has passed all of these rows, their keys change without any new ones.
        for n in range(4):
            stream.batch([rows([9000 + 100 * n], ["99"])])
        written = stream.handles[0].map.written
        written.clear()
        stream.batch([rows([9500, 9501, 9502], ["99", "35", "38"])])
    assert sorted(name for name, times in written.items() if times and name.startswith("rows")) == [
        "rows 0 3",
        "rows 0 9",
    ]


@mock.patch.object(time_chunks, "SMALL", 0)
def test_a_late_row_rewrites_its_own_chunk():
    long = BASE.with_delays(0, 3000).query("q", sw.tumbling(10), s=sw.sum("v"))
    stream = fake(long, shards=1)
    run_for(stream, 20, 100)
    written = stream.handles[0].map.written
    written.clear()
    stream.batch([rows([15])])
    assert sum(times for name, times in written.items() if name.startswith("slices")) == 1


def test_after_a_restart_with_another_aggregate_all_slices_are_written():
    """Nothing else touches the old ones, and another restart must be able to read them."""
    one = BASE.query("long", sw.sliding(2000, every=10), s=sw.sum("v"))
    two = one.query("highest", sw.sliding(2000, every=10), m=sw.max("v"))
    batches = [[rows(range(n * 150, n * 150 + 150))] for n in range(23)]
    undisturbed = [r for batch in map(fake(one, shards=1).batch, batches) for r in batch]
    stream, found = fake(one, shards=1), []
    for n, batch in enumerate(batches):
        if n in (20, 21, 22):
            stream = stream.again({20: two, 21: two, 22: one}[n], workers=Workers(1), types=TYPES)
        found += stream.batch(batch)
    assert_same([[r for r in found if r.query == "long"]], [undisturbed])


def assert_restarts_change_nothing(workload, batches, types):
    def results(again):
        stream = fake(workload, shards=1, types=types)
        for batch in batches:
            stream = stream.again(workers=Workers(again), types=types) if again else stream
            yield stream.batch([batch])

    assert_same(list(results(2)), list(results(0)))


def test_rows_that_waited_are_written_again_when_they_have_been_reported():
    """Beside count windows a row is written while it waits for the watermark; later nothing changes but that."""
    workload = sw.Workload("t", lateness=15)
    workload = workload.query("q", sw.tumbling(1), n=sw.count()).query("r", sw.tumbling(sw.rows(1)), n=sw.count())
    batches = [[{"t": t} for t in times] for times in ([0, 35], [39], [2000])]
    assert_restarts_change_nothing(workload, batches, types={})


def test_a_slice_is_written_when_another_key_got_the_number_of_its_key():
    """Key a leaves, and so do many others. Then c has its number, and just now a row at the time at which a had one."""
    workload = sw.Workload("t", keys=["k"], watermark=30)
    workload = workload.query("q", sw.sliding(20, every=5), s=sw.sum("v")).query("visit", sw.session(3), s=sw.sum("v"))
    many = [{"t": 60, "k": str(n), "v": 1} for n in range(2000)]
    visit = [{"t": t, "k": "c", "v": 1} for t in range(86, 102, 2)]
    batches = [
        [{"t": 83, "k": "a", "v": 7}, *visit, *many],
        [{"t": 83, "k": "c", "v": 1}, {"t": 130, "k": "d", "v": 1}],
        [{"t": 400, "k": "d", "v": 1}],
    ]
    assert_restarts_change_nothing(workload, batches, types=TYPES)


@pytest.mark.parametrize("workload", first_quick([MIXED, ORDERED, SUMS]), ids=["mixed", "rows", "slices"])
def test_windows_that_are_done_leave_the_state(workload):
    stream = fake(workload, shards=2)
    run_for(stream, 30)
    before = [h["counts"] for h in stream.heads()]
    # Open are the windows that end after 299 - 5 - 10: no row before 265 is in one of them.
    assert 0 < sum(c["slices"] for c in before) < 100
    assert sum(c["tuples"] for c in before) <= (0 if workload is SUMS else 100)
    for _ in range(3):
        stream.batch([rows([10_000, 10_001])])
    after = [h["counts"] for h in stream.heads()]
    assert sum(c["slices"] for c in after) < 20
    assert sum(c["tuples"] for c in after) < 20


# How much there is


@pytest.mark.parametrize("late", [None, pytest.param("collect", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "straggler",
    [
        pytest.param(False, id="in order", marks=pytest.mark.slow),
        pytest.param(True, id="with a late row in each batch"),
    ],
)
def test_silent_keys_cost_nothing_after_a_while(late, straggler):
    """Every micro-batch has keys of its own; what they leave behind is forgotten."""
    stream = fake(SUMS, shards=1, late=late)
    sizes = []
    for n in range(40):
        batch = [{"t": n * 10 + i % 10, "k": f"{n}-{i}", "v": 1} for i in range(300)]
        stream.batch([batch, rows([n * 10 - 200]) if straggler else []])
        sizes.append(stream.size)
    assert max(sizes[20:]) < 1.5 * max(sizes[5:20])
    assert stream.heads()[0]["counts"]["keys"] < 6000
    assert (stream.heads()[0]["counts"]["late"] > 0) == straggler


@pytest.mark.slow
@pytest.mark.parametrize(
    "workload",
    [
        SUMS,
        ORDERED,
        MIXED,
        BASE.query("q", sw.session(4), l=sw.collect_list("v")),
        BASE.query("q", sw.landmark(every=10, since=0), s=sw.sum("v")),
        BASE.query("q", sw.cumulative(40, every=10), s=sw.max("v")),
        BASE.query("q", sw.sliding(sw.rows(10), every=20), s=sw.median("v")),
        BASE.query("q", sw.punctuated("v = 3"), s=sw.sum("v")),
    ],
    ids=["slices", "rows", "mixed", "session", "landmark", "cumulative", "last rows", "punctuated"],
)
def test_the_state_stays_as_large_as_it_is_over_200_micro_batches(workload):
    """Rows out of order and late; the number of chunks stays bounded too."""
    shuffled = random.Random(5)
    stream = fake(workload, shards=1)
    sizes, chunks = [], []
    for n in range(200):
        times = [max(0, n * 10 + i - shuffled.choice([0, 0, 4, 12, 40])) for i in range(10)]
        stream.batch([rows(times[:5]), rows(times[5:])])
        sizes.append(stream.size)
        chunks.append(len(stream.handles[0].map.data))
    early, late = np.array(sizes[30:90]), np.array(sizes[140:])
    assert late.mean() < 1.1 * early.mean()
    assert late.max() < 1.25 * early.max()
    assert max(chunks[140:]) <= max(chunks[30:90]) + 2


# Packs


def test_a_key_with_half_of_all_rows_makes_packs_no_larger():
    """Skew costs a shard nothing: of however many rows, a pack holds one slice for each key and piece of time."""

    def packs(keys):
        stream = fake(SUMS, shards=4)
        batch = [{"t": i * 50 // 20_000, "k": keys[i % len(keys)], "v": 1} for i in range(20_000)]
        return stream.packs([batch[:10_000], batch[10_000:]])

    many = [f"k{i}" for i in range(100)]
    even, skewed = packs(many), packs([k for key in many for k in ("k0", key)])
    for shard in even:
        count = [
            sum(len(s["key"]) for p in each[shard] for s in read_rows(p.content, ())["slices"])
            for each in (even, skewed)
        ]
        size = [sum(len(p.content) for p in each[shard]) for each in (even, skewed)]
        assert count[1] <= count[0] + 12
        assert size[1] <= 1.2 * size[0] + 2000
    assert sum(p.rows for packs in skewed.values() for p in packs) == 20_000


def test_every_shard_gets_a_pack_from_every_partition_that_has_rows():
    stream = fake(SUMS, shards=3)
    packs = stream.packs([rows([1, 2]), [], [{"t": 9, "k": "a", "v": 1}]])
    for mine in packs.values():
        assert [(p.partition, p.latest) for p in mine] == [(0, 2), (2, 9)]
    assert sum(p.rows for mine in packs.values() for p in mine) == 3


@pytest.mark.parametrize("window", [sw.tumbling(10), sw.tumbling(sw.rows(2)), sw.session(3)])
def test_a_query_is_as_complete_as_in_process_when_only_rows_outside_of_where_have_come(window):
    """A filter changes what is counted, never when: rows that nobody asks for are rows that came."""
    base = sw.Workload("t", keys=["k"], watermark=5, lateness=10, where="v > 0")
    workload, batch = base.query("q", sw.tumbling(20), n=sw.count()), [{"t": 31, "k": "a", "v": 0}]
    stream = fake(workload)
    stream.batch([batch])
    stream = stream.again(workload.query("added", window, s=sw.sum("v")), types=TYPES)
    op = workload.operator(types=TYPES)
    op.process_batch({name: [row[name] for row in batch] for name in ("t", *TYPES)})
    op.advance(31 - 5)
    since = op.add_query("added", window, s=sw.sum("v"))
    stream.batch([[{"t": 40, "k": "a", "v": 1}]])
    assert [head["since"] for head in stream.heads()] == [{"added": since}] * 3


class Tens:
    """A schedule of tens, without end."""

    def next_edge(self, t):
        return t // 10 * 10 + 10

    def windows(self, after, upto):
        start = np.arange(after // 10, -(-upto // 10)) * 10
        assert len(start) < 10**6
        return {"start": start, "end": start + 10}


def test_a_row_far_ahead_lists_no_windows_of_a_schedule_in_between():
    found = []
    for window in (sw.edges(Tens()), sw.tumbling(10)):
        stream, results = fake(BASE.query("q", window, s=sw.sum("v"), n=sw.count())), []
        for at in range(0, 100, 20):
            results += stream.batch([rows(range(at, at + 20)), rows([at + 3])])
        results += stream.batch([rows([101, 10**17, 102]), rows([10**17 + 25, 99])])
        stream = stream.again(types=TYPES, workers=Workers())
        found.append([results, stream.batch([rows([10**17 + 60, 10**17 + 31])])])
    assert_same(found[0], found[1])
    assert len(found[0][1]) > 1


# What is refused


OTHER_KEY = sw.Workload("t", keys=["j"], watermark=5, lateness=10).query("q", sw.sliding(20, every=5), s=sw.sum("v"))
REFUSED = {
    "another key": (OTHER_KEY, {}, r"its `keys` is \['k'\], this one's \['j'\]"),
    "another time column": (
        sw.Workload("k", keys=["t"], lateness=10).query("q", sw.tumbling(20), n=sw.count()),
        {},
        "its `time` is 't', this one's 'k'",
    ),
    "other queries": (
        BASE.query("elsewhere", sw.tumbling(3), n=sw.count()),
        {},
        r"it has queries \['q'\], this one \['elsewhere'\], and none is the same",
    ),
    "another query of the same name": (BASE.query("q", sw.tumbling(3), n=sw.count()), {}, "and none is the same"),
    "another lateness": (SUMS.with_delays(5, 11), {}, "its `lateness` is 10, this one's 11; only queries may be added"),
    "another way to emit": (SUMS, {"emit": "changes"}, "its `emit` is 'complete', this one's 'changes'"),
    "another number of shards": (
        SUMS,
        {"shards": 4},
        "written with 3 shards, and this run has 4; set spark.sql.shuffle.partitions to 3 before",
    ),
}


@cache
def five_batches():
    """What comes out of the stream where nothing disturbs it."""
    return run_for(fake(SUMS), 5)


@matrix(case=REFUSED, workers=[0, 1])
def test_a_state_that_is_not_ours_is_refused_and_stays_as_it_was(case, workers):
    workload, how, said = REFUSED[case]
    types = {**TYPES, "j": pa.string(), "t": pa.int64()}
    stream = fake(SUMS, workers=Workers(workers))
    before = run_for(stream, 4)
    state = {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}
    row = {"t": 50, "k": "a", "j": "a", "v": 1} if workload.time == "t" else {"t": 50, "k": 7, "v": 1}
    other = stream.again(workload, types={**types, "k": pa.int64()} if workload.time == "k" else types, **how)
    if "shards" in how:
        other.handles = {**stream.handles, 3: type(stream.handles[0])()}
    with pytest.raises(StateError, match=said):
        other.batch([[row]])
    assert {shard: handle.map.data for shard, handle in stream.handles.items()} == state
    assert_same([*before, stream.again(types=TYPES).batch([rows(range(40, 50))])], five_batches())


@pytest.mark.parametrize(
    ("format_", "said"),
    [
        (FORMAT + 1, f"checkpoint has format {FORMAT + 1}, and this version reads up to {FORMAT}; upgrade slicewise"),
        (
            OLDEST - 1,
            f"checkpoint has format {OLDEST - 1}, and this version reads {OLDEST} to {FORMAT}; finish with the ",
        ),
    ],
)
def test_a_state_of_another_format_is_refused(format_, said):
    stream = fake(SUMS)
    run_for(stream, 2)
    for handle in stream.handles.values():
        rest, head = handle.map.data[HEAD,]
        handle.map.data[HEAD,] = (rest, json.dumps({**json.loads(head), "format": format_}))
        handle.commit()
    with pytest.raises(StateError, match=said):
        stream.batch([rows([99])])


@matrix(emit=["complete", "changes"], wait=[0, 50, 5])
def test_waiting_longer_or_shorter_is_no_other_workload(emit, wait):
    """With emit='changes' too, what was reported stays reported, and what was closed stays closed."""
    stream = fake(SUMS, emit=emit)
    found = run_for(stream, 10)
    stream = stream.again(SUMS.with_delays(wait, 10), types=TYPES, emit=emit)
    found += [stream.batch([rows(range(t, t + 20))]) for t in range(100, 300, 20)]
    found.append(stream.batch([rows([30, 31])]))  # long closed, whatever the wait
    seen = [(r.key, r.start, r.revision) for results in found for r in results]
    assert len(seen) == len(set(seen)), "a revision was reported twice"
    inserted = {(r.key, r.start) for results in found for r in results if r.change == "insert"}
    assert all(place[:2] in inserted for place in seen)
    assert sum(report.late for report in stream.metrics) == 2
    last = {(r.key, r.start): r.values["n"] for results in found for r in results}
    assert all(n == 10 for (_, start), n in last.items() if 0 <= start <= 200), (emit, wait)


# Names, and the clock


def test_columns_may_have_the_names_that_we_use_ourselves():
    """A column called `row`, `shard` or `t` is the user's, also where rows are given back."""
    types = {"row": pa.int64(), "shard": pa.string(), "late": pa.int64()}
    workload = sw.Workload("t", keys=["shard"]).query("q", sw.tumbling(10), s=sw.sum("row"), l=sw.collect_list("late"))
    stream = FakeStream(workload, types=types, late="collect")
    some = [{"t": t, "shard": "x", "row": t, "late": -t} for t in (1, 5, 25)]
    assert [r.values for r in stream.batch([some])] == [{"s": 6, "l": [-1, -5]}]
    stream.batch([[{"t": 2, "shard": "x", "row": 7, "late": 9}]])
    assert stream.late == [{"t": 2, "row": 7, "shard": "x", "late": 9}]


CLOCK = sw.Workload("t", unit="microseconds", keys=["k"], watermark="5 seconds", lateness="10 seconds").query(
    "q", sw.tumbling("10 seconds"), n=sw.count()
)


def test_when_nothing_comes_the_watermark_follows_the_clock():
    second = 1_000_000
    stream = fake(CLOCK, idle="30 seconds")
    assert stream.batch([rows([second, 12 * second])]) == []
    assert stream.tick(29_000) == []
    found = stream.tick(1_000)
    assert {(r.key, r.start) for r in found} == {(("a",), 0), (("b",), 10 * second)}
    # 12 s was the latest event time when 30 s of silence began: the watermark is at 12 + 30 - 5.
    assert {report.watermark for report in stream.metrics[-3:]} == {37 * second}
    # A row behind the clock is as late as the watermark says.
    assert stream.batch([[{"t": 13 * second, "k": "b", "v": 1}, {"t": 36 * second, "k": "b", "v": 1}]]) == []
    assert sum(report.late for report in stream.metrics) == 1
    found = [r for _ in range(10) for r in stream.tick(30_000)]
    assert [(r.key, r.start) for r in found] == [(("b",), 30 * second)]
    # All shards agree, those without rows too: the watermark is 300 s behind the row at 36 s.
    assert {head["watermark"] for head in stream.heads()} == {(36 + 300 - 5) * second}
    assert {report.slices for report in stream.metrics[-3:]} == {0}


def test_a_heartbeat_before_the_silence_is_long_enough_writes_nothing_and_shows_what_is_kept():
    second = 1_000_000
    stream = fake(CLOCK, idle="30 seconds")
    assert stream.tick(60_000) == []
    assert [(t.rows, t.keys, t.slices, t.watermark) for t in stream.metrics] == [(0, 0, 0, None)] * 3
    assert stream.heads() == []
    stream.batch([rows([second, 12 * second])])
    before, written = stream.metrics[-3:], {s: Counter(h.map.written) for s, h in stream.handles.items()}
    for _ in range(3):
        assert stream.tick(9_999) == []
    assert {s: h.map.written for s, h in stream.handles.items()} == written
    assert [vars(t) for t in stream.metrics[-3:]] == [{**vars(t), "rows": 0} for t in before]
    assert sum(t.rows for t in before) == 2


@pytest.mark.parametrize("shard", range(3))
def test_a_heartbeat_that_is_repeated_after_a_crash_finds_the_same_silence(shard):
    second = 1_000_000
    stream = fake(CLOCK, idle="30 seconds")
    stream.batch([rows([second, 12 * second])])
    with pytest.raises(Crash):
        stream.tick(30_000, crash=(shard, 0))
    found = stream.tick(0)
    assert {(r.key, r.start) for r in found} == {(("a",), 0), (("b",), 10 * second)}
    assert {head["watermark"] for head in stream.heads()} == {37 * second}


def test_a_clock_that_was_set_back_is_no_silence():
    second = 1_000_000
    stream = fake(CLOCK, idle="30 seconds")
    stream.batch([rows([second, 12 * second])])
    assert stream.tick(-3_600_000) == []
    assert {head["watermark"] for head in stream.heads()} == {7 * second}
    stream.batch([rows([13 * second])])
    assert {(r.key[0], r.start) for r in stream.tick(30_000)} == {("a", 0), ("a", 10 * second), ("b", 10 * second)}


def test_a_stream_that_is_not_idle_does_not_look_at_the_clock():
    second = 1_000_000
    stream = fake(CLOCK, idle="30 seconds")
    for n in range(10):
        stream.now += 29_000
        assert stream.tick(0) == []
        stream.batch([rows([n * second, n * second + 1])])
    assert {report.watermark for report in stream.metrics[-3:]} == {4 * second + 1}


def test_with_changes_the_operator_reports_the_same():
    stream = fake(MIXED, emit="changes")
    batches = [[rows(range(n * 7, n * 7 + 9))] for n in range(6)]
    reference = Reference(stream.job.engine_workload.operator(types=TYPES), MIXED, stream.job.ahead)
    assert_same([stream.batch(b) for b in batches], [reference.batch(b) for b in batches])
    assert {h["watermark"] for h in stream.heads()} == {5 * 7 + 8 - 5}


def test_heads_of_the_format_before_units_and_oldest_rows_can_be_looked_into():
    """Whoever moves a stream over a break of the format asks the old checkpoint how far it was read."""
    stream = fake(SUMS)
    run_for(stream, 3)
    heads = stream.heads()
    old = [{name: value for name, value in head.items() if name not in ("oldest", "unit")} for head in heads]
    new, seen = (inspecting._summed(each, 0, ('{"row": 30}',)) for each in (heads, old))
    assert (seen.oldest, seen.unit, seen.offsets) == (None, "microseconds", ('{"row": 30}',))
    assert (seen.rows, seen.watermark, seen.queries) == (new.rows, new.watermark, new.queries)
