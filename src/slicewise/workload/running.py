"""Running: the doors from a workload to the later stages, which are imported when one is opened."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from slicewise.options import RunOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from slicewise.slicing.operator import Operator
    from slicewise.workload.workload import Workload

__all__ = ["Runnable"]


class Runnable:
    """What has queries, and so can be explained and run."""

    def explain(self, *, ordered: bool = False, max_slice: Any = None, analyze: Operator | None = None) -> str:
        """What the workload is, what was decided and why, in words for a terminal.

        Parameters
        ----------
        ordered, max_slice
            As for :meth:`operator`.
        analyze : Operator, optional
            An operator of this workload: what it has counted is shown beside what the papers expect.

        Returns
        -------
        str
            Lines for a terminal.

        Examples
        --------
        >>> import slicewise as sw
        >>> w = sw.Workload(time="ts").query("trend", sw.tumbling("1 minute"), peak=sw.max("v"))
        >>> print(w.explain().splitlines()[0])
        workload  time ts, no keys, rows out of order by up to 0 seconds, corrected for 0 seconds
        """
        from slicewise.slicing.analysis import explain_with

        return explain_with(cast("Workload", self), ordered, max_slice, analyze)

    def run(
        self,
        df: DataFrame,
        *,
        late: str | None = RunOptions.late,
        emit: str = RunOptions.emit,
        shape: str = RunOptions.shape,
        idle: str | None = RunOptions.idle,
        bad: str | None = RunOptions.bad,
        ahead: str | None = RunOptions.ahead,
        shuffle: str | None = RunOptions.shuffle,
        ordered: bool = RunOptions.ordered,
        store: str | None = RunOptions.store,
        max_slice: int | str | None = RunOptions.max_slice,
    ) -> DataFrame:
        """The results over a Spark DataFrame: batch in, batch out; streaming in, streaming out.

        Parameters
        ----------
        df : DataFrame
            The rows.
        late : str, optional
            ``"collect"`` gives back, among the results, the rows that count in no window: late ones and bad ones.
            Their ``change`` is ``"late"``, the column ``late`` holds the row as it came, and ``reason`` why it does not
            count.
        emit : str, optional
            ``"complete"`` reports a window when it has ended, ``"changes"`` on a stream also at every micro-batch that
            changed it, ``"differences"`` only where its values differ from those of the tick before.
        shape : str, optional
            ``"wide"`` gives one row for each key and window end, with the columns of all queries side by side:
            ``{query}_{column}``.
        idle : str, optional
            How long a stream must be silent for its watermark to follow the clock, such as ``"30 seconds"``; by
            default it waits for rows.
        bad : str, optional
            ``"fail"`` stops at a bad row, and shows it: one without a usable event time, one too far ahead, one that
            user code fails on. By default bad rows are left out and, on a stream, counted.
        ahead : str, optional
            How far ahead of the clock a row of a stream may be, such as ``"1 hour"``. One that is further ahead is a
            bad row, and does not move the watermark. The clock is that of the micro-batch, so that one that is
            repeated judges the same.
        shuffle : str, optional
            What a batch brings together by key: ``"slices"``, or ``"rows"``, which is faster where there are so many
            keys that slices are about as many as rows, and slower where few keys have most of the rows. By default it
            goes by the length of slices, and :meth:`explain` says which it is.
        ordered, store, max_slice : optional
            As for :meth:`operator`. A row that is older than the latest one of earlier micro-batches stops the query.

        Returns
        -------
        DataFrame
            Keys, query, window, change and revision, and the aggregates of all queries; in the wide shape keys, end,
            change and revision, and the aggregates of each query.

        Examples
        --------
        With a session, ``workload.run(spark.read.parquet("rows")).show()``. What is no DataFrame is refused.

        >>> import slicewise as sw
        >>> workload = sw.Workload(time="ts").query("trend", sw.tumbling("1 minute"), peak=sw.max("v"))
        >>> workload.run([{"ts": 30, "v": 5}])
        Traceback (most recent call last):
        slicewise.errors.DataError: `run` takes a Spark DataFrame; got list; in process, use operator()
        """
        from slicewise.spark.running import run

        return run(
            cast("Workload", self),
            df,
            RunOptions(late, emit, shape, idle, bad, ahead, shuffle, ordered, store, max_slice),
        )

    def operator(
        self,
        *,
        ordered: bool = False,
        store: str | None = None,
        types: Any = None,
        max_slice: int | str | None = None,
        ahead: Any = None,
        clock: Callable[[], int] | None = None,
        shape: str = RunOptions.shape,
        emit: str = RunOptions.emit,
    ) -> Operator:
        """The workload in this process, without Spark.

        Parameters
        ----------
        ordered : bool, optional
            Rows come in event-time order, so that every row is its own watermark.
        store : str, optional
            ``"lazy"``, ``"eager"`` or ``"prefix"`` instead of what the plan chooses.
        types : mapping or schema, optional
            Types of input columns, where the first rows do not show them: ``{"v": "double"}``.
        max_slice : int or str, optional
            The most rows of a slice out of which late rows may shift others; ``"auto"`` follows what that has cost.
        ahead : duration, optional
            How far ahead of the clock a row may be, such as ``"1 hour"``. One that is further ahead is named in an
            error and left out; it moves nothing, and the next call goes on. By default no row is too far ahead, unless
            more than a million ticks of its key would be due because of it.
        clock : callable, optional
            What ``ahead`` is measured by: a function that gives microseconds since the epoch; by default the system's.
            It is read once for each batch, and for each row that comes alone.
        shape : str, optional
            ``"wide"`` gives one result for each key and window end, with the columns of all queries side by side.
        emit : str, optional
            ``"differences"`` gives only results whose values differ from those of the tick before.

        Returns
        -------
        Operator
            What takes rows and gives results.

        Examples
        --------
        >>> import slicewise as sw
        >>> op = sw.Workload(time="ts").query("trend", sw.tumbling(60), peak=sw.max("v")).operator()
        >>> _ = op.process_batch({"ts": [10, 50, 70], "v": [3, 8, 5]})
        >>> [(r.start, r.end, r.values["peak"]) for r in op.close()]
        [(0, 60, 8), (60, 120, 5)]
        """
        from slicewise.plan.panels import Form
        from slicewise.slicing.operator import Operator

        return Operator(
            cast("Workload", self),
            ordered=ordered,
            store=store,
            types=types,
            max_slice=max_slice,
            ahead=ahead,
            clock=clock,
            form=Form(shape, emit),
        )
