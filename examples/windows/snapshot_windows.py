"""Snapshot windows: one window for every stretch of time in which the state stays the same.

Each row is a reading of a machine; whenever its state changes, the current window ends and a new one begins.
"""

import numpy as np


class Snapshot:
    """A window as long as the column ``state`` stays the same; null is a state of its own."""

    def __init__(self) -> None:
        self.began = False
        self.state = None

    def on_record(self, time, row):
        changed = not self.began or row["state"] != self.state
        ends = int(changed and self.began)
        self.began, self.state = True, row["state"]
        return int(changed), ends

    def on_batch(self, times, columns):
        states = np.array([self.state, *columns["state"].tolist()], object)
        changed = states[1:] != states[:-1]
        ends = changed.astype(np.int64)
        if not self.began:
            changed[0], ends[0] = True, 0
        self.began, self.state = True, states[-1]
        return changed.astype(np.int64), ends
