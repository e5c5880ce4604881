"""Lines: ``series`` draws the values of windows over time, ``bands`` the windows themselves behind a picture."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from slicewise.errors import DataError, did_you_mean
from slicewise.plot.axes import COLOURS, FAINT, INK, MOST_NAMED, dress, new_axes
from slicewise.plot.result_frame import Key, ResultFrame, key_name, plot_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bands", "series"]

#: Lines of more points than this have no markers.
_MOST_MARKED = 60
_M4 = ("first", "min", "max", "last")


def series(results: Any, query: str, column: str | None = None, key: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the values of one result column over the ends of its windows, a line per key.

    Corrections replace earlier values, and retracted windows are left out. A column of ``m4`` is drawn as the four
    points of each window in order of time, which gives the same line as all of its rows would.

    Parameters
    ----------
    results : Results, pyarrow.Table or DataFrame
        Results of a workload; a DataFrame may be of pandas or Spark.
    query : str
        The name of the query.
    column : str, optional
        The result column; by default the first of the query that can be drawn.
    key : optional
        One key, a tuple if there are several key columns; all keys by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        ``ax``, or the axes of the new figure.

    Raises
    ------
    DataError
        If these are no results, or there is no such query, column or key in them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import slicewise as sw
    >>> from slicewise import plot
    >>> op = sw.Workload(time="t").query("per_ten", sw.tumbling(10), total=sw.sum("v")).operator()
    >>> results = op.process_batch({"t": [1, 12, 13], "v": [5, 2, 4]}) + op.close()
    >>> ax = plot.series(results, "per_ten", "total")
    >>> ax.get_lines()[0].get_xydata().tolist()
    [[10.0, 5.0], [20.0, 6.0]]
    """
    frame = ResultFrame.of(results)
    frame.query_names([query])
    column = _column(frame, query, column)
    rows = {
        of: [r for r in latest if frame.values[column][r] is not None] for of, latest in frame.latest(query).items()
    }
    lines = _only_key({of: drawn for of, drawn in rows.items() if drawn}, key)
    ax = new_axes(ax, height=3.6)
    named = len(lines) <= MOST_NAMED
    for i, (of, drawn) in enumerate(sorted(lines.items(), key=lambda line: str(line[0]))):
        x, y = _points(frame, column, drawn)
        colour = COLOURS[i] if named else FAINT
        marker: dict[str, Any] = {"marker": "o", "markersize": 3.2} if len(x) <= _MOST_MARKED and named else {}
        label = key_name(of) if of and named else None
        ax.plot(x, y, color=colour, linewidth=1.6 if named else 0.7, label=label or "_", gid=key_name(of), **marker)
    ax.set_title(f"{column} of {query}", loc="left", fontsize=11, color=INK)
    if not named:
        ax.set_title(f"{len(lines)} keys", loc="right", fontsize=9, color=FAINT)
    dress(ax, dated=frame.dated, grid="y")
    ax.margins(x=0.02)
    _name_lines(ax)
    return ax


def bands(results: Any, query: str, key: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the windows of one query as bands behind a picture, such as sessions behind a line.

    Windows are drawn with their final bounds; retracted windows and those that stayed open are left out.

    Parameters
    ----------
    results : Results, pyarrow.Table or DataFrame
        Results of a workload; a DataFrame may be of pandas or Spark.
    query : str
        The name of the query.
    key : optional
        One key, a tuple if there are several key columns; all keys by default.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib.axes.Axes
        ``ax``, or the axes of the new figure.

    Raises
    ------
    DataError
        If these are no results, or there is no such query or key in them.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import slicewise as sw
    >>> from slicewise import plot
    >>> workload = sw.Workload(time="t").query("per_ten", sw.tumbling(10), total=sw.sum("v"))
    >>> op = workload.query("visit", sw.session(5), n=sw.count()).operator()
    >>> results = op.process_batch({"t": [1, 2, 13], "v": [5, 2, 4]}) + op.close()
    >>> ax = plot.bands(results, "visit", ax=plot.series(results, "per_ten"))
    >>> [[float(x) for x in band.get_bbox().intervalx] for band in ax.patches]
    [[1.0, 7.0], [13.0, 18.0]]
    """
    frame = ResultFrame.of(results)
    frame.query_names([query])
    windows = _only_key(frame.latest(query), key)
    ax = new_axes(ax, height=3.6)
    rows = [row for of_key in windows.values() for row in of_key if np.isfinite(frame.end[row])]
    for i, row in enumerate(sorted(rows, key=lambda row: float(frame.start[row]))):
        label = query if i == 0 else "_"
        ax.axvspan(frame.start[row], frame.end[row], color=FAINT, alpha=0.22, linewidth=0, zorder=0, label=label)
    return ax


def _column(frame: ResultFrame, query: str, column: str | None) -> str:
    rows = [i for i, name in enumerate(frame.query) if name == query]
    of_query = [n for n, values in frame.values.items() if any(values[i] is not None for i in rows)]
    drawable = [n for n in of_query if all(_is_drawable(frame.values[n][i]) for i in rows)]
    if column is None:
        if not drawable:
            raise DataError(f"query {query!r} has no column that can be drawn; there must be numbers or m4")
        return drawable[0]
    if column not in of_query:
        raise DataError(f"query {query!r} has no column {column!r}; {did_you_mean(str(column), of_query)}")
    if column not in drawable:
        got = type(next(frame.values[column][i] for i in rows if frame.values[column][i] is not None)).__name__
        raise DataError(f"{column!r} of query {query!r} holds no numbers; got {got}; {did_you_mean('', drawable)}")
    return column


def _is_drawable(value: Any) -> bool:
    m4 = isinstance(value, dict) and all(p in value and f"{p}_time" in value for p in _M4)
    return value is None or m4 or isinstance(value, (int, float, decimal.Decimal))


def _only_key(rows: dict[Key, list[int]], key: Any) -> dict[Key, list[int]]:
    if key is None:
        return rows
    wanted = key if isinstance(key, tuple) else (key,)
    if wanted not in rows:
        known = ", ".join(map(key_name, list(rows)[:10]))
        raise DataError(f"there are no results of key {key_name(wanted)}; known: {known or 'none'}")
    return {wanted: rows[wanted]}


def _points(frame: ResultFrame, column: str, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    values = [frame.values[column][i] for i in rows]
    if not isinstance(values[0], dict):
        return np.array([frame.shown_end(i) for i in rows]), np.array([float(v) for v in values])
    points = [point for value in values for point in _four(value)]
    times = pa.array([t for t, _ in points])
    return plot_times(times), np.array([float(v) for _, v in points])


def _four(value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The points of an M4 in the order of their times: first, the extremes, last."""
    points = [(value[f"{p}_time"], value[p]) for p in _M4]
    yield from sorted(points, key=lambda point: point[0])  # stable, so that ties keep first before last


def _name_lines(ax: Axes) -> None:
    """Names at the ends of the lines, in their colours; a legend where ends are too close together."""
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    if len(lines) < 2:
        for line in lines:
            ax.set_title(str(line.get_label()), loc="right", fontsize=9, color=INK)
        return
    ends = sorted(float(np.asarray(line.get_ydata())[-1]) for line in lines)
    low, high = ax.get_ylim()
    if min(np.diff(ends)) < 0.06 * (high - low):
        ax.legend(frameon=False, fontsize=9, ncols=len(lines), loc="lower right", bbox_to_anchor=(1.0, 1.0))
        return
    for line in lines:
        x, y = (float(np.asarray(data)[-1]) for data in line.get_data())
        ax.annotate(
            str(line.get_label()),
            (x, y),
            xytext=(6, 0),
            textcoords="offset points",
            color=line.get_color(),
            va="center",
            fontsize=9,
            annotation_clip=False,
        )
