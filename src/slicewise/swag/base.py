"""The contract of all sliding-window aggregators: insert at the back, evict from the front, query the whole.

Every algorithm works on any :class:`~slicewise.aggregates.base.Aggregate` through its functions on single values
(``lift``, ``combine``, ``lower``, ``identity`` and, where the algorithm asks for it, ``invert``), one file each, with
the paper's citation on top and a :class:`FactCard`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.picks import MaxBy, MinBy
from slicewise.columns import arrow_of
from slicewise.errors import AggregateError, DataError, QueryError, SlicewiseError, did_you_mean
from slicewise.swag.rolling import batch_of

__all__ = ["EmptyWindowError", "FactCard", "OnPartials", "SlidingWindow", "is_selective", "lifting", "need_subtraction"]


class EmptyWindowError(SlicewiseError, IndexError):
    """A window holds fewer values than were to be evicted or queried. It is unchanged.

    Examples
    --------
    >>> from slicewise.aggregates import sum
    >>> from slicewise.swag import TwoStacks
    >>> TwoStacks(sum()).evict()
    Traceback (most recent call last):
    slicewise.swag.base.EmptyWindowError: cannot evict 1 of 0 values; the window is unchanged
    """


@dataclass(frozen=True)
class FactCard:
    """The facts by which to choose an algorithm. Every algorithm has its card in the attribute ``facts``.

    Parameters
    ----------
    needs
        The laws that an aggregate must keep.
    order
        The order in which values may leave.
    time
        The combines (calls of ``combine`` or ``invert``) of its operations, for a window of n values.
    space
        The number of partials that it keeps.
    published
        The paper it is from.

    Examples
    --------
    >>> from slicewise.swag import ALGORITHMS
    >>> card = ALGORITHMS["TwoStacks"].facts
    >>> card.needs, card.time
    ('associative', '3 combines per slide amortised, n worst')
    """

    needs: str
    order: str
    time: str
    space: str
    published: str


class SlidingWindow(ABC):
    """A first-in-first-out window that knows the aggregate of its values. The contract of every algorithm.

    A null (``None``) takes its place in the window like any value; aggregates that skip nulls see their identity there.
    For an aggregate of several columns, a value is a tuple in the order of the columns, or a mapping by their names.

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.

    Attributes
    ----------
    facts
        The :class:`FactCard` of the algorithm.
    several_ranges
        Whether ``query(last=k)`` works for any ``k``.

    Examples
    --------
    The maximum of the last three values, by any of the algorithms:

    >>> from slicewise.aggregates import max
    >>> from slicewise.swag import ALGORITHMS
    >>> def largest_of_three(window: SlidingWindow, values):
    ...     for value in values:
    ...         window.insert(value)
    ...         if len(window) > 3:
    ...             window.evict()
    ...         yield window.query()
    >>> list(largest_of_three(ALGORITHMS["DABA"](max()), [6, 5, 0, 1, 3, 4]))
    [6, 6, 6, 5, 3, 4]
    """

    facts: ClassVar[FactCard]
    several_ranges: ClassVar[bool] = False

    def __init__(self, aggregate: Aggregate) -> None:
        if not isinstance(aggregate, Aggregate):
            raise QueryError(f"`aggregate` must be an aggregate such as sw.sum(); got {aggregate!r}")
        self.aggregate = aggregate
        self._lift = lifting(aggregate)
        self._combine = aggregate.combine
        self._lower = aggregate.lower

    @abstractmethod
    def __len__(self) -> int:
        """The number of values in the window."""

    @abstractmethod
    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Parameters
        ----------
        value
            The value, None for a null; a tuple or a mapping for an aggregate of several columns.
        """

    @abstractmethod
    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values; all of them or, if there are fewer, none.

        Parameters
        ----------
        n
            The number of values that leave.

        Raises
        ------
        EmptyWindowError
            If the window holds fewer than ``n`` values.
        """

    @abstractmethod
    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window or, where the algorithm answers several ranges, of its ``last`` values.

        Parameters
        ----------
        last
            The number of values to aggregate, counted from the back; by default all of them.

        Returns
        -------
        Any
            The lowered aggregate; that of no values if the window is empty.

        Raises
        ------
        EmptyWindowError
            If the window holds fewer than ``last`` values.
        """

    @abstractmethod
    def _check(self) -> None:
        """The invariants, for tests: called after every mutation."""

    def query_many(self, ranges: Iterable[int]) -> list[Any]:
        """Several ranges at once: ``query(last=k)`` for each ``k``.

        Parameters
        ----------
        ranges
            The numbers of values to aggregate, each counted from the back.

        Returns
        -------
        list
            One answer per range, in the order of ``ranges``.

        Examples
        --------
        >>> from slicewise.aggregates import sum
        >>> from slicewise.swag import FlatFAT
        >>> window = FlatFAT(sum())
        >>> window.insert_many([6, 5, 0, 1])
        >>> window.query_many([2, 4])
        [1, 12]
        """
        return [self.query(last=k) for k in ranges]

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back, one after the other; arrays of numbers at once where the algorithm gains by it.

        Masked entries of a masked array, nulls of an Arrow array and missing values of a pandas series are nulls; NaN
        in an array or a series of floats is a value.

        Answers are those of inserting one by one: the same for integers and for extremes, up to rounding for sums of
        floats, which are then added in another order. NumPy numbers become Python's, so that integers do not overflow.

        Parameters
        ----------
        values
            The values, oldest first: any iterable, a NumPy or Arrow array, a pandas series.

        Examples
        --------
        >>> from slicewise.aggregates import max
        >>> from slicewise.swag import TwoStacks
        >>> window = TwoStacks(max())
        >>> window.insert_many(np.array([6, 5, 0]))
        >>> window.query()
        6
        """
        for value in _python_values(values):
            self.insert(value)

    def enforce(self, policy: Callable[[Any, Any], bool], *, monotone: bool = True) -> int:
        """Evict the longest prefix for which, and for all shorter ones, ``policy(total, oldest)`` holds.

        Parameters
        ----------
        policy
            A function of the lowered aggregate of the window before anything leaves, ``total``, and that of a prefix,
            ``oldest``. If it raises, nothing leaves.
        monotone
            Once the policy fails for a prefix, it fails for every longer one: trees may ask about many values at once
            then. An algorithm that is none asks about one prefix after the other in any case.

        Returns
        -------
        int
            The number of values that left.

        Notes
        -----
        Runtime complexity: prefix by prefix, so O(k) calls of the policy and of ``combine`` for k values that leave.

        Examples
        --------
        Keep as few of the latest values as sum to at least 4:

        >>> from slicewise.aggregates import sum
        >>> from slicewise.swag import TwoStacks
        >>> window = TwoStacks(sum())
        >>> window.insert_many([6, 5, 0, 1, 3])
        >>> window.enforce(lambda total, oldest: total - oldest >= 4)
        3
        >>> window.query()
        4
        """
        if not callable(policy):
            raise QueryError(f"`policy` must be a function of (total, oldest); got {policy!r}")
        total, n, prefix = self.query(), 0, None
        for partial in self._oldest():
            prefix = self._combine(prefix, partial) if n else partial
            if not policy(total, self._lower(prefix)):
                break
            n += 1
        self.evict(n)
        return n

    def _oldest(self) -> Iterator[Any]:
        """The partials of the single values, from the front."""
        raise NotImplementedError

    def _lift_all(self, values: Iterable[Any]) -> list[Any]:
        batch = batch_of(self.aggregate, values)
        return batch.partials() if batch is not None else list(map(self._lift, _python_values(values)))

    def _check_evict(self, n: int) -> None:
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise QueryError(f"`n` must be a count of values; got {n!r}")
        if n > len(self):
            raise EmptyWindowError(f"cannot evict {n} of {len(self)} values; the window is unchanged")

    def _check_last(self, last: int) -> None:
        if not isinstance(last, int) or isinstance(last, bool) or last < 1:
            raise QueryError(f"`last` must be a positive count of values; got {last!r}")
        if last > len(self):
            raise EmptyWindowError(f"cannot query the last {last} of {len(self)} values")

    def _need_whole(self, last: int | None) -> None:
        if last is not None:
            raise QueryError(
                f"`{type(self).__name__}` answers the whole window only; got last={last!r}: use SlickDeque, FlatFIT or "
                "FlatFAT for several ranges"
            )


def lifting(aggregate: Aggregate) -> Callable[[Any], Any]:
    """``lift`` for one value of a window: nulls are skipped if the aggregate skips them, rows of columns unpacked.

    >>> lifting(MaxBy("who", "score"))({"who": "ann", "score": 3, "team": "red"})
    (3, 'ann')
    """
    lift, identity = aggregate.lift, aggregate.identity
    if len(aggregate.columns) > 1 or isinstance(aggregate, (MaxBy, MinBy)):
        return _lifting_rows(aggregate)
    if not aggregate.skips_nulls:
        return lift
    return lambda value: identity if value is None else lift(value)


def _lifting_rows(aggregate: Aggregate) -> Callable[[Any], Any]:
    columns, identity, skips_nulls = aggregate.columns, aggregate.identity, aggregate.skips_nulls

    def lift_row(row: Any) -> Any:
        if isinstance(row, Mapping):
            try:
                row = [row[c] for c in columns]
            except KeyError as e:
                raise DataError(f"a value has no {e.args[0]!r}; {did_you_mean(str(e.args[0]), row)}") from None
        if skips_nulls and None in row:
            return identity
        return aggregate.lift(*row)

    return lift_row


def _python_values(values: Iterable[Any]) -> Iterable[Any]:
    """The values of an array as Python's, nulls as None; any other iterable as it is.

    >>> _python_values(np.ma.array([1, 2], mask=[True, False])), _python_values(pa.array([1, None]))
    ([None, 2], [1, None])
    """
    listed: Iterable[Any] = values
    if isinstance(values, np.ndarray):
        listed = values.tolist()
    # Arrow's scalars and pandas' missing values are not None, and an aggregate would take them for values.
    elif isinstance(values, (pa.Array, pa.ChunkedArray)):
        listed = values.to_pylist()
    elif hasattr(values, "iloc"):
        listed = arrow_of(values).to_pylist()
    return listed


def is_selective(aggregate: Aggregate) -> bool:
    """Whether ``combine`` gives one of its two arguments, as a maximum does.

    A class of your own declares it with an attribute ``selective = True``.

    >>> from slicewise.aggregates import count, max
    >>> is_selective(max()), is_selective(count())
    (True, False)
    """
    return aggregate.selective


def need_subtraction(algorithm: str, aggregate: Aggregate, instead: str) -> None:
    """Refuse an aggregate for an algorithm that takes old values out of a total: it must be invertible and commute."""
    if not aggregate.invertible:
        raise AggregateError(
            f"`{algorithm}` cannot run `{aggregate.name}`: it has no inverse to take old values out of a total; "
            f"{instead}"
        )
    if not aggregate.commutative:
        raise AggregateError(
            f"`{algorithm}` cannot run `{aggregate.name}`: its inverse takes values out at the back, but they leave a "
            f"window at the front; {instead}"
        )


class OnPartials(Aggregate):
    """The same aggregate over partials instead of values: nothing is lifted, nothing lowered.

    >>> from slicewise.aggregates import count
    >>> of_slices = OnPartials(count())
    >>> of_slices.combine(of_slices.lift(3), of_slices.lift(4))
    7
    """

    skips_nulls = False

    def __init__(self, aggregate: Aggregate) -> None:
        super().__init__()
        self.name = aggregate.name
        self.inner = aggregate
        self.identity = aggregate.identity
        self.commutative = aggregate.commutative
        self.invertible = aggregate.invertible
        self.kind = aggregate.kind
        self.selective = is_selective(aggregate)
        self.combine = aggregate.combine  # type: ignore[method-assign]
        self.invert = aggregate.invert  # type: ignore[method-assign]
