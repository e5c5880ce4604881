"""Adaptive windows: against the definition, beside the published ADWIN2, out of order, by key, from state."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise import plain
from slicewise.errors import QueryError
from slicewise.slicing.rows.adaptive_windows import bucket_bounds
from slicewise.testing import Oracle
from slicewise.testing.adaptive_windows import histogram
from tests.matrices import first_quick
from tests.profiles import fewer

TYPES = {"v": pa.float64(), "k": pa.string()}


def test_bounds_are_those_of_a_histogram_after_so_many_insertions():
    for n in range(1, 300):
        sizes = histogram(n)
        assert sum(sizes) == n
        assert list(bucket_bounds(n)) == [sum(sizes[:i]) for i in range(1, len(sizes))]


@st.composite
def streams(draw):
    """Levels that change now and then, with a little noise, nulls and NaN; event times out of order."""
    rows, time = [], 0
    for level in draw(st.lists(st.sampled_from([0.0, 1.0, 10.0, -4.0]), min_size=1, max_size=4)):
        for noise in draw(st.lists(st.sampled_from([0.0, 0.1, -0.3, 0.5, None, math.nan]), min_size=3, max_size=30)):
            time += draw(st.integers(0, 2))
            value = noise if noise is None else level + noise
            rows.append({"t": time, "v": value, "k": draw(st.sampled_from("aab"))})
    moved = draw(st.lists(st.integers(0, len(rows) - 1), max_size=4))
    for place in moved:
        rows.insert(draw(st.integers(max(0, place - 8), place)), rows.pop(place))
    return rows


def run(workload, rows, size, *, between=lambda op: op):
    """In batches of a size, each with the watermark three behind."""
    op, found, latest = workload.operator(types=TYPES), [], 0
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        found += op.process_batch({name: [row[name] for row in batch] for name in ("t", "v", "k")})
        latest = max(latest, *(row["t"] for row in batch))
        found += op.advance(latest - 3)
        op = between(op)
    return found + list(op.close())


def by_definition(workload, rows, size):
    oracle, found, latest = Oracle(workload), [], 0
    for start in range(0, len(rows), size):
        batch = rows[start : start + size]
        for row in batch:
            oracle.process(row["t"], row, tuple(row[k] for k in workload.keys))
        latest = max(latest, *(row["t"] for row in batch))
        found += oracle.advance(latest - 3)
    return found + oracle.close()


def shown(results):
    """All but the values of floats, which are added in another order."""
    return sorted((r.key, r.start, r.end, r.change, r.revision, r.values["n"]) for r in results)


@fewer(2)
@given(streams(), st.sampled_from([1, 7, 50]), st.sampled_from([0, 5]), st.sampled_from([[], ["k"]]), st.data())
def test_windows_are_those_of_the_definition_out_of_order_and_by_key(rows, size, lateness, keys, data):
    every = data.draw(st.sampled_from([None, sw.rows(3), 10]))
    window = sw.adaptive("v", confidence=data.draw(st.sampled_from([0.002, 0.3])), every=every)
    workload = sw.Workload("t", keys=keys, lateness=lateness).query("q", window, n=sw.count(), mean=sw.avg("v"))
    assert shown(run(workload, rows, size)) == shown(by_definition(workload, rows, size))


@fewer(4)
@given(streams(), st.sampled_from([1, 7]), st.sampled_from([0, 5]))
def test_snapshot_and_restore_at_every_cut(rows, size, lateness):
    workload = sw.Workload("t", keys=["k"], lateness=lateness).query("q", sw.adaptive("v", 0.3), n=sw.count())

    def again(op):
        trusted = workload.trusted
        return workload.operator(types=TYPES).restore(plain.load(plain.dump(op.snapshot(), trusted), trusted))

    assert shown(run(workload, rows, size, between=again)) == shown(run(workload, rows, size))


class Adwin2:
    """The algorithm as published: buckets with sum and squares, of which the oldest is dropped as a whole."""

    def __init__(self, confidence):
        self.confidence = confidence
        self.buckets = []  # newest first: size, sum, sum of squares

    def insert(self, value):
        self.buckets.insert(0, (1, value, value * value))
        size = 1
        while sum(b[0] == size for b in self.buckets) > 5:
            last = max(i for i, b in enumerate(self.buckets) if b[0] == size)
            self.buckets[last - 1 : last + 1] = [tuple(map(sum, zip(*self.buckets[last - 1 : last + 1], strict=True)))]
            size *= 2
        largest = 0
        while self.has_changed():
            largest = max(largest, self.buckets.pop()[0])
        return largest

    def __len__(self):
        return sum(b[0] for b in self.buckets)

    def has_changed(self):
        n, total, squares = (sum(b[i] for b in self.buckets) for i in range(3))
        if n < 10:
            return False
        variance, unlikely = squares / n - (total / n) ** 2, math.log(2 * math.log(n) / self.confidence)
        newer = newer_sum = 0
        for size, value, _ in self.buckets[:-1]:
            newer, newer_sum = newer + size, newer_sum + value
            if newer < 5 or n - newer < 5:
                continue
            inverse = 1 / newer + 1 / (n - newer)
            eps = math.sqrt(2 * inverse * max(variance, 0) * unlikely) + 2 / 3 * inverse * unlikely
            if abs(newer_sum / newer - (total - newer_sum) / (n - newer)) >= eps:
                return True
        return False


@pytest.mark.parametrize("seed", first_quick(range(6), n=2))
def test_beside_the_published_adwin2_windows_differ_by_a_bucket_at_most(seed):
    """The same rows tell both of a change, since until then their histograms are the same. Then rows leave one by one
    here and in buckets there; when a change is over, the windows differ by no more than the oldest bucket held."""
    rng = random.Random(seed)
    values = [rng.random() + level for level, n in ((0, 150), (1.5, 150), (1.5, 100), (-1, 120)) for _ in range(n)]
    adwin, published, largest = Adwin2(0.002), [], 0
    for value in values:
        largest = max(largest, adwin.insert(value))
        published.append(len(adwin))
    op = sw.Workload("t").query("q", sw.adaptive("v"), n=sw.count()).operator()
    op.process_batch({"t": range(len(values)), "v": values})
    ours = [r.values["n"] for r in op.close()]
    first_cut = next(i for i in range(1, len(ours)) if ours[i] <= ours[i - 1])
    assert first_cut == next(i for i in range(1, len(ours)) if published[i] <= published[i - 1])
    assert 150 < first_cut < 170
    for over in (149, 299, 399, 519):
        assert abs(ours[over] - published[over]) <= largest, (over, ours[over], published[over], largest)


def test_wrong_parameters():
    for confidence in (0, 1, -0.1, "0.5", True, math.nan):
        with pytest.raises(QueryError, match=f"^`confidence` must lie between 0 and 1; got {confidence!r}$"):
            sw.adaptive("v", confidence)
    with pytest.raises(QueryError, match=r"^`column` must be the name of a column of numbers; got 3$"):
        sw.adaptive(3)
    op = sw.Workload("t").query("q", sw.adaptive("w"), n=sw.count()).operator()
    op.process(1, {"w": "text"})
    with pytest.raises(
        QueryError, match=r"`adaptive` needs numbers; got string for 'w': cast the column to a numeric ty"
    ):
        op.advance(5)
    assert repr(sw.adaptive("v")) == "adaptive('v', confidence=0.002)"
    assert repr(sw.adaptive("v", 0.1, every=sw.rows(5))) == "adaptive('v', confidence=0.1, every=rows(5))"
