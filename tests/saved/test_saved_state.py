"""A running query survives an upgrade: state of every format since the first that must be read goes on."""

from __future__ import annotations

import pytest

from tests.saved import states
from tests.slicing.running import assert_same

REST = range(states.WRITTEN_AFTER, states.STEPS)


def test_every_format_has_its_file():
    needed = {case.snapshot(n) for case in states.CASES for n in case.snapshots()}
    needed |= {case.checkpoint(n) for case in states.CASES for n in case.checkpoints()}
    kept = {path for path in states.FOLDER.iterdir() if path.suffix in (".bin", ".json")}
    assert kept == needed, "run `python -m tests.saved.states` and commit the file"


@pytest.mark.parametrize(("case", "version"), [(case, n) for case in states.CASES for n in case.snapshots()])
def test_a_snapshot_goes_on(case, version):
    whole = case.new_operator()
    for step in range(states.WRITTEN_AFTER):
        whole.process_batch(states.columns_of(step))
        whole.advance(13 * step)
    restored = case.new_operator().restore(case.read_snapshot(version))
    expected = states.operator_results(whole, REST)
    assert len(expected) > 50
    assert_same([states.operator_results(restored, REST)], [expected])


@pytest.mark.parametrize(("case", "version"), [(case, n) for case in states.CASES for n in case.checkpoints()])
def test_a_checkpoint_goes_on(case, version):
    whole = case.new_stream()
    states.stream_results(whole, range(states.WRITTEN_AFTER))
    expected = states.stream_results(whole, REST)
    assert len(expected) > 50
    assert_same([states.stream_results(case.new_stream(case.read_checkpoint(version)), REST)], [expected])
