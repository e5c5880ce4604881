"""Aggregates: what to compute over a window, as in ``sw.sum("v")`` and ``sw.median("v")``.

Every built-in aggregate is a class that is called with the name of a column, like the function of
``pyspark.sql.functions`` of the same name; without a column it runs over single values (:mod:`slicewise.swag`).
``AGGREGATES`` is the registry: tests, benchmarks and documentation pick aggregates up from there.
"""

from __future__ import annotations

from slicewise.aggregates.arithmetic import Avg, Count, Sum, TryAvg, TrySum
from slicewise.aggregates.base import BUILT_IN, Aggregate, Monoid
from slicewise.aggregates.bests import FirstK, Largest, LastK, Smallest
from slicewise.aggregates.bits import BitAnd, BitOr, BitXor, BoolAnd, BoolOr, CountIf
from slicewise.aggregates.comoments import Corr, CovarPop, CovarSamp
from slicewise.aggregates.distinct import CountDistinct, SumDistinct
from slicewise.aggregates.distinct_sketches import ApproxCountDistinct, HllSketchAgg, ThetaSketchAgg
from slicewise.aggregates.fading import Ewma
from slicewise.aggregates.frequencies import Histogram, Mode, MostFrequent
from slicewise.aggregates.frequent_items import ApproxMostFrequent
from slicewise.aggregates.higher_moments import Kurtosis, Skewness
from slicewise.aggregates.holistic import CollectList, CollectSet, Concat, listagg
from slicewise.aggregates.moments import GeometricMean, Product, StdDev, StdDevPop, Variance, VarPop
from slicewise.aggregates.multi import multi
from slicewise.aggregates.order import Max, MaxCount, Min, MinCount, Range
from slicewise.aggregates.percentiles import Median, Percentile
from slicewise.aggregates.picks import AnyValue, First, Last, MaxBy, MinBy
from slicewise.aggregates.quantile_sketches import ApproxPercentile, KllSketchAggDouble
from slicewise.aggregates.regression import (
    RegrAvgX,
    RegrAvgY,
    RegrCount,
    RegrIntercept,
    RegrR2,
    RegrSlope,
    RegrSXX,
    RegrSXY,
    RegrSYY,
)
from slicewise.aggregates.rises import LongestRise
from slicewise.aggregates.series import Increase, Rate, TimeWeightedAvg
from slicewise.aggregates.user import aggregate
from slicewise.aggregates.visual import M4, Ohlc
from slicewise.aggregates.weighted import WeightedAvg

__all__ = [
    "AGGREGATES",
    "ALIASES",
    "Aggregate",
    "Monoid",
    "aggregate",
    "any_value",
    "approx_count_distinct",
    "approx_most_frequent",
    "approx_percentile",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "collect_list",
    "collect_set",
    "concat",
    "corr",
    "count",
    "count_distinct",
    "count_if",
    "covar_pop",
    "covar_samp",
    "every",
    "ewma",
    "first",
    "first_k",
    "first_value",
    "geometric_mean",
    "histogram",
    "hll_sketch_agg",
    "increase",
    "kll_sketch_agg_double",
    "kurtosis",
    "largest",
    "last",
    "last_k",
    "last_value",
    "listagg",
    "longest_rise",
    "m4",
    "max",
    "max_by",
    "max_count",
    "mean",
    "median",
    "min",
    "min_by",
    "min_count",
    "mode",
    "most_frequent",
    "multi",
    "ohlc",
    "percentile",
    "percentile_approx",
    "product",
    "range_",
    "rate",
    "regr_avgx",
    "regr_avgy",
    "regr_count",
    "regr_intercept",
    "regr_r2",
    "regr_slope",
    "regr_sxx",
    "regr_sxy",
    "regr_syy",
    "skewness",
    "smallest",
    "some",
    "std",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "sum_distinct",
    "theta_sketch_agg",
    "time_weighted_avg",
    "try_avg",
    "try_sum",
    "var_pop",
    "var_samp",
    "variance",
    "weighted_avg",
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
approx_count_distinct = ApproxCountDistinct
approx_percentile = ApproxPercentile
approx_most_frequent = ApproxMostFrequent
hll_sketch_agg = HllSketchAgg
kll_sketch_agg_double = KllSketchAggDouble
theta_sketch_agg = ThetaSketchAgg
m4 = M4
count_if = CountIf
bool_and = BoolAnd
bool_or = BoolOr
bit_and = BitAnd
bit_or = BitOr
bit_xor = BitXor
try_sum = TrySum
try_avg = TryAvg
weighted_avg = WeightedAvg
skewness = Skewness
kurtosis = Kurtosis
corr = Corr
covar_pop = CovarPop
covar_samp = CovarSamp
regr_avgx = RegrAvgX
regr_avgy = RegrAvgY
regr_count = RegrCount
regr_intercept = RegrIntercept
regr_r2 = RegrR2
regr_slope = RegrSlope
regr_sxx = RegrSXX
regr_sxy = RegrSXY
regr_syy = RegrSYY
any_value = AnyValue
ohlc = Ohlc
time_weighted_avg = TimeWeightedAvg
increase = Increase
rate = Rate
ewma = Ewma
longest_rise = LongestRise

BUILT_IN.update(
    {
        cls.name: cls
        for cls in (
            *(Count, Sum, Product, Avg, GeometricMean, StdDev, StdDevPop, Variance, VarPop),
            *(CountIf, TrySum, TryAvg, WeightedAvg, BoolAnd, BoolOr, BitAnd, BitOr, BitXor),
            *(Skewness, Kurtosis, Corr, CovarPop, CovarSamp),
            *(RegrAvgX, RegrAvgY, RegrCount, RegrIntercept, RegrR2, RegrSlope, RegrSXX, RegrSXY, RegrSYY),
            *(Min, Max, Range, MaxCount, MinCount, MaxBy, MinBy, First, Last, AnyValue),
            *(CollectList, CollectSet, Concat, Median, Percentile),
            *(M4, Ohlc, TimeWeightedAvg, Increase, Rate, Ewma, LongestRise),
            *(CountDistinct, SumDistinct, Histogram, Mode, MostFrequent, Largest, Smallest, FirstK, LastK),
            *(ApproxCountDistinct, ApproxPercentile, ApproxMostFrequent),
            *(HllSketchAgg, KllSketchAggDouble, ThetaSketchAgg),
        )
    }
)
AGGREGATES: dict[str, type[Aggregate]] = BUILT_IN
"""Every built-in aggregate by its public name."""

mean = Avg
std = StdDev
stddev_samp = StdDev
var_samp = Variance
array_agg = CollectList
first_value = First
last_value = Last
every = BoolAnd
percentile_approx = ApproxPercentile
some = BoolOr
string_agg = listagg

ALIASES: dict[str, str] = {
    "mean": "avg",
    "std": "stddev",
    "stddev_samp": "stddev",
    "var_samp": "variance",
    "array_agg": "collect_list",
    "first_value": "first",
    "last_value": "last",
    "every": "bool_and",
    "some": "bool_or",
    "listagg": "concat",
    "string_agg": "concat",
    "percentile_approx": "approx_percentile",
}
"""Other names of built-in aggregates, which Spark has too."""
