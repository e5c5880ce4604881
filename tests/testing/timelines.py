"""Timelines: what the tests of the oracle share. Rows written as ``a@3``, results as one line each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.results import Result
from slicewise.testing import Oracle
from slicewise.windows import Window
from slicewise.workload import Workload


class Collect(Aggregate):
    """Every value in order: shows what is lost, doubled or swapped."""

    name = "collect"
    identity = ()

    def lift(self, *values: Any) -> Any:
        return values

    def combine(self, a: Any, b: Any) -> Any:
        return a + b

    def lower(self, partial: Any) -> Any:
        return "".join(partial)


def oracle_of(*windows: Window, lateness: int = 0, order: Sequence[str] = ()) -> Oracle:
    """An oracle of one query per window, each of which collects the values of column ``v``."""
    workload = Workload(time="t", lateness=lateness, order=order)
    for i, window in enumerate(windows):
        workload = workload.query(f"q{i}" if len(windows) > 1 else "q", window, got=Collect("v"))
    return Oracle(workload)


def feed(oracle: Oracle, stream: str, key: Any = (), **columns: Any) -> None:
    """``feed(oracle, "a@3 B@7/40")``: row ``a`` at time 3; row ``B`` at 7, a marker for its capital, with ``u`` 40."""
    for item in stream.split():
        value, place = item.split("@")
        time, _, u = place.partition("/")
        row = {"v": value, "mark": value.isupper(), "u": float(u) if u not in ("", "-") else None}
        oracle.process(int(time), {**row, **columns}, key)


def reports(results: Iterable[Result]) -> list[str]:
    """``insert 0-10 r0 abc``: change, bounds, revision and values of each result; an open end is empty."""
    return [f"{r.change} {_bound(r.start)}-{_bound(r.end)} r{r.revision} {r.values['got']}" for r in results]


def _bound(bound: Any) -> str:
    if bound is None:
        return ""
    return f"{bound:g}" if isinstance(bound, float) else str(bound)


def late(oracle: Oracle) -> list[str]:
    """The values of the rows that were too late since the last call."""
    return [row["v"] for _, row, _ in oracle.late()]
