"""A session by user code: a window begins after a silence, and ends with the first row after the next one.

It holds the same rows as ``sw.session(gap)``. Its end is the time of the first row after it, because user code sees
nothing but rows.
"""

import numpy as np

GAP = 30_000_000  # 30 seconds, in microseconds


class SessionByHand:
    """Rows at most GAP after the one before belong together."""

    def __init__(self) -> None:
        self.last = None  # the time of the row before

    def on_record(self, time, row):
        new = self.last is None or time - self.last > GAP
        ends = int(new and self.last is not None)  # the session before, if there was one
        self.last = time
        return int(new), ends

    def on_batch(self, times, columns):
        first = self.last is None
        new = np.diff(times, prepend=times[0] if first else self.last) > GAP
        ends = new.astype(np.int64)
        new[0] |= first
        self.last = int(times[-1])
        return new.astype(np.int64), ends
