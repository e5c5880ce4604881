"""Lower-bound landmark windows: each begins with a landmark row, and ends a fixed time after it.

Orders since each price change, for at most an hour. Landmarks less than an hour apart give windows that overlap. Rows
before the first landmark, or more than an hour after the last one, belong to no window.
"""

HOUR = 3_600_000_000  # in microseconds


class LowerBoundLandmark:
    """From each row with ``landmark`` true, the rows of the following hour."""

    def __init__(self) -> None:
        self.ends = []  # the ends of the open windows, oldest first

    def on_record(self, time, row):
        begins = int(row["landmark"] is True)
        ends = sum(end <= time for end in self.ends)
        del self.ends[:ends]
        self.ends += [time + HOUR] * begins
        return begins, ends
