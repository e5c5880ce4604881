"""Windows of every kind on rows and units: the sections' own examples, and how little is kept for them."""

from __future__ import annotations

import pytest

import slicewise as sw
from slicewise.errors import DataError


def bounds(results):
    return [(r.start, r.end, *r.values.values()) for r in results]


def test_from_the_100th_to_the_200th_tuple():
    op = sw.Workload("t").query("q", sw.between(sw.rows(100), sw.rows(200)), total=sw.sum("t"), n=sw.count()).operator()
    op.process_batch({"t": list(range(250))})
    assert bounds(op.advance(150)) == []
    assert bounds(op.advance(250)) == [(100, 200, sum(range(100, 200)), 100)]
    assert bounds(op.close()) == []


def test_a_session_ends_after_two_km_without_a_reading():
    op = sw.Workload("t").query("trip", sw.session(sw.units(2, "km")), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3, 4, 5], "km": [0.0, 1.5, 3.5, 5.75, 6.0]})
    # The reading at 5.75 is more than 2 km behind the one at 3.5, and ends the session when the watermark reaches it.
    assert bounds(op.advance(3)) == []
    assert bounds(op.advance(4)) == [(0.0, 5.5, 3)]
    assert bounds(op.close()) == [(5.75, 8.0, 2)]


def test_a_late_reading_joins_two_sessions():
    op = sw.Workload("t", lateness=100).query("trip", sw.session(sw.units(2, "km")), n=sw.count()).operator()
    op.process_batch({"t": [1, 5, 9], "km": [0, 3, 9]})
    assert [(r.change, r.start, r.end) for r in op.advance(9)] == [("insert", 0, 2), ("insert", 3, 5)]
    op.process(2, {"km": 2})
    assert [(r.change, r.start, r.end) for r in op.advance(9)] == [
        ("retract", 0, 2),
        ("retract", 3, 5),
        ("insert", 0, 5),
    ]


def test_landmarks_and_growing_windows_count_rows():
    op = (
        sw.Workload("t")
        .query("ever", sw.landmark(every=sw.rows(2)), vs=sw.collect_list("t"))
        .query("grow", sw.cumulative(sw.rows(4), every=sw.rows(2)), vs=sw.collect_list("t"))
        .operator()
    )
    op.process_batch({"t": [3, 1, 2, 4, 5, 6, 7]})
    found = [(r.query, r.start, r.end, r.values["vs"]) for r in op.close()]
    assert found == [
        ("ever", 0, 2, [1, 2]),
        ("ever", 0, 4, [1, 2, 3, 4]),
        ("ever", 0, 6, [1, 2, 3, 4, 5, 6]),
        ("grow", 0, 2, [1, 2]),
        ("grow", 0, 4, [1, 2, 3, 4]),
        ("grow", 4, 6, [5, 6]),
    ]


def test_a_landmark_on_units_reports_the_steps_that_brought_rows():
    op = sw.Workload("t").query("q", sw.landmark(every=sw.units(5, "km"), since=0), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3, 4], "km": [-3, 1, 2, 13]})
    assert bounds(op.close()) == [(0, 5, 2), (0, 15, 3)]


KINDS = [
    sw.sliding(sw.units(100, "km"), every=sw.units(10, "km")),
    sw.cumulative(sw.units(100, "km"), every=sw.units(10, "km")),
    sw.landmark(every=sw.units(10, "km")),
    sw.session(sw.units(3, "km")),
    sw.between(sw.units(100, "km"), sw.units(5000, "km")),
]


@pytest.mark.slow
@pytest.mark.parametrize("window", KINDS, ids=repr)
def test_ordered_units_keep_slices_and_at_most_one_tuple_per_key(window):
    op = sw.Workload("t", keys=["k"]).query("q", window, n=sw.count()).operator(ordered=True)
    for t in range(1000):
        op.process(t, {"km": t, "k": t % 2})
    stats = op.stats()
    assert stats.tuples <= 2
    assert stats.slices <= 2 * (100 // 10 + 2)


def test_out_of_order_units_keep_only_rows_that_may_get_company():
    op = sw.Workload("t").query("q", sw.landmark(every=sw.units(10, "km")), n=sw.count()).operator()
    op.process_batch({"t": list(range(1000)), "km": list(range(1000))})
    op.advance(990)
    assert op.stats().tuples == 10


def test_a_row_that_goes_back_behind_a_slice_is_named():
    op = sw.Workload("t").query("q", sw.between(sw.units(0, "km"), sw.units(5, "km")), n=sw.count()).operator()
    op.process_batch({"t": [1, 2, 3], "km": [1, 9, 12]})
    assert bounds(op.advance(10)) == [(0, 5, 1)]
    op.process(11, {"km": 4})
    with pytest.raises(DataError, match="the measure 'km' must not go backwards; got 4 at time 11, after 12; the row"):
        op.advance(20)
    assert bounds(op.close()) == []
