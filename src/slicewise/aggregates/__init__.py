"""Aggregates: what to compute over a window, as in ``sw.sum("v")`` and ``sw.median("v")``.

Every built-in aggregate is a class that is called with the name of a column, like the function of
``pyspark.sql.functions`` of the same name; without a column it runs over single values (:mod:`slicewise.swag`).
``AGGREGATES`` is the registry: tests, benchmarks and documentation pick aggregates up from there.
"""

from __future__ import annotations

from slicewise.aggregates.arithmetic import Avg, Count, Sum
from slicewise.aggregates.base import BUILT_IN, Aggregate, Monoid
from slicewise.aggregates.bests import FirstK, Largest, LastK, Smallest
from slicewise.aggregates.histograms import CountDistinct, Histogram, Mode, MostFrequent, SumDistinct
from slicewise.aggregates.holistic import CollectList, CollectSet, Concat
from slicewise.aggregates.moments import GeometricMean, Product, StdDev, StdDevPop, Variance, VarPop
from slicewise.aggregates.multi import multi
from slicewise.aggregates.order import Max, MaxCount, Min, MinCount, Range
from slicewise.aggregates.percentiles import Median, Percentile
from slicewise.aggregates.picks import First, Last, MaxBy, MinBy
from slicewise.aggregates.user import aggregate
from slicewise.aggregates.visual import M4

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "Monoid",
    "aggregate",
    "avg",
    "collect_list",
    "collect_set",
    "concat",
    "count",
    "count_distinct",
    "first",
    "first_k",
    "geometric_mean",
    "histogram",
    "largest",
    "last",
    "last_k",
    "m4",
    "max",
    "max_by",
    "max_count",
    "median",
    "min",
    "min_by",
    "min_count",
    "mode",
    "most_frequent",
    "multi",
    "percentile",
    "product",
    "range_",
    "smallest",
    "stddev",
    "stddev_pop",
    "sum",
    "sum_distinct",
    "var_pop",
    "variance",
]

count = Count
sum = Sum
product = Product
avg = Avg
geometric_mean = GeometricMean
stddev = StdDev
stddev_pop = StdDevPop
variance = Variance
var_pop = VarPop
min = Min
max = Max
range_ = Range
max_count = MaxCount
min_count = MinCount
max_by = MaxBy
min_by = MinBy
first = First
last = Last
collect_list = CollectList
collect_set = CollectSet
concat = Concat
median = Median
percentile = Percentile
count_distinct = CountDistinct
sum_distinct = SumDistinct
histogram = Histogram
mode = Mode
most_frequent = MostFrequent
largest = Largest
smallest = Smallest
first_k = FirstK
last_k = LastK
m4 = M4

BUILT_IN.update(
    {
        cls.name: cls
        for cls in (
            *(Count, Sum, Product, Avg, GeometricMean, StdDev, StdDevPop, Variance, VarPop),
            *(Min, Max, Range, MaxCount, MinCount, MaxBy, MinBy, First, Last),
            *(CollectList, CollectSet, Concat, Median, Percentile, M4),
            *(CountDistinct, SumDistinct, Histogram, Mode, MostFrequent, Largest, Smallest, FirstK, LastK),
        )
    }
)
AGGREGATES: dict[str, type[Aggregate]] = BUILT_IN
"""Every built-in aggregate by its public name."""
