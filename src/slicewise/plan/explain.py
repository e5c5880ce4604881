"""Explain: the plan in words, for a terminal. Characteristics first, then each decision with its reason."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator

import pyarrow as pa

from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate, Monoid
from slicewise.aggregates.filtered import unfiltered
from slicewise.aggregates.histograms import OfHistogram
from slicewise.aggregates.sharing import shared_monoids
from slicewise.amounts import INTEGER, Amount
from slicewise.errors import SlicewiseError
from slicewise.plan.characteristics import AggregateTraits, Characteristics, characteristics_of
from slicewise.plan.decisions import (
    Decision,
    choose_row_store,
    choose_store,
    how_rows_leave,
    keep_tuples,
    shift_rows,
    slicing_technique,
    split_slices,
)
from slicewise.plan.expression_sql import in_the_jvm
from slicewise.plan.grids import points_of, progressions_of
from slicewise.plan.plan import AUTO, MaxSlice, check_max_slice
from slicewise.plan.routes import (
    ROWS,
    SLICES,
    choose_shuffle,
    is_left_to_spark,
    is_sliced_in_numpy,
    route_of,
    stream_route,
)
from slicewise.workload import Query, Workload

__all__ = ["explain", "explain_routes"]

WIDTH = 108
#: Aggregates whose inverse rounds nothing, whatever the type of their column.
EXACT = (Count, OfHistogram)
#: Reasons beside long names are wrapped at this width, whatever the terminal.
NARROWEST = 30
#: Aggregates with longer names push their line out of the columns.
LONGEST_LABEL = 40
#: Types that columns may have, of which every aggregate takes one.
LIKELY_TYPES = (pa.float64(), pa.int64(), pa.bool_(), pa.string())
#: How many queries are listed; of more, the rest is counted.
LISTED = 12


def explain(workload: Workload, *, ordered: bool = False, max_slice: MaxSlice = None) -> str:
    """What a workload is, what was decided about it and why; ``max_slice`` as for the operator.

    Examples
    --------
    >>> import slicewise as sw
    >>> w = sw.Workload(time="ts", watermark="2 seconds").query("trend", sw.tumbling("1 minute"), peak=sw.max("v"))
    >>> print(w.explain())
    workload  time ts, no keys, rows out of order by up to 2 seconds, corrected for 0 seconds
    <BLANKLINE>
    queries
      trend  tumbling('1 minute')
             peak = max('v')
             context free, on time
    <BLANKLINE>
    decisions
      store tuples?   no     context-free and session windows over aggregates that take rows in any order
      split slices?   no     context-free edges are known in advance, and sessions only ever merge
      remove tuples?  never  no query counts rows: a row stays in its slice
      where to cut?   panes  all edges of all windows lie on one grid; before the watermark only the begins of
                             open windows stay (Cutty)
      max('v')        lazy   folding 2 slices per window is as fast as any look-up
    <BLANKLINE>
    kept per slice
      first and last event time, rows
      max('v')        distributive, commutative
    <BLANKLINE>
    on Spark
      trend        slices  each window is one slice, which Spark's own aggregation computes
      as a batch   slices  by key and window, as Spark's own aggregation does
      as a stream  slices  sliced where they are read; shards get slices, not rows
    """
    check_max_slice(max_slice)
    ordered = ordered or workload.on_clock is not None
    c = characteristics_of(workload, ordered=ordered)
    aggregates = list(dict.fromkeys(a for q in workload.queries for a in q.aggregates.values()))
    label = max(len("remove tuples?"), *(min(len(repr(a)), LONGEST_LABEL) for a in aggregates))
    lines = [_opening(workload, ordered), "", "queries", *_queries(workload), "", "decisions"]
    decisions = list(_decisions(workload, c, aggregates, max_slice))
    choice = max(len(d.choice) for _, d in decisions)
    for question, decision in decisions:
        lines += _row(question, decision, label, choice)
    lines += ["", "kept per slice", "  first and last event time, rows"]
    for aggregate in aggregates:
        lines += _row(repr(aggregate), Decision(_traits(aggregate), ""), label, 0)
    for together in _sharing(aggregates):
        shared = ", ".join(map(repr, together))
        lines += textwrap.wrap(f"one partial for {shared}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    if keep_tuples(c):
        stored = ", ".join(map(str, dict.fromkeys([workload.time, *workload.columns])))
        lines += textwrap.wrap(f"and each row: {stored}", WIDTH, initial_indent="  ", subsequent_indent="    ")
    filled = [query.name for query in workload.queries if query.empty]
    if filled:
        marks = (
            f"and of each key the first and the last window with rows, all between being reported: {_listed(filled)}"
        )
        lines += textwrap.wrap(marks, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if not ordered or workload.on_clock is not None:
        lines += ["", "on Spark", *explain_routes(workload)]
    if _is_attached(workload):
        lines += ["", "as of points", *_explain_points(aggregates)]
    return "\n".join(lines)


def _is_attached(workload: Workload) -> bool:
    """Whether values as of points are what the workload is for: its windows look back, and not all end at ticks."""
    windows = [query.window for query in workload.queries]
    return all(window.looks_back for window in windows) and not all(window.is_periodic for window in windows)


def _explain_points(aggregates: list[Aggregate]) -> list[str]:
    """For each aggregate how `attach` answers it, as lines for a terminal."""
    rows = [(repr(aggregate), _row_store(aggregate)) for aggregate in aggregates]
    label, choice = min(max(len(name) for name, _ in rows), LONGEST_LABEL), max(len(d.choice) for _, d in rows)
    return [line for name, decision in rows for line in _row(name, decision, label, choice)]


def _opening(workload: Workload, ordered: bool) -> str:
    keys = f"keys {', '.join(workload.keys)}" if workload.keys else "no keys"
    parts = [f"time {workload.time}" + (f" in {workload.unit}" if workload.unit else ""), keys]
    if workload.where is not None:
        parts.append(f"rows where {workload.where.text}")
    if workload.punctuation is not None:
        parts.append(f"punctuation where {workload.punctuation.text}")
    if workload.order:
        parts.append(f"ties broken by {', '.join(workload.order)}")
    if ordered:
        parts.append("rows in order, each its own watermark")
    elif workload.watermark_from is not None:
        parts.append(f"watermarks from {workload.watermark_from}")
    else:
        parts.append(f"rows out of order by up to {_duration(workload, workload.watermark)}")
    parts.append(f"corrected for {_duration(workload, workload.lateness)}")
    return "\n".join(textwrap.wrap(f"workload  {', '.join(parts)}", WIDTH, subsequent_indent=" " * 10))


def _duration(workload: Workload, size: int) -> str:
    if not size:
        return "0" if workload.time_measure == INTEGER else "0 seconds"
    return str(Amount(size, workload.time_measure))


def _queries(workload: Workload) -> Iterator[str]:
    shown = workload.queries[:LISTED]
    width = max((len(q.name) for q in shown), default=0)
    for query in shown:
        measures = " and ".join(str(m) for m in query.window.measures)
        yield f"  {query.name:<{width}}  {query.described_window}"
        for name, aggregate in query.aggregates.items():
            indent = " " * (width + 4)
            lines = textwrap.wrap(f"{name} = {aggregate!r}", WIDTH - width - 4, subsequent_indent="    ")
            yield from (indent + line for line in lines)
        yield f"  {'':<{width}}  {query.window.context.value}, on {measures}"
    if len(workload.queries) > LISTED:
        yield f"  and {len(workload.queries) - LISTED} more"


def _decisions(
    workload: Workload, c: Characteristics, aggregates: list[Aggregate], max_slice: MaxSlice
) -> Iterator[tuple[str, Decision]]:
    yield "store tuples?", _yes_or_no(keep_tuples(c))
    yield "split slices?", _splits(c, max_slice)
    yield "remove tuples?", _removal(c, aggregates)
    yield "where to cut?", _technique(workload, c)
    for aggregate in aggregates:
        yield repr(aggregate), _store(aggregate, c)


#: How rows leave the partials of aggregates, where types are exact and where they are not.
REMOVALS = {
    ("invert", "invert"): "taken out of {} by inverse",
    ("invert", "recompute"): (
        "taken out of {} by inverse where the type is exact (integers, decimals), else computed again"
    ),
    ("spare", "spare"): "{} computed again only where the rows that leave hold its extreme",
    ("recompute", "recompute"): "{} computed again",
}


def _removal(c: Characteristics, aggregates: list[Aggregate]) -> Decision:
    """What is done where rows shift between slices, for all aggregates at once."""
    counted = {traits for q in c.queries if q.counts_rows for traits in q.aggregates}
    if not counted:
        return Decision("never", "no query counts rows: a row stays in its slice")
    shifts: dict[str, Decision] = {}
    ways: dict[tuple[str, ...], list[str]] = {}
    for aggregate in aggregates:
        traits = AggregateTraits.of(aggregate)
        if traits not in counted:
            continue
        shift = shift_rows(traits, c)
        if not shift:
            return Decision("never", shift.reason)
        # Counts are exact; of other types one only knows when rows come.
        exactness = (True, True) if isinstance(unfiltered(aggregate), EXACT) else (True, False)
        way = tuple(how_rows_leave(traits, exact=exact).choice for exact in exactness)
        ways.setdefault(way, []).append(repr(aggregate))
        for choice in way:
            shifts.setdefault("invert" if choice == "invert" else "recompute", shift)
    choices = [choice for choice in ("invert", "recompute") if choice in shifts]
    how = "; ".join(text.format(_listed(ways[way])) for way, text in REMOVALS.items() if way in ways)
    return Decision(" or ".join(choices), f"{shifts[choices[0]].reason}: {how}")


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + rest


def _splits(c: Characteristics, max_slice: MaxSlice) -> Decision:
    decision = _yes_or_no(split_slices(c))
    shifts = any(q.counts_rows for q in c.queries) or decision.choice == "yes"
    if max_slice is None or c.ordered or not c.lateness or not shifts:
        return decision
    most = "as many rows as their splits allow" if max_slice == AUTO else f"at most {max_slice} rows"
    return Decision(decision.choice, f"{decision.reason}; slices whose rows may shift hold {most}")


def _yes_or_no(decision: Decision) -> Decision:
    return Decision("yes" if decision else "no", decision.reason)


def _technique(workload: Workload, c: Characteristics) -> Decision:
    known = [q.window for q in workload.queries if q.window.is_periodic]
    lists = len({window for window in known if window.listing is not None})
    decision = slicing_technique(c, len(progressions_of(known)), len(points_of(known)), lists)
    gaps = [q.window.session_gap for q in workload.queries if q.window.session_gap is not None]
    if gaps and decision.choice != "sessions":
        gap = Amount(min(gaps), workload.time_measure)
        return Decision(decision.choice, f"{decision.reason}; and where nothing comes for longer than {gap}")
    return decision


def _store(aggregate: Aggregate, c: Characteristics) -> Decision:
    """The store, which depends on types that are not known yet where an inverse may or may not be exact."""
    traits = AggregateTraits.of(aggregate)
    return _either(aggregate, *(choose_store(traits, c, exact=e) for e in (True, False)))


def _row_store(aggregate: Aggregate) -> Decision:
    """The store that answers ranges of single rows."""
    traits = AggregateTraits.of(aggregate)
    return _either(aggregate, *(choose_row_store(traits, exact=e) for e in (True, False)))


def _either(aggregate: Aggregate, exact: Decision, rounded: Decision) -> Decision:
    """What was decided for types whose inverse is exact, or for others; both where that is open."""
    if exact == rounded or isinstance(unfiltered(aggregate), EXACT):
        return exact
    return Decision(
        f"{exact.choice} or {rounded.choice}",
        f"{exact.choice} where the column's type is exact "
        f"(integers, decimals): {exact.reason}; else {rounded.choice}: {rounded.reason}",
    )


def _sharing(aggregates: list[Aggregate]) -> list[list[Aggregate]]:
    """Aggregates whose partials are kept as one, wherever there are several of them."""
    bound = [(a, monoid) for a in aggregates if (monoid := _bound(a)) is not None]
    _, places = shared_monoids([monoid for _, monoid in bound])
    groups: dict[int, list[Aggregate]] = {}
    for (aggregate, _), place in zip(bound, places, strict=True):
        groups.setdefault(place, []).append(aggregate)
    return [together for together in groups.values() if len(together) > 1]


def _bound(aggregate: Aggregate) -> Monoid | None:
    """An aggregate on columns of some type that it takes: which parts are shared depends on no type."""
    for type_ in LIKELY_TYPES:
        with contextlib.suppress(SlicewiseError):
            return aggregate.bind(*[type_] * len(aggregate.columns))
    return None


def _traits(aggregate: Aggregate) -> str:
    traits = [aggregate.kind, "commutative" if aggregate.commutative else "depends on order"]
    if aggregate.invertible:
        traits.append("invertible")
    if aggregate.timed:
        traits.append("carries event times")
    return ", ".join(traits)


def _row(label: str, decision: Decision, label_width: int, choice_width: int) -> list[str]:
    """The choice beside its label, and its reason beside that, in as many lines as it takes."""
    room = WIDTH - max(NARROWEST + choice_width + 6, len(decision.choice) + 4)
    if len(label) > label_width and len(label) > room:
        # A long expression has lines to itself.
        lines = textwrap.wrap(label, WIDTH - 2)
        return [*(f"  {line}" for line in lines), *_row("", decision, label_width, choice_width)]
    head = f"  {label:<{label_width}}  {decision.choice:<{choice_width}}  "
    body = textwrap.wrap(decision.reason, max(WIDTH - len(head), NARROWEST)) or [""]
    return [f"{head}{body[0]}".rstrip(), *(f"{'':<{len(head)}}{line}" for line in body[1:])]


def explain_routes(workload: Workload) -> list[str]:
    """For each query its route and why, as lines for a terminal.

    >>> import slicewise as sw
    >>> w = sw.Workload(time="ts").query("trend", sw.tumbling("1 minute"), peak=sw.max("v"))
    >>> print(*explain_routes(w.query("all", sw.session("5 minutes"), all=sw.collect_set("v"))), sep="\\n")
      trend        slices  each window is one slice, which Spark's own aggregation computes
      all          rows    collect_set('v') is computed in Python
      as a batch   slices  by key and window, as Spark's own aggregation does
      as a stream  slices  sliced where they are read; shards get slices, not rows
    """
    if workload.on_clock is not None:
        batch = Decision("refused", "a batch has no clock that a second run would share")
        return [
            line
            for name, route in (("as a batch", batch), ("as a stream", stream_route(workload)))
            for line in _row(name, route, len("as a stream"), len(batch.choice))
        ]
    routes = [(query.name, _route(query, workload)) for query in workload.queries[:LISTED]]
    if len(workload.queries) > LISTED:
        routes.append((f"and {len(workload.queries) - LISTED} more", Decision("", "")))
    for name, condition in (("where", workload.where), ("punctuation", workload.punctuation)):
        if condition is not None and not (computed := in_the_jvm([condition])):
            routes.append((name, Decision(ROWS, computed.reason)))
    routes += [("as a batch", choose_shuffle(workload)), ("as a stream", stream_route(workload))]
    width = max(len(name) for name, _ in routes)
    return [line for name, route in routes for line in _row(name, route, width, len(SLICES))]


def _route(query: Query, workload: Workload) -> Decision:
    route = is_left_to_spark(query, workload) or route_of(query, punctuation=workload.punctuation is not None)
    if route.choice == SLICES and is_sliced_in_numpy(workload):
        return Decision(SLICES, "sliced and composed in NumPy")
    return route
