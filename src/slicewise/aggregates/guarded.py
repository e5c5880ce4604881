"""Guarded aggregates: the user's functions, which may raise. What fails costs a row or a window, and nothing else.

``lift`` is shown every row once, when it comes; a row on which it raises is told by its place. Where ``combine`` or
``invert`` raises, a :class:`Failure` stands for the partial from then on: whatever is combined with it fails as well,
so that exactly the windows over it have no value. ``lower`` says which these are.

Built-in aggregates are not guarded, and pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import (
    BUILT_IN,
    Aggregate,
    Monoid,
    Parts,
    concat_parts,
    fold_pairwise,
    put_parts,
    scan_pairwise,
    take_parts,
)
from slicewise.aggregates.multi import Multi
from slicewise.aggregates.user import UserAggregate
from slicewise.columns import Column, physical_dtype
from slicewise.errors import AggregateError, SlicewiseError

__all__ = ["Failure", "GuardedMonoid", "guarded", "is_user_code", "search_by_halves", "shown_error"]


class Failure:
    """Stands for a partial that the user's code could not compute; ``text`` says which function raised what.

    >>> Failure("`combine` raised ValueError('no')")
    Failure("`combine` raised ValueError('no')")
    """

    #: Whether there has been one in this process. As long as there was none, nobody has to look for them.
    exist: ClassVar[bool] = False

    def __new__(cls, *arguments: Any) -> Failure:
        # However it is made, also from a copy or from saved state.
        cls.exist = True
        return super().__new__(cls)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return f"Failure({self.text!r})"


def is_user_code(aggregate: Aggregate) -> bool:
    """Whether an aggregate runs functions that are not ours.

    >>> from slicewise.aggregates import aggregate, sum
    >>> total = aggregate(combine=lambda a, b: a + b, identity=0)
    >>> is_user_code(sum("v")), is_user_code(total("v")), is_user_code(Multi(a=sum("v"), b=total("v")))
    (False, True, True)
    """
    if type(aggregate) is Multi:
        return any(map(is_user_code, aggregate.aggregates.values()))
    if aggregate.base is not aggregate:
        return is_user_code(aggregate.base)
    if type(aggregate) in BUILT_IN.values():
        return False
    # A subclass of a built-in aggregate that replaces none of its functions runs the arrays of the built-in one.
    bind = type(aggregate).bind
    return bind in (Aggregate.bind, UserAggregate.bind) or not bind.__module__.startswith("slicewise.")


def guarded(monoid: Monoid, number: int) -> Monoid:
    """The monoid of a plan's aggregate with this number, guarded if it runs the user's code."""
    return GuardedMonoid(monoid, number) if is_user_code(monoid.aggregate) else monoid


def search_by_halves(
    call: Callable[[np.ndarray], Any], index: np.ndarray, broken: type[SlicewiseError] = AggregateError
) -> tuple[list[tuple[np.ndarray, Any]], dict[int, Exception]]:
    """Call a function on as many places at once as it takes: what it gave for which places, and where it raised.

    An error of ours of the kind ``broken`` that has no cause is raised: a promise that has nothing to do with values.

    >>> search_by_halves(lambda index: (1 / index.astype(object)).tolist(), np.array([2, 0, 4]))
    ([(array([2]), [0.5]), (array([4]), [0.25])], {0: ZeroDivisionError('division by zero')})
    """
    done: list[tuple[np.ndarray, Any]] = []
    raised: dict[int, Exception] = {}
    waiting = [index] if len(index) else []
    while waiting:
        part = waiting.pop()
        try:
            done.append((part, call(part)))
        except MemoryError:
            raise
        except Exception as error:
            if isinstance(error, broken) and error.__cause__ is None:
                raise
            if len(part) == 1:
                raised[int(part[0])] = error
            else:
                waiting += [part[len(part) // 2 :], part[: len(part) // 2]]
    return done, raised


def shown_error(error: Exception) -> str:
    """What the user's code raised, which our own error may hold as its cause."""
    return repr(error.__cause__ if isinstance(error, SlicewiseError) and error.__cause__ is not None else error)


class GuardedMonoid(Monoid):
    """An aggregate of the user's own, on arrays.

    Attributes
    ----------
    reads
        The columns of rows that partials are made of: those that hold what ``lift`` gave, one for each part.
    """

    def __init__(self, inner: Monoid, number: int) -> None:
        super().__init__(inner.aggregate, inner.types)
        self.inner = inner
        self.identity, self.dtypes, self.exact = inner.identity, inner.dtypes, inner.exact
        self.result = inner.result
        self.reads = tuple(f"{self.LIFTED}{number} {part}" for part in range(len(self.dtypes)))

    # Rows

    def lift(self, columns: Sequence[Column], times: np.ndarray) -> Parts:
        return self.inner.lift(columns, times)

    def lift_each(self, columns: Mapping[str, Column], times: np.ndarray) -> tuple[Parts, dict[int, Exception]]:
        """One partial per row, and what was raised on which row; nobody may look at the partials of those."""
        inputs = [columns[name] for name in self.aggregate.columns]
        if not len(times):
            return self.identities(0), {}

        def lift(rows: np.ndarray) -> Parts:
            if len(rows) == len(times):
                return self.inner.lift(inputs, times)
            return self.inner.lift([column.take(rows) for column in inputs], times[rows])

        done, raised = search_by_halves(lift, np.arange(len(times)))
        return self._together(done, len(times)), raised

    def fold_rows(self, columns: Mapping[str, Column], times: np.ndarray, starts: np.ndarray) -> Parts:
        return self.fold(tuple(columns[name].values for name in self.reads), starts)

    # Partials

    def combine(self, a: Parts, b: Parts) -> Parts:
        return self._call("combine", self.inner.combine, a, b)

    def invert(self, a: Parts, b: Parts) -> Parts:
        return self._call("invert", self.inner.invert, a, b)

    def fold(self, parts: Parts, starts: np.ndarray) -> Parts:
        if not Failure.exist:
            try:
                return self.inner.fold(parts, starts)
            except Exception:
                pass  # pair by pair, it will show which of them fail
        return fold_pairwise(self.combine, parts, starts)

    def scan(self, parts: Parts) -> Parts:
        if not Failure.exist:
            try:
                return self.inner.scan(parts)
            except Exception:
                pass
        return scan_pairwise(self.combine, parts)

    def failed(self, parts: Parts) -> np.ndarray:
        if not Failure.exist or parts[0].dtype != object:
            return np.empty(0, np.int64)
        return np.flatnonzero([type(partial) is Failure for partial in parts[0]])

    def lower(self, parts: Parts) -> Column:
        column, failures = self.lower_each(parts)
        if failures:
            raise AggregateError(next(iter(failures.values())).text)
        return column

    def lower_each(self, parts: Parts) -> tuple[Column, dict[int, Failure]]:
        """One result per partial, null where there is none, and why there is none."""
        places, failures = self._sound(parts)

        def lower(index: np.ndarray) -> Column:
            return self.inner.lower(self._plain(parts if len(index) == len(parts[0]) else take_parts(parts, index)))

        done, raised = search_by_halves(lower, places)
        failures |= {at: self._failure("lower", error) for at, error in raised.items()}
        if not failures:
            return done[0][1] if done else self.inner.lower(parts), {}
        return self._column(done, len(parts[0])), dict(sorted(failures.items()))

    def _call(self, name: str, function: Callable[..., Parts], a: Parts, b: Parts) -> Parts:
        if not Failure.exist:
            try:
                return function(a, b)
            except Exception:
                pass
        n = len(a[0])
        places, failures = self._sound(a, b)

        def call(index: np.ndarray) -> Parts:
            both = (a, b) if len(index) == n else (take_parts(a, index), take_parts(b, index))
            return function(*map(self._plain, both))

        done, raised = search_by_halves(call, places)
        failures |= {at: self._failure(name, error) for at, error in raised.items()}
        out = self._together(done, n)
        if not failures:
            return out
        first = out[0].astype(object)
        for at, failure in failures.items():
            first[at] = failure
        return (first, *out[1:])

    def _failure(self, function: str, error: Exception) -> Failure:
        return Failure(f"`{function}` of {self.aggregate!r} raised {shown_error(error)}")

    def _sound(self, *operands: Parts) -> tuple[np.ndarray, dict[int, Failure]]:
        """The places where no operand has failed, and the failures at the others."""
        failures: dict[int, Failure] = {}
        for parts in operands:
            for at in self.failed(parts).tolist():
                failures.setdefault(at, parts[0][at])
        places = np.arange(len(operands[0][0]))
        return (np.delete(places, list(failures)) if failures else places), failures

    def _plain(self, parts: Parts) -> Parts:
        """Parts in their own dtypes, none of which is a failure; beside failures they are held as objects."""
        return tuple(_as_dtype(part, dtype) for part, dtype in zip(parts, self.dtypes, strict=True))

    def _together(self, done: list[tuple[np.ndarray, Parts]], n: int) -> Parts:
        """Partials of some places, of ``n``; identities at the others."""
        if len(done) == 1 and len(done[0][0]) == n:
            return done[0][1]
        out = self.identities(n)
        if not done:
            return out
        return put_parts(out, np.concatenate([index for index, _ in done]), concat_parts([p for _, p in done]))

    def _column(self, done: list[tuple[np.ndarray, Column]], n: int) -> Column:
        """Results of some places, of ``n``; null at the others."""
        if not done:
            filler = np.zeros(n, physical_dtype(self.result))
            return Column(filler, self.result, np.zeros(n, bool))
        index, column = np.concatenate([i for i, _ in done]), Column.concat([c for _, c in done])
        values, valid = np.zeros(n, column.values.dtype), np.zeros(n, bool)
        values[index], valid[index] = column.values, column.mask
        return Column(values, column.type, valid)

    # What the plan says of it

    def overfull(self, parts: Parts) -> np.ndarray:
        places, _ = self._sound(parts)
        overfull: np.ndarray = places[self.inner.overfull(take_parts(parts, places))]
        return overfull

    def identities(self, n: int) -> Parts:
        return self.inner.identities(n)

    def scaled_by(self) -> tuple[int | None, ...]:
        return self.inner.scaled_by()

    def widened(self, parts: Parts, types: Mapping[str, pa.DataType]) -> Parts:
        return self.inner.widened(parts, types)

    def until(self, parts: Parts, ends: np.ndarray) -> Parts:
        # Not guarded: only monoids do this, and failures must not get there.
        return parts if self.failed(parts).size else self.inner.until(parts, ends)

    def set_time_type(self, type_: pa.DataType, unit: str = "microseconds") -> None:
        self.inner.set_time_type(type_, unit)
        self.result = self.inner.result

    def break_ties_by_value(self) -> None:
        self.inner.break_ties_by_value()


def _as_dtype(part: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if part.dtype != object or dtype.hasobject:
        return part
    try:
        return part.astype(dtype)
    except (OverflowError, TypeError, ValueError):
        return part  # numbers that have grown too large for it
