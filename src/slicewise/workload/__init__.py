"""Workloads: the user's window queries over one table or stream, as frozen data, and the doors to the later stages."""

from slicewise.workload.query import Query
from slicewise.workload.workload import Workload, without_where

__all__ = ["Query", "Workload", "without_where"]
