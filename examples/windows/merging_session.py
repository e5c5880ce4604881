"""A session that places its own edges: it ends one gap after its last row, and a late row may make one of two.

It is ``sw.session(gap)`` written by hand, to the bounds. There is nothing to remember: the edges say it all. Rows are
shown in event-time order, and those after a late row are shown again, so that the two sessions it lies between become
one, and the reports of both are retracted.
"""

GAP = 30_000_000  # 30 seconds, in microseconds


class MergingSession:
    """Rows at most GAP after the one before belong together."""

    def notify_context(self, time, row, edges):
        if edges.ends and time <= edges.ends[-1]:
            edges.remove_end(edges.ends[-1])  # the session goes on
        else:
            edges.add_start(time)
        edges.add_end(time + GAP)
