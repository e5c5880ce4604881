"""Sliding-window aggregators: the papers' algorithms as data structures, over any aggregate and without an engine.

``ALGORITHMS`` is the registry: tests, benchmarks and documentation pick algorithms up from there. Beside the path.
"""

from __future__ import annotations

from slicewise.swag.amta import AMTA
from slicewise.swag.b_int import BInt
from slicewise.swag.base import EmptyWindowError, FactCard, SlidingWindow
from slicewise.swag.cutty_store import CuttyStore
from slicewise.swag.daba import DABA
from slicewise.swag.fiba import FiBA
from slicewise.swag.flatfat import FlatFAT
from slicewise.swag.flatfit import FlatFIT
from slicewise.swag.in_order import CuttyInOrder, FiBAInOrder
from slicewise.swag.log_mta import LogMTA
from slicewise.swag.naive import Naive
from slicewise.swag.reactive import ReactiveAggregator
from slicewise.swag.rolling import roll
from slicewise.swag.shared_plan import Acq, SharedPlan
from slicewise.swag.slickdeque import SlickDeque
from slicewise.swag.stores import DiskStore, MemoryStore, RedisStore, StoreError
from slicewise.swag.subtract_on_evict import SubtractOnEvict
from slicewise.swag.two_stacks import TwoStacks

__all__ = [
    "ALGORITHMS",
    "AMTA",
    "DABA",
    "Acq",
    "BInt",
    "CuttyStore",
    "DiskStore",
    "EmptyWindowError",
    "FactCard",
    "FiBA",
    "FlatFAT",
    "FlatFIT",
    "LogMTA",
    "MemoryStore",
    "Naive",
    "ReactiveAggregator",
    "RedisStore",
    "SharedPlan",
    "SlickDeque",
    "SlidingWindow",
    "StoreError",
    "SubtractOnEvict",
    "TwoStacks",
    "fact_cards",
    "roll",
]

ALGORITHMS: dict[str, type[SlidingWindow]] = {
    cls.__name__: cls
    for cls in (
        *(Naive, SubtractOnEvict, FlatFAT, ReactiveAggregator, BInt),
        *(FlatFIT, TwoStacks, DABA, SlickDeque, LogMTA, AMTA),
    )
} | {"CuttyStore": CuttyInOrder, "FiBA": FiBAInOrder}
"""Every algorithm by its name, with the one contract: ``CuttyStore`` and ``FiBA`` take values in order here."""


def fact_cards() -> str:
    """The fact cards of all algorithms, as a table in Markdown.

    Returns
    -------
    str
        A heading and one line per algorithm, in the order of ``ALGORITHMS``.

    Examples
    --------
    >>> print(fact_cards().splitlines()[2])
    | Naive | associative | first in, first out | any | query n - 1 combines, the rest none | n | Li et al., SIGMOD... |
    """
    lines = ["| algorithm | needs | order | ranges | combines | space | published |", "| --- " * 7 + "|"]
    for name, cls in ALGORITHMS.items():
        f = cls.facts
        ranges = "any" if cls.several_ranges else "the whole window"
        lines.append(f"| {name} | {f.needs} | {f.order} | {ranges} | {f.time} | {f.space} | {f.published} |")
    return "\n".join(lines)
