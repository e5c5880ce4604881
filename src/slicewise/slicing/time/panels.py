"""Panels in a watermark step: rows of results that hold the values of several queries, or only differences.

Queries of a panel have windows that end at the same ticks, so those that end together lie in each other, and the
longest one has rows wherever any has::

    tick                 e
    1 hour           [--)
    24 hours   [--------)

In the complete form a panel has a row for every window of the longest kind that has rows. Where only differences are
shown, values are computed at the ticks at which a slice enters or leaves one of the windows: at most two for each slice
and kind of window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from slicewise.columns import Column
from slicewise.kernels import order_by, segment_starts, sorted_unique
from slicewise.plan.panels import Panel
from slicewise.plan.plan import Plan
from slicewise.results import INSERT, RETRACT, Block
from slicewise.slicing.answers.answers import Answers
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.answers.reported_ticks import EvaluatedTicks, ReportedTicks
from slicewise.slicing.steps import Step
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.window_manager import WindowSlices, corrected_windows, due_windows, ended_windows
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.times import INFINITY

__all__ = ["Panels", "Ticks", "slide_of"]

#: The reported ticks of each panel, by its name.
Ticks = Mapping[str, ReportedTicks]
KeysAndEnds = tuple[np.ndarray, np.ndarray]


def slide_of(plan: Plan) -> int:
    """How much longer slices are kept than a window needs them, so that it is known when they leave."""
    if not plan.form.differences:
        return 0
    return max((window.slides[1] for window in plan.windows), default=0)


class Panels:
    """The panels of a plan."""

    def __init__(self, plan: Plan) -> None:
        self._panels = [(panel, _PanelWindows.of(plan, panel)) for panel in plan.panels]
        self._differences, self._lateness = plan.form.differences, plan.workload.lateness

    def report(
        self, step: Step, reported: ReportedWindows, ticks: Ticks, slices: WindowSlices, answers: Answers
    ) -> tuple[ReportedWindows, Ticks, list[Block]]:
        """The rows of one step; what was reported after it, as windows or as ticks."""
        blocks: list[Block] = []
        after: dict[str, ReportedTicks] = {}
        for panel, windows in self._panels:
            rows = _Rows(panel, windows, slices, answers)
            known = ticks.get(panel.name, ReportedTicks.none())
            if windows.kinds.listed is not None:
                moved = [step.old_horizon, step.old_watermark, step.horizon, step.watermark]
                limits = () if answers.limits is None else (answers.limits.start, answers.limits.due)
                rows_between = np.array(slices.span if len(slices) else (), np.int64)
                windows.cover(np.array(moved), rows_between, known.end, known.due_end, *limits)
            if self._differences:
                after[panel.name], shown = rows.differences(step, known)
            else:
                reported, shown = rows.complete(step, reported, corrects=bool(self._lateness))
            blocks += shown
        return reported, after, blocks


@dataclass(frozen=True, eq=False)
class _PanelWindows:
    """Where the windows of a panel lie.

    Attributes
    ----------
    kinds
        The different windows of its queries, and for each query which of them it has.
    extents, slide
        How long windows of each kind are at least and at most, and how far ticks are apart at most.
    longest
        The longest of them alone, with its number among the panel's kinds and among the plan's windows.
    every_tick
        Whether values change from tick to tick though no row enters or leaves.
    """

    kinds: PeriodicWindows
    kind_of: tuple[int, ...]
    extents: tuple[tuple[int, int], ...]
    slide: int
    longest: PeriodicWindows
    longest_kind: int
    number: int
    every_tick: bool

    @classmethod
    def of(cls, plan: Plan, panel: Panel) -> _PanelWindows:
        queries = [plan.workload.queries[number] for number in panel.queries]
        kinds = list(dict.fromkeys(query.window for query in queries))
        longest = max(kinds, key=lambda window: window.reach or 0)
        every_tick = any(a.base.lasts for query in queries for a in query.aggregates.values())
        return cls(
            PeriodicWindows([window.at_ticks for window in kinds]),
            tuple(kinds.index(query.window) for query in queries),
            tuple(window.extents for window in kinds),
            longest.slides[1],
            PeriodicWindows([longest.at_ticks]),
            kinds.index(longest),
            plan.windows.index(longest),
            every_tick,
        )

    def cover(self, *times: np.ndarray) -> None:
        """Know the windows of a calendar around some event times, and some before and behind them."""
        near = np.concatenate([array[(array > -INFINITY) & (array < INFINITY)] for array in times])
        if not len(near):
            return
        margin = max(most for _, most in self.extents) + 3 * self.slide
        for periodic in (self.kinds, self.longest):
            periodic.cover(int(near.min()) - margin, int(near.max()) + margin)

    def tick_after(self, time: np.ndarray | int) -> np.ndarray:
        """The first tick after a time."""
        one = np.zeros(1, np.int64)
        return self.longest.ends(one, self.longest.ended_by(one, time) + 1)

    def bounds(self, kind: int, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The starts of the windows of one kind that end at ticks, and of those that end one tick before."""
        one = np.full(1, kind)
        number = self.kinds.ended_by(one, end)
        return self.kinds.starts(one, number), self.kinds.starts(one, number - 1)

    def moved(self, kind: int, time: np.ndarray, *, leaves: bool) -> np.ndarray:
        """The ticks at which slices of these times enter windows of a kind or have left them; none if in no window."""
        one = np.full(1, kind)
        first, last = self.kinds.first(one, time), self.kinds.last(one, time)
        return np.where(first <= last, self.kinds.ends(one, last + 1 if leaves else first), -INFINITY)

    def moves(self, slices: Slices, horizon: int = -INFINITY) -> tuple[np.ndarray, np.ndarray]:
        """For each kind and slice, the tick at which it enters windows and at which it has left; a kind in each row.

        A slice of which no window that ends behind the horizon has ever heard enters at the first of these.
        """
        enters, leaves = [], []
        for kind in range(len(self.kinds)):
            one = np.full(1, kind)
            first, last = self.kinds.first(one, slices.first), self.kinds.last(one, slices.first)
            entered, left = self.kinds.ends(one, first), self.kinds.ends(one, last + 1)
            if horizon > -INFINITY:
                entered = np.maximum(entered, self.tick_after(horizon))
            held = (first <= last) & (entered < left)
            # Where it is in no window of the kind, it enters and leaves at no tick.
            enters.append(np.where(held, entered, -INFINITY))
            leaves.append(np.where(held, left, -INFINITY))
        return np.array(enters), np.array(leaves)


@dataclass(frozen=True, eq=False)
class _Rows:
    """One panel in one step."""

    panel: Panel
    windows: _PanelWindows
    slices: WindowSlices
    answers: Answers

    # Every tick that has rows

    def complete(self, step: Step, reported: ReportedWindows, *, corrects: bool) -> tuple[ReportedWindows, list[Block]]:
        """Rows for the ticks that have passed, and for those to which rows were added."""
        reported, due, change, revision = due_windows(
            self.windows.longest, self.slices, step, reported, corrects=corrects, family=self.windows.number
        )
        if not len(due):
            return reported, []
        change = np.full(len(due), INSERT) if change is None else change
        revision = np.zeros(len(due), np.int64) if revision is None else revision
        values = self._values(due.key, due.end)
        return reported, [self._block(due.key, due.end, change, revision, values)]

    # Only those that differ

    def differences(self, step: Step, ticks: ReportedTicks) -> tuple[ReportedTicks, list[Block]]:
        """Rows for ticks that differ from the one before, and corrections of what differs otherwise than before."""
        (key, end), due = self._due(step, ticks)
        held = self._ranges(self.windows.longest_kind, key, end)
        now = EvaluatedTicks(key, end, held.high > held.low, self._values(key, end) if len(key) else ())
        after, changes = ticks.updated(now) if len(key) else (ticks, None)
        blocks = []
        if changes is not None:
            for retracted in (True, False):
                some = changes.take(np.flatnonzero((changes.change == RETRACT) == retracted))
                if len(some.at):
                    values = () if retracted else tuple(v.take(some.at) for v in after.values)
                    rows = after.key[some.at], after.end[some.at], some.change, some.revision
                    blocks.append(self._block(*rows, values))
        return after.settled(step.horizon).with_due(*due), blocks

    def _due(self, step: Step, ticks: ReportedTicks) -> tuple[KeysAndEnds, KeysAndEnds]:
        """The ticks whose values must be computed, and those that will have to be once the watermark has passed."""
        moments = [(ticks.due_key, ticks.due_end), self._moved(step), *self._first_ticks(step)]
        if self.windows.every_tick:
            ended = ended_windows(self.windows.longest, self.slices, step.old_watermark, step.watermark)
            moments.append((ended.key, ended.end))
        late: list[KeysAndEnds] = []
        if step.old_watermark > -INFINITY:
            fresh = self.slices.unreported_before(step.old_watermark)
            if len(fresh):
                moments += self._touched(fresh, step, ticks)
                late = self._late_entries(fresh, step)
        key, end = self._unique(moments + late)
        passed = end <= step.watermark
        wanted = passed & (end > step.old_horizon) & self._may_report(end)
        key_ahead, end_ahead = self._unique([(ticks.due_key, ticks.due_end), *late])
        ahead = end_ahead > step.watermark
        return (key[wanted], end[wanted]), (key_ahead[ahead], end_ahead[ahead])

    def _moved(self, step: Step) -> KeysAndEnds:
        """The ticks between two watermarks at which slices enter or leave windows."""
        whole = self.slices.whole
        if whole is None:
            return self._moved_of_keys(step)
        keys, ends = [], []
        for kind in range(len(self.windows.kinds)):
            for behind, furthest in ((0, 0), self.windows.extents[kind]):
                # Those that enter, then those that leave: others are too old or too young for it.
                oldest, youngest = step.old_watermark - furthest - self.windows.slide, step.watermark - behind
                some = np.flatnonzero((whole.first >= oldest) & (whole.first < youngest))
                end = self.windows.moved(kind, whole.first[some], leaves=bool(behind))
                passed = (end > step.old_watermark) & (end <= step.watermark)
                keys.append(whole.key[some[passed]])
                ends.append(end[passed])
        return np.concatenate(keys), np.concatenate(ends)

    def _moved_of_keys(self, step: Step) -> KeysAndEnds:
        """The same where slices are not at hand: looked up for every key, of which few ticks are asked."""
        one = np.zeros(1, np.int64)
        numbers = self.windows.longest.ended_by(one, np.array([step.old_watermark, step.watermark]))
        ticks = self.windows.longest.ends(one, np.arange(numbers[0] + 1, numbers[1] + 1))
        keys = self.slices.keys()
        key, end = np.tile(keys, len(ticks)), np.repeat(ticks, len(keys))
        before = np.repeat(self.windows.longest.ends(one, np.arange(numbers[0], numbers[1])), len(keys))
        moved = np.zeros(len(key), bool)
        for kind in range(len(self.windows.kinds)):
            start, start_before = self.windows.bounds(kind, end)
            for low, high in ((np.maximum(start, before), end), (start_before, np.minimum(start, before))):
                moved |= self.slices.locate(key, low) < self.slices.locate(key, high)
        return key[moved], end[moved]

    def _first_ticks(self, step: Step) -> list[KeysAndEnds]:
        """The first tick that a query reports which was added later, for all keys."""
        limits = self.answers.limits
        if limits is None:
            return []
        (query,) = self.panel.queries
        one, start, due = np.zeros(1, np.int64), int(limits.start[query]), int(limits.due[query])
        if max(start, due) <= -INFINITY:
            return []
        longest = self.windows.longest
        first = longest.ended_by(one, np.array([due])) + 1
        if start > -INFINITY:
            length = longest.ends(one, first) - longest.starts(one, first)
            number = longest.ended_by(one, start + length - 1) + 1
            first = np.maximum(first, number)
        keys, end = self.slices.keys() if len(self.slices) else np.empty(0, np.int64), longest.ends(one, first)
        passes = bool(step.old_watermark < end[0] <= step.watermark)
        return [(keys, np.full(len(keys), end[0]))] if passes else []

    def _may_report(self, end: np.ndarray) -> np.ndarray:
        """Whether ticks are such that queries may report them, also those that were added later."""
        allowed = np.ones(len(end), bool)
        limits = self.answers.limits
        if limits is None or not len(end):
            return allowed
        for query in self.panel.queries:
            start, _ = self.windows.bounds(self.windows.kind_of[self.panel.queries.index(query)], end)
            allowed &= (start >= limits.start[query]) & (end > limits.due[query])
        return allowed

    def _touched(self, fresh: Slices, step: Step, ticks: ReportedTicks) -> list[KeysAndEnds]:
        """The ticks at or before the watermark whose values slices with new rows may have changed."""
        enters, leaves = self.windows.moves(fresh, step.old_horizon)
        end = np.concatenate([enters, leaves])
        which, place = np.nonzero(end > -INFINITY)
        touched = [(fresh.key[place], end[which, place])]
        keys = sorted_unique(fresh.key)
        at = np.searchsorted(keys, fresh.key)
        low, high = np.full(len(keys), INFINITY), np.full(len(keys), -INFINITY)
        np.minimum.at(low, at, np.where(enters > -INFINITY, enters, INFINITY).min(axis=0))
        np.maximum.at(high, at, leaves.max(axis=0))
        known = ticks.between(keys, low, high)
        touched.append((ticks.key[known], ticks.end[known]))
        if self.windows.every_tick:
            changed, _ = corrected_windows(self.windows.longest, self.slices, step.old_horizon, step.old_watermark)
            touched.append((changed.key, changed.end))
        # What lies behind the old watermark comes with all others.
        return [(key[end <= step.old_watermark], end[end <= step.old_watermark]) for key, end in touched]

    def _late_entries(self, fresh: Slices, step: Step) -> list[KeysAndEnds]:
        """The first tick behind the horizon, where rows begin to count that were too late for ticks before it."""
        first = self.windows.tick_after(step.old_horizon)[0]
        enters, leaves = self.windows.moves(fresh)
        late = ((enters > -INFINITY) & (enters < first) & (leaves > first)).any(axis=0)
        return [(fresh.key[late], np.full(int(late.sum()), first))]

    def _unique(self, moments: Sequence[KeysAndEnds]) -> KeysAndEnds:
        """Keys and ticks in order, each once."""
        key, end = (np.concatenate(column) for column in zip(*moments, strict=True))
        if not len(key):
            return key, end
        # By the numbers of ticks, which are small, and so are sorted faster.
        order = order_by(key, self.windows.longest.ended_by(np.zeros(1, np.int64), end))
        key, end = (key, end) if order is None else (key[order], end[order])
        starts = segment_starts((key[1:] != key[:-1]) | (end[1:] != end[:-1]))
        return key[starts], end[starts]

    # Values

    def _ranges(self, kind: int, key: np.ndarray, end: np.ndarray) -> WindowRanges:
        """The windows of one kind that end at ticks, with or without rows."""
        start, _ = self.windows.bounds(kind, end)
        low, high = self.slices.locate(key, start), self.slices.locate(key, end)
        return WindowRanges(np.zeros(len(key), np.int64), key, low, high, start, end, end)

    def _values(self, key: np.ndarray, end: np.ndarray) -> tuple[Column, ...]:
        """The values of all queries at ticks, side by side."""
        ranges = {kind: self._ranges(kind, key, end) for kind in dict.fromkeys(self.windows.kind_of)}
        values: Sequence[Column] = ()
        for query, kind in zip(self.panel.queries, self.windows.kind_of, strict=True):
            values = (*values, *self.answers.values(query, ranges[kind], self.slices))
        return tuple(values)

    def _block(
        self, key: np.ndarray, end: np.ndarray, change: np.ndarray, revision: np.ndarray, values: tuple[Column, ...]
    ) -> Block:
        start, _ = self.windows.bounds(self.windows.longest_kind, end)
        query = np.full(len(key), self.panel.schema_query)
        return Block(self.answers.keys.decode(key), query, start, end, change, revision, values)
