"""Rolling moments: variance, skewness and their like of the last values at every value, in a few passes of NumPy.

Short windows are doubled: windows of 2 are neighbours combined by Chan's formulas, windows of 4 are those of 2, and so
on; a window of 13 is 8 and 4 and 1. Nothing is ever taken out, so what has left a window leaves no trace in it.

Long windows are cut as by two stacks. Values stand in blocks of the window's length; a window is the end of one block
and the beginning of the next, and both are known from running sums of powers in their block. What makes that exact
enough is where powers are measured from: the last value of a block for its ends, the first for its beginnings. That
value is in every window that uses the sum, so it is no further from the mean than the window is wide: of n values, the
relative error of a sum of powers is below n times that of a double, whatever stands before or behind the window.
"""

from __future__ import annotations

import numpy as np

from slicewise.aggregates.base import Parts

__all__ = ["roll_moments"]

#: Windows up to the first are doubled, at least so many at once as the second: they stay in the cache of a core.
DOUBLED, PIECE = 2**12, 2**15
#: The fourth power of what is larger would not fit in a double.
LARGEST = 1e75

#: Sums of the second and higher powers of deviations from the mean, as many as are asked for; with means, *moments*.
Powers = list[np.ndarray]
Moments = list[np.ndarray]


def roll_moments(values: np.ndarray, k: int, highest: int) -> Parts | None:
    """How many values, their mean, and sums of powers of their deviations from it, of the last ``k`` at each value.

    None where numbers are too large for sums of powers.

    >>> n, mean, squares = roll_moments(np.array([1.0, 5.0, 3.0, 4.0]), 2, 2)
    >>> n.tolist(), mean.tolist(), squares.tolist()
    ([1, 2, 2, 2], [1.0, 3.0, 4.0, 3.5], [0.0, 8.0, 2.0, 0.5])
    """
    n = len(values)
    if not 1 < k <= n:
        return None
    sizes = np.abs(values)
    if not np.fmax.reduce(sizes) <= LARGEST:
        return None
    # Where all values are around 1e9, means would be rounded at that size. To subtract the value nearest to 0 costs no
    # other one a digit, because they are no smaller.
    origin = values[np.argmax(sizes == np.fmin.reduce(sizes))]
    values = values - origin
    counts = np.full(n, k)
    counts[:k] = np.arange(1, k + 1)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        mean, *powers = (_by_doubling if k <= DOUBLED else _by_blocks)(values, k, highest)
        return counts, mean + origin, *powers


def _by_doubling(values: np.ndarray, k: int, highest: int) -> list[np.ndarray]:
    n = len(values)
    out = [np.empty(n) for _ in range(highest)]
    mean, powers = _running(values[np.newaxis, :k], np.arange(1.0, k + 1), highest)
    for array, part in zip(out, (mean, *powers), strict=True):
        array[:k] = part[0]
    piece = max(PIECE, 4 * k)
    for start in range(0, n - k + 1, piece):
        stop = min(start + piece, n - k + 1)
        for array, part in zip(out, _double(values[start : stop + k - 1], k, highest), strict=True):
            array[start + k - 1 : stop + k - 1] = part
    return out


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
        fourth = (a / n) * second[2] - (b / n) * first[2]
        fourth *= 4 * delta
        inner = (6 * a * a / n**2) * second[1] + (6 * b * b / n**2) * first[1]
        inner += square * (a * b * (a * a - a * b + b * b) / n**3)
        fourth += inner * square
        fourth += first[3]
        fourth += second[3]
        out += [cubes, fourth]
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
    first, second = sums[:2]
    powers = [np.maximum(second - first * shift, 0.0)]
    if len(sums) > 2:
        third, fourth = sums[2:]
        powers.append(third - shift * (3 * second - 2 * first * shift))
        powers.append(np.maximum(fourth - shift * (4 * third - shift * (6 * second - 3 * first * shift)), 0.0))
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
        across = square * square * (a * b * (a * a - a * b + b * b) / k**3)
        across += 6 * square * ((a * a * heads[0] + b * b * tails[0]) / k**2)
        joined.append(tails[2] + heads[2] + across + 4 * delta * ((a * heads[1] - b * tails[1]) / k))
    whole = [np.concatenate([j, power[:, -1:]], axis=1) for j, power in zip(joined, powers, strict=True)]
    return np.concatenate([tail_mean + delta * (b / k), mean[:, -1:]], axis=1), whole
