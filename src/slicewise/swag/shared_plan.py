"""SharedPlan: many aggregate continuous queries over one stream, cut into slices once and answered from one window.

A. U. Shein et al.: "SlickDeque", EDBT 2018, section 2.3 (composite slide, edges); slices after J. Li et al., SIGMOD
Record 2005 (Panes), S. Krishnamurthy et al., SIGMOD 2006 (Pairs) and P. Carbone et al., CIKM 2016 (Cutty).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import gcd, lcm
from typing import Any, NamedTuple

from slicewise.aggregates.base import Aggregate
from slicewise.amounts import ROWS, TIME, Amount, rows, to_amount
from slicewise.errors import DataError, QueryError, did_you_mean
from slicewise.swag.base import OnPartials, SlidingWindow, lifting
from slicewise.swag.slickdeque import SlickDeque

__all__ = ["Acq", "Answer", "SharedPlan", "SharedRun", "Step"]

TECHNIQUES = ("panes", "pairs", "cutty")
LONGEST_PLAN = 1_000_000


@dataclass(frozen=True)
class Acq:
    """An aggregate continuous query: every ``slide``, the aggregate of the last ``range``.

    Parameters
    ----------
    range, slide
        Two counts of values (``6``, ``sw.rows(6)``), or two lengths of time (``"10 seconds"``, a timedelta).

    Examples
    --------
    >>> Acq(6, 2)
    Acq(range=rows(6), slide=rows(2))
    >>> Acq("1 minute", "10 seconds").slide.size
    10000000
    """

    range: Any
    slide: Any

    def __post_init__(self) -> None:
        for name in ("range", "slide"):
            object.__setattr__(self, name, _amount(getattr(self, name), name))
        if self.range.measure != self.slide.measure:
            raise QueryError(
                f"`range` and `slide` must be of one measure; got {self.range} and {self.slide}: give two counts "
                "or two lengths of time"
            )

    def __repr__(self) -> str:
        return f"Acq(range={self.range}, slide={self.slide})"


def _amount(size: Any, name: str) -> Amount:
    if isinstance(size, int) and not isinstance(size, bool):
        if size < 1:
            raise QueryError(f"`{name}` must be positive; got {size!r}")
        return rows(size)
    if not isinstance(size, (str, timedelta, Amount)):
        raise QueryError(
            f"`{name}` must be a count of values or a length of time; got {size!r}: 6 and '10 seconds' are"
        )
    amount = to_amount(size, name=name)
    if amount.measure not in (TIME, ROWS):
        raise QueryError(
            f"`{name}` must be a count of values or a length of time; got {amount}: 6 and '10 seconds' are"
        )
    return amount


class Step(NamedTuple):
    """One step of the plan: read ``length`` more of the stream, close the slice if the step ``closes``, and answer."""

    length: int
    closes: bool
    #: Queries to answer, by their place in the plan, longest range first, each with its number of closed slices.
    answers: tuple[tuple[int, int], ...]


class Answer(NamedTuple):
    """The answer of a query for the window that ended ``at``."""

    query: Acq
    at: int
    value: Any


class SharedPlan:
    """Where to cut the stream and which queries to answer there, for one composite slide, after which it repeats.

    All windows end at multiples of their query's slide. The composite slide is the least common multiple of all slides.
    Where slices end, for a range of 10 and a slide of 3 (Figure 7 of Cutty)::

                  0           3           6           9
        panes     |...|...|...|...|...|...|...|...|...|      gcd(10, 3) = 1 each
        pairs     |.......|...|.......|...|.......|...|      3 - 10 % 3 = 2, then 10 % 3 = 1
        cutty     |.......|...........|...........|...:      where a window begins: 3 each

    With Cutty a window may end in the middle of a slice; its answer then includes the open slice so far.

    Parameters
    ----------
    queries
        The queries, all of one measure.
    technique
        ``"panes"``, ``"pairs"`` or ``"cutty"``.

    Attributes
    ----------
    composite_slide
        The stretch of the stream after which the plan repeats.
    edges
        The ends of slices within ``(0, composite_slide]``.
    lengths
        The lengths of the slices; the first one begins at the last edge of the previous round.
    steps
        The plan, as a list of :class:`Step`.
    window
        The largest number of closed slices that must be kept.

    Notes
    -----
    Runtime complexity: O(q e) to make a plan of q queries and e edges and ends of windows in a composite slide.

    Examples
    --------
    The paper's Example 1: slices of two values; the first query is of three of them, the second of four.

    >>> plan = SharedPlan([Acq(6, 2), Acq(8, 4)], technique="panes")
    >>> plan.composite_slide, plan.edges, plan.window
    (4, [2, 4], 4)
    >>> plan.steps
    [Step(length=2, closes=True, answers=((0, 3),)), Step(length=2, closes=True, answers=((1, 4), (0, 3)))]
    >>> from slicewise.aggregates import max
    >>> run = plan.run(max())
    >>> [(a.query.slide.size, a.at, a.value) for v in [6, 5, 0, 1, 3, 4] for a in run.insert(v)]
    [(2, 2, 6), (4, 4, 6), (2, 4, 6), (2, 6, 6)]
    """

    def __init__(self, queries: Iterable[Acq], technique: str = "pairs") -> None:
        self.queries = tuple(queries)
        self.technique = technique
        self._check_arguments()
        self.measure = self.queries[0].range.measure
        self.composite_slide: int = lcm(*(q.slide.size for q in self.queries))
        self._check_length()
        cuts, ends = set[int](), set[int]()
        for query in self.queries:
            cuts.update(self._cuts(query))
            ends.update(range(query.slide.size, self.composite_slide + 1, query.slide.size))
        self.edges = sorted(cuts)
        first = self.edges[0] + self.composite_slide - self.edges[-1]
        self.lengths = [first, *(b - a for a, b in zip(self.edges, self.edges[1:], strict=False))]
        self.steps = self._steps(sorted(cuts | ends), cuts)
        self.window = max(k for step in self.steps for _, k in step.answers)

    def _check_arguments(self) -> None:
        if self.technique not in TECHNIQUES:
            known = did_you_mean(str(self.technique), TECHNIQUES)
            raise QueryError(f"`technique` must be 'panes', 'pairs' or 'cutty'; got {self.technique!r}: {known}")
        if not self.queries:
            raise QueryError("`queries` must hold at least one Acq(range, slide); got none")
        for query in self.queries:
            if not isinstance(query, Acq):
                raise QueryError(f"`queries` must hold Acq(range, slide); got {query!r}")
            if query.range.measure != self.queries[0].range.measure:
                raise QueryError(
                    f"`queries` must be of one measure; got {self.queries[0]} and {query}: make a plan for each measure"
                )

    def _check_length(self) -> None:
        cuts = sum(self.composite_slide // self._finest(q) for q in self.queries)
        if cuts > LONGEST_PLAN:
            raise QueryError(
                f"`queries` have a composite slide of {self._text_of(self.composite_slide)} with up to {cuts} slices; "
                f"choose slides with a smaller common multiple: at most {LONGEST_PLAN} slices can be planned"
            )

    def _finest(self, query: Acq) -> int:
        return gcd(query.range.size, query.slide.size) if self.technique == "panes" else query.slide.size

    def _text_of(self, size: int) -> str:
        return str(Amount(size, self.measure))

    def _cuts(self, query: Acq) -> Iterable[int]:
        """The ends of slices that one query needs, within ``(0, composite_slide]``."""
        size, slide, whole = query.range.size, query.slide.size, self.composite_slide
        if self.technique == "panes":
            pane = gcd(size, slide)
            return range(pane, whole + 1, pane)
        # Where windows begin: `range` before a multiple of the slide.
        begins = range(slide - size % slide, whole + 1, slide)
        if self.technique == "cutty":
            return begins
        return [*begins, *range(slide, whole + 1, slide)]

    def _edges_before(self, at: int) -> int:
        """The number of edges in ``(0, at]``, also for points that are negative or in later rounds."""
        rounds, rest = divmod(at, self.composite_slide)
        return rounds * len(self.edges) + bisect_right(self.edges, rest)

    def _steps(self, points: list[int], cuts: set[int]) -> list[Step]:
        steps, before = [], 0
        longest_first = sorted(range(len(self.queries)), key=lambda i: -self.queries[i].range.size)
        for point in points:
            answers = []
            for i in longest_first:
                size, slide = self.queries[i].range.size, self.queries[i].slide.size
                if point % slide == 0:
                    answers.append((i, self._edges_before(point) - self._edges_before(point - size)))
            steps.append(Step(point - before, point in cuts, tuple(answers)))
            before = point
        return steps

    def run(self, aggregate: Aggregate, algorithm: type[SlidingWindow] = SlickDeque) -> SharedRun:
        """Start to carry the plan out over a stream.

        Parameters
        ----------
        aggregate
            The aggregate that all queries compute, such as ``sw.max()``.
        algorithm
            The class that keeps the slices. One that answers the whole window only gets one window per query.

        Returns
        -------
        SharedRun
            The run, at the beginning of the stream: insert the values there.
        """
        return SharedRun(self, aggregate, algorithm)

    def __repr__(self) -> str:
        return f"SharedPlan({list(self.queries)}, technique={self.technique!r})"


class SharedRun:
    """A plan on its way through a stream; made by :meth:`SharedPlan.run`.

    Parameters
    ----------
    plan
        The plan to carry out.
    aggregate
        The aggregate that all queries compute.
    algorithm
        The class that keeps the slices.

    Examples
    --------
    >>> from slicewise.aggregates import count
    >>> run = SharedPlan([Acq("10 seconds", "5 seconds")]).run(count())
    >>> run.insert("a", time_us=1_000_000), run.insert("b", time_us=4_000_000)
    ([], [])
    >>> [(answer.at, answer.value) for answer in run.insert("c", time_us=12_000_000)]
    [(5000000, 2), (10000000, 2)]
    >>> [(answer.at, answer.value) for answer in run.advance(15_000_000)]
    [(15000000, 1)]
    """

    def __init__(self, plan: SharedPlan, aggregate: Aggregate, algorithm: type[SlidingWindow] = SlickDeque) -> None:
        self.plan = plan
        self.aggregate = aggregate
        if not (isinstance(algorithm, type) and issubclass(algorithm, SlidingWindow)):
            raise QueryError(f"`algorithm` must be a class of slicewise.swag such as SlickDeque; got {algorithm!r}")
        self._shared = algorithm.several_ranges
        on_partials = OnPartials(aggregate) if isinstance(aggregate, Aggregate) else aggregate
        if issubclass(algorithm, SlickDeque):
            ranges = {k for step in plan.steps for _, k in step.answers if k}
            self._windows: list[SlidingWindow] = [algorithm(on_partials, ranges=ranges)]
        else:
            self._windows = [algorithm(on_partials) for _ in (plan.queries[:1] if self._shared else plan.queries)]
        self._lift = lifting(aggregate)
        self._open = aggregate.identity
        self._step = 0
        self._position: int | None = 0 if plan.measure == ROWS else None
        self._due = plan.steps[0].length
        self._latest: int | None = None

    def insert(self, value: Any, time_us: int | None = None) -> list[Answer]:
        """Add a value.

        Parameters
        ----------
        value
            The value.
        time_us
            Its event time in microseconds, for queries on time; never less than that of the value before.

        Returns
        -------
        list of Answer
            The answers that have become due.

        Notes
        -----
        Runtime complexity: one combine, and those of the algorithm at the end of a slice and for each answer.
        """
        if self.plan.measure == ROWS:
            if time_us is not None:
                raise DataError(f"`time_us` is for queries on time; got {time_us!r} for {self.plan}: leave it out")
            self._add(value, self._position or 0)
            return self._move_to((self._position or 0) + 1)
        due = self.advance(time_us)
        self._add(value, int(time_us))  # type: ignore[arg-type]
        return due

    def advance(self, time_us: int | None) -> list[Answer]:
        """Move on to a time before which no value will be inserted any more. For queries on time only.

        Parameters
        ----------
        time_us
            The time in microseconds.

        Returns
        -------
        list of Answer
            The answers that have become due.
        """
        if self.plan.measure == ROWS:
            raise DataError(f"`advance` is for queries on time; got {time_us!r} for {self.plan}: insert values instead")
        if not isinstance(time_us, int) or isinstance(time_us, bool):
            raise DataError(f"`time_us` must be the time of the value in microseconds; got {time_us!r}")
        if self._position is None:
            self._jump(time_us)
        elif time_us < self._position:
            raise DataError(f"`time_us` must not go back; got {time_us} after {self._position}: sort the values first")
        return self._move_to(time_us)

    def _add(self, value: Any, at: int) -> None:
        partial = self._lift(value)
        self._open = self.aggregate.combine(self._open, partial) if self._has_open else partial
        self._latest = at

    @property
    def _has_open(self) -> bool:
        """Whether a value was inserted since the last slice was closed."""
        return self._open is not self.aggregate.identity

    def _move_to(self, position: int) -> list[Answer]:
        answers: list[Answer] = []
        while self._due <= position:
            if self._is_forgotten():
                self._jump(position)
                break
            step = self.plan.steps[self._step]
            if step.closes:
                self._close()
            answers.extend(self._answer(step))
            self._step = (self._step + 1) % len(self.plan.steps)
            self._due += self.plan.steps[self._step].length
        self._position = position
        return answers

    def _is_forgotten(self) -> bool:
        """Whether no window that is still to end holds a value: long gaps in time are jumped over."""
        longest = max(q.range.size for q in self.plan.queries)
        return self._latest is None or self._latest < self._due - longest

    def _jump(self, position: int) -> None:
        """Begin anew at ``position``, with the step that it lies in."""
        for window in self._windows:
            window.evict(len(window))
        self._open = self.aggregate.identity
        end, rest = divmod(position, self.plan.composite_slide)
        end *= self.plan.composite_slide
        for i, step in enumerate(self.plan.steps):
            end += step.length
            rest -= step.length
            if rest < 0:
                self._step, self._due, self._position = i, end, position
                return

    def _close(self) -> None:
        for window in self._windows:
            window.insert(self._open)
            if self._shared and len(window) > self.plan.window:
                window.evict()
        self._open = self.aggregate.identity

    def _answer(self, step: Step) -> list[Answer]:
        asked = []
        for i, k in step.answers:
            query = self.plan.queries[i]
            # A window without values has no answer.
            if self._latest is not None and self._latest >= self._due - query.range.size:
                asked.append((i, query, k))
        if not asked:
            return []
        lower = self.aggregate.lower
        partials = self._partials_shared([k for _, _, k in asked]) if self._shared else self._partials_alone(asked)
        if not step.closes and self._has_open:
            combine, open_ = self.aggregate.combine, self._open
            partials = [open_ if p is None else combine(p[0], open_) for p in partials]
        else:
            partials = [self.aggregate.identity if p is None else p[0] for p in partials]
        return [Answer(query, self._due, lower(p)) for (_, query, _), p in zip(asked, partials, strict=True)]

    def _partials_shared(self, counts: list[int]) -> list[Any]:
        """The partial of the last k slices for each k, in a tuple of one; None for no slices."""
        (window,) = self._windows
        wanted = [min(k, len(window)) for k in counts]
        answers = iter(window.query_many([k for k in wanted if k]))
        return [(next(answers),) if k else None for k in wanted]

    def _partials_alone(self, asked: list[tuple[int, Acq, int]]) -> list[Any]:
        partials: list[Any] = []
        for i, _, k in asked:
            window = self._windows[i]
            window.evict(max(len(window) - k, 0))
            partials.append((window.query(),) if len(window) else None)
        return partials
