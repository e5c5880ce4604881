"""Streams: as dense, as gappy and as disordered as they say, and the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from slicewise.errors import QueryError
from slicewise.testing import Stream, disordered, football, in_order

SECOND = 1_000_000


def test_in_order_stream_has_its_rate_and_order():
    stream = in_order(20_000, rate=2000, start=5 * SECOND)
    assert stream.times[0] == 5 * SECOND
    assert np.diff(stream.times).tolist() == [500] * 19_999
    assert stream.disorder() == 0
    assert stream.times.dtype == np.int64
    assert stream.columns["v"].dtype == np.int64
    assert stream.columns["x"].dtype == np.float64


def test_stream_may_begin_before_1970():
    times = in_order(2000, rate=1000, start=-SECOND).times
    assert times[0] == -SECOND
    assert times[1000] == 0


def test_football_has_five_gaps_a_minute():
    stream = football(60 * 3 * 2000, seed=4)
    minutes = (stream.times[-1] - stream.times[0]) / (60 * SECOND)
    gaps = np.diff(stream.times) > 1.4 * SECOND
    assert np.count_nonzero(gaps) == pytest.approx(5 * minutes, abs=1)
    assert np.all(np.diff(stream.times)[~gaps] == 500)


def test_bursts_keep_the_average_rate():
    steady, bursty = in_order(1000, rate=1000), in_order(1000, rate=1000, burst=50)
    assert (bursty.times[::50] == steady.times[::50]).all()
    assert np.diff(bursty.times[:50]).tolist() == [100] * 49


@pytest.mark.parametrize("rate", [3, 7, 30_000, 3_000_000])
def test_rates_that_do_not_divide_a_second_do_not_drift(rate):
    times = in_order(1000, rate=rate).times
    assert abs(times - np.arange(1000) * SECOND / rate).max() <= 0.5


def test_ties_are_as_many_as_asked_for():
    times = in_order(10_000, ties=0.3, seed=1).times
    assert np.mean(np.diff(times) == 0) == pytest.approx(0.3, abs=0.02)
    assert (np.diff(times) >= 0).all()


def test_keys_are_drawn_evenly_and_one_key_is_none():
    assert in_order(10).keys is None
    keys = in_order(10_000, keys=4, seed=2).keys
    assert keys is not None
    assert np.bincount(keys) == pytest.approx([2500] * 4, rel=0.1)


@pytest.mark.parametrize("fraction", [0.0, 0.2, 0.5, 1.0])
def test_disordered_delays_a_fraction_of_the_rows_within_the_bound(fraction):
    stream = in_order(20_000)
    arrived = disordered(stream, fraction=fraction, max_delay_us=2 * SECOND, seed=3)
    assert sorted(arrived.times.tolist()) == stream.times.tolist()
    assert arrived.disorder() == pytest.approx(fraction, abs=0.03)
    behind = np.maximum.accumulate(arrived.times) - arrived.times
    assert behind.max() <= 2 * SECOND
    assert fraction == 0 or behind.max() > 1.5 * SECOND


def test_disordered_keeps_rows_together():
    stream = in_order(1000, keys=3)
    stream = Stream(stream.times, {**stream.columns, "copy": stream.times * 2}, stream.keys)
    arrived = disordered(stream, seed=1)
    assert (arrived.columns["copy"] == arrived.times * 2).all()
    back = arrived.take(np.argsort(arrived.times, kind="stable"))
    assert (back.keys == stream.keys).all()
    assert (back.columns["v"] == stream.columns["v"]).all()


def test_same_seed_same_stream():
    def make(seed):
        return disordered(in_order(500, keys=5, ties=0.1, gaps_per_minute=5, seed=seed), seed=seed)

    one, two, other = make(1), make(1), make(2)
    assert list(one.rows()) == list(two.rows())
    assert list(one.rows()) != list(other.rows())


def test_values_do_not_depend_on_ties_or_gaps():
    plain, tied = in_order(100, seed=1), in_order(100, ties=0.5, gaps_per_minute=5, seed=1)
    assert (plain.columns["v"] == tied.columns["v"]).all()


def test_chunks_hold_every_row_once_and_in_order_of_arrival():
    stream = disordered(in_order(5000, keys=2), seed=1)
    for chunks in (list(stream.chunks(700)), list(stream.chunks_by_time(SECOND // 10))):
        assert [row for chunk in chunks for row in chunk.rows()] == list(stream.rows())
        assert all(len(chunk) for chunk in chunks)
    assert [len(chunk) for chunk in stream.chunks(2000)] == [2000, 2000, 1000]


def test_chunks_by_time_are_cut_where_the_largest_time_passes_a_multiple():
    #     -5  3   | 12  9  | 27 | 31
    stream = Stream(np.array([-5, 3, 12, 9, 27, 31]), {})
    assert [c.times.tolist() for c in stream.chunks_by_time(10)] == [[-5], [3], [12, 9], [27], [31]]


def test_rows_are_python_values():
    ((time, row, key),) = in_order(1, keys=3, seed=0).rows()
    assert [type(x) for x in (time, row["v"], row["x"], key, key[0])] == [int, int, float, tuple, int]


def test_empty_stream_has_no_chunks():
    stream = disordered(in_order(0, gaps_per_minute=5, keys=2))
    assert list(stream.chunks(3)) == list(stream.chunks_by_time(3)) == list(stream.rows()) == []
    assert stream.disorder() == 0.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n": -1}, "`n` must be at least 0 rows; got -1"),
        ({"rate": 0}, "`rate` must be positive; got 0"),
        ({"keys": 0}, "`keys` must be at least 1; got 0"),
        ({"gaps_per_minute": -1}, "`gaps_per_minute` must be 0 or more; got -1"),
        ({"gap": 0}, "`gap` must be at least 1 microsecond; got 0"),
        ({"gaps_per_minute": 60, "gap": SECOND}, "`gap` must be shorter than the 1 seconds from one gap to the next"),
        ({"burst": 0}, "`burst` must be at least 1 row; got 0"),
        ({"ties": 1.5}, "`ties` must be a share between 0 and 1; got 1.5"),
        ({"distinct": 0}, "`distinct` must be at least 1; got 0"),
    ],
)
def test_streams_that_make_no_sense_are_refused(wrong, message):
    with pytest.raises(QueryError, match=message):
        in_order(**{"n": 10, **wrong})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"fraction": -0.1}, "`fraction` must be a share between 0 and 1; got -0.1"),
        ({"max_delay_us": -1}, "`max_delay_us` must be 0 microseconds or more; got -1"),
    ],
)
def test_disorder_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(QueryError, match=message):
        disordered(in_order(10), **wrong)


def test_chunks_must_have_a_size():
    with pytest.raises(QueryError, match="`size` must be at least 1 row; got 0"):
        next(in_order(10).chunks(0))
    with pytest.raises(QueryError, match="`us` must be at least 1 microsecond; got 0"):
        next(in_order(10).chunks_by_time(0))
