"""Grids: the edges of context-free windows, as few arithmetic progressions and single points as can be."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from slicewise.windows import Progression, Window

__all__ = ["Progression", "points_of", "progressions_of", "reduce_progressions"]


def progressions_of(windows: Iterable[Window]) -> list[Progression]:
    """The edges of all windows as few progressions: one contained in another is left out.

    >>> from slicewise.windows import sliding, tumbling
    >>> progressions_of([tumbling(10), tumbling(5), sliding(13, every=10)])
    [Progression(step=5, phase=0), Progression(step=10, phase=3)]
    """
    return reduce_progressions({progression for window in windows for progression in window.progressions})


def points_of(windows: Iterable[Window]) -> list[int]:
    """Edges that belong to no progression, ascending: where landmarks begin, and the bounds of ``between``."""
    return sorted({point for window in windows for point in window.points})


def reduce_progressions(progressions: set[Progression]) -> list[Progression]:
    """Leave out every progression whose edges all lie on another one.

    >>> reduce_progressions({Progression(10, 0), Progression(5, 0), Progression(10, 3)})
    [Progression(step=5, phase=0), Progression(step=10, phase=3)]
    """
    kept: list[Progression] = []
    steps: dict[int, set[int]] = {}
    known = np.empty(len(progressions), np.int64)
    for p in sorted(progressions, key=lambda p: (p.step, p.phase)):
        finer = known[: len(steps)][p.step % known[: len(steps)] == 0]
        if any(p.phase % step in steps[step] for step in finer.tolist()):
            continue
        kept.append(p)
        if p.step not in steps:
            known[len(steps)] = p.step
        steps.setdefault(p.step, set()).add(p.phase)
    return kept
