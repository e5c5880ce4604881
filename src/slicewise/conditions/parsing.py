"""Parsing: from the text of a condition or an expression to a tree, by hand and without Python's ``eval``.

Conditions of windows are computed in ``computing``; expressions get types in ``typed`` and are computed from there.
"""

from __future__ import annotations

import decimal
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pyarrow as pa

from slicewise.columns import TYPE_NAMES
from slicewise.errors import QueryError, did_you_mean

__all__ = ["FUNCTIONS", "Literal", "Name", "Node", "Tree", "is_plain", "names_in", "nodes_in", "parse", "point_at"]

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
    """An operator over its operands; ``and`` and ``or`` have any number of them, ``in`` its list after the first.

    A function is an operator too. ``case`` has its conditions and values in turn, then what holds otherwise; ``to`` is
    the type of a ``cast``.
    """

    op: str
    operands: tuple[Tree, ...]
    at: int
    to: pa.DataType | None = field(default=None, repr=False)


Tree = Literal | Name | Node


def names_in(tree: Tree) -> Iterator[str]:
    """The columns that an expression reads, from left to right."""
    if isinstance(tree, Name):
        yield tree.name
    elif isinstance(tree, Node):
        for operand in tree.operands:
            yield from names_in(operand)


def nodes_in(tree: Tree) -> Iterator[Node]:
    """The operators and functions of an expression."""
    if isinstance(tree, Node):
        yield tree
        for operand in tree.operands:
            yield from nodes_in(operand)


def is_plain(tree: Tree) -> bool:
    """Whether an expression has no functions in it: only comparisons, logic and arithmetic."""
    return not any(node.op in FUNCTIONS or node.op in ("case", "cast") for node in nodes_in(tree))


# -- from text to tree

#: The functions by name, and how many arguments each takes at least and at most.
FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(("abs", "sqrt", "exp", "ln", "log10", "sin", "cos", "tan", "floor", "ceil"), (1, 1)),
    "pow": (2, 2),
    "round": (1, 2),
    "coalesce": (1, 1000),
    "least": (2, 1000),
    "greatest": (2, 1000),
}

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w))
  | (?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<quoted>`(?:[^`]|``)+`)
  | (?P<word>[^\W\d]\w*)
  | (?P<sign><=|>=|<>|!=|==|[=<>+\-*/%(),.])
  | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
_KEYWORDS = {"and", "or", "not", "is", "in", "between", "null", "true", "false"}
#: Other names of functions, and ours.
_SAME_FUNCTION = {"power": "pow", "ceiling": "ceil"}
#: What a cast may make, by Spark's names.
_CAST_TYPES = {
    **{name: type_ for name, type_ in TYPE_NAMES.items() if name not in ("binary", "timestamp_ntz")},
    "byte": pa.int8(),
    "short": pa.int16(),
    "real": pa.float32(),
}
#: What may follow a column, also one that is called `case`.
_AFTER_NAMES = ("and", "or", "is", "in", "not", "between")
_DECIMALS = ("decimal", "dec", "numeric")
_MOST_DIGITS = 38
_SAME_SIGN = {"=": "==", "<>": "!="}
_COMPARE = ("==", "!=", "<", "<=", ">", ">=")
_HELP = "write a column name, or an expression such as \"price < 10 and kind = 'trade'\""


def point_at(text: str, at: int) -> str:
    """The text, or the part of a long one around a place, with a caret under that place."""
    first = max(0, at - 60)
    shown = re.sub(r"\s", " ", text[first : at + 40])
    return f"    {shown}\n    {' ' * (at - first)}^"


def _refusal(problem: str, parameter: str) -> QueryError:
    return QueryError(f"`{parameter}` {problem}", parameter=parameter)


#: Whoever walks a tree calls itself for each level, twice: deeper, and Python would stop it somewhere on the way.
DEEPEST = 400


@dataclass(frozen=True)
class _Token:
    kind: str
    value: str
    at: int


@functools.lru_cache(maxsize=256)
def parse(text: str, parameter: str = "condition") -> Tree:
    """The tree of an expression; errors call it by the ``parameter`` that it was given for.

    >>> parse("not v = 3")
    Node(op='not', operands=(Node(op='==', operands=(Name(name='v', at=4), Literal(value=3, at=8)), at=6),), at=0)
    """
    parser = _Parser(text, parameter)
    too_deep = _refusal(f"is nested too deeply; got {text[:40]!r}...; make it simpler", parameter)
    try:
        tree = parser.disjunction()
    except RecursionError:
        raise too_deep from None
    if parser.token.kind != "end":
        parser.refuse("`and`, `or` or the end")
    if _levels(tree) > DEEPEST:
        raise too_deep
    return tree


def _levels(tree: Tree) -> int:
    """How deep a tree is. A sum of many terms, which are read one after another, is as deep as it is long."""
    level, levels = [tree], 0
    while level:
        level = [operand for node in level if isinstance(node, Node) for operand in node.operands]
        levels += 1
    return levels


class _Parser:
    """Recursive descent, a method for each level of binding: ``or``, ``and``, ``not``, tests, ``+``, ``*``, values."""

    def __init__(self, text: str, parameter: str) -> None:
        self.text, self.parameter = text, parameter
        self.token = self._read(0)

    def refuse(self, wanted: str) -> NoReturn:
        token = self.token
        got = "ends" if token.kind == "end" else f"has {token.value!r}"
        help_ = "put a name that is no single word, or a keyword, in backticks" if token.kind == "word" else _HELP
        self._refuse_at(token.at, f"{got} where {wanted} should be", help_)

    def _refuse_at(self, at: int, problem: str, instead: str) -> NoReturn:
        raise _refusal(f"{problem}; got\n{point_at(self.text, at)}\n{instead}", self.parameter)

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
            return self._maybe_not(negated, Node("in", (left, *self._list(self._sum)), at))
        if self._take("between"):
            low = self._sum()
            self._expect("and")
            both = (Node(">=", (left, low), at), Node("<=", (left, self._sum()), at))
            return self._maybe_not(negated, Node("and", both, at))
        if negated:
            self.refuse("`in` or `between`")
        return left

    def _list(self, item: Callable[[], Tree]) -> list[Tree]:
        self._expect("(")
        items = [item()]
        while self._take(","):
            items.append(item())
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
            number = self.token.kind == "number"
            value = self._signed()
            # The sign belongs to the number behind it, and to no other: -(5) is calculated. Python's minus would round.
            if number and isinstance(value, Literal):
                exact = isinstance(value.value, decimal.Decimal)
                return Literal(value.value.copy_negate() if exact else -value.value, token.at)
            return Node("neg", (value,), token.at)
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
            return self._name()
        if token.kind == "word" and self._begins_case():
            return self._case()
        if token.kind == "word" and self._following().value == "(" and token.value.lower() not in _KEYWORDS:
            return self._call()
        if token.kind == "word" and token.value.lower() in ("null", "true", "false"):
            return Literal({"null": None, "true": True, "false": False}[self._next().value.lower()], token.at)
        if token.kind == "word" and token.value.lower() not in _KEYWORDS:
            return self._name()
        self.refuse("a value")

    def _name(self) -> Name:
        """A column, or a field of one: ``a.b``."""
        at, parts = self.token.at, []
        while True:
            if self.token.kind not in ("word", "quoted"):
                self.refuse("the name of a field")
            token = self._next()
            parts.append(token.value if token.kind == "word" else token.value[1:-1].replace("``", "`"))
            if not self._take("."):
                return Name(".".join(parts), at)

    def _begins_case(self) -> bool:
        """Whether the word is that of an expression, and not a column that is called so."""
        following = self._following()
        begins = following.kind in ("word", "quoted", "number", "text") or following.value in ("(", "-", "+")
        return self.token.value.lower() == "case" and begins and following.value.lower() not in _AFTER_NAMES

    def _case(self) -> Tree:
        at = self._next().at
        subject = None if self._is("when") else self.disjunction()
        parts: list[Tree] = []
        while self._take("when"):
            when_at, value = self.token.at, self.disjunction()
            parts.append(value if subject is None else Node("==", (subject, value), when_at))
            self._expect("then")
            parts.append(self.disjunction())
        if not parts:
            self.refuse("`when`")
        parts.append(self.disjunction() if self._take("else") else Literal(None, self.token.at))
        self._expect("end")
        return Node("case", tuple(parts), at)

    def _call(self) -> Tree:
        token = self._next()
        name = _SAME_FUNCTION.get(token.value.lower(), token.value.lower())
        if name == "cast":
            return self._cast(token.at)
        if name not in FUNCTIONS:
            known = did_you_mean(name, (*FUNCTIONS, "cast"))
            self._refuse_at(token.at, f"has an unknown function {token.value!r}", known)
        arguments = self._list(self.disjunction)
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            wanted = f"{least}" if least == most else f"{least} or more" if most > 2 else f"{least} or {most}"
            number = f"takes {wanted} argument{'' if wanted == '1' else 's'}"
            self._refuse_at(
                token.at,
                f"calls `{name}` with {len(arguments)} argument{'s' * (len(arguments) > 1)}",
                f"`{name}` {number}",
            )
        return Node(name, tuple(arguments), token.at)

    def _cast(self, at: int) -> Node:
        self._expect("(")
        value = self.disjunction()
        self._expect("as")
        to = self._type()
        self._expect(")")
        return Node("cast", (value,), at, to)

    def _type(self) -> pa.DataType:
        token = self.token
        name = token.value.lower()
        if token.kind != "word" or name not in (*_CAST_TYPES, *_DECIMALS):
            known = did_you_mean(name, (*_CAST_TYPES, "decimal"))
            self._refuse_at(token.at, f"has {token.value!r} where a type should be", known)
        self._next()
        if name not in _DECIMALS:
            return _CAST_TYPES[name]
        digits = [10, 0]
        if self._take("("):
            digits = [self._whole(), self._whole() if self._take(",") else 0]
            self._expect(")")
        if not (1 <= digits[0] <= _MOST_DIGITS and digits[1] <= digits[0]):
            limits = f"a decimal has 1 to {_MOST_DIGITS} digits, and no more of them behind the point"
            self._refuse_at(token.at, f"has decimal({digits[0]}, {digits[1]})", limits)
        return pa.decimal128(*digits)

    def _whole(self) -> int:
        if self.token.kind != "number" or not self.token.value.isdecimal():
            self.refuse("a whole number")
        return int(self._next().value)

    def _read(self, at: int) -> _Token:
        match = _TOKEN.match(self.text, at)
        if match is not None and match.lastgroup is not None:
            return _Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup))
        at += len(self.text[at:]) - len(self.text[at:].lstrip())
        what = "a quote that is not closed" if self.text[at] in "'\"`" else "something that we cannot read"
        self._refuse_at(at, f"has {what}", _HELP)

    def _following(self) -> _Token:
        """The token after the present one."""
        return self._read(self.token.at + len(self.token.value))

    def _is(self, word: str) -> bool:
        return self.token.kind in ("word", "sign") and self.token.value.lower() == word

    def _next(self) -> _Token:
        token = self.token
        self.token = self._read(token.at + len(token.value))
        return token

    def _take(self, word: str) -> bool:
        if self._is(word):
            self._next()
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self.refuse(f"`{word}`")

    @staticmethod
    def _maybe_not(negated: bool, tree: Node) -> Node:
        return Node("not", (tree,), tree.at) if negated else tree
