"""The glossary: modules and classes of the engine are named by its words."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests import source
from tests.source import SRC, nodes_of

ROOT = Path(__file__).parent.parent
MODULES = [path for path in source.MODULES if path.relative_to(SRC).parts[0] in ("slicing", "spark")]

#: Words of English, Python or Spark that need no entry, because they mean here what they mean everywhere.
GENERAL = {
    *("array", "table", "tree", "type"),  # data
    *("input", "output", "io", "ids", "reader", "runner", "finder"),  # programs
    *("arrow", "pandas"),  # the formats
    "version",  # of Spark
    "asked",  # for an answer
    "harness",  # of tests
    "error",  # in Python
}
ENDINGS = ("ition", "ness", "ing", "ion", "ies", "ed", "er", "es", "or", "s", "e", "y")


def stem(word: str) -> str:
    """What a word has in common with its other forms.

    >>> {stem(word) for word in ("compose", "Composer", "composing", "composition")}
    {'compo'}
    >>> stem("query") == stem("queries"), stem("order") == stem("ordered"), stem("late") == stem("lateness")
    (True, True, True)
    """
    word = word.lower()
    while ending := next((e for e in ENDINGS if word.endswith(e) and len(word) - len(e) >= 3), None):
        word = word.removesuffix(ending)
    return word


def words_of(name: str) -> list[str]:
    """The words of a name in CamelCase or snake_case.

    >>> words_of("QueryFanOut"), words_of("held_rows"), words_of("M4")
    (['Query', 'Fan', 'Out'], ['held', 'rows'], ['M4'])
    """
    return re.findall(r"[A-Z]+\d*(?![a-z])|[A-Z]?[a-z]+", name)


def entries_of(glossary: str) -> set[str]:
    """The stems of the words that entries are about; those in bold."""
    heads = re.findall(r"\*\*(.+?)\*\*", glossary, flags=re.DOTALL)
    words = [word for head in heads for word in re.split(r"[^\w-]+", head) if word]
    # What has a hyphen may be one word in a name, or several.
    return {stem(part) for word in words for part in (word.replace("-", ""), *word.split("-"))}


@cache
def names_of(path: Path) -> list[str]:
    """The module and its public classes."""
    classes = [node for node in nodes_of(path) if isinstance(node, ast.ClassDef)]
    modules = [] if path.stem == "__init__" else [path.stem]
    return modules + [node.name for node in classes if not node.name.startswith("_")]


ENTRIES = entries_of((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))
KNOWN = ENTRIES | {stem(word) for word in GENERAL}


def test_names_have_their_words_in_the_glossary():
    unknown = {
        (path.relative_to(SRC).as_posix(), name): [word for word in words_of(name) if stem(word) not in KNOWN]
        for path in MODULES
        for name in names_of(path)
    }
    assert {place: words for place, words in unknown.items() if words} == {}


def test_general_words_are_used_and_have_no_entry():
    """The list stays small."""
    used = {stem(word) for path in MODULES for name in names_of(path) for word in words_of(name)}
    assert [word for word in sorted(GENERAL) if stem(word) in ENTRIES or stem(word) not in used] == []


def test_entries_are_in_bold():
    assert entries_of("**Hand-over.** The way. **Cut, slice.** A\n**shared\ncut** and *not this*.") == {
        *("handov", "hand", "over", "cut", "slic", "shar"),
    }
