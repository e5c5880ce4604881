"""Testing: the tools that slicewise is tested with, for your windows and aggregates too. Beside the path; no engine.

* :class:`Oracle` gives every result of a workload by definition, :func:`value_of` that of one aggregate over one list
  of rows, :func:`fold` the final values after all corrections, :func:`attached` the values as of points,
  :func:`shaped` what stands in wide outputs and in those of differences;
* :func:`in_order`, :func:`football` and :func:`disordered` make streams from a seed;
* :func:`check_laws` looks for a counterexample to what an aggregate promises;
* :func:`stream` runs a workload on Spark over given micro-batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from slicewise.testing.as_of import attached
from slicewise.testing.definitions import value_of
from slicewise.testing.folding import fold
from slicewise.testing.laws import check_laws
from slicewise.testing.oracle import Oracle
from slicewise.testing.shapes import shaped
from slicewise.testing.streams import Stream, disordered, football, in_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slicewise.workload import Workload

__all__ = [
    "Oracle",
    "Stream",
    "attached",
    "check_laws",
    "disordered",
    "fold",
    "football",
    "in_order",
    "shaped",
    "stream",
    "value_of",
]


def stream(
    batches: Sequence[DataFrame], workload: Workload, *, folded: bool = True, partitions: int = 2, **options: Any
) -> DataFrame:
    """Run a workload as a stream on Spark over given micro-batches.

    Each DataFrame becomes one micro-batch. Spark really streams: the rows go through files, packs, shards and the state
    store.

    Parameters
    ----------
    batches
        The micro-batches, DataFrames of one schema.
    workload
        The workload to run.
    folded
        Whether to return the final values (:func:`slicewise.latest`), or every result with its micro-batch in a column
        ``batch``.
    partitions
        The number of partitions of a micro-batch.
    **options
        Those of :meth:`slicewise.Workload.run`.

    Returns
    -------
    pyspark.sql.DataFrame
        The results, after all micro-batches.

    Notes
    -----
    Runtime complexity: seconds, as every micro-batch is a Spark job.

    Examples
    --------
    With a session ``spark``, the window that the second micro-batch completes::

        batches = [spark.createDataFrame([(t, v)], "t bigint, v bigint") for t, v in [(1, 5), (12, 7)]]
        workload = sw.Workload("t").query("tens", sw.tumbling(10), total=sw.sum("v"))
        [row.total for row in stream(batches, workload).collect()]  # [5]

    There must be one micro-batch at least:

    >>> import slicewise as sw
    >>> stream([], sw.Workload("t").query("tens", sw.tumbling(10), n=sw.count()))
    Traceback (most recent call last):
    slicewise.errors.DataError: `stream` needs at least one micro-batch; got none
    """
    from slicewise.spark.harness import stream as run

    return run(batches, workload, folded=folded, partitions=partitions, **options)
