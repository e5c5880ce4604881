"""Sharing: what several aggregates keep of the same columns is one partial, each different part of it kept once.

A monoid says with ``kept_as`` what each of its parts holds. Parts of equal labels are the same numbers, whoever
computes them: the partial of a sum is the *total* of a column and the number of its *values*, that of a mean as well,
and that of a standard deviation has the number of *values* again::

    sum('v')      total  values
    avg('v')      total  values
    stddev('v')          values  mean  squares
    kept          total  values  mean  squares

Found among the aggregates of a plan by :func:`shared_monoids`; the engine folds and keeps the result like any monoid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, pick_parts
from slicewise.columns import Column
from slicewise.errors import AggregateError

__all__ = ["SharedMonoid", "covering", "largest", "shared_monoids", "shared_parts"]


class _Shared(Aggregate):
    """Stands for the aggregates behind a shared partial."""

    name = "shared"
    commutative = True

    def __init__(self, aggregates: Sequence[Aggregate]) -> None:
        super().__init__(*dict.fromkeys(column for a in aggregates for column in a.columns))
        self.invertible = all(a.invertible for a in aggregates)
        self.kind = max((a.kind for a in aggregates), key=("distributive", "algebraic", "holistic").index)
        self._aggregates = tuple(aggregates)

    def parameters(self) -> tuple[Any, ...]:
        return self._aggregates


class SharedMonoid(Monoid):
    """Several monoids as one, whose parts are the different parts of all of them.

    Parameters
    ----------
    members
        Monoids that take partials in any order; together they compute every part.

    Attributes
    ----------
    places
        For each member, where its parts stand among the shared ones.
    """

    def __init__(self, members: Sequence[Monoid]) -> None:
        super().__init__(_Shared([m.aggregate for m in members]), ())
        self.members = tuple(members)
        of_label = {label: (m, i) for m in reversed(members) for i, label in reversed(list(enumerate(m.labels)))}
        self._labels = tuple(dict.fromkeys(label for m in members for label in m.labels))
        place = {label: i for i, label in enumerate(self._labels)}
        self.places = tuple(tuple(place[label] for label in m.labels) for m in members)
        self.identity = tuple(m.identity[i] for m, i in map(of_label.__getitem__, self._labels))
        self.dtypes = tuple(m.dtypes[i] for m, i in map(of_label.__getitem__, self._labels))
        self.exact = all(m.exact for m in members)
        self.reads = tuple(dict.fromkeys(name for m in members for name in m.reads))
        self.result = pa.null()

    def __repr__(self) -> str:
        return repr(self.aggregate)

    @property
    def labels(self) -> tuple[str, ...]:
        return self._labels

    def of_members(self, *operands: Parts) -> list[tuple[Parts, ...]]:
        """For each member, its own parts of each operand."""
        return [tuple(pick_parts(parts, places) for parts in operands) for places in self.places]

    def together(self, parts: Sequence[Parts]) -> Parts:
        """The shared parts, from those that each member has computed."""
        return shared_parts(self.places, parts)

    def _each(self, function: Callable[..., Parts], *operands: Parts) -> Parts:
        both = zip(self.members, self.of_members(*operands), strict=True)
        return self.together([function(member, *parts) for member, parts in both])

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        named = dict(zip(self.aggregate.columns, columns, strict=True))
        return self.together([m.lift([named[c] for c in m.aggregate.columns], times) for m in self.members])

    def fold_rows(self, columns: Mapping[str, Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return self.together([m.fold_rows(columns, times, starts) for m in self.members])

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self._each(lambda member, x, y: member.combine(x, y), a, b)

    def invert(self, a: Parts, b: Parts) -> Parts:
        return self._each(lambda member, x, y: member.invert(x, y), a, b)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        return self._each(lambda member, some: member.fold(some, starts), parts)

    def scan(self, parts: Parts) -> Parts:
        return self._each(lambda member, some: member.scan(some), parts)

    def lower(self, parts: Parts) -> Column:
        raise AggregateError("a shared partial has no result; each aggregate lowers its parts of it")

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        return self._each(lambda member, some: member.widened(some, types), parts)


def shared_parts(places: Sequence[Sequence[int]], parts: Sequence[Parts]) -> Parts:
    """The different parts of several partials; ``places`` says of each where its parts stand among them."""
    out: dict[int, np.ndarray] = {}
    for where, partial in zip(places, parts, strict=True):
        for place, part in zip(where, partial, strict=True):
            out.setdefault(place, part)
    return tuple(out[place] for place in range(len(out)))


def covering(monoids: Sequence[Monoid]) -> list[Monoid]:
    """Those of some monoids that are enough to compute every part of all of them.

    >>> from slicewise.aggregates import avg, count, stddev, sum
    >>> covering([a("v").bind(pa.int64()) for a in (count, sum, avg, stddev)])
    [sum('v') on int64, stddev('v') on int64]
    """
    enough: list[Monoid] = []
    known: set[str] = set()
    for monoid in sorted(monoids, key=lambda m: -len(m.labels)):
        if not known.issuperset(monoid.labels):
            enough.append(monoid)
            known.update(monoid.labels)
    return sorted(enough, key=monoids.index)


def largest(monoids: Sequence[Monoid]) -> list[Monoid]:
    """Those of some monoids whose parts are not all parts of another one that stays.

    >>> from slicewise.aggregates import max, max_count, min
    >>> largest([a("v").bind(pa.int64()) for a in (min, max_count, max)])
    [min('v') on int64, max_count('v') on int64, max('v') on int64]
    """
    stay: list[Monoid] = []
    for monoid in sorted(monoids, key=lambda m: -len(m.labels)):
        if not any(set(monoid.labels) <= set(other.labels) for other in stay):
            stay.append(monoid)
    return sorted(stay, key=monoids.index)


def shared_monoids(monoids: Sequence[Monoid]) -> tuple[list[Monoid], list[int]]:
    """What is to be kept for some aggregates, and for each aggregate the place of the partial that it is part of.

    Only monoids that take partials in any order and say what their parts are share anything.

    >>> from slicewise.aggregates import first, sum, variance
    >>> bound = [a("v").bind(pa.int64()) for a in (sum, first, variance)]
    >>> kept, place = shared_monoids(bound)
    >>> kept
    [shared('v', sum('v'), variance('v')), first('v') on int64]
    >>> place
    [0, 1, 0]
    """
    groups: list[list[int]] = []
    owner: dict[str, list[int]] = {}
    for number, monoid in enumerate(monoids):
        group = [number]
        for label in monoid.labels if monoid.is_shared else ():
            other = owner.get(label)
            if other is not None and other is not group:
                groups.remove(other)
                group += other
                owner |= {key: group for key, held in owner.items() if held is other}
            owner[label] = group
        groups.append(sorted(group))
        owner |= {key: groups[-1] for key, held in owner.items() if held is group}
    groups.sort()
    place = {number: i for i, group in enumerate(groups) for number in group}
    kept = [_together([monoids[number] for number in group]) for group in groups]
    return kept, [place[number] for number in range(len(monoids))]


def _together(monoids: list[Monoid]) -> Monoid:
    enough = covering(monoids)
    return enough[0] if len(enough) == 1 else SharedMonoid(enough)
