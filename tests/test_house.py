"""The house: what is said, decided, cut and kept, and run on Spark, in one direction. Read from the source, not run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "slicewise"
MODULES = sorted(SRC.rglob("*.py"))
LONGEST = 500

#: The path. A stage imports from stages of a lower rank and from itself.
STAGES = {
    "bad_rows": -1,
    "errors": 0,
    "amounts": 1,
    "columns": 1,
    "kernels": 1,
    "times": 2,
    "plain": 1,
    "options": 1,
    "installation": 1,
    "archive": 1,
    "conditions": 2,
    "results": 2,
    "aggregates": 3,
    "windows": 4,
    "swag": 4,
    "workload": 5,
    "plan": 6,
    "slicing": 7,
    "spark": 8,
}
#: Beside the path, with the highest rank that each may import. Nothing on the path imports these.
BESIDE = {"baselines": 7, "testing": 8, "cli": 8, "plot": 8, "__main__": 8}
#: `Workload.explain`, `operator` and `run` open later stages, when they are called and not before.
DOORS = {"workload"}
#: The package itself hands out the public names of all stages.
ROOT = "__init__"


@dataclass(frozen=True)
class Import:
    """One imported module: dotted name, line, and whether importing the file is enough to run it."""

    name: str
    line: int
    at_once: bool


def imports_of(source: str, package: str = "slicewise") -> list[Import]:
    """What ``source``, a module of ``package``, imports. Imports for the type checker alone do not count."""
    return list(_walk(ast.parse(source).body, package, at_once=True))


def _walk(nodes: list[ast.stmt] | list[ast.AST], package: str, *, at_once: bool) -> Iterator[Import]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, at_once)
        elif isinstance(node, ast.ImportFrom):
            yield from _walk_from(node, package, at_once)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _walk(node.orelse, package, at_once=at_once)
        else:
            inside = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from _walk(list(ast.iter_child_nodes(node)), package, at_once=at_once and not inside)


def _walk_from(node: ast.ImportFrom, package: str, at_once: bool) -> Iterator[Import]:
    base = node.module or ""
    if node.level:
        parents = package.split(".")
        base = ".".join([*parents[: len(parents) - node.level + 1], *([base] if base else [])])
    for alias in node.names:
        # `from slicewise import amounts` imports a module; `from slicewise.amounts import rows` a name in it.
        yield Import(f"{base}.{alias.name}" if base == "slicewise" else base, node.lineno, at_once)


def stage_of(dotted: str) -> str:
    """The stage of a module of ours: ``slicewise.slicing.engine`` is in ``slicing``; public names are the root's."""
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in STAGES | BESIDE else ROOT


def wrong_turns(stage: str, imports: list[Import]) -> list[str]:
    """The imports that go against the direction of the house, in words."""
    wrong = []
    for imported in imports:
        top = imported.name.split(".")[0]
        if top == "pyspark" and stage != "spark":
            wrong.append(f"line {imported.line}: pyspark is imported in spark/ only")
        elif top == "pandas" and stage != "spark" and imported.at_once:
            wrong.append(f"line {imported.line}: pandas is imported inside the function that needs it")
        elif top == "slicewise" and stage != ROOT and not _allowed(stage, stage_of(imported.name), imported.at_once):
            wrong.append(f"line {imported.line}: {stage} may not import {imported.name}")
    return wrong


def _allowed(stage: str, target: str, at_once: bool) -> bool:
    if target == stage:
        return True
    if stage in BESIDE:
        return target in BESIDE or (STAGES[target] <= BESIDE[stage] if target in STAGES else not at_once)
    if target == "testing":
        return not at_once  # invariants in code, called by the tests alone
    if target not in STAGES:
        return False
    return STAGES[target] < STAGES[stage] or (stage in DOORS and not at_once)


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def stage_of_path(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_imports_in_one_direction(path):
    stage = stage_of_path(path)
    package = ".".join(["slicewise", *path.relative_to(SRC).parts[:-1]])
    assert wrong_turns(stage, imports_of(path.read_text(encoding="utf-8"), package)) == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_has_a_place_in_the_house(path):
    stage = stage_of_path(path)
    assert stage in {*STAGES, *BESIDE, ROOT, "__main__"}, f"give {stage!r} a rank in STAGES or BESIDE of {__name__}"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_stays_short(path):
    lines = path.read_text(encoding="utf-8").count("\n")
    assert lines < LONGEST, f"{name_of(path)} has {lines} lines; split it by what it does"


# -- the checks themselves


@pytest.mark.parametrize(
    ("stage", "source"),
    [
        ("windows", "from slicewise.amounts import rows"),
        ("windows", "from slicewise import amounts, errors"),
        ("slicing", "from slicewise.slicing.time.edges import Edges"),
        ("slicing", "from .edges import Edges"),
        ("slicing", "from ..windows import Window"),
        ("workload", "def operator(self):\n    from slicewise.slicing.operator import Operator"),
        ("workload", "if TYPE_CHECKING:\n    from slicewise.slicing.operator import Operator"),
        ("slicing", "def to_pandas(self):\n    import pandas as pd"),
        ("spark", "import pandas as pd\nfrom pyspark.sql import DataFrame"),
        ("swag", "from slicewise.aggregates.base import Aggregate"),
        ("testing", "from slicewise.swag import FlatFAT"),
        (ROOT, "from slicewise.testing import check_laws"),
    ],
)
def test_right_turns_are_allowed(stage, source):
    assert wrong_turns(stage, imports_of(source, f"slicewise.{stage}")) == []


@pytest.mark.parametrize(
    ("stage", "source", "message"),
    [
        ("amounts", "from slicewise.columns import Column", "line 1: amounts may not import slicewise.columns"),
        ("windows", "import slicewise.plan.plan", "line 1: windows may not import slicewise.plan.plan"),
        ("windows", "from slicewise import plan", "line 1: windows may not import slicewise.plan"),
        ("plan", "from ..slicing import edges", "line 1: plan may not import slicewise.slicing"),
        ("plan", "from slicewise import sliding", "line 1: plan may not import slicewise.sliding"),
        ("plan", "def f():\n    import slicewise.spark", "line 2: plan may not import slicewise.spark"),
        ("workload", "from slicewise.plan.plan import Plan", "line 1: workload may not import slicewise.plan.plan"),
        ("slicing", "from slicewise.testing import oracle", "line 1: slicing may not import slicewise.testing"),
        ("swag", "from slicewise.slicing import stores", "line 1: swag may not import slicewise.slicing"),
        ("slicing", "def f():\n    from pyspark.sql import Row", "line 2: pyspark is imported in spark/ only"),
        ("cli", "import pyspark", "line 1: pyspark is imported in spark/ only"),
        ("results", "import pandas", "line 1: pandas is imported inside the function that needs it"),
        ("results", "try:\n    import pandas\nexcept ImportError:\n    pass", "line 2: pandas is imported inside the "),
    ],
)
def test_wrong_turns_are_found(stage, source, message):
    (found,) = wrong_turns(stage, imports_of(source, f"slicewise.{stage}"))
    assert found.startswith(message)
