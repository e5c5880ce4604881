"""What tests of costs share: an aggregate that counts its calls, and slides of a full window."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import SlidingWindow, is_selective


class Counting(Aggregate):
    """Another aggregate whose calls of ``lift``, ``combine`` and ``invert`` are counted.

    Several of them may count into the same ``calls``.
    """

    def __init__(self, inner: Aggregate, calls: Counter[str] | None = None) -> None:
        super().__init__(*inner.columns)
        self.name = inner.name
        self.inner = inner
        self.identity, self.skips_nulls = inner.identity, inner.skips_nulls
        self.commutative, self.invertible, self.kind = inner.commutative, inner.invertible, inner.kind
        self.selective = is_selective(inner)
        self.lower = inner.lower  # type: ignore[method-assign]
        self.calls: Counter[str] = Counter() if calls is None else calls

    def parameters(self) -> tuple[Any, ...]:
        return (self.inner,)

    def lift(self, *values: Any) -> Any:
        self.calls["lift"] += 1
        return self.inner.lift(*values)

    def combine(self, a: Any, b: Any) -> Any:
        self.calls["combine"] += 1
        return self.inner.combine(a, b)

    def invert(self, a: Any, b: Any) -> Any:
        self.calls["invert"] += 1
        return self.inner.invert(a, b)

    @property
    def combines(self) -> int:
        """Calls of ``combine`` or ``invert``, as the fact cards count them."""
        return self.calls["combine"] + self.calls["invert"]

    def during(self, action: Callable[[], Any]) -> int:
        """The combines that an action takes."""
        before = self.combines
        action()
        return self.combines - before


def slides(window: SlidingWindow, values: Iterable[Any], ask: Callable[[SlidingWindow], Any]) -> list[int]:
    """Combines per slide of a full window: one value leaves, one enters, ``ask`` queries the window."""
    counting = window.aggregate
    assert isinstance(counting, Counting)
    counts = []
    for value in values:
        before = counting.combines
        window.evict()
        window.insert(value)
        ask(window)
        counts.append(counting.combines - before)
    return counts
