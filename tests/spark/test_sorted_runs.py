"""Rows in rough order, without a JVM: pieces against a sort of all rows, files that come and go."""

import contextlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slicewise.spark import sorted_runs
from slicewise.spark.rough_order import ROUGH, TIME_BITS, RoughOrder
from slicewise.spark.sorted_runs import SortedRuns

ORDER = RoughOrder(shift=0)
NUMBERS = st.builds(
    lambda hashed, stretch: (hashed << TIME_BITS) + stretch,
    st.integers(-(2**20), 2**20 - 1) | st.integers(-2, 2),
    st.integers(0, 2**TIME_BITS - 1) | st.integers(0, 5),
)


@given(st.lists(NUMBERS))
def test_positions_are_those_of_a_stable_sort(numbers):
    numbers = np.array(numbers, np.int64)
    assert ORDER.positions(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()


@given(
    st.lists(st.lists(NUMBERS, min_size=1, max_size=30), min_size=1, max_size=6),
    st.integers(1, 20),
    st.integers(1, 4),
    st.sampled_from([0, 300, 2**20]),
)
def test_pieces_hold_all_rows_in_order(runs, wanted, sampled, in_memory):
    """No number is in two pieces, each says what comes behind it, and rows of one number stay in order of arrival."""
    rows = [(number, i) for i, number in enumerate(number for run in runs for number in run)]
    taken = []
    with pytest.MonkeyPatch.context() as patch, SortedRuns(ORDER) as kept:
        patch.setattr(sorted_runs, "SAMPLED", sampled)
        patch.setattr(sorted_runs, "IN_MEMORY", in_memory)
        at = 0
        for run in runs:
            some = rows[at : at + len(run)]
            at += len(run)
            kept.add(pa.table({ROUGH: pa.array([n for n, _ in some], pa.int64()), "i": [i for _, i in some]}))
        following = min(rows)[0]
        while kept.rows:
            before = following
            piece, following = kept.take(wanted)
            numbers = piece[ROUGH].to_pylist()
            assert numbers[0] == before
            assert following is None or numbers[-1] < following
            taken += zip(numbers, piece["i"].to_pylist(), strict=True)
    assert following is None
    assert taken == sorted(rows)


def test_pieces_have_about_as_many_rows_as_are_asked_for():
    rng = np.random.default_rng(5)
    with SortedRuns(ORDER) as kept:
        for _ in range(8):
            kept.add(pa.table({ROUGH: rng.integers(-(2**62), 2**62, 20_000)}))
        sizes = []
        while kept.rows:
            sizes.append(kept.take(16_000)[0].num_rows)
    assert sum(sizes) == 160_000
    assert all(14_000 < size < 18_500 for size in sizes[:-1]), sizes


@pytest.mark.parametrize("variable", ["folder", "no folder", "not set"])
def test_runs_beyond_memory_lie_in_files_until_the_end(monkeypatch, tmp_path, variable):
    """Where Spark keeps what it shuffles, if there is such a place."""
    elsewhere, local = tmp_path / "elsewhere", tmp_path / "local"
    elsewhere.mkdir()
    local.mkdir()
    monkeypatch.setattr(sorted_runs, "IN_MEMORY", 1000)
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    monkeypatch.setenv("SPARK_LOCAL_DIRS", {"folder": f"{local},other", "no folder": "gone"}.get(variable, ""))
    place, other = (local, elsewhere) if variable == "folder" else (elsewhere, local)
    with contextlib.suppress(KeyError), SortedRuns(ORDER) as kept:
        for _ in range(3):
            kept.add(pa.table({ROUGH: np.arange(100)}))
        assert len(list(place.rglob("*.arrow"))) == 2
        assert not list(other.iterdir())
        raise KeyError
    assert not list(place.iterdir())
