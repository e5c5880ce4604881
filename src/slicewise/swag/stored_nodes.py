"""Stored nodes: the inner pairs of a monoid tree and its branches in a key-value store that many windows share.

Pairs are written behind. What the last snapshot and the one before it need stays in the store, whatever has left since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

from slicewise.errors import StateError
from slicewise.swag.shared_nodes import SharedNodes
from slicewise.swag.stores.base import Key, Store, StoreError
from slicewise.swag.stores.layers import Pair, Span
from slicewise.swag.stores.write_behind import write_behind

__all__ = ["Ranges", "StoredNodes", "StoredPairs"]

#: Level by level the first pair of a run, and the one behind it.
Ranges = dict[int, tuple[int, int]]

#: The pairs that are kept in memory after they were read.
CACHED = 256


class StoredPairs(MutableMapping[Key, Pair]):
    """The pairs of one window, under its name.

    Parameters
    ----------
    store
        Where they are kept, with those of other windows.
    name
        What the window is called there.
    packed, unpacked
        A pair as plain data, and back.

    Attributes
    ----------
    retired
        What has left the window since the last snapshot, and between the last two.
    """

    def __init__(self, store: Store, name: str, packed: Callable[[Pair], Any], unpacked: Callable[[Any], Pair]) -> None:
        self.store, self.name = store, name
        self._packed, self._unpacked = packed, unpacked
        self._writer = write_behind(store)
        self._cache: dict[tuple[int, int], Pair] = {}
        self.retired: tuple[Ranges, Ranges] = ({}, {})

    def claim(self) -> None:
        """Note in the store that the window is there."""
        self._writer.put({(-1, 0, self.name): self.name})

    def check(self) -> None:
        """Refuse a store in which the window is not."""
        if self._writer.get([(-1, 0, self.name)]) != [self.name]:
            raise StateError(
                f"the store does not hold the nodes of {self.name}, perhaps those of other windows; give the policy "
                "the store with which the snapshot was taken"
            )

    def __setitem__(self, key: Key, pair: Pair) -> None:
        self._cache.pop(key[:2], None)
        self._writer.put({(*key[:2], self.name): self._packed(pair)})

    def __getitem__(self, key: Key) -> Pair:
        return self.read([(key[0], key[1], key[1] + 1)])[0]

    def __delitem__(self, key: Key) -> None:
        self.retire(key[0], key[1], key[1] + 1)

    def __iter__(self) -> Iterator[Key]:
        """The pairs in memory."""
        return iter(self._cache)

    def __len__(self) -> int:
        return len(self._cache)

    def read(self, spans: Sequence[Span]) -> list[Pair]:
        """The pair at the start of each span; those not in memory in one round trip, with some behind them."""
        missing: list[tuple[int, int]] = []
        for level, number, stop in spans:
            if (level, number) not in self._cache:
                until = min(stop, number + self.store.ahead)
                missing += [(level, n) for n in range(number, until) if (level, n) not in self._cache]
        stored = self._writer.get([(*key, self.name) for key in missing]) if missing else []
        fresh = {key: self._read(key, data) for key, data in zip(missing, stored, strict=True)}
        pairs = [fresh[s[:2]] if s[:2] in fresh else self._cache[s[:2]] for s in spans]
        self._cache |= fresh
        while len(self._cache) > CACHED:
            del self._cache[next(iter(self._cache))]
        return pairs

    def _read(self, key: tuple[int, int], data: Any) -> Pair:
        if data is None:
            raise StoreError(
                f"the store has lost pair {key[1]} of level {key[0]} of {self.name}, which it was given; the window is "
                "unchanged, but what it held there is gone"
            )
        return self._unpacked(data)

    def retire(self, level: int, start: int, stop: int) -> None:
        """Pairs are needed by earlier snapshots alone. Runs of a level follow one another."""
        if start < stop:
            since = self.retired[0]
            since[level] = (min(start, since.get(level, (start, stop))[0]), stop)

    def snapshotted(self) -> Ranges:
        """Write all that waits, and delete what neither this snapshot nor the last one needs; what is retired still."""
        since, before = self.retired
        deletes = [(level, n, self.name) for level, (start, stop) in before.items() for n in range(start, stop)]
        self._writer.flush(deletes)
        self.retired = ({}, since)
        return since


class StoredNodes(SharedNodes):
    """Inner pairs in a store, with what one of the trees has dropped of them.

    Parameters
    ----------
    pairs
        The pairs of the window.
    """

    pairs: StoredPairs

    def __init__(self, pairs: StoredPairs) -> None:
        super().__init__(pairs)

    def fetch(self, spans: Sequence[Span]) -> list[Any]:
        """The pair at the start of each span, in one round trip."""
        return self.pairs.read(spans)

    def sweep(self, since: Sequence[int] = ()) -> None:
        """Retire what this tree has dropped; it is deleted when no snapshot needs it."""
        kept: Ranges = {}
        for level, (start, stop) in self.dead.items():
            first = since[level] if level < len(since) else 0
            self.pairs.retire(level, max(start, first), stop)
            if start < first:
                kept[level] = (start, min(stop, first))
        self.dead = kept
