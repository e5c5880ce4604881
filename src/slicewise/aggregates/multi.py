"""Multi: several aggregates as one, so that one window of :mod:`slicewise.swag` computes them all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate
from slicewise.amounts import Amount
from slicewise.errors import AggregateError, QueryError

__all__ = ["Multi", "check_watched", "multi"]


class Multi(Aggregate):
    """Several aggregates side by side: a partial is a tuple of theirs, the result a dict by their names.

    Each takes its own columns; those without columns take the whole value. It is commutative if all are, and invertible
    if all are.

    Parameters
    ----------
    **aggregates : Aggregate
        The aggregates by the names of their results, at least one.

    Notes
    -----
    Runtime complexity: a combine is one combine of each of them.

    Examples
    --------
    >>> from slicewise.aggregates import count, max, sum
    >>> both = multi(total=sum(), top=max())
    >>> both.lower(both.combine(both.lift(3), both.lift(8)))
    {'total': 11, 'top': 8}
    >>> both.commutative, both.invertible
    (True, False)
    >>> ride = multi(km=sum("km"), late=max("delay"), n=count())
    >>> ride.columns, ride.lower(ride.lift(7.5, None))
    (('km', 'delay'), {'km': 7.5, 'late': None, 'n': 1})
    """

    name = "multi"
    skips_nulls = False  # each of them decides for itself

    def __init__(self, **aggregates: Aggregate) -> None:
        if not aggregates:
            raise AggregateError("`multi` needs at least one aggregate; got none: multi(total=sw.sum())")
        for name, aggregate in aggregates.items():
            if not isinstance(aggregate, Aggregate):
                raise AggregateError(f"`{name}` of `multi` must be an aggregate such as sw.sum(); got {aggregate!r}")
        super().__init__(*dict.fromkeys(c for a in aggregates.values() for c in a.columns))
        self.aggregates = aggregates
        self.identity = tuple(a.identity for a in aggregates.values())
        self.commutative = all(a.commutative for a in aggregates.values())
        self.invertible = all(a.invertible for a in aggregates.values())
        self.kind = "holistic" if any(a.kind == "holistic" for a in aggregates.values()) else "algebraic"
        self._members = tuple(aggregates.values())
        self._combines = tuple(a.combine for a in self._members)
        self._places = tuple(tuple(map(self.columns.index, a.columns)) for a in self._members)

    def lift(self, *values: Any) -> tuple[Any, ...]:
        partials = []
        for aggregate, places in zip(self._members, self._places, strict=True):
            arguments = tuple(values[i] for i in places) if places else values
            skipped = aggregate.skips_nulls and None in arguments
            partials.append(aggregate.identity if skipped else aggregate.lift(*arguments))
        return tuple(partials)

    def combine(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([combine(x, y) for combine, x, y in zip(self._combines, a, b, strict=True)])

    def invert(self, a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([m.invert(x, y) for m, x, y in zip(self._members, a, b, strict=True)])

    def lower(self, partial: tuple[Any, ...]) -> dict[str, Any]:
        return {name: a.lower(p) for (name, a), p in zip(self.aggregates.items(), partial, strict=True)}

    @property
    def lengths(self) -> Mapping[str, Amount]:
        return {name: length for a in self._members for name, length in a.lengths.items()}

    def in_unit(self, unit: str | None) -> Multi:
        converted = {name: a.in_unit(unit) for name, a in self.aggregates.items()}
        return self if all(a is self.aggregates[name] for name, a in converted.items()) else Multi(**converted)

    def parameters(self) -> tuple[Any, ...]:
        return tuple(self.aggregates.items())

    def __repr__(self) -> str:
        return f"multi({', '.join(f'{name}={a!r}' for name, a in self.aggregates.items())})"


multi = Multi


def check_watched(watch: Any) -> tuple[tuple[str, Aggregate], ...]:
    """What the policy of a window watches, as pairs: aggregates of columns by their names."""
    if not isinstance(watch, Mapping):
        raise QueryError(f"`watch` must map names to aggregates; got {watch!r}", parameter="watch")
    for name, aggregate in watch.items():
        if not isinstance(name, str):
            raise QueryError(
                f"`watch` must map names to aggregates; got {name!r}, which is not a string", parameter="watch"
            )
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"`watch` must map names to aggregates; got {aggregate!r} for {name!r}", parameter="watch")
        if not aggregate.columns and not isinstance(aggregate, Count):
            raise QueryError(
                f"`watch`: {aggregate!r} for {name!r} needs a column, as in {aggregate.name}('v')", parameter="watch"
            )
    return tuple(watch.items())
