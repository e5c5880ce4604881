"""Attaching: the door from a workload to the values of its queries as of the rows of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from slicewise.workload.workload import Workload

__all__ = ["Attachable"]


class Attachable:
    """What has queries, and so can tell their values as of points in time."""

    def attach(self, points: Any, events: Any = None, time: str | None = None) -> Any:
        """The rows of ``points`` with the values of all queries as of each row's time: a training table.

        Windows are ``sw.trailing`` ones, which end at the point, or such as ``sw.tumbling`` and ``sw.sliding`` on event
        time: then the one of the last tick at or before the point. No point sees an event after its time. Where there
        are no events, the values are those of no rows: a count of 0, a sum that is null.

        Parameters
        ----------
        points : DataFrame, pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame or mapping of columns
            The rows to add columns to. They have the workload's keys, where null equals null, and a time; a row whose
            time is null gets the values of no rows.
        events : the same, optional
            The rows that windows hold; by default the points themselves. With ``where``, only rows that meet it.
        time : str, optional
            The time column of the points, if it is not called as that of the events is.

        Returns
        -------
        DataFrame, pyarrow.Table, pyarrow.RecordBatch, pandas.DataFrame or dict
            All rows and columns of ``points``, in process in their order and in the same type, with a column
            ``{query}_{column}`` for each result column of each query.

        Raises
        ------
        QueryError
            A query has other windows: sessions, counts that slide, those that rows decide about.
        DataError
            Keys or time are missing or do not go together, a name is taken, or the points are a stream.

        Notes
        -----
        Runtime complexity: O(n log n) array steps for n rows and points, whatever the length of windows; aggregates
        whose partials grow take as long as the rows of all points together. On Spark one shuffle by key.

        Examples
        --------
        >>> import slicewise as sw
        >>> hour = sw.trailing("1 hour", closed="left")
        >>> workload = sw.Workload(time="ts", keys=["card"])
        >>> workload = workload.query("hour", hour, n=sw.count(), spent=sw.sum("amount"))
        >>> import pyarrow as pa
        >>> from datetime import datetime
        >>> at = lambda hour, minute: datetime(2024, 5, 1, hour, minute)
        >>> payments = {"ts": [at(9, 0), at(9, 40), at(11, 0)], "card": ["a", "a", "a"], "amount": [20, 5, 70]}
        >>> workload.attach(pa.table(payments)).select(["amount", "hour_n", "hour_spent"]).to_pylist()[1]
        {'amount': 5, 'hour_n': 1, 'hour_spent': 20}
        >>> asked = pa.table({"card": ["a", "b"], "asked_at": [at(9, 30), at(9, 30)]})
        >>> workload.attach(asked, pa.table(payments), time="asked_at").select(["hour_n", "hour_spent"]).to_pylist()
        [{'hour_n': 1, 'hour_spent': 20}, {'hour_n': 0, 'hour_spent': None}]
        """
        workload = cast("Workload", self)
        if any(hasattr(data, "isStreaming") for data in (points, events)):
            from slicewise.spark.attaching import attach as attach_on_spark

            return attach_on_spark(workload, points, events, time)
        from slicewise.slicing.attaching import attach

        return attach(workload, points, events, time)
