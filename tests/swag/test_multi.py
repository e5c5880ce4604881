"""sw.multi: several aggregates as one, in a window and in a workload."""

from __future__ import annotations

import pytest

import slicewise as sw
from slicewise.errors import AggregateError
from slicewise.testing import check_laws


def test_traits_are_those_that_all_have():
    assert sw.multi(a=sw.sum(), b=sw.count()).invertible
    assert sw.multi(a=sw.sum(), b=sw.count()).commutative
    assert not sw.multi(a=sw.sum(), b=sw.max()).invertible
    assert not sw.multi(a=sw.sum(), b=sw.first()).commutative
    assert sw.multi(a=sw.sum(), b=sw.median()).kind == "holistic"
    assert sw.multi(a=sw.sum(), b=sw.max()).kind == "algebraic"


def test_laws():
    check_laws(sw.multi(a=sw.sum("v"), b=sw.max("v"), c=sw.count("v")), [3, None, 7])
    check_laws(sw.multi(a=sw.sum("v"), b=sw.avg("v")), [3, 4, 7])


def test_members_take_their_own_columns():
    ride = sw.multi(km=sw.sum("km"), late=sw.max("delay"), worst=sw.max_by("km", "delay"), n=sw.count())
    assert ride.columns == ("km", "delay")
    partial = ride.combine(ride.lift(3, 10), ride.combine(ride.lift(None, 20), ride.lift(4, None)))
    assert ride.lower(partial) == {"km": 7, "late": 20, "worst": None, "n": 3}
    assert ride.lower(ride.identity) == {"km": None, "late": None, "worst": None, "n": 0}


def test_inside_one_another():
    nested = sw.multi(both=sw.multi(a=sw.sum(), b=sw.count()), top=sw.max())
    assert nested.lower(nested.combine(nested.lift(1), nested.lift(2))) == {"both": {"a": 3, "b": 2}, "top": 2}


def test_equal_and_readable():
    assert sw.multi(a=sw.sum("v")) == sw.multi(a=sw.sum("v")) != sw.multi(b=sw.sum("v"))
    assert len({sw.multi(a=sw.sum()), sw.multi(a=sw.sum()), sw.multi(a=sw.max())}) == 2
    assert repr(sw.multi(a=sw.sum("v"), n=sw.count())) == "multi(a=sum('v'), n=count())"


def test_wrong_members():
    with pytest.raises(
        AggregateError, match=r"`multi` needs at least one aggregate; got none: multi\(total=sw.sum\(\)\)"
    ):
        sw.multi()
    with pytest.raises(AggregateError, match=r"`a` of `multi` must be an aggregate such as sw.sum\(\); got 'sum'"):
        sw.multi(a="sum")
