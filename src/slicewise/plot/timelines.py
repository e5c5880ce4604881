"""Timelines: ``timeline`` draws windows as bars over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from slicewise.plot.axes import COLOURS, FAINT, INK, MOST_NAMED, WITHDRAWN, dress, new_axes
from slicewise.plot.result_frame import ResultFrame, key_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["timeline"]


def timeline(results: Any, queries: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Draw windows as bars over time, a lane per query.

    There is one bar per key and window, in its final state: corrected windows have a dark outline, withdrawn ones are
    hollow and dashed. Windows that overlap are stacked; a window that stayed open has an arrowhead.

    Parameters
    ----------
    results : Results, pyarrow.Table or DataFrame
        Results of a workload; a DataFrame may be of pandas or Spark.
    queries : sequence of str, optional
        The queries to draw, from top to bottom; all of them by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        ``ax``, or the axes of the new figure.

    Raises
    ------
    DataError
        If these are no results, or there is no such query in them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import slicewise as sw
    >>> from slicewise import plot
    >>> workload = sw.Workload(time="t").query("per_ten", sw.tumbling(10), n=sw.count())
    >>> op = workload.query("visit", sw.session(5), n=sw.count()).operator()
    >>> results = op.process_batch({"t": [1, 2, 13]}) + op.close()
    >>> ax = plot.timeline(results, queries=["visit", "per_ten"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['visit', 'per_ten']
    """
    frame = ResultFrame.of(results)
    names = frame.query_names(queries)
    bars = [_bars(frame, name) for name in names]
    ax = new_axes(ax, height=1.2 + 0.45 * len(names) + 0.06 * sum(b.levels for b in bars))
    top, ticks = 0.0, []
    for i, (name, lane) in enumerate(zip(names, bars, strict=True)):
        height = lane.levels**0.6
        _draw_lane(ax, lane, -top - height, height, COLOURS[i % len(COLOURS)])
        _name_keys(ax, lane, -top - height, height)
        ticks.append((-top - height / 2, name))
        top += height + 0.45
    ax.set_yticks([y for y, _ in ticks], [name for _, name in ticks])
    ax.set_ylim(-top + 0.1, 0.35)
    dress(ax, dated=frame.dated, grid="x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.autoscale_view(scaley=False)
    _name_states(ax, bars)
    return ax


@dataclass(frozen=True)
class _Bars:
    """The bars of one lane: bounds, level, and the final state of the window."""

    left: np.ndarray
    right: np.ndarray
    level: np.ndarray
    state: np.ndarray
    open: np.ndarray
    keys: list[tuple[str, int]]  # names of the keys, each with its first level

    @property
    def levels(self) -> int:
        return int(self.level.max()) + 1


_STATES = ("reported", "corrected", "withdrawn")


def _bars(frame: ResultFrame, query: str) -> _Bars:
    history = frame.history(query)
    last = [rows[-1] for rows in history.values()]
    state = [2 if frame.change[i] == "retract" else int(frame.revision[i] > 0) for i in last]
    left = frame.start[last]
    right = np.array([frame.shown_end(i) for i in last])
    # Where windows do not overlap, each key has a line of the lane to itself.
    order = sorted(range(len(last)), key=lambda j: (str(frame.keys[last[j]]), left[j], right[j]))
    level, base, key = np.zeros(len(last), np.int64), 0, None
    free: list[float] = []
    keys: list[tuple[str, int]] = []
    for j in order:
        if frame.keys[last[j]] != key:
            base, free, key = base + len(free), [], frame.keys[last[j]]
            keys.append((key_name(key), base))
        place = next((n for n, until in enumerate(free) if until <= left[j]), len(free))
        free[place : place + 1] = [right[j]]
        level[j] = base + place
    return _Bars(left, right, level, np.array(state), np.isnan(frame.end[last]), keys)


def _draw_lane(ax: Axes, bars: _Bars, bottom: float, height: float, colour: str) -> None:
    """One collection per state; the gid of a collection is its state."""
    from matplotlib.collections import PolyCollection

    step = height / bars.levels
    gap = 0.12 * step
    # A window of a single row has no length, but its bar should still be visible.
    least = 0.002 * max(float(bars.right.max() - bars.left.min()), 1e-9)
    right = np.maximum(bars.right, bars.left + least)
    high = bottom + height - bars.level * step - gap
    low = high - step + 2 * gap
    corners = np.stack([bars.left, low, bars.left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
    # The more bars there are, the thinner the outlines between neighbours.
    edge = min(0.8, 24 / max(len(corners), 1))
    looks: tuple[dict[str, Any], ...] = (
        {"facecolor": colour, "alpha": 0.55, "edgecolor": "white", "linewidth": edge},
        {"facecolor": colour, "alpha": 0.9, "edgecolor": INK, "linewidth": min(1.0, edge * 1.4)},
        {"facecolor": "none", "edgecolor": WITHDRAWN, "linestyle": (0, (3, 2)), "linewidth": 1.0},
    )
    for state, look in enumerate(looks):
        drawn = bars.state == state
        if drawn.any():
            ax.add_collection(PolyCollection(list(corners[drawn]), gid=_STATES[state], zorder=2 + state, **look))
    for j in np.flatnonzero(bars.open):
        ax.plot(right[j], (low[j] + high[j]) / 2, marker=">", color=colour, markersize=5, gid="open", clip_on=False)


def _name_keys(ax: Axes, bars: _Bars, bottom: float, height: float) -> None:
    """The names of the keys to the right of their bars, unless there are too many."""
    if not 1 < len(bars.keys) <= MOST_NAMED:
        return
    tops = [level for _, level in bars.keys[1:]] + [bars.levels]
    for (name, low), high in zip(bars.keys, tops, strict=True):
        y = bottom + height - height * (low + high) / 2 / bars.levels
        look: dict[str, Any] = {"va": "center", "fontsize": 7, "color": FAINT, "gid": "key"}
        ax.text(1.005, y, name, transform=ax.get_yaxis_transform(), **look)


def _name_states(ax: Axes, bars: list[_Bars]) -> None:
    """A legend for corrected and withdrawn windows, if there are any."""
    from matplotlib.patches import Patch

    seen = {int(s) for lane in bars for s in lane.state}
    if not seen - {0}:
        return
    looks = {
        0: Patch(facecolor=FAINT, alpha=0.55, label=_STATES[0]),
        1: Patch(facecolor=FAINT, edgecolor=INK, label=_STATES[1]),
        2: Patch(facecolor="none", edgecolor=WITHDRAWN, linestyle="--", label=_STATES[2]),
    }
    handles = [looks[s] for s in sorted(seen)]
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=handles, ncols=len(handles), frameon=False, fontsize=9, labelcolor=INK, **place)
