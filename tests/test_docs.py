"""The documentation: links lead somewhere, and what is written from the source is current."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import slicewise
from slicewise import baselines, plot, spark, swag, testing
from tests.source import MODULES, SRC, nodes_of

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "tests").glob("*.md")])


def script(name: str) -> ModuleType:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def page_name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Links


def links_of(text: str) -> list[str]:
    """The targets of links and pictures that are files."""
    targets = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return [target.partition("#")[0] for target in targets if "://" not in target and not target.startswith("#")]


@pytest.mark.parametrize("path", PAGES, ids=page_name)
def test_links_lead_to_files(path):
    missing = [link for link in links_of(path.read_text(encoding="utf-8")) if not (path.parent / link).exists()]
    assert missing == []


def test_every_page_is_in_the_index():
    linked = set(links_of((DOCS / "index.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - linked == {"index.md"}


def test_every_picture_is_shown_and_small():
    pictures = set(DOCS.glob("pictures/*.png"))
    shown = {page.parent / link for page in DOCS.glob("*.md") for link in links_of(page.read_text(encoding="utf-8"))}
    assert pictures == shown & pictures
    assert [str(picture) for picture in pictures if picture.stat().st_size >= 60_000] == []


def test_pictures_are_of_the_rows_on_the_page():
    pytest.importorskip("matplotlib")
    page: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((DOCS / "windows.md").read_text(encoding="utf-8"))[:4]:
        exec(example.source, page)
    assert page["van"] == script("draw").VAN


# Names

#: Pages about the source, whose names of modules, classes and functions must exist.
ABOUT_THE_SOURCE = [DOCS / "inside.md", ROOT / "CONTRIBUTING.md", *sorted((DOCS / "decisions").glob("*.md"))]
#: Others' names, by what they begin with.
OTHERS = ("np.", "pyspark.", "spark.sql.", "DataFrame", "SparkSession", "None", "True", "False")


class Source:
    """What there is in the source: files, and the names in modules and classes. Read, not run."""

    def __init__(self) -> None:
        self.modules: dict[str, set[str]] = {"sw": set(slicewise.__all__)}
        self.classes: dict[str, set[str]] = {}
        bases: dict[str, list[str]] = {}
        for path in MODULES:
            module, *nodes = nodes_of(path)
            name = path.parent.name if path.stem == "__init__" else path.stem
            assert isinstance(module, ast.Module)
            self.modules.setdefault(name, set()).update(_names_in(module.body))
            for node in nodes:
                if isinstance(node, ast.ClassDef):
                    self.classes.setdefault(node.name, set()).update(_names_in(node.body) | _attributes_in(node))
                    bases.setdefault(node.name, []).extend(ast.unparse(base) for base in node.bases)
        for name in self.classes:
            todo = list(bases[name])
            while todo:
                base = todo.pop()
                self.classes[name] |= self.classes.get(base, set())
                todo += bases.get(base, [])

    def has(self, name: str) -> bool:
        """Whether a file, ``module.name`` or ``Class.name`` exists."""
        if "/" in name:
            return (SRC / name).exists() or (ROOT / name).exists()
        if "." not in name:
            return name in self.classes
        if (SRC.parent / f"{name.replace('.', '/')}.py").exists():
            return True
        owner, _, member = name.rpartition(".")
        owner = owner.rpartition(".")[2]
        return member in self.modules.get(owner, ()) or member in self.classes.get(owner, ())


def _names_in(body: list[ast.stmt]) -> set[str]:
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {inner.id for target in targets for inner in ast.walk(target) if isinstance(inner, ast.Name)}
    return names


def _attributes_in(node: ast.ClassDef) -> set[str]:
    stored = (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store))
    return {n.attr for n in stored if isinstance(n.value, ast.Name) and n.value.id == "self"}


def names_in(text: str) -> list[str]:
    """The names in backticks that have a dot or a slash, and classes; files without a folder are not ours."""
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"`([\w./]+)`", text)
    ours = [name for name in names if re.search(r"\w[./]", name) or re.fullmatch(r"[A-Z]\w*[a-z]\w*", name)]
    return [name for name in ours if not name.startswith(OTHERS) and not re.fullmatch(r"\w+\.(md|toml|py)", name)]


@pytest.fixture(scope="module")
def source() -> Source:
    return Source()


@pytest.mark.parametrize("path", ABOUT_THE_SOURCE, ids=page_name)
def test_names_of_the_source_exist(path, source):
    text = path.read_text(encoding="utf-8").replace(recipes(), "")
    assert [name for name in names_in(text) if not source.has(name)] == []


def recipes() -> str:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    return text[text.index("## Recipes") : text.index("## Tests")]


def test_names_in_recipes_exist(source):
    assert [name for name in names_in(recipes()) if not source.has(name)] == []


# The table of tests


def test_table_of_tests_is_complete():
    text = (ROOT / "tests" / "README.md").read_text(encoding="utf-8")
    names = set(re.findall(r"`([\w/]+(?:\.py|/))`", text))
    modules = {path.relative_to(SRC).as_posix() for path in MODULES}
    modules = {name for name in modules if not name.endswith(("__init__.py", "__main__.py"))}
    tests = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    folders = tuple(name for name in names if name.endswith("/"))
    assert {name for name in modules if not name.startswith(folders)} - names == set()
    assert tests - names == set()
    assert names - modules - tests - {name for name in folders if (SRC / name).is_dir()} == set()


# What is written from the source


def test_api_page_is_current():
    make_api = script("make_api")
    written = (DOCS / "api.md").read_text(encoding="utf-8")
    assert written == make_api.page(), "docs/api.md is not what docs/make_api.py writes; run `make docs`"


def test_page_of_aggregates_is_current():
    make_aggregates = script("make_aggregates")
    written = (DOCS / "aggregates.md").read_text(encoding="utf-8")
    assert written == make_aggregates.page(), "docs/aggregates.md is not what its script writes; run `make docs`"
    assert all(f"`{name}`" in written for name in (*slicewise.AGGREGATES, *slicewise.ALIASES))


def test_api_page_has_every_public_name():
    names = {f"sw.{name}" for name in slicewise.__all__} - {"sw.spark", "sw.swag", "sw.testing"}
    for module, prefix in ((swag, "sw.swag."), (testing, "sw.testing."), (plot, "sw.plot."), (baselines, "baselines.")):
        names |= {prefix + name for name in module.__all__}
    names |= {f"sw.{name}" if name in slicewise.__all__ else f"sw.spark.{name}" for name in spark.__all__}
    headings = re.findall(r"^### (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert names <= set(headings)


# -- the checks themselves


def test_links_are_found():
    text = "[a](a.md#part) [b](https://x.org) ![c](c.png) [d](#d)\n```text\n[e](e.md)\n```\n"
    assert links_of(text) == ["a.md", "c.png"]


def test_names_are_found():
    text = "`a.b` and `slicing/rows/`, `Engine`, `KeyTable`, `f(x.y)`, `np.add`, `job.toml`\n```text\n`c.d`\n```\n"
    assert names_in(text) == ["a.b", "slicing/rows/", "Engine", "KeyTable"]


@pytest.mark.parametrize(
    ("name", "exists"),
    [
        ("slicing/engine.py", True),
        ("slicing/motor.py", False),
        ("tests/test_docs.py", True),
        ("slicer.cut_rows", True),
        ("slicer.cut_cake", False),
        ("Engine.advance", True),
        ("Engine.retreat", False),
        ("Shard.advance", True),  # inherited
        ("Slices.unreported", True),  # a field
        ("RowBuffer.process", True),  # set when it is made
        ("sw.tumbling", True),
        ("sw.tumble", False),
        ("KeyTable", True),
        ("KeyChair", False),
    ],
)
def test_names_are_looked_up(source, name, exists):
    assert source.has(name) == exists
