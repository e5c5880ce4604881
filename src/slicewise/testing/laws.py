"""Laws: look for a counterexample to the laws that an aggregate promises. Public: for built-in aggregates and users'.

Both forms of an aggregate are checked, its functions on single values and its monoid on arrays, and one against the
other. A law that holds on the samples may still fail elsewhere: samples with ties, zeros, nulls and NaN find more.
"""

from __future__ import annotations

import copy
import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Aggregate, Monoid, Parts, take_parts
from slicewise.columns import Column
from slicewise.errors import AggregateError
from slicewise.same import is_finite, is_same, magnitude

__all__ = ["check_laws"]

#: The largest number of triples that are tried; all of them when there are fewer.
MOST_TRIPLES = 2000

_Rows = tuple[list[Column], np.ndarray]


def check_laws(aggregate: Any, samples: Sequence[Any], types: Sequence[pa.DataType] | None = None) -> None:
    """Check that an aggregate keeps the laws it promises, on samples of its input.

    On single values and on arrays: the identity changes nothing, from the left and from the right; ``combine`` is
    associative, on partials of one row and of several; ``invert`` undoes ``combine`` where ``invertible``; the sides of
    ``combine`` may be swapped where ``commutative``; no function changes its arguments. On arrays also: ``fold``,
    ``scan`` and ``lift_fold`` agree with combining from left to right, and the result is that of the single values.

    Floats are the same up to 1e-9 of the largest number involved, and NaN is NaN. Partials are also the same when they
    differ only in what no result shows, such as the order of a list that ``lower`` takes the median of.

    Parameters
    ----------
    aggregate
        An :class:`~slicewise.aggregates.base.Aggregate`, or a maker: ``sw.max``, a ``sw.aggregate(...)``.
    samples
        Values as ``lift`` takes them, None for a null; tuples for an aggregate of several columns.
    types
        The Arrow types of the columns; by default those that Arrow infers from the samples. Samples without an Arrow
        type are checked as single values only.

    Raises
    ------
    AggregateError
        With the law that is broken, the values that break it, and both sides.

    Notes
    -----
    Runtime complexity: O(n**2) for n samples, besides all triples of partials or, if they are too many, a fixed random
    choice of some thousands.

    Examples
    --------
    >>> from slicewise.aggregates.base import Aggregate
    >>> class Mean(Aggregate):
    ...     name = "mean"
    ...     def combine(self, a, b):
    ...         return b if a is None else a if b is None else (a + b) / 2
    >>> check_laws(Mean("v"), [1, 2, 6])
    Traceback (most recent call last):
    slicewise.errors.AggregateError: `mean` is not associative:
        combine(combine(1, 2), 6) = 3.75, but combine(1, combine(2, 6)) = 2.5; ...
    """
    if not isinstance(aggregate, Aggregate) and callable(aggregate):
        aggregate = aggregate()
    if not isinstance(aggregate, Aggregate):
        raise AggregateError(f"`check_laws` needs an aggregate such as sw.sum('v'); got {aggregate!r}")
    rows = _rows(aggregate, samples)
    if not rows:
        raise AggregateError(f"`check_laws` needs samples to try `{aggregate.name}` on; got none")
    with np.errstate(all="ignore"):  # samples of infinity and NaN are welcome
        _check(aggregate, rows, types)


def _check(aggregate: Aggregate, rows: list[tuple[Any, ...]], types: Sequence[pa.DataType] | None) -> None:
    # Types first: the error of an aggregate for types it cannot work on is clearer than that of its functions.
    columns = _columns(rows, types)
    monoid = None if columns is None else aggregate.bind(*(column.type for column in columns))
    scalar = _Scalar(aggregate)
    lifted = [scalar.lift(row) for row in rows]
    _check_algebra(scalar, lifted)
    if columns is not None and monoid is not None:
        arrays = _Arrays(aggregate, monoid)
        timed = (columns, np.arange(len(rows), dtype=np.int64))
        parts = monoid.lift(*timed)
        singles = [_Partial(take_parts(parts, slice(i, i + 1)), p.text) for i, p in enumerate(lifted)]
        _check_algebra(arrays, singles)
        _check_timed(arrays, singles)
        _check_bulk(arrays, scalar, timed, singles, lifted)


# -- the two forms, as one algebra


class _Partial(NamedTuple):
    """A partial, and the expression that made it, for messages."""

    value: Any
    text: str


class _Algebra:
    """``combine``, ``invert`` and ``lower`` of partials that know how they were made."""

    where = ""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate

    def identity(self) -> _Partial:
        raise NotImplementedError

    def call(self, function: str, *values: Any) -> Any:
        raise NotImplementedError

    def show(self, value: Any) -> str:
        return repr(value)

    def combine(self, a: _Partial, b: _Partial) -> _Partial:
        return self._checked("combine", a, b)

    def invert(self, a: _Partial, b: _Partial) -> _Partial:
        return self._checked("invert", a, b)

    def _checked(self, function: str, *operands: _Partial) -> _Partial:
        text = f"{function}({', '.join(p.text for p in operands)})"
        before = [copy.deepcopy(p.value) for p in operands]
        value = self.call(function, *(p.value for p in operands))
        for operand, kept in zip(operands, before, strict=True):
            if not is_same(operand.value, kept, 0):
                raise AggregateError(
                    f"`{self.aggregate.name}` changes its arguments{self.where}: {text} turned {self.show(kept)} into "
                    f"{self.show(operand.value)}; partials are shared, so let `{function}` return a new one"
                )
        # A partial may share memory with its argument; a copy does not change with it.
        return _Partial(copy.deepcopy(value), text)

    def outcome(self, partial: _Partial) -> Any:
        """The result of a partial; where there is none, because it fails, the kind of failure."""
        try:
            return self.call("lower", copy.deepcopy(partial.value))
        except Exception as error:
            return type(error)

    def agree(self, left: _Partial, right: _Partial, operands: Sequence[_Partial]) -> bool:
        """Whether two partials are the same, or at least lead to the same results, alone and combined."""
        scale = max(map(magnitude, [left.value, right.value, *(p.value for p in operands)]))
        if is_same(left.value, right.value, scale):
            return True
        others = [(left, right)]
        for p in operands:
            others += [(self.combine(left, p), self.combine(right, p)), (self.combine(p, left), self.combine(p, right))]
        outcomes = [(self.outcome(a), self.outcome(b)) for a, b in others]
        # A failure shows nothing: of two partials that both fail to lower, only the contents can be compared.
        if any(isinstance(a, type) or isinstance(b, type) for a, b in outcomes):
            return False
        return all(is_same(a, b, max(scale, magnitude(a), magnitude(b))) for a, b in outcomes)

    def must_agree(self, law: str, left: _Partial, right: _Partial, operands: Sequence[_Partial], advice: str) -> None:
        if not self.agree(left, right, operands):
            sides = f"{left.text} = {self.show(left.value)}, but {_equation(right, self.show(right.value))}"
            raise AggregateError(f"`{self.aggregate.name}` {law}{self.where}: {sides}; {advice}")


class _Scalar(_Algebra):
    """The aggregate's functions on single values."""

    def identity(self) -> _Partial:
        return _Partial(copy.deepcopy(self.aggregate.identity), "identity")

    def lift(self, row: tuple[Any, ...]) -> _Partial:
        shown = ", ".join(map(repr, row))
        if self.aggregate.skips_nulls and any(v is None for v in row):
            return _Partial(copy.deepcopy(self.aggregate.identity), "identity")
        partial = self.aggregate.lift(*copy.deepcopy(row))
        plain = len(row) == 1 and type(partial) is type(row[0]) and is_same(partial, row[0], 0)
        return _Partial(partial, shown if plain else f"lift({shown})")

    def call(self, function: str, *values: Any) -> Any:
        return getattr(self.aggregate, function)(*values)


class _Arrays(_Algebra):
    """The aggregate's monoid, a partial being parts of length one."""

    where = " on arrays"

    def __init__(self, aggregate: Aggregate, monoid: Monoid) -> None:
        super().__init__(aggregate)
        self.monoid = monoid

    def identity(self) -> _Partial:
        return _Partial(self.monoid.identities(1), "identity")

    def call(self, function: str, *values: Any) -> Any:
        answer = getattr(self.monoid, function)(*values)
        return answer.to_pylist()[0] if function == "lower" else answer

    def show(self, value: Any) -> str:
        inside = [part.tolist()[0] for part in value]
        return repr(inside[0]) if len(inside) == 1 else repr(tuple(inside))


def _equation(partial: _Partial, shown: str) -> str:
    return shown if partial.text == shown else f"{partial.text} = {shown}"


# -- the laws


def _check_algebra(algebra: _Algebra, lifted: list[_Partial]) -> None:
    pool = lifted + [algebra.combine(a, b) for a, b in itertools.pairwise(lifted)]
    pool += [algebra.combine(a, b) for a, b in zip(pool[-2:], lifted[:2], strict=False)]
    _check_identity(algebra, pool)
    neighbours = zip(lifted, lifted[1:], lifted[2:], strict=False)
    for a, b, c in itertools.chain(neighbours, _some(lifted, 3), _some(pool, 3)):
        left, right = algebra.combine(algebra.combine(a, b), c), algebra.combine(a, algebra.combine(b, c))
        advice = "an order of combining must not matter: keep in the partial what is lost, and drop it in `lower`"
        algebra.must_agree("is not associative", left, right, (a, b, c), advice)
    if algebra.aggregate.commutative:
        for a, b in _some(pool, 2):
            left, right = algebra.combine(a, b), algebra.combine(b, a)
            advice = "set `commutative` to False, and partials are combined in event-time order only"
            algebra.must_agree("is not commutative", left, right, (a, b), advice)
    if algebra.aggregate.invertible:
        _check_inverse(algebra, pool)


def _check_identity(algebra: _Algebra, pool: list[_Partial]) -> None:
    one = algebra.identity()
    advice = f"`identity` is {algebra.show(one.value)}; it must be the partial of no rows at all"
    for a in pool:
        algebra.must_agree("has a wrong identity", algebra.combine(one, a), a, (a,), advice)
        algebra.must_agree("has a wrong identity", algebra.combine(a, one), a, (a,), advice)


def _check_inverse(algebra: _Algebra, pool: list[_Partial]) -> None:
    advice = "`invert` must take its second argument out of the first; correct it, or set `invertible` to False"
    for a, b in _some(pool, 2):
        both = algebra.combine(a, b)
        # Infinity minus infinity is NaN, for every sum of floats; the engine inverts only exact partials.
        if is_finite(both.value) and is_finite(b.value):
            algebra.must_agree("has a wrong inverse", algebra.invert(both, b), a, (a, b), advice)


def _check_timed(arrays: _Arrays, singles: list[_Partial]) -> None:
    """Partials that carry event times must be ordered by them, not by the side on which they are combined."""
    if arrays.aggregate.timed:
        for a, b in _some(singles, 2):
            if a is not b:
                left, right = arrays.combine(a, b), arrays.combine(b, a)
                advice = "its rows differ in event time, which must decide; correct it, or set `timed` to False"
                arrays.must_agree("is not settled by event time", left, right, (a, b), advice)


def _check_bulk(arrays: _Arrays, scalar: _Scalar, rows: _Rows, singles: list[_Partial], lifted: list[_Partial]) -> None:
    """``fold``, ``scan``, ``lift_fold`` and ``lower`` on whole arrays, against one step at a time."""
    monoid, n = arrays.monoid, len(singles)
    parts, steps = monoid.lift(*rows), [p.value for p in singles]
    for starts in _cuts(n):
        ranges = list(zip(starts.tolist(), [*starts[1:].tolist(), n], strict=True))
        expected = [reduce(monoid.combine, steps[i:j]) for i, j in ranges]
        _match(arrays, "fold", monoid.fold(parts, starts), expected, singles, ranges)
        _match(arrays, "lift_fold", monoid.lift_fold(*rows, starts), expected, singles, ranges)
        _match_results(arrays, scalar, rows[0], lifted, ranges)
    running = list(itertools.accumulate(steps, monoid.combine))
    _match(arrays, "scan", monoid.scan(parts), running, singles, [(0, i + 1) for i in range(n)])
    # One by one `combine` was right; on whole arrays a stray broadcast or a shared buffer may still show.
    following = [monoid.combine(a, b) for a, b in itertools.pairwise(steps)]
    together = monoid.combine(take_parts(parts, slice(None, -1)), take_parts(parts, slice(1, None)))
    _match(arrays, "combine", together, following, singles, [(i, i + 2) for i in range(n - 1)])


def _cuts(n: int) -> Iterator[np.ndarray]:
    """Ways to cut ``n`` rows into segments: one, all, twos, and of mixed lengths."""
    ways: list[Iterable[int]] = [[0], range(n), range(0, n, 2), [i * (i + 1) // 2 for i in range(n)]]
    for way in ways:
        yield np.array([i for i in way if i < n], dtype=np.int64)


def _match(
    arrays: _Arrays,
    function: str,
    got: Parts,
    expected: list[Parts],
    singles: list[_Partial],
    ranges: list[tuple[int, int]],
) -> None:
    if any(len(part) != len(expected) for part in got):
        raise AggregateError(
            f"`{arrays.aggregate.name}` has a wrong `{function}` on arrays: "
            f"{len(got[0])} partials for {len(expected)} segments; it must give one for each"
        )
    for i, (want, (start, stop)) in enumerate(zip(expected, ranges, strict=True)):
        operands = singles[start:stop]
        left = _Partial(take_parts(got, slice(i, i + 1)), f"{function} of {', '.join(p.text for p in operands)}")
        right = _Partial(want, "combining one by one from left to right")
        advice = f"`{function}` must do for many partials at once what `combine` does for two"
        arrays.must_agree(f"has a wrong `{function}`", left, right, operands, advice)


def _match_results(
    arrays: _Arrays, scalar: _Scalar, columns: list[Column], lifted: list[_Partial], ranges: list[tuple[int, int]]
) -> None:
    """One result from arrays and from single values, which have no event time: their positions stand for it."""
    seen = np.ones(len(lifted), bool)
    if arrays.aggregate.skips_nulls:
        seen = np.logical_and.reduce([seen, *(column.mask for column in columns)])
    for start, stop in ranges:
        places = np.maximum(np.cumsum(seen[start:stop]) - 1, 0)
        rows = [column.take(np.arange(start, stop)) for column in columns]
        result = arrays.call("lower", arrays.monoid.lift_fold(rows, places, np.zeros(1, np.int64)))
        operands = lifted[start:stop]
        wanted = scalar.call("lower", copy.deepcopy(reduce(scalar.combine, operands).value))
        scale = max([magnitude(result), magnitude(wanted), *(magnitude(p.value) for p in operands)])
        if not is_same(result, wanted, scale):
            raise AggregateError(
                f"`{arrays.aggregate.name}` has two answers for {', '.join(p.text for p in operands)}: "
                f"{result!r} on arrays, but {wanted!r} on single values; `bind` and the aggregate must compute the same"
            )


# -- samples


def _rows(aggregate: Aggregate, samples: Sequence[Any]) -> list[tuple[Any, ...]]:
    arity = len(aggregate.columns)
    if arity == 1 or (arity == 0 and len(samples) and not _takes_tuples_apart(aggregate, samples[0])):
        return [(sample,) for sample in samples]
    for sample in samples:
        if not isinstance(sample, (tuple, list)) or len(sample) != (arity or len(samples[0])):
            raise AggregateError(f"`{aggregate.name}` takes several columns, so a sample is a tuple; got {sample!r}")
    return [tuple(sample) for sample in samples]


def _takes_tuples_apart(aggregate: Aggregate, sample: Any) -> bool:
    """Whether an aggregate without column names takes the values of a tuple one by one: it is tried."""
    if not isinstance(sample, tuple):
        return False
    try:
        aggregate.lift(copy.deepcopy(sample))
    except (TypeError, ValueError):
        return True
    return False


def _columns(rows: list[tuple[Any, ...]], types: Sequence[pa.DataType] | None) -> list[Column] | None:
    given = types if types is not None else [None] * len(rows[0])
    if len(given) != len(rows[0]):
        raise AggregateError(f"`types` must name one type per column; got {len(given)} for {len(rows[0])} columns")
    try:
        return [Column.of(list(values), t) for values, t in zip(zip(*rows, strict=True), given, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        if types is not None:
            raise
        return None


def _some(pool: list[_Partial], k: int) -> Iterator[tuple[_Partial, ...]]:
    """All ``k``-tuples of the pool, or a fixed random choice of them when they are too many."""
    if math.pow(len(pool), k) <= MOST_TRIPLES:
        yield from itertools.product(pool, repeat=k)
        return
    choose = random.Random(0)
    for _ in range(MOST_TRIPLES):
        yield tuple(choose.choices(pool, k=k))
