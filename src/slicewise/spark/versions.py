"""Versions: what Spark's versions do differently, in one place, so that everything else reads as one path.

What the client has is asked of pyspark itself, not of its number: services number their clients in ways of their own.
What the server can do is asked of the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas import functions as pandas_functions

try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:
    # Before 4.2 Spark itself holds on to the first offset that it is told, where it reads what is there and ends.
    SupportsTriggerAvailableNow = object  # type: ignore[misc, assignment]

__all__ = [
    "SupportsTriggerAvailableNow",
    "arrow_function",
    "has_arrow_functions",
    "has_row_state",
    "ntz_micros",
    "spark_version",
]


def spark_version(session: SparkSession) -> tuple[int, ...]:
    """The version of the Spark that runs a session's queries; (0, 0) where it does not say."""
    return tuple(int(n) for n in re.findall(r"\d+", _version(session))[:2]) or (0, 0)


def _version(session: SparkSession) -> str:
    try:
        return str(session.version)
    except Exception:  # a platform may refuse it in a way of its own
        return ""


def has_arrow_functions() -> bool:
    """Whether a user's function may take and give Arrow arrays of any type, as since Spark 4.1."""
    return hasattr(pandas_functions, "arrow_udf")


def arrow_function(function: Callable[..., pa.Array], returns: Any) -> Callable[..., Column]:
    """A function of the user's on columns, from one on Arrow arrays: as it is since Spark 4.1.

    Before, it goes by way of pandas, and only from one column of integers to integers.
    ``function`` has to be annotated with Arrow's types, from which PySpark reads its kind.
    """
    if has_arrow_functions():
        made: Callable[..., Column] = pandas_functions.arrow_udf(function, returns)  # type: ignore[call-overload]
        return made
    return _through_pandas(function, returns)


def _through_pandas(function: Callable[[pa.Array], pa.Array], returns: str) -> Callable[[Column], Column]:
    import pandas as pd

    def on_series(values: pd.Series) -> pd.Series:
        return pd.Series(function(pa.array(values)).to_numpy())

    # The hints of this module are text, and pandas is not where PySpark would look it up.
    on_series.__annotations__ = {"values": pd.Series, "return": pd.Series}
    made: Callable[[Column], Column] = pandas_functions.pandas_udf(on_series, returns)  # type: ignore[call-overload]
    # Next to a null pandas makes doubles of integers, and rounds them.
    return lambda column: F.when(column.isNotNull(), made(F.coalesce(column, F.lit(0))))


def has_row_state(grouped: Any) -> bool:
    """Whether stateful Python code takes and gives rows, as since Spark 4.1; before, it is tables of pandas."""
    return hasattr(grouped, "transformWithState")


def ntz_micros(time: str, session: SparkSession) -> str:
    """A timestamp without a zone as microseconds since 1970, in SQL: Spark's function takes them since 4.3."""
    if spark_version(session) >= (4, 3):
        return f"unix_micros({time})"
    since = f"CAST({time} - TIMESTAMP_NTZ '1970-01-01' AS INTERVAL SECOND)"
    return f"CAST(CAST({since} AS DECIMAL(19, 6)) * 1000000 AS BIGINT)"
