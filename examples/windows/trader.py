"""The trader's window of the Cutty paper: every 5 minutes the last 10; while the stock is cheap, every 2 the last 5.

A window begins with the first trade at or after each tick of 1 minute on which the slide of the moment asks for one, and
ends before the first trade that lies its range after that tick. Ranges change with the price; windows end in the order
in which they began, so one that began earlier with a longer range goes first, at the latest when the next one ends.
"""

MINUTE = 60_000_000  # event time is in microseconds
DEAR, CHEAP = (5, 10), (2, 5)  # slide and range, in minutes


class Trader:
    """Slide 5 min, range 10 min while price > 10; else slide 2 min, range 5 min."""

    def __init__(self) -> None:
        self.next_tick = None  # the tick from which on the next window begins
        self.ends = []  # when the open windows are over, oldest first

    def on_record(self, time, row):
        slide, length = DEAR if row["price"] > 10 else CHEAP
        tick = time // (slide * MINUTE) * (slide * MINUTE)  # the last tick of the slide that is in force
        begins = int(self.next_tick is None or tick >= self.next_tick)
        over = [i for i, end in enumerate(self.ends) if end <= time]
        ends = over[-1] + 1 if over else 0
        del self.ends[:ends]
        if begins:
            self.ends.append(tick + length * MINUTE)
        # The slide may change before the next window: any tick after this one counts, of whichever slide is in force.
        self.next_tick = tick + 1 if begins else self.next_tick
        return begins, ends
