"""A running query survives an upgrade: state of every format since the first that must be read goes on."""

from __future__ import annotations

import pytest

from slicewise.slicing import FORMAT as SNAPSHOT_FORMAT
from slicewise.spark.streaming.processor import FORMAT as CHECKPOINT_FORMAT
from tests.saved import states
from tests.slicing.running import assert_same


def test_every_format_has_its_file():
    snapshots = {f"snapshot-{n}.bin" for n in range(states.FIRST_SNAPSHOT, SNAPSHOT_FORMAT + 1)}
    checkpoints = {f"checkpoint-{n}.json" for n in range(states.FIRST_CHECKPOINT, CHECKPOINT_FORMAT + 1)}
    kept = {path.name for path in states.FOLDER.iterdir() if path.suffix in (".bin", ".json")}
    assert kept == snapshots | checkpoints, "run `python -m tests.saved.states` and commit the file"


@pytest.mark.parametrize("version", range(states.FIRST_SNAPSHOT, SNAPSHOT_FORMAT + 1))
def test_a_snapshot_goes_on(version):
    whole = states.new_operator()
    for step in range(states.WRITTEN_AFTER):
        whole.process_batch(states.columns_of(step))
        whole.advance(13 * step)
    rest = range(states.WRITTEN_AFTER, states.STEPS)
    restored = states.new_operator().restore(states.read_snapshot(version))
    expected = states.operator_results(whole, rest)
    assert len(expected) > 50
    assert_same([states.operator_results(restored, rest)], [expected])


@pytest.mark.parametrize("version", range(states.FIRST_CHECKPOINT, CHECKPOINT_FORMAT + 1))
def test_a_checkpoint_goes_on(version):
    whole = states.new_stream()
    states.stream_results(whole, range(states.WRITTEN_AFTER))
    rest = range(states.WRITTEN_AFTER, states.STEPS)
    expected = states.stream_results(whole, rest)
    assert len(expected) > 50
    assert_same([states.stream_results(states.new_stream(states.read_checkpoint(version)), rest)], [expected])
