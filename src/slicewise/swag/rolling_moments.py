"""Rolling moments: variance, skewness and their like of the last values at every value, in a few passes of NumPy.

Values are cut in *pieces* that overlap by one window. Within a piece, powers of distances from its mean are summed up
over all windows, and what is known of deviations from each window's own mean follows from these sums. That is exact
enough as long as no window varies much less than its values are away from the mean of the piece, which is looked at for
every piece (see :mod:`slicewise.swag.rolling_sums`). Where one does, because a huge value stands beside it or because
nothing changes in it, the piece is computed as follows, with nothing taken out.

Short windows are doubled: windows of 2 are neighbours combined by Chan's formulas, windows of 4 are those of 2, and so
on; a window of 13 is 8 and 4 and 1. What has left a window leaves no trace in it.

Long windows are cut as by two stacks. Values stand in blocks of the window's length; a window is the end of one block
and the beginning of the next, and both are known from running sums of powers in their block. What makes that exact
enough is where powers are measured from: the last value of a block for its ends, the first for its beginnings. That
value is in every window that uses the sum, so it is no further from the mean than the window is wide: of n values, the
relative error of a sum of powers is below n times that of a double, whatever stands before or behind the window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from slicewise.aggregates.base import Parts
from slicewise.columns import Column
from slicewise.swag.pieces import PIECE, Results
from slicewise.swag.rolling_sums import (
    Moments,
    Powers,
    Way,
    moments_by_sums,
    moments_of_integers,
    pairs_by_sums,
    powers_about_the_mean,
)

__all__ = ["roll_moments", "roll_pairs"]

#: Windows up to this length are doubled where they are computed exactly.
DOUBLED = 2**12
#: The fourth power of what is larger would not fit in a double.
LARGEST = 1e75


def roll_moments(values: np.ndarray, k: int, highest: int, lower: Callable[[Parts], Column]) -> Column | None:
    """What ``lower`` makes of the last ``k`` values at each value: of their number, their mean, and the sums of powers
    of their deviations from it, up to the ``highest``.

    Integers are summed up as they are where that is enough. None where numbers are too large for sums of powers.

    >>> roll_moments(np.array([1.0, 5.0, 3.0, 4.0]), 2, 2, lambda parts: Column.of(parts[1])).to_pylist()
    [1.0, 3.0, 4.0, 3.5]
    >>> roll_moments(np.array([1.0, 5.0, 3.0, 4.0]), 2, 2, lambda parts: Column.of(parts[2])).to_pylist()
    [0.0, 8.0, 2.0, 0.5]
    """
    whole = [moments_of_integers(k)] if highest == 2 and values.dtype.kind == "i" else []
    ways = [*whole, *moments_by_sums(k, highest)]
    # All whole windows have the same number of values: one stands for all of them.
    return _rolled([values], k, ways, partial(_exactly, k, highest), lower, counts=1)


def roll_pairs(
    y: np.ndarray, x: np.ndarray, k: int, exactly: Callable[..., Moments | None], lower: Callable[[Parts], Column]
) -> Column | None:
    """What ``lower`` makes of the last ``k`` pairs at each pair: of their number, both means, the sums of squared
    deviations from them and that of their products; those of some pairs ``exactly`` where sums would lose too much.
    """
    return _rolled([y, x], k, pairs_by_sums(k), lambda *pairs: _first_pairs(k, *pairs) or exactly(*pairs), lower)


def _rolled(
    arrays: Sequence[np.ndarray],
    k: int,
    by_sums: Sequence[Way],
    exactly: Callable[..., Moments | None],
    lower: Callable[[Parts], Column],
    counts: int | None = None,
) -> Column | None:
    """The results of all windows, piece by piece, in the first way that loses no more than it may.

    ``counts`` is how often ``lower`` is told the number of values in whole windows, if not for each of them.
    """
    n = len(arrays[0])
    if not 1 < k <= n:
        return None
    step = max(PIECE, 4 * k)
    results = Results(n)

    def add(moments: Moments | None, sizes: np.ndarray) -> bool:
        if moments is not None:
            results.add(lower((sizes, *moments)))
        return moments is not None

    one = np.full(1, k)

    def whole(moments: Moments | None) -> bool:
        return moments is not None and add(moments, one if counts else np.full(len(moments[0]), k))

    def but_the_first(moments: Moments | None) -> Iterator[Moments | None]:
        yield None if moments is None else [moment[k:] for moment in moments]

    ways = [*by_sums, lambda *piece: but_the_first(exactly(*piece))]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # The windows that fill up, up to the first whole one.
        fits = add(exactly(*(values[:k] for values in arrays)), np.arange(1, k + 1))
        for start in range(0, n - k, step) if fits else ():
            piece = [values[start : start + step + k] for values in arrays]
            begin = results.filled
            for way in ways:
                results.filled = begin
                if fits := all(map(whole, way(*piece))):
                    break
            if not fits:
                return None
    return results.column if fits else None


def _exactly(k: int, highest: int, values: np.ndarray) -> Moments | None:
    """Mean and powers where nothing is taken out; None where numbers are too large."""
    values = values.astype(np.float64, copy=False)
    sizes = np.abs(values)
    if not np.fmax.reduce(sizes) <= LARGEST:
        return None
    # Where all values are around 1e9, means would be rounded at that size. To subtract the value nearest to 0 costs no
    # other one a digit, because they are no smaller.
    origin = values[np.argmax(sizes == np.fmin.reduce(sizes))]
    mean, *powers = (_by_doubling if k <= DOUBLED else _by_blocks)(values - origin, k, highest)
    return [mean + origin, *powers]


def _first_pairs(k: int, y: np.ndarray, x: np.ndarray) -> Moments | None:
    """Those of windows that fill up, if there are no others: sums from the first pair on, which is in all of them."""
    if len(y) > k or not max(np.fmax.reduce(np.abs(values)) for values in (y, x)) <= LARGEST:
        return None
    apart = [y - y[0], x - x[0]]
    sums = [np.cumsum(term) for term in (*apart, apart[0] * apart[0], apart[1] * apart[1], apart[0] * apart[1])]
    shifts = [total / np.arange(1.0, k + 1) for total in sums[:2]]
    spreads = [
        np.maximum(square - total * shift, 0.0) for square, total, shift in zip(sums[2:4], sums, shifts, strict=False)
    ]
    return [y[0] + shifts[0], x[0] + shifts[1], *spreads, sums[4] - sums[0] * shifts[1]]


def _by_doubling(values: np.ndarray, k: int, highest: int) -> Moments:
    mean, powers = _running(values[np.newaxis, :k], np.arange(1.0, k + 1), highest)
    whole = _double(values, k, highest)
    return [np.concatenate([head[0], rest[1:]]) for head, rest in zip((mean, *powers), whole, strict=True)]


def _double(values: np.ndarray, k: int, highest: int) -> Moments:
    """Every whole window of ``k``, from windows of 1, 2, 4 and so on."""
    nothing = np.zeros(len(values))
    windows, size = [values, *[nothing] * (highest - 1)], 1
    total, done = windows, 0
    while True:
        if k & size:
            behind = [part[done:] for part in windows]
            total = _combined([part[: len(behind[0])] for part in total], behind, done, size) if done else windows
            done += size
        if done == k:
            return [part[: len(values) - k + 1] for part in total]
        windows = _combined([part[:-size] for part in windows], [part[size:] for part in windows], size, size)
        size *= 2


def _combined(first: Moments, second: Moments, a: int, b: int) -> Moments:
    """Moments of ``a`` values and of the ``b`` behind them as those of all (Chan's formulas)."""
    n = a + b
    delta = second[0] - first[0]
    out = [first[0] + delta * (b / n)]
    square = delta * delta
    out.append(square * (a * b / n))
    out[1] += first[1]
    out[1] += second[1]
    if len(first) > 2:
        cubes = (a / n) * second[1] - (b / n) * first[1]
        cubes *= 3 * delta
        if a != b:
            cubes += square * delta * (a * b * (a - b) / n**2)
        cubes += first[2]
        cubes += second[2]
        out.append(cubes)
    if len(first) > 3:
        fourth = (a / n) * second[2] - (b / n) * first[2]
        fourth *= 4 * delta
        inner = (6 * a * a / n**2) * second[1] + (6 * b * b / n**2) * first[1]
        inner += square * (a * b * (a * a - a * b + b * b) / n**3)
        fourth += inner * square
        fourth += first[3]
        fourth += second[3]
        out.append(fourth)
    return out


def _by_blocks(values: np.ndarray, k: int, highest: int) -> list[np.ndarray]:
    n = len(values)
    blocks = -(-n // k)
    grid = np.concatenate([values, np.full(blocks * k - n, values[-1])]).reshape(blocks, k)
    out = [np.empty((blocks, k)) for _ in range(highest)]
    upto = np.arange(1.0, k + 1)
    for block in range(blocks):
        mean, powers = _running(grid[block : block + 1], upto, highest)
        if block:
            mean, powers = _joined(grid[block - 1 : block], mean, powers, upto, highest)
        for array, part in zip(out, (mean, *powers), strict=True):
            array[block] = part[0]
    return [array.reshape(-1)[:n] for array in out]


def _running(blocks: np.ndarray, upto: np.ndarray, highest: int) -> tuple[np.ndarray, Powers]:
    """Mean and powers of the first one, two, three... values of each block."""
    origin = blocks[:, :1]
    apart = blocks - origin
    sums = [np.cumsum(apart, axis=1)]
    power = apart
    for _ in range(highest - 1):
        power = power * apart
        sums.append(np.cumsum(power, axis=1))
    shift = sums[0] / upto
    powers = powers_about_the_mean(sums, shift)
    for even in powers[::2]:  # which are no less than 0, but for rounding
        np.maximum(even, 0.0, out=even)
    return origin + shift, powers


def _joined(
    before: np.ndarray, mean: np.ndarray, powers: Powers, upto: np.ndarray, highest: int
) -> tuple[np.ndarray, Powers]:
    """The ends of the blocks before and the beginnings of blocks as one (Chan's formulas): windows of one length."""
    k = len(upto)
    # The values from the j-th on are those up to it, seen from the other side; the first is in no window with the next.
    tail_mean, tails = _running(before[:, ::-1], upto, highest)
    tail_mean, tails = tail_mean[:, -2::-1], [tail[:, -2::-1] for tail in tails]
    b = upto[:-1]
    a = k - b
    delta = mean[:, :-1] - tail_mean
    heads = [power[:, :-1] for power in powers]
    square = delta * delta
    joined = [tails[0] + heads[0] + square * (a * b / k)]
    if highest > 2:
        across = delta * square * (a * b * (a - b) / k**2)
        joined.append(tails[1] + heads[1] + across + 3 * delta * ((a * heads[0] - b * tails[0]) / k))
    if highest > 3:
        across = square * square * (a * b * (a * a - a * b + b * b) / k**3)
        across += 6 * square * ((a * a * heads[0] + b * b * tails[0]) / k**2)
        joined.append(tails[2] + heads[2] + across + 4 * delta * ((a * heads[1] - b * tails[1]) / k))
    whole = [np.concatenate([j, power[:, -1:]], axis=1) for j, power in zip(joined, powers, strict=True)]
    return np.concatenate([tail_mean + delta * (b / k), mean[:, -1:]], axis=1), whole
