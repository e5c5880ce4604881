"""The house: what is said, decided, cut and kept, and run on Spark, in one direction. Read from the source, not run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.source import MODULES, SRC, nodes_in

LONGEST = 500

#: The path. A stage imports from stages of a lower rank and from itself.
STAGES = {
    "bad_rows": -2,
    "errors": -1,
    "records": 0,
    "value_kinds": 0,
    "amounts": 1,
    "columns": 1,
    "kernels": 1,
    "wavelet": 1,
    "ragged": 2,
    "times": 2,
    "plain": 1,
    "same": 1,
    "options": 1,
    "installation": 1,
    "archive": 1,
    "labels": 1,
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
#: The stages that import pyspark: where workloads run, and where rows come from.
ON_SPARK = {"spark", "sources"}
#: Beside the path, with the highest rank that each may import. Nothing on the path imports these.
BESIDE = {"sources": 2, "baselines": 7, "testing": 8, "cli": 8, "plot": 8, "__main__": 8}
#: `Workload.explain`, `operator` and `run` open later stages, when they are called and not before.
DOORS = {"workload"}
#: The package itself hands out the public names of all stages.
ROOT = "__init__"

#: Words that are no names, nor parts of names: they say of a thing that it was spoken of, and not what it is.
NO_NAMES = {"said", "told", "found", "mine", "own", "many", "more"}
#: Public names, which stay.
PUBLIC = {"insert_many", "query_many"}


@dataclass(frozen=True)
class Import:
    """One imported module: dotted name, line, and whether importing the file is enough to run it."""

    name: str
    line: int
    at_once: bool


def imports_of(source: str, package: str = "slicewise") -> list[Import]:
    """What ``source``, a module of ``package``, imports. Imports for the type checker alone do not count."""
    return list(_walk(nodes_in(source)[:1], package, at_once=True))


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
        if top == "pyspark" and stage not in ON_SPARK:
            wrong.append(f"line {imported.line}: pyspark is imported in spark/ and sources/ only")
        elif top == "pandas" and stage != "spark" and imported.at_once:
            wrong.append(f"line {imported.line}: pandas is imported inside the function that needs it")
        elif stage == "spark" and imported.name.startswith("slicewise.slicing."):
            wrong.append(f"line {imported.line}: spark imports what slicing/__init__.py exports")
        elif top == "slicewise" and stage != ROOT and not _allowed(stage, stage_of(imported.name), imported.at_once):
            wrong.append(f"line {imported.line}: {stage} may not import {imported.name}")
    return wrong


def _allowed(stage: str, target: str, at_once: bool) -> bool:
    if target == stage:
        return True
    if stage in BESIDE:
        return target in BESIDE or (STAGES[target] <= BESIDE[stage] if target in STAGES else not at_once)
    if target not in STAGES:
        return False
    return STAGES[target] < STAGES[stage] or (stage in DOORS and not at_once)


def bad_names(source: str) -> list[str]:
    """The variables, parameters, attributes, functions and classes of a module that are named by ``NO_NAMES``."""
    wrong = []
    for name, line in _defined(source):
        if name not in PUBLIC and NO_NAMES & set(name.lower().split("_")):
            wrong.append(f"line {line}: {name}")
    return wrong


def _defined(source: str) -> Iterator[tuple[str, int]]:
    for node in nodes_in(source):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            yield (node.id if isinstance(node, ast.Name) else node.attr), node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, (ast.ExceptHandler, ast.alias)):
            yield (node.name if isinstance(node, ast.ExceptHandler) else node.asname) or "", node.lineno


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def stage_of_path(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def reached_into(source: str) -> list[str]:
    """Private names of other modules that a module uses: what begins with an underscore and is not defined in it."""
    known, names = set(), []
    for node in nodes_in(source):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            known.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            known.add(node.value)  # of __slots__
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_"):
            names += [(node.lineno, node.attr)] if ast.unparse(node.value) not in ("self", "cls", "super()") else []
        elif isinstance(node, ast.ImportFrom):
            names += [(node.lineno, alias.name) for alias in node.names]
    return [f"line {line}: {name}" for line, name in sorted(names) if re.match(r"_[^_]", name) and name not in known]


@cache
def faults() -> dict[str, dict[str, list[str]]]:
    """What is wrong in which module, by rule. All rules are asked of a module at once: to parse it takes long."""
    wrong: dict[str, dict[str, list[str]]] = {"imports": {}, "names": {}, "underscores": {}}
    for path in MODULES:
        source, package = path.read_text(encoding="utf-8"), ".".join(["slicewise", *path.relative_to(SRC).parts[:-1]])
        wrong["imports"][name_of(path)] = wrong_turns(stage_of_path(path), imports_of(source, package))
        wrong["names"][name_of(path)] = bad_names(source)
        wrong["underscores"][name_of(path)] = reached_into(source)
    return {rule: {name: lines for name, lines in modules.items() if lines} for rule, modules in wrong.items()}


def test_modules_import_in_one_direction():
    assert faults()["imports"] == {}


def test_names_are_nouns_of_the_field():
    assert faults()["names"] == {}


def test_no_underscore_crosses_a_module():
    assert faults()["underscores"] == {}


def test_modules_have_a_place_in_the_house():
    stages = {stage_of_path(path) for path in MODULES}
    assert stages - {*STAGES, *BESIDE, ROOT} == set(), f"give them a rank in STAGES or BESIDE of {__name__}"


def test_modules_stay_short():
    lines = {name_of(path): path.read_text(encoding="utf-8").count("\n") for path in MODULES}
    assert {name: n for name, n in lines.items() if n >= LONGEST} == {}, "split them by what they do"


# -- the checks themselves


def test_private_names_of_others_are_found():
    source = (
        "from slicewise.keys import _one\nclass A:\n    def f(self, op):\n        return self._x + op._keys + op._y\n"
    )
    assert reached_into(source + "    _y = 1\n") == ["line 1: _one", "line 4: _keys"]


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
        ("spark", "from slicewise.slicing import Engine"),
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
        ("swag", "def f():\n    from slicewise.testing import laws", "line 2: swag may not import slicewise.testing"),
        (
            "slicing",
            "def f():\n    from pyspark.sql import Row",
            "line 2: pyspark is imported in spark/ and sources/ only",
        ),
        (
            "spark",
            "from slicewise.slicing.engine import Engine",
            "line 1: spark imports what slicing/__init__.py exports",
        ),
        ("cli", "import pyspark", "line 1: pyspark is imported in spark/ and sources/ only"),
        ("results", "import pandas", "line 1: pandas is imported inside the function that needs it"),
        ("results", "try:\n    import pandas\nexcept ImportError:\n    pass", "line 2: pandas is imported inside the "),
    ],
)
def test_wrong_turns_are_found(stage, source, message):
    (found,) = wrong_turns(stage, imports_of(source, f"slicewise.{stage}"))
    assert found.startswith(message)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("found = 1", ["line 1: found"]),
        ("def f(own): pass", ["line 1: own"]),
        ("def f(*, how_many=1): pass", ["line 1: how_many"]),
        ("def _told(): pass", ["line 1: _told"]),
        ("class A:\n    TOLD: int = 1", ["line 2: TOLD"]),
        ("self.said = [x for more in y]", ["line 1: said", "line 1: more"]),
        ("for mine, yours in pairs: pass", ["line 1: mine"]),
        ("founder = owner = manyfold = moreover = 1", []),
        ("f(own=1); x = y.found", []),  # named by others
        ("def insert_many(self): pass", []),
        ("try: pass\nexcept ValueError as told: pass", ["line 2: told"]),
        ("from x import y as found", ["line 1: found"]),
    ],
)
def test_bad_names_are_found(source, names):
    assert bad_names(source) == names
