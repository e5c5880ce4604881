"""Memory layers: the inner pairs of the level queues, in a buffer, a cache and a store. Used by the monoid trees.

The tree keeps the first and the last pair of each level itself. A pair that is neither is final, and lives here::

      first pair                                                            last pair
      (tree)      |  cache: read ahead  |   store   |  buffer: unwritten  |   (tree)
    oldest -------------------------------------------------------------------> newest
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slicewise.swag.stores.base import STATE, Key, Store, StoreError

__all__ = ["Layers", "Pair", "Span"]

Pair = tuple[Any, ...]

Span = tuple[int, int, int]
"""Level, number of the pair wanted, and the number before which reading ahead must stop."""

#: Dead pairs that a flush deletes at most, for each call it gathered: more than can be pushed, so garbage shrinks.
SWEEP = 4


class Layers:
    """Inner pairs by level and number: pushed at the back, fetched anywhere, dropped from the front.

    Parameters
    ----------
    store
        Where pairs are kept.
    buffer
        The number of calls to gather for a flush.
    ahead
        The number of pairs of a level to read at once, and to keep in its cache.
    """

    def __init__(self, store: Store, buffer: int, ahead: int) -> None:
        self.store = store
        self.limit = buffer
        self.ahead = ahead
        self.pending = 0
        #: Dead pairs per level, from the first not yet deleted up to the first that lives.
        self.dead: dict[int, tuple[int, int]] = {}
        self._buffer: dict[Key, Pair] = {}
        self._cache: dict[int, dict[int, Pair]] = {}
        self._unsure = False

    @property
    def due(self) -> bool:
        """Whether enough calls have gathered for a flush."""
        return self.pending >= self.limit

    def __len__(self) -> int:
        """The number of pairs in local memory."""
        return len(self._buffer) + sum(map(len, self._cache.values()))

    def push(self, level: int, number: int, pair: Pair) -> None:
        """Take over a pair that is no longer the last of its level."""
        self._buffer[level, number] = pair

    def fetch(self, spans: Sequence[Span]) -> list[Pair]:
        """The pair at the start of each span; those not in local memory are read in one round trip.

        Runtime complexity: O(spans x ahead), at most one round trip.
        """
        missing: list[Key] = []
        for level, number, stop in spans:
            if (level, number) not in self._buffer and number not in self._cache.get(level, ()):
                until = min(stop, number + self.ahead)
                missing += [(level, n) for n in range(number, until) if (level, n) not in self._buffer]
        read = self._read(missing) if missing else {}
        return [self._local(level, number, read) for level, number, _ in spans]

    def _local(self, level: int, number: int, read: dict[Key, Pair]) -> Pair:
        key = (level, number)
        if key in read:
            return read[key]
        return self._buffer[key] if key in self._buffer else self._cache[level][number]

    def _read(self, keys: list[Key]) -> dict[Key, Pair]:
        read = dict(zip(keys, self.store.get(keys), strict=True))
        for key, pair in read.items():
            level, number = key[0], key[1]
            if pair is None:
                raise StoreError(
                    f"the store has lost pair {number} of level {level}, which it was given; the window is unchanged, "
                    "but what it held there is gone"
                )
            cache = self._cache.setdefault(level, {})
            cache[number] = pair
            if len(cache) > self.ahead:
                del cache[next(iter(cache))]
        return read

    def drop(self, level: int, start: int, stop: int) -> None:
        """Give up the pairs ``start`` to ``stop - 1`` of a level. They are deleted later, a few at every flush.

        Runtime complexity: O(1), whatever their number.
        """
        if start < stop:
            self.dead[level] = (self.dead.get(level, (start, stop))[0], stop)

    def load(self) -> dict[str, Any] | None:
        """The state that the last flush wrote, None from an empty store."""
        state: dict[str, Any] | None
        (state,) = self.store.get([STATE])
        if state is not None:
            self.dead = dict(state["dead"])
        return state

    def flush(self, state: dict[str, Any]) -> None:
        """Write the buffer and the state of the tree in one batch, and delete a few dead pairs with it."""
        ends = {level: stop for level, (_, stop) in self.dead.items()}
        puts: dict[Key, Any] = {k: pair for k, pair in self._buffer.items() if k[1] >= ends.get(k[0], 0)}
        deletes, dead = _take(self.dead, SWEEP * max(self.limit, len(puts)))
        if not self._unsure:  # pairs that never left the buffer need not be deleted
            deletes = [k for k in deletes if k not in self._buffer]
        puts[STATE] = {**state, "dead": dict(dead)}
        # A connection may break after the server has written. Writing the same again does no harm.
        self._unsure = True
        self.store.write(puts, deletes)
        self._unsure = False
        self._buffer.clear()
        self.dead = dead
        self.pending = 0


def _take(dead: dict[int, tuple[int, int]], most: int) -> tuple[list[Key], dict[int, tuple[int, int]]]:
    """Up to ``most`` keys of dead pairs, and the dead pairs that remain."""
    taken: list[Key] = []
    left = {}
    for level, (start, stop) in dead.items():
        cut = min(stop, start + most - len(taken))
        taken += [(level, number) for number in range(start, cut)]
        if cut < stop:
            left[level] = (cut, stop)
    return taken, left
