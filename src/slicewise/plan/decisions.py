"""Decisions: the decision trees of general stream slicing as named functions. Each returns a choice and its reason.

They are pure functions of finished characteristics, so the order in which queries were added plays no part, and adding
or removing a query simply decides again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from slicewise.plan.characteristics import AggregateTraits, Characteristics
from slicewise.windows import Context

__all__ = [
    "Decision",
    "choose_row_store",
    "choose_store",
    "how_rows_leave",
    "keep_tuples",
    "needs_tuples",
    "remove_tuples",
    "shift_rows",
    "slicing_technique",
    "split_slices",
]

_CUTTY = "; before the watermark only the begins of open windows stay (Cutty)"
#: From this many slices per window on, a store that prepares answers beats folding each window anew.
LONG_WINDOW = 8


@dataclass(frozen=True)
class Decision:
    """A choice and why it was made."""

    choice: Any
    reason: str

    def __bool__(self) -> bool:
        return bool(self.choice)


def needs_tuples(aggregate: AggregateTraits, c: Characteristics) -> bool:
    """Whether a row out of order forces this aggregate to be computed again from the rows."""
    if aggregate.commutative:
        return False
    if c.breaks_ties:
        return True
    # Partials that carry their event time find their own place among others.
    return not c.ordered and not aggregate.timed


def keep_tuples(c: Characteristics) -> Decision:
    """Figure 4: which workload characteristics require storing individual tuples in memory?"""
    for query in c.queries:
        if query.context is Context.FORWARD_AWARE:
            return Decision(True, f"query {query.name!r} is forward context aware: later rows place earlier edges")
    for query in c.queries:
        for aggregate in query.aggregates:
            if needs_tuples(aggregate, c):
                why = "rows of equal time are put in order by columns" if c.breaks_ties else "rows come out of order"
                return Decision(True, f"{aggregate.name} depends on the order of rows, and {why}")
    if c.ordered:
        return Decision(False, "rows come in order and edges are known when they pass: partials are enough")
    for query in c.queries:
        if query.context is Context.FORWARD_FREE:
            return Decision(True, f"query {query.name!r} is context aware: a row out of order may move its edges")
    for query in c.queries:
        if query.counts_rows:
            return Decision(True, f"query {query.name!r} counts rows: a row out of order shifts all later ones")
    for query in c.queries:
        if query.needs_rows:
            return Decision(True, f"query {query.name!r} is on another measure: rows wait until their order is final")
    return Decision(False, "context-free and session windows over aggregates that take rows in any order")


def split_slices(c: Characteristics) -> Decision:
    """Figure 5: are splits required?"""
    aware = [q.name for q in c.queries if q.context is Context.FORWARD_AWARE]
    free = [q.name for q in c.queries if q.context is Context.FORWARD_FREE and not c.ordered]
    why = []
    if aware:
        why.append(f"{_queries(aware, 'forward context aware')}: rows place edges before themselves")
    if free:
        why.append(f"{_queries(free, 'context aware')}: a row out of order may place an edge")
    if why:
        return Decision(True, "; ".join(why))
    if c.ordered:
        return Decision(False, "rows come in order and no edge is placed behind them")
    return Decision(False, "context-free edges are known in advance, and sessions only ever merge")


def remove_tuples(aggregate: AggregateTraits, c: Characteristics, *, exact: bool = True) -> Decision:
    """Figure 6: how are tuples removed from slices?  ``"never"``, ``"invert"`` or ``"recompute"``."""
    shift = shift_rows(aggregate, c)
    if not shift:
        return Decision("never", shift.reason)
    leave = how_rows_leave(aggregate, exact=exact)
    return Decision("invert" if leave.choice == "invert" else "recompute", f"{shift.reason}, and {leave.reason}")


def shift_rows(aggregate: AggregateTraits, c: Characteristics) -> Decision:
    """Does a row out of order shift later ones out of their slices, where partials of this aggregate are kept?"""
    counting = [q.name for q in c.queries if q.counts_rows and aggregate in q.aggregates]
    if not counting:
        return Decision(False, "no query over it counts rows: a row stays in its slice")
    if c.ordered:
        return Decision(False, "rows come in order: none shifts the ones behind it")
    if not c.lateness:
        return Decision(False, "nothing is corrected: rows are folded when their order is final")
    return Decision(True, f"query {counting[0]!r} shifts rows between slices")


def how_rows_leave(aggregate: AggregateTraits, *, exact: bool) -> Decision:
    """What becomes of a partial when some of its rows leave?  ``"invert"``, ``"spare"`` or ``"recompute"``.

    ``"spare"`` is to leave it alone, unless the rows that leave hold its extreme: then it is computed again.
    """
    name = aggregate.name
    if aggregate.invertible and aggregate.commutative and (exact or aggregate.divides):
        return Decision("invert", f"{name} has an inverse")
    if aggregate.extreme:
        return Decision("spare", f"{name} has no inverse: computed again only where the rows that leave hold it")
    if not aggregate.invertible:
        return Decision("recompute", f"{name} has no inverse")
    if not aggregate.commutative:
        return Decision("recompute", f"{name} has no inverse that takes rows out in any order")
    return Decision("recompute", f"{name} would lose digits by its inverse")


def choose_store(aggregate: AggregateTraits, c: Characteristics, *, exact: bool) -> Decision:
    """Which store answers the windows over this aggregate?  ``"lazy"``, ``"eager"``, ``"prefix"``, ``"wavelet"``."""
    overlaps = [q.overlap for q in c.queries if aggregate in q.aggregates and q.context is not Context.SESSION]
    # Every window of every query may add its own edges, so that slices per window grow with the number of queries.
    slices = max(overlaps, default=1) * (2 if len(overlaps) > 1 else 1) + len(overlaps)
    if slices < LONG_WINDOW:
        return Decision("lazy", f"folding {_count_of(slices, 'slice')} per window is as fast as any look-up")
    if aggregate.ranked:
        return Decision(
            "wavelet",
            f"about {slices} slices per window: values are ranked once, and all windows read off one wavelet matrix; "
            "where a step has few windows, their slices are merged",
        )
    if aggregate.kind == "holistic":
        return Decision(
            "lazy", "holistic partials grow with the rows they hold: a tree of them would hold every row again"
        )
    if aggregate.commutative and aggregate.invertible and exact:
        return Decision("prefix", "invertible and exact on these types: a window is one running value less another")
    why = "floating point would drift" if aggregate.commutative and aggregate.invertible else "it has no inverse"
    return Decision("eager", f"about {slices} slices per window, and {why}: a tree of partials (FlatFAT)")


def choose_row_store(aggregate: AggregateTraits, *, exact: bool) -> Decision:
    """Which store answers ranges of single rows?  ``"prefix"``, ``"doubling"``, ``"wavelet"`` or ``"rows"``.

    There are about as many ranges as rows, and each may be short or hold most of them.
    """
    if aggregate.ranked:
        return Decision("wavelet", "values are ranked once, and all points read off one wavelet matrix")
    if aggregate.kind in ("holistic", "sketch"):
        return Decision("rows", "what is kept grows with the rows: those of each point are folded by themselves")
    if aggregate.commutative and aggregate.invertible and exact:
        return Decision("prefix", "invertible and exact on these types: a point is one running value less another")
    why = "floating point would drift" if aggregate.commutative and aggregate.invertible else "it has no inverse"
    return Decision("doubling", f"{why}: running values in blocks that double, of which a point takes two")


def slicing_technique(c: Characteristics, progressions: int, points: int, lists: int = 0) -> Decision:
    """Where are slices cut?  ``"panes"``, ``"pairs"``, ``"edges"``, ``"sessions"``, ``"rows"`` or ``"one slice"``."""
    on_time = [q for q in c.queries if not q.needs_rows]
    begins = _CUTTY if not c.lateness else ""
    if len(on_time) < len(c.queries):
        begins += "; rows in order also where the windows on them begin and end"
    sessions = sum(q.context is Context.SESSION for q in on_time)
    if not c.queries:
        return Decision("one slice", "no window has an edge")
    if not on_time:
        return Decision("rows", "rows in order are cut where the windows on them begin and end, once for all queries")
    if progressions == 0 and not points and not lists:
        return Decision("sessions", "only gaps between rows separate slices" + begins.removeprefix(_CUTTY))
    if progressions == 1 and not points and not lists:
        return Decision("panes", "all edges of all windows lie on one grid" + begins)
    if progressions == 2 and len(on_time) - sessions == 1 and not points and not lists:
        return Decision(
            "pairs", "the slide does not divide the length: each slide has a begin and an end in it" + begins
        )
    sources = ((progressions, "grid"), (points, "fixed point"), (lists, "list of windows"))
    counted = [_count_of(n, noun) for n, noun in sources if n]
    grids = " and ".join([", ".join(counted[:-1]), counted[-1]] if counted[1:] else counted)
    return Decision("edges", f"the edges of {grids}, each cut once" + begins)


def _count_of(n: int, noun: str) -> str:
    first, _, rest = noun.partition(" of ")
    return f"{n} {noun}" if n == 1 else f"{n} {first}s{' of ' + rest if rest else ''}"


def _queries(names: list[str], context: str) -> str:
    if len(names) == 1:
        return f"query {names[0]!r} is {context}"
    listed = ", ".join(map(repr, names[:3])) if len(names) <= 3 else f"{names[0]!r} and {len(names) - 1} more"
    return f"queries {listed} are {context}"
