"""Monoid trees: the common base of Log MTA and Amortized MTA. Level queues, memory layers, flushes, recovery.

Á. Villalba, J. L. Berral, D. Carrera: "Constant-Time Sliding Window Framework with Reduced Memory Footprint and
Efficient Bulk Evictions", IEEE Transactions on Parallel and Distributed Systems 30(3), 2019. This is an
interpretation of it.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

from slicewise.aggregates.base import Aggregate
from slicewise.errors import QueryError, StateError
from slicewise.swag.base import SlidingWindow
from slicewise.swag.shared_nodes import SharedNodes
from slicewise.swag.stores.base import Store
from slicewise.swag.stores.layers import Layers
from slicewise.swag.stores.memory import MemoryStore

__all__ = ["NOTHING", "Level", "MonoidTree", "Recovered"]

FORMAT = 1


class _Nothing:
    """The empty place in a pair, and the partial of no values: combining with it takes no call of ``combine``."""

    def __reduce__(self) -> str:
        return "NOTHING"  # there is one of it, also after a copy

    def __repr__(self) -> str:
        return "∅"


NOTHING = _Nothing()


@dataclass(frozen=True)
class Recovered:
    """The last flush of a window that was opened from its store: the calls after it are lost.

    Attributes
    ----------
    inserted, evicted
        The number of values ever inserted and evicted. Continue with value number ``inserted``.
    flushes
        The number of flushes so far.
    """

    inserted: int
    evicted: int
    flushes: int


@dataclass(slots=True)
class Level:
    """One level queue. Its elements are numbered for good; elements ``2q`` and ``2q + 1`` are pair ``q``.

    ::

        elements     first                        last
                     |                            |
        pairs     <∅ *>   <* *>   <* *>   <* *>   <* ∅>
                  head    `--- in the layers ---'  tail

    Whether a place is empty follows from ``first`` and ``last``; the content of an empty place has no meaning.

    Attributes
    ----------
    shift
        The pair ``q`` of the level below is the pair of children of element ``q + shift``. A new level starts with the
        left place of a pair wherever the level below has got to, so it is 0 or 1.
    head, tail
        The first and the last pair, in local memory; the same list where they are the same pair.
    """

    first: int
    last: int
    shift: int
    head: list[Any]
    tail: list[Any]

    def copied(self) -> Level:
        """The same level with pairs of its own."""
        tail = self.tail[:]
        return Level(self.first, self.last, self.shift, tail if self.head is self.tail else self.head[:], tail)

    @property
    def head_number(self) -> int:
        return self.first // 2

    @property
    def tail_number(self) -> int:
        return self.last // 2


class MonoidTree(SlidingWindow):
    """A window in level queues of pairs, leaves first, whose inner pairs are kept in a key-value store.

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    store
        Where the inner pairs are kept: a :class:`~slicewise.swag.MemoryStore` by default, a store on disk or on Redis.
        A window continues from a store to which one of the same kind has flushed; see ``recovered``. A window on
        ``SharedNodes`` can be branched, and cannot be flushed.
    buffer
        The number of calls after which an insertion flushes first. The paper's 512 by default.
    ahead
        The number of pairs of a level to read at once, and to keep in its cache, when the window moves forward.

    Attributes
    ----------
    recovered
        The flush from which the window continues, None for a new one.
    """

    several_ranges = True

    def __init__(
        self,
        aggregate: Aggregate,
        *,
        store: Store | SharedNodes | None = None,
        buffer: int = 512,
        ahead: int | None = None,
    ) -> None:
        super().__init__(aggregate)
        self._levels: list[Level] = []
        self._inserted = self._evicted = self._flushes = 0
        self._start = 0  # the number of the first leaf after the window was empty
        self._layers: Layers | SharedNodes
        self.recovered: Recovered | None = None
        if isinstance(store, SharedNodes):
            self._layers = store
            return
        if store is None:
            store = MemoryStore()
        elif not isinstance(store, Store):
            raise QueryError(f"`store` must be a store such as DiskStore('folder'); got {store!r}")
        ahead = store.ahead if ahead is None else ahead
        for name, value in (("buffer", buffer), ("ahead", ahead)):
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise QueryError(f"`{name}` must be a positive count; got {value!r}")
        self._layers = Layers(store, buffer, ahead)
        self.recovered = self._recover()

    def __len__(self) -> int:
        return self._inserted - self._evicted

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values. Their nodes are dropped at once and deleted from the store bit by bit.

        Runtime complexity: O(log n), one round trip to the store.
        """
        self._check_evict(n)
        if n == len(self) > 0:
            self._forget([], [])
            self._emptied()
        elif n:
            self._leave(n)
        self._evicted += n
        self._layers.pending += n > 0

    def enforce(self, policy: Callable[[Any, Any], bool], *, monotone: bool = True) -> int:
        """Evict the longest prefix for which ``policy(total, oldest)`` holds; returns the number of values that left.

        ``total`` is the lowered aggregate of the window before anything leaves, ``oldest`` that of the prefix. If the
        policy is ``monotone``, so that once it fails for a prefix it fails for every longer one, whole subtrees leave
        at once; otherwise it is asked about one value after the other. If it raises, nothing has left.

        Runtime complexity: O(log k) calls of the policy and of ``combine`` for k values that leave from AMTA, O(log n)
        from LogMTA; O(k) if it is not monotone.
        """
        if not callable(policy):
            raise QueryError(f"`policy` must be a function of (total, oldest); got {policy!r}")
        if not self._levels:
            return 0
        total = self.query()

        def holds(partial: Any) -> bool:
            return policy(total, self._lower(partial))

        n = self._prefix(holds) if monotone else self._single_prefix(holds)
        self.evict(n)
        return n

    def _single_prefix(self, holds: Callable[[Any], bool]) -> int:
        """The length of the longest prefix whose partial holds, as do those of all shorter ones."""
        taken, n = NOTHING, 0
        for partial in self._oldest():
            taken = self._fold(taken, partial)
            if not holds(taken):
                break
            n += 1
        return n

    def _oldest(self) -> Iterator[Any]:
        if not self._levels:
            return iter(())
        leaves = self._levels[0]
        return (self._element(0, number) for number in range(leaves.first, leaves.last + 1))

    def partials(self) -> Iterator[Any]:
        """The partials of the single values, from the front.

        Yields
        ------
        Any
            One partial after the other.

        Notes
        -----
        Runtime complexity: O(n) for all of them, no combine.
        """
        return self._oldest()

    def branch(self) -> Self:
        """Another window with the same values, in O(log n): inner nodes are shared, only the ends are copied.

        Either may go on, but of what they insert after the branch only one may stay: nodes that both write have the
        same place. Only for windows on ``SharedNodes``, which delete nothing by themselves.

        Returns
        -------
        MonoidTree
            The other window, of the same kind.
        """
        if not isinstance(self._layers, SharedNodes):
            raise QueryError("only a window on SharedNodes can be branched; its nodes are kept for one window alone")
        other = copy.copy(self)
        other._levels = [level.copied() for level in self._levels]
        other._layers = self._layers.branch()
        return other

    def last_pairs(self) -> list[int]:
        """The number of the last pair of each level.

        Returns
        -------
        list of int
            One number per level, leaves first.
        """
        return [level.tail_number for level in self._levels]

    @property
    def nodes(self) -> Layers | SharedNodes:
        """Where the inner pairs are."""
        return self._layers

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: O(1), at most one combine, none when nothing has changed; O(log n) for ``last``, with at
        most one round trip to the store.
        """
        if last is not None:
            self._check_last(last)
        if not self._levels:
            return self._lower(self.aggregate.identity)
        if last is None or last == len(self):
            return self._lower(self._total())
        return self._lower(self._suffix(self._levels[0].last - last + 1))

    def flush(self) -> None:
        """Write the buffered pairs, and everything needed to continue from here, in one batch.

        Runtime complexity: O(buffer + log n).
        """
        self._flushed.flush({**self._state(), "flushes": self._flushes + 1})
        self._flushes += 1

    def sweep(self) -> None:
        """Delete all that has left the window from the store, which flushes otherwise do bit by bit.

        Runtime complexity: O(pairs to delete).
        """
        self.flush()
        while self._flushed.dead:
            self.flush()

    def close(self) -> None:
        """Flush, then close the store.

        Runtime complexity: O(buffer + log n).
        """
        self.flush()
        self._flushed.store.close()

    def levels(self) -> list[list[tuple[Any, Any]]]:
        """The pairs of each level queue as the paper draws them; for small windows.

        Returns
        -------
        list of lists of pairs
            One list per level, leaves first, of lowered partials; ∅ in an empty place.

        Notes
        -----
        Runtime complexity: O(n).
        """
        return [[(self._shown(a), self._shown(b)) for a, b in level] for level in self._pairs()]

    def _pairs(self) -> list[list[tuple[Any, Any]]]:
        return [
            [self._as_drawn(level, number, self._pair(i, number)) for number in _numbers(level)]
            for i, level in enumerate(self._levels)
        ]

    def _shown(self, partial: Any) -> Any:
        return partial if partial is NOTHING else self._lower(partial)

    @property
    def local_nodes(self) -> int:
        """The number of nodes in local memory; all others are in the store."""
        ends = sum(len(v.head) + (len(v.tail) if v.tail is not v.head else 0) for v in self._levels)
        return ends + 2 * len(self._layers)

    # -- the algorithms

    @abstractmethod
    def _total(self) -> Any:
        """The partial of the window, which is not empty."""

    @abstractmethod
    def _suffix(self, leaf: int) -> Any:
        """The partial from a leaf, which is not the first one, to the back."""

    @abstractmethod
    def _prefix(self, holds: Callable[[Any], bool]) -> int:
        """The length of the longest prefix whose partial ``holds``."""

    @abstractmethod
    def _leave(self, n: int) -> None:
        """Remove the ``n`` oldest values; some stay."""

    def _emptied(self) -> None:
        """All values have left."""

    # -- level queues

    def _fold(self, a: Any, b: Any) -> Any:
        if a is NOTHING:
            return b
        return a if b is NOTHING else self._combine(a, b)

    def _pair(self, i: int, number: int) -> Sequence[Any]:
        level = self._levels[i]
        if number == level.tail_number:
            return level.tail
        if number == level.head_number:
            return level.head
        return self._layers.fetch([(i, number, number + 1)])[0]

    def _element(self, i: int, number: int) -> Any:
        return self._pair(i, number // 2)[number & 1]

    def _heads(self, firsts: list[int], *, ahead: bool) -> list[list[Any]]:
        """The head pair of each level when ``firsts`` are the first elements; read from the store in one go."""
        spans = []
        for i, first in enumerate(firsts):
            number, level = first // 2, self._levels[i]
            if number not in (level.head_number, level.tail_number):
                spans.append((i, number, level.tail_number if ahead else number + 1))
        read = iter(self._layers.fetch(spans) if spans else ())
        heads = []
        for first, level in zip(firsts, self._levels, strict=False):
            if first // 2 == level.tail_number:
                heads.append(level.tail)
            elif first // 2 == level.head_number:
                heads.append(level.head)
            else:
                heads.append(list(next(read)))
        return heads

    def _forget(self, firsts: list[int], heads: list[list[Any]], *, above: bool = True) -> None:
        """Move the lowest levels to new heads and remove the levels ``above`` them."""
        for i, (first, head) in enumerate(zip(firsts, heads, strict=True)):
            level = self._levels[i]
            self._layers.drop(i, level.head_number, first // 2)
            level.first, level.head = first, head
        if not above:
            return
        for i in range(len(firsts), len(self._levels)):
            level = self._levels[i]
            # The last pair has never been in the store, and its number may be used again.
            self._layers.drop(i, level.head_number, level.tail_number)
            if i == 0:
                self._start = 2 * level.tail_number + 2
        del self._levels[len(firsts) :]

    def _start_pair(self, i: int, value: Any) -> None:
        """Begin a pair after the last one of a level, which is full and moves to the layers."""
        level = self._levels[i]
        if level.tail_number != level.head_number:
            self._layers.push(i, level.tail_number, tuple(level.tail))
        level.tail = [value]
        level.last += 1

    def _start_level(self, below: int, values: list[Any]) -> None:
        """Put a level on top, whose first element is the parent of pair ``below``."""
        shift = below & 1
        first = below + shift
        self._levels.append(Level(first, first + len(values) - 1, shift, values, values))

    def _start_leaves(self, value: Any) -> None:
        values = [value]
        self._levels.append(Level(self._start, self._start, 0, values, values))

    # -- flushes

    @property
    def _flushed(self) -> Layers:
        if not isinstance(self._layers, Layers):
            raise QueryError("a window on SharedNodes has no store of its own to flush")
        return self._layers

    def _make_room(self) -> None:
        """Flush when it is due, before anything changes: if the store refuses, the window is as it was."""
        if self._layers.due:
            self.flush()

    def _state(self) -> dict[str, Any]:
        """The part of a flush besides pairs, as plain data: numbers, texts, lists, the partials of O(log n) nodes."""
        return {
            "format": FORMAT,
            "algorithm": type(self).__name__,
            "aggregate": _fingerprint(self.aggregate),
            "inserted": self._inserted,
            "evicted": self._evicted,
            "start": self._start,
            "levels": [(v.first, v.last, v.shift, list(v.head), list(v.tail)) for v in self._levels],
        }

    def _recover(self) -> Recovered | None:
        state = self._flushed.load()
        if state is None:
            return None
        if state["format"] != FORMAT:
            raise StateError(f"the store has format {state['format']}; this version of slicewise reads {FORMAT}")
        for what, ours in (("algorithm", type(self).__name__), ("aggregate", _fingerprint(self.aggregate))):
            if state[what] != ours:
                raise StateError(
                    f"the store belongs to a window with {what} {state[what]}, this one has {ours}; "
                    "open it as it was, or give this window a store of its own"
                )
        self._restore(state)
        return Recovered(self._inserted, self._evicted, self._flushes)

    def _restore(self, state: dict[str, Any]) -> None:
        self._inserted, self._evicted, self._flushes = state["inserted"], state["evicted"], state["flushes"]
        self._start = state["start"]
        for first, last, shift, head, tail in state["levels"]:
            tail = list(tail)
            self._levels.append(Level(first, last, shift, tail if first // 2 == last // 2 else list(head), tail))

    # -- invariants

    def _as_drawn(self, level: Level, number: int, pair: Sequence[Any]) -> tuple[Any, Any]:
        left, right = 2 * number, 2 * number + 1
        return (
            pair[0] if level.first <= left <= level.last else NOTHING,
            pair[1] if level.first <= right <= level.last else NOTHING,
        )

    def _check(self) -> None:
        assert bool(self._levels) == (len(self) > 0)
        if not self._levels:
            return
        assert self._levels[0].last - self._levels[0].first + 1 == len(self)
        for i, level in enumerate(self._levels):
            assert level.first <= level.last
            assert level.shift in (0, 1)
            assert len(level.tail) == level.last % 2 + 1
            assert (level.head is level.tail) == (level.head_number == level.tail_number)
            # Invariants 1 and 2: only the first pair may lack its left element, only the last one its right element.
            assert len(level.head) == 2 or level.head is level.tail
            assert self._layers.dead.get(i, (0, 0))[1] <= level.head_number
        top = self._levels[-1]
        assert top.head_number == top.tail_number
        assert len(self._levels) <= max(1, 2 + self._inserted.bit_length())


def _numbers(level: Level) -> Iterator[int]:
    return iter(range(level.head_number, level.tail_number + 1))


def _fingerprint(aggregate: Aggregate) -> str:
    """A text that is equal for equal aggregates, in every process."""
    parameters = aggregate.parameters()
    return f"{type(aggregate).__qualname__} {aggregate!r}" + (f" {parameters!r}" if parameters else "")
