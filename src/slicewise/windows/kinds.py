"""Kinds: what every window answers to the stages that come after it. The base of all windows; no engine in here.

A kind is a frozen class with its parameters. It has a ``context`` and ``measures``; where its bounds are known in
advance, also a ``family``. Everything else follows from these, unless a kind has a better answer.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pyarrow as pa

from slicewise.amounts import ROWS, TIME, Amount, Measure
from slicewise.columns import Column
from slicewise.errors import QueryError
from slicewise.windows.families import PeriodicFamily, Progression
from slicewise.windows.listings import Listing
from slicewise.windows.parameters import in_time_unit

__all__ = ["Context", "ContextFree", "LookBack", "Window"]


class Context(enum.Enum):
    """What must be known of the stream to know where windows lie (general stream slicing, section 4.4)."""

    FREE = "context free"
    FORWARD_FREE = "forward context free"
    FORWARD_AWARE = "forward context aware"
    SESSION = "session"


class LookBack(NamedTuple):
    """Windows as of some instants, one entry each.

    Attributes
    ----------
    start, end
        Their bounds.
    first, behind
        The rows in them are those from ``first`` to before ``behind``.
    rows
        Where they hold so many rows at most, the last of these.
    """

    start: np.ndarray
    end: np.ndarray
    first: np.ndarray
    behind: np.ndarray
    rows: int | None = None


@dataclass(frozen=True)
class Window:
    """A kind of window with its parameters.

    A window that has no lengths (``has_lengths``) runs on whatever time the workload has. One that sees punctuation
    (``sees_punctuation``) is shown rows that are no data, and may start and end with them.
    """

    has_lengths: ClassVar[bool] = True
    sees_punctuation: ClassVar[bool] = False

    # What every kind must answer

    @property
    def context(self) -> Context:
        """The window's class."""
        raise NotImplementedError

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the window's parameters are counted in; no measure appears twice."""
        raise NotImplementedError

    @functools.cached_property
    def family(self) -> PeriodicFamily | None:
        """Where its windows lie on its measure; None where that is not known in advance, or not in whole numbers."""
        return None

    @property
    def listing(self) -> Listing | None:
        """Where its windows lie on event time, if they follow no arithmetic but can be listed."""
        return None

    # What some kinds answer otherwise

    @property
    def kind(self) -> str:
        """The name of the function that makes it: that of the class, in lower case."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that must be read to know where windows lie."""
        return tuple(m.column for m in self.measures if m.column is not None)

    @property
    def session_gap(self) -> int | None:
        """How long no row comes before a session on event time is over; None for other windows."""
        return None

    @property
    def markers(self) -> Any:
        """The condition of which every row that meets it begins a window, where nothing else does; None for others."""
        return None

    @property
    def shows_rows(self) -> bool:
        """Whether user code is shown single rows, and what it says of them, ``codes``, decides where windows lie."""
        return False

    @property
    def code_type(self) -> pa.DataType:
        """What codes are kept as."""
        raise NotImplementedError

    def codes(self, columns: Mapping[str, Column], rows: int) -> np.ndarray:
        """What is true of each of so many rows, as whole numbers."""
        raise NotImplementedError

    @property
    def instants(self) -> Mapping[str, int | float]:
        """The parameters that are points on the measure, by name: offsets and fixed bounds."""
        return {}

    @property
    def is_tumbling(self) -> bool:
        """Whether each window begins where the one before ends."""
        return False

    @property
    def overlap(self) -> int:
        """How many windows hold a row at once: the length over the slide."""
        return 1 if self.family is None else self.family.overlap

    @property
    def grid(self) -> Hashable | None:
        """The ticks at which its windows end, where one of the same length ends at each; None for other windows.

        Equal for windows that end together.
        """
        return None

    @property
    def on_grid(self) -> bool:
        """Whether its windows follow each other on event time with rows or without, so that some lie between two."""
        return self.grid is not None

    @property
    def slides(self) -> tuple[int, int]:
        """How far apart the ends of two windows that follow each other lie at least, and at most."""
        assert self.family is not None
        return self.family.every, self.family.every

    @property
    def extents(self) -> tuple[int, int]:
        """How long a window is at least, and at most."""
        assert self.family is not None
        return self.family.length, self.family.length

    @property
    def at_ticks(self) -> Self:
        """The window as of each tick: one alone where several end together."""
        return self.everywhere

    @property
    def everywhere(self) -> Self:
        """The window at all times, where it is one whose list is of some alone."""
        return self

    @property
    def looks_back(self) -> bool:
        """Whether there is one window of it as of any instant, which holds nothing that comes after."""
        return self.is_periodic and self.family is not None

    def as_of(self, time: np.ndarray) -> LookBack:
        """The windows as of some instants; where they end at ticks, that of the last tick at or before."""
        assert self.family is not None
        start, end = self.family.ended_by(time)
        return LookBack(start, end, start, end)

    @property
    def state_classes(self) -> frozenset[type]:
        """The user's classes whose objects are kept in state to find windows."""
        return frozenset()

    @functools.cached_property
    def progressions(self) -> frozenset[Progression]:
        """Its edges that lie on grids."""
        return frozenset() if self.family is None else self.family.progressions

    @functools.cached_property
    def points(self) -> frozenset[int]:
        """Its edges that lie on no grid."""
        return frozenset() if self.family is None else self.family.points

    # What follows for all of them

    @property
    def measure(self) -> Measure:
        """What the window's bounds are counted in."""
        return self.measures[0]

    @functools.cached_property
    def axis(self) -> Measure | None:
        """The measure on which all its bounds are known in advance; None where rows decide about them."""
        return self.measure if self.context is Context.FREE else None

    @property
    def is_periodic(self) -> bool:
        """Whether its edges are known in advance, as event times."""
        return self.axis is not None and self.axis.is_event_time

    @property
    def needs_rows(self) -> bool:
        """Whether only rows in order show where its windows lie."""
        return not self.is_periodic and self.session_gap is None

    @property
    def counts_rows(self) -> bool:
        """Whether a parameter is a number of rows, so that a row out of order shifts all later ones."""
        return ROWS in self.measures

    @functools.cached_property
    def time_measure(self) -> Measure | None:
        """What its lengths of event time are counted in; None if it has none."""
        return next((m for m in self.measures if m.is_event_time), None) if self.has_lengths else None

    def check_types(self, types: Mapping[str, pa.DataType], time_type: pa.DataType) -> None:
        """Refuse columns whose types it cannot work on, where event times have this type."""

    def check_time(self, time_type: pa.DataType) -> None:
        """Refuse a time column whose bounds are of this type, where it has instants of another."""

    def check_keys(self, keys: Sequence[str]) -> None:
        """Refuse keys of a workload that its windows do not go with."""

    def listed_in(self, ranges: Sequence[tuple[int, int]]) -> Self:
        """The window where all rows lie in some ranges of event time, bounds included: then a schedule is a list."""
        return self

    def by_number(self, name: str, keys: Sequence[str], values: Sequence[tuple[Any, ...]]) -> Self:
        """The window for a workload whose one key ``name`` is a number: the place of a key among these ``values``."""
        return self

    @property
    def discretiser_key(self) -> Hashable:
        """Windows of equal keys are found together: all on one axis; every other window is found alone."""
        return self.axis or self

    @property
    def lengths(self) -> dict[str, Amount]:
        """The parameters that are lengths, by name."""
        values = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, Amount)}

    @property
    def durations(self) -> dict[str, Amount]:
        """The lengths of event time among them."""
        return {name: length for name, length in self.lengths.items() if length.measure.is_event_time}

    @property
    def reach(self) -> int | None:
        """How far the end of a window of event time may lie behind its rows; None if nobody knows."""
        longest = self.family.length if self.is_periodic and self.family is not None else 0
        return max([longest, *(int(duration.size) for duration in self.durations.values())])

    def in_unit(self, unit: str | None) -> Self:
        """The window with its event times in the unit of the time column.

        Parameters
        ----------
        unit
            What an integer time column counts; without one, durations are in microseconds and integers stay as they
            are.

        Raises
        ------
        QueryError
            Something is no whole number of units, does not fit 64 bits, or is no parameter that could be converted.
        """
        if self._is_in_unit(unit):
            return self  # a workload of many queries is made anew with each that is added
        lengths = {name: in_time_unit(length, unit, name) for name, length in self.durations.items()}
        converted = dataclasses.replace(self, **lengths, **self._instants_in_unit(unit))
        if not converted._is_in_unit(unit):
            raise QueryError(
                f"`unit` cannot be combined with {self!r}, whose lengths are fixed; leave it out, and make the time "
                "column a timestamp",
                parameter="unit",
            )
        return converted

    def _is_in_unit(self, unit: str | None) -> bool:
        measure = self.time_measure
        if measure is None:
            return True
        return measure.unit == (unit or TIME.unit) if measure.kind == "time" else unit is None

    def _instants_in_unit(self, unit: str | None) -> dict[str, Any]:
        """The parameters beside lengths, in this unit."""
        return {}

    def scaled(self, digits: int) -> Self:
        """The window with all its numbers times ``10**digits``, which must be whole then."""
        lengths = {name: Amount(_times(length.size, digits), length.measure) for name, length in self.lengths.items()}
        return dataclasses.replace(self, **lengths, **{n: _times(at, digits) for n, at in self.instants.items()})


class ContextFree(Window):
    """A window whose bounds do not depend on rows."""

    @property
    def context(self) -> Context:
        return Context.FREE


def _times(size: int | float, digits: int) -> int:
    return int(Decimal(str(size)) * 10**digits)
