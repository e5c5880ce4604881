"""Policies whose nodes are in a store: the same answers, snapshots without nodes, stores that fail, die, or are wrong.

Run as a script, this file is the process that gets killed.
"""

from __future__ import annotations

import pickle
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import plain
from slicewise.errors import QueryError, StateError
from slicewise.swag import DiskStore, MemoryStore, StoreError
from slicewise.swag.stores.base import Codec, Store
from slicewise.swag.stores.write_behind import WriteBehind, write_behind
from tests.profiles import fewer
from tests.slicing.running import TYPES, assert_same, run_operator
from tests.slicing.test_policies import epochs


def keeps(n):
    def evict(total, oldest):
        return bool(total["n"] - oldest["n"] >= n)

    return evict


def workload_on(store, n=40, lateness=0, keys=()):
    window = sw.policy(keeps(n), watch={"n": sw.count()}, store=store)
    return sw.Workload("t", keys=list(keys), lateness=lateness).query(
        "q", window, v=sw.collect_list("v"), s=sw.sum("v")
    )


def feed(op, start, stop):
    """Rows one after the other, in small batches; the last window of each."""
    found = []
    for low in range(start, stop, 7):
        high = min(low + 7, stop)
        found += op.process_batch({"t": range(low, high), "v": range(low, high)})
        found += op.advance(high)
    return [(r.end, r.values["v"], r.values["s"]) for r in found]


def expected(start, stop, n=40):
    return [
        (i + 1, list(range(max(0, i + 1 - n), i + 1)), sum(range(max(0, i + 1 - n), i + 1))) for i in range(start, stop)
    ]


class Bytes(Store):
    """A dictionary of bytes, as a database would hold them; it may fail, and counts what it has."""

    def __init__(self):
        self.data, self.broken, self.codec = {}, False, Codec()

    def get(self, keys):
        if self.broken:
            raise StoreError("the store is gone")
        found = [self.data.get(self.codec.key(k)) for k in keys]
        return [None if data is None else self.codec.load(data) for data in found]

    def write(self, puts, deletes=()):
        if self.broken:
            raise StoreError("the store is gone")
        for key in deletes:
            self.data.pop(self.codec.key(key), None)
        self.data |= {self.codec.key(k): self.codec.dump(v) for k, v in puts.items()}

    def close(self):
        pass


@fewer(4)
@given(epochs(), st.sampled_from([0, 5, 1000]), st.sampled_from([[], ["k"]]), st.integers(1, 6))
def test_answers_are_those_without_a_store_with_a_snapshot_at_every_cut(steps, lateness, keys, n):
    store = Bytes()
    stored, plainly = workload_on(store, n, lateness, keys), workload_on(None, n, lateness, keys)

    def again(op):
        trusted = stored.trusted
        return stored.operator(types=TYPES).restore(plain.load(plain.dump(op.snapshot(), trusted), trusted))

    wanted = run_operator(plainly.operator(types=TYPES), steps)
    assert_same(run_operator(stored.operator(types=TYPES), steps), wanted)
    assert_same(run_operator(stored.operator(types=TYPES), steps, between=again), wanted)


@pytest.mark.slow
def test_snapshot_holds_the_ends_and_the_store_the_rest():
    sizes, store = [], Bytes()
    for n in (100, 3000):
        op = workload_on(store, n).operator()
        op.process_batch({"t": range(n + 50), "v": range(n + 50)})
        op.advance(n + 50)
        sizes.append(len(plain.dump(op.snapshot(), frozenset())))
    # collect_list keeps all values in the partials of the ends.
    assert sizes[1] < 40 * sizes[0]
    assert len(store.data) > 3000 / 2


def test_one_store_serves_many_windows_and_keys():
    store = MemoryStore()
    three = sw.policy(keeps(3), watch={"n": sw.count()}, store=store)
    five = sw.policy(keeps(5), watch={"n": sw.count()}, store=store, every=sw.rows(2))
    workload = sw.Workload("t", keys=["k"]).query("three", three, v=sw.sum("v")).query("five", five, v=sw.sum("v"))
    op = workload.operator()
    op.process_batch({"t": range(60), "v": range(60), "k": ["ab"[i % 2] for i in range(60)]})
    last = {(r.query, r.key): r.values["v"] for r in op.close()}
    rows = {"a": range(0, 60, 2), "b": range(1, 60, 2)}
    assert last == {(q, (k,)): sum(rows[k][-n:]) for q, n in (("three", 3), ("five", 5)) for k in "ab"}
    write_behind(store).flush()
    names = {key[2].rsplit(",", 1)[0] for key in store._values}
    assert names == {f"query {q!r}, key ({k!r},)" for q in ("three", "five") for k in "ab"}


def test_what_the_last_two_snapshots_need_stays_and_the_rest_is_deleted():
    store = Bytes()
    workload = workload_on(store)
    op, snapshots = workload.operator(), []
    for stop in (100, 200, 300, 400, 500):
        feed(op, stop - 100, stop)
        snapshots.append((stop, op.snapshot()))
        # Nodes of the window, and of what left since the snapshot before the last.
        assert len(store.data) < 300
    feed(op, 500, 650)
    for stop, snapshot in snapshots[-2:]:
        again = workload.operator().restore(snapshot)
        assert feed(again, stop, stop + 120) == expected(stop, stop + 120)


def test_store_that_fails_in_the_background_loses_nothing():
    store = Bytes()
    op = workload_on(store, n=30).operator()
    found = feed(op, 0, 45)
    op.snapshot()  # now nodes are in the store and nowhere else, however slow the thread is that writes
    found += feed(op, 45, 50)
    store.broken = True
    with pytest.raises(StoreError, match=r"^the store is gone$"):
        op.snapshot()
    failed = []
    for t in range(50, 120):
        try:
            found += feed(op, t, t + 1)
        except StoreError as error:
            failed.append((t, str(error)))
            store.broken = False
            found += [(r.end, r.values["v"], r.values["s"]) for r in op.advance(t + 1)]
            store.broken = True
    store.broken = False
    assert failed
    assert found == expected(0, 120, 30)
    op.snapshot()


def test_queue_is_bounded_and_says_when_the_store_is_gone():
    store = Bytes()
    writer = WriteBehind(store, most=10)
    store.broken = True
    for i in range(10):
        writer.put({(0, i, "w"): i})
    with pytest.raises(StoreError, match="the store is gone"):
        writer.put({(0, 10, "w"): 10})
    assert len(writer) == 11
    waiting = len(writer)
    assert writer.get([(0, 0, "w")]) == [0]
    store.broken = False
    writer.flush()
    assert (len(writer), len(store.data)) == (0, waiting)


def test_writers_and_readers_agree_while_the_background_writes():
    store = Bytes()
    writer, rng, values = WriteBehind(store, most=50), random.Random(3), {}
    for i in range(3000):
        key = (0, rng.randrange(200), "w")
        values[key] = i
        writer.put({key: i})
        other = (0, rng.randrange(200), "w")
        assert writer.get([other]) == [values.get(other)]
    gone = [(0, n, "w") for n in range(100)]
    writer.flush(gone)
    assert store.get([(0, n, "w") for n in range(200)]) == [None] * 100 + [
        values.get((0, n, "w")) for n in range(100, 200)
    ]


def test_wrong_stores():
    store = Bytes()
    op = workload_on(store).operator()
    feed(op, 0, 100)
    snapshot = op.snapshot()
    other = workload_on(Bytes()).operator().restore(snapshot)
    other.process(100, {"v": 100})
    message = (
        r"^the store does not hold the nodes of query 'q', key \(\), tree \w+, perhaps those of other windows; give the"
    )
    with pytest.raises(StateError, match=message):
        other.advance(101)
    without = workload_on(None).operator().restore(snapshot)
    without.process(100, {"v": 100})
    with pytest.raises(
        StateError, match=r"^the snapshot has left the nodes of query 'q', .* in a store; give it: policy\("
    ):
        without.advance(101)
    lost = workload_on(store).operator().restore(snapshot)
    store.data = {k: v for k, v in store.data.items() if k[0] != 0}
    with pytest.raises(
        StoreError, match=r"^the store has lost pair \d+ of level 0 of query 'q', .* which it was given"
    ):
        feed(lost, 100, 200)
    with pytest.raises(
        QueryError, match=r"^`store` must be a store such as sw.swag.DiskStore\('folder'\); got 'folder'$"
    ):
        workload_on("folder")


def test_queries_may_leave_between_snapshot_and_restore():
    store = Bytes()
    window = sw.policy(keeps(9), watch={"n": sw.count()}, store=store)
    less = sw.Workload("t").query("q", window, s=sw.sum("v"))
    op = less.query("more", window, v=sw.collect_list("v"), top=sw.max("v")).operator()
    op.process_batch({"t": range(50), "v": range(50)})
    op.advance(50)
    again = less.operator().restore(op.snapshot())
    again.process(50, {"v": 50})
    assert [r.values["s"] for r in again.close()] == [sum(range(42, 51))]


def test_columns_with_nodes_in_a_store_keep_their_types():
    workload = workload_on(Bytes(), 9)
    op = workload.operator(types={"v": "int"})
    op.process_batch({"t": range(20), "v": range(20)})
    op.advance(20)
    wider = workload.operator(types={"v": "bigint"}).restore(op.snapshot())
    wider.process(20, {"v": 20})
    with pytest.raises(
        StateError, match=r"^the nodes of query 'q', .* were written for columns of other types, and cannot"
    ):
        wider.advance(21)


def test_spark_refuses_a_store_with_the_reason():
    from slicewise.spark import running

    message = (
        "query 'q': `store` keeps the nodes of policy(keeps.<locals>.evict, every=rows(1)) for one process, but on "
        "Spark many processes run it, with their state in the checkpoint; leave it out"
    )
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$"):
        running.run(workload_on(MemoryStore()), None, None)


def test_long_names_have_short_keys():
    codec = Codec()
    assert len(codec.key((0, 7, "x" * 10_000))) < 100
    assert codec.key((0, 7, "x" * 10_000)) != codec.key((0, 7, "y" * 10_000))
    assert codec.key((0, 7)) == bytes.fromhex("000000000000000007")


def run(folder):
    """Slide until killed; after each snapshot, which is moved into place at once, say how far it was."""
    folder = Path(folder)
    op = workload_on(DiskStore(folder / "store", sync=False)).operator(types={"v": "bigint"})
    at = 0
    if (folder / "snapshot").exists():
        at, data = pickle.loads((folder / "snapshot").read_bytes())
        op.restore(data)
    rng = random.Random(at)
    while True:
        stop = at + rng.randrange(1, 60)
        if feed(op, at, stop) != expected(at, stop):
            print("wrong", flush=True)
        at = stop
        (folder / "new").write_bytes(pickle.dumps((at, op.snapshot())))
        (folder / "new").replace(folder / "snapshot")
        print(at, flush=True)


@pytest.mark.slow
def test_nothing_is_lost_by_kill_9(tmp_path):
    rng, at = random.Random(1), 0
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.slicing.test_policy_stores", str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        lines: list[str] = []
        reader = threading.Thread(target=lambda out=child.stdout, lines=lines: lines.extend(map(str.strip, out)))
        reader.start()
        while not lines and child.poll() is None:
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        child.kill()
        reader.join()
        assert child.wait() == -9
        assert "wrong" not in lines
        assert int(lines[0]) > at
        at = pickle.loads((tmp_path / "snapshot").read_bytes())[0]
    store = DiskStore(tmp_path / "store")
    op = (
        workload_on(store)
        .operator(types={"v": "bigint"})
        .restore(pickle.loads((tmp_path / "snapshot").read_bytes())[1])
    )
    assert feed(op, at, at + 100) == expected(at, at + 100)
    store.close()


if __name__ == "__main__":
    run(sys.argv[1])
