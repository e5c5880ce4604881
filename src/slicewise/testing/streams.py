"""Streams: reproducible rows for tests and benchmarks, in order or not. Made with NumPy from a seed.

The football stream has the traits of the data that general stream slicing was measured on (section 6.1): 2000 positions
a second, five gaps a minute between one player's ball possession and the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slicewise.errors import QueryError

__all__ = ["Stream", "disordered", "football", "in_order"]

#: The football data has this many distinct values (general stream slicing, section 6.3.2).
FOOTBALL_VALUES = 84_232


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in the order in which they arrive.

    Parameters
    ----------
    times
        Event times, int64 microseconds.
    columns
        The columns by name, arrays as long as ``times``.
    keys
        One key per row; None for a stream without keys.

    Examples
    --------
    >>> stream = Stream(np.array([3, 1, 2]), {"v": np.array([30, 10, 20])})
    >>> list(stream.rows())
    [(3, {'v': 30}, ()), (1, {'v': 10}, ()), (2, {'v': 20}, ())]
    >>> [chunk.times.tolist() for chunk in stream.chunks(2)]
    [[3, 1], [2]]
    >>> stream.take(stream.times > 1).times.tolist()
    [3, 2]
    """

    times: np.ndarray
    columns: dict[str, np.ndarray]
    keys: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.times)

    def take(self, index: Any) -> Stream:
        """Some of the rows.

        Parameters
        ----------
        index
            Their places in order of arrival: integers, a boolean mask or a slice.

        Returns
        -------
        Stream
            The rows at ``index``.
        """
        keys = None if self.keys is None else self.keys[index]
        return Stream(self.times[index], {name: column[index] for name, column in self.columns.items()}, keys)

    def chunks(self, size: int) -> Iterator[Stream]:
        """Pieces of equal length, in order of arrival.

        Parameters
        ----------
        size
            The number of rows of a piece; the last may be shorter.

        Yields
        ------
        Stream
            One piece after the other.
        """
        _check(size >= 1, "size", "at least 1 row", size)
        for start in range(0, len(self), size):
            yield self.take(slice(start, start + size))

    def chunks_by_time(self, us: int) -> Iterator[Stream]:
        """Pieces in order of arrival, cut where the largest event time so far passes a multiple of ``us``.

        Rows out of order stay where they arrive; a stretch of time without rows gives no piece.

        Parameters
        ----------
        us
            The length of event time that a piece covers, in microseconds.

        Yields
        ------
        Stream
            One piece after the other.

        Examples
        --------
        >>> stream = Stream(np.array([0, 7, 12, 9, 15, 31]), {})
        >>> [chunk.times.tolist() for chunk in stream.chunks_by_time(10)]
        [[0, 7], [12, 9, 15], [31]]
        """
        _check(us >= 1, "us", "at least 1 microsecond", us)
        interval = np.maximum.accumulate(self.times) // us
        cuts = np.flatnonzero(np.diff(interval)) + 1
        for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(self)], strict=True):
            if stop > start:
                yield self.take(slice(start, stop))

    def rows(self) -> Iterator[tuple[int, dict[str, Any], tuple[Any, ...]]]:
        """The rows as :meth:`Oracle.process_batch` takes them.

        Yields
        ------
        tuple
            ``(time, row, key)`` of Python values; the key is a tuple, empty for a stream without keys.
        """
        columns = [column.tolist() for column in self.columns.values()]
        rows = zip(*columns, strict=True) if columns else iter([()] * len(self))
        keys = [()] * len(self) if self.keys is None else [(key,) for key in self.keys.tolist()]
        for time, row, key in zip(self.times.tolist(), rows, keys, strict=True):
            yield time, dict(zip(self.columns, row, strict=True)), key

    def disorder(self) -> float:
        """The share of rows that arrive after a row with a later event time.

        Returns
        -------
        float
            Between 0 and 1; 0 for a stream in order.

        Examples
        --------
        >>> Stream(np.array([3, 1, 2, 4]), {}).disorder()
        0.5
        """
        return float(np.mean(self.times < np.maximum.accumulate(self.times))) if len(self) else 0.0


def in_order(
    n: int,
    rate: float = 2000,
    start: int = 0,
    keys: int = 1,
    *,
    gaps_per_minute: float = 0,
    gap: int = 1_500_000,
    burst: int = 1,
    ties: float = 0.0,
    distinct: int = FOOTBALL_VALUES,
    seed: int = 0,
) -> Stream:
    """A stream in event-time order with the columns ``v`` (int64) and ``x`` (float64).

    Parameters
    ----------
    n
        The number of rows.
    rate
        Rows per second, outside gaps.
    start
        The first event time in microseconds; negative for times before 1970.
    keys
        The number of keys, drawn evenly; a stream of 1 has none.
    gaps_per_minute
        Pauses per minute of event time, each at a random place in its share of the minute.
    gap
        The length of a pause, in microseconds.
    burst
        The size of groups in which rows arrive, ten times as fast as ``rate``, with a pause between two groups.
    ties
        The share of rows that have the event time of the row before them.
    distinct
        ``v`` is drawn from ``0 ... distinct - 1``.
    seed
        The same seed gives the same stream.

    Returns
    -------
    Stream
        ``n`` rows.

    Notes
    -----
    Runtime complexity: O(n) array operations.

    Examples
    --------
    >>> in_order(4, rate=1000, start=-1500).times.tolist()
    [-1500, -500, 500, 1500]
    >>> in_order(6, rate=1000, burst=3).times.tolist()
    [0, 100, 200, 3000, 3100, 3200]
    >>> in_order(5, ties=1.0).times.tolist()
    [0, 0, 0, 0, 0]
    """
    _check(n >= 0, "n", "at least 0 rows", n)
    _check(rate > 0, "rate", "positive", rate)
    _check(keys >= 1, "keys", "at least 1", keys)
    _check(gaps_per_minute >= 0, "gaps_per_minute", "0 or more", gaps_per_minute)
    _check(gap >= 1, "gap", "at least 1 microsecond", gap)
    _check(burst >= 1, "burst", "at least 1 row", burst)
    _check(0 <= ties <= 1, "ties", "a share between 0 and 1", ties)
    _check(distinct >= 1, "distinct", "at least 1", distinct)
    # One generator each for gaps, ties, keys and values, so that a change to one leaves the others as they are.
    for_gaps, for_ties, for_keys, for_values = (np.random.default_rng([seed, i]) for i in range(4))
    nth = np.arange(n)
    spacing = 1e6 / rate
    within = nth % burst * (spacing / 10 if burst > 1 else spacing)
    active = np.rint(nth // burst * burst * spacing + within).astype(np.int64)
    times = start + active + _pauses(active, gaps_per_minute, gap, for_gaps)
    untied = (for_ties.random(n) >= ties) | (nth == 0)
    times = times[np.maximum.accumulate(np.where(untied, nth, 0))] if n else times
    columns = {"v": for_values.integers(0, distinct, n), "x": for_values.normal(size=n)}
    return Stream(times, columns, for_keys.integers(0, keys, n) if keys > 1 else None)


def football(n: int, *, start: int = 0, keys: int = 1, seed: int = 0) -> Stream:
    """The paper's football stream: 2000 positions a second, five gaps a minute.

    Parameters
    ----------
    n
        The number of rows.
    start
        The first event time in microseconds.
    keys
        The number of keys, drawn evenly; a stream of 1 has none.
    seed
        The same seed gives the same stream.

    Returns
    -------
    Stream
        ``n`` rows in event-time order, with the columns of :func:`in_order`.

    Notes
    -----
    Runtime complexity: O(n) array operations.

    Examples
    --------
    >>> stream = football(10_000)
    >>> len(stream), list(stream.columns)
    (10000, ['v', 'x'])
    """
    return in_order(n, rate=2000, start=start, keys=keys, gaps_per_minute=5, seed=seed)


def disordered(stream: Stream, fraction: float = 0.2, max_delay_us: int = 2_000_000, seed: int = 0) -> Stream:
    """The stream as it arrives when a ``fraction`` of its rows is delayed by 0 to ``max_delay_us``.

    Event times stay as they are; a row arrives at its time plus its delay. So a watermark ``max_delay_us`` behind the
    largest event time loses nothing. The defaults are the paper's: 20 % of the rows, up to 2 seconds.

    Parameters
    ----------
    stream
        The stream in event-time order.
    fraction
        The share of rows that are delayed.
    max_delay_us
        The longest delay, in microseconds; delays are drawn evenly.
    seed
        The same seed gives the same order.

    Returns
    -------
    Stream
        The same rows in order of arrival.

    Notes
    -----
    Runtime complexity: O(n log n), one sort.

    Examples
    --------
    >>> late = disordered(in_order(10_000), seed=7)
    >>> round(late.disorder(), 1)
    0.2
    """
    _check(0 <= fraction <= 1, "fraction", "a share between 0 and 1", fraction)
    _check(max_delay_us >= 0, "max_delay_us", "0 microseconds or more", max_delay_us)
    random = np.random.default_rng(seed)
    chosen = random.permutation(len(stream)) < round(fraction * len(stream))
    delay = np.where(chosen, random.integers(0, max_delay_us, len(stream), endpoint=True), 0)
    arrival = np.maximum.accumulate(stream.times) + delay
    return stream.take(np.argsort(arrival, kind="stable"))


def _pauses(active: np.ndarray, per_minute: float, gap: int, random: np.random.Generator) -> np.ndarray:
    """The total of pauses before each row, given the time for which the stream has been active until then."""
    if not per_minute or not len(active):
        return np.zeros(len(active), np.int64)
    # A minute holds gaps and active time; the active time is shared out evenly, and each gap lies within its share.
    share = 60e6 / per_minute - gap
    _check(share > 0, "gap", f"shorter than the {60 / per_minute:g} seconds from one gap to the next", gap)
    count = int(active[-1] // share) + 1
    begins = (np.arange(count) + random.random(count)) * share
    return np.searchsorted(begins, active, side="right") * gap


def _check(good: bool, name: str, must_be: str, got: Any) -> None:
    if not good:
        raise QueryError(f"`{name}` must be {must_be}; got {got!r}")
