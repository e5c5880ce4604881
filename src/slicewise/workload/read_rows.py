"""Read rows: what a workload reads of rows, and what it tells them apart by. The half of it that readers know."""

from __future__ import annotations

import functools

from slicewise.aggregates.guarded import Failure
from slicewise.conditions.expression import Expression, inputs_of
from slicewise.plain import classes_in
from slicewise.workload.query import Query

__all__ = ["ReadRows"]


class ReadRows:
    """What follows for rows from the queries and filters of a workload."""

    queries: tuple[Query, ...]
    order: tuple[str, ...]
    trust: tuple[type, ...]
    where: Expression | None
    punctuation: Expression | None

    @functools.cached_property
    def columns(self) -> tuple[str, ...]:
        """The columns that queries are about, besides time and keys: of the rows, and computed from them."""
        columns = [c for q in self.queries for a in q.aggregates.values() for c in a.columns]
        columns += [c for q in self.queries for c in q.window.reads]
        return tuple(dict.fromkeys([*columns, *self.order, *self.shown_punctuation]))

    @functools.cached_property
    def shown_punctuation(self) -> tuple[Expression, ...]:
        """What tells punctuation from data, where some window sees both; where none does, punctuation is left out."""
        shown = any(q.window.sees_punctuation for q in self.queries)
        return (self.punctuation,) if self.punctuation is not None and shown else ()

    @property
    def unseen_punctuation(self) -> Expression | None:
        """What tells which rows are punctuation that no window sees."""
        return None if self.shown_punctuation else self.punctuation

    @functools.cached_property
    def filters(self) -> tuple[Expression, ...]:
        """What is asked of every row before anything else: whether it is meant, and whether it is data."""
        return tuple(f for f in (self.where, self.punctuation) if f is not None)

    @functools.cached_property
    def inputs(self) -> tuple[str, ...]:
        """The columns that rows must have, besides time and keys."""
        return inputs_of([*self.columns, *self.filters])

    @functools.cached_property
    def trusted(self) -> frozenset[type]:
        """The classes of which objects in state may be made anew."""
        classes = {*self.trust, Failure}
        for query in self.queries:
            for aggregate in query.aggregates.values():
                classes |= classes_in(aggregate.base.identity)
            classes |= query.window.state_classes
        return frozenset(classes)
