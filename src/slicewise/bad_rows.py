"""Bad rows: why a row does not count. One word for each reason, in errors, metrics, checkpoints and results alike.

A leaf that imports nothing: errors carry a reason, and everything may carry errors.
"""

from __future__ import annotations

__all__ = ["AHEAD", "BAD", "EXPRESSION", "GAP", "LATE", "MEASURE", "NO_TIME", "USER_CODE", "metric_name"]

#: No event time, or one so far away that it is out of range.
NO_TIME = "no event time"
#: Further ahead of the clock than ``ahead`` allows.
AHEAD = "too far ahead"
#: More than a million ticks of its key would be due because of it.
GAP = "gap"
#: A measure that goes back, or is no finite number.
MEASURE = "measure"
#: The user's code raised when it was shown the row, or gave nonsense.
USER_CODE = "user code"
#: A computed column leaves its type.
EXPRESSION = "expression"
#: Not bad: it came when no window of its own was open any more. Stands beside the others where rows are given back.
LATE = "late"

#: The reasons for which a row is bad.
BAD = (NO_TIME, AHEAD, GAP, MEASURE, USER_CODE, EXPRESSION)


def metric_name(reason: str) -> str:
    """What the count of bad rows of one reason is called among the metrics of a stream.

    >>> [metric_name(reason) for reason in BAD]
    ['bad_no_event_time', 'bad_too_far_ahead', 'bad_gap', 'bad_measure', 'bad_user_code', 'bad_expression']
    """
    return f"bad_{reason.replace(' ', '_')}"
