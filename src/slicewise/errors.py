"""Errors: one family, so that ``except sw.SlicewiseError`` catches everything slicewise raises on purpose.

Every message says what is wrong, what we got and what to do; what a program would want to know of it is in attributes.
A leaf: of slicewise it imports the reasons of bad rows.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from slicewise.bad_rows import EXPRESSION, USER_CODE

__all__ = [
    "AggregateError",
    "DataError",
    "ExpressionError",
    "FailedRowsError",
    "FailedWindowsError",
    "MissingPackageError",
    "OverflowInWindowError",
    "OverfullError",
    "QueryError",
    "RefusedRowsError",
    "SetupError",
    "SlicewiseError",
    "StateError",
    "UserCodeError",
    "UserCodeInWindowError",
    "did_you_mean",
]


class SlicewiseError(Exception):
    """The parent of every error that slicewise raises on purpose.

    Examples
    --------
    >>> import slicewise as sw
    >>> try:
    ...     sw.tumbling("0 seconds")
    ... except sw.SlicewiseError as error:
    ...     print(error)
    `length` must be positive; got '0 seconds'
    """


class QueryError(SlicewiseError, ValueError):
    """A description that makes no sense: an amount, a condition, a window, a query or a workload.

    Parameters
    ----------
    message : str
        The whole text, which ``str(error)`` gives back unchanged.
    parameter : str, optional
        The parameter whose value is wrong, as it is spelled in the call.
    query : str, optional
        The name of the query that is wrong.
    column : str, optional
        The result column whose aggregate is wrong, or the column of the data that does not exist.

    Examples
    --------
    The attributes say what the error is about, so that nobody has to parse its message:

    >>> import slicewise as sw
    >>> try:
    ...     sw.sliding("1 hour", every="0 seconds")
    ... except sw.QueryError as error:
    ...     print(error.parameter, "|", error)
    every | `every` must be positive; got '0 seconds'
    """

    def __init__(
        self, message: str, *, parameter: str | None = None, query: str | None = None, column: str | None = None
    ) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.query = query
        self.column = column


class AggregateError(SlicewiseError, TypeError):
    """An aggregate cannot work on the values or types it is given, or breaks a law that it promises.

    Examples
    --------
    >>> import slicewise as sw
    >>> workload = sw.Workload(time="ts").query("totals", sw.tumbling(10), total=sw.sum("name"))
    >>> workload.operator().process_batch({"ts": [0], "name": ["Ada"]})
    Traceback (most recent call last):
        ...
    slicewise.errors.AggregateError: `sum` of column 'name' needs numbers; got string: cast the column to a numeric type
    first
    """


class DataError(SlicewiseError, ValueError):
    """Rows that do not fit the workload: missing columns, null times, times that go back.

    Examples
    --------
    >>> import slicewise as sw
    >>> workload = sw.Workload(time="ts").query("totals", sw.tumbling(10), total=sw.sum("price"))
    >>> workload.operator().process_batch({"ts": [0], "prise": [3]})
    Traceback (most recent call last):
        ...
    slicewise.errors.DataError: there is no column 'price' in the rows; did you mean 'prise'?
    """


class RefusedRowsError(DataError):
    """Rows that are left out because something is wrong with them; the others stay, and the next call goes on.

    Parameters
    ----------
    message : str
        What went wrong, and in which row.
    rows : iterable of int
        The positions of these rows among those that were looked at.
    reason : str
        One of :mod:`slicewise.bad_rows`.

    Attributes
    ----------
    records, ago
        Where they were found out in a step: the rows themselves, as they were kept, and how many rows ago each came, 1
        for the last of all. None elsewhere.
    """

    def __init__(self, message: str, rows: Iterable[int] = (), reason: str = USER_CODE) -> None:
        super().__init__(message)
        self.rows = list(rows)
        self.reason = reason
        self.records: Any = None
        self.ago: Any = None


class FailedRowsError(RefusedRowsError):
    """Something the user described failed on a row: code, or an expression.

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

    #: Why such rows are bad.
    kind = USER_CODE

    def __init__(
        self, code: str, failure: str, rows: Iterable[int], place: Any = None, others: int = 0, *, left_out: bool = True
    ) -> None:
        rows = list(rows)
        at = "a record" if place is None else place
        end = "fix it, or filter such rows out before run()"
        if left_out:
            end = "the record was left out" if place is None else place.left_out(others)
        super().__init__(f"{code} at {at}: {failure}; {end}", rows, self.kind)
        self.code, self.failure, self.place, self.others = code, failure, place, others

    def placed(self, place: Any, *, left_out: bool = True) -> FailedRowsError:
        """The same error, of a row that is now known by another label."""
        return type(self)(self.code, self.failure, self.rows, place, self.others, left_out=left_out)


class UserCodeError(FailedRowsError):
    """The user's code raised, or gave nonsense, when it was shown a row."""


class ExpressionError(FailedRowsError):
    """A computed column leaves its type in a row.

    Examples
    --------
    >>> import slicewise as sw
    >>> workload = sw.Workload(time="ts").query("q", sw.tumbling(10), total=sw.sum(sw.expr("a * b")))
    >>> workload.operator().process_batch({"ts": [0, 1], "a": [2**62, 1], "b": [2, 1]})
    Traceback (most recent call last):
        ...
    slicewise.errors.ExpressionError: expr('a * b') at the record of time 0: 4611686018427387904 * 2 does not fit
    bigint; the record was left out
    """

    kind = EXPRESSION


class OverflowInWindowError(SlicewiseError, OverflowError):
    """A window's result does not fit its type, where the Spark function of the same name would fail too.

    Parameters
    ----------
    reason : str
        What does not fit, without the window.
    label : WindowLabel, optional
        The query, the key and the window, once they are known; the message then begins with it.

    Examples
    --------
    >>> import slicewise as sw
    >>> workload = sw.Workload(time="ts").query("totals", sw.tumbling(10), total=sw.sum("n"))
    >>> op = workload.operator()
    >>> op.process_batch({"ts": [0, 1], "n": [2**62, 2**62]})
    Results(0 rows)
    >>> op.close()
    Traceback (most recent call last):
        ...
    slicewise.errors.OverflowInWindowError: query 'totals', window [0, 10): `sum` of column 'n' does not fit in a 64-bit
    integer: a window gives 9223372036854775808; cast the column to a wider type, such as a decimal with fewer decimals
    or double
    """

    def __init__(self, reason: str, label: Any = None) -> None:
        super().__init__(reason if label is None else f"{label}: {reason}")
        self.reason, self.label = reason, label


class FailedWindowsError(AggregateError):
    """A window has no value, though it has rows. The other windows have theirs.

    ``label`` says which window of which query and key it is, ``others`` how many windows have no value besides it;
    ``reason`` is the message without them. In process the value is null; elsewhere there are no results (``stopped``).
    """

    #: What to do about it.
    remedy = "fix it, or remove it from the workload"

    def __init__(self, reason: str, label: Any, others: int = 0, *, stopped: bool = False) -> None:
        end = self.remedy if stopped else "its value is null"
        if others and not stopped:
            end += f", and so {'is that of 1 other window' if others == 1 else f'are those of {others} other windows'}"
        super().__init__(f"{label}: {reason}; {end}")
        self.reason, self.label, self.others = reason, label, others


class UserCodeInWindowError(FailedWindowsError):
    """A function of the user's aggregate raised."""


class OverfullError(FailedWindowsError):
    """A window has more categories than ``by`` allows for."""

    remedy = "allow more of them, by(..., most=...), or for fewer categories"


class StateError(SlicewiseError, ValueError):
    """A snapshot that this workload cannot continue from.

    Examples
    --------
    >>> import slicewise as sw
    >>> totals = sw.Workload(time="ts").query("totals", sw.tumbling(10), total=sw.sum("n"))
    >>> snapshot = totals.operator().snapshot()
    >>> by_user = sw.Workload(time="ts", keys=["user"]).query("totals", sw.tumbling(10), total=sw.sum("n"))
    >>> by_user.operator().restore(snapshot)
    Traceback (most recent call last):
        ...
    slicewise.errors.StateError: the snapshot belongs to another workload: its `keys` is [], this one's ['user']; only
    queries may be added or removed
    """


class SetupError(SlicewiseError, RuntimeError):
    """Something that is needed is missing or unsuitable; the message has the command that mends it.

    Examples
    --------
    >>> from slicewise.installation import Problem
    >>> raise Problem("Java is not on PATH", "sudo apt install openjdk-17-jre-headless").error()
    Traceback (most recent call last):
        ...
    slicewise.errors.SetupError: Java is not on PATH; sudo apt install openjdk-17-jre-headless
    """


class MissingPackageError(SetupError, ImportError):
    """A package of an extra is not installed; also an ``ImportError``, for code that can do without the package."""


def one_of(words: Sequence[str]) -> str:
    """The words that something may be, in an error message.

    >>> one_of(["complete", "changes", "differences"])
    "'complete', 'changes' or 'differences'"
    """
    *others, last = map(repr, words)
    return f"{', '.join(others)} or {last}" if others else last


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
    spellings: dict[str, list[str]] = {}
    for name in names:
        spellings.setdefault(name.casefold(), []).append(name)
    close = difflib.get_close_matches(word.casefold(), spellings, n=3, cutoff=0.6)
    near = [name for spelling in close for name in spellings[spelling]]
    if near:
        return f"did you mean {' or '.join(repr(n) for n in near)}?"
    return "known: " + (", ".join(repr(n) for n in names) if names else "none")
