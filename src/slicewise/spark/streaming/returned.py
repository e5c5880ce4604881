"""Returned rows: the late and the bad rows of a shard, counted by reason and given back among the results.

Rows are given back as they came. Where user code fails on a row only in a later micro-batch, the row is no longer there
as it came: the columns that the workload reads are given back, with nulls for the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from slicewise.bad_rows import BAD, LATE, metric_name
from slicewise.errors import DataError
from slicewise.slicing import BadRows, Shard, Tuples, column_of
from slicewise.spark.output import Output
from slicewise.spark.source import key_name
from slicewise.spark.streaming.packs import REASON, ROW
from slicewise.workload import Workload

__all__ = ["WHOLE", "ReturnedRows", "bad_metrics"]

#: Where a row as it came stands beside the columns of the user, none of which can have this name.
WHOLE = "\0row"


def bad_metrics(bad: Counter[str]) -> dict[str, int]:
    """How many rows were bad, in all and for each reason."""
    return {"bad": bad.total(), **{metric_name(reason): bad[reason] for reason in BAD}}


class ReturnedRows:
    """The rows of one micro-batch that a shard does not count.

    Parameters
    ----------
    packed
        Bad rows that packs brought, with their reasons.
    fail
        Whether a bad row stops the stream.
    """

    def __init__(
        self, shard: Shard, workload: Workload, output: Output, packed: Sequence[pa.Table], *, fail: bool
    ) -> None:
        self.shard, self.workload, self.output = shard, workload, output
        self.packed = packed
        self.bad = shard.bad_rows()
        if fail and self.bad:
            raise DataError(f"{self.bad[0].message}; and bad='fail': {self._whole(self.bad[0])[0].as_py()}")

    def counts(self) -> Counter[str]:
        """How many rows are bad in the shard, by reason."""
        counts: Counter[str] = Counter()
        for bad in self.bad:
            counts[bad.reason] += len(bad)
        return counts

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows among the results, where they are asked for; from then on the shard does not hold them any more."""
        if self.output.late is None:
            self.shard.drop_late_rows()
            return
        turned_away = self.shard.late_rows(WHOLE, self.workload.keys)
        if turned_away is not None:
            yield self.output.returned(*turned_away, _reasons(LATE, len(turned_away[0])))
        for bad in self.bad:
            yield self.output.returned(self._whole(bad), self._keys(bad), _reasons(bad.reason, len(bad)))
        for table in self.packed:
            keys = [table.column(key_name(i)).combine_chunks() for i in range(len(self.workload.keys))]
            rows, reasons = (table.column(name).combine_chunks() for name in (ROW, REASON))
            yield self.output.returned(rows, keys, reasons)

    def _whole(self, bad: BadRows) -> pa.Array:
        if bad.source is not None:
            return column_of([bad.source], WHOLE)
        assert bad.records is not None
        return self._rebuilt(bad.records)

    def _keys(self, bad: BadRows) -> list[pa.Array]:
        if bad.source is not None:
            return [column_of([bad.source], name) for name in self.workload.keys]
        assert bad.records is not None
        return [key.to_arrow() for key in self.shard.keys.decode(bad.records.key)]

    def _rebuilt(self, records: Tuples) -> pa.Array:
        """Rows that came in earlier micro-batches, as far as they are known."""
        workload, engine = self.workload, self.shard.engine
        time = pa.array(records.time)
        known = {workload.time: time if workload.unit is not None else time.cast(engine.plan.schema.time_type)}
        known |= dict(zip(workload.keys, (k.to_arrow() for k in self.shard.keys.decode(records.key)), strict=True))
        known |= {name: records.columns[name].to_arrow() for name in workload.columns if name in records.columns}
        fields = list(self.output.late or pa.struct([(n, a.type) for n, a in known.items()]))
        arrays = [known[f.name].cast(f.type) if f.name in known else pa.nulls(len(records), f.type) for f in fields]
        return pa.StructArray.from_arrays(arrays, fields=fields)


def _reasons(reason: str, count: int) -> pa.Array:
    return pa.array(np.full(count, reason, object), pa.string())
