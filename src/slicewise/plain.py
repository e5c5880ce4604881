"""Plain data as bytes, and back. Reading never runs code, whoever wrote the bytes.

Used for everything that outlives a process: chunks of state, packs, the values of key-value stores. Bytes are JSON
where there are no arrays, and otherwise one Arrow IPC stream of a single row: each array is a list in a column of its
own, and the JSON stands in the schema's metadata and refers to columns by number.

Plain data is None, bool, numbers, text, bytes, dates, Decimal, UUID, lists, tuples, dicts, sets, and NumPy arrays.
Objects of other classes are taken apart by the pickle protocol's ``__reduce_ex__`` and put together again from their
class and plain data, if the reader trusts that class: the bytes hold its name, and the reader provides the class
itself. There is no way to name a function.

>>> load(dump({"edges": np.array([0, 10]), "labels": [("a", 1), ("b", None)]}))
{'edges': array([ 0, 10]), 'labels': [('a', 1), ('b', None)]}
"""

from __future__ import annotations

import copyreg
import datetime
import json
import math
import uuid
import zoneinfo
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from types import NoneType
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.errors import StateError

__all__ = ["class_name", "classes_in", "dump", "load"]

#: Sequences that are longer are written as columns.
SHORT = 16
#: An Arrow stream begins like this, and JSON never does.
_STREAM = b"\xff\xff\xff\xff"
_METADATA = b"slicewise"
#: Arrays of these kinds have an Arrow type; of the others, those that hold no objects are written as bytes.
_ARROW_KINDS, _BYTE_KINDS = "biuf", "cmMSU"
#: A column of Python values of one of these types is an Arrow array as it is.
_VALUES = {str: pa.large_string(), bytes: pa.large_binary(), bool: pa.bool_(), float: pa.float64(), int: pa.int64()}
_CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
#: Single values that are written as text.
_TEXTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "decimal": (Decimal, str, Decimal),
    "fraction": (Fraction, str, Fraction),
    "uuid": (uuid.UUID, str, uuid.UUID),
    "complex": (complex, str, complex),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
}
_TEXT_OF = {kind: (tag, write) for tag, (kind, write, _) in _TEXTS.items()}
_PLAIN = frozenset(
    [NoneType, bool, int, float, str, bytes, bytearray, dict, np.ndarray, *_CONTAINERS.values(), *_TEXT_OF]
    + [datetime.datetime, datetime.time, datetime.timedelta]
)
_PLAIN_NAMES = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _PLAIN}


def dump(data: Any, trust: Iterable[type] = ()) -> bytes:
    """Data as bytes.

    Raises
    ------
    StateError
        If it holds an object of a class that is neither plain nor trusted, so that it could not be read back.
    """
    writer = _Writer(frozenset(trust))
    try:
        text = json.dumps(writer.value(data), separators=(",", ":"))
    except RecursionError:
        raise StateError("the state refers to itself, or is nested too deeply to be written") from None
    if not writer.columns:
        return text.encode()
    return _to_stream(writer.columns, text)


def load(data: bytes, trust: Iterable[type] = ()) -> Any:
    """What :func:`dump` wrote; the arrays may be read-only views of ``data``.

    Raises
    ------
    StateError
        If the bytes are not from :func:`dump`, or name a class that is not trusted.
    """
    try:
        columns, text = _of_stream(data) if data[:4] == _STREAM else ([], bytes(data).decode())
        return _Reader(columns, {class_name(c): c for c in trust}).value(json.loads(text))
    except StateError:
        raise
    except Exception as error:
        raise StateError(f"the state is damaged, or slicewise did not write it: {_short(error)}") from error


def class_name(of: type) -> str:
    """The name by which a class is known in the bytes."""
    return f"{of.__module__}.{of.__qualname__}"


def classes_in(data: Any) -> set[type]:
    """The classes of objects in data that are not plain.

    >>> from collections import Counter
    >>> classes_in((0, [Counter()]))
    {<class 'collections.Counter'>}
    """
    kind = type(data)
    if kind is dict:
        return classes_in([*data, *data.values()])
    if kind in _CONTAINERS.values():
        return {c for item in data for c in classes_in(item)}
    return set() if kind in _PLAIN or isinstance(data, np.generic) else {kind}


class _Writer:
    """Turns data into JSON, and arrays into columns beside it."""

    def __init__(self, trusted: frozenset[type]) -> None:
        self.trusted = trusted
        self.columns: list[pa.Array] = []

    def value(self, x: Any) -> Any:
        """JSON for one value: itself, or an object whose first name is the kind of value."""
        kind = type(x)
        if kind in (NoneType, bool, str):
            return x
        if kind is int:
            return x if -(2**63) <= x < 2**63 else {"int": hex(x)}
        if kind is float:
            return x if math.isfinite(x) else {"float": repr(x)}
        if kind is list and len(x) <= SHORT:
            return [self.value(item) for item in x]
        if kind is dict:
            if all(type(k) is str for k in x):
                return {"dict": {k: self.value(v) for k, v in x.items()}}
            return {"pairs": [self.sequence(list(x)), self.sequence(list(x.values()))]}
        if kind is np.ndarray:
            return self.array(x)
        return self._rarer(x, kind)

    def _rarer(self, x: Any, kind: type) -> Any:
        if kind in (bytes, bytearray):
            return {kind.__name__: self.column(pa.array([x], pa.large_binary()))}
        for tag, container in _CONTAINERS.items():
            if kind is container:
                return {tag: self.sequence(list(x))}
        if kind in _TEXT_OF:
            tag, write = _TEXT_OF[kind]
            return {tag: write(x)}
        if kind is datetime.timedelta:
            return {"timedelta": [x.days, x.seconds, x.microseconds]}
        if kind is datetime.datetime and isinstance(getattr(x.tzinfo, "zone", None), str):
            # Zones of pytz, which older versions of Arrow use: the same instant in a zone of the standard library.
            x = x.astimezone(zoneinfo.ZoneInfo(x.tzinfo.zone))
        if kind in (datetime.datetime, datetime.time):
            return {kind.__name__: x.replace(tzinfo=None).isoformat(), "fold": x.fold, "zone": self._zone(x.tzinfo)}
        if isinstance(x, np.generic) and not x.dtype.hasobject:
            return {"scalar": self.array(np.array([x]))}
        if isinstance(x, type) and (x in self.trusted or x in _PLAIN):
            return {"class": class_name(x)}
        return self._taken_apart(x, kind)

    def _zone(self, zone: datetime.tzinfo | None) -> Any:
        if isinstance(zone, zoneinfo.ZoneInfo) and zone.key is not None:
            return {"key": zone.key}
        if isinstance(zone, datetime.timezone):
            return {"offset": self.value(zone.utcoffset(None))}
        if zone is not None:
            raise StateError(f"a time zone of type {class_name(type(zone))} cannot be written; use zoneinfo.ZoneInfo")
        return None

    def _taken_apart(self, x: Any, kind: type) -> Any:
        if kind not in self.trusted:
            raise StateError(
                f"the state holds a {class_name(kind)}, which is not plain data and could not be read back; if the "
                f"class may be made anew from what a file says, name it: trust=[{kind.__name__}]"
            )
        reduced = x.__reduce_ex__(2)
        make, arguments, state, items, pairs = (*reduced, None, None, None)[:5] if len(reduced) > 1 else (None,) * 5
        by_new = make is copyreg.__newobj__ and arguments[0] is kind  # type: ignore[attr-defined]
        if isinstance(reduced, str) or not (by_new or make is kind):
            raise StateError(
                f"a {class_name(kind)} cannot be written, because it is put together by a function; give the class a "
                "__reduce__ that names the class itself, or keep plain data"
            )
        return {
            "object": class_name(kind),
            "new" if by_new else "call": self.sequence(list(arguments[1:] if by_new else arguments)),
            "state": self.value(state),
            "items": self.sequence(list(items or ())),
            "entries": self.sequence([list(pair) for pair in pairs or ()]),
        }

    def array(self, x: np.ndarray) -> Any:
        """JSON for a NumPy array."""
        if x.dtype.hasobject:
            flat = self.sequence(x.reshape(-1).tolist())
            return {"objects": flat} if x.ndim == 1 else {"objects": flat, "shape": list(x.shape)}
        if x.dtype.kind in _ARROW_KINDS and x.ndim == 1 and x.dtype.isnative and x.dtype.itemsize <= 8:
            return {"array": self.column(_numbers(x))}
        if x.dtype.kind not in _ARROW_KINDS + _BYTE_KINDS:
            raise StateError(f"an array of {x.dtype} cannot be written; use numbers, text or dates")
        data = self.column(pa.array([np.ascontiguousarray(x).tobytes()], pa.large_binary()))
        return {"bytes of": data, "dtype": x.dtype.str, "shape": list(x.shape)}

    def sequence(self, values: Sequence[Any]) -> Any:
        """JSON for several values: each by itself, or where there are many, columns for each type among them."""
        if len(values) <= SHORT:
            return [self.value(x) for x in values]
        kinds = list(map(type, values))
        distinct = list(dict.fromkeys(kinds))
        if len(distinct) == 1:
            return self._of_one_kind(distinct[0], values)
        if len(distinct) > 100:
            return [self.value(x) for x in values]
        number = {kind: i for i, kind in enumerate(distinct)}
        of = [self.sequence([x for x, k in zip(values, kinds, strict=True) if k is kind]) for kind in distinct]
        return {"kinds": self.column(pa.array([number[k] for k in kinds], pa.int8())), "of": of}

    def _of_one_kind(self, kind: type, values: Sequence[Any]) -> Any:
        if kind is NoneType:
            return {"nulls": len(values)}
        if kind in _VALUES:
            try:
                return {"values": self.column(pa.array(values, _VALUES[kind]))}
            except (OverflowError, UnicodeError, pa.ArrowException):
                if kind is int:
                    return {"ints": self.column(pa.array(map(hex, values), pa.large_string()))}
        for tag, container in _CONTAINERS.items():
            if kind is container:
                return {"each": tag, "sizes": self.sizes(values), "of": self.sequence([x for v in values for x in v])}
        if kind is dict:
            keys, items = [k for v in values for k in v], [x for v in values for x in v.values()]
            return {"dicts": self.sizes(values), "keys": self.sequence(keys), "of": self.sequence(items)}
        if kind is np.ndarray and len({(x.dtype, x.ndim) for x in values}) == 1 and values[0].ndim == 1:
            return {"arrays": self.array(np.concatenate(values)), "sizes": self.sizes(values)}
        return [self.value(x) for x in values]

    def sizes(self, values: Sequence[Any]) -> int:
        return self.column(pa.array(list(map(len, values)), pa.int64()))

    def column(self, array: pa.Array) -> int:
        self.columns.append(array)
        return len(self.columns) - 1


class _Reader:
    """The opposite of :class:`_Writer`."""

    def __init__(self, columns: Sequence[pa.Array], trusted: dict[str, type]) -> None:
        self.columns = columns
        self.trusted = trusted

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(x) for x in node]
        if not isinstance(node, dict):
            return node
        tag = next(iter(node))
        content = node[tag]
        if tag == "dict":
            return {k: self.value(v) for k, v in content.items()}
        if tag == "array":
            return self.columns[content].to_numpy(zero_copy_only=False)
        if tag in _CONTAINERS:
            return _CONTAINERS[tag](self.sequence(content))
        if tag in _TEXTS:
            return _TEXTS[tag][2](content)
        return self._RARER[tag](self, content, node)

    def sequence(self, node: Any) -> list[Any]:
        """Several values."""
        if isinstance(node, list):
            return [self.value(x) for x in node]
        if "kinds" in node:
            of = [iter(self.sequence(child)) for child in node["of"]]
            return [next(of[k]) for k in self.columns[node["kinds"]].to_pylist()]
        if "nulls" in node:
            return [None] * node["nulls"]
        if "values" in node:
            values: list[Any] = self.columns[node["values"]].to_pylist()
            return values
        if "ints" in node:
            return [int(x, 16) for x in self.columns[node["ints"]].to_pylist()]
        if "each" in node:
            make = _CONTAINERS[node["each"]]
            return [make(part) for part in self._parts(node["sizes"], self.sequence(node["of"]))]
        if "dicts" in node:
            keys = self._parts(node["dicts"], self.sequence(node["keys"]))
            items = self._parts(node["dicts"], self.sequence(node["of"]))
            return [dict(zip(k, v, strict=True)) for k, v in zip(keys, items, strict=True)]
        return self._parts(node["sizes"], self.value(node["arrays"]))

    def _parts(self, sizes: int, values: Any) -> list[Any]:
        ends = np.cumsum(self.columns[sizes].to_numpy())
        if len(ends) and (ends[-1] != len(values) or (np.diff(ends, prepend=0) < 0).any()):
            raise ValueError("sizes and values do not fit together")
        ends = ends.tolist()
        return [values[low:high] for low, high in zip([0, *ends[:-1]], ends, strict=True)]

    # The rarer kinds of values.

    def _int(self, content: str, node: Any) -> int:
        return int(content, 16)

    def _float(self, content: str, node: Any) -> float:
        return float(content)

    def _pairs(self, content: Any, node: Any) -> dict[Any, Any]:
        keys, values = content
        return dict(zip(self.sequence(keys), self.sequence(values), strict=True))

    def _bytes(self, content: int, node: Any) -> bytes:
        return bytes(self.columns[content][0].as_py())

    def _bytearray(self, content: int, node: Any) -> bytearray:
        return bytearray(self.columns[content][0].as_py())

    def _timedelta(self, content: Any, node: Any) -> datetime.timedelta:
        return datetime.timedelta(*content)

    def _datetime(self, content: str, node: Any) -> datetime.datetime:
        at = datetime.datetime.fromisoformat(content)
        return at.replace(fold=node["fold"], tzinfo=self._zone(node["zone"]))

    def _time(self, content: str, node: Any) -> datetime.time:
        at = datetime.time.fromisoformat(content)
        return at.replace(fold=node["fold"], tzinfo=self._zone(node["zone"]))

    def _zone(self, zone: Any) -> datetime.tzinfo | None:
        if zone is None:
            return None
        return zoneinfo.ZoneInfo(zone["key"]) if "key" in zone else datetime.timezone(self.value(zone["offset"]))

    def _scalar(self, content: Any, node: Any) -> np.generic:
        scalar: np.generic = self.value(content)[0]
        return scalar

    def _objects(self, content: Any, node: Any) -> np.ndarray:
        values = self.sequence(content)
        out = np.empty(len(values), object)
        for i, x in enumerate(values):  # one by one: NumPy would look into items that are sequences themselves
            out[i] = x
        return out.reshape(node["shape"]) if "shape" in node else out

    def _bytes_of(self, content: int, node: Any) -> np.ndarray:
        dtype = np.dtype(str(node["dtype"]))
        if dtype.kind not in _ARROW_KINDS + _BYTE_KINDS:
            raise ValueError(f"an array of {dtype}")
        return np.frombuffer(self.columns[content][0].as_buffer(), dtype).reshape(node["shape"])

    def _class(self, name: str, node: Any) -> type:
        kind = self.trusted.get(name) or _PLAIN_NAMES.get(name)
        if kind is None:
            raise StateError(
                f"the state names the class {name}, which is not trusted; if it is yours, name it: "
                f"trust=[{name.rpartition('.')[2]}]"
            )
        return kind

    def _object(self, name: str, node: Any) -> Any:
        kind = self._class(name, node)
        x = kind.__new__(kind, *self.sequence(node["new"])) if "new" in node else kind(*self.sequence(node["call"]))
        for item in self.sequence(node["items"]):
            x.append(item)
        for key, item in self.sequence(node["entries"]):
            x[key] = item
        state = self.value(node["state"])
        if hasattr(x, "__setstate__"):
            if state is not None:
                x.__setstate__(state)
            return x
        attributes, slots = state if isinstance(state, tuple) else (state, None)
        for attribute, content in {**(attributes or {}), **(slots or {})}.items():
            object.__setattr__(x, attribute, content)
        return x

    _RARER: ClassVar[dict[str, Callable[[_Reader, Any, Any], Any]]] = {
        "int": _int,
        "float": _float,
        "pairs": _pairs,
        "bytes": _bytes,
        "bytearray": _bytearray,
        "timedelta": _timedelta,
        "datetime": _datetime,
        "time": _time,
        "scalar": _scalar,
        "objects": _objects,
        "bytes of": _bytes_of,
        "class": _class,
        "object": _object,
    }


def _numbers(x: np.ndarray) -> pa.Array:
    """``pa.array(x)``, without the detour by which Arrow looks for pandas: a state has hundreds of short arrays."""
    if x.dtype.kind == "b":
        return pa.array(x)
    return pa.Array.from_buffers(pa.from_numpy_dtype(x.dtype), len(x), [None, pa.py_buffer(np.ascontiguousarray(x))])


def _as_list(column: pa.Array) -> pa.Array:
    """A column of a single row: the whole array as one list."""
    offsets = pa.py_buffer(np.array([0, len(column)], np.int64))
    return pa.Array.from_buffers(pa.large_list(column.type), 1, [None, offsets], children=[column])


def _to_stream(columns: Sequence[pa.Array], text: str) -> bytes:
    lists = [_as_list(column) for column in columns]
    batch = pa.RecordBatch.from_arrays(lists, [str(i) for i in range(len(lists))])
    schema = batch.schema.with_metadata({_METADATA: text.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _of_stream(data: bytes) -> tuple[list[pa.Array], str]:
    stream = pa.ipc.open_stream(pa.py_buffer(data))
    batch = stream.read_next_batch()
    # Without it, forged offsets would be read wherever they point.
    batch.validate(full=True)
    if batch.num_rows != 1:
        raise ValueError(f"{batch.num_rows} rows")
    return [column[0].values for column in batch.columns], stream.schema.metadata[_METADATA].decode()


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
