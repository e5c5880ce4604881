"""Errors: one family, so that ``except sw.SlicewiseError`` catches everything slicewise raises on purpose.

Every message says what is wrong, what we got and what to do. A leaf: of slicewise it imports the reasons of bad rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from slicewise.bad_rows import USER_CODE

__all__ = [
    "AggregateError",
    "DataError",
    "OverflowInWindowError",
    "QueryError",
    "SetupError",
    "SlicewiseError",
    "StateError",
    "did_you_mean",
]


class SlicewiseError(Exception):
    """The parent of every error that slicewise raises on purpose."""


class QueryError(SlicewiseError, ValueError):
    """What was said makes no sense: an amount, a window, a query or a workload."""


class AggregateError(SlicewiseError, TypeError):
    """An aggregate cannot work on the values or types it was given, or breaks a law it promises."""


class DataError(SlicewiseError, ValueError):
    """Rows that do not fit the workload: missing columns, null times, times that go back."""


class RefusedRowsError(DataError):
    """Rows that are left out because something is wrong with them; the others stay, and the next call goes on.

    ``rows`` are their places among the rows that were looked at, ``reason`` is one of :mod:`slicewise.bad_rows`. Where
    they were found out in a step, ``records`` are the rows themselves, as they were kept, and ``ago`` how many rows ago
    each came: 1 for the last of all.
    """

    def __init__(self, message: str, rows: Iterable[int], reason: str = USER_CODE) -> None:
        super().__init__(message)
        self.rows = list(rows)
        self.reason = reason
        self.records: Any = None
        self.ago: Any = None


class UserCodeError(RefusedRowsError):
    """The user's code raised, or gave nonsense, when it was shown a row.

    Attributes
    ----------
    code
        Whose code it is: a window, or an aggregate of a query.
    failure
        What it did.
    place
        The first of the rows, as its text says; None until somebody knows.
    others
        How many rows it failed on besides that one.
    """

    def __init__(
        self, code: str, failure: str, rows: Iterable[int], place: Any = None, others: int = 0, *, left_out: bool = True
    ) -> None:
        rows = list(rows)
        at = "a record" if place is None else place
        end = "mend it, or filter such rows out before run()"
        if left_out:
            end = "the record was left out" if place is None else place.left_out(others)
        super().__init__(f"{code} at {at}: {failure}; {end}", rows)
        self.code, self.failure, self.place, self.others = code, failure, place, others


class OverflowInWindowError(SlicewiseError, OverflowError):
    """A window's result does not fit its type, where the Spark function of the same name would fail too.

    ``label`` says which window of which query and key it is, once that is known; ``reason`` is the message without it.
    """

    def __init__(self, reason: str, label: Any = None) -> None:
        super().__init__(reason if label is None else f"{label}: {reason}")
        self.reason, self.label = reason, label


class UserCodeInWindowError(AggregateError):
    """A window has no value, because a function of the user's aggregate raised. The other windows have theirs.

    ``label`` says which window of which query and key it is, ``others`` how many windows have no value besides it;
    ``reason`` is the message without them. In process the value is null; elsewhere there are no results (``stopped``).
    """

    def __init__(self, reason: str, label: Any, others: int = 0, *, stopped: bool = False) -> None:
        end = "mend it, or take it out of the workload" if stopped else "its value is null"
        if others and not stopped:
            end += f", and so {'is that of 1 other window' if others == 1 else f'are those of {others} other windows'}"
        super().__init__(f"{label}: {reason}; {end}")
        self.reason, self.label, self.others = reason, label, others


class StateError(SlicewiseError, ValueError):
    """A snapshot that this workload cannot continue from."""


class SetupError(SlicewiseError, RuntimeError):
    """Something that is needed is not installed, or not as it must be; the message has the command that mends it."""


class MissingPackageError(SetupError, ImportError):
    """A package of an extra is not installed; an ``ImportError`` too, for those who try and do without."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Name the nearest known words, as the end of an error message.

    >>> did_you_mean("prise", ["price", "volume"])
    "did you mean 'price'?"
    >>> did_you_mean("eventTime", ["EVENTTIME", "price"])
    "did you mean 'EVENTTIME'?"
    >>> did_you_mean("zzz", ["price", "volume"])
    "known: 'price', 'volume'"
    """
    names = sorted({str(k) for k in known})
    spelled: dict[str, list[str]] = {}
    for name in names:
        spelled.setdefault(name.casefold(), []).append(name)
    near = [n for found in difflib.get_close_matches(word.casefold(), spelled, n=3, cutoff=0.6) for n in spelled[found]]
    if near:
        return f"did you mean {' or '.join(repr(n) for n in near)}?"
    return "known: " + (", ".join(repr(n) for n in names) if names else "none")
