"""Matrices of cases: the cells that show each value of each axis are quick, all others are ``slow``."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from typing import Any

import pytest

Cell = Any


def few_quick(cells: Iterable[Cell], axes: Callable[[Cell], Sequence[Hashable]] | None = None) -> list[Any]:
    """The cells as parameters of a test: few enough for ``make check``, in which every value of every axis occurs.

    Parameters
    ----------
    cells : iterable
        What a test is called with: tuples, or values if it takes one.
    axes : callable, optional
        Where a cell lies, if not at its values.

    Examples
    --------
    Three algorithms on three types are nine cells, of which three show them all:

    >>> cells = [(a, b) for a in ("FiBA", "DABA", "TwoStacks") for b in ("int", "float", "text")]
    >>> [cell.values for cell in few_quick(cells) if not cell.marks]
    [('FiBA', 'int'), ('DABA', 'float'), ('TwoStacks', 'text')]
    """
    cells = [cell if isinstance(cell, tuple) else (cell,) for cell in cells]
    places = [set(enumerate(axes(cell) if axes else cell)) for cell in cells]
    shown: set[tuple[int, Hashable]] = set()
    quick = set()
    for news in range(max(map(len, places)), 0, -1):
        for i, place in enumerate(places):
            if len(place - shown) >= news:
                shown |= place
                quick.add(i)
    return [pytest.param(*cell, marks=[] if i in quick else pytest.mark.slow) for i, cell in enumerate(cells)]


def first_quick(values: Iterable[Any], n: int = 1) -> list[Any]:
    """Values that are much alike, as parameters: the first ones are quick.

    >>> [(seed.values[0], bool(seed.marks)) for seed in first_quick(range(3))]
    [(0, False), (1, True), (2, True)]
    """
    return [pytest.param(value, marks=[] if i < n else pytest.mark.slow) for i, value in enumerate(values)]


def matrix(**axes: Iterable[Hashable]) -> pytest.MarkDecorator:
    """A test for every combination of some values; few enough are quick, as :func:`few_quick` says."""
    return pytest.mark.parametrize(list(axes), few_quick(product(*axes.values())))
