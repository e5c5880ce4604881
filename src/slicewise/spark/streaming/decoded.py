"""Decoded shards: what a worker keeps of the shards that it served last, so that it need not read their chunks again.

The next micro-batch of a shard may go to another worker. Then the copy here is of an older version than the state, and
is dropped when the shard comes back; until then it takes memory for nothing, so there is one for each shard and run,
and all of them together have a limit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

from slicewise.slicing import Shard

__all__ = ["DECODED", "DecodedShards"]


@dataclass(frozen=True)
class _Copy:
    version: str
    shard: Shard
    bytes: int


@dataclass
class DecodedShards:
    """The latest copy of each shard, by run and shard id; the least recently used ones leave when there are too many.

    Attributes
    ----------
    most
        How many bytes all copies may take together. A single copy that takes more is not kept at all.
    """

    most: int
    _copies: OrderedDict[Hashable, _Copy] = field(default_factory=OrderedDict)

    @property
    def bytes(self) -> int:
        """How many bytes the copies take."""
        return sum(copy.bytes for copy in self._copies.values())

    def __len__(self) -> int:
        return len(self._copies)

    def take(self, place: Hashable, version: str) -> Shard | None:
        """The copy of a shard, which is the caller's from now on; None if there is none of that version."""
        copy = self._copies.pop(place, None)
        return copy.shard if copy is not None and copy.version == version else None

    def keep(self, place: Hashable, version: str, shard: Shard) -> None:
        """Keep a shard as it is now, instead of the copy that was there."""
        self._copies.pop(place, None)
        size = shard.nbytes
        if size > self.most:
            return
        self._copies[place] = _Copy(version, shard, size)
        while self.bytes > self.most:
            self._copies.popitem(last=False)


#: Those of this worker: enough for some ten million slices of one sum.
DECODED = DecodedShards(most=1 << 30)
