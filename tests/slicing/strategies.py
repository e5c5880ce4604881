"""Random workloads and streams, for the properties that hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

import slicewise as sw
from tests.slicing.families import Hills, tables

NUMERIC = ["sum", "avg", "min", "max", "count", "stddev", "variance", "var_pop", "stddev_pop", "range_", "max_count"]
NUMERIC += ["min_count", "product", "geometric_mean", "median", "m4", "first", "last", "collect_list", "collect_set"]
NUMERIC += ["count_distinct", "sum_distinct", "mode", "histogram"]
OF_K = ["largest", "smallest", "first_k", "last_k", "most_frequent"]
NUMERIC += ["skewness", "kurtosis", "try_sum", "bit_and", "bit_xor", "any_value", "ohlc"]
SERIES = ["time_weighted_avg", "increase", "rate", "longest_rise"]
PAIRS = ["corr", "covar_samp", "regr_avgx", "regr_count", "regr_intercept", "regr_r2", "weighted_avg"]


#: What may be added to an aggregate: nothing, most of the time.
ADDED: list[Callable[[Any], Any]] = [
    *[lambda a: a] * 6,
    lambda a: a.where("v > 0"),
    lambda a: a.where("w = 'a' or v is null"),
    lambda a: a.by("w"),
    lambda a: a.by(sw.expr("case when w <> 'b' then j else 7 end")).where("v % 2 = 0"),
]


def aggregates_over(numbers: str = "v", words: str = "w") -> st.SearchStrategy[Any]:
    """One aggregate over a column of numbers or of words; of some rows or by category, now and then."""
    plain = st.one_of(_plain(numbers, words), _plain(sw.expr(f"{numbers} + 1"), words))
    return st.builds(lambda a, add: add(a), plain, st.sampled_from(ADDED))


def _plain(numbers: str, words: str) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.just(sw.count()),
        st.sampled_from([sw.AGGREGATES[name] for name in NUMERIC]).map(lambda a: a(numbers)),
        st.sampled_from([0.0, 0.25, 0.9]).map(lambda q: sw.percentile(numbers, q)),
        st.sampled_from([sw.AGGREGATES[name] for name in SERIES]).map(lambda a: a(numbers)),
        st.sampled_from([sw.AGGREGATES[name] for name in PAIRS]).map(lambda a: a(numbers, "o")),
        st.sampled_from([sw.first, sw.last]).map(lambda a: a(words, ignorenulls=True)),
        st.just(sw.ewma(numbers, half_life=7)),
        st.builds(lambda name, k: sw.AGGREGATES[name](numbers, k), st.sampled_from(OF_K), st.integers(1, 3)),
        st.sampled_from([None, 2]).map(lambda k: sw.max_by(words, numbers, k)),
        st.sampled_from([sw.count_distinct(words, numbers), sw.count_distinct(words), sw.mode(words)]),
        st.just(sw.min_by(words, numbers)),
        st.sampled_from([sw.concat, sw.first, sw.last, sw.min, sw.max, sw.collect_list, sw.count]).map(
            lambda a: a(words)
        ),
    )


def windows() -> st.SearchStrategy[Any]:
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
        tables(),
        st.builds(lambda: sw.edges(Hills())),
    )


@st.composite
def workloads(draw: st.DrawFn, aggregates: st.SearchStrategy[Any] | None = None) -> sw.Workload:
    """A workload of one to four queries."""
    keys = draw(st.sampled_from([[], [], ["k"], ["k", "j"]]))
    order = draw(st.sampled_from([[], [], [], ["o"]]))
    lateness = draw(st.sampled_from([0, 0, 3, 15, 1000]))
    where = draw(st.sampled_from([None, None, None, "v > -3 or w = 'c'"]))
    workload = sw.Workload("t", keys=keys, order=order, lateness=lateness, where=where)
    for i in range(draw(st.integers(1, 4))):
        one = aggregates_over() if aggregates is None else aggregates
        computed = draw(st.lists(one, min_size=1, max_size=3))
        named = {f"q{i}_{n}": a for n, a in enumerate(computed)}
        keyed = [tables(st.one_of(st.none(), st.sampled_from("xyz")))] if "k" in keys else []
        window = draw(st.one_of(windows(), windows(), *keyed))
        workload = workload.query(f"q{i}", window, empty=window.on_grid and draw(st.booleans()), **named)
    return workload


def rows(values: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[Any]:
    """One row: its time, and all columns that workloads read. The measures ``u`` and ``z`` advance with time."""

    def measured(row: dict[str, Any]) -> dict[str, Any]:
        u = None if row["u"] is None else 100 + row["t"] / 2
        return {**row, "u": u, "z": None if row["z"] is None else row["t"] // 3}

    return _rows(values).map(measured)


def _rows(values: st.SearchStrategy[Any] | None) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {
            "t": st.integers(-30, 60),
            "v": st.one_of(st.none(), st.integers(-5, 5)) if values is None else values,
            "w": st.one_of(st.none(), st.sampled_from("abc")),
            "k": st.one_of(st.none(), st.sampled_from("xy")),
            "j": st.integers(0, 1),
            "o": st.one_of(st.none(), st.integers(0, 3)),
            "u": st.sampled_from([1, 1, 1, 1, None]),
            "z": st.sampled_from([1, 1, 1, None]),
        }
    )


@st.composite
def steps(
    draw: st.DrawFn, values: st.SearchStrategy[Any] | None = None
) -> list[tuple[list[list[dict[str, Any]]], int | None]]:
    """Epochs: some chunks of rows, then a watermark (None: the last, at the end of the stream)."""
    marks = sorted(draw(st.lists(st.integers(-20, 70), max_size=4)))
    chunks = st.lists(st.lists(rows(values), max_size=6), max_size=3)
    return [(draw(chunks), mark) for mark in [*marks, None]]


class EveryThird:
    """A deterministic window of the user's: one begins with every third row, the oldest ends a row later."""

    def __init__(self) -> None:
        self.seen = 0

    def on_record(self, time: int, row: dict[str, Any]) -> tuple[int, int]:
        self.seen += 1
        return int(self.seen % 3 == 1), int(self.seen > 4 and self.seen % 3 == 2)


class EverySecond:
    """The same idea with every second row, for a whole batch at once."""

    def __init__(self) -> None:
        self.seen = 0

    def on_record(self, time: int, row: dict[str, Any]) -> tuple[int, int]:
        begins, ends = self.on_batch(np.array([time]), {})
        return int(begins[0]), int(ends[0])

    def on_batch(self, times: np.ndarray, columns: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        number = self.seen + np.arange(len(times))
        self.seen += len(times)
        return (number % 2 == 0).astype(int), ((number > 2) & (number % 2 == 0)).astype(int)


class LastThree:
    """A non-deterministic window of the user's: at most three rows, reported when a value is positive."""

    def __init__(self) -> None:
        self.size = 0

    def on_record(self, time: int, row: dict[str, Any]) -> sw.Evict:
        self.size += 1
        gone = max(0, self.size - 3)
        self.size -= gone
        return sw.Evict(gone, (row["v"] or 0) > 0)


class SessionByEdges:
    """A window that places its edges: rows at most a gap apart belong together, and late ones join sessions."""

    gap = 5

    def notify_context(self, time: int, row: dict[str, Any], edges: Any) -> None:
        if edges.ends and time <= edges.ends[-1]:
            edges.remove_end(edges.ends[-1])
        else:
            edges.add_start(time)
        edges.add_end(time + self.gap)


class AfterEach:
    """Windows that overlap, start at other rows than those that place them, and end in another order than theirs."""

    def notify_context(self, time: int, row: dict[str, Any], edges: Any) -> None:
        v = row["v"]
        if v is not None and v > 0:
            edges.add_start(time + v // 2)
            edges.add_end(time + 6 - v // 2)


class BetweenWords:
    """Open from one word to another, which may never come; what it did last is in the object."""

    def __init__(self) -> None:
        self.is_open = False

    def notify_context(self, time: int, row: dict[str, Any], edges: Any) -> None:
        if row["w"] == "a" and not self.is_open:
            edges.add_start(time)
        elif row["w"] == "b" and self.is_open:
            edges.add_end(time + 1)
        else:
            return
        self.is_open = not self.is_open


def at_most_five(total: dict[str, Any], oldest: dict[str, Any]) -> bool:
    """A slide policy: whatever leaves five rows may go."""
    return bool(total["n"] - oldest["n"] >= 5)


def leaves_three(total: dict[str, Any], oldest: dict[str, Any]) -> bool:
    """A slide policy that may fail for some rows and hold for more of them, since values are negative too."""
    return bool((total["v"] or 0) - (oldest["v"] or 0) >= 3)


def context_windows() -> st.SearchStrategy[Any]:
    """One window that only rows in order can tell."""
    few, some = st.integers(1, 4).map(sw.rows), st.integers(1, 6).map(sw.rows)
    measure = st.sampled_from([1, 2.5, 4, 7.5, 0.1]).map(lambda x: sw.units(x, "u"))
    coarse, other = st.sampled_from([2.5, 4]).map(lambda x: sw.units(x, "u")), st.integers(1, 5)
    ticks = st.one_of(few, st.integers(2, 15), coarse)
    return st.one_of(
        st.builds(sw.tumbling, some),
        st.builds(lambda n, m: sw.sliding(n, every=m), some, some),
        st.builds(lambda n, e, o: sw.sliding(n, every=e, offset=o), some, st.integers(2, 15), st.integers(-9, 9)),
        st.builds(lambda n, m: sw.sliding(n, every=m), st.integers(1, 20), few),
        st.builds(lambda x, y: sw.sliding(x, every=y), measure, measure),
        st.builds(lambda x, y: sw.sliding(x, every=y), measure, st.one_of(few, st.integers(2, 15))),
        st.builds(lambda x, y: sw.sliding(x, every=y), st.one_of(some, st.integers(1, 20)), coarse),
        st.builds(lambda x, z: sw.sliding(x, every=sw.units(z, "z")), measure, other),
        on_measures(),
        trailing(),
        row_sessions(),
        st.sampled_from(["v > 2", "v = 0", "w = 'a'"]).map(sw.punctuated),
        st.builds(
            lambda start, end, closed: sw.punctuated(start, end, closed=closed),
            st.sampled_from(["v > 2", "w = 'a'"]),
            st.sampled_from(["v < 0", "w = 'b'", "v = 4"]),
            st.sampled_from(["left", "both"]),
        ),
        st.builds(
            lambda c, n: sw.frames(c, min_rows=n),
            st.sampled_from(["v > 0", "w = 'a'", "v is not null"]),
            st.integers(1, 3),
        ),
        st.just(sw.user_defined(EveryThird)),
        st.just(sw.user_defined(EverySecond)),
        st.just(sw.user_defined(LastThree, columns=["v"], deterministic=False)),
        st.sampled_from([SessionByEdges, AfterEach, BetweenWords]).map(
            lambda places: sw.user_defined(places, columns=["v", "w"])
        ),
        st.builds(lambda m: sw.policy(at_most_five, watch={"n": sw.count()}, every=m), ticks),
        st.builds(
            lambda m, o: sw.policy(at_most_five, watch={"n": sw.count()}, every=m, offset=o),
            st.integers(2, 15),
            st.integers(-9, 9),
        ),
        st.builds(lambda m: sw.policy(leaves_three, watch={"v": sw.sum("v")}, every=m, monotone=False), ticks),
        st.builds(lambda m: sw.adaptive("v", confidence=0.9, every=m), ticks),
        st.builds(
            lambda m, o: sw.adaptive("v", confidence=0.9, every=m, offset=o), st.integers(2, 15), st.integers(1, 9)
        ),
    )


def row_sessions() -> st.SearchStrategy[Any]:
    """Sessions of limited length, and those in which every row has a gap, which may be null or none."""
    gap, longest = st.integers(1, 12), st.integers(1, 25)
    expression = st.sampled_from(["v", "case when w = 'a' then 20 when w = 'b' then 2 end", "j * 9 - 1"]).map(sw.expr)
    return st.one_of(
        st.builds(lambda g, n: sw.session(g, max_length=n), gap, longest),
        expression.map(sw.session),
        st.builds(lambda g, n: sw.session(g, max_length=n), expression, longest),
    )


def trailing() -> st.SearchStrategy[Any]:
    """One window as of each row."""
    closed = st.sampled_from(["right", "left", "both", "neither"])
    length = st.one_of(st.integers(1, 40), st.integers(1, 6).map(sw.rows))
    return st.builds(lambda n, c: sw.trailing(n, closed=c), length, closed)


def on_measures() -> st.SearchStrategy[Any]:
    """One window on positions or on a measure, of the kinds that are mostly on event time."""
    step, times, first = st.integers(1, 3), st.integers(1, 4), st.integers(0, 6)
    size = st.sampled_from([1, 2.5, 0.1, 0.75])
    at = st.sampled_from([-3, 99.5, 110, 115.25])
    return st.one_of(
        st.builds(lambda s, n: sw.between(sw.rows(s), sw.rows(s + n)), first, step),
        st.builds(lambda e, s: sw.landmark(every=sw.rows(e), since=s), step, first),
        st.builds(lambda e, k: sw.cumulative(sw.rows(e * k), every=sw.rows(e)), step, times),
        st.builds(
            lambda e, k, o: sw.cumulative(sw.rows(e * k), every=sw.rows(e), offset=sw.rows(o)), step, times, first
        ),
        st.builds(lambda s, n: sw.between(sw.units(s, "u"), sw.units(s + n, "u")), at, st.sampled_from([0.5, 7, 30])),
        st.builds(lambda e, s: sw.landmark(every=sw.units(e, "u"), since=s), size, at),
        st.builds(lambda e: sw.cumulative(sw.units(round(e * 3, 3), "u"), every=sw.units(e, "u")), size),
        st.builds(lambda e, k: sw.cumulative(sw.units(e * k, "z"), every=sw.units(e, "z")), step, times),
        st.builds(lambda e, s: sw.landmark(every=sw.units(e, "z"), since=s), step, st.integers(-8, 8)),
        st.sampled_from([0.5, 2, 4.25]).map(lambda gap: sw.session(sw.units(gap, "u"))),
        step.map(lambda gap: sw.session(sw.units(gap, "z"))),
    )


def any_windows() -> st.SearchStrategy[Any]:
    """One window of any kind."""
    return st.one_of(windows(), context_windows())


@st.composite
def mixed_workloads(draw: st.DrawFn) -> sw.Workload:
    """A workload of one to four queries of all kinds, in which at least one needs rows in order."""
    lateness = draw(st.sampled_from([0, 0, 3, 15, 1000]))
    keys, order = draw(st.sampled_from([[], [], ["k"]])), draw(st.sampled_from([[], [], [], ["o"]]))
    punctuation = draw(st.sampled_from([None, None, "w = 'c'", "v in (1, 3) or w = 'b'"]))
    workload = sw.Workload("t", keys=keys, order=order, lateness=lateness, punctuation=punctuation)
    workload = workload.query("ints", sw.tumbling(7), n=sw.count())
    aggregates = aggregates_over().filter(lambda a: a.base.name not in ("m4", "longest_rise"))
    for i in range(draw(st.integers(1, 3))):
        window = draw(context_windows() if i == 0 else st.one_of(context_windows(), windows()))
        computed = draw(st.lists(aggregates, min_size=1, max_size=2))
        workload = workload.query(f"q{i}", window, **{f"q{i}_{n}": a for n, a in enumerate(computed)})
    return workload
