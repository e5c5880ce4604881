"""The source of the package, read and not run: for tests of how it is built and named."""

from __future__ import annotations

import ast
import gc
from functools import lru_cache
from pathlib import Path

SRC = Path(__file__).parent.parent / "src" / "slicewise"
MODULES = sorted(SRC.rglob("*.py"))


@lru_cache(maxsize=1)
def nodes_in(source: str) -> list[ast.AST]:
    """Everything in a module, the module itself first. Parsed once for all that is asked of it in a row.

    A tree has no cycles: to look for garbage in it would take three times as long as to make it.
    """
    gc.disable()
    try:
        return list(ast.walk(ast.parse(source)))
    finally:
        gc.enable()


def nodes_of(path: Path) -> list[ast.AST]:
    """Everything in the module of this path."""
    return nodes_in(path.read_text(encoding="utf-8"))
