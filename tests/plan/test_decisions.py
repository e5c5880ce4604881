"""The decision trees of general stream slicing, leaf by leaf, and the choices that hang on them."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.plan.characteristics import AggregateTraits, Characteristics, QueryTraits, characteristics_of
from slicewise.plan.decisions import (
    LONG_WINDOW,
    Decision,
    choose_store,
    how_rows_leave,
    keep_tuples,
    needs_tuples,
    remove_tuples,
    slicing_technique,
    split_slices,
)
from slicewise.plan.grids import points_of, progressions_of
from slicewise.windows import Context

FREE, SESSION = Context.FREE, Context.SESSION
FCF, FCA = Context.FORWARD_FREE, Context.FORWARD_AWARE
CONTEXTS = (FREE, SESSION, FCF, FCA)

SUM = AggregateTraits("sum('v')", commutative=True, invertible=True)
MAX = AggregateTraits("max('v')", commutative=True, extreme=True)
CONCAT = AggregateTraits("concat('v')", commutative=False, kind="holistic")
FIRST = AggregateTraits("first('v')", commutative=False, timed=True)
STACK = AggregateTraits("stack('v')", commutative=False, invertible=True, kind="holistic")
MEDIAN = AggregateTraits("median('v')", commutative=True, kind="holistic")


def one(context=FREE, aggregate=SUM, *, ordered=False, counts=False, ties=False, overlap=1, late=0) -> Characteristics:
    """A workload of one query over one aggregate."""
    query = QueryTraits("q", context, counts_rows=counts, overlap=overlap, aggregates=(aggregate,))
    return Characteristics(ordered, (query,), breaks_ties=ties, lateness=late)


# -- Figure 4: which workload characteristics require storing individual tuples in memory?


@pytest.mark.parametrize(
    ("c", "choice", "reason"),
    [
        # Rows in order: context free and forward context free windows drop tuples, whatever the function and measure.
        (one(FREE, ordered=True), False, "rows come in order and edges are known when they pass: partials are enough"),
        (one(FREE, CONCAT, ordered=True), False, "rows come in order and edges are known when they pass"),
        (one(SESSION, CONCAT, ordered=True), False, "rows come in order"),
        (one(FCF, ordered=True), False, "rows come in order"),
        (one(FREE, ordered=True, counts=True), False, "rows come in order"),
        # Forward context aware windows keep them, in order or not.
        (one(FCA, ordered=True), True, "query 'q' is forward context aware: later rows place earlier edges"),
        (one(FCA), True, "query 'q' is forward context aware"),
        # Out of order, (1) functions that do not commute
        (one(FREE, CONCAT), True, "concat('v') depends on the order of rows, and rows come out of order"),
        (one(SESSION, CONCAT), True, "concat('v') depends on the order of rows"),
        # ... unless their partials carry event times and find their own place,
        (one(FREE, FIRST), False, "context-free and session windows over aggregates that take rows in any order"),
        # ... but ties that columns break are beyond them, even in order;
        (one(FREE, FIRST, ties=True), True, "first('v') depends on the order of rows, and rows of equal time are put"),
        (one(FREE, CONCAT, ties=True, ordered=True), True, "rows of equal time are put in order by columns"),
        (one(FREE, SUM, ties=True, ordered=True), False, "rows come in order"),
        # (2) windows that are neither context free nor sessions,
        (one(FCF), True, "query 'q' is context aware: a row out of order may move its edges"),
        (one(SESSION), False, "context-free and session windows over aggregates that take rows in any order"),
        # (3) count-based measures.
        (one(FREE, counts=True), True, "query 'q' counts rows: a row out of order shifts all later ones"),
        (one(FREE), False, "context-free and session windows"),
        (one(FREE, MEDIAN), False, "context-free and session windows"),
    ],
)
def test_figure_4_leaf_by_leaf(c, choice, reason):
    decision = keep_tuples(c)
    assert decision.choice is choice
    assert bool(decision) is choice
    assert reason in decision.reason


BITS = (False, True)
EVERYTHING = list(itertools.product(CONTEXTS, BITS, BITS, BITS, BITS, BITS))


def paper_keeps_tuples(context, ordered, counts, commutative, timed, ties):
    """Section 5.1 in its own words, and what we add to it: partials with event times, ties broken by columns."""
    if context is FCA:
        return True
    if not commutative and (ties or (not ordered and not timed)):
        return True
    return not ordered and (context is FCF or counts)


def test_figure_4_as_a_truth_table():
    for context, ordered, counts, commutative, timed, ties in EVERYTHING:
        aggregate = AggregateTraits("a", commutative=commutative, timed=timed)
        c = one(context, aggregate, ordered=ordered, counts=counts, ties=ties)
        expected = paper_keeps_tuples(context, ordered, counts, commutative, timed, ties)
        assert keep_tuples(c).choice is expected, c


@pytest.mark.parametrize(
    ("aggregate", "ordered", "ties", "needs"),
    [
        (SUM, False, False, False),
        (SUM, False, True, False),
        (SUM, True, True, False),
        (CONCAT, False, False, True),
        (CONCAT, False, True, True),
        (CONCAT, True, False, False),
        (CONCAT, True, True, True),
        (FIRST, False, False, False),
        (FIRST, False, True, True),
        (FIRST, True, False, False),
        (FIRST, True, True, True),
    ],
)
def test_what_a_row_out_of_order_computes_again(aggregate, ordered, ties, needs):
    assert needs_tuples(aggregate, one(FREE, aggregate, ordered=ordered, ties=ties)) is needs


# -- Figure 5: are splits required?


@pytest.mark.parametrize(
    ("c", "choice", "reason"),
    [
        (one(FREE, ordered=True), False, "rows come in order and no edge is placed behind them"),
        (one(SESSION, ordered=True), False, "rows come in order"),
        (one(FCF, ordered=True), False, "rows come in order"),
        (one(FCA, ordered=True), True, "query 'q' is forward context aware: rows place edges before themselves"),
        (one(FREE), False, "context-free edges are known in advance, and sessions only ever merge"),
        (one(SESSION), False, "sessions only ever merge"),
        (one(FCF), True, "query 'q' is context aware: a row out of order may place an edge"),
        (one(FCA), True, "query 'q' is forward context aware"),
    ],
)
def test_figure_5_leaf_by_leaf(c, choice, reason):
    decision = split_slices(c)
    assert decision.choice is choice
    assert reason in decision.reason


def test_every_query_that_splits_is_named():
    late = QueryTraits("late", FCF)
    early, other = QueryTraits("early", FCA), QueryTraits("other", FCA)
    reason = split_slices(Characteristics(False, (late, early, other))).reason
    assert reason == (
        "queries 'early', 'other' are forward context aware: rows place edges before themselves; "
        "query 'late' is context aware: a row out of order may place an edge"
    )
    many = tuple(QueryTraits(f"q{i}", FCA) for i in range(9))
    assert "queries 'q0' and 8 more are" in split_slices(Characteristics(False, many)).reason


def test_figure_5_looks_at_nothing_but_order_and_class():
    for context, ordered, counts, commutative, timed, ties in EVERYTHING:
        aggregate = AggregateTraits("a", commutative=commutative, timed=timed)
        c = one(context, aggregate, ordered=ordered, counts=counts, ties=ties)
        assert split_slices(c).choice is (context is FCA or (context is FCF and not ordered)), c


def test_whatever_splits_keeps_tuples():
    """Splitting recomputes both halves, so there must be tuples to recompute them from."""
    for context, ordered, counts, commutative, timed, ties in EVERYTHING:
        aggregate = AggregateTraits("a", commutative=commutative, timed=timed)
        c = one(context, aggregate, ordered=ordered, counts=counts, ties=ties)
        assert keep_tuples(c) or not split_slices(c), c


# -- Figure 6: how to remove tuples?


@pytest.mark.parametrize(
    ("aggregate", "counts", "ordered", "exact", "choice", "reason"),
    [
        (SUM, False, False, True, "never", "no query over it counts rows: a row stays in its slice"),
        (SUM, False, True, True, "never", "no query over it counts rows"),
        (SUM, True, True, True, "never", "rows come in order: none shifts the ones behind it"),
        (MAX, True, True, True, "never", "rows come in order"),
        (SUM, True, False, True, "invert", "query 'q' shifts rows between slices, and sum('v') has an inverse"),
        (SUM, True, False, False, "recompute", "sum('v') would lose digits by its inverse"),
        (MAX, True, False, True, "recompute", "query 'q' shifts rows between slices, and max('v') has no inverse"),
        (MAX, True, False, False, "recompute", "computed again only where the rows that leave hold it"),
        (CONCAT, True, False, True, "recompute", "concat('v') has no inverse"),
        (MEDIAN, True, False, True, "recompute", "median('v') has no inverse"),
        (STACK, True, False, True, "recompute", "stack('v') has no inverse that takes rows out in any order"),
    ],
)
def test_figure_6_leaf_by_leaf(aggregate, counts, ordered, exact, choice, reason):
    c = one(FREE, aggregate, ordered=ordered, counts=counts, late=5)
    decision = remove_tuples(aggregate, c, exact=exact)
    assert decision.choice == choice
    assert reason in decision.reason


@pytest.mark.parametrize("aggregate", [SUM, MAX, CONCAT, MEDIAN])
def test_without_lateness_nothing_is_folded_that_could_shift(aggregate):
    decision = remove_tuples(aggregate, one(FREE, aggregate, counts=True))
    assert decision == Decision("never", "nothing is corrected: rows are folded when their order is final")


@pytest.mark.parametrize(
    ("aggregate", "exact", "choice"),
    [
        (SUM, True, "invert"),
        (SUM, False, "recompute"),
        (MAX, True, "spare"),
        (MAX, False, "spare"),
        (CONCAT, True, "recompute"),
        (MEDIAN, True, "recompute"),
        (FIRST, True, "recompute"),
        (STACK, True, "recompute"),
    ],
)
def test_how_rows_leave_a_partial(aggregate, exact, choice):
    assert how_rows_leave(aggregate, exact=exact).choice == choice


def test_extremes_are_those_that_take_rows_in_any_order():
    for aggregate in (sw.max, sw.min, sw.range_, sw.max_count, sw.min_count):
        assert AggregateTraits.of(aggregate("v")).extreme
    for other in (sw.sum("v"), sw.first("v"), sw.max_by("w", "v"), sw.median("v"), sw.m4("v"), sw.collect_set("v")):
        assert not AggregateTraits.of(other).extreme


def test_only_the_aggregates_of_counting_queries_lose_rows():
    timed = QueryTraits("timed", aggregates=(MAX,))
    counting = QueryTraits("counting", counts_rows=True, aggregates=(SUM,))
    c = Characteristics(False, (timed, counting), lateness=5)
    assert remove_tuples(MAX, c).choice == "never"
    assert remove_tuples(SUM, c).choice == "invert"


# -- stores


@pytest.mark.parametrize(
    ("aggregate", "overlap", "exact", "choice", "reason"),
    [
        (SUM, 1, True, "lazy", "folding 2 slices per window is as fast as any look-up"),
        (MAX, 1, False, "lazy", "folding 2 slices per window"),
        (SUM, 60, True, "prefix", "invertible and exact on these types: a window is one running value less another"),
        (SUM, 60, False, "eager", "about 61 slices per window, and floating point would drift: a tree of partials"),
        (MAX, 60, True, "eager", "about 61 slices per window, and it has no inverse: a tree of partials (FlatFAT)"),
        (CONCAT, 60, True, "lazy", "holistic partials grow with the rows they hold"),
        (MEDIAN, 60, True, "lazy", "holistic partials grow with the rows they hold"),
        (
            AggregateTraits("a", False, True),
            60,
            True,
            "eager",
            "it has no inverse",
        ),  # none that takes rows in any order
    ],
)
def test_each_aggregate_gets_the_store_that_fits(aggregate, overlap, exact, choice, reason):
    decision = choose_store(aggregate, one(FREE, aggregate, overlap=overlap), exact=exact)
    assert decision.choice == choice
    assert reason in decision.reason


def test_the_length_of_windows_turns_lazy_into_eager():
    choices = [choose_store(MAX, one(FREE, MAX, overlap=n), exact=True).choice for n in range(1, 20)]
    assert choices == sorted(choices, reverse=True)  # lazy, then eager, and never back
    assert choices.index("eager") + 2 == LONG_WINDOW


def test_queries_over_other_aggregates_do_not_matter_to_a_store():
    mine, other = QueryTraits("a", overlap=1, aggregates=(MAX,)), QueryTraits("b", overlap=100, aggregates=(SUM,))
    c = Characteristics(False, (mine, other))
    assert choose_store(MAX, c, exact=True).choice == "lazy"
    assert choose_store(SUM, c, exact=True).choice == "prefix"


def test_sessions_never_overlap_so_their_length_does_not_matter():
    assert choose_store(MAX, one(SESSION, MAX, overlap=100), exact=True).choice == "lazy"


# -- where slices are cut


def technique(workload: sw.Workload) -> Decision:
    windows = [q.window for q in workload.queries if q.window.context is FREE]
    return slicing_technique(characteristics_of(workload), len(progressions_of(windows)), len(points_of(windows)))


def over(*windows, lateness=0) -> sw.Workload:
    workload = sw.Workload("t", lateness=lateness)
    for i, window in enumerate(windows):
        workload = workload.query(f"q{i}", window, n=sw.count())
    return workload


@pytest.mark.parametrize(
    ("windows", "choice", "reason"),
    [
        ([sw.tumbling(10)], "panes", "all edges of all windows lie on one grid"),
        ([sw.sliding(10, every=5)], "panes", "all edges of all windows lie on one grid"),
        ([sw.tumbling(10), sw.tumbling(5)], "panes", "all edges of all windows lie on one grid"),
        ([sw.cumulative(10, every=2)], "panes", "all edges of all windows lie on one grid"),
        ([sw.sliding(10, every=3)], "pairs", "the slide does not divide the length"),
        ([sw.sliding(2, every=3)], "pairs", "each slide has a begin and an end in it"),
        ([sw.sliding(10, every=3), sw.session(5)], "pairs", "the slide does not divide the length"),
        ([sw.sliding(10, every=3), sw.session(5), sw.session(7)], "pairs", "the slide does not divide the length"),
        ([sw.tumbling(3), sw.tumbling(5)], "edges", "the edges of 2 grids, each cut once"),
        ([sw.between(0, 5)], "edges", "the edges of 2 fixed points, each cut once"),
        ([sw.landmark(every=5)], "edges", "the edges of 1 grid and 1 fixed point, each cut once"),
        ([sw.session(5)], "sessions", "only gaps between rows separate slices"),
        ([], "one slice", "no window has an edge"),
    ],
    ids=repr,
)
def test_slices_are_cut_where_the_windows_say(windows, choice, reason):
    decision = technique(over(*windows))
    assert decision.choice == choice
    assert reason in decision.reason


def test_without_lateness_only_begins_stay():
    assert "only the begins of open windows stay (Cutty)" in technique(over(sw.sliding(10, every=3))).reason
    assert "Cutty" not in technique(over(sw.sliding(10, every=3), lateness=5)).reason


# -- the characteristics that all of this is decided by


def test_characteristics_are_gathered_from_a_workload():
    workload = (
        sw.Workload("t", order=["seq"], lateness="5 seconds")
        .query("a", sw.sliding("1 minute", every="7 seconds"), n=sw.count(), f=sw.first("v"))
        .query("b", sw.sliding(sw.rows(10), every="5 seconds"), c=sw.concat("w"))
        .query("c", sw.session("1 second"), n=sw.count())
    )
    c = characteristics_of(workload, ordered=True)
    assert (c.ordered, c.breaks_ties, c.lateness) == (True, True, 5_000_000)
    assert [(q.name, q.context, q.counts_rows, q.multi_measure, q.overlap) for q in c.queries] == [
        ("a", FREE, False, False, 9),  # 60 / 7, and one that has only begun
        ("b", FCA, True, True, 1),
        ("c", SESSION, False, False, 1),
    ]
    assert [a.name for a in c.aggregates] == ["count()", "first('v')", "concat('w')"]
    assert c.aggregates[1] == AggregateTraits("first('v')", commutative=False, timed=True, kind=c.aggregates[1].kind)


@pytest.mark.parametrize(
    ("window", "overlap"),
    [
        (sw.tumbling(10), 1),
        (sw.sliding(10, every=5), 2),
        (sw.sliding(10, every=3), 4),
        (sw.sliding(2, every=5), 1),
        (sw.cumulative(24, every=2), 12),
        (sw.landmark(every=5), 2),
        (sw.between(0, 5), 1),
        (sw.sliding(sw.rows(10), every=sw.rows(2)), 5),
        (sw.sliding(sw.rows(10), every=2), 1),
    ],
)
def test_overlap_is_how_many_windows_hold_a_row(window, overlap):
    assert characteristics_of(over(window)).queries[0].overlap == overlap


# -- nothing depends on the order in which queries were added


@st.composite
def mixes(draw):
    aggregates = st.sampled_from([SUM, MAX, CONCAT, FIRST, MEDIAN])
    queries = [
        QueryTraits(
            f"q{i}",
            draw(st.sampled_from(CONTEXTS)),
            counts_rows=draw(st.booleans()),
            overlap=draw(st.integers(1, 30)),
            aggregates=tuple(draw(st.lists(aggregates, min_size=1, max_size=3, unique=True))),
        )
        for i in range(draw(st.integers(1, 5)))
    ]
    c = Characteristics(draw(st.booleans()), tuple(queries), draw(st.booleans()), draw(st.sampled_from([0, 5])))
    return c, Characteristics(c.ordered, tuple(draw(st.permutations(queries))), c.breaks_ties, c.lateness)


@given(mixes())
def test_the_order_of_queries_plays_no_part(mix):
    one_way, other_way = mix
    assert keep_tuples(one_way).choice == keep_tuples(other_way).choice
    assert split_slices(one_way).choice == split_slices(other_way).choice
    assert set(one_way.aggregates) == set(other_way.aggregates)
    for aggregate in one_way.aggregates:
        for exact in BITS:
            kwargs = {"exact": exact}
            assert choose_store(aggregate, one_way, **kwargs) == choose_store(aggregate, other_way, **kwargs)
            mine, theirs = (remove_tuples(aggregate, c, **kwargs) for c in mix)
            assert mine.choice == theirs.choice
    for progressions, points in itertools.product(range(4), range(2)):
        assert slicing_technique(one_way, progressions, points) == slicing_technique(other_way, progressions, points)


@given(mixes())
def test_one_more_query_never_lets_tuples_go(mix):
    c, _ = mix
    fewer = Characteristics(c.ordered, c.queries[:-1], c.breaks_ties, c.lateness)
    assert keep_tuples(c).choice >= keep_tuples(fewer).choice
    assert split_slices(c).choice >= split_slices(fewer).choice
