"""Arithmetic on offsets: what a micro-batch may read, and how it is divided among tasks."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from slicewise.sources.kafka.offsets import Range, TopicPartition, admitted, from_json, split, to_json

parts = st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 12))
offsets = st.dictionaries(parts, st.integers(0, 500), max_size=8)


@given(offsets, st.randoms())
def test_offsets_survive_json_and_look_the_same_in_whatever_order(at, random):
    shuffled = list(at.items())
    random.shuffle(shuffled)
    assert from_json(json.loads(json.dumps(to_json(at)))) == at
    assert json.dumps(to_json(dict(shuffled))) == json.dumps(to_json(at))


@given(offsets, st.dictionaries(parts, st.integers(0, 500), min_size=1, max_size=8), st.integers(1, 300))
def test_limit_is_kept_and_the_end_is_reached(start, new, limit):
    latest = {at: start.get(at, 0) + n for at, n in new.items()}
    here, steps = start, 0
    while here != latest:
        end = admitted(here, latest, limit)
        taken = {at: end[at] - here.get(at, 0) for at in latest}
        assert all(n >= 0 for n in taken.values())
        assert all(end[at] <= latest[at] for at in latest)
        # At least one of each partition that has something, so that none waits for the others.
        assert all(n > 0 for at, n in taken.items() if latest[at] > here.get(at, 0))
        left = sum(latest[at] - here.get(at, 0) for at in latest)
        assert min(limit, left) <= sum(taken.values()) < limit + len(latest)
        here, steps = end, steps + 1
    assert steps <= sum(new.values()) / limit + 1


def test_partition_that_was_made_anew_is_left_to_the_planner():
    a, b = TopicPartition("t", 0), TopicPartition("t", 1)
    assert admitted({a: 50, b: 0}, {a: 3, b: 100}, 10) == {a: 3, b: 10}


@given(st.dictionaries(parts, st.tuples(st.integers(0, 50), st.integers(1, 50)), max_size=5), st.integers(0, 40))
def test_ranges_are_cut_without_losing_or_doubling_an_offset(bounds, least):
    ranges = [Range(at, start, start + n) for at, (start, n) in bounds.items()]
    pieces = split(ranges, least)
    covered = [(r.at, n) for r in pieces for n in range(r.start, r.end)]
    assert sorted(covered) == sorted((r.at, n) for r in ranges for n in range(r.start, r.end))
    assert len(pieces) >= min(least, len(covered))
    assert len(pieces) <= max(least, len(ranges))
    assert all(r.start < r.end for r in pieces)
