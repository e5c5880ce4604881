"""Gaps: rows so long after the one before them that very many ticks would be due at once.

"The last ten rows, every second" has a tick for every second between two rows of a key. A single row with a wrong time,
ten years ahead, would make 315 million of them due. Such a row is refused before it is let in, and so moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slicewise.bad_rows import GAP
from slicewise.columns import Column
from slicewise.errors import RefusedRowsError
from slicewise.kernels import order_by
from slicewise.labels import RowLabel
from slicewise.slicing.engine import Engine
from slicewise.slicing.intake.input import Batch
from slicewise.slicing.intake.window_gaps import KeyTimes, KnownWindows, WindowGap
from slicewise.slicing.keys import KeyTable
from slicewise.slicing.rows import slides
from slicewise.slicing.rows.context_aware import ContextAwareQueries
from slicewise.slicing.rows.discretisers import Discretiser
from slicewise.slicing.rows.monotonic import fits_column
from slicewise.slicing.rows.punctuation import data_among
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.window_ranges import NO_ROWS
from slicewise.workload import Workload

__all__ = ["Gap", "GapError", "TickGaps", "has_ticks"]


@dataclass(frozen=True)
class Gap:
    """A row that is refused, by its place in the batch: how many ticks would be due, and since which event time."""

    row: int
    ticks: int
    since: int
    window: str


class GapError(RefusedRowsError):
    """Rows after too large a gap; the first of them is named by its label. In a batch nothing goes on (``stopped``)."""

    def __init__(self, gap: Gap | WindowGap, rows: Sequence[int], label: RowLabel, *, stopped: bool = False) -> None:
        self.gap, self.label = gap, label
        if isinstance(gap, Gap):
            due = f"{gap.ticks} ticks of {gap.window} would be due because of it, since the record of time "
            due += label.shown(gap.since)
        else:
            due = f"{gap.windows} empty windows of {gap.window} would be due because of it, between it and the window "
            due += f"that ends at {label.shown(gap.beside)}"
        end = "filter such records out before run(), or take a longer `every`"
        if not stopped:
            end = (
                f"{label.left_out(len(rows) - 1)}. Filter such records out, take a longer `every`, or have them judged "
            )
            end += "by the clock, with `ahead`"
        super().__init__(
            f"{label}: {due}, and no record may bring more than {slides.MOST_TICKS}; {end}", rows, reason=GAP
        )

    def of_batch(self, label: RowLabel) -> GapError:
        """The same error where it stops a batch, of a row that goes by this label."""
        return GapError(self.gap, self.rows, label, stopped=True)


class TickGaps:
    """Judges the rows of one engine before they are let in.

    A new row is refused if more than a million ticks of its key lie between it and the row before it, in event-time
    order, or as many empty windows that are reported; if it comes before all rows that were there, between it and the
    row behind it. Rows of one batch are judged together.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._known: list[_KnownRows | KnownWindows] = [
            _KnownRows(queries, d)
            for queries in engine.context_aware
            for d in queries.discretisers
            if _ticks_by_time(d)
        ]
        self._known += [KnownWindows(engine, family) for family in engine.plan.filled]

    def judge(
        self, batch: Batch, key: np.ndarray, columns: Mapping[str, Column], workload: Workload
    ) -> RefusedRowsError | None:
        """What is wrong with rows of a batch; None if they can be let in, and from then on they are known."""
        return self._judged(key, batch.times, columns, lambda row: batch.label(row, workload))

    def judge_slices(self, slices: Slices, keys: KeyTable) -> GapError | None:
        """The same of slices, whose rows are all in the same windows; what it names are their places."""

        def label(at: int) -> RowLabel:
            schema = self.engine.plan.schema
            key = dict(zip(schema.key_names, keys.key(int(slices.key[at])), strict=True))
            return RowLabel(key, int(slices.first[at]), schema.time_type, schema.unit)

        return self._judged(slices.key, slices.first, {}, label)

    def _judged(
        self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], label: Callable[[int], RowLabel]
    ) -> GapError | None:
        gaps: dict[int, Gap | WindowGap] = {}
        for known in self._known:
            gaps |= {gap.row: gap for gap in known.gaps(key, times, columns, self.engine.horizon)}
        kept = np.ones(len(times), bool)
        kept[list(gaps)] = False
        for known in self._known:
            known.add(key, times, kept)
        if not gaps:
            return None
        rows = sorted(gaps)
        return GapError(gaps[rows[0]], rows, label(rows[0]))


def has_ticks(engine: Engine) -> bool:
    """Whether time alone brings windows about, so that there can be gaps in which too many are due."""
    discretisers = (d for queries in engine.context_aware for d in queries.discretisers)
    return bool(engine.plan.filled) or any(map(_ticks_by_time, discretisers))


def _ticks_by_time(discretiser: Discretiser) -> bool:
    return discretiser.slide is not None and discretiser.slide.measure.is_event_time


class _KnownRows:
    """The rows that count in the windows of one discretiser that ticks by event time."""

    def __init__(self, queries: ContextAwareQueries, discretiser: Discretiser) -> None:
        assert discretiser.slide is not None
        self.queries, self.discretiser = queries, discretiser
        self.every, self.offset = int(discretiser.slide.size), discretiser.offset
        self._latest = KeyTimes(slides.MOST_TICKS * self.every)
        self._latest.update(*self._rows())

    def gaps(self, key: np.ndarray, times: np.ndarray, columns: Mapping[str, Column], horizon: int) -> list[Gap]:
        """The rows of a batch that come after too large a gap."""
        counted = times >= max(horizon, self.queries.state.since)
        data = data_among(columns)
        if data is not None:
            counted &= np.isin(np.arange(len(times)), data)
        for name in self.discretiser.measures:
            counted &= columns[name].mask
        places = np.flatnonzero(counted)
        self._new = places
        if not len(places) or not self._latest.are_suspect(key[places], times[places]):
            return []
        return self._gaps(key[places], times[places], places)

    def add(self, key: np.ndarray, times: np.ndarray, kept: np.ndarray) -> None:
        """Note that the rows that were last asked for are let in, as far as they are kept."""
        places = self._new[kept[self._new]]
        self._latest.update(key[places], times[places])

    def _rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Key and event time of the rows that count."""
        keys, times = [NO_ROWS], [NO_ROWS]
        for rows in (self.queries.state.rows, *self.queries.pending):
            fits = np.ones(len(rows), bool)
            if self.discretiser.measures:
                fits = rows.columns[fits_column(self.discretiser.measures)].values > 0
            keys.append(rows.key[fits])
            times.append(rows.time[fits])
        return np.concatenate(keys), np.concatenate(times)

    def _gaps(self, key: np.ndarray, times: np.ndarray, places: np.ndarray) -> list[Gap]:
        known_key, known_times = self._rows()
        near = np.isin(known_key, key)
        known = int(near.sum())
        key, times = np.concatenate([known_key[near], key]), np.concatenate([known_times[near], times])
        order = order_by(key, times)
        order = np.arange(len(key)) if order is None else order
        key, times = key[order], times[order]
        place = np.concatenate([np.full(known, -1), places])[order]
        tick = (times - self.offset) // self.every
        apart = (key[1:] == key[:-1]) & (tick[1:] - tick[:-1] > slides.MOST_TICKS)
        gaps = []
        for number in np.unique(key[1:][apart]).tolist():
            low, high = np.searchsorted(key, [number, number + 1]).tolist()
            ticks = tick[low:high].tolist()
            for i, other in slides.over_gaps(ticks, (place[low:high] < 0).tolist()).items():
                window = repr(self.discretiser.windows[0])
                gaps.append(Gap(int(place[low + i]), abs(ticks[i] - ticks[other]), int(times[low + other]), window))
        return gaps
