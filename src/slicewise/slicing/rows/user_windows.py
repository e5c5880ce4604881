"""Windows of the user's own making: Cutty's discretisation by user code.

User code is asked about rows in event-time order, key by key. What it remembers is kept as of the horizon, because the
order of later rows may still change: at each step it is copied, shown the rows since, and kept again as of the new
horizon.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from slicewise.errors import UserCodeError
from slicewise.labels import RowLabel
from slicewise.results import OPEN_END
from slicewise.slicing.rows.discretisers import Discretiser, Remembered, Retained
from slicewise.slicing.rows.ordered_rows import OrderedRows
from slicewise.slicing.steps import Step
from slicewise.slicing.window_ranges import WindowRanges
from slicewise.times import INFINITY
from slicewise.windows import Evict, UserDefined

__all__ = ["UserWindows", "raise_first"]


@dataclass(frozen=True, eq=False)
class _Memory:
    """What is kept of one key: the user's object, and the open windows (deterministic) or the front of the only one."""

    thing: Any
    open_at: tuple[int, ...] = ()
    front: int = 0


class _ByKey(Discretiser):
    """Asks about one key after the other, and puts together what comes back."""

    def find_on(
        self, view: OrderedRows, step: Step, memory: dict[int, _Memory] | None
    ) -> tuple[WindowRanges, Retained, dict[int, _Memory]]:
        """The windows due, what is needed after the step, and what to remember as of the new horizon."""
        kept = dict(memory or {})
        unshown, settled, needed = (
            view.first_at(step.old_horizon),
            view.first_at(step.horizon),
            view.first_at(step.horizon),
        )
        pieces, begins = [], []
        failures: list[UserCodeError] = []
        for s, key in enumerate(view.keys.tolist()):
            now = kept.get(key) or self._new()
            rows = _KeyRows(view, s, int(unshown[s]), int(settled[s]))
            if len(rows) or step.watermark >= INFINITY:
                try:
                    windows, now = self._ask(rows, now, step)
                except UserCodeError as error:
                    failures.append(error)
                    continue
                pieces.append((np.full(len(windows[0]), key), *windows))
            kept[key] = now
            needed[s] = min(needed[s], self._first_needed(now, rows))
            begins += [rows.index_of(position) for position in now.open_at]
        raise_first(failures)
        after = Retained(needed, np.array(begins, np.int64))
        if not pieces:
            none = np.empty(0, np.int64)
            return WindowRanges(none, none, none, none, none, none, none), after, kept
        key, low, high, start, end, decided = (np.concatenate(c) for c in zip(*pieces, strict=True))
        return WindowRanges(np.zeros(len(key), np.int64), key, low, high, start, end, decided), after, kept

    def _new(self) -> _Memory:
        raise NotImplementedError

    def _ask(self, rows: _KeyRows, now: _Memory, step: Step) -> tuple[tuple[np.ndarray, ...], _Memory]:
        raise NotImplementedError

    def _first_needed(self, now: _Memory, rows: _KeyRows) -> int:
        """The first row that is needed as such: by default that at the front of the window."""
        return rows.index_of(now.front)


class _KeyRows:
    """The rows of one key that user code has not been shown for good: positions in the view, and which are settled."""

    def __init__(self, view: OrderedRows, segment: int, low: int, settled: int) -> None:
        self.view = view
        self.segment = segment
        self.low, self.settled, self.high = low, max(settled, low), int(view.ends[segment])

    def __len__(self) -> int:
        return self.high - self.low

    def index_of(self, position: int) -> int:
        """Where in the view a position of this key lies."""
        return int(self.view.place_of(np.array([self.segment]), np.array([position]))[0])

    def position_of(self, index: int) -> int:
        """The position of a row of the view."""
        return int(self.view.position[index])


class UserWindows(_ByKey):
    """``user_defined``: the user's object says how many windows begin and end with each row, or what to evict."""

    def __init__(self, window: UserDefined) -> None:
        super().__init__([window])
        self.window = window

    def save(self, memory: dict[int, _Memory]) -> Remembered:
        return Remembered((), {k: (copy.deepcopy(vars(m.thing)), m.open_at, m.front) for k, m in memory.items()})

    def load(self, data: Remembered) -> dict[int, _Memory]:
        return {key: _Memory(self._with(attributes), *rest) for key, (attributes, *rest) in data.by_key.items()}

    def _with(self, attributes: dict[str, Any]) -> Any:
        thing = self.window.factory()
        vars(thing).update(copy.deepcopy(attributes))
        return thing

    def _new(self) -> _Memory:
        return _Memory(self.window.factory())

    def _first_needed(self, now: _Memory, rows: _KeyRows) -> int:
        return rows.settled if self.window.deterministic else super()._first_needed(now, rows)

    def _ask(self, rows: _KeyRows, now: _Memory, step: Step) -> tuple[tuple[np.ndarray, ...], _Memory]:
        thing = copy.deepcopy(now.thing)
        one, other = self._answers(rows, thing, rows.low, rows.settled, now.thing)
        settled = copy.deepcopy(thing)
        later = self._answers(rows, thing, rows.settled, rows.high, settled)
        first, second = np.concatenate([one, later[0]]), np.concatenate([other, later[1]])
        if self.window.deterministic:
            return self._begun_and_ended(rows, replace(now, thing=settled), first, second, step)
        return self._evicted(rows, replace(now, thing=settled), first, second, step)

    def _begun_and_ended(
        self, rows: _KeyRows, now: _Memory, begins: np.ndarray, ends: np.ndarray, step: Step
    ) -> tuple[tuple[np.ndarray, ...], _Memory]:
        time, row = rows.view.time, np.arange(rows.low, rows.high)
        opened = len(now.open_at) + np.cumsum(begins)
        short = np.flatnonzero(opened < np.cumsum(ends))
        if len(short):
            self._complain(rows, rows.low + short[0], f"ended more windows than had begun: {int(ends[short[0]])} ends")
        began = np.concatenate([[rows.index_of(p) for p in now.open_at], np.repeat(row, begins)]).astype(np.int64)
        ended = np.repeat(row, ends)
        high = np.concatenate([ended, np.full(len(began) - len(ended), rows.high)])
        over = np.arange(len(began)) < len(ended)
        decided = np.where(over, time[np.minimum(high, rows.high - 1)], INFINITY)
        end = np.where(over, decided, OPEN_END)
        due = (began < high) & (decided <= step.watermark)
        windows = tuple(c[due] for c in (began, high, time[began], end, decided))
        # As of the new horizon: windows begun by settled rows and not ended by them.
        before = int(begins[: rows.settled - rows.low].sum()) + len(now.open_at)
        gone = int(ends[: rows.settled - rows.low].sum())
        still = tuple(rows.position_of(int(b)) for b in began[gone:before])
        return windows, replace(now, open_at=still)

    def _evicted(
        self, rows: _KeyRows, now: _Memory, evicted: np.ndarray, triggers: np.ndarray, step: Step
    ) -> tuple[tuple[np.ndarray, ...], _Memory]:
        time, row = rows.view.time, np.arange(rows.low, rows.high)
        front = rows.index_of(now.front) + np.cumsum(evicted)
        short = np.flatnonzero(front > row + 1)
        if len(short):
            self._complain(rows, rows.low + short[0], f"evicted more rows than there are: {int(evicted[short[0]])}")
        due = np.flatnonzero(triggers.astype(bool) & (front <= row) & (time[row] < step.watermark))
        windows = (front[due], row[due] + 1, time[front[due]], time[row[due]], time[row[due]])
        settled = rows.settled - rows.low
        at = now.front + int(evicted[:settled].sum())
        return windows, replace(now, front=at)

    def _answers(self, rows: _KeyRows, thing: Any, low: int, high: int, before: Any) -> tuple[np.ndarray, np.ndarray]:
        """What user code says of some rows: begins and ends, or evictions and triggers; ``before`` is as ``thing`` was.

        An error names all rows with which it fails.
        """
        if low == high:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        if hasattr(thing, "on_batch"):
            try:
                one, other = self._answers_of_batch(rows, thing, low, high)
            except UserCodeError as error:
                self._complain_of_some(rows, low, high, before, error)
            return self._checked(rows, low, one, other)
        columns = {name: rows.view.column(name, slice(low, high)) for name in self.window.columns}
        listed = {name: column.to_pylist() for name, column in columns.items()}
        one, other = np.empty(high - low, np.int64), np.empty(high - low, np.int64)
        for i, time in enumerate(rows.view.time[low:high].tolist()):
            try:
                answer = thing.on_record(time, {name: values[i] for name, values in listed.items()})
            except Exception as error:
                self._complain(rows, low + i, f"raised {error!r}", error)
            one[i], other[i] = self._pair(rows, low + i, answer)
        return self._checked(rows, low, one, other)

    def _answers_of_batch(self, rows: _KeyRows, thing: Any, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
        """What ``on_batch`` says of some rows; an error if it fails with any of them."""
        columns = {name: rows.view.column(name, slice(low, high)) for name in self.window.columns}
        arrays = {n: c.values if c.valid is None else np.ma.array(c.values, mask=~c.valid) for n, c in columns.items()}
        try:
            answer = thing.on_batch(rows.view.time[low:high], arrays)
            one, other = (np.asarray(a) for a in answer)
        except Exception as error:
            self._complain_of_batch(rows, low, high, f"raised {error!r}", error)
        if one.shape != (high - low,) or other.shape != (high - low,) or one.dtype.kind not in "iub":
            self._complain_of_batch(rows, low, high, f"must give two integer arrays of that length; got {answer!r}")
        return one.astype(np.int64), other.astype(np.int64)

    def _failures(self, rows: _KeyRows, thing: Any, low: int, high: int) -> tuple[list[UserCodeError], Any]:
        """The rows with which ``on_batch`` fails, by halves: an error for each, and the object after all others."""
        trial = copy.deepcopy(thing)
        try:
            self._answers_of_batch(rows, trial, low, high)
        except UserCodeError as error:
            if high - low == 1:
                return [error], thing
        else:
            return [], trial
        middle = (low + high) // 2
        first, thing = self._failures(rows, thing, low, middle)
        second, thing = self._failures(rows, thing, middle, high)
        return [*first, *second], thing

    def _complain_of_some(self, rows: _KeyRows, low: int, high: int, before: Any, error: UserCodeError) -> NoReturn:
        """Name the rows with which ``on_batch`` fails; all of them, if it fails with each or only with all at once."""
        failures, _ = self._failures(rows, before, low, high)
        if len(failures) in (0, high - low):
            raise error
        raise_first(failures)
        raise AssertionError  # it has raised

    def _pair(self, rows: _KeyRows, at: int, answer: Any) -> tuple[int, int]:
        evicts = isinstance(answer, Evict)
        if evicts and not self.window.deterministic:
            return answer.n, int(answer.trigger)
        if self.window.deterministic and not evicts and _are_two_counts(answer):
            return int(answer[0]), int(answer[1])
        wanted = "two counts (begins, ends)" if self.window.deterministic else "sw.Evict(n, trigger)"
        hint = "; say deterministic=False" if evicts else ""
        self._complain(rows, at, f"must return {wanted}; got {answer!r}{hint}")

    def _checked(self, rows: _KeyRows, low: int, one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        wrong = np.flatnonzero((one < 0) | (other < 0))
        if len(wrong):
            at = int(wrong[0])
            self._complain(rows, low + at, f"must not return negative counts; got {int(one[at])} and {int(other[at])}")
        return one, other

    def _complain_of_batch(
        self, rows: _KeyRows, low: int, high: int, what: str, cause: Exception | None = None
    ) -> NoReturn:
        if high - low == 1:
            self._complain(rows, low, what, cause)
        first, last = rows.view.time[[low, high - 1]].tolist()
        label = RowLabel({}, first, last=last, rows=high - low)
        raise UserCodeError(repr(self.window), what, range(low, high), label) from cause

    def _complain(self, rows: _KeyRows, at: int, what: str, cause: Exception | None = None) -> NoReturn:
        label = RowLabel({}, int(rows.view.time[at]))
        raise UserCodeError(repr(self.window), what, [at], label) from cause


def _are_two_counts(answer: Any) -> bool:
    return (
        isinstance(answer, (tuple, list)) and len(answer) == 2 and all(isinstance(n, (int, np.integer)) for n in answer)
    )


def raise_first(failures: list[UserCodeError]) -> None:
    """Raise the first of some failures, with the rows of the others: all of them are left out."""
    if failures:
        first = failures[0]
        rows = [row for error in failures for row in error.rows]
        others = len(rows) - (first.place.rows if first.place else 1)
        raise UserCodeError(first.code, first.failure, rows, first.place, others) from first.__cause__
