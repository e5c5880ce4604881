"""Pictures: the measured points, and beside them what the paper expects."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

from papers.figure import Figure, Points


def draw(figure: Figure, points: Points, path: Path) -> bool:
    """Draw a figure; False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = points.panels()
    count = len(panels) + 1
    canvas, axes = plt.subplots(1, count, figsize=(3.6 * count, 3.4), squeeze=False, layout="constrained")
    for at, panel in zip(axes[0], panels, strict=False):
        (_bars if figure.bars else _lines)(at, figure, points, panel)
        at.set_title(panel or "measured", fontsize=8)
    _expected(axes[0][-1], figure, points)
    canvas.suptitle(f"{figure.paper}, {figure.place}: {figure.title}", fontsize=9)
    canvas.savefig(path, dpi=70)
    plt.close(canvas)
    return True


def _lines(at: Any, figure: Figure, points: Points, panel: str) -> None:
    for name in points.names(panel):
        here = sorted((p for p in points.points if p.panel == panel and p.series == name), key=lambda p: p.x)
        xs, ys = [p.x for p in here], [p.y for p in here]
        (line,) = at.plot(xs, ys, marker="o", markersize=3, linewidth=1, label=name)
        at.fill_between(xs, [p.low for p in here], [p.high for p in here], alpha=0.15, color=line.get_color())
    for where, name, other in figure.anchors:
        if where == panel:
            at.plot(list(other), list(other.values()), "k:", marker="x", markersize=3, label=f"{name} (another day)")
    _dress(at, figure)
    at.legend(fontsize=5)


def _bars(at: Any, figure: Figure, points: Points, panel: str) -> None:
    here = [p for p in points.points if p.panel == panel]
    labels = [f"{p.x} {p.series}".strip() for p in here]
    errors = [[p.y - p.low for p in here], [p.high - p.y for p in here]]
    at.barh(range(len(here)), [p.y for p in here], xerr=errors, height=0.7)
    at.set_yticks(range(len(here)), labels, fontsize=5)
    at.invert_yaxis()
    at.set_xlabel(figure.y, fontsize=7)
    if figure.log_y and all(p.y > 0 for p in here):
        at.set_xscale("log")
    at.tick_params(labelsize=6)


def _expected(at: Any, figure: Figure, points: Points) -> None:
    """The paper's expectation: curves where it has a formula, and words."""
    at.set_title("the paper expects", fontsize=8)
    xs = sorted({p.x for p in points.points if isinstance(p.x, (int, float))})
    if figure.shapes and xs:
        for name, shape in figure.shapes.items():
            at.plot(xs, [shape(x) for x in xs], "--", linewidth=1, label=name)
        _dress(at, figure)
        at.set_ylabel("shape, in any unit", fontsize=7)
        at.legend(fontsize=5)
        at.text(0, -0.32, textwrap.fill(figure.expectation, 60), fontsize=5.5, transform=at.transAxes, va="top")
    else:
        at.axis("off")
        at.text(0, 1, textwrap.fill(figure.expectation, 42), fontsize=7, va="top", transform=at.transAxes)


def _dress(at: Any, figure: Figure) -> None:
    if figure.log_x:
        at.set_xscale("log")
    if figure.log_y:
        at.set_yscale("log")
    at.set_xlabel(figure.x, fontsize=7)
    at.set_ylabel(figure.y, fontsize=7)
    at.tick_params(labelsize=6)
