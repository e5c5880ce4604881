"""What the aggregator tests share: an aggregate that counts its calls, and slides of a full window."""

from __future__ import annotations

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import is_selective


class Counting(Aggregate):
    """Another aggregate that counts how often it is combined or inverted."""

    def __init__(self, inner):
        super().__init__(*inner.columns)
        self.name = inner.name
        self.inner = inner
        self.identity, self.skips_nulls = inner.identity, inner.skips_nulls
        self.commutative, self.invertible, self.kind = inner.commutative, inner.invertible, inner.kind
        self.selective = is_selective(inner)
        self.lift, self.lower = inner.lift, inner.lower
        self.calls = 0

    def combine(self, a, b):
        self.calls += 1
        return self.inner.combine(a, b)

    def invert(self, a, b):
        self.calls += 1
        return self.inner.invert(a, b)

    def during(self, action):
        """How many calls an action takes."""
        before = self.calls
        action()
        return self.calls - before


def slides(window, values, ask):
    """Calls per slide of a full window: one value leaves, one comes, ``ask`` is asked."""
    counts = []
    for value in values:
        before = window.aggregate.calls
        window.evict()
        window.insert(value)
        ask(window)
        counts.append(window.aggregate.calls - before)
    return counts
