"""Pictures: the measured points, and beside them what the paper expects."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from papers.figure import Figure, Points

#: Panels side by side; more go into further rows.
ACROSS = 4
#: What papers say of the same thing, beside what was counted.
EXPECTED = ("paper", "formula")
#: The unit of a figure whose panels have each their own, in their titles.
SEE_PANEL = "see panel"


def draw(figure: Figure, points: Points, path: Path) -> bool:
    """Draw a figure; False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = points.panels()
    numbers = any(isinstance(p.x, (int, float)) for p in points.points)
    count = len(panels) + (1 if figure.shapes and numbers else 0)
    across = min(count, ACROSS)
    down = math.ceil(count / across)
    barred = {p.panel for p in points.points if isinstance(p.x, str)} if figure.bars else set()
    height = max([2.9, *(0.13 * _bars_of(points, panel) + 1.1 for panel in barred)])
    size = (max(3.4 * across, 7.0), height * down + 0.9)
    canvas, axes = plt.subplots(down, across, figsize=size, squeeze=False, layout="constrained")
    places = list(axes.ravel())
    for at in places[count:]:
        at.axis("off")
    colours = _colours(points)
    for at, panel in zip(places, panels, strict=False):
        (_bars if panel in barred else _lines)(at, figure, points, panel, colours)
        at.set_title(panel or "measured", fontsize=9)
    if count > len(panels):
        _expected(places[len(panels)], figure, points)
    _legend(canvas, places[: len(panels)], across)
    title = f"{figure.paper}, {figure.place}: {figure.title}"
    words = textwrap.fill(f"The paper: {figure.expectation}", int(19 * size[0]))
    canvas.suptitle(f"{title}\n", fontsize=10)
    canvas.text(0.5, 1 - 0.28 / size[1], words, fontsize=7.5, ha="center", va="top", style="italic")
    # Words stand in what the empty line of the title leaves, and in as much above the panels as they need.
    canvas.get_layout_engine().set(rect=(0, 0, 1, 1 - 0.13 * words.count("\n") / size[1]))
    canvas.savefig(path, dpi=100)
    plt.close(canvas)
    return True


def _bars_of(points: Points, panel: str) -> int:
    return sum(p.panel == panel for p in points.points)


def _colours(points: Points) -> dict[str, Any]:
    """One colour per series, in all panels."""
    import matplotlib

    names = list(dict.fromkeys(p.series for p in points.points))
    palette = matplotlib.colormaps["tab10" if len(names) <= 10 else "tab20"].colors
    return {name: "0.65" if name in EXPECTED else palette[i % len(palette)] for i, name in enumerate(names)}


def _legend(canvas: Any, places: Sequence[Any], across: int) -> None:
    """One for all panels, below them."""
    known: dict[str, Any] = {}
    for at in places:
        for handle, label in zip(*at.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    if len(known) > 1:
        columns = min(len(known), 2 * across)
        canvas.legend(
            known.values(), known.keys(), loc="outside lower center", ncols=columns, fontsize=7, frameon=False
        )


def _lines(at: Any, figure: Figure, points: Points, panel: str, colours: dict[str, Any]) -> None:
    for name in points.names(panel):
        here = sorted((p for p in points.points if p.panel == panel and p.series == name), key=lambda p: p.x)
        xs, ys = [p.x for p in here], [p.y for p in here]
        thick = 2 if name.startswith("slicewise") else 1.1
        at.plot(xs, ys, marker="o", markersize=3, linewidth=thick, label=name, color=colours[name])
        at.fill_between(xs, [p.low for p in here], [p.high for p in here], alpha=0.15, color=colours[name])
    for where, name, other in figure.anchors:
        if where == panel:
            at.plot(list(other), list(other.values()), "k:", marker="x", markersize=4, label=f"{name} (another day)")
    _dress(at, figure)
    if figure.bars:
        at.set_xlabel(figure.x.split(" or ")[0], fontsize=8)


def _bars(at: Any, figure: Figure, points: Points, panel: str, colours: dict[str, Any]) -> None:
    """Groups by x, a bar per series in each."""
    names, xs = points.names(panel), list(dict.fromkeys(p.x for p in points.points if p.panel == panel))
    wide = 0.8 / len(names)
    for number, name in enumerate(names):
        here = [p for p in points.points if p.panel == panel and p.series == name]
        places = [xs.index(p.x) + (number - (len(names) - 1) / 2) * wide for p in here]
        errors = [[p.y - p.low for p in here], [p.high - p.y for p in here]]
        at.barh(places, [p.y for p in here], xerr=errors, height=wide, color=colours[name], label=name or None)
    at.set_yticks(range(len(xs)), [str(x) for x in xs], fontsize=7)
    at.invert_yaxis()
    at.set_xlabel("" if figure.y == SEE_PANEL else figure.y, fontsize=8)
    if figure.log_y and all(p.y > 0 for p in points.points if p.panel == panel):
        at.set_xscale("log")
        _ticks(at.xaxis, *at.get_xlim())
    at.tick_params(axis="x", labelsize=7)
    at.grid(axis="x", alpha=0.3)


def _expected(at: Any, figure: Figure, points: Points) -> None:
    """The curves that the paper has, or that its formulas give."""
    at.set_title("the paper expects", fontsize=9)
    xs = sorted({p.x for p in points.points if isinstance(p.x, (int, float))})
    for name, shape in (figure.shapes or {}).items():
        at.plot(xs, [shape(x) for x in xs], "--", linewidth=1.2, label=name)
    _dress(at, figure)
    at.set_ylabel("shape, in any unit", fontsize=8)
    at.legend(fontsize=7, frameon=False)


def _dress(at: Any, figure: Figure) -> None:
    if figure.log_x:
        at.set_xscale("log")
        _ticks(at.xaxis, *at.get_xlim())
    if figure.log_y:
        at.set_yscale("log")
        _ticks(at.yaxis, *at.get_ylim())
    at.set_xlabel(figure.x, fontsize=8)
    at.set_ylabel("" if figure.y == SEE_PANEL else figure.y, fontsize=8)
    at.tick_params(labelsize=7)
    at.grid(alpha=0.3)


def _ticks(axis: Any, low: float, high: float) -> None:
    """Plain numbers; between powers of ten only where there are few of those."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    plain = FuncFormatter(lambda value, _: f"{value:g}")
    axis.set_major_formatter(plain if high / max(low, 1e-12) < 1e6 else axis.get_major_formatter())
    short = high / max(low, 1e-12) < 50
    axis.set_minor_locator(LogLocator(subs=(2, 5)))
    axis.set_minor_formatter(plain if short else NullFormatter())
    axis.set_tick_params(which="minor", labelsize=7)
