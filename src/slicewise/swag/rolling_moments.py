"""Rolling moments: variance, skewness and their like of the last values at every value, in a few passes of NumPy.

Values are cut in *pieces* that overlap by one window. Within a piece, powers of distances from its mean are summed up
over all windows, and what is known of deviations from each window's own mean follows from these sums. That is exact
enough as long as no window varies much less than its values are away from the mean of the piece, which is looked at for
every piece. Where one does, because a huge value stands beside it or because nothing changes in it, the piece is
computed as follows, with nothing taken out.

Short windows are doubled: windows of 2 are neighbours combined by Chan's formulas, windows of 4 are those of 2, and so
on; a window of 13 is 8 and 4 and 1. What has left a window leaves no trace in it.

Long windows are cut as by two stacks. Values stand in blocks of the window's length; a window is the end of one block
and the beginning of the next, and both are known from running sums of powers in their block. What makes that exact
enough is where powers are measured from: the last value of a block for its ends, the first for its beginnings. That
value is in every window that uses the sum, so it is no further from the mean than the window is wide: of n values, the
relative error of a sum of powers is below n times that of a double, whatever stands before or behind the window.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from slicewise.aggregates.base import Parts
from slicewise.columns import Column
from slicewise.swag.doubling import double

__all__ = ["roll_moments", "roll_pairs"]

#: Windows up to the first are doubled, at least so many at once as the second: they stay in the cache of a core.
DOUBLED, PIECE = 2**12, 2**15
#: Over so many values running sums run before they are added up.
RUN = 512
#: How much of a moment may be lost where windows are differences, at the very most.
TOLERANCE = 1e-9
#: The fourth power of what is larger would not fit in a double.
LARGEST = 1e75

#: Sums of the second and higher powers of deviations from the mean, as many as are asked for; with means, *moments*.
Powers = list[np.ndarray]
Moments = list[np.ndarray]


def roll_moments(values: np.ndarray, k: int, highest: int, lower: Callable[[Parts], Column]) -> Column | None:
    """What ``lower`` makes of the last ``k`` values at each value: of their number, their mean, and the sums of powers
    of their deviations from it, up to the ``highest``.

    None where numbers are too large for sums of powers.

    >>> roll_moments(np.array([1.0, 5.0, 3.0, 4.0]), 2, 2, lambda parts: Column.of(parts[1])).to_pylist()
    [1.0, 3.0, 4.0, 3.5]
    >>> roll_moments(np.array([1.0, 5.0, 3.0, 4.0]), 2, 2, lambda parts: Column.of(parts[2])).to_pylist()
    [0.0, 8.0, 2.0, 0.5]
    """
    by_sums, exactly = partial(_from_the_middle, k, highest), partial(_exactly, k, highest)
    # All whole windows have the same number of values: one stands for all of them.
    return _rolled([values], k, by_sums, exactly, lower, counts=1)


def roll_pairs(
    y: np.ndarray, x: np.ndarray, k: int, exactly: Callable[..., Moments | None], lower: Callable[[Parts], Column]
) -> Column | None:
    """What ``lower`` makes of the last ``k`` pairs at each pair: of their number, both means, the sums of squared
    deviations from them and that of their products; those of some pairs ``exactly`` where sums would lose too much.
    """
    return _rolled([y, x], k, partial(_pairs_from_the_middle, k), exactly, lower)


def _rolled(
    arrays: Sequence[np.ndarray],
    k: int,
    by_sums: Callable[..., Moments | None],
    exactly: Callable[..., Moments | None],
    lower: Callable[[Parts], Column],
    counts: int | None = None,
) -> Column | None:
    """The results of all windows, piece by piece, so that all that is in between stays in the cache.

    ``counts`` is how often ``lower`` is told the number of values in whole windows, if not for each of them.
    """
    n = len(arrays[0])
    if not 1 < k <= n:
        return None
    step = max(PIECE, 4 * k) if k <= DOUBLED else max(PIECE, k)
    results = _Results(n)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for start in (None, *range(1, n - k + 1, step)):
            # First the windows that fill up, up to the first whole one.
            piece = [a[:k] if start is None else a[start : start + step + k - 1] for a in arrays]
            moments = None if start is None else by_sums(*piece)
            moments = exactly(*piece) if moments is None else moments
            if moments is None:
                return None
            whole = k if start is None else len(piece[0]) - k + 1
            values = np.arange(1, k + 1) if start is None else np.full(counts or whole, k)
            results.add(lower((values, *(moment[-whole:] for moment in moments))))
    return results.column


class _Results:
    """So many results, which come piece by piece and are put where they stay: new memory costs more than sums do."""

    def __init__(self, size: int) -> None:
        self.size, self.filled = size, 0
        self.column = Column(np.empty(0), pa.float64())

    def add(self, piece: Column) -> None:
        """The next results."""
        if not self.filled:
            self.column = Column(np.empty(self.size, piece.values.dtype), piece.type)
        at = slice(self.filled, self.filled + len(piece))
        self.column.values[at] = piece.values
        if piece.valid is not None:
            if self.column.valid is None:
                self.column = Column(self.column.values, piece.type, np.ones(self.size, bool))
            self.column.valid[at] = piece.valid  # type: ignore[index]
        self.filled = at.stop


def _from_the_middle(k: int, highest: int, piece: np.ndarray) -> Moments | None:
    """Mean and powers of all whole windows by sums of distances from the mean of a piece; None if too much is lost.

    What rounding adds to a sum of so many terms is bounded in units of the largest sum of the piece.
    """
    middle = np.add.reduce(piece) / len(piece)
    apart = piece - middle
    slide, lost = _sums(k, len(piece))
    sums, power = [slide(apart, k)], apart
    for _ in range(highest - 1):
        power = power * apart
        sums.append(slide(power, k))
    shift = sums[0] * (1 / k)
    powers = _about_the_mean(sums, shift)
    least, squares = np.minimum.reduce(powers[0]), np.maximum.reduce(sums[1])
    fits = least * TOLERANCE >= lost * squares
    if highest > 2:  # no sum of cubes is larger than that of squares times the largest distance
        furthest = max(np.maximum.reduce(apart), -np.minimum.reduce(apart))
        fits &= least**1.5 * TOLERANCE >= lost * np.sqrt(k) * squares * furthest
    if highest > 3:
        fits &= least**2 * TOLERANCE >= lost * k * np.maximum.reduce(sums[3])
    shift += middle
    return [shift, *powers] if fits else None


def _pairs_from_the_middle(k: int, y: np.ndarray, x: np.ndarray) -> Moments | None:
    """Means and products of all whole windows of pairs, in the same way."""
    middles = [np.add.reduce(values) / len(values) for values in (y, x)]
    y, x = y - middles[0], x - middles[1]
    slide, lost = _sums(k, len(y))
    sum_y, sum_x = slide(y, k), slide(x, k)
    shift_y, shift_x = sum_y * (1 / k), sum_x * (1 / k)
    squares = slide(y * y, k), slide(x * x, k)
    yy, xx = (
        np.maximum(s - total * shift, 0.0)
        for s, total, shift in zip(squares, (sum_y, sum_x), (shift_y, shift_x), strict=True)
    )
    for spread, square in zip((yy, xx), squares, strict=True):
        if not np.minimum.reduce(spread) * TOLERANCE >= lost * np.maximum.reduce(square):
            return None
    yx = slide(y * x, k) - sum_y * shift_x
    return [shift_y + middles[0], shift_x + middles[1], yy, xx, yx]


def _sums(k: int, values: int) -> tuple[Callable[[np.ndarray, int], np.ndarray], float]:
    """How windows of ``k`` among so many values are summed up, and what is lost of the largest sum at most."""
    slide, terms = (_doubled, math.log2(k) + 4) if k <= DOUBLED else (_slid, RUN + values / RUN)
    return slide, 8 * terms * sys.float_info.epsilon


def _doubled(values: np.ndarray, k: int) -> np.ndarray:
    """The sum of every whole window of ``k``, from windows of 1, 2, 4 and so on."""
    return double(np.add, values, k)


def _slid(values: np.ndarray, k: int) -> np.ndarray:
    """The same: the sum of the first window, and what comes in less what goes out from there on.

    It runs over short runs first, so that an error grows with these and not with the piece.
    """
    whole = len(values) - k + 1
    sums = np.zeros(whole + -whole % RUN)
    sums[0] = np.add.reduce(values[:k])
    np.subtract(values[k:], values[: whole - 1], out=sums[1:whole])
    runs = sums.reshape(-1, RUN)
    np.cumsum(runs, axis=1, out=runs)
    runs[1:] += np.cumsum(runs[:-1, -1])[:, np.newaxis]
    return sums[:whole]


def _exactly(k: int, highest: int, values: np.ndarray) -> Moments | None:
    """Mean and powers where nothing is taken out; None where numbers are too large."""
    sizes = np.abs(values)
    if not np.fmax.reduce(sizes) <= LARGEST:
        return None
    # Where all values are around 1e9, means would be rounded at that size. To subtract the value nearest to 0 costs no
    # other one a digit, because they are no smaller.
    origin = values[np.argmax(sizes == np.fmin.reduce(sizes))]
    mean, *powers = (_by_doubling if k <= DOUBLED else _by_blocks)(values - origin, k, highest)
    return [mean + origin, *powers]


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
    return origin + shift, _about_the_mean(sums, shift)


def _about_the_mean(sums: list[np.ndarray], shift: np.ndarray) -> Powers:
    """Powers of deviations from the mean, from those of distances from a point that the mean is ``shift`` away from."""
    moved = sums[0] * shift
    squares = sums[1] - moved
    powers = [np.maximum(squares, 0.0, out=squares)]
    if len(sums) > 2:  # third - shift (3 squares + moved)
        rest = 3 * squares
        rest += moved
        rest *= shift
        powers.append(np.subtract(sums[2], rest, out=rest))
    if len(sums) > 3:  # fourth - shift (4 cubes + shift (6 squares + moved))
        rest = 6 * squares
        rest += moved
        rest *= shift
        rest += 4 * powers[1]
        rest *= shift
        powers.append(np.maximum(np.subtract(sums[3], rest, out=rest), 0.0, out=rest))
    return powers


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
