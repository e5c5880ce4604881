"""The figures and tables of the papers, drawn from one run; see ``benchmarks/paper.py``."""

from __future__ import annotations

from papers import cutty, monoid_tree, reactive, slicing, slicing_more, slickdeque
from papers.figure import Figure

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for module in (slicing, slicing_more, cutty, reactive, slickdeque, monoid_tree)
    for figure in module.FIGURES
}
