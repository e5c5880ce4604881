"""Parsing: from the text of a condition to a tree, by hand and without Python's ``eval``. Computed in ``computing``."""

from __future__ import annotations

import decimal
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from slicewise.errors import QueryError

__all__ = ["Literal", "Name", "Node", "Tree", "names_in", "parse", "point_at"]

# -- the tree: each node knows where in the text it stands


@dataclass(frozen=True)
class Literal:
    """A number, text, true, false or null."""

    value: Any
    at: int


@dataclass(frozen=True)
class Name:
    """A column."""

    name: str
    at: int


@dataclass(frozen=True)
class Node:
    """An operator over its operands; ``and`` and ``or`` have any number of them, ``in`` its list after the first."""

    op: str
    operands: tuple[Tree, ...]
    at: int


Tree = Literal | Name | Node


def names_in(tree: Tree) -> Iterator[str]:
    """The columns that an expression reads, from left to right."""
    if isinstance(tree, Name):
        yield tree.name
    elif isinstance(tree, Node):
        for operand in tree.operands:
            yield from names_in(operand)


# -- from text to tree

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
  | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=|>=|<>|!=|==|[=<>+\-*/%(),])
  | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = {"and", "or", "not", "is", "in", "between", "null", "true", "false"}
_SAME_SIGN = {"=": "==", "<>": "!="}
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_HELP = "write a column name, or an expression such as \"price < 10 and kind = 'trade'\""


def point_at(text: str, at: int) -> str:
    """The text, or the part of a long one around a place, with a caret under that place."""
    first = max(0, at - 60)
    shown = re.sub(r"\s", " ", text[first : at + 40])
    return f"    {shown}\n    {' ' * (at - first)}^"


def _refusal(problem: str) -> QueryError:
    return QueryError(f"`condition` {problem}", parameter="condition")


@dataclass(frozen=True)
class _Token:
    kind: str
    value: str
    at: int


@functools.lru_cache(maxsize=256)
def parse(text: str) -> Tree:
    """The tree of an expression.

    >>> parse("not v = 3")
    Node(op='not', operands=(Node(op='==', operands=(Name(name='v', at=4), Literal(value=3, at=8)), at=6),), at=0)
    """
    parser = _Parser(text)
    try:
        tree = parser.disjunction()
    except RecursionError:
        raise _refusal(f"is nested too deeply; got {text[:40]!r}...; make it simpler") from None
    if parser.token.kind != "end":
        parser.refuse("`and`, `or` or the end")
    return tree


class _Parser:
    """Recursive descent, a method for each level of binding: ``or``, ``and``, ``not``, tests, ``+``, ``*``, values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = self._read(0)

    def refuse(self, wanted: str) -> NoReturn:
        token = self.token
        got = "ends" if token.kind == "end" else f"has {token.value!r}"
        help_ = "put a name that is no single word, or a keyword, in backticks" if token.kind == "word" else _HELP
        raise _refusal(f"{got} where {wanted} should be; got\n{point_at(self.text, token.at)}\n{help_}")

    def disjunction(self) -> Tree:
        return self._chain("or", self._conjunction)

    def _conjunction(self) -> Tree:
        return self._chain("and", self._negation)

    def _chain(self, word: str, part: Callable[[], Tree]) -> Tree:
        at, parts = self.token.at, [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Node(word, tuple(parts), at)

    def _negation(self) -> Tree:
        at = self.token.at
        return Node("not", (self._negation(),), at) if self._take("not") else self._test()

    def _test(self) -> Tree:
        """At most one test: ``a < b < c`` is refused, where Python and SQL would mean different things by it."""
        left, at = self._sum(), self.token.at
        sign = _SAME_SIGN.get(self.token.value, self.token.value)
        if self.token.kind == "sign" and sign in _COMPARE:
            self._next()
            return Node(sign, (left, self._sum()), at)
        if self._take("is"):
            negated = self._take("not")
            self._expect("null")
            return self._maybe_not(negated, Node("is null", (left,), at))
        negated = self._take("not")
        if self._take("in"):
            return self._maybe_not(negated, Node("in", (left, *self._list()), at))
        if self._take("between"):
            low = self._sum()
            self._expect("and")
            both = (Node(">=", (left, low), at), Node("<=", (left, self._sum()), at))
            return self._maybe_not(negated, Node("and", both, at))
        if negated:
            self.refuse("`in` or `between`")
        return left

    def _list(self) -> list[Tree]:
        self._expect("(")
        items = [self._sum()]
        while self._take(","):
            items.append(self._sum())
        self._expect(")")
        return items

    def _sum(self) -> Tree:
        return self._operators("+-", self._product)

    def _product(self) -> Tree:
        return self._operators("*/%", self._signed)

    def _operators(self, signs: str, part: Callable[[], Tree]) -> Tree:
        left = part()
        while self.token.kind == "sign" and self.token.value in signs:
            token = self._next()
            left = Node(token.value, (left, part()), token.at)
        return left

    def _signed(self) -> Tree:
        token = self.token
        if self._take("-"):
            value = self._signed()
            if isinstance(value, Literal) and isinstance(value.value, (int, decimal.Decimal, float)):
                return Literal(-value.value, token.at)
            return Node("-", (Literal(0, token.at), value), token.at)
        return self._signed() if self._take("+") else self._value()

    def _value(self) -> Tree:
        token = self.token
        if self._take("("):
            inner = self.disjunction()
            self._expect(")")
            return inner
        if token.kind == "number":
            # Digits with a point are exact until they meet a floating number, as in Spark.
            whole = token.value.isdecimal()
            number = int(token.value) if whole else decimal.Decimal(token.value)
            return Literal(float(number) if "e" in token.value.lower() else number, self._next().at)
        if token.kind == "text":
            quote = token.value[0]
            return Literal(token.value[1:-1].replace(quote * 2, quote), self._next().at)
        if token.kind == "quoted":
            return Name(token.value[1:-1].replace("``", "`"), self._next().at)
        if token.kind == "word" and token.value.lower() in ("null", "true", "false"):
            return Literal({"null": None, "true": True, "false": False}[self._next().value.lower()], token.at)
        if token.kind == "word" and token.value.lower() not in _KEYWORDS:
            return Name(self._next().value, token.at)
        self.refuse("a value")

    def _read(self, at: int) -> _Token:
        match = _TOKEN.match(self.text, at)
        if match is not None and match.lastgroup is not None:
            return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        at += len(self.text[at:]) - len(self.text[at:].lstrip())
        what = "a quote that is not closed" if self.text[at] in "'\"`" else "something that we cannot read"
        raise _refusal(f"has {what}; got\n{point_at(self.text, at)}\n{_HELP}")

    def _next(self) -> _Token:
        token = self.token
        self.token = self._read(token.at + len(token.value))
        return token

    def _take(self, word: str) -> bool:
        if self.token.kind in ("word", "sign") and self.token.value.lower() == word:
            self._next()
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self.refuse(f"`{word}`")

    @staticmethod
    def _maybe_not(negated: bool, tree: Node) -> Node:
        return Node("not", (tree,), tree.at) if negated else tree
