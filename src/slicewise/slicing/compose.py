"""Compose: windows on several axes over one set of slices, all of whose rows are there. What a batch runs.

Slices stand in the order of their rows and are cut at the edges of every axis, so that on each of them they are in
order, and no window begins or ends inside a slice. Windows on event time and sessions are the engine's; the others are
found by their discretisers, as on a stream, over ordered rows that all stand in slices. Rows without a measure are
slices of their own, which windows on that measure pass over::

    position   0   100   200   300          counts:     [0, 200) [200, 400)
    km         0         5     -            km:         [0, 5)   [5, 10)
    markers    0   0     1     1            punctuated: two windows
    slice      a   b     c     d
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from slicewise.columns import Column
from slicewise.kernels import running_last
from slicewise.plan.axes import Axis, Marks, Units
from slicewise.plan.plan import Plan
from slicewise.results import Block
from slicewise.slicing.answers.answers import Answers, QueryFanOut, StoredPartials
from slicewise.slicing.engine import Engine
from slicewise.slicing.intake.gaps import TickGaps
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows.discretisers import Discretiser, condition_column
from slicewise.slicing.rows.monotonic import fits_column
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.rows.registry import discretisers_for
from slicewise.slicing.steps import Step
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.times import INFINITY

__all__ = ["Composition", "find_windows"]


class Composition:
    """Answers every window of a plan over complete slices; ``axes`` are those of the plan's context-aware windows."""

    def __init__(self, plan: Plan, axes: Sequence[Axis]) -> None:
        self.plan = plan
        self.axes = tuple(axes)
        self._on_time = replace(plan, context=())
        windows = [[plan.context[place] for place in axis.places] for axis in axes]
        self._queries = [[QueryFanOut(plan.context_queries(g, some)) for g in plan.groups] for some in windows]

    def blocks(self, slices: Slices, firsts: Sequence[Column], keys: KeyTable) -> Iterator[Block]:
        """The results of all windows.

        Parameters
        ----------
        slices
            Sorted by key and, within a key, in the order of their first rows.
        firsts
            For each axis its value at the first row of each slice; null where rows have none.
        """
        if self.plan.windows or self.plan.gaps:
            engine = Engine(self._on_time)
            error = TickGaps(engine).judge_slices(slices, keys) if self.plan.filled else None
            if error is not None:
                raise error.of_batch(error.label)
            engine.insert_slices(slices)
            results, _ = engine.advance(INFINITY, keys)
            yield from results.blocks
        answers = Answers(self.plan, keys)
        for axis, first, queries in zip(self.axes, firsts, self._queries, strict=True):
            windows = find_windows(axis, slices, first)
            counted = slice(None) if windows.rows is None else windows.rows
            key, first_time, last_time = (c[counted] for c in (slices.key, slices.first, slices.last))
            # Slices of rows with and without some measure may lie among each other: the last one need not end last.
            last_time = running_last(key, last_time) if len(key) else last_time
            partials = StoredPartials(self.plan, slices.parts, some=windows.rows, first=first_time, last=last_time)
            for block in answers.blocks(windows, queries, partials, by_position=axis.by_position):
                yield from block.pieces()


def find_windows(axis: Axis, slices: Slices, first: Column) -> WindowRanges:
    """The windows on one axis, each with the range of slices that it is made of."""
    if not len(slices):
        return WindowRanges.none()
    (discretiser,) = discretisers_for((axis.window,) if isinstance(axis, Marks) else axis.windows)
    marks = _marks(axis, discretiser, slices, first)
    size = int(slices.key.max()) + 1
    base, last_seen = np.zeros(size, np.int64), np.full(size, -INFINITY)
    view = OrderedRows(replace(slices, marks=marks), Tuples.empty({}), base, last_seen)
    windows, _ = discretiser.find(view, Step.whole())
    if isinstance(axis, Units) and axis.scale.digits:
        unit = 10**axis.scale.digits
        return replace(windows, start=windows.start / unit, end=windows.end / unit)
    return windows


def _marks(axis: Axis, discretiser: Discretiser, slices: Slices, first: Column) -> dict[str, np.ndarray]:
    """What a discretiser must know of each slice."""
    if isinstance(axis, Units):
        return {axis.column: first.values, fits_column(discretiser.measures): first.mask.astype(np.int64)}
    if isinstance(axis, Marks):
        # Slices have the number of markers passed; a window starts where it is another one than before.
        number = first.values
        starts = np.concatenate([[True], (number[1:] != number[:-1]) | (slices.key[1:] != slices.key[:-1])])
        return {condition_column(axis.window): starts.astype(np.int64)}
    return {}
