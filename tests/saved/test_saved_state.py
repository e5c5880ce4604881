"""A running query survives an upgrade: state of every format since the first that must be read goes on."""

from __future__ import annotations

from functools import cache

import pytest

from tests.matrices import few_quick
from tests.saved import states
from tests.slicing.running import assert_same

REST = range(states.WRITTEN_AFTER, states.STEPS)


def every_case_and_format(formats, axes):
    cells = [(case, n) for case in states.CASES for n in formats(case)]
    return pytest.mark.parametrize(("case", "version"), few_quick(cells, axes))


def test_every_format_has_its_file():
    needed = {case.snapshot(n) for case in states.CASES for n in case.snapshots()}
    needed |= {case.checkpoint(n) for case in states.CASES for n in case.checkpoints()}
    kept = {path for path in states.FOLDER.iterdir() if path.suffix in (".bin", ".json")}
    assert kept == needed, "run `python -m tests.saved.states` and commit the file"


@every_case_and_format(lambda case: case.snapshots(), axes=lambda cell: (id(cell[0]), cell[1]))
def test_a_snapshot_goes_on(case, version):
    whole = case.new_operator()
    for step in range(states.WRITTEN_AFTER):
        whole.process_batch(states.columns_of(step))
        whole.advance(13 * step)
    restored = case.new_operator().restore(case.read_snapshot(version))
    expected = states.operator_results(whole, REST)
    assert len(expected) > 50
    assert_same([states.operator_results(restored, REST)], [expected])


@cache
def without_a_stop(number):
    """What a stream reports in the last micro-batches, where the first ones are its own."""
    whole = states.CASES[number].new_stream()
    states.stream_results(whole, range(states.WRITTEN_AFTER))
    return states.stream_results(whole, REST)


@every_case_and_format(lambda case: case.checkpoints(), axes=lambda cell: cell[1:])
def test_a_checkpoint_goes_on(case, version):
    expected = without_a_stop(states.CASES.index(case))
    assert len(expected) > 50
    assert_same([states.stream_results(case.new_stream(case.read_checkpoint(version)), REST)], [expected])
