"""Axes: where pictures are drawn, and how they look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from slicewise.errors import MissingPackageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "FAINT", "INK", "MOST_NAMED", "WITHDRAWN", "dress", "new_axes"]

# Okabe and Ito's colours, which most people can tell apart; their yellow is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#555555")
INK, FAINT = "#333333", "#999999"
WITHDRAWN = "#B22222"
#: Keys beyond this number are drawn alike and without names.
MOST_NAMED = len(COLOURS)


def new_axes(ax: Axes | None, *, height: float) -> Axes:
    """The given axes, or those of a new figure of this height in inches."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot as plt
    except ModuleNotFoundError:
        raise MissingPackageError(
            "pictures need matplotlib, which is not installed; pip install 'slicewise[plot]'"
        ) from None
    return plt.subplots(figsize=(9, min(height, 12)), layout="constrained")[1]


def dress(ax: Axes, *, dated: bool, grid: Literal["x", "y"]) -> None:
    """Readable dates or whole numbers, a light grid along one axis, and no frame."""
    if dated:
        from matplotlib import dates

        locator = dates.AutoDateLocator(minticks=3, maxticks=9)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(locator)
        ax.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    else:
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    ax.grid(axis=grid, color="#E4E4E4", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("bottom", "left"):
        ax.spines[side].set_color(FAINT)
    ax.tick_params(colors=INK, labelsize=9)
