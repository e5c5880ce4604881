"""Batches: windows over whole arrays of numbers, in NumPy. :func:`roll` computes in a few passes what the structures
compute value by value, and :func:`batch_of` hands arrays over to ``insert_many``.

Beside the algorithms: it imports the aggregates, and :mod:`slicewise.swag.rolling_ranks` for medians and their like.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.aggregates import exact
from slicewise.aggregates.arithmetic import Avg, Count, FloatTotals, IntTotals, Sum
from slicewise.aggregates.base import (
    Aggregate,
    Monoid,
    ObjectMonoid,
    Parts,
    concat_parts,
    scan_pairwise,
    take_parts,
)
from slicewise.aggregates.bests import BestMonoid
from slicewise.aggregates.checks import as_float64
from slicewise.aggregates.comoments import CoMomentsMonoid
from slicewise.aggregates.higher_moments import HigherMomentsMonoid
from slicewise.aggregates.histograms import HistogramMonoid
from slicewise.aggregates.moments import GeometricMean, MomentsMonoid, Product, StdDev, StdDevPop, Variance, VarPop
from slicewise.aggregates.order import ExtremeMonoid, Max, Min, Range
from slicewise.aggregates.sketches import SketchMonoid
from slicewise.columns import Column
from slicewise.errors import AggregateError, DataError, QueryError
from slicewise.swag.doubling import double
from slicewise.swag.pieces import PIECE, Results
from slicewise.swag.rolling_moments import roll_moments, roll_pairs
from slicewise.swag.rolling_ranks import roll_ranks

__all__ = ["Batch", "batch_of", "roll"]

#: Ranges up to this are doubled.
_DOUBLED = 2**12

_TUPLES = (Sum, Avg, Product, GeometricMean, StdDev, StdDevPop, Variance, VarPop)


def roll(values: Any, ranges: int | Iterable[int], aggregate: Aggregate) -> Any:
    """The aggregate of the last ``k`` values at every value, for one or several ``k``.

    The first ``k - 1`` results are of fewer values, as those of a window that fills up.

    Parameters
    ----------
    values
        Numbers: a NumPy or Arrow array, a pandas series or a list; for an aggregate of named columns also a mapping of
        such columns, which an aggregate of two columns needs. Nulls hold their place and are skipped as the
        aggregate does: ``sw.count()`` counts them, ``sw.count("v")`` does not. A NaN is a value.
    ranges
        The number of values that a result covers; several are answered from one pass over the values.
    aggregate
        A numeric aggregate such as ``sw.max()``.

    Returns
    -------
    numpy.ndarray or list of them
        As many results as values, one array per range; a masked array where a result is null. One range that is not in
        a list gives its array alone. Decimals and times come as arrays of Python objects, None where null.

    Notes
    -----
    The answers are those of a :class:`~slicewise.swag.base.SlidingWindow` slid over the values: equal for integers,
    counts and extremes, up to rounding for sums of floats, which are added in another order here. A sum of integers
    that does not fit 64 bits raises, as it does in Spark; a window goes on with Python's integers.

    No window of floats is ever computed by taking values out of a running total: a value that has left a window, be it
    1e300 or an infinity, leaves no trace in it. Sums of integers, counts and sums in fixed point are, because there it
    is exact.

    * Integers: a running total of what comes into a window less what leaves it. It may not reach 2**63; Python's
      integers take over where it could.
    * Sums of floats, minima and maxima of short ranges: by doubling. Windows of 2 are neighbours combined, windows of 4
      are those of 2, and so on; a range of 13 is 8 and 4 and 1, for extremes 8 and 8, which may overlap. Sums are thus
      pairwise, and their error grows with log k only.
    * Variances, skewness, kurtosis, correlations: sums of powers about the mean of a piece of the values, over long
      windows in fixed point, which does not drift, and for variances of integers in whole numbers; and exactly where
      these would lose digits (see :mod:`slicewise.swag.rolling_moments`).
    * Medians and percentiles: windows of up to 64 values are sorted, all at once; longer ones are read off a wavelet
      matrix of ranks, in O(log n) passes whatever their length. Distinct values are counted in one pass.
    * Everything else as two stacks would, all windows at once. The values are cut in blocks of ``k``; within each,
      running combinations from the left (the back stack) and from the right (the front stack, after a flip). A window
      is the end of one block and the beginning of the next::

        k = 4        a  b  c  d | e  f  g  h | i  j
        from right   ad bd cd d | eh fh gh h | ij j
        from left    a  ab ac ad| e  ef eg eh| i  ij
        last 4 at f        cd ------ ef              = cd + ef

    Runtime complexity: O(n) combines per range, O(n log k) when doubling.

    Examples
    --------
    >>> roll([6, 5, 0, 1, 3, 4, 2, 7], 3, Max())
    array([6, 6, 6, 5, 3, 4, 4, 7])
    >>> roll(np.array([6, 5, 0, 1, 3, 4, 2, 7]), [3, 5], Sum())
    [array([ 6, 11, 11,  6,  4,  8,  9, 13]), array([ 6, 11, 11, 12, 15, 13, 10, 17])]
    >>> from slicewise.aggregates import covar_samp
    >>> roll({"x": [1, 2, 3, 4], "y": [2, 4, 6, 2]}, 3, covar_samp("x", "y"))[2:].tolist()
    [2.0, -1.0]
    >>> roll([1.0, 5.0, 3.0], 2, StdDev())
    masked_array(data=[--, 2.8284271247461903, 1.4142135623730951],
                 mask=[ True, False, False],
           fill_value=1e+20)
    """
    if not isinstance(aggregate, Aggregate):
        raise QueryError(f"`aggregate` must be an aggregate such as sw.sum(); got {aggregate!r}")
    alone = not isinstance(ranges, Iterable)
    wanted = [_check_range(k) for k in ([ranges] if not isinstance(ranges, Iterable) else ranges)]
    read = _columns(values, aggregate)
    column = read[0]
    if isinstance(aggregate, Count) and not aggregate.columns:
        read = []  # it counts values, null or not
    monoid = aggregate.bind(*(c.type for c in read))
    if isinstance(monoid, HistogramMonoid) and len(monoid.types) == 1:
        results = [_as_array(roll_ranks(monoid, column, k)) for k in wanted]
        return results[0] if alone else results
    if isinstance(monoid, (ObjectMonoid, BestMonoid, SketchMonoid)):
        raise AggregateError(
            f"`roll` needs an aggregate that works on arrays of numbers; got `{aggregate.name}` of {column.type}: "
            "slide a window such as TwoStacks over the values instead"
        )
    if moments := _of_moments(monoid, read, wanted):
        return moments[0] if alone else moments
    lowered = _on_numbers(monoid, column, wanted)
    if lowered is None:
        lifted = monoid.lift(read, np.arange(len(column)))
        if aggregate.invertible and monoid.exact:
            running = monoid.scan(lifted)
            parts = [_by_difference(monoid, running, k) for k in wanted]
        else:
            parts = [_by_blocks(monoid, lifted, k) for k in wanted]
        lowered = [monoid.lower(p) for p in parts]
    results = [_as_array(column) for column in lowered]
    return results[0] if alone else results


def _check_range(k: Any) -> int:
    if not isinstance(k, (int, np.integer)) or isinstance(k, bool) or k < 1:
        raise QueryError(f"`ranges` must be positive counts of values; got {k!r}")
    return int(k)


def _columns(values: Any, aggregate: Aggregate) -> list[Column]:
    if not isinstance(values, Mapping):
        if len(aggregate.columns) > 1:
            names = ", ".join(f"{name!r}: ..." for name in aggregate.columns)
            raise QueryError(
                f"`{aggregate.name}` rolls over {len(aggregate.columns)} columns; got one: give `values` by name, "
                f"{{{names}}}"
            )
        return [_column(values)]
    missing = [name for name in aggregate.columns if name not in values]
    if missing or not aggregate.columns:
        wanted = missing[0] if missing else None
        raise QueryError(f"`values` has no column {wanted!r} for `{aggregate.name}`; it has {sorted(values)}")
    columns = [_column(values[name]) for name in aggregate.columns]
    lengths = {name: len(column) for name, column in zip(aggregate.columns, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        raise DataError(f"all columns must have the same number of values; got {lengths}")
    return columns


def _column(values: Any) -> Column:
    try:
        return Column.of(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as e:
        raise DataError(f"`values` must be numbers of one type; got {values!r}: {e}") from e


def _as_array(column: Column) -> np.ndarray:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return column.to_objects()  # decimals, times: held as numbers, but not numbers to the user
    if column.valid is None:
        return column.values
    return np.ma.MaskedArray(column.values, mask=~column.valid)


def _on_numbers(monoid: Monoid, column: Column, ranges: list[int]) -> list[Column] | None:
    """Sums and extremes; None for others."""
    n, valid = len(column), column.valid
    if not n or not isinstance(monoid, (IntTotals, FloatTotals, ExtremeMonoid)):
        return None
    values = column.values if valid is None else np.where(valid, column.values, monoid.identity[0])
    longest = min(max(ranges, default=1), n)
    doubles = False
    if isinstance(monoid, IntTotals):
        if values.dtype == object:
            return None
        largest = max(-int(values.min()), int(values.max())) * longest
        if largest > exact.INT64_MAX:
            return None
        doubles = largest <= 2**53
        slid = [_slide_integers(values, k) for k in ranges]
    else:
        ufunc = np.add if isinstance(monoid, FloatTotals) else _extreme(monoid, values)
        with np.errstate(over="ignore", invalid="ignore"):
            slid = [_slide(ufunc, values, k) for k in ranges]
    if valid is None:
        if doubles and isinstance(monoid.aggregate, Avg) and pa.types.is_floating(monoid.result):
            return [Column(_means(some, k), monoid.result) for some, k in zip(slid, ranges, strict=True)]
        return [_lowered(monoid, some, k) for some, k in zip(slid, ranges, strict=True)]
    counts = [_slide_integers(valid.astype(np.int64), k) for k in ranges]
    if isinstance(monoid, ExtremeMonoid):
        counts = [c > 0 for c in counts]
    return [monoid.lower(parts) for parts in zip(slid, counts, strict=True)]


def _means(sums: np.ndarray, k: int) -> np.ndarray:
    """The means of windows of ``k`` integers without nulls, whose sums doubles hold exactly."""
    means = np.empty(len(sums))
    np.divide(sums[:k], np.arange(1, min(k, len(sums)) + 1), out=means[:k])
    np.divide(sums[k:], k, out=means[k:])
    return means


def _lowered(monoid: Monoid, slid: np.ndarray, k: int) -> Column:
    """The results of sums or extremes of windows without nulls. No number of values is told twice, if it matters."""
    n = len(slid)
    if not isinstance(monoid.aggregate, Avg):
        return monoid.lower((slid, np.ones(1, np.int64)))
    if not pa.types.is_floating(monoid.result):  # means of durations are rounded one by one
        return monoid.lower((slid, _filling(n, k)))
    results = Results(n, memory=slid)
    results.add(monoid.lower((slid[:k], np.arange(1, min(k, n) + 1))))
    size = np.full(1, k)
    for start in range(k, n, PIECE):
        results.add(monoid.lower((slid[start : start + PIECE], size)))
    return results.column


def _of_moments(monoid: Monoid, columns: Sequence[Column], ranges: list[int]) -> list[np.ndarray] | None:
    """Variances, correlations and their like; None for others, and where there are nulls or very large numbers."""
    if any(column.valid is not None for column in columns) or not columns or not len(columns[0]):
        return None
    if isinstance(monoid, CoMomentsMonoid):
        y, x = map(as_float64, columns)
        rolled = [roll_pairs(y, x, k, partial(_pairs_by_blocks, monoid, k), monoid.lower) for k in ranges]
    elif isinstance(monoid, (MomentsMonoid, HigherMomentsMonoid)):
        values = columns[0].values if columns[0].values.dtype == np.int64 else as_float64(columns[0])
        highest = 2 if isinstance(monoid, MomentsMonoid) else monoid.aggregate.highest
        rolled = [roll_moments(values, k, highest, monoid.lower) for k in ranges]
    else:
        return None
    results = [_as_array(r) for r in rolled if r is not None]
    return results if len(results) == len(ranges) else None


def _pairs_by_blocks(monoid: Monoid, k: int, y: np.ndarray, x: np.ndarray) -> list[np.ndarray]:
    lifted = monoid.lift([Column.of(y), Column.of(x)], np.arange(len(y)))
    return list(_by_blocks(monoid, lifted, k)[1:])


def _filling(n: int, k: int) -> np.ndarray:
    """The number of values in a window of ``k`` while it fills up, and after."""
    out = np.full(n, k)
    out[:k] = np.arange(1, min(k, n) + 1)
    return out


def _extreme(monoid: ExtremeMonoid, values: np.ndarray) -> np.ufunc:
    if isinstance(monoid.aggregate, Max):
        return np.maximum
    return np.fmin if values.dtype.kind == "f" else np.minimum  # NaN is the largest, so a minimum passes over it


def _slide_integers(values: np.ndarray, k: int) -> np.ndarray:
    """The sum of the last ``k`` values: what comes in less what goes out, added up.

    >>> _slide_integers(np.array([1, 2, 3, 4]), 2)
    array([1, 3, 5, 7])
    """
    out = np.empty_like(values)
    out[:k] = values[:k]
    np.subtract(values[k:], values[:-k], out=out[k:])
    return np.add.accumulate(out, out=out)


def _slide(ufunc: np.ufunc, values: np.ndarray, k: int) -> np.ndarray:
    """The ufunc over the last ``k`` values.

    >>> _slide(np.add, np.array([1.0, 2.0, 4.0, 8.0, 16.0]), 3)
    array([ 1.,  3.,  7., 14., 28.])
    """
    n = len(values)
    if k >= n:
        return ufunc.accumulate(values)
    if k > _DOUBLED:
        return (_add_blocks if ufunc is np.add else _slide_blocks)(ufunc, values, k)
    out = np.empty_like(values)
    ufunc.accumulate(values[: k - 1], out=out[: k - 1])
    piece = max(PIECE, 4 * k)
    for start in range(0, n - k + 1, piece):
        stop = min(start + piece, n - k + 1)
        out[start + k - 1 : stop + k - 1] = double(ufunc, values[start : stop + k - 1], k)
    return out


def _add_blocks(ufunc: np.ufunc, values: np.ndarray, k: int) -> np.ndarray:
    """As :func:`_by_blocks`, on sums.

    An addition waits for the one before it. Complex numbers add two numbers at once: the beginnings of one block, and
    the ends of the block before.
    """
    n = len(values)
    out, both = np.empty_like(values), np.zeros(k, complex)
    ufunc.accumulate(values[:k], out=out[:k])
    for start in range(k, n, k):
        block = values[start : start + k]
        both.real[: len(block)] = block
        both.imag[: k - 1] = values[start - 1 : start - k : -1]
        ufunc.accumulate(both, out=both)
        out[start : start + k] = both.real[: len(block)]
        short = out[start : start + k - 1]  # of which a part is in the block before
        short += both.imag[k - 2 :: -1][: len(short)]
    return out


def _slide_blocks(ufunc: np.ufunc, values: np.ndarray, k: int) -> np.ndarray:
    """As :func:`_by_blocks`, on one array."""
    n = len(values)
    whole = n - n % k
    blocks = values[:whole].reshape(-1, k)
    from_left, from_right = np.empty_like(values), np.empty_like(blocks)
    ufunc.accumulate(blocks, axis=1, out=from_left[:whole].reshape(-1, k))
    ufunc.accumulate(values[whole:], out=from_left[whole:])
    ufunc.accumulate(blocks[:, ::-1], axis=1, out=from_right[:, ::-1])
    complete = from_left[k - 1 :: k].copy()
    ufunc(from_right.reshape(-1)[: n - k + 1], from_left[k - 1 :], out=from_left[k - 1 :])
    from_left[k - 1 :: k] = complete
    return from_left


def _by_difference(monoid: Monoid, running: Parts, k: int) -> Parts:
    n = len(running[0])
    if k >= n:
        return tuple(p.copy() for p in running)  # which several ranges may ask for
    rest = monoid.invert(take_parts(running, slice(k, None)), take_parts(running, slice(None, n - k)))
    return concat_parts([take_parts(running, slice(None, k)), rest])


def _by_blocks(monoid: Monoid, lifted: Parts, k: int) -> Parts:
    n = len(lifted[0])
    if k == 1 or n <= 1:
        return tuple(p.copy() for p in lifted)  # the values themselves, which are the user's
    if k >= n:
        return monoid.scan(lifted)
    from_left = _scan_blocks(monoid, lifted, k, back=False)
    from_right = _scan_blocks(monoid, lifted, k, back=True)
    joined = monoid.combine(take_parts(from_right, slice(None, n - k + 1)), take_parts(from_left, slice(k - 1, None)))
    out = []
    for part, both in zip(from_left, joined, strict=True):
        mixed = np.concatenate([part[: k - 1], both])  # exact sums may have left int64
        mixed[k - 1 :: k] = part[k - 1 :: k]  # a window that is one whole block is complete in `from_left`
        out.append(mixed)
    return tuple(out)


def _scan_blocks(monoid: Monoid, parts: Parts, k: int, *, back: bool) -> Parts:
    """Running combinations within blocks of ``k``; towards the front with ``back``.

    Many short blocks are scanned side by side, a few long ones one after the other: O(sqrt(n)) array steps either way.
    """
    n = len(parts[0])
    blocks = -(-n // k)
    if k > blocks:
        return concat_parts([_scan(monoid, take_parts(parts, slice(i, i + k)), back) for i in range(0, n, k)])
    padding = blocks * k - n
    if padding:
        parts = concat_parts([parts, monoid.identities(padding)])
    grids = [p.reshape(blocks, k).T.copy() for p in parts]
    steps = range(k - 2, -1, -1) if back else range(1, k)
    for i in steps:
        here = tuple(g[i] for g in grids)
        before = tuple(g[i + 1 if back else i - 1] for g in grids)
        for j, both in enumerate(monoid.combine(here, before) if back else monoid.combine(before, here)):
            if both.dtype != grids[j].dtype:
                grids[j] = grids[j].astype(np.result_type(both.dtype, grids[j].dtype))
            grids[j][i] = both
    return tuple(g.T.reshape(-1)[:n] for g in grids)


def _scan(monoid: Monoid, parts: Parts, back: bool) -> Parts:
    if not back:
        return monoid.scan(parts)
    backwards = take_parts(parts, slice(None, None, -1))
    # Timed partials settle by themselves which comes first, so any order will do for them too.
    if monoid.aggregate.commutative or monoid.aggregate.timed:
        scanned = monoid.scan(backwards)
    else:
        scanned = scan_pairwise(lambda a, b: monoid.combine(b, a), backwards)
    return take_parts(scanned, slice(None, None, -1))


class Batch:
    """Numbers on their way into a window: lifted and combined as arrays, handed over as partials of single values.

    >>> batch = batch_of(Sum(), np.array([2, 5, 1]))
    >>> batch.partials(), batch.total()
    ([(2, 1), (5, 1), (1, 1)], (8, 3))
    """

    def __init__(self, aggregate: Aggregate, values: np.ndarray) -> None:
        self.values = values
        self._aggregate = aggregate
        self._monoid = aggregate.bind(pa.from_numpy_dtype(values.dtype))
        self._lifted = self._monoid.lift([Column.of(values)], np.arange(len(values)))

    def __len__(self) -> int:
        return len(self.values)

    def partials(self) -> list[Any]:
        """One partial per value."""
        return self._hand_over(self._lifted)

    def total(self) -> Any:
        """The partial of all values; there must be some."""
        return self._hand_over(self._monoid.fold(self._lifted, np.zeros(1, np.int64)))[0]

    def _hand_over(self, parts: Parts) -> list[Any]:
        if isinstance(self._aggregate, (Count, Max, Min)):
            partials: list[Any] = parts[0].tolist()
            return partials
        lists = [p.tolist() for p in (parts[:2] if isinstance(self._aggregate, Range) else parts)]
        return list(zip(*lists, strict=True))


def batch_of(aggregate: Aggregate, values: Any) -> Batch | None:
    """``values`` as a batch if they are an array of numbers and the aggregate is numeric; None otherwise."""
    if not isinstance(values, np.ndarray) or values.ndim != 1 or not len(values):
        return None
    if isinstance(values, np.ma.MaskedArray):  # its nulls would count as the numbers under the mask
        return None
    if type(aggregate) not in (Count, Max, Min, Range, *_TUPLES):
        return None
    if values.dtype.kind == "f" and values.dtype.itemsize <= 8:
        return Batch(aggregate, values.astype(np.float64, copy=False))
    if values.dtype.kind == "i" or (values.dtype.kind == "u" and values.dtype.itemsize < 8):
        return Batch(aggregate, values.astype(np.int64, copy=False))
    return None


def survivors(values: np.ndarray, *, largest: bool) -> Sequence[int] | None:
    """Where a value beats all that come after it: the nodes that a maximum's deque keeps of a batch.

    None if NaN is among the values, which is ordered apart.

    >>> survivors(np.array([6, 5, 0, 1, 3, 3, 2]), largest=True)
    [0, 1, 5, 6]
    """
    if values.dtype.kind == "f" and np.isnan(values).any():
        return None
    best = (np.maximum if largest else np.minimum).accumulate(values[::-1])[::-1]
    beats = values[:-1] > best[1:] if largest else values[:-1] < best[1:]
    return [*np.flatnonzero(beats).tolist(), len(values) - 1]
