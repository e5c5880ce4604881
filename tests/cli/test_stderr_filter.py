"""What Spark writes although nothing is wrong is kept back, and everything else is not."""

from __future__ import annotations

import subprocess
import sys

import pytest

from slicewise.cli.stderr_filter import filtered, is_noise

LINES = [
    ("", True),
    ("WARNING: Using incubator modules: jdk.incubator.vector", True),
    ("Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties", True),
    ('Setting default log level to "WARN".', True),
    ("To adjust logging level use sc.setLogLevel(newLevel).", True),
    ("26/11/15 23:51:24 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform", True),
    ("Starting Streaming TransformWithStateInPandas Python worker.", True),
    ("26/11/15 23:51:24 ERROR Executor: Exception in task 0.0", False),
    ("java.lang.OutOfMemoryError: Java heap space", False),
    ("Traceback (most recent call last):", False),
]


@pytest.mark.parametrize(("line", "noise"), LINES)
def test_lines_that_say_nothing_are_noise(line, noise):
    assert is_noise(line) is noise


@pytest.mark.slow
def test_programs_that_are_started_meanwhile_are_filtered_to_their_end():
    script = """if True:
        import subprocess, sys, time
        from slicewise.cli.stderr_filter import filtered
        seen = []
        late = "import sys, time; time.sleep(0.3); print('after', file=sys.stderr); print('Setting default log level', file=sys.stderr)"
        with filtered(seen.append):
            child = subprocess.Popen([sys.executable, "-c", late])
        print("mine", file=sys.stderr)
        child.wait()
        time.sleep(0.2)
        print(seen)
    """  # noqa: E501
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("['after']\n", "mine\n")


def test_an_error_output_that_is_not_that_of_the_process_is_left_alone(capsys):
    with filtered(lambda _: pytest.fail("nothing is filtered")):
        print("x", file=sys.stderr)
    assert capsys.readouterr().err == "x\n"
