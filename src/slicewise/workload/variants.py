"""Variants: a workload for who has done part of its work already."""

from __future__ import annotations

from slicewise.workload.settings import replaced
from slicewise.workload.workload import Workload

__all__ = ["with_stamped_rows", "without_punctuation", "without_where"]


def with_stamped_rows(workload: Workload) -> Workload:
    """The same workload over rows that have got the clock's time already, where it is on processing time."""
    if workload.on_clock is None:
        return workload
    return replaced(workload, workload.watermark, workload.lateness, time="\0time")


def without_punctuation(workload: Workload) -> Workload:
    """The same workload over rows all of which are data."""
    if workload.punctuation is None:
        return workload
    return replaced(workload, workload.watermark, workload.lateness, punctuation=None)


def without_where(workload: Workload) -> Workload:
    """The same workload over rows all of which are meant."""
    return workload if workload.where is None else replaced(workload, workload.watermark, workload.lateness, where=None)
