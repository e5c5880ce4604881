"""The oracle on context-aware windows: examples small enough to check by eye, and definitions that must agree."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.amounts import rows, units
from slicewise.errors import DataError, QueryError
from slicewise.testing import Oracle, fold
from slicewise.testing.ticks import tick_after, ticks_over, windows_with
from slicewise.windows import Evict, Window, frames, policy, punctuated, session, sliding, tumbling, user_defined
from tests.matrices import first_quick
from tests.testing.timelines import feed, late, oracle_of, reports


def at_once(window, stream, **options):
    """What a window gives of a whole stream, without the words that are always the same."""
    oracle = oracle_of(window, **options)
    feed(oracle, stream)
    return [line.removeprefix("insert ").replace(" r0", "") for line in reports(oracle.close())]


# -- counts


def test_counts_are_full_windows_in_event_time_order():
    # positions  0 1 2 3 4 5 6
    #            a b c d e f g
    #           [0----)
    #               [2----)
    #                   [4----)          [6, 9) is not full, and never reported
    assert at_once(sliding(rows(3), every=rows(2)), "c@20 a@0 b@10 d@30 g@60 e@40 f@50") == [
        "0-3 abc",
        "2-5 cde",
        "4-7 efg",
    ]


def test_counts_leave_gaps_when_the_slide_is_longer():
    assert at_once(sliding(rows(2), every=rows(3)), "a@0 b@1 c@2 d@3 e@4 f@5 g@6") == ["0-2 ab", "3-5 de"]


def test_counts_begin_at_the_offset():
    assert at_once(tumbling(rows(3), offset=rows(1)), "a@0 b@1 c@2 d@3 e@4 f@5") == ["1-4 bcd"]


def test_count_window_waits_until_no_row_can_come_before_its_last():
    oracle = oracle_of(tumbling(rows(2)))
    feed(oracle, "a@0 b@10")
    assert reports(oracle.advance(10)) == []  # a row at 10 could still come
    assert reports(oracle.advance(11)) == ["insert 0-2 r0 ab"]


def test_row_out_of_order_shifts_every_later_one():
    # positions  0 1 2 3          0 1 2 3 4
    #            a b c d    ->    a x b c d
    #           [--)              [--)
    #               [--)              [--)
    oracle = oracle_of(tumbling(rows(2)), lateness=100)
    feed(oracle, "a@0 b@10 c@20 d@30")
    assert reports(oracle.advance(40)) == ["insert 0-2 r0 ab", "insert 2-4 r0 cd"]
    feed(oracle, "x@5")
    assert reports(oracle.advance(40)) == ["update 0-2 r1 ax", "update 2-4 r1 bc"]
    feed(oracle, "y@50")
    assert reports(oracle.advance(60)) == ["insert 4-6 r0 dy"]


def test_row_before_the_horizon_is_late_and_shifts_nothing():
    oracle = oracle_of(tumbling(rows(2)), lateness=10)
    feed(oracle, "a@0 b@10 c@20")
    assert reports(oracle.advance(21)) == ["insert 0-2 r0 ab"]
    feed(oracle, "x@10 y@11")  # the horizon is 11
    assert reports(oracle.advance(21)) == ["insert 2-4 r0 yc"]
    assert late(oracle) == ["x"]


def test_rows_are_judged_by_the_horizon_before_the_advance():
    oracle = oracle_of(tumbling(rows(2)))
    feed(oracle, "a@0 b@5")
    assert reports(oracle.advance(100)) == ["insert 0-2 r0 ab"]
    assert late(oracle) == []


def test_late_row_of_a_count_counts_in_a_time_window_that_is_open():
    oracle = oracle_of(tumbling(rows(2)), tumbling(100))
    feed(oracle, "a@0 b@10")
    assert reports(oracle.advance(20)) == ["insert 0-2 r0 ab"]
    feed(oracle, "x@5")
    assert reports(oracle.close()) == ["insert 0-100 r0 axb"]
    assert late(oracle) == []


def test_ties_are_broken_by_order_columns_then_arrival():
    oracle = oracle_of(tumbling(rows(2)), order=["o"])
    for value, o in (("c", 2), ("b", 1), ("a", None), ("d", 2)):
        feed(oracle, f"{value}@5", o=o)
    assert reports(oracle.close()) == ["insert 0-2 r0 ab", "insert 2-4 r0 cd"]


def test_rows_count_per_key():
    oracle = oracle_of(tumbling(rows(2)))
    feed(oracle, "a@0 c@2", key="x")
    feed(oracle, "b@1 d@3", key="y")
    assert [(r.key, r.values["got"]) for r in oracle.close()] == [(("x",), "ac"), (("y",), "bd")]


# -- units


def test_units_hold_the_rows_whose_measure_lies_in_them():
    # u  0         10        20        30
    #    a   b     c                   d
    #    [---------)
    #              [---------)                  nothing in [20, 30): no row
    #                                  [---------)
    assert at_once(tumbling(units(10, "u")), "a@0/0 b@1/4 c@2/10 d@3/30") == ["0-10 ab", "10-20 c", "30-40 d"]
    assert at_once(sliding(units(10, "u"), every=units(5, "u")), "a@0/3 b@1/8") == ["-5-5 a", "0-10 ab", "5-15 b"]
    assert at_once(tumbling(units(10, "u"), offset=units(3, "u")), "a@0/2 b@1/3") == ["-7-3 a", "3-13 b"]


def test_units_window_is_due_with_the_first_row_beyond_it():
    oracle = oracle_of(tumbling(units(10, "u")), lateness=100)
    feed(oracle, "a@0/3 b@50/9")
    assert reports(oracle.advance(1000)) == []  # nothing beyond 10 yet, however late it is
    feed(oracle, "c@2000/15")
    assert reports(oracle.advance(1999)) == []
    assert reports(oracle.advance(2000)) == ["insert 0-10 r0 ab"]
    assert reports(oracle.close()) == ["insert 10-20 r0 c"]  # its true end, though it never came


def test_row_without_a_measure_is_left_out_and_not_late():
    oracle = oracle_of(tumbling(units(10, "u")))
    feed(oracle, "a@0/3 x@1 b@2/15")
    assert reports(oracle.advance(5)) == ["insert 0-10 r0 a"]
    feed(oracle, "y@1")
    assert reports(oracle.close()) == ["insert 10-20 r0 b"]
    assert late(oracle) == []


def test_late_row_of_units_updates_and_inserts():
    # time  0    2    4    6    8
    # u     1         25   31
    #            5                    x at 2: joins [0, 10)
    #              12                 y at 3: is alone in [10, 20)
    oracle = oracle_of(tumbling(units(10, "u")), lateness=100)
    feed(oracle, "a@0/1 b@4/25 c@6/31")
    assert reports(oracle.advance(8)) == ["insert 0-10 r0 a", "insert 20-30 r0 b"]
    feed(oracle, "x@2/5 y@3/12")
    assert reports(oracle.advance(8)) == ["update 0-10 r1 ax", "insert 10-20 r0 y"]


def test_units_on_floats_go_by_their_rounded_bounds():
    # 0.1 * 3 is a little more than 0.3
    assert at_once(tumbling(units(0.1, "u")), "a@0/0.3") == ["0.2-0.3 a"]
    assert windows_with(0.3, 0.1, 0.1)[0][1] > 0.3


def test_measure_that_goes_backwards_names_the_row_and_is_left_out():
    oracle = oracle_of(tumbling(units(10, "u")), tumbling(rows(2)))
    feed(oracle, "a@0/5 b@10/4 c@20/12 d@30/11")
    with pytest.raises(
        DataError,
        match=r"query 'q0', the record at time 10: the measure 'u' must not go backwards; got 4.0 after 5.0 at time 0; "
        "it is left out of the query",
    ) as caught:
        oracle.advance(40)
    assert caught.value.__notes__ == ["1 more records were left out"]
    assert reports(oracle.advance(40)) == ["insert 0-10 r0 a", "insert 0-2 r0 ab", "insert 2-4 r0 cd"]
    feed(oracle, "e@50/30")
    assert reports(oracle.close()) == ["insert 10-20 r0 c", "insert 30-40 r0 e"]


def test_late_row_must_fit_between_those_that_count_already():
    oracle = oracle_of(tumbling(units(10, "u")), lateness=100)
    feed(oracle, "a@0/5 b@10/20")
    oracle.advance(10)
    feed(oracle, "x@5/21 y@6/7")
    with pytest.raises(
        DataError, match=r"time 5: the measure 'u' must not go backwards; got 21.0 before 20.0 at time 10"
    ):
        oracle.advance(10)
    assert reports(oracle.advance(10)) == ["update 0-10 r1 ay"]


@pytest.mark.parametrize("bad", ["far", float("nan"), float("inf"), True])
def test_measure_is_a_finite_number(bad):
    oracle = oracle_of(tumbling(units(10, "u")))
    feed(oracle, "a@0/5")
    oracle.process(1, {"v": "b", "u": bad})
    with pytest.raises(DataError, match=f"the record at time 1: the measure 'u' must be a finite number; got {bad!r}"):
        oracle.close()
    assert reports(oracle.close()) == ["insert 0-10 r0 a"]


def test_missing_measure_is_named():
    oracle = oracle_of(tumbling(units(10, "km")))
    oracle.process(1, {"v": "a", "kms": 3})
    with pytest.raises(DataError, match="a row has no column 'km', which is a measure; did you mean 'kms'"):
        oracle.close()


# -- punctuations


def test_punctuated_windows_run_from_marker_to_marker():
    # 0    5    10   15   20   25
    # a    b    C    d    E    f
    # [---------)
    #           [---------)
    #                     [---------        open: no end
    oracle = oracle_of(punctuated("mark"))
    feed(oracle, "a@0 b@5 C@10 d@15 E@20 f@25")
    assert reports(oracle.advance(9)) == []
    assert reports(oracle.advance(10)) == ["insert 0-10 r0 ab"]
    assert reports(oracle.advance(100)) == ["insert 10-20 r0 Cd"]
    assert reports(oracle.close()) == ["insert 20- r0 Ef"]


def test_every_row_may_be_a_marker_and_none_may_be():
    assert at_once(punctuated("mark"), "A@0 B@5 C@7") == ["0-5 A", "5-7 B", "7- C"]
    assert at_once(punctuated("mark"), "a@0 b@5") == ["0- ab"]
    assert at_once(punctuated("true"), "a@0 b@5") == ["0-5 a", "5- b"]


def test_out_of_order_punctuation_splits_a_reported_window():
    # 0    5    10   15   20
    # a         b    C
    # [--------------)               reported
    #      M                         comes late
    # [----)
    #      [---------)
    oracle = oracle_of(punctuated("mark"), lateness=100)
    feed(oracle, "a@0 b@10 C@15")
    assert reports(oracle.advance(20)) == ["insert 0-15 r0 ab"]
    feed(oracle, "M@5")
    assert reports(oracle.advance(20)) == ["retract 0-15 r1 None", "insert 0-5 r0 a", "insert 5-15 r0 Mb"]
    feed(oracle, "x@12")
    assert reports(oracle.advance(20)) == ["update 5-15 r1 Mbx"]


def test_row_before_the_first_moves_the_start_of_a_window():
    oracle = oracle_of(punctuated("mark"), lateness=100)
    feed(oracle, "a@5 B@10")
    assert reports(oracle.advance(10)) == ["insert 5-10 r0 a"]
    feed(oracle, "x@3")
    assert reports(oracle.advance(10)) == ["retract 5-10 r1 None", "insert 3-10 r0 xa"]


def test_late_marker_is_late_and_splits_nothing():
    oracle = oracle_of(punctuated("mark"), lateness=5)
    feed(oracle, "a@0 b@10 C@15")
    assert reports(oracle.advance(20)) == ["insert 0-15 r0 ab"]
    feed(oracle, "M@14")
    assert reports(oracle.advance(20)) == []
    assert late(oracle) == ["M"]


def test_windows_of_equal_bounds_are_told_apart_by_their_order():
    # three markers at one time: two windows (5, 5) of one row each
    oracle = oracle_of(punctuated("mark"), lateness=100)
    feed(oracle, "a@0 B@5 C@5 D@5")
    assert reports(oracle.advance(10)) == ["insert 0-5 r0 a", "insert 5-5 r0 B", "insert 5-5 r0 C"]
    feed(oracle, "e@5 F@9")
    assert reports(oracle.advance(10)) == ["insert 5-9 r0 De"]
    feed(oracle, "G@5")
    assert reports(oracle.advance(10)) == ["update 5-9 r1 G", "insert 5-5 r0 De"]


def test_null_starts_no_window():
    oracle = oracle_of(punctuated("u > 3"))
    feed(oracle, "a@0/1 b@5 c@6/4 d@7")
    assert reports(oracle.close()) == ["insert 0-6 r0 ab", "insert 6- r0 cd"]


# -- frames


def test_frames_are_maximal_runs():
    # 0    5    10   15   20   25   30
    # A    B    c    D    e    F    G
    # [---------)              [---------       of at least two rows; the last is open
    stream = "A@0 B@5 c@10 D@15 e@20 F@25 G@30"
    assert at_once(frames("mark", min_rows=2), stream) == ["0-10 AB", "25- FG"]
    assert at_once(frames("mark"), stream) == ["0-10 AB", "15-20 D", "25- FG"]
    assert at_once(frames("mark", min_rows=3), stream) == []
    assert at_once(frames("not mark"), stream) == ["10-15 c", "20-25 e"]


def test_frame_is_due_with_the_row_that_breaks_it():
    oracle = oracle_of(frames("mark"))
    feed(oracle, "A@0 B@5 c@10")
    assert reports(oracle.advance(9)) == []
    assert reports(oracle.advance(10)) == ["insert 0-10 r0 AB"]


def test_late_row_breaks_a_frame_in_two():
    # A    B    C    d
    # [--------------)
    #        x
    # [------)
    #           [----)
    oracle = oracle_of(frames("mark"), lateness=100)
    feed(oracle, "A@0 B@5 C@10 d@15")
    assert reports(oracle.advance(20)) == ["insert 0-15 r0 ABC"]
    feed(oracle, "x@7")
    assert reports(oracle.advance(20)) == ["retract 0-15 r1 None", "insert 0-7 r0 AB", "insert 10-15 r0 C"]


def test_late_row_makes_a_frame_long_enough():
    oracle = oracle_of(frames("mark", min_rows=2), lateness=100)
    feed(oracle, "A@0 b@10")
    assert reports(oracle.advance(20)) == []
    feed(oracle, "X@5")
    assert reports(oracle.advance(20)) == ["insert 0-10 r0 AX"]


def test_row_outside_every_frame_is_not_late_unless_it_comes_too_late():
    oracle = oracle_of(frames("mark"))
    feed(oracle, "a@0 B@5")
    oracle.advance(10)
    assert late(oracle) == []
    feed(oracle, "x@3")  # it would have broken a run
    oracle.advance(10)
    assert late(oracle) == ["x"]


# -- conditions that fail


def test_condition_that_fails_on_a_row_names_it_and_leaves_it_out():
    oracle = oracle_of(punctuated(lambda c: c["u"] > c["v"].astype(float), columns=["u", "v"]))
    oracle.process_batch([(0, {"v": "1", "u": 0.0}, ()), (5, {"v": "x", "u": 2.0}, ()), (9, {"v": "3", "u": 4.0}, ())])
    with pytest.raises(
        DataError, match=r"query 'q', the record at time 5: the condition .*lambda.* raised ValueError: .*'x'"
    ):
        oracle.close()
    assert reports(oracle.close()) == ["insert 0-9 r0 1", "insert 9- r0 3"]


def test_missing_column_of_a_condition_is_named():
    oracle = oracle_of(frames("marc"))
    feed(oracle, "a@0")
    with pytest.raises(DataError, match="no column 'marc', which the condition 'marc' reads; did you mean 'mark'"):
        oracle.close()
    assert oracle.close() == []


def test_values_of_different_types_are_refused():
    oracle = oracle_of(frames("u > 3"))
    oracle.process_batch([(0, {"v": "a", "u": 5}, ()), (1, {"v": "b", "u": "x"}, ()), (2, {"v": "c", "u": 5}, ())])
    with pytest.raises(DataError, match="the record at time 1: the condition 'u > 3' compares text with a number"):
        oracle.close()
    assert reports(oracle.close()) == ["insert 0- r0 ac"]


# -- two measures


def test_last_rows_at_every_tick():
    # ticks of 5     5    10   15   20   25
    #             a bc    |    |d   |    |
    # at 5:  bc of abc; 10 and 15: nothing new, bc still; 20: cd; there is no tick after 20
    window = sliding(rows(2), every=5)
    assert at_once(window, "a@1 b@3 c@4 d@16") == ["3-5 bc", "3-10 bc", "3-15 bc", "4-20 cd"]
    assert at_once(window, "a@5") == ["5-10 a"]  # the first tick after a row at 5 is 10
    assert at_once(window, "a@-7") == ["-7--5 a"]


def test_tick_is_reported_when_a_row_shows_that_the_stream_goes_on():
    oracle = oracle_of(sliding(rows(2), every=5))
    feed(oracle, "a@1")
    assert reports(oracle.advance(4)) == []
    assert reports(oracle.advance(100)) == ["insert 1-5 r0 a"]
    feed(oracle, "b@112")
    assert reports(oracle.advance(100)) == [f"insert 1-{tick} r0 a" for tick in range(10, 101, 5)]
    assert reports(oracle.advance(115)) == ["insert 1-105 r0 a", "insert 1-110 r0 a", "insert 1-115 r0 ab"]


def test_late_row_moves_the_rows_of_later_ticks():
    oracle = oracle_of(sliding(rows(2), every=5), lateness=100)
    feed(oracle, "a@1 b@3 c@8")
    assert reports(oracle.advance(10)) == ["insert 1-5 r0 ab", "insert 3-10 r0 bc"]
    feed(oracle, "x@4 y@-3")
    assert reports(oracle.advance(10)) == [
        "retract 1-5 r1 None",
        "retract 3-10 r1 None",
        "insert -3-0 r0 y",
        "insert 3-5 r0 bx",
        "insert 4-10 r0 xc",
    ]


def test_time_before_every_so_many_rows():
    # 0    5    10   15   20
    # a    b    c    d           after b and d: the rows less than 10 before
    # [----]
    #           [----]           b, ten before d, is not among them
    oracle = oracle_of(sliding(10, every=rows(2)))
    feed(oracle, "a@0 b@5 c@10 d@15")
    assert reports(oracle.advance(6)) == ["insert 0-2 r0 ab"]
    assert reports(oracle.advance(15)) == []
    assert reports(oracle.advance(16)) == ["insert 2-4 r0 cd"]


def test_late_row_moves_every_later_count():
    oracle = oracle_of(sliding(10, every=rows(2)), lateness=100)
    feed(oracle, "a@0 b@5 c@10 d@15")
    assert reports(oracle.advance(20)) == ["insert 0-2 r0 ab", "insert 2-4 r0 cd"]
    feed(oracle, "x@7")
    assert reports(oracle.advance(20)) == ["retract 2-4 r1 None", "insert 1-4 r0 bxc"]


def test_window_that_is_reported_again_after_a_retraction_starts_anew():
    # -25  -20       0    5
    #                a    b       (0, 2) is ab
    #      x                      (1, 2) is a, which stands alone
    # y                           (0, 2) is yx
    oracle = oracle_of(sliding(10, every=rows(2)), lateness=100)
    feed(oracle, "a@0 b@5")
    assert reports(oracle.advance(6)) == ["insert 0-2 r0 ab"]
    feed(oracle, "x@-20")
    assert reports(oracle.advance(6)) == ["retract 0-2 r1 None", "insert 1-2 r0 a"]
    feed(oracle, "y@-25")
    assert reports(oracle.advance(6)) == ["retract 1-2 r1 None", "insert 0-2 r0 yx", "insert 2-4 r0 ab"]


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        # u: a 1, b 4, c 12, d 13 at times 0, 10, 20, 30
        (sliding(rows(2), every=units(5, "u")), ["1-5 ab", "1-10 ab", "12-15 cd"]),
        (sliding(11, every=units(5, "u")), ["1-5 ab", "1-10 ab", "12-15 cd"]),
        (sliding(units(9, "u"), every=15), ["0-15 ab", "10-30 bc", "20-45 cd"]),
        (sliding(units(2, "u"), every=rows(2)), ["1-2 b", "2-4 cd"]),
        (sliding(units(4, "u"), every=rows(1)), ["0-1 a", "0-2 ab", "2-3 c", "2-4 cd"]),
    ],
    ids=repr,
)
def test_units_mix_with_the_other_measures(window, expected):
    assert at_once(window, "a@0/1 b@10/4 c@20/12 d@30/13") == expected


def test_tick_of_units_is_due_with_the_first_row_at_or_beyond_it():
    oracle = oracle_of(sliding(rows(2), every=units(5, "u")))
    feed(oracle, "a@0/1 b@10/4")
    assert reports(oracle.advance(100)) == []
    feed(oracle, "c@120/10")
    assert reports(oracle.advance(119)) == []
    assert reports(oracle.advance(120)) == ["insert 1-5 r0 ab", "insert 1-10 r0 ab"]
    assert reports(oracle.close()) == ["insert 4-15 r0 bc"]


# -- user code


class Script:
    """Answers row by row from the column ``say``."""

    def on_record(self, time, row):
        return row["say"]


def scripted(*answers, deterministic=True, **options):
    """An oracle that has rows a, b, c, ... at times 0, 10, 20, ... and an answer for each."""
    oracle = oracle_of(user_defined(Script, columns=["say"], deterministic=deterministic), **options)
    for i, answer in enumerate(answers):
        oracle.process(10 * i, {"v": chr(ord("a") + i), "say": answer})
    return oracle


def test_user_windows_end_in_the_order_in_which_they_began():
    # a    b    c    d
    # [---------)
    # [--------------)       two begin with a
    #      [---------)
    #           [------      open
    assert reports(scripted((2, 0), (1, 0), (1, 1), (0, 2)).close()) == [
        "insert 0-20 r0 ab",
        "insert 0-30 r0 abc",
        "insert 10-30 r0 bc",
        "insert 20- r0 cd",
    ]


def test_begins_come_before_ends_and_an_empty_window_says_nothing():
    assert reports(scripted((1, 1), (1, 0), (1, 1)).close()) == ["insert 10-20 r0 b", "insert 20- r0 c"]
    assert reports(scripted((1, 0), (1, 2), (0, 0)).close()) == ["insert 0-10 r0 a"]


def test_user_window_is_due_with_the_row_that_ends_it():
    oracle = scripted((1, 0), (1, 1))
    assert reports(oracle.advance(9)) == []
    assert reports(oracle.advance(10)) == ["insert 0-10 r0 a"]


def test_each_key_has_its_own_object():
    oracle = oracle_of(user_defined(Script, columns=["say"]))
    for time, key, say in ((0, "x", (1, 0)), (1, "y", (1, 0)), (2, "x", (0, 1)), (3, "y", (0, 1))):
        oracle.process(time, {"v": str(time), "say": say}, key)
    assert [(r.key, r.start, r.end) for r in oracle.close()] == [(("x",), 0, 2), (("y",), 1, 3)]


def test_user_code_sees_only_the_columns_it_named_and_rows_in_order():
    seen = []

    class Spy:
        def on_record(self, time, row):
            seen.append((time, dict(row)))
            return 0, 0

    oracle = oracle_of(user_defined(Spy, columns=["u"]))
    feed(oracle, "b@5/2 a@0/1")
    oracle.close()
    assert seen == [(0, {"u": 1.0}), (5, {"u": 2.0})]


def test_evictions_come_before_the_report():
    # a    b    c    d
    # [a b]              at b
    #      [b c]         at c, a has left
    #                    at d all leave: nothing to report
    oracle = scripted(Evict(0, False), Evict(0, True), Evict(1, True), Evict(3, True), deterministic=False)
    assert reports(oracle.advance(10)) == []
    assert reports(oracle.advance(11)) == ["insert 0-10 r0 ab"]
    assert reports(oracle.close()) == ["insert 10-20 r0 bc"]


def test_late_row_is_shown_to_user_code_in_its_place():
    class Pairs:
        """Every second row reports the last two."""

        def __init__(self):
            self.n = 0

        def on_record(self, time, row):
            self.n += 1
            return Evict(2 if self.n > 2 and self.n % 2 else 0, self.n % 2 == 0)

    oracle = oracle_of(user_defined(Pairs, deterministic=False), lateness=100)
    feed(oracle, "a@0 b@10 c@20 d@30")
    assert reports(oracle.advance(40)) == ["insert 0-10 r0 ab", "insert 20-30 r0 cd"]
    feed(oracle, "x@5")
    assert reports(oracle.advance(40)) == [
        "retract 0-10 r1 None",
        "retract 20-30 r1 None",
        "insert 0-5 r0 ax",
        "insert 10-20 r0 bc",
    ]


@pytest.mark.parametrize(
    ("answer", "deterministic", "rule"),
    [
        ((-1, 0), True, r"must not return negative counts; got \(-1, 0\)"),
        ((0, -1), True, r"must not return negative counts; got \(0, -1\)"),
        ((1, 3), True, "ends 3 windows, but only 2 are open"),
        ((1, 0, 0), True, r"must return two counts, begins and ends; got \(1, 0, 0\)"),
        ((0.5, 0), True, r"must return two counts, begins and ends; got \(0.5, 0\)"),
        (None, True, "must return two counts, begins and ends; got None"),
        (Evict(0, True), True, r"but is deterministic; say user_defined\(..., deterministic=False\)"),
        (Evict(3, True), False, "evicts 3 rows, but only 2 are in the window"),
        (Evict(-1, True), False, r"must return sw.Evict\(n, trigger\), a count and a boolean; got Evict\(n=-1"),
        (Evict(1, 1), False, r"must return sw.Evict\(n, trigger\), a count and a boolean; got Evict\(n=1, trigger=1\)"),
        ((0, True), False, r"must return sw.Evict\(n, trigger\), a count and a boolean; got \(0, True\)"),
    ],
)
def test_wrong_answers_name_the_query_the_record_and_the_rule(answer, deterministic, rule):
    first, last = ((1, 0), (0, 1)) if deterministic else (Evict(0, False), Evict(0, True))
    oracle = scripted(first, answer, last, deterministic=deterministic)
    with pytest.raises(DataError, match=f"^query 'q', the record at time 10: user_defined.Script, .*{rule}"):
        oracle.advance(100)
    # without that row, which stays out of this query, everything goes on
    assert reports(oracle.advance(100)) == (["insert 0-20 r0 a"] if deterministic else ["insert 0-20 r0 ac"])


def test_user_code_that_raises_names_the_record():
    class Fails:
        def on_record(self, time, row):
            raise KeyError("price")

    oracle = oracle_of(user_defined(Fails), tumbling(10))
    feed(oracle, "a@0")
    with pytest.raises(DataError, match=r"query 'q0', the record at time 0: user_defined.* raised KeyError\('price'\)"):
        oracle.close()
    assert reports(oracle.close()) == ["insert 0-10 r0 a"]


def test_user_code_that_cannot_be_made_or_asked_is_refused():
    class NoMethod:
        pass

    for factory, message in ((lambda: 1 / 0, "cannot be made: ZeroDivisionError"), (NoMethod, "a method on_record")):
        oracle = oracle_of(user_defined(factory))
        feed(oracle, "a@0")
        with pytest.raises(DataError, match=f"query 'q': user_defined.*{message}"):
            oracle.close()


def test_missing_column_of_user_code_is_named():
    oracle = oracle_of(user_defined(Script, columns=["price"]))
    oracle.process(3, {"v": "a", "prise": 3})
    with pytest.raises(
        DataError, match=r"the record at time 3: a row has no column 'price', which user_defined\(.* 'prise'"
    ):
        oracle.close()


def test_row_that_makes_user_code_fail_on_an_older_one_stays_and_the_older_one_leaves():
    class Rising:
        def __init__(self):
            self.last = ""

        def on_record(self, time, row):
            if row["v"] < self.last:
                raise ValueError("not rising")
            self.last = row["v"]
            return Evict(0, True)

    oracle = oracle_of(user_defined(Rising, columns=["v"], deterministic=False), lateness=100)
    feed(oracle, "a@0 b@10")
    assert reports(oracle.advance(20)) == ["insert 0-0 r0 a", "insert 0-10 r0 ab"]
    feed(oracle, "c@5")
    with pytest.raises(DataError, match=r"the record at time 10: .*not rising"):
        oracle.advance(20)
    assert reports(oracle.advance(20)) == ["retract 0-10 r1 None", "insert 0-5 r0 ac"]


# -- policies


def sum_above_ten(total, oldest):
    """Whether something must still leave when all but the last of ``oldest`` has left."""
    return total["sum"] - (oldest["sum"] - oldest["last"]) > 10


def older_than_the_maximum(total, oldest):
    return oldest["max"] < total["max"]


def summed(window, numbers, **options):
    oracle = Oracle(sw.Workload("t", **options).query("q", window, got=sw.collect_list("v"), top=sw.max("v")))
    for i, number in enumerate(numbers):
        oracle.process(10 * i, {"v": number})
    return oracle


def test_policy_keeps_the_longest_suffix_whose_sum_is_at_most_ten():
    window = policy(sum_above_ten, watch={"sum": sw.sum("v"), "last": sw.last("v")})
    results = summed(window, [4, 5, 3, 8, 20, 1]).close()
    # 20 alone is too much: everything leaves, and there is nothing to report
    assert [(r.start, r.end, r.values["got"], r.values["top"]) for r in results] == [
        (0, 1, [4], 4),
        (0, 2, [4, 5], 5),
        (1, 3, [5, 3], 5),
        (3, 4, [8], 8),
        (5, 6, [1], 1),
    ]


def test_policy_evicts_everything_older_than_the_maximum():
    results = summed(policy(older_than_the_maximum, watch={"max": sw.max("v")}, every=rows(2)), [3, 1, 2, 5, 4, 4])
    assert [(r.start, r.end, r.values["got"]) for r in results.close()] == [
        (0, 2, [3, 1]),
        (3, 4, [5]),
        (3, 6, [5, 4, 4]),
    ]


def test_policy_reports_at_ticks_of_time():
    window = policy(older_than_the_maximum, watch={"max": sw.max("v")}, every=25)
    results = summed(window, [3, 1, 2, 5, 4]).close()
    assert [(r.start, r.end, r.values["got"]) for r in results] == [(0, 25, [3, 1, 2]), (30, 50, [5, 4])]


def test_policy_is_due_after_its_row_and_corrected_by_late_ones():
    oracle = summed(policy(older_than_the_maximum, watch={"max": sw.max("v")}), [3, 1, 2], lateness=100)
    assert [(r.start, r.end) for r in oracle.advance(20)] == [(0, 1), (0, 2)]
    oracle.process(5, {"v": 7})
    assert [(r.change, r.start, r.end, r.values["got"]) for r in oracle.advance(21)] == [
        ("retract", 0, 2, None),
        ("insert", 1, 2, [7]),
        ("insert", 1, 3, [7, 1]),
        ("insert", 1, 4, [7, 1, 2]),
    ]


@pytest.mark.parametrize(
    ("evict", "rule"),
    [
        (lambda total, oldest: total["max"] > 3 and 1 / 0, r"raised ZeroDivisionError.* on total=\{'max': 5\}"),
        (lambda total, oldest: None if total["max"] > 3 else False, "must return true or false; got None"),
    ],
)
def test_policy_that_fails_names_the_record(evict, rule):
    oracle = summed(policy(evict, watch={"max": sw.max("v")}), [3, 5, 2])
    with pytest.raises(DataError, match=f"^query 'q', the record at time 10: policy.*{rule}"):
        oracle.close()
    assert [r.values["got"] for r in oracle.close()] == [[3], [3, 2]]


# -- definitions that must agree with each other

TIMES = st.lists(st.integers(-30, 60), max_size=25)


def both(one, other, times):
    """What two windows say of a stream with a ``u`` that is the time."""
    found = []
    for window in (one, other):
        oracle = oracle_of(window)
        for i, time in enumerate(times):
            oracle.process(time, {"v": f"<{i}>", "u": time, "mark": i % 3 == 0})
        found.append([r._replace(query="") for r in oracle.close()])
    return found


@given(TIMES, st.integers(1, 12), st.integers(1, 12), st.integers(-5, 5))
def test_units_of_time_are_time(times, length, every, offset):
    on_units = sliding(
        units(length, "u"), every=units(every, "u"), offset=units(offset % every, "u") if offset % every else 0
    )
    one, other = both(on_units, sliding(length, every=every, offset=offset), times)
    assert one == other


@given(TIMES, st.integers(1, 6), st.integers(1, 12))
def test_keeping_the_last_rows_is_a_policy(times, n, every):
    keep = policy(lambda total, oldest: total["n"] - oldest["n"] >= n, watch={"n": sw.count()}, every=every)
    one, other = both(keep, sliding(rows(n), every=every), times)
    assert one == other


@given(TIMES, st.integers(1, 30), st.integers(1, 5))
def test_keeping_the_last_while_is_a_policy(times, length, m):
    def too_old(total, oldest):
        return total["last"] - oldest["last"] >= length

    keep = policy(too_old, watch={"last": sw.last("u")}, every=rows(m))
    one, other = both(keep, sliding(length, every=rows(m)), times)
    assert one == other


@given(TIMES, st.integers(1, 6), st.integers(1, 6))
def test_ticks_on_units_of_time_are_ticks_of_time(times, n, every):
    one, other = both(sliding(rows(n), every=units(every, "u")), sliding(rows(n), every=every), times)
    assert one == other


@given(TIMES, st.integers(1, 5), st.integers(1, 5))
def test_counts_are_a_user_window(times, n, m):
    class Counted:
        def __init__(self):
            self.k = 0

        def on_record(self, time, row):
            k, self.k = self.k, self.k + 1
            return int(k % m == 0), int(k >= n and (k - n) % m == 0)

    one, other = both(user_defined(Counted), sliding(rows(n), every=rows(m)), times)
    assert [r.values for r in one if r.end is not None] == [r.values for r in other][
        : len([r for r in one if r.end is not None])
    ]


@given(TIMES)
def test_punctuations_are_a_user_window(times):
    class Marked:
        def __init__(self):
            self.any = False

        def on_record(self, time, row):
            begins = row["mark"] or not self.any
            ends, self.any = begins and self.any, True
            return begins, ends

    one, other = both(user_defined(Marked, columns=["mark"]), punctuated("mark"), times)
    assert one == other


@given(st.floats(-1e6, 1e6), st.floats(0.001, 1e3), st.floats(0.001, 1e3), st.floats(0, 1e3))
def test_ticks_and_windows_of_floats_go_by_their_own_bounds(value, length, step, offset):
    k = tick_after(value, step, offset)
    assert (k - 1) * step + offset <= value < k * step + offset
    if length < 100 * step:
        held = windows_with(value, length, step, offset)
        assert all(start <= value < end for start, end in held)
        near = [(j * step + offset, j * step + offset + length) for j in range(k - 110, k + 2)]
        assert held == [(start, end) for start, end in near if start <= value < end]
    assert ticks_over(value, value, step, offset) == [k * step + offset]


# -- all kinds together


def all_kinds():
    class Threes:
        """Windows of three, overlapping by one."""

        def __init__(self):
            self.n = -1

        def on_record(self, time, row):
            self.n += 1
            return int(self.n % 2 == 0), int(self.n >= 3 and self.n % 2 == 1)

    return [
        tumbling(10),
        session(4),
        sliding(rows(4), every=rows(3)),
        sliding(units(7, "u"), every=units(5, "u")),
        punctuated("mark"),
        frames("not mark", min_rows=2),
        sliding(rows(3), every=7),
        sliding(9, every=rows(2)),
        sliding(units(9, "u"), every=rows(2)),
        user_defined(Threes),
        policy(lambda total, oldest: total["n"] - oldest["n"] >= 4, watch={"n": sw.count()}, every=rows(3)),
    ]


def distinct(seed, n=60):
    shuffle = random.Random(seed)
    times = shuffle.sample(range(200), n)
    return [(time, {"v": f"<{time}>", "u": time, "mark": time % 7 == 0}, (time % 2,)) for time in times]


@pytest.mark.parametrize("seed", first_quick(range(5)))
def test_fold_of_all_corrections_is_what_one_epoch_gives(seed):
    stream = distinct(seed)
    one_epoch, in_steps = oracle_of(*all_kinds(), lateness=1000), oracle_of(*all_kinds(), lateness=1000)
    one_epoch.process_batch(stream)
    results = []
    for i, row in enumerate(stream):
        in_steps.process(*row)
        results += in_steps.advance(3 * i)
    results += in_steps.close()
    assert {r.change for r in results if r.query in ("q4", "q5", "q6", "q7")} == {"insert", "update", "retract"}
    assert fold(results) == fold(one_epoch.close())


@pytest.mark.parametrize("seed", range(3))
def test_arrival_order_within_an_epoch_does_not_matter_for_distinct_times(seed):
    stream = distinct(seed)
    epochs = [stream[i : i + 10] for i in range(0, 60, 10)]

    def run(arrange):
        oracle, out = oracle_of(*all_kinds(), lateness=20), []
        for i, epoch in enumerate(epochs):
            oracle.process_batch(arrange(epoch))
            out.append(sorted(oracle.advance(30 * i), key=lambda r: (r.key, r.query, r.start, r.end)))
            out.append(sorted(late(oracle)))
        return out, fold(oracle.close())

    assert run(list) == run(lambda epoch: sorted(epoch, key=lambda row: row[0])) == run(lambda epoch: epoch[::-1])


def test_revisions_count_up_by_one():
    stream = distinct(11)
    oracle, revisions = oracle_of(*all_kinds(), lateness=50), {}
    results = []
    for i, row in enumerate(stream):
        oracle.process(*row)
        results += oracle.advance(3 * i)
    for r in [*results, *oracle.close()]:
        window = (r.key, r.query, r.start, r.end)
        if r.change == "insert":
            assert window not in revisions
            assert r.revision == 0
            revisions[window] = 0
        else:
            assert r.revision == revisions[window] + 1
            revisions[window] += 1
            if r.change == "retract":
                assert set(r.values.values()) == {None}
                del revisions[window]


def test_window_without_a_definition_is_refused():
    class Odd(Window):
        kind = "odd"
        measures = ()

    with pytest.raises(QueryError, match="the oracle has no definition of odd windows; got them in query 'q'; give it"):
        oracle_of(Odd())


def test_a_key_whose_rows_are_all_refused_has_no_windows():
    def never(total, oldest):
        raise ValueError("no")

    oracle = oracle_of(punctuated("mark"), policy(never, watch={"n": sw.count()}))
    feed(oracle, "a@0")
    with pytest.raises(DataError, match=r"raised ValueError\('no'\).*; it is left out of all windows on rows"):
        oracle.close()
    assert oracle.close() == []
