"""The oracle on examples small enough to check by eye; one column of a timeline is one unit of time."""

from __future__ import annotations

import random

import pytest

from slicewise.aggregates.arithmetic import Count
from slicewise.errors import DataError
from slicewise.results import Result
from slicewise.testing import Oracle, fold
from slicewise.windows import Cumulative, between, cumulative, landmark, session, sliding, tumbling
from slicewise.workload import Workload
from tests.testing.timelines import Collect, feed, late, oracle_of, reports

# -- windows that do not depend on the rows


def test_tumbling_windows_are_reported_when_the_watermark_reaches_their_end():
    # 0         10        20        30
    # a   b    c|d        |    e
    # [0--------)
    #           [1--------)
    #                     [2--------)
    oracle = oracle_of(tumbling(10))
    feed(oracle, "a@0 b@4 c@9 d@10 e@25")
    assert reports(oracle.advance(9)) == []
    assert reports(oracle.advance(10)) == ["insert 0-10 r0 abc"]
    assert reports(oracle.advance(29)) == ["insert 10-20 r0 d"]
    assert reports(oracle.close()) == ["insert 20-30 r0 e"]


def test_results_carry_key_query_and_values():
    oracle = Oracle(Workload(time="t", keys=["k"]).query("per_ten", tumbling(10), n=Count(), got=Collect("v")))
    oracle.process_batch([(1, {"v": "a"}, ("x",)), (2, {"v": "b"}, (None,)), (3, {"v": "c"}, ("x",))])
    assert oracle.close() == [
        Result(("x",), "per_ten", 0, 10, "insert", 0, {"n": 2, "got": "ac"}),
        Result((None,), "per_ten", 0, 10, "insert", 0, {"n": 1, "got": "b"}),
    ]


def test_negative_times_and_offsets_are_floored():
    # -13      -3         7
    # a       b|c         |
    oracle = oracle_of(tumbling(10, offset=7))
    feed(oracle, "a@-13 b@-4 c@-3")
    assert reports(oracle.close()) == ["insert -13--3 r0 ab", "insert -3-7 r0 c"]


def test_row_is_in_every_sliding_window_that_holds_it():
    # -5   0    5    10   15
    #         a    b
    # [---------)               a
    #      [---------)          a b
    #           [---------)       b
    oracle = oracle_of(sliding(10, every=5))
    feed(oracle, "a@3 b@8")
    assert reports(oracle.close()) == ["insert -5-5 r0 a", "insert 0-10 r0 ab", "insert 5-15 r0 b"]


def test_row_in_the_gap_of_a_sliding_window_is_neither_counted_nor_late():
    # 0  3      10 13
    # a  b    c d
    # [--)      [--)
    oracle = oracle_of(sliding(3, every=10))
    feed(oracle, "a@0 b@3 c@9 d@10")
    assert reports(oracle.advance(100)) == ["insert 0-3 r0 a", "insert 10-13 r0 d"]
    feed(oracle, "e@5 f@11")
    assert reports(oracle.advance(100)) == []
    assert late(oracle) == ["f"]


def test_cumulative_windows_grow_within_each_length():
    # 0    5    10   15   20        30
    # a      b       |    c
    # [----)         |                   a
    # [---------)    |                   ab
    # [--------------)                   ab
    #                [---------)         c
    #                [--------------)    c
    oracle = oracle_of(cumulative(15, every=5))
    feed(oracle, "a@0 b@7 c@20")
    assert reports(oracle.close()) == [
        "insert 0-5 r0 a",
        "insert 0-10 r0 ab",
        "insert 0-15 r0 ab",
        "insert 15-25 r0 c",
        "insert 15-30 r0 c",
    ]


def test_periods_of_cumulative_windows_begin_at_the_offset():
    # built without `cumulative()`, whose checks are not what is tested here
    window = cumulative(20, every=10)
    shifted = Cumulative(window.length, window.every, offset=15)
    oracle = oracle_of(shifted)
    feed(oracle, "a@14 b@15")
    assert reports(oracle.close()) == ["insert -5-15 r0 a", "insert 15-25 r0 b", "insert 15-35 r0 b"]


def test_landmark_reports_a_tick_only_when_its_last_step_brought_rows():
    # 10   15   20   25   30   35
    # |a        |  b |
    # [----)                       a
    # [---------)                  nothing new, nothing reported
    # [--------------)             ab
    oracle = oracle_of(landmark(every=5, since=10))
    feed(oracle, "z@9 a@11 b@23")
    assert reports(oracle.close()) == ["insert 10-15 r0 a", "insert 10-25 r0 ab"]
    assert late(oracle) == []


def test_late_row_corrects_every_open_tick_of_a_landmark_behind_it():
    oracle = oracle_of(landmark(every=5, since=10), lateness=100)
    feed(oracle, "a@11 c@23")
    assert reports(oracle.advance(30)) == ["insert 10-15 r0 a", "insert 10-25 r0 ac"]
    feed(oracle, "b@17")
    assert reports(oracle.advance(30)) == ["update 10-25 r1 abc", "insert 10-20 r0 ab"]


def test_row_of_a_landmark_is_never_late_but_does_not_change_closed_ticks():
    oracle = oracle_of(landmark(every=5, since=10))
    feed(oracle, "a@11")
    assert reports(oracle.advance(15)) == ["insert 10-15 r0 a"]
    feed(oracle, "b@12 c@23")
    assert reports(oracle.advance(25)) == ["insert 10-25 r0 abc"]
    assert late(oracle) == []


def test_between_is_one_window():
    # 0    5    10   15
    #     a[b  c)d
    oracle = oracle_of(between(5, 10))
    feed(oracle, "a@4 b@5 c@9 d@10")
    assert reports(oracle.advance(10)) == ["insert 5-10 r0 bc"]
    feed(oracle, "e@6")
    assert reports(oracle.close()) == []
    assert late(oracle) == ["e"]


# -- corrections and lateness


def test_late_row_within_the_lateness_updates_with_the_next_revision():
    # 0         10        20
    # a   .  .  |
    # [0--------)    W    ^ closed at 20
    oracle = oracle_of(tumbling(10), lateness=10)
    feed(oracle, "a@0")
    assert reports(oracle.advance(15)) == ["insert 0-10 r0 a"]
    feed(oracle, "b@4")
    assert reports(oracle.advance(15)) == ["update 0-10 r1 ab"]
    feed(oracle, "c@7")
    assert reports(oracle.advance(20)) == ["update 0-10 r2 abc"]
    feed(oracle, "d@8")
    assert reports(oracle.advance(20)) == []
    assert late(oracle) == ["d"]
    assert late(oracle) == []


def test_late_row_in_a_window_that_was_empty_is_an_insert():
    oracle = oracle_of(tumbling(10), lateness=10)
    feed(oracle, "a@30")
    assert reports(oracle.advance(15)) == []
    feed(oracle, "b@4")
    assert reports(oracle.advance(15)) == ["insert 0-10 r0 b"]


def test_rows_are_judged_by_the_watermark_before_the_advance():
    oracle = oracle_of(tumbling(10))
    oracle.advance(10)
    feed(oracle, "a@15")
    assert reports(oracle.advance(50)) == ["insert 10-20 r0 a"]
    assert late(oracle) == []


def test_late_row_counts_in_the_windows_that_are_still_open():
    #      0    5    10   15    W=10: the windows that end at 5 and 10 are closed
    #         a
    # [---------)                 closed
    #      [---------)            closed
    #           [---------)       b
    oracle = oracle_of(sliding(10, every=5))
    oracle.advance(10)
    feed(oracle, "a@3 b@8")
    assert reports(oracle.advance(10)) == []
    assert late(oracle) == ["a"]
    assert reports(oracle.close()) == ["insert 5-15 r0 b"]


def test_row_that_counts_in_one_query_is_not_late_for_the_others():
    oracle = oracle_of(tumbling(10), tumbling(100))
    feed(oracle, "a@1")
    assert reports(oracle.advance(10)) == ["insert 0-10 r0 a"]
    feed(oracle, "b@2")
    assert reports(oracle.close()) == ["insert 0-100 r0 ab"]
    assert late(oracle) == []


def test_corrections_come_before_new_windows():
    oracle = oracle_of(session(10), tumbling(10), lateness=100)
    feed(oracle, "a@0")
    oracle.advance(11)
    feed(oracle, "b@8 c@30")
    changes = [(r.change, r.query, r.start, r.end) for r in oracle.advance(40)]
    assert changes == [
        ("retract", "q0", 0, 10),
        ("update", "q1", 0, 10),
        ("insert", "q0", 0, 18),
        ("insert", "q1", 30, 40),
    ]


# -- sessions


def test_session_takes_in_a_row_exactly_one_gap_later():
    # 0         10        20        30
    # a         b         .c
    # [-------------------)
    #                      [---------)
    oracle = oracle_of(session(10))
    feed(oracle, "a@0 b@10 c@21")
    assert reports(oracle.advance(20)) == []
    assert reports(oracle.advance(21)) == ["insert 0-20 r0 ab"]
    assert reports(oracle.close()) == ["insert 21-31 r0 c"]


def test_session_with_the_same_bounds_is_updated():
    oracle = oracle_of(session(10), lateness=100)
    feed(oracle, "a@0 c@5")
    assert reports(oracle.advance(50)) == ["insert 0-15 r0 ac"]
    feed(oracle, "b@3")
    assert reports(oracle.advance(50)) == ["update 0-15 r1 abc"]
    assert reports(oracle.advance(60)) == []


def test_session_grown_by_a_late_row_is_retracted_and_reported_again():
    # 0         10        20
    # a         |
    # [---------)
    #      b              b at 5 makes it longer
    # [--------------)
    oracle = oracle_of(session(10), lateness=100)
    feed(oracle, "a@0")
    assert reports(oracle.advance(16)) == ["insert 0-10 r0 a"]
    feed(oracle, "b@5")
    assert reports(oracle.advance(16)) == ["retract 0-10 r1 None", "insert 0-15 r0 ab"]


def test_session_that_grows_beyond_the_watermark_is_only_retracted():
    oracle = oracle_of(session(10), lateness=100)
    feed(oracle, "a@0")
    assert reports(oracle.advance(11)) == ["insert 0-10 r0 a"]
    feed(oracle, "b@9")
    assert reports(oracle.advance(12)) == ["retract 0-10 r1 None"]
    assert reports(oracle.close()) == ["insert 0-19 r0 ab"]


def test_session_merges_when_late_row_bridges_gap():
    # 0         10        20        30
    # a              c
    # [---------)    [---------)
    #         b                      b at 8 is within 10 of both
    # [------------------------)
    oracle = oracle_of(session(10), lateness=100)
    feed(oracle, "a@0 c@15")
    assert reports(oracle.advance(26)) == ["insert 0-10 r0 a", "insert 15-25 r0 c"]
    feed(oracle, "b@8")
    assert reports(oracle.advance(26)) == ["retract 0-10 r1 None", "retract 15-25 r1 None", "insert 0-25 r0 abc"]


def test_reported_session_merges_with_one_that_is_still_open():
    oracle = oracle_of(session(10), lateness=100)
    feed(oracle, "a@0 c@15")
    assert reports(oracle.advance(12)) == ["insert 0-10 r0 a"]
    feed(oracle, "b@8")
    assert reports(oracle.advance(13)) == ["retract 0-10 r1 None"]
    assert reports(oracle.close()) == ["insert 0-25 r0 abc"]


def test_late_rows_alone_form_a_session_that_is_closed_already():
    oracle = oracle_of(session(10))
    oracle.advance(50)
    feed(oracle, "a@20 b@25 c@40")
    # 20   25        35   40        50
    # [a----b---------)             |     ends before 50: rejected
    #                     [c--------)     ends at 50, which a row at 50 still joins: counts
    assert reports(oracle.advance(51)) == ["insert 40-50 r0 c"]
    assert late(oracle) == ["a", "b"]


def test_late_rows_count_when_they_reach_a_session_together():
    # 20        30        40        50
    # a         b         c                W=45: alone, a and b would be closed
    oracle = oracle_of(session(10))
    feed(oracle, "c@40")
    oracle.advance(45)
    feed(oracle, "a@20 b@30")
    assert reports(oracle.close()) == ["insert 20-50 r0 abc"]
    assert late(oracle) == []


def test_rows_of_a_closed_session_never_join_again():
    # 0         10 11     20
    # a         b  |                 W=11: a's session [0, 10) is closed; b at 10 makes its own
    oracle = oracle_of(session(10))
    feed(oracle, "a@0")
    assert reports(oracle.advance(11)) == ["insert 0-10 r0 a"]
    feed(oracle, "b@10")
    assert reports(oracle.close()) == ["insert 10-20 r0 b"]


def test_rows_of_a_closed_session_go_on_counting_in_other_queries():
    oracle = oracle_of(session(10), tumbling(100))
    feed(oracle, "a@0")
    oracle.advance(50)
    feed(oracle, "b@20")
    assert reports(oracle.close()) == ["insert 0-100 r0 ab"]
    assert late(oracle) == []


# -- order, splitting, the end


def test_rows_come_in_event_time_order_then_order_columns_with_nulls_first_then_arrival():
    oracle = oracle_of(tumbling(10), order=["o"])
    stream = [(5, "e", 2), (5, "d", 1), (5, "c", None), (1, "a", 9), (5, "f", 2), (1, "b", 9)]
    for time, value, o in stream:
        oracle.process(time, {"v": value, "o": o})
    assert reports(oracle.close()) == ["insert 0-10 r0 abcdef"]


def test_arrival_order_within_an_epoch_does_not_matter_for_distinct_times():
    windows = [tumbling(10), sliding(15, every=5), session(4), landmark(every=10), cumulative(20, every=10)]
    shuffle = random.Random(3)
    epochs = [[(shuffle.randrange(100), f"<{i}>") for i in range(10)] for _ in range(5)]
    times = iter(shuffle.sample(range(100), 50))
    epochs = [[(next(times), value) for _, value in epoch] for epoch in epochs]

    def run(arrange):
        oracle, out = oracle_of(*windows, lateness=20), []
        for i, epoch in enumerate(epochs):
            for time, value in arrange(epoch):
                oracle.process(time, {"v": value})
            out.append(oracle.advance(20 * i))
            out.append(sorted(late(oracle)))
        return out + [oracle.close()]

    assert run(list) == run(sorted) == run(lambda epoch: epoch[::-1])


def test_fold_of_all_corrections_is_what_one_epoch_gives():
    windows = [tumbling(10), sliding(15, every=5), session(4), landmark(every=10), between(20, 60)]
    shuffle = random.Random(5)
    stream = [(time, {"v": f"<{time}>"}, (time % 2,)) for time in shuffle.sample(range(200), 80)]
    at_once, in_steps = oracle_of(*windows, lateness=1000), oracle_of(*windows, lateness=1000)
    at_once.process_batch(stream)
    results = []
    for i, row in enumerate(stream):
        in_steps.process(*row)
        results += in_steps.advance(3 * i)
    results += in_steps.close()
    assert {r.change for r in results} == {"insert", "update", "retract"}
    assert fold(results) == fold(at_once.close())


def test_close_reports_all_and_then_takes_nothing_more():
    oracle = oracle_of(tumbling(10), session(5))
    feed(oracle, "a@1")
    assert reports(oracle.close()) == ["insert 0-10 r0 a", "insert 1-6 r0 a"]
    assert oracle.close() == []
    with pytest.raises(DataError, match="the oracle is closed, it takes no more rows; make a new one"):
        feed(oracle, "b@2")
    with pytest.raises(DataError, match="the oracle is closed, its watermark is at infinity; make a new one"):
        oracle.advance(100)


def test_key_may_be_given_bare():
    oracle = oracle_of(tumbling(10))
    feed(oracle, "a@1", key="x")
    feed(oracle, "b@1", key=None)
    assert [r.key for r in oracle.close()] == [("x",), ()]


# -- bad input


def test_watermark_must_not_go_back():
    oracle = oracle_of(tumbling(10))
    oracle.advance(10)
    with pytest.raises(
        DataError, match="the watermark must not go back; got 9 after 10; advance to the same or a later"
    ):
        oracle.advance(9)


@pytest.mark.parametrize("time", [None, 1.5, "1"])
def test_event_times_are_whole_numbers(time):
    with pytest.raises(DataError, match=f"an event time must be a whole number; got {time!r}; give microseconds"):
        oracle_of(tumbling(10)).process(time, {"v": "a"})


def test_missing_columns_are_named():
    oracle = oracle_of(tumbling(10), order=["rank"])
    with pytest.raises(DataError, match="no column 'rank', which puts rows of equal time in order; did you mean 'rnk'"):
        oracle.process(1, {"v": "a", "rnk": 2})
    oracle.process(1, {"w": "a", "rank": 2})
    with pytest.raises(DataError, match="a row has no column 'v'; known: 'rank', 'w'"):
        oracle.close()
