"""Rows that are only punctuation: they start and end windows, and no aggregate counts them."""

from __future__ import annotations

import re

import pytest

import slicewise as sw
from slicewise.errors import DataError, QueryError, StateError, UserCodeError
from slicewise.testing import Oracle


def whole(message):
    return f"^{re.escape(message)}$"


def marked(**parameters):
    return sw.Workload("t", punctuation="kind = 'm'", **parameters)


def rows(text):
    """A row for each letter, at its place in the text; capital ones are markers, a space is none."""
    places = [i for i, letter in enumerate(text) if letter != " "]
    kinds = ["m" if text[i].isupper() else "d" for i in places]
    return {"t": places, "kind": kinds, "v": [text[i] for i in places]}


def found(results):
    return [(r.query, r.start, r.end, *r.values.values()) for r in results]


SEEN = sw.collect_list("v")


def test_markers_start_and_end_windows_and_are_in_none():
    """
    ::

        t      0  1  2  3  4  5  6
        row    a  S  b  c  E  d  S
                  [--------)
    """
    op = marked().query("race", sw.punctuated("v = 'S'", "v = 'E'"), n=sw.count(), seen=SEEN).operator()
    op.process_batch(rows("aSbcEdS"))
    assert found(op.close()) == [("race", 1, 4, 2, ["b", "c"])]


def test_a_window_without_data_is_not_reported():
    op = marked().query("laps", sw.punctuated("v = 'S'"), seen=SEEN).operator()
    op.process_batch(rows("SSaSSb"))
    assert found(op.close()) == [("laps", 1, 3, ["a"]), ("laps", 4, None, ["b"])]
    assert op.stats().rows == 6


def test_only_punctuated_and_user_defined_windows_see_markers():
    workload = (
        marked()
        .query("time", sw.tumbling(10), seen=SEEN)
        .query("visit", sw.session(2), seen=SEEN)
        .query("pairs", sw.tumbling(sw.rows(2)), seen=SEEN)
        .query("known", sw.frames("v is not null"), seen=SEEN)
        .query("three", sw.sliding(sw.rows(3), every=4), seen=SEEN)
        .query("laps", sw.punctuated("v = 'S'"), seen=SEEN)
        .query("user", sw.user_defined(BetweenMarkers, columns=["kind"]), seen=SEEN)
    )
    op = workload.operator()
    op.process_batch(rows("ab S cS    d"))
    results = found(op.close())
    assert [r[1:] for r in results if r[0] == "time"] == [(0, 10, ["a", "b", "c"]), (10, 20, ["d"])]
    assert [r[1:] for r in results if r[0] == "visit"] == [(0, 3, ["a", "b"]), (5, 7, ["c"]), (11, 13, ["d"])]
    assert [r[1:] for r in results if r[0] == "pairs"] == [(0, 2, ["a", "b"]), (2, 4, ["c", "d"])]
    assert [r[1:] for r in results if r[0] == "known"] == [(0, None, ["a", "b", "c", "d"])]
    assert [r[1:] for r in results if r[0] == "three"] == [
        (0, 4, ["a", "b"]),
        (0, 8, ["a", "b", "c"]),
        (1, 12, ["b", "c", "d"]),
    ]
    assert [r[1:] for r in results if r[0] == "laps"] == [(0, 3, ["a", "b"]), (3, 6, ["c"]), (6, None, ["d"])]
    assert [r[1:] for r in results if r[0] == "user"] == [(3, 6, ["c"]), (6, None, ["d"])]


class BetweenMarkers:
    """A window from one marker to the next."""

    def __init__(self):
        self.open = 0

    def on_record(self, time, row):
        begins = int(row["kind"] == "m")
        ends, self.open = (self.open, 1) if begins else (0, self.open)
        return begins, ends


class Placed:
    """Edges at markers; fails on one of them and on a row of data."""

    def notify_context(self, time, row, edges):
        if row["v"] in "xX":
            raise ValueError("no")
        if row["v"] == "S":
            edges.add_start(time)
        elif row["v"] == "E":
            edges.add_end(time)


def test_a_window_whose_edges_user_code_places_sees_markers_too():
    workload = marked(lateness=100).query("placed", sw.user_defined(Placed, columns=["v"]), seen=SEEN)
    op, oracle = workload.operator(), Oracle(workload)
    data = rows("aSbxXcE SE SdE")
    op.process_batch(data)
    for time, kind, v in zip(*data.values(), strict=True):
        oracle.process(time, {"kind": kind, "v": v})
    with pytest.raises(UserCodeError, match=r"raised ValueError\('no'\)"):
        op.advance(20)
    with pytest.raises(DataError, match="left out"):
        oracle.advance(20)
    results = found(op.advance(20))
    assert results == [("placed", 1, 6, ["b", "c"]), ("placed", 11, 13, ["d"])]
    assert results == found(oracle.advance(20))
    assert found(op.close()) == found(oracle.close()) == []


def test_where_comes_first_and_null_is_data():
    workload = sw.Workload("t", where="v <> 'S'", punctuation="kind = 'm'").query(
        "laps", sw.punctuated("v = 'T'"), n=sw.count()
    )
    op = workload.operator()
    op.process_batch({"t": [1, 2, 3, 4], "kind": ["m", "m", None, "d"], "v": ["S", "T", "a", "T"]})
    assert found(op.close()) == [("laps", 2, 4, 1), ("laps", 4, None, 1)]


def test_markers_move_the_watermark_and_can_be_late():
    both = marked().query("laps", sw.punctuated("v = 'S'"), n=sw.count()).query("time", sw.tumbling(3), n=sw.count())
    op = both.operator(ordered=True)
    assert not op.process(1, {"kind": "d", "v": "a"})
    assert found(op.process(9, {"kind": "m", "v": "S"})) == [("time", 0, 3, 1), ("laps", 1, 9, 1)]

    late = marked(lateness=2).query("laps", sw.punctuated("v = 'S'"), n=sw.count())
    op = late.query("time", sw.tumbling(100), n=sw.count()).operator()
    op.process_batch(rows("abcdef"))
    op.advance(6)
    op.process_batch({"t": [3, 4, 2], "kind": ["m", "m", "d"], "v": ["S", "S", "g"]})
    # The one at 3 is before the horizon; data of that age still counts in a window on event time.
    assert [(r.time, r.row["v"]) for r in op.late()] == [(3, "S")]
    # The row of time 4 was there before the marker of the same time.
    assert found(op.close()) == [("time", 0, 100, 7), ("laps", 0, 4, 5), ("laps", 4, None, 1)]


def test_a_late_marker_cuts_a_window_that_was_reported():
    op = marked(lateness=100).query("laps", sw.punctuated("v = 'S'"), seen=SEEN).operator()
    op.process_batch(rows("SabcS"))
    assert found(op.advance(5)) == [("laps", 0, 4, ["a", "b", "c"])]
    op.process(2, {"kind": "m", "v": "S"})
    assert [(r.change, *r[2:4], r.values["seen"]) for r in op.advance(5)] == [
        ("retract", 0, 4, None),
        ("insert", 0, 2, ["a", "b"]),
        ("insert", 2, 4, ["c"]),
    ]


def test_a_marker_that_changes_no_window_corrects_nothing():
    op = marked(lateness=100).query("laps", sw.punctuated("v = 'S'"), seen=SEEN).operator()
    op.process_batch(rows("Sab S"))
    assert len(op.advance(5)) == 1
    op.process(3, {"kind": "m", "v": "X"})
    assert not op.advance(5)


def test_where_no_window_sees_markers_they_only_move_the_watermark():
    op = marked().query("time", sw.tumbling(3), seen=SEEN).operator(ordered=True)
    op.process_batch(rows("ab"))
    assert found(op.process(7, {"kind": "m", "v": "S"})) == [("time", 0, 3, ["a", "b"])]
    op = marked().query("time", sw.tumbling(3), seen=SEEN).operator()
    op.advance(10)
    op.process(1, {"kind": "m", "v": "S"})
    assert op.late() == []


def test_user_code_is_never_shown_markers_unless_it_is_a_window_that_sees_them():
    shown = []

    def lift(v):
        shown.append(v)
        return v

    texts = sw.aggregate(lift=lift, combine=lambda a, b: a + b, identity="", name="texts")
    hot = sw.frames(lambda columns: [v.islower() for v in columns["v"]], columns=["v"])
    workload = marked().query("laps", sw.punctuated("v = 'S'"), x=texts("v")).query("hot", hot, x=texts("v"))
    op = workload.operator()
    op.process_batch(rows("aSbcS"))
    op.process(7, {"kind": "m", "v": "S"})
    restored = workload.operator().restore(op.snapshot())
    assert set(shown) == set("abc")
    assert found(restored.close()) == [
        ("hot", 0, None, "abc"),
        ("laps", 0, 1, "a"),
        ("laps", 1, 4, "bc"),
    ]
    assert set(shown) == set("abc")


class Picky:
    """Fails on a row, and has one window for all others."""

    def __init__(self):
        self.begun = False

    def on_record(self, time, row):
        if row["v"] in "xX":
            raise ValueError("no")
        begins, self.begun = int(not self.begun), True
        return begins, 0


@pytest.mark.parametrize("bad", ["x", "X"])
def test_a_row_that_a_users_window_fails_on_is_left_out_of_all_windows_on_rows(bad):
    workload = (
        marked()
        .query("all", sw.user_defined(Picky, columns=["v"]), seen=SEEN)
        .query("laps", sw.punctuated("v in ('S', 'X')"), seen=SEEN)
        .query("pairs", sw.tumbling(sw.rows(2)), seen=SEEN)
        .query("time", sw.tumbling(100), seen=SEEN)
    )
    op, oracle = workload.operator(), Oracle(workload)
    data = rows(f"ab{bad}cSd")
    op.process_batch(data)
    for time, kind, v in zip(*data.values(), strict=True):
        oracle.process(time, {"kind": kind, "v": v})
    with pytest.raises(UserCodeError, match=r"raised ValueError\('no'\)"):
        op.close()
    with pytest.raises(DataError, match="left out of all windows on rows"):
        oracle.close()
    results = found(op.close())
    assert sorted(results, key=str) == sorted(found(oracle.close()), key=str)
    assert ("pairs", 0, 2, ["a", "b"]) in results
    assert ("pairs", 2, 4, ["c", "d"]) in results
    assert ("time", 0, 100, list("abxcd") if bad == "x" else list("abcd")) in results


def test_queries_that_come_later_see_markers_from_then_on():
    op = marked().query("time", sw.tumbling(100), seen=SEEN).operator(types={"v": "string", "kind": "string"})
    op.process_batch(rows("aSb"))
    assert op.add_query("laps", sw.punctuated("v = 'S'"), seen=SEEN) == 3
    assert op.add_query("pairs", sw.tumbling(sw.rows(2)), seen=SEEN) == 3
    op.process_batch(rows("   cSdSe"))
    op.remove_query("pairs")
    op.process_batch(rows("        fSg"))
    op.remove_query("time")
    assert found(op.close()) == [
        ("laps", 3, 4, ["c"]),
        ("laps", 4, 6, ["d"]),
        ("laps", 6, 9, ["e", "f"]),
        ("laps", 9, None, ["g"]),
    ]


def test_what_is_no_condition_is_refused():
    with pytest.raises(QueryError, match=whole("`punctuation` must be a condition such as \"kind = 'view'\"; got 5")):
        sw.Workload("t", punctuation=5)
    with pytest.raises(QueryError, match="`punctuation`"):
        sw.Workload("t", punctuation="kind = ")
    op = sw.Workload("t", punctuation="v + 1").query("q", sw.punctuated("v > 1"), n=sw.count()).operator()
    what = "`punctuation` must be true or false; got 'v + 1', which is bigint; compare it with something"
    with pytest.raises(DataError, match=whole(what)):
        op.process_batch({"t": [1], "v": [2]})
    op = sw.Workload("t", punctuation="v + 1").query("q", sw.tumbling(1), n=sw.count()).operator()
    with pytest.raises(DataError, match=whole(what)):
        op.process_batch({"t": [1], "v": [2]})


def test_rows_without_the_column_are_refused_and_the_others_stay():
    op = marked().query("q", sw.punctuated("v = 'S'"), n=sw.count()).operator()
    op.process(1, {"kind": "d", "v": "a"})
    with pytest.raises(DataError, match="there is no column 'kind' in the row at time 2; it was left out"):
        op.process(2, {"v": "a"})
    assert found(op.close()) == [("q", 1, None, 1)]


def test_a_snapshot_belongs_to_its_punctuation():
    op = marked().query("q", sw.punctuated("v = 'S'"), n=sw.count()).operator()
    op.process_batch(rows("aS"))
    other = sw.Workload("t").query("q", sw.punctuated("v = 'S'"), n=sw.count()).operator()
    message = (
        "the snapshot belongs to another workload: its `punctuation` is \"kind = 'm'\", this one's None; only queries "
        "may be added or removed"
    )
    with pytest.raises(StateError, match=whole(message)):
        other.restore(op.snapshot())


def test_explain_and_repr_say_what_is_punctuation():
    workload = marked().query("laps", sw.punctuated("v = 'S'"), n=sw.count()).query("t", sw.tumbling(3), n=sw.count())
    assert repr(workload).startswith("Workload(time='t', punctuation=\"kind = 'm'\")\n")
    lines = workload.explain().splitlines()
    assert "punctuation where kind = 'm'" in lines[0]
    assert any(
        "laps" in line and "rows    its windows see punctuation and hold data, which is told apart in Python" in line
        for line in lines
    )
    assert any(line.split()[:2] == ["t", "slices"] for line in lines)
