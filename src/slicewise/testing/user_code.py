"""User code: what a user's own object or policy says of the rows of one key, checked, and the windows it means.

Cutty's discretisation, both kinds, and MTA's window slide policy, by definition. Read by the oracle.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from slicewise.errors import DataError
from slicewise.testing.discretise import Found, looking_back
from slicewise.testing.rows import ON_ROWS, RefusedRowError, Row, aggregated, column_of
from slicewise.windows import Evict

__all__ = ["deterministic", "non_deterministic", "policy"]


def deterministic(query: Any, rows: Sequence[Row]) -> list[Found]:
    """Begins count with the row and come first, ends before it; windows end in the order in which they began.

    ::

                  a       b       c       d
        begins,   1,0     1,0     0,1     0,0
        ends
                 [0---------------)
                          [1--------------        open: no end
    """
    thing = _make(query)
    found: list[Found] = []
    open_at: list[int] = []
    for i, row in enumerate(rows):
        begins, ends = _begins_and_ends(query, row, _ask(query, thing, row))
        open_at += [i] * begins
        if ends > len(open_at):
            raise _refuse(query, row, f"ends {ends} windows, but only {len(open_at)} are open")
        ended, open_at = open_at[:ends], open_at[ends:]
        # A window that began with this very row and ends before it holds nothing.
        found += [Found(rows[low].time, row.time, low, i, row.time, row.time) for low in ended if low < i]
    return found + [Found(rows[low].time, None, low, len(rows), math.inf, math.inf) for low in open_at]


def non_deterministic(query: Any, rows: Sequence[Row]) -> list[Found]:
    """The row joins, then some leave from the front, then what is left is reported if the object says so."""
    thing = _make(query)
    found, front = [], 0
    for i, row in enumerate(rows):
        n, trigger = _evict(query, row, _ask(query, thing, row))
        if n > i + 1 - front:
            raise _refuse(query, row, f"evicts {n} rows, but only {i + 1 - front} are in the window")
        front += n
        if trigger and front <= i:
            found.append(Found(rows[front].time, row.time, front, i + 1, row.time + 1, row.time))
    return found


def policy(query: Any, rows: Sequence[Row]) -> list[Found]:
    """After each row the longest prefix leaves for which, and for all shorter ones, ``evict(total, oldest)`` holds."""
    window = query.window
    front, fronts = 0, []
    for i, row in enumerate(rows):
        total = _watched(query, row, rows[front : i + 1])
        high = front + 1
        while high <= i + 1 and _condemns(query, row, total, _watched(query, row, rows[front:high])):
            high += 1
        front = high - 1
        fronts.append(front)
    return looking_back(rows, window.every, lambda high: fronts[high - 1])


def _make(query: Any) -> Any:
    try:
        thing = query.window.factory()
    except Exception as error:
        raise DataError(f"query {query.name!r}: {query.window!r} cannot be made: {error!r}") from error
    if not callable(getattr(thing, "on_record", None)):
        raise DataError(
            f"query {query.name!r}: {query.window!r} must make an object with a method on_record(time, row); "
            f"got {thing!r}"
        )
    return thing


def _ask(query: Any, thing: Any, row: Row) -> Any:
    try:
        seen = {name: column_of(row.values, name, f"{query.window!r} reads") for name in query.window.columns}
    except DataError as error:
        raise RefusedRowError(row, query.name, str(error)) from error
    try:
        return thing.on_record(row.time, seen)
    except Exception as error:
        raise _refuse(query, row, f"raised {error!r}") from error


def _begins_and_ends(query: Any, row: Row, said: Any) -> tuple[int, int]:
    if isinstance(said, Evict):
        raise _refuse(
            query, row, f"returned {said!r}, but is deterministic; say user_defined(..., deterministic=False)"
        )
    try:
        begins, ends = (operator.index(n) for n in said)
    except (TypeError, ValueError):
        raise _refuse(query, row, f"must return two counts, begins and ends; got {said!r}") from None
    if begins < 0 or ends < 0:
        raise _refuse(query, row, f"must not return negative counts; got {said!r}")
    return begins, ends


def _evict(query: Any, row: Row, said: Any) -> tuple[int, bool]:
    counted = isinstance(said, Evict) and isinstance(said.n, (int, np.integer)) and said.n >= 0
    if not counted or not isinstance(said.trigger, (bool, np.bool_)):
        raise _refuse(query, row, f"must return sw.Evict(n, trigger), a count and a boolean; got {said!r}")
    return int(said.n), bool(said.trigger)


def _watched(query: Any, row: Row, rows: Sequence[Row]) -> dict[str, Any]:
    """What a policy sees of some rows, of which ``row`` has just come."""
    try:
        return aggregated(query.window.watch, rows)
    except DataError:
        raise
    except Exception as error:
        raise _refuse(query, row, f"raised {error!r}") from error


def _condemns(query: Any, row: Row, total: dict[str, Any], oldest: dict[str, Any]) -> bool:
    try:
        said = query.window.evict(total, oldest)
    except Exception as error:
        raise _refuse(query, row, f"raised {error!r} on total={total} and oldest={oldest}") from error
    if not isinstance(said, (bool, np.bool_)):
        raise _refuse(query, row, f"must return true or false; got {said!r}")
    return bool(said)


def _refuse(query: Any, row: Row, what: str) -> RefusedRowError:
    return RefusedRowError(row, query.name, f"{query.window!r} {what}", ON_ROWS)
