"""Slicing: how slices are cut, kept and composed, with NumPy and Arrow and without Spark.

Two halves, and what they share. ``time/`` cuts event time at the edges of context-free windows and sessions; ``rows/``
keeps rows in order for windows whose bounds depend on rows; ``answers/`` turns ranges of partials into results for
both. The engine drives them through watermark steps; the operator is its public face. Rows come in through ``intake/``;
``state/`` is what is saved.

The names below are the contract with the stages that run a workload elsewhere: what ``spark/`` imports is here.
"""

from slicewise.slicing.answers.lowering import joined_columns
from slicewise.slicing.answers.reported import ReportedWindows
from slicewise.slicing.answers.reported_ticks import ReportedTicks
from slicewise.slicing.as_of import AsOf, Points
from slicewise.slicing.attaching import check_attachable, event_rows, points_of, raise_failures, with_attached_names
from slicewise.slicing.compose import Composition
from slicewise.slicing.engine import Engine, State
from slicewise.slicing.intake.ahead import ahead_length
from slicewise.slicing.intake.gaps import GapError
from slicewise.slicing.intake.input import CLOCK_TYPE, EVENT_TIME, Batch, bounds_type, watermark_limit
from slicewise.slicing.intake.shown_columns import is_lifted
from slicewise.slicing.intake.user_code import show_rows
from slicewise.slicing.operator import LateRow, Operator, Stats
from slicewise.slicing.rows.context_state import ContextAwareState
from slicewise.slicing.rows.slides import limit_of
from slicewise.slicing.shard import BadRows, Shard, column_of
from slicewise.slicing.state.snapshots import FORMAT, BoundState, Counters, OperatorState, describe, fingerprint
from slicewise.slicing.stats import COUNTED, watermark_lag
from slicewise.slicing.time.edges import Edges
from slicewise.slicing.time.periodic import PeriodicWindows
from slicewise.slicing.time.slicer import cut_rows, cut_stream
from slicewise.slicing.time.slices import Slices
from slicewise.slicing.time.tuples import Tuples

__all__ = [
    "CLOCK_TYPE",
    "COUNTED",
    "EVENT_TIME",
    "FORMAT",
    "AsOf",
    "BadRows",
    "Batch",
    "BoundState",
    "Composition",
    "ContextAwareState",
    "Counters",
    "Edges",
    "Engine",
    "GapError",
    "LateRow",
    "Operator",
    "OperatorState",
    "PeriodicWindows",
    "Points",
    "ReportedTicks",
    "ReportedWindows",
    "Shard",
    "Slices",
    "State",
    "Stats",
    "Tuples",
    "ahead_length",
    "bounds_type",
    "check_attachable",
    "column_of",
    "cut_rows",
    "cut_stream",
    "describe",
    "event_rows",
    "fingerprint",
    "is_lifted",
    "joined_columns",
    "limit_of",
    "points_of",
    "raise_failures",
    "show_rows",
    "watermark_lag",
    "watermark_limit",
    "with_attached_names",
]
