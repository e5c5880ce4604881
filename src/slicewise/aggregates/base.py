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
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from slicewise.aggregates.monoids import Monoid, ObjectMonoid
from slicewise.aggregates.parts import (
    Parts,
    concat_parts,
    fold_pairwise,
    parts_from_data,
    parts_to_data,
    pick_parts,
    put_parts,
    rescaled,
    scan_pairwise,
    take_parts,
)
from slicewise.amounts import Amount
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


def _is_built_in(cls: type) -> bool:
    return cls.__module__.startswith("slicewise.")
