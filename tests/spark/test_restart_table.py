"""What may change between two starts of a stream: each line of the table in docs/cluster.md, as it says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.errors import StateError
from tests.slicing.running import assert_same
from tests.spark.stream_fake import FakeStream, Workers

CLUSTER = Path(__file__).parents[2] / "docs" / "cluster.md"
TYPES = {"k": pa.int32(), "j": pa.int32(), "v": pa.int32(), "km": pa.decimal128(10, 2), "t": pa.int64()}
BASE = sw.Workload("t", keys=["k"], watermark=5, lateness=10)


class Sum:
    """A partial of a class of the user's own."""

    def __init__(self, total=0):
        self.total = total


def summing(sign):
    return sw.aggregate(
        lift=lambda v: Sum(sign * v),
        combine=lambda a, b: a if b is None else b if a is None else Sum(a.total + b.total),
        identity=None,
        lower=lambda p: None if p is None else p.total,
        name="summing",
        result="bigint",
    )


STAYS = BASE.query("stays", sw.sliding(20, every=5), s=sw.sum("v"), n=sw.count())
TENS, TWENTIES = sw.tumbling(10), sw.tumbling(20)
FIVE_ROWS = sw.sliding(sw.rows(5), every=sw.rows(2))
WITH_TENS = STAYS.query("q", TENS, m=sw.max("v"))
COUNTING = STAYS.query("q", FIVE_ROWS, s=sw.sum("v"))
MEASURED = STAYS.query("q", sw.tumbling(sw.units(5, "km")), n=sw.count())
OWN = sw.Workload("t", keys=["k"], watermark=5, lateness=10, trust=[Sum], queries=STAYS.queries).query(
    "q", TWENTIES, s=summing(1)("v")
)
#: The same windows where event time is on the clock.
CLOCKED = sw.Workload(
    "t", unit="microseconds", keys=["k"], watermark="5 microseconds", lateness="10 microseconds"
).query("stays", sw.sliding("20 microseconds", every="5 microseconds"), s=sw.sum("v"), n=sw.count())
AGAIN = "query 'q' counted rows under this name before, and would now count from 0 again; its spans would repeat those"


def like(workload, **changes):
    """The same queries under another base."""
    base = {"time": "t", "keys": ["k"], "watermark": 5, "lateness": 10, **changes}
    return sw.Workload(**base, queries=workload.queries)


@dataclass(frozen=True)
class Case:
    """Starts one after the other; the last is refused, or ``stays`` goes on.

    ``first`` is how all but the last are run, ``how`` is how the last is.
    """

    line: str
    starts: list[sw.Workload]
    refused: str | None = None
    how: dict[str, Any] = field(default_factory=dict)
    first: dict[str, Any] = field(default_factory=dict)


CASES = {
    "added": Case("a query is added", [STAYS, WITH_TENS]),
    "removed": Case("a query is removed", [WITH_TENS, STAYS]),
    "renamed": Case("a query is removed", [WITH_TENS, STAYS.query("p", TENS, m=sw.max("v"))]),
    "another window": Case("a query is changed", [WITH_TENS, STAYS.query("q", TWENTIES, m=sw.max("v"))]),
    "another aggregate": Case("a query is changed", [WITH_TENS, STAYS.query("q", TENS, m=sw.min("v"))]),
    "back again": Case("a query is changed", [WITH_TENS, STAYS, WITH_TENS]),
    "another count": Case("a query is changed", [COUNTING, STAYS.query("q", FIVE_ROWS, m=sw.min("v"))], AGAIN),
    "a count again": Case("a query is changed", [COUNTING, STAYS, COUNTING], AGAIN),
    "none stays": Case("a query is removed", [STAYS, BASE.query("q", TENS, n=sw.count())], "and none is the same"),
    "a longer value": Case("the type of a key", [COUNTING, COUNTING], how={"types": {**TYPES, "v": pa.int64()}}),
    "a longer key": Case("the type of a key", [COUNTING, COUNTING], how={"types": {**TYPES, "k": pa.int64()}}),
    "another value": Case(
        "any other type",
        [STAYS, STAYS],
        "the state was written with column 'v' as int, and now it is double; only a longer integer",
        how={"types": {**TYPES, "v": pa.float64()}},
    ),
    "another time": Case(
        "any other type",
        [STAYS, STAYS],
        "the state was written with the time column 't' as bigint, and now it is timestamp_ntz; cast it to bigint",
        how={"time_type": pa.timestamp("us")},
    ),
    "more digits of a measure": Case("a decimal", [MEASURED] * 2, how={"types": {**TYPES, "km": pa.decimal128(12, 2)}}),
    "another scale of a measure": Case(
        "a decimal",
        [MEASURED] * 2,
        "column 'km' as decimal(10,2), and now it is decimal(12,4)",
        how={"types": {**TYPES, "km": pa.decimal128(12, 4)}},
    ),
    "watermark": Case("`watermark`", [COUNTING, like(COUNTING, watermark=2)]),
    "lateness": Case("`lateness`", [STAYS, like(STAYS, lateness=11)], "its `lateness` is 10, this one's 11"),
    "emit": Case("`lateness`", [STAYS] * 2, "its `emit` is 'complete', this one's 'changes'", how={"emit": "changes"}),
    "time": Case("`lateness`", [STAYS, like(STAYS, time="j")], "its `time` is 't', this one's 'j'"),
    "unit": Case("`lateness`", [STAYS, like(STAYS, unit="seconds")], "its `unit` is None, this one's 'seconds'"),
    "keys": Case("`lateness`", [STAYS, like(STAYS, keys=["j"])], "its `keys` is ['k'], this one's ['j']"),
    "order": Case("`lateness`", [STAYS, like(STAYS, order=["j"])], "its `order` is [], this one's ['j']"),
    "idle longer": Case("another `idle`", [CLOCKED] * 2, first={"idle": "1 hour"}, how={"idle": "2 hours"}),
    "idle on": Case(
        "`idle` where",
        [CLOCKED] * 2,
        "the checkpoint was written without `idle`, and this run has it; leave it out, or start with a new checkpoint "
        "from the offsets that `sw.inspect` or `slicewise inspect` shows",
        how={"idle": "1 hour"},
    ),
    "idle off": Case(
        "`idle` where",
        [CLOCKED] * 2,
        "the checkpoint was written with `idle`, and this run has none; give one, or start with a new checkpoint "
        "from the offsets that `sw.inspect` or `slicewise inspect` shows",
        first={"idle": "1 hour"},
    ),
    "shards": Case("`spark.sql.shuffle", [STAYS] * 2, "written with 3 shards, and this run has 4", how={"shards": 4}),
    "code": Case("the code", [OWN, like(STAYS, trust=[Sum]).query("q", TWENTIES, s=summing(-1)("v"))]),
    "bad": Case("`bad`, `ahead`", [STAYS] * 2, how={"bad": "fail"}),
    "ahead": Case("`bad`, `ahead`", [like(STAYS, unit="seconds")] * 2, how={"ahead": "1 hour"}),
    "trust more": Case("`trust`", [STAYS, like(STAYS, trust=[Sum])]),
    "trust less": Case(
        "`trust`", [OWN, like(OWN, trust=[])], f"the state names the class {__name__}.Sum, which is not trusted"
    ),
}


#: Lines that only a real stream can show: :mod:`tests.spark.test_stream_restart`.
ELSEWHERE: set[str] = set()


def rows(n):
    return [{"t": t, "k": t % 3, "j": t, "v": t % 7, "km": Decimal(t) / 4, "w": 0} for t in range(n * 10, n * 10 + 10)]


def stream_of(workload, before, how):
    how = {"types": TYPES, "workers": Workers(0), **how}
    time_type = how.pop("time_type", None)
    stream = FakeStream(workload, **how) if before is None else before.again(workload, **how)
    if time_type is not None:
        stream.job = replace(stream.job, time_type=time_type)
    if len(stream.handles) < len(stream.shards):
        stream.handles = {
            **stream.handles,
            **{s: type(stream.handles[0])() for s in stream.shards[len(stream.handles) :]},
        }
    return stream


def of_query(found, name):
    return [[r for r in results if r.query == name] for results in found]


def folded(found):
    return {(r.key, r.start): r.values for results in found for r in results}


@cache
def never_stopped(watermark, unit, types, batches):
    """What comes out of the query that stays where nothing changes; most cases share it."""
    stream = FakeStream(like(STAYS, watermark=watermark, unit=unit), types=dict(types))
    return [stream.batch([rows(n)]) for n in range(batches)]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_changes_goes_on_or_is_refused_as_the_table_says(case):
    stream, found, at = None, [], 0
    *before, last = case.starts
    for workload in before:
        stream = stream_of(workload, stream, case.first)
        found += [stream.batch([rows(n)]) for n in range(at, at + 3)]
        at += 3
    state = {shard: dict(handle.map.data) for shard, handle in stream.handles.items()}
    if case.refused is not None:
        with pytest.raises(StateError, match=re.escape(case.refused)):
            stream_of(last, stream, case.how).batch([rows(at)])
        assert {shard: stream.handles[shard].map.data for shard in state} == state
        # And the old one goes on.
        last, how = before[-1], case.first
    else:
        how = case.how
    stream = stream_of(last, stream, how)
    found += [stream.batch([rows(n)]) for n in range(at, at + 5)]
    types = {**TYPES, **how.get("types", {})}
    expected = never_stopped(last.watermark, last.unit, tuple(types.items()), at + 5)
    if last.watermark == before[0].watermark:
        assert_same(of_query(found, "stays"), expected)
    # With another watermark the same is reported, sooner or later.
    assert folded(of_query(found, "stays")) == folded(expected)
    # Every query there is reports something in the end.
    assert {r.query for results in found[-5:] for r in results} == {q.name for q in last.queries}


def table_lines():
    text = CLUSTER.read_text(encoding="utf-8")
    table = text[text.index("| what | may it change? |") :].split("\n\n")[0]
    return [line.split("|")[1].strip() for line in table.splitlines()[2:]]


def test_every_line_of_the_table_has_a_case_and_every_case_a_line():
    lines, tested = table_lines(), {case.line for case in CASES.values()} | ELSEWHERE
    assert [line for line in lines if not line.startswith(tuple(tested))] == []
    assert [start for start in tested if not any(line.startswith(start) for line in lines)] == []
