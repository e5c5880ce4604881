"""A window of your own: a machine's production runs, which end when the tool is changed or 100 parts are made.

No built-in window ends at "whichever comes first", but a class can: for each row, in event-time order, it returns how
many windows begin with the row and how many end before it. Its attributes are the state; there is one object per key.
"""

import slicewise as sw

MINUTE = 60_000_000


class Run:
    """Begins with a new tool, and anew after every 100 parts."""

    def __init__(self):
        self.tool = None
        self.parts = 0

    def on_record(self, time, row):
        new = row["tool"] != self.tool or self.parts >= 100
        ends = int(new and self.tool is not None)
        if new:
            self.tool, self.parts = row["tool"], 0
        self.parts += row["parts"]
        return int(new), ends


workload = sw.Workload(time="at", keys=["machine"]).query(
    "run", sw.user_defined(Run, columns=["tool", "parts"]), tool=sw.first("tool"), made=sw.sum("parts")
)

op = workload.operator()
op.process_batch(
    {
        "at": [minute * MINUTE for minute in (5, 0, 10, 15, 20, 25, 30, 35)],  # in any order
        "machine": ["press"] * 8,
        "tool": ["A", "A", "A", "B", "B", "B", "B", "A"],
        "parts": [30, 20, 10, 60, 50, 40, 40, 5],
    }
)
for r in op.close():
    end = "open" if r.end is None else r.end // MINUTE
    print(f"{r.key[0]}  tool {r.values['tool']}  minutes {r.start // MINUTE:>2} to {end:<4}  {r.values['made']} parts")
