"""DABA: the two stacks without their flip; every operation takes constant time, not only on average.

K. Tangwongsan, M. Hirzel, S. Schneider: "Low-latency sliding-window aggregation in worst-case constant time", DEBS 2017
(De-Amortized Banker's Aggregator). An interpretation from its description and analysis in SlickDeque (EDBT 2018).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from slicewise.aggregates.base import Aggregate
from slicewise.swag.base import FactCard, SlidingWindow
from slicewise.swag.chunked_queue import ChunkedQueue

__all__ = ["DABA"]


class DABA(SlidingWindow):
    """Two queues, values and aggregates, and six pointers F <= L <= R <= A <= B <= E into them.

    F to B is the front stack and B to E the back stack of TwoStacks. The flip is spread over the operations between two
    flips: L, R and A mark how far it has come. What an aggregate covers, up to and including the values named::

              F        L        R        A        B        E
        from  | itself | itself | R      | itself | B      |
        to    | B - 1  | R - 1  | itself | B - 1  | itself |

    After each change one step is due. When L has met B the stacks are equally long and roles are renamed, without any
    work (*flip*); then L, R and A move on together if L has met R (*shift*), or one node on either side of the part in
    the middle gets its final aggregate, and L and A close in (*shrink*, three combines).

    Here ``d`` comes in behind ``a``, ``b`` and ``c``, with which the stacks were as good as equally long: flip, then
    shrink. ``e`` is the next, and shrinks again; ``abcd`` to ``d`` are now what a flip of the front stack would give::

        F a  b LRAB c E     ->   F a L b R c A d B E     ->   F a    b LRA c  d B e E
          ab b      c              abcd  b   c   d              abcd bcd   cd d   e

    Parameters
    ----------
    aggregate
        The aggregate to compute, such as ``sw.max()``.
    chunk
        The number of values stored together, a power of two.

    Examples
    --------
    >>> from slicewise.aggregates import concat
    >>> window = DABA(concat())
    >>> window.insert_many("abcd")
    >>> [window._aggregates[i] for i in range(4)]
    ['abcd', 'b', 'c', 'd']
    >>> window.insert("e")
    >>> [window._aggregates[i] for i in range(5)], window.query()
    (['abcd', 'bcd', 'cd', 'd', 'e'], 'abcde')
    >>> window.evict(2)
    >>> window.insert("f")
    >>> window.query()
    'cdef'
    """

    facts = FactCard(
        needs="associative",
        order="first in, first out",
        time="5 combines per slide amortised, 8 worst",
        space="2n",
        published="Tangwongsan et al., DEBS 2017",
    )

    def __init__(self, aggregate: Aggregate, chunk: int = 64) -> None:
        super().__init__(aggregate)
        self._values = ChunkedQueue(chunk)
        self._aggregates = ChunkedQueue(chunk)
        # F and E are the ends of the queues.
        self._l = self._r = self._a = self._b = 0

    def __len__(self) -> int:
        return self._values.back - self._values.front

    def insert(self, value: Any) -> None:
        """Add a value at the back.

        Runtime complexity: O(1), at most four combines.
        """
        self._push(self._lift(value))

    def insert_many(self, values: Iterable[Any]) -> None:
        """Add values at the back."""
        for partial in self._lift_all(values):
            self._push(partial)

    def _push(self, partial: Any) -> None:
        aggregates = self._aggregates
        back = aggregates.back
        aggregate = partial if self._b == back else self._combine(aggregates[back - 1], partial)
        pointers = self._l, self._r, self._a, self._b
        self._values.append(partial)
        aggregates.append(aggregate)
        try:
            self._fix_up()
        except Exception:  # a value that cannot be combined: as if it had never come
            self._values.pop()
            aggregates.pop()
            self._l, self._r, self._a, self._b = pointers
            raise

    def evict(self, n: int = 1) -> None:
        """Remove the ``n`` oldest values.

        Runtime complexity: O(1) for one value, at most three combines.
        """
        self._check_evict(n)
        for _ in range(n):
            self._values.popleft()
            self._aggregates.popleft()
            self._fix_up()

    def _fix_up(self) -> None:
        aggregates = self._aggregates
        front, back = aggregates.front, aggregates.back
        if front == self._b:
            # Nothing is left in front; behind there is one value at most, and its aggregate is itself.
            self._l = self._r = self._a = self._b = back
            return
        if self._l == self._b:
            self._l, self._a, self._b = front, back, back
        if self._l == self._r:
            self._l += 1
            self._r += 1
            self._a += 1
        else:
            self._shrink()

    def _shrink(self) -> None:
        aggregates, combine = self._aggregates, self._combine
        left, a = self._l, self._a
        middle = aggregates[a - 1]
        edge = self._values[a - 1]
        if a != self._b:
            rest = aggregates[a]
            middle = combine(middle, rest)
            edge = combine(edge, rest)
        aggregates[left] = combine(aggregates[left], middle)
        aggregates[a - 1] = edge
        self._l, self._a = left + 1, a - 1

    def query(self, last: int | None = None) -> Any:
        """The aggregate of the window.

        Runtime complexity: O(1), at most one combine.
        """
        self._need_whole(last)
        aggregates, b = self._aggregates, self._b
        front, back = aggregates.front, aggregates.back
        if front == back:
            return self._lower(self.aggregate.identity)
        if front == b:
            return self._lower(aggregates[back - 1])
        if b == back:
            return self._lower(aggregates[front])
        return self._lower(self._combine(aggregates[front], aggregates[back - 1]))

    def _oldest(self) -> Iterator[Any]:
        values = self._values
        return (values[i] for i in range(values.front, values.back))

    def _check(self) -> None:
        self._values._check()
        self._aggregates._check()
        f, left, r, a, b, e = (self._values.front, self._l, self._r, self._a, self._b, self._values.back)
        assert (f, e) == (self._aggregates.front, self._aggregates.back)
        assert f <= left <= r <= a <= b <= e
        # The sizes that make the flip come for nothing: see section 4 of the DABA paper.
        assert b - f >= e - b
        assert r - left == a - r
        if f == e:
            assert left == b == e
        else:
            assert (left == b and b - f == e - b) or b - left + 1 == (b - f) - (e - b)
