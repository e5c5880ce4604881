"""The store in memory: a dictionary. The default, for windows that fit and need not outlive the process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from slicewise.swag.stores.base import Key, Store

__all__ = ["MemoryStore"]


class MemoryStore(Store):
    """A dictionary; values are kept as they are.

    Examples
    --------
    >>> store = MemoryStore()
    >>> store.write({(0, 7): (1, 2), (0, 8): (3, 4)})
    >>> store.write({}, deletes=[(0, 7)])
    >>> store.get([(0, 7), (0, 8)])
    [None, (3, 4)]
    """

    ahead: ClassVar[int] = 1  # a dictionary is as near as a cache

    def __init__(self) -> None:
        self._values: dict[Key, Any] = {}

    def __len__(self) -> int:
        return len(self._values)

    def get(self, keys: Sequence[Key]) -> list[Any]:
        return [self._values.get(key) for key in keys]

    def write(self, puts: Mapping[Key, Any], deletes: Iterable[Key] = ()) -> None:
        for key in deletes:
            self._values.pop(key, None)
        self._values.update(puts)

    def close(self) -> None:
        """Nothing to close."""
