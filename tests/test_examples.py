"""The example scripts, each run in a folder of its own.

Scripts run as a user runs them, in a process of their own, but for most of those on Spark: they run here, in the
session that all tests share, and do not stop it.
"""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sessions import shared_session

FOLDER = Path(__file__).parent.parent / "examples"

#: What each script prints, line by line, without the spaces around it.
PRINTED = {
    "sessions_and_counts": [
        "8  ann  every 3 clicks   0 to 3   {'path': ['home', 'shoes', 'pay']}",
        "25  ann  visit            0 to 16  {'pages': 3, 'spent': 80, 'left_from': 'pay'}",
        "25  bob  visit            1 to 18  {'pages': 2, 'spent': 0, 'left_from': 'hats'}",
        "31  ann  half hour        0 to 30  {'pages': 4, 'spent': 80}",
        "31  bob  half hour        0 to 30  {'pages': 2, 'spent': 0}",
        "33  bob  every 3 clicks   0 to 3   {'path': ['home', 'hats', 'hats']}",
        "70  ann  visit           25 to 44  {'pages': 2, 'spent': 0, 'left_from': 'socks'}",
        "70  bob  visit           31 to 43  {'pages': 2, 'spent': 25, 'left_from': 'pay'}",
        "70  ann  half hour       30 to 60  {'pages': 1, 'spent': 0}",
        "70  bob  half hour       30 to 60  {'pages': 2, 'spent': 25}",
        "end  ann  visit           70 to 80  {'pages': 1, 'spent': 0, 'left_from': 'home'}",
        "end  ann  half hour       60 to 90  {'pages': 1, 'spent': 0}",
        "end  ann  every 3 clicks   3 to 6   {'path': ['home', 'socks', 'home']}",
    ],
    "own_window": [
        "press  tool A  minutes  0 to 15    60 parts",
        "press  tool B  minutes 15 to 25    110 parts",
        "press  tool B  minutes 25 to 35    80 parts",
        "press  tool A  minutes 35 to open  5 parts",
    ],
    "own_aggregate": [
        "the laws hold",
        "week       days  0 to 7   longest streak 3",
        "week       days  7 to 14  longest streak 4",
        "two weeks  days -7 to 7   longest streak 3",
        "two weeks  days  0 to 14  longest streak 4",
        "two weeks  days  7 to 21  longest streak 4",
    ],
    "vwap": [
        "last 10 min   minutes -5 to 5     12.375  open 12 high 12.5 low 12 close 12.5",
        "last 10 min   minutes  0 to 10    12.083  open 12 high 12.5 low 11.5 close 11.5",
        "trader's own  minutes  1 to 13    12.083  open 12 high 12.5 low 11.5 close 11.5",
        "last 10 min   minutes  5 to 15    11.333  open 11.5 high 11.5 low 11 close 11",
        "trader's own  minutes  8 to 19    11.333  open 11.5 high 11.5 low 11 close 11",
        "last 10 min   minutes 10 to 20    10.583  open 11 high 11 low 10.5 close 10.5",
        "trader's own  minutes 13 to 24    10.583  open 11 high 11 low 10.5 close 10.5",
        "last 10 min   minutes 15 to 25    10.414  open 10.5 high 10.5 low 10.2 close 10.2",
        "trader's own  minutes 19 to 25    10.414  open 10.5 high 10.5 low 10.2 close 10.2",
        "last 10 min   minutes 20 to 30    9.367  open 10.2 high 10.2 low 9 close 9",
        "trader's own  minutes 24 to 31    9.367  open 10.2 high 10.2 low 9 close 9",
        "trader's own  minutes 25 to 31    9.200  open 9.5 high 9.5 low 9 close 9",
        "last 10 min   minutes 25 to 35    9.255  open 9.5 high 9.8 low 9 close 9.8",
        "last 10 min   minutes 30 to 40    9.800  open 9.8 high 9.8 low 9.8 close 9.8",
        "trader's own  minutes 28 to open  9.114  open 9 high 9.8 low 9 close 9.8",
        "trader's own  minutes 31 to open  9.800  open 9.8 high 9.8 low 9.8 close 9.8",
    ],
    "dashboard": [
        "per_second  264 windows  43 corrections",
        "trend        60 windows  16 corrections",
        "so_far       28 windows  12 corrections",
        "active       28 windows   0 corrections",
        "last windows of sensor 0:",
        "per_second  second 68.000 to 69.000  speed 41491, n 479",
        "trend       second 65.000 to 75.000  speed 41810, peak 84215",
        "so_far      second  0.000 to 70.000  peak 84219, n 29768",
        "active      second 65.948 to 69.999  n 1492, middle 41164",
        "120000 rows, 0 of them too late for every window",
    ],
    "batch_sliding": [
        "1036 windows, 1036 by Spark, 0 differ",
        "sensor 0  until second 01  total 4728  peak 760  n 13",
        "sensor 1  until second 01  total 6675  peak 975  n 13",
        "sensor 2  until second 01  total 6672  peak 922  n 12",
        "sensor 3  until second 01  total 5700  peak 841  n 12",
    ],
    "rolling": [
        "batch 0  01 08:11  card A   1  1  1  insert",
        "batch 0  01 08:21  card B   1  1  1  insert",
        "batch 1  01 08:11  card A   2  2  2  update",
        "batch 1  01 08:41  card A   3  3  3  insert",
        "batch 1  01 09:11  card A   1  3  3  insert",
        "batch 2  01 09:21  card A   2  4  4  insert",
        "batch 2  01 09:21  card B   0  1  1  insert",
        "batch 2  01 09:41  card A   1  4  4  insert",
        "batch 2  01 10:21  card A   0  4  4  insert",
        "batch 2  01 20:11  card A   0  2  4  insert",
        "batch 2  01 20:21  card B   0  0  1  insert",
        "batch 2  01 20:41  card A   0  1  4  insert",
        "batch 2  01 21:21  card A   0  0  4  insert",
        "batch 3  01 21:31  card B   1  1  2  insert",
        "batch 3  01 22:31  card B   0  1  2  insert",
        "batch 3  02 08:11  card A   0  0  2  insert",
        "batch 3  02 08:21  card B   0  1  1  insert",
        "batch 3  02 08:41  card A   0  0  1  insert",
        "now       A 0 0 1",
        "now       B 0 1 1",
    ],
    "features": [
        "card A at 01 Jun 12:00, fraud: False",
        "last hour 4 payments, 191 spent; the day before 58 payments",
        "30 days   mean 44.19, top 89, 3 shops",
        "last      [68, 53, 24]",
        "card A at 01 Jun 12:10, fraud: True",
        "last hour 4 payments, 212 spent; the day before 58 payments",
        "30 days   mean 44.2, top 89, 3 shops",
        "last      [53, 24, 67]",
        "card B at 01 May 09:00, fraud: False",
        "last hour 0 payments, 0 spent; the day before 0 payments",
        "30 days   mean 42.21, top 84, 3 shops",
        "last      [6, 21, 42]",
        "card C at 05 Jun 00:00, fraud: True",
        "last hour 0 payments, 0 spent; the day before 0 payments",
        "30 days   mean None, top None, 0 shops",
        "last      []",
    ],
    "late_corrections": [
        "batch 0  insert   trip      08:05 to 08:35  2 rides, 5 km",
        "batch 1  insert   per hour  08:00 to 09:00  3 rides, 9 km",
        "batch 1  insert   trip      08:50 to 09:10  1 rides, 4 km",
        "batch 2  update   per hour  08:00 to 09:00  4 rides, 18 km",
        "batch 2  retract  trip      08:05 to 08:35",
        "batch 2  insert   trip      08:05 to 09:10  4 rides, 18 km",
        "batch 2  retract  trip      08:50 to 09:10",
        "finally  per hour  08:00 to 09:00  4 rides, 18 km",
        "finally  trip      08:05 to 09:10  4 rides, 18 km",
    ],
}
SPARK = {"batch_sliding", "features", "rolling", "late_corrections"}
#: One script on Spark in a process of its own is enough to show that they start and stop a session.
HERE = SPARK - {"batch_sliding"}
LONGEST = 60

SCRIPTS = [pytest.param(name, marks=pytest.mark.spark if name in SPARK else ()) for name in sorted(PRINTED)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_example_prints_what_it_promises(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    script = str(FOLDER / f"{name}.py")
    printed = run_here(script, monkeypatch, capsys) if name in HERE else run_apart(script)
    assert [line.strip() for line in printed.splitlines()] == PRINTED[name]
    assert list(tmp_path.iterdir()) == [], "it left something behind"


def run_apart(script):
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def run_here(script, monkeypatch, capsys):
    monkeypatch.setattr(type(shared_session()), "stop", lambda _: None)
    runpy.run_path(script, run_name="__main__")
    return capsys.readouterr().out


def test_every_example_is_run_here_and_is_short():
    scripts = {path.stem: path for path in FOLDER.glob("*.py")}
    assert scripts.keys() == PRINTED.keys()
    lines = {name: path.read_text(encoding="utf-8").count("\n") for name, path in scripts.items()}
    assert {name for name, n in lines.items() if n >= LONGEST} == set()
