"""The feed: between the calls of an operator and its core. Rows that come one at a time wait here, and so does what a
call has to hand out: results, and what is wrong with rows and windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from slicewise.errors import DataError, RefusedRowsError, SlicewiseError
from slicewise.results import Results
from slicewise.slicing.core import Core
from slicewise.slicing.intake.ahead import AheadLimit
from slicewise.slicing.intake.input import Batch
from slicewise.slicing.intake.row_buffer import RowBuffer
from slicewise.slicing.intake.user_code import take_window_failures
from slicewise.slicing.outbox import Outbox
from slicewise.times import INFINITY
from slicewise.workload import Workload

__all__ = ["Feed"]


class Feed:
    """Feeds the core of one operator.

    Attributes
    ----------
    process
        Takes one row: ``process(time, row, key=None)``.
    """

    def __init__(self, core: Core, ahead: AheadLimit | None) -> None:
        self._core = core
        self._ahead = ahead
        self._outbox = Outbox()
        self._closed = False
        self._buffer = RowBuffer(core.workload, core.ordered, self._emptied, self._next_due, ahead)
        self.process = self._buffer.process

    @property
    def held(self) -> Results:
        """Results that wait for the next call, because an error went first."""
        return self._outbox.results

    def check_open(self) -> None:
        """Refuse to go on after the end of the stream."""
        if self._closed:
            raise DataError("this operator is closed; make a new one with workload.operator()")

    def take(self, batch: Batch, marks: Sequence[tuple[int, int]] = ()) -> Results:
        """Let in many rows at once, behind those that came one at a time.

        ``marks`` are watermarks among them, each with how many rows come before it.
        """
        self._flush()
        if marks and len(batch):
            self._core.check(batch)  # what cannot be read is refused before any of it is in
        at, stuck = 0, False
        for place, watermark in marks:
            self._take(batch.pick(np.arange(at, place)))
            at, stuck = place, stuck or not self._pass(watermark)
        self._take(batch.pick(np.arange(at, len(batch))) if at else batch)
        return self._outbox.released()

    def _take(self, batch: Batch) -> None:
        if self._ahead is not None and len(batch):
            batch, error = self._ahead.judged(batch)
            self._outbox.refuse(error)
        if len(batch.times):
            self._insert(batch)
            self._follow_rows()

    def _pass(self, watermark: int) -> bool:
        """Move the watermark in the middle of a batch; what is wrong is raised when all rows are in.

        False if it could not be moved, because a window has no answer: it will be tried again with the next one.
        """
        while True:
            try:
                self._step(watermark)
            except RefusedRowsError as error:
                self._outbox.refuse(error)  # it left the rows out, and the step can be taken again
            except SlicewiseError as error:
                self._outbox.refuse(error)
                return False
            else:
                return True

    @property
    def newest(self) -> int:
        """The latest event time of rows that come in order."""
        return self._buffer.newest

    def watermarks_before(self, batch: Batch, marks: Sequence[tuple[int, int]]) -> list[int]:
        """Where the watermark stands before each of those that come among rows."""
        before, stands = [], max(self._core.watermark, self._buffer.newest if self._core.ordered else -INFINITY)
        for place, watermark in marks:
            if self._core.ordered and place:
                stands = max(stands, int(batch.times[:place].max()))
            before.append(stands)
            stands = max(stands, watermark)
        return before

    def advance(self, watermark: int) -> Results:
        """Move the watermark."""
        self.flush()
        self._step(watermark)
        return self._outbox.released()

    def close(self) -> Results:
        """The end of the stream."""
        results = self.advance(INFINITY)
        self._closed = True
        self._buffer.recheck_next()
        return results

    def flush(self) -> None:
        """Hand rows that came one at a time to the core, and raise what is wrong with them."""
        self._flush()
        self._outbox.raise_errors()

    def follow(self, workload: Workload) -> None:
        """Read rows as another workload needs them, from the next row on."""
        self._buffer.workload = workload
        self._buffer.recheck_next()

    def restore(self, held: Results) -> None:
        """Go on from a state that was put into the core, with results that waited."""
        self._outbox = Outbox()
        self._outbox.add(held)
        self._buffer.time_type = self._core.time_type
        self._buffer.recheck_next()

    def _emptied(self) -> Results:
        """Empty the buffer, because it is full or because a row ends windows."""
        self._flush()
        return self._outbox.released()

    def _next_due(self) -> tuple[int, int]:
        """The event time of the first row that lets windows be reported, and how many rows let others."""
        self.check_open()
        if not self._core.ordered:
            return INFINITY, INFINITY
        return (-INFINITY, 1) if self._core.engine is None else self._core.engine.next_due()

    def _flush(self) -> None:
        if not len(self._buffer):
            return
        batch = self._buffer.batch(self._core.types)
        self._core.bound(batch)
        self._buffer.clear(int(batch.times.max()))
        try:
            self._insert(batch)
        except Exception:
            self._take_one_by_one(batch)
        else:
            self._follow_rows()

    def _take_one_by_one(self, batch: Batch) -> None:
        """Let in all rows but those that cannot be; the first of them is named in the error."""
        refused: list[tuple[int, Exception]] = []
        for i in range(len(batch)):
            try:
                self._insert(batch.pick(np.array([i])))
            except Exception as error:
                refused.append((int(batch.times[i]), error))
            else:
                self._follow_rows()
        if refused:
            time, reason = refused[0]
            raise DataError(f"the row at time {time} cannot be taken, and was left out: {reason}") from reason

    def _insert(self, batch: Batch) -> None:
        for refusal in self._core.insert(batch).refusals:
            self._outbox.refuse(refusal.error)
        engine = self._core.engine
        assert engine is not None
        self._buffer.time_type = self._core.time_type
        self._buffer.latest = engine.latest
        self._buffer.recheck_next()

    def _follow_rows(self) -> None:
        """Where every row is its own watermark, report what the rows that are in have ended."""
        engine = self._core.engine
        if not self._core.ordered or engine is None or engine.latest <= -INFINITY:
            return
        try:
            self._step(engine.latest)
        except RefusedRowsError as error:
            self._outbox.refuse(error)  # the rows are in, and what is wrong with them is raised with what else is

    def _step(self, watermark: int) -> None:
        engine = self._core.engine
        if engine is not None:
            engine.plan.failures.clear()  # of a step that was not finished
        self._outbox.add(self._core.step(watermark))
        if engine is not None and engine.plan.failures:
            for failure in take_window_failures(engine.plan):
                self._outbox.refuse(failure)
        self._core.renumber_keys()
