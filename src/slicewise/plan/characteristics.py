"""Characteristics: the four things about a workload that decide how it is run (general stream slicing, section 4).

Stream order, aggregate functions, window measures and window types, gathered once into frozen data; the decisions read
nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.filtered import unfiltered
from slicewise.aggregates.histograms import OfHistogram
from slicewise.aggregates.moments import Product
from slicewise.aggregates.order import MaxCount, MinCount, Range
from slicewise.windows import Context
from slicewise.workload import Workload

__all__ = ["AggregateTraits", "Characteristics", "QueryTraits", "characteristics_of"]


@dataclass(frozen=True)
class AggregateTraits:
    """What the decisions need to know of an aggregate.

    ``extreme`` means that it is made of extremes and takes rows in any order: rows that do not hold the extreme may
    leave without a trace. ``ranked`` means that ranges of its partials are read off the ranks of values. ``divides``
    means that its inverse is a division, which loses no digits where a difference of floats would.
    """

    name: str
    commutative: bool = True
    invertible: bool = False
    timed: bool = False
    kind: str = "distributive"
    extreme: bool = False
    ranked: bool = False
    divides: bool = False

    @classmethod
    def of(cls, aggregate: Aggregate) -> AggregateTraits:
        """The traits of an aggregate, under the name that messages call it."""
        a = aggregate
        inner = unfiltered(a)
        # By the function and not by the class: a subclass may have replaced it.
        of_extremes = type(inner).combine in {cls.combine for cls in (Range, MaxCount, MinCount)}
        extreme = a.commutative and (a.selective or of_extremes)
        # A subclass with functions of its own has no histograms on arrays.
        ranked = isinstance(inner, OfHistogram) and inner.ranked and type(inner).bind is not Aggregate.bind
        divides = type(inner).invert is Product.invert
        return cls(repr(a), a.commutative, a.invertible, a.timed, a.kind, extreme, ranked, divides)


@dataclass(frozen=True)
class QueryTraits:
    """What the decisions need to know of a query.

    ``overlap`` is how many windows of the query hold a row at once: the length over the slide. ``needs_rows`` means
    that its windows are found among rows in order: they are on another measure than event time, or rows decide.
    """

    name: str
    context: Context = Context.FREE
    counts_rows: bool = False
    multi_measure: bool = False
    overlap: int = 1
    needs_rows: bool = False
    aggregates: tuple[AggregateTraits, ...] = ()


@dataclass(frozen=True)
class Characteristics:
    """A workload, as the decisions see it.

    ``breaks_ties`` means that rows of equal event time are put in order by further columns, so that a row may belong
    before one that has come already, even on an ordered stream.
    """

    ordered: bool
    queries: tuple[QueryTraits, ...]
    breaks_ties: bool = False
    lateness: int = 0

    @property
    def aggregates(self) -> tuple[AggregateTraits, ...]:
        """The different aggregates of all queries."""
        return tuple(dict.fromkeys(a for q in self.queries for a in q.aggregates))


def characteristics_of(workload: Workload, *, ordered: bool = False) -> Characteristics:
    """Gather the characteristics of a workload."""
    queries = tuple(
        QueryTraits(
            name=q.name,
            context=q.window.context,
            counts_rows=q.window.counts_rows,
            multi_measure=len(q.window.measures) > 1,
            overlap=q.window.overlap,
            needs_rows=q.window.needs_rows,
            aggregates=tuple(AggregateTraits.of(a) for a in q.aggregates.values()),
        )
        for q in workload.queries
    )
    return Characteristics(ordered, queries, bool(workload.order), workload.lateness)
