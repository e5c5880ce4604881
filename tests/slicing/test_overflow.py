"""A result that does not fit its type: the error says whose it is, whatever the kind of window."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest

import slicewise as sw

BIG = 2**62
REASON = (
    "`sum` of column 'v' does not fit in a 64-bit integer: a window gives {}; cast the column to a wider type, such as "
    "a decimal with fewer decimals or double"
)
WINDOWS = {
    "tumbling": sw.tumbling(10),
    "sliding": sw.sliding(20, every=5),
    "between": sw.between(10, 15),
    "cumulative": sw.cumulative(20, every=10),
    "session": sw.session(3),
    "rows": sw.tumbling(sw.rows(2)),
    "overlapping rows": sw.sliding(sw.rows(2), every=sw.rows(1)),
    "units": sw.tumbling(sw.units(4, "km")),
    "last rows": sw.sliding(sw.rows(2), every=5),
    "punctuated": sw.punctuated("mark"),
    "frames": sw.frames("v > 100"),
    "user": sw.policy(watch={"n": sw.count()}, evict=lambda total, oldest: total["n"] - oldest["n"] >= 2),
}


def table():
    """Rows of three keys. The values of key b are too large for a sum at times 11 and 12."""
    rows = [(t, k, BIG if k == "b" and t in (11, 12) else 1) for t in (1, 2, 11, 12, 31, 32) for k in "abc"]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("t", "k", "v"))}
    return columns | {"km": [0.5 * t for t in columns["t"]], "mark": [t in (1, 11) for t in columns["t"]]}


def shown(end):
    return "open" if end is None else end


@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("ordered", [False, True], ids=["any order", "ordered"])
def test_an_overflow_names_query_key_and_window(name, ordered):
    window, columns = WINDOWS[name], table()
    workload = sw.Workload("t", keys=["k"]).query("fine", sw.tumbling(10), n=sw.count())
    listed = workload.query("all", window, all=sw.collect_list("v")).operator(ordered=ordered)
    results = [*listed.process_batch(columns), *listed.close()]
    totals = [(r, sum(r.values["all"])) for r in results if r.query == "all"]
    word = "span" if name in ("rows", "overlapping rows", "units", "user") else "window"
    expected = {
        f"query 'big', key k={r.key[0]!r}, {word} [{r.start}, {shown(r.end)}): {REASON.format(total)}"
        for r, total in totals
        if total >= 2**63
    }
    assert expected
    op = workload.query("big", window, s=sw.sum("v")).operator(ordered=ordered)
    with pytest.raises(sw.OverflowInWindowError) as caught:
        _ = [op.process_batch(columns), op.close()]
    assert str(caught.value) in expected
    assert caught.value.label.query == "big"


@pytest.mark.parametrize("store", ["lazy", "eager", "prefix"])
def test_any_store(store):
    op = sw.Workload("t", keys=["k"]).query("q", sw.sliding(20, every=10), s=sw.sum("v")).operator(store=store)
    op.process_batch(table())
    message = f"query 'q', key k='b', window [0, 20): {REASON.format(2**63 + 2)}"
    with pytest.raises(sw.OverflowInWindowError, match=f"^{re.escape(message)}$"):
        op.close()


def test_timestamps_are_shown_as_such_and_a_stream_without_keys_has_none():
    rows = [(datetime(2024, 1, 1, 0, 0, 3, 250_000, UTC), BIG), (datetime(2024, 1, 1, 0, 0, 4, tzinfo=UTC), BIG)]
    columns = {"t": [t for t, _ in rows], "v": [v for _, v in rows]}
    op = sw.Workload("t").query("q", sw.tumbling("2500 milliseconds"), s=sw.sum("v")).operator()
    op.process_batch(columns)
    message = f"query 'q', window [2024-01-01 00:00:02.500000+00:00, 2024-01-01 00:00:05+00:00): {REASON.format(2**63)}"
    with pytest.raises(sw.OverflowInWindowError, match=f"^{re.escape(message)}$"):
        op.close()


def test_several_keys_and_any_aggregate():
    op = sw.Workload("t", keys=["k", "j"]).query("q", sw.tumbling(10), r=sw.range_("v")).operator()
    op.process_batch({"t": [1, 2, 3], "k": ["a", "a", None], "j": [7, 7, 7], "v": [Decimal("9" * 38), Decimal(-1), 1]})
    message = (
        "query 'q', key k='a', j=7, window [0, 10): `range_` of column 'v' does not fit in decimal128(38, 0): a window "
        f"gives 1{'0' * 38}; cast the column to fewer decimals or to double"
    )
    with pytest.raises(sw.OverflowInWindowError, match=f"^{re.escape(message)}$"):
        op.close()


def test_late_rows_that_make_a_sum_too_large():
    op = sw.Workload("t", keys=["k"], lateness=20).query("q", sw.tumbling(10), s=sw.sum("v")).operator()
    op.process_batch({"t": [1, 1], "k": ["a", "b"], "v": [BIG, 5]})
    assert len(op.advance(15)) == 2
    op.process_batch({"t": [2], "k": ["a"], "v": [BIG]})
    message = f"query 'q', key k='a', window [0, 10): {REASON.format(2**63)}"
    with pytest.raises(sw.OverflowInWindowError, match=f"^{re.escape(message)}$"):
        op.advance(16)
