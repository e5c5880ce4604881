"""Windows: frozen descriptions of where windows begin and end. Said by the user, read by the plan; no engine in here.

Every window is half-open, ``[start, end)``. Its :class:`Context` is the paper's class: how much of the stream one must
have seen to know where the windows lie. Its ``measures`` say what their bounds are counted in.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from slicewise.aggregates.base import Aggregate
from slicewise.aggregates.multi import check_watched
from slicewise.amounts import INTEGER, ROWS, TIME, Amount, Measure, format_instant, to_amount, to_instant, to_offset
from slicewise.conditions import Condition
from slicewise.errors import QueryError

__all__ = [
    "Between",
    "Context",
    "Cumulative",
    "Evict",
    "Frames",
    "Landmark",
    "Policy",
    "Punctuated",
    "Session",
    "Sliding",
    "UserDefined",
    "Window",
    "between",
    "cumulative",
    "frames",
    "landmark",
    "policy",
    "punctuated",
    "session",
    "sliding",
    "tumbling",
    "user_defined",
]

EVERY_ROW = Amount(1, ROWS)


class Context(enum.Enum):
    """What must be known of the stream to know where windows lie (general stream slicing, section 4.4)."""

    FREE = "context free"
    FORWARD_FREE = "forward context free"
    FORWARD_AWARE = "forward context aware"
    SESSION = "session"


@dataclass(frozen=True)
class Window:
    """A kind of window with its parameters.

    A window that has no lengths (``has_lengths``) runs on whatever time the workload has.
    """

    kind: ClassVar[str]
    has_lengths: ClassVar[bool] = True

    @property
    def context(self) -> Context:
        """The window's class."""
        raise NotImplementedError

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the window's parameters are counted in; no measure appears twice."""
        raise NotImplementedError

    @property
    def measure(self) -> Measure:
        """What the window's bounds are counted in."""
        return self.measures[0]

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that must be read to know where windows lie."""
        return tuple(m.column for m in self.measures if m.column is not None)


@dataclass(frozen=True, repr=False)
class Sliding(Window):
    """A window of ``length`` every ``every``; tumbling when the two are the same."""

    length: Amount
    every: Amount
    offset: int = 0

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "tumbling" if self.length == self.every else "sliding"

    @property
    def context(self) -> Context:
        return Context.FREE if self.length.measure == self.every.measure else Context.FORWARD_AWARE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(dict.fromkeys((self.length.measure, self.every.measure)))

    def __repr__(self) -> str:
        if self.kind == "tumbling":
            return f"tumbling({_say(self.length)}{_say_offset(self.offset, self.length.measure)})"
        return f"sliding({_say(self.length)}, every={_say(self.every)}{_say_offset(self.offset, self.length.measure)})"


@dataclass(frozen=True, repr=False)
class Session(Window):
    """Activity closed by a ``gap`` without rows: ``[first, last + gap)``."""

    kind = "session"
    gap: Amount

    @property
    def context(self) -> Context:
        return Context.SESSION

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.gap.measure,)

    def __repr__(self) -> str:
        return f"session({_say(self.gap)})"


class ContextFree(Window):
    """A window whose bounds do not depend on rows."""

    @property
    def context(self) -> Context:
        return Context.FREE


@dataclass(frozen=True, repr=False)
class Cumulative(ContextFree):
    """Within each ``length``, windows that grow by ``every``."""

    kind = "cumulative"
    length: Amount
    every: Amount
    offset: int = 0

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.length.measure,)

    def __repr__(self) -> str:
        offset = _say_offset(self.offset, self.length.measure)
        return f"cumulative({_say(self.length)}, every={_say(self.every)}{offset})"


@dataclass(frozen=True, repr=False)
class Landmark(ContextFree):
    """From the fixed point ``since`` to now, reported at every tick of ``every`` that brought rows.

    ``since`` is in the measure of ``every`` unless ``on`` says otherwise, which a workload with a unit makes one.
    """

    kind = "landmark"
    every: Amount
    since: int = 0
    on: Measure | None = None

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.every.measure,)

    def __repr__(self) -> str:
        return f"landmark(every={_say(self.every)}, since={_say_instant(self.since, self.on or self.every.measure)})"


@dataclass(frozen=True, repr=False)
class Between(ContextFree):
    """One fixed window."""

    kind = "between"
    start: int
    end: int
    on: Measure = TIME

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.on,)

    def __repr__(self) -> str:
        return f"between({_say_instant(self.start, self.on)}, {_say_instant(self.end, self.on)})"


@dataclass(frozen=True, repr=False)
class Conditional(Window):
    """A window whose bounds are rows that meet a condition; a function names the ``columns`` that it reads."""

    has_lengths = False
    condition: str | Callable[..., Any]
    columns: tuple[str, ...] = ()

    @property
    def context(self) -> Context:
        return Context.FORWARD_FREE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (TIME,)

    @property
    def rule(self) -> Condition:
        """The condition, ready to be asked."""
        return Condition.of(self.condition, self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.rule.columns


@dataclass(frozen=True, repr=False)
class Punctuated(Conditional):
    """A row that meets the condition starts a new window."""

    kind = "punctuated"

    def __repr__(self) -> str:
        columns = f", columns={list(self.columns)!r}" if self.columns else ""
        return f"punctuated({_say_condition(self.condition)}{columns})"


@dataclass(frozen=True, repr=False)
class Frames(Conditional):
    """Maximal runs of rows that meet the condition."""

    kind = "frames"
    min_rows: int = 1

    def __repr__(self) -> str:
        columns = f", columns={list(self.columns)!r}" if self.columns else ""
        return f"frames({_say_condition(self.condition)}, min_rows={self.min_rows}{columns})"


class Evict(NamedTuple):
    """What a non-deterministic window says of a row that has joined it: ``n`` leave the front, then report or not."""

    n: int
    trigger: bool


@dataclass(frozen=True, repr=False)
class UserDefined(Window):
    """Cutty's discretisation: the user's object says, record by record, how many windows begin and end."""

    kind = "user_defined"
    has_lengths = False
    factory: Callable[[], Any]
    columns: tuple[str, ...] = ()
    deterministic: bool = True

    @property
    def context(self) -> Context:
        return Context.FORWARD_FREE if self.deterministic else Context.FORWARD_AWARE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (TIME,)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.columns

    def __repr__(self) -> str:
        return f"user_defined({_say_condition(self.factory)}, columns={list(self.columns)!r})"


@dataclass(frozen=True, repr=False)
class Policy(Window):
    """MTA's window slide policy: the longest prefix for which ``evict(total, oldest)`` holds leaves the window."""

    kind = "policy"
    evict: Callable[[Any, Any], bool]
    watch: tuple[tuple[str, Aggregate], ...] = ()
    every: Amount = EVERY_ROW

    @property
    def context(self) -> Context:
        return Context.FORWARD_AWARE

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.every.measure,)

    @property
    def reads(self) -> tuple[str, ...]:
        watched = (column for _, aggregate in self.watch for column in aggregate.columns)
        return tuple(dict.fromkeys([*super().reads, *watched]))

    def __repr__(self) -> str:
        return f"policy({_say_condition(self.evict)}, every={_say(self.every)})"


# The functions that users call: they read amounts, check them, and build the frozen descriptions.


def tumbling(length: Any, *, offset: Any = 0) -> Sliding:
    """Windows of ``length``, end to end, aligned to the epoch plus ``offset``.

    Examples
    --------
    >>> tumbling("10 minutes")
    tumbling('10 minutes')
    """
    amount = to_amount(length, name="length")
    return Sliding(amount, amount, _offset(offset, amount))


def sliding(length: Any, *, every: Any, offset: Any = 0) -> Sliding:
    """A window of ``length`` every ``every``. A slide longer than the length leaves gaps.

    Length and slide may be counted in different measures: ``sliding(sw.rows(10), every="5 seconds")`` is the last ten
    rows, every five seconds.

    Examples
    --------
    >>> sliding("1 minute", every="1 second")
    sliding('1 minute', every='1 second')
    >>> sliding("1 minute", every="1 second").context
    <Context.FREE: 'context free'>
    """
    length, every = to_amount(length, name="length"), to_amount(every, name="every")
    kinds = {length.measure, every.measure}
    if kinds == {TIME, INTEGER}:
        raise QueryError(
            f"`length` and `every` mix a duration and a plain integer; got {_say(length)} and {_say(every)}; "
            "use durations for a timestamp column, integers for an integer one"
        )
    if length.measure != every.measure and offset != 0:
        raise QueryError("`offset` needs `length` and `every` in the same measure; leave it out")
    return Sliding(length, every, _offset(offset, every))


def session(gap: Any) -> Session:
    """Activity closed by a gap: a row at most ``gap`` after the one before joins its session.

    Examples
    --------
    >>> session("30 seconds")
    session('30 seconds')
    """
    return Session(_event_time(to_amount(gap, name="gap"), "gap"))


def cumulative(length: Any, *, every: Any, offset: Any = 0) -> Cumulative:
    """Within each ``length``, windows that start with it and grow by ``every``: today so far, every hour.

    Examples
    --------
    >>> cumulative("1 day", every="1 hour")
    cumulative('1 day', every='1 hour')
    """
    length = _event_time(to_amount(length, name="length"), "length")
    every = _event_time(to_amount(every, name="every"), "every")
    if length.measure != every.measure:
        raise QueryError(f"`length` and `every` must be in one measure; got {_say(length)} and {_say(every)}")
    if length.size % every.size:
        raise QueryError(
            f"`every` must divide `length`; got every={_say(every)} and length={_say(length)}; "
            "the last growing window of each length would end beside it"
        )
    return Cumulative(length, every, _offset(offset, length))


def landmark(*, every: Any, since: Any = None) -> Landmark:
    """From the fixed point ``since`` (default: the epoch) to now, reported at each tick of ``every`` that brought rows.

    Examples
    --------
    >>> landmark(every="1 hour", since="2024-01-01")
    landmark(every='1 hour', since='2024-01-01 00:00:00')
    """
    every = _event_time(to_amount(every, name="every"), "every")
    if since is None:
        return Landmark(every)
    instant, measure = to_instant(since, name="since")
    return Landmark(every, instant, None if measure == every.measure else measure)


def between(start: Any, end: Any) -> Between:
    """One fixed window, ``[start, end)``.

    Examples
    --------
    >>> between("2024-01-01", "2024-02-01")
    between('2024-01-01 00:00:00', '2024-02-01 00:00:00')
    """
    first, measure = to_instant(start, name="start")
    last, other = to_instant(end, name="end")
    if measure != other:
        raise QueryError(f"`start` and `end` must both be instants or both be integers; got {start!r} and {end!r}")
    if last <= first:
        raise QueryError(f"`end` must lie after `start`; got start={start!r} and end={end!r}")
    return Between(first, last, measure)


def punctuated(condition: str | Callable[..., Any], *, columns: Sequence[str] = ()) -> Punctuated:
    """A row that meets the condition starts a new window and belongs to it.

    The condition is a boolean column, an expression on columns, or a function of the columns that it names in
    ``columns``, which takes a dict of arrays and returns an array of booleans.

    Examples
    --------
    >>> punctuated("kind = 'start'").reads
    ('kind',)
    """
    return Punctuated(condition, _check_condition(condition, columns))


def frames(condition: str | Callable[..., Any], *, min_rows: int = 1, columns: Sequence[str] = ()) -> Frames:
    """Maximal runs of consecutive rows that meet the condition, of at least ``min_rows`` rows.

    The condition is said as in :func:`punctuated`.
    """
    if not isinstance(min_rows, int) or isinstance(min_rows, bool) or min_rows < 1:
        raise QueryError(f"`min_rows` must be a positive integer; got {min_rows!r}")
    return Frames(condition, _check_condition(condition, columns), min_rows)


def user_defined(factory: Callable[[], Any], *, columns: Sequence[str] = (), deterministic: bool = True) -> UserDefined:
    """Windows that the user's own object finds: ``factory()`` makes one per key, with ``on_record(time, row)``."""
    if not callable(factory):
        raise QueryError(f"`factory` must be a class or function that makes a window object; got {factory!r}")
    return UserDefined(factory, _check_columns(columns), deterministic)


def policy(
    evict: Callable[[Any, Any], bool], *, watch: Mapping[str, Aggregate] | None = None, every: Any = None
) -> Policy:
    """A window from which the longest prefix that ``evict(total, oldest)`` condemns leaves after each row.

    ``watch`` names the aggregates that ``evict`` sees of the whole window and of its oldest part.
    """
    if not callable(evict):
        raise QueryError(f"`evict` must be a function evict(total, oldest) -> bool; got {evict!r}")
    watched = () if watch is None else check_watched(watch)
    return Policy(evict, watched, EVERY_ROW if every is None else to_amount(every, name="every"))


def _offset(offset: Any, length: Amount) -> int:
    amount = to_offset(offset, name="offset")
    if amount.size == 0:
        return 0
    if amount.measure != length.measure:
        raise QueryError(f"`offset` must be in the measure of the window; got {_say(amount)} with {_say(length)}")
    # Windows a whole length apart are the same windows: the smallest offset that says the same.
    return amount.size % length.size  # type: ignore[return-value]


def _event_time(amount: Amount, name: str) -> Amount:
    if not amount.measure.is_event_time:
        raise QueryError(f"`{name}` must be a duration or an integer of event time; got {_say(amount)}")
    return amount


def _check_condition(condition: Any, columns: Any) -> tuple[str, ...]:
    named = _check_columns(columns)
    if isinstance(condition, str) and named:
        raise QueryError(f"`columns` is for a function; the expression {condition!r} says what it reads; leave it out")
    Condition.of(condition, named)  # what cannot be read is refused here
    return named


def _check_columns(columns: Any) -> tuple[str, ...]:
    listed = isinstance(columns, Sequence) and not isinstance(columns, str)
    if not listed or not all(isinstance(c, str) for c in columns):
        raise QueryError(f"`columns` must be a list of column names; got {columns!r}")
    return tuple(columns)


def _say(amount: Amount) -> str:
    return repr(str(amount)) if amount.measure.kind == "time" else str(amount)


def _say_offset(offset: int, measure: Measure) -> str:
    return f", offset={_say(Amount(offset, measure))}" if offset else ""


def _say_instant(instant: int, measure: Measure) -> str:
    return repr(format_instant(instant, measure.unit)) if measure.kind == "time" else str(instant)


def _say_condition(condition: Any) -> str:
    return repr(condition) if isinstance(condition, str) else getattr(condition, "__qualname__", repr(condition))
