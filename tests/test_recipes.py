"""Recipes: windows and an aggregate are added by following CONTRIBUTING.md, without a change to the source.

A toy goes through every step that needs code: what it is, what it means by brute force, where the engine learns of it.
"""

from __future__ import annotations

import ast
import datetime as dt
import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import slicewise as sw
from slicewise.aggregates.base import Aggregate, Monoid
from slicewise.amounts import TIME, Amount, Measure, to_amount
from slicewise.columns import Column
from slicewise.errors import QueryError
from slicewise.results import OPEN_END
from slicewise.slicing.rows.discretisers import Discretiser, Retained, WindowRanges
from slicewise.slicing.rows.registry import DISCRETISERS
from slicewise.testing import check_laws
from slicewise.times import INFINITY
from slicewise.windows import Context, PeriodicFamily, Shape, Window
from slicewise.windows.regular import ContextFree
from tests.source import MODULES, nodes_of

ROOT = Path(__file__).parent.parent


# -- a context-free window: its class, its family, its function


@dataclass(frozen=True, repr=False)
class WorkingWeek(ContextFree):
    """From Monday to Friday, in UTC."""

    day: Amount

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.day.measure,)

    @functools.cached_property
    def family(self) -> PeriodicFamily:
        day = int(self.day.size)
        monday, saturday = 4 * day, 9 * day  # the epoch was a Thursday
        return PeriodicFamily(Shape.SLIDING, every=7 * day, phase=saturday, length=5 * day, origin=monday)

    def __repr__(self) -> str:
        return "working_week()"


def working_week() -> WorkingWeek:
    return WorkingWeek(to_amount("1 day", name="day"))


DAY = 86_400_000_000
WEEKS = sw.Workload(time="ts", keys=["k"], unit="microseconds").query(
    "week", working_week(), n=sw.count(), total=sw.sum("v")
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def working_weeks(rows):
    """By the calendar: for each key and Monday what lies before the Saturday after it."""
    weeks = {}
    for time, key, value in rows:
        at = EPOCH + dt.timedelta(microseconds=time)
        monday = at.date() - dt.timedelta(days=at.weekday())
        if at.weekday() < 5:
            weeks.setdefault((key, monday), []).append(value)
    bounds = {
        monday: (dt.datetime(*monday.timetuple()[:3], tzinfo=dt.UTC) - EPOCH) // dt.timedelta(microseconds=1)
        for _, monday in weeks
    }
    return sorted(
        (key, bounds[monday], bounds[monday] + 5 * DAY, len(values), sum(values))
        for (key, monday), values in weeks.items()
    )


times = st.integers(-60, 60).flatmap(lambda day: st.sampled_from([day * DAY, day * DAY + 1, (day + 1) * DAY - 1]))
week_rows = st.lists(st.tuples(times, st.sampled_from("ab"), st.integers(-9, 9)), min_size=1, max_size=40)


def batch_of(rows, names=("ts", "k", "v")):
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def run(workload, rows, chunk, **how):
    """The results after the last watermark, as tuples; the last of each window counts."""
    op = workload.operator(**how)
    batches = [batch_of(rows[i : i + chunk]) for i in range(0, len(rows), chunk)]
    out = {}
    for results in op.drive(batches):
        for r in results:
            window = (r.query, r.key, r.start)
            out.pop(window, None)
            if r.change != "retract":
                out[window] = (*r.key, r.start, r.end, *r.values.values())
    assert not list(op.late())
    return out


@given(week_rows, st.integers(1, 9))
def test_a_context_free_window_needs_its_class_alone(rows, chunk):
    workload = WEEKS.with_delays(200 * DAY, 0)
    assert sorted(run(workload, rows, chunk).values()) == working_weeks(rows)


@given(week_rows, st.integers(1, 9))
def test_it_shares_slices_with_other_windows_and_is_corrected(rows, chunk):
    workload = WEEKS.with_delays(0, 200 * DAY).query("day", sw.tumbling("1 day"), n=sw.count(), total=sw.sum("v"))
    results = run(workload, rows, chunk)
    assert sorted(row for (query, *_), row in results.items() if query == "week") == working_weeks(rows)
    days = {(key, time // DAY * DAY) for time, key, _ in rows}
    assert {(*key, start) for query, key, start in results if query == "day"} == days


def test_it_goes_into_the_unit_of_an_integer_column():
    workload = sw.Workload("ts", keys=["k"], unit="seconds").query("week", working_week(), n=sw.count())
    op = workload.operator()
    op.process_batch({"ts": [0, 4 * 86_400, 9 * 86_400 - 1, 9 * 86_400], "k": ["a"] * 4})
    assert [(r.start, r.end, r.values["n"]) for r in op.close()] == [
        (-3 * 86_400, 2 * 86_400, 1),
        (4 * 86_400, 9 * 86_400, 2),
    ]


def test_a_window_that_cannot_go_into_a_unit_is_refused():
    class Fortnight(ContextFree):
        measures = (TIME,)
        family = PeriodicFamily(Shape.SLIDING, 14 * DAY, 14 * DAY, 14 * DAY, 0)

        def __repr__(self) -> str:
            return "fortnight()"

    message = (
        "query 'q': `unit` cannot be combined with fortnight(), whose lengths are fixed; leave it out, and make the "
        "time column a timestamp"
    )
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$") as caught:
        sw.Workload("ts", unit="seconds").query("q", Fortnight(), n=sw.count())
    assert (caught.value.parameter, caught.value.query) == ("unit", "q")


def test_plan_and_explain_know_the_context_free_window():
    window = working_week()
    assert (window.kind, window.is_periodic, window.overlap, window.reach) == ("working_week", True, 1, 5 * DAY)
    text = WEEKS.explain()
    assert (
        "\n  week  working_week()\n        n = count()\n        total = sum('v')\n        context free, on time\n"
        in text
    )
    assert "store tuples?   no" in text
    assert "pairs" in text  # Mondays and Saturdays
    assert "\n  week         slices  sliced in the JVM, composed in NumPy\n" in text


# -- a context-aware window: its class, its discretiser, one entry in the registry


@dataclass(frozen=True, repr=False)
class Runs(Window):
    """A window for each run of neighbouring rows with one value of a column."""

    has_lengths = False
    column: str

    @property
    def context(self) -> Context:
        return Context.FORWARD_FREE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (TIME,)

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    def __repr__(self) -> str:
        return f"runs({self.column!r})"


class RunWindows(Discretiser):
    """Finds runs: a row that differs from the one before ends a window and begins the next."""

    def __init__(self, window: Runs) -> None:
        super().__init__([window])
        self.column = window.column

    def find(self, view, step):
        value = view.rows.columns[self.column].values
        begins = np.zeros(len(value), bool)
        begins[view.starts] = True
        begins[1:] |= value[1:] != value[:-1]
        low = np.flatnonzero(begins)
        high = np.append(low[1:], len(value))[: len(low)]
        ended = high < view.ends[view.segment[low]]
        decided = np.full(len(low), INFINITY)
        decided[ended] = view.time[high[ended]]
        end = np.where(ended, decided, OPEN_END)
        family = np.zeros(len(low), np.int64)
        runs = WindowRanges(family, view.rows.key[low], low, high, view.time[low], end, decided)
        settled = view.first_at(step.horizon)
        needed = low[(decided >= step.horizon) & (low < settled[view.segment[low]])]
        return runs.take(np.flatnonzero((decided >= step.old_horizon) & (decided <= step.watermark))), Retained(
            settled, needed
        )


@pytest.fixture
def registered():
    DISCRETISERS[Runs] = RunWindows
    yield
    del DISCRETISERS[Runs]


def runs_of(rows):
    """By definition: rows in order of time, then of arrival; neighbours with one value of ``v`` belong together."""
    out = []
    for key in {key for _, key, _ in rows}:
        ordered = sorted(((time, v) for time, k, v in rows if k == key), key=lambda row: row[0])
        runs = [list(run) for _, run in itertools.groupby(ordered, key=lambda row: row[1])]
        ends = [run[0][0] for run in runs[1:]] + [None]
        out += [(key, run[0][0], end, len(run), sum(v for _, v in run)) for run, end in zip(runs, ends, strict=True)]
    return sorted(out, key=repr)


def runs_workload(watermark=0, lateness=0):
    workload = sw.Workload(time="ts", keys=["k"], watermark=watermark, lateness=lateness)
    return workload.query("runs", Runs("v"), n=sw.count(), total=sw.sum("v"))


run_rows = st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.integers(0, 2)), min_size=1, max_size=40)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("delays", [(50, 0), (0, 50), (20, 30)], ids=["waits", "corrects", "both"])
def test_a_context_aware_window_needs_a_discretiser_and_its_entry(delays):
    @given(run_rows, st.integers(1, 9))
    def check(rows, chunk):
        # Several runs may begin with one time: windows are told apart by their place among those.
        op = runs_workload(*delays).operator()
        batches = [batch_of(rows[i : i + chunk]) for i in range(0, len(rows), chunk)]
        windows = []
        for results in op.drive(batches):
            for r in results:
                row = (*r.key, r.start, r.end, *r.values.values())
                if r.change == "insert":
                    windows.append(row)
                elif r.change == "retract":
                    windows.remove(next(w for w in windows if w[:3] == row[:3]))
                else:
                    windows[next(i for i, w in enumerate(windows) if w[:3] == row[:3])] = row
        assert sorted(windows, key=repr) == runs_of(rows)

    check()


@pytest.mark.usefixtures("registered")
def test_plan_and_explain_know_the_context_aware_window():
    assert Runs("v").needs_rows
    text = runs_workload().explain()
    assert (
        "\n  runs  runs('v')\n        n = count()\n        total = sum('v')\n        forward context free, on time\n"
        in text
    )
    assert "query 'runs' is context aware: a row out of order may move its edges" in text
    assert "\n  runs         rows    only rows in order tell where the windows of runs('v') lie\n" in text


def test_without_its_entry_it_is_refused_by_name():
    message = (
        "nothing finds the windows of runs('v'); register a discretiser for Runs in DISCRETISERS of "
        "slicewise.slicing.rows.registry"
    )
    with pytest.raises(QueryError, match=f"^{re.escape(message)}$"):
        runs_workload().operator().process_batch({"ts": [1], "k": ["a"], "v": [1]})


# -- an aggregate: its class on single values, its monoid on arrays


class SumOfSquares(Aggregate):
    """The sum of the squares of whole numbers; 0 for none."""

    name = "sum_of_squares"
    commutative = True
    invertible = True
    kind = "distributive"
    identity = 0

    def lift(self, value):
        return value * value

    def combine(self, a, b):
        return a + b

    def invert(self, a, b):
        return a - b

    def bind(self, *types):
        return SumOfSquaresMonoid(self, types)


class SumOfSquaresMonoid(Monoid):
    """Partials are plain int64 sums."""

    result = pa.int64()
    identity = (0,)
    dtypes = (np.dtype(np.int64),)
    exact = True

    def lift(self, columns, times):
        (column,) = columns
        values = column.values.astype(np.int64)
        return (values * values if column.valid is None else np.where(column.valid, values * values, 0),)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def invert(self, a, b):
        return (a[0] - b[0],)

    def lower(self, parts):
        return Column(parts[0], self.result)


@pytest.mark.parametrize("samples", [[3, None, -2, 9, 9], [0], [None, None]], ids=repr)
def test_the_aggregate_keeps_the_laws(samples):
    check_laws(SumOfSquares("v"), samples, [pa.int32()])


@given(st.lists(st.tuples(st.integers(0, 60), st.none() | st.integers(-9, 9)), min_size=1, max_size=40))
def test_the_aggregate_runs_over_every_kind_of_window(rows):
    workload = sw.Workload("ts", watermark=100)
    workload = workload.query("tens", sw.sliding(20, every=10), squares=SumOfSquares("v"))
    workload = workload.query("visits", sw.session(3), squares=SumOfSquares("v"))
    workload = workload.query("threes", sw.tumbling(sw.rows(3)), squares=SumOfSquares("v"))
    op = workload.operator(types={"v": "int"})
    op.process_batch(batch_of(rows, ("ts", "v")))
    results = {(r.query, r.start, r.end): r.values["squares"] for r in op.close()}

    def squares(held):
        return sum(v * v for _, v in held if v is not None)

    for (query, start, end), value in results.items():
        if query == "threes":
            assert value == squares(sorted(rows, key=lambda row: row[0])[start:end])
        else:
            assert value == squares([row for row in rows if start <= row[0] < end])
    starts = {start for time, _ in rows for start in (time // 10 * 10, time // 10 * 10 - 10)}
    assert {start for query, start, _ in results if query == "tens"} == starts
    assert sum(query == "threes" for query, *_ in results) == len(rows) // 3


def test_explain_knows_the_aggregate():
    workload = sw.Workload("ts").query("trend", sw.sliding("1 hour", every="1 second"), energy=SumOfSquares("v"))
    text = workload.explain()
    assert "energy = sum_of_squares('v')" in text
    assert "sum_of_squares('v')  distributive, commutative, invertible" in text
    assert "sum_of_squares('v')  prefix or eager  prefix where the column's type is exact" in text
    assert "trend        rows    sum_of_squares('v') is computed in Python" in text


# -- the recipes themselves


def recipe(title: str) -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text.split(f"### {title}\n")[1].split("\n### ")[0].split("\n## ")[0]


def files_in(text: str) -> list[str]:
    """The files and folders that a recipe names."""
    return [name for name in re.findall(r"`([\w./]+)`", text) if "/" in name or name.endswith((".md", ".py"))]


TITLES = ["Add an aggregate", "Add a window", "Add an aggregator"]


@pytest.mark.parametrize("title", TITLES)
def test_files_in_recipes_are_there(title):
    files = files_in(recipe(title))
    assert files
    assert [name for name in files if not (ROOT / name).exists()] == []


@functools.cache
def words_in(path: Path) -> frozenset[str]:
    """The names that a module uses, and its strings in quotes."""
    return frozenset(_words(nodes_of(path)))


def _words(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.alias):
            yield node.name
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield repr(node.value)


def unnamed(title: str, *words: str) -> list[str]:
    """The modules that use one of these words and that the recipe does not name."""
    named = files_in(recipe(title))
    folders = tuple(name for name in named if name.endswith("/"))
    known = [path.relative_to(ROOT).as_posix() for path in MODULES if not words_in(path).isdisjoint(words)]
    return sorted(module for module in known if module not in named and not module.startswith(folders))


@pytest.mark.parametrize("kind", ["Cumulative", "Landmark", "Punctuated", "Frames", "UserDefined"])
def test_no_module_knows_a_window_that_the_recipe_does_not_name(kind):
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()
    assert unnamed("Add a window", kind, repr(snake)) == []


@pytest.mark.parametrize("cls", ["GeometricMean", "VarPop", "StdDevPop", "CollectSet", "Median", "M4"])
def test_no_module_knows_an_aggregate_that_the_recipe_does_not_name(cls):
    assert unnamed("Add an aggregate", cls) == []


def test_the_search_finds_modules_that_are_not_named():
    assert "src/slicewise/plan/explain.py" in unnamed("Add an aggregate", "Count")
    assert "src/slicewise/conditions/parsing.py" in unnamed("Add a window", "'between'")
