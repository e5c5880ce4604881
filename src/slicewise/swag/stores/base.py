"""The contract of the key-value stores, and how values become bytes. Read and written by the layers alone."""

from __future__ import annotations

import io
import pickle
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from slicewise.errors import SlicewiseError

__all__ = ["STATE", "Codec", "Key", "Store", "StoreError"]

Key = tuple[int, int]
"""Level and number of a pair in its level queue, so that one read finds it."""

STATE: Key = (-1, 0)
"""Where a flush keeps everything that is not a pair."""


class StoreError(SlicewiseError, OSError):
    """A store that is full, gone, closed or damaged. The window above it is as it was before the call."""


class Store(ABC):
    """A map from keys to values that outlives the window, if it is not :class:`MemoryStore`.

    A store of your own needs the three methods below; :class:`Codec` turns keys and values into bytes.

    Attributes
    ----------
    ahead
        How many pairs to read at once when the window moves forward, where the user does not say.
    """

    ahead: ClassVar[int] = 64

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> list[Any]:
        """One value per key, in one round trip; None where there is none."""

    @abstractmethod
    def write(self, puts: Mapping[Key, Any], deletes: Iterable[Key] = ()) -> None:
        """Put and delete, all or nothing: whoever opens the store afterwards sees the whole batch or none of it."""

    @abstractmethod
    def close(self) -> None:
        """Let go of files and connections; what was written stays."""


_KEY = struct.Struct(">bQ")

# What partials of built-in aggregates are made of, besides what pickle knows without looking up a name.
_PLAIN = {
    "builtins": {"set", "frozenset", "bytearray", "complex", "range", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "uuid": {"UUID"},
}


class Codec:
    """Keys and values as bytes: a key is its level in one byte and its number in eight, big-endian; a value is pickled.

    Pickled data can name any function to call when it is read. A store is shared and outlives the process, so only
    plain data is read back: numbers, text, dates, containers, NumPy scalars and arrays, classes of slicewise, and
    classes of the modules in ``trust``.

    Examples
    --------
    >>> codec = Codec()
    >>> codec.key((2, 5)).hex()
    '020000000000000005'
    >>> codec.load(codec.dump(((3, 1), None)))
    ((3, 1), None)
    """

    def __init__(self, trust: Iterable[str] = ()) -> None:
        self._trusted = ("slicewise", *trust)

    @staticmethod
    def key(key: Key) -> bytes:
        return _KEY.pack(*key)

    @staticmethod
    def dump(value: Any) -> bytes:
        try:
            return pickle.dumps(value, 5)
        except Exception as e:
            raise StoreError(f"a partial cannot be stored, since it cannot be pickled: {e}; got {value!r}") from e

    def load(self, data: bytes) -> Any:
        try:
            return _PlainUnpickler(io.BytesIO(data), self._trusted).load()
        except StoreError:
            raise
        except Exception as e:
            raise StoreError(f"the store holds something that slicewise did not write: {e}") from e


class _PlainUnpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, trusted: tuple[str, ...]) -> None:
        super().__init__(file)
        self._trusted = trusted

    def find_class(self, module: str, name: str) -> Any:
        if name in _PLAIN.get(module, ()):
            return super().find_class(module, name)
        # A dotted name would reach through a module into what it imports; only classes at home there are meant.
        if "." not in name and any(module == t or module.startswith(f"{t}.") for t in self._trusted):
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise StoreError(
            f"the store holds a {module}.{name}, which is not plain data; if it is yours, say trust=({module!r},)"
        )
