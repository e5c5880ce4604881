"""SlickDeque: a running answer per range where values can be subtracted, and a deque of candidates where they cannot.

A. U. Shein, P. K. Chrysanthis, A. Labrinidis: "SlickDeque: High throughput and low latency incremental sliding-window
aggregation", EDBT 2018. Algorithm 1 is :class:`_Running`, Algorithm 2 is :class:`_Candidates`.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.multi import Multi
from slicewise.aggregates.order import Max, Min, Range
from slicewise.errors import AggregateError, QueryError
from slicewise.swag.base import FactCard, OnPartials, SlidingWindow, is_selective, need_subtraction
from slicewise.swag.rolling import batch_of, survivors

__all__ = ["SlickDeque"]

_WHOLE = sys.maxsize


class _Running:
    """Inv: all partials in a queue, and the answer for each range, brought up to date by a combine and an invert."""

    def __init__(self, aggregate: Aggregate, ranges: Sequence[int]) -> None:
        need_subtraction("SlickDeque", aggregate, "use TwoStacks, DABA or FlatFIT")
        self.combine, self.invert, self.identity = aggregate.combine, aggregate.invert, aggregate.identity
        self.partials: deque[Any] = deque()
        # A range longer than the window stands for all of it.
        self.answers = dict.fromkeys(sorted(set(ranges)) or [_WHOLE], aggregate.identity)

    def push(self, partial: Any) -> None:
        partials, answers, combine = self.partials, self.answers, self.combine
        n = len(partials)
        if _WHOLE in answers:  # and nothing else: nothing to subtract, nobody leaves
            answers[_WHOLE] = combine(answers[_WHOLE], partial)
            partials.append(partial)
            return
        fresh = {}
        for k, answer in answers.items():
            answer = combine(answer, partial)
            fresh[k] = answer if k > n else self.invert(answer, partials[n - k])
        partials.append(partial)
        self.answers = fresh

    def push_batch(self, partials: list[Any], total: Any) -> None:
        if _WHOLE in self.answers:
            self.answers[_WHOLE] = self.combine(self.answers[_WHOLE], total)
            self.partials.extend(partials)
            return
        for partial in partials:
            self.push(partial)

    def evict(self, n: int) -> None:
        partials, answers = self.partials, self.answers
        for _ in range(n):
            size = len(partials)
            gone = partials.popleft()
            for k, answer in answers.items():
                if k >= size:
                    answers[k] = self.invert(answer, gone) if partials else self.identity

    def query(self, last: int) -> Any:
        answers, size = self.answers, len(self.partials)
        if last in answers:
            return answers[last]
        if last == size:
            for k, answer in answers.items():
                if k >= size:
                    return answer
        whole = answers.get(_WHOLE)
        if whole is not None and last > size - last:  # cheaper to take the others out
            return reduce(self.invert, islice(self.partials, size - last), whole)
        return reduce(self.combine, islice(self.partials, size - last, None))

    def query_many(self, ranges: Sequence[int]) -> list[Any]:
        return [self.query(k) for k in ranges]

    def oldest(self) -> Iterator[Any]:
        return iter(self.partials)

    def check(self, front: int, back: int) -> None:
        assert len(self.partials) == back - front


class _Candidates:
    """Non-Inv: the values that may yet be an answer, each with its position, in a deque of nodes.

    CPython's ``deque`` is the structure that the paper asks for, a doubly linked list of chunks (of 64 nodes).
    """

    def __init__(self, aggregate: Aggregate, keep_values: bool) -> None:
        self.aggregate = aggregate
        self.combine = aggregate.combine
        self.positions: deque[int] = deque()
        self.values: deque[Any] = deque()
        self.kept: deque[Any] | None = deque() if keep_values else None
        self.front = self.back = 0

    def push(self, partial: Any) -> None:
        combine, beaten = self.combine, 0
        for tail in reversed(self.values):
            picked = combine(tail, partial)
            if picked is not partial and picked != partial:
                if picked is not tail and picked != tail:
                    raise AggregateError(
                        f"`combine` of `{self.aggregate.name}` must give one of its two arguments to run on "
                        f"SlickDeque; got {picked!r} from {tail!r} and {partial!r}: use TwoStacks, DABA or FlatFIT"
                    )
                break
            beaten += 1
        # Nothing is removed before everything is compared, so that a `combine` that raises leaves all as it was.
        for _ in range(beaten):
            self.values.pop()
            self.positions.pop()
        self.values.append(partial)
        self.positions.append(self.back)
        self.back += 1
        if self.kept is not None:
            self.kept.append(partial)

    def push_batch(self, partials: list[Any], standing: Sequence[int] | None) -> None:
        """Push a batch of which only those ``standing`` beat all that follow them; None if they are not known."""
        if standing is None:
            for partial in partials:
                self.push(partial)
            return
        first = self.back
        for i in standing:
            self.back = first + i
            self.push(partials[i])
        self.back = first + len(partials)
        if self.kept is not None:
            for _ in standing:
                self.kept.pop()
            self.kept.extend(partials)

    def evict(self, n: int) -> None:
        self.front += n
        positions, front = self.positions, self.front
        while positions and positions[0] < front:
            positions.popleft()
            self.values.popleft()
        if self.kept is not None:
            for _ in range(n):
                self.kept.popleft()

    def query(self, last: int) -> Any:
        start = self.back - last
        if start <= self.positions[0]:
            return self.values[0]
        return next(value for position, value in zip(self.positions, self.values, strict=True) if position >= start)

    def query_many(self, ranges: Sequence[int]) -> list[Any]:
        """One pass over the deque, from the longest range to the shortest: their answers lie in this order."""
        answers: list[Any] = [None] * len(ranges)
        nodes = zip(self.positions, self.values, strict=True)
        position, value = next(nodes)
        for i in sorted(range(len(ranges)), key=ranges.__getitem__, reverse=True):
            start = self.back - ranges[i]
            while position < start:
                position, value = next(nodes)
            answers[i] = value
        return answers

    def oldest(self) -> Iterator[Any]:
        if self.kept is None:
            raise QueryError(
                "`SlickDeque` drops values that cannot be an answer any more and does not know the oldest ones; "
                "build it with keep_values=True to enforce a policy"
            )
        return iter(self.kept)

    def check(self, front: int, back: int) -> None:
        positions = list(self.positions)
        assert (self.front, self.back) == (front, back)
        assert len(positions) == len(self.values) <= back - front
        assert positions == sorted(set(positions))
        assert not positions or front <= positions[0]
        # The newest value is always a candidate.
        assert bool(positions) == (front < back)
        assert not positions or positions[-1] == back - 1
        assert self.kept is None or len(self.kept) == back - front


class _Members:
    """Several strategies side by side, for an aggregate made of others: sw.multi, and a range of two extremes."""

    def __init__(
        self,
        members: Sequence[_Running | _Candidates | _Members],
        split: Callable[[Any], Sequence[Any]],
        join: Callable[[Sequence[Any]], Any],
    ) -> None:
        self.members, self.split, self.join = members, split, join

    def push(self, partial: Any) -> None:
        for member, part in zip(self.members, self.split(partial), strict=True):
            member.push(part)

    def evict(self, n: int) -> None:
        for member in self.members:
            member.evict(n)

    def query(self, last: int) -> Any:
        return self.join([member.query(last) for member in self.members])

    def query_many(self, ranges: Sequence[int]) -> list[Any]:
        return list(map(self.join, zip(*(member.query_many(ranges) for member in self.members), strict=True)))

    def oldest(self) -> Iterator[Any]:
        return map(self.join, zip(*(member.oldest() for member in self.members), strict=True))

    def check(self, front: int, back: int) -> None:
        for member in self.members:
            member.check(front, back)


class SlickDeque(SlidingWindow):
    """Chooses by the aggregate: subtract if it can be inverted (Inv), keep candidates if it picks one value (Non-Inv).

    Non-Inv, the maximum of the paper's Example 3: a new value removes all smaller ones from the back, since they leave
    before it and can never be the answer again. The answer for a range is the first node in it, counted from the front;
    several ranges are answered in one pass, the longest first::

        insert 6, 5, 0       6  5  0
        insert 1             6  5  1           0 is beaten
        insert 3             6  5  3           1 is beaten; query(last=5) is 6, query(last=3) is 3
        evict, insert 4         5  4           6 has left, 3 is beaten

    Inv, for a sum: one answer for each of ``ranges``, to which every value is added once and from which it is
    subtracted once. ``sw.multi`` and ``sw.range_`` are taken apart, each member in the way that suits it.

    Parameters
    ----------
    aggregate
        One that can be inverted and commutes, such as ``sw.sum()``, or whose ``combine`` gives one of its arguments,
        such as ``sw.max()``; an aggregate of your own declares the latter with an attribute ``selective = True``.
    ranges
        Inv: the numbers of latest values for which an answer is kept up to date; by default that of the whole window.
        Other ranges are answered too, by folding them.
    keep_values
        Non-Inv: keep the partial of every single value too, which ``enforce`` needs; n more of space.

    Notes
    -----
    Equal values are one: the deque keeps the newer. On floats the running answers drift by rounding, and an infinity or
    a NaN stays in them: TwoStacks and DABA have neither trouble.

    Examples
    --------
    >>> from slicewise.aggregates import max, sum
    >>> window = SlickDeque(max())
    >>> window.insert_many([6, 5, 0, 1, 3])
    >>> list(window._strategy.values), window.query_many([3, 5])
    ([6, 5, 3], [3, 6])
    >>> window.evict()
    >>> window.insert(4)
    >>> list(window._strategy.values), window.query()
    ([5, 4], 5)

    >>> window = SlickDeque(sum(), ranges=[3, 5])
    >>> window.insert_many([6, 5, 0, 1, 3])
    >>> window._strategy.answers
    {3: (4, 3), 5: (15, 5)}
    """

    facts = FactCard(
        needs="associative; invertible and commutative (Inv) or combine gives one of its arguments (Non-Inv)",
        order="first in, first out",
        time="Inv 2 per range and slide; Non-Inv below 2 per slide for all ranges together, n worst",
        space="Inv n + 1 per range; Non-Inv 2 to 2n",
        published="Shein et al., EDBT 2018",
    )
    several_ranges = True

    def __init__(self, aggregate: Aggregate, ranges: Iterable[int] = (), keep_values: bool = False) -> None:
        super().__init__(aggregate)
        ranges = list(ranges)
        for k in ranges:
            if not isinstance(k, int) or isinstance(k, bool) or k < 1:
                raise QueryError(f"`ranges` must be positive counts of values; got {k!r}")
        self._front = self._back = 0
        self._strategy = _strategy(aggregate, ranges, keep_values)

    def __len__(self) -> int:
        return self._back - self._front

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: Inv O(1), a combine and an invert per range. Non-Inv O(1) amortised, below two combines;
        n for a value that beats a whole window.
        """
        self._strategy.push(self._lift(value))
        self._back += 1

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back; an array of numbers is totalled, or its candidates are found, in NumPy first."""
        batch, strategy = batch_of(self.aggregate, values), self._strategy
        if batch is None or isinstance(strategy, _Members):
            super().insert_many(values)
            return
        if isinstance(strategy, _Running):
            strategy.push_batch(batch.partials(), batch.total())
        else:
            strategy.push_batch(batch.partials(), survivors(batch.values, largest=isinstance(self.aggregate, Max)))
        self._back += len(batch)

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(n); an invert for each range as long as the window (Inv), no combine (Non-Inv).
        """
        self._check_evict(n)
        self._strategy.evict(n)
        self._front += n

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window, or of its ``last`` values.

        Runtime complexity: Inv O(1) for one of ``ranges``, O(last) otherwise. Non-Inv O(1) for the whole window,
        O(nodes) otherwise, no combine.
        """
        if last is not None:
            self._check_last(last)
        elif self._front == self._back:
            return self._lower(self.aggregate.identity)
        else:
            last = self._back - self._front
        return self._lower(self._strategy.query(last))

    def query_many(self, ranges: Iterable[int]) -> list[Any]:
        """``query(last=k)`` for each ``k`` of ``ranges``, in their order.

        Runtime complexity: Non-Inv one pass over the deque, O(nodes + r log r) for r ranges, no combine.
        """
        ranges = list(ranges)
        for k in ranges:
            self._check_last(k)
        return list(map(self._lower, self._strategy.query_many(ranges))) if ranges else []

    def _oldest(self) -> Iterator[Any]:
        return self._strategy.oldest()

    def _check(self) -> None:
        self._strategy.check(self._front, self._back)


def _strategy(aggregate: Aggregate, ranges: Sequence[int], keep_values: bool) -> _Running | _Candidates | _Members:
    inner = aggregate.inner if isinstance(aggregate, OnPartials) else aggregate
    if aggregate.invertible and aggregate.commutative:
        return _Running(aggregate, ranges)
    if is_selective(aggregate):
        return _Candidates(aggregate, keep_values)
    if isinstance(inner, Multi):
        members = [_strategy(a, ranges, keep_values) for a in inner.aggregates.values()]
        return _Members(members, split=tuple, join=tuple)
    if isinstance(inner, Range):
        extremes = [_Candidates(a, keep_values) for a in (Min(), Max())]
        return _Members(extremes, lambda p: p or (None, None), lambda p: None if p[0] is None else tuple(p))
    if aggregate.invertible:
        need_subtraction("SlickDeque", aggregate, "use TwoStacks, DABA or FlatFIT")
    raise AggregateError(
        f"`SlickDeque` cannot run `{aggregate.name}`: it has no inverse, and `combine` does not give one of its two "
        "arguments; use TwoStacks, DABA or FlatFIT"
    )
