"""A run says which tests it skipped, and fails where they must not be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest

def test_that_runs():
    pass

@pytest.mark.skip(reason="no server")
def test_of_a_server():
    pass

def test_of_pictures():
    pytest.importorskip("a_package_that_is_not_there", reason="no pictures")
"""


def run(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run pytest on the tests of a folder, in a process of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "SLICEWISE", "COV"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.skips", "-p", "no:cacheprovider", *arguments, str(folder)],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)} | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("workers", ["0", "1"])
def test_skipped_test_fails_the_run_of_ci_and_is_named_in_every_run(tmp_path, workers):
    (tmp_path / "test_parts.py").write_text(TESTS)
    local, ci = run(tmp_path, "-n", workers), run(tmp_path, "-n", workers, SLICEWISE_NO_SKIPS="1")
    assert (local.returncode, ci.returncode) == (0, 1)
    for name, reason in [("test_of_a_server", "no server"), ("test_of_pictures", "no pictures")]:
        assert f"\ntest_parts.py::{name}: {reason}\n" in local.stdout
        assert f"\nMUST NOT BE SKIPPED test_parts.py::{name}: {reason}\n" in ci.stdout


def test_file_that_is_skipped_whole_fails_the_run_of_ci(tmp_path):
    (tmp_path / "test_parts.py").write_text("import pytest\npytest.importorskip('not_there', reason='no store')\n")
    done = run(tmp_path, SLICEWISE_NO_SKIPS="1")
    assert "\nMUST NOT BE SKIPPED test_parts.py: no store\n" in done.stdout
    assert done.returncode == 1


def test_run_without_skips_says_nothing_of_them(tmp_path):
    (tmp_path / "test_parts.py").write_text("def test_that_runs():\n    pass\n")
    done = run(tmp_path, SLICEWISE_NO_SKIPS="1")
    assert done.returncode == 0
    assert "skipped" not in done.stdout
