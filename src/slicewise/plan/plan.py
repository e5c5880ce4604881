"""The plan: a workload on columns of known types, with everything decided. Made by ``plan_for``, run by the engine."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid
from slicewise.aggregates.guarded import guarded
from slicewise.aggregates.moments import Product
from slicewise.aggregates.sharing import largest, shared_monoids
from slicewise.amounts import UNITS, format_instant
from slicewise.columns import holds_dates, physical_dtype, type_name
from slicewise.errors import AggregateError, DataError, FailedWindowsError, QueryError
from slicewise.plan.characteristics import AggregateTraits, Characteristics, characteristics_of
from slicewise.plan.costs import Costs
from slicewise.plan.decisions import Decision, choose_row_store, choose_store, needs_tuples
from slicewise.plan.panels import Form, Panel, panels_of, wide_columns
from slicewise.results import ResultSchema
from slicewise.times import LARGEST_TIME, largest_time
from slicewise.windows import Window
from slicewise.workload import Query, Workload

__all__ = [
    "ARRIVAL",
    "SORTED",
    "VALUES",
    "Answer",
    "Component",
    "Group",
    "Plan",
    "check_runnable",
    "plan_for",
    "tie_columns",
]

#: What decides between rows of equal event time: their arrival, their values, or their arrival in order of values.
ARRIVAL, VALUES, SORTED = "arrival", "values", "sorted"
STORE_NAMES = ("lazy", "eager", "prefix")
AUTO = "auto"
#: Between these numbers of rows ``max_slice="auto"`` chooses.
SMALLEST_SLICE, LARGEST_SLICE = 16, 1024
#: How many rows a slice may hold whose rows may still shift: a number, None for any, or :data:`AUTO`.
MaxSlice = int | str | None


@dataclass(frozen=True, eq=False)
class Group:
    """Queries that compute the same aggregates, and so share every answer over the same window.

    Attributes
    ----------
    aggregates
        Positions of the aggregates among the plan's, in result order.
    families, family_queries
        The context-free families that the group's queries use, and for each of them the queries, as positions in the
        workload.
    sessions
        For each session gap (as position among the plan's gaps) the queries over it.
    context
        For each context-aware window (as position among the plan's) the queries over it.
    """

    aggregates: tuple[int, ...]
    families: np.ndarray
    family_queries: tuple[np.ndarray, ...]
    sessions: Mapping[int, np.ndarray]
    context: Mapping[int, np.ndarray]


@dataclass(frozen=True, eq=False)
class Component:
    """What windows are answered from: some parts of a kept partial, and the store that answers their ranges.

    Attributes
    ----------
    kept
        The position of the partial among the plan's monoids.
    places
        Where the parts of ``monoid`` stand in it.
    """

    monoid: Monoid
    kept: int
    places: tuple[int, ...]
    store: Decision


@dataclass(frozen=True, eq=False)
class Answer:
    """How an aggregate is answered: ``monoid`` lowers the parts of a component that stand at ``places``."""

    monoid: Monoid
    component: int
    places: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything the engine needs to know.

    Attributes
    ----------
    aggregates, answers
        The different aggregates of all queries, and how each is answered.
    monoids
        What is kept per slice: aggregates that share parts are one monoid.
    components
        What windows are answered from. Each has a store of its own, so that an aggregate whose inverse would lose
        digits does not cost another that is kept with it the running values.
    windows
        The different context-free windows of all queries; a query that reports empty windows has its own.
    filled
        The places of these windows of its own, with the position of the query in the workload.
    gaps
        The different session gaps, ascending.
    context
        The different windows that are found among rows in order: counts, other measures, punctuations, user code.
    recomputed
        Positions of the monoids that are computed again from stored tuples when rows come out of order.
    column_types
        The columns that the workload reads besides time and keys.
    tuple_types
        The columns of stored tuples: all that any aggregate reads, so that slices can be cut anew from them.
    max_slice
        How many rows a slice may hold whose rows may still shift; None for any number, ``"auto"`` to follow what
        splits have cost.
    order
        The columns that put rows of equal event time in order; rows that are equal in these too stay in the order in
        which they came.
    failures
        The windows that have no value and nobody has been told of yet.
    costs
        What running it has cost so far. These two are all about a plan that changes.
    form, panels
        How results are shown, and which queries share a row where that is not one for each query and window.
    """

    workload: Workload
    ordered: bool
    characteristics: Characteristics
    aggregates: tuple[Aggregate, ...]
    answers: tuple[Answer, ...]
    monoids: tuple[Monoid, ...]
    components: tuple[Component, ...]
    windows: tuple[Window, ...]
    gaps: tuple[int, ...]
    context: tuple[Window, ...]
    groups: tuple[Group, ...]
    recomputed: tuple[int, ...]
    tuple_types: Mapping[str, pa.DataType]
    column_types: Mapping[str, pa.DataType]
    schema: ResultSchema
    max_slice: MaxSlice = None
    order: tuple[str, ...] = ()
    failures: list[FailedWindowsError] = field(default_factory=list)
    costs: Costs = field(default_factory=Costs)
    form: Form = field(default_factory=Form)
    panels: tuple[Panel, ...] = ()
    filled: Mapping[int, int] = field(default_factory=dict)

    def rows_per_slice(self, rows: int) -> int | None:
        """How many rows a slice may hold whose rows may still shift, after so many rows have come; None for any number.

        ``"auto"`` begins with large slices, and halves them each time that as many rows again were computed anew for
        each row that came: what must be recomputed when a slice is split is bounded by its size.
        """
        if self.max_slice != AUTO:
            assert not isinstance(self.max_slice, str)
            return self.max_slice
        again = self.costs.rows_again // max(rows, 1)
        return max(SMALLEST_SLICE, LARGEST_SLICE >> again.bit_length())

    @functools.cached_property
    def nested_dates(self) -> tuple[tuple[int, str], ...]:
        """The results that hold dates in lists or structs: the position of the query, and the name of the result."""
        results = {a: answer.monoid.result for a, answer in zip(self.aggregates, self.answers, strict=True)}
        return tuple(
            (place, name)
            for place, query in enumerate(self.workload.queries)
            for name, aggregate in query.aggregates.items()
            if pa.types.is_nested(results[aggregate]) and holds_dates(results[aggregate])
        )

    def group_of(self, query: int) -> Group:
        """The group of the query at a position in the workload."""
        place = {aggregate: number for number, aggregate in enumerate(self.aggregates)}
        asked = tuple(place[aggregate] for aggregate in self.workload.queries[query].aggregates.values())
        return next(group for group in self.groups if group.aggregates == asked)

    def time_queries(self, group: Group) -> list[np.ndarray]:
        """For each context-free window, then for each session gap, the queries of a group, as positions in the
        workload."""
        nothing = np.empty(0, np.int64)
        of_family = dict(zip(group.families.tolist(), group.family_queries, strict=True))
        periodic = [of_family.get(family, nothing) for family in range(len(self.windows))]
        return periodic + [group.sessions.get(gap, nothing) for gap in range(len(self.gaps))]

    def context_queries(
        self, group: Group, windows: Sequence[Window], numbers: Collection[int] | None = None
    ) -> list[np.ndarray]:
        """For each of some context-aware windows, those of a group's queries that are among ``numbers``."""
        place = {window: i for i, window in enumerate(self.context)}
        served = None if numbers is None else set(numbers)
        asked = [group.context.get(place[window], ()) for window in windows]
        return [np.array([q for q in queries if served is None or q in served], np.int64) for queries in asked]


def check_runnable(workload: Workload) -> None:
    """Refuse windows that the engine cannot run."""
    latest = largest_time(workload.unit)
    longest = min(latest, LARGEST_TIME)
    for query in workload.queries:
        durations = [int(duration.size) for duration in query.window.durations.values()]
        on_time = query.window.measure.is_event_time
        instants = [abs(instant) for instant in query.window.instants.values()] if on_time else []
        if max(durations, default=0) > longest or max(instants, default=0) > latest:
            end = "2**60"
            if workload.unit is not None:
                day, days = format_instant(latest, workload.unit).split()[0], longest // (86_400 * UNITS[workload.unit])
                end = f"{day}, with lengths of at most {days} days"
            raise QueryError(
                f"query {query.name!r}: {query.window!r} reaches further than event times do, which end at {end}; make "
                "it shorter",
                parameter="window",
                query=query.name,
            )


def plan_for(
    workload: Workload,
    types: Mapping[str, pa.DataType],
    *,
    time_type: pa.DataType,
    ordered: bool = False,
    store: str | None = None,
    max_slice: MaxSlice = None,
    ties: str = ARRIVAL,
    costs: Costs | None = None,
    over_rows: bool = False,
    form: Form | None = None,
) -> Plan:
    """Decide everything about a workload whose columns have these types.

    Parameters
    ----------
    types
        The Arrow type of every column that the workload reads, keys included.
    time_type
        The Arrow type of the time column, for the bounds of windows in results.
    store
        Use this store for every aggregate instead of the one that fits it best.
    max_slice
        Divide slices whose rows may still shift, so that none holds more rows: what must be computed again when one is
        split, or when rows leave it, is bounded by that.
    ties
        What decides between rows of equal event time and equal ``order`` columns: their ``"arrival"``; their
        ``"values"``, where nobody knows how they arrived; ``"sorted"`` if they arrive in the order of values.
    costs
        Where to count what running it costs, if that was counted before.
    over_rows
        Ranges are of single rows, as many as there are rows, and not of slices.
    form
        How results are shown, if not as one for each query and window.
    """
    check_max_slice(max_slice)
    form = Form() if form is None else form
    form.check(workload)
    c = characteristics_of(workload, ordered=ordered)
    aggregates = tuple(dict.fromkeys(a for q in workload.queries for a in q.aggregates.values()))
    bound = (a.bind(*(types[column] for column in a.columns)) for a in aggregates)
    lowering = tuple(guarded(monoid, number) for number, monoid in enumerate(bound))
    for monoid in lowering:
        monoid.set_time_type(time_type, workload.time_measure.unit)
        if ties != ARRIVAL and not workload.order:
            monoid.break_ties_by_value()
    monoids, place = shared_monoids(lowering)
    costs = Costs() if costs is None else costs
    costs.watch([*lowering, *monoids])
    components, answers = _components(lowering, place, monoids, [_store(m, c, store, over_rows) for m in lowering])
    families = list(dict.fromkeys(_family_key(q) for q in workload.queries if q.window.is_periodic))
    windows = tuple(window for window, _ in families)
    context = tuple(dict.fromkeys(q.window for q in workload.queries if q.window.needs_rows))
    _check_windows(workload, types, time_type)
    gaps = tuple(sorted({q.window.session_gap for q in workload.queries if q.window.session_gap is not None}))
    recomputed = tuple(i for i, m in enumerate(monoids) if needs_tuples(AggregateTraits.of(m.aggregate), c))
    return Plan(
        workload=workload,
        ordered=ordered,
        characteristics=c,
        aggregates=aggregates,
        answers=answers,
        monoids=tuple(monoids),
        components=components,
        windows=windows,
        gaps=gaps,
        context=context,
        groups=_groups(workload, aggregates, families, gaps, context),
        recomputed=recomputed,
        tuple_types={name: types[name] for name in workload.columns} if recomputed else {},
        column_types={name: types[name] for name in workload.columns},
        schema=_schema(workload, types, time_type, dict(zip(aggregates, lowering, strict=True)), form),
        max_slice=max_slice,
        costs=costs,
        order={ARRIVAL: tuple(workload.order), VALUES: tie_columns(workload), SORTED: ()}[ties],
        form=form,
        panels=panels_of(workload, form),
        filled={families.index(_family_key(q)): number for number, q in enumerate(workload.queries) if q.empty},
    )


def _family_key(query: Query) -> tuple[Window, str | None]:
    """Queries of the same windows share them; which of them were empty is known of one query alone."""
    return query.window, query.name if query.empty else None


def _check_windows(workload: Workload, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
    """Refuse windows that do not go with the types of columns."""
    for query in workload.queries:
        query.window.check_types(types, time_type)
        for column in (measure.column for measure in query.window.measures if measure.column is not None):
            type_ = types[column]
            if pa.types.is_boolean(type_) or (physical_dtype(type_).hasobject and not pa.types.is_decimal(type_)):
                raise DataError(f"{column!r} measures {query.window!r} and is {type_name(type_)}; it must hold numbers")
        if workload.unit is None:
            query.check_time(time_type)


def tie_columns(workload: Workload) -> tuple[str, ...]:
    """The columns that put rows of equal event time in order where their arrival is not known.

    The ``order`` columns; then measures, which must not go back; then whether it is punctuation; then the columns of
    the queries whose answers depend on the order of rows, as these name them. Rows that are equal in all of them are
    alike to every such query. A query that is added behind the others adds its columns behind theirs, so that it does
    not change their answers.

    >>> import slicewise as sw
    >>> w = sw.Workload(time="ts").query("sums", sw.tumbling("1 minute"), s=sw.sum("a"), first=sw.first("b"))
    >>> w = w.query("texts", sw.tumbling("1 minute"), t=sw.collect_list("c"), n=sw.sum("d"))
    >>> tie_columns(w.query("counts", sw.tumbling(sw.rows(10)), s=sw.sum("e")))
    ('c', 'e')
    """
    columns = list(workload.order)
    columns += [m.column for q in workload.queries for m in q.window.measures if m.column is not None]
    columns += workload.shown_punctuation
    for query in workload.queries:
        every = query.window.needs_rows
        columns += query.window.reads if every else ()
        columns += [
            column
            for a in query.aggregates.values()
            # Partials that carry their event time pick among rows of equal time by their own value.
            if every or not (a.commutative or (a.timed and not workload.order))
            for column in a.columns
        ]
    return tuple(dict.fromkeys(columns))


def check_store(store: str | None, workload: Workload) -> None:
    """Refuse an unknown store, and one that an aggregate cannot take."""
    if store is None:
        return
    if store not in STORE_NAMES:
        raise QueryError(
            f"`store` must be one of {', '.join(map(repr, STORE_NAMES))}; got {store!r}", parameter="store"
        )
    for query in workload.queries if store == "prefix" else ():
        for aggregate in query.aggregates.values():
            if not _has_running_values(aggregate):
                raise QueryError(
                    f"query {query.name!r}: `store` cannot be 'prefix' for {aggregate!r}, which has no inverse that is "
                    "exact and takes rows in any order; leave it out, and each aggregate gets the store that fits it",
                    parameter="store",
                    query=query.name,
                )


def _has_running_values(aggregate: Aggregate) -> bool:
    """Whether a window may be one running value less another. A product is one of doubles, whatever the column."""
    return aggregate.commutative and aggregate.invertible and not isinstance(aggregate, Product)


def check_max_slice(max_slice: MaxSlice) -> None:
    """Refuse a size that no slice can have."""
    if max_slice is None or max_slice == AUTO:
        return
    if isinstance(max_slice, bool) or not isinstance(max_slice, int) or max_slice < 1:
        raise QueryError(
            f"`max_slice` must be a number of rows, 1 or more; got {max_slice!r}; leave it out for slices of any size",
            parameter="max_slice",
        )


def _store(monoid: Monoid, c: Characteristics, wanted: str | None, over_rows: bool) -> Decision:
    traits = AggregateTraits.of(monoid.aggregate)
    if over_rows:
        return choose_row_store(traits, exact=monoid.exact)
    return choose_store(traits, c, exact=monoid.exact) if wanted is None else Decision(wanted, "asked for")


def _components(
    lowering: Sequence[Monoid], place: Sequence[int], kept: Sequence[Monoid], stores: Sequence[Decision]
) -> tuple[tuple[Component, ...], tuple[Answer, ...]]:
    """From which parts of what is kept each aggregate is answered, and by which store.

    Aggregates that are kept together and take the same kind of store are answered from the same ranges, where the parts
    of one hold those of the other.
    """
    components: list[Component] = []
    together: dict[tuple[int, str], list[int]] = {}
    for number, store in enumerate(stores):
        together.setdefault((place[number], store.choice), []).append(number)
    for (at, _), numbers in together.items():
        for monoid in largest([lowering[number] for number in numbers]):
            where = tuple(kept[at].labels.index(label) for label in monoid.labels)
            components.append(Component(monoid, at, where, stores[lowering.index(monoid)]))
    answers = []
    for monoid, at, store in zip(lowering, place, stores, strict=True):
        component = next(
            i
            for i, c in enumerate(components)
            if c.kept == at and c.store.choice == store.choice and set(monoid.labels) <= set(c.monoid.labels)
        )
        where = tuple(components[component].monoid.labels.index(label) for label in monoid.labels)
        answers.append(Answer(monoid, component, where))
    return tuple(components), tuple(answers)


def _groups(
    workload: Workload,
    aggregates: Sequence[Aggregate],
    windows: Sequence[tuple[Window, str | None]],
    gaps: Sequence[int],
    context: Sequence[Window],
) -> tuple[Group, ...]:
    place = {a: i for i, a in enumerate(aggregates)}
    together: dict[tuple[int, ...], list[int]] = {}
    for number, query in enumerate(workload.queries):
        together.setdefault(tuple(place[a] for a in query.aggregates.values()), []).append(number)
    family_of = {key: i for i, key in enumerate((*windows, *((window, None) for window in context)))}
    groups = []
    for numbers_of_aggregates, queries in together.items():
        families: dict[int, list[int]] = {}
        sessions: dict[int, list[int]] = {}
        for number in queries:
            query = workload.queries[number]
            if query.window.session_gap is not None:
                sessions.setdefault(gaps.index(query.window.session_gap), []).append(number)
            else:
                families.setdefault(family_of[_family_key(query)], []).append(number)
        groups.append(
            Group(
                numbers_of_aggregates,
                np.array([f for f in sorted(families) if f < len(windows)], np.int64),
                tuple(np.array(families[f]) for f in sorted(families) if f < len(windows)),
                {gap: np.array(numbers) for gap, numbers in sessions.items()},
                {f - len(windows): np.array(families[f]) for f in sorted(families) if f >= len(windows)},
            )
        )
    return tuple(groups)


def _schema(
    workload: Workload,
    types: Mapping[str, pa.DataType],
    time_type: pa.DataType,
    bound: Mapping[Aggregate, Monoid],
    form: Form,
) -> ResultSchema:
    columns: dict[str, pa.DataType] = {}
    owner: dict[str, str] = {}
    queries = tuple((q.name, tuple(q.aggregates)) for q in workload.queries)
    if form.wide:
        wide = wide_columns(workload)
        columns = {n: bound[workload.queries[number].aggregates[its]].result for n, (number, its) in wide.items()}
        queries = (("", tuple(columns)),)
    for query in workload.queries if not form.wide else ():
        for name, aggregate in query.aggregates.items():
            type_ = bound[aggregate].result
            if columns.setdefault(name, type_) != type_:
                raise AggregateError(
                    f"queries {owner[name]!r} and {query.name!r} both have a column {name!r}, of types {columns[name]} "
                    f"and {type_}; give one of them another name"
                )
            owner.setdefault(name, query.name)
    return ResultSchema(
        key_names=tuple(workload.keys),
        key_types=tuple(types[k] for k in workload.keys),
        time_type=time_type,
        queries=queries,
        column_types=columns,
        unit=workload.time_measure.unit,
        wide=form.wide,
    )
