"""Aggregates: laws and traits, and the monoid that an aggregate becomes on columns of known types.

An :class:`Aggregate` is the user's description: frozen, without types, ``sw.avg("v")``. It has the four functions of
the Reactive Aggregator paper on single values (``lift``, ``combine``, ``lower``, and ``invert`` where there is one)
with the ``identity`` of ``combine``; they read like the definition, and data structures over single values run them.

A :class:`Monoid` is the same algebra on arrays, made by :meth:`Aggregate.bind` once the types of the columns are known.
It is what the engine runs. Its partials are a tuple of equally long arrays, its *parts*: the average of a float column
has a float64 part and an int64 part. Two families:

* **columnar**: parts of NumPy numbers, or ragged ones (:mod:`slicewise.ragged`) where partials grow, functions that
  take whole arrays (everything numeric);
* **object**: one part of Python values, functions that take one value at a time (lists, text, user code).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.parts import (
    Parts,
    concat_parts,
    fold_pairwise,
    fold_ranges,
    parts_from_data,
    parts_to_data,
    pick_parts,
    put_parts,
    rescaled,
    scan_pairwise,
    take_parts,
)
from slicewise.amounts import Amount
from slicewise.columns import Column, column_of_objects
from slicewise.errors import AggregateError

__all__ = [
    "BUILT_IN",
    "Aggregate",
    "Monoid",
    "ObjectMonoid",
    "Parts",
    "concat_parts",
    "fold_pairwise",
    "parts_from_data",
    "parts_to_data",
    "pick_parts",
    "put_parts",
    "rescaled",
    "scan_pairwise",
    "take_parts",
]

#: What defines the answer over single values. A subclass that replaces any of it computes something else.
_FUNCTIONS = ("lift", "combine", "lower", "invert", "identity", "skips_nulls", "result_type")
#: No places at all, for those who ask in every step.
_NOWHERE = np.empty(0, np.int64)
#: Every built-in aggregate by its public name; filled by :mod:`slicewise.aggregates`.
BUILT_IN: dict[str, type[Aggregate]] = {}


class Aggregate:
    """What to compute over a window: an associative ``combine`` with what goes before and after it.

    Subclass it for an aggregate of your own on single values; give ``lift``, ``combine``, ``identity`` and, where the
    result is not the partial itself, ``lower``. The only law is that ``combine`` is associative;
    :func:`slicewise.testing.check_laws` looks for a counterexample.

    Parameters
    ----------
    *columns : str
        The input columns, in the order in which ``lift`` takes them.

    Attributes
    ----------
    name : str
        The name in plans and messages.
    identity : object
        The partial of no rows: ``combine(identity, a) == a == combine(a, identity)``.
    commutative : bool
        ``combine(a, b) == combine(b, a)``. When False, partials are combined in event-time order only.
    invertible : bool
        There is an ``invert`` with ``invert(combine(a, b), b) == a``.
    selective : bool
        ``combine`` gives one of its two arguments, as a maximum does. A subclass that replaces the ``combine`` of a
        selective built-in aggregate is not selective unless it declares it.
    timed : bool
        The array partials carry event times and go by them for what comes first, so that a row out of order can be
        combined into an existing partial. Only ties of equal time go by the order of ``combine``.
    shows_time : bool
        Results hold event times.
    lasts : bool
        The answer depends on how much time passes between the last row and the end of the window.
    kind : str
        ``distributive``, ``algebraic`` (partials of a fixed size) or ``holistic`` (partials that grow);
        ``sketch`` for partials of bounded size whose answers are estimates.
    skips_nulls : bool
        A row with a null in any of the columns does not change the aggregate.

    Notes
    -----
    Runtime complexity: every slice keeps one partial, and a window of r slices takes at most r - 1 combines. A partial
    that grows makes both dearer, which is what ``kind`` tells the planner.

    Examples
    --------
    >>> class Longest(Aggregate):
    ...     name = "longest"
    ...     identity = ""
    ...     def combine(self, a, b):
    ...         return a if len(a) >= len(b) else b
    >>> longest = Longest("word")
    >>> longest.lower(longest.combine(longest.lift("to"), longest.lift("slice")))
    'slice'
    """

    name: str = "aggregate"
    commutative: bool = False
    invertible: bool = False
    selective: bool = False
    timed: bool = False
    shows_time: bool = False
    lasts: bool = False
    kind: str = "holistic"
    skips_nulls: bool = True
    identity: Any = None

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls.selective and cls._replaces_combine():
            cls.selective = False
        namespace = vars(cls)
        if _is_built_in(cls) or "bind" in namespace or not any(f in namespace for f in _FUNCTIONS):
            return
        # The arrays of a built-in aggregate know nothing of the functions that a subclass replaces, and only arrays
        # carry event times.
        cls.bind = Aggregate.bind  # type: ignore[method-assign]
        cls.timed = namespace.get("timed", False)

    @classmethod
    def _replaces_combine(cls) -> bool:
        """Whether ``combine`` is another function than that of the built-in aggregate which declares ``selective``."""
        declaring = next(base for base in cls.__mro__ if "selective" in vars(base))
        return issubclass(declaring, Aggregate) and _is_built_in(declaring) and cls.combine is not declaring.combine

    def __init__(self, *columns: str) -> None:
        self.columns: tuple[str, ...] = columns

    def lift(self, *values: Any) -> Any:
        """The partial of a single row; by default the value itself."""
        return values[0]

    def combine(self, a: Any, b: Any) -> Any:
        """The partial of two neighbouring runs of rows, ``a`` before ``b``."""
        raise AggregateError(f"`{self.name}` has no `combine`; give it one: combine(a, b) -> the partial of both")

    def lower(self, partial: Any) -> Any:
        """The result that the user sees; by default the partial itself."""
        return partial

    def invert(self, a: Any, b: Any) -> Any:
        """Take ``b`` out of ``a`` again: ``invert(combine(x, b), b) == x``."""
        raise AggregateError(f"`{self.name}` cannot be inverted; a partial cannot be taken out of it again")

    def result_type(self, *types: pa.DataType) -> pa.DataType | None:
        """The Arrow type of the result for input columns of these types; None to infer it from the results."""
        return None

    def bind(self, *types: pa.DataType) -> Monoid:
        """The algebra on arrays for input columns of these types."""
        return ObjectMonoid(self, types)

    @property
    def lengths(self) -> Mapping[str, Amount]:
        """The parameters that are lengths of event time, by name."""
        return {}

    def in_unit(self, unit: str | None) -> Aggregate:
        """The aggregate with its lengths of event time in the unit of the time column, as windows have theirs."""
        return self

    def parameters(self) -> tuple[Any, ...]:
        """What distinguishes this aggregate from others of its class, besides its columns."""
        return ()

    def where(self, condition: str) -> Aggregate:
        """The aggregate of the rows that meet a condition: SQL's FILTER.

        Parameters
        ----------
        condition : str
            An expression such as ``"kind = 'view'"``, which must be true. A second ``where`` must be met too.

        Returns
        -------
        Aggregate
            The aggregate with the condition; this one stays as it is.

        Examples
        --------
        >>> import slicewise as sw
        >>> views = sw.count().where("kind = 'view'")
        >>> views
        count().where("kind = 'view'")
        >>> op = sw.Workload(time="ts").query("q", sw.tumbling(60), views=views, n=sw.count()).operator()
        >>> _ = op.process_batch({"ts": [10, 20, 30], "kind": ["view", "buy", "view"]})
        >>> [r.values for r in op.close()]
        [{'views': 2, 'n': 3}]
        """
        from slicewise.aggregates.filtered import filtered

        return filtered(self, condition)

    def by(self, category: str, most: int = 1000) -> Aggregate:
        """The aggregate for each value of a column: a map from category to value, keys ascending.

        Parameters
        ----------
        category : str
            The column, or an expression; rows in which it is null are left out. It cannot be a float.
        most : int, optional
            A window with more categories has no value. In process and in batch an error names it; on a stream its
            value is null, and the metric ``overfull`` counts it.

        Returns
        -------
        Aggregate
            The aggregate by category; this one stays as it is. A ``where`` of it comes first.

        Examples
        --------
        >>> import slicewise as sw
        >>> spent = sw.sum("price").by("kind", most=100)
        >>> op = sw.Workload(time="ts").query("q", sw.tumbling(60), spent=spent).operator()
        >>> _ = op.process_batch({"ts": [10, 20, 30], "kind": ["tea", "rice", "tea"], "price": [3, 2, 4]})
        >>> [r.values for r in op.close()]
        [{'spent': {'rice': 2, 'tea': 7}}]
        """
        from slicewise.aggregates.categories import categorised

        return categorised(self, category, most)

    def over(self, *columns: str) -> Aggregate:
        """The same aggregate of other columns."""
        aggregate = copy.copy(self)
        aggregate.columns = columns
        return aggregate

    @property
    def base(self) -> Aggregate:
        """The aggregate without what was added to it by ``where`` and ``by``."""
        return self

    @property
    def label(self) -> str:
        """The name in plans, messages and saved state, where it must not be mistaken for a built-in aggregate's."""
        taken = BUILT_IN.get(self.name, type(self)) is not type(self)
        return f"user-defined {self.name}" if taken else self.name

    def __repr__(self) -> str:
        inside = ", ".join(repr(x) for x in (*self.columns, *self.parameters()))
        return f"{self.label}({inside})"

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Aggregate)
            and self.columns == other.columns
            and self.parameters() == other.parameters()
        )

    def __hash__(self) -> int:
        return hash((type(self), self.columns, self.parameters()))


class Monoid(ABC):
    """An aggregate on columns of known types: the same functions, on arrays of partials.

    :meth:`Aggregate.bind` makes it. A subclass gives ``lift``, ``combine`` and ``lower``.

    Parameters
    ----------
    aggregate : Aggregate
        The aggregate that is bound.
    types : sequence of pyarrow.DataType
        The types of its columns, in order.

    Attributes
    ----------
    result : pyarrow.DataType
        The type of what ``lower`` gives; ``pa.null()`` where it follows from the results alone.
    identity : tuple
        One scalar per part; combining with it changes nothing.
    dtypes : tuple of numpy.dtype
        One per part.
    exact : bool
        ``combine`` rounds nothing for these types, so that ``invert`` may be used freely.
    kept_as : tuple of str
        What each part holds, such as ``("total", "values")``, if other aggregates of the same columns hold it as well:
        parts of equal names, over equal columns, are kept once. Nothing for an aggregate that shares nothing.

    Notes
    -----
    Runtime complexity: ``lift``, ``combine`` and ``lower`` take O(n) for n rows or partials, in array steps; ``fold``
    takes O(n) combines, ``scan`` O(n log n) unless a subclass has a better way.

    Examples
    --------
    The sums of rows 0 and 1, and of row 2:

    >>> from slicewise.aggregates import sum
    >>> monoid = sum("v").bind(pa.int64())
    >>> partials = monoid.lift_fold([Column.of([1, 2, 40])], np.array([7, 8, 9]), np.array([0, 2]))
    >>> monoid.lower(partials).to_pylist()
    [3, 40]
    """

    #: How the names of columns begin that hold what user code made of rows; no column of the user's begins like this.
    LIFTED: ClassVar[str] = "\0lifted "

    result: pa.DataType
    identity: tuple[Any, ...]
    dtypes: tuple[np.dtype, ...]
    exact: bool = False
    kept_as: tuple[str, ...] = ()

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType]) -> None:
        self.aggregate = aggregate
        self.types = tuple(types)
        #: The columns of rows that `fold_rows` looks at.
        self.reads: tuple[str, ...] = aggregate.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """What each part is called where partials are kept; parts of equal labels are kept once."""
        of = ", ".join(map(repr, self.aggregate.columns)) or "rows"
        if self.kept_as:
            return tuple(f"{name} of {of}" for name in self.kept_as)
        return tuple(f"{i} of {self.aggregate!r}" for i in range(len(self.dtypes)))

    @property
    def is_shared(self) -> bool:
        """Whether parts may be shared with other aggregates: partials are combined in any order."""
        return bool(self.kept_as) and self.aggregate.commutative

    @abstractmethod
    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        """One partial per row. ``times`` are the rows' event times, ``columns`` the aggregate's input columns."""

    @abstractmethod
    def combine(self, a: Parts, b: Parts) -> Parts:
        """Element by element, the partials of ``a`` before those of ``b``."""

    @abstractmethod
    def lower(self, parts: Parts) -> Column:
        """One result per partial, of the type ``result``."""

    def invert(self, a: Parts, b: Parts) -> Parts:
        """Element by element, ``a`` without ``b``."""
        raise AggregateError(f"`{self.aggregate.name}` cannot be inverted; a partial cannot be taken out of it again")

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        """One partial per segment ``parts[starts[i]:starts[i + 1]]``; no segment is empty."""
        return fold_pairwise(self.combine, parts, starts)

    def over_ranges(self, parts: Parts, low: np.ndarray, high: np.ndarray) -> Parts:
        """The combination of the partials in each range ``[low, high)``, or what stands for it until it is lowered."""
        return fold_ranges(self.fold, parts, low, high)

    def lift_fold(self, columns: Sequence[Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        """``fold(lift(...))``: one partial per segment of rows. Override where lifting row by row is a waste."""
        return self.fold(self.lift(columns, times), starts)

    def fold_rows(self, columns: Mapping[str, Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        """One partial per segment of rows, from what the aggregate reads among their columns."""
        return self.lift_fold(list(map(columns.__getitem__, self.reads)), times, starts)

    def failed(self, parts: Parts) -> np.ndarray:
        """The places of partials that could not be computed, which only happens to user code."""
        return _NOWHERE

    def overfull(self, parts: Parts) -> np.ndarray:
        """The places of partials that have more categories than they may, and so no result."""
        return _NOWHERE

    def scan(self, parts: Parts) -> Parts:
        """Running combination over all partials."""
        return scan_pairwise(self.combine, parts)

    def scaled_by(self) -> tuple[int | None, ...]:
        """For each part that holds unscaled decimals, the number of the column whose scale it has; None for others."""
        return (None,) * len(self.dtypes)

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        """Partials from when the columns had these types, none wider than now, as partials of the present types."""
        out = []
        for part, column in zip(parts, self.scaled_by(), strict=True):
            if column is not None and pa.types.is_decimal(self.types[column]):
                digits = self.types[column].scale - types[self.aggregate.columns[column]].scale
                part = rescaled(part, digits) if digits else part
            out.append(part)
        return tuple(out)

    def upgraded(self, parts: Parts) -> Parts:
        """Partials as an older format kept them, as they are kept now."""
        return parts

    def until(self, parts: Parts, ends: np.ndarray) -> Parts:
        """Partials of windows, each carried on to the end of its window, before they are lowered.

        For what depends on the time that passes after the last row. Called where windows end at an event time that is
        known without rows; of others, the last row is the end.
        """
        return parts

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:  # noqa: B027
        """Set the type and the unit of event times, for results that report them; int64 by default."""

    def break_ties_by_value(self) -> None:  # noqa: B027
        """Pick among rows of equal time by their values, where their order of arrival is not known.

        ``combine`` must then be commutative. For aggregates that are ``timed``.
        """

    def identities(self, n: int) -> Parts:
        """``n`` partials of no rows at all."""
        return tuple(map(_full, repeat(n), self.identity, self.dtypes))

    def __repr__(self) -> str:
        return f"{self.aggregate!r} on {', '.join(map(str, self.types)) or 'rows'}"


class ObjectMonoid(Monoid):
    """An aggregate on single values, run over arrays of Python objects."""

    def __init__(self, aggregate: Aggregate, types: Sequence[pa.DataType]) -> None:
        super().__init__(aggregate, types)
        self.result = aggregate.result_type(*types) or pa.null()
        self.identity = (aggregate.identity,)
        self.dtypes = (np.dtype(object),)
        # We trust user code on Python values: what it inverts, it inverts exactly.
        self.exact = aggregate.invertible
        self._combine = np.frompyfunc(aggregate.combine, 2, 1)

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        out = np.empty(len(times), object)
        aggregate = self.aggregate
        if not columns:
            out[:] = [aggregate.lift() for _ in range(len(times))]
            return (out,)
        rows = zip(*(c.to_pylist() for c in columns), strict=True)
        if aggregate.skips_nulls and any(c.valid is not None for c in columns):
            lifted = [aggregate.identity if None in row else aggregate.lift(*row) for row in rows]
        else:
            lifted = [aggregate.lift(*row) for row in rows]
        _fill(out, lifted)
        return (out,)

    def combine(self, a: Parts, b: Parts) -> Parts:
        if not len(a[0]):
            return (np.empty(0, object),)
        with np.errstate(all="ignore"):  # NumPy would warn of floating point errors inside the objects
            return (self._combine(a[0], b[0]),)

    def invert(self, a: Parts, b: Parts) -> Parts:
        out = np.empty(len(a[0]), object)
        _fill(out, [self.aggregate.invert(x, y) for x, y in zip(a[0], b[0], strict=True)])
        return (out,)

    def lower(self, parts: Parts) -> Column:
        lowered = [self.aggregate.lower(p) for p in parts[0]]
        return column_of_objects(lowered, self.result)


def _is_built_in(cls: type) -> bool:
    return cls.__module__.startswith("slicewise.")


def _fill(out: np.ndarray, values: Sequence[Any]) -> None:
    # `out[:] = values` would unpack values that are themselves sequences of one length into a second dimension.
    for i, value in enumerate(values):
        out[i] = value


def _full(n: int, value: Any, dtype: np.dtype) -> np.ndarray:
    out = np.empty(n, dtype)
    if dtype.hasobject:
        for i in range(n):
            out[i] = value
    else:
        out[:] = value
    return out
