"""Plot: pictures of results, with matplotlib. ``timeline`` shows where windows lie, ``series`` what came out of them.

Results may be a :class:`slicewise.Results`, an Arrow table or a pandas DataFrame of them, or a Spark DataFrame, which
is collected. Times are shown in UTC.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from slicewise.errors import DataError, MissingPackageError, did_you_mean
from slicewise.results import RESERVED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bands", "series", "timeline"]

# Okabe and Ito's colours, which most people can tell apart; their yellow is too light for lines.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
_INK, _FAINT = "#333333", "#999999"
_WITHDRAWN = "#B22222"
#: More lines than this are drawn alike and without names.
_MOST_NAMED = len(_COLOURS)
#: With more points than this, lines have no markers.
_MOST_MARKED = 60
_M4 = ("first", "min", "max", "last")


def timeline(results: Any, queries: Sequence[str] | None = None, ax: Axes | None = None) -> Axes:
    """Windows as bars over time, a lane per query.

    There is one bar per key and window, as it was in the end: corrected ones have a dark outline, withdrawn ones are
    hollow and dashed. Windows that overlap lie above each other; one whose end never came has an arrowhead.

    Parameters
    ----------
    results
        Results of a workload.
    queries
        The queries to draw, from top to bottom; all of them by default.
    ax
        Where to draw; a new figure by default.
    """
    found = _Frame.of(results)
    names = found.named_queries(queries)
    bars = [_bars(found, name) for name in names]
    ax = _axes(ax, height=1.2 + 0.45 * len(names) + 0.06 * sum(b.levels for b in bars))
    top, ticks = 0.0, []
    for i, (name, lane) in enumerate(zip(names, bars, strict=True)):
        height = lane.levels**0.6
        _draw_lane(ax, lane, -top - height, height, _COLOURS[i % len(_COLOURS)])
        _name_keys(ax, lane, -top - height, height)
        ticks.append((-top - height / 2, name))
        top += height + 0.45
    ax.set_yticks([y for y, _ in ticks], [name for _, name in ticks])
    ax.set_ylim(-top + 0.1, 0.35)
    _dress(ax, found, "x")
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.autoscale_view(scaley=False)
    _name_states(ax, bars)
    return ax


def series(results: Any, query: str, column: str | None = None, key: Any = None, ax: Axes | None = None) -> Axes:
    """The values of one result column over the ends of its windows, a line per key.

    Only what is finally true is drawn: corrections replace, retractions remove. A column of ``m4`` is drawn as the four
    points of each window, in the order of their times, which is the line that all of its rows would give.

    Parameters
    ----------
    results
        Results of a workload.
    query
        The name of the query.
    column
        The result column; by default the first of the query that can be drawn.
    key
        One key, or a tuple where there are several key columns; all keys by default.
    ax
        Where to draw; a new figure by default.
    """
    found = _Frame.of(results)
    found.named_queries([query])
    column = _column(found, query, column)
    rows = [r for r in found.latest(query) if found.values[column][r] is not None]
    lines: dict[tuple[Any, ...], list[int]] = {}
    for row in rows:
        lines.setdefault(found.keys[row], []).append(row)
    lines = _only_key(found, lines, key)
    ax = _axes(ax, height=3.6)
    named = len(lines) <= _MOST_NAMED
    for i, (of, mine) in enumerate(sorted(lines.items(), key=lambda item: str(item[0]))):
        x, y = _points(found, column, mine)
        colour = _COLOURS[i] if named else _FAINT
        marker: dict[str, Any] = {"marker": "o", "markersize": 3.2} if len(x) <= _MOST_MARKED and named else {}
        label = _key_name(of) if of and named else None
        ax.plot(x, y, color=colour, linewidth=1.6 if named else 0.7, label=label or "_", gid=_key_name(of), **marker)
    ax.set_title(f"{column} of {query}", loc="left", fontsize=11, color=_INK)
    if not named:
        ax.set_title(f"{len(lines)} keys", loc="right", fontsize=9, color=_FAINT)
    _dress(ax, found, "y")
    ax.margins(x=0.02)
    _name_lines(ax)
    return ax


def bands(results: Any, query: str, key: Any = None, ax: Axes | None = None) -> Axes:
    """The windows of one query as bands behind a picture, where they finally are; for sessions behind a line.

    Parameters
    ----------
    results
        Results of a workload.
    query
        The name of the query.
    key
        One key, or a tuple where there are several key columns; all keys by default.
    ax
        Where to draw; a new figure by default.
    """
    found = _Frame.of(results)
    found.named_queries([query])
    owners: dict[tuple[Any, ...], list[int]] = {}
    for row in found.latest(query):
        owners.setdefault(found.keys[row], []).append(row)
    ax = _axes(ax, height=3.6)
    rows = [row for mine in _only_key(found, owners, key).values() for row in mine]
    for i, row in enumerate(sorted(rows, key=lambda row: found.start[row])):
        if np.isfinite(found.end[row]):
            label = query if i == 0 else "_"
            ax.axvspan(found.start[row], found.end[row], color=_FAINT, alpha=0.22, linewidth=0, zorder=0, label=label)
    return ax


# -- results of any kind, as columns


@dataclass(frozen=True)
class _Frame:
    """Results in columns: ``start`` and ``end`` as matplotlib numbers, NaN for an end that never came."""

    keys: list[tuple[Any, ...]]
    query: list[str]
    start: np.ndarray
    end: np.ndarray
    window: list[tuple[Any, ...]]
    change: list[str]
    revision: list[int]
    values: dict[str, list[Any]]
    dated: bool
    last_known: float

    @classmethod
    def of(cls, results: Any) -> _Frame:
        table = _table(results)
        missing = [name for name in RESERVED if name not in table.column_names]
        if missing and table.num_columns:
            raise DataError(
                f"these are not results of a workload: there is no column {missing[0]!r}; pass what came out"
            )
        if not table.num_columns or not table.num_rows:
            raise DataError("there are no results to draw; was the watermark advanced, or the operator closed?")
        table = table.filter(pc.is_valid(table["query"]))  # late rows that were collected have none
        place = table.column_names.index("query")
        names = [n for n in table.column_names[place:] if n not in RESERVED and n != "late"]
        start, end = (_numbers(_field(table["window"], bound)) for bound in ("start", "end"))
        keys = [table[n].to_pylist() for n in table.column_names[:place]]
        return cls(
            keys=list(zip(*keys, strict=True)) if keys else [()] * table.num_rows,
            query=table["query"].to_pylist(),
            start=start,
            end=end,
            window=_identities(table, start, end),
            change=table["change"].to_pylist(),
            revision=table["revision"].to_pylist(),
            values={n: table[n].to_pylist() for n in names},
            dated=pa.types.is_timestamp(_field(table["window"], "start").type),
            last_known=float(np.nanmax(np.concatenate([start, end]))) if len(start) else 0.0,
        )

    def named_queries(self, names: Sequence[str] | None) -> list[str]:
        """The queries that are asked for; all of them, in order of appearance, when none are."""
        known = list(dict.fromkeys(self.query))
        if isinstance(names, str):
            raise DataError(f"`queries` must be a list of names; got the string {names!r}; write [{names!r}]")
        for name in names or ():
            if name not in known:
                raise DataError(f"there is no query {name!r} in the results; {did_you_mean(str(name), known)}")
        return known if names is None else list(names)

    def history(self, query: str) -> dict[tuple[Any, ...], list[int]]:
        """For each key and window of a query its rows, the last revision last."""
        found: dict[tuple[Any, ...], list[int]] = {}
        for i, name in enumerate(self.query):
            if name == query:
                found.setdefault((self.keys[i], self.window[i]), []).append(i)
        return {window: sorted(rows, key=lambda i: self.revision[i]) for window, rows in found.items()}

    def latest(self, query: str) -> list[int]:
        """The rows of a query that are finally true, in order of the ends of their windows."""
        last = [rows[-1] for rows in self.history(query).values()]
        return sorted(
            (i for i in last if self.change[i] != "retract"), key=lambda i: (self.shown_end(i), self.start[i])
        )

    def shown_end(self, row: int) -> float:
        """The end of a window; of one that never ended, the last time that the results know."""
        return self.last_known if np.isnan(self.end[row]) else float(self.end[row])


def _table(results: Any) -> pa.Table:
    for convert in ("to_arrow", "toArrow"):
        if hasattr(results, convert):
            return getattr(results, convert)()
    if isinstance(results, pa.Table):
        return results
    frame = results.toPandas() if hasattr(results, "toPandas") else results
    if not hasattr(frame, "columns") or not hasattr(frame, "to_dict"):
        raise DataError(
            f"these are not results of a workload; got {type(results).__name__}; pass Results, an Arrow table, or a "
            "DataFrame of pandas or Spark"
        )
    columns = {}
    for name in frame.columns:
        values = frame[name]
        if values.dtype == object:
            # Spark's rows are tuples to Arrow, and pandas writes what is missing as NaN.
            cells = [v.asDict() if hasattr(v, "asDict") else v for v in values]
            columns[str(name)] = pa.array([None if isinstance(v, float) and v != v else v for v in cells])
        else:
            columns[str(name)] = pa.array(values, from_pandas=True)
    return pa.table(columns)


def _field(column: pa.ChunkedArray, name: str) -> pa.Array:
    if not pa.types.is_struct(column.type):
        raise DataError(f"the column `window` must be a struct of start and end; got {column.type}")
    return pc.struct_field(column.combine_chunks(), name)


def _numbers(times: Any) -> np.ndarray:
    """Times as matplotlib counts them: days since the epoch, or the integers of an integer time column."""
    if pa.types.is_timestamp(times.type):
        whole = times.cast(pa.timestamp("us", times.type.tz), safe=False).cast(pa.int64())
        return whole.to_numpy(zero_copy_only=False).astype(np.float64) / 86_400e6
    return times.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _identities(table: pa.Table, start: np.ndarray, end: np.ndarray) -> list[tuple[Any, ...]]:
    """What tells windows apart: the span where there is one, for the times of such a window may be corrected."""
    spans = table["span"].to_pylist()
    bounds = zip(start.tolist(), (None if e != e else e for e in end.tolist()), spans, strict=True)
    return [(s, e) if span is None else ("span", span["start"], span["end"]) for s, e, span in bounds]


# -- timeline


@dataclass(frozen=True)
class _Bars:
    """The bars of one lane: bounds, level, and what became of the window."""

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


def _bars(found: _Frame, query: str) -> _Bars:
    history = found.history(query)
    last = [rows[-1] for rows in history.values()]
    state = [2 if found.change[i] == "retract" else int(found.revision[i] > 0) for i in last]
    left = found.start[last]
    right = np.array([found.shown_end(i) for i in last])
    # Keys stay together where windows do not overlap, so that a lane reads as one line per key.
    order = sorted(range(len(last)), key=lambda j: (str(found.keys[last[j]]), left[j], right[j]))
    level, base, of = np.zeros(len(last), np.int64), 0, None
    free: list[float] = []
    keys: list[tuple[str, int]] = []
    for j in order:
        if found.keys[last[j]] != of:
            base, free, of = base + len(free), [], found.keys[last[j]]
            keys.append((_key_name(found.keys[last[j]]), base))
        place = next((n for n, until in enumerate(free) if until <= left[j]), len(free))
        free[place : place + 1] = [right[j]]
        level[j] = base + place
    return _Bars(left, right, level, np.array(state), np.isnan(found.end[last]), keys)


def _draw_lane(ax: Axes, bars: _Bars, bottom: float, height: float, colour: str) -> None:
    """One collection per state; the gid of a collection is its state."""
    from matplotlib.collections import PolyCollection

    step = height / bars.levels
    gap = 0.12 * step
    # A window of a single row has no length, and still there should be something to see.
    least = 0.002 * max(float(bars.right.max() - bars.left.min()), 1e-9)
    right = np.maximum(bars.right, bars.left + least)
    high = bottom + height - bars.level * step - gap
    low = high - step + 2 * gap
    corners = np.stack([bars.left, low, bars.left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
    # Thin outlines between neighbours, thinner the more of them there are.
    edge = min(0.8, 24 / max(len(corners), 1))
    looks: tuple[dict[str, Any], ...] = (
        {"facecolor": colour, "alpha": 0.55, "edgecolor": "white", "linewidth": edge},
        {"facecolor": colour, "alpha": 0.9, "edgecolor": _INK, "linewidth": min(1.0, edge * 1.4)},
        {"facecolor": "none", "edgecolor": _WITHDRAWN, "linestyle": (0, (3, 2)), "linewidth": 1.0},
    )
    for state, look in enumerate(looks):
        mine = bars.state == state
        if mine.any():
            ax.add_collection(PolyCollection(list(corners[mine]), gid=_STATES[state], zorder=2 + state, **look))
    for j in np.flatnonzero(bars.open):
        ax.plot(right[j], (low[j] + high[j]) / 2, marker=">", color=colour, markersize=5, gid="open", clip_on=False)


def _name_keys(ax: Axes, bars: _Bars, bottom: float, height: float) -> None:
    """The names of the keys at the right of their bars, where there are not too many."""
    if not 1 < len(bars.keys) <= _MOST_NAMED:
        return
    tops = [level for _, level in bars.keys[1:]] + [bars.levels]
    for (name, low), high in zip(bars.keys, tops, strict=True):
        y = bottom + height - height * (low + high) / 2 / bars.levels
        look: dict[str, Any] = {"va": "center", "fontsize": 7, "color": _FAINT, "gid": "key"}
        ax.text(1.005, y, name, transform=ax.get_yaxis_transform(), **look)


def _name_states(ax: Axes, bars: list[_Bars]) -> None:
    """A legend for what needs one: corrections and retractions, where there are any."""
    from matplotlib.patches import Patch

    seen = {int(s) for lane in bars for s in lane.state}
    if not seen - {0}:
        return
    looks = {
        0: Patch(facecolor=_FAINT, alpha=0.55, label=_STATES[0]),
        1: Patch(facecolor=_FAINT, edgecolor=_INK, label=_STATES[1]),
        2: Patch(facecolor="none", edgecolor=_WITHDRAWN, linestyle="--", label=_STATES[2]),
    }
    handles = [looks[s] for s in sorted(seen)]
    place: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    ax.legend(handles=handles, ncols=len(handles), frameon=False, fontsize=9, labelcolor=_INK, **place)


# -- series


def _column(found: _Frame, query: str, column: str | None) -> str:
    mine = [i for i, name in enumerate(found.query) if name == query]
    of_query = [n for n, values in found.values.items() if any(values[i] is not None for i in mine)]
    drawable = [n for n in of_query if all(_is_drawable(found.values[n][i]) for i in mine)]
    if column is None:
        if not drawable:
            raise DataError(f"query {query!r} has no column that can be drawn; there must be numbers or m4")
        return drawable[0]
    if column not in of_query:
        raise DataError(f"query {query!r} has no column {column!r}; {did_you_mean(str(column), of_query)}")
    if column not in drawable:
        got = type(next(found.values[column][i] for i in mine if found.values[column][i] is not None)).__name__
        raise DataError(f"{column!r} of query {query!r} holds no numbers; got {got}; {did_you_mean('', drawable)}")
    return column


def _is_drawable(value: Any) -> bool:
    m4 = isinstance(value, dict) and all(p in value and f"{p}_time" in value for p in _M4)
    return value is None or m4 or isinstance(value, (int, float, decimal.Decimal))


def _only_key(found: _Frame, lines: dict[tuple[Any, ...], list[int]], key: Any) -> dict[tuple[Any, ...], list[int]]:
    if key is None:
        return lines
    wanted = key if isinstance(key, tuple) else (key,)
    if wanted not in lines:
        known = ", ".join(map(_key_name, list(lines)[:10]))
        raise DataError(f"there are no results of key {_key_name(wanted)}; known: {known or 'none'}")
    return {wanted: lines[wanted]}


def _points(found: _Frame, column: str, rows: list[int]) -> tuple[np.ndarray, np.ndarray]:
    values = [found.values[column][i] for i in rows]
    if not isinstance(values[0], dict):
        return np.array([found.shown_end(i) for i in rows]), np.array([float(v) for v in values])
    points = [point for value in values for point in _four(value)]
    times = pa.array([t for t, _ in points])
    return _numbers(times), np.array([float(v) for _, v in points])


def _four(value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The points of an M4 in the order of their times: first, the extremes, last."""
    points = [(value[f"{p}_time"], value[p]) for p in _M4]
    yield from sorted(points, key=lambda point: point[0])  # stable, so that ties keep first before last


def _key_name(key: tuple[Any, ...]) -> str:
    return ", ".join(map(str, key))


def _name_lines(ax: Axes) -> None:
    """Names at the ends of the lines, in their colours; a legend where ends lie too close together."""
    lines = [line for line in ax.get_lines() if not str(line.get_label()).startswith("_")]
    if len(lines) < 2:
        for line in lines:
            ax.set_title(str(line.get_label()), loc="right", fontsize=9, color=_INK)
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


# -- axes


def _axes(ax: Axes | None, *, height: float) -> Axes:
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError:
        raise MissingPackageError(
            "pictures need matplotlib, which is not installed; pip install 'slicewise[plot]'"
        ) from None
    return plt.subplots(figsize=(9, min(height, 12)), layout="constrained")[1]


def _dress(ax: Axes, found: _Frame, grid: str) -> None:
    """Readable dates or whole numbers, a light grid along one axis, and no frame."""
    if found.dated:
        from matplotlib import dates

        locator = dates.AutoDateLocator(minticks=3, maxticks=9)
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
    else:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    ax.grid(axis=grid, color="#E4E4E4", linewidth=0.8)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(_FAINT)
    ax.tick_params(colors=_INK, labelsize=9)
