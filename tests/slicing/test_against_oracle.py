"""The engine against the definition: random workloads, random streams, random chunks, random watermarks."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.slicing.running import TYPES, assert_same, run_operator, run_oracle
from tests.slicing.strategies import steps, workloads


@settings(max_examples=400, deadline=None)
@given(workloads(), steps(), st.booleans())
def test_every_epoch_gives_the_oracles_results(workload, epochs, one_by_one):
    expected, late = run_oracle(workload, epochs)
    op = workload.operator(types=TYPES)
    assert_same(run_operator(op, epochs, one_by_one=one_by_one), expected)
    assert sorted(r.time for r in op.late()) == sorted(time for time, _, _ in late)
