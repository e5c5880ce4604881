"""The documentation: links lead somewhere, and what is written from the source is current."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

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


# What is written from the source


def test_api_page_is_current():
    make_api = script("make_api")
    written = (DOCS / "api.md").read_text(encoding="utf-8")
    assert written == make_api.page(), "docs/api.md is not what docs/make_api.py writes; run `make docs`"


def test_api_page_has_every_public_name():
    import slicewise as sw
    from slicewise import plot, swag, testing

    names = {f"sw.{name}" for name in sw.__all__} - {"sw.spark", "sw.swag", "sw.testing"}
    for module, prefix in ((swag, "sw.swag."), (testing, "sw.testing."), (plot, "sw.plot.")):
        names |= {prefix + name for name in module.__all__}
    headings = re.findall(r"^### (\S+)$", (DOCS / "api.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert names <= set(headings)


# -- the checks themselves


def test_links_are_found():
    text = "[a](a.md#part) [b](https://x.org) ![c](c.png) [d](#d)\n```text\n[e](e.md)\n```\n"
    assert links_of(text) == ["a.md", "c.png"]
