"""The contract of the key-value stores, and how values become bytes. Read and written by the layers alone."""

from __future__ import annotations

import hashlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from slicewise import plain
from slicewise.errors import SlicewiseError, StateError

__all__ = ["STATE", "Codec", "Key", "Store", "StoreError"]

Key = tuple[int, int] | tuple[int, int, str]
"""Level and number of a pair in its level queue; where a store is shared, also the name of the window."""

STATE: tuple[int, int] = (-1, 0)
"""Where a flush keeps everything that is not a pair."""


class StoreError(SlicewiseError, OSError):
    """A store is full, unreachable, closed or damaged. The window above it is as it was before the call.

    Examples
    --------
    >>> from slicewise.swag import RedisStore
    >>> RedisStore("redis://127.0.0.1:1/0", timeout=1)
    Traceback (most recent call last):
    slicewise.swag.stores.base.StoreError: the store at 'redis://127.0.0.1:1/0' is gone: ...; continue when it is back
    """


class Store(ABC):
    """A map from keys to values, which outlives the window unless it is in memory.

    A store of your own needs the three methods below; :class:`Codec` turns keys and values into bytes.

    Attributes
    ----------
    ahead
        The number of pairs that a window reads at once when it moves forward, unless its user chooses another.

    Examples
    --------
    A store that keeps bytes in a dictionary:

    >>> class BytesStore(Store):
    ...     def __init__(self):
    ...         self.codec, self.values = Codec(), {}
    ...     def get(self, keys):
    ...         stored = [self.values.get(self.codec.key(key)) for key in keys]
    ...         return [None if data is None else self.codec.load(data) for data in stored]
    ...     def write(self, puts, deletes=()):
    ...         for key in deletes:
    ...             self.values.pop(self.codec.key(key), None)
    ...         self.values |= {self.codec.key(key): self.codec.dump(value) for key, value in puts.items()}
    ...     def close(self):
    ...         pass
    >>> store = BytesStore()
    >>> store.write({(0, 7): (1, 2)})
    >>> store.get([(0, 7), (0, 8)])
    [(1, 2), None]
    >>> store.close()

    A window on it:

    >>> from slicewise.aggregates import sum
    >>> from slicewise.swag import AMTA
    >>> window = AMTA(sum(), store=store)
    >>> window.insert_many([1, 2, 3])
    >>> window.query()
    6
    """

    ahead: ClassVar[int] = 64

    @abstractmethod
    def get(self, keys: Sequence[Key]) -> list[Any]:
        """Read values in one round trip.

        Parameters
        ----------
        keys
            The keys: level and number, and the name of the window where several are kept in the store.

        Returns
        -------
        list
            One value per key; None for a key that is not in the store.
        """

    @abstractmethod
    def write(self, puts: Mapping[Key, Any], deletes: Iterable[Key] = ()) -> None:
        """Put and delete, all or nothing: whoever opens the store afterwards sees the whole batch or none of it.

        Parameters
        ----------
        puts
            The values to write, by key.
        deletes
            The keys to delete; those that are not in the store are skipped.
        """

    @abstractmethod
    def close(self) -> None:
        """Close files and connections; the values that were written stay."""


_KEY = struct.Struct(">bQ")
#: Longer names of windows are written as their hash.
LONGEST_NAME = 256


class Codec:
    """Keys and values as bytes: a key is its level in one byte and its number in eight, big-endian; a value is data.

    A store is shared and outlives the process, so nothing in it is treated as code (:mod:`slicewise.plain`): numbers,
    text, dates, containers and NumPy arrays are read back, and objects of the classes in ``trust``.

    Examples
    --------
    >>> codec = Codec()
    >>> codec.key((2, 5)).hex()
    '020000000000000005'
    >>> codec.load(codec.dump(((3, 1), None)))
    ((3, 1), None)
    """

    def __init__(self, trust: Iterable[type] = ()) -> None:
        self._trusted = frozenset(_classes(trust))

    @staticmethod
    def key(key: Key) -> bytes:
        packed = _KEY.pack(*key[:2])
        if len(key) == 2:
            return packed
        name = key[2].encode()
        # Databases have short keys; and what has no name is never as long as what has one.
        return packed + (name if len(name) <= LONGEST_NAME else hashlib.sha256(name).hexdigest().encode())

    def dump(self, value: Any) -> bytes:
        try:
            return plain.dump(value, self._trusted)
        except StateError as error:
            raise StoreError(f"a partial cannot be stored: {error}") from error

    def load(self, data: bytes) -> Any:
        try:
            return plain.load(data, self._trusted)
        except StateError as error:
            raise StoreError(f"the store holds something that cannot be read: {error}") from error


def _classes(trust: Iterable[type]) -> Iterable[type]:
    for item in trust:
        if not isinstance(item, type):
            raise StoreError(f"`trust` must be a list of classes, such as [collections.Counter]; got {item!r}")
        yield item
