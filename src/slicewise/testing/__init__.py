"""Testing: what slicewise is tested with, for your own windows and aggregates too. Beside the path; no engine in here.

* :class:`Oracle` gives every result of a workload by definition, :func:`value_of` that of one aggregate over one list
  of rows, :func:`fold` what is finally true after all corrections;
* :func:`in_order`, :func:`football` and :func:`disordered` make streams from a seed;
* :func:`check_laws` looks for a counterexample to what an aggregate promises;
* :func:`stream` runs a workload on Spark over given micro-batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slicewise.testing.definitions import value_of
from slicewise.testing.laws import check_laws
from slicewise.testing.oracle import Oracle, fold
from slicewise.testing.streams import Stream, disordered, football, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slicewise.workload import Workload

__all__ = ["Oracle", "Stream", "check_laws", "disordered", "fold", "football", "in_order", "stream", "value_of"]


def stream(
    batches: Sequence[DataFrame], workload: Workload, *, folded: bool = True, partitions: int = 2, **options: Any
) -> DataFrame:
    """Run a workload as a stream over given micro-batches, and give back what is finally true.

    See :func:`slicewise.spark.harness.stream`; this only saves importing pyspark before it is needed.
    """
    from slicewise.spark.harness import stream as run

    return run(batches, workload, folded=folded, partitions=partitions, **options)
