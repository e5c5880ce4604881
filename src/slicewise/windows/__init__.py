"""Windows: frozen descriptions of where windows begin and end. Written by users, read by the plan; no engine in here.

Every window is half-open, ``[start, end)``. Its :class:`Context` is the paper's class: how much of the stream one must
have seen to know where the windows lie. Its ``measures`` are what their bounds are counted in. Everything that later
stages need to know of a kind is an attribute of :class:`Window`.
"""

from slicewise.windows.adaptive import Adaptive, adaptive
from slicewise.windows.calendars import CalendarSliding
from slicewise.windows.conditional import Conditional, Frames, Punctuated, frames, punctuated
from slicewise.windows.custom import EVERY_ROW, Evict, Policy, UserDefined, policy, user_defined
from slicewise.windows.edges import ScheduledEdges, TableEdges, edges
from slicewise.windows.families import PeriodicFamily, Progression, Shape
from slicewise.windows.kinds import Context, ContextFree, LookBack, Window
from slicewise.windows.listings import Listing, WindowList
from slicewise.windows.regular import (
    Between,
    Cumulative,
    Landmark,
    Sliding,
    between,
    cumulative,
    landmark,
    sliding,
    tumbling,
)
from slicewise.windows.sessions import RowSession, Session, session
from slicewise.windows.trailing import Trailing, trailing

__all__ = [
    "EVERY_ROW",
    "Adaptive",
    "Between",
    "CalendarSliding",
    "Conditional",
    "Context",
    "ContextFree",
    "Cumulative",
    "Evict",
    "Frames",
    "Landmark",
    "Listing",
    "LookBack",
    "PeriodicFamily",
    "Policy",
    "Progression",
    "Punctuated",
    "RowSession",
    "ScheduledEdges",
    "Session",
    "Shape",
    "Sliding",
    "TableEdges",
    "Trailing",
    "UserDefined",
    "Window",
    "WindowList",
    "adaptive",
    "between",
    "cumulative",
    "edges",
    "frames",
    "landmark",
    "policy",
    "punctuated",
    "session",
    "sliding",
    "trailing",
    "tumbling",
    "user_defined",
]
