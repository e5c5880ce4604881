"""Calls and combines of a slide, counted: what the reasons of claims quote. ``python benchmarks/papers/calls.py``.

Where a slide takes microseconds it is calls that cost, of Python and from Python into C, more than combines of numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
import swag as windows

import slicewise.aggregates as sw
from slicewise.swag import ALGORITHMS


class Calls(NamedTuple):
    """Per slide, over whole cycles: some algorithms do most of their work once in n slides."""

    python: float
    c: float
    combines: float


def calls_of(name: str, aggregate: Any, n: int) -> Calls:
    """Of one value out, one in and a query, in a window of n that has slid for a while."""
    window: Any = ALGORITHMS[name](aggregate)
    values = windows.numbers(n)
    window.insert_many(values)
    for value in values * 3:
        _slide(window, value)
    counted = {"call": 0, "c_call": 0, "combine": 0}

    def count(frame: Any, event: str, _: Any) -> None:
        if event in counted:
            counted[event] += 1
        if event == "call" and frame.f_code.co_name in ("combine", "invert"):
            counted["combine"] += 1

    slides = values * 2
    sys.setprofile(count)
    try:
        for value in slides:
            _slide(window, value)
    finally:
        sys.setprofile(None)
    # The slide itself is a call of this module's.
    return Calls(*(round(counted[event] / len(slides), 1) for event in counted))._replace(
        python=round(counted["call"] / len(slides) - 1, 1)
    )


def _slide(window: Any, value: Any) -> None:
    window.evict()
    window.insert(value)
    window.query()


def main() -> None:
    for n in (4, 16, 1024):
        for kind in ("sum", "max"):
            for name in ALGORITHMS:
                try:
                    calls = calls_of(name, getattr(sw, kind)(), n)
                except Exception as refusal:  # a pairing that the algorithm does not take
                    print(f"{n:>6} {kind} {name:<20} {refusal}")
                    continue
                shown = f"{calls.python:>7} calls of Python {calls.c:>7} into C {calls.combines:>7} combines"
                print(f"{n:>6} {kind} {name:<20} {shown}")


if __name__ == "__main__":
    main()
