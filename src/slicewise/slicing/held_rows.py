"""Rows outside of the slices: late ones, which are given back, and those that wait to be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from slicewise.slicing.input import Batch
from slicewise.slicing.keys import KeyTable

__all__ = ["HeldRows", "LateRow"]


class LateRow(NamedTuple):
    """A row for which no window was open any more."""

    time: int
    key: tuple[Any, ...]
    row: dict[str, Any]


@dataclass(frozen=True, eq=False)
class HeldRows:
    """Rows as they came, with the numbers of their keys."""

    batch: Batch
    key: np.ndarray

    def take(self, index: np.ndarray) -> HeldRows:
        """The rows at ``index``."""
        return HeldRows(self.batch.take(index), self.key[index])

    def as_late(self, keys: KeyTable) -> Iterator[LateRow]:
        """The rows as they are given back."""
        rows = self.batch.rows()
        for time, key, row in zip(self.batch.times.tolist(), self.key.tolist(), rows, strict=True):
            yield LateRow(time, keys.values[key] if keys.types else (), row)
