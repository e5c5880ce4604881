"""Registry: the one place where the engine learns of a kind of window that only rows in order can show.

Windows whose bounds are known in advance on rows or on units of a column are found together, all those of one axis by
one discretiser. Every other window has a discretiser of its own, by its class. Windows on event time and sessions need
none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from slicewise.errors import QueryError
from slicewise.slicing.rows.adaptive_windows import AdaptiveWindows
from slicewise.slicing.rows.discretisers import (
    CountWindows,
    Discretiser,
    FrameWindows,
    MarkerWindows,
    PunctuationWindows,
)
from slicewise.slicing.rows.edge_windows import EdgeWindows
from slicewise.slicing.rows.measure_windows import MeasureSessions, MultiMeasureWindows, UnitWindows
from slicewise.slicing.rows.policy_windows import PolicyWindows
from slicewise.slicing.rows.session_rows import SessionRows
from slicewise.slicing.rows.trailing_windows import TrailingRows, TrailingTimes
from slicewise.slicing.rows.user_windows import UserWindows
from slicewise.windows import (
    Adaptive,
    Frames,
    Policy,
    Punctuated,
    RowSession,
    Session,
    Sliding,
    Trailing,
    UserDefined,
    Window,
)

__all__ = ["DISCRETISERS", "DISCRETISERS_ON_AXES", "discretisers_for"]

#: By the kind of measure that the axis is, for all windows on it.
DISCRETISERS_ON_AXES: dict[str, Callable[[Sequence[Any]], Discretiser]] = {"rows": CountWindows, "units": UnitWindows}

#: By the class of a window on no axis, or a class that it inherits from, for that window alone.
DISCRETISERS: dict[type[Window], Callable[[Any], Discretiser]] = {
    Adaptive: AdaptiveWindows,
    Frames: FrameWindows,
    Policy: PolicyWindows,
    Punctuated: lambda window: (MarkerWindows if window.end is None else PunctuationWindows)(window),
    RowSession: SessionRows,
    Session: MeasureSessions,
    Sliding: MultiMeasureWindows,
    Trailing: lambda window: (TrailingRows if window.counts_rows else TrailingTimes)(window),
    UserDefined: lambda window: (EdgeWindows if window.places_edges else UserWindows)(window),
}


def discretisers_for(windows: Sequence[Window]) -> list[Discretiser]:
    """One discretiser for all windows that can be found together, in a fixed order.

    >>> from slicewise import rows, sliding, tumbling
    >>> counts, recent = discretisers_for([tumbling(rows(3)), sliding(rows(2), every=5), tumbling(rows(4))])
    >>> counts.windows, recent.windows
    ((tumbling(rows(3)), tumbling(rows(4))), (sliding(rows(2), every=5),))
    """
    together: dict[Hashable, list[Window]] = {}
    for window in windows:
        together.setdefault(window.discretiser_key, []).append(window)
    return [_discretiser(shared) for shared in together.values()]


def _discretiser(windows: list[Window]) -> Discretiser:
    axis = windows[0].axis
    if axis is not None:
        return DISCRETISERS_ON_AXES[axis.kind](windows)
    (window,) = windows
    for kind in type(window).__mro__:
        if kind in DISCRETISERS:
            return DISCRETISERS[kind](window)
    raise QueryError(
        f"nothing finds the windows of {window!r}; register a discretiser for {type(window).__name__} in "
        f"DISCRETISERS of {__name__}"
    )
