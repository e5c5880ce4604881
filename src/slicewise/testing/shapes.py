"""Shapes by definition: what stands in the output of a workload in the wide shape, or with only differences in it.

Made from what is true of every window, as the oracle tells it; no slice and no state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from slicewise.same import is_same
from slicewise.testing.oracle_rows import Key, results_of, second_of
from slicewise.testing.time_windows import tick_beside

__all__ = ["shaped"]

Values = dict[str, Any]


def shaped(
    workload: Any,
    full: Mapping[tuple[Key, Any, Any, Any], Values],
    watermark: float = math.inf,
    *,
    shape: str = "long",
    emit: str = "complete",
) -> dict[tuple[Key, str | None, int], Values]:
    """What an output holds at a watermark, once its corrections are applied.

    Parameters
    ----------
    workload
        A :class:`slicewise.Workload` of windows that end at ticks.
    full
        The values of all windows with rows that have ended by then, as :func:`slicewise.testing.fold` gives them.
    watermark
        Ticks behind it are not reported yet.
    shape, emit
        As for :meth:`slicewise.Workload.operator`.

    Returns
    -------
    dict
        The values by key, query and window end; in the wide shape the query is None.

    Examples
    --------
    >>> import slicewise as sw
    >>> workload = sw.Workload("t").query("twenty", sw.sliding(20, every=10), n=sw.count())
    >>> full = {((), "twenty", end - 20, end): {"n": n} for end, n in [(10, 1), (20, 1), (30, 2), (40, 2)]}
    >>> shaped(workload, full, 40, emit="differences")
    {((), 'twenty', 10): {'n': 1}, ((), 'twenty', 30): {'n': 2}}
    >>> shaped(workload, full, 50, shape="wide", emit="differences")[(), None, 50]
    {'twenty_n': 0}
    """
    queries = [list(workload.queries)] if shape == "wide" else [[query] for query in workload.queries]
    out: dict[tuple[Key, str | None, int], Values] = {}
    for panel in queries:
        names = {query.name for query in panel}
        for key in dict.fromkeys(key for key, name, _, _ in full if name in names):
            rows = _rows(workload, panel, key, full, wide=shape == "wide")
            kept = rows if emit == "complete" else _different(workload, panel, rows, watermark, wide=shape == "wide")
            name = None if shape == "wide" else panel[0].name
            out |= {(key, name, end): values for end, values in kept.items()}
    return out


def _rows(workload: Any, panel: list[Any], key: Key, full: Mapping[Any, Values], *, wide: bool) -> dict[int, Values]:
    """The row of every tick at which any window has rows."""
    ends = sorted({end for of, name, _, end in full if of == key and name in {query.name for query in panel}})
    # Of windows that end together, where a day did not take place, the tick has the longest.
    windows = sorted((start, name, end) for of, name, start, end in full if of == key)
    known = {(name, end): full[key, name, start, end] for start, name, end in reversed(windows)}
    return {
        end: _row(panel, [known.get((q.name, end), _nothing(workload, q)) for q in panel], wide=wide) for end in ends
    }


def _row(panel: list[Any], values: list[Values], *, wide: bool) -> Values:
    if not wide:
        return values[0]
    return {f"{q.name}_{name}": v for q, of in zip(panel, values, strict=True) for name, v in of.items()}


def _nothing(workload: Any, query: Any) -> Values:
    """The values of no rows."""
    return results_of(query, [], [], "", [], None, second_of(workload))


def _different(
    workload: Any, panel: list[Any], rows: dict[int, Values], watermark: float, *, wide: bool
) -> dict[int, Values]:
    """The ticks whose values are not those of the tick before, and those with which rows begin."""
    window = panel[0].window
    nothing = _row(panel, [_nothing(workload, query) for query in panel], wide=wide)
    kept: dict[int, Values] = {}
    for end in sorted({*rows, *(tick_beside(window, end, 1) for end in rows)}):
        previous = tick_beside(window, end, -1)
        now, before = rows.get(end, nothing), rows.get(previous, nothing)
        begins = end in rows and previous not in rows
        if end <= watermark and (begins or not is_same(now, before, 0.0)):
            kept[end] = now
    return kept
