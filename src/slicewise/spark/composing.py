"""Composing: from slices to windows, many keys in one call.

A partition holds all slices of its keys, or all rows of them (:mod:`slicewise.spark.slice_sources`). The engine answers
every window of every query at once, as if the watermark had passed everything. Keys are taken in groups, so that memory
follows the slices and not the results, of which there may be far more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from slicewise.kernels import segment_starts
from slicewise.plan.axes import Axis
from slicewise.plan.plan import Component, Plan
from slicewise.ragged import Ragged
from slicewise.slicing import Composition, Slices
from slicewise.spark.arrow_io import result_batches
from slicewise.spark.key_numbers import KeyNumbers
from slicewise.spark.output import Output
from slicewise.spark.slice_sources import SliceSource

__all__ = ["Composer"]

#: How many slices are composed at once, if no key has more; the second where each of them lies in many windows.
LARGE_CHUNK, SMALL_CHUNK = 500_000, 20_000
#: About how many results a chunk may have, when no slice shares its windows with another.
RESULTS = 20_000_000
#: About how many values they may hold where each is a list of values, which are Python's: some hundred bytes each.
VALUES, BYTES = 3_000_000, 100


@dataclass(frozen=True)
class Composer:
    """The function that Spark calls for each partition.

    Attributes
    ----------
    make_plan
        Called in the worker: plans hold functions that do not travel.
    source
        What makes slices of what the partition holds.
    axes
        The axes of windows that are not on event time.
    """

    make_plan: Callable[[], Plan]
    output: Output
    source: SliceSource
    axes: Sequence[Axis] = ()

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = next((batch for batch in batches if batch.num_rows), None)
        if some is None:
            return
        plan = self.make_plan()
        keys, slices, firsts = self.source.slices(plan, chain([some], batches))
        composition = Composition(plan, self.axes)
        for chunk in _by_keys(slices, _chunk_size(plan, slices)):
            chunk_firsts = [first.take(chunk) for first in firsts]
            for block in composition.blocks(slices.take(chunk), chunk_firsts, KeyNumbers(keys)):  # type: ignore[arg-type]
                yield from result_batches(block, keys, self.output)


def _chunk_size(plan: Plan, slices: Slices) -> int:
    overlap = max(sum(q.overlap for q in plan.characteristics.queries), 1)
    size = min(max(RESULTS // overlap, SMALL_CHUNK), LARGE_CHUNK)
    listed = sum(_listed(plan, slices, component) for component in plan.components)
    return size if not listed else min(size, VALUES * len(slices) // (overlap * listed))


def _listed(plan: Plan, slices: Slices, component: Component) -> int:
    """How many values of slices each of their windows holds again, where a partial is a list of values or a sketch."""
    if component.store.choice == "wavelet":
        return 0  # what windows hold is read off the ranks of all values
    kind = plan.monoids[component.kept].aggregate.kind
    of_slices = [slices.parts[component.kept][place] for place in component.places]
    if kind == "sketch":
        return sum(len(sketch) for part in of_slices for sketch in part.tolist()) // BYTES
    lists = sum(int(part.lengths.sum()) for part in of_slices if isinstance(part, Ragged))
    return lists or (int(slices.rows.sum()) if kind == "holistic" else 0)


def _by_keys(slices: Slices, size: int) -> Iterator[slice]:
    """The slices, sorted by key, in chunks of about this size that hold whole keys."""
    bounds = np.append(segment_starts(slices.key[1:] != slices.key[:-1]), len(slices))
    at = 0
    while bounds[at] < len(slices):
        end = max(int(np.searchsorted(bounds, bounds[at] + size, "right")) - 1, at + 1)
        yield slice(int(bounds[at]), int(bounds[end]))
        at = end
