"""Adaptive windows: ADWIN on the tree of a slide policy. What is watched is the mean of a column, and its variance."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.slicing.rows.policy_trees import Leaf
from slicewise.slicing.rows.policy_windows import PolicyWindows
from slicewise.swag.amta import AMTA
from slicewise.windows import Adaptive

__all__ = ["AdaptiveWindows", "bucket_bounds"]

#: The most buckets of a size in the exponential histogram, and the fewest rows on either side of a cut.
BUCKETS = 5
FEWEST = 5

#: How many values, their mean, and the sum of their squared distances from it.
Moments = tuple[int, float, float]


def bucket_bounds(n: int) -> Iterator[int]:
    """How many rows lie behind each bucket of an exponential histogram after ``n`` insertions, but for the oldest.

    Of each size there are at most five buckets: a sixth makes one of the two oldest, of twice the size. So of n buckets
    that came, all are left if they are no more than five, and four or five otherwise; half of the others have gone on.

    >>> list(bucket_bounds(6)), list(bucket_bounds(20))
    ([1, 2, 3, 4], [1, 2, 3, 4, 6, 8, 10, 12, 16])
    """
    behind, size, came = 0, 1, n
    while came:
        buckets = came if came <= BUCKETS else BUCKETS - 1 + came % 2
        for _ in range(buckets):
            behind += size
            if behind < n:
                yield behind
        came, size = (came - buckets) // 2, 2 * size


class _MomentsOf(Aggregate):
    """Mean and variance of a column, of the values that are numbers."""

    name = "moments"
    skips_nulls = False
    identity: Moments = (0, 0.0, 0.0)

    def lift(self, value: Any) -> Moments:
        number = math.nan if value is None else float(value)
        return (1, number, 0.0) if math.isfinite(number) else self.identity

    def combine(self, a: Moments, b: Moments) -> Moments:
        n = a[0] + b[0]
        if not a[0] or not b[0]:
            return a if a[0] else b
        apart = b[1] - a[1]
        return n, a[1] + apart * b[0] / n, a[2] + b[2] + apart * apart * a[0] * b[0] / n


class AdaptiveWindows(PolicyWindows):
    """``adaptive``: after each row the oldest leaves while some cut has means that differ too much."""

    window: Adaptive  # type: ignore[assignment]

    def _watched(self) -> Aggregate:
        return _MomentsOf(self.window.column)

    def _slid(self, tree: AMTA) -> int:
        left = 0
        while self._has_changed(tree):
            tree.evict()
            left += 1
        return left

    def _has_changed(self, tree: AMTA) -> bool:
        """Whether some cut divides the window into parts whose means differ too much."""
        if len(tree) < 2 * FEWEST:
            return False
        n, mean, squares = tree.total.watched
        if n < 2 * FEWEST:
            return False
        unlikely = math.log(2 * math.log(n) / self.window.confidence)
        variance = squares / n
        for behind in bucket_bounds(len(tree)):
            newer, newer_mean, _ = self._moments(tree.latest(behind))
            older = n - newer
            if older < FEWEST:
                break
            if newer < FEWEST:
                continue
            apart = abs(mean - newer_mean) * n / older
            inverse = 1 / older + 1 / newer
            if apart >= math.sqrt(2 * inverse * variance * unlikely) + 2 / 3 * inverse * unlikely:
                return True
        return False

    def _moments(self, nodes: list[Leaf]) -> Moments:
        moments: Moments = self.dimensions.watched.identity
        for node in nodes:
            moments = self.dimensions.watched.combine(moments, node.watched)
        return moments
