"""Baselines: the techniques that stream slicing is measured against, on the operator's contract. Beside the path.

Each takes a workload and has ``process``, ``process_batch``, ``advance`` and ``close``, as an operator does, and gives
the same results. They run the aggregates' functions on single values, one and all, as the papers do, and only sorting,
cutting and finding windows is array code: so their rates can be compared with one another, and those of the engine,
which folds arrays, with none of them.

``BASELINES`` is the registry: tests, benchmarks and documentation pick techniques up from there.
"""

from __future__ import annotations

from slicewise.baselines.aggregate_buckets import AggregateBuckets
from slicewise.baselines.aggregate_tree import AggregateTree
from slicewise.baselines.base import Baseline
from slicewise.baselines.cutty import CuttyEager, CuttyLazy
from slicewise.baselines.general_slicing import EagerSlicing, LazySlicing
from slicewise.baselines.pairs import Pairs, PairsPlus
from slicewise.baselines.panes import Panes
from slicewise.baselines.reactive import Reactive
from slicewise.baselines.sum_without_inverse import SumWithoutInverse
from slicewise.baselines.technique import Held
from slicewise.baselines.tuple_buckets import TupleBuckets
from slicewise.baselines.tuple_buffer import TupleBuffer

__all__ = [
    "BASELINES",
    "AggregateBuckets",
    "AggregateTree",
    "Baseline",
    "CuttyEager",
    "CuttyLazy",
    "EagerSlicing",
    "Held",
    "LazySlicing",
    "Pairs",
    "PairsPlus",
    "Panes",
    "Reactive",
    "SumWithoutInverse",
    "TupleBuckets",
    "TupleBuffer",
    "fact_cards",
]

BASELINES: dict[str, type[Baseline]] = {
    cls.__name__: cls
    for cls in (
        *(TupleBuffer, AggregateTree, AggregateBuckets, TupleBuckets, Panes, Pairs, PairsPlus),
        *(CuttyLazy, CuttyEager, Reactive, LazySlicing, EagerSlicing),
    )
}
"""Every technique by its name."""


def fact_cards() -> str:
    """The fact cards of all techniques, as a table in Markdown.

    Returns
    -------
    str
        A heading and one line per technique, in the order of ``BASELINES``.

    Examples
    --------
    >>> print(fact_cards().splitlines()[2])
    | TupleBuffer | associative | any | row 0, or a copy out of order; window r - 1 | tuples | Traub ... |
    """
    lines = ["| technique | needs | order | combines | space | published |", "| --- " * 6 + "|"]
    for name, cls in BASELINES.items():
        f = cls.facts
        lines.append(f"| {name} | {f.needs} | {f.order} | {f.time} | {f.space} | {f.published} |")
    return "\n".join(lines)
