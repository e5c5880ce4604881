"""User-defined aggregates: the user's functions, made into an aggregate that is used like the built-in ones.

Two families. By default the functions take one value at a time and partials are Python values. With ``columnar=True``
they take whole NumPy arrays, which is as fast as the built-in aggregates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, ObjectMonoid, Parts
from slicewise.aggregates.checks import check_column
from slicewise.columns import TYPE_NAMES, Column, physical_dtype
from slicewise.errors import AggregateError, SlicewiseError, did_you_mean

__all__ = ["UserAggregate", "UserAggregateFactory", "aggregate", "parse_type"]

_MISSING: Any = object()
_KINDS = ("distributive", "algebraic", "holistic")


class _Functions(TypedDict):
    lift: Callable[..., Any] | None
    combine: Callable[[Any, Any], Any]
    lower: Callable[[Any], Any] | None
    invert: Callable[[Any, Any], Any] | None


_FunctionName = Literal["lift", "combine", "lower", "invert"]


def aggregate(
    *,
    lift: Callable[..., Any] | None = None,
    combine: Callable[[Any, Any], Any] = _MISSING,
    lower: Callable[[Any], Any] | None = None,
    identity: Any = _MISSING,
    invert: Callable[[Any, Any], Any] | None = None,
    commutative: bool = False,
    columnar: bool = False,
    result: pa.DataType | str | None = None,
    name: str | None = None,
    kind: str | None = None,
) -> UserAggregateFactory:
    """Make an aggregate of your own from functions; the only law is that ``combine`` is associative.

    Parameters
    ----------
    lift : callable, optional
        ``lift(value, ...)`` gives the partial of one row, from the columns in order; by default the value itself.
    combine : callable
        ``combine(a, b)`` gives the partial of two neighbouring runs of rows, ``a`` before ``b``.
    lower : callable, optional
        ``lower(partial)`` gives the result; by default the partial itself.
    identity : object
        The partial of no rows: ``combine(identity, a) == a == combine(a, identity)``.
    invert : callable, optional
        ``invert(a, b)`` takes ``b`` out of ``a`` again, where that is possible: ``invert(combine(a, b), b) == a``.
    commutative : bool
        Whether ``combine(a, b) == combine(b, a)``; late rows are cheaper then.
    columnar : bool
        The functions take NumPy arrays, one element per row or partial. If ``lift`` gives a tuple of arrays, the others
        take and give tuples, and ``identity`` is a tuple of as many scalars.
    result : pyarrow.DataType or str, optional
        The type of the result, as an Arrow type or by its Spark name (``"double"``, ``"bigint"``, ``"string"``,
        ``"decimal(10,2)"``, ``"array<double>"``); by default it is inferred from the results.
    name : str, optional
        The name in plans and messages; by default that of ``combine``.
    kind : str, optional
        ``"distributive"``, ``"algebraic"`` or ``"holistic"``; by default algebraic if columnar and holistic if not.

    Returns
    -------
    UserAggregateFactory
        Call it with columns, as you would ``sw.sum("v")``.

    Notes
    -----
    Rows with a null in any of the columns are left out before ``lift`` sees them.

    Runtime complexity: about one ``lift`` and one ``combine`` per row, and a few per window; with ``columnar=True`` a
    few calls per batch, each over whole arrays.

    Examples
    --------
    >>> longest = aggregate(combine=lambda a, b: a if len(a) >= len(b) else b, identity="", result="string")
    >>> word = longest("word")
    >>> word.lower(word.combine(word.lift("to"), word.lift("slice")))
    'slice'

    On arrays, with two parts:

    >>> rms = aggregate(
    ...     lift=lambda v: (v * v, np.ones(len(v))),
    ...     combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    ...     lower=lambda p: np.sqrt(p[0] / p[1]),
    ...     identity=(0.0, 0.0), commutative=True, columnar=True, name="rms")
    >>> monoid = rms("v").bind(pa.float64())
    >>> monoid.lower(monoid.lift_fold([Column.of([3.0, 4.0, 5.0])], np.arange(3), np.array([0, 2]))).values
    array([3.53553391, 5.        ])
    """
    functions = _Functions(lift=lift, combine=combine, lower=lower, invert=invert)
    for parameter, function in functions.items():
        if function is _MISSING:
            raise AggregateError("`combine` is missing; give a function combine(a, b) -> the partial of both")
        if function is not None and not callable(function):
            raise AggregateError(f"`{parameter}` must be a function; got {function!r}")
    if identity is _MISSING:
        raise AggregateError(
            "`identity` is missing; give the partial of no rows, such as 0 for a sum: combine(identity, a) == a"
        )
    for parameter, flag in {"commutative": commutative, "columnar": columnar}.items():
        if not isinstance(flag, (bool, np.bool_)):
            raise AggregateError(f"`{parameter}` must be True or False; got {flag!r}")
    if kind is None:
        kind = "algebraic" if columnar else "holistic"
    if kind not in _KINDS:
        raise AggregateError(f"`kind` must be 'distributive', 'algebraic' or 'holistic'; got {kind!r}")
    if name is None:
        name = getattr(combine, "__name__", "aggregate").replace("<lambda>", "aggregate")
    if not isinstance(name, str) or not name:
        raise AggregateError(f"`name` must be a string that is not empty; got {name!r}")
    type_ = parse_type(result) if result is not None else None
    return UserAggregateFactory(
        name=name,
        functions=functions,
        identity=identity,
        commutative=bool(commutative),
        columnar=bool(columnar),
        result=type_,
        kind=kind,
    )


class UserAggregateFactory:
    """The user's aggregate before it has columns: call it with columns, as you would ``sw.sum("v")``."""

    def __init__(self, **parts: Any) -> None:
        self._parts = parts

    @property
    def name(self) -> str:
        """The name of the aggregate."""
        name: str = self._parts["name"]
        return name

    def __call__(self, *columns: str) -> UserAggregate:
        for column in columns:
            if column is None:
                raise AggregateError(f"`columns` of `{self.name}` must be names of columns; got None: leave it out")
            check_column(self.name, "columns", column)
        return UserAggregate(columns, **self._parts)

    def __repr__(self) -> str:
        return f"<user-defined aggregate {self.name!r}>"


class UserAggregate(Aggregate):
    """An aggregate made of the user's functions; see :func:`aggregate`."""

    def __init__(
        self,
        columns: Sequence[str],
        *,
        name: str,
        functions: _Functions,
        identity: Any,
        commutative: bool,
        columnar: bool,
        result: pa.DataType | None,
        kind: str,
    ) -> None:
        super().__init__(*columns)
        self.name = name
        self.functions = functions
        self.identity = identity
        self.commutative = commutative
        self.invertible = functions["invert"] is not None
        self.columnar = columnar
        self.result = result
        self.kind = kind

    def lift(self, *values: Any) -> Any:
        function = self.functions["lift"]
        if function is None:
            return super().lift(*values)
        return _call(function, *values) if self.columnar else function(*values)

    def combine(self, a: Any, b: Any) -> Any:
        function = self.functions["combine"]
        return _call(function, a, b) if self.columnar else function(a, b)

    def lower(self, partial: Any) -> Any:
        function = self.functions["lower"]
        if function is None:
            return partial
        return _call(function, partial) if self.columnar else function(partial)

    def invert(self, a: Any, b: Any) -> Any:
        function = self.functions["invert"]
        if function is None:
            return super().invert(a, b)
        return _call(function, a, b) if self.columnar else function(a, b)

    def result_type(self, *types: pa.DataType) -> pa.DataType | None:
        return self.result

    def bind(self, *types: pa.DataType) -> Monoid:
        return ColumnarMonoid(self, types) if self.columnar else ObjectMonoid(self, types)

    def parameters(self) -> tuple[Any, ...]:
        # Not the functions: these must be the same tomorrow, in another process, to recognise saved state.
        return (self.kind, self.commutative, self.invertible, self.columnar, str(self.result))

    def __repr__(self) -> str:
        return f"{self.label}({', '.join(map(repr, self.columns))})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, UserAggregate)
            and (self.name, self.columns, self.parameters()) == (other.name, other.columns, other.parameters())
            and self.functions == other.functions
        )

    def __hash__(self) -> int:
        return hash((self.name, self.columns, self.parameters()))


class ColumnarMonoid(Monoid):
    """The user's array functions, checked once on empty arrays so that mistakes show before the first row."""

    aggregate: UserAggregate

    def __init__(self, aggregate: UserAggregate, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        for type_ in types:
            if pa.types.is_decimal(type_):
                raise AggregateError(
                    f"`{aggregate.name}` is columnar and cannot take {type_}; cast the column to double, or write the "
                    "aggregate for single values (columnar=False)"
                )
        # User code on floats rounds; on everything else we trust its inverse to be exact.
        identity = aggregate.identity
        self._single = not isinstance(identity, tuple)
        self.identity = (identity,) if self._single else identity
        lifted = self._pack(self._run("lift", *(np.empty(0, physical_dtype(t)) for t in types)), "lift")
        self.dtypes = tuple(np.result_type(p.dtype, x) for p, x in zip(lifted, self.identity, strict=True))
        self.exact = aggregate.invertible and not any(dtype.kind in "fc" for dtype in self.dtypes)
        empty = self.identities(0)
        self._pack(self._run("combine", self._unpack(empty), self._unpack(empty)), "combine")
        self.result = aggregate.result or pa.null()
        if aggregate.result is None:
            self.result = self.lower(empty).type

    def _run(self, function: _FunctionName, *arguments: Any) -> Any:
        call = self.aggregate.functions[function]
        if call is None:
            return arguments[0]
        try:
            with np.errstate(all="ignore"):
                return call(*arguments)
        except SlicewiseError:
            raise
        except Exception as e:
            shapes = ", ".join(_describe(a) for a in arguments)
            raise AggregateError(
                f"`{function}` of `{self.aggregate.name}` failed on ({shapes}): {type(e).__name__}: {e}; with "
                "columnar=True it must take NumPy arrays of any length, also empty ones"
            ) from e

    def _pack(self, out: Any, function: str) -> Parts:
        parts = out if isinstance(out, tuple) else (out,)
        if isinstance(out, tuple) == self._single or len(parts) != len(self.identity):
            raise AggregateError(
                f"`{function}` of `{self.aggregate.name}` must give {_count(self.identity, self._single)}, as "
                f"`identity` has; got {_count(parts, not isinstance(out, tuple))}"
            )
        return tuple(np.asarray(p) for p in parts)

    def _unpack(self, parts: Parts) -> Any:
        return parts[0] if self._single else parts

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        valid = None
        for column in columns:
            if column.valid is not None:
                valid = column.valid if valid is None else valid & column.valid
        arrays = [c.values if valid is None else c.values[valid] for c in columns]
        n = len(times) if valid is None else int(valid.sum())
        lifted = self._pack(self._run("lift", *arrays), "lift")
        if any(p.shape != (n,) for p in lifted):
            raise AggregateError(
                f"`lift` of `{self.aggregate.name}` must give one partial per row; got shapes "
                f"{[p.shape for p in lifted]} for {n} rows"
            )
        lifted = tuple(p.astype(dtype, copy=False) for p, dtype in zip(lifted, self.dtypes, strict=True))
        if valid is None:
            return lifted
        parts = self.identities(len(times))
        for part, some in zip(parts, lifted, strict=True):
            part[valid] = some
        return parts

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self._pack(self._run("combine", self._unpack(a), self._unpack(b)), "combine")

    def invert(self, a: Parts, b: Parts) -> Parts:
        if not self.aggregate.invertible:
            return super().invert(a, b)
        return self._pack(self._run("invert", self._unpack(a), self._unpack(b)), "invert")

    def lower(self, parts: Parts) -> Column:
        out = self._run("lower", self._unpack(parts))
        if isinstance(out, tuple):
            raise AggregateError(
                f"`lower` of `{self.aggregate.name}` must give one array; got {len(out)}: a partial of several arrays "
                "needs a `lower` that makes one result of them"
            )
        return Column.of(out, self.aggregate.result)


def parse_type(type_name: pa.DataType | str) -> pa.DataType:
    """An Arrow type from itself or from its name in Spark.

    >>> parse_type("double"), parse_type("array<decimal(10, 2)>")
    (DataType(double), ListType(list<item: decimal128(10, 2)>))
    """
    if isinstance(type_name, pa.DataType):
        return type_name
    if not isinstance(type_name, str):
        raise AggregateError(
            f"`result` must be an Arrow type or the name of a Spark type; got {type_name!r}: 'double' is one"
        )
    text = type_name.strip().lower()
    if text in TYPE_NAMES:
        return TYPE_NAMES[text]
    if match := re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", text):
        precision, scale = int(match[1]), int(match[2])
        if 1 <= precision <= 38 and scale <= precision:
            return pa.decimal128(precision, scale)
    if match := re.fullmatch(r"array<(.*)>", text):
        return pa.list_(parse_type(match[1]))
    raise AggregateError(f"`result` is not a type we know; got {type_name!r}: {did_you_mean(text, TYPE_NAMES)}")


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """A columnar function on single partials: arrays of one element."""
    as_arrays = [tuple(map(_one, x)) if isinstance(x, tuple) else _one(x) for x in arguments]
    out = function(*as_arrays)
    return tuple(_item(x) for x in out) if isinstance(out, tuple) else _item(out)


def _one(x: Any) -> np.ndarray:
    out = np.asarray(x)
    if out.ndim == 0 and out.dtype.kind in "biufc":
        return out[None]
    boxed = np.empty(1, object)
    boxed[0] = x
    return boxed


def _item(x: Any) -> Any:
    return np.asarray(x).reshape(-1)[0].item() if np.asarray(x).dtype.kind in "biufc" else np.asarray(x).reshape(-1)[0]


def _describe(x: Any) -> str:
    if isinstance(x, tuple):
        return f"({', '.join(map(_describe, x))})"
    return f"{x.dtype} array of {len(x)}"


def _count(parts: Sequence[Any], single: bool) -> str:
    return "a single array" if single else f"a tuple of {len(parts)}"
