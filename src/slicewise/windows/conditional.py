"""Conditional windows: rows that meet a condition decide where windows begin and end."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from slicewise.amounts import TIME, Measure
from slicewise.columns import Column
from slicewise.conditions import Condition
from slicewise.errors import QueryError
from slicewise.windows.kinds import Context, Window
from slicewise.windows.parameters import check_conditions, format_code

__all__ = ["Conditional", "Frames", "Punctuated", "frames", "punctuated"]


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
    def conditions(self) -> tuple[str | Callable[..., Any], ...]:
        """All conditions that rows are asked for."""
        return (self.condition,)

    @functools.cached_property
    def rules(self) -> tuple[Condition, ...]:
        """The conditions, ready to be asked."""
        return tuple(Condition.of(condition, self.columns) for condition in self.conditions)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for rule in self.rules for column in rule.columns))

    @property
    def shows_rows(self) -> bool:
        return any(map(callable, self.conditions))

    @property
    def code_type(self) -> pa.DataType:
        """What codes are kept as: with one condition they are true or false."""
        return pa.bool_() if len(self.conditions) == 1 else pa.int64()

    def codes(self, columns: Mapping[str, Column], rows: int) -> np.ndarray:
        """Which conditions each row meets: 1 for the first, 2 for the second, 3 for both."""
        masks = [rule.mask(columns, rows, query=repr(self)).astype(np.int64) for rule in self.rules]
        return sum((mask << i for i, mask in enumerate(masks[1:], 1)), start=masks[0])

    def _format_columns(self) -> str:
        return f", columns={list(self.columns)!r}" if self.columns else ""


@dataclass(frozen=True, repr=False)
class Punctuated(Conditional):
    """A row that meets the condition starts a new window; one that meets ``end``, if there is one, ends it."""

    sees_punctuation = True
    end: str | Callable[..., Any] | None = None
    closed: str = "left"

    @property
    def conditions(self) -> tuple[str | Callable[..., Any], ...]:
        return (self.condition,) if self.end is None else (self.condition, self.end)

    @property
    def markers(self) -> str | Callable[..., Any] | None:
        return self.rules[0].predicate if self.end is None else None

    def __repr__(self) -> str:
        end = "" if self.end is None else f", end={format_code(self.end)}"
        closed = "" if self.closed == "left" else f", closed={self.closed!r}"
        return f"punctuated({format_code(self.condition)}{end}{self._format_columns()}{closed})"


@dataclass(frozen=True, repr=False)
class Frames(Conditional):
    """Maximal runs of rows that meet the condition."""

    min_rows: int = 1

    def __repr__(self) -> str:
        return f"frames({format_code(self.condition)}, min_rows={self.min_rows}{self._format_columns()})"


def punctuated(
    start: str | Callable[..., Any],
    end: str | Callable[..., Any] | None = None,
    *,
    columns: Sequence[str] = (),
    closed: str = "left",
) -> Punctuated:
    """A row that meets ``start`` starts a new window and belongs to it; the window before is over.

    Parameters
    ----------
    start : str or callable
        A boolean column, an expression on columns such as ``"kind = 'start'"``, or a function of the columns that it
        names in ``columns``, which takes a dict of arrays and returns an array of booleans.
    end : str or callable, optional
        A row that meets it ends the window and belongs to none, unless it meets ``start`` too. Rows before the first
        start, and those between an end and the next start, are then in no window.
    columns : sequence of str, optional
        The columns that functions read; leave it out for expressions.
    closed : str, optional
        ``"both"`` takes the row that meets ``end`` into the window that it ends; by default it is left out.

    Returns
    -------
    Punctuated
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> laps = sw.punctuated("gate = 'start'")
    >>> laps.reads
    ('gate',)
    >>> op = sw.Workload(time="ts").query("laps", laps, n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 7, 12], "gate": ["start", "mid", "end", "start"]})
    >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
    [(1, 12, 3), (12, None, 1)]

    With a condition for ends, what comes between an end and the next start does not count:

    >>> laps = sw.punctuated("gate = 'start'", "gate = 'end'")
    >>> op = sw.Workload(time="ts").query("laps", laps, n=sw.count()).operator()
    >>> _ = op.process_batch({"ts": [1, 4, 7, 8, 12], "gate": ["start", "mid", "end", "pit", "start"]})
    >>> [(r.start, r.end, r.values["n"]) for r in op.close()]
    [(1, 7, 2), (12, None, 1)]
    """
    if closed not in ("left", "both"):
        raise QueryError(f"`closed` must be 'left' or 'both'; got {closed!r}", parameter="closed")
    if closed == "both" and end is None:
        raise QueryError("`closed` is about the row that ends a window; say which: end=...", parameter="closed")
    given = [start] if end is None else [start, end]
    named = check_conditions(given, columns)
    return Punctuated(start, named, end, closed)


def frames(condition: str | Callable[..., Any], *, min_rows: int = 1, columns: Sequence[str] = ()) -> Frames:
    """Maximal runs of consecutive rows that meet the condition.

    Parameters
    ----------
    condition : str or callable
        A boolean column, an expression or a function, as for :func:`punctuated`.
    min_rows : int, optional
        Runs of fewer rows are no windows.
    columns : sequence of str, optional
        The columns that a function reads; leave it out for an expression.

    Returns
    -------
    Frames
        The window.

    Examples
    --------
    >>> import slicewise as sw
    >>> op = sw.Workload(time="ts").query("hot", sw.frames("v > 3", min_rows=2), peak=sw.max("v")).operator()
    >>> _ = op.process_batch({"ts": [1, 2, 3, 4, 5, 6], "v": [2, 5, 9, 1, 7, 3]})
    >>> [(r.start, r.end, r.values["peak"]) for r in op.close()]
    [(2, 4, 9)]
    """
    if not isinstance(min_rows, int) or isinstance(min_rows, bool) or min_rows < 1:
        raise QueryError(f"`min_rows` must be a positive integer; got {min_rows!r}", parameter="min_rows")
    return Frames(condition, check_conditions([condition], columns), min_rows)
