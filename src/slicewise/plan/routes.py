"""Routes: which way a query takes on Spark. Slices are computed in the JVM; rows go to Python only where they must."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import pyarrow as pa

from slicewise import amounts
from slicewise.aggregates import Aggregate
from slicewise.aggregates.arithmetic import Avg, Count, Sum, TryAvg, TrySum
from slicewise.aggregates.bests import Largest, Smallest
from slicewise.aggregates.bits import BitAnd, BitOr, BitXor, BoolAnd, BoolOr, CountIf
from slicewise.aggregates.comoments import Corr, CovarPop, CovarSamp
from slicewise.aggregates.distinct import CountDistinct, SumDistinct
from slicewise.aggregates.distinct_sketches import ApproxCountDistinct, HllSketchAgg, ThetaSketchAgg
from slicewise.aggregates.fading import Ewma
from slicewise.aggregates.filtered import unfiltered
from slicewise.aggregates.frequencies import Histogram, Mode, MostFrequent
from slicewise.aggregates.frequent_items import ApproxMostFrequent
from slicewise.aggregates.higher_moments import Kurtosis, Skewness
from slicewise.aggregates.moments import GeometricMean, Product, StdDev, StdDevPop, Variance, VarPop
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
from slicewise.aggregates.visual import M4, Ohlc
from slicewise.aggregates.weighted import WeightedAvg
from slicewise.columns import physical_dtype
from slicewise.errors import QueryError
from slicewise.plan.axes import scale_of
from slicewise.plan.characteristics import characteristics_of
from slicewise.plan.condition_sql import UntranslatableError, condition_sql
from slicewise.plan.decisions import Decision, keep_tuples
from slicewise.plan.expression_sql import in_the_jvm
from slicewise.plan.grids import progressions_of
from slicewise.windows import Window
from slicewise.windows.listings import EdgeTable
from slicewise.workload import Query, Workload

__all__ = [
    "IN_THE_JVM",
    "ROWS",
    "SLICES",
    "WHOLE",
    "can_turn_around",
    "carries_stamps",
    "choose_shuffle",
    "has_short_sessions",
    "has_whole_windows",
    "is_left_to_spark",
    "is_sliced_in_numpy",
    "route_of",
    "stream_route",
]

SLICES, ROWS = "slices", "rows"

#: The aggregates whose partials Spark's own functions compute. By class: a user's own may be called the same.
IN_THE_JVM: frozenset[type[Aggregate]] = frozenset(
    (Count, Sum, Avg, Product, GeometricMean, StdDev, StdDevPop, Variance, VarPop, Min, Max)
    + (Range, MinCount, MaxCount, First, Last, AnyValue, MinBy, MaxBy, M4, Ohlc)
    + (CountIf, TrySum, TryAvg, WeightedAvg, BoolAnd, BoolOr, BitAnd, BitOr, BitXor)
    + (Skewness, Kurtosis, Corr, CovarPop, CovarSamp, RegrAvgX, RegrAvgY, RegrCount)
    + (RegrIntercept, RegrR2, RegrSlope, RegrSXX, RegrSXY, RegrSYY)
    + (CountDistinct, SumDistinct, Histogram, Mode, MostFrequent, Median, Percentile, Largest, Smallest)
    + (ApproxCountDistinct, ApproxPercentile, ApproxMostFrequent, HllSketchAgg, KllSketchAggDouble, ThetaSketchAgg)
)

#: Why Spark's functions do not compute the partials of some others.
_NEIGHBOURS = "goes from each row to the next, and only Python has them in order"
_WHY_ROWS: dict[type[Aggregate], str] = {
    **dict.fromkeys((TimeWeightedAvg, Increase, Rate, LongestRise), _NEIGHBOURS),
    Ewma: "weighs rows by powers of 2, whose last bits differ between the JVM and Python",
}

#: Those of them whose value for a whole window Spark's own functions compute, of most types, nothing composed.
WHOLE: frozenset[type[Aggregate]] = frozenset(
    (Count, Sum, Avg, Min, Max, Product, StdDev, StdDevPop, Variance, VarPop)
    + (CountIf, BoolAnd, BoolOr, BitAnd, BitOr, BitXor)
)

#: Those of them for which Spark has no function whose buffer is of fixed size: it would collect all rows of a slice.
_COLLECTED: frozenset[type[Aggregate]] = frozenset((MinCount, MaxCount))

#: Slices of fewer rows than this are hardly fewer than the rows themselves.
FEW_ROWS = 8
#: Of slices as short as this, in seconds, most keys have one for each row. Those that a gap cuts may be longer: whoever
#: asks for windows every tenth of a second has rows that often, while sessions of a single row are common.
SHORT_SLICE, SHORT_GAP = Fraction(1, 100), Fraction(1)


def route_of(query: Query, types: Mapping[str, pa.DataType] | None = None, *, punctuation: bool = False) -> Decision:
    """``"slices"``: the JVM slices, NumPy composes. ``"rows"``: the engine takes the rows, sorted, in Python.

    Without ``types``, columns are taken to be of types that fit. ``punctuation`` says that some rows are no data.
    """
    if punctuation and query.window.sees_punctuation:
        return Decision(ROWS, "its windows see punctuation and hold data, which is told apart in Python")
    sliced = _sliced(query.window, types)
    if not sliced:
        return Decision(ROWS, sliced.reason)
    for aggregate in map(unfiltered, query.aggregates.values()):
        if type(aggregate) not in IN_THE_JVM:
            return Decision(ROWS, f"{aggregate!r} {_WHY_ROWS.get(type(aggregate), 'is computed in Python')}")
        if isinstance(aggregate, (MinBy, MaxBy)) and aggregate.k is not None:
            return Decision(ROWS, f"{aggregate!r} keeps several rows, and is computed in Python")
        if types is not None and type(aggregate) is MaxBy and not can_turn_around(types[aggregate.columns[1]]):
            return Decision(ROWS, f"{aggregate!r} goes by {types[aggregate.columns[1]]}, which the JVM cannot reverse")
    columns = [column for a in query.aggregates.values() for column in a.columns]
    computed = in_the_jvm([*columns, *query.window.reads], types)
    return Decision(SLICES, sliced.reason) if computed else Decision(ROWS, computed.reason)


def _sliced(window: Window, types: Mapping[str, pa.DataType] | None) -> Decision:
    """Whether the JVM can compute to which slice of such windows a row belongs, and it is worth it."""
    if not window.needs_rows:
        return Decision(True, "sliced in the JVM, composed in NumPy")
    if window.axis == amounts.ROWS:
        return _few_slices(window)
    if window.axis is not None:
        return _measured(window, window.axis, types)
    if window.markers is not None:
        return _marked(window, types)
    return Decision(False, f"only rows in order tell where the windows of {window!r} lie")


def _few_slices(window: Window) -> Decision:
    # Every slide has the begin of a window in it, and its end elsewhere unless the slide divides the length.
    grids = window.progressions
    rows = min((grid.step for grid in grids), default=FEW_ROWS) // max(len(grids), 1)
    if rows < FEW_ROWS:
        size = f"{rows} rows" if rows > 1 else "one row"
        return Decision(False, f"slices of about {size} would be hardly fewer than the rows themselves")
    return Decision(True, "rows are numbered and sliced in the JVM, composed in NumPy")


def _measured(window: Window, axis: amounts.Measure, types: Mapping[str, pa.DataType] | None) -> Decision:
    if types is not None:
        try:
            assert axis.column is not None
            scale_of(window, types[axis.column])
        except QueryError as error:
            return Decision(False, str(error))
    return Decision(True, f"sliced by {axis.column!r} in the JVM, composed in NumPy")


def _marked(window: Window, types: Mapping[str, pa.DataType] | None) -> Decision:
    if not isinstance(window.markers, str):
        return Decision(False, f"{window!r} asks a function of Python which rows start windows")
    if types is not None:
        try:
            condition_sql(window.markers, types, str)
        except UntranslatableError as error:
            return Decision(False, f"the JVM would not compute {window.markers!r} as Python does: {error}")
    return Decision(True, "markers are counted and rows sliced in the JVM, composed in NumPy")


def can_turn_around(type_: pa.DataType) -> bool:
    """Whether values of this type can be turned around, so that the largest becomes the smallest."""
    return not physical_dtype(type_).hasobject or pa.types.is_decimal(type_)


def has_whole_windows(workload: Workload) -> bool:
    """Whether there is nothing to compose: one query, each of whose windows is one slice, and none is empty."""
    if len(workload.queries) != 1:
        return False
    (query,) = workload.queries
    window = query.window
    if query.empty:
        return False
    if isinstance(window.listing, EdgeTable):
        return not window.listing.keys and window.listing.overlap == 1 and len(window.listing.edges) > 0
    return window.is_periodic and window.is_tumbling and window.listing is None


def has_short_sessions(workload: Workload) -> bool:
    """Whether there is one query, of sessions by key with so short a gap that slices would be the rows themselves.

    Then Spark's own window functions find sessions in less time than it takes to bring the rows to Python.
    """
    if len(workload.queries) != 1 or not workload.keys or workload.time_measure == amounts.INTEGER:
        return False
    gap = workload.queries[0].window.session_gap
    return gap is not None and Fraction(gap, amounts.UNITS[workload.time_measure.unit]) <= SHORT_SLICE


def is_left_to_spark(query: Query, workload: Workload) -> Decision:
    """Whether Spark's own functions compute a query in a batch, as far as types allow: nothing is composed."""
    sliced = _sliced_queries(workload)
    functions = all(type(unfiltered(aggregate)) in WHOLE for aggregate in query.aggregates.values())
    if functions and query in sliced.queries:
        if has_whole_windows(sliced):
            return Decision(SLICES, "each window is one slice, which Spark's own aggregation computes")
        if has_short_sessions(sliced):
            return Decision(ROWS, "sessions as short as these are found by Spark's own window functions")
    return Decision(None, "slices are composed, or rows go to Python")


def _sliced_queries(workload: Workload) -> Workload:
    """The workload with those queries only that the JVM slices."""
    punctuation = workload.punctuation is not None
    return workload.with_queries(q for q in workload.queries if route_of(q, punctuation=punctuation).choice == SLICES)


def choose_shuffle(workload: Workload) -> Decision:
    """What a batch brings together by key: ``"slices"``, or ``"rows"`` where slices would be about as many.

    How many rows a slice holds is not known before the job runs; how long it is at most, is. A wrong guess costs up to
    twice the time: rows that need not travel, or slices that are rows and travel twice.
    """
    sliced = _sliced_queries(workload)
    if not sliced.queries:
        return Decision(ROWS, "sorted by key and time, for the engine in Python")
    if is_left_to_spark(sliced.queries[0], workload).choice == SLICES:
        return Decision(SLICES, "by key and window, as Spark's own aggregation does")
    if any(query.window.needs_rows for query in sliced.queries):
        return Decision(ROWS, "brought together by key to be numbered, and sliced where they are")
    if not workload.keys:
        return Decision(SLICES, "without keys all of them come to one place, where fewer are better")
    in_numpy = is_sliced_in_numpy(workload)
    return Decision(ROWS, in_numpy.reason) if in_numpy else _by_length(sliced)


def is_sliced_in_numpy(workload: Workload) -> Decision:
    """Whether a batch brings rows together by key as they are, and slices them there as a stream does.

    For some aggregates the JVM would collect all rows of each slice, which takes longer than to send them. Where others
    go by the order of rows it does so nevertheless: it is the JVM that puts rows of equal time in order.
    """
    queries = _sliced_queries(workload).queries
    aggregates = [aggregate for query in queries for aggregate in query.aggregates.values()]
    collected = next((a for a in aggregates if type(unfiltered(a)) in _COLLECTED), None)
    if collected is None:
        return Decision(False, "Spark's own functions compute all partials")
    if not workload.keys:
        return Decision(False, "without keys all rows would come to one place")
    if any(query.window.needs_rows for query in queries):
        return Decision(False, "rows are numbered in the JVM")
    ordered = next((a for a in aggregates if not a.commutative), None)
    if ordered is not None:
        return Decision(False, f"{ordered!r} goes by the order of rows, which the JVM knows")
    return Decision(True, f"sliced in NumPy: for {collected!r} Spark's functions would collect all rows of a slice")


def _by_length(workload: Workload) -> Decision:
    windows = [query.window for query in workload.queries]
    gaps = [window.session_gap for window in windows if window.session_gap is not None]
    steps = [progression.step for progression in progressions_of(windows)]
    if workload.time_measure == amounts.INTEGER or not (gaps or steps):
        return Decision(SLICES, "computed where rows are read, so that few travel")
    seconds = Fraction(1, amounts.UNITS[workload.time_measure.unit])
    slide = seconds / sum(Fraction(1, step) for step in steps) if steps else None
    gap = min(gaps) * seconds if gaps else None
    if gap is not None and gap <= SHORT_GAP and (slide is None or gap < slide):
        shown = amounts.Amount(min(gaps), workload.time_measure)
        return Decision(ROWS, f"slices no longer than the gap of {shown} may be about as many as the rows")
    if slide is not None and slide <= SHORT_SLICE:
        milliseconds = f"{float(slide * 1000):.3g} milliseconds"
        return Decision(ROWS, f"slices of about {milliseconds} may be about as many as the rows")
    return Decision(SLICES, "computed where rows are read, so that few travel")


def carries_stamps(workload: Workload) -> Decision:
    """Whether partials would hold times of a clock that may go back; the shard knows how far it had come."""
    aggregates = [a for q in workload.queries for a in q.aggregates.values()]
    timed = next((a for a in aggregates if a.timed), None)
    if workload.on_clock is None or timed is None:
        return Decision(False, "times are those of the rows, or stand in slices alone")
    return Decision(True, f"{timed!r} carries the time of rows, and a clock that goes back stands still in the shards")


def stream_route(workload: Workload) -> Decision:
    """What a partition of a stream sends to the shards: ``"slices"``, or ``"rows"`` where they must be stored."""
    kept = keep_tuples(characteristics_of(workload))
    if kept:
        return Decision(ROWS, f"sent to the shards as they are: {kept.reason}")
    stamped = carries_stamps(workload)
    if stamped:
        return Decision(ROWS, f"sent to the shards as they are: {stamped.reason}")
    return Decision(SLICES, "sliced where they are read; shards get slices, not rows")
