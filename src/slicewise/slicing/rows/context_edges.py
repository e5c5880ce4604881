"""Context edges: the starts and ends of windows that user code places. Shown to it with every row by edge windows."""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, overload

from slicewise.errors import DataError
from slicewise.times import INFINITY, LARGEST_TIME

__all__ = ["ContextEdges", "SortedEdges"]


class SortedEdges(Sequence[int]):
    """Edges to look at, sorted. They show what is there at any moment, and are never copied for it."""

    __slots__ = ("_times",)

    def __init__(self, times: list[int]) -> None:
        self._times = times

    def __len__(self) -> int:
        return len(self._times)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        return self._times[index]

    def __iter__(self) -> Iterator[int]:
        return iter(self._times)

    def __contains__(self, time: object) -> bool:
        try:
            at = bisect_left(self._times, operator.index(time))  # type: ignore[arg-type]
        except TypeError:
            return False
        return self._times[at : at + 1] == [time]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (list, tuple, SortedEdges)) and self._times == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._times)


class ContextEdges:
    """The starts and ends of one key's windows: the i-th start goes with the i-th end, a start without an end is open.

    Equal edges may be there more than once. What a call does wrong is noted in ``failure``, so that it stays wrong
    where user code catches the error. ``largest`` is how far from 0 edges may lie.

    >>> edges = ContextEdges()
    >>> edges.add_start(3), edges.add_end(9), edges.add_start(7)
    (None, None, None)
    >>> edges.starts, edges.ends, edges.windows()
    ([3, 7], [9], ([3, 7], [9, 4611686018427387904]))
    """

    def __init__(self, starts: Sequence[int] = (), ends: Sequence[int] = (), *, largest: int = LARGEST_TIME) -> None:
        self._starts, self._ends = list(starts), list(ends)
        self._largest = largest
        #: Where windows start and end, sorted; for user code to look at.
        self.starts, self.ends = SortedEdges(self._starts), SortedEdges(self._ends)
        self._horizon = -INFINITY
        self.failure: str | None = None
        #: Pairs before this one were there, and in order, before the call.
        self._unchanged = INFINITY

    # For user code

    def add_start(self, time: int) -> None:
        """Let a window start at a time at or after the horizon."""
        self._add(self._starts, time, "a start")

    def add_end(self, time: int) -> None:
        """Let a window end at a time at or after the horizon."""
        self._add(self._ends, time, "an end")

    def remove_start(self, time: int) -> None:
        """Take a start away; one at or after the horizon."""
        self._remove(self._starts, time, "a start")

    def remove_end(self, time: int) -> None:
        """Take an end away; one at or after the horizon."""
        self._remove(self._ends, time, "an end")

    # For those who show them

    def open(self, horizon: int) -> None:
        """Begin a call, which may act at or after a horizon."""
        self._horizon, self.failure, self._unchanged = horizon, None, INFINITY

    def check(self) -> None:
        """End a call: note an end that does not come after its start."""
        if self.failure is not None:
            return
        for i in range(self._unchanged, len(self._ends)):
            if i >= len(self._starts):
                self.failure = f"left an end at {self._ends[i]} without a start"
                return
            if self._ends[i] <= self._starts[i]:
                self.failure = f"left an end at {self._ends[i]} that is not after its start at {self._starts[i]}"
                return

    def copy(self) -> ContextEdges:
        """The same edges, to be changed for themselves."""
        return ContextEdges(self._starts, self._ends, largest=self._largest)

    def windows(self) -> tuple[list[int], list[int]]:
        """The starts, and for each its end; infinity where it has none."""
        missing = len(self._starts) - len(self._ends)
        return list(self._starts), self._ends + [INFINITY] * missing

    def begun(self, final: int) -> list[int]:
        """The starts, before a time before which edges are final, of windows that do not end before it."""
        return self._starts[bisect_left(self._ends, final) : bisect_left(self._starts, final)]

    def since(self, final: int) -> ContextEdges:
        """The edges without those of windows that end before a time; the last of these stays, to be looked at."""
        over = max(bisect_left(self._ends, final) - 1, 0)
        return ContextEdges(self._starts[over:], self._ends[over:], largest=self._largest)

    def to_data(self) -> tuple[list[int], list[int]]:
        """The edges as plain data."""
        return list(self._starts), list(self._ends)

    # Inside

    def _add(self, edges: list[int], time: Any, name: str) -> None:
        at = self._time(time, f"added {name}")
        place = bisect_right(edges, at)
        edges.insert(place, at)
        self._unchanged = min(self._unchanged, place)

    def _remove(self, edges: list[int], time: Any, name: str) -> None:
        at = self._time(time, f"removed {name}")
        place = bisect_left(edges, at)
        if edges[place : place + 1] != [at]:
            self._fail(f"removed {name} at {at}, where there is none")
        del edges[place]
        self._unchanged = min(self._unchanged, place)

    def _time(self, time: Any, what: str) -> int:
        """An edge's time, if a call may act there."""
        try:
            at = operator.index(time)
        except TypeError:
            self._fail(f"{what} at {time!r}, which is no event time: give a whole number, as `time` is")
        if abs(at) > self._largest:
            self._fail(f"{what} at {at}, which is out of the range of event times")
        if at < self._horizon:
            self._fail(f"{what} at {at}, before the horizon {self._horizon}")
        return at

    def _fail(self, failure: str) -> NoReturn:
        if self.failure is None:
            self.failure = failure
        raise DataError(failure)
