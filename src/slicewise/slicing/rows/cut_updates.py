"""Cut updates: how cuts that were folded before get their new partials when rows shift between them (Figure 6).

A row out of order moves every later one by a position: at each bound of a count window one row leaves the cut before it
and enters the one behind. Rows keep their order among each other, so a cut mostly holds the rows it held before::

    before   a b c d | e f g h | i j k l          old cuts 0, 1, 2
    x comes  a x b c | d e f g | h i j k l        new cut 1 = old cut 1, less h, and d
                  ^         ^    leave; enter the next

What is then done is decided per aggregate by :func:`slicewise.plan.decisions.remove_tuples`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from slicewise.aggregates.base import Monoid, Parts, put_parts, take_parts
from slicewise.aggregates.sharing import SharedMonoid
from slicewise.kernels import enumerate_ranges, expand_ranges, segment_starts, sorted_unique
from slicewise.plan.characteristics import AggregateTraits
from slicewise.plan.costs import Costs
from slicewise.plan.decisions import how_rows_leave
from slicewise.records import record

__all__ = ["INVERT", "RECOMPUTE", "SPARE", "CachedCuts", "CutUpdate", "divided", "removal_of"]

#: What happens to a partial when rows leave its cut: they are taken out by inverse; it stays unless they hold its
#: extreme; it is computed again from all rows.
INVERT, SPARE, RECOMPUTE = "invert", "spare", "recompute"

Fold = Callable[[int, np.ndarray, np.ndarray], Parts]


def removal_of(monoid: Monoid) -> str:
    """How rows leave partials: of several aggregates that are kept together, all by the same way or all anew."""
    members = monoid.members if isinstance(monoid, SharedMonoid) else (monoid,)
    ways = {how_rows_leave(AggregateTraits.of(m.aggregate), exact=m.exact).choice for m in members}
    return ways.pop() if len(ways) == 1 else RECOMPUTE


@record
class CachedCuts:
    """Cuts whose rows may still shift: ranges of places among ordered rows, and their partials by number of aggregate.

    ``inner`` says which of them begin inside of a longer one that was divided because of its size alone.
    """

    low: np.ndarray
    high: np.ndarray
    inner: np.ndarray
    parts: Mapping[int, Parts]

    @classmethod
    def none(cls) -> CachedCuts:
        """Nothing was folded that may still change."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool), {})

    def __len__(self) -> int:
        return len(self.low)


def divided(bounds: np.ndarray, inner: np.ndarray, size: int) -> np.ndarray:
    """The bounds of cuts with further ones in between, so that no cut holds more than ``size`` rows.

    The inner bounds of the last step stay with their rows, and so do the partials between them: when the outer bounds
    move by a row, only the cuts beside them change. Inner bounds that stand close together go, one in two at a time.

    >>> divided(np.array([0, 10, 12]), np.array([6]), 4)
    array([ 0,  3,  6, 10, 12])
    """
    together = sorted_unique(np.concatenate([bounds, inner[(inner > bounds[0]) & (inner < bounds[-1])]]))
    outer = np.zeros(len(together), bool)
    outer[np.searchsorted(together, bounds)] = True
    close = np.zeros(len(together), bool)
    close[1:-1] = (together[2:] - together[:-2] <= size) & ~outer[1:-1]
    close[::2] = False
    together = together[~close]
    length = np.diff(together)
    # Not quite full, so that the next row does not divide them again.
    pieces = np.where(length > size, -(-length // max(1, 3 * size // 4)), 1)
    which, nth = enumerate_ranges(np.ones(len(length), np.int64), pieces - 1)
    return sorted_unique(np.concatenate([together, together[which] + nth * length[which] // pieces[which]]))


class CutUpdate:
    """Which rows left and entered which cut since the last step.

    Parameters
    ----------
    known
        The cuts of the last step, as places among the rows of that step.
    came
        For each row of now its place among the rows of the last step with newer ones behind them.
    had
        How many rows there were in the last step.
    cuts, covered
        The bounds of the cuts of now, and which of the cuts are part of any window.

    Attributes
    ----------
    tail
        The first cut that lies behind all rows that were in a cut.
    parent
        For each cut before it the one of the last step that most of its rows were in, -1 for none.
    leaving, entering
        The rows that are in the parent of a cut and not in the cut, or the other way round, by cut.
    """

    def __init__(
        self,
        known: CachedCuts,
        came: np.ndarray,
        had: int,
        cuts: np.ndarray,
        covered: np.ndarray,
        costs: Costs | None = None,
    ) -> None:
        self.known = known
        self._costs = Costs() if costs is None else costs
        self.low, self.high = cuts[:-1], cuts[1:]
        # Behind the last row that was in a cut everything is new: it is folded as it stands, and not looked at here.
        behind = int(np.flatnonzero(came == known.high[-1] - 1)[0]) + 1
        self.tail = int(np.searchsorted(self.low, behind))
        came = came[: max(behind, int(cuts[self.tail]) if self.tail else 0)]
        self.covered = covered
        size = (self.high - self.low)[: self.tail]
        now, was = np.full(len(came), -1), np.full(max(had, len(came)) + 1, -1)
        if len(size):
            numbers = np.where(covered[: self.tail], np.arange(len(size)), -1)
            now[int(cuts[0]) : int(cuts[self.tail])] = np.repeat(numbers, size)
        index, _ = expand_ranges(known.low, known.high)
        was[index] = np.repeat(np.arange(len(known)), known.high - known.low)
        was = was[np.minimum(came, had)]  # nothing stands at the place behind the last one
        self.parent = self._parents(now, was, size)
        parent = np.append(self.parent, -1)[now]
        self.entering = _Moved(np.flatnonzero((now >= 0) & ((parent < 0) | (was != parent))), now)
        child = np.full(len(known) + 1, -1)
        child[self.parent[self.parent >= 0]] = np.flatnonzero(self.parent >= 0)
        heir = child[was]
        self.leaving = _Moved(np.flatnonzero((heir >= 0) & (now != heir)), heir)
        self._count(now, was, child, self._costs)

    def _parents(self, now: np.ndarray, was: np.ndarray, size: np.ndarray) -> np.ndarray:
        """Each old cut has one heir at most, the cut with most of its rows, and each cut one parent."""
        parent = np.full(len(size), -1)
        both = np.flatnonzero((now >= 0) & (was >= 0))
        if not len(both):
            return parent
        one, other = now[both], was[both]
        # Rows keep their order, so that rows that were together and still are stand side by side.
        starts = segment_starts((one[1:] != one[:-1]) | (other[1:] != other[:-1]))
        shared = np.diff(starts, append=len(both))
        one, other = one[starts], other[starts]
        by_size = np.argsort(shared, kind="stable")
        heir = np.full(len(self.known), -1)
        heir[other[by_size]] = one[by_size]  # the last of several stays: the largest
        kept = by_size[heir[other[by_size]] == one[by_size]]
        parent[one[kept]] = other[kept]
        overlap = np.zeros(len(size), np.int64)
        overlap[one[kept]] = shared[kept]
        # What is to be taken out and put in must be less than what is there.
        old = self.known.high - self.known.low
        moved = (size - overlap) + (old[parent] - overlap)
        parent[moved >= np.maximum(size, 2)] = -1
        return parent

    def _count(self, now: np.ndarray, was: np.ndarray, child: np.ndarray, costs: Costs) -> None:
        """Count what became of the cuts of the last step: heirs that changed, cuts that were divided or joined."""
        changed = np.union1d(self.entering.cut, self.leaving.cut).astype(np.int64)
        stayed = (now >= 0) & (was >= 0)
        divided = np.unique(now[stayed & (np.append(self.parent, -1)[now] < 0)])
        joined = np.unique(was[stayed & (child[was] < 0)])
        rows = int((self.high - self.low)[divided].sum())
        updates = int((self.parent[changed] >= 0).sum())
        costs.count(merges=len(joined), splits=len(divided), updates=updates, rows=rows)

    def parts(self, number: int, monoid: Monoid, how: str, fold: Fold, fold_ranges: Fold) -> Parts:
        """The partials of all cuts; cuts outside of every window have none.

        ``fold`` folds rows at places, given with where each group of them starts; ``fold_ranges`` ranges of rows.
        """
        out = monoid.identities(len(self.low))
        inherited = np.flatnonzero(self.parent >= 0)
        if len(inherited):
            out = put_parts(out, inherited, take_parts(self.known.parts[number], self.parent[inherited]))
        again = np.zeros(len(self.low), bool)
        if how == RECOMPUTE:
            again[self.entering.cut] = again[self.leaving.cut] = True
        elif len(self.leaving.cut):
            gone = fold(number, self.leaving.rows, self.leaving.starts)
            held = take_parts(out, self.leaving.cut)
            if how == INVERT:
                out = put_parts(out, self.leaving.cut, monoid.invert(held, gone))
            else:
                again[self.leaving.cut] = _holds(monoid, held, gone)
                again[self.leaving.cut[monoid.failed(gone)]] = True
        came = self.entering.without(again)
        if len(came.cut):
            new = fold(number, came.rows, came.starts)
            had = self.parent[came.cut] >= 0
            if had.any():
                both = monoid.combine(take_parts(out, came.cut[had]), take_parts(new, had))
                out = put_parts(out, came.cut[had], both)
            out = put_parts(out, came.cut[~had], take_parts(new, ~had))
        again[monoid.failed(out)] = True  # without the rows that have left, it may be possible
        self._costs.count(recomputations=int(again.sum()), rows=int((self.high - self.low)[again].sum()))
        for redone in (np.flatnonzero(again), self.tail + np.flatnonzero(self.covered[self.tail :])):
            if len(redone):
                out = put_parts(out, redone, fold_ranges(number, self.low[redone], self.high[redone]))
        return out


class _Moved:
    """Rows in order, with the cut each of them moves into or out of; ``starts`` and ``cut`` have one entry per cut."""

    def __init__(self, rows: np.ndarray, cut_of: np.ndarray) -> None:
        self.rows = rows
        of_row = cut_of[rows]
        self.starts = segment_starts(of_row[1:] != of_row[:-1]) if len(rows) else rows
        self.cut = of_row[self.starts]
        self._of_row = of_row

    def without(self, some: np.ndarray) -> _Moved:
        """The same without the rows of some cuts."""
        if not some.any():
            return self
        kept = ~some[self._of_row]
        out = np.full(int(self.rows.max()) + 1 if len(self.rows) else 0, -1)
        out[self.rows] = self._of_row
        return _Moved(self.rows[kept], out)


def _holds(monoid: Monoid, all_rows: Parts, gone: Parts) -> np.ndarray:
    """Whether the extreme of all rows may be among those of the rows that are gone.

    An extreme that is another one than that of the rows gone is held by a row that stays. Array partials end with
    whether, or how often, there is an extreme at all.
    """
    equal = np.zeros(len(gone[-1]), bool)
    if isinstance(monoid, SharedMonoid):
        for member, operands in zip(monoid.members, monoid.of_members(all_rows, gone), strict=True):
            equal |= _holds(member, *operands)
        return equal
    if gone[-1].dtype == object:
        for whole, left in zip(all_rows, gone, strict=True):
            equal |= np.array([_same(a, b) for a, b in zip(whole, left, strict=True)], bool)
        return equal
    for a, b in zip(all_rows[:-1], gone[:-1], strict=True):
        equal |= (a == b) | ((a != a) & (b != b))
    held: np.ndarray = equal & (gone[-1] > 0)
    return held


def _same(a: object, b: object) -> bool:
    """Whether two partials of Python values have anything in common that could be the extreme."""
    if b is None:
        return False
    if isinstance(a, tuple) and isinstance(b, tuple):
        return any(_same(x, y) for x, y in zip(a, b, strict=True))
    return a is b or bool(a == b) or (a != a and b != b)
