"""Parts: partials on arrays, and what is done with them whatever they hold. Below all monoids.

The parts of a partial are equally long arrays; one entry of each makes the partial of one row, slice or window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from operator import getitem
from typing import Any

import numpy as np

from slicewise.kernels import expand_ranges
from slicewise.ragged import Ragged

__all__ = [
    "Parts",
    "concat_parts",
    "fold_pairwise",
    "fold_ranges",
    "parts_from_data",
    "parts_to_data",
    "pick_parts",
    "put_parts",
    "rescaled",
    "scan_pairwise",
    "take_parts",
]

#: One array per part: NumPy's, or a :class:`~slicewise.ragged.Ragged` one where a partial holds several values.
Parts = tuple[Any, ...]
#: So many partials are folded at once, at most.
MOST_FOLDED = 1 << 23


def take_parts(parts: Parts, index: Any) -> Parts:
    """The partials at ``index``: integers, a boolean mask or a slice."""
    return tuple(map(getitem, parts, repeat(index)))  # in C: small steps do this all the time


def pick_parts(parts: Parts, places: Sequence[int]) -> Parts:
    """Those of the parts that stand at some places."""
    return tuple(map(parts.__getitem__, places))


def concat_parts(partials: Sequence[Parts]) -> Parts:
    """Partials end to end."""
    arrays = zip(*partials, strict=True)
    return tuple([Ragged.concat(a) if isinstance(a[0], Ragged) else np.concatenate(a) for a in arrays])


def fold_ranges(fold: Callable[[Parts, np.ndarray], Parts], parts: Parts, low: np.ndarray, high: np.ndarray) -> Parts:
    """The fold of the partials in each range ``[low, high)``."""
    if len(low) == 1 and high[0] - low[0] > 1:  # the fold of a single one might be the partial itself
        return fold(take_parts(parts, slice(int(low[0]), int(high[0]))), np.zeros(1, np.int64))
    behind = np.cumsum(high - low)
    if len(low) > 1 and behind[-1] > MOST_FOLDED:
        # Long windows that overlap hold each partial many times over: memory for half of them at a time.
        cut = np.clip(np.searchsorted(behind, behind[-1] // 2, "right"), 1, len(low) - 1)
        return concat_parts([fold_ranges(fold, parts, low[h], high[h]) for h in (slice(cut), slice(cut, None))])
    index, starts = expand_ranges(low, high)
    return fold(take_parts(parts, index), starts)


def put_parts(parts: Parts, index: np.ndarray, values: Parts) -> Parts:
    """Copies of the partials, with others at ``index``."""
    out = []
    for part, value in zip(parts, values, strict=True):
        if isinstance(part, Ragged):
            out.append(part.put(index, value))
            continue
        # Exact sums leave int64 for Python ints when they grow too large.
        part = part.astype(np.result_type(part.dtype, value.dtype))
        if value.dtype.hasobject:
            for i, item in zip(index.tolist(), value, strict=True):
                part[i] = item  # one by one: NumPy would look into items that are sequences themselves
        else:
            part[index] = value
        out.append(part)
    return tuple(out)


def parts_to_data(parts: Parts) -> list[Any]:
    """Partials as plain data."""
    return [part.to_data() if isinstance(part, Ragged) else part for part in parts]


def parts_from_data(data: Sequence[Any]) -> Parts:
    """Partials from what :func:`parts_to_data` gave."""
    return tuple(Ragged.from_data(part) if isinstance(part, Mapping) else part for part in data)


def rescaled(unscaled: np.ndarray, digits: int) -> np.ndarray:
    """Unscaled decimals, rescaled to a type with ``digits`` more digits after the point; None stays None.

    >>> rescaled(np.array([120, None], object), 2)
    array([12000, None], dtype=object)
    """
    out = np.empty(len(unscaled), object)
    out[:] = [None if x is None else x * 10**digits for x in unscaled.tolist()]
    return out


def fold_pairwise(combine: Callable[[Parts, Parts], Parts], parts: Parts, starts: np.ndarray) -> Parts:
    """Fold each segment of ``parts`` into one partial by combining neighbours, halving all segments in every round.

    Segment ``i`` is ``parts[starts[i]:starts[i + 1]]``; none is empty. Any associative ``combine`` on arrays gets a
    segmented reduction this way, in ``log2(longest segment)`` calls::

        a b c d e | f g h        two segments
        ab  cd  e | fg  h
        abcd    e | fgh
        abcde     | fgh

    Runtime complexity: O(n) combines in O(log n) array steps.
    """
    lengths = np.diff(starts, append=len(parts[0]))
    while len(lengths) and lengths.max() > 1:
        halves = (lengths + 1) // 2
        new_starts = np.cumsum(halves) - halves
        segment = np.repeat(np.arange(len(halves)), halves)
        nth = np.arange(len(segment)) - new_starts[segment]
        left = starts[segment] + 2 * nth
        paired = 2 * nth + 1 < lengths[segment]
        merged = combine(take_parts(parts, left[paired]), take_parts(parts, left[paired] + 1))
        folded = put_parts(take_parts(parts, left), np.flatnonzero(paired), merged)
        parts, starts, lengths = folded, new_starts, halves
    return take_parts(parts, starts)


def scan_pairwise(combine: Callable[[Parts, Parts], Parts], parts: Parts) -> Parts:
    """Running combination: entry ``i`` is ``parts[0] + ... + parts[i]``, in ``log2(n)`` array steps.

    Runtime complexity: O(n log n) combines.
    """
    step, n = 1, len(parts[0])
    while step < n:
        merged = combine(take_parts(parts, slice(None, n - step)), take_parts(parts, slice(step, None)))
        parts = concat_parts([take_parts(parts, slice(None, step)), merged])
        step *= 2
    return parts
