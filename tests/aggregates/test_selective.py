"""Selective aggregates: those whose ``combine`` gives one of its two arguments know it themselves."""

from itertools import product

import pytest

import slicewise as sw
from slicewise.aggregates import AGGREGATES

SELECTIVE = {"max", "min", "first", "last", "any_value", "max_by", "min_by"}


def test_built_in_aggregates_that_pick_one_of_two_are_selective():
    assert {name for name, cls in AGGREGATES.items() if cls.selective} == SELECTIVE


@pytest.mark.parametrize("name", sorted(SELECTIVE))
def test_combine_of_a_selective_aggregate_gives_one_of_its_arguments(name):
    aggregate = AGGREGATES[name]()
    rows = [(3, 1), (8, 2), (3, 2)] if name.endswith("_by") else [(3,), (8,), (float("nan"),)]
    partials = [aggregate.lift(*row) for row in rows] + [aggregate.identity]
    for a, b in product(partials, repeat=2):
        combined = aggregate.combine(a, b)
        assert combined is a or combined is b


class Loud(sw.max):
    """Inherits ``combine``."""

    def lower(self, partial):
        return f"{partial}!"


class Summing(sw.max):
    def combine(self, a, b):
        return (a or 0) + (b or 0)


class Adding:
    def combine(self, a, b):
        return (a or 0) + (b or 0)


class Mixed(Adding, sw.max):
    """Gets its ``combine`` from a class that is no aggregate."""


class Longest(sw.Aggregate):
    name = "longest"
    selective = True
    identity = ""

    def combine(self, a, b):
        return a if len(a) >= len(b) else b


class Shortest(Longest):
    """Keeps what its parent, which is not built in, declares."""

    def combine(self, a, b):
        return a if len(a) <= len(b) else b


@pytest.mark.parametrize(
    ("cls", "selective"),
    [(Loud, True), (Summing, False), (Mixed, False), (Longest, True), (Shortest, True), (sw.Aggregate, False)],
)
def test_a_subclass_that_replaces_combine_has_to_declare_it(cls, selective):
    assert cls.selective is selective
    assert cls().selective is selective


def test_functions_of_the_user_are_not_selective():
    assert not sw.aggregate(combine=max, identity=0)("v").selective
