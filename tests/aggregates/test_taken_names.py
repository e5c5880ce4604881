"""Aggregates go by their class: what one is called says nothing about what it computes."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

import slicewise as sw
from slicewise.aggregates import AGGREGATES
from slicewise.plan.characteristics import AggregateTraits
from slicewise.same import is_same
from slicewise.swag import SlickDeque
from slicewise.testing import Oracle
from tests.aggregates.over import CASES, few_rows, make, over


@pytest.mark.parametrize("built_in", AGGREGATES)
def test_another_name_changes_no_answer(built_in):
    cls = AGGREGATES[built_in]
    types = next((types for known, types, _ in CASES if known == built_in), (pa.int64(),))
    columns = list(zip(*few_rows(built_in) * 2, strict=True))
    expected = over(make(built_in), *columns, types=types, starts=[0, 3])
    for name in ("renamed", "max", "last", "max_count", "min_by", "count"):
        renamed = make(built_in, type("Renamed", (cls,), {"name": name}))
        assert all(map(is_same, over(renamed, *columns, types=types, starts=[0, 3]), expected)), name


def negated(self, *values):
    return -values[0]


class Lowest(sw.max):
    """The smallest value, negated: `max` of another `lift`."""

    lift = negated


class Doubled(sw.sum):
    """Twice the sum."""

    def lower(self, partial):
        return None if not partial[1] else 2 * partial[0]


class Heavy(sw.count):
    """Every row counts three times."""

    def lift(self, *values):
        return 3


class Negated(sw.last):
    """The last value, negated."""

    def lift(self, *values):
        return () if values[0] is None else (-values[0],)


class Far(sw.max_by):
    """The value furthest from 5."""

    def lift(self, *values):
        return (abs(values[1] - 5), values[0])


class Sorted(sw.collect_list):
    """Values in their own order, not in that of time."""

    def combine(self, a, b):
        return sorted([*a, *b])


class Shared(sw.range_):
    """What two halves of the window have in common is nothing that a row out of it could tell."""

    def combine(self, a, b):
        return b if a is None else a if b is None else (a[0] + b[0], a[1] + b[1])


class Least(Lowest):
    """Inherits from one that replaced a function, and replaces none itself."""


OWN = {
    "lowest": Lowest("v"),
    "doubled": Doubled("v"),
    "heavy": Heavy("v"),
    "negated": Negated("v"),
    "far": Far("v", "w"),
    "sorted": Sorted("v"),
    "shared": Shared("v"),
    "least": Least("w"),
}
ROWS = [(t, {"v": v, "w": w}) for t, v, w in [(4, 3, 9), (1, 8, 2), (3, 1, 1), (2, -2, 6), (9, 7, 4), (7, 0, 3)]]


@pytest.mark.parametrize("window", [sw.tumbling(5), sw.sliding(6, every=2), sw.sliding(sw.rows(3), every=sw.rows(1))])
def test_functions_that_a_subclass_replaces_are_the_ones_that_run(window):
    for name, aggregate in OWN.items():
        workload = sw.Workload("t", lateness=20).query("q", window, **{name: aggregate})
        found, expected = [], []
        op, oracle = workload.operator(types={"v": "bigint", "w": "bigint"}), Oracle(workload)
        latest = 0
        for at, row in ROWS:
            op.process(at, row), oracle.process(at, row, ())
            latest = max(latest, at)
            found += op.advance(latest)
            expected += oracle.advance(latest)
        found += op.close()
        expected += oracle.close()
        assert sorted(map(repr, found)) == sorted(map(repr, expected)), name


def test_a_subclass_that_writes_its_own_bind_keeps_it():
    class OnArrays(sw.max):
        lift = negated

        def bind(self, *types):
            return sw.min("v").bind(*types)

    assert over(OnArrays("v"), [3, 8], types=[pa.int64()]) == [3]


def test_traits_follow_the_functions():
    assert AggregateTraits.of(sw.range_("v")).extreme
    assert not AggregateTraits.of(Shared("v")).extreme
    assert AggregateTraits.of(sw.last("v")).timed
    assert not AggregateTraits.of(Negated("v")).timed
    with pytest.raises(sw.AggregateError, match="`SlickDeque` cannot run `max`"):
        SlickDeque(type("Joined", (sw.max,), {"combine": lambda self, a, b: (a, b)})())
    assert SlickDeque(Lowest()).query() is None


def test_what_is_called_like_a_built_in_aggregate_says_that_it_is_none():
    own = sw.aggregate(lift=lambda v: -v, combine=max, identity=-100)
    assert repr(own("v")) == "user-defined max('v')"
    assert repr(Lowest("v")) == "user-defined max('v')"
    assert repr(Least("v")) == "user-defined max('v')"
    assert repr(sw.max("v")) == "max('v')"
    assert repr(sw.aggregate(combine=max, identity=0, name="top")("v")) == "top('v')"
    both = sw.Workload("t").query("q", sw.tumbling(5), own=own("v"), theirs=sw.max("v"))
    assert both.queries[0].aggregates["own"] != both.queries[0].aggregates["theirs"]
    assert repr(pickle.loads(pickle.dumps(Lowest("v")))) == "user-defined max('v')"
    with pytest.raises(sw.QueryError, match=r"two different aggregates are called user-defined max\('v'\); give one"):
        both.query("r", sw.tumbling(5), other=Lowest("v"))


@pytest.mark.parametrize("own", [sw.aggregate(lift=lambda: 1, combine=max, identity=0, name="count")(), Lowest()])
def test_only_count_does_without_columns(own):
    with pytest.raises(sw.QueryError, match=r"query 'q': user-defined \w+\(\) needs a column, as in \w+\('v'\)"):
        sw.Workload("t").query("q", sw.tumbling(5), n=own)
    op = sw.Workload("t").query("q", sw.tumbling(5), n=Heavy()).operator()
    op.process(1, {})
    assert [r.values for r in op.close()] == [{"n": 3}]
