"""The trader's window of the Cutty paper: every 5 minutes the last 10; while the stock is cheap, every 2 the last 5.

A window begins with the first trade after a tick of the slide that is in force, and ends before the first trade that
is at least the range after the tick. Windows end in the order in which they began, so when the price falls, the end
of a short window also ends the long ones that began before it.
"""

MINUTE = 60_000_000  # event time is in microseconds
DEAR, CHEAP = (5, 10), (2, 5)  # slide and range, in minutes


class Trader:
    """Slide 5 min, range 10 min while price > 10; else slide 2 min, range 5 min."""

    def __init__(self) -> None:
        self.tick = None  # the tick at which the last window began
        self.ends = []  # the ends of the open windows, oldest first

    def on_record(self, time, row):
        slide, length = DEAR if row["price"] > 10 else CHEAP
        over = [i for i, end in enumerate(self.ends) if end <= time]
        ends = over[-1] + 1 if over else 0
        del self.ends[:ends]
        tick = time // (slide * MINUTE) * (slide * MINUTE)
        begins = self.tick is None or tick > self.tick
        if begins:
            self.tick = tick
            self.ends.append(tick + length * MINUTE)
        return int(begins), ends
