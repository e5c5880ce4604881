"""User code that goes wrong: the error names the query's window, the record and the rule, and the operator goes on."""

from __future__ import annotations

import re

import numpy as np
import pytest

import slicewise as sw
from slicewise.errors import DataError


class Says:
    """Says what it is told for the record at time 5, and otherwise begins a window with each record."""

    answer: object = None

    def on_record(self, time, row):
        if time != 5:
            return 1, int(time > 1)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def saying(answer):
    return type("Says", (Says,), {"answer": answer})


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        (ValueError("no"), "raised ValueError('no')"),
        (None, "must return two counts (begins, ends); got None"),
        ((1, 2, 3), "must return two counts (begins, ends); got (1, 2, 3)"),
        ((1, "x"), "must return two counts (begins, ends); got (1, 'x')"),
        (
            sw.Evict(1, True),
            "must return two counts (begins, ends); got Evict(n=1, trigger=True); say deterministic=False",
        ),
        ((-1, 0), "must not return negative counts; got -1 and 0"),
        ((0, 9), "ended more windows than had begun: 9 ends"),
    ],
)
def test_a_record_that_user_code_stumbles_over_is_left_out(answer, rule):
    workload = sw.Workload("t").query("mine", sw.user_defined(saying(answer)), n=sw.count())
    op = workload.query("other", sw.tumbling(100), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 5, 6]})
    message = f"user_defined(Says, columns=[]) at the record of time 5: {rule}; the record was left out"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.advance(10)
    found = {(r.query, r.start): r.values["n"] for r in op.close()}
    assert found == {("mine", 1): 1, ("mine", 2): 1, ("mine", 6): 1, ("other", 0): 4}


def test_a_batch_of_the_wrong_shape_is_left_out():
    class Short:
        def on_batch(self, times, columns):
            return np.zeros(len(times) - 1, int), np.zeros(len(times), int)

    op = sw.Workload("t").query("mine", sw.user_defined(Short), n=sw.count()).operator()
    op.process_batch({"t": [1, 2]})
    with pytest.raises(DataError, match=r"at a batch of 2 records from 1 to 2: must give two integer arrays"):
        op.advance(0)
    assert list(op.close()) == []


def test_a_row_that_a_batch_fails_on_is_found_by_halves_and_the_others_count():
    calls = []

    class Counting:
        """Windows of two rows."""

        seen = 0

        def on_batch(self, times, columns):
            calls.append(len(times))
            before, self.seen = self.seen, self.seen + len(times)
            if np.isin(times, [5, 11]).any():
                raise ValueError("odd")
            odd = (before + np.arange(len(times))) % 2 == 0
            return odd.astype(int), (odd & (before + np.arange(len(times)) > 0)).astype(int)

    op = sw.Workload("t", keys=["k"]).query("mine", sw.user_defined(Counting), n=sw.count()).operator()
    op.process_batch({"t": range(16), "k": ["a"] * 16})
    message = (
        "Counting, columns=[]) at the record of time 5, key k='a': raised ValueError('odd'); the record "
        "was left out, and so was 1 other"
    )
    with pytest.raises(DataError, match=f"{re.escape(message)}$"):
        op.advance(20)
    assert [(r.start, r.values["n"]) for r in op.close()] == [(t, 2) for t in (0, 2, 4, 7, 9, 12, 14)]
    # All at once, then halves: no more than two for each level and row, and once more without the two.
    assert len(calls) <= 1 + 1 + 4 * 4 + 3
    assert calls[0] == 16


def test_a_batch_that_fails_only_as_a_whole_is_left_out_whole():
    class Few:
        def on_batch(self, times, columns):
            if len(times) > 3:
                raise MemoryError("too many")
            return np.ones(len(times), int), np.zeros(len(times), int)

    op = sw.Workload("t").query("mine", sw.user_defined(Few), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 5, 9]})
    message = r"at a batch of 4 records from 1 to 9: raised MemoryError\('too many'\); they were left out$"
    with pytest.raises(DataError, match=message):
        op.advance(10)
    assert list(op.close()) == []


def test_evicting_more_than_there_is_names_the_record():
    class Greedy:
        def on_record(self, time, row):
            return sw.Evict(5 if time == 3 else 0, True)

    op = sw.Workload("t").query("q", sw.user_defined(Greedy, deterministic=False), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3, 4]})
    with pytest.raises(
        DataError, match=r"record of time 3: evicted more rows than there are: 5; the record was left out"
    ):
        op.advance(3)
    assert [(r.start, r.end, r.values["n"]) for r in op.close()] == [(1, 1, 1), (1, 2, 2), (1, 4, 3)]


def test_a_policy_that_raises_names_the_record():
    def evict(total, oldest):
        if total["s"] == 13:
            raise ZeroDivisionError("thirteen")
        return total["s"] - oldest["s"] >= 10

    window = sw.policy(evict, watch={"s": sw.sum("v")})
    op = sw.Workload("t").query("q", window, s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 2, 3], "v": [6, 7, 8]})
    with pytest.raises(
        DataError, match=r"record of time 2: raised ZeroDivisionError\('thirteen'\); the record was left"
    ):
        op.advance(5)
    assert [r.values["s"] for r in op.close()] == [6, 14]


def test_a_policy_is_reported_at_ticks_of_any_measure():
    """At most three rows; one every two units of time or of km, with what is there by then."""

    def more_than_three(total, oldest):
        return total["n"] - oldest["n"] >= 3

    def told(every):
        window = sw.policy(more_than_three, watch={"n": sw.count()}, every=every)
        op = sw.Workload("t").query("q", window, vs=sw.collect_list("v")).operator()
        op.process_batch({"t": [0, 1, 2, 5, 6], "v": [0, 1, 2, 3, 4], "km": [0.5, 1.0, 2.5, 3.0, 7.0]})
        found = [*op.advance(4), *op.close()]
        return [(r.start, r.end, r.values["vs"]) for r in found]

    assert told(sw.rows(2)) == [(0, 2, [0, 1]), (1, 4, [1, 2, 3])]
    assert told(2) == [(0, 2, [0, 1]), (0, 4, [0, 1, 2]), (1, 6, [1, 2, 3]), (2, 8, [2, 3, 4])]
    assert told(sw.units(2, "km")) == [(0.5, 2, [0, 1]), (1.0, 4, [1, 2, 3]), (1.0, 6, [1, 2, 3]), (2.5, 8, [2, 3, 4])]


def test_the_papers_running_example_keeps_the_longest_suffix_whose_sum_is_at_most_ten():
    """Monoid tree aggregator, section 4.1.3: evict while what is left sums to more than 10, and report its maximum."""

    def too_much(total, oldest):
        return total["s"] - oldest["s"] + oldest["last"] > 10

    watch = {"s": sw.sum("v"), "last": sw.last("v")}
    op = sw.Workload("t").query("q", sw.policy(too_much, watch=watch), peak=sw.max("v"), s=sw.sum("v")).operator()
    values = [3, 4, 2, 8, 1, 1, 9, 5]
    op.process_batch({"t": list(range(len(values))), "v": values})
    found = [(r.values["s"], r.values["peak"]) for r in op.close()]
    expected = []
    for i in range(len(values)):
        suffix = next(values[j : i + 1] for j in range(i + 1) if sum(values[j : i + 1]) <= 10)
        expected.append((sum(suffix), max(suffix)))
    assert found == expected


def test_everything_older_than_the_maximum_is_evicted():
    def older(total, oldest):
        return oldest["peak"] < total["peak"]

    op = sw.Workload("t").query("q", sw.policy(older, watch={"peak": sw.max("v")}), vs=sw.collect_list("v")).operator()
    op.process_batch({"t": [0, 1, 2, 3, 4], "v": [2, 5, 3, 4, 6]})
    assert [r.values["vs"] for r in op.close()] == [[2], [5], [5, 3], [5, 3, 4], [6]]


# -- what a policy watches


def inverse(v):
    return 1 / v


inverses = sw.aggregate(lift=inverse, combine=lambda a, b: a + b, identity=0.0, name="inverses")


def never(total, oldest):
    return False


def at_most(n):
    def evict(total, oldest):
        return total["n"] - oldest["n"] >= n

    return evict


def test_a_watched_aggregate_that_raises_names_window_time_and_key_and_costs_the_row():
    window = sw.policy(never, watch={"s": inverses("v")})
    workload = sw.Workload("t", keys=["k"]).query("q", window, vs=sw.collect_list("v"))
    op = workload.query("all", sw.tumbling(100), vs=sw.collect_list("v")).operator()
    op.process_batch({"t": [1, 2, 3, 4], "k": ["a", "b", "b", "a"], "v": [1, 2, 0, 4]})
    message = (
        "policy(never, every=rows(1)) at the record of time 3, key k='b': raised ZeroDivisionError('division by zero');"
        " the record was left out"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.advance(5)
    found = [(r.key[0], r.query, r.values["vs"]) for r in op.close()]
    assert sorted(found) == [
        ("a", "all", [1, 4]),
        ("a", "q", [1]),
        ("a", "q", [1, 4]),
        ("b", "all", [2, 0]),
        ("b", "q", [2]),
    ]


def test_of_several_keys_the_first_row_is_named_and_the_others_are_counted():
    op = sw.Workload("t", keys=["k"]).query("q", sw.policy(never, watch={"s": inverses("v")}), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3, 4], "k": ["a", "b", "c", "a"], "v": [0, 0, 0, 4]})
    message = (
        "policy(never, every=rows(1)) at the record of time 1, key k='a': raised ZeroDivisionError('division by zero');"
        " the record was left out, and so were 2 others"
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.advance(0)
    assert [(r.key, r.values["n"]) for r in op.close()] == [(("a",), 1)]


def test_a_watched_combine_that_raises_costs_the_row_that_came_last():
    def careful(a, b):
        if a + b > 10:
            raise OverflowError("too much")
        return a + b

    small = sw.aggregate(combine=careful, identity=0, name="small")
    op = sw.Workload("t").query("q", sw.policy(never, watch={"s": small("v")}), vs=sw.collect_list("v")).operator()
    op.process_batch({"t": [1, 2, 3, 4], "v": [3, 6, 5, 1]})
    with pytest.raises(
        DataError, match=r"the record of time 3: raised OverflowError\('too much'\); the record was left"
    ):
        op.advance(5)
    assert [r.values["vs"] for r in op.close()] == [[3], [3, 6], [3, 6, 1]]


def test_a_policy_goes_on_after_a_failure_a_snapshot_and_a_restart():
    window = sw.policy(at_most(2), watch={"n": sw.count(), "s": inverses("v")})
    workload = sw.Workload("t", lateness=100).query("q", window, vs=sw.collect_list("v"))
    op = workload.operator()
    op.process_batch({"t": [1, 3, 5], "v": [1, 0, 2]})
    with pytest.raises(DataError, match="at the record of time 3: raised ZeroDivisionError"):
        op.advance(6)
    other = workload.operator().restore(op.snapshot())
    for one in (op, other):
        one.process_batch({"t": [4, 7], "v": [5, 6]})
        assert [r.values["vs"] for r in one.close()] == [[1], [1, 5], [5, 2], [2, 6]]


def test_times_are_shown_as_such():
    op = sw.Workload("t").query("q", sw.policy(never, watch={"s": inverses("v")}), n=sw.count()).operator()
    op.process_batch({"t": np.array(["2024-01-01T00:00:03.25"], "M8[us]"), "v": [0]})
    with pytest.raises(DataError, match=r"at the record of time 2024-01-01 00:00:03.250000: raised ZeroDivisionError"):
        op.close()


def test_a_policy_that_watches_nothing_is_asked_about_nothing():
    seen = []

    def evict(total, oldest):
        seen.append((total, oldest))
        return len(seen) % 3 == 0

    op = sw.Workload("t").query("q", sw.policy(evict), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3]})
    assert len(op.close()) > 0
    assert set(map(str, seen)) == {"({}, {})"}


@pytest.mark.parametrize(
    ("watch", "message"),
    [
        ({"s": sw.sum()}, "`watch`: sum() for 's' needs a column, as in sum('v')"),
        ({"s": inverses()}, "`watch`: inverses() for 's' needs a column, as in inverses('v')"),
        ({3: sw.sum("v")}, "`watch` must map names to aggregates; got 3, which is not a string"),
    ],
)
def test_what_cannot_be_watched_is_refused_when_the_window_is_made(watch, message):
    with pytest.raises(sw.QueryError, match=f"^{re.escape(message)}$"):
        sw.policy(never, watch=watch)


def test_a_watched_sum_over_text_is_refused_when_types_are_known():
    op = sw.Workload("t").query("q", sw.policy(never, watch={"s": sw.sum("w")}), n=sw.count()).operator()
    message = "`sum` of column 'w' needs numbers; got string: cast the column to a numeric type first"
    with pytest.raises(sw.AggregateError, match=f"^{re.escape(message)}$"):
        op.process_batch({"t": [1], "w": ["a"]})
