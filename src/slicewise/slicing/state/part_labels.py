"""Part labels: what the arrays of partials in a state hold, so that a workload with other queries finds its own there.

Up to format 5 each aggregate kept partials of its own, under its name; since then parts are kept by what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from slicewise.aggregates.base import Monoid, Parts
from slicewise.plan.plan import Plan
from slicewise.slicing.time.slices import Slices

__all__ = ["Labels", "carried_parts", "labels_from_data"]

#: For each partial of a slice the labels of its parts; of a state up to format 5, the name of its aggregate.
Labels = tuple[tuple[str, ...] | str, ...]


def labels_from_data(data: Mapping[str, Any]) -> Labels:
    """The labels from the data of a state."""
    if "labels" in data:
        return tuple(map(tuple, data["labels"]))
    return tuple(data["aggregates"])


def carried_parts(slices: Slices, labels: Labels, monoids: Sequence[Monoid], plan: Plan) -> tuple[Parts, ...]:
    """The partials of slices whose arrays have these labels, for monoids of a plan; identities where there are none."""
    arrays = _by_label(slices, labels, plan)
    carried = []
    for monoid in monoids:
        nothing = monoid.identities(len(slices))
        carried.append(tuple(arrays.get(label, part) for label, part in zip(monoid.labels, nothing, strict=True)))
    return tuple(carried)


def _by_label(slices: Slices, labels: Labels, plan: Plan) -> dict[str, np.ndarray]:
    aggregates = {repr(answer.monoid.aggregate): answer.monoid for answer in plan.answers}
    arrays: dict[str, np.ndarray] = {}
    for label, parts in zip(labels, slices.parts, strict=True):
        if isinstance(label, str):
            if label not in aggregates:
                continue
            parts, label = aggregates[label].upgraded(parts), aggregates[label].labels
        for name, part in zip(label, parts, strict=True):
            arrays.setdefault(name, part)
    return arrays
