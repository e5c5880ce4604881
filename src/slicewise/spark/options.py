"""Options: how a workload is run on Spark, beside what it says itself."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["RunOptions"]


@dataclass(frozen=True)
class RunOptions:
    """The options of :meth:`slicewise.Workload.run`; some are for streams, one is for batches."""

    late: str | None = None
    emit: str = "complete"
    idle: str | None = None
    bad: str | None = None
    shuffle: str = "slices"
