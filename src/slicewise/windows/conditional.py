"""Conditional windows: rows that meet a condition decide where windows begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from slicewise.amounts import TIME, Measure
from slicewise.conditions import Condition
from slicewise.errors import QueryError
from slicewise.windows.kinds import Context, Window
from slicewise.windows.parameters import check_condition, format_code

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
    def rule(self) -> Condition:
        """The condition, ready to be asked."""
        return Condition.of(self.condition, self.columns)

    @property
    def reads(self) -> tuple[str, ...]:
        return self.rule.columns

    def _format_columns(self) -> str:
        return f", columns={list(self.columns)!r}" if self.columns else ""


@dataclass(frozen=True, repr=False)
class Punctuated(Conditional):
    """A row that meets the condition starts a new window."""

    @property
    def markers(self) -> str | Callable[..., Any]:
        return self.condition

    def __repr__(self) -> str:
        return f"punctuated({format_code(self.condition)}{self._format_columns()})"


@dataclass(frozen=True, repr=False)
class Frames(Conditional):
    """Maximal runs of rows that meet the condition."""

    min_rows: int = 1

    def __repr__(self) -> str:
        return f"frames({format_code(self.condition)}, min_rows={self.min_rows}{self._format_columns()})"


def punctuated(condition: str | Callable[..., Any], *, columns: Sequence[str] = ()) -> Punctuated:
    """A row that meets the condition starts a new window and belongs to it.

    Parameters
    ----------
    condition : str or callable
        A boolean column, an expression on columns such as ``"kind = 'start'"``, or a function of the columns that it
        names in ``columns``, which takes a dict of arrays and returns an array of booleans.
    columns : sequence of str, optional
        The columns that a function reads; leave it out for an expression.

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
    """
    return Punctuated(condition, check_condition(condition, columns))


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
    return Frames(condition, check_condition(condition, columns), min_rows)
