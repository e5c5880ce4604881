"""SumWithoutInverse: a sum that nothing can be taken out of, for the cost of what cannot be inverted.

J. Traub et al.: "Efficient Window Aggregation with General Stream Slicing", EDBT 2019, section 6.3.2 and Figure 13: a
row that leaves a slice has it computed again.
"""

from __future__ import annotations

import pyarrow as pa

from slicewise.aggregates.arithmetic import Sum
from slicewise.aggregates.base import Monoid

__all__ = ["SumWithoutInverse"]


class SumWithoutInverse(Sum):
    """The sum, declared without its inverse; everything else is that of ``sw.sum``.

    Parameters
    ----------
    column : str, optional
        A column of numbers or durations.

    Examples
    --------
    >>> import slicewise as sw
    >>> total = SumWithoutInverse("v")
    >>> total.invertible, sw.sum("v").invertible
    (False, True)
    >>> op = sw.Workload(time="t").query("q", sw.tumbling(10), total=total).operator()
    >>> _ = op.process_batch({"t": [1, 4], "v": [3, 4]})
    >>> [r.values for r in op.close()]
    [{'total': 7}]
    """

    name = "sum_without_inverse"
    invertible = False

    def bind(self, *types: pa.DataType) -> Monoid:
        return super().bind(*types)
