"""Conditions: which rows start a window, or belong to a frame: a column, a small expression, or the user's function.

A leaf: it knows columns, and nothing of windows. An expression is read by hand into a tree and computed on whole
columns; nothing is ever given to Python's ``eval``. It means what it means in Spark's SQL:

* three-valued logic: whatever is compared with null is null, and null is not true;
* NaN equals NaN and is larger than any other number; an integer meets a floating number as a double;
* ``/`` gives a floating number, ``%`` has the sign of its left side, and both give null when the right side is 0.
"""

from __future__ import annotations

import decimal
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from slicewise.columns import Column
from slicewise.errors import DataError, QueryError, did_you_mean

__all__ = ["Condition"]


@dataclass(frozen=True)
class Condition:
    """A test of rows, made by :meth:`of`.

    ``columns`` are the names of the columns that it reads.

    Examples
    --------
    >>> condition = Condition.of("price < 10 and kind is not null")
    >>> condition.columns
    ('price', 'kind')
    >>> columns = {"price": Column.of([5, None, 7, 20]), "kind": Column.of(["a", "b", None, "d"])}
    >>> condition.holds(columns, 4)
    array([ True, False, False, False])

    A function takes the columns it names as arrays; one with nulls is a masked array.

    >>> Condition.of(lambda c: c["price"] % 2 == 1, ["price"]).holds(columns, 4)
    array([ True, False,  True, False])
    """

    said: str | Callable[[dict[str, np.ndarray]], Any]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, said: Any, columns: Sequence[str] = ()) -> Condition:
        """Read a condition: an expression in text, or a function and the columns that it reads.

        Raises
        ------
        QueryError
            With the place in the text where it cannot be read.

        Examples
        --------
        >>> Condition.of("price < < 10")
        Traceback (most recent call last):
        slicewise.errors.QueryError: `condition` has '<' where a value should be; got
            price < < 10
                    ^
        write a column name, or an expression such as "price < 10 and kind = 'trade'"
        """
        if isinstance(said, str) and said.strip():
            return cls(said, tuple(dict.fromkeys(_names(_parse(said)))))
        if callable(said):
            return cls(said, tuple(columns))
        raise QueryError(
            f"`condition` must be a column name, an expression such as 'price < 10', or a function; got {said!r}"
        )

    def holds(self, columns: Mapping[str, Column], rows: int, *, query: str | None = None) -> np.ndarray:
        """For each of ``rows`` rows whether the condition is true of it: neither false nor null.

        Errors name the ``query``, where one is given.

        Runtime complexity: O(rows) for each operator of the expression, in array steps.
        """
        who = "" if query is None else f"query {query!r}: "
        for name in self.columns:
            if name not in columns:
                raise DataError(
                    f"{who}{self} reads a column {name!r} that the rows do not have; {did_you_mean(name, columns)}"
                )
        if not isinstance(self.said, str):
            return self._call({name: _as_array(columns[name]) for name in self.columns}, rows, who)
        try:
            answer = _Expression(self.said, columns, who).compute(_parse(self.said))
        except (ArithmeticError, RecursionError) as error:
            raise DataError(f"{who}{self} cannot be computed: {error}; make it simpler, or cast the columns") from None
        if answer.kind not in ("boolean", "null"):
            raise DataError(f"{who}{self} is {_KINDS[answer.kind]}, not true or false; compare it with something")
        return np.broadcast_to(_truth(answer), (rows,))

    def _call(self, arrays: dict[str, np.ndarray], rows: int, who: str) -> np.ndarray:
        assert callable(self.said)
        if not arrays:
            raise QueryError(f"{who}{self} is a function that reads no columns; name them: columns=['price']")
        try:
            answer = self.said(dict(arrays))
        except Exception as error:
            raise DataError(
                f"{who}{self} raised {type(error).__name__}: {error}; {self._find_record(arrays, rows)}"
            ) from error
        data = np.asarray(np.ma.getdata(answer))
        if data.shape != (rows,) or data.dtype != np.bool_:
            raise DataError(
                f"{who}{self} must return one boolean per row, an array of shape ({rows},) and type bool; "
                f"got shape {data.shape} and type {data.dtype}"
            )
        return data & ~np.ma.getmaskarray(answer) if np.ma.isMaskedArray(answer) else data

    def _find_record(self, arrays: dict[str, np.ndarray], rows: int) -> str:
        assert callable(self.said)
        for i in range(rows):
            try:
                self.said({name: array[i : i + 1] for name, array in arrays.items()})
            except Exception:
                record = ", ".join(f"{n}={array[i : i + 1].tolist()[0]!r}" for n, array in arrays.items())
                return f"row {i} of {rows}: {record}"
        return f"on {rows} rows at once, though on none of them alone"

    def __str__(self) -> str:
        named = repr(self.said) if isinstance(self.said, str) else getattr(self.said, "__qualname__", repr(self.said))
        return f"the condition {named}"


# -- the tree: each node knows where in the text it stands


@dataclass(frozen=True)
class _Literal:
    value: Any
    at: int


@dataclass(frozen=True)
class _Name:
    name: str
    at: int


@dataclass(frozen=True)
class _Node:
    """An operator over its operands; ``and`` and ``or`` have any number of them, ``in`` its list after the first."""

    op: str
    operands: tuple[_Tree, ...]
    at: int


_Tree = _Literal | _Name | _Node


def _names(tree: _Tree) -> Iterator[str]:
    if isinstance(tree, _Name):
        yield tree.name
    elif isinstance(tree, _Node):
        for operand in tree.operands:
            yield from _names(operand)


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


def _point(text: str, at: int) -> str:
    """The text with a caret under a place in it; of a long one, what stands around the place."""
    first = max(0, at - 60)
    shown = re.sub(r"\s", " ", text[first : at + 40])
    return f"    {shown}\n    {' ' * (at - first)}^"


@dataclass(frozen=True)
class _Token:
    kind: str
    value: str
    at: int


@functools.lru_cache(maxsize=256)
def _parse(text: str) -> _Tree:
    parser = _Parser(text)
    try:
        tree = parser.disjunction()
    except RecursionError:
        raise QueryError(f"`condition` is nested too deeply; got {text[:40]!r}...; make it simpler") from None
    if parser.token.kind != "end":
        parser.refuse("a comparison, `and`, `or`, or the end")
    return tree


class _Parser:
    """Recursive descent, one method for each level of binding: ``or``, ``and``, ``not``, tests, ``+``, ``*``, values."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.token = self._read(0)

    def refuse(self, wanted: str) -> NoReturn:
        token = self.token
        got = "ends" if token.kind == "end" else f"has {self.text[token.at :][: len(token.value)]!r}"
        help_ = "put a name that is no single word, or a keyword, in backticks" if token.kind == "word" else _HELP
        raise QueryError(
            f"`condition` {got} where {wanted} should be; got\n{_point(self.text, token.at)}\n{help_}",
        )

    def disjunction(self) -> _Tree:
        return self._chain("or", self._conjunction)

    def _conjunction(self) -> _Tree:
        return self._chain("and", self._negation)

    def _chain(self, word: str, part: Callable[[], _Tree]) -> _Tree:
        at, parts = self.token.at, [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else _Node(word, tuple(parts), at)

    def _negation(self) -> _Tree:
        at = self.token.at
        return _Node("not", (self._negation(),), at) if self._take("not") else self._test()

    def _test(self) -> _Tree:
        left = self._sum()
        while (at := self.token.at) >= 0:
            sign = _SAME_SIGN.get(self.token.value, self.token.value)
            if self.token.kind == "sign" and sign in _COMPARE:
                self._next()
                left = _Node(sign, (left, self._sum()), at)
            elif self._take("is"):
                negated = self._take("not")
                self._expect("null")
                left = self._maybe_not(negated, _Node("is null", (left,), at))
            else:
                negated = self._take("not")
                if self._take("in"):
                    left = self._maybe_not(negated, _Node("in", (left, *self._list()), at))
                elif self._take("between"):
                    low = self._sum()
                    self._expect("and")
                    both = (_Node(">=", (left, low), at), _Node("<=", (left, self._sum()), at))
                    left = self._maybe_not(negated, _Node("and", both, at))
                elif negated:
                    self.refuse("`in` or `between`")
                else:
                    break
        return left

    def _list(self) -> list[_Tree]:
        self._expect("(")
        items = [self._sum()]
        while self._take(","):
            items.append(self._sum())
        self._expect(")")
        return items

    def _sum(self) -> _Tree:
        return self._operators("+-", self._product)

    def _product(self) -> _Tree:
        return self._operators("*/%", self._signed)

    def _operators(self, signs: str, part: Callable[[], _Tree]) -> _Tree:
        left = part()
        while self.token.kind == "sign" and self.token.value in signs:
            token = self._next()
            left = _Node(token.value, (left, part()), token.at)
        return left

    def _signed(self) -> _Tree:
        token = self.token
        if self._take("-"):
            value = self._signed()
            if isinstance(value, _Literal) and isinstance(value.value, (int, decimal.Decimal, float)):
                return _Literal(-value.value, token.at)
            return _Node("-", (_Literal(0, token.at), value), token.at)
        return self._signed() if self._take("+") else self._value()

    def _value(self) -> _Tree:
        token = self.token
        if self._take("("):
            inner = self.disjunction()
            self._expect(")")
            return inner
        if token.kind == "number":
            # Digits with a point are exact until they meet a floating number, as in Spark.
            whole = token.value.isdecimal()
            number = int(token.value) if whole else decimal.Decimal(token.value)
            return _Literal(float(number) if "e" in token.value.lower() else number, self._next().at)
        if token.kind == "text":
            quote = token.value[0]
            return _Literal(token.value[1:-1].replace(quote * 2, quote), self._next().at)
        if token.kind == "quoted":
            return _Name(token.value[1:-1].replace("``", "`"), self._next().at)
        if token.kind == "word" and token.value.lower() in ("null", "true", "false"):
            return _Literal({"null": None, "true": True, "false": False}[self._next().value.lower()], token.at)
        if token.kind == "word" and token.value.lower() not in _KEYWORDS:
            return _Name(self._next().value, token.at)
        self.refuse("a value")

    def _read(self, at: int) -> _Token:
        found = _TOKEN.match(self.text, at)
        if found is not None and found.lastgroup is not None:
            return _Token(found.lastgroup, found[found.lastgroup], found.start(found.lastgroup))
        at += len(self.text[at:]) - len(self.text[at:].lstrip())
        what = "a quote that is not closed" if self.text[at] in "'\"`" else "a character that we cannot read"
        raise QueryError(f"`condition` has {what}; got\n{_point(self.text, at)}\n{_HELP}")

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
    def _maybe_not(negated: bool, tree: _Node) -> _Node:
        return _Node("not", (tree,), tree.at) if negated else tree
