"""Explain: the plan in words, for a terminal. Characteristics first, then each decision with its reason."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from slicewise.aggregates.arithmetic import Count
from slicewise.aggregates.base import Aggregate
from slicewise.amounts import INTEGER, Amount
from slicewise.plan.characteristics import AggregateTraits, Characteristics, characteristics_of
from slicewise.plan.decisions import (
    Decision,
    choose_store,
    how_rows_leave,
    keep_tuples,
    remove_tuples,
    slicing_technique,
    split_slices,
)
from slicewise.plan.grids import points_of, progressions_of
from slicewise.plan.routes import explain_routes
from slicewise.workload import Workload

__all__ = ["explain"]

WIDTH = 108
#: Aggregates with longer names push their line out of the columns.
LONGEST_LABEL = 40
#: How many queries are listed; of more, the rest is counted.
LISTED = 12


def explain(workload: Workload, *, ordered: bool = False, max_slice: int | None = None) -> str:
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
      trend        slices  sliced in the JVM, composed in NumPy
      as a stream  slices  sliced where they are read; shards get slices, not rows
    """
    c = characteristics_of(workload, ordered=ordered)
    aggregates = list(dict.fromkeys(a for q in workload.queries for a in q.aggregates.values()))
    label = max(len("remove tuples?"), *(min(len(repr(a)), LONGEST_LABEL) for a in aggregates))
    lines = [_opening(workload, ordered), "", "queries", *_queries(workload), "", "decisions"]
    decisions = list(_decisions(workload, c, aggregates, max_slice))
    choice = max(len(d.choice) for _, d in decisions)
    for question, decision in decisions:
        lines += _row(question, decision, label, choice)
    lines += ["", "kept per slice", "  first and last event time, rows"]
    lines += [f"  {a!r:<{label}}  {_traits(a)}" for a in aggregates]
    if keep_tuples(c):
        stored = ", ".join(dict.fromkeys([workload.time, *workload.columns]))
        lines.append(f"  and each row: {stored}")
    if not ordered:
        lines += ["", "on Spark", *explain_routes(workload)]
    return "\n".join(lines)


def _opening(workload: Workload, ordered: bool) -> str:
    keys = f"keys {', '.join(workload.keys)}" if workload.keys else "no keys"
    said = [f"time {workload.time}" + (f" in {workload.unit}" if workload.unit else ""), keys]
    if workload.order:
        said.append(f"ties broken by {', '.join(workload.order)}")
    if ordered:
        said.append("rows in order, each its own watermark")
    else:
        said.append(f"rows out of order by up to {_duration(workload, workload.watermark)}")
    said.append(f"corrected for {_duration(workload, workload.lateness)}")
    return f"workload  {', '.join(said)}"


def _duration(workload: Workload, size: int) -> str:
    if not size:
        return "0" if workload.time_measure == INTEGER else "0 seconds"
    return str(Amount(size, workload.time_measure))


def _queries(workload: Workload) -> Iterator[str]:
    shown = workload.queries[:LISTED]
    width = max((len(q.name) for q in shown), default=0)
    for query in shown:
        measures = " and ".join(str(m) for m in query.window.measures)
        yield f"  {query.name:<{width}}  {query.window!r}"
        for name, aggregate in query.aggregates.items():
            yield f"  {'':<{width}}  {name} = {aggregate!r}"
        yield f"  {'':<{width}}  {query.window.context.value}, on {measures}"
    if len(workload.queries) > LISTED:
        yield f"  and {len(workload.queries) - LISTED} more"


def _decisions(
    workload: Workload, c: Characteristics, aggregates: list[Aggregate], max_slice: int | None
) -> Iterator[tuple[str, Decision]]:
    yield "store tuples?", _yes_or_no(keep_tuples(c))
    yield "split slices?", _splits(c, max_slice)
    yield "remove tuples?", _removal(c, aggregates)
    yield "where to cut?", _technique(workload, c)
    for aggregate in aggregates:
        yield repr(aggregate), _store(aggregate, c)


#: What is said of aggregates whose rows leave slices: always by inverse, by inverse for exact types only, and so on.
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
    found: dict[str, Decision] = {}
    ways: dict[tuple[str, str], list[str]] = {}
    for aggregate in aggregates:
        traits = AggregateTraits.of(aggregate)
        # Counts are exact; of other types one only knows when rows come.
        exactness = (True, True) if isinstance(aggregate, Count) else (True, False)
        for exact in exactness:
            decision = remove_tuples(traits, c, exact=exact)
            found.setdefault(decision.choice, decision)
        if decision.choice != "never":
            way = tuple(how_rows_leave(traits, exact=exact).choice for exact in exactness)
            ways.setdefault(way, []).append(repr(aggregate))
    moved = [choice for choice in ("invert", "recompute") if choice in found]
    if not moved:
        if not any(q.counts_rows for q in c.queries):
            return Decision("never", "no query counts rows: a row stays in its slice")
        never = [d for d in (remove_tuples(AggregateTraits.of(a), c) for a in aggregates) if "over it" not in d.reason]
        return Decision("never", never[0].reason)
    said = [what.format(_listed(ways[way])) for way, what in REMOVALS.items() if way in ways]
    return Decision(" or ".join(moved), f"{found[moved[0]].reason.split(', and ')[0]}: {'; '.join(said)}")


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + rest


def _splits(c: Characteristics, max_slice: int | None) -> Decision:
    decision = _yes_or_no(split_slices(c))
    shifts = any(q.counts_rows for q in c.queries) or decision.choice == "yes"
    if max_slice is None or c.ordered or not c.lateness or not shifts:
        return decision
    return Decision(decision.choice, f"{decision.reason}; slices whose rows may shift hold at most {max_slice} rows")


def _yes_or_no(decision: Decision) -> Decision:
    return Decision("yes" if decision else "no", decision.reason)


def _technique(workload: Workload, c: Characteristics) -> Decision:
    known = [q.window for q in workload.queries if q.window.is_periodic]
    decision = slicing_technique(c, len(progressions_of(known)), len(points_of(known)))
    gaps = [q.window.session_gap for q in workload.queries if q.window.session_gap is not None]
    if gaps and decision.choice != "sessions":
        gap = Amount(min(gaps), workload.time_measure)
        return Decision(decision.choice, f"{decision.reason}; and where nothing comes for longer than {gap}")
    return decision


def _store(aggregate: Aggregate, c: Characteristics) -> Decision:
    """The store, which depends on types that are not known yet where an inverse may or may not be exact."""
    traits = AggregateTraits.of(aggregate)
    exact, rounded = (choose_store(traits, c, exact=e) for e in (True, False))
    if exact == rounded or isinstance(aggregate, Count):
        return exact
    return Decision(
        f"{exact.choice} or {rounded.choice}",
        f"{exact.choice} where the column's type is exact "
        f"(integers, decimals): {exact.reason}; else {rounded.choice}: {rounded.reason}",
    )


def _traits(aggregate: Aggregate) -> str:
    said = [aggregate.kind, "commutative" if aggregate.commutative else "depends on order"]
    if aggregate.invertible:
        said.append("invertible")
    if aggregate.timed:
        said.append("carries event times")
    return ", ".join(said)


def _row(question: str, decision: Decision, label: int, choice: int) -> list[str]:
    head = f"  {question:<{label}}  {decision.choice:<{choice}}"
    body = textwrap.wrap(decision.reason, WIDTH - len(head) - 2)
    return [f"{head}  {body[0]}", *(f"{'':<{len(head)}}  {line}" for line in body[1:])]
