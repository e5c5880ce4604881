"""Workloads: the user's window queries over one table or stream, as frozen data, and the doors to the later stages."""

from slicewise.workload.processing import ProcessingTime, processing_time, read_clock, system_clock
from slicewise.workload.query import Query
from slicewise.workload.variants import with_stamped_rows, without_punctuation, without_where
from slicewise.workload.workload import Workload

__all__ = [
    "ProcessingTime",
    "Query",
    "Workload",
    "processing_time",
    "read_clock",
    "system_clock",
    "with_stamped_rows",
    "without_punctuation",
    "without_where",
]
