"""Rolling sums of powers: moments of the last ``k`` values from sums of powers of distances from the middle of a piece.

For :mod:`slicewise.swag.rolling_moments`, which computes a piece exactly where such sums lose too much. What they may
lose is bounded for every piece. Sums over short windows are doubled, where rounding adds a little in each pass; those
over longer ones are running sums in fixed point, where every term is rounded once. Integers and their squares are
added up as they are, where nothing is rounded at all.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from slicewise.aggregates.exact import INT64_MAX
from slicewise.swag.doubling import double
from slicewise.swag.fixed_point import RunningSums

__all__ = [
    "Moments",
    "Powers",
    "Way",
    "moments_by_sums",
    "moments_of_integers",
    "pairs_by_sums",
    "powers_about_the_mean",
]

#: Sums over windows up to the first are doubled; over longer ones they run, so many windows at once as the second.
DOUBLED, CHUNK = 2**10, 2**15
#: How much of a moment may be lost where windows are differences, at the very most.
TOLERANCE = 1e-9
#: Sums of powers up to this one fit in a double, with room for others to be added.
LARGEST = 1e300

#: Sums of the second and higher powers of deviations from the mean, as many as are asked for; with means, *moments*.
Powers = list[np.ndarray]
Moments = list[np.ndarray]
#: What gives the moments of all whole windows of some arrays but the first, some at a time; None, and no more, where
#: too much would be lost.
Way = Callable[..., Iterator[Moments | None]]
#: Sums of terms over windows, and what moments that are made of them lose at most; None where there can be none.
Sums = tuple[list[np.ndarray], list[float]] | None


def moments_by_sums(k: int, highest: int) -> list[Way]:
    """How to compute means and powers of windows of ``k``, the fastest way first."""
    return _ways(_Powers(k, highest))


def pairs_by_sums(k: int) -> list[Way]:
    """The same of pairs: both means, the sums of squared deviations from them, and that of their products."""
    return _ways(_Pairs(k, 5))


def moments_of_integers(k: int) -> Way:
    """How to compute means and squares of windows of ``k`` integers."""
    return _IntegerMoments(k).of


def powers_about_the_mean(sums: Sequence[np.ndarray], shift: np.ndarray) -> Powers:
    """Powers of deviations from the mean, from those of distances from a point that the mean is ``shift`` away from.

    The sums are overwritten, because new memory costs more than computing.
    """
    moved = np.multiply(sums[0], shift, out=sums[0])
    squares = np.subtract(sums[1], moved, out=sums[1])
    powers = [squares]
    if len(sums) > 2:  # third - shift (3 squares + moved)
        rest = 3 * squares
        rest += moved
        rest *= shift
        powers.append(np.subtract(sums[2], rest, out=sums[2]))
    if len(sums) > 3:  # fourth - shift (4 cubes + shift (6 squares + moved))
        np.multiply(squares, 6, out=rest)
        rest += moved
        rest *= shift
        rest += np.multiply(powers[1], 4, out=moved)
        rest *= shift
        powers.append(np.subtract(sums[3], rest, out=sums[3]))
    return powers


class _Terms(ABC):
    """What is summed up over windows of ``k``: distances from the middle of each column, and products of these.

    The terms of some values and their sums always stand in the same place, because new memory costs more than sums.
    """

    #: Where squares are among the terms, and where those are that are no mere distances.
    squares: slice
    products: slice

    def __init__(self, k: int, rows: int) -> None:
        self.k, self.rows = k, rows
        self.table, self.sums = np.empty((rows, 2, CHUNK)), np.empty((rows, CHUNK))

    @abstractmethod
    def fill(self, table: np.ndarray) -> None:
        """Compute the other terms where the first rows of a table are distances."""

    @abstractmethod
    def squares_of(self, most: Sequence[float]) -> list[float]:
        """The largest terms that are squares, of those of each column."""

    @abstractmethod
    def sizes(self, squares: Sequence[float], values: int, furthest: float) -> list[float]:
        """What the absolute values of each term add up to at most, over so many values with such sums of squares."""

    @abstractmethod
    def lost(self, errors: Sequence[float], sizes: Sequence[float], furthest: float) -> list[float]:
        """What moments are off at most if sums are off so much: how they follow from sums, differentiated by each."""

    @abstractmethod
    def moments(self, sums: list[np.ndarray], lost: Sequence[float], middles: Sequence[float]) -> Moments | None:
        """What follows from sums; None if more is lost than may be."""


class _Powers(_Terms):
    """The powers of distances. Fourth powers are squares, too."""

    squares, products = slice(1, None, 2), slice(1, None)

    def fill(self, table: np.ndarray) -> None:
        np.multiply(table[0], table[0], out=table[1])
        for p in range(2, self.rows):
            np.multiply(table[1], table[p - 2], out=table[p])

    def squares_of(self, most: Sequence[float]) -> list[float]:
        return [most[0] ** p for p in range(1, 1 + self.rows // 2)]

    def sizes(self, squares: Sequence[float], values: int, furthest: float) -> list[float]:
        second, *fourth = squares
        return [math.sqrt(values) * math.sqrt(second), second, furthest * second, *fourth][: self.rows]

    def lost(self, errors: Sequence[float], sizes: Sequence[float], furthest: float) -> list[float]:
        first, second, *higher = errors
        away = sizes[0] / self.k  # no mean is further from the middle
        lost = [second + 2 * away * first]
        if higher:
            lost.append(higher[0] + 3 * away * second + 3 * away**2 * first)
        if len(higher) > 1:
            by_first = (4 * furthest + 5 * away) * away**2
            lost.append(higher[1] + 4 * away * higher[0] + 6 * away**2 * second + by_first * first)
        return lost

    def moments(self, sums: list[np.ndarray], lost: Sequence[float], middles: Sequence[float]) -> Moments | None:
        shift = sums[0] * (1 / self.k)
        powers = powers_about_the_mean(sums, shift)
        least = float(np.minimum.reduce(powers[0]))
        for p, error in enumerate(lost, 2):  # in results, a power stands over that of the standard deviation
            if not error * self.k ** (p / 2 - 1) <= TOLERANCE * least ** (p / 2):
                return None
        shift += middles[0]
        return [shift, *powers]


class _Pairs(_Terms):
    """The distances of both columns, their squares, and their products."""

    squares, products = slice(2, 4), slice(2, None)

    def fill(self, table: np.ndarray) -> None:
        np.multiply(table[:2], table[:2], out=table[2:4])
        np.multiply(table[0], table[1], out=table[4])

    def squares_of(self, most: Sequence[float]) -> list[float]:
        return list(most)

    def sizes(self, squares: Sequence[float], values: int, furthest: float) -> list[float]:
        y, x = map(math.sqrt, squares)
        return [math.sqrt(values) * y, math.sqrt(values) * x, *squares, y * x]

    def lost(self, errors: Sequence[float], sizes: Sequence[float], furthest: float) -> list[float]:
        y, x, yy, xx, yx = errors
        away_y, away_x = sizes[0] / self.k, sizes[1] / self.k
        return [yy + 2 * away_y * y, xx + 2 * away_x * x, yx + away_y * x + away_x * y]

    def moments(self, sums: list[np.ndarray], lost: Sequence[float], middles: Sequence[float]) -> Moments | None:
        shift_y, shift_x = sums[0] * (1 / self.k), sums[1] * (1 / self.k)
        yx = np.subtract(sums[4], sums[0] * shift_x, out=sums[4])
        yy = np.subtract(sums[2], np.multiply(sums[0], shift_y, out=sums[0]), out=sums[2])
        xx = np.subtract(sums[3], np.multiply(sums[1], shift_x, out=sums[1]), out=sums[3])
        y, x = (math.sqrt(max(float(np.minimum.reduce(spread)), 0.0)) for spread in (yy, xx))
        for error, least in zip(lost, (y * y, x * x, y * x), strict=True):
            if not error <= TOLERANCE * least:
                return None
        shift_y += middles[0]
        shift_x += middles[1]
        return [shift_y, shift_x, yy, xx, yx]


class _IntegerMoments:
    """Means and squares of windows of integers: what comes in less what leaves, in whole numbers, which is exact.

    Of squares of distances from m, that is (a - m)^2 - (b - m)^2 = (a - b)(a + b - 2 m).
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self._whole, self._moments = np.empty((2, CHUNK), np.int64), np.empty((2, CHUNK))

    def of(self, values: np.ndarray) -> Iterator[Moments | None]:
        """The moments of all whole windows but the first, some at a time; None where sums do not fit in 64 bits."""
        k, n = self.k, len(values)
        low, high = int(np.minimum.reduce(values)), int(np.maximum.reduce(values))
        if max(-low, high) * max(n, 4) > INT64_MAX:
            yield None
            return
        middle = int(np.add.reduce(values)) // n
        most = max(high - middle, middle - low)
        if k * most**2 > INT64_MAX:
            yield None
            return
        first = values[:k] - middle
        total, square = int(np.add.reduce(first)), int(np.add.reduce(first * first))
        for start, stop in _chunks(n - k):
            come, leave = values[start + k : stop + k], values[start:stop]
            sums, squares = self._whole[:, : stop - start]
            np.subtract(come, leave, out=sums)
            np.add(come, leave, out=squares)
            squares -= 2 * middle
            squares *= sums
            sums[0] += total
            squares[0] += square
            np.add.accumulate(sums, out=sums)
            np.add.accumulate(squares, out=squares)
            total, square = int(sums[-1]), int(squares[-1])
            yield (self._exactly if (k * most) ** 2 <= INT64_MAX else self._rounded)(sums, squares, middle)

    def _exactly(self, sums: np.ndarray, squares: np.ndarray, middle: int) -> Moments:
        """From sums about the middle, whose squares fit in 64 bits too: nothing is lost, however little varies."""
        means, powers = self._moments[:, : len(sums)]
        np.multiply(sums, 1 / self.k, out=means)
        means += middle
        squares *= self.k
        squares -= np.multiply(sums, sums, out=sums)
        return [means, np.multiply(squares, 1 / self.k, out=powers)]

    def _rounded(self, sums: np.ndarray, squares: np.ndarray, middle: int) -> Moments | None:
        """From sums that can only be multiplied as doubles; None if more is lost than may be."""
        means, powers = self._moments[:, : len(sums)]
        np.multiply(sums, 1 / self.k, out=means)
        np.multiply(sums, means, out=powers)
        np.subtract(squares, powers, out=powers)
        # Of the two terms, the second is no larger than the first; each is rounded thrice at most.
        lost = 4 * sys.float_info.epsilon * float(np.maximum.reduce(squares))
        if not lost <= TOLERANCE * float(np.minimum.reduce(powers)):
            return None
        means += middle
        return [means, powers]


def _ways(terms: _Terms) -> list[Way]:
    sums = [_doubled] if terms.k <= DOUBLED else [partial(_running, finely=False), partial(_running, finely=True)]
    return [partial(_moments, terms, some) for some in sums]


def _moments(terms: _Terms, by: Callable[..., Iterator[Sums]], *given: np.ndarray) -> Iterator[Moments | None]:
    arrays = [values.astype(np.float64, copy=False) for values in given]
    middles = [float(np.add.reduce(values)) / len(values) for values in arrays]
    for sums in by(terms, arrays, middles):
        moments = None if sums is None else terms.moments(*sums, middles)
        yield moments
        if moments is None:
            return


def _doubled(terms: _Terms, arrays: Sequence[np.ndarray], middles: Sequence[float]) -> Iterator[Sums]:
    """All windows at once. What rounding adds is bounded in units of the largest sum of the piece."""
    table = np.empty((terms.rows, len(arrays[0]) - 1))
    for row, values, middle in zip(table, arrays, middles, strict=False):
        np.subtract(values[1:], middle, out=row)
    terms.fill(table)
    sums = [double(np.add, row, terms.k) for row in table]
    furthest = math.sqrt(_largest(table[terms.squares])[0])
    sizes = terms.sizes(_largest(sums[terms.squares]), terms.k, furthest)
    lost = 8 * (math.log2(terms.k) + 4) * sys.float_info.epsilon
    yield sums, [lost * size for size in sizes[terms.products]]


def _running(terms: _Terms, arrays: Sequence[np.ndarray], middles: Sequence[float], *, finely: bool) -> Iterator[Sums]:
    """What comes into a window less what leaves it, in fixed point: what was there before leaves nothing behind.

    Units are as small as the largest value allows, or ``finely`` as small as the sums of squares allow, which are to be
    computed first; that matters where few values are far away from the others.
    """
    k, n = terms.k, len(arrays[0])

    def table(low: int, high: int, *ahead: int) -> np.ndarray:
        """The terms of some values, and of those so far ahead."""
        filled = terms.table[:, : len(ahead), : high - low]
        for apart, values, middle in zip(filled, arrays, middles, strict=False):
            for row, far in zip(apart, ahead, strict=True):
                np.subtract(values[low + far : high + far], middle, out=row)
        terms.fill(filled)
        return filled

    most = terms.squares_of([_furthest(values, middle) ** 2 for values, middle in zip(arrays, middles, strict=True)])
    totals = [k * square for square in most]
    if finely:
        totals = sum(np.add.reduce(table(*some, 0)[terms.squares, 0], axis=1) for some in _chunks(n)).tolist()
    if not all(total <= LARGEST for total in totals):
        yield None
        return
    furthest = math.sqrt(most[0])
    running = RunningSums(terms.sizes(most, 1, furthest), terms.sizes(totals, k, furthest))
    for some in _chunks(k):
        running.add(table(*some, 0)[:, 0])
    for low, high in _chunks(n - k):
        sums = running.slide(table(low, high, k, 0), out=terms.sums[:, : high - low])
        sizes = terms.sizes(_largest(sums[terms.squares]), k, furthest)
        # A term is off by half a unit and by roundings before, a sum by those after it.
        rounding = 8 * sys.float_info.epsilon
        errors = [k * unit + rounding * size for unit, size in zip(running.units, sizes, strict=True)]
        yield list(sums), terms.lost(errors, sizes, furthest)


def _furthest(values: np.ndarray, middle: float) -> float:
    return max(float(np.maximum.reduce(values)) - middle, middle - float(np.minimum.reduce(values)))


def _chunks(n: int) -> Iterator[tuple[int, int]]:
    return ((low, min(low + CHUNK, n)) for low in range(0, n, CHUNK))


def _largest(arrays: Iterable[np.ndarray]) -> list[float]:
    return [float(np.maximum.reduce(values)) for values in arrays]
