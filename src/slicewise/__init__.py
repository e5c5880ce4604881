"""slicewise: window aggregation on Spark, done right. A window is a run of slices, and a slice is computed once."""

from typing import TYPE_CHECKING

from slicewise import swag, testing
from slicewise.aggregates import *  # noqa: F403
from slicewise.aggregates import __all__ as _aggregates
from slicewise.aggregates.base import Aggregate
from slicewise.amounts import rows, units
from slicewise.conditions.expression import expr
from slicewise.errors import (
    AggregateError,
    DataError,
    OverflowInWindowError,
    QueryError,
    SetupError,
    SlicewiseError,
    StateError,
)
from slicewise.results import Result, Results
from slicewise.windows import (
    Evict,
    adaptive,
    between,
    cumulative,
    edges,
    frames,
    landmark,
    policy,
    punctuated,
    session,
    sliding,
    trailing,
    tumbling,
    user_defined,
)
from slicewise.workload import Query, Workload, processing_time

if TYPE_CHECKING:
    from slicewise import spark
    from slicewise.spark import inspect, latest, only, upsert

__version__ = "0.1.0"

#: Names that need pyspark, which is imported when the first of them is asked for.
_ON_SPARK = ("inspect", "latest", "only", "spark", "upsert")


def __getattr__(name: str) -> object:
    if name not in _ON_SPARK:
        raise AttributeError(f"module 'slicewise' has no attribute {name!r}")
    import importlib

    spark = importlib.import_module("slicewise.spark")
    return spark if name == "spark" else getattr(spark, name)


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
    "SetupError",
    "SlicewiseError",
    "StateError",
    "Workload",
    "adaptive",
    "between",
    "cumulative",
    "edges",
    "expr",
    "frames",
    "inspect",
    "landmark",
    "latest",
    "only",
    "policy",
    "processing_time",
    "punctuated",
    "rows",
    "session",
    "sliding",
    "spark",
    "swag",
    "testing",
    "trailing",
    "tumbling",
    "units",
    "upsert",
    "user_defined",
    *_aggregates,
]
