"""Call parser: windows and aggregates as job files write them, ``"sliding('1 minute', every='1 second')"``.

Python's syntax, parsed with ``ast`` and never run: only calls of the known functions, with literals as arguments. In an
aggregate a bare name is a column, and so is a string: ``avg(v)``, ``avg('my col')``; ``expr('a * b')`` is a computed
one. ``.where('a > 3')`` and ``.by(kind)`` follow an aggregate as in Python.
"""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from slicewise import aggregates, amounts, windows
from slicewise.aggregates import AGGREGATES, ALIASES
from slicewise.aggregates.base import Aggregate
from slicewise.amounts import Amount
from slicewise.conditions.expression import expr
from slicewise.errors import SlicewiseError, did_you_mean
from slicewise.windows import Window

__all__ = ["CallSyntaxError", "read_aggregate", "read_window"]

_LONGEST = 2000
_WINDOW_EXAMPLE = "tumbling('1 minute')"
_AGGREGATE_EXAMPLE = "sum(v)"

#: What an argument may be: a column (a bare name or a string), a literal, True or False, a length (a literal,
#: ``rows``, ``units``), or a length that may be computed, ``expr('...')``.
_COLUMN, _LITERAL, _FLAG, _LENGTH, _COMPUTED = "column", "literal", "flag", "length", "computed length"

#: Names of other systems, and ours for the same thing.
_SYNONYMS = {
    "argmax": "max_by",
    "argmin": "min_by",
    "average": "avg",
    "collect": "collect_list",
    "hop": "sliding",
    "hopping": "sliding",
    "quantile": "percentile",
    "range": "range_",
    "session_window": "session",
    "tumble": "tumbling",
    "var": "variance",
    "window": "tumbling",
}


class CallSyntaxError(Exception):
    """A text that cannot be read; ``at`` is the index of the character at fault."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.at = at


T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True)
class _Form(Generic[T]):
    """A function that may be called, and what each of its parameters takes."""

    make: Callable[..., T]
    takes: Mapping[str, str]
    signature: inspect.Signature


def _form(make: Callable[..., T], **takes: str) -> _Form[T]:
    return _Form(make, takes, inspect.signature(make))


_AMOUNTS: Mapping[str, _Form[Amount]] = {
    "rows": _form(amounts.rows, n=_LITERAL),
    "units": _form(amounts.units, size=_LITERAL, column=_COLUMN),
}


def _window_form(make: Callable[..., Window]) -> _Form[Window]:
    """What its annotations say: a length or a point, a column, another literal, or what goes with code: left out."""
    signature = inspect.signature(make)
    annotated = {name: str(parameter.annotation) for name, parameter in signature.parameters.items()}
    takes = {
        name: _taken(name, type_)
        for name, type_ in annotated.items()
        if not type_.startswith(("Callable", "Mapping", "Sequence"))
    }
    return _Form(make, takes, signature)


def _taken(name: str, annotation: str) -> str:
    if annotation.startswith(("Length", "Instant")):
        return _COMPUTED if "Expression" in annotation else _LENGTH
    return _COLUMN if name == "column" else _LITERAL


def _takes_code(form: _Form[Any]) -> bool:
    """Whether a parameter that must be given is a function or a class."""
    required = [p.name for p in form.signature.parameters.values() if p.default is p.empty]
    return not form.takes.keys() >= set(required)


_ALL_WINDOWS = {
    name: _window_form(make) for name in windows.__all__ if inspect.isfunction(make := getattr(windows, name))
}
_WINDOWS: Mapping[str, _Form[Window]] = {name: form for name, form in _ALL_WINDOWS.items() if not _takes_code(form)}
#: These take functions or classes, which can only be written in Python.
_PYTHON_ONLY = {"aggregate", *_ALL_WINDOWS} - _WINDOWS.keys()


#: How the parameters of aggregates are called that are columns.
_COLUMNS = ("column", "columns", "value", "by", "weight", "y", "x", "col1", "col2")


def _aggregate_form(make: Callable[..., Aggregate]) -> _Form[Aggregate]:
    takes = {
        name: _COLUMN if name in _COLUMNS else _FLAG if isinstance(parameter.default, bool) else _LITERAL
        for name, parameter in inspect.signature(make).parameters.items()
    }
    return _form(make, **takes)


_AGGREGATES = {name: _aggregate_form(getattr(aggregates, name)) for name in (*AGGREGATES, *ALIASES)}


def read_window(text: str) -> Window:
    """The window that a text describes.

    >>> read_window("sliding(rows(100), every=rows(10))")
    sliding(rows(100), every=rows(10))
    >>> read_window("slidding('1 minute')")
    Traceback (most recent call last):
    slicewise.cli.call_parser.CallSyntaxError: unknown window 'slidding'; did you mean 'sliding'?
    """
    return _CallParser(text, "window", _WINDOWS, _WINDOW_EXAMPLE).parse()


def read_aggregate(text: str) -> Aggregate:
    """The aggregate that a text describes.

    >>> read_aggregate("max_by(page, price)")
    max_by('page', 'price')
    >>> read_aggregate("count(*)")
    count()
    """
    # SQL's count(*), which Python cannot parse.
    text = re.sub(r"^(\s*count\s*\(\s*)\*(\s*\))", r"\1 \2", text)
    return _CallParser(text, "aggregate", _AGGREGATES, _AGGREGATE_EXAMPLE).parse()


class _CallParser(Generic[T]):
    """Parses one text with ``ast``, then walks the tree and refuses everything but known calls with literals."""

    def __init__(self, text: str, kind: str, forms: Mapping[str, _Form[T]], example: str) -> None:
        self.text, self.kind, self.forms, self.example = text, kind, forms, example

    def parse(self) -> T:
        node = self._parsed()
        if isinstance(node, ast.Name) and self._segment(node) in self.forms:
            name = self._segment(node)
            self._refuse(node, f"{name!r} must be called: write {name}({'v' if self.kind == 'aggregate' else '...'})")
        if not isinstance(node, ast.Call):
            self._refuse(node, f"expected {self._article()} such as {self.example!r}; got {self._segment(node)!r}")
        return self._chained(node)

    def _chained(self, node: ast.Call) -> T:
        """A call, or a method of what a call makes: ``sum(v).where('v > 3').by(kind)``."""
        function = node.func
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)):
            return self._call(node, self.forms, self.kind)
        made: Any = self._chained(function.value)
        methods = {}
        if isinstance(made, Aggregate):
            methods["where"] = _form(made.where, condition=_LITERAL)
            methods["by"] = _form(made.by, category=_COLUMN, most=_LITERAL)
        if function.attr not in methods:
            self._refuse(node, f"{made!r} has no `{function.attr}`; {did_you_mean(function.attr, methods)}")
        made = self._with_arguments(node, function.attr, methods[function.attr])
        return made  # type: ignore[no-any-return]

    def _article(self) -> str:
        return "an aggregate" if self.kind == "aggregate" else "a window"

    def _parsed(self) -> ast.expr:
        text = self.text
        if not text.strip():
            raise CallSyntaxError(f"expected {self._article()} such as {self.example!r}; got nothing", 0)
        if len(text) > _LONGEST:
            raise CallSyntaxError(f"{self._article()} has at most {_LONGEST} characters; got {len(text)}", _LONGEST)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                # In parentheses, so that a text of several lines reads as one expression.
                return ast.parse(f"({text}\n)", mode="eval").body
        except SyntaxError as e:
            raise CallSyntaxError(self._syntax_message(), self._character(e.lineno or 1, e.offset or 1)) from None
        except (ValueError, RecursionError, MemoryError):
            raise CallSyntaxError(self._syntax_message(), 0) from None

    def _syntax_message(self) -> str:
        quoting = "; quote a column whose name is not a single word, or is a keyword of Python: 'my col'"
        tip = quoting if self.kind == "aggregate" else "; quote lengths and conditions: '1 minute', 'price < 10'"
        if self.text.count("(") != self.text.count(")") and not re.search("['\"]", self.text):
            tip = "; are the parentheses in pairs?"
        return f"this cannot be read; write {self._article()} such as {self.example!r}{tip}"

    def _call(self, node: ast.Call, forms: Mapping[str, _Form[V]], kind: str) -> V:
        name = self._function(node.func)
        if name not in forms:
            self._refuse_function(node.func, name, forms, kind)
        return self._with_arguments(node, name, forms[name])

    def _with_arguments(self, node: ast.Call, name: str, form: _Form[V]) -> V:
        values: list[Any] = []
        named: dict[str, Any] = {}
        parameters = form.signature.parameters.values()
        positional = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        repeated = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        for i, argument in enumerate(node.args):
            if i >= len(positional) and repeated is None:
                self._refuse(argument, self._surplus_argument(name, form, positional))
            values.append(self._argument(argument, form, name, positional[i] if i < len(positional) else str(repeated)))
        for keyword in node.keywords:
            if keyword.arg is None:
                self._refuse(keyword.value, f"`{name}` takes its arguments one by one; got **")
            if keyword.arg not in form.takes or keyword.arg == repeated:
                self._refuse(keyword, self._unknown_argument(name, form, keyword.arg))
            if keyword.arg in positional[: len(values)]:
                self._refuse(keyword, f"`{name}` has `{keyword.arg}` twice; leave one out")
            named[keyword.arg] = self._argument(keyword.value, form, name, keyword.arg)
        return self._make(node, name, form, values, named)

    def _make(self, node: ast.Call, name: str, form: _Form[V], values: list[Any], named: dict[str, Any]) -> V:
        for p in form.signature.parameters.values():
            given = p.name in named or p.name in list(form.signature.parameters)[: len(values)]
            # An aggregate without a column is for single values, and the rows of a job have columns.
            needed = p.default is p.empty or (form.takes.get(p.name) == _COLUMN and name != "count")
            if needed and not given:
                self._refuse(node, f"`{name}` needs `{p.name}`, as in {_example(name)!r}")
        try:
            return form.make(*values, **named)
        except SlicewiseError as e:
            self._refuse(node, str(e))

    def _function(self, node: ast.expr) -> str:
        if isinstance(node, ast.Attribute) and self._segment(node.value) in ("sw", "slicewise"):
            return node.attr
        if not isinstance(node, ast.Name):
            self._refuse(node, f"expected {self._article()} such as {self.example!r}; got {self._segment(node)!r}")
        return self._segment(node)

    def _refuse_function(self, node: ast.expr, name: str, forms: Mapping[str, _Form[Any]], kind: str) -> NoReturn:
        if name in _PYTHON_ONLY:
            self._refuse(node, f"`{name}` takes code, which a job file cannot hold: use Python for it, sw.{name}(...)")
        for other, known in (("a window", _WINDOWS), ("an aggregate", _AGGREGATES), ("a length", _AMOUNTS)):
            if name in known:
                article = "an" if kind == "aggregate" else "a"
                self._refuse(node, f"`{name}` is {other}; expected {article} {kind} here")
        near = _SYNONYMS.get(name.lower())
        tip = f"did you mean {near!r}?" if near in forms else did_you_mean(name, forms)
        self._refuse(node, f"unknown {kind} {name!r}; {tip}")

    @staticmethod
    def _surplus_argument(name: str, form: _Form[Any], positional: list[str]) -> str:
        rest = [p for p in form.takes if p not in positional]
        if rest:
            by_name = ", ".join(f"{p}=..." for p in rest)
            return f"`{name}` takes {len(positional)} argument without a name, the others by name: {by_name}"
        return f"`{name}` takes {len(positional)} argument{'' if len(positional) == 1 else 's'}; this is one too many"

    @staticmethod
    def _unknown_argument(name: str, form: _Form[Any], argument: str) -> str:
        if argument in form.signature.parameters:
            return f"`{argument}` of `{name}` goes with code, which a job file cannot hold: use Python for it"
        return f"`{name}` has no argument {argument!r}; {did_you_mean(argument, form.takes)}"

    def _argument(self, node: ast.expr, form: _Form[Any], function: str, parameter: str) -> Any:
        takes = form.takes[parameter]
        if isinstance(node, ast.Starred):
            self._refuse(node, f"`{function}` takes its arguments one by one; got *")
        if takes == _COLUMN:
            return self._column(node, function, parameter)
        if takes == _COMPUTED and self._is_expression(node):
            return self._column(node, function, parameter)
        if takes in (_LENGTH, _COMPUTED) and isinstance(node, ast.Call):
            return self._call(node, _AMOUNTS, "length")
        if takes == _FLAG:
            return self._flag(node, function, parameter)
        if isinstance(node, (ast.Lambda, ast.Call)):
            self._refuse(node, f"`{parameter}` of `{function}` must be a literal here; use Python for functions")
        return self._literal(node, function, parameter)

    def _column(self, node: ast.expr, function: str, parameter: str) -> str:
        if isinstance(node, ast.Name) or (isinstance(node, ast.Attribute) and not isinstance(node.value, ast.Call)):
            return self._segment(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            return node.value
        if isinstance(node, ast.Call) and self._is_expression(node):
            return self._with_arguments(node, "expr", _form(expr, text=_LITERAL))
        self._refuse(
            node,
            f"`{parameter}` of `{function}` must be a column, a name or a quoted string; got {self._segment(node)!r}; "
            "compute it: expr('price * volume')",
        )

    def _is_expression(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and self._segment(node.func) in ("expr", "sw.expr")

    def _flag(self, node: ast.expr, function: str, parameter: str) -> bool:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            return node.value
        self._refuse(node, f"`{parameter}` of `{function}` must be True or False; got {self._segment(node)!r}")

    def _literal(self, node: ast.expr, function: str, parameter: str) -> Any:
        if isinstance(node, ast.List):
            return [self._literal(item, function, parameter) for item in node.elts]
        sign = 1
        while isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
            sign, node = (-sign if isinstance(node.op, ast.USub) else sign), node.operand
            if not (isinstance(node, (ast.UnaryOp, ast.Constant))):
                break
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
                return sign * node.value
            if isinstance(node.value, str) and sign == 1:
                return node.value
        tip = "; put it in quotes" if isinstance(node, ast.Name) else ""
        self._refuse(
            node,
            f"`{parameter}` of `{function}` must be a string or a number, as in {_example(function)!r}; "
            f"got {self._segment(node)!r}{tip}",
        )

    def _refuse(self, node: ast.expr | ast.keyword, message: str) -> NoReturn:
        raise CallSyntaxError(message, self._character(node.lineno, node.col_offset + 1, in_bytes=True))

    def _segment(self, node: ast.expr) -> str:
        """The text of a node as written; ``ast`` normalizes names to another Unicode form than columns may have."""
        last = self._character(node.end_lineno or 1, (node.end_col_offset or 0) + 1, in_bytes=True)
        return self.text[self._character(node.lineno, node.col_offset + 1, in_bytes=True) : last]

    def _character(self, line: int, column: int, *, in_bytes: bool = False) -> int:
        """The index in the text of a line and column (from 1) of what was parsed, which has a parenthesis before it."""
        # Split as Python's parser does, which differs from str.splitlines.
        lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", f"({self.text}\n)")
        before = sum(map(len, lines[: line - 1]))
        here = lines[line - 1] if line <= len(lines) else ""
        within = len(here.encode()[: column - 1].decode(errors="ignore")) if in_bytes else column - 1
        return min(max(before + within - 1, 0), len(self.text))


def _example(name: str) -> str:
    examples = {
        "by": "sum(v).by(kind, most=100)",
        "between": "between('2024-01-01', '2024-02-01')",
        "concat": "concat(page, ' > ')",
        "ewma": "ewma(v, half_life='10 minutes')",
        "cumulative": "cumulative('1 day', every='1 hour')",
        "edges": "edges('trading_days.parquet')",
        "expr": "expr('price * volume')",
        "frames": "frames('price < 10', min_rows=3)",
        "landmark": "landmark(every='1 hour')",
        "max_by": "max_by(page, price)",
        "min_by": "min_by(page, price)",
        "percentile": "percentile(v, 0.9)",
        "weighted_avg": "weighted_avg(price, volume)",
        "punctuated": "punctuated('price < 10')",
        "rows": "rows(100)",
        "session": "session('30 seconds')",
        "sliding": "sliding('1 minute', every='1 second')",
        "trailing": "trailing('1 hour', closed='left')",
        "tumbling": "tumbling('1 minute')",
        "units": "units(10, km)",
        "where": "sum(v).where('v > 3')",
    }
    columns = [p for p, takes in _AGGREGATES[name].takes.items() if takes == _COLUMN] if name in _AGGREGATES else []
    return examples.get(name, f"{name}({', '.join(columns) if len(columns) > 1 else 'v'})")
