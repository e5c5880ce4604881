"""Steps: one move of the watermark, as both halves of ``slicing`` see it."""

from __future__ import annotations

from slicewise.records import record
from slicewise.times import INFINITY

__all__ = ["Step"]


@record
class Step:
    """One move of the watermark.

    Attributes
    ----------
    old_horizon
        The horizon before it: windows decided by earlier rows were final already.
    watermark
        The new watermark: windows due by then are reported.
    horizon
        The new horizon: the order of earlier rows is final from now on.
    old_watermark
        The watermark before it.
    """

    old_horizon: int
    watermark: int
    horizon: int
    old_watermark: int

    @classmethod
    def whole(cls) -> Step:
        """From the beginning to the end of a stream at once."""
        return cls(-INFINITY, INFINITY, INFINITY, -INFINITY)
