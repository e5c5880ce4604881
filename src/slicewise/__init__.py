"""slicewise: window aggregation on Spark, done right. A window is a run of slices, and a slice is computed once."""

from slicewise import swag, testing
from slicewise.aggregates import *  # noqa: F403
from slicewise.aggregates import __all__ as _aggregates
from slicewise.aggregates.base import Aggregate
from slicewise.amounts import rows, units
from slicewise.errors import AggregateError, DataError, OverflowInWindowError, QueryError, SlicewiseError, StateError
from slicewise.results import Result, Results
from slicewise.windows import (
    Evict,
    between,
    cumulative,
    frames,
    landmark,
    policy,
    punctuated,
    session,
    sliding,
    tumbling,
    user_defined,
)
from slicewise.workload import Query, Workload

__version__ = "0.1.0"

__all__ = [
    "Aggregate",
    "AggregateError",
    "DataError",
    "Evict",
    "OverflowInWindowError",
    "Query",
    "QueryError",
    "Result",
    "Results",
    "SlicewiseError",
    "StateError",
    "Workload",
    "between",
    "cumulative",
    "frames",
    "landmark",
    "policy",
    "punctuated",
    "rows",
    "session",
    "sliding",
    "swag",
    "testing",
    "tumbling",
    "units",
    "user_defined",
    *_aggregates,
]
