"""Standing slices: time slices that stay where they are from step to step, with the stores that answer their ranges.

:class:`~slicewise.slicing.time.slices.Slices` are sorted anew in every step, which is right for steps of many rows and
costs in proportion to the state for steps of few. Here every key has a *region* of slots, with room behind its last
slice and, as slices leave, before its first; a row changes the slot that it falls into, or takes the next one::

    key 0   [ . . a b c d . . ]      a row behind d: the slot behind it
    key 1   [ e f ]                  behind f: the region has no room, and moves to one of twice the length
    key 2   [ . . . . . g h i ]      behind i: half of the region is free before g, so it moves half of its length

A region is as long as a power of two and begins at a multiple of its length, so that a tree over all slots has one for
each region below its root, which moves with it: no partial is combined again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from slicewise.aggregates.base import Parts, pick_parts, take_parts
from slicewise.kernels import expand_ranges, segment_lengths, segment_starts
from slicewise.plan.plan import Plan
from slicewise.slicing.answers.standing_stores import STANDING, Region, StandingStore, assign
from slicewise.slicing.time.slices import Slices
from slicewise.times import INFINITY

__all__ = ["StandingSlices"]

#: So many pairs of key and time are looked up one by one: that is faster than array code for all of them.
FEW_LOOKUPS = 8
#: The only key, where there is one.
ONE_KEY = np.zeros(1, np.int64)
#: The edge behind a slice is looked up when it is first needed.
UNKNOWN = np.iinfo(np.int64).min


class StandingSlices:
    """Slices of many keys in slots. No slice is closed under a session gap.

    Attributes
    ----------
    key, first, last, rows, unreported
        As of :class:`Slices`, for every slot.
    parts
        For each of the plan's monoids the partials of all slots.
    touched
        The slots that hold rows which are not reported yet.
    """

    def __init__(self, plan: Plan, slices: Slices, next_edge: Callable[[int], int]) -> None:
        self.plan = plan
        self._next_edge = next_edge
        starts = segment_starts(slices.key[1:] != slices.key[:-1])
        lengths = segment_lengths(starts, len(slices))
        keys = slices.key[starts]
        self._place_regions(keys, lengths)
        slots = np.repeat(self._front[keys] - starts, lengths) + np.arange(len(slices))
        size = self.size
        columns = (slices.key, slices.first, slices.last, slices.rows, slices.unreported)
        self.key, self.first, self.last, self.rows, self.unreported = (_spread(c, slots, size) for c in columns)
        self._until = np.full(size, UNKNOWN)
        self.parts: list[Parts] = []
        for monoid, parts in zip(plan.monoids, slices.parts, strict=True):
            self.parts.append(assign(monoid.identities(size), slots, parts))
        self.touched = set(np.flatnonzero(self.unreported).tolist())
        #: Keys that had rows since slices last left.
        self._active: set[int] = set()
        self.count = len(slices)
        self.latest = int(slices.last.max())
        self.stores = [self._store(i, c.store.choice) for i, c in enumerate(plan.components)]
        #: The numbers of the stores that must hear of changes.
        self._following = [i for i, store in enumerate(self.stores) if store.keeps]
        #: The monoids whose partials are Python objects, which slots must not keep alive.
        self._of_objects = [i for i, monoid in enumerate(plan.monoids) if any(d.hasobject for d in monoid.dtypes)]

    def _place_regions(self, keys: np.ndarray, lengths: np.ndarray) -> None:
        """Give every key a region with room for one slice more at least; the longest first, so that all are aligned."""
        room = 1 << np.ceil(np.log2(lengths + 1)).astype(np.int64)
        order = np.argsort(-room, kind="stable")
        base = np.empty(len(keys), np.int64)
        base[order] = np.cumsum(room[order]) - room[order]
        self._base, self._length, self._front, self._end = (np.zeros(int(keys.max()) + 1, np.int64) for _ in range(4))
        self._base[keys], self._length[keys], self._front[keys], self._end[keys] = base, room, base, base + lengths
        self._top = int(room.sum())
        self.size = 1 << (self._top - 1).bit_length()

    def _store(self, number: int, kind: str) -> StandingStore:
        component = self.plan.components[number]
        if kind == "prefix" and not component.monoid.exact:
            kind = "eager"  # what a running value of floats has lost would stay lost from step to step
        store = STANDING[kind](component.monoid, pick_parts(self.parts[component.kept], component.places))
        store.build([self._region(key) for key in self.keys().tolist()])
        return store

    def __len__(self) -> int:
        return self.count

    @property
    def is_wasteful(self) -> bool:
        """Whether regions that keys have left, or slices of keys without new rows, take most of the slots."""
        return self._top > 8 * self.count + 1024

    def keys(self) -> np.ndarray:
        """The keys that have slices, ascending."""
        if len(self._base) == 1 and self.count:
            return ONE_KEY
        return (self._end > self._front).nonzero()[0]

    def slices(self) -> Slices:
        """The same slices, sorted by key and time."""
        keys = self.keys()
        front, end = self._front[keys], self._end[keys]
        slots, _ = expand_ranges(front, end)
        return self._at(slots, tuple(take_parts(parts, slots) for parts in self.parts))

    def _at(self, slots: np.ndarray, parts: tuple[Parts, ...] = ()) -> Slices:
        """The slices in some slots."""
        return Slices(
            self.key[slots],
            self.first[slots],
            self.last[slots],
            self.rows[slots],
            self.unreported[slots],
            np.zeros(len(slots), np.int64),
            parts,
        )

    @property
    def span(self) -> tuple[int, int]:
        """Two event times with all rows between them."""
        if len(self._base) == 1 and self.count:
            return self.first.item(self._front.item(0)), self.latest
        return -INFINITY, self.latest

    @property
    def whole(self) -> Slices | None:
        """They are not sorted as one."""
        return None

    def unreported_before(self, time: int) -> Slices:
        """The slices that hold unreported rows and begin before a time, sorted and without partials."""
        slots = np.array(sorted(self.touched), np.int64)
        slices = self._at(slots[self.first[slots] < time])
        return slices.take(np.lexsort((slices.first, slices.key)))

    # Rows in

    def insert(self, pieces: Sequence[Slices]) -> None:
        """Let new slices in, cut at the edges: each joins the slice of its cell, or takes a slot of its own."""
        for piece in pieces:
            bounds = zip(piece.key.tolist(), piece.first.tolist(), piece.last.tolist(), strict=True)
            for i, (key, first, last) in enumerate(bounds):
                slot = self._slot_of(key, first)
                if slot is None:
                    self._add(key, first, last, piece, i)
                else:
                    self._update(key, slot, first, last, piece, i)
                if last > self.latest:
                    self.latest = last

    def _slot_of(self, key: int, time: int) -> int | None:
        """The slot of the slice whose cell holds a time; None if there is none yet."""
        if key >= len(self._base):
            return None
        front, end = self._front.item(key), self._end.item(key)
        if front == end:
            return None
        behind = end
        if time < self.first.item(end - 1):
            behind = front + int(self.first[front:end].searchsorted(time, "right"))
        if behind > front and (time <= self.last.item(behind - 1) or time < self._edge_behind(behind - 1)):
            return behind - 1
        if behind < end and self.first.item(behind) < self._next_edge(time):
            return behind
        return None

    def _edge_behind(self, slot: int) -> int:
        until: int = self._until.item(slot)
        if until == UNKNOWN:
            until = self._until[slot] = self._next_edge(self.first.item(slot))
        return until

    def _update(self, key: int, slot: int, first: int, last: int, piece: Slices, i: int) -> None:
        """The paper's update: rows that came are combined into the slice that is there."""
        at, taken = slice(slot, slot + 1), slice(i, i + 1)
        for number, monoid in enumerate(self.plan.monoids):
            came = take_parts(piece.parts[number], taken)
            self._put(number, at, monoid.combine(take_parts(self.parts[number], at), came))
        if first < self.first.item(slot):
            self.first[slot], self._until[slot] = first, UNKNOWN
        if last > self.last.item(slot):
            self.last[slot] = last
        self.rows[slot] += piece.rows[i]
        self.unreported[slot] += piece.unreported[i]
        self.touched.add(slot)
        self.plan.costs.count(updates=1)
        for number in self._following:
            component = self.plan.components[number]
            came = take_parts(pick_parts(piece.parts[component.kept], component.places), taken)
            self._change(number, slot, slot + 1, self._region(key), came)

    def _add(self, key: int, first: int, last: int, piece: Slices, i: int) -> None:
        """A slice of its own, behind the others of its key or among them."""
        if key >= len(self._base) or self._end.item(key) == self._base.item(key) + self._length.item(key):
            self._make_room(key)
        front, end = self._front.item(key), self._end.item(key)
        slot = end
        if end > front and first < self.first.item(end - 1):
            slot = front + int(self.first[front:end].searchsorted(first, "right"))
            self._shift(slot, end)
        self.key[slot], self.first[slot], self.last[slot], self._until[slot] = key, first, last, UNKNOWN
        self.rows[slot], self.unreported[slot] = piece.rows.item(i), piece.unreported.item(i)
        for number, parts in enumerate(piece.parts):
            self._put(number, slice(slot, slot + 1), take_parts(parts, slice(i, i + 1)))
        self._end[key] = end + 1
        self.count += 1
        self.touched.add(slot)
        for number in self._following:
            self._change(number, slot, end + 1, self._region(key), None)

    def _change(self, number: int, low: int, high: int, region: Region, came: Parts | None) -> None:
        if not self.stores[number].changed(low, high, region, came):
            self.stores[number] = self._store(number, "eager")

    def _put(self, number: int, at: slice, values: Parts) -> None:
        """Put partials into slots; where arrays had to become others, tell the stores."""
        before = self.parts[number]
        self.parts[number] = after = assign(before, at, values)
        if after is not before:
            self._tell_leaves()

    def _tell_leaves(self) -> None:
        for component, store in zip(self.plan.components, self.stores, strict=True):
            store.leaves = pick_parts(self.parts[component.kept], component.places)

    # Slots

    def _region(self, key: int) -> Region:
        return Region(self._base.item(key), self._length.item(key), self._front.item(key), self._end.item(key))

    def _make_room(self, key: int) -> None:
        """Make a free slot behind the last slice of a key."""
        if key >= len(self._base):
            added = max(key + 1, 2 * len(self._base)) - len(self._base)
            for name in ("_base", "_length", "_front", "_end"):
                setattr(self, name, np.concatenate([getattr(self, name), np.zeros(added, np.int64)]))
        base, length, front, end = self._region(key)
        half = length // 2
        if length > 1 and front - base >= half:
            self._move(base + half, base, half)
            self._front[key], self._end[key] = front - half, end - half
            return
        target, longer = base, max(2 * length, 2)
        if base + length != self._top or base % longer:
            target = -(-self._top // longer) * longer
        self._top = target + longer
        if self._top > self.size:
            self._resize(1 << (self._top - 1).bit_length())
        if target != base and length:
            self._move(base, target, length)
        self._base[key], self._length[key] = target, longer
        self._front[key], self._end[key] = front - base + target, end - base + target

    def _move(self, source: int, target: int, length: int) -> None:
        """Move whole aligned stretches of slots."""
        for array in (*self._columns(), *(p for parts in self.parts for p in parts)):
            array[target : target + length] = array[source : source + length].copy()
        for store in self.stores:
            store.moved(source, target, length)
        self._follow(source, source + length, target - source)

    def _shift(self, low: int, high: int) -> None:
        """Move slots one further; the stores hear of it by what is put there."""
        for array in (*self._columns(), *(p for parts in self.parts for p in parts)):
            array[low + 1 : high + 1] = array[low:high].copy()
        self._follow(low, high, 1)

    def _follow(self, low: int, high: int, by: int) -> None:
        self.touched = {slot + by if low <= slot < high else slot for slot in self.touched}

    def _resize(self, size: int) -> None:
        for name in ("key", "first", "last", "rows", "unreported", "_until"):
            array = getattr(self, name)
            setattr(self, name, np.concatenate([array, np.zeros(size - self.size, np.int64)]))
        for number, monoid in enumerate(self.plan.monoids):
            free = monoid.identities(size - self.size)
            self.parts[number] = tuple(np.concatenate(both) for both in zip(self.parts[number], free, strict=True))
        self.size = size
        self._tell_leaves()
        for store in self.stores:
            store.resized(size)

    def _columns(self) -> tuple[np.ndarray, ...]:
        return self.key, self.first, self.last, self.rows, self.unreported, self._until

    # Windows

    def locate(self, key: np.ndarray, time: np.ndarray) -> np.ndarray:
        """The slot of the first slice of each key at or after the time."""
        if len(self._base) == 1:
            front, end = self._front.item(0), self._end.item(0)
            slots: np.ndarray = self.first[front:end].searchsorted(time) + front
            return slots
        if len(key) <= FEW_LOOKUPS:
            places = []
            for k, t in zip(key.tolist(), time.tolist(), strict=True):
                front, end = int(self._front[k]), int(self._end[k])
                places.append(front + int(self.first[front:end].searchsorted(t)))
            return np.array(places, np.int64)
        low: np.ndarray = self._front[key]
        high: np.ndarray = self._end[key]
        while (low < high).any():
            middle = (low + high) >> 1
            earlier = (low < high) & (self.first[np.minimum(middle, self.size - 1)] < time)
            low, high = np.where(earlier, middle + 1, low), np.where(earlier | (low >= high), high, middle)
        return low

    def holds_reported(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Whether ranges of slots hold rows that were reported before."""
        at = low.copy()
        while True:
            stuck = at < high
            stuck[stuck] = self.rows[at[stuck]] == self.unreported[at[stuck]]
            if not stuck.any():
                held: np.ndarray = at < high
                return held
            at[stuck] += 1

    def query(self, component: int, low: np.ndarray, high: np.ndarray) -> Parts:
        """The partials of one of the plan's components over ranges of slots."""
        return self.stores[component].query(low, high)

    def times(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The event times of the first and the last row of ranges."""
        return self.first[low], self.last[high - 1]

    # After a step

    def settle(self) -> None:
        """Everything is reported."""
        for slot in self.touched:
            self.unreported[slot] = 0
            self._active.add(self.key.item(slot))
        self.touched = set()

    def leave(self, oldest: int) -> int | None:
        """Slices before the oldest time that any window needs leave, of keys that had rows since they last did.

        Returns the latest event time of a row that left.
        """
        keys, self._active = self._active, set()
        gone = [last for key in keys if (last := self._leave(key, oldest)) is not None]
        return max(gone, default=None)

    def _leave(self, key: int, oldest: int) -> int | None:
        front, end = int(self._front[key]), int(self._end[key])
        if front == end or self.first[front] >= oldest:
            return None
        left = front + int(self.first[front:end].searchsorted(oldest))
        for number in self._of_objects:
            nothing = self.plan.monoids[number].identities(left - front)
            self.parts[number] = assign(self.parts[number], slice(front, left), nothing)
        self._front[key] = left
        self.count -= left - front
        return int(self.last[front:left].max())

    def _check(self) -> None:
        """The invariants, for tests."""
        keys = self.keys()
        base, length, front, end = (a[keys] for a in (self._base, self._length, self._front, self._end))
        assert ((base <= front) & (end <= base + length)).all()
        assert (base % length == 0).all()
        assert ((length & (length - 1)) == 0).all()
        order = np.argsort(base)
        assert ((base + length)[order][:-1] <= base[order][1:]).all()
        assert int((end - front).sum()) == self.count
        for store in self.stores:
            assert all(a is b for a, b in zip(store.leaves, self._leaves_of(store), strict=True))
        slots, _ = expand_ranges(front, end)
        assert set(slots[self.unreported[slots] > 0].tolist()) == self.touched

    def _leaves_of(self, store: StandingStore) -> Parts:
        component = self.plan.components[self.stores.index(store)]
        return pick_parts(self.parts[component.kept], component.places)


def _spread(column: np.ndarray, slots: np.ndarray, size: int) -> np.ndarray:
    out = np.zeros(size, np.int64)
    out[slots] = column
    return out
