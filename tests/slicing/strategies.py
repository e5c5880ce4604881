"""Random workloads and streams, for the properties that hold for all of them."""

from __future__ import annotations

from hypothesis import strategies as st

import slicewise as sw

NUMERIC = ["sum", "avg", "min", "max", "count", "stddev", "variance", "var_pop", "stddev_pop", "range_", "max_count"]
NUMERIC += ["min_count", "product", "geometric_mean", "median", "m4", "first", "last", "collect_list", "collect_set"]


def aggregates_over(numbers: str = "v", words: str = "w") -> st.SearchStrategy:
    """One aggregate over a column of numbers or of words."""
    return st.one_of(
        st.just(sw.count()),
        st.sampled_from([sw.AGGREGATES[name] for name in NUMERIC]).map(lambda a: a(numbers)),
        st.sampled_from([0.0, 0.25, 0.9]).map(lambda q: sw.percentile(numbers, q)),
        st.just(sw.max_by(words, numbers)),
        st.just(sw.min_by(words, numbers)),
        st.sampled_from([sw.concat, sw.first, sw.last, sw.min, sw.max, sw.collect_list, sw.count]).map(
            lambda a: a(words)
        ),
    )


def windows() -> st.SearchStrategy:
    """One window of any kind that the engine runs, on a short line of integer time."""
    length = st.integers(1, 20)
    offset = st.integers(-7, 7)
    return st.one_of(
        st.builds(lambda n, o: sw.tumbling(n, offset=o), length, offset),
        st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), length, length, offset),
        st.builds(sw.session, st.integers(1, 12)),
        st.builds(
            lambda e, k, o: sw.cumulative(e * k, every=e, offset=o), st.integers(1, 6), st.integers(1, 4), offset
        ),
        st.builds(lambda e, s: sw.landmark(every=e, since=s), st.integers(1, 15), st.integers(-30, 60)),
        st.builds(lambda s, n: sw.between(s, s + n), st.integers(-30, 60), length),
    )


@st.composite
def workloads(draw: st.DrawFn, aggregates: st.SearchStrategy | None = None) -> sw.Workload:
    """A workload of one to four queries."""
    keys = draw(st.sampled_from([[], [], ["k"], ["k", "j"]]))
    order = draw(st.sampled_from([[], [], [], ["o"]]))
    lateness = draw(st.sampled_from([0, 0, 3, 15, 1000]))
    workload = sw.Workload("t", keys=keys, order=order, lateness=lateness)
    for i in range(draw(st.integers(1, 4))):
        one = aggregates_over() if aggregates is None else aggregates
        computed = draw(st.lists(one, min_size=1, max_size=3))
        named = {f"q{i}_{n}": a for n, a in enumerate(computed)}
        workload = workload.query(f"q{i}", draw(windows()), **named)
    return workload


def rows(values: st.SearchStrategy | None = None) -> st.SearchStrategy:
    """One row: its time, and all columns that workloads read."""
    return st.fixed_dictionaries(
        {
            "t": st.integers(-30, 60),
            "v": st.one_of(st.none(), st.integers(-5, 5)) if values is None else values,
            "w": st.one_of(st.none(), st.sampled_from("abc")),
            "k": st.one_of(st.none(), st.sampled_from("xy")),
            "j": st.integers(0, 1),
            "o": st.one_of(st.none(), st.integers(0, 3)),
        }
    )


@st.composite
def steps(draw: st.DrawFn, values: st.SearchStrategy | None = None) -> list[tuple[list[list[dict]], int | None]]:
    """Epochs: some chunks of rows, then a watermark (None: the last, at the end of the stream)."""
    marks = sorted(draw(st.lists(st.integers(-20, 70), max_size=4)))
    chunks = st.lists(st.lists(rows(values), max_size=6), max_size=3)
    return [(draw(chunks), mark) for mark in [*marks, None]]
