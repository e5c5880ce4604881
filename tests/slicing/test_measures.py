"""Windows on measures other than time: rows that fit and rows that do not, and two measures at once."""

from __future__ import annotations

import pickle
import re
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.errors import DataError
from slicewise.kernels import bisect
from slicewise.slicing.rows.slides import last_tick
from slicewise.testing import Oracle
from tests.slicing.running import TYPES, assert_same, columns_of, key_of
from tests.slicing.strategies import at_most_five, steps

KM = sw.units(10, "km")


def told(results) -> list[tuple]:
    return [(r.query, r.start, r.values["n"]) for r in results]


# -- where windows lie


@given(
    st.lists(st.integers(-(2**60), 2**60), max_size=20), st.integers(1, 10**6), st.integers(-50, 50), st.integers(0, 9)
)
def test_the_last_tick_at_or_before_a_whole_number(values, step, offset, length):
    ticks = last_tick(np.array(values, np.int64), step, offset, length)
    assert ticks.tolist() == [(value - offset - length) // step for value in values]


@given(
    st.lists(st.integers(0, 30), max_size=30).map(sorted),
    st.lists(st.tuples(st.integers(-1, 31), st.integers(0, 30), st.integers(0, 30)), max_size=10),
    st.booleans(),
    st.sampled_from([np.int64, np.float64]),
)
def test_places_in_one_run_are_those_in_ranges_of_it(values, wanted, right, dtype):
    value = np.array(values, dtype)
    bounds = [sorted((min(a, len(values)), min(b, len(values)))) for _, a, b in wanted]
    low, high = (np.array([pair[i] for pair in bounds], np.int64) for i in (0, 1))
    number = np.array([w for w, _, _ in wanted], dtype)
    run = np.clip(value.searchsorted(number, "right" if right else "left"), low, high)
    assert bisect(value, number, low, high, right=right).tolist() == run.tolist()


# -- measures that are no numbers


@pytest.mark.parametrize(
    ("values", "named"),
    [(["a", "b"], "string"), ([b"a", b"b"], "binary"), ([False, True], "bool"), ([[1], [2]], "array")],
)
@pytest.mark.parametrize("window", [sw.tumbling, sw.session])
def test_what_measures_windows_must_be_numbers(window, values, named):
    op = sw.Workload("t").query("q", window(sw.units(4, "s")), n=sw.count()).operator()
    with pytest.raises(DataError, match=rf"^'s' measures .*units\(4, 's'\).* and is {named}.*; it must hold numbers$"):
        op.process_batch({"t": [1, 2], "s": values})
    op.process_batch({"t": [1, 2], "s": [1, 5]})
    assert [result.values["n"] for result in op.close()] == ([1, 1] if window is sw.tumbling else [2])


# -- measures that go backwards


def test_a_measure_that_goes_backwards_names_the_row_and_the_column():
    op = sw.Workload("t").query("q", sw.tumbling(KM), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3], "km": [1.0, 5.0, 20.0]})
    op.advance(0)
    op.process(2, {"km": 30.0})
    message = (
        "the measure 'km' must not go backwards; got 30.0 at time 2, before 20.0 at time 3; the row was left out of "
    )
    message += "the windows on 'km'"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        op.advance(1)
    assert told(op.close()) == [("q", 0, 2), ("q", 20, 1)]


def test_all_rows_that_do_not_fit_are_left_out_at_once():
    """
    ::

        time   1   2   3   4   5   6   7
        km     0   9   5  12  11  12  40       3 and 5 go back behind the rows before them, which came with them
    """
    op = sw.Workload("t").query("q", sw.tumbling(KM), n=sw.count()).operator()
    op.process_batch({"t": np.arange(1, 8), "km": [0, 9, 5, 12, 11, 12, 40]})
    with pytest.raises(DataError, match=r"got 5 at time 3, after 9 at time 2; the row was left out") as caught:
        op.advance(6)
    assert caught.value.__notes__ == ["1 more rows were left out"]
    assert told(op.advance(6)) == [("q", 0, 2)]
    assert told(op.close()) == [("q", 10, 2), ("q", 40, 1)]


def test_other_queries_count_the_row_that_does_not_fit():
    workload = (
        sw.Workload("t")
        .query("km", sw.tumbling(KM), n=sw.count())
        .query("liters", sw.tumbling(sw.units(10, "liters")), n=sw.count())
        .query("both", sw.sliding(KM, every=sw.units(10, "liters")), n=sw.count())
        .query("rows", sw.tumbling(sw.rows(2)), n=sw.count())
        .query("time", sw.tumbling(10), n=sw.count())
    )
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3, 4], "km": [1.0, 5.0, 2.0, 6.0], "liters": [1, 2, 3, 4]})
    with pytest.raises(
        DataError, match=r"the measure 'km' must not go backwards; got 2\.0 at time 3, after 5\.0 at time 2"
    ):
        op.advance(5)
    assert told(op.close()) == [
        ("time", 0, 4),
        ("km", 0, 3),
        ("liters", 0, 4),
        ("both", 1, 3),
        ("rows", 0, 2),
        ("rows", 2, 2),
    ]


def test_a_measure_must_be_a_finite_number():
    op = sw.Workload("t").query("q", sw.tumbling(KM), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3], "km": [1.0, float("nan"), 3.0]})
    with pytest.raises(
        DataError, match="the measure 'km' must be a finite number; got nan at time 2; the row was left out"
    ):
        op.advance(2)
    assert told(op.close()) == [("q", 0, 2)]


def test_a_row_that_does_not_fit_stays_out_after_a_restart():
    workload = sw.Workload("t").query("q", sw.tumbling(KM), n=sw.count())
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3], "km": [1.0, 9.0, 3.0]})
    with pytest.raises(DataError, match="must not go backwards"):
        op.advance(2)
    again = workload.operator().restore(pickle.loads(pickle.dumps(op.snapshot())))
    assert told(again.close()) == told(op.close()) == [("q", 0, 2)]


WINDOWS = st.sampled_from(
    [
        sw.tumbling(sw.units(4, "u")),
        sw.sliding(sw.units(4, "u"), every=sw.units(1.5, "u")),
        sw.sliding(sw.units(4, "u"), every=sw.rows(2)),
        sw.sliding(sw.rows(3), every=sw.units(2, "u")),
        sw.sliding(sw.units(4, "u"), every=sw.units(2, "z")),
        sw.sliding(sw.units(4, "u"), every=6),
        sw.policy(at_most_five, watch={"n": sw.count()}, every=sw.units(2, "u")),
        sw.tumbling(sw.rows(2)),
        sw.sliding(sw.units(2, "u"), every=sw.units(9, "u")),
        sw.between(sw.units(95, "u"), sw.units(105, "u")),
        sw.landmark(every=sw.units(3, "z"), since=-2),
        sw.cumulative(sw.units(6, "u"), every=sw.units(2, "u")),
        sw.session(sw.units(1.5, "u")),
    ]
)


def insist(advance) -> list[sw.Result]:
    """Take a step again until nothing is left out any more."""
    for _ in range(10):
        try:
            return list(advance())
        except DataError as error:
            if "must not go backwards" not in str(error):
                raise
    raise AssertionError("rows are left out for ever")


@given(st.lists(WINDOWS, min_size=1, max_size=3), steps(), st.data(), st.sampled_from([0, 5, 1000]), st.booleans())
def test_what_is_left_out_is_what_the_oracle_leaves_out(windows, epochs, data, lateness, keyed):
    """Measures that go astray, now and then: a row must fit between the last that does and the next that did before."""
    workload = sw.Workload("t", keys=["k"] if keyed else [], lateness=lateness)
    workload = workload.query("ints", sw.tumbling(7), n=sw.count())
    for i, window in enumerate(windows):
        workload = workload.query(f"q{i}", window, **{f"x{i}": sw.collect_list("w")})
    oracle, op = Oracle(workload), workload.operator(types=TYPES)
    astray = st.sampled_from([0, 0, 0, -3, 4])
    found, expected = [], []
    for chunks, mark in epochs:
        for chunk in chunks:
            for row in chunk:
                for name in ("u", "z"):
                    if row[name] is not None:
                        row[name] += data.draw(astray)
                oracle.process(row["t"], row, key_of(workload, row))
            op.process_batch(columns_of(chunk))
        expected.append(insist(oracle.close if mark is None else lambda mark=mark: oracle.advance(mark)))
        found.append(insist(op.close if mark is None else lambda mark=mark: op.advance(mark)))
    assert_same(found, expected)


# -- two measures


def test_the_last_ten_km_every_second_row():
    op = sw.Workload("t").query("q", sw.sliding(KM, every=sw.rows(2)), vs=sw.collect_list("t")).operator()
    op.process_batch({"t": [1, 2, 3, 4, 5, 6], "km": [0.0, 4.0, 11.0, 12.0, 30.0, None]})
    assert [(r.start, r.end, r.values["vs"]) for r in op.close()] == [(0, 2, [1, 2]), (1, 4, [2, 3, 4])]


def test_the_last_two_rows_every_ten_km():
    op = sw.Workload("t").query("q", sw.sliding(sw.rows(2), every=KM), vs=sw.collect_list("t")).operator()
    op.process_batch({"t": [1, 2, 3, 4, 5], "km": [0.0, 4.0, 11.0, 12.0, 30.0]})
    found = [*op.advance(5), *op.close()]
    assert [(r.start, r.end, r.values["vs"]) for r in found] == [
        (0.0, 10, [1, 2]),
        (11.0, 20, [3, 4]),
        (11.0, 30, [3, 4]),
        (12.0, 40, [4, 5]),
    ]


def test_steps_of_a_tenth_are_where_they_round_to():
    """0.1 is no binary fraction: 3 * 0.1 is more than 0.3, and a row at 0.3 lies in the window before."""
    op = sw.Workload("t").query("q", sw.tumbling(sw.units(0.1, "km")), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3], "km": [0.1, 0.3, 0.7]})
    oracle = Oracle(op.workload)
    for t, km in [(1, 0.1), (2, 0.3), (3, 0.7)]:
        oracle.process(t, {"km": km})
    assert [(r.start, r.end) for r in op.close()] == [(r.start, r.end) for r in oracle.close()]


def test_a_decimal_measure_is_read_in_its_own_units():
    km = [Decimal("0.50"), Decimal("1.25"), Decimal("1.75"), Decimal("3.00")]
    op = sw.Workload("t").query("q", sw.tumbling(sw.units(1, "km")), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3, 4], "km": km})
    assert [(r.start, r.end, r.values["n"]) for r in op.close()] == [(0, 1, 1), (1, 2, 2), (3, 4, 1)]
