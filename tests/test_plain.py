"""Plain data as bytes: everything that is plain comes back as it was, and nothing else comes back at all."""

from __future__ import annotations

import collections
import contextlib
import copyreg
import datetime
import decimal
import enum
import io
import json
import os
import pickle
import re
import zoneinfo
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import slicewise as sw
from slicewise import plain
from slicewise.plain import dump, load


class Point(collections.namedtuple("Point", ["x", "y"])):
    __slots__ = ()


@dataclass(frozen=True)
class Frozen:
    a: int
    b: list = field(default_factory=list)


class Slotted:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a = a

    def __eq__(self, other):
        return (self.a, hasattr(self, "b")) == (other.a, hasattr(other, "b"))

    __hash__ = None


class WithState:
    def __init__(self, n):
        self.n, self.cache = n, object()

    def __getstate__(self):
        return {"n": self.n}

    def __setstate__(self, state):
        self.n, self.cache = state["n"], None

    def __eq__(self, other):
        return self.n == other.n

    __hash__ = None


class Colour(enum.Enum):
    RED = 1


def same(a, b):
    """Equal in value and in type, NaN equal to itself."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype.hasobject:
            return all(same(x, y) for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True))
        return a.tobytes() == b.tobytes() or np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(map(repr, a)) == list(map(repr, b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, (set, frozenset)):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    return repr(a) == repr(b)


ZONES = st.sampled_from(
    [zoneinfo.ZoneInfo("Europe/Berlin"), datetime.UTC, datetime.timezone(datetime.timedelta(hours=2))]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**200), 2**200),
    st.floats(),
    st.complex_numbers(),
    st.text(st.characters(), max_size=5),
    st.binary(max_size=5),
    st.binary(max_size=5).map(bytearray),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=ZONES),
    st.times(),
    st.timedeltas(),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.floats(width=32).map(np.float32),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
    st.just(np.datetime64("2024-01-01", "s")),
)
HASHABLE = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), st.tuples(st.integers(), st.text()))
ARRAYS = st.one_of(
    hnp.arrays(
        st.sampled_from(["i8", "i4", "u1", "f8", "f4", "?", "M8[us]", "m8[ns]", "U3", "S2", "c16", ">i4"]),
        st.integers(0, 40),
    ),
    hnp.arrays("i8", hnp.array_shapes(max_dims=3, max_side=3)),
)
#: Many values of few kinds, so that they are written as columns.
LONG = st.one_of(
    *(
        st.lists(s, min_size=17, max_size=40)
        for s in (SCALARS, st.integers(), st.text(max_size=3), st.none(), st.floats())
    ),
    st.lists(st.lists(st.integers(), max_size=3), min_size=17, max_size=20),
    st.lists(st.tuples(st.text(max_size=2), st.none() | st.integers()), min_size=17, max_size=20),
    st.lists(st.dictionaries(HASHABLE, st.integers(), max_size=2), min_size=17, max_size=20),
    st.lists(st.sets(HASHABLE, max_size=2), min_size=17, max_size=20),
    st.lists(hnp.arrays("f8", st.integers(0, 3)), min_size=17, max_size=20),
    st.lists(ARRAYS, min_size=17, max_size=20),
)
PLAIN = st.recursive(
    st.one_of(SCALARS, ARRAYS, LONG, LONG.map(lambda x: _objects(x))),
    lambda inside: st.one_of(
        st.lists(inside, max_size=4),
        st.lists(inside, max_size=4).map(tuple),
        st.dictionaries(HASHABLE, inside, max_size=4),
        st.sets(HASHABLE, max_size=4),
        st.frozensets(HASHABLE, max_size=20),
    ),
    max_leaves=6,
)


def _objects(values):
    out = np.empty(len(values), object)
    for i, x in enumerate(values):
        out[i] = x
    return out


@given(PLAIN)
def test_plain_data_comes_back_as_it_was(data):
    assert same(load(dump(data)), data)


OBJECTS = [
    Point(1, "a"),
    Frozen(1, [decimal.Decimal("1.20"), np.int64(3)]),
    Slotted(5),
    WithState(3),
    Colour.RED,
    collections.Counter("hello"),
    collections.deque([1, 2, 3], maxlen=3),
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(list, {"a": [1]}),
]


@pytest.mark.parametrize("thing", OBJECTS, ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [{"k": (x, x)}] * 20], ids=["alone", "many"])
def test_objects_of_trusted_classes_come_back_and_of_others_are_refused(thing, wrap):
    data, cls = wrap(thing), type(thing)
    assert load(dump(data, [cls]), [cls]) == data
    name = f"{cls.__module__}.{cls.__qualname__}"
    message = (
        f"the state holds a {name}, which is not plain data and could not be read back; if the class may be made anew "
        f"from what a file says, name it: trust=[{cls.__name__}]"
    )
    with pytest.raises(sw.StateError, match=f"^{re.escape(message)}$"):
        dump(data)
    message = f"the state names the class {name}, which is not trusted; if it is yours, name it: trust=[{cls.__name__}]"
    with pytest.raises(sw.StateError, match=f"^{re.escape(message)}$"):
        load(dump(data, [cls]))


class Evil:
    def __reduce__(self):
        return os.system, ("touch harmed",)


class Global:
    def __reduce__(self):
        return "somewhere"


@pytest.mark.parametrize("thing", [Evil(), Global(), np.random.default_rng()], ids=lambda x: type(x).__name__)
def test_what_only_a_function_can_put_together_is_refused_even_if_trusted(thing):
    cls = type(thing)
    message = (
        f"a {cls.__module__}.{cls.__qualname__} cannot be written, because it is put together by a function; give the "
        "class a __reduce__ that names the class itself, or keep plain data"
    )
    with pytest.raises(sw.StateError, match=f"^{re.escape(message)}$"):
        dump(thing, [cls])


@pytest.mark.parametrize("thing", [lambda: 1, os.system, object(), io.StringIO(), copyreg, re.compile("a")])
def test_what_is_no_data_is_refused(thing):
    with pytest.raises(sw.StateError, match="which is not plain data and could not be read back"):
        dump([thing])


def test_data_that_refers_to_itself_is_refused():
    data: list = []
    data.append(data)
    with pytest.raises(sw.StateError, match=r"^the state refers to itself, or is nested too deeply to be written$"):
        dump(data)


class Zone(datetime.tzinfo):
    def utcoffset(self, at):
        return datetime.timedelta(0)


class LikePytz(Zone):
    zone = "Europe/Berlin"

    def utcoffset(self, at):
        return datetime.timedelta(hours=1)


def test_a_zone_with_a_name_becomes_one_of_the_standard_library():
    noon = datetime.datetime(2024, 1, 1, 12, tzinfo=LikePytz())
    read = load(dump([noon]))[0]
    assert (read, read.tzinfo) == (noon, zoneinfo.ZoneInfo("Europe/Berlin"))


def test_a_time_zone_of_another_kind_is_refused():
    message = "a time zone of type tests.test_plain.Zone cannot be written; use zoneinfo.ZoneInfo"
    with pytest.raises(sw.StateError, match=f"^{message}$"):
        dump(datetime.datetime(2024, 1, 1, tzinfo=Zone()))


def test_an_array_of_structs_is_refused():
    with pytest.raises(
        sw.StateError, match=r"^an array of \[\('a', '<i8'\)\] cannot be written; use numbers, text or dates$"
    ):
        dump(np.zeros(2, [("a", "i8")]))


# -- bytes of somebody else


def stream(columns, node):
    return plain._to_stream(columns, json.dumps(node))


BIG = pa.array(np.arange(3))
FORGED = {
    "pickle": pickle.dumps(Evil()),
    "protocol 0": b"cos\nsystem\n(S'touch harmed'\ntR.",
    "nothing": b"",
    "text": b"hello",
    "not utf-8": b"\xfe\xfe\xfe",
    "start of a stream": b"\xff\xff\xff\xff",
    "half a stream": dump({"a": np.arange(100)})[:200],
    "a method": json.dumps({"__init__": [], "x": 1}).encode(),
    "a private method": json.dumps({"_init__": []}).encode(),
    "unknown kind": json.dumps({"eval": "1"}).encode(),
    "a class of nobody": json.dumps(
        {"object": "os.system", "call": ["true"], "state": None, "items": [], "entries": []}
    ).encode(),
    "a function as a class": json.dumps({"class": "os.system"}).encode(),
    "no such column": stream([BIG], {"array": 7}),
    "objects in bytes": stream([pa.array([b"A" * 8], pa.large_binary())], {"bytes of": 0, "dtype": "O", "shape": [1]}),
    "hidden objects": stream([pa.array([b"A" * 8], pa.large_binary())], {"bytes of": 0, "dtype": "V8", "shape": [1]}),
    "too few bytes": stream([pa.array([b"A" * 8], pa.large_binary())], {"bytes of": 0, "dtype": "i8", "shape": [5]}),
    "sizes beyond": stream([pa.array([10**9]), BIG], {"list": {"each": "list", "sizes": 0, "of": {"values": 1}}}),
    "sizes that go back": stream([pa.array([5, -2]), BIG], {"list": {"each": "list", "sizes": 0, "of": {"values": 1}}}),
    "kinds beyond": stream([pa.array([9, 9], pa.int8())], {"list": {"kinds": 0, "of": [[1]]}}),
    "no date": json.dumps({"date": "yesterday"}).encode(),
    "no zone": json.dumps({"datetime": "2024-01-01", "fold": 0, "zone": {"key": "../../etc/passwd"}}).encode(),
}


@pytest.mark.parametrize("data", FORGED.values(), ids=FORGED)
def test_forged_bytes_are_an_error_and_run_nothing(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        sw.StateError, match=r"^the state (is damaged, or slicewise did not write it|names the class os.system)"
    ):
        load(data)
    assert not list(tmp_path.iterdir())


@given(st.data())
def test_flipped_bits_never_do_worse_than_an_error(data):
    whole = bytearray(dump({"a": np.arange(20), "b": [("x", i) for i in range(20)], "c": ["s" * i for i in range(20)]}))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    with contextlib.suppress(sw.StateError):
        load(bytes(whole))
